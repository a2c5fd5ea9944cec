"""Evaluate a program's models at a rank count.

The result is a compressed trace, with a size that does not grow with the number of ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from iosig.transforms.extrapolation.count_models import AmbiguousModelError, NotAnIntegerError
from iosig.transforms.extrapolation.iteration_models import FieldModel, evaluate_vector
from iosig.transforms.extrapolation.result import FittedCall, FittedClass, FittedNode, FittedTrace, Refusal
from iosig.transforms.extrapolation.structures import slot_names
from iosig.transforms.extrapolation.time_models import extrapolate_histograms
from iosig.transforms.traces import progressions
from iosig.transforms.traces.expansion import count_executions, number_nodes
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.time_histograms import EMPTY, merge_histograms
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
from iosig.transforms.traces.vectors import RankClaims, vector_bounds

#: class at a rank count: its models, ranks and nodes
_Bodies = tuple[FittedClass, tuple[Progression, ...], tuple[Node, ...]]
#: key of times: class, node, and the previous node for a gap, or None for durations
_Key = tuple[int, int, int | None]

#: maximum rank count, since the class of each rank is kept in memory
MAX_RANKS = 1 << 27
#: largest number in text, which has 18 digits
_MAX_NUMBER = 10**18 - 1


@dataclass(frozen=True, slots=True)
class _Times:
    """Input of the time extrapolation: key, number of times in the result, and histograms at known rank counts."""

    key: _Key
    count: int
    histograms: tuple[TimeHistogram, ...]


def evaluate_trace(fitted: FittedTrace, process_count: int) -> CompressedTrace | tuple[Refusal, ...]:
    """Evaluate the trace at a rank count.

    Parameters
    ----------
    fitted
        Fitted models.
    process_count
        Rank count.

    Returns
    -------
    CompressedTrace or tuple[Refusal, ...]
        The trace, or the refusals of fields without valid values.

    Raises
    ------
    ValueError
        If the rank count is not between 1 and `MAX_RANKS`.
    """
    if not 1 <= process_count <= MAX_RANKS:
        raise ValueError(f"the rank count must be between 1 and {MAX_RANKS}")
    refusals: list[Refusal] = []
    lists = _rank_lists(fitted, process_count, refusals)
    bodies: list[_Bodies] = []
    for fitted_class, ranks in zip(fitted.classes, lists, strict=True):
        if ranks:
            builder = _ClassBuilder(process_count, ranks, f"class {fitted_class.number}", refusals)
            bodies.append((fitted_class, ranks, builder.body(fitted_class.body, count(), ())))
    if refusals:
        return tuple(refusals)
    # ranks without calls are in no class
    calling = [body for body in bodies if body[2]]
    with_times = _add_times(fitted, process_count, calling)
    classes = [RankClass(ranks, body) for (_, ranks, _), body in zip(calling, with_times, strict=True)]
    return CompressedTrace(process_count, tuple(sorted(classes, key=lambda rank_class: rank_class.ranks[0].start)))


def make_refusal(field: str, fault: Exception, prefix: str = "") -> Refusal:
    """Convert the exception that a field's model raised to a refusal."""
    outcome = "no_exact_model" if isinstance(fault, AmbiguousModelError) else "no_whole_number"
    return Refusal(outcome, field, f"{prefix}{fault}")


# ---- ranks


def _rank_lists(fitted: FittedTrace, process_count: int, refusals: list[Refusal]) -> list[tuple[Progression, ...]]:
    """Evaluate the ranks of each class; add a refusal if the classes do not tile all ranks."""
    class_ranks: list[tuple[Progression, ...] | None] = []
    at = f"at {process_count} ranks, "
    for fitted_class in fitted.classes:
        try:
            models = fitted_class.ranks
            lists = None if models is None else [model.at(process_count) for model in models]
            class_ranks.append(None if lists is None else tuple(ranks for ranks in lists if ranks is not None))
        except (NotAnIntegerError, ValueError) as fault:
            refusals.append(make_refusal(f"class {fitted_class.number}, ranks", fault, at))
    if not refusals:
        return _check_tiling(process_count, class_ranks, refusals)
    return [()] * len(fitted.classes)


def _check_tiling(
    process_count: int, lists: Sequence[tuple[Progression, ...] | None], refusals: list[Refusal]
) -> list[tuple[Progression, ...]]:
    """Check that the classes tile all ranks; a class with None receives the remaining ranks."""
    claims = RankClaims(process_count)
    try:
        for ranks in (ranks for class_ranks in lists for ranks in class_ranks or ()):
            claims.claim(ranks)
        if None not in lists and (free := claims.first_free()) is not None:
            raise ValueError(f"rank {free} is in no class")
    except ValueError as fault:
        refusals.append(make_refusal("classes", fault, f"at {process_count} ranks, "))
    remaining = claims.free_ranks() if None in lists else ()
    return [remaining if class_ranks is None else class_ranks for class_ranks in lists]


# ---- calls


@dataclass(slots=True)
class _ClassBuilder:
    """Builder of a class's nodes at a rank count; it adds a refusal for each field with an invalid value."""

    process_count: int
    ranks: tuple[Progression, ...]
    place: str
    refusals: list[Refusal]

    def body(self, nodes: Sequence[FittedNode], numbers: Iterator[int], lengths: tuple[int, ...]) -> tuple[Node, ...]:
        """Build nodes without times, within loops of the given lengths."""
        return tuple(self._node(node, numbers, lengths) for node in nodes)

    def _node(self, node: FittedNode, numbers: Iterator[int], lengths: tuple[int, ...]) -> Node:
        number = next(numbers)
        if isinstance(node, FittedCall):
            call_name = f"{self.place}, call {number} {node.call.function}"
            slots = tuple(
                Slot(slot.width, self._vector(f"{call_name}, {argument}", model, lengths, min_value))
                for slot, model, min_value, argument in zip(
                    node.call.slots, node.slots, node.min_values, slot_names(node.call), strict=True
                )
            )
            call = node.call
            return Call(call.module, call.function, call.level, call.texts, slots, (), call.durations)
        name = f"{self.place}, loop {number}, iterations"
        counts = self._vector(name, node.counts, lengths, 1)
        row = progressions.expand_values(counts[0].values).tolist()
        inner_lengths = (*lengths, row[0]) if node.is_even else (sum(row),)
        return Loop(counts, self.body(node.body, numbers, inner_lengths))

    def _vector(self, name: str, model: FieldModel, lengths: tuple[int, ...], min_value: int) -> Vector:
        """Evaluate a field; add a refusal if values are invalid or out of range."""
        try:
            vector = evaluate_vector(model, self.process_count, self.ranks, lengths)
            lowest, highest = vector_bounds(vector)
            if min_value <= lowest <= highest <= _MAX_NUMBER:
                return vector
            fault: Exception = ValueError(_describe_bounds(lowest, highest, min_value))
        except (NotAnIntegerError, ValueError, OverflowError) as raised:
            fault = raised
        self.refusals.append(make_refusal(name, fault, f"at {self.process_count} ranks, "))
        return (Share(self.ranks[0], (), (Progression(min_value),)),)


def _describe_bounds(lowest: int, highest: int, min_value: int) -> str:
    if highest <= _MAX_NUMBER and min_value > 1 and lowest >= 0:
        return f"a name has the number {lowest}: whether such short numbers are padded with zeros is unknown"
    return f"values are between {lowest} and {highest}; they must be between {min_value} and {_MAX_NUMBER}"


# ---- times


def _add_times(fitted: FittedTrace, process_count: int, bodies: Sequence[_Bodies]) -> list[tuple[Node, ...]]:
    """Add times to the nodes of all classes; a single call extrapolates all times."""
    inputs: list[_Times] = []
    for class_number, (fitted_class, ranks, body) in enumerate(bodies):
        fitted_calls = list(_iterate_calls(fitted_class.body, count()))
        size = sum(part.size for part in ranks)
        pairs = count_transitions(body, ranks[0].start)
        executed: Counter[int] = Counter()
        for (_, node), times in pairs.items():
            executed[node] += times * size
        for number, call in fitted_calls:
            inputs.append(_Times((class_number, number, None), executed[number], call.durations))
            for previous in sorted(before for before, node in pairs if node == number):
                known_histograms = [
                    next((gap.histogram for gap in gaps if gap.previous == previous), EMPTY) for gaps in call.gaps
                ]
                inputs.append(
                    _Times((class_number, number, previous), pairs[previous, number] * size, tuple(known_histograms))
                )
    histograms = _extrapolate_times(fitted.rank_counts, process_count, inputs)
    gaps: defaultdict[tuple[int, int], list[Gap]] = defaultdict(list)
    for (place, number, before), histogram in histograms.items():
        if before is not None:
            gaps[place, number].append(Gap(before, histogram))
    return [_attach_times(body, histograms, gaps, place, count()) for place, (_, _, body) in enumerate(bodies)]


def _iterate_calls(nodes: Sequence[FittedNode], numbers: Iterator[int]) -> Iterator[tuple[int, FittedCall]]:
    for node in nodes:
        number = next(numbers)
        if isinstance(node, FittedCall):
            yield number, node
        else:
            yield from _iterate_calls(node.body, numbers)


def _extrapolate_times(
    rank_counts: tuple[int, ...], process_count: int, inputs: Sequence[_Times]
) -> dict[_Key, TimeHistogram]:
    """Extrapolate histograms; each is fitted at the rank counts where it is not empty.

    If several traces have the same rank count, their histograms are merged.
    """
    places = {
        rank_count: [place for place, value in enumerate(rank_counts) if value == rank_count]
        for rank_count in rank_counts
    }
    by_counts: defaultdict[tuple[int, ...], list[tuple[_Times, list[TimeHistogram]]]] = defaultdict(list)
    for times in inputs:
        row = {
            rank_count: merge_histograms([times.histograms[place] for place in indices])
            for rank_count, indices in places.items()
        }
        nonempty = tuple(rank_count for rank_count, histogram in row.items() if histogram.count)
        if nonempty:
            by_counts[nonempty].append((times, [row[rank_count] for rank_count in nonempty]))
    extrapolated: dict[_Key, TimeHistogram] = {}
    for nonempty, members in by_counts.items():
        rows, counts = [row for _, row in members], [times.count for times, _ in members]
        fits = extrapolate_histograms(nonempty, rows, process_count, counts)
        extrapolated |= {times.key: histogram for (times, _), (histogram, _) in zip(members, fits, strict=True)}
    return extrapolated


def _attach_times(
    body: tuple[Node, ...],
    histograms: Mapping[_Key, TimeHistogram],
    gaps: Mapping[tuple[int, int], Sequence[Gap]],
    place: int,
    numbers: Iterator[int],
) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for node in body:
        number = next(numbers)
        if isinstance(node, Loop):
            nodes.append(replace(node, body=_attach_times(node.body, histograms, gaps, place, numbers)))
        else:
            node_gaps = tuple(gaps.get((place, number), ()))
            nodes.append(replace(node, gaps=node_gaps, durations=histograms[place, number, None]))
    return tuple(nodes)


# ---- transitions between calls


def count_transitions(body: tuple[Node, ...], rank: int) -> Counter[tuple[int, int]]:
    """Count how often a rank executes one call directly after another, by pair of node numbers.

    START precedes the first call. Each time a loop is entered, it has one or more iterations.
    """
    nodes, parents = number_nodes(body)
    counts = count_executions(nodes, parents, rank)
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)
    pairs: Counter[tuple[int, int]] = Counter()
    for parent, members in children.items():
        iterations = 1 if parent < 0 else counts[members[0]]
        for before, after in pairwise(members):
            pairs[_last_call(nodes, children, before), _first_call(nodes, after)] += iterations
        if parent >= 0 and iterations > counts[parent]:
            pairs[_last_call(nodes, children, members[-1]), _first_call(nodes, members[0])] += (
                iterations - counts[parent]
            )
    if nodes:
        pairs[START, _first_call(nodes, 0)] += 1
    return pairs


def _first_call(nodes: Sequence[Node], number: int) -> int:
    while not isinstance(nodes[number], Call):
        # the body of a loop follows the loop
        number += 1
    return number


def _last_call(nodes: Sequence[Node], children: dict[int, list[int]], number: int) -> int:
    while not isinstance(nodes[number], Call):
        number = children[number][-1]
    return number
