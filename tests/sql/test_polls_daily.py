"""Test stage.polls_daily: a row per day of polls, with its missing ratio."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from iosig.warehouse.contracts.polls import POLLS_DAILY
from tests.sql.given import DAY, Select, expect

POLLS = "landed.polls"
TICKS = "stage.poll_ticks"


def test_most_common_interval_determines_expected_polls(select: Select) -> None:
    ticks = """
        filesystem  polled_at       interval_s  controller_count  read_bytes  written_bytes
        a           10:00:01        2           2                 10          .
        a           10:00:03        2           1                 30          2
        a           10:00:13        10          2                 50          50
        b           10:00:07.5      5           1                 .           .
        """
    found = select(POLLS_DAILY, {POLLS: "filesystem controller \n a c1 \n a c2 \n a c1 \n b c1", TICKS: ticks})
    expected = """
        filesystem  interval_s  grid_phase_s  controller_count  poll_count  expected_poll_count  read_bytes
        a           2           1             2                 5           86400                90
        b           5           2.5           1                 1           17280                .
        """
    expect(found, expected)
    expect(found.head(1), "written_bytes peak_bytes_per_s missing_ratio \n 52 16 " + str(1 - 5 / 86400))
    expect(found.tail(1), "written_bytes peak_bytes_per_s missing_ratio \n .  0  " + str(1 - 1 / 17280))


def test_smallest_interval_and_phase_win_ties(select: Select) -> None:
    ticks = """
        polled_at   interval_s  controller_count
        10:00:01.5  5           1
        10:00:01    2           1
        """
    found = select(POLLS_DAILY, {POLLS: "controller \n c1", TICKS: ticks})
    # Both instants vote for the phase on a grid of two seconds.
    expect(found, "interval_s grid_phase_s \n 2 1")


def test_counts_of_faulty_polls_are_summed(select: Select) -> None:
    ticks = """
        polled_at  interval_s  gap_poll_count  duplicate_poll_count  conflicting_poll_count  implausible_poll_count
        10:00:00   2           1               2                     3                       4
        10:00:02   2           10              20                    30                      40
        """
    expected = """
        poll_count  gap_poll_count  duplicate_poll_count  conflicting_poll_count  implausible_poll_count  missing_ratio
        0           11              22                    33                      44                      1
        """
    expect(select(POLLS_DAILY, {POLLS: "controller \n c1", TICKS: ticks}), expected)


def test_surplus_polls_have_a_missing_ratio_of_zero(select: Select) -> None:
    ticks = """
        polled_at  interval_s  controller_count
        06:00:00   43200       1
        12:00:00   43200       1
        18:00:00   43200       1
        """
    found = select(POLLS_DAILY, {POLLS: "controller \n c1", TICKS: ticks})
    expect(found, "poll_count expected_poll_count missing_ratio \n 3 2 0")


def test_expected_polls_include_a_poll_per_controller(select: Select) -> None:
    ticks = "polled_at interval_s controller_count \n 06:00:00 200000 {}"
    for count, missing_ratio in ((1, 0.5), (0, 1)):
        given = {POLLS: "controller \n c1 \n c2", TICKS: ticks.format(count)}
        expect(select(POLLS_DAILY, given), f"expected_poll_count missing_ratio \n 2 {missing_ratio}")


def test_rates_of_controllers_at_same_instant_are_summed_for_peak(select: Select) -> None:
    ticks = """
        polled_at  interval_s  controller_count  read_bytes  written_bytes
        10:00:00   2           1                 20          20
        10:00:00   5           1                 100         .
        10:00:02   2           1                 79          .
        """
    expect(select(POLLS_DAILY, {POLLS: "controller \n c1 \n c2", TICKS: ticks}), "peak_bytes_per_s \n 40")


def test_empty_input_yields_no_days(select: Select) -> None:
    assert select(POLLS_DAILY, {}).is_empty()


_HOURLY = "polled_at interval_s controller_count \n" + "\n".join(f"{hour:02}:00:00 3600 1" for hour in range(6, 18))


@pytest.mark.parametrize(
    ("span", "expected_poll_count", "is_partial_day"),
    [
        ((DAY, DAY + timedelta(days=3)), 18, "yes"),
        ((DAY - timedelta(days=3), DAY), 18, "yes"),
        ((DAY, DAY), 12, "yes"),
        ((DAY - timedelta(days=3), DAY + timedelta(days=3)), 24, "no"),
        ((None, None), 24, "no"),
    ],
)
def test_only_covered_time_counts_on_first_and_last_day(
    select: Select, span: tuple[Any, Any], expected_poll_count: int, is_partial_day: str
) -> None:
    given = {POLLS: "controller \n c1", TICKS: _HOURLY}
    found = select(POLLS_DAILY, given, first_polled_on=span[0], last_polled_on=span[1])
    missing_ratio = 1 - 12 / expected_poll_count
    expect(
        found,
        f"expected_poll_count missing_ratio is_partial_day \n {expected_poll_count} {missing_ratio} {is_partial_day}",
    )


def test_first_day_of_a_filesystem_is_partial(select: Select) -> None:
    controllers = "filesystem controller \n new c1 \n old c2"
    ticks = "polled_at filesystem interval_s controller_count \n" + "\n".join(
        f"{hour:02}:00:00 {name} 3600 1" for name in ("new", "old") for hour in range(6, 24)
    )
    span = {"first_polled_on": DAY - timedelta(days=3), "last_polled_on": DAY + timedelta(days=3)}
    found = select(POLLS_DAILY, {POLLS: controllers, TICKS: ticks}, beginning_filesystems=["new"], **span)
    expect(found, "filesystem missing_ratio is_partial_day \n new 0 yes \n old 0.25 no")


def test_missing_polls_within_a_partial_day_are_counted(select: Select) -> None:
    ticks = "polled_at interval_s controller_count \n 06:00:00 3600 1 \n 17:00:00 3600 1"
    found = select(POLLS_DAILY, {POLLS: "controller \n c1", TICKS: ticks}, first_polled_on=DAY, last_polled_on=DAY)
    expect(found, f"expected_poll_count missing_ratio \n 12 {1 - 2 / 12}")


def test_complete_first_day_is_not_partial(select: Select) -> None:
    ticks = "polled_at interval_s controller_count \n" + "\n".join(f"{hour:02}:59:59 3600 1" for hour in range(24))
    found = select(POLLS_DAILY, {POLLS: "controller \n c1", TICKS: ticks}, first_polled_on=DAY, last_polled_on=DAY)
    expect(found, "expected_poll_count missing_ratio is_partial_day \n 24 0 no")
