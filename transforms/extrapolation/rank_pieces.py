"""Ranks in pieces on which a number grows evenly along each dimension: where it turns, and by groups of ranks."""

from __future__ import annotations

from math import lcm

from iosig.transforms.traces.progressions import Progression

#: a rank list that meets the groups of ranks in more ways than so many is not divided
MOST_PIECES = 1024


def progression_of(start: int, *dimensions: tuple[int, int]) -> Progression:
    """Return a progression of these strides and counts, without the dimensions that have one member."""
    kept = [(stride, count) for stride, count in dimensions if count > 1]
    return Progression(start, tuple(stride for stride, _ in kept), tuple(count for _, count in kept))


def split_at(ranks: Progression, first: int) -> list[Progression]:
    """Return rising ranks as pieces that each lie wholly before a rank, or not."""
    if not ranks.counts or first <= ranks.start:
        return [ranks]
    (stride, *strides), (count, *counts) = ranks.strides, ranks.counts
    inner = tuple(zip(strides, counts, strict=True))
    reach = sum(step * (size - 1) for step, size in inner)
    # Blocks that end before the rank, and those that begin before it: the one more of the latter is itself divided.
    ended = min(max(-((ranks.start + reach - first) // stride), 0), count)
    begun = min(-((ranks.start - first) // stride), count)
    found = [progression_of(ranks.start, (stride, ended), *inner)] if ended else []
    if ended < begun:
        found += split_at(progression_of(ranks.start + ended * stride, *inner), first)
    if begun < count:
        found.append(progression_of(ranks.start + begun * stride, (stride, count - begun), *inner))
    return found


def in_groups(ranks: Progression, size: int) -> list[Progression] | None:
    """Return ranks as pieces along which the group, rank // size, and the member in it grow evenly; None if too many.

    Ranks that meet the groups differently from block to block do so again after a common multiple of both.
    """
    if not ranks.counts:
        return [ranks]
    (stride, *strides), (count, *counts) = ranks.strides, ranks.counts
    if len(ranks.counts) == 1 and size % stride == 0:
        return _row_in_groups(ranks.start, stride, count, size)
    inner = tuple(zip(strides, counts, strict=True))
    again = lcm(stride, size)
    blocks = min(again // stride, count)
    if blocks > MOST_PIECES:
        return None
    found: list[Progression] = []
    for block in range(blocks):
        parts = in_groups(progression_of(ranks.start + block * stride, *inner), size)
        if parts is None or len(found) + len(parts) > MOST_PIECES:
            return None
        times = -((block - count) // (again // stride))
        found += [
            progression_of(part.start, (again, times), *zip(part.strides, part.counts, strict=True)) for part in parts
        ]
    return found


def _row_in_groups(start: int, stride: int, count: int, size: int) -> list[Progression]:
    """Return a row of ranks as what is left of its first group, all whole groups, and what there is of the last."""
    members = size // stride
    first = min(count, -((start % size - size) // stride))
    if first == members:
        first = 0
    whole, rest = divmod(count - first, members)
    begin = start + first * stride
    pieces = [
        progression_of(start, (stride, first)),
        progression_of(begin, (size, whole), (stride, members)),
        progression_of(begin + whole * size, (stride, rest)),
    ]
    return [piece for piece, times in zip(pieces, (first, whole, rest), strict=True) if times]
