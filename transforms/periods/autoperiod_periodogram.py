"""The Lomb-Scargle periodogram of many signals at once, by fast Fourier transforms.

Scargle, "Studies in astronomical time series analysis II", ApJ 263 (1982), DOI 10.1086/160554, equation 10, with the
normalization by the signal's variance that Horne & Baliunas, "A prescription for period analysis of unevenly signals
time series", ApJ 302 (1986), DOI 10.1086/164037, section II ask for: under white noise, each power is distributed
exponentially with mean 1.

With Z = sum(x exp(-i w t)) of the values x without their mean, n = the number of samples and D = sum(exp(-2 i w t)) =
R exp(-2 i w tau), Scargle's equation reads P = (A / (n + R) + B / (n - R)) / (2 variance), where A and B are |Z|^2
plus and minus the real part of Z^2 exp(2 i w tau): two sums a frequency, no sine or cosine a sample and frequency.
Evenly spaced samples, with or without gaps, give both sums by one real transform each, exactly. For samples
at any times, FINUFFT computes them (Barnett, Magland & af Klinteberg, "A parallel nonuniform fast Fourier transform
library", SIAM J. Sci. Comput. 41 (2019), DOI 10.1137/18M120885X); a sum is off by less than 1e-11 of the sum of the
values' magnitudes. Press & Rybicki's extirpolation (1989) is off by 1e-3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.fft

from iosig.transforms.arrays import Bools, InPieces, Ints, Ragged, Reals, offsets_of
from iosig.transforms.periods.even_signals import EvenSignals

Complexes = npt.NDArray[np.complex128]

#: frequencies within the width of one spectral peak, as astropy's `autopower` takes them by default
SAMPLES_PER_PEAK = 5
#: the precision asked of FINUFFT
_PRECISION = 1e-12
#: a grid is at most so many times as fine as the mean distance of samples: bounds the memory
_MOST_REFINED = 4
#: a deviation below this share of the largest value is nothing but rounding
_FLAT = 1e-13
#: below this share of n, a sum of squared sines is nothing but rounding
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class FrequencyGrid:
    """The frequencies of n signals: waves / span_s, waves being first, first + 1, ... over samples_per_peak.

    The first frequency is 1 / span_s, the last not above half of the sampling frequency. span_s (n): from the first
    sample to the last. counts (n): how many frequencies each has; none where there is no such frequency.
    """

    span_s: Reals
    counts: Ints
    samples_per_peak: int = SAMPLES_PER_PEAK

    @classmethod
    def of(cls, span_s: Reals, step_s: Reals, samples_per_peak: int = SAMPLES_PER_PEAK) -> FrequencyGrid:
        """Return the grids of signals that last span_s (n) and are sampled about every step_s (n)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steps = np.where(step_s > 0, span_s / step_s, 0.0)
        # a span that is so many steps but for rounding is so many steps
        last = np.floor(samples_per_peak * np.nan_to_num(steps, posinf=0.0) / 2.0 + 1e-6).astype(np.int64)
        return cls(span_s, np.maximum(last - samples_per_peak + 1, 0), samples_per_peak)

    @property
    def most(self) -> int:
        """The largest number of frequencies of any signal."""
        return int(self.counts.max(initial=0))

    @property
    def numbers(self) -> Ints:
        """The frequencies of all signals in units of 1 / (samples_per_peak * span_s) (most)."""
        return self.samples_per_peak + np.arange(self.most)

    @property
    def is_own(self) -> Bools:
        """Which of the frequencies each signal has (n, most)."""
        found: Bools = np.arange(self.most) < self.counts[:, None]
        return found

    @property
    def frequency_hz(self) -> Reals:
        """The frequencies (n, most); NaN beyond a signal's own."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.numbers / (self.samples_per_peak * self.span_s[:, None])
        return np.where(self.is_own, found, np.nan)


@dataclass(frozen=True, slots=True)
class Waves:
    """What the times alone contribute, for each signal and frequency, each (n, frequencies).

    With a sum of real part a and imaginary part b, the power is real * a^2 + imaginary * b^2 + cross * a * b, over
    the variance.
    """

    real: Reals
    imaginary: Reals
    cross: Reals

    @classmethod
    def of(cls, doubled: Complexes, counts: Reals) -> Waves:
        """Return them from sum(exp(-2 i w t)) (n, frequencies) and the numbers of samples (n)."""
        size, count = np.abs(doubled), np.broadcast_to(counts[:, None], doubled.shape)
        turn = np.ones(doubled.shape, dtype=np.complex128)
        np.divide(np.conj(doubled), size, out=turn, where=size > _NOTHING * count)
        # over twice the sums of squared cosines, and of squared sines unless all samples lie at the sine's zeros
        cosines, sines = np.zeros(doubled.shape), np.zeros(doubled.shape)
        np.divide(0.5, count + size, out=cosines, where=count > 0)
        np.divide(0.5, count - size, out=sines, where=count - size > _NOTHING * count)
        apart = cosines - sines
        along = apart * turn.real
        return cls(cosines + sines + along, cosines + sines - along, -2.0 * apart * turn.imag)

    def of_row(self, row: int, count: int | None = None) -> Waves:
        """Return one signal's, for its first so many frequencies."""
        at = slice(row, row + 1) if len(self.real) > 1 else slice(0, 1)
        return Waves(self.real[at, :count], self.imaginary[at, :count], self.cross[at, :count])

    def powers(self, sums: Complexes, variances: Reals) -> Reals:
        """Return Scargle's powers (n, frequencies) of sum(x exp(-i w t)); 0 where nothing varies.

        variances (n): of the values, population form. Sums of several signals at the same times may be given at once.
        """
        real, imaginary = sums.real, sums.imag
        found: Reals = self.real * real
        found += self.cross * imaginary
        found *= real
        found += self.imaginary * imaginary * imaginary
        scale = np.zeros_like(variances)
        np.divide(1.0, variances, out=scale, where=variances > 0)
        if not (scale == 1.0).all():
            found *= scale[:, None]
        return found


def standardized(values: Reals, is_known: Bools) -> Reals:
    """Return values (n, samples) without their mean and of variance 1; 0 where unknown, and where nothing varies.

    Neither huge nor tiny values overflow on the way, and a constant signal is told from its rounding errors.
    """
    with np.errstate(invalid="ignore"):
        largest = np.where(is_known, np.abs(values), 0.0).max(axis=1, initial=0.0, keepdims=True)
        # by a power of two, so that nothing is rounded
        scaled = np.where(is_known, np.ldexp(values, -np.frexp(largest)[1]), 0.0)
    count = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    centred = np.where(is_known, scaled - scaled.sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centred * centred).sum(axis=1, keepdims=True) / count)
    found = np.zeros_like(centred)
    np.divide(centred, deviation, out=found, where=deviation > _FLAT)
    return found


# ---- evenly spaced samples, with or without gaps


def even_waves(is_known: Bools, samples_per_peak: int = SAMPLES_PER_PEAK) -> Waves:
    """Return what the times contribute where samples (n, samples) are evenly spaced and some may be missing."""
    size = samples_per_peak * (is_known.shape[1] - 1)
    numbers = 2 * even_grid(is_known.shape[1], samples_per_peak).numbers
    sums = scipy.fft.rfft(is_known.astype(np.float64), size, axis=1)
    # beyond half of the transform's length, a real signal's transform is its own mirror image
    is_mirrored = numbers > size // 2
    doubled = sums[:, np.where(is_mirrored, size - numbers, numbers)]
    doubled[:, is_mirrored] = np.conj(doubled[:, is_mirrored])
    return Waves.of(doubled, is_known.sum(axis=1).astype(np.float64))


def even_grid(sample_count: int, samples_per_peak: int = SAMPLES_PER_PEAK) -> FrequencyGrid:
    """Return the frequencies of evenly spaced samples, in waves per sample."""
    return FrequencyGrid.of(np.array([float(max(sample_count - 1, 0))]), np.ones(1), samples_per_peak)


def even_powers(standard: Reals, waves: Waves, samples_per_peak: int = SAMPLES_PER_PEAK) -> Reals:
    """Return the powers (n, frequencies) of evenly spaced, standardized samples (n, samples).

    The frequencies are those of `even_grid`. Exact but for rounding.
    """
    numbers = even_grid(standard.shape[1], samples_per_peak).numbers
    sums = scipy.fft.rfft(standard, samples_per_peak * (standard.shape[1] - 1), axis=1)
    return waves.powers(sums[:, numbers[0] : numbers[-1] + 1], _variances(standard))


def _variances(standard: Reals) -> Reals:
    return np.where(standard.any(axis=1), 1.0, 0.0)


# ---- samples at any times


@dataclass(frozen=True, slots=True)
class UnevenSignals(InPieces):
    """Samples of n signals at any times: those of signal i are from offsets[i] to offsets[i + 1].

    time_s, bytes_per_s (samples): rising times of each signal, and finite values. started_s, ended_s (n): the time
    that is judged; NaN where nothing is known.
    """

    time_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    started_s: Reals
    ended_s: Reals

    @classmethod
    def of_intervals(cls, right_s: npt.ArrayLike, interval_s: npt.ArrayLike, values: Ragged) -> UnevenSignals:
        """Return the mean rates of intervals (samples), by their right edges and lengths, as samples at their middles.

        What is not finite is left out, times may come in any order; an interval of no length is an instant. The middle
        is where the mean of what changes steadily is its value; SUPReMM takes the left edge, which is the
        same but for a shift where all intervals are alike.
        """
        right, length = np.asarray(right_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            left = right - length
            middle = np.where(length >= 0, right - length / 2.0, np.nan)
        owner = values.owner
        kept = np.flatnonzero(np.isfinite(middle[: len(owner)]) & np.isfinite(values.values[: len(owner)]))
        kept = kept[np.lexsort((middle[kept], owner[kept]))]
        starts = np.searchsorted(owner[kept], np.arange(len(values.offsets))).astype(np.int64)
        (first, _), (_, last) = _ends(left[kept], starts), _ends(right[kept], starts)
        return cls(middle[kept], values.values[kept], starts, first, last)

    @classmethod
    def of_signals(cls, signals: EvenSignals) -> UnevenSignals:
        """Return evenly spaced signals as samples at any times, without those that are missing."""
        is_known = signals.is_known
        time = signals.started_s[:, None] + np.arange(signals.sample_count) / signals.sampling_hz[:, None]
        offsets = offsets_of(is_known.sum(axis=1))
        return cls(time[is_known], signals.bytes_per_s[is_known], offsets, signals.started_s, signals.ended_s)

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.offsets) - 1

    @property
    def span_s(self) -> Reals:
        """The time from each signal's first sample to its last (n); 0 without samples."""
        first, last = _ends(self.time_s, self.offsets)
        with np.errstate(over="ignore"):
            return np.where(self.counts > 0, last - first, 0.0)

    def chosen(self, rows: Ints) -> UnevenSignals:
        """Return some of the signals."""
        cells, offsets = self.places_in(rows), offsets_of(self.counts[rows])
        return UnevenSignals(
            self.time_s[cells], self.bytes_per_s[cells], offsets, self.started_s[rows], self.ended_s[rows]
        )


def _ends(values: Reals, offsets: Ints) -> tuple[Reals, Reals]:
    """Return the first and the last value of each piece (n); NaN of an empty one."""
    is_held = np.diff(offsets) > 0
    first, last = np.full((2, len(is_held)), np.nan)
    first[is_held], last[is_held] = values[offsets[:-1][is_held]], values[offsets[1:][is_held] - 1]
    return first, last


def steps_s(samples: UnevenSignals) -> Reals:
    """Return about how far apart each signal's samples are (n): the median, not much below the mean; 0 of one alone."""
    with np.errstate(over="ignore"):
        gaps = np.diff(samples.time_s)
    owner = samples.owner
    is_within = owner[1:] == owner[:-1] if len(owner) else np.zeros(0, dtype=np.bool_)
    gaps, owner = gaps[is_within], owner[1:][is_within]
    order = np.lexsort((gaps, owner))
    counts = np.bincount(owner, minlength=samples.signal_count)
    places = np.concatenate([[0], np.cumsum(counts)[:-1]]) + np.maximum(counts - 1, 0) // 2
    found = np.zeros(samples.signal_count)
    has_gap = counts > 0
    found[has_gap] = gaps[order[places[has_gap]]]
    steps: Reals = np.maximum(found, samples.span_s / (_MOST_REFINED * np.maximum(counts, 1)))
    return steps


def sums_at(turns: Reals, values: Reals, numbers: Ints) -> Complexes:
    """Return sum(x exp(-2 pi i k turns)) of one signal, or of several sets of values at its times.

    turns (points): a wave of number k makes k turns in one. values (points), or (sets, points). numbers (frequencies):
    rise by one.
    """
    import finufft  # type: ignore[import-untyped,unused-ignore]

    if not turns.size or not numbers.size:
        return np.zeros((*values.shape[:-1], len(numbers)), dtype=np.complex128)
    fraction = turns - np.floor(turns)
    # FINUFFT's modes lie around 0: move the middle of those that are wanted there
    middle = int(numbers[0]) + len(numbers) // 2
    strengths = np.ascontiguousarray(values * np.exp(-2j * np.pi * (middle * fraction)))
    sums: Complexes = finufft.nufft1d1(
        2.0 * np.pi * fraction, strengths, len(numbers), eps=_PRECISION, isign=-1, nthreads=1
    )
    return sums


def uneven_sums(turns: Reals, values: Reals, offsets: Ints, grid: FrequencyGrid) -> Complexes:
    """Return the sums of each signal at its own frequencies (n, frequencies); 0 beyond them."""
    sums = np.zeros((len(offsets) - 1, grid.most), dtype=np.complex128)
    for signal, (first, last) in enumerate(pairwise(offsets.tolist())):
        numbers = grid.numbers[: grid.counts[signal]]
        sums[signal, : len(numbers)] = sums_at(turns[first:last], values[first:last], numbers)
    return sums


def uneven_waves(turns: Reals, offsets: Ints, grid: FrequencyGrid) -> Waves:
    """Return what the times contribute, given in turns (points)."""
    doubled = uneven_sums(2.0 * turns, np.ones(len(turns)), offsets, grid)
    return Waves.of(doubled, np.diff(offsets).astype(np.float64))


def varying(standard: Reals, samples: UnevenSignals) -> Reals:
    """Return the variances of standardized values (n): 1, or 0 where nothing varies."""
    found: Reals = (np.bincount(samples.owner, standard != 0, samples.signal_count) > 0).astype(np.float64)
    return found


def turns_of(samples: UnevenSignals, grid: FrequencyGrid) -> Reals:
    """Return times since each signal's first sample over what the grid's wave of number 1 takes (samples)."""
    owner = samples.owner
    first, _ = _ends(samples.time_s, samples.offsets)
    whole = np.where(grid.span_s > 0, grid.span_s, 1.0) * grid.samples_per_peak
    found: Reals = (samples.time_s - first[owner]) / whole[owner]
    return found


def standardized_pieces(samples: UnevenSignals) -> Reals:
    """Return each signal's values (samples) without their mean and of variance 1; 0 where nothing varies."""
    values, owner, counts = samples.bytes_per_s, samples.owner, samples.counts
    largest = np.zeros(len(counts))
    if len(values):
        held = counts > 0
        largest[held] = np.maximum.reduceat(np.abs(values), samples.offsets[:-1][held])
    scaled = np.ldexp(values, -np.frexp(largest)[1][owner])
    divisor = np.maximum(counts, 1)
    centred = scaled - (np.bincount(owner, scaled, len(counts)) / divisor)[owner]
    deviation = np.sqrt(np.bincount(owner, centred * centred, len(counts)) / divisor)[owner]
    found = np.zeros_like(centred)
    np.divide(centred, deviation, out=found, where=deviation > _FLAT)
    return found


# ---- how probable a power is under white noise


def exponential_threshold(confidence: float, counts: npt.ArrayLike) -> Reals:
    """Return the power that white noise exceeds at any of so many frequencies with probability 1 - confidence (n).

    Horne & Baliunas (1986), equation 18 solved for the power: -ln(1 - confidence^(1/M)).
    """
    number = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    found: Reals = -np.log(-np.expm1(np.log(confidence) / number))
    return found


def exponential_probability(powers: Reals, counts: npt.ArrayLike) -> Reals:
    """Return how probable it is that white noise exceeds powers at any of so many frequencies: 1 - (1 - e^-P)^M."""
    with np.errstate(divide="ignore"):
        found: Reals = -np.expm1(np.asarray(counts, dtype=np.float64) * np.log1p(-np.exp(-np.maximum(powers, 0.0))))
    return found
