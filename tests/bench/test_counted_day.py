"""The made-up day of job statistics is what a reader of them finds."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from bench import counted_day
from iosig.warehouse.sources.counters.jobstats import SOURCE
from tests.warehouse.sources.counter_reading import read_counters


def test_an_hours_text_says_what_jobs_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_OSTS", 6), ("_MDTS", 2), ("_DATA_SERVERS", 2), ("_JOBS_AT_A_TIME", 5)):
        monkeypatch.setattr(counted_day, name, value)
    site = counted_day.Site(there=[{} for _ in range(8)])
    texts, log = tmp_path / "texts", tmp_path / "jobs.sacct"
    texts.mkdir()
    assert site.hour(texts) == sum(path.stat().st_size for path in texts.iterdir())
    found = [read_counters(SOURCE, path) for path in sorted(texts.iterdir())]
    assert len(found) == 4
    assert sum(refused.height for *_, refused in found) == 0
    assert sum(int(scrapes["entry_count"].sum()) for _, scrapes, _ in found) == site.entry_count
    rows = pl.concat([rows for rows, *_ in found])
    # most say what they said before
    assert rows.height < site.entry_count / 3
    last = rows.filter(component="ost").sort("scraped_at").group_by("target", "job_key").last()
    assert last.select((pl.col("total_read_bytes") + pl.col("total_written_bytes")).sum()).item() == site.moved_bytes
    assert site.write_log(log) == len(log.read_text().splitlines()) - 1 >= 5
