"""When jobs start and end: as those like them did that lasted, or waited, longer than they have by now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged
from iosig.transforms.demands import even_shares
from iosig.transforms.forecast.coming import Coming, ComingParams, Drawn, beyond, drawn
from tests.budget import examples

EXACT = ComingParams(late_s=0.0, volume_error=0.0)
#: one that has run for 100 s, and one that waits, of whose like nothing varies
ONE = Coming(
    demand=np.zeros(2, np.int64),
    elapsed_s=np.array([100.0, np.nan]),
    waited_s=np.array([np.nan, 20.0]),
    least_wait_s=np.zeros(2),
    most_wait_s=np.full(2, np.inf),
    limit_s=np.full(2, np.inf),
    trust=np.ones(2),
    lasted=np.zeros(2, np.int64),
    waited=np.zeros(2, np.int64),
    durations_s=Ragged(np.array([500.0]), np.array([0, 1])),
    waits_s=Ragged(np.array([80.0]), np.array([0, 1])),
)


def draws(coming: Coming, alone_s: float = 500.0, params: ComingParams = EXACT) -> Drawn:
    return drawn(coming, np.full(len(coming), alone_s), 40, 0, params)


def test_one_runs_on_and_one_waits_on() -> None:
    found = draws(ONE)
    assert set(found.started_s[0]) == {-100.0}
    assert set(found.started_s[1]) == {60.0}
    assert found.lasting_s == pytest.approx(np.full((2, 40), 500.0))
    at = found.positions_s(slice(None), np.array([0.0, 100.0, 400.0, 1000.0]))
    assert at[0, 0].tolist() == [100.0, 200.0, 500.0, 500.0]
    assert at[1, 0].tolist() == [0.0, 40.0, 340.0, 500.0]


def test_a_slow_run_is_late_evenly() -> None:
    slow = replace(ONE, durations_s=Ragged(np.array([1000.0]), np.array([0, 1])))
    at = draws(slow).positions_s(slice(0, 1), np.array([0.0, 900.0]))
    assert at[0, 0].tolist() == [50.0, 500.0]


def test_a_short_run_was_stopped_or_is_the_rest_of_one_that_was() -> None:
    short = replace(ONE, durations_s=Ragged(np.array([200.0]), np.array([0, 1])))
    found = draws(short)
    assert set(found.tempo.ravel()) == {1.0}
    assert sorted(set(found.first_s.ravel())) == [0.0, 300.0]
    assert (found.first_s == 0.0).mean() == pytest.approx(0.5)


def test_nobody_lasts_beyond_the_limit_and_nobody_starts_out_of_its_time() -> None:
    bound = replace(
        ONE,
        limit_s=np.array([150.0, 300.0]),
        least_wait_s=np.array([0.0, 70.0]),
        most_wait_s=np.array([0.0, 200.0]),
    )
    found = draws(bound)
    assert set(found.lasting_s[0]) == {150.0}
    assert set(found.lasting_s[1]) == {300.0}
    assert set(found.started_s[1]) == {70.0}
    assert set(draws(replace(bound, most_wait_s=np.array([0.0, 30.0]))).started_s[1]) == {70.0}


def test_who_is_not_to_be_trusted_may_move_more_or_less_and_the_same_in_the_mean() -> None:
    doubted = replace(ONE, trust=np.array([1.0, 0.2]))
    ratios = drawn(doubted, np.full(2, 500.0), 2000, 0, ComingParams(volume_error=0.5)).volume_ratio
    assert set(ratios[0]) == {1.0}
    assert ratios[1].mean() == pytest.approx(1.0, abs=0.02)
    assert np.log(ratios[1]).std() == pytest.approx(0.4, rel=0.02)


def test_what_lasted_longer_than_all_before_has_no_memory() -> None:
    past = Ragged(np.array([1.0, 2.0]), np.array([0, 2]))
    found = beyond(past, np.zeros(1, np.int64), np.array([10.0]), even_shares(4000, 1, 0).T, 0.1)
    assert found.min() >= 10.0
    assert found.mean() == pytest.approx(11.0, rel=0.01)


_values = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=6)


@settings(max_examples=examples(50))
@given(
    pieces=st.lists(_values, min_size=1, max_size=4),
    asked=st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 120.0)), min_size=1, max_size=5),
)
def test_values_beyond_are_those_of_the_piece(pieces: list[list[float]], asked: list[tuple[int, float]]) -> None:
    past = Ragged(np.concatenate(pieces).astype(np.float64), np.cumsum([0, *map(len, pieces)]))
    of = np.array([piece % len(pieces) for piece, _ in asked])
    already = np.array([value for _, value in asked])
    found = beyond(past, of, already, np.tile([0.01, 0.5, 0.99], (len(asked), 1)), 0.1)
    for piece, least, own in zip(of, already, found, strict=True):
        left = [value for value in pieces[piece] if value > least]
        assert own.min() >= least
        assert (np.diff(own) >= 0).all()
        if left:
            assert own[0] <= np.nextafter(min(left), np.inf) or len(left) > 1
            assert min(left) <= own[0] + 1e-9
            assert own[-1] <= max(left) + 1e-9
