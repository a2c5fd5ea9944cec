"""Samples in fewer steps: a picture of a few hundred pixels needs no more of them.

DuckDB would copy a whole sample for each of its steps where a lambda reads it, so that is done on arrays, some rows at
a time: samples of a large site do not fit into memory together.
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
#: the highest step of a sample, as a whole number: what is drawn is no taller [pixels]
_MOST = 999


def coarse_samples(
    connection: duckdb.DuckDBPyConnection, query: str, most_steps: int, params: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Return a query's rows with each sample in so many steps at most, as whole numbers of `scale_bytes_per_s`.

    query: has `interval_s` and `rates`, a list of rates [B/s], NULL where nothing is known. Returned are `step_s` and
    `rates` in their places, in no order.
    """
    relation = connection.sql(query, params=params)
    parts = [pl.DataFrame(relation.limit(0).to_arrow_table())]
    parts += [pl.DataFrame(batch) for batch in relation.to_arrow_reader(_BATCH_ROWS)]
    return pl.concat([_coarse(part.filter(pl.col("rates").is_not_null()), most_steps) for part in parts])


def _coarse(rows: pl.DataFrame, most_steps: int) -> pl.DataFrame:
    every, means = coarse(ragged(rows["rates"]), most_steps)
    counts = np.diff(means.offsets)
    highest = np.array([0.0] * len(counts))
    is_any = counts > 0
    known = np.nan_to_num(means.values)
    highest[is_any] = np.maximum.reduceat(known, means.offsets[:-1][is_any]) if len(known) else 0.0
    scale = np.where(highest > 0, highest / _MOST, 1.0)
    whole = Ragged(np.rint(means.values / np.repeat(scale, counts)), means.offsets)
    return rows.drop("interval_s", "rates").with_columns(
        step_s=rows["interval_s"] * pl.Series(every),
        scale_bytes_per_s=pl.Series(scale),
        rates=list_column(whole).cast(pl.List(pl.Int32)),
    )


def coarse(lists: Ragged, most_steps: int) -> tuple[Ints, Ragged]:
    """Return how many steps of each list are one now, and the means of these; NaN where nothing is known."""
    lengths = np.diff(lists.offsets)
    every: Ints = np.maximum(-(-lengths // most_steps), 1)
    counts = -(-lengths // every)
    offsets = offsets_of(counts)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    begins = np.repeat(lists.offsets[:-1], counts) + within * np.repeat(every, counts)
    if not len(begins):
        return every, Ragged(np.empty(0), offsets)
    is_known = np.isfinite(lists.values)
    sums = np.add.reduceat(np.where(is_known, lists.values, 0.0), begins)
    known = np.add.reduceat(is_known.astype(np.int64), begins)
    with np.errstate(invalid="ignore"):
        means: Reals = np.where(known > 0, sums / np.maximum(known, 1), np.nan)
    return every, Ragged(means, offsets)
