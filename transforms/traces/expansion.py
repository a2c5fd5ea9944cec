"""Expand a single rank's calls from a compressed trace, in order of execution.

A share is the part of a vector for a list of ranks. Division by the nested strides yields the share that contains a
rank, and the rank's index in the share. The counts of loops determine the number of executions of each node, and their
positions. The run time therefore grows with the nodes of the rank's class and its own calls, not with the number of
ranks.

Times are means: each call begins its mean gap after the preceding event, see `Gap`, and lasts its mean duration [1,
section 3: delta times]. The order of calls is that of the trace. If means of different executions contradict the order
(an inner call would begin after a later outer one), a call begins no earlier than the previous one.

[1] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of, owners
from iosig.transforms.traces.progressions import Progression, Stretch, row_bounds, row_size, row_sum
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Loop, Node, RankClass, Share, Slot, Vector

Ints32 = npt.NDArray[np.int32]

#: maximum number of calls of a rank, which take about 2 GB as a frame
MAX_CALLS = 1 << 24
#: maximum number of steps in the search for a rank if strides are not nested
_MAX_STEPS = 10_000
_LONGS = np.iinfo(np.int64)

SCHEMA = {
    "call": pl.Int64,
    "node": pl.Int32,
    "level": pl.Int64,
    "module": pl.String,
    "function": pl.String,
    "arguments": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
}


# ---- rank lists and values


def find_index(ranks: Progression, rank: int) -> tuple[int, ...] | None:
    """Find the index of a number in a progression.

    Parameters
    ----------
    ranks
        Progression, in general with nested strides.
    rank
        Number to look up.

    Returns
    -------
    tuple[int, ...] or None
        One index per dimension; None if the number does not occur. Nested strides have one candidate per dimension.
        Other strides need a search, in descending order of strides, which returns the lowest indices.

    Raises
    ------
    ValueError
        If the search exceeds its limit.
    """
    dims = sorted(range(len(ranks.counts)), key=lambda d: (-abs(ranks.strides[d]), d))
    reach = [abs(ranks.strides[d]) * (ranks.counts[d] - 1) for d in dims]
    low = [min(0, ranks.strides[d]) * (ranks.counts[d] - 1) for d in dims]
    if not ranks.size:
        return None
    # depth-first search: dimension, remainder for it and the inner dimensions, indices of the outer dimensions
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, rank - ranks.start, ())]
    for _ in range(_MAX_STEPS):
        if not stack:
            return None
        depth, remainder, outer_indices = stack.pop()
        if depth == len(dims):
            if remainder == 0:
                return tuple(index for _, index in sorted(zip(dims, outer_indices, strict=True)))
            continue
        inner_low, inner_reach = sum(low[depth + 1 :]), sum(reach[depth + 1 :])
        stride, count = ranks.strides[dims[depth]], ranks.counts[dims[depth]]
        indices = _candidates(remainder - inner_low - inner_reach, remainder - inner_low, stride, count)
        stack += [
            (depth + 1, remainder - stride * index, (*outer_indices, index)) for index in reversed(indices[:_MAX_STEPS])
        ]
    raise ValueError(f"The strides {ranks.strides} of a rank list of {ranks.size} ranks are not nested.")


def _candidates(lowest: int, highest: int, stride: int, count: int) -> range:
    """List the indices with offsets between `lowest` and `highest`."""
    if stride == 0:
        return range(1 if lowest <= 0 <= highest else 0)
    if stride < 0:
        lowest, highest, stride = -highest, -lowest, -stride
    return range(max(0, -(-lowest // stride)), min(count - 1, highest // stride) + 1)


def find_class(trace: CompressedTrace, rank: int) -> RankClass | None:
    """Find the class of a rank; None if the rank makes no calls."""
    for rank_class in trace.classes:
        if any(find_index(ranks, rank) is not None for ranks in rank_class.ranks):
            return rank_class
    return None


#: linear combination of rows of equal length, as (factor, row) pairs: the values of one rank
Rows = tuple[tuple[int, tuple[Stretch, ...]], ...]


def find_share(vector: Vector, rank: int) -> tuple[Share, tuple[int, ...]]:
    """Find the share of a vector that contains a rank, and the rank's index in it."""
    for share in vector:
        place = find_index(share.ranks, rank)
        if place is not None:
            return share, place
    raise ValueError(f"Rank {rank} is in no share of a vector of its class.")


def find_rows(vector: Vector, rank: int, executed: int) -> Rows:
    """Express the values of one rank as a linear combination of rows, without expansion.

    Raises
    ------
    ValueError
        If the number of values differs from the number of executions.
    """
    share, place = find_share(vector, rank)
    rows = ((1, share.values), *zip(place, share.shifts, strict=True))
    sizes = {row_size(row) for _, row in rows}
    if sizes != {executed}:
        raise ValueError(f"Rank {rank} has {sorted(sizes)} values for {executed} executions of a node.")
    return tuple((times, row) for times, row in rows if times)


def rank_values(vector: Vector, rank: int) -> Ints:
    """Values of one rank, one per execution of the node."""
    return expand_rows(find_rows(vector, rank, row_size(find_share(vector, rank)[0].values)))


def expand_rows(rows: Rows) -> Ints:
    """Expand a linear combination of rows; raise ValueError on 64-bit overflow."""
    # intermediate results must not overflow either
    ends = [(factor * low, factor * high) for factor, row in rows for low, high in [row_bounds(row)]]
    bounds = [
        sum(min(pair) for pair in ends),
        sum(max(pair) for pair in ends),
        *(end for pair in ends for end in pair),
    ]
    if min(bounds) < _LONGS.min or max(bounds) > _LONGS.max:
        raise ValueError("The values of a rank exceed 64 bits.")
    total = np.zeros(row_size(rows[0][1]), np.int64)
    for factor, row in rows:
        first = 0
        for stretch in row:
            total[first : first + stretch.size] += factor * (
                stretch.start if _is_constant(stretch) else stretch.values()
            )
            first += stretch.size
    return total


def _is_constant(stretch: Stretch) -> TypeGuard[Progression]:
    """Whether a stretch repeats a single number, which is the common case."""
    return isinstance(stretch, Progression) and not any(stretch.strides)


# ---- the order of execution


@dataclass(frozen=True, slots=True)
class Executions:
    """Calls of a rank in order: node of each call (N), and number of the node's execution (N, from 0).

    nodes: all nodes of the class by number. counts: number of executions of each node; for a loop, number of entries.
    """

    nodes: tuple[Node, ...]
    counts: tuple[int, ...]
    node: Ints32
    occurrence: Ints


def number_nodes(body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """Assign numbers to the nodes of a body depth-first, a loop before its body.

    Returns
    -------
    tuple[tuple[Node, ...], tuple[int, ...]]
        Nodes by number, and the number of the enclosing loop of each node; -1 at the top level.
    """
    nodes: list[Node] = []
    parents: list[int] = []
    stack: list[tuple[Node, int]] = [(node, -1) for node in reversed(body)]
    while stack:
        node, parent = stack.pop()
        if isinstance(node, Loop):
            stack += [(child, len(nodes)) for child in reversed(node.body)]
        nodes.append(node)
        parents.append(parent)
    return tuple(nodes), tuple(parents)


def count_executions(nodes: Sequence[Node], parents: Sequence[int], rank: int) -> tuple[int, ...]:
    """Count the executions of each node by a rank (for a loop: entries), in closed form.

    Raises
    ------
    ValueError
        If the counts of a loop do not match its entries.
    """
    counts: list[int] = []
    iterations: dict[int, int] = {-1: 1}
    for number, (node, parent) in enumerate(zip(nodes, parents, strict=True)):
        counts.append(iterations[parent])
        if isinstance(node, Loop):
            iterations[number] = _iterations(node, counts[-1], rank)
    return tuple(counts)


def _iterations(loop: Loop, entry_count: int, rank: int) -> int:
    """Total number of iterations of a loop by a rank."""
    if not entry_count:
        return 0
    return sum(factor * row_sum(row) for factor, row in find_rows(loop.counts, rank, entry_count))


def list_executions(rank_class: RankClass, rank: int, max_calls: int = MAX_CALLS) -> Executions:
    """List the calls of a rank in order.

    Parameters
    ----------
    rank_class
        Class of the rank.
    rank
        Rank to expand.
    max_calls
        Maximum number of calls, and of entries of a loop.

    Returns
    -------
    Executions
        Node and execution number of each call.

    Raises
    ------
    ValueError
        If the rank exceeds the maximum; nothing is expanded in that case.
    """
    nodes, parents = number_nodes(rank_class.body)
    counts = count_executions(nodes, parents, rank)
    calls = sum(count for node, count in zip(nodes, counts, strict=True) if isinstance(node, Call))
    if max(calls, *counts, 0) > max_calls:
        raise ValueError(f"Rank {rank} has {max(calls, *counts):,} calls, more than {max_calls:,}.")
    starts = _find_positions(nodes, parents, counts, rank)
    node = np.empty(calls, np.int32)
    occurrence = np.empty(calls, np.int64)
    for number, places in starts.items():
        node[places] = number
        occurrence[places] = np.arange(places.size)
    return Executions(nodes, counts, node, occurrence)


def _find_positions(nodes: Sequence[Node], parents: Sequence[int], counts: Sequence[int], rank: int) -> dict[int, Ints]:
    """Positions of each call node's executions among all calls.

    First compute the lengths, in calls, of all executions of all nodes from the innermost outward; then the positions
    from the outermost inward.
    """
    loops = {
        number: expand_rows(find_rows(node.counts, rank, counts[number])) if counts[number] else np.empty(0, np.int64)
        for number, node in enumerate(nodes)
        if isinstance(node, Loop)
    }
    if any((iterations < 0).any() for iterations in loops.values()):
        raise ValueError(f"A loop has a negative number of iterations on rank {rank}.")
    # by loop number: number of calls in each iteration of the body
    lengths: dict[int, Ints] = {
        number: np.zeros(int(entry_count.sum()), np.int64) for number, entry_count in loops.items()
    }
    lengths[-1] = np.zeros(1, np.int64)
    children: defaultdict[int, list[int]] = defaultdict(list)
    for number in reversed(range(len(nodes))):
        children[parents[number]].append(number)
        lengths[parents[number]] += _entry_lengths(lengths[number], loops[number]) if number in loops else 1
    starts = {-1: np.zeros(1, np.int64)}
    for parent in [-1, *loops]:
        place = starts.pop(parent)
        for number in reversed(children[parent]):
            starts[number] = place
            if number in loops:
                starts[number] = np.repeat(place, loops[number]) + _iteration_offsets(lengths[number], loops[number])
                place = place + _entry_lengths(lengths[number], loops[number])
            else:
                place = place + 1
    return starts


def _entry_lengths(lengths: Ints, iterations: Ints) -> Ints:
    """Count the calls per entry of a loop, from the number of calls per iteration."""
    bounds = offsets_of(lengths)[offsets_of(iterations)]
    return np.diff(bounds)


def _iteration_offsets(lengths: Ints, iterations: Ints) -> Ints:
    """Count the calls between the entry of a loop and each iteration."""
    starts = offsets_of(lengths)
    offsets: Ints = starts[:-1] - np.repeat(starts[offsets_of(iterations)[:-1]], iterations)
    return offsets


def previous_nodes(node: Ints32) -> Ints32:
    """Node that was executed before each call; `START` for the first call."""
    return np.concatenate((np.array([START], np.int32), node[:-1]))[: node.size]


# ---- arguments


def _format_arguments(executed: Executions, rank: int) -> pl.Series:
    """Arguments of all calls in order.

    Nodes with equal numbers of slots are concatenated in one operation, column by column.
    """
    by_slots: defaultdict[int, list[int]] = defaultdict(list)
    for number, node in enumerate(executed.nodes):
        if isinstance(node, Call) and executed.counts[number]:
            by_slots[len(node.slots)].append(number)
    if not by_slots:
        return pl.Series("arguments", [], pl.String)
    parts: list[pl.Series] = []
    starts = np.zeros(len(executed.nodes), np.int64)
    place = 0
    for numbers in by_slots.values():
        parts.append(_format_nodes(executed, numbers, rank))
        for number in numbers:
            starts[number] = place
            place += executed.counts[number]
    return pl.concat(parts).gather(starts[executed.node] + executed.occurrence).alias("arguments")


def _format_nodes(executed: Executions, numbers: list[int], rank: int) -> pl.Series:
    """Arguments of nodes with equal numbers of slots, node by node."""
    calls = [node for number in numbers if isinstance(node := executed.nodes[number], Call)]
    counts = [executed.counts[number] for number in numbers]
    owner = owners(offsets_of(counts))
    columns: list[pl.Series] = []
    for place in range(len(calls[0].texts)):
        columns.append(pl.Series([call.texts[place] for call in calls], dtype=pl.String).gather(owner))
        if place < len(calls[0].slots):
            slots = [call.slots[place] for call in calls]
            columns.append(_format_numbers(slots, counts, rank))
    return pl.select(pl.concat_str(columns)).to_series()


def _format_numbers(slots: list[Slot], counts: list[int], rank: int) -> pl.Series:
    """Format the numbers of slots as they are logged, padded with zeros, slot by slot."""
    rows: list[Ints] = []
    for slot, count in zip(slots, counts, strict=True):
        rows.append(expand_rows(find_rows(slot.vector, rank, count)))
    text = pl.Series(np.concatenate(rows)).cast(pl.String)
    if max(slot.width for slot in slots) <= 1:
        return text
    widths = pl.Series(np.repeat([max(slot.width, 1) for slot in slots], counts))
    return pl.select(pl.lit(text).str.zfill(pl.lit(widths))).to_series()


# ---- times


def compute_mean_times(executed: Executions) -> tuple[Reals, Reals]:
    """Start and end of each call of a rank [s], from the means of its histograms."""
    durations = np.array([node.durations.mean_s if isinstance(node, Call) else 0.0 for node in executed.nodes])
    levels = np.array([node.level if isinstance(node, Call) else 0 for node in executed.nodes], np.int64)
    node = executed.node
    return place_in_time(levels[node], _mean_gaps(executed), durations[node])


def _mean_gaps(executed: Executions) -> Reals:
    """Mean gap of each call after its predecessor [s]; if unknown, the mean of all gaps of the node."""
    width = len(executed.nodes) + 1
    keyed: dict[int, float] = {}
    overall = np.zeros(len(executed.nodes))
    for number, node in enumerate(executed.nodes):
        if isinstance(node, Call) and (observed := [gap for gap in node.gaps if gap.histogram.count > 0]):
            total = sum(gap.histogram.count for gap in observed)
            overall[number] = math.fsum(gap.histogram.mean_s * (gap.histogram.count / total) for gap in observed)
            keyed |= {number * width + gap.previous + 1: gap.histogram.mean_s for gap in observed}
    defaults = overall[executed.node]
    if not keyed:
        return defaults
    keys = np.array(sorted(keyed))
    means = np.array([keyed[key] for key in keys.tolist()])
    call_keys = executed.node.astype(np.int64) * width + previous_nodes(executed.node) + 1
    at = np.minimum(np.searchsorted(keys, call_keys), keys.size - 1)
    return np.where(keys[at] == call_keys, means[at], defaults)


def place_in_time(levels: Ints, gaps_s: Reals, durations_s: Reals) -> tuple[Reals, Reals]:
    """Compute start and end of calls from gaps and durations.

    Parameters
    ----------
    levels : (N,)
        Nesting level of each call, in order.
    gaps_s, durations_s : (N,)
        Gap before each call, and its duration [s].

    Returns
    -------
    tuple[Reals, Reals]
        Start and end [s]; starts never decrease.

    Notes
    -----
    The reference of a gap is the last earlier call that is not nested deeper: its end if the levels are equal,
    otherwise its start; 0 without an earlier call.
    """
    start_s = np.zeros(levels.size)
    for level in np.unique(levels).tolist():
        at = np.flatnonzero(levels <= level)
        is_own = levels[at] == level
        # cumulative sum over all calls of the level, minus the sum up to the start of the enclosing call
        steps = np.where(is_own, gaps_s[at] + durations_s[at], 0.0)
        ends = np.cumsum(steps)
        opener = np.maximum.accumulate(np.where(is_own, -1, np.arange(at.size)))
        base = np.where(opener >= 0, start_s[at][opener] - ends[opener], 0.0)
        level_calls = at[is_own]
        start_s[level_calls] = (base + ends)[is_own] - durations_s[level_calls]
    start_s = np.maximum.accumulate(np.maximum(start_s, 0.0)) if start_s.size else start_s
    return start_s, start_s + np.maximum(durations_s, 0.0)


# ---- calls of a rank


def rank_calls(trace: CompressedTrace, rank: int, max_calls: int = MAX_CALLS) -> pl.DataFrame:
    """Expand the calls of one rank in order of execution.

    Parameters
    ----------
    trace
        Compressed trace.
    rank
        Rank to expand.
    max_calls
        Maximum number of calls.

    Returns
    -------
    SCHEMA
        One row per call; `call` counts from 0.

    Raises
    ------
    ValueError
        If the rank does not exist, or exceeds the maximum.
    """
    if not 0 <= rank < trace.process_count:
        raise ValueError(f"Rank {rank} does not exist: the trace has {trace.process_count} processes.")
    rank_class = find_class(trace, rank)
    if rank_class is None:
        return pl.DataFrame(schema=SCHEMA)
    executed = list_executions(rank_class, rank, max_calls)
    start_s, end_s = compute_mean_times(executed)
    calls = [node if isinstance(node, Call) else None for node in executed.nodes]
    columns = {
        "level": pl.Series([call and call.level for call in calls], dtype=pl.Int64),
        "module": pl.Series([call and call.module for call in calls], dtype=pl.String),
        "function": pl.Series([call and call.function for call in calls], dtype=pl.String),
    }
    return pl.DataFrame(
        {
            "call": np.arange(executed.node.size, dtype=np.int64),
            "node": executed.node,
            **{name: column.gather(executed.node) for name, column in columns.items()},
            "arguments": _format_arguments(executed, rank),
            "start_s": start_s,
            "end_s": end_s,
        },
        schema=SCHEMA,
    )
