"""Read the lines of a text log in blocks of limited size, each line with the header that applies to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.sources.files.opening import OpenLine, text_lines
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_reject_frame, refuse_non_text

#: maximum number of lines per block; maximum number of characters per block
BLOCK_LINES, _BLOCK_CHARS = 50_000, 32 << 20
_CUT = "Check for a truncated file; the complete log ends with a line end."
_SCHEMA = pl.Schema({"line": pl.Int64, "header": pl.Int64, "raw": pl.String})


def blocks(path: Path, header_number: Callable[[str], int | None] | None = None) -> Iterator[ParsedRows]:
    """Yield the lines of a text file in blocks, without empty lines and header lines.

    Rows have the columns `line`, `header` (the number of the last header line above, NULL if there was none) and
    `raw`. `header_number` returns the number of a header line, and None for other lines. A last line without a line end
    is refused, since its last field may be truncated. Raises InputRefused, after
    the lines before the damage, for a damaged compressed file.
    """
    header: int | None = None
    lines: list[tuple[int, int | None, str]] = []
    refused: list[RefusedRow] = []
    size = 0
    for number, text, raw in text_lines(path):
        size += len(raw)
        if text is None:
            refused.append(refuse_non_text(number, raw))
        elif header_number is not None and (new_header := header_number(text)) is not None:
            header = new_header
        elif isinstance(text, OpenLine) and text.strip():
            refused.append((number, "The last line has no end: it may be truncated.", _CUT, text))
        elif text and not text.isspace():
            lines.append((number, header, text))
        if len(lines) + len(refused) >= BLOCK_LINES or size >= _BLOCK_CHARS:
            yield _block(lines, refused)
            lines, refused, size = [], [], 0
    if lines or refused:
        yield _block(lines, refused)


def _block(lines: list[tuple[int, int | None, str]], refused: list[RefusedRow]) -> ParsedRows:
    return ParsedRows(pl.DataFrame(lines, schema=_SCHEMA, orient="row"), build_reject_frame(refused))
