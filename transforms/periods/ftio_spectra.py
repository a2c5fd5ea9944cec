"""The discrete Fourier transform of many signals: their power, and their cosines (FTIO, section II-B1).

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, doi:10.1109/IPDPS57955.2024.00048. Of N
samples there are the bins k = 1 .. floor(N / 2), whose frequencies are k over the signal's duration; bin 0 is the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.even_signals import EvenSignals

Complexes = npt.NDArray[np.complex128]

#: a standard deviation that is a smaller share of the mean is rounding, not a signal (ours: FTIO 0.0.9 finds periods
#: in the rounding errors of a constant)
LEAST_VARIATION = 1e-12
#: of the mean's square; above it, a difference of sums of squares is right to 14 digits
_SMALL_VARIANCE = 0.01
#: fourth powers of rates beyond 2**200, or below 2**-200, leave the range of a float
_RANGE_BITS = 200


@dataclass(frozen=True, slots=True)
class Spectra:
    """Spectra of n signals of as many samples each.

    coefficients (n, bins): X_k of the paper for k from 1 up, in units. power (n, bins): abs(X_k)**2 / N, in units
    squared. total_power (n): its sum. mean_bytes_per_s (n): of the samples that were measured; 0 where none was.
    unit_bytes_per_s (n): 1, but for rates whose powers a float cannot hold: then a power of two. missing_ratio (n):
    the share of samples that were not measured. sampling_hz, started_s (n): as of the signals.
    """

    coefficients: Complexes
    power: Reals
    total_power: Reals
    mean_bytes_per_s: Reals
    unit_bytes_per_s: Reals
    missing_ratio: Reals
    sampling_hz: Reals
    started_s: Reals
    sample_count: int

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.power)

    @property
    def bin_count(self) -> int:
        """The number of bins of each, the mean's not counted."""
        return int(self.power.shape[1])

    @property
    def frequencies_hz(self) -> Reals:
        """The frequency of each bin (n, bins)."""
        found: Reals = self.sampling_hz[:, None] * np.arange(1, self.bin_count + 1) / max(self.sample_count, 1)
        return found

    @property
    def shares(self) -> Reals:
        """What each frequency contributes to its signal's power without the mean's (n, bins); 0 where there is none."""
        total = np.where(self.total_power > 0, self.total_power, 1.0)
        found: Reals = self.power / total[:, None]
        return found

    @property
    def deviation_bytes_per_s(self) -> Reals:
        """The standard deviation of each signal's samples (n), by Parseval's theorem."""
        twice = 2.0 * self.total_power
        if self.bin_count and self.sample_count % 2 == 0:
            twice = twice - self.power[:, -1]
        found: Reals = np.sqrt(np.maximum(twice, 0.0) / max(self.sample_count, 1)) * self.unit_bytes_per_s
        return found

    @property
    def is_constant(self) -> Bools:
        """Whether each signal varies no more than rounding does (n)."""
        found: Bools = self.deviation_bytes_per_s <= LEAST_VARIATION * np.abs(self.mean_bytes_per_s)
        return found

    def frequencies_of(self, signal: Ints, bins: Ints) -> Reals:
        """Return the frequency in Hz of chosen bins (m), k from 1 up, of signals by their numbers (m)."""
        found: Reals = self.sampling_hz[signal] * bins / max(self.sample_count, 1)
        return found

    def cosines_of(self, signal: Ints, bins: Ints) -> tuple[Reals, Reals, Reals]:
        """Return frequency in Hz, amplitude in bytes per second and phase in rad of chosen bins (m), by equation 1.

        signal, bins (m): the number of the signal, and k. The amplitude is 2 abs(X_k) / N; the highest bin of an even
        number of samples counts once.
        """
        chosen = self.coefficients[signal, bins - 1]
        halves = np.where(2 * bins == self.sample_count, 1.0, 2.0) / max(self.sample_count, 1)
        with np.errstate(over="ignore"):
            amplitude = np.abs(chosen) * halves * self.unit_bytes_per_s[signal]
        return self.frequencies_of(signal, bins), amplitude, np.angle(chosen)


def spectra(signals: EvenSignals) -> Spectra:
    """Return the spectra of signals; `EvenSignals.chunks` bounds the memory, which is 1.5 times the signals' own.

    A sample that was not measured is taken for the mean of those that were: it adds nothing to any frequency.
    """
    count, rows = signals.sample_count, signals.signal_count
    unit, missing = np.ones(rows), np.zeros(rows)
    if not count:
        nothing = np.zeros((rows, 0))
        parts = nothing.astype(np.complex128), nothing, np.zeros(rows), np.zeros(rows)
        return Spectra(*parts, unit, missing + 1.0, signals.sampling_hz, signals.started_s, count)
    coefficients, power, total, mean = _transformed(signals.bytes_per_s)
    # What is not measured, or beyond the range of a float, shows in the sums: most signals are looked at only once.
    with np.errstate(over="ignore", invalid="ignore"):
        energy = total + count * np.square(mean)
    odd = np.flatnonzero(~_is_in_range(energy, signals.bytes_per_s))
    if len(odd):
        values, unit[odd], missing[odd] = _mended(signals.bytes_per_s[odd])
        coefficients[odd], power[odd], total[odd], mean[odd] = _transformed(values)
    return Spectra(
        coefficients, power, total, mean * unit, unit, missing, signals.sampling_hz, signals.started_s, count
    )


def _transformed(values: Reals) -> tuple[Complexes, Reals, Reals, Reals]:
    """Return coefficients and power (n, bins) without the mean's, the powers' sums and the means (n)."""
    whole = scipy.fft.rfft(values, axis=1)
    coefficients = whole[:, 1:]
    with np.errstate(all="ignore"):
        power: Reals = np.square(coefficients.real)
        power += np.square(coefficients.imag)
        power *= 1.0 / values.shape[1]
        return coefficients, power, power.sum(axis=1), whole[:, 0].real / values.shape[1]


def _is_in_range(energy: Reals, values: Reals) -> Bools:
    """Return whether signals are of numbers whose fourth powers floats hold (n), by the sums of their squares (n)."""
    found: Bools = (energy > 2.0 ** (-2 * _RANGE_BITS)) & (energy < 2.0 ** (2 * _RANGE_BITS))
    nothing = np.flatnonzero(energy == 0)
    found[nothing] = ~values[nothing].any(axis=1)
    return found


def _mended(values: Reals) -> tuple[Reals, Reals, Reals]:
    """Return signals without gaps, in units (n) in which their powers are floats, and the share of gaps (n)."""
    is_known = np.isfinite(values)
    known = np.where(is_known, values, 0.0)
    exponent = np.frexp(np.abs(known).max(axis=1))[1] - 1
    exponent[np.abs(exponent) < _RANGE_BITS] = 0
    known = np.ldexp(known, -exponent[:, None])
    count = is_known.sum(axis=1)
    mean = known.sum(axis=1) / np.maximum(count, 1)
    found = np.where(is_known, known, mean[:, None])
    return found, np.ldexp(1.0, exponent), 1.0 - count / values.shape[1]


def moments(power: Reals) -> tuple[Reals, Reals]:
    """Return the mean and the standard deviation of powers (n, bins), (n) each; 0 where the deviation is rounding."""
    bins = power.shape[1]
    mean = power.sum(axis=1) / bins
    variance = np.vecdot(power, power) / bins - mean * mean
    # Sums of squares lose what is small beside the mean: there, the deviations are taken first.
    small = np.flatnonzero(variance < _SMALL_VARIANCE * mean * mean)
    if len(small):
        apart = power[small] - mean[small, None]
        variance[small] = np.vecdot(apart, apart) / bins
    spread = np.sqrt(np.maximum(variance, 0.0))
    return mean, np.where(spread > LEAST_VARIATION * mean, spread, 0.0)
