"""Naive results of `iosig.transforms.traces.compression`: each call of each rank is examined separately."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from iosig.transforms.traces.compression import FoldedCall, FoldedNode
from iosig.transforms.traces.trace import START, CompressedTrace
from tests.compressed import call_order, class_ranks

#: Level, start and end [s] of each call of a rank, in order.
Timed = Sequence[tuple[int, float, float]]
#: Class, previous node (None for durations) and node.
Place = tuple[int, int | None, int]


def gap_s(calls: Timed, place: int) -> float:
    """Return the gap since the end of the previous call of a level or the start of the enclosing call."""
    level, began, _ = calls[place]
    for other, first, last in reversed(calls[:place]):
        if other < level:
            return max(began - first, 0.0)
        if other == level:
            return max(began - last, 0.0)
    return max(began, 0.0)


def times(trace: CompressedTrace, calls: Sequence[Timed]) -> dict[Place, list[float]]:
    """Return the sorted gaps by previous node and the sorted durations of each node [s]."""
    found: dict[Place, list[float]] = defaultdict(list)
    for number, rank_class in enumerate(trace.classes):
        for rank in class_ranks(rank_class):
            before = START
            for place, node in enumerate(call_order(rank_class, rank)):
                _, began, ceased = calls[rank][place]
                found[number, before, node].append(gap_s(calls[rank], place))
                found[number, None, node].append(max(ceased - began, 0.0))
                before = node
    return {place: sorted(each) for place, each in found.items()}


def kinds(calls: Sequence[tuple[object, ...]]) -> tuple[tuple[object, ...], ...]:
    """Return the calls of a rank without their numbers; ranks with equal results form a class."""
    return tuple((*call[:-1], re.sub("[0-9]+", "#", str(call[-1]))) for call in calls)


#: A called symbol, or nodes with the number of iterations of each entry.
Program = int | tuple[tuple[int, ...], tuple["Program", ...]]


def executed(nodes: Sequence[FoldedNode]) -> list[tuple[int, int]]:
    """Return the symbol and the position of each call in the order in which the nodes execute them."""
    found: list[tuple[int, int]] = []
    left: dict[int, Iterator[int]] = {}

    def following(node: FoldedNode) -> int:
        if id(node) not in left:
            left[id(node)] = iter((node.positions if isinstance(node, FoldedCall) else node.counts).tolist())
        return next(left[id(node)])

    def execute(body: Sequence[FoldedNode]) -> None:
        for node in body:
            if isinstance(node, FoldedCall):
                found.append((node.symbol, following(node)))
            else:
                for _ in range(following(node)):
                    execute(node.body)

    execute(nodes)
    assert all(next(numbers, None) is None for numbers in left.values())
    return found


def expanded(program: Program) -> list[int]:
    """Return the symbols that a program calls; the iteration counts of a loop are used cyclically."""
    entered: dict[int, int] = {}

    def calls(part: Program) -> list[int]:
        if isinstance(part, int):
            return [part]
        counts, body = part
        time = entered.get(id(part), 0)
        entered[id(part)] = time + 1
        return [symbol for _ in range(counts[time % len(counts)]) for inner in body for symbol in calls(inner)]

    return calls(program)
