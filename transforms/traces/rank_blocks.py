"""Divide ranks into blocks: parts of rank lists in which all values of interest are linear in the rank index.

A vector consists of shares, each with the values of a list of ranks. The vectors of a call need not divide the ranks in
the same way: a file number may be in one share for all ranks, and an offset in one share per group of four ranks.
Computations on several vectors (bytes as count times size, names with two numbers) work on blocks that lie in a single
share of each vector, and do not iterate over ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.traces.expansion import Rows, expand_rows, find_index
from iosig.transforms.traces.progressions import Progression, row_bounds, row_size, row_sum
from iosig.transforms.traces.trace import Share, Vector

Objects = npt.NDArray[np.object_]

#: maximum number of blocks
MAX_BLOCKS = 1024


@dataclass(frozen=True, slots=True)
class Block:
    """Ranks, the values of the first rank, and their increments along each dimension of the ranks.

    The values of the rank at `index` are values + sum of shifts[d] * index[d]; all rows have the same length (T).
    """

    ranks: Progression
    values: Rows
    shifts: tuple[Rows, ...]

    @property
    def execution_count(self) -> int:
        """Number of values of each rank."""
        return row_size(self.values[0][1])

    def total(self) -> int:
        """Exact sum of all values of all ranks, in closed form."""
        return sum_linear(self.ranks, rows_sum(self.values), [rows_sum(shift) for shift in self.shifts])

    def totals(self) -> Objects:
        """Compute the sums over the ranks for each execution (T), as Python integers."""
        doubled = 2 * expand_rows(self.values).astype(object)
        for shift, count in zip(self.shifts, self.ranks.counts, strict=True):
            if count > 1:
                doubled += expand_rows(shift).astype(object) * (count - 1)
        totals: Objects = doubled * self.ranks.size // 2
        return totals

    @property
    def first(self) -> int:
        """First value of the first rank."""
        return rows_first(self.values)

    def varying_dimensions(self) -> list[int]:
        """Dimensions of the ranks along which values may differ."""
        dims = enumerate(zip(self.shifts, self.ranks.counts, strict=True))
        return [
            place
            for place, (shift, count) in dims
            if count > 1 and not (is_constant_row(shift) and not rows_first(shift))
        ]

    def is_uniform(self) -> bool:
        """Whether all ranks certainly have the same values."""
        return not self.varying_dimensions()

    def is_constant(self) -> bool:
        """Whether all values of all ranks are certainly equal."""
        return is_constant_row(self.values) and self.is_uniform()

    def lower_bound(self) -> int:
        """Lower bound of all values; exact if the bound would be negative."""
        bound = rows_lower_bound(self.values) + sum(
            min(0, rows_lower_bound(shift)) * (count - 1)
            for shift, count in zip(self.shifts, self.ranks.counts, strict=True)
        )
        if bound >= 0 or not self.execution_count:
            return bound
        low = expand_rows(self.values).astype(object)
        for shift, count in zip(self.shifts, self.ranks.counts, strict=True):
            low = low + np.minimum(expand_rows(shift).astype(object), 0) * (count - 1)
        return int(low.min())


def sum_linear(ranks: Progression, first: int, steps: Sequence[int]) -> int:
    """Sum a number that grows by a step along each dimension of the ranks over all ranks."""
    doubled = 2 * first + sum(step * (count - 1) for step, count in zip(steps, ranks.counts, strict=True))
    return doubled * ranks.size // 2


def rows_sum(rows: Rows) -> int:
    """Sum a linear combination of rows."""
    return sum(times * row_sum(row) for times, row in rows)


def rows_first(rows: Rows) -> int:
    """Compute the first number of a linear combination of rows, which must not be empty."""
    firsts = [(times, next(stretch for stretch in row if stretch.size)) for times, row in rows]
    return sum(
        times * (stretch.start if isinstance(stretch, Progression) else stretch.numbers[0]) for times, stretch in firsts
    )


def rows_lower_bound(rows: Rows) -> int:
    """Compute a lower bound of a linear combination of rows."""
    return sum(min(times * end for end in row_bounds(row)) for times, row in rows)


def is_constant_row(rows: Rows) -> bool:
    """Return whether a linear combination of rows is certainly constant; cancellation between rows is not detected."""
    return all(not times or low == high for times, row in rows for low, high in [row_bounds(row)])


# ---- blocks of shares


def block_from_share(share: Share) -> Block:
    """Convert a share to a block."""
    return Block(share.ranks, ((1, share.values),), tuple(((1, shift),) for shift in share.shifts))


def restrict_share(share: Share, ranks: Progression) -> Block | None:
    """Restrict a share to some of its ranks; None if these are not a sub-lattice of the share's ranks."""
    if ranks == share.ranks:
        return block_from_share(share)
    lattice = _find_lattice(share.ranks, ranks)
    if lattice is None:
        return None
    first, steps = lattice
    values = ((1, share.values), *zip(first, share.shifts, strict=True))
    # the first row has factor 0, and merely preserves the length
    shifts = [((0, share.values), *zip(step, share.shifts, strict=True)) for step in steps]
    return Block(ranks, _drop_zero_factors(values), tuple(map(_drop_zero_factors, shifts)))


def _drop_zero_factors(rows: Rows) -> Rows:
    return tuple((times, row) for place, (times, row) in enumerate(rows) if times or not place)


def _find_lattice(outer: Progression, inner: Progression) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Find the index in `outer` of the first rank of `inner`, and the index steps along each dimension of `inner`.

    The result is None unless `inner` lies completely in `outer`, with constant index steps.
    """
    first = find_index(outer, inner.start)
    if first is None:
        return None
    steps: list[tuple[int, ...]] = []
    low, high = list(first), list(first)
    for stride, count in zip(inner.strides, inner.counts, strict=True):
        second = find_index(outer, inner.start + stride) if count > 1 else first
        if second is None:
            return None
        step = tuple(b - a for a, b in zip(first, second, strict=True))
        steps.append(step)
        low = [a + min(0, b) * (count - 1) for a, b in zip(low, step, strict=True)]
        high = [a + max(0, b) * (count - 1) for a, b in zip(high, step, strict=True)]
    is_inside = min(low, default=0) >= 0 and all(a < count for a, count in zip(high, outer.counts, strict=True))
    return (first, steps) if is_inside else None


def divide_ranks(vectors: Sequence[Vector]) -> list[Progression] | None:
    """Divide ranks into blocks that each lie in a single share of every vector.

    Parameters
    ----------
    vectors
        One or more vectors over the same ranks.

    Returns
    -------
    list[Progression] or None
        None if the number of blocks exceeds `MAX_BLOCKS`.
    """
    blocks = [share.ranks for share in vectors[0] if share.ranks.size]
    for vector in vectors[1:]:
        parts: list[Progression] = []
        for block in blocks:
            refined_blocks = divide_block(block, vector)
            if refined_blocks is None or len(parts) + len(refined_blocks) > MAX_BLOCKS:
                return None
            parts += refined_blocks
        blocks = parts
    return blocks


def divide_block(block: Progression, vector: Vector) -> list[Progression] | None:
    """Divide a block into parts that each lie in a single share of a vector; None for more than `MAX_BLOCKS` parts."""
    finished: list[Progression] = []
    pending = [block]
    while pending:
        if len(finished) + len(pending) > MAX_BLOCKS:
            return None
        ranks = pending.pop()
        if any(restrict_share(share, ranks) is not None for share in vector):
            finished.append(ranks)
            continue
        inside = [share.ranks for share in vector if share.ranks.size and _find_lattice(ranks, share.ranks) is not None]
        if sum(part.size for part in inside) == ranks.size:
            finished += inside
        elif ranks.size == 1:
            raise ValueError(f"Rank {ranks.start} is in no share of a vector of its class.")
        else:
            pending += _bisect(ranks)
    return finished


def _bisect(ranks: Progression) -> list[Progression]:
    """Bisect a rank list along its first dimension of more than one step."""
    place = next(place for place, count in enumerate(ranks.counts) if count > 1)
    half = ranks.counts[place] // 2
    counts = [_replace_count(ranks.counts, place, count) for count in (half, ranks.counts[place] - half)]
    starts = (ranks.start, ranks.start + half * ranks.strides[place])
    return [Progression(start, ranks.strides, part) for start, part in zip(starts, counts, strict=True)]


def find_block(vector: Vector, ranks: Progression) -> Block:
    """Find the values of a block of ranks from `divide_ranks`."""
    for share in vector:
        block = restrict_share(share, ranks)
        if block is not None:
            return block
    raise ValueError(f"Rank {ranks.start} is in no share of a vector of its class.")


def find_active_ranks(ranks: Progression, entered: Block) -> list[Progression]:
    """Find the ranks of a block with any nonzero value; values must be nonnegative."""
    first = rows_sum(entered.values)
    steps = [rows_sum(shift) for shift in entered.shifts]
    if first + sum(min(0, step) * (count - 1) for step, count in zip(steps, ranks.counts, strict=True)) > 0:
        return [ranks]
    # a nonnegative linear function is 0 only at one end of each dimension in which it changes
    nonzero: list[Progression] = []
    for place, (step, count) in enumerate(zip(steps, ranks.counts, strict=True)):
        if not step or count == 1:
            continue
        stride = ranks.strides[place]
        at_zero = 0 if step > 0 else count - 1
        first_rank = ranks.start + (stride if step > 0 else 0)
        nonzero.append(Progression(first_rank, ranks.strides, _replace_count(ranks.counts, place, count - 1)))
        ranks = Progression(ranks.start + at_zero * stride, ranks.strides, _replace_count(ranks.counts, place, 1))
    return nonzero


def _replace_count(counts: tuple[int, ...], place: int, count: int) -> tuple[int, ...]:
    return (*counts[:place], count, *counts[place + 1 :])
