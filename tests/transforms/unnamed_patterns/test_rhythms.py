"""Rhythms of logged runs: their periods, what is no rhythm of theirs, and what is left without them."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.unnamed_patterns.rhythms import Rhythm, RhythmParams, likeliest_periods, period_of, without

STEP_S = 5.0


def in_runs(period: float, seed: int, seen: float = 0.5) -> tuple[Ints, Ints]:
    """Return when bursts begin that come at even distances in ten runs, of which so many are seen, and their runs."""
    rng = np.random.default_rng(seed)
    begun, run = [], []
    for number, started in enumerate(np.sort(rng.uniform(0, 100_000, 10)).tolist()):
        at = started + np.cumsum(period * rng.normal(1.0, 0.01, 20))
        begun.append(at[rng.random(20) < seen])
        run.append(np.full(len(begun[-1]), number))
    return np.rint(np.concatenate(begun)).astype(np.int64), np.concatenate(run)


@pytest.mark.parametrize("period", [18.0, 60.0, 240.0, 720.0])
@pytest.mark.parametrize("seen", [0.25, 0.5, 1.0])
def test_runs_that_keep_a_beat_have_its_period(period: float, seen: float) -> None:
    told = period_of(*in_runs(period, 5, seen), STEP_S)
    assert told is not None
    found, spread, evidence = told
    assert found == pytest.approx(period, rel=0.02)
    assert 0.004 <= spread <= 0.02
    assert evidence > 8.0


def test_a_beat_that_goes_on_between_runs_is_not_theirs() -> None:
    first = np.arange(0, 100_000, 240)
    run = np.where(np.arange(len(first)) % 40 < 20, np.arange(len(first)) // 40, -1)
    assert period_of(first, run, STEP_S) is None


def test_a_beat_in_two_runs_is_too_few() -> None:
    first, run = in_runs(60.0, 5, 1.0)
    assert period_of(first[run < 2], run[run < 2], STEP_S) is None


def test_chance_has_a_rhythm_seldom() -> None:
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first = np.sort(rng.integers(0, 120_000, 100))
        found += period_of(first, first // 4000, STEP_S) is not None
    assert found <= 4


@pytest.mark.parametrize("first", [np.zeros(0, np.int64), np.array([7]), np.array([7, 7]), np.array([7, 9])])
def test_few_bursts_have_none(first: Ints) -> None:
    assert period_of(first, np.zeros(len(first), np.int64), STEP_S) is None
    assert len(likeliest_periods(first, STEP_S, 5)) <= 1


BURST = np.array([0.0, 4.0, 4.0, 4.0, 0.0])


def moved(at: Ints, burst: Reals, count: int = 4000) -> Reals:
    steps = at[:, None] + np.arange(len(burst))
    return np.bincount(steps.ravel(), np.tile(burst, len(at)), count).astype(np.float64)


def test_without_a_rhythm_others_keep_their_bytes() -> None:
    rng = np.random.default_rng(2)
    own = 100 + np.cumsum(np.rint(rng.normal(60.0, 0.6, 50)).astype(np.int64))
    others = own[::3] + rng.integers(-2, 3, len(own[::3]))
    left = moved(own, BURST) + moved(others, np.full(5, 10.0))
    one = Rhythm(60.0, 0.01, BURST, own[1::7] + 1, 20.0)
    found = without(left, one, np.array([95.0]), np.array([own[-1] + 30.0]))
    # where a burst lies in a larger one it may be told a step off
    volumes = found[others[:, None] + np.arange(-2, 7)].sum(axis=1)
    assert volumes == pytest.approx(np.full(len(others), 50.0), abs=6.0)
    assert found.sum() == pytest.approx(50.0 * len(others), rel=0.02)
    # the rhythm is in its run alone
    assert without(left, one, np.array([3500.0]), np.array([3900.0])) == pytest.approx(left)


def test_two_runs_at_once_have_each_its_own() -> None:
    first, second = (np.arange(start, 3000, 60) for start in (100, 127))
    left = moved(np.concatenate([first, second]), BURST)
    left[1000:1100] = np.nan
    one = Rhythm(60.0, 0.01, BURST, first[::5] + 1, 20.0)
    found = without(left, one, np.array([60.0, 90.0]), np.array([3010.0, 3020.0]))
    assert np.isnan(found).sum() == 100
    assert np.nansum(found) < 0.02 * np.nansum(left)


def test_of_too_many_runs_at_once_none_is_followed() -> None:
    left = moved(np.arange(100, 3000, 60), BURST)
    one = Rhythm(60.0, 0.01, BURST, np.array([101]), 20.0)
    deep = RhythmParams().most_deep + 1
    found = without(left, one, np.full(deep, 60.0), np.full(deep, 3010.0))
    assert found is not left
    assert found == pytest.approx(left)
