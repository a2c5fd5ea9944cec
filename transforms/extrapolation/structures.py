"""Match the structures of compressed traces, which must be the same at all rank counts (paper, section 3.2.1).

A trace does not contain a loop of a single iteration as a loop. If the blocks of a file are distributed among n ranks,
for example, the loop is missing at the rank count with one block per rank. Traces that differ only in such loops are
aligned by inserting the missing loops. Bodies are compared from the left, node by node. If only one body has a loop,
the next nodes of the other must match the body of the loop. Nested loops can be missing on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from iosig.transforms.traces.progressions import Progression, expand_values
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Gap, Loop, Node, RankClass, Share, Vector
from iosig.transforms.traces.vectors import rank_lists

#: structure of a node or of a body: all except numbers and times
Shape = tuple[object, ...]
#: rank lists, each with the number of times that its ranks execute a body
_Executions = tuple[tuple[Progression, int], ...]
#: maximum number of node comparisons; two bodies that need more are considered different
_MAX_STEPS = 100_000
_LOOP = "loop"


def node_shape(node: Node) -> Shape:
    """Return the structure of a node: a call's function, level and argument text, or the structures in a loop."""
    if isinstance(node, Call):
        widths = tuple(slot.width for slot in node.slots)
        return "call", node.module, node.function, node.level, node.texts, widths
    return (_LOOP, *map(node_shape, node.body))


def align_bodies(first: Shape, second: Shape) -> Shape | None:
    """Align two bodies by inserting loops that only the other body has.

    Parameters
    ----------
    first, second
        Structures of the bodies.

    Returns
    -------
    Shape or None
        Common structure with the loops of both bodies; None if the bodies differ otherwise.
    """
    return _Aligner().align(first, second)


@dataclass(slots=True)
class _Aligner:
    steps: int = _MAX_STEPS

    def align(self, left: Shape, right: Shape) -> Shape | None:
        """Align two complete bodies."""
        common = self.align_prefix(left, right)
        return common[0] if common and common[1:] == (len(left), len(right)) else None

    def align_prefix(self, left: Shape, right: Shape, is_left_whole: bool = False) -> tuple[Shape, int, int] | None:
        """Align the longest common prefix of two bodies; return it, and its length in each body.

        is_left_whole: return None unless the prefix contains the whole first body.
        """
        first = second = 0
        common: list[object] = []
        while first < len(left) and second < len(right):
            node = self._align_node(left[first:], right[second:])
            if node is None:
                break
            common.append(node[0])
            first, second = first + node[1], second + node[2]
        if is_left_whole and first < len(left):
            return None
        return tuple(common), first, second

    def _align_node(self, first: Shape, second: Shape) -> tuple[object, int, int] | None:
        """Align the first node of one body with one or more nodes of the other; return how many each body used."""
        self.steps -= 1
        if self.steps < 0:
            return None
        left, right = _as_shape(first[0]), _as_shape(second[0])
        if left == right:
            return left, 1, 1
        if left[0] == right[0] == _LOOP:
            inner = self.align(left[1:], right[1:])
            if inner is not None:
                return (_LOOP, *inner), 1, 1
        if left[0] == _LOOP and (common := self.align_prefix(left[1:], second, is_left_whole=True)):
            return (_LOOP, *common[0]), 1, common[2]
        if right[0] == _LOOP and (common := self.align_prefix(right[1:], first, is_left_whole=True)):
            return (_LOOP, *common[0]), common[2], 1
        return None


def _as_shape(shape: object) -> Shape:
    assert isinstance(shape, tuple)
    return shape


# ---- insertion of loops


class _MismatchError(Exception):
    """The nodes of a class do not match the structure."""


def insert_loops(rank_class: RankClass, shape: Shape) -> RankClass | None:
    """Insert the loops of an aligned structure into a class, with one iteration each.

    Parameters
    ----------
    rank_class
        Class to change.
    shape
        Structure from `align_bodies`.

    Returns
    -------
    RankClass or None
        The class with all loops; None if the first possible alignment does not match the structure.
    """
    if tuple(map(node_shape, rank_class.body)) == shape:
        return rank_class
    inserter = _LoopInserter(tuple((ranks, 1) for ranks in rank_class.ranks))
    try:
        body = inserter.body(rank_class.body, shape, inserter.once)
    except _MismatchError:
        return None
    return replace(rank_class, body=_renumber_gaps(body, inserter.numbers))


@dataclass(slots=True)
class _LoopInserter:
    """Insert loops into a class's nodes; `numbers` maps old node numbers to new node numbers.

    once: executions of the nodes that are outside of all loops.
    """

    once: _Executions
    numbers: dict[int, int] = field(default_factory=lambda: {START: START})
    next_number: int = 0

    def body(self, nodes: Sequence[Node], shape: Shape, executions: _Executions) -> tuple[Node, ...]:
        """Insert the loops of the shape around nodes; `executions` says how often the nodes are executed."""
        body, used = self._insert_some(nodes, shape, executions)
        if used < len(nodes):
            raise _MismatchError
        return body

    def _insert_some(
        self, nodes: Sequence[Node], shape: Shape, executions: _Executions
    ) -> tuple[tuple[Node, ...], int]:
        body: list[Node] = []
        used = 0
        for expected in map(_as_shape, shape):
            if used == len(nodes):
                raise _MismatchError
            node = nodes[used]
            if expected[0] == _LOOP and not (isinstance(node, Loop) and self._matches(node, expected)):
                self.next_number += 1
                loop_body, size = self._insert_some(nodes[used:], expected[1:], executions)
                body.append(Loop(_single_iterations(executions), loop_body))
                used += size
                continue
            if isinstance(node, Call) and node_shape(node) != expected:
                raise _MismatchError
            self.numbers[len(self.numbers) - 1] = self.next_number
            self.next_number += 1
            used += 1
            if isinstance(node, Loop):
                node = replace(node, body=self.body(node.body, expected[1:], _count_executions(node.counts)))
            body.append(node)
        return tuple(body), used

    def _matches(self, loop: Loop, expected: Shape) -> bool:
        """Return whether a loop matches the expected loop, rather than a loop inside the expected loop."""
        body = tuple(map(node_shape, loop.body))
        return body == expected[1:] or align_bodies(expected[1:], body) == expected[1:]


def _count_executions(counts: Vector) -> _Executions:
    """Count how often each rank executes the body of a loop with the given iteration counts."""
    executions: list[tuple[Progression, int]] = []
    for share in counts:
        total, *steps = (int(expand_values(row).sum()) for row in (share.values, *share.shifts))
        if not any(steps):
            executions.append((share.ranks, total))
            continue
        totals = Progression(total, tuple(steps), share.ranks.counts).values()
        ranks = share.ranks.values()
        executions += [
            (part, value) for value in np.unique(totals).tolist() for part in rank_lists(ranks[totals == value])
        ]
    return tuple(executions)


def _single_iterations(executions: _Executions) -> Vector:
    def row(value: int, size: int) -> tuple[Progression, ...]:
        return (Progression(value, (0,), (size,)) if size > 1 else Progression(value),)

    return tuple(Share(ranks, tuple(row(0, size) for _ in ranks.counts), row(1, size)) for ranks, size in executions)


def _renumber_gaps(body: tuple[Node, ...], numbers: dict[int, int]) -> tuple[Node, ...]:
    return tuple(_renumber_nodes(body, numbers))


def _renumber_nodes(body: Sequence[Node], numbers: dict[int, int]) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Loop):
            yield replace(node, body=_renumber_gaps(node.body, numbers))
        else:
            yield replace(node, gaps=tuple(Gap(numbers[gap.previous], gap.histogram) for gap in node.gaps))


# ---- matching of classes

#: corresponding classes of the traces, one per trace, with the same structure
MatchedClasses = tuple[RankClass, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """First place where the structures of two traces differ, and a description of the difference."""

    field: str
    reason: str


def match_classes(traces: Sequence[CompressedTrace]) -> tuple[MatchedClasses, ...] | Difference:
    """Find the classes that have the same structure in all traces.

    Parameters
    ----------
    traces
        Traces of one program.

    Returns
    -------
    tuple[MatchedClasses, ...] or Difference
        Matched classes in the order of the first trace, or the first difference.
    """
    classes_by_shape = [{tuple(map(node_shape, part.body)): part for part in trace.classes} for trace in traces]
    for trace, classes in zip(traces, classes_by_shape, strict=True):
        if len(classes) < len(trace.classes):
            reason = f"two have the same structure at {trace.process_count} ranks"
            return Difference("classes", reason)
    if all(set(classes) == set(classes_by_shape[0]) for classes in classes_by_shape):
        return tuple(tuple(classes[shape] for classes in classes_by_shape) for shape in classes_by_shape[0])
    shapes = [list(classes) for classes in classes_by_shape]
    matches = _find_common_shapes(shapes)
    if isinstance(matches, int):
        return _find_difference(traces[0], traces[matches])
    common, places = matches
    rows: list[MatchedClasses] = []
    for number, shape in enumerate(common):
        members = [classes[shapes[trace][places[trace][number]]] for trace, classes in enumerate(classes_by_shape)]
        changed = [insert_loops(member, shape) for member in members]
        if None in changed:
            return _find_difference(traces[0], traces[changed.index(None)])
        rows.append(tuple(member for member in changed if member is not None))
    return tuple(rows)


def _find_common_shapes(traces: Sequence[Sequence[Shape]]) -> tuple[list[Shape], list[list[int]]] | int:
    """Find common structures with the loops of all traces, and the index of each class in each trace.

    If a trace lacks a corresponding class, return the index of the trace instead. Classes with equal structures match
    first. Each remaining class matches the first class with which it can be aligned.
    """
    common = list(traces[0])
    places = [list(range(len(common)))]
    for trace, shapes in enumerate(traces[1:], start=1):
        if len(shapes) != len(common):
            return trace
        place_by_number: dict[int, int] = {}
        for place, shape in enumerate(shapes):
            if shape in common:
                place_by_number[common.index(shape)] = place
        for place, shape in enumerate(shapes):
            if place in place_by_number.values():
                continue
            free_numbers = (number for number in range(len(common)) if number not in place_by_number)
            candidates = (
                (number, joint) for number in free_numbers if (joint := align_bodies(common[number], shape)) is not None
            )
            match = next(candidates, None)
            if match is None:
                return trace
            place_by_number[match[0]], common[match[0]] = place, match[1]
        places.append([place_by_number[number] for number in range(len(common))])
    return common, places


def _find_difference(first: CompressedTrace, second: CompressedTrace) -> Difference:
    counts = first.process_count, second.process_count
    for number, classes in enumerate(zip_longest(first.classes, second.classes)):
        nodes = [_format_nodes(part.body) if part else [] for part in classes]
        for place, parts in enumerate(zip_longest(*nodes, fillvalue="nothing")):
            if parts[0] != parts[1]:
                texts = " and ".join(f"{part} at {count} ranks" for part, count in zip(parts, counts, strict=True))
                return Difference(f"class {number}, node {place}", f"it is {texts}")
    texts = " and ".join(f"{len(trace.classes)} at {trace.process_count} ranks" for trace in (first, second))
    return Difference("classes", f"there are {texts}")


def _format_nodes(body: Sequence[Node]) -> list[str]:
    """Format the nodes of a body as lines of text; a loop precedes its body."""
    lines: list[str] = []
    for node in body:
        if isinstance(node, Call):
            slots = [f"#:{slot.width}" if slot.width > 1 else "#" for slot in node.slots]
            text = "".join(part for pair in zip_longest(node.texts, slots, fillvalue="") for part in pair)
            lines.append(f"{node.function} ( {text} ) at level {node.level}")
        else:
            inner = _format_nodes(node.body)
            lines += [f"a loop over {len(inner)} nodes", *inner]
    return lines


def slot_names(call: Call) -> tuple[str, ...]:
    """Name the slots of a call by argument, from 1, and by number within the argument if it has several slots."""
    argument, arguments = 1, []
    for text in call.texts[:-1]:
        argument += text.count(" ")
        arguments.append(argument)
    return tuple(
        f"argument {slot}" + (f", number {arguments[:place].count(slot) + 1}" if arguments.count(slot) > 1 else "")
        for place, slot in enumerate(arguments)
    )
