"""Landed polls of a job's file system become flushes, each counted once despite delays, repeats and restarts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.settings.model import PollSettings, Settings
from iosig.streams.following import polls as polls_module
from iosig.streams.following.jobs import FollowedJob
from iosig.streams.following.merged_polls import FeedParams
from iosig.streams.following.polls import LandedPollFeed
from iosig.streams.following.rows import Identity
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.store.store import Store
from tests.budget import examples
from tests.streams.following.landed_polls import (
    START,
    Poll,
    as_json,
    at,
    content,
    contents,
    job_until,
    land_jobs,
    land_polls,
    moved,
)


def feed_of(
    store: Store, position: object = None, job: FollowedJob | None = None, limit: float | None = None, **params: float
) -> LandedPollFeed:
    known = Settings(polls=PollSettings(max_controller_bytes_per_s=limit))
    return LandedPollFeed(store, known, job or job_until(), position, params=FeedParams(**params))  # type: ignore[arg-type]


def drained(feed: LandedPollFeed) -> list[Flush]:
    flushes = feed.poll()
    while feed.is_behind:
        flushes += feed.poll()
    return flushes


def even(first: int, last: int, controllers: str = "ab") -> list[Poll]:
    """Polls every ten seconds, with volumes that identify them."""
    return [
        (second, name, float(second), 1e6 + second + 1000 * ord(name))
        for second in range(first, last + 1, 10)
        for name in controllers
    ]


def test_one_flush_holds_all_controllers_of_a_poll_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, even(10, 30))
    feed = feed_of(store)
    assert feed.identity == Identity("c/7 on scratch", "job", "c", "7", "scratch", "server", True)
    flushes = feed.poll()
    assert not feed.is_behind
    assert [flush.until_s for flush in flushes] == [10.0, 20.0, 30.0]
    assert moved(flushes[1:2], "read") == {(10.0, 20.0): [200.0, 200.0]}
    assert moved(flushes[1:2], "write") == {(10.0, 20.0): [1e7 + 970200, 1e7 + 980200]}
    assert [flush.measured.tolist() for flush in flushes] == [[[0, 10]], [[10, 20]], [[20, 30]]]  # type: ignore[union-attr]
    assert all(flush.events == () and flush.refused == () for flush in flushes)
    assert feed.poll() == []


def test_poll_time_is_flushed_when_all_known_controllers_have_reported(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path))
    assert feed.poll() == []
    land_polls(store, even(10, 10))
    assert feed.poll() == []
    land_polls(store, even(20, 20, "a"))
    assert [flush.until_s for flush in feed.poll()] == [10.0]
    land_polls(store, even(20, 20, "b"))
    assert [flush.until_s for flush in feed.poll()] == [20.0]
    assert [flush.until_s for flush in feed.finish()] == [20.0]


def test_polls_of_other_file_systems_and_times_are_ignored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, [(second, "a", 1.0, 1.0) for second in range(-100, 41, 10)])
    land_polls(store, even(10, 40), filesystem="home")
    flushes = feed_of(store).finish()
    assert sorted(moved(flushes, "read")) == [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0), (30.0, 40.0)]


def test_polls_across_the_start_or_end_contribute_their_share(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, [(second, "a", 100.0, None) for second in (-6, 4, 14, 24, 34)])
    flushes = feed_of(store, job=job_until(17)).poll()
    assert moved(flushes, "read") == {(0.0, 4.0): [400.0], (4.0, 14.0): [1000.0], (14.0, 17.0): [300.0]}
    assert moved(flushes, "write") == {}
    assert flushes[-1].events == ("end",)
    assert flushes[-1].until_s == 17.0


def test_late_poll_is_a_separate_flush_of_additional_bytes(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path))
    land_polls(store, even(10, 50, "ab"))
    feed.poll()
    land_polls(store, [*even(20, 30, "c"), *even(60, 60)])
    late = feed.poll()
    assert [flush.until_s for flush in late] == [20.0, 30.0, 60.0]
    assert moved(late[:1], "read") == {(10.0, 20.0): [200.0]}
    assert late[0].events == ()


def test_polls_beyond_the_horizon_are_refused_and_repeats_are_not(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path), horizon_s=100)
    land_polls(store, even(10, 500))
    feed.poll()
    land_polls(store, [*even(20, 490), *even(30, 40, "c"), *even(510, 510)])
    (flush,) = feed.poll()
    assert moved([flush], "read") == {(500.0, 510.0): [5100.0, 5100.0]}
    assert flush.events == ("refused",)
    assert flush.refused == ((0, "2 polls came more than 100 s late and are ignored."),)


def test_value_beats_a_gap_and_the_earliest_landing_counts(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path))
    land_polls(store, [(10, "a", None, None), (20, "a", 1.0, 1.0)], name="first")
    land_polls(store, [(10, "a", 5.0, 5.0), (20, "a", 7.0, 7.0)], name="second")
    assert moved(feed.poll(), "read") == {(0.0, 10.0): [50.0], (10.0, 20.0): [10.0]}
    land_polls(store, [(30, "a", None, None), (40, "a", 1.0, 1.0)], name="third")
    assert moved(feed.poll(), "read") == {(30.0, 40.0): [10.0]}
    land_polls(store, [(30, "a", 3.0, 3.0), (40, "a", None, None)], name="fourth")
    assert moved(feed.poll(), "read") == {(20.0, 30.0): [30.0]}


def test_implausible_rates_are_excluded(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, [(10, "a", 1e12, 1.0), (10, "b", 3.0, 2e15), (10, "c", 3.0, 1.0), (20, "c", 1.0, 1.0)])
    for limit, kept in ((None, [30.0, 1e13]), (1e11, [30.0])):
        (flush, _, _) = feed_of(store, limit=limit).finish()
        assert moved([flush], "read") == {(0.0, 10.0): kept}
        assert "refused" in flush.events
        assert flush.refused[0][1].startswith("1 polls" if limit is None else "2 polls")


def test_gap_is_reported_once_and_not_measured(tmp_path: Path) -> None:
    store = Store(tmp_path)
    nothing: list[Poll] = [(40, "a", None, None), (40, "b", None, None)]
    land_polls(store, [*even(10, 30), *nothing, *even(50, 50), *even(80, 90)])
    flushes = feed_of(store).poll()
    assert [(flush.until_s, "gap" in flush.events) for flush in flushes] == [
        (10, False), (20, False), (30, False), (40, True), (50, False), (80, True), (90, False)
    ]  # fmt: skip
    assert flushes[3].moves == {}
    assert flushes[3].measured is not None
    assert flushes[3].measured.shape == (0, 2)
    assert moved(flushes[5:6], "read") == {(70.0, 80.0): [800.0, 800.0]}


def test_flushes_on_a_grid_depend_on_content_only(tmp_path: Path) -> None:
    whole, pieces = Store(tmp_path / "whole"), Store(tmp_path / "pieces")
    land_polls(whole, even(10, 400))
    expected = feed_of(whole, flush_s=60).finish()
    assert [flush.until_s for flush in expected] == [60, 120, 180, 240, 300, 360, 400, 400]
    assert expected[0].measured.tolist() == [[0, 60]]  # type: ignore[union-attr]
    feed, found = feed_of(pieces, flush_s=60), []
    for first in range(10, 401, 70):
        land_polls(pieces, even(first, min(first + 60, 400)))
        found += feed.poll()
    found += feed.finish()
    assert contents(found) == contents(expected)


def test_minority_of_controllers_far_ahead_must_wait(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path), horizon_s=1000)
    land_polls(store, [*even(10, 50, "abc"), *even(9000, 9000, "a")])
    assert [flush.until_s for flush in feed.poll()] == [10, 20, 30, 40, 50]
    land_polls(store, even(60, 70, "abc"))
    assert [flush.until_s for flush in feed.poll()] == [60, 70]
    land_polls(store, even(9000, 9010, "bc"))
    assert [(flush.until_s, flush.events) for flush in feed.poll()] == [(9000, ("gap",))]


def test_clock_that_stays_ahead_is_refused_unless_others_stop(tmp_path: Path) -> None:
    store, feed = Store(tmp_path), feed_of(Store(tmp_path), horizon_s=1000)
    flushes: list[Flush] = []
    for piece in range(3):
        low = 10 + 300 * piece
        land_polls(store, [*even(low, low + 290, "abc"), *even(9000 + low, 9290 + low, "d")])
        flushes += feed.poll()
    assert any("ahead of the others" in reason for flush in flushes for _, reason in flush.refused)
    assert flushes[-1].until_s <= 900
    land_polls(store, even(20_000, 21_000, "a"))
    feed.poll()
    land_polls(store, even(21_010, 21_020, "a"))
    assert feed.poll()[-1].until_s >= 21_010


def test_feed_ends_with_the_job_once_its_last_polls_landed(tmp_path: Path) -> None:
    now_s = [0.0]
    store = Store(tmp_path)
    record: dict[str, object] = {"cluster": "c", "job_id": "7", "started_at": START, "state": "RUNNING"}
    land_jobs(store, record)
    land_polls(store, even(10, 30))
    feed = LandedPollFeed(store, Settings(), job_until(), clock=lambda: now_s[0])
    assert [flush.until_s for flush in feed.poll()] == [10, 20, 30]
    land_jobs(store, record | {"state": "COMPLETED", "ended_at": at(45)})
    assert feed.poll() == []
    land_polls(store, even(40, 60))
    flushes = feed.poll()
    assert [(flush.until_s, flush.events) for flush in flushes] == [(40, ()), (45, ()), (45, ("end",))]
    assert feed.is_over
    assert feed.poll() == feed.finish() == []
    assert LandedPollFeed(store, Settings(), job_until(), as_json(flushes[-1])).poll() == []
    again = LandedPollFeed(store, Settings(), job_until(), as_json(flushes[-2])).poll()
    assert contents(again) == contents(flushes[-1:])


def test_feed_ends_after_a_timeout_without_the_last_polls(tmp_path: Path) -> None:
    now_s = [0.0]
    store = Store(tmp_path)
    land_polls(store, even(10, 30))
    feed = LandedPollFeed(store, Settings(), job_until(100), clock=lambda: now_s[0])
    assert [flush.until_s for flush in feed.poll()] == [10, 20, 30]
    now_s[0] = 301.0
    assert [(flush.until_s, flush.events) for flush in feed.poll()] == [(100, ("end",))]


def test_position_of_another_start_begins_another_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, even(10, 30))
    first = feed_of(store).poll()
    other = FollowedJob("c", "7", None, None, None, at(10), None, "scratch")
    flushes = feed_of(store, as_json(first[-1]), other).poll()
    assert [(flush.until_s, flush.events) for flush in flushes] == [(10, ("replaced",)), (20, ())]


def test_unchanged_landings_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    land_polls(store, even(10, 30))
    feed = feed_of(store)
    feed.poll()
    monkeypatch.setattr(polls_module.pl, "scan_parquet", None)
    assert feed.poll() == []
    assert feed.poll() == []


def test_missing_landed_files_are_reported(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land_polls(store, even(10, 30))
    for path in store.landed.glob("*/polls-*.parquet"):
        path.unlink()
    (flush,) = feed_of(store).finish()
    assert flush.events == ("refused", "end")


def restarted(store: Store, steps: list[list[Poll]], job: FollowedJob, **params: float) -> tuple[list[Flush], int]:
    """Land step by step, and restart the feed from the position of every flush."""
    flushes: list[Flush] = []
    position, count = None, 0
    for number, step in enumerate(steps):
        land_polls(store, step, name=str(number))
        while True:
            feed = feed_of(store, position, job, **params)
            found = feed.poll()
            if not found:
                break
            flushes.append(found[0])
            position, count = as_json(found[0]), count + 1
    return flushes, count


@pytest.mark.parametrize("flush_s", [0.0, 30.0])
def test_feed_resumes_from_every_position(tmp_path: Path, flush_s: float) -> None:
    steps = [
        [*even(10, 60), (65, "a", None, None)],
        [*even(40, 90), (90, "c", 4.0, 4.0), *even(50, 60, "c")],
        [*even(20, 130), (100, "a", 1e15, 1e15)],
        [*even(300, 340), *even(140, 140)],
    ]
    job = job_until(325)
    plain, store = Store(tmp_path / "plain"), Store(tmp_path / "restarted")
    feed, expected = feed_of(plain, job=job, flush_s=flush_s, end_wait_s=1e9), []
    for number, step in enumerate(steps):
        land_polls(plain, step, name=str(number))
        expected += feed.poll()
    found, _ = restarted(store, steps, job, flush_s=flush_s, end_wait_s=1e9)
    assert contents(found) == contents(expected)
    assert found[-1].events == ("end",)
    assert sum("refused" in flush.events for flush in found) == 1


def test_long_backlog_is_delivered_in_batches_across_midnight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    backlog = [(600.0 * number, "a", 1.0, 2.0) for number in range(1, 301)]
    land_polls(store, backlog[:200], interval_s=600.0)
    land_polls(store, backlog[150:], interval_s=600.0, name="overlap")
    expected = contents(feed_of(store).finish())
    assert len(expected) == 301
    monkeypatch.setattr(polls_module, "MAX_FLUSHES", 7)
    feed = feed_of(store)
    assert len(feed.poll()) == 7
    assert feed.is_behind
    feed, found = feed_of(store), []
    for _ in range(43):
        found += feed.poll()
        feed = feed_of(store, as_json(found[-1]))
    assert contents([*found, *feed.finish()]) == expected
    assert len(str(found[-1].position)) < 1000


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.sets(st.integers(1, 12), min_size=1), min_size=1, max_size=5),
    flush_s=st.sampled_from([0.0, 25.0]),
)
def test_each_poll_counts_once_in_any_order_and_overlap(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[set[int]], flush_s: float
) -> None:
    chance = random.Random(seed)
    store = Store(tmp_path_factory.mktemp("any"))
    every = even(10, 120, "abc")
    steps = [[poll for poll in every if poll[0] / 10 in cut and chance.random() < 0.8] for cut in cuts]
    steps = [step for step in steps if step]
    chance.shuffle(steps)
    feed, flushes = feed_of(store, flush_s=flush_s), []
    for number, step in enumerate(steps):
        land_polls(store, step, name=str(number))
        flushes += feed.poll()
        if flushes and chance.random() < 0.5:
            feed = feed_of(store, as_json(flushes[-1]), flush_s=flush_s)
    flushes += feed.finish()
    expected: dict[tuple[float, float], list[float]] = {}
    for second, _, _, write in {poll for step in steps for poll in step}:
        expected.setdefault((second - 10, second), []).append(round((write or 0) * 10))
    assert moved(flushes, "write") == {key: sorted(volumes) for key, volumes in sorted(expected.items())}
    assert len({str(content(flush)) for flush in flushes}) == len(flushes)
    assert np.isfinite([flush.until_s for flush in flushes]).all()
