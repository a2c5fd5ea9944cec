"""What an extrapolation evaluates, models over n, and what it comes to: a compressed trace, or reasons for none."""

from __future__ import annotations

from dataclasses import dataclass

from iosig.transforms.extrapolation.iteration_models import FieldModel
from iosig.transforms.extrapolation.rank_list_models import RankListModel
from iosig.transforms.traces.trace import Call, CompressedTrace, Gap, TimeHistogram

#: what can become of an extrapolation; all but the first are refusals
OUTCOMES = ("extrapolated", "too_few_rank_counts", "structures_differ", "no_exact_model", "no_whole_number")


@dataclass(frozen=True, slots=True)
class Model:
    """What explains a field at all rank counts exactly: its formula in `n` (ranks), `rank` and loop indices.

    `field` says where it stands, as in `class 1, call 4 pwrite, argument 4`, with the class in the order of its ranks,
    the call's node number in its class, and the argument counted from 1.
    """

    field: str
    formula: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A field that no model explains, or a place where the traces differ, and why that is so."""

    outcome: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """The trace at `process_count` ranks, from traces at `rank_counts`; `trace` is None unless it is `extrapolated`.

    `outcome` is that of the first refusal, if there is any.
    """

    rank_counts: tuple[int, ...]
    process_count: int
    outcome: str
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
    trace: CompressedTrace | None


@dataclass(frozen=True, slots=True)
class FittedCall:
    """A call at several rank counts: what is the same, the models of its slots, its times at each rank count.

    least: of each slot, the number below which none may be, for it is not known how it would be written.
    """

    call: Call
    slots: tuple[FieldModel, ...]
    least: tuple[int, ...]
    durations: tuple[TimeHistogram, ...]
    gaps: tuple[tuple[Gap, ...], ...]


@dataclass(frozen=True, slots=True)
class FittedLoop:
    """A loop: the model of its iterations, and whether they are the same whenever and by whomever it is entered."""

    is_even: bool
    counts: FieldModel
    body: tuple[FittedNode, ...]


FittedNode = FittedCall | FittedLoop


@dataclass(frozen=True, slots=True)
class FittedClass:
    """A class: its rank lists over n (None: all ranks that no other class has), and its nodes."""

    number: int
    ranks: tuple[RankListModel, ...] | None
    body: tuple[FittedNode, ...]


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """What traces at some rank counts have in common, ready for any other; with refusals, for none."""

    rank_counts: tuple[int, ...]
    classes: tuple[FittedClass, ...]
    models: tuple[Model, ...]
    refusals: tuple[Refusal, ...]
