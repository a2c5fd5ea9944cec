"""Recurring pairs of bursts: detection, contaminated bursts, false alarms, and periodic bursts, which are no pairs."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import AnyReals, Bools, Ints, Reals
from iosig.transforms.unattributed_patterns.burst_pairs import BurstPairParams, BurstPairs, PairScan, count_neighbors
from iosig.transforms.unattributed_patterns.residual_bursts import PROFILE_POINTS, ResidualBursts
from tests.naive import neighbor_counts as naive

STEP_S = 10.0
#: A week of steps.
COUNT = 60_480
BACKGROUND_COUNT = 400
NO_PERIODS = np.zeros(0)


def bursts(first: Ints, volume: Reals) -> ResidualBursts:
    order = np.argsort(first, kind="stable")
    first, volume = first[order], volume[order]
    return ResidualBursts(
        first, first + 3, volume, 0 * volume, np.full(len(first), 3.0), np.zeros((len(first), PROFILE_POINTS))
    )


def background(rng: np.random.Generator, count: int = BACKGROUND_COUNT) -> tuple[Ints, Reals]:
    """Start steps and volumes of random bursts."""
    return rng.integers(0, COUNT, count), rng.lognormal(2.5, 1.2, count)


def planted(seed: int, begun: Ints, added: AnyReals | None = None) -> ResidualBursts:
    """Random bursts, and pairs with volumes 40 and 90 + `added`, 31 steps apart."""
    rng = np.random.default_rng(seed)
    first, volume = background(rng)
    more = np.zeros(len(begun)) if added is None else added
    own = np.concatenate([rng.normal(40.0, 0.3, len(begun)), rng.normal(90.0, 0.7, len(begun)) + more])
    return bursts(np.concatenate([first, begun, begun + 31]), np.concatenate([volume, own]))


def find_all(
    all_bursts: ResidualBursts, periods: Reals = NO_PERIODS, which: tuple[Bools, Bools] | None = None
) -> list[BurstPairs]:
    all_true = np.ones(len(all_bursts), np.bool_)
    scan, results = PairScan(all_bursts, which or (all_true, all_true), periods, COUNT, STEP_S), []
    while (pair := scan.pop()) is not None:
        results.append(pair)
    return results


def at_times(seed: int, count: int = 9) -> Ints:
    return np.sort(np.random.default_rng(seed).choice(np.arange(500, COUNT - 500, 700), count, replace=False))


@pytest.mark.parametrize("seed", range(4))
def test_recurring_pair_is_found(seed: int) -> None:
    begun = at_times(seed)
    all_bursts = planted(seed, begun)
    (pair,) = find_all(all_bursts)
    assert pair.lag == 31
    own = np.isin(all_bursts.first[pair.members], np.concatenate([begun, begun + 31]))
    assert (own.sum(), (~own).sum() <= 1) == (18, True)


def test_appearances_with_one_contaminated_burst_are_added() -> None:
    begun = at_times(7)
    all_bursts = planted(7, begun, np.where(np.arange(9) < 4, 0.0, [0, 0, 0, 0, 20, 55, 31, 70, 44]))
    (pair,) = find_all(all_bursts)
    assert np.isin(np.concatenate([begun, begun + 31]), all_bursts.first[pair.members]).all()


def test_false_alarms_are_within_the_promised_rate() -> None:
    """At the promised rate of 0.01, more than three in 60 weeks have a probability below 0.004."""
    results = [find_all(bursts(*background(np.random.default_rng([8, draw])))) for draw in range(60)]
    assert sum(map(len, results)) <= 3


def test_periodic_bursts_are_no_pairs() -> None:
    assert find_all(planted(1, np.arange(500, COUNT - 500, 100))) == []
    # Bursts that are periodic for some hours at a time are no pairs either.
    runs = np.array([5_000, 21_000, 43_000])
    assert find_all(planted(1, (runs[:, None] + 62 * np.arange(12)).ravel())) == []


def test_bursts_one_period_of_a_train_apart_are_no_pair() -> None:
    all_bursts = planted(2, at_times(2))
    for period in (31.0, 15.4, 10.3):
        assert find_all(all_bursts, np.array([period])) == []
    assert len(find_all(all_bursts, np.array([20.0]))) == 1


def test_at_least_one_burst_of_a_pair_is_free() -> None:
    begun = at_times(3)
    all_bursts = planted(3, begun)
    all_true, first = np.ones(len(all_bursts), np.bool_), np.isin(all_bursts.first, begun)
    assert len(find_all(all_bursts, which=(first, all_true))) == 1
    assert find_all(all_bursts, which=(np.zeros(len(all_bursts), np.bool_), all_true)) == []
    assert find_all(all_bursts, which=(first, first)) == []


def test_too_few_pairs_are_not_found() -> None:
    begun = at_times(4, BurstPairParams().min_count - 1)
    assert find_all(planted(4, begun)) == []
    assert find_all(bursts(np.zeros(0, np.int64), np.zeros(0))) == []


@pytest.mark.parametrize("dimensions", [2, 3])
def test_neighbor_counts_match_naive_implementation(dimensions: int) -> None:
    points = np.random.default_rng(6).normal(0.0, 2.0, (150, dimensions))
    queries = points[::3]
    assert count_neighbors(points, queries).tolist() == naive.neighbor_counts(points.tolist(), queries.tolist())
    assert count_neighbors(points[:0], points[:0]).tolist() == []
