"""The demo's files match a site's files, and contain exactly the simulated data."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.flows.demo.simulated import (
    EXACT_FILESYSTEM,
    FILESYSTEM,
    SACCT_FIELDS,
    classes_truth,
    exact_site,
    list_days,
    sacct_lines,
    settings_text,
    write_site,
    write_statistics,
)
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS
from iosig.warehouse.sources.jobs import sacct
from iosig.warehouse.sources.protocol import HEAD_BYTES, Head, Reading

DAY = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def site() -> Site:
    return simulate(SiteParams(days=2, controller_count=3))


def cells(path: Path) -> pl.DataFrame:
    header, *lines = path.read_text().splitlines()
    return pl.DataFrame([line.split("|") for line in lines], schema=header.split("|"), orient="row")


def test_demo_writes_a_job_log_per_night_and_a_poll_file_per_day(site: Site, tmp_path: Path) -> None:
    written = write_site(site, tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in written] == [
        "jobs/sacct_2026-03-02.txt",
        "jobs/sacct_2026-03-03.txt",
        "polls/polls_2026-03-02.parquet",
        "polls/polls_2026-03-03.parquet",
    ]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)


def test_files_of_single_days_equal_files_of_all_days(site: Site, tmp_path: Path) -> None:
    every = write_site(site, tmp_path / "every")
    for place, day in enumerate(list_days(site)):
        own = write_site(site, tmp_path / "own", days=[day])
        assert [path.name for path in own] == [every[place].name, every[place + 2].name]
        assert [path.read_bytes() for path in own] == [every[place].read_bytes(), every[place + 2].read_bytes()]


def test_polls_are_read_back_unchanged(site: Site, tmp_path: Path) -> None:
    files = [path for path in write_site(site, tmp_path) if path.suffix == ".parquet"]
    back = pl.concat([pl.read_parquet(path) for path in files])
    assert back.columns == ["polled_at", "controller", "filesystem", "read_bytes_per_s", "write_bytes_per_s"]
    assert back["filesystem"].unique().to_list() == [FILESYSTEM]
    assert_frame_equal(back.drop("filesystem"), site.polls)


def test_poll_arriving_after_midnight_is_in_the_file_of_the_next_day(site: Site, tmp_path: Path) -> None:
    midnight = DAY + timedelta(days=1)
    late = site.polls.with_row_index().with_columns(
        polled_at=pl.when(pl.col("index") == 50).then(midnight - timedelta(seconds=4)).otherwise("polled_at")
    )
    early = late.filter(pl.col("polled_at") < midnight - timedelta(seconds=4)).head(50)
    rows = pl.concat([early, late.filter(pl.col("polled_at") >= midnight).head(10), late.filter(pl.col("index") == 50)])
    files = write_site(_with_polls(site, rows.drop("index")), tmp_path)
    last = pl.read_parquet(files[-1])
    assert files[-1].name == "polls_2026-03-03.parquet"
    assert last["polled_at"].min() == midnight - timedelta(seconds=4)


def _with_polls(site: Site, polls: pl.DataFrame) -> Site:
    return replace(site, polls=polls)


def test_job_logs_list_every_job_and_its_end(site: Site, tmp_path: Path) -> None:
    logs = [path for path in write_site(site, tmp_path) if path.suffix == ".txt"]
    told = pl.concat([cells(path) for path in logs])
    assert told.columns == list(SACCT_FIELDS)
    jobs = told.filter(~pl.col("JobID").str.contains(".", literal=True))
    assert set(jobs["JobID"]) == set(site.jobs["job_id"])
    over = jobs.filter(pl.col("End") != "Unknown").join(site.jobs, left_on="JobID", right_on="job_id")
    assert over.height == site.jobs["ended_at"].is_not_null().sum()
    for told_as, known_as in (("Submit", "submitted_at"), ("Start", "started_at"), ("End", "ended_at")):
        assert (over[told_as].str.to_datetime(time_unit="us", time_zone="UTC") == over[known_as]).all()
    assert over["State"].str.starts_with("CANCELLED by ").sum() == (site.jobs["state"] == "CANCELLED").sum()
    assert (over["State"].str.extract(r"^(\w+)") == over["state"]).all()


def _job(submitted: float, started: float, ended: float | None) -> pl.DataFrame:
    def at(hours: float | None) -> datetime | None:
        return None if hours is None else DAY + timedelta(hours=hours)

    return pl.DataFrame(
        {
            "cluster": "titan", "job_id": "7", "user": "ana", "account": "prj", "job_name": "ior", "partition": "batch",
            "node_count": 2, "task_count": 32, "submitted_at": at(submitted), "started_at": at(started),
            "ended_at": at(ended), "state": "CANCELLED" if ended else "RUNNING",
            "cancelled_by": "1234" if ended else None, "exit_code": "0:15" if ended else "0:0",
        },
        schema_overrides={"ended_at": pl.Datetime("us", "UTC"), "cancelled_by": pl.String},
    )  # fmt: skip


def test_job_log_knows_nothing_of_the_next_day() -> None:
    job = _job(20, 25, 50)
    nights = [sacct_lines(job, DAY + timedelta(days=n), DAY + timedelta(days=n + 1)) for n in range(4)]
    assert nights[0] == ["7|ior|ana|prj|batch|titan|2|32|2026-03-02T20:00:00|Unknown|Unknown|PENDING|0:0"]
    assert nights[1] == [
        "7|ior|ana|prj|batch|titan|2|32|2026-03-02T20:00:00|2026-03-03T01:00:00|Unknown|RUNNING|0:0",
        "7.batch|batch||prj||titan|1|1|2026-03-03T01:00:00|2026-03-03T01:00:00|Unknown|RUNNING|0:0",
    ]
    assert nights[2] == [
        "7|ior|ana|prj|batch|titan|2|32|2026-03-02T20:00:00|2026-03-03T01:00:00|2026-03-04T02:00:00"
        "|CANCELLED by 1234|0:15",
        "7.batch|batch||prj||titan|1|1|2026-03-03T01:00:00|2026-03-03T01:00:00|2026-03-04T02:00:00|CANCELLED|0:15",
    ]
    assert nights[3] == []
    assert sacct_lines(_job(1, 2, None), DAY + timedelta(days=3), DAY + timedelta(days=4))[0].endswith(
        "|Unknown|RUNNING|0:0"
    )


def test_sacct_source_reads_the_logs_without_rejects(site: Site, tmp_path: Path) -> None:
    for path in write_site(site, tmp_path)[:2]:
        assert sacct.sniff(Head(path.name, path.read_bytes()[:HEAD_BYTES]))
        batches = list(sacct.read(path, Reading(time_zone="UTC")))
        assert {batch.table.name for batch in batches} == {"job_records"}
        assert sum(batch.rows.height for batch in batches) == cells(path).height


def test_faults_are_a_truncated_line_and_a_truncated_file(site: Site, tmp_path: Path) -> None:
    whole, faulty = tmp_path / "whole", tmp_path / "faulty"
    before, after = write_site(site, whole), write_site(site, faulty, with_faults=True)
    assert len(after) == len(before) + 1
    torn = after[-1]
    assert before[-1].read_bytes().startswith(torn.read_bytes())
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_parquet(torn)
    assert after[1].read_text().removeprefix(before[1].read_text()) == "4999999|xgc|u1234|prj0\n"
    batches = list(sacct.read(after[1], Reading(time_zone="UTC")))
    refused = [batch.rows for batch in batches if batch.table.name == "rejects"]
    assert [rows["line"].to_list() for rows in refused] == [[len(after[1].read_text().splitlines())]]
    for old, new in zip((before[0], *before[2:]), (after[0], *after[2:-1]), strict=True):
        assert old.read_bytes() == new.read_bytes()


@pytest.mark.slow
def test_second_file_system_has_separate_jobs_and_server_counters(tmp_path: Path) -> None:
    exact, statistics = exact_site(1)
    write_site(exact, tmp_path, filesystem=EXACT_FILESYSTEM)
    written = write_statistics(statistics, tmp_path)
    assert [path.name for path in written] == ["mds01_2026-03-02.txt", "oss01_2026-03-02.txt"]
    assert exact.jobs["partition"].unique().to_list() == ["analysis"]
    assert exact.jobs["job_id"].str.starts_with("7").all()
    assert tomllib.loads(settings_text(tmp_path))["partitions"]["analysis"] == [EXACT_FILESYSTEM]
    assert written[1].read_text().count(f"obdfilter.{EXACT_FILESYSTEM}-OST0001.job_stats=") > 2000
    polled = pl.read_parquet(tmp_path / "polls" / "polls_2026-03-02.parquet", columns=["filesystem"])
    assert polled["filesystem"].unique().to_list() == [EXACT_FILESYSTEM]


def test_true_classes_match_the_shapes_of_applications(site: Site) -> None:
    found = classes_truth(site)
    assert found.height == 2 * len(APPLICATIONS)
    assert (found["outcome"] == "classified").all()
    labels = {(row["application"], row["direction"]): row["label"] for row in found.iter_rows(named=True)}
    assert labels["ior_a", "write"] == "OTHER"
    assert labels["ior_a", "read"] == "NO_USAGE"
    assert labels["s3d", "write"] == "UNIFORM"
    assert labels["montage", "read"] == "UNIFORM"
    assert labels["montage", "write"] == "END"
    assert labels["milc", "read"] == "START"
    assert labels["milc", "write"] == "CANYON"
    assert labels["gromacs", "write"] == "HILL"
    assert set(labels.values()) == {"START", "END", "HILL", "CANYON", "UNIFORM", "OTHER", "NO_USAGE"}


def test_site_without_applications_has_no_true_classes() -> None:
    assert classes_truth(simulate(SiteParams(days=0.1, controller_count=1), ())).is_empty()
