"""Downsample samples for figures of a few hundred pixels.

NumPy arrays are used, since a DuckDB lambda copies the whole list for each element. Rows are read in batches, since
the samples of a large site do not fit in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.estimates.columns import list_column, ragged
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 2_000
#: integer that represents a sample's peak; figures are no taller [pixels]
_MAX_LEVEL = 999


def downsample(
    connection: duckdb.DuckDBPyConnection, query: str, max_steps: int, params: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Run a query and downsample each sample to at most `max_steps`, as integer multiples of `scale_bytes_per_s`.

    query: must have columns `interval_s` and `rates`, a list of rates [B/s] or NULL. They are replaced by `step_s`,
    `scale_bytes_per_s` and `rates`. The order of rows is undefined.
    """
    relation = connection.sql(query, params=params)
    parts = [pl.DataFrame(relation.limit(0).to_arrow_table())]
    parts += [pl.DataFrame(batch) for batch in relation.to_arrow_reader(_BATCH_ROWS)]
    return pl.concat([_downsample_batch(part.filter(pl.col("rates").is_not_null()), max_steps) for part in parts])


def _downsample_batch(rows: pl.DataFrame, max_steps: int) -> pl.DataFrame:
    step_counts, means = average_steps(ragged(rows["rates"]), max_steps)
    counts = np.diff(means.offsets)
    highest = np.array([0.0] * len(counts))
    is_any = counts > 0
    filled = np.nan_to_num(means.values)
    highest[is_any] = np.maximum.reduceat(filled, means.offsets[:-1][is_any]) if len(filled) else 0.0
    scale = np.where(highest > 0, highest / _MAX_LEVEL, 1.0)
    whole = Ragged(np.rint(means.values / np.repeat(scale, counts)), means.offsets)
    return rows.drop("interval_s", "rates").with_columns(
        step_s=rows["interval_s"] * pl.Series(step_counts),
        scale_bytes_per_s=pl.Series(scale),
        rates=list_column(whole).cast(pl.List(pl.Int32)),
    )


def average_steps(lists: Ragged, max_steps: int) -> tuple[Ints, Ragged]:
    """Return the number of merged steps per list, and their means; NaN if all merged values are NaN."""
    lengths = np.diff(lists.offsets)
    step_counts: Ints = np.maximum(-(-lengths // max_steps), 1)
    counts = -(-lengths // step_counts)
    offsets = offsets_of(counts)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    begins = np.repeat(lists.offsets[:-1], counts) + within * np.repeat(step_counts, counts)
    if not len(begins):
        return step_counts, Ragged(np.empty(0), offsets)
    is_known = np.isfinite(lists.values)
    sums = np.add.reduceat(np.where(is_known, lists.values, 0.0), begins)
    known_counts = np.add.reduceat(is_known.astype(np.int64), begins)
    with np.errstate(invalid="ignore"):
        means: Reals = np.where(known_counts > 0, sums / np.maximum(known_counts, 1), np.nan)
    return step_counts, Ragged(means, offsets)
