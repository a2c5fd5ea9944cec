"""Dataclasses of compressed traces, for programs with known calls."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.trace import (
    START,
    Call,
    CompressedTrace,
    Gap,
    Loop,
    RankClass,
    Share,
    Slot,
    TimeBin,
    TimeHistogram,
)
from tests.compressed import (
    call_order,
    class_ranks,
    file_per_process,
    nodes,
    rank_values,
    same,
    span,
    steady,
    table_one,
    table_one_posix,
)

STATUS = Call("MPIIO", "MPI_File_read", 0, ("0-", " %p ", " MPI_BYTE [", "_", "]"), (), (), steady(1, 0.0))


def test_values_are_linear_in_the_rank_index() -> None:
    ranks = Progression(3, (8, 1), (2, 3))
    share = Share(ranks, ((Progression(100, (7,), (2,)),), (same(5, 2),)), (Progression(1000, (1,), (2,)),))
    assert rank_values((share,)) == {
        3: [1000, 1001],
        4: [1005, 1006],
        5: [1010, 1011],
        11: [1100, 1108],
        12: [1105, 1113],
        13: [1110, 1118],
    }


def test_offsets_equal_table_one_of_the_paper() -> None:
    """Offset = rank * (960 / n) + 960 * i."""
    for count in (6, 20, 48):
        ((offset,),) = ([slot.vector for slot in node.slots] for node in table_one(count).classes[0].body[1].body[:1])
        assert rank_values(offset) == {
            rank: [rank * (960 // count) + 960 * i for i in range(3)] for rank in range(count)
        }


@pytest.mark.parametrize("trace", [table_one(8), table_one_posix(8), file_per_process(8)], ids=["mpi", "posix", "fpp"])
def test_nodes_are_numbered_depth_first_and_gaps_name_the_previous_call(trace: CompressedTrace) -> None:
    assert sorted(rank for rank_class in trace.classes for rank in class_ranks(rank_class)) == list(range(8))
    for rank_class in trace.classes:
        every = list(nodes(rank_class.body))
        before: dict[int, set[int]] = {}
        for rank in class_ranks(rank_class):
            order = call_order(rank_class, rank)
            for previous, number in zip([START, *order], order, strict=False):
                before.setdefault(number, set()).add(previous)
        for number, node in enumerate(every):
            if isinstance(node, Call):
                assert {gap.previous for gap in node.gaps} == before[number]
                assert sum(gap.histogram.count for gap in node.gaps) == node.durations.count


@pytest.mark.parametrize("slot", range(4))
@pytest.mark.parametrize("module", ["POSIX", "MPIIO", "MPI"])
def test_only_statuses_are_signed(module: str, slot: int) -> None:
    call = Call(module, "f", 0, STATUS.texts, (), (), STATUS.durations)
    assert call.is_signed(slot) == (module != "POSIX" and slot >= 2)


def test_other_brackets_and_underscores_are_unsigned() -> None:
    call = Call("MPIIO", "f", 0, ("a[x", "f_", "_ ", " _", ""), (), (), STATUS.durations)
    assert [call.is_signed(slot) for slot in range(4)] == [False] * 4


@pytest.mark.parametrize(
    "part",
    [
        span(0, 2),
        Share(span(0, 2), (), ()),
        Slot(1, ()),
        TimeBin(1, 0.0, 0.0, 0.0),
        TimeHistogram(1, 0.0, 0.0, 0.0, 0.0, ()),
        Gap(START, steady(1, 0.0)),
        STATUS,
        Loop((), ()),
        RankClass((), ()),
        CompressedTrace(1, ()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_dataclasses_are_frozen_and_hashable(part: object) -> None:
    name = fields(part)[0].name  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        setattr(part, name, getattr(part, name))
    again = type(part)(*(getattr(part, field.name) for field in fields(part)))  # type: ignore[arg-type]
    assert part == again
    assert hash(part) == hash(again)
