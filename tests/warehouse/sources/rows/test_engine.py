from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.engine import InputDatabase


def test_rows_of_several_files_are_ordered_and_batched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", 2048)
    paths = [tmp_path / "a.parquet", tmp_path / "b=1.parquet"]
    for first, path in enumerate(paths):
        pl.DataFrame({"number": range(first, 10_000, 2)}).write_parquet(path)
    with InputDatabase(tmp_path) as engine:
        batches = list(engine.rows("from read_parquet($paths, hive_partitioning = false) order by number", paths))
    assert len(batches) > 1
    assert pl.concat(batches)["number"].to_list() == list(range(10_000))


def test_connection_is_opened_lazily(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "connect", pytest.fail)
    with InputDatabase(tmp_path) as engine:
        assert engine.scratch == tmp_path
