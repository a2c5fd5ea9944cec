"""Naive implementation of `iosig.transforms.throughput.even_values`: loops over requests, bins and edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.naive.throughput.requests import Request


def bin_requests(
    requests: Sequence[Request], start_s: float, interval_s: float, count: int
) -> tuple[list[float], float]:
    """Bytes in each bin of a subject, and bytes outside."""
    edges = [start_s + step * interval_s for step in range(count + 1)]
    found, outside = [0.0] * count, 0.0
    for began, ceased, volume in requests:
        if began == ceased:
            inside = [
                n for n in range(count) if edges[n] <= began < edges[n + 1] or (began == edges[-1] and n == count - 1)
            ]
            if inside:
                found[inside[0]] += volume
            else:
                outside += volume
            continue
        rate = volume / (ceased - began)
        for number, (left, right) in enumerate(pairwise(edges)):
            found[number] += rate * max(0.0, min(ceased, right) - max(began, left))
        outside += rate * max(0.0, min(ceased, edges[0]) - began) + rate * max(0.0, ceased - max(began, edges[-1]))
    return found, outside


def rate_at(edges: Sequence[float], rates: Sequence[float], time_s: float, *, is_right: bool) -> float:
    """Rate of a step function at an instant, right- or left-continuous."""
    found = 0.0
    for edge, rate in zip(edges, rates, strict=True):
        if edge < time_s or (is_right and edge == time_s):
            found = rate
    return found


def area_apart(
    first: tuple[Sequence[float], Sequence[float]], second: tuple[Sequence[float], Sequence[float]]
) -> float:
    """Integral of the absolute difference of two step functions."""
    total = 0.0
    for low, high in pairwise(sorted({*first[0], *second[0]})):
        middle = (low + high) / 2
        apart = rate_at(*first, middle, is_right=True) - rate_at(*second, middle, is_right=True)
        total += abs(apart) * (high - low)
    return total
