"""Naive implementation of `iosig.transforms.classes`: a loop over intervals and sections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Interval = tuple[float, float, float]


def sections(intervals: Sequence[Interval], start_s: float, end_s: float, count: int = 4) -> list[float]:
    """Bytes in each of `count` equal parts of a run."""
    width = (end_s - start_s) / count
    found = [0.0] * count
    for left, right, volume in intervals:
        if math.isnan(volume) or right <= left:
            continue
        for number in range(count):
            low = max(left, start_s + number * width)
            high = min(right, start_s + (number + 1) * width)
            if high > low:
                found[number] += volume * (high - low) / (right - left)
    return found


def missing(intervals: Sequence[Interval], start_s: float, end_s: float) -> float:
    """Share of a run without an interval with a volume, by a sweep over all interval edges."""
    known = [(left, right) for left, right, volume in intervals if not math.isnan(volume) and right > left]
    times = sorted({start_s, end_s} | {t for pair in known for t in pair if start_s < t < end_s})
    covered = 0.0
    for low, high in pairwise(times):
        if any(left <= low and right >= high for left, right in known):
            covered += high - low
    return 1.0 - covered / (end_s - start_s)


def label(s: Sequence[float], node_count: float = 1.0) -> str:
    """Section 4.1 and Algorithm 1, as printed."""
    if sum(s) / node_count < 1e6:
        return "NO_USAGE"
    mean = sum(s) / 4
    if math.sqrt(sum((x - mean) ** 2 for x in s) / 4) / mean < 0.25:
        return "UNIFORM"
    if s[0] > s[1] + s[2] + s[3]:
        return "CANYON" if s[3] > 2 * (s[1] + s[2]) else "START"
    if s[3] > s[0] + s[1] + s[2]:
        return "CANYON" if s[0] > 2 * (s[1] + s[2]) else "END"
    if s[1] + s[2] > 2 * (s[0] + s[3]):
        return "HILL"
    if min(s[0], s[3]) > 2 * max(s[1], s[2]):
        return "CANYON"
    return "OTHER"
