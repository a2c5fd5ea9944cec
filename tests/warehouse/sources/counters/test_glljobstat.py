"""Test the source of glljobstat's Parquet files; no site's data were available.

Columns follow its source (logging/parquet.rs), operations its op_keys.rs.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters.glljobstat import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.budget import one_in
from tests.warehouse.sources.batch_reading import read_counters

T = 1723114647

Logged = tuple[int, str, str, int | None]


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def write(folder: Path, rows: list[Logged], **columns: Any) -> Path:
    path = folder / "glljobstat.parquet"
    frame = pl.DataFrame(rows, schema=["timestamp", "job_id", "operation", "value"], orient="row")
    time = pl.from_epoch(pl.col("timestamp") + T, time_unit="s").cast(pl.Datetime("ms"))
    frame.with_columns(time, **columns).write_parquet(path, compression="snappy")
    return path


def read_rows(path: Path, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    assert recognize(read_head(path)) == SOURCE
    return read_counters(SOURCE, path, reading)


def logged(second: int, job: str, written: int, *, count: int = 3) -> list[Logged]:
    return [
        (second, job, "write_bytes", written),
        (second, job, "write", count),
        (second, job, "fallocate", 2),
        (second, job, "quotactl", 3),
        (second, job, "samedir_rename", 9),
        (second, job, "ops", count + 5),
    ]


def test_operations_of_job_are_summed_per_scrape(tmp_path: Path) -> None:
    rows, scrapes, refused = read_rows(
        write(tmp_path, logged(0, "43", 4096) + logged(0, '"SLURM_JOB10:0:h"', 1) + [(0, "9", "mkdir", 7)])
    )
    assert refused.is_empty()
    names = ["component", "target", "job_key", "total_written_bytes", "total_write_count", "total_other_count"]
    assert rows.sort("job_key").select(*names, "total_mkdir_count", "total_rename_count").rows() == [
        ("server", "glljobstat", "43", 4096, 3, 5, 0, None),
        ("server", "glljobstat", "9", 0, 0, 0, 7, None),
        ("server", "glljobstat", "SLURM_JOB10:0:h", 1, 3, 5, 0, None),
    ]
    assert rows["scraped_at"].unique().to_list() == [at(0)]
    assert rows["counter_started_at"].unique().to_list() == [datetime(1970, 1, 1, tzinfo=UTC)]
    assert scrapes.select("entry_count", "is_job_scrape").rows() == [(3, True)]


def test_only_changed_readings_have_rows(tmp_path: Path) -> None:
    parts = [logged(0, "1", 5), logged(0, "2", 5), logged(10, "1", 5), logged(10, "2", 9), logged(20, "2", 9)]
    rows, scrapes, _ = read_rows(write(tmp_path, list(chain(*parts))), Reading(filesystem="scratch"))
    assert rows.select("filesystem", "job_key", "scraped_at", "total_written_bytes").rows() == [
        ("scratch", "1", at(0), 5), ("scratch", "2", at(0), 5), ("scratch", "2", at(10), 9)
    ]  # fmt: skip
    assert scrapes["entry_count"].to_list() == [2, 2, 1]


def test_bytes_metric_that_equals_its_count_is_ignored(tmp_path: Path) -> None:
    rows, _, _ = read_rows(write(tmp_path, logged(0, "1", 3) + logged(10, "1", 4, count=4)))
    assert rows.select("total_written_bytes", "total_write_count").rows() == [(None, 3), (None, 4)]


@pytest.mark.parametrize(
    ("row", "reason"),
    one_in(
        3,
        [
            ((10, "1", "write", -1), "non-negative integer"),
            ((10, "1", "write", None), "non-negative integer"),
            ((10, None, "write", 1), "empty"),
            ((-T, "1", "write", 1), "time"),
            ((0, "1", "write", 4), "twice"),
        ],
    ),
)
def test_damaged_row_is_refused(tmp_path: Path, row: Logged, reason: str) -> None:
    _, _, refused = read_rows(write(tmp_path, [*logged(0, "1", 5), *logged(20, "1", 6), row]))
    assert refused.height == 1
    assert reason in refused["reason"][0]


def test_tables_with_unexpected_schema_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="not those that"):
        read_rows(write(tmp_path, logged(0, "1", 5), value=pl.col("value").cast(pl.Float64)))
    with pytest.raises(InputRefused, match="No operation"):
        read_rows(write(tmp_path, [(0, "1", "ops", 5)]))
