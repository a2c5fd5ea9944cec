"""What FTIO 0.0.9 computes, with its faults: to compare with its published numbers, not to be believed.

ftio-hpc 0.0.9 (PyPI), `ftio TRACE -f HZ [-ts S] [-te S]`, with its Z-score. Against the paper (Tarraf et al.,
IPDPS'24): the inequalities are strict, the absolute value of the Z-score counts, harmonics are found by dividing floats
(about half of them are missed; below 1e-5 Hz everything is one), and the window itself is a period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.periods.answers import Candidates, Detections
from iosig.transforms.periods.even_signals import EvenSignals
from iosig.transforms.throughput.requests import Requests, Steps, summed_rates

#: fixed in `analysis/anomaly_detection.py`; the tolerance is the default of `-t`
_HARMONIC_HZ, _Z_THRESHOLD, _TOLERANCE, _MAX_CANDIDATES = 1e-5, 3.0, 0.8, 2


@dataclass(frozen=True, slots=True)
class CompatibleParams:
    """FTIO 0.0.9's arguments, with its defaults.

    sampling_hz (`-f`). window_start_s, window_end_s (`-ts`, `-te`): 0 is none, as FTIO has it.
    """

    sampling_hz: float = 10.0
    window_start_s: float = 0.0
    window_end_s: float = 0.0


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
    edges, levels, offsets = summed_rates(known, rates)
    none = np.zeros(0)
    return Steps(edges, levels, offsets, none, none, np.zeros(len(offsets), dtype=np.int64))


def detect(steps: Steps, params: CompatibleParams | None = None) -> Detections:
    """Return what FTIO 0.0.9 finds in each step function: cut, sampled at instants, judged by the Z-score.

    Its dominant frequencies are the candidates. Their amplitude is that of the paper's equation 1 (FTIO's is abs(X_k)).
    """
    params = params or CompatibleParams()
    return joined([judged(*sampled(times, rates, params.sampling_hz)) for times, rates in windows(steps, params)])


def judge(signals: EvenSignals) -> Detections:
    """Return what FTIO 0.0.9 finds in signals that are sampled already; NaN samples are 0 to it."""
    return joined([judged(*row) for row in sampled_rows(signals)])


def sampled_rows(signals: EvenSignals) -> Iterator[tuple[Reals, float, tuple[float, float]]]:
    """Yield each signal's samples as FTIO has them, its sampling frequency, and when it starts and ends."""
    values = np.nan_to_num(signals.bytes_per_s, nan=0.0, posinf=0.0, neginf=0.0)
    times = zip(signals.started_s.tolist(), signals.ended_s.tolist(), strict=True)
    yield from zip(values, signals.sampling_hz.tolist(), times, strict=True)


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


def sampled(times: Reals, rates: Reals, hz: float) -> tuple[Reals, float, tuple[float, float]]:
    """Return samples, their frequency and the window: `freq/discretize.py`."""
    started, ended = (float(times[0]), float(times[-1])) if len(times) else (np.nan, np.nan)
    count = int(np.floor((ended - started) * hz)) if len(times) else 0
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


def judged(values: Reals, hz: float, window: tuple[float, float]) -> Judged:
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
    is_outlier = scores > _Z_THRESHOLD
    is_near = scores / greatest > _TOLERANCE if greatest > 0 else np.zeros(bins, dtype=np.bool_)
    candidates = np.flatnonzero(is_near & is_outlier) + 1
    kept, dropped = _without_multiples(candidates, frequencies)
    confidence = _confidences(scores, is_outlier, is_near, dropped)
    # It looks for harmonics twice, and the second time finds none.
    chosen = kept if len(kept) <= _MAX_CANDIDATES else kept[:0]
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


# ---- all signals


def joined(parts: list[Judged]) -> Detections:
    """Return the answers for single signals as one."""
    counts = np.array([len(part.bins) for part in parts], dtype=np.int64)
    samples = np.array([part.sample_count for part in parts], dtype=np.int64)
    candidates = _candidates(parts, counts)
    frequency, confidence = np.full((2, len(parts)), np.nan)
    best = candidates.offsets[:-1][counts > 0]
    frequency[counts > 0], confidence[counts > 0] = candidates.frequency_hz[best], candidates.confidence[best]
    started, ended = np.array([part.window for part in parts], dtype=np.float64).reshape(-1, 2).T
    outcome = np.select([samples == 0, counts > 0], ["too_short", "periodic"], "aperiodic").astype(np.str_)
    return Detections(outcome, frequency, confidence, started, ended, np.full(len(parts), np.nan), candidates)


def _candidates(parts: list[Judged], counts: Ints) -> Candidates:
    """Return the dominant frequencies of all signals, best first."""
    if not counts.sum():
        return Candidates.none(len(parts))
    hz, sure, amplitude, phase = (
        np.concatenate([getattr(part, name)[part.order] for part in parts])
        for name in ("frequencies_hz", "confidences", "amplitudes", "phases")
    )
    return Candidates(hz, sure, amplitude, phase, offsets_of(counts))
