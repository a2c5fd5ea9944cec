"""Job logs of several schedulers, Lustre's statistics and LDMS' counters land, and a night turns them into `job_io`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.nights import land_files, run_night
from tests.warehouse.sources.counters import test_ldms_lustre2 as lustre2
from tests.warehouse.sources.jobs import test_lsf as lsf, test_sge as sge
from tests.warehouse.sources.jobs.test_slurm_completions import job as completed_job
from tests.warehouse.sources.polls.test_lustre_stats import reading

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]
T = lustre2.T
#: jobs: their log, id, and start after T [s]; each runs for ten minutes
JOBS = (("accounting", "101", 600), ("lsb.acct", "301", 1800), ("slurm_jobcomp.log", "201", 3000))
_RUN_S = 600
#: bytes written per second by the first, second and third job
_RATES = (1_000_000, 2_000_000, 3_000_000)


def _write_logs(folder: Path) -> None:
    instants = [[f"{datetime.fromtimestamp(T + start + end, UTC):%FT%T}" for end in (0, _RUN_S)] for *_, start in JOBS]
    start = T + JOBS[0][2]
    first = (
        sge.record(101, pe="NONE", slots=1)
        .replace(str(sge.T + 10), str(start))
        .replace(str(sge.T + 70), str(start + _RUN_S))
    )
    (folder / "accounting").write_text(sge.HEAD + first.replace(str(sge.T), str(start - 60)))
    start = T + JOBS[1][2]
    second = (
        lsf.job(301, start=str(start))
        .replace(str(lsf.T + 70), str(start + _RUN_S))
        .replace(str(lsf.T), str(start - 60))
    )
    (folder / "lsb.acct").write_text(second)
    third = (
        completed_job(id="201")
        .replace("2026-03-02T10:00:00", instants[2][0])
        .replace("2026-03-02T11:00:00", instants[2][1])
    )
    (folder / "slurm_jobcomp.log").write_text(third.replace("2026-03-02T09:59:00", instants[2][0]))


def _write_counters(folder: Path) -> None:
    written, texts, lines = 0, [], [lustre2.HEADER]
    for second in range(0, 4200, 10):
        running = [place for place, (*_, start) in enumerate(JOBS) if start < second <= start + _RUN_S]
        written += sum(10 * _RATES[place] for place in running)
        texts.append(f"{T + second}\n" + reading(second, 0, written))
        job = JOBS[running[0]][1] if running else "0"
        lines.append(lustre2.line(second, job, 7, written))
    (folder / "oss1.stats").write_text("".join(texts))
    (folder / "lustre2_client.1").write_text("".join(lines))


@pytest.fixture(scope="module")
def job_io(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Iterator[pl.DataFrame]:
    folder = tmp_path_factory.mktemp("formats")
    (folder / "site").mkdir()
    _write_logs(folder / "site")
    _write_counters(folder / "site")
    store = Store(folder / "warehouse")
    arrivals = land_files(store, folder / "site", time_zone="UTC")
    assert [arrival.has_refusals for arrival in arrivals] == [False] * 5
    release = run_night(store)
    with open_release(store, release) as connection:
        yield connection.sql("select * from job_io where direction = 'write'").pl()


@pytest.mark.parametrize(("place", "job_id"), list(enumerate(job for _, job, _ in JOBS)))
def test_job_has_the_bytes_of_its_polls(job_io: pl.DataFrame, place: int, job_id: str) -> None:
    row = job_io.filter(job_id=job_id, filesystem="scratch").row(0, named=True)
    assert row["filesystem_bytes"] == pytest.approx(_RUN_S * _RATES[place], rel=0.02)


@pytest.mark.parametrize(("place", "job_id"), list(enumerate(job for _, job, _ in JOBS)))
def test_job_has_the_bytes_that_its_client_counted(job_io: pl.DataFrame, place: int, job_id: str) -> None:
    row = job_io.filter(job_id=job_id, filesystem="lake").row(0, named=True)
    assert (row["estimate_source"], row["estimated_bytes"]) == ("counted", _RUN_S * _RATES[place])
