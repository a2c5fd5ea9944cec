"""Test samples.kept_subjects, joint_subjects and joint_runs: kept signatures, and signatures fitted jointly."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from iosig.warehouse.contracts.samples import JOINT_RUNS, JOINT_SUBJECTS, KEPT_SUBJECTS
from tests.sql.given import DAYS, Select, at, expect, filled

SETS, BASE, KNOWN = "samples.sample_sets", "released.sample_sets", "released.signatures"
SUBJECTS, SAMPLES, JOBS = "samples.joint_subjects", "samples.samples", "stage.jobs"
HEAD = "application_id job_id source ended_on"


# ---- kept sets


@pytest.mark.parametrize(
    ("sets", "base", "is_kept"),
    [
        ("a 1 server 9 \n a 2 server 9", "a 1 server 9 \n a 2 server 9", True),
        ("a 1 server 9 \n a 2 server 9", "a 1 . 9 \n a 2 . 9", True),
        ("a 1 server 9 \n a 2 server 9", "a 1 server 9", False),
        ("a 1 server 9", "a 1 server 9 \n a 2 server 9", False),
        ("a 1 server 9", "a 2 server 9", False),
        ("a 1 jobstats 9", "a 1 server 9", False),
        ("a 1 jobstats 9", "a 1 . 9", False),
        ("a 1 server 10", "a 1 server 10", False),
        ("a 1 server 9 \n a 2 server 10", "a 1 server 9 \n a 2 server 10", False),
        ("a 1 server 9", "b 1 server 9", False),
    ],
)
def test_set_is_kept_if_its_samples_and_days_are_unchanged(select: Select, sets: str, base: str, is_kept: bool) -> None:
    given = {SETS: f"{HEAD} \n {sets}", BASE: f"{HEAD} \n {base}"}
    found = select(KEPT_SUBJECTS, given, days=[DAYS[9]])
    assert found["application_id"].to_list() == ["a"] * is_kept


def test_without_base_release_no_set_is_kept(select: Select) -> None:
    assert select(KEPT_SUBJECTS, {SETS: f"{HEAD} \n a 1 server 9"}, days=[]).is_empty()


# ---- joint sets


def joint(select: Select, sets: str | pl.DataFrame, known: str = "") -> list[str]:
    given = {SETS: sets} | ({KNOWN: known} if known else {})
    return select(JOINT_SUBJECTS, given, min_sample_count=2)["application_id"].to_list()


RUNS = """
    application_id job_id started_at duration_s source
    a              1      10:00:00   60         server
    a              2      11:00:00   60         .
    """


@pytest.mark.parametrize(
    ("before", "after", "is_joint"),
    [
        ("", "", True),
        ("  2      11", "  1      11", True),
        ("60         .", "1001       .", False),
        ("60         .", "60         jobstats", False),
        ("a              ", "a/*            ", False),
        ("    a              2      11:00:00   60         .\n", "", False),
    ],
)
def test_sets_of_enough_short_polled_runs_are_fitted_jointly(
    select: Select, before: str, after: str, is_joint: bool
) -> None:
    found = joint(select, RUNS.replace(before, after) if before else RUNS)
    assert bool(found) == is_joint


@pytest.mark.parametrize(
    ("first", "last", "count", "method", "is_joint"),
    [
        ("10:00:00", "11:01:00", 2, "joint", False),
        ("10:00:01", "11:01:00", 2, "joint", True),
        ("10:00:00", "11:02:00", 2, "joint", True),
        ("10:00:00", "11:01:00", 3, "joint", True),
        ("10:00:00", "11:01:00", 2, "elastic", True),
    ],
)
def test_sets_with_new_runs_are_fitted_again(
    select: Select, first: str, last: str, count: int, method: str, is_joint: bool
) -> None:
    head = "application_id method first_run_started_at last_run_ended_at sample_count"
    known = f"{head} \n a {method} {first} {last} {count}"
    assert bool(joint(select, RUNS, known)) == is_joint


def test_latest_sets_are_selected_and_names_break_ties(select: Select) -> None:
    lines = [
        f"{name} {job} 1{hour}:00:00 60 lake"
        for name, hour in (("d", 3), ("c", 2), ("b", 2), ("a", 1))
        for job in (1, 2)
    ]
    sets = "\n".join(["application_id job_id started_at duration_s filesystem", *lines, "a 1 10:00:00 60 pond"])
    sets += "\n a 2 10:00:00 60 pond"
    assert joint(select, sets) == ["a", "b", "d"]


# ---- overlapping runs


def test_joint_runs_overlap_a_sample_on_same_filesystem(select: Select) -> None:
    edges = {1: (0, 5), 2: (6, 9), 3: (9, 12), 4: (12, 40), 5: (21, 29), 6: (35, 36), 7: (-5, 60), 8: (10, 20)}
    noon = at("12:00:00")
    jobs = pl.DataFrame(
        {
            "job_id": [str(job) for job in edges],
            "started_at": [noon + (at("12:01:00") - noon) * begin for begin, _ in edges.values()],
            "duration_s": [60.0 * (end - begin) for begin, end in edges.values()],
        }
    ).with_columns(pl.col("started_at").cast(pl.Datetime("us", "UTC")), cluster=pl.lit("cluster"))

    known = {"application_id": pl.lit("x"), "filesystem": pl.lit("lake"), "ended_on": pl.lit(DAYS[8])}
    samples = filled(SAMPLES, jobs.drop("duration_s").with_columns(**known))
    given = {
        SUBJECTS: "application_id filesystem direction \n x lake read",
        SETS: """
            application_id job_id started_at duration_s filesystem direction
            x              8      12:10:00   600        lake       read
            x              9      12:30:00   240        lake       read
            y              9      12:00:00   9000       lake       read
            """,
        JOBS: filled(JOBS, jobs),
        SAMPLES: samples,
    }
    expected = """
        job_id is_sample
        7      no
        3      no
        8      yes
        4      no
        """
    expect(select(JOINT_RUNS, given), expected)
    elsewhere = samples.with_columns(filesystem=pl.lit("pond"))
    assert select(JOINT_RUNS, given | {SAMPLES: elsewhere}).is_empty()
    months_later = samples.with_columns(ended_on=pl.lit(DAYS[8] + timedelta(days=32)))
    assert select(JOINT_RUNS, given | {SAMPLES: months_later}).is_empty()
    nameless = samples.with_columns(application_id=pl.lit(None, pl.String))
    assert select(JOINT_RUNS, given | {SAMPLES: nameless}).is_empty()
