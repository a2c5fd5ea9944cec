"""Test TMIO traces: recognition, landed rows and refusals; real traces against FTIO's sums and time spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.sources.tmio import source
from tests.warehouse.sources.batch_reading import Tables, tables_of


def landed(path: Path) -> Tables:
    return tables_of(source.read(path, Reading()))


def of(tmp_path: Path, content: str | bytes) -> Tables:
    path = tmp_path / "8.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return landed(path)


def mode(rates: Any, starts: Any, ends: Any, **stated: Any) -> dict[str, Any]:
    return {**stated, "bandwidth": {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": ends}}


def module(tables: Tables) -> dict[str, Any]:
    (row,) = tables["trace_modules"].to_dicts()
    return row


def trace(tables: Tables) -> dict[str, Any]:
    (row,) = tables["traces"].to_dicts()
    return row


# ---- real traces


@pytest.mark.parametrize(
    ("name", "ranks", "counts", "volume", "precision", "window_s"),
    [
        # FTIO: 4.94 KB, 289 points at 10 Hz; 64.4 GB, 759 points; 1.68 GB, 215 points.
        ("8.jsonl", 8, {"read": 1095, "write": 1095}, 4.94e3, 5, 28.9),
        ("384.msgpack", 384, {"read": 30720, "write": 30720}, 64424509440, 0, 75.9),
        ("custom.json", 4, {"write": 32}, 1.68e9, 5e6, 21.5),
    ],
)
def test_real_traces_match_ftio(
    shared_data: Path, name: str, ranks: int, counts: dict[str, int], volume: float, precision: float, window_s: float
) -> None:
    path = shared_data / "tmio" / name
    assert recognize(read_head(path)) is source.SOURCE
    tables = landed(path)
    by_way = tables["trace_requests"].group_by("direction").agg(pl.len(), pl.col("request_bytes").sum())
    assert dict(by_way.select("direction", "len").iter_rows()) == counts
    assert by_way["request_bytes"].to_list() == [pytest.approx(volume, abs=precision, rel=0)] * len(counts)
    written = tables["trace_requests"].filter(direction="write")
    span = written["end_s"].max() - written["start_s"].min()  # type: ignore[operator]
    assert window_s <= span < window_s + 0.1
    assert (trace(tables)["process_count"], trace(tables)["tracer"], trace(tables)["started_at"]) == (
        ranks,
        "tmio",
        None,
    )
    assert trace(tables)["duration_s"] >= tables["trace_requests"]["end_s"].max()
    assert (module(tables)["outcome"], module(tables)["record_count"]) == ("sound", sum(counts.values()))
    assert "rejects" not in tables


def test_custom_json_with_integer_seconds_is_read(shared_data: Path, tmp_path: Path) -> None:
    document = json.loads((shared_data / "tmio" / "custom.json").read_text())
    bandwidth = document["write_sync"]["bandwidth"]
    for name in ("t_rank_s", "t_rank_e"):
        bandwidth[name] = [int(value * 1000) for value in bandwidth[name]]
    tables = of(tmp_path, json.dumps(document))
    assert tables["trace_requests"]["start_s"].to_list() == bandwidth["t_rank_s"]


# ---- recognition


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b'\t{"read_sync": {"total_bytes": 1', True),
        (b'\xef\xbb\xbf{"write_async_b":{', True),
        (b'{"io_time": {"delta_t_agg": 1', True),
        (b'{"t_rank_s": [1], "b_rank_avr": [1], "t_rank_e": [2]}', True),
        (b"\x9e\xaaread_async\xc3", True),
        (b"\x93\xa7io_time", True),
        (b'[{"read_sync": {}}]', False),
        (b'{"jobs": [], "slurm": {}}', False),
        (b'{"read_sync": 3}', False),
        (b"", False),
        (b"time,read_sync\n", False),
    ],
)
def test_traces_are_recognized_by_content(start: bytes, expected: bool) -> None:
    assert source.sniff(Head("any", start)) is expected


# ---- landed rows


def test_bytes_are_mean_rate_times_duration(tmp_path: Path) -> None:
    document = {"write_sync": mode([10.0, 4], [0, 1.5], [2, 3.0], total_bytes=26, number_of_ranks=2)}
    tables = of(tmp_path, json.dumps(document))
    (first, second) = tables["trace_requests"].to_dicts()
    assert (first["request_bytes"], second["request_bytes"]) == (20, 6)
    assert (first["module"], first["rank"], first["offset_bytes"], first["file_number"]) == ("MPIIO", -1, None, None)
    assert (first["direction"], first["is_async"], first["is_nested"]) == ("write", False, False)
    assert json.loads(module(tables)["counters"]) == {"write_sync.total_bytes": 26}
    assert (trace(tables)["process_count"], trace(tables)["duration_s"]) == (2, 3)


def test_all_modes_of_an_object_are_read(tmp_path: Path) -> None:
    modes = ("read_sync", "write_sync", "read_async_t", "write_async_t")
    document = {name: mode([1], [place], [place + 1]) for place, name in enumerate(modes)}
    requests = of(tmp_path, json.dumps(document))["trace_requests"]
    assert requests.select("direction", "is_async").rows() == [
        ("read", False),
        ("write", False),
        ("read", True),
        ("write", True),
    ]


def test_requirements_and_transfers_are_counted_once(tmp_path: Path) -> None:
    flush = {"read_async_t": mode([8], [0], [1]), "read_async_b": mode([4], [0], [2])}
    later = {"read_async_b": mode([4], [10], [12]), "read_async_t": mode([8], [10], [11])}
    only = {"read_async_b": mode([4], [20], [22])}
    lines = [json.dumps({name: content}) for part in (flush, later, only) for name, content in part.items()]
    tables = of(tmp_path, "\n".join(lines))
    assert sorted(tables["trace_requests"].select("start_s", "end_s").rows()) == [(0, 1), (10, 11), (20, 22)]
    assert tables["trace_requests"]["request_bytes"].to_list() == [8, 8, 8]


def test_mismatched_number_of_requirements_is_reported(tmp_path: Path) -> None:
    tables = of(
        tmp_path, json.dumps({"read_async_t": mode([8], [0], [1]), "read_async_b": mode([4, 1], [0, 1], [2, 3])})
    )
    assert tables["trace_requests"].height == 1
    assert (module(tables)["outcome"], "read_async_b has 2" in module(tables)["reason"]) == ("partial", True)


def test_consecutive_flushes_are_merged(tmp_path: Path) -> None:
    lines = [
        json.dumps({"write_sync": mode([5], [at], [at + 1], total_bytes=5, number_of_ranks=at + 1)}) for at in range(4)
    ]
    lines += [json.dumps({"io_time": {"delta_t_rank0": 3.5}})] * 2
    tables = of(tmp_path, "\n\n".join(lines))
    assert tables["trace_requests"]["request"].to_list() == [0, 1, 2, 3]
    assert (trace(tables)["process_count"], trace(tables)["duration_s"]) == (4, 7)
    assert json.loads(module(tables)["counters"]) == {"write_sync.total_bytes": 20, "io_time.delta_t_rank0": 7}


def test_rates_without_mode_have_no_direction(tmp_path: Path) -> None:
    plain = {"b_rank_avr": [2], "t_rank_s": [0], "t_rank_e": [3]}
    for document in (plain, {"bandwidth": plain}):
        requests = of(tmp_path, json.dumps(document))["trace_requests"]
        assert requests.select("direction", "request_bytes").rows() == [("unstated", 6)]


def test_single_requests_are_used_without_phases(tmp_path: Path) -> None:
    bandwidth = {"b_rank_avr": [], "b_ind": [2], "t_ind_s": [1], "t_ind_e": [2]}
    assert of(tmp_path, json.dumps({"read_sync": {"bandwidth": bandwidth}}))["trace_requests"].height == 1


def test_steps_of_application_last_until_next_step(tmp_path: Path) -> None:
    bandwidth = {"b_overlap_avr": [5, 0, 7, 0], "t_overlap": [1, 3, 4, 6]}
    requests = of(tmp_path, json.dumps({"read_sync": {"bandwidth": bandwidth}}))["trace_requests"]
    assert requests.select("start_s", "end_s", "request_bytes").rows() == [(1, 3, 10), (4, 6, 14)]


def test_request_shorter_than_time_resolution_has_unknown_size(tmp_path: Path) -> None:
    tables = of(tmp_path, json.dumps({"read_sync": mode([5e9, 0, 2], [1, 1, 1], [1, 1, 2], total_bytes=5002)}))
    assert tables["trace_requests"]["request_bytes"].to_list() == [None, 0, 2]
    assert module(tables)["outcome"] == "sound"


def test_trace_without_requests_is_sound(tmp_path: Path) -> None:
    tables = of(tmp_path, json.dumps({"read_sync": mode([], [], [], total_bytes=0)}))
    assert "trace_requests" not in tables
    assert (module(tables)["outcome"], module(tables)["record_count"], trace(tables)["duration_s"]) == (
        "sound",
        0,
        None,
    )


# ---- disagreement and refusal


@pytest.mark.parametrize(
    ("stated", "outcome"), [(2.0e3, "sound"), (2.01e3, "sound"), (2.02e3, "partial"), (0, "partial")]
)
def test_totals_that_disagree_beyond_rounding_are_reported(tmp_path: Path, stated: float, outcome: str) -> None:
    tables = of(tmp_path, json.dumps({"write_sync": mode([1000, 1000], [0, 5], [1, 6], total_bytes=stated)}))
    assert module(tables)["outcome"] == outcome
    assert (module(tables)["reason"] is None) == (outcome == "sound")
    assert not module(tables)["is_partial"]


@pytest.mark.parametrize(
    ("rate", "start", "end", "word"),
    [
        ("NaN", "0", "1", "its rate or its bytes"),
        ("Infinity", "0", "1", "its rate or its bytes"),
        ("1e308", "0", "1e9", "its rate or its bytes"),
        ("1", "NaN", "1", "its start"),
        ("1", "0", "-Infinity", "its end"),
        ("1", "2", "1", "ends before it starts"),
        ("-1", "0", "1", "negative"),
        ('"1"', "0", "1", "its rate or its bytes"),
        ("1", "null", "1", "its start"),
        ("true", "0", "1", "its rate or its bytes"),
        ("1" + "0" * 400, "0", "1", "its rate or its bytes"),
        ("[1]", "0", "1", "its rate or its bytes"),
    ],
)
def test_bad_request_is_refused_and_others_are_read(tmp_path: Path, rate: str, start: str, end: str, word: str) -> None:
    content = '{"read_sync": {"bandwidth": {"b_rank_avr": [1, %s], "t_rank_s": [0, %s], "t_rank_e": [1, %s]}}}'
    tables = of(tmp_path, "\n" + content % (rate, start, end))
    assert tables["trace_requests"].height == 1
    (reject,) = tables["rejects"].to_dicts()
    assert reject["line"] == 2
    assert "read_sync: request 2" in reject["reason"]
    assert word in reject["reason"]
    assert module(tables)["outcome"] == "partial"


GOOD = json.dumps({"write_sync": mode([1], [0], [1])})
LATER = json.dumps({"write_sync": mode([1], [2], [3])})


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"read_sync": {"bandwidth": {"b_rank_avr": [1, 2', "not complete JSON"),
        ("[1, 2]", "not a JSON object"),
        ("7", "not a JSON object"),
        ("\xff\xfe", "not complete JSON"),
        ('{"read_sync": {}, "read_sync": {}}', "twice"),
        ('{"read_sync": 7}', "not an object"),
        ('{"read_sync": {"bandwidth": [1]}}', "not an object"),
        ('{"other": 1}', "neither a TMIO mode"),
        ('{"read_sync": {"bandwidth": {"b_rank_avr": [1], "t_rank_s": [1]}}}', "the list `t_rank_e` is missing"),
        ('{"read_sync": {"bandwidth": {"b_rank_avr": 1, "t_rank_s": 1, "t_rank_e": 2}}}', "is missing"),
        ('{"read_sync": {"bandwidth": {"b_rank_avr": [1], "t_rank_s": [1, 2], "t_rank_e": [2]}}}', "differ in length"),
        ('{"read_sync": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        ('{"read_sync": {"bandwidth": {"b_rank_avr": [nan], "t_rank_s": [1], "t_rank_e": [2]}}}', "not complete JSON"),
    ],
)
def test_bad_line_is_refused_and_others_are_read(tmp_path: Path, line: str, word: str) -> None:
    for number, content in (
        (1, f"{line}\n{GOOD}\n{LATER}\n"),
        (2, f"{GOOD}\n{line}\n{LATER}\n"),
        (3, f"{GOOD}\n{LATER}\n{line}"),
    ):
        tables = of(tmp_path, content.encode("latin-1"))
        assert tables["trace_requests"].height == 2
        (reject,) = tables["rejects"].to_dicts()
        assert (reject["line"], module(tables)["outcome"]) == (number, "partial")
        assert word in reject["reason"]


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"{", b'{"read_sync": [', b"hello\nworld\n", b"\xc1", b"\x9e\xaaread_asyn"]
)
def test_unreadable_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputRefused):
        of(tmp_path, content)
