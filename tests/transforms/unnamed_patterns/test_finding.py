"""Patterns: a train and its period, bursts that come together as one, and what comes as it likes."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import AnyReals, Ints, Reals
from iosig.transforms.unnamed_patterns.beside import Runs
from iosig.transforms.unnamed_patterns.finding import find
from iosig.transforms.unnamed_patterns.patterns import PatternParams

STEP_S = 10.0
COUNT = 30_000
NOBODY = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def traffic(seed: int = 7) -> Reals:
    rng = np.random.default_rng(seed)
    left = rng.lognormal(0.0, 0.4, COUNT)
    for at, volume, width in zip(
        rng.integers(0, COUNT - 200, 150), rng.lognormal(6.0, 1.2, 150), rng.integers(2, 40, 150), strict=True
    ):
        left[at : at + width] += volume / width
    return left


def put(left: Reals, at: AnyReals | Ints, volume: float, width: int) -> None:
    for start in at.astype(np.int64).tolist():
        left[start : start + width] += volume / width


def test_a_train_has_a_period() -> None:
    left = traffic()
    put(left, np.arange(90, COUNT - 100, 180), 3000.0, 6)
    (one,) = find(left, STEP_S, NOBODY)
    found = one.pattern
    assert one.whose.outcome == "unnamed"
    assert found.is_train
    assert found.period == pytest.approx(180, rel=1e-3)
    assert found.period_chance < 1e-6
    assert len(found.started) > 0.8 * (COUNT / 180)
    assert np.median(found.volume_bytes) == pytest.approx(3000, rel=0.02)
    assert found.signature_bytes == pytest.approx(np.full(6, 500.0), rel=0.02)


def test_what_comes_as_it_likes_just_before_a_train_is_found() -> None:
    left = traffic()
    due = np.arange(90, COUNT - 100, 180)
    put(left, due, 3000.0, 6)
    at = np.sort(np.random.default_rng(3).choice(due, 9, replace=False)) - 22
    put(left, at, 40000.0, 20)
    whole, few = find(left, STEP_S, NOBODY)
    assert (whole.pattern.is_train, few.pattern.is_train) == (True, False)
    assert len(few.pattern.started) >= 7
    assert set(few.pattern.started) <= set(at)


def test_where_a_train_is_missing_lies_what_others_made_of_it() -> None:
    left = traffic()
    due = np.arange(90, COUNT - 100, 180)
    missing = np.random.default_rng(4).choice(due[5:-5], 12, replace=False)
    put(left, np.setdiff1d(due, missing), 3000.0, 6)
    put(left, missing, 4500.0, 9)
    (one,) = find(left, STEP_S, NOBODY)
    assert one.pattern.is_train


def test_bursts_that_come_together_are_one_pattern() -> None:
    left = traffic()
    at = np.sort(np.random.default_rng(8).choice(np.arange(100, COUNT - 400, 300), 20, replace=False))
    put(left, at, 9000.0, 8)
    put(left, at + 40, 20000.0, 12)
    (one,) = find(left, STEP_S, NOBODY)
    found = one.pattern
    assert (found.burst_count, found.is_train) == (2, False)
    assert 12 <= len(found.started) <= 20
    assert np.isin(np.rint(found.started), np.concatenate([at, at + 40])).mean() > 0.9
    assert len(found.signature_bytes) == 52
    assert np.median(found.volume_bytes) == pytest.approx(29000, rel=0.03)


def test_two_bursts_are_found_by_their_distance_where_too_few_are_clean() -> None:
    left, rng = traffic(), np.random.default_rng(11)
    at = np.sort(rng.choice(np.arange(200, COUNT - 400, 400), 9, replace=False))
    # of neither are there as many of one volume as make a kind
    first, second = (rng.uniform(0.3, 0.9, 9) * ~np.isin(np.arange(9), clean) for clean in ((0, 1, 2, 3), (0, 1, 2, 4)))
    for start, more, other in zip(at, first, second, strict=True):
        put(left, np.array([start]), 9000.0 * (1 + more), 8)
        put(left, np.array([start + 40]), 20000.0 * (1 + other), 12)
    (one,) = find(left, STEP_S, NOBODY)
    assert (one.pattern.burst_count, one.whose.outcome) == (2, "unnamed")
    assert set(one.pattern.started) >= set(at[:4])
    assert set(one.pattern.started) <= set(at)


def test_of_two_that_move_the_same_the_one_that_nothing_comes_with_is_not_lost() -> None:
    left = traffic()
    places = np.random.default_rng(12).permutation(np.arange(200, COUNT - 400, 300))
    alone, paired = np.sort(places[:24]), np.sort(places[24:40])
    put(left, alone, 9000.0, 8)
    put(left, paired, 9000.0, 8)
    put(left, paired + 40, 20000.0, 12)
    two, one = sorted(find(left, STEP_S, NOBODY), key=lambda each: -each.pattern.burst_count)
    assert (two.pattern.burst_count, two.whose.outcome) == (2, "unnamed")
    assert np.isin(two.pattern.started, paired).mean() > 0.9
    # it may be the same maker, what comes with it being hidden
    assert (one.pattern.burst_count, one.whose.outcome) == (1, "unsure")
    assert np.isin(one.pattern.started, alone).mean() > 0.9
    assert len(one.pattern.started) > 15


def test_a_kind_that_a_logged_application_may_have_left_half_of_is_unsure() -> None:
    left, rng = traffic(), np.random.default_rng(13)
    started = np.arange(100, COUNT - 1200, 1500)
    runs = Runs(np.zeros(len(started), np.int64), started.astype(float), started + 700.0)
    # what it does each time, and what it seldom does later: wider, so that it is no part of that
    put(left, started + 20, 9000.0, 8)
    put(left, started[::4] + rng.integers(100, 600, len(started[::4])), 9000.0, 24)
    put(left, np.sort(rng.choice(started, 6, replace=False)) + rng.integers(800, 1300, 6), 9000.0, 24)
    does, mixed = sorted(find(left, STEP_S, runs), key=lambda each: -len(each.pattern.started))
    assert (does.whose.outcome, mixed.whose.outcome) == ("named", "unsure")
    assert len(mixed.pattern.started) >= 9


def test_what_is_alike_within_the_restlessness_of_what_flows_beneath_is_unsure() -> None:
    at = np.sort(np.random.default_rng(17).choice(np.arange(100, COUNT - 100, 60), 40, replace=False))
    for volume, outcome in ((14.0, "unsure"), (140.0, "unnamed")):
        left = np.tile([0.2, 1.8], COUNT // 2)
        put(left, at, volume, 1)
        (one,) = find(left, STEP_S, NOBODY)
        assert one.whose.outcome == outcome
        assert len(one.pattern.started) > 30


@pytest.mark.parametrize("seed", range(3))
def test_chance_is_no_pattern(seed: int) -> None:
    assert find(traffic(seed), STEP_S, NOBODY) == []


@pytest.mark.parametrize("left", [np.zeros(0), np.zeros(100), np.full(100, np.nan)])
def test_nothing_has_none(left: Reals) -> None:
    assert find(left, STEP_S, NOBODY) == []


def test_two_that_move_the_same_are_told_apart_by_whose_runs_were_there() -> None:
    left, rng = traffic(), np.random.default_rng(9)
    places = rng.permutation(np.arange(100, COUNT - 400, 90))
    logged, unlogged = np.sort(places[:100]), np.sort(places[100:160])
    for at in (logged, unlogged):
        put(left, at, 9000.0, 8)
    runs = Runs(np.zeros(100, np.int64), logged - 5.0, logged + 20.0)
    found = {one.whose.outcome: one for one in find(left, STEP_S, runs)}
    assert set(found) == {"named", "unnamed"}
    for outcome, at in (("named", logged), ("unnamed", unlogged)):
        started = found[outcome].pattern.started
        assert np.isin(started, at).mean() > 0.95
        assert len(started) > 0.7 * len(at)
    assert found["named"].whose.seen_run_count > 80


def test_a_train_is_found_though_a_logged_application_spoils_its_bursts() -> None:
    left, rng = traffic(), np.random.default_rng(10)
    started = np.arange(12) * 2500.0 + rng.uniform(0, 200, 12)
    own = (started[:, None] + np.cumsum(15.0 * rng.normal(1.0, 0.01, (12, 120)), axis=1)).ravel()
    due = np.arange(90, COUNT - 100, 180) + rng.integers(-2, 3, (COUNT - 190) // 180 + 1)
    put(left, own, 900.0, 3)
    put(left, due, 3000.0, 12)
    runs = Runs(np.zeros(12, np.int64), started, started + 1850.0)
    found = find(left, STEP_S, runs)
    (train,) = (one for one in found if one.whose.outcome == "unnamed")
    assert train.pattern.period == pytest.approx(180.0, rel=0.01)
    assert np.isin(np.rint(train.pattern.started)[:, None] + np.arange(-1, 2), due).any(axis=1).mean() > 0.95
    rhythm = max(found, key=lambda one: len(one.pattern.started))
    assert (rhythm.whose.outcome, rhythm.whose.application, rhythm.whose.seen_run_count) == ("named", 0, 12)
    assert len(rhythm.pattern.started) > 0.5 * len(own)
    # where its rhythm stays, it hides the half of the train that lies in its runs
    before = [one for one in find(left, STEP_S, runs, PatternParams(rounds=0)) if one.whose.outcome == "unnamed"]
    assert max(len(one.pattern.started) for one in before) < 0.7 * len(train.pattern.started)
