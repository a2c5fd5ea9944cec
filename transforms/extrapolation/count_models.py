"""Fit exact models of one number over the rank count n: constant, linear, or inverse.

The paper has four models (section 2, for data in section 3.2.3): constant, linear, inversely proportional, and
inversely proportional plus a constant. All arithmetic is rational. A model holds only if it gives every number exactly,
at more rank counts than it has parameters. Two different models of two parameters agree at no more than two rank
counts, so a third rank count distinguishes them. Models of one parameter are tried first.

Programs divide integers, and round. A number that is an integer at all known rank counts must therefore be an integer
at any other rank count. Often, rounded formulas (`RoundedFormula`) give the same known numbers as a model of two
parameters. Such a model holds only where all these formulas agree with it. For example, 1008/n - 1 and floor(1000/n)
agree at 8, 12, 16, 24 and 48 ranks, but not at 6. Rounded formulas are not fitted themselves, since the known numbers
do not determine k. They restrict it to an interval for floor(k/n), and to a residue class for k mod n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Protocol, runtime_checkable

#: maximum factor of the rounded part in a rounded formula, in multiples of the model's coefficient
_MAX_ROUNDED_FACTOR = 4
#: maximum distance of a neighbor rank; n minus a number up to this limit is a neighbor, not a remainder modulo n
_MAX_NEIGHBOR_DISTANCE = 4


@dataclass(frozen=True, slots=True)
class RoundedFormula:
    """Formulas `scale * floor(k/n) + rest` for all k from `low_k` to `high_k`.

    kind: floor, ceil, or mod. With ceil, the division is rounded up. With mod, the formula contains k mod n instead,
    and k is `low_k` plus any multiple of `high_k`.

    is_times_n: whether the rounded part is multiplied by n.
    """

    kind: str
    low_k: int
    high_k: int
    scale: int = 1
    rest: int = 0
    is_times_n: bool = False

    def find_disagreement(self, value: Fraction, process_count: int) -> str | None:
        """Find one of these formulas that differs from the given value at a rank count; return it as text."""
        if self.kind == "mod":
            differing = [k for k in (self.low_k, self.low_k + self.high_k) if self._at(k, process_count) != value]
            return f"{self._text(differing[0])}, {self._at(differing[0], process_count)}" if differing else None
        low, high = self.low_k, self.high_k
        if self._at(low, process_count) == self._at(high, process_count) == value:
            return None
        if self._at(low, process_count) == value:
            low = self._find_change(value, process_count)
        elif self._at(high, process_count) == value:
            high = self._find_change(value, process_count) - 1
        # the k with the most trailing zeros is the most likely to occur in a program
        k = find_roundest(low, high)
        if self._at(k, process_count) == value:
            k = low if self._at(low, process_count) != value else high
        return f"{self._text(k)}, {self._at(k, process_count)}"

    def _find_change(self, value: Fraction, process_count: int) -> int:
        """Find the first k at which the formula starts or ceases to give the value, by bisection."""
        low, high = self.low_k, self.high_k
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


def find_roundest(low: int, high: int) -> int:
    """Find the number from low to high with the most trailing zeros."""
    power = 1
    while high // (10 * power) * 10 * power >= low and 10 * power <= max(abs(low), abs(high)):
        power *= 10
    return high // power * power


def find_rivals(
    points: Sequence[tuple[int, int]], *, by_inverse: bool, first: Fraction, rest: Fraction
) -> tuple[RoundedFormula, ...]:
    """Find the rounded formulas that give the same points as a model of two parameters.

    Parameters
    ----------
    points
        Rank counts, and an integer at each.
    by_inverse
        Whether the model is `first / n + rest`; otherwise, it is `first * n + rest`.
    first, rest
        Parameters of the model.

    Returns
    -------
    tuple[RoundedFormula, ...]
        Distinct formulas.
    """
    rivals: list[RoundedFormula | None] = []
    unit = rest if by_inverse else first
    for factor in range(1, _MAX_ROUNDED_FACTOR + 1):
        scale = abs(unit) * factor
        if scale.denominator == 1:
            rivals += [_find_formulas(points, kind, int(scale), 0, not by_inverse) for kind in ("floor", "ceil")]
    if by_inverse and rest.denominator == 1:
        rivals += [
            _find_formulas(points, kind, 1, int(rest) + step, False) for kind, step in (("floor", 1), ("ceil", -1))
        ]
    if not by_inverse:
        rivals.append(_find_remainder(points, first, rest))
    return tuple(rival for rival in dict.fromkeys(rivals) if rival is not None)


def _find_formulas(
    points: Sequence[tuple[int, int]], kind: str, scale: int, rest: int, is_times_n: bool
) -> RoundedFormula | None:
    """Find the formulas of one kind and scale that give all points; None if no k does."""
    low_k, high_k = None, None
    for count, value in points:
        unit = scale * count if is_times_n else scale
        part, remainder = divmod(value - rest, unit)
        if remainder:
            return None
        low, high = (
            (part * count, part * count + count - 1) if kind == "floor" else ((part - 1) * count + 1, part * count)
        )
        low_k = low if low_k is None else max(low_k, low)
        high_k = high if high_k is None else min(high_k, high)
    if low_k is None or high_k is None or low_k > high_k:
        return None
    return RoundedFormula(kind, low_k, high_k, scale, rest, is_times_n)


def _find_remainder(points: Sequence[tuple[int, int]], slope: Fraction, rest: Fraction) -> RoundedFormula | None:
    """Find formulas with k mod n that equal slope * (n - distance), unless the distance is that of a neighbor."""
    if slope <= 0 or slope.denominator != 1 or rest >= 0:
        return None
    counts = [count for count, _ in points]
    distance = -rest / slope
    if distance.denominator != 1 or not _MAX_NEIGHBOR_DISTANCE < distance <= min(counts):
        return None
    multiple = lcm(*counts)
    return RoundedFormula("mod", multiple - int(distance), multiple, int(slope))


#: rank count, and number at this rank count
Point = tuple[int, Fraction]


class CountModel(Protocol):
    """Model of a number over the rank count."""

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count."""

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""


class Rival(Protocol):
    """Rounded formula that gives the same known numbers as a model; `rest` is a constant that it adds."""

    @property
    def rest(self) -> int:
        """Return the constant that the formula adds."""

    def find_disagreement(self, value: Fraction, process_count: int) -> str | None:
        """Find a formula that differs from the given value at a rank count; return it as text."""


@runtime_checkable
class ModelWithRivals(CountModel, Protocol):
    """Model that rounded formulas may equal at all known rank counts."""

    def find_rivals(self, points: Sequence[tuple[int, int]]) -> tuple[Rival, ...]:
        """Find the rounded formulas that give the same points."""


@dataclass(frozen=True, slots=True)
class CountFamily:
    """Kind of model: its name, its number of parameters, and a function that fits it.

    `fit` receives as many points as the model has parameters, at different rank counts. It returns None if no model
    passes through the points. A family with `is_fallback` is tried only if no other family before it fits, even
    ambiguously.
    """

    name: str
    parameter_count: int
    fit: Callable[[Sequence[Point]], CountModel | None]
    is_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """Constant model: the same number at all rank counts."""

    value: Fraction

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count."""
        return self.value

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear model `slope * n + rest`."""

    slope: Fraction
    rest: Fraction

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count."""
        return self.slope * process_count + self.rest

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        return _format_sum(format_product(self.slope, "n"), self.rest)

    def find_rivals(self, points: Sequence[tuple[int, int]]) -> tuple[RoundedFormula, ...]:
        """Find the rounded formulas that give the same points."""
        has_both = bool(self.slope and self.rest)
        return find_rivals(points, by_inverse=False, first=self.slope, rest=self.rest) if has_both else ()


@dataclass(frozen=True, slots=True)
class Inverse:
    """Inverse model `share / n + rest`."""

    share: Fraction
    rest: Fraction

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count."""
        return self.share / process_count + self.rest

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        return _format_sum(f"{_format_factor(self.share)}/n", self.rest)

    def find_rivals(self, points: Sequence[tuple[int, int]]) -> tuple[RoundedFormula, ...]:
        """Find the rounded formulas that give the same points."""
        has_both = bool(self.share and self.rest)
        return find_rivals(points, by_inverse=True, first=self.share, rest=self.rest) if has_both else ()


def fit_constant(points: Sequence[Point]) -> CountModel:
    """Return the constant through a point."""
    return Constant(points[0][1])


def fit_proportional(points: Sequence[Point]) -> CountModel:
    """Return the multiple of n through a point."""
    return Linear(points[0][1] / points[0][0], Fraction(0))


def fit_inverse(points: Sequence[Point]) -> CountModel:
    """Return the multiple of 1/n through a point."""
    return Inverse(points[0][1] * points[0][0], Fraction(0))


def fit_linear(points: Sequence[Point]) -> CountModel:
    """Return the line through two points."""
    (count, value), (other_count, other_value) = points
    slope = (value - other_value) / (count - other_count)
    return Linear(slope, value - slope * count)


def fit_inverse_plus(points: Sequence[Point]) -> CountModel:
    """Return the multiple of 1/n plus a constant through two points."""
    (count, value), (other_count, other_value) = points
    share = (value - other_value) / (Fraction(1, count) - Fraction(1, other_count))
    return Inverse(share, value - share / count)


#: kinds of models, in the order in which they are tried
FAMILIES = (
    CountFamily("constant", 1, fit_constant),
    CountFamily("proportional", 1, fit_proportional),
    CountFamily("inverse", 1, fit_inverse),
    CountFamily("linear", 2, fit_linear),
    CountFamily("inverse plus constant", 2, fit_inverse_plus),
)


class NotAnIntegerError(Exception):
    """A model's value is not an integer; the message contains the value, and the cause if known."""


class AmbiguousModelError(NotAnIntegerError):
    """Several formulas agree at all known rank counts, but not at the requested rank count."""


@dataclass(frozen=True, slots=True)
class FittedModel:
    """Model that gives all known numbers, and its rivals: the rounded formulas that also give all known numbers.

    is_whole: whether all known numbers are integers.
    """

    model: CountModel
    rank_counts: tuple[int, ...]
    is_whole: bool = True
    rivals: tuple[Rival, ...] = ()

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model; raise NotAnIntegerError if the value is invalid or ambiguous."""
        value = Fraction(self.model.at(process_count))
        is_invalid = self.is_whole and value.denominator != 1
        # A fraction is a sufficient reason for refusal, unless a rival without rest gives an integer.
        for rival in self.rivals if not is_invalid else [rival for rival in self.rivals if not rival.rest]:
            text = rival.find_disagreement(value, process_count)
            if text is not None:
                counts_text = ", ".join(map(str, dict.fromkeys(self.rank_counts)))
                formula, rival_formula = self.formula(), f"{text} at {process_count}"
                raise AmbiguousModelError(
                    f"ambiguous: {formula} is as good as {rival_formula}; both give the same at {counts_text} ranks"
                )
        if is_invalid:
            raise NotAnIntegerError(_describe_fraction(self.model, value, process_count))
        return value

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        return self.model.formula()


def fit_count_model(
    points: Sequence[Point], families: Sequence[CountFamily] = FAMILIES, *, has_rivals: bool = True
) -> FittedModel | None:
    """Fit the first kind of model that gives all points exactly.

    Parameters
    ----------
    points
        Rank counts, and a number at each.
    families
        Kinds of models, in order of preference.
    has_rivals
        Whether rounded formulas are considered as rivals.

    Returns
    -------
    FittedModel or None
        None if no model with fewer parameters than rank counts fits. Models without rivals are preferred, so that a
        family that a user adds can resolve an ambiguity.
    """
    distinct = tuple(dict(points).items())
    ambiguous: FittedModel | None = None
    for family in families:
        if family.parameter_count >= len(distinct) or (family.is_fallback and ambiguous):
            continue
        # the outermost points determine the parameters; the other points validate the model
        selected = [distinct[0], distinct[-1], *distinct[1:-1]][: family.parameter_count]
        model = family.fit(selected)
        if model is None or not _gives(model, points):
            continue
        candidate = _with_rivals(model, distinct, has_rivals)
        if not candidate.rivals:
            return candidate
        ambiguous = ambiguous or candidate
    return ambiguous


def _gives(model: CountModel, points: Sequence[Point]) -> bool:
    """Return whether a model gives all points exactly."""
    try:
        return all(model.at(count) == value for count, value in points)
    except NotAnIntegerError:
        return False


def _with_rivals(model: CountModel, points: Sequence[Point], has_rivals: bool) -> FittedModel:
    counts = tuple(count for count, _ in points)
    is_whole = all(value.denominator == 1 for _, value in points)
    rivals: tuple[Rival, ...] = ()
    if has_rivals and is_whole and isinstance(model, ModelWithRivals):
        rivals = model.find_rivals([(count, int(value)) for count, value in points])
    return FittedModel(model, counts, is_whole, rivals)


def evaluate_integer(model: CountModel, process_count: int, name: str) -> int:
    """Evaluate a model that must give an integer.

    Parameters
    ----------
    model
        Model over n.
    process_count
        Rank count.
    name
        Name of the quantity, for messages.

    Returns
    -------
    int
        Value of the model.

    Raises
    ------
    NotAnIntegerError
        If the value is not an integer, or ambiguous.
    """
    try:
        value = Fraction(model.at(process_count))
        if value.denominator == 1:
            return int(value)
    except AmbiguousModelError:
        raise
    except NotAnIntegerError as fault:
        raise NotAnIntegerError(f"{name} {fault}".lstrip()) from None
    raise NotAnIntegerError(f"{name} {_describe_fraction(model, value, process_count)}".lstrip())


def _describe_fraction(model: CountModel, value: Fraction, process_count: int) -> str:
    inner = model.model if isinstance(model, FittedModel) else model
    reason = f"{model.formula()} is {value}, not an integer"
    if isinstance(inner, Inverse) and inner.share.denominator == inner.rest.denominator == 1:
        reason += f": {process_count} does not divide {inner.share}"
    return reason


def _format_factor(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value})"


def format_product(value: Fraction, name: str) -> str:
    """Format a product of a fraction and a name: `n`, `-n`, `3*n`, `n/4`, `3*n/4`."""
    sign = "-" if value < 0 else ""
    product = f"{sign}{name}" if abs(value.numerator) == 1 else f"{value.numerator}*{name}"
    return product if value.denominator == 1 else f"{product}/{value.denominator}"


def _format_sum(product: str, rest: Fraction) -> str:
    if not rest:
        return product
    return f"{product} {'-' if rest < 0 else '+'} {abs(rest)}"
