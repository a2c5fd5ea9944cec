"""Alignment: when each run reaches each burst of a template.

Foreign traffic only adds, so a burst is where the run is at least as busy as the template; contention only delays, so
a run may fall back behind the template at each burst, and hardly ever catches up. Each burst has a score for each
place where it may begin in a run, the path through all of them that is best in sum is found by dynamic programming
(Viterbi), and then each place is moved to the edge that the burst's rise makes.
"""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, clipped
from iosig.transforms.signatures.preprocessing import medians
from iosig.transforms.signatures.robust_template import Template

# All numbers here are ours, and were chosen on simulated sites.

#: what a byte beyond the template costs, where one that is missing costs 1
EXCESS_WEIGHT = 0.2
#: what the rise at a burst's start counts, over the burst's volume
_EDGE_WEIGHT = 0.7
#: the time before and after a start whose rates are compared, half of the burst at most
_EDGE_S = 6.0
#: the time around a burst in which it should be quiet
MARGIN_S = 6.0
#: what it costs to fall back or to catch up by the usual deviation
LATER_COST, EARLIER_COST = 0.25, 0.5
#: the usual deviation between two bursts: at least, for each second between them, for each second of the burst before
DEVIATION_S, DRIFT_RATIO, STRETCH_RATIO = 4.0, 0.005, 0.25
#: how far from the template a burst is sought: at least, and per second since the start
_WINDOW_S, _WINDOW_RATIO = 10.0, 0.02


def starts(rates: Reals, template: Template, latest: int, step_s: float, total: Reals | None = None) -> Reals:
    """Return when each run begins each burst.

    Parameters
    ----------
    rates : shape (runs, steps), in bytes per second, mean rates over steps of step_s from the run's start, foreign
        background left out
    template : bursts (n) in a run's own steps
    latest : how many steps a burst may come after its place in the template, at most
    total : shape (runs, steps + 1), the rates' running totals, for who asks more than once

    Returns
    -------
    Reals : shape (runs, n), in steps since the run's start, not falling

    """
    margin = int(_WINDOW_S / step_s + _WINDOW_RATIO * rates.shape[1])
    offsets = np.arange(-margin, margin + latest + 1)
    reach = np.minimum(np.maximum(template.length // 2, 2), max(2, round(_EDGE_S / step_s)))
    fits, rises = _fits(rates, template, reach, offsets, step_s)
    path = _best_path(fits + _EDGE_WEIGHT * rises, offsets, template, step_s)
    path += _to_rise(rises, path, template, step_s)
    begun = template.first + offsets[0] + path.astype(np.float64)
    total = running_totals(rates) if total is None else total
    begun += _within_rise(total, begun, template.height, clipped(reach, 3.0 / step_s, 6.0 / step_s))
    return np.maximum.accumulate(begun, axis=1)


def _fits(rates: Reals, template: Template, reaches: Ints, offsets: Ints, step_s: float) -> tuple[Reals, Reals]:
    """Return how well each burst fits each run at each offset, 1 at best, and how it rises there, 1 if at once.

    Both (runs, bursts, offsets). reaches (bursts): how many steps before and after a start tell of the rise.
    """
    run_count, count = rates.shape
    margin = max(1, round(MARGIN_S / step_s))
    fits = np.empty((run_count, len(template.first), len(offsets)))
    rises = np.empty_like(fits)
    # what a burst may meet, wherever it is sought: nothing before and after the run
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
        clipped, extra = running_totals(np.minimum(part, height)), running_totals(np.minimum(part, 2 * height))
        begin, end = (slice(at, at + len(offsets)) for at in (lead, lead + length))
        inside = clipped[:, end] - clipped[:, begin]
        over = extra[:, end] - extra[:, begin] - inside
        around = clipped[:, begin] - clipped[:, reach : reach + len(offsets)]
        around += clipped[:, lead + length + margin :][:, : len(offsets)]
        around -= clipped[:, end]
        fits[:, place] = (inside - EXCESS_WEIGHT * (over + around)) / (height * length)
        rise = clipped[:, lead + reach :][:, : len(offsets)] - 2 * clipped[:, begin]
        rise += clipped[:, margin : margin + len(offsets)]
        rises[:, place] = rise / (height * reach)
    return fits, rises


def _best_path(scores: Reals, offsets: Ints, template: Template, step_s: float) -> Ints:
    """Return the offsets' places (runs, bursts) whose scores are the highest in sum, less the costs of changing."""
    run_count, burst_count, offset_count = scores.shape
    place = np.arange(offset_count, dtype=np.float64)
    gap_s = template.first * step_s
    gap_s[1:] = (template.first[1:] - template.first[:-1]) * step_s
    before_s = np.concatenate([[0.0], (template.last - template.first)[:-1] * step_s])
    usual_s = DEVIATION_S + DRIFT_RATIO * gap_s
    later = LATER_COST * step_s / (usual_s + STRETCH_RATIO * before_s)
    earlier = EARLIER_COST * step_s / usual_s
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


def _to_rise(rises: Reals, path: Ints, template: Template, step_s: float) -> Ints:
    """Return how many steps each start moves to the steepest rise around it (runs, bursts).

    A run whose rise is elsewhere than most runs' moves as far as they do: the template's own start was early or late.
    """
    halves = np.minimum(12.0 / step_s, template.length / 2 + 3.0 / step_s).astype(np.int64)
    shifts = np.arange(-int(halves.max()), int(halves.max()) + 1)
    run_count, burst_count, offset_count = rises.shape
    at = path[:, :, None] + shifts
    is_near = (np.abs(shifts) <= halves[:, None]) & (at >= 0) & (at < offset_count)
    own = np.arange(run_count * burst_count).reshape(run_count, burst_count, 1)
    # what is not near is never looked at, whatever it is: places are only to exist
    near = np.where(is_near, rises.ravel().take(own * offset_count + at, mode="clip"), -np.inf)
    best = near.argmax(axis=2)
    shift = shifts.take(best)
    is_clear = near.ravel().take(own[:, :, 0] * len(shifts) + best) > 0.5
    common = _commonest(shift, is_clear, 2.0 / step_s)
    found = np.where(is_clear & (np.abs(shift - common) <= 3.0 / step_s), shift, np.rint(common)).astype(np.int64)
    is_told = is_clear.sum(axis=0) >= np.maximum(2.0, 0.4 * len(path))
    moved: Ints = np.minimum(np.maximum(np.where(is_told, found, 0), -path), rises.shape[2] - 1 - path)
    return moved


def _commonest(values: Ints, counts: Bools, width: float) -> Reals:
    """Return, of those of each column that count, the median of the densest ones; 0 where none counts.

    The densest are those with the most others within a width, and these others.
    """
    pairs = (np.abs(values[:, None] - values) <= width) & counts[:, None] & counts
    neighbours = pairs.sum(axis=1)
    is_densest = neighbours == neighbours.max(axis=0)
    return medians(np.where((pairs & is_densest[:, None]).any(axis=0), values, np.nan))


def _within_rise(total: Reals, at: Reals, height: Reals, reach: Reals) -> Reals:
    """Return by what fraction of steps each start moves so that the bytes around it are those of a sharp edge.

    The edge between a rate before and one after lies where both sides' volumes add up to what was moved. at (runs,
    bursts); height, reach (bursts).
    """
    half = reach / 2
    shift_to = np.array([-half - reach, -half, half, reach])[:, None, :]
    far, low, high, end = read_totals(total, at + shift_to)
    before = np.maximum((low - far) / reach, 0.0)
    rise = (end - high) / (reach - half) - before
    area = high - low - before * 2 * half
    is_clear = rise > 0.3 * height
    shift = clipped(half - np.divide(area, rise, out=np.zeros_like(area), where=is_clear), -half, half)
    common = medians(np.where(is_clear, shift, np.nan))
    return np.where(is_clear & (np.abs(shift - common) < 2.5), shift, common)


# ---- running totals


def running_totals(values: Reals) -> Reals:
    """Return the running totals of rows (n, steps), with a zero before them (n, steps + 1)."""
    total = np.zeros((values.shape[0], values.shape[1] + 1))
    values.cumsum(axis=1, out=total[:, 1:])
    return total


def read_totals(total: Reals, at: Reals) -> Reals:
    """Return running totals (n, steps + 1) at fractions of steps (..., n, places): between steps linear, flat outside.

    At least one step.
    """
    width, flat = total.shape[1], total.ravel()
    share = np.maximum(at, 0.0)
    np.minimum(share, width - 1, out=share)
    whole = share.astype(np.int64)
    np.minimum(whole, width - 2, out=whole)
    share -= whole
    whole += np.arange(len(total))[:, None] * width
    low = flat.take(whole)
    whole += 1
    # all in place: with an array for each step it takes half as long again
    read: Reals = flat.take(whole)
    read -= low
    read *= share
    read += low
    return read
