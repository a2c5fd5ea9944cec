"""Reading an input to its end, as landing does, with what every batch must hold to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.protocol import Batch, Reading, Source


def gathered(batches: Iterable[Batch], table: Table = POLLS) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all rows and all rejects, each batch checked against its contract."""
    rows = [frames.empty(table)]
    refused = [frames.empty(REJECTS)]
    for batch in batches:
        assert batch.table in (table, REJECTS)
        assert not batch.rows.is_empty()
        frames.require(batch.rows, batch.table)
        (rows if batch.table == table else refused).append(batch.rows)
    return pl.concat(rows), pl.concat(refused).sort("line")


def read_input(
    source: Source, path: Path, reading: Reading | None = None, table: Table = POLLS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all rows and all rejects of a file."""
    return gathered(source.read(path, reading or Reading(time_zone="UTC")), table)
