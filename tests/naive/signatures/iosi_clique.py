"""Naive implementation of `iosig.transforms.signatures.iosi_clique`: loops over grids, units and points."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: (time, likeness, sample).
Point = tuple[float, float, int]
Unit = tuple[int, int]


def cell(point: Point, span: float, width: float, height: float) -> Unit:
    """Column and row of a point; points on or beyond an edge are in the unit at the edge."""
    columns = max(1, math.ceil(span / width - 1e-9))
    rows = max(1, math.ceil(1 / height - 1e-9))
    column, row = math.floor(point[0] / width), math.floor(point[1] / height)
    return min(max(column, 0), columns - 1), min(max(row, 0), rows - 1)


def adjacent(one: Unit, other: Unit) -> bool:
    return abs(one[0] - other[0]) <= 1 and abs(one[1] - other[1]) <= 1


def least(share: float, samples: int) -> int:
    return max(1, math.ceil(share * samples - 1e-9))


def neighborhoods(
    points: Sequence[Point], samples: int, span: float, width: float, height: float, gamma: float, kappa: float
) -> list[list[int]]:
    """Points of each dense neighborhood on one grid."""
    cells = [cell(point, span, width, height) for point in points]

    def density(members: Sequence[int]) -> int:
        return len({points[i][2] for i in members})

    inside = {unit: [i for i in range(len(points)) if cells[i] == unit] for unit in cells}
    around = {unit: [i for i in range(len(points)) if adjacent(cells[i], unit)] for unit in cells}
    turns = sorted(inside, key=lambda unit: (-density(inside[unit]), -density(around[unit]), unit))
    taken: set[int] = set()
    result = []
    for unit in turns:
        own = [i for i in inside[unit] if i not in taken]
        near = [i for i in around[unit] if i not in taken]
        if density(own) >= least(gamma, samples) and density(near) >= least(kappa, samples):
            result.append(near)
            taken.update(near)
    return result


def vote(members: Sequence[int], points: Sequence[Point], width: float, height: float) -> list[int]:
    """Elect the point of each sample that is nearest to the points of the other samples."""
    members = sorted(members, key=lambda i: (points[i][0], i))
    totals = {}
    for i in members:
        totals[i] = 0.0
        for j in members:
            if points[i][2] != points[j][2]:
                along, across = (points[i][0] - points[j][0]) / width, (points[i][1] - points[j][1]) / height
                totals[i] += math.sqrt(along * along + across * across)
    chosen = []
    for sample in sorted({points[i][2] for i in members}):
        chosen.append(min((i for i in members if points[i][2] == sample), key=lambda i: (totals[i], points[i][0], i)))
    return chosen


def clique(
    points: Sequence[Point],
    samples: int,
    span: float,
    grids: Sequence[tuple[float, float]],
    gamma: float,
    kappa: float,
) -> tuple[list[set[int]], int, list[int]]:
    """Clusters ordered by time, the best grid, and the number of points that each grid explains."""
    answers = []
    for width, height in grids:
        result = neighborhoods(points, samples, span, width, height, gamma, kappa)
        answers.append([set(vote(members, points, width, height)) for members in result])
    explained = [sum(len(cluster) for cluster in answer) for answer in answers]
    if not points or not grids:
        return [], -1, explained
    best = explained.index(max(explained))
    ordered = sorted(answers[best], key=lambda cluster: sum(points[i][0] for i in cluster) / len(cluster))
    return ordered, best, explained
