"""Naive implementation of `iosig.transforms.periods.null_model.gaps`: one signal, merge by merge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def find_runs(rates: Sequence[float], threshold: float) -> list[tuple[int, int, float]]:
    """First sample, the sample after the last, and the sum of each run of samples above a threshold."""
    result, start = [], None
    for place, rate in enumerate([*rates, 0.0]):
        if rate > threshold and start is None:
            start = place
        if rate <= threshold and start is not None:
            result.append((start, place, math.fsum(rates[start:place])))
            start = None
    return result


def compute_squared_cv(gaps: Sequence[int], merged: int) -> float:
    """Variance of the gaps above the merged length, relative to geometric gaps of the same mean."""
    left = [gap - merged for gap in gaps if gap > merged]
    mean = math.fsum(left) / len(left)
    if mean <= 1:
        return 1.0
    variance = math.fsum((gap - mean) ** 2 for gap in left) / len(left)
    return (variance + 1 / 6) / (mean * (mean - 1))


def compute_ball_share(count: int, c: float) -> float:
    """Share of the simplex of `count` gaps within a ball of squared radius c / count around its center; at most 1."""
    dimensions = count - 1
    volume = math.pi ** (dimensions / 2) / math.gamma(dimensions / 2 + 1) * (c / count) ** (dimensions / 2)
    simplex = math.sqrt(count) / math.factorial(dimensions)
    return min(volume / simplex, 1.0)


def list_merges(gaps: Sequence[int]) -> list[int]:
    """All gap lengths, and 0, up to which gaps may be merged with at least two gaps remaining."""
    return [merged for merged in [0, *sorted(set(gaps))] if sum(gap > merged for gap in gaps) >= 2]


def measure_intervals(phases: Sequence[tuple[int, int, float]], merged: int) -> list[int]:
    """Onset intervals of phases after merging gaps of at most `merged` samples."""
    starts = [phases[0][0]] + [right[0] for left, right in pairwise(phases) if right[0] - left[1] > merged]
    return [right - left for left, right in pairwise(starts)]
