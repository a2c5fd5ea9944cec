"""What all readers of traces share: rows of the trace tables out of whatever columns a format knows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import polars as pl

from warehouse.contracts import Table, frames
from warehouse.sources.protocol import Batch

#: rows of a batch: bounds the memory, makes row groups of a good size
BATCH_ROWS = 1 << 18


def rows(table: Table, known: Mapping[str, Any], ended_at: datetime | None = None) -> Batch:
    """Return the columns that a format knows as a batch of a trace table; it knows nothing of the others.

    known: by column name, an array, a series, or one value for all rows; at least one of them has the length of
    the table. `ended_at` is when the traced run ended: its day is the row's. Landing adds `trace_id`,
    `source_file` and the like.
    """
    given = pl.DataFrame({name: value for name, value in known.items() if not _is_scalar(value)})
    height = given.height if given.width else 1
    wanted = frames.schema(table)
    absent = {"trace_id": "", "source_file": "", "ended_on": ended_at.date() if ended_at else None}
    scalars = absent | {name: value for name, value in known.items() if _is_scalar(value)}
    given_names = set(given.columns)
    columns = [
        given[name].cast(dtype)
        if name in given_names
        else _one(name, scalars.get(name), dtype).new_from_index(0, height)
        for name, dtype in wanted.items()
    ]
    unknown = set(known) - set(wanted)
    if unknown:
        raise KeyError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    return Batch(table, pl.DataFrame(columns))


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool | datetime)


@lru_cache(maxsize=1 << 10, typed=True)
def _one(name: str, value: Hashable, dtype: pl.DataType) -> pl.Series:
    # most columns have the same value in one small trace after the other
    return pl.Series(name, [value], dtype)
