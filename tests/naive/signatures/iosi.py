"""Naive implementation of `iosig.transforms.signatures.iosi` after preprocessing: loops over bursts and points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tests.naive.signatures import iosi_clique as grid_clusters

#: (run, first, peak, last), all points included.
Burst = tuple[int, int, int, int]
Rows = Sequence[Sequence[float]]


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation; 0 if it is negative or a side is constant."""
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    xy = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    xx, yy = sum((a - x_mean) ** 2 for a in x), sum((b - y_mean) ** 2 for b in y)
    # A constant with a rounded mean.
    if xx <= 1e-11 * sum(a * a for a in x) or yy <= 1e-11 * sum(b * b for b in y):
        return 0.0
    return max(0.0, xy / math.sqrt(xx * yy))


def correlations_with_average(rows: Rows, bursts: Sequence[Burst]) -> list[float]:
    """Correlation of each burst with the average burst."""
    offsets = range(
        min(first - peak for _, first, peak, _ in bursts), max(last - peak for *_, peak, last in bursts) + 1
    )
    average = []
    for offset in offsets:
        there = [rows[run][peak + offset] for run, first, peak, last in bursts if first <= peak + offset <= last]
        average.append(sum(there) / len(there))
    result = []
    for run, first, peak, last in bursts:
        own = [rows[run][peak + offset] if first <= peak + offset <= last else 0.0 for offset in offsets]
        result.append(correlation(own, average))
    return result


def widths(bursts: Sequence[Burst], count: int) -> list[float]:
    """Unit widths from the mean duration of bursts to their mean distance within a run."""
    between = []
    for one, other in pairwise(bursts):
        if one[0] == other[0]:
            between.append(other[1] - one[3])
    duration = max(1.0, sum(last - first for _, first, _, last in bursts) / len(bursts))
    apart = max(1.0, sum(between) / len(between)) if between else duration
    low, high = min(duration, apart), max(duration, apart)
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def common(
    rows: Rows,
    bursts: Sequence[Burst],
    likeness: Sequence[float],
    grids: Sequence[tuple[float, float]],
    gamma: float,
    kappa: float,
) -> list[set[int]]:
    """Common bursts ordered by time, as indices of bursts."""
    points = [(float(burst[2]), like, burst[0]) for burst, like in zip(bursts, likeness, strict=True)]
    return grid_clusters.clique(points, len(rows), len(rows[0]), grids, gamma, kappa)[0]


def averaged(
    rows: Rows, members: Sequence[Burst], centers: Sequence[int], coverage: float
) -> tuple[int, dict[int, float]]:
    """Center of a common burst, and its mean in each second that a share of its members covers."""
    center = round(sum(centers) / len(centers))
    curve = {}
    for second in range(len(rows[0])):
        there = []
        for (run, first, _, last), own in zip(members, centers, strict=True):
            if first <= own + second - center <= last:
                there.append(rows[run][own + second - center])
        if there and len(there) >= coverage * len(members):
            curve[second] = sum(there) / len(members)
    return center, curve


def signature(
    rows: Rows, bursts: Sequence[Burst], clusters: Sequence[set[int]], coverage: float
) -> tuple[list[float], list[tuple[int, int]]]:
    """Curve and seconds of each burst, for clusters with different centers."""
    result = []
    for cluster in clusters:
        members = [bursts[i] for i in sorted(cluster)]
        result.append(averaged(rows, members, [burst[2] for burst in members], coverage))
    for (center, one), (later, other) in pairwise(result):
        end, begin = max(one) + 1, min(other)
        if end > begin:
            border = max(min((end + begin) // 2, later), center + 1)
            for second in [second for second in one if second >= border]:
                del one[second]
            for second in [second for second in other if second < border]:
                del other[second]
    total = [0.0] * len(rows[0])
    for _, curve in result:
        for second, value in curve.items():
            total[second] = value
    return total, [(min(curve), max(curve) + 1) for _, curve in result if curve]
