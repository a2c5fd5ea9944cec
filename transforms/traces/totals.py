"""What a compressed trace adds up to: calls, bytes and files of all ranks, without expanding any.

Numbers of progressions are summed in closed form, in whole numbers of any size. Files are told by the pattern of
their names: those that differ in numbers only, of a program that gives each rank its own, are one row, whatever the
number of ranks. Bytes of MPI-IO calls belong to the file on which their handle was opened.

Recorder calls handles `<world rank>-<counter>`, and gives a number again once it is free. A call whose handle is
written as that of opens of one file belongs to it on all ranks at once. Else the executions of one rank are held
against those of the opens, one by one and in their order, at the corners of each block of ranks within which handle
and loops grow evenly: between them it is the same. A call goes back to the last open of its handle before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints
from iosig.transforms.traces.expansion import executions, numbered, place_in, values_of
from iosig.transforms.traces.name_patterns import Member, Pattern, patterns
from iosig.transforms.traces.progressions import Progression, distinct_count, size_of
from iosig.transforms.traces.rank_blocks import block_of, divided, moving, of_share, refined
from iosig.transforms.traces.requests import (
    Field,
    Form,
    Forms,
    Size,
    exact_volumes,
    field_at,
    fields,
    is_request,
    nested_nodes,
    size_asked,
    vectors_of,
    volume,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, Node, RankClass, Vector

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


@dataclass(frozen=True, slots=True)
class CallTotal:
    """How often a function was called."""

    module: str
    function: str
    call_count: int


@dataclass(frozen=True, slots=True)
class ModuleTotal:
    """What a layer's requests ask for: the outer ones, or those within others, whose bytes are the same once more.

    is_nested: None of calls that are within others at some times. Bytes are None where those of any are not known.
    """

    module: str
    is_nested: bool | None
    read_count: int
    write_count: int
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True, slots=True)
class FileTotal:
    """What is done to a file, or to all whose names differ in numbers only.

    path: `{0..7}` stands for numbers, `{0..8..4}` for those that far apart; None where the calls do not tell the file.
    file_count: distinct names, of all ranks together; None where they follow no rule and are too many to be listed.
    Bytes are those of outer calls, and of calls within others apart: the same once more.
    """

    path: str | None
    file_count: int | None
    rank_count: int | None
    call_count: int
    read_bytes: int | None
    written_bytes: int | None
    nested_call_count: int
    nested_read_bytes: int | None
    nested_written_bytes: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What a trace adds up to, each table in order of names."""

    process_count: int
    calls: tuple[CallTotal, ...]
    modules: tuple[ModuleTotal, ...]
    files: tuple[FileTotal, ...]

    @property
    def call_count(self) -> int:
        """Return how many calls all ranks make."""
        return sum(row.call_count for row in self.calls)


def totals(trace: CompressedTrace, forms: Forms) -> Totals:
    """Return what a trace adds up to; nothing of it grows with the ranks or the iterations that follow rules.

    Raises ValueError where the trace contradicts itself.
    """
    made = [part for rank_class in trace.classes for part in _made(rank_class, forms)]
    return Totals(trace.process_count, _calls(made), _modules(made), _files(made))


# ---- what a node's calls come to


@dataclass(frozen=True)
class _Own:
    """A class and a call node in it."""

    rank_class: RankClass
    nodes: Sequence[Node]
    parents: Sequence[int]
    number: int
    order: Callable[[int], npt.NDArray[np.int32]]

    def _loop(self, number: int) -> Loop:
        loop = self.nodes[number]
        if not isinstance(loop, Loop):
            raise TypeError("A node's parent is a loop.")
        return loop

    @cached_property
    def call_count(self) -> int:
        """Return how often all ranks of the class execute the node."""
        parent = self.parents[self.number]
        if parent < 0:
            return sum(part.size for part in self.rank_class.ranks)
        return sum(of_share(share).total() for share in self._loop(parent).counts)

    @cached_property
    def ranks(self) -> list[Progression] | None:
        """Return the ranks that execute the node at all; None where they are not to be had."""
        chain: list[int] = []
        parent = self.parents[self.number]
        while parent >= 0:
            chain.append(parent)
            parent = self.parents[parent]
        found = list(self.rank_class.ranks)
        for number in reversed(chain):
            counts = self._loop(number).counts
            inside: list[Progression] = []
            for ranks in found:
                parts = refined(ranks, counts)
                if parts is None:
                    return None
                inside += [part for block in parts for part in moving(block, block_of(counts, block))]
            found = inside
        return found


@dataclass(frozen=True)
class _Made:
    """The calls of one node, or of those of its executions that are to one file: `path` is that of node `path_of`.

    volume: bytes; None where they are not known, and of calls that are no requests.
    """

    call: Call
    call_count: int
    own: _Own
    form: Form | None = None
    is_nested: bool | None = None
    volume: int | None = None
    path: Field | None = None
    path_of: int = -1


def _made(rank_class: RankClass, forms: Forms) -> Iterator[_Made]:
    """Yield what the nodes of a class come to."""
    nodes, parents = numbered(rank_class.body)
    nesting = nested_nodes(rank_class)
    calls = {number: node for number, node in enumerate(nodes) if isinstance(node, Call)}

    @cache
    def order(rank: int) -> npt.NDArray[np.int32]:
        return executions(rank_class, rank).node

    owns = {number: _Own(rank_class, nodes, parents, number, order) for number in calls}
    known: dict[int, list[Field]] = {}
    for number, call in calls.items():
        _check(call, owns[number])
        if forms.of(call) is not None:
            known[number] = fields(call)
    opened = [
        Opened(number, handle, path)
        for number, arguments in known.items()
        if (form := forms.of(calls[number])) is not None and form.path_at is not None
        if (handle := field_at(arguments, form.file_at)) is not None
        if (path := field_at(arguments, form.path_at)) is not None
    ]
    for number, call in calls.items():
        form, own = forms.of(call), owns[number]
        if form is None:
            yield _Made(call, own.call_count, own)
            continue
        size = size_asked(known[number], form, forms) if is_request(form) else None
        for path_of, path, count, moved in _by_file(known[number], form, size, opened, own):
            yield _Made(call, count, own, form, nesting[number], moved, path, path_of)


def _check(call: Call, own: _Own) -> None:
    """Refuse a slot that has more or fewer values than its call is made."""
    for slot in call.slots:
        count = sum(share.ranks.size * of_share(share).executed for share in slot.vector)
        if count != own.call_count:
            raise ValueError(
                f"Call {own.number} {call.function} has {count} values, and is made {own.call_count} times."
            )


def _by_file(
    known: Sequence[Field], form: Form, size: Size | None, opened: Sequence[Opened], own: _Own
) -> Iterator[tuple[int, Field | None, int, int | None]]:
    """Yield the files of a node's calls: the node and the field that name them, the calls and bytes to them."""
    named = form.path_at if form.path_at is not None else form.file_at
    name = field_at(known, named)
    if name is None or name.is_unknown:
        yield own.number, None, own.call_count, volume(size, own.call_count)
    elif form.layer != "MPIIO" or form.path_at is not None:
        yield own.number, name, own.call_count, volume(size, own.call_count)
    else:
        loops = [node.counts for node in own.nodes if isinstance(node, Loop)]
        for found in files_of(name, own.number, opened, lambda: own.ranks, own.call_count, size, own.order, loops):
            path = found.opened.path if found.opened and not found.opened.path.is_unknown else None
            yield found.opened.number if found.opened else own.number, path, found.call_count, found.volume


# ---- tables


def _calls(made: Iterable[_Made]) -> tuple[CallTotal, ...]:
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for part in made:
        found[part.call.module, part.call.function] += part.call_count
    return tuple(CallTotal(*names, count) for names, count in sorted(found.items()))


def _sum(made: Iterable[_Made], deed: str) -> int | None:
    """Return the bytes of the reads or writes among some calls; a sum with an unknown part is not known."""
    found = [part.volume for part in made if part.form and part.form.deed == deed and part.call_count]
    return sum(part for part in found if part is not None) if None not in found else None


def _count(made: Iterable[_Made], deed: str) -> int:
    return sum(part.call_count for part in made if part.form and part.form.deed == deed)


def _modules(made: Iterable[_Made]) -> tuple[ModuleTotal, ...]:
    found: defaultdict[tuple[str, bool | None], list[_Made]] = defaultdict(list)
    for part in made:
        if part.form is not None and is_request(part.form) and part.call_count:
            found[part.form.layer, part.is_nested].append(part)
    rows = [
        ModuleTotal(module, is_nested, _count(own, "read"), _count(own, "write"), _sum(own, "read"), _sum(own, "write"))
        for (module, is_nested), own in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (row.module, str(row.is_nested))))


def _files(made: Iterable[_Made]) -> tuple[FileTotal, ...]:
    touching = [part for part in made if part.form is not None and part.call_count]
    members: dict[tuple[int, int, Field], Member] = {}
    keyed: defaultdict[tuple[int, int, Field] | None, list[_Made]] = defaultdict(list)
    for part in touching:
        key = (id(part.own.rank_class), part.path_of, part.path) if part.path is not None else None
        keyed[key].append(part)
        if key is not None and part.path is not None:
            members.setdefault(key, Member(part.path))
    by_member = {id(members[key]): parts for key, parts in keyed.items() if key is not None}
    rows = [
        _file(pattern, [part for member in pattern.members for part in by_member[id(member)]])
        for pattern in patterns(list(members.values()))
    ]
    rows.sort(key=lambda row: row.path or "")
    return tuple(rows + ([_file(None, keyed[None])] if None in keyed else []))


def _file(pattern: Pattern | None, made: Sequence[_Made]) -> FileTotal:
    # Calls that are within others at some times only: neither sum of bytes is known.
    outer = [part for part in made if part.is_nested is not True]
    inner = [part for part in made if part.is_nested is not False]
    unclear = {part.form.deed for part in made if part.form and part.is_nested is None}
    moved = {
        (is_inner, deed): None if deed in unclear else _sum(own, deed)
        for is_inner, own in ((False, outer), (True, inner))
        for deed in ("read", "write")
    }
    ranks: list[Progression] | None = []
    for own in {id(part.own): part.own for part in made}.values():
        ranks = None if ranks is None or own.ranks is None else ranks + own.ranks
    nested_count = sum(part.call_count for part in made if part.is_nested)
    return FileTotal(
        path=None if pattern is None else pattern.text,
        file_count=None if pattern is None else pattern.file_count,
        rank_count=None if ranks is None else distinct_count(ranks),
        call_count=sum(part.call_count for part in made) - nested_count,
        read_bytes=moved[False, "read"],
        written_bytes=moved[False, "write"],
        nested_call_count=nested_count,
        nested_read_bytes=moved[True, "read"],
        nested_written_bytes=moved[True, "write"],
    )
