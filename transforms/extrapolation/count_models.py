"""Exact models of one number over the rank count n: what stays, grows with n, or is shared out among n.

The paper's four (section 2, for data in section 3.2.3): constant, linear, inverse proportional, inverse proportional
plus a constant. All arithmetic is rational; a model holds only if it gives every number exactly, and must have had
more numbers to give than it has parameters: two models of two parameters agree at no more than two rank counts, so
that a third tells them apart. Models of one parameter come first.

Programs divide whole numbers, and round. So a number that was whole at all rank counts must be so at any other, and a
model of two parameters holds only where the rounded formulas of one that give the same numbers (`Rounded`)
agree with it: 1008/n - 1 and floor(1000/n) are the same at 8, 12, 16 and 24 ranks, and at 48, but not at 6. None of
these is fitted itself: all k of floor(k/n), or k mod n, that give the known numbers are an interval, or one class of
remainders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Protocol

#: a rounded part comes so often at most in a number that a model has the rest of it for
_MOST_TIMES = 4
#: neighbours are not farther away: so many ranks less than n are no remainder of something divided by n
_FARTHEST_NEIGHBOUR = 4


@dataclass(frozen=True, slots=True)
class Rounded:
    """`scale * floor(k/n) + rest` for any k from `least` to `most`; with ceil, times n, or the remainder instead.

    kind: floor, ceil, or mod, for which the one k is `least`, and any `most` more is another.
    """

    kind: str
    least: int
    most: int
    scale: int = 1
    rest: int = 0
    is_times_n: bool = False

    def unless(self, value: Fraction, process_count: int) -> str | None:
        """Return one of these formulas and what it gives at a rank count, if that is not this value; else None."""
        if self.kind == "mod":
            others = [k for k in (self.least, self.least + self.most) if self._at(k, process_count) != value]
            return f"{self._text(others[0])}, {self._at(others[0], process_count)}" if others else None
        low, high = self.least, self.most
        if self._at(low, process_count) == self._at(high, process_count) == value:
            return None
        if self._at(low, process_count) == value:
            low = self._edge(value, process_count)
        elif self._at(high, process_count) == value:
            high = self._edge(value, process_count) - 1
        # Of those that differ, one with the most zeros is the likeliest to be in a program.
        k = roundest(low, high)
        if self._at(k, process_count) == value:
            k = low if self._at(low, process_count) != value else high
        return f"{self._text(k)}, {self._at(k, process_count)}"

    def _edge(self, value: Fraction, process_count: int) -> int:
        """Return the first k from where on the number is, or is no more, what it is for the least one."""
        low, high = self.least, self.most
        first = self._at(low, process_count) == value
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if (self._at(middle, process_count) == value) == first else (low, middle)
        return high

    def _at(self, k: int, process_count: int) -> int:
        if self.kind == "mod":
            return self.scale * (k % process_count) + self.rest
        part = k // process_count if self.kind == "floor" else -(-k // process_count)
        return self.scale * part * (process_count if self.is_times_n else 1) + self.rest

    def _text(self, k: int) -> str:
        part = f"({k} mod n)" if self.kind == "mod" else f"{self.kind}({k}/n)"
        part = f"n*{part}" if self.is_times_n else part
        part = part if self.scale == 1 else f"{self.scale}*{part}"
        return part if not self.rest else f"{part} {'-' if self.rest < 0 else '+'} {abs(self.rest)}"


def roundest(low: int, high: int) -> int:
    """Return the number from low to high that ends with the most zeros."""
    power = 1
    while high // (10 * power) * 10 * power >= low and 10 * power <= max(abs(low), abs(high)):
        power *= 10
    return high // power * power


def rounded_like(
    points: Sequence[tuple[int, int]], *, by_inverse: bool, first: Fraction, rest: Fraction
) -> tuple[Rounded, ...]:
    """Return the rounded formulas that give all points, which a model of two parameters gives.

    points: numbers at rank counts. The model is `first / n + rest`, or `first * n + rest`.
    """
    found: list[Rounded | None] = []
    unit = rest if by_inverse else first
    for times in range(1, _MOST_TIMES + 1):
        scale = abs(unit) * times
        if scale.denominator == 1:
            found += [_within(points, kind, int(scale), 0, not by_inverse) for kind in ("floor", "ceil")]
    if by_inverse and rest.denominator == 1:
        found += [_within(points, kind, 1, int(rest) + step, False) for kind, step in (("floor", 1), ("ceil", -1))]
    if not by_inverse:
        found.append(_remainder(points, first, rest))
    return tuple(rival for rival in dict.fromkeys(found) if rival is not None)


def _within(points: Sequence[tuple[int, int]], kind: str, scale: int, rest: int, is_times_n: bool) -> Rounded | None:
    """Return the formulas of a kind and scale that give all points."""
    least, most = None, None
    for count, value in points:
        unit = scale * count if is_times_n else scale
        part, left = divmod(value - rest, unit)
        if left:
            return None
        low, high = (
            (part * count, part * count + count - 1) if kind == "floor" else ((part - 1) * count + 1, part * count)
        )
        least = low if least is None else max(least, low)
        most = high if most is None else min(most, high)
    if least is None or most is None or least > most:
        return None
    return Rounded(kind, least, most, scale, rest, is_times_n)


def _remainder(points: Sequence[tuple[int, int]], slope: Fraction, rest: Fraction) -> Rounded | None:
    """Return the remainders that are as many less than n as a linear model says, if these are no neighbours."""
    if slope <= 0 or slope.denominator != 1 or rest >= 0:
        return None
    counts = [count for count, _ in points]
    less = -rest / slope
    if less.denominator != 1 or not _FARTHEST_NEIGHBOUR < less <= min(counts):
        return None
    again = lcm(*counts)
    return Rounded("mod", again - int(less), again, int(slope))


#: a number at a rank count
Point = tuple[int, Fraction]


class CountModel(Protocol):
    """What gives a number at any rank count."""

    def at(self, process_count: int) -> Fraction:
        """Return the number at this rank count."""

    def formula(self) -> str:
        """Return the model as text, in `n`."""


@dataclass(frozen=True, slots=True)
class CountFamily:
    """A kind of model: its name, its parameters, and how it is fitted to as many points as it has parameters.

    `fit` gets points of different rank counts and returns None where no model goes through them.
    """

    name: str
    parameter_count: int
    fit: Callable[[Sequence[Point]], CountModel | None]


@dataclass(frozen=True, slots=True)
class Constant:
    """The same number at all rank counts."""

    value: Fraction

    def at(self, process_count: int) -> Fraction:
        """Return the number at this rank count."""
        return self.value

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Linear:
    """`slope * n + rest`."""

    slope: Fraction
    rest: Fraction

    def at(self, process_count: int) -> Fraction:
        """Return the number at this rank count."""
        return self.slope * process_count + self.rest

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        return _sum(times(self.slope, "n"), self.rest)


@dataclass(frozen=True, slots=True)
class Inverse:
    """`share / n + rest`."""

    share: Fraction
    rest: Fraction

    def at(self, process_count: int) -> Fraction:
        """Return the number at this rank count."""
        return self.share / process_count + self.rest

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        return _sum(f"{_factor(self.share)}/n", self.rest)


def _constant(points: Sequence[Point]) -> CountModel:
    return Constant(points[0][1])


def _proportional(points: Sequence[Point]) -> CountModel:
    return Linear(points[0][1] / points[0][0], Fraction(0))


def _inverse(points: Sequence[Point]) -> CountModel:
    return Inverse(points[0][1] * points[0][0], Fraction(0))


def _linear(points: Sequence[Point]) -> CountModel:
    (count, value), (other_count, other_value) = points
    slope = (value - other_value) / (count - other_count)
    return Linear(slope, value - slope * count)


def _inverse_plus(points: Sequence[Point]) -> CountModel:
    (count, value), (other_count, other_value) = points
    share = (value - other_value) / (Fraction(1, count) - Fraction(1, other_count))
    return Inverse(share, value - share / count)


#: in the order in which they are tried
FAMILIES = (
    CountFamily("constant", 1, _constant),
    CountFamily("proportional", 1, _proportional),
    CountFamily("inverse", 1, _inverse),
    CountFamily("linear", 2, _linear),
    CountFamily("inverse plus constant", 2, _inverse_plus),
)


class NotWhole(Exception):
    """A model gives no whole number; the message says which one, and why if that is plain."""


class Ambiguous(NotWhole):
    """Several formulas give the same numbers at all known rank counts, and others at this one."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model that gave all numbers that are known; where rounded formulas gave them as well, these are its rivals.

    `is_whole`: all of these were whole numbers.
    """

    model: CountModel
    rank_counts: tuple[int, ...]
    is_whole: bool = True
    rivals: tuple[Rounded, ...] = ()

    def at(self, process_count: int) -> Fraction:
        """Return the number at this rank count; raise NotWhole where it is none, or not the only one."""
        value = Fraction(self.model.at(process_count))
        is_off = self.is_whole and value.denominator != 1
        # That there is no whole number is reason enough, unless another formula of one parameter has one.
        for rival in self.rivals if not is_off else [rival for rival in self.rivals if not rival.rest]:
            text = rival.unless(value, process_count)
            if text is not None:
                known = ", ".join(map(str, dict.fromkeys(self.rank_counts)))
                ours, theirs = self.formula(), f"{text} at {process_count}"
                raise Ambiguous(f"ambiguous: {ours} is as good as {theirs}; both give the same at {known} ranks")
        if is_off:
            raise NotWhole(_fraction(self.model, value, process_count))
        return value

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        return self.model.formula()


def fitted(
    points: Sequence[Point], families: Sequence[CountFamily] = FAMILIES, *, has_rivals: bool = True
) -> Fitted | None:
    """Return the first model that gives all points exactly and has fewer parameters than there are rank counts.

    One that has rivals stands back for any behind it that has none: what a user adds is taken at its word.
    """
    apart = tuple(dict(points).items())
    doubtful: Fitted | None = None
    for family in families:
        if family.parameter_count >= len(apart):
            continue
        # The points farthest apart fix the parameters; all others are a check.
        chosen = [apart[0], apart[-1], *apart[1:-1]][: family.parameter_count]
        model = family.fit(chosen)
        if model is None or any(model.at(count) != value for count, value in points):
            continue
        found = _known(model, apart, has_rivals)
        if not found.rivals:
            return found
        doubtful = doubtful or found
    return doubtful


def _known(model: CountModel, points: Sequence[Point], has_rivals: bool) -> Fitted:
    counts = tuple(count for count, _ in points)
    is_whole = all(value.denominator == 1 for _, value in points)
    rivals: tuple[Rounded, ...] = ()
    if has_rivals and is_whole:
        whole = [(count, int(value)) for count, value in points]
        match model:
            case Inverse() if model.share and model.rest:
                rivals = rounded_like(whole, by_inverse=True, first=model.share, rest=model.rest)
            case Linear() if model.slope and model.rest:
                rivals = rounded_like(whole, by_inverse=False, first=model.slope, rest=model.rest)
    return Fitted(model, counts, is_whole, rivals)


def whole_at(model: CountModel, process_count: int, what: str) -> int:
    """Return the whole number that a model gives at a rank count; raise NotWhole where it is none."""
    try:
        value = Fraction(model.at(process_count))
        if value.denominator == 1:
            return int(value)
    except Ambiguous:
        raise
    except NotWhole as fault:
        raise NotWhole(f"{what} {fault}".lstrip()) from None
    raise NotWhole(f"{what} {_fraction(model, value, process_count)}".lstrip())


def _fraction(model: CountModel, value: Fraction, process_count: int) -> str:
    inner = model.model if isinstance(model, Fitted) else model
    reason = f"{model.formula()} is {value}, no whole number"
    if isinstance(inner, Inverse) and inner.share.denominator == inner.rest.denominator == 1:
        reason += f": {process_count} does not divide {inner.share}"
    return reason


def _factor(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value})"


def times(value: Fraction, name: str) -> str:
    """Return the text of a product: `n`, `-n`, `3*n`, `n/4`, `3*n/4`."""
    sign = "-" if value < 0 else ""
    product = f"{sign}{name}" if abs(value.numerator) == 1 else f"{value.numerator}*{name}"
    return product if value.denominator == 1 else f"{product}/{value.denominator}"


def _sum(product: str, rest: Fraction) -> str:
    if not rest:
        return product
    return f"{product} {'-' if rest < 0 else '+'} {abs(rest)}"
