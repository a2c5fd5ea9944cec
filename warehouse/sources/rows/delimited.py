"""Split delimited text into cells, block by block; a malformed line is refused individually."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_refused_rows, build_reject_frame

LINE = "line"
RAW = "raw"
DELIMITERS = (",", ";", "\t", "|")
#: special delimiter: split at runs of white space, and ignore quotes
WHITE_SPACE = " "
#: start of a comment, which is skipped unless it has the number of cells of a row
COMMENT = "#"
#: maximum number of lines up to the header
MAX_HEADER_LINES = 20


@dataclass(frozen=True, slots=True)
class Header:
    """Column names of the header line, and the delimiter between cells."""

    names: tuple[str, ...]
    delimiter: str


def parse_header(line: str) -> Header:
    """Parse a header line with the delimiter that yields the most columns."""
    text = line.rstrip("\r\n")
    return max((Header(names_in(text, mark), mark) for mark in DELIMITERS), key=lambda header: len(header.names))


def find_header(lines: Sequence[str], is_header: Callable[[Header], bool]) -> tuple[int, Header]:
    """Find the header in the first lines of a text, and the number of its line.

    Comments and lines of other programs may precede it. Without any, the first line that is neither empty nor a comment
    counts as the header.
    """
    headers = [parse_header(line) for line in lines[:MAX_HEADER_LINES]]
    found = next((number for number, header in enumerate(headers, start=1) if is_header(header)), 0)
    is_text = (bool(line.strip()) and not line.startswith(COMMENT) for line in lines)
    number = found or next((number for number, is_first in enumerate(is_text, start=1) if is_first), 1)
    return number, headers[number - 1] if len(headers) >= number else parse_header("")


def names_in(line: str, delimiter: str) -> tuple[str, ...]:
    """Split a header line into stripped names; empty if its quotes do not match."""
    if delimiter == WHITE_SPACE:
        return tuple(line.split())
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return ()


def require_single(header: Header, columns: Mapping[str, str]) -> None:
    """Raise InputRefused if a column that is used occurs more than once in the header."""
    duplicates = sorted({name for name in columns.values() if header.names.count(name) > 1})
    if duplicates:
        raise InputRefused(
            f"The header names {', '.join(duplicates)} more than once.", "Rename or drop the other column."
        )


def split_lines(
    lines: pl.DataFrame, header: Header, columns: Mapping[str, str], *, has_white_space: bool = True
) -> ParsedRows:
    """Split lines (`line`, `raw`) at the delimiter; refuse lines with more or fewer cells than the header.

    A trailing delimiter is accepted. A quoted cell may contain delimiters, but no line end. columns: maps iosig's names
    of the wanted columns to the header's. Returns these columns as stripped text, NULL for an empty cell, with `line`
    and `raw`. has_white_space: whether cells may need stripping, which takes longer than splitting.
    """
    split, refused = _split(lines, header.delimiter)
    width = len(header.names)
    count, cells = pl.col("cells").list.len(), pl.col("cells").list
    is_closed = (count == width + 1) & (cells.get(width, null_on_oob=True).str.strip_chars() == "")
    is_good = split.select((count == width) | is_closed).to_series()
    good = split if is_good.all() else split.filter(is_good)
    bad = _refuse_widths(split.select(LINE, RAW, count=count).filter(~is_good), width)
    texts = {column: cells.get(header.names.index(header_name)) for column, header_name in columns.items()}
    if has_white_space:
        texts = {column: text.str.strip_chars() for column, text in texts.items()}
    rows = good.select(*(text.replace("", None).alias(column) for column, text in texts.items()), LINE, RAW)
    return ParsedRows(rows, pl.concat([bad, refused]).sort(LINE) if refused.height else bad)


def _refuse_widths(lines: pl.DataFrame, width: int) -> pl.DataFrame:
    """Refuse lines (`line`, `raw`, `count` of cells); all lines with the same count get the same reason."""
    lines = lines.filter(~pl.col(RAW).str.starts_with(COMMENT)) if lines.height else lines
    if lines.is_empty():
        return build_reject_frame([])
    counts = lines["count"].unique()
    reasons = [f"The line has {count} fields where {width} are expected." for count in counts]
    reason = pl.col("count").replace_strict(counts, reasons, return_dtype=pl.String)
    return build_refused_rows(lines, reason, "Check for a truncated line or a delimiter within a field.")


def _split(lines: pl.DataFrame, delimiter: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split lines into their `cells`; refuse those with unmatched quotes."""
    if delimiter == WHITE_SPACE:
        words = pl.col(RAW).str.replace_all(r"\s+", " ").str.strip_chars(" ")
        return lines.with_columns(cells=words.str.split(" ")), build_reject_frame([])
    has_quotes = lines[RAW].str.contains('"', literal=True)
    if not has_quotes.any():
        return lines.with_columns(cells=pl.col(RAW).str.split(delimiter)), build_reject_frame([])
    # quotes around a whole cell can be dropped if it contains neither delimiters nor quotes
    cell = f'(?:"[^"{delimiter}]*"|[^"{delimiter}]*)'
    is_plain = lines[RAW].str.contains(f"^{cell}(?:[{delimiter}]{cell})*$")
    bare = pl.col(RAW).str.replace_all('"', "", literal=True)
    plain = lines.filter(is_plain).with_columns(cells=bare.str.split(delimiter))
    quoted, refused = _parse_quoted(lines.filter(~is_plain), delimiter)
    # one chunk, for the reason given in `text_blocks.lines`
    return pl.concat([plain, quoted]).sort(LINE).rechunk(), refused


def _parse_quoted(lines: pl.DataFrame, delimiter: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split lines one by one with the csv module, since their quotes enclose delimiters or quotes, or do not match."""
    cells: list[list[str] | None] = []
    refused: list[RefusedRow] = []
    for number, raw in lines.select(LINE, RAW).iter_rows():
        try:
            cells.append(next(csv.reader([raw], delimiter=delimiter, strict=True)))
        except csv.Error as error:
            cells.append(None)
            refused.append((number, f"The line's quotes do not match: {error}.", "Quote cells on one line.", raw))
    split = lines.with_columns(pl.Series("cells", cells, dtype=pl.List(pl.String)))
    return split.filter(pl.col("cells").is_not_null()), build_reject_frame(refused)
