"""Rhythms within logged runs: period estimation, false alarms, and subtraction."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.unattributed_patterns.rhythms import (
    Rhythm,
    RhythmParams,
    estimate_period,
    rank_periods,
    subtract_rhythm,
)

STEP_S = 5.0


def draw_bursts(period: float, seed: int, seen: float = 0.5) -> tuple[Ints, Ints]:
    """Start steps and runs of periodic bursts in ten runs, with an observed share of `seen`."""
    rng = np.random.default_rng(seed)
    begun, run = [], []
    for number, started in enumerate(np.sort(rng.uniform(0, 100_000, 10)).tolist()):
        at = started + np.cumsum(period * rng.normal(1.0, 0.01, 20))
        begun.append(at[rng.random(20) < seen])
        run.append(np.full(len(begun[-1]), number))
    return np.rint(np.concatenate(begun)).astype(np.int64), np.concatenate(run)


@pytest.mark.parametrize("period", [18.0, 60.0, 240.0, 720.0])
@pytest.mark.parametrize("seen", [0.25, 0.5, 1.0])
def test_period_of_periodic_runs_is_estimated(period: float, seen: float) -> None:
    estimate = estimate_period(*draw_bursts(period, 5, seen), STEP_S)
    assert estimate is not None
    estimated_period, spread, evidence = estimate
    assert estimated_period == pytest.approx(period, rel=0.02)
    assert 0.004 <= spread <= 0.02
    assert evidence > 8.0


def test_period_that_continues_between_runs_is_rejected() -> None:
    first = np.arange(0, 100_000, 240)
    run = np.where(np.arange(len(first)) % 40 < 20, np.arange(len(first)) // 40, -1)
    assert estimate_period(first, run, STEP_S) is None


def test_two_runs_have_no_rhythm() -> None:
    first, run = draw_bursts(60.0, 5, 1.0)
    assert estimate_period(first[run < 2], run[run < 2], STEP_S) is None


def test_random_bursts_rarely_have_a_rhythm() -> None:
    count = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first = np.sort(rng.integers(0, 120_000, 100))
        count += estimate_period(first, first // 4000, STEP_S) is not None
    assert count <= 4


@pytest.mark.parametrize("first", [np.zeros(0, np.int64), np.array([7]), np.array([7, 7]), np.array([7, 9])])
def test_few_bursts_have_no_rhythm(first: Ints) -> None:
    assert estimate_period(first, np.zeros(len(first), np.int64), STEP_S) is None
    assert len(rank_periods(first, STEP_S, 5)) <= 1


BURST = np.array([0.0, 4.0, 4.0, 4.0, 0.0])


def moved(at: Ints, burst: Reals, count: int = 4000) -> Reals:
    steps = at[:, None] + np.arange(len(burst))
    return np.bincount(steps.ravel(), np.tile(burst, len(at)), count).astype(np.float64)


def test_subtraction_preserves_bytes_of_other_bursts() -> None:
    rng = np.random.default_rng(2)
    own = 100 + np.cumsum(np.rint(rng.normal(60.0, 0.6, 50)).astype(np.int64))
    others = own[::3] + rng.integers(-2, 3, len(own[::3]))
    residual = moved(own, BURST) + moved(others, np.full(5, 10.0))
    rhythm = Rhythm(60.0, 0.01, BURST, own[1::7] + 1, 20.0)
    remaining = subtract_rhythm(residual, rhythm, np.array([95.0]), np.array([own[-1] + 30.0]))
    # Within a larger burst, the position may be off by one step.
    volumes = remaining[others[:, None] + np.arange(-2, 7)].sum(axis=1)
    assert volumes == pytest.approx(np.full(len(others), 50.0), abs=6.0)
    assert remaining.sum() == pytest.approx(50.0 * len(others), rel=0.02)
    # Outside the runs of the rhythm, nothing is subtracted.
    assert subtract_rhythm(residual, rhythm, np.array([3500.0]), np.array([3900.0])) == pytest.approx(residual)


def test_concurrent_runs_are_tracked_separately() -> None:
    first, second = (np.arange(start, 3000, 60) for start in (100, 127))
    residual = moved(np.concatenate([first, second]), BURST)
    residual[1000:1100] = np.nan
    rhythm = Rhythm(60.0, 0.01, BURST, first[::5] + 1, 20.0)
    remaining = subtract_rhythm(residual, rhythm, np.array([60.0, 90.0]), np.array([3010.0, 3020.0]))
    assert np.isnan(remaining).sum() == 100
    assert np.nansum(remaining) < 0.02 * np.nansum(residual)


def test_too_many_concurrent_runs_are_not_subtracted() -> None:
    residual = moved(np.arange(100, 3000, 60), BURST)
    rhythm = Rhythm(60.0, 0.01, BURST, np.array([101]), 20.0)
    run_count = RhythmParams().max_concurrent_runs + 1
    remaining = subtract_rhythm(residual, rhythm, np.full(run_count, 60.0), np.full(run_count, 3010.0))
    assert remaining is not residual
    assert remaining == pytest.approx(residual)
