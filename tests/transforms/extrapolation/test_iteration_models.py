"""Models of values over loop iterations, at other rank counts and with user-defined families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from iosig.transforms.extrapolation.count_models import NotAnIntegerError
from iosig.transforms.extrapolation.iteration_models import (
    Block,
    Families,
    FieldModel,
    FixedValues,
    NestedLoops,
    NoExactModelError,
    PerIteration,
    StridedValues,
    evaluate_vector,
    fit_field,
    format_formula,
    is_constant,
    repeat_row,
)
from iosig.transforms.extrapolation.rank_models import RANK_FAMILIES, Column
from iosig.transforms.traces.progressions import NumberList, Progression, expand_values
from tests.compressed import rank_values

COUNTS = (8, 12, 16, 24)
Longs = npt.NDArray[np.int64]
#: Function of the rank, the rank count and the loop indices.
Value = Callable[..., int]
Lengths = Callable[[int], tuple[int, ...]]


def fields(value: Value, lengths: Lengths, counts: Sequence[int] = COUNTS) -> list[Block]:
    return [Block(n, np.arange(n), table(value, n, lengths(n))) for n in counts]


def table(value: Value, n: int, lengths: tuple[int, ...]) -> Longs:
    found = np.empty((n, *lengths), np.int64)
    for index in np.ndindex(found.shape):
        found[index] = value(index[0], n, *index[1:])
    return found


def fit_values(value: Value, lengths: Lengths) -> FieldModel:
    return fit_field(fields(value, lengths), Families())


def is_given(model: FieldModel, value: Value, lengths: Lengths, n: int) -> bool:
    vector = evaluate_vector(model, n, [Progression(0, (1,), (n,)) if n > 1 else Progression(0)], lengths(n))
    found = rank_values(vector)
    wanted = table(value, n, lengths(n)).reshape(n, -1)
    return [found[rank] for rank in range(n)] == wanted.tolist()


@pytest.mark.parametrize(
    ("value", "lengths", "formula"),
    [
        (lambda r, n: r, lambda n: (), "rank"),
        (lambda r, n, i: 960 // n * r + 960 * i, lambda n: (3,), "960/n*rank + 960*i"),
        (lambda r, n, i: i, lambda n: (n,), "i"),
        (lambda r, n, i: 5, lambda n: (4,), "5"),
        (lambda r, n, i: (3, 1, 4, 1)[i], lambda n: (4,), "(3, 1, 4, 1)[i]"),
        (lambda r, n, i: (0, n, 3 * n)[i] + r, lambda n: (3,), "i=0: rank; i=1: rank + n; i=2: rank + 3*n"),
        (lambda r, n, i: i // n * 1000 + i % n, lambda n: (2 * n,), "j + 1000*i in groups of n"),
        (lambda r, n, i: i % n, lambda n: (96,), "j in groups of n"),
        (lambda r, n, i, j: i * 10**6 + j * 8 * n + r * 8, lambda n: (3, 96 // n), "8*rank + 8*n*j + 1000000*i"),
        (lambda r, n, i, j: r // 4 * 100 + j, lambda n: (n, 2), "100*floor(rank/4) + j"),
        (lambda r, n, i: (r + 1) % n * 10 + 10 * n * i, lambda n: (5,), "((rank + 1) mod n)*10 + 10*n*i"),
        (lambda r, n, i: i // 3 * 50 + (5, 9, 1)[i % 3], lambda n: (6,), "(5, 9, 1, 55, 59, 51)[i]"),
    ],
)
def test_models_reproduce_values_at_other_rank_counts(value: Value, lengths: Lengths, formula: str) -> None:
    model = fit_values(value, lengths)
    assert format_formula(model) == formula
    assert is_constant(model) == formula.isdigit()
    assert all(is_given(model, value, lengths, n) for n in (6, 24, 48, 96))


def test_fit_selects_the_kind_of_model() -> None:
    assert isinstance(fit_values(lambda r, n, i: i, lambda n: (n,)), StridedValues)
    assert isinstance(fit_values(lambda r, n, i: (3, 1, 4)[i], lambda n: (3,)), FixedValues)
    assert isinstance(fit_values(lambda r, n, i: (0, n, 3 * n)[i], lambda n: (3,)), PerIteration)
    assert isinstance(fit_values(lambda r, n, i: i % n, lambda n: (2 * n,)), NestedLoops)


def test_inner_loop_with_one_iteration_is_fitted() -> None:
    def value(r: int, n: int, i: int) -> int:
        return i // (24 // n) * 1000 + i % (24 // n)

    def lengths(n: int) -> tuple[int, ...]:
        return (3 * (24 // n),)

    model = fit_field(fields(value, lengths, (6, 8, 12, 24)), Families())
    assert format_formula(model) == "j + 1000*i in groups of 24/n"
    assert is_given(model, value, lengths, 4)


@pytest.mark.parametrize(
    ("value", "lengths", "reason"),
    [
        (lambda r, n, i: n * n * i, lambda n: (3,), "the stride along a loop, 64 at 8 ranks, 144 at 12"),
        (lambda r, n, i: i * i, lambda n: (n,), "the values along a loop, 0, 1, 4, 9, 16, 25, ... at 8 ranks"),
        (lambda r, n, i: r * r, lambda n: (3,), "0, 1, 4, 9, ... at 8 ranks; 0, 1, 4, 9, ... at 12 ranks"),
        (lambda r, n, i: i % 3, lambda n: (n,), "the values along a loop, 0, 1, 2, 0, 1, 2, ..."),
    ],
)
def test_values_without_a_model_are_refused(value: Value, lengths: Lengths, reason: str) -> None:
    with pytest.raises(NoExactModelError) as told:
        fit_values(value, lengths)
    assert reason in str(told.value)


def test_inner_dimensions_of_different_lengths_are_refused() -> None:
    with pytest.raises(NoExactModelError):
        fit_values(lambda r, n, i, j: (i % 3) * 1000 + (r + 1) % n * j * j, lambda n: (5, n))


def test_unknown_stride_is_refused() -> None:
    model = fit_values(lambda r, n, i: r, lambda n: (1,))
    assert format_formula(model) == "rank"
    assert is_given(model, lambda r, n, i: r, lambda n: (1,), 20)
    with pytest.raises(NotAnIntegerError, match="the stride along a loop of 2 is unknown"):
        evaluate_vector(model, 20, [Progression(0, (1,), (20,))], (2,))


def test_fractional_loop_lengths_are_rejected() -> None:
    model = fit_values(lambda r, n, i: 960 // n * r + 960 * i, lambda n: (3,))
    with pytest.raises(NotAnIntegerError, match="960/n is 240/7, not an integer: 28 does not divide 960"):
        evaluate_vector(model, 28, [Progression(0, (1,), (28,))], (3,))
    split = fit_values(lambda r, n, i: i // n * 1000 + i % n, lambda n: (2 * n,))
    with pytest.raises(NotAnIntegerError, match="a loop of 50 is not a multiple of its inner loop of 20"):
        evaluate_vector(split, 20, [Progression(0, (1,), (20,))], (50,))


def test_model_values_stay_compact_at_a_million_ranks() -> None:
    n = 1_000_000
    every = [Progression(0, (1,), (n,))]
    grouped = fit_values(lambda r, n, i: r // 4 * 4096 + r % 4 * 8 + i, lambda n: (5,))
    (share,) = evaluate_vector(grouped, n, every, (5,))
    assert (share.ranks, [expand_values(row).tolist() for row in share.shifts]) == (
        Progression(0, (4, 1), (n // 4, 4)),
        [[4096] * 5, [8] * 5],
    )
    shifted = fit_values(lambda r, n, i: (r + 3) % n * 8 + i, lambda n: (5,))
    assert [share.ranks.counts for share in evaluate_vector(shifted, n, every, (5,))] == [(n - 3,), (3,)]
    listed = fit_values(lambda r, n, i: (3, 1, 4, 1, 5)[i], lambda n: (5,))
    assert len(evaluate_vector(listed, n, every, (5,))) == 1


def test_repeat_row_extends_progressions_and_lists() -> None:
    assert repeat_row((Progression(3),), 5, 4) == (Progression(3, (5,), (4,)),)
    assert repeat_row((NumberList((3, 1)),), 5, 4) == (NumberList((3, 1), (5,), (4,)),)
    row = repeat_row((Progression(3, (1,), (4,)), NumberList((9, 9))), 100, 3)
    assert expand_values(row).tolist() == [base + own for base in (0, 100, 200) for own in (3, 4, 5, 6, 9, 9)]
    with pytest.raises(ValueError, match="is not a progression"):
        repeat_row((Progression(3, (1,), (1000,)), NumberList((9, 9))), 100, 10**6)


# ---- models defined by users


@dataclass(frozen=True)
class Squares:
    """Squares of ranks; not a piecewise model."""

    answer: object = None

    def values_at(self, process_count: int, ranks: Longs) -> Longs:
        return ranks**2 if self.answer is None else np.asarray(self.answer)

    def formula(self) -> str:
        return "rank^2"


def test_user_family_has_a_rank_limit_unless_piecewise() -> None:
    families = Families(ranks=(*RANK_FAMILIES, lambda columns, counts: Squares()))
    model = fit_field(fields(lambda r, n, i: r * r + i, lambda n: (3,)), families)
    assert format_formula(model) == "rank^2 + i"
    assert is_given(model, lambda r, n, i: r * r + i, lambda n: (3,), 40)
    with pytest.raises(ValueError, match="too many for a model that is not piecewise"):
        evaluate_vector(model, 1 << 26, [Progression(0, (1,), (1 << 26,))], (3,))


@pytest.mark.parametrize("answer", [[0.5] * 8, [1], 3, None])
def test_user_models_are_validated(answer: object) -> None:
    def family(columns: Sequence[Column], counts: object) -> Squares:
        return Squares(answer)

    families = Families(ranks=(*RANK_FAMILIES, family))
    with pytest.raises(NoExactModelError):
        fit_field(fields(lambda r, n: r**3, lambda n: ()), families)
