"""A release in which three minutes of a file system's traffic are attributed, or its tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from tests.warehouse.releasing import Content, opened_tables, publish
from warehouse.releases.releases import Release
from warehouse.store.store import Store

_ATTRIBUTED = """
job_id started_at filesystem direction minute_at application_id explained_bytes low_bytes high_bytes certainty
1      09:00:00   lake       write     10:01:00  ann/ior/8      120             100       150        0.9
1      09:00:00   lake       write     10:02:00  ann/ior/8      280             200       350        0.5
2      09:00:00   lake       write     10:02:00  ann/s3d/8      600             600       600        1
2      09:00:00   lake       read      10:01:00  ann/s3d/8      40              40        40         1
3      10:01:00   lake       write     10:02:00  bob/ior/8      200             50        400        0.2
5      10:00:00   pond       write     10:02:00  bob/ior/8      8               1         9          0.9
"""
TABLES: dict[str, Content] = {
    "ticks": {
        9: """
            filesystem polled_at interval_s read_bytes written_bytes
            lake       10:00:30  30         50         100
            lake       10:01:00  30         .          200
            lake       10:02:00  60         0          1000
            lake       10:03:00  60         0          0
            pond       10:01:00  60         7          8
            """
    },
    "jobs": {
        9: """
            job_id user application started_at ended_at filesystem is_application_run node_count
            1      ann  ior         09:00:00   10:03:00 .          yes            8
            2      ann  s3d         09:00:00   10:02:00 lake       yes            8
            3      bob  ior         10:01:00   10:05:00 .          yes            8
            4      bob  ior         10:00:00   10:02:00 .          yes            8
            5      bob  ior         10:00:00   10:02:00 pond       yes            8
            6      bob  batch       10:00:00   10:02:00 .          no             8
            7      bob  ior         10:02:00   10:09:00 .          yes            16
            """
    },
    "attributed_io": {9: _ATTRIBUTED},
}


def attributed(store: Store) -> Release:
    """Publish the release."""
    return publish(store, "attributed", TABLES)


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB on the tables, as on a release."""
    with opened_tables(TABLES) as connection:
        yield connection
