"""How alike signals are to themselves some time later, and the period that this tells.

FTIO's second method (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C,
"Autocorrelation"): peaks of the autocorrelation function, the distances between them, those that are no outliers,
and their average. Wiener and Khinchin: the function is the inverse transform of the power spectrum, so it takes
O(N log N). The circular function is what AUTOPERIOD works on (Vlachos, Yu and Castelli, SDM'05, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, irfft, next_fast_len, rfft

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.answers import Candidates, Detections, gathered
from iosig.transforms.periods.even_signals import EvenSignals

Texts = npt.NDArray[np.str_]

#: samples that are transformed at a time: they and their padded spectrum fit the cache
_CHUNK_SAMPLES = 1 << 16
#: with fewer samples no two peaks have room
_LEAST_SAMPLES = 5
#: a signal that varies by less than this, of its largest value, varies by rounding alone
_FLAT_RATIO = 1e-12
#: squares of values beyond these leave the range of a float
_LEAST_VALUE, _LARGEST_VALUE = 1e-100, 1e100
#: two Z-scores that should be one may differ by rounding
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class AutocorrelationParams:
    """When peaks of the autocorrelation make a period.

    least_height: lower peaks do not count (section II-C: 0.15). most_z: distances whose Z-score is beyond it are
    outliers; the paper names no bound, FTIO 0.0.9 has 1, and with 3 its example could not lose 12 of 17 distances.
    The lag 0 is no peak: SciPy's `find_peaks`, which the paper names, has none at the edge. max_missing_ratio: the
    share of samples that may be missing (ours: the paper has no gaps). least_pair_ratio: a lag for which fewer of its
    pairs of samples are known is bridged from its neighbours (ours).
    """

    least_height: float = 0.15
    most_z: float = 1.0
    max_missing_ratio: float = 0.5
    least_pair_ratio: float = 0.1


# ---- the functions


def linear(values: Reals) -> Reals:
    """Return each signal's autocorrelation at the lags 0 to samples - 1 (n, samples), its mean taken away.

    The sum of the products of samples that are a lag apart, over samples and variance: what FTIO has of NumPy's
    `correlate`. NaN for a signal that lacks a sample or does not vary.
    """
    return _whole(values, _padded_length(values.shape[1]))


def circular(values: Reals) -> Reals:
    """Return each signal's circular autocorrelation at the lags 0 to samples - 1 (n, samples), its mean taken away.

    As `linear`, of a signal that begins anew where it ends. NaN for a signal that lacks a sample or does not vary.
    """
    return _whole(values, values.shape[1])


def masked(values: Reals, *, is_circular: bool = False, least_pair_ratio: float = 0.1) -> Reals:
    """Return each signal's autocorrelation where samples are missing (NaN): over pairs of known samples alone.

    The mean product of the known pairs of a lag, over the variance of the known samples. The linear one is weighted
    with (samples - lag) / samples: without gaps it is `linear`, and far lags, of which there are few pairs, do not
    stand out. Lags with too few known pairs are bridged from their neighbours; NaN behind the last that has enough.
    """
    found = np.empty(values.shape)
    for place in _chunks(values):
        found[place] = _masked(values[place], is_circular, least_pair_ratio)
    return found


def _chunks(values: Reals) -> list[slice]:
    """Return the rows of each chunk of `_CHUNK_SAMPLES` samples, at least one row each."""
    rows = max(1, _CHUNK_SAMPLES // max(1, values.shape[1]))
    starts = range(0, len(values) if values.size else 0, rows)
    return [slice(start, min(start + rows, len(values))) for start in starts]


def _whole(values: Reals, length: int) -> Reals:
    found = np.empty(values.shape)
    for place in _chunks(values):
        found[place] = _correlated(values[place], length)
    return found


def _padded_length(sample_count: int) -> int:
    """Return a length of transform, even and fast, in which the ends of a signal do not meet."""
    length = int(next_fast_len(max(2 * sample_count - 1, 2), real=True))
    while length % 2:
        length = int(next_fast_len(length + 1, real=True))
    return length


def _products(padded: Reals, count: int) -> Reals:
    """Return the sums of the products of samples that are a lag apart, at the lags 0 to count - 1 (n, count)."""
    length = padded.shape[1]
    parts: Reals = rfft(padded, axis=1).view(np.float64)
    np.multiply(parts, parts, out=parts)
    power = parts[:, ::2] + parts[:, 1::2]
    if length % 2:
        found: Reals = irfft(power, length, axis=1)
    else:
        # What is real and even has a cosine transform: half of the work.
        found = dct(power, type=1, axis=1, norm="forward", overwrite_x=True)
    if count > found.shape[1]:
        places = np.arange(count)
        found = found[:, np.minimum(places, length - places)]
    return found[:, :count]


def _correlated(values: Reals, length: int) -> Reals:
    """Return autocorrelations (n, samples) by transforms of a length: the samples' own, or one with room for them."""
    work = np.zeros((len(values), length))
    is_varying = _centre(values, work[:, : values.shape[1]])
    found = _products(work, values.shape[1])
    found[:, 0] = 1.0
    if not is_varying.all():
        found[~is_varying] = np.nan
    return found


def _centre(values: Reals, into: Reals) -> Bools:
    """Write signals without their means, of a sum of squares of 1; return which vary and are known throughout (n)."""
    low, high = values.min(axis=1), values.max(axis=1)
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        is_varying: Bools = (high / 2 - low / 2 > _FLAT_RATIO * size) & np.isfinite(size)
    is_extreme = is_varying & ((size > _LARGEST_VALUE) | (size < _LEAST_VALUE))
    if is_extreme.any():
        values = values.copy()
        values[is_extreme] /= size[is_extreme, None]
    if not is_varying.all():
        values = np.where(is_varying[:, None], values, 0.0)
    np.subtract(values, values.mean(axis=1)[:, None], out=into)
    norm = np.sqrt(np.einsum("ij,ij->i", into, into))
    into *= (1.0 / np.where(norm > 0, norm, 1.0))[:, None]
    return is_varying


def _masked(values: Reals, is_circular: bool, least_pair_ratio: float) -> Reals:
    count = values.shape[1]
    known = np.isfinite(values)
    known_counts = known.sum(axis=1)
    # What stands in a gap is taken out again below; until then it must not change the signal's range.
    least = np.where(known, values, np.inf).min(axis=1)
    padded = np.zeros((len(values), count if is_circular else _padded_length(count)))
    signal = padded[:, :count]
    is_varying = _centre(np.where(known, values, np.where(known_counts > 0, least, 0.0)[:, None]), signal)
    signal[~known] = 0.0
    signal -= (signal.sum(axis=1) / np.maximum(known_counts, 1))[:, None]
    signal[~known] = 0.0
    variance = np.square(signal).sum(axis=1) / np.maximum(known_counts, 1)
    sums = _products(padded, count)
    signal[:] = known
    pairs = np.rint(_products(padded, count))
    most = np.full(count, count) if is_circular else count - np.arange(count)
    is_enough = pairs >= np.maximum(1.0, least_pair_ratio * most)
    scale = np.where(is_varying, variance, 1.0)[:, None] * np.maximum(pairs, 1.0)
    found = np.where(is_enough, sums / scale * (most / count), np.nan)
    _bridge(found)
    found[:, 0] = 1.0
    found[~is_varying] = np.nan
    return found


def _bridge(values: Reals) -> None:
    """Fill gaps between known values with straight lines, in place, row by row."""
    rows = np.flatnonzero(np.isnan(values).any(axis=1))
    part = values[rows]
    count, known = part.shape[1], np.isfinite(part)
    places = np.arange(count)
    before = np.maximum.accumulate(np.where(known, places, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, places, count)[:, ::-1], axis=1)[:, ::-1]
    row, place = np.nonzero(~known & (before >= 0) & (after < count))
    left, right = before[row, place], after[row, place]
    share = (place - left) / (right - left)
    part[row, place] = (1.0 - share) * part[row, left] + share * part[row, right]
    values[rows] = part


# ---- peaks


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peaks of many rows (peaks): the row, the place in it, the height; in order of rows, then places."""

    row: Ints
    place: Ints
    height: Reals


def peaks(values: Reals, least_height: float) -> Peaks:
    """Return what `scipy.signal.find_peaks(row, height=least_height)` finds in each row (n, samples)."""
    # SciPy's takes one row at a time, and a second to be imported. Beside the infinite wall between rows is no peak.
    walled = np.full((len(values), values.shape[1] + 1), np.inf)
    walled[:, 1:] = values
    line = np.append(walled.ravel(), np.inf)
    starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
    level = line[starts]
    inner = level[1:-1]
    is_peak = (inner > level[:-2]) & (inner > level[2:]) & (inner >= least_height) & (inner < np.inf)
    at = np.flatnonzero(is_peak) + 1
    # of a plateau the middle, the left one of two
    row, place = np.divmod((starts[at] + starts[at + 1] - 1) // 2, walled.shape[1])
    return Peaks(row, place - 1, level[at])


# ---- the period


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances between consecutive peaks (distances): the row, how many samples, the weight, whether it is kept."""

    row: Ints
    samples: Reals
    weight: Reals
    is_kept: Bools

    def kept(self) -> Distances:
        """Return those that are kept."""
        return rows_of(self, np.flatnonzero(self.is_kept))


def distances(found: Peaks, row_count: int, most_z: float = 1.0) -> Distances:
    """Return the distances between consecutive peaks of each row, and which of them are no outliers.

    A distance's weight is the height of the lower one of its two peaks: it is as sure as the less sure of its ends.
    (FTIO 0.0.9 takes the difference of the heights, which may be negative.) Its Z-score is its distance from the
    weighted mean of its row, in weighted standard deviations (section II-C).
    """
    begin = np.flatnonzero(found.row[1:] == found.row[:-1])
    row = found.row[begin]
    samples = (found.place[begin + 1] - found.place[begin]).astype(np.float64)
    weight = np.minimum(found.height[begin + 1], found.height[begin])
    # heights are positive unless the bound is not: then all count alike
    weight = np.where(weight > 0, weight, 0.0)
    total = np.bincount(row, weight, row_count)[row]
    weight = np.where(total > 0, weight, 1.0)
    mean, deviation = _spread(row, samples, weight, row_count)
    most = most_z * (1.0 + _SLACK) * deviation[row] + _SLACK
    return Distances(row, samples, weight, np.abs(samples - mean[row]) <= most)


def _spread(row: Ints, values: Reals, weight: Reals, row_count: int) -> tuple[Reals, Reals]:
    """Return the weighted mean and standard deviation of each row's values (rows); NaN where it has none."""
    total = np.bincount(row, weight, row_count)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(row, weight * values, row_count) / total
        variance = np.bincount(row, weight * np.square(values - mean[row]), row_count) / total
    return mean, np.sqrt(variance)


def detect(signals: EvenSignals, params: AutocorrelationParams | None = None) -> Detections:
    """Return each signal's period as the mean of the distances between its peaks that are no outliers.

    The confidence is 1 - sigma / mean of these distances (section II-C); they are the candidates, as frequencies, in
    order of their weights, without confidences of their own. The first outcome that holds is given: `no_data`,
    `too_many_gaps`, `too_short`, `no_io` (all that is known is 0), `aperiodic` (fewer than two peaks, or the distances
    vary as much as they are long: a confidence of 0), `periodic`.
    """
    params = params or AutocorrelationParams()
    places, parts = [], []
    for place, part in signals.chunks(_CHUNK_SAMPLES):
        places.append(np.arange(place.start, place.stop))
        parts.append(_detect(part, params))
    return gathered(parts, places)


def _detect(signals: EvenSignals, params: AutocorrelationParams) -> Detections:
    found, outcome = _peaks_of(signals, params)
    kept = distances(found, signals.signal_count, params.most_z).kept()
    kept = rows_of(kept, np.lexsort((-kept.weight, kept.row)))
    mean, deviation = _spread(kept.row, kept.samples, np.ones(len(kept.row)), signals.signal_count)
    is_alike = deviation < mean
    frequency = np.where(is_alike, signals.sampling_hz / mean, np.nan)
    confidence = np.where(is_alike, 1.0 - deviation / mean, np.nan)
    outcome = np.where(outcome == "", np.where(is_alike, "periodic", "aperiodic"), outcome)
    none = np.full(len(kept.row), np.nan)
    offsets = offsets_of(np.bincount(kept.row, minlength=signals.signal_count))
    candidates = Candidates(signals.sampling_hz[kept.row] / kept.samples, none, none, none, offsets)
    false_alarm = np.full(signals.signal_count, np.nan)
    return Detections(outcome, frequency, confidence, signals.started_s, signals.ended_s, false_alarm, candidates)


def _peaks_of(signals: EvenSignals, params: AutocorrelationParams) -> tuple[Peaks, Texts]:
    """Return the peaks of signals' autocorrelations, and why a signal cannot be judged (n), empty where it can."""
    values = signals.bytes_per_s
    outcome, is_whole = _unfit(values, params)
    is_fit = outcome == ""
    whole, gappy = np.flatnonzero(is_fit & is_whole), np.flatnonzero(is_fit & ~is_whole)
    correlation = np.full(values.shape, np.nan)
    if len(whole):
        correlation[whole] = _correlated(values[whole], _padded_length(signals.sample_count))
    if len(gappy):
        correlation[gappy] = _masked(values[gappy], False, params.least_pair_ratio)
    return peaks(correlation, params.least_height), outcome


def _unfit(values: Reals, params: AutocorrelationParams) -> tuple[Texts, Bools]:
    """Return why signals cannot be judged (n), empty where they can, and whether they lack no sample (n)."""
    count = values.shape[1]
    known_counts = np.full(len(values), count)
    low, high = values.min(axis=1, initial=0.0), values.max(axis=1, initial=0.0)
    is_whole: Bools = np.isfinite(low) & np.isfinite(high)
    is_io = (low < 0) | (high > 0)
    doubtful = np.flatnonzero(~is_whole)
    if len(doubtful):
        known = np.isfinite(values[doubtful])
        known_counts[doubtful] = known.sum(axis=1)
        is_io[doubtful] = (known & (values[doubtful] != 0)).any(axis=1)
    is_gappy = known_counts < (1.0 - params.max_missing_ratio) * count
    reasons = ("no_data", "too_many_gaps", "too_short", "no_io")
    tests = [known_counts == 0, is_gappy, known_counts < _LEAST_SAMPLES, ~is_io]
    return np.select(tests, reasons, "").astype("<U16"), is_whole
