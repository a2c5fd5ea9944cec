"""Locate where a known period begins and ends: the interval in which most cycles conform to it.

Each cycle, or each interval between two phase onsets, has a score: positive if it conforms to the period, otherwise
negative. The extent is the run of consecutive scores with the maximum sum. So a single odd cycle does not end it, but
many odd cycles do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.null_model.intervals import Intervals
from iosig.transforms.periods.null_model.phases import Phases, merge_phases

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class ExtentParams:
    """Our parameters for locating periods, tuned on simulated burst trains.

    Attributes
    ----------
    profile_bins : int
        Number of bins of the mean cycle.
    dominant_tolerance : float
        Onset intervals are equal if they differ by up to this fraction of the median, plus one sample.
    min_dominant_ratio : float
        Minimum fraction of intervals that equal the median.
    min_other_distance, max_other_ratio : float
        Minimum distance of all other intervals from the median, as a fraction of the median; maximum number of
        exceptions per equal interval.
    min_cycles : int
        Minimum number of cycles of a period.
    tolerance_sigmas : float
        Maximum deviation of a conforming interval from the period, in standard deviations.
    min_tolerance, max_tolerance : float
        Bounds of that deviation, as fractions of the period.
    late_tolerance : float
        Maximum deviation if there is a dominant interval, as a fraction of the period; deviating intervals then come
        from phases that were late or longer.
    """

    profile_bins: int = 16
    dominant_tolerance: float = 0.03
    min_dominant_ratio: float = 0.6
    min_other_distance: float = 0.35
    max_other_ratio: float = 0.1
    min_cycles: int = 2
    tolerance_sigmas: float = 3.0
    min_tolerance: float = 0.1
    max_tolerance: float = 0.75
    late_tolerance: float = 0.25


_PARAMS = ExtentParams()


@dataclass(frozen=True, slots=True)
class Extents:
    """Intervals in which the periods of n signals hold.

    Attributes
    ----------
    first, last : (n,)
        First sample, and the position after the last.
    period : (n,)
        Mean period within the extent, in samples.
    regularity : (n,)
        Similarity of the cycles to each other, from 0 to 1.
    cycles : (n,)
        Number of cycles.
    """

    first: Reals
    last: Reals
    period: Reals
    regularity: Reals
    cycles: Reals

    def replace_where(self, rows: Bools, other: Extents) -> Extents:
        """Return a copy with the masked rows replaced by those of `other`."""
        return Extents(*(np.where(rows, getattr(other, name), getattr(self, name)) for name in self.__slots__))


def find_max_sum_runs(scores: Reals) -> tuple[Ints, Ints]:
    """Find the run of consecutive scores with the maximum sum in each row (Kadane's algorithm).

    Parameters
    ----------
    scores : (n, columns)

    Returns
    -------
    first, last : (n,)
        First column, and the column after the last; equal if no score is positive.
    """
    sums = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(scores, axis=1, out=sums[:, 1:])
    lowest = np.minimum.accumulate(sums, axis=1)
    last = (sums - lowest).argmax(axis=1)
    # the last minimum of the cumulative sum before the end of the run
    is_lowest = (sums == lowest[np.arange(len(sums)), last][:, None]) & (np.arange(sums.shape[1]) <= last[:, None])
    first = sums.shape[1] - 1 - is_lowest[:, ::-1].argmax(axis=1)
    return first, last


# ---- phases


def locate_by_phases(
    phases: Phases, max_merged_gap: Ints, period: Reals, cv: Reals, *, is_mean: bool = True
) -> Extents:
    """Locate where the intervals between phase onsets conform to a period.

    Parameters
    ----------
    phases : Phases
        Phases of n signals.
    max_merged_gap : (n,)
        Maximum distance of phases that are merged first, in samples.
    period, cv : (n,)
        Mean onset interval in samples, and its coefficient of variation.
    is_mean : bool
        Whether the period is the mean of the onset intervals; missed and split phases may then bias it.

    Returns
    -------
    Extents
        The regularity is 1 minus the coefficient of variation of the conforming intervals.
    """
    merged = merge_phases(phases, max_merged_gap)
    owner = merged.owner
    pairs = np.flatnonzero(owner[1:] == owner[:-1])
    pair_owner, interval = owner[pairs], (merged.first[pairs + 1] - merged.first[pairs]).astype(np.float64)
    if is_mean:
        period, has_dominant = _find_dominant_interval(interval, pair_owner, period)
    else:
        has_dominant = np.zeros(len(period), dtype=np.bool_)
    spread = np.where(has_dominant, _PARAMS.late_tolerance, _PARAMS.tolerance_sigmas * cv)
    tolerance = np.clip(spread, _PARAMS.min_tolerance, _PARAMS.max_tolerance)
    # onsets are accurate to one sample; if phases are missing, an interval is a multiple of the period
    multiple = np.maximum(np.round(interval / period[pair_owner]), 1.0)
    is_multiple = np.abs(interval - multiple * period[pair_owner]) <= tolerance[pair_owner] * period[pair_owner] + 1.0
    conforms = is_multiple & (multiple == 1.0)
    counts = np.bincount(pair_owner, minlength=len(period))
    starts = np.cumsum(counts) - counts
    scores = np.full((len(period), int(counts.max(initial=0))), -1.0)
    scores[pair_owner, np.arange(len(pair_owner)) - starts[pair_owner]] = np.where(
        is_multiple, np.maximum(2.0 - multiple, -1.0), -1.0
    )
    first, last = find_max_sum_runs(scores)
    position = np.arange(len(pair_owner)) - starts[pair_owner]
    # if a signal begins within a phase, the onset of that phase is unknown
    is_censored = (merged.first[pairs] == 0) & has_dominant[pair_owner]
    is_counted = conforms & (position >= first[pair_owner]) & (position < last[pair_owner]) & ~is_censored
    mean, deviation = _compute_moments(interval[is_counted], pair_owner[is_counted], len(period))
    offsets = merged.offsets[:-1]
    has_cycles = (last > first) & (counts > 0)
    begin, end = np.full(len(period), np.nan), np.full(len(period), np.nan)
    begin[has_cycles] = merged.first[(offsets + first)[has_cycles]]
    end[has_cycles] = merged.last[(offsets + last)[has_cycles]]
    cycles = np.bincount(pair_owner[is_counted], minlength=len(period)).astype(np.float64)
    return Extents(begin, end, mean, np.clip(1.0 - deviation / mean, 0.0, 1.0), cycles)


def _find_dominant_interval(interval: Reals, owner: Ints, period: Reals) -> tuple[Reals, Bools]:
    """Find the dominant onset interval of each signal, and whether it exists (n).

    It exists if most intervals equal the median, and nearly all others differ strongly from the median. The latter come
    from split and missed phases, which would bias the mean.
    """
    counts = np.bincount(owner, minlength=len(period))
    middle = (np.cumsum(counts) - counts + counts // 2)[owner]
    ordered = interval[np.lexsort((interval, owner))]
    distance = np.abs(interval - ordered[middle])
    is_dominant = distance <= _PARAMS.dominant_tolerance * ordered[middle] + 1.0
    is_between = ~is_dominant & (distance < _PARAMS.min_other_distance * ordered[middle])
    dominant, between = (np.bincount(owner[rows], minlength=len(period)) for rows in (is_dominant, is_between))
    mean, _ = _compute_moments(interval[is_dominant], owner[is_dominant], len(period))
    has_dominant = (dominant > _PARAMS.min_dominant_ratio * counts) & (between <= _PARAMS.max_other_ratio * dominant)
    return np.where(has_dominant, mean, period), has_dominant


def _compute_moments(values: Reals, owner: Ints, count: int) -> tuple[Reals, Reals]:
    """Mean and standard deviation of each owner's values (n); NaN for owners without values."""
    sizes = np.bincount(owner, minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(owner, values, count) / sizes
        return mean, np.sqrt(np.bincount(owner, (values - mean[owner]) ** 2, count) / sizes)


# ---- cycles


def locate_by_cycles(
    rates: Floats, is_known: Bools | None, frequency: Reals, spans: Intervals, reference: Intervals
) -> Extents:
    """Locate where cycles resemble the mean cycle.

    Parameters
    ----------
    rates : (n, samples)
        0 where not measured.
    is_known : (n, samples) or None
        Whether each sample was measured; None if all were.
    frequency : (n,)
        Frequency of each signal, in cycles per sample.
    spans : Intervals
        The part of each signal in which the period may hold.
    reference : Intervals
        The part from which the mean cycle is computed.

    Returns
    -------
    Extents
        The regularity is the correlation of the signal with its mean cycle.

    Notes
    -----
    The score of a cycle is its projection on the mean cycle, as a fraction of the mean cycle's energy, minus 0.5.
    """
    first_cycle, cycle_count, cell = _assign_cells(rates.shape[1], frequency, reference.first)
    shape = (len(rates), cycle_count, _PARAMS.profile_bins)
    is_usable = (np.arange(rates.shape[1]) >= spans.first[:, None]) & (np.arange(rates.shape[1]) < spans.last[:, None])
    if is_known is not None:
        is_usable &= is_known
    sizes = np.bincount(cell, is_usable.ravel(), math.prod(shape)).reshape(shape).astype(np.float64, copy=False)
    # outside its span a signal is 0
    sums = np.bincount(cell, rates.ravel(), math.prod(shape)).reshape(shape).astype(np.float64, copy=False)
    squares = np.bincount(cell // _PARAMS.profile_bins, (rates * rates).ravel(), math.prod(shape[:2])).reshape(
        shape[:2]
    )
    cycle_number = np.arange(cycle_count) + first_cycle[:, None]
    is_reference = (cycle_number >= 0) & (
        cycle_number < np.maximum(np.floor(reference.lengths * frequency), 1.0)[:, None]
    )
    position = np.arange(cycle_count)
    # the second pass averages conforming cycles only
    for _ in range(2):
        profile, mean = _average_cycles(sums, sizes, is_reference)
        projection = np.einsum("ijk,ik->ij", sums - mean[:, None, None] * sizes, profile)
        energy = np.einsum("ijk,ik->ij", sizes, profile**2)
        begin, end = _find_conforming_cycles(projection, energy, is_reference)
        is_reference = (position >= begin[:, None]) & (position < end[:, None])
    power = squares - 2.0 * mean[:, None] * sums.sum(axis=2) + mean[:, None] ** 2 * sizes.sum(axis=2)
    projection, energy, power = ((values * is_reference).sum(axis=1) for values in (projection, energy, power))
    norm = np.sqrt(energy * np.maximum(power, 0.0))
    regularity = np.divide(projection, norm, out=np.zeros(len(norm)), where=norm > 0)
    starts, ends = (reference.first + (edge + first_cycle) / frequency for edge in (begin, end))
    first, last = np.maximum(starts, spans.first), np.minimum(ends, spans.last)
    return Extents(first, last, 1.0 / frequency, np.clip(regularity, 0.0, 1.0), (last - first) * frequency)


def _find_conforming_cycles(projection: Reals, energy: Reals, is_reference: Bools) -> tuple[Ints, Ints]:
    """Find the first conforming cycle, and the cycle after the last (n).

    The score of a cycle is limited to the weight of two cycles. If too few consecutive cycles conform, the whole
    reference part is returned.
    """
    share = projection / np.maximum(energy.max(axis=1, keepdims=True), 1e-300)
    begin, end = find_max_sum_runs(np.clip(share - 0.5 * (energy > 0) - 1e-9, -1.0, 1.0))
    is_short = end - begin < _PARAMS.min_cycles
    first = np.where(is_short, is_reference.argmax(axis=1), begin)
    return first, np.where(is_short, first + is_reference.sum(axis=1), end)


def _assign_cells(width: int, frequency: Reals, origin: Ints) -> tuple[Ints, int, Ints]:
    """Assign each sample to a bin of the flattened table (n, cycles, bins).

    `origin` (n): sample at which cycle 0 begins. Also returns each signal's first cycle number and the cycle count.
    """
    phase = (np.arange(width) - origin[:, None]) * (frequency * _PARAMS.profile_bins)[:, None]
    part = np.floor(phase, out=phase).astype(np.int64)
    first_cycle = np.floor(-origin * frequency).astype(np.int64)
    part -= (first_cycle * _PARAMS.profile_bins)[:, None]
    cycle_count = int(part[:, -1].max(initial=0)) // _PARAMS.profile_bins + 1 if width else 1
    np.maximum(part, 0, out=part)
    part += (cycle_count * _PARAMS.profile_bins * np.arange(len(origin)))[:, None]
    return first_cycle, cycle_count, part.ravel()


def _average_cycles(sums: Reals, sizes: Reals, is_reference: Bools) -> tuple[Reals, Reals]:
    """Compute the mean cycle minus the overall mean (n, bins), and the overall mean (n)."""
    total, count = (np.einsum("ijk,ij->ik", values, is_reference) for values in (sums, sizes))
    mean = total.sum(axis=1) / np.maximum(count.sum(axis=1), 1.0)
    return np.where(count > 0, total / np.maximum(count, 1.0) - mean[:, None], 0.0), mean
