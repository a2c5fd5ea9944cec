"""A release of a few runs of each kind, and a series, or its tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from tests.warehouse.releasing import Content, opened_tables, publish
from warehouse.releases.releases import Release
from warehouse.store.store import Store

_CLASSES = """
subject_kind cluster subject_id started_at filesystem direction ended_on source outcome label volume_bytes \
    node_count duration_s is_shared_traffic
job cluster 1 09:00:00 lake write 9 jobstats classified UNIFORM 100 2 3600 no
job cluster 1 09:00:00 lake read 9 jobstats classified NO_USAGE 0 2 3600 no
job cluster 2 09:00:00 lake write 9 server classified HILL 900 4 1800 yes
job cluster 2 09:00:00 lake read 9 server classified OTHER 900 4 1800 yes
job cluster 3 09:00:00 lake write 9 server too_short . 900 1 36 yes
job cluster 4 09:00:00 lake write 9 server classified END 900 1 3600 yes
job cluster 5 09:00:00 pond write 9 client classified START 50 1 3600 no
job cluster 6 09:00:00 lake write 9 server classified OTHER 1 1 3600 yes
series . node7 . . write . series classified OTHER 7 . 60 no
application . ann/ior/8 . lake write . server classified OTHER 7 . 60 no
"""
TABLES: dict[str, Content] = {
    "classes": {9: _CLASSES},
    "other_classes": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on outcome    label
            job          cluster 1          09:00:00   lake       write     9        classified UNIFORM
            job          cluster 1          09:00:00   lake       read      9        classified OTHER
            """
    },
    "jobs": {
        9: """
            job_id user account application started_at ended_at is_application_run
            1      ann  a       ior         09:00:00   10:00:00 yes
            2      ann  a       ior         09:00:00   09:30:00 yes
            3      bob  b       ior         09:00:00   09:00:36 yes
            4      bob  b       s3d         09:00:00   10:00:00 yes
            5      bob  .       s3d         09:00:00   10:00:00 yes
            6      bob  b       batch       09:00:00   10:00:00 no
            """
    },
    "periods": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on is_default outcome   period_s
            job          cluster 1          09:00:00   lake       write     9        yes        periodic  60
            job          cluster 1          09:00:00   lake       write     9        no         periodic  30
            job          cluster 2          09:00:00   lake       write     9        yes        aperiodic .
            job          cluster 4          09:00:00   lake       write     9        yes        periodic  90
            """
    },
    "best_job_io": {
        9: """
            job_id started_at filesystem direction ended_on own_bytes
            1      09:00:00   lake       write     9        100
            1      09:00:00   lake       read      9        0
            5      09:00:00   pond       write     9        50
            """
    },
    "attributed_io": {
        9: """
            job_id started_at filesystem direction minute_at ended_on explained_bytes
            2      09:00:00   lake       write     09:01:00  9        30
            2      09:00:00   lake       write     09:02:00  9        10
            """
    },
    "trace_jobs": {9: "trace_id cluster job_id job_started_at \n t cluster 4 09:00:00"},
    "sample_sets": {9: "application_id filesystem direction job_id started_at \n ann/ior/4 lake write 2 09:00:00"},
    "signatures": {
        9: """
            application_id filesystem direction method is_default outcome   duration_s volume_bytes
            ann/ior/4      lake       write     warped yes        extracted 1800       80
            """
    },
    "signature_bursts": {
        9: """
            application_id filesystem direction method burst started_s ended_s volume_bytes
            ann/ior/4      lake       write     warped 0     60        120     2e6
            ann/ior/4      lake       write     warped 1     560       620     2e6
            ann/ior/4      lake       write     warped 2     960       990     2e6
            ann/ior/4      lake       write     warped 3     1560      1620    2e6
            """
    },
    "explained_days": {
        9: "filesystem polled_on direction measured_bytes \n lake 9 write 1000 \n lake 9 read 200 \n lake 10 write 5"
    },
}


def populated(store: Store) -> Release:
    """Publish the release."""
    return publish(store, "populated", TABLES)


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB on the tables, as on a release."""
    with opened_tables(TABLES) as connection:
        yield connection
