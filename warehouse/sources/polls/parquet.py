"""Polls as Parquet, with the published column names or a mapping; a refused row's line is its ordinal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from warehouse.sources.files.opening import refusing_parquet_damage
from warehouse.sources.files.plain import plain_file
from warehouse.sources.polls import polls
from warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from warehouse.sources.rows.delimited import LINE, RAW
from warehouse.sources.rows.faults import Sifted

PIECE_ROWS = 2_000_000


def sniff(head: Head) -> bool:
    """Return whether the content is Parquet; its columns lie at the end, and are looked at when it is read."""
    return head.start.startswith(PARQUET_MAGIC)


def _sifted(rows: pl.DataFrame, reading: Reading) -> Sifted:
    frame, faults = polls.typed(rows, reading)
    good = polls.all_good(frame, faults)
    if good is not None:
        return good
    shown = rows.select(pl.struct(pl.exclude(LINE).cast(pl.String, strict=False)).struct.json_encode().alias(RAW))
    return polls.sifted(frame.with_columns(shown), faults)


def _pieces(path: Path, reading: Reading) -> Iterator[Sifted]:
    with refusing_parquet_damage():
        table = pl.scan_parquet(path, glob=False)
        columns = polls.locate(table.collect_schema().names(), reading)
        used = table.select(pl.col(theirs).alias(ours) for ours, theirs in columns.items())
        height = table.select(pl.len()).collect().item()
    for first in range(0, height, PIECE_ROWS):
        with refusing_parquet_damage():
            rows = used.slice(first, PIECE_ROWS).collect()
            found = _sifted(rows.with_columns(pl.int_range(first + 1, first + 1 + rows.height).alias(LINE)), reading)
        yield found


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from a Parquet file; other columns than ours are left alone."""
    with plain_file(path) as plain:
        yield from polls.completed(partial(_pieces, plain, reading))


SOURCE = Source(
    name="polls-parquet",
    doc="Controller polls as Parquet: polled_at, controller, read and write bytes per second.",
    kind="polls",
    sniff=sniff,
    read=read,
)
