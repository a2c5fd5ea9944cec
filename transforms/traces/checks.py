"""Validate compressed traces, since a damaged or hostile file may violate their invariants.

Nothing is expanded: the run time grows with nodes, shares and stretches, not with ranks or iterations. A share is the
part of a vector for a list of ranks; a stretch is a part of a row of values. Two invariants are equations between sums
over ranks: shares tile their class, and each rank has one value per execution of the node. Both are verified as
polynomial identities: the ranks of a list are the polynomial sum of x^rank, the executions of a node the sum of
executions(rank) * x^rank. Both have closed forms over nested progressions. They are compared at one point, which is
derived from the trace, modulo a 127-bit prime; a false match has probability below 2^-60 [1].

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

from iosig.transforms.traces.progressions import (
    Progression,
    Stretch,
    count_distinct,
    expand_values,
    row_bounds,
    row_size,
    row_sum,
)
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
from iosig.transforms.traces.vectors import RankClaims

#: MPI counts processes in a C int
MAX_PROCESSES = (1 << 31) - 1
#: maximum nesting of loops
MAX_DEPTH = 64
#: maximum dimensions of a progression: 64-bit numbers allow 63 dimensions of two or more
MAX_DIMENSIONS = 64
#: maximum digits of a number in a text; longer numbers are split
MAX_WIDTH = 18
#: Recorder stores the level in a byte
MAX_LEVEL = 255
#: in order of the module numbers that recorder2text prints
MODULES = ("POSIX", "MPIIO", "MPI", "HDF5", "FTRACE")

_LONGS = np.iinfo(np.int64)
_MIN_INT64, _MAX_INT64 = int(_LONGS.min), int(_LONGS.max)
_PRIME = (1 << 127) - 1
#: maximum total number of values that are expanded because closed-form bounds are inconclusive
_MAX_VALUES = 1 << 24
#: maximum number of expanded values of a share that needs integers of more than 64 bits
_MAX_LARGE_VALUES = 1 << 18
#: maximum number of processes for which ranks are marked one by one to detect overlapping classes
_MAX_MARKED_PROCESSES = 1 << 27
#: relative rounding error by which means may exceed the range of the values
_ROUNDING = 1e-9


def check(trace: CompressedTrace) -> None:
    """Validate a compressed trace.

    Parameters
    ----------
    trace
        Trace, for example from a file.

    Raises
    ------
    ValueError
        If an invariant of `CompressedTrace` is violated; the message names class and node.
    """
    if not 1 <= trace.process_count <= MAX_PROCESSES:
        raise ValueError(f"The number of processes must be between 1 and {MAX_PROCESSES}, not {trace.process_count}.")
    form = _Form(trace.process_count)
    for number, rank_class in enumerate(trace.classes):
        form.check_class(f"class {number}", rank_class)
    sums = _Sums(_evaluation_point(trace))
    for number, rank_class in enumerate(trace.classes):
        _check_sums(f"class {number}", rank_class, sums)
    _check_disjoint(trace)


# ---- progressions


def _check_stretch(where: str, stretch: Stretch) -> None:
    if len(stretch.strides) != len(stretch.counts):
        raise ValueError(f"{where}: a progression has {len(stretch.strides)} strides and {len(stretch.counts)} counts.")
    if len(stretch.counts) > MAX_DIMENSIONS:
        raise ValueError(f"{where}: a progression has {len(stretch.counts)} dimensions.")
    if any(count < 1 for count in stretch.counts) or stretch.size > _MAX_INT64:
        raise ValueError(f"{where}: a progression has counts {stretch.counts}.")
    low, high = row_bounds((stretch,))
    if (
        low < _MIN_INT64
        or high > _MAX_INT64
        or any(not _MIN_INT64 <= stride <= _MAX_INT64 for stride in stretch.strides)
    ):
        raise ValueError(f"{where}: a progression exceeds the range of 64-bit integers.")


def _check_row(where: str, row: Sequence[Stretch]) -> None:
    for stretch in row:
        _check_stretch(where, stretch)


def _check_ranks(where: str, ranks: Progression, process_count: int) -> None:
    """Raise ValueError unless ranks ascend, strides exceed the extent of inner dimensions, and all ranks exist."""
    _check_stretch(where, ranks)
    inner = 0
    for stride, count in zip(reversed(ranks.strides), reversed(ranks.counts), strict=True):
        if count > 1 and stride <= inner:
            raise ValueError(f"{where}: the ranks from {ranks.start}, strides {ranks.strides}, do not ascend.")
        inner += stride * (count - 1)
    if ranks.start < 0 or ranks.start + inner >= process_count:
        raise ValueError(
            f"{where}: ranks {ranks.start} to {ranks.start + inner} exceed the {process_count} processes of the run."
        )


# ---- values of shares


@dataclass(slots=True)
class _Bounds:
    """Bounds on the values of shares; at most `left` more values may be expanded."""

    left: int = _MAX_VALUES

    def compute(self, share: Share, min_value: int) -> tuple[int, int]:
        """Compute bounds of the values of all ranks; they are exact if closed-form bounds would be below `min_value`.

        If the budget is exhausted, only the range of 64-bit integers is known.
        """
        low, high = row_bounds(share.values)
        for row, count in zip(share.shifts, share.ranks.counts, strict=True):
            fall, rise = row_bounds(row)
            low, high = low + min(0, fall * (count - 1)), high + max(0, rise * (count - 1))
        if min_value <= low and high <= _MAX_INT64:
            return low, high
        size, is_large = row_size(share.values), low < _MIN_INT64 or high > _MAX_INT64
        self.left -= size
        if is_large and (self.left < 0 or size > _MAX_LARGE_VALUES):
            return low, high
        return (min_value, high) if self.left < 0 else _exact_bounds(share, np.dtype(object if is_large else np.int64))


def _exact_bounds(share: Share, dtype: np.dtype[np.int64] | np.dtype[np.object_]) -> tuple[int, int]:
    """Compute exact bounds from the values of the ranks at the corners; `dtype` must be wide enough for the values."""
    lows = highs = expand_values(share.values).astype(dtype)
    for row, count in zip(share.shifts, share.ranks.counts, strict=True):
        steps = expand_values(row).astype(dtype) * (count - 1)
        lows, highs = lows + np.minimum(steps, 0), highs + np.maximum(steps, 0)
    return (int(lows.min()), int(highs.max())) if lows.size else (0, 0)


# ---- sums over ranks


def _iterate_nodes(body: Sequence[Node], depth: int = 0) -> Iterator[Node]:
    """Yield the nodes of a class in the order of their numbers."""
    if depth > MAX_DEPTH:
        raise ValueError(f"Loops are nested more than {MAX_DEPTH} deep.")
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from _iterate_nodes(node.body, depth + 1)


def _vectors(node: Node) -> list[Vector]:
    return [node.counts] if isinstance(node, Loop) else [slot.vector for slot in node.slots]


def _evaluation_point(trace: CompressedTrace) -> int:
    """Choose the evaluation point of the polynomials: a hash of the trace, which its author cannot exploit."""
    digest = hashlib.blake2b(repr(trace.classes).encode(), digest_size=16)
    return 2 + int.from_bytes(digest.digest()) % (_PRIME - 3)


@dataclass(slots=True)
class _Sums:
    """Cached sums over rank lists of x^rank, and of index * x^rank for each dimension, modulo a prime."""

    place: int
    known: dict[Progression, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def compute(self, ranks: Progression) -> tuple[int, tuple[int, ...]]:
        """Sum of x^rank and, for each dimension, of its index times x^rank."""
        if ranks not in self.known:
            factors = [
                _power_sums(pow(self.place, stride, _PRIME), count)
                for stride, count in zip(ranks.strides, ranks.counts, strict=True)
            ]
            first = pow(self.place, ranks.start, _PRIME)
            plain = first * math.prod(total for total, _ in factors) % _PRIME
            by_index = tuple(
                first * indexed * math.prod(total for e, (total, _) in enumerate(factors) if e != d) % _PRIME
                for d, (_, indexed) in enumerate(factors)
            )
            self.known[ranks] = plain, by_index
        return self.known[ranks]


def _power_sums(ratio: int, count: int) -> tuple[int, int]:
    """Compute the sums of ratio^i and of i * ratio^i for 0 <= i < count, modulo the prime."""
    if ratio == 1:
        return count % _PRIME, count * (count - 1) // 2 % _PRIME
    last, inverse = pow(ratio, count, _PRIME), pow(ratio - 1, -1, _PRIME)
    plain = (last - 1) * inverse % _PRIME
    return plain, ((count - 1) * last - plain + 1) * inverse % _PRIME


# ---- the parts of one class


@dataclass(slots=True)
class _Form:
    """Checks that each part of a class is valid, independently of the other parts."""

    process_count: int
    bounds: _Bounds = field(default_factory=_Bounds)

    def check_class(self, name: str, rank_class: RankClass) -> None:
        """Raise ValueError if a class has an invalid part."""
        last = -1
        for ranks in rank_class.ranks:
            _check_ranks(name, ranks, self.process_count)
            if ranks.start <= last:
                raise ValueError(f"{name}: its ranks do not ascend.")
            last = row_bounds((ranks,))[1]
        if not rank_class.ranks or not rank_class.body:
            raise ValueError(f"{name}: it has no {'calls' if rank_class.ranks else 'ranks'}.")
        nodes = list(_iterate_nodes(rank_class.body))
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
            raise ValueError(f"{where}: unknown module {call.module!r}.")
        if not call.function:
            raise ValueError(f"{where}: the function has no name.")
        if not 0 <= call.level <= MAX_LEVEL:
            raise ValueError(f"{where}: the level is {call.level}.")
        if len(call.texts) != len(call.slots) + 1:
            raise ValueError(f"{where}: {len(call.texts)} texts for {len(call.slots)} slots; one more is required.")
        for place, slot in enumerate(call.slots):
            if not 0 <= slot.width <= MAX_WIDTH:
                raise ValueError(f"{where}, slot {place}: the width is {slot.width}.")
            self._check_shares(f"{where}, slot {place}", slot.vector, _MIN_INT64 if call.is_signed(place) else 0)
        before = [gap.previous for gap in call.gaps]
        if len(set(before)) != len(before) or not set(before) <= calls | {START}:
            raise ValueError(f"{where}: the gaps follow {before}, which are not distinct calls of the class.")
        for gap in call.gaps:
            _check_histogram(f"{where}, gap after {gap.previous}", gap.histogram)
        _check_histogram(f"{where}, durations", call.durations)

    def _check_shares(self, where: str, vector: Vector, min_value: int = 0) -> None:
        for share in vector:
            _check_ranks(where, share.ranks, self.process_count)
            if len(share.shifts) != len(share.ranks.counts):
                raise ValueError(
                    f"{where}: {len(share.shifts)} shifts for {len(share.ranks.counts)} dimensions of ranks."
                )
            _check_row(where, share.values)
            size = row_size(share.values)
            for row in share.shifts:
                _check_row(where, row)
                if row_size(row) != size:
                    raise ValueError(f"{where}: {row_size(row)} shifts for {size} values.")
            low, high = self.bounds.compute(share, min_value)
            if low < min_value or high > _MAX_INT64:
                raise ValueError(f"{where}: values from {low} to {high} are out of range.")


def _check_histogram(where: str, times: TimeHistogram) -> None:
    parts: list[TimeHistogram | TimeBin] = [times, *times.bins]
    numbers = [number for part in parts for number in (part.minimum_s, part.mean_s, part.maximum_s)]
    if not all(map(math.isfinite, [*numbers, times.variance_s2])) or times.variance_s2 < 0:
        raise ValueError(f"{where}: times must be finite, and the variance nonnegative.")
    slack_s = _ROUNDING * max(map(abs, numbers))
    ordered = [number for part in times.bins for number in (part.minimum_s, part.mean_s, part.maximum_s)]
    for row in ((times.minimum_s, times.mean_s, times.maximum_s), (times.minimum_s, *ordered, times.maximum_s)):
        if any(second < first - slack_s for first, second in itertools.pairwise(row)):
            raise ValueError(f"{where}: the times are not in order.")
    if not all(0 <= part.count <= _MAX_INT64 for part in parts):
        raise ValueError(f"{where}: a count is negative or too large.")
    if sum(part.count for part in times.bins) != times.count:
        raise ValueError(f"{where}: the counts of the bins do not add up to that of the histogram.")


# ---- one class in sums over its ranks


def _check_sums(name: str, rank_class: RankClass, sums: _Sums) -> None:
    """Raise ValueError unless shares tile the class and values match the executions."""
    tiles = sum(sums.compute(ranks)[0] for ranks in rank_class.ranks) % _PRIME
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
    tile_sum = value_sum = 0
    for share in vector:
        plain, _ = sums.compute(share.ranks)
        tile_sum += plain
        value_sum += row_size(share.values) * plain
    if tile_sum % _PRIME != tiles:
        raise ValueError(f"{where}: the ranks of the shares differ from those of the class, or occur twice.")
    if value_sum % _PRIME != executions:
        raise ValueError(f"{where}: the number of values differs from the number of executions.")


def _body_executions(where: str, counts: Vector, sums: _Sums) -> int:
    """Total executions of a loop's body, as a polynomial over the ranks."""
    total = 0
    for share in counts:
        plain, by_index = sums.compute(share.ranks)
        first, steps = row_sum(share.values), [row_sum(row) for row in share.shifts]
        max_iterations = first + sum(
            max(0, step * (count - 1)) for step, count in zip(steps, share.ranks.counts, strict=True)
        )
        if max_iterations > _MAX_INT64:
            raise ValueError(f"{where}: the loop has {max_iterations} iterations in total, which is too many.")
        total += first * plain + sum(step * indexed for step, indexed in zip(steps, by_index, strict=True))
    return total % _PRIME


# ---- ranks in common


def _check_disjoint(trace: CompressedTrace) -> None:
    """Raise ValueError if a rank is in two classes."""
    lists = [ranks for rank_class in trace.classes for ranks in rank_class.ranks]
    if trace.process_count <= _MAX_MARKED_PROCESSES:
        tiles = RankClaims(trace.process_count)
        for ranks in lists:
            tiles.claim(ranks)
        return
    count = count_distinct(lists)
    if count is None:
        raise ValueError("The rank lists of the classes are too irregular to check that no rank is in two classes.")
    if count < row_size(tuple(lists)):
        raise ValueError("a rank is in two classes")
