"""Test the rows of logs with known content and with impossible content."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from iosig.warehouse.sources.darshan import rows as darshan_rows
from iosig.warehouse.sources.darshan.rows import _Mounts, _user
from tests.warehouse.sources.darshan.test_layout import ID, Log
from tests.warehouse.sources.darshan_tables import tables_of

OTHER = 5
NAMES = ((ID, b"/scratch/a/x"), (OTHER, b"/nfs/y"), (1, b"<STDIN>"))
#: (offset, length, start, end)
Segment = tuple[int, int, float, float]


class LongLog(Log):
    """A log with an additional mount."""

    def job(self) -> bytes:
        return super().job() + b"\next4\t/home"


def dxt(writes: list[Segment], reads: list[Segment], rank: int = 0, host: bytes = b"n1", key: int = ID) -> bytes:
    start = struct.pack("<Qqq64sqq", key, rank, 0, host, len(writes), len(reads))
    return start + b"".join(struct.pack("<qqdd", *segment) for segment in writes + reads)


def posix(key: int = ID, rank: int = 0, **counters: float) -> bytes:
    from iosig.warehouse.sources.darshan.library import counter_names

    integers, reals = counter_names("POSIX")
    values = [counters.get(name.removeprefix("POSIX_"), 0) for name in (*integers, *reals)]
    return struct.pack(f"<Qq{len(integers)}q{len(reals)}d", key, rank, *values)


def lustre(key: int, *components: tuple[int, tuple[int, ...], int, int]) -> bytes:
    """A record of the second version; components are (size, targets, start, end)."""
    parts = b"".join(
        struct.pack("<7q16s", size, len(o), 0, 0, start, end, 0, b"") for size, o, start, end in components
    )
    osts = [ost for _, targets, _, _ in components for ost in targets]
    return struct.pack("<Qqqq", key, 0, len(components), len(osts)) + parts + struct.pack(f"<{len(osts)}q", *osts)


def heatmap(key: int, written: list[int], read: list[int], width_s: float = 0.1, rank: int = 0) -> bytes:
    start = struct.pack("<QqdqQQ", key, rank, width_s, len(written), 0, 0)
    return start + struct.pack(f"<{2 * len(written)}q", *written, *read)


def log(path: Path, name: str = "a.darshan", **modules: bytes) -> Path:
    numbers = {"POSIX": (1, 4), "LUSTRE": (8, 2), "DXT_POSIX": (10, 1), "DXT_MPIIO": (11, 2), "HEATMAP": (15, 1)}
    given = {numbers[module][0]: (numbers[module][1], content) for module, content in modules.items()}
    return Log(names=NAMES, modules=given).write(path / name)


# ---- runs


def test_run_has_properties_of_log(tmp_path: Path) -> None:
    run = tables_of(log(tmp_path, "ana_b_a_id99_6-2-60198-98_1.darshan"))["traces"].row(0, named=True)
    assert run["started_at"].isoformat() == "2020-09-13T12:26:40+00:00"
    assert run["duration_s"] == pytest.approx(60 + 1e-9, abs=1e-12)
    known = ("tracer", "tracer_version", "job_id", "user", "uid", "application", "command", "process_count")
    assert [run[name] for name in known] == ["darshan", "3.41", "99", "ana_b", 7, "a", "./a", 4]
    assert run["ended_on"] == run["ended_at"].date()


def test_duration_in_whole_seconds_includes_last_second(tmp_path: Path) -> None:
    # The library requires a job record of today's length.
    metadata = b"lib_ver=3.2.1\nh=romio_no_indep_rw=true\n"
    whole = LongLog(version="3.21", metadata=metadata).write(tmp_path / "a.darshan")
    run = tables_of(whole)["traces"].row(0, named=True)
    assert (run["ended_at"] - run["started_at"]).total_seconds() == 60
    assert run["duration_s"] == 61


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("ana_ior_id17_6-2-60198-9815401321915095332_1.darshan", "ana"),
        ("ana_ior_id17-4242_6-2-60198-9815401321915095332_1.darshan", "ana"),
        ("ana_maria_ior_id17_6-2-1-2_1.darshan", "ana_maria"),
        ("ana_ior_id18_6-2-1-2_1.darshan", None),
        ("ana_ior_id171_6-2-1-2_1.darshan", None),
        ("ana_ior-dfs_id17_6-2-1-2_1.darshan", None),
        ("_ior_id17_6-2-1-2_1.darshan", None),
        ("ior_id17_6-2-1-2_1.darshan", None),
        ("e3sm_io_heatmap_only.darshan", None),
    ],
)
def test_user_is_taken_only_from_standard_file_name(name: str, user: str | None) -> None:
    assert _user(name, "ior", 17) == user


def test_user_is_unknown_without_command() -> None:
    assert _user("ana__id17_6-2-1-2_1.darshan", None, 17) is None


# ---- records


def test_records_and_totals_agree(tmp_path: Path) -> None:
    content = posix(BYTES_READ=10, READS=2, F_READ_START_TIMESTAMP=0.5, F_READ_TIME=0.25, FSYNCS=-1) + posix(
        OTHER, -1, BYTES_READ=5, BYTES_WRITTEN=7, OPENS=3, F_META_TIME=1.5
    )
    tables = tables_of(log(tmp_path, POSIX=content))
    first, second = tables["trace_records"].to_dicts()
    assert (first["file_number"], first["rank"], first["read_bytes"], first["read_count"]) == (ID - (1 << 64), 0, 10, 2)
    assert (first["read_start_s"], first["read_time_s"], first["sync_count"]) == (0.5, 0.25, None)
    assert (second["file_number"], second["rank"], second["written_bytes"], second["open_count"]) == (OTHER, -1, 7, 3)
    assert (second["read_start_s"], second["metadata_time_s"], second["sync_count"]) == (None, 1.5, 0)
    (module,) = tables["trace_modules"].to_dicts()
    totals = darshan_rows.json.loads(module["counters"])
    assert (totals["POSIX_BYTES_READ"], totals["POSIX_F_META_TIME"]) == (15, 1.5)
    assert "POSIX_FSYNCS" not in totals
    assert module["record_count"] == 2


def test_impossible_records_are_refused_individually(tmp_path: Path) -> None:
    content = posix(READS=3) + posix(OTHER, READS=-7) + posix(READS=4) + posix(OTHER, 1, BYTES_READ=(1 << 63) - 1)
    tables = tables_of(log(tmp_path, POSIX=content))
    assert tables["trace_records"]["read_count"].to_list() == [3]
    refused = tables["rejects"].sort("line")
    assert refused["line"].to_list() == [2, 3, 4]
    assert "invalid" in refused["reason"][0]
    assert "twice" in refused["reason"][1]


# ---- heat maps


def test_heatmaps_have_a_row_for_each_direction(tmp_path: Path) -> None:
    names = (*NAMES, (8, b"heatmap:POSIX"))
    content = heatmap(8, [1, 2], [3, 4], 0.2) + heatmap(3668870418325792824, [5, 6], [7, 8], 0.2, 3)
    whole = Log(names=names, modules={1: (4, posix()), 15: (1, content)})
    # The second name was anonymized, but its id still identifies the layer.
    named = replace(whole, names=(*names, (3668870418325792824, b"4711")))
    tables = tables_of(named.write(tmp_path / "a.darshan"))
    rows = (
        tables["trace_heatmaps"].select("module", "rank", "direction", "interval_s", "step_count", "bin_bytes").rows()
    )
    assert sorted(rows) == [
        ("MPIIO", 3, "read", 0.2, 2, [7, 8]),
        ("MPIIO", 3, "write", 0.2, 2, [5, 6]),
        ("POSIX", 0, "read", 0.2, 2, [3, 4]),
        ("POSIX", 0, "write", 0.2, 2, [1, 2]),
    ]
    assert ID - (1 << 64) in tables["trace_files"]["file_number"].to_list()
    assert 8 not in tables["trace_files"]["file_number"].to_list()


def test_impossible_heatmaps_are_refused(tmp_path: Path) -> None:
    names = (*NAMES, (8, b"heatmap:POSIX"))
    content = heatmap(8, [1, 2], [-3, 4]) + heatmap(8, [1, 2], [3, 4], float("nan"), 1) + heatmap(ID, [1, 1], [2, 2])
    whole = Log(names=names, modules={1: (4, posix()), 15: (1, content)}).write(tmp_path / "a.darshan")
    tables = tables_of(whole)
    assert tables["trace_heatmaps"]["bin_bytes"].to_list() == [[1, 2]]
    assert tables["rejects"].height == 5


# ---- requests


def test_requests_are_numbered_across_layers(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        POSIX=posix(),
        DXT_POSIX=dxt([(0, 5, 0.0, 1.0)], [(5, 6, 1.0, 1.0)]) + dxt([], [(9, 0, 2.0, 3.0)], 1, b"n2", OTHER),
        DXT_MPIIO=dxt([(-1, 11, 0.0, 2.0)], [], 2, b"n2"),
    )
    columns = ("request", "module", "rank", "host", "file_number", "direction", "offset_bytes", "request_bytes")
    assert tables_of(path)["trace_requests"].select(*columns, "start_s", "end_s").rows() == [
        (0, "POSIX", 0, "n1", ID - (1 << 64), "write", 0, 5.0, 0.0, 1.0),
        (1, "POSIX", 0, "n1", ID - (1 << 64), "read", 5, 6.0, 1.0, 1.0),
        (2, "POSIX", 1, "n2", OTHER, "read", 9, 0.0, 2.0, 3.0),
        (3, "MPIIO", 2, "n2", ID - (1 << 64), "write", None, 11.0, 0.0, 2.0),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        (-1, 5, 0.0, 1.0),
        (0, -5, 0.0, 1.0),
        (0, 5, float("nan"), 1.0),
        (0, 5, 0.0, float("nan")),
        (0, 5, 0.0, float("inf")),
        (0, 5, float("-inf"), 1.0),
        (0, 5, 2.0, 1.0),
    ],
)
def test_impossible_segments_are_refused_but_keep_their_number(tmp_path: Path, bad: Segment) -> None:
    good = (0, 1, 0.0, 1.0)
    tables = tables_of(log(tmp_path, POSIX=posix(), DXT_POSIX=dxt([good, bad, good], [bad])))
    assert tables["trace_requests"]["request"].to_list() == [0, 2]
    assert tables["rejects"]["line"].sort().to_list() == [2, 4]
    assert tables["trace_modules"].filter(module="DXT_POSIX")["record_count"].item() == 1


def test_requests_are_assigned_to_targets_of_their_file(tmp_path: Path) -> None:
    stripes = lustre(ID, (4, (30,), 0, 8), (8, (40, 41), 8, -1)) + lustre(OTHER, (16, (), 0, -1))
    writes = [(0, 1, 0.0, 1.0), (7, 9, 0.0, 1.0), (8, 1, 0.0, 1.0), (16, 1, 0.0, 1.0)]
    content = dxt(writes, []) + dxt(writes[:1], [], 0, b"n1", OTHER)
    tables = tables_of(log(tmp_path, POSIX=posix(), LUSTRE=stripes, DXT_POSIX=content))
    assert tables["trace_requests"]["ost"].to_list() == [30, 30, 41, 40, None]
    files = {row["path"]: row for row in tables["trace_files"].to_dicts()}
    assert (files["/scratch/a/x"]["stripe_bytes"], files["/scratch/a/x"]["osts"]) == (None, [30, 40, 41])
    # A striped file is on Lustre, even if the log's incomplete list of mounts disagrees.
    assert [files[path]["filesystem_kind"] for path in ("/scratch/a/x", "/nfs/y", "<STDIN>")] == ["lustre"] * 2 + [None]
    assert files["/nfs/y"]["osts"] is None


# ---- files


def test_mounts_are_matched_by_path_component() -> None:
    mounts = _Mounts({"/": "ext4", "/scratch": "lustre", "/scratch/a": "gpfs", "/net": "nfs"})
    wanted = {
        "/scratch/x": ("/scratch", "lustre"),
        "/scratch/a/b/c": ("/scratch/a", "gpfs"),
        "/scratch/ab/c": ("/scratch", "lustre"),
        "/scratch": ("/scratch", "lustre"),
        "/scratchy/a": ("/", "ext4"),
        "/": ("/", "ext4"),
        "<STDIN>": (None, None),
        "4711": (None, None),
        "": (None, None),
        "x/y": (None, None),
    }
    for path in (*wanted, *wanted):
        assert mounts.find_mount(path, is_striped=False) == wanted[path]
    assert _Mounts({"/a": "nfs"}).find_mount("/b/c", is_striped=False) == (None, None)
    assert mounts.find_mount(None, is_striped=False) == (None, None)


def test_stripes_take_precedence_over_mounts() -> None:
    mounts = _Mounts({"/": "overlay", "/lus": "lustre"})
    assert mounts.find_mount("/grand/x", is_striped=True) == (None, "lustre")
    assert mounts.find_mount("/lus/x", is_striped=True) == ("/lus", "lustre")


def test_names_with_arbitrary_bytes_are_kept(tmp_path: Path) -> None:
    names = ((ID, b"/scratch/\xff'; drop table x"), (OTHER, "/tmp/ä\n".encode()))
    path = Log(names=names, modules={1: (4, posix())}).write(tmp_path / "a.darshan")
    assert tables_of(path)["trace_files"]["path"].to_list() == ["/scratch/\\xff'; drop table x", "/tmp/ä\n"]


# ---- damage


def test_damaged_module_is_reported_and_not_read(tmp_path: Path) -> None:
    path = log(tmp_path, POSIX=posix(READS=1), DXT_POSIX=dxt([(0, 1, 0.0, 1.0)], []))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    tables = tables_of(path)
    assert tables["trace_modules"].select("module", "outcome", "record_count").rows() == [
        ("POSIX", "sound", 1),
        ("DXT_POSIX", "unreadable", None),
    ]
    assert tables["trace_modules"]["reason"][1]
    assert "trace_requests" not in tables
