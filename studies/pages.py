"""Render the pages of studies from Jinja templates in Markdown, with a study's values, tables and figures.

A template `studies/<name>/page.md` has the variables of the study's `page.values`, and these functions and filters:

- `{% call table(frame, "Title") %}`, with a header line and a line of formats (`| {level} | {share:%} |`): a table with
  one row per row of the frame. A titled table is also shown in the terminal; with `in_page=false`, only there.
- `show(table, "Title")`: a `Table` with columns that depend on the results, such as
  `pivot(frame, {"header": "key"}, "column", "{share:%}")` (see `Table.pivot`).
- `figure("name", "caption")`: a figure of the study's `page.figures`, drawn into the page's `figures` folder.
- `described("way", "what it does", WAYS)`: a table of names with their descriptions.
- `percent` (two digits, or `percent(1)` with one decimal) and `form(".2f")`: numbers as text, a dash for None.
- `percents("share")`: the ratio of each row of a frame in percent, with its level.
- `counted("site")`: a number with the noun in singular or plural; `listed("g")`: names, each with its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Any

import polars as pl

from iosig.reports.style import LIGHT, Style, drawn_in
from iosig.warehouse.placing import atomic_write

_FIGURES = "figures"
#: draws a figure and writes it to the path
Draw = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of formatted text cells, for Markdown and the terminal."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def from_pattern(cls, pattern: str, rows: pl.DataFrame | Iterable[Mapping[str, Any]]) -> Table:
        """Build a table from two lines of Markdown: the header, and the format of each cell.

        Formats are Python's, with a dash for None. Additional ones: `{name:%1}` is a ratio in percent with one decimal,
        `{name:%}` in percent with two significant digits, `{name:.}` a number as .97.
        """
        header, cells = (
            [cell.strip() for cell in line.strip("| ").split("|")] for line in pattern.strip().splitlines()
        )
        records = rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows
        form = _Cells()
        return cls(header, [tuple(form.format(cell, **row) for cell in cells) for row in records])

    @classmethod
    def pivot(
        cls,
        frame: pl.DataFrame,
        keys: Mapping[str, str],
        column: str,
        cell: str | Callable[[dict[str, Any]], str],
        columns: Sequence[str] = (),
    ) -> Table:
        """Pivot a frame to one row per combination of keys and one column per value of a column.

        Rows and columns are in order of appearance. keys: the header of each key, and its frame column or a format.
        cell: a format (see `from_pattern`) or a function of a row; cells without a row show a dash. columns: the values
        to show, all by default.
        """
        column_values = [*columns] or frame[column].unique(maintain_order=True).to_list()
        form = _Cells()
        cells: dict[tuple[str, ...], dict[object, str]] = {}
        for row in frame.iter_rows(named=True):
            key = tuple(form.format(name, **row) if "{" in name else _key(row[name]) for name in keys.values())
            text = form.format(cell, **row) if isinstance(cell, str) else cell(row)
            cells.setdefault(key, {})[row[column]] = text
        rows = [(*key, *(row_texts.get(name, "-") for name in column_values)) for key, row_texts in cells.items()]
        return cls((*keys, *map(str, column_values)), rows)

    @property
    def markdown(self) -> str:
        """The table in GitHub-flavoured Markdown; pipes in cells are escaped."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _key(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class _Cells(Formatter):
    """String formatter with the additional formats of `Table.from_pattern`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format a cell value; None becomes a dash."""
        if value is None:
            return "-"
        if format_spec == ".":
            return format_short(value)
        if format_spec.startswith("%"):
            return format_percent(value, int(format_spec[1:])) if format_spec[1:] else format_percent(value)
        return format(value, format_spec)


def format_cell(pattern: str, values: Mapping[str, Any]) -> str:
    """Format named values with a pattern as in `Table.from_pattern`."""
    return _Cells().vformat(pattern, (), values)


# ---- templates


def format_descriptions(name: str, words: str, records: Mapping[str, Any]) -> str:
    """Render a Markdown table of names and descriptions.

    The description is the value itself, the first item of a tuple, or the `doc` attribute of a record.
    """
    texts = {
        key: value[0] if isinstance(value, tuple) else getattr(value, "doc", value) for key, value in records.items()
    }
    return Table((name, words), list(texts.items())).markdown


def index_rows(frame: pl.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """Index a frame's rows by the values of a column, which must be unique."""
    return {row[column]: row for row in frame.iter_rows(named=True)}


def pluralize(count: int, word: str) -> str:
    """Format a count with its noun, plural unless the count is one."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def format_by_level(rows: pl.DataFrame, column: str) -> str:
    """Join a ratio of each row as a percentage, with its level: `12 % (calm), 34 % (busy)`."""
    return ", ".join(f"{format_percent(ratio)} ({level})" for ratio, level in rows.select(column, "level").rows())


def format_numbers(numbers: Mapping[str, float], form: str) -> str:
    """Join name-number pairs with commas."""
    return ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())


@dataclass(slots=True)
class Template:
    """A study's page template, and the tables collected while rendering it.

    page: where the page is written; None renders only the tables, without figures. tables: titles and tables for the
    terminal, in page order.
    """

    path: Path
    figures: Mapping[str, Draw]
    page: Path | None = None
    tables: list[tuple[str, Table]] = field(default_factory=list)

    def render(self, values: Mapping[str, object]) -> str:
        """Render the template to Markdown and collect its titled tables."""
        from jinja2 import Environment, StrictUndefined

        environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        environment.filters |= {"percent": format_percent, "form": _Cells().format_field}
        environment.filters |= {"counted": pluralize, "listed": format_numbers, "percents": format_by_level}
        functions = {"table": self._table, "show": self._show, "figure": self._figure, "described": format_descriptions}
        functions |= {"pivot": Table.pivot}
        text = environment.from_string(self.path.read_text(encoding="utf-8")).render(values, **functions)
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"

    def _table(
        self,
        rows: pl.DataFrame | Iterable[Mapping[str, Any]],
        title: str = "",
        *,
        in_page: bool = True,
        caller: Callable[[], str],
    ) -> str:
        return self._show(Table.from_pattern(caller(), rows), title, in_page=in_page) + "\n"

    def _show(self, table: Table, title: str = "", *, in_page: bool = True) -> str:
        if title:
            self.tables.append((title, table))
        return table.markdown if in_page else ""

    def _figure(self, name: str, words: str) -> str:
        if self.page is None:
            return ""
        return f"![{words}]({draw_figure(self.page, name, self.figures[name])})"


def draw_figure(page: Path, name: str, draw: Draw) -> str:
    """Draw a figure into the `figures` folder next to a page and return its path relative to the page."""
    path = page.parent / _FIGURES / f"{page.stem}-{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(path)
    return path.relative_to(page.parent).as_posix()


def write_page(page: Path, template: Template, values: Mapping[str, object], mark: str, style: Style = LIGHT) -> Path:
    """Render a page with its figures and write it atomically, preceded by a comment; return its path."""
    page.parent.mkdir(parents=True, exist_ok=True)
    template.page = page
    with drawn_in(style):
        text = template.render(values)
    with atomic_write(page.absolute()) as temporary:
        temporary.write_text(f"{mark}\n\n{text}", encoding="utf-8")
    return page


def format_percent(ratio: float | None, decimals: int | None = None) -> str:
    """Format a ratio as a percentage with two significant digits, or with `decimals` decimals; None becomes a dash."""
    if ratio is None:
        return "-"
    value = 100 * ratio
    if decimals is None:
        return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.2g} %"
    return f"{value:.{decimals}f} %"


def format_short(value: float) -> str:
    """Format a number with two decimals, without the leading zero: `.97`."""
    # adding 0.0 turns -0.0 into 0.0
    text = f"{round(value, 2) + 0.0:.2f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
