"""Reproduce FTIO 0.0.9 with `-tr wave_disc`: time ranges in which a period holds, by a discrete wavelet transform.

The level of the transform is the dominant period in seconds, divided by five. The approximation at that level is
correlated with its own dominant cosine, in sliding windows of one period. Ranges with a correlation of 0.12 or more are
reported (`freq/_wavelet_disc_workflow.py`, `analysis/_correlation.py`).

Use it for comparison only: periods below 5 s give level 0, at which FTIO fails, and long periods give a level at which
no signal remains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pywt
from numpy.lib.stride_tricks import sliding_window_view

from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.periods.ftio_0_0_9 import (
    CompatibleParams,
    SignalResult,
    analyze_signal,
    combine_results,
    iter_samples,
    iter_windows,
    sample,
)
from iosig.transforms.periods.interface.detections import Detections, Segments
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.requests import Steps

#: constants of `analysis/_correlation.py` and `freq/_wavelet_disc_workflow.py`
_MIN_CORRELATION, _SECONDS_PER_LEVEL, _WAVELET = 0.12, 5.0, "db1"
#: samples of sliding windows per batch: bounds memory use
_BATCH_SAMPLES = 1 << 20
#: maximum level; above it, FTIO needs more samples than fit into memory
_MAX_LEVEL = 30


@dataclass(frozen=True, slots=True)
class _SignalRanges:
    """One signal's result, its ranges as first and last samples (k, 2), and its samples."""

    result: SignalResult
    ranges: Ints
    start_s: float
    values: Reals


def detect(steps: Steps, params: CompatibleParams | None = None) -> tuple[Detections, Segments]:
    """Reproduce FTIO's periods at the wavelet's level, and their time ranges, for step functions.

    Parameters
    ----------
    steps : Steps
        n step functions; they are cut to the window, then sampled.
    params : CompatibleParams, optional

    Returns
    -------
    detections : Detections
    segments : Segments
    """
    params = params or CompatibleParams()
    return _combine(
        [_detect_ranges(*sample(times, rates, params.sampling_hz)) for times, rates in iter_windows(steps, params)]
    )


def detect_in_samples(signals: EvenSignals) -> tuple[Detections, Segments]:
    """Reproduce FTIO's results for sampled signals, in which FTIO treats NaN as 0.

    Parameters
    ----------
    signals : EvenSignals

    Returns
    -------
    detections : Detections
    segments : Segments
    """
    return _combine([_detect_ranges(*row) for row in iter_samples(signals)])


def _detect_ranges(values: Reals, hz: float, window: tuple[float, float]) -> _SignalRanges:
    """Detect the period of one signal, and the ranges in which it holds."""
    empty = np.zeros((0, 2), dtype=np.int64)
    level = _choose_level(analyze_signal(values, hz, window), len(values))
    if not 1 <= level <= _MAX_LEVEL:
        # FTIO fails at level 0 and at levels above the maximum
        return _SignalRanges(analyze_signal(values[:0], hz, window), empty, window[0], values)
    approximation = approximate(values, level)
    times = window[0] + np.arange(len(values)) / hz
    result = analyze_signal(*sample(times, approximation, hz))
    if not len(result.bins):
        return _SignalRanges(result, empty, window[0], values)
    dominant = int(result.order[0])
    frequency, phase = float(result.frequencies_hz[dominant]), float(result.phases[dominant])
    wave = np.cos(2 * np.pi * frequency * np.arange(result.sample_count) / hz + phase)
    correlation = correlate_sliding(wave, approximation, int(hz / frequency))
    return _SignalRanges(
        result, find_ranges(times[: len(correlation)], correlation, 1.0 / frequency), window[0], values
    )


def _choose_level(first: SignalResult, sample_count: int) -> int:
    """Choose the level from the dominant period; without one, the highest possible level."""
    if len(first.bins):
        return int(1.0 / (_SECONDS_PER_LEVEL * float(first.frequencies_hz[first.order[0]])))
    return int(pywt.dwt_max_level(sample_count, _WAVELET)) if sample_count else 0


def approximate(values: Reals, level: int) -> Reals:
    """Approximate samples at a level of the Haar wavelet transform, with one value per sample.

    Parameters
    ----------
    values : (n,)
    level : int

    Returns
    -------
    (n,)
    """
    coefficients = pywt.downcoef("a", values, _WAVELET, level=level)
    # each coefficient covers 2**level samples
    result: Reals = coefficients[np.arange(len(values)) >> level] * 2.0 ** (-level / 2)
    return result


def correlate_sliding(first: Reals, second: Reals, size: int) -> Reals:
    """Compute the Pearson correlation of two signals in sliding windows.

    Parameters
    ----------
    first, second : (n,)
    size : int
        Samples per window.

    Returns
    -------
    (n - size + 1,)
        0 where either window is constant.
    """
    count = len(first) - size + 1
    correlation = np.zeros(count)
    step = max(1, _BATCH_SAMPLES // size)
    for start in range(0, count, step):
        first_part, second_part = (
            sliding_window_view(values, size)[start : min(start + step, count)] for values in (first, second)
        )
        is_varying = (first_part.std(axis=1) > 0) & (second_part.std(axis=1) > 0)
        first_part, second_part = (
            values - values.mean(axis=1, keepdims=True) for values in (first_part[is_varying], second_part[is_varying])
        )
        norm = np.sqrt(np.einsum("ij,ij->i", first_part, first_part) * np.einsum("ij,ij->i", second_part, second_part))
        correlation[start : start + len(is_varying)][is_varying] = np.clip(
            np.einsum("ij,ij->i", first_part, second_part) / norm, -1.0, 1.0
        )
    return correlation


def find_ranges(times: Reals, correlation: Reals, min_duration_s: float) -> Ints:
    """Find the ranges of high correlation that last long enough, merged across shorter pauses.

    Parameters
    ----------
    times : (n,)
        Times of the samples [s].
    correlation : (n,)
    min_duration_s : float
        Minimum duration of a range, and of a pause.

    Returns
    -------
    (k, 2)
        First and last sample, both included.
    """
    is_high = np.concatenate([[False], correlation >= _MIN_CORRELATION, [False]])
    edges = np.flatnonzero(is_high[1:] != is_high[:-1]).reshape(-1, 2)
    first, last = edges[:, 0], edges[:, 1] - 1
    is_long = times[last] - times[first] >= min_duration_s
    first, last = first[is_long], last[is_long]
    is_new = np.ones(len(first), dtype=np.bool_)
    is_new[1:] = times[first[1:]] - times[last[:-1]] >= min_duration_s
    is_end = np.append(is_new[1:], True) if len(first) else is_new
    return np.stack([first[is_new], last[is_end]], axis=1)


def _combine(parts: list[_SignalRanges]) -> tuple[Detections, Segments]:
    """Combine the results of signals; the volume of a range is the volume of its samples."""
    rows, is_main = [], []
    for part in parts:
        hz, ranges = part.result.sampling_hz, part.ranges.tolist()
        volumes = [float(part.values[first : last + 1].sum() / hz) for first, last in ranges]
        is_main += [number == int(np.argmax(volumes)) for number in range(len(volumes))]
        for (first, last), volume in zip(ranges, volumes, strict=True):
            dominant = int(part.result.order[0])
            period = float(part.result.frequencies_hz[dominant]), float(part.result.confidences[dominant])
            rows.append((part.start_s + first / hz, part.start_s + last / hz, *period, volume))
    started, ended, frequency, confidence, volume_bytes = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    unknown = np.full(len(rows), np.nan)
    segments = Segments(
        started, ended, frequency, unknown, confidence, volume_bytes, unknown, unknown,
        np.array(is_main, dtype=np.bool_), offsets_of([len(part.ranges) for part in parts]),
    )  # fmt: skip
    return combine_results([part.result for part in parts]), segments
