"""ScalaIOExtrap: from traces at four or more rank counts, the exact trace at one that nobody ran.

The traces must have the same structure of calls (paper: DOI 10.1145/2832106.2832108, section 3.2.1); their rank
lists, loops, numbers in file names, offsets, counts and handles are modelled exactly (3.2.2 to 3.2.4), and a field
that no model explains at all rank counts refuses the trace. Times are fitted by curves and are never exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.evaluation import trace_at
from iosig.transforms.extrapolation.iteration_models import (
    Block,
    Families,
    FieldModel,
    Fixed,
    NoModel,
    fit,
    formula_of,
    is_constant,
)
from iosig.transforms.extrapolation.rank_list_models import fitted_ranks
from iosig.transforms.extrapolation.result import (
    Extrapolated,
    FittedCall,
    FittedClass,
    FittedLoop,
    FittedNode,
    FittedTrace,
    Model,
    Refusal,
)
from iosig.transforms.extrapolation.structures import Difference, Matched, arguments_of, matched
from iosig.transforms.traces.progressions import Progression, values
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, Node, RankClass, Vector
from iosig.transforms.traces.vectors import bounds_of, rank_lists, table_of

#: the iterations of the loops around a node, from the outermost, at one rank count
Lengths = tuple[int, ...]
#: fields that are listed where there is no trace; of more, how many there are is said
MOST_REFUSALS = 100


@dataclass(frozen=True, slots=True)
class ExtrapolationParams:
    """How much must be known before anything is extrapolated.

    least_rank_counts: four in the paper (section 3.2); three identify any model of two parameters.
    families: the kinds of models, those of the paper and any that a user adds.
    """

    least_rank_counts: int = 4
    families: Families = field(default_factory=Families)


def extrapolate(
    traces: Iterable[CompressedTrace], process_count: int, params: ExtrapolationParams | None = None
) -> Extrapolated:
    """Return the trace at a rank count, from traces of the same program at others, or the fields that forbid it.

    The traces are of `compress_together`, so that numbers are filled up with zeros alike in all of them.
    """
    return extrapolated_at(fitted_trace(traces, params or ExtrapolationParams()), process_count)


def extrapolated_at(known: FittedTrace, process_count: int) -> Extrapolated:
    """Return the trace at a rank count from models, or the fields that forbid it."""
    found = known.refusals or trace_at(known, process_count)
    refusals, trace = (_listed(found), None) if isinstance(found, tuple) else ((), found)
    outcome = refusals[0].outcome if refusals else "extrapolated"
    return Extrapolated(known.rank_counts, process_count, outcome, known.models, refusals, trace)


def _listed(refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    if len(refusals) <= MOST_REFUSALS:
        return refusals
    rest = len(refusals) - MOST_REFUSALS
    reason = f"{len(refusals):,} fields are refused in all; the first {MOST_REFUSALS} are listed"
    return (*refusals[:MOST_REFUSALS], Refusal(refusals[0].outcome, f"and {rest:,} more", reason))


def fitted_trace(traces: Iterable[CompressedTrace], params: ExtrapolationParams) -> FittedTrace:
    """Return the models that explain traces of one program at several rank counts exactly, or what has none."""
    held = sorted(traces, key=lambda trace: trace.process_count)
    rank_counts = tuple(trace.process_count for trace in held)
    known = len(set(rank_counts))
    if known < params.least_rank_counts:
        reason = f"{known} different rank counts are known; {params.least_rank_counts} are needed"
        return FittedTrace(rank_counts, (), (), (Refusal("too_few_rank_counts", "rank counts", reason),))
    classes = matched(held)
    if isinstance(classes, Difference):
        return FittedTrace(rank_counts, (), (), (Refusal("structures_differ", classes.field, classes.reason),))
    fitting = _Fitting(rank_counts, params.families)
    done = [fitting.fit_class(number, one) for number, one in enumerate(classes)]
    if any(silent := [_silent(trace) for trace in held]):
        done.append(fitting.fit_silent(len(done), silent))
    # All classes together have all ranks at each rank count, so that one of them may have what is left.
    others = [one for one in done if one.ranks is None]
    for one in others if len(others) > 1 else ():
        fitting.refuse(f"class {one.number}, ranks", "they follow no rule, and those of another class neither")
    return FittedTrace(rank_counts, tuple(done), tuple(fitting.models), tuple(fitting.refusals))


def _silent(trace: CompressedTrace) -> tuple[Progression, ...]:
    """Return the ranks that made no calls."""
    has_calls = np.zeros(trace.process_count, np.bool_)
    for one in trace.classes:
        has_calls[values(one.ranks)] = True
    return rank_lists(np.flatnonzero(~has_calls))


def _uneven(tables: Sequence[Ints]) -> str | None:
    """Return why iterations that are not the same each time are not known elsewhere; None where they are."""
    if any((table != table[:1]).any() for table in tables):
        return "the iterations differ by rank"
    if any(not np.array_equal(table[0], tables[0][0]) for table in tables):
        return "the iterations differ from entry to entry, and not alike at all rank counts"
    return None


def _least(calls: Sequence[Call], slot: int) -> int:
    """Return the least number that may come to stand in a slot.

    In names, of which no number had fewer digits and none was filled up with zeros, shorter ones could be.
    """
    call = calls[0]
    before, behind = call.texts[slot][-1:], call.texts[slot + 1][:1]
    if call.slots[slot].width > 1 or (before in ("", " ") and behind in ("", " ")):
        return 0
    lowest = min(bounds_of(own.slots[slot].vector)[0] for own in calls)
    return 10 ** (len(str(lowest)) - 1) if lowest >= 10 else 0


@dataclass(slots=True)
class _Fitting:
    """Models of one class after the other, and all fields that were modelled or refused."""

    rank_counts: tuple[int, ...]
    families: Families
    models: list[Model] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    ranks: tuple[Ints, ...] = ()

    def refuse(self, name: str, reason: str) -> None:
        """Note that a field has no model."""
        self.refusals.append(Refusal("no_exact_model", name, reason))

    def fit_silent(self, number: int, ranks: Sequence[tuple[Progression, ...]]) -> FittedClass:
        """Fit the ranks that make no calls; there may be none at some rank counts."""
        return self.fit_class(number, tuple(RankClass(own, ()) for own in ranks), "ranks without calls")

    def fit_class(self, number: int, one: Matched, name: str = "") -> FittedClass:
        """Fit the ranks and the nodes of a class."""
        self.ranks = tuple(np.sort(values(rank_class.ranks)) for rank_class in one)
        lists = fitted_ranks(list(zip(self.rank_counts, self.ranks, strict=True)), self.families.counts)
        shown = "all others" if lists is None else "; ".join(model.formula() for model in lists)
        self.models.append(Model(name or f"class {number}, ranks", shown))
        bodies = [rank_class.body for rank_class in one]
        return FittedClass(number, lists, self._body(f"class {number}", count(), bodies, [()] * len(bodies)))

    def _body(
        self, place: str, numbers: Iterator[int], bodies: Sequence[tuple[Node, ...]], lengths: Sequence[Lengths]
    ) -> tuple[FittedNode, ...]:
        return tuple(self._node(place, numbers, nodes, lengths) for nodes in zip(*bodies, strict=True))

    def _node(
        self, place: str, numbers: Iterator[int], nodes: Sequence[Node], lengths: Sequence[Lengths]
    ) -> FittedNode:
        loops = [node for node in nodes if isinstance(node, Loop)]
        if loops:
            return self._loop(place, numbers, loops, lengths)
        calls = [node for node in nodes if isinstance(node, Call)]
        name = f"{place}, call {next(numbers)} {calls[0].function}"
        slots = tuple(
            self._field(f"{name}, {argument}", [call.slots[slot].vector for call in calls], lengths)
            for slot, argument in enumerate(arguments_of(calls[0]))
        )
        least = tuple(_least(calls, slot) for slot in range(len(slots)))
        durations, gaps = tuple(call.durations for call in calls), tuple(call.gaps for call in calls)
        return FittedCall(calls[0], slots, least, durations, gaps)

    def _loop(
        self, place: str, numbers: Iterator[int], loops: Sequence[Loop], lengths: Sequence[Lengths]
    ) -> FittedLoop:
        name = f"{place}, loop {next(numbers)}, iterations"
        tables = self._tables([loop.counts for loop in loops])
        bodies = [loop.body for loop in loops]
        is_even = all((table == table[:1, :1]).all() for table in tables)
        if not is_even and (reason := _uneven(tables)):
            self.refuse(name, reason)
            return FittedLoop(False, Fixed(tables[0][0]), ())
        counts = self._field(name, [loop.counts for loop in loops], lengths)
        if is_even:
            inner = [(*known, int(table[0, 0])) for known, table in zip(lengths, tables, strict=True)]
            return FittedLoop(True, counts, self._body(place, numbers, bodies, inner))
        flat = [(int(tables[0][0].sum()),)] * len(tables)
        return FittedLoop(False, counts, self._body(place, numbers, bodies, flat))

    def _tables(self, vectors: Sequence[Vector]) -> list[Ints]:
        return [table_of(vector, ranks) for vector, ranks in zip(vectors, self.ranks, strict=True)]

    def _field(self, name: str, vectors: Sequence[Vector], lengths: Sequence[Lengths]) -> FieldModel:
        """Fit a number of a node; one without a model is noted, and stays what it was at the first rank count."""
        tables = self._tables(vectors)
        blocks = [
            Block(known, ranks, table.reshape(ranks.size, *length))
            for known, ranks, table, length in zip(self.rank_counts, self.ranks, tables, lengths, strict=True)
        ]
        try:
            model = fit(blocks, self.families)
        except NoModel as fault:
            self.refuse(name, f"no model gives {fault}")
            return Fixed(blocks[0].values[0])
        if not is_constant(model):
            self.models.append(Model(name, formula_of(model)))
        return model
