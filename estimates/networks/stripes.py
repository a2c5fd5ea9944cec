"""Assign requests to storage targets by splitting each request at stripe boundaries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from iosig.transforms.arrays import offsets_of
from iosig.transforms.throughput import striping

_UNKNOWN = -1


def split_by_target(rows: pl.DataFrame, files: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split rows of `trace_requests` at stripe boundaries; yield frames of pieces with all columns.

    files: rows of `trace_files`. `ost` of a piece is its target, NULL if unknown; `request_bytes` (NULL if unknown),
    `start_s` and `end_s` refer to the piece.
    """
    striped = files.filter(pl.col("osts").list.len() > 0, pl.col("stripe_bytes") > 0).with_row_index("layout")
    placed = rows.join(striped.select("file_number", "layout"), on="file_number", how="left").with_columns(
        pl.col("layout").cast(pl.Int64).fill_null(_UNKNOWN), pl.col("offset_bytes").fill_null(_UNKNOWN)
    )
    extents = striping.Extents(
        placed["offset_bytes"].to_numpy(),
        placed["request_bytes"].cast(pl.Int64).fill_null(_UNKNOWN).to_numpy(),
        placed["start_s"].to_numpy(),
        placed["end_s"].to_numpy(),
        placed["layout"].to_numpy(),
    )
    for pieces in striping.split_requests(extents, _layouts(striped)):
        length_bytes = pl.Series("request_bytes", pieces.length_bytes.astype(np.float64))
        yield rows[pieces.request].with_columns(
            pl.Series("ost", pieces.ost).replace(striping.NO_OST, None),
            length_bytes.set(length_bytes < 0, None),
            pl.Series("start_s", pieces.start_s),
            pl.Series("end_s", pieces.end_s),
        )


def _layouts(striped: pl.DataFrame) -> striping.Layouts:
    lists = striped["osts"].list.len().cast(pl.Int64).to_numpy()
    return striping.Layouts(
        striped["stripe_bytes"].to_numpy(),
        striped["osts"].explode(empty_as_null=False).cast(pl.Int64).to_numpy(),
        offsets_of(lists),
    )
