"""What programs round: floor(k/n), ceil(k/n), their multiples of n, k mod n; and which of them give known numbers.

None of these is a model that is fitted: with one parameter k each, they are what a model of two parameters may be
mistaken for. All k that give the known numbers are an interval, or one class of remainders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

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
