from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.polls import lmt_following
from iosig.warehouse.sources.polls.lmt_database import SOURCE
from iosig.warehouse.sources.polls.lmt_following import Cursor, NewPolls, begin, create_engine, read_on
from iosig.warehouse.sources.protocol import Reading
from tests.budget import examples
from tests.warehouse.sources.batch_reading import read_input
from tests.warehouse.sources.lmt_tables import Rows, database

ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def stamp(ts: int) -> str:
    return (ZERO + timedelta(seconds=5 * ts)).strftime("%Y-%m-%d %H:%M:%S")


def add(path: Path, readings: Iterable[tuple[Any, ...]], times: dict[int, Any] | None = None) -> None:
    rows = list(readings)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma synchronous = off")
        connection.executemany("insert into OST_DATA values (?, ?, ?, ?, 0)", rows)
        stamps = {ts: stamp(ts) for _, ts, *_ in rows} if times is None else times
        connection.executemany("insert or ignore into TIMESTAMP_INFO values (?, ?)", stamps.items())
        connection.commit()


def empty(folder: Path, infos: dict[str, Rows] | None = None) -> Path:
    return database(folder, [], infos=infos)


def on(path: Path, cursor: Cursor | None = None, filesystem: str = "scratch") -> NewPolls:
    engine = create_engine(str(path))
    if cursor is None:
        cursor = begin(engine, ZERO, Reading(time_zone="UTC"))
    return read_on(
        engine, filesystem, Reading(time_zone="UTC"), Cursor.from_plain(json.loads(json.dumps(cursor.plain())))
    )


def cells(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    """Return controller, time and interval (in steps), and bytes."""
    steps = [(pl.col(name) - zero) / 5e6 for name, zero in (("polled_us", ZERO.timestamp() * 1e6), ("interval_us", 0))]
    volumes = [pl.col(name) * pl.col("interval_us") / 1e6 for name in ("read_bytes_per_s", "write_bytes_per_s")]
    return rows.sort("controller", "polled_us").select("controller", *steps, *volumes).rows()


def test_each_read_returns_increases_since_previous_read(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, 1, 100, 7), (2, 1, 50, 50)])
    first = on(path)
    assert first.rows.is_empty()
    add(path, [(1, 2, 130, 7), (2, 2, 60, 80)])
    second = on(path, first.cursor)
    assert cells(second.rows) == [("fs-OST0001", 2, 1, 30, 0), ("fs-OST0002", 2, 1, 10, 30)]
    third = on(path, second.cursor)
    assert third.rows.is_empty()
    assert third.cursor == second.cursor
    assert not third.is_behind
    assert second.refused == third.refused == ()


def test_readings_of_late_target_are_not_lost(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, 1, 100, 0), (2, 1, 50, 0), (1, 2, 110, 0)])
    first = on(path)
    add(path, [(1, 3, 120, 0), (2, 2, 55, 0)])
    second = on(path, first.cursor)
    assert cells(second.rows) == [("fs-OST0001", 3, 1, 10, 0), ("fs-OST0002", 2, 1, 5, 0)]
    add(path, [(1, ts, 120 + ts, 0) for ts in range(4, 80)])
    third = on(path, second.cursor)
    add(path, [(2, 80, 99, 0), (2, 10, 60, 0)])
    fourth = on(path, third.cursor)
    assert cells(fourth.rows) == [("fs-OST0002", 80, 78, 44, 0)]
    assert not fourth.refused


def test_unusable_readings_are_reported_once(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, 1, 100, 0), (2, 1, 100, 0)])
    first = on(path)
    add(path, [(1, 2, -3, 0), (2, 2, 110, 0)])
    second = on(path, first.cursor)
    assert [(ts, "not a non-negative number" in reason) for ts, reason in second.refused] == [(2, True)]
    assert on(path, second.cursor).refused == ()
    add(path, [(1, 3, 160, 0), (2, 3, 110, 0)])
    assert cells(on(path, second.cursor).rows) == [("fs-OST0001", 3, 2, 60, 0), ("fs-OST0002", 3, 1, 0, 0)]


def test_clock_going_back_is_reported_and_no_byte_is_lost(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, ts, 10 * ts, 0) for ts in range(1, 6)])
    first = on(path)
    add(path, [(1, 6, 60, 0)], {6: stamp(2)})
    second = on(path, first.cursor)
    assert second.rows.is_empty()
    assert second.refused == ((6, "fs-OST0001: The clock went back before the previous reading."),)
    add(path, [(1, 7, 90, 0)])
    assert cells(on(path, second.cursor).rows) == [("fs-OST0001", 7, 2, 40, 0)]


def test_reading_begins_after_given_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = empty(tmp_path)
    add(path, [(1, ts, ts, 0) for ts in range(1000, 1500)], {ts: stamp(ts) for ts in range(1000, 1500) if ts % 50 > 3})
    monkeypatch.setattr(lmt_following, "OVERLAP_INSTANTS", 1)
    engine = create_engine(str(path))
    for ts in (10, 1004, 1020, 1049, 1050, 1054, 1499, 1600):
        since = ZERO + timedelta(seconds=5 * ts)
        found = read_on(engine, "scratch", Reading(time_zone="UTC"), begin(engine, since, Reading(time_zone="UTC")))
        steps = [step for _, step, *_ in cells(found.rows)]
        expected = [t for t in range(1005, 1500) if t % 50 > 3 and t > ts]
        assert [step for step in steps if step > ts] == expected
        assert len(steps) <= len(expected) + 3


def test_large_backlog_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = empty(tmp_path)
    add(path, [(1, ts, ts, 0) for ts in range(1, 101)])
    assert len(on(path).rows) == 99
    monkeypatch.setattr(lmt_following, "MAX_READINGS", 80)
    monkeypatch.setattr(lmt_following, "OVERLAP_INSTANTS", 20)
    found = on(path)
    assert found.is_behind
    pieces = [len(found.rows)]
    while found.is_behind:
        found = on(path, found.cursor)
        pieces.append(len(found.rows))
    # the last instant of a batch is read again with the next batch
    assert pieces == [39, 39, 21]


def test_replaced_database_is_reported_and_not_read(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, ts, ts, 0) for ts in range(10, 20)])
    cursor = on(path).cursor
    database(tmp_path, [])
    add(path, [(1, ts, ts, 0) for ts in range(1, 5)])
    found = on(path, cursor)
    assert (found.is_replaced, found.rows.height) == (True, 0)
    database(tmp_path, [])
    add(path, [(1, ts, ts, 0) for ts in range(10, 50)], {ts: stamp(ts + 500) for ts in range(10, 50)})
    assert on(path, cursor).is_replaced
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from TIMESTAMP_INFO where TS_ID < 25")
        connection.commit()
    assert not on(path, cursor).is_replaced


def test_unknown_filesystem_is_reported_with_known_ones(tmp_path: Path) -> None:
    path = empty(tmp_path)
    add(path, [(1, 1, 1, 1)])
    with pytest.raises(UsageError, match=r"no target of the file system home. Available: scratch"):
        on(path, filesystem="home")
    engine = create_engine(f"sqlite:///{path}")
    assert read_on(engine, "home", Reading("home", "UTC"), begin(engine, ZERO, Reading(time_zone="UTC")))


def test_live_database_is_opened_read_only_and_never_created(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="cannot be read") as error:
        on(tmp_path / "absent.sqlite3")
    assert error.value.__cause__ is not None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="is not a file"):
        create_engine(str(tmp_path))
    for url in ("sqlite://", "oracle9://x/y", "mysql://me:secret@host:port/db"):
        with pytest.raises(UsageError) as refused:
            create_engine(url)
        assert "secret" not in str(refused.value)
    path = empty(tmp_path)
    with create_engine(str(path)).connect() as connection, pytest.raises(Exception, match=r"readonly|read-only"):
        connection.exec_driver_sql("delete from OST_INFO")


def test_active_writer_is_not_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmt_following, "_BUSY_S", 0.01)
    path = empty(tmp_path)
    add(path, [(1, 1, 1, 1)])
    cursor = on(path).cursor
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("begin exclusive")
        with pytest.raises(InputRefused, match="locked") as error:
            on(path, cursor)
        assert error.value.__cause__ is not None
        writer.execute("insert into TIMESTAMP_INFO values (2, ?)", (stamp(2),))
        writer.execute("insert into OST_DATA values (1, 2, 9, 9, 0)")
        writer.execute("commit")
    assert cells(on(path, cursor).rows) == [("fs-OST0001", 2, 1, 8, 8)]


def test_other_database_is_refused_permanently(tmp_path: Path) -> None:
    path = empty(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("drop table OST_DATA")
    with pytest.raises(InputRefused, match="no table OST_DATA") as error:
        on(path)
    assert error.value.__cause__ is None
    path = empty(tmp_path)
    add(path, [], {"x": stamp(1)})  # type: ignore[dict-item]
    with pytest.raises(InputRefused, match="not an integer"):
        on(path)


@settings(max_examples=examples(7), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counters=st.lists(st.lists(st.integers(0, 60), min_size=2, max_size=14), min_size=1, max_size=2),
    looks=st.sets(st.integers(1, 14), max_size=6),
)
def test_incremental_reads_equal_single_read(
    tmp_path_factory: pytest.TempPathFactory, counters: list[list[int]], looks: set[int]
) -> None:
    path = empty(tmp_path_factory.mktemp("live"))
    found, cursor = [], None
    for ts in range(1, 15):
        add(path, [(ost, ts, it[ts - 1], 7 * ts) for ost, it in enumerate(counters, 1) if ts <= len(it)])
        if ts in looks or ts == 14:
            new = on(path, cursor)
            cursor = new.cursor
            found.append(new.rows)
    whole, _ = read_input(SOURCE, path)
    expected = whole.select(
        "controller",
        pl.col("polled_at").dt.epoch("us").alias("polled_us"),
        (pl.col("interval_s") * 1e6).cast(pl.Int64).alias("interval_us"),
        "read_bytes_per_s",
        "write_bytes_per_s",
    )
    assert cells(pl.concat(found)) == cells(expected)
