"""Fold integer rows, and values by rank, into nested progressions, which makes compressed traces small.

Folding works level by level: adjacent pieces of the same form, with starts that differ by one stride, become a
progression with one more dimension, until nothing changes. It is greedy from the left. So the same rule yields the same
form for all numbers of ranks, as extrapolation requires.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.lib.stride_tricks import as_strided

from iosig.transforms.arrays import Bools, Ints
from iosig.transforms.traces.progressions import NumberList, Progression, Stretch, expand_values, row_bounds, row_size
from iosig.transforms.traces.trace import Share, Vector

#: number of values in the sample that determines whether a long row is folded
_SAMPLE = 4096
#: limit of values with sums that do not overflow 64 bits
_EXACT = 1 << 62
#: maximum range of values with differences that fit into 64 bits
_MAX_RANGE = (1 << 63) - 1
#: minimum length of a progression; shorter sequences are listed
_MIN_PROGRESSION_SIZE = 4
#: maximum length of a repeated list
_MAX_BLOCK_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class _Piece:
    """Points that form one progression: index of the first point, strides (as points) and counts."""

    first: int
    strides: tuple[Ints, ...]
    counts: tuple[int, ...]


def fold_numbers(numbers: Ints) -> tuple[Stretch, ...]:
    """Fold a row of integers into progressions and lists.

    Parameters
    ----------
    numbers : (n,)
        Integers in any order.

    Returns
    -------
    tuple[Stretch, ...]
        Parts of the row, lossless and in order. Numbers with differences beyond 64 bits are listed.
    """
    if numbers.size == 1:
        return (Progression(int(numbers[0])),)
    if _is_wide(numbers):
        return (NumberList(tuple(numbers.tolist())),)
    if _is_irregular(numbers):
        return _fold_blocks(numbers) or (NumberList(tuple(numbers.tolist())),)
    pieces = _fold_points(numbers[:, None])
    return (_fold_blocks(numbers) if len(pieces) > 2 else ()) or _to_stretches(numbers, pieces)


def rank_lists(ranks: Ints) -> tuple[Progression, ...]:
    """Fold ascending ranks into progressions."""
    return tuple(
        Progression(int(ranks[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts)
        for piece in _fold_points(ranks[:, None])
    )


def fold_values(ranks: Ints, rows: Ints) -> Vector:
    """Fold the values of ranks into shares.

    Parameters
    ----------
    ranks : (R,)
        Ranks, ascending.
    rows : (R, T)
        Values of each rank in order of execution.

    Returns
    -------
    Vector
        Shares; each rank is in one share.
    """
    points = np.concatenate([ranks[:, None], rows], axis=1)
    return tuple(
        Share(
            Progression(int(ranks[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts),
            tuple(fold_numbers(stride[1:]) for stride in piece.strides),
            fold_numbers(rows[piece.first]),
        )
        for piece in _fold_points(points)
    )


def expand_vector(vector: Vector, ranks: Ints) -> Ints:
    """Expand the values of all ranks of a class.

    Parameters
    ----------
    vector
        Values by rank.
    ranks : (R,)
        All ranks of the vector, ascending.

    Returns
    -------
    (R, T)
        Values; T is 0 if the ranks differ in the number of values.
    """
    rows = [(share.ranks.values(), _expand_share(share)) for share in vector]
    lengths = {part.shape[1] for _, part in rows}
    table = np.empty((ranks.size, lengths.pop() if len(lengths) == 1 else 0), np.int64)
    for share_ranks, part in rows if table.size else ():
        table[np.searchsorted(ranks, share_ranks)] = part
    return table


def _expand_share(share: Share) -> Ints:
    rows = expand_values(share.values)[None, :]
    for shift, count in zip(share.shifts, share.ranks.counts, strict=True):
        steps = np.arange(count)[:, None] * expand_values(shift)
        rows = (rows[:, None, :] + steps).reshape(rows.shape[0] * count, steps.shape[1])
    return rows


def vector_bounds(vector: Vector) -> tuple[int, int]:
    """Compute minimum and maximum of a vector's values; 0 and 0 without values.

    For long rows, and for values beyond 62 bits, the bounds may be wider than necessary.
    """
    bounds = [_share_bounds(share) for share in vector if row_size(share.values)]
    return min((low for low, _ in bounds), default=0), max((high for _, high in bounds), default=0)


def _share_bounds(share: Share) -> tuple[int, int]:
    lowest, highest = row_bounds(share.values)
    steps = [count - 1 for count in share.ranks.counts]
    shifts = [row_bounds(shift) for shift in share.shifts]
    bounds = (
        lowest + sum(min(low, 0) * step for (low, _), step in zip(shifts, steps, strict=True)),
        highest + sum(max(high, 0) * step for (_, high), step in zip(shifts, steps, strict=True)),
    )
    if max(map(abs, bounds)) >= _EXACT or row_size(share.values) > _SAMPLE:
        return bounds
    row = expand_values(share.values)
    rows = [(expand_values(shift), step) for shift, step in zip(share.shifts, steps, strict=True)]
    low = row + sum(np.minimum(shift, 0) * step for shift, step in rows)
    high = row + sum(np.maximum(shift, 0) * step for shift, step in rows)
    return int(low.min()), int(high.max())


def _is_wide(numbers: Ints) -> bool:
    """Whether differences of the numbers can exceed 64 bits."""
    return numbers.size > 0 and int(numbers.max()) - int(numbers.min()) > _MAX_RANGE


def _fold_blocks(numbers: Ints) -> tuple[Stretch, ...]:
    """Fold a row into its shortest repeated list of numbers; empty without repetition."""
    for length in range(2, min(numbers.size // 2, _MAX_BLOCK_LENGTH) + 1):
        if numbers.size % length:
            continue
        blocks = numbers.reshape(-1, length)
        # cheap test that rejects most lengths
        if (blocks[1] - blocks[1, 0] != blocks[0] - blocks[0, 0]).any():
            continue
        if (blocks - blocks[:, :1] != blocks[0] - blocks[0, 0]).any():
            continue
        pieces = _fold_points(blocks[:, :1])
        if len(pieces) * _MIN_PROGRESSION_SIZE <= blocks.shape[0]:
            return tuple(_repeat_list(blocks, piece) for piece in pieces)
    return ()


def _repeat_list(blocks: Ints, piece: _Piece) -> NumberList:
    return NumberList(
        tuple(blocks[piece.first].tolist()), tuple(int(stride[0]) for stride in piece.strides), piece.counts
    )


def _is_irregular(numbers: Ints) -> bool:
    """Whether the middle of a long row consists of small pieces, so that folding all of it would be futile."""
    if numbers.size <= 2 * _SAMPLE:
        return False
    middle = numbers[numbers.size // 2 :][:_SAMPLE]
    return len(_fold_points(middle[:, None])) * _MIN_PROGRESSION_SIZE > middle.size


def _to_stretches(numbers: Ints, pieces: list[_Piece]) -> tuple[Stretch, ...]:
    stretches: list[Stretch] = []
    sizes = [int(np.prod(piece.counts, dtype=np.int64)) for piece in pieces]
    is_short = [size < _MIN_PROGRESSION_SIZE and len(pieces) > 1 for size in sizes]
    for is_group_short, group in groupby(range(len(pieces)), key=is_short.__getitem__):
        places = list(group)
        if is_group_short and len(places) > 1:
            first, last = pieces[places[0]].first, pieces[places[-1]].first + sizes[places[-1]]
            stretches.append(NumberList(tuple(numbers[first:last].tolist())))
        else:
            stretches += [_to_progression(numbers, pieces[place]) for place in places]
    return tuple(stretches)


def _to_progression(numbers: Ints, piece: _Piece) -> Progression:
    return Progression(int(numbers[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts)


@dataclass(slots=True)
class _Forms:
    """Strides and counts of pieces, numbered in order of occurrence; 0 is a single point."""

    strides: list[tuple[Ints, ...]] = field(default_factory=lambda: [()])
    counts: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[int, bytes, int], int] = field(default_factory=dict)

    def repeat(self, inner_form: int, stride: Ints, count: int) -> int:
        """Look up the form that repeats the inner form `count` times, one stride apart."""
        key = (inner_form, stride.tobytes(), count)
        if key not in self.numbers:
            self.numbers[key] = len(self.strides)
            self.strides.append((stride, *self.strides[inner_form]))
            self.counts.append((count, *self.counts[inner_form]))
        return self.numbers[key]


def _fold_points(points: Ints) -> list[_Piece]:
    """Split points (N, K) into progressions that hold in all coordinates."""
    if points.shape[0] == 1 or _is_wide(points):
        return [_Piece(first, (), ()) for first in range(points.shape[0])]
    forms = _Forms()
    firsts, shapes = np.arange(points.shape[0]), np.zeros(points.shape[0], np.int64)
    while True:
        next_firsts, next_shapes = _merge_pieces(points, firsts, shapes, forms)
        if len(next_firsts) == firsts.size:
            break
        firsts, shapes = np.array(next_firsts, np.int64), np.array(next_shapes, np.int64)
    return [
        _Piece(first, forms.strides[shape], forms.counts[shape])
        for first, shape in zip(firsts.tolist(), shapes.tolist(), strict=True)
    ]


def _merge_pieces(points: Ints, firsts: Ints, shapes: Ints, forms: _Forms) -> tuple[list[int], list[int]]:
    """Merge adjacent pieces of equal form and distance; return the first point and the form of each piece."""
    steps = points[firsts[1:]] - points[firsts[:-1]]
    is_alike = shapes[1:] == shapes[:-1]
    goes_on = is_alike[1:] & is_alike[:-1] & (steps[1:] == steps[:-1]).all(axis=1)
    # index of the next different link between adjacent pieces, for each link
    edges = np.append(np.flatnonzero(~goes_on) + 1, steps.shape[0])
    ends = edges[np.searchsorted(edges, np.arange(steps.shape[0]), side="right")].tolist() if steps.size else []
    is_equal, first_of, shape_of = is_alike.tolist(), firsts.tolist(), shapes.tolist()
    merged_firsts: list[int] = []
    merged_shapes: list[int] = []
    place, last = 0, firsts.size - 1
    while place <= last:
        end = ends[place] if place < last and is_equal[place] else place
        # a pair must not take the first piece of a longer progression after it
        if end - place == 1 and end < last and is_equal[end] and ends[end] - end >= 2:
            end = place
        shape = shape_of[place]
        merged_firsts.append(first_of[place])
        merged_shapes.append(forms.repeat(shape, steps[place], end - place + 1) if end > place else shape)
        place = end + 1
    return merged_firsts, merged_shapes


# ---- ranks that are assigned to classes, in one byte per rank


class RankClaims:
    """Ranks of a trace; each can be claimed by one class only."""

    def __init__(self, process_count: int) -> None:
        self._is_claimed = np.zeros(process_count, np.bool_)

    def claim(self, ranks: Progression) -> None:
        """Claim ascending ranks; raise ValueError if one is claimed already."""
        # each rank occurs once in the view, since strides exceed the extent of inner dimensions
        view: Bools = as_strided(self._is_claimed[ranks.start :], ranks.counts, ranks.strides)
        if view.any():
            index = np.unravel_index(int(np.argmax(view)), view.shape)
            rank = ranks.start + sum(int(at) * stride for at, stride in zip(index, ranks.strides, strict=True))
            raise ValueError(f"rank {rank} is in two classes")
        view[...] = True

    def first_free(self) -> int | None:
        """First unclaimed rank, if any."""
        return None if self._is_claimed.all() else int(np.argmin(self._is_claimed))

    def free_ranks(self) -> tuple[Progression, ...]:
        """Unclaimed ranks as rank lists, sorted by the first rank of each list."""
        # unless classes are interleaved, there are far fewer edges than ranks
        edges = np.flatnonzero(self._is_claimed[1:] != self._is_claimed[:-1]) + 1
        bounds = np.concatenate([[0], edges, [self._is_claimed.size]])
        first = int(self._is_claimed[0])
        starts, ends = bounds[first:-1:2], bounds[first + 1 :: 2]
        free_lists: list[Progression] = []
        for length in np.unique(ends - starts).tolist():
            lists = rank_lists(starts[ends - starts == length])
            inner_dimension = ((1,), (length,)) if length > 1 else ((), ())
            free_lists += [
                Progression(part.start, part.strides + inner_dimension[0], part.counts + inner_dimension[1])
                for part in lists
            ]
        return tuple(sorted(free_lists, key=lambda part: part.start))
