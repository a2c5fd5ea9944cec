"""The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1).

A loop of one iteration is none in a trace: where the blocks of a file are shared out among n, it is missing at the
rank count that has one block a rank. Traces that differ in nothing else are aligned by putting it back. Bodies are
compared from the left, node by node: where one has a loop and the other has not, what comes next in the other must be
what is in the loop. Loops within loops can be missing on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from iosig.transforms.traces.progressions import Progression, values
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Gap, Loop, Node, RankClass, Share, Vector
from iosig.transforms.traces.vectors import rank_lists

#: a node without its numbers and times, and a body of them
Shape = tuple[object, ...]
#: how often the ranks of each list execute a body
_Executions = tuple[tuple[Progression, int], ...]
#: comparisons of nodes after which two bodies are taken to differ
_MOST_STEPS = 100_000
_LOOP = "loop"


def shape_of(node: Node) -> Shape:
    """Return the structure of a node: functions, levels, the text of arguments, and what is in which loop."""
    if isinstance(node, Call):
        widths = tuple(slot.width for slot in node.slots)
        return "call", node.module, node.function, node.level, node.texts, widths
    return (_LOOP, *map(shape_of, node.body))


def aligned(one: Shape, other: Shape) -> Shape | None:
    """Return the body that two have in common once each has the other's loops; None where they differ otherwise."""
    return _Aligning().whole(one, other)


@dataclass(slots=True)
class _Aligning:
    steps: int = _MOST_STEPS

    def whole(self, one: Shape, other: Shape) -> Shape | None:
        """Return what two bodies have in common if that is all of both."""
        found = self.prefix(one, other)
        return found[0] if found and found[1:] == (len(one), len(other)) else None

    def prefix(self, one: Shape, other: Shape, is_one_whole: bool = False) -> tuple[Shape, int, int] | None:
        """Return what two bodies have in common from the left, and how much of each that is.

        is_one_whole: until the first one ends, or None; else until either does.
        """
        first = second = 0
        joined: list[object] = []
        while first < len(one) and second < len(other):
            found = self._node(one[first:], other[second:])
            if found is None:
                break
            joined.append(found[0])
            first, second = first + found[1], second + found[2]
        if is_one_whole and first < len(one):
            return None
        return tuple(joined), first, second

    def _node(self, one: Shape, other: Shape) -> tuple[object, int, int] | None:
        """Return the node that two bodies begin with alike, and how many nodes of each it stands for."""
        self.steps -= 1
        if self.steps < 0:
            return None
        left, right = _node_of(one[0]), _node_of(other[0])
        if left == right:
            return left, 1, 1
        if left[0] == right[0] == _LOOP:
            inner = self.whole(left[1:], right[1:])
            if inner is not None:
                return (_LOOP, *inner), 1, 1
        if left[0] == _LOOP and (found := self.prefix(left[1:], other, is_one_whole=True)):
            return (_LOOP, *found[0]), 1, found[2]
        if right[0] == _LOOP and (found := self.prefix(right[1:], one, is_one_whole=True)):
            return (_LOOP, *found[0]), found[2], 1
        return None


def _node_of(shape: object) -> Shape:
    assert isinstance(shape, tuple)
    return shape


# ---- loops put into a class


class _Unlike(Exception):
    """A class has other nodes than the body that it is aligned with."""


def with_loops(rank_class: RankClass, shape: Shape) -> RankClass | None:
    """Return a class with the loops of a body that it is aligned with; those that it lacks have one iteration.

    None if there is another way to align them than the first, and it is not this body's.
    """
    if tuple(map(shape_of, rank_class.body)) == shape:
        return rank_class
    putting = _Putting(tuple((own, 1) for own in rank_class.ranks))
    try:
        body = putting.body(rank_class.body, shape, putting.once)
    except _Unlike:
        return None
    return replace(rank_class, body=_renumbered(body, putting.numbers))


@dataclass(slots=True)
class _Putting:
    """The nodes of a class on their way into loops; `numbers` has the new number of each old one.

    once: how often each rank executes what is in no loop.
    """

    once: _Executions
    numbers: dict[int, int] = field(default_factory=lambda: {START: START})
    new: int = 0

    def body(self, nodes: Sequence[Node], shape: Shape, executions: _Executions) -> tuple[Node, ...]:
        """Return all nodes, which are executed so often, in the loops that a body of this shape has."""
        found, used = self._some(nodes, shape, executions)
        if used < len(nodes):
            raise _Unlike
        return found

    def _some(self, nodes: Sequence[Node], shape: Shape, executions: _Executions) -> tuple[tuple[Node, ...], int]:
        found: list[Node] = []
        used = 0
        for wanted in map(_node_of, shape):
            if used == len(nodes):
                raise _Unlike
            node = nodes[used]
            if wanted[0] == _LOOP and not (isinstance(node, Loop) and self._is_of(node, wanted)):
                self.new += 1
                inner, size = self._some(nodes[used:], wanted[1:], executions)
                found.append(Loop(_ones(executions), inner))
                used += size
                continue
            if isinstance(node, Call) and shape_of(node) != wanted:
                raise _Unlike
            self.numbers[len(self.numbers) - 1] = self.new
            self.new += 1
            used += 1
            if isinstance(node, Loop):
                node = replace(node, body=self.body(node.body, wanted[1:], _executions(node.counts)))
            found.append(node)
        return tuple(found), used

    def _is_of(self, loop: Loop, wanted: Shape) -> bool:
        """Return whether a loop is this one, not one that is in it."""
        own = tuple(map(shape_of, loop.body))
        return own == wanted[1:] or aligned(wanted[1:], own) == wanted[1:]


def _executions(counts: Vector) -> _Executions:
    """Return how often each rank executes what is in a loop of these counts."""
    found: list[tuple[Progression, int]] = []
    for share in counts:
        total, *steps = (int(values(row).sum()) for row in (share.values, *share.shifts))
        if not any(steps):
            found.append((share.ranks, total))
            continue
        times = Progression(total, tuple(steps), share.ranks.counts).values()
        own = share.ranks.values()
        found += [(part, time) for time in np.unique(times).tolist() for part in rank_lists(own[times == time])]
    return tuple(found)


def _ones(executions: _Executions) -> Vector:
    def row(value: int, size: int) -> tuple[Progression, ...]:
        return (Progression(value, (0,), (size,)) if size > 1 else Progression(value),)

    return tuple(Share(ranks, tuple(row(0, size) for _ in ranks.counts), row(1, size)) for ranks, size in executions)


def _renumbered(body: tuple[Node, ...], numbers: dict[int, int]) -> tuple[Node, ...]:
    return tuple(_node_renumbered(body, numbers))


def _node_renumbered(body: Sequence[Node], numbers: dict[int, int]) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Loop):
            yield replace(node, body=_renumbered(node.body, numbers))
        else:
            yield replace(node, gaps=tuple(Gap(numbers[gap.previous], gap.histogram) for gap in node.gaps))


# ---- classes that belong together

#: a class of several traces that has one structure in all of them, in the order of the traces
Matched = tuple[RankClass, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the structure of one trace is not that of another, and how they differ."""

    field: str
    reason: str


def matched(traces: Sequence[CompressedTrace]) -> tuple[Matched, ...] | Difference:
    """Return the classes of traces by their structure, or the first place where two traces differ."""
    known = [{tuple(map(shape_of, one.body)): one for one in trace.classes} for trace in traces]
    for trace, classes in zip(traces, known, strict=True):
        if len(classes) < len(trace.classes):
            reason = f"two have the same structure at {trace.process_count} ranks"
            return Difference("classes", reason)
    if all(set(classes) == set(known[0]) for classes in known):
        return tuple(tuple(classes[shape] for classes in known) for shape in known[0])
    shapes = [list(classes) for classes in known]
    found = _with_common_loops(shapes)
    if isinstance(found, int):
        return _difference(traces[0], traces[found])
    common, places = found
    rows: list[Matched] = []
    for number, shape in enumerate(common):
        own = [classes[shapes[trace][places[trace][number]]] for trace, classes in enumerate(known)]
        looped = [with_loops(one, shape) for one in own]
        if None in looped:
            return _difference(traces[0], traces[looped.index(None)])
        rows.append(tuple(one for one in looped if one is not None))
    return tuple(rows)


def _with_common_loops(traces: Sequence[Sequence[Shape]]) -> tuple[list[Shape], list[list[int]]] | int:
    """Return what classes have in common once all have the loops of any, and the place of each in each trace.

    The place of a trace that has a class of no such kind is returned instead. Classes that are alike as they stand
    belong together; others go with the first that they can be aligned with.
    """
    common = list(traces[0])
    places = [list(range(len(common)))]
    for trace, shapes in enumerate(traces[1:], start=1):
        if len(shapes) != len(common):
            return trace
        own: dict[int, int] = {}
        for place, shape in enumerate(shapes):
            if shape in common:
                own[common.index(shape)] = place
        for place, shape in enumerate(shapes):
            if place in own.values():
                continue
            free = (number for number in range(len(common)) if number not in own)
            fits = ((number, joined) for number in free if (joined := aligned(common[number], shape)) is not None)
            found = next(fits, None)
            if found is None:
                return trace
            own[found[0]], common[found[0]] = place, found[1]
        places.append([own[number] for number in range(len(common))])
    return common, places


def _difference(one: CompressedTrace, other: CompressedTrace) -> Difference:
    counts = one.process_count, other.process_count
    for number, classes in enumerate(zip_longest(one.classes, other.classes)):
        nodes = [_flat(part.body) if part else [] for part in classes]
        for place, parts in enumerate(zip_longest(*nodes, fillvalue="nothing")):
            if parts[0] != parts[1]:
                shown = " and ".join(f"{part} at {count} ranks" for part, count in zip(parts, counts, strict=True))
                return Difference(f"class {number}, node {place}", f"it is {shown}")
    shown = " and ".join(f"{len(trace.classes)} at {trace.process_count} ranks" for trace in (one, other))
    return Difference("classes", f"there are {shown}")


def _flat(body: Sequence[Node]) -> list[str]:
    """Return the nodes of a body as text, a loop before what is in it."""
    found: list[str] = []
    for node in body:
        if isinstance(node, Call):
            slots = [f"#:{slot.width}" if slot.width > 1 else "#" for slot in node.slots]
            text = "".join(part for pair in zip_longest(node.texts, slots, fillvalue="") for part in pair)
            found.append(f"{node.function} ( {text} ) at level {node.level}")
        else:
            inner = _flat(node.body)
            found += [f"a loop over {len(inner)} nodes", *inner]
    return found


def arguments_of(call: Call) -> tuple[str, ...]:
    """Return, of each slot of a call, which argument it is in, from 1, and which number there if it has several."""
    argument, found = 1, []
    for text in call.texts[:-1]:
        argument += text.count(" ")
        found.append(argument)
    return tuple(
        f"argument {own}" + (f", number {found[:place].count(own) + 1}" if found.count(own) > 1 else "")
        for place, own in enumerate(found)
    )
