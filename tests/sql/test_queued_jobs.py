"""stage.queued_jobs: one row per job and time at which the scheduler was asked."""

from __future__ import annotations

from iosig.warehouse.contracts.jobs import QUEUED_JOBS
from tests.sql.given import DAY, Select, expect

RECORDS = "landed.queue_records"


def test_of_two_answers_of_one_instant_the_last_one_counts(select: Select) -> None:
    found = select(
        QUEUED_JOBS,
        {
            RECORDS: """
            part_order  line  cluster  job_id  observed_at   queue_state
            0           9     .        7       10:00:00  PENDING
            1           1     .        7       10:00:00  RUNNING
            1           2     .        7       10:05:00  RUNNING
            1           3     c1       7       10:00:00  SUSPENDED
            """
        },
    )
    expect(
        found,
        """
        observed_on  observed_at   cluster  job_id  queue_state
        9        10:00:00  c1       7       SUSPENDED
        9        10:00:00  default  7       RUNNING
        9        10:05:00  default  7       RUNNING
        """,
    )


def test_applications_and_file_systems_are_found_as_those_of_runs(select: Select) -> None:
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
