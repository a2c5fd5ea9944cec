"""A release with a few runs of each kind and a series, or its tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import Content, opened_tables, publish

_CLASSES = """
subject_kind cluster subject_id started_at filesystem direction ended_on basis outcome label volume_bytes \
    node_count duration_s
job cluster 1 09:00:00 lake write 9 counted classified UNIFORM 100 2 3600
job cluster 1 09:00:00 lake read 9 counted classified NO_USAGE 0 2 3600
job cluster 2 09:00:00 lake write 9 inferred classified UNIFORM . 4 1800
job cluster 2 09:00:00 lake read 9 inferred no_signature . . 4 1800
job cluster 3 09:00:00 lake write 9 inferred too_short . . 1 36
job cluster 4 09:00:00 lake write 9 inferred unreliable_signature . . 1 3600
job cluster 5 09:00:00 pond write 9 traced classified START 50 1 3600
job cluster 6 09:00:00 lake write 9 inferred classified OTHER . 1 3600
series . node7 . . write . series classified OTHER 7 . 60
application . ann/ior/8 . lake write . signature classified OTHER 7 . 60
"""
TABLES: dict[str, Content] = {
    "classes": {9: _CLASSES},
    "inference_checks": {
        9: """
            job_id started_at filesystem direction ended_on basis   is_training_run measured_label inferred_label \
                is_same_class
            1      09:00:00   lake       write     9        counted no      UNIFORM        UNIFORM        yes
            1      09:00:00   lake       read      9        counted no      NO_USAGE       OTHER          no
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
            job          cluster 4          09:00:00   lake       write     9        yes        unreliable_signature .
            """
    },
    "job_io": {
        9: """
            job_id started_at filesystem direction ended_on estimated_bytes estimate_source
            1      09:00:00   lake       write     9        100             counted
            1      09:00:00   lake       read      9        0               counted
            2      09:00:00   lake       write     9        40              attributed
            5      09:00:00   pond       write     9        50              traced
            """
    },
    "attributed_io": {
        9: """
            job_id started_at filesystem direction minute_at ended_on attributed_bytes
            2      09:00:00   lake       write     09:01:00  9        30
            2      09:00:00   lake       write     09:02:00  9        10
            """
    },
    "trace_jobs": {9: "trace_id cluster job_id job_started_at \n t cluster 4 09:00:00"},
    "sample_sets": {9: "application_id filesystem direction job_id started_at \n ann/ior/4 lake write 2 09:00:00"},
    "signatures": {
        9: """
            application_id filesystem direction method is_default outcome   duration_s volume_bytes
            ann/ior/4      lake       write     elastic yes        extracted 1800       80
            """
    },
    "attribution_daily": {
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
