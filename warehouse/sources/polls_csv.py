"""Polls as delimited text with a header: fast where the text is sound, line by line where it is not."""

from __future__ import annotations

import csv
import io
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import polars as pl

from warehouse.errors import InputRefused
from warehouse.sources import Batch, Head, Reading, Source, polls
from warehouse.sources.delimited import LINE, RAW, read_cells
from warehouse.sources.faults import Sifted
from warehouse.sources.opening import DAMAGE, open_bytes

#: text that is read at once: larger blocks are no faster, smaller ones make more files
BLOCK_BYTES = 64 << 20
LONGEST_LINE_BYTES = 1 << 20
_THREADS = 2
_DELIMITERS = (",", ";", "\t", "|")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the text is laid out: its header, its delimiter, and which of its columns holds which of ours."""

    header: tuple[str, ...]
    delimiter: str
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole lines of the text, the number of the first, and how many they are."""

    first_line: int
    line_count: int
    content: bytes


def _split(line: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return ()


def sniff(head: Head) -> bool:
    """Return whether the first line names the columns that polls must have."""
    line = head.lines[0] if head.lines else ""
    required = {head.columns.get(name, name) for name in polls.REQUIRED}
    return any(required <= set(_split(line.removeprefix("\ufeff"), mark)) for mark in _DELIMITERS)


def _layout(line: bytes, reading: Reading) -> _Layout:
    text = line.removeprefix(_BOM).decode("utf-8", "replace").rstrip("\r\n")
    headers = {mark: _split(text, mark) for mark in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda mark: len(headers[mark]))
    header = headers[delimiter]
    columns = polls.locate(header, reading)
    doubled = sorted({name for name in columns.values() if header.count(name) > 1})
    if doubled:
        raise InputRefused(f"The header names {', '.join(doubled)} more than once.", "Rename or drop the other column.")
    return _Layout(header, delimiter, columns)


def _contents(path: Path) -> Iterator[bytes]:
    """Yield the header line, then the other lines, many at a time."""
    try:
        with open_bytes(path) as raw, io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20) as buffered:
            file = cast(IO[bytes], buffered)
            content = file.readline(LONGEST_LINE_BYTES)
            while content:
                yield content
                content = file.read(BLOCK_BYTES)
                if content and not content.endswith(b"\n"):
                    content += _rest_of_line(file)
    except DAMAGE as error:
        raise InputRefused(f"The file is damaged: {error}.", "Fetch or compress it anew.") from error


def _rest_of_line(file: IO[bytes]) -> bytes:
    rest = file.readline(LONGEST_LINE_BYTES)
    if len(rest) == LONGEST_LINE_BYTES and not rest.endswith(b"\n"):
        raise InputRefused("A line is longer than 1 MiB.", "Check that the file is a table of polls.")
    return rest


def _numbered(contents: Iterator[bytes]) -> Iterator[_Block]:
    first = 2
    for content in contents:
        count = content.count(b"\n") + (not content.endswith(b"\n"))
        yield _Block(first, count, content)
        first += count


def _sound(block: _Block, layout: _Layout, reading: Reading) -> Sifted | None:
    """Read a block all at once; None if anything in it needs a closer look."""
    content = block.content
    if b"\x00" in content or not (content.isascii() or _is_utf8(content)):
        return None
    names = {theirs: ours for ours, theirs in layout.columns.items()}
    # The names of other columns do not matter, and may be doubled.
    schema = {
        names.get(theirs, f"column {index}"): pl.Float64 if names.get(theirs) in polls.NUMBERS else pl.String
        for index, theirs in enumerate(layout.header)
    }
    used = [index for index, theirs in enumerate(layout.header) if theirs in names]
    try:
        cells = pl.read_csv(content, has_header=False, schema=schema, columns=used, separator=layout.delimiter)
    except pl.exceptions.PolarsError:
        return None
    # Polars fills a line that is cut short with NULLs, and takes line ends within quotes.
    delimiter_count = content.count(layout.delimiter.encode())
    if cells.height != block.line_count or delimiter_count != cells.height * (len(layout.header) - 1):
        return None
    lines = pl.int_range(block.first_line, block.first_line + cells.height, dtype=pl.Int64, eager=True).alias(LINE)
    frame, faults = polls.typed(cells.with_columns(lines), reading)
    return polls.all_good(frame, faults)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _careful(block: _Block, layout: _Layout, reading: Reading) -> Sifted:
    """Read a block line by line, so that each line that is wrong is refused by itself."""
    names = [f"column {index}" for index in range(len(layout.header))]
    ours = {ours: names[layout.header.index(theirs)] for ours, theirs in layout.columns.items()}
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
        copy = Path(folder) / "block"
        # The empty line keeps the content from passing for a compressed file or a byte-order mark.
        copy.write_bytes(b"\n" + block.content)
        shift = block.first_line - 2
        pieces: list[Sifted] = []
        for cells in read_cells(copy, names, layout.delimiter):
            rows = cells.rows.select(
                *(pl.col(theirs).alias(ours) for ours, theirs in ours.items()), pl.col(LINE) + shift, RAW
            )
            found = polls.sifted(*polls.typed(rows, reading))
            unread = cells.refused.with_columns(pl.col(LINE) + shift)
            pieces.append(Sifted(found.rows, pl.concat([found.refused, unread])))
    refused = pl.concat([piece.refused for piece in pieces]).sort(LINE)
    return Sifted(pl.concat([piece.rows for piece in pieces]), refused)


def _ahead(
    parse: Callable[[_Block], Sifted | None], blocks: Iterator[_Block]
) -> Iterator[tuple[_Block, Sifted | None]]:
    """Parse blocks in threads, a few ahead of what is asked for, and yield them in order."""
    with ThreadPoolExecutor(_THREADS) as threads:
        ahead: deque[tuple[_Block, Future[Sifted | None]]] = deque()
        for block in blocks:
            ahead.append((block, threads.submit(parse, block)))
            if len(ahead) > _THREADS:
                first, parsed = ahead.popleft()
                yield first, parsed.result()
        for first, parsed in ahead:
            yield first, parsed.result()


def _pieces(path: Path, reading: Reading) -> Iterator[Sifted]:
    contents = _contents(path)
    layout = _layout(next(contents, b""), reading)
    for block, sound in _ahead(partial(_sound, layout=layout, reading=reading), _numbered(contents)):
        yield sound or _careful(block, layout, reading)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls from delimited text with a header line; other columns than ours are left alone."""
    return polls.completed(partial(_pieces, path, reading))


SOURCE = Source(
    name="polls-csv",
    doc="Controller polls as delimited text with a header: polled_at, controller, read and write bytes per second.",
    kind="polls",
    sniff=sniff,
    read=read,
)
