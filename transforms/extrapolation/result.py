"""Fitted models of a trace over n, and the result of an extrapolation: a compressed trace, or the reasons for none."""

from __future__ import annotations

from dataclasses import dataclass

from iosig.transforms.extrapolation.iteration_models import FieldModel
from iosig.transforms.extrapolation.rank_list_models import RankListModel
from iosig.transforms.traces.trace import Call, CompressedTrace, Gap, TimeHistogram

#: outcomes of an extrapolation; all but the first are refusals
OUTCOMES = ("extrapolated", "too_few_rank_counts", "structures_differ", "no_exact_model", "no_whole_number")


@dataclass(frozen=True, slots=True)
class Model:
    """Formula that gives a field at all known rank counts, in `n` (ranks), `rank` and loop indices.

    `field` is its location, such as `class 1, call 4 pwrite, argument 4`: number of the class, node number of the call
    within the class, and number of the argument from 1.
    """

    field: str
    formula: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Field without a model, or a place where the traces differ, with the reason."""

    outcome: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """Trace at `process_count` ranks, from traces at `rank_counts`; None unless the outcome is `extrapolated`.

    `outcome` is that of the first refusal, if any.
    """

    rank_counts: tuple[int, ...]
    process_count: int
    outcome: str
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
    trace: CompressedTrace | None


@dataclass(frozen=True, slots=True)
class FittedCall:
    """Call at several rank counts: common parts, models of its slots, and times at each rank count.

    least: minimum value of each slot; the number format of smaller values is unknown.
    """

    call: Call
    slots: tuple[FieldModel, ...]
    least: tuple[int, ...]
    durations: tuple[TimeHistogram, ...]
    gaps: tuple[tuple[Gap, ...], ...]


@dataclass(frozen=True, slots=True)
class FittedLoop:
    """Loop with the model of its iterations, and whether these are equal for all entries and ranks."""

    is_even: bool
    counts: FieldModel
    body: tuple[FittedNode, ...]


FittedNode = FittedCall | FittedLoop


@dataclass(frozen=True, slots=True)
class FittedClass:
    """Class with its rank lists over n (None: all ranks of no other class), and its nodes."""

    number: int
    ranks: tuple[RankListModel, ...] | None
    body: tuple[FittedNode, ...]


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """Common models of traces at several rank counts; incomplete if there are refusals."""

    rank_counts: tuple[int, ...]
    classes: tuple[FittedClass, ...]
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
