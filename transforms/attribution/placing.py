"""Placing: when a run did each of its bursts, by what the traffic has room for.

Others' traffic makes a burst late and slow and takes no byte from it (IOSI: Liu et al., FAST'14, section 4, drift and
scaling). So a burst placed at a step takes what is there, up to its own peak, until its volume is full; a place is bad
by how much longer that takes than alone, and by what stays empty. How late one burst is differs little from how late
the one before was, and a run that took longer than one alone was late by about that in the end. The best places of all
bursts of a run together are found by dynamic programming over how late each is.

Runs that have rooms of their own are placed side by side: there is a time to each call, and a run is few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, InPieces, Ints, Ragged, Reals, clip, offsets_of, places_within
from iosig.transforms.attribution.runs import InRooms

#: a burst counts as full here: its last bytes may be long in coming
_NEARLY = 0.95
#: steps that bursts may have which are looked at side by side: many, but such that they fit the cache
_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class PlacingParams:
    """What placing weighs. All are ours.

    most_stretch: a burst takes so many times as long as alone, at most; spare_s: and so long more. rest_ratio, rest_s:
    it is over where for so long there is less than that share of its peak. empty_cost: what an
    empty burst costs, beside the logarithm of how much longer it takes. late_cost: what a second costs of being later
    or sooner than the run's duration lets expect; change_cost: of being later or sooner than the burst before.
    least_lateness_s, most_lateness_s: how far around what is expected is looked, at least and at most. short_ratio: a
    run that is shorter than one alone by more was stopped, or began where another one was stopped. long_ratio: a run
    that is longer by more begins as one alone does, and goes on: nothing made it so late. crowding_ratio: how much
    slower a burst is where others move as much as its own peak. least_filled: a burst that finds less of its volume is
    not there, and what it found is others'. Rests, empty_cost, long_ratio and least_filled were chosen on simulated
    sites (seeds 11 to 13): what a burst takes after a rest, or too little of, is mostly others'.
    """

    most_stretch: float = 4.0
    spare_s: float = 30.0
    rest_ratio: float = 0.1
    rest_s: float = 10.0
    empty_cost: float = 2.0
    late_cost: float = 0.004
    change_cost: float = 0.02
    least_lateness_s: float = 30.0
    most_lateness_s: float = 300.0
    short_ratio: float = 0.08
    long_ratio: float = 0.4
    crowding_ratio: float = 0.5
    least_filled: float = 0.5


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the bursts of runs lie (m): whether its run did each, and at which step of its room it begins.

    reach (m): how many steps it may take. cost (n): what a run's places cost, of a burst in the mean.
    """

    is_done: Bools
    step: Ints
    reach: Ints
    cost: Reals

    @classmethod
    def none(cls, burst_count: int, cost: Reals) -> Placed:
        """Return runs of whose bursts none is placed yet."""
        step, reach = np.zeros((2, burst_count), np.int64)
        return cls(np.zeros(burst_count, np.bool_), step, reach, cost)

    def part(self, runs: slice, bursts: slice) -> Placed:
        """Return some runs, which follow each other, with their bursts."""
        return Placed(self.is_done[bursts], self.step[bursts], self.reach[bursts], self.cost[runs])


@dataclass(frozen=True, slots=True)
class Moved:
    """What the bursts of runs took of their rooms: volume_bytes (steps of all rooms).

    Per burst (m): began, ended: when it had its bytes, in steps of the room, which may begin later than where it was
    placed, and end where it was given up. filled: the share of its volume that it found. is_given: whether that is the
    run's; of less than `least_filled` it never is.
    """

    volume_bytes: Reals
    began: Reals
    ended: Reals
    filled: Reals
    is_given: Bools

    def part(self, bursts: slice, steps: slice) -> Moved:
        """Return some bursts, which follow each other, and some steps."""
        own = self.began[bursts], self.ended[bursts], self.filled[bursts], self.is_given[bursts]
        return Moved(self.volume_bytes[steps], *own)


def disjoint_turns(first: Ints, after: Ints, order: Ints) -> list[Ints]:
    """Return pieces of what is in some order, in turns: those of one turn share no step.

    first, after: of all pieces, the first step and the one behind the last. Of two that share steps the one that comes
    first in the order has the earlier turn, so that who goes turn by turn keeps the order.
    """
    latest = np.zeros(int(after.max(initial=0)), np.int64)
    turn = np.zeros(len(order), np.int64)
    for place, (begin, end) in enumerate(zip(first[order].tolist(), after[order].tolist(), strict=True)):
        here = latest[begin:end]
        turn[place] = here.max(initial=0)
        here[:] = turn[place] + 1
    return [order[turn == number] for number in range(int(turn.max(initial=-1)) + 1)]


def place(runs: InRooms, rooms: Ragged, interval_s: float, params: PlacingParams | None = None) -> Placed:
    """Return where the bursts of runs fit best.

    rooms (n): the bytes of each of a run's steps that nobody else has, at least 0. A run that was there for clearly
    less than one alone either was stopped, or is the rest of one that was: what fits better is taken.
    """
    params = params or PlacingParams()
    ways = _Ways.of(runs, interval_s, params)
    step, reach = np.zeros((2, len(ways.burst)), np.int64)
    cost = np.full(len(ways.run), params.empty_cost)
    for some in _blocks(ways.width, ways.counts):
        at = ways.places_in(some)
        step[at], reach[at], cost[some] = _fitted(runs, ways.chosen(some), rooms, interval_s, params)
    # the first of equals
    best = np.lexsort((cost, ways.run))[ways.run.searchsorted(np.arange(len(runs.started)))]
    at = ways.places_in(best)
    placed = Placed.none(len(runs.begun), cost[best])
    placed.is_done[ways.burst[at]] = True
    placed.step[ways.burst[at]], placed.reach[ways.burst[at]] = step[at], reach[at]
    return placed


def moved(
    runs: InRooms, placed: Placed, rooms: Ragged, params: PlacingParams | None = None, is_given: Bools | None = None
) -> Moved:
    """Return what the bursts of runs take where they are placed, of the rooms there are.

    is_given (m): which bursts have what they find, all if None; what others find no burst of the run has.
    """
    params = params or PlacingParams()
    count = len(placed.step)
    is_given = np.ones(count, np.bool_) if is_given is None else is_given
    left, owner = rooms.values.copy(), runs.owner
    step = placed.step.astype(np.float64)
    found = Moved(np.zeros(len(left)), step, step.copy(), np.zeros(count), np.zeros(count, np.bool_))
    first = np.maximum(placed.step, 0)
    sizes = np.maximum(np.minimum(placed.step + placed.reach, rooms.counts[owner]) - first, 0)
    begin = rooms.offsets[owner] + first
    for turn in _one_after_the_other(begin, sizes, owner, np.flatnonzero(placed.is_done & (sizes > 0))):
        for some in _blocks(sizes[turn], np.ones(len(turn), np.int64)):
            at = turn[some]
            _take(found, left, at, (begin[at], sizes[at], first[at]), runs, is_given[at], params)
    # the first bytes and the last ones may be anybody's: they come as fast as those between
    unseen = (found.ended - found.began) * (1 - _NEARLY) / (2 * _NEARLY - 1)
    found.began[:], found.ended[:] = found.began - unseen, found.ended + unseen
    return found


def _one_after_the_other(begin: Ints, sizes: Ints, owner: Ints, at: Ints) -> Iterator[Ints]:
    """Yield bursts that share no step, then, of each run one after the other, those that begin within earlier ones."""
    starts, run = begin[at], owner[at]
    is_within = np.zeros(len(at), np.bool_)
    is_within[1:] = starts[1:] < np.maximum.accumulate(starts + sizes[at])[:-1]
    by_then = is_within.cumsum()
    turn = np.where(is_within, by_then - by_then[run.searchsorted(run)], 0) if len(at) else by_then
    yield from (at[turn == number] for number in range(int(turn.max(initial=-1)) + 1))


def _take(
    found: Moved,
    left: Reals,
    at: Ints,
    rows: tuple[Ints, Ints, Ints],
    runs: InRooms,
    is_given: Bools,
    params: PlacingParams,
) -> None:
    """Have bursts that share no step take what they find of what is left.

    rows: where in all rooms each begins, how many steps it has, where in its own room it begins.
    """
    begin, sizes, first = rows
    volume = runs.volume_bytes[at]
    column = np.arange(int(sizes.max()))
    is_in, places = column < sizes[:, None], begin[:, None] + column
    there = np.where(is_in, left.take(places, mode="clip"), 0.0)
    own = _at_most(there, runs.peak_bytes[at, None], params)
    by_then = own.cumsum(axis=1)
    over = by_then - volume[:, None]
    own -= np.minimum(np.maximum(over, 0.0, out=over), own, out=over)
    found.filled[at] = np.minimum(by_then[:, -1] / volume, 1.0)
    # a burst loses no byte to others: less than half of one is no burst
    is_there = found.filled[at] >= params.least_filled
    is_in &= is_there[:, None]
    left[places[is_in]] = (there - own)[is_in]
    found.is_given[at] = is_given & is_there
    is_in &= is_given[:, None]
    found.volume_bytes[places[is_in]] += own[is_in]
    found.began[at] = first + _full_at(by_then, (1 - _NEARLY) * volume, sizes)
    found.ended[at] = first + _full_at(by_then, _NEARLY * volume, sizes)


def _full_at(by_then: Reals, volume: Reals, sizes: Ints) -> Reals:
    """Return after how many steps (and which part of one) so much has passed, of what has by the end of each (k)."""
    rows = np.arange(len(by_then))
    step = np.minimum((by_then < volume[:, None]).sum(axis=1), sizes)
    is_inner = step < sizes
    before = np.where(step > 0, by_then[rows, step - 1], 0.0)
    there = by_then[rows, np.minimum(step, sizes - 1)]
    part = np.divide(volume - before, there - before, out=np.zeros(len(rows)), where=is_inner)
    found: Reals = step + part
    return found


def _at_most(room: Reals, peak_bytes: Reals, params: PlacingParams) -> Reals:
    """Return what a burst takes of each step: its peak, less where others move more besides."""
    # in one place: this is where the time goes
    most: Reals = room / peak_bytes
    most -= 1.0
    np.maximum(most, 0.0, out=most)
    most *= params.crowding_ratio
    most += 1.0
    np.divide(peak_bytes, most, out=most)
    return np.minimum(room, most, out=most)


def _blocks(width: Ints, counts: Ints) -> Iterator[Ints]:
    """Yield pieces of so many rows of so many steps some at a time, of like widths; in each the longest come first."""
    order = width.argsort(kind="stable")
    order = order[counts[order] > 0]
    block = (counts[order] * width[order]).cumsum() // _CELLS
    for some in np.split(order, np.flatnonzero(block[1:] > block[:-1]) + 1):
        if len(some):
            yield some[(-counts[some]).argsort(kind="stable")]


# ---- where bursts fit


@dataclass(frozen=True, slots=True)
class _Ways(InPieces):
    """The ways in which runs can have gone (f), each with the bursts that it did (b).

    run (f): whose it is. half (f): by how many steps bursts are sooner or later than expected, at most. width (f): how
    many steps are looked at. burst (b): its place among those of all runs. first (b): the first step at which it may
    begin; reach (b): how many it may take.
    """

    run: Ints
    half: Ints
    width: Ints
    offsets: Ints
    burst: Ints
    first: Ints
    reach: Ints

    @classmethod
    def of(cls, runs: InRooms, interval_s: float, params: PlacingParams) -> _Ways:
        """Return those of runs, in their order."""
        run, burst, late, counts = _lateness(runs, params)
        offsets = offsets_of(counts)
        has = counts > 0
        begins, own = offsets[:-1][has], run[has]
        spread = np.maximum.reduceat(late, begins) - np.minimum.reduceat(late, begins) if len(begins) else late
        span_s = (0.05 * runs.lasted[own] + 0.6 * spread) * interval_s
        half, width = np.zeros((2, len(run)), np.int64)
        sought = clip(span_s, params.least_lateness_s, params.most_lateness_s) / interval_s
        half[has] = np.maximum(sought.astype(np.int64), 1)
        reach = np.ceil(params.most_stretch * runs.lasting[burst] + params.spare_s / interval_s).astype(np.int64)
        width[has] = 2 * half[has] + 1 + (np.maximum.reduceat(reach, begins) if len(begins) else 0)
        expected = runs.started[run].repeat(counts) + runs.begun[burst] + late
        first = np.rint(expected).astype(np.int64) - half.repeat(counts)
        return cls(run, half, width, offsets, burst, first, reach)

    def chosen(self, ways: Ints) -> _Ways:
        """Return some of them."""
        at = self.places_in(ways)
        own = self.run[ways], self.half[ways], self.width[ways], offsets_of(self.counts[ways])
        return _Ways(*own, self.burst[at], self.first[at], self.reach[at])


def _lateness(runs: InRooms, params: PlacingParams) -> tuple[Ints, Ints, Reals, Ints]:
    """Return whose each way is (f), which bursts ways did (b), how late each was, in steps (b), how many each did (f).

    Only a run that was there for clearly less than one alone has two.
    """
    late = runs.lasted - runs.duration
    is_long = late > params.long_ratio * runs.duration
    is_short = ~is_long & ~(late >= -params.short_ratio * runs.duration)
    run = np.arange(len(late)).repeat(np.where(is_short, 2, 1))
    is_rest = np.zeros(len(run), np.bool_)
    is_rest[1:] = run[1:] == run[:-1]
    burst = runs.places_in(run)
    way = np.arange(len(run)).repeat(runs.counts[run])
    own, is_short, is_rest = run[way], is_short[run[way]], is_rest[way]
    begun, late = runs.begun[burst], late[own]
    share = np.minimum((begun + runs.lasting[burst] / 2) / np.maximum(runs.duration[own], 1.0), 1.0)
    is_done = ~is_short | np.where(is_rest, begun + late >= 0, begun < runs.lasted[own])
    late = np.where(is_short, np.where(is_rest, late, 0.0), np.where(is_long[own], 0.0, late * share))
    return run, burst[is_done], late[is_done], np.bincount(way[is_done], minlength=len(run))


def _fitted(
    runs: InRooms, ways: _Ways, rooms: Ragged, interval_s: float, params: PlacingParams
) -> tuple[Ints, Ints, Reals]:
    """Return the best places of bursts (b), how many steps they may take there (b), and what that costs (f)."""
    there, is_there = _open(ways, rooms)
    low = params.rest_ratio * runs.peak_bytes[ways.burst, None]
    rests = _rests((there < low) & is_there, max(1, round(params.rest_s / interval_s)))
    places, half = np.arange(2 * int(ways.half.max()) + 1), ways.half.repeat(ways.counts)[:, None]
    ends = np.minimum(places + ways.reach[:, None], rests[:, : len(places)])
    costs = _costs(runs, ways, there, ends, params)
    costs += params.late_cost * interval_s * np.abs(places - half)
    costs[places > 2 * half] = np.inf
    path, cost = _best_paths(costs, ways.offsets, 2 * ways.half, params.change_cost * interval_s)
    return ways.first + path, ends[np.arange(len(path)), path] - path, cost / ways.counts


def _open(ways: _Ways, rooms: Ragged) -> tuple[Reals, Bools]:
    """Return the room from each burst's first step on (b, steps): none before the run, after it, and beyond the width.

    Beside it, where the width is.
    """
    counts = ways.counts
    column = np.arange(int(ways.width.max()))
    run = ways.run.repeat(counts)
    steps = ways.first[:, None] + column
    is_there = column < ways.width.repeat(counts)[:, None]
    is_room = (steps >= 0) & (steps < rooms.counts[run][:, None]) & is_there
    steps += rooms.offsets[run][:, None]
    return np.where(is_room, rooms.values.take(steps, mode="clip"), 0.0), is_there


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


def _costs(runs: InRooms, ways: _Ways, there: Reals, ends: Ints, params: PlacingParams) -> Reals:
    """Return what it costs to begin each burst at each step (b, places) of what is there (b, steps).

    ends: before which step of what is there it is over (b, places). One that is not full counts as having taken all
    steps that it may.
    """
    burst, counts = ways.burst, ways.counts
    volume = runs.volume_bytes[burst]
    filled = np.zeros((len(burst), there.shape[1] + 1))
    np.cumsum(_at_most(there, runs.peak_bytes[burst, None], params), axis=1, out=filled[:, 1:])
    before = filled[:, : ends.shape[1]]
    taken = np.take_along_axis(filled, ends, axis=1) - before
    took = _full_after(filled, before + _NEARLY * volume[:, None], volume, ways.offsets)
    longer = np.minimum(took, ways.reach[:, None]) / np.maximum(runs.lasting[burst, None], 1.0)
    empty = clip(1.0 - taken / volume[:, None], 0.0, 1.0)
    of_all = np.array([volume[first:last].sum() for first, last in pairwise(ways.offsets.tolist())])
    share = counts.repeat(counts) * volume / of_all.repeat(counts)
    costs: Reals = (np.log(np.maximum(longer, 1.0)) + params.empty_cost * empty) * share[:, None]
    return costs


def _full_after(filled: Reals, wanted: Reals, volume: Reals, offsets: Ints) -> Ints:
    """Return how many steps after each place so much is filled as is wanted (b, places), of what is by then (b, steps).

    Each row rises, and in each way begins where no row before it ends: one search finds where all are nearly full.
    """
    begins, counts = offsets[:-1], np.diff(offsets)
    most = np.maximum.reduceat(filled[:, -1], begins) + np.maximum.reduceat(volume, begins)
    row = places_within(counts)
    base = (row * most.repeat(counts))[:, None]
    by_then, wanted = filled + base, wanted + base
    full = np.empty(wanted.shape, np.int64)
    for first, last in pairwise(offsets.tolist()):
        full[first:last] = (
            by_then[first:last].ravel().searchsorted(wanted[first:last].ravel()).reshape(last - first, -1)
        )
    full -= row[:, None] * filled.shape[1] + np.arange(wanted.shape[1])
    return full


def _best_paths(costs: Reals, offsets: Ints, last: Ints, change_cost: float) -> tuple[Ints, Reals]:
    """Return the place of each row (rows, places) at the least sum of costs and of changes from row to row.

    offsets (f + 1): whose rows these are, those of the longest first. last (f): its last place; beyond it costs are
    infinite. Beside it, these sums (f).
    """
    counts, places = np.diff(offsets), np.arange(costs.shape[1])
    slope: Reals = change_cost * places.astype(np.float64)
    turned = slope[np.maximum(last[:, None] - places, 0)]
    total = costs.copy()
    for row in range(1, int(counts[0])):
        here = (offsets[:-1] + row)[: np.count_nonzero(counts > row)]
        before, down = total[here - 1], turned[: len(here)]
        # the least of the row before anywhere below each place and the way from there, and above it
        below = np.minimum.accumulate(before - slope, axis=1) + slope
        above = np.minimum.accumulate((before - down)[:, ::-1], axis=1)[:, ::-1] + down
        total[here] += np.minimum(below, above, out=below)
    ends = offsets[1:] - 1
    path = np.empty(len(costs), np.int64)
    path[ends] = total[ends].argmin(axis=1)
    # where each came from is asked of the path's own places alone
    for row in range(int(counts[0]) - 1, 0, -1):
        here = (offsets[:-1] + row)[: np.count_nonzero(counts > row)]
        path[here - 1] = _came_from(total[here - 1], slope, turned[: len(here)], path[here])
    return path, total[ends].min(axis=1)


def _came_from(total: Reals, slope: Reals, turned: Reals, place: Ints) -> Ints:
    """Return where the least of `total` (f, places) and the way to a place (f) is; the nearest one of equals.

    slope (places), turned (f, places): the way from the first place, and to the last one.
    """
    rows, places, place_ = np.arange(len(total)), np.arange(total.shape[1]), place[:, None]
    below = np.where(places <= place_, total - slope, np.inf)
    above = np.where(places >= place_, total - turned, np.inf)
    at_below, at_above = total.shape[1] - 1 - below[:, ::-1].argmin(axis=1), above.argmin(axis=1)
    is_below = below[rows, at_below] + slope[place] <= above[rows, at_above] + turned[rows, place]
    found: Ints = np.where(is_below, at_below, at_above)
    return found
