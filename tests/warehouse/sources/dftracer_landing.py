"""DFTracer's traces, read to their end as landing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.sources.dftracer import source
from iosig.warehouse.sources.protocol import Reading
from tests.dftracer_traces import put


def landed(path: Path) -> dict[str, pl.DataFrame]:
    """Return all rows by table; each batch meets its contract."""
    found: dict[str, list[pl.DataFrame]] = {}
    for batch in source.read(path, Reading()):
        frames.require(batch.rows, batch.table)
        assert not batch.rows.is_empty()
        found.setdefault(batch.table.name, []).append(batch.rows)
    return {name: pl.concat(parts) for name, parts in found.items()}


def moved(tables: dict[str, pl.DataFrame]) -> dict[tuple[Any, ...], float]:
    """Return bytes by module, direction and whether the request is nested."""
    sums = tables["trace_requests"].group_by("module", "direction", "is_nested").agg(pl.col("request_bytes").sum())
    return {tuple(key): volume for *key, volume in sums.iter_rows()}


def one(tmp_path: Path, *lines: str, name: str = "t.pfw", end: str = "\n") -> dict[str, pl.DataFrame]:
    return landed(put(tmp_path / name, lines, end=end))
