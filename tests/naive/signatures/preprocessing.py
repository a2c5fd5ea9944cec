"""Naive implementation of `iosig.transforms.signatures.preprocessing`: point by point, after IOSI, section 5.1."""

from __future__ import annotations

import math
from collections.abc import Sequence


def bridged(rates: Sequence[float], max_steps: int) -> list[float]:
    """Interpolate each gap of at most `max_steps` linearly between its neighbors."""
    result = list(rates)
    start = 0
    while start < len(rates):
        if not math.isnan(rates[start]):
            start += 1
            continue
        end = start
        while end < len(rates) and math.isnan(rates[end]):
            end += 1
        sides = [rates[place] for place in (start - 1, end) if 0 <= place < len(rates)]
        if end - start <= max_steps and sides:
            for place in range(start, end):
                share = (place - start + 1) / (end - start + 1)
                result[place] = sides[0] + (sides[-1] - sides[0]) * share
        start = end
    return result


def refined(rates: Sequence[float]) -> list[float]:
    """Insert the average of every two neighbors: steps of 2 s become points of 1 s."""
    result: list[float] = []
    for place, rate in enumerate(rates):
        if place:
            result.append((rates[place - 1] + rate) / 2)
        result.append(rate)
    return result


def shortened(rates: Sequence[float], count: int, interval: float) -> list[float]:
    """Drop the first point of a sample, and another point after each interval."""
    result: list[float] = []
    dropped = 0
    for place, rate in enumerate(rates):
        if dropped < len(rates) - count and place >= math.floor(dropped * interval + 1e-9):
            dropped += 1
        else:
            result.append(rate)
    return result


def noise_reduced(samples: Sequence[Sequence[float]]) -> tuple[list[list[float]], float]:
    """Steps (1) to (4) of the noise reduction in IOSI 5.1."""
    points = [value for sample in samples for value in sample if not math.isnan(value)]
    mean = math.fsum(points) / len(points)
    low = [value for value in points if value < mean]
    background = math.fsum(low) / len(low) if low else 0.0
    return [[max(value - background, 0.0) if value == value else value for value in s] for s in samples], background
