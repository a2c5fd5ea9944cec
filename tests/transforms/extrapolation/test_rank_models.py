"""Models of values over ranks: affine functions, rotations, groups, and single ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.extrapolation.count_models import AmbiguousModelError, NotAnIntegerError
from iosig.transforms.extrapolation.rank_models import (
    Affine,
    Column,
    GroupedModel,
    PerRank,
    RotatedModel,
    fit_affine,
    fit_groups,
    fit_per_rank,
    fit_rotation,
)
from iosig.transforms.traces.progressions import Progression, expand_values
from tests.budget import examples

COUNTS = (8, 12, 16, 24)
Longs = npt.NDArray[np.int64]
#: Ranks of a class as a function of the rank count.
Ranks = Callable[[int], Sequence[int]]


def everyone(n: int) -> range:
    return range(n)


def columns(value: Callable[[int, int], int], ranks: Ranks = everyone, counts: Sequence[int] = COUNTS) -> list[Column]:
    return [
        Column(n, np.array(list(ranks(n)), np.int64), np.array([value(r, n) for r in ranks(n)], np.int64))
        for n in counts
    ]


def is_exact_at(
    model: Affine | RotatedModel | GroupedModel | PerRank,
    value: Callable[[int, int], int],
    n: int,
    ranks: Ranks = everyone,
) -> bool:
    own = list(ranks(n))
    return model.values_at(n, np.array(own, np.int64)).tolist() == [value(rank, n) for rank in own]


# ---- affine


@pytest.mark.parametrize(
    ("value", "formula"),
    [
        (lambda r, n: 7, "7"),
        (lambda r, n: r, "rank"),
        (lambda r, n: 10 * r + n, "10*rank + n"),
        (lambda r, n: r * (960 // n), "960/n*rank"),
        (lambda r, n: (n - 1 - r) * 3, "-3*rank + 3*n - 3"),
        (lambda r, n: r * (960 // n + 8), "(960/n + 8)*rank"),
        (lambda r, n: 1 << 45, str(1 << 45)),
        (lambda r, n: r << 40, f"{1 << 40}*rank"),
    ],
)
def test_fit_recovers_affine_models(value: Callable[[int, int], int], formula: str) -> None:
    model = fit_affine(columns(value))
    assert model is not None
    assert model.formula() == formula
    assert all(is_exact_at(model, value, n) for n in (20, 48, 240))


def test_affine_model_of_group_roots_has_a_fractional_slope() -> None:
    def roots(n: int) -> range:
        return range(0, n, 4)

    model = fit_affine(columns(lambda r, n: r // 4, roots))
    assert model is not None
    assert model.formula() == "rank/4"
    assert is_exact_at(model, lambda r, n: r // 4, 20, roots)
    with pytest.raises(NotAnIntegerError, match="rank/4 is 1/4 at rank 1"):
        model.values_at(20, np.array([0, 1]))


def test_integer_slope_must_remain_an_integer() -> None:
    model = fit_affine(columns(lambda r, n: r * (n // 4), lambda n: range(0, n, 2)))
    assert model is not None
    with pytest.raises(NotAnIntegerError, match="n/4 is 3/2"):
        model.values_at(6, np.array([0, 2, 4]))


def test_affine_fit_needs_two_ranks_and_linear_values() -> None:
    assert fit_affine(columns(lambda r, n: 5, lambda n: [0])) is None
    assert fit_affine(columns(lambda r, n: 5, lambda n: range(1 if n < 24 else 2))) is None
    assert fit_affine(columns(lambda r, n: r * r)) is None
    assert fit_affine(columns(lambda r, n: n * n * r)) is None


def test_numbers_beyond_64_bits_are_rejected() -> None:
    model = fit_affine(columns(lambda r, n: r << 50))
    assert model is not None
    with pytest.raises(NotAnIntegerError, match="exceeds 64 bits"):
        model.values_at(1 << 20, np.array([1 << 19]))


# ---- rotations


@pytest.mark.parametrize("shift", [1, 3, 7, -2])
@pytest.mark.parametrize("factor", [1, 100, -5])
def test_fit_recovers_rotations(shift: int, factor: int) -> None:
    def value(r: int, n: int) -> int:
        return (r + shift) % n * factor + 3

    model = fit_rotation(columns(value))
    assert model is not None
    assert all(is_exact_at(model, value, n) for n in (5, 8, 20, 1000))


@pytest.mark.parametrize(
    ("value", "formula"),
    [
        (lambda r, n: (r + 1) % n, "((rank + 1) mod n)"),
        (lambda r, n: (r + 5) % n * 8, "((rank + 5) mod n)*8"),
        (lambda r, n: (r - 2) % n, "((rank + n - 2) mod n)"),
        (lambda r, n: (r + n // 2) % n * (960 // n) + 7, "((rank + n/2) mod n)*960/n + 7"),
    ],
)
def test_rotation_formats_its_formula(value: Callable[[int, int], int], formula: str) -> None:
    model = fit_rotation(columns(value))
    assert model is not None
    assert model.formula() == formula


def test_columns_that_are_not_rotations_have_no_rotation_model() -> None:
    assert fit_rotation(columns(lambda r, n: r)) is None
    assert fit_rotation(columns(lambda r, n: (r + 1) % n + (r > n // 2))) is None
    assert fit_rotation(columns(lambda r, n: (r + 12) % n)) is None
    assert fit_rotation(columns(lambda r, n: r if r < 4 else r + 10)) is None


# ---- groups


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_fit_recovers_groups_of_fixed_size(size: int) -> None:
    def value(r: int, n: int) -> int:
        return r // size * 4096 + r % size * 8 + 5

    model = fit_groups(columns(value))
    assert model is not None
    assert model.formula() == f"4096*floor(rank/{size}) + 8*(rank mod {size}) + 5"
    assert all(is_exact_at(model, value, n) for n in (1, 6, 7, 20, 100))


def test_fit_recovers_a_fixed_number_of_groups() -> None:
    def value(r: int, n: int) -> int:
        return r // (n // 4) * 8 * n + r % (n // 4)

    model = fit_groups(columns(value))
    assert model is not None
    assert model.formula() == "8*n*floor(rank/(n/4)) + (rank mod (n/4))"
    assert is_exact_at(model, value, 20)
    with pytest.raises(NotAnIntegerError, match="the group's size n/4 is 3/2"):
        model.values_at(6, np.arange(6))


def test_equivalent_group_sizes_are_ambiguous() -> None:
    def roots(n: int) -> range:
        return range(0, n, 4)

    model = fit_groups(columns(lambda r, n: r // 8, roots))
    assert model is not None
    assert model.rivals
    assert is_exact_at(model, lambda r, n: r // 8, 20, roots)
    with pytest.raises(AmbiguousModelError, match="ambiguous: floor"):
        model.values_at(64, np.arange(0, 64, 4))


def test_single_group_is_insufficient() -> None:
    assert fit_groups(columns(lambda r, n: r // 20, counts=(8, 12, 16, 24))) is None
    assert fit_groups(columns(lambda r, n: r)) is None


def test_many_irregular_ranks_are_rejected_quickly() -> None:
    generator = np.random.default_rng(1)
    found = [Column(n, np.arange(n), generator.integers(0, 10**6, n)) for n in (4096, 5120, 6144, 8192)]
    assert fit_groups(found) is None


# ---- single ranks


def test_fit_recovers_models_per_rank() -> None:
    def ends(n: int) -> list[int]:
        return [0, n - 1]

    model = fit_per_rank(columns(lambda r, n: 3 if r == 0 else n, ends))
    assert model is not None
    assert model.formula() == "by rank: 3, n"
    assert is_exact_at(model, lambda r, n: 3 if r == 0 else n, 20, ends)
    with pytest.raises(NotAnIntegerError, match="known for a class of 2 ranks, not of 3"):
        model.values_at(20, np.arange(3))
    assert fit_per_rank(columns(lambda r, n: r)) is None
    one = fit_per_rank(columns(lambda r, n: n - 1, lambda n: [n - 1]))
    assert one is not None
    assert one.formula() == "n - 1"


# ---- pieces


@settings(deadline=None, max_examples=examples(60))
@given(
    st.integers(1, 9),
    st.sampled_from([1, 2, 3, 4, 8]),
    st.lists(st.tuples(st.integers(1, 3), st.integers(2, 4)), max_size=2),
    st.integers(0, 9),
)
def test_models_are_linear_on_pieces(shift: int, size: int, dimensions: list[tuple[int, int]], start: int) -> None:
    strides, counts, inner = [], [], 0
    for gap, count in reversed(dimensions):
        strides.insert(0, inner + gap)
        counts.insert(0, count)
        inner += strides[0] * (count - 1)
    ranks = Progression(start, tuple(strides), tuple(counts))
    n = start + inner + 1
    models = [
        fit_rotation(columns(lambda r, n: (r + shift % 7) % n * 10)),
        fit_groups(columns(lambda r, n: r // size * 100 + r % size)),
        fit_affine(columns(lambda r, n: 3 * r + n)),
    ]
    for model in (model for model in models if model is not None):
        pieces = model.linear_pieces(n, ranks)
        assert pieces is not None
        assert sorted(expand_values(tuple(pieces)).tolist()) == ranks.values().tolist()
        for piece in pieces:
            table = model.values_at(n, piece.values()).reshape(piece.counts or (1,))
            for axis in range(len(piece.counts)):
                assert len(set(np.diff(table, axis=axis).reshape(-1).tolist())) <= 1
