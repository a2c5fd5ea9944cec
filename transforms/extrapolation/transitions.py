"""How often each call of a class follows each other one: in closed form, whatever the loops' lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from transforms.traces.expansion import node_counts, numbered
from transforms.traces.trace import START, Call, Node


def transitions(body: tuple[Node, ...], rank: int) -> Counter[tuple[int, int]]:
    """Return how often a rank executes one call node right after another, by their numbers; START is before all.

    Each loop has an iteration at least each time that it is entered.
    """
    nodes, parents = numbered(body)
    counts = node_counts(nodes, parents, rank)
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)
    found: Counter[tuple[int, int]] = Counter()
    for parent, members in children.items():
        passes = 1 if parent < 0 else counts[members[0]]
        for before, after in pairwise(members):
            found[_last(nodes, children, before), _first(nodes, after)] += passes
        if parent >= 0 and passes > counts[parent]:
            found[_last(nodes, children, members[-1]), _first(nodes, members[0])] += passes - counts[parent]
    if nodes:
        found[START, _first(nodes, 0)] += 1
    return found


def _first(nodes: Sequence[Node], number: int) -> int:
    while not isinstance(nodes[number], Call):
        # A loop's body stands right behind it.
        number += 1
    return number


def _last(nodes: Sequence[Node], children: dict[int, list[int]], number: int) -> int:
    while not isinstance(nodes[number], Call):
        number = children[number][-1]
    return number
