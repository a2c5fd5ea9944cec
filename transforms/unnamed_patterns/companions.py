"""Companions: bursts that come at one distance from those of a kind, whatever they move.

Where another's burst falls into one, its volume is another, but it begins when it was meant to. So bursts that come
with a kind's are sought by when they begin alone: at some distance from a kind's bursts there are more than such bursts
are beside them at any, the most unlikely distance first (a scan statistic, as of `alike`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, places_of
from iosig.transforms.unnamed_patterns.left_bursts import LeftBursts

_Steps = TypeVar("_Steps", float, Reals)


@dataclass(frozen=True, slots=True)
class CompanionParams:
    """What comes together; the values are ours, chosen on simulated sites (seeds 1 to 3).

    longest_s: bursts of one appearance are less apart. lag_ratio, lag_s: distances that are one differ by less than
    that share of them and so many seconds. least_count: so many bursts of a kind have a companion.
    false_alarm_probability: that any burst of chance is one, all distances and kinds counted. volume_ratio: companions
    move such a share of what the kind's bursts do, at least. most_ratio: where so many of a kind's bursts have one, the
    others are of the pattern, too. most_own: where more of what comes at a distance is of the kind itself, it is the
    kind's rhythm.
    """

    longest_s: float = 3600.0
    lag_ratio: float = 0.03
    lag_s: float = 15.0
    least_count: int = 3
    false_alarm_probability: float = 0.01
    volume_ratio: float = 0.25
    most_ratio: float = 0.6
    most_own: float = 0.25


@dataclass(frozen=True, slots=True)
class Companions:
    """Bursts that come with a kind's: so many steps after them, or before them where that is below 0.

    leads: those of the kind that have one; follows: the companions.
    """

    lag: float
    leads: Ints
    follows: Ints


def companions(
    bursts: LeftBursts,
    members: Ints,
    is_free: Bools,
    kind_count: int,
    interval_s: float,
    params: CompanionParams | None = None,
) -> list[Companions]:
    """Return what comes with a kind's bursts, at each distance, and before the next of them where these have a rhythm.

    is_free (bursts): which may be. kind_count: so many kinds are asked.
    """
    params = params or CompanionParams()
    is_free = is_free & (bursts.volume_bytes >= params.volume_ratio * np.median(bursts.volume_bytes[members]))
    is_free[members] = True
    found: list[Companions] = []
    longest = params.longest_s / interval_s
    while one := _likeliest(bursts.first, members, is_free, (kind_count, longest), interval_s, params):
        if np.isin(one.follows, members).mean() > params.most_own:
            # a rhythm: what comes so late is of the next appearance
            longest = abs(one.lag) - 2.0 * slack(abs(one.lag), interval_s, params)
            continue
        found.append(one)
        is_free[one.follows] = False
    return [one for one in found if abs(one.lag) <= longest]


def slack(lag: _Steps, interval_s: float, params: CompanionParams) -> _Steps:
    """Return by how many steps distances differ that are one."""
    return params.lag_ratio * lag + params.lag_s / interval_s


def borne_out(members: Ints, found: list[Companions], params: CompanionParams) -> Ints:
    """Return those of a kind's bursts that are the pattern's: all where most have companions, else those that have."""
    have = np.unique(np.concatenate([members[:0], *(one.leads for one in found)]))
    return members if len(have) >= params.most_ratio * len(members) else have


def _likeliest(
    first: Ints, members: Ints, is_free: Bools, tried: tuple[int, float], interval_s: float, params: CompanionParams
) -> Companions | None:
    """Return what comes at the distance that is least likely by chance; None where all may be.

    tried: how many kinds are asked, and how many steps are between bursts, at most.
    """
    others, (kind_count, longest) = np.flatnonzero(is_free), tried
    if longest <= 0:
        return None
    lead, follow = _pairs(first[members], first[others], longest)
    lags = (first[others[follow]] - first[members[lead]]).astype(np.float64)
    if len(lags) < params.least_count:
        return None
    wide = 2.0 * slack(np.abs(lags), interval_s, params)
    after = np.searchsorted(lags, lags + wide, side="right")
    count = (after - np.arange(len(lags))).astype(np.float64)
    expected = (wide + 1.0) * len(lags) / (2.0 * longest)
    # Chernoff's bound of the Poisson tail; places overlap, so twice as many are tried as lie side by side
    tail = np.where(count > expected, count - expected - count * np.log(count / expected), 0.0)
    chance = tail + np.log(kind_count * 4.0 * longest / (wide + 1.0))
    at = int(chance.argmin())
    near = slice(at, int(after[at]))
    leads, follows = np.unique(lead[near]), np.unique(follow[near])
    is_few = min(len(leads), len(follows)) < params.least_count
    if is_few or chance[at] > math.log(params.false_alarm_probability):
        return None
    return Companions(float(np.median(lags[near])), members[leads], others[follows])


def _pairs(begun: Ints, places: Ints, longest: float) -> tuple[Ints, Ints]:
    """Return which of some begins and places are so near each other, but not the same, in order of their distances."""
    low, high = (np.searchsorted(places, begun + way) for way in (-longest, longest))
    one, other = np.repeat(np.arange(len(begun)), high - low), places_of(low, high - low)
    lags = places[other] - begun[one]
    order = np.argsort(lags, kind="stable")
    order = order[lags[order] != 0]
    return one[order], other[order]
