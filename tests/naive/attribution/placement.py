"""Naive implementation of `iosig.transforms.attribution.placement`: a loop over runs and bursts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.attribution.placement import PlacementParams

_COMPLETE_RATIO = 0.95


@dataclass(frozen=True, slots=True)
class Run:
    """A run with b bursts; fields as in `WindowedRuns`."""

    started: float
    elapsed: float
    duration: float
    burst_start: Reals
    burst_duration: Reals
    volume_bytes: Reals
    peak_bytes: Reals


@dataclass(frozen=True, slots=True)
class Placement:
    """Placed bursts of a run (b): index, first step, maximum number of steps; and their mean cost."""

    burst: Ints
    step: Ints
    max_steps: Ints
    cost: float


@dataclass(frozen=True, slots=True)
class TakenBytes:
    """Bytes of a run's bursts; fields as in `iosig.transforms.attribution.placement.TakenBytes`."""

    volume_bytes: Reals
    started: Reals
    ended: Reals
    filled_ratio: Reals
    is_attributed: Bools


def place_bursts(run: Run, available: Reals, interval_s: float, params: PlacementParams) -> Placement:
    """Find the steps at which the bursts of a run fit best, in the scenario with the lowest cost."""
    placements = [
        _fit_bursts(run, burst, lateness, available, interval_s, params) for burst, lateness in _scenarios(run, params)
    ]
    return min(placements, key=lambda placement: placement.cost)


def take_bytes(
    run: Run, placement: Placement, available: Reals, params: PlacementParams, is_attributed: Bools | None = None
) -> TakenBytes:
    """Let placed bursts take their bytes in order."""
    remaining, taken = available.copy(), np.zeros(len(available))
    filled_ratio = np.zeros(len(placement.burst))
    is_attributed = np.ones(len(placement.burst), np.bool_) if is_attributed is None else is_attributed
    started, ended = placement.step.astype(np.float64), placement.step.astype(np.float64)
    volumes, peaks = run.volume_bytes.tolist(), run.peak_bytes.tolist()
    rows = zip(placement.burst.tolist(), placement.step.tolist(), placement.max_steps.tolist(), strict=True)
    for index, (burst, step, max_steps) in enumerate(rows):
        first = max(step, 0)
        present = remaining[first : max(step + max_steps, 0)]
        volume, own = volumes[burst], _limit_rate(present, peaks[burst], params)
        cumulative = own.cumsum()
        excess = cumulative - volume
        own -= np.minimum(np.maximum(excess, 0.0, out=excess), own, out=excess)
        if cumulative.size:
            filled_ratio[index] = min(cumulative.item(-1) / volume, 1.0)
            if filled_ratio[index] >= params.min_filled_ratio:
                present -= own
                if is_attributed[index]:
                    taken[first : first + len(own)] += own
            started[index] = first + _time_of_volume(cumulative, (1 - _COMPLETE_RATIO) * volume)
            ended[index] = first + _time_of_volume(cumulative, _COMPLETE_RATIO * volume)
    margin = (ended - started) * (1 - _COMPLETE_RATIO) / (2 * _COMPLETE_RATIO - 1)
    is_attributed = is_attributed & (filled_ratio >= params.min_filled_ratio)
    return TakenBytes(taken, started - margin, ended + margin, filled_ratio, is_attributed)


def _time_of_volume(cumulative: Reals, volume: float) -> float:
    """Fractional step at which cumulative bytes reach a volume."""
    step = int(cumulative.searchsorted(volume))
    if step == len(cumulative):
        return float(step)
    before = cumulative.item(step - 1) if step else 0.0
    return step + (volume - before) / (cumulative.item(step) - before)


def _limit_rate(available: Reals, peak_bytes: Reals | float, params: PlacementParams) -> Reals:
    """Bytes that a burst takes of each step: at most its peak, which decreases with background traffic."""
    limit: Reals = available / peak_bytes
    limit -= 1.0
    np.maximum(limit, 0.0, out=limit)
    limit *= params.contention_ratio
    limit += 1.0
    np.divide(peak_bytes, limit, out=limit)
    return np.minimum(available, limit, out=limit)


def _scenarios(run: Run, params: PlacementParams) -> Iterator[tuple[Ints, Reals]]:
    """Yield alternative scenarios of a run: its completed bursts, and their expected lateness in steps."""
    late = run.elapsed - run.duration
    if late > params.long_ratio * run.duration:
        yield np.arange(len(run.burst_start)), np.zeros(len(run.burst_start))
        return
    if late >= -params.short_ratio * run.duration:
        share = np.minimum((run.burst_start + run.burst_duration / 2) / max(run.duration, 1.0), 1.0)
        yield np.arange(len(run.burst_start)), late * share
        return
    for is_done, each_late in ((run.burst_start < run.elapsed, 0.0), (run.burst_start + late >= 0, late)):
        done = np.flatnonzero(is_done)
        yield done, np.full(len(done), each_late)


def _fit_bursts(
    run: Run, burst: Ints, lateness: Reals, available: Reals, interval_s: float, params: PlacementParams
) -> Placement:
    """Find the best steps of some bursts, given their expected lateness."""
    if not len(burst):
        return Placement(burst, burst, burst, params.missing_cost)
    span_s = (0.05 * run.elapsed + 0.6 * np.ptp(lateness)) * interval_s
    half = max(1, int(np.clip(span_s, params.min_lateness_s, params.max_lateness_s) / interval_s))
    first = np.rint(run.started + run.burst_start[burst] + lateness).astype(np.int64) - half
    max_steps = np.ceil(params.max_stretch * run.burst_duration[burst] + params.extra_s / interval_s).astype(np.int64)
    present = _gather_window(first, 2 * half + 1 + int(max_steps.max()), available)
    pauses = _next_pauses(
        present < params.pause_ratio * run.peak_bytes[burst, None], max(1, round(params.pause_s / interval_s))
    )
    places = np.arange(2 * half + 1)
    ends = np.minimum(places + max_steps[:, None], pauses[:, : len(places)])
    costs = _step_costs(run, burst, present, (max_steps, ends), params)
    costs += params.lateness_cost * interval_s * np.abs(places - half)
    path, cost = _best_path(costs, params.lateness_change_cost * interval_s)
    return Placement(burst, first + path, ends[np.arange(len(burst)), path] - path, cost / len(burst))


def _gather_window(first: Ints, count: int, available: Reals) -> Reals:
    """Available bytes in `count` steps from each first step (bursts, count); 0 outside the run."""
    steps = first[:, None] + np.arange(count)
    is_present = (steps >= 0) & (steps < len(available))
    result: Reals = np.where(is_present, available[np.clip(steps, 0, len(available) - 1)], 0.0)
    return result


def _next_pauses(is_low: Bools, count: int) -> Ints:
    """Start of the next `count` consecutive low steps from each step; the length of the row if none."""
    steps = is_low.shape[1]
    # Steps beyond the end are not low.
    cumulative = np.zeros((len(is_low), 1 + steps + count), np.int64)
    np.cumsum(is_low, axis=1, out=cumulative[:, 1 : steps + 1])
    cumulative[:, steps + 1 :] = cumulative[:, steps, None]
    begins = cumulative[:, count : steps + count] - cumulative[:, :steps] >= count
    result: Ints = np.minimum.accumulate(np.where(begins, np.arange(steps), steps)[:, ::-1], axis=1)[:, ::-1]
    return result


def _step_costs(run: Run, burst: Ints, present: Reals, until: tuple[Ints, Ints], params: PlacementParams) -> Reals:
    """Cost of each first step of each burst (bursts, shifts), given the available bytes (bursts, steps).

    `until` is the maximum number of steps (bursts), and the step before which each burst ends (bursts, shifts).
    """
    max_steps, ends = until
    volume = run.volume_bytes[burst, None]
    filled_ratio = np.zeros((len(burst), present.shape[1] + 1))
    np.cumsum(_limit_rate(present, run.peak_bytes[burst, None], params), axis=1, out=filled_ratio[:, 1:])
    places = np.arange(ends.shape[1])
    before = filled_ratio[:, : len(places)]
    rows = np.arange(len(burst))[:, None]
    taken = filled_ratio[rows, ends] - before
    # Rows are offset from each other, so that a single sorted search covers all of them.
    base = rows * (filled_ratio[:, -1].max() + volume.max())
    full = (filled_ratio + base).ravel().searchsorted((before + _COMPLETE_RATIO * volume + base).ravel())
    needed = full.reshape(before.shape) - rows * filled_ratio.shape[1] - places
    stretch = np.minimum(needed, max_steps[:, None]) / np.maximum(run.burst_duration[burst, None], 1.0)
    missing = np.clip(1.0 - taken / volume, 0.0, 1.0)
    costs: Reals = (np.log(np.maximum(stretch, 1.0)) + params.missing_cost * missing) * (
        len(burst) * volume / volume.sum()
    )
    return costs


def _best_path(costs: Reals, change_cost: float) -> tuple[Ints, float]:
    """Column of each row with the minimum sum of costs and column changes, and this sum."""
    slope: Reals = change_cost * np.arange(costs.shape[1], dtype=np.float64)
    total = costs.copy()
    # Minimum over the previous row of its total plus the cost of the change, from below and from above.
    ways = np.empty((2, costs.shape[1]))
    below, above = ways[0], ways[1, ::-1]
    for before, now in pairwise(total):
        np.subtract(before, slope, out=below)
        np.subtract(before[::-1], slope, out=ways[1])
        np.minimum.accumulate(ways, axis=1, out=ways)
        ways += slope
        now += np.minimum(below, above, out=below)
    path = np.full(len(total), int(total[-1].argmin()))
    # Predecessors are computed only along the path.
    for row in range(len(total) - 1, 0, -1):
        path[row - 1] = _predecessor(total[row - 1], slope, int(path[row]))
    return path, float(total[-1].min())


def _predecessor(total: Reals, slope: Reals, place_bursts: int) -> int:
    """Column with the minimum total plus change to the given column; the nearest of equal columns."""
    count = len(total) - place_bursts
    # Both start at the given column, so that the first of equal columns is the nearest.
    below = (total[: place_bursts + 1] - slope[: place_bursts + 1])[::-1]
    above = total[::-1][:count] - slope[:count]
    above = above[::-1]
    at_below, at_above = int(below.argmin()), int(above.argmin())
    if below.item(at_below) + slope.item(place_bursts) <= above.item(at_above) + slope.item(-1 - place_bursts):
        return place_bursts - at_below
    return place_bursts + at_above
