"""Test transforms.inference_runs, covering_traces and inference_bursts: known properties of the runs of a day."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.inference import COVERING_TRACES
from iosig.warehouse.contracts.periods import INFERENCE_RUNS
from iosig.warehouse.contracts.signatures import INFERENCE_BURSTS
from tests.sql.given import Select, expect, rows, shuffled

SAMPLES, EXACT, JOBS = "samples.samples", "samples.exact_samples", "stage.jobs"
SIGNATURES, BURSTS, SETS = "transforms.signatures", "transforms.signature_bursts", "samples.sample_sets"
ATTRIBUTED, PERIODS = "transforms.attributed_io", "transforms.measured_periods"
RUNS, CLIENT_IO, TRACES = "transforms.inference_runs", "samples.client_io", "stage.trace_jobs"
SIGNATURE = """
    application_id is_default outcome         expected_correlation duration_s volume_bytes outlier_job_ids
    wave           yes        extracted       0.8   100        7            []
    wave           no         extracted       0.9   999        9            []
    doubtful       yes        extracted       0.5   50         5            []
    untold         yes        extracted       .     50         5            []
    idle           yes        no_io           .     .          .            []
    rare           yes        too_few_samples .     .          .            []
    """


def test_run_has_properties_of_job_and_signature(select: Select) -> None:
    given = {
        SAMPLES: "job_id application_id \n 1 wave \n 2 doubtful \n 3 rare \n 4 . \n 5 idle \n 6 untold \n 7 wave",
        EXACT: "job_id application_id \n 1 wave \n 8 wave",
        JOBS: "job_id duration_s node_count started_at \n 1 120 8 12:00:00 \n 8 90 4 12:00:00",
        SIGNATURES: SIGNATURE,
        ATTRIBUTED: """
            job_id minute_at attributed_bytes
            1      10:01:00  3
            1      10:02:00  4
            3      10:02:00  4
            8      10:02:00  4
            """,
    }
    expected = """
        job_id application_id duration_s node_count expected_correlation alone_s signature_bytes attributed_bytes \
            refusal \
            outcome
        1      wave           120        8          0.8   100     7               7               . no_io
        2      doubtful       .          .          0.5   50      5               .               unreliable_signature \
            unreliable_signature
        3      rare           .          .          .     .       .               .               no_signature \
            no_signature
        4      .              .          .          .     .       .               .               no_signature \
            no_signature
        5      idle           .          .          .     .       .               0               . no_io
        6      untold         .          .          .     50      5               .               unreliable_signature \
            unreliable_signature
        7      wave           .          .          0.8   100     7               0               . no_io
        8      wave           90         4          0.8   100     7               .               . no_io
        """
    expect(select(INFERENCE_RUNS, given), expected)


def test_correlation_threshold_is_a_parameter(select: Select) -> None:
    given = {SAMPLES: "job_id application_id \n 2 doubtful", SIGNATURES: SIGNATURE}
    assert select(INFERENCE_RUNS, given, min_expected_correlation=0.5)["refusal"].to_list() == [None]


def test_run_has_default_period_of_its_application(select: Select) -> None:
    given = {
        SAMPLES: "job_id application_id \n 1 wave \n 2 doubtful",
        SIGNATURES: SIGNATURE,
        PERIODS: """
            subject_kind subject_id filesystem direction is_default outcome  period_s
            application  wave       filesystem read      yes        periodic 60
            application  doubtful   filesystem read      yes        periodic 30
            application  wave       filesystem write     yes        periodic 11
            job          wave       filesystem read      yes        periodic 11
            application  idle       filesystem read      yes        periodic 11
            """,
    }
    expect(
        select(INFERENCE_RUNS, given),
        "job_id outcome period_s \n 1 periodic 60 \n 2 unreliable_signature 30",
    )


def test_training_runs_are_in_the_set_and_not_outliers(select: Select) -> None:
    signatures = rows(SIGNATURES, "application_id is_default outcome expected_correlation \n wave yes extracted 0.8")
    given = {
        EXACT: "job_id application_id \n 1 wave \n 2 wave \n 3 wave",
        SIGNATURES: signatures.with_columns(outlier_job_ids=pl.lit('["2", "\\u00e9\\"]"]')),
        SETS: "job_id application_id source \n 1 wave jobstats \n 2 wave jobstats \n 3 wave server",
    }
    given |= {
        key: rows(key, given[key]).with_columns(started_at=rows(EXACT, "job_id \n 1")["started_at"][0])
        for key in (SETS,)
    }
    expect(select(INFERENCE_RUNS, given), "job_id is_training_run \n 1 yes \n 2 no \n 3 no")


def test_order_of_rows_has_no_effect(select: Select) -> None:
    text = "\n".join(f"1 10:{minute:02d}:00 {0.1 * minute}" for minute in range(1, 40))
    attributed = rows(ATTRIBUTED, f"job_id minute_at attributed_bytes \n {text}")
    given = {SAMPLES: "job_id application_id \n 1 wave", SIGNATURES: SIGNATURE}
    first, *others = (select(INFERENCE_RUNS, given | {ATTRIBUTED: each}) for each in shuffled(attributed))
    assert all(each.equals(first) for each in others)


def test_bursts_belong_to_default_reliable_signatures(select: Select) -> None:
    given = {
        RUNS: "job_id application_id refusal \n 1 wave . \n 2 wave . \n 3 rare no_signature",
        SIGNATURES: "application_id method is_default \n wave mean yes \n wave iosi no \n rare mean yes",
        BURSTS: "application_id method burst \n wave mean 1 \n wave mean 0 \n wave iosi 0 \n rare mean 0",
    }
    expect(select(INFERENCE_BURSTS, given), "application_id method burst \n wave mean 0 \n wave mean 1")


def test_trace_covers_run_if_long_enough_on_a_single_filesystem(select: Select) -> None:
    given = {
        RUNS: """
            job_id filesystem direction duration_s
            1      lake       read      100
            2      lake       read      100
            3      lake       read      100
            4      lake       read      100
            5      lake       read      .
            """,
        CLIENT_IO: """
            job_id trace_id filesystem direction started_at
            1      a        lake       read      12:00:00
            1      a        .          write     12:00:00
            2      b1       lake       read      12:00:00
            2      b2       lake       read      12:00:00
            3      c        lake       read      12:00:00
            3      c        pond       read      12:00:00
            4      d        lake       read      12:00:00
            5      e        lake       read      12:00:00
            6      f        lake       read      12:00:00
            """,
        TRACES: "trace_id duration_s \n a 90 \n b1 100 \n b2 100 \n c 100 \n d 89 \n e 100 \n f 100",
    }
    expect(select(COVERING_TRACES, given), "job_id filesystem direction trace_id \n 1 lake read a")


def test_operations_have_a_signature_and_period_of_their_own(select: Select) -> None:
    given = {
        SAMPLES: "job_id application_id volume_operations \n 1 wave 50 \n 2 wave .",
        JOBS: "job_id duration_s node_count started_at \n 1 120 8 12:00:00 \n 2 120 8 12:00:00",
        SIGNATURES: """
            application_id metric     is_default outcome   expected_correlation duration_s volume_bytes outlier_job_ids
            wave           bytes      yes        extracted 0.8                  100        7            []
            wave           operations no         extracted 0.9                  90         .            []
            """,
        PERIODS: """
            subject_kind subject_id filesystem metric     is_default outcome  period_s
            application  wave       filesystem bytes      yes        periodic 10
            application  wave       filesystem operations no         periodic 20
            """,
        ATTRIBUTED: "job_id minute_at attributed_bytes \n 1 10:01:00 3",
    }
    expected = """
        job_id metric     alone_s expected_correlation signature_bytes attributed_bytes period_s
        1      bytes      100     0.8                  7               3                10
        1      operations 90      0.9                  7               3                20
        2      bytes      100     0.8                  7               0                10
        """
    expect(select(INFERENCE_RUNS, given), expected)


def test_bursts_of_operations_belong_to_runs_with_operations(select: Select) -> None:
    given = {
        RUNS: "application_id metric \n wave bytes \n wave operations \n other bytes",
        SIGNATURES: """
            application_id metric     method  is_default
            wave           bytes      elastic yes
            wave           operations iosi    no
            other          operations elastic no
            """,
        BURSTS: """
            application_id metric     method  volume_bytes volume_operations
            wave           bytes      elastic 5            .
            wave           operations iosi    .            9
            other          operations elastic .            9
            """,
    }
    expected = """
        application_id metric     method  volume_bytes volume_operations
        wave           bytes      elastic 5            .
        wave           operations iosi    .            9
        """
    expect(select(INFERENCE_BURSTS, given), expected)
