"""MPI-IO calls are replayed by MPI if installed; otherwise the missing parts are named."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosig.cli.replay import replay_command
from iosig.traces.replay import mpi, mpi_rank
from iosig.traces.replay.functions import VERBS, Verb
from iosig.traces.replay.replaying import ReplayOptions, replay
from iosig.warehouse.errors import UsageError
from tests.flows.replayed_programs import write_trace

WORLD = "MPI_COMM_WORLD"


@pytest.fixture
def with_mpi() -> None:
    """Skip if MPI is missing."""
    if shutil.which("mpiexec") is None:
        pytest.skip("mpiexec is not on this machine")
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed (the extra `mpi`)")


@pytest.mark.slow
@pytest.mark.usefixtures("with_mpi")
def test_real_trace_is_replayed_by_mpi(shared_data: Path) -> None:
    trace = shared_data / "recorder" / "ios_mpiio_n1" / "8" / "raw.tar.zst"
    report = replay(trace, ReplayOptions(mode="mpi"), lambda _: None)
    assert report.process_count == 8
    assert report.differences() == []
    assert report.replayed_calls == report.traced_calls
    assert report.read_bytes == report.written_bytes == 50331648
    assert [file.replayed_bytes for file in report.files] == [50331648]


@pytest.mark.slow
@pytest.mark.usefixtures("with_mpi")
def test_every_kind_of_transfer_is_replayed_by_mpi(tmp_path: Path) -> None:
    def rank(number: int) -> list[tuple[str, str]]:
        lines = [("MPI_File_open", f"{WORLD} /d/f 9 %p 0-0"), ("MPI_File_set_size", "0-0 64")]
        lines += [("MPI_File_set_view", "0-0 0 MPI_INT MPI_INT %p %p")]
        for way in ("write", "read"):
            for name in (f"MPI_File_{way}_at", f"MPI_File_{way}_at_all", f"MPI_File_i{way}_at"):
                lines.append((name, f"0-0 {number} %p 1 MPI_INT [0_0]"))
            lines += [("MPI_File_seek", f"0-0 {number} MPI_SEEK_SET"), (f"MPI_File_{way}_all", "0-0 %p 2 MPI_INT %p")]
            lines += [(f"MPI_File_i{way}", "0-0 %p 1 MPI_INT %p"), (f"MPI_File_{way}_all_begin", "0-0 %p 1 MPI_INT %p")]
            lines += [
                ("MPI_File_seek_shared", "0-0 0 MPI_SEEK_SET"),
                (f"MPI_File_{way}_ordered", "0-0 %p 1 MPI_INT %p"),
            ]
        return [*lines, ("MPI_File_sync", "0-0"), ("MPI_File_get_size", "0-0 64"), ("MPI_File_close", "0-0")]

    trace = write_trace(tmp_path / "trace", [rank(0), rank(1)])
    report = replay(trace, ReplayOptions(mode="mpi", output=tmp_path / "into"), lambda _: None)
    assert report.differences() == []
    assert report.not_replayed == {}
    assert (tmp_path / "into" / "d" / "f").stat().st_size == 64


def test_every_transfer_has_a_method_of_mpi4py() -> None:
    moving = [function for function, verb in VERBS.items() if Verb.MPI_READ_AT <= verb <= Verb.MPI_WRITE_SHARED]
    assert len(moving) > 20
    assert {function: mpi_rank.METHODS[function] for function in moving if "iwrite_at" in function} == {
        "MPI_File_iwrite_at": "Iwrite_at",
        "MPI_File_iwrite_at_all": "Iwrite_at_all",
    }
    assert not set(moving) - set(mpi_rank.METHODS)


def test_missing_mpi_is_reported_with_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi.shutil, "which", lambda _: None)
    monkeypatch.setattr(mpi, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"openmpi-bin.*extra `mpi`.*replayed as POSIX calls"):
        replay(tmp_path, ReplayOptions(mode="mpi"), lambda _: None)


@pytest.mark.parametrize("others", [["--nested"], ["--processes", "2"]])
def test_contradictory_options_are_refused(tmp_path: Path, others: list[str]) -> None:
    result = CliRunner().invoke(replay_command, [str(tmp_path), "--mpi", *others])
    assert isinstance(result.exception, UsageError)
