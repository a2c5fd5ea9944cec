"""Test stage.trace_jobs: the assignment of traces to jobs."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.traces import TRACE_JOBS
from tests.sql.given import Select, expect

TRACES = "landed.traces"
JOBS = "stage.jobs"


def matched(select: Select, traces: str, jobs: str) -> pl.DataFrame:
    return select(TRACE_JOBS, {TRACES: traces, JOBS: jobs}).sort("trace_id")


def test_job_id_matches_within_run_time_plus_a_minute(select: Select) -> None:
    traces = """
        trace_id  job_id  started_at  ended_at
        inside    7       10:10:00    10:50:00
        skewed    7       09:59:01    11:00:59
        too_soon  7       09:58:59    10:50:00
        too_late  7       10:10:00    11:01:01
        unknown   8       10:10:00    10:50:00
        timeless  7       .           .
        nameless  .       10:10:00    10:50:00
        """
    jobs = "cluster job_id started_at ended_at node_count \n edison 7 10:00:00 11:00:00 24"
    expected = """
        trace_id  job_match  cluster  job_id  job_started_at  node_count  traced_job_id
        inside    job_id     edison   7       10:00:00        24          7
        nameless  none       .        .       .               .           .
        skewed    job_id     edison   7       10:00:00        24          7
        timeless  job_id     edison   7       10:00:00        24          7
        too_late  none       .        .       .               .           7
        too_soon  none       .        .       .               .           7
        unknown   none       .        .       .               .           8
        """
    expect(matched(select, traces, jobs), expected)


def test_trace_belongs_to_step_running_at_its_time(select: Select) -> None:
    traces = """
        trace_id  job_id  process_count  started_at  ended_at
        first     7       8              10:10:00    10:20:00
        second    7       8              10:40:00    10:50:00
        """
    jobs = """
        job_id   started_at  ended_at  is_application_run
        7        10:00:00    11:00:00  no
        7.0      10:10:00    10:20:00  yes
        7.1      10:40:00    10:50:00  yes
        7.batch  10:00:00    11:00:00  no
        """
    expect(matched(select, traces, jobs), "trace_id job_match job_id \n first job_id 7.0 \n second job_id 7.1")


def test_concurrent_steps_are_distinguished_only_by_size(select: Select) -> None:
    jobs = """
        job_id  task_count  started_at  ended_at
        7.0     8           10:00:00    11:00:00
        7.1     16          10:00:00    11:00:00
        7.2     16          10:00:00    11:00:00
        """
    traces = """
        trace_id  job_id  process_count  started_at  ended_at
        eight     7       8              10:10:00    10:20:00
        sixteen   7       16             10:10:00    10:20:00
        unsized   7       .              10:10:00    10:20:00
        """
    expected = """
        trace_id  job_match  job_id
        eight     job_id     7.0
        sixteen   ambiguous  .
        unsized   ambiguous  .
        """
    expect(matched(select, traces, jobs), expected)


def test_array_tasks_server_names_and_requeued_jobs_are_matched(select: Select) -> None:
    jobs = """
        job_id        started_at  ended_at
        41.pbs.site   10:00:00    11:00:00
        42[3].pbs     10:00:00    11:00:00
        43_5          10:00:00    11:00:00
        44            08:00:00    09:00:00
        44            10:00:00    11:00:00
        """
    traces = """
        trace_id  job_id  started_at  ended_at
        a_server  41      10:10:00    10:20:00
        b_array   42      10:10:00    10:20:00
        c_task    43_5    10:10:00    10:20:00
        d_again   44      10:10:00    10:20:00
        """
    expected = """
        trace_id  job_match  job_id       job_started_at
        a_server  job_id     41.pbs.site  10:00:00
        b_array   job_id     42[3].pbs    10:00:00
        c_task    job_id     43_5         10:00:00
        d_again   job_id     44           10:00:00
        """
    expect(matched(select, traces, jobs), expected)


def test_different_id_matches_single_run_of_user_at_that_time(select: Select) -> None:
    jobs = """
        job_id  user  task_count  started_at  ended_at
        1       ann   8           10:00:00    11:00:00
        2       bob   8           10:00:00    11:00:00
        3       bob   16          10:00:00    11:00:00
        4       1234  8           10:00:00    .
        """
    traces = """
        trace_id  job_id  user  uid   process_count  started_at  ended_at
        ann       99001   ann   .     4              10:10:00    10:20:00
        ann_late  99002   ann   .     8              11:10:00    11:20:00
        bob       99003   bob   .     16             10:10:00    10:20:00
        bob_4     99004   bob   .     4              10:10:00    10:20:00
        number    99005   .     1234  2              10:10:00    10:20:00
        nobody    99006   .     .     8              10:10:00    10:20:00
        """
    expected = """
        trace_id  job_match      job_id  user
        ann       time_and_user  1       ann
        ann_late  none           .       ann
        bob       time_and_user  3       bob
        bob_4     ambiguous      .       bob
        nobody    none           .       .
        number    time_and_user  4       1234
        """
    expect(matched(select, traces, jobs), expected)


def test_only_traces_of_requested_days_are_selected(select: Select) -> None:
    traces = "trace_id ended_on \n dated 9 \n undated ."
    undated = select(TRACE_JOBS, {TRACES: traces}, days=[], has_undated=True)
    dated = select(TRACE_JOBS, {TRACES: traces}, has_undated=False)
    expect(undated, "trace_id job_match \n undated none")
    expect(dated, "trace_id job_match \n dated none")
