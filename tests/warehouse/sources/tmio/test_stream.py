"""Test the stream of TMIO's flushes: independent of chunk sizes, and equal to a naive and to the batch reader."""

from __future__ import annotations

import json
import math
import random
import tracemalloc
from pathlib import Path

import msgpack
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.tmio import source
from iosig.warehouse.sources.tmio.stream import StreamedFlush, TmioStream
from tests.budget import examples
from tests.flushed_traces import (
    ARRAYS,
    GOOD_PHASES,
    HOSTILE,
    IO_TIME,
    LINES,
    MODES,
    PACKED_IO_TIME,
    array_of,
    line_of,
    plain,
    requests_of,
)
from tests.naive import tmio_flushes as naive

ONE = ("write_sync", [(3.0, 1.0, 2.0)])
LINE = line_of(ONE)


def fed(content: bytes, sizes: list[int], stream: TmioStream | None = None) -> list[StreamedFlush]:
    """Feed content in chunks of these sizes, cyclically, to its end."""
    stream = stream or TmioStream()
    found: list[StreamedFlush] = []
    place = turn = 0
    while place < len(content):
        size = sizes[turn % len(sizes)]
        found += stream.feed(content[place : place + size])
        place, turn = place + size, turn + 1
    return found + stream.finish()


def at_once(content: bytes) -> list[StreamedFlush]:
    return fed(content, [len(content) + 1])


SIZES = st.lists(st.integers(1, 90), min_size=1, max_size=6)


# ---- independence of chunk sizes


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(LINES, LINES, HOSTILE), max_size=12).map(b"".join), SIZES, st.integers(0, 40))
def test_flushes_of_lines_do_not_depend_on_chunk_sizes(content: bytes, sizes: list[int], cut: int) -> None:
    content = LINE + content[: max(len(content) - cut, 0)]
    assert list(map(plain, fed(content, sizes))) == list(map(plain, at_once(content)))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.one_of(ARRAYS, ARRAYS, ARRAYS, st.sampled_from([b"\x01", b"\xc1", b"\x91\x01"])), max_size=12),
    SIZES,
    st.integers(0, 9),
)
def test_flushes_of_arrays_do_not_depend_on_chunk_sizes(arrays: list[bytes], sizes: list[int], cut: int) -> None:
    content = array_of(*ONE) + b"".join(arrays)
    content = content[: len(content) - cut] if cut < len(content) else content
    assert list(map(plain, fed(content, sizes))) == list(map(plain, at_once(content)))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(LINES, LINES, HOSTILE), max_size=12).map(b"".join), st.data())
def test_stream_resumes_after_any_flush(content: bytes, data: st.DataObject) -> None:
    content = LINE + content
    whole = at_once(content)
    place = data.draw(st.integers(0, len(whole) - 1))
    known = whole[place]
    stream = TmioStream(offset=known.end, line=known.line, form=known.form, seen=known.seen)
    rest = fed(content[known.end :], data.draw(SIZES), stream)
    assert list(map(plain, rest)) == list(map(plain, whole[place + 1 :]))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(MODES), GOOD_PHASES, min_size=1, max_size=3).map(
            lambda modes: line_of(*modes.items())
        )
        | st.just(IO_TIME),
        max_size=12,
    )
)
def test_flushes_match_naive_implementation(lines: list[bytes]) -> None:
    content = b"".join(lines)
    assert [requests_of(flush.moves) for flush in at_once(content)] == naive.flushes(content.decode())


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(GOOD_PHASES, min_size=1, max_size=4), st.data())
def test_pending_requests_are_counted_once(
    flushes: list[list[tuple[float, float, float]]], data: st.DataObject
) -> None:
    """A transfer and the second record of it are not both counted, wherever pending() splits flushes."""
    stream, found = TmioStream(), []
    for phases in flushes:
        modes = data.draw(st.permutations(["read_async_t", "read_async_b", "read_sync"]))
        for line in [*(line_of((mode, phases)) for mode in modes), IO_TIME]:
            found += stream.feed(line)
            early = stream.pending() if data.draw(st.booleans()) else None
            if early:
                found.append(early)
                if data.draw(st.booleans()):
                    stream = TmioStream(offset=early.end, line=early.line, form=early.form, seen=early.seen)
    count = sum(moves.start_s.size for flush in found for moves in flush.moves.values())
    assert count == 2 * sum(map(len, flushes))


def batch(path: Path) -> dict[str, list[tuple[float, float, float | None]]]:
    """Return all landed requests by direction."""
    rows = pl.concat([b.rows for b in source.read(path, Reading()) if b.table.name == "trace_requests"])
    wanted = rows.select("direction", "start_s", "end_s", "request_bytes").iter_rows()
    found: dict[str, list[tuple[float, float, float | None]]] = {}
    for direction, *request in wanted:
        found.setdefault(direction, []).append(tuple(request))
    return {direction: sorted(requests, key=str) for direction, requests in found.items()}


@pytest.mark.parametrize(("name", "count"), [("8.jsonl", 16), ("384.msgpack", 9)])
def test_real_traces_have_the_landed_requests(shared_data: Path, name: str, count: int) -> None:
    path = shared_data / "tmio" / name
    content, landed = path.read_bytes(), batch(path)
    whole = at_once(content)
    assert (len(whole), whole[-1].end) == (count, len(content))
    merged: dict[str, list[tuple[float, float, float | None]]] = {}
    for flush in whole:
        for direction, requests in requests_of(flush.moves).items():
            merged.setdefault(direction, []).extend(requests)
    ends = [max(float(moves.end_s.max()) for moves in flush.moves.values()) for flush in whole[:-1]]
    assert [flush.until_s for flush in whole[:-1]] == ends
    assert (dict(whole[-1].moves), math.isnan(whole[-1].until_s)) == ({}, True)
    assert {direction: sorted(requests, key=str) for direction, requests in merged.items()} == landed
    generator = random.Random(len(content))
    sizes = [generator.choice([1, 7, 5000, 70_000]) for _ in range(50)]
    assert list(map(plain, fed(content, sizes))) == list(map(plain, whole))


def test_real_trace_is_read_byte_by_byte(shared_data: Path) -> None:
    content = (shared_data / "tmio" / "8.jsonl").read_bytes()[:50_000]
    assert list(map(plain, fed(content, [1]))) == list(map(plain, at_once(content)))


# ---- flush boundaries


def test_flush_ends_after_io_time_or_before_repeated_mode() -> None:
    stream = TmioStream()
    assert stream.feed(LINE) == []
    (first,) = stream.feed(LINE)
    assert (first.end, first.line, first.until_s) == (len(LINE), 1, 3)
    (second,) = stream.feed(IO_TIME)
    assert (second.end, second.line) == (2 * len(LINE) + len(IO_TIME), 3)
    assert stream.pending() is None
    assert stream.finish() == []


def test_rates_without_mode_are_a_flush() -> None:
    line = b'{"b_rank_avr": [4], "t_rank_s": [1], "t_rank_e": [3]}\n'
    first, second = TmioStream().feed(line * 2)
    assert requests_of(first.moves) == requests_of(second.moves) == {"unstated": [(1, 3, 8)]}


def test_phase_without_duration_has_unknown_size() -> None:
    (flush,) = at_once(line_of(("read_sync", [(5.0, 1.0, 0.0), (0.0, 2.0, 0.0)])))
    assert requests_of(flush.moves) == {"read": [(1, 1, None), (2, 2, 0)]}


def test_pending_requests_are_a_separate_flush() -> None:
    transfers, record = line_of(("read_async_t", [(8.0, 0.0, 1.0)])), line_of(("read_async_b", [(4.0, 0.0, 2.0)]))
    for first, second in ((transfers, record), (record, transfers)):
        stream = TmioStream()
        stream.feed(first)
        early = stream.pending()
        assert early is not None
        assert [moves.volume_bytes.sum() for moves in early.moves.values()] == [8]
        (late,) = stream.feed(second + IO_TIME)
        assert (dict(late.moves), math.isnan(late.until_s), dict(late.seen)) == ({}, True, {})


# ---- incomplete or invalid lines


def test_incomplete_line_waits_and_counts_at_end_if_valid() -> None:
    stream = TmioStream()
    assert stream.feed(LINE[:-1]) == []
    assert stream.pending() is None
    (flush,) = stream.finish()
    assert (flush.end, flush.line, len(flush.moves)) == (len(LINE) - 1, 0, 1)
    assert stream.feed(b"\n") == []
    (flush,) = stream.feed(IO_TIME)
    assert flush.line == 2


def test_truncated_line_is_refused_at_end_but_read_once_complete() -> None:
    stream = TmioStream()
    stream.feed(LINE + IO_TIME + LINE[:40])
    (flush,) = stream.finish()
    assert (flush.moves, [line for line, _ in flush.refused], flush.end) == ({}, [3], len(LINE + IO_TIME))
    (flush,) = stream.feed(LINE[40:] + IO_TIME)
    assert requests_of(flush.moves) == {"write": [(1, 3, 6)]}


def test_bad_lines_are_refused_and_others_are_read() -> None:
    bad = [b"hello", b"[1]", b'{"other": 1}', b'{"read_sync": 7}', b'{"io_time": {}, "io_time": {}}', b"[" * 99_999]
    (flush,) = TmioStream().feed(b"\n".join(bad) + b"\n\n\xef\xbb\xbf" + LINE + IO_TIME)
    assert [line for line, _ in flush.refused] == [1, 2, 3, 4, 5, 6]
    assert all(len(reason) < 300 for _, reason in flush.refused)
    assert (len(flush.moves), flush.line) == (1, 9)


def test_reported_bad_requests_are_limited() -> None:
    phases = [(1.0, 0.0, 1.0), *[(-1.0, 0.0, 1.0)] * 50, (2.0, 0.0, 1.0)]
    (flush,) = at_once(line_of(("read_sync", phases)))
    assert requests_of(flush.moves) == {"read": [(0, 1, 1), (0, 1, 2)]}
    assert len(flush.refused) == 21
    assert flush.refused[0] == (1, "read_sync: request 2: its rate or its bytes are negative.")
    assert flush.refused[-1] == (1, "read_sync: 30 more requests are invalid.")


def test_bad_lines_are_returned_in_batches_of_a_thousand() -> None:
    flushes = fed(LINE + b"x\n" * 2500, [777])
    assert [len(flush.refused) for flush in flushes] == [1000, 1000, 500]
    assert [len(flush.moves) for flush in flushes] == [1, 0, 0]


def test_overlong_line_is_skipped_to_its_end() -> None:
    content = LINE + b'{"read_sync": "' + b"x" * 5000 + b'"}\n' + IO_TIME
    for sizes in ([1], [100], [10_000]):
        (flush,) = fed(content, sizes, TmioStream(max_object_bytes=500))
        assert ([line for line, _ in flush.refused], len(flush.moves), flush.line) == ([2], 1, 3)
    (flush,) = fed(b"x" * 5000, [300], TmioStream(max_object_bytes=500))
    assert ([line for line, _ in flush.refused], flush.end) == ([1], 0)


def test_endless_line_takes_bounded_memory() -> None:
    stream = TmioStream(max_object_bytes=1 << 16)
    piece = b"x" * (1 << 16)
    tracemalloc.start()
    for _ in range(100):
        stream.feed(piece)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 19


def test_oversized_array_ends_the_stream() -> None:
    content = array_of(*ONE) + array_of("read_sync", [(1.0, 1.0, 1.0)] * 50) + array_of(*ONE)
    seen = [fed(content, sizes, TmioStream(max_object_bytes=500)) for sizes in ([1], [100], [10_000])]
    assert [plain(flush) for flush in seen[0]] == [plain(flush) for flush in seen[1]] == [plain(seen[2][0])]
    (flush,) = seen[0]
    assert (flush.form, [line for line, _ in flush.refused], len(flush.moves)) == ("broken", [2], 1)
    assert TmioStream(offset=flush.end, form=flush.form).feed(array_of(*ONE) * 2) == []


def test_broken_array_is_reported_once() -> None:
    stream = TmioStream()
    (flush,) = stream.feed(array_of(*ONE) + b"\xc1" + array_of(*ONE))
    assert (flush.form, flush.end, len(flush.refused)) == ("broken", len(array_of(*ONE)), 1)
    assert stream.feed(array_of(*ONE) + PACKED_IO_TIME) == stream.finish() == []


def test_truncated_array_is_refused_at_end() -> None:
    content = array_of(*ONE)
    (flush,) = at_once(content + msgpack.packb(["read_sync", *range(5)])[:-1])
    assert (flush.end, [line for line, _ in flush.refused]) == (len(content), [2])


# ---- a single JSON document


@pytest.mark.parametrize("sizes", [[1], [10], [5000]], ids=str)
def test_multiline_json_document_is_refused(shared_data: Path, sizes: list[int]) -> None:
    with pytest.raises(InputRefused, match="iosig period"):
        fed((shared_data / "tmio" / "custom.json").read_bytes(), sizes)
    for indent in (0, 1, 4):
        with pytest.raises(InputRefused, match="iosig period"):
            fed(json.dumps(json.loads(LINE), indent=indent).encode(), sizes)


def test_truncated_first_line_is_refused_and_others_are_read() -> None:
    (flush,) = TmioStream().feed(LINE[:60] + b"\n" + LINE + IO_TIME)
    assert ([line for line, _ in flush.refused], len(flush.moves)) == ([1], 1)
    (flush,) = at_once(b"{\n")
    assert (flush.refused[0][0], flush.end) == (1, 2)


def test_last_line_of_rotated_file_is_read() -> None:
    stream = TmioStream()
    stream.feed(LINE)
    before, last = stream.end_file()
    assert (before, last, stream.end) == ([], [], 0)
    (flush,) = stream.feed(IO_TIME + LINE)
    assert (flush.end, flush.line, len(flush.moves)) == (len(IO_TIME), 1, 1)
    stream.feed(LINE[:-1])
    (before_last,), rest = stream.end_file()
    assert (before_last.end, rest) == (len(IO_TIME + LINE), [])
    (flush,) = stream.finish()
    assert (flush.end, len(flush.moves)) == (0, 1)
    stream.feed(LINE + IO_TIME[:-1])
    before, (last_flush,) = stream.end_file()
    assert (before, last_flush.end, last_flush.form) == ([], 0, None)
