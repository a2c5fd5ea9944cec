"""Naive implementations of `iosig.transforms.networks.patterns`: value by value, node by node, shuffle by shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean


def quantile(bins: Sequence[int], counts: Sequence[int], share: float) -> float:
    """Walk up a histogram of quarters of octaves to a share of its values; values are spread evenly in a bin."""
    wanted = share * sum(counts)
    for place, count in sorted(zip(bins, counts, strict=True)):
        if wanted <= count:
            return (place + wanted / count) / 4.0
        wanted -= count
    raise AssertionError("a share is from 0 to 1")


def level(bins: Sequence[int], counts: Sequence[int]) -> float:
    """The mean of the nine deciles."""
    return fmean(quantile(bins, counts, tenth / 10.0) for tenth in range(1, 10))


def serial_product(levels: Sequence[float], lag: int) -> float:
    """Sum of the products of each level and the level `lag` nodes further around the ring."""
    return sum(one * levels[(place + lag) % len(levels)] for place, one in enumerate(levels))


def shuffled_products(levels: Sequence[float], lag: int, shuffles: int, seed: int) -> list[float]:
    """Serial products of shuffled rings."""
    found, ring, random = [], list(levels), Random(seed)
    for _ in range(shuffles):
        random.shuffle(ring)
        found.append(serial_product(ring, lag))
    return found


def share_of_bands(levels: Sequence[float], bands: Sequence[int]) -> float:
    """One minus the mean square within bands divided by the total mean square."""
    groups: dict[int, list[float]] = {}
    for one, band in zip(levels, bands, strict=True):
        groups.setdefault(band, []).append(one)
    within = sum((one - fmean(group)) ** 2 for group in groups.values() for one in group)
    total = sum((one - fmean(levels)) ** 2 for one in levels)
    return 1.0 - (within / (len(levels) - len(groups))) / (total / (len(levels) - 1))


def widest_run(is_dense: Sequence[bool]) -> int:
    """Maximum number of adjacent dense bins."""
    best = run = 0
    for one in is_dense:
        run = run + 1 if one else 0
        best = max(best, run)
    return best
