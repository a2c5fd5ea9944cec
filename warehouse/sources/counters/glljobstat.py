"""Read glljobstat's Parquet logs: Lustre's job statistics, summed over all servers.

A row is `timestamp`, `job_id`, `operation`, `value` (glljobstat's source, logging/parquet.rs); operations that a job
did not perform have no row. A sum never resets as a whole: it decreases if one server drops its entry, and the true
delta is then unknown. Therefore 1970 is recorded as the start of the counters, and a decrease yields no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import KEYS, Changes, build_change_batches, pivot_points
from iosig.warehouse.sources.files.opening import plain_file, refusing_parquet_damage
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_reject_frame

_PIECE_ROWS = 1_000_000
_COLUMNS: Final = {"timestamp": "timestamp", "job_key": "job_id", "operation": "operation", "value": "value"}
_BYTES: Final = {"read_bytes": ("total_read_bytes", "read"), "write_bytes": ("total_written_bytes", "write")}
#: name of the operation that is the sum of a job's operations
_ALL = "ops"
_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Log the statistics again."


def sniff(head: Head) -> bool:
    """Recognize Parquet with glljobstat's columns."""
    if not head.start.startswith(PARQUET_MAGIC) or head.path is None:
        return False
    return set(_COLUMNS.values()) == set(tables.parquet_names(head.path))


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the summed statistics of jobs; raise InputRefused if no operation is one of Lustre's."""
    changes, pending = Changes(), pl.DataFrame()
    with plain_file(path) as plain_path:
        columns = _columns(plain_path)
        pieces = tables.parquet_pieces(plain_path, _locate, lambda rows: _check_rows(rows, columns), _PIECE_ROWS)
        for piece in pieces:
            points = pl.concat([pending, piece.rows]) if pending.height else piece.rows
            # rows with the last log time may continue in the next piece
            is_last = points["at_us"] == points["at_us"].max()
            pending = points.filter(is_last)
            yield from _batches(points.filter(~is_last), columns, changes, reading, piece.refused)
        yield from _batches(pending, columns, changes, reading, build_reject_frame([]))
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


def _columns(path: Path) -> dict[str, str]:
    """Map the file's operations to iosig's columns; omit byte operations that are counts.

    A byte operation with values that always equal those of its operation is a count.
    """
    with refusing_parquet_damage():
        table = scan_parquet(path)
        _require_types(table.collect_schema())
        names = table.select(pl.col("operation").unique()).collect()["operation"].drop_nulls().to_list()
        columns = {name: column for name in names if name != _ALL and (column := samples.operation_column(name))}
        for name, (column, operation) in _BYTES.items():
            columns.pop(name, None)
            if name in names and not _are_counts(table, name, operation):
                columns[name] = column
    if not columns:
        raise InputRefused("No operation is one of Lustre's.", _REMEDY)
    return columns


def _are_counts(table: pl.LazyFrame, name: str, operation: str) -> bool:
    """Test whether a byte operation equals its operation count wherever both are present."""
    count = pl.col("value").filter(pl.col("operation") == operation).first()
    moved = pl.col("value").filter(pl.col("operation") == name).first()
    pairs = table.group_by("timestamp", "job_id").agg(count=count, moved=moved)
    positive = pairs.filter((pl.col("count") > 0) & (pl.col("moved") > 0))
    comparison = positive.select(pl.len(), differ=(pl.col("count") != pl.col("moved")).any()).collect(
        engine="streaming"
    )
    return bool(comparison["len"][0]) and not comparison["differ"][0]


def _require_types(schema: pl.Schema) -> None:
    allowed: dict[str, tuple[object, ...]] = {"job_id": (pl.String,), "operation": (pl.String,), "value": (pl.Int64,)}
    allowed |= {"timestamp": (pl.Int64, pl.Datetime("ms"), pl.Datetime("ms", "UTC"))}
    if any(schema.get(name) not in types for name, types in allowed.items()):
        raise InputRefused("The columns are not those that glljobstat writes.", _REMEDY)


def _locate(names: Sequence[str]) -> dict[str, str]:
    return {column: header for column, header in _COLUMNS.items() if header in names}


def _check_rows(rows: pl.DataFrame, columns: dict[str, str]) -> ParsedRows:
    """Select rows with used operations as `line`, `job_key`, `operation`, `at_us`, `value`; refuse bad rows."""
    at_ms = pl.col("timestamp").cast(pl.Int64)
    timed = rows.with_columns(at_us=pl.when(at_ms.is_between(10**12, 9 * 10**12)).then(at_ms * 1_000))
    faults = [
        Fault(pl.col("at_us").is_null(), "The time is before 2001 or malformed.", _REMEDY),
        Fault(pl.col("job_key").is_null() | pl.col("operation").is_null(), "A cell is empty.", _REMEDY),
        Fault(pl.col("value").is_null() | (pl.col("value") < 0), "The value is not a non-negative integer.", _REMEDY),
    ]
    checked = sift(timed, faults)
    used = checked.rows.filter(pl.col("operation").is_in(list(columns)))
    return ParsedRows(used.select(LINE, "job_key", "operation", "at_us", "value"), checked.refused)


def _batches(
    points: pl.DataFrame, columns: dict[str, str], changes: Changes, reading: Reading, refused: pl.DataFrame
) -> Iterator[Batch]:
    if points.is_empty():
        yield from samples.build_sample_batches(refused)
        return
    keys = {"component": "server", "target": "glljobstat", "filesystem": None, "collector": None}
    timed = points.with_columns(
        samples.unquote_job_ids(points["job_key"]),
        *(pl.lit(text, pl.String).alias(name) for name, text in keys.items()),
        column=pl.col("operation").replace_strict(columns, return_dtype=pl.String),
    )
    checked = sift(pivot_points(timed.select(*KEYS, "at_us", "column", "value", LINE)), [_DOUBLED])
    absent = [name for name in set(columns.values()) if name not in checked.rows.columns]
    rows = checked.rows.drop("is_doubled").with_columns(pl.lit(0, pl.Int64).alias(name) for name in sorted(absent))
    rows = rows.with_columns(
        pl.col("^total_.*$").fill_null(0), counter_started_at=pl.lit(_ALWAYS).cast(pl.Datetime("us", "UTC"))
    )
    yield from build_change_batches(
        rows.select(sorted(rows.columns)), pl.concat([refused, checked.refused]), changes, reading
    )


_DOUBLED = Fault(
    pl.col("is_doubled"), "A job has an operation twice at one time.", "Log with one glljobstat at a time."
)

SOURCE = Source(
    name="glljobstat",
    doc="glljobstat's Parquet: Lustre's job statistics, summed over all servers.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
)
