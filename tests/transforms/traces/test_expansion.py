"""Expansion of the calls of a rank from a compressed trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.expansion import (
    SCHEMA,
    find_class,
    find_index,
    list_executions,
    place_in_time,
    previous_nodes,
    rank_calls,
    rank_values,
)
from iosig.transforms.traces.progressions import NumberList, Progression, row_bounds, stretch_sum
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Gap, Loop, RankClass, Share, Slot
from tests import compressed
from tests.budget import examples
from tests.naive.traces import expansion as naive

ONE = Progression(0)
progressions = st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 4)), max_size=3).flatmap(
    lambda dims: st.integers(-50, 50).map(
        lambda start: Progression(start, tuple(stride for stride, _ in dims), tuple(count for _, count in dims))
    )
)


def single_rank_trace(*body: Call | Loop) -> CompressedTrace:
    return CompressedTrace(1, (RankClass((ONE,), body),))


def make_call(*numbers: int, level: int = 0, gap_s: float = 1.0, duration_s: float = 0.5, width: int = 1) -> Call:
    slot = Slot(width, (Share(ONE, (), (NumberList(numbers),)),))
    gaps = (Gap(START, compressed.steady(1, gap_s)),)
    return Call("POSIX", "write", level, ("f ", ""), (slot,), gaps, compressed.steady(len(numbers), duration_s))


def make_loop(counts: tuple[int, ...], *body: Call | Loop) -> Loop:
    return Loop((Share(ONE, (), (NumberList(counts),)),), body)


# ---- naive implementation


@settings(deadline=None, max_examples=examples(30))
@given(compressed.compressed_traces())
def test_rank_calls_match_naive_implementation(trace: CompressedTrace) -> None:
    for rank in range(trace.process_count):
        found, expected = rank_calls(trace, rank), naive.calls(trace, rank)
        assert dict(found.schema) == SCHEMA
        assert found["node"].to_list() == [number for number, _, _ in expected]
        assert found["arguments"].to_list() == [text for _, _, text in expected]
        assert found["function"].to_list() == [node.function for _, node, _ in expected]
        assert found["module"].to_list() == [node.module for _, node, _ in expected]
        assert found["level"].to_list() == [node.level for _, node, _ in expected]
        assert found["call"].to_list() == list(range(len(expected)))
        times = np.array(naive.times(expected)).reshape(-1, 2)
        np.testing.assert_allclose(found["start_s"].to_numpy(), times[:, 0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found["end_s"].to_numpy(), times[:, 1], rtol=1e-9, atol=1e-9)
        assert (np.diff(found["start_s"].to_numpy()) >= 0).all()


@given(progressions, st.integers(-200, 200))
def test_found_indices_give_the_number(ranks: Progression, number: int) -> None:
    place = find_index(ranks, number)
    if place is None:
        assert number not in ranks.values()
    else:
        assert all(0 <= index < count for index, count in zip(place, ranks.counts, strict=True))
        assert ranks.start + sum(a * b for a, b in zip(place, ranks.strides, strict=True)) == number


@given(progressions, st.lists(st.integers(-9, 9), min_size=1, max_size=3))
def test_sums_and_bounds_equal_sums_and_bounds_of_the_numbers(run: Progression, numbers: list[int]) -> None:
    again = NumberList(tuple(numbers), run.strides, run.counts)
    assert [stretch_sum(run), stretch_sum(again)] == [run.values().sum(), again.values().sum()]
    assert row_bounds((again,)) == (again.values().min(), again.values().max())
    assert row_bounds((run, NumberList((7,)))) == (min(7, run.values().min()), max(7, run.values().max()))


# ---- examples


def test_expanded_calls_equal_table_one_of_the_paper() -> None:
    trace = compressed.table_one(48)
    asked = [f"0-0 {7 * 20 + 960 * i} MPI_SEEK_SET" for i in range(3)]
    found = rank_calls(trace, 7)
    assert found.filter(function="MPI_File_seek")["arguments"].to_list() == asked
    assert found["start_s"].to_list() == pytest.approx([0.001 + 0.003 * call for call in range(8)])


def test_single_rank_of_a_million_is_expanded() -> None:
    found = rank_calls(compressed.file_per_process(1_000_000), 999_999)
    assert found["arguments"].to_list() == ["f.00999999 66 420", *["f.00999999 %p 131072"] * 4, "f.00999999"]


def test_loops_with_different_iterations_per_entry_are_expanded() -> None:
    inner = make_loop((2, 0, 1), make_call(10, 11, 12))
    trace = single_rank_trace(make_loop((3,), make_call(1, 2, 3), inner), make_call(9))
    assert rank_calls(trace, 0)["arguments"].to_list() == [f"f {n}" for n in (1, 10, 11, 2, 3, 12, 9)]
    own = find_class(trace, 0)
    assert own is not None
    executed = list_executions(own, 0)
    assert executed.node.tolist() == [1, 3, 3, 1, 1, 3, 4]
    assert executed.occurrence.tolist() == [0, 0, 1, 1, 2, 2, 0]
    assert previous_nodes(executed.node).tolist() == [START, 1, 3, 3, 1, 1, 3]


def test_numbers_are_padded_and_may_be_large() -> None:
    trace = single_rank_trace(make_call(7, width=3), make_call((1 << 63) - 1), make_call(1234, width=3))
    looped = single_rank_trace(make_loop((3,), make_call(7, 70, 7000, width=3)))
    assert rank_calls(trace, 0)["arguments"].to_list() == ["f 007", "f 9223372036854775807", "f 1234"]
    assert rank_calls(looped, 0)["arguments"].to_list() == ["f 007", "f 070", "f 7000"]


def test_rank_without_class_has_no_calls() -> None:
    found = rank_calls(CompressedTrace(2, ()), 1)
    assert found.height == 0
    assert dict(found.schema) == SCHEMA


# ---- times


def test_gaps_follow_the_previous_end_or_the_enclosing_start() -> None:
    levels = np.array([0, 1, 1, 0, 1, 0])
    began, ceased = place_in_time(
        levels, np.array([1.0, 0.5, 0.25, 2.0, 0.125, 0.0]), np.array([4.0, 1, 1, 1, 0.25, 0])
    )
    assert began.tolist() == [1.0, 1.5, 2.75, 7.0, 7.125, 8.0]
    assert (ceased - began).tolist() == [4.0, 1, 1, 1, 0.25, 0]


def test_starts_never_decrease() -> None:
    # With means over other executions, the inner call would begin after the end of the outer call.
    began, _ = place_in_time(np.array([0, 1, 0]), np.array([0.0, 5.0, 1.0]), np.array([2.0, 1.0, 1.0]))
    assert began.tolist() == [0.0, 5.0, 5.0]


def test_gap_depends_on_the_previous_node() -> None:
    gaps = (Gap(START, compressed.steady(1, 8.0)), Gap(1, compressed.steady(3, 2.0)))
    again = Call("POSIX", "sync", 0, ("f",), (), gaps, compressed.steady(4, 0.0))
    assert rank_calls(single_rank_trace(make_loop((3,), again)), 0)["start_s"].to_list() == [8.0, 10.0, 12.0]
    # After a new predecessor, the gap is the mean of all gaps of the call, weighted by their counts.
    others = (make_call(1), make_call(2), make_call(3))
    assert rank_calls(single_rank_trace(*others, again), 0)["start_s"].to_list() == [1.0, 2.5, 4.0, 8.0]
    assert rank_calls(single_rank_trace(Call("POSIX", "sync", 0, ("f",), (), (), compressed.steady(1, 0.0))), 0)[
        "start_s"
    ].to_list() == [0.0]


# ---- invalid input


@pytest.mark.parametrize("rank", [-1, 2, 1 << 70])
def test_unknown_ranks_are_rejected(rank: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        rank_calls(CompressedTrace(2, ()), rank)


def _make_endless_loop(count: int, *body: Call | Loop) -> CompressedTrace:
    return single_rank_trace(Loop((Share(ONE, (), (Progression(count),)),), body))


def test_too_many_calls_are_rejected_before_expansion() -> None:
    same = Slot(1, (Share(ONE, (), (Progression(1, (0,), (1 << 50,)),)),))
    endless = _make_endless_loop(1 << 50, Call("POSIX", "write", 0, ("", ""), (same,), (), compressed.steady(1, 1.0)))
    with pytest.raises(ValueError, match="more than 16,777,216"):
        rank_calls(endless, 0)
    with pytest.raises(ValueError, match="more than 2"):
        rank_calls(
            single_rank_trace(make_loop((3,), Call("M", "f", 0, ("",), (), (), compressed.steady(1, 1.0)))), 0, 2
        )
    # The loop has no calls, but its iterations would still be processed.
    empty = Loop((Share(ONE, (), (Progression(0, (0,), (1 << 50,)),)),), ())
    with pytest.raises(ValueError, match="more than"):
        rank_calls(_make_endless_loop(1 << 50, empty), 0)


@pytest.mark.parametrize(
    "trace",
    [
        single_rank_trace(make_call(1, 2)),
        single_rank_trace(make_loop((2,), make_call(1))),
        single_rank_trace(make_loop((2, 2))),
        single_rank_trace(make_loop((-2,), make_call(1))),
        single_rank_trace(make_loop((3,), make_loop((2, 2, -1), make_call(1, 2, 3)))),
        single_rank_trace(make_call(1 << 63)),
        CompressedTrace(2, (RankClass((Progression(0, (1,), (2,)),), (make_call(1),)),)),
    ],
    ids=["values", "iterations", "counts", "negative", "negative-inside", "beyond-64-bits", "no-share"],
)
def test_inconsistent_traces_are_rejected(trace: CompressedTrace) -> None:
    with pytest.raises(ValueError, match=r".+"):
        rank_calls(trace, trace.process_count - 1)


def test_values_beyond_64_bits_are_rejected() -> None:
    ranks = Progression(0, (1,), (4,))
    vector = (Share(ranks, ((Progression(1 << 62),),), (Progression(1),)),)
    assert rank_values(vector, 1).tolist() == [(1 << 62) + 1]
    with pytest.raises(ValueError, match="64 bits"):
        rank_values(vector, 2)


def test_rank_lists_with_overlapping_strides_are_rejected() -> None:
    tangled = Progression(0, tuple(range(100, 180, 2)), (3,) * 40)
    with pytest.raises(ValueError, match="nested"):
        find_index(tangled, 5601)
