"""What FTIO 0.0.9 computes with `-tr wave_disc`: stretches in which a period holds, by a discrete wavelet transform.

The period of the samples sets the level of the transform (a number of seconds over five, taken for a level), the
dominant cosine of what is left at that level is correlated with it over one period at a time, and where that is 0.12 or
more is a stretch (`freq/_wavelet_disc_workflow.py`, `analysis/_correlation.py`). To compare with, not to be believed:
periods below 5 s have the level 0, at which FTIO fails, and long ones a level at which nothing is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pywt
from numpy.lib.stride_tricks import sliding_window_view

from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.periods.answers import Detections, Segments
from iosig.transforms.periods.even_signals import EvenSignals
from iosig.transforms.periods.ftio_0_0_9 import (
    CompatibleParams,
    Judged,
    joined,
    judged,
    sampled,
    sampled_rows,
    windows,
)
from iosig.transforms.throughput.requests import Steps

#: fixed in `analysis/_correlation.py` and in `freq/_wavelet_disc_workflow.py`
_LEAST_CORRELATION, _LEVELS_PER_PERIOD, _WAVELET = 0.12, 5.0, "db1"
#: samples of windows that are correlated at a time
_HELD_SAMPLES = 1 << 20
#: of a higher level FTIO makes more samples than fit into any memory
_HIGHEST_LEVEL = 30


@dataclass(frozen=True, slots=True)
class _Stretches:
    """One signal's answer, its stretches as places of samples (k, 2), and the samples."""

    found: Judged
    places: Ints
    started_s: float
    values: Reals


def detect(steps: Steps, params: CompatibleParams | None = None) -> tuple[Detections, Segments]:
    """Return what FTIO finds in each step function at the wavelet's level, and its stretches: cut, then sampled."""
    params = params or CompatibleParams()
    return _joined([_found(*sampled(times, rates, params.sampling_hz)) for times, rates in windows(steps, params)])


def judge(signals: EvenSignals) -> tuple[Detections, Segments]:
    """Return what FTIO finds in signals that are sampled already; NaN samples are 0 to it."""
    return _joined([_found(*row) for row in sampled_rows(signals)])


def _found(values: Reals, hz: float, window: tuple[float, float]) -> _Stretches:
    """Return one signal's answer."""
    none = np.zeros((0, 2), dtype=np.int64)
    level = _level(judged(values, hz, window), len(values))
    if not 1 <= level <= _HIGHEST_LEVEL:
        # nothing is there to be judged: FTIO fails
        return _Stretches(judged(values[:0], hz, window), none, window[0], values)
    rest = approximation(values, level)
    times = window[0] + np.arange(len(values)) / hz
    found = judged(*sampled(times, rest, hz))
    if not len(found.bins):
        return _Stretches(found, none, window[0], values)
    at = int(found.order[0])
    frequency, phase = float(found.frequencies_hz[at]), float(found.phases[at])
    wave = np.cos(2 * np.pi * frequency * np.arange(found.sample_count) / hz + phase)
    correlation = sliding_correlation(wave, rest, int(hz / frequency))
    return _Stretches(found, stretches(times[: len(correlation)], correlation, 1.0 / frequency), window[0], values)


def _level(first: Judged, sample_count: int) -> int:
    """Return the level of the transform: of the dominant period, else the highest that there is."""
    if len(first.bins):
        return int(1.0 / (_LEVELS_PER_PERIOD * float(first.frequencies_hz[first.order[0]])))
    return int(pywt.dwt_max_level(sample_count, _WAVELET)) if sample_count else 0


def approximation(values: Reals, level: int) -> Reals:
    """Return what is left of samples at a level of Haar's wavelet, as many samples (n)."""
    left = pywt.downcoef("a", values, _WAVELET, level=level)
    # each coefficient is that of so many samples
    found: Reals = left[np.arange(len(values)) >> level] * 2.0 ** (-level / 2)
    return found


def sliding_correlation(first: Reals, second: Reals, size: int) -> Reals:
    """Return Pearson's correlation of so many samples from each on (n - size + 1); 0 where either is constant."""
    count = len(first) - size + 1
    found = np.zeros(count)
    step = max(1, _HELD_SAMPLES // size)
    for start in range(0, count, step):
        one, two = (sliding_window_view(each, size)[start : min(start + step, count)] for each in (first, second))
        is_told = (one.std(axis=1) > 0) & (two.std(axis=1) > 0)
        one, two = (each - each.mean(axis=1, keepdims=True) for each in (one[is_told], two[is_told]))
        norm = np.sqrt(np.einsum("ij,ij->i", one, one) * np.einsum("ij,ij->i", two, two))
        found[start : start + len(is_told)][is_told] = np.clip(np.einsum("ij,ij->i", one, two) / norm, -1.0, 1.0)
    return found


def stretches(times: Reals, correlation: Reals, least_s: float) -> Ints:
    """Return where correlation is high for so long, and with shorter pauses made one: samples (k, 2), both included."""
    is_high = np.concatenate([[False], correlation >= _LEAST_CORRELATION, [False]])
    edges = np.flatnonzero(is_high[1:] != is_high[:-1]).reshape(-1, 2)
    first, last = edges[:, 0], edges[:, 1] - 1
    is_long = times[last] - times[first] >= least_s
    first, last = first[is_long], last[is_long]
    is_new = np.ones(len(first), dtype=np.bool_)
    is_new[1:] = times[first[1:]] - times[last[:-1]] >= least_s
    is_end = np.append(is_new[1:], True) if len(first) else is_new
    return np.stack([first[is_new], last[is_end]], axis=1)


def _joined(parts: list[_Stretches]) -> tuple[Detections, Segments]:
    """Return all answers; a stretch's bytes are those of the samples in it."""
    rows, is_main = [], []
    for part in parts:
        hz, places = part.found.sampling_hz, part.places.tolist()
        volumes = [float(part.values[first : last + 1].sum() / hz) for first, last in places]
        is_main += [place == int(np.argmax(volumes)) for place in range(len(volumes))]
        for (first, last), volume in zip(places, volumes, strict=True):
            at = int(part.found.order[0])
            told = float(part.found.frequencies_hz[at]), float(part.found.confidences[at])
            rows.append((part.started_s + first / hz, part.started_s + last / hz, *told, volume))
    started, ended, frequency, confidence, volume_bytes = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    none = np.full(len(rows), np.nan)
    segments = Segments(
        started, ended, frequency, none, confidence, volume_bytes, none, none, np.array(is_main, dtype=np.bool_),
        offsets_of([len(part.places) for part in parts]),
    )  # fmt: skip
    return joined([part.found for part in parts]), segments
