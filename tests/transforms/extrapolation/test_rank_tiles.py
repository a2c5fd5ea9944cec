from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from transforms.extrapolation.rank_tiles import Tiles
from transforms.traces.progressions import Progression, values
from transforms.traces.vectors import rank_lists


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_what_is_left_is_what_nobody_took(owners: list[int]) -> None:
    tiles = Tiles(len(owners))
    for owner in (0, 1):
        for ranks in _lists([rank for rank, own in enumerate(owners) if own == owner]):
            tiles.take(ranks)
    left = [rank for rank, own in enumerate(owners) if own > 1]
    assert sorted(values(tiles.free()).tolist()) == left
    assert tiles.first_free() == (left[0] if left else None)


def _lists(ranks: list[int]) -> tuple[Progression, ...]:
    return rank_lists(values(tuple(Progression(rank) for rank in ranks)))


def test_a_rank_is_taken_once() -> None:
    tiles = Tiles(20)
    tiles.take(Progression(0, (4,), (5,)))
    with pytest.raises(ValueError, match="rank 8 would be in two classes"):
        tiles.take(Progression(1, (6, 1), (2, 3)))
    assert tiles.free() == (Progression(1, (4, 1), (5, 3)),)


def test_millions_of_ranks_are_few_lists() -> None:
    tiles = Tiles(4_000_001)
    tiles.take(Progression(0, (4,), (1_000_000,)))
    assert tiles.free() == (Progression(1, (4, 1), (999_999, 3)), Progression(3_999_997, (1,), (4,)))
