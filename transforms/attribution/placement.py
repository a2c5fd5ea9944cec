"""Place a run's bursts at the times where the traffic has room for them.

Contention delays and slows a burst but takes no bytes from it (IOSI: Liu et al., FAST'14, section 4, drift and
scaling). A burst placed at a step takes the available bytes, up to its peak rate, until it has its volume. The cost of
a step grows with the time that the burst takes, relative to its time without contention, and with the missing volume.
The lateness of a burst is the time by which it starts later than without contention. Lateness changes slowly between
consecutive bursts, and at the end of a run it roughly equals the run's delay. Dynamic programming over lateness finds
the best steps of all bursts of a run together.

Runs with disjoint windows are placed in one batch, since the fixed cost of a call exceeds the work for one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, InPieces, Ints, Ragged, Reals, clip, offsets_of, places_within
from iosig.transforms.attribution.runs import WindowedRuns

#: fraction of its volume at which a burst counts as complete, since its last bytes may arrive late
_COMPLETE_RATIO = 0.95
#: maximum number of array cells (bursts times steps) processed at once; they fit into the CPU cache
_BATCH_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class PlacementParams:
    """Costs and limits of placement. Values marked (*) were chosen on simulated sites (seeds 11 to 13)."""

    #: maximum length of a burst, in multiples of its length without contention; `extra_s` is added
    max_stretch: float = 4.0
    #: time added to the maximum length of a burst [s]
    extra_s: float = 30.0
    #: a burst ends where the traffic stays below this fraction of its peak for `pause_s` (*); bytes after such a pause
    #: mostly belong to other runs
    pause_ratio: float = 0.1
    #: length of a pause that ends a burst [s] (*)
    pause_s: float = 10.0
    #: cost of an entirely missing burst (*); the cost of a slow burst is the logarithm of its stretch
    missing_cost: float = 2.0
    #: cost per second by which the lateness deviates from the lateness that the run's delay implies
    lateness_cost: float = 0.004
    #: cost per second by which the lateness changes between consecutive bursts
    lateness_change_cost: float = 0.02
    #: minimum distance from the expected lateness that is searched [s]
    min_lateness_s: float = 30.0
    #: maximum distance from the expected lateness that is searched [s]
    max_lateness_s: float = 300.0
    #: a run that is shorter than its duration by more than this fraction was stopped, or continues a stopped run
    short_ratio: float = 0.08
    #: a run that is longer than its duration by more than this fraction goes on after its signature, undelayed (*)
    long_ratio: float = 0.4
    #: strength of the decrease of a burst's rate with the traffic of other runs; rate and traffic are relative to the
    #: burst's peak
    contention_ratio: float = 0.5
    #: minimum fraction of its volume that a present burst finds (*); fewer bytes belong to other runs
    min_filled_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of the m bursts of n runs, in steps of each run's window.

    Attributes
    ----------
    is_done : Bools, shape (m,)
        Whether the run performed the burst.
    step : Ints, shape (m,)
        First step of the burst.
    max_steps : Ints, shape (m,)
        Maximum number of steps that the burst lasts.
    cost : Reals, shape (n,)
        Mean cost of the run's bursts.

    """

    is_done: Bools
    step: Ints
    max_steps: Ints
    cost: Reals

    @classmethod
    def empty(cls, burst_count: int, cost: Reals) -> Placement:
        """Create a placement without placed bursts."""
        step, max_steps = np.zeros((2, burst_count), np.int64)
        return cls(np.zeros(burst_count, np.bool_), step, max_steps, cost)

    def select(self, runs: slice, bursts: slice) -> Placement:
        """Select consecutive runs with their bursts."""
        return Placement(self.is_done[bursts], self.step[bursts], self.max_steps[bursts], self.cost[runs])


@dataclass(frozen=True, slots=True)
class TakenBytes:
    """Bytes that m bursts took from the available traffic.

    Attributes
    ----------
    volume_bytes : Reals
        Bytes in each step of all windows.
    started, ended : Reals, shape (m,)
        Start and end of the bytes that the burst takes, in steps of its window. It may start after the placed step. If
        bytes are missing, it ends at its maximum length.
    filled_ratio : Reals, shape (m,)
        Fraction of the burst's volume that was available.
    is_attributed : Bools, shape (m,)
        Whether the run gets the bytes; never if `filled_ratio` is below `min_filled_ratio`.

    """

    volume_bytes: Reals
    started: Reals
    ended: Reals
    filled_ratio: Reals
    is_attributed: Bools

    def select(self, bursts: slice, steps: slice) -> TakenBytes:
        """Select consecutive bursts and steps."""
        per_burst = self.started[bursts], self.ended[bursts], self.filled_ratio[bursts], self.is_attributed[bursts]
        return TakenBytes(self.volume_bytes[steps], *per_burst)


def batch_disjoint(first: Ints, after: Ints, order: Ints) -> list[Ints]:
    """Partition ordered intervals into batches of disjoint intervals.

    Parameters
    ----------
    first, after : Ints, shape (n,)
        First step of each interval, and the step after its last.
    order : Ints
        Order in which the intervals are to be processed.

    Returns
    -------
    list of Ints
        Indices of the intervals of each batch. If two intervals overlap, the first in order is in an earlier batch.

    """
    next_batch = np.zeros(int(after.max(initial=0)), np.int64)
    batch = np.zeros(len(order), np.int64)
    for index, (begin, end) in enumerate(zip(first[order].tolist(), after[order].tolist(), strict=True)):
        step_batches = next_batch[begin:end]
        batch[index] = step_batches.max(initial=0)
        step_batches[:] = batch[index] + 1
    return [order[batch == number] for number in range(int(batch.max(initial=-1)) + 1)]


def place_bursts(
    runs: WindowedRuns, available: Ragged, interval_s: float, params: PlacementParams | None = None
) -> Placement:
    """Find the steps at which the bursts of runs fit best.

    Parameters
    ----------
    runs : WindowedRuns
        n runs with m bursts.
    available : Ragged
        Bytes in each step of the n windows that no other run has taken; never negative.
    interval_s : float
        Length of a step [s].
    params : PlacementParams, optional
        Costs and limits.

    Returns
    -------
    Placement

    Notes
    -----
    A run that is clearly shorter than its duration was stopped, or continues a stopped run. The alternative with the
    lower cost is chosen.

    """
    params = params or PlacementParams()
    scenarios = _Scenarios.create(runs, interval_s, params)
    step, max_steps = np.zeros((2, len(scenarios.burst)), np.int64)
    cost = np.full(len(scenarios.run), params.missing_cost)
    for batch in _batch_by_width(scenarios.width, scenarios.counts):
        rows = scenarios.places_in(batch)
        step[rows], max_steps[rows], cost[batch] = _fit_bursts(
            runs, scenarios.select(batch), available, interval_s, params
        )
    # the first of several scenarios with equal cost
    best = np.lexsort((cost, scenarios.run))[scenarios.run.searchsorted(np.arange(len(runs.started)))]
    rows = scenarios.places_in(best)
    bursts = scenarios.burst[rows]
    placement = Placement.empty(len(runs.burst_start), cost[best])
    placement.is_done[bursts] = True
    placement.step[bursts], placement.max_steps[bursts] = step[rows], max_steps[rows]
    return placement


def take_bytes(
    runs: WindowedRuns,
    placement: Placement,
    available: Ragged,
    params: PlacementParams | None = None,
    is_attributed: Bools | None = None,
) -> TakenBytes:
    """Let placed bursts take their bytes from the available traffic.

    Parameters
    ----------
    runs : WindowedRuns
        n runs with m bursts.
    placement : Placement
        Placement of the bursts.
    available : Ragged
        Bytes in each step of the n windows.
    params : PlacementParams, optional
        Limits.
    is_attributed : Bools, shape (m,), optional
        Whether the run gets the bytes of each burst; otherwise, the bytes remain unused. Default: all true.

    Returns
    -------
    TakenBytes

    """
    params = params or PlacementParams()
    count = len(placement.step)
    is_attributed = np.ones(count, np.bool_) if is_attributed is None else is_attributed
    remaining, owner = available.values.copy(), runs.owner
    step = placement.step.astype(np.float64)
    taken_bytes = TakenBytes(np.zeros(len(remaining)), step, step.copy(), np.zeros(count), np.zeros(count, np.bool_))
    first = np.maximum(placement.step, 0)
    sizes = np.maximum(np.minimum(placement.step + placement.max_steps, available.counts[owner]) - first, 0)
    begin = available.offsets[owner] + first
    for group in _batch_bursts(begin, sizes, owner, np.flatnonzero(placement.is_done & (sizes > 0))):
        for batch in _batch_by_width(sizes[group], np.ones(len(group), np.int64)):
            bursts = group[batch]
            rows = (begin[bursts], sizes[bursts], first[bursts])
            _take_batch(taken_bytes, remaining, bursts, rows, runs, is_attributed[bursts], params)
    # the first and last bytes may belong to other runs: extrapolate from the central bytes at their mean rate
    margin = (taken_bytes.ended - taken_bytes.started) * (1 - _COMPLETE_RATIO) / (2 * _COMPLETE_RATIO - 1)
    taken_bytes.started[:], taken_bytes.ended[:] = taken_bytes.started - margin, taken_bytes.ended + margin
    return taken_bytes


def _batch_bursts(begin: Ints, sizes: Ints, owner: Ints, bursts: Ints) -> Iterator[Ints]:
    """Yield batches: all bursts that begin after earlier ones end, then the k-th of the other bursts of each run."""
    starts, run = begin[bursts], owner[bursts]
    is_overlapping = np.zeros(len(bursts), np.bool_)
    is_overlapping[1:] = starts[1:] < np.maximum.accumulate(starts + sizes[bursts])[:-1]
    count = is_overlapping.cumsum()
    batch = np.where(is_overlapping, count - count[run.searchsorted(run)], 0) if len(bursts) else count
    yield from (bursts[batch == number] for number in range(int(batch.max(initial=-1)) + 1))


def _take_batch(
    taken_bytes: TakenBytes,
    remaining: Reals,
    bursts: Ints,
    rows: tuple[Ints, Ints, Ints],
    runs: WindowedRuns,
    is_attributed: Bools,
    params: PlacementParams,
) -> None:
    """Let disjoint bursts take their bytes; modify `taken_bytes` and `remaining` in place.

    `rows`: first index of each burst among the steps of all windows, its number of steps, and its first step in its own
    window.
    """
    begin, sizes, first = rows
    volume = runs.volume_bytes[bursts]
    column = np.arange(int(sizes.max()))
    is_in, places = column < sizes[:, None], begin[:, None] + column
    present = np.where(is_in, remaining.take(places, mode="clip"), 0.0)
    burst_bytes = _limit_rate(present, runs.peak_bytes[bursts, None], params)
    cumulative = burst_bytes.cumsum(axis=1)
    excess = cumulative - volume[:, None]
    burst_bytes -= np.minimum(np.maximum(excess, 0.0, out=excess), burst_bytes, out=excess)
    taken_bytes.filled_ratio[bursts] = np.minimum(cumulative[:, -1] / volume, 1.0)
    # contention takes no bytes from a burst: if many are missing, the burst is not present
    is_present = taken_bytes.filled_ratio[bursts] >= params.min_filled_ratio
    is_in &= is_present[:, None]
    remaining[places[is_in]] = (present - burst_bytes)[is_in]
    taken_bytes.is_attributed[bursts] = is_attributed & is_present
    is_in &= is_attributed[:, None]
    taken_bytes.volume_bytes[places[is_in]] += burst_bytes[is_in]
    taken_bytes.started[bursts] = first + _find_volume_time(cumulative, (1 - _COMPLETE_RATIO) * volume, sizes)
    taken_bytes.ended[bursts] = first + _find_volume_time(cumulative, _COMPLETE_RATIO * volume, sizes)


def _find_volume_time(cumulative: Reals, volume: Reals, sizes: Ints) -> Reals:
    """Return the fractional step at which each row (k, steps) of cumulative bytes reaches a volume (k)."""
    rows = np.arange(len(cumulative))
    step = np.minimum((cumulative < volume[:, None]).sum(axis=1), sizes)
    is_inner = step < sizes
    before = np.where(step > 0, cumulative[rows, step - 1], 0.0)
    after = cumulative[rows, np.minimum(step, sizes - 1)]
    fraction = np.divide(volume - before, after - before, out=np.zeros(len(rows)), where=is_inner)
    time: Reals = step + fraction
    return time


def _limit_rate(available: Reals, peak_bytes: Reals, params: PlacementParams) -> Reals:
    """Return the bytes that a burst takes in each step: up to its peak, which decreases with other runs' traffic."""
    # computed in place, since most of the time is spent here
    limit: Reals = available / peak_bytes
    limit -= 1.0
    np.maximum(limit, 0.0, out=limit)
    limit *= params.contention_ratio
    limit += 1.0
    np.divide(peak_bytes, limit, out=limit)
    return np.minimum(available, limit, out=limit)


def _batch_by_width(width: Ints, counts: Ints) -> Iterator[Ints]:
    """Yield batches of items of similar width, limited in size; within a batch, items with the most rows come first."""
    order = width.argsort(kind="stable")
    order = order[counts[order] > 0]
    block = (counts[order] * width[order]).cumsum() // _BATCH_CELLS
    for batch in np.split(order, np.flatnonzero(block[1:] > block[:-1]) + 1):
        if len(batch):
            yield batch[(-counts[batch]).argsort(kind="stable")]


# ---- search for the best steps


@dataclass(frozen=True, slots=True)
class _Scenarios(InPieces):
    """f scenarios of runs (complete, stopped, or continued), with the b bursts that the runs then performed.

    Attributes
    ----------
    run : Ints, shape (f,)
        Run of each scenario.
    half : Ints, shape (f,)
        Maximum deviation from the expected lateness, in steps.
    width : Ints, shape (f,)
        Number of steps examined per burst.
    offsets : Ints, shape (f + 1,)
        Scenario i has the bursts offsets[i] to offsets[i + 1].
    burst : Ints, shape (b,)
        Index of the burst among the bursts of all runs.
    first : Ints, shape (b,)
        Earliest step of the burst.
    max_steps : Ints, shape (b,)
        Maximum number of steps that the burst lasts.

    """

    run: Ints
    half: Ints
    width: Ints
    offsets: Ints
    burst: Ints
    first: Ints
    max_steps: Ints

    @classmethod
    def create(cls, runs: WindowedRuns, interval_s: float, params: PlacementParams) -> _Scenarios:
        """Create the scenarios of all runs, sorted by run."""
        run, burst, lateness, counts = _estimate_lateness(runs, params)
        offsets = offsets_of(counts)
        has_bursts = counts > 0
        begins, run_with_bursts = offsets[:-1][has_bursts], run[has_bursts]
        spread = lateness
        if len(begins):
            spread = np.maximum.reduceat(lateness, begins) - np.minimum.reduceat(lateness, begins)
        span_s = (0.05 * runs.elapsed[run_with_bursts] + 0.6 * spread) * interval_s
        half, width = np.zeros((2, len(run)), np.int64)
        max_shift = clip(span_s, params.min_lateness_s, params.max_lateness_s) / interval_s
        half[has_bursts] = np.maximum(max_shift.astype(np.int64), 1)
        longest = params.max_stretch * runs.burst_duration[burst] + params.extra_s / interval_s
        max_steps = np.ceil(longest).astype(np.int64)
        width[has_bursts] = 2 * half[has_bursts] + 1 + (np.maximum.reduceat(max_steps, begins) if len(begins) else 0)
        expected = runs.started[run].repeat(counts) + runs.burst_start[burst] + lateness
        first = np.rint(expected).astype(np.int64) - half.repeat(counts)
        return cls(run, half, width, offsets, burst, first, max_steps)

    def select(self, scenarios: Ints) -> _Scenarios:
        """Select scenarios with their bursts."""
        rows = self.places_in(scenarios)
        fields = self.run[scenarios], self.half[scenarios], self.width[scenarios], offsets_of(self.counts[scenarios])
        return _Scenarios(*fields, self.burst[rows], self.first[rows], self.max_steps[rows])


def _estimate_lateness(runs: WindowedRuns, params: PlacementParams) -> tuple[Ints, Ints, Reals, Ints]:
    """Estimate the lateness of the bursts in each scenario.

    Returns the run of each scenario (f), the bursts of the scenarios (b), their expected lateness in steps (b), and the
    number of bursts per scenario (f). A run has one scenario. If it is clearly shorter than its duration, it has two:
    stopped, and continued.
    """
    delay = runs.elapsed - runs.duration
    is_long = delay > params.long_ratio * runs.duration
    is_short = ~is_long & ~(delay >= -params.short_ratio * runs.duration)
    run = np.arange(len(delay)).repeat(np.where(is_short, 2, 1))
    is_continued = np.zeros(len(run), np.bool_)
    is_continued[1:] = run[1:] == run[:-1]
    burst = runs.places_in(run)
    scenario = np.arange(len(run)).repeat(runs.counts[run])
    scenario_run, is_short, is_continued = run[scenario], is_short[run[scenario]], is_continued[scenario]
    start, delay = runs.burst_start[burst], delay[scenario_run]
    progress = np.minimum((start + runs.burst_duration[burst] / 2) / np.maximum(runs.duration[scenario_run], 1.0), 1.0)
    is_done = ~is_short | np.where(is_continued, start + delay >= 0, start < runs.elapsed[scenario_run])
    proportional = np.where(is_long[scenario_run], 0.0, delay * progress)
    lateness = np.where(is_short, np.where(is_continued, delay, 0.0), proportional)
    return run, burst[is_done], lateness[is_done], np.bincount(scenario[is_done], minlength=len(run))


def _fit_bursts(
    runs: WindowedRuns, scenarios: _Scenarios, available: Ragged, interval_s: float, params: PlacementParams
) -> tuple[Ints, Ints, Reals]:
    """Return the best first step (b) and maximum length (b) of each burst, and the mean cost of each scenario (f)."""
    present, is_in = _gather_windows(scenarios, available)
    threshold = params.pause_ratio * runs.peak_bytes[scenarios.burst, None]
    pauses = _next_pauses((present < threshold) & is_in, max(1, round(params.pause_s / interval_s)))
    shifts, half = np.arange(2 * int(scenarios.half.max()) + 1), scenarios.half.repeat(scenarios.counts)[:, None]
    ends = np.minimum(shifts + scenarios.max_steps[:, None], pauses[:, : len(shifts)])
    costs = _step_costs(runs, scenarios, present, ends, params)
    costs += params.lateness_cost * interval_s * np.abs(shifts - half)
    costs[shifts > 2 * half] = np.inf
    change_cost = params.lateness_change_cost * interval_s
    path, cost = _best_paths(costs, scenarios.offsets, 2 * scenarios.half, change_cost)
    return scenarios.first + path, ends[np.arange(len(path)), path] - path, cost / scenarios.counts


def _gather_windows(scenarios: _Scenarios, available: Ragged) -> tuple[Reals, Bools]:
    """Return the available bytes from each burst's earliest step on (b, steps), and whether steps are in the width.

    Bytes are 0 outside the run's window and beyond the width.
    """
    counts = scenarios.counts
    column = np.arange(int(scenarios.width.max()))
    run = scenarios.run.repeat(counts)
    steps = scenarios.first[:, None] + column
    is_in = column < scenarios.width.repeat(counts)[:, None]
    is_available = (steps >= 0) & (steps < available.counts[run][:, None]) & is_in
    steps += available.offsets[run][:, None]
    return np.where(is_available, available.values.take(steps, mode="clip"), 0.0), is_in


def _next_pauses(is_low: Bools, count: int) -> Ints:
    """Return for each step (rows, steps) the start of the next `count` low steps in a row; the row length if none."""
    steps = is_low.shape[1]
    # steps after the end count as not low
    cumulative = np.zeros((len(is_low), 1 + steps + count), np.int64)
    np.cumsum(is_low, axis=1, out=cumulative[:, 1 : steps + 1])
    cumulative[:, steps + 1 :] = cumulative[:, steps, None]
    is_pause = cumulative[:, count : steps + count] - cumulative[:, :steps] >= count
    pauses: Ints = np.minimum.accumulate(np.where(is_pause, np.arange(steps), steps)[:, ::-1], axis=1)[:, ::-1]
    return pauses


def _step_costs(
    runs: WindowedRuns, scenarios: _Scenarios, present: Reals, ends: Ints, params: PlacementParams
) -> Reals:
    """Compute the cost of each possible first step of each burst (b, shifts), given the available bytes (b, steps).

    `ends` (b, shifts) is the step before which the burst ends. An incomplete burst counts as having its maximum length.
    """
    burst, counts = scenarios.burst, scenarios.counts
    volume = runs.volume_bytes[burst]
    cumulative = np.zeros((len(burst), present.shape[1] + 1))
    np.cumsum(_limit_rate(present, runs.peak_bytes[burst, None], params), axis=1, out=cumulative[:, 1:])
    before = cumulative[:, : ends.shape[1]]
    window_bytes = np.take_along_axis(cumulative, ends, axis=1) - before
    needed_steps = _steps_to_volume(cumulative, before + _COMPLETE_RATIO * volume[:, None], volume, scenarios.offsets)
    step_counts = np.minimum(needed_steps, scenarios.max_steps[:, None])
    stretch = step_counts / np.maximum(runs.burst_duration[burst, None], 1.0)
    missing = clip(1.0 - window_bytes / volume[:, None], 0.0, 1.0)
    total = np.array([volume[first:last].sum() for first, last in pairwise(scenarios.offsets.tolist())])
    weight = counts.repeat(counts) * volume / total.repeat(counts)
    costs: Reals = (np.log(np.maximum(stretch, 1.0)) + params.missing_cost * missing) * weight[:, None]
    return costs


def _steps_to_volume(cumulative: Reals, target: Reals, volume: Reals, offsets: Ints) -> Ints:
    """Count the steps from each shift until cumulative bytes (b, steps) reach a target (b, shifts).

    The rows of a scenario are raised above each other, so that a single sorted search covers all rows.
    """
    begins, counts = offsets[:-1], np.diff(offsets)
    limit = np.maximum.reduceat(cumulative[:, -1], begins) + np.maximum.reduceat(volume, begins)
    row = places_within(counts)
    base = (row * limit.repeat(counts))[:, None]
    raised_bytes, target = cumulative + base, target + base
    step_counts = np.empty(target.shape, np.int64)
    for first, last in pairwise(offsets.tolist()):
        step_counts[first:last] = (
            raised_bytes[first:last].ravel().searchsorted(target[first:last].ravel()).reshape(last - first, -1)
        )
    step_counts -= row[:, None] * cumulative.shape[1] + np.arange(target.shape[1])
    return step_counts


def _best_paths(costs: Reals, offsets: Ints, last: Ints, change_cost: float) -> tuple[Ints, Reals]:
    """Find the column of each row that minimizes a scenario's sum of costs and column changes, and these sums (f).

    Scenario i has the rows offsets[i] to offsets[i + 1] of `costs` (rows, columns), and columns up to last[i]; further
    costs are infinite. Scenarios with the most rows come first. Two running minima give the distance transform of each
    row in linear time.
    """
    counts, columns = np.diff(offsets), np.arange(costs.shape[1])
    slope: Reals = change_cost * columns.astype(np.float64)
    reversed_slope = slope[np.maximum(last[:, None] - columns, 0)]
    total = costs.copy()
    for row in range(1, int(counts[0])):
        rows = (offsets[:-1] + row)[: np.count_nonzero(counts > row)]
        previous, reversed_rows = total[rows - 1], reversed_slope[: len(rows)]
        # minimum of the previous row's total plus the cost of the change, over lower and over higher columns
        below = np.minimum.accumulate(previous - slope, axis=1) + slope
        above = np.minimum.accumulate((previous - reversed_rows)[:, ::-1], axis=1)[:, ::-1] + reversed_rows
        total[rows] += np.minimum(below, above, out=below)
    ends = offsets[1:] - 1
    path = np.empty(len(costs), np.int64)
    path[ends] = total[ends].argmin(axis=1)
    # predecessors are computed only along the path
    for row in range(int(counts[0]) - 1, 0, -1):
        rows = (offsets[:-1] + row)[: np.count_nonzero(counts > row)]
        path[rows - 1] = _predecessor(total[rows - 1], slope, reversed_slope[: len(rows)], path[rows])
    return path, total[ends].min(axis=1)


def _predecessor(total: Reals, slope: Reals, reversed_slope: Reals, column: Ints) -> Ints:
    """Find the column with the lowest total (f, columns) plus cost of the change to a given column (f).

    Of several such columns, the nearest is returned. `slope` (columns) is the cost of a change from the first column to
    each, `reversed_slope` (f, columns) the cost from each to the last.
    """
    rows, columns, target = np.arange(len(total)), np.arange(total.shape[1]), column[:, None]
    below = np.where(columns <= target, total - slope, np.inf)
    above = np.where(columns >= target, total - reversed_slope, np.inf)
    at_below, at_above = total.shape[1] - 1 - below[:, ::-1].argmin(axis=1), above.argmin(axis=1)
    is_below = below[rows, at_below] + slope[column] <= above[rows, at_above] + reversed_slope[rows, column]
    predecessor: Ints = np.where(is_below, at_below, at_above)
    return predecessor
