"""Blocks of ranks in which values are linear in the rank."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.progressions import NumberList, Progression
from iosig.transforms.traces.rank_blocks import (
    block_from_share,
    divide_block,
    divide_ranks,
    find_active_ranks,
    find_block,
)
from iosig.transforms.traces.trace import Share, Vector
from tests.budget import examples
from tests.naive.traces import expansion as naive


@st.composite
def vectors(draw: st.DrawFn, process_count: int) -> Vector:
    """Draw values of all ranks, in random blocks, in rows, or in groups of two or three."""
    edges = sorted({0, process_count, *draw(st.sets(st.integers(0, process_count), max_size=2))})
    shares = []
    for low, high in pairwise(edges):
        group = draw(st.sampled_from([part for part in (1, 2, 3) if (high - low) % part == 0]))
        counts = ((high - low) // group, group) if group > 1 else (high - low,)
        strides = (group, 1) if group > 1 else (1,)
        steps = st.integers(0, 3)
        shifts = tuple((NumberList((draw(steps), draw(steps))),) for _ in counts)
        values = (NumberList((draw(st.integers(0, 9)), draw(st.integers(0, 9)))),)
        shares.append(Share(Progression(low, strides, counts), shifts, values))
    return tuple(shares)


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_blocks_have_the_values_of_their_ranks(data: st.DataObject) -> None:
    process_count = data.draw(st.integers(1, 24))
    vectors_ = [data.draw(vectors(process_count)) for _ in range(data.draw(st.integers(1, 3)))]
    found = divide_ranks(vectors_)
    assert found is not None
    assert sorted(naive.numbers(ranks)[place] for ranks in found for place in range(ranks.size)) == [
        *range(process_count)
    ]
    for vector in vectors_:
        for ranks in found:
            block = find_block(vector, ranks)
            rows = [naive.values(vector, rank) for rank in naive.numbers(ranks)]
            assert block.total() == sum(map(sum, rows))
            assert block.totals().tolist() == [sum(column) for column in zip(*rows, strict=True)]
            # Rows with cancelling deviations are not examined.
            assert not block.is_uniform() or all(row == rows[0] for row in rows)
            assert not block.is_constant() or len({value for row in rows for value in row}) == 1
            assert block.lower_bound() <= min(map(min, rows))
            assert block.first == rows[0][0]
            busy = {rank for rank, row in zip(naive.numbers(ranks), rows, strict=True) if any(row)}
            assert naive.ranks(find_active_ranks(ranks, block)) == busy


def test_minimum_is_exact_if_the_bound_is_negative() -> None:
    ranks = Progression(0, (1,), (4,))
    falling = Share(ranks, ((NumberList((-1, 0)),),), (NumberList((3, 0)),))
    assert block_from_share(falling).lower_bound() == 0


def test_million_ranks_need_few_blocks() -> None:
    n = 1_000_000
    all_ranks = (Share(Progression(0, (1,), (n,)), ((Progression(1),),), (Progression(0),)),)
    groups = (Share(Progression(0, (4, 1), (n // 4, 4)), ((Progression(1),), (Progression(0),)), (Progression(7),)),)
    first = (
        Share(Progression(0), (), (Progression(1),)),
        Share(Progression(1, (1,), (n - 1,)), ((Progression(0),),), (Progression(2),)),
    )
    found = divide_ranks([all_ranks, groups, first])
    assert found is not None
    assert len(found) < 64
    assert sum(ranks.size for ranks in found) == n


def test_ranks_without_values_are_rejected() -> None:
    vector = (Share(Progression(0, (1,), (2,)), ((Progression(0),),), (Progression(1),)),)
    with pytest.raises(ValueError, match="Rank 2 is in no share"):
        divide_block(Progression(2), vector)
    with pytest.raises(ValueError, match="no share"):
        find_block(vector, Progression(0, (1,), (3,)))


def test_irregular_ranks_are_not_divided() -> None:
    n = 1 << 13
    odd = tuple(Share(Progression(rank, (2,), (n // 2,)), ((Progression(0),),), (Progression(1),)) for rank in (0, 1))
    thirds = (
        *(Share(Progression(rank, (3,), (n // 3,)), ((Progression(0),),), (Progression(1),)) for rank in range(3)),
        *(Share(Progression(rank), (), (Progression(1),)) for rank in range(n - n % 3, n)),
    )
    assert np.unique(np.concatenate([share.ranks.values() for share in thirds])).size == n
    assert divide_ranks([odd, thirds]) is None
