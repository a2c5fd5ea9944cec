"""Server counts: distribution over the steps of the traffic, and preservation of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged, Reals, offsets_of
from iosig.transforms.attribution.runs import RunBytes
from iosig.transforms.attribution.server_counts import distribute_counts
from tests.budget import examples


def distribute(
    pieces: list[list[float]], started: list[float], interval_steps: list[float], traffic: list[float]
) -> list[Reals]:
    """Bytes of each run in each step."""
    series = Ragged(
        np.array([value for piece in pieces for value in piece]), offsets_of([len(piece) for piece in pieces])
    )
    result = distribute_counts(series, np.array(started), np.array(interval_steps), np.array(traffic))
    return [bytes_of(result, run, len(traffic)) for run in range(len(pieces))]


def bytes_of(result: RunBytes, run: int, step_count: int) -> Reals:
    is_run = result.run == run
    summed: Reals = np.bincount(result.step[is_run], result.volume_bytes[is_run], step_count).astype(np.float64)
    return summed


def test_counts_on_the_steps_of_the_traffic_are_unchanged() -> None:
    first, second = distribute([[4, np.nan, 0, 6], [1]], [1, 3], [1, 1], [9, 9, 0, 9, 9, 9])
    assert first == pytest.approx([0, 4, 0, 0, 6, 0])
    assert second == pytest.approx([0, 0, 0, 1, 0, 0])


def test_long_interval_is_divided_in_proportion_to_traffic() -> None:
    (result,) = distribute([[12, 5]], [0], [4], [0, 30, 10, 0, 0, 0, 7, 0])
    assert result == pytest.approx([0, 9, 3, 0, 0, 0, 5, 0], abs=1e-6)


def test_counts_are_spread_evenly_where_nothing_was_polled() -> None:
    (result,) = distribute([[8, 3]], [0], [4], [np.nan, np.nan, np.nan, np.nan, 1, 0, 0, 0])
    assert result == pytest.approx([2, 2, 2, 2, 3, 0, 0, 0], abs=1e-6)
    assert [piece.tolist() for piece in distribute([[8.0]], [0], [4], [])] == [[]]


def test_counts_beyond_the_grid_are_dropped() -> None:
    (result,) = distribute([[10, 7, 10]], [-2], [4], [5, 5, 5, 5, 5, 5])
    assert result == pytest.approx([2.5, 2.5, 1.75, 1.75, 1.75, 1.75])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_bytes_are_preserved_and_do_not_exceed_traffic(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = rng.exponential(5.0, 60) * (rng.random(60) < 0.5)
    interval_steps = rng.uniform(0.3, 9.0, count)
    started = rng.uniform(0.0, 5.0, count)
    pieces = []
    for run in range(count):
        edges = started[run] + np.arange(int((60 - started[run]) // interval_steps[run]) + 1) * interval_steps[run]
        pieces.append(np.diff(np.interp(edges, np.arange(61), np.concatenate([[0], np.cumsum(traffic)]))).tolist())
    distributed = distribute(pieces, started.tolist(), interval_steps.tolist(), traffic.tolist())
    for piece, result in zip(pieces, distributed, strict=True):
        assert result.sum() == pytest.approx(sum(piece))
        assert (result <= traffic * (1 + 1e-6) + 1e-6).all()
