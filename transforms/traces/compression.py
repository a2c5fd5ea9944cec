"""Compress traces in the style of ScalaTrace: loops within a rank, values with rank lists across ranks.

Ranks with calls that fold into the same loops over the same templates form a rank class. Each number in its calls
becomes a vector over the class's ranks and executions (paper: DOI 10.1145/2832106.2832108, section 2). ScalaTrace
merges ranks pairwise along a radix tree, event by event. Here whole foldings are compared, which finds the same common
structure of SPMD programs in a single pass.

Contiguous repeats become loops, shortest body first, until no repeats remain. Loops with equal bodies are equal for any
number of iterations. So a loop remains a single loop if the length of its inner loop varies. ScalaTrace matches calls
as they arrive, within a window (M. Noeth et al., JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001, section 3). Here all
calls are available, and every distance at which symbols recur is tried.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of, places_within
from iosig.transforms.traces.templates import Templates, find_templates
from iosig.transforms.traces.time_histograms import compute_histograms, gaps_and_durations
from iosig.transforms.traces.trace import (
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
from iosig.transforms.traces.vectors import fold_values, rank_lists

#: number of next occurrences of a symbol to consider; bodies that contain each symbol more often are not found
_MAX_OCCURRENCES = 8
#: minimum fraction of a body's symbols that must recur at a distance of the body's length
_MIN_RECURRENCE_RATIO = 0.25
#: budget of comparisons per call, and additional budget per rank; they bound the time for irregular traces
_COMPARISONS_PER_CALL = 500
_BASE_COMPARISONS = 10_000_000


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """Call in the folded order: its symbol, and the positions of its executions among the rank's calls."""

    symbol: int
    positions: Ints


@dataclass(frozen=True, slots=True)
class FoldedLoop:
    """Loop in the folded order: number of iterations of each entry, and the body."""

    counts: Ints
    body: tuple[FoldedNode, ...]


FoldedNode = FoldedCall | FoldedLoop


@dataclass(frozen=True, slots=True)
class _Loops:
    """Entries of loops with the same body: positions, iterations, and the position of each item in each iteration.

    `firsts` is the index in `items` of each entry's first iteration.
    """

    starts: Ints
    counts: Ints
    firsts: Ints
    items: Ints


@dataclass(slots=True)
class Folder:
    """Folds the calls of ranks; two ranks have equal shapes if they differ only in iterations.

    Loops have negative symbols, which are equal for equal bodies.
    """

    loops: dict[tuple[int, ...], int] = field(default_factory=dict)
    bodies: list[tuple[int, ...]] = field(default_factory=list)

    def fold(self, symbols: npt.NDArray[np.signedinteger]) -> tuple[tuple[int, ...], tuple[FoldedNode, ...]]:
        """Fold a rank's calls into loops.

        Parameters
        ----------
        symbols : (N,)
            Nonnegative symbol of each call; equal symbols can be the same node of a loop.

        Returns
        -------
        tuple[tuple[int, ...], tuple[FoldedNode, ...]]
            Shape (symbols of the top-level nodes) and nodes.
        """
        budget = _COMPARISONS_PER_CALL * symbols.size + _BASE_COMPARISONS
        folding = _Folding(self, symbols.astype(np.int64), np.arange(symbols.size), budget)
        while folding.fold_once():
            pass
        shape = tuple(folding.symbols.tolist())
        return shape, folding.nodes(shape, folding.starts[None, :])

    def loop_symbol(self, body: tuple[int, ...]) -> int:
        """Return the negative number that represents a loop with this body; a new body gets the next one."""
        if body not in self.loops:
            self.bodies.append(body)
            self.loops[body] = -len(self.bodies)
        return self.loops[body]

    def loop_body(self, symbol: int) -> tuple[int, ...]:
        """Look up the body of a loop by its symbol."""
        return self.bodies[-symbol - 1]


@dataclass(slots=True)
class _Folding:
    """State of a rank's folding: remaining symbols, and the start position of each."""

    folder: Folder
    symbols: Ints
    starts: Ints
    budget: int
    entries: dict[int, list[_Loops]] = field(default_factory=dict)

    def fold_once(self) -> bool:
        """Fold all repeats of the shortest repeated body; return whether there were any."""
        self.budget -= _MAX_OCCURRENCES * self.symbols.size
        for length in _find_distances(self.symbols):
            self.budget -= self.symbols.size
            if self.budget < 0:
                return False
            firsts, counts = _find_repeats(self.symbols, length)
            if firsts.size:
                self._fold(length, firsts, counts)
                return True
        return False

    def _fold(self, length: int, firsts: Ints, counts: Ints) -> None:
        bodies, body_indexes = np.unique(self.symbols[firsts[:, None] + np.arange(length)], axis=0, return_inverse=True)
        loops = np.array([self.folder.loop_symbol(tuple(body)) for body in bodies.tolist()], np.int64)
        order = np.argsort(body_indexes.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(body_indexes.reshape(-1), minlength=loops.size))[:-1]
        for loop, entries in zip(loops.tolist(), np.split(order, ends), strict=True):
            self._add_entries(loop, firsts[entries], counts[entries], length)
        is_remaining = np.ones(self.symbols.size, np.bool_)
        is_remaining[arithmetic_ranges(firsts, counts * length, 1)] = False
        is_remaining[firsts] = True
        self.symbols[firsts] = loops[body_indexes.reshape(-1)]
        self.symbols, self.starts = self.symbols[is_remaining], self.starts[is_remaining]

    def _add_entries(self, loop: int, firsts: Ints, counts: Ints, length: int) -> None:
        items = self.starts[arithmetic_ranges(firsts, counts, length)[:, None] + np.arange(length)]
        self.entries.setdefault(loop, []).append(_Loops(self.starts[firsts], counts, offsets_of(counts)[:-1], items))

    def nodes(self, body: tuple[int, ...], starts: Ints) -> tuple[FoldedNode, ...]:
        """Build the nodes of a body from the start positions of its items in each execution (E, items)."""
        return tuple(
            FoldedCall(symbol, starts[:, place]) if symbol >= 0 else self._loop(symbol, starts[:, place])
            for place, symbol in enumerate(body)
        )

    def _loop(self, symbol: int, starts: Ints) -> FoldedLoop:
        loops = self._merge_entries(symbol)
        entries = np.searchsorted(loops.starts, starts)
        counts = loops.counts[entries]
        iterations = arithmetic_ranges(loops.firsts[entries], counts, 1)
        return FoldedLoop(counts, self.nodes(self.folder.loop_body(symbol), loops.items[iterations]))

    def _merge_entries(self, symbol: int) -> _Loops:
        """Merge all entries of the loops with a body, sorted by position."""
        parts = self.entries[symbol]
        if len(parts) > 1:
            counts = np.concatenate([part.counts for part in parts])
            starts, items = (np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "items"))
            order = np.argsort(starts)
            firsts = offsets_of(counts)[:-1]
            self.entries[symbol] = parts = [_Loops(starts[order], counts[order], firsts[order], items)]
        return parts[0]


def arithmetic_ranges(firsts: Ints, counts: Ints, stride: int) -> Ints:
    """Concatenate arithmetic sequences: first, first + stride, ..., with `count` numbers each."""
    place = places_within(counts)
    return np.repeat(firsts, counts) + stride * place


def _find_distances(symbols: Ints) -> list[int]:
    """Find the distances at which enough symbols recur, ascending; bodies of other lengths cannot repeat."""
    order = np.argsort(symbols, kind="stable")
    grouped = symbols[order]
    counts = np.zeros(symbols.size // 2 + 1, np.int64)
    for occurrence in range(1, min(_MAX_OCCURRENCES, symbols.size - 1) + 1):
        distances = (order[occurrence:] - order[:-occurrence])[grouped[occurrence:] == grouped[:-occurrence]]
        counts += np.bincount(distances[distances < counts.size], minlength=counts.size)
    lengths = np.arange(counts.size)
    return [int(length) for length in np.flatnonzero((counts > 0) & (counts >= _MIN_RECURRENCE_RATIO * lengths))]


def _find_repeats(symbols: Ints, length: int) -> tuple[Ints, Ints]:
    """Find start and number of contiguous repeats of bodies with a length."""
    is_same = symbols[length:] == symbols[:-length]
    edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
    firsts, ends = edges[::2], edges[1::2]
    is_long = ends - firsts >= length
    firsts, ends = firsts[is_long], ends[is_long]
    if length > 1 and (firsts[1:] < ends[:-1] + length).any():
        return _drop_overlaps(firsts, ends, length)
    return firsts, (ends - firsts) // length + 1


def _drop_overlaps(firsts: Ints, ends: Ints, length: int) -> tuple[Ints, Ints]:
    """Truncate or drop repeats that overlap earlier ones."""
    disjoint: list[tuple[int, int]] = []
    next_free = 0
    for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
        begin = max(first, next_free)
        if end - begin >= length:
            disjoint.append((begin, (end - begin) // length + 1))
            next_free = begin + disjoint[-1][1] * length
    table = np.array(disjoint, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


class RankCalls(Protocol):
    """Calls of a rank: distinct calls, and which one was made when.

    signatures: level, module, function, arguments. order (N): rows of `signatures`. start_s, end_s (N) [s].
    """

    @property
    def rank(self) -> int:
        """Number of the rank in MPI_COMM_WORLD."""

    @property
    def signatures(self) -> pl.DataFrame:
        """Level, module, function and arguments of distinct calls."""

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """Row of `signatures` of each call."""

    @property
    def start_s(self) -> Reals:
        """Start of each call [s]."""

    @property
    def end_s(self) -> Reals:
        """End of each call [s]."""


@dataclass(frozen=True, slots=True)
class _RankGroup:
    """Ranks with the same sequence of templates: common nodes, and the differences between ranks.

    ranks (R): ranks, ascending. first (R, N): index of the first slot number of each call. gaps_s, durations_s (R, N):
    times of each call.
    """

    nodes: tuple[FoldedNode, ...]
    ranks: Ints
    first: Ints
    gaps_s: Reals
    durations_s: Reals


def compress(process_count: int, ranks: Iterable[RankCalls]) -> CompressedTrace:
    """Compress the trace of a run; expansion restores each call of each rank.

    Parameters
    ----------
    process_count
        Number of processes of the run.
    ranks
        Calls of the ranks, in any order.

    Returns
    -------
    CompressedTrace
        The trace; ranks without calls are in no class.

    Raises
    ------
    ValueError
        If arguments contain a NUL character, or ranks are invalid.
    """
    return compress_together([(process_count, ranks)])[0]


def compress_together(traces: Sequence[tuple[int, Iterable[RankCalls]]]) -> tuple[CompressedTrace, ...]:
    """Compress several traces with common templates.

    Parameters
    ----------
    traces
        Number of processes and calls of the ranks of each run.

    Returns
    -------
    tuple[CompressedTrace, ...]
        One trace per run. Numbers that are padded with zeros in one trace are padded in all traces.

    Raises
    ------
    ValueError
        If a rank occurs twice or does not exist, or arguments contain a NUL character.
    """
    runs = [(count, [calls for calls in ranks if calls.order.size]) for count, ranks in traces]
    for count, ranks in runs:
        _check_ranks(count, [calls.rank for calls in ranks])
    signatures = [calls.signatures for _, ranks in runs for calls in ranks]
    if not signatures:
        return tuple(CompressedTrace(count, ()) for count, _ in runs)
    templates = find_templates(signatures)
    places = iter(offsets_of([frame.height for frame in signatures]).tolist())
    return tuple(CompressedTrace(count, _find_classes(ranks, templates, places)) for count, ranks in runs)


def _check_ranks(process_count: int, ranks: Sequence[int]) -> None:
    if len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(process_count)):
        raise ValueError(f"Ranks must be distinct, and between 0 and {process_count - 1}.")


def _find_classes(ranks: Sequence[RankCalls], templates: Templates, places: Iterator[int]) -> tuple[RankClass, ...]:
    """Group a trace's ranks into classes; `places` is the index of each rank's first signature."""
    members_by_symbols: dict[bytes, list[tuple[RankCalls, int]]] = {}
    for calls, place in zip(ranks, places, strict=False):
        symbols = templates.number[calls.order.astype(np.int64) + place]
        members_by_symbols.setdefault(hashlib.blake2b(symbols.tobytes()).digest(), []).append((calls, place))
    folder = Folder()
    classes: dict[tuple[int, ...], list[_RankGroup]] = {}
    for members in members_by_symbols.values():
        shape, group = _fold_group(members, templates, folder)
        classes.setdefault(shape, []).append(group)
    rank_classes = [_ClassBuilder(templates, groups).build() for groups in classes.values()]
    return tuple(sorted(rank_classes, key=lambda rank_class: rank_class.ranks[0].start))


def _fold_group(
    members: Sequence[tuple[RankCalls, int]], templates: Templates, folder: Folder
) -> tuple[tuple[int, ...], _RankGroup]:
    members = sorted(members, key=lambda member: member[0].rank)
    rows = np.stack([calls.order.astype(np.int64) + place for calls, place in members])
    shape, nodes = folder.fold(templates.number[rows[0]])
    times = [
        gaps_and_durations(calls.signatures["level"].to_numpy()[calls.order], calls.start_s, calls.end_s)
        for calls, _ in members
    ]
    ranks = np.array([calls.rank for calls, _ in members], np.int64)
    gaps_s, durations_s = (np.stack(part) for part in zip(*times, strict=True))
    return shape, _RankGroup(nodes, ranks, templates.first[rows], gaps_s, durations_s)


class _ClassBuilder:
    """Builder of a rank class from groups of ranks with the same shape."""

    def __init__(self, templates: Templates, groups: Sequence[_RankGroup]) -> None:
        self._templates = templates
        self._groups = groups
        self._gaps, self._durations = _compute_times(groups)
        self._numbers = iter(range(len(self._durations)))

    def build(self) -> RankClass:
        """Merge the groups into vectors and histograms."""
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
        """Fold the values of all groups' ranks, which may differ in length."""
        if len(rows) == 1:
            return fold_values(self._groups[0].ranks, rows[0])
        lengths = np.array([part.shape[1] for part in rows])
        shares: list[Vector] = []
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length).tolist()
            ranks = np.concatenate([self._groups[place].ranks for place in places])
            order = np.argsort(ranks)
            shares.append(fold_values(ranks[order], np.concatenate([rows[place] for place in places])[order]))
        return tuple(sorted((share for part in shares for share in part), key=lambda share: share.ranks.start))


def _compute_times(groups: Sequence[_RankGroup]) -> tuple[list[tuple[Gap, ...]], list[TimeHistogram]]:
    """Compute gaps and durations of each node of a class; empty for loops."""
    nodes = [_assign_nodes(group.nodes, group.first.shape[1]) for group in groups]
    total = _count_nodes(groups[0].nodes)
    previous = [np.concatenate([[START], node[:-1]]) for node in nodes]
    pairs = [(before + 1) * total + node for before, node in zip(previous, nodes, strict=True)]
    sizes = [group.ranks.size for group in groups]
    tiled = np.concatenate([np.tile(part, size) for part, size in zip(pairs, sizes, strict=True)])
    unique, pair_indexes = np.unique(tiled, return_inverse=True)
    gaps_s = np.concatenate([group.gaps_s.reshape(-1) for group in groups])
    durations_s = np.concatenate([group.durations_s.reshape(-1) for group in groups])
    gaps: list[list[Gap]] = [[] for _ in range(total)]
    for pair, histogram in zip(unique.tolist(), compute_histograms(gaps_s, pair_indexes, unique.size), strict=True):
        gaps[pair % total].append(Gap(pair // total - 1, histogram))
    return [tuple(part) for part in gaps], compute_histograms(durations_s, tiled % total, total)


def _assign_nodes(nodes: Sequence[FoldedNode], call_count: int) -> Ints:
    """Node number of each call of a rank."""
    numbers = np.empty(call_count, np.int64)

    def assign(nodes: Sequence[FoldedNode], number: int) -> int:
        for node in nodes:
            if isinstance(node, FoldedCall):
                numbers[node.positions] = number
                number += 1
            else:
                number = assign(node.body, number + 1)
        return number

    assign(nodes, 0)
    return numbers


def _count_nodes(nodes: Sequence[FoldedNode]) -> int:
    return sum(1 if isinstance(node, FoldedCall) else 1 + _count_nodes(node.body) for node in nodes)
