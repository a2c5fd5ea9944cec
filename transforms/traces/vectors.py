"""Rows of numbers and values by rank, folded into nested progressions: what makes a trace small.

Folding goes level by level: neighbours of the same form whose starts are one stride apart become one progression
with a dimension more, until nothing does. It is greedy from the left, so the same rule gives the same form at all
rank counts, which extrapolation needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.lib.stride_tricks import as_strided

from iosig.transforms.arrays import Bools, Ints
from iosig.transforms.traces.progressions import Listed, Progression, Stretch, extremes, size_of, values
from iosig.transforms.traces.trace import Share, Vector

#: numbers by which a long row is judged
_SAMPLE = 4096
#: sums below this are exact in 64 bits
_EXACT = 1 << 62
#: numbers that are no further apart have differences of 64 bits
_WIDEST = (1 << 63) - 1
#: a piece of fewer numbers is shorter when it is listed
_LEAST_SIZE = 4
#: of the numbers that come again and again
_LONGEST_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class _Piece:
    """Points that are one progression: the index of the first one, and strides (as points) and counts."""

    first: int
    strides: tuple[Ints, ...]
    counts: tuple[int, ...]


def stretches_of(numbers: Ints) -> tuple[Stretch, ...]:
    """Return a row of numbers as progressions and lists, in order; the same numbers, losslessly.

    Numbers too far apart for differences of 64 bits are listed.
    """
    if numbers.size == 1:
        return (Progression(int(numbers[0])),)
    if _is_wide(numbers):
        return (Listed(tuple(numbers.tolist())),)
    if _is_irregular(numbers):
        return _blocks(numbers) or (Listed(tuple(numbers.tolist())),)
    pieces = _pieces(numbers[:, None])
    return (_blocks(numbers) if len(pieces) > 2 else ()) or _stretches(numbers, pieces)


def rank_lists(ranks: Ints) -> tuple[Progression, ...]:
    """Return rising ranks as progressions."""
    return tuple(
        Progression(int(ranks[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts)
        for piece in _pieces(ranks[:, None])
    )


def vector_of(ranks: Ints, rows: Ints) -> Vector:
    """Return the values of ranks as shares.

    ranks: int64[R], rising; rows: int64[R, T], the values of each rank in the order of execution.
    """
    points = np.concatenate([ranks[:, None], rows], axis=1)
    return tuple(
        Share(
            Progression(int(ranks[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts),
            tuple(stretches_of(stride[1:]) for stride in piece.strides),
            stretches_of(rows[piece.first]),
        )
        for piece in _pieces(points)
    )


def table_of(vector: Vector, ranks: Ints) -> Ints:
    """Return the values of all ranks of a class, int64[R, T]; with no columns where not all have equally many.

    ranks: int64[R], rising: all ranks of the vector.
    """
    rows = [(share.ranks.values(), _rows(share)) for share in vector]
    lengths = {part.shape[1] for _, part in rows}
    found = np.empty((ranks.size, lengths.pop() if len(lengths) == 1 else 0), np.int64)
    for own, part in rows if found.size else ():
        found[np.searchsorted(ranks, own)] = part
    return found


def _rows(share: Share) -> Ints:
    found = values(share.values)[None, :]
    for shift, count in zip(share.shifts, share.ranks.counts, strict=True):
        steps = np.arange(count)[:, None] * values(shift)
        found = (found[:, None, :] + steps).reshape(found.shape[0] * count, steps.shape[1])
    return found


def bounds_of(vector: Vector) -> tuple[int, int]:
    """Return the least and the largest value of a vector; 0 and 0 where there are none.

    Of rows too long to look at, and of values that could leave 62 bits, these are numbers that none is beyond.
    """
    bounds = [_bounds(share) for share in vector if size_of(share.values)]
    return min((least for least, _ in bounds), default=0), max((most for _, most in bounds), default=0)


def _bounds(share: Share) -> tuple[int, int]:
    least, most = extremes(share.values)
    steps = [count - 1 for count in share.ranks.counts]
    shifts = [extremes(shift) for shift in share.shifts]
    widest = (
        least + sum(min(low, 0) * step for (low, _), step in zip(shifts, steps, strict=True)),
        most + sum(max(high, 0) * step for (_, high), step in zip(shifts, steps, strict=True)),
    )
    if max(map(abs, widest)) >= _EXACT or size_of(share.values) > _SAMPLE:
        return widest
    row = values(share.values)
    rows = [(values(shift), step) for shift, step in zip(share.shifts, steps, strict=True)]
    low = row + sum(np.minimum(shift, 0) * step for shift, step in rows)
    high = row + sum(np.maximum(shift, 0) * step for shift, step in rows)
    return int(low.min()), int(high.max())


def _is_wide(numbers: Ints) -> bool:
    """Return whether differences of numbers can leave 64 bits."""
    return numbers.size > 0 and int(numbers.max()) - int(numbers.min()) > _WIDEST


def _blocks(numbers: Ints) -> tuple[Stretch, ...]:
    """Return a row as the shortest list of numbers that comes again and again; nothing if there is none."""
    for length in range(2, min(numbers.size // 2, _LONGEST_BLOCK) + 1):
        if numbers.size % length:
            continue
        blocks = numbers.reshape(-1, length)
        # Most rows differ in the first two already.
        if (blocks[1] - blocks[1, 0] != blocks[0] - blocks[0, 0]).any():
            continue
        if (blocks - blocks[:, :1] != blocks[0] - blocks[0, 0]).any():
            continue
        pieces = _pieces(blocks[:, :1])
        if len(pieces) * _LEAST_SIZE <= blocks.shape[0]:
            return tuple(_listed(blocks, piece) for piece in pieces)
    return ()


def _listed(blocks: Ints, piece: _Piece) -> Listed:
    return Listed(tuple(blocks[piece.first].tolist()), tuple(int(stride[0]) for stride in piece.strides), piece.counts)


def _is_irregular(numbers: Ints) -> bool:
    """Return whether the middle of a long row consists of small pieces: to fold all of it would be for nothing."""
    if numbers.size <= 2 * _SAMPLE:
        return False
    middle = numbers[numbers.size // 2 :][:_SAMPLE]
    return len(_pieces(middle[:, None])) * _LEAST_SIZE > middle.size


def _stretches(numbers: Ints, pieces: list[_Piece]) -> tuple[Stretch, ...]:
    found: list[Stretch] = []
    sizes = [int(np.prod(piece.counts, dtype=np.int64)) for piece in pieces]
    is_short = [size < _LEAST_SIZE and len(pieces) > 1 for size in sizes]
    for short, group in groupby(range(len(pieces)), key=is_short.__getitem__):
        places = list(group)
        if short and len(places) > 1:
            first, last = pieces[places[0]].first, pieces[places[-1]].first + sizes[places[-1]]
            found.append(Listed(tuple(numbers[first:last].tolist())))
        else:
            found += [_progression(numbers, pieces[place]) for place in places]
    return tuple(found)


def _progression(numbers: Ints, piece: _Piece) -> Progression:
    return Progression(int(numbers[piece.first]), tuple(int(stride[0]) for stride in piece.strides), piece.counts)


@dataclass(slots=True)
class _Forms:
    """The strides and counts that pieces can have, each under a number; 0 is that of a single point."""

    strides: list[tuple[Ints, ...]] = field(default_factory=lambda: [()])
    counts: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[int, bytes, int], int] = field(default_factory=dict)

    def around(self, inner: int, stride: Ints, count: int) -> int:
        """Return the number of the form that repeats another one so often, a stride apart."""
        key = (inner, stride.tobytes(), count)
        if key not in self.numbers:
            self.numbers[key] = len(self.strides)
            self.strides.append((stride, *self.strides[inner]))
            self.counts.append((count, *self.counts[inner]))
        return self.numbers[key]


def _pieces(points: Ints) -> list[_Piece]:
    """Return points, int64[N, K], as progressions in all of their coordinates at once, in order."""
    if points.shape[0] == 1 or _is_wide(points):
        return [_Piece(first, (), ()) for first in range(points.shape[0])]
    forms = _Forms()
    firsts, shapes = np.arange(points.shape[0]), np.zeros(points.shape[0], np.int64)
    while True:
        joined_firsts, joined_shapes = _joined(points, firsts, shapes, forms)
        if len(joined_firsts) == firsts.size:
            break
        firsts, shapes = np.array(joined_firsts, np.int64), np.array(joined_shapes, np.int64)
    return [
        _Piece(first, forms.strides[shape], forms.counts[shape])
        for first, shape in zip(firsts.tolist(), shapes.tolist(), strict=True)
    ]


def _joined(points: Ints, firsts: Ints, shapes: Ints, forms: _Forms) -> tuple[list[int], list[int]]:
    """Return the first points and the forms of what pieces become when equal neighbours are joined."""
    steps = points[firsts[1:]] - points[firsts[:-1]]
    is_alike = shapes[1:] == shapes[:-1]
    goes_on = is_alike[1:] & is_alike[:-1] & (steps[1:] == steps[:-1]).all(axis=1)
    # For each link between neighbours, the first one further on that is another.
    edges = np.append(np.flatnonzero(~goes_on) + 1, steps.shape[0])
    ends = edges[np.searchsorted(edges, np.arange(steps.shape[0]), side="right")].tolist() if steps.size else []
    alike, first_of, shape_of = is_alike.tolist(), firsts.tolist(), shapes.tolist()
    found: list[int] = []
    found_shapes: list[int] = []
    place, last = 0, firsts.size - 1
    while place <= last:
        end = ends[place] if place < last and alike[place] else place
        # One stride alone does not take the first piece of a longer progression behind it.
        if end - place == 1 and end < last and alike[end] and ends[end] - end >= 2:
            end = place
        shape = shape_of[place]
        found.append(first_of[place])
        found_shapes.append(forms.around(shape, steps[place], end - place + 1) if end > place else shape)
        place = end + 1
    return found, found_shapes


# ---- which ranks are taken by classes: each by one, without more than a byte for each rank


class Tiles:
    """All ranks of a trace, of which classes take some."""

    def __init__(self, process_count: int) -> None:
        self._is_taken = np.zeros(process_count, np.bool_)

    def take(self, ranks: Progression) -> None:
        """Take rising ranks; raise ValueError where one is taken already."""
        # A view of each rank once: strides that rise leave behind all that is inside them.
        view: Bools = as_strided(self._is_taken[ranks.start :], ranks.counts, ranks.strides)
        if view.any():
            index = np.unravel_index(int(np.argmax(view)), view.shape)
            rank = ranks.start + sum(int(at) * stride for at, stride in zip(index, ranks.strides, strict=True))
            raise ValueError(f"rank {rank} would be in two classes")
        view[...] = True

    def first_free(self) -> int | None:
        """Return the first rank that no class has taken."""
        return None if self._is_taken.all() else int(np.argmin(self._is_taken))

    def free(self) -> tuple[Progression, ...]:
        """Return the ranks that no class has taken, in order of the first of each list."""
        # Where taken ranks end and begin: by far fewer than ranks, if classes are not interleaved.
        edges = np.flatnonzero(self._is_taken[1:] != self._is_taken[:-1]) + 1
        bounds = np.concatenate([[0], edges, [self._is_taken.size]])
        first = int(self._is_taken[0])
        starts, ends = bounds[first:-1:2], bounds[first + 1 :: 2]
        found: list[Progression] = []
        for length in np.unique(ends - starts).tolist():
            lists = rank_lists(starts[ends - starts == length])
            inner = ((1,), (length,)) if length > 1 else ((), ())
            found += [Progression(own.start, own.strides + inner[0], own.counts + inner[1]) for own in lists]
        return tuple(sorted(found, key=lambda own: own.start))
