"""Print results as tables that fit the terminal, or as JSON, and progress on stderr."""

from __future__ import annotations

import codecs
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from iosig.cli.hints import runnable
from iosig.cli.options import WIDE
from iosig.cli.table_layout import GAP, Fit, amount_texts, fit_table, measure_width, number_texts, wrap_text
from iosig.warehouse.errors import UsageError
from iosig.warehouse.printable import one_line, printable as printable

if TYPE_CHECKING:
    from iosig.answers.documents import Document

#: maximum number of dropped columns named below a table
_MAX_NAMES = 8
#: a number, with or without a unit or a sign
_AMOUNT = re.compile(r"[-+x]? ?[0-9][0-9.,]*(e[-+]?[0-9]+)? ?(%|[kMGTPE]?(B|op)(/s)?|[µm]?s|min|h|d)?")
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def bytes_text(value: float | None) -> str:
    """Format bytes with a unit, such as 1.5 GB; a dash for a missing value."""
    if value is None:
        return "-"
    step = 0
    while abs(value) >= 999.5 and step < len(_UNITS) - 1:
        value /= 1000
        step += 1
    return f"{value:.0f} {_UNITS[step]}" if step == 0 else f"{value:.3g} {_UNITS[step]}"


def show(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    last: Sequence[str] = (),
    alternatives: str = "--wide, --json",
) -> None:
    """Print a table on stdout, with right-aligned numbers.

    On a terminal, text is wrapped, and columns that do not fit are named below the table, with the options to show
    them. Elsewhere, and with --wide, all columns are printed, one line per row. last: columns to drop first.
    alternatives: the options that show all columns.
    """
    width = None if _is_wide() else terminal_width()
    columns = [printable(name) for name in columns]
    cells, are_numbers = _cells(columns, rows)
    empty = [name for place, name in enumerate(columns) if all(row[place] == "-" for row in cells)]
    fit = fit_table(columns, cells, are_numbers, width, [*empty, *last])
    if title:
        say(title, bold=True)
    _print_row([columns[place] for place in fit.columns], fit, are_numbers, is_bold=True)
    click.echo("─" * (sum(fit.widths) + GAP * (len(fit.widths) - 1)))
    for row in cells:
        _print_row([row[place] for place in fit.columns], fit, are_numbers)
    left_out = [name for place, name in enumerate(columns) if place not in fit.columns]
    if left_out:
        more = f"{len(left_out):,} more {'column' if len(left_out) == 1 else 'columns'}"
        say(f"… {more}: {_few(left_out)} ({alternatives})", dim=True)
    click.echo()


def format_title(title: str, shown_count: int, count: int) -> str:
    """Return a table's title, with the number of shown rows if some are omitted."""
    return title if shown_count >= count else f"{title}, the first {shown_count:,} of {count:,}"


def show_records(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows on stdout, one line per column."""
    columns = [printable(name) for name in columns]
    indent = max(map(len, columns), default=0)
    cells, _ = _cells(columns, rows)
    for number, row in enumerate(cells, start=1):
        click.echo(click.style(f"── {number} ".ljust(indent + 2, "─"), dim=True))
        for name, cell in zip(columns, row, strict=True):
            click.echo(f"{name.ljust(indent)}  {cell}")


def say(text: str, *, err: bool = False, **style: Any) -> None:
    """Print sentences on stdout or stderr, wrapped at words to the width of a terminal.

    Control characters are replaced, so a style is an argument (of `click.style`) and not part of the text. On stderr
    paths are not broken, so that they can be copied.
    """
    text, width = printable(runnable(text)), terminal_width(err=err)
    is_narrow = width is not None and max(map(len, text.split("\n"))) > width
    for line in (
        wrap_text(text, width, keeps_words=err, keeps_commands=True) if width is not None and is_narrow else [text]
    ):
        click.echo(click.style(line, **style) if style else line, err=err)


def terminal_width(*, err: bool = False) -> int | None:
    """Return the output width from COLUMNS, else from the terminal; None for a file or a pipe."""
    columns_text = os.environ.get("COLUMNS", "")
    if columns_text.isdecimal() and int(columns_text) > 0:
        return int(columns_text)
    return shutil.get_terminal_size().columns if (sys.stderr if err else sys.stdout).isatty() else None


def _is_wide() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and WIDE in context.meta


def _cells(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[list[str]], list[bool]]:
    """Return the cells of a table as text, and for each column whether it is numeric (right-aligned)."""
    by_column: list[list[str]] = []
    are_numbers = []
    for place in range(len(columns)):
        values = [row[place] for row in rows]
        is_number = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
        numbers = number_texts([value if is_it else None for value, is_it in zip(values, is_number, strict=True)])
        texts = [number or _cell(value) for number, value in zip(numbers, values, strict=True)]
        is_amount = _are_amounts(texts)
        by_column.append([*amount_texts(texts)] if is_amount else texts)
        are_numbers.append(any(is_number) or is_amount)
    return [list(row) for row in zip(*by_column, strict=True)] if rows else [], are_numbers


def _are_amounts(texts: Sequence[str]) -> bool:
    """Check whether all cells of a column are numbers, most with a unit."""
    filled = [text for text in texts if text != "-"]
    return any(not text.isdecimal() for text in filled) and all(_AMOUNT.fullmatch(text) for text in filled)


def _print_row(cells: Sequence[str], fit: Fit, are_numbers: Sequence[bool], *, is_bold: bool = False) -> None:
    lines = [wrap_text(cell, width) for cell, width in zip(cells, fit.widths, strict=True)]
    for number in range(max(map(len, lines))):
        parts = [cell_lines[number] if number < len(cell_lines) else "" for cell_lines in lines]
        spaces = [" " * (width - measure_width(part)) for part, width in zip(parts, fit.widths, strict=True)]
        line = (" " * GAP).join(
            space + part if are_numbers[place] else part + space
            for part, space, place in zip(parts, spaces, fit.columns, strict=True)
        )
        click.echo(click.style(line.rstrip(), bold=True) if is_bold else line.rstrip())


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value)).replace("\t", " ")


def show_json(document: Document) -> None:
    """Print a document on stdout."""
    click.echo(document.json_text(indent=1))


def binary_stdout(format_name: str) -> BinaryIO:
    """Return stdout for bytes; raise UsageError for Parquet on a terminal.

    On a terminal control characters in text are replaced; files and pipes get the bytes as they are.
    """
    if not sys.stdout.isatty():
        return sys.stdout.buffer
    if format_name == "parquet":
        raise UsageError("Parquet is binary. Redirect it to a file (`> x.parquet`) or a pipe.")
    return cast("BinaryIO", _Terminal(sys.stdout.buffer))


class _Terminal(io.RawIOBase):
    def __init__(self, buffer: BinaryIO) -> None:
        self._buffer, self._decoder = buffer, codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._buffer.write(printable(self._decoder.decode(content)).encode())
        return len(content)

    def flush(self) -> None:
        self._buffer.flush()


def progress(name: str, count: int, seconds: float) -> None:
    """Print a completed step on stderr, with its row count and duration."""
    click.echo(f"{one_line(name):<32}{count:>12,} rows{seconds:>8.1f} s", err=True)


@dataclass(frozen=True, slots=True)
class Steps:
    """Callbacks for progress reports.

    begin: called when a step begins, with an estimate of the remaining time. done: called when it is complete.
    """

    begin: Callable[[str, float | None], None]
    done: Callable[[str, int, float], None]


@contextmanager
def report_steps(*, is_brief: bool = False) -> Iterator[Steps]:
    """Report steps on stderr: on a terminal in one line that is updated, elsewhere in one line per step.

    is_brief: on a terminal, drop the lines of completed steps.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield Steps(lambda name, left_s: click.echo(_beginning(name, left_s), err=True), progress)
        return
    with console.status("") as status:
        on_done = (lambda *_: None) if is_brief else progress
        yield Steps(lambda name, left_s: status.update(Text(_beginning(name, left_s))), on_done)


def _beginning(name: str, left_s: float | None) -> str:
    remaining = "" if left_s is None or left_s < 1.5 else f", about {_about(left_s)} left"
    return f"{one_line(name)} ...{remaining}"


def _about(seconds: float) -> str:
    """Format an approximate duration in s, min or h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr; yields a callback that takes the done and total amounts."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None)
        yield lambda completed_count, count: progress.update(task, completed=completed_count, total=count)
