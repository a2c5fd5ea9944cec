"""Test extrapolations as inputs: recognized by content, a row each, and nothing landed from other files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from iosig.transforms.extrapolation.result import OUTCOMES
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.extrapolations import compressed_traces, record as extrapolation_json, source
from iosig.warehouse.sources.extrapolations.record import Record
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store
from tests.warehouse.extrapolation_records import EXTRAPOLATED, REFUSED

ROWS = pl.DataFrame(compressed_traces.schema().empty_table())


def in_trace(path: Path, record: Record | str | None = EXTRAPOLATED) -> Path:
    """Write a stand-in for a compressed trace with a record in its metadata."""
    text = record.text() if isinstance(record, Record) else record
    known = {} if text is None else {source.METADATA_KEY: text}
    compressed_traces.write(path, ROWS, {"process_count": "1000"} | known)
    return path


def in_json(path: Path, record: Record = REFUSED) -> Path:
    path.write_text(record.text(), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, object]]:
    (batch,) = source.read(path, Reading())
    assert batch.table == EXTRAPOLATION_RECORDS
    return frames.require(batch.rows, batch.table).to_dicts()


def test_contract_has_all_outcomes() -> None:
    assert EXTRAPOLATION_RECORDS.column("outcome").choices == OUTCOMES


# ---- recognition


def test_record_is_recognized_plain_and_compressed(tmp_path: Path) -> None:
    plain = in_json(tmp_path / "a")
    packed = tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [recognize(read_head(path)).name for path in (plain, packed)] == ["extrapolations"] * 2


@pytest.mark.parametrize("record", [EXTRAPOLATED, None], ids=["extrapolated", "compressed only"])
def test_compressed_trace_is_recognized_plain_and_compressed(tmp_path: Path, record: Record | None) -> None:
    plain = in_trace(tmp_path / "a", record)
    packed = tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [recognize(read_head(path)).name for path in (plain, packed)] == ["extrapolations"] * 2


def test_other_parquet_is_not_recognized(tmp_path: Path) -> None:
    pl.DataFrame({"node": [0, 1]}).write_parquet(tmp_path / "a.parquet")
    assert recognize(read_head(tmp_path / "a.parquet")).name == "polls-parquet"
    (tmp_path / "cut").write_bytes(in_trace(tmp_path / "whole").read_bytes()[:-9])
    (tmp_path / "packed").write_bytes(gzip.compress(b"PAR1 and no more")[:-9])
    for name in ("cut", "packed"):
        assert not source.sniff(Head(name, b"PAR1", {}, tmp_path / name))
    assert not source.sniff(Head("unknown", b"PAR1"))


def test_other_json_is_not_recognized() -> None:
    for start in (b'{"format": "other"}', b'["format": "iosig-extrapolation"]', b"iosig-extrapolation"):
        assert not source.sniff(Head("x", start))
    assert source.sniff(Head("x", b'\n {\n "format" : "iosig-extrapolation"'))


# ---- reading


def test_trace_and_separate_record_give_equal_rows(tmp_path: Path) -> None:
    (row,) = rows_of(in_trace(tmp_path / "trace"))
    assert row == EXTRAPOLATED.row()
    assert rows_of(in_json(tmp_path / "record", EXTRAPOLATED)) == [row]
    assert rows_of(in_json(tmp_path / "refused")) == [REFUSED.row()]


def test_longest_record_fits_into_a_trace(tmp_path: Path) -> None:
    room = extrapolation_json.MAX_BYTES - len(EXTRAPOLATED.text().encode())
    (model,) = EXTRAPOLATED.models
    longest = replace(EXTRAPOLATED, models=(replace(model, formula=model.formula + "n" * room),))
    assert rows_of(in_trace(tmp_path / "trace", longest)) == [longest.row()]


def test_trace_without_extrapolation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match=r"compressed, not extrapolated.*Land the trace"):
        rows_of(in_trace(tmp_path / "trace", None))


@pytest.mark.parametrize(
    "text", ["", "{}", "<script>", EXTRAPOLATED.text()[:-1], EXTRAPOLATED.text().replace("1000", "-1")]
)
def test_damaged_record_in_trace_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputRefused):
        rows_of(in_trace(tmp_path / "trace", text))


def test_reading_stops_at_maximum_record_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extrapolation_json, "MAX_BYTES", 1 << 16)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b'{"format":"iosig-extrapolation"' + b" " * (1 << 24)))
    with pytest.raises(InputRefused, match="longer than 65,536 bytes"):
        rows_of(path)


# ---- landing


def test_trace_lands_once_under_its_file_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    path = in_trace(tmp_path / "8")
    first = land(store, path, lambda _: Reading())
    again = land(store, path, lambda _: Reading())
    assert (first.is_new, again.is_new) == (True, False)
    assert (first.landing.format, first.landing.source_file) == ("extrapolations", "8")
    (part,) = first.landing.parts
    assert pl.read_parquet(store.root / part.path)["source_file"].to_list() == ["8"]


def test_refused_file_is_landed_as_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    with pytest.raises(InputRefused):
        land(store, in_trace(tmp_path / "trace", "{}"), lambda _: Reading())
    (manifest,) = store.landed.glob("*/landing.json")
    assert '"table": "rejects"' in manifest.read_text()
