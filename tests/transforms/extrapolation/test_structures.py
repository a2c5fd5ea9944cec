"""Classes of traces at several rank counts are matched, and loops of one iteration are restored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.extrapolation.structures import (
    Difference,
    Shape,
    align_bodies,
    insert_loops,
    match_classes,
    node_shape,
    slot_names,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass
from tests.budget import examples
from tests.compressed import call_order, class_ranks, nodes, rank_values
from tests.extrapolated_programs import PROGRAMS, Made, Program, posix, traces_of
from tests.naive.extrapolation.evaluation import count_transitions


def told(program: Program, counts: tuple[int, ...]) -> tuple[str, str]:
    found = match_classes(traces_of(program, counts))
    assert isinstance(found, Difference)
    return found.field, found.reason


def test_matching_aligns_classes_of_all_traces() -> None:
    traces = traces_of(PROGRAMS["neighbors"])
    found = match_classes(traces)
    assert not isinstance(found, Difference)
    assert len(found) == 3
    for one in found:
        assert [len(own.body) for own in one] == [len(one[0].body)] * 4
        assert [own in trace.classes for own, trace in zip(one, traces, strict=True)] == [True] * 4


def test_mismatch_names_the_first_difference() -> None:
    def other_call(r: int, n: int) -> list[Made]:
        return [posix("open", "/a/f", 66), posix("write" if n < 16 else "read", "/a/f", "%p", 8)]

    assert told(other_call, (8, 12, 16)) == (
        "class 0, node 1",
        "it is write ( /a/f %p # ) at level 0 at 8 ranks and read ( /a/f %p # ) at level 0 at 16 ranks",
    )

    def one_more(r: int, n: int) -> list[Made]:
        return [posix("open", f"/a/f.{r:03d}", 66)] + [posix("close", "/a/f")] * (n > 8)

    assert told(one_more, (8, 12)) == (
        "class 0, node 1",
        "it is nothing at 8 ranks and close ( /a/f ) at level 0 at 12 ranks",
    )

    def one_class_more(r: int, n: int) -> list[Made]:
        return [posix("open", "/a/f")] if r or n < 12 else [posix("close", "/a/f")]

    field, reason = told(one_class_more, (8, 12))
    assert field == "class 0, node 0"
    assert "at 8 ranks" in reason
    assert "at 12 ranks" in reason


def test_different_programs_do_not_match() -> None:
    one, other = traces_of(PROGRAMS["table_one"], (8,)), traces_of(PROGRAMS["root_alone"], (12,))
    assert isinstance(match_classes((*one, *other)), Difference)
    nothing = CompressedTrace(16, ())
    found = match_classes((*one, nothing))
    assert isinstance(found, Difference)
    assert "nothing at 16 ranks" in found.reason


def test_classes_of_equal_structure_in_one_trace_are_refused() -> None:
    (trace,) = traces_of(PROGRAMS["table_one"], (8,))
    doubled = replace(trace, classes=trace.classes * 2)
    assert match_classes((doubled, doubled)) == Difference("classes", "two have the same structure at 8 ranks")


def write_blocks(r: int, n: int) -> list[Made]:
    rows = [(posix("lseek", "/a/f", i, 0), posix("write", "/a/f", "%p", 8)) for i in range(24 // n)]
    return [posix("open", "/a/f", 66), *(call for row in rows for call in row), posix("close", "/a/f")]


@pytest.mark.parametrize("counts", [(6, 8, 12, 24), (24, 6, 8, 12), (24, 6), (6, 24)])
def test_matching_inserts_loops_of_one_iteration(counts: tuple[int, ...]) -> None:
    found = match_classes(traces_of(write_blocks, counts))
    assert not isinstance(found, Difference)
    (one,) = found
    assert [isinstance(own.body[1], Loop) for own in one] == [True] * len(counts)


def test_matching_keeps_equal_classes_together() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [posix("stat", "/b")] * (r == 0) + write_blocks(r, n)

    found = match_classes(traces_of(program, (6, 8, 24)))
    assert not isinstance(found, Difference)
    assert [{one.ranks[0].start for one in own} for own in found] == [{0}, {1}]


def test_differences_beyond_loops_are_not_aligned() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [*write_blocks(r, n), *([posix("sync")] if n == 24 else [])]

    assert told(program, (6, 24)) == (
        "class 0, node 1",
        "it is a loop over 2 nodes at 6 ranks and lseek ( /a/f # # ) at level 0 at 24 ranks",
    )


def test_slot_names_give_argument_and_number() -> None:
    (trace,) = traces_of(lambda r, n: [posix("open", f"/a/f{r}.{n:03d}", 66, 420)], (8,))
    (call,) = trace.classes[0].body
    assert isinstance(call, Call)
    assert slot_names(call) == (
        "argument 1, number 1",
        "argument 1, number 2",
        "argument 2",
        "argument 3",
    )


A, B, C = (("call", name) for name in "abc")


def loop(*body: object) -> Shape:
    return ("loop", *body)


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ((A, B), (A, B), (A, B)),
        ((A, B), (A, C), None),
        ((A, B), (A,), None),
        ((A, loop(B), C), (A, B, C), (A, loop(B), C)),
        ((A, B, C), (A, loop(B), C), (A, loop(B), C)),
        ((loop(A, B),), (A, B), (loop(A, B),)),
        ((loop(A, B),), (A, C), None),
        ((loop(A, B),), (A,), None),
        ((loop(A), B), (A, loop(B)), (loop(A), loop(B))),
        ((loop(A, loop(B)),), (A, B), (loop(A, loop(B)),)),
        ((loop(A, loop(B)),), (loop(A, B),), (loop(A, loop(B)),)),
        ((loop(A, loop(B)),), (A, loop(B)), (loop(A, loop(B)),)),
        ((loop(A, B), C), (A, loop(B), C), (loop(A, loop(B)), C)),
        ((loop(loop(A), B),), (loop(A), B), (loop(loop(A), B),)),
        ((loop(A),), (A, A), None),
        ((), (), ()),
    ],
)
def test_body_alignment_combines_loops_of_both(one: Shape, other: Shape, joined: Shape | None) -> None:
    assert align_bodies(one, other) == joined
    assert align_bodies(other, one) == joined


shapes = st.recursive(
    st.sampled_from([A, B, C]),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda body: loop(*body)),
    max_leaves=8,
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(shapes, max_size=4).map(tuple), st.data())
def test_body_alignment_restores_missing_loops(body: Shape, data: st.DataObject) -> None:
    def lacking(shape: Shape) -> Shape:
        found: list[object] = []
        for node in shape:
            assert isinstance(node, tuple)
            if node[0] == "loop":
                inner = lacking(node[1:])
                found += [loop(*inner)] if data.draw(st.booleans()) else inner
            else:
                found.append(node)
        return tuple(found)

    assert align_bodies(body, body) == body
    other = lacking(body)
    joined = align_bodies(body, other)
    # If the same calls follow the loop, it is ambiguous which of them were in it.
    if joined is not None:
        assert align_bodies(joined, body) == joined
        assert align_bodies(joined, other) == joined


def test_alignment_has_a_step_limit() -> None:
    deep: Shape = (A,)
    for _ in range(40):
        deep = (loop(*deep, *deep[:1]), B)
    other: Shape = (A,) * 60
    assert align_bodies(deep, other) is None


# ---- in classes


def block(r: int, n: int, blocks: int) -> list[Made]:
    rows = [posix("lseek", "/a/f", i * 8, 0) for i in range(blocks)]
    return [call for row in rows for call in (row, posix("write", "/a/f", "%p", r))]


def write_files(r: int, n: int) -> list[Made]:
    steps = [[posix("open", f"/a/{t}", 66), *block(r, n, 24 // n), posix("close", f"/a/{t}")] for t in range(3)]
    return [posix("stat", "/a"), *(call for step in steps for call in step), posix("sync")]


def test_loop_insertion_restores_removed_loops() -> None:
    with_it, without = traces_of(write_files, (8, 24))
    (one,), (other,) = with_it.classes, without.classes
    shape = tuple(map(node_shape, one.body))
    assert tuple(map(node_shape, other.body)) != shape
    put = insert_loops(other, shape)
    assert put is not None
    assert tuple(map(node_shape, put.body)) == shape
    assert insert_loops(one, shape) is one
    assert _list_functions(put, 23) == _list_functions(other, 23) == [call[1] for call in write_files(23, 24)]
    (inner,) = [node for node in nodes(put.body) if isinstance(node, Loop) and len(node.body) == 2]
    assert rank_values(inner.counts) == {rank: [1, 1, 1] for rank in range(24)}
    assert _gaps(put) == {pair: 24 * count for pair, count in count_transitions(put, 0).items()}


def _list_functions(one: RankClass, rank: int) -> list[str]:
    known = list(nodes(one.body))
    return [node.function for number in call_order(one, rank) if isinstance(node := known[number], Call)]


def _gaps(one: RankClass) -> dict[tuple[int, int], int]:
    return {
        (gap.previous, number): gap.histogram.count
        for number, node in enumerate(nodes(one.body))
        if isinstance(node, Call)
        for gap in node.gaps
    }


def test_loop_insertion_nests_loops_for_some_ranks() -> None:
    """The number of entries of the missing loop depends on the iterations of the enclosing loop of each rank."""

    def program(r: int, n: int) -> list[Made]:
        steps = [[posix("open", "/a/f", 66), *block(0, n, 24 // n), posix("close", "/a/f")] for _ in range(2 + r % 3)]
        return [posix("stat", "/a"), *(call for step in steps for call in step)]

    with_it, without = traces_of(program, (8, 24))
    put = insert_loops(without.classes[0], tuple(map(node_shape, with_it.classes[0].body)))
    assert put is not None
    (inner,) = [node for node in nodes(put.body) if isinstance(node, Loop) and len(node.body) == 2]
    assert rank_values(inner.counts) == {rank: [1] * (2 + rank % 3) for rank in class_ranks(put)}


def test_loop_insertion_returns_none_for_mismatched_class() -> None:
    (trace,) = traces_of(write_files, (24,))
    (one,) = trace.classes
    shape = tuple(map(node_shape, one.body))
    assert insert_loops(one, (*shape, A)) is None
    assert insert_loops(one, shape[:-1]) is None
    assert insert_loops(one, (loop(A), *shape[1:])) is None
