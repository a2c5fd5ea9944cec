"""Test the source of TACC Stats' raw files; texts follow its monitor's sources and HPCPerfStats' tests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import tacc_stats
from iosig.warehouse.sources.counters.tacc_stats import SOURCE
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.rows.field_use import record_fields
from tests.warehouse.sources.batch_reading import read_written

T = 1772366400
LLITE = "!lustre_llite open,E close,E mmap,E read_bytes,E write_bytes,E"
HEADER = (
    "$tacc_stats 2.3.5\n$hostname cn1.example.org\n$uname Linux x86_64 5.14.0\n$uptime 1\n"
    "!host_block rd_sectors,E,U=512B wr_sectors,E,U=512B\n!nvidia_gpu gpu_util,E gpu_mem_util,E,R=S\n"
    f"{LLITE}\n"
)
BYTES = ["total_read_bytes", "total_written_bytes"]


def reading(second: float, job: str, read: int, written: int = 0, host: str = " cn1.example.org", home: int = 0) -> str:
    return (
        f"{T + second:.6f} {job}{host}\nhost_block sda 100000 90000\nnvidia_gpu 0 @fast 55.0 62.0\n"
        f"lustre_llite scratch 500 510 520 {read} {written}\nlustre_llite home 1 1 1 {home} 0\n"
    )


def read_text(folder: Path, text: str, options: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / f"{T}", text, options)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def shares(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    jobs = rows.filter(pl.col("job_key").is_not_null(), filesystem="scratch").sort("scraped_at")
    return jobs.select("scraped_at", "target", "job_key", *BYTES).rows()


@pytest.mark.parametrize("block_bytes", [1, 16 << 20])
def test_share_of_each_job_is_the_rise_while_it_is_named(
    tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tacc_stats, "BLOCK_BYTES", block_bytes)
    steps = [("-", 100, 0), ("42", 100, 5), ("42", 4196, 9), ("43", 5000, 9), ("43", 5001, 10)]
    rows, scrapes, refused = read_text(
        tmp_path, HEADER + "".join(reading(10 * n, *step) for n, step in enumerate(steps))
    )
    assert refused.is_empty()
    # the rise from one job to the next belongs to neither
    assert shares(rows) == [
        (at(10), "cn1:scratch", "42", 0, 5),
        (at(20), "cn1:scratch", "42", 4096, 9),
        (at(30), "cn1:scratch", "43", 0, 0),
        (at(40), "cn1:scratch", "43", 1, 1),
    ]
    totals = rows.filter(pl.col("job_key").is_null(), filesystem="scratch").sort("scraped_at")
    assert totals.select(*BYTES, "total_open_count", "total_other_count").rows()[-1] == (5001, 10, 500, None)
    assert scrapes.filter(~pl.col("is_job_scrape"), filesystem="home")["scraped_at"].to_list() == [
        at(10 * n) for n in range(5)
    ]


def test_old_form_without_host_and_fraction_is_read(tmp_path: Path) -> None:
    header = HEADER.replace("lustre_llite", "llite").replace("read_bytes,E", "read_bytes,E,U=B")
    body = "".join(
        f"\n{T + second} 42\n%begin 42\nllite /scratch-ffff88103a5b9000 1 1 1 {second} 0 \n" for second in (0, 10)
    )
    rows, _, refused = read_text(tmp_path, header + body)
    assert refused.is_empty()
    assert shares(rows) == [(at(0), "cn1:scratch", "42", 0, 0), (at(10), "cn1:scratch", "42", 10, 0)]


def test_schema_may_change_within_a_file(tmp_path: Path) -> None:
    other = HEADER.replace("open,E close,E", "close,E fsync,E open,E")
    later = f"{T + 10}.0 42 cn1\nlustre_llite scratch 1 2 3 4 50 60\n"
    rows, _, refused = read_text(tmp_path, HEADER + reading(0, "42", 5) + other + later)
    assert refused.is_empty()
    last = rows.filter(pl.col("job_key").is_null(), filesystem="scratch").sort("scraped_at").tail(1)
    assert last.select(*BYTES, "total_open_count", "total_close_count", "total_sync_count").rows() == [
        (50, 60, 3, 1, 2)
    ]


@pytest.mark.parametrize(
    ("old", "new", "lines", "reason"),
    [
        ("520 4096 0", "520 4096", [16], "4 values; its schema has 5"),
        ("520 4096 0", "520 40x6 0", [16], "not a non-negative integer"),
        ("520 4096 0", "520 -4096 0", [16], "not a non-negative integer"),
        ("520 4096 0", "520 4096\x00 0", [16], "not in TACC"),
        (f"{T + 10}.000000 42", f"{T + 10}x000000 42", [13, 16, 17], "not in TACC|No time precedes"),
    ],
)
def test_damaged_line_is_refused_alone(tmp_path: Path, old: str, new: str, lines: list[int], reason: str) -> None:
    text = HEADER + "".join(reading(second, "42", 4096 * second // 10) for second in (0, 10, 20))
    assert old in text
    rows, _, refused = read_text(tmp_path, text.replace(old, new, 1))
    assert shares(rows)[-1] == (at(20), "cn1:scratch", "42", 8192, 0)
    assert refused["line"].to_list() == lines
    assert all(any(word in each for word in reason.split("|")) for each in refused["reason"])


def test_truncated_last_line_is_refused(tmp_path: Path) -> None:
    text = HEADER + reading(0, "42", 0) + reading(10, "42", 4096)
    rows, _, refused = read_text(tmp_path, text[: text.rindex(" 0\n")])
    assert "no end" in refused["reason"][0]
    assert rows.filter(filesystem="scratch").height == 4


def test_fields_are_noted(tmp_path: Path) -> None:
    with record_fields() as use:
        read_text(tmp_path, HEADER + reading(0, "42", 0))
    assert list(use.taken) == ["open", "close", "read_bytes", "write_bytes"]
    assert list(use.ignored) == ["mmap"]


def test_file_without_counters_of_mounts_is_refused(tmp_path: Path) -> None:
    text = HEADER.replace("!lustre_llite", "!lustre_osc") + f"{T}.0 42 cn1\nhost_block sda 1 2\n"
    with pytest.raises(InputRefused, match="No header has counters"):
        read_text(tmp_path, text)
