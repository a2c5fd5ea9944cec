"""Test stage.queued_jobs: a row per job and time of query."""

from __future__ import annotations

from iosig.warehouse.contracts.jobs import QUEUED_JOBS
from tests.sql.given import DAY, Select, expect

RECORDS = "landed.queue_records"


def test_last_record_of_same_instant_wins(select: Select) -> None:
    records = """
        part_order  line  cluster  job_id  observed_at   queue_state
        0           9     .        7       10:00:00  PENDING
        1           1     .        7       10:00:00  RUNNING
        1           2     .        7       10:05:00  RUNNING
        1           3     c1       7       10:00:00  SUSPENDED
        """
    expected = """
        observed_on  observed_at   cluster  job_id  queue_state
        9        10:00:00  c1       7       SUSPENDED
        9        10:00:00  default  7       RUNNING
        9        10:05:00  default  7       RUNNING
        """
    expect(select(QUEUED_JOBS, {RECORDS: records}), expected)


def test_application_and_filesystem_are_extracted(select: Select) -> None:
    found = select(
        QUEUED_JOBS,
        {
            RECORDS: """
            job_id  job_name   comment      observed_at
            1       ior.short  fs=scratch1  10:00:00
            2       wrf        fs=other     10:00:00
            3       .          .            10:00:00
            4       ior.long   .            10T10:00:00
            """,
            "settings.filesystem_aliases": "name filesystem \n scratch1 snx",
        },
        application_pattern=r"^(\w+)\.",
        days=[DAY],
    )
    expect(found, "job_id application filesystem \n 1 ior snx \n 2 wrf other \n 3 . .")
