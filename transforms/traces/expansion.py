"""One rank's calls out of a compressed trace, in order, without expanding any other rank.

Which share of a vector has a rank, and which place in it, follows from its nested strides by division; how often each
node is executed and where its executions stand among all calls follow from the loops' counts. So the work grows with
the nodes of the rank's class and its own calls, not with the ranks.

Times are made of means: each call begins its mean gap after what came before it, as `Gap` says, and lasts its mean
duration [1, section 3: delta times]. The calls' order is the traced one; where means of different executions do not
fit one another (a call within another that would begin after what follows), a call begins no earlier than the one
before it.

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
from iosig.transforms.traces.progressions import Progression, Stretch, extremes, size_of, sum_of
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Loop, Node, RankClass, Share, Slot, Vector

Ints32 = npt.NDArray[np.int32]

#: calls of one rank, some 2 GB of frame
MOST_CALLS = 1 << 24
#: steps of the search for a rank in a rank list whose strides are not nested, as rank lists are
_MOST_STEPS = 10_000
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


def place_in(ranks: Progression, rank: int) -> tuple[int, ...] | None:
    """Return the index of a number in a progression, one for each dimension; None if it is not in it.

    Of nested strides (each larger than all that is inside it reaches) there is one candidate per dimension; others
    are searched, the larger strides first, and the lowest indices are taken.
    """
    dims = sorted(range(len(ranks.counts)), key=lambda d: (-abs(ranks.strides[d]), d))
    reach = [abs(ranks.strides[d]) * (ranks.counts[d] - 1) for d in dims]
    low = [min(0, ranks.strides[d]) * (ranks.counts[d] - 1) for d in dims]
    if not ranks.size:
        return None
    # those still to be tried: the dimension, what is left for it and those inside it, the indices before it
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, rank - ranks.start, ())]
    for _ in range(_MOST_STEPS):
        if not stack:
            return None
        depth, left, taken = stack.pop()
        if depth == len(dims):
            if left == 0:
                return tuple(index for _, index in sorted(zip(dims, taken, strict=True)))
            continue
        inner_low, inner_reach = sum(low[depth + 1 :]), sum(reach[depth + 1 :])
        stride, count = ranks.strides[dims[depth]], ranks.counts[dims[depth]]
        found = _candidates(left - inner_low - inner_reach, left - inner_low, stride, count)
        stack += [(depth + 1, left - stride * index, (*taken, index)) for index in reversed(found[:_MOST_STEPS])]
    raise ValueError(f"The strides {ranks.strides} of a rank list of {ranks.size} ranks are not nested.")


def _candidates(lowest: int, highest: int, stride: int, count: int) -> range:
    """Return the indices whose steps lie from lowest to highest."""
    if stride == 0:
        return range(1 if lowest <= 0 <= highest else 0)
    if stride < 0:
        lowest, highest, stride = -highest, -lowest, -stride
    return range(max(0, -(-lowest // stride)), min(count - 1, highest // stride) + 1)


def class_of(trace: CompressedTrace, rank: int) -> RankClass | None:
    """Return the class that a rank is of; None if it made no calls."""
    for found in trace.classes:
        if any(place_in(ranks, rank) is not None for ranks in found.ranks):
            return found
    return None


#: the values of one rank as rows of equal length that are to be added up, each so many times
Rows = tuple[tuple[int, tuple[Stretch, ...]], ...]


def share_of(vector: Vector, rank: int) -> tuple[Share, tuple[int, ...]]:
    """Return the share of a vector that has a rank, and the rank's place in the share's rank list."""
    for share in vector:
        place = place_in(share.ranks, rank)
        if place is not None:
            return share, place
    raise ValueError(f"Rank {rank} is in no share of a vector of its class.")


def rows_of(vector: Vector, rank: int, executed: int) -> Rows:
    """Return the values of one rank as rows to be added up, unexpanded.

    Raises ValueError where they are not as many as the node is executed.
    """
    share, place = share_of(vector, rank)
    rows = ((1, share.values), *zip(place, share.shifts, strict=True))
    sizes = {size_of(row) for _, row in rows}
    if sizes != {executed}:
        raise ValueError(f"Rank {rank} has {sorted(sizes)} values for {executed} executions of a node.")
    return tuple((times, row) for times, row in rows if times)


def values_of(vector: Vector, rank: int) -> Ints:
    """Return the values of one rank, one for each time that the node is executed."""
    return row_values(rows_of(vector, rank, size_of(share_of(vector, rank)[0].values)))


def row_values(rows: Rows) -> Ints:
    """Return rows expanded and added up; raise ValueError where that leaves 64 bits."""
    # each row by itself as well: one that leaves 64 bits cannot be had back by another
    ends = [(times * low, times * high) for times, row in rows for low, high in [extremes(row)]]
    reached = [
        sum(min(pair) for pair in ends),
        sum(max(pair) for pair in ends),
        *(end for pair in ends for end in pair),
    ]
    if min(reached) < _LONGS.min or max(reached) > _LONGS.max:
        raise ValueError("The values of a rank are beyond 64 bits.")
    found = np.zeros(size_of(rows[0][1]), np.int64)
    for times, row in rows:
        place = 0
        for stretch in row:
            found[place : place + stretch.size] += times * (
                stretch.start if _is_constant(stretch) else stretch.values()
            )
            place += stretch.size
    return found


def _is_constant(stretch: Stretch) -> TypeGuard[Progression]:
    """Whether a stretch is one number again and again, as most are."""
    return isinstance(stretch, Progression) and not any(stretch.strides)


# ---- the order of execution


@dataclass(frozen=True, slots=True)
class Executions:
    """The calls of a rank in order: the node of each (N), and which execution of that node it is (N, from 0).

    nodes: all nodes of the class by number; counts: how often each is executed (of a loop: how often it is entered).
    """

    nodes: tuple[Node, ...]
    counts: tuple[int, ...]
    node: Ints32
    occurrence: Ints


def numbered(body: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """Return the nodes of a body by their numbers, a loop before its body, and the loop around each (-1: none)."""
    nodes: list[Node] = []
    parents: list[int] = []
    stack: list[tuple[Node, int]] = [(node, -1) for node in reversed(body)]
    while stack:
        node, parent = stack.pop()
        if isinstance(node, Loop):
            stack += [(inner, len(nodes)) for inner in reversed(node.body)]
        nodes.append(node)
        parents.append(parent)
    return tuple(nodes), tuple(parents)


def node_counts(nodes: Sequence[Node], parents: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return how often a rank executes each node (a loop: enters it), in closed form.

    Raises ValueError where a loop has not as many counts as it is entered.
    """
    counts: list[int] = []
    iterations: dict[int, int] = {-1: 1}
    for number, (node, parent) in enumerate(zip(nodes, parents, strict=True)):
        counts.append(iterations[parent])
        if isinstance(node, Loop):
            iterations[number] = _iterations(node, counts[-1], rank)
    return tuple(counts)


def _iterations(loop: Loop, entered: int, rank: int) -> int:
    """Return how often a rank goes through a loop in all."""
    if not entered:
        return 0
    return sum(times * sum_of(row) for times, row in rows_of(loop.counts, rank, entered))


def executions(rank_class: RankClass, rank: int, most_calls: int = MOST_CALLS) -> Executions:
    """Return the calls of a rank of this class in order.

    Raises ValueError where these, or the entries of a loop, are more than most_calls: before any is expanded.
    """
    nodes, parents = numbered(rank_class.body)
    counts = node_counts(nodes, parents, rank)
    calls = sum(count for node, count in zip(nodes, counts, strict=True) if isinstance(node, Call))
    if max(calls, *counts, 0) > most_calls:
        raise ValueError(f"Rank {rank} has {max(calls, *counts):,} calls, more than {most_calls:,}.")
    starts = _starts(nodes, parents, counts, rank)
    node = np.empty(calls, np.int32)
    occurrence = np.empty(calls, np.int64)
    for number, places in starts.items():
        node[places] = number
        occurrence[places] = np.arange(places.size)
    return Executions(nodes, counts, node, occurrence)


def _starts(nodes: Sequence[Node], parents: Sequence[int], counts: Sequence[int], rank: int) -> dict[int, Ints]:
    """Return the places of each call node's executions among all calls.

    Lengths, in calls, of every execution of every node from the innermost out; then where each execution begins from
    the outermost in.
    """
    loops = {
        number: row_values(rows_of(node.counts, rank, counts[number])) if counts[number] else np.empty(0, np.int64)
        for number, node in enumerate(nodes)
        if isinstance(node, Loop)
    }
    if any((iterations < 0).any() for iterations in loops.values()):
        raise ValueError(f"A loop has fewer than 0 iterations on rank {rank}.")
    # of each body, by the number of its loop: the calls of each time that it is gone through
    lengths: dict[int, Ints] = {number: np.zeros(int(entered.sum()), np.int64) for number, entered in loops.items()}
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
                starts[number] = np.repeat(place, loops[number]) + _before(lengths[number], loops[number])
                place = place + _entry_lengths(lengths[number], loops[number])
            else:
                place = place + 1
    return starts


def _entry_lengths(lengths: Ints, iterations: Ints) -> Ints:
    """Return the calls of each time that a loop is entered, from those of each time that its body is gone through."""
    bounds = offsets_of(lengths)[offsets_of(iterations)]
    return np.diff(bounds)


def _before(lengths: Ints, iterations: Ints) -> Ints:
    """Return, of each time that a body is gone through, the calls since the loop was entered."""
    starts = offsets_of(lengths)
    found: Ints = starts[:-1] - np.repeat(starts[offsets_of(iterations)[:-1]], iterations)
    return found


def previous_nodes(node: Ints32) -> Ints32:
    """Return the node executed before each call, `START` before the first."""
    return np.concatenate((np.array([START], np.int32), node[:-1]))[: node.size]


# ---- arguments


def _texts_of(executed: Executions, rank: int) -> pl.Series:
    """Return the arguments of all calls in order.

    Nodes with equally many slots are put together at once: the texts and the numbers between them, side by side.
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
        parts.append(_joined(executed, numbers, rank))
        for number in numbers:
            starts[number] = place
            place += executed.counts[number]
    return pl.concat(parts).gather(starts[executed.node] + executed.occurrence).alias("arguments")


def _joined(executed: Executions, numbers: list[int], rank: int) -> pl.Series:
    """Return the arguments of nodes with equally many slots, one node behind the other."""
    calls = [node for number in numbers if isinstance(node := executed.nodes[number], Call)]
    counts = [executed.counts[number] for number in numbers]
    which = owners(offsets_of(counts))
    columns: list[pl.Series] = []
    for place in range(len(calls[0].texts)):
        columns.append(pl.Series([call.texts[place] for call in calls], dtype=pl.String).gather(which))
        if place < len(calls[0].slots):
            slots = [call.slots[place] for call in calls]
            columns.append(_digits(slots, counts, rank))
    return pl.select(pl.concat_str(columns)).to_series()


def _digits(slots: list[Slot], counts: list[int], rank: int) -> pl.Series:
    """Return the numbers in slots as they are logged, one slot behind the other."""
    rows: list[Ints] = []
    for slot, count in zip(slots, counts, strict=True):
        rows.append(row_values(rows_of(slot.vector, rank, count)))
    text = pl.Series(np.concatenate(rows)).cast(pl.String)
    if max(slot.width for slot in slots) <= 1:
        return text
    widths = pl.Series(np.repeat([max(slot.width, 1) for slot in slots], counts))
    return pl.select(pl.lit(text).str.zfill(pl.lit(widths))).to_series()


# ---- times


def mean_times(executed: Executions) -> tuple[Reals, Reals]:
    """Return when each call of a rank began and ceased [s], from the means of its histograms."""
    durations = np.array([node.durations.mean_s if isinstance(node, Call) else 0.0 for node in executed.nodes])
    levels = np.array([node.level if isinstance(node, Call) else 0 for node in executed.nodes], np.int64)
    node = executed.node
    return placed_in_time(levels[node], _mean_gaps(executed), durations[node])


def _mean_gaps(executed: Executions) -> Reals:
    """Return the mean gap of each call after the node that was executed before it, else that of all its gaps [s]."""
    width = len(executed.nodes) + 1
    keyed: dict[int, float] = {}
    of_all = np.zeros(len(executed.nodes))
    for number, node in enumerate(executed.nodes):
        if isinstance(node, Call) and (known := [gap for gap in node.gaps if gap.histogram.count > 0]):
            total = sum(gap.histogram.count for gap in known)
            of_all[number] = math.fsum(gap.histogram.mean_s * (gap.histogram.count / total) for gap in known)
            keyed |= {number * width + gap.previous + 1: gap.histogram.mean_s for gap in known}
    found = of_all[executed.node]
    if not keyed:
        return found
    keys = np.array(sorted(keyed))
    means = np.array([keyed[key] for key in keys.tolist()])
    asked = executed.node.astype(np.int64) * width + previous_nodes(executed.node) + 1
    at = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    return np.where(keys[at] == asked, means[at], found)


def placed_in_time(levels: Ints, gaps_s: Reals, durations_s: Reals) -> tuple[Reals, Reals]:
    """Return when calls in order began and ceased [s], all arrays (N).

    A gap is counted from the end of the last call before that is not deeper, if it has the same level, else from its
    start; from 0 where there is none. Begins never decrease.
    """
    began = np.zeros(levels.size)
    for level in np.unique(levels).tolist():
        at = np.flatnonzero(levels <= level)
        is_own = levels[at] == level
        # within one enclosing call the calls of a level follow each other: one sum over all, less what was before
        steps = np.where(is_own, gaps_s[at] + durations_s[at], 0.0)
        ends = np.cumsum(steps)
        opener = np.maximum.accumulate(np.where(is_own, -1, np.arange(at.size)))
        base = np.where(opener >= 0, began[at][opener] - ends[opener], 0.0)
        own = at[is_own]
        began[own] = (base + ends)[is_own] - durations_s[own]
    began = np.maximum.accumulate(np.maximum(began, 0.0)) if began.size else began
    return began, began + np.maximum(durations_s, 0.0)


# ---- all of it


def rank_calls(trace: CompressedTrace, rank: int, most_calls: int = MOST_CALLS) -> pl.DataFrame:
    """Return the calls of one rank in the order of execution, a row each; `call` counts from 0.

    Raises ValueError where there is no such rank, or it has more calls than most_calls.
    """
    if not 0 <= rank < trace.process_count:
        raise ValueError(f"There is no rank {rank} among {trace.process_count}.")
    found = class_of(trace, rank)
    if found is None:
        return pl.DataFrame(schema=SCHEMA)
    executed = executions(found, rank, most_calls)
    began, ceased = mean_times(executed)
    calls = [node if isinstance(node, Call) else None for node in executed.nodes]
    known = {
        "level": pl.Series([call and call.level for call in calls], dtype=pl.Int64),
        "module": pl.Series([call and call.module for call in calls], dtype=pl.String),
        "function": pl.Series([call and call.function for call in calls], dtype=pl.String),
    }
    return pl.DataFrame(
        {
            "call": np.arange(executed.node.size, dtype=np.int64),
            "node": executed.node,
            **{name: column.gather(executed.node) for name, column in known.items()},
            "arguments": _texts_of(executed, rank),
            "start_s": began,
            "end_s": ceased,
        },
        schema=SCHEMA,
    )
