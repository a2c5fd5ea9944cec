"""Compute Lomb-Scargle periodograms of many signals at once, by fast Fourier transforms.

The power is that of Scargle's equation 10, normalized by the signal's variance as in Horne & Baliunas, section II. So
under white noise, each power is exponentially distributed with mean 1.

With Z = sum(x exp(-i w t)) of the values x without their mean, n = the number of samples and D = sum(exp(-2 i w t)) =
R exp(-2 i w tau), Scargle's equation reads P = (A / (n + R) + B / (n - R)) / (2 variance), where A and B are |Z|^2
plus and minus the real part of Z^2 exp(2 i w tau): two sums per frequency, and no sine or cosine per sample and
frequency. Evenly spaced samples, with or without gaps, give each sum by one real transform, exactly. For uneven
samples, FINUFFT computes them with an error below 1e-11 of the sum of the values' magnitudes. Press & Rybicki's
extirpolation (1989) has an error of 1e-3.

References
----------
J. D. Scargle, "Studies in astronomical time series analysis II", ApJ 263 (1982), doi:10.1086/160554
J. H. Horne and S. L. Baliunas, "A prescription for period analysis of unevenly sampled time series", ApJ 302 (1986),
doi:10.1086/164037
A. Barnett, J. Magland and L. af Klinteberg, "A parallel nonuniform fast Fourier transform library", SIAM J. Sci.
Comput. 41 (2019), doi:10.1137/18M120885X
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.fft

from iosig.transforms.arrays import Bools, InPieces, Ints, Ragged, Reals, offsets_of
from iosig.transforms.periods.interface.even_signals import EvenSignals

Complexes = npt.NDArray[np.complex128]

#: frequencies within the width of one spectral peak, as in astropy's `autopower`
SAMPLES_PER_PEAK = 5
#: precision requested from FINUFFT
_PRECISION = 1e-12
#: maximum ratio of the mean distance of samples to the step of the grid: bounds memory use
_MAX_REFINEMENT = 4
#: a standard deviation below this fraction of the maximum is rounding error
_FLAT_RATIO = 1e-13
#: a sum of squared sines below this fraction of n is rounding error
_ZERO_RATIO = 1e-9


@dataclass(frozen=True, slots=True)
class FrequencyGrid:
    """Frequency grids of n signals: ``cycles / span_s``, in steps of 1 / samples_per_peak cycles.

    Attributes
    ----------
    span_s : (n,)
        Time from the first sample to the last.
    counts : (n,)
        Number of frequencies, possibly 0. The first one is 1 / span_s, the last at most half of the sampling
        frequency.
    samples_per_peak : int
        Number of frequencies within the width of one spectral peak.
    """

    span_s: Reals
    counts: Ints
    samples_per_peak: int = SAMPLES_PER_PEAK

    @classmethod
    def from_spans(cls, span_s: Reals, step_s: Reals, samples_per_peak: int = SAMPLES_PER_PEAK) -> FrequencyGrid:
        """Create the grids of signals from their durations (n) and approximate sampling steps (n)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steps = np.where(step_s > 0, span_s / step_s, 0.0)
        # rounding must not drop the last step of a whole number
        last = np.floor(samples_per_peak * np.nan_to_num(steps, posinf=0.0) / 2.0 + 1e-6).astype(np.int64)
        return cls(span_s, np.maximum(last - samples_per_peak + 1, 0), samples_per_peak)

    @property
    def max_count(self) -> int:
        """Maximum number of frequencies of any signal."""
        return int(self.counts.max(initial=0))

    @property
    def numbers(self) -> Ints:
        """Frequencies of all signals in units of 1 / (samples_per_peak * span_s) (max_count)."""
        return self.samples_per_peak + np.arange(self.max_count)

    @property
    def has_frequency(self) -> Bools:
        """Which of the frequencies each signal has (n, max_count)."""
        result: Bools = np.arange(self.max_count) < self.counts[:, None]
        return result

    @property
    def frequency_hz(self) -> Reals:
        """Frequencies (n, max_count); NaN beyond a signal's last frequency."""
        with np.errstate(divide="ignore", invalid="ignore"):
            result = self.numbers / (self.samples_per_peak * self.span_s[:, None])
        return np.where(self.has_frequency, result, np.nan)


@dataclass(frozen=True, slots=True)
class SamplingTerms:
    """Coefficients of the power as a quadratic form; they depend on the sample times only.

    For a sum with real part a and imaginary part b, the power is ``real * a**2 + imaginary * b**2 + cross * a * b``
    over the variance.

    Attributes
    ----------
    real, imaginary, cross : (n, frequencies)
    """

    real: Reals
    imaginary: Reals
    cross: Reals

    @classmethod
    def from_doubled_sums(cls, doubled: Complexes, counts: Reals) -> SamplingTerms:
        """Compute the coefficients from sum(exp(-2 i w t)) (n, frequencies) and the numbers of samples (n)."""
        size, count = np.abs(doubled), np.broadcast_to(counts[:, None], doubled.shape)
        rotation = np.ones(doubled.shape, dtype=np.complex128)
        np.divide(np.conj(doubled), size, out=rotation, where=size > _ZERO_RATIO * count)
        # reciprocals of twice the sums of squared cosines and sines; 0 if all samples lie at zeros of the sine
        cosines, sines = np.zeros(doubled.shape), np.zeros(doubled.shape)
        np.divide(0.5, count + size, out=cosines, where=count > 0)
        np.divide(0.5, count - size, out=sines, where=count - size > _ZERO_RATIO * count)
        difference = cosines - sines
        along = difference * rotation.real
        return cls(cosines + sines + along, cosines + sines - along, -2.0 * difference * rotation.imag)

    def select_row(self, row: int, count: int | None = None) -> SamplingTerms:
        """Select one signal, and optionally its first `count` frequencies."""
        at = slice(row, row + 1) if len(self.real) > 1 else slice(0, 1)
        return SamplingTerms(self.real[at, :count], self.imaginary[at, :count], self.cross[at, :count])

    def compute_powers(self, sums: Complexes, variances: Reals) -> Reals:
        """Compute Scargle's power.

        Parameters
        ----------
        sums : (n, frequencies)
            sum(x exp(-i w t)). Several signals at the same times may have one common row of coefficients.
        variances : (n,)
            Population variances of the values.

        Returns
        -------
        (n, frequencies)
            0 where nothing varies.
        """
        real, imaginary = sums.real, sums.imag
        power: Reals = self.real * real
        power += self.cross * imaginary
        power *= real
        power += self.imaginary * imaginary * imaginary
        scale = np.zeros_like(variances)
        np.divide(1.0, variances, out=scale, where=variances > 0)
        if not (scale == 1.0).all():
            power *= scale[:, None]
        return power


def standardize(values: Reals, is_known: Bools) -> Reals:
    """Standardize values to mean 0 and variance 1.

    Parameters
    ----------
    values, is_known : (n, samples)

    Returns
    -------
    (n, samples)
        0 where unknown, and where nothing varies. Extreme values do not overflow, and constant signals are recognized
        despite rounding errors.
    """
    with np.errstate(invalid="ignore"):
        maximum = np.where(is_known, np.abs(values), 0.0).max(axis=1, initial=0.0, keepdims=True)
        # scaling by a power of two does not round
        scaled = np.where(is_known, np.ldexp(values, -np.frexp(maximum)[1]), 0.0)
    count = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    centerd = np.where(is_known, scaled - scaled.sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centerd * centerd).sum(axis=1, keepdims=True) / count)
    standard = np.zeros_like(centerd)
    np.divide(centerd, deviation, out=standard, where=deviation > _FLAT_RATIO)
    return standard


# ---- evenly spaced samples, with or without gaps


def compute_even_terms(is_known: Bools, samples_per_peak: int = SAMPLES_PER_PEAK) -> SamplingTerms:
    """Compute the coefficients for evenly spaced samples with possible gaps.

    Parameters
    ----------
    is_known : (n, samples)
    samples_per_peak : int

    Returns
    -------
    SamplingTerms
    """
    size = samples_per_peak * (is_known.shape[1] - 1)
    numbers = 2 * make_even_grid(is_known.shape[1], samples_per_peak).numbers
    sums = scipy.fft.rfft(is_known.astype(np.float64), size, axis=1)
    # above half of its length, the transform of a real signal is conjugate symmetric
    is_mirrored = numbers > size // 2
    doubled = sums[:, np.where(is_mirrored, size - numbers, numbers)]
    doubled[:, is_mirrored] = np.conj(doubled[:, is_mirrored])
    return SamplingTerms.from_doubled_sums(doubled, is_known.sum(axis=1).astype(np.float64))


def make_even_grid(sample_count: int, samples_per_peak: int = SAMPLES_PER_PEAK) -> FrequencyGrid:
    """Create the frequencies of evenly spaced samples, in cycles per sample.

    Parameters
    ----------
    sample_count, samples_per_peak : int

    Returns
    -------
    FrequencyGrid
        The grid of one signal.
    """
    return FrequencyGrid.from_spans(np.array([float(max(sample_count - 1, 0))]), np.ones(1), samples_per_peak)


def compute_even_powers(standard: Reals, terms: SamplingTerms, samples_per_peak: int = SAMPLES_PER_PEAK) -> Reals:
    """Compute the power of evenly spaced, standardized samples; exact except for rounding.

    Parameters
    ----------
    standard : (n, samples)
    terms : SamplingTerms
    samples_per_peak : int

    Returns
    -------
    (n, frequencies)
        Powers at the frequencies of `make_even_grid`.
    """
    numbers = make_even_grid(standard.shape[1], samples_per_peak).numbers
    sums = scipy.fft.rfft(standard, samples_per_peak * (standard.shape[1] - 1), axis=1)
    return terms.compute_powers(sums[:, numbers[0] : numbers[-1] + 1], _find_even_variances(standard))


def _find_even_variances(standard: Reals) -> Reals:
    return np.where(standard.any(axis=1), 1.0, 0.0)


# ---- samples at any times


@dataclass(frozen=True, slots=True)
class UnevenSignals(InPieces):
    """Unevenly sampled signals (n); the samples of signal i are ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    time_s, bytes_per_s : (samples,)
        Times, ascending within each signal, and finite values.
    offsets : (n + 1,)
        Number of each signal's first sample, then the number of all samples.
    start_s, end_s : (n,)
        Time range to search; NaN if no sample is known.
    """

    time_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    start_s: Reals
    end_s: Reals

    @classmethod
    def from_intervals(cls, right_s: npt.ArrayLike, interval_s: npt.ArrayLike, values: Ragged) -> UnevenSignals:
        """Convert mean rates of intervals to samples at their middles.

        Parameters
        ----------
        right_s, interval_s : (samples,)
            Right edges and lengths of the intervals, in any order; an interval of length 0 is an instant.
        values : Ragged
            Rates; those that are not finite are dropped.

        Returns
        -------
        UnevenSignals

        Notes
        -----
        A rate that changes linearly equals its mean at the middle of an interval. SUPReMM takes the left edge, which
        merely shifts signals with equal intervals.
        """
        right, length = np.asarray(right_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            left = right - length
            middle = np.where(length >= 0, right - length / 2.0, np.nan)
        owner = values.owner
        kept = np.flatnonzero(np.isfinite(middle[: len(owner)]) & np.isfinite(values.values[: len(owner)]))
        kept = kept[np.lexsort((middle[kept], owner[kept]))]
        starts = np.searchsorted(owner[kept], np.arange(len(values.offsets))).astype(np.int64)
        (first, _), (_, last) = _first_and_last(left[kept], starts), _first_and_last(right[kept], starts)
        return cls(middle[kept], values.values[kept], starts, first, last)

    @classmethod
    def from_signals(cls, signals: EvenSignals) -> UnevenSignals:
        """Convert evenly sampled signals, without their missing samples."""
        is_known = signals.is_known
        time = signals.start_s[:, None] + np.arange(signals.sample_count) / signals.sampling_hz[:, None]
        offsets = offsets_of(is_known.sum(axis=1))
        return cls(time[is_known], signals.bytes_per_s[is_known], offsets, signals.start_s, signals.end_s)

    @property
    def signal_count(self) -> int:
        """Number of signals in this batch."""
        return len(self.offsets) - 1

    @property
    def span_s(self) -> Reals:
        """Time from each signal's first sample to its last (n); 0 without samples."""
        first, last = _first_and_last(self.time_s, self.offsets)
        with np.errstate(over="ignore"):
            return np.where(self.counts > 0, last - first, 0.0)

    def select(self, rows: Ints) -> UnevenSignals:
        """Select signals by number."""
        cells, offsets = self.places_in(rows), offsets_of(self.counts[rows])
        return UnevenSignals(self.time_s[cells], self.bytes_per_s[cells], offsets, self.start_s[rows], self.end_s[rows])


def _first_and_last(values: Reals, offsets: Ints) -> tuple[Reals, Reals]:
    """First and last value of each segment (n); NaN if it is empty."""
    has_samples = np.diff(offsets) > 0
    first, last = np.full((2, len(has_samples)), np.nan)
    first[has_samples], last[has_samples] = values[offsets[:-1][has_samples]], values[offsets[1:][has_samples] - 1]
    return first, last


def estimate_steps_s(samples: UnevenSignals) -> Reals:
    """Estimate the sampling step of each signal: the median distance, limited below to a fraction of the mean.

    Parameters
    ----------
    samples : UnevenSignals
        n signals.

    Returns
    -------
    (n,)
        0 for a single sample.
    """
    with np.errstate(over="ignore"):
        gaps = np.diff(samples.time_s)
    owner = samples.owner
    is_within = owner[1:] == owner[:-1] if len(owner) else np.zeros(0, dtype=np.bool_)
    gaps, owner = gaps[is_within], owner[1:][is_within]
    order = np.lexsort((gaps, owner))
    counts = np.bincount(owner, minlength=samples.signal_count)
    positions = np.concatenate([[0], np.cumsum(counts)[:-1]]) + np.maximum(counts - 1, 0) // 2
    median = np.zeros(samples.signal_count)
    has_gap = counts > 0
    median[has_gap] = gaps[order[positions[has_gap]]]
    steps: Reals = np.maximum(median, samples.span_s / (_MAX_REFINEMENT * np.maximum(counts, 1)))
    return steps


def compute_sums(turns: Reals, values: Reals, numbers: Ints) -> Complexes:
    """Compute sum(x exp(-2 pi i k turns)) for one or several sets of values at the same times.

    Parameters
    ----------
    turns : (points,)
        Times in cycles of the wave of number 1.
    values : (points,) or (sets, points)
    numbers : (frequencies,)
        Consecutive integers k.

    Returns
    -------
    (frequencies,) or (sets, frequencies)
    """
    import finufft

    if not turns.size or not numbers.size:
        return np.zeros((*values.shape[:-1], len(numbers)), dtype=np.complex128)
    fraction = turns - np.floor(turns)
    # FINUFFT's modes are centerd at 0: shift the requested ones
    middle = int(numbers[0]) + len(numbers) // 2
    strengths = np.ascontiguousarray(values * np.exp(-2j * np.pi * (middle * fraction)))
    sums: Complexes = finufft.nufft1d1(
        2.0 * np.pi * fraction, strengths, len(numbers), eps=_PRECISION, isign=-1, nthreads=1
    )
    return sums


def compute_uneven_sums(turns: Reals, values: Reals, offsets: Ints, grid: FrequencyGrid) -> Complexes:
    """Compute the sums of each signal at its own frequencies; 0 after its last frequency.

    Parameters
    ----------
    turns, values : (points,)
    offsets : (n + 1,)
        Number of each signal's first point, then the number of all points.
    grid : FrequencyGrid

    Returns
    -------
    (n, frequencies)
    """
    sums = np.zeros((len(offsets) - 1, grid.max_count), dtype=np.complex128)
    for signal, (first, last) in enumerate(pairwise(offsets.tolist())):
        numbers = grid.numbers[: grid.counts[signal]]
        sums[signal, : len(numbers)] = compute_sums(turns[first:last], values[first:last], numbers)
    return sums


def compute_uneven_terms(turns: Reals, offsets: Ints, grid: FrequencyGrid) -> SamplingTerms:
    """Compute the coefficients for uneven sample times.

    Parameters
    ----------
    turns : (points,)
        Times in cycles of the wave of number 1.
    offsets : (n + 1,)
        Number of each signal's first point, then the number of all points.
    grid : FrequencyGrid

    Returns
    -------
    SamplingTerms
    """
    doubled = compute_uneven_sums(2.0 * turns, np.ones(len(turns)), offsets, grid)
    return SamplingTerms.from_doubled_sums(doubled, np.diff(offsets).astype(np.float64))


def compute_variances(standard: Reals, samples: UnevenSignals) -> Reals:
    """Compute the variances of standardized values.

    Parameters
    ----------
    standard : (samples,)
    samples : UnevenSignals
        n signals.

    Returns
    -------
    (n,)
        1, or 0 where nothing varies.
    """
    variances: Reals = (np.bincount(samples.owner, standard != 0, samples.signal_count) > 0).astype(np.float64)
    return variances


def count_turns(samples: UnevenSignals, grid: FrequencyGrid) -> Reals:
    """Convert times to cycles of the grid's wave of number 1 since each signal's first sample.

    Parameters
    ----------
    samples : UnevenSignals
    grid : FrequencyGrid

    Returns
    -------
    (samples,)
    """
    owner = samples.owner
    first, _ = _first_and_last(samples.time_s, samples.offsets)
    wave_s = np.where(grid.span_s > 0, grid.span_s, 1.0) * grid.samples_per_peak
    turns: Reals = (samples.time_s - first[owner]) / wave_s[owner]
    return turns


def standardize_uneven(samples: UnevenSignals) -> Reals:
    """Standardize each signal's values to mean 0 and variance 1.

    Parameters
    ----------
    samples : UnevenSignals

    Returns
    -------
    (samples,)
        0 where nothing varies.
    """
    values, owner, counts = samples.bytes_per_s, samples.owner, samples.counts
    maximum = np.zeros(len(counts))
    if len(values):
        has_samples = counts > 0
        maximum[has_samples] = np.maximum.reduceat(np.abs(values), samples.offsets[:-1][has_samples])
    scaled = np.ldexp(values, -np.frexp(maximum)[1][owner])
    divisor = np.maximum(counts, 1)
    centerd = scaled - (np.bincount(owner, scaled, len(counts)) / divisor)[owner]
    deviation = np.sqrt(np.bincount(owner, centerd * centerd, len(counts)) / divisor)[owner]
    standard = np.zeros_like(centerd)
    np.divide(centerd, deviation, out=standard, where=deviation > _FLAT_RATIO)
    return standard


# ---- significance under white noise


def compute_exponential_threshold(confidence: float, counts: npt.ArrayLike) -> Reals:
    """Compute the power that white noise exceeds, at any of its frequencies, with probability 1 - confidence.

    Parameters
    ----------
    confidence : float
    counts : (n,)
        Number of frequencies M.

    Returns
    -------
    (n,)
        ``-ln(1 - confidence**(1 / M))``, Horne & Baliunas (1986), equation 18 solved for the power.
    """
    count = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    threshold: Reals = -np.log(-np.expm1(np.log(confidence) / count))
    return threshold


def compute_exponential_probability(powers: Reals, counts: npt.ArrayLike) -> Reals:
    """Compute the probability that white noise exceeds a power at any of its frequencies.

    Parameters
    ----------
    powers : (n,)
    counts : (n,)
        Number of frequencies M.

    Returns
    -------
    (n,)
        ``1 - (1 - exp(-P))**M``.
    """
    with np.errstate(divide="ignore"):
        probability: Reals = -np.expm1(
            np.asarray(counts, dtype=np.float64) * np.log1p(-np.exp(-np.maximum(powers, 0.0)))
        )
    return probability
