"""Test stage.repeated_polls: duplicate polls of a controller and instant are merged, and conflicts are counted."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.polls import REPEATED_POLLS
from tests.sql.given import Select, expect, rows, shuffled

POLLS = "landed.polls"


def test_single_poll_is_not_repeated(select: Select) -> None:
    polls = """
        polled_at  filesystem  controller  read_bytes_per_s
        10:00:00   a           c1          1
        10:00:02   a           c1          1
        10:00:00   a           c2          1
        10:00:00   b           c1          1
        """
    found = select(REPEATED_POLLS, {POLLS: polls})
    assert found.is_empty()


def test_identical_polls_are_merged(select: Select) -> None:
    polls = """
        controller  read_bytes_per_s  write_bytes_per_s
        c1          10                20
        c1          10                20
        c1          10.0000000001     20
        """
    expected = """
        controller  read_bytes_per_s  write_bytes_per_s  duplicate_poll_count  conflicting_poll_count
        c1          10                20                 2                     0
        """
    expect(select(REPEATED_POLLS, {POLLS: polls}), expected)


def test_first_landed_of_conflicting_polls_is_kept(select: Select) -> None:
    polls = rows(
        POLLS,
        """
        part_order  part_row  interval_s  read_bytes_per_s  write_bytes_per_s
        1           0         2           7                 7
        0           5         2           3                 4
        0           2         5           1                 2
        1           1         5           1                 2
        """,
    )
    for disordered in shuffled(polls):
        expect(
            select(REPEATED_POLLS, {POLLS: disordered}),
            """
            interval_s  read_bytes_per_s  write_bytes_per_s  duplicate_poll_count  conflicting_poll_count
            5           1                 2                  1                     2
            """,
        )


def test_value_takes_precedence_over_gap_without_conflict(select: Select) -> None:
    polls = """
        part_order  controller  read_bytes_per_s  write_bytes_per_s  flag
        0           c1          .                 .                  missing
        1           c1          8                 9                  .
        2           c1          .                 .                  reset
        0           c2          .                 .                  missing
        1           c2          .                 .                  missing
        """
    expected = """
        controller  read_bytes_per_s  write_bytes_per_s  duplicate_poll_count  conflicting_poll_count
        c1          8                 9                  2                     0
        c2          .                 .                  1                     0
        """
    expect(select(REPEATED_POLLS, {POLLS: polls}), expected)


def test_poll_with_a_missing_direction_conflicts(select: Select) -> None:
    polls = """
        read_bytes_per_s  write_bytes_per_s
        8                 .
        8                 0
        """
    expect(select(REPEATED_POLLS, {POLLS: polls}), "read_bytes_per_s write_bytes_per_s conflicting_poll_count \n 8 . 1")


def test_controllers_are_distinguished_by_filesystem(select: Select) -> None:
    polls = """
        filesystem  controller  polled_at  read_bytes_per_s
        b           c1          10:00:00   1
        a           c1          10:00:00   2
        b           c1          10:00:00   1
        a           c1          10:00:00   3
        a           c1          09:00:00   4
        a           c1          09:00:00   4
        """
    expected = """
        filesystem  polled_at  read_bytes_per_s  duplicate_poll_count  conflicting_poll_count
        a           09:00:00   4                 1                     0
        a           10:00:00   2                 0                     1
        b           10:00:00   1                 1                     0
        """
    expect(select(REPEATED_POLLS, {POLLS: polls}), expected)


def test_absurd_rates_are_compared_like_others(select: Select) -> None:
    polls = rows(POLLS, "read_bytes_per_s write_bytes_per_s \n 1e300 1 \n 1e300 1 \n 1e308 1")
    found = select(REPEATED_POLLS, {POLLS: polls})
    expect(found, "read_bytes_per_s duplicate_poll_count conflicting_poll_count \n 1e300 1 1")


def test_every_poll_is_counted_once(select: Select) -> None:
    polls = rows(POLLS, "read_bytes_per_s \n" + "\n".join(f"{number % 3}" for number in range(40)))
    found = select(REPEATED_POLLS, {POLLS: polls})
    counted = found.select(pl.sum_horizontal("duplicate_poll_count", "conflicting_poll_count") + 1).item()
    assert counted == polls.height


def test_operations_are_those_of_the_used_poll(select: Select) -> None:
    polls = "part_row read_bytes_per_s write_bytes_per_s read_iops write_iops \n 0 . . 7 7 \n 1 5 5 3 ."
    expect(select(REPEATED_POLLS, {POLLS: polls}), "read_bytes_per_s read_iops write_iops \n 5 3 .")
