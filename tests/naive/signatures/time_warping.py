"""Naive implementation of `iosig.transforms.signatures.time_warping`: the whole matrix, cell by cell.

Sakoe and Chiba, 10.1109/TASSP.1978.1163055, with equal weights of all steps.
"""

from __future__ import annotations

from collections.abc import Sequence

INFINITE = float("inf")
Path = list[tuple[int, int]]


def path(first: Sequence[float], second: Sequence[float], band: float = INFINITE) -> tuple[Path, float]:
    """Cheapest path and its sum of squared differences, less than `band` points off the diagonal."""
    cost: dict[tuple[int, int], float] = {}
    came: dict[tuple[int, int], tuple[int, int]] = {}
    for i in range(len(first)):
        for j in range(len(second)):
            if abs(i - j) >= band:
                continue
            before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
            best = min(before, key=lambda cell: cost.get(cell, INFINITE))
            least = 0.0 if i == j == 0 else cost.get(best, INFINITE)
            cost[i, j] = least + (first[i] - second[j]) ** 2
            came[i, j] = best
    cell = (len(first) - 1, len(second) - 1)
    total = cost[cell]
    steps = [cell]
    while cell != (0, 0):
        cell = came[cell]
        steps.append(cell)
    return steps[::-1], total


def merged(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Merge two samples: each step of the path is at the mean of both times, interpolated at whole seconds."""
    points = [((i + j) / 2, (first[i] + second[j]) / 2) for i, j in path(first, second)[0]]
    result = []
    for time in range(len(first)):
        left = max(point for point in points if point[0] <= time)
        right = min(point for point in points if point[0] >= time)
        share = 0.0 if left[0] == right[0] else (time - left[0]) / (right[0] - left[0])
        result.append(left[1] * (1 - share) + right[1] * share)
    return result


def warped_mean(samples: Sequence[Sequence[float]]) -> list[float]:
    """Merge samples one after the other."""
    result = list(samples[0])
    for sample in samples[1:]:
        result = merged(result, sample)
    return result
