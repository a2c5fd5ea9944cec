from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.polls import lmt_queries
from iosig.warehouse.sources.polls.lmt_database import SOURCE
from iosig.warehouse.sources.polls.lmt_queries import compute_polls, read_url
from iosig.warehouse.sources.protocol import Reading
from tests.warehouse.sources.batch_reading import gathered, read_input
from tests.warehouse.sources.lmt_tables import Rows, database

ZERO = 1767225600


def at(second: float) -> datetime:
    return datetime.fromtimestamp(ZERO + second, UTC)


def cells(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    columns = ("controller", "polled_at", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag")
    return rows.sort("controller", "polled_at").select(columns).rows()


def test_counters_become_rates_over_actual_intervals(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 100, 0), (1, 5, 150, 10), (2, 0, 7, 7), (1, 15, 150, 30), (2, 5, 7, 2**62)])
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert cells(rows) == [
        ("fs-OST0001", at(5), 5.0, 10.0, 2.0, None),
        ("fs-OST0001", at(15), 10.0, 0.0, 2.0, None),
        ("fs-OST0002", at(5), 5.0, 0.0, (2**62 - 7) / 5, None),
    ]
    assert rows["filesystem"].unique().to_list() == ["scratch"]
    assert read_input(SOURCE, path, Reading("mine", "UTC"))[0]["filesystem"].unique().to_list() == ["mine"]


def test_counter_decrease_is_a_flagged_gap_in_both_directions(tmp_path: Path) -> None:
    readings = [(1, 0, 100, 5), (1, 5, 150, 6), (1, 10, 120, 7), (1, 15, 130, 8), (1, 20, 3, 9), (1, 25, 4, 11)]
    rows, _ = read_input(SOURCE, database(tmp_path, readings))
    assert [row[3:] for row in cells(rows)] == [
        (10.0, 0.2, None),
        (None, None, "decrease"),
        (2.0, 0.2, None),
        (None, None, "reset"),
        (0.2, 0.4, None),
    ]


@pytest.mark.parametrize("lost", [1, 100, 5000])
def test_truncated_database_is_refused(tmp_path: Path, lost: int) -> None:
    path = database(tmp_path, [(1, second, 100, 0) for second in range(9)])
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(InputRefused, match="is truncated: it has"):
        read_input(SOURCE, path)


def test_readings_are_ordered_by_time(tmp_path: Path) -> None:
    times = {1: "2026-01-01 00:00:10", 2: "2026-01-01 00:00:00", 3: "2026-01-01 00:00:05"}
    rows, _ = read_input(SOURCE, database(tmp_path, [(1, 1, 30, 0), (1, 2, 10, 0), (1, 3, 20, 0)], times=times))
    assert [row[1:4] for row in cells(rows)] == [(at(5), 5.0, 2.0), (at(10), 5.0, 2.0)]


def test_duplicates_count_once_and_contradictions_are_refused(tmp_path: Path) -> None:
    readings = [(1, 0, 10, 0), (1, 0, 10, 0), (1, 5, 20, 0), (1, 5, 21, 0), (1, 10, 40, 0)]
    rows, refused = read_input(SOURCE, database(tmp_path, readings))
    assert [row[3] for row in cells(rows)] == [2.0, 4.0]
    assert refused.select("line", "raw").rows() == [(None, "OST_ID 1, TS_ID 5: read 21, write 0")]


def test_invalid_readings_are_refused(tmp_path: Path) -> None:
    readings = [
        (1, 0, 10, 0),
        (1, 5, None, 0),
        (1, 10, "x", 0),
        (1, 15, -4, 0),
        (1, 20, 2**70 * 1.0, 0),
        (1, 25, 60, 0),
        (1, 30, 70, 0),
        (1, 35, 80, 0),
        (3, 0, 1, 1),
        (1, None, 1, 1),
    ]
    times = {ts: f"2026-01-01 00:00:{ts:02}" for ts in range(0, 30, 5)} | {30: "soon"}
    rows, refused = read_input(SOURCE, database(tmp_path, readings, times=times))
    assert cells(rows) == [("fs-OST0001", at(25), 25.0, 2.0, 0.0, None)]
    reasons = sorted(refused["reason"])
    assert len(reasons) == 8
    assert sum("byte counter" in reason for reason in reasons) == 4
    assert sum("no unique time in TIMESTAMP_INFO" in reason for reason in reasons) == 2
    assert sum("not a time" in reason for reason in reasons) == 1
    assert sum("no unique name in OST_INFO" in reason for reason in reasons) == 1


def test_local_times_use_time_zone_and_ambiguous_times_are_refused(tmp_path: Path) -> None:
    times = {1: "2026-10-25 01:59:55", 2: "2026-10-25 02:00:00", 3: "2026-10-25 03:00:00"}
    path = database(tmp_path, [(1, 1, 10, 0), (1, 2, 20, 0), (1, 3, 30, 0)], times=times)
    rows, refused = read_input(SOURCE, path, Reading(time_zone="Europe/Berlin"))
    assert [row[1:3] for row in cells(rows)] == [(datetime(2026, 10, 25, 2, tzinfo=UTC), 7205.0)]
    assert "twice" in refused["reason"][0]


def test_unknown_or_ambiguous_filesystem_is_default(tmp_path: Path) -> None:
    readings = [(1, 0, 1, 1), (1, 5, 1, 1)]
    both: dict[str, Rows] = {
        "OSS_INFO": [(7, 1, "h"), (7, 2, "h")],
        "FILESYSTEM_INFO": [(1, "a"), (2, "b")],
    }
    none: dict[str, Rows] = {"FILESYSTEM_INFO": []}
    for infos in (both, none):
        rows, _ = read_input(SOURCE, database(tmp_path, readings, infos=infos))
        assert rows["filesystem"].unique().to_list() == ["default"]


def test_batches_contain_complete_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path, [(ost, ts, ts, ts) for ost in (1, 2) for ts in range(6)])
    whole = gathered(SOURCE.read(path, Reading(time_zone="UTC")))
    monkeypatch.setattr(lmt_queries, "BATCH_ROWS", 1)
    monkeypatch.setattr(lmt_queries, "_FETCHED_ROWS", 4)
    batches = list(SOURCE.read(path, Reading(time_zone="UTC")))
    assert [batch.rows.height for batch in batches] == [5, 5]
    assert gathered(batches)[0].equals(whole[0])


@pytest.mark.parametrize("name", ["OST_DATA", "TIMESTAMP_INFO", "OST_INFO", "OSS_INFO", "FILESYSTEM_INFO"])
def test_database_without_table_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    path = database(tmp_path, [(1, 0, 1, 1)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"drop table {name}")
    with pytest.raises(InputRefused, match=name):
        read_input(SOURCE, path)


def test_views_are_not_queried(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "drop table OST_DATA; create view OST_DATA as with recursive n(i) as (select 1 union all select i from n)"
            " select i as OST_ID, i as TS_ID, i as READ_BYTES, i as WRITE_BYTES from n;"
        )
    with pytest.raises(InputRefused, match="no table OST_DATA"):
        read_input(SOURCE, path)


def test_table_without_column_is_refused_with_its_name(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("alter table OST_DATA drop column WRITE_BYTES")
    with pytest.raises(InputRefused, match="WRITE_BYTES"):
        read_input(SOURCE, path)


def test_invalid_url_raises_usage_error_without_password() -> None:
    for url in ("not a url", "oracle9://me:secret@host/db", "mysql://me:secret@host:port/db"):
        with pytest.raises(UsageError) as error:
            read_url(url, Reading(time_zone="UTC"))
        assert "secret" not in str(error.value)


def test_unreachable_server_is_refused_without_password() -> None:
    with pytest.raises(InputRefused) as error:
        read_url("mysql://me:secret@127.0.0.1:1/lmt", Reading(time_zone="UTC"))
    assert "secret" not in str(error.value)


# ---- ambiguous readings are refused


def test_ambiguous_target_name_is_refused_but_two_servers_are_not(tmp_path: Path) -> None:
    readings = [(1, 0, 1, 1), (1, 5, 2, 2)]
    two_names: dict[str, Rows] = {"OST_INFO": [(1, 7, "a", "h"), (1, 7, "b", "h"), (1, 7, "a", "h")]}
    rows, refused = read_input(SOURCE, database(tmp_path, readings, infos=two_names))
    assert rows.is_empty()
    assert refused["reason"].unique().to_list() == ["The target has no unique name in OST_INFO."]
    servers: dict[str, Rows] = {"OST_INFO": [(1, 7, "a", "h"), (1, 8, "a", "h")], "OSS_INFO": [(7, 1, ""), (8, 2, "")]}
    for names, expected in (([(1, "x"), (2, "x")], "x"), ([(1, "x"), (2, "y")], "default")):
        path = database(tmp_path, readings, infos=servers | {"FILESYSTEM_INFO": names})
        rows, refused = read_input(SOURCE, path)
        assert rows.select("controller", "filesystem").rows() == [("a", expected)]
        assert refused.is_empty()


def test_poll_with_two_times_is_refused(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2), (1, 10, 3, 3)])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "create table T (TS_ID, TIMESTAMP); insert into T select * from TIMESTAMP_INFO;"
            "insert into T values (5, '2026-01-01 00:00:07'), (10, '2026-01-01 00:00:10');"
            "drop table TIMESTAMP_INFO; alter table T rename to TIMESTAMP_INFO;"
        )
    rows, refused = read_input(SOURCE, path)
    assert [row[1:3] for row in cells(rows)] == [(at(10), 10.0)]
    assert refused["raw"].to_list() == ["OST_ID 1, TS_ID 5: read 2, write 2"]


def test_readings_without_target_are_refused(tmp_path: Path) -> None:
    path = database(tmp_path, [(None, 0, 1, 1), (None, 5, 1, 1), ("1", 5, 1, 1), (1, 0, 1, 1), (1, 5, 1, 1)])
    rows, refused = read_input(SOURCE, path)
    assert rows.height == 1
    assert refused.height == 3


@pytest.mark.parametrize(
    ("value", "is_counter"), [(20, True), ("20", True), (20.0, True), (20.5, False), ("20.5", False), (b"20", False)]
)
def test_counter_must_be_an_integer(tmp_path: Path, value: object, is_counter: bool) -> None:
    rows, refused = read_input(SOURCE, database(tmp_path, [(1, 0, 10, 0), (1, 5, value, 0), (1, 10, 30, 0)]))
    assert rows["read_bytes_per_s"].to_list() == ([2.0, 2.0] if is_counter else [2.0])
    assert refused.height == (not is_counter)


def test_names_from_database_are_not_executed(tmp_path: Path) -> None:
    name = "x'; drop table OST_DATA; --"
    infos: dict[str, Rows] = {"OST_INFO": [(name, 7, f" {name} ", "h")], "FILESYSTEM_INFO": [(1, " ")]}
    rows, refused = read_input(SOURCE, database(tmp_path, [(name, 0, 1, 1), (name, 5, 2, 2)], infos=infos))
    assert rows.select("controller", "filesystem").rows() == [(name, "default")]
    assert refused.is_empty()


# ---- differences


def test_fewer_than_two_readings_yield_no_polls() -> None:
    readings = pl.DataFrame({"instant": [at(0)], "READ_BYTES": [7], "WRITE_BYTES": [9]})
    assert compute_polls(readings).is_empty()
    assert compute_polls(readings.clear()).is_empty()


def test_intervals_are_exact_to_the_microsecond() -> None:
    readings = pl.DataFrame({"instant": [at(0), at(0.000004)], "READ_BYTES": [0, 2**53 + 1], "WRITE_BYTES": [1, 1]})
    assert compute_polls(readings).rows() == [(at(0.000004), 4e-6, (2**53 + 1) / 4e-6, 0.0, None)]
