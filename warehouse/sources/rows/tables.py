"""Read tables in delimited text or Parquet, piece by piece.

A format provides two functions: `Locate` finds its columns in a table, and `Read` reads a piece with renamed columns.
Rows from Parquet come without `raw` first. If `Read` would refuse one, it returns None, and is then called again with
`raw`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from iosig.warehouse.engine_paths import scan_parquet, utf8_path
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import plain_file, refusing_parquet_damage
from iosig.warehouse.sources.rows import text_blocks
from iosig.warehouse.sources.rows.delimited import LINE, RAW, Header, parse_header, require_single
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


def parse_names(start: Sequence[str]) -> set[str]:
    """Return the column names in the first line of the text."""
    return set(parse_header(start[0] if start else "").names)


def text_pieces(
    path: Path, locate: Locate, read: Read, *, block_bytes: int = text_blocks.BLOCK_BYTES, thread_count: int = 0
) -> Iterator[ParsedRows]:
    """Yield the rows of a text file with a header, block by block; malformed lines are refused individually.

    thread_count: number of blocks that are read ahead, each in its own thread; requires a stateless `read`.
    """
    header = text_blocks.read_header(path)
    columns = locate(header.names)
    require_single(header, columns)
    piece = partial(_piece, header=header, columns=columns, read=read)
    blocks = text_blocks.blocks(path, block_bytes)
    yield from (parsed for _, parsed in read_ahead(piece, blocks, thread_count)) if thread_count else map(piece, blocks)


def _piece(block: Block, header: Header, columns: dict[str, str], read: Read) -> ParsedRows:
    cells = text_blocks.cells(block, header, columns)
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
