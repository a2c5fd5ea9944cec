"""Naive implementation of `iosig.warehouse.sources.rows.delimited.split_lines`: line by line, with the csv module."""

from __future__ import annotations

import csv
from collections.abc import Mapping

import polars as pl

from iosig.warehouse.sources.rows.delimited import Header
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_reject_frame


def split_lines(lines: pl.DataFrame, header: Header, columns: Mapping[str, str], **_: object) -> ParsedRows:
    """Split each line separately."""
    rows: list[tuple[object, ...]] = []
    refused: list[RefusedRow] = []
    width = len(header.names)
    for number, raw in lines.select("line", "raw").iter_rows():
        try:
            cells = _cells(raw, header.delimiter)
        except csv.Error as error:
            refused.append((number, f"The line's quotes do not match: {error}.", "Quote cells on one line.", raw))
            continue
        if len(cells) == width + 1 and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != width:
            reason = f"The line has {len(cells)} fields where {width} are expected."
            refused.append((number, reason, "Check for a truncated line or a delimiter within a field.", raw))
            continue
        wanted = (cells[header.names.index(theirs)].strip() or None for theirs in columns.values())
        rows.append((*wanted, number, raw))
    schema = dict.fromkeys(columns, pl.String) | {"line": pl.Int64, "raw": pl.String}
    return ParsedRows(pl.DataFrame(rows, schema=schema, orient="row"), build_reject_frame(refused))


def _cells(raw: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return raw.split()
    if '"' not in raw:
        return raw.split(delimiter)
    return next(csv.reader([raw], delimiter=delimiter, strict=True))
