"""Exact models of a number over ranks and rank counts: the column dimension of the paper's section 3.2.3.

Each coefficient is a model in n of its own (`count_models`), so that `(960/n)*rank` is a slope of 960/n. Beside the
affine one there is the paper's fifth, `((rank + a) mod n) * b`, and one for groups of ranks, as file_<rank/4> has
(section 3.2.2). A column that none of them gives exactly at all rank counts has no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Protocol

import numpy as np
import numpy.typing as npt

from transforms.count_models import FAMILIES, Constant, CountFamily, CountModel, NotWhole, fitted, times, whole_at

Longs = npt.NDArray[np.int64]

#: products below this are exact in 64 bits
_EXACT = 1 << 62
#: of a class of so many ranks at each rank count, each rank may follow a rule of its own
_MOST_SINGLE = 64


@dataclass(frozen=True, slots=True)
class Column:
    """A number of each rank of a class at one rank count: ranks, rising, and values, both int64[R]."""

    process_count: int
    ranks: Longs
    values: Longs


class RankModel(Protocol):
    """What gives a number for any ranks at any rank count."""

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""


#: a kind of model: it returns None where no model of its kind gives all columns, at rank counts that differ
RankFamily = Callable[[Sequence[Column], Sequence[CountFamily]], RankModel | None]


def _scaled(slope: Fraction, ranks: Longs, rest: Fraction, what: str) -> Longs:
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

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        return _scaled(self.slope.at(process_count), ranks, self.start.at(process_count), self.formula())

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        slope, start = self.slope.formula(), self.start.formula()
        if slope == "0":
            return start
        product = times(Fraction(slope), "rank") if isinstance(self.slope, Constant) else f"{_closed(slope)}*rank"
        return product if start == "0" else f"{product} + {start}"


def _closed(text: str) -> str:
    return f"({text})" if " " in text else text


def affine(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Affine | None:
    """Return the affine model of columns; classes of one rank leave the slope free, and it is 0 if all are."""
    slopes: list[tuple[int, Fraction]] = []
    for column in columns:
        if column.ranks.size > 1:
            found = _slope(column)
            if found is None:
                return None
            slopes.append((column.process_count, found))
    slope = fitted(slopes, families) if slopes else Constant(Fraction(0))
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


def _gives(slope: Fraction, rest: Fraction, ranks: Longs, values: Longs) -> bool:
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

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        wrap = whole_at(self.wrap, process_count, "the rank")
        turned = (ranks - wrap) % process_count
        return _scaled(self.factor.at(process_count), turned, self.rest.at(process_count), self.formula())

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        ahead = {count: count - self.wrap.at(count) for count in (1, 2, 3)}
        shift = fitted(list(ahead.items()))
        turned = f"((rank + {shift.formula() if shift else f'n - ({self.wrap.formula()})'}) mod n)"
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
    models = [fitted(list(zip(counts, part, strict=True)), families) for part in parts]
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

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        size = whole_at(self.size, process_count, "the group's size")
        group, member = np.divmod(ranks, size)
        start = self.start.at(process_count)
        by_group = _scaled(self.by_group.at(process_count), group, start, self.formula())
        return by_group + _scaled(self.by_member.at(process_count), member, Fraction(0), self.formula())

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        size = _closed(self.size.formula())
        terms = []
        for factor, name in ((self.by_group, f"floor(rank/{size})"), (self.by_member, f"(rank mod {size})")):
            if (text := factor.formula()) != "0":
                terms.append(name if text == "1" else f"{_closed(text)}*{name}")
        if (text := self.start.formula()) != "0" or not terms:
            terms.append(text)
        return " + ".join(terms)


def grouped(columns: Sequence[Column], families: Sequence[CountFamily] = FAMILIES) -> Grouped | None:
    """Return the model of columns that follow groups of ranks, of a fixed size or as many groups at any count."""
    for sizes in _group_sizes([column.process_count for column in columns]):
        parts = [_group(column, size) for column, size in zip(columns, sizes, strict=True)]
        if any(part is None for part in parts):
            continue
        counts = [column.process_count for column in columns]
        rows = zip(*(part for part in parts if part is not None), strict=True)
        known = [
            [(count, value) for count, value in zip(counts, row, strict=True) if value is not None] for row in rows
        ]
        models = [
            fitted([(count, Fraction(size)) for count, size in zip(counts, sizes, strict=True)], families),
            *(fitted(points, families) for points in known),
        ]
        if all(model is not None for model in models):
            return Grouped(*(model for model in models if model is not None))
    return None


def _group_sizes(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(2, max(counts) // 2 + 1):
        yield (size,) * len(counts)
    for groups in range(2, min(counts) // 2 + 1):
        if all(count % groups == 0 for count in counts):
            yield tuple(count // groups for count in counts)


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


def _scaled_or_none(by_member: Fraction | None, member: Longs) -> Longs:
    try:
        return _scaled(by_member or Fraction(0), member, Fraction(0), "")
    except NotWhole:
        return np.zeros(member.size, np.int64)


def _step(places: Longs, values: Longs, within: Longs) -> Fraction | None:
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

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        """Return the numbers of these ranks, int64[R]; raise NotWhole where one is none."""
        if ranks.size != len(self.models):
            raise NotWhole(f"{self.formula()} is known for {len(self.models)} ranks, not for {ranks.size}")
        return np.array([whole_at(model, process_count, "") for model in self.models], np.int64)

    def formula(self) -> str:
        """Return the model as text, in `n` and `rank`."""
        return "by rank: " + ", ".join(model.formula() for model in self.models)


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
