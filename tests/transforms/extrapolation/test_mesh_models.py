"""Models of square and cubic meshes are exact at other meshes, and refused where no mesh has as many ranks."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.extrapolation.count_models import AmbiguousModelError, NotAnIntegerError, fit_count_model
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate_to, fit_trace
from iosig.transforms.extrapolation.iteration_models import Families
from iosig.transforms.extrapolation.mesh_models import find_side, fit_mesh
from iosig.transforms.extrapolation.rank_list_models import fit_rank_lists
from iosig.transforms.extrapolation.rank_models import Column
from iosig.transforms.traces.progressions import expand_values
from tests.budget import examples
from tests.extrapolated_programs import Made, Program, first_difference, posix, traces_of

FAMILIES = Families()
SQUARES, CUBES = (9, 16, 25, 36), (8, 27, 64, 125)


def side(n: int, degree: int = 2) -> int:
    root: float = n ** (1 / degree)
    return round(root)


@pytest.mark.parametrize(("count", "degree"), [(10, 2), (2, 2), (100, 3), (7, 3)])
def test_rank_counts_without_a_mesh_are_refused(count: int, degree: int) -> None:
    with pytest.raises(NotAnIntegerError, match=f"{count} is not a (square|cube)"):
        find_side(count, degree)
    assert find_side(123**degree, degree) == 123


@pytest.mark.parametrize(
    ("counts", "number", "formula"),
    [
        (SQUARES, lambda n: side(n), "sqrt(n)"),
        (SQUARES, lambda n: 3 * side(n) - 2, "3*sqrt(n) - 2"),
        (SQUARES, lambda n: 5040 // side(n), "5040/sqrt(n)"),
        (SQUARES, lambda n: n - side(n), "n - sqrt(n)"),
        (SQUARES, lambda n: n - side(n) + 1, "n - sqrt(n) + 1"),
        (SQUARES, lambda n: 2 * side(n) + 1, "2*sqrt(n) + 1"),
        (CUBES, lambda n: side(n, 3) ** 2, "cbrt(n)**2"),
        (CUBES, lambda n: 3600 // side(n, 3) ** 2, "3600/cbrt(n)**2"),
        (CUBES, lambda n: n - side(n, 3) ** 2 + side(n, 3), "n - cbrt(n)**2 + cbrt(n)"),
        (CUBES, lambda n: n - side(n, 3) + 1, "n - cbrt(n) + 1"),
    ],
)
def test_numbers_over_the_side_are_recovered(counts: tuple[int, ...], number, formula: str) -> None:  # type: ignore[no-untyped-def]
    model = fit_count_model([(n, Fraction(number(n))) for n in counts], FAMILIES.counts)
    assert model is not None
    assert model.formula() == formula
    degree = 2 if counts == SQUARES else 3
    for k in (2, 3, 10, 12):
        if formula.startswith(("5040", "3600")) and (5040 % k or 3600 % k**2):
            continue
        assert model.at(k**degree) == number(k**degree)
    with pytest.raises(NotAnIntegerError, match="50 is not a"):
        model.at(50)


def test_paper_models_come_first() -> None:
    assert [
        model.formula()
        for model in (
            fit_count_model([(n, Fraction(number(n))) for n in SQUARES], FAMILIES.counts)
            for number in (lambda n: 4, lambda n: 2 * n, lambda n: 3 * n - 1, lambda n: Fraction(3600, n))
        )
        if model is not None
    ] == ["4", "2*n", "3*n - 1", "3600/n"]


def test_rounded_numbers_of_the_side_stay_ambiguous() -> None:
    """floor(1000/side) equals 1008/side - 1 at some sides, as over n, and no other family resolves this."""
    counts = (64, 144, 256, 576)
    model = fit_count_model([(n, Fraction(1000 // side(n))) for n in counts], FAMILIES.counts)
    assert model is not None
    with pytest.raises(
        AmbiguousModelError, match=r"1008/sqrt\(n\) - 1 is as good as floor\(1000/sqrt\(n\)\), 166 at 36"
    ):
        model.at(36)
    over_n = fit_count_model([(n, Fraction(n - 8)) for n in SQUARES], FAMILIES.counts)
    assert over_n is not None
    with pytest.raises(AmbiguousModelError):
        over_n.at(4)


@pytest.mark.parametrize(
    ("ranks", "formula"),
    [
        (lambda k: [y * k + x for y in range(1, k - 1) for x in range(1, k - 1)], "from sqrt(n) + 1, "),
        (lambda k: list(range(k * k - k, k * k)), "from n - sqrt(n), sqrt(n) of stride 1"),
        (lambda k: list(range(k - 1, k * k, k)), "from sqrt(n) - 1, sqrt(n) of stride sqrt(n)"),
        (lambda k: list(range(k * k - k + 1, k * k - 1)), "from n - sqrt(n) + 1, sqrt(n) - 2 of stride 1"),
        (lambda k: [y * (k + 1) for y in range(k)], "from 0, sqrt(n) of stride sqrt(n) + 1"),
    ],
)
def test_rank_lists_of_a_square_are_recovered(ranks, formula: str) -> None:  # type: ignore[no-untyped-def]
    models = fit_rank_lists([(k * k, np.array(ranks(k))) for k in (3, 4, 5, 6)], FAMILIES.counts)
    assert models is not None
    assert "; ".join(model.formula() for model in models).startswith(formula)
    for k in (7, 20):
        lists = tuple(part for model in models if (part := model.at(k * k)) is not None)
        assert sorted(expand_values(lists).tolist()) == ranks(k)


@settings(deadline=None, max_examples=examples(30))
@given(
    degree=st.sampled_from([2, 3]),
    steps=st.lists(st.integers(-1000, 1000), min_size=3, max_size=3),
    shifts=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    powers=st.lists(st.integers(0, 1), min_size=3, max_size=3),
)
def test_linear_functions_of_coordinates_are_recovered(
    degree: int, steps: list[int], shifts: list[int], powers: list[int]
) -> None:
    def column(k: int) -> Column:
        ranks = np.arange(k**degree)
        digits = [(ranks // k**place + shifts[place]) % k for place in range(degree)]
        values = sum(steps[place] * k ** powers[place] * digits[place] for place in range(degree)) + 7 * k
        return Column(k**degree, ranks, np.asarray(values))

    model = fit_mesh([column(k) for k in (3, 4, 5, 6)], FAMILIES.counts)
    assert model is not None
    for k in (2, 7, 9):
        wanted = column(k)
        assert model.values_at(k**degree, wanted.ranks).tolist() == wanted.values.tolist()


# ---- programs on meshes

_CELLS = 5040


def _place(rank: int, n: int, degree: int) -> tuple[int, list[int]]:
    k = side(n, degree)
    return k, [rank // k**dimension % k for dimension in range(degree)]


def square_blocks(rank: int, n: int) -> list[Made]:
    """Write four rows of a block of a global array."""
    k, (x, y) = _place(rank, n, 2)
    start = (y * (_CELLS // k) * _CELLS + x * (_CELLS // k)) * 8
    return [posix("pwrite", "/a/f", "%p", _CELLS // k * 8, start + row * _CELLS * 8) for row in range(4)]


def row_roots(rank: int, n: int) -> list[Made]:
    """Write a file per row of the mesh, by its first rank."""
    k, (x, y) = _place(rank, n, 2)
    return [posix("pwrite", f"/a/row.{y}", "%p", k * 4096, 0)] * (x == 0) + [posix("barrier")]


def diagonal(rank: int, n: int) -> list[Made]:
    """Write by the ranks on the diagonal; the others are silent."""
    _, (x, y) = _place(rank, n, 2)
    return [posix("pwrite", "/a/log", "%p", 64, y * 64)] if x == y else []


def cubic_blocks(rank: int, n: int) -> list[Made]:
    """Write two rows of a block of a global array in three dimensions."""
    k, (x, y, z) = _place(rank, n, 3)
    start = ((z * (_CELLS // k) * _CELLS + y * (_CELLS // k)) * _CELLS + x * (_CELLS // k)) * 8
    return [posix("pwrite", "/a/f", "%p", _CELLS // k * 8, start + row * _CELLS * 8) for row in range(2)]


def _stencil(degree: int, *, is_periodic: bool) -> Program:
    """Read a file of each neighbor, with the direction in its name."""

    def program(rank: int, n: int) -> list[Made]:
        k, place = _place(rank, n, degree)
        return [
            posix("pread", f"/a/{sign}{'xyz'[at]}.{rank + ((place[at] + step) % k - place[at]) * k**at}", "%p", 4096, 0)
            for at in range(degree)
            for step, sign in ((-1, "-"), (1, "+"))
            if is_periodic or 0 <= place[at] + step < k
        ]

    return program


@pytest.mark.parametrize(
    ("program", "counts", "exact", "refused"),
    [
        (square_blocks, (4, 9, 16, 25), (36, 49, 100, 400), 48),
        (row_roots, (4, 9, 16, 25), (36, 49, 100, 400), 48),
        (diagonal, (4, 9, 16, 25), (36, 49, 100, 400), 48),
        (_stencil(2, is_periodic=True), (4, 9, 16, 25), (36, 49), 48),
        (_stencil(2, is_periodic=False), SQUARES, (49, 100), 48),
        (cubic_blocks, CUBES, (216,), 100),
        (_stencil(3, is_periodic=True), CUBES, (216,), 100),
    ],
    ids=["blocks", "row_roots", "diagonal", "torus", "stencil", "cubic_blocks", "cubic_torus"],
)
def test_mesh_programs_are_exact_or_refused(
    program: Program, counts: tuple[int, ...], exact: tuple[int, ...], refused: int
) -> None:
    fitted = fit_trace(traces_of(program, counts), ExtrapolationParams())
    for n in exact:
        trace = extrapolate_to(fitted, n).trace
        assert trace is not None, n
        assert first_difference(trace, program) is None, n
    extrapolation = extrapolate_to(fitted, refused)
    assert extrapolation.trace is None
    assert f"{refused} is not a" in extrapolation.refusals[0].reason


@pytest.mark.slow
def test_open_cubic_stencil_is_exact() -> None:
    """Its 27 classes are corners, edges, faces and the inside of the cube."""
    program = _stencil(3, is_periodic=False)
    fitted = fit_trace(traces_of(program, (27, 64, 125, 216)), ExtrapolationParams())
    trace = extrapolate_to(fitted, 343).trace
    assert trace is not None
    assert first_difference(trace, program) is None


# ---- programs that look like meshes at the inputs


def _trap(number) -> Program:  # type: ignore[no-untyped-def]
    return lambda r, n: [posix("pwrite", "/a/f", "%p", 8, number(r, n))]


TRAPS = {
    "half_side": _trap(lambda r, n: isqrt(n) // 2),
    "rounded_block": _trap(lambda r, n: 1000 // isqrt(n) * (r % isqrt(n))),
    "side_of_any_count": _trap(lambda r, n: r // isqrt(n)),
    "remainder": _trap(lambda r, n: n % 7),
    "bits": _trap(lambda r, n: n.bit_length()),
    "quadratic": _trap(lambda r, n: (r % isqrt(n)) ** 2),
    "anti_diagonal": _trap(lambda r, n: (r % isqrt(n)) * (r // isqrt(n))),
    "checkerboard": _trap(lambda r, n: (r % isqrt(n) + r // isqrt(n)) % 2),
    "middle": lambda r, n: [posix("open", "/a/f", 1)] if r == n // 2 else [posix("close", "/a/f")],
}


_ODD_SIDES = (9, 25, 49, 81)


@pytest.mark.parametrize("counts", [(4, 9, 16, 25), _ODD_SIDES, (4, 16, 36, 64)])
@pytest.mark.parametrize("name", sorted(TRAPS.keys() - {"checkerboard"}))
def test_traps_are_exact_or_refused(name: str, counts: tuple[int, ...]) -> None:
    _require_exact_or_refused(name, counts)


@pytest.mark.parametrize("counts", [(4, 9, 16, 25), (4, 16, 36, 64)])
def test_checkerboard_with_an_even_side_is_exact_or_refused(counts: tuple[int, ...]) -> None:
    _require_exact_or_refused("checkerboard", counts)


def test_checkerboard_with_odd_sides_only_has_the_traces_of_rank_mod_2() -> None:
    parity = _trap(lambda r, n: r % 2)
    assert traces_of(TRAPS["checkerboard"], _ODD_SIDES) == traces_of(parity, _ODD_SIDES)
    trace = extrapolate_to(fit_trace(traces_of(TRAPS["checkerboard"], _ODD_SIDES), ExtrapolationParams()), 36).trace
    assert trace is None or first_difference(trace, parity) is None


def _require_exact_or_refused(name: str, counts: tuple[int, ...]) -> None:
    fitted = fit_trace(traces_of(TRAPS[name], counts), ExtrapolationParams())
    for n in (6, 36, 48, 50, 100, 121):
        trace = extrapolate_to(fitted, n).trace
        assert trace is None or first_difference(trace, TRAPS[name]) is None, n
