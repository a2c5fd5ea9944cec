"""Find bursts of any volume that follow those of a cluster at a fixed lag.

A burst that overlaps another application's has a different volume but still begins on time. Related bursts are
therefore found by start time alone: more bursts occur at their lag than at other lags. The most significant lag is
removed before the next scan (scan statistic, as in `clustering`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, places_of
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBursts

_Steps = TypeVar("_Steps", float, Reals)


@dataclass(frozen=True, slots=True)
class LagParams:
    """Thresholds of the lag scan. The defaults were chosen on simulated sites (seeds 1 to 3)."""

    #: maximum distance between bursts of one appearance [s]
    max_lag_s: float = 3600.0
    #: tolerance of a lag: this fraction of the lag plus `tolerance_s` [s]
    tolerance_ratio: float = 0.03
    tolerance_s: float = 15.0
    #: minimum number of a cluster's bursts with a lagged burst
    min_count: int = 3
    #: probability of one or more false lags, over all lags and clusters
    false_alarm_probability: float = 0.01
    #: minimum volume of a lagged burst, relative to the cluster's median
    min_volume_ratio: float = 0.25
    #: fraction of a cluster's bursts with a lagged burst above which the other bursts belong to the pattern as well
    min_support_ratio: float = 0.6
    #: fraction of the bursts at a lag that belong to the cluster itself above which the lag is the cluster's period
    max_own_ratio: float = 0.25


@dataclass(frozen=True, slots=True)
class LaggedBursts:
    """Pairs of bursts at one lag in steps (negative: before): the cluster's `leads` and their `follows`."""

    lag: float
    leads: Ints
    follows: Ints


def find_lagged_bursts(
    bursts: ResidualBursts,
    members: Ints,
    is_free: Bools,
    cluster_count: int,
    interval_s: float,
    params: LagParams | None = None,
) -> list[LaggedBursts]:
    """Find all lags at which bursts follow or precede those of a cluster.

    Parameters
    ----------
    bursts : ResidualBursts
        n bursts.
    members : Ints
        Indices of the cluster's bursts.
    is_free : Bools, shape (n,)
        Bursts that may follow.
    cluster_count : int
        Number of clusters scanned, for the multiple-testing correction.
    interval_s : float
        Length of a step [s].
    params : LagParams, optional
        Thresholds.

    Returns
    -------
    list of LaggedBursts
        Lags and their bursts, most significant first. If the cluster is periodic, lags beyond its period are left out,
        since their bursts belong to the next appearance.

    """
    params = params or LagParams()
    is_free = is_free & (bursts.volume_bytes >= params.min_volume_ratio * np.median(bursts.volume_bytes[members]))
    is_free[members] = True
    results: list[LaggedBursts] = []
    max_lag = params.max_lag_s / interval_s
    while best := _scan_lags(bursts.first, members, is_free, (cluster_count, max_lag), interval_s, params):
        if np.isin(best.follows, members).mean() > params.max_own_ratio:
            # beyond the cluster's own period, a burst belongs to the next appearance
            max_lag = abs(best.lag) - 2.0 * lag_tolerance(abs(best.lag), interval_s, params)
            continue
        results.append(best)
        is_free[best.follows] = False
    return [result for result in results if abs(result.lag) <= max_lag]


def lag_tolerance(lag: _Steps, interval_s: float, params: LagParams) -> _Steps:
    """Maximum difference between equal lags, in steps."""
    return params.tolerance_ratio * lag + params.tolerance_s / interval_s


def select_supported(members: Ints, lagged: list[LaggedBursts], params: LagParams) -> Ints:
    """Keep all members if most have a lagged burst, otherwise only the members with one."""
    supported = np.unique(np.concatenate([members[:0], *(link.leads for link in lagged)]))
    return members if len(supported) >= params.min_support_ratio * len(members) else supported


def _scan_lags(
    first: Ints, members: Ints, is_free: Bools, scope: tuple[int, float], interval_s: float, params: LagParams
) -> LaggedBursts | None:
    """Find the bursts at the most significant lag; None if no lag is significant.

    `scope` is the number of clusters scanned and the maximum lag in steps.
    """
    free_bursts, (cluster_count, max_lag) = np.flatnonzero(is_free), scope
    if max_lag <= 0:
        return None
    lead, follow = _find_pairs(first[members], first[free_bursts], max_lag)
    lags = (first[free_bursts[follow]] - first[members[lead]]).astype(np.float64)
    if len(lags) < params.min_count:
        return None
    window = 2.0 * lag_tolerance(np.abs(lags), interval_s, params)
    after = np.searchsorted(lags, lags + window, side="right")
    count = (after - np.arange(len(lags))).astype(np.float64)
    expected = (window + 1.0) * len(lags) / (2.0 * max_lag)
    # Chernoff's bound of the Poisson tail; windows overlap, hence twice the number of disjoint windows
    log_tail = np.where(count > expected, count - expected - count * np.log(count / expected), 0.0)
    log_p = log_tail + np.log(cluster_count * 4.0 * max_lag / (window + 1.0))
    best = int(log_p.argmin())
    best_window = slice(best, int(after[best]))
    leads, follows = np.unique(lead[best_window]), np.unique(follow[best_window])
    is_few = min(len(leads), len(follows)) < params.min_count
    if is_few or log_p[best] > math.log(params.false_alarm_probability):
        return None
    return LaggedBursts(float(np.median(lags[best_window])), members[leads], free_bursts[follows])


def _find_pairs(leads: Ints, follows: Ints, max_lag: float) -> tuple[Ints, Ints]:
    """Find pairs of different start times within the maximum lag, sorted by lag."""
    low, high = (np.searchsorted(follows, leads + shift) for shift in (-max_lag, max_lag))
    lead, follow = np.repeat(np.arange(len(leads)), high - low), places_of(low, high - low)
    lags = follows[follow] - leads[lead]
    order = np.argsort(lags, kind="stable")
    order = order[lags[order] != 0]
    return lead[order], follow[order]
