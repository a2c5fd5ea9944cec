"""The counter step computes daily deltas of server counters, in batches of any size."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.flows.executors import Engine
from iosig.flows.nightly import begin_run, build
from iosig.flows.steps import counters
from iosig.flows.steps.plan import make_plan
from iosig.settings.model import Settings
from iosig.warehouse.contracts.counters import (
    COUNTER_DELTAS,
    COUNTER_GAPS,
    COUNTER_JOB_TOTALS,
    COUNTER_LAST_VALUES,
    COUNTERS_DAILY,
)
from iosig.warehouse.contracts.types import Table
from iosig.warehouse.store.store import Store
from tests.flows import counted_sites
from tests.flows.counted_sites import Counted

pytestmark = pytest.mark.usefixtures("quick_checks")
TABLES = (COUNTER_LAST_VALUES, COUNTER_DELTAS, COUNTER_GAPS, COUNTERS_DAILY, COUNTER_JOB_TOTALS)


def staged(root: Path, site: Counted) -> dict[Table, pl.DataFrame]:
    """Land the counters of a site, run the step, and return the tables it built."""
    store = Store(root)
    counted_sites.land(store, site)
    run = begin_run(store, Settings(), make_plan(store, Settings()))
    list(build(run, Engine(), steps=[counters.ENDS, counters.RISES]))
    days = [counted_sites.START.date(), counted_sites.MIDNIGHT.date()]
    return {table: pl.concat(pl.read_parquet(run.path(table, day)) for day in days) for table in TABLES}


@pytest.fixture(scope="module")
def site() -> Counted:
    return counted_sites.counted(seed=2, target_count=3)


@pytest.mark.slow
def test_job_totals_equal_moved_bytes_and_days_count_their_scrapes(site: Counted, tmp_path: Path) -> None:
    found = staged(tmp_path, site)
    summed = found[COUNTER_JOB_TOTALS].group_by("job_key").agg(pl.col("written_bytes").sum())
    assert dict(summed.rows()) == site.moved
    assert found[COUNTER_JOB_TOTALS]["key_kind"].unique().to_list() == ["job"]
    days = found[COUNTERS_DAILY]
    assert days.select("interval_s", "grid_phase_s", "target_count", "gap_count").rows() == [(10.0, 0.0, 3, 0)] * 2
    assert days["written_bytes"].sum() == sum(site.moved.values())
    assert days["scrape_count"].sum() == site.scrapes.height
    assert days["missing_ratio"].to_list() == [0.0, 0.0], "the data begin and end within these days"
    assert days["expected_scrape_count"].max() < 3 * 8640
    assert found[COUNTER_LAST_VALUES].select("target", "job_key", "scraped_on").is_unique().all()


@pytest.mark.long
def test_batch_size_does_not_change_results(site: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = staged(tmp_path / "all", site)
    monkeypatch.setattr(counters, "_BATCH_READINGS", 1)
    one_by_one = staged(tmp_path / "one", site)
    for table in TABLES:
        names = list(table.key)
        assert_frame_equal(at_once[table].sort(names), one_by_one[table].sort(names))


def test_target_without_entries_that_stops_being_scraped_is_a_gap(site: Counted, tmp_path: Path) -> None:
    begun, ended = counted_sites.START + timedelta(minutes=10), counted_sites.START + timedelta(minutes=20)
    own = site.scrapes.filter(target=site.scrapes["target"][0]).with_columns(
        target=pl.lit("work-OST00ff"), entry_count=pl.lit(0, pl.Int64)
    )
    more = own.filter(pl.col("scraped_at").is_between(begun, ended))
    found = staged(tmp_path, Counted(site.samples, pl.concat([site.scrapes, more]), site.moved))[COUNTER_GAPS]
    last = site.scrapes.filter(pl.col("scraped_at") < counted_sites.MIDNIGHT)["scraped_at"].max()
    assert found.select("target", "interval_started_at", "interval_ended_at", "flag").rows() == [
        ("work-OST00ff", ended, last, "lost_scrapes")
    ]  # fmt: skip


@pytest.mark.slow
def test_entries_lost_overnight_are_flagged_on_targets_without_entries(site: Counted, tmp_path: Path) -> None:
    is_before = pl.col("scraped_at") < counted_sites.MIDNIGHT
    scrapes = site.scrapes.with_columns(entry_count=pl.when(is_before).then("entry_count").otherwise(0))
    found = staged(tmp_path, Counted(site.samples.filter(is_before), scrapes, site.moved))
    gaps = found[COUNTER_GAPS].filter(flag="restarted")
    assert gaps["interval_ended_at"].unique().to_list() == [counted_sites.MIDNIGHT]
    assert gaps["target"].n_unique() == 3
