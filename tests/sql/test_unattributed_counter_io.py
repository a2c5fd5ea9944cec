"""Test stage.unattributed_counter_io: bytes counted under names without a known job."""

from __future__ import annotations

from iosig.warehouse.contracts.counters import UNATTRIBUTED_COUNTER_IO
from tests.sql.given import Select, expect


def test_names_without_a_job_at_that_time_are_summed_by_kind(select: Select) -> None:
    given = {
        "stage.counter_job_totals": """
            scraped_on filesystem job_key key_kind scheduler_id interval_started_at interval_ended_at  written_bytes
            9          lake       7       job      7            10:00:00 10:30:00 5
            9          lake       8       job      8            10:00:00 10:30:00 6
            9          lake       9       job      9            10:00:00 10:30:00 7
            9          lake       cp.0    process  .            10:00:00 10:30:00 8
            9          lake       mv.0    process  .            10:00:00 10:30:00 9
            """,
        "stage.jobs": """
            job_id parent_job_id started_at ended_at
            7.0    7             09:00:00   10:10:00
            8      .             10:20:00   .
            9      .             09:00:00   09:10:00
            """,
    }
    expect(
        select(UNATTRIBUTED_COUNTER_IO, given),
        "filesystem key_kind job_key_count written_bytes \n lake job 1 7 \n lake process 2 17",
    )
