"""Read polls from Parquet, with the documented column names or a mapping; other columns are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from iosig.warehouse.sources.files.opening import plain_file
from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables

PIECE_ROWS = 1_000_000
#: maximum number of rows in memory until their interval is known (a day of a hundred controllers); the rest is read
#: twice
MAX_BUFFERED_ROWS = 5_000_000


def sniff(head: Head) -> bool:
    """Recognize Parquet; its columns are checked when it is read."""
    return head.start.startswith(PARQUET_MAGIC)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from a Parquet file, and fill missing intervals."""
    locate, sifted = partial(polls.locate, reading=reading), partial(polls.read_rows, reading=reading)
    with plain_file(path) as plain:
        yield from polls.fill_intervals(
            lambda: tables.parquet_pieces(plain, locate, sifted, PIECE_ROWS), MAX_BUFFERED_ROWS
        )


SOURCE = Source(
    name="polls-parquet",
    doc="Controller polls as Parquet: polled_at, controller, read and write bytes per second.",
    kind="polls",
    sniff=sniff,
    read=read,
)
