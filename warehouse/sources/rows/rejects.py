"""Refused rows: one way to make them, so that all look alike."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from warehouse.contracts.quality import REJECTS
from warehouse.sources.protocol import RAW_LIMIT_CHARS, Batch

#: what a source knows of a refused row; landing adds `landing_id` and `source_file`
SCHEMA = pl.Schema({"line": pl.Int64, "reason": pl.String, "remedy": pl.String, "raw": pl.String})


def rejects(rows: Iterable[tuple[int | None, str, str, str | None]]) -> Batch:
    """Return refused rows (line, reason, remedy, raw) as a batch of `rejects`; raw text is cut."""
    return reject_frame(pl.DataFrame(list(rows), schema=SCHEMA, orient="row"))


def reject_frame(rows: pl.DataFrame) -> Batch:
    """Return a frame with the columns line, reason, remedy and raw as a batch of `rejects`."""
    return Batch(
        REJECTS,
        rows.select(
            pl.lit("").alias("landing_id"),
            pl.lit("").alias("source_file"),
            pl.col("line").cast(pl.Int64),
            "reason",
            "remedy",
            pl.col("raw").str.slice(0, RAW_LIMIT_CHARS),
        ),
    )
