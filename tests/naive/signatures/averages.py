"""Naive implementation of `iosig.transforms.signatures.averages`: point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence


def measured(rows: Sequence[Sequence[float]], point: int) -> list[float]:
    """Sorted measured values of a point."""
    return sorted(row[point] for row in rows if math.isfinite(row[point]))


def means(rows: Sequence[Sequence[float]]) -> list[float]:
    """Mean over runs at each point."""
    known = [measured(rows, point) for point in range(len(rows[0]))]
    return [math.fsum(values) / len(values) if values else math.nan for values in known]


def quantiles(rows: Sequence[Sequence[float]], level: float) -> list[float]:
    """Quantile of each point: the value at rank level * (n - 1), interpolated linearly between ranks."""
    result = []
    for point in range(len(rows[0])):
        values = measured(rows, point)
        if not values:
            result.append(math.nan)
            continue
        rank = level * (len(values) - 1)
        low, high = values[math.floor(rank)], values[math.ceil(rank)]
        result.append(low + (high - low) * (rank - math.floor(rank)))
    return result
