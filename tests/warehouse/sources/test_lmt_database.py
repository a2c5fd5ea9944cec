from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.warehouse.sources.batch_reading import gathered, read_input
from warehouse.errors import InputRefused, UsageError
from warehouse.sources import Reading, lmt_queries, recognize
from warehouse.sources.lmt_database import SOURCE, read_url
from warehouse.sources.opening import read_head

TABLES = """
create table OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES, PCT_CPU);
create table TIMESTAMP_INFO (TS_ID, TIMESTAMP, primary key (TS_ID));
create table OST_INFO (OST_ID, OSS_ID, OST_NAME, HOSTNAME);
create table OSS_INFO (OSS_ID, FILESYSTEM_ID, HOSTNAME);
create table FILESYSTEM_INFO (FILESYSTEM_ID, FILESYSTEM_NAME);
"""


Rows = list[tuple[Any, ...]]


def database(
    folder: Path,
    readings: Rows,
    *,
    times: dict[int, Any] | None = None,
    infos: dict[str, Rows] | None = None,
) -> Path:
    """Write an LMT database of readings (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES); TS_ID is the second."""
    given: dict[str, Rows] = {
        "OST_INFO": [(1, 7, "fs-OST0001", "h"), (2, 7, "fs-OST0002", "h")],
        "OSS_INFO": [(7, 1, "h"), (7, 1, "failover")],
        "FILESYSTEM_INFO": [(1, "scratch")],
    }
    given |= infos or {}
    path = folder / "lmt.sqlite3"
    path.unlink(missing_ok=True)
    stamps = (
        {ts: f"2026-01-01 00:00:{ts:02}" for _, ts, *_ in readings if isinstance(ts, int)} if times is None else times
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.executemany("insert into OST_DATA values (?, ?, ?, ?, 0)", readings)
        connection.executemany("insert into TIMESTAMP_INFO values (?, ?)", stamps.items())
        for name, rows in given.items():
            for row in rows:
                connection.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
        connection.commit()
    return path


def at(second: float) -> datetime:
    return datetime.fromtimestamp(1767225600 + second, UTC)


def cells(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    columns = ("controller", "polled_at", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag")
    return rows.sort("controller", "polled_at").select(columns).rows()


def test_counters_become_rates_over_the_real_distance(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 100, 0), (1, 5, 150, 10), (2, 0, 7, 7), (1, 15, 150, 30), (2, 5, 7, 2**62)])
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert cells(rows) == [
        ("fs-OST0001", at(5), 5.0, 10.0, 2.0, None),
        ("fs-OST0001", at(15), 10.0, 0.0, 2.0, None),
        ("fs-OST0002", at(5), 5.0, 0.0, (2**62 - 7) / 5, None),
    ]
    assert rows["filesystem"].unique().to_list() == ["scratch"]
    assert read_input(SOURCE, path, Reading("mine"))[0]["filesystem"].unique().to_list() == ["mine"]


def test_a_fall_is_a_flagged_gap_of_both_directions(tmp_path: Path) -> None:
    readings = [(1, 0, 100, 5), (1, 5, 150, 6), (1, 10, 120, 7), (1, 15, 130, 8), (1, 20, 3, 9), (1, 25, 4, 11)]
    rows, _ = read_input(SOURCE, database(tmp_path, readings))
    assert [row[3:] for row in cells(rows)] == [
        (10.0, 0.2, None),
        (None, None, "decrease"),
        (2.0, 0.2, None),
        (None, None, "reset"),
        (0.2, 0.4, None),
    ]


def test_readings_are_taken_in_the_order_of_time(tmp_path: Path) -> None:
    times = {1: "2026-01-01 00:00:10", 2: "2026-01-01 00:00:00", 3: "2026-01-01 00:00:05"}
    rows, _ = read_input(SOURCE, database(tmp_path, [(1, 1, 30, 0), (1, 2, 10, 0), (1, 3, 20, 0)], times=times))
    assert [row[1:4] for row in cells(rows)] == [(at(5), 5.0, 2.0), (at(10), 5.0, 2.0)]


def test_repeats_count_once_and_contradictions_are_refused(tmp_path: Path) -> None:
    readings = [(1, 0, 10, 0), (1, 0, 10, 0), (1, 5, 20, 0), (1, 5, 21, 0), (1, 10, 40, 0)]
    rows, refused = read_input(SOURCE, database(tmp_path, readings))
    assert [row[3] for row in cells(rows)] == [2.0, 4.0]
    assert refused.select("line", "raw").rows() == [(None, "OST_ID 1, TS_ID 5: read 21, write 0")]


def test_readings_that_cannot_be_placed_are_refused(tmp_path: Path) -> None:
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
    assert sum("no time in TIMESTAMP_INFO" in reason for reason in reasons) == 2
    assert sum("not a time" in reason for reason in reasons) == 1
    assert sum("no name in OST_INFO" in reason for reason in reasons) == 1


def test_local_times_need_the_zone_and_the_repeated_hour_is_refused(tmp_path: Path) -> None:
    times = {1: "2026-10-25 01:59:55", 2: "2026-10-25 02:00:00", 3: "2026-10-25 03:00:00"}
    path = database(tmp_path, [(1, 1, 10, 0), (1, 2, 20, 0), (1, 3, 30, 0)], times=times)
    rows, refused = read_input(SOURCE, path, Reading(time_zone="Europe/Berlin"))
    assert [row[1:3] for row in cells(rows)] == [(datetime(2026, 10, 25, 2, tzinfo=UTC), 7205.0)]
    assert "twice" in refused["reason"][0]


def test_a_file_system_that_is_unknown_or_ambiguous_is_the_default(tmp_path: Path) -> None:
    readings = [(1, 0, 1, 1), (1, 5, 1, 1)]
    both: dict[str, Rows] = {
        "OSS_INFO": [(7, 1, "h"), (7, 2, "h")],
        "FILESYSTEM_INFO": [(1, "a"), (2, "b")],
    }
    none: dict[str, Rows] = {"FILESYSTEM_INFO": []}
    for infos in (both, none):
        rows, _ = read_input(SOURCE, database(tmp_path, readings, infos=infos))
        assert rows["filesystem"].unique().to_list() == ["default"]


def test_batches_are_made_of_whole_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path, [(ost, ts, ts, ts) for ost in (1, 2) for ts in range(6)])
    whole = gathered(SOURCE.read(path, Reading()))
    monkeypatch.setattr(lmt_queries, "BATCH_ROWS", 1)
    monkeypatch.setattr(lmt_queries, "_FETCHED_ROWS", 4)
    batches = list(SOURCE.read(path, Reading()))
    assert [batch.rows.height for batch in batches] == [5, 5]
    assert gathered(batches)[0].equals(whole[0])


@pytest.mark.parametrize("name", ["OST_DATA", "TIMESTAMP_INFO", "OST_INFO", "OSS_INFO", "FILESYSTEM_INFO"])
def test_a_database_without_its_tables_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = database(tmp_path, [(1, 0, 1, 1)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"drop table {name}")
    with pytest.raises(InputRefused, match=name):
        read_input(SOURCE, path)


def test_views_that_could_compute_for_ever_are_not_asked(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "drop table OST_DATA; create view OST_DATA as with recursive n(i) as (select 1 union all select i from n)"
            " select i as OST_ID, i as TS_ID, i as READ_BYTES, i as WRITE_BYTES from n;"
        )
    with pytest.raises(InputRefused, match="no table OST_DATA"):
        read_input(SOURCE, path)


def test_a_table_without_a_column_is_refused_by_name(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("alter table OST_DATA drop column WRITE_BYTES")
    with pytest.raises(InputRefused, match="WRITE_BYTES"):
        read_input(SOURCE, path)


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, ts, ts, ts) for ts in range(60)] * 200)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:5000] + b"\xff" * 20000 + content[25000:], content[:100]):
        path.write_bytes(damaged)
        with pytest.raises(InputRefused, match=r"cannot be read|no table"):
            read_input(SOURCE, path)


def test_nothing_is_written_beside_the_input(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
    before = sorted(tmp_path.iterdir()), path.read_bytes()
    assert read_input(SOURCE, path)[0].height == 1
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before


def test_a_compressed_copy_and_odd_names_are_read(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])
    odd = tmp_path / "a b?mode=rwc&x=%41#'.gz"
    odd.write_bytes(gzip.compress(path.read_bytes()))
    assert recognize(read_head(odd)) is SOURCE
    assert read_input(SOURCE, odd)[0].height == 1
    plain = tmp_path / "c d?mode=rwc&x=%41#'"
    plain.write_bytes(path.read_bytes())
    assert read_input(SOURCE, plain)[0].height == 1


def test_a_url_is_read_by_the_same_code(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])
    rows, _ = gathered(read_url(f"sqlite:///{path}", Reading()))
    assert rows.equals(read_input(SOURCE, path)[0])


def test_urls_that_no_driver_understands_are_usage_errors_and_show_no_password() -> None:
    for url in ("not a url", "oracle9://me:secret@host/db", "mysql://me:secret@host:port/db"):
        with pytest.raises(UsageError) as error:
            gathered(read_url(url, Reading()))
        assert "secret" not in str(error.value)


def test_a_server_that_does_not_answer_is_refused_and_shows_no_password() -> None:
    with pytest.raises(InputRefused) as error:
        gathered(read_url("mysql://me:secret@127.0.0.1:1/lmt", Reading()))
    assert "secret" not in str(error.value)


def test_a_real_reset_is_a_flagged_gap_and_no_giant_rate(shared_data: Path) -> None:
    path = shared_data / "lmt" / "lmtdb-reset.sqlite3"
    rows, refused = read_input(SOURCE, path, Reading(time_zone="America/Los_Angeles"))
    assert refused.is_empty()
    assert rows.height == 25
    gap = rows.filter(pl.col("flag").is_not_null())
    assert gap.select("polled_at", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag").rows() == [
        (datetime(2018, 4, 18, 14, 39, 5, tzinfo=UTC), 200.0, None, None, "reset")
    ]
    for direction in ("read_bytes_per_s", "write_bytes_per_s"):
        assert rows[direction].drop_nulls().is_between(0, 1e9).all()
    assert 62_537_728 / 5 in rows["read_bytes_per_s"].to_list()
