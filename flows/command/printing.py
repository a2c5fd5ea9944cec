"""How results look: a table that fits the terminal, or JSON; progress goes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

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
    """Print a table on stdout; numbers stand right, no cell is cut where the output is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        numeric = any(isinstance(row[place], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Names come from the input: markup in them is text.
        table.add_row(*(Text("-" if cell is None else _cell(cell)) for cell in row))
    console.print(table)


def _cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def show_json(document: Any) -> None:
    """Print a document as JSON on stdout."""
    click.echo(json.dumps(document, indent=1, default=str))


def progress(name: str, count: int, seconds: float) -> None:
    """Tell on stderr what was done, how many rows came of it and how long it took."""
    click.echo(f"{name:<32}{count:>12,} rows{seconds:>8.1f} s", err=True)
