"""Sequences of numbers as nested progressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.progressions import (
    NumberList,
    Progression,
    Stretch,
    count_distinct,
    expand_values,
    find_distinct,
    fold_ascending,
)
from tests.naive.traces import vectors as naive

dimensions = st.lists(st.tuples(st.integers(-(10**15), 10**15), st.integers(0, 4)), max_size=4)
starts = st.integers(-(10**17), 10**17)


@st.composite
def stretches(draw: st.DrawFn) -> Stretch:
    dims = draw(dimensions)
    strides, counts = tuple(stride for stride, _ in dims), tuple(count for _, count in dims)
    if draw(st.booleans()):
        return Progression(draw(starts), strides, counts)
    return NumberList(tuple(draw(st.lists(starts, max_size=4))), strides, counts)


@settings(deadline=None)
@given(st.lists(stretches(), max_size=4))
def test_values_equal_nested_loops(row: list[Stretch]) -> None:
    for stretch in row:
        assert stretch.values().tolist() == naive.numbers(stretch)
        assert stretch.size == len(naive.numbers(stretch))
    assert expand_values(tuple(row)).tolist() == naive.row(row)


@pytest.mark.parametrize(
    ("stretch", "numbers"),
    [
        (Progression(7), [7]),
        (Progression(7, (2,), (3,)), [7, 9, 11]),
        (Progression(0, (100, -1), (2, 3)), [0, -1, -2, 100, 99, 98]),
        (Progression(5, (0,), (3,)), [5, 5, 5]),
        (Progression(5, (1, 1), (0, 3)), []),
        (Progression((1 << 63) - 1, (-1,), (2,)), [(1 << 63) - 1, (1 << 63) - 2]),
        (NumberList((3, 1, 4)), [3, 1, 4]),
        (NumberList((3, 1), (10,), (2,)), [3, 1, 13, 11]),
        (NumberList(()), []),
    ],
)
def test_progression_has_the_expected_values(stretch: Stretch, numbers: list[int]) -> None:
    assert stretch.values().tolist() == numbers
    assert stretch.values().dtype == "int64"
    assert stretch.size == len(numbers)


def test_empty_row_has_no_values() -> None:
    assert expand_values(()).tolist() == []
    assert expand_values(()).dtype == "int64"


def test_sizes_need_no_expansion() -> None:
    assert Progression(0, (1, 1), (1 << 40, 1 << 40)).size == 1 << 80
    assert NumberList((1, 2), (1,), (1 << 60,)).size == 1 << 61


# ---- sets of numbers

parts = st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 4)), max_size=3).flatmap(
    lambda dims: st.integers(-40, 40).map(
        lambda start: Progression(start, tuple(stride for stride, _ in dims), tuple(count for _, count in dims))
    )
)


@given(st.lists(parts, max_size=5))
def test_distinct_numbers_equal_the_set(parts: list[Progression]) -> None:
    expected = sorted({number for part in parts for number in part.values().tolist()})
    found = find_distinct(parts)
    assert found is not None
    assert sorted(number for part in found for number in part.values().tolist()) == expected
    assert count_distinct(parts) == len(expected)


@given(st.sets(st.integers(-50, 50), max_size=30))
def test_folding_restores_ascending_numbers(numbers: set[int]) -> None:
    rising = np.array(sorted(numbers), np.int64)
    found = fold_ascending(rising)
    assert [number for part in found for number in part.values().tolist()] == rising.tolist()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # rank 0 in a separate class, and the others
        ([Progression(0), Progression(1, (1,), (999_999,))], [Progression(0, (1,), (1_000_000,))]),
        # aggregators among all
        ([Progression(0, (1,), (1 << 40,)), Progression(0, (8,), (1 << 37,))], [Progression(0, (1,), (1 << 40,))]),
        # groups of four, repeated for each of their ranks
        ([Progression(0, (1, 0), (1 << 20, 4))], [Progression(0, (1,), (1 << 20,))]),
        # even and odd ranks are disjoint, although their ranges overlap
        (
            [Progression(1, (2,), (1 << 30,)), Progression(0, (4,), (1 << 30,))],
            [Progression(0, (4,), (1 << 30,)), Progression(1, (2,), (1 << 30,))],
        ),
    ],
)
def test_large_sets_are_not_expanded(parts: list[Progression], expected: list[Progression]) -> None:
    assert find_distinct(parts) == tuple(expected)


def test_large_irregular_sets_are_unknown() -> None:
    across = [Progression(0, (6,), (1 << 30,)), Progression(0, (10,), (1 << 30,))]
    assert find_distinct(across) is None
    assert count_distinct(across) is None
