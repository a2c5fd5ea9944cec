"""Trains: chains that keep a beat, and what makes none: chance, logged runs, places where nothing flows."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.unnamed_patterns.beside import Runs
from iosig.transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBursts
from iosig.transforms.unnamed_patterns.trains import Train, train_of

STEP_S, COUNT = 5.0, 120_000
NOBODY = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
#: something flows always
BUSY = np.full(COUNT, 1000.0)


def bursts(first: Ints) -> LeftBursts:
    count = len(first)
    return LeftBursts(
        first, first + 6, np.full(count, 30.0), np.zeros(count), np.full(count, 5.0), np.ones((count, PROFILE_POINTS))
    )


def found(first: Ints, runs: Runs = NOBODY, left: Reals = BUSY) -> Train | None:
    return train_of(bursts(first), left, runs, STEP_S)


def beat(period: float, seen: float, seed: int, wander: float = 0.006) -> Ints:
    """Return when a train's bursts begin that are seen: it wanders, since what delays one delays all that follow."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(period * rng.normal(1.0, wander, int(0.95 * COUNT / period)))
    return np.rint(at[rng.random(len(at)) < seen]).astype(np.int64)


@pytest.mark.parametrize(("period", "seen"), [(120.0, 0.15), (180.0, 0.2), (360.0, 0.4), (720.0, 0.8)])
@pytest.mark.parametrize("wander", [0.003, 0.012])
def test_a_train_is_told_from_others_of_its_volume(period: float, seen: float, wander: float) -> None:
    own = beat(period, seen, 3, wander)
    others = np.random.default_rng(4).integers(0, COUNT - 10, 50)
    first = np.unique(np.concatenate([own, others]))
    one = found(first)
    assert one is not None
    assert one.period == pytest.approx(period, rel=0.02)
    assert one.chance < 0.01
    assert np.isin(first[one.members], own).mean() > 0.9
    assert np.isin(own, first[one.members]).mean() > 0.6


def test_chance_is_a_train_at_the_promised_rate() -> None:
    draws = [np.unique(np.random.default_rng(seed).integers(0, COUNT - 10, 15 + seed // 4)) for seed in range(200)]
    # one of a hundred is promised, and less is kept: what is bounded is the sum over all chains
    assert sum(found(first) is not None for first in draws) <= 2


def runs_that_keep_a_beat(seed: int) -> tuple[Ints, Runs]:
    """Return bursts of an application that runs nearly always and keeps a beat in each of its runs, and these."""
    rng = np.random.default_rng(seed)
    started = np.arange(0.0, COUNT - 4000, 4000) + rng.uniform(0, 300, COUNT // 4000 - 1)
    first = (started[:, None] + 120.0 * np.arange(1, 31)).ravel()
    runs = Runs(np.zeros(len(started), np.int64), started, started + 3640.0)
    return np.rint(first).astype(np.int64), runs


@pytest.mark.parametrize("seed", range(5))
def test_the_beat_of_logged_runs_is_no_train(seed: int) -> None:
    first, runs = runs_that_keep_a_beat(seed)
    assert found(first) is not None
    assert found(first, runs) is None


def test_a_train_beside_logged_runs_is_one() -> None:
    first, runs = runs_that_keep_a_beat(1)
    own = np.setdiff1d(beat(300.0, 0.5, 6), first)
    own = own[np.abs(own[:, None] - first).min(axis=1) > 8]
    # those of the runs are not of its volume
    one = found(own, runs)
    assert one is not None
    assert one.period == pytest.approx(300.0, rel=0.02)


def test_a_train_is_none_where_nothing_flows_when_it_is_due() -> None:
    own = beat(180.0, 0.3, 3)
    left = np.zeros(COUNT)
    left[own[:, None] + np.arange(6)] = 5.0
    assert found(own) is not None
    assert found(own, left=left) is None
    # nobody knows what was there
    assert found(own, left=np.where(left > 0, left, np.nan)) is not None


@pytest.mark.parametrize("count", [0, 1, 5])
def test_few_bursts_are_none(count: int) -> None:
    assert found(120 * np.arange(count)) is None
