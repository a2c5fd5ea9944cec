"""Whether a compressed trace keeps what its form promises: what a damaged or hostile file may break.

Nothing is expanded: the work grows with nodes, shares and stretches, not with ranks or iterations. That shares tile
their class, and that each rank has as many values as it executes the node, are equations between sums over ranks. With
a number x for each rank's place, the ranks of a list are the sum of x^rank and the executions of a node are the sum of
executions(rank) * x^rank; both have closed forms over nested progressions, and two such sums that are equal at one
number, chosen after the trace is known, modulo a prime of 127 bits are the same for every rank but for a chance
below 2^-60 [1].

[1] J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, J. ACM 27(4), 1980,
    DOI 10.1145/322217.322225
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.traces.progressions import Progression, Stretch, distinct_count, extremes, size_of, sum_of, values
from iosig.transforms.traces.trace import (
    START,
    Call,
    CompressedTrace,
    Loop,
    Node,
    RankClass,
    Share,
    TimeBin,
    TimeHistogram,
    Vector,
)
from iosig.transforms.traces.vectors import Tiles

#: MPI counts processes in a C int
MOST_PROCESSES = (1 << 31) - 1
#: loops in one another
MOST_DEPTH = 64
#: no dimension of two or more fits beside 62 others into 64 bits
MOST_DIMENSIONS = 64
#: digits of a number in a text; longer ones are several numbers, one behind the other
MOST_WIDTH = 18
#: Recorder has the level in a byte
MOST_LEVEL = 255
#: by the number that recorder2text prints
MODULES = ("POSIX", "MPIIO", "MPI", "HDF5", "FTRACE")

_LONGS = np.iinfo(np.int64)
_LEAST, _MOST = int(_LONGS.min), int(_LONGS.max)
_PRIME = (1 << 127) - 1
#: values that are looked at one by one, in all, where the bounds of their stretches are too wide to tell
_MOST_VALUES = 1 << 24
#: of these, in one share whose values and shifts may together leave 64 bits
_MOST_LARGE_VALUES = 1 << 18
#: ranks of which each is looked at: is it in one class only
_MOST_TILED = 1 << 27
#: means are rounded, and may so lie outside of what they are the means of
_ROUNDING = 1e-9


def check(trace: CompressedTrace) -> None:
    """Raise ValueError, naming class and node, where a trace is not what `CompressedTrace` says."""
    if not 1 <= trace.process_count <= MOST_PROCESSES:
        raise ValueError(f"{trace.process_count} processes are none, or more than MPI can count.")
    form = _Form(trace.process_count)
    for number, rank_class in enumerate(trace.classes):
        form.check_class(f"class {number}", rank_class)
    sums = _Sums(_place_for(trace))
    for number, rank_class in enumerate(trace.classes):
        _check_sums(f"class {number}", rank_class, sums)
    _check_apart(trace)


# ---- progressions


def _check_stretch(where: str, stretch: Stretch) -> None:
    if len(stretch.strides) != len(stretch.counts):
        raise ValueError(f"{where}: a progression has {len(stretch.strides)} strides and {len(stretch.counts)} counts.")
    if len(stretch.counts) > MOST_DIMENSIONS:
        raise ValueError(f"{where}: a progression has {len(stretch.counts)} dimensions.")
    if any(count < 1 for count in stretch.counts) or stretch.size > _MOST:
        raise ValueError(f"{where}: a progression has counts {stretch.counts}.")
    low, high = extremes((stretch,))
    if low < _LEAST or high > _MOST or any(not _LEAST <= stride <= _MOST for stride in stretch.strides):
        raise ValueError(f"{where}: a progression leaves the range of 64-bit integers.")


def _check_row(where: str, row: Sequence[Stretch]) -> None:
    for stretch in row:
        _check_stretch(where, stretch)


def _check_ranks(where: str, ranks: Progression, process_count: int) -> None:
    """Raise ValueError unless ranks rise, each stride leaving behind all that is inside it, and are some of the run."""
    _check_stretch(where, ranks)
    inner = 0
    for stride, count in zip(reversed(ranks.strides), reversed(ranks.counts), strict=True):
        if count > 1 and stride <= inner:
            raise ValueError(f"{where}: the ranks {ranks.start}, strides {ranks.strides}, do not rise.")
        inner += stride * (count - 1)
    if ranks.start < 0 or ranks.start + inner >= process_count:
        raise ValueError(f"{where}: ranks {ranks.start} to {ranks.start + inner} are not of {process_count} processes.")


# ---- values of shares


@dataclass(slots=True)
class _Bounds:
    """Finds the least and the largest value of shares, looking at so many values one by one at most."""

    left: int = _MOST_VALUES

    def of(self, share: Share, least: int) -> tuple[int, int]:
        """Return bounds of the values of all ranks, the true ones where wider ones would be below `least`.

        Of more values than can be looked at, only that they are of 64 bits is known.
        """
        low, high = extremes(share.values)
        for row, count in zip(share.shifts, share.ranks.counts, strict=True):
            fall, rise = extremes(row)
            low, high = low + min(0, fall * (count - 1)), high + max(0, rise * (count - 1))
        if least <= low and high <= _MOST:
            return low, high
        size, is_large = size_of(share.values), low < _LEAST or high > _MOST
        self.left -= size
        if is_large and (self.left < 0 or size > _MOST_LARGE_VALUES):
            return low, high
        return (least, high) if self.left < 0 else _exact_reach(share, np.dtype(object if is_large else np.int64))


def _exact_reach(share: Share, dtype: np.dtype[np.int64] | np.dtype[np.object_]) -> tuple[int, int]:
    """Return the true bounds, from all values of the ranks at the corners; `dtype` holds them without overflow."""
    lows = highs = values(share.values).astype(dtype)
    for row, count in zip(share.shifts, share.ranks.counts, strict=True):
        steps = values(row).astype(dtype) * (count - 1)
        lows, highs = lows + np.minimum(steps, 0), highs + np.maximum(steps, 0)
    return (int(lows.min()), int(highs.max())) if lows.size else (0, 0)


# ---- sums over ranks


def _nodes(body: Sequence[Node], depth: int = 0) -> Iterator[Node]:
    """Yield the nodes of a class in the order of their numbers."""
    if depth > MOST_DEPTH:
        raise ValueError(f"Loops stand in one another more than {MOST_DEPTH} deep.")
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from _nodes(node.body, depth + 1)


def _vectors(node: Node) -> list[Vector]:
    return [node.counts] if isinstance(node, Loop) else [slot.vector for slot in node.slots]


def _place_for(trace: CompressedTrace) -> int:
    """Return the number at which sums are compared: one that whoever wrote the trace could not reckon with."""
    digest = hashlib.blake2b(repr(trace.classes).encode(), digest_size=16)
    return 2 + int.from_bytes(digest.digest()) % (_PRIME - 3)


@dataclass(slots=True)
class _Sums:
    """Sums over rank lists of x^rank, and of index * x^rank for each dimension, modulo a prime."""

    place: int
    known: dict[Progression, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def of(self, ranks: Progression) -> tuple[int, tuple[int, ...]]:
        """Return the sum of x^rank and, for each dimension, that of its index times x^rank."""
        if ranks not in self.known:
            factors = [
                _powers(pow(self.place, stride, _PRIME), count)
                for stride, count in zip(ranks.strides, ranks.counts, strict=True)
            ]
            first = pow(self.place, ranks.start, _PRIME)
            plain = first * math.prod(whole for whole, _ in factors) % _PRIME
            by_index = tuple(
                first * indexed * math.prod(whole for e, (whole, _) in enumerate(factors) if e != d) % _PRIME
                for d, (_, indexed) in enumerate(factors)
            )
            self.known[ranks] = plain, by_index
        return self.known[ranks]


def _powers(ratio: int, count: int) -> tuple[int, int]:
    """Return the sums of ratio^i and of i * ratio^i, for 0 <= i < count, modulo the prime."""
    if ratio == 1:
        return count % _PRIME, count * (count - 1) // 2 % _PRIME
    last, inverse = pow(ratio, count, _PRIME), pow(ratio - 1, -1, _PRIME)
    plain = (last - 1) * inverse % _PRIME
    return plain, ((count - 1) * last - plain + 1) * inverse % _PRIME


# ---- the parts of one class


@dataclass(slots=True)
class _Form:
    """Checks that the parts of classes are such, whatever stands around them."""

    process_count: int
    bounds: _Bounds = field(default_factory=_Bounds)

    def check_class(self, name: str, rank_class: RankClass) -> None:
        """Raise ValueError where a class has parts that are none."""
        last = -1
        for ranks in rank_class.ranks:
            _check_ranks(name, ranks, self.process_count)
            if ranks.start <= last:
                raise ValueError(f"{name}: its ranks do not rise.")
            last = extremes((ranks,))[1]
        if not rank_class.ranks or not rank_class.body:
            raise ValueError(f"{name}: it has no {'calls' if rank_class.ranks else 'ranks'}.")
        nodes = list(_nodes(rank_class.body))
        calls = frozenset(number for number, node in enumerate(nodes) if isinstance(node, Call))
        for number, node in enumerate(nodes):
            where = f"{name}, node {number}"
            if isinstance(node, Call):
                self._check_call(where, node, calls)
            elif not node.body:
                raise ValueError(f"{where}: the loop has no body.")
            else:
                self._check_shares(f"{where}, iterations", node.counts)

    def _check_call(self, where: str, call: Call, calls: frozenset[int]) -> None:
        if call.module not in MODULES:
            raise ValueError(f"{where}: there is no module {call.module!r}.")
        if not call.function:
            raise ValueError(f"{where}: the function has no name.")
        if not 0 <= call.level <= MOST_LEVEL:
            raise ValueError(f"{where}: the level is {call.level}.")
        if len(call.texts) != len(call.slots) + 1:
            raise ValueError(f"{where}: there are {len(call.texts)} texts around {len(call.slots)} slots.")
        for place, slot in enumerate(call.slots):
            if not 0 <= slot.width <= MOST_WIDTH:
                raise ValueError(f"{where}, slot {place}: the width is {slot.width}.")
            self._check_shares(f"{where}, slot {place}", slot.vector, _LEAST if call.is_signed(place) else 0)
        before = [gap.previous for gap in call.gaps]
        if len(set(before)) != len(before) or not set(before) <= calls | {START}:
            raise ValueError(f"{where}: the gaps follow {before}, which are not calls of the class, each once.")
        for gap in call.gaps:
            _check_histogram(f"{where}, gap after {gap.previous}", gap.histogram)
        _check_histogram(f"{where}, durations", call.durations)

    def _check_shares(self, where: str, vector: Vector, least: int = 0) -> None:
        for share in vector:
            _check_ranks(where, share.ranks, self.process_count)
            if len(share.shifts) != len(share.ranks.counts):
                raise ValueError(
                    f"{where}: {len(share.shifts)} shifts for {len(share.ranks.counts)} dimensions of ranks."
                )
            _check_row(where, share.values)
            size = size_of(share.values)
            for row in share.shifts:
                _check_row(where, row)
                if size_of(row) != size:
                    raise ValueError(f"{where}: {size_of(row)} shifts for {size} values.")
            low, high = self.bounds.of(share, least)
            if low < least or high > _MOST:
                raise ValueError(f"{where}: values from {low} to {high} are out of range.")


def _check_histogram(where: str, times: TimeHistogram) -> None:
    parts: list[TimeHistogram | TimeBin] = [times, *times.bins]
    numbers = [number for part in parts for number in (part.minimum_s, part.mean_s, part.maximum_s)]
    if not all(map(math.isfinite, [*numbers, times.variance_s2])) or times.variance_s2 < 0:
        raise ValueError(f"{where}: a time or the variance is not a number that it can be.")
    slack_s = _ROUNDING * max(map(abs, numbers))
    ordered = [number for part in times.bins for number in (part.minimum_s, part.mean_s, part.maximum_s)]
    for row in ((times.minimum_s, times.mean_s, times.maximum_s), (times.minimum_s, *ordered, times.maximum_s)):
        if any(second < first - slack_s for first, second in itertools.pairwise(row)):
            raise ValueError(f"{where}: the times are not in order.")
    if not all(0 <= part.count <= _MOST for part in parts):
        raise ValueError(f"{where}: a count is negative or too large.")
    if sum(part.count for part in times.bins) != times.count:
        raise ValueError(f"{where}: the bins do not hold as many times as the histogram.")


# ---- one class in sums over its ranks


def _check_sums(name: str, rank_class: RankClass, sums: _Sums) -> None:
    """Raise ValueError where shares do not tile the class, or values are more or fewer than executions."""
    tiles = sum(sums.of(ranks)[0] for ranks in rank_class.ranks) % _PRIME
    numbers = itertools.count()

    def check_body(body: Sequence[Node], executions: int) -> None:
        for node in body:
            where = f"{name}, node {next(numbers)}"
            for vector in _vectors(node):
                _check_tiles(where, vector, tiles, executions, sums)
            if isinstance(node, Loop):
                check_body(node.body, _body_executions(where, node.counts, sums))

    check_body(rank_class.body, tiles)


def _check_tiles(where: str, vector: Vector, tiles: int, executions: int, sums: _Sums) -> None:
    tiled = counted = 0
    for share in vector:
        plain, _ = sums.of(share.ranks)
        tiled += plain
        counted += size_of(share.values) * plain
    if tiled % _PRIME != tiles:
        raise ValueError(f"{where}: the ranks of the shares are not those of the class, each of them once.")
    if counted % _PRIME != executions:
        raise ValueError(f"{where}: there are not as many values as executions.")


def _body_executions(where: str, counts: Vector, sums: _Sums) -> int:
    """Return how often the ranks execute a loop's body, as a sum over them."""
    total = 0
    for share in counts:
        plain, by_index = sums.of(share.ranks)
        first, steps = sum_of(share.values), [sum_of(row) for row in share.shifts]
        most = first + sum(max(0, step * (count - 1)) for step, count in zip(steps, share.ranks.counts, strict=True))
        if most > _MOST:
            raise ValueError(f"{where}: the loop iterates {most} times in all.")
        total += first * plain + sum(step * indexed for step, indexed in zip(steps, by_index, strict=True))
    return total % _PRIME


# ---- ranks in common


def _check_apart(trace: CompressedTrace) -> None:
    """Raise ValueError if a rank is in two classes."""
    lists = [ranks for rank_class in trace.classes for ranks in rank_class.ranks]
    if trace.process_count <= _MOST_TILED:
        tiles = Tiles(trace.process_count)
        for ranks in lists:
            tiles.take(ranks)
        return
    count = distinct_count(lists)
    if count is None:
        raise ValueError("The classes' rank lists are too entangled to tell whether they have a rank in common.")
    if count < size_of(tuple(lists)):
        raise ValueError("a rank would be in two classes")
