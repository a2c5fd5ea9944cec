"""Evaluation of a fitted trace at a rank count: times, ranks, numbers, sizes, and counts of successive calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings

from iosig.transforms.extrapolation.count_models import AmbiguousModelError, NotAnIntegerError
from iosig.transforms.extrapolation.evaluation import MAX_RANKS, count_transitions, evaluate_trace, make_refusal
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, fit_trace
from iosig.transforms.extrapolation.result import FittedTrace, Refusal
from iosig.transforms.traces.checks import check
from iosig.transforms.traces.expansion import count_executions, number_nodes
from iosig.transforms.traces.trace import START, Call, CompressedTrace, Loop, RankClass
from tests.budget import examples
from tests.compressed import class_ranks, compressed_traces, nodes, table_one
from tests.extrapolated_programs import INPUTS, PROGRAMS, Made, Program, first_difference, posix, traces_of
from tests.naive.extrapolation import evaluation as naive


@cache
def known_of(program: Program, counts: tuple[int, ...] = INPUTS) -> FittedTrace:
    found = fit_trace(traces_of(program, counts), ExtrapolationParams())
    assert found.refusals == ()
    return found


def evaluate_program(program: Program, n: int, counts: tuple[int, ...] = INPUTS) -> CompressedTrace:
    trace = evaluate_trace(known_of(program, counts), n)
    assert isinstance(trace, CompressedTrace)
    check(trace)
    return trace


def reasons(program: Program, n: int, counts: tuple[int, ...] = INPUTS) -> list[tuple[str, str]]:
    found = evaluate_trace(known_of(program, counts), n)
    assert isinstance(found, tuple)
    return [(refusal.field, refusal.reason) for refusal in found]


# ---- times


def executions(one: RankClass) -> Iterator[tuple[int, Call, int]]:
    """Yield the number of each call node, the node, and its executions by all ranks."""
    known, parents = number_nodes(one.body)
    counts: Counter[int] = Counter()
    for rank in class_ranks(one):
        counts.update(dict(enumerate(count_executions(known, parents, rank))))
    for number, node in enumerate(known):
        if isinstance(node, Call):
            yield number, node, counts[number]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_time_counts_equal_call_executions(name: str) -> None:
    trace = evaluate_trace(known_of(PROGRAMS[name]), 48)
    assert isinstance(trace, CompressedTrace)
    for one in trace.classes:
        followed = naive.count_transitions(one, one.ranks[0].start)
        size = len(class_ranks(one))
        for number, call, count in executions(one):
            assert call.durations.count == count
            assert {gap.previous: gap.histogram.count for gap in call.gaps} == {
                before: times * size for (before, node), times in followed.items() if node == number
            }
            assert 0 <= call.durations.minimum_s <= call.durations.mean_s <= call.durations.maximum_s < 10


def test_times_of_two_traces_at_one_rank_count_are_merged() -> None:
    trace = evaluate_program(PROGRAMS["table_one"], 20, (8, 8, 12, 16, 24, 24))
    assert first_difference(trace, PROGRAMS["table_one"]) is None


# ---- ranks


def test_empty_classes_are_omitted() -> None:
    assert [len(evaluate_program(PROGRAMS["root_writes_all"], n).classes) for n in (1, 2, 30)] == [1, 2, 2]
    assert [len(evaluate_program(PROGRAMS["last_writes"], n).classes) for n in (1, 2, 30)] == [1, 2, 2]


def test_ranks_without_calls_are_in_no_class() -> None:
    trace = evaluate_program(PROGRAMS["root_alone"], 48)
    assert [class_ranks(one) for one in trace.classes] == [[0]]
    trace = evaluate_program(PROGRAMS["first_four_write"], 20)
    assert [class_ranks(one) for one in trace.classes] == [[0, 1, 2, 3]]


def test_classes_with_invalid_ranks_are_refused() -> None:
    assert reasons(PROGRAMS["neighbors"], 1) == [("class 1, ranks", "at 1 ranks, a class has -1 ranks")]
    assert reasons(PROGRAMS["first_four_write"], 3)[0] == (
        "class 0, ranks",
        "at 3 ranks, a class has ranks 0 to 3, beyond 0 to 2",
    )
    assert reasons(PROGRAMS["even_and_odd"], 21)[0] == (
        "class 0, ranks",
        "at 21 ranks, the count of ranks n/2 is 21/2, not an integer",
    )


def test_classes_that_do_not_tile_the_ranks_are_refused() -> None:
    known = known_of(PROGRAMS["upper_half"])
    one, other = known.classes
    alone = evaluate_trace(FittedTrace(known.rank_counts, (one,), (), ()), 20)
    assert alone == (Refusal("no_whole_number", "classes", "at 20 ranks, rank 10 is in no class"),)
    twice = evaluate_trace(FittedTrace(known.rank_counts, (one, one, other), (), ()), 20)
    assert twice == (Refusal("no_whole_number", "classes", "at 20 ranks, rank 0 is in two classes"),)


def test_remaining_ranks_form_a_class() -> None:
    def program(r: int, n: int) -> list[Made]:
        return (
            [posix("open", "/a/f", 1)] if r % 4 == 0 else [posix("close", "/a/f")] if r == 1 else [posix("stat", "/a")]
        )

    known = known_of(program)
    assert sum(one.ranks is None for one in known.classes) <= 1
    assert first_difference(evaluate_program(program, 40), program) is None


@pytest.mark.parametrize("n", [0, -1, MAX_RANKS + 1])
def test_invalid_rank_counts_are_rejected(n: int) -> None:
    with pytest.raises(ValueError, match="the rank count must be between 1 and"):
        evaluate_trace(known_of(PROGRAMS["table_one"]), n)


# ---- numbers


def test_numbers_out_of_range_are_refused() -> None:
    assert reasons(PROGRAMS["large_offsets"], 1 << 22) == [
        (
            "class 0, call 1 pwrite, argument 4",
            f"at {1 << 22} ranks, values are between 0 and {((1 << 22) - 1 << 40) + (4 << 20)}; "
            f"they must be between 0 and {10**18 - 1}",
        )
    ]

    def less(r: int, n: int) -> list[Made]:
        return [posix("write", "/a/f", "%p", n - 3)]

    assert reasons(less, 2) == [
        (
            "class 0, call 0 write, argument 3",
            f"at 2 ranks, values are between -1 and -1; they must be between 0 and {10**18 - 1}",
        )
    ]

    def fewer(r: int, n: int) -> list[Made]:
        return [posix("write", "/a/f", "%p", i) for i in range(n - 3)]

    assert reasons(fewer, 3)[0] == (
        "class 0, loop 0, iterations",
        f"at 3 ranks, values are between 0 and 0; they must be between 1 and {10**18 - 1}",
    )


def test_short_numbers_of_unknown_padding_are_refused() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [posix("open", f"/a/f.{n:02d}", 66, n)]

    counts = (12, 16, 24, 32)
    assert first_difference(evaluate_program(program, 48, counts), program) is None
    assert reasons(program, 8, counts) == [
        (
            "class 0, call 0 open, argument 1",
            "at 8 ranks, a name has the number 8: whether such short numbers are padded with zeros is unknown",
        )
    ]


def test_refusal_outcome_depends_on_the_error() -> None:
    assert make_refusal("f", NotAnIntegerError("so"), "at 2, ") == Refusal("no_whole_number", "f", "at 2, so")
    assert make_refusal("f", AmbiguousModelError("so")) == Refusal("no_exact_model", "f", "so")


# ---- size


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"root_writes_all", "loop_of_n", "round_the_ranks"}))
def test_vectors_stay_compact_at_a_million_ranks(name: str) -> None:
    known = known_of(PROGRAMS[name])
    traces = [evaluate_trace(known, n) for n in (48, 960_000)]
    if not isinstance(traces[1], CompressedTrace):
        return
    check(traces[1])
    sizes = []
    for trace in traces:
        assert isinstance(trace, CompressedTrace)
        vectors = [
            vector
            for one in trace.classes
            for node in nodes(one.body)
            for vector in ((node.counts,) if isinstance(node, Loop) else tuple(slot.vector for slot in node.slots))
        ]
        sizes.append((len(trace.classes), len(vectors), sum(map(len, vectors))))
    assert sizes[1][:2] == sizes[0][:2]
    assert sizes[1][2] <= 3 * sizes[0][1]


# ---- counts of successive calls


@settings(deadline=None, max_examples=examples(25))
@given(compressed_traces(most_depth=3))
def test_transitions_match_naive_implementation(trace: CompressedTrace) -> None:
    for rank_class in trace.classes:
        for rank in class_ranks(rank_class)[:3]:
            assert count_transitions(rank_class.body, rank) == naive.count_transitions(rank_class, rank)


def test_transitions_of_loops_include_repetitions() -> None:
    (rank_class,) = table_one(8, iterations=5).classes
    assert count_transitions(rank_class.body, 3) == {(START, 0): 1, (0, 2): 1, (2, 3): 5, (3, 2): 4, (3, 4): 1}


@pytest.mark.parametrize("name", ["loops_in_one_another", "group_roots", "restart", "root_writes_all"])
def test_transitions_of_sample_programs_match_naive_implementation(name: str) -> None:
    for trace in traces_of(PROGRAMS[name], (8,)):
        for rank_class in trace.classes:
            rank = class_ranks(rank_class)[-1]
            assert count_transitions(rank_class.body, rank) == naive.count_transitions(rank_class, rank)


def test_transitions_without_calls_are_empty() -> None:
    assert count_transitions((), 0) == {}
