"""Autocorrelation functions of signals, and the periods of their peaks: FTIO's second method.

FTIO finds the peaks of the autocorrelation, measures the distances between consecutive peaks, drops outliers, and takes
the mean as the period (section II-C, "Autocorrelation"). By the Wiener-Khinchin theorem, the autocorrelation is the
inverse transform of the power spectrum, so it takes O(N log N). AUTOPERIOD uses the circular autocorrelation (section
3.2).

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, doi:10.1109/IPDPS57955.2024.00048
M. Vlachos, P. Yu and V. Castelli, "On Periodicity Detection and Structural Periodic Similarity", SDM'05,
doi:10.1137/1.9781611972757.40
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, irfft, next_fast_len, rfft

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.interface.detections import Candidates, Detections, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals

Texts = npt.NDArray[np.str_]

#: samples per chunk; a chunk and its padded spectrum fit into the CPU cache
_CHUNK_SAMPLES = 1 << 16
#: minimum number of samples in which two peaks are possible
_MIN_SAMPLES = 5
#: variation below this fraction of a signal's maximum is treated as rounding error
_FLAT_RATIO = 1e-12
#: range of values that can be squared without overflow or underflow
_MIN_VALUE, _MAX_VALUE = 1e-100, 1e100
#: relative tolerance of comparisons of Z-scores
_Z_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class AutocorrelationParams:
    """Conditions under which peaks of the autocorrelation yield a period.

    Attributes
    ----------
    min_height : float
        Minimum height of a peak (section II-C: 0.15). Lag 0 is no peak, as in `scipy.signal.find_peaks`, which the
        paper names.
    max_z : float
        Distances with a larger Z-score are outliers. The paper names no bound; FTIO 0.0.9 uses 1. With 3, the paper's
        example could not lose 12 of 17 distances.
    max_missing_ratio : float
        Maximum fraction of missing samples (ours: the paper has no gaps).
    min_pair_ratio : float
        Lags with a smaller fraction of known pairs of samples are interpolated (ours).
    """

    min_height: float = 0.15
    max_z: float = 1.0
    max_missing_ratio: float = 0.5
    min_pair_ratio: float = 0.1


# ---- the functions


def correlate_linear(values: Reals) -> Reals:
    """Compute the autocorrelation of signals minus their means, as FTIO does with `numpy.correlate`.

    Parameters
    ----------
    values : (n, samples)

    Returns
    -------
    (n, samples)
        One value per lag, from 0 to samples - 1: the sum of products, divided by the number of samples and the
        variance. NaN for incomplete or constant signals.
    """
    return _correlate_chunks(values, _choose_length(values.shape[1]))


def correlate_circular(values: Reals) -> Reals:
    """Compute the circular autocorrelation of signals minus their means.

    Parameters
    ----------
    values : (n, samples)

    Returns
    -------
    (n, samples)
        As for `correlate_linear`, but signals repeat after their end.
    """
    return _correlate_chunks(values, values.shape[1])


def correlate_with_gaps(values: Reals, *, is_circular: bool = False, min_pair_ratio: float = 0.1) -> Reals:
    """Compute the autocorrelation of signals with missing samples from the pairs of known samples.

    Parameters
    ----------
    values : (n, samples)
        NaN where missing.
    is_circular : bool
        Whether signals repeat after their end.
    min_pair_ratio : float
        Lags with a smaller fraction of known pairs are interpolated linearly.

    Returns
    -------
    (n, samples)
        Mean product of the known pairs, divided by the variance of the known samples; NaN after the last lag with
        enough pairs. The linear autocorrelation is weighted with ``(samples - lag) / samples``. So it equals
        `correlate_linear` if there are no gaps, and long lags, which have few pairs, do not stand out.
    """
    correlation = np.empty(values.shape)
    for place in _chunk_rows(values):
        correlation[place] = _correlate_known(values[place], is_circular, min_pair_ratio)
    return correlation


def _chunk_rows(values: Reals) -> list[slice]:
    """Row slices of chunks of `_CHUNK_SAMPLES` samples; a chunk has one row or more."""
    rows = max(1, _CHUNK_SAMPLES // max(1, values.shape[1]))
    starts = range(0, len(values) if values.size else 0, rows)
    return [slice(start, min(start + rows, len(values))) for start in starts]


def _correlate_chunks(values: Reals, length: int) -> Reals:
    correlation = np.empty(values.shape)
    for place in _chunk_rows(values):
        correlation[place] = _correlate(values[place], length)
    return correlation


def _choose_length(sample_count: int) -> int:
    """Choose an even, fast transform length that is long enough to keep the two ends of a signal apart."""
    length = int(next_fast_len(max(2 * sample_count - 1, 2), real=True))
    while length % 2:
        length = int(next_fast_len(length + 1, real=True))
    return length


def _sum_products(padded: Reals, count: int) -> Reals:
    """Sum the products of samples that are one lag apart, for the lags 0 to count - 1 (n, count)."""
    length = padded.shape[1]
    parts: Reals = rfft(padded, axis=1).view(np.float64)
    np.multiply(parts, parts, out=parts)
    power = parts[:, ::2] + parts[:, 1::2]
    if length % 2:
        sums: Reals = irfft(power, length, axis=1)
    else:
        # The transform of a real, even sequence is a cosine transform, at half the cost.
        sums = dct(power, type=1, axis=1, norm="forward", overwrite_x=True)
    if count > sums.shape[1]:
        lags = np.arange(count)
        sums = sums[:, np.minimum(lags, length - lags)]
    return sums[:, :count]


def _correlate(values: Reals, length: int) -> Reals:
    """Correlate (n, samples) by transforms of `length`: the number of samples (circular), or more (linear)."""
    work = np.zeros((len(values), length))
    is_varying = _center(values, work[:, : values.shape[1]])
    correlation = _sum_products(work, values.shape[1])
    correlation[:, 0] = 1.0
    if not is_varying.all():
        correlation[~is_varying] = np.nan
    return correlation


def _center(values: Reals, into: Reals) -> Bools:
    """Write signals minus their means, with a sum of squares of 1; return which are complete and vary (n)."""
    low, high = values.min(axis=1), values.max(axis=1)
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        is_varying: Bools = (high / 2 - low / 2 > _FLAT_RATIO * size) & np.isfinite(size)
    is_extreme = is_varying & ((size > _MAX_VALUE) | (size < _MIN_VALUE))
    if is_extreme.any():
        values = values.copy()
        values[is_extreme] /= size[is_extreme, None]
    if not is_varying.all():
        values = np.where(is_varying[:, None], values, 0.0)
    np.subtract(values, values.mean(axis=1)[:, None], out=into)
    norm = np.sqrt(np.einsum("ij,ij->i", into, into))
    into *= (1.0 / np.where(norm > 0, norm, 1.0))[:, None]
    return is_varying


def _correlate_known(values: Reals, is_circular: bool, min_pair_ratio: float) -> Reals:
    count = values.shape[1]
    known = np.isfinite(values)
    known_counts = known.sum(axis=1)
    # Placeholders in gaps are removed below; until then they must not change the signal's range.
    minimum = np.where(known, values, np.inf).min(axis=1)
    padded = np.zeros((len(values), count if is_circular else _choose_length(count)))
    signal = padded[:, :count]
    is_varying = _center(np.where(known, values, np.where(known_counts > 0, minimum, 0.0)[:, None]), signal)
    signal[~known] = 0.0
    signal -= (signal.sum(axis=1) / np.maximum(known_counts, 1))[:, None]
    signal[~known] = 0.0
    variance = np.square(signal).sum(axis=1) / np.maximum(known_counts, 1)
    sums = _sum_products(padded, count)
    signal[:] = known
    pairs = np.rint(_sum_products(padded, count))
    max_pairs = np.full(count, count) if is_circular else count - np.arange(count)
    has_pairs = pairs >= np.maximum(1.0, min_pair_ratio * max_pairs)
    scale = np.where(is_varying, variance, 1.0)[:, None] * np.maximum(pairs, 1.0)
    correlation = np.where(has_pairs, sums / scale * (max_pairs / count), np.nan)
    _interpolate_gaps(correlation)
    correlation[:, 0] = 1.0
    correlation[~is_varying] = np.nan
    return correlation


def _interpolate_gaps(values: Reals) -> None:
    """Interpolate gaps between known values linearly, in place, row by row."""
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    part = values[rows]
    count, known = part.shape[1], np.isfinite(part)
    columns = np.arange(count)
    before = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, columns, count)[:, ::-1], axis=1)[:, ::-1]
    row, column = np.nonzero(~known & (before >= 0) & (after < count))
    left, right = before[row, column], after[row, column]
    weight = (column - left) / (right - left)
    part[row, column] = (1.0 - weight) * part[row, left] + weight * part[row, right]
    values[rows] = part


# ---- peaks


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peaks of many rows (peaks): row, column and height, sorted by row, then column."""

    row: Ints
    place: Ints
    height: Reals


def find_row_peaks(values: Reals, min_height: float) -> Peaks:
    """Find peaks as `scipy.signal.find_peaks(row, height=min_height)` does, in all rows at once.

    Parameters
    ----------
    values : (n, samples)
    min_height : float
        Minimum height of a peak.

    Returns
    -------
    Peaks
        A plateau has its peak in the middle, or left of the middle if its length is even.
    """
    # SciPy's function takes one row at a time, and a second to import. The infinite wall between rows suppresses peaks
    # at edges.
    walled = np.full((len(values), values.shape[1] + 1), np.inf)
    walled[:, 1:] = values
    line = np.append(walled.ravel(), np.inf)
    starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
    level = line[starts]
    inner = level[1:-1]
    is_peak = (inner > level[:-2]) & (inner > level[2:]) & (inner >= min_height) & (inner < np.inf)
    peak_runs = np.flatnonzero(is_peak) + 1
    # middle of a plateau, rounded to the left
    row, column = np.divmod((starts[peak_runs] + starts[peak_runs + 1] - 1) // 2, walled.shape[1])
    return Peaks(row, column - 1, level[peak_runs])


# ---- the period


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances between consecutive peaks (distances): row, samples, weight, and whether each is kept (no outlier)."""

    row: Ints
    samples: Reals
    weight: Reals
    is_kept: Bools

    def drop_outliers(self) -> Distances:
        """Return the distances that are not outliers within their row."""
        return rows_of(self, np.flatnonzero(self.is_kept))


def measure_distances(peaks: Peaks, row_count: int, max_z: float = 1.0) -> Distances:
    """Measure the distances between consecutive peaks of each row, and mark outliers.

    Parameters
    ----------
    peaks : Peaks
    row_count : int
    max_z : float
        Distances with a larger Z-score are outliers.

    Returns
    -------
    Distances

    Notes
    -----
    The weight of a distance is the height of the lower of its two peaks. (FTIO 0.0.9 takes the difference of the
    heights, which may be negative.) The Z-score refers to the weighted mean and standard deviation of the row (section
    II-C).
    """
    left = np.flatnonzero(peaks.row[1:] == peaks.row[:-1])
    row = peaks.row[left]
    samples = (peaks.place[left + 1] - peaks.place[left]).astype(np.float64)
    weight = np.minimum(peaks.height[left + 1], peaks.height[left])
    # heights are positive unless `min_height` is not: then all weights are equal
    weight = np.where(weight > 0, weight, 0.0)
    total = np.bincount(row, weight, row_count)[row]
    weight = np.where(total > 0, weight, 1.0)
    mean, deviation = _compute_moments(row, samples, weight, row_count)
    max_deviation = max_z * (1.0 + _Z_TOLERANCE) * deviation[row] + _Z_TOLERANCE
    return Distances(row, samples, weight, np.abs(samples - mean[row]) <= max_deviation)


def _compute_moments(row: Ints, values: Reals, weight: Reals, row_count: int) -> tuple[Reals, Reals]:
    """Weighted mean and standard deviation of each row's values (rows); NaN for rows without values."""
    total = np.bincount(row, weight, row_count)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(row, weight * values, row_count) / total
        variance = np.bincount(row, weight * np.square(values - mean[row]), row_count) / total
    return mean, np.sqrt(variance)


def detect(signals: EvenSignals, params: AutocorrelationParams | None = None) -> Detections:
    """Detect each signal's period as the mean distance between its peaks, without outliers.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    params : AutocorrelationParams, optional

    Returns
    -------
    Detections
        The confidence is 1 - sigma / mean of the distances (section II-C). The candidates are the distances, converted
        to frequencies and sorted by weight. The outcome is the first that applies of `no_data`, `too_many_gaps`,
        `too_short`, `no_io` (all known samples are 0), `aperiodic` (fewer than two peaks, or a confidence of 0) and
        `periodic`.
    """
    params = params or AutocorrelationParams()
    rows, parts = [], []
    for chunk, part in signals.iter_chunks(_CHUNK_SAMPLES):
        rows.append(np.arange(chunk.start, chunk.stop))
        parts.append(_detect(part, params))
    return gather(parts, rows)


def _detect(signals: EvenSignals, params: AutocorrelationParams) -> Detections:
    peaks, outcome = _find_signal_peaks(signals, params)
    distances = measure_distances(peaks, signals.signal_count, params.max_z).drop_outliers()
    distances = rows_of(distances, np.lexsort((-distances.weight, distances.row)))
    mean, deviation = _compute_moments(
        distances.row, distances.samples, np.ones(len(distances.row)), signals.signal_count
    )
    is_periodic = deviation < mean
    frequency = np.where(is_periodic, signals.sampling_hz / mean, np.nan)
    confidence = np.where(is_periodic, 1.0 - deviation / mean, np.nan)
    outcome = np.where(outcome == "", np.where(is_periodic, "periodic", "aperiodic"), outcome)
    unknown = np.full(len(distances.row), np.nan)
    offsets = offsets_of(np.bincount(distances.row, minlength=signals.signal_count))
    candidates = Candidates(signals.sampling_hz[distances.row] / distances.samples, unknown, unknown, unknown, offsets)
    false_alarm = np.full(signals.signal_count, np.nan)
    return Detections(outcome, frequency, confidence, signals.start_s, signals.end_s, false_alarm, candidates)


def _find_signal_peaks(signals: EvenSignals, params: AutocorrelationParams) -> tuple[Peaks, Texts]:
    """Peaks of the autocorrelations, and the outcomes (n): empty if the signal can be tested."""
    values = signals.bytes_per_s
    outcome, is_whole = _classify_untestable(values, params)
    is_fit = outcome == ""
    whole, gappy = np.flatnonzero(is_fit & is_whole), np.flatnonzero(is_fit & ~is_whole)
    correlation = np.full(values.shape, np.nan)
    if len(whole):
        correlation[whole] = _correlate(values[whole], _choose_length(signals.sample_count))
    if len(gappy):
        correlation[gappy] = _correlate_known(values[gappy], False, params.min_pair_ratio)
    return find_row_peaks(correlation, params.min_height), outcome


def _classify_untestable(values: Reals, params: AutocorrelationParams) -> tuple[Texts, Bools]:
    """Outcomes (n), empty if the signal can be tested, and whether each signal is complete (n)."""
    count = values.shape[1]
    known_counts = np.full(len(values), count)
    low, high = values.min(axis=1, initial=0.0), values.max(axis=1, initial=0.0)
    is_whole: Bools = np.isfinite(low) & np.isfinite(high)
    is_io = (low < 0) | (high > 0)
    incomplete = np.flatnonzero(~is_whole)
    if len(incomplete):
        known = np.isfinite(values[incomplete])
        known_counts[incomplete] = known.sum(axis=1)
        is_io[incomplete] = (known & (values[incomplete] != 0)).any(axis=1)
    is_gappy = known_counts < (1.0 - params.max_missing_ratio) * count
    reasons = ("no_data", "too_many_gaps", "too_short", "no_io")
    tests = [known_counts == 0, is_gappy, known_counts < _MIN_SAMPLES, ~is_io]
    return np.select(tests, reasons, "").astype("<U16"), is_whole
