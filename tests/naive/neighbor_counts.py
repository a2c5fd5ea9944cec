"""Naive count of the neighbors of each query point."""

from __future__ import annotations

from collections.abc import Sequence


def neighbor_counts(places: Sequence[Sequence[float]], asked: Sequence[Sequence[float]]) -> list[int]:
    """Return the number of places within a distance of 1 in every dimension, for each query point."""
    return [sum(all(abs(a - b) <= 1 for a, b in zip(one, place, strict=True)) for place in places) for one in asked]
