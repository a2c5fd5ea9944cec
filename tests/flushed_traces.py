"""TMIO traces for tests: lines and arrays of any flushes, and what flushes hold in a form that can be compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgpack
from hypothesis import strategies as st

from iosig.warehouse.following.flushes import Flush, Moves
from iosig.warehouse.sources.tmio.stream import StreamedFlush

MODES = ("read_sync", "read_async_t", "read_async_b", "write_async_t", "write_async_b", "write_sync")

RATES = st.sampled_from([0.0, 1.0, 2.5, 1e9, -1.0, math.nan])
TIMES = st.integers(0, 9).map(float)
PHASES = st.lists(st.tuples(RATES, TIMES, TIMES.map(lambda time: time / 2)), max_size=4)
GOOD_PHASES = st.lists(st.tuples(st.sampled_from([1.0, 2.5, 1e9]), TIMES, TIMES), max_size=4)


def line_of(*modes: tuple[str, list[tuple[float, float, float]]]) -> bytes:
    """Return a line with these modes, whose phases are (rate, start, how long)."""
    document: dict[str, Any] = {}
    for mode, phases in modes:
        rates, starts, ends = [r for r, _, _ in phases], [s for _, s, _ in phases], [s + d for _, s, d in phases]
        document[mode] = {"bandwidth": {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": ends}}
    return json.dumps(document).encode() + b"\n"


def array_of(mode: str, phases: list[tuple[float, float, float]]) -> bytes:
    """Return an array with a mode, whose phases are (rate, start, how long)."""
    packed = [
        [rate * lasted, start, start + lasted, start + lasted, rate, rate, 0, 0, 1] for rate, start, lasted in phases
    ]
    return bytes(msgpack.packb([mode, False, False, 0, 0, 0, 1, 1, 1, 1, 1, 4, 8, packed]))


IO_TIME = b'{"io_time": {"delta_t_agg": 2.5}}\n'
PACKED_IO_TIME = bytes(msgpack.packb(["io_time", 2.5]))
LINES = st.one_of(
    st.just(IO_TIME), st.builds(lambda mode, phases: line_of((mode, phases)), st.sampled_from(MODES), PHASES)
)
ARRAYS = st.one_of(st.just(PACKED_IO_TIME), st.builds(array_of, st.sampled_from(MODES), PHASES))
HOSTILE = st.sampled_from(
    [
        b"\n",
        b"hello\n",
        b"\x9e\x80\n",
        b'{"read_sync": 7}\n',
        b"[1]\n",
        b'{"read_sync": {"bandwidth": {"b_rank_a\n',
        b"{}\n",
    ]
)


def requests_of(moves: Mapping[str, Moves]) -> dict[str, list[tuple[float, float, float | None]]]:
    """Return the requests by direction, None for an unknown size."""
    return {
        direction: [
            (began, ceased, None if math.isnan(moved) else moved)
            for began, ceased, moved in zip(
                part.start_s.tolist(), part.end_s.tolist(), part.volume_bytes.tolist(), strict=True
            )
        ]
        for direction, part in moves.items()
    }


def plain(flush: StreamedFlush | Flush) -> tuple[Any, ...]:
    """Return what a flush says, as plain values."""
    until_s = None if math.isnan(flush.until_s) else flush.until_s
    said = (requests_of(flush.moves), until_s, flush.refused)
    if isinstance(flush, Flush):
        return (*said, flush.events)
    return (*said, flush.end, flush.line, flush.form, dict(flush.seen))


def joined(flushes: Iterable[Flush]) -> dict[str, list[tuple[float, float, float | None]]]:
    """Return all requests by direction, in order."""
    found: dict[str, list[tuple[float, float, float | None]]] = {}
    for flush in flushes:
        for direction, requests in requests_of(flush.moves).items():
            found.setdefault(direction, []).extend(requests)
    return {direction: sorted(requests, key=str) for direction, requests in sorted(found.items())}
