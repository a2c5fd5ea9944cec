"""Compression of traces as ScalaTrace does it: loops within a rank, values with rank lists across ranks.

Ranks whose calls fold into the same loops over the same templates are one rank class; each number in its calls
becomes a vector over the class's ranks and executions (paper: DOI 10.1145/2832106.2832108, section 2). ScalaTrace
merges ranks pairwise along a radix tree, matching event by event; here whole foldings are compared, which gives the
same sharing for SPMD programs and takes one pass.

Repeats right behind one another become a loop, the shortest first, until there are none; loops are alike whose
bodies are, however often they iterate, so that a loop whose inner loop's length changes is one loop still. ScalaTrace
matches as calls arrive, within a window (M. Noeth et al., JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001, section
3); here all calls are there, and each length at which anything comes again is tried.
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
from iosig.transforms.traces.templates import Templates, templates_of
from iosig.transforms.traces.time_histograms import gaps_and_durations, histograms
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
from iosig.transforms.traces.vectors import rank_lists, vector_of

#: how far to look for the next occurrences of a symbol: a body in which each symbol comes more often is not found
_OCCURRENCES = 8
#: at least this share of a body's symbols must be seen to come again, at the distance of the body's length
_LEAST_RATIO = 0.25
#: how often each call may be looked at, and how often any rank's calls together: what follows no rule costs no more
_MOST_LOOKS = 500
_FREE_LOOKS = 10_000_000


@dataclass(frozen=True, slots=True)
class FoldedCall:
    """A call in the folded order: its symbol, and the positions in the rank's calls at which it was executed."""

    symbol: int
    positions: Ints


@dataclass(frozen=True, slots=True)
class FoldedLoop:
    """A loop in the folded order: the iterations of each time that it was entered, and its body."""

    counts: Ints
    body: tuple[FoldedNode, ...]


FoldedNode = FoldedCall | FoldedLoop


@dataclass(frozen=True, slots=True)
class _Loops:
    """Where loops of one body were entered, how often they iterated, where each item of each iteration starts.

    `firsts` says where the iterations of each one begin among `items`.
    """

    starts: Ints
    counts: Ints
    firsts: Ints
    items: Ints


@dataclass(slots=True)
class Folder:
    """Folds the calls of several ranks; `shape` of two of them is the same if they differ in iterations alone.

    Loops have negative symbols, the same for the same body.
    """

    loops: dict[tuple[int, ...], int] = field(default_factory=dict)
    bodies: list[tuple[int, ...]] = field(default_factory=list)

    def fold(self, symbols: npt.NDArray[np.signedinteger]) -> tuple[tuple[int, ...], tuple[FoldedNode, ...]]:
        """Return the shape and the nodes of a rank's calls.

        symbols: integers[N] from 0 on, what is called; equal ones can be the same node of a loop.
        """
        looks = _MOST_LOOKS * symbols.size + _FREE_LOOKS
        folding = _Folding(self, symbols.astype(np.int64), np.arange(symbols.size), looks)
        while folding.fold_once():
            pass
        shape = tuple(folding.symbols.tolist())
        return shape, folding.nodes(shape, folding.starts[None, :])

    def around(self, body: tuple[int, ...]) -> int:
        """Return the symbol of the loop that has this body."""
        if body not in self.loops:
            self.bodies.append(body)
            self.loops[body] = -len(self.bodies)
        return self.loops[body]

    def body_of(self, symbol: int) -> tuple[int, ...]:
        """Return the body of a loop."""
        return self.bodies[-symbol - 1]


@dataclass(slots=True)
class _Folding:
    """A rank's calls on the way to loops: the symbols that are left, and where each one starts."""

    folder: Folder
    symbols: Ints
    starts: Ints
    looks: int
    found: dict[int, list[_Loops]] = field(default_factory=dict)

    def fold_once(self) -> bool:
        """Fold the repeats of the shortest body that repeats; return whether there was any."""
        self.looks -= _OCCURRENCES * self.symbols.size
        for length in _distances(self.symbols):
            self.looks -= self.symbols.size
            if self.looks < 0:
                return False
            firsts, counts = _repeats(self.symbols, length)
            if firsts.size:
                self._fold(length, firsts, counts)
                return True
        return False

    def _fold(self, length: int, firsts: Ints, counts: Ints) -> None:
        bodies, which = np.unique(self.symbols[firsts[:, None] + np.arange(length)], axis=0, return_inverse=True)
        loops = np.array([self.folder.around(tuple(body)) for body in bodies.tolist()], np.int64)
        order = np.argsort(which.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(which.reshape(-1), minlength=loops.size))[:-1]
        for loop, own in zip(loops.tolist(), np.split(order, ends), strict=True):
            self._keep(loop, firsts[own], counts[own], length)
        is_left = np.ones(self.symbols.size, np.bool_)
        is_left[spread(firsts, counts * length, 1)] = False
        is_left[firsts] = True
        self.symbols[firsts] = loops[which.reshape(-1)]
        self.symbols, self.starts = self.symbols[is_left], self.starts[is_left]

    def _keep(self, loop: int, firsts: Ints, counts: Ints, length: int) -> None:
        items = self.starts[spread(firsts, counts, length)[:, None] + np.arange(length)]
        self.found.setdefault(loop, []).append(_Loops(self.starts[firsts], counts, offsets_of(counts)[:-1], items))

    def nodes(self, body: tuple[int, ...], starts: Ints) -> tuple[FoldedNode, ...]:
        """Return the nodes of a body, whose items start at these positions at each execution, int64[E, items]."""
        return tuple(
            FoldedCall(symbol, starts[:, place]) if symbol >= 0 else self._loop(symbol, starts[:, place])
            for place, symbol in enumerate(body)
        )

    def _loop(self, symbol: int, starts: Ints) -> FoldedLoop:
        kept = self._kept(symbol)
        entered = np.searchsorted(kept.starts, starts)
        counts = kept.counts[entered]
        iterations = spread(kept.firsts[entered], counts, 1)
        return FoldedLoop(counts, self.nodes(self.folder.body_of(symbol), kept.items[iterations]))

    def _kept(self, symbol: int) -> _Loops:
        """Return all loops of a body, in the order in which they were entered."""
        parts = self.found[symbol]
        if len(parts) > 1:
            counts = np.concatenate([part.counts for part in parts])
            starts, items = (np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "items"))
            order = np.argsort(starts)
            firsts = offsets_of(counts)[:-1]
            self.found[symbol] = parts = [_Loops(starts[order], counts[order], firsts[order], items)]
        return parts[0]


def spread(firsts: Ints, counts: Ints, stride: int) -> Ints:
    """Return `first, first + stride, ...`, so many as its count says, for each of the firsts, in a row."""
    within = places_within(counts)
    return np.repeat(firsts, counts) + stride * within


def _distances(symbols: Ints) -> list[int]:
    """Return, rising, the distances at which enough symbols come again: no body of another length can repeat."""
    order = np.argsort(symbols, kind="stable")
    grouped = symbols[order]
    found = np.zeros(symbols.size // 2 + 1, np.int64)
    for further in range(1, min(_OCCURRENCES, symbols.size - 1) + 1):
        distances = (order[further:] - order[:-further])[grouped[further:] == grouped[:-further]]
        found += np.bincount(distances[distances < found.size], minlength=found.size)
    lengths = np.arange(found.size)
    return [int(length) for length in np.flatnonzero((found > 0) & (found >= _LEAST_RATIO * lengths))]


def _repeats(symbols: Ints, length: int) -> tuple[Ints, Ints]:
    """Return where bodies of this length begin that repeat at once, and how often each comes."""
    is_same = symbols[length:] == symbols[:-length]
    edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
    firsts, ends = edges[::2], edges[1::2]
    long = ends - firsts >= length
    firsts, ends = firsts[long], ends[long]
    if length > 1 and (firsts[1:] < ends[:-1] + length).any():
        return _apart(firsts, ends, length)
    return firsts, (ends - firsts) // length + 1


def _apart(firsts: Ints, ends: Ints, length: int) -> tuple[Ints, Ints]:
    """Return those repeats that do not overlap those before them, or what is left of them."""
    kept: list[tuple[int, int]] = []
    free = 0
    for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
        begin = max(first, free)
        if end - begin >= length:
            kept.append((begin, (end - begin) // length + 1))
            free = begin + kept[-1][1] * length
    found = np.array(kept, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


class RankCalls(Protocol):
    """The calls of a rank: its distinct calls, which of them each one is, and when it began and was over.

    signatures: level, module, function, arguments. order (N): rows of `signatures`. start_s, end_s (N) [s].
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
    def start_s(self) -> Reals:
        """Return when each call began [s]."""

    @property
    def end_s(self) -> Reals:
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
        gaps_and_durations(calls.signatures["level"].to_numpy()[calls.order], calls.start_s, calls.end_s)
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
