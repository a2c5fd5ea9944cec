"""Lagged bursts: detection at fixed lags, false alarms, and periodic clusters."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Bools, Ints
from iosig.transforms.unattributed_patterns.lagged_bursts import (
    LaggedBursts,
    LagParams,
    find_lagged_bursts,
    select_supported,
)
from iosig.transforms.unattributed_patterns.residual_bursts import PROFILE_POINTS, ResidualBursts

STEP_S = 10.0
COUNT = 60_000


def bursts(first: Ints) -> ResidualBursts:
    volume = np.random.default_rng(2).lognormal(3.0, 0.3, len(first))
    return ResidualBursts(
        first, first + 5, volume, 0 * volume, np.full(len(first), 5.0), np.zeros((len(first), PROFILE_POINTS))
    )


def drawn(seed: int, lags: tuple[int, ...]) -> tuple[ResidualBursts, Ints, Bools]:
    """Bursts including lagged bursts of ten bursts, the indices of the ten, and the mask of free bursts."""
    rng = np.random.default_rng(seed)
    own = np.sort(rng.choice(np.arange(500, COUNT - 500, 900), 10, replace=False))
    follows = [own[:8] + lag + rng.integers(-1, 2, 8) for lag in lags]
    first = np.unique(np.concatenate([own, *follows, rng.integers(0, COUNT, 150)]))
    return bursts(first), np.searchsorted(first, own), np.ones(len(first), np.bool_)


@pytest.mark.parametrize("seed", range(4))
def test_bursts_at_each_lag_are_found(seed: int) -> None:
    all_bursts, members, is_free = drawn(seed, (30, -70))
    results = {round(result.lag / 10): result for result in find_lagged_bursts(all_bursts, members, is_free, 5, STEP_S)}
    assert set(results) == {3, -7}
    for result in results.values():
        assert set(members[:8]) <= set(result.leads)
        assert len(result.follows) >= 8


@pytest.mark.parametrize("seed", range(20))
def test_random_bursts_have_no_fixed_lag(seed: int) -> None:
    assert find_lagged_bursts(*drawn(seed, ()), 5, STEP_S) == []


def test_assigned_or_small_bursts_are_ignored() -> None:
    all_bursts, members, is_free = drawn(1, (30,))
    assert find_lagged_bursts(all_bursts, members, np.isin(np.arange(len(all_bursts)), members), 5, STEP_S) == []
    all_bursts.volume_bytes[np.setdiff1d(np.arange(len(all_bursts)), members)] = 1.0
    assert find_lagged_bursts(all_bursts, members, is_free, 5, STEP_S) == []


def test_unsupported_members_are_kept_if_most_are_supported() -> None:
    members, params = np.arange(10), LagParams()
    for count, left in ((6, 10), (5, 5)):
        results = [LaggedBursts(3.0, members[:count], members[:count] + 20)]
        assert len(select_supported(members, results, params)) == left
    assert not len(select_supported(members, [], params))


@pytest.mark.parametrize("period", [2, 5, 200])
def test_next_appearance_of_periodic_cluster_is_no_lagged_burst(period: int) -> None:
    first = 1000 + period * np.arange(40)
    all_bursts = bursts(np.unique(np.concatenate([first, first[::3] + period // 5])))
    members, is_free = np.flatnonzero(np.isin(all_bursts.first, first)), np.ones(len(all_bursts), np.bool_)
    results = find_lagged_bursts(all_bursts, members, is_free, 5, STEP_S)
    assert all(abs(result.lag) < period for result in results)
    assert bool(results) == (period == 200)
