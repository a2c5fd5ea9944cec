"""Blocks of ranks: parts of rank lists within which all values in question grow evenly from rank to rank.

The vectors of a call need not divide the ranks in the same way: a file's number may be in one share for all of them,
an offset in a share for each group of four. What needs several of them together (bytes of a count and a size, names
with two numbers) is done in blocks that each lie in one share of each vector, without going through the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.traces.expansion import Rows, place_in, row_values
from iosig.transforms.traces.progressions import Progression, extremes, size_of, sum_of
from iosig.transforms.traces.trace import Share, Vector

Objects = npt.NDArray[np.object_]

#: blocks that the ranks are divided into at most
MOST_BLOCKS = 1024


@dataclass(frozen=True, slots=True)
class Block:
    """Ranks, the values of the first of them, and by how much these grow along each dimension of the ranks.

    The values of the rank at `index` are values + sum of shifts[d] * index[d]; all of them rows (T) of the same length.
    """

    ranks: Progression
    values: Rows
    shifts: tuple[Rows, ...]

    @property
    def executed(self) -> int:
        """Return how many values each rank has."""
        return size_of(self.values[0][1])

    def total(self) -> int:
        """Return the sum of all values of all ranks, exact and in closed form."""
        return mean_total(self.ranks, rows_sum(self.values), [rows_sum(shift) for shift in self.shifts])

    def totals(self) -> Objects:
        """Return the sums over the ranks, one for each execution (T), as whole numbers of any size."""
        twice = 2 * row_values(self.values).astype(object)
        for shift, count in zip(self.shifts, self.ranks.counts, strict=True):
            if count > 1:
                twice += row_values(shift).astype(object) * (count - 1)
        found: Objects = twice * self.ranks.size // 2
        return found

    @property
    def first(self) -> int:
        """Return the first value of the first rank."""
        return rows_first(self.values)

    def moving_dims(self) -> list[int]:
        """Return the dimensions of the ranks along which the values may differ."""
        dims = enumerate(zip(self.shifts, self.ranks.counts, strict=True))
        return [place for place, (shift, count) in dims if count > 1 and not (is_one(shift) and not rows_first(shift))]

    def is_even(self) -> bool:
        """Return whether all ranks surely have the same values."""
        return not self.moving_dims()

    def is_constant(self) -> bool:
        """Return whether all values of all ranks are surely one number."""
        return is_one(self.values) and self.is_even()

    def least(self) -> int:
        """Return the least value of all: a bound first, and where that is below 0, the least itself."""
        bound = rows_least(self.values) + sum(
            min(0, rows_least(shift)) * (count - 1) for shift, count in zip(self.shifts, self.ranks.counts, strict=True)
        )
        if bound >= 0 or not self.executed:
            return bound
        low = row_values(self.values).astype(object)
        for shift, count in zip(self.shifts, self.ranks.counts, strict=True):
            low = low + np.minimum(row_values(shift).astype(object), 0) * (count - 1)
        return int(low.min())


def mean_total(ranks: Progression, first: int, steps: Sequence[int]) -> int:
    """Return the sum over the ranks of a number that grows by a step along each dimension."""
    twice = 2 * first + sum(step * (count - 1) for step, count in zip(steps, ranks.counts, strict=True))
    return twice * ranks.size // 2


def rows_sum(rows: Rows) -> int:
    """Return the sum of rows that are to be added up."""
    return sum(times * sum_of(row) for times, row in rows)


def rows_first(rows: Rows) -> int:
    """Return the first number of rows that are to be added up, which are not empty."""
    firsts = [(times, next(stretch for stretch in row if stretch.size)) for times, row in rows]
    return sum(
        times * (stretch.start if isinstance(stretch, Progression) else stretch.numbers[0]) for times, stretch in firsts
    )


def rows_least(rows: Rows) -> int:
    """Return a number that none of the rows' sums is below."""
    return sum(min(times * end for end in extremes(row)) for times, row in rows)


def is_one(rows: Rows) -> bool:
    """Return whether rows are surely one number all along; those that make up for one another are not found."""
    return all(not times or low == high for times, row in rows for low, high in [extremes(row)])


# ---- blocks of shares


def of_share(share: Share) -> Block:
    """Return a share as a block."""
    return Block(share.ranks, ((1, share.values),), tuple(((1, shift),) for shift in share.shifts))


def within(share: Share, ranks: Progression) -> Block | None:
    """Return the values of ranks that lie evenly in a share; None if they do not, or not all of them in it."""
    if ranks == share.ranks:
        return of_share(share)
    found = _steps(share.ranks, ranks)
    if found is None:
        return None
    first, steps = found
    values = ((1, share.values), *zip(first, share.shifts, strict=True))
    # a row without a part that counts has its length nevertheless
    shifts = [((0, share.values), *zip(step, share.shifts, strict=True)) for step in steps]
    return Block(ranks, _counted(values), tuple(map(_counted, shifts)))


def _counted(rows: Rows) -> Rows:
    return tuple((times, row) for place, (times, row) in enumerate(rows) if times or not place)


def _steps(outer: Progression, inner: Progression) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Return the place in `outer` of the first of `inner`, and the steps of places along each dimension of `inner`.

    None unless all of `inner` lies in `outer`, each step along a dimension the same step of places.
    """
    first = place_in(outer, inner.start)
    if first is None:
        return None
    steps: list[tuple[int, ...]] = []
    low, high = list(first), list(first)
    for stride, count in zip(inner.strides, inner.counts, strict=True):
        second = place_in(outer, inner.start + stride) if count > 1 else first
        if second is None:
            return None
        step = tuple(b - a for a, b in zip(first, second, strict=True))
        steps.append(step)
        low = [a + min(0, b) * (count - 1) for a, b in zip(low, step, strict=True)]
        high = [a + max(0, b) * (count - 1) for a, b in zip(high, step, strict=True)]
    is_inside = min(low, default=0) >= 0 and all(a < count for a, count in zip(high, outer.counts, strict=True))
    return (first, steps) if is_inside else None


def divided(vectors: Sequence[Vector]) -> list[Progression] | None:
    """Return rank lists that each lie evenly in one share of each of the vectors, which are of the same ranks.

    None where they would be too many.
    """
    blocks = [share.ranks for share in vectors[0] if share.ranks.size]
    for vector in vectors[1:]:
        parts: list[Progression] = []
        for block in blocks:
            found = refined(block, vector)
            if found is None or len(parts) + len(found) > MOST_BLOCKS:
                return None
            parts += found
        blocks = parts
    return blocks


def refined(block: Progression, vector: Vector) -> list[Progression] | None:
    """Return parts of a block that each lie evenly in one share of a vector; None where they would be too many."""
    done: list[Progression] = []
    waiting = [block]
    while waiting:
        if len(done) + len(waiting) > MOST_BLOCKS:
            return None
        ranks = waiting.pop()
        if any(within(share, ranks) is not None for share in vector):
            done.append(ranks)
            continue
        inside = [share.ranks for share in vector if share.ranks.size and _steps(ranks, share.ranks) is not None]
        if sum(part.size for part in inside) == ranks.size:
            done += inside
        elif ranks.size == 1:
            raise ValueError(f"Rank {ranks.start} is in no share of a vector of its class.")
        else:
            waiting += _halves(ranks)
    return done


def _halves(ranks: Progression) -> list[Progression]:
    """Return a rank list in two, cut across its first dimension that has more than one step."""
    place = next(place for place, count in enumerate(ranks.counts) if count > 1)
    half = ranks.counts[place] // 2
    counts = [_with(ranks.counts, place, count) for count in (half, ranks.counts[place] - half)]
    starts = (ranks.start, ranks.start + half * ranks.strides[place])
    return [Progression(start, ranks.strides, own) for start, own in zip(starts, counts, strict=True)]


def block_of(vector: Vector, ranks: Progression) -> Block:
    """Return the values of ranks that `divided` gave."""
    for share in vector:
        found = within(share, ranks)
        if found is not None:
            return found
    raise ValueError(f"Rank {ranks.start} is in no share of a vector of its class.")


def moving(ranks: Progression, entered: Block) -> list[Progression]:
    """Return the ranks of a block whose values, which are not negative, are not all 0."""
    first = rows_sum(entered.values)
    steps = [rows_sum(shift) for shift in entered.shifts]
    if first + sum(min(0, step) * (count - 1) for step, count in zip(steps, ranks.counts, strict=True)) > 0:
        return [ranks]
    # What grows evenly and is nowhere negative is 0 at one end of each dimension along which it grows, and only there.
    found: list[Progression] = []
    for place, (step, count) in enumerate(zip(steps, ranks.counts, strict=True)):
        if not step or count == 1:
            continue
        stride = ranks.strides[place]
        at_zero = 0 if step > 0 else count - 1
        rest = ranks.start + (stride if step > 0 else 0)
        found.append(Progression(rest, ranks.strides, _with(ranks.counts, place, count - 1)))
        ranks = Progression(ranks.start + at_zero * stride, ranks.strides, _with(ranks.counts, place, 1))
    return found


def _with(counts: tuple[int, ...], place: int, count: int) -> tuple[int, ...]:
    return (*counts[:place], count, *counts[place + 1 :])
