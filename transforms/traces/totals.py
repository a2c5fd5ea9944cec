"""Compute the totals of a compressed trace: calls, bytes and files of all ranks, without expansion.

Progressions are summed in closed form, as Python integers. Files are identified by the pattern of their names. Names
that differ only in numbers, as in file-per-process programs, form one row for any number of ranks. Bytes of MPI-IO
calls belong to the file that was opened with the same handle.

Recorder writes handles as `<world rank>-<counter>`, and reuses numbers. If the handle of a call is written like that of
the opens of a single file, the assignment holds for all ranks at once. Otherwise, ranks are divided into blocks in
which handles and loops are linear. For the ranks at the corners of each block, executions are compared with those of
the opens one by one, in order; between the corners, the result is the same. A call belongs to the last preceding open
of its handle.
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
from iosig.transforms.traces.expansion import find_index, list_executions, number_nodes, rank_values
from iosig.transforms.traces.name_patterns import Member, Pattern, group_by_pattern
from iosig.transforms.traces.progressions import Progression, count_distinct, row_size
from iosig.transforms.traces.rank_blocks import (
    block_from_share,
    divide_block,
    divide_ranks,
    find_active_ranks,
    find_block,
)
from iosig.transforms.traces.requests import (
    Argument,
    CallFormat,
    CallFormats,
    Size,
    argument_at,
    find_nested_calls,
    is_request,
    request_size,
    split_arguments,
    total_volume,
    varying_vectors,
    volumes_by_execution,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, Node, RankClass, Vector

#: function that maps a rank to the node numbers of its calls, in order; raises ValueError if there are too many calls
Order = Callable[[int], npt.NDArray[np.int32]]

#: maximum number of executions of a call by a rank for a comparison one by one
_MAX_COMPARED = 1 << 22


@dataclass(frozen=True, slots=True)
class OpenCall:
    """Call that opens a file: its node, the handle that it returns, and the file name."""

    number: int
    handle: Argument
    path: Argument


@dataclass(frozen=True, slots=True)
class FileCalls:
    """Calls of one node by all ranks that belong to one open, and their bytes; the open is None if unknown."""

    open_call: OpenCall | None
    call_count: int
    volume: int | None


def assign_to_files(
    handle: Argument,
    number: int,
    opens: Sequence[OpenCall],
    ranks: Callable[[], list[Progression] | None],
    call_count: int,
    size: Size | None,
    order: Order,
    loops: Sequence[Vector],
) -> list[FileCalls]:
    """Assign the calls of a node to the opens of the same class.

    Parameters
    ----------
    handle, number
        Handle argument and number of the node.
    opens
        Opens of the class.
    ranks
        Returns the ranks that execute the node.
    call_count
        Executions of all ranks.
    size
        Requested bytes of each call.
    order
        Node numbers of each rank's calls.
    loops
        Iterations of the class's loops.

    Returns
    -------
    list[FileCalls]
        Calls of each open; if the assignment is unknown, all calls without an open.
    """
    unknown = [FileCalls(None, call_count, total_volume(size, call_count))]
    candidates = [open_call for open_call in opens if _may_be_equal(open_call.handle, handle)]
    if not candidates:
        return unknown
    if {(open_call.handle, open_call.path) for open_call in candidates} == {(handle, candidates[0].path)}:
        return [FileCalls(_latest(candidates, number), call_count, total_volume(size, call_count))]
    factors = [] if size is None else [part for part in (size.count, size.element_bytes) if not isinstance(part, int)]
    vectors = [*varying_vectors(handle), *factors, *loops]
    blocks = divide_ranks(vectors) if vectors else ranks()
    return unknown if blocks is None else _assign_blocks(handle, number, candidates, blocks, size, order) or unknown


def _may_be_equal(first: Argument, second: Argument) -> bool:
    """Whether two handles can be equal; they cannot if constant numbers differ."""
    pairs = ((left.values, right.values) for left, right in zip(first.numbers, second.numbers, strict=False))
    return first.texts == second.texts and not any(
        isinstance(left, int) and isinstance(right, int) and left != right for left, right in pairs
    )


def _assign_blocks(
    handle: Argument,
    number: int,
    opens: Sequence[OpenCall],
    blocks: Sequence[Progression],
    size: Size | None,
    order: Order,
) -> list[FileCalls] | None:
    """Assign the calls of a node to opens block by block; None if unknown."""
    counts: defaultdict[int, int] = defaultdict(int)
    total_bytes: dict[int, int | None] = {}
    for block in blocks:
        opening_nodes = _find_common_opens(handle, number, opens, block, order)
        if opening_nodes is None:
            return None
        if not opening_nodes.size:
            continue
        volumes = volumes_by_execution(size, block, opening_nodes.size)
        for node in np.unique(opening_nodes).tolist():
            is_node = opening_nodes == node
            counts[node] += int(is_node.sum()) * block.size
            before, part = total_bytes.get(node, 0), None if volumes is None else sum(volumes[is_node].tolist())
            total_bytes[node] = None if before is None or part is None else before + part
    by_number = {open_call.number: open_call for open_call in opens}
    return [FileCalls(by_number.get(node), count, total_bytes[node]) for node, count in counts.items()]


def _latest(opens: Sequence[OpenCall], number: int) -> OpenCall:
    """Find the last open before a node; without one, the last open of all, which precedes the node in a loop."""
    before = [open_call for open_call in opens if open_call.number < number]
    return max(before or opens, key=lambda open_call: open_call.number)


def _corners(block: Progression) -> Iterator[int]:
    """Yield the ranks at the corners of a block."""
    ends = [
        (0,) if count < 2 else (0, stride * (count - 1))
        for stride, count in zip(block.strides, block.counts, strict=True)
    ]
    return (block.start + sum(place) for place in product(*ends))


def _find_common_opens(
    handle: Argument, number: int, opens: Sequence[OpenCall], block: Progression, order: Order
) -> Ints | None:
    """Find the node of the open to which each execution belongs, -1 for none; None if the ranks of the block differ."""
    common: Ints | None = None
    for rank in _corners(block):
        nodes = _find_opens(handle, number, opens, rank, order)
        if nodes is None or (common is not None and not np.array_equal(common, nodes)):
            return None
        common = nodes
    return common


def _find_opens(handle: Argument, number: int, opens: Sequence[OpenCall], rank: int, order: Order) -> Ints | None:
    """Find the node of the last open of the same handle before each execution by one rank, -1 for none."""
    try:
        sequence = order(rank)
    except ValueError:
        return None  # too many calls
    places = [np.flatnonzero(sequence == node) for node in (number, *(open_call.number for open_call in opens))]
    rows = [
        _expand_numbers(field, rank) if place.size else np.empty((len(handle.numbers), 0), np.int64)
        for field, place in zip((handle, *(open_call.handle for open_call in opens)), places, strict=True)
    ]
    spread = [
        np.broadcast_to(row, (row.shape[0], place.size))
        for row, place in zip(rows, places, strict=True)
        if row is not None and row.shape[1] in (1, place.size)
    ]
    if len(spread) < len(places):
        return None
    # keys of handle number and position order the opens and calls of each handle
    _, handles = np.unique(np.concatenate(spread, axis=1), axis=1, return_inverse=True)
    keys = handles.reshape(-1) * (sequence.size + 1) + np.concatenate(places)
    call_keys, open_keys = keys[: places[0].size], keys[places[0].size :]
    nodes = np.repeat([open_call.number for open_call in opens], [place.size for place in places[1:]])
    if not open_keys.size:
        return np.full(call_keys.size, -1, np.int64)
    by_key = np.argsort(open_keys)
    last = np.searchsorted(open_keys[by_key], call_keys) - 1
    before = by_key[np.maximum(last, 0)]
    is_same_handle = (last >= 0) & (open_keys[before] // (sequence.size + 1) == call_keys // (sequence.size + 1))
    return np.where(is_same_handle, nodes[before], -1).astype(np.int64)


def _expand_numbers(field: Argument, rank: int) -> Ints | None:
    """Expand the numbers of an argument of one rank (numbers, executions); a single column if they are constant.

    Returns None if the numbers are too many, or the rank has none.
    """
    sizes = set()
    for vector in varying_vectors(field):
        share = next((share for share in vector if find_index(share.ranks, rank) is not None), None)
        if share is None:
            return None
        sizes.add(row_size(share.values))
    if not sizes:
        return np.array([[number.values] for number in field.numbers], np.int64).reshape(len(field.numbers), 1)
    if len(sizes) > 1 or max(sizes) > _MAX_COMPARED:
        return None
    (executed,) = sizes
    rows = [
        np.full(executed, number.values) if isinstance(number.values, int) else rank_values(number.values, rank)
        for number in field.numbers
    ]
    return np.array(rows, np.int64)


@dataclass(frozen=True, slots=True)
class CallTotal:
    """Number of calls of a function."""

    module: str
    function: str
    call_count: int


@dataclass(frozen=True, slots=True)
class ModuleTotal:
    """Requested bytes of a layer, separately for outer and nested requests; nested requests count the same bytes again.

    is_nested: None for calls that are nested in some executions only. Bytes are None if the bytes of any call are
    unknown.
    """

    module: str
    is_nested: bool | None
    read_count: int
    write_count: int
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True, slots=True)
class FileTotal:
    """Accesses to a file, or to all files with names that differ only in numbers.

    path: `{0..7}` stands for a range of numbers, `{0..8..4}` for one with a stride; None if the calls do not name the
    file. file_count: number of distinct names over all ranks; None if unknown. Bytes of outer and nested calls are
    separate, since nested calls move the same bytes again.
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
    """Totals of a trace; each table is sorted by name."""

    process_count: int
    calls: tuple[CallTotal, ...]
    modules: tuple[ModuleTotal, ...]
    files: tuple[FileTotal, ...]

    @property
    def call_count(self) -> int:
        """Number of calls of all ranks."""
        return sum(row.call_count for row in self.calls)


def compute_totals(trace: CompressedTrace, formats: CallFormats) -> Totals:
    """Sum the calls by function, and the bytes by module and by file, without expanding the trace.

    Parameters
    ----------
    trace
        Compressed trace.
    formats
        Formats of the calls' arguments.

    Returns
    -------
    Totals
        Calls by function, bytes by module and by file.

    Raises
    ------
    ValueError
        If the trace is inconsistent.

    Notes
    -----
    Run time and memory are independent of the number of ranks and iterations if these are regular.
    """
    node_calls = [part for rank_class in trace.classes for part in _collect_calls(rank_class, formats)]
    return Totals(trace.process_count, _call_totals(node_calls), _module_totals(node_calls), _file_totals(node_calls))


# ---- calls of nodes


@dataclass(frozen=True)
class _CallNode:
    """Call node within its class."""

    rank_class: RankClass
    nodes: Sequence[Node]
    parents: Sequence[int]
    number: int
    order: Callable[[int], npt.NDArray[np.int32]]

    def _loop(self, number: int) -> Loop:
        loop = self.nodes[number]
        if not isinstance(loop, Loop):
            raise TypeError(f"Node {number} is a parent, but not a loop.")
        return loop

    @cached_property
    def call_count(self) -> int:
        """Number of executions by all ranks of the class."""
        parent = self.parents[self.number]
        if parent < 0:
            return sum(part.size for part in self.rank_class.ranks)
        return sum(block_from_share(share).total() for share in self._loop(parent).counts)

    @cached_property
    def ranks(self) -> list[Progression] | None:
        """Ranks that execute the node; None if unknown."""
        chain: list[int] = []
        parent = self.parents[self.number]
        while parent >= 0:
            chain.append(parent)
            parent = self.parents[parent]
        executing = list(self.rank_class.ranks)
        for number in reversed(chain):
            counts = self._loop(number).counts
            inside: list[Progression] = []
            for ranks in executing:
                parts = divide_block(ranks, counts)
                if parts is None:
                    return None
                inside += [part for block in parts for part in find_active_ranks(block, find_block(counts, block))]
            executing = inside
        return executing


@dataclass(frozen=True)
class _Calls:
    """Calls of one node, or only its executions that access one file, which node `path_of` names.

    volume: bytes; None if unknown, and for calls other than requests.
    """

    call: Call
    call_count: int
    call_node: _CallNode
    call_format: CallFormat | None = None
    is_nested: bool | None = None
    volume: int | None = None
    path: Argument | None = None
    path_of: int = -1


def _collect_calls(rank_class: RankClass, formats: CallFormats) -> Iterator[_Calls]:
    """Yield the calls of each node of a class, by file."""
    nodes, parents = number_nodes(rank_class.body)
    nesting = find_nested_calls(rank_class)
    calls = {number: node for number, node in enumerate(nodes) if isinstance(node, Call)}

    @cache
    def order(rank: int) -> npt.NDArray[np.int32]:
        return list_executions(rank_class, rank).node

    call_nodes = {number: _CallNode(rank_class, nodes, parents, number, order) for number in calls}
    arguments_by_node: dict[int, list[Argument]] = {}
    for number, call in calls.items():
        _check(call, call_nodes[number])
        if formats.find(call) is not None:
            arguments_by_node[number] = split_arguments(call)
    opens = [
        OpenCall(number, handle, path)
        for number, arguments in arguments_by_node.items()
        if (call_format := formats.find(calls[number])) is not None and call_format.path_at is not None
        if (handle := argument_at(arguments, call_format.file_at)) is not None
        if (path := argument_at(arguments, call_format.path_at)) is not None
    ]
    for number, call in calls.items():
        call_format, call_node = formats.find(call), call_nodes[number]
        if call_format is None:
            yield _Calls(call, call_node.call_count, call_node)
            continue
        size = request_size(arguments_by_node[number], call_format, formats) if is_request(call_format) else None
        for path_of, path, count, total_bytes in _split_by_file(
            arguments_by_node[number], call_format, size, opens, call_node
        ):
            yield _Calls(call, count, call_node, call_format, nesting[number], total_bytes, path, path_of)


def _check(call: Call, call_node: _CallNode) -> None:
    """Raise ValueError if the number of values of a slot differs from the number of executions."""
    for slot in call.slots:
        count = sum(share.ranks.size * block_from_share(share).execution_count for share in slot.vector)
        if count != call_node.call_count:
            raise ValueError(
                f"Call {call_node.number} {call.function} has {count} values for {call_node.call_count} executions."
            )


def _split_by_file(
    arguments: Sequence[Argument],
    call_format: CallFormat,
    size: Size | None,
    opens: Sequence[OpenCall],
    call_node: _CallNode,
) -> Iterator[tuple[int, Argument | None, int, int | None]]:
    """Yield the files of a node's calls: number and path argument of the naming node, call count, and bytes."""
    name_at = call_format.path_at if call_format.path_at is not None else call_format.file_at
    name = argument_at(arguments, name_at)
    if name is None or name.is_unknown:
        yield call_node.number, None, call_node.call_count, total_volume(size, call_node.call_count)
    elif call_format.layer != "MPIIO" or call_format.path_at is not None:
        yield call_node.number, name, call_node.call_count, total_volume(size, call_node.call_count)
    else:
        loops = [node.counts for node in call_node.nodes if isinstance(node, Loop)]
        for part in assign_to_files(
            name, call_node.number, opens, lambda: call_node.ranks, call_node.call_count, size, call_node.order, loops
        ):
            path = part.open_call.path if part.open_call and not part.open_call.path.is_unknown else None
            yield part.open_call.number if part.open_call else call_node.number, path, part.call_count, part.volume


# ---- tables


def _call_totals(node_calls: Iterable[_Calls]) -> tuple[CallTotal, ...]:
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for part in node_calls:
        counts[part.call.module, part.call.function] += part.call_count
    return tuple(CallTotal(*names, count) for names, count in sorted(counts.items()))


def _sum_bytes(node_calls: Iterable[_Calls], operation: str) -> int | None:
    """Sum the bytes of reads or writes; None if the bytes of any call are unknown."""
    volumes = [
        part.volume
        for part in node_calls
        if part.call_format and part.call_format.operation == operation and part.call_count
    ]
    return sum(total_volume for total_volume in volumes if total_volume is not None) if None not in volumes else None


def _count_calls(node_calls: Iterable[_Calls], operation: str) -> int:
    return sum(part.call_count for part in node_calls if part.call_format and part.call_format.operation == operation)


def _module_totals(node_calls: Iterable[_Calls]) -> tuple[ModuleTotal, ...]:
    groups: defaultdict[tuple[str, bool | None], list[_Calls]] = defaultdict(list)
    for part in node_calls:
        if part.call_format is not None and is_request(part.call_format) and part.call_count:
            groups[part.call_format.layer, part.is_nested].append(part)
    rows = [
        ModuleTotal(
            module,
            is_nested,
            _count_calls(group, "read"),
            _count_calls(group, "write"),
            _sum_bytes(group, "read"),
            _sum_bytes(group, "write"),
        )
        for (module, is_nested), group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (row.module, str(row.is_nested))))


def _file_totals(node_calls: Iterable[_Calls]) -> tuple[FileTotal, ...]:
    touching = [part for part in node_calls if part.call_format is not None and part.call_count]
    members: dict[tuple[int, int, Argument], Member] = {}
    keyed: defaultdict[tuple[int, int, Argument] | None, list[_Calls]] = defaultdict(list)
    for part in touching:
        key = (id(part.call_node.rank_class), part.path_of, part.path) if part.path is not None else None
        keyed[key].append(part)
        if key is not None and part.path is not None:
            members.setdefault(key, Member(part.path))
    by_member = {id(members[key]): parts for key, parts in keyed.items() if key is not None}
    rows = [
        _file_total(pattern, [part for member in pattern.members for part in by_member[id(member)]])
        for pattern in group_by_pattern(list(members.values()))
    ]
    rows.sort(key=lambda row: row.path or "")
    return tuple(rows + ([_file_total(None, keyed[None])] if None in keyed else []))


def _file_total(pattern: Pattern | None, node_calls: Sequence[_Calls]) -> FileTotal:
    # calls that are nested only in some executions make both sums unknown
    outer = [part for part in node_calls if part.is_nested is not True]
    inner = [part for part in node_calls if part.is_nested is not False]
    unknown = {part.call_format.operation for part in node_calls if part.call_format and part.is_nested is None}
    total_bytes = {
        (is_inner, operation): None if operation in unknown else _sum_bytes(group, operation)
        for is_inner, group in ((False, outer), (True, inner))
        for operation in ("read", "write")
    }
    ranks: list[Progression] | None = []
    for call_node in {id(part.call_node): part.call_node for part in node_calls}.values():
        ranks = None if ranks is None or call_node.ranks is None else ranks + call_node.ranks
    nested_count = sum(part.call_count for part in node_calls if part.is_nested)
    return FileTotal(
        path=None if pattern is None else pattern.text,
        file_count=None if pattern is None else pattern.file_count,
        rank_count=None if ranks is None else count_distinct(ranks),
        call_count=sum(part.call_count for part in node_calls) - nested_count,
        read_bytes=total_bytes[False, "read"],
        written_bytes=total_bytes[False, "write"],
        nested_call_count=nested_count,
        nested_read_bytes=total_bytes[True, "read"],
        nested_written_bytes=total_bytes[True, "write"],
    )
