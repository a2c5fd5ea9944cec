"""Naive implementation of `iosig.transforms.signatures.time_normalized`: run by run, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean_rate(rates: Sequence[float], interval_s: float, start_s: float, begin_s: float, end_s: float) -> float:
    """Mean rate between two times since the start of a run; NaN if at most half of it was measured."""
    moved = known = 0.0
    for place, rate in enumerate(rates):
        left = start_s + place * interval_s
        inside_s = min(end_s, left + interval_s) - max(begin_s, left)
        if inside_s > 0 and math.isfinite(rate):
            moved, known = moved + rate * inside_s, known + inside_s
    return moved / known if known > 0.5 * (end_s - begin_s) else math.nan


def quantile(values: Sequence[float], level: float) -> float:
    """Quantile of the known values, linear between ranks."""
    known = sorted(value for value in values if math.isfinite(value))
    rank = level * (len(known) - 1)
    low = int(rank)
    return known[low] + (rank - low) * (known[min(low + 1, len(known) - 1)] - known[low])


def second_rates(curve: Sequence[float], step_s: float) -> list[float]:
    """Mean rates in whole seconds of a curve on steps; the last second has the remainder."""
    seconds = max(1, round(len(curve) * step_s))
    result = []
    for second in range(seconds):
        end = len(curve) * step_s if second == seconds - 1 else second + 1.0
        moved = (
            rate * max(0.0, min(end, (place + 1) * step_s) - max(float(second), place * step_s))
            for place, rate in enumerate(curve)
        )
        result.append(sum(moved))
    return result
