"""Naive implementations of `iosig.transforms.predictions.change_points`, recomputed from all values at each step.

Each takes values in octaves, without missing values, and returns (change point, detection) of the first change, or
None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Found = tuple[int, int] | None
SMALL = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


def level_and_noise(values: Sequence[float], floor: float, prior: int) -> tuple[float, float]:
    """Median, and an unbiased 1.4826 MAD with the floor as minimum and as a prior of `prior` values."""
    level = float(np.median(values))
    mad = float(np.median(np.abs(np.array(values) - level)))
    count = len(values)
    own = max(1.4826 * mad * SMALL.get(count, count / (count - 0.8)), floor)
    return level, math.sqrt((prior * floor**2 + count * own**2) / (prior + count))


def noise_units(values: Sequence[float], place: int, floor: float, prior: int, most: int) -> float:
    level, noise = level_and_noise(values[: min(place, most)], floor, prior)
    return (values[place] - level) / (noise * math.sqrt(1 + math.pi / 2 / min(place, most)))


def cusum(
    values: Sequence[float], k: float, h: float, c: float, floor: float, prior: int, least: int, most: int
) -> Found:
    """Page's S_n - min S_i for both signs, with deviations clipped to c.

    The change point is the start of the largest sum; of equal sums, the latest start.
    """
    units = [noise_units(values, place, floor, prior, most) for place in range(least, len(values))]
    for last in range(least, len(values)):
        for sign in (1, -1):
            steps = [sign * max(-c, min(unit, c)) - k for unit in units[: last - least + 1]]
            sums = {least + first: sum(steps[first:]) for first in range(len(steps))}
            if max(sums.values()) >= h:
                return max(sums, key=lambda first: (sums[first], first)), last
    return None


def likeliest(values: Sequence[float], level: float, first: int, last: int) -> int:
    """Most likely first value of a new level in first .. last - 1 (Hinkley 1970, level before known)."""
    strengths = {
        place: sum(v - level for v in values[place : last + 1]) ** 2 / (last - place + 1)
        for place in range(first, last)
    }
    return max(strengths, key=lambda place: strengths[place])
