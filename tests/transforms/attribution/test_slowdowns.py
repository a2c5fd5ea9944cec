"""Slowdowns: what crowding makes of runs, what is within what is not known, and whose bytes stood there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.attribution.slowdowns import Moves, SlowdownParams, Slowing, crowded, slowdowns, slowing, stood
from tests.budget import examples

RUNS = 40


def drawn(ratio: float, seed: int = 0, drift: float = 0.01) -> tuple[Reals, Reals, Reals, Reals]:
    """Return runs of two applications (late, crowded, duration, application) of whom crowding makes so much."""
    rng = np.random.default_rng(seed)
    duration = np.repeat([1000.0, 3000.0], RUNS // 2)
    more = rng.exponential(100.0, RUNS)
    # one of them is always late, by its signature, which says nothing of crowding
    usual = np.repeat([0.0, 40.0], RUNS // 2)
    return usual + ratio * more + rng.normal(0.0, drift, RUNS) * duration, more, duration, np.repeat([0, 1], RUNS // 2)


def test_a_burst_is_crowded_for_as_long_as_others_bytes_take_at_its_pace() -> None:
    ten, volume = np.full(4, 10.0), np.full(4, 80.0)
    others = np.array([0.0, 40.0, 80.0, 1e9])
    assert crowded(ten, volume, ten, others).tolist() == [0.0, 5.0, 10.0, 30.0]
    # it took twice as long, in which twice as much came by
    assert crowded(ten, volume, 2 * ten, 2 * others)[1] == 5.0


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_what_crowding_makes_of_runs_is_learnt_from_how_late_they_were(ratio: float) -> None:
    found = [slowing(*drawn(ratio, seed)) for seed in range(20)]
    assert np.mean([one.ratio for one in found]) == pytest.approx(ratio, abs=0.05)
    near = [abs(one.ratio - ratio) < 2.5 * one.error for one in found]
    assert np.mean(near) > 0.9


def test_runs_that_tell_nothing_are_left_out() -> None:
    late, more, duration, application = drawn(0.3)
    known = slowing(late, more, duration, application)
    stopped = late.copy()
    stopped[:5] = -0.5 * duration[:5]
    assert slowing(stopped, more, duration, application).ratio == pytest.approx(known.ratio, abs=0.1)
    strange = late.copy()
    strange[3] = 50_000.0
    assert slowing(strange, more, duration, application).ratio == pytest.approx(known.ratio, abs=0.1)
    nobody = slowing(late, more, duration, np.arange(RUNS))
    assert (nobody.ratio, nobody.error) == (0.0, 0.5)
    assert slowing(late[:0], more[:0], duration[:0], application[:0]) == nobody


def test_applications_that_last_as_long_as_they_like_tell_nothing() -> None:
    late, more, duration, application = drawn(0.3, drift=0.4)
    assert slowing(late, more, duration, application).ratio == 0.0


def test_only_what_is_beyond_the_uncertainty_is_hurt() -> None:
    sure = SlowdownParams(burst_error=0.0, step_error=1.0)
    found = slowdowns(np.array([0.0, 4.0, 100.0]), Slowing(0.5, 0.0), 2.0, sure)
    assert found.longer.tolist() == [0.0, 2.0, 50.0]
    assert found.is_hurt.tolist() == [False, False, True]
    assert found.high - found.low == pytest.approx(2 * 1.28 * 2.0)
    unsure = slowdowns(np.array([100.0]), Slowing(0.5, 0.4), 2.0, sure)
    assert not unsure.is_hurt.any()
    wide = slowdowns(np.array([100.0]), Slowing(0.5, 0.0), 2.0, replace(sure, burst_error=1.0))
    assert not wide.is_hurt.any()


def test_nobody_is_hurt_where_it_is_not_sure_that_crowding_slows() -> None:
    """A slope of .18 with an error of .06 came of a day on which others cost nothing (a site of seed 11)."""
    long = np.array([400.0])
    for slow, is_hurt in (
        (Slowing(0.18, 0.06), False),
        (Slowing(0.18, 0.03), True),
        (Slowing(0.5, 0.1), True),
        (Slowing(0.5, 0.21), False),
        (Slowing(0.09, 0.0), False),
    ):
        found = slowdowns(long, slow, 2.0)
        assert found.is_hurt.tolist() == [is_hurt]
        assert found.longer == pytest.approx(slow.ratio * long)
        assert is_hurt or found.low <= 0


def test_a_run_that_draws_the_line_to_itself_is_held_against_the_others() -> None:
    """Of ten runs nine are not crowded and differ by a second or two; the tenth alone says what crowding makes."""
    late = np.append(np.tile([-20.0, 0.0, 20.0], 3), 60.0)
    more = np.append(np.zeros(9), 300.0)
    found = slowing(late, more, np.full(10, 1000.0), np.zeros(10, np.int64))
    # without it there is no line at all: what is known is that it may have been late by chance
    assert found.error > 0.5 * found.ratio
    assert not slowdowns(more[-1:], found, 2.0).is_hurt.any()


def test_where_others_cost_nothing_hardly_a_day_has_anybody_hurt() -> None:
    hurt = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        duration = np.repeat([1500.0, 1300.0, 1300.0, 3000.0, 2200.0, 2500.0, 2400.0], 9)
        usual = np.repeat([50.0, 30.0, 25.0, 25.0, 400.0, 60.0, 60.0], 9)
        more = usual * rng.lognormal(0.0, 0.5, 63)
        late = rng.normal(0.0, 0.013, 63) * duration
        found = slowdowns(more, slowing(late, more, duration, np.repeat(np.arange(7), 9)), 2.0)
        hurt += bool(found.is_hurt.any())
    assert hurt == 0


def moves(*rows: tuple[int, float, float], run_count: int = 3) -> Moves:
    run, at, volume = (np.array(column) for column in zip(*rows, strict=True))
    return Moves(run.astype(np.int64), at, volume, run_count)


def test_others_who_moved_most_are_named() -> None:
    rows = moves((0, 10, 5), (1, 10, 2), (1, 20, 4), (2, 20, 5), (2, 30, 100))
    found = stood(np.array([0, 1, 2]), np.array([5.0, 5.0, 90.0]), np.array([20.0, 10.0, 99.0]), rows)
    assert found.others_bytes.tolist() == [11, 5, 0]
    assert found.first.tolist() == [1, 0, -1]
    assert found.first_bytes.tolist() == [6, 5, 0]


def test_where_nobody_was_hurt_nobody_is_named() -> None:
    none: Reals = np.zeros(0)
    found = stood(none.astype(np.int64), none, none, moves((0, 10, 5)))
    assert len(found.first) == 0


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000))
def test_sums_are_as_added_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = np.sort(rng.integers(0, 4, 30))
    at = rng.integers(0, 20, 30).astype(np.float64)
    order = np.lexsort((at, run))
    rows = Moves(run[order], at[order], rng.random(30), 5)
    own, began = rng.integers(0, 5, 6), rng.integers(0, 20, 6).astype(np.float64)
    ended = began + rng.integers(0, 9, 6)
    found = stood(own, began, ended, rows)
    for place in range(6):
        is_here = (rows.at_s > began[place]) & (rows.at_s <= ended[place])
        sums = np.bincount(rows.run[is_here], rows.volume_bytes[is_here], 5)
        sums[own[place]] = 0
        assert found.others_bytes[place] == pytest.approx(sums.sum())
        assert found.first_bytes[place] == pytest.approx(sums.max())
        assert found.first[place] == (sums.argmax() if sums.any() else -1)
