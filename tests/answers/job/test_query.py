"""A traced job combines its job log, bytes and trace, on the terminal and on its page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from iosig.answers.job import query as job
from iosig.answers.job.document import build_document, build_page
from iosig.answers.report.runs import read_hours, read_runs
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.flows.demo.simulated import find_shipped_logs
from iosig.reports.site.packing import unpack_document
from iosig.reports.site.runs import hours as hour_files
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.nights import land_files, run_night

LOG = next(path for path in find_shipped_logs() if path.name.startswith("ior_hdf5"))


def write_job(folder: Path) -> str:
    """Write a job log with the traced run, and another run with the same id a day later."""
    with open_input(LOG, Settings(), ReadOptions()) as trace:
        assert isinstance(trace, TraceInput)
        row = trace.jobs.row(0, named=True)
    began = row["started_at"].replace(microsecond=0)
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State"]
    for day in (0, 1):
        start, end = (began.timestamp() + 86400 * day + offset for offset in (-60, 600))
        times = [f"{datetime.fromtimestamp(at, UTC):%FT%TZ}" for at in (start, end)]
        lines.append(f"{row['traced_job_id']}|ann|ior|batch|1|{'|'.join(times)}|COMPLETED")
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    return str(row["traced_job_id"])


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
def test_traced_job_combines_its_log_bytes_and_trace(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    job_id = write_job(tmp_path)
    assert len(land_files(store, tmp_path / "jobs.sacct", LOG)) == 2
    release = run_night(store)
    last = job.query_release(store, release, job_id)
    assert (last.traces, len(last.other_runs)) == ((), 1)
    told = job.query_release(store, release, job_id, started=last.other_runs[0])
    (trace,) = told.traces
    with open_input(LOG, Settings(), ReadOptions()) as alone:
        assert isinstance(alone, TraceInput)
        expected = job.findings.analyze_input(alone)
    assert trace.findings.equals(expected.findings)
    assert {one.direction for one in trace.maps} == {"write", "read"}
    printed = build_document(told, 5)
    assert printed.job is not None
    assert printed.job["user"] == "ann"
    assert {row["direction"] for row in printed.io} == {"write", "read"}
    assert "Ranks and time" in build_page(told, 5)
    with open_release(store, release) as connection:
        chosen = {hour: days for hour, days in read_hours(connection).items() if hour <= told.job["started_at"]}
        (content, *_) = hour_files(read_runs(connection, chosen))
    (row,) = unpack_document(content.data)
    assert [one["module"] for one in row["traces"][0]["layers"]] == ["H5D", "H5F", "MPIIO", "POSIX", "STDIO"]
    with pytest.raises(UsageError, match="started then"):
        job.query_release(store, release, job_id, started=datetime(2020, 1, 1, tzinfo=UTC))
