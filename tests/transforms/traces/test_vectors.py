"""Sequences of numbers, and values by rank, folded into nested progressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces import vectors
from iosig.transforms.traces.progressions import NumberList, Progression, Stretch, expand_values
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, Share, Vector
from iosig.transforms.traces.vectors import (
    RankClaims,
    expand_vector,
    fold_numbers,
    fold_values,
    rank_lists,
    vector_bounds,
)
from tests.budget import examples
from tests.compressed import compressed_traces, nodes
from tests.naive.traces import vectors as naive

Longs = npt.NDArray[np.int64]
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
#: Range of numbers in templates: 18 digits, with a sign.
NUMBERS = st.one_of(st.integers(0, 3), st.integers(-9, 99), st.integers(1 - 10**18, 10**18 - 1))


def longs(*numbers: int) -> Longs:
    return np.array(numbers, np.int64)


def all_ranks(count: int) -> Longs:
    return np.arange(count, dtype=np.int64)


@st.composite
def rows(draw: st.DrawFn) -> list[int]:
    """Draw sequences of progressions and other numbers, sometimes repeated as a whole."""
    found: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            found += draw(st.lists(NUMBERS, max_size=5))
        else:
            strides, counts = draw(st.lists(NUMBERS, max_size=3)), draw(st.lists(st.integers(1, 5), max_size=3))
            depth = min(len(strides), len(counts))
            found += naive.numbers(Progression(draw(NUMBERS), tuple(strides[:depth]), tuple(counts[:depth])))
    step, times = draw(NUMBERS), draw(st.integers(1, 4))
    return [number + step * index for index in range(times) for number in found]


# ---- sequences of numbers


@settings(deadline=None)
@given(rows())
def test_folding_is_lossless(numbers: list[int]) -> None:
    numbers = [max(min(number, (1 << 63) - 1), -(1 << 63)) for number in numbers]
    assert naive.row(fold_numbers(longs(*numbers))) == numbers


@settings(deadline=None)
@given(st.lists(st.one_of(LONG, st.sampled_from([(1 << 63) - 1, -(1 << 63), 0, -1])), max_size=12))
def test_folding_of_the_full_64_bit_range_is_lossless(numbers: list[int]) -> None:
    assert naive.row(fold_numbers(longs(*numbers))) == numbers


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(2, 5), st.integers(1, 10**12)), max_size=4), NUMBERS, st.booleans())
def test_nested_progressions_are_found(form: list[tuple[int, int]], start: int, falls: bool) -> None:
    """Each stride is larger than the extent of the progressions inside it."""
    strides: list[int] = []
    reach = 0
    for count, step in reversed(form):
        strides.insert(0, reach + max(strides, default=0) + step)
        reach += strides[0] * (count - 1)
    counts = [count for count, _ in form]
    numbers = naive.numbers(Progression(start, tuple(-s if falls else s for s in strides), tuple(counts)))
    (found,) = fold_numbers(longs(*numbers))
    assert naive.numbers(found) == numbers
    assert isinstance(found, Progression)
    assert found.counts == tuple(counts)


@pytest.mark.parametrize(
    ("numbers", "stretches"),
    [
        ([5], (Progression(5),)),
        ([5, 5, 5], (Progression(5, (0,), (3,)),)),
        ([0, 1, 2, 10, 11, 12], (Progression(0, (10, 1), (2, 3)),)),
        ([0, 1, 2, 3, 4, 5], (Progression(0, (1,), (6,)),)),
        # A single stride does not shorten the longer progression after it.
        ([100, 0, 8, 16, 24], (Progression(100), Progression(0, (8,), (4,)))),
        ([5, 1, 4, 1, 5, 9, 2], (NumberList((5, 1, 4, 1, 5, 9, 2)),)),
        # Parts of different sizes, repeated at each step.
        ([0, 7, 9, 100, 107, 109, 200, 207, 209, 300, 307, 309], (NumberList((0, 7, 9), (100,), (4,)),)),
        # Repetitions at irregular starts are not shorter when folded.
        (
            [start + number for start in (0, 900, 37, 411, 8, 77) for number in (0, 7, 9)],
            (NumberList((0, 7, 9, 900, 907, 909, 37, 44, 46, 411, 418, 420, 8, 15, 17, 77, 84, 86)),),
        ),
        ([0, 1, 2, 3, 90, 80, 70, 60, 50], (Progression(0, (1,), (4,)), Progression(90, (-10,), (5,)))),
        (
            [0, 1, 2, 3, 77, 60, 50, 40, 30],
            (Progression(0, (1,), (4,)), Progression(77), Progression(60, (-10,), (4,))),
        ),
        ([], ()),
    ],
)
def test_example_numbers_have_the_expected_progressions(numbers: list[int], stretches: tuple[Stretch, ...]) -> None:
    assert fold_numbers(longs(*numbers)) == stretches


def test_same_rule_has_the_same_form_at_all_sizes() -> None:
    shapes = {
        tuple(
            len(stretch.counts)
            for stretch in fold_numbers(np.add.outer(np.arange(n) * 960, np.arange(m) * 8).reshape(-1))
        )
        for n in (3, 8, 12, 300)
        for m in (3, 7, 40)
    }
    assert shapes == {(2,)}


def test_long_irregular_rows_are_listed() -> None:
    numbers = np.random.default_rng(3).integers(0, 10**12, 30_000)
    assert fold_numbers(numbers) == (NumberList(tuple(numbers.tolist())),)


def test_long_rows_with_few_exceptions_are_folded() -> None:
    numbers = np.concatenate([longs(9, 4, 7, 1), np.arange(100_000) * 4096])
    assert fold_numbers(numbers) == (NumberList((9, 4, 7, 1)), Progression(0, (4096,), (100_000,)))


# ---- rank lists


@settings(deadline=None)
@given(st.sets(st.integers(0, 200), min_size=1))
def test_rank_lists_contain_the_ranks_and_ascend(ranks: set[int]) -> None:
    found = rank_lists(longs(*sorted(ranks)))
    assert naive.row(found) == sorted(ranks)
    for one in found:
        inner = 0
        for stride, count in zip(reversed(one.strides), reversed(one.counts), strict=True):
            assert stride > inner
            inner += stride * (count - 1)


def test_groups_of_ranks_are_one_list() -> None:
    ranks = np.arange(100_000)
    assert rank_lists(ranks) == (Progression(0, (1,), (100_000,)),)
    assert rank_lists(ranks[ranks % 4 != 0]) == (Progression(1, (4, 1), (25_000, 3)),)
    assert rank_lists(ranks[ranks % 8 == 3]) == (Progression(3, (8,), (12_500,)),)


# ---- values by rank


@st.composite
def tables(draw: st.DrawFn) -> tuple[Longs, Longs]:
    """Draw increasing ranks and their values, most of them regular."""
    ranks = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=16)))
    length = draw(st.integers(0, 5))
    first, step = (draw(st.lists(NUMBERS, min_size=length, max_size=length)) for _ in range(2))
    group = draw(st.integers(1, 5))
    table = [[a + b // 64 * (rank % group) for a, b in zip(first, step, strict=True)] for rank in ranks]
    for place in draw(st.sets(st.integers(0, len(ranks) - 1), max_size=3)):
        table[place] = draw(st.lists(NUMBERS, min_size=length, max_size=length))
    return longs(*ranks), np.array(table, np.int64).reshape(len(ranks), length)


@settings(deadline=None)
@given(tables())
def test_vectors_restore_tables(table: tuple[Longs, Longs]) -> None:
    ranks, rows = table
    vector = fold_values(ranks, rows)
    expected = dict(zip(ranks.tolist(), rows.tolist(), strict=True))
    assert naive.table(vector) == expected
    np.testing.assert_array_equal(expand_vector(vector, ranks), rows)
    if rows.size:
        assert vector_bounds(vector) == (rows.min(), rows.max())


@settings(deadline=None)
@given(st.lists(st.lists(LONG, min_size=2, max_size=2), min_size=1, max_size=6))
def test_vectors_of_the_full_64_bit_range_are_restored(rows: list[list[int]]) -> None:
    vector = fold_values(all_ranks(len(rows)), np.array(rows, np.int64))
    assert naive.table(vector) == dict(enumerate(rows))
    np.testing.assert_array_equal(expand_vector(vector, all_ranks(len(rows))), rows)
    least, most = vector_bounds(vector)
    assert least <= min(map(min, rows)) <= max(map(max, rows)) <= most


@pytest.mark.parametrize(
    "rule",
    [
        lambda rank, step: 960 // 8 * rank + 960 * step,
        lambda rank, step: rank // 4 * 1000 + rank % 4 * 8 + step,
        lambda rank, step: 512 + 0 * (rank + step),
        lambda rank, step: (rank + 1) * step,
    ],
    ids=["strong", "groups", "constant", "slope"],
)
@pytest.mark.parametrize("count", [8, 24, 1000])
def test_rule_is_one_share_for_any_number_of_ranks(rule: Callable[[Longs, Longs], Longs], count: int) -> None:
    rows = rule(all_ranks(count)[:, None], np.arange(6)[None, :])
    (share,) = fold_values(all_ranks(count), rows)
    assert share.ranks.size == count
    assert {len(row) for row in (share.values, *share.shifts)} == {1}


def test_rotation_is_two_shares() -> None:
    rows = ((all_ranks(64) + 3) % 64 * 100)[:, None]
    assert [share.ranks.size for share in fold_values(all_ranks(64), rows)] == [61, 3]


def test_ranks_with_different_lengths_have_no_table() -> None:
    vector = (Share(Progression(0), (), (Progression(1),)), Share(Progression(1), (), (Progression(1, (1,), (2,)),)))
    assert expand_vector(vector, all_ranks(2)).shape == (2, 0)
    assert vector_bounds(vector) == (1, 2)


# ---- bounds


@settings(deadline=None, max_examples=examples(12))
@given(compressed_traces())
def test_bounds_equal_bounds_of_all_values(trace: CompressedTrace) -> None:
    def vectors_in(trace: CompressedTrace) -> list[Vector]:
        every = [node for rank_class in trace.classes for node in nodes(rank_class.body)]
        slots = [slot.vector for node in every if isinstance(node, Call) for slot in node.slots]
        return slots + [node.counts for node in every if isinstance(node, Loop)]

    for vector in vectors_in(trace):
        every = [value for own in naive.table(vector).values() for value in own]
        assert vector_bounds(vector) == (min(every), max(every))


def test_bounds_of_opposing_shifts_are_exact() -> None:
    """Rank 0 counts up and rank 1 down: the separate bounds of the progressions are wider."""
    ranks = Progression(0, (1,), (2,))
    vector = (Share(ranks, ((Progression(9, (-2,), (10,)),),), (Progression(0, (1,), (10,)),)),)
    assert vector_bounds(vector) == (0, 9)


def test_bounds_without_values_are_zero() -> None:
    none = Share(Progression(0, (1,), (2,)), ((),), ())
    assert vector_bounds((none,)) == (0, 0)
    assert vector_bounds((none, Share(Progression(2), (), (Progression(7),)))) == (7, 7)


def test_bounds_of_huge_values_and_rows_need_no_expansion() -> None:
    ranks = Progression(0, (1,), (5,))
    assert vector_bounds((Share(ranks, ((Progression(1 << 62),),), (Progression(0),)),)) == (0, 1 << 64)
    endless = Progression(0, (1,), (1 << 50,))
    assert vector_bounds((Share(Progression(0), (), (endless,)),)) == (0, (1 << 50) - 1)


def test_wide_bounds_contain_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of a sequence too long to examine may be too wide, but never too narrow."""
    monkeypatch.setattr(vectors, "_SAMPLE", 4)
    ranks = Progression(0, (1,), (2,))
    vector = (Share(ranks, ((Progression(9, (-2,), (10,)),),), (Progression(0, (1,), (10,)),)),)
    assert vector_bounds(vector) == (-9, 18)


# ---- selection of ranks


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_unclaimed_ranks_are_the_remaining_ranks(owners: list[int]) -> None:
    claims = RankClaims(len(owners))
    for owner in (0, 1):
        for ranks in _lists([rank for rank, own in enumerate(owners) if own == owner]):
            claims.claim(ranks)
    left = [rank for rank, own in enumerate(owners) if own > 1]
    assert sorted(expand_values(claims.free_ranks()).tolist()) == left
    assert claims.first_free() == (left[0] if left else None)


def _lists(ranks: list[int]) -> tuple[Progression, ...]:
    return rank_lists(expand_values(tuple(Progression(rank) for rank in ranks)))


def test_ranks_claimed_twice_are_rejected() -> None:
    claims = RankClaims(20)
    claims.claim(Progression(0, (4,), (5,)))
    with pytest.raises(ValueError, match="rank 8 is in two classes"):
        claims.claim(Progression(1, (6, 1), (2, 3)))
    assert claims.free_ranks() == (Progression(1, (4, 1), (5, 3)),)


def test_millions_of_ranks_are_few_lists() -> None:
    claims = RankClaims(4_000_001)
    claims.claim(Progression(0, (4,), (1_000_000,)))
    assert claims.free_ranks() == (Progression(1, (4, 1), (999_999, 3)), Progression(3_999_997, (1,), (4,)))
