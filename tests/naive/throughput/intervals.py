"""Even steps of the intervals of a subject, step by step and interval by interval."""

import math
from collections.abc import Sequence


def stepped(
    left_s: Sequence[float], right_s: Sequence[float], volume_bytes: Sequence[float], least_covered: float = 0.5
) -> list[float]:
    timed = [
        (left, right, volume) for left, right, volume in zip(left_s, right_s, volume_bytes, strict=True) if right > left
    ]
    if not timed:
        return []
    lengths = sorted(right - left for left, right, _ in timed)
    interval = lengths[(len(lengths) - 1) // 2]
    first, last = min(left for left, _, _ in timed), max(right for _, right, _ in timed)
    found = []
    for step in range(math.ceil((last - first) / interval - 0.01)):
        low, high = first + step * interval, first + (step + 1) * interval
        moved = covered = 0.0
        for left, right, volume in timed:
            overlap = max(0.0, min(high, right) - max(low, left))
            if math.isfinite(volume):
                moved += volume * overlap / (right - left)
                covered += overlap
        is_measured = covered > 0 and covered >= least_covered * (high - low)
        found.append(moved / min(covered, high - low) if is_measured else math.nan)
    return found
