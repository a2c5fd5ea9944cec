"""Slowdowns: regression on contention, significance, and interfering runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.attribution.slowdowns import (
    ContentionSlope,
    RunTraffic,
    SlowdownParams,
    compute_contention,
    estimate_slope,
    estimate_slowdowns,
    find_interference,
)
from tests.budget import examples

RUNS = 40


def draw_runs(ratio: float, seed: int = 0, drift: float = 0.01) -> tuple[Reals, Reals, Reals, Reals]:
    """Delay, contention, duration and application of runs of two applications, with a given slope."""
    rng = np.random.default_rng(seed)
    duration = np.repeat([1000.0, 3000.0], RUNS // 2)
    more = rng.exponential(100.0, RUNS)
    # the signature of one application is too short: a constant delay that is not due to contention
    usual = np.repeat([0.0, 40.0], RUNS // 2)
    return usual + ratio * more + rng.normal(0.0, drift, RUNS) * duration, more, duration, np.repeat([0, 1], RUNS // 2)


def test_contention_is_time_of_interfering_bytes_at_run_rate() -> None:
    ten, volume = np.full(4, 10.0), np.full(4, 80.0)
    others = np.array([0.0, 40.0, 80.0, 1e9])
    assert compute_contention(ten, volume, ten, others).tolist() == [0.0, 5.0, 10.0, 30.0]
    # twice the time with twice the bytes is the same rate
    assert compute_contention(ten, volume, 2 * ten, 2 * others)[1] == 5.0


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_slope_is_estimated_from_delays(ratio: float) -> None:
    result = [estimate_slope(*draw_runs(ratio, seed)) for seed in range(20)]
    assert np.mean([one.slope for one in result]) == pytest.approx(ratio, abs=0.05)
    near = [abs(one.slope - ratio) < 2.5 * one.error for one in result]
    assert np.mean(near) > 0.9


def test_slope_ignores_uninformative_runs() -> None:
    late, more, duration, application = draw_runs(0.3)
    known = estimate_slope(late, more, duration, application)
    stopped = late.copy()
    stopped[:5] = -0.5 * duration[:5]
    assert estimate_slope(stopped, more, duration, application).slope == pytest.approx(known.slope, abs=0.1)
    strange = late.copy()
    strange[3] = 50_000.0
    assert estimate_slope(strange, more, duration, application).slope == pytest.approx(known.slope, abs=0.1)
    prior = estimate_slope(late, more, duration, np.arange(RUNS))
    assert (prior.slope, prior.error) == (0.0, 0.5)
    assert estimate_slope(late[:0], more[:0], duration[:0], application[:0]) == prior


def test_slope_ignores_applications_with_varying_length() -> None:
    late, more, duration, application = draw_runs(0.3, drift=0.4)
    assert estimate_slope(late, more, duration, application).slope == 0.0


def test_only_significant_delays_are_reported() -> None:
    sure = SlowdownParams(burst_error_ratio=0.0, step_error=1.0)
    result = estimate_slowdowns(np.array([0.0, 4.0, 100.0]), ContentionSlope(0.5, 0.0), 2.0, sure)
    assert result.delay.tolist() == [0.0, 2.0, 50.0]
    assert result.is_delayed.tolist() == [False, False, True]
    assert result.high - result.low == pytest.approx(2 * 1.28 * 2.0)
    unsure = estimate_slowdowns(np.array([100.0]), ContentionSlope(0.5, 0.4), 2.0, sure)
    assert not unsure.is_delayed.any()
    wide = estimate_slowdowns(np.array([100.0]), ContentionSlope(0.5, 0.0), 2.0, replace(sure, burst_error_ratio=1.0))
    assert not wide.is_delayed.any()


def test_no_delay_is_significant_without_significant_slope() -> None:
    """A slope of 0.18 with an error of 0.06 occurred on a day without contention (simulated site, seed 11)."""
    long = np.array([400.0])
    for slow, is_delayed in (
        (ContentionSlope(0.18, 0.06), False),
        (ContentionSlope(0.18, 0.03), True),
        (ContentionSlope(0.5, 0.1), True),
        (ContentionSlope(0.5, 0.21), False),
        (ContentionSlope(0.09, 0.0), False),
    ):
        result = estimate_slowdowns(long, slow, 2.0)
        assert result.is_delayed.tolist() == [is_delayed]
        assert result.delay == pytest.approx(slow.slope * long)
        assert is_delayed or result.low <= 0


def test_run_with_high_leverage_increases_the_error() -> None:
    """Nine of ten runs have no contention; the tenth alone determines the slope."""
    late = np.append(np.tile([-20.0, 0.0, 20.0], 3), 60.0)
    more = np.append(np.zeros(9), 300.0)
    result = estimate_slope(late, more, np.full(10, 1000.0), np.zeros(10, np.int64))
    # Without this run the slope is zero; its delay may be chance.
    assert result.error > 0.5 * result.slope
    assert not estimate_slowdowns(more[-1:], result, 2.0).is_delayed.any()


def test_no_false_delays_without_contention_cost() -> None:
    slowed = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        duration = np.repeat([1500.0, 1300.0, 1300.0, 3000.0, 2200.0, 2500.0, 2400.0], 9)
        usual = np.repeat([50.0, 30.0, 25.0, 25.0, 400.0, 60.0, 60.0], 9)
        more = usual * rng.lognormal(0.0, 0.5, 63)
        late = rng.normal(0.0, 0.013, 63) * duration
        result = estimate_slowdowns(more, estimate_slope(late, more, duration, np.repeat(np.arange(7), 9)), 2.0)
        slowed += bool(result.is_delayed.any())
    assert slowed == 0


def traffic(*rows: tuple[int, float, float], run_count: int = 3) -> RunTraffic:
    run, at, volume = (np.array(column) for column in zip(*rows, strict=True))
    return RunTraffic(run.astype(np.int64), at, volume, run_count)


def test_top_interferer_has_most_interfering_bytes() -> None:
    rows = traffic((0, 10, 5), (1, 10, 2), (1, 20, 4), (2, 20, 5), (2, 30, 100))
    result = find_interference(np.array([0, 1, 2]), np.array([5.0, 5.0, 90.0]), np.array([20.0, 10.0, 99.0]), rows)
    assert result.interfering_bytes.tolist() == [11, 5, 0]
    assert result.top_run.tolist() == [1, 0, -1]
    assert result.top_bytes.tolist() == [6, 5, 0]


def test_interference_without_bursts_is_empty() -> None:
    none: Reals = np.zeros(0)
    result = find_interference(none.astype(np.int64), none, none, traffic((0, 10, 5)))
    assert len(result.top_run) == 0


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000))
def test_interference_matches_naive_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = np.sort(rng.integers(0, 4, 30))
    at = rng.integers(0, 20, 30).astype(np.float64)
    order = np.lexsort((at, run))
    rows = RunTraffic(run[order], at[order], rng.random(30), 5)
    own, began = rng.integers(0, 5, 6), rng.integers(0, 20, 6).astype(np.float64)
    ended = began + rng.integers(0, 9, 6)
    result = find_interference(own, began, ended, rows)
    for place in range(6):
        is_here = (rows.at_s > began[place]) & (rows.at_s <= ended[place])
        sums = np.bincount(rows.run[is_here], rows.volume_bytes[is_here], 5)
        sums[own[place]] = 0
        assert result.interfering_bytes[place] == pytest.approx(sums.sum())
        assert result.top_bytes[place] == pytest.approx(sums.max())
        assert result.top_run[place] == (sums.argmax() if sums.any() else -1)
