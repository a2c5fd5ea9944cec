"""Naive implementation of `iosig.transforms.traces.time_histograms`: group by group, bin by bin, call by call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

Bin = tuple[int, float, float, float]


def mean(times: Sequence[float]) -> float:
    return float(sum(map(Fraction, times)) / len(times))


def variance(times: Sequence[float]) -> float:
    exact = [Fraction(time) for time in times]
    middle = sum(exact) / len(exact)
    return float(sum((time - middle) ** 2 for time in exact) / len(exact))


def bins(times: Sequence[float], most: int = 5) -> list[Bin]:
    """Return count, minimum, mean and maximum of equal parts of the sorted times."""
    ordered = sorted(times)
    parts = min(most, len(ordered))
    edges = [part * len(ordered) // parts for part in range(parts + 1)] if parts else []
    found = []
    for first, last in pairwise(edges):
        held = ordered[first:last]
        found.append((len(held), held[0], mean(held), held[-1]))
    return found


def gaps_and_durations(
    levels: Sequence[int], began: Sequence[float], ceased: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return gaps and durations; a gap starts at the previous call of the level or the start of the enclosing call."""
    gaps = []
    for place, level in enumerate(levels):
        since = 0.0
        for earlier in range(place - 1, -1, -1):
            if levels[earlier] == level:
                since = ceased[earlier]
                break
            if levels[earlier] < level:
                since = began[earlier]
                break
        gaps.append(max(0.0, began[place] - since))
    return gaps, [max(0.0, end - start) for start, end in zip(began, ceased, strict=True)]


def quantile_mean(parts: Sequence[Bin], first: float, last: float, steps: int = 20_000) -> float:
    """Return the mean of the times between two quantiles of consecutive bins, by many small steps."""
    total = sum(part[0] for part in parts)
    found = 0.0
    for step in range(steps):
        place = (first + (last - first) * (step + 0.5) / steps) * total
        index, before = 0, 0
        while index < len(parts) - 1 and place >= before + parts[index][0]:
            before += parts[index][0]
            index += 1
        count, least, middle, most = parts[index]
        if not least < middle < most:
            found += middle
        else:
            power = (most - middle) / (middle - least)
            found += least + (most - least) * math.pow((place - before) / count, power)
    return found / steps
