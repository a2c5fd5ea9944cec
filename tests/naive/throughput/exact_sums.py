"""Naive implementation of `iosig.transforms.throughput.exact_sums`: rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def running_sums(changes: Sequence[float]) -> list[float]:
    """Exact sum up to each change, rounded once."""
    total, found = Fraction(0), []
    for change in changes:
        total += Fraction(change)
        found.append(float(total))
    return found


def cell_sums(cells: Sequence[int], values: Sequence[float], size: int) -> list[float]:
    """Exact sum of each cell, rounded once."""
    totals = [Fraction(0)] * size
    for cell, value in zip(cells, values, strict=True):
        totals[cell] += Fraction(value)
    return [float(total) for total in totals]
