"""Define the fitted models of a trace over the rank count n, and the result of an extrapolation.

The result is a compressed trace, or the reasons why the trace is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from iosig.transforms.extrapolation.iteration_models import FieldModel
from iosig.transforms.extrapolation.rank_list_models import RankListModel
from iosig.transforms.traces.trace import Call, CompressedTrace, Gap, TimeHistogram

#: outcomes of an extrapolation; all except the first are refusals
OUTCOMES = ("extrapolated", "too_few_rank_counts", "structures_differ", "no_exact_model", "no_whole_number")


@dataclass(frozen=True, slots=True)
class Model:
    """Formula that gives a field at all known rank counts, in terms of `n` (ranks), `rank` and loop indices.

    `field` is the location of the field, such as `class 1, call 4 pwrite, argument 4`. It contains the number of the
    class, the node number of the call within the class, and the number of the argument, from 1.
    """

    field: str
    formula: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason for the refusal of a trace: a field without a model, or a place where the traces differ."""

    outcome: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExtrapolatedTrace:
    """Result of an extrapolation to `process_count` ranks, from traces at `rank_counts`.

    If a field is refused, `outcome` is that of the first refusal, and `trace` is None. Otherwise, the outcome is
    `extrapolated`.
    """

    rank_counts: tuple[int, ...]
    process_count: int
    outcome: str
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
    trace: CompressedTrace | None


@dataclass(frozen=True, slots=True)
class FittedCall:
    """Call at several rank counts: its common parts, the models of its slots, and its times at each rank count.

    min_values: minimum value of each slot; for smaller values, the number format is unknown.
    """

    call: Call
    slots: tuple[FieldModel, ...]
    min_values: tuple[int, ...]
    durations: tuple[TimeHistogram, ...]
    gaps: tuple[tuple[Gap, ...], ...]


@dataclass(frozen=True, slots=True)
class FittedLoop:
    """Loop with the model of its iteration count; is_even: whether the count is equal for all entries and ranks."""

    is_even: bool
    counts: FieldModel
    body: tuple[FittedNode, ...]


FittedNode = FittedCall | FittedLoop


@dataclass(frozen=True, slots=True)
class FittedClass:
    """A class of ranks: models of its rank lists (None: all ranks that are in no other class), and its nodes."""

    number: int
    ranks: tuple[RankListModel, ...] | None
    body: tuple[FittedNode, ...]


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """Common models of traces at several rank counts; incomplete if fields are refused."""

    rank_counts: tuple[int, ...]
    classes: tuple[FittedClass, ...]
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
