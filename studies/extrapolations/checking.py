"""Compare an extrapolated trace with the traced one: calls one by one, and end times."""

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
class CallComparison:
    """Comparison of two traces: calls in the first, calls equal at the same position, and calls in the other."""

    call_count: int
    equal_count: int
    other_count: int

    @property
    def is_exact(self) -> bool:
        """Whether both traces have the same calls in the same order on every rank."""
        return self.call_count == self.equal_count == self.other_count


def compare_calls(ranks: Sequence[SignedRank], trace: CompressedTrace) -> CallComparison:
    """Compare the traced ranks with a compressed trace, call by call, as text."""
    equal_count = extrapolated_count = 0
    for rank in ranks:
        traced = rank.signatures.select(SIGNATURE)[rank.order]
        extrapolated = rank_calls(trace, rank.rank).select(SIGNATURE)
        extrapolated_count += extrapolated.height
        common_count = min(traced.height, extrapolated.height)
        equal_count += int(_compare_rows(traced.head(common_count), extrapolated.head(common_count)).sum())
    extrapolated_count += sum(rank_calls(trace, rank).height for rank in range(len(ranks), trace.process_count))
    return CallComparison(sum(rank.order.size for rank in ranks), equal_count, extrapolated_count)


def _compare_rows(first: pl.DataFrame, second: pl.DataFrame) -> pl.Series:
    """Return for each row whether it is equal in both frames."""
    if first.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    return pl.select(pl.all_horizontal([first[name].eq_missing(second[name]) for name in SIGNATURE])).to_series()


def remove_times(trace: CompressedTrace) -> CompressedTrace:
    """Drop all times from a trace, so that equality means equal calls."""
    return replace(
        trace,
        classes=tuple(replace(rank_class, body=_remove_node_times(rank_class.body)) for rank_class in trace.classes),
    )


def _remove_node_times(body: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(
        replace(node, body=_remove_node_times(node.body))
        if isinstance(node, Loop)
        else replace(node, gaps=(), durations=EMPTY)
        for node in body
    )


def compute_trace_end_s(ranks: Sequence[SignedRank]) -> float | None:
    """Return the mean end time of the traced ranks' last calls [s]; None without calls."""
    return _mean([float(rank.end_s.max()) for rank in ranks if rank.order.size])


def compute_end_s(trace: CompressedTrace) -> float | None:
    """Return the mean end time of the last calls in a compressed trace [s]; None without calls."""
    ends = []
    for rank in range(trace.process_count):
        rank_class = find_class(trace, rank)
        if rank_class is not None:
            _, end_s = compute_mean_times(list_executions(rank_class, rank))
            ends.append(float(end_s.max(initial=0.0)))
    return _mean(ends)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
