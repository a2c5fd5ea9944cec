"""From frame columns to arrays and back: NULL in a frame is NaN in an array."""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of


def floats(values: pl.Series) -> Reals:
    """Return a column of numbers as an array."""
    found: Reals = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found


def ints(values: pl.Series) -> Ints:
    """Return a column of whole numbers, none of them NULL, as an array."""
    found: Ints = values.cast(pl.Int64).to_numpy()
    return found


def epoch_s(instants: pl.Series) -> Reals:
    """Return instants as seconds since 1970."""
    found: Reals = instants.dt.epoch("us").to_numpy() / 1e6
    return found


def ragged(lists: pl.Series) -> Ragged:
    """Return a list column as ragged arrays."""
    return Ragged(floats(lists.explode(empty_as_null=False)), offsets_of(lists.list.len().to_numpy()))


def list_column(pieces: Ragged) -> pl.Series:
    """Return ragged arrays as a list column."""
    import pyarrow as pa

    values: Any = pl.Series(pieces.values).fill_nan(None).to_arrow()
    # Polars' way to Arrow: PyArrow's own imports pandas first, for half a second.
    offsets: Any = pl.Series(pieces.offsets).to_arrow()
    lists = pa.LargeListArray.from_arrays(offsets, values)
    # As a batch: Polars takes a lone array by way of `pyarrow.compute`, which takes 40 ms to import.
    frame = cast(pl.DataFrame, pl.from_arrow(pa.RecordBatch.from_arrays([lists], ["pieces"])))
    return frame["pieces"].rename("")
