"""Naive implementation of `iosig.transforms.throughput.requests`: for each interval, a loop over all requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Request = tuple[float, float, float]


def is_instant(request: Request) -> bool:
    """Whether a request has no duration, or a duration so short that its rate overflows."""
    began, ceased, volume = request
    return ceased == began or volume > 1e200 * (ceased - began)


def step_function(requests: Sequence[Request]) -> tuple[list[float], list[float]]:
    """Edges of a subject, and the rate after each edge."""
    spans = [request for request in requests if request[2] > 0 and not is_instant(request)]
    edges = sorted({time for began, ceased, _ in spans for time in (began, ceased)})
    rates = [
        math.fsum(volume / (ceased - began) for began, ceased, volume in spans if began <= low and ceased >= high)
        for low, high in pairwise(edges)
    ]
    return edges, [*rates, 0.0] if edges else []


def impulses(requests: Sequence[Request]) -> dict[float, float]:
    """Bytes of all impulses at each instant."""
    found: dict[float, list[float]] = {}
    for began, ceased, volume in requests:
        if volume > 0 and is_instant((began, ceased, volume)):
            found.setdefault(began, []).append(volume)
    return {time: math.fsum(found[time]) for time in sorted(found)}
