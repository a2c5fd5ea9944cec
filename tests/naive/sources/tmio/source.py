"""Naive implementation of `iosig.warehouse.sources.tmio.requests`: request by request."""

from __future__ import annotations

import math
from collections.abc import Iterable


def requests(phases: Iterable[tuple[float, float, float]]) -> tuple[list[tuple[float, float, float | None]], int]:
    """Return (start, end, bytes) of the valid rows of (rate, start, end), and the number of rejected rows."""
    good: list[tuple[float, float, float | None]] = []
    refused = 0
    for rate, start, end in phases:
        moved = rate * (end - start)
        if not all(map(math.isfinite, (rate, start, end, moved))) or end < start or rate < 0:
            refused += 1
        elif end == start and rate:
            good.append((start, end, None))
        else:
            good.append((start, end, moved))
    return good, refused
