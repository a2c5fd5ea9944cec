"""What the page of a study is made of: paragraphs, tables, and figures beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from string import Formatter
from typing import Any, ParamSpec

import polars as pl

from iosig.reports.style import LIGHT, Style, drawn_in
from iosig.warehouse.placing import moved_into_place

Asked = ParamSpec("Asked")

_FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, frame: pl.DataFrame, *columns: tuple[str, str]) -> Table:
        """Return a frame's rows: of each column what it is called, and its cells as a format of the row's values.

        `{name:.2f}` is as ever, and a dash where there is no value; `{name:%1}` a ratio in percent, with so many
        digits behind the point; `{name:%}` the same with two digits in all.
        """
        form = _Cells()
        rows = [tuple(form.format(cell, **row) for _, cell in columns) for row in frame.iter_rows(named=True)]
        return cls([name for name, _ in columns], rows)

    @property
    def markdown(self) -> str:
        """The table as pages have it."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def tabled(*columns: str) -> Callable[[Callable[Asked, Iterable[Sequence[str]]]], Callable[Asked, Table]]:
    """Have a function that yields rows return a table of these columns."""

    def decorated(rows: Callable[Asked, Iterable[Sequence[str]]]) -> Callable[Asked, Table]:
        @wraps(rows)
        def made(*args: Asked.args, **kwargs: Asked.kwargs) -> Table:
            return Table(columns, list(rows(*args, **kwargs)))

        return made

    return decorated


class _Cells(Formatter):
    """Formats the cells of a table."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one value."""
        if value is None:
            return "-"
        if format_spec.startswith("%"):
            return percent(value, int(format_spec[1:])) if format_spec[1:] else percent(value)
        return format(value, format_spec)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: what it shows in words, the file's name without its ending, and what draws it into a file."""

    words: str
    name: str
    draw: Callable[[Path], None]


Block = str | Table | Figure


def written(page: Path, blocks: Iterable[Block], style: Style = LIGHT) -> Path:
    """Draw a page's figures beside it, and then write it in one step; return the page."""
    (page.parent / _FIGURES).mkdir(parents=True, exist_ok=True)
    with drawn_in(style):
        text = "\n\n".join(_text(block, page) for block in blocks) + "\n"
    with moved_into_place(page.absolute()) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return page


def _text(block: Block, page: Path) -> str:
    if isinstance(block, Table):
        return block.markdown
    if isinstance(block, Figure):
        return f"![{block.words}]({_drawn(block, page).relative_to(page.parent).as_posix()})"
    return block


def _drawn(figure: Figure, page: Path) -> Path:
    """Draw a figure beside its page; return the file."""
    path = page.parent / _FIGURES / f"{page.stem}-{figure.name}.png"
    figure.draw(path)
    return path


def percent(ratio: float | None, decimals: int | None = None) -> str:
    """Return a ratio in percent, to two digits, or with so many behind the point; a dash where there is none."""
    if ratio is None:
        return "-"
    return f"{digits(ratio) if decimals is None else f'{100 * ratio:.{decimals}f}'} %"


def digits(ratio: float | None) -> str:
    """Return a ratio's percents, to two digits, without the sign; a dash where there is none."""
    if ratio is None:
        return "-"
    value = 100 * ratio
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
