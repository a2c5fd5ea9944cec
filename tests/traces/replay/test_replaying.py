"""Replays in separate processes reproduce the trace's bytes, calls, sizes and order, and leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosig.cli.replay import replay_command
from iosig.traces.replay import planning, processes
from iosig.traces.replay.ordering import WORLD
from iosig.traces.replay.replaying import ReplayOptions, replay
from iosig.traces.replay.reports import Report
from iosig.transforms.extrapolation.extrapolating import extrapolate
from iosig.transforms.traces.compression import compress_together
from iosig.transforms.traces.frames import to_frame
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder import signatures
from tests.budget import one_in
from tests.flows.replayed_programs import Line, executed, write_trace
from tests.warehouse.sources.recorder.test_source import TRACES

BARRIER = ("MPI_Barrier", WORLD)


def quiet(_: str) -> None:
    """Ignore a line of progress."""


def calls_in(folder: Path) -> list[Counter[Line]]:
    """Return function and arguments of each rank's calls in text as recorder2text prints it."""
    found = []
    for path in sorted(folder.iterdir(), key=lambda path: int(path.stem)):
        lines = (line.split(" ", 5) for line in path.read_text().splitlines())
        found.append(Counter((function, rest[2:-2]) for _, _, function, _, _, rest in lines))
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that must be empty after the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


# ---- real traces


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), one_in(2, [("ios_posix_nn", [819200] * 8), ("ios_strong_posix", [786432])]))
def test_real_traces_are_replayed_exactly(shared_data: Path, tmp_path: Path, name: str, sizes: list[int]) -> None:
    trace = shared_data / "recorder" / name / "8" / "raw.tar.zst"
    into = tmp_path / "into"
    report = replay(trace, ReplayOptions(output=into, process_count=3, trace_output=tmp_path / "again"), quiet)
    assert report.differences() == []
    assert report.replayed_calls == report.traced_calls
    assert report.written_bytes == report.traced_written_bytes > 0
    assert sorted(path.stat().st_size for path in into.rglob("*") if path.is_file()) == sorted(sizes)
    assert [file.replayed_bytes for file in report.files] == [file.traced_bytes for file in report.files]
    # The replay was traced too, and that trace can be replayed: it has the calls of the first.
    plan = replay(tmp_path / "again", ReplayOptions(is_dry_run=True), quiet)
    assert plan.traced_calls == report.traced_calls
    assert plan.not_replayed == {}


@pytest.mark.slow
def test_mpi_io_is_replayed_as_posix_calls(shared_data: Path, temporary: Path) -> None:
    report = replay(
        shared_data / "recorder" / "ios_mpiio_n1" / "8" / "raw.tar.zst", ReplayOptions(process_count=2), quiet
    )
    assert report.differences() == []
    assert report.synchronized_on == {WORLD: 8}
    assert [(file.traced_bytes, file.replayed_bytes) for file in report.files] == [(50331648, 50331648)]
    assert list(temporary.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("count", [8, 12, 16, 24])
@pytest.mark.parametrize("name", TRACES)
def test_every_real_trace_is_replayed_exactly(shared_data: Path, temporary: Path, name: str, count: int) -> None:
    trace = shared_data / "recorder" / name / str(count) / "raw.tar.zst"
    report = replay(trace, ReplayOptions(process_count=4), quiet)
    # IOR looks for its file before it creates it; no trace records the result.
    looked = re.compile(r"(access|MPI_File_open): \d+ of \d+ calls failed with ENOENT")
    assert [told for told in report.differences() if not (name.startswith("ior_") and looked.fullmatch(told))] == []
    assert report.replayed_calls == report.traced_calls
    assert report.rank_count == count
    assert list(temporary.iterdir()) == []


# ---- hand-written programs


def worker(rank: int) -> list[Line]:
    name = f"/data/f.{rank:02}"
    return [
        ("MPI_Comm_rank", f"{WORLD} {rank}"),
        ("open", f"{name} 577 420"),
        ("write", f"{name} %p {rank + 1}"),
        ("lseek", f"{name} 100 0"),
        ("writev", f"{name} 10 2"),
        BARRIER,
        ("close", name),
        ("__xstat", f"1 {name} %p"),
        ("rename", f"{name} {name}.done"),
    ]


@pytest.mark.slow
def test_several_ranks_share_a_process(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [worker(rank) for rank in range(5)])
    options = ReplayOptions(output=tmp_path / "into", process_count=2, ranks="0-2,4", trace_output=tmp_path / "again")
    report = replay(trace, options, quiet)
    assert report.differences() == []
    assert (report.rank_count, report.process_count) == (4, 2)
    assert report.synchronized_on == {WORLD: 4}
    assert sorted(path.name for path in (tmp_path / "into" / "data").iterdir()) == [
        f"f.{rank:02}.done" for rank in (0, 1, 2, 4)
    ]
    expected = [Counter(line for line in worker(rank) if not line[0].startswith("MPI")) for rank in (0, 1, 2, 4)]
    assert calls_in(tmp_path / "again") == expected


def test_command_prints_json_and_a_table(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [worker(0)])
    result = CliRunner().invoke(replay_command, [str(trace), "--json", "--dry-run", "--output", str(tmp_path / "new")])
    document = json.loads(result.stdout)
    assert document["is_dry_run"]
    assert document["traced"]["calls"]["open"] == 1
    assert document["files"][0] | {"prepared_bytes": 0} == {
        "path": "data/f.00",
        "traced_bytes": None,
        "replayed_bytes": None,
        "prepared_bytes": 0,
    }
    assert not (tmp_path / "new").exists()
    shown = CliRunner().invoke(replay_command, [str(trace), "--processes", "1"])
    assert shown.exit_code == 0
    assert "Bytes, calls and file sizes match the trace." in shown.stdout


def test_failed_calls_are_counted_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    lines = [
        ("access", "f 0"),
        ("open", "f 2"),
        ("close", "f"),
        ("close", "f"),
        ("MPI_File_open", "MPI_COMM_SELF g 34 %p 0-0"),
        ("fclose", "h"),
        ("open", "e 193 420"),
        ("open", "e 193 420"),
        ("pwrite", "e %p 5 -3"),
        ("ftruncate", "h 5"),
        ("fopen", "e r"),
        ("fwrite", "%p 1 5 e"),
        ("rmdir", "none"),
    ]
    (done,), _, _ = executed(folder, [lines])
    assert done.failures == {
        ("close", "EBADF"): 1,
        ("MPI_File_open", "ENOENT"): 1,
        ("fclose", "EBADF"): 1,
        ("open", "EEXIST"): 1,
        ("pwrite", "EINVAL"): 1,
        ("ftruncate", "EBADF"): 1,
        ("fwrite", "EBADF"): 1,
        ("rmdir", "ENOENT"): 1,
    }


def test_files_that_existed_before_the_run_are_prepared(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [[("open", "in 0"), ("read", "in %p 70000"), ("close", "in")]])
    report = replay(trace, ReplayOptions(output=tmp_path / "into"), quiet)
    assert report.read_bytes == 70000
    assert report.files[0].prepared_bytes == 70000
    assert len(set((tmp_path / "into" / "in").read_bytes())) > 100


def test_streams_are_buffered(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    lines = [
        ("fopen", "s w+"),
        ("fwrite", "%p 8 3 s"),
        ("fprintf", "s 11"),
        ("fseek", "s 4 0"),
        ("fread", "%p 1 100 s"),
        ("ftell", "s"),
        ("fclose", "s"),
        ("open", "s 1"),
        ("fdopen", "s a"),
        ("fwrite", "%p 1 6 s"),
        ("fclose", "s"),
    ]
    (done,), _, _ = executed(folder, [lines])
    assert done.failures == {}
    assert (done.written_bytes, done.read_bytes) == (24 + 10 + 6, 30)
    # The descriptor writes from the start of the file; a buffer in front of it does not change that.
    assert (folder / "s").stat().st_size == 40


# ---- time


def test_timed_replay_keeps_order_and_gaps(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    first = [("open", "f 577 420"), *[("write", "f %p 1")] * 10, ("close", "f"), BARRIER]
    began = time.monotonic()
    done, _, _ = executed(folder, [first, [BARRIER, ("open", "f 0"), ("read", "f %p 10")]], spent_s=0.01)
    assert done[1].read_bytes == 10
    # Twelve calls after gaps of 10 ms, the barrier, two more calls.
    assert done[1].end_s - began >= 0.15
    assert done[1].end_s > done[0].end_s


def test_ranks_of_one_process_wait_concurrently(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    began = time.monotonic()
    done, _, _ = executed(folder, [[("access", "f 0")] * 10] * 8, spent_s=0.05)
    # 4 s one after the other
    assert 0.5 <= max(rank.end_s for rank in done) - began < 4.0


# ---- refusals and failures


def test_too_small_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_trace(tmp_path / "trace", [[("open", "f 66 420"), ("pwrite", "f %p 1000000000 0")]])
    full = os.statvfs_result((4096, 4096, 1000, 1000, 1000, 0, 0, 0, 0, 255))
    monkeypatch.setattr(planning.os, "statvfs", lambda _: full)
    with pytest.raises(InputRefused, match="needs up to 1,000,000,000 bytes, and 4,096,000 are free"):
        replay(trace, ReplayOptions(output=tmp_path / "into", process_count=1), quiet)
    assert list((tmp_path / "into").iterdir()) == []


def test_offsets_beyond_any_disk_are_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [[("open", "f 0"), ("pread", "f %p 10 1000000000000000000")]])
    with pytest.raises(InputRefused, match="are free under"):
        replay(trace, ReplayOptions(is_dry_run=True), quiet)


def test_too_many_open_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_trace(tmp_path / "trace", [[("open", f"f{number} 66 420") for number in range(50)]])
    monkeypatch.setattr(planning.resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(InputRefused, match="50 files open at once"):
        replay(trace, ReplayOptions(is_dry_run=True), quiet)


def test_trace_without_file_calls_is_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [[BARRIER]])
    with pytest.raises(InputRefused, match="no replayable calls"):
        replay(trace, ReplayOptions(is_dry_run=True), quiet)


def test_non_empty_or_nested_output_folders_are_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace", [worker(0)])
    with pytest.raises(UsageError, match="not empty"):
        replay(trace, ReplayOptions(output=trace), quiet)
    with pytest.raises(UsageError, match="must be outside"):
        replay(trace, ReplayOptions(output=tmp_path / "into", trace_output=tmp_path / "into" / "again"), quiet)


def test_killed_process_aborts_the_replay(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_trace(tmp_path / "trace", [[("access", "f 0")] * 20, [BARRIER]], gap_s=3.0)
    running: list[processes.Processes] = []
    start = processes.Processes.start

    def started(self: processes.Processes) -> None:
        start(self)
        running.append(self)
        threading.Timer(0.3, os.kill, (self.ids[0], signal.SIGKILL)).start()

    monkeypatch.setattr(processes.Processes, "start", started)
    with pytest.raises(InputRefused, match="process of ranks 0 to 0 ended early by signal 9"):
        replay(trace, ReplayOptions(is_timed=True, process_count=2), quiet)
    for number in running[0].ids:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    assert list(temporary.iterdir()) == []


def test_exception_in_a_process_is_raised(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_trace(tmp_path / "trace", [worker(0)])
    go_of = processes.make_start_message

    def elsewhere(*given: object) -> processes.Go:
        go = go_of(*given)  # type: ignore[arg-type]
        go.folder.rmdir()
        return go

    monkeypatch.setattr(processes, "make_start_message", elsewhere)
    monkeypatch.setattr(planning, "prepare", lambda *_: Counter())
    with pytest.raises(RuntimeError, match="FileNotFoundError"):
        replay(trace, ReplayOptions(output=tmp_path / "into"), quiet)
    assert list(temporary.iterdir()) == []


def test_report_lists_differences(tmp_path: Path) -> None:
    lines = [("open", "f 577 420"), ("write", "f %p 10"), ("lseek", "f 0 0"), ("read", "f %p 20"), ("rmdir", "none")]
    report: Report = replay(write_trace(tmp_path / "trace", [lines]), ReplayOptions(), quiet)
    assert report.differences() == [
        "read: 1 of 1 calls failed with EBADF",
        "rmdir: 1 of 1 calls failed with ENOENT",
        "0 bytes were read, but the trace has 20",
    ]
    assert report.document()["replayed"]["failures"][0] == {"function": "read", "error": "EBADF", "count": 1}


# ---- extrapolated traces


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"), one_in(2, [("ios_posix_nn", [819200] * 32), ("ios_strong_posix", [786432])], slow=2)
)
def test_extrapolated_trace_is_replayed_exactly(shared_data: Path, tmp_path: Path, name: str, sizes: list[int]) -> None:
    signed = []
    for count in (8, 12, 16, 24):
        with signatures.open_signed_run(shared_data / "recorder" / name / str(count) / "raw.tar.zst") as run:
            signed.append((count, [signatures.select_outer_calls(run.decode(rank)) for rank in run.ranks]))
    found = extrapolate(compress_together(signed), 32)
    assert found.trace is not None
    trace = tmp_path / "trace.parquet"
    compressed_traces.write(trace, to_frame(found.trace), {"process_count": "32"})
    report = replay(trace, ReplayOptions(output=tmp_path / "into", process_count=2), quiet)
    assert report.rank_count == 32
    assert report.is_time_drawn
    assert report.differences() == []
    assert report.replayed_calls == report.traced_calls
    assert report.traced_calls["close"] == 32
    assert report.written_bytes == report.traced_written_bytes == sum(sizes)
    assert sorted(path.stat().st_size for path in (tmp_path / "into").rglob("*") if path.is_file()) == sorted(sizes)
