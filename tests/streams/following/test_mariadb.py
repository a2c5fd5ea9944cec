"""An LMT database on a real MariaDB is followed across restarts and resets, and landed by its URL."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.settings.model import Settings
from iosig.streams.following.lmt import LmtFeed
from iosig.streams.following.merged_polls import FeedParams
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.servers import MariaDb, mariadb
from tests.warehouse.sources.lmt_tables import MARIADB_TABLES, database

pytestmark = pytest.mark.long

ZERO = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "filesystem_scratch"
_DROPPED = "drop table if exists FILESYSTEM_INFO, OSS_INFO, OST_INFO, TIMESTAMP_INFO, OST_DATA"

#: columns of each reading: target, number, bytes read and written so far
Readings = list[tuple[int, int, int, int]]


def readings(count: int, seed: int = 5) -> Readings:
    """Return the counters of two targets; the second is reset half way."""
    chance, found = random.Random(seed), []
    totals = {1: [0, 0], 2: [0, 0]}
    for number in range(1, count + 1):
        for target, total in totals.items():
            if (target, number) == (2, count // 2):
                total[:] = [0, 0]
            total[:] = [each + chance.randrange(1 << 30) for each in total]
            found.append((target, number, *total))
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb() as running:
        yield running


@pytest.fixture
def empty(server: MariaDb) -> MariaDb:
    for statement in (_DROPPED, *MARIADB_TABLES):
        server.run(statement, database=NAME)
    return server


def at(number: int) -> str:
    return (ZERO + timedelta(seconds=5 * number)).strftime("%Y-%m-%d %H:%M:%S")


def add(server: MariaDb, rows: Readings) -> None:
    """Write readings of one instant, as LMT's daemon does: the instant first."""
    (number,) = {number for _, number, *_ in rows}
    server.run("insert into TIMESTAMP_INFO values (%s, %s)", (number, at(number)), database=NAME)
    server.run("insert into OST_DATA values (%s, %s, %s, %s, 0)", *rows, database=NAME)


def sqlite(folder: Path, rows: Readings) -> Path:
    """Return the same database as an SQLite file."""
    infos = {"OST_INFO": [(1, 7, "scratch-OST0001", "h"), (2, 7, "scratch-OST0002", "h")]}
    return database(folder, rows, times={number: at(number) for _, number, *_ in rows}, infos=infos)  # type: ignore[arg-type]


def feed_of(url: str, position: object = None) -> LmtFeed:
    params = FeedParams(give_up_s=600)
    return LmtFeed(url, "scratch", ZERO, Reading(time_zone="UTC"), None, position, params=params)  # type: ignore[arg-type]


def moved(flushes: list[Flush]) -> dict[str, float]:
    """Return the bytes of each direction."""
    return {
        name: sum(float(flush.moves[name].volume_bytes.sum()) for flush in flushes if name in flush.moves)
        for name in ("read", "write")
    }


def test_live_feed_equals_the_database_file_across_restarts(empty: MariaDb, tmp_path: Path) -> None:
    rows = readings(24)
    feed, flushes = feed_of(empty.url), []
    for number in range(1, 25):
        add(empty, [row for row in rows if row[1] == number])
        flushes += feed.poll()
        if number in (6, 12):
            # the server dies between two polls; the same feed resumes, and so does a new feed from its position
            empty.stop()
            assert feed.poll() == []
            assert feed.is_down
            empty.start()
            if number == 12:
                feed = feed_of(empty.url, flushes[-1].position)
    flushes += feed.finish()
    other = feed_of(str(sqlite(tmp_path, rows)))
    whole = [*other.poll(), *other.finish()]
    assert moved(flushes) == moved(whole)
    assert moved(flushes)["read"] > 1e9
    assert [flush.until_s for flush in flushes if flush.moves] == [flush.until_s for flush in whole if flush.moves]


def test_reset_database_continues_with_its_counters(empty: MariaDb) -> None:
    feed, flushes = feed_of(empty.url), []
    for number in range(10, 14):
        add(empty, [(1, number, 1000 * number, 0)])
        flushes += feed.poll()
    for statement in (_DROPPED, *MARIADB_TABLES):
        empty.run(statement, database=NAME)
    for number in range(14, 18):
        empty.run("insert into TIMESTAMP_INFO values (%s, %s)", (number - 13, at(number)), database=NAME)
        empty.run("insert into OST_DATA values (%s, %s, %s, 0, 0)", (1, number - 13, number), database=NAME)
        flushes += feed.poll()
    flushes += feed.finish()
    assert moved(flushes)["read"] == 3000 + 3
    assert [flush.events for flush in flushes if "replaced" in flush.events]


def test_url_lands_as_the_file_does(empty: MariaDb, tmp_path: Path) -> None:
    rows = readings(12)
    for number in range(1, 13):
        add(empty, [row for row in rows if row[1] == number])
    found = []
    for name, source in (("url", empty.url), ("file", str(sqlite(tmp_path, rows)))):
        store = Store(tmp_path / name)
        (arrival,) = land_paths(store, Settings(), [source], ReadOptions(time_zone="UTC"))
        assert arrival.refusal is None
        parts = [part for part in landing.ledger(store)[0].parts if part.table == "polls"]
        found.append(pl.concat([pl.read_parquet(store.root / part.path) for part in parts]))
    assert found[0].equals(found[1])
    assert found[0].height > 20


def test_unreachable_database_is_refused(empty: MariaDb, tmp_path: Path) -> None:
    empty.stop()
    began = time.monotonic()
    (arrival,) = land_paths(Store(tmp_path / "w"), Settings(), [empty.url], ReadOptions(time_zone="UTC"))
    assert isinstance(arrival.refusal, InputRefused)
    assert "cannot be read" in arrival.refusal.reason
    assert time.monotonic() - began < 30
    empty.start()
