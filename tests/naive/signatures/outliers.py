"""Naive implementation of `iosig.transforms.signatures.outliers`: run by run, neighbor by neighbor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

Point = tuple[float, float]


def unit_free(values: Sequence[float]) -> list[float]:
    """Distance of each value from the median, in median absolute deviations."""
    middle = median(values)
    deviation = median(abs(value - middle) for value in values)
    unit = max(deviation, 0.001 * (middle or max(values)))
    return [(value - middle) / unit if unit else 0.0 for value in values]


def local_factors(points: Sequence[Point], count: int) -> list[float]:
    """Definitions 3 to 7 of Breunig et al., with the first `count` other points by distance and index."""

    def distance(first: int, second: int) -> float:
        return math.dist(points[first], points[second])

    places = range(len(points))
    near = [
        sorted((other for other in places if other != one), key=lambda other, one=one: (distance(one, other), other))[
            :count
        ]
        for one in places
    ]
    k_distance = [distance(one, near[one][-1]) for one in places]
    density = [
        1.0 / (sum(max(k_distance[other], distance(one, other)) for other in near[one]) / count + 1e-10)
        for one in places
    ]
    return [sum(density[other] / density[one] for other in near[one]) / count for one in places]


def factors(duration_s: Sequence[float], volume_bytes: Sequence[float], count: int) -> list[float]:
    """Factors of a set without missing values."""
    points = list(zip(unit_free(duration_s), unit_free(volume_bytes), strict=True))
    return local_factors(points, count)
