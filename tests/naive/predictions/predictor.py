"""Naive implementation of online prediction: every evaluation recomputes everything from all requests."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Ragged
from iosig.transforms.periods import search
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.requests import Requests, step_function


def answer(
    start_s: list[float],
    end_s: list[float],
    volume_bytes: list[float],
    window_start_s: float,
    sampling_hz: float,
    sample_count: int,
    method: str,
) -> tuple[str, float | None]:
    """Return outcome and period of a window of all requests so far."""
    requests = Requests.from_arrays(start_s, end_s, volume_bytes)
    start, hz, count = np.array([window_start_s]), np.array([sampling_hz]), np.array([sample_count])
    if method in ("dft", "autocorrelation", "merged"):
        values = even_values.sample_at(step_function(requests), even_values.Instants(start, hz, count)).values
    else:
        values = even_values.bin_requests(requests, even_values.Grid(start, 1.0 / hz, count)).bytes_per_s
    (result,) = search.find_periods(
        Ragged(values, np.array([0, sample_count])), hz, start, search.PeriodParams(methods=(method,))
    )
    frequency = float(result.detections.frequency_hz[0])
    return str(result.detections.outcome[0]), None if np.isnan(frequency) else 1.0 / frequency


def io_time(
    start_s: list[float],
    end_s: list[float],
    volume_bytes: list[float],
    window_start_s: float,
    sampling_hz: float,
    sample_count: int,
) -> tuple[float, int]:
    """Return start and number of samples of a window from the first to the last instant with I/O."""
    requests = list(zip(start_s, end_s, volume_bytes, strict=True))
    instants = [window_start_s + place / sampling_hz for place in range(sample_count)]
    busy = [
        place for place, at in enumerate(instants) if any(low <= at < high and size > 0 for low, high, size in requests)
    ]
    return (instants[busy[0]], busy[-1] - busy[0] + 1) if busy else (window_start_s, sample_count)


def grid(start_s: float, end_s: float, finest_s: float, most_samples: int) -> tuple[float, float, int]:
    """Return start, samples per second and number of samples of a window, at the finest step within the maximum."""
    step = finest_s
    while True:
        first = int(np.ceil(start_s / step))
        last = int(np.floor(end_s / step))
        if last - first <= most_samples:
            return first * step, 1.0 / step, max(last - first, 0)
        step *= 4
