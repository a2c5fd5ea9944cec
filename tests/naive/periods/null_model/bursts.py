"""Naive implementation of `iosig.transforms.periods.null_model.bursts`: one signal, step by step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tests.naive.periods.null_model.gaps import find_runs


def measure_phase_width(rates: Sequence[float], period: float) -> float:
    """Median length of phases above half of the burst height, with short gaps bridged; all samples are known."""
    height = math.fsum(rate**3 for rate in rates) / math.fsum(rate**2 for rate in rates)
    result = find_runs(rates, max(math.fsum(rates) / len(rates), height / 2) * (1 + 1e-6))
    volume = [sum_ for _, _, sum_ in result]
    typical = math.fsum(value**2 for value in volume) / math.fsum(volume)
    large = [(first, last) for first, last, sum_ in result if sum_ >= 0.1 * typical]
    joined = [list(large[0])]
    for first, last in large[1:]:
        if first - joined[-1][1] <= math.floor(0.25 * period):
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return statistics.median(last - first for first, last in joined)


def measure_profile_width(rates: Sequence[float], period: float) -> float:
    """Duration for which the mean cycle exceeds the midpoint of its lower quartile and its maximum."""
    bins = min(max(math.floor(period), 2), 64)
    parts: list[list[float]] = [[] for _ in range(bins)]
    for place, rate in enumerate(rates):
        turn = place / period
        parts[min(int((turn - math.floor(turn)) * bins), bins - 1)].append(rate)
    profile = [math.fsum(part) / max(len(part), 1) for part in parts]
    low, high = sorted(profile)[math.floor(0.25 * bins)], max(profile)
    return sum(mean > (low + high) / 2 for mean in profile) / bins * period
