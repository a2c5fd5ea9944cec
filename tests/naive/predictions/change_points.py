"""Naive implementations of `iosig.transforms.predictions.change_points`: recomputed from all values at each step.

Each takes all values in octaves and returns (change point, where it was found) of the first change, or None. Missing
values are not among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Found = tuple[int, int] | None
SMALL = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


def level_and_noise(values: Sequence[float], floor: float, prior: int) -> tuple[float, float]:
    """Median, and 1.4826 MAD made unbiased, at least the floor, which also counts as `prior` values of its own."""
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
    """The largest sum over any stretch that ends here: Page's S_n - min S_i, for both signs; deviations clipped to c.

    The change point is where the largest one begins; of two alike, the later one.
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
    """The place in first .. last - 1 where a new level most likely began (Hinkley 1970, level before known)."""
    strengths = {
        place: sum(v - level for v in values[place : last + 1]) ** 2 / (last - place + 1)
        for place in range(first, last)
    }
    return max(strengths, key=lambda place: strengths[place])
