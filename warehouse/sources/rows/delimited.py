"""Delimited text: from lines to cells, all lines of a block at once; a line that is wrong is refused by itself."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.rejects import Refused, Sifted, frame_of, refused_rows

LINE = "line"
RAW = "raw"
DELIMITERS = (",", ";", "\t", "|")
#: splits at runs of white space, and leaves quotes alone
WHITE_SPACE = " "


@dataclass(frozen=True, slots=True)
class Header:
    """The columns' names, as the first line has them, and the delimiter between cells."""

    names: tuple[str, ...]
    delimiter: str


def header_of(line: str) -> Header:
    """Return the header that a first line is, with the delimiter that gives the most columns."""
    text = line.removeprefix("\ufeff").rstrip("\r\n")
    return max((Header(names_in(text, mark), mark) for mark in DELIMITERS), key=lambda header: len(header.names))


def names_in(line: str, delimiter: str) -> tuple[str, ...]:
    """Return the stripped cells of a header line; none where its quotes do not match."""
    if delimiter == WHITE_SPACE:
        return tuple(line.split())
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return ()


def require_single(header: Header, columns: Mapping[str, str]) -> None:
    """Raise InputRefused if the header has a name more than once that is the column of one of ours."""
    doubled = sorted({name for name in columns.values() if header.names.count(name) > 1})
    if doubled:
        raise InputRefused(f"The header names {', '.join(doubled)} more than once.", "Rename or drop the other column.")


def split_lines(
    lines: pl.DataFrame, header: Header, columns: Mapping[str, str], *, has_white_space: bool = True
) -> Sifted:
    """Split lines (`line`, `raw`) at the delimiter; a line of another number of cells than the header is refused.

    One delimiter more may close the line. A quoted cell may hold delimiters, but no line end. columns: our names of
    the wanted columns, and the header's. Returns these as stripped text, NULL where a cell is empty, with `line` and
    `raw`. has_white_space: whether any cell may have to be stripped, which costs more than to split.
    """
    split, refused = _split(lines, header.delimiter)
    width = len(header.names)
    count, cells = pl.col("cells").list.len(), pl.col("cells").list
    is_closed = (count == width + 1) & (cells.get(width, null_on_oob=True).str.strip_chars() == "")
    is_good = split.select((count == width) | is_closed).to_series()
    good = split if is_good.all() else split.filter(is_good)
    bad = _refused_widths(split.select(LINE, RAW, count=count).filter(~is_good), width)
    texts = {ours: cells.get(header.names.index(theirs)) for ours, theirs in columns.items()}
    if has_white_space:
        texts = {ours: text.str.strip_chars() for ours, text in texts.items()}
    rows = good.select(*(text.replace("", None).alias(ours) for ours, text in texts.items()), LINE, RAW)
    return Sifted(rows, pl.concat([bad, refused]).sort(LINE) if refused.height else bad)


def _refused_widths(lines: pl.DataFrame, width: int) -> pl.DataFrame:
    """Return refused lines (`line`, `raw`, `count` of cells); lines of one count share one text."""
    if lines.is_empty():
        return frame_of([])
    counts = lines["count"].unique()
    reasons = [f"The line has {count} fields where {width} are expected." for count in counts]
    reason = pl.col("count").replace_strict(counts, reasons, return_dtype=pl.String)
    return refused_rows(lines, reason, "Check for a cut line or a delimiter within a field.")


def _split(lines: pl.DataFrame, delimiter: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return lines with their `cells`, and those whose quotes do not match, refused."""
    if delimiter == WHITE_SPACE:
        words = pl.col(RAW).str.replace_all(r"\s+", " ").str.strip_chars(" ")
        return lines.with_columns(cells=words.str.split(" ")), frame_of([])
    has_quotes = lines[RAW].str.contains('"', literal=True)
    if not has_quotes.any():
        return lines.with_columns(cells=pl.col(RAW).str.split(delimiter)), frame_of([])
    # quotes around whole cells, without delimiters or quotes within, can go
    cell = f'(?:"[^"{delimiter}]*"|[^"{delimiter}]*)'
    is_plain = lines[RAW].str.contains(f"^{cell}(?:[{delimiter}]{cell})*$")
    bare = pl.col(RAW).str.replace_all('"', "", literal=True)
    plain = lines.filter(is_plain).with_columns(cells=bare.str.split(delimiter))
    quoted, refused = _split_quoted(lines.filter(~is_plain), delimiter)
    # one chunk, for the reason given in `text_blocks.lines`
    return pl.concat([plain, quoted]).sort(LINE).rechunk(), refused


def _split_quoted(lines: pl.DataFrame, delimiter: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split lines one by one: their quotes hold delimiters or quotes, or do not match."""
    cells: list[list[str] | None] = []
    refused: list[Refused] = []
    for number, raw in lines.select(LINE, RAW).iter_rows():
        try:
            cells.append(next(csv.reader([raw], delimiter=delimiter, strict=True)))
        except csv.Error as error:
            cells.append(None)
            refused.append((number, f"The line's quotes do not match: {error}.", "Quote cells on one line.", raw))
    split = lines.with_columns(pl.Series("cells", cells, dtype=pl.List(pl.String)))
    return split.filter(pl.col("cells").is_not_null()), frame_of(refused)
