"""What FTIO 0.0.9 computes, with its faults: to compare with its published numbers, not to be believed.

ftio-hpc 0.0.9 (PyPI), `ftio TRACE -f HZ [-ts S] [-te S] [-t TOLERANCE] [-au]`, with its Z-score. Against the paper
(Tarraf et al., IPDPS'24): the inequalities are strict, the absolute value of the Z-score counts, harmonics are told by
dividing floats (about half of them are missed; below 1e-5 Hz everything is one), and the window itself is a period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.periods.answers import Candidates, Detections
from iosig.transforms.periods.even_signals import EvenSignals
from iosig.transforms.throughput.exact_sums import running_sums
from iosig.transforms.throughput.requests import Requests, Steps, ends_of_equals, ordered

#: fixed in `analysis/anomaly_detection.py`
_HARMONIC_HZ = 1e-5
#: fixed in `freq/autocorrelation.py`
_PEAK_HEIGHT, _OUTLIER_Z = 0.15, 1.0


@dataclass(frozen=True, slots=True)
class CompatibleParams:
    """FTIO 0.0.9's arguments, with its defaults.

    sampling_hz (`-f`): None for twice the highest rate of time stamps. window_start_s, window_end_s (`-ts`, `-te`): 0
    is none, as FTIO has it. tolerance (`-t`). z_threshold, most_candidates: fixed in
    `analysis/anomaly_detection.py`. memory_bytes (`--memory_limit`): of the samples, where no frequency is given.
    least_confidence: fixed in `prediction/unify_predictions.py`.
    """

    sampling_hz: float | None = 10.0
    window_start_s: float = 0.0
    window_end_s: float = 0.0
    tolerance: float = 0.8
    z_threshold: float = 3.0
    most_candidates: int = 2
    memory_bytes: float = 0.5e9
    least_confidence: float = 0.2


@dataclass(frozen=True, slots=True)
class CompatibleDetections:
    """FTIO 0.0.9's answers for n signals.

    detections: with FTIO's dominant frequencies as candidates, their amplitude as in the paper's equation 1 (FTIO's
    is abs(X_k)) and no false-alarm probability. sample_count (n): N. bin (n): the answer's k; 0 where
    there is none. outlier_count (n): Z-scores above the threshold. candidate_count (n): those of them that come near
    the highest, before harmonics are dropped. sampling_hz (n): NaN where there were no samples.
    """

    detections: Detections
    sample_count: Ints
    bin: Ints
    outlier_count: Ints
    candidate_count: Ints
    sampling_hz: Reals


def overlapped(requests: Requests) -> Steps:
    """Return the application's bandwidth over its requests' whole time, as `parse/bandwidth.py` has it.

    Unlike `step_function`, a request without bytes has edges too: FTIO's window begins and ends with it. Rates are
    added exactly, where FTIO leaves a rounding error behind the last end.
    """
    lasting = requests.durations_s
    usable = np.flatnonzero((lasting >= 0) & (lasting < np.inf) & (requests.subject >= 0))
    known = requests.chosen(usable)
    moved = np.where((known.volume_bytes > 0) & (known.volume_bytes < np.inf), known.volume_bytes, 0.0)
    with np.errstate(invalid="ignore"):
        rates = replace(known, volume_bytes=moved).rates()
    rates[~np.isfinite(rates)] = 0.0
    times = np.concatenate([known.began_s, known.ceased_s])
    changes = np.concatenate([rates, -rates])
    order, owner = ordered(times, np.concatenate([known.subject, known.subject]), known.subject_count)
    times = times[order]
    last = np.flatnonzero(ends_of_equals(owner, times))
    levels = running_sums(changes[order])[last]
    offsets = np.searchsorted(owner[last], np.arange(known.subject_count + 1)).astype(np.int64, copy=False)
    none = np.zeros(0)
    return Steps(times[last], levels, offsets, none, none, np.zeros(len(offsets), dtype=np.int64))


def detect(steps: Steps, params: CompatibleParams | None = None) -> CompatibleDetections:
    """Return what FTIO 0.0.9 finds in each step function: cut, sampled at instants, judged by the Z-score."""
    params = params or CompatibleParams()
    return joined([judged(*sampled(times, rates, params), params) for times, rates in windows(steps, params)])


def judge(signals: EvenSignals, params: CompatibleParams | None = None) -> CompatibleDetections:
    """Return what FTIO 0.0.9 finds in signals that are sampled already; NaN samples are 0 to it."""
    params = params or CompatibleParams()
    return joined([judged(row, hz, window, params) for row, hz, window in sampled_rows(signals)])


def sampled_rows(signals: EvenSignals) -> Iterator[tuple[Reals, float, tuple[float, float]]]:
    """Yield each signal's samples as FTIO has them, its sampling frequency, and when it starts and ends."""
    values = np.nan_to_num(signals.bytes_per_s, nan=0.0, posinf=0.0, neginf=0.0)
    times = zip(signals.started_s.tolist(), signals.ended_s.tolist(), strict=True)
    yield from zip(values, signals.sampling_hz.tolist(), times, strict=True)


def refine(steps: Steps, params: CompatibleParams | None = None) -> CompatibleDetections:
    """Return what FTIO 0.0.9 finds with `-au`: its autocorrelation merged into its answer.

    The similarity in the refined confidence is always 1, for the candidates of the autocorrelation are lost on the
    way; without a dominant frequency it is the autocorrelation's own period with a third of its confidence. Where
    FTIO fails with an exception (its weights are differences of peaks, and may add up to 0), the answer is the one
    without; of two frequencies the lower one is left, where FTIO fails if the other is the stronger.
    """
    params = params or CompatibleParams()
    found = []
    for times, rates in windows(steps, params):
        values, hz, window = sampled(times, rates, params)
        found.append(_merged(judged(values, hz, window, params), *autocorrelation(values, hz, params), params))
    return joined(found)


# ---- samples


def windows(steps: Steps, params: CompatibleParams) -> Iterator[tuple[Reals, Reals]]:
    """Yield each subject's time stamps and rates within the window: the rate at its start is lost."""
    for first, last in zip(steps.offsets[:-1].tolist(), steps.offsets[1:].tolist(), strict=True):
        times, rates = steps.edges_s[first:last], steps.bytes_per_s[first:last]
        is_in = np.ones(len(times), dtype=np.bool_)
        if params.window_start_s:
            is_in &= times >= params.window_start_s
        if params.window_end_s:
            is_in &= times <= params.window_end_s
        yield times[is_in], rates[is_in]


def sampled(times: Reals, rates: Reals, params: CompatibleParams) -> tuple[Reals, float, tuple[float, float]]:
    """Return samples, their frequency and the window: `freq/discretize.py`."""
    if not len(times):
        return np.zeros(0), np.nan, (np.nan, np.nan)
    started, ended = float(times[0]), float(times[-1])
    hz, duration = params.sampling_hz, ended - started
    if hz is None:
        shortest = np.diff(times).min(initial=np.inf)
        hz = float(2.0 / shortest)
        most = int(params.memory_bytes // 8)
        if most < int(np.floor(duration * hz)):
            hz = most / duration
    count = int(np.floor(duration * hz))
    if count <= 0:
        return np.zeros(0), np.nan, (started, ended)
    # It adds the step over and over, and so do these sums.
    instants = np.full(count, 1.0 / hz)
    instants[0] = started
    instants = np.cumsum(instants)
    return rates[np.searchsorted(times, instants, side="right") - 1], hz, (started, ended)


# ---- spectrum


@dataclass(frozen=True, slots=True)
class Judged:
    """What is found in one signal."""

    sampling_hz: float
    sample_count: int
    window: tuple[float, float]
    outlier_count: int
    candidate_count: int
    bins: Ints
    frequencies_hz: Reals
    confidences: Reals
    magnitudes: Reals
    phases: Reals

    @property
    def order(self) -> Ints:
        """The places of the dominant frequencies, greatest magnitude first: that is the answer."""
        return np.argsort(-self.magnitudes, kind="stable")

    @property
    def amplitudes(self) -> Reals:
        """The amplitudes of the cosines: magnitudes do not tell that the highest bin counts once."""
        return self.magnitudes * np.where(2 * self.bins == self.sample_count, 1.0, 2.0) / max(self.sample_count, 1)


def judged(values: Reals, hz: float, window: tuple[float, float], params: CompatibleParams) -> Judged:
    """Judge one signal: `freq/_dft_workflow.py` and `z_score` of `analysis/anomaly_detection.py`."""
    count, none = len(values), np.zeros(0)
    bins = count // 2
    if not bins:
        return Judged(hz, count, window, 0, 0, np.zeros(0, dtype=np.int64), none, none, none, none)
    coefficients = scipy.fft.rfft(values)
    frequencies = hz * np.arange(bins + 1) / count
    amplitude = np.abs(coefficients)
    power = 2.0 * (amplitude * amplitude / count)[1:]
    scores = _scores(power / power.sum() if power.sum() > 0 else power)
    greatest = scores.max()
    is_outlier = scores > params.z_threshold
    is_near = scores / greatest > params.tolerance if greatest > 0 else np.zeros(bins, dtype=np.bool_)
    candidates = np.flatnonzero(is_near & is_outlier) + 1
    kept, dropped = _without_multiples(candidates, frequencies)
    confidence = _confidences(scores, is_outlier, is_near, dropped)
    # It looks for harmonics twice, and the second time finds none.
    chosen = kept if len(kept) <= params.most_candidates else kept[:0]
    return Judged(
        hz,
        count,
        window,
        int(is_outlier.sum()),
        len(candidates),
        chosen,
        frequencies[chosen],
        confidence[chosen - 1],
        amplitude[chosen],
        np.angle(coefficients[chosen]),
    )


def _scores(shares: Reals) -> Reals:
    spread = float(np.std(shares))
    found: Reals = np.abs(shares - np.mean(shares)) / spread if spread > 0 else np.zeros(len(shares))
    return found


def _without_multiples(candidates: Ints, frequencies: Reals) -> tuple[Ints, Ints]:
    """Return the bins that are kept and that are dropped: their frequencies are divided as floats."""
    kept: list[int] = []
    dropped: list[int] = []
    lower = np.zeros(len(candidates))
    for place in candidates.tolist():
        is_multiple = np.fmod(frequencies[place], lower[: len(kept)]) < _HARMONIC_HZ
        if is_multiple.any():
            dropped.append(place)
        else:
            lower[len(kept)] = frequencies[place]
            kept.append(place)
    return np.array(kept, dtype=np.int64), np.array(dropped, dtype=np.int64)


def _confidences(scores: Reals, is_outlier: Bools, is_near: Bools, dropped: Ints) -> Reals:
    found = np.zeros(len(scores))
    for is_in in (is_near, is_outlier):
        counted = is_in.copy()
        counted[dropped - 1] = False
        total = scores[counted].sum()
        if total > 0:
            found[counted] += scores[counted] / total
    return found / 2.0


# ---- autocorrelation


def autocorrelation(values: Reals, hz: float, params: CompatibleParams) -> tuple[float, float]:
    """Return period in seconds and confidence of one signal: `freq/autocorrelation.py`; NaN where it has none."""
    apart = values - values.mean() if len(values) else values
    variance = float(np.var(values)) if len(values) else 0.0
    if not variance > 0:
        return np.nan, np.nan
    # its own function, for the rounding of equal values decides where a peak is
    correlation = np.correlate(apart, apart, "full")[len(apart) - 1 :] / variance / len(apart)
    # takes half a second to import, and no other answer needs it
    from scipy.signal import find_peaks

    peaks, found = find_peaks(correlation, height=_PEAK_HEIGHT)
    periods, weights = np.diff(peaks) / hz, np.diff(found["peak_heights"])
    is_kept = periods > 1.0 / hz
    periods, weights = periods[is_kept], weights[is_kept]
    mean, spread = _weighted(periods, weights)
    if spread > 0:
        is_plain = ~(np.abs((periods - mean) / spread) > _OUTLIER_Z)
        periods, weights = periods[is_plain], weights[is_plain]
        mean, spread = _weighted(periods, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        confidence = 1.0 - np.abs(np.float64(spread) / mean)
    return (mean, float(confidence)) if mean > 0 and np.isfinite(confidence) else (np.nan, np.nan)


def _weighted(periods: Reals, weights: Reals) -> tuple[float, float]:
    """Return the weighted mean and standard deviation; NaN where weights add up to nothing."""
    if not len(periods) or weights.sum() == 0:
        return np.nan, np.nan
    mean = float(np.average(periods, weights=weights))
    return mean, float(np.sqrt(np.abs(np.average((periods - mean) ** 2, weights=weights))))


def _merged(found: Judged, period_s: float, confidence: float, params: CompatibleParams) -> Judged:
    """Return the answer that is left of both: `merge_core` of `prediction/unify_predictions.py`."""
    if np.isnan(period_s):
        return found
    none = np.zeros(0)
    if not len(found.bins):
        place = np.zeros(1, dtype=np.int64)
        return replace(
            found,
            bins=place,
            frequencies_hz=np.array([1.0 / period_s]),
            confidences=np.array([confidence / 3.0]),
            magnitudes=np.full(1, np.nan),
            phases=np.full(1, np.nan),
        )
    # of two alike in what is always 1, the first
    refined = (1.0 + float(found.confidences[0]) + confidence) / 3.0
    if refined < params.least_confidence:
        return replace(found, bins=found.bins[:0], frequencies_hz=none, confidences=none, magnitudes=none, phases=none)
    return replace(
        found,
        bins=found.bins[:1],
        frequencies_hz=found.frequencies_hz[:1],
        confidences=np.array([refined]),
        magnitudes=found.magnitudes[:1],
        phases=found.phases[:1],
    )


# ---- all signals


def joined(parts: list[Judged]) -> CompatibleDetections:
    """Return the answers for single signals as one."""
    counts = np.array([len(part.bins) for part in parts], dtype=np.int64)
    samples = np.array([part.sample_count for part in parts], dtype=np.int64)
    best = [int(part.order[0]) if len(part.bins) else -1 for part in parts]
    frequency = [part.frequencies_hz[at] if at >= 0 else np.nan for part, at in zip(parts, best, strict=True)]
    confidence = [part.confidences[at] if at >= 0 else np.nan for part, at in zip(parts, best, strict=True)]
    outcome = np.select([samples == 0, counts > 0], ["too_short", "periodic"], "aperiodic")
    detections = Detections(
        outcome.astype(np.str_),
        np.array(frequency, dtype=np.float64),
        np.array(confidence, dtype=np.float64),
        np.array([part.window[0] for part in parts], dtype=np.float64),
        np.array([part.window[1] for part in parts], dtype=np.float64),
        np.full(len(parts), np.nan),
        _candidates(parts, counts),
    )
    return CompatibleDetections(
        detections,
        samples,
        np.array([part.bins[at] if at >= 0 else 0 for part, at in zip(parts, best, strict=True)], dtype=np.int64),
        np.array([part.outlier_count for part in parts], dtype=np.int64),
        np.array([part.candidate_count for part in parts], dtype=np.int64),
        np.array([part.sampling_hz for part in parts], dtype=np.float64),
    )


def _candidates(parts: list[Judged], counts: Ints) -> Candidates:
    """Return the dominant frequencies of all signals, best first."""
    if not counts.sum():
        return Candidates.none(len(parts))
    hz, sure, amplitude, phase = (
        np.concatenate([getattr(part, name)[part.order] for part in parts])
        for name in ("frequencies_hz", "confidences", "amplitudes", "phases")
    )
    return Candidates(hz, sure, amplitude, phase, offsets_of(counts))
