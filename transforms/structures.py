"""The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from transforms.compressed_traces import Call, CompressedTrace, Node, RankClass

#: a node without its numbers and times
Shape = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """A class of several traces that has one structure in all of them; in the order of the traces."""

    classes: tuple[RankClass, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the structure of one trace is not that of another, and how they differ."""

    field: str
    reason: str


def shape_of(node: Node) -> Shape:
    """Return the structure of a node: functions, levels, the text of arguments, and what is in which loop."""
    if isinstance(node, Call):
        return node.module, node.function, node.level, node.texts, tuple(slot.width for slot in node.slots)
    return ("loop", *map(shape_of, node.body))


def matched(traces: Sequence[CompressedTrace]) -> tuple[Matched, ...] | Difference:
    """Return the classes of traces by their structure, or the first place where two traces differ."""
    known = [{tuple(map(shape_of, one.body)): one for one in trace.classes} for trace in traces]
    for trace, classes in zip(traces[1:], known[1:], strict=True):
        if set(classes) != set(known[0]):
            return _difference(traces[0], trace)
    return tuple(Matched(tuple(classes[shape] for classes in known)) for shape in known[0])


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
