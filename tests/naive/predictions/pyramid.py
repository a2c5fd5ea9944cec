"""Naive implementation of `iosig.transforms.predictions.pyramid` that keeps all requests.

Widths are powers of two here, so that every edge is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.naive.throughput.requests import Request

Interval = tuple[float, float]


def chosen_width(
    finest_s: float, cell_count: int, spans: Sequence[Interval], start_s: float, end_s: float, most: int
) -> float:
    """Width of the finest cells for a window: at most `most` cells, and all of them recent enough to be kept.

    `spans` has the start and end of each request. A window may start before the oldest kept cell if no request does.
    """
    first, until = min(left for left, _ in spans), max(right for _, right in spans)
    width = finest_s
    while True:
        oldest_s = (math.floor(until / width) - cell_count + 1) * width
        low, high = math.ceil(start_s / width), math.floor(min(end_s, until) / width)
        if high - low <= most and (low * width >= oldest_s or math.floor(first / width) * width >= oldest_s):
            return width
        width *= 4


def cells(width: float, start_s: float, end_s: float) -> list[Interval]:
    """Cells that lie completely in a window."""
    numbers = range(math.ceil(start_s / width), math.floor(end_s / width))
    return [(number * width, (number + 1) * width) for number in numbers]


def volume_in(requests: Sequence[Request], cell: Interval) -> float:
    """Bytes that move within a cell, including impulses at its left edge but not at its right edge."""
    left, right = cell
    total = 0.0
    for began, ceased, volume in requests:
        if began == ceased:
            total += volume if left <= began < right else 0.0
        else:
            total += volume * max(0.0, min(ceased, right) - max(began, left)) / (ceased - began)
    return total


def rate_at(requests: Sequence[Request], time_s: float) -> float:
    """Rate from an instant on; impulses have no rate."""
    return sum(volume / (ceased - began) for began, ceased, volume in requests if began <= time_s < ceased)


def measured_ratio(intervals: Sequence[Interval], cell: Interval) -> float:
    """Measured share of a cell."""
    left, right = cell
    return sum(max(0.0, min(end, right) - max(start, left)) for start, end in intervals) / (right - left)
