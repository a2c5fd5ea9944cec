"""Reading a log to its end, as landing does, with what every batch must hold to."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.protocol import Reading, Source


def read_log(source: Source, path: Path, reading: Reading | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all job records and all rejects of a log, each batch checked against its contract."""
    rows = [frames.empty(JOB_RECORDS)]
    refused = [frames.empty(REJECTS)]
    for batch in source.read(path, reading or Reading(time_zone="UTC")):
        frames.require(batch.rows, batch.table)
        assert not batch.rows.is_empty()
        assert batch.rows["line"].is_sorted()
        (rows if batch.table == JOB_RECORDS else refused).append(batch.rows)
    return pl.concat(rows).sort("line"), pl.concat(refused).sort("line")
