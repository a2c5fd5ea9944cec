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
from dataclasses import dataclass

import numpy as np

from transforms.arrays import Ints


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
Run = Progression | Listed


def values(runs: tuple[Run, ...]) -> Ints:
    """Return all numbers of a row."""
    return np.concatenate([np.empty(0, np.int64), *(run.values() for run in runs)])


def extremes(runs: tuple[Run, ...]) -> tuple[int, int]:
    """Return the least and the largest of the numbers; 0 and 0 where there are none."""
    ends: list[int] = []
    for run in runs:
        if not run.size:
            continue
        reaches = [stride * (count - 1) for stride, count in zip(run.strides, run.counts, strict=True)]
        numbers = run.numbers if isinstance(run, Listed) else (run.start,)
        ends.append(min(numbers) + sum(min(0, reach) for reach in reaches))
        ends.append(max(numbers) + sum(max(0, reach) for reach in reaches))
    return (min(ends), max(ends)) if ends else (0, 0)


def size_of(runs: tuple[Run, ...]) -> int:
    """Return how many numbers a row has."""
    return sum(run.size for run in runs)


def sum_of(runs: tuple[Run, ...]) -> int:
    """Return the sum of the numbers of a row, exact and in closed form."""
    return sum(map(run_sum, runs))


def run_sum(run: Run) -> int:
    """Return the sum of a run: the mean of its steps, which is that of their ends, beside each number."""
    numbers = run.numbers if isinstance(run, Listed) else (run.start,)
    twice_mean = sum(stride * (count - 1) for stride, count in zip(run.strides, run.counts, strict=True))
    times = math.prod(run.counts)
    return (2 * sum(numbers) + twice_mean * len(numbers)) * times // 2
