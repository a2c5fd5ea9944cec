"""Test the source of LDMS' lustre2_client; the header follows store_csv.c and lustre2_client's metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.sources.counters.ldms_lustre2 import SOURCE
from iosig.warehouse.sources.protocol import Reading
from tests.warehouse.sources.batch_reading import read_counters, read_written

T = 1723117000
HEADER = (
    "#Time,Time_usec,ProducerName,component_id,job_id,app_id,client.dirty_pages_hits#llite.lake,"
    "client.read_bytes#llite.lake,client.write_bytes#llite.lake,client.open#llite.lake,client.read_bytes#llite.home\n"
)
BYTES = ["total_read_bytes", "total_written_bytes"]


def line(second: int, job: str, read: int, written: int = 0, node: str = "n1", home: int = 0) -> str:
    return f"{T + second}.001000,1000,{node},1,{job},0,7,{read},{written},3,{home}\n"


def read_text(folder: Path, text: str, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "lustre2_client", text, reading)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(T + second + 0.001, UTC)


def shares(rows: pl.DataFrame, mount: str = "lake") -> list[tuple[object, ...]]:
    jobs = rows.filter(pl.col("job_key").is_not_null(), filesystem=mount)
    return jobs.select("scraped_at", "target", "job_key", *BYTES).rows()


def test_published_case_has_the_bytes_of_job_42(shared_data: Path) -> None:
    path = shared_data / "cases" / "ldms-lustre2-client" / "lustre2_client.1723117000"
    rows, scrapes, refused = read_counters(SOURCE, path)
    assert refused.is_empty()
    jobs = rows.filter(job_key="42").sort("scraped_at")
    assert jobs.select(pl.col(*BYTES).last() - pl.col(*BYTES).first()).rows() == [(4096, 8192)]
    assert set(jobs.select("filesystem", "component", "target").rows()) == {("scratch", "client", "n1:scratch")}
    assert (
        scrapes.select("is_job_scrape", "entry_count").sort("is_job_scrape").rows()
        == [(False, 1)] * 2 + [(True, 1)] * 2
    )


def test_each_mount_counts_in_total(tmp_path: Path) -> None:
    rows, _, refused = read_text(tmp_path, HEADER + line(0, "0", 5, 6, home=7) + line(10, "0", 5, 9, home=7))
    assert refused.is_empty()
    names = ["scraped_at", "filesystem", "target", "job_key", *BYTES, "total_open_count", "total_other_count"]
    assert rows.select(names).rows() == [
        (at(0), "lake", "n1:lake", None, 5, 6, 3, None),
        (at(0), "home", "n1:home", None, 7, None, None, None),
        (at(10), "lake", "n1:lake", None, 5, 9, 3, None),
    ]


def test_rise_belongs_to_the_job_that_both_readings_name(tmp_path: Path) -> None:
    steps = [("42", 100), ("42", 150), ("43", 170), ("43", 180), ("0", 200), ("44", 230), ("44", 20), ("44", 25)]
    text = HEADER + "".join(line(10 * n, job, read) for n, (job, read) in enumerate(steps))
    rows, scrapes, _ = read_text(tmp_path, text)
    assert [row[2:4] for row in shares(rows)] == [
        ("42", 0),
        ("42", 50),
        # the rise of 20 is of 42 or 43
        ("43", 0),
        ("43", 10),
        # no other job used the node before
        ("44", 30),
        # the counter restarted
        ("44", 50),
        ("44", 55),
    ]
    by_time = scrapes.filter(is_job_scrape=True, filesystem="lake").sort("scraped_at")
    assert by_time["entry_count"].to_list() == [1, 1, 1, 1, 0, 1, 1, 1]


def test_nodes_have_their_own_shares_in_any_block_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + "".join(
        line(10 * n, "7", n * step, 0, node) for n in range(4) for node, step in (("n1", 5), ("n2", 9))
    )
    whole = read_text(tmp_path, text)[0].sort("scraped_at", "target", "job_key")
    expected = [
        (at(10 * n), f"{node}:lake", "7", n * step, 0) for n in range(4) for node, step in (("n1", 5), ("n2", 9))
    ]
    assert shares(whole) == expected
    monkeypatch.setattr("iosig.warehouse.sources.counters.ldms_lustre2.BLOCK_BYTES", 3)
    assert read_text(tmp_path, text)[0].sort("scraped_at", "target", "job_key").equals(whole)


def test_older_names_and_the_user_file_system_are_accepted(tmp_path: Path) -> None:
    header = HEADER.replace("client.", "client.lstats.").replace(",job_id", ",job")
    rows, _, _ = read_text(tmp_path, header + line(0, "1", 5, 6), Reading(filesystem="mine"))
    assert rows.select("filesystem", "target", "job_key", *BYTES).rows() == [
        ("mine", "n1:lake", None, 5, 6),
        ("mine", "n1:home", None, 0, None),
    ]


def test_damaged_rows_are_refused_alone(tmp_path: Path) -> None:
    bad = [
        line(10, "1", 5).replace("n1,", ","),
        line(20, "1", -5),
        line(30, "1", 5)[:30] + "\n",
        "x" + line(40, "1", 5),
    ]
    rows, _, refused = read_text(tmp_path, HEADER + line(0, "1", 5) + "".join(bad) + line(50, "1", 8))
    assert shares(rows) == [(at(0), "n1:lake", "1", 0, 0), (at(50), "n1:lake", "1", 3, 0)]
    assert refused["line"].to_list() == [3, 4, 5, 6]
    assert refused["remedy"].null_count() == 0
