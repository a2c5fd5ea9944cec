"""Test samples.runs: the runs to measure, their file systems and their grids."""

from __future__ import annotations

from iosig.warehouse.contracts.samples import RUNS
from tests.sql.given import DAY, Select, at, expect, rows

JOBS = "stage.jobs"
POLLS_DAILY = "stage.polls_daily"
PARTITIONS = "settings.partition_filesystems"
TWO_FILESYSTEMS = "filesystem controller_count \n lake 3 \n pond 1"
STEPS = ("first_step", "last_step")


def microseconds(word: str) -> int:
    return int(at(word).timestamp() * 1e6)


def test_known_filesystem_of_job_is_used(select: Select) -> None:
    jobs = """
        job_id  filesystem  partition
        own     lake        mapped
        other   sea         mapped
        """
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: TWO_FILESYSTEMS, PARTITIONS: "partition filesystem \n mapped pond"})
    # No polls of `sea` were landed, so its run has no grid.
    expect(found, "job_id filesystem expected_controller_count \n other sea . \n own lake 3")


def test_unknown_filesystem_is_replaced_by_partition_or_all(select: Select) -> None:
    found = select(
        RUNS,
        {
            JOBS: """
            job_id  filesystem  partition
            both    .           wide
            one     .           narrow
            all     .           unmapped
            none    .           .
            """,
            POLLS_DAILY: TWO_FILESYSTEMS,
            PARTITIONS: "partition filesystem \n wide pond \n wide sea \n narrow lake",
        },
    )
    expect(
        found,
        """
        job_id  filesystem  expected_controller_count
        all     lake        3
        all     pond        1
        both    pond        1
        both    sea         .
        none    lake        3
        none    pond        1
        one     lake        3
        """,
    )


def test_run_without_polls_has_no_filesystem_and_no_grid(select: Select) -> None:
    found = select(RUNS, {JOBS: "job_id ended_at \n 1 12:00:00"})
    expect(found, "job_id filesystem interval_s step_us first_step last_step \n 1 . . . . .")


def test_grid_has_steps_that_end_in_the_run_or_a_step_later(select: Select) -> None:
    jobs = """
        job_id  started_at  ended_at
        a       10:00:00    10:00:00
        b       10:00:00    10:00:01
        c       10:00:00    10:00:02
        d       10:00:00    10:00:02.000001
        e       10:00:00    10:00:09
        f       10:00:01    10:00:01
        """
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: "controller_count \n 1"})
    edges = {
        row["job_id"]: [(row[name] * row["step_us"] - microseconds("10:00:00")) / 1e6 for name in STEPS]
        for row in found.iter_rows(named=True)
    }
    assert edges == {"a": [0, 0], "b": [0, 2], "c": [0, 2], "d": [0, 4], "e": [0, 10], "f": [2, 2]}


def test_grid_is_aligned_with_polls(select: Select) -> None:
    jobs = "started_at ended_at \n 10:00:00 10:00:05"
    polls_daily = "interval_s grid_phase_s controller_count \n 5 3.5 1"
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: polls_daily})
    expect(found, "interval_s step_us phase_us \n 5 5000000 3500000")
    edges = [found[name].item() * 5_000_000 + 3_500_000 for name in STEPS]
    # [10:00:00, 10:00:10) contains the edges at 3.5 s and 8.5 s.
    assert edges == [microseconds("10:00:03.5"), microseconds("10:00:08.5")]


def test_run_over_days_has_last_interval_and_most_controllers(select: Select) -> None:
    jobs = "started_at ended_at ended_on \n 8T10:00:00 10T10:00:00 10"
    polls_daily = """
        polled_on  interval_s  controller_count
        7          9           99
        8          2           4
        9          5           3
        11         9           99
        """
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: polls_daily})
    expect(found, "interval_s expected_controller_count \n 5 4")


def test_poll_ending_after_midnight_measures_run_ending_before(select: Select) -> None:
    # Its right edge, at 00:00:00, lies within an interval after the end.
    jobs = """
        job_id  started_at  ended_at
        late    23:00:00    23:59:58.5
        early   23:00:00    23:59:57
        """
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: "polled_on controller_count \n 10 1"})
    expect(found, "job_id interval_s \n early . \n late 2")
    both = "polled_on interval_s controller_count \n 9 5 1 \n 10 2 3"
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: both})
    expect(found, "job_id interval_s expected_controller_count \n early 5 1 \n late 5 3")


def test_only_application_runs_with_valid_times_are_selected(select: Select) -> None:
    jobs = """
        job_id    started_at  ended_at  is_application_run
        good      10:00:00    11:00:00  yes
        backward  10:00:00    09:00:00  yes
        whole     10:00:00    11:00:00  no
        """
    assert select(RUNS, {JOBS: jobs})["job_id"].to_list() == ["good"]


def test_runs_overlapping_runs_of_the_day_are_selected(select: Select) -> None:
    jobs = """
        job_id   started_at   ended_at    ended_on
        today    9T10:00:00   9T12:00:00  9
        before   8T10:00:00   8T11:00:00  8
        touches  9T08:00:00   10T08:00:00 10
        running  9T11:00:00   .           .
        after    9T12:00:01   10T08:00:00 10
        """
    found = select(RUNS, {JOBS: jobs}, days=[DAY])
    assert sorted(found["job_id"]) == ["running", "today", "touches"]
    assert select(RUNS, {JOBS: jobs}, days=[DAY.replace(day=20)]).is_empty()


def test_running_job_has_no_grid(select: Select) -> None:
    jobs = "job_id started_at ended_at ended_on \n running 10:00:00 . . \n today 10:00:00 12:00:00 9"
    found = select(RUNS, {JOBS: jobs, POLLS_DAILY: "controller_count \n 1"})
    expect(found.filter(found["job_id"] == "running"), "filesystem step_us first_step \n filesystem . .")


def test_application_requires_all_of_its_parts(select: Select) -> None:
    jobs = rows(
        JOBS,
        """
        job_id  user  application  node_count
        1       ann   vasp         8
        2       .     vasp         8
        3       ann   .            8
        4       ann   vasp         .
        """,
    )
    found = select(RUNS, {JOBS: jobs})
    expect(found, "job_id application_id \n 1 ann/vasp/8 \n 2 . \n 3 . \n 4 .")
