from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import prometheus
from iosig.warehouse.sources.counters.prometheus import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.budget import one_in
from tests.naive.sources.counters import prometheus as naive
from tests.warehouse.sources.batch_reading import COUNTS, read_counters

T = 1723114647


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def metric(name: str, value: object, stamp: str = "", **labels: str) -> str:
    told = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{told}}} {value}{stamp}\n"


def snapshot(*written: int, stamp: str = "", target: str = "fs1-OST0001") -> str:
    """Return an exporter's response: a job for each value, with the bytes that it wrote."""
    text = "# HELP lustre_job_write_bytes_total Bytes.\n# TYPE lustre_job_write_bytes_total counter\n"
    labels = {"component": "ost", "target": target}
    for job, value in enumerate(written):
        text += metric("lustre_job_write_bytes_total", value, stamp, jobid=f"j{job}", **labels)
    text += "# TYPE lustre_job_stats_total counter\n# TYPE lustre_up gauge\nlustre_up 1\n"
    for job, value in enumerate(written):
        text += metric("lustre_job_stats_total", value // 4096, stamp, jobid=f"j{job}", operation="punch", **labels)
    return text


def read_text(
    folder: Path, text: str, name: str = "oss1.prom", reading: Reading | None = None
) -> tuple[pl.DataFrame, ...]:
    path = folder / name
    path.write_text(text)
    os.utime(path, (T + 99, T + 99))
    assert recognize(read_head(path)) == SOURCE
    return read_counters(SOURCE, path, reading)


@pytest.mark.parametrize("name", ["lustrefs-exporter-jobstats.prom", "lustrefs-exporter-metrics.prom"])
def test_real_metrics_match_totals_of_independent_count(shared_data: Path, name: str) -> None:
    path = shared_data / "prometheus" / name
    assert recognize(read_head(path)) == SOURCE
    rows, scrapes, refused = read_counters(SOURCE, path)
    assert refused.is_empty()
    expected = naive.counters(path.read_text())
    assert len(expected) == rows.height == scrapes["entry_count"].sum() > 11
    for row in rows.to_dicts():
        own = expected[(row["component"], row["target"], row["job_key"])]
        assert {column: row[column] for column in COUNTS} == {column: own.get(column) for column in COUNTS}


def test_metrics_of_job_are_merged_into_row(tmp_path: Path) -> None:
    rows, scrapes, refused = read_text(tmp_path, f"# {T}\n" + snapshot(4096, 8192))
    assert refused.is_empty()
    names = ["filesystem", "component", "target", "job_key", "collector", "total_written_bytes", "total_punch_count"]
    assert rows.select(names).rows() == [
        ("fs1", "ost", "fs1-OST0001", "j0", None, 4096, 1),
        ("fs1", "ost", "fs1-OST0001", "j1", None, 8192, 2),
    ]
    assert rows["sampled_at"].to_list() == rows["scraped_at"].to_list() == [at(0), at(0)]
    assert scrapes.select("scraped_at", "entry_count", "is_job_scrape").rows() == [(at(0), 2, True)]


def test_known_extra_labels_are_used_and_others_ignored(tmp_path: Path) -> None:
    """lustre_exporter_slurm (its README) and Prometheus' federation add such labels."""
    slurm = {
        "component": "ost",
        "jobid": "18526388",
        "target": "lustre04-OST0007",
        "fs": "l4",
        "user": "u",
        "account": "a",
    }
    text = metric("lustre_job_read_bytes_total", 12, **slurm)
    text += metric("lustre_read_bytes_total", "1.1025514496e+10", target="lustre04-OST0007", instance="oss2:9169")
    text += metric("lustre_stats_total", 3, target="lustre04-MDT0000", operation="mkdir")
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    names = ["filesystem", "component", "job_key", "collector", "total_read_bytes", "total_mkdir_count"]
    assert rows.select(names).rows() == [
        ("l4", "ost", "18526388", None, 12, None),
        ("lustre04", "ost", None, "oss2:9169", 11025514496, None),
        ("lustre04", "mdt", None, None, None, 3),
    ]  # fmt: skip


def daos(second: int, fetched: int, pid: str = "11", job: str = "42") -> str:
    """Return metrics of a client; names and labels follow DAOS' documentation of client telemetry."""
    labels = {"jobid": job, "pid": pid, "pool": "pool1"}
    return (
        metric("client_pool_xferred_fetch", fetched, f" {T + second}000", **labels)
        + metric("client_pool_xferred_update", 2 * fetched, f" {T + second}000", **labels)
        + metric("client_pool_ops_fetch", fetched // 8, f" {T + second}000", **labels)
        + metric("client_pool_ops_akey_enum", 7, f" {T + second}000", **labels)
        + metric("client_started_at", "1.7e+09", f" {T + second}000", jobid=job, pid=pid)
    )


def test_processes_of_daos_clients_are_targets(tmp_path: Path) -> None:
    text = "".join(daos(second, 8 * second) + daos(second, 80, pid="12") for second in (0, 10))
    rows, scrapes, refused = read_text(tmp_path, text, "cn7.prom")
    assert refused.is_empty()
    names = ["scraped_at", "filesystem", "component", "target", "job_key", "total_read_bytes", "total_written_bytes"]
    assert rows.sort("scraped_at", "target").select(*names, "total_read_count").rows() == [
        (at(0), "pool1", "client", "cn7:11", "42", 0, 0, 0),
        (at(0), "pool1", "client", "cn7:12", "42", 80, 160, 10),
        (at(10), "pool1", "client", "cn7:11", "42", 80, 160, 10),
    ]
    assert scrapes["is_job_scrape"].to_list() == [True] * 4


def test_gpfs_counters_belong_to_clients(tmp_path: Path) -> None:
    """The metrics follow gpfs_exporter's test (collectors/mmpmon_test.go)."""
    text = "".join(
        [
            metric("gpfs_perf_info", 1, fs="scratch", nodename="rw02"),
            metric("gpfs_perf_read_bytes_total", "2.05607400434e+11", fs="scratch"),
            metric("gpfs_perf_operations_total", 40971, fs="scratch", operation="read_dir"),
            metric("gpfs_perf_operations_total", 544768, fs="scratch", operation="inode_updates"),
            metric("gpfs_perf_operations_total", 2377656, fs="scratch", operation="opens"),
        ]
    )
    for named, target in ((text, "rw02"), (text.partition("\n")[2], "rw07")):
        rows, _, refused = read_text(tmp_path, named, "rw07-1723114647.prom")
        assert refused.is_empty()
        (row,) = rows.to_dicts()
        assert (row["filesystem"], row["component"], row["target"], row["job_key"]) == (
            "scratch",
            "client",
            target,
            None,
        )
        assert (row["total_read_bytes"], row["total_readdir_count"]) == (205607400434, 40971)
        assert (row["total_other_count"], row["total_open_count"], row["scraped_at"]) == (544768, 2377656, at(0))


def test_custom_metrics_are_mapped_by_settings(tmp_path: Path) -> None:
    text = "# TYPE site_wr counter\n" + metric("site_wr", 5, ost="w-OST0001", slurm="77")
    with pytest.raises(InputRefused, match="no metric that counts"):
        read_text(tmp_path, text)
    own = Reading(columns={"total_written_bytes": "site_wr", "target": "ost", "job_key": "slurm"})
    rows, _, _ = read_text(tmp_path, text, reading=own)
    assert rows.select("component", "target", "job_key", "total_written_bytes").rows() == [
        ("ost", "w-OST0001", "77", 5)
    ]


# ---- time of reading


@pytest.mark.parametrize(
    ("text", "name", "second"),
    [
        (snapshot(1, stamp=f" {T}250"), f"x-{T + 5}.prom", 0.25),
        (snapshot(1, stamp=f" {T}.25"), "x.prom", 0.25),
        (f"{T + 3}\n" + snapshot(1), f"x-{T + 5}.prom", 3),
        ("# 2024-08-08T10:57:30Z\n" + snapshot(1), "x.prom", 3),
        (snapshot(1), f"x-{T + 5}.prom", 5),
        (snapshot(1), "x.prom", 99),
    ],
)
def test_time_of_reading_is_taken_from_closest_source(tmp_path: Path, text: str, name: str, second: float) -> None:
    rows, scrapes, refused = read_text(tmp_path, text, name)
    assert refused.is_empty()
    assert rows["scraped_at"].to_list() == scrapes["scraped_at"].to_list() == [at(second)]


def test_only_changed_metrics_have_rows(tmp_path: Path) -> None:
    parts = [(0, (4096, 0)), (10, (4096, 0)), (20, (4096, 8192)), (30, (4096,)), (40, (4096, 8192))]
    text = "".join(f"{T + second}\n" + snapshot(*written) for second, written in parts)
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert scrapes["entry_count"].to_list() == [2, 2, 2, 1, 2]
    assert rows.select("job_key", "scraped_at").rows() == [
        ("j0", at(0)), ("j1", at(0)), ("j1", at(20)), ("j1", at(40))
    ]  # fmt: skip
    rows, scrapes, refused = read_text(tmp_path, snapshot(1) + text)
    assert refused["reason"].to_list() == ["The time of the reading is unknown."]
    assert (rows.height, scrapes.height) == (4, 5)


def test_ambiguous_snapshots_are_read_separately(tmp_path: Path) -> None:
    """Snapshots of two nodes alternate, each named by another metric; then a time occurs twice."""
    text = "".join(
        f"{T + second}\n"
        + metric("gpfs_perf_info", 1, fs="scratch", nodename=f"n{second % 20}")
        + metric("gpfs_perf_read_bytes_total", 100 + second, fs="scratch")
        for second in (0, 10, 20, 30)
    )
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.select("target", "total_read_bytes").rows() == [("n0", 100), ("n10", 110), ("n0", 120), ("n10", 130)]
    again = f"{T}\n" + snapshot(4096) + f"{T}\n" + snapshot(8192) + f"{T + 10}\n" + snapshot(8192)
    rows, _, refused = read_text(tmp_path, again)
    assert refused.is_empty()
    assert rows.select("scraped_at", "total_written_bytes").rows()[:2] == [(at(0), 4096), (at(0), 8192)]


def of_gpfs(second: int, dice: random.Random) -> str:
    """Return metrics of two file systems, with the node in another metric, sometimes, or in a label."""
    parts = [f"{T + second}\n"]
    for filesystem in ("scratch", "home"):
        if dice.random() < 0.8:
            parts.append(metric("gpfs_perf_info", 1, fs=filesystem, nodename=f"n{dice.randrange(3)}"))
        own = {"instance": "n9"} if dice.random() < 0.2 else {}
        values = {"read_bytes_total": dice.randrange(4), "write_bytes_total": dice.choice((7, 8))}
        parts += [metric(f"gpfs_perf_{name}", value, fs=filesystem, **own) for name, value in values.items()]
        parts.append(metric("gpfs_perf_operations_total", dice.randrange(3), fs=filesystem, operation="opens"))
    bad = metric("gpfs_perf_read_bytes_total", "x", fs="home", other="1")
    return "".join([*parts[:1], *dice.sample(parts[1:], len(parts) - 1), bad])


@pytest.mark.parametrize("seed", one_in(4, range(12)))
def test_batched_snapshots_equal_snapshots_read_separately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    text = "".join(of_gpfs(second, dice) for second in range(0, 300, 10))
    together = read_text(tmp_path, text, "rw07-metrics.prom")
    monkeypatch.setattr(prometheus._Text, "_rows", _one_by_one)
    for found, expected in zip(together, read_text(tmp_path, text, "rw07-metrics.prom"), strict=True):
        assert found.equals(expected)
    assert together[0]["target"].n_unique() == 5


def _one_by_one(self: Any, told: Any, *, is_only: bool) -> Iterator[tuple[pl.DataFrame, list[pl.DataFrame]]]:
    """Read each snapshot separately."""
    for (number,), own in told.values.partition_by("snapshot", maintain_order=True, as_dict=True).items():
        yield self._rows_of_one(told._replace(values=own).rows(), self._time_us(number, is_only=is_only))


def test_label_on_single_line_of_snapshot_is_refused(tmp_path: Path) -> None:
    odd = metric("lustre_job_write_bytes_total", 5, component="ost", target="a", jobid="j", rack="r1")
    both = odd + odd.replace('jobid="j"', 'jobid="k"')
    text = "".join(f"{T + second}\n" + snapshot(*range(10, 20)) + more for second, more in ((0, odd), (10, both)))
    rows, _, refused = read_text(tmp_path, text)
    assert refused["reason"].to_list() == ["No other line has the label `rack`."]
    assert rows.filter(pl.col("job_key").is_in(["j", "k"])).select("scraped_at", "job_key").rows() == [
        (at(10), "j"), (at(10), "k")
    ]  # fmt: skip


# ---- damaged input


def test_duplicate_labels_with_different_values_are_refused(tmp_path: Path) -> None:
    text = snapshot(4096, 8192)
    doubled = text + text.splitlines()[2] + "\n"
    assert read_text(tmp_path, doubled)[0].height == 2
    rows, _, refused = read_text(tmp_path, text + text.splitlines()[2].replace("4096", "4097") + "\n")
    assert rows["job_key"].to_list() == ["j1"]
    assert "occurs twice" in refused["reason"][0]
