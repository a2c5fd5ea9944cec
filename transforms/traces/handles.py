"""Which open each MPI-IO call goes back to: by the handle, whose numbers follow rules as all others do.

Recorder calls handles `<world rank>-<counter>`, and gives a number again once it is free. A call whose handle is
written as that of opens of one file belongs to it on all ranks at once. Else the executions of one rank are held
against those of the opens, one by one and in their order, at the corners of each block of ranks within which handle
and loops grow evenly: between them it is the same. A call goes back to the last open of its handle before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from transforms.arrays import Ints
from transforms.traces.expansion import place_in, values_of
from transforms.traces.progressions import Progression, size_of
from transforms.traces.rank_blocks import divided
from transforms.traces.requests import Field, Size, exact_volumes, vectors_of, volume
from transforms.traces.trace import Vector

#: the number of the node that each call of a rank is, in order; raises ValueError where these are too many
Order = Callable[[int], npt.NDArray[np.int32]]

#: executions of one call by one rank that are looked at one by one
_MOST_EXECUTED = 1 << 22


@dataclass(frozen=True, slots=True)
class Opened:
    """A call that opens a file: its node, the handle that it gives, and the file's name."""

    number: int
    handle: Field
    path: Field


@dataclass(frozen=True, slots=True)
class OfFile:
    """The calls of one node on one open, of all ranks, and their bytes; None for an open that is not to be found."""

    opened: Opened | None
    call_count: int
    volume: int | None


def files_of(
    handle: Field,
    number: int,
    opened: Sequence[Opened],
    ranks: Callable[[], list[Progression] | None],
    call_count: int,
    size: Size | None,
    order: Order,
    loops: Sequence[Vector],
) -> list[OfFile]:
    """Return the opens of one class that the calls of a node of this class go back to.

    ranks: those that execute the node. size: what each call asks for. order: the number of the node that each call
    of a rank is. loops: the iterations of the class's loops.
    """
    unknown = [OfFile(None, call_count, volume(size, call_count))]
    candidates = [known for known in opened if _may_be(known.handle, handle)]
    if not candidates:
        return unknown
    if {(known.handle, known.path) for known in candidates} == {(handle, candidates[0].path)}:
        return [OfFile(_latest(candidates, number), call_count, volume(size, call_count))]
    factors = [] if size is None else [part for part in (size.count, size.each) if not isinstance(part, int)]
    vectors = [*vectors_of(handle), *factors, *loops]
    blocks = divided(vectors) if vectors else ranks()
    return unknown if blocks is None else _divided_among(handle, number, candidates, blocks, size, order) or unknown


def _may_be(one: Field, other: Field) -> bool:
    """Return whether two handles can ever be the same: some differ in a number that is always the same."""
    pairs = zip(one.numbers, other.numbers, strict=False)
    constants = ((own.values, its.values) for own, its in pairs)
    return one.texts == other.texts and not any(
        isinstance(own, int) and isinstance(its, int) and own != its for own, its in constants
    )


def _divided_among(
    handle: Field,
    number: int,
    opened: Sequence[Opened],
    blocks: Sequence[Progression],
    size: Size | None,
    order: Order,
) -> list[OfFile] | None:
    """Return the opens to which a node's calls go back in turn; None where that cannot be told."""
    counts: defaultdict[int, int] = defaultdict(int)
    moved: dict[int, int | None] = {}
    for block in blocks:
        which = _which(handle, number, opened, block, order)
        if which is None:
            return None
        if not which.size:
            continue
        asked = exact_volumes(size, block, which.size)
        for found in np.unique(which).tolist():
            is_own = which == found
            counts[found] += int(is_own.sum()) * block.size
            before, part = moved.get(found, 0), None if asked is None else sum(asked[is_own].tolist())
            moved[found] = None if before is None or part is None else before + part
    by_number = {known.number: known for known in opened}
    return [OfFile(by_number.get(found), count, moved[found]) for found, count in counts.items()]


def _latest(opened: Sequence[Opened], number: int) -> Opened:
    """Return the last of some opens before a node, else the last of all: the one that it follows in a loop."""
    before = [known for known in opened if known.number < number]
    return max(before or opened, key=lambda known: known.number)


def _corners(block: Progression) -> Iterator[int]:
    """Yield the ranks at the corners of a block."""
    ends = [
        (0,) if count < 2 else (0, stride * (count - 1))
        for stride, count in zip(block.strides, block.counts, strict=True)
    ]
    return (block.start + sum(place) for place in product(*ends))


def _which(handle: Field, number: int, opened: Sequence[Opened], block: Progression, order: Order) -> Ints | None:
    """Return the node of the open that each execution of one rank goes back to, -1 for none; None if ranks differ."""
    found: Ints | None = None
    for rank in _corners(block):
        own = _open_of_each(handle, number, opened, rank, order)
        if own is None or (found is not None and not np.array_equal(found, own)):
            return None
        found = own
    return found


def _open_of_each(handle: Field, number: int, opened: Sequence[Opened], rank: int, order: Order) -> Ints | None:
    """Return the node of the last open of its handle before each execution of a node by one rank, -1 for none."""
    try:
        sequence = order(rank)
    except ValueError:
        # more calls than are looked at one by one
        return None
    places = [np.flatnonzero(sequence == node) for node in (number, *(known.number for known in opened))]
    rows = [
        _numbers(field, rank) if place.size else np.empty((len(handle.numbers), 0), np.int64)
        for field, place in zip((handle, *(known.handle for known in opened)), places, strict=True)
    ]
    spread = [
        np.broadcast_to(row, (row.shape[0], place.size))
        for row, place in zip(rows, places, strict=True)
        if row is not None and row.shape[1] in (1, place.size)
    ]
    if len(spread) < len(places):
        return None
    # Handles as numbers: of one handle, opens and calls are then compared by where they are.
    _, handles = np.unique(np.concatenate(spread, axis=1), axis=1, return_inverse=True)
    keys = handles.reshape(-1) * (sequence.size + 1) + np.concatenate(places)
    asked, given = keys[: places[0].size], keys[places[0].size :]
    nodes = np.repeat([known.number for known in opened], [place.size for place in places[1:]])
    if not given.size:
        return np.full(asked.size, -1, np.int64)
    by_key = np.argsort(given)
    last = np.searchsorted(given[by_key], asked) - 1
    before = by_key[np.maximum(last, 0)]
    is_own = (last >= 0) & (given[before] // (sequence.size + 1) == asked // (sequence.size + 1))
    return np.where(is_own, nodes[before], -1).astype(np.int64)


def _numbers(field: Field, rank: int) -> Ints | None:
    """Return the numbers of a field of one rank (numbers, executions); one execution if they are always the same.

    None where they are too many, or the rank has none.
    """
    sizes = set()
    for vector in vectors_of(field):
        share = next((share for share in vector if place_in(share.ranks, rank) is not None), None)
        if share is None:
            return None
        sizes.add(size_of(share.values))
    if not sizes:
        return np.array([[number.values] for number in field.numbers], np.int64).reshape(len(field.numbers), 1)
    if len(sizes) > 1 or max(sizes) > _MOST_EXECUTED:
        return None
    (executed,) = sizes
    rows = [
        np.full(executed, number.values) if isinstance(number.values, int) else values_of(number.values, rank)
        for number in field.numbers
    ]
    return np.array(rows, np.int64)
