"""A release with three minutes of attributed file-system traffic, or its tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import Content, opened_tables, publish

_ATTRIBUTED = """
job_id started_at filesystem direction minute_at application_id attributed_bytes attributed_low_bytes \
    attributed_high_bytes confidence
1      09:00:00   lake       write     10:01:00  ann/ior/8      120             100       150        0.9
1      09:00:00   lake       write     10:02:00  ann/ior/8      280             200       350        0.5
2      09:00:00   lake       write     10:02:00  ann/s3d/8      600             600       600        1
2      09:00:00   lake       read      10:01:00  ann/s3d/8      40              40        40         1
3      10:01:00   lake       write     10:02:00  bob/ior/8      200             50        400        0.2
5      10:00:00   pond       write     10:02:00  bob/ior/8      8               1         9          0.9
"""
_SLOWDOWNS = """
job_id started_at filesystem direction burst application_id outcome   burst_expected_at burst_started_at \
    burst_ended_at \
    start_delay_s delay_s delay_low_s delay_high_s confidence interfering_bytes unattributed_bytes \
        top_interferer_job_id top_interferer_started_at \
    top_interferer_application_id top_interferer_bytes
1      09:00:00   lake       write     0     ann/ior/8      slowed      10:00:00 10:00:00 10:01:00 0 40 20 60 0.9 \
    300 100 2 09:00:00 ann/s3d/8 250
1      09:00:00   lake       write     1     ann/ior/8      slowed      10:01:00 10:01:00 10:02:00 0 60 45 75 0.5 \
    600 100 3 10:01:00 bob/ior/8 400
1      09:00:00   lake       read      0     ann/ior/8      not_slowed  10:01:00 10:01:00 10:02:00 0 5 -5 15 0.5 \
    900 50 2 09:00:00 ann/s3d/8 900
2      09:00:00   lake       write     0     ann/s3d/8      slowed      10:00:00 10:00:00 10:01:30 0 30 20 40 0.9 \
    0 500 . . . .
3      10:01:00   lake       write     0     bob/ior/8      not_found 10:01:00 . . . . . . 0.1 . . . . . .
3      10:01:00   lake       write     1     bob/ior/8      not_slowed  10:02:00 10:02:00 10:03:00 5 0 -5 5 0.5 \
    . . . . . .
"""
TABLES: dict[str, Content] = {
    "filesystem_rates": {
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
    "signatures": {
        9: """
            application_id filesystem direction method is_default outcome   expected_correlation
            ann/ior/8      lake       write     elastic yes        extracted 0.8
            ann/ior/8      lake       write     mean   no         extracted 0.1
            ann/ior/8      lake       read      elastic yes        extracted 0.3
            """
    },
    "attributed_io": {9: _ATTRIBUTED},
    "slowdowns": {9: _SLOWDOWNS},
}


def attributed(store: Store) -> Release:
    """Publish the release."""
    return publish(store, "attributed", TABLES)


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB on the tables, as on a release."""
    with opened_tables(TABLES) as connection:
        yield connection
