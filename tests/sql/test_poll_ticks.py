"""Test stage.poll_ticks: sums over the controllers of a file system, and counts of faulty polls."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.polls import POLL_TICKS
from tests.sql.given import Select, expect, rows, shuffled

POLLS = "landed.polls"
REPEATED = "stage.repeated_polls"


def test_bytes_of_controllers_are_summed_as_integers(select: Select) -> None:
    polls = """
        polled_at  filesystem  controller  interval_s  read_bytes_per_s  write_bytes_per_s
        10:00:02   b           c1          2           10                1
        10:00:00   a           c1          2           10                1
        10:00:00   a           c2          2           10.3              0
        10:00:00   a           c3          5           0.1               0.05
        """
    expected = """
        polled_on  filesystem  polled_at  interval_s  controller_count  read_bytes  written_bytes  gap_poll_count
        9          a           10:00:00   2           2                 41          2              0
        9          a           10:00:00   5           1                 1           0              0
        9          b           10:00:02   2           1                 20          2              0
        """
    expect(select(POLL_TICKS, {POLLS: polls}), expected)


def test_gap_is_null_and_not_zero(select: Select) -> None:
    polls = """
        polled_at  controller  read_bytes_per_s  write_bytes_per_s  flag
        10:00:00   c1          .                 .                  missing
        10:00:02   c1          .                 3                  .
        10:00:02   c2          .                 4                  .
        10:00:04   c1          0                 .                  .
        10:00:04   c2          .                 .                  reset
        """
    expected = """
        polled_at  controller_count  read_bytes  written_bytes  gap_poll_count
        10:00:00   0                 .           .              1
        10:00:02   2                 .           14             0
        10:00:04   1                 0           .              1
        """
    expect(select(POLL_TICKS, {POLLS: polls}), expected)


def test_implausible_poll_is_excluded_from_sums(select: Select) -> None:
    polls = """
        controller  read_bytes_per_s  write_bytes_per_s
        c1          100               100
        c2          101               1
        c3          .                 102
        """
    limited = select(POLL_TICKS, {POLLS: polls}, max_controller_bytes_per_s=100.0)
    expect(
        limited,
        "controller_count read_bytes written_bytes implausible_poll_count \n 1 200 200 2",
    )
    unlimited = select(POLL_TICKS, {POLLS: polls})
    expect(
        unlimited,
        "controller_count read_bytes written_bytes implausible_poll_count \n 3 402 406 0",
    )


def test_overflowing_bytes_are_implausible_without_a_limit(select: Select) -> None:
    polls = """
        controller  interval_s  read_bytes_per_s  write_bytes_per_s
        c1          2           1e300             1
        c2          2           3                 1e18
        c3          2           1                 1
        """
    found = select(POLL_TICKS, {POLLS: polls})
    expect(
        found,
        "controller_count read_bytes written_bytes implausible_poll_count \n 1 2 2 2",
    )


def test_repeated_polls_count_once(select: Select) -> None:
    polls = """
        controller  read_bytes_per_s  write_bytes_per_s
        c1          1                 1
        c1          1                 1
        c1          5                 5
        c2          10                10
        """
    repeated = """
        controller  read_bytes_per_s  write_bytes_per_s  duplicate_poll_count  conflicting_poll_count
        c1          1                 1                  1                     1
        """
    expected = """
        controller_count  read_bytes  written_bytes  duplicate_poll_count  conflicting_poll_count
        2                 22          22             1                     1
        """
    expect(select(POLL_TICKS, {POLLS: polls, REPEATED: repeated}), expected)


def test_day_is_that_of_the_right_edge(select: Select) -> None:
    polls = "polled_at read_bytes_per_s \n 9T23:59:59.999999 1 \n 10T00:00:00 1"
    expect(select(POLL_TICKS, {POLLS: polls}), "polled_on \n 9 \n 10")


def test_order_of_rows_has_no_effect(select: Select) -> None:
    # Floating-point sums of these values would differ in their last digits.
    lines = [f"c{number} {number * 1e7 + 1 / (number + 3)} {1 / (number + 1)}" for number in range(60)]
    polls = rows(POLLS, "controller read_bytes_per_s write_bytes_per_s \n" + "\n".join(lines))
    first = select(POLL_TICKS, {POLLS: polls})
    assert all(select(POLL_TICKS, {POLLS: other}).equals(first) for other in shuffled(polls))
    exact = polls.select((pl.col("read_bytes_per_s") * 2).round(mode="half_away_from_zero").cast(pl.Int64).sum())
    assert first["read_bytes"].item() == exact.item()


def test_operations_are_summed_and_unknown_ones_are_null(select: Select) -> None:
    polls = """
        polled_at controller interval_s read_bytes_per_s write_bytes_per_s read_iops write_iops flag
        10:00:00  c1         2          10               1                 3         .          .
        10:00:00  c2         2          10               1                 4.2       .          .
        10:00:02  c1         2          10               1                 .         .          .
        10:00:04  c1         2          10               1                 0         1e300      .
        10:00:06  c1         2          .                .                 5         5          missing
        """
    expected = """
        polled_at  controller_count  read_count  write_count
        10:00:00   2                 14          .
        10:00:02   1                 .           .
        10:00:04   1                 .           .
        10:00:06   0                 .           .
        """
    expect(select(POLL_TICKS, {POLLS: polls}), expected)


def test_operations_of_the_poll_that_is_used_count(select: Select) -> None:
    polls = "polled_at controller \n 10:00:00 c1 \n 10:00:00 c1"
    repeated = "polled_at controller interval_s read_bytes_per_s read_iops write_iops \n 10:00:00 c1 2 1 3 ."
    expect(select(POLL_TICKS, {POLLS: polls, REPEATED: repeated}), "read_count write_count \n 6 .")
