"""Polls as Parquet, with the published column names or a mapping; other columns than ours are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from iosig.warehouse.sources.files.opening import plain_file
from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables

PIECE_ROWS = 1_000_000
#: a day of a hundred controllers waits in a quarter of a gigabyte for its interval; what is longer is read again
HELD_ROWS = 5_000_000


def sniff(head: Head) -> bool:
    """Return whether the content is Parquet; its columns lie at the end, and are looked at when it is read."""
    return head.start.startswith(PARQUET_MAGIC)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from a Parquet file."""
    locate, sifted = partial(polls.locate, reading=reading), partial(polls.sifted, reading=reading)
    with plain_file(path) as plain:
        yield from polls.completed(lambda: tables.parquet_pieces(plain, locate, sifted, PIECE_ROWS), HELD_ROWS)


SOURCE = Source(
    name="polls-parquet",
    doc="Controller polls as Parquet: polled_at, controller, read and write bytes per second.",
    kind="polls",
    sniff=sniff,
    read=read,
)
