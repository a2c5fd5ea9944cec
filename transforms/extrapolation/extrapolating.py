"""Extrapolate the exact trace at a rank count that was not run, as in ScalaIOExtrap.

The input consists of traces at four or more rank counts. They must have the same structure of calls (paper:
DOI 10.1145/2832106.2832108, section 3.2.1). Rank lists, loops, numbers in file names, offsets, counts and handles have
exact models (3.2.2 to 3.2.4). The trace is refused if a field has no model that holds at all rank counts. Times are
fitted by curves and are never exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.evaluation import evaluate_trace
from iosig.transforms.extrapolation.iteration_models import (
    Block,
    Families,
    FieldModel,
    FixedValues,
    NoExactModelError,
    fit_field,
    format_formula,
    is_constant,
)
from iosig.transforms.extrapolation.rank_list_models import fit_rank_lists
from iosig.transforms.extrapolation.result import (
    ExtrapolatedTrace,
    FittedCall,
    FittedClass,
    FittedLoop,
    FittedNode,
    FittedTrace,
    Model,
    Refusal,
)
from iosig.transforms.extrapolation.structures import Difference, MatchedClasses, match_classes, slot_names
from iosig.transforms.traces.progressions import Progression, expand_values
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, Node, RankClass, Vector
from iosig.transforms.traces.vectors import expand_vector, rank_lists, vector_bounds

#: iteration counts of the loops around a node at one rank count, from the outermost loop inward
Lengths = tuple[int, ...]
#: maximum number of refusals that are listed; further refusals are only counted
MAX_REFUSALS = 100


@dataclass(frozen=True, slots=True)
class ExtrapolationParams:
    """Requirements and model families of an extrapolation.

    Attributes
    ----------
    min_rank_counts
        Minimum number of different rank counts. The paper requires four (section 3.2); three identify a model of two
        parameters.
    families
        Kinds of models: those of the paper, and any that a user adds.
    """

    min_rank_counts: int = 4
    families: Families = field(default_factory=Families)


def extrapolate(
    traces: Iterable[CompressedTrace], process_count: int, params: ExtrapolationParams | None = None
) -> ExtrapolatedTrace:
    """Extrapolate the trace of a program to a rank count.

    Parameters
    ----------
    traces
        Traces at other rank counts. They must come from `compress_together`, so that numbers have the same padding.
    process_count
        Rank count of the result.
    params
        Requirements and kinds of models.

    Returns
    -------
    Extrapolated
        Trace, or the reasons why it is refused.

    References
    ----------
    X. Luo et al., ESPT 2015, section 3, DOI 10.1145/2832106.2832108
    """
    return extrapolate_to(fit_trace(traces, params or ExtrapolationParams()), process_count)


def extrapolate_to(fitted: FittedTrace, process_count: int) -> ExtrapolatedTrace:
    """Extrapolate a trace to a rank count by evaluating fitted models.

    Parameters
    ----------
    fitted
        Fitted models of the trace.
    process_count
        Rank count of the result.

    Returns
    -------
    Extrapolated
        Trace, or the reasons why it is refused.
    """
    result = fitted.refusals or evaluate_trace(fitted, process_count)
    refusals, trace = (_truncate_refusals(result), None) if isinstance(result, tuple) else ((), result)
    outcome = refusals[0].outcome if refusals else "extrapolated"
    return ExtrapolatedTrace(fitted.rank_counts, process_count, outcome, fitted.models, refusals, trace)


def _truncate_refusals(refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    if len(refusals) <= MAX_REFUSALS:
        return refusals
    omitted_count = len(refusals) - MAX_REFUSALS
    reason = f"{len(refusals):,} fields are refused; the first {MAX_REFUSALS} are listed"
    return (*refusals[:MAX_REFUSALS], Refusal(refusals[0].outcome, f"and {omitted_count:,} more", reason))


def fit_trace(traces: Iterable[CompressedTrace], params: ExtrapolationParams) -> FittedTrace:
    """Fit models that explain traces of one program at several rank counts exactly.

    Parameters
    ----------
    traces
        Traces at several rank counts, in any order.
    params
        Requirements and kinds of models.

    Returns
    -------
    FittedTrace
        Models, and refusals of the fields without a model.
    """
    ordered = sorted(traces, key=lambda trace: trace.process_count)
    rank_counts = tuple(trace.process_count for trace in ordered)
    distinct_count = len(set(rank_counts))
    if distinct_count < params.min_rank_counts:
        reason = f"{distinct_count} different rank counts are known; {params.min_rank_counts} are needed"
        return FittedTrace(rank_counts, (), (), (Refusal("too_few_rank_counts", "rank counts", reason),))
    classes = match_classes(ordered)
    if isinstance(classes, Difference):
        return FittedTrace(rank_counts, (), (), (Refusal("structures_differ", classes.field, classes.reason),))
    fitter = _TraceFitter(rank_counts, params.families)
    fitted_classes = [fitter.fit_class(number, rank_classes) for number, rank_classes in enumerate(classes)]
    if any(silent_ranks := [_find_silent_ranks(trace) for trace in ordered]):
        fitted_classes.append(fitter.fit_silent(len(fitted_classes), silent_ranks))
    # the classes tile all ranks, so a single class may consist of all remaining ranks
    without_model = [fitted_class for fitted_class in fitted_classes if fitted_class.ranks is None]
    for fitted_class in without_model if len(without_model) > 1 else ():
        fitter.refuse(
            f"class {fitted_class.number}, ranks", "these ranks have no model, nor have those of another class"
        )
    return FittedTrace(rank_counts, tuple(fitted_classes), tuple(fitter.models), tuple(fitter.refusals))


def _find_silent_ranks(trace: CompressedTrace) -> tuple[Progression, ...]:
    """Find the ranks without calls."""
    has_calls = np.zeros(trace.process_count, np.bool_)
    for rank_class in trace.classes:
        has_calls[expand_values(rank_class.ranks)] = True
    return rank_lists(np.flatnonzero(~has_calls))


def _explain_iterations(tables: Sequence[Ints]) -> str | None:
    """Return the reason why unequal iteration counts cannot be extrapolated; None if they can."""
    if any((table != table[:1]).any() for table in tables):
        return "the iterations differ by rank"
    if any(not np.array_equal(table[0], tables[0][0]) for table in tables):
        return "the iterations differ between entries, and between rank counts"
    return None


def _min_value(calls: Sequence[Call], slot: int) -> int:
    """Return the minimum value that is valid in a slot.

    In names, numbers with fewer digits than all known numbers might be padded with zeros, so they are not valid.
    """
    call = calls[0]
    before, after = call.texts[slot][-1:], call.texts[slot + 1][:1]
    if call.slots[slot].width > 1 or (before in ("", " ") and after in ("", " ")):
        return 0
    lowest = min(vector_bounds(item.slots[slot].vector)[0] for item in calls)
    return 10 ** (len(str(lowest)) - 1) if lowest >= 10 else 0


@dataclass(slots=True)
class _TraceFitter:
    """Fit one class after the other, and collect models and refusals; `ranks`: the class's ranks per rank count."""

    rank_counts: tuple[int, ...]
    families: Families
    models: list[Model] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    ranks: tuple[Ints, ...] = ()

    def refuse(self, name: str, reason: str) -> None:
        """Add a refusal of a field without a model."""
        self.refusals.append(Refusal("no_exact_model", name, reason))

    def fit_silent(self, number: int, ranks: Sequence[tuple[Progression, ...]]) -> FittedClass:
        """Fit the class of ranks without calls, which may be empty at some rank counts."""
        return self.fit_class(number, tuple(RankClass(lists, ()) for lists in ranks), "ranks without calls")

    def fit_class(self, number: int, classes: MatchedClasses, name: str = "") -> FittedClass:
        """Fit the rank lists of a class, and the numbers in its nodes."""
        self.ranks = tuple(np.sort(expand_values(rank_class.ranks)) for rank_class in classes)
        lists = fit_rank_lists(list(zip(self.rank_counts, self.ranks, strict=True)), self.families.counts)
        formula = "all others" if lists is None else "; ".join(model.formula() for model in lists)
        self.models.append(Model(name or f"class {number}, ranks", formula))
        bodies = [rank_class.body for rank_class in classes]
        return FittedClass(number, lists, self._fit_body(f"class {number}", count(), bodies, [()] * len(bodies)))

    def _fit_body(
        self, place: str, numbers: Iterator[int], bodies: Sequence[tuple[Node, ...]], lengths: Sequence[Lengths]
    ) -> tuple[FittedNode, ...]:
        return tuple(self._fit_node(place, numbers, nodes, lengths) for nodes in zip(*bodies, strict=True))

    def _fit_node(
        self, place: str, numbers: Iterator[int], nodes: Sequence[Node], lengths: Sequence[Lengths]
    ) -> FittedNode:
        loops = [node for node in nodes if isinstance(node, Loop)]
        if loops:
            return self._fit_loop(place, numbers, loops, lengths)
        calls = [node for node in nodes if isinstance(node, Call)]
        name = f"{place}, call {next(numbers)} {calls[0].function}"
        slots = tuple(
            self._fit_number(f"{name}, {argument}", [call.slots[slot].vector for call in calls], lengths)
            for slot, argument in enumerate(slot_names(calls[0]))
        )
        min_values = tuple(_min_value(calls, slot) for slot in range(len(slots)))
        durations, gaps = tuple(call.durations for call in calls), tuple(call.gaps for call in calls)
        return FittedCall(calls[0], slots, min_values, durations, gaps)

    def _fit_loop(
        self, place: str, numbers: Iterator[int], loops: Sequence[Loop], lengths: Sequence[Lengths]
    ) -> FittedLoop:
        name = f"{place}, loop {next(numbers)}, iterations"
        tables = self._expand_vectors([loop.counts for loop in loops])
        bodies = [loop.body for loop in loops]
        is_even = all((table == table[:1, :1]).all() for table in tables)
        if not is_even and (reason := _explain_iterations(tables)):
            self.refuse(name, reason)
            return FittedLoop(False, FixedValues(tables[0][0]), ())
        counts = self._fit_number(name, [loop.counts for loop in loops], lengths)
        if is_even:
            inner_lengths = [(*length, int(table[0, 0])) for length, table in zip(lengths, tables, strict=True)]
            return FittedLoop(True, counts, self._fit_body(place, numbers, bodies, inner_lengths))
        flat = [(int(tables[0][0].sum()),)] * len(tables)
        return FittedLoop(False, counts, self._fit_body(place, numbers, bodies, flat))

    def _expand_vectors(self, vectors: Sequence[Vector]) -> list[Ints]:
        return [expand_vector(vector, ranks) for vector, ranks in zip(vectors, self.ranks, strict=True)]

    def _fit_number(self, name: str, vectors: Sequence[Vector], lengths: Sequence[Lengths]) -> FieldModel:
        """Fit a number of a node; if it has no model, add a refusal, and use the first rank's values instead."""
        tables = self._expand_vectors(vectors)
        blocks = [
            Block(process_count, ranks, table.reshape(ranks.size, *length))
            for process_count, ranks, table, length in zip(self.rank_counts, self.ranks, tables, lengths, strict=True)
        ]
        try:
            model = fit_field(blocks, self.families)
        except NoExactModelError as fault:
            self.refuse(name, f"no model gives {fault}")
            return FixedValues(blocks[0].values[0])
        if not is_constant(model):
            self.models.append(Model(name, format_formula(model)))
        return model
