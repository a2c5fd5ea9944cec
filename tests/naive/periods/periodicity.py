"""Naive implementation of `iosig.transforms.periods.periodicity`: for each period, a loop over all steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Start, end and rate; NaN if unknown.
Piece = tuple[float, float, float]


def compute_metrics(
    pieces: Sequence[Piece],
    impulses: dict[float, float],
    start_s: float,
    end_s: float,
    frequency_hz: float,
) -> dict[str, float]:
    """Section II-C, a to c and equation 4, on whole periods that are at least half known."""

    def integrate(low: float, high: float, minimum: float = -math.inf) -> tuple[float, float]:
        """Time between bounds in which the rate is known and above a threshold, and the volume."""
        shares = [
            (min(right, high) - max(left, low), rate)
            for left, right, rate in pieces
            if min(right, high) > max(left, low) and not math.isnan(rate) and rate > minimum
        ]
        return math.fsum(width for width, _ in shares), math.fsum(width * rate for width, rate in shares)

    def sum_impulses(low: float, high: float) -> float:
        """Volume of impulses."""
        return math.fsum(volume for time, volume in impulses.items() if low <= time < high or time == high == end_s)

    length, volume = integrate(start_s, end_s)
    volume += sum_impulses(start_s, end_s)
    minimum = volume / length * (1 + 1e-9)
    high_s, high_bytes = integrate(start_s, end_s, minimum)
    high_bytes += sum_impulses(start_s, end_s)
    volumes, ratios = [], []
    for number in range(math.floor((end_s - start_s) * frequency_hz * (1 + 1e-9))):
        low, high = (min(start_s + place / frequency_hz, end_s) for place in (number, number + 1))
        known, moved = integrate(low, high)
        if known >= 0.5 / frequency_hz * (1 - 1e-9):
            volumes.append((moved + sum_impulses(low, high)) / known)
            ratios.append(integrate(low, high, minimum)[0] / known)
    result = {"known_s": length, "volume_bytes": volume, "r_io": high_s / length, "substantial_bytes": high_bytes}
    result["b_io_bytes_per_s"] = high_bytes / high_s if high_s else math.nan
    result["period_count"] = len(volumes)
    result |= dict.fromkeys(("sigma_vol", "sigma_time", "bytes_per_period"), math.nan)
    if len(volumes) >= 2 and volume > 0:
        result["bytes_per_period"] = high_bytes / (length * frequency_hz)
        result["sigma_time"] = math.sqrt(sum((ratio - result["r_io"]) ** 2 for ratio in ratios) / len(ratios))
        if max(volumes) > 0:
            shares = [value / max(volumes) for value in volumes]
            mean = sum(shares) / len(shares)
            result["sigma_vol"] = math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
    return result
