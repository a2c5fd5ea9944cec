"""Read LMT databases, with cumulative counters of each Lustre target, in an SQLite file or behind a URL.

SQLAlchemy is imported only for reading, so that recognizing the format is fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iosig.warehouse.external.deadlines import DEFAULT_TIMEOUTS, Timeouts
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss

SQLITE_MAGIC = b"SQLite format 3\x00"


def sniff(head: Head) -> bool:
    """Recognize an SQLite database that mentions LMT's table of readings."""
    return head.start.startswith(SQLITE_MAGIC) and b"OST_DATA" in head.start


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read an LMT database in an SQLite file; its times are local in the reading's time zone."""
    from iosig.warehouse.sources.polls import lmt_queries

    return lmt_queries.read_file(path, reading)


def read_url(
    url: str, reading: Reading, cursor: Mapping[str, Any] | None, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> tuple[list[Batch], dict[str, Any]]:
    """Read new data from an LMT database behind an SQLAlchemy URL; return the data and the next cursor.

    Raises UsageError for a URL that no driver supports, InputRefused for a database that cannot be read or exceeds a
    time limit.
    """
    from iosig.warehouse.sources.polls import lmt_queries
    from iosig.warehouse.sources.polls.lmt_cursors import Cursor

    batches, next_cursor = lmt_queries.read_url(url, reading, Cursor.from_plain(cursor) if cursor else None, timeouts)
    return batches, next_cursor.plain()


SOURCE = Source(
    name="lmt-database",
    doc="LMT database (SQLite) of cumulative counters per Lustre target; its times are local.",
    kind="polls",
    sniff=sniff,
    read=read,
    find_near_miss=build_near_miss(
        r"^(?:CREATE TABLE|INSERT INTO)\b.*\bOST_DATA\b",
        "This is a dump of an LMT database as SQL.",
        "Restore it, and land the database by its URL.",
    ),
)
