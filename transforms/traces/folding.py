"""A rank's calls folded into loops: ScalaTrace's compression within a process.

Repeats right behind one another become a loop, the shortest first, until there are none; loops are alike whose
bodies are, however often they iterate, so that a loop whose inner loop's length changes is one loop still. ScalaTrace
matches as calls arrive, within a window [1, section 3]; here all calls are there, and each length at which anything
comes again is tried.

[1] M. Noeth et al., JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from transforms.arrays import Ints, offsets_of, places_within

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
