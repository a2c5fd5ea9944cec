"""Exact models of a number over ranks and rank counts: the column dimension of the paper's section 3.2.3.

Each coefficient is a model in n of its own (`count_models`), so that `(960/n)*rank` is a slope of 960/n. Beside the
affine one there is the paper's fifth, `((rank + a) mod n) * b`, and one for groups of ranks, as file_<rank/4> has
(section 3.2.2). A column that none of them gives exactly at all rank counts has no model.
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
    Ambiguous,
    Constant,
    CountFamily,
    CountModel,
    Fitted,
    NotWhole,
    fitted,
    times,
    whole_at,
)
from iosig.transforms.extrapolation.rank_pieces import in_groups, split_at
from iosig.transforms.traces.progressions import Progression

#: products below this are exact in 64 bits
_EXACT = 1 << 62
#: of a class of so many ranks at each rank count, each rank may follow a rule of its own
_MOST_SINGLE = 64


@dataclass(frozen=True, slots=True)
class Column:
    """A number of each rank of a class at one rank count: ranks, rising, and values, both int64[R]."""

    process_count: int
    ranks: Ints
    values: Ints


class RankModel(Protocol):
    """What gives a number for any ranks at any rank count."""

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""


@runtime_checkable
class PiecedModel(RankModel, Protocol):
    """A model that knows on which ranks its numbers grow evenly, so that these are not looked at one by one.

    Those of a user need not: they are asked for the number of each rank.
    """

    def pieces_at(self, process_count: int, ranks: Progression) -> list[Progression] | None:
        """Return ranks as pieces along whose dimensions the numbers grow evenly; None where there are too many."""


#: a kind of model: it returns None where no model of its kind gives all columns, at rank counts that differ
RankFamily = Callable[[Sequence[Column], Sequence[CountFamily]], RankModel | None]


def _scaled(slope: Fraction, ranks: Ints, rest: Fraction, what: str) -> Ints:
    """Return `slope * ranks + rest`, exactly."""
    scale = lcm(slope.denominator, rest.denominator)
    factor, term = int(slope * scale), int(rest * scale)
    largest = int(np.abs(ranks).max(initial=0))
    exact = ranks if abs(factor) * largest + abs(term) < _EXACT else ranks.astype(object)
    scaled = exact * factor + term
    found = scaled // scale
    is_off = found * scale != scaled
    if is_off.any():
        place = int(np.argmax(is_off))
        raise NotWhole(f"{what} is {slope * int(ranks[place]) + rest} at rank {ranks[place]}, no whole number")
    if scaled.dtype == object and any(abs(value) >= _EXACT for value in (found.min(), found.max())):
        raise NotWhole(f"{what} is beyond 64 bits")
    return found.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Affine:
    """`slope * rank + start`."""

    start: CountModel
    slope: CountModel

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        return _scaled(self.slope.at(process_count), ranks, self.start.at(process_count), self.formula())

    def pieces_at(self, process_count: int, ranks: Progression) -> list[Progression]:
        """Return ranks as pieces along which the numbers grow evenly: all of them do."""
        return [ranks]

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        slope, start = self.slope.formula(), self.start.formula()
        if slope == "0":
            return start
        product = times(self.slope.at(1), "rank") if _is_constant(self.slope) else f"{_closed(slope)}*rank"
        return product if start == "0" else f"{product} + {start}"


def _is_constant(model: CountModel) -> bool:
    return isinstance(model.model if isinstance(model, Fitted) else model, Constant)


def _closed(text: str) -> str:
    return f"({text})" if " " in text else text


def affine(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Affine | None:
    """Return the affine model of columns; of one rank a column leaves the slope free, and so do not all of them."""
    slopes: list[tuple[int, Fraction]] = []
    for column in columns:
        if column.ranks.size > 1:
            found = _slope(column)
            if found is None:
                return None
            slopes.append((column.process_count, found))
    slope = fitted(slopes, families)
    if slope is None:
        return None
    starts = [
        (
            column.process_count,
            Fraction(int(column.values[0])) - slope.at(column.process_count) * int(column.ranks[0]),
        )
        for column in columns
    ]
    start = fitted(starts, families)
    return None if start is None else Affine(start, slope)


def _slope(column: Column) -> Fraction | None:
    """Return by how much a column grows with each rank; None where it does not evenly."""
    slope = Fraction(int(column.values[1]) - int(column.values[0]), int(column.ranks[1]) - int(column.ranks[0]))
    rest = int(column.values[0]) - slope * int(column.ranks[0])
    return slope if _gives(slope, rest, column.ranks, column.values) else None


def _gives(slope: Fraction, rest: Fraction, ranks: Ints, values: Ints) -> bool:
    try:
        return bool((_scaled(slope, ranks, rest, "") == values).all())
    except NotWhole:
        return False


@dataclass(frozen=True, slots=True)
class Shifted:
    """`((rank + a) mod n) * factor + rest`, the paper's fifth model; it begins anew at the rank `wrap`, n - a."""

    wrap: CountModel
    factor: CountModel
    rest: CountModel

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        wrap = whole_at(self.wrap, process_count, "the rank")
        turned = (ranks - wrap) % process_count
        return _scaled(self.factor.at(process_count), turned, self.rest.at(process_count), self.formula())

    def pieces_at(self, process_count: int, ranks: Progression) -> list[Progression]:
        """Return ranks as pieces along which the numbers grow evenly: those before the turn, and those behind it."""
        return split_at(ranks, whole_at(self.wrap, process_count, "the rank") % process_count)

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        wrap = self.wrap.model if isinstance(self.wrap, Fitted) else self.wrap
        shift = fitted([(count, count - wrap.at(count)) for count in (1, 2, 3)])
        turned = f"((rank + {shift.formula() if shift else f'n - ({wrap.formula()})'}) mod n)"
        factor, rest = self.factor.formula(), self.rest.formula()
        product = turned if factor == "1" else f"{turned}*{_closed(factor)}"
        return product if rest == "0" else f"{product} + {rest}"


def shifted(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Shifted | None:
    """Return the model of columns that are turned by some ranks; the class has all ranks around the turn."""
    turns = [_turn(column) for column in columns]
    parts = zip(*(turn for turn in turns if turn is not None), strict=True)
    if None in turns:
        return None
    counts = [column.process_count for column in columns]
    # A turn so many ranks before the last one is the paper's model itself, and no remainder.
    models = [
        fitted(list(zip(counts, part, strict=True)), families, has_rivals=place > 0) for place, part in enumerate(parts)
    ]
    return None if None in models else Shifted(*(model for model in models if model is not None))


def _turn(column: Column) -> tuple[Fraction, Fraction, Fraction] | None:
    """Return wrap, factor and rest of a turned column; None for any other."""
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
class Grouped:
    """`by_group * floor(rank / size) + by_member * (rank mod size) + start`, for groups of so many ranks."""

    size: CountModel
    by_group: CountModel
    by_member: CountModel
    start: CountModel

    rivals: tuple[Grouped, ...] = ()

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none, or not the only one."""
        found = self._own_values(process_count, ranks)
        for rival in self.rivals:
            if (rival._own_values(process_count, ranks) != found).any():
                raise Ambiguous(f"ambiguous: {self.formula()} is as good as {rival.formula()} at all known rank counts")
        return found

    def _own_values(self, process_count: int, ranks: Ints) -> Ints:
        group, member = np.divmod(ranks, self._size_at(process_count))
        start = self.start.at(process_count)
        by_group = _scaled(self.by_group.at(process_count), group, start, self.formula())
        return by_group + _scaled(self.by_member.at(process_count), member, Fraction(0), self.formula())

    def _size_at(self, process_count: int) -> int:
        size = whole_at(self.size, process_count, "the group's size")
        if size < 1:
            raise NotWhole(f"the group's size {self.size.formula()} is {size}")
        return size

    def pieces_at(self, process_count: int, ranks: Progression) -> list[Progression] | None:
        """Return ranks as pieces along which the numbers grow evenly: in the first group, whole groups, the last."""
        found = [ranks]
        for size in {model._size_at(process_count) for model in (self, *self.rivals)}:
            parts = [in_groups(part, size) for part in found]
            if None in parts:
                return None
            found = [piece for part in parts for piece in part or ()]
        return found

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        size = self.size.formula()
        size = size if size.isdigit() else f"({size})"
        terms = []
        for factor, name in ((self.by_group, f"floor(rank/{size})"), (self.by_member, f"(rank mod {size})")):
            if (text := factor.formula()) != "0":
                terms.append(name if text == "1" else f"{_closed(text)}*{name}")
        if (text := self.start.formula()) != "0" or not terms:
            terms.append(text)
        return " + ".join(terms)


def grouped(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Grouped | None:
    """Return the model of columns that follow groups of ranks, of a fixed size or as many groups at any count.

    Where few ranks of each group are in the class, several sizes may give the same numbers: these are rivals.
    """
    found = [model for sizes in _group_sizes(columns) if (model := _grouped(columns, sizes, families)) is not None]
    return replace(found[0], rivals=tuple(found[1:])) if found else None


def _grouped(columns: Sequence[Column], sizes: tuple[int, ...], families: Sequence[CountFamily]) -> Grouped | None:
    counts = [column.process_count for column in columns]
    parts = []
    for column, size in zip(columns, sizes, strict=True):
        part = _group(column, size)
        if part is None:
            return None
        parts.append(part)
    known = [
        [(count, value) for count, value in zip(counts, row, strict=True) if value is not None]
        for row in zip(*parts, strict=True)
    ]
    whole = [(count, Fraction(size)) for count, size in zip(counts, sizes, strict=True)]
    size_model, *models = (fitted(points, families) for points in (whole, *known))
    by_group, by_member, start = models
    if size_model is None or by_group is None or by_member is None or start is None:
        return None
    return Grouped(size_model, by_group, by_member, start)


def _group_sizes(columns: Sequence[Column]) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of groups at each rank count that may be behind where columns first grow by another step."""
    counts = [column.process_count for column in columns]
    edges = [_edges(column) for column in columns]
    tried = [(size,) * len(counts) for size in range(2, max(counts) // 2 + 1)]
    for groups in range(2, min(counts) + 1):
        if all(count % groups == 0 for count in counts):
            tried.append(tuple(count // groups for count in counts))
    for sizes in tried if any(edges) else ():
        if all(
            not own or any(before // size < after // size for before, after in own)
            for own, size in zip(edges, sizes, strict=True)
        ):
            yield sizes


def _edges(column: Column) -> tuple[tuple[int, int], ...]:
    """Return the two pairs of neighbours between which values first do not grow alike: one crosses into a group."""
    apart = np.diff(column.ranks)
    if apart.size < 2:
        return ()
    steps = np.diff(column.values).astype(object)
    is_other = steps * int(apart[0]) != apart.astype(object) * steps[0]
    if not is_other.any():
        return ()
    place = int(np.argmax(is_other))
    ranks = column.ranks.tolist()
    return (ranks[0], ranks[1]), (ranks[place], ranks[place + 1])


def _group(column: Column, size: int) -> tuple[Fraction | None, Fraction | None, Fraction] | None:
    """Return by how much a column grows with each group and with each member, NULL if unseen, and its start."""
    group, member = np.divmod(column.ranks, size)
    by_member = _step(member, column.values, group)
    rest = column.values - _scaled_or_none(by_member, member)
    if (rest != rest.astype(np.int64)).any():
        return None
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    by_group = _step(group[firsts], rest[firsts], np.zeros(firsts.size, np.int64))
    start = Fraction(int(rest[0])) - (by_group or 0) * int(group[0])
    try:
        given = _scaled(by_group or Fraction(0), group, start, "") + _scaled(
            by_member or Fraction(0), member, Fraction(0), ""
        )
    except NotWhole:
        return None
    return (by_group, by_member, start) if (given == column.values).all() else None


def _scaled_or_none(by_member: Fraction | None, member: Ints) -> Ints:
    try:
        return _scaled(by_member or Fraction(0), member, Fraction(0), "")
    except NotWhole:
        return np.zeros(member.size, np.int64)


def _step(places: Ints, values: Ints, within: Ints) -> Fraction | None:
    """Return by how much values grow with each place, from the first two neighbours within one group."""
    pairs = np.flatnonzero((within[1:] == within[:-1]) & (places[1:] != places[:-1]))
    if not pairs.size:
        return None
    first = int(pairs[0])
    return Fraction(int(values[first + 1] - values[first]), int(places[first + 1] - places[first]))


@dataclass(frozen=True, slots=True)
class Single:
    """A model in n for each rank of a class that has the same few ranks, or as many, at all rank counts."""

    models: tuple[CountModel, ...]

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        if ranks.size != len(self.models):
            raise NotWhole(f"{self.formula()} is known of a class of {len(self.models)} ranks, not of {ranks.size}")
        return np.array([whole_at(model, process_count, "") for model in self.models], np.int64)

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        shown = ", ".join(model.formula() for model in self.models)
        return shown if len(self.models) == 1 else f"by rank: {shown}"


def single(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Single | None:
    """Return a model for each rank, where the class has equally many at all rank counts."""
    sizes = {column.ranks.size for column in columns}
    if len(sizes) > 1 or not sizes <= set(range(1, _MOST_SINGLE + 1)):
        return None
    models = [
        fitted([(column.process_count, Fraction(int(column.values[place]))) for column in columns], families)
        for place in range(columns[0].ranks.size)
    ]
    return None if None in models else Single(tuple(model for model in models if model is not None))


#: in the order in which they are tried
RANK_FAMILIES: tuple[RankFamily, ...] = (affine, shifted, grouped, single)
