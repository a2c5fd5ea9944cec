"""Define the results of checking rows: good rows, and refused ones with line, reason, remedy and raw text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import CutLine
from iosig.warehouse.sources.protocol import RAW_LIMIT_CHARS, Batch

#: columns that a source fills for a refused row; landing adds `landing_id` and `source_file`
REJECT_SCHEMA = pl.Schema({"line": pl.Int64, "reason": pl.String, "remedy": pl.String, "raw": pl.String})
#: a refused row: line, reason, remedy, raw
RefusedRow = tuple[int | None, str, str, str | None]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The good rows with all their columns, and the refused ones as line, reason, remedy and raw."""

    rows: pl.DataFrame
    refused: pl.DataFrame

    def batches(self, table: Table) -> Iterator[Batch]:
        """Yield the good rows as a batch of `table`, and the refused ones as a batch of `rejects`."""
        if not self.rows.is_empty():
            yield Batch(table, self.rows.select(table.column_names))
        yield from reject_batches(self.refused)


def reject_batches(rows: pl.DataFrame) -> Iterator[Batch]:
    """Yield refused rows as a batch of `rejects`, unless there are none."""
    if not rows.is_empty():
        yield reject_frame(rows)


def build_reject_frame(rows: Iterable[RefusedRow]) -> pl.DataFrame:
    """Build a frame with the columns of REJECT_SCHEMA from refused rows."""
    return pl.DataFrame(list(rows), schema=REJECT_SCHEMA, orient="row")


def as_text(text: pl.Expr | str) -> pl.Expr:
    """Convert a constant string to an expression, and return an expression unchanged."""
    return pl.lit(text) if isinstance(text, str) else text


def build_refused_rows(
    rows: pl.DataFrame, reason: pl.Expr | str, remedy: pl.Expr | str, raw: str = "raw"
) -> pl.DataFrame:
    """Convert rows (`line`, and optionally their raw text) to refused rows."""
    shown = pl.col(raw) if raw in rows.columns else pl.lit(None, pl.String)
    return rows.select(
        pl.col("line").cast(pl.Int64),
        as_text(reason).alias("reason"),
        as_text(remedy).alias("remedy"),
        shown.alias("raw"),
    )


def refuse_non_text(line: int, raw: str) -> RefusedRow:
    """Build the refused row of a line that is not text or exceeds the length limit."""
    if isinstance(raw, CutLine):
        reason = f"The line is longer than {current_limits().max_line_bytes:,} bytes (limits.max_line_bytes)."
        return line, reason, "Check that the file is a log of lines.", raw
    return line, "The line is not UTF-8 text.", "Export the log as UTF-8.", raw


def rejects(rows: Iterable[RefusedRow]) -> Batch:
    """Build a batch of `rejects` from refused rows (line, reason, remedy, raw), with raw text truncated."""
    return reject_frame(build_reject_frame(rows))


def reject_frame(rows: pl.DataFrame) -> Batch:
    """Build a batch of `rejects` from a frame with the columns line, reason, remedy and raw."""
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
