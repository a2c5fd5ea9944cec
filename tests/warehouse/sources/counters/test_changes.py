from __future__ import annotations

import polars as pl

from warehouse.sources.counters.changes import KEYS, Changes, wide

_DAY_US = 86_400_000_000


def keys(*jobs: str | None) -> pl.DataFrame:
    told = {"filesystem": "fs", "component": "ost", "target": "t", "collector": None}
    return pl.DataFrame([{**told, "job_key": job} for job in jobs], schema=dict.fromkeys(KEYS, pl.String))


def take(changes: Changes, jobs: str, said: list[int], at_us: list[int]) -> list[int]:
    return changes.take(keys(*jobs), pl.Series(said, dtype=pl.UInt64), pl.Series(at_us, dtype=pl.Int64)).to_list()


def test_what_says_the_same_as_before_did_not_change() -> None:
    changes = Changes()
    assert take(changes, "abab", [1, 2, 1, 3], [10, 10, 20, 20]) == [0, 1, 3]
    assert take(changes, "abb", [1, 3, 3], [30, 30, 40]) == []
    # `a` was not there when the target was read last: it begins anew
    assert take(changes, "ab", [1, 3], [50, 50]) == [0]
    assert take(changes, "ab", [1, 3], [_DAY_US, _DAY_US]) == [0, 1]
    assert changes.scrapes()["entry_count"].to_list() == [2, 2, 2, 1, 2, 2]


def test_values_of_one_counter_make_one_row() -> None:
    points = pl.concat([keys("a", "a", "a", "b"), keys("b", "b")]).with_columns(
        at_us=pl.lit(7, pl.Int64),
        column=pl.Series(["total_open_count", "total_other_count", "total_other_count", *["total_open_count"] * 3]),
        value=pl.Series([1, 2, 3, 4, 5, 6]),
        line=pl.int_range(6),
    )
    rows = wide(points)
    assert rows.select("job_key", "line", "is_doubled", "total_open_count", "total_other_count").rows() == [
        ("a", 0, False, 1, 5),
        ("b", 3, True, 15, None),
    ]
