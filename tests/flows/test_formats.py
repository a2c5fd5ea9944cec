"""Job logs and counters of several formats land, and a night turns them into `job_io` and intervals of series."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.nights import land_files, run_night
from tests.warehouse.sources.counters import (
    test_ldms_lustre2 as lustre2,
    test_prometheus as prometheus,
    test_tacc_stats as tacc,
)
from tests.warehouse.sources.jobs import (
    test_clustercockpit as cockpit,
    test_flux as flux,
    test_lsf as lsf,
    test_sge as sge,
)
from tests.warehouse.sources.jobs.test_slurm_completions import job as completed_job
from tests.warehouse.sources.polls.test_lustre_stats import reading
from tests.warehouse.sources.series import test_clustercockpit as rates

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


def _write_client_counters(folder: Path, start: int) -> None:
    """Write ten minutes of job 1 on a node: 1 MB/s to Lustre, and 1 kB/s to DAOS."""
    readings, texts = [tacc.HEADER], []
    for second in range(-60, _RUN_S + 61, 60):
        elapsed = min(max(second, 0), _RUN_S)
        job = "1" if 0 <= second <= _RUN_S else "-"
        readings.append(tacc.reading(start - tacc.T + second, job, 5, 7 + 1_000_000 * elapsed))
        if job == "1":
            texts.append(prometheus.daos(start - prometheus.T + second, 500 * elapsed, job=job))
    (folder / "cn1.stats").write_text("".join(readings))
    (folder / "cn1.prom").write_text("".join(texts))


def test_jobs_of_other_monitors_have_their_bytes(tmp_path: Path, quick_checks_throughout: None) -> None:
    site, start = tmp_path / "site", flux.T + 10
    folder = site / "fritz" / "398" / "759" / str(cockpit.T)
    folder.mkdir(parents=True)
    (site / "flux.json").write_text(json.dumps({"jobs": [flux.job(1, t_run=start, t_cleanup=start + _RUN_S)]}))
    _write_client_counters(site, start)
    (folder / "meta.json").write_text(json.dumps(cockpit.meta(duration=90)))
    data = rates.LOAD | {"lustre_read_bw": rates.metric([2.0, 2, 2], [1, 1, 1], prefix="M")}
    (folder / "data.json").write_text(json.dumps(data))
    store = Store(tmp_path / "warehouse")
    arrivals = land_files(store, site)
    assert [arrival.has_refusals for arrival in arrivals] == [False] * 5
    with open_release(store, run_night(store)) as connection:
        job_io = connection.sql(
            "select filesystem, own_bytes, outcome from job_io where direction = 'write'"
        ).fetchall()
        series = connection.sql("select bytes_per_s, interval_s from series_intervals").pl()
    counted = {filesystem: (bytes_, outcome) for filesystem, bytes_, outcome in job_io if bytes_ is not None}
    assert counted["scratch"] == (600_000_000, "measured")
    # what a process wrote before its first scrape is unknown; it was scraped at its start
    assert counted["pool1"] == (600_000, "measured")
    # three steps of 30 s, on two nodes
    assert (series["bytes_per_s"] * series["interval_s"]).sum() == 270_000_000
