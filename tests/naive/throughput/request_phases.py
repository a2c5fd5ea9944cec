"""Naive implementation of `iosig.transforms.throughput.request_phases`: requests in order of time."""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.throughput.requests import Request

RequestPhase = tuple[float, float, float, int]


def request_phases(requests: Sequence[Request], gap_s: float) -> list[RequestPhase]:
    """Onset, end, bytes and number of requests of each phase of a subject."""
    found: list[RequestPhase] = []
    for began, ceased, volume in sorted(request for request in requests if request[2] > 0):
        if found and began - found[-1][1] <= gap_s:
            onset, ended, total, count = found[-1]
            found[-1] = (onset, max(ended, ceased), total + volume, count + 1)
        else:
            found.append((began, ceased, volume, 1))
    return found
