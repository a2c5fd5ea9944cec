"""Test the following of a TMIO trace: growing, killed at any point, rotated, truncated, replaced, and its end."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.flushes import EVENTS, Flush
from iosig.warehouse.sources.tmio.following import TmioFeed
from tests.budget import examples
from tests.flushed_traces import HOSTILE, IO_TIME, LINES, array_of, joined, line_of, plain

WRITTEN = ("write_sync", [(3.0, 1.0, 2.0)])
LINE = line_of(WRITTEN)
FLUSH = LINE + IO_TIME


def polled(feed: TmioFeed) -> list[Flush]:
    flushes = feed.poll()
    while feed.is_behind:
        flushes += feed.poll()
    assert all(set(flush.events) <= set(EVENTS) for flush in flushes)
    return flushes


def again(feed: TmioFeed, position: Any) -> TmioFeed:
    """Return a feed that resumes at a position, as a new process would."""
    return TmioFeed(feed._path, json.loads(json.dumps(position)))


def appended(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace"


# ---- real traces


@pytest.mark.parametrize(("name", "count"), [("8.jsonl", 16), ("384.msgpack", 9)])
def test_growing_real_trace_survives_kill_after_each_flush(
    shared_data: Path, path: Path, name: str, count: int
) -> None:
    content = (shared_data / "tmio" / name).read_bytes()
    path.write_bytes(content)
    whole = TmioFeed(path)
    expected = [*polled(whole), *whole.finish()]
    assert (len(expected), expected[-1].events) == (count + 1, ("end",))
    path.write_bytes(b"")
    feed, found, step = TmioFeed(path), [], len(content) // 40 + 1
    for place in range(0, len(content), step):
        appended(path, content[place : place + step])
        while flushes := polled(feed):
            found.append(flushes[0])
            feed = again(feed, flushes[0].position)
    found += feed.finish()
    assert list(map(plain, found)) == list(map(plain, expected))
    assert [flush.position for flush in found] == [flush.position for flush in expected]


def test_trace_has_name_of_its_landing(tmp_path: Path) -> None:
    assert TmioFeed(tmp_path / "hacc" / "8.jsonl").name == "hacc/8.jsonl"
    assert TmioFeed(tmp_path / "hacc" / "trace.jsonl").name == "trace.jsonl"


# ---- consecutive flushes


def test_missing_trace_yields_no_flushes_until_it_appears(path: Path) -> None:
    feed = TmioFeed(path)
    assert (feed.poll(), feed.is_behind, feed.pending()) == ([], False, [])
    appended(path, FLUSH)
    (flush,) = feed.poll()
    assert (flush.events, flush.until_s, flush.measured) == ((), 3, None)


def test_trace_that_never_appeared_has_an_end(path: Path) -> None:
    feed = TmioFeed(path)
    (flush,) = feed.finish()
    assert (flush.events, dict(flush.moves)) == (("end",), {})
    assert feed.finish() == again(feed, flush.position).finish() == []


def test_end_is_reported_once_and_run_may_continue(path: Path) -> None:
    appended(path, FLUSH + LINE[:30])
    feed = TmioFeed(path)
    flushes = feed.finish()
    assert [flush.events for flush in flushes] == [(), ("refused", "end")]
    assert feed.finish() == []
    feed = again(feed, flushes[-1].position)
    assert (feed.poll(), feed.finish()) == ([], [])
    appended(path, LINE[30:] + IO_TIME)
    flush, end = feed.finish()
    assert (flush.events, flush.until_s, end.events, dict(end.moves)) == ((), 3, ("end",), {})


@pytest.mark.parametrize("is_restarted", [False, True])
def test_last_line_without_line_end_counts(path: Path, is_restarted: bool) -> None:
    appended(path, FLUSH + LINE[:-1])
    feed = TmioFeed(path)
    first, last = feed.finish()
    assert (first.until_s, last.until_s, last.events) == (3, 3, ("end",))
    feed = again(feed, last.position) if is_restarted else feed
    appended(path, b"\n" + FLUSH)
    (flush,) = feed.poll()
    assert (flush.events, flush.position["line"]) == ((), 5)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_pending_requests_are_returned_once(path: Path, is_restarted: bool) -> None:
    transfers, record = line_of(("read_async_t", [(8.0, 0.0, 1.0)])), line_of(("read_async_b", [(4.0, 0.0, 2.0)]))
    appended(path, transfers)
    feed = TmioFeed(path)
    assert feed.poll() == []
    (early,) = feed.pending()
    assert (early.until_s, early.events, feed.pending()) == (1, (), [])
    feed = again(feed, early.position) if is_restarted else feed
    assert (feed.poll(), feed.pending()) == ([], [])
    appended(path, record + LINE + IO_TIME)
    (late,) = feed.poll()
    assert joined([late]) == {"write": [(1, 3, 6)]}


def test_refused_lines_are_reported(path: Path) -> None:
    appended(path, LINE + b"hello\n" + IO_TIME)
    (flush,) = TmioFeed(path).poll()
    assert (flush.events, [line for line, _ in flush.refused]) == (("refused",), [2])


# ---- changes of the file


@pytest.mark.parametrize("is_restarted", [False, True])
def test_rotation_within_a_flush_loses_nothing(path: Path, tmp_path: Path, is_restarted: bool) -> None:
    read = line_of(("read_sync", [(5.0, 3.0, 1.0)]))
    appended(path, FLUSH + LINE)
    feed = TmioFeed(path)
    (first,) = feed.poll()
    feed = again(feed, first.position) if is_restarted else feed
    path.rename(tmp_path / "trace.1")
    path.write_bytes(read + IO_TIME + FLUSH)
    second, third = polled(feed)
    assert (second.events, third.events) == (("rotated",), ())
    assert joined([second]) == {"read": [(3, 4, 5)], "write": [(1, 3, 6)]}


def test_flush_at_end_of_rotated_file_is_separate(path: Path, tmp_path: Path) -> None:
    appended(path, LINE)
    feed = TmioFeed(path)
    assert feed.poll() == []
    path.rename(tmp_path / "trace.1")
    path.write_bytes(line_of(("write_sync", [(4.0, 5.0, 1.0)])) + IO_TIME)
    first, second = polled(feed)
    assert (first.events, second.events) == ((), ("rotated",))
    (tmp_path / "trace.1").unlink()
    (later,) = polled(again(feed, first.position))
    assert plain(later) == plain(second)


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("event", ["replaced", "truncated"])
def test_replaced_or_truncated_file_is_read_from_start(
    path: Path, tmp_path: Path, event: str, is_restarted: bool
) -> None:
    other = line_of(("read_sync", [(5.0, 3.0, 1.0)])) + IO_TIME
    appended(path, FLUSH + LINE)
    feed = TmioFeed(path)
    (first,) = feed.poll()
    feed = again(feed, first.position) if is_restarted else feed
    if event == "replaced":
        path.replace(tmp_path.parent / f"{tmp_path.name} old")
    else:
        os.truncate(path, 0)
    path.write_bytes(other + other)
    flushes = polled(feed)
    # Pending flushes of the old content are returned if they were read.
    assert [flush.events for flush in flushes] == [*([()] if not is_restarted else []), (event,), ()]
    assert joined(flushes[-2:]) == {"read": [(3, 4, 5)] * 2}
    assert [flush.position["line"] for flush in flushes[-2:]] == [2, 4]
    if not is_restarted:
        assert list(map(plain, polled(again(feed, flushes[0].position)))) == list(map(plain, flushes[1:]))


def test_json_lines_may_be_replaced_by_arrays(path: Path, tmp_path: Path) -> None:
    appended(path, FLUSH)
    feed = TmioFeed(path)
    (first,) = feed.poll()
    (tmp_path / "new").write_bytes(array_of(*WRITTEN) + b"\xc1")
    (tmp_path / "new").replace(path)
    (second,) = polled(feed)
    assert (second.events, joined([second])) == (("replaced", "refused"), joined([first]))
    feed = again(feed, second.position)
    appended(path, array_of(*WRITTEN) * 3)
    assert (feed.poll(), feed.pending()) == ([], [])
    (tmp_path / "new").write_bytes(FLUSH + LINE)
    (tmp_path / "new").replace(path)
    (third,) = polled(feed)
    assert third.events == ("replaced",)


def test_unsupported_file_is_refused_until_replaced(path: Path, tmp_path: Path) -> None:
    for content, word in (
        (json.dumps(json.loads(LINE), indent=1).encode(), "iosig period"),
        (gzip.compress(LINE), "plain"),
    ):
        path.write_bytes(content)
        feed = TmioFeed(path)
        for _ in range(2):
            with pytest.raises(InputRefused, match=word):
                feed.poll()
            appended(path, b"\n")
        with pytest.raises(InputRefused, match=word):
            feed.finish()
        (tmp_path / "new").write_bytes(FLUSH)
        (tmp_path / "new").replace(path)
        (flush,) = feed.poll()
        assert (flush.events, feed.poll()) == (("replaced",), [])


# ---- random interruptions


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(LINES, LINES, HOSTILE), min_size=1, max_size=12).map(b"".join), st.data())
def test_growth_and_kills_at_any_point_change_nothing(tmp_path: Path, content: bytes, data: st.DataObject) -> None:
    path = tmp_path / "trace"
    content = LINE + content
    path.write_bytes(content)
    whole = TmioFeed(path)
    expected = [*polled(whole), *whole.finish()]
    path.write_bytes(b"")
    feed, found, place = TmioFeed(path), list[Flush](), 0
    while place < len(content):
        size = data.draw(st.integers(1, 400))
        appended(path, content[place : place + size])
        place += size
        flushes = polled(feed)
        # Flushes that were not recorded before the kill are returned again.
        kept = data.draw(st.integers(0, len(flushes))) if data.draw(st.booleans()) else None
        found += flushes[:kept]
        if kept is not None:
            feed = again(feed, found[-1].position) if found else TmioFeed(path)
    found += feed.finish()
    assert list(map(plain, found)) == list(map(plain, expected))


SINGLE = st.lists(st.sampled_from([1.0, 2.5, 1e9]), min_size=1, max_size=8)


def timed(rates: list[float]) -> list[bytes]:
    """Return lines of a phase each, at distinct times as in any run."""
    return [line_of(("write_sync", [(rate, float(number), 1.0)])) for number, rate in enumerate(rates)]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SINGLE.map(timed), st.data())
def test_rotations_between_lines_lose_and_duplicate_nothing(
    tmp_path: Path, lines: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path / "trace"
    for old in tmp_path.iterdir():
        old.unlink()
    path.write_bytes(b"".join(lines))
    whole = TmioFeed(path)
    expected = [*polled(whole), *whole.finish()]
    path.unlink()
    feed, found, rotations = TmioFeed(path), list[Flush](), 0
    for number, line in enumerate(lines):
        cut = data.draw(st.integers(0, len(line)))
        appended(path, line[:cut])
        found += polled(feed)
        appended(path, line[cut:])
        if data.draw(st.booleans()):
            found += polled(feed)
            path.rename(tmp_path / f"trace.{number}")
            rotations += number + 1 < len(lines)
        if data.draw(st.booleans()):
            feed = again(feed, found[-1].position) if found else feed
    found += polled(feed)
    found += feed.finish()
    assert joined(found) == joined(expected)
    assert [plain(flush)[:2] for flush in found] == [plain(flush)[:2] for flush in expected]
    assert sum(flush.events.count("rotated") for flush in found) == rotations
    assert not any(flush.refused for flush in found)
    assert [flush.events[-1:] == ("end",) for flush in found].count(True) == 1


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SINGLE.map(timed), min_size=1, max_size=4), st.data())
def test_consecutive_runs_are_distinguished(tmp_path: Path, runs: list[list[bytes]], data: st.DataObject) -> None:
    """Each run's trace replaces the previous trace; all flushes are returned, and the first has the event."""
    path = tmp_path / "trace"
    path.unlink(missing_ok=True)
    feed, found = TmioFeed(path), list[list[Flush]]()
    for number, lines in enumerate(runs):
        content = b'{"io_time": {"delta_t_agg": %d}}\n' % number + b"".join(lines)
        in_place = data.draw(st.booleans())
        if in_place and path.exists():
            os.truncate(path, 0)
            path.write_bytes(content)
        else:
            (tmp_path / "new").write_bytes(content)
            (tmp_path / "new").replace(path)
        flushes = polled(feed) + feed.pending()
        # The previous run's pending flushes were already returned, so nothing of it remains.
        event = () if not number else ("truncated" if in_place else "replaced",)
        assert [flush.events for flush in flushes] == [event, *[()] * (len(flushes) - 1)]
        assert len(flushes) == len(lines) + 1
        found.append(flushes)
        feed = again(feed, flushes[-1].position) if data.draw(st.booleans()) else feed
    assert [flush.events for flush in feed.finish()] == [("end",)]
