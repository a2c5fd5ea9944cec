"""Compute discrete Fourier transforms of many signals: power and cosine components (FTIO, section II-B1).

N samples have the bins k = 1 .. floor(N / 2), at frequencies k over the signal's duration; bin 0 is the mean.

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals

Complexes = npt.NDArray[np.complex128]

#: a standard deviation below this fraction of the mean is treated as rounding error (ours: FTIO 0.0.9 finds periods in
#: the rounding errors of a constant)
MIN_VARIATION = 1e-12
#: below this ratio of variance to squared mean, the difference of sums is too inaccurate, and the mean is subtracted
#: first (above it, 14 digits are correct)
_SMALL_VARIANCE = 0.01
#: exponent of two beyond which fourth powers of rates overflow or underflow
_RANGE_BITS = 200


@dataclass(frozen=True, slots=True)
class Spectra:
    """Spectra of n signals of equal length.

    Attributes
    ----------
    coefficients : (n, bins)
        The paper's X_k for k from 1, in `unit_bytes_per_s`.
    power : (n, bins)
        ``abs(X_k)**2 / N``, in squared units.
    total_power : (n,)
        Sum of the power.
    mean_bytes_per_s : (n,)
        Mean of the measured samples; 0 without any.
    unit_bytes_per_s : (n,)
        1, or a power of two if the power of the rates is beyond the range of a float.
    missing_ratio : (n,)
        Fraction of unmeasured samples.
    sampling_hz, start_s : (n,)
        Sampling frequency and start of each signal.
    sample_count : int
        N.
    """

    coefficients: Complexes
    power: Reals
    total_power: Reals
    mean_bytes_per_s: Reals
    unit_bytes_per_s: Reals
    missing_ratio: Reals
    sampling_hz: Reals
    start_s: Reals
    sample_count: int

    @property
    def signal_count(self) -> int:
        """Number of signals in this batch."""
        return len(self.power)

    @property
    def bin_count(self) -> int:
        """Number of bins of each signal, without the bin of the mean."""
        return int(self.power.shape[1])

    @property
    def frequencies_hz(self) -> Reals:
        """Frequency of each bin (n, bins)."""
        result: Reals = self.sampling_hz[:, None] * np.arange(1, self.bin_count + 1) / max(self.sample_count, 1)
        return result

    @property
    def shares(self) -> Reals:
        """Power of each bin as a fraction of the signal's total power, without the mean (n, bins); 0 without power."""
        total = np.where(self.total_power > 0, self.total_power, 1.0)
        result: Reals = self.power / total[:, None]
        return result

    @property
    def deviation_bytes_per_s(self) -> Reals:
        """Standard deviation of each signal's samples (n), by Parseval's theorem."""
        twice = 2.0 * self.total_power
        if self.bin_count and self.sample_count % 2 == 0:
            twice = twice - self.power[:, -1]
        result: Reals = np.sqrt(np.maximum(twice, 0.0) / max(self.sample_count, 1)) * self.unit_bytes_per_s
        return result

    @property
    def is_constant(self) -> Bools:
        """Whether each signal varies only by rounding errors (n)."""
        result: Bools = self.deviation_bytes_per_s <= MIN_VARIATION * np.abs(self.mean_bytes_per_s)
        return result

    def get_frequencies(self, signal: Ints, bins: Ints) -> Reals:
        """Frequencies of bins [Hz], by number of the signal and bin k from 1 (m)."""
        result: Reals = self.sampling_hz[signal] * bins / max(self.sample_count, 1)
        return result

    def get_cosines(self, signal: Ints, bins: Ints) -> tuple[Reals, Reals, Reals]:
        """Return the cosine components of bins (equation 1).

        Parameters
        ----------
        signal, bins : (m,)
            Number of the signal, and k from 1.

        Returns
        -------
        frequency_hz, amplitude_bytes_per_s, phase_rad : (m,)
            The amplitude is ``2 abs(X_k) / N``; the highest bin of an even number of samples counts once.
        """
        selected = self.coefficients[signal, bins - 1]
        scale = np.where(2 * bins == self.sample_count, 1.0, 2.0) / max(self.sample_count, 1)
        with np.errstate(over="ignore"):
            amplitude = np.abs(selected) * scale * self.unit_bytes_per_s[signal]
        return self.get_frequencies(signal, bins), amplitude, np.angle(selected)


def compute_spectra(signals: EvenSignals) -> Spectra:
    """Compute the spectra of signals; use `EvenSignals.iter_chunks` to bound the memory.

    Parameters
    ----------
    signals : EvenSignals
        n signals.

    Returns
    -------
    Spectra
        The spectra need 1.5 times the memory of the signals. An unmeasured sample is replaced by the mean of the
        measured ones, so that it adds nothing to any frequency.
    """
    count, rows = signals.sample_count, signals.signal_count
    unit, missing = np.ones(rows), np.zeros(rows)
    if not count:
        empty = np.zeros((rows, 0))
        parts = empty.astype(np.complex128), empty, np.zeros(rows), np.zeros(rows)
        return Spectra(*parts, unit, missing + 1.0, signals.sampling_hz, signals.start_s, count)
    coefficients, power, total, mean = _transform(signals.bytes_per_s)
    # Missing and out-of-range samples show in the sums, so most signals are transformed only once.
    with np.errstate(over="ignore", invalid="ignore"):
        energy = total + count * np.square(mean)
    special = np.flatnonzero(~_is_in_range(energy, signals.bytes_per_s))
    if len(special):
        values, unit[special], missing[special] = _normalize(signals.bytes_per_s[special])
        coefficients[special], power[special], total[special], mean[special] = _transform(values)
    return Spectra(coefficients, power, total, mean * unit, unit, missing, signals.sampling_hz, signals.start_s, count)


def _transform(values: Reals) -> tuple[Complexes, Reals, Reals, Reals]:
    """Coefficients and power (n, bins) without the bin of the mean, total power and means (n)."""
    whole = scipy.fft.rfft(values, axis=1)
    coefficients = whole[:, 1:]
    with np.errstate(all="ignore"):
        power: Reals = np.square(coefficients.real)
        power += np.square(coefficients.imag)
        power *= 1.0 / values.shape[1]
        return coefficients, power, power.sum(axis=1), whole[:, 0].real / values.shape[1]


def _is_in_range(energy: Reals, values: Reals) -> Bools:
    """Whether the fourth powers of signals are in the range of floats (n), from the sums of their squares (n)."""
    is_in_range: Bools = (energy > 2.0 ** (-2 * _RANGE_BITS)) & (energy < 2.0 ** (2 * _RANGE_BITS))
    zero = np.flatnonzero(energy == 0)
    is_in_range[zero] = ~values[zero].any(axis=1)
    return is_in_range


def _normalize(values: Reals) -> tuple[Reals, Reals, Reals]:
    """Fill gaps with the mean, scale to units (n) in which powers are finite, and return the fraction of gaps (n)."""
    is_known = np.isfinite(values)
    known = np.where(is_known, values, 0.0)
    exponent = np.frexp(np.abs(known).max(axis=1))[1] - 1
    exponent[np.abs(exponent) < _RANGE_BITS] = 0
    known = np.ldexp(known, -exponent[:, None])
    count = is_known.sum(axis=1)
    mean = known.sum(axis=1) / np.maximum(count, 1)
    filled = np.where(is_known, known, mean[:, None])
    return filled, np.ldexp(1.0, exponent), 1.0 - count / values.shape[1]


def compute_moments(power: Reals) -> tuple[Reals, Reals]:
    """Compute the mean and the standard deviation of power.

    Parameters
    ----------
    power : (n, bins)

    Returns
    -------
    mean, deviation : (n,)
        The deviation is 0 where it is a rounding error.
    """
    bins = power.shape[1]
    mean = power.sum(axis=1) / bins
    variance = np.vecdot(power, power) / bins - mean * mean
    # Where the variance is small relative to the mean, sums of squares cancel: subtract the mean first.
    small = np.flatnonzero(variance < _SMALL_VARIANCE * mean * mean)
    if len(small):
        deviation = power[small] - mean[small, None]
        variance[small] = np.vecdot(deviation, deviation) / bins
    spread = np.sqrt(np.maximum(variance, 0.0))
    return mean, np.where(spread > MIN_VARIATION * mean, spread, 0.0)
