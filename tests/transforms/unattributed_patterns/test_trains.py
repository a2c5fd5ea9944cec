"""Trains are periodic chains; chance, logged runs and absent traffic reject them."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.unattributed_patterns.cooccurrence import Runs
from iosig.transforms.unattributed_patterns.residual_bursts import PROFILE_POINTS, ResidualBursts
from iosig.transforms.unattributed_patterns.trains import Train, find_train

STEP_S, COUNT = 5.0, 120_000
NO_RUNS = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
#: permanent traffic
BUSY = np.full(COUNT, 1000.0)


def bursts(first: Ints) -> ResidualBursts:
    count = len(first)
    return ResidualBursts(
        first, first + 6, np.full(count, 30.0), np.zeros(count), np.full(count, 5.0), np.ones((count, PROFILE_POINTS))
    )


def search(first: Ints, runs: Runs = NO_RUNS, residual: Reals = BUSY) -> Train | None:
    return find_train(bursts(first), residual, runs, STEP_S)


def draw_train(period: float, seen: float, seed: int, wander: float = 0.006) -> Ints:
    """Start steps of the observed share of a train with a drifting phase: each delay shifts all later bursts."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(period * rng.normal(1.0, wander, int(0.95 * COUNT / period)))
    return np.rint(at[rng.random(len(at)) < seen]).astype(np.int64)


@pytest.mark.parametrize(("period", "seen"), [(120.0, 0.15), (180.0, 0.2), (360.0, 0.4), (720.0, 0.8)])
@pytest.mark.parametrize("wander", [0.003, 0.012])
def test_train_is_separated_from_bursts_of_equal_volume(period: float, seen: float, wander: float) -> None:
    own = draw_train(period, seen, 3, wander)
    others = np.random.default_rng(4).integers(0, COUNT - 10, 50)
    first = np.unique(np.concatenate([own, others]))
    train = search(first)
    assert train is not None
    assert train.period == pytest.approx(period, rel=0.02)
    assert train.p_value < 0.01
    assert np.isin(first[train.members], own).mean() > 0.9
    assert np.isin(own, first[train.members]).mean() > 0.6


def test_false_alarms_are_within_the_promised_rate() -> None:
    draws = [np.unique(np.random.default_rng(seed).integers(0, COUNT - 10, 15 + seed // 4)) for seed in range(200)]
    # The bound of 1 % holds for the sum over all chains, so the actual rate is lower.
    assert sum(search(first) is not None for first in draws) <= 2


def draw_periodic_runs(seed: int) -> tuple[Ints, Runs]:
    """Bursts of an application that runs nearly always and is periodic within each run, and its runs."""
    rng = np.random.default_rng(seed)
    started = np.arange(0.0, COUNT - 4000, 4000) + rng.uniform(0, 300, COUNT // 4000 - 1)
    first = (started[:, None] + 120.0 * np.arange(1, 31)).ravel()
    runs = Runs(np.zeros(len(started), np.int64), started, started + 3640.0)
    return np.rint(first).astype(np.int64), runs


@pytest.mark.parametrize("seed", range(5))
def test_rhythm_of_logged_runs_is_no_train(seed: int) -> None:
    first, runs = draw_periodic_runs(seed)
    assert search(first) is not None
    assert search(first, runs) is None


def test_train_is_found_despite_logged_runs() -> None:
    first, runs = draw_periodic_runs(1)
    own = np.setdiff1d(draw_train(300.0, 0.5, 6), first)
    own = own[np.abs(own[:, None] - first).min(axis=1) > 8]
    # The bursts of the runs have other volumes.
    train = search(own, runs)
    assert train is not None
    assert train.period == pytest.approx(300.0, rel=0.02)


def test_train_without_traffic_at_due_times_is_rejected() -> None:
    own = draw_train(180.0, 0.3, 3)
    residual = np.zeros(COUNT)
    residual[own[:, None] + np.arange(6)] = 5.0
    assert search(own) is not None
    assert search(own, residual=residual) is None
    # Unmeasured times do not count.
    assert search(own, residual=np.where(residual > 0, residual, np.nan)) is not None


@pytest.mark.parametrize("count", [0, 1, 5])
def test_few_bursts_are_no_train(count: int) -> None:
    assert search(120 * np.arange(count)) is None
