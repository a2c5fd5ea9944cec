"""Constellations: two volumes that come at one distance again and again, what chance brings, and what rhythms do."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import AnyReals, Bools, Ints, Reals
from iosig.transforms.unnamed_patterns.constellations import Constellation, ConstellationParams, Pairs, neighbour_counts
from iosig.transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBursts
from tests.naive import neighbour_counts as naive

STEP_S = 10.0
#: a week
COUNT = 60_480
BESIDE = 400
NO_PERIODS = np.zeros(0)


def bursts(first: Ints, volume: Reals) -> LeftBursts:
    order = np.argsort(first, kind="stable")
    first, volume = first[order], volume[order]
    return LeftBursts(
        first, first + 3, volume, 0 * volume, np.full(len(first), 3.0), np.zeros((len(first), PROFILE_POINTS))
    )


def beside(rng: np.random.Generator, count: int = BESIDE) -> tuple[Ints, Reals]:
    """Return when bursts of chance begin, and their volumes."""
    return rng.integers(0, COUNT, count), rng.lognormal(2.5, 1.2, count)


def planted(seed: int, begun: Ints, spoilt: AnyReals | None = None) -> LeftBursts:
    """Return bursts of chance, and some of 40 and 90 that are 31 steps apart, the second ones larger by so much."""
    rng = np.random.default_rng(seed)
    first, volume = beside(rng)
    more = np.zeros(len(begun)) if spoilt is None else spoilt
    own = np.concatenate([rng.normal(40.0, 0.3, len(begun)), rng.normal(90.0, 0.7, len(begun)) + more])
    return bursts(np.concatenate([first, begun, begun + 31]), np.concatenate([volume, own]))


def taken(of: LeftBursts, periods: Reals = NO_PERIODS, which: tuple[Bools, Bools] | None = None) -> list[Constellation]:
    every = np.ones(len(of), np.bool_)
    pairs, found = Pairs(of, which or (every, every), periods, COUNT, STEP_S), []
    while (one := pairs.take()) is not None:
        found.append(one)
    return found


def at_times(seed: int, count: int = 9) -> Ints:
    return np.sort(np.random.default_rng(seed).choice(np.arange(500, COUNT - 500, 700), count, replace=False))


@pytest.mark.parametrize("seed", range(4))
def test_two_that_come_together_are_one(seed: int) -> None:
    begun = at_times(seed)
    of = planted(seed, begun)
    (one,) = taken(of)
    assert one.lag == 31
    own = np.isin(of.first[one.members], np.concatenate([begun, begun + 31]))
    assert (own.sum(), (~own).sum() <= 1) == (18, True)


def test_where_one_is_spoilt_the_other_tells_that_it_was_there() -> None:
    begun = at_times(7)
    of = planted(7, begun, np.where(np.arange(9) < 4, 0.0, [0, 0, 0, 0, 20, 55, 31, 70, 44]))
    (one,) = taken(of)
    assert np.isin(np.concatenate([begun, begun + 31]), of.first[one.members]).all()


def test_chance_brings_hardly_any() -> None:
    """By the promised rate of .01 more than three in 60 weeks are less likely than .004."""
    found = [taken(bursts(*beside(np.random.default_rng([8, draw])))) for draw in range(60)]
    assert sum(map(len, found)) <= 3


def test_a_rhythm_is_none() -> None:
    assert taken(planted(1, np.arange(500, COUNT - 500, 100))) == []
    # nor is one that lasts for some hours only, now and then
    runs = np.array([5_000, 21_000, 43_000])
    assert taken(planted(1, (runs[:, None] + 62 * np.arange(12)).ravel())) == []


def test_what_a_period_is_apart_is_the_trains() -> None:
    of = planted(2, at_times(2))
    for period in (31.0, 15.4, 10.3):
        assert taken(of, np.array([period])) == []
    assert len(taken(of, np.array([20.0]))) == 1


def test_one_of_two_is_free() -> None:
    begun = at_times(3)
    of = planted(3, begun)
    every, first = np.ones(len(of), np.bool_), np.isin(of.first, begun)
    assert len(taken(of, which=(first, every))) == 1
    assert taken(of, which=(np.zeros(len(of), np.bool_), every)) == []
    assert taken(of, which=(first, first)) == []


def test_few_are_none() -> None:
    begun = at_times(4, ConstellationParams().least_count - 1)
    assert taken(planted(4, begun)) == []
    assert taken(bursts(np.zeros(0, np.int64), np.zeros(0))) == []


@pytest.mark.parametrize("dimensions", [2, 3])
def test_neighbours_are_counted_as_one_by_one(dimensions: int) -> None:
    places = np.random.default_rng(6).normal(0.0, 2.0, (150, dimensions))
    asked = places[::3]
    assert neighbour_counts(places, asked).tolist() == naive.neighbour_counts(places.tolist(), asked.tolist())
    assert neighbour_counts(places[:0], places[:0]).tolist() == []
