"""Read tables in delimited text or Parquet, piece by piece.

A format provides two functions: `Locate` finds its columns in a table, and `Read` reads a piece with renamed columns.
Rows from Parquet come without `raw` first. If `Read` would refuse one, it returns None, and is then called again with
`raw`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import polars as pl

from iosig.warehouse.engine_paths import scan_parquet, utf8_path
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import plain_file, refusing_parquet_damage
from iosig.warehouse.sources.rows import text_blocks
from iosig.warehouse.sources.rows.delimited import (
    LINE,
    MAX_HEADER_LINES,
    RAW,
    Header,
    find_header,
    parse_header,
    require_single,
)
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows
from iosig.warehouse.sources.rows.text_blocks import Block

#: function that maps iosig's column names to the table's, given the table's columns
Locate = Callable[[Sequence[str]], dict[str, str]]
#: function that separates rows into good and refused ones; the rows have iosig's column names, any types, `line` and
#: perhaps `raw`
Read = Callable[[pl.DataFrame], ParsedRows | None]
Piece = TypeVar("Piece")
Found = TypeVar("Found")


def text(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Convert a column to text, with empty and missing cells as NULL."""
    if name not in rows.columns:
        return pl.lit(None, pl.String)
    # values repeat, so checking only the distinct ones for white space is cheaper
    distinct = rows[name].unique().drop_nulls().cast(pl.String)
    if (distinct.str.len_bytes() > 0).all() and (distinct.str.strip_chars() == distinct).all():
        return pl.col(name).cast(pl.String)
    stripped = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(stripped.str.len_bytes() > 0).then(stripped)


# ---- Parquet


def parquet_names(path: Path) -> list[str]:
    """List the columns of a plain or compressed Parquet file; empty if it is unreadable."""
    try:
        with plain_file(path) as plain, refusing_parquet_damage():
            return scan_parquet(plain).collect_schema().names()
    except InputRefused:
        return []


def parquet_pieces(path: Path, locate: Locate, read: Read, piece_rows: int) -> Iterator[ParsedRows]:
    """Yield a plain Parquet file's rows in pieces; the `line` of a refused row is its ordinal number."""
    with refusing_parquet_damage():
        table = scan_parquet(path)
        columns = locate(table.collect_schema().names())
        _note(columns, table.collect_schema().names())
        used = table.select(pl.col(source_name).alias(column) for column, source_name in columns.items())
        height = table.select(pl.len()).collect().item()
        _require_short_cells(path, columns.values())
    for first in range(0, height, piece_rows):
        with refusing_parquet_damage():
            rows = used.slice(first, piece_rows).collect()
            lined = rows.with_columns(pl.int_range(first + 1, first + 1 + rows.height, dtype=pl.Int64).alias(LINE))
            parsed = read(lined)
            if parsed is None:
                shown = lined.select(pl.struct(pl.exclude(LINE).cast(pl.String, strict=False)).struct.json_encode())
                parsed = read(lined.with_columns(shown.to_series().alias(RAW)))
        if parsed is not None:
            yield parsed


def _note(columns: Mapping[str, str], names: Iterable[str]) -> None:
    note_fields({source_name: column for column, source_name in columns.items()}, names)


def _require_short_cells(path: Path, names: Collection[str]) -> None:
    """Raise InputRefused if a column's mean cell size exceeds the line limit."""
    import pyarrow.parquet as pq

    max_bytes, end = current_limits().max_line_bytes, pq.read_metadata(utf8_path(path))
    groups = (end.row_group(place) for place in range(end.num_row_groups))
    for chunk in (group.column(place) for group in groups for place in range(end.num_columns)):
        is_used = chunk.path_in_schema.split(".")[0] in names
        if is_used and chunk.total_uncompressed_size > max_bytes * max(chunk.num_values, 1):
            raise InputRefused(
                f"The cells of {chunk.path_in_schema} are longer than {max_bytes:,} bytes (limits.max_line_bytes).",
                "Check the program that wrote the file.",
            )


# ---- delimited text


def has_header(lines: Sequence[str], names: Collection[str]) -> bool:
    """Return whether one of the first lines names all of these columns."""
    # parsing lines takes longer than searching them
    if not any(all(name in line for name in names) for line in lines[:MAX_HEADER_LINES]):
        return False
    header = find_header(lines, lambda header: set(names) <= set(header.names))[1]
    return set(names) <= set(header.names)


def text_pieces(
    path: Path, locate: Locate, read: Read, *, block_bytes: int = text_blocks.BLOCK_BYTES, thread_count: int = 0
) -> Iterator[ParsedRows]:
    """Yield the rows of a text file with a header, block by block; malformed lines are refused individually.

    A later header, as in concatenated files, applies to the lines after it. thread_count: number of blocks that are
    read ahead, each in its own thread; requires a stateless `read`.
    """
    sections, piece = _sections(path, locate, block_bytes), partial(_piece, read=read)
    yield from (
        (parsed for _, parsed in read_ahead(piece, sections, thread_count)) if thread_count else map(piece, sections)
    )


@dataclass(frozen=True, slots=True)
class _Section:
    """Lines under one header; columns: maps iosig's column names to the header's."""

    block: Block
    header: Header
    columns: dict[str, str]


def _sections(path: Path, locate: Locate, block_bytes: int) -> Iterator[_Section]:
    """Yield the lines under each header in blocks; lines before the first one are refused, except comments."""

    def is_header(header: Header) -> bool:
        with suppress(InputRefused):
            locate(header.names)
            return True
        return False

    number, header = text_blocks.read_header(path, is_header)
    columns = locate(header.names)
    require_single(header, columns)
    _note(columns, header.names)
    # these lines have other fields than the header
    for block in islice(text_blocks.blocks(path, 1), number - 1):
        yield _Section(block, header, columns)
    names = sorted((name.encode() for name in columns.values()), key=len, reverse=True)
    for block in text_blocks.blocks(path, block_bytes, skipped_line_count=number):
        for part, line in text_blocks.split_at(block, names, lambda line: is_header(parse_header(line))):
            if line is not None:
                header = parse_header(line)
                columns = locate(header.names)
                require_single(header, columns)
                _note(columns, header.names)
            elif part.line_count:
                yield _Section(part, header, columns)


def _piece(section: _Section, read: Read) -> ParsedRows:
    cells = text_blocks.cells(section.block, section.header, section.columns)
    parsed = read(cells.rows)
    if parsed is None:
        raise ValueError("rows must be read with their raw text")
    return ParsedRows(parsed.rows, pl.concat([parsed.refused, cells.refused]).sort(LINE))


def merge_pieces(pieces: Iterable[ParsedRows], row_count: int) -> Iterator[ParsedRows]:
    """Concatenate consecutive pieces until they have `row_count` good rows, or a tenth of that number refused."""
    pending: list[ParsedRows] = []
    good_count = refused_count = 0
    for piece in pieces:
        pending.append(piece)
        good_count += piece.rows.height
        refused_count += piece.refused.height
        if good_count >= row_count or refused_count >= row_count // 10:
            yield _concat_pieces(pending)
            pending, good_count, refused_count = [], 0, 0
    if pending:
        yield _concat_pieces(pending)


def _concat_pieces(pieces: Sequence[ParsedRows]) -> ParsedRows:
    return ParsedRows(pl.concat([piece.rows for piece in pieces]), pl.concat([piece.refused for piece in pieces]))


def read_ahead(
    read: Callable[[Piece], Found], pieces: Iterable[Piece], thread_count: int
) -> Iterator[tuple[Piece, Found]]:
    """Read pieces in threads, `thread_count` ahead of the consumer, and yield them in order."""
    with ThreadPoolExecutor(thread_count) as threads:
        pending: deque[tuple[Piece, Future[Found]]] = deque()
        for piece in pieces:
            # the threads need the context variables: limits and recorded zones
            pending.append((piece, threads.submit(copy_context().run, read, piece)))
            if len(pending) > thread_count:
                first, parsed = pending.popleft()
                yield first, parsed.result()
        for first, parsed in pending:
            yield first, parsed.result()
