"""How alike signals are to themselves some time later, and the period that this tells.

FTIO's second method (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C,
"Autocorrelation"): peaks of the autocorrelation function, the distances between them, those that are no outliers,
and their average. Wiener and Khinchin: the function is the inverse transform of the power spectrum, so it takes
O(N log N). The circular function is what AUTOPERIOD works on (Vlachos, Yu and Castelli, SDM'05, section 3.2).

Of many signals, each is seen in single precision first, which takes half of the time. An answer is taken from it only
where no rounding can change it: the answer is made of whole lags, so it is then the very same. All others are done
again in double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, irfft, next_fast_len, rfft

from iosig.transforms.arrays import Bools, Ints, Reals, joined, rows_of
from iosig.transforms.periods.answers import Candidates, Detections
from iosig.transforms.periods.even_signals import EvenSignals

Singles = npt.NDArray[np.float32]
Texts = npt.NDArray[np.str_]

#: samples that are transformed at a time: they and their padded spectrum fit the cache
_CHUNK_SAMPLES = 1 << 16
#: the same in single precision, of which the passes are fewer
_SINGLE_CHUNK_SAMPLES = 1 << 17
#: samples whose peaks are judged at a time: bounds the memory
_GROUP_SAMPLES = 1 << 21
#: with fewer samples no two peaks have room
_LEAST_SAMPLES = 5
#: a signal that varies by less than this, of its largest value, varies by rounding alone
_FLAT_RATIO = 1e-12
#: squares of values beyond these leave the range of a float
_LEAST_VALUE, _LARGEST_VALUE = 1e-100, 1e100
#: two Z-scores that should be one may differ by rounding
_SLACK = 1e-9
#: how far an autocorrelation in single precision may be off: rounded samples move it by 1.9e-6 at most as long as the
#: mean is not beyond seven deviations, and each bit of the transform's length adds; the largest error seen of signals
#: of many kinds, of 5 to a million samples, is a fourth of this, and a tenth from 1000 samples on
_SAMPLE_ERROR, _BIT_ERROR = 2e-6, 1e-7
#: the least and the largest sum of squares that single precision holds, and the least ratio of it to the mean's square
_LEAST_SQUARES, _LARGEST_SQUARES, _LEAST_VARIATION = 1e-20, 1e30, 0.02
#: of fewer signals, or with a lower bound of the peaks, nothing is seen in single precision
_FEWEST_SINGLES, _LEAST_SINGLE_HEIGHT = 16, 0.05
#: with more signals in doubt than this it does not pay
_MOST_DOUBTS = 0.4
#: with a larger share of lags that are high, slopes are taken out before peaks are looked for one by one
_MOST_HIGH = 0.04


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


def _chunks(values: Reals, samples: int = _CHUNK_SAMPLES) -> list[slice]:
    """Return the places of so many samples at a time, at least one signal each."""
    rows = max(1, samples // max(1, values.shape[1]))
    starts = range(0, len(values) if values.size else 0, rows)
    return [slice(start, min(start + rows, len(values))) for start in starts]


def _whole(values: Reals, length: int) -> Reals:
    found, chunks = np.empty(values.shape), _chunks(values)
    # one table for all: fresh memory costs more than sums
    work = np.zeros((chunks[0].stop if chunks else 0, length))
    for place in chunks:
        found[place] = _correlated(values[place], work[: len(values[place])])
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


def _correlated(values: Reals, work: Reals) -> Reals:
    """Return autocorrelations (n, samples) by transforms of a length: the samples' own, or one with room for them.

    work (n, length): its columns behind the samples' are 0.
    """
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
    """Return what `scipy.signal.find_peaks(row, height=least_height)` finds in each row (n, samples).

    A peak is higher than what stands before and behind it; of a plateau it is the middle, the left one of two.
    Neither the first nor the last sample is one.
    """
    width = values.shape[1]
    if width < 3 or not len(values):
        none = np.zeros(0, dtype=np.int64)
        return Peaks(none, none, np.zeros(0))
    inner = values[:, 1:-1]
    is_risen = inner > values[:, :-2]
    is_risen &= inner >= least_height
    is_peak = inner > values[:, 2:]
    is_peak &= is_risen
    is_level = inner == values[:, 2:]
    is_level &= is_risen
    row, place = np.divmod(np.flatnonzero(is_peak.ravel()), width - 2)
    place += 1
    if is_level.any():
        row, place = _with_plateaus(values, row, place, *np.nonzero(is_level))
    return Peaks(row, place, values[row, place])


def _with_plateaus(values: Reals, row: Ints, place: Ints, level_row: Ints, level_place: Ints) -> tuple[Ints, Ints]:
    """Add the plateaus among the places where a row rises and then stays level (counted from the second sample)."""
    width = values.shape[1]
    rows, own = np.unique(level_row, return_inverse=True)
    part = values[rows]
    is_last = np.ones(part.shape, dtype=np.bool_)
    np.not_equal(part[:, :-1], part[:, 1:], out=is_last[:, :-1])
    lasts = np.flatnonzero(is_last.ravel())
    first = level_place + 1
    last = lasts[np.searchsorted(lasts, own * width + first)] - own * width
    behind = part[own, np.minimum(last + 1, width - 1)]
    is_plateau = (last < width - 1) & (behind < part[own, first])
    row = np.concatenate([row, level_row[is_plateau]])
    place = np.concatenate([place, (first + last)[is_plateau] // 2])
    order = np.lexsort((place, row))
    return row[order], place[order]


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
    return _spaced(found, row_count, most_z)[0]


def _spaced(found: Peaks, row_count: int, most_z: float) -> tuple[Distances, Ints, Reals]:
    """Return the distances, the number of the peak where each begins, and by how many deviations it is kept or not."""
    begin = np.flatnonzero(found.row[1:] == found.row[:-1])
    row = found.row[begin]
    samples = (found.place[begin + 1] - found.place[begin]).astype(np.float64)
    weight = np.minimum(found.height[begin + 1], found.height[begin])
    # heights are positive unless the bound is not: then all count alike
    weight = np.where(weight > 0, weight, 0.0)
    total = np.bincount(row, weight, row_count)[row]
    weight = np.where(total > 0, weight, 1.0)
    mean, deviation = _spread(row, samples, weight, row_count)
    gap, most = np.abs(samples - mean[row]), most_z * (1.0 + _SLACK) * deviation[row] + _SLACK
    room = np.abs(gap - most) / np.maximum(deviation[row], _SLACK)
    return Distances(row, samples, weight, gap <= most), begin, room


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
    frequency, confidence, none = np.full((3, signals.signal_count), np.nan)
    outcome = np.full(signals.signal_count, "", dtype="<U16")
    kept: list[Distances] = []
    is_seen = signals.signal_count >= _FEWEST_SINGLES and params.least_height >= _LEAST_SINGLE_HEIGHT
    for place, group in signals.chunks(_GROUP_SAMPLES):
        if is_seen and group.sample_count >= _LEAST_SAMPLES:
            judged, outcome[place], doubt_ratio = _seen_distances(group, params)
            is_seen = doubt_ratio <= _MOST_DOUBTS
        else:
            judged, outcome[place] = _kept_distances(group, params)
        mean, deviation = _spread(judged.row, judged.samples, np.ones(len(judged.row)), group.signal_count)
        is_alike = deviation < mean
        frequency[place] = np.where(is_alike, group.sampling_hz / mean, np.nan)
        confidence[place] = np.where(is_alike, 1.0 - deviation / mean, np.nan)
        kept.append(replace(judged, row=judged.row + place.start))
    is_open = outcome == ""
    outcome[is_open] = np.where(np.isfinite(frequency[is_open]), "periodic", "aperiodic")
    candidates = _candidates(kept, signals.sampling_hz)
    return Detections(outcome, frequency, confidence, signals.started_s, signals.ended_s, none, candidates)


def _kept_distances(signals: EvenSignals, params: AutocorrelationParams) -> tuple[Distances, Texts]:
    """Return the distances that are no outliers, and why a signal cannot be judged (n), empty where it can.

    In order of rows, in each the weightiest first.
    """
    found, outcome = _peaks_of(signals, params)
    judged = distances(found, signals.signal_count, params.most_z).kept()
    return rows_of(judged, _by_weight(judged.row, judged.weight)), outcome


def _by_weight(row: Ints, weight: Reals) -> Ints:
    """Return the order of rows, and in each of weights from high to low, of what is in order of rows."""
    # Most often it is so already, and then to see this takes a small part of the time of sorting.
    is_risen = (row[1:] == row[:-1]) & (weight[1:] > weight[:-1])
    is_mixed = np.zeros(int(row[-1]) + 1 if len(row) else 0, dtype=np.bool_)
    is_mixed[row[1:][is_risen]] = True
    order, mixed = np.arange(len(row)), np.flatnonzero(is_mixed[row])
    order[mixed] = mixed[np.lexsort((-weight[mixed], row[mixed]))]
    return order


def _peaks_of(signals: EvenSignals, params: AutocorrelationParams) -> tuple[Peaks, Texts]:
    """Return the peaks of signals' autocorrelations, and why a signal cannot be judged (n), empty where it can."""
    outcome = np.full(signals.signal_count, "", dtype="<U16")
    parts: list[Peaks] = []
    chunks = _chunks(signals.bytes_per_s)
    work = np.zeros((chunks[0].stop if chunks else 0, _padded_length(signals.sample_count)))
    for place in chunks or [slice(0, signals.signal_count)]:
        values = signals.bytes_per_s[place]
        outcome[place], is_whole = _unfit(values, params)
        is_fit = outcome[place] == ""
        whole, gappy = np.flatnonzero(is_fit & is_whole), np.flatnonzero(is_fit & ~is_whole)
        if len(whole):
            own = values if len(whole) == len(values) else values[whole]
            found = peaks(_correlated(own, work[: len(whole)]), params.least_height)
            parts.append(replace(found, row=whole[found.row] + place.start))
        if len(gappy):
            found = peaks(_masked(values[gappy], False, params.least_pair_ratio), params.least_height)
            parts.append(replace(found, row=gappy[found.row] + place.start))
    return _joined(parts), outcome


def _joined(parts: list[Peaks]) -> Peaks:
    none = np.zeros(0, dtype=np.int64)
    found = joined([Peaks(none, none, np.zeros(0)), *parts])
    return rows_of(found, np.argsort(found.row, kind="stable"))


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


def _candidates(kept: list[Distances], sampling_hz: Reals) -> Candidates:
    """Return kept distances as frequencies, in the order in which they are given."""
    if not kept:
        return Candidates.none(len(sampling_hz))
    row, samples = (np.concatenate([getattr(part, name) for part in kept]) for name in ("row", "samples"))
    none = np.full(len(row), np.nan)
    offsets = np.searchsorted(row, np.arange(len(sampling_hz) + 1)).astype(np.int64, copy=False)
    return Candidates(sampling_hz[row] / samples, none, none, none, offsets)


# ---- in single precision, where that is sure


def _seen_distances(signals: EvenSignals, params: AutocorrelationParams) -> tuple[Distances, Texts, float]:
    """Return what `_kept_distances` does, and the share of signals that had to be done in double precision."""
    error = _SAMPLE_ERROR + _BIT_ERROR * math.log2(_padded_length(signals.sample_count))
    found, is_sure, is_tried = _seen_peaks(signals.bytes_per_s, params.least_height, error)
    judged, is_close = _sure_distances(found, signals.signal_count, params, error)
    is_sure &= ~is_close
    outcome = np.full(signals.signal_count, "", dtype="<U16")
    doubts = np.flatnonzero(~is_sure)
    if len(doubts):
        exact, outcome[doubts] = _kept_distances(signals.chosen(doubts), params)
        parts = rows_of(judged, np.flatnonzero(is_sure[judged.row])), replace(exact, row=doubts[exact.row])
        judged = joined(parts)
        judged = rows_of(judged, np.argsort(judged.row, kind="stable"))
    return judged, outcome, float((is_tried & ~is_sure).sum() / max(1, is_tried.sum()))


def _seen_peaks(values: Reals, least_height: float, error: float) -> tuple[Peaks, Bools, Bools]:
    """Return peaks in single precision, in which rows (n) they are surely the peaks, and which rows were tried (n)."""
    count, chunks = values.shape[1], _chunks(values, _SINGLE_CHUNK_SAMPLES)
    is_tried, is_sure = np.zeros((2, len(values)), dtype=np.bool_)
    padded = np.zeros((chunks[0].stop, _padded_length(count)), dtype=np.float32)
    tops: list[tuple[Ints, Ints, Singles, Singles]] = []
    # What is too large for single precision is not held by it, and done in double precision.
    with np.errstate(over="ignore", invalid="ignore"):
        for place in chunks:
            mean = values[place].sum(axis=1) / count
            is_tried[place] = np.isfinite(mean) & (mean != 0)
            rows = place.start + np.flatnonzero(is_tried[place])
            whole = len(rows) == len(mean)
            own, mean = (values[place], mean) if whole else (values[rows], mean[rows - place.start])
            seen = _seen(own, mean, padded[: len(rows)])
            size = _held(seen[:, 0], mean, count)
            is_sure[rows] = np.isfinite(size)
            tops.append(_tops(seen, size, rows, least_height, error))
    row, lag, height, step = (np.concatenate(column) for column in zip(*tops, strict=True))
    is_inner = lag < count - 1
    is_sure[row[is_inner & ((step <= 2 * error) | (height <= least_height + 2 * error))]] = False
    at = np.flatnonzero(is_inner & is_sure[row])
    return Peaks(row[at], lag[at], height[at].astype(np.float64)), is_sure, is_tried


def _seen(values: Reals, mean: Reals, padded: Singles) -> Singles:
    """Return autocorrelations (n, lags) of signals of the given means (n), times their sums of squares.

    padded (n, length): zero behind the samples. From the samples' number on the lags are 0, up to rounding.
    """
    # A pass that changes the type, and one in place, are faster than one that subtracts from elsewhere.
    own = padded[:, : values.shape[1]]
    np.copyto(own, values, casting="same_kind")
    own -= mean.astype(np.float32)[:, None]
    power: Singles = np.abs(rfft(padded, axis=1))
    power *= power
    found: Singles = dct(power, type=1, axis=1, norm="forward", overwrite_x=True)
    return found


def _held(squares: Singles, mean: Reals, count: int) -> Singles:
    """Return the sums of squares of signals (n), infinite where single precision does not hold the signal."""
    is_held = (squares > _LEAST_SQUARES) & (squares < _LARGEST_SQUARES)
    is_held &= squares > _LEAST_VARIATION * count * np.square(mean)
    return np.where(is_held, squares, np.float32(np.inf))


def _tops(
    seen: Singles, size: Singles, rows: Ints, least_height: float, error: float
) -> tuple[Ints, Ints, Singles, Singles]:
    """Return where autocorrelations, off by an error at most, may have peaks (tops): row, lag, height, step.

    seen (rows, lags): times size (rows), which is infinite where nothing is wanted. step: by how much a top is higher
    than the higher one of its neighbours.
    """
    line, width = seen.ravel(), seen.shape[1]
    is_top = (seen > ((least_height - 2 * error) * size)[:, None]).ravel()
    is_top[::width] = False
    if np.count_nonzero(is_top) > _MOST_HIGH * is_top.size:
        # most of what is high is a slope, even by the largest error of all rows
        slack = 2 * error * float(np.max(size, initial=0.0, where=np.isfinite(size)))
        steps = line[1:] - line[:-1]
        is_top[1:] &= steps >= -slack
        is_top[:-1] &= steps <= slack
    at = np.flatnonzero(is_top)
    row = at // width
    step = (line[at] - np.maximum(line[at - 1], line[at + 1])) / size[row]
    top = np.flatnonzero(step >= -2 * error)
    at, row = at[top], row[top]
    return rows[row], at - row * width, line[at] / size[row], step[top]


def _sure_distances(
    found: Peaks, row_count: int, params: AutocorrelationParams, error: float
) -> tuple[Distances, Bools]:
    """Return what of the distances is kept, as `_kept_distances` does, and which rows (n) may have other answers.

    Weights that are off by a share e at most move the mean by e deviations at most, and the deviation by as much of
    itself: a distance whose Z-score is that close to the bound, with room to spare, may be kept or not.
    """
    judged, begin, room = _spaced(found, row_count, params.most_z)
    is_close = np.zeros(row_count, dtype=np.bool_)
    is_close[judged.row[room <= 4 * (1.0 + params.most_z) * error / params.least_height]] = True
    at = np.flatnonzero(judged.is_kept)
    at = at[_by_weight(judged.row[at], judged.weight[at])]
    one, other = at[:-1], at[1:]
    is_same = judged.row[one] == judged.row[other]
    # The order says nothing where all distances are the same.
    is_mixed = np.zeros(row_count, dtype=np.bool_)
    is_mixed[judged.row[one[is_same & (judged.samples[one] != judged.samples[other])]]] = True
    is_swapped = is_same & is_mixed[judged.row[one]]
    is_swapped &= judged.weight[one] - judged.weight[other] <= 2 * error
    # Two neighbours that both weigh as much as the peak between them weigh the same in any precision.
    fall = found.height[begin + 1] - found.height[begin]
    lower = np.where(np.abs(fall) > 2 * error, begin + (fall < 0), -1 - np.arange(len(begin)))
    is_swapped &= lower[one] != lower[other]
    is_close[judged.row[one[is_swapped]]] = True
    return rows_of(judged, at), is_close
