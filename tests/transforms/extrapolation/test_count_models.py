"""Models of counts over rank counts: exact linear and inverse formulas, ambiguous rounding, and rejected fits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.transforms.extrapolation.count_models import (
    FAMILIES,
    AmbiguousModelError,
    Constant,
    CountFamily,
    FittedModel,
    Inverse,
    Linear,
    NotAnIntegerError,
    Point,
    RoundedFormula,
    evaluate_integer,
    find_rivals,
    find_roundest,
    fit_count_model,
    format_product,
)
from tests.budget import examples
from tests.naive.extrapolation.count_models import FORMULAS, parameters

COUNTS = (8, 12, 16, 24)
whole = st.integers(-1000, 1000).map(Fraction)
count_sets = st.lists(st.integers(1, 200), min_size=3, max_size=6, unique=True)


def points_of(*values: int | Fraction, counts: tuple[int, ...] = COUNTS) -> list[Point]:
    return [(count, Fraction(value)) for count, value in zip(counts, values, strict=False)]


@pytest.mark.parametrize(
    ("values", "formula"),
    [
        ((7, 7, 7, 7), "7"),
        ((0, 0, 0, 0), "0"),
        ((8, 12, 16, 24), "n"),
        ((80, 120, 160, 240), "10*n"),
        ((2, 3, 4, 6), "n/4"),
        ((120, 80, 60, 40), "960/n"),
        ((7, 11, 15, 23), "n - 1"),
        ((1, 5, 9, 17), "n - 7"),
        ((520, 524, 528, 536), "n + 512"),
        ((122, 82, 62, 42), "960/n + 2"),
        ((-120, -80, -60, -40), "-960/n"),
    ],
)
def test_count_model_formats_its_formula(values: tuple[int, ...], formula: str) -> None:
    found = fit_count_model(points_of(*values))
    assert found is not None
    assert found.formula() == formula


@pytest.mark.parametrize("values", [(3, 3, 4, 4), (64, 144, 256, 576), (1, 1, 2, 3), (0, 0, 0, 1), (12, 9, 7, 5)])
def test_irregular_counts_have_no_model(values: tuple[int, ...]) -> None:
    assert fit_count_model(points_of(*values)) is None


@settings(deadline=None)
@given(count_sets, whole, whole, st.integers(1, 500))
def test_fit_recovers_linear_models(counts: list[int], slope: Fraction, rest: Fraction, other: int) -> None:
    found = fit_count_model([(count, slope * count + rest) for count in counts], has_rivals=False)
    assert found is not None
    assert found.at(other) == slope * other + rest


@settings(deadline=None, max_examples=examples(50))
@given(count_sets, whole, st.fractions(-50, 50, max_denominator=7), st.integers(1, 500))
def test_fit_recovers_inverse_models(counts: list[int], share: Fraction, rest: Fraction, other: int) -> None:
    found = fit_count_model([(count, share / count + rest) for count in counts], has_rivals=False)
    assert found is not None
    assume(not found.is_whole)
    assert found.at(other) == share / other + rest


@given(st.lists(st.tuples(st.sampled_from([4, 8, 12, 16, 24]), st.integers(0, 5).map(Fraction)), max_size=7))
def test_model_needs_one_more_point_than_parameters(points: list[Point]) -> None:
    found = fit_count_model(points)
    if found is None:
        return
    assert all(found.at(count) == value for count, value in points)
    known = len({count for count, _ in points})
    assert known > (1 if isinstance(found.model, Constant) or not getattr(found.model, "rest", 0) else 2)


def test_as_many_points_as_parameters_are_insufficient() -> None:
    assert fit_count_model([]) is None
    assert fit_count_model(points_of(5)) is None
    assert fit_count_model([(8, Fraction(5)), (8, Fraction(5))]) is None
    assert fit_count_model(points_of(5, 6)) is None
    assert fit_count_model(points_of(5, 5)) is not None


def test_points_at_one_rank_count_must_agree() -> None:
    assert fit_count_model([*points_of(5, 5, 5), (8, Fraction(5))]) is not None
    assert fit_count_model([*points_of(5, 5, 5), (8, Fraction(6))]) is None


# ---- rounding


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1000 // n for n in COUNTS], ("1008/n - 1", "floor(1000/n), 166 at 6")),
        ([8 * (1000 // n) for n in COUNTS], ("8064/n - 8", "8*floor(1000/n), 1328 at 6")),
        ([n * (1000 // n) for n in COUNTS], ("-n + 1008", "n*floor(1000/n), 996 at 6")),
        ([-(-968 // n) for n in COUNTS], ("960/n + 1", "ceil(968/n), 162 at 6")),
        ([1000 % n for n in COUNTS], ("n - 8", "(40 mod n), 4 at 6")),
        ([1000 // n + 8 for n in COUNTS], ("1008/n + 7",)),
        ([-(1000 // n) for n in COUNTS], ("-1008/n + 1", "ceil(-1000/n), -166 at 6")),
    ],
)
def test_equivalent_rounded_formulas_are_ambiguous(values: list[int], texts: tuple[str, ...]) -> None:
    found = fit_count_model(points_of(*values))
    assert found is not None
    with pytest.raises(AmbiguousModelError, match="ambiguous") as told:
        found.at(6)
    assert all(text in str(told.value) for text in texts)
    assert [found.at(count) for count in COUNTS] == values


def test_agreeing_formulas_are_not_ambiguous() -> None:
    found = fit_count_model(points_of(*(1000 // n for n in COUNTS)))
    assert found is not None
    assert found.at(48) == 1000 // 48
    assert found.at(28) == 1000 // 28


@settings(deadline=None, max_examples=examples(120))
@given(
    st.integers(1, 5000),
    st.sampled_from([1, 2, 8, 1000]),
    st.booleans(),
    st.integers(8, 400),
    st.sampled_from([0, 0, 1, 8, 100]),
)
def test_rounded_numbers_are_never_extrapolated_wrongly(k: int, scale: int, is_up: bool, other: int, rest: int) -> None:
    """Holds for rank counts from the smallest known one on; below it, the divided total may be slightly larger."""

    def value(n: int) -> Fraction:
        return Fraction(scale * (-(-k // n) if is_up else k // n) + rest)

    found = fit_count_model([(n, value(n)) for n in COUNTS])
    if found is None or k < 48:
        return
    try:
        given_value = found.at(other)
    except NotAnIntegerError:
        return
    # The divided total is recognized, but not that it consists of parts of fixed size, which ranks cannot split.
    is_of_parts = scale > 1 and isinstance(found.model, Inverse) and (rest or not found.model.rest)
    assert given_value == value(other) or is_of_parts or isinstance(found.model, Constant)


def test_user_family_resolves_ambiguity() -> None:
    class Floor:
        def __init__(self, k: int) -> None:
            self.k = k

        def at(self, process_count: int) -> Fraction:
            return Fraction(self.k // process_count)

        def formula(self) -> str:
            return f"floor({self.k}/n)"

    own = CountFamily("floor", 1, lambda points: Floor(1000))
    found = fit_count_model(points_of(*(1000 // n for n in COUNTS)), (*FAMILIES, own))
    assert found is not None
    assert found.formula() == "floor(1000/n)"
    assert found.at(6) == 166


def test_integer_counts_reject_fractional_predictions() -> None:
    found = fit_count_model(points_of(2, 3, 4, 6))
    assert found is not None
    with pytest.raises(NotAnIntegerError, match="n/4 is 3/2, not an integer"):
        found.at(6)
    halves = fit_count_model(points_of(*(Fraction(n, 16) for n in COUNTS)))
    assert halves is not None
    assert halves.at(6) == Fraction(3, 8)


# ---- integers and texts


def test_fraction_message_names_formula_and_value() -> None:
    assert evaluate_integer(Inverse(Fraction(960), Fraction(0)), 20, "") == 48
    with pytest.raises(NotAnIntegerError, match=r"^the count 960/n is 240/7, not an integer: 28 does not divide 960$"):
        evaluate_integer(Inverse(Fraction(960), Fraction(0)), 28, "the count")
    with pytest.raises(NotAnIntegerError, match=r"^n/4 is 3/2, not an integer$"):
        evaluate_integer(Linear(Fraction(1, 4), Fraction(0)), 6, "")


def test_fitted_model_message_names_the_fraction_once() -> None:
    found = fit_count_model(points_of(120, 80, 60, 40))
    assert isinstance(found, FittedModel)
    with pytest.raises(NotAnIntegerError, match=r"^the count 960/n is 240/7, not an integer: 28 does not divide 960$"):
        evaluate_integer(found, 28, "the count")


@pytest.mark.parametrize(
    ("value", "text"), [(Fraction(1), "n"), (Fraction(-1), "-n"), (Fraction(3, 4), "3*n/4"), (Fraction(1, 4), "n/4")]
)
def test_product_is_formatted_with_its_coefficient(value: Fraction, text: str) -> None:
    assert format_product(value, "n") == text


# ---- rounded formulas

COUNTS = (8, 12, 16, 24)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1000, 1007, 1000), (953, 959, 953), (995, 1005, 1000), (7, 7, 7), (1, 3, 3), (-1007, -1000, -1000), (41, 59, 50)],
)
def test_roundest_number_in_range_has_fewest_digits(low: int, high: int, found: int) -> None:
    assert low <= find_roundest(low, high) <= high
    assert len(str(find_roundest(low, high)).rstrip("0")) <= len(str(found).rstrip("0"))


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(-400, 400), st.sampled_from(sorted(FORMULAS)), st.integers(1, 5))
def test_rivals_include_the_true_rounded_formula(k: int, formula: str, scale: int) -> None:
    points = [(n, scale * FORMULAS[formula](k, n)) for n in COUNTS]
    found = fit_count_model([(n, Fraction(value)) for n, value in points])
    if found is None or not isinstance(found.model, Inverse | Linear) or not found.model.rest:
        return
    assert k in parameters(points, formula, scale, 420)
    if isinstance(found.model, Linear) and not found.model.slope:
        return
    assert any(
        rival.kind == formula.split()[0] and rival.scale == scale and rival.low_k <= k <= rival.high_k
        for rival in found.rivals
    )


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(1, 60), st.integers(1, 4), st.booleans())
def test_rivals_cover_all_naive_parameters(format_product: int, scale: int, is_up: bool) -> None:
    rest = scale if is_up else -scale
    points = [(n, 48 * format_product * scale // n + rest) for n in COUNTS]
    share = Fraction(48 * format_product * scale)
    for rival in find_rivals(points, by_inverse=True, first=share, rest=Fraction(rest)):
        if not rival.rest:
            assert parameters(points, rival.kind, rival.scale, 3000) == list(range(rival.low_k, rival.high_k + 1))


def test_disagreement_names_formula_and_value() -> None:
    rival, *_ = find_rivals([(n, 1000 // n) for n in COUNTS], by_inverse=True, first=Fraction(1008), rest=Fraction(-1))
    assert rival == RoundedFormula("floor", 1000, 1007)
    assert rival.find_disagreement(Fraction(167), 6) == "floor(1000/n), 166"
    assert rival.find_disagreement(Fraction(20), 48) is None
    # Some candidates agree in value; the disagreement names a candidate with a different value.
    assert rival.find_disagreement(Fraction(200), 5) == "floor(1007/n), 201"
    assert rival.find_disagreement(Fraction(201), 5) == "floor(1000/n), 200"


@pytest.mark.parametrize(
    ("rival", "value", "told"),
    [
        (RoundedFormula("ceil", 961, 968), 161, "ceil(967/n), 162"),
        (RoundedFormula("floor", 1000, 1007, scale=8), 1336, "8*floor(1000/n), 1328"),
        (RoundedFormula("floor", 1000, 1007, is_times_n=True), 1002, "n*floor(1000/n), 996"),
        (RoundedFormula("floor", 1000, 1007, rest=8), 175, "floor(1000/n) + 8, 174"),
        (RoundedFormula("floor", 1000, 1007, rest=-8), 159, "floor(1000/n) - 8, 158"),
        (RoundedFormula("mod", 40, 48), -2, "(40 mod n), 4"),
        (RoundedFormula("mod", 40, 48), 4, None),
    ],
)
def test_disagreement_formats_the_rounded_formula(rival: RoundedFormula, value: int, told: str | None) -> None:
    found = rival.find_disagreement(Fraction(value), 6)
    if rival.kind == "ceil":
        assert found in ("ceil(967/n), 162", "ceil(968/n), 162")
    else:
        assert found == told


@pytest.mark.parametrize("less", [1, 2, 3, 4])
def test_rank_count_minus_constant_is_not_a_remainder(less: int) -> None:
    points = [(n, n - less) for n in COUNTS]
    assert find_rivals(points, by_inverse=False, first=Fraction(1), rest=Fraction(-less)) == ()


def test_remainder_of_constant_by_rank_count_is_found() -> None:
    found = find_rivals([(n, 1000 % n) for n in COUNTS], by_inverse=False, first=Fraction(1), rest=Fraction(-8))
    assert found == (RoundedFormula("mod", 40, 48),)
    # 40, 88, 136 ... all give the same value: they are ambiguous only where their values differ.
    assert found[0].find_disagreement(Fraction(20), 20) == "(40 mod n), 0"
    assert found[0].find_disagreement(Fraction(0), 20) == "(88 mod n), 8"
