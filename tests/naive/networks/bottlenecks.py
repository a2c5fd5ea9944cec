"""Naive implementation of `iosig.transforms.networks.bottlenecks`: all values are kept, sorted and examined."""

from __future__ import annotations

import math
from collections.abc import Sequence


def _quantile(bins: Sequence[int], share: float) -> float:
    """Quantile of values that are spread evenly within their quarter of an octave."""
    wanted = share * len(bins)
    for place in sorted(set(bins)):
        count = bins.count(place)
        if wanted <= count:
            return (place + wanted / count) / 4.0
        wanted -= count
    raise AssertionError("there are no values")


def _deviation(bins: Sequence[int], median: float) -> float:
    distances = sorted(abs((place + 0.5) / 4.0 - median) for place in bins)
    by_median = 1.4826 * distances[math.ceil(len(bins) / 2.0) - 1]
    return min(by_median, (_quantile(bins, 0.9) - _quantile(bins, 0.75)) / 0.6071)


def bottlenecks(
    values: Sequence[float], requests: Sequence[int], most: int, processes: int | None
) -> list[tuple[int, float, float]]:
    """Request, value and score of each bottleneck, by the rules of `iosig.transforms.networks.bottlenecks`."""
    known = [(value, request) for value, request in zip(values, requests, strict=True) if 0 < value < math.inf]
    if not known:
        return []
    bins = [math.floor(4 * math.log2(value)) for value, _ in known]
    median = _quantile(bins, 0.5)
    deviation = max(_deviation(bins, median), 0.25)
    usual = sorted(bins)[: -max(1, int(0.01 * len(bins)))]
    if not usual:
        return []
    bound = (usual[-1] + 0.5) / 4.0 + 3.0
    least = 0.01 if processes is None else min(1.0 / processes, 0.1)
    total = math.fsum(value for value, _ in known)
    found = []
    for value, request in sorted(known, key=lambda one: (-one[0], one[1]))[:most]:
        score = (math.log2(value) - median) / deviation
        if score >= 5.0 and math.log2(value) >= bound and value / total >= least:
            found.append((request, value, score))
    return found
