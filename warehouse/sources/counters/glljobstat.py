"""What glljobstat logs as Parquet: Lustre's job statistics, summed over all servers that it asked.

A row is `timestamp`, `job_id`, `operation`, `value` (its source, logging/parquet.rs); what a job did not do has no row.
A sum never begins anew as a whole: it falls where one server dropped its entry, and then nobody knows what rose. So
its counters say that they count since 1970, and a fall gives no value.
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
from iosig.warehouse.sources.counters.changes import KEYS, Changes, landed, wide
from iosig.warehouse.sources.files.opening import plain_file, refusing_parquet_damage
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import Sifted, frame_of

_PIECE_ROWS = 1_000_000
_COLUMNS: Final = {"timestamp": "timestamp", "job_key": "job_id", "operation": "operation", "value": "value"}
_BYTES: Final = {"read_bytes": ("total_read_bytes", "read"), "write_bytes": ("total_written_bytes", "write")}
#: the sum of a job's operations
_ALL = "ops"
_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Log the statistics anew."


def sniff(head: Head) -> bool:
    """Return whether the content is Parquet with glljobstat's columns."""
    if not head.start.startswith(PARQUET_MAGIC) or head.path is None:
        return False
    return set(_COLUMNS.values()) == set(tables.parquet_names(head.path))


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the sums of jobs; raise InputRefused where no operation is one of Lustre's."""
    changes, waiting = Changes(), pl.DataFrame()
    with plain_file(path) as plain:
        columns = _columns(plain)
        pieces = tables.parquet_pieces(plain, _locate, lambda rows: _sound(rows, columns), _PIECE_ROWS)
        for piece in pieces:
            points = pl.concat([waiting, piece.rows]) if waiting.height else piece.rows
            # what was logged last may go on in the next piece
            is_last = points["at_us"] == points["at_us"].max()
            waiting = points.filter(is_last)
            yield from _batches(points.filter(~is_last), columns, changes, reading, piece.refused)
        yield from _batches(waiting, columns, changes, reading, frame_of([]))
    yield from samples.batches(frame_of([]), scrapes=changes.scrapes())


def _columns(path: Path) -> dict[str, str]:
    """Return the operations that the file has and what each counts; bytes only where they are no counts.

    A value under the name of bytes that is always that of the operations is a count of them.
    """
    with refusing_parquet_damage():
        table = scan_parquet(path)
        _require_types(table.collect_schema())
        names = table.select(pl.col("operation").unique()).collect()["operation"].drop_nulls().to_list()
        found = {name: column for name in names if name != _ALL and (column := samples.operation_column(name))}
        for name, (column, operation) in _BYTES.items():
            found.pop(name, None)
            if name in names and not _are_counts(table, name, operation):
                found[name] = column
    if not found:
        raise InputRefused("No operation is one of Lustre's.", _REMEDY)
    return found


def _are_counts(table: pl.LazyFrame, name: str, operation: str) -> bool:
    """Return whether what is called bytes is that operation's count, wherever both are told."""
    of = pl.col("value").filter(pl.col("operation") == operation).first()
    moved = pl.col("value").filter(pl.col("operation") == name).first()
    both = table.group_by("timestamp", "job_id").agg(of=of, moved=moved)
    known = both.filter((pl.col("of") > 0) & (pl.col("moved") > 0))
    told = known.select(pl.len(), differ=(pl.col("of") != pl.col("moved")).any()).collect(engine="streaming")
    return bool(told["len"][0]) and not told["differ"][0]


def _require_types(schema: pl.Schema) -> None:
    wanted: dict[str, tuple[object, ...]] = {"job_id": (pl.String,), "operation": (pl.String,), "value": (pl.Int64,)}
    wanted |= {"timestamp": (pl.Int64, pl.Datetime("ms"), pl.Datetime("ms", "UTC"))}
    if any(schema.get(name) not in types for name, types in wanted.items()):
        raise InputRefused("The columns are not those that glljobstat writes.", _REMEDY)


def _locate(names: Sequence[str]) -> dict[str, str]:
    return {ours: theirs for ours, theirs in _COLUMNS.items() if theirs in names}


def _sound(rows: pl.DataFrame, columns: dict[str, str]) -> Sifted:
    """Return what counts as `line`, `job_key`, `operation`, `at_us` and `value`, and the refused rows."""
    at_ms = pl.col("timestamp").cast(pl.Int64)
    told = rows.with_columns(at_us=pl.when(at_ms.is_between(10**12, 9 * 10**12)).then(at_ms * 1_000))
    faults = [
        Fault(pl.col("at_us").is_null(), "The time is none since 2001.", _REMEDY),
        Fault(pl.col("job_key").is_null() | pl.col("operation").is_null(), "A cell is empty.", _REMEDY),
        Fault(pl.col("value").is_null() | (pl.col("value") < 0), "The value is no count of at least 0.", _REMEDY),
    ]
    found = sift(told, faults)
    own = found.rows.filter(pl.col("operation").is_in(list(columns)))
    return Sifted(own.select(LINE, "job_key", "operation", "at_us", "value"), found.refused)


def _batches(
    points: pl.DataFrame, columns: dict[str, str], changes: Changes, reading: Reading, refused: pl.DataFrame
) -> Iterator[Batch]:
    if points.is_empty():
        yield from samples.batches(refused)
        return
    keys = {"component": "server", "target": "glljobstat", "filesystem": None, "collector": None}
    told = points.with_columns(
        samples.unquoted(points["job_key"]),
        *(pl.lit(text, pl.String).alias(name) for name, text in keys.items()),
        column=pl.col("operation").replace_strict(columns, return_dtype=pl.String),
    )
    found = sift(wide(told.select(*KEYS, "at_us", "column", "value", LINE)), [_DOUBLED])
    absent = [name for name in set(columns.values()) if name not in found.rows.columns]
    rows = found.rows.drop("is_doubled").with_columns(pl.lit(0, pl.Int64).alias(name) for name in sorted(absent))
    rows = rows.with_columns(
        pl.col("^total_.*$").fill_null(0), counter_started_at=pl.lit(_ALWAYS).cast(pl.Datetime("us", "UTC"))
    )
    yield from landed(rows.select(sorted(rows.columns)), pl.concat([refused, found.refused]), changes, reading)


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
