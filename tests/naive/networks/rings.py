"""Directions of edges and their crossings by section IV.B: every pair of edges is compared."""

from __future__ import annotations

import math
from fractions import Fraction

Edge = tuple[int, int]


def crossings(outer: list[Fraction], inner: list[Fraction], edges: list[Edge]) -> int:
    """Count crossings of edges between two rings; outer, inner: the nodes' angles in turns."""
    ways = []
    for source, target in edges:
        turn = inner[target] - outer[source]
        while turn >= Fraction(1, 2):
            turn -= 1
        while turn < -Fraction(1, 2):
            turn += 1
        ways.append((outer[source], turn))
    count = 0
    for one in range(len(ways)):
        for other in range(one):
            # Relative to the first edge, the second runs from `before` to `after`: they cross at each whole turn in
            # between.
            before = ways[other][0] - ways[one][0]
            after = before + ways[other][1] - ways[one][1]
            low, high = min(before, after), max(before, after)
            count += sum(low < whole < high for whole in range(math.floor(low), math.ceil(high) + 1))
    return count
