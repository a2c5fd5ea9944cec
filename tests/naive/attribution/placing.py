"""The naive twin of placing: one run after the other, one burst after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.attribution.placing import PlacingParams

#: a burst counts as full here
_NEARLY = 0.95


@dataclass(frozen=True, slots=True)
class Run:
    """One run with b bursts, on the steps of the room in which it is placed: the room begins and ends with the run.

    started: where in the room's first step it started, 0 to 1. lasted: how long it was there; duration: how long one
    alone takes, both in steps. Per burst (b), in order of time: begun, when it begins in a run alone, in steps since
    the run's start; lasting, how many steps it takes alone; volume_bytes; peak_bytes, the most that it moves in a step.
    """

    started: float
    lasted: float
    duration: float
    begun: Reals
    lasting: Reals
    volume_bytes: Reals
    peak_bytes: Reals


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a run's bursts lie (b): which they are, the step of the room at which each begins, how many it may take.

    cost: what the places cost, of a burst in the mean.
    """

    burst: Ints
    step: Ints
    reach: Ints
    cost: float


@dataclass(frozen=True, slots=True)
class Moved:
    """What a run's bursts took of the room: volume_bytes (steps).

    Per burst that was placed (b): began, ended: when it had its bytes, in steps of the room, which may begin later than
    where it was placed, and end where it was given up. filled: the share of its volume that it found. is_given: whether
    that is the run's; of less than `least_filled` it never is.
    """

    volume_bytes: Reals
    began: Reals
    ended: Reals
    filled: Reals
    is_given: Bools


def place(run: Run, room: Reals, interval_s: float, params: PlacingParams) -> Placed:
    """Return where a run's bursts fit best.

    room (steps): the bytes of each of the run's steps that nobody else has, at least 0. A run that was there for
    clearly less than one alone either was stopped, or is the rest of one that was: what fits better is taken.
    """
    fitted = [_fitted(run, burst, late, room, interval_s, params) for burst, late in _ways(run, params)]
    return min(fitted, key=lambda one: one.cost)


def moved(run: Run, placed: Placed, room: Reals, params: PlacingParams, is_given: Bools | None = None) -> Moved:
    """Return what a run's bursts take where they are placed, of the room there is.

    is_given (b): which bursts have what they find, all if None; what others find no burst of the run has.
    """
    left, taken, filled = room.copy(), np.zeros(len(room)), np.zeros(len(placed.burst))
    is_given = np.ones(len(placed.burst), np.bool_) if is_given is None else is_given
    began, ended = placed.step.astype(np.float64), placed.step.astype(np.float64)
    volumes, peaks = run.volume_bytes.tolist(), run.peak_bytes.tolist()
    places = zip(placed.burst.tolist(), placed.step.tolist(), placed.reach.tolist(), strict=True)
    for place, (burst, step, reach) in enumerate(places):
        first = max(step, 0)
        there = left[first : max(step + reach, 0)]
        volume, own = volumes[burst], _at_most(there, peaks[burst], params)
        by_then = own.cumsum()
        over = by_then - volume
        own -= np.minimum(np.maximum(over, 0.0, out=over), own, out=over)
        if by_then.size:
            filled[place] = min(by_then.item(-1) / volume, 1.0)
            # a burst loses no byte to others: less than half of one is no burst
            if filled[place] >= params.least_filled:
                there -= own
                if is_given[place]:
                    taken[first : first + len(own)] += own
            began[place] = first + _full_at(by_then, (1 - _NEARLY) * volume)
            ended[place] = first + _full_at(by_then, _NEARLY * volume)
    # the first bytes and the last ones may be anybody's: they come as fast as those between
    unseen = (ended - began) * (1 - _NEARLY) / (2 * _NEARLY - 1)
    return Moved(taken, began - unseen, ended + unseen, filled, is_given & (filled >= params.least_filled))


def _full_at(by_then: Reals, volume: float) -> float:
    """Return after how many steps (and which part of one) so much has passed, of what has by the end of each."""
    step = int(by_then.searchsorted(volume))
    if step == len(by_then):
        return float(step)
    before = by_then.item(step - 1) if step else 0.0
    return step + (volume - before) / (by_then.item(step) - before)


def _at_most(room: Reals, peak_bytes: Reals | float, params: PlacingParams) -> Reals:
    """Return what a burst takes of each step: its peak, less where others move more besides."""
    # in one place: this is where the time goes
    most: Reals = room / peak_bytes
    most -= 1.0
    np.maximum(most, 0.0, out=most)
    most *= params.crowding_ratio
    most += 1.0
    np.divide(peak_bytes, most, out=most)
    return np.minimum(room, most, out=most)


def _ways(run: Run, params: PlacingParams) -> Iterator[tuple[Ints, Reals]]:
    """Yield the ways in which a run can have gone: which bursts it did, and how late each was, in steps."""
    late = run.lasted - run.duration
    if late > params.long_ratio * run.duration:
        yield np.arange(len(run.begun)), np.zeros(len(run.begun))
        return
    if late >= -params.short_ratio * run.duration:
        share = np.minimum((run.begun + run.lasting / 2) / max(run.duration, 1.0), 1.0)
        yield np.arange(len(run.begun)), late * share
        return
    for is_done, each_late in ((run.begun < run.lasted, 0.0), (run.begun + late >= 0, late)):
        done = np.flatnonzero(is_done)
        yield done, np.full(len(done), each_late)


def _fitted(run: Run, burst: Ints, late: Reals, room: Reals, interval_s: float, params: PlacingParams) -> Placed:
    """Return the best places of some bursts of a run that are about so late."""
    if not len(burst):
        return Placed(burst, burst, burst, params.empty_cost)
    span_s = (0.05 * run.lasted + 0.6 * np.ptp(late)) * interval_s
    half = max(1, int(np.clip(span_s, params.least_lateness_s, params.most_lateness_s) / interval_s))
    first = np.rint(run.started + run.begun[burst] + late).astype(np.int64) - half
    reach = np.ceil(params.most_stretch * run.lasting[burst] + params.spare_s / interval_s).astype(np.int64)
    there = _open(first, 2 * half + 1 + int(reach.max()), room)
    rests = _rests(there < params.rest_ratio * run.peak_bytes[burst, None], max(1, round(params.rest_s / interval_s)))
    places = np.arange(2 * half + 1)
    ends = np.minimum(places + reach[:, None], rests[:, : len(places)])
    costs = _costs(run, burst, there, (reach, ends), params)
    costs += params.late_cost * interval_s * np.abs(places - half)
    path, cost = _best_path(costs, params.change_cost * interval_s)
    return Placed(burst, first + path, ends[np.arange(len(burst)), path] - path, cost / len(burst))


def _open(first: Ints, count: int, room: Reals) -> Reals:
    """Return the room in `count` steps from each first one on (bursts, count): none before the run or after it."""
    steps = first[:, None] + np.arange(count)
    is_there = (steps >= 0) & (steps < len(room))
    found: Reals = np.where(is_there, room[np.clip(steps, 0, len(room) - 1)], 0.0)
    return found


def _rests(is_low: Bools, count: int) -> Ints:
    """Return where after each step (rows, steps) so many low ones on end begin; the end where none do."""
    steps = is_low.shape[1]
    # behind the end nothing is low
    low_by_then = np.zeros((len(is_low), 1 + steps + count), np.int64)
    np.cumsum(is_low, axis=1, out=low_by_then[:, 1 : steps + 1])
    low_by_then[:, steps + 1 :] = low_by_then[:, steps, None]
    begins = low_by_then[:, count : steps + count] - low_by_then[:, :steps] >= count
    found: Ints = np.minimum.accumulate(np.where(begins, np.arange(steps), steps)[:, ::-1], axis=1)[:, ::-1]
    return found


def _costs(run: Run, burst: Ints, there: Reals, until: tuple[Ints, Ints], params: PlacingParams) -> Reals:
    """Return what it costs to begin each burst at each step (bursts, places) of what is there (bursts, steps).

    until: how many steps each may take (bursts), which one that is not full counts as having taken; and before which
    step of what is there it is over (bursts, places).
    """
    reach, ends = until
    volume = run.volume_bytes[burst, None]
    filled = np.zeros((len(burst), there.shape[1] + 1))
    np.cumsum(_at_most(there, run.peak_bytes[burst, None], params), axis=1, out=filled[:, 1:])
    places = np.arange(ends.shape[1])
    before = filled[:, : len(places)]
    rows = np.arange(len(burst))[:, None]
    taken = filled[rows, ends] - before
    # each row rises, and begins where no row before it ends: one search finds where all are nearly full
    base = rows * (filled[:, -1].max() + volume.max())
    full = (filled + base).ravel().searchsorted((before + _NEARLY * volume + base).ravel())
    took = full.reshape(before.shape) - rows * filled.shape[1] - places
    longer = np.minimum(took, reach[:, None]) / np.maximum(run.lasting[burst, None], 1.0)
    empty = np.clip(1.0 - taken / volume, 0.0, 1.0)
    costs: Reals = (np.log(np.maximum(longer, 1.0)) + params.empty_cost * empty) * (len(burst) * volume / volume.sum())
    return costs


def _best_path(costs: Reals, change_cost: float) -> tuple[Ints, float]:
    """Return the place of each row (rows, places) at the least sum of costs and of changes from row to row."""
    slope: Reals = change_cost * np.arange(costs.shape[1], dtype=np.float64)
    total = costs.copy()
    # the least of the row before anywhere below each place and the way from there, and above it
    ways = np.empty((2, costs.shape[1]))
    below, above = ways[0], ways[1, ::-1]
    for before, now in pairwise(total):
        np.subtract(before, slope, out=below)
        np.subtract(before[::-1], slope, out=ways[1])
        np.minimum.accumulate(ways, axis=1, out=ways)
        ways += slope
        now += np.minimum(below, above, out=below)
    path = np.full(len(total), int(total[-1].argmin()))
    # where each came from is asked of the path's own places alone
    for row in range(len(total) - 1, 0, -1):
        path[row - 1] = _came_from(total[row - 1], slope, int(path[row]))
    return path, float(total[-1].min())


def _came_from(total: Reals, slope: Reals, place: int) -> int:
    """Return where the least of `total` and the way to a place is; the nearest one of equals."""
    count = len(total) - place
    # from the place on, downwards and upwards: the first of equals is the nearest
    below = (total[: place + 1] - slope[: place + 1])[::-1]
    above = total[::-1][:count] - slope[:count]
    above = above[::-1]
    at_below, at_above = int(below.argmin()), int(above.argmin())
    if below.item(at_below) + slope.item(place) <= above.item(at_above) + slope.item(-1 - place):
        return place - at_below
    return place + at_above
