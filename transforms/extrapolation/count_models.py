"""Exact models of one number over the rank count n: what stays, grows with n, or is shared out among n.

The paper's four (section 2, for data in section 3.2.3): constant, linear, inverse proportional, inverse proportional
plus a constant. All arithmetic is rational; a model holds only if it gives every number exactly, and must have had
more numbers to give than it has parameters: two models of two parameters agree at no more than two rank counts, so
that a third tells them apart. Models of one parameter come first.

Programs divide whole numbers, and round. So a number that was whole at all rank counts must be so at any other, and a
model of two parameters holds only where the rounded formulas of one that give the same numbers (`rounded_models`)
agree with it: 1008/n - 1 and floor(1000/n) are the same at 8, 12, 16 and 24 ranks, and at 48, but not at 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from transforms.extrapolation.rounded_models import Rounded, rounded_like

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
