from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.compressed import class_ranks, compressed_traces, table_one
from tests.extrapolated_programs import PROGRAMS, traces_of
from tests.naive.extrapolation import transitions as naive
from transforms.extrapolation.transitions import transitions
from transforms.traces.trace import START, CompressedTrace


@settings(deadline=None, max_examples=25)
@given(compressed_traces(most_depth=3))
def test_each_call_is_followed_as_often_as_its_twin_says(trace: CompressedTrace) -> None:
    for rank_class in trace.classes:
        for rank in class_ranks(rank_class)[:3]:
            assert transitions(rank_class.body, rank) == naive.transitions(rank_class, rank)


def test_loops() -> None:
    (rank_class,) = table_one(8, iterations=5).classes
    assert transitions(rank_class.body, 3) == {(START, 0): 1, (0, 2): 1, (2, 3): 5, (3, 2): 4, (3, 4): 1}


@pytest.mark.parametrize("name", ["loops_in_one_another", "group_roots", "restart", "root_writes_all"])
def test_programs(name: str) -> None:
    for trace in traces_of(PROGRAMS[name], (8,)):
        for rank_class in trace.classes:
            rank = class_ranks(rank_class)[-1]
            assert transitions(rank_class.body, rank) == naive.transitions(rank_class, rank)


def test_nothing() -> None:
    assert transitions((), 0) == {}
