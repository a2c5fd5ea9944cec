"""Read request events: a table with the operations of each I/O layer for each request, as text or Parquet.

The format follows the traces of Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems"
(IPDPS'13), section IV.A: events of the program, the I/O nodes and the storage nodes, each with the rank and the id of
its request. Events land sorted by start, regardless of their order in the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from iosig.warehouse.contracts.columns import METADATA_OPERATIONS
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.contracts.traces import TRACE_METADATA, TRACE_MODULES, TRACE_REQUESTS, TRACES
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.events import rows as event_rows
from iosig.warehouse.sources.events.rows import Clock, Layers
from iosig.warehouse.sources.files.opening import plain_file
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables, times, traced
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.rejects import (
    REJECT_SCHEMA,
    ParsedRows,
    build_refused_rows,
    reject_batches,
    reject_frame,
)

MODULE = "EVENTS"
_PIECE_ROWS = 1 << 19
_REPEATED = "Land each event once. Events of one request need different times, nodes or bytes."
#: maximum number of event kinds that the counters of the trace's module distinguish
_MAX_KINDS = 100
#: names of metadata operations, without `other`
_METADATA_KINDS = METADATA_OPERATIONS[:-1]
_OF_CALL = ("rank", "file_number", "start_s", "end_s")


def sniff(head: Head) -> bool:
    """Recognize a table with all mandatory columns of request events."""
    if head.start.startswith(PARQUET_MAGIC):
        return head.path is not None and set(event_rows.REQUIRED) <= set(tables.parquet_names(head.path))
    return tables.has_header(head.lines, event_rows.REQUIRED)


# ---- pieces in table order


@dataclass(slots=True)
class _Table:
    """State of reading the table."""

    zone: str | None
    clock: Clock | None = None
    layers: Layers | None = None
    files: dict[str, int] = field(default_factory=dict)
    began: float = float("inf")
    ceased: float = float("-inf")
    outermost: int = -1
    is_sorted: bool = True
    last_began: float = float("-inf")
    refused_count: int = 0

    def convert(self, rows: pl.DataFrame) -> ParsedRows | None:
        """Convert and check a piece; None if a row is refused but has no `raw`."""
        if rows.is_empty():
            return ParsedRows(event_rows.ROWS.to_frame().with_columns(rows[LINE]), REJECT_SCHEMA.to_frame())
        if self.clock is None or self.layers is None:
            self.clock = event_rows.find_clock(rows["start_s"])
            self.layers = Layers(are_numbered="layer_number" in rows.columns)
        frame, faults = event_rows.convert_types(rows, self.clock, self.zone, are_numbered=self.layers.are_numbered)
        parsed = event_rows.sift_rows(frame, faults, self.layers)
        return parsed if RAW in rows.columns or parsed.refused.is_empty() else None

    def record(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Record the good rows of a piece, and number their files."""
        first, last = rows["start"][0], rows["start"][-1]
        self.is_sorted &= bool(rows["start"].is_sorted()) and first >= self.last_began
        self.last_began = last
        self.began = min(self.began, rows.select(pl.col("start").min()).item())
        self.ceased = max(self.ceased, rows.select(pl.col("end").max()).item())
        number = rows.select(pl.col("layer_number").min()).item()
        self.outermost = number if self.outermost < 0 else min(self.outermost, number)
        paths = rows["path"].drop_nulls().unique(maintain_order=True)
        numbers = [self.files.setdefault(path, len(self.files)) for path in paths.to_list()]
        known = pl.Series(numbers, dtype=pl.Int64)
        # without paths, replace_strict keeps the type of the column
        file = pl.col("path").replace_strict(paths, known, return_dtype=pl.Int64) if numbers else pl.lit(None, pl.Int64)
        return rows.with_columns(file_number=file).drop("path")


def _pieces(path: Path, table: _Table) -> Iterator[ParsedRows]:
    with path.open("rb") as file:
        is_parquet = file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    if is_parquet:
        yield from tables.parquet_pieces(path, event_rows.locate, table.convert, _PIECE_ROWS)
    else:
        yield from tables.text_pieces(path, event_rows.locate, table.convert)


# ---- sorted by time


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one traced run; rows spill to disk until all are read, because times are relative to the earliest one."""
    table = _Table(times.require_zone(reading.time_zone))
    with TemporaryDirectory(prefix="iosig-") as scratch:
        record: list[Path] = []
        first_reason = "it has no rows"
        with plain_file(path) as plain:
            for number, piece in enumerate(_pieces(plain, table)):
                if not piece.refused.is_empty():
                    first_reason = piece.refused["reason"][0] if not table.refused_count else first_reason
                    table.refused_count += piece.refused.height
                    yield reject_frame(piece.refused)
                if not piece.rows.is_empty():
                    record.append(Path(scratch, f"{number}.parquet"))
                    table.record(piece.rows).write_parquet(record[-1], compression="lz4")
        if not record:
            raise InputRefused(
                f"No event of the table can be read; of the first: {first_reason.rstrip('.')}.", "Export it again."
            )
        yield from _land_rows(_sort_by_time(record, table, Path(scratch)), table)


def _sort_by_time(record: list[Path], table: _Table, scratch: Path) -> Iterator[pl.DataFrame]:
    """Yield all rows sorted by start; rows with equal starts keep the table's order."""
    if table.is_sorted:
        for path in record:
            yield from read_parquet(path).iter_slices(traced.BATCH_ROWS)
        return
    with InputDatabase(scratch) as engine:
        yield from engine.rows("from read_parquet($paths, hive_partitioning = false) order by start, line", record)


@dataclass(slots=True)
class _Counts:
    """Numbers of rows landed so far."""

    numbers: traced.Numbering = field(default_factory=traced.Numbering)
    last_rank: int = -1
    end_s: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    #: rows with the latest start
    latest: pl.DataFrame | None = None


def _land_rows(pieces: Iterator[pl.DataFrame], table: _Table) -> Iterator[Batch]:
    counts = _Counts()
    for piece in pieces:
        distinct, repeats = _drop_repeats(piece, counts)
        rows, nameless = _place_rows(distinct, table)
        for refused in (repeats, nameless):
            table.refused_count += refused.height
            yield from reject_batches(refused)
        if not rows.is_empty():
            yield from _events(rows, table, counts)
    if not counts.numbers.counts[REQUEST_EVENTS.name]:
        raise InputRefused("No event of the table has a node.", "Fill in the column node.")
    yield from traced.build_file_batches(table.files)
    yield _module(table, counts)
    yield _trace(table, counts)


def _drop_repeats(piece: pl.DataFrame, counts: _Counts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Refuse rows that equal an earlier row in all columns; pieces are sorted by start, which such rows share."""
    columns = piece.drop(RAW, strict=False)
    rows = columns if counts.latest is None else pl.concat([counts.latest, columns])
    start = pl.col("start")
    candidates = rows.filter((start == start.shift()) | (start == start.shift(-1)))
    repeats = candidates.filter(~pl.struct(pl.exclude(LINE)).is_first_distinct())
    counts.latest = rows.filter(start == start.last())
    is_repeat = piece[LINE].is_in(repeats[LINE].implode())
    refused = build_refused_rows(piece.filter(is_repeat), "The row repeats another one in all columns.", _REPEATED)
    return piece.filter(~is_repeat), refused


def _place_rows(piece: pl.DataFrame, table: _Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Convert times to seconds since the trace's start, and fill in nodes; refuse rows without a node."""
    is_outermost = pl.col("layer_number") == table.outermost
    node = pl.coalesce("node", pl.when(is_outermost).then(pl.col("rank").cast(pl.String)))
    rows = piece.with_columns(_seconds("start", table), _seconds("end", table), node=node)
    refused = build_refused_rows(
        rows.filter(pl.col("node").is_null()),
        "The node is missing.",
        "Fill the cell at its source; only the outermost layer defaults to the rank.",
    )
    return rows.filter(pl.col("node").is_not_null()), refused


def _seconds(name: str, table: _Table) -> pl.Expr:
    if table.clock == "seconds":
        return pl.col(name).alias(f"{name}_s")
    since = pl.col(name) - table.began
    return (since / 1e6 if table.clock == "instants" else since).alias(f"{name}_s")


def _events(rows: pl.DataFrame, table: _Table, counts: _Counts) -> Iterator[Batch]:
    counts.last_rank = max(counts.last_rank, rows.select(pl.col("rank").max()).item())
    counts.end_s = max(counts.end_s, rows.select(pl.col("end_s").max()).item())
    for layer, kind, count in rows.group_by("layer", "event_kind").len().iter_rows():
        name = f"{layer}.{kind}"
        counts.kinds[name if name in counts.kinds or len(counts.kinds) < _MAX_KINDS else "other"] += count
    request_events = rows.select(name for name in REQUEST_EVENTS.column_names if name in rows.columns)
    yield from counts.numbers.rows(REQUEST_EVENTS, request_events)
    # the program's own requests, and its metadata calls
    outermost = rows.filter(pl.col("layer_number") == table.outermost)
    direction = pl.col("direction").fill_null("unstated")
    requests = outermost.filter(pl.col("event_kind") == "request")
    requests = requests.select(*_OF_CALL, direction=direction, request_bytes="event_bytes")
    yield from counts.numbers.rows(TRACE_REQUESTS, requests, module=MODULE, is_nested=False, is_async=False)
    metadata = outermost.filter(pl.col("event_kind").is_in(_METADATA_KINDS)).select(*_OF_CALL, operation="event_kind")
    yield from counts.numbers.rows(TRACE_METADATA, metadata, module=MODULE, is_nested=False)


def _module(table: _Table, counts: _Counts) -> Batch:
    refused = table.refused_count
    return traced.build_batch(
        TRACE_MODULES,
        {
            "module": MODULE,
            "outcome": "partial" if refused else "sound",
            "reason": f"{refused} events were refused." if refused else None,
            "is_partial": False,
            "record_count": counts.numbers.counts[REQUEST_EVENTS.name],
            "counters": json.dumps(dict(sorted(counts.kinds.items()))),
        },
    )


def _trace(table: _Table, counts: _Counts) -> Batch:
    """Build the row of the run; the number of processes follows from the highest rank, the end from the last event."""
    started, ended = (_instant(table, value) for value in (table.began, table.ceased))
    return traced.build_batch(
        TRACES,
        {
            "tracer": "request_events",
            "process_count": counts.last_rank + 1,
            "started_at": started,
            "ended_at": ended,
            "duration_s": counts.end_s,
        },
        ended,
    )


def _instant(table: _Table, value: float) -> datetime | None:
    if table.clock == "seconds":
        return None
    micros = round(value if table.clock == "instants" else value * 1e6)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


SOURCE = Source(
    name="request-events",
    doc="Request events of several layers, as delimited text or Parquet: layer, node, rank, request_id, event, times.",
    kind="traces",
    sniff=sniff,
    read=read,
    precedence=5,
)
