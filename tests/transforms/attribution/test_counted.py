"""Counted runs: where their bytes lie among the traffic, and that none is lost but beyond the grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged, Reals, offsets_of
from iosig.transforms.attribution.counted import Counted, lay
from tests.budget import examples


def laid(pieces: list[list[float]], started: list[float], lasting: list[float], traffic: list[float]) -> list[Reals]:
    """Return what each run has in each step."""
    series = Ragged(np.array([value for piece in pieces for value in piece]), offsets_of([len(one) for one in pieces]))
    found = lay(series, np.array(started), np.array(lasting), np.array(traffic))
    return [of(found, run, len(traffic)) for run in range(len(pieces))]


def of(found: Counted, run: int, step_count: int) -> Reals:
    is_own = found.run == run
    summed: Reals = np.bincount(found.step[is_own], found.volume_bytes[is_own], step_count).astype(np.float64)
    return summed


def test_counts_on_the_traffics_own_steps_stay_as_they_are() -> None:
    first, second = laid([[4, np.nan, 0, 6], [1]], [1, 3], [1, 1], [9, 9, 0, 9, 9, 9])
    assert first == pytest.approx([0, 4, 0, 0, 6, 0])
    assert second == pytest.approx([0, 0, 0, 1, 0, 0])


def test_a_count_of_several_steps_lies_where_the_traffic_does() -> None:
    (found,) = laid([[12, 5]], [0], [4], [0, 30, 10, 0, 0, 0, 7, 0])
    assert found == pytest.approx([0, 9, 3, 0, 0, 0, 5, 0], abs=1e-6)


def test_what_was_counted_while_nothing_was_polled_lies_evenly() -> None:
    (found,) = laid([[8, 3]], [0], [4], [np.nan, np.nan, np.nan, np.nan, 1, 0, 0, 0])
    assert found == pytest.approx([2, 2, 2, 2, 3, 0, 0, 0], abs=1e-6)
    assert [each.tolist() for each in laid([[8.0]], [0], [4], [])] == [[]]


def test_what_lies_beyond_the_grid_is_left_out() -> None:
    (found,) = laid([[10, 7, 10]], [-2], [4], [5, 5, 5, 5, 5, 5])
    assert found == pytest.approx([2.5, 2.5, 1.75, 1.75, 1.75, 1.75])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_every_byte_within_the_grid_is_laid_and_no_more_than_flowed(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = rng.exponential(5.0, 60) * (rng.random(60) < 0.5)
    lasting = rng.uniform(0.3, 9.0, count)
    started = rng.uniform(0.0, 5.0, count)
    pieces = []
    for run in range(count):
        edges = started[run] + np.arange(int((60 - started[run]) // lasting[run]) + 1) * lasting[run]
        pieces.append(np.diff(np.interp(edges, np.arange(61), np.concatenate([[0], np.cumsum(traffic)]))).tolist())
    for piece, found in zip(pieces, laid(pieces, started.tolist(), lasting.tolist(), traffic.tolist()), strict=True):
        assert found.sum() == pytest.approx(sum(piece))
        assert (found <= traffic * (1 + 1e-6) + 1e-6).all()
