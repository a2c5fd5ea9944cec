"""Compute the server view of a compressed trace: bytes that all ranks together read and write over time.

Ranks with the same loop counts form a group with one timeline, which consists of the mean times of the calls [1,
section 3]. Each request of a group is one interval with the bytes of all ranks of the group, in closed form. So the
size of the result depends on the calls of one rank per group, and not on the number of ranks. If loop counts grow with
the rank, ranks are divided into up to 16 groups along each such dimension, and the middle rank represents its group.

[1] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Reals
from iosig.transforms.traces.expansion import MAX_CALLS, compute_mean_times, list_executions, number_nodes
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.rank_blocks import divide_block, find_block, rows_sum
from iosig.transforms.traces.requests import (
    CallFormats,
    Size,
    find_nested_calls,
    is_request,
    request_size,
    split_arguments,
    volumes_by_execution,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Vector

#: number of groups along a dimension of ranks with different loop counts
_GROUPS_PER_DIMENSION = 16
#: maximum number of groups of ranks
_MAX_GROUPS = 4096

SCHEMA = {
    "module": pl.String,
    "direction": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "bytes": pl.Float64,
    "request_count": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Timeline:
    """Reads and writes of all ranks, without nested requests, and the end of the last call of any rank [s].

    intervals: requests in chronological order, with the columns of `SCHEMA`. Each row has the bytes of all ranks that
    make the request, NULL if unknown, and the number of these ranks as `request_count`.
    """

    intervals: pl.DataFrame
    duration_s: float


def compute_timeline(trace: CompressedTrace, formats: CallFormats, max_calls: int = MAX_CALLS) -> Timeline:
    """Compute the reads and writes of a trace over time.

    Parameters
    ----------
    trace
        Compressed trace.
    formats
        Formats of the calls' arguments.
    max_calls
        Maximum total number of calls, with one rank per group.

    Returns
    -------
    Timeline
        Intervals of requests.

    Raises
    ------
    ValueError
        If there are too many calls, or loops are too irregular.
    """
    rank_groups = [group for rank_class in trace.classes for group in group_ranks(rank_class)]
    if len(rank_groups) > _MAX_GROUPS:
        raise ValueError(
            f"The ranks have {len(rank_groups):,} different combinations of loop counts, which is too many."
        )
    pieces: list[pl.DataFrame] = []
    duration_s = 0.0
    for group in rank_groups:
        order = list_executions(group.rank_class, group.ranks.start, max_calls)
        max_calls -= order.node.size
        start_s, end_s = compute_mean_times(order)
        duration_s = max(duration_s, float(end_s.max(initial=0.0)))
        pieces += _list_requests(group, formats, order.node, start_s, end_s)
    intervals = pl.concat([pl.DataFrame(schema=SCHEMA), *pieces])
    return Timeline(intervals.sort("start_s", "end_s", "direction", "module"), duration_s)


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks of a class with equal loop counts; each one represents `weight` ranks."""

    rank_class: RankClass
    ranks: Progression
    weight: int = 1


def group_ranks(rank_class: RankClass) -> list[RankGroup]:
    """Group the ranks of a class by their loop counts.

    Raises
    ------
    ValueError
        If there are too many groups, or counts are irregular.
    """
    nodes, parents = number_nodes(rank_class.body)
    # each group, with the total iterations of its loops so far
    groups = [(RankGroup(rank_class, ranks), {-1: 1}) for ranks in rank_class.ranks]
    for number, node in enumerate(nodes):
        if not isinstance(node, Loop):
            continue
        split: list[tuple[RankGroup, dict[int, int]]] = []
        for group, iterations in groups:
            entry_count = iterations[parents[number]]
            parts = _split_by_counts(group, node.counts) if entry_count else [(group, 0)]
            split += [(part, iterations | {number: total}) for part, total in parts]
        groups = split
        if len(groups) > _MAX_GROUPS:
            raise ValueError(
                f"The ranks have {len(groups):,} different combinations of loop counts, which is too many."
            )
    return [group for group, _ in groups]


def _split_by_counts(group: RankGroup, counts: Vector) -> list[tuple[RankGroup, int]]:
    """Split a group by the counts of a loop, and compute the total iterations of each part."""
    blocks = divide_block(group.ranks, counts)
    if blocks is None:
        raise ValueError("The loop counts of the ranks are too irregular.")
    parts: list[tuple[RankGroup, int]] = []
    for block in blocks:
        for part in _split_varying(replace(group, ranks=block), counts):
            parts.append((part, rows_sum(find_block(counts, Progression(part.ranks.start)).values)))
    return parts


def _split_varying(group: RankGroup, counts: Vector) -> Iterator[RankGroup]:
    """Yield groups of equal counts; in dimensions with different counts, one rank represents several."""
    block = find_block(counts, group.ranks)
    varying_places = block.varying_dimensions()
    if not varying_places:
        yield group
        return
    parts = [group]
    for place in varying_places:
        parts = [part for part in parts for part in _represent_dimension(part, place)]
    yield from parts


def _represent_dimension(group: RankGroup, place: int) -> Iterator[RankGroup]:
    """Divide a dimension into parts, and yield the middle step of each part with the part's weight."""
    count, stride = group.ranks.counts[place], group.ranks.strides[place]
    edges = [count * part // min(count, _GROUPS_PER_DIMENSION) for part in range(min(count, _GROUPS_PER_DIMENSION) + 1)]
    for low, high in pairwise(edges):
        start = group.ranks.start + stride * ((low + high - 1) // 2)
        counts = (*group.ranks.counts[:place], 1, *group.ranks.counts[place + 1 :])
        yield replace(group, ranks=replace(group.ranks, start=start, counts=counts), weight=group.weight * (high - low))


def _list_requests(
    group: RankGroup, formats: CallFormats, node: npt.NDArray[np.int32], start_s: Reals, end_s: Reals
) -> Iterator[pl.DataFrame]:
    """Yield the requests of each node for a group of ranks."""
    nested = find_nested_calls(group.rank_class)
    order = np.argsort(node, kind="stable")
    nodes, _ = number_nodes(group.rank_class.body)
    edges = np.searchsorted(node[order], np.arange(len(nodes) + 1))
    for number, call in enumerate(nodes):
        at = order[edges[number] : edges[number + 1]]
        if not isinstance(call, Call) or nested[number] or not at.size:
            continue
        call_format = formats.find(call)
        if call_format is None or not is_request(call_format):
            continue
        volumes = _volumes(request_size(split_arguments(call), call_format, formats), group, at.size)
        yield pl.DataFrame(
            {
                "module": pl.repeat(call_format.layer, at.size, eager=True),
                "direction": pl.repeat(call_format.operation, at.size, eager=True),
                "start_s": start_s[at],
                "end_s": end_s[at],
                "bytes": pl.repeat(None, at.size, dtype=pl.Float64, eager=True) if volumes is None else volumes,
                "request_count": np.full(at.size, group.ranks.size * group.weight),
            },
            schema=SCHEMA,
        )


def _volumes(size: Size | None, group: RankGroup, executed: int) -> Reals | None:
    """Compute the bytes of all ranks of a group for each execution of a call; None if unknown."""
    vectors = [] if size is None else [part for part in (size.count, size.element_bytes) if not isinstance(part, int)]
    blocks: list[Progression] | None = [group.ranks]
    for vector in vectors:
        parts = [divide_block(block, vector) for block in blocks or ()]
        blocks = (
            None
            if blocks is None or None in parts
            else [block for divide_block in parts if divide_block for block in divide_block]
        )
    if blocks is None:
        return None
    total = np.zeros(executed)
    for block in blocks:
        volumes = volumes_by_execution(size, block, executed)
        if volumes is None:
            return None
        total += volumes.astype(np.float64)
    return total * group.weight
