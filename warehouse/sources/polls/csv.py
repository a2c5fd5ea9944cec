"""Polls as delimited text with a header: fast where the text is sound, line by line where it is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from warehouse.sources.polls import polls
from warehouse.sources.protocol import Batch, Head, Reading, Source
from warehouse.sources.rows import text_blocks
from warehouse.sources.rows.delimited import LINE
from warehouse.sources.rows.faults import Sifted
from warehouse.sources.rows.text_blocks import Block, Header

#: text that is read at once: larger blocks are no faster, smaller ones make more files
BLOCK_BYTES = 64 << 20
_THREADS = 2


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the text is laid out: its header, and which of its columns holds which of ours."""

    header: Header
    columns: dict[str, str]


def sniff(head: Head) -> bool:
    """Return whether the first line names the columns that polls must have."""
    line = head.lines[0] if head.lines else ""
    required = {head.columns.get(name, name) for name in polls.REQUIRED}
    return required <= set(text_blocks.header_of(line).names)


def _layout(path: Path, reading: Reading) -> _Layout:
    header = text_blocks.read_header(path)
    columns = polls.locate(header.names, reading)
    text_blocks.require_single(header, list(columns.values()))
    return _Layout(header, columns)


def _sound(block: Block, layout: _Layout, reading: Reading) -> Sifted | None:
    """Read a block all at once; None if anything in it needs a closer look."""
    cells = text_blocks.quick_cells(block, layout.header, layout.columns, polls.NUMBERS)
    return None if cells is None else polls.all_good(*polls.typed(cells, reading))


def _careful(block: Block, layout: _Layout, reading: Reading) -> Sifted:
    """Read a block line by line, so that each line that is wrong is refused by itself."""
    pieces: list[Sifted] = []
    for cells in text_blocks.careful_cells(block, layout.header, layout.columns):
        found = polls.sifted(*polls.typed(cells.rows, reading))
        pieces.append(Sifted(found.rows, pl.concat([found.refused, cells.refused])))
    refused = pl.concat([piece.refused for piece in pieces]).sort(LINE)
    return Sifted(pl.concat([piece.rows for piece in pieces]), refused)


def _ahead(parse: Callable[[Block], Sifted | None], blocks: Iterator[Block]) -> Iterator[tuple[Block, Sifted | None]]:
    """Parse blocks in threads, a few ahead of what is asked for, and yield them in order."""
    with ThreadPoolExecutor(_THREADS) as threads:
        ahead: deque[tuple[Block, Future[Sifted | None]]] = deque()
        for block in blocks:
            ahead.append((block, threads.submit(parse, block)))
            if len(ahead) > _THREADS:
                first, parsed = ahead.popleft()
                yield first, parsed.result()
        for first, parsed in ahead:
            yield first, parsed.result()


def _pieces(path: Path, reading: Reading) -> Iterator[Sifted]:
    layout = _layout(path, reading)
    blocks = text_blocks.blocks(path, BLOCK_BYTES)
    for block, sound in _ahead(partial(_sound, layout=layout, reading=reading), blocks):
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
