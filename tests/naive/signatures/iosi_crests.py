"""Naive implementation of `iosig.transforms.signatures.iosi_crests`: point by point (IOSI, FAST'14, section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

Level = tuple[float, int, int]


def levels(row: Sequence[float]) -> list[Level]:
    """Intervals of equal values: value, first and last point."""
    result, start = [], 0
    for value, group in groupby(row):
        length = len(list(group))
        result.append((value, start, start + length - 1))
        start += length
    return result


def waves(
    row: Sequence[float], ripple_ratio: float = 0.0, requires_high_crest: bool = False
) -> list[tuple[int, int, int]]:
    """(first, peak, last) of each burst."""
    steps = levels(row)
    if len(steps) < 2:
        return []
    # Points outside of the row are infinitely low.
    heights = [float("-inf"), *(value for value, _, _ in steps), float("-inf")]
    crests = [i for i in range(len(steps)) if heights[i] < heights[i + 1] > heights[i + 2]]
    mean = sum(steps[i][0] for i in crests) / len(crests)
    troughs = [
        i
        for i in range(1, len(steps) - 1)
        if heights[i] > heights[i + 1] < heights[i + 2] and heights[i + 1] < (1 - ripple_ratio) * mean
    ]
    result = []
    bounds = [0, *troughs, len(steps) - 1]
    for left, right in pairwise(bounds):
        inside = [i for i in crests if left <= i <= right]
        if not inside:
            continue
        top = max(inside, key=lambda i: (steps[i][0], -i))
        height = steps[top][0]
        if requires_high_crest:
            # Equal heights may be a rounding error below their mean.
            if height <= 0 or height < mean - 1e-9 * abs(mean):
                continue
            first = steps[left][1] if left in crests else steps[left][2]
            last = steps[right][2] if right in crests else steps[right][1]
        else:
            first = (steps[left][1] + steps[left][2]) // 2 if left in troughs else 0
            last = (steps[right][1] + steps[right][2]) // 2 if right in troughs else len(row) - 1
        result.append((first, (steps[top][1] + steps[top][2]) // 2, last))
    return result
