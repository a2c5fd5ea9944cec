"""The night turns landed server counters into daily deltas, whatever the order of arrival."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.transforms.synthetic.job_statistics import JobStatisticsParams
from iosig.transforms.synthetic.job_statistics_texts import Form
from iosig.warehouse.releases.releases import find
from iosig.warehouse.store.store import Store
from tests.flows import counted_sites, served_sites
from tests.flows.served_sites import FAULTS, served
from tests.nights import land_files, query_release, run_night

PAGE = Path(__file__).parents[2] / "docs" / "job-statistics.md"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks")]


def query(store: Store, text: str) -> pl.DataFrame:
    return query_release(store, find(store, None), text)


def night(store: Store) -> list[str]:
    done: list[str] = []
    run_night(store, report=lambda name, *_: done.append(name))
    return done


@pytest.mark.long
def test_daily_deltas_equal_moved_bytes_and_late_day_rebuilds_the_next(tmp_path: Path) -> None:
    site = counted_sites.counted()
    is_late = pl.col("scraped_at") < counted_sites.MIDNIGHT
    store = Store(tmp_path / "warehouse")
    own = counted_sites.Counted(site.samples.filter(~is_late), site.scrapes.filter(~is_late), site.moved)
    counted_sites.land(store, own)
    night(store)
    flags = query(store, "select flag, count(*) from counter_deltas where flag is not null group by flag")
    assert flags["flag"].to_list() == ["first_seen"]
    late = counted_sites.Counted(site.samples.filter(is_late), site.scrapes.filter(is_late), site.moved)
    counted_sites.land(store, late, "late.txt")
    assert {name for name in night(store) if name.startswith("counters")} == {
        "counters 2026-03-02",
        "counters 2026-03-03",
    }
    summed = query(store, "select job_key, sum(written_bytes)::bigint from counter_deltas group by all")
    assert dict(summed.rows()) == site.moved
    assert query(store, "from counter_deltas where flag is not null").is_empty()
    days = query(store, "select interval_s, target_count, gap_count from counters_daily")
    assert days.rows() == [(10.0, 2, 0)] * 2


@pytest.mark.long
def test_target_totals_serve_as_polls_unless_the_file_system_is_polled(tmp_path: Path) -> None:
    site = counted_sites.counted()
    # the total of a target, which does not change in every scrape
    names = pl.col("total_written_bytes")
    totals = site.samples.filter(pl.col("job_key") == "0").with_columns(
        job_key=pl.lit(None, pl.String), total_written_bytes=names
    )
    scrapes = site.scrapes.with_columns(is_job_scrape=pl.lit(False))
    store = Store(tmp_path / "warehouse")
    counted_sites.land(store, counted_sites.Counted(totals, scrapes, {}))
    night(store)
    days = query(store, "select controller_count, interval_s, poll_count, written_bytes from polls_daily order by all")
    assert [row[:2] for row in days.rows()] == [(2, 10.0), (2, 10.0)]
    assert sum(days["poll_count"]) == 2 * 720
    # a decrease of totals is a gap, and not traffic
    assert 0 < sum(days["written_bytes"]) <= site.moved["0"]
    polls = tmp_path / "polls.csv"
    lines = [f"2026-03-03T00:00:{second}Z,c0,work,1,1" for second in (10, 20, 30)]
    polls.write_text("\n".join(["polled_at,controller,filesystem,read_bytes_per_s,write_bytes_per_s", *lines, ""]))
    land_files(store, polls)
    night(store)
    days = query(store, "select polled_on::text, controller_count, poll_count from polls_daily order by all")
    assert days.rows()[1] == ("2026-03-03", 1, 3)


@pytest.mark.long
def test_metadata_operations_equal_server_counts(tmp_path: Path) -> None:
    site = counted_sites.counted()
    opens = pl.col("total_written_bytes")
    samples = site.samples.with_columns(
        component=pl.lit("mdt"),
        target=pl.col("target").str.replace("OST", "MDT"),
        total_open_count=opens,
        total_getattr_count=2 * opens,
        total_read_count=7 * opens,
        total_written_bytes=pl.lit(None, pl.Int64),
    )
    scrapes = site.scrapes.with_columns(component=pl.lit("mdt"), target=pl.col("target").str.replace("OST", "MDT"))
    store = Store(tmp_path / "warehouse")
    counted_sites.land(store, counted_sites.Counted(samples, scrapes, {}))
    jobs = dict.fromkeys(("0", "1", "2"), (0.0, counted_sites.LASTING_S))
    log = counted_sites.write_jobs(tmp_path / "jobs.sacct", jobs)
    land_files(store, log)
    night(store)
    text = """
        select job_id, server_operation, sum(metadata_operation_count)::bigint, count(distinct target)
        from metadata_io group by all order by all
    """
    assert query(store, text).rows() == [
        (key, operation, times * site.moved[key], 2)
        for key in jobs
        for operation, times in (("getattr", 2), ("open", 1))
    ]
    totals = [(key, 3 * site.moved[key]) for key in jobs]
    text = "select distinct job_id, metadata_operation_count from job_io_sources where source = 'jobstats' order by all"
    assert query(store, text).rows() == totals
    text = """
        select job_id, metadata_operation_count, round(list_sum(sample_operations_per_s) * interval_s)::bigint
        from metadata_rates order by all
    """
    assert query(store, text).rows() == [(key, count, count) for key, count in totals]
    unassigned = query(
        store, "select sum(open_count)::bigint, sum(getattr_count)::bigint from unattributed_counter_io"
    ).row(0)
    others = sum(moved for key, moved in site.moved.items() if key not in jobs)
    assert unassigned == (others, 2 * others)
    _, talkers = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    listed = query(store, talkers)
    # the last scrape is in a third hour
    assert listed.group_by("hour", "operation").len()["len"].to_list() == [3] * (3 * 2)


@pytest.mark.long
@pytest.mark.parametrize(("seed", "form", "interval_s", "faults"), [(3, "new", 60.0, {}), (5, "old", 10.0, FAULTS)])
def test_measured_operation_counts_equal_the_truth(
    tmp_path: Path, seed: int, form: Form, interval_s: float, faults: dict[str, Any]
) -> None:
    params = JobStatisticsParams(mdt_count=2, interval_s=interval_s, **faults)
    site = served(tmp_path, form, seed, 0.25, params)
    done = pl.sum_horizontal("open_count", "close_count").cast(pl.Int64)
    truth = site.statistics.moved.group_by("job_id").agg(done_count=done.sum())
    found = site.exact_io.join(truth, on="job_id", how="left").with_columns(pl.col("done_count").fill_null(0))
    assert (found["metadata_operation_count"] <= found["done_count"]).all()
    measured = found.filter(outcome="measured")
    assert measured.height >= (3 if faults else found.height)
    assert measured["metadata_operation_count"].to_list() == measured["done_count"].to_list()
    assert measured["done_count"].sum() > 0


def test_night_attributes_counted_bytes_exactly(tmp_path: Path) -> None:
    params = JobStatisticsParams(interval_s=60.0, ost_count=2)
    store, site, statistics = served_sites.landed(tmp_path, "new", 3, 0.06, params, application_count=1)
    night(store)
    text = "select job_id, direction, own_bytes::bigint from job_io where estimate_source = 'counted' and own_bytes > 0"
    found = {(job_id, direction): moved for job_id, direction, moved in query(store, text).rows()}
    ended = site.jobs.filter(pl.col("ended_at").is_not_null())["job_id"].implode()
    moved = statistics.moved.filter(pl.col("job_id").is_in(ended)).group_by("job_id").agg(
        read=pl.col("read_bytes").sum(), write=pl.col("written_bytes").sum()
    )  # fmt: skip
    truth = moved.unpivot(["read", "write"], index="job_id").filter(pl.col("value") > 0)
    assert len(found) > 1
    assert found == {(job_id, direction): value for job_id, direction, value in truth.rows()}
    # every run with exact bytes is compared with its sample of shared traffic, which is larger
    checks = query(store, "select min(overestimation_factor), count(*) from sample_checks where exact_bytes > 0").row(0)
    assert checks[0] > 1
    assert checks[1] == len(found)
    kinds = query(
        store, "select key_kind, sum(read_bytes + written_bytes)::bigint from unattributed_counter_io group by all"
    )
    nobody = statistics.moved.filter(pl.col("job_id").is_null(), ~pl.col("is_lost"))
    by_hand = nobody.filter(pl.col("job_key") != "").select(pl.col("read_bytes", "written_bytes").sum()).row(0)
    assert dict(kinds.rows())["process"] == sum(by_hand)
