"""Counter deltas: resets, restarts, gaps, and days that sum to the bytes moved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from iosig.transforms import counters
from iosig.transforms.counters import CounterDeltas, CounterParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.sources.rows.counters import flag_server_counters
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
    """Readings by time of the scrape, job, bytes written, and start of the count."""
    readings = [
        {"scraped_at": at(second), "sampled_at": at(second), "filesystem": "work", "component": "ost", "target": "o0",
         "job_key": key, "collector": collector, "counter_started_at": None if since is None else at(since),
         "total_written_bytes": value}
        for second, key, value, since in rows
    ]  # fmt: skip
    return pl.DataFrame(readings, schema=frames.schema(COUNTER_SAMPLES))


def deltas_of(
    read: pl.DataFrame,
    timed: pl.DataFrame,
    before: pl.DataFrame | None = None,
    ends: pl.DataFrame | None = None,
    params: CounterParams | None = None,
) -> CounterDeltas:
    known = counters.order_scrapes(timed, frames.empty(SCRAPES) if before is None else before)
    last = frames.empty(COUNTER_SAMPLES).drop("collector") if ends is None else ends
    return counters.compute_deltas(read, known, last, flag_server_counters, params)


def to_tuples(deltas: CounterDeltas) -> list[tuple[str | None, float | None, float, int | None, str | None]]:
    """Deltas as job, from, until, bytes written, flag."""
    start = pl.lit(_START)
    return deltas.rows.sort("job_key", "interval_ended_at").select(
        "job_key", (pl.col("interval_started_at") - start).dt.total_seconds().cast(pl.Float64),
        (pl.col("interval_ended_at") - start).dt.total_seconds().cast(pl.Float64), "written_bytes", "flag",
    ).rows()  # fmt: skip


def test_new_entry_starts_at_zero() -> None:
    deltas = deltas_of(samples([(0, "1", 5, None), (10, "1", 7, None), (20, "2", 9, None)]), scrapes([0, 10, 20]))
    assert to_tuples(deltas) == [("1", None, 0, None, "first_seen"), ("1", 0, 10, 2, None), ("2", 10, 20, 9, None)]
    assert deltas.gaps.is_empty()


def test_delta_covers_time_since_previous_scrape() -> None:
    deltas = deltas_of(samples([(0, "1", 5, 0), (30, "1", 7, 0)]), scrapes([0, 10, 20, 30]))
    assert to_tuples(deltas)[1:] == [("1", 20, 30, 2, None)]


@pytest.mark.parametrize("since", [(None, None), (0, 700)])
def test_dropped_entry_restarts_at_zero(since: tuple[float | None, float | None]) -> None:
    read = samples([(0, "1", 5, since[0]), (10, "1", 8, since[0]), (710, "1", 4, since[1])])
    deltas = deltas_of(read, scrapes([0, 10, *range(60, 700, 60), 710]))
    assert to_tuples(deltas)[1:] == [("1", 0, 10, 3, None), ("1", 660, 710, 4, None)]


def test_changed_start_time_is_a_reset() -> None:
    read = samples([(0, "1", 5, 0), (10, "1", 8, 0), (710, "1", 9, 705)])
    deltas = deltas_of(read, scrapes([0, 10, *range(60, 720, 50)]))
    assert to_tuples(deltas)[-1] == ("1", 660, 710, 9, None)


def test_reset_of_entry_in_use_flags_restart_of_all() -> None:
    rows = [(0.0, "1", 5, 0.0), (0, "2", 5, 0), (700, "2", 6, 0), (710, "1", 3, 705), (710, "2", 1, 706)]
    deltas = deltas_of(samples(rows), scrapes([0, 60, 120, 700, 710]), params=CounterParams(cleanup_interval_s=600))
    assert to_tuples(deltas)[1:] == [
        ("1", 700, 710, 3, "restarted"),
        ("2", None, 0, None, "first_seen"),
        ("2", 120, 700, 1, None),
        ("2", 700, 710, 1, "restarted"),
    ]
    assert deltas.gaps.select("flag", "interval_ended_at").rows() == [("restarted", at(710))]


def counting(entries: dict[float, int]) -> pl.DataFrame:
    """Return scrapes with their numbers of entries."""
    return scrapes(list(entries)).with_columns(entry_count=pl.Series(list(entries.values())))


def used(rows: Sequence[tuple[float, str, float]]) -> pl.DataFrame:
    """Return readings of entries with the time of their last use: scraped at, job, used at."""
    read = samples([(second, key, round(last), 0) for second, key, last in rows])
    return read.with_columns(sampled_at=pl.Series([at(last) for _, _, last in rows]))


def test_missing_entries_in_use_flag_restart_once() -> None:
    read = used([(10, "1", 5), (10, "2", 8), (30, "2", 29)])
    deltas = deltas_of(read, counting({0: 0, 10: 2, 20: 2, 30: 1, 40: 1, 50: 1}))
    assert deltas.gaps.select("interval_started_at", "interval_ended_at", "flag").rows() == [
        (at(20), at(30), "restarted")
    ]
    # The returning entry has the same start time, so it counts as the same entry.
    assert to_tuples(deltas)[-1] == ("2", 20, 30, 21, None)


def test_idle_entries_may_be_missing() -> None:
    timed = counting(dict.fromkeys(range(0, 460, 10), 1) | {0: 0, 460: 0})
    assert deltas_of(used([(10, "1", 9)]), timed).gaps.is_empty()
    assert deltas_of(used([(10, "1", 9), (30, "1", 30)]), timed).gaps.is_empty(), "a collector that knows no better"
    assert deltas_of(used([(20, "1", 15)]), timed).gaps["interval_ended_at"].to_list() == [at(460)]
    unsaid = used([(20, "1", 15)]).with_columns(counter_started_at=pl.lit(None, pl.Datetime("us", "UTC")))
    assert deltas_of(unsaid, timed).gaps.is_empty(), "LDMS says nothing of what did not change"


def test_entries_of_previous_day_are_expected() -> None:
    first = counting({0: 0, 10: 1})
    ends = counters.select_last_values(used([(10, "1", 5)]), counters.order_scrapes(first, first.clear()))
    for count, gaps in ((1, []), (0, [(at(10), at(20))])):
        deltas = deltas_of(used([]), counting({20: count}), first, ends)
        assert deltas.gaps.select("interval_started_at", "interval_ended_at").rows() == gaps


def test_late_or_ending_scrapes_give_edge_gaps() -> None:
    read = pl.concat([scrapes(range(0, 3000, 10)), scrapes(range(700, 1000, 10)).with_columns(target=pl.lit("o1"))])
    timed = counters.order_scrapes(read, frames.empty(SCRAPES))
    deltas = counters.find_edge_gaps(timed)
    assert deltas.select("target", "interval_started_at", "interval_ended_at", "flag").rows() == [
        ("o1", at(0), at(700), "lost_scrapes"), ("o1", at(990), at(2990), "lost_scrapes"),
    ]  # fmt: skip
    before = scrapes([-5]).with_columns(target=pl.lit("o1"))
    assert counters.find_edge_gaps(counters.order_scrapes(read, before)).height == 1
    assert counters.find_edge_gaps(timed, CounterParams(cleanup_interval_s=2000.0)).is_empty()


def test_decrease_with_same_start_time_has_no_delta() -> None:
    deltas = deltas_of(samples([(0, "1", 5, 0), (10, "1", 3, 0)]), scrapes([0, 10]))
    assert to_tuples(deltas)[1:] == [("1", 0, 10, None, "decrease")]


def test_lost_scrapes_are_flagged() -> None:
    rows = [(0.0, "1", 5, 0.0), (0, "2", 5, None), (700, "1", 9, 0), (700, "2", 9, None), (700, "3", 1, 650)]
    deltas = deltas_of(samples(rows), scrapes([0, 700]))
    assert [(row[0], row[3], row[4]) for row in to_tuples(deltas) if row[2] == 700] == [
        ("1", 4, None),
        ("2", 4, "lost_scrapes"),
        ("3", 1, "lost_scrapes"),
    ]
    assert deltas.gaps["flag"].to_list() == ["lost_scrapes"]


def test_day_continues_from_previous_last_values() -> None:
    first = scrapes([0, 10])
    ends = counters.select_last_values(
        samples([(0, "1", 5, None), (10, "1", 8, None)]), counters.order_scrapes(first, first.clear())
    )
    assert ends["total_written_bytes"].to_list() == [8]
    deltas = deltas_of(samples([(20, "1", 9, None), (20, "2", 3, None)]), scrapes([20]), first, ends)
    assert to_tuples(deltas) == [("1", 10, 20, 1, None), ("2", 10, 20, 3, None)]


def test_one_of_two_collectors_is_selected() -> None:
    one, other = scrapes([0, 10, 20], collector="a"), scrapes([1, 11], collector="b")
    read = pl.concat(
        [samples([(1, "1", 5, None), (11, "1", 6, None)], "b"), samples([(0, "1", 4, None), (20, "1", 7, None)], "a")]
    )
    deltas = deltas_of(read, pl.concat([other, one]))
    assert to_tuples(deltas)[1:] == [("1", 10, 20, 3, None)]
    assert deltas.targets.select("sample_count", "redundant_sample_count").rows() == [(2, 2)]


def test_repeated_reading_counts_once() -> None:
    read = samples([(0, "1", 5, None), (10, "1", 7, None), (10, "1", 7, None), (10, "1", 8, None)])
    deltas = deltas_of(read, scrapes([0, 10, 10]))
    assert to_tuples(deltas)[1:] == [("1", 0, 10, 2, None)]
    assert deltas.targets.select("duplicate_sample_count", "conflicting_sample_count").rows() == [(1, 1)]


def test_low_reading_of_totals_is_no_reset() -> None:
    rows = [
        (0, None, 1000, None),
        (10, None, 1010, None),
        (20, None, 3, None),
        (30, None, 1020, None),
        (40, None, 1021, None),
    ]
    deltas = deltas_of(samples(rows), scrapes([0, 10, 20, 30, 40], of_jobs=False))
    assert [(row[2], row[3], row[4]) for row in to_tuples(deltas)[1:]] == [
        (10, 10, None), (20, None, "decrease"), (30, None, "decrease"), (40, 1, None),
    ]  # fmt: skip


def test_exceeded_and_silent_targets_are_reported() -> None:
    read = samples([(0, None, 0, None), (10, None, 5, None), (0, "1", 0, None), (10, "1", 50, None)])
    timed = pl.concat([scrapes([0, 10]), scrapes([0, 10], of_jobs=False)])
    assert deltas_of(read, timed).targets.select("is_overcounted", "is_silent").rows() == [(True, False)]
    assert deltas_of(samples([(0, "1", 0, None)]), scrapes([0])).targets["is_silent"].to_list() == [True]


@pytest.mark.parametrize("seed", range(examples(20)))
@pytest.mark.parametrize("says_since", [True, False])
def test_deltas_sum_to_moved_bytes_or_are_flagged(seed: int, says_since: bool) -> None:
    """A server drops entries and restarts, and scrapes are lost; unflagged deltas are exact."""
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
    deltas = deltas_of(server.samples(_START), server.scrapes(_START), params=params)
    gaps = [(row["interval_started_at"], row["interval_ended_at"]) for row in deltas.gaps.to_dicts()]
    for key, moved in server.moved.items():
        own = deltas.rows.filter(pl.col("job_key") == key)
        total = int(own["written_bytes"].fill_null(0).sum())
        is_flagged = own["flag"].is_not_null().any() or bool(gaps)
        assert total == moved or (is_flagged and total < moved), (key, total, moved)
