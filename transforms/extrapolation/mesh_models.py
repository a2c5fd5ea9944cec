"""Fit exact models for square and cubic meshes: functions of the side sqrt(n) or cbrt(n), and of mesh coordinates.

The paper extrapolates "these ranklists for mesh/stencil patterns" with the method of ScalaExtrap, by "calculating the
dimension and corner node of the communication stencil" and Gaussian elimination (sections 2 and 3.2.1). A mesh of
n = k**d ranks has the side k. The coordinates of a rank are its digits in base k; a rank list starts at a corner node,
whose digits are constants or distances from k. Offsets are linear in the coordinates (section 3.2.3), and neighbors in
a periodic mesh are rotated coordinates, as in the paper's fifth model.

Like all models, these must be exact at more rank counts than they have parameters. Parameters are integers. The models
are refused at rank counts that are not squares or cubes, where a program chooses other sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.extrapolation.count_models import (
    Constant,
    CountFamily,
    CountModel,
    Inverse,
    Linear,
    ModelWithRivals,
    NotAnIntegerError,
    Point,
    Rival,
    evaluate_integer,
    fit_count_model,
    fit_inverse,
    fit_inverse_plus,
    fit_linear,
    fit_proportional,
)
from iosig.transforms.extrapolation.rank_models import Column

#: names of n's root, and of a number that has one, by dimension of the mesh
_ROOTS, _SHAPES = {2: "sqrt(n)", 3: "cbrt(n)"}, {2: "a square", 3: "a cube"}
_VARIABLE = re.compile(r"\bn\b")
#: distances by which a mesh may be rotated along a dimension
_SHIFTS = (0, 1, -1)
#: largest number that a float represents exactly, with a margin for the solution of equations
_MAX_SOLVED = 1 << 50


def find_side(process_count: int, degree: int) -> int:
    """Return the side of a mesh.

    Parameters
    ----------
    process_count
        Number of ranks.
    degree
        Dimension of the mesh, 2 or 3.

    Returns
    -------
    int
        Side; its power is the number of ranks.

    Raises
    ------
    NotAnIntegerError
        If no side has this power.
    """
    root: float = process_count ** (1 / degree)
    side = round(root)
    if side**degree != process_count:
        raise NotAnIntegerError(f"needs the side of a mesh, but {process_count} is not {_SHAPES[degree]}")
    return side


def _find_sides(process_counts: Sequence[int], degree: int) -> list[int] | None:
    try:
        return [find_side(count, degree) for count in process_counts]
    except NotAnIntegerError:
        return None


# ---- numbers over n


@dataclass(frozen=True, slots=True)
class RootModel:
    """Model over a power of the side of a mesh instead of n: `model` at `side ** power`."""

    degree: int
    power: int
    model: CountModel

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count; raise NotAnIntegerError if no mesh has as many ranks."""
        return self.model.at(find_side(process_count, self.degree) ** self.power)

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        return _name_size(self.model.formula(), self.degree, self.power)

    def find_rivals(self, points: Sequence[tuple[int, int]]) -> tuple[Rival, ...]:
        """Find the rounded formulas over the side that give the same points."""
        if not isinstance(self.model, ModelWithRivals):
            return ()
        sizes = [(find_side(count, self.degree) ** self.power, value) for count, value in points]
        return tuple(RootRival(self.degree, self.power, rival) for rival in self.model.find_rivals(sizes))


def _name_size(text: str, degree: int, power: int) -> str:
    """Replace `n` in a formula by the power of the side."""
    return _VARIABLE.sub(_ROOTS[degree] if power == 1 else f"{_ROOTS[degree]}**{power}", text)


@dataclass(frozen=True, slots=True)
class RootRival:
    """Rounded formula over a power of the side of a mesh instead of n."""

    degree: int
    power: int
    rival: Rival

    @property
    def rest(self) -> int:
        """Return the constant that the formula adds."""
        return self.rival.rest

    def find_disagreement(self, value: Fraction, process_count: int) -> str | None:
        """Find a formula that differs from the given value at a rank count; return it as text."""
        text = self.rival.find_disagreement(value, find_side(process_count, self.degree) ** self.power)
        return None if text is None else _name_size(text, self.degree, self.power)


@dataclass(frozen=True, slots=True)
class CornerNode:
    """Number of a rank of a mesh: each digit in base `side` is a constant, or a distance from the side.

    digits: constant and factor (0 or 1) of the side, from the fastest dimension.
    """

    digits: tuple[tuple[int, int], ...]

    @property
    def degree(self) -> int:
        """Return the dimension of the mesh."""
        return len(self.digits)

    def at(self, process_count: int) -> Fraction:
        """Evaluate the model at a rank count; raise NotAnIntegerError if the node is not in the mesh."""
        side = find_side(process_count, self.degree)
        digits = [rest + factor * side for rest, factor in self.digits]
        if not all(0 <= digit < side for digit in digits):
            raise NotAnIntegerError(f"{self.formula()} is outside of a mesh of {process_count} ranks")
        return Fraction(sum(digit * side**place for place, digit in enumerate(digits)))

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        coefficients = [*(rest for rest, _ in self.digits), 0]
        for place, (_, factor) in enumerate(self.digits):
            coefficients[place + 1] += factor
        root = _ROOTS[self.degree]
        names = ("", root, "n") if self.degree == 2 else ("", root, f"{root}**2", "n")
        terms = [_format_term(factor, name) for factor, name in zip(coefficients, names, strict=True) if factor]
        return " + ".join(reversed(terms)).replace("+ -", "- ") or "0"


def _format_term(factor: int, name: str) -> str:
    if not name:
        return str(factor)
    return f"{'-' * (factor < 0)}{name}" if abs(factor) == 1 else f"{factor}*{name}"


def _fit_corner(degree: int, points: Sequence[Point]) -> CornerNode | None:
    """Fit the digits of a number at two rank counts; None if it is not a rank, or a digit grows otherwise."""
    sides = _find_sides([count for count, _ in points], degree)
    is_rank = all(value.denominator == 1 and 0 <= value < count for count, value in points)
    if sides is None or not is_rank:
        return None
    digits = []
    for place in range(degree):
        first, last = (int(value) // side**place % side for (_, value), side in zip(points, sides, strict=True))
        factor = Fraction(last - first, sides[1] - sides[0])
        if factor not in (0, 1):
            return None
        digits.append((first - int(factor) * sides[0], int(factor)))
    return CornerNode(tuple(digits))


def _make_family(
    name: str,
    parameter_count: int,
    fit: Callable[[Sequence[Point]], CountModel | None],
    degree: int,
    power: int,
) -> CountFamily:
    """Create the family of a model over a power of the side instead of n."""

    def fit_root(points: Sequence[Point]) -> CountModel | None:
        sides = _find_sides([count for count, _ in points], degree)
        if sides is None:
            return None
        model = fit([(side**power, value) for side, (_, value) in zip(sides, points, strict=True)])
        return RootModel(degree, power, model) if model is not None and _is_whole(model) else None

    return CountFamily(f"{name} in {_name_size('n', degree, power)}", parameter_count, fit_root, is_fallback=True)


def _is_whole(model: CountModel) -> bool:
    """Return whether all parameters are integers: with fractions, a line may pass through a logarithm at four sides."""
    match model:
        case Linear(slope, rest):
            return slope.denominator == rest.denominator == 1
        case Inverse(share, rest):
            return share.denominator == rest.denominator == 1
    return False


_OVER_SIDES = (
    ("proportional", 1, fit_proportional),
    ("inverse", 1, fit_inverse),
    ("linear", 2, fit_linear),
    ("inverse plus constant", 2, fit_inverse_plus),
)
#: kinds of models over the sides of square and cubic meshes, tried after all others
MESH_COUNT_FAMILIES: tuple[CountFamily, ...] = (
    *(_make_family(*family, degree, power) for degree, power in ((2, 1), (3, 1), (3, 2)) for family in _OVER_SIDES),
    CountFamily("corner node of a square", 2, lambda points: _fit_corner(2, points), is_fallback=True),
    CountFamily("corner node of a cube", 2, lambda points: _fit_corner(3, points), is_fallback=True),
)


# ---- numbers over ranks


@dataclass(frozen=True, slots=True)
class MeshModel:
    """Model that is linear in the coordinates of a rank in a mesh: `steps * ((digits + shifts) mod side) + start`.

    Dimensions are ordered from the fastest. A step is None if all known ranks of the class have the same coordinate.
    """

    shifts: tuple[int, ...]
    steps: tuple[CountModel | None, ...]
    start: CountModel

    def values_at(self, process_count: int, ranks: Ints) -> Ints:
        """Evaluate the model for ranks (R,); raise NotAnIntegerError if a value is invalid."""
        side = find_side(process_count, len(self.shifts))
        values = np.full(ranks.shape, evaluate_integer(self.start, process_count, "the start"), np.int64)
        for step, digit in zip(self.steps, _find_digits(ranks, side, self.shifts).T, strict=True):
            if step is None and (digit != digit[:1]).any():
                raise NotAnIntegerError("the step along a dimension of the mesh is unknown")
            if step is not None:
                values += evaluate_integer(step, process_count, "the step") * digit
        return values

    def formula(self) -> str:
        """Format the model as text, in terms of `n` and `rank`."""
        terms = []
        for place, (step, shift) in enumerate(zip(self.steps, self.shifts, strict=True)):
            factor = "0" if step is None else step.formula()
            if factor != "0":
                coordinate = _name_coordinate(place, shift, len(self.shifts))
                terms.append(
                    coordinate if factor == "1" else f"{f'({factor})' if ' ' in factor else factor}*{coordinate}"
                )
        start = self.start.formula()
        return " + ".join([*reversed(terms), *([start] if start != "0" or not terms else [])])


def _name_coordinate(place: int, shift: int, degree: int) -> str:
    root = _ROOTS[degree]
    quotient = "rank" if place == 0 else f"floor(rank/{root if place == 1 else f'{root}**2'})"
    if shift:
        return f"(({quotient} {'+' if shift > 0 else '-'} {abs(shift)}) mod {root})"
    return quotient if place == degree - 1 else f"({quotient} mod {root})"


def _find_digits(ranks: Ints, side: int, shifts: Sequence[int]) -> Ints:
    """Return the rotated coordinates of ranks, shape (R, dimensions)."""
    places = np.arange(len(shifts))
    digits: Ints = (ranks[:, None] // side**places + np.array(shifts)) % side
    return digits


def fit_mesh(columns: Sequence[Column], families: Sequence[CountFamily]) -> MeshModel | None:
    """Fit the model of a square or cubic mesh; None if a rank count has no such mesh, or the model does not fit."""
    for degree in _ROOTS:
        sides = _find_sides([column.process_count for column in columns], degree)
        if sides is None or min(sides) < 2:
            continue
        for shifts in sorted(product(_SHIFTS, repeat=degree), key=np.count_nonzero):
            model = _fit_rotated_mesh(columns, sides, shifts, families)
            if model is not None:
                return model
    return None


def _fit_rotated_mesh(
    columns: Sequence[Column], sides: Sequence[int], shifts: tuple[int, ...], families: Sequence[CountFamily]
) -> MeshModel | None:
    solutions = []
    for column, side in zip(columns, sides, strict=True):
        solution = _solve_steps(column, _find_digits(column.ranks, side, shifts))
        if solution is None:
            return None
        solutions.append(solution)
    steps: list[CountModel | None] = []
    for row in zip(*solutions, strict=True):
        points = [
            (column.process_count, Fraction(step))
            for column, step in zip(columns, row, strict=True)
            if step is not None
        ]
        step = fit_count_model(points, families) if points else None
        if points and step is None:
            return None
        steps.append(step)
    without_start = MeshModel(shifts, tuple(steps), Constant(Fraction(0)))
    starts = _find_starts(columns, without_start)
    start = fit_count_model(starts, families) if starts else None
    return None if start is None else replace(without_start, start=start)


def _find_starts(columns: Sequence[Column], model: MeshModel) -> list[Point]:
    """Return the constant of each column after subtracting all steps; empty if it is not constant."""
    starts: list[Point] = []
    for column in columns:
        try:
            rests = column.values - model.values_at(column.process_count, column.ranks)
        except NotAnIntegerError:
            return []
        if (rests != rests[0]).any():
            return []
        starts.append((column.process_count, Fraction(int(rests[0]))))
    return starts


def _solve_steps(column: Column, digits: Ints) -> list[int | None] | None:
    """Solve for the integer step along each dimension; None if the values are not linear in the coordinates.

    The step is None along a dimension with equal coordinates, and 0 if the coordinate follows from faster ones, as on a
    diagonal.
    """
    if np.abs(column.values).max(initial=0) >= _MAX_SOLVED:
        return None
    distances, rises = digits - digits[0], column.values - column.values[0]
    used: list[int] = []
    for place in range(digits.shape[1]):
        if np.linalg.matrix_rank(distances[:, [*used, place]]) > len(used):
            used.append(place)
    solved: Reals = np.linalg.lstsq(distances[:, used].astype(np.float64), rises.astype(np.float64), rcond=None)[0]
    steps = np.zeros(digits.shape[1], np.int64)
    steps[used] = np.rint(solved)
    if (distances @ steps != rises).any():
        return None
    varies = distances.any(axis=0)
    return [step if is_varied else None for step, is_varied in zip(steps.tolist(), varies.tolist(), strict=True)]
