"""Convert frame columns to arrays and back: NULL in a frame is NaN in an array."""

from __future__ import annotations

import math
from typing import Any, cast

import polars as pl

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of


def floats(values: pl.Series) -> Reals:
    """Convert a numeric column to float64; NULL becomes NaN."""
    array: Reals = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return array


def ints(values: pl.Series) -> Ints:
    """Convert an integer column without NULL to int64."""
    array: Ints = values.cast(pl.Int64).to_numpy()
    return array


def epoch_s(instants: pl.Series) -> Reals:
    """Convert a datetime column to seconds since 1970."""
    seconds: Reals = instants.dt.epoch("us").to_numpy() / 1e6
    return seconds


def ragged(lists: pl.Series) -> Ragged:
    """Convert a list column to a ragged array of float64."""
    return Ragged(floats(lists.explode(empty_as_null=False)), offsets_of(lists.list.len().to_numpy()))


def finite_or_none(value: float) -> float | None:
    """Convert a number to a plain float, and NaN or infinity to None."""
    return float(value) if math.isfinite(value) else None


def list_column(pieces: Ragged) -> pl.Series:
    """Convert a ragged array to a list column; NaN becomes NULL."""
    import pyarrow as pa

    values: Any = pl.Series(pieces.values).fill_nan(None).to_arrow()
    # converted by Polars, since PyArrow's conversion imports pandas, which takes half a second
    offsets: Any = pl.Series(pieces.offsets).to_arrow()
    lists = pa.LargeListArray.from_arrays(offsets, values)
    # as a batch, since Polars imports `pyarrow.compute` for a single array, which takes 40 ms
    frame = cast(pl.DataFrame, pl.from_arrow(pa.RecordBatch.from_arrays([lists], ["pieces"])))
    return frame["pieces"].rename("")
