"""Test samples.metadata_runs, metadata_spans, metadata_steps and counted_samples: joins before the analysis of runs."""

from __future__ import annotations

from iosig.warehouse.contracts.periods import METADATA_SPANS, METADATA_STEPS
from iosig.warehouse.contracts.samples import COUNTED_SAMPLES, METADATA_RUNS
from tests.sql.given import Select, expect

CALLS, GRIDS, TRACES = "landed.trace_metadata", "samples.metadata_grids", "stage.trace_jobs"
RUNS, RISES, JOBS, EXACT = "samples.exact_runs", "samples.run_counter_deltas", "stage.jobs", "samples.exact_samples"


def test_traced_run_lasts_until_its_last_call(select: Select) -> None:
    given = {
        TRACES: "trace_id duration_s \n a 10 \n b 10 \n c . \n d 10 \n e -3",
        CALLS: "trace_id metadata_call end_s \n a 0 3 \n a 1 5 \n b 0 12 \n c 0 4 \n e 0 -1 \n x 0 9",
    }
    expect(select(METADATA_SPANS, given), "trace_id lasting_s \n a 10 \n b 12 \n c 4 \n e 0")


def test_calls_are_counted_by_kind_and_step_and_in_total(select: Select) -> None:
    given = {
        GRIDS: "trace_id interval_s step_count \n a 2 5",
        CALLS: """
            trace_id metadata_call operation start_s is_nested
            a        0             open      0       no
            a        1             open      1.9     no
            a        2             stat      2       no
            a        3             stat      2       yes
            a        4             open      10      no
            a        5             open      11      no
            a        6             open      -1      no
            x        0             open      0       no
            """,
    }
    expected = """
        trace_id operation_group call_step metadata_call_count
        a        all             0         3
        a        all             1         1
        a        all             4         2
        a        open            0         3
        a        open            4         2
        a        stat            1         1
        """
    expect(select(METADATA_STEPS, given), expected)


def test_run_has_operation_count_where_its_cluster_is_counted(select: Select) -> None:
    given = {
        RUNS: "cluster job_id filesystem step_us \n c 1 lake 1 \n c 2 lake 1 \n c 1 pond 1 \n d 1 lake 1",
        RISES: """
            cluster job_id filesystem interval_ended_at metadata_operation_count
            c       1      lake       10:00:00 3
            c       1      lake       10:01:00 4
            c       1      lake       10:02:00 .
            c       1      pond       10:02:00 .
            """,
        JOBS: "cluster job_id started_at node_count \n c 1 12:00:00 8",
    }
    expect(
        select(METADATA_RUNS, given),
        "job_id filesystem metadata_operation_count node_count \n 1 lake 7 8 \n 2 lake 0 .",
    )


def test_completely_counted_samples_have_their_job(select: Select) -> None:
    given = {
        EXACT: """
            job_id application_id outcome      direction sample_bytes_per_s
            2      a              measured     read      1,.
            1      b              measured     read      2
            3      a              incomplete   read      3
            4      a              several_runs read      4
            """,
        JOBS: "job_id started_at ended_at node_count \n 2 12:00:00 13:00:00 8",
    }
    expect(
        select(COUNTED_SAMPLES, given),
        "job_id application_id ended_at node_count sample_bytes_per_s \n 2 a 13:00:00 8 1,. \n 1 b . . 2",
    )
