"""What an extrapolation comes to: a compressed trace with the models behind it, or the fields that have none."""

from __future__ import annotations

from dataclasses import dataclass

from transforms.traces.trace import CompressedTrace

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
