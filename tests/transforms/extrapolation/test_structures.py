from __future__ import annotations

from dataclasses import replace

import pytest

from tests.extrapolated_programs import PROGRAMS, Made, Program, posix, traces_of
from transforms.extrapolation.structures import Difference, arguments_of, matched
from transforms.traces.trace import Call, CompressedTrace, Loop


def told(program: Program, counts: tuple[int, ...]) -> tuple[str, str]:
    found = matched(traces_of(program, counts))
    assert isinstance(found, Difference)
    return found.field, found.reason


def test_classes_go_together() -> None:
    traces = traces_of(PROGRAMS["neighbours"])
    found = matched(traces)
    assert not isinstance(found, Difference)
    assert len(found) == 3
    for one in found:
        assert [len(own.body) for own in one.classes] == [len(one.classes[0].body)] * 4
        assert [own in trace.classes for own, trace in zip(one.classes, traces, strict=True)] == [True] * 4


def test_the_first_place_that_differs_is_told() -> None:
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


def test_different_programs_are_told() -> None:
    one, other = traces_of(PROGRAMS["table_one"], (8,)), traces_of(PROGRAMS["root_alone"], (12,))
    assert isinstance(matched((*one, *other)), Difference)
    nothing = CompressedTrace(16, ())
    found = matched((*one, nothing))
    assert isinstance(found, Difference)
    assert "nothing at 16 ranks" in found.reason


def test_two_classes_of_one_structure_are_told() -> None:
    (trace,) = traces_of(PROGRAMS["table_one"], (8,))
    doubled = replace(trace, classes=trace.classes * 2)
    assert matched((doubled, doubled)) == Difference("classes", "two have the same structure at 8 ranks")


def shared_out(r: int, n: int) -> list[Made]:
    rows = [(posix("lseek", "/a/f", i, 0), posix("write", "/a/f", "%p", 8)) for i in range(24 // n)]
    return [posix("open", "/a/f", 66), *(call for row in rows for call in row), posix("close", "/a/f")]


@pytest.mark.parametrize("counts", [(6, 8, 12, 24), (24, 6, 8, 12), (24, 6), (6, 24)])
def test_a_loop_of_one_iteration_is_a_loop(counts: tuple[int, ...]) -> None:
    found = matched(traces_of(shared_out, counts))
    assert not isinstance(found, Difference)
    (one,) = found
    assert [isinstance(own.body[1], Loop) for own in one.classes] == [True] * len(counts)


def test_classes_that_differ_in_a_loop_do_not_change_places() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [posix("stat", "/b")] * (r == 0) + shared_out(r, n)

    found = matched(traces_of(program, (6, 8, 24)))
    assert not isinstance(found, Difference)
    assert [{one.ranks[0].start for one in own.classes} for own in found] == [{0}, {1}]


def test_more_than_a_loop_is_a_difference() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [*shared_out(r, n), *([posix("sync")] if n == 24 else [])]

    assert told(program, (6, 24)) == (
        "class 0, node 1",
        "it is a loop over 2 nodes at 6 ranks and lseek ( /a/f # # ) at level 0 at 24 ranks",
    )


def test_arguments_are_counted() -> None:
    (trace,) = traces_of(lambda r, n: [posix("open", f"/a/f{r}.{n:03d}", 66, 420)], (8,))
    (call,) = trace.classes[0].body
    assert isinstance(call, Call)
    assert arguments_of(call) == (
        "argument 1, number 1",
        "argument 1, number 2",
        "argument 2",
        "argument 3",
    )
