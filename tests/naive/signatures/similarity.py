"""Naive implementation of `iosig.transforms.signatures.similarity`: every lag, every matching."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

Span = tuple[float, float, float]


def at(curve: Sequence[float], place: int) -> float:
    return curve[place] if 0 <= place < len(curve) else 0.0


def cross_correlation(result: Sequence[float], truth: Sequence[float]) -> float:
    """Maximum over lags of the sum of products, divided by the root of the product of the sums of squares."""
    longest = max(len(result), len(truth))
    norm = math.sqrt(math.fsum(x * x for x in result) * math.fsum(x * x for x in truth))
    return max(
        math.fsum(at(result, place + shift) * at(truth, place) for place in range(longest)) / norm
        for shift in range(-longest, longest + 1)
    )


def correlation(result: Sequence[float], truth: Sequence[float]) -> float:
    """Pearson's correlation: covariance divided by the product of the standard deviations."""
    count = max(len(result), len(truth))
    pairs = [(at(result, place), at(truth, place)) for place in range(count)]
    x_mean, y_mean = math.fsum(x for x, _ in pairs) / count, math.fsum(y for _, y in pairs) / count
    covariance = math.fsum((x - x_mean) * (y - y_mean) for x, y in pairs)
    spreads = math.fsum((x - x_mean) ** 2 for x, _ in pairs) * math.fsum((y - y_mean) ** 2 for _, y in pairs)
    return covariance / math.sqrt(spreads)


def best_matching(result: Sequence[Span], truth: Sequence[Span], tolerance_s: float) -> tuple[int, float]:
    """Best of all matchings of (start, peak, end): most pairs, then the smallest distance between peaks."""
    few, many = sorted((result, truth), key=len)
    best = (0, 0.0)
    for order in permutations(range(len(many)), len(few)):
        distances = [
            abs(one[1] - many[place][1])
            for one, place in zip(few, order, strict=True)
            if min(one[2], many[place][2]) > max(one[0], many[place][0]) or abs(one[1] - many[place][1]) <= tolerance_s
        ]
        if (len(distances), -sum(distances)) > (best[0], -best[1]):
            best = (len(distances), sum(distances))
    return best
