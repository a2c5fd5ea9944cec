"""Read an input completely, as landing does, and validate every batch against its contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Reading, Source, recognize

COUNTS = tuple(name for name in COUNTER_SAMPLES.column_names if name.startswith("total_"))
UTC_ZONE = Reading(time_zone="UTC")

Tables = dict[str, pl.DataFrame]


def tables_of(batches: Iterable[Batch]) -> Tables:
    """Return all rows by table and validate each batch against its contract."""
    found: dict[str, list[pl.DataFrame]] = {}
    for batch in batches:
        assert not batch.rows.is_empty()
        found.setdefault(batch.table.name, []).append(frames.require(batch.rows, batch.table))
    return {name: pl.concat(parts) for name, parts in found.items()}


def gathered(batches: Iterable[Batch], *expected: Table) -> tuple[pl.DataFrame, ...]:
    """Return all rows of each expected table, then all rejects by line; fail on any other table."""
    tables = tables_of(batches)
    *rows, refused = (tables.pop(table.name, frames.empty(table)) for table in (*(expected or (POLLS,)), REJECTS))
    assert not tables
    return *rows, refused.sort("line")


def read_input(
    source: Source, path: Path, reading: Reading | None = None, table: Table = POLLS
) -> tuple[pl.DataFrame, ...]:
    """Return all rows and all rejects of a file."""
    return gathered(source.read(path, reading or UTC_ZONE), table)


def read_log(source: Source, path: Path, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    """Return all job records and all rejects of a log, by line."""
    batches = list(source.read(path, reading or UTC_ZONE))
    assert all(batch.rows["line"].is_sorted() for batch in batches)
    rows, refused = gathered(batches, JOB_RECORDS)
    return rows.sort("line"), refused


def read_counters(source: Source, path: Path, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    """Return all samples, all scrapes and all rejects of an input."""
    return gathered(source.read(path, reading or Reading()), COUNTER_SAMPLES, SCRAPES)


def read_written(
    source: Source,
    path: Path,
    text: str,
    reading: Reading | None = None,
    *,
    read: Callable[[Source, Path, Reading | None], tuple[pl.DataFrame, ...]] = read_counters,
) -> tuple[pl.DataFrame, ...]:
    """Write a text, check that its format is recognized, and read all of it: by default, counters."""
    path.write_text(text)
    assert recognize(read_head(path)) == source
    return read(source, path, reading)


def write_lines(folder: Path, *lines: str) -> Path:
    """Write the lines of a log."""
    path = folder / "log"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def read_lines(source: Source, folder: Path, *lines: str, zone: str | None = "UTC") -> tuple[pl.DataFrame, ...]:
    """Write the lines of a job log and read its records."""
    return read_log(source, write_lines(folder, *lines), Reading(time_zone=zone))
