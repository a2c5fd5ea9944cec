"""Test for combs: spectral lines at multiples of one frequency that stand out from the noise floor.

The spectrum of a periodic signal is a comb: lines at its frequency and at the multiples. The spectrum of I/O is not
flat, so lines are compared with their surroundings. First, the signal is prewhitened by a first-order predictor. The
remaining noise floor is the higher of two levels: that of a block of bins, and the mean of each bin's neighbors. The
sum of several lines, divided by the floor, then follows an F distribution. Its second number of degrees of freedom
expresses the uncertainty of the floor.

Not every signal can be tested. The spectrum of a few long phases has broad maxima of its own; lines can be
distinguished from a maximum only if it is many bins wide. If few phases carry the bytes, chance sums are larger, so the
floor counts as more uncertain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from iosig.transforms.arrays import Bools, Ints, Reals

#: single precision is enough for a search, and takes half the memory
Floats = npt.NDArray[np.floating[Any]]

#: number of FFT sizes per doubling
_SIZES_PER_OCTAVE = 8
#: mean of the logarithm of an exponential variable with mean 1
_MEAN_LOG = -float(np.euler_gamma)
#: powers below this fraction of the maximum are rounding errors
_ROUNDING = 1e-12
#: floor of log p-values
_MIN_LOG_P = -300.0 * float(np.log(10.0))
#: numbers of harmonics that are summed
_HARMONIC_COUNTS = (1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class CombParams:
    """Our parameters of the comb test, tuned on simulated noise: white, red, and phases at random times.

    `max_neighbor_ratio` and `few_share` were tuned on 89 memoryless generators (5 lengths, 400 draws, seed 3). The
    false-alarm rate is 0.27 % on average. Of signals with 8 cycles in noise as high as the bursts, 65 % are detected,
    rather than 51 to 57 %.

    Attributes
    ----------
    min_cycles : float
        Lines with fewer cycles in the signal cannot be distinguished from a broad maximum.
    min_period_samples : float
        Minimum period in samples; shorter cycles have no shape.
    block_bins : int
        Bins per block of the noise floor.
    max_neighbor_bins, min_neighbor_bins : int
        Distance of the farthest and the nearest neighbors; the mean of the neighbors is the local noise floor.
    max_neighbor_ratio : float
        Neighbors are clipped at this multiple of the floor, since with few cycles a comb's own lines are neighbors.
    few_cycles : float
        Maximum number of cycles of a comb with few cycles; such combs have their own part of the significance level.
    few_share, many_share : float
        Fractions of the significance level for few and for more cycles; the rest is for the joint test (`few_cycles`).
    floor_count : float
        Number of exponential values, or phases of one size, with a mean as uncertain as the floor.
    max_effective_count : float
        Number of effective phases above which the uncertainty of the floor does not decrease.
    min_samples_per_phase_sample : float
        Minimum ratio of the length of a signal to that of its typical phase. Without it, bursts of equal length give up
        to 90 % false alarms; at a ratio of 34, they give 2 %.
    """

    min_cycles: float = 5.0
    min_period_samples: float = 3.0
    block_bins: int = 24
    max_neighbor_bins: int = 12
    min_neighbor_bins: int = 3
    max_neighbor_ratio: float = 3.0
    few_cycles: float = 12.0
    few_share: float = 0.5
    many_share: float = 0.25
    floor_count: float = 72.0
    max_effective_count: float = 1e9
    min_samples_per_phase_sample: float = 40.0


COMB = CombParams()


@dataclass(frozen=True, slots=True)
class WhitenedSignals:
    """Prewhitened signals with mean 0, zero-padded.

    Attributes
    ----------
    values : (n, size)
    lengths : (n,)
        Number of samples without the padding.
    typical_length, effective_counts : (n,)
        Typical length and effective number of the signal's phases, as in `phases.Phases`.
    """

    values: Floats
    lengths: Ints
    typical_length: Reals
    effective_counts: Reals

    @property
    def size(self) -> int:
        """FFT size, the number of columns."""
        return int(self.values.shape[1])


@dataclass(frozen=True, slots=True)
class Combs:
    """The most significant comb of each signal.

    Attributes
    ----------
    log_p : (n,)
        Log p-value over all tried frequencies; 0 where the signal cannot be tested.
    cycles_per_sample : (n,)
        Frequency of the lowest line.
    harmonic_count : (n,)
        Number of summed lines.
    """

    log_p: Reals
    cycles_per_sample: Reals
    harmonic_count: Ints


def estimate_effective_counts(values: Floats, lengths: Ints, effective_counts: Reals) -> Reals:
    """Estimate the number of equal phases that would make the noise floor equally uncertain.

    Parameters
    ----------
    values : (n, samples)
        Prewhitened signals.
    lengths : (n,)
        Number of samples without the padding.
    effective_counts : (n,)
        Effective number of phases.

    Returns
    -------
    (n,)
        Each is `effective_counts` or more.

    Notes
    -----
    The power of nearly normal samples is exponential, even if few samples are large. Its variance grows by the excess
    kurtosis of the samples, divided by their number.

    References
    ----------
    D. R. Brillinger, "Time Series: Data Analysis and Theory", 1981, section 4.3
    """
    square = np.einsum("ij,ij->i", values, values).astype(np.float64)
    squares = values * values
    fourth = np.einsum("ij,ij->i", squares, squares).astype(np.float64)
    excess = fourth / np.maximum(square**2, np.finfo(np.float64).tiny) - 3.0 / np.maximum(lengths, 1)
    counts: Reals = np.maximum(effective_counts, 1.0 / np.maximum(excess, 1.0 / COMB.max_effective_count))
    return counts


def is_resolvable(lengths: Ints, typical_length: Reals, effective_counts: Reals) -> Bools:
    """Return whether there are enough bins to distinguish lines from broad maxima.

    Parameters
    ----------
    lengths, typical_length, effective_counts : (n,)
        Length of the signal, and typical length and effective number of its phases; lengths are in samples.

    Returns
    -------
    (n,)
    """
    is_long: Bools = (lengths >= COMB.min_samples_per_phase_sample * typical_length) & (effective_counts > 0)
    return is_long


def choose_fft_sizes(lengths: Ints) -> Ints:
    """Choose FFT sizes of the form 8 to 15 times a power of two, which bounds the number of batches.

    Parameters
    ----------
    lengths : (n,)
        Lengths of signals, in samples.

    Returns
    -------
    (n,)
        The smallest such sizes that are not less than the lengths; 16 or more.
    """
    min_sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 2 * _SIZES_PER_OCTAVE)
    unit = 2 ** (np.floor(np.log2(min_sizes)).astype(np.int64) - 3)
    sizes: Ints = -(-min_sizes // unit) * unit
    return sizes


def prewhiten(values: Floats, is_known: Bools | None = None) -> Floats:
    """Subtract the mean, and the first-order prediction of each sample from the previous one.

    Parameters
    ----------
    values : (n, samples)
        0 where not measured.
    is_known : (n, samples), optional
        Whether each sample was measured; all if not given.

    Returns
    -------
    (n, samples)
        Residuals. An unmeasured sample is not interpolated; its residual and the next one are 0.
    """
    if is_known is None:
        centerd = values - values.mean(axis=1, keepdims=True)
    else:
        # a product of floats is several times faster than `numpy.where`
        mask = is_known.astype(values.dtype)
        count = np.maximum(mask.sum(axis=1, keepdims=True), 1.0)
        centerd = values - values.sum(axis=1, keepdims=True) / count
        centerd *= mask
    power = np.einsum("ij,ij->i", centerd, centerd)
    product = np.einsum("ij,ij->i", centerd[:, 1:], centerd[:, :-1])
    correlation = np.divide(product, power, out=np.zeros_like(power), where=power > 0)
    # give the first residual the variance of the others
    first = centerd[:, 0] * np.sqrt(np.maximum(1.0 - correlation**2, 0.0))
    prediction = centerd * -correlation[:, None]
    # one flat row, as rows may be short; the first residual of each row is replaced below
    residual, flat = centerd, centerd.ravel()
    np.add(prediction.ravel()[:-1], flat[1:], out=flat[1:])
    residual[:, 0] = first
    if is_known is not None:
        residual *= mask
        residual[:, 1:] *= mask[:, :-1]
    return np.asarray(residual)


def compute_power(signals: Floats, size: int) -> Floats:
    """Compute the squared magnitudes of the zero-padded FFT.

    Parameters
    ----------
    signals : (n, samples)
    size : int
        FFT size.

    Returns
    -------
    (size // 2 + 1, n)
        Bins are rows, so that one operation on a bin applies to all signals.
    """
    transformed = fft.rfft(signals, n=size, axis=1).T
    power: Floats = np.empty(transformed.shape, dtype=transformed.real.dtype)
    np.square(transformed.real, out=power)
    power += transformed.imag**2
    return power


def _column_maxima(values: Floats) -> Floats:
    """Maximum of each column (n), or 0 if that is larger."""
    return np.asarray(values.max(axis=0, initial=0.0))


# ---- noise floor


def normalize_by_noise_floor(power: Floats, max_ratio: float = COMB.max_neighbor_ratio) -> Floats:
    """Divide power by the noise floor around each bin, in place; the first bin becomes 0.

    Parameters
    ----------
    power : (bins, n)
    max_ratio : float
        Neighbors are clipped at this multiple of the block's level.

    Returns
    -------
    (bins, n)
        About 1 on average in noise.
    """
    lines = power[1:]
    _divide_by_blocks(lines, _estimate_block_levels(lines, COMB.block_bins))
    power[0] = 0.0
    _divide_by_neighbors(power, max_ratio)
    return power


def _estimate_block_levels(lines: Floats, block_bins: int) -> Floats:
    """Noise level of each block (blocks, n), from the mean logarithm, which lines hardly change."""
    count = max(1, len(lines) // block_bins)
    edges = _block_edges(len(lines), count)
    lowest = _ROUNDING * _column_maxima(lines) + np.finfo(lines.dtype).tiny
    logs = lines + lowest
    np.log(logs, out=logs)
    level: Floats = np.add.reduceat(logs, edges[:-1], axis=0)
    level /= np.diff(edges)[:, None].astype(lines.dtype)
    if count > 2:
        inner = 0.25 * (level[:-2] + 2.0 * level[1:-1] + level[2:])
        level[0] = (2.0 * level[0] + level[1]) / 3.0
        level[-1] = (2.0 * level[-1] + level[-2]) / 3.0
        level[1:-1] = inner
    level -= lines.dtype.type(_MEAN_LOG)
    return np.exp(level, out=level)


def _divide_by_blocks(lines: Floats, level: Floats) -> None:
    """Divide each bin by the noise level, interpolated linearly between the centers of blocks."""
    block, weight = _interpolation_knots(len(lines), len(level))
    floor = np.take(level, block, axis=0)
    change = np.diff(level, axis=0, append=level[-1:])
    step = np.take(change, block, axis=0)
    step *= weight[:, None].astype(lines.dtype)
    floor += step
    lines /= floor


@lru_cache(maxsize=64)
def _block_edges(bins: int, count: int) -> Ints:
    return np.linspace(0, bins, count + 1).astype(np.int64)


@lru_cache(maxsize=64)
def _interpolation_knots(bins: int, count: int) -> tuple[Ints, Reals]:
    """For each bin, the last block with its center before the bin, and the interpolation weight of the next block."""
    edges = _block_edges(bins, count)
    middle = 0.5 * (edges[:-1] + edges[1:] - 1)
    place = np.arange(bins)
    block = np.clip(np.searchsorted(middle, place, side="right") - 1, 0, count - 1)
    width = np.maximum(middle[np.minimum(block + 1, count - 1)] - middle[block], 1.0)
    return block, np.clip((place - middle[block]) / width, 0.0, 1.0)


def _divide_by_neighbors(power: Floats, max_ratio: float) -> None:
    """Divide each bin by the mean of its neighbors if the mean exceeds 1."""
    bins, count = power.shape
    near, apart = COMB.max_neighbor_bins, COMB.min_neighbor_bins
    if bins <= near + 1:
        return
    padded = np.zeros((bins + 2 * near, count), dtype=power.dtype)
    np.minimum(power, max_ratio, out=padded[near : near + bins])
    # keep the mean of clipped exponential values at 1
    padded /= padded.dtype.type(1.0 - np.exp(-max_ratio))
    sums = _sum_neighbors(padded, near - apart + 1)
    around = sums[near + apart : near + apart + bins]
    around = around + sums[:bins]
    around += 1.0
    around /= _count_neighbors(bins, near, apart)[:, None].astype(power.dtype)
    np.maximum(around, 1.0, out=around)
    power /= around


def _sum_neighbors(values: Floats, length: int) -> Floats:
    """Sum every window of `length` consecutive rows by repeated doubling, in O(log length) additions."""
    total, start, sums, size = None, 0, values, 1
    while size <= length:
        if length & size:
            part = sums[start:]
            total = part.copy() if total is None else total[: len(part)] + part
            start += size
        if 2 * size <= length:
            sums = sums[:-size] + sums[size:]
        size *= 2
    return values if total is None else total[: len(values) - length + 1]


@lru_cache(maxsize=64)
def _count_neighbors(bins: int, near: int, apart: int) -> Reals:
    """Count the neighbors of each bin, except the first bin, and add 1."""
    place = np.arange(bins)
    after = np.minimum(place + near, bins - 1) - np.minimum(place + apart - 1, bins - 1)
    before = np.maximum(place - apart, 0) - np.maximum(place - near - 1, 0)
    counts: Reals = 1.0 + after + before
    return counts


# ---- the best comb


def find_best_combs(signals: WhitenedSignals, ratios: Floats, max_log_p: float = 0.0) -> Combs:
    """Find each signal's most significant comb.

    Harmonics are summed by the bin of the highest line, so that all lines stay aligned. The period is no shorter than a
    typical phase.

    Parameters
    ----------
    signals : WhitenedSignals
    ratios : (bins, n)
        Power over the noise floor (`normalize_by_noise_floor`).
    max_log_p : float
        The frequency is reported only for combs with a smaller log p-value.

    Returns
    -------
    Combs
    """
    count = ratios.shape[1]
    is_testable = is_resolvable(signals.lengths, signals.typical_length, signals.effective_counts)
    best, frequency, harmonics = np.zeros(count), np.full(count, np.nan), np.ones(count, dtype=np.int64)
    total, previous_count = ratios, 1
    for harmonic_count in _HARMONIC_COUNTS:
        total = _sum_harmonics(ratios, total, previous_count, harmonic_count)
        previous_count = harmonic_count
        for first, last, share in _iter_bands(signals, harmonic_count, len(ratios)):
            part, lowest_bin = _mask_bins(total, first, last)
            if not len(part):
                continue
            log_p = _compute_log_p(signals, harmonic_count, _column_maxima(part), last - first + 1) - np.log(share)
            is_better = (log_p < best) & is_testable & (last >= first)
            best[is_better] = log_p[is_better]
            harmonics[is_better] = harmonic_count
            rows = np.flatnonzero(is_better & (log_p < max_log_p))
            frequency[rows] = (part[:, rows].argmax(axis=0) + lowest_bin) / (harmonic_count * signals.size)
    return Combs(best, frequency, harmonics)


def _bin_range(signals: WhitenedSignals, harmonic_count: int, bins: int) -> tuple[Ints, Ints]:
    """Lowest and highest possible bin of the highest of `harmonic_count` lines (n)."""
    first = np.ceil(COMB.min_cycles * harmonic_count * signals.size / signals.lengths).astype(np.int64)
    upper = harmonic_count * signals.size / np.maximum(signals.typical_length, COMB.min_period_samples)
    return first, np.minimum(bins - 1, np.floor(upper)).astype(np.int64)


def _iter_bands(signals: WhitenedSignals, harmonic_count: int, bins: int) -> Iterator[tuple[Ints, Ints, Reals]]:
    """Yield the bins of the highest line for few and for more cycles (n), and each band's fraction of the level."""
    first, last = _bin_range(signals, harmonic_count, bins)
    few = np.floor(COMB.few_cycles * harmonic_count * signals.size / signals.lengths).astype(np.int64)
    yield first, np.minimum(few, last), np.full(len(few), COMB.few_share)
    yield np.maximum(few + 1, first), last, np.full(len(few), COMB.many_share)


def _compute_log_p(signals: WhitenedSignals, harmonic_count: int, height: Floats, bin_count: Ints) -> Reals:
    """Log p-value of the maximum of the tried sums (n), corrected for the number of trials."""
    effective_count = np.maximum(signals.effective_counts, 1e-9)
    floor_count = 1.0 / (1.0 / COMB.floor_count + 1.0 / effective_count)
    trials = np.maximum(bin_count * signals.lengths / signals.size, 1.0) * len(_HARMONIC_COUNTS)
    log_p: Reals = np.maximum(compute_log_tail(harmonic_count, floor_count, height), _MIN_LOG_P) + np.log(trials)
    return log_p


def compute_log_tail(harmonic_count: int, floor_count: Reals, total: Floats) -> Reals:
    """Compute the log probability that the sum of several lines exceeds a total by chance.

    Parameters
    ----------
    harmonic_count : int
        Number of summed lines.
    floor_count : (n,)
        Number of exponential values with a mean as uncertain as the noise floor.
    total : (n,)
        Sum of the lines over the floor.

    Returns
    -------
    (n,)
        Natural logarithm. The mean line has an F distribution with ``2 harmonic_count`` and ``2 floor_count`` degrees
        of freedom; as the first number is even, its tail is a finite sum.
    """
    ratio = total / floor_count
    share = ratio / (1.0 + ratio)
    terms, term = np.ones(len(share)), np.ones(len(share))
    for harmonic in range(1, harmonic_count):
        term *= share * ((floor_count + (harmonic - 1.0)) / harmonic)
        terms += term
    log_tail: Reals = np.log(terms) - floor_count * np.log1p(ratio)
    return log_tail


# ---- sums of lines


def _sum_harmonics(ratios: Floats, previous: Floats, previous_count: int, harmonic_count: int) -> Floats:
    """Sum harmonics by the bin of the highest one; `previous` contains the sums of `previous_count` harmonics."""
    if harmonic_count == 1:
        return ratios
    bins = len(ratios)
    if harmonic_count == 2 * previous_count:
        # the even harmonics are those of a comb with half as many lines and the same highest line
        sums = previous.copy() if previous_count == 1 else previous
        harmonics = range(1, harmonic_count, 2)
    else:
        sums, harmonics = np.zeros_like(ratios), range(1, harmonic_count + 1)
    for harmonic in harmonics:
        sums += np.take(ratios, _harmonic_bins(bins, harmonic, harmonic_count), axis=0)
    return sums


@lru_cache(maxsize=256)
def _harmonic_bins(bins: int, harmonic: int, harmonic_count: int) -> Ints:
    """Bin of one harmonic for each bin of the highest harmonic."""
    bins_of_harmonic: Ints = (2 * np.arange(bins) * harmonic + harmonic_count) // (2 * harmonic_count)
    return bins_of_harmonic


def _mask_bins(total: Floats, first: Ints, last: Ints) -> tuple[Floats, int]:
    """Cut out bins `first` to `last` (included) of each signal, 0 outside; also return the lowest bin of the cut."""
    low, high = int(first.min(initial=len(total))), int(last.max(initial=-1))
    part = total[low : high + 1]
    start, stop = int(first.max(initial=low)), int(last.min(initial=high)) + 1
    if len(part) and (start > low or stop <= high):
        part = part.copy()
        # mask only bins that are outside some ranges
        place = np.arange(low, high + 1)[:, None]
        begun, ended = slice(0, start - low), slice(max(stop - low, 0), None)
        part[begun] *= place[begun] >= first
        part[ended] *= place[ended] <= last
    return part, low
