"""Exact models of a number over ranks, iterations and rank counts: both dimensions of the paper's section 3.2.3.

A field has a value for each rank and each iteration of the loops around it. Along a loop it grows by a stride that is
a model in n, or, where it does not grow evenly and the loop is as long at all rank counts, each iteration is a column
of its own; a loop whose length changes may consist of two, of which one is as long everywhere. What is left, a number
for each rank, is a column model (`rank_models`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.count_models import FAMILIES, CountFamily, CountModel, NotWhole, fitted, whole_at
from iosig.transforms.extrapolation.rank_models import RANK_FAMILIES, Column, PiecedModel, RankFamily, RankModel
from iosig.transforms.traces.progressions import Listed, Progression, Stretch, values
from iosig.transforms.traces.trace import Share, Vector
from iosig.transforms.traces.vectors import stretches_of, vector_of

_INDICES = "ijklmpqrstuvw"
#: iterations that follow no stride can be so many
_MOST_LISTED = 1 << 16
#: and rows that are made of them so long
_MOST_NUMBERS = 1 << 20
#: values of ranks that are evaluated one by one, as those of a user's own models are
_MOST_VALUES = 1 << 25


@dataclass(frozen=True, slots=True)
class Families:
    """The kinds of models that may explain fields: those in n, and those over ranks."""

    counts: tuple[CountFamily, ...] = FAMILIES
    ranks: tuple[RankFamily, ...] = RANK_FAMILIES


@dataclass(frozen=True, slots=True)
class Block:
    """A field's values at one rank count: ranks int64[R], rising, and values int64[R, iterations of each loop ...]."""

    process_count: int
    ranks: Ints
    values: Ints


@dataclass(frozen=True, slots=True)
class Strided:
    """Values that grow by a stride with each iteration of a loop; None if the loop never had a second one."""

    stride: CountModel | None
    inner: FieldModel


@dataclass(frozen=True, slots=True)
class Apart:
    """Values of which each iteration of a loop, as long everywhere, has a model of its own."""

    each: tuple[FieldModel, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A loop that consists of two, one within the other: `length` is that of the inner one."""

    length: CountModel
    inner: FieldModel


@dataclass(frozen=True, slots=True)
class Fixed:
    """Values that differ by iterations, but neither by rank nor by rank count."""

    numbers: Ints


FieldModel = Strided | Apart | Split | Fixed | RankModel


class NoModel(Exception):
    """No model explains a field at all rank counts exactly; the message says where it first does not."""


def fit(blocks: Sequence[Block], families: Families) -> FieldModel:
    """Return the model that gives all values at all rank counts; raise NoModel where there is none."""
    if blocks[0].values.ndim == 1:
        return _by_rank([Column(block.process_count, block.ranks, block.values) for block in blocks], families)
    strides = _strides(blocks)
    if strides is not None:
        stride = fitted(strides, families.counts) if strides else None
        if strides and stride is None:
            raise NoModel(f"the stride along a loop, {_listed(strides)}")
        return Strided(stride, fit([_first(block) for block in blocks], families))
    if len({block.values.shape[1] for block in blocks}) > 1:
        return _split(blocks, families)
    try:
        return _apart(blocks, families)
    except NoModel:
        # As long as it is, it may consist of two that are not.
        if len({_even_length(block.values) for block in blocks}) == 1:
            raise
        return _split(blocks, families)


def _first(block: Block, index: int = 0) -> Block:
    return Block(block.process_count, block.ranks, block.values[:, index])


def _strides(blocks: Sequence[Block]) -> list[tuple[int, Fraction]] | None:
    """Return by how much values grow with each iteration of the first loop, where it is more than one; or None."""
    found: list[tuple[int, Fraction]] = []
    for block in blocks:
        steps = np.diff(block.values, axis=1)
        if not steps.size:
            continue
        if (steps != steps.flat[0]).any():
            return None
        found.append((block.process_count, Fraction(int(steps.flat[0]))))
    return found


def _by_rank(columns: Sequence[Column], families: Families) -> RankModel:
    for family in families.ranks:
        model = family(columns, families.counts)
        if model is not None and all(_gives(model, column) for column in columns):
            return model
    raise NoModel("; ".join(f"{_shown(column)} at {column.process_count} ranks" for column in columns))


def _gives(model: RankModel, column: Column) -> bool:
    """Return whether a model gives a column: one of a user's own is not taken at its word."""
    try:
        return bool((_numbers_at(model, column.process_count, column.ranks) == column.values).all())
    except NotWhole:
        return False


def _numbers_at(model: RankModel, process_count: int, ranks: Ints) -> Ints:
    found = np.asarray(model.values_at(process_count, ranks))
    if found.shape != ranks.shape or found.dtype.kind not in "iu":
        raise NotWhole(f"{model.formula()} gives no whole number for each rank")
    return found.astype(np.int64)


def _apart(blocks: Sequence[Block], families: Families) -> FieldModel:
    reference = blocks[0].values[0]
    alike = [block for block in blocks if block.values.shape[1:] == reference.shape]
    if len(alike) == len(blocks) and all((block.values == reference).all() for block in alike):
        return Fixed(reference)
    count = reference.shape[0]
    if count > _MOST_LISTED:
        raise NoModel(f"{count} iterations that follow no stride")
    return Apart(tuple(fit([_first(block, index) for block in blocks], families) for index in range(count)))


def _split(blocks: Sequence[Block], families: Families) -> FieldModel:
    """Fit a loop as two, the inner one as long as values grow evenly; raise NoModel where they do not.

    Where they grow evenly throughout, inner loops may have had one iteration only.
    """
    seen = [
        (block.process_count, Fraction(size))
        for block in blocks
        if (size := _even_length(block.values)) < block.values.shape[1]
    ]
    length = fitted(seen, families.counts)
    sizes = [_length_at(length, block) for block in blocks]
    if length is None or None in sizes:
        shown = "; ".join(f"{_shown_row(block.values)} at {block.process_count} ranks" for block in blocks)
        raise NoModel(f"the values along a loop, {shown}")
    parted = [
        Block(
            block.process_count,
            block.ranks,
            block.values.reshape(block.values.shape[0], -1, size or 1, *block.values.shape[2:]),
        )
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return Split(length, fit(parted, families))


def _length_at(length: CountModel | None, block: Block) -> int | None:
    """Return how long the inner of two loops is; None where the loop does not consist of some of them."""
    try:
        found = 0 if length is None else whole_at(length, block.process_count, "")
    except NotWhole:
        return None
    return None if found < 1 or block.values.shape[1] % found else found


def _even_length(block: Ints) -> int:
    """Return after how many iterations of the first loop its values first grow by another step."""
    steps = np.diff(block, axis=1)
    if not steps.size:
        return int(block.shape[1])
    is_other = (steps != steps[:, :1]).reshape(steps.shape[0], steps.shape[1], -1).any(axis=(0, 2))
    return int(np.argmax(is_other)) + 1 if is_other.any() else int(block.shape[1])


def _listed(points: Sequence[tuple[int, Fraction]]) -> str:
    return ", ".join(f"{value} at {count} ranks" for count, value in points)


def _shown(column: Column) -> str:
    numbers = ", ".join(map(str, column.values[:4].tolist()))
    return f"{numbers}{', ...' if column.values.size > 4 else ''}"


def _shown_row(block: Ints) -> str:
    row = block[0].reshape(-1)
    return f"{', '.join(map(str, row[:6].tolist()))}{', ...' if row.size > 6 else ''}"


# ---- what a model gives


def vector_at(model: FieldModel, process_count: int, ranks: Sequence[Progression], lengths: Sequence[int]) -> Vector:
    """Return the values at a rank count, of ranks that are progressions and loops of these lengths around.

    Raises NotWhole where a value is no whole number.
    """
    leaves = _leaves(model)
    layout = _layout(model, process_count, list(lengths))
    pieces = _pieces(leaves, process_count, ranks)
    if pieces is not None:
        return _shares_of_pieces(leaves, process_count, pieces, layout)
    size = sum(own.size for own in ranks)
    if size * len(leaves) > _MOST_VALUES:
        raise ValueError(f"{size} ranks are too many for a model that has no pieces of ranks")
    every = np.sort(values(tuple(ranks)))
    rows = _table(leaves, process_count, every)
    return tuple(
        Share(
            share.ranks,
            tuple(_row(layout, values(shift).tolist(), is_shift=True) for shift in share.shifts),
            _row(layout, values(share.values).tolist(), is_shift=False),
        )
        for share in vector_of(every, rows)
    )


def _pieces(
    leaves: Sequence[RankModel | int], process_count: int, ranks: Sequence[Progression]
) -> list[Progression] | None:
    """Return ranks as pieces along which all leaves grow evenly; None where one cannot say."""
    found = list(ranks)
    for leaf in leaves:
        if isinstance(leaf, int):
            continue
        if not isinstance(leaf, PiecedModel):
            return None
        parts = [leaf.pieces_at(process_count, piece) for piece in found]
        if None in parts:
            return None
        found = [piece for part in parts for piece in part or ()]
    return found


def _shares_of_pieces(
    leaves: Sequence[RankModel | int], process_count: int, pieces: Sequence[Progression], layout: _Layout
) -> Vector:
    """Return shares from the first rank of each piece and its neighbours along each dimension."""
    corners = [(piece.start, *(piece.start + stride for stride in piece.strides)) for piece in pieces]
    asked = np.array([rank for part in corners for rank in part], np.int64)
    rows = _table(leaves, process_count, asked)
    found: list[Share] = []
    place = 0
    for piece in pieces:
        first, *others = rows[place : place + 1 + len(piece.strides)]
        shifts = tuple(_row(layout, (other - first).tolist(), is_shift=True) for other in others)
        found.append(Share(piece, shifts, _row(layout, first.tolist(), is_shift=False)))
        place += 1 + len(piece.strides)
    return tuple(sorted(found, key=lambda share: share.ranks.start))


def _table(leaves: Sequence[RankModel | int], process_count: int, ranks: Ints) -> Ints:
    """Return what each leaf gives for each rank, int64[R, leaves]."""
    columns = [
        np.full(ranks.size, leaf, np.int64) if isinstance(leaf, int) else _numbers_at(leaf, process_count, ranks)
        for leaf in leaves
    ]
    return np.stack(columns, axis=1)


def _leaves(model: FieldModel) -> list[RankModel | int]:
    """Return the column models of a field, and the numbers of fixed ones, in the order of its iterations."""
    match model:
        case Strided() | Split():
            return _leaves(model.inner)
        case Apart():
            return [leaf for inner in model.each for leaf in _leaves(inner)]
        case Fixed():
            return [int(number) for number in model.numbers.reshape(-1).tolist()]
        case _:
            return [model]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a row is made of its leaves: `count` times what is inside, `stride` apart, or one part behind the other."""

    count: int
    stride: int
    parts: tuple[_Layout, ...]


_LEAF = _Layout(1, 0, ())


def _layout(model: FieldModel, process_count: int, lengths: list[int]) -> _Layout:
    match model:
        case Strided():
            if model.stride is None and lengths[0] > 1:
                raise NotWhole(f"how values grow along a loop of {lengths[0]} was never seen")
            stride = 0 if model.stride is None else whole_at(model.stride, process_count, "the stride")
            return _Layout(lengths[0], stride, (_layout(model.inner, process_count, lengths[1:]),))
        case Apart():
            return _Layout(1, 0, tuple(_layout(inner, process_count, lengths[1:]) for inner in model.each))
        case Split():
            length = whole_at(model.length, process_count, "the inner loop's length")
            if length < 1:
                raise ValueError("a loop has no iterations")
            if lengths[0] % length:
                raise NotWhole(f"a loop of {lengths[0]} has no whole number of inner loops of {length}")
            return _layout(model.inner, process_count, [lengths[0] // length, length, *lengths[1:]])
        case Fixed():
            return _Layout(1, 0, (_LEAF,) * model.numbers.size)
        case _:
            return _LEAF


def _row(layout: _Layout, numbers: list[int], *, is_shift: bool) -> tuple[Stretch, ...]:
    """Return the row that has these numbers at its leaves; strides along loops are the same for all ranks."""
    found = _laid_out(layout, iter(numbers), is_shift)
    return _joined(found)


def _laid_out(layout: _Layout, numbers: object, is_shift: bool) -> tuple[Stretch, ...]:
    assert hasattr(numbers, "__next__")
    if not layout.parts:
        return (Progression(next(numbers)),)
    inside = tuple(stretch for part in layout.parts for stretch in _laid_out(part, numbers, is_shift))
    if layout.count == 1:
        return inside
    return repeated(_joined(inside), 0 if is_shift else layout.stride, layout.count)


def repeated(stretches: tuple[Stretch, ...], stride: int, count: int) -> tuple[Stretch, ...]:
    """Return a row that comes so often, each time larger by the stride."""
    if len(stretches) == 1:
        stretch = stretches[0]
        if isinstance(stretch, Progression):
            return (Progression(stretch.start, (stride, *stretch.strides), (count, *stretch.counts)),)
        return (Listed(stretch.numbers, (stride, *stretch.strides), (count, *stretch.counts)),)
    size = sum(stretch.size for stretch in stretches)
    if size * count > _MOST_NUMBERS:
        raise ValueError(f"a row of {size * count} numbers follows no progression")
    row = values(stretches)
    return (Listed(tuple(row.tolist()), (stride,), (count,)),)


def _joined(stretches: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    """Return a row with single numbers behind one another brought together."""
    found: list[Stretch] = []
    for is_single, group in groupby(stretches, key=lambda stretch: stretch.size == 1):
        members = tuple(group)
        found += stretches_of(values(members)) if is_single and len(members) > 1 else members
    return tuple(found)


def formula_of(model: FieldModel, depth: int = 0) -> str:
    """Return a field's model as text, in `n`, `rank` and the loops' indices i, j, ..., from the outermost."""
    index = _INDICES[min(depth, len(_INDICES) - 1)]
    match model:
        case Strided():
            inner = formula_of(model.inner, depth + 1)
            stride = "0" if model.stride is None else model.stride.formula()
            if stride == "0":
                return inner
            product = index if stride == "1" else f"{f'({stride})' if ' ' in stride else stride}*{index}"
            return product if inner == "0" else f"{inner} + {product}"
        case Apart():
            shown = [f"{index}={place}: {formula_of(inner, depth + 1)}" for place, inner in enumerate(model.each)]
            return "; ".join(shown[:8]) + ("; ..." if len(shown) > 8 else "")
        case Split():
            return f"{formula_of(model.inner, depth)} in groups of {model.length.formula()}"
        case Fixed():
            numbers = model.numbers.reshape(-1).tolist()
            return f"({', '.join(map(str, numbers[:8]))}{', ...' if len(numbers) > 8 else ''})[{index}]"
        case _:
            return model.formula()


def is_constant(model: FieldModel) -> bool:
    """Return whether a field is the same number everywhere."""
    text = formula_of(model)
    return text.lstrip("-").isdigit()
