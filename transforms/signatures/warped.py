"""Warped runs: where in each run each moment of the application is, by what overlaps.

Runs are brought to one duration first (`stretched`), and then each is shifted against what all of them have in common,
by more or less along its way: dynamic programming finds the shifts that overlap most. A byte of the common curve that a
run lacks costs most, one that only the run has costs little, since it may be foreign; and to change the shift costs, so
that no run follows the noise. The runs' mean clock is the median of their shifts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from transforms.arrays import AnyReals, Reals
from transforms.signatures.averages import quantile_of, quantiles, without_gaps
from transforms.signatures.bursts import height
from transforms.signatures.robust_alignment import running_totals
from transforms.signatures.sample_sets import SampleSet
from transforms.signatures.signature import Signature
from transforms.signatures.stretched import Stretched, floored, on_one_clock, signature_of

# All numbers here are ours, and were chosen on the families of simulated sites, on other seeds than the study's.

#: runs of the warp have no more steps; a shift is found for so many of them at once
_MOST_STEPS, _BLOCK = 1000, 9
#: how often the common curve is made anew
_ROUNDS = 2
#: where others are at work for less of the time, single runs are tried as a start, so many of the cleanest, if all of
#: them have less in common than this share of what a clean one moves; but not so little that most must be others'
_CALM_RATIO, _TRIED_RUNS, _TOLD_SHARE, _FOREIGN_SHARE = 0.35, 2, 0.85, 0.5
#: and only if runs are off by less than this share of the reach in the mean: others' bursts lie anywhere
_NEAR_SHARE = 0.2
#: before any shift is known, rates are smoothed over this time
_SMOOTH_S = 10.0
#: rates above so many times the height of what the runs have in common count as much
_MOST_HEIGHTS = 1.5
#: what a byte beyond the common curve costs, where one that is missing costs 1
_EXCESS_COST = 0.15
#: what it costs to change the shift by a step, in steps at the highest rate
_CHANGE_COST = 0.3
#: how far a run may be off: at least, and of the duration
_REACH_S, _REACH_RATIO = 15.0, 0.02


def warped(one: SampleSet) -> Signature:
    """Return the signature of runs that are shifted along their way to where they overlap most."""
    runs = on_one_clock(one)
    return Signature.nothing("too_few_samples") if runs is None else signature_of(warp(runs))


def warp(runs: Stretched) -> Stretched:
    """Return runs, shifted to where they overlap most."""
    known = without_gaps(runs.rates)
    highest = _MOST_HEIGHTS * height(runs.curve[0])
    if not highest > 0:
        return runs
    factor = max(1, -(-known.shape[1] // _MOST_STEPS))
    coarse = _coarse(np.minimum(known, highest) / highest, factor)
    shift = _best_shifts(coarse, runs.level, factor * runs.step_s, is_calm=runs.foreign_ratio < _CALM_RATIO)
    count = known.shape[1]
    places = (np.arange(count) + 0.5) / factor - 0.5
    shift = factor * _between(shift, places)
    left = np.arange(count) + shift
    others = None if runs.others is None else _shifted(runs.others, left)
    return replace(runs, rates=_shifted(runs.rates, left), shift=shift, others=others)


def _shifted(rates: Reals, left: Reals) -> Reals:
    """Return rates of steps that begin elsewhere (runs, steps), NaN where most of one was not measured."""
    is_known = np.isfinite(rates)
    if is_known.all():
        known, share = _read(rates, left), _share_inside(left)
    else:
        known, share = (_read(values, left) for values in (np.nan_to_num(rates), is_known.astype(np.float64)))
    return np.where(share > 0.5, known / np.maximum(share, 0.5), np.nan)


def _share_inside(left: Reals) -> Reals:
    """Return how much of steps that begin elsewhere (runs, steps) lies within the run: `_read` of nothing but ones."""
    count = left.shape[1]
    places = np.clip(left, -1.0, count) + 1.0
    found: Reals = np.minimum(np.minimum(places, 1.0), 1.0 - (places - count))
    return found


def _coarse(rates: Reals, factor: int) -> Reals:
    """Return the means of so many steps each; the last one may have fewer."""
    count = -(-rates.shape[1] // factor)
    padded = np.zeros((len(rates), count * factor))
    padded[:, : rates.shape[1]] = rates
    found: Reals = padded.reshape(len(rates), count, factor).mean(axis=2)
    return found


def _between(rows: Reals, places: Reals) -> Reals:
    """Return rows (n, steps) at fractions of steps (places), linear between them and flat outside."""
    low = np.clip(np.floor(places), 0, max(rows.shape[1] - 2, 0)).astype(np.int64)
    share = np.clip(places - low, 0.0, 1.0)
    high = np.minimum(low + 1, rows.shape[1] - 1)
    found: Reals = rows.take(low, axis=1) * (1.0 - share) + rows.take(high, axis=1) * share
    return found


def _read(rates: Reals, left: Reals) -> Reals:
    """Return mean rates of steps that begin elsewhere (runs, steps): of two neighbours' in part; none beyond the ends.

    left (runs, steps), in steps.
    """
    run_count, count = rates.shape
    padded = np.zeros((run_count, count + 3))
    padded[:, 1:-2] = rates
    places = np.clip(left, -1.0, count) + 1.0
    whole = places.astype(np.int64)
    share = places - whole
    whole += np.arange(run_count)[:, None] * (count + 3)
    flat = padded.ravel()
    low = flat.take(whole)
    found: Reals = low + share * (flat.take(whole + 1) - low)
    return found


def _best_shifts(rates: Reals, level: float, step_s: float, *, is_calm: bool) -> Reals:
    """Return shifts, from what unshifted runs have in common, or from one run if that explains more.

    Short bursts that wander by more than their width have nothing in common unshifted; where others are seldom at work,
    what a single run does is all its own.
    """
    found, told = _shifted_and_told(rates, level, step_s)
    volume = rates.sum(axis=1)
    share = told / max(quantile_of(volume, 0.2), 1e-300)
    if not is_calm or not _FOREIGN_SHARE < share < _TOLD_SHARE:
        return found
    for run in np.argsort(volume, kind="stable")[:_TRIED_RUNS]:
        other, other_told = _shifted_and_told(rates, level, step_s, floored(rates[run])[0])
        is_near = float(np.abs(other).mean()) < _NEAR_SHARE * _reach(rates.shape[1], step_s)
        if is_near and other_told > told:
            found, told = other, other_told
    return found


def _reach(count: int, step_s: float) -> int:
    """Return by how many steps a run may be off."""
    return max(2, int(np.ceil((_REACH_S + _REACH_RATIO * count * step_s) / step_s)))


def shifts(rates: Reals, level: float, step_s: float, start: Reals | None = None) -> Reals:
    """Return by how many steps each run is later than all of them together at each step (runs, steps).

    rates (runs, steps): on one clock, 1 at the most. level: the quantile across runs that they have in common. start
    (steps): what they are shifted against first; what they have in common unshifted if None.
    """
    return _shifted_and_told(rates, level, step_s, start)[0]


def _shifted_and_told(rates: Reals, level: float, step_s: float, start: Reals | None = None) -> tuple[Reals, float]:
    """Return the shifts of runs, as `shifts` does, and how much the shifted runs have in common."""
    from scipy.ndimage import uniform_filter1d

    count = rates.shape[1]
    reach = _reach(count, step_s)
    common = start
    if common is None:
        smooth = uniform_filter1d(rates, max(1, round(_SMOOTH_S / step_s)), axis=1)
        common = floored(quantiles(smooth, level))[0]
    found = np.zeros(rates.shape)
    if not common.any():
        return found, float(floored(quantiles(rates, level))[0].sum())
    for _ in range(_ROUNDS):
        found = _by_the_mean_clock(_overlapping(rates, common, reach))
        common, _ = floored(quantiles(_read(rates, np.arange(count) + found), level))
        if not common.any():
            break
    return found, float(common.sum())


def _by_the_mean_clock(shift: Reals) -> Reals:
    """Return shifts against the runs' median clock."""
    steps = np.arange(shift.shape[1], dtype=np.float64)
    clock = np.maximum.accumulate(steps + quantiles(shift, 0.5))
    return _interpolated(steps, clock, steps + shift) - steps


def _interpolated(at: Reals, places: Reals, rows: Reals) -> Reals:
    """Return rows (n, places) at other places (at), linear between them and flat outside, as `numpy.interp` does.

    Once for all rows: which places each lies between, and how far, is the same in all of them.
    """
    last = len(places) - 1
    low = np.clip(np.searchsorted(places, at, side="right") - 1, 0, last)
    high = np.minimum(low + 1, last)
    is_between = (at > places[low]) & (low < last)
    width = np.where(is_between, places[high] - places[low], 1.0)
    left = rows.take(low, axis=1)
    found: Reals = (rows.take(high, axis=1) - left) / width * np.where(is_between, at - places[low], 0.0) + left
    return found


def _overlapping(rates: Reals, common: Reals, reach: int) -> Reals:
    """Return the shifts with which runs overlap most with what they have in common (runs, steps)."""
    # in single precision: shifts that are to be told apart differ by more
    path = best_path(overlaps(rates.astype(np.float32), common, reach))
    return _between(path, (np.arange(rates.shape[1]) - (_BLOCK - 1) / 2) / _BLOCK)


def overlaps(rates: AnyReals, common: Reals, reach: int) -> AnyReals:
    """Return how well runs overlap with what they have in common (runs, blocks, shifts), 0 at best.

    rates (runs, steps), common (steps): in one unit. What a run lacks of it counts in full, what it has beyond it a
    share. That is the same as: all that a run has counts that share, and what it has in common much more; and the
    second is asked only where there is something in common. In the precision of the rates.
    """
    run_count, count = rates.shape
    block_count, width = -(-count // _BLOCK), 2 * reach + 1
    padded = np.zeros((run_count, block_count * _BLOCK + 2 * reach), dtype=rates.dtype)
    padded[:, reach : reach + count] = rates
    total = running_totals(padded)
    beyond = np.empty((run_count, block_count, width))
    ahead = _windows(total, block_count, width)
    np.subtract(ahead[:, 1:], ahead[:, :-1], out=beyond[:, :-1])
    # of a last block with fewer steps, only these
    np.subtract(total[:, count : count + width], ahead[:, -1], out=beyond[:, -1])
    beyond *= -_EXCESS_COST
    found = beyond.astype(rates.dtype)
    levels = np.zeros(block_count * _BLOCK, dtype=rates.dtype)
    levels[:count] = common
    levels = levels.reshape(-1, _BLOCK)
    blocks = np.flatnonzero(levels.any(axis=1))
    if len(blocks):
        levels = levels[blocks]
        # what a block may meet, once: its steps are windows of that
        met = _windows(padded, block_count, width + _BLOCK - 1)[:, blocks]
        shared = np.minimum(met[:, :, :width], levels[:, 0, None])
        own = np.empty_like(shared)
        for step in range(1, _BLOCK):
            shared += np.minimum(met[:, :, step : step + width], levels[:, step, None], out=own)
        shared *= rates.dtype.type(1.0 + _EXCESS_COST)
        shared -= levels.sum(axis=1)[:, None]
        found[:, blocks] += shared
    return found


def _windows(rows: AnyReals, block_count: int, width: int) -> AnyReals:
    """Return what lies from each block's first step on (runs, blocks, width): a view of rows (runs, steps)."""
    row, step = rows.strides
    return np.lib.stride_tricks.as_strided(
        rows, (len(rows), block_count, width), (row, _BLOCK * step, step), writeable=False
    )


def best_path(scores: AnyReals) -> Reals:
    """Return the shifts (runs, blocks) whose scores (runs, blocks, shifts) are the highest in sum, less the changes.

    The middle one of the shifts is none. Viterbi; a change costs in proportion, so that a running maximum finds the
    best way to each shift.
    """
    run_count, _, width = scores.shape
    place = np.arange(width)
    slope = (_CHANGE_COST * place).astype(scores.dtype)
    slopes = np.stack([slope, -1 * slope[::-1]])[:, None]
    costs = (_CHANGE_COST * np.abs(place[:, None] - place)).astype(scores.dtype)
    sums = scores.transpose(1, 0, 2).copy()
    sums[0] -= costs[width // 2]
    # both ways at once, in one place: this is where the time goes
    ways = np.empty((2, run_count, width), dtype=scores.dtype)
    later, earlier = ways[0], ways[1, :, ::-1]
    for before, now in pairwise(sums):
        np.add(before, slope, out=later)
        np.subtract(before, slope, out=earlier)
        np.maximum.accumulate(ways, axis=2, out=ways)
        np.subtract(ways, slopes, out=ways)
        now += np.maximum(later, earlier, out=later)
    at = sums[-1].argmax(axis=1)
    path = [at]
    for own in sums[-2::-1]:
        at = (own - costs.take(at, axis=0)).argmax(axis=1)
        path.append(at)
    found: Reals = (np.stack(path[::-1], axis=1) - width // 2).astype(np.float64)
    return found
