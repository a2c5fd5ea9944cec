"""The models of a program's trace evaluated at a rank count: its compressed trace, no larger at a million ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt

from transforms import progressions
from transforms.compressed_traces import (
    Call,
    CompressedTrace,
    Gap,
    Loop,
    Node,
    RankClass,
    Share,
    Slot,
    TimeHistogram,
    Vector,
)
from transforms.count_models import NotWhole
from transforms.extrapolated import Refusal
from transforms.fitted_traces import FittedCall, FittedClass, FittedNode, FittedTrace
from transforms.iteration_models import FieldModel, vector_at
from transforms.progressions import Progression
from transforms.structures import arguments_of
from transforms.time_histograms import EMPTY
from transforms.time_models import extrapolated_histograms
from transforms.transitions import transitions
from transforms.vectors import bounds_of, rank_lists

Longs = npt.NDArray[np.int64]

#: a class at a rank count: its models, its ranks, its nodes
_Bodies = tuple[FittedClass, tuple[Progression, ...], tuple[Node, ...]]
#: times by class, node and the node before; those of the calls themselves have None
_Key = tuple[int, int, int | None]

#: each of so many ranks can be looked at: is it in one class, and in one only
MOST_RANKS = 1 << 27
#: numbers have 18 digits at most
_LARGEST = 10**18 - 1


@dataclass(frozen=True, slots=True)
class _Times:
    """Times to be extrapolated: whose they are, how many there will be, and what they are at each rank count."""

    key: _Key
    count: int
    histograms: tuple[TimeHistogram, ...]


def trace_at(known: FittedTrace, process_count: int) -> CompressedTrace | tuple[Refusal, ...]:
    """Return the trace at a rank count, or the fields that have no whole number there."""
    if not 1 <= process_count <= MOST_RANKS:
        raise ValueError(f"the ranks must be from 1 to {MOST_RANKS}")
    refusals: list[Refusal] = []
    lists = _rank_lists(known, process_count, refusals)
    bodies: list[_Bodies] = []
    for one, ranks in zip(known.classes, lists, strict=True):
        if ranks:
            building = _Building(process_count, ranks, f"class {one.number}", refusals)
            bodies.append((one, ranks, building.body(one.body, count(), ())))
    if refusals:
        return tuple(refusals)
    timed = _timed(known, process_count, bodies)
    classes = [RankClass(ranks, body) for (_, ranks, _), body in zip(bodies, timed, strict=True)]
    return CompressedTrace(process_count, tuple(sorted(classes, key=lambda one: one.ranks[0].start)))


# ---- ranks


def _rank_lists(known: FittedTrace, process_count: int, refusals: list[Refusal]) -> list[tuple[Progression, ...]]:
    """Return the ranks of each class; they tile all ranks, or that is refused."""
    found: list[tuple[Progression, ...] | None] = []
    for one in known.classes:
        try:
            lists = None if one.ranks is None else [model.at(process_count) for model in one.ranks]
            found.append(None if lists is None else tuple(ranks for ranks in lists if ranks is not None))
        except (NotWhole, ValueError) as fault:
            refusals.append(Refusal("no_whole_number", f"class {one.number}, ranks", str(fault)))
            found.append(())
    if refusals:
        return [()] * len(found)
    owners = np.zeros(process_count, np.int8)
    for own in found:
        for ranks in own or ():
            members = ranks.values()
            if members.min() < 0 or members.max() >= process_count:
                refusals.append(
                    Refusal("no_whole_number", "ranks", f"a class has ranks beyond 0 to {process_count - 1}")
                )
                return [()] * len(found)
            owners[members] += 1
    free = rank_lists(np.flatnonzero(owners == 0)) if None in found else ()
    if owners.max(initial=0) > 1 or (None not in found and not owners.all()):
        rank = int(np.argmax(owners > 1 if owners.max() > 1 else owners == 0))
        reason = f"rank {rank} would be in {owners[rank]} of them: they do not tile the ranks"
        refusals.append(Refusal("no_whole_number", "classes", reason))
    return [free if own is None else own for own in found]


# ---- calls


@dataclass(slots=True)
class _Building:
    """The nodes of a class at a rank count; what has no whole number is noted among the refusals."""

    process_count: int
    ranks: tuple[Progression, ...]
    place: str
    refusals: list[Refusal]

    def body(self, nodes: Sequence[FittedNode], numbers: Iterator[int], lengths: tuple[int, ...]) -> tuple[Node, ...]:
        """Return nodes that are executed in loops of these lengths; they have no times yet."""
        return tuple(self._node(node, numbers, lengths) for node in nodes)

    def _node(self, node: FittedNode, numbers: Iterator[int], lengths: tuple[int, ...]) -> Node:
        number = next(numbers)
        if isinstance(node, FittedCall):
            named = f"{self.place}, call {number} {node.call.function}"
            slots = tuple(
                Slot(slot.width, self._vector(f"{named}, {argument}", model, lengths, 0))
                for slot, model, argument in zip(node.call.slots, node.slots, arguments_of(node.call), strict=True)
            )
            call = node.call
            return Call(call.module, call.function, call.level, call.texts, slots, (), call.durations)
        name = f"{self.place}, loop {number}, iterations"
        counts = self._vector(name, node.counts, lengths, 1)
        row = progressions.values(counts[0].values).tolist()
        inner = (*lengths, row[0]) if node.is_even else (sum(row),)
        return Loop(counts, self.body(node.body, numbers, inner))

    def _vector(self, name: str, model: FieldModel, lengths: tuple[int, ...], least: int) -> Vector:
        """Return the values of a field; if they are no whole numbers, or too small, that is noted."""
        try:
            found = vector_at(model, self.process_count, self.ranks, lengths)
            lowest, highest = bounds_of(found)
            if least <= lowest <= highest <= _LARGEST:
                return found
            reason = f"values from {lowest} to {highest} come out; they must be from {least} to {_LARGEST}"
        except (NotWhole, ValueError, OverflowError) as fault:
            reason = str(fault)
        self.refusals.append(Refusal("no_whole_number", name, f"at {self.process_count} ranks, {reason}"))
        return (Share(self.ranks[0], (), (Progression(least),)),)


# ---- times


def _timed(known: FittedTrace, process_count: int, bodies: Sequence[_Bodies]) -> list[tuple[Node, ...]]:
    """Return the nodes of all classes with the times that they have at a rank count; all are fitted together."""
    wanted: list[_Times] = []
    for class_number, (one, ranks, body) in enumerate(bodies):
        fitted_calls = list(_calls(one.body, count()))
        size = sum(own.size for own in ranks)
        pairs = transitions(body, ranks[0].start)
        executed: Counter[int] = Counter()
        for (_, node), times in pairs.items():
            executed[node] += times * size
        for number, call in fitted_calls:
            wanted.append(_Times((class_number, number, None), executed[number], call.durations))
            for previous in sorted(before for before, node in pairs if node == number):
                seen = [next((gap.histogram for gap in gaps if gap.previous == previous), EMPTY) for gaps in call.gaps]
                wanted.append(_Times((class_number, number, previous), pairs[previous, number] * size, tuple(seen)))
    found = _extrapolated(known.rank_counts, process_count, wanted)
    return [_with_times(body, found, place, count()) for place, (_, _, body) in enumerate(bodies)]


def _calls(nodes: Sequence[FittedNode], numbers: Iterator[int]) -> Iterator[tuple[int, FittedCall]]:
    for node in nodes:
        number = next(numbers)
        if isinstance(node, FittedCall):
            yield number, node
        else:
            yield from _calls(node.body, numbers)


def _extrapolated(
    rank_counts: tuple[int, ...], process_count: int, wanted: Sequence[_Times]
) -> dict[_Key, TimeHistogram]:
    """Return histograms at a rank count; a field is fitted on those rank counts at which it has any times."""
    by_counts: dict[tuple[int, ...], list[_Times]] = {}
    for times in wanted:
        seen = tuple(place for place, histogram in enumerate(times.histograms) if histogram.count)
        if seen:
            by_counts.setdefault(seen, []).append(times)
    found: dict[_Key, TimeHistogram] = {}
    for seen, members in by_counts.items():
        rows = [[times.histograms[place] for place in seen] for times in members]
        counts = [times.count for times in members]
        fits = extrapolated_histograms([rank_counts[place] for place in seen], rows, process_count, counts)
        found |= {times.key: histogram for times, (histogram, _) in zip(members, fits, strict=True)}
    return found


def _with_times(
    body: tuple[Node, ...], found: Mapping[_Key, TimeHistogram], place: int, numbers: Iterator[int]
) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for node in body:
        number = next(numbers)
        if isinstance(node, Loop):
            nodes.append(replace(node, body=_with_times(node.body, found, place, numbers)))
            continue
        gaps = tuple(
            Gap(previous, histogram)
            for (owner, own, previous), histogram in found.items()
            if (owner, own) == (place, number) and previous is not None
        )
        nodes.append(replace(node, gaps=gaps, durations=found[place, number, None]))
    return tuple(nodes)
