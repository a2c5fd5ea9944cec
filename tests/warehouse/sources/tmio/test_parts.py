"""Test the parsing of TMIO's flushes from JSON and MessagePack: limits, truncation, hostile sizes, arbitrary bytes."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import msgpack
import numpy as np
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.tmio import parts as tmio_parts
from iosig.warehouse.sources.tmio.parts import Part, Refusal, read_parts


def of(tmp_path: Path, content: bytes) -> list[Part | Refusal]:
    path = tmp_path / "trace"
    path.write_bytes(content)
    return list(read_parts(path))


def phase(moved: float, start: float, end: float) -> list[float]:
    rate = moved / (end - start) if end > start else float("inf")
    return [moved, start, end, end + 1, rate, rate, 0, 0, 1]


def array(mode: str, *phases: object, total: int = 0) -> list[object]:
    return [mode, "async" in mode, "write" in mode, total, 0, 0, 1, 1, 1, 1, 1, 4, 8, list(phases)]


# ---- MessagePack


def test_phases_have_exact_bytes(tmp_path: Path) -> None:
    content = msgpack.packb(array("write_sync", phase(3, 0, 1), phase(7, 2, 2), total=10))
    (part,) = of(tmp_path, content)
    assert isinstance(part, Part)
    assert part.moved_bytes is not None
    assert part.moved_bytes.tolist() == [3, 7]
    assert (part.start_s.tolist(), part.end_s.tolist(), part.is_rounded) == ([0, 2], [1, 2], False)
    assert (part.stated["total_bytes"], part.stated["number_of_ranks"], part.stated["total_number_of_ranks"]) == (
        10,
        4,
        8,
    )


def test_requests_of_a_flush_that_repeats_another_are_refused(tmp_path: Path) -> None:
    flush, other = array("write_sync", phase(3, 0, 1)), array("write_sync", phase(3, 2, 3))
    empty = array("read_sync")
    arrays = [flush, empty, other, flush, empty, array("write_async", phase(3, 0, 1))]
    found = of(tmp_path, b"".join(map(msgpack.packb, arrays)))
    refused = [part for part in found if isinstance(part, Refusal)]
    assert [(part.line, part.reason) for part in refused] == [(4, "Its requests of write_sync repeat those of line 1.")]
    assert len(found) == len(arrays)


def test_asynchronous_phases_end_with_their_transfer(tmp_path: Path) -> None:
    (part,) = of(tmp_path, msgpack.packb(array("read_async", phase(3, 0, 1))))
    assert isinstance(part, Part)
    assert (part.mode, part.end_s.tolist()) == ("read_async", [1])


def test_invalid_times_are_dropped(tmp_path: Path) -> None:
    (part,) = of(tmp_path, msgpack.packb(["io_time", 2.5, float("nan"), "x", 4]))
    assert isinstance(part, Part)
    assert (part.mode, part.stated) == ("io_time", {"delta_t_agg": 2.5, "delta_t_ara": 4.0})


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_truncated_array_is_refused_and_others_are_kept(tmp_path: Path, cut: int) -> None:
    content = msgpack.packb(array("write_sync", phase(3, 0, 1)))
    first, second = of(tmp_path, content + content[:-cut])
    assert isinstance(first, Part)
    assert isinstance(second, Refusal)
    assert (second.line, "truncated" in second.reason) == (2, True)


@pytest.mark.parametrize(
    "item",
    [
        {"read_sync": 1},
        [],
        [1, 2],
        ["elsewhere", *array("read_sync")[1:]],
        array("read_sync")[:-1],
        [*array("read_sync")[:-1], 5],
        array("read_sync", 5),
        array("read_sync", [1, 2]),
    ],
)
def test_other_array_is_refused(tmp_path: Path, item: object) -> None:
    good = msgpack.packb(array("write_sync"))
    kinds = [type(part) for part in of(tmp_path, msgpack.packb(array("read_sync")) + msgpack.packb(item) + good)]
    assert kinds == [Part, Refusal, Part]


@pytest.mark.parametrize(
    "content",
    [
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xffread",
        b"\x91" * 5000,
        b"\xdd\x01\xff\xff\xff" * 2000,
        b"\xc1",
        b"\x92\xa9read_sync" + b"\xc9\xff\xff\xff\xff\x01",
    ],
)
def test_excessive_declared_sizes_allocate_no_memory(tmp_path: Path, content: bytes) -> None:
    good = msgpack.packb(array("write_sync", phase(1, 0, 1)))
    found = of(tmp_path, good + content)
    assert isinstance(found[0], Part)
    assert isinstance(found[-1], Refusal)


# ---- JSON


def test_oversized_object_is_refused_and_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tmio_parts, "MAX_OBJECT_BYTES", 1000)
    good = b'{"read_sync": {}}'
    long = b'{"read_sync": {"note": "' + b"x" * 3000 + b'"}}'
    found = of(tmp_path, b"\n".join([good, long, good]))
    assert [type(part) for part in found] == [Part, Refusal, Part]
    assert found[2].line == 3
    with pytest.raises(InputRefused):
        of(tmp_path, long.replace(b": {", b":\n{"))


@pytest.mark.slow
def test_memory_does_not_grow_with_number_of_flushes(tmp_path: Path) -> None:
    numbers = np.arange(2000.0).tolist()
    flush = {"read_sync": {"bandwidth": {"b_rank_avr": numbers, "t_rank_s": numbers, "t_rank_e": numbers}}}
    line = json.dumps(flush).encode() + b"\n"
    path = tmp_path / "trace"

    def peak(count: int) -> int:
        path.write_bytes(line * count)
        tracemalloc.start()
        assert sum(1 for _ in read_parts(path)) == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(100) < 1.5 * peak(5)
