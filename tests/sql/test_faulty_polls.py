"""Test stage.faulty_polls: polls excluded from sums are listed with the rule that they violate."""

from __future__ import annotations

import json

from iosig.warehouse.contracts.polls import FAULTY_POLLS
from tests.sql.given import DAY, Select, expect

POLLS = "landed.polls"
REPEATED = "stage.repeated_polls"


def test_rate_above_limit_is_faulty_and_rate_at_limit_is_not(select: Select) -> None:
    polls = """
        controller  read_bytes_per_s  write_bytes_per_s
        at          100               100
        reads       100.5             1
        writes      1                 101
        only        .                 101
        gap         .                 .
        """
    found = select(FAULTY_POLLS, {POLLS: polls}, max_controller_bytes_per_s=100.0)
    assert [json.loads(row)["controller"] for row in found["row_json"]] == ["only", "reads", "writes"]
    assert found["rule"].unique().to_list() == ["rate_within_limit"]
    assert found["table_name"].unique().to_list() == ["polls"]
    assert found["day"].unique().to_list() == [DAY]


def test_without_limit_only_overflowing_rates_are_faulty(select: Select) -> None:
    polls = """
        controller  interval_s  read_bytes_per_s  write_bytes_per_s
        fast        2           1e12              1e12
        absurd      2           1                 1e300
        long        1e9         1e9               .
        """
    found = select(FAULTY_POLLS, {POLLS: polls})
    assert [json.loads(row)["controller"] for row in found["row_json"]] == ["absurd", "long"]


def test_polls_that_contradict_the_kept_poll_are_listed(select: Select) -> None:
    polls = """
        landing_id  controller  read_bytes_per_s  write_bytes_per_s
        first       c1          1                 2
        second      c1          1                 2
        third       c1          9                 2
        fourth      c1          1                 .
        gap         c1          .                 .
        first       c2          5                 5
        second      c2          5                 5
        """
    repeated = """
        controller  read_bytes_per_s  write_bytes_per_s  conflicting_poll_count
        c1          1                 2                  2
        c2          5                 5                  0
        """
    found = select(FAULTY_POLLS, {POLLS: polls, REPEATED: repeated})
    expect(found, "rule \n polls_agree \n polls_agree")
    assert {json.loads(row)["landing_id"] for row in found["row_json"]} == {"third", "fourth"}


def test_poll_may_violate_both_rules(select: Select) -> None:
    found = select(
        FAULTY_POLLS,
        {
            POLLS: "landing_id read_bytes_per_s \n a 1 \n b 999",
            REPEATED: "read_bytes_per_s conflicting_poll_count \n 1 1",
        },
        max_controller_bytes_per_s=100.0,
    )
    assert found["rule"].to_list() == ["polls_agree", "rate_within_limit"]


def test_row_is_listed_as_landed(select: Select) -> None:
    polls = """
        landing_id  filesystem  controller  polled_at       interval_s  read_bytes_per_s  write_bytes_per_s
        abc         lake        c'"1        10T00:00:00.5   2.5         101.25            .
        """
    found = select(FAULTY_POLLS, {POLLS: polls}, max_controller_bytes_per_s=100.0)
    assert found["day"].item().day == 10
    assert json.loads(found["row_json"].item()) == {
        "landing_id": "abc",
        "filesystem": "lake",
        "controller": "c'\"1",
        "polled_at": "2018-02-10 00:00:00.5+00",
        "interval_s": 2.5,
        "read_bytes_per_s": 101.25,
        "write_bytes_per_s": None,
    }


def test_duplicate_faulty_poll_is_a_single_row(select: Select) -> None:
    polls = "read_bytes_per_s \n 999 \n 999"
    assert select(FAULTY_POLLS, {POLLS: polls}, max_controller_bytes_per_s=100.0).height == 1
