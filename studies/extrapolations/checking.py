"""An extrapolated trace held against the traced one, call by call, and its times beside the traced ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.transforms.traces.expansion import compute_mean_times, find_class, list_executions, rank_calls
from iosig.transforms.traces.time_histograms import EMPTY
from iosig.transforms.traces.trace import CompressedTrace, Loop, Node
from iosig.warehouse.sources.recorder.signatures import SIGNATURE, SignedRank


@dataclass(frozen=True, slots=True)
class Compared:
    """How many calls there are, how many are in the other trace at the same place, and how many that has in all."""

    call_count: int
    equal_count: int
    other_count: int

    @property
    def is_exact(self) -> bool:
        """Whether both traces have the same calls in the same order on every rank."""
        return self.call_count == self.equal_count == self.other_count


def compared(ranks: Sequence[SignedRank], trace: CompressedTrace) -> Compared:
    """Compare traced ranks, which are all of them, with a compressed trace, each call as text."""
    equal = other = 0
    for rank in ranks:
        traced = rank.signatures.select(SIGNATURE)[rank.order]
        made = rank_calls(trace, rank.rank).select(SIGNATURE)
        other += made.height
        both = min(traced.height, made.height)
        equal += int(_same(traced.head(both), made.head(both)).sum())
    other += sum(rank_calls(trace, rank).height for rank in range(len(ranks), trace.process_count))
    return Compared(sum(rank.order.size for rank in ranks), equal, other)


def _same(one: pl.DataFrame, other: pl.DataFrame) -> pl.Series:
    """Return of each row whether it is the same in both."""
    if one.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    return pl.select(pl.all_horizontal([one[name].eq_missing(other[name]) for name in SIGNATURE])).to_series()


def untimed(trace: CompressedTrace) -> CompressedTrace:
    """Return a trace without its times: of two that are equal so, all calls are."""
    return replace(trace, classes=tuple(replace(one, body=_untimed(one.body)) for one in trace.classes))


def _untimed(body: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(
        replace(node, body=_untimed(node.body)) if isinstance(node, Loop) else replace(node, gaps=(), durations=EMPTY)
        for node in body
    )


def traced_end_s(ranks: Sequence[SignedRank]) -> float | None:
    """Return when ranks were done with their last calls, on average [s]."""
    return _mean([float(rank.end_s.max()) for rank in ranks if rank.order.size])


def end_s(trace: CompressedTrace) -> float | None:
    """Return when the ranks of a compressed trace are done with their last calls, on average [s]."""
    ends = []
    for rank in range(trace.process_count):
        own = find_class(trace, rank)
        if own is not None:
            _, end_s = compute_mean_times(list_executions(own, rank))
            ends.append(float(end_s.max(initial=0.0)))
    return _mean(ends)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
