from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from tests.naive.extrapolation.rounded_models import FORMULAS, parameters
from transforms.extrapolation.count_models import Inverse, Linear, fitted
from transforms.extrapolation.rounded_models import Rounded, rounded_like, roundest

COUNTS = (8, 12, 16, 24)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1000, 1007, 1000), (953, 959, 953), (995, 1005, 1000), (7, 7, 7), (1, 3, 3), (-1007, -1000, -1000), (41, 59, 50)],
)
def test_the_roundest_number(low: int, high: int, found: int) -> None:
    assert low <= roundest(low, high) <= high
    assert len(str(roundest(low, high)).rstrip("0")) <= len(str(found).rstrip("0"))


@settings(deadline=None, max_examples=100)
@given(st.integers(-400, 400), st.sampled_from(sorted(FORMULAS)), st.integers(1, 5))
def test_what_a_rounded_formula_gives_is_told_apart_from_it(k: int, formula: str, scale: int) -> None:
    points = [(n, scale * FORMULAS[formula](k, n)) for n in COUNTS]
    found = fitted([(n, Fraction(value)) for n, value in points])
    if found is None or not isinstance(found.model, Inverse | Linear) or not found.model.rest:
        return
    assert k in parameters(points, formula, scale, 420)
    if isinstance(found.model, Linear) and not found.model.slope:
        return
    assert any(
        rival.kind == formula.split()[0] and rival.scale == scale and rival.least <= k <= rival.most
        for rival in found.rivals
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.integers(1, 4), st.booleans())
def test_all_parameters_are_found(times: int, scale: int, is_up: bool) -> None:
    rest = scale if is_up else -scale
    points = [(n, 48 * times * scale // n + rest) for n in COUNTS]
    share = Fraction(48 * times * scale)
    for rival in rounded_like(points, by_inverse=True, first=share, rest=Fraction(rest)):
        if not rival.rest:
            assert parameters(points, rival.kind, rival.scale, 3000) == list(range(rival.least, rival.most + 1))


def test_rivals_are_named_with_what_they_give() -> None:
    rival, *_ = rounded_like([(n, 1000 // n) for n in COUNTS], by_inverse=True, first=Fraction(1008), rest=Fraction(-1))
    assert rival == Rounded("floor", 1000, 1007)
    assert rival.unless(Fraction(167), 6) == "floor(1000/n), 166"
    assert rival.unless(Fraction(20), 48) is None
    # Some of them give the same, and others do not: one that does not is named.
    assert rival.unless(Fraction(200), 5) == "floor(1007/n), 201"
    assert rival.unless(Fraction(201), 5) == "floor(1000/n), 200"


@pytest.mark.parametrize(
    ("rival", "value", "told"),
    [
        (Rounded("ceil", 961, 968), 161, "ceil(967/n), 162"),
        (Rounded("floor", 1000, 1007, scale=8), 1336, "8*floor(1000/n), 1328"),
        (Rounded("floor", 1000, 1007, is_times_n=True), 1002, "n*floor(1000/n), 996"),
        (Rounded("floor", 1000, 1007, rest=8), 175, "floor(1000/n) + 8, 174"),
        (Rounded("floor", 1000, 1007, rest=-8), 159, "floor(1000/n) - 8, 158"),
        (Rounded("mod", 40, 48), -2, "(40 mod n), 4"),
        (Rounded("mod", 40, 48), 4, None),
    ],
)
def test_texts(rival: Rounded, value: int, told: str | None) -> None:
    found = rival.unless(Fraction(value), 6)
    if rival.kind == "ceil":
        assert found in ("ceil(967/n), 162", "ceil(968/n), 162")
    else:
        assert found == told


@pytest.mark.parametrize("less", [1, 2, 3, 4])
def test_neighbours_are_no_remainders(less: int) -> None:
    points = [(n, n - less) for n in COUNTS]
    assert rounded_like(points, by_inverse=False, first=Fraction(1), rest=Fraction(-less)) == ()


def test_remainders_are() -> None:
    found = rounded_like([(n, 1000 % n) for n in COUNTS], by_inverse=False, first=Fraction(1), rest=Fraction(-8))
    assert found == (Rounded("mod", 40, 48),)
    # Any of 40, 88, 136 ... gives the same: which one it is matters where it matters at all.
    assert found[0].unless(Fraction(20), 20) == "(40 mod n), 0"
    assert found[0].unless(Fraction(0), 20) == "(88 mod n), 8"
