"""Tables as delimited text or Parquet, piece by piece.

A format says which of its columns a table has (`Locate`), and reads a piece under its own names (`Read`). Rows of
Parquet come without `raw`: `Read` returns None where it would refuse one, and is then called again with it.
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
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.files.opening import plain_file, refusing_parquet_damage
from iosig.warehouse.sources.rows import text_blocks
from iosig.warehouse.sources.rows.delimited import LINE, RAW, Header, header_of, require_single
from iosig.warehouse.sources.rows.rejects import Sifted
from iosig.warehouse.sources.rows.text_blocks import Block

#: from the columns that a table has to our names of them, each with the table's
Locate = Callable[[Sequence[str]], dict[str, str]]
#: from rows under our names, of any type, with `line` and perhaps `raw`, to good ones and refused ones
Read = Callable[[pl.DataFrame], Sifted | None]
Piece = TypeVar("Piece")
Found = TypeVar("Found")


def text(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column as text, empty and missing cells as NULL."""
    if name not in rows.columns:
        return pl.lit(None, pl.String)
    # names come again and again: that none of them is to be stripped is seen of each once
    distinct = rows[name].unique().drop_nulls().cast(pl.String)
    if (distinct.str.len_bytes() > 0).all() and (distinct.str.strip_chars() == distinct).all():
        return pl.col(name).cast(pl.String)
    stripped = pl.col(name).cast(pl.String).str.strip_chars()
    return pl.when(stripped.str.len_bytes() > 0).then(stripped)


# ---- Parquet


def parquet_names(path: Path) -> list[str]:
    """Return the columns of a Parquet file, plain or compressed; none where it cannot be read."""
    try:
        with plain_file(path) as plain, refusing_parquet_damage():
            return scan_parquet(plain).collect_schema().names()
    except InputRefused:
        return []


def parquet_pieces(path: Path, locate: Locate, read: Read, piece_rows: int) -> Iterator[Sifted]:
    """Yield a plain Parquet file's rows, some at a time; a refused row's line is its ordinal."""
    with refusing_parquet_damage():
        table = scan_parquet(path)
        columns = locate(table.collect_schema().names())
        used = table.select(pl.col(theirs).alias(ours) for ours, theirs in columns.items())
        height = table.select(pl.len()).collect().item()
        _require_short_cells(path, columns.values())
    for first in range(0, height, piece_rows):
        with refusing_parquet_damage():
            rows = used.slice(first, piece_rows).collect()
            lined = rows.with_columns(pl.int_range(first + 1, first + 1 + rows.height, dtype=pl.Int64).alias(LINE))
            found = read(lined)
            if found is None:
                shown = lined.select(pl.struct(pl.exclude(LINE).cast(pl.String, strict=False)).struct.json_encode())
                found = read(lined.with_columns(shown.to_series().alias(RAW)))
        if found is not None:
            yield found


def _require_short_cells(path: Path, names: Collection[str]) -> None:
    """Raise InputRefused where the cells of a column are longer in the mean than a line may be."""
    import pyarrow.parquet as pq

    most, end = in_force().max_line_bytes, pq.read_metadata(utf8_path(path))
    groups = (end.row_group(place) for place in range(end.num_row_groups))
    for chunk in (group.column(place) for group in groups for place in range(end.num_columns)):
        is_meant = chunk.path_in_schema.split(".")[0] in names
        if is_meant and chunk.total_uncompressed_size > most * max(chunk.num_values, 1):
            raise InputRefused(
                f"The cells of {chunk.path_in_schema} are longer than {most:,} bytes, which is limits.max_line_bytes.",
                "Check what wrote it.",
            )


# ---- delimited text


def names_of(start: Sequence[str]) -> set[str]:
    """Return the columns that the first line of a text names."""
    return set(header_of(start[0] if start else "").names)


def text_pieces(
    path: Path, locate: Locate, read: Read, *, block_bytes: int = text_blocks.BLOCK_BYTES, thread_count: int = 0
) -> Iterator[Sifted]:
    """Yield the rows of a text with a header, a block at a time; a line that is wrong is refused by itself.

    thread_count: how many blocks are read ahead, each in a thread of its own; only for a `read` that remembers nothing.
    """
    header = text_blocks.read_header(path)
    columns = locate(header.names)
    require_single(header, columns)
    piece = partial(_piece, header=header, columns=columns, read=read)
    blocks = text_blocks.blocks(path, block_bytes)
    yield from (found for _, found in ahead(piece, blocks, thread_count)) if thread_count else map(piece, blocks)


def _piece(block: Block, header: Header, columns: dict[str, str], read: Read) -> Sifted:
    cells = text_blocks.cells(block, header, columns)
    found = read(cells.rows)
    if found is None:
        raise ValueError("rows with their raw text must be read")
    return Sifted(found.rows, pl.concat([found.refused, cells.refused]).sort(LINE))


def gathered(pieces: Iterable[Sifted], row_count: int) -> Iterator[Sifted]:
    """Yield pieces that follow each other together, as many as make so many rows, or a tenth as many refused ones."""
    waiting: list[Sifted] = []
    good_count = refused_count = 0
    for piece in pieces:
        waiting.append(piece)
        good_count += piece.rows.height
        refused_count += piece.refused.height
        if good_count >= row_count or refused_count >= row_count // 10:
            yield _together(waiting)
            waiting, good_count, refused_count = [], 0, 0
    if waiting:
        yield _together(waiting)


def _together(pieces: Sequence[Sifted]) -> Sifted:
    return Sifted(pl.concat([each.rows for each in pieces]), pl.concat([each.refused for each in pieces]))


def ahead(read: Callable[[Piece], Found], pieces: Iterable[Piece], thread_count: int) -> Iterator[tuple[Piece, Found]]:
    """Read pieces in threads, a few ahead of what is asked for, and yield them in order."""
    with ThreadPoolExecutor(thread_count) as threads:
        waiting: deque[tuple[Piece, Future[Found]]] = deque()
        for piece in pieces:
            # limits and the record of zones hold in the threads as well
            waiting.append((piece, threads.submit(copy_context().run, read, piece)))
            if len(waiting) > thread_count:
                first, parsed = waiting.popleft()
                yield first, parsed.result()
        for first, parsed in waiting:
            yield first, parsed.result()
