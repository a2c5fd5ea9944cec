"""Fit exact models of a number over ranks, iterations and rank counts: both dimensions of the paper's section 3.2.3.

A field is a number that varies by rank and by iteration of the loops around it. Along a loop, its values have a
constant stride, which is a model in n. If they have no stride and the loop has the same length at all rank counts, each
iteration is a separate column. A loop of varying length may consist of two nested loops, where one has a fixed length.
The remaining dimension, a number for each rank, has a column model (`rank_models`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.count_models import (
    FAMILIES,
    CountFamily,
    CountModel,
    NotAnIntegerError,
    evaluate_integer,
    fit_count_model,
)
from iosig.transforms.extrapolation.mesh_models import MESH_COUNT_FAMILIES, fit_mesh
from iosig.transforms.extrapolation.rank_models import RANK_FAMILIES, Column, PiecewiseModel, RankFamily, RankModel
from iosig.transforms.traces.progressions import NumberList, Progression, Stretch, expand_values
from iosig.transforms.traces.trace import Share, Vector
from iosig.transforms.traces.vectors import fold_numbers, fold_values

_INDICES = "ijklmpqrstuvw"
#: maximum number of iterations in a loop that has a separate model for each iteration
_MAX_ITERATIONS = 1 << 16
#: maximum length of a row that is not a progression and must be listed in full
_MAX_ROW_LENGTH = 1 << 20
#: maximum number of values that are evaluated rank by rank, as for models that a user adds
_MAX_VALUES = 1 << 25


@dataclass(frozen=True, slots=True)
class Families:
    """Kinds of models that may explain fields: models over n, and models over ranks."""

    counts: tuple[CountFamily, ...] = (*FAMILIES, *MESH_COUNT_FAMILIES)
    ranks: tuple[RankFamily, ...] = (*RANK_FAMILIES, fit_mesh)


@dataclass(frozen=True, slots=True)
class Block:
    """Values of a field at one rank count: ranks (R,), ascending, and values (R, iterations of each loop...)."""

    process_count: int
    ranks: Ints
    values: Ints


@dataclass(frozen=True, slots=True)
class StridedValues:
    """Values with a constant stride along a loop; the stride is None if all known loops have a single iteration."""

    stride: CountModel | None
    inner: FieldModel


@dataclass(frozen=True, slots=True)
class PerIteration:
    """Values with a separate model for each iteration of a loop of fixed length."""

    models: tuple[FieldModel, ...]


@dataclass(frozen=True, slots=True)
class NestedLoops:
    """Loop that is modeled as two nested loops; `length` is the length of the inner loop."""

    length: CountModel
    inner: FieldModel


@dataclass(frozen=True, slots=True)
class FixedValues:
    """Values that differ between iterations, but neither between ranks nor between rank counts."""

    numbers: Ints


FieldModel = StridedValues | PerIteration | NestedLoops | FixedValues | RankModel


class NoExactModelError(Exception):
    """No model gives a field exactly at all rank counts; the message contains the values that have no model."""


def fit_field(blocks: Sequence[Block], families: Families) -> FieldModel:
    """Fit the model of a field.

    Parameters
    ----------
    blocks
        Values at each rank count.
    families
        Kinds of models.

    Returns
    -------
    FieldModel
        Model that gives all values at all rank counts exactly.

    Raises
    ------
    NoExactModelError
        If no such model exists.
    """
    if blocks[0].values.ndim == 1:
        return _fit_ranks([Column(block.process_count, block.ranks, block.values) for block in blocks], families)
    strides = _find_strides(blocks)
    if strides is not None:
        stride = fit_count_model(strides, families.counts) if strides else None
        if strides and stride is None:
            raise NoExactModelError(f"the stride along a loop, {_format_points(strides)}")
        return StridedValues(stride, fit_field([_select_iteration(block) for block in blocks], families))
    if len({block.values.shape[1] for block in blocks}) > 1:
        return _fit_loop_pair(blocks, families)
    try:
        return _fit_iterations(blocks, families)
    except NoExactModelError:
        # a loop of fixed length may still consist of two nested loops of varying lengths
        if len({_linear_length(block.values) for block in blocks}) == 1:
            raise
        return _fit_loop_pair(blocks, families)


def _select_iteration(block: Block, index: int = 0) -> Block:
    return Block(block.process_count, block.ranks, block.values[:, index])


def _find_strides(blocks: Sequence[Block]) -> list[tuple[int, Fraction]] | None:
    """Find the stride along the first loop at each rank count with several iterations; None if not linear."""
    strides: list[tuple[int, Fraction]] = []
    for block in blocks:
        steps = np.diff(block.values, axis=1)
        if not steps.size:
            continue
        if (steps != steps.flat[0]).any():
            return None
        strides.append((block.process_count, Fraction(int(steps.flat[0]))))
    return strides


def _fit_ranks(columns: Sequence[Column], families: Families) -> RankModel:
    for family in families.ranks:
        model = family(columns, families.counts)
        if model is not None and all(_reproduces(model, column) for column in columns):
            return model
    raise NoExactModelError(
        "; ".join(f"{_format_column(column)} at {column.process_count} ranks" for column in columns)
    )


def _reproduces(model: RankModel, column: Column) -> bool:
    """Return whether a model gives a column; this also validates models that a user adds."""
    try:
        return bool((_evaluate_ranks(model, column.process_count, column.ranks) == column.values).all())
    except NotAnIntegerError:
        return False


def _evaluate_ranks(model: RankModel, process_count: int, ranks: Ints) -> Ints:
    values = np.asarray(model.values_at(process_count, ranks))
    if values.shape != ranks.shape or values.dtype.kind not in "iu":
        raise NotAnIntegerError(f"{model.formula()} does not give an integer for each rank")
    return values.astype(np.int64)


def _fit_iterations(blocks: Sequence[Block], families: Families) -> FieldModel:
    reference = blocks[0].values[0]
    same_shape = [block for block in blocks if block.values.shape[1:] == reference.shape]
    if len(same_shape) == len(blocks) and all((block.values == reference).all() for block in same_shape):
        return FixedValues(reference)
    count = reference.shape[0]
    if count > _MAX_ITERATIONS:
        raise NoExactModelError(f"{count} iterations without a stride")
    return PerIteration(
        tuple(fit_field([_select_iteration(block, index) for block in blocks], families) for index in range(count))
    )


def _fit_loop_pair(blocks: Sequence[Block], families: Families) -> FieldModel:
    """Fit a loop as two nested loops; the inner loop ends where values cease to be linear.

    Rank counts at which all values are linear do not determine the length of the inner loop. Raise NoExactModelError if
    the loop cannot be divided.
    """
    points = [
        (block.process_count, Fraction(size))
        for block in blocks
        if (size := _linear_length(block.values)) < block.values.shape[1]
    ]
    length = fit_count_model(points, families.counts)
    sizes = [_inner_length(length, block) for block in blocks]
    if length is None or None in sizes:
        texts = "; ".join(f"{_format_row(block.values)} at {block.process_count} ranks" for block in blocks)
        raise NoExactModelError(f"the values along a loop, {texts}")
    nested = [
        Block(
            block.process_count,
            block.ranks,
            block.values.reshape(block.values.shape[0], -1, size or 1, *block.values.shape[2:]),
        )
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return NestedLoops(length, fit_field(nested, families))


def _inner_length(length: CountModel | None, block: Block) -> int | None:
    """Return the length of the inner loop; None if it does not divide the length of the loop."""
    try:
        inner_length = 0 if length is None else evaluate_integer(length, block.process_count, "")
    except NotAnIntegerError:
        return None
    return None if inner_length < 1 or block.values.shape[1] % inner_length else inner_length


def _linear_length(block: Ints) -> int:
    """Count the iterations of the first loop until the difference between successive values first changes."""
    steps = np.diff(block, axis=1)
    if not steps.size:
        return int(block.shape[1])
    is_other = (steps != steps[:, :1]).reshape(steps.shape[0], steps.shape[1], -1).any(axis=(0, 2))
    return int(np.argmax(is_other)) + 1 if is_other.any() else int(block.shape[1])


def _format_points(points: Sequence[tuple[int, Fraction]]) -> str:
    return ", ".join(f"{value} at {count} ranks" for count, value in points)


def _format_column(column: Column) -> str:
    numbers = ", ".join(map(str, column.values[:4].tolist()))
    return f"{numbers}{', ...' if column.values.size > 4 else ''}"


def _format_row(block: Ints) -> str:
    row = block[0].reshape(-1)
    return f"{', '.join(map(str, row[:6].tolist()))}{', ...' if row.size > 6 else ''}"


# ---- evaluation


def evaluate_vector(
    model: FieldModel, process_count: int, ranks: Sequence[Progression], lengths: Sequence[int]
) -> Vector:
    """Evaluate a field at a rank count.

    Parameters
    ----------
    model
        Model of the field.
    process_count
        Rank count.
    ranks
        Ranks of the class.
    lengths
        Lengths of the surrounding loops, from the outermost.

    Returns
    -------
    Vector
        Values of all ranks.

    Raises
    ------
    NotAnIntegerError
        If a value is not an integer.
    ValueError
        If the ranks are too many for a model that must be evaluated rank by rank.
    """
    leaves = _collect_leaves(model)
    layout = _make_layout(model, process_count, list(lengths))
    pieces = _split_ranks(leaves, process_count, ranks)
    if pieces is not None:
        return _build_shares(leaves, process_count, pieces, layout)
    size = sum(part.size for part in ranks)
    if size * len(leaves) > _MAX_VALUES:
        raise ValueError(f"{size} ranks are too many for a model that is not piecewise linear")
    all_ranks = np.sort(expand_values(tuple(ranks)))
    rows = _evaluate_leaves(leaves, process_count, all_ranks)
    return tuple(
        Share(
            share.ranks,
            tuple(_make_row(layout, expand_values(shift).tolist(), is_shift=True) for shift in share.shifts),
            _make_row(layout, expand_values(share.values).tolist(), is_shift=False),
        )
        for share in fold_values(all_ranks, rows)
    )


def _split_ranks(
    leaves: Sequence[RankModel | int], process_count: int, ranks: Sequence[Progression]
) -> list[Progression] | None:
    """Split ranks into pieces on which all leaves are linear; None if a leaf does not allow this."""
    pieces = list(ranks)
    for leaf in leaves:
        if isinstance(leaf, int):
            continue
        if not isinstance(leaf, PiecewiseModel):
            return None
        parts = [leaf.linear_pieces(process_count, piece) for piece in pieces]
        if None in parts:
            return None
        pieces = [piece for part in parts for piece in part or ()]
    return pieces


def _build_shares(
    leaves: Sequence[RankModel | int], process_count: int, pieces: Sequence[Progression], layout: _Layout
) -> Vector:
    """Create a `Share` of each piece, from the values of its first rank and the next rank along each dimension."""
    corners = [(piece.start, *(piece.start + stride for stride in piece.strides)) for piece in pieces]
    corner_ranks = np.array([rank for part in corners for rank in part], np.int64)
    rows = _evaluate_leaves(leaves, process_count, corner_ranks)
    shares: list[Share] = []
    place = 0
    for piece in pieces:
        first, *other_rows = rows[place : place + 1 + len(piece.strides)]
        shifts = tuple(_make_row(layout, (row - first).tolist(), is_shift=True) for row in other_rows)
        shares.append(Share(piece, shifts, _make_row(layout, first.tolist(), is_shift=False)))
        place += 1 + len(piece.strides)
    return tuple(sorted(shares, key=lambda share: share.ranks.start))


def _evaluate_leaves(leaves: Sequence[RankModel | int], process_count: int, ranks: Ints) -> Ints:
    """Evaluate each leaf for each rank; result: shape (R, leaves)."""
    columns = [
        np.full(ranks.size, leaf, np.int64) if isinstance(leaf, int) else _evaluate_ranks(leaf, process_count, ranks)
        for leaf in leaves
    ]
    return np.stack(columns, axis=1)


def _collect_leaves(model: FieldModel) -> list[RankModel | int]:
    """List the leaves of a field in the order of iterations: models over ranks, or fixed numbers."""
    match model:
        case StridedValues() | NestedLoops():
            return _collect_leaves(model.inner)
        case PerIteration():
            return [leaf for inner in model.models for leaf in _collect_leaves(inner)]
        case FixedValues():
            return [int(number) for number in model.numbers.reshape(-1).tolist()]
        case _:
            return [model]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Arrangement of leaves in a row: the concatenated parts, repeated `count` times, with a stride."""

    count: int
    stride: int
    parts: tuple[_Layout, ...]


_LEAF = _Layout(1, 0, ())


def _make_layout(model: FieldModel, process_count: int, lengths: list[int]) -> _Layout:
    match model:
        case StridedValues():
            if model.stride is None and lengths[0] > 1:
                raise NotAnIntegerError(
                    f"the stride along a loop of {lengths[0]} is unknown, since known loops have one iteration"
                )
            stride = 0 if model.stride is None else evaluate_integer(model.stride, process_count, "the stride")
            return _Layout(lengths[0], stride, (_make_layout(model.inner, process_count, lengths[1:]),))
        case PerIteration():
            return _Layout(1, 0, tuple(_make_layout(inner, process_count, lengths[1:]) for inner in model.models))
        case NestedLoops():
            length = evaluate_integer(model.length, process_count, "the inner loop's length")
            if length < 1:
                raise ValueError("a loop has no iterations")
            if lengths[0] % length:
                raise NotAnIntegerError(f"a loop of {lengths[0]} is not a multiple of its inner loop of {length}")
            return _make_layout(model.inner, process_count, [lengths[0] // length, length, *lengths[1:]])
        case FixedValues():
            return _Layout(1, 0, (_LEAF,) * model.numbers.size)
        case _:
            return _LEAF


def _make_row(layout: _Layout, numbers: list[int], *, is_shift: bool) -> tuple[Stretch, ...]:
    """Create a row from the numbers at its leaves; strides along loops are equal for all ranks."""
    return _fold_singles(_arrange(layout, iter(numbers), is_shift))


def _arrange(layout: _Layout, numbers: object, is_shift: bool) -> tuple[Stretch, ...]:
    assert hasattr(numbers, "__next__")
    if not layout.parts:
        return (Progression(next(numbers)),)
    inside = tuple(stretch for part in layout.parts for stretch in _arrange(part, numbers, is_shift))
    if layout.count == 1:
        return inside
    return repeat_row(_fold_singles(inside), 0 if is_shift else layout.stride, layout.count)


def repeat_row(stretches: tuple[Stretch, ...], stride: int, count: int) -> tuple[Stretch, ...]:
    """Repeat a row `count` times, with values that increase by the stride."""
    if len(stretches) == 1:
        stretch = stretches[0]
        if isinstance(stretch, Progression):
            return (Progression(stretch.start, (stride, *stretch.strides), (count, *stretch.counts)),)
        return (NumberList(stretch.numbers, (stride, *stretch.strides), (count, *stretch.counts)),)
    size = sum(stretch.size for stretch in stretches)
    if size * count > _MAX_ROW_LENGTH:
        raise ValueError(f"a row of {size * count} numbers is not a progression, and too long to be listed")
    row = expand_values(stretches)
    return (NumberList(tuple(row.tolist()), (stride,), (count,)),)


def _fold_singles(stretches: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    """Fold adjacent single numbers of a row into progressions."""
    folded: list[Stretch] = []
    for is_single, group in groupby(stretches, key=lambda stretch: stretch.size == 1):
        members = tuple(group)
        folded += fold_numbers(expand_values(members)) if is_single and len(members) > 1 else members
    return tuple(folded)


def format_formula(model: FieldModel, depth: int = 0) -> str:
    """Format a field's model in `n`, `rank` and the loop indices i, j, ..., from the outermost."""
    index = _INDICES[min(depth, len(_INDICES) - 1)]
    match model:
        case StridedValues():
            inner = format_formula(model.inner, depth + 1)
            stride = "0" if model.stride is None else model.stride.formula()
            if stride == "0":
                return inner
            product = index if stride == "1" else f"{f'({stride})' if ' ' in stride else stride}*{index}"
            return product if inner == "0" else f"{inner} + {product}"
        case PerIteration():
            texts = [f"{index}={place}: {format_formula(inner, depth + 1)}" for place, inner in enumerate(model.models)]
            return "; ".join(texts[:8]) + ("; ..." if len(texts) > 8 else "")
        case NestedLoops():
            return f"{format_formula(model.inner, depth)} in groups of {model.length.formula()}"
        case FixedValues():
            numbers = model.numbers.reshape(-1).tolist()
            return f"({', '.join(map(str, numbers[:8]))}{', ...' if len(numbers) > 8 else ''})[{index}]"
        case _:
            return model.formula()


def is_constant(model: FieldModel) -> bool:
    """Return whether the model of a field is a single number."""
    text = format_formula(model)
    return text.lstrip("-").isdigit()
