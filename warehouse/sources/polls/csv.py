"""Read polls from delimited text with a header; other columns are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables

#: maximum size of a block [B]
BLOCK_BYTES = 8 << 20
#: number of rows per batch; with fewer rows, more files are written
_PIECE_ROWS = 500_000
_THREADS = 2


def sniff(head: Head) -> bool:
    """Recognize a header with the mandatory poll columns in the first lines."""
    return tables.has_header(head.lines, [head.columns.get(name, name) for name in polls.REQUIRED])


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from delimited text, and fill missing intervals."""
    locate, sifted = partial(polls.locate, reading=reading), partial(polls.read_rows, reading=reading)
    return polls.fill_intervals(
        lambda: tables.merge_pieces(
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
