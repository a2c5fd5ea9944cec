"""Represent integer sequences, i.e. rank lists and parameter values, as nested arithmetic progressions.

A regular section descriptor (RSD) has a start, a stride and a count; nested RSDs are power RSDs (PRSDs) [1]. A
`Progression` is a PRSD of numbers. A row of numbers that is not a single progression is a concatenation of progressions
and lists (`NumberList`). A list can repeat along a progression, for example the offsets of unequal
parts of a file in each time step.

[1] M. Noeth et al., ScalaTrace: Scalable compression and replay of communication traces for high-performance
computing, JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints


@dataclass(frozen=True, slots=True)
class Progression:
    """Numbers `start + sum of strides[d] * index[d]` for all 0 <= index[d] < counts[d]; the last index varies fastest.

    A progression without dimensions is the single number `start`.
    """

    start: int
    strides: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of values in the progression."""
        return math.prod(self.counts)

    def values(self) -> Ints:
        """Expand the progression, in order."""
        numbers = np.array([self.start], np.int64)
        for stride, count in zip(self.strides, self.counts, strict=True):
            numbers = np.add.outer(numbers, np.arange(count, dtype=np.int64) * stride).reshape(-1)
        return numbers


@dataclass(frozen=True, slots=True)
class NumberList:
    """Irregular numbers, repeated with the offsets of a progression from 0; the numbers vary fastest.

    Without strides and counts, the numbers occur once.
    """

    numbers: tuple[int, ...]
    strides: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of values, including repetitions."""
        return len(self.numbers) * math.prod(self.counts)

    def values(self) -> Ints:
        """Expand the repetitions, in order."""
        starts = Progression(0, self.strides, self.counts).values()
        return np.add.outer(starts, np.array(self.numbers, np.int64)).reshape(-1)


#: part of a row of numbers
Stretch = Progression | NumberList


def expand_values(stretches: tuple[Stretch, ...]) -> Ints:
    """Expand a row of progressions and lists.

    Parameters
    ----------
    stretches
        Concatenated elements of the row.

    Returns
    -------
    (n,)
        All numbers, in order.
    """
    return np.concatenate([np.empty(0, np.int64), *(stretch.values() for stretch in stretches)])


def row_bounds(stretches: tuple[Stretch, ...]) -> tuple[int, int]:
    """Compute minimum and maximum of a row in closed form; 0 and 0 for an empty row."""
    ends: list[int] = []
    for stretch in stretches:
        if not stretch.size:
            continue
        spans = [stride * (count - 1) for stride, count in zip(stretch.strides, stretch.counts, strict=True)]
        numbers = stretch.numbers if isinstance(stretch, NumberList) else (stretch.start,)
        ends.append(min(numbers) + sum(min(0, span) for span in spans))
        ends.append(max(numbers) + sum(max(0, span) for span in spans))
    return (min(ends), max(ends)) if ends else (0, 0)


def row_size(stretches: tuple[Stretch, ...]) -> int:
    """Count the values of a row without expansion."""
    return sum(stretch.size for stretch in stretches)


def row_sum(stretches: tuple[Stretch, ...]) -> int:
    """Compute the exact sum of a row in closed form."""
    return sum(map(stretch_sum, stretches))


def stretch_sum(stretch: Stretch) -> int:
    """Compute the exact sum of a stretch from the mean of its offsets."""
    numbers = stretch.numbers if isinstance(stretch, NumberList) else (stretch.start,)
    twice_mean = sum(stride * (count - 1) for stride, count in zip(stretch.strides, stretch.counts, strict=True))
    times = math.prod(stretch.counts)
    return (2 * sum(numbers) + twice_mean * len(numbers)) * times // 2


# ---- sets of numbers, and their sizes without expansion

# The numbers in file names are regular, so the set of all names is a few progressions for any number of ranks.
# Progressions that overlap irregularly are expanded, up to a limit.

#: maximum number of values that are expanded if progressions overlap
_MAX_EXPANDED = 1 << 22
#: maximum number of progressions that are compared pairwise
_MAX_COMPARED = 256
_LONGS = np.iinfo(np.int64)


def find_distinct(parts: Iterable[Progression]) -> tuple[Progression, ...] | None:
    """Convert progressions to disjoint, ascending progressions of the same set of numbers.

    Parameters
    ----------
    parts
        Progressions that may overlap.

    Returns
    -------
    tuple[Progression, ...] or None
        None if the progressions overlap irregularly and are too long to be expanded.
    """
    normalized = list(dict.fromkeys(map(_normalize, (part for part in parts if part.size))))
    nested = [part for part in normalized if _is_nested(part)]
    if len(nested) == len(normalized):
        disjoint = _drop_subsets(_merge_linear(nested))
        if disjoint is not None:
            return disjoint
    return _fold_union(normalized)


def count_distinct(parts: Iterable[Progression]) -> int | None:
    """Count distinct values; None if unknown, see `find_distinct`."""
    disjoint = find_distinct(parts)
    return None if disjoint is None else sum(part.size for part in disjoint)


def value_span(part: Progression) -> int:
    """Compute the difference between maximum and minimum of an ascending progression."""
    return sum(stride * (count - 1) for stride, count in zip(part.strides, part.counts, strict=True))


def _normalize(part: Progression) -> Progression:
    """Normalize a progression, as a set: positive strides in descending order, contiguous dimensions merged."""
    start = part.start
    dims: list[tuple[int, int]] = []
    for stride, count in zip(part.strides, part.counts, strict=True):
        if stride and count > 1:
            start += min(0, stride) * (count - 1)
            dims.append((abs(stride), count))
    folded: list[tuple[int, int]] = []
    for stride, count in sorted(dims):
        if folded:
            inner_stride, length = folded[-1]
            times, remainder = divmod(stride, inner_stride)
            if not remainder and times <= length:
                folded[-1] = inner_stride, length + times * (count - 1)
                continue
        folded.append((stride, count))
    return Progression(start, tuple(s for s, _ in reversed(folded)), tuple(c for _, c in reversed(folded)))


def _is_nested(part: Progression) -> bool:
    """Whether each stride exceeds the extent of the inner dimensions, so that all values are distinct."""
    extent = 0
    for stride, count in zip(reversed(part.strides), reversed(part.counts), strict=True):
        if stride <= extent:
            return False
        extent += stride * (count - 1)
    return True


def _merge_linear(parts: Sequence[Progression]) -> list[Progression]:
    """Merge progressions that continue one another in one dimension."""
    linear = [part for part in parts if len(part.strides) == 1]
    points = sorted({part.start for part in parts if not part.strides})
    multidimensional = [part for part in parts if len(part.strides) > 1]
    by_stride: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for part in linear:
        (stride,) = part.strides
        by_stride.setdefault((stride, part.start % stride), []).append((part.start, part.start + value_span(part)))
    unmerged_points: list[int] = []
    for point in points:
        keys = [key for key in by_stride if point % key[0] == key[1]]
        near = [key for key in keys if any(low - key[0] <= point <= high + key[0] for low, high in by_stride[key])]
        if near:
            by_stride[near[0]].append((point, point))
        else:
            unmerged_points.append(point)
    return [*multidimensional, *_merge_intervals(by_stride), *fold_ascending(np.array(unmerged_points, object))]


def _merge_intervals(by_stride: dict[tuple[int, int], list[tuple[int, int]]]) -> list[Progression]:
    """Merge touching or overlapping intervals of equal stride and remainder."""
    merged: list[Progression] = []
    for (stride, _), intervals in by_stride.items():
        ends: list[tuple[int, int]] = []
        for low, high in sorted(intervals):
            if ends and low <= ends[-1][1] + stride:
                ends[-1] = ends[-1][0], max(ends[-1][1], high)
            else:
                ends.append((low, high))
        merged += [Progression(low, (stride,), ((high - low) // stride + 1,)) for low, high in ends]
    return merged


def _drop_subsets(parts: list[Progression]) -> tuple[Progression, ...] | None:
    """Drop progressions that are contained in others; None if two may overlap partially."""
    if len(parts) > _MAX_COMPARED:
        return None
    selected: list[Progression] = []
    for part in sorted(parts, key=lambda part: -part.size):
        if any(_is_subset(part, larger) for larger in selected):
            continue
        if not all(_is_disjoint(part, larger) for larger in selected):
            return None
        selected.append(part)
    return tuple(sorted(selected, key=lambda part: part.start))


def _is_subset(part: Progression, other: Progression) -> bool:
    """Whether a progression is certainly a subset of another one, which has one dimension."""
    if len(other.strides) != 1:
        return part == other
    (stride,) = other.strides
    is_aligned = all(step % stride == 0 for step in part.strides) and (part.start - other.start) % stride == 0
    return is_aligned and other.start <= part.start and part.start + value_span(part) <= other.start + value_span(other)


def _is_disjoint(part: Progression, other: Progression) -> bool:
    """Whether two progressions are certainly disjoint, by their ranges or remainders."""
    if part.start + value_span(part) < other.start or other.start + value_span(other) < part.start:
        return True
    common = math.gcd(*part.strides, *other.strides)
    return common > 1 and (part.start - other.start) % common != 0


def _fold_union(parts: Sequence[Progression]) -> tuple[Progression, ...] | None:
    """Expand progressions and fold their union; None if that exceeds the limit."""
    is_large = any(part.start < _LONGS.min or part.start + value_span(part) > _LONGS.max for part in parts)
    if is_large or sum(part.size for part in parts) > _MAX_EXPANDED:
        return None
    numbers = np.unique(np.concatenate([np.empty(0, np.int64), *(part.values() for part in parts)]))
    return tuple(fold_ascending(numbers))


def fold_ascending(ascending: Ints | npt.NDArray[np.object_]) -> list[Progression]:
    """Fold ascending numbers into progressions, greedily from the left; a pair of numbers is not folded."""
    steps = np.diff(ascending)
    folded: list[Progression] = []
    # a progression can end only where the distance changes
    breaks = np.flatnonzero(steps[1:] != steps[:-1]) + 1 if steps.size else np.empty(0, np.int64)
    first, next_break = 0, 0
    while first < ascending.size:
        while next_break < breaks.size and breaks[next_break] <= first:
            next_break += 1
        last = int(breaks[next_break]) if next_break < breaks.size else ascending.size - 1
        if last - first < 2:
            folded.append(Progression(int(ascending[first])))
            first += 1
        else:
            folded.append(Progression(int(ascending[first]), (int(steps[first]),), (last - first + 1,)))
            first = last + 1
    return folded
