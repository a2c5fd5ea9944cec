"""What the calls of a compressed trace do to files: the fields of their arguments, and which are within others.

Recorder logs arguments, separated by spaces, and no return values: a request's bytes are those asked for. How each
function's arguments are to be read is knowledge of the format, and is handed in as `Forms`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from iosig.transforms.traces.expansion import numbered
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.rank_blocks import Block, block_of, divided, of_share
from iosig.transforms.traces.trace import Call, Loop, Node, RankClass, Slot, Vector

#: whole numbers of any size
Objects = npt.NDArray[np.object_]

#: what is logged where the file is not known
_UNKNOWN = ("???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN", "")
#: calls around a call in any order that loops allow; more are not told apart
_MOST_STATES = 64
#: loops within loops that are gone through
_MOST_DEPTH = 12
_DIGITS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Form:
    """How a function's arguments are logged: which of them, counted from 0, says what; None where none does.

    layer: POSIX or MPIIO. deed: `read`, `write`, `open` or whatever else it does. A request has `count` elements, of
    `size` bytes or of a type, less `surplus` bytes.
    """

    layer: str
    deed: str
    file_at: int | None
    count_at: int | None = None
    size_at: int | None = None
    type_at: int | None = None
    path_at: int | None = None
    surplus: int = 0


@dataclass(frozen=True, slots=True)
class Forms:
    """How each function is logged that touches files, and the bytes of each named datatype."""

    by_function: Mapping[str, Form]
    type_bytes: Mapping[str, int]

    def of(self, call: Call) -> Form | None:
        """Return how a call is logged; None if it touches no file."""
        return self.by_function.get(call.function)


def is_request(form: Form | None) -> bool:
    """Return whether a call moves bytes of a file."""
    return form is not None and form.deed in ("read", "write")


# ---- arguments


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: its least width, and its values, or the only one."""

    width: int
    values: Vector | int


@dataclass(frozen=True, slots=True)
class Field:
    """An argument: texts with numbers between them, one text more than numbers."""

    texts: tuple[str, ...]
    numbers: tuple[Number, ...]

    @property
    def constant(self) -> str | None:
        """Return what it always is; None if that differs."""
        found = [self.texts[0]]
        for number, text in zip(self.numbers, self.texts[1:], strict=True):
            if not isinstance(number.values, int):
                return None
            found += [str(number.values).zfill(number.width), text]
        return "".join(found)

    @property
    def is_unknown(self) -> bool:
        """Return whether it says that nothing is known."""
        return self.constant in _UNKNOWN

    def whole(self) -> Vector | int | None:
        """Return what it is as a whole number; None if it is none, or is in parts."""
        constant = self.constant
        if constant is not None:
            return int(constant) if re.fullmatch(r"-?[0-9]{1,18}", constant) else None
        return self.numbers[0].values if self.texts == ("", "") else None


def fields(call: Call) -> list[Field]:
    """Return the arguments of a call: spaces stand between them and nowhere else."""
    found: list[Field] = []
    texts: list[str] = []
    numbers: list[Number] = []
    for place, text in enumerate(call.texts):
        first, *others = text.split(" ")
        texts.append(first)
        for other in others:
            found.append(_field(texts, numbers))
            texts, numbers = [other], []
        if place < len(call.slots):
            numbers.append(_number(call.slots[place]))
    found.append(_field(texts, numbers))
    return found


def _number(slot: Slot) -> Number:
    """Return a slot's number: one, if all ranks have the same all along."""
    blocks = [block for block in map(of_share, slot.vector) if block.executed and block.ranks.size]
    if blocks and all(block.is_constant() for block in blocks):
        values = {block.least() for block in blocks}
        if len(values) == 1 and min(values) >= 0:
            return Number(slot.width, values.pop())
    return Number(slot.width, slot.vector)


def _field(texts: Sequence[str], numbers: Sequence[Number]) -> Field:
    """Return a field with the numbers that stand in its texts as numbers, too."""
    parts: list[str] = [""]
    known: list[Number] = []
    for place, text in enumerate(texts):
        if place:
            known.append(numbers[place - 1])
            parts.append("")
        first, *others = _DIGITS.split(text)
        parts[-1] += first
        for digits, rest in zip(others[::2], others[1::2], strict=True):
            known.append(Number(len(digits), int(digits)))
            parts.append(rest)
    return Field(tuple(parts), tuple(known))


def vectors_of(field: Field) -> list[Vector]:
    """Return the vectors of a field's numbers that are not always the same."""
    return [number.values for number in field.numbers if not isinstance(number.values, int)]


def field_at(known: Sequence[Field], place: int | None) -> Field | None:
    """Return an argument; None if there is none there."""
    return known[place] if place is not None and place < len(known) else None


@dataclass(frozen=True, slots=True)
class Size:
    """The bytes of a request: two factors, each a number or a vector, less a surplus."""

    count: Vector | int
    each: Vector | int
    surplus: int


def size_asked(known: Sequence[Field], form: Form, forms: Forms) -> Size | None:
    """Return the bytes that a request asks for; None where its datatype hides them, or it is malformed."""
    count = field_at(known, form.count_at)
    values = count.whole() if count else None
    each: Vector | int | None = 1
    if form.layer == "MPIIO":
        kind = field_at(known, form.type_at)
        each = forms.type_bytes.get(kind.constant or "") if kind else None
    elif form.size_at is not None:
        size = field_at(known, form.size_at)
        each = size.whole() if size else None
    return None if values is None or each is None else Size(values, each, form.surplus)


def volume(size: Size | None, call_count: int) -> int | None:
    """Return the bytes of all executions of all ranks, in closed form; None where they are not known.

    A negative count, which no request has, hides them. So do two factors that both differ within the ranks of a share.
    """
    if size is None:
        return None
    count, each = size.count, size.each
    if isinstance(count, int) and isinstance(each, int):
        return _sound(count - size.surplus, each, (count - size.surplus) * each * call_count)
    vectors = [factor for factor in (count, each) if not isinstance(factor, int)]
    ranks = divided(vectors)
    if ranks is None:
        return None
    executed = [block_of(vectors[0], block).executed for block in ranks]
    parts = [_block_volume(size, *pair) for pair in zip(ranks, executed, strict=True)]
    return None if None in parts else sum(part for part in parts if part is not None)


def _sound(least_count: int, least_each: int, found: int) -> int | None:
    return found if least_count >= 0 and least_each >= 0 else None


def _block_volume(size: Size, ranks: Progression, executed: int) -> int | None:
    """Return the bytes of all executions of ranks that lie in one share of each factor."""
    if not executed:
        return 0
    factors = [factor if isinstance(factor, int) else block_of(factor, ranks) for factor in (size.count, size.each)]
    count, each = (factor.first if isinstance(factor, Block) and factor.is_constant() else factor for factor in factors)
    least = [factor if isinstance(factor, int) else factor.least() for factor in (count, each)]
    times = ranks.size * executed
    if isinstance(each, int):
        total = count * times if isinstance(count, int) else count.total()
        return _sound(least[0] - size.surplus, each, (total - size.surplus * times) * each)
    if isinstance(count, int):
        return _sound(count - size.surplus, least[1], (count - size.surplus) * each.total())
    return None


def exact_volumes(size: Size | None, ranks: Progression, executed: int) -> Objects | None:
    """Return the bytes of all ranks of a block, for each execution (T), as whole numbers of any size; None if unknown.

    ranks: lie in one share of each factor.
    """
    factors = [] if size is None else [_factor(size.count, ranks, size.surplus), _factor(size.each, ranks, 0)]
    if not factors or any(factor.least < 0 for factor in factors) or not any(factor.is_even for factor in factors):
        return None
    first, other = sorted(factors, key=lambda factor: factor.is_even)
    found: Objects = np.broadcast_to(first.totals * (other.totals // ranks.size), (executed,))
    return found


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of requests' bytes: summed over the ranks for each execution, its least, and if all ranks have it."""

    totals: Objects
    least: int
    is_even: bool


def _factor(values: Vector | int, ranks: Progression, surplus: int) -> _Factor:
    if isinstance(values, int):
        return _Factor(np.array([(values - surplus) * ranks.size], object), values - surplus, True)
    block = block_of(values, ranks)
    return _Factor(block.totals() - surplus * ranks.size, block.least() - surplus, block.is_even())


# ---- calls within calls


#: the calls that enclose what comes next: their levels, and whether they touch files
_State = tuple[tuple[int, bool], ...]


@dataclass(slots=True)
class _Nesting:
    """A walk through a class's nodes in every order that its loops allow; children are the nodes of each loop."""

    nodes: Sequence[Node]
    children: Mapping[int, list[int]]
    found: dict[int, set[bool]]
    left: dict[tuple[int, frozenset[_State]], set[_State]] = field(default_factory=dict)

    def body(self, parent: int, states: set[_State]) -> set[_State]:
        """Note what encloses the calls of a body that is entered in one of some states; return those it is left in."""
        # a loop's body is entered in the same states again and again: once is enough
        key = parent, frozenset(states)
        if key not in self.left:
            self.left[key] = self._body(parent, states)
        return self.left[key]

    def _body(self, parent: int, states: set[_State]) -> set[_State]:
        for number in self.children.get(parent, ()):
            node = self.nodes[number]
            if isinstance(node, Call):
                states = {self._step(number, node, state) for state in states}
                continue
            reached, left = set(states), set(states) if _may_be_empty(node) else set[_State]()
            while True:
                after = self.body(number, reached)
                left |= after
                if after <= reached or len(reached) > _MOST_STATES:
                    break
                reached |= after
            states = left
        return states

    def _step(self, number: int, call: Call, state: _State) -> _State:
        around = tuple(pair for pair in state if pair[0] < call.level)
        self.found.setdefault(number, set()).add(any(touches for _, touches in around))
        return (*around, (call.level, _touches_files(call)))


def _may_be_empty(loop: Loop) -> bool:
    return any(of_share(share).least() <= 0 for share in loop.counts)


def nested_nodes(rank_class: RankClass) -> dict[int, bool | None]:
    """Return for each call node whether its calls are made within calls to files that are traced as well.

    None where that is so of some and not of others, which happens where a loop begins with inner calls that another
    call encloses the first time. A call that the trace does not show encloses nothing.
    """
    nodes, parents = numbered(rank_class.body)
    calls = {number: node for number, node in enumerate(nodes) if isinstance(node, Call)}
    if _depth(parents) > _MOST_DEPTH:
        return {number: False if call.level == 0 else None for number, call in calls.items()}
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)
    walk = _Nesting(nodes, children, {})
    walk.body(-1, {()})
    return {number: next(iter(told)) if len(told := walk.found.get(number, {False})) == 1 else None for number in calls}


def _touches_files(call: Call) -> bool:
    return call.function.startswith("MPI_File_") or call.module in ("POSIX", "MPIIO", "STDIO")


def _depth(parents: Sequence[int]) -> int:
    depths: dict[int, int] = {-1: 0}
    for number, parent in enumerate(parents):
        depths[number] = depths[parent] + 1
    return max(depths.values())
