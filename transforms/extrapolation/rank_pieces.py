"""Split rank lists into pieces on which a number is linear: at a given rank, or by groups of ranks."""

from __future__ import annotations

from math import lcm

from iosig.transforms.traces.progressions import Progression

#: maximum number of pieces of a rank list
MAX_PIECES = 1024


def make_progression(start: int, *dimensions: tuple[int, int]) -> Progression:
    """Create a progression from dimensions (stride, count), and omit dimensions with a single member."""
    proper = [(stride, count) for stride, count in dimensions if count > 1]
    return Progression(start, tuple(stride for stride, _ in proper), tuple(count for _, count in proper))


def split_at(ranks: Progression, first: int) -> list[Progression]:
    """Split ascending ranks into pieces that lie entirely below a given rank, or entirely at or above it."""
    if not ranks.counts or first <= ranks.start:
        return [ranks]
    (stride, *strides), (count, *counts) = ranks.strides, ranks.counts
    inner_dimensions = tuple(zip(strides, counts, strict=True))
    reach = sum(step * (size - 1) for step, size in inner_dimensions)
    # numbers of blocks that end below the rank and that start below it; a block that spans it is split recursively
    below_count = min(max(-((ranks.start + reach - first) // stride), 0), count)
    start_count = min(-((ranks.start - first) // stride), count)
    pieces = [make_progression(ranks.start, (stride, below_count), *inner_dimensions)] if below_count else []
    if below_count < start_count:
        pieces += split_at(make_progression(ranks.start + below_count * stride, *inner_dimensions), first)
    if start_count < count:
        pieces.append(
            make_progression(ranks.start + start_count * stride, (stride, count - start_count), *inner_dimensions)
        )
    return pieces


def split_by_groups(ranks: Progression, size: int) -> list[Progression] | None:
    """Split ranks into pieces on which rank // size (group) and rank % size (member) are linear.

    Return None if the pieces are too many. The alignment of rank blocks with groups repeats after a common multiple of
    their lengths.
    """
    if not ranks.counts:
        return [ranks]
    (stride, *strides), (count, *counts) = ranks.strides, ranks.counts
    if len(ranks.counts) == 1 and size % stride == 0:
        return _row_in_groups(ranks.start, stride, count, size)
    inner_dimensions = tuple(zip(strides, counts, strict=True))
    multiple = lcm(stride, size)
    blocks = min(multiple // stride, count)
    if blocks > MAX_PIECES:
        return None
    pieces: list[Progression] = []
    for block in range(blocks):
        parts = split_by_groups(make_progression(ranks.start + block * stride, *inner_dimensions), size)
        if parts is None or len(pieces) + len(parts) > MAX_PIECES:
            return None
        times = -((block - count) // (multiple // stride))
        pieces += [
            make_progression(part.start, (multiple, times), *zip(part.strides, part.counts, strict=True))
            for part in parts
        ]
    return pieces


def _row_in_groups(start: int, stride: int, count: int, size: int) -> list[Progression]:
    """Split a row of ranks into a partial first group, complete groups, and a partial last group."""
    members = size // stride
    first = min(count, -((start % size - size) // stride))
    if first == members:
        first = 0
    group_count, last = divmod(count - first, members)
    begin = start + first * stride
    pieces = [
        make_progression(start, (stride, first)),
        make_progression(begin, (size, group_count), (stride, members)),
        make_progression(begin + group_count * size, (stride, last)),
    ]
    return [piece for piece, times in zip(pieces, (first, group_count, last), strict=True) if times]
