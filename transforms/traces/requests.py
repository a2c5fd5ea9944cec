"""Interpret the arguments of I/O calls in compressed traces: files, request sizes, and nesting of calls.

Recorder logs arguments, separated by spaces, but no return values. So sizes are those requested, not those moved. The
meaning of each function's arguments depends on the trace format, and is given as `CallFormats`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from iosig.transforms.traces.expansion import number_nodes
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.rank_blocks import Block, block_from_share, divide_ranks, find_block
from iosig.transforms.traces.trace import Call, Loop, Node, RankClass, Slot, Vector

#: Python integers of any size
Objects = npt.NDArray[np.object_]

#: logged values of an unknown file
_UNKNOWN = ("???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN", "")
#: maximum number of states in the fixed-point iteration over a loop
_MAX_STATES = 64
#: maximum nesting of loops that is analyzed
_MAX_DEPTH = 12
_DIGITS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class CallFormat:
    """Zero-based positions of a function's arguments; None if it has no such argument.

    layer: POSIX or MPIIO. operation: `read`, `write`, `open` or another one. A request has `count` minus `surplus`
    elements of `size` bytes, or of a datatype.
    """

    layer: str
    operation: str
    file_at: int | None
    count_at: int | None = None
    size_at: int | None = None
    type_at: int | None = None
    path_at: int | None = None
    surplus: int = 0


@dataclass(frozen=True, slots=True)
class CallFormats:
    """Formats of all functions that access files, and the bytes of each named datatype."""

    by_function: Mapping[str, CallFormat]
    type_bytes: Mapping[str, int]

    def find(self, call: Call) -> CallFormat | None:
        """Format of a call; None if it does not access a file."""
        return self.by_function.get(call.function)


def is_request(call_format: CallFormat | None) -> bool:
    """Whether a call reads or writes a file."""
    return call_format is not None and call_format.operation in ("read", "write")


# ---- arguments


@dataclass(frozen=True, slots=True)
class Number:
    """Integer in an argument text: minimum width, and its values or a constant."""

    width: int
    values: Vector | int


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument of a call, as pieces of text with numbers in between; the last piece follows the last number."""

    texts: tuple[str, ...]
    numbers: tuple[Number, ...]

    @property
    def constant(self) -> str | None:
        """Text of the argument if it is constant, otherwise None."""
        parts = [self.texts[0]]
        for number, text in zip(self.numbers, self.texts[1:], strict=True):
            if not isinstance(number.values, int):
                return None
            parts += [str(number.values).zfill(number.width), text]
        return "".join(parts)

    @property
    def is_unknown(self) -> bool:
        """Whether the logged value stands for an unknown file."""
        return self.constant in _UNKNOWN

    def integer_values(self) -> Vector | int | None:
        """Value of the argument if it is an integer, otherwise None."""
        constant = self.constant
        if constant is not None:
            return int(constant) if re.fullmatch(r"-?[0-9]{1,18}", constant) else None
        return self.numbers[0].values if self.texts == ("", "") else None


def split_arguments(call: Call) -> list[Argument]:
    """Split the arguments of a call, which are separated by spaces."""
    arguments: list[Argument] = []
    texts: list[str] = []
    numbers: list[Number] = []
    for place, text in enumerate(call.texts):
        first, *next_texts = text.split(" ")
        texts.append(first)
        for argument_text in next_texts:
            arguments.append(_convert_argument(texts, numbers))
            texts, numbers = [argument_text], []
        if place < len(call.slots):
            numbers.append(_convert_slot(call.slots[place]))
    arguments.append(_convert_argument(texts, numbers))
    return arguments


def _convert_slot(slot: Slot) -> Number:
    """Convert a slot; its values become a constant if they are always equal in all ranks."""
    blocks = [block for block in map(block_from_share, slot.vector) if block.execution_count and block.ranks.size]
    if blocks and all(block.is_constant() for block in blocks):
        values = {block.lower_bound() for block in blocks}
        if len(values) == 1 and min(values) >= 0:
            return Number(slot.width, values.pop())
    return Number(slot.width, slot.vector)


def _convert_argument(texts: Sequence[str], numbers: Sequence[Number]) -> Argument:
    """Convert text and slots to an argument, in which constant numbers in the text become numbers."""
    parts: list[str] = [""]
    values: list[Number] = []
    for place, text in enumerate(texts):
        if place:
            values.append(numbers[place - 1])
            parts.append("")
        first, *pieces = _DIGITS.split(text)
        parts[-1] += first
        for digits, suffix in zip(pieces[::2], pieces[1::2], strict=True):
            values.append(Number(len(digits), int(digits)))
            parts.append(suffix)
    return Argument(tuple(parts), tuple(values))


def varying_vectors(field: Argument) -> list[Vector]:
    """List the vectors of an argument's numbers that are not constant."""
    return [number.values for number in field.numbers if not isinstance(number.values, int)]


def argument_at(arguments: Sequence[Argument], place: int | None) -> Argument | None:
    """Return the argument at `place`; None if `place` is None or there are fewer arguments."""
    return arguments[place] if place is not None and place < len(arguments) else None


@dataclass(frozen=True, slots=True)
class Size:
    """Requested bytes: (count - surplus) times bytes per element; both factors are constants or vectors."""

    count: Vector | int
    element_bytes: Vector | int
    surplus: int


def request_size(arguments: Sequence[Argument], call_format: CallFormat, formats: CallFormats) -> Size | None:
    """Find the requested bytes of a call; None if the datatype is unknown or the arguments are malformed."""
    count = argument_at(arguments, call_format.count_at)
    values = count.integer_values() if count else None
    element_bytes: Vector | int | None = 1
    if call_format.layer == "MPIIO":
        datatype = argument_at(arguments, call_format.type_at)
        element_bytes = formats.type_bytes.get(datatype.constant or "") if datatype else None
    elif call_format.size_at is not None:
        size = argument_at(arguments, call_format.size_at)
        element_bytes = size.integer_values() if size else None
    return None if values is None or element_bytes is None else Size(values, element_bytes, call_format.surplus)


def total_volume(size: Size | None, call_count: int) -> int | None:
    """Compute the total bytes of all executions of all ranks in closed form.

    Parameters
    ----------
    size
        Requested bytes, if known.
    call_count
        Number of executions by all ranks.

    Returns
    -------
    int or None
        None if unknown, i.e. with negative counts, or if both factors vary within the ranks of a share.
    """
    if size is None:
        return None
    count, element = size.count, size.element_bytes
    if isinstance(count, int) and isinstance(element, int):
        return _validate_total(count - size.surplus, element, (count - size.surplus) * element * call_count)
    vectors = [factor for factor in (count, element) if not isinstance(factor, int)]
    ranks = divide_ranks(vectors)
    if ranks is None:
        return None
    executed = [find_block(vectors[0], block).execution_count for block in ranks]
    parts = [_block_volume(size, *pair) for pair in zip(ranks, executed, strict=True)]
    return None if None in parts else sum(part for part in parts if part is not None)


def _validate_total(min_count: int, min_element_bytes: int, total: int) -> int | None:
    return total if min_count >= 0 and min_element_bytes >= 0 else None


def _block_volume(size: Size, ranks: Progression, executed: int) -> int | None:
    """Total bytes of ranks in one share of each factor."""
    if not executed:
        return 0
    factors = [
        factor if isinstance(factor, int) else find_block(factor, ranks) for factor in (size.count, size.element_bytes)
    ]
    count, element = (
        factor.first if isinstance(factor, Block) and factor.is_constant() else factor for factor in factors
    )
    min_count, min_element = (
        factor if isinstance(factor, int) else factor.lower_bound() for factor in (count, element)
    )
    call_count = ranks.size * executed
    if isinstance(element, int):
        total = count * call_count if isinstance(count, int) else count.total()
        return _validate_total(min_count - size.surplus, element, (total - size.surplus * call_count) * element)
    if isinstance(count, int):
        return _validate_total(count - size.surplus, min_element, (count - size.surplus) * element.total())
    return None


def volumes_by_execution(size: Size | None, ranks: Progression, executed: int) -> Objects | None:
    """Compute the bytes of all ranks of a block for each execution (T), as Python integers; None if unknown.

    The ranks must be in one share of each factor.
    """
    factors = (
        []
        if size is None
        else [_sum_factor(size.count, ranks, size.surplus), _sum_factor(size.element_bytes, ranks, 0)]
    )
    if (
        not factors
        or any(factor.lower_bound < 0 for factor in factors)
        or not any(factor.is_uniform for factor in factors)
    ):
        return None
    first, second = sorted(factors, key=lambda factor: factor.is_uniform)
    volumes: Objects = np.broadcast_to(first.totals * (second.totals // ranks.size), (executed,))
    return volumes


@dataclass(frozen=True, slots=True)
class _Factor:
    """Factor of the requested bytes: sums over ranks by execution, minimum, and whether all ranks have equal values."""

    totals: Objects
    lower_bound: int
    is_uniform: bool


def _sum_factor(values: Vector | int, ranks: Progression, surplus: int) -> _Factor:
    if isinstance(values, int):
        return _Factor(np.array([(values - surplus) * ranks.size], object), values - surplus, True)
    block = find_block(values, ranks)
    return _Factor(block.totals() - surplus * ranks.size, block.lower_bound() - surplus, block.is_uniform())


# ---- calls within calls


#: levels of the calls that enclose the next call, and whether these calls access files
_State = tuple[tuple[int, bool], ...]


@dataclass(slots=True)
class _NestingTraversal:
    """Traversal of a class's nodes in every order that its loops allow; children are the nodes of each loop."""

    nodes: Sequence[Node]
    children: Mapping[int, list[int]]
    is_nested: dict[int, set[bool]]
    memo: dict[tuple[int, frozenset[_State]], set[_State]] = field(default_factory=dict)

    def visit_body(self, parent: int, states: set[_State]) -> set[_State]:
        """Traverse a body that is entered in any of these states; return the possible states after it."""
        # memoized, since a body is entered in the same states repeatedly
        key = parent, frozenset(states)
        if key not in self.memo:
            self.memo[key] = self._visit_body(parent, states)
        return self.memo[key]

    def _visit_body(self, parent: int, states: set[_State]) -> set[_State]:
        for number in self.children.get(parent, ()):
            node = self.nodes[number]
            if isinstance(node, Call):
                states = {self._step(number, node, state) for state in states}
                continue
            entry_states, exit_states = set(states), set(states) if _may_be_empty(node) else set[_State]()
            while True:
                after = self.visit_body(number, entry_states)
                exit_states |= after
                if after <= entry_states or len(entry_states) > _MAX_STATES:
                    break
                entry_states |= after
            states = exit_states
        return states

    def _step(self, number: int, call: Call, state: _State) -> _State:
        enclosing = tuple(pair for pair in state if pair[0] < call.level)
        self.is_nested.setdefault(number, set()).add(any(accesses_file for _, accesses_file in enclosing))
        return (*enclosing, (call.level, _accesses_files(call)))


def _may_be_empty(loop: Loop) -> bool:
    return any(block_from_share(share).lower_bound() <= 0 for share in loop.counts)


def find_nested_calls(rank_class: RankClass) -> dict[int, bool | None]:
    """Determine which call nodes are executed within other traced calls that access files.

    Parameters
    ----------
    rank_class
        Class of ranks.

    Returns
    -------
    dict[int, bool | None]
        Whether each call node, by number, is nested. None if only some executions are nested, or if loops are nested
        too deep. For example, a loop may begin with inner calls that are enclosed in the first iteration only.
    """
    nodes, parents = number_nodes(rank_class.body)
    calls = {number: node for number, node in enumerate(nodes) if isinstance(node, Call)}
    if _depth(parents) > _MAX_DEPTH:
        return {number: False if call.level == 0 else None for number, call in calls.items()}
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)
    nesting = _NestingTraversal(nodes, children, {})
    nesting.visit_body(-1, {()})
    outcomes = {number: nesting.is_nested.get(number, {False}) for number in calls}
    return {number: next(iter(outcome)) if len(outcome) == 1 else None for number, outcome in outcomes.items()}


def _accesses_files(call: Call) -> bool:
    return call.function.startswith("MPI_File_") or call.module in ("POSIX", "MPIIO", "STDIO")


def _depth(parents: Sequence[int]) -> int:
    depths: dict[int, int] = {-1: 0}
    for number, parent in enumerate(parents):
        depths[number] = depths[parent] + 1
    return max(depths.values())
