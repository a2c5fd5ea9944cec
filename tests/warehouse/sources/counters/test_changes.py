from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from iosig.warehouse.sources.counters.changes import (
    KEYS,
    Changes,
    find_incomplete_jobs,
    pivot_points,
    pivot_series,
    select_changes,
)
from iosig.warehouse.sources.protocol import Reading

_DAY_US = 86_400_000_000


def keys(*jobs: str | None) -> pl.DataFrame:
    told = {"filesystem": "fs", "component": "ost", "target": "t", "collector": None}
    return pl.DataFrame([{**told, "job_key": job} for job in jobs], schema=dict.fromkeys(KEYS, pl.String))


def take(changes: Changes, jobs: str, said: list[int], at_us: list[int]) -> list[int]:
    return changes.take(keys(*jobs), pl.Series(said, dtype=pl.UInt64), pl.Series(at_us, dtype=pl.Int64)).to_list()


def test_unchanged_readings_produce_no_rows() -> None:
    changes = Changes()
    assert take(changes, "abab", [1, 2, 1, 3], [10, 10, 20, 20]) == [0, 1, 3]
    assert take(changes, "abb", [1, 3, 3], [30, 30, 40]) == []
    # `a` was absent from the previous scrape, so its counter starts again
    assert take(changes, "ab", [1, 3], [50, 50]) == [0]
    assert take(changes, "ab", [1, 3], [_DAY_US, _DAY_US]) == [0, 1]
    assert changes.scrapes()["entry_count"].to_list() == [2, 2, 2, 1, 2, 2]


def test_changes_do_not_depend_on_order_of_readings() -> None:
    jobs, said, at_us = "abababab", [1, 2, 1, 3, 1, 3, 5, 3], [10, 10, 20, 20, 30, 30, 40, 40]
    assert take(Changes(), jobs, said, at_us) == [0, 1, 3, 6]
    places = [7, 2, 0, 5, 3, 6, 1, 4]
    mixed = take(Changes(), "".join(jobs[n] for n in places), [said[n] for n in places], [at_us[n] for n in places])
    assert sorted(places[n] for n in mixed) == [0, 1, 3, 6]
    # the input's times start again
    changes = Changes()
    assert take(changes, "aa", [1, 2], [20, 30]) == [0, 1]
    assert take(changes, "aa", [1, 1], [10, 20]) == [0]


@pytest.mark.parametrize("seed", range(8))
def test_two_calls_report_same_changes_as_single_call(seed: int) -> None:
    """Readings come in order of time; some are duplicates, and some jobs lack counters."""
    dice, whole, parts = np.random.default_rng(seed), Changes(), Changes()
    times = np.sort(dice.integers(0, 8, 30)) * _DAY_US // 2
    rows = keys(*dice.choice(["a", "b", "c", None], 30)).with_columns(
        line=pl.int_range(30, dtype=pl.Int64),
        at_us=pl.Series(times),
        total_open_count=pl.Series(dice.integers(0, 2, 30)),
        total_sync_count=pl.Series([None if value == 2 else int(value) for value in dice.integers(0, 3, 30)]),
    )
    middle = int(np.searchsorted(times, 2 * _DAY_US))
    samples, refused = zip(
        *(select_changes(part, parts, Reading()) for part in (rows[:middle], rows[middle:])), strict=True
    )
    expected, expected_refused = select_changes(rows, whole, Reading())
    assert pl.concat(samples).equals(expected)
    assert pl.concat(refused).equals(expected_refused)
    assert 0 < expected.height < 30


def test_values_of_same_counter_are_merged_into_row() -> None:
    points = pl.concat([keys("a", "a", "a", "b"), keys("b", "b")]).with_columns(
        at_us=pl.lit(7, pl.Int64),
        column=pl.Series(["total_open_count", "total_other_count", "total_other_count", *["total_open_count"] * 3]),
        value=pl.Series([1, 2, 3, 4, 5, 6]),
        line=pl.int_range(6),
    )
    rows = pivot_points(points)
    assert rows.select("job_key", "line", "is_doubled", "total_open_count", "total_other_count").rows() == [
        ("a", 0, False, 1, 5),
        ("b", 3, True, 15, None),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_pivot_of_series_equals_pivot_of_points(seed: int) -> None:
    dice = np.random.default_rng(seed)
    columns = ["total_open_count", "total_other_count", "total_written_bytes", None]
    series = keys(*dice.choice(["a", "b", "c"], 12).tolist(), None).with_columns(
        column=pl.Series([columns[k] for k in dice.integers(0, 4, 13)], dtype=pl.String)
    )
    told = {"series": dice.integers(0, 13, 60), "at_us": dice.permutation(np.repeat([7, 9, 20], 20))}
    values = pl.DataFrame(told).with_columns(
        value=pl.Series(dice.integers(0, 99, 60)), line=pl.int_range(60, dtype=pl.Int64)
    )
    points = series[values["series"].to_numpy()].hstack(values.drop("series")).filter(pl.col("column").is_not_null())
    assert pivot_series(series, values).equals(pivot_points(points))


def readings(*written: int | None, at_us: int = 7, **columns: object) -> pl.DataFrame:
    rows = keys(*(f"j{number}" for number in range(len(written))))
    told = pl.Series("total_written_bytes", written, dtype=pl.Int64)
    return rows.with_columns(
        told, line=pl.int_range(rows.height, dtype=pl.Int64), at_us=pl.lit(at_us, pl.Int64), total_open_count=pl.lit(1)
    ).with_columns(**{name: pl.lit(value, pl.Int64) for name, value in columns.items()})


def test_job_without_counters_of_its_target_is_refused() -> None:
    changes = Changes()
    rows, refused = select_changes(readings(5, None, 7), changes, Reading())
    assert (rows["job_key"].to_list(), refused["line"].to_list()) == (["j0", "j2"], [1])
    assert rows["filesystem"].unique().to_list() == ["fs"]
    rows, refused = select_changes(readings(5, 6, 7, at_us=20), changes, Reading(filesystem="own"))
    assert (rows["filesystem"].to_list(), refused.height) == (["own"] * 3, 0)
    # the whole target lacks the counter, and its total may lack it too
    assert not find_incomplete_jobs(readings(None, None)).any()
    total = pl.concat([readings(5), readings(None).with_columns(job_key=pl.lit(None, pl.String))])
    assert not find_incomplete_jobs(total).any()


def test_sampling_time_is_time_of_change_if_known() -> None:
    rows, _ = select_changes(readings(5, at_us=20, held_us=7), Changes(), Reading())
    assert rows.select(pl.col("sampled_at", "scraped_at").dt.timestamp("us")).rows() == [(7, 20)]
    rows, _ = select_changes(readings(5, at_us=20, held_us=None), Changes(), Reading())
    assert rows.select(pl.col("sampled_at", "scraped_at").dt.timestamp("us")).rows() == [(20, 20)]
