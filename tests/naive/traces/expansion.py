"""Naive implementation of `iosig.transforms.traces.expansion`: loops are walked, and numbers looked up one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from iosig.transforms.traces.progressions import NumberList, Progression, Stretch
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Loop, Node, Vector


def numbers(stretch: Stretch) -> list[int]:
    """Return the numbers of a stretch; the last index varies fastest."""
    each = stretch.numbers if isinstance(stretch, NumberList) else (stretch.start,)
    places = product(*(range(count) for count in stretch.counts))
    steps = [sum(a * b for a, b in zip(stretch.strides, place, strict=True)) for place in places]
    return [number + step for step in steps for number in each]


def row(stretches: Sequence[Stretch]) -> list[int]:
    """Return the numbers of a row."""
    return [number for stretch in stretches for number in numbers(stretch)]


def values(vector: Vector, rank: int) -> list[int]:
    """Return the values of a rank, found by iteration over all ranks of all shares."""
    for share in vector:
        for place in product(*(range(count) for count in share.ranks.counts)):
            if share.ranks.start + sum(a * b for a, b in zip(share.ranks.strides, place, strict=True)) == rank:
                found = row(share.values)
                for index, shift in zip(place, share.shifts, strict=True):
                    found = [value + index * step for value, step in zip(found, row(shift), strict=True)]
                return found
    raise KeyError(rank)


def ranks(listed: Sequence[Progression]) -> set[int]:
    """Return the ranks of a rank list."""
    return {rank for part in listed for rank in numbers(part)}


def size(node: Node) -> int:
    """Return the number of nodes in a node, including itself."""
    return 1 + sum(size(inner) for inner in node.body) if isinstance(node, Loop) else 1


class _Walk:
    """Iteration over the calls of a rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.left: dict[tuple[int, int], Iterator[int]] = {}

    def next(self, number: int, place: int, vector: Vector) -> int:
        """Return the next value of a node."""
        return next(self.left.setdefault((number, place), iter(values(vector, self.rank))))

    def body(self, nodes: Sequence[Node], number: int) -> Iterator[tuple[int, Call, str]]:
        """Yield the calls of a body, given the number of its first node."""
        for node in nodes:
            if isinstance(node, Loop):
                for _ in range(self.next(number, 0, node.counts)):
                    yield from self.body(node.body, number + 1)
            else:
                text = node.texts[0]
                for place, slot in enumerate(node.slots):
                    text += str(self.next(number, place, slot.vector)).zfill(slot.width) + node.texts[place + 1]
                yield number, node, text
            number += size(node)


def calls(trace: CompressedTrace, rank: int) -> list[tuple[int, Call, str]]:
    """Return the node number, the node and the arguments of each call of a rank, in order."""
    for found in trace.classes:
        if rank in ranks(found.ranks):
            return list(_Walk(rank).body(found.body, 0))
    return []


def gap_s(node: Call, previous: int) -> float:
    """Return the mean gap of a node after a previous node, or the mean of all its gaps."""
    for gap in node.gaps:
        if gap.previous == previous and gap.histogram.count:
            return gap.histogram.mean_s
    count = sum(gap.histogram.count for gap in node.gaps)
    return sum(gap.histogram.mean_s * gap.histogram.count for gap in node.gaps) / count if count else 0.0


def times(made: Sequence[tuple[int, Call, str]]) -> list[tuple[float, float]]:
    """Return start and end of each call, relative to the last call of the same or a lower level."""
    found: list[tuple[float, float]] = []
    for place, (_, node, _) in enumerate(made):
        reference = 0.0
        for before in reversed(range(place)):
            if made[before][1].level <= node.level:
                reference = found[before][1] if made[before][1].level == node.level else found[before][0]
                break
        began = reference + gap_s(node, made[place - 1][0] if place else START)
        found.append((began, began + node.durations.mean_s))
    shown, latest = [], 0.0
    for (began, _), (_, node, _) in zip(found, made, strict=True):
        latest = max(latest, began)
        shown.append((latest, latest + node.durations.mean_s))
    return shown
