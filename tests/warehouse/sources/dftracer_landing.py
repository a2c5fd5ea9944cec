"""Read DFTracer traces completely, as landing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from iosig.warehouse.sources.dftracer import source
from iosig.warehouse.sources.protocol import Reading
from tests.dftracer_traces import put
from tests.warehouse.sources.batch_reading import Tables, tables_of


def landed(path: Path) -> Tables:
    return tables_of(source.read(path, Reading()))


def moved(tables: Tables) -> dict[tuple[Any, ...], float]:
    """Return the bytes by module, direction and nesting."""
    sums = tables["trace_requests"].group_by("module", "direction", "is_nested").agg(pl.col("request_bytes").sum())
    return {tuple(key): volume for *key, volume in sums.iter_rows()}


def one(tmp_path: Path, *lines: str, name: str = "t.pfw", end: str = "\n") -> Tables:
    return landed(put(tmp_path / name, lines, end=end))
