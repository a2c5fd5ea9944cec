"""Read reviews of classes and periods, delimited text that the page of `iosig verify-classes` saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.reviews import REVIEW_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.sources.rows.rejects import ParsedRows

#: columns of the file, in the order in which the page writes them
COLUMNS = tuple(name for name in REVIEW_RECORDS.column_names if name not in ("source_file", "line"))
_INSTANTS = {"started_at": "start", "reviewed_at": "time of the review"}
_REMEDY = "Land the file as the page of `iosig verify-classes` saved it."


def sniff(head: Head) -> bool:
    """Recognize a header with all columns of reviews."""
    return tables.has_header(head.lines, COLUMNS)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one file; rows with an unknown verdict or an invalid time are refused."""
    for piece in tables.text_pieces(path, _locate, _convert):
        yield from piece.batches(REVIEW_RECORDS)


def _locate(names: Sequence[str]) -> dict[str, str]:
    if missing := set(COLUMNS) - set(names):
        raise InputRefused(f"The table has no column {', '.join(sorted(missing))}.", _REMEDY)
    return {name: name for name in COLUMNS}


def _convert(rows: pl.DataFrame) -> ParsedRows:
    import polars as pl

    from iosig.warehouse.contracts import frames
    from iosig.warehouse.sources.rows import times
    from iosig.warehouse.sources.rows.faults import Fault, build_contract_faults, build_number_fault, sift

    cells = rows.with_columns(tables.text(rows, name) for name in COLUMNS)
    instants = {name: times.parse(cells[name], None, label) for name, label in _INSTANTS.items()}
    cells = cells.with_columns(
        *(parsed["instant"].alias(name) for name, parsed in instants.items()),
        *(parsed["reason"].alias(f"{name}_reason") for name, parsed in instants.items()),
        pl.col("proposed_period_s").alias("given_period_s"),
        pl.col("proposed_period_s").cast(pl.Float64, strict=False),
        source_file=pl.lit(""),
    )
    faults = [
        *(Fault(pl.col(f"{name}_reason").is_not_null(), pl.col(f"{name}_reason"), _REMEDY) for name in _INSTANTS),
        build_number_fault("given_period_s", "proposed_period_s"),
        *build_contract_faults(REVIEW_RECORDS),
    ]
    parsed = sift(cells, faults)
    return type(parsed)(parsed.rows.select(frames.schema(REVIEW_RECORDS).names()), parsed.refused)


SOURCE = Source(
    name="class-reviews",
    doc="Reviews of classes and periods as CSV, as the page of `iosig verify-classes` saves them.",
    kind="reviews",
    sniff=sniff,
    read=read,
    precedence=5,
)
