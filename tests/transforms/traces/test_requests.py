"""File operations of the calls of a compressed trace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from iosig.transforms.traces.progressions import NumberList, Progression
from iosig.transforms.traces.requests import (
    CallFormat,
    Size,
    find_nested_calls,
    request_size,
    split_arguments,
    total_volume,
    volumes_by_execution,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Share, Slot
from tests import compressed
from tests.budget import examples
from tests.naive.traces import expansion as naive
from tests.spmd_programs import FORMS

ONE = Progression(0)
TWO = Progression(0, (1,), (2,))


def make_vector(*numbers: int, ranks: Progression = ONE, shift: tuple[int, ...] = ()) -> tuple[Share, ...]:
    return (Share(ranks, ((NumberList(shift),),) if ranks.counts else (), (NumberList(numbers),)),)


def make_call(function: str, text: str, *, level: int = 0, module: str = "POSIX") -> Call:
    return Call(module, function, level, (text,), (), (), compressed.steady(1, 0.0))


def make_slot_call(texts: tuple[str, ...], *slots: Slot) -> Call:
    return Call("POSIX", "write", 0, texts, slots, (), compressed.steady(1, 0.0))


# ---- arguments


def test_arguments_are_separated_by_spaces() -> None:
    call = make_slot_call(
        ("f.", "_", " %p ", ""), Slot(3, make_vector(7, 7)), Slot(1, make_vector(1, 2)), Slot(1, make_vector(64, 64))
    )
    name, buffer, count = split_arguments(call)
    assert name.texts == ("f.", "_", "")
    assert [number.width for number in name.numbers] == [3, 1]
    assert (name.constant, name.integer_values()) == (None, None)
    assert (buffer.constant, buffer.integer_values()) == ("%p", None)
    assert (count.constant, count.integer_values()) == ("64", 64)


def test_constant_numbers_in_texts_are_split() -> None:
    (name,) = split_arguments(make_call("open", "a007-12"))
    assert name.texts == ("a", "-", "")
    assert [(number.width, number.values) for number in name.numbers] == [(3, 7), (2, 12)]
    assert name.constant == "a007-12"


@pytest.mark.parametrize(("text", "number"), [("-5", -5), ("5", 5), ("", None), ("5x", None), ("--5", None)])
def test_integer_arguments_are_parsed(text: str, number: int | None) -> None:
    assert split_arguments(make_call("open", text))[0].integer_values() == number


# ---- bytes


def test_request_size_follows_the_format() -> None:
    assert request_size(split_arguments(make_call("fread", "%p 8 4 f")), FORMS.by_function["fread"], FORMS) == Size(
        4, 8, 0
    )
    assert request_size(split_arguments(make_call("fprintf", "f 9")), FORMS.by_function["fprintf"], FORMS) == Size(
        9, 1, 1
    )
    mpi = FORMS.by_function["MPI_File_write"]
    assert request_size(split_arguments(make_call("MPI_File_write", "h %p 3 MPI_DOUBLE")), mpi, FORMS) == Size(3, 8, 0)
    assert request_size(split_arguments(make_call("MPI_File_write", "h %p 3 unnamed")), mpi, FORMS) is None
    assert request_size(split_arguments(make_call("MPI_File_write", "h %p 3")), mpi, FORMS) is None


def test_total_volume_multiplies_two_factors() -> None:
    counts, sizes = make_vector(1, 2, ranks=TWO, shift=(1, 0)), make_vector(8, 8, ranks=TWO, shift=(0, 0))
    # ranks 0 and 1: counts 1 2 and 2 2
    assert (
        total_volume(Size(counts, 8, 0), 4)
        == total_volume(Size(8, counts, 0), 4)
        == total_volume(Size(counts, sizes, 0), 4)
        == 56
    )
    assert total_volume(Size(counts, 8, 1), 4) == 24
    assert total_volume(Size(2, 8, 0), 4) == 64
    assert total_volume(Size(counts, counts, 0), 4) is None
    assert total_volume(Size(counts, 8, 2), 4) is None
    assert total_volume(Size(counts, -1, 0), 4) is None
    assert total_volume(None, 4) is None


def test_volumes_are_computed_by_execution() -> None:
    counts, sizes = make_vector(1, 2, ranks=TWO, shift=(1, 0)), make_vector(8, 10, ranks=TWO, shift=(0, 0))
    found = [volumes_by_execution(Size(*factors, 0), TWO, 2) for factors in ((counts, sizes), (sizes, counts), (3, 4))]
    assert [part.tolist() for part in found if part is not None] == [[24, 40], [24, 40], [24, 24]]
    assert volumes_by_execution(Size(counts, counts, 0), TWO, 2) is None
    assert volumes_by_execution(None, TWO, 2) is None


# ---- nested calls


@settings(deadline=None, max_examples=examples(30))
@given(compressed.compressed_traces())
def test_nested_calls_match_naive_implementation(trace: CompressedTrace) -> None:
    for rank_class in trace.classes:
        found = find_nested_calls(rank_class)
        for rank in naive.ranks(rank_class.ranks):
            around: list[tuple[int, bool]] = []
            for number, node, _ in naive.calls(trace, rank):
                around = [pair for pair in around if pair[0] < node.level]
                told = found[number]
                assert told is None or told == any(touches for _, touches in around)
                around.append((node.level, node.module != "MPI"))


def test_only_calls_that_access_files_enclose() -> None:
    body = (
        make_call("MPI_Bcast", "", module="MPI"),
        make_call("write", "f", level=1),
        make_call("pwrite", "f", level=2),
    )
    assert find_nested_calls(RankClass((ONE,), body)) == {0: False, 1: False, 2: True}


def test_deep_loops_are_not_analyzed() -> None:
    node: Call | Loop = make_call("write", "f", level=1)
    for _ in range(40):
        node = Loop(make_vector(1), (node,))
    assert find_nested_calls(RankClass((ONE,), (node,))) == {40: None}


def test_formats_are_found_by_function() -> None:
    assert FORMS.find(make_call("write", "f")) == CallFormat("POSIX", "write", 0, count_at=2)
    assert FORMS.find(make_call("MPI_Barrier", "")) is None
