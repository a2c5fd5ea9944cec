"""A live LMT database becomes flushes that equal its landed polls, across restarts, gaps and failures."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.answers.single.one_input import PollInput, open_input
from iosig.answers.single.periods import _poll_intervals
from iosig.settings.model import PollSettings, Settings
from iosig.streams.following.jobs import FollowedJob, WatchedJob, find_jobs
from iosig.streams.following.lmt import LmtFeed, make_followed_id
from iosig.streams.following.merged_polls import FeedParams
from iosig.streams.following.polls import LandedPollFeed
from iosig.streams.following.rows import Identity
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store.store import Store
from tests.streams.following.landed_polls import as_json, contents, land_jobs
from tests.warehouse.sources.lmt_tables import database

ZERO = datetime(2026, 1, 1, tzinfo=UTC)
ZONE = "America/Los_Angeles"
REAL_START = datetime(2018, 1, 28, 8, 0, 2, tzinfo=UTC)


def add(path: Path, ts: int, read: int, *targets: int, second: int | None = None) -> None:
    """Set the bytes that targets have read until an instant, five seconds after the previous instant."""
    at = (ZERO + timedelta(seconds=5 * ts if second is None else second)).strftime("%Y-%m-%d %H:%M:%S")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute("insert or ignore into TIMESTAMP_INFO values (?, ?)", (ts, at))
        connection.executemany("insert into OST_DATA values (?, ?, ?, 0, 0)", [(it, ts, read) for it in targets])
        connection.commit()


def feed_of(path: Path, position: object = None, **given: object) -> LmtFeed:
    return LmtFeed(str(path), "scratch", ZERO, Reading(time_zone="UTC"), None, position, **given)  # type: ignore[arg-type]


def read_bytes(flushes: list[Flush]) -> float:
    return sum(float(flush.moves["read"].volume_bytes.sum()) for flush in flushes if "read" in flush.moves)


def grown(whole: Path, path: Path) -> list[tuple[int, list[tuple[object, ...]], tuple[object, ...]]]:
    """Copy a database without its readings, and return the readings by instant."""
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection:
        stamps = connection.execute("select * from TIMESTAMP_INFO order by TS_ID").fetchall()
        rows = connection.execute("select * from OST_DATA order by TS_ID, OST_ID").fetchall()
        connection.executescript("delete from OST_DATA; delete from TIMESTAMP_INFO;")
    return [(at[0], [row for row in rows if row[1] == at[0]], at) for at in stamps]


def put(path: Path, step: tuple[int, list[tuple[object, ...]], tuple[object, ...]]) -> None:
    _, rows, at = step
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute(f"insert into TIMESTAMP_INFO values ({', '.join('?' * len(at))})", at)
        for row in rows:
            connection.execute(f"insert into OST_DATA values ({', '.join('?' * len(row))})", row)
        connection.commit()


def real_feed(path: Path, filesystem: str, since: datetime, position: object = None) -> LmtFeed:
    return LmtFeed(str(path), filesystem, since, Reading(time_zone=ZONE), None, position)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "filesystem", "since"),
    [
        ("snx11025_2018-01-28", "snx11025", REAL_START),
        ("lmtdb-reset", "snx11168", datetime(2018, 4, 18, 14, 35, 22, tzinfo=UTC)),
    ],
)
@pytest.mark.slow
def test_real_readings_one_by_one_equal_the_landed_database(
    tmp_path: Path, shared_data: Path, name: str, filesystem: str, since: datetime
) -> None:
    whole, path = shared_data / "lmt" / f"{name}.sqlite3", tmp_path / "live.sqlite3"
    known = Settings(polls=PollSettings(time_zone=ZONE))
    store = Store(tmp_path / "warehouse")
    assert [arrival.refusal for arrival in land_paths(store, known, [str(whole)], ReadOptions())] == [None]
    job = FollowedJob("c", "7", None, None, None, since, None, filesystem)
    expected = LandedPollFeed(store, known, job).finish()
    assert len(expected) > 20
    steps = grown(whole, path)
    feed, flushes = real_feed(path, filesystem, since), []
    for number, step in enumerate(steps):
        put(path, step)
        # Later readings are polled in batches, which must not matter.
        flushes += feed.poll() if number < 12 or number % 6 == 0 else []
    flushes += feed.finish()
    assert contents(flushes) == contents(expected)


def test_bytes_equal_the_bytes_of_the_period_search(tmp_path: Path, shared_data: Path) -> None:
    path = shared_data / "lmt" / "snx11025_2018-01-28.sqlite3"
    known = Settings(polls=PollSettings(time_zone=ZONE))
    with open_input(path, known, ReadOptions()) as found:
        assert isinstance(found, PollInput)
        zero_s, rows = _poll_intervals(found, "bytes")
    feed = real_feed(path, "snx11025", datetime.fromtimestamp(zero_s, UTC))
    flushes = feed.finish()
    for direction in ("read", "write"):
        of = rows.filter(pl.col("direction") == direction).sort("time_s")
        times, volumes = of["time_s"].to_list(), (of["bytes_per_s"] * of["interval_s"]).to_list()
        told = [(flush.until_s, float(flush.moves[direction].volume_bytes.sum())) for flush in flushes if flush.moves]
        assert [at for at, _ in told] == pytest.approx(times)
        assert [volume for _, volume in told] == pytest.approx(volumes, rel=1e-12, abs=1e-3)


def test_feed_resumes_from_every_position(tmp_path: Path, shared_data: Path) -> None:
    whole, path = shared_data / "lmt" / "snx11025_2018-01-28.sqlite3", tmp_path / "live.sqlite3"
    expected = contents(real_feed(whole, "snx11025", REAL_START).finish())
    flushes: list[Flush] = []
    steps = grown(whole, path)[:7]
    position = None
    for step in steps:
        put(path, step)
        feed = real_feed(path, "snx11025", REAL_START, position)
        while found := [*feed.poll()] or (feed.is_behind and feed.poll()):
            flushes.append(found[0])
            position = as_json(found[0])
            feed = real_feed(path, "snx11025", REAL_START, position)
    assert contents(flushes) == expected[: len(flushes)]
    assert len(flushes) == 6
    assert len(str(position)) < 6000


def test_late_target_adds_to_its_poll_time_after_a_restart(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    for ts in range(1, 5):
        add(path, ts, 10 * ts, 1, 2)
    feed = feed_of(path)
    first = feed.poll()
    add(path, 5, 50, 1)
    add(path, 6, 60, 1)
    first += feed.poll()
    assert [flush.until_s for flush in first] == [10, 15, 20, 25]
    add(path, 5, 500, 2)
    add(path, 6, 600, 2)
    for late in (feed, feed_of(path, as_json(first[-1]))):
        flushes = late.poll()
        while late.is_behind:
            flushes += late.poll()
        assert [flush.until_s for flush in flushes] == [25, 30]
        assert [flush.moves["read"].volume_bytes.tolist() for flush in flushes] == [[460], [10, 100]]


def test_late_reading_is_not_counted_twice_after_a_restart(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    for ts in (1, 2, 3, 5, 6):
        add(path, ts, 10 * ts, 1)
    add(path, 4, 40)
    flushes = feed_of(path).poll()
    add(path, 4, 40, 1)
    for number in range(len(flushes)):
        again = feed_of(path, as_json(flushes[number])).finish()
        assert read_bytes([*flushes[: number + 1], *again]) == 50


def test_restart_repeats_no_refusal_even_after_a_purge(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    for ts in range(1, 6):
        add(path, ts, 10 * ts if ts != 3 else -1, 1, 2)
    flushes = [flush for flush in feed_of(path, params=FeedParams(flush_s=10)).poll() if flush.moves]
    assert [(flush.until_s, flush.events) for flush in flushes] == [
        (10, ("refused", "gap")), (20, ())
    ]  # fmt: skip
    for purged in (False, True):
        if purged:
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript("delete from OST_DATA where TS_ID > 4")
        feed = feed_of(path, as_json(flushes[0]), params=FeedParams(flush_s=10))
        found = feed.poll()
        for _ in range(3):
            found += feed.poll()
        assert not feed.is_behind
        assert contents(found) == contents(flushes[1:])
        assert read_bytes(feed.finish()) == 20


def test_decreasing_counter_is_a_gap(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    feed, flushes = feed_of(path), []
    for ts, read in enumerate((100, 150, 20, 40, 60), 1):
        add(path, ts, read, 1)
        flushes += feed.poll()
    assert [(flush.until_s, flush.events) for flush in flushes] == [(10, ("gap",)), (15, ("gap",)), (20, ()), (25, ())]
    assert read_bytes(flushes) == 50 + 20 + 20


def test_unreachable_database_is_retried_until_the_timeout(tmp_path: Path) -> None:
    now_s = [0.0]
    path = database(tmp_path, [])
    add(path, 1, 10, 1)
    feed = feed_of(path, clock=lambda: now_s[0], params=FeedParams(give_up_s=60))
    feed.poll()
    away = path.rename(tmp_path / "away")
    for count in (1, 2, 3):
        now_s[0] += 10
        assert feed.poll() == []
        assert feed.is_down
        assert "cannot be read" in str(feed.down_reason)
        assert feed.failed_count == count
    away.rename(path)
    add(path, 2, 15, 1)
    assert read_bytes([*feed.poll(), *feed.finish()]) == 5
    assert (feed.is_down, feed.failed_count) == (False, 0)
    feed = feed_of(path, clock=lambda: now_s[0], params=FeedParams(give_up_s=60))
    feed.poll()
    path.rename(away)
    feed.poll()
    now_s[0] += 60
    with pytest.raises(InputRefused, match="cannot be read"):
        feed.poll()


def test_initial_errors_are_raised_immediately(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="cannot be read"):
        feed_of(tmp_path / "absent").poll()
    with pytest.raises(UsageError, match="database URL"):
        LmtFeed("oracle9://x/y", "scratch", ZERO, Reading(time_zone="UTC"))
    path = database(tmp_path, [])
    add(path, 1, 1, 1)
    with pytest.raises(UsageError, match="no target of the file system home"):
        LmtFeed(str(path), "home", ZERO, Reading(time_zone="UTC")).poll()


def test_replaced_database_continues_with_its_counters(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    feed, flushes = feed_of(path), []
    for ts in range(10, 14):
        add(path, ts, 1000 * ts, 1)
        flushes += feed.poll()
    assert flushes[-1].until_s == 65
    database(tmp_path, [])
    for ts in range(1, 5):
        add(path, ts, ts, 1, second=65 + 5 * ts)
        flushes += feed.poll()
    flushes += feed.finish()
    said = [(flush.until_s, flush.events) for flush in flushes[3:]]
    assert said == [(75, ("replaced", "gap")), (80, ()), (85, ()), (85, ("end",))]
    assert read_bytes(flushes) == 3000 + 3


def test_logged_job_names_the_feed_and_ends_it(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "warehouse"), database(tmp_path, [])
    record: dict[str, object] = {"cluster": "c", "job_id": "7", "started_at": ZERO, "state": "RUNNING"}
    land_jobs(store, record)
    (job,) = find_jobs(store, Settings(), "7", filesystem="scratch")
    watched = WatchedJob(store, Settings(), job)
    feed = LmtFeed(str(path), "scratch", job.started_at, Reading(time_zone="UTC"), watched)
    assert feed.identity == Identity("c/7 on scratch", "job", "c", "7", "scratch", "server", True)
    flushes = []
    for ts in range(6):
        add(path, ts, 10 * ts, 1, 2)
        if ts == 4:
            land_jobs(store, record | {"state": "FAILED", "ended_at": ZERO + timedelta(seconds=18)})
        flushes += feed.poll()
    assert [(flush.until_s, flush.events) for flush in flushes] == [
        (5, ()), (10, ()), (15, ()), (18, ()), (18, ("end",))
    ]  # fmt: skip
    assert read_bytes(flushes) == 2 * (30 + 6)
    assert feed.is_over
    since = "since 2026-01-01T00:00:00Z"
    plain = feed_of(path).identity
    assert plain == Identity(f"{since} on scratch", "job", None, since, "scratch", "server", True)
    assert make_followed_id("x", ZERO, watched) == "c/7 on x"
    assert make_followed_id("scratch", ZERO) == plain.followed_id


def test_implausible_polls_use_the_configured_limit(tmp_path: Path) -> None:
    path = database(tmp_path, [])
    for ts, read in enumerate((0, 10, 10_000, 10_010), 1):
        add(path, ts, read, 1)
    known = Settings(polls=PollSettings(max_controller_bytes_per_s=100.0))
    flushes = feed_of(path, settings=known).finish()
    assert read_bytes(flushes) == 20
    assert [flush.events for flush in flushes if "refused" in flush.events] == [("refused", "gap")]
