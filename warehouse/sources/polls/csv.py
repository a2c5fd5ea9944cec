"""Polls as delimited text with a header; other columns than ours are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables

#: text that is read at once
BLOCK_BYTES = 8 << 20
#: rows that are handed on at once: fewer make more files
_PIECE_ROWS = 500_000
_THREADS = 2


def sniff(head: Head) -> bool:
    """Return whether the first line names the columns that polls must have."""
    return {head.columns.get(name, name) for name in polls.REQUIRED} <= tables.names_of(head.lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from delimited text with a header line."""
    locate, sifted = partial(polls.locate, reading=reading), partial(polls.sifted, reading=reading)
    return polls.completed(
        lambda: tables.gathered(
            tables.text_pieces(path, locate, sifted, block_bytes=BLOCK_BYTES, thread_count=_THREADS),
            _PIECE_ROWS,
        )
    )


SOURCE = Source(
    name="polls-csv",
    doc="Controller polls as delimited text with a header: polled_at, controller, read and write bytes per second.",
    kind="polls",
    sniff=sniff,
    read=read,
)
