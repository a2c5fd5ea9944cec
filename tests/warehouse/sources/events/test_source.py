"""Test request events: text and Parquet, any order and clock; invalid rows are refused individually."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.answers.single.one_input import TraceInput, open_input
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.events import source
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.sources.rows import text_blocks, traced
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store
from tests import request_event_files
from tests.budget import examples
from tests.request_event_files import Plan
from tests.warehouse.sources.batch_reading import UTC_ZONE, Tables, tables_of

HEADER = "layer,node,rank,request_id,event,peer,start_s,end_s,bytes,direction,file,is_collective"
GOOD = (
    "application,,0,,open,,0.5,1.0,,,/scratch/out,true",
    "application,,0,7,request,,1.0,2.0,100,write,/scratch/out,",
    "io_node,io1,0,7,receive,0,1.25,1.5,100,write,,",
    "io_node,io1,0,7,send,s1,1.5,1.75,100,write,,",
    "storage,s1,0,7,receive,io1,1.5,1.8,100,write,,",
    "storage,s1,0,7,write,,1.8,1.9,100,write,,",
    "application,,3,7,request,,2.0,3.0,50,read,,",
)
#: columns that do not depend on the file
EVENT = [name for name in REQUEST_EVENTS.column_names if name != "trace_id"]


def landed(path: Path, reading: Reading = UTC_ZONE) -> Tables:
    return tables_of(source.read(path, reading))


def put(folder: Path, *lines: str, header: str = HEADER, name: str = "events.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def of(tmp_path: Path, *lines: str, header: str = HEADER) -> Tables:
    return landed(put(tmp_path, *lines, header=header))


# ---- recognition


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_header_with_required_columns_is_recognized(mark: str) -> None:
    content = "\n".join([HEADER, *GOOD]).replace(",", mark).encode()
    assert recognize(Head("x", content)).name == "request-events"


@pytest.mark.parametrize("name", source.event_rows.REQUIRED)
def test_header_without_required_column_is_not_recognized(name: str) -> None:
    header = ",".join(column for column in HEADER.split(",") if column != name)
    assert not source.sniff(Head("x", f"{header}\n".encode()))


def test_parquet_is_recognized_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    request_event_files.write(path, Plan(rank_count=2))
    assert recognize(read_head(path)).name == "request-events"
    pl.read_parquet(path).drop("event").write_parquet(path)
    assert recognize(read_head(path)).name == "polls-parquet"
    path.write_bytes(b"PAR1 and nothing more")
    assert not source.sniff(read_head(path))


def test_empty_content_is_not_recognized() -> None:
    assert not source.sniff(Head("x", b"\n"))


# ---- landed rows


def test_events_fill_all_tables_of_a_trace(tmp_path: Path) -> None:
    found = of(tmp_path, *GOOD)
    events = found["request_events"]
    assert events["event"].to_list() == list(range(7))
    assert events["layer_number"].to_list() == [0, 0, 2, 2, 3, 3, 0]
    # In the outermost layer, the rank stands for the node.
    assert events["node"].to_list() == ["0", "0", "io1", "io1", "s1", "s1", "3"]
    assert events["peer"].to_list() == [None, None, "0", "s1", "io1", None, None]
    assert events["file_number"].to_list() == [0, 0, None, None, None, None, None]
    assert events["is_collective"].to_list() == [True, *[False] * 6]
    requests = found["trace_requests"].select("request", "module", "rank", "direction", "request_bytes", "file_number")
    assert requests.rows() == [(0, "EVENTS", 0, "write", 100.0, 0), (1, "EVENTS", 3, "read", 50.0, None)]
    metadata = found["trace_metadata"].select(
        "metadata_call", "module", "rank", "operation", "file_number", "is_nested"
    )
    assert metadata.rows() == [(0, "EVENTS", 0, "open", 0, False)]
    assert found["trace_files"].select("file_number", "path").rows() == [(0, "/scratch/out")]
    (trace,) = found["traces"].to_dicts()
    assert (trace["tracer"], trace["process_count"], trace["duration_s"]) == ("request_events", 4, 3.0)
    assert (trace["started_at"], trace["ended_on"]) == (None, None)
    (module,) = found["trace_modules"].to_dicts()
    assert (module["outcome"], module["record_count"], module["reason"]) == ("sound", 7, None)
    assert json.loads(module["counters"])["application.request"] == 2
    assert "rejects" not in found


def test_text_and_parquet_yield_equal_rows(tmp_path: Path) -> None:
    plan = Plan(rank_count=8, skew_s=0.01)
    request_event_files.write(tmp_path / "e.csv", plan)
    request_event_files.write(tmp_path / "e.parquet", plan)
    text, parquet = landed(tmp_path / "e.csv"), landed(tmp_path / "e.parquet")
    assert set(text) == set(parquet)
    for name, rows in text.items():
        assert rows.equals(parquet[name]), name


def test_extra_columns_and_column_order_have_no_effect(tmp_path: Path) -> None:
    plain = of(tmp_path, *GOOD)
    names = HEADER.split(",")
    mixed = pl.read_csv(tmp_path / "events.csv", infer_schema=False).select(reversed(names), note=pl.lit("x"))
    mixed.write_csv(tmp_path / "events.csv")
    assert landed(tmp_path / "events.csv")["request_events"].equals(plain["request_events"])


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(GOOD), st.integers(1, 400))
def test_events_are_sorted_by_time(tmp_path: Path, lines: list[str], block_bytes: int) -> None:
    whole = of(tmp_path, *GOOD)["request_events"]
    with pytest.MonkeyPatch.context() as patch:
        blocks = text_blocks.blocks
        patch.setattr(
            "iosig.warehouse.sources.rows.text_blocks.blocks",
            lambda path, _, **skipped: blocks(path, block_bytes, **skipped),
        )
        found = of(tmp_path, *lines)["request_events"]
    assert found["event"].to_list() == list(range(7))
    assert found["start_s"].is_sorted()
    assert found.drop("event").sort(pl.all()).equals(whole.drop("event").sort(pl.all()))


def test_large_table_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iosig.warehouse.sources.rows.traced.BATCH_ROWS", 100)
    monkeypatch.setattr("iosig.warehouse.sources.events.source._PIECE_ROWS", 170)
    path = tmp_path / "e.parquet"
    events = request_event_files.planted(Plan(rank_count=8)).events
    events.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)
    found = landed(path)
    assert found["request_events"]["event"].to_list() == list(range(events.height))
    assert found["request_events"]["start_s"].to_list() == events["start_s"].to_list()
    assert found["trace_requests"]["request"].to_list() == list(range(64))


# ---- clocks


def test_instants_count_from_first_event(tmp_path: Path) -> None:
    at = datetime(2026, 3, 2, 23, 59, 59, tzinfo=UTC)
    lines = []
    for line in GOOD:
        cells = line.split(",")
        for place in (6, 7):
            cells[place] = (at + timedelta(seconds=float(cells[place]))).isoformat()
        lines.append(",".join(cells))
    found = of(tmp_path, *lines)
    assert found["request_events"]["start_s"].to_list() == [0.0, 0.5, 0.75, 1.0, 1.0, pytest.approx(1.3), 1.5]
    (trace,) = found["traces"].to_dicts()
    assert trace["started_at"] == at + timedelta(seconds=0.5)
    assert trace["ended_at"] == at + timedelta(seconds=3)
    assert (trace["ended_on"], trace["duration_s"]) == (date(2026, 3, 3), 2.5)


def test_epoch_seconds_count_from_first_event(tmp_path: Path) -> None:
    lines = [f"application,,0,{n},request,,{1.7e9 + n},{1.7e9 + n + 0.5},1,read,," for n in (2, 1, 0)]
    found = of(tmp_path, *lines)
    assert found["request_events"]["start_s"].to_list() == [0.0, 1.0, 2.0]
    assert found["traces"]["started_at"].item() == datetime.fromtimestamp(1.7e9, UTC)


def test_naive_instants_are_local(tmp_path: Path) -> None:
    line = "application,,0,1,request,,2026-01-02T00:30:00,2026-01-02T00:30:01,1,read,,"
    found = landed(put(tmp_path, line), Reading(time_zone="Europe/Berlin"))
    assert found["traces"]["started_at"].item() == datetime(2026, 1, 1, 23, 30, tzinfo=UTC)


# ---- layers


def test_layers_are_ordered_by_number(tmp_path: Path) -> None:
    header = "layer,layer_number,node,rank,request_id,event,start_s,end_s"
    found = of(tmp_path, "disk,4,d,0,1,write,1,2", "hdf5,1,,0,1,request,0,3", header=header)
    assert found["request_events"].select("layer", "layer_number", "node").rows() == [
        ("hdf5", 1, "0"),
        ("disk", 4, "d"),
    ]
    assert found["trace_requests"].height == 1


def test_only_outermost_layer_makes_requests(tmp_path: Path) -> None:
    header = "layer,node,rank,request_id,event,start_s,end_s"
    found = of(tmp_path, "library,x,0,1,request,1,2", "application,,0,1,request,0,3", header=header)
    assert found["trace_requests"]["start_s"].to_list() == [0.0]


# ---- refused rows


@pytest.mark.parametrize("batch_rows", [1, 1 << 18])
@pytest.mark.parametrize("first", [0, 3])
def test_repeated_rows_are_refused(
    tmp_path: Path, batch_rows: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", batch_rows)
    tables = of(tmp_path, *GOOD, *GOOD[first:])
    assert tables["request_events"].equals(of(tmp_path, *GOOD)["request_events"])
    repeated = range(len(GOOD) + 2, 2 * len(GOOD) - first + 2)
    assert sorted(tables["rejects"]["line"]) == list(repeated)
    assert set(tables["rejects"]["reason"]) == {"The row repeats another one in all columns."}
    assert tables["trace_modules"]["outcome"].to_list() == ["partial"]


def test_inner_event_without_node_is_refused(tmp_path: Path) -> None:
    found = of(tmp_path, *GOOD[:2], GOOD[2].replace("io1", ""))
    assert found["request_events"].height == 2
    assert found["rejects"].select("line", "reason").rows() == [(4, "The node is missing.")]
    (module,) = found["trace_modules"].to_dicts()
    assert module["outcome"] == "partial"
    assert module["reason"].startswith("1 event")


def test_refused_parquet_rows_keep_their_values(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    events = request_event_files.planted(Plan(rank_count=2)).events
    events.with_columns(rank=pl.when(pl.int_range(pl.len()) == 4).then(-7).otherwise("rank")).write_parquet(path)
    found = landed(path)
    assert found["request_events"].height == events.height - 1
    (row,) = found["rejects"].to_dicts()
    assert row["line"] == 5
    assert json.loads(row["raw"])["rank"] == "-7"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "it has no rows"),
        (("application,,x,7,request,,1,2,,,,",), "`x` is not a number"),
        (("application,,1",), "3 fields where 12"),
    ],
)
def test_table_without_good_rows_is_refused(tmp_path: Path, lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InputRefused, match=reason):
        of(tmp_path, *lines)


def test_columns_of_wrong_type_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    events = request_event_files.planted(Plan(rank_count=2)).events
    events.with_columns(node=pl.concat_list("node")).write_parquet(path)
    with pytest.raises(InputRefused, match="node"):
        landed(path)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*GOOD, "", ",,,", '"', "a,b", GOOD[1][:20], GOOD[1] + "\x00", "é" * 30]), max_size=9))
def test_every_line_is_read_or_refused(tmp_path: Path, lines: list[str]) -> None:
    try:
        found = of(tmp_path, *lines)
    except InputRefused:
        return
    refused = found["rejects"].height if "rejects" in found else 0
    assert found["request_events"].height + refused == sum(bool(line.strip()) for line in lines)


# ---- in the warehouse


def test_open_input_reads_events_as_trace(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    request_event_files.write(path, Plan(rank_count=4))
    with open_input(path, Settings(), ReadOptions(time_zone="UTC")) as found:
        assert isinstance(found, TraceInput)
        assert found.read(REQUEST_EVENTS).height == pl.read_csv(path).height
        (counters,) = found.counters.to_dicts()
        assert (counters["module"], counters["is_counted"], counters["write_count"]) == ("EVENTS", True, 32)
        assert counters["written_bytes"] == 32 << 20
        assert found.signals["module"].to_list() == ["EVENTS"]
        assert found.signals["volume_bytes"].item() == 32 << 20


def test_events_land_with_trace_id(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    made = land(store, put(tmp_path, *GOOD), lambda _: Reading(time_zone="UTC")).landing
    parts = {part.table: store.root / part.path for part in made.parts}
    assert made.format == "request-events"
    assert set(pl.read_parquet(parts["request_events"])["trace_id"]) == {made.trace_id}
