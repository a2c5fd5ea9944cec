"""Test transforms.classes, periods and inference_checks: measured, traced and inferred results, and their agreement."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.classes import CLASSES
from iosig.warehouse.contracts.inference import INFERENCE_CHECKS
from iosig.warehouse.contracts.periods import PERIODS
from tests.sql.given import Select, expect

COVERING = "transforms.covering_traces"
RUNS, CLASS_ROWS, PERIOD_ROWS = "transforms.inference_runs", "transforms.classes", "transforms.periods"


def test_period_is_measured_or_traced_or_inferred(select: Select) -> None:
    """This holds for each method of periods; a subject without a start time is never replaced."""
    given = {
        "transforms.measured_periods": """
            subject_kind cluster subject_id started_at filesystem direction ended_on basis     method     outcome
            job          c       1          12:00:00   lake       read      9        counted   null_tested periodic
            trace        .       t          .          .          read      9        traced    null_tested aperiodic
            trace        .       t          .          .          read      9        traced    dft        aperiodic
            trace        .       s          .          .          read      9        traced    null_tested aperiodic
            trace        .       u          .          .          read      9        traced    null_tested no_data
            series       .       x          .          .          read      9        series    null_tested aperiodic
            application  .       wave       .          lake       read      .        signature null_tested periodic
            job          c       8          12:00:00   lake       read      10       counted   null_tested periodic
            """,
        "transforms.inferred_periods": """
            subject_kind cluster subject_id started_at filesystem direction ended_on basis    method     outcome
            job          c       1          12:00:00   lake       read      9        inferred null_tested periodic
            job          c       2          12:00:00   lake       read      9        inferred null_tested periodic
            job          c       3          12:00:00   lake       read      9        inferred null_tested no_io
            job          c       4          12:00:00   lake       read      9        inferred null_tested no_io
            """,
        COVERING: """
            cluster job_id started_at filesystem direction ended_on trace_id
            c       1      12:00:00   lake       read      9        s
            c       2      12:00:00   lake       read      9        t
            c       3      12:00:00   lake       read      9        u
            c       4      12:00:00   lake       write     9        s
            """,
    }
    found = select(PERIODS, given, days=[given_day()], has_undated=False)
    expected = """
        subject_kind subject_id basis    method     outcome
        job          1          counted  null_tested periodic
        job          2          traced   dft         aperiodic
        job          2          traced   null_tested aperiodic
        job          3          inferred null_tested no_io
        job          4          inferred null_tested no_io
        series       x          series   null_tested aperiodic
        trace        s          traced   null_tested aperiodic
        trace        t          traced   dft         aperiodic
        trace        t          traced   null_tested aperiodic
        trace        u          traced   null_tested no_data
        """
    expect(found, expected)
    undated = select(PERIODS, {"transforms.measured_periods": given["transforms.measured_periods"]}, days=[])
    expect(undated, "subject_kind subject_id \n application wave")


def given_day() -> object:
    from tests.sql.given import DAY

    return DAY


def test_class_is_measured_or_traced_or_inferred(select: Select) -> None:
    given = {
        "transforms.measured_classes": """
            subject_kind cluster subject_id started_at filesystem direction basis   outcome       label
            job          c       1          12:00:00   lake       read      counted classified    START
            trace        .       t          .          .          read      traced  classified    END
            trace        .       u          .          .          read      traced  interval_only .
            """,
        "transforms.inferred_classes": """
            subject_kind cluster subject_id started_at filesystem direction basis    outcome
            job          c       1          12:00:00   lake       read      inferred too_short
            job          c       2          12:00:00   lake       read      inferred too_short
            job          c       3          12:00:00   lake       read      inferred too_short
            """,
        COVERING: """
            cluster job_id started_at filesystem direction trace_id
            c       2      12:00:00   lake       read      t
            c       3      12:00:00   lake       read      u
            """,
    }
    expected = """
        subject_kind cluster subject_id filesystem basis    label
        job          c       1          lake       counted  START
        job          c       2          lake       traced   END
        job          c       3          lake       inferred .
        trace        .       t          .          traced   END
        trace        .       u          .          traced   .
        """
    expect(select(CLASSES, given), expected)


def compared(select: Select, measured: str, inferred: str, **more: str) -> list[str | None]:
    """Return the agreement of two periods, each given as outcome and seconds."""
    columns = "subject_kind cluster subject_id started_at filesystem direction basis is_default outcome period_s"
    run = "job cluster job_id 12:00:00 filesystem read"
    measured_rows = [f"{of} counted yes {measured}" for of in (run, run.replace("job_id", "other"))]
    given = {
        RUNS: "job_id direction application_id \n job_id read wave",
        PERIOD_ROWS: "\n".join([columns, *measured_rows]),
        "transforms.inferred_periods": f"{columns} \n {run} inferred yes {inferred}",
    }
    return select(INFERENCE_CHECKS, given | more)["period_agreement"].to_list()


@pytest.mark.parametrize(
    ("measured", "inferred", "agreement"),
    [
        ("periodic 100", "periodic 109", "same"),
        ("periodic 100", "periodic 200", "harmonic"),
        ("periodic 100", "periodic 34", "harmonic"),
        ("periodic 100", "periodic 150", "different"),
        ("periodic 100", "periodic 450", "different"),
        ("periodic 100", "no_io .", "missed"),
        ("aperiodic .", "periodic 100", "false"),
        ("aperiodic .", "no_io .", "aperiodic"),
    ],
)
def test_periods_agree_within_ten_percent_and_not_for_harmonics(
    select: Select, measured: str, inferred: str, agreement: str
) -> None:
    assert compared(select, measured, inferred) == [agreement]


@pytest.mark.parametrize("unknown", ["too_short .", "no_data ."])
def test_unknown_period_is_not_compared(select: Select, unknown: str) -> None:
    assert compared(select, "periodic 100", unknown) == []
    assert compared(select, unknown, "periodic 100") == []


def test_classes_are_compared_for_reliable_signatures_only(select: Select) -> None:
    columns = "subject_kind cluster subject_id started_at filesystem direction basis label"
    inferred = [f"job cluster {job} 12:00:00 filesystem read inferred START" for job in (1, 2, 3, 4)]
    given = {
        RUNS: """
            job_id direction application_id refusal             expected_correlation
            1      read      wave           .                   0.8
            2      read      wave           .                   0.8
            3      read      wave           unreliable_signature 0.1
            """,
        CLASS_ROWS: "\n".join(
            [
                columns,
                "job cluster 1 12:00:00 filesystem read counted START",
                "job cluster 2 12:00:00 filesystem read traced END",
                "job cluster 3 12:00:00 filesystem read counted START",
                inferred[3],
            ]
        ),
        "transforms.inferred_classes": "\n".join([columns, *inferred]),
    }
    expected = """
        job_id basis   expected_correlation measured_label inferred_label is_same_class period_agreement
        1      counted 0.8   START          START          yes           .
        2      traced  0.8   END            START          no            .
        """
    expect(select(INFERENCE_CHECKS, given), expected)
