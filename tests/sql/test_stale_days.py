"""Test stage.stale_days: every day with changed inputs is stale, or a release would keep outdated rows."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from iosig.warehouse.contracts.releases import STALE_DAYS
from tests.sql.given import Select

RECORDS = "landed.job_records"
SERIES = "landed.series"
EPOCH = 1518134400  # 2018-02-09T00:00:00Z


def stale(
    select: Select,
    given: dict[str, str],
    new: list[str],
    poll_days: list[int] | None = None,
    longest_interval_s: float = 2.0,
    counter_days: dict[int, float] | None = None,
) -> list[int | None]:
    """Return the stale days as sorted days of February 2018, with None last."""
    days = [date(2018, 2, number) for number in poll_days or []]
    reaches = counter_days or {}
    stale_days = select(
        STALE_DAYS,
        given,
        landings=new,
        poll_days=days,
        longest_interval_s=longest_interval_s,
        counter_days=[date(2018, 2, number) for number in reaches],
        counter_reaches_s=list(reaches.values()),
    )
    found = stale_days["ended_on"].to_list()
    assert sorted(day for day in found if day) == [day for day in found if day], "they come in order"
    return [day and day.day for day in found]


def test_only_day_of_a_new_record_is_stale(select: Select) -> None:
    records = """
        landing_id  job_id  started_at  ended_at
        old         1       7T10:00:00  7T11:00:00
        new         2       7T23:00:00  8T01:00:00
        """
    assert stale(select, {RECORDS: records}, ["new"]) == [8]
    assert stale(select, {RECORDS: records}, ["old"]) == [7]
    assert stale(select, {RECORDS: records}, ["neither"]) == []


def test_record_that_moves_the_end_makes_both_days_stale(select: Select) -> None:
    records = """
        landing_id  cluster  job_id  started_at  ended_at
        old         .        1       7T10:00:00  7T11:00:00
        new         default  1       7T10:00:00  9T11:00:00
        old         other    1       6T10:00:00  6T11:00:00
        """
    assert stale(select, {RECORDS: records}, ["new"]) == [7, 9]


def test_running_or_pending_job_makes_undated_rows_stale(select: Select) -> None:
    running = "landing_id job_id started_at ended_at \n new 1 7T10:00:00 ."
    assert stale(select, {RECORDS: running}, ["new"]) == [None]
    ended = running + "\n newer 1 7T10:00:00 7T12:00:00"
    assert stale(select, {RECORDS: ended}, ["newer"]) == [7, None]


def test_later_step_makes_day_of_its_job_stale(select: Select) -> None:
    # A job with a known numbered step is not a separate run, and steps inherit from it.
    records = """
        landing_id  job_id  started_at  ended_at
        first       1       7T10:00:00  8T11:00:00
        second      1.0     7T10:00:00  7T11:00:00
        """
    assert stale(select, {RECORDS: records}, ["second"]) == [7, 8]
    assert stale(select, {RECORDS: records}, ["first"]) == [7, 8]


@pytest.mark.parametrize(
    ("started", "ended", "expected"),
    [
        ("8T10:00:00", "8T11:00:00", [8]),
        ("7T10:00:00", "9T11:00:00", [8, 9]),
        ("7T23:00:00", "7T23:59:59", [7, 8]),
        ("7T23:00:00", "7T23:56:00", [7, 8]),
        ("7T23:00:00", "7T23:54:59", [8]),
        ("9T00:00:01", "9T00:10:00", [8]),
        ("7T10:00:00", ".", [8]),
    ],
    ids=["within", "across", "last second", "within an interval", "before", "after", "running"],
)
def test_late_polls_make_days_of_measured_runs_stale(
    select: Select, started: str, ended: str, expected: list[int]
) -> None:
    records = f"landing_id job_id started_at ended_at \n old 1 {started} {ended}"
    assert stale(select, {RECORDS: records}, ["polls"], poll_days=[8], longest_interval_s=300.0) == expected


@pytest.mark.parametrize(("reach_s", "days"), [(600.0, [7]), (599.0, []), (90_000.0, [6, 7])])
def test_counters_make_days_within_their_reach_stale(select: Select, reach_s: float, days: list[int]) -> None:
    records = """
        landing_id  job_id  started_at  ended_at
        old         1       7T10:00:00  7T23:50:00
        old         2       6T10:00:00  6T23:55:00
        """
    assert stale(select, {RECORDS: records}, ["new"], counter_days={8: reach_s}) == days


def test_new_series_makes_day_of_its_end_stale(select: Select) -> None:
    series = f"""
        landing_id  subject_id  time_s
        new         a           {EPOCH - 1}
        new         a           {EPOCH + 1}
        old         b           {EPOCH + 5 * 86400}
        new         c           30.5
        """
    assert stale(select, {SERIES: series}, ["new"]) == [9, None]
    assert stale(select, {SERIES: series}, ["old"]) == [14]


def test_extended_series_makes_day_of_its_old_end_stale(select: Select) -> None:
    series = f"""
        landing_id  subject_id  time_s
        older       a           {EPOCH - 86400}
        old         a           {EPOCH}
        new         a           {EPOCH + 86400}
        """
    assert {9, 10} <= set(stale(select, {SERIES: series}, ["new"]))


def test_series_outside_calendar_has_no_day(select: Select) -> None:
    # Milliseconds since 1970 read as seconds, and an absurd value.
    for time_s in ("1518134400000", "1e300"):
        series = f"landing_id subject_id time_s \n new a {time_s}"
        assert stale(select, {SERIES: series}, ["new"]) == [None]


def test_empty_input_makes_only_poll_days_stale(select: Select) -> None:
    nothing: dict[str, Any] = {}
    assert stale(select, nothing, ["new"]) == []
    assert stale(select, nothing, [], poll_days=[8]) == [8]


# ---- traces

TRACES = "landed.traces"


def test_day_of_a_new_trace_is_stale(select: Select) -> None:
    traces = """
        landing_id  trace_id  ended_on
        old         a         7
        new         b         8
        new         c         .
        """
    assert stale(select, {TRACES: traces}, ["new"]) == [8, None]


def test_new_job_makes_days_of_matching_traces_stale(select: Select) -> None:
    records = """
        landing_id  job_id  user  started_at  ended_at
        new         7.0     .     7T10:00:00  8T11:00:00
        new         8       ann   7T10:00:00  .
        old         9       bob   7T10:00:00  7T11:00:00
        """
    traces = """
        landing_id  trace_id  ended_on  job_id  user  uid  started_at  ended_at
        old         of_id     6         7       .     .    7T09:59:30  7T10:30:00
        old         too_soon  5         7       .     .    7T09:58:30  7T10:30:00
        old         of_user   4         99      ann   .    7T10:01:00  7T10:30:00
        old         of_old    3         9       bob   .    7T10:01:00  7T10:30:00
        old         no_time   2         7       .     .    .           .
        """
    assert stale(select, {RECORDS: records, TRACES: traces}, ["new"]) == [2, 4, 6, 8, None]
