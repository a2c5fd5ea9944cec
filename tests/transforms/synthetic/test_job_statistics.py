"""Job statistics of a synthetic site count the served bytes, except for known losses."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.transforms.synthetic.job_statistics import JobStatistics, JobStatisticsParams, count_jobs
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import DIRECTIONS

PARAMS = JobStatisticsParams(ost_count=3, mdt_count=2, restarts_per_day=20, lost_ratio=0.1, outages_per_day=20)
COUNTED = ("read_bytes", "written_bytes", "open_count", "close_count")


@pytest.fixture(scope="module")
def site() -> Site:
    return simulate(SiteParams(seed=5, days=0.4, controller_count=3))


@pytest.fixture(scope="module")
def statistics(site: Site) -> JobStatistics:
    return count_jobs(site, PARAMS)


def frames(statistics: JobStatistics) -> list[pl.DataFrame]:
    return [getattr(statistics, field.name) for field in fields(statistics) if field.name != "params"]


def test_frames_depend_only_on_the_seed(site: Site, statistics: JobStatistics) -> None:
    for one, other in zip(frames(statistics), frames(count_jobs(site, PARAMS)), strict=True):
        assert_frame_equal(one, other)
    other = count_jobs(site, replace(PARAMS, seed=2))
    assert other.scrapes.height != statistics.scrapes.height
    assert other.moved["written_bytes"].to_list() != statistics.moved["written_bytes"].to_list()


def test_targets_count_served_bytes_exactly(site: Site, statistics: JobStatistics) -> None:
    served = site.served.group_by("job_id", "direction").agg(pl.col("moved_bytes").sum())
    counted = statistics.moved.group_by("job_id").agg(
        pl.col(COUNTED[:2]).sum(), target_count=pl.col("target").n_unique()
    )
    both = served.join(counted, on="job_id", nulls_equal=True)
    assert both.height == served.height > 50
    own = pl.when(pl.col("direction") == "read").then("read_bytes").otherwise("written_bytes")
    short = both.filter(pl.col("job_id").is_not_null()).select(pl.col("moved_bytes") - own).to_series()
    # Fractions of a byte per target are not counted; errors of floating-point sums are smaller.
    assert short.min() > -0.01
    assert short.max() <= 2
    assert counted.filter(pl.col("job_id").is_not_null())["target_count"].max() == 3


def test_job_bytes_per_tick_equal_traffic_without_background(site: Site, statistics: JobStatistics) -> None:
    ticks = statistics.moved.group_by("polled_at").agg(
        read=pl.col("read_bytes").sum(), write=pl.col("written_bytes").sum()
    )
    both = site.traffic.join(ticks, on="polled_at", how="left").fill_null(0)
    for direction in DIRECTIONS:
        foreign = both[f"{direction}_bytes"] - both[f"background_{direction}_bytes"]
        assert both[direction].sum() > 1e11
        # Each target counts whole bytes of each job.
        assert np.abs((foreign - both[direction]).to_numpy()).max() < 30


def test_bursts_open_and_close_a_file_per_task(site: Site, statistics: JobStatistics) -> None:
    over = site.bursts.filter(pl.col("job_id").is_not_null(), pl.col("ended_at").is_not_null())
    closed = over.join(site.jobs.select("job_id", "task_count"), on="job_id")["task_count"].sum()
    assert statistics.moved["close_count"].sum() == closed
    assert statistics.moved["open_count"].sum() >= closed


def test_readings_are_counts_since_the_start_of_the_entry(statistics: JobStatistics) -> None:
    read = statistics.readings
    assert (read["counter_started_at"] <= read["sampled_at"]).all()
    assert (read["sampled_at"] <= read["scraped_at"]).all()
    life = ["target", "job_key", "counter_started_at"]
    for name in COUNTED:
        assert (read.sort("scraped_at").select(pl.col(name).diff().over(life)).to_series().drop_nulls() >= 0).all()
    last = read.sort("scraped_at").group_by(life).last()
    summed = last.select(pl.col(COUNTED).sum())
    seen = statistics.moved.filter(~pl.col("is_lost")).select(pl.col(COUNTED).sum())
    assert_frame_equal(summed, seen)
    assert 0 < statistics.moved["is_lost"].sum() < statistics.moved.height / 2


def test_without_faults_only_counts_after_the_last_scrape_are_lost(site: Site) -> None:
    found = count_jobs(site, JobStatisticsParams())
    lost = found.moved.filter("is_lost")
    assert lost.is_empty() or lost["polled_at"].min() > found.scrapes["scraped_at"].max()
    assert found.scrapes["scraped_at"].n_unique() * 5 == found.scrapes.height
    # The entry of a job with a long compute phase is dropped and created again.
    lives = found.readings.group_by("target", "job_key").agg(count=pl.col("counter_started_at").n_unique())
    assert (lives["count"] > 1).any()


def test_job_keys_contain_the_job_or_the_program(site: Site) -> None:
    found = count_jobs(site, replace(PARAMS, job_key="SLURM_JOB%j:0:node7")).moved
    job = found.filter(pl.col("job_id").is_not_null())
    assert (job["job_key"] == "SLURM_JOB" + job["job_id"] + ":0:node7").all()
    others = found.filter(pl.col("job_id").is_null())["job_key"].unique()
    assert others.str.contains(r"^(scp\.10[01][0-9])?$").all()


def test_site_without_metadata_targets_counts_only_bytes(site: Site, statistics: JobStatistics) -> None:
    found = count_jobs(site, replace(PARAMS, mdt_count=0)).moved
    assert found["target"].n_unique() == 3
    assert found["read_bytes"].sum() == statistics.moved["read_bytes"].sum()


def test_idle_site_has_scrapes_without_entries() -> None:
    quiet = simulate(SiteParams(days=0.01, foreign_level=0, controller_count=1), ())
    found = count_jobs(quiet)
    assert (found.readings.height, found.moved.height, found.scrapes.height) == (0, 0, 5 * 15)
