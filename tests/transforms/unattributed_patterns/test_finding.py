"""Pattern detection from end to end: trains, irregular patterns, groups of bursts, and owners."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import AnyReals, Ints, Reals
from iosig.transforms.unattributed_patterns.cooccurrence import Runs
from iosig.transforms.unattributed_patterns.finding import find_patterns
from iosig.transforms.unattributed_patterns.patterns import PatternParams

STEP_S = 10.0
COUNT = 30_000
NO_RUNS = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def traffic(seed: int = 7) -> Reals:
    rng = np.random.default_rng(seed)
    residual = rng.lognormal(0.0, 0.4, COUNT)
    for at, volume, width in zip(
        rng.integers(0, COUNT - 200, 150), rng.lognormal(6.0, 1.2, 150), rng.integers(2, 40, 150), strict=True
    ):
        residual[at : at + width] += volume / width
    return residual


def put(residual: Reals, at: AnyReals | Ints, volume: float, width: int) -> None:
    for start in at.astype(np.int64).tolist():
        residual[start : start + width] += volume / width


def test_train_has_a_period() -> None:
    residual = traffic()
    put(residual, np.arange(90, COUNT - 100, 180), 3000.0, 6)
    (result,) = find_patterns(residual, STEP_S, NO_RUNS)
    pattern = result.pattern
    assert result.cooccurrence.outcome == "unattributed"
    assert pattern.is_train
    assert pattern.period == pytest.approx(180, rel=1e-3)
    assert pattern.period_p_value < 1e-6
    assert len(pattern.started) > 0.8 * (COUNT / 180)
    assert np.median(pattern.volume_bytes) == pytest.approx(3000, rel=0.02)
    assert pattern.signature_bytes == pytest.approx(np.full(6, 500.0), rel=0.02)


def test_irregular_pattern_next_to_a_train_is_found() -> None:
    residual = traffic()
    due = np.arange(90, COUNT - 100, 180)
    put(residual, due, 3000.0, 6)
    at = np.sort(np.random.default_rng(3).choice(due, 9, replace=False)) - 22
    put(residual, at, 40000.0, 20)
    train, irregular = find_patterns(residual, STEP_S, NO_RUNS)
    assert (train.pattern.is_train, irregular.pattern.is_train) == (True, False)
    assert len(irregular.pattern.started) >= 7
    assert set(irregular.pattern.started) <= set(at)


def test_contaminated_appearances_belong_to_the_train() -> None:
    residual = traffic()
    due = np.arange(90, COUNT - 100, 180)
    missing = np.random.default_rng(4).choice(due[5:-5], 12, replace=False)
    put(residual, np.setdiff1d(due, missing), 3000.0, 6)
    put(residual, missing, 4500.0, 9)
    (result,) = find_patterns(residual, STEP_S, NO_RUNS)
    assert result.pattern.is_train


def test_bursts_at_a_fixed_lag_form_one_pattern() -> None:
    residual = traffic()
    at = np.sort(np.random.default_rng(8).choice(np.arange(100, COUNT - 400, 300), 20, replace=False))
    put(residual, at, 9000.0, 8)
    put(residual, at + 40, 20000.0, 12)
    (result,) = find_patterns(residual, STEP_S, NO_RUNS)
    pattern = result.pattern
    assert (pattern.burst_count, pattern.is_train) == (2, False)
    assert 12 <= len(pattern.started) <= 20
    assert np.isin(np.rint(pattern.started), np.concatenate([at, at + 40])).mean() > 0.9
    assert len(pattern.signature_bytes) == 52
    assert np.median(pattern.volume_bytes) == pytest.approx(29000, rel=0.03)


def test_mostly_contaminated_pair_is_found_by_its_lag() -> None:
    residual, rng = traffic(), np.random.default_rng(11)
    at = np.sort(rng.choice(np.arange(200, COUNT - 400, 400), 9, replace=False))
    # Neither volume has enough undisturbed bursts for a cluster.
    first, second = (rng.uniform(0.3, 0.9, 9) * ~np.isin(np.arange(9), clean) for clean in ((0, 1, 2, 3), (0, 1, 2, 4)))
    for start, more, other in zip(at, first, second, strict=True):
        put(residual, np.array([start]), 9000.0 * (1 + more), 8)
        put(residual, np.array([start + 40]), 20000.0 * (1 + other), 12)
    (result,) = find_patterns(residual, STEP_S, NO_RUNS)
    assert (result.pattern.burst_count, result.cooccurrence.outcome) == (2, "unattributed")
    assert set(result.pattern.started) >= set(at[:4])
    assert set(result.pattern.started) <= set(at)


def test_bursts_without_lagged_burst_are_a_separate_pattern() -> None:
    residual = traffic()
    places = np.random.default_rng(12).permutation(np.arange(200, COUNT - 400, 300))
    alone, paired = np.sort(places[:24]), np.sort(places[24:40])
    put(residual, alone, 9000.0, 8)
    put(residual, paired, 9000.0, 8)
    put(residual, paired + 40, 20000.0, 12)
    two, result = sorted(find_patterns(residual, STEP_S, NO_RUNS), key=lambda result: -result.pattern.burst_count)
    assert (two.pattern.burst_count, two.cooccurrence.outcome) == (2, "unattributed")
    assert np.isin(two.pattern.started, paired).mean() > 0.9
    # The second burst of the same application may be hidden.
    assert (result.pattern.burst_count, result.cooccurrence.outcome) == (1, "ambiguous")
    assert np.isin(result.pattern.started, alone).mean() > 0.9
    assert len(result.pattern.started) > 15


def test_pattern_that_may_consist_of_strays_is_ambiguous() -> None:
    residual, rng = traffic(), np.random.default_rng(13)
    started = np.arange(100, COUNT - 1200, 1500)
    runs = Runs(np.zeros(len(started), np.int64), started.astype(float), started + 700.0)
    # A burst of every run, and a wider burst of some runs.
    put(residual, started + 20, 9000.0, 8)
    put(residual, started[::4] + rng.integers(100, 600, len(started[::4])), 9000.0, 24)
    put(residual, np.sort(rng.choice(started, 6, replace=False)) + rng.integers(800, 1300, 6), 9000.0, 24)
    does, mixed = sorted(find_patterns(residual, STEP_S, runs), key=lambda result: -len(result.pattern.started))
    assert (does.cooccurrence.outcome, mixed.cooccurrence.outcome) == ("attributed", "ambiguous")
    assert len(mixed.pattern.started) >= 9


def test_pattern_within_background_fluctuation_is_ambiguous() -> None:
    at = np.sort(np.random.default_rng(17).choice(np.arange(100, COUNT - 100, 60), 40, replace=False))
    for volume, outcome in ((14.0, "ambiguous"), (140.0, "unattributed")):
        residual = np.tile([0.2, 1.8], COUNT // 2)
        put(residual, at, volume, 1)
        (result,) = find_patterns(residual, STEP_S, NO_RUNS)
        assert result.cooccurrence.outcome == outcome
        assert len(result.pattern.started) > 30


@pytest.mark.parametrize("seed", range(3))
def test_random_traffic_has_no_pattern(seed: int) -> None:
    assert find_patterns(traffic(seed), STEP_S, NO_RUNS) == []


@pytest.mark.parametrize("residual", [np.zeros(0), np.zeros(100), np.full(100, np.nan)])
def test_empty_or_missing_traffic_has_no_pattern(residual: Reals) -> None:
    assert find_patterns(residual, STEP_S, NO_RUNS) == []


def test_patterns_of_equal_volume_are_separated_by_owner() -> None:
    residual, rng = traffic(), np.random.default_rng(9)
    places = rng.permutation(np.arange(100, COUNT - 400, 90))
    logged, unlogged = np.sort(places[:100]), np.sort(places[100:160])
    for at in (logged, unlogged):
        put(residual, at, 9000.0, 8)
    runs = Runs(np.zeros(100, np.int64), logged - 5.0, logged + 20.0)
    results = {result.cooccurrence.outcome: result for result in find_patterns(residual, STEP_S, runs)}
    assert set(results) == {"attributed", "unattributed"}
    for outcome, at in (("attributed", logged), ("unattributed", unlogged)):
        started = results[outcome].pattern.started
        assert np.isin(started, at).mean() > 0.95
        assert len(started) > 0.7 * len(at)
    assert results["attributed"].cooccurrence.covering_run_count > 80


def test_train_contaminated_by_a_logged_rhythm_is_found() -> None:
    residual, rng = traffic(), np.random.default_rng(10)
    started = np.arange(12) * 2500.0 + rng.uniform(0, 200, 12)
    own = (started[:, None] + np.cumsum(15.0 * rng.normal(1.0, 0.01, (12, 120)), axis=1)).ravel()
    due = np.arange(90, COUNT - 100, 180) + rng.integers(-2, 3, (COUNT - 190) // 180 + 1)
    put(residual, own, 900.0, 3)
    put(residual, due, 3000.0, 12)
    runs = Runs(np.zeros(12, np.int64), started, started + 1850.0)
    results = find_patterns(residual, STEP_S, runs)
    (train,) = (result for result in results if result.cooccurrence.outcome == "unattributed")
    assert train.pattern.period == pytest.approx(180.0, rel=0.01)
    assert np.isin(np.rint(train.pattern.started)[:, None] + np.arange(-1, 2), due).any(axis=1).mean() > 0.95
    rhythm = max(results, key=lambda result: len(result.pattern.started))
    owner = rhythm.cooccurrence
    assert (owner.outcome, owner.application, owner.covering_run_count) == (
        "attributed",
        0,
        12,
    )
    assert len(rhythm.pattern.started) > 0.5 * len(own)
    # Unless it is subtracted, the rhythm hides the half of the train within the runs.
    results = find_patterns(residual, STEP_S, runs, PatternParams(rhythm_rounds=0))
    before = [result for result in results if result.cooccurrence.outcome == "unattributed"]
    assert max(len(result.pattern.started) for result in before) < 0.7 * len(train.pattern.started)
