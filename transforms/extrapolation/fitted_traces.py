"""Traces of one program at several rank counts as models over n: what an extrapolation evaluates."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.extrapolation.iteration_models import FieldModel
from transforms.extrapolation.rank_list_models import RankListModel
from transforms.extrapolation.result import Model, Refusal
from transforms.traces.trace import Call, Gap, TimeHistogram


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
