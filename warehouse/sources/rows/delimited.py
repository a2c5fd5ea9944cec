"""Delimited text, cell by cell with its line number: the careful reader, for logs and for damaged tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.sources.files.opening import text_lines
from iosig.warehouse.sources.rows.rejects import Refused, Sifted, frame_of, no_text

#: a piece has no more rows, nor more text
_CHUNK_ROWS, _CHUNK_CHARS = 100_000, 64 << 20
LINE = "line"
RAW = "raw"


def _split(text: str, delimiter: str, quoted: bool) -> list[str]:
    if delimiter == " ":
        return text.split()
    if not quoted or '"' not in text:
        return text.split(delimiter)
    return next(csv.reader([text], delimiter=delimiter, strict=True))


def read_cells(
    path: Path, names: list[str], delimiter: str, *, skip_lines: int = 0, quoted: bool = True
) -> Iterator[Sifted]:
    """Read delimited text in pieces of bounded size; a line that does not split into the named columns is refused.

    A blank `delimiter` splits at runs of white space. Empty lines are skipped; a quoted cell may not span
    lines. Empty cells become NULL. Rows hold `line` and `raw` beside the named columns.
    """
    rows: list[list[str | None]] = []
    refused: list[Refused] = []
    size = 0
    for number, text, raw in text_lines(path):
        size += len(raw)
        if size >= _CHUNK_CHARS or max(len(rows), len(refused)) >= _CHUNK_ROWS:
            yield _cells(rows, refused, names)
            rows, refused, size = [], [], len(raw)
        if number <= skip_lines or (text is not None and not text.strip()):
            continue
        if text is None:
            refused.append(no_text(number, raw))
            continue
        try:
            cells = _split(text, delimiter, quoted)
        except csv.Error as error:
            refused.append((number, f"The line's quotes do not match: {error}.", "Quote cells on one line.", raw))
            continue
        if len(cells) == len(names) + 1 and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != len(names):
            reason = f"The line has {len(cells)} fields where {len(names)} are expected."
            refused.append((number, reason, "Check for a cut line or a delimiter within a field.", raw))
            continue
        rows.append([cell.strip() or None for cell in cells] + [str(number), raw])
    yield _cells(rows, refused, names)


def _cells(rows: list[list[str | None]], refused: list[Refused], names: list[str]) -> Sifted:
    frame = pl.DataFrame(rows, schema=dict.fromkeys([*names, LINE, RAW], pl.String), orient="row")
    return Sifted(frame.with_columns(pl.col(LINE).cast(pl.Int64)), frame_of(refused))
