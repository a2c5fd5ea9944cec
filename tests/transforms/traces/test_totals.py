"""What a compressed trace adds up to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from iosig.transforms.traces.progressions import Listed, Progression, size_of
from iosig.transforms.traces.requests import Field, Number, Size, vectors_of
from iosig.transforms.traces.totals import FileTotal, ModuleTotal, OfFile, Opened, Totals, files_of, totals
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Share, Slot, Vector
from tests import compressed, spmd_programs
from tests.budget import examples
from tests.naive.traces import totals as naive
from tests.spmd_programs import FORMS


def assert_agree(found: Totals, expected: naive.Sums) -> None:
    assert {(row.module, row.function): row.call_count for row in found.calls} == dict(expected.calls)
    requests, moved = {}, {}
    for row in found.modules:
        for deed, count, volume in (
            ("read", row.read_count, row.read_bytes),
            ("write", row.write_count, row.written_bytes),
        ):
            if count:
                assert row.is_nested is not None
                requests[row.module, row.is_nested, deed] = count
                moved[row.module, row.is_nested, deed] = volume
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
def test_totals_are_those_of_all_calls(program: tuple[int, list[naive.Made]]) -> None:
    process_count, made = program
    found = totals(spmd_programs.compressed(process_count, made), FORMS)
    assert_agree(found, naive.totals(made, FORMS))


@settings(deadline=None, max_examples=examples(30))
@given(compressed.compressed_traces())
def test_calls_of_any_trace_are_counted(trace: CompressedTrace) -> None:
    expected = naive.totals(naive.calls_of(trace), FORMS)
    found = totals(trace, FORMS)
    assert {(row.module, row.function): row.call_count for row in found.calls} == dict(expected.calls)
    assert found.call_count == sum(expected.calls.values())
    assert sum(row.call_count + row.nested_call_count for row in found.files) == sum(
        sum(file.calls.values()) for file in expected.files.values()
    )


# ---- plain answers


def test_a_million_files_are_one_row() -> None:
    n = 1_000_000
    found = totals(compressed.file_per_process(n), FORMS)
    volume = n * 4 * 131072
    assert found.modules == (ModuleTotal("POSIX", False, 0, 4 * n, 0, volume),)
    # open and write are known here, close is not
    assert found.files == (FileTotal("f.{00000000..00999999}", n, n, 5 * n, 0, volume, 0, 0, 0),)


def test_bytes_of_mpi_io_belong_to_the_file_that_was_opened() -> None:
    (file,) = totals(compressed.table_one(48), FORMS).files
    assert file == FileTotal("strong", 1, 48, 48 * 5, 0, 3 * 960, 0, 0, 0)


def test_sums_beyond_64_bits_are_exact() -> None:
    ranks, count, size = Progression(0, (1,), (1 << 20,)), 1 << 20, 1 << 59
    slot = Slot(1, (Share(ranks, ((Progression(1, (0,), (count,)),),), (Progression(size, (3,), (count,)),)),))
    write = Call("POSIX", "write", 0, ("f %p ", ""), (slot,), (), compressed.steady(1, 0.0))
    trace = CompressedTrace(ranks.size, (RankClass((ranks,), (Loop(_always(ranks, count), (write,)),)),))
    expected = ranks.size * (count * size + 3 * count * (count - 1) // 2) + count * ranks.size * (ranks.size - 1) // 2
    (row,) = totals(trace, FORMS).modules
    assert row.written_bytes == expected > 1 << 64


def _always(ranks: Progression, count: int) -> tuple[Share, ...]:
    return (Share(ranks, ((Progression(0),),), (Progression(count),)),)


def test_iterations_without_end_cost_nothing() -> None:
    ranks, count = Progression(0, (1,), (4,)), 1 << 50
    slot = Slot(1, (Share(ranks, ((Progression(0, (0,), (count,)),),), (Progression(8, (0,), (count,)),)),))
    write = Call("POSIX", "write", 0, ("f %p ", ""), (slot,), (), compressed.steady(1, 0.0))
    trace = CompressedTrace(4, (RankClass((ranks,), (Loop(_always(ranks, count), (write,)),)),))
    (file,) = totals(trace, FORMS).files
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
def test_sizes_that_are_not_known_are_none(function: str, text: str, expected: int | None) -> None:
    module = FORMS.by_function[function].layer
    call = Call(module, function, 0, (text,), (), (), compressed.steady(1, 0.0))
    (row,) = totals(CompressedTrace(1, (RankClass((Progression(0),), (call,)),)), FORMS).modules
    assert row.written_bytes == expected


def test_inner_calls_that_others_enclose_only_at_first_are_told_apart_from_both() -> None:
    ranks = Progression(0)
    values = Slot(1, (Share(ranks, (), (Progression(5, (0,), (2,)),)),))
    inner = Call("POSIX", "pwrite", 1, ("f %p ", " 0"), (values,), (), compressed.steady(2, 0.0))
    around = Call("MPI", "MPI_Barrier", 0, ("w",), (), (), compressed.steady(2, 0.0))
    first = Call("MPIIO", "MPI_File_open", 0, ("w f 9 %p 0-0",), (), (), compressed.steady(1, 0.0))
    body = (first, Loop((Share(ranks, (), (Progression(2),)),), (inner, around)))
    found = totals(CompressedTrace(1, (RankClass((ranks,), body),)), FORMS)
    assert found.modules == (ModuleTotal("POSIX", None, 0, 2, 0, 10),)
    (file,) = found.files
    assert (file.written_bytes, file.nested_written_bytes, file.read_bytes) == (None, None, 0)


def test_traces_that_contradict_themselves_are_refused() -> None:
    trace = compressed.file_per_process(8)
    (rank_class,) = trace.classes
    loop = rank_class.body[1]
    assert isinstance(loop, Loop)
    less = replace(loop, counts=_always(Progression(0, (1,), (8,)), 3))
    body = (rank_class.body[0], less, rank_class.body[2])
    with pytest.raises(ValueError, match="write has 32 values, and is made 24 times"):
        totals(CompressedTrace(8, (replace(rank_class, body=body),)), FORMS)


def test_no_calls_come_to_nothing() -> None:
    assert totals(CompressedTrace(3, ()), FORMS) == Totals(3, (), (), ())


# ---- real traces


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ios_mpiio_nn", "ior_posix_fpp", "ios_group4"])
def test_real_traces(shared_data: Path, program: str) -> None:
    from iosig.traces.extrapolation.view import recorder_forms
    from iosig.transforms.traces.compression import compress
    from iosig.warehouse.sources.recorder.signatures import opened

    path = shared_data / "recorder" / program / "12" / "raw.tar.zst"
    if not path.is_file():
        pytest.skip(f"{program} is not among the real measurements")
    with opened(path) as run:
        ranks = [run.decode(rank) for rank in run.ranks]
    made = [
        (rank.rank, module, function, level, text)
        for rank in ranks
        for level, module, function, text in rank.signatures[rank.order].rows()
    ]
    forms = recorder_forms()
    assert_agree(totals(compress(12, ranks), forms), naive.totals(made, forms))


RANKS = Progression(0, (1,), (8,))


def rows(values: tuple[int, ...], shift: int = 0, ranks: Progression = RANKS) -> Vector:
    return (Share(ranks, tuple((Listed((shift,) * len(values)),) for _ in ranks.counts), (Listed(values),)),)


def handle(first: Vector | int, second: Vector | int) -> Field:
    return Field(("", "-", ""), (Number(1, first), Number(1, second)))


def path(text: str) -> Field:
    return Field((text,), ())


def executed(known: Field | Opened) -> int:
    handles = known.handle if isinstance(known, Opened) else known
    sizes = [size_of(share.values) for vector in vectors_of(handles) for share in vector]
    return max(sizes, default=4 if isinstance(known, Field) else 1)


def found(
    own: Field, opened: list[Opened], size: Size | None = None, number: int = 9
) -> list[tuple[int | None, int, int | None]]:
    """Return what calls go back to that come behind all opens, each executed as often as it has handles."""
    order = np.repeat([*(one.number for one in opened), number], [*map(executed, opened), executed(own)]).astype(
        np.int32
    )
    made: list[OfFile] = files_of(own, number, opened, lambda: [RANKS], 8 * 4, size, lambda rank: order, [])
    return [(part.opened.number if part.opened else None, part.call_count, part.volume) for part in made]


def test_the_same_handle_is_the_same_file() -> None:
    own = handle(rows((0,), 1), 0)
    assert found(own, [Opened(0, own, path("a")), Opened(1, handle(0, 1), path("b"))], Size(5, 2, 0)) == [(0, 32, 320)]


def test_of_two_opens_the_last_one_before_counts() -> None:
    opened = [Opened(number, handle(0, 0), path("a")) for number in (0, 3, 12)]
    assert found(handle(0, 0), opened) == [(3, 32, None)]
    assert found(handle(0, 0), opened[2:]) == [(12, 32, None)]


def test_a_handle_that_is_given_again_goes_back_to_the_last_open_of_it() -> None:
    opened = [Opened(0, handle(0, 0), path("a")), Opened(2, handle(0, 0), path("b"))]
    # a is opened; then twice: a call on what is open, and b is opened; then a call
    order = np.array([0, 1, 2, 1, 2, 3], np.int32)
    first, last = (
        files_of(handle(0, 0), number, opened, lambda: [RANKS], count, None, lambda rank: order, [])
        for number, count in ((1, 16), (3, 8))
    )
    assert sorted((part.opened.number, part.call_count) for part in first if part.opened) == [(0, 8), (2, 8)]
    assert [(part.opened.number, part.call_count) for part in last if part.opened] == [(2, 8)]


def test_calls_on_two_files_in_turn_are_divided() -> None:
    opened = [Opened(0, handle(0, 0), path("a")), Opened(1, handle(0, 1), path("b"))]
    own = handle(rows((0,) * 4), rows((0, 1, 1, 7)))
    size = Size(rows((10, 1, 2, 100), 1), 1, 0)
    # over the ranks 0 to 7 each size grows by 28
    assert sorted(found(own, opened, size), key=lambda row: str(row[0])) == [
        (0, 8, 80 + 28),
        (1, 16, 24 + 2 * 28),
        (None, 8, 800 + 28),
    ]


def test_opens_in_a_loop_have_many_handles() -> None:
    opened = [Opened(1, handle(rows((0,) * 3, 1), rows((0, 1, 2))), path("a"))]
    each_time = handle(rows((0,) * 6, 1), rows((0, 0, 1, 1, 2, 2)))
    assert found(each_time, opened) == [(1, 48, None)]
    assert found(handle(rows((0,), 1), 2), opened) == [(1, 8, None)]
    # always the same: that of rank 0 in the loop, and of no other rank
    assert found(handle(0, 2), opened) == [(None, 32, None)]


def test_ranks_with_other_opens_are_not_told() -> None:
    opened = [Opened(0, handle(rows((0,)), 0), path("a")), Opened(1, handle(rows((7,)), 0), path("b"))]
    assert found(handle(rows((0,), 1), 0), opened) == [(None, 32, None)]


def test_a_handle_that_nobody_opened_is_of_no_file() -> None:
    assert found(handle(0, 0), []) == [(None, 32, None)]
    assert found(handle(0, 0), [Opened(0, path("x"), path("a"))], Size(1, 1, 0)) == [(None, 32, 32)]
