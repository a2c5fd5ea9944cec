"""What calls of a compressed trace do to files."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from iosig.transforms.traces.progressions import Listed, Progression
from iosig.transforms.traces.requests import Form, Size, exact_volumes, fields, nested_nodes, size_asked, volume
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Share, Slot
from tests import compressed
from tests.budget import examples
from tests.naive.traces import expansion as naive
from tests.spmd_programs import FORMS

ONE = Progression(0)
TWO = Progression(0, (1,), (2,))


def vector(*numbers: int, ranks: Progression = ONE, shift: tuple[int, ...] = ()) -> tuple[Share, ...]:
    return (Share(ranks, ((Listed(shift),),) if ranks.counts else (), (Listed(numbers),)),)


def plain(function: str, text: str, *, level: int = 0, module: str = "POSIX") -> Call:
    return Call(module, function, level, (text,), (), (), compressed.steady(1, 0.0))


def with_slots(texts: tuple[str, ...], *slots: Slot) -> Call:
    return Call("POSIX", "write", 0, texts, slots, (), compressed.steady(1, 0.0))


# ---- arguments


def test_arguments_stand_between_spaces_whatever_the_slots() -> None:
    call = with_slots(("f.", "_", " %p ", ""), Slot(3, vector(7, 7)), Slot(1, vector(1, 2)), Slot(1, vector(64, 64)))
    name, buffer, count = fields(call)
    assert name.texts == ("f.", "_", "")
    assert [number.width for number in name.numbers] == [3, 1]
    assert (name.constant, name.whole()) == (None, None)
    assert (buffer.constant, buffer.whole()) == ("%p", None)
    assert (count.constant, count.whole()) == ("64", 64)


def test_numbers_in_texts_are_numbers_too() -> None:
    (name,) = fields(plain("open", "a007-12"))
    assert name.texts == ("a", "-", "")
    assert [(number.width, number.values) for number in name.numbers] == [(3, 7), (2, 12)]
    assert name.constant == "a007-12"


@pytest.mark.parametrize(("text", "number"), [("-5", -5), ("5", 5), ("", None), ("5x", None), ("--5", None)])
def test_whole_numbers(text: str, number: int | None) -> None:
    assert fields(plain("open", text))[0].whole() == number


# ---- bytes


def test_bytes_asked_for_follow_the_form() -> None:
    assert size_asked(fields(plain("fread", "%p 8 4 f")), FORMS.by_function["fread"], FORMS) == Size(4, 8, 0)
    assert size_asked(fields(plain("fprintf", "f 9")), FORMS.by_function["fprintf"], FORMS) == Size(9, 1, 1)
    mpi = FORMS.by_function["MPI_File_write"]
    assert size_asked(fields(plain("MPI_File_write", "h %p 3 MPI_DOUBLE")), mpi, FORMS) == Size(3, 8, 0)
    assert size_asked(fields(plain("MPI_File_write", "h %p 3 unnamed")), mpi, FORMS) is None
    assert size_asked(fields(plain("MPI_File_write", "h %p 3")), mpi, FORMS) is None


def test_volumes_of_two_factors() -> None:
    counts, sizes = vector(1, 2, ranks=TWO, shift=(1, 0)), vector(8, 8, ranks=TWO, shift=(0, 0))
    # ranks 0 and 1: counts 1 2 and 2 2
    assert volume(Size(counts, 8, 0), 4) == volume(Size(8, counts, 0), 4) == volume(Size(counts, sizes, 0), 4) == 56
    assert volume(Size(counts, 8, 1), 4) == 24
    assert volume(Size(2, 8, 0), 4) == 64
    assert volume(Size(counts, counts, 0), 4) is None
    assert volume(Size(counts, 8, 2), 4) is None
    assert volume(Size(counts, -1, 0), 4) is None
    assert volume(None, 4) is None


def test_volumes_of_each_execution() -> None:
    counts, sizes = vector(1, 2, ranks=TWO, shift=(1, 0)), vector(8, 10, ranks=TWO, shift=(0, 0))
    found = [exact_volumes(Size(*factors, 0), TWO, 2) for factors in ((counts, sizes), (sizes, counts), (3, 4))]
    assert [part.tolist() for part in found if part is not None] == [[24, 40], [24, 40], [24, 24]]
    assert exact_volumes(Size(counts, counts, 0), TWO, 2) is None
    assert exact_volumes(None, TWO, 2) is None


# ---- calls within calls


@settings(deadline=None, max_examples=examples(30))
@given(compressed.compressed_traces())
def test_calls_within_others_are_those_that_a_walk_finds(trace: CompressedTrace) -> None:
    for rank_class in trace.classes:
        found = nested_nodes(rank_class)
        for rank in naive.ranks(rank_class.ranks):
            around: list[tuple[int, bool]] = []
            for number, node, _ in naive.calls(trace, rank):
                around = [pair for pair in around if pair[0] < node.level]
                told = found[number]
                assert told is None or told == any(touches for _, touches in around)
                around.append((node.level, node.module != "MPI"))


def test_only_calls_to_files_enclose() -> None:
    body = (plain("MPI_Bcast", "", module="MPI"), plain("write", "f", level=1), plain("pwrite", "f", level=2))
    assert nested_nodes(RankClass((ONE,), body)) == {0: False, 1: False, 2: True}


def test_loops_too_deep_are_not_gone_through() -> None:
    node: Call | Loop = plain("write", "f", level=1)
    for _ in range(40):
        node = Loop(vector(1), (node,))
    assert nested_nodes(RankClass((ONE,), (node,))) == {40: None}


def test_forms_are_found_by_function() -> None:
    assert FORMS.of(plain("write", "f")) == Form("POSIX", "write", 0, count_at=2)
    assert FORMS.of(plain("MPI_Barrier", "")) is None
