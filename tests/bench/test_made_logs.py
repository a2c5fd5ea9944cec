"""Made Darshan logs are logs: PyDarshan reads them back, and each is of another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import made_logs


def test_pydarshan_reads_made_logs_back(tmp_path: Path, shared_data: Path) -> None:
    darshan = pytest.importorskip("darshan")
    base = shared_data / "darshan" / made_logs.BASE
    made_logs.write(base, tmp_path / "logs", 3)
    paths = [base, *sorted((tmp_path / "logs").iterdir())]
    told = []
    for path in paths:
        report = darshan.DarshanReport(str(path))
        job, counters = report.metadata["job"], report.records["POSIX"].to_df()["counters"].iloc[0]
        told.append(
            (job["jobid"], job["start_time_sec"], counters["POSIX_BYTES_READ"], counters["POSIX_BYTES_WRITTEN"])
        )
        assert counters["POSIX_MAX_BYTE_WRITTEN"] == 67108863
    _, began, moved, _ = told[0]
    assert told[1:] == [(1 + number, began + 40 * number, moved + number, moved + number) for number in range(3)]


def test_another_format_is_refused(shared_data: Path) -> None:
    with pytest.raises(ValueError, match="another format"):
        made_logs.Log.of(shared_data / "darshan" / "mpi-io-test-x86_64-3.0.0.darshan")
