"""Rank lists are split into pieces on which group and member numbers are linear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.extrapolation.rank_pieces import MAX_PIECES, make_progression, split_at, split_by_groups
from iosig.transforms.traces.progressions import Progression, expand_values


@st.composite
def rising(draw: st.DrawFn) -> Progression:
    """Draw a rank list with strides that exceed the extent of the inner dimensions."""
    dimensions: list[tuple[int, int]] = []
    inner = 0
    for _ in range(draw(st.integers(0, 3))):
        stride = inner + draw(st.integers(1, 6))
        count = draw(st.integers(2, 5))
        dimensions.insert(0, (stride, count))
        inner += stride * (count - 1)
    return make_progression(draw(st.integers(0, 20)), *dimensions)


def is_even(piece: Progression, numbers: np.ndarray) -> bool:
    """Return whether the numbers of a piece increase by a constant step along each dimension."""
    table = numbers.reshape(piece.counts or (1,))
    return all(
        (steps == steps.reshape(-1)[0]).all() for axis in range(table.ndim) if (steps := np.diff(table, axis=axis)).size
    )


def test_progression_drops_dimensions_of_one_member() -> None:
    assert make_progression(3, (4, 1), (1, 5)) == Progression(3, (1,), (5,))
    assert make_progression(3) == Progression(3)


@settings(deadline=None)
@given(rising(), st.integers(-3, 400))
def test_split_pieces_lie_on_one_side_of_the_boundary(ranks: Progression, first: int) -> None:
    pieces = split_at(ranks, first)
    assert expand_values(tuple(pieces)).tolist() == ranks.values().tolist()
    for piece in pieces:
        is_before = piece.values() < first
        assert is_before.all() or not is_before.any()
    assert len(pieces) <= 2 * len(ranks.counts) + 1


@settings(deadline=None)
@given(rising(), st.integers(1, 40))
def test_group_and_member_numbers_are_linear_on_pieces(ranks: Progression, size: int) -> None:
    pieces = split_by_groups(ranks, size)
    assert pieces is not None
    assert sorted(expand_values(tuple(pieces)).tolist()) == ranks.values().tolist()
    for piece in pieces:
        own = piece.values()
        assert (np.diff(own) > 0).all()
        assert is_even(piece, own // size)
        assert is_even(piece, own % size)


def test_complete_groups_are_merged_into_one_piece() -> None:
    assert split_by_groups(Progression(0, (1,), (10**6,)), 4) == [Progression(0, (4, 1), (250_000, 4))]
    assert split_by_groups(Progression(1, (1,), (10,)), 4) == [
        Progression(1, (1,), (3,)),
        Progression(4, (1,), (4,)),
        Progression(8, (1,), (3,)),
    ]
    assert split_by_groups(Progression(0, (4,), (5,)), 4) == [Progression(0, (4,), (5,))]


@pytest.mark.parametrize("size", [MAX_PIECES * 2 + 1, 10**9 + 7])
def test_ranks_with_too_many_alignments_are_not_split(size: int) -> None:
    assert split_by_groups(Progression(0, (1 << 12, 1), (1 << 15, 3)), size) is None
