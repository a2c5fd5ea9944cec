"""Test requests derived from Recorder's calls: arguments, offsets, nesting and sums, against a naive implementation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.recorder import requests as recorder_requests
from iosig.warehouse.sources.recorder.requests import Requests
from tests.budget import examples
from tests.naive.sources.recorder import requests as naive
from tests.warehouse.sources.recorder_calls import found, made, of_archive

RANKS = (8, 12, 16, 24)
KIB, MIB = 1 << 10, 1 << 20
#: operations by parts of function names
WORDS = {"open": "open", "creat": "open", "close": "close", "seek": "seek", "stat": "stat", "sync": "sync"}
SAMPLE = [("ios_posix_nn", 8), ("ior_mpiio_inter_coll_romio", 12), ("ios_mpiio_nn", 8), ("ior_posix_random", 16)]


def offsets(*calls: str) -> list[int | None]:
    return found(made(*calls))["trace_requests"]["offset_bytes"].to_list()


def sizes(*calls: str) -> list[float | None]:
    return found(made(*calls))["trace_requests"]["request_bytes"].to_list()


# ---- POSIX


def test_every_posix_request_has_bytes() -> None:
    calls = ["read f %p 10", "write f %p 20", "pread64 f %p 30 5", "pwrite f %p 40 6", "readv f 50 2", "writev f 60 3"]
    calls += ["fread %p 8 9 g", "fwrite %p 2 5 g", "fprintf g 12"]
    requests = found(made(*calls))["trace_requests"]
    assert requests["request_bytes"].to_list() == [10, 20, 30, 40, 50, 60, 72, 10, 11]
    assert requests["direction"].to_list() == [*["read", "write"] * 4, "write"]
    assert requests["module"].unique().to_list() == ["POSIX"]
    assert requests["request"].to_list() == list(range(9))


def test_offsets_follow_opens_seeks_reads_and_writes() -> None:
    calls = [
        "open f 66 420",
        "write f %p 10",
        "write f %p 10",
        "lseek f 100 0",
        "read f %p 7",
        "lseek f -7 1",
        "read f %p 1",
    ]
    assert offsets(*calls, "pwrite f %p 9 3", "read f %p 1") == [0, 10, 100, 100, 3, 101]


def test_files_and_ranks_have_separate_file_pointers() -> None:
    one = made("open f 2", "open g 2", "write f %p 10", "write g %p 20", "write f %p 1", "write g %p 2")
    two = made("open f 2", "write f %p 5", "write f %p 5", rank=1)
    assert found(one, two)["trace_requests"]["offset_bytes"].to_list() == [0, 0, 10, 20, 0, 5]
    assert found(pl.concat([one, two]))["trace_requests"]["offset_bytes"].to_list() == [0, 0, 10, 20, 0, 5]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (("write f %p 10",), [None]),
        (("write f %p 10", "lseek f 5 0", "write f %p 1"), [None, 5]),
        (("open f 2", "lseek f 0 2", "read f %p 1", "lseek f 0 0", "read f %p 1"), [None, 0]),
        (("open f 2", "lseek f 9 3", "read f %p 1"), [None]),
        (("open f 1025 420", "write f %p 1", "write f %p 1"), [None, None]),
        (("open f 1026", "read f %p 4", "read f %p 4", "write f %p 4", "read f %p 4"), [0, 4, None, None]),
        (("open f 1025", "pwrite f %p 4 0", "pread f %p 4 8"), [None, 8]),
        (("open f 2", "fcntl f 4 1024", "write f %p 1"), [None]),
        (("open f 1025", "fcntl f 4 0", "write f %p 1"), [0]),
        (("fopen f a+", "fread %p 1 3 f", "fwrite %p 1 3 f"), [0, None]),
        (("open f 2", "read f %p 1", "open f 2", "read f %p 1", "close f", "read f %p 1"), [0, None, None]),
        (("open f 2", "open f 2", "close f", "lseek f 3 0", "read f %p 1"), [3]),
        (("open f 2", "close f", "open f 2", "read f %p 1"), [0]),
        (("open f 2", "dup 3", "close f", "read f %p 1", "open f 2", "read f %p 1"), [0, None]),
        (("open f 2", "fcntl f 0 0", "close f", "open f 2", "read f %p 1"), [None]),
        (("open f 2", "write f %p 5", "fdopen f r", "fread %p 1 4 f", "fread %p 1 4 f"), [0, None, None]),
        (("open f 2", "lseek f -5 0", "read f %p 1"), [None]),
        (("open f 2", "lseek f -5 1", "lseek f 9 1", "read f %p 1"), [None]),
        (("open ??? 2", "read ??? %p 1"), [None]),
        (("open f 2", "write f %p -1", "write f %p 1"), [0, None]),
    ],
)
def test_undetermined_offset_is_null(calls: tuple[str, ...], expected: list[int | None]) -> None:
    assert offsets(*calls) == expected


def test_sums_beyond_64_bits_are_null() -> None:
    huge = str((1 << 63) - 1)
    assert offsets("open f 2", *[f"lseek f {huge} 1"] * 3, "read f %p 1", "lseek f 2 0", "read f %p 1") == [None, 2]
    assert sizes(f"fwrite %p {huge} {huge} f", f"pwrite f %p {huge} 0") == [None, None]


# ---- MPI-IO


def test_basic_datatypes_determine_bytes_and_derived_ones_do_not() -> None:
    calls = [
        f"MPI_File_write_at 0-0 0 %p 3 {name} [0_0]" for name in ("MPI_DOUBLE", "MPI_BYTE", "mine", "MPI_TYPE_UNKNOWN")
    ]
    assert sizes(*calls) == [24, 3, None, None]


def test_handles_are_resolved_to_files() -> None:
    opened = "MPI_File_open MPI_COMM_WORLD /data/f 9 %p 0-0"
    tables = found(made(opened, "MPI_File_write 0-0 %p 4 MPI_INT [0_0]", "MPI_File_write 7-7 %p 4 MPI_INT [0_0]"))
    files = tables["trace_files"].select("file_number", "path").rows()
    assert sorted(files, key=str) == sorted([(0, "/data/f"), (1, None)], key=str)
    assert tables["trace_requests"].select("file_number", "offset_bytes", "request_bytes").rows() == [
        (0, 0, 16),
        (1, None, 16),
    ]


OPEN = "MPI_File_open MPI_COMM_SELF f 9 %p 0-0"
READ = "MPI_File_read 0-0 %p 2 MPI_INT [0_0]"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((OPEN, READ, READ), [0, 8]),
        ((OPEN, "MPI_File_seek 0-0 360 MPI_SEEK_SET", READ, "MPI_File_seek 0-0 -8 MPI_SEEK_CUR", READ), [360, 360]),
        ((OPEN, "MPI_File_seek 0-0 0 MPI_SEEK_END", READ), [None]),
        ((OPEN.replace(" 9 ", " 137 "), READ), [None]),
        ((OPEN, "MPI_File_set_view 0-0 100 MPI_INT MPI_INT %p %p", READ, READ), [100, 108]),
        ((OPEN, "MPI_File_set_view 0-0 100 MPI_INT MPI_INT %p %p", "MPI_File_seek 0-0 3 MPI_SEEK_SET", READ), [112]),
        ((OPEN, "MPI_File_set_view 0-0 8 MPI_INT MPI_INT %p %p", "MPI_File_read_at 0-0 5 %p 1 MPI_INT [0_0]"), [28]),
        (
            (OPEN, "MPI_File_set_view 0-0 0 MPI_BYTE vec %p %p", READ, "MPI_File_read_at 0-0 5 %p 1 MPI_INT [0_0]"),
            [None, None],
        ),
        ((OPEN, "MPI_File_set_view 0-0 -54278278 MPI_BYTE MPI_BYTE %p %p", READ), [None]),
        ((OPEN, "MPI_File_set_view 0-0 0 vec vec %p %p", "MPI_File_set_view 0-0 4 MPI_INT MPI_INT %p %p", READ), [4]),
        ((OPEN, "MPI_File_read 0-0 %p 2 mine [0_0]", READ, "MPI_File_seek 0-0 1 MPI_SEEK_SET", READ), [0, None, 1]),
        (
            (OPEN, "MPI_File_read_shared 0-0 %p 2 MPI_INT [0_0]", "MPI_File_seek_shared 0-0 9 MPI_SEEK_SET", READ),
            [None, 0],
        ),
        ((OPEN, "MPI_File_read_ordered 0-0 %p 2 MPI_INT [0_0]", READ), [None, 0]),
        ((OPEN, "MPI_File_iread 0-0 %p 2 MPI_INT %p", READ), [0, 8]),
        ((OPEN, "MPI_File_read_all_begin 0-0 %p 2 MPI_INT", READ), [0, 8]),
        ((OPEN, "MPI_File_read_at_all_begin 0-0 64 %p 2 MPI_INT", READ), [64, 0]),
        ((READ,), [None]),
        (("MPI_File_open MPI_COMM_SELF f 9 %p MPI_FILE_UNKNOWN", READ.replace("0-0", "MPI_FILE_UNKNOWN")), [None]),
    ],
)
def test_offsets_of_mpi_files_follow_views_and_seeks(calls: tuple[str, ...], expected: list[int | None]) -> None:
    assert offsets(*calls) == expected


def test_nonblocking_and_split_requests_are_asynchronous() -> None:
    calls = ["MPI_File_iwrite_at 0-0 0 %p 1 MPI_INT %p", "MPI_File_write_all_begin 0-0 %p 1 MPI_INT", READ]
    requests = found(made(*calls, "MPI_Wait 94 [0_0]"))["trace_requests"]
    assert requests["is_async"].to_list() == [True, True, False]
    assert requests["end_s"].to_list() == [0.5, 1.5, 2.5]


# ---- nesting


def test_request_within_file_call_is_nested_and_not_counted() -> None:
    tables = found(made(OPEN, "MPI_File_write 0-0 %p 8 MPI_BYTE [0_0]", "+pwrite f %p 8 0", "pwrite f %p 8 8"))
    assert tables["trace_requests"]["is_nested"].to_list() == [False, True, False]
    assert tables["trace_records"].select("module", "written_bytes").rows() == [("MPIIO", 8), ("POSIX", 8)]


def test_deeper_call_is_nested_only_within_a_file_call() -> None:
    calls = [
        "H5Dwrite 1 2",
        "+MPI_File_write 0-0 %p 8 MPI_BYTE [0_0]",
        "++pwrite f %p 8 0",
        "MPI_Bcast x",
        "+read f %p 1",
    ]
    frame = made(*calls).with_columns(module=pl.Series(["HDF5", "MPIIO", "POSIX", "MPI", "POSIX"]))
    assert found(frame)["trace_requests"]["is_nested"].to_list() == [False, True, False]
    assert found(made("+read f %p 1"))["trace_requests"]["is_nested"].to_list() == [False]


def test_nesting_does_not_cross_ranks() -> None:
    calls = pl.concat([made("MPI_File_write 0-0 %p 8 MPI_BYTE [0_0]"), made("+pwrite f %p 8 0", rank=1)])
    assert found(calls)["trace_requests"]["is_nested"].to_list() == [False, False]


# ---- sums


def test_records_have_counts_and_times_by_file() -> None:
    calls = ["open f 66 420", "lseek f 5 0", "write f %p 10", "read f %p 3", "read f %p 4", "__xstat 1 f %p", "fsync f"]
    (record,) = found(made(*calls, "close f", "umask 18"))["trace_records"].to_dicts()
    counts = {name: record[f"{name}_count"] for name in ("open", "read", "write", "seek", "stat", "sync")}
    assert counts == {"open": 1, "read": 2, "write": 1, "seek": 1, "stat": 1, "sync": 1}
    assert (record["read_bytes"], record["written_bytes"], record["collective_open_count"]) == (7, 10, None)
    assert (record["open_start_s"], record["open_end_s"], record["close_end_s"]) == (0, 0.5, 7.5)
    assert (record["read_start_s"], record["read_end_s"], record["write_start_s"]) == (3, 4.5, 2)
    assert (record["read_time_s"], record["write_time_s"], record["metadata_time_s"]) == (1, 1, 2)


def test_sum_with_unknown_term_is_null() -> None:
    opened = "MPI_File_open MPI_COMM_WORLD f 9 %p 0-0"
    (record,) = found(made(opened, "MPI_File_write 0-0 %p 1 mine [0_0]", READ))["trace_records"].to_dicts()
    assert (record["written_bytes"], record["write_count"], record["read_bytes"]) == (None, 1, 8)
    assert (record["open_count"], record["collective_open_count"]) == (1, 1)


# ---- metadata


def test_calls_without_bytes_are_metadata_operations() -> None:
    calls = [
        "open f 66 420",
        "lseek f 5 0",
        "write f %p 10",
        "dup 3",
        "__xstat 1 f %p",
        "fsync f",
        "fcntl f 3",
        "close f",
    ]
    opened = "MPI_File_open MPI_COMM_WORLD g 9 %p 0-0"
    tables = found(
        made(*calls, opened, "+open g 66 420", "MPI_File_set_view 0-0 0 MPI_BYTE MPI_BYTE native %p", "unlink g")
    )
    rows = tables["trace_metadata"]
    assert rows["metadata_call"].to_list() == list(range(rows.height))
    own = rows.select("operation", "module", "start_s", "end_s", "is_nested")
    assert own.rows() == [
        ("open", "POSIX", 0, 0.5, False),
        ("seek", "POSIX", 1, 1.5, False),
        ("stat", "POSIX", 4, 4.5, False),
        ("sync", "POSIX", 5, 5.5, False),
        ("other", "POSIX", 6, 6.5, False),
        ("close", "POSIX", 7, 7.5, False),
        ("open", "MPIIO", 8, 8.5, False),
        ("open", "POSIX", 9, 9.5, True),
        ("other", "MPIIO", 10, 10.5, False),
        ("other", "POSIX", 11, 11.5, False),
    ]
    paths = dict(tables["trace_files"].select("file_number", "path").iter_rows())
    assert [paths[number] for number in rows["file_number"]] == [*["f"] * 6, *["g"] * 4]


def test_metadata_calls_are_numbered_across_parts() -> None:
    rows = found(made("open f 2", "close f"), made("open f 2", rank=1))["trace_metadata"]
    assert rows.select("metadata_call", "rank", "operation").rows() == [(0, 0, "open"), (1, 0, "close"), (2, 1, "open")]


# ---- refused


def test_malformed_requests_are_refused_individually() -> None:
    tables = found(made("open f 2", "write", "write f", "write f %p ten", "pread f %p 1", "read f %p 1"))
    assert tables["rejects"]["line"].to_list() == [2, 3, 4, 5]
    assert tables["rejects"]["raw"].to_list()[2] == "write ( f %p ten )"
    assert tables["trace_requests"]["offset_bytes"].to_list() == [None]


def test_other_malformed_calls_are_ignored() -> None:
    calls = ["open f", "open", "lseek f", "close", "fcntl f", "fcntl", "MPI_File_open", "MPI_File_set_view 0-0", "dup"]
    tables = found(made(*calls, "write f %p 1", "MPI_File_seek 0-0 x MPI_SEEK_SET", READ))
    assert tables["trace_requests"]["offset_bytes"].to_list() == [None, None]
    assert "rejects" not in tables


def test_empty_input_yields_no_tables() -> None:
    assert found(made()) == {}
    assert found() == {}
    assert found(made("MPI_Bcast x")) == {}


# ---- comparison with a naive implementation

POSIX = ("open", "creat", "fopen", "close", "fclose", "read", "write", "readv", "pread", "pwrite", "fread", "fwrite")
POSIX_ALL = (
    *POSIX,
    "writev",
    "fprintf",
    "lseek",
    "fseek",
    "fcntl",
    "umask",
    "dup",
    "dup2",
    "unlink",
    "fsync",
    "access",
    "ftruncate",
)
NAMES = st.sampled_from(["f", "g", "???"])
SMALL = st.integers(-3, 40)
HANDLES = st.sampled_from(["0-0", "1-0"])
TYPES = st.sampled_from(["MPI_BYTE", "MPI_INT", "vec"])


def _call(template: str, **parts: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    return st.fixed_dictionaries(parts).map(lambda values: template.format(**values))


POSIX_CALLS = st.one_of(
    _call("open {f} {flags}", f=NAMES, flags=st.sampled_from([0, 2, 1025])),
    _call("fopen {f} {mode}", f=NAMES, mode=st.sampled_from(["r", "w+", "a+"])),
    _call("{close} {f}", close=st.sampled_from(["close", "fclose"]), f=NAMES),
    _call("{way} {f} %p {n}", way=st.sampled_from(["read", "write"]), f=NAMES, n=SMALL),
    _call("{way} {f} %p {n} 7", way=st.sampled_from(["pread", "pwrite"]), f=NAMES, n=SMALL),
    _call("{way} %p 2 {n} {f}", way=st.sampled_from(["fread", "fwrite"]), f=NAMES, n=SMALL),
    _call(
        "{way} {f} {n} {whence}", way=st.sampled_from(["lseek", "fseek"]), f=NAMES, n=SMALL, whence=st.integers(0, 3)
    ),
    _call("fcntl {f} {command} {value}", f=NAMES, command=st.sampled_from([0, 1, 4]), value=st.sampled_from([0, 1024])),
    st.just("dup 3"),
)
MPI_CALLS = st.one_of(
    _call(
        "MPI_File_open MPI_COMM_SELF {f} {mode} %p {h}",
        f=NAMES.filter("???".__ne__),
        mode=st.sampled_from([9, 137]),
        h=HANDLES,
    ),
    _call("MPI_File_set_view {h} {n} {etype} {ftype} %p %p", h=HANDLES, n=SMALL, etype=TYPES, ftype=TYPES),
    _call("MPI_File_seek {h} {n} MPI_SEEK_{way}", h=HANDLES, n=SMALL, way=st.sampled_from(["SET", "CUR", "END"])),
    _call(
        "MPI_File_{way} {h} %p {n} {t} x",
        way=st.sampled_from(["read", "write_all", "iread", "read_shared"]),
        h=HANDLES,
        n=SMALL,
        t=TYPES,
    ),
    _call(
        "MPI_File_{way}_at {h} {at} %p {n} {t} x",
        way=st.sampled_from(["read", "iwrite"]),
        h=HANDLES,
        at=SMALL,
        n=SMALL,
        t=TYPES,
    ),
)
CALLS = st.tuples(st.sampled_from(["", "", "", "+", "++"]), st.one_of(POSIX_CALLS, MPI_CALLS)).map("".join)


def same_as_twin(calls: pl.DataFrame) -> None:
    functions = set(calls["function"])
    mpi = {name for name in functions if name.startswith("MPI_File_")}
    rows = calls.select("rank", "level", "function", "arguments").iter_rows()
    expected = naive.requests((naive.Call(*row) for row in rows), POSIX_ALL, mpi)
    tables = found(calls)
    wanted = [(r.rank, r.module, r.direction, r.path, r.offset, r.size, r.is_nested, r.is_async) for r in expected]
    if not wanted:
        assert "trace_requests" not in tables
        return
    named = tables["trace_requests"].join(
        tables["trace_files"].select("file_number", "path"), on="file_number", maintain_order="left"
    )
    columns = ("rank", "module", "direction", "path", "offset_bytes", "request_bytes", "is_nested", "is_async")
    assert named.select(columns).rows() == wanted


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.lists(CALLS, max_size=25), min_size=1, max_size=2))
def test_requests_of_generated_calls_match_naive_ones(ranks: list[list[str]]) -> None:
    same_as_twin(pl.concat([made(*calls, rank=rank) for rank, calls in enumerate(ranks)]))


@pytest.mark.parametrize(("app", "ranks"), SAMPLE)
def test_requests_of_real_traces_match_naive_ones(shared_data: Path, app: str, ranks: int) -> None:
    same_as_twin(of_archive(shared_data / "recorder" / app / str(ranks) / "text.tar.zst"))


# ---- real traces


@pytest.mark.parametrize(("app", "ranks"), SAMPLE)
def test_metadata_calls_of_real_traces_match_naive_count(shared_data: Path, app: str, ranks: int) -> None:
    calls = of_archive(shared_data / "recorder" / app / str(ranks) / "text.tar.zst")
    expected: Counter[tuple[int, str, float, bool]] = Counter()
    above: list[tuple[int, bool]] = []
    rank = -1
    for own in calls.iter_rows(named=True):
        above, rank = ([] if own["rank"] != rank else above), own["rank"]
        while above and above[-1][0] >= own["level"]:
            above.pop()
        touches = own["module"] == "POSIX" or own["function"].startswith("MPI_File_")
        word = next((word for word in WORDS if word in own["function"]), None)
        if touches and word and own["function"] != "MPI_File_preallocate":
            expected[rank, WORDS[word], own["start_s"], any(is_outer for _, is_outer in above)] += 1
        above.append((own["level"], touches))
    rows = found(calls)["trace_metadata"].select("rank", "operation", "start_s", "is_nested")
    assert Counter(rows.filter(pl.col("operation") != "other").iter_rows()) == expected
    assert expected


def trace(shared_data: Path, app: str, ranks: int) -> dict[str, pl.DataFrame]:
    return found(of_archive(shared_data / "recorder" / app / str(ranks) / "text.tar.zst"))


def own(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return tables["trace_requests"].filter(~pl.col("is_nested"))


def test_n_to_n_trace_writes_and_reads_a_hundred_blocks(shared_data: Path) -> None:
    tables = trace(shared_data, "ios_posix_nn", 8)
    places = own(tables).group_by("rank", "direction", maintain_order=True).agg("offset_bytes", "request_bytes")
    assert places.height == 16
    assert all(row == [8 * KIB * block for block in range(100)] for row in places["offset_bytes"].to_list())
    assert tables["trace_records"]["read_bytes"].to_list() == [100 * 8 * KIB] * 8
    assert tables["trace_records"]["written_bytes"].to_list() == [100 * 8 * KIB] * 8


@pytest.mark.parametrize("ranks", RANKS)
def test_strong_scaling_trace_has_expected_offsets(shared_data: Path, ranks: int) -> None:
    requests = own(trace(shared_data, "ios_strong", ranks))
    expected = [rank * (960 // ranks) + 960 * turn for rank in range(ranks) for turn in range(requests.height // ranks)]
    assert requests["offset_bytes"].to_list() == expected
    assert requests["request_bytes"].unique().to_list() == [960 // ranks]


@pytest.mark.parametrize("app", ["ior_posix_chunk", "ior_posix_fpp", "ior_mpiio_chunk", "ior_mpiio_inter_coll_romio"])
def test_ior_trace_moves_2_mib_per_rank_in_128_kib_requests(shared_data: Path, app: str) -> None:
    tables = trace(shared_data, app, 8)
    moved = own(tables).group_by("rank", "direction").agg(pl.col("request_bytes").sum(), pl.len())
    assert moved.height == 16
    assert moved["request_bytes"].unique().to_list() == [2 * MIB]
    assert moved["len"].unique().to_list() == [16]
    shared = [rank * 2 * MIB + turn * 128 * KIB for rank in range(8) for turn in range(16)]
    written = own(tables).filter(direction="write")["offset_bytes"].to_list()
    if app.endswith("chunk"):
        assert written == shared
    assert tables["trace_records"]["read_bytes"].sum() == 16 * MIB


def test_nested_layer_has_same_bytes_and_is_not_counted(shared_data: Path) -> None:
    tables = trace(shared_data, "ior_mpiio_chunk", 8)
    per_layer = tables["trace_requests"].group_by("module").agg(pl.col("request_bytes").sum())["request_bytes"]
    assert per_layer.to_list() == [32 * MIB] * 2
    records = tables["trace_records"]
    assert records["read_bytes"].sum() + records["written_bytes"].sum() == 32 * MIB


def test_view_with_gaps_makes_offsets_null(shared_data: Path) -> None:
    requests = own(trace(shared_data, "ios_mpiio_nn", 8))
    assert requests["offset_bytes"].null_count() == requests.height
    assert requests["request_bytes"].null_count() == 0


def test_request_forms_have_unique_functions() -> None:
    assert recorder_requests.list_forms()["function"].is_unique().all()


def test_requests_are_numbered_across_parts() -> None:
    requests = Requests()
    parts = [*requests.add(made("read f %p 1")), *requests.add(made("read f %p 1", rank=1))]
    assert [part.rows["request"].to_list() for part in parts] == [[0], [1]]
