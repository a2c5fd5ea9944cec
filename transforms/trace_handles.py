"""Which open each MPI-IO call goes back to: by the handle, whose numbers follow rules as all others do.

Recorder calls handles `<world rank>-<counter>`. A call whose handle is written as that of an open belongs to it on all
ranks at once. Else the executions of one rank are held against those of the opens, one by one, at the corners of each
block of ranks within which the handle grows evenly: between them it is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from transforms.expansion import place_in, values_of
from transforms.progressions import Progression, size_of
from transforms.rank_blocks import divided
from transforms.trace_requests import Field, Size, exact_volumes, vectors_of, volume

Longs = npt.NDArray[np.int64]

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
) -> list[OfFile]:
    """Return the opens of one class that the calls of a node of this class go back to.

    ranks: those that execute the node. size: what each call asks for.
    """
    alike = [known for known in opened if known.handle == handle]
    if alike:
        return [OfFile(_latest(alike, number), call_count, volume(size, call_count))]
    unknown = [OfFile(None, call_count, volume(size, call_count))]
    candidates = [known for known in opened if known.handle.texts == handle.texts]
    if not candidates:
        return unknown
    if not vectors_of(handle):
        found = _of_constant(handle, number, candidates, ranks())
        return [OfFile(found, call_count, volume(size, call_count))]
    factors = [] if size is None else [part for part in (size.count, size.each) if not isinstance(part, int)]
    blocks = divided([*vectors_of(handle), *factors])
    return unknown if blocks is None else _divided_among(handle, number, candidates, blocks, size) or unknown


def _of_constant(
    handle: Field, number: int, opened: Sequence[Opened], ranks: Sequence[Progression] | None
) -> Opened | None:
    """Return the open of a handle that is always the same, where it is one for all ranks."""
    numbers = {
        None if own is None else int(own[0])
        for block in ranks or ()
        for rank in _corners(block)
        for own in [_open_of_each(handle, number, opened, rank)]
    }
    return next((known for known in opened if numbers == {known.number}), None)


def _divided_among(
    handle: Field, number: int, opened: Sequence[Opened], blocks: Sequence[Progression], size: Size | None
) -> list[OfFile] | None:
    """Return the opens to which a node's calls go back in turn; None where that cannot be told."""
    counts: defaultdict[int, int] = defaultdict(int)
    moved: dict[int, int | None] = {}
    for block in blocks:
        which = _which(handle, number, opened, block)
        if which is None:
            return None
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


def _which(handle: Field, number: int, opened: Sequence[Opened], block: Progression) -> Longs | None:
    """Return the node of the open that each execution of one rank goes back to, -1 for none; None if ranks differ."""
    found: Longs | None = None
    for rank in _corners(block):
        own = _open_of_each(handle, number, opened, rank)
        if own is None or (found is not None and not np.array_equal(found, own)):
            return None
        found = own
    return found


def _open_of_each(handle: Field, number: int, opened: Sequence[Opened], rank: int) -> Longs | None:
    asked = _numbers(handle, rank)
    if asked is None:
        return None
    rows, place = np.unique(asked, axis=1, return_inverse=True)
    known: dict[tuple[int, ...], int] = {}
    for candidate in sorted(opened, key=lambda known: (known.number < number, known.number)):
        given = _numbers(candidate.handle, rank)
        if given is None:
            continue
        known |= dict.fromkeys(map(tuple, np.unique(given, axis=1).T.tolist()), candidate.number)
    numbers = [known.get(tuple(row), -1) for row in rows.T.tolist()]
    return np.array(numbers, np.int64)[place.reshape(-1)]


def _numbers(field: Field, rank: int) -> Longs | None:
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
