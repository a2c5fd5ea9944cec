"""Naive implementation of `iosig.transforms.signatures.bursts`: second by second."""

from __future__ import annotations

from collections.abc import Sequence


def weighted_median(values: Sequence[float], power: int) -> float:
    """Weighted median; the weight is a power of the value."""
    whole = sum(value**power for value in values)
    passed = 0.0
    for value in sorted(values):
        passed += value**power
        if value > 0 and passed >= whole / 2:
            return value
    return 0.0


def bursts(
    rates: Sequence[float], height_ratio: float, dip_s: int, volume_ratio: float
) -> list[tuple[int, int, int, float]]:
    """(first second, highest second, second after the last, volume) of each burst."""
    bound = height_ratio * weighted_median(rates, 2)
    spans: list[list[int]] = []
    for second, rate in enumerate(rates):
        if not rate > bound:
            continue
        if spans and second - spans[-1][1] <= dip_s:
            spans[-1][1] = second + 1
        else:
            spans.append([second, second + 1])
    volumes = [sum(rates[first:after]) for first, after in spans]
    least = volume_ratio * weighted_median(volumes, 1)
    return [
        (first, max(range(first, after), key=lambda second: (rates[second], -second)), after, volume)
        for (first, after), volume in zip(spans, volumes, strict=True)
        if volume >= least
    ]
