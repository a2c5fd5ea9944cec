"""Compression of traces as ScalaTrace does it: loops within a rank, values with rank lists across ranks.

Ranks whose calls fold into the same loops over the same templates are one rank class; each number in its calls
becomes a vector over the class's ranks and executions (paper: DOI 10.1145/2832106.2832108, section 2). ScalaTrace
merges ranks pairwise along a radix tree, matching event by event; here whole foldings are compared, which gives the
same sharing for SPMD programs and takes one pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.arrays import Ints, Reals, offsets_of
from transforms.traces.folding import FoldedCall, FoldedLoop, FoldedNode, Folder
from transforms.traces.templates import Templates, templates_of
from transforms.traces.time_histograms import gaps_and_durations, histograms
from transforms.traces.trace import (
    START,
    Call,
    CompressedTrace,
    Gap,
    Loop,
    Node,
    RankClass,
    Slot,
    TimeHistogram,
    Vector,
)
from transforms.traces.vectors import rank_lists, vector_of


class RankCalls(Protocol):
    """The calls of a rank: its distinct calls, which of them each one is, and when it began and was over.

    signatures: level, module, function, arguments. order (N): rows of `signatures`. began_s, ceased_s (N) [s].
    """

    @property
    def rank(self) -> int:
        """Return the rank."""

    @property
    def signatures(self) -> pl.DataFrame:
        """Return the distinct calls."""

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """Return which of the distinct calls each call is."""

    @property
    def began_s(self) -> Reals:
        """Return when each call began [s]."""

    @property
    def ceased_s(self) -> Reals:
        """Return when each call was over [s]."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """Ranks with the same templates in the same order: their common nodes, and what differs.

    ranks (R), rising. first (R, N): where the numbers of each call's slots begin. gaps_s, durations_s (R, N).
    """

    nodes: tuple[FoldedNode, ...]
    ranks: Ints
    first: Ints
    gaps_s: Reals
    durations_s: Reals


def compress(process_count: int, ranks: Iterable[RankCalls]) -> CompressedTrace:
    """Return the compressed trace of a run of so many processes; expansion gives back each call of each rank.

    Raises ValueError where arguments have a NUL in them.
    """
    return compress_together([(process_count, ranks)])[0]


def compress_together(traces: Sequence[tuple[int, Iterable[RankCalls]]]) -> tuple[CompressedTrace, ...]:
    """Return several traces compressed, with the same templates for the same calls in all of them.

    A number that is filled up with zeros in one of the traces is so in all of them. Raises ValueError where a rank
    comes twice, or is not one of its run.
    """
    held = [(count, [calls for calls in ranks if calls.order.size]) for count, ranks in traces]
    for count, ranks in held:
        _check_ranks(count, [calls.rank for calls in ranks])
    signatures = [calls.signatures for _, ranks in held for calls in ranks]
    if not signatures:
        return tuple(CompressedTrace(count, ()) for count, _ in held)
    templates = templates_of(signatures)
    places = iter(offsets_of([frame.height for frame in signatures]).tolist())
    return tuple(CompressedTrace(count, _classes(ranks, templates, places)) for count, ranks in held)


def _check_ranks(process_count: int, ranks: Sequence[int]) -> None:
    if len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(process_count)):
        raise ValueError(f"the ranks are not those of {process_count} processes, each of them once")


def _classes(ranks: Sequence[RankCalls], templates: Templates, places: Iterator[int]) -> tuple[RankClass, ...]:
    """Return the classes of a trace's ranks; `places` says where each rank's signatures begin among all."""
    alike: dict[bytes, list[tuple[RankCalls, int]]] = {}
    for calls, place in zip(ranks, places, strict=False):
        symbols = templates.number[calls.order.astype(np.int64) + place]
        alike.setdefault(hashlib.blake2b(symbols.tobytes()).digest(), []).append((calls, place))
    folder = Folder()
    classes: dict[tuple[int, ...], list[_Alike]] = {}
    for members in alike.values():
        shape, group = _folded(members, templates, folder)
        classes.setdefault(shape, []).append(group)
    found = [_Class(templates, groups).built() for groups in classes.values()]
    return tuple(sorted(found, key=lambda one: one.ranks[0].start))


def _folded(
    members: Sequence[tuple[RankCalls, int]], templates: Templates, folder: Folder
) -> tuple[tuple[int, ...], _Alike]:
    members = sorted(members, key=lambda member: member[0].rank)
    rows = np.stack([calls.order.astype(np.int64) + place for calls, place in members])
    shape, nodes = folder.fold(templates.number[rows[0]])
    times = [
        gaps_and_durations(calls.signatures["level"].to_numpy()[calls.order], calls.began_s, calls.ceased_s)
        for calls, _ in members
    ]
    ranks = np.array([calls.rank for calls, _ in members], np.int64)
    gaps_s, durations_s = (np.stack(part) for part in zip(*times, strict=True))
    return shape, _Alike(nodes, ranks, templates.first[rows], gaps_s, durations_s)


class _Class:
    """Groups of ranks that fold alike, on the way to a rank class."""

    def __init__(self, templates: Templates, groups: Sequence[_Alike]) -> None:
        self._templates = templates
        self._groups = groups
        self._gaps, self._durations = _times(groups)
        self._numbers = iter(range(len(self._durations)))

    def built(self) -> RankClass:
        """Return the rank class."""
        ranks = np.sort(np.concatenate([group.ranks for group in self._groups]))
        return RankClass(rank_lists(ranks), self._body([group.nodes for group in self._groups]))

    def _body(self, bodies: Sequence[tuple[FoldedNode, ...]]) -> tuple[Node, ...]:
        return tuple(self._node(nodes) for nodes in zip(*bodies, strict=True))

    def _node(self, nodes: Sequence[FoldedNode]) -> Node:
        number = next(self._numbers)
        calls = [node for node in nodes if isinstance(node, FoldedCall)]
        if calls:
            return self._call(number, calls)
        loops = [node for node in nodes if isinstance(node, FoldedLoop)]
        counts = [np.tile(loop.counts, (group.ranks.size, 1)) for loop, group in zip(loops, self._groups, strict=True)]
        return Loop(self._vector(counts), self._body([loop.body for loop in loops]))

    def _call(self, number: int, calls: Sequence[FoldedCall]) -> Call:
        template = self._templates.templates[calls[0].symbol]
        first = [group.first[:, call.positions] for call, group in zip(calls, self._groups, strict=True)]
        slots = [
            Slot(width, self._vector([self._templates.numbers[places + slot] for places in first]))
            for slot, width in enumerate(template.widths)
        ]
        gaps, durations = self._gaps[number], self._durations[number]
        return Call(template.module, template.function, template.level, template.texts, tuple(slots), gaps, durations)

    def _vector(self, rows: Sequence[Ints]) -> Vector:
        """Return the vector of rows of values, one for each rank of each group; they can differ in length."""
        if len(rows) == 1:
            return vector_of(self._groups[0].ranks, rows[0])
        lengths = np.array([part.shape[1] for part in rows])
        shares: list[Vector] = []
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length).tolist()
            ranks = np.concatenate([self._groups[place].ranks for place in places])
            order = np.argsort(ranks)
            shares.append(vector_of(ranks[order], np.concatenate([rows[place] for place in places])[order]))
        return tuple(sorted((share for part in shares for share in part), key=lambda share: share.ranks.start))


def _times(groups: Sequence[_Alike]) -> tuple[list[tuple[Gap, ...]], list[TimeHistogram]]:
    """Return the gaps and the durations of each node of a class; those of loops are empty."""
    nodes = [_node_at(group.nodes, group.first.shape[1]) for group in groups]
    total = _node_count(groups[0].nodes)
    previous = [np.concatenate([[START], node[:-1]]) for node in nodes]
    pairs = [(before + 1) * total + node for before, node in zip(previous, nodes, strict=True)]
    sizes = [group.ranks.size for group in groups]
    spread = np.concatenate([np.tile(part, size) for part, size in zip(pairs, sizes, strict=True)])
    known, which = np.unique(spread, return_inverse=True)
    gaps_s = np.concatenate([group.gaps_s.reshape(-1) for group in groups])
    durations_s = np.concatenate([group.durations_s.reshape(-1) for group in groups])
    gaps: list[list[Gap]] = [[] for _ in range(total)]
    for pair, histogram in zip(known.tolist(), histograms(gaps_s, which, known.size), strict=True):
        gaps[pair % total].append(Gap(pair // total - 1, histogram))
    return [tuple(part) for part in gaps], histograms(durations_s, spread % total, total)


def _node_at(nodes: Sequence[FoldedNode], call_count: int) -> Ints:
    """Return the number of the node that each call of a rank is."""
    found = np.empty(call_count, np.int64)

    def place(nodes: Sequence[FoldedNode], number: int) -> int:
        for node in nodes:
            if isinstance(node, FoldedCall):
                found[node.positions] = number
                number += 1
            else:
                number = place(node.body, number + 1)
        return number

    place(nodes, 0)
    return found


def _node_count(nodes: Sequence[FoldedNode]) -> int:
    return sum(1 if isinstance(node, FoldedCall) else 1 + _node_count(node.body) for node in nodes)
