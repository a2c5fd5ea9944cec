"""Test samples.metadata_io: operations of each run by the counting target."""

from __future__ import annotations

from iosig.warehouse.contracts.job_io import EXACT_IO, METADATA_IO
from iosig.warehouse.contracts.samples import RUN_COUNTER_DELTAS
from tests.sql.given import Select, expect

KEYS, RISES, RUN = "stage.counter_job_totals", "stage.counter_deltas", "samples.run_counter_deltas"
TWO_NAMES = "filesystem job_key scheduler_id \n lake 7 7 \n lake 7:b 7"
OF_TARGETS = """
    filesystem component target job_key interval_started_at  interval_ended_at open_count close_count punch_count \
        written_bytes
    lake       mdt       m0     7       10:00:00 10:00:10 5          4           .           .
    lake       mdt       m0     7:b     10:00:00 10:00:10 1          0           .           .
    lake       mdt       m0     7       10:00:20 10:00:30 20         .           .           .
    lake       mdt       m1     7       10:00:00 10:00:10 7          .           .           .
    lake       ost       o0     7       10:00:00 10:00:10 .          .           9           50
    lake       client    n0     7       10:00:00 10:00:10 99         .           .           .
    lake       mdt       m0     8       10:00:00 10:00:10 6          .           .           .
    lake       mdt       m0     .       10:00:00 10:00:10 88         .           .           .
    """


def test_operations_belong_to_the_run_of_their_interval(select: Select) -> None:
    given = {
        KEYS: TWO_NAMES,
        RISES: OF_TARGETS,
        RUN: """
            job_id started_at filesystem scheduler_id interval_started_at  interval_ended_at
            7.0    10:00:00   lake       7            10:00:00 10:00:10
            7.1    10:00:15   lake       7            10:00:20 10:00:30
            """,
        "samples.exact_runs": """
            job_id started_at filesystem interval_s step_count outcome
            7.0    10:00:00   lake       10         2          measured
            7.1    10:00:15   lake       10         3          incomplete
            """,
    }
    found = select(METADATA_IO, given)
    expected = """
        job_id target server_operation outcome    metadata_operation_count mean_operations_per_s peak_operations_per_s
        7.0    m0     close            measured   4                        0.2                   0.4
        7.0    m0     open             measured   6                        0.3                   0.6
        7.0    m1     open             measured   7                        0.35                  0.7
        7.1    m0     open             incomplete 20                       0.6666666666666666    2
        """
    expect(found.sort("job_id", "target", "server_operation"), expected)


def test_data_targets_do_not_count_metadata_operations(select: Select) -> None:
    jobs = "job_id started_at ended_at \n 7 10:00:00 10:01:00"
    found = select(RUN_COUNTER_DELTAS, {"stage.jobs": jobs, KEYS: TWO_NAMES, RISES: OF_TARGETS})
    expected = """
        interval_ended_at scheduler_id metadata_operation_count written_bytes
        10:00:10 7            17                       50
        10:00:30 7            20                       0
        """
    expect(found, expected)
    head = "filesystem component job_key interval_started_at interval_ended_at punch_count"
    of_data = f"{head} \n lake ost 7 10:00:00 10:00:10 9"
    found = select(RUN_COUNTER_DELTAS, {"stage.jobs": jobs, KEYS: TWO_NAMES, RISES: of_data})
    assert found["metadata_operation_count"].to_list() == [None]


def test_missing_operation_counts_are_zero_only_where_others_are_counted(select: Select) -> None:
    runs = """
        job_id started_at filesystem interval_s step_count
        7      10:00:00   lake       10         2
        8      10:00:00   lake       10         2
        8      10:00:00   pond       10         2
        """
    rises = """
        job_id started_at filesystem metadata_operation_count written_bytes interval_ended_at
        7      10:00:00   lake       20                       1             10:00:10
        7      10:00:00   lake       .                        1             10:00:20
        7      10:00:00   lake       1                        1             10:00:30
        8      10:00:00   pond       .                        1             10:00:10
        """
    found = select(EXACT_IO, {"samples.exact_runs": runs, RUN: rises})
    counts = found.filter(direction="write").select("job_id", "filesystem", "metadata_operation_count")
    assert counts.rows() == [("7", "lake", 21), ("8", "lake", 0), ("8", "pond", None)]
