"""Fit exact models of a number over ranks and rank counts: the column dimension of the paper's section 3.2.3.

A column contains one number for each rank. Each coefficient of its model is a model in n (`count_models`): the slope of
`(960/n)*rank`, for example, is 960/n. Besides the affine model, this module has the paper's fifth model,
`((rank + a) mod n) * b`, and a model for groups of ranks, such as file_<rank/4> (section 3.2.2). A column has a model
only if the model gives it exactly at all rank counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Protocol, runtime_checkable

import numpy as np

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.count_models import (
    FAMILIES,
    AmbiguousModelError,
    Constant,
    CountFamily,
    CountModel,
    FittedModel,
    NotAnIntegerError,
    evaluate_integer,
    fit_count_model,
    format_product,
)
from iosig.transforms.extrapolation.rank_pieces import split_at, split_by_groups
from iosig.transforms.traces.progressions import Progression

#: limit below which products do not overflow 64 bits
_EXACT = 1 << 62
#: maximum number of ranks in a class with a separate model for each rank
_MAX_SEPARATE_RANKS = 64


@dataclass(frozen=True, slots=True)
class Column:
    """Values of the ranks of a class at one rank count; ranks ascend, and both arrays have the shape (R,)."""

    process_count: int
    ranks: Ints
    values: Ints


class RankModel(Protocol):
    """Model of a number over ranks and rank counts."""

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the model for ranks (R,); raise NotAnIntegerError if a value is invalid."""

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""


@runtime_checkable
class PiecewiseModel(RankModel, Protocol):
    """Model that is linear on known pieces of ranks, so that ranks need not be evaluated one by one.

    Models that a user adds may be plain `RankModel`s, which are evaluated for each rank.
    """

    def linear_pieces(self, process_count: int, ranks: Progression) -> list[Progression] | None:
        """Split ranks into pieces on which the model is linear in each dimension; None if the pieces are too many."""


#: function that fits a kind of model to columns; it returns None if no model gives all columns
RankFamily = Callable[[Sequence[Column], Sequence[CountFamily]], RankModel | None]


def _evaluate_linear(slope: Fraction, ranks: Ints, intercept: Fraction, name: str) -> Ints:
    """Evaluate `slope * ranks + rest` exactly."""
    scale = lcm(slope.denominator, intercept.denominator)
    factor, term = int(slope * scale), int(intercept * scale)
    largest = int(np.abs(ranks).max(initial=0))
    exact = ranks if abs(factor) * largest + abs(term) < _EXACT else ranks.astype(object)
    scaled = exact * factor + term
    values = scaled // scale
    is_fraction = values * scale != scaled
    if is_fraction.any():
        place = int(np.argmax(is_fraction))
        raise NotAnIntegerError(
            f"{name} is {slope * int(ranks[place]) + intercept} at rank {ranks[place]}, not an integer"
        )
    if scaled.dtype == object and any(abs(value) >= _EXACT for value in (values.min(), values.max())):
        raise NotAnIntegerError(f"{name} exceeds 64 bits")
    return values.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Affine:
    """Affine model `slope * rank + start`."""

    start: CountModel
    slope: CountModel

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the model for ranks (R,); raise NotAnIntegerError if a value is invalid."""
        return _evaluate_linear(self.slope.at(process_count), ranks, self.start.at(process_count), self.formula())

    def linear_pieces(self, process_count: int, ranks: Progression) -> list[Progression]:
        """Return the ranks as a single piece, since the model is linear."""
        return [ranks]

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""
        slope, start = self.slope.formula(), self.start.formula()
        if slope == "0":
            return start
        product = (
            format_product(self.slope.at(1), "rank") if _is_constant(self.slope) else f"{_parenthesize(slope)}*rank"
        )
        return product if start == "0" else f"{product} + {start}"


def _is_constant(model: CountModel) -> bool:
    return isinstance(model.model if isinstance(model, FittedModel) else model, Constant)


def _parenthesize(text: str) -> str:
    return f"({text})" if " " in text else text


def fit_affine(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Affine | None:
    """Fit the affine model; None if it does not give all columns.

    A column of a single rank does not determine the slope; one or more columns must have several ranks.
    """
    slopes: list[tuple[int, Fraction]] = []
    for column in columns:
        if column.ranks.size > 1:
            column_slope = _find_slope(column)
            if column_slope is None:
                return None
            slopes.append((column.process_count, column_slope))
    slope = fit_count_model(slopes, families)
    if slope is None:
        return None
    starts = [
        (
            column.process_count,
            Fraction(int(column.values[0])) - slope.at(column.process_count) * int(column.ranks[0]),
        )
        for column in columns
    ]
    start = fit_count_model(starts, families)
    return None if start is None else Affine(start, slope)


def _find_slope(column: Column) -> Fraction | None:
    """Find the slope of a column over the ranks; None if the column is not linear."""
    slope = Fraction(int(column.values[1]) - int(column.values[0]), int(column.ranks[1]) - int(column.ranks[0]))
    intercept = int(column.values[0]) - slope * int(column.ranks[0])
    return slope if _is_linear(slope, intercept, column.ranks, column.values) else None


def _is_linear(slope: Fraction, intercept: Fraction, ranks: Ints, values: Ints) -> bool:
    try:
        return bool((_evaluate_linear(slope, ranks, intercept, "") == values).all())
    except NotAnIntegerError:
        return False


@dataclass(frozen=True, slots=True)
class RotatedModel:
    """Rotated model `((rank + a) mod n) * factor + rest`, the paper's fifth; it wraps at rank `wrap` = n - a."""

    wrap: CountModel
    factor: CountModel
    rest: CountModel

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the model for ranks (R,); raise NotAnIntegerError if a value is invalid."""
        wrap = evaluate_integer(self.wrap, process_count, "the rank")
        rotated = (ranks - wrap) % process_count
        return _evaluate_linear(self.factor.at(process_count), rotated, self.rest.at(process_count), self.formula())

    def linear_pieces(self, process_count: int, ranks: Progression) -> list[Progression]:
        """Split ranks into the ranks below the wrap and the ranks at or above the wrap."""
        return split_at(ranks, evaluate_integer(self.wrap, process_count, "the rank") % process_count)

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""
        wrap = self.wrap.model if isinstance(self.wrap, FittedModel) else self.wrap
        shift = fit_count_model([(count, count - wrap.at(count)) for count in (1, 2, 3)])
        rotated = f"((rank + {shift.formula() if shift else f'n - ({wrap.formula()})'}) mod n)"
        factor, intercept = self.factor.formula(), self.rest.formula()
        product = rotated if factor == "1" else f"{rotated}*{_parenthesize(factor)}"
        return product if intercept == "0" else f"{product} + {intercept}"


def fit_rotation(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> RotatedModel | None:
    """Fit the rotated model; the class must contain the adjacent ranks on both sides of the wrap."""
    wraps = [_find_wrap(column) for column in columns]
    parts = zip(*(wrap_parts for wrap_parts in wraps if wrap_parts is not None), strict=True)
    if None in wraps:
        return None
    counts = [column.process_count for column in columns]
    # the wrap has no rivals: a constant distance from n is the paper's model, not a remainder
    models = [
        fit_count_model(list(zip(counts, part, strict=True)), families, has_rivals=place > 0)
        for place, part in enumerate(parts)
    ]
    return None if None in models else RotatedModel(*(model for model in models if model is not None))


def _find_wrap(column: Column) -> tuple[Fraction, Fraction, Fraction] | None:
    """Find the wrap, the factor and the rest of a rotated column; None for other columns."""
    ranks, values = column.ranks, column.values
    if ranks.size < 3:
        return None
    for place in (0, ranks.size - 2):
        factor = Fraction(int(values[place + 1] - values[place]), int(ranks[place + 1] - ranks[place]))
        if factor.denominator != 1 or abs(int(factor)) * int(ranks[-1]) >= _EXACT:
            continue
        level = values - int(factor) * ranks
        breaks = np.flatnonzero(np.diff(level)) + 1
        if breaks.size != 1 or ranks[breaks[0]] != ranks[breaks[0] - 1] + 1:
            continue
        wrap = int(ranks[breaks[0]])
        if level[-1] - level[0] == -int(factor) * column.process_count:
            return Fraction(wrap), factor, Fraction(int(level[0])) - factor * (column.process_count - wrap)
    return None


@dataclass(frozen=True, slots=True)
class GroupedModel:
    """Model of groups of ranks: `by_group * floor(rank / size) + by_member * (rank mod size) + start`."""

    size: CountModel
    by_group: CountModel
    by_member: CountModel
    start: CountModel

    rivals: tuple[GroupedModel, ...] = ()

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the model for ranks (R,); raise NotAnIntegerError if a value is invalid or ambiguous."""
        values = self._evaluate(process_count, ranks)
        for rival in self.rivals:
            if (rival._evaluate(process_count, ranks) != values).any():
                raise AmbiguousModelError(
                    f"ambiguous: {self.formula()} is as good as {rival.formula()} at all known rank counts"
                )
        return values

    def _evaluate(self, process_count: int, ranks: Ints) -> Ints:
        group, member = np.divmod(ranks, self._size_at(process_count))
        start = self.start.at(process_count)
        by_group = _evaluate_linear(self.by_group.at(process_count), group, start, self.formula())
        return by_group + _evaluate_linear(self.by_member.at(process_count), member, Fraction(0), self.formula())

    def _size_at(self, process_count: int) -> int:
        size = evaluate_integer(self.size, process_count, "the group's size")
        if size < 1:
            raise NotAnIntegerError(f"the group's size {self.size.formula()} is {size}")
        return size

    def linear_pieces(self, process_count: int, ranks: Progression) -> list[Progression] | None:
        """Split ranks into the first group, complete groups and the last group; None if the pieces are too many."""
        pieces = [ranks]
        for size in {model._size_at(process_count) for model in (self, *self.rivals)}:
            parts = [split_by_groups(piece, size) for piece in pieces]
            if None in parts:
                return None
            pieces = [piece for part in parts for piece in part or ()]
        return pieces

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""
        size = self.size.formula()
        size = size if size.isdigit() else f"({size})"
        terms = []
        for factor, name in ((self.by_group, f"floor(rank/{size})"), (self.by_member, f"(rank mod {size})")):
            if (text := factor.formula()) != "0":
                terms.append(name if text == "1" else f"{_parenthesize(text)}*{name}")
        if (text := self.start.formula()) != "0" or not terms:
            terms.append(text)
        return " + ".join(terms)


def fit_groups(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> GroupedModel | None:
    """Fit the model of groups, with a fixed group size or a fixed number of groups.

    If the class has few ranks per group, several group sizes may give the same numbers. Their models are rivals.
    """
    models = [
        model for sizes in _group_sizes(columns) if (model := _fit_group_sizes(columns, sizes, families)) is not None
    ]
    return replace(models[0], rivals=tuple(models[1:])) if models else None


def _fit_group_sizes(
    columns: Sequence[Column], sizes: tuple[int, ...], families: Sequence[CountFamily]
) -> GroupedModel | None:
    counts = [column.process_count for column in columns]
    parts = []
    for column, size in zip(columns, sizes, strict=True):
        part = _fit_group_column(column, size)
        if part is None:
            return None
        parts.append(part)
    observed = [
        [(count, value) for count, value in zip(counts, row, strict=True) if value is not None]
        for row in zip(*parts, strict=True)
    ]
    size_points = [(count, Fraction(size)) for count, size in zip(counts, sizes, strict=True)]
    size_model, *models = (fit_count_model(points, families) for points in (size_points, *observed))
    by_group, by_member, start = models
    if size_model is None or by_group is None or by_member is None or start is None:
        return None
    return GroupedModel(size_model, by_group, by_member, start)


def _group_sizes(columns: Sequence[Column]) -> Iterator[tuple[int, ...]]:
    """Yield sets of group sizes, one per rank count, that are consistent with the first step changes of columns."""
    counts = [column.process_count for column in columns]
    edges = [_find_step_changes(column) for column in columns]
    candidates = [(size,) * len(counts) for size in range(2, max(counts) // 2 + 1)]
    for groups in range(2, min(counts) + 1):
        if all(count % groups == 0 for count in counts):
            candidates.append(tuple(count // groups for count in counts))
    for sizes in candidates if any(edges) else ():
        if all(
            not pairs or any(before // size < after // size for before, after in pairs)
            for pairs, size in zip(edges, sizes, strict=True)
        ):
            yield sizes


def _find_step_changes(column: Column) -> tuple[tuple[int, int], ...]:
    """Find the first pair of adjacent ranks, and the first pair with a different step.

    One of the two pairs crosses a group boundary. The result is empty if all steps are equal.
    """
    distances = np.diff(column.ranks)
    if distances.size < 2:
        return ()
    steps = np.diff(column.values).astype(object)
    is_other = steps * int(distances[0]) != distances.astype(object) * steps[0]
    if not is_other.any():
        return ()
    place = int(np.argmax(is_other))
    ranks = column.ranks.tolist()
    return (ranks[0], ranks[1]), (ranks[place], ranks[place + 1])


def _fit_group_column(column: Column, size: int) -> tuple[Fraction | None, Fraction | None, Fraction] | None:
    """Find the steps of a column per group and per member (None if unobservable), and its start.

    Return None if the column is not linear in groups and members.
    """
    group, member = np.divmod(column.ranks, size)
    by_member = _find_step(member, column.values, group)
    group_part = column.values - _evaluate_member_part(by_member, member)
    if (group_part != group_part.astype(np.int64)).any():
        return None
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    by_group = _find_step(group[firsts], group_part[firsts], np.zeros(firsts.size, np.int64))
    start = Fraction(int(group_part[0])) - (by_group or 0) * int(group[0])
    try:
        evaluated = _evaluate_linear(by_group or Fraction(0), group, start, "") + _evaluate_linear(
            by_member or Fraction(0), member, Fraction(0), ""
        )
    except NotAnIntegerError:
        return None
    return (by_group, by_member, start) if (evaluated == column.values).all() else None


def _evaluate_member_part(by_member: Fraction | None, member: Ints) -> Ints:
    try:
        return _evaluate_linear(by_member or Fraction(0), member, Fraction(0), "")
    except NotAnIntegerError:
        return np.zeros(member.size, np.int64)


def _find_step(places: Ints, values: Ints, group: Ints) -> Fraction | None:
    """Compute the slope of the values over their places; None if no group has two different places.

    The slope is that between the first two adjacent rows of one group with different places.
    """
    pairs = np.flatnonzero((group[1:] == group[:-1]) & (places[1:] != places[:-1]))
    if not pairs.size:
        return None
    first = int(pairs[0])
    return Fraction(int(values[first + 1] - values[first]), int(places[first + 1] - places[first]))


@dataclass(frozen=True, slots=True)
class PerRank:
    """One model in n for each rank of a class whose size does not depend on n."""

    models: tuple[CountModel, ...]

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the models for ranks (R,); raise NotAnIntegerError if a value is invalid."""
        if ranks.size != len(self.models):
            raise NotAnIntegerError(
                f"{self.formula()} is known for a class of {len(self.models)} ranks, not of {ranks.size}"
            )
        return np.array([evaluate_integer(model, process_count, "") for model in self.models], np.int64)

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""
        formulas = ", ".join(model.formula() for model in self.models)
        return formulas if len(self.models) == 1 else f"by rank: {formulas}"


def fit_per_rank(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> PerRank | None:
    """Fit a model for each rank; None unless the class has the same number of ranks at all rank counts."""
    sizes = {column.ranks.size for column in columns}
    if len(sizes) > 1 or not sizes <= set(range(1, _MAX_SEPARATE_RANKS + 1)):
        return None
    models = [
        fit_count_model([(column.process_count, Fraction(int(column.values[place]))) for column in columns], families)
        for place in range(columns[0].ranks.size)
    ]
    return None if None in models else PerRank(tuple(model for model in models if model is not None))


#: kinds of models, in the order in which they are tried
RANK_FAMILIES: tuple[RankFamily, ...] = (fit_affine, fit_rotation, fit_groups, fit_per_rank)
