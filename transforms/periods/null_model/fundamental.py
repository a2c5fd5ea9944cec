"""Refine the fundamental frequency of a comb, and lower it if the comb consists of multiples of a lower frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.null_model.comb import (
    COMB,
    Combs,
    WhitenedSignals,
    compute_power,
    normalize_by_noise_floor,
)

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class FundamentalParams:
    """Our parameters of the search for the fundamental, tuned on simulated burst trains in noise.

    With `min_weak_ratio` at 1.25, 70 % of the combs with 6 cycles that were found as 12 cycles are lowered. Of the
    combs with 8 cycles, 1 % are lowered wrongly.

    Attributes
    ----------
    min_cycles : float
        Minimum number of cycles of the fundamental in the signal.
    max_divisor : int
        Maximum factor by which a comb is lowered.
    min_line_ratio, min_contrast : float
        Minimum height of the lines of a lower fundamental, relative to the noise floor, and to the bins halfway between
        multiples.
    min_weak_ratio, min_weak_share : float
        With few cycles: minimum mean height of the first three new lines, relative to the noise floor, and to the
        comb's first three lines.
    max_missing_factor : int
        Maximum factor by which a comb is raised because only every n-th line is present.
    new_line_count : int
        Number of new lines that are examined.
    """

    min_cycles: float = 4.0
    max_divisor: int = 16
    min_line_ratio: float = 3.5
    min_contrast: float = 2.0
    min_weak_ratio: float = 1.25
    min_weak_share: float = 0.1
    max_missing_factor: int = 8
    new_line_count: int = 8


_PARAMS = FundamentalParams()
#: oversampling of the spectrum in which the peak is located
_OVERSAMPLING = 4


def refine_fundamental(signals: WhitenedSignals, combs: Combs) -> Reals:
    """Refine the frequency of each comb, and lower it if the comb consists of multiples of a lower frequency.

    Parameters
    ----------
    signals : WhitenedSignals
        n signals of one size.
    combs : Combs
        One comb per signal.

    Returns
    -------
    (n,)
        Frequency of the first line, in cycles per sample.
    """
    power = compute_power(signals.values, signals.size)
    # the existence of a line is decided relative to unclipped neighbors
    ratios = normalize_by_noise_floor(power.copy(), np.inf)
    floor = np.divide(power, ratios, out=np.ones_like(power), where=ratios > 0)
    fine = compute_power(signals.values, signals.size * _OVERSAMPLING)
    coarse_bin = np.minimum(np.arange(len(fine)) // _OVERSAMPLING, len(floor) - 1)
    fine /= np.maximum(np.take(floor, coarse_bin, axis=0), np.finfo(floor.dtype).tiny)
    frequency, harmonics = combs.cycles_per_sample * (signals.size * _OVERSAMPLING), combs.harmonic_count
    min_frequency = _PARAMS.min_cycles * signals.size * _OVERSAMPLING / signals.lengths
    frequency = _move_to_peak(fine, frequency, harmonics, min_frequency)
    frequency = _raise_sparse_combs(fine, frequency)
    lowest, few_frequency = frequency, min_frequency * (COMB.few_cycles / _PARAMS.min_cycles)
    for divisor in range(2, _PARAMS.max_divisor + 1):
        is_lower = _has_lower_fundamental(fine, frequency, divisor, min_frequency)
        if divisor <= COMB.few_cycles / _PARAMS.min_cycles:
            is_lower |= (frequency <= few_frequency) & _has_weak_lower_fundamental(
                fine, frequency, divisor, min_frequency
            )
        lowest = np.where(is_lower, frequency / divisor, lowest)
    frequency = lowest
    return _move_to_peak(fine, frequency, harmonics, min_frequency) / (signals.size * _OVERSAMPLING)


def _move_to_peak(fine: Floats, frequency: Reals, harmonic_count: Ints, min_frequency: Reals) -> Reals:
    """Move frequencies (n), in bins of `fine`, to the nearby maximum of the sum of their harmonics."""
    peak = frequency.copy()
    for harmonics in np.unique(harmonic_count):
        rows = np.flatnonzero(harmonic_count == harmonics)
        # the highest line moves by one bin at most
        offsets = np.arange(-2 * _OVERSAMPLING, 2 * _OVERSAMPLING + 1) / (2.0 * harmonics)
        candidates = frequency[rows, None] + offsets
        sums = np.zeros(candidates.shape)
        for harmonic in range(1, int(harmonics) + 1):
            sums += _interpolate_power(fine, rows, candidates * harmonic)
        sums[candidates < np.minimum(min_frequency, frequency)[rows, None]] = 0.0
        at = np.clip(sums.argmax(axis=1), 1, len(offsets) - 2)
        before, top, after = (np.take_along_axis(sums, at[:, None] + move, axis=1)[:, 0] for move in (-1, 0, 1))
        curve = before - 2.0 * top + after
        shift = np.divide(0.5 * (before - after), curve, out=np.zeros(len(at)), where=curve < 0)
        peak[rows] = np.take_along_axis(candidates, at[:, None], axis=1)[:, 0]
        peak[rows] += np.clip(shift, -1.0, 1.0) * (offsets[1] - offsets[0])
    return peak


def _interpolate_power(fine: Floats, rows: Ints, position: Reals) -> Reals:
    """Interpolate spectra (bins, n) linearly at positions (rows, positions); 0 outside."""
    low = np.floor(position).astype(np.int64)
    is_inside = (low >= 0) & (low < len(fine) - 1)
    low = np.where(is_inside, low, 0)
    weight = position - low
    return np.where(is_inside, fine[low, rows[:, None]] * (1.0 - weight) + fine[low + 1, rows[:, None]] * weight, 0.0)


def _raise_sparse_combs(fine: Floats, frequency: Reals) -> Reals:
    """Raise frequencies (n) if only every second, third, ... line is present.

    Such combs arise by chance if their sum of lines contains enough lines of another comb.
    """
    raised, rows = frequency.copy(), np.arange(len(frequency))
    for factor in range(_PARAMS.max_missing_factor, 1, -1):
        multiples = np.arange(1, 3 * factor + 1)
        ratios = _interpolate_power(fine, rows, frequency[:, None] * multiples)
        lines, between = ratios[:, multiples % factor == 0], ratios[:, multiples % factor > 0]
        is_sparse = (lines.min(axis=1) > _PARAMS.min_line_ratio) & (
            np.median(between, axis=1) < 0.5 * _PARAMS.min_line_ratio
        )
        raised[is_sparse] = frequency[is_sparse] * factor
    return raised


def _has_lower_fundamental(fine: Floats, frequency: Reals, divisor: int, min_frequency: Reals) -> Bools:
    """Whether the frequency divided by `divisor` has lines at which the frequency itself has none (n).

    More than half of the examined lines must be present, since half may belong to twice the lower frequency. They must
    also exceed the bins halfway to the next multiple, since the lowest bins may be a broad maximum.
    """
    lower, rows = frequency / divisor, np.arange(len(frequency))
    multiples = np.array(
        [harmonic for harmonic in range(1, 3 * _PARAMS.new_line_count) if harmonic % divisor][: _PARAMS.new_line_count]
    )
    position = lower[:, None] * multiples
    median_line = np.sort(_interpolate_power(fine, rows, position), axis=1)[:, _PARAMS.new_line_count // 2 - 1]
    halfway = np.median(_interpolate_power(fine, rows, position + 0.5 * lower[:, None]), axis=1)
    has_lower: Bools = (
        (lower >= min_frequency)
        & (median_line > _PARAMS.min_line_ratio)
        & (median_line > _PARAMS.min_contrast * halfway)
    )
    return has_lower


def _has_weak_lower_fundamental(fine: Floats, frequency: Reals, divisor: int, min_frequency: Reals) -> Bools:
    """Whether a frequency with few cycles has weak lines at the multiples of frequency / `divisor` (n).

    With few cycles in noise, lines are weak. If each line were tested alone, one that is weakened by chance would hide
    the fundamental.
    """
    lower, rows = frequency / divisor, np.arange(len(frequency))
    multiples = [harmonic for harmonic in range(1, 2 * divisor + 2) if harmonic % divisor][:3]
    weak_lines = _interpolate_power(fine, rows, lower[:, None] * multiples).mean(axis=1)
    comb_lines = _interpolate_power(fine, rows, frequency[:, None] * np.arange(1, 4)).mean(axis=1)
    has_lower: Bools = (
        (lower >= min_frequency)
        & (weak_lines > _PARAMS.min_weak_ratio)
        & (weak_lines > _PARAMS.min_weak_share * comb_lines)
    )
    return has_lower
