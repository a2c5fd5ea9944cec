from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.extrapolation.count_models import Ambiguous, NotWhole
from iosig.transforms.extrapolation.rank_models import (
    Affine,
    Column,
    Grouped,
    Shifted,
    Single,
    affine,
    grouped,
    shifted,
    single,
)
from iosig.transforms.traces.progressions import Progression, values
from tests.budget import examples

COUNTS = (8, 12, 16, 24)
Longs = npt.NDArray[np.int64]
#: of n: the ranks of a class
Ranks = Callable[[int], Sequence[int]]


def everyone(n: int) -> range:
    return range(n)


def columns(value: Callable[[int, int], int], ranks: Ranks = everyone, counts: Sequence[int] = COUNTS) -> list[Column]:
    return [
        Column(n, np.array(list(ranks(n)), np.int64), np.array([value(r, n) for r in ranks(n)], np.int64))
        for n in counts
    ]


def given_at(
    model: Affine | Shifted | Grouped | Single, value: Callable[[int, int], int], n: int, ranks: Ranks = everyone
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
def test_affine(value: Callable[[int, int], int], formula: str) -> None:
    model = affine(columns(value))
    assert model is not None
    assert model.formula() == formula
    assert all(given_at(model, value, n) for n in (20, 48, 240))


def test_affine_of_roots_of_groups_has_a_slope_that_is_no_whole_number() -> None:
    def roots(n: int) -> range:
        return range(0, n, 4)

    model = affine(columns(lambda r, n: r // 4, roots))
    assert model is not None
    assert model.formula() == "rank/4"
    assert given_at(model, lambda r, n: r // 4, 20, roots)
    with pytest.raises(NotWhole, match="rank/4 is 1/4 at rank 1"):
        model.values_at(20, np.array([0, 1]))


def test_a_slope_that_was_whole_must_stay_so_where_the_product_would_be() -> None:
    model = affine(columns(lambda r, n: r * (n // 4), lambda n: range(0, n, 2)))
    assert model is not None
    with pytest.raises(NotWhole, match="n/4 is 3/2"):
        model.values_at(6, np.array([0, 2, 4]))


def test_where_no_slope_is_seen_there_is_none() -> None:
    assert affine(columns(lambda r, n: 5, lambda n: [0])) is None
    assert affine(columns(lambda r, n: 5, lambda n: range(1 if n < 24 else 2))) is None
    assert affine(columns(lambda r, n: r * r)) is None
    assert affine(columns(lambda r, n: n * n * r)) is None


def test_numbers_beyond_64_bits_are_refused() -> None:
    model = affine(columns(lambda r, n: r << 50))
    assert model is not None
    with pytest.raises(NotWhole, match="beyond 64 bits"):
        model.values_at(1 << 20, np.array([1 << 19]))


# ---- shifted


@pytest.mark.parametrize("shift", [1, 3, 7, -2])
@pytest.mark.parametrize("factor", [1, 100, -5])
def test_shifted(shift: int, factor: int) -> None:
    def value(r: int, n: int) -> int:
        return (r + shift) % n * factor + 3

    model = shifted(columns(value))
    assert model is not None
    assert all(given_at(model, value, n) for n in (5, 8, 20, 1000))


@pytest.mark.parametrize(
    ("value", "formula"),
    [
        (lambda r, n: (r + 1) % n, "((rank + 1) mod n)"),
        (lambda r, n: (r + 5) % n * 8, "((rank + 5) mod n)*8"),
        (lambda r, n: (r - 2) % n, "((rank + n - 2) mod n)"),
        (lambda r, n: (r + n // 2) % n * (960 // n) + 7, "((rank + n/2) mod n)*960/n + 7"),
    ],
)
def test_texts_of_shifts(value: Callable[[int, int], int], formula: str) -> None:
    model = shifted(columns(value))
    assert model is not None
    assert model.formula() == formula


def test_what_turns_otherwise_is_no_shift() -> None:
    assert shifted(columns(lambda r, n: r)) is None
    assert shifted(columns(lambda r, n: (r + 1) % n + (r > n // 2))) is None
    assert shifted(columns(lambda r, n: (r + 12) % n)) is None
    assert shifted(columns(lambda r, n: r if r < 4 else r + 10)) is None


# ---- groups


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_groups_of_a_fixed_size(size: int) -> None:
    def value(r: int, n: int) -> int:
        return r // size * 4096 + r % size * 8 + 5

    model = grouped(columns(value))
    assert model is not None
    assert model.formula() == f"4096*floor(rank/{size}) + 8*(rank mod {size}) + 5"
    assert all(given_at(model, value, n) for n in (1, 6, 7, 20, 100))


def test_as_many_groups_at_any_count() -> None:
    def value(r: int, n: int) -> int:
        return r // (n // 4) * 8 * n + r % (n // 4)

    model = grouped(columns(value))
    assert model is not None
    assert model.formula() == "8*n*floor(rank/(n/4)) + (rank mod (n/4))"
    assert given_at(model, value, 20)
    with pytest.raises(NotWhole, match="the group's size n/4 is 3/2"):
        model.values_at(6, np.arange(6))


def test_sizes_that_cannot_be_told_apart_are_ambiguous_where_it_matters() -> None:
    def roots(n: int) -> range:
        return range(0, n, 4)

    model = grouped(columns(lambda r, n: r // 8, roots))
    assert model is not None
    assert model.rivals
    assert given_at(model, lambda r, n: r // 8, 20, roots)
    with pytest.raises(Ambiguous, match="ambiguous: floor"):
        model.values_at(64, np.arange(0, 64, 4))


def test_a_group_that_is_seen_once_is_no_evidence() -> None:
    assert grouped(columns(lambda r, n: r // 20, counts=(8, 12, 16, 24))) is None
    assert grouped(columns(lambda r, n: r)) is None


def test_many_ranks_without_a_rule_are_soon_seen_to_have_none() -> None:
    generator = np.random.default_rng(1)
    found = [Column(n, np.arange(n), generator.integers(0, 10**6, n)) for n in (4096, 5120, 6144, 8192)]
    assert grouped(found) is None


# ---- single ranks


def test_single_ranks() -> None:
    def ends(n: int) -> list[int]:
        return [0, n - 1]

    model = single(columns(lambda r, n: 3 if r == 0 else n, ends))
    assert model is not None
    assert model.formula() == "by rank: 3, n"
    assert given_at(model, lambda r, n: 3 if r == 0 else n, 20, ends)
    with pytest.raises(NotWhole, match="known of a class of 2 ranks, not of 3"):
        model.values_at(20, np.arange(3))
    assert single(columns(lambda r, n: r)) is None
    one = single(columns(lambda r, n: n - 1, lambda n: [n - 1]))
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
def test_numbers_grow_evenly_along_pieces(shift: int, size: int, dimensions: list[tuple[int, int]], start: int) -> None:
    strides, counts, inner = [], [], 0
    for gap, count in reversed(dimensions):
        strides.insert(0, inner + gap)
        counts.insert(0, count)
        inner += strides[0] * (count - 1)
    ranks = Progression(start, tuple(strides), tuple(counts))
    n = start + inner + 1
    models = [
        shifted(columns(lambda r, n: (r + shift % 7) % n * 10)),
        grouped(columns(lambda r, n: r // size * 100 + r % size)),
        affine(columns(lambda r, n: 3 * r + n)),
    ]
    for model in (model for model in models if model is not None):
        pieces = model.pieces_at(n, ranks)
        assert pieces is not None
        assert sorted(values(tuple(pieces)).tolist()) == ranks.values().tolist()
        for piece in pieces:
            table = model.values_at(n, piece.values()).reshape(piece.counts or (1,))
            for axis in range(len(piece.counts)):
                assert len(set(np.diff(table, axis=axis).reshape(-1).tolist())) <= 1
