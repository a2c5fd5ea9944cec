"""Test lines of DFTracer's files: block size has no effect, and each invalid line is refused individually."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.dftracer.lines import Lines, read_with_duckdb
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.text_blocks import Block
from tests.dftracer_traces import CALLS, EPOCH_US, Process, put, write_call
from tests.warehouse.sources.dftracer_landing import landed, moved, one

# ---- single lines


def _called(args: str) -> str:
    return f'{{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":{EPOCH_US},"dur":1,"ph":"X","args":{{{args}}}}}'


def _said(kind: str, args: str) -> str:
    return f'{{"id":1,"name":"{kind}","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{{{args}}}}}'


NO_NAMES = {
    "`fname` is not text": _called('"fname":5'),
    "`hostname` is not text": _called('"hostname":true'),
    "`hhash` is not a hash": _called('"hhash":1.5'),
    "`fhash` is not a hash": _called('"fhash":{"a":1}'),
    "event: `name` is not text": _said("HH", '"name":5,"value":7'),
    "`value` is not a hash": _said("FH", '"name":"/a","value":1e3'),
}
BAD = {
    "it is not JSON": '{"id":1,"name":',
    "`name` is not text": '{"id":1,"name":5,"cat":"POSIX","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X"}',
    "a name occurs twice": '{"id":1,"id":2,"name":"write","cat":"POSIX","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X"}',
    "it is not an object": "[1, 2]",
    "it is nested too deeply": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "`true` is not a number": '{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":true,"dur":1,"ph":"X"}',
    "`1.5` is not a number": '{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":1.5,"dur":1,"ph":"X"}',
    "The event has no `ts`": '{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"dur":1,"ph":"X"}',
    "not in microseconds": '{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":1700000000,"dur":1,"ph":"X"}',
    "duration is negative": f'{{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":{EPOCH_US},"dur":-1,"ph":"X"}}',
    "more bytes than any file": f'{{"id":1,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":{EPOCH_US},"dur":1,'
    f'"ph":"X","args":{{"ret":{1 << 61}}}}}',
    "negative number of bytes": f'{{"id":1,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":{EPOCH_US},"dur":1,'
    '"ph":"X","args":{"count":-5}}',
    "aggregates several calls": f'{{"name":"read","cat":"POSIX","type":3,"ts":{EPOCH_US},"ph":3,"pid":1,"tid":1,'
    '"args":{"dft_cnt":2,"ret_sum":9}}',
    "not one of DFTracer's record": f'{{"id":1,"name":"x","cat":"y","pid":1,"tid":1,"ts":{EPOCH_US},"dur":1,"ph":"B"}}',
    **NO_NAMES,
    "It lacks a hash": _said("FH", '"value":7'),
    "The rank is not a number": _said("PR", '"name":"rank","value":"first"'),
    "lone surrogates": '{"id":1,"name":"x","cat":"POSIX","pid":1,"tid":1,"ts":1,"ph":"X","args":{"fname":"\\ud800"}}',
}


def test_invalid_line_is_refused_individually(tmp_path: Path) -> None:
    lines = Process(7).lines_of(CALLS)
    found = one(tmp_path, *lines[:5], *BAD.values(), *lines[5:])
    refused = found["rejects"].sort("line")
    assert refused["line"].to_list() == list(range(6, 6 + len(BAD)))
    for expected, reason in zip(BAD, refused["reason"], strict=True):
        assert expected in reason
    assert refused["raw"].to_list() == [line[:2_000] for line in BAD.values()]
    assert refused["remedy"].null_count() == 0
    assert moved(found)["POSIX", "write", False] == 100.0
    assert set(found["trace_modules"]["outcome"]) == {"partial"}


def test_duckdb_reader_declines_blocks_with_doubtful_names(tmp_path: Path) -> None:
    with InputDatabase(tmp_path) as engine:
        for bad in (*NO_NAMES.values(), _called('"a":1').replace('"x"', "true")):
            assert read_with_duckdb(Lines.from_blocks([(0, Block(1, 1, bad.encode()))]), engine) is None
        good = (_called('"fname":"/5","hhash":15,"fhash":"12345678901e3456"'), _said("thread_name", '"name":"5"'))
        assert read_with_duckdb(Lines.from_blocks([(0, Block(1, 2, "\n".join(good).encode()))]), engine) is not None


def test_line_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    lines = Process(7).lines_of(CALLS)
    path = put(tmp_path / "t.pfw", lines)
    path.write_bytes(path.read_bytes().replace(b"\n]", b'\n{"name":"\xff\xfe"}\n{"na\x00me"}\n]'))
    assert landed(path)["rejects"]["reason"].to_list() == ["The line is not UTF-8 text."] * 2


def test_trace_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="No line"):
        one(tmp_path, "[", "]")


def test_calls_without_sizes_have_unknown_bytes(tmp_path: Path) -> None:
    """With DFTRACER_INC_METADATA=0, no event has `args`."""
    bare = {"id": 1, "name": "write", "cat": "POSIX", "pid": 1, "tid": 1, "ts": EPOCH_US, "dur": 4, "ph": 1}
    found = one(tmp_path, json.dumps(bare))
    assert found["trace_requests"]["request_bytes"].to_list() == [None]
    assert found["trace_modules"].select("outcome", "reason").rows() == [
        (
            "partial",
            "Of 1 processes, 1 have no end in the trace. The bytes of 1 reads and writes are unknown.",
        )
    ]
    assert found["trace_records"]["written_bytes"].to_list() == [None]


def test_block_size_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "t.pfw.gz", Process(7).lines_of([write_call(20 * at, at) for at in range(60)]))
    whole = landed(path)
    monkeypatch.setattr("iosig.warehouse.sources.dftracer.lines._CHUNK_BYTES", 700)
    monkeypatch.setattr("iosig.warehouse.sources.dftracer.lines.BLOCK_BYTES", 1_000)
    monkeypatch.setattr("iosig.warehouse.sources.dftracer.run.BLOCK_BYTES", 3_000)
    parts = landed(path)
    assert all(parts[name].equals(rows) for name, rows in whole.items())


def test_misplaced_line_end_is_reported(tmp_path: Path) -> None:
    lines = Process(7).lines_of(CALLS)
    content = "\n".join(lines).replace('"cat"', '\n"cat"', 1)
    path = tmp_path / "t.pfw"
    path.write_bytes(gzip.compress(content.encode()))
    assert landed(path)["rejects"]["line"].to_list() == [2, 3]
