"""The server's side of a compressed trace: when all ranks together read and write how many bytes.

Ranks that go through their loops equally often have one timeline, made of the mean times of the calls [1, section 3];
each of their reads and writes is then one interval, with the bytes of all of these ranks, in closed form. So its size
is that of one rank's calls for each kind of rank, whatever the number of ranks. Ranks whose loops' counts grow from
rank to rank are taken together in up to 16 parts along each such dimension; the one in the middle stands for its part.

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
from iosig.transforms.traces.expansion import MOST_CALLS, executions, mean_times, numbered
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.rank_blocks import block_of, refined, rows_sum
from iosig.transforms.traces.requests import Forms, Size, exact_volumes, fields, is_request, nested_nodes, size_asked
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Vector

#: parts along a dimension of ranks whose loops' counts differ from rank to rank
_PARTS = 16
#: kinds of ranks
_MOST_KINDS = 4096

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
    """The outer reads and writes of all ranks, and when the last call of any rank is over [s].

    intervals: in order of time, with the columns of `SCHEMA`: each with the bytes of all ranks that make the request
    at once, NULL where they are not known; `request_count` is how many ranks these are.
    """

    intervals: pl.DataFrame
    duration_s: float


def timeline(trace: CompressedTrace, forms: Forms, most_calls: int = MOST_CALLS) -> Timeline:
    """Return the reads and writes of a trace over time.

    Raises ValueError where the calls of all kinds of ranks are more than most_calls, or their loops too irregular.
    """
    kinds = [kind for rank_class in trace.classes for kind in kinds_of(rank_class)]
    if len(kinds) > _MOST_KINDS:
        raise ValueError(f"The ranks go through their loops in {len(kinds):,} ways, which are too many.")
    pieces: list[pl.DataFrame] = []
    duration_s = 0.0
    for kind in kinds:
        made = executions(kind.rank_class, kind.ranks.start, most_calls)
        most_calls -= made.node.size
        start_s, end_s = mean_times(made)
        duration_s = max(duration_s, float(end_s.max(initial=0.0)))
        pieces += _requests(kind, forms, made.node, start_s, end_s)
    intervals = pl.concat([pl.DataFrame(schema=SCHEMA), *pieces])
    return Timeline(intervals.sort("start_s", "end_s", "direction", "module"), duration_s)


@dataclass(frozen=True, slots=True)
class Kind:
    """Ranks of a class that go through all loops equally often; each stands for `weight` ranks."""

    rank_class: RankClass
    ranks: Progression
    weight: int = 1


def kinds_of(rank_class: RankClass) -> list[Kind]:
    """Return the ranks of a class by how often they go through each loop."""
    nodes, parents = numbered(rank_class.body)
    # each kind with the iterations of the loops so far
    found = [(Kind(rank_class, ranks), {-1: 1}) for ranks in rank_class.ranks]
    for number, node in enumerate(nodes):
        if not isinstance(node, Loop):
            continue
        split: list[tuple[Kind, dict[int, int]]] = []
        for kind, iterations in found:
            entered = iterations[parents[number]]
            parts = _alike(kind, node.counts) if entered else [(kind, 0)]
            split += [(part, iterations | {number: total}) for part, total in parts]
        found = split
        if len(found) > _MOST_KINDS:
            raise ValueError(f"The ranks go through their loops in {len(found):,} ways, which are too many.")
    return [kind for kind, _ in found]


def _alike(kind: Kind, counts: Vector) -> list[tuple[Kind, int]]:
    """Return a kind's ranks by the counts of a loop, and how often each goes through it in all."""
    blocks = refined(kind.ranks, counts)
    if blocks is None:
        raise ValueError("The iterations of a loop follow no rule over the ranks.")
    found: list[tuple[Kind, int]] = []
    for block in blocks:
        for part in _evened(replace(kind, ranks=block), counts):
            found.append((part, rows_sum(block_of(counts, Progression(part.ranks.start)).values)))
    return found


def _evened(kind: Kind, counts: Vector) -> Iterator[Kind]:
    """Yield ranks in parts whose counts do not grow from rank to rank: of those that do, single ones for many."""
    block = block_of(counts, kind.ranks)
    moving = block.moving_dims()
    if not moving:
        yield kind
        return
    parts = [kind]
    for place in moving:
        parts = [part for whole in parts for part in _middles(whole, place)]
    yield from parts


def _middles(kind: Kind, place: int) -> Iterator[Kind]:
    """Yield the middle steps of the parts of a dimension, each for all steps of its part."""
    count, stride = kind.ranks.counts[place], kind.ranks.strides[place]
    edges = [count * part // min(count, _PARTS) for part in range(min(count, _PARTS) + 1)]
    for low, high in pairwise(edges):
        start = kind.ranks.start + stride * ((low + high - 1) // 2)
        counts = (*kind.ranks.counts[:place], 1, *kind.ranks.counts[place + 1 :])
        yield replace(kind, ranks=replace(kind.ranks, start=start, counts=counts), weight=kind.weight * (high - low))


def _requests(
    kind: Kind, forms: Forms, node: npt.NDArray[np.int32], start_s: Reals, end_s: Reals
) -> Iterator[pl.DataFrame]:
    """Yield the requests of each node of a kind of ranks."""
    nested = nested_nodes(kind.rank_class)
    order = np.argsort(node, kind="stable")
    nodes, _ = numbered(kind.rank_class.body)
    edges = np.searchsorted(node[order], np.arange(len(nodes) + 1))
    for number, call in enumerate(nodes):
        at = order[edges[number] : edges[number + 1]]
        if not isinstance(call, Call) or nested[number] or not at.size:
            continue
        form = forms.of(call)
        if form is None or not is_request(form):
            continue
        asked = _volumes(size_asked(fields(call), form, forms), kind, at.size)
        yield pl.DataFrame(
            {
                "module": pl.repeat(form.layer, at.size, eager=True),
                "direction": pl.repeat(form.deed, at.size, eager=True),
                "start_s": start_s[at],
                "end_s": end_s[at],
                "bytes": pl.repeat(None, at.size, dtype=pl.Float64, eager=True) if asked is None else asked,
                "request_count": np.full(at.size, kind.ranks.size * kind.weight),
            },
            schema=SCHEMA,
        )


def _volumes(size: Size | None, kind: Kind, executed: int) -> Reals | None:
    """Return the bytes of all ranks of a kind for each execution of a call; None if they are not known."""
    vectors = [] if size is None else [part for part in (size.count, size.each) if not isinstance(part, int)]
    blocks: list[Progression] | None = [kind.ranks]
    for vector in vectors:
        parts = [refined(block, vector) for block in blocks or ()]
        blocks = None if blocks is None or None in parts else [part for own in parts if own for part in own]
    if blocks is None:
        return None
    found = np.zeros(executed)
    for block in blocks:
        own = exact_volumes(size, block, executed)
        if own is None:
            return None
        found += own.astype(np.float64)
    return found * kind.weight
