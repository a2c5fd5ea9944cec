"""Companions: what comes at one distance from a kind's bursts, whatever it moves, and what chance brings."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Bools, Ints
from iosig.transforms.unnamed_patterns.companions import CompanionParams, Companions, borne_out, companions
from iosig.transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBursts

STEP_S = 10.0
COUNT = 60_000


def bursts(first: Ints) -> LeftBursts:
    volume = np.random.default_rng(2).lognormal(3.0, 0.3, len(first))
    return LeftBursts(
        first, first + 5, volume, 0 * volume, np.full(len(first), 5.0), np.zeros((len(first), PROFILE_POINTS))
    )


def drawn(seed: int, lags: tuple[int, ...]) -> tuple[LeftBursts, Ints, Bools]:
    """Return bursts, the places of ten that are alike, and which others are free."""
    rng = np.random.default_rng(seed)
    own = np.sort(rng.choice(np.arange(500, COUNT - 500, 900), 10, replace=False))
    follows = [own[:8] + lag + rng.integers(-1, 2, 8) for lag in lags]
    first = np.unique(np.concatenate([own, *follows, rng.integers(0, COUNT, 150)]))
    return bursts(first), np.searchsorted(first, own), np.ones(len(first), np.bool_)


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_at_one_distance_is_found_at_each(seed: int) -> None:
    of, members, is_free = drawn(seed, (30, -70))
    found = {round(one.lag / 10): one for one in companions(of, members, is_free, 5, STEP_S)}
    assert set(found) == {3, -7}
    for one in found.values():
        assert set(members[:8]) <= set(one.leads)
        assert len(one.follows) >= 8


@pytest.mark.parametrize("seed", range(20))
def test_chance_brings_none(seed: int) -> None:
    assert companions(*drawn(seed, ()), 5, STEP_S) == []


def test_what_is_not_free_or_small_is_no_companion() -> None:
    of, members, is_free = drawn(1, (30,))
    assert companions(of, members, np.isin(np.arange(len(of)), members), 5, STEP_S) == []
    of.volume_bytes[np.setdiff1d(np.arange(len(of)), members)] = 1.0
    assert companions(of, members, is_free, 5, STEP_S) == []


def test_bursts_without_companions_stay_where_most_have_one() -> None:
    members, params = np.arange(10), CompanionParams()
    for count, left in ((6, 10), (5, 5)):
        found = [Companions(3.0, members[:count], members[:count] + 20)]
        assert len(borne_out(members, found, params)) == left
    assert not len(borne_out(members, [], params))


@pytest.mark.parametrize("every", [2, 5, 200])
def test_the_next_appearance_of_a_rhythm_is_no_companion(every: int) -> None:
    own = 1000 + every * np.arange(40)
    of = bursts(np.unique(np.concatenate([own, own[::3] + every // 5])))
    found = companions(of, np.flatnonzero(np.isin(of.first, own)), np.ones(len(of), np.bool_), 5, STEP_S)
    assert all(abs(one.lag) < every for one in found)
    assert bool(found) == (every == 200)
