"""Counters made rises: each case's answer is plain, and whole days sum to what was moved, to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from iosig.transforms import counters
from iosig.transforms.counters import CounterParams, Rises
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.sources.rows.counters import polled
from tests.budget import examples
from tests.naive.counters import Server

_START = datetime(2026, 3, 2, tzinfo=UTC)


def at(second: float) -> datetime:
    return _START + timedelta(seconds=second)


def scrapes(seconds: Sequence[float], *, collector: str | None = None, of_jobs: bool = True) -> pl.DataFrame:
    rows = [
        {"scraped_at": at(second), "filesystem": "work", "component": "ost", "target": "o0", "collector": collector,
         "entry_count": 1, "is_job_scrape": of_jobs}
        for second in seconds
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=frames.schema(SCRAPES))


def samples(rows: Sequence[tuple[float, str | None, int, float | None]], collector: str | None = None) -> pl.DataFrame:
    """Return readings: scraped at, job, bytes written, since when they count."""
    told = [
        {"scraped_at": at(second), "sampled_at": at(second), "filesystem": "work", "component": "ost", "target": "o0",
         "job_key": key, "collector": collector, "counted_since_at": None if since is None else at(since),
         "total_written_bytes": value}
        for second, key, value, since in rows
    ]  # fmt: skip
    return pl.DataFrame(told, schema=frames.schema(COUNTER_SAMPLES))


def risen(
    read: pl.DataFrame,
    timed: pl.DataFrame,
    before: pl.DataFrame | None = None,
    ends: pl.DataFrame | None = None,
    params: CounterParams | None = None,
) -> Rises:
    known = counters.timed_scrapes(timed, frames.empty(SCRAPES) if before is None else before)
    last = frames.empty(COUNTER_SAMPLES).drop("collector") if ends is None else ends
    return counters.rises(read, known, last, polled, params)


def told(found: Rises) -> list[tuple[str | None, float | None, float, int | None, str | None]]:
    """Return the rises: job, from, until, bytes written, flag."""
    start = pl.lit(_START)
    return found.rows.sort("job_key", "until_at").select(
        "job_key", (pl.col("from_at") - start).dt.total_seconds().cast(pl.Float64),
        (pl.col("until_at") - start).dt.total_seconds().cast(pl.Float64), "written_bytes", "flag",
    ).rows()  # fmt: skip


def test_an_entry_that_comes_after_a_scrape_begins_at_0() -> None:
    found = risen(samples([(0, "1", 5, None), (10, "1", 7, None), (20, "2", 9, None)]), scrapes([0, 10, 20]))
    assert told(found) == [("1", None, 0, None, "first_seen"), ("1", 0, 10, 2, None), ("2", 10, 20, 9, None)]
    assert found.gaps.is_empty()


def test_what_did_not_change_has_no_row_and_its_rise_is_since_the_scrape_before() -> None:
    found = risen(samples([(0, "1", 5, 0), (30, "1", 7, 0)]), scrapes([0, 10, 20, 30]))
    assert told(found)[1:] == [("1", 20, 30, 2, None)]


@pytest.mark.parametrize("since", [(None, None), (0, 700)])
def test_a_dropped_entry_begins_at_0_and_nothing_is_lost(since: tuple[float | None, float | None]) -> None:
    read = samples([(0, "1", 5, since[0]), (10, "1", 8, since[0]), (710, "1", 4, since[1])])
    found = risen(read, scrapes([0, 10, *range(60, 700, 60), 710]))
    assert told(found)[1:] == [("1", 0, 10, 3, None), ("1", 660, 710, 4, None)]


def test_an_entry_that_says_it_began_anew_did_so_though_it_is_larger() -> None:
    found = risen(samples([(0, "1", 5, 0), (10, "1", 8, 0), (710, "1", 9, 705)]), scrapes([0, 10, *range(60, 720, 50)]))
    assert told(found)[-1] == ("1", 660, 710, 9, None)


def test_entries_in_use_that_begin_anew_tell_of_a_restart_which_the_others_share() -> None:
    rows = [(0.0, "1", 5, 0.0), (0, "2", 5, 0), (700, "2", 6, 0), (710, "1", 3, 705), (710, "2", 1, 706)]
    found = risen(samples(rows), scrapes([0, 60, 120, 700, 710]), params=CounterParams(cleanup_interval_s=600))
    assert told(found)[1:] == [
        ("1", 700, 710, 3, "restarted"),
        ("2", None, 0, None, "first_seen"),
        ("2", 120, 700, 1, None),
        ("2", 700, 710, 1, "restarted"),
    ]
    assert found.gaps.select("flag", "until_at").rows() == [("restarted", at(710))]


def counting(entries: dict[float, int]) -> pl.DataFrame:
    """Return scrapes, and how many entries each found."""
    return scrapes(list(entries)).with_columns(entry_count=pl.Series(list(entries.values())))


def used(rows: Sequence[tuple[float, str, float]]) -> pl.DataFrame:
    """Return readings of entries that say when they were used last: scraped at, job, used at."""
    read = samples([(second, key, round(last), 0) for second, key, last in rows])
    return read.with_columns(sampled_at=pl.Series([at(last) for _, _, last in rows]))


def test_entries_in_use_that_are_gone_tell_of_a_restart_once() -> None:
    read = used([(10, "1", 5), (10, "2", 8), (30, "2", 29)])
    found = risen(read, counting({0: 0, 10: 2, 20: 2, 30: 1, 40: 1, 50: 1}))
    assert found.gaps.select("from_at", "until_at", "flag").rows() == [(at(20), at(30), "restarted")]
    # the entry that is there again says that it is the same: nobody knows better
    assert told(found)[-1] == ("2", 20, 30, 21, None)


def test_entries_that_were_not_used_for_most_of_the_interval_may_be_gone() -> None:
    timed = counting(dict.fromkeys(range(0, 460, 10), 1) | {0: 0, 460: 0})
    assert risen(used([(10, "1", 9)]), timed).gaps.is_empty()
    assert risen(used([(10, "1", 9), (30, "1", 30)]), timed).gaps.is_empty(), "a collector that knows no better"
    assert risen(used([(20, "1", 15)]), timed).gaps["until_at"].to_list() == [at(460)]
    unsaid = used([(20, "1", 15)]).with_columns(counted_since_at=pl.lit(None, pl.Datetime("us", "UTC")))
    assert risen(unsaid, timed).gaps.is_empty(), "LDMS says nothing of what did not change"


def test_entries_of_the_day_before_are_missed_on_the_next_one() -> None:
    first = counting({0: 0, 10: 1})
    ends = counters.last_values(used([(10, "1", 5)]), counters.timed_scrapes(first, first.clear()))
    for count, gaps in ((1, []), (0, [(at(10), at(20))])):
        found = risen(used([]), counting({20: count}), first, ends)
        assert found.gaps.select("from_at", "until_at").rows() == gaps


def test_a_target_that_is_read_later_than_others_or_no_more_may_have_lost_counts() -> None:
    read = pl.concat([scrapes(range(0, 3000, 10)), scrapes(range(700, 1000, 10)).with_columns(target=pl.lit("o1"))])
    timed = counters.timed_scrapes(read, frames.empty(SCRAPES))
    found = counters.edge_gaps(timed)
    assert found.select("target", "from_at", "until_at", "flag").rows() == [
        ("o1", at(0), at(700), "lost_scrapes"), ("o1", at(990), at(2990), "lost_scrapes"),
    ]  # fmt: skip
    before = scrapes([-5]).with_columns(target=pl.lit("o1"))
    assert counters.edge_gaps(counters.timed_scrapes(read, before)).height == 1
    assert counters.edge_gaps(timed, CounterParams(cleanup_interval_s=2000.0)).is_empty()


def test_a_fall_of_an_entry_that_says_it_still_counts_is_no_rise() -> None:
    found = risen(samples([(0, "1", 5, 0), (10, "1", 3, 0)]), scrapes([0, 10]))
    assert told(found)[1:] == [("1", 0, 10, None, "decrease")]


def test_lost_scrapes_are_told_where_an_entry_may_have_come_and_gone() -> None:
    rows = [(0.0, "1", 5, 0.0), (0, "2", 5, None), (700, "1", 9, 0), (700, "2", 9, None), (700, "3", 1, 650)]
    found = risen(samples(rows), scrapes([0, 700]))
    assert [(row[0], row[3], row[4]) for row in told(found) if row[2] == 700] == [
        ("1", 4, None),
        ("2", 4, "lost_scrapes"),
        ("3", 1, "lost_scrapes"),
    ]
    assert found.gaps["flag"].to_list() == ["lost_scrapes"]


def test_a_day_goes_on_from_the_last_values_of_the_day_before() -> None:
    first = scrapes([0, 10])
    ends = counters.last_values(
        samples([(0, "1", 5, None), (10, "1", 8, None)]), counters.timed_scrapes(first, first.clear())
    )
    assert ends["total_written_bytes"].to_list() == [8]
    found = risen(samples([(20, "1", 9, None), (20, "2", 3, None)]), scrapes([20]), first, ends)
    assert told(found) == [("1", 10, 20, 1, None), ("2", 10, 20, 3, None)]


def test_of_two_collectors_one_is_taken_and_the_other_counted() -> None:
    one, other = scrapes([0, 10, 20], collector="a"), scrapes([1, 11], collector="b")
    read = pl.concat(
        [samples([(1, "1", 5, None), (11, "1", 6, None)], "b"), samples([(0, "1", 4, None), (20, "1", 7, None)], "a")]
    )
    found = risen(read, pl.concat([other, one]))
    assert told(found)[1:] == [("1", 10, 20, 3, None)]
    assert found.targets.select("sample_count", "other_sample_count").rows() == [(2, 2)]


def test_a_reading_that_came_twice_counts_once() -> None:
    read = samples([(0, "1", 5, None), (10, "1", 7, None), (10, "1", 7, None), (10, "1", 8, None)])
    found = risen(read, scrapes([0, 10, 10]))
    assert told(found)[1:] == [("1", 0, 10, 2, None)]
    assert found.targets.select("duplicate_sample_count", "conflicting_sample_count").rows() == [(1, 1)]


def test_a_low_reading_of_totals_is_not_the_traffic_of_years() -> None:
    rows = [
        (0, None, 1000, None),
        (10, None, 1010, None),
        (20, None, 3, None),
        (30, None, 1020, None),
        (40, None, 1021, None),
    ]
    found = risen(samples(rows), scrapes([0, 10, 20, 30, 40], of_jobs=False))
    assert [(row[2], row[3], row[4]) for row in told(found)[1:]] == [
        (10, 10, None), (20, None, "decrease"), (30, None, "decrease"), (40, 1, None),
    ]  # fmt: skip


def test_jobs_that_move_more_than_their_target_and_servers_that_count_nothing_are_told() -> None:
    read = samples([(0, None, 0, None), (10, None, 5, None), (0, "1", 0, None), (10, "1", 50, None)])
    timed = pl.concat([scrapes([0, 10]), scrapes([0, 10], of_jobs=False)])
    assert risen(read, timed).targets.select("is_exceeded", "is_silent").rows() == [(True, False)]
    assert risen(samples([(0, "1", 0, None)]), scrapes([0])).targets["is_silent"].to_list() == [True]


@pytest.mark.parametrize("seed", range(examples(20)))
@pytest.mark.parametrize("says_since", [True, False])
def test_days_sum_to_what_was_moved_or_say_that_they_do_not(seed: int, says_since: bool) -> None:
    """A server drops entries and restarts, scrapes get lost; what is not flagged is true to the byte."""
    rng = np.random.default_rng(seed)
    server = Server(
        rng,
        cleanup_s=100.0,
        says_since=says_since,
        interval_s=10.0,
        lost_ratio=0.1 * (seed % 2),
        restart_ratio=0.01 * (seed % 3 > 0),
    )
    server.run(until_s=3000.0)
    params = CounterParams(cleanup_interval_s=100.0)
    found = risen(server.samples(_START), server.scrapes(_START), params=params)
    gaps = [(row["from_at"], row["until_at"]) for row in found.gaps.to_dicts()]
    for key, moved in server.moved.items():
        own = found.rows.filter(pl.col("job_key") == key)
        total = int(own["written_bytes"].fill_null(0).sum())
        is_told = own["flag"].is_not_null().any() or bool(gaps)
        assert total == moved or (is_told and total < moved), (key, total, moved)
