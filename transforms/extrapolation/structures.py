"""The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1).

A loop of one iteration is none in a trace: where the blocks of a file are shared out among n, it is missing at the
rank count that has one block a rank. Traces that differ in nothing else are aligned by putting it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from transforms.extrapolation.aligned_loops import Shape, aligned, shape_of, with_loops
from transforms.traces.trace import Call, CompressedTrace, Node, RankClass


@dataclass(frozen=True, slots=True)
class Matched:
    """A class of several traces that has one structure in all of them; in the order of the traces."""

    classes: tuple[RankClass, ...]


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
        return tuple(Matched(tuple(classes[shape] for classes in known)) for shape in known[0])
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
        rows.append(Matched(tuple(one for one in looped if one is not None)))
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
