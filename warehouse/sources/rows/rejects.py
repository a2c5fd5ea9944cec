"""Refused rows: one way to make them, so that all look alike; beside them, the rows that are good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.files.opening import CutLine
from iosig.warehouse.sources.protocol import RAW_LIMIT_CHARS, Batch

#: what a source knows of a refused row; landing adds `landing_id` and `source_file`
SCHEMA = pl.Schema({"line": pl.Int64, "reason": pl.String, "remedy": pl.String, "raw": pl.String})
#: a refused row as these columns
Refused = tuple[int | None, str, str, str | None]


@dataclass(frozen=True, slots=True)
class Sifted:
    """The good rows with all their columns, and the refused ones as line, reason, remedy and raw."""

    rows: pl.DataFrame
    refused: pl.DataFrame

    def batches(self, table: Table) -> Iterator[Batch]:
        """Yield what there is to land: good rows, which hold the table's columns, and refused ones."""
        if not self.rows.is_empty():
            yield Batch(table, self.rows.select(table.column_names))
        yield from refused(self.refused)


def refused(rows: pl.DataFrame) -> Iterator[Batch]:
    """Yield refused rows as a batch of `rejects`, if there are any."""
    if not rows.is_empty():
        yield reject_frame(rows)


def frame_of(rows: Iterable[Refused]) -> pl.DataFrame:
    """Return refused rows as a frame of SCHEMA."""
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


def as_text(text: pl.Expr | str) -> pl.Expr:
    """Return a text that is the same for all rows, or as an expression says it of each."""
    return pl.lit(text) if isinstance(text, str) else text


def refused_rows(rows: pl.DataFrame, reason: pl.Expr | str, remedy: pl.Expr | str, raw: str = "raw") -> pl.DataFrame:
    """Return rows (`line`, and perhaps a column of their raw text) as refused rows."""
    shown = pl.col(raw) if raw in rows.columns else pl.lit(None, pl.String)
    return rows.select(
        pl.col("line").cast(pl.Int64),
        as_text(reason).alias("reason"),
        as_text(remedy).alias("remedy"),
        shown.alias("raw"),
    )


def no_text(line: int, raw: str) -> Refused:
    """Return the refused row that a line is which is no text, or too long to be one."""
    if isinstance(raw, CutLine):
        reason = f"The line is longer than {in_force().max_line_bytes:,} bytes, which is limits.max_line_bytes."
        return line, reason, "Check that the file is a log of lines.", raw
    return line, "The line is not UTF-8 text.", "Export the log as UTF-8.", raw


def rejects(rows: Iterable[Refused]) -> Batch:
    """Return refused rows (line, reason, remedy, raw) as a batch of `rejects`; raw text is cut."""
    return reject_frame(frame_of(rows))


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
