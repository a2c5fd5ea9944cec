"""Delimited text with a header, in blocks: read all at once where it is sound, line by line where it is not."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.files.opening import (
    DAMAGE,
    damaged_after,
    open_bytes,
    refusing_damage,
)
from iosig.warehouse.sources.rows.delimited import LINE, RAW, read_cells
from iosig.warehouse.sources.rows.rejects import Sifted

#: text that is read at once
BLOCK_BYTES = 16 << 20
DELIMITERS = (",", ";", "\t", "|")
#: what most lines are shorter than
_ROOM_BYTES = 1 << 12
#: bytes that are looked at before they leave the processor's cache
_STRIP_BYTES = 1 << 17
_LINE_END = ord("\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the columns' names as they stand there, and what is between them."""

    names: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the text, the number of the first, and how many they are."""

    first_line: int
    line_count: int
    content: bytes


def header_of(line: str) -> Header:
    """Return the header that a first line is, with the delimiter that parts it most."""
    text = line.removeprefix("\ufeff").rstrip("\r\n")
    return max((Header(_split(text, mark), mark) for mark in DELIMITERS), key=lambda header: len(header.names))


def _split(line: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return ()


def read_header(path: Path) -> Header:
    """Return the header of a file, plain or compressed."""
    with refusing_damage(), open_bytes(path) as file:
        line = file.readline(in_force().line_bytes)
    return header_of(line.removeprefix(_BOM).decode("utf-8", "replace"))


def blocks(path: Path, block_bytes: int = BLOCK_BYTES, *, has_header: bool = True) -> Iterator[Block]:
    """Yield the lines after the header, many at a time."""
    first = 1 + has_header
    try:
        with open_bytes(path) as raw, io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20) as buffered:
            file = cast(IO[bytes], buffered)
            if has_header:
                _rest_of_line(file)
            while content := _whole_lines(file, block_bytes):
                count = line_ends(content) + (not content.endswith(b"\n"))
                yield Block(first, count, content)
                first += count
    except DAMAGE as error:
        raise damaged_after(first - 1, error) from error


def _whole_lines(file: IO[bytes], size: int) -> bytes:
    """Return so many bytes, and the rest of their last line."""
    # room for a line behind them: to put it behind bytes would copy these, into memory that is new to the process
    into = io.BytesIO(bytes(size + _ROOM_BYTES))
    with into.getbuffer() as content:
        count = file.readinto(content[:size])  # type: ignore[attr-defined]
        is_whole = not count or content[count - 1] == _LINE_END
    into.seek(count)
    into.truncate()
    if not is_whole:
        into.write(_rest_of_line(file))
    return into.getvalue()


def line_ends(content: bytes) -> int:
    """Return how many lines end in a content."""
    # three times as fast as to ask the bytes
    given, is_end = np.frombuffer(content, np.uint8), np.empty(_STRIP_BYTES, np.bool_)
    strips = (given[first : first + _STRIP_BYTES] for first in range(0, len(given), _STRIP_BYTES))
    return sum(int(np.count_nonzero(np.equal(strip, _LINE_END, out=is_end[: len(strip)]))) for strip in strips)


def lines(block: Block) -> pl.DataFrame:
    """Return the lines of a block as `line` and `text`, without their ends."""
    content, found = block.content, None
    if block.first_line > 1 or not content.startswith(_BOM):
        with suppress(pl.exceptions.PolarsError):
            # a delimiter that no line has; empty lines are left out of a table of one column
            found = pl.read_csv(
                content, has_header=False, separator="\x01", quote_char=None, schema={"text": pl.String}
            )
    if found is None or found.height != block.line_count or b"\r" in content or found["text"].has_nulls():
        text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
        found = pl.Series("text", [text]).str.split("\n").explode().to_frame()
    last = block.first_line + found.height
    return found.select(pl.int_range(block.first_line, last, dtype=pl.Int64).alias(LINE), "text")


def _rest_of_line(file: IO[bytes]) -> bytes:
    longest = in_force().line_bytes
    rest = file.readline(longest)
    if len(rest) == longest and not rest.endswith(b"\n"):
        raise InputRefused(
            f"A line is longer than {longest:,} bytes, which is limits.line_bytes.",
            "Check that the file is a table of rows.",
        )
    return rest


def quick_cells(
    block: Block,
    header: Header,
    columns: Mapping[str, str],
    numbers: Collection[str] = (),
    wholes: Collection[str] = (),
) -> pl.DataFrame | None:
    """Read a block all at once, as text with `line`; None if anything in it needs a closer look.

    columns: our names of the columns that are wanted, and the header's. numbers: those of ours that are numbers.
    wholes: those that are whole numbers.
    """
    content = block.content
    if b"\x00" in content or not (content.isascii() or _is_utf8(content)):
        return None
    ours = {theirs: name for name, theirs in columns.items()}
    dtypes = dict.fromkeys(numbers, pl.Float64()) | dict.fromkeys(wholes, pl.Int64())
    # The names of other columns do not matter, and may be doubled.
    schema = {
        ours.get(theirs, f"column {index}"): dtypes.get(ours.get(theirs, ""), pl.String())
        for index, theirs in enumerate(header.names)
    }
    used = [index for index, theirs in enumerate(header.names) if theirs in ours]
    try:
        cells = pl.read_csv(content, has_header=False, schema=schema, columns=used, separator=header.delimiter)
    except pl.exceptions.PolarsError:
        return None
    # Polars fills a line that is cut short with NULLs, and takes line ends within quotes.
    delimiter_count = content.count(header.delimiter.encode())
    if cells.height != block.line_count or delimiter_count != cells.height * (len(header.names) - 1):
        return None
    lines = pl.int_range(block.first_line, block.first_line + cells.height, dtype=pl.Int64, eager=True)
    return cells.with_columns(lines.alias(LINE))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def careful_cells(block: Block, header: Header, columns: Mapping[str, str]) -> Iterator[Sifted]:
    """Read a block line by line: rows as text with `line` and `raw`, and each line that is wrong by itself."""
    names = [f"column {index}" for index in range(len(header.names))]
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
        copy = Path(folder) / "block"
        # The empty line keeps the content from passing for a compressed file or a byte-order mark.
        copy.write_bytes(b"\n" + block.content)
        line = pl.col(LINE) + (block.first_line - 2)
        wanted = [pl.col(names[header.names.index(theirs)]).alias(ours) for ours, theirs in columns.items()]
        for cells in read_cells(copy, names, header.delimiter):
            yield Sifted(cells.rows.select(*wanted, line, RAW), cells.refused.with_columns(line))


def require_single(header: Header, names: Sequence[str]) -> None:
    """Raise InputRefused if the header has any of these names more than once."""
    doubled = sorted({name for name in names if header.names.count(name) > 1})
    if doubled:
        raise InputRefused(f"The header names {', '.join(doubled)} more than once.", "Rename or drop the other column.")
