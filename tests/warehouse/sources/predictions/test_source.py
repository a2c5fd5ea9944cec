"""Test predictions as inputs: recognized by content, landed by day, and only once."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.predictions import source
from iosig.warehouse.sources.predictions.lines import format_line
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.store.landing import LandingResult, land
from iosig.warehouse.store.store import Store
from tests.prediction_rows import NOON, prediction


def printed(path: Path, *evaluations: int, before: str = "") -> Path:
    """Write the printed lines of evaluations at intervals of half a day."""
    rows = (prediction(each, predicted_at=NOON + timedelta(hours=12 * each)) for each in evaluations)
    path.write_text(before + "".join(f"{format_line(row)}\n" for row in rows), encoding="utf-8")
    return path


def landed(store: Store, path: Path) -> LandingResult:
    return land(store, path, lambda _: Reading())


@pytest.mark.parametrize("before", ["", "\n", "cut off}\n"], ids=["whole", "blank", "rotated"])
def test_lines_are_recognized_plain_and_compressed(before: str, tmp_path: Path) -> None:
    plain = printed(tmp_path / "a", 1, before=before)
    packed = tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [recognize(read_head(path)).name for path in (plain, packed)] == ["predictions"] * 2


def test_other_json_is_not_recognized() -> None:
    for content in (b'{"write_sync": {}}\n', b'["format", "iosig-prediction/1"]', b'{"format": "iosig-extrapolation"}'):
        assert not source.sniff(Head("a", content))


def test_records_land_once_by_day(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    path = printed(tmp_path / "printed.jsonl", 1, 2, 3, before="cut off}\n")
    first = landed(store, path)
    assert first.is_new
    assert not landed(store, path).is_new
    parts = [part for part in first.landing.parts if part.table == PREDICTION_RECORDS.name]
    assert [(part.day, part.row_count) for part in parts] == [("2026-02-10", 2), ("2026-02-11", 1)]
    rows = pl.concat([pl.read_parquet(store.root / part.path) for part in parts])
    assert rows["source_file"].unique().to_list() == ["printed.jsonl"]
    assert rows["line"].to_list() == [2, 3, 4]
    assert first.landing.refused_count == 1
