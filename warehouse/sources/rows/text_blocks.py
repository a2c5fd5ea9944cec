"""Read text in blocks of whole lines, and split delimited text into cells, block by block."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import open_decompressed, read_lines, refusing_damage_after
from iosig.warehouse.sources.rows.delimited import LINE, MAX_HEADER_LINES, RAW, Header, find_header, split_lines
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_reject_frame, refuse_non_text

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
#: size of the first block [B], from which the line length is estimated; maximum number of lines in later blocks
_FIRST_BYTES, _MAX_LINES = 1 << 20, 125_000
#: ASCII white space without line ends
_WHITE_SPACE = (b" ", b"\t", b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole lines of text."""

    first_line: int
    line_count: int
    content: bytes


def read_header(path: Path, is_header: Callable[[Header], bool]) -> tuple[int, Header]:
    """Read the header of a plain or compressed file, and the number of its line; see `delimited.find_header`."""
    starts: list[str] = []
    with refusing_damage_after(lambda: len(starts)), open_decompressed(path) as file:
        while len(starts) < MAX_HEADER_LINES and (line := file.readline(current_limits().max_line_bytes)):
            starts.append(line.decode("utf-8", "replace"))
    return find_header(starts, is_header)


def blocks(path: Path, block_bytes: int = BLOCK_BYTES, *, skipped_line_count: int = 0) -> Iterator[Block]:
    """Yield the lines after the skipped ones in blocks.

    Memory grows with the number of lines more than with their length, so blocks of short lines have fewer bytes.
    """
    first, size = 1 + skipped_line_count, min(block_bytes, _FIRST_BYTES)
    with (
        refusing_damage_after(lambda: first - 1),
        open_decompressed(path) as raw,
        io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20) as buffered,
    ):
        file = cast(IO[bytes], buffered)
        for _ in range(skipped_line_count):
            _read_rest(file)
        while content := _whole_lines(file, size):
            count = content.count(b"\n") + (not content.endswith(b"\n"))
            yield Block(first, count, content)
            size = max(1, min(block_bytes, _MAX_LINES * len(content) // count))
            first += count


def _whole_lines(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes and the rest of their last line."""
    content = file.read(size)
    return content if not content or content.endswith(b"\n") else content + _read_rest(file)


def split_at(
    block: Block, names: Sequence[bytes], is_header: Callable[[str], bool]
) -> Iterator[tuple[Block, str | None]]:
    """Yield the lines of a block between headers, each with None, and each header as its text with an empty block.

    Only lines that contain all `names` are tested.
    """
    content, line, start = block.content, block.first_line, 0
    # a name that no row contains is found fastest
    name = next((name for name in names if name not in content), names[0])
    place = content.find(name)
    while place >= 0:
        begin, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place) + 1 or len(content)
        text = content[begin:end].decode("utf-8", "replace")
        if all(other in content[begin:end] for other in names) and is_header(text):
            count = content.count(b"\n", start, begin)
            yield Block(line, count, content[start:begin]), None
            yield Block(line + count, 0, b""), text
            line, start = line + count + 1, end
        place = content.find(name, end)
    yield Block(line, block.line_count - (line - block.first_line), content[start:]), None


def lines(block: Block) -> pl.DataFrame:
    """Split a block into lines (`line` and `text`), without their ends."""
    content, frame = block.content, None
    with suppress(pl.exceptions.PolarsError):
        # use a delimiter that no line contains; the reader skips empty lines in a one-column table
        frame = pl.read_csv(content, has_header=False, separator="\x01", quote_char=None, schema={"text": pl.String})
        # one chunk: `pl.format` of Polars 2.1 panics on strings if a filter emptied the first of several chunks
        frame = frame.rechunk()
    if frame is None or frame.height != block.line_count or b"\r" in content or frame["text"].has_nulls():
        text = content.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")
        frame = pl.Series("text", [text]).str.split("\n").explode().to_frame()
    last = block.first_line + frame.height
    return frame.select(pl.int_range(block.first_line, last, dtype=pl.Int64).alias(LINE), "text")


def _read_rest(file: IO[bytes]) -> bytes:
    max_bytes = current_limits().max_line_bytes
    remainder = file.readline(max_bytes)
    if len(remainder) == max_bytes and not remainder.endswith(b"\n"):
        raise InputRefused(
            f"A line is longer than {max_bytes:,} bytes (limits.max_line_bytes).",
            "Check that the file is a table of rows.",
        )
    return remainder


def cells(block: Block, header: Header, columns: Mapping[str, str]) -> ParsedRows:
    """Split a block into cells as `delimited.split_lines` does; refuse non-text lines individually."""
    checked = check_lines(block)
    has_white_space = not block.content.isascii() or any(mark in block.content for mark in _WHITE_SPACE)
    split = split_lines(checked.rows, header, columns, has_white_space=has_white_space)
    return ParsedRows(split.rows, pl.concat([split.refused, checked.refused]).sort(LINE))


def check_lines(block: Block) -> ParsedRows:
    """Return the non-empty lines of a block (`line`, `raw`); refuse those that are not text or exceed the limit."""
    content, limits = block.content, current_limits()
    if b"\x00" not in content and (content.isascii() or _is_utf8(content)):
        all_lines = lines(block).rename({"text": RAW})
        full = all_lines.filter(pl.col(RAW).str.contains(r"\S"))
        is_short = int(all_lines[RAW].str.len_bytes().max() or 0) <= limits.max_line_bytes  # type: ignore[arg-type]
        if is_short and all_lines.height - full.height <= limits.max_refused_count:
            return ParsedRows(full, build_reject_frame([]))
    rows: list[tuple[int, str]] = []
    refused: list[RefusedRow] = []
    for number, text, raw in read_lines(io.BytesIO(content), block.first_line):
        if text is None:
            refused.append(refuse_non_text(number, raw))
        elif text and not text.isspace():
            rows.append((number, text))
    return ParsedRows(
        pl.DataFrame(rows, schema={LINE: pl.Int64, RAW: pl.String}, orient="row"), build_reject_frame(refused)
    )


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
