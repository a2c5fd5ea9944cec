"""Naive implementation of `iosig.transforms.networks.counting`: a loop over every transfer, with dictionaries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.naive.networks.log_bins import UNKNOWN, bin_number

#: Hop, source, target, at_s, time_s, size_bytes, bandwidth_bytes_per_s, is_read.
Transfer = tuple[int, int, int, float, float, float, float, bool]
Edge = tuple[int, int, int]


@dataclass
class Counted:
    """All results in dictionaries with plain keys."""

    counts: dict[tuple[int, Edge, int, int], int] = field(default_factory=lambda: defaultdict(int))
    totals: dict[tuple[int, Edge], list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0, 0]))
    timeline: dict[tuple[int, int, int], list[float]] = field(default_factory=dict)

    @property
    def edges(self) -> list[Edge]:
        return sorted({edge for _, edge in self.totals})

    def count_rows(self) -> list[tuple[Any, ...]]:
        number = {edge: place for place, edge in enumerate(self.edges)}
        return sorted((window, number[edge], metric, k, n) for (window, edge, metric, k), n in self.counts.items())

    def total_rows(self) -> list[tuple[Any, ...]]:
        number = {edge: place for place, edge in enumerate(self.edges)}
        return sorted((window, number[edge], *sums) for (window, edge), sums in self.totals.items())

    def timeline_rows(self) -> list[tuple[Any, ...]]:
        return sorted((*key, *sums) for key, sums in self.timeline.items())


def place(instant: float, edges: Sequence[float]) -> int:
    """Interval that contains an instant; the first or last if it lies outside, and the first if it is unknown."""
    found = 0
    for number in range(1, len(edges) - 1):
        if instant >= edges[number]:
            found = number
    return found


def counted(transfers: Sequence[Transfer], window_edges_s: Sequence[float], steps_per_window: int = 8) -> Counted:
    """Count all transfers."""
    began, ceased, window_count = window_edges_s[0], window_edges_s[-1], len(window_edges_s) - 1
    step_count = window_count * steps_per_window
    step_edges = [began + (ceased - began) * step / step_count for step in range(step_count + 1)]
    found = Counted()
    for hop, source, target, at, time, size, bandwidth, is_read in transfers:
        edge, window, step = (hop, source, target), place(at, window_edges_s), place(at, step_edges)
        sums = found.totals[window, edge]
        sums[0] += 1
        if math.isfinite(size) and size > 0:
            sums[1 if is_read else 2] += size
        if math.isfinite(time) and time > 0:
            sums[3] += time
            sums[4] = max(sums[4], time)
        for metric, value in enumerate((time, size, bandwidth)):
            if bin_number(value) == UNKNOWN:
                continue
            found.counts[window, edge, metric, bin_number(value)] += 1
            count, total, least, most = found.timeline.get((hop, metric, step), [0, 0.0, math.inf, -math.inf])
            above = value >= 0
            found.timeline[hop, metric, step] = [
                count + above,
                total + (value if above else 0),
                min(least, value),
                max(most, value),
            ]
    return found
