"""Where a known period starts and where it stops: the stretch in which most cycles are as they should be.

Each cycle, or each distance between two phases, has a score, above 0 if it belongs to the period and below 0 if not;
the stretch is the run of neighbours with the highest sum. So one odd cycle does not end it, but many do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.controlled_pauses import Phases, merge
from iosig.transforms.periods.controlled_pieces import Pieces

Floats = npt.NDArray[np.floating[Any]]

#: parts of a cycle whose means are its shape
_SHAPE_BINS = 16
#: of like distances: how far they are from one another, and a sample, and the least share of them
_USUAL, _MOST = 0.03, 0.6
#: how far unlike ones are from them at least, and how many others there may be to a like one
_UNUSUAL, _FEW = 0.35, 0.1
#: a period has at least so many cycles
_LEAST_CYCLES = 2
#: a distance belongs to the period if it is no farther from it than so many standard deviations, at least and at most
_DEVIATIONS, _LEAST_TOLERANCE, _MOST_TOLERANCE = 3.0, 0.1, 0.75
#: where distances are usual, others that are as near as this are phases that took longer, or came late
_LATE = 0.25


@dataclass(frozen=True, slots=True)
class Extents:
    """Where each signal's period starts and stops (n): samples, the last one not included.

    period (n): its mean in there, in samples. regularity (n): from 0 to 1, how alike cycles are. cycles (n): how many
    there are.
    """

    first: Reals
    last: Reals
    period: Reals
    regularity: Reals
    cycles: Reals

    def replaced(self, rows: Bools, other: Extents) -> Extents:
        """Return these, with others for some signals."""
        return Extents(*(np.where(rows, getattr(other, name), getattr(self, name)) for name in self.__slots__))


def best_runs(scores: Reals) -> tuple[Ints, Ints]:
    """Return the run of neighbours with the highest sum in each row (n): its first place, and the one behind it."""
    sums = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(scores, axis=1, out=sums[:, 1:])
    lowest = np.minimum.accumulate(sums, axis=1)
    last = (sums - lowest).argmax(axis=1)
    # the last place up to there at which the sum is the lowest
    is_lowest = (sums == lowest[np.arange(len(sums)), last][:, None]) & (np.arange(sums.shape[1]) <= last[:, None])
    first = sums.shape[1] - 1 - is_lowest[:, ::-1].argmax(axis=1)
    return first, last


# ---- phases


def of_phases(found: Phases, merged_gap: Ints, period: Reals, variation: Reals, *, is_mean: bool = True) -> Extents:
    """Return where distances between the starts of phases are about a period (n).

    found: phases of n signals, which are one where no more than merged_gap (n) samples are between them. period,
    variation (n): the mean distance of starts in samples, and its coefficient of variation. The regularity is 1 less
    the coefficient of variation of the distances that belong to the period. is_mean: the period is the mean distance of
    these phases, which may be a part of them or pieces.
    """
    phases = merge(found, merged_gap)
    owner = phases.owner
    pairs = np.flatnonzero(owner[1:] == owner[:-1])
    whose, distance = owner[pairs], (phases.first[pairs + 1] - phases.first[pairs]).astype(np.float64)
    if is_mean:
        period, is_even = _usual(distance, whose, period)
    else:
        is_even = np.zeros(len(period), dtype=np.bool_)
    spread = np.where(is_even, _LATE, _DEVIATIONS * variation)
    tolerance = np.clip(spread, _LEAST_TOLERANCE, _MOST_TOLERANCE)
    # a sample more or less at either end is no deviation; where phases are missing a distance is a multiple
    times = np.maximum(np.round(distance / period[whose]), 1.0)
    is_multiple = np.abs(distance - times * period[whose]) <= tolerance[whose] * period[whose] + 1.0
    belongs = is_multiple & (times == 1.0)
    counts = np.bincount(whose, minlength=len(period))
    starts = np.cumsum(counts) - counts
    scores = np.full((len(period), int(counts.max(initial=0))), -1.0)
    scores[whose, np.arange(len(whose)) - starts[whose]] = np.where(is_multiple, np.maximum(2.0 - times, -1.0), -1.0)
    first, last = best_runs(scores)
    place = np.arange(len(whose)) - starts[whose]
    # nobody saw the start of a phase with which the signal begins
    is_cut = (phases.first[pairs] == 0) & is_even[whose]
    is_in = belongs & (place >= first[whose]) & (place < last[whose]) & ~is_cut
    mean, deviation = _moments(distance[is_in], whose[is_in], len(period))
    offsets = phases.offsets[:-1]
    is_any = (last > first) & (counts > 0)
    begin, end = np.full(len(period), np.nan), np.full(len(period), np.nan)
    begin[is_any] = phases.first[(offsets + first)[is_any]]
    end[is_any] = phases.last[(offsets + last)[is_any]]
    cycles = np.bincount(whose[is_in], minlength=len(period)).astype(np.float64)
    return Extents(begin, end, mean, np.clip(1.0 - deviation / mean, 0.0, 1.0), cycles)


def _usual(distance: Reals, owner: Ints, period: Reals) -> tuple[Reals, Bools]:
    """Return the distance that is usual, and whether there is one (n).

    There is if most are like the one in the middle, and nearly all others quite unlike it: phases in two pieces, and
    phases that were not seen, which would shift the mean.
    """
    count = np.bincount(owner, minlength=len(period))
    middle = (np.cumsum(count) - count + count // 2)[owner]
    ordered = distance[np.lexsort((distance, owner))]
    apart = np.abs(distance - ordered[middle])
    is_usual = apart <= _USUAL * ordered[middle] + 1.0
    is_between = ~is_usual & (apart < _UNUSUAL * ordered[middle])
    usual, between = (np.bincount(owner[rows], minlength=len(period)) for rows in (is_usual, is_between))
    mean, _ = _moments(distance[is_usual], owner[is_usual], len(period))
    is_even = (usual > _MOST * count) & (between <= _FEW * usual)
    return np.where(is_even, mean, period), is_even


def _moments(values: Reals, owner: Ints, count: int) -> tuple[Reals, Reals]:
    """Return the mean and the standard deviation of each owner's values (n); NaN where there are none."""
    sizes = np.bincount(owner, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(owner, values, count) / sizes
        return mean, np.sqrt(np.bincount(owner, (values - mean[owner]) ** 2, count) / sizes)


# ---- cycles


def of_cycles(rates: Floats, is_known: Bools | None, frequency: Reals, spans: Pieces, judged: Pieces) -> Extents:
    """Return where cycles are like the mean cycle (n).

    rates (n, samples), 0 where not known; frequency (n): cycles per sample; spans, judged: one piece of each signal,
    that which may belong to the period, and that of which the mean cycle is made. A cycle's score is the share of the
    mean cycle that is in it, less a half. The regularity is the correlation of the signal with its mean cycle.
    """
    lowest, turn_count, cell = _cells(rates.shape[1], frequency, judged.first)
    shape = (len(rates), turn_count, _SHAPE_BINS)
    is_usable = (np.arange(rates.shape[1]) >= spans.first[:, None]) & (np.arange(rates.shape[1]) < spans.last[:, None])
    if is_known is not None:
        is_usable &= is_known
    sizes = np.bincount(cell, is_usable.ravel(), math.prod(shape)).reshape(shape).astype(np.float64, copy=False)
    # outside its span a signal is 0
    sums = np.bincount(cell, rates.ravel(), math.prod(shape)).reshape(shape).astype(np.float64, copy=False)
    squares = np.bincount(cell // _SHAPE_BINS, (rates * rates).ravel(), math.prod(shape[:2])).reshape(shape[:2])
    turn = np.arange(turn_count) + lowest[:, None]
    is_judged = (turn >= 0) & (turn < np.maximum(np.floor(judged.lengths * frequency), 1.0)[:, None])
    place = np.arange(turn_count)
    # once more with the cycles that were found to belong: those that do not are no part of their mean
    for _ in range(2):
        cycle, mean = _mean_cycles(sums, sizes, is_judged)
        alike = np.einsum("ijk,ik->ij", sums - mean[:, None, None] * sizes, cycle)
        full = np.einsum("ijk,ik->ij", sizes, cycle**2)
        begin, end = _like_the_mean(alike, full, is_judged)
        is_judged = (place >= begin[:, None]) & (place < end[:, None])
    power = squares - 2.0 * mean[:, None] * sums.sum(axis=2) + mean[:, None] ** 2 * sizes.sum(axis=2)
    alike, full, power = ((values * is_judged).sum(axis=1) for values in (alike, full, power))
    norm = np.sqrt(full * np.maximum(power, 0.0))
    regularity = np.divide(alike, norm, out=np.zeros(len(norm)), where=norm > 0)
    starts, ends = (judged.first + (edge + lowest) / frequency for edge in (begin, end))
    first, last = np.maximum(starts, spans.first), np.minimum(ends, spans.last)
    return Extents(first, last, 1.0 / frequency, np.clip(regularity, 0.0, 1.0), (last - first) * frequency)


def _like_the_mean(alike: Reals, full: Reals, is_judged: Bools) -> tuple[Ints, Ints]:
    """Return the first cycle that belongs to the period, and the one behind the last (n).

    alike, full (n, cycles): the mean cycle as far as it is in a cycle, and as far as it may be. No single cycle counts
    for more than two others. Where the cycles that are alike do not hang together, all that was judged belongs.
    """
    share = alike / np.maximum(full.max(axis=1, keepdims=True), 1e-300)
    begin, end = best_runs(np.clip(share - 0.5 * (full > 0) - 1e-9, -1.0, 1.0))
    is_short = end - begin < _LEAST_CYCLES
    first = np.where(is_short, is_judged.argmax(axis=1), begin)
    return first, np.where(is_short, first + is_judged.sum(axis=1), end)


def _cells(width: int, frequency: Reals, zero: Ints) -> tuple[Ints, int, Ints]:
    """Return to which part of which cycle each sample belongs, in a flat table (n, cycles, parts) of all.

    zero (n): where the cycle 0 begins. Before it is each signal's first cycle, and how many there are at most.
    """
    phase = (np.arange(width) - zero[:, None]) * (frequency * _SHAPE_BINS)[:, None]
    part = np.floor(phase, out=phase).astype(np.int64)
    lowest = np.floor(-zero * frequency).astype(np.int64)
    part -= (lowest * _SHAPE_BINS)[:, None]
    turn_count = int(part[:, -1].max(initial=0)) // _SHAPE_BINS + 1 if width else 1
    np.maximum(part, 0, out=part)
    part += (turn_count * _SHAPE_BINS * np.arange(len(zero)))[:, None]
    return lowest, turn_count, part.ravel()


def _mean_cycles(sums: Reals, sizes: Reals, is_judged: Bools) -> tuple[Reals, Reals]:
    """Return the mean of each part of a cycle, less the mean of all (n, parts), and that (n)."""
    total, count = (np.einsum("ijk,ij->ik", values, is_judged) for values in (sums, sizes))
    mean = total.sum(axis=1) / np.maximum(count.sum(axis=1), 1.0)
    return np.where(count > 0, total / np.maximum(count, 1.0) - mean[:, None], 0.0), mean
