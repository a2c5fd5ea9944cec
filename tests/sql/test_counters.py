"""Test stage.counter_job_totals, counters_daily and counter_polls: sums of counters that servers keep by job."""

from __future__ import annotations

from datetime import timedelta

import pytest

from iosig.warehouse.contracts.counters import COUNTER_JOB_TOTALS, COUNTERS_DAILY
from iosig.warehouse.contracts.polls import COUNTER_POLLS
from tests.sql.given import DAY, Select, expect, rows, shuffled

RISES, GAPS, KEYS = "stage.counter_deltas", "stage.counter_gaps", "stage.job_keys"
SCRAPES, TARGETS, JOBS = "stage.timed_scrapes", "stage.counter_targets", "stage.counter_job_totals"
READ = """
    component target is_job_scrape previous_at scraped_at
    ost       a      yes           .           00:00:05
    ost       a      yes           00:00:05    00:00:15
    ost       a      yes           00:00:15    00:00:25
    ost       b      yes           00:00:07    00:00:25
    ost       b      no            00:00:07    00:00:25
    """


# ---- jobs


def test_job_totals_are_sums_over_targets(select: Select) -> None:
    given = {
        RISES: """
            job_key target interval_started_at  interval_ended_at read_bytes written_bytes open_count flag
            7       a      10:00:00 10:00:10 1          .             .          .
            7       b      .        09:00:00 2          .             3          first_seen
            7       b      10:00:00 10:00:30 .          .             4          decrease
            8       a      10:00:00 10:00:10 5          6             .          .
            .       a      10:00:00 10:00:10 99         99            99         .
            """,
        KEYS: "job_key key_kind scheduler_id \n 7 job 7 \n 8 unknown .",
    }
    expected = """
        job_key key_kind scheduler_id interval_started_at  interval_ended_at unknown_delta_count read_bytes \
            written_bytes open_count
        7       job      7            09:00:00 10:00:30 2                  3          0             7
        8       unknown  .            10:00:00 10:00:10 0                  5          6             0
        """
    expect(select(COUNTER_JOB_TOTALS, given), expected)


# ---- days


def test_day_has_counts_of_scrapes_and_bytes_of_jobs(select: Select) -> None:
    given = {
        SCRAPES: READ,
        TARGETS: """
            target sample_count redundant_sample_count duplicate_sample_count conflicting_sample_count is_silent \
                is_overcounted
            a      5            1                  2                      3                        yes       no
            b      6            1                  0                      0                        no        no
            """,
        RISES: """
            target job_key interval_ended_at read_bytes written_bytes flag
            a      1       00:00:15 3          .             .
            b      2       00:00:25 4          5             unclear
            b      .       00:00:25 90         90            decrease
            """,
        GAPS: "target is_job_scrape interval_ended_at \n a yes 00:00:15 \n a no 00:00:15",
        JOBS: "job_key \n 1 \n 2",
    }
    expected = """
        scraped_on interval_s grid_phase_s target_count scrape_count expected_scrape_count job_key_count sample_count \
            redundant_sample_count duplicate_sample_count conflicting_sample_count unknown_delta_count gap_count \
            silent_target_count overcounted_target_count read_bytes written_bytes coverage_started_at coverage_ended_at
        9          10         5            2            4            17280                 2             11           \
            2                  2                      3                        1                  1         \
            1                   0                     7          5             00:00:05        00:00:25
        """
    expect(select(COUNTERS_DAILY, given, days=[DAY]), expected)


def test_day_without_deltas_has_zero_counts(select: Select) -> None:
    found = select(COUNTERS_DAILY, {SCRAPES: READ}, days=[DAY])
    expect(found, "job_key_count sample_count unknown_delta_count gap_count read_bytes \n 0 0 0 0 0")
    assert found["missing_ratio"].to_list() == [pytest.approx(1 - 4 / 17280)]


@pytest.mark.parametrize(
    ("is_first", "is_last", "expected"),
    [(True, True, 1), (False, True, 7), (True, False, 8634), (False, False, 8640)],
)
def test_expected_scrapes_cover_only_part_of_first_and_last_day(
    select: Select, is_first: bool, is_last: bool, expected: int
) -> None:
    other = DAY - timedelta(days=9), DAY + timedelta(days=9)
    read = "is_job_scrape previous_at scraped_at \n yes . 00:01:03 \n yes 00:01:03 00:01:13"
    found = select(
        COUNTERS_DAILY,
        {SCRAPES: read},
        days=[DAY],
        first_polled_on=DAY if is_first else other[0],
        last_polled_on=DAY if is_last else other[1],
    )
    assert found["expected_scrape_count"].to_list() == [expected]
    assert 0 <= found["missing_ratio"].item() <= 1


def test_filesystem_scraped_once_has_no_row(select: Select) -> None:
    once = (
        "target is_job_scrape previous_at scraped_at \n a yes . 00:00:05 \n b yes . 00:00:05 \n a no 00:00:00 00:00:05"
    )
    assert select(COUNTERS_DAILY, {SCRAPES: once}, days=[DAY]).is_empty()


def test_shortest_of_equally_frequent_intervals_is_used(select: Select) -> None:
    scrapes = rows(
        SCRAPES,
        """
        target is_job_scrape previous_at scraped_at
        a      yes           00:00:03    00:00:33
        b      yes           00:00:03    00:00:13
        """,
    )
    for given in shuffled(scrapes):
        expect(select(COUNTERS_DAILY, {SCRAPES: given}, days=[DAY]), "interval_s grid_phase_s \n 10 3")


# ---- totals as polls


def test_totals_become_polls_between_scrapes(select: Select) -> None:
    given = {
        SCRAPES: """
            component target is_job_scrape previous_at scraped_at
            ost       a      no            .           00:00:05
            ost       a      no            00:00:05    00:00:15
            ost       a      no            00:00:15    00:00:25
            ost       a      no            00:00:25    00:00:45
            ost       a      yes           00:00:05    00:00:15
            mdt       m      no            00:00:05    00:00:15
            mdt       none   no            00:00:05    00:00:15
            """,
        TARGETS: """
            component target has_reads has_writes
            ost       a      yes       yes
            mdt       m      no        yes
            mdt       none   no        no
            """,
        RISES: """
            component target job_key interval_ended_at read_bytes written_bytes read_count write_count flag
            ost       a      .       00:00:15 100        200           10         .           .
            ost       a      7       00:00:25 999        999           999        999         .
            ost       a      .       00:00:45 40         .             .          .           decrease
            mdt       m      .       00:00:15 5          10            .          1           .
            """,
    }
    expected = """
        polled_at controller interval_s read_bytes_per_s write_bytes_per_s read_iops write_iops flag
        00:00:15  a          10         10               20                1         0          .
        00:00:15  m          10         .                1                 .         0.1        .
        00:00:25  a          10         0                0                 0         0          .
        00:00:45  a          20         .                .                 .         .          reset
        """
    expect(select(COUNTER_POLLS, given), expected)


@pytest.mark.parametrize(
    ("components", "taken"),
    [("ost mdt server client", "ost mdt"), ("client server", "server"), ("client", "client"), ("mdt client", "mdt")],
)
def test_targets_take_precedence_over_servers_over_clients(select: Select, components: str, taken: str) -> None:
    names = components.split()
    given = {
        SCRAPES: "component target is_job_scrape previous_at scraped_at filesystem \n"
        + "\n".join(f"{name} {name} no 00:00:05 00:00:15 lake" for name in names)
        + "\n client only no 00:00:05 00:00:15 pond",
        TARGETS: "component target has_reads has_writes filesystem \n"
        + "\n".join(f"{name} {name} yes no lake" for name in names)
        + "\n client only yes no pond",
    }
    found = select(COUNTER_POLLS, given)
    assert sorted(found["controller"]) == sorted([*taken.split(), "only"])


def test_polls_of_formats_without_operations_have_none(select: Select) -> None:
    given = {
        SCRAPES: "target is_job_scrape previous_at scraped_at filesystem \n a no 00:00:05 00:00:15 lake",
        TARGETS: "target has_reads has_writes filesystem \n a yes yes lake",
        RISES: """
            target filesystem job_key interval_ended_at read_bytes read_count write_count flag
            a      lake       .       00:00:15          100        .          .           .
            """,
    }
    expect(select(COUNTER_POLLS, given), "read_bytes_per_s read_iops write_iops \n 10 . .")
