"""How results look: a table that fits the terminal, or JSON; progress goes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from warehouse.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

#: where output goes to a file or a pipe
_FILE_WIDTH = 160
_GAP = 3
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def bytes_text(value: float | None) -> str:
    """Return bytes as people write them: 1.5 GB; a dash for no answer."""
    if value is None:
        return "-"
    step = 0
    while abs(value) >= 999.5 and step < len(_UNITS) - 1:
        value /= 1000
        step += 1
    return f"{value:.0f} {_UNITS[step]}" if step == 0 else f"{value:.3g} {_UNITS[step]}"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stdout, numbers to the right; one that is too wide is printed a row at a time."""
    console = _console()
    title = printable(title)
    cells = [["-" if cell is None else _cell(cell) for cell in row] for row in rows]
    numeric = [any(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))]
    widths = [max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    if sum(widths) + _GAP * len(widths) > console.width and cells:
        _show_records(console, title, columns, cells)
    else:
        _show_table(console, title, columns, cells, numeric)


def _console() -> Console:
    from rich.console import Console

    class Stdout(Console):
        """Prints on stdout; whoever reads it no longer is nothing to complain about, and left to the command."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Stdout(file=sys.stdout, width=None if sys.stdout.isatty() else _FILE_WIDTH, highlight=False)


def _show_table(
    console: Console, title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Names come from the input, in titles too: markup in them is text.
    heading = Text(title, style="bold") if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, is_numeric in zip(columns, numeric, strict=True):
        table.add_column(Text(name), justify="right" if is_numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _show_records(console: Console, title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.text import Text

    if title:
        console.print(Text(title, style="bold"))
    indent = max(map(len, columns))
    for number, row in enumerate(cells, start=1):
        console.print(Text(f"── {number} ".ljust(indent + 2, "─"), style="dim"))
        for name, cell in zip(columns, row, strict=True):
            console.print(Text(f"{name.ljust(indent)}  {cell}"), soft_wrap=True)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def printable(text: str) -> str:
    """Return a text from the input without anything that would steer a terminal: it is replaced by a mark."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _UNPRINTABLE for letter in text)


def show_json(document: Any) -> None:
    """Print a document as JSON on stdout."""
    click.echo(json.dumps(document, indent=1, default=str))


def binary_stdout(format_name: str) -> BinaryIO:
    """Return stdout for bytes; raise UsageError where a terminal would get some that are no text."""
    if format_name == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is no text: send it to a file or a pipe, with `> x.parquet` at the end.")
    return sys.stdout.buffer


def progress(name: str, count: int, seconds: float) -> None:
    """Tell on stderr what was done, how many rows came of it and how long it took."""
    click.echo(f"{name:<32}{count:>12,} rows{seconds:>8.1f} s", err=True)


@contextmanager
def one_line(lines: Callable[[str, int, float], None]) -> Iterator[Callable[[str, int, float], None]]:
    """Show on stderr, on one line of a terminal, what was done last; where there is none, it is told line by line."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines
        return
    with console.status("") as status:
        yield lambda name, count, _: status.update(Text(f"{name}: {count:,} rows"))


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how much of the work is done; what is yielded takes how much is, and how much there is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, count: progress.update(task, completed=done, total=count)
