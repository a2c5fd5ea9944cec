"""Align runs with a template: find when each run starts each burst.

Interference is additive, so a run is as busy as the template, or busier, during a burst. Contention only delays, so a
run may fall behind the template at each burst, and hardly ever catches up. Each burst has a score for each possible
start in a run; dynamic programming (Viterbi) finds the path with the highest total score. Then each start is refined to
the rising edge of its burst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, clip
from iosig.transforms.signatures.preprocessing import nan_median_or_zero
from iosig.transforms.signatures.robust_template import Template


@dataclass(frozen=True, slots=True)
class AlignmentParams:
    """Constants of the alignment, chosen on simulated sites. Scores are relative to the volume of the burst.

    Attributes
    ----------
    excess_weight
        Cost of a byte above the template; a missing byte costs 1.
    edge_weight
        Weight of the rise at the start of a burst.
    max_edge_s
        Maximum time before and after a start in which the rise is measured, limited to half of the burst [s].
    margin_s
        Duration of the expected quiet time before and after a burst [s].
    later_cost, earlier_cost
        Cost of falling behind or catching up by one standard deviation.
    min_deviation_s, drift_ratio, stretch_ratio
        Standard deviation between two bursts: a constant [s], plus a fraction of the time between them, plus, for
        delays, a fraction of the previous burst's duration.
    min_window_s, window_ratio
        Search range around the template: a constant [s], plus a fraction of the run's duration.
    """

    excess_weight: float = 0.2
    edge_weight: float = 0.7
    max_edge_s: float = 6.0
    margin_s: float = 6.0
    later_cost: float = 0.25
    earlier_cost: float = 0.5
    min_deviation_s: float = 4.0
    drift_ratio: float = 0.005
    stretch_ratio: float = 0.25
    min_window_s: float = 10.0
    window_ratio: float = 0.02


PARAMS = AlignmentParams()


def find_burst_starts(
    rates: Reals, template: Template, max_delay: int, step_s: float, sums: Reals | None = None
) -> Reals:
    """Find when each run starts each burst of a template.

    Parameters
    ----------
    rates : (runs, steps)
        Mean rates over steps from the run's start, background subtracted [bytes per second].
    template
        The n bursts, in steps.
    max_delay
        Maximum delay of a burst relative to the template, in steps.
    step_s
        Length of a step [s].
    sums : (runs, steps + 1), optional
        The `cumulative_sums` of the rates, for repeated calls.

    Returns
    -------
    (runs, n)
        Starts in fractional steps since the run's start; they do not decrease within a run.
    """
    margin = int(PARAMS.min_window_s / step_s + PARAMS.window_ratio * rates.shape[1])
    offsets = np.arange(-margin, margin + max_delay + 1)
    reach = np.minimum(np.maximum(template.length // 2, 2), max(2, round(PARAMS.max_edge_s / step_s)))
    fits, rises = _score_offsets(rates, template, reach, offsets, step_s)
    path = _find_best_path(fits + PARAMS.edge_weight * rises, offsets, template, step_s)
    path += _shift_to_rise(rises, path, template, step_s)
    begun = template.first + offsets[0] + path.astype(np.float64)
    sums = cumulative_sums(rates) if sums is None else sums
    begun += _refine_within_step(sums, begun, template.height, clip(reach, 3.0 / step_s, 6.0 / step_s))
    return np.maximum.accumulate(begun, axis=1)


def _score_offsets(
    rates: Reals, template: Template, reaches: Ints, offsets: Ints, step_s: float
) -> tuple[Reals, Reals]:
    """Score how well each burst fits each run at each offset, and its rise there (runs, bursts, offsets).

    The score 1 is a perfect fit, or an immediate rise. reaches (bursts): number of steps before and after a start in
    which the rise is measured.
    """
    run_count, count = rates.shape
    margin = max(1, round(PARAMS.margin_s / step_s))
    fits = np.empty((run_count, len(template.first), len(offsets)))
    rises = np.empty_like(fits)
    # zeros before and after the run, as far as the search reaches
    before = max(0, margin + int((reaches - template.first).max()) - int(offsets[0]))
    after = max(0, margin + int((reaches + template.first + template.length).max()) + int(offsets[-1]) - count)
    padded = np.zeros((run_count, before + count + after))
    padded[:, before : before + count] = rates
    boxes = zip(
        template.first.tolist(), template.height.tolist(), template.length.tolist(), reaches.tolist(), strict=True
    )
    for place, (first, height, length, reach) in enumerate(boxes):
        lead = margin + reach
        low = before + first + int(offsets[0]) - lead
        part = padded[:, low : low + len(offsets) - 1 + length + 2 * lead]
        clipped, extra = cumulative_sums(np.minimum(part, height)), cumulative_sums(np.minimum(part, 2 * height))
        begin, end = (slice(at, at + len(offsets)) for at in (lead, lead + length))
        inside = clipped[:, end] - clipped[:, begin]
        excess = extra[:, end] - extra[:, begin] - inside
        around = clipped[:, begin] - clipped[:, reach : reach + len(offsets)]
        around += clipped[:, lead + length + margin :][:, : len(offsets)]
        around -= clipped[:, end]
        fits[:, place] = (inside - PARAMS.excess_weight * (excess + around)) / (height * length)
        rise = clipped[:, lead + reach :][:, : len(offsets)] - 2 * clipped[:, begin]
        rise += clipped[:, margin : margin + len(offsets)]
        rises[:, place] = rise / (height * reach)
    return fits, rises


def _find_best_path(scores: Reals, offsets: Ints, template: Template, step_s: float) -> Ints:
    """Find the indices of offsets (runs, bursts) with the highest total score minus the cost of changes."""
    run_count, burst_count, offset_count = scores.shape
    place = np.arange(offset_count, dtype=np.float64)
    gap_s = template.first * step_s
    gap_s[1:] = (template.first[1:] - template.first[:-1]) * step_s
    before_s = np.concatenate([[0.0], (template.last - template.first)[:-1] * step_s])
    deviation_s = PARAMS.min_deviation_s + PARAMS.drift_ratio * gap_s
    later = PARAMS.later_cost * step_s / (deviation_s + PARAMS.stretch_ratio * before_s)
    earlier = PARAMS.earlier_cost * step_s / deviation_s
    sums = np.empty_like(scores)
    sums[:, 0] = scores[:, 0] - np.where(offsets > 0, later[0] * offsets, -earlier[0] * offsets)
    for burst in range(1, burst_count):
        up, down = later[burst] * place, earlier[burst] * place
        best = np.maximum.accumulate(sums[:, burst - 1] + up, axis=1) - up
        back = np.maximum.accumulate((sums[:, burst - 1] - down)[:, ::-1], axis=1)[:, ::-1] + down
        sums[:, burst] = np.maximum(best, back) + scores[:, burst]
    path = np.empty((run_count, burst_count), dtype=np.int64)
    path[:, -1] = sums[:, -1].argmax(axis=1)
    for burst in range(burst_count - 2, -1, -1):
        change = path[:, burst + 1, None] - place
        cost = np.where(change > 0, later[burst + 1] * change, -earlier[burst + 1] * change)
        path[:, burst] = (sums[:, burst] - cost).argmax(axis=1)
    return path


# ---- edges


def _shift_to_rise(rises: Reals, path: Ints, template: Template, step_s: float) -> Ints:
    """Compute the shift of each start to the steepest rise nearby, in steps (runs, bursts).

    If the template's start is wrong, most runs need the same shift. A run that has no clear rise near this shift takes
    it, too.
    """
    halves = np.minimum(12.0 / step_s, template.length / 2 + 3.0 / step_s).astype(np.int64)
    shifts = np.arange(-int(halves.max()), int(halves.max()) + 1)
    run_count, burst_count, offset_count = rises.shape
    at = path[:, :, None] + shifts
    is_near = (np.abs(shifts) <= halves[:, None]) & (at >= 0) & (at < offset_count)
    row = np.arange(run_count * burst_count).reshape(run_count, burst_count, 1)
    # distant values are masked, so their indices only need to be valid
    near = np.where(is_near, rises.ravel().take(row * offset_count + at, mode="clip"), -np.inf)
    best = near.argmax(axis=2)
    shift = shifts.take(best)
    is_clear = near.ravel().take(row[:, :, 0] * len(shifts) + best) > 0.5
    mode = _estimate_mode(shift, is_clear, 2.0 / step_s)
    shift = np.where(is_clear & (np.abs(shift - mode) <= 3.0 / step_s), shift, np.rint(mode)).astype(np.int64)
    has_enough = is_clear.sum(axis=0) >= np.maximum(2.0, 0.4 * len(path))
    bounded: Ints = np.minimum(np.maximum(np.where(has_enough, shift, 0), -path), rises.shape[2] - 1 - path)
    return bounded


def _estimate_mode(values: Ints, mask: Bools, width: float) -> Reals:
    """Estimate the mode of the marked values of each column: the median of the densest values; 0 if none is marked.

    The densest values are those with the most neighbors within a width, together with these neighbors.
    """
    pairs = (np.abs(values[:, None] - values) <= width) & mask[:, None] & mask
    neighbors = pairs.sum(axis=1)
    is_densest = neighbors == neighbors.max(axis=0)
    return nan_median_or_zero(np.where((pairs & is_densest[:, None]).any(axis=0), values, np.nan))


def _refine_within_step(sums: Reals, at: Reals, height: Reals, reach: Reals) -> Reals:
    """Compute the fractional shift of each start (runs, bursts) at which a sharp edge gives the measured volume.

    A sharp edge separates the rate before it from the rate after it. at: starts, as positions in the cumulative
    `sums`. height, reach (bursts): height of each burst, and number of steps on either side of a start.
    """
    half = reach / 2
    shift_to = np.array([-half - reach, -half, half, reach])[:, None, :]
    far, low, high, end = interpolate_sums(sums, at + shift_to)
    before = np.maximum((low - far) / reach, 0.0)
    rise = (end - high) / (reach - half) - before
    area = high - low - before * 2 * half
    is_clear = rise > 0.3 * height
    shift = clip(half - np.divide(area, rise, out=np.zeros_like(area), where=is_clear), -half, half)
    common = nan_median_or_zero(np.where(is_clear, shift, np.nan))
    return np.where(is_clear & (np.abs(shift - common) < 2.5), shift, common)


# ---- cumulative sums


def cumulative_sums(values: Reals) -> Reals:
    """Cumulative sums along rows (n, steps), with a leading zero (n, steps + 1)."""
    sums = np.zeros((values.shape[0], values.shape[1] + 1))
    values.cumsum(axis=1, out=sums[:, 1:])
    return sums


def interpolate_sums(sums: Reals, at: Reals) -> Reals:
    """Interpolate cumulative sums linearly at fractional steps, constant outside.

    Parameters
    ----------
    sums : (n, steps + 1)
        Result of `cumulative_sums` for one step or more.
    at : (..., n, places)
        Places to read in each row, in steps.

    Returns
    -------
    (..., n, places)
    """
    width, flat = sums.shape[1], sums.ravel()
    fraction = np.maximum(at, 0.0)
    np.minimum(fraction, width - 1, out=fraction)
    whole = fraction.astype(np.int64)
    np.minimum(whole, width - 2, out=whole)
    fraction -= whole
    whole += np.arange(len(sums))[:, None] * width
    low = flat.take(whole)
    whole += 1
    # in place, since one array per operation takes 50 % longer
    read: Reals = flat.take(whole)
    read -= low
    read *= fraction
    read += low
    return read
