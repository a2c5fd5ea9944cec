"""The models of a program's trace evaluated at a rank count: its compressed trace, no larger at a million ranks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from iosig.transforms.extrapolation.count_models import Ambiguous, NotWhole
from iosig.transforms.extrapolation.iteration_models import FieldModel, vector_at
from iosig.transforms.extrapolation.result import FittedCall, FittedClass, FittedNode, FittedTrace, Refusal
from iosig.transforms.extrapolation.structures import arguments_of
from iosig.transforms.extrapolation.time_models import extrapolated_histograms
from iosig.transforms.traces import progressions
from iosig.transforms.traces.expansion import node_counts, numbered
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.time_histograms import EMPTY, merged
from iosig.transforms.traces.trace import (
    START,
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
from iosig.transforms.traces.vectors import Tiles, bounds_of

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
    # Ranks that make no calls are in no class of a trace.
    called = [one for one in bodies if one[2]]
    timed = _timed(known, process_count, called)
    classes = [RankClass(ranks, body) for (_, ranks, _), body in zip(called, timed, strict=True)]
    return CompressedTrace(process_count, tuple(sorted(classes, key=lambda one: one.ranks[0].start)))


def refused(field: str, fault: Exception, prefix: str = "") -> Refusal:
    """Return the refusal of a field for what its model says at a rank count."""
    outcome = "no_exact_model" if isinstance(fault, Ambiguous) else "no_whole_number"
    return Refusal(outcome, field, f"{prefix}{fault}")


# ---- ranks


def _rank_lists(known: FittedTrace, process_count: int, refusals: list[Refusal]) -> list[tuple[Progression, ...]]:
    """Return the ranks of each class; they tile all ranks, or that is refused."""
    found: list[tuple[Progression, ...] | None] = []
    at = f"at {process_count} ranks, "
    for one in known.classes:
        try:
            lists = None if one.ranks is None else [model.at(process_count) for model in one.ranks]
            found.append(None if lists is None else tuple(ranks for ranks in lists if ranks is not None))
        except (NotWhole, ValueError) as fault:
            refusals.append(refused(f"class {one.number}, ranks", fault, at))
    if not refusals:
        return _tiled(process_count, found, refusals)
    return [()] * len(known.classes)


def _tiled(
    process_count: int, lists: Sequence[tuple[Progression, ...] | None], refusals: list[Refusal]
) -> list[tuple[Progression, ...]]:
    """Return ranks that tile all ranks, the class that has None being given those that are left."""
    tiles = Tiles(process_count)
    try:
        for ranks in (ranks for own in lists for ranks in own or ()):
            tiles.take(ranks)
        if None not in lists and (free := tiles.first_free()) is not None:
            raise ValueError(f"rank {free} would be in no class")
    except ValueError as fault:
        refusals.append(refused("classes", fault, f"at {process_count} ranks, "))
    rest = tiles.free() if None in lists else ()
    return [rest if own is None else own for own in lists]


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
                Slot(slot.width, self._vector(f"{named}, {argument}", model, lengths, least))
                for slot, model, least, argument in zip(
                    node.call.slots, node.slots, node.least, arguments_of(node.call), strict=True
                )
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
            fault: Exception = ValueError(_out_of_bounds(lowest, highest, least))
        except (NotWhole, ValueError, OverflowError) as raised:
            fault = raised
        self.refusals.append(refused(name, fault, f"at {self.process_count} ranks, "))
        return (Share(self.ranks[0], (), (Progression(least),)),)


def _out_of_bounds(lowest: int, highest: int, least: int) -> str:
    if highest <= _LARGEST and least > 1 and lowest >= 0:
        return f"a name has the number {lowest}: whether so short a one is filled up with zeros was never seen"
    return f"values from {lowest} to {highest} come out; they must be from {least} to {_LARGEST}"


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
    gaps: defaultdict[tuple[int, int], list[Gap]] = defaultdict(list)
    for (place, number, before), histogram in found.items():
        if before is not None:
            gaps[place, number].append(Gap(before, histogram))
    return [_with_times(body, found, gaps, place, count()) for place, (_, _, body) in enumerate(bodies)]


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
    """Return histograms at a rank count; a field is fitted on those rank counts at which it has any times.

    Those of several traces at one rank count are brought together.
    """
    places = {known: [place for place, own in enumerate(rank_counts) if own == known] for known in rank_counts}
    by_counts: defaultdict[tuple[int, ...], list[tuple[_Times, list[TimeHistogram]]]] = defaultdict(list)
    for times in wanted:
        row = {known: merged([times.histograms[place] for place in own]) for known, own in places.items()}
        seen = tuple(known for known, histogram in row.items() if histogram.count)
        if seen:
            by_counts[seen].append((times, [row[known] for known in seen]))
    found: dict[_Key, TimeHistogram] = {}
    for seen, members in by_counts.items():
        rows, counts = [row for _, row in members], [times.count for times, _ in members]
        fits = extrapolated_histograms(seen, rows, process_count, counts)
        found |= {times.key: histogram for (times, _), (histogram, _) in zip(members, fits, strict=True)}
    return found


def _with_times(
    body: tuple[Node, ...],
    found: Mapping[_Key, TimeHistogram],
    gaps: Mapping[tuple[int, int], Sequence[Gap]],
    place: int,
    numbers: Iterator[int],
) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for node in body:
        number = next(numbers)
        if isinstance(node, Loop):
            nodes.append(replace(node, body=_with_times(node.body, found, gaps, place, numbers)))
        else:
            own = tuple(gaps.get((place, number), ()))
            nodes.append(replace(node, gaps=own, durations=found[place, number, None]))
    return tuple(nodes)


# ---- how often calls follow one another


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
