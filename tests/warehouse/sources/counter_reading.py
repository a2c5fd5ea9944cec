"""Reading counters to their end, as landing does, with what every batch must hold to."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, Source, recognize

COUNTS = tuple(name for name in COUNTER_SAMPLES.column_names if name.startswith("total_"))


def read_counters(
    source: Source, path: Path, reading: Reading | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return all samples, all scrapes and all rejects of an input, each batch checked against its contract."""
    found = {table: [frames.empty(table)] for table in (COUNTER_SAMPLES, SCRAPES, REJECTS)}
    for batch in source.read(path, reading or Reading()):
        frames.require(batch.rows, batch.table)
        assert not batch.rows.is_empty()
        found[batch.table].append(batch.rows)
    samples, scrapes, rejects = (pl.concat(parts) for parts in found.values())
    return samples, scrapes, rejects.sort("line")


def read_written(
    source: Source, path: Path, text: str, reading: Reading | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Write a text, which has to be recognized as of that format, and read it to its end."""
    path.write_text(text)
    assert recognize(read_head(path)) == source
    return read_counters(source, path, reading)
