"""`iosig compress`, and the selection of calls for extrapolation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iosig.traces.extrapolation.compression import call_total, comparable, compress_trace
from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.frames import from_frame
from iosig.transforms.traces.trace import Call, CompressedTrace
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder.signatures import select_outer_calls
from tests.compressed import class_ranks, nodes, table_one, table_one_posix
from tests.naive import recorder_traces as naive
from tests.naive.recorder_traces import Call as Logged
from tests.nights import Cli
from tests.warehouse.sources.trace_landing import put, tarred

OPEN, WRITE, MPI_OPEN, BARRIER, MPI_WRITE = 0, 2, 4, 5, 6


def program(rank: int, writes: int = 3) -> list[Logged]:
    """Return an MPI-IO program's calls: rank 0 creates; the writes have POSIX calls in them."""
    calls = [(MPI_OPEN, 0, ("MPI_COMM_WORLD", "f", "9", "%p", "0-0"))]
    calls += [(OPEN, 1, ("f", "66", "420") if rank == 0 else ("f", "2"))]
    for i in range(writes):
        status = f"[{(-1) ** (rank + i) * 33808}_{rank - 2}]"
        calls += [(MPI_WRITE, 0, ("0-0", str(1 << 40), "%p", "8", "MPI_BYTE", status))]
        calls += [(WRITE, 1, ("f", "%p", str(8 + rank)))]
    calls += [(BARRIER, 0, (str(94033035442912 + rank * 64),))]
    return [Logged(function, level, given, 10 * i, 10 * i + 9) for i, (function, level, given) in enumerate(calls)]


def trace_of(folder: Path, *ranks: list[Logged]) -> Path:
    return put(folder, naive.separate(ranks))


class Told:
    """Records progress reports."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.counts: list[tuple[int, int]] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[int, int], None]]:
        self.names.append(name)
        yield lambda done, count: self.counts.append((done, count))


def functions(trace: CompressedTrace, rank: int) -> list[str]:
    return rank_calls(trace, rank)["function"].to_list()


def read(path: Path) -> CompressedTrace:
    frame, metadata = compressed_traces.read(path)
    return from_frame(frame, int(metadata["process_count"]))


# ---- the command


def test_compressed_file_holds_all_calls_of_the_trace(cli: Cli, tmp_path: Path) -> None:
    trace, into = trace_of(tmp_path / "raw", *(program(rank, 3 + rank) for rank in range(4))), tmp_path / "t.parquet"
    code, out, err = cli("--warehouse", tmp_path / "w", "compress", trace, "--output", into)
    assert code == 0
    assert "raw, compressed into" in out
    assert "4/4" in err or "raw" in err
    assert not (tmp_path / "w").exists()
    found = read(into)
    assert found == compress_trace(trace)
    for rank in range(4):
        calls = program(rank, 3 + rank)
        expected = [(naive.FUNCTIONS[call.function], call.level, " ".join(call.arguments)) for call in calls]
        assert rank_calls(found, rank).select("function", "level", "arguments").rows() == expected


def test_calls_of_ranks_with_different_iteration_counts_are_counted(cli: Cli, tmp_path: Path) -> None:
    ranks = [[Logged(WRITE, 0, ("f", "%p", "8"), 10 * i, 10 * i + 1) for i in range(2 + rank)] for rank in range(5)]
    trace, into = trace_of(tmp_path / "raw", *ranks), tmp_path / "t.parquet"
    code, out, _ = cli("compress", trace, "--output", into, "--json")
    assert code == 0
    assert json.loads(out) == {
        "format": "iosig-compression/1",
        "ranks": 5,
        "calls": 2 + 3 + 4 + 5 + 6,
        "classes": 1,
        "traced_bytes": sum(path.stat().st_size for path in trace.iterdir()),
        "compressed_bytes": into.stat().st_size,
    }


def test_archive_and_folder_compress_to_the_same_bytes(cli: Cli, tmp_path: Path) -> None:
    files = naive.separate([program(rank) for rank in range(2)])
    (tmp_path / "t.tar").write_bytes(tarred({f"raw/{name}": content for name, content in files.items()}))
    put(tmp_path / "raw", files)
    for name in ("t.tar", "raw"):
        assert cli("compress", tmp_path / name, "--output", tmp_path / f"{name}.parquet")[0] == 0
    assert (tmp_path / "t.tar.parquet").read_bytes() == (tmp_path / "raw.parquet").read_bytes()


def test_run_without_calls_is_a_valid_trace(cli: Cli, tmp_path: Path) -> None:
    code, out, _ = cli("compress", trace_of(tmp_path / "raw", [], []), "--output", tmp_path / "t.parquet", "--json")
    assert (code, json.loads(out)["calls"]) == (0, 0)
    assert read(tmp_path / "t.parquet") == CompressedTrace(2, ())


def test_trace_is_never_overwritten(cli: Cli, tmp_path: Path) -> None:
    files = naive.separate([program(0)])
    archive, folder = tmp_path / "t.tar", put(tmp_path / "raw", files)
    archive.write_bytes(tarred(files))
    (tmp_path / "link").symlink_to(folder)
    before = archive.read_bytes()
    for trace, into in ((archive, archive), (folder, folder / "0.cst"), (folder, tmp_path / "link" / "t.parquet")):
        code, out, err = cli("compress", trace, "--output", into)
        assert (code, out) == (2, "")
        assert "is never overwritten" in err
    assert archive.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    assert (folder / "0.cst").read_bytes() == files["0.cst"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "1.ts").unlink(), "1.ts is missing"),
        (lambda folder: (folder / "1.ts").write_bytes(b"abc"), "Rank 1"),
        (lambda folder: shutil.rmtree(folder) or folder.mkdir(), "no Recorder trace"),
    ],
    ids=["lacking", "cut", "empty"],
)
def test_incomplete_trace_is_refused_and_nothing_is_written(
    cli: Cli, tmp_path: Path, change: Callable[[Path], object], words: str
) -> None:
    trace = trace_of(tmp_path / "raw", program(0), program(1))
    change(trace)
    code, out, err = cli("compress", trace, "--output", tmp_path / "t.parquet")
    assert (code, out) == (3, "")
    assert words in err
    assert not (tmp_path / "t.parquet").exists()


def test_file_that_is_not_a_trace_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.tar.zst").write_bytes(b"nothing of the kind")
    assert cli("compress", tmp_path / "x.tar.zst", "--output", tmp_path / "t.parquet")[0] == 3
    assert cli("compress", tmp_path / "absent", "--output", tmp_path / "t.parquet")[0] == 2
    assert cli("compress", trace_of(tmp_path / "raw", program(0)))[0] == 2


def test_rank_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.txt").write_bytes(b"0.1000000 0.2000000 write 0 0 ( f\0g %p 8 )\n")
    with pytest.raises(InputRefused, match="No line of its file is a call"):
        compress_trace(tmp_path / "t")


# ---- selection and normalization of calls


def test_progress_is_reported_per_rank(tmp_path: Path) -> None:
    told = Told()
    compress_trace(trace_of(tmp_path / "raw", program(0), program(1)), told)
    assert told.names == [f"{tmp_path.name}/raw"]
    assert told.counts == [(1, 2), (2, 2)]


def test_calls_of_each_rank_can_be_filtered(tmp_path: Path) -> None:
    trace = trace_of(tmp_path / "raw", program(0), program(1))
    assert "write" in functions(compress_trace(trace), 1)
    assert "write" not in functions(compress_trace(trace, of_rank=select_outer_calls), 1)


@pytest.mark.parametrize("trace", [table_one(8), table_one_posix(6, iterations=5), CompressedTrace(3, ())])
def test_call_total_equals_the_sum_over_ranks(trace: CompressedTrace) -> None:
    assert call_total(trace) == sum(rank_calls(trace, rank).height for rank in range(trace.process_count))


def test_comparable_traces_omit_nested_calls_addresses_and_statuses(tmp_path: Path) -> None:
    few, many = (trace_of(tmp_path / str(count), *(program(rank) for rank in range(count))) for count in (2, 5))
    told = Told()
    own = comparable([many, few], has_nested=False, progress=told)
    nested = comparable([many, few], has_nested=True, progress=told)
    assert [trace.process_count for trace in own + nested] == [5, 2, 5, 2]
    assert len(told.counts) == 14
    for trace in own:
        (one,) = trace.classes
        assert class_ranks(one) == list(range(trace.process_count))
        shown = [node for node in nodes(one.body) if isinstance(node, Call)]
        assert [node.function for node in shown] == ["MPI_File_open", "MPI_File_write_at", "MPI_Barrier"]
        assert [node.texts[-1] for node in shown[1:]] == [" MPI_BYTE %p", "%p"]
    for trace in nested:
        assert [class_ranks(one)[0] for one in trace.classes] == [0, 1]
        assert functions(trace, 1)[:4] == ["MPI_File_open", "open", "MPI_File_write_at", "write"]


def test_unreadable_trace_in_a_set_is_refused(tmp_path: Path) -> None:
    good, bad = (trace_of(tmp_path / name, program(0), program(1)) for name in ("good", "bad"))
    (bad / "1.cfg").unlink()
    with pytest.raises(InputRefused):
        comparable([good, bad], has_nested=False, progress=Told())


# ---- real traces


@pytest.mark.parametrize("program_name", ["ior_mpiio_inter_coll", "ior_mpiio_inter_coll_romio"])
def test_real_programs_grow_at_most_30_percent_from_8_to_24_ranks(
    cli: Cli, shared_data: Path, tmp_path: Path, program_name: str
) -> None:
    """The two programs are the closest to this limit among all programs."""
    sizes = []
    for ranks in ("8", "24"):
        trace = shared_data / "recorder" / program_name / ranks / "raw.tar.zst"
        code, out, _ = cli("compress", trace, "--output", tmp_path / f"{ranks}.parquet", "--json")
        told = json.loads(out)
        assert (code, told["ranks"]) == (0, int(ranks))
        sizes.append(told["compressed_bytes"])
    assert sizes[1] <= 1.3 * sizes[0]
