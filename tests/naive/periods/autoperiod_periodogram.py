"""Naive implementation of `iosig.transforms.periods.autoperiod_periodogram`: Scargle (1982), equation 10."""

from __future__ import annotations

import math
from collections.abc import Sequence


def compute_power(times: Sequence[float], values: Sequence[float], frequency: float) -> float:
    """Power at one frequency, normalized by the variance: Exp(1) under white noise."""
    count = len(values)
    mean = sum(values) / count
    variance = sum((x - mean) ** 2 for x in values) / count
    if variance == 0:
        return 0.0
    w = 2 * math.pi * frequency
    tau = math.atan2(sum(math.sin(2 * w * t) for t in times), sum(math.cos(2 * w * t) for t in times)) / (2 * w)
    result = 0.0
    for wave in (math.cos, math.sin):
        along = sum((x - mean) * wave(w * (t - tau)) for t, x in zip(times, values, strict=True))
        size = sum(wave(w * (t - tau)) ** 2 for t in times)
        if size > 1e-9 * count:
            result += along**2 / size
    return result / (2 * variance)


def list_frequencies(span: float, step: float, samples_per_peak: int) -> list[float]:
    """From one cycle in the span to the Nyquist frequency, with `samples_per_peak` within a peak's width."""
    result, number = [], samples_per_peak
    while number / samples_per_peak <= span / (2 * step) * (1 + 1e-9):
        result.append(number / samples_per_peak / span)
        number += 1
    return result
