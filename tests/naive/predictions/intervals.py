"""Naive implementation of `iosig.transforms.predictions.intervals`: DBSCAN as published, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import linear_regression, median


def neighbors(position: Sequence[float], eps: Sequence[float], point: int) -> list[int]:
    """All points within the mean of both eps, including the point itself."""
    return [
        other
        for other in range(len(position))
        if abs(position[other] - position[point]) <= (eps[other] + eps[point]) / 2 * (1 + 1e-9)
    ]


def dbscan(position: Sequence[float], eps: Sequence[float], min_samples: int) -> list[int]:
    """Ester et al., KDD'96: grow a cluster from each core point that has no cluster yet."""
    labels: list[int | None] = [None] * len(position)
    cluster = -1
    for point in range(len(position)):
        if labels[point] is not None or len(neighbors(position, eps, point)) < min_samples:
            continue
        cluster += 1
        seeds = [point]
        while seeds:
            member = seeds.pop()
            if labels[member] is not None:
                continue
            labels[member] = cluster
            near = neighbors(position, eps, member)
            if len(near) >= min_samples:
                seeds.extend(near)
    return [-1 if label is None else label for label in labels]


def intervals(
    evaluations: Sequence[tuple[float | None, float]], min_samples: int, resolution_ratio: float
) -> list[tuple[float, float, float, int, float]]:
    """(low, median, high, count, probability) of each cluster of frequencies, by ascending frequency."""
    result = [(frequency, resolution_ratio / window) for frequency, window in evaluations if frequency is not None]
    labels = dbscan([frequency for frequency, _ in result], [eps for _, eps in result], min_samples)
    rows = []
    for cluster in set(labels) - {-1}:
        members = [frequency for (frequency, _), label in zip(result, labels, strict=True) if label == cluster]
        rows.append((min(members), median(members), max(members), len(members), len(members) / len(evaluations)))
    return sorted(rows)


def trend(moves: Sequence[float]) -> tuple[float, float]:
    """(start, slope) of the line through at least five moves if its slope exceeds 2.5 standard errors, else zeros."""
    if len(moves) < 5:
        return 0.0, 0.0
    slope, start = linear_regression(range(len(moves)), moves)
    rest = sum((move - start - slope * place) ** 2 for place, move in enumerate(moves)) / (len(moves) - 2)
    spread = sum((place - (len(moves) - 1) / 2) ** 2 for place in range(len(moves)))
    return (start, slope) if abs(slope) > 2.5 * (rest / spread) ** 0.5 else (0.0, 0.0)


def next_start(
    starts: Sequence[float], shortest: float, typical: float, longest: float, now: float
) -> tuple[float, float, float, int]:
    """(earliest, expected, latest, missed) with the ranges of all moves, advanced period by period until now."""
    moves = []
    for before, after in pairwise(starts):
        left = after - before
        while left > typical / 2:
            left -= typical
        moves.append(left)
    base, slope = trend(moves)
    moves = [move - base - slope * place for place, move in enumerate(moves)]
    ahead = base + slope * len(moves)
    low, usual, high = (min(moves) + ahead, median(moves) + ahead, max(moves) + ahead) if moves else (0.0, 0.0, 0.0)
    last = starts[-1]
    latest = last + longest + max(high, 0)
    if now <= latest:
        return max(last + shortest + min(low, 0), now), max(last + typical + usual, now), latest, 0
    steps = 1
    while last + steps * typical + usual < now:
        steps += 1
    return now, last + steps * typical + usual, last + steps * longest + max(high, 0), steps - 1
