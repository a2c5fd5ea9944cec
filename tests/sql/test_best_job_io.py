"""samples.best_job_io: one row a run, file system and direction, and no byte twice."""

from __future__ import annotations

from tests.sql.given import Select, expect
from warehouse.contracts.job_io import BEST_JOB_IO


def test_what_servers_counted_is_best_then_traces_then_the_traffic_of_all(select: Select) -> None:
    job_io = """
        job_id started_at filesystem direction source   trace_id outcome    volume_bytes
        1      10:00:00   lake       write     server   .        measured   9
        1      10:00:00   lake       write     jobstats .        measured   5
        1      10:00:00   lake       write     client   a        measured   4
        2      10:00:00   lake       write     server   .        measured   9
        2      10:00:00   lake       write     jobstats .        incomplete 3
        2      10:00:00   lake       write     client   b        measured   4
        2      10:00:00   lake       write     client   c        measured   2
        3      10:00:00   lake       write     server   .        measured   9
        4      10:00:00   lake       write     jobstats .        measured   5
        4      10:00:00   .          write     client   d        measured   5
        4      10:00:00   .          unstated  client   e        measured   5
        4      10:00:00   .          write     server   .        no_polls   .
        5      10:00:00   .          unstated  client   f        measured   6
        """
    expect(
        select(BEST_JOB_IO, {"samples.job_io": job_io}),
        """
        job_id filesystem direction source   is_shared_traffic volume_bytes own_bytes
        1      lake       write     jobstats no                5            5
        2      lake       write     client   no                6            6
        3      lake       write     server   yes               9            .
        4      lake       write     jobstats no                5            5
        5      .          unstated  client   no                6            6
        """,
    )
