"""Validation of compressed traces without expansion matches a naive implementation that expands them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.checks import MAX_DEPTH, check
from iosig.transforms.traces.progressions import NumberList, Progression, expand_values
from iosig.transforms.traces.trace import (
    START,
    Call,
    CompressedTrace,
    Gap,
    Loop,
    Node,
    RankClass,
    Share,
    Slot,
    TimeBin,
    TimeHistogram,
    Vector,
)
from tests.budget import examples
from tests.compressed import (
    class_ranks,
    compressed_traces,
    file_per_process,
    rank_values,
    same,
    span,
    steady,
    table_one,
    table_one_posix,
)

BARRIER = Call("MPI", "MPI_Barrier", 0, ("MPI_COMM_WORLD",), (), (Gap(START, steady(1, 0.0)),), steady(1, 0.0))
RANKS = span(0, 4)


def make_trace(*body: Node, ranks: tuple[Progression, ...] = (RANKS,), process_count: int = 4) -> CompressedTrace:
    return CompressedTrace(process_count, (RankClass(ranks, body),))


def make_slot_trace(*shares: Share, width: int = 1) -> CompressedTrace:
    return make_trace(replace(BARRIER, texts=("a", "b"), slots=(Slot(width, shares),)))


def make_timed_trace(times: TimeHistogram) -> CompressedTrace:
    return make_trace(replace(BARRIER, durations=times))


def assert_rejected(trace: CompressedTrace, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(trace)


# ---- valid traces


@given(compressed_traces())
@settings(max_examples=examples(25), deadline=None)
def test_valid_traces_are_accepted(trace: CompressedTrace) -> None:
    check(trace)


@pytest.mark.parametrize("count", [1, 2, 8, 960])
def test_example_programs_are_accepted(count: int) -> None:
    for trace in (table_one(count), table_one_posix(count), file_per_process(count)):
        check(trace)


def test_validation_does_not_expand_the_trace() -> None:
    """2^31 - 1 ranks with 10^9 iterations each: an expansion would not terminate."""
    check(table_one_posix(2**31 - 1, row_bytes=2**31 - 1, iterations=2**31 - 1))
    check(file_per_process(2**31 - 1, writes=10**9))


def test_traces_without_calls_are_accepted() -> None:
    check(CompressedTrace(3, ()))


def test_decreasing_values_in_long_loops_are_accepted() -> None:
    """Rank 0 counts up and rank 1 down: only the combined progressions show that no value is negative."""

    def counting(count: int, first: int) -> CompressedTrace:
        up, fall = Progression(0, (1,), (count,)), Progression(first, (-2,), (count,))
        loop = (Share(span(0, 2), ((Progression(0),),), (Progression(count),)),)
        call = replace(BARRIER, texts=("", ""), slots=(Slot(1, (Share(span(0, 2), ((fall,),), (up,)),)),))
        return make_trace(Loop(loop, (call,)), ranks=(span(0, 2),))

    check(counting(10**6, 10**6 - 1))
    check(counting(10**9, 10**9 - 1))
    assert_rejected(counting(10**6, 10**6 - 2), "out of range")


def test_only_numbers_of_statuses_may_be_negative() -> None:
    slot = Slot(1, (Share(RANKS, ((Progression(-5),),), (Progression(-(10**18) + 1),)),))
    status = replace(BARRIER, module="MPIIO", texts=("0-", " %p [", "_", "]"), slots=(slot, slot, slot))
    assert_rejected(make_trace(status), "node 0, slot 0: values from -1")
    handle = Slot(1, (Share(RANKS, ((Progression(1),),), (Progression(0),)),))
    check(make_trace(replace(status, slots=(handle, slot, slot))))
    assert_rejected(
        make_trace(replace(status, module="POSIX", slots=(handle, slot, slot))), "node 0, slot 1: values from -1"
    )


# ---- invalid partitions


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (CompressedTrace(0, ()), "between 1 and"),
        (CompressedTrace(2**31, ()), "not 2147483648"),
        (make_trace(), "class 0: it has no calls"),
        (make_trace(BARRIER, ranks=()), "class 0: it has no ranks"),
        (make_trace(BARRIER, ranks=(span(1, 4),)), "ranks 1 to 4 exceed the 4"),
        (make_trace(BARRIER, ranks=(Progression(-1),)), "ranks -1"),
        (make_trace(BARRIER, ranks=(span(2, 2), span(0, 2))), "do not ascend"),
        (make_trace(BARRIER, ranks=(span(3, 2, -1),)), "do not ascend"),
        (make_trace(BARRIER, ranks=(Progression(0, (1, 1), (2, 2)),)), "do not ascend"),
        (make_trace(BARRIER, ranks=(Progression(0, (1,), ()),)), "1 strides and 0 counts"),
        (make_trace(BARRIER, ranks=(Progression(0, (1,), (0,)),)), r"counts \(0,\)"),
        (make_trace(BARRIER, ranks=(Progression(0, (1,) * 65, (1,) * 65),)), "65 dimensions"),
        (make_trace(BARRIER, ranks=(Progression(2**63 - 2, (1,), (3,)),)), "64-bit"),
        (make_trace(replace(BARRIER, module="STDIO")), "class 0, node 0: unknown module 'STDIO'"),
        (make_trace(replace(BARRIER, function="")), "no name"),
        (make_trace(replace(BARRIER, level=-1)), "level is -1"),
        (make_trace(replace(BARRIER, texts=("a", "b"))), "2 texts for 0 slots"),
        (make_trace(replace(BARRIER, gaps=(Gap(1, steady(1, 0.0)),))), "gaps follow"),
        (make_trace(replace(BARRIER, gaps=(BARRIER.gaps[0], BARRIER.gaps[0]))), "gaps follow"),
        (make_trace(Loop((Share(RANKS, ((same(0, 1),),), (same(1, 1),)),), ())), "no body"),
        (
            make_trace(Loop((Share(RANKS, ((same(0, 1),),), (Progression(-1),)),), (BARRIER,))),
            "node 0, iterations: values",
        ),
        (make_slot_trace(Share(RANKS, ((same(0, 1),),), (same(1, 1),)), width=19), "width is 19"),
        (make_slot_trace(Share(RANKS, (), (same(1, 1),))), "0 shifts for 1 dimensions"),
        (make_slot_trace(Share(RANKS, ((same(1, 2),),), (same(1, 1),))), "2 shifts for 1 values"),
        (make_slot_trace(Share(RANKS, ((Progression(2**62),),), (same(0, 1),))), "out of range"),
        (make_slot_trace(Share(RANKS, ((Progression(-1),),), (Progression(2),))), "values from -1 to 2"),
        (make_slot_trace(Share(RANKS, ((NumberList((2**63,)),),), (Progression(2),))), "64-bit"),
        (make_slot_trace(Share(RANKS, ((same(0, 1),),), (same(1, 2),))), "2 values|shifts for 2"),
        (make_slot_trace(Share(RANKS, ((same(0, 2),),), (same(1, 2),))), "differs from the number of executions"),
        (make_slot_trace(), "differ from those of the class"),
        (make_slot_trace(Share(span(0, 3), ((same(0, 1),),), (same(1, 1),))), "differ from those of the class"),
        (make_slot_trace(*[Share(RANKS, ((same(0, 1),),), (same(1, 1),))] * 2), "differ from those of the class"),
        (make_timed_trace(TimeHistogram(1, 0.0, math.nan, 1.0, 0.0, (TimeBin(1, 0.0, 0.5, 1.0),))), "must be finite"),
        (make_timed_trace(TimeHistogram(1, 0.0, 0.5, math.inf, 0.0, (TimeBin(1, 0.0, 0.5, 1.0),))), "must be finite"),
        (make_timed_trace(TimeHistogram(1, 0.0, 0.5, 1.0, -1.0, (TimeBin(1, 0.0, 0.5, 1.0),))), "variance nonnegative"),
        (make_timed_trace(TimeHistogram(1, 0.0, 2.0, 1.0, 0.0, (TimeBin(1, 0.0, 0.5, 1.0),))), "not in order"),
        (make_timed_trace(TimeHistogram(1, 0.0, 0.5, 1.0, 0.0, (TimeBin(1, 0.5, 0.2, 1.0),))), "not in order"),
        (make_timed_trace(TimeHistogram(2, 0.0, 0.5, 1.0, 0.0, (TimeBin(1, 0.0, 0.5, 1.0),))), "do not add up"),
        (make_timed_trace(TimeHistogram(-1, 0.0, 0.5, 1.0, 0.0, (TimeBin(-1, 0.0, 0.5, 1.0),))), "count is negative"),
    ],
)
def test_invalid_parts_are_rejected(trace: CompressedTrace, words: str) -> None:
    assert_rejected(trace, words)


def test_deep_and_long_loops_are_rejected() -> None:
    def make_nested_loops(depth: int, iterations: int) -> CompressedTrace:
        node: Node = BARRIER
        for level in reversed(range(depth)):
            times = same(iterations, iterations**level)
            node = Loop((Share(RANKS, ((same(0, times.size),),), (times,)),), (node,))
        return make_trace(node)

    check(make_nested_loops(MAX_DEPTH, 1))
    assert_rejected(make_nested_loops(MAX_DEPTH + 1, 1), "more than 64 deep")
    check(make_nested_loops(62, 2))
    assert_rejected(make_nested_loops(63, 2), "class 0, node 62: the loop has 9223372036854775808 iterations")


# ---- naive implementation


def is_valid(trace: CompressedTrace) -> bool:
    """Check by expansion that shares partition the classes and that each execution has a value."""

    def fits(vector: Vector, executions: dict[int, int]) -> bool:
        ranks = [rank for share in vector for rank in share.ranks.values().tolist()]
        if sorted(ranks) != sorted(executions):
            return False
        return {rank: len(own) for rank, own in rank_values(vector).items()} == executions

    def body_fits(body: tuple[Node, ...], executions: dict[int, int]) -> bool:
        for node in body:
            if isinstance(node, Loop):
                if not fits(node.counts, executions):
                    return False
                if not body_fits(node.body, {rank: sum(own) for rank, own in rank_values(node.counts).items()}):
                    return False
            elif not all(fits(slot.vector, executions) for slot in node.slots):
                return False
        return True

    ranks = [rank for own in trace.classes for rank in class_ranks(own)]
    return len(ranks) == len(set(ranks)) and all(
        body_fits(own.body, dict.fromkeys(class_ranks(own), 1)) for own in trace.classes
    )


def change_vector(draw: Any, vector: Vector) -> Vector:
    """Change one share of a vector: other ranks, or one additional value."""
    if not vector:
        return vector
    place = draw(st.integers(0, len(vector) - 1))
    share = vector[place]
    how = draw(st.sampled_from(["ranks", "values", "drop"]))
    if how == "drop":
        return vector[:place] + vector[place + 1 :]
    if how == "ranks":
        share = replace(share, ranks=replace(share.ranks, start=share.ranks.start + draw(st.sampled_from([-1, 1]))))
    else:
        share = replace(
            share,
            values=(*share.values, Progression(1)),
            shifts=tuple((*row, Progression(draw(st.integers(0, 1)))) for row in share.shifts),
        )
    return (*vector[:place], share, *vector[place + 1 :])


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_any_change_is_detected(data: st.DataObject) -> None:
    trace = data.draw(compressed_traces(most_processes=8))
    if not trace.classes:
        return
    rank_class = data.draw(st.sampled_from(trace.classes))

    def with_change(node: Node) -> Node:
        if isinstance(node, Loop):
            if data.draw(st.booleans()):
                return replace(node, counts=change_vector(data.draw, node.counts))
            return replace(node, body=tuple(map(with_change, node.body)))
        return replace(
            node, slots=tuple(replace(slot, vector=change_vector(data.draw, slot.vector)) for slot in node.slots)
        )

    second = replace(rank_class, body=tuple(map(with_change, rank_class.body)))
    mixed = replace(trace, classes=tuple(second if own is rank_class else own for own in trace.classes))
    if is_valid(mixed):
        check(mixed)
    else:
        with pytest.raises(ValueError, match="class"):
            check(mixed)


@st.composite
def random_rank_lists(draw: st.DrawFn) -> Progression:
    """Draw an increasing rank list of up to three dimensions."""
    strides: list[int] = []
    counts: list[int] = []
    reach = 0
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(1, 5))
        stride = reach + draw(st.integers(1, 6))
        strides, counts = [stride, *strides], [count, *counts]
        reach += stride * (count - 1)
    return Progression(draw(st.integers(0, 30)), tuple(strides), tuple(counts))


@given(random_rank_lists(), random_rank_lists())
@settings(max_examples=examples(200), deadline=None)
def test_ranks_in_two_classes_are_rejected(first: Progression, second: Progression) -> None:
    trace = CompressedTrace(10**6, (RankClass((first,), (BARRIER,)), RankClass((second,), (BARRIER,))))
    if set(expand_values((first,)).tolist()) & set(expand_values((second,)).tolist()):
        assert_rejected(trace, "is in two classes")
    else:
        check(trace)


@pytest.mark.long
def test_overlaps_of_long_rank_lists_are_rejected() -> None:
    def both(first: Progression, second: Progression) -> CompressedTrace:
        return CompressedTrace(2**31 - 1, (RankClass((first,), (BARRIER,)), RankClass((second,), (BARRIER,))))

    million = 1_000_000
    even, odd = span(0, million, 2), span(1, million, 2)
    check(both(even, odd))
    eights = Progression(8, (16, 1), (million // 16, 8))
    check(both(Progression(0, (16, 1), (million // 16, 8)), eights))
    assert_rejected(both(even, eights), "is in two classes")
    check(both(Progression(0, (24, 2), (million // 24, 4)), Progression(1, (16, 2), (million // 16, 8))))
    assert_rejected(
        both(Progression(0, (2003, 1), (1000, 900)), Progression(950, (2011, 1), (1000, 900))),
        "is in two classes",
    )
