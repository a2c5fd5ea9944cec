"""Reproduce FTIO 0.0.9 with its faults, to compare with its published numbers.

The reproduced command is `ftio TRACE -f HZ [-ts S] [-te S]` of ftio-hpc 0.0.9 (PyPI), with its Z-score. Differences
from the paper (Tarraf et al., IPDPS'24, doi:10.1109/IPDPS57955.2024.00048): inequalities are strict, the absolute
Z-score counts, and the window itself is a period. Harmonics are found by dividing floats: about half of them are
missed, and below 1e-5 Hz every frequency is a harmonic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.periods.interface.detections import Candidates, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.requests import Requests, Steps, sum_rates

#: constants of `analysis/anomaly_detection.py`; the tolerance is the default of `-t`
_HARMONIC_HZ, _Z_THRESHOLD, _TOLERANCE, _MAX_CANDIDATES = 1e-5, 3.0, 0.8, 2


@dataclass(frozen=True, slots=True)
class CompatibleParams:
    """Arguments of FTIO 0.0.9, with its defaults.

    Attributes
    ----------
    sampling_hz : float
        `-f`.
    window_start_s, window_end_s : float
        `-ts` and `-te`; 0 means no bound, as in FTIO.
    """

    sampling_hz: float = 10.0
    window_start_s: float = 0.0
    window_end_s: float = 0.0


def sum_bandwidth(requests: Requests) -> Steps:
    """Sum the bandwidth of overlapping requests, as `parse/bandwidth.py` does.

    Parameters
    ----------
    requests : Requests

    Returns
    -------
    Steps
        Unlike in `step_function`, requests without bytes have edges, since FTIO's window may begin or end with such a
        request. Rates are summed exactly, whereas FTIO leaves a rounding error after the last end.
    """
    duration_s = requests.durations_s
    usable = np.flatnonzero((duration_s >= 0) & (duration_s < np.inf) & (requests.subject >= 0))
    known = requests.select(usable)
    volume = np.where((known.volume_bytes > 0) & (known.volume_bytes < np.inf), known.volume_bytes, 0.0)
    with np.errstate(invalid="ignore"):
        rates = replace(known, volume_bytes=volume).rates()
    rates[~np.isfinite(rates)] = 0.0
    edges, levels, offsets = sum_rates(known, rates)
    empty = np.zeros(0)
    return Steps(edges, levels, offsets, empty, empty, np.zeros(len(offsets), dtype=np.int64))


def detect(steps: Steps, params: CompatibleParams | None = None) -> Detections:
    """Reproduce FTIO 0.0.9 for step functions: cut them to the window, sample them at instants, and test the Z-score.

    Parameters
    ----------
    steps : Steps
        n step functions.
    params : CompatibleParams, optional

    Returns
    -------
    Detections
        The candidates are FTIO's dominant frequencies. The amplitude is that of the paper's equation 1, whereas FTIO's
        is ``abs(X_k)``.
    """
    params = params or CompatibleParams()
    return combine_results(
        [analyze_signal(*sample(times, rates, params.sampling_hz)) for times, rates in iter_windows(steps, params)]
    )


def detect_in_samples(signals: EvenSignals) -> Detections:
    """Reproduce FTIO 0.0.9 for sampled signals, in which FTIO treats NaN as 0.

    Parameters
    ----------
    signals : EvenSignals

    Returns
    -------
    Detections
    """
    return combine_results([analyze_signal(*row) for row in iter_samples(signals)])


def iter_samples(signals: EvenSignals) -> Iterator[tuple[Reals, float, tuple[float, float]]]:
    """Yield the samples of each signal as FTIO takes them, the sampling frequency, and start and end."""
    values = np.nan_to_num(signals.bytes_per_s, nan=0.0, posinf=0.0, neginf=0.0)
    times = zip(signals.start_s.tolist(), signals.end_s.tolist(), strict=True)
    yield from zip(values, signals.sampling_hz.tolist(), times, strict=True)


# ---- samples


def iter_windows(steps: Steps, params: CompatibleParams) -> Iterator[tuple[Reals, Reals]]:
    """Yield each subject's time stamps and rates within the window.

    Parameters
    ----------
    steps : Steps
    params : CompatibleParams

    Yields
    ------
    times, rates : (edges,)
        As in FTIO, the rate at the start of the window is lost, unless it starts there.
    """
    for first, last in zip(steps.offsets[:-1].tolist(), steps.offsets[1:].tolist(), strict=True):
        times, rates = steps.edges_s[first:last], steps.bytes_per_s[first:last]
        is_inside = np.ones(len(times), dtype=np.bool_)
        if params.window_start_s:
            is_inside &= times >= params.window_start_s
        if params.window_end_s:
            is_inside &= times <= params.window_end_s
        yield times[is_inside], rates[is_inside]


def sample(times: Reals, rates: Reals, hz: float) -> tuple[Reals, float, tuple[float, float]]:
    """Sample a step function at instants (`freq/discretize.py`).

    Parameters
    ----------
    times, rates : (edges,)
    hz : float
        Sampling frequency.

    Returns
    -------
    samples : (n,)
    hz : float
        NaN without samples.
    window : (float, float)
        First and last time; NaN without edges.
    """
    started, ended = (float(times[0]), float(times[-1])) if len(times) else (np.nan, np.nan)
    count = int(np.floor((ended - started) * hz)) if len(times) else 0
    if count <= 0:
        return np.zeros(0), np.nan, (started, ended)
    # FTIO adds the step repeatedly; the cumulative sum has the same rounding errors.
    instants = np.full(count, 1.0 / hz)
    instants[0] = started
    instants = np.cumsum(instants)
    return rates[np.searchsorted(times, instants, side="right") - 1], hz, (started, ended)


# ---- spectrum


@dataclass(frozen=True, slots=True)
class SignalResult:
    """FTIO's result for one signal."""

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
        """Positions of the dominant frequencies, by descending magnitude; the first is the result."""
        return np.argsort(-self.magnitudes, kind="stable")

    @property
    def amplitudes(self) -> Reals:
        """Amplitudes of the cosines; the highest bin counts once, whereas FTIO's magnitudes count it twice."""
        return self.magnitudes * np.where(2 * self.bins == self.sample_count, 1.0, 2.0) / max(self.sample_count, 1)


def analyze_signal(values: Reals, hz: float, window: tuple[float, float]) -> SignalResult:
    """Analyze one signal (`freq/_dft_workflow.py` and `z_score` of `analysis/anomaly_detection.py`).

    Parameters
    ----------
    values : (n,)
    hz : float
        Sampling frequency.
    window : (float, float)
        Start and end, in seconds.

    Returns
    -------
    SignalResult
    """
    count, empty = len(values), np.zeros(0)
    bins = count // 2
    if not bins:
        return SignalResult(hz, count, window, 0, 0, np.zeros(0, dtype=np.int64), empty, empty, empty, empty)
    coefficients = scipy.fft.rfft(values)
    frequencies = hz * np.arange(bins + 1) / count
    amplitude = np.abs(coefficients)
    power = 2.0 * (amplitude * amplitude / count)[1:]
    scores = _compute_scores(power / power.sum() if power.sum() > 0 else power)
    max_score = scores.max()
    is_outlier = scores > _Z_THRESHOLD
    is_near = scores / max_score > _TOLERANCE if max_score > 0 else np.zeros(bins, dtype=np.bool_)
    candidates = np.flatnonzero(is_near & is_outlier) + 1
    kept, dropped = _drop_multiples(candidates, frequencies)
    confidence = _compute_confidence(scores, is_outlier, is_near, dropped)
    # FTIO removes harmonics twice; the second pass finds none.
    chosen = kept if len(kept) <= _MAX_CANDIDATES else kept[:0]
    return SignalResult(
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


def _compute_scores(shares: Reals) -> Reals:
    spread = float(np.std(shares))
    scores: Reals = np.abs(shares - np.mean(shares)) / spread if spread > 0 else np.zeros(len(shares))
    return scores


def _drop_multiples(candidates: Ints, frequencies: Reals) -> tuple[Ints, Ints]:
    """Split bins into kept ones and dropped multiples, by dividing frequencies as floats."""
    kept: list[int] = []
    dropped: list[int] = []
    kept_frequencies = np.zeros(len(candidates))
    for bin_number in candidates.tolist():
        is_multiple = np.fmod(frequencies[bin_number], kept_frequencies[: len(kept)]) < _HARMONIC_HZ
        if is_multiple.any():
            dropped.append(bin_number)
        else:
            kept_frequencies[len(kept)] = frequencies[bin_number]
            kept.append(bin_number)
    return np.array(kept, dtype=np.int64), np.array(dropped, dtype=np.int64)


def _compute_confidence(scores: Reals, is_outlier: Bools, is_near: Bools, dropped: Ints) -> Reals:
    confidence = np.zeros(len(scores))
    for is_member in (is_near, is_outlier):
        is_counted = is_member.copy()
        is_counted[dropped - 1] = False
        total = scores[is_counted].sum()
        if total > 0:
            confidence[is_counted] += scores[is_counted] / total
    return confidence / 2.0


# ---- all signals


def combine_results(parts: list[SignalResult]) -> Detections:
    """Combine the results of single signals.

    Parameters
    ----------
    parts : list of SignalResult

    Returns
    -------
    Detections
    """
    counts = np.array([len(part.bins) for part in parts], dtype=np.int64)
    samples = np.array([part.sample_count for part in parts], dtype=np.int64)
    candidates = _collect_candidates(parts, counts)
    frequency, confidence = np.full((2, len(parts)), np.nan)
    best = candidates.offsets[:-1][counts > 0]
    frequency[counts > 0], confidence[counts > 0] = candidates.frequency_hz[best], candidates.confidence[best]
    started, ended = np.array([part.window for part in parts], dtype=np.float64).reshape(-1, 2).T
    outcome = np.select([samples == 0, counts > 0], ["too_short", "periodic"], "aperiodic").astype(np.str_)
    return Detections(outcome, frequency, confidence, started, ended, np.full(len(parts), np.nan), candidates)


def _collect_candidates(parts: list[SignalResult], counts: Ints) -> Candidates:
    """Collect the dominant frequencies of all signals, best first."""
    if not counts.sum():
        return Candidates.empty(len(parts))
    hz, confidence, amplitude, phase = (
        np.concatenate([getattr(part, name)[part.order] for part in parts])
        for name in ("frequencies_hz", "confidences", "amplitudes", "phases")
    )
    return Candidates(hz, confidence, amplitude, phase, offsets_of(counts))
