"""Totals of a compressed trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from iosig.transforms.traces.progressions import NumberList, Progression, row_size
from iosig.transforms.traces.requests import Argument, Number, Size, varying_vectors
from iosig.transforms.traces.totals import (
    FileCalls,
    FileTotal,
    ModuleTotal,
    OpenCall,
    Totals,
    assign_to_files,
    compute_totals,
)
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Share, Slot, Vector
from tests import compressed, spmd_programs
from tests.budget import examples
from tests.naive.traces import totals as naive
from tests.spmd_programs import FORMS


def assert_agree(found: Totals, expected: naive.Sums) -> None:
    assert {(row.module, row.function): row.call_count for row in found.calls} == dict(expected.calls)
    requests, moved = {}, {}
    for row in found.modules:
        for operation, count, volume in (
            ("read", row.read_count, row.read_bytes),
            ("write", row.write_count, row.written_bytes),
        ):
            if count:
                assert row.is_nested is not None
                requests[row.module, row.is_nested, operation] = count
                moved[row.module, row.is_nested, operation] = volume
    assert requests == dict(expected.requests)
    assert moved == {key: expected.bytes[key] for key in requests}
    kinds: dict[str | None, list[FileTotal]] = {}
    for file in found.files:
        kinds.setdefault(None if file.path is None else naive.kind(file.path), []).append(file)
    assert set(kinds) == set(expected.files)
    for kind, rows in kinds.items():
        assert_files_agree(rows, expected.files[kind], has_path=kind is not None)


def assert_files_agree(rows: list[FileTotal], own: naive.File, *, has_path: bool) -> None:
    if has_path:
        assert sum(row.file_count or 0 for row in rows) == len(own.paths)
    if len(rows) == 1:
        assert rows[0].rank_count == len(own.ranks)
        assert rows[0].read_bytes == own.bytes[False, "read"]
        assert rows[0].written_bytes == own.bytes[False, "write"]
        assert rows[0].nested_written_bytes == own.bytes[True, "write"]
    assert sum(row.call_count for row in rows) == own.calls[False]
    assert sum(row.nested_call_count for row in rows) == own.calls[True]
    known = [row.written_bytes for row in rows if row.written_bytes is not None]
    if len(known) == len(rows):
        assert sum(known) == own.bytes[False, "write"]


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(spmd_programs.programs())
def test_totals_match_naive_implementation(program: tuple[int, list[naive.Made]]) -> None:
    process_count, made = program
    found = compute_totals(spmd_programs.compressed(process_count, made), FORMS)
    assert_agree(found, naive.compute_totals(made, FORMS))


@settings(deadline=None, max_examples=examples(30))
@given(compressed.compressed_traces())
def test_calls_of_any_trace_are_counted(trace: CompressedTrace) -> None:
    expected = naive.compute_totals(naive.calls_of(trace), FORMS)
    found = compute_totals(trace, FORMS)
    assert {(row.module, row.function): row.call_count for row in found.calls} == dict(expected.calls)
    assert found.call_count == sum(expected.calls.values())
    assert sum(row.call_count + row.nested_call_count for row in found.files) == sum(
        sum(file.calls.values()) for file in expected.files.values()
    )


# ---- examples


def test_million_files_are_one_row() -> None:
    n = 1_000_000
    found = compute_totals(compressed.file_per_process(n), FORMS)
    volume = n * 4 * 131072
    assert found.modules == (ModuleTotal("POSIX", False, 0, 4 * n, 0, volume),)
    # Open and write are known formats, close is not.
    assert found.files == (FileTotal("f.{00000000..00999999}", n, n, 5 * n, 0, volume, 0, 0, 0),)


def test_mpi_io_bytes_belong_to_the_opened_file() -> None:
    (file,) = compute_totals(compressed.table_one(48), FORMS).files
    assert file == FileTotal("strong", 1, 48, 48 * 5, 0, 3 * 960, 0, 0, 0)


def test_sums_beyond_64_bits_are_exact() -> None:
    ranks, count, size = Progression(0, (1,), (1 << 20,)), 1 << 20, 1 << 59
    slot = Slot(1, (Share(ranks, ((Progression(1, (0,), (count,)),),), (Progression(size, (3,), (count,)),)),))
    write = Call("POSIX", "write", 0, ("f %p ", ""), (slot,), (), compressed.steady(1, 0.0))
    trace = CompressedTrace(ranks.size, (RankClass((ranks,), (Loop(_make_count(ranks, count), (write,)),)),))
    expected = ranks.size * (count * size + 3 * count * (count - 1) // 2) + count * ranks.size * (ranks.size - 1) // 2
    (row,) = compute_totals(trace, FORMS).modules
    assert row.written_bytes == expected > 1 << 64


def _make_count(ranks: Progression, count: int) -> tuple[Share, ...]:
    return (Share(ranks, ((Progression(0),),), (Progression(count),)),)


def test_cost_is_independent_of_iterations() -> None:
    ranks, count = Progression(0, (1,), (4,)), 1 << 50
    slot = Slot(1, (Share(ranks, ((Progression(0, (0,), (count,)),),), (Progression(8, (0,), (count,)),)),))
    write = Call("POSIX", "write", 0, ("f %p ", ""), (slot,), (), compressed.steady(1, 0.0))
    trace = CompressedTrace(4, (RankClass((ranks,), (Loop(_make_count(ranks, count), (write,)),)),))
    (file,) = compute_totals(trace, FORMS).files
    assert (file.call_count, file.written_bytes, file.file_count, file.rank_count) == (4 * count, 32 * count, 1, 4)


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        ("MPI_File_write", "0-0 %p 4 MPI_TYPE_UNKNOWN", None),
        ("MPI_File_write", "0-0 %p 4 MPI_DOUBLE", 32),
        ("write", "f %p", None),
        ("write", "f %p -1", None),
        ("write", "f %p 00", 0),
        ("fprintf", "f 8", 7),
    ],
)
def test_unknown_sizes_are_none(function: str, text: str, expected: int | None) -> None:
    module = FORMS.by_function[function].layer
    call = Call(module, function, 0, (text,), (), (), compressed.steady(1, 0.0))
    (row,) = compute_totals(CompressedTrace(1, (RankClass((Progression(0),), (call,)),)), FORMS).modules
    assert row.written_bytes == expected


def test_partly_nested_calls_are_neither_outer_nor_nested() -> None:
    ranks = Progression(0)
    values = Slot(1, (Share(ranks, (), (Progression(5, (0,), (2,)),)),))
    inner = Call("POSIX", "pwrite", 1, ("f %p ", " 0"), (values,), (), compressed.steady(2, 0.0))
    around = Call("MPI", "MPI_Barrier", 0, ("w",), (), (), compressed.steady(2, 0.0))
    first = Call("MPIIO", "MPI_File_open", 0, ("w f 9 %p 0-0",), (), (), compressed.steady(1, 0.0))
    body = (first, Loop((Share(ranks, (), (Progression(2),)),), (inner, around)))
    found = compute_totals(CompressedTrace(1, (RankClass((ranks,), body),)), FORMS)
    assert found.modules == (ModuleTotal("POSIX", None, 0, 2, 0, 10),)
    (file,) = found.files
    assert (file.written_bytes, file.nested_written_bytes, file.read_bytes) == (None, None, 0)


def test_inconsistent_traces_are_rejected() -> None:
    trace = compressed.file_per_process(8)
    (rank_class,) = trace.classes
    loop = rank_class.body[1]
    assert isinstance(loop, Loop)
    less = replace(loop, counts=_make_count(Progression(0, (1,), (8,)), 3))
    body = (rank_class.body[0], less, rank_class.body[2])
    with pytest.raises(ValueError, match="write has 32 values for 24 executions"):
        compute_totals(CompressedTrace(8, (replace(rank_class, body=body),)), FORMS)


def test_trace_without_calls_has_empty_totals() -> None:
    assert compute_totals(CompressedTrace(3, ()), FORMS) == Totals(3, (), (), ())


# ---- real traces


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ios_mpiio_nn", "ior_posix_fpp", "ios_group4"])
def test_totals_of_real_traces_match_naive_implementation(shared_data: Path, program: str) -> None:
    from iosig.traces.extrapolation.view import recorder_forms
    from iosig.transforms.traces.compression import compress
    from iosig.warehouse.sources.recorder.signatures import open_signed_run

    path = shared_data / "recorder" / program / "12" / "raw.tar.zst"
    if not path.is_file():
        pytest.skip(f"{program} is not among the real measurements")
    with open_signed_run(path) as run:
        ranks = [run.decode(rank) for rank in run.ranks]
    made = [
        (rank.rank, module, function, level, text)
        for rank in ranks
        for level, module, function, text in rank.signatures[rank.order].rows()
    ]
    forms = recorder_forms()
    assert_agree(compute_totals(compress(12, ranks), forms), naive.compute_totals(made, forms))


RANKS = Progression(0, (1,), (8,))


def make_vector(values: tuple[int, ...], shift: int = 0, ranks: Progression = RANKS) -> Vector:
    return (Share(ranks, tuple((NumberList((shift,) * len(values)),) for _ in ranks.counts), (NumberList(values),)),)


def make_handle(first: Vector | int, second: Vector | int) -> Argument:
    return Argument(("", "-", ""), (Number(1, first), Number(1, second)))


def make_path(text: str) -> Argument:
    return Argument((text,), ())


def count_executions(known: Argument | OpenCall) -> int:
    handles = known.handle if isinstance(known, OpenCall) else known
    sizes = [row_size(share.values) for vector in varying_vectors(handles) for share in vector]
    return max(sizes, default=4 if isinstance(known, Argument) else 1)


def assign_calls(
    own: Argument, opened: list[OpenCall], size: Size | None = None, number: int = 9
) -> list[tuple[int | None, int, int | None]]:
    """Assign calls after all opens; each is executed once per handle."""
    order = np.repeat(
        [*(one.number for one in opened), number], [*map(count_executions, opened), count_executions(own)]
    ).astype(np.int32)
    made: list[FileCalls] = assign_to_files(own, number, opened, lambda: [RANKS], 8 * 4, size, lambda rank: order, [])
    return [(part.open_call.number if part.open_call else None, part.call_count, part.volume) for part in made]


def test_equal_handles_are_the_same_file() -> None:
    own = make_handle(make_vector((0,), 1), 0)
    assert assign_calls(
        own, [OpenCall(0, own, make_path("a")), OpenCall(1, make_handle(0, 1), make_path("b"))], Size(5, 2, 0)
    ) == [(0, 32, 320)]


def test_call_belongs_to_the_last_preceding_open() -> None:
    opened = [OpenCall(number, make_handle(0, 0), make_path("a")) for number in (0, 3, 12)]
    assert assign_calls(make_handle(0, 0), opened) == [(3, 32, None)]
    assert assign_calls(make_handle(0, 0), opened[2:]) == [(12, 32, None)]


def test_reused_handle_belongs_to_its_last_open() -> None:
    opened = [OpenCall(0, make_handle(0, 0), make_path("a")), OpenCall(2, make_handle(0, 0), make_path("b"))]
    # File a is opened; a call on the open file and an open of b follow twice; then a last call.
    order = np.array([0, 1, 2, 1, 2, 3], np.int32)
    first, last = (
        assign_to_files(make_handle(0, 0), number, opened, lambda: [RANKS], count, None, lambda rank: order, [])
        for number, count in ((1, 16), (3, 8))
    )
    assert sorted((part.open_call.number, part.call_count) for part in first if part.open_call) == [(0, 8), (2, 8)]
    assert [(part.open_call.number, part.call_count) for part in last if part.open_call] == [(2, 8)]


def test_alternating_calls_are_divided_among_files() -> None:
    opened = [OpenCall(0, make_handle(0, 0), make_path("a")), OpenCall(1, make_handle(0, 1), make_path("b"))]
    own = make_handle(make_vector((0,) * 4), make_vector((0, 1, 1, 7)))
    size = Size(make_vector((10, 1, 2, 100), 1), 1, 0)
    # Over ranks 0 to 7, each size increases by 28 in total.
    assert sorted(assign_calls(own, opened, size), key=lambda row: str(row[0])) == [
        (0, 8, 80 + 28),
        (1, 16, 24 + 2 * 28),
        (None, 8, 800 + 28),
    ]


def test_opens_in_a_loop_have_many_handles() -> None:
    opened = [OpenCall(1, make_handle(make_vector((0,) * 3, 1), make_vector((0, 1, 2))), make_path("a"))]
    each_time = make_handle(make_vector((0,) * 6, 1), make_vector((0, 0, 1, 1, 2, 2)))
    assert assign_calls(each_time, opened) == [(1, 48, None)]
    assert assign_calls(make_handle(make_vector((0,), 1), 2), opened) == [(1, 8, None)]
    # Constant only for rank 0 in the loop.
    assert assign_calls(make_handle(0, 2), opened) == [(None, 32, None)]


def test_ranks_with_different_opens_are_unknown() -> None:
    opened = [
        OpenCall(0, make_handle(make_vector((0,)), 0), make_path("a")),
        OpenCall(1, make_handle(make_vector((7,)), 0), make_path("b")),
    ]
    assert assign_calls(make_handle(make_vector((0,), 1), 0), opened) == [(None, 32, None)]


def test_handle_without_open_has_no_file() -> None:
    assert assign_calls(make_handle(0, 0), []) == [(None, 32, None)]
    assert assign_calls(make_handle(0, 0), [OpenCall(0, make_path("x"), make_path("a"))], Size(1, 1, 0)) == [
        (None, 32, 32)
    ]
