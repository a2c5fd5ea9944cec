"""Lines of a text log in blocks of bounded size, each line with the header that holds for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from warehouse.sources.files.opening import text_lines
from warehouse.sources.rows.rejects import SCHEMA as REJECT_SCHEMA

BLOCK_LINES = 50_000
_SCHEMA = pl.Schema({"line": pl.Int64, "header": pl.Int64, "raw": pl.String})


@dataclass(frozen=True, slots=True)
class Block:
    """Lines (`line`, `header`, `raw`), and the ones that are no text.

    `header` numbers the file's different header lines from 0; NULL stands for none so far.
    """

    lines: pl.DataFrame
    refused: pl.DataFrame


def blocks(path: Path, header_number: Callable[[str], int | None] | None = None) -> Iterator[Block]:
    """Yield the lines of a text file in blocks; empty lines and header lines are left out.

    `header_number` gives the number of a header line, and None for other lines. Raises InputRefused after the
    lines before the damage if a compressed file is damaged.
    """
    header: int | None = None
    lines: list[tuple[int, int | None, str]] = []
    refused: list[tuple[int, str, str, str]] = []
    for number, text, raw in text_lines(path):
        if text is None:
            refused.append((number, "The line is not UTF-8 text.", "Export the log as UTF-8.", raw))
        elif header_number is not None and (found := header_number(text)) is not None:
            header = found
        elif text and not text.isspace():
            lines.append((number, header, text))
        if len(lines) + len(refused) >= BLOCK_LINES:
            yield _block(lines, refused)
            lines, refused = [], []
    if lines or refused:
        yield _block(lines, refused)


def _block(lines: list[tuple[int, int | None, str]], refused: list[tuple[int, str, str, str]]) -> Block:
    return Block(
        pl.DataFrame(lines, schema=_SCHEMA, orient="row"),
        pl.DataFrame(refused, schema=REJECT_SCHEMA, orient="row"),
    )
