"""Job statistics as texts: the readers recover the counted values from every format."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.transforms.synthetic.job_statistics import REQUEST_BYTES, JobStatistics, JobStatisticsParams, count_jobs
from iosig.transforms.synthetic.job_statistics_texts import FORMS, Form, format_lctl
from iosig.transforms.synthetic.site import SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.sources.counters import jobstats, prometheus
from iosig.warehouse.sources.protocol import HEAD_BYTES, Head, Reading

ENTRY = ["scraped_at", "target", "job_key"]
_VALUES = {
    "read_bytes": "total_read_bytes",
    "written_bytes": "total_written_bytes",
    "open_count": "total_open_count",
    "close_count": "total_close_count",
}


@pytest.fixture(scope="module")
def statistics() -> JobStatistics:
    began = datetime(2026, 3, 1, 23, tzinfo=UTC)
    few = [replace(one, run_count=2) for one in APPLICATIONS[:3]]
    site = simulate(SiteParams(seed=3, days=0.08, start=began, controller_count=2, foreign_level=0.5), few)
    params = JobStatisticsParams(ost_count=3, job_key="SLURM_JOB%j:0:node7", restarts_per_day=40, lost_ratio=0.1)
    return count_jobs(site, replace(params, interval_s=120))


def parse_naively(text: str) -> list[dict[str, Any]]:
    """Read a text line by line."""
    rows: list[dict[str, Any]] = []
    for line in text.splitlines():
        if re.fullmatch(r"\d{10}", line):
            at = int(line)
        elif found := re.fullmatch(r"(?:obdfilter|mdt)\.(.*)\.job_stats=", line):
            target = found[1]
        elif found := re.fullmatch(r'- job_id:(?: +"?([^"]*)"?)?', line):
            rows.append({"at": at, "target": target, "job_key": found[1] or ""})
        elif found := re.search(r"^  ((?:read|write)_bytes|open|close): .*samples: +(\d+).*?(?:sum: +(\d+)|\})", line):
            rows[-1][found[1]] = int(found[3] if "bytes" in found[1] else found[2])
            rows[-1][f"{found[1]} samples"] = int(found[2])
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_texts_contain_the_counts_of_every_entry(statistics: JobStatistics, form: Form) -> None:
    texts = list(format_lctl(statistics, form))
    assert [(told.server, str(told.day)) for told in texts] == [
        (server, day) for server in ("mds01", "oss01", "oss02") for day in ("2026-03-01", "2026-03-02")
    ]
    told = pl.DataFrame(
        [row for one in texts for row in parse_naively(one.text)], infer_schema_length=None
    ).with_columns(pl.from_epoch("at").dt.replace_time_zone("UTC").cast(pl.Datetime("us", "UTC")).alias("scraped_at"))
    both = statistics.readings.join(told, on=ENTRY, how="full", suffix="_told")
    assert both.height == statistics.readings.height == told.height > 200
    ost = both.filter(component="ost")
    for name, column in (("read_bytes", "read_bytes_told"), ("written_bytes", "write_bytes")):
        assert ost[name].equals(ost[column])
        samples = ost[f"{column.removesuffix('_told')} samples"]
        assert samples.equals(-(-ost[name] // REQUEST_BYTES))
    mdt = both.filter(component="mdt")
    assert mdt["open_count"].equals(mdt["open"])
    assert mdt["close_count"].equals(mdt["close"])


def test_text_forms_differ_as_in_releases_of_lustre(statistics: JobStatistics) -> None:
    old, middle, new = (next(iter(format_lctl(statistics, form))).text for form in FORMS)
    assert "unit:  reqs }" in old
    assert "sumsq" not in old
    for text in (middle, new):
        assert "unit: usecs" in text
        assert "sumsq" in text
    assert re.search(r"  snapshot_time:   \d{10}\n", middle)
    assert re.search(r"  snapshot_time:   \d{10}\.\d{9} secs.nsecs\n  start_time:", new)
    assert '"SLURM_JOB' in old


@pytest.mark.parametrize("form", FORMS)
def test_reader_restores_every_change(statistics: JobStatistics, form: Form, tmp_path: Path) -> None:
    assert_all_changes(
        statistics, [told.text for told in format_lctl(statistics, form)], jobstats, tmp_path, has_all=True
    )


def prometheus_text(readings: pl.DataFrame) -> str:
    """Return entries as lustre_exporter prints them, each value with its time, as in federated metrics."""
    labels = pl.format('component="{}",jobid="{}",target="{}"', "component", "job_key", "target")
    at_ms = pl.col("scraped_at").dt.epoch("ms")
    data = [
        pl.format(f"lustre_job_{name}_total{{{{{{}}}}}} {{}} {{}}\n", labels, value, at_ms)
        for way, column in (("read", pl.col("read_bytes")), ("write", pl.col("written_bytes")))
        for name, value in ((f"{way}_bytes", column), (f"{way}_samples", -(-column // REQUEST_BYTES)))
    ]
    operation = 'lustre_job_stats_total{{{},operation="{}"}} {} {}\n'
    files = [pl.format(operation, labels, pl.lit(name), f"{name}_count", at_ms) for name in ("open", "close")]
    text = pl.when(pl.col("component") == "ost").then(pl.concat_str(data)).otherwise(pl.concat_str(files))
    return "".join(readings.select(text).to_series())


def test_prometheus_metrics_contain_all_changes(statistics: JobStatistics, tmp_path: Path) -> None:
    assert_all_changes(statistics, [prometheus_text(statistics.readings)], prometheus, tmp_path, has_all=False)


def assert_all_changes(
    statistics: JobStatistics, texts: list[str], source: Any, folder: Path, *, has_all: bool
) -> None:  # fmt: skip
    batches = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_text(text)
        assert source.SOURCE.sniff(Head(path.name, path.read_bytes()[:HEAD_BYTES]))
        batches += list(source.read(path, Reading()))
    assert {batch.table.name for batch in batches} == {COUNTER_SAMPLES.name, SCRAPES.name}
    read = pl.concat([batch.rows for batch in batches if batch.table is COUNTER_SAMPLES])
    scrapes = pl.concat([batch.rows for batch in batches if batch.table is SCRAPES])
    if has_all:
        assert scrapes.height == statistics.scrapes.height
        assert scrapes["entry_count"].sum() == statistics.readings.height
    # An entry without a row at a scrape has the values of its previous row.
    told = statistics.readings.sort(ENTRY).join_asof(
        read.sort("scraped_at"), on="scraped_at", by=ENTRY[1:], suffix="_told", check_sortedness=False
    )
    for name, column in _VALUES.items():
        assert told[name].equals(told[column].fill_null(0)), name
