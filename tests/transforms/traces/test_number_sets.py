"""Sets of numbers as progressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from transforms.traces.number_sets import distinct, progressions_of, size
from transforms.traces.progressions import Progression

parts = st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 4)), max_size=3).flatmap(
    lambda dims: st.integers(-40, 40).map(
        lambda start: Progression(start, tuple(stride for stride, _ in dims), tuple(count for _, count in dims))
    )
)


@given(st.lists(parts, max_size=5))
def test_distinct_numbers_are_those_of_the_set(given_: list[Progression]) -> None:
    expected = sorted({number for part in given_ for number in part.values().tolist()})
    found = distinct(given_)
    assert found is not None
    assert sorted(number for part in found for number in part.values().tolist()) == expected
    assert size(given_) == len(expected)


@given(st.sets(st.integers(-50, 50), max_size=30))
def test_rising_numbers_are_their_progressions(numbers: set[int]) -> None:
    rising = np.array(sorted(numbers), np.int64)
    found = progressions_of(rising)
    assert [number for part in found for number in part.values().tolist()] == rising.tolist()


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        # rank 0 in a class of its own, and the others
        ([Progression(0), Progression(1, (1,), (999_999,))], [Progression(0, (1,), (1_000_000,))]),
        # aggregators among all
        ([Progression(0, (1,), (1 << 40,)), Progression(0, (8,), (1 << 37,))], [Progression(0, (1,), (1 << 40,))]),
        # groups of four, each again for all of its ranks
        ([Progression(0, (1, 0), (1 << 20, 4))], [Progression(0, (1,), (1 << 20,))]),
        # even and odd ones are apart, though their ranges are not
        (
            [Progression(1, (2,), (1 << 30,)), Progression(0, (4,), (1 << 30,))],
            [Progression(0, (4,), (1 << 30,)), Progression(1, (2,), (1 << 30,))],
        ),
    ],
)
def test_large_sets_are_not_listed(given_: list[Progression], expected: list[Progression]) -> None:
    assert distinct(given_) == tuple(expected)


def test_large_sets_that_lie_across_one_another_are_not_told() -> None:
    across = [Progression(0, (6,), (1 << 30,)), Progression(0, (10,), (1 << 30,))]
    assert distinct(across) is None
    assert size(across) is None
