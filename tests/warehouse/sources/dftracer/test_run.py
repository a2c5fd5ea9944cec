"""Test runs of DFTracer: all forms yield equal rows, a folder is a single trace, and incomplete runs are reported."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import find_folder_source
from tests.budget import one_in
from tests.dftracer_traces import CALLS, EPOCH_US, FORMS, Form, Process, put, write_call
from tests.warehouse.sources.dftracer_landing import landed, moved, one

# ---- landed rows


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_yield_equal_rows(tmp_path: Path, form: Form) -> None:
    found = one(tmp_path, *Process(7, form).lines_of(CALLS))
    assert moved(found) == {
        ("POSIX", "write", False): 100.0,
        ("POSIX", "write", True): 24.0,
        ("POSIX", "read", False): 40.0,
        ("STDIO", "write", False): 24.0,
        ("KERNEL", "write", False): 1_000.0,
    }
    requests = found["trace_requests"].sort("start_s")
    assert requests["offset_bytes"].to_list() == [None, 1_000, None, None, None, None]
    assert requests["start_s"].to_list() == pytest.approx([1e-5, 3e-5, 5e-5, 5.2e-5, 7e-5, 8e-5])
    assert set(requests["host"]) == {"node1"}
    operations = found["trace_metadata"].sort("start_s")
    assert operations["operation"].to_list() == ["open", "seek", "close"]
    assert operations["start_s"].to_list() == pytest.approx([0.0, 4e-5, 1e-4])
    assert set(found["trace_files"]["path"]) == {"/scratch/out", "/scratch/log", "/dev/shm/x"}
    (trace,) = found["traces"].to_dicts()
    assert (trace["tracer"], trace["process_count"], trace["duration_s"]) == ("dftracer", 1, 1.05e-4)
    assert trace["started_at"].timestamp() * 1e6 == EPOCH_US
    assert trace["command"] == (None if form == "old" else "prog -x")
    assert set(found["trace_modules"]["outcome"]) == {"sound"}
    assert set(found["trace_modules"]["is_partial"]) == {False}


def test_records_are_sums_by_process_and_file(tmp_path: Path) -> None:
    found = one(tmp_path, *Process(7).lines_of(CALLS))
    records, files = found["trace_records"], found["trace_files"]
    number = files.filter(pl.col("path") == "/scratch/out")["file_number"].item()
    (own,) = records.filter((pl.col("module") == "POSIX") & (pl.col("file_number") == number)).to_dicts()
    assert (own["read_bytes"], own["written_bytes"]) == (40, 100)
    counts = ("open_count", "read_count", "write_count", "seek_count", "stat_count")
    assert [own[name] for name in counts] == [1, 1, 2, 1, 0]
    assert (own["open_start_s"], own["close_end_s"]) == (0.0, pytest.approx(1.05e-4))


def test_folder_is_a_single_run_with_mpi_ranks(tmp_path: Path) -> None:
    for pid, rank in ((900, 1), (901, 0), (902, None)):
        put(tmp_path / f"run-{pid}.pfw.gz", Process(pid, rank=rank).lines_of([write_call(pid, pid)]))
    (tmp_path / "notes.txt").write_text("of another kind")
    found = find_folder_source(tmp_path)
    assert found is not None
    assert (found[0].name, len(found[1])) == ("dftracer", 3)
    tables = landed(tmp_path)
    sizes = dict(tables["trace_requests"].select("rank", "request_bytes").iter_rows())
    assert sizes == {1: 900.0, 0: 901.0, 2: 902.0}
    assert tables["traces"]["process_count"].item() == 3
    # Times count from the earliest event of all files.
    assert tables["trace_requests"]["start_s"].min() == 0.0


def test_single_file_is_not_a_folder_input(tmp_path: Path) -> None:
    put(tmp_path / "run.pfw", Process(1).lines_of(CALLS))
    assert find_folder_source(tmp_path) is None


# ---- incomplete traces


@pytest.mark.parametrize("form", one_in(3, FORMS))
def test_process_without_end_is_partial(tmp_path: Path, form: Form) -> None:
    found = one(tmp_path, *Process(7, form).lines_of(CALLS, is_ended=False))
    modules = found["trace_modules"]
    assert set(modules["outcome"]) == {"partial"}
    assert set(modules["is_partial"]) == {True}
    assert modules["reason"][0].startswith("Of 1 processes, 1 have no end")
    assert moved(found)["POSIX", "write", False] == 100.0


def test_truncated_packed_file_is_partial(tmp_path: Path) -> None:
    lines = Process(7).lines_of([write_call(20 * at, at) for at in range(1_000)])
    path = put(tmp_path / "t.pfw.gz", lines)
    path.write_bytes(path.read_bytes()[:-1_500])
    found = landed(path)
    assert set(found["trace_modules"]["is_partial"]) == {True}
    sizes = found["trace_requests"]["request_bytes"].to_list()
    assert 300 < len(sizes) < 1_000
    assert sizes == [float(at) for at in range(len(sizes))]


def test_bit_flip_in_packed_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.pfw.gz", Process(7).lines_of(CALLS))
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputRefused, match="damaged"):
        landed(path)


def test_unreadable_file_of_run_is_skipped(tmp_path: Path) -> None:
    for pid in (1, 2):
        put(tmp_path / f"{pid}.pfw.gz", Process(pid).lines_of([write_call(0, pid)]))
    content = bytearray((tmp_path / "2.pfw.gz").read_bytes())
    content[-6] ^= 1
    (tmp_path / "2.pfw.gz").write_bytes(content)
    found = landed(tmp_path)
    assert found["trace_requests"]["request_bytes"].to_list() == [1.0]
    assert found["traces"]["process_count"].item() == 1
    assert "Skipped" in found["trace_modules"]["reason"].item()
    assert found["rejects"]["reason"].item().startswith("2.pfw.gz is skipped.")


def test_missing_event_is_detected_by_count_of_tracer(tmp_path: Path) -> None:
    lines = Process(7).lines_of([write_call(20 * at, at) for at in range(9)])
    found = one(tmp_path, *lines[:8], *lines[9:])
    (module,) = found["trace_modules"].to_dicts()
    assert module["outcome"] == "partial"
    assert "1 of the written events are missing" in module["reason"]


def test_duplicate_event_is_counted_once(tmp_path: Path) -> None:
    lines = Process(7).lines_of([write_call(20 * at, 10) for at in range(9)])
    found = one(tmp_path, *lines[:8], lines[7], *lines[8:])
    assert moved(found) == {("POSIX", "write", False): 90.0}
    assert "counted once" in found["trace_modules"]["reason"].item()


def test_events_rewritten_by_forked_child_are_counted_once(tmp_path: Path) -> None:
    parent = [write_call(0, 10), write_call(20, 10)]
    put(tmp_path / "1.pfw", Process(5).lines_of(parent))
    lines = [line for line in Process(5).lines_of(parent) if '"write"' in line]
    put(tmp_path / "2.pfw", ["[", *lines, *Process(6).lines_of([write_call(50, 7)])[1:]])
    assert moved(landed(tmp_path)) == {("POSIX", "write", False): 27.0}


def test_call_outside_lifetime_of_its_process_is_refused(tmp_path: Path) -> None:
    lines = Process(7).lines_of(CALLS)
    far = [place for place, line in enumerate(lines) if '"write"' in line or '"NPZReader.open"' in line][-2:]
    for place in far:
        lines[place] = json.dumps((event := json.loads(lines[place])) | {"ts": event["ts"] + 10**13})
    found = one(tmp_path, *lines)
    assert found["traces"]["duration_s"].item() == 1.05e-4
    assert found["rejects"]["reason"].item() == "The call of write is outside its process's start and end."
    assert set(found["trace_modules"]["outcome"]) == {"partial"}


def test_ambiguous_hash_names_no_file(tmp_path: Path) -> None:
    lines = Process(7).lines_of(CALLS)
    place = next(place for place, line in enumerate(lines) if '"FH"' in line)
    other = json.loads(lines[place])
    other["args"]["name"] = "/scratch/other"
    found = one(tmp_path, *lines[: place + 1], json.dumps(other | {"id": 99}), *lines[place + 1 :])
    unknown = found["trace_files"].filter(pl.col("path").is_null())["file_number"].item()
    asked = found["trace_requests"].filter(pl.col("file_number") == unknown)
    assert asked["request_bytes"].sum() == 140.0
    assert "its hash is ambiguous" in found["trace_modules"]["reason"][0]


def test_unknown_hosts_and_files_are_reported(tmp_path: Path) -> None:
    lines = [line for line in Process(7).lines_of(CALLS) if '"HH"' not in line and '"/scratch/log"' not in line]
    (reason,) = set(one(tmp_path, *lines)["trace_modules"]["reason"])
    assert "Of 1 processes, the host of 1 is unknown." in reason
    assert "Of 2 calls, the file is unknown: its hash has no name." in reason


def test_invalid_event_count_is_reported(tmp_path: Path) -> None:
    lines = Process(7).lines_of([write_call(0, 10)])
    place = next(place for place, line in enumerate(lines) if '"num_events"' in line)
    event = json.loads(lines[place])
    lines[place] = json.dumps(event | {"args": event["args"] | {"num_events": True}})
    (module,) = one(tmp_path, *lines)["trace_modules"].to_dicts()
    assert (module["outcome"], "count of events is not a number" in module["reason"]) == ("partial", True)
