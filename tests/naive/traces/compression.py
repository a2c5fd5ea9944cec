"""What `transforms.traces.compression` counts, the slow way: each call of each rank is looked at by itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from tests.compressed import call_order, class_ranks
from transforms.traces.trace import START, CompressedTrace

#: level, began and ceased [s] of each call of a rank, in order
Timed = Sequence[tuple[int, float, float]]
#: the class, the node before (None: of durations, whatever was before) and the node
Place = tuple[int, int | None, int]


def gap_s(calls: Timed, place: int) -> float:
    """Return the time before a call: since the end of the last one of its level, or the start of the one around it."""
    level, began, _ = calls[place]
    for other, first, last in reversed(calls[:place]):
        if other < level:
            return max(began - first, 0.0)
        if other == level:
            return max(began - last, 0.0)
    return max(began, 0.0)


def times(trace: CompressedTrace, calls: Sequence[Timed]) -> dict[Place, list[float]]:
    """Return the gaps of each node after each other one, and the durations of each node [s], sorted."""
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
    """Return a rank's calls without the numbers in them: ranks in which these are the same are of one class."""
    return tuple((*call[:-1], re.sub("[0-9]+", "#", str(call[-1]))) for call in calls)
