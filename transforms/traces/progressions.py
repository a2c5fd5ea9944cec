"""Whole numbers in a row as nested arithmetic progressions: the form of rank lists and of parameters' values.

A regular section descriptor (RSD) is a start, a stride and a count; nested in one another they are power RSDs
(PRSDs) [1]. Here a `Progression` is a PRSD of numbers, and a row of numbers that is not one progression is several,
one behind the other, with what follows no rule `Listed` as it stands.

Numbers without a rule can come again by one, as the offsets of a file's unequal parts do with each time step.

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
    """The numbers `start + sum of strides[d] * index[d]`, for all 0 <= index[d] < counts[d], the last index fastest.

    Without dimensions it is the one number `start`.
    """

    start: int
    strides: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Return how many numbers these are."""
        return math.prod(self.counts)

    def values(self) -> Ints:
        """Return all of the numbers, in order."""
        found = np.array([self.start], np.int64)
        for stride, count in zip(self.strides, self.counts, strict=True):
            found = np.add.outer(found, np.arange(count, dtype=np.int64) * stride).reshape(-1)
        return found


@dataclass(frozen=True, slots=True)
class Listed:
    """Numbers that follow no rule, all of them again and again as a progression from 0 says, the numbers fastest.

    Without strides and counts, it is the numbers as they stand.
    """

    numbers: tuple[int, ...]
    strides: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Return how many numbers these are."""
        return len(self.numbers) * math.prod(self.counts)

    def values(self) -> Ints:
        """Return all of the numbers, in order."""
        starts = Progression(0, self.strides, self.counts).values()
        return np.add.outer(starts, np.array(self.numbers, np.int64)).reshape(-1)


#: a row of numbers is a tuple of these
Stretch = Progression | Listed


def values(stretches: tuple[Stretch, ...]) -> Ints:
    """Return all numbers of a row."""
    return np.concatenate([np.empty(0, np.int64), *(stretch.values() for stretch in stretches)])


def extremes(stretches: tuple[Stretch, ...]) -> tuple[int, int]:
    """Return the least and the largest of the numbers; 0 and 0 where there are none."""
    ends: list[int] = []
    for stretch in stretches:
        if not stretch.size:
            continue
        reaches = [stride * (count - 1) for stride, count in zip(stretch.strides, stretch.counts, strict=True)]
        numbers = stretch.numbers if isinstance(stretch, Listed) else (stretch.start,)
        ends.append(min(numbers) + sum(min(0, reach) for reach in reaches))
        ends.append(max(numbers) + sum(max(0, reach) for reach in reaches))
    return (min(ends), max(ends)) if ends else (0, 0)


def size_of(stretches: tuple[Stretch, ...]) -> int:
    """Return how many numbers a row has."""
    return sum(stretch.size for stretch in stretches)


def sum_of(stretches: tuple[Stretch, ...]) -> int:
    """Return the sum of the numbers of a row, exact and in closed form."""
    return sum(map(stretch_sum, stretches))


def stretch_sum(stretch: Stretch) -> int:
    """Return the sum of a stretch: the mean of its steps, which is that of their ends, beside each number."""
    numbers = stretch.numbers if isinstance(stretch, Listed) else (stretch.start,)
    twice_mean = sum(stride * (count - 1) for stride, count in zip(stretch.strides, stretch.counts, strict=True))
    times = math.prod(stretch.counts)
    return (2 * sum(numbers) + twice_mean * len(numbers)) * times // 2


# ---- sets of numbers: how many distinct ones there are, without listing them

# Which numbers the ranks of a program put into file names follows rules, so the set of all names is a few
# progressions, whatever the number of ranks. Those that lie across one another irregularly are listed, as far as that
# is bounded.

#: numbers that are listed at most where progressions lie across one another
_MOST_LISTED = 1 << 22
#: progressions that are held against one another, pair by pair
_MOST_PAIRED = 256
_LONGS = np.iinfo(np.int64)


def distinct(parts: Iterable[Progression]) -> tuple[Progression, ...] | None:
    """Return the numbers of all parts as progressions with rising numbers that share none; None if not to be had.

    That is so where they lie across one another irregularly, and are too many to be listed.
    """
    known = list(dict.fromkeys(map(_folded, (part for part in parts if part.size))))
    nested = [part for part in known if _is_nested(part)]
    if len(nested) == len(known):
        found = _apart(_merged(nested))
        if found is not None:
            return found
    return _listed(known)


def distinct_count(parts: Iterable[Progression]) -> int | None:
    """Return how many distinct numbers there are; None if that is not to be had."""
    found = distinct(parts)
    return None if found is None else sum(part.size for part in found)


def reach(part: Progression) -> int:
    """Return the difference of the largest number and the least of a part that rises."""
    return sum(stride * (count - 1) for stride, count in zip(part.strides, part.counts, strict=True))


def _folded(part: Progression) -> Progression:
    """Return the same set with positive strides, the largest first, and dimensions that continue one another as one."""
    start = part.start
    dims: list[tuple[int, int]] = []
    for stride, count in zip(part.strides, part.counts, strict=True):
        if stride and count > 1:
            start += min(0, stride) * (count - 1)
            dims.append((abs(stride), count))
    folded: list[tuple[int, int]] = []
    for stride, count in sorted(dims):
        if folded:
            inner, length = folded[-1]
            times, rest = divmod(stride, inner)
            if not rest and times <= length:
                folded[-1] = inner, length + times * (count - 1)
                continue
        folded.append((stride, count))
    return Progression(start, tuple(s for s, _ in reversed(folded)), tuple(c for _, c in reversed(folded)))


def _is_nested(part: Progression) -> bool:
    """Return whether each stride is larger than all that is inside it reaches: then no number comes twice."""
    inner = 0
    for stride, count in zip(reversed(part.strides), reversed(part.counts), strict=True):
        if stride <= inner:
            return False
        inner += stride * (count - 1)
    return True


def _merged(parts: Sequence[Progression]) -> list[Progression]:
    """Return parts with those put together that continue one another in one dimension."""
    flat = [part for part in parts if len(part.strides) == 1]
    points = sorted({part.start for part in parts if not part.strides})
    others = [part for part in parts if len(part.strides) > 1]
    by_stride: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for part in flat:
        (stride,) = part.strides
        by_stride.setdefault((stride, part.start % stride), []).append((part.start, part.start + reach(part)))
    left: list[int] = []
    for point in points:
        keys = [key for key in by_stride if point % key[0] == key[1]]
        near = [key for key in keys if any(low - key[0] <= point <= high + key[0] for low, high in by_stride[key])]
        if near:
            by_stride[near[0]].append((point, point))
        else:
            left.append(point)
    return [*others, *_joined(by_stride), *progressions_of(np.array(left, object))]


def _joined(by_stride: dict[tuple[int, int], list[tuple[int, int]]]) -> list[Progression]:
    """Return stretches of numbers of one stride and remainder, joined where they touch."""
    found: list[Progression] = []
    for (stride, _), stretches in by_stride.items():
        ends: list[tuple[int, int]] = []
        for low, high in sorted(stretches):
            if ends and low <= ends[-1][1] + stride:
                ends[-1] = ends[-1][0], max(ends[-1][1], high)
            else:
                ends.append((low, high))
        found += [Progression(low, (stride,), ((high - low) // stride + 1,)) for low, high in ends]
    return found


def _apart(parts: list[Progression]) -> tuple[Progression, ...] | None:
    """Return parts without those that lie in others; None where two may share some of their numbers."""
    if len(parts) > _MOST_PAIRED:
        return None
    kept: list[Progression] = []
    for part in sorted(parts, key=lambda part: -part.size):
        if any(_is_within(part, other) for other in kept):
            continue
        if not all(_is_apart(part, other) for other in kept):
            return None
        kept.append(part)
    return tuple(sorted(kept, key=lambda part: part.start))


def _is_within(part: Progression, other: Progression) -> bool:
    """Return whether all of a part's numbers are surely among those of another one, which has one dimension."""
    if len(other.strides) != 1:
        return part == other
    (stride,) = other.strides
    fits = all(own % stride == 0 for own in part.strides) and (part.start - other.start) % stride == 0
    return fits and other.start <= part.start and part.start + reach(part) <= other.start + reach(other)


def _is_apart(part: Progression, other: Progression) -> bool:
    """Return whether two parts surely share no number: by their ranges, or their remainders."""
    if part.start + reach(part) < other.start or other.start + reach(other) < part.start:
        return True
    common = math.gcd(*part.strides, *other.strides)
    return common > 1 and (part.start - other.start) % common != 0


def _listed(parts: Sequence[Progression]) -> tuple[Progression, ...] | None:
    """Return what parts hold, by listing it; None where that is too much."""
    is_large = any(part.start < _LONGS.min or part.start + reach(part) > _LONGS.max for part in parts)
    if is_large or sum(part.size for part in parts) > _MOST_LISTED:
        return None
    numbers = np.unique(np.concatenate([np.empty(0, np.int64), *(part.values() for part in parts)]))
    return tuple(progressions_of(numbers))


def progressions_of(rising: Ints | npt.NDArray[np.object_]) -> list[Progression]:
    """Return rising numbers as progressions, from the first on each as long as it goes; pairs stay single numbers."""
    steps = np.diff(rising)
    found: list[Progression] = []
    # where the distance changes: the only places at which a progression can end
    turns = np.flatnonzero(steps[1:] != steps[:-1]) + 1 if steps.size else np.empty(0, np.int64)
    place, turn = 0, 0
    while place < rising.size:
        while turn < turns.size and turns[turn] <= place:
            turn += 1
        last = int(turns[turn]) if turn < turns.size else rising.size - 1
        if last - place < 2:
            found.append(Progression(int(rising[place])))
            place += 1
        else:
            found.append(Progression(int(rising[place]), (int(steps[place]),), (last - place + 1,)))
            place = last + 1
    return found
