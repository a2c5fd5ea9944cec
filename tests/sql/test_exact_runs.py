"""Test samples.run_counter_deltas, exact_runs and exact_io: assignment of deltas to runs, and completeness."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.job_io import EXACT_IO
from iosig.warehouse.contracts.samples import EXACT_RUNS, RUN_COUNTER_DELTAS
from tests.sql.given import Select, at, expect

JOBS, KEYS, RISES, GAPS = "stage.jobs", "stage.counter_job_totals", "stage.counter_deltas", "stage.counter_gaps"
RUNS, DAYS = "samples.runs", "stage.counters_daily"
ONE_JOB = "job_id started_at ended_at \n 7 10:00:00 10:01:00"
ONE_KEY = "filesystem job_key scheduler_id \n lake 7 7"


def test_deltas_of_all_targets_belong_to_the_run_even_if_late(select: Select) -> None:
    rises = """
        filesystem component target job_key interval_started_at  interval_ended_at written_bytes flag
        lake       ost       o0     7       10:00:00 10:00:10 5             .
        lake       ost       o1     7       10:00:00 10:00:10 6             .
        lake       mdt       m0     7       10:00:00 10:00:10 1             restarted
        lake       ost       o0     7       10:10:50 10:11:00 7             .
        lake       ost       o0     7       10:11:00 10:11:10 8             .
        lake       ost       o0     8       10:00:00 10:00:10 9             .
        lake       client    n0     7       10:00:00 10:00:10 12            .
        lake       ost       o0     .       10:00:00 10:00:10 99            .
        """
    found = select(RUN_COUNTER_DELTAS, {JOBS: ONE_JOB, KEYS: ONE_KEY, RISES: rises})
    expected = """
        job_id filesystem interval_started_at  interval_ended_at written_bytes is_sure is_alone
        7      lake       10:00:00 10:00:10 12            no      yes
        7      lake       10:10:50 10:11:00 7             yes     yes
        """
    expect(found, expected)


def test_delta_across_steps_belongs_to_first_and_is_flagged(select: Select) -> None:
    jobs = """
        job_id parent_job_id started_at ended_at
        7.0    7             10:00:00   10:01:00
        7.1    7             10:01:04   10:02:00
        7.2    7             10:01:30   10:02:00
        """
    rises = """
        filesystem job_key interval_started_at  interval_ended_at written_bytes
        lake       7       10:00:00 10:00:50 5
        lake       7       10:00:50 10:01:10 6
        lake       7       10:01:10 10:01:30 7
        lake       7       10:01:30 10:01:50 8
        """
    found = select(RUN_COUNTER_DELTAS, {JOBS: jobs, KEYS: ONE_KEY, RISES: rises})
    expected = """
        job_id interval_ended_at written_bytes is_alone is_owner
        7.0    10:00:50 5             yes      yes
        7.0    10:01:10 6             no       yes
        7.1    10:01:10 0             no       no
        7.1    10:01:30 7             yes      yes
        7.1    10:01:50 8             no       yes
        7.2    10:01:50 0             no       no
        """
    expect(found, expected)


TWO_MACHINES = """
    cluster job_id started_at ended_at
    big     7      10:00:00   10:01:00
    small   7      10:00:30   10:02:00
    big     8      10:00:00   10:01:00
    {other} 9      10:00:00   10:01:00
    """


@pytest.mark.parametrize(("other", "is_alone"), [("big", "yes"), ("small", "no")])
def test_job_id_on_two_clusters_belongs_to_known_cluster(select: Select, other: str, is_alone: str) -> None:
    keys = "filesystem job_key scheduler_id \n lake 7 7 \n lake 8 8 \n lake 9 9"
    rises = """
        filesystem job_key interval_started_at  interval_ended_at written_bytes
        lake       7       10:00:30 10:00:50 5
        lake       8       10:00:00 10:00:20 6
        lake       9       10:00:00 10:00:20 7
        """
    found = select(RUN_COUNTER_DELTAS, {JOBS: TWO_MACHINES.format(other=other), KEYS: keys, RISES: rises})
    rows = "" if other == "big" else "small 7 10:00:50 0 no no"
    expect(
        found.sort("job_id", "cluster"),
        f"""
        cluster job_id interval_ended_at written_bytes is_alone   is_owner
        big     7      10:00:50 5             {is_alone} yes
        {rows}
        big     8      10:00:20 6             yes        yes
        {other} 9      10:00:20 7             yes        yes
        """,
    )


def test_restart_of_used_target_makes_deltas_uncertain(select: Select) -> None:
    gaps = """
        filesystem component target is_job_scrape interval_started_at  interval_ended_at flag
        lake       ost       o0     yes           10:00:40 10:00:50 restarted
        lake       ost       o1     yes           10:00:40 10:00:50 restarted
        """
    rises = (
        "filesystem target job_key interval_started_at interval_ended_at written_bytes \n lake o0 7 10:00:00 10:00:10 5"
    )
    found = select(RUN_COUNTER_DELTAS, {JOBS: ONE_JOB, KEYS: ONE_KEY, RISES: rises, GAPS: gaps})
    expect(found, "interval_ended_at written_bytes is_sure \n 10:00:10 5 yes \n 10:00:50 0 no")


def test_lost_scrapes_make_deltas_uncertain_unless_counter_continued(select: Select) -> None:
    gaps = """
        filesystem component target is_job_scrape interval_started_at  interval_ended_at flag
        lake       ost       o0     yes           10:00:20 10:00:50 lost_scrapes
        lake       ost       o1     yes           10:00:20 10:00:50 lost_scrapes
        """
    head = "filesystem component target job_key interval_started_at interval_ended_at written_bytes"
    rows = [
        "lake ost o0 7 10:00:00 10:00:10 5",
        "lake ost o1 7 10:00:00 10:00:10 6",
        "lake ost o0 7 10:00:20 10:00:50 9",
    ]
    given = {JOBS: ONE_JOB, KEYS: ONE_KEY, GAPS: gaps}
    found = select(RUN_COUNTER_DELTAS, given | {RISES: "\n".join([head, *rows])})
    expect(found, "interval_ended_at written_bytes is_sure \n 10:00:10 11 yes \n 10:00:50 9 no")
    found = select(RUN_COUNTER_DELTAS, given | {RISES: "\n".join([head, rows[0], rows[2]])})
    expect(found, "interval_ended_at written_bytes is_sure \n 10:00:10 5 yes \n 10:00:50 9 yes")


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [
        ("09:59:00", "10:02:00", "measured"),
        ("10:00:01", "10:02:00", "incomplete"),
        ("09:59:00", "10:00:59", "incomplete"),
    ],
)
def test_run_is_measured_only_if_counted_throughout(select: Select, first: str, last: str, outcome: str) -> None:
    days = f"filesystem scraped_on interval_s coverage_started_at coverage_ended_at \n lake 9 10 {first} {last}"
    given = {
        RUNS: """
            job_id started_at ended_at filesystem step_us
            7      10:00:00   10:01:00 lake       10000000
            8      10:00:00   10:01:00 lake       7
            """,
        "samples.run_counter_deltas": "job_id started_at filesystem written_bytes is_sure is_alone \n"
        " 7 10:00:00 lake 9 yes yes",
        DAYS: days,
    }
    found = select(EXACT_RUNS, given)
    assert found.select("job_id", "outcome").rows() == [("7", outcome), ("8", outcome)]
    assert found["step_us"].to_list() == [10_000_000] * 2
    assert (found["last_step"] - found["first_step"]).to_list() == [6, 6]
    assert found["step_count"].to_list() == [7, 7]
    assert found["grid_started_at"].to_list() == [at("09:59:50")] * 2


@pytest.mark.parametrize(
    ("flag", "first", "last", "outcome"),
    [
        ("lost_scrapes", "09:50:00", "10:00:10", "incomplete"),
        ("lost_scrapes", "10:00:10", "10:00:50", "measured"),
        ("restarted", "09:50:00", "10:00:10", "measured"),
    ],
)
def test_run_started_during_lost_scrapes_is_incomplete(
    select: Select, flag: str, first: str, last: str, outcome: str
) -> None:
    gaps = f"filesystem is_job_scrape interval_started_at interval_ended_at flag \n lake yes {first} {last} {flag}"
    given = {
        RUNS: "job_id started_at ended_at filesystem \n 7 10:00:00 10:01:00 lake",
        "samples.run_counter_deltas": "job_id started_at filesystem is_sure is_alone \n 7 10:00:00 lake yes yes",
        DAYS: "filesystem scraped_on interval_s coverage_started_at coverage_ended_at \n lake 9 10 09:00:00 11:00:00",
        GAPS: gaps,
    }
    assert select(EXACT_RUNS, given)["outcome"].to_list() == [outcome]


def test_volumes_include_late_deltas_and_peaks_are_of_steps(select: Select) -> None:
    given = {
        "samples.exact_runs": "job_id started_at filesystem interval_s step_count \n 7 10:00:00 lake 10 2",
        "samples.exact_samples": """
            job_id started_at filesystem direction sample_bytes_per_s
            7      10:00:00   lake       read      .,0
            7      10:00:00   lake       write     1,3
            """,
        "samples.run_counter_deltas": """
            job_id started_at filesystem written_bytes read_bytes
            7      10:00:00   lake       40            0
            7      10:00:00   lake       20            0
            """,
    }
    expected = """
        direction volume_bytes mean_bytes_per_s peak_bytes_per_s missing_ratio
        read      0            0                0                0.5
        write     60           3                3                0
        """
    expect(select(EXACT_IO, given), expected)
