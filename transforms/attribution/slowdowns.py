"""Slowdowns: how much longer the bursts of runs took than alone, and whose bytes stood there meanwhile.

Others make a burst late and slow and take no byte from it (IOSI: Liu et al., FAST'14, section 4). Traffic alone does
not tell how slow: where two bursts meet, bytes of either could be the other's. But how late a run was in the end the
job log tells to the second. A burst is crowded for as long as others' bytes would have taken at its own pace; by how
many seconds runs are late for each second in which they were crowded is what the file system makes of it in that time:
a robust regression (Huber, "Robust Estimation of a Location Parameter", 1964, doi:10.1214/aoms/1177703732) over its
runs, each held against others of its application. That times how long a burst was crowded is how much longer it took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals

#: pairs of a burst and a run that are looked through at a time
_MOST_PAIRS = 1 << 22
#: rounds of a robust regression; and the least that runs are taken to differ by, in deviations
_MOST_ROUNDS, _LEAST_SCALE = 20, 0.25
#: a run draws all but so much of the line to itself, at most
_LEAST_FREE = 0.1


@dataclass(frozen=True, slots=True)
class SlowdownParams:
    """How slowdowns are told; all were chosen on simulated sites, other than those that they are shown on.

    most_crowded: others count as no more than so many times the burst itself. least_runs: an application with fewer
    runs tells nothing of how late they are. short_ratio: a run that is shorter than one alone by more was stopped;
    most_scatter_ratio: an application whose runs differ by more, from quarter to quarter, lasts as long as it likes.
    drift_ratio: what runs differ by anyway, of what they take. huber: from so many deviations on a run counts less.
    prior_error: how far from nothing the slowing may be expected to be. burst_error, step_error: what a burst's
    slowdown may differ by from what crowding says: as a share of it, and in steps. range_errors: a range is so many
    deviations wide to either side.
    """

    most_crowded: float = 3.0
    least_runs: int = 4
    short_ratio: float = 0.08
    most_scatter_ratio: float = 0.08
    drift_ratio: float = 0.02
    huber: float = 1.5
    prior_error: float = 0.5
    least_ratio: float = 0.1
    sure_errors: float = 2.0
    burst_error: float = 0.6
    step_error: float = 1.0
    range_errors: float = 1.28


@dataclass(frozen=True, slots=True)
class Slowing:
    """By how many seconds runs are late for each in which they were crowded, and the error of that."""

    ratio: float
    error: float

    def is_sure(self, params: SlowdownParams) -> bool:
        """Return whether crowding slows for sure, by more than what does not matter."""
        return self.ratio - params.sure_errors * self.error > params.least_ratio


def crowded(
    alone: Reals, volume_bytes: Reals, took: Reals, others_bytes: Reals, params: SlowdownParams | None = None
) -> Reals:
    """Return for how long bursts (m) were crowded, in the unit of what they take alone.

    alone, volume_bytes (m): what a burst takes alone, and moves; took (m): how long it was there; others_bytes (m):
    what others moved meanwhile, in all directions.
    """
    most = (params or SlowdownParams()).most_crowded
    paces = others_bytes / np.maximum(took, 1e-9) / np.maximum(volume_bytes / alone, 1e-9)
    found: Reals = alone * np.clip(paces, 0.0, most)
    return found


def slowing(
    late: Reals, crowded: Reals, duration: Reals, application: Ints, params: SlowdownParams | None = None
) -> Slowing:
    """Return how much crowding slows runs (n) of a file system.

    late: how much longer each lasted than one alone; crowded: for how long it was; duration: of one alone; all in one
    unit. application: whose each is.
    """
    params = params or SlowdownParams()
    is_usable = late > -params.short_ratio * duration
    for own in np.unique(application[is_usable]).tolist():
        runs = np.flatnonzero(is_usable & (application == own))
        scatter = np.subtract(*np.quantile(late[runs], (0.75, 0.25)))
        if len(runs) < params.least_runs or scatter > params.most_scatter_ratio * duration[runs].mean():
            is_usable[runs] = False
    deviation = params.drift_ratio * duration[is_usable]
    group = np.unique(application[is_usable], return_inverse=True)[1]
    return _regressed(late[is_usable] / deviation, crowded[is_usable] / deviation, group, params)


def _regressed(late: Reals, crowded: Reals, group: Ints, params: SlowdownParams) -> Slowing:
    """Return the robust slope of one line over another, both in deviations; each group is late by something anyway.

    Where they tell little, it is towards none.
    """
    prior, ratio, weight = params.prior_error**-2.0, 0.0, np.ones_like(late)
    for _ in range(_MOST_ROUNDS):
        apart, more = _apart(late, weight, group), _apart(crowded, weight, group)
        left = apart - ratio * more
        scale = max(SIGMAS_PER_MAD * float(np.median(np.abs(left))), _LEAST_SCALE) if len(left) else 1.0
        weight = params.huber * scale / np.maximum(np.abs(left), params.huber * scale)
        known = float((weight * more**2).sum()) / scale**2 + prior
        ratio = float((weight * more * apart).sum()) / scale**2 / known
    # what runs do differ by counts, where it is more than what they are taken to. A run that is crowded much draws the
    # line to itself: each is held against the line of the others (MacKinnon and White, "Some Heteroskedasticity-
    # Consistent Covariance Matrix Estimators", J. Econometrics 29, 1985, doi:10.1016/0304-4076(85)90158-7)
    drawn = weight * more**2 / scale**2 / known + weight / np.bincount(group, weight)[group]
    held = (apart - ratio * more) / np.maximum(1.0 - drawn, _LEAST_FREE)
    moved = float(((weight * more * held) ** 2).sum()) / scale**4 / known**2
    return Slowing(max(ratio, 0.0), max(1.0 / known, moved) ** 0.5)


def _apart(values: Reals, weight: Reals, group: Ints) -> Reals:
    """Return how far values are from the weighted mean of their group."""
    means = np.bincount(group, weight * values) / np.bincount(group, weight)
    found: Reals = values - means[group]
    return found


@dataclass(frozen=True, slots=True)
class Slowdowns:
    """How much longer bursts (m) took than alone; low and high: the range that holds that four times of five."""

    longer: Reals
    low: Reals
    high: Reals

    @property
    def is_hurt(self) -> Bools:
        """Which bursts took longer for sure (m)."""
        hurt: Bools = self.low > 0
        return hurt


def slowdowns(crowded: Reals, of: Slowing, step: float, params: SlowdownParams | None = None) -> Slowdowns:
    """Return how much longer bursts took that were crowded for so long (m); step: that of the traffic.

    Where it is not sure that crowding slows at all, each range holds nothing.
    """
    params = params or SlowdownParams()
    longer = of.ratio * crowded
    errors = (of.error * crowded, params.burst_error * longer, np.full_like(longer, params.step_error * step))
    wide: Reals = params.range_errors * np.sqrt(sum(error**2 for error in errors))
    low = longer - wide
    return Slowdowns(longer, low if of.is_sure(params) else np.minimum(low, 0.0), longer + wide)


@dataclass(frozen=True, slots=True)
class Stood:
    """Whose bytes stood where bursts were done (m): others_bytes, of all others that are known.

    first (m): the run with most of them, -1 where there is none; first_bytes (m): what it moved.
    """

    others_bytes: Reals
    first: Ints
    first_bytes: Reals


@dataclass(frozen=True, slots=True)
class Moves:
    """What n runs moved (k), by run and time: the run, when [s], and how many bytes."""

    run: Ints
    at_s: Reals
    volume_bytes: Reals
    run_count: int

    def ends_s(self) -> tuple[Reals, Reals]:
        """Return when each run (n) moved its first and its last byte; infinitely late and early where none."""
        offsets = np.searchsorted(self.run, np.arange(self.run_count + 1))
        first, last = np.full((2, self.run_count), np.inf) * [[1.0], [-1.0]]
        there = np.flatnonzero(np.diff(offsets))
        first[there], last[there] = self.at_s[offsets[there]], self.at_s[offsets[there + 1] - 1]
        return first, last

    def between(self, run: Ints, began_s: Reals, ended_s: Reals) -> Reals:
        """Return what some runs (p) moved after one time and by another one (p)."""
        by_then = np.concatenate([[0.0], np.cumsum(self.volume_bytes)])
        begin = min(self.at_s.min(initial=0.0), began_s.min(initial=0.0))
        span = max(self.at_s.max(initial=0.0), ended_s.max(initial=0.0)) - begin + 1.0
        key = self.run * span + (self.at_s - begin)
        low, high = (np.searchsorted(key, run * span + (edge - begin), side="right") for edge in (began_s, ended_s))
        found: Reals = by_then[high] - by_then[low]
        return found


def stood(own: Ints, began_s: Reals, ended_s: Reals, moves: Moves) -> Stood:
    """Return whose bytes stood where bursts were done; a run does not stand in its own way.

    own, began_s, ended_s (m): the run of each burst, and its time.
    """
    first_s, last_s = moves.ends_s()
    others, first, most = np.zeros(len(own)), np.full(len(own), -1), np.zeros(len(own))
    each = max(1, _MOST_PAIRS // max(moves.run_count, 1))
    for start in range(0, len(own), each):
        part = slice(start, start + each)
        is_near = (first_s <= ended_s[part, None]) & (last_s >= began_s[part, None])
        burst, other = np.nonzero(is_near & (np.arange(moves.run_count) != own[part, None]))
        sums = moves.between(other, began_s[part][burst], ended_s[part][burst])
        others[part] = np.bincount(burst, sums, len(own[part]))
        order = np.lexsort((sums, burst))
        # the last of each burst has most
        last = order[np.flatnonzero(np.diff(burst[order], append=-1))]
        last = last[sums[last] > 0]
        first[start + burst[last]], most[start + burst[last]] = other[last], sums[last]
    return Stood(others, first, most)
