"""Pages of studies: a Jinja template in Markdown, rendered with a study's values, tables and figures.

A template `studies/<name>/page.md` has the values of the study's `page.values`, and these functions and filters:

- `{% call table(frame, "Title") %}`, with a header line and a line of formats (`| {level} | {share:%} |`): a table with
  a row for each of the frame's. With a title, the terminal shows it too; with `in_page=false`, the terminal alone.
- `show(table, "Title")`: a `Table` whose columns depend on the results.
- `figure("name", "words")`: a picture of the study's `page.figures`, drawn beside the page.
- `described("way", "what it does", WAYS)`: a table of names with what they are.
- `percent` (to two digits, or `percent(1)` with one decimal) and `form(".2f")`: numbers as text, a dash for none.
- `counted("site")`: a number with the word in singular or plural; `listed("g")`: names, each with its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from string import Formatter
from typing import Any, ParamSpec

import polars as pl

from iosig.reports.style import LIGHT, Style, drawn_in
from iosig.warehouse.placing import moved_into_place

Asked = ParamSpec("Asked")

_FIGURES = "figures"
#: draws a figure into a file
Draw = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def like(cls, pattern: str, rows: pl.DataFrame | Iterable[Mapping[str, Any]]) -> Table:
        """Return a table from two lines of Markdown: the header, and the formats of a row's cells.

        Formats are those of Python, with a dash where there is no value. Further ones: `{name:%1}` is a ratio in
        percent with one decimal, `{name:%}` with two digits in all, `{name:.}` a number as .97.
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
        """Return a row for each combination of keys and a column for each value of a column, in order of appearance.

        keys: headers, each with the column of the frame. cell: a format of a row's values (see `like`), or a function
        of them; a dash where there is no row. columns: the values that have a column, if not all that there are.
        """
        shown = [*columns] or frame[column].unique(maintain_order=True).to_list()
        form = _Cells()
        cells: dict[tuple[str, ...], dict[object, str]] = {}
        for row in frame.iter_rows(named=True):
            key = tuple(_key(row[name]) for name in keys.values())
            text = form.format(cell, **row) if isinstance(cell, str) else cell(row)
            cells.setdefault(key, {})[row[column]] = text
        rows = [(*key, *(own.get(name, "-") for name in shown)) for key, own in cells.items()]
        return cls((*keys, *map(str, shown)), rows)

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


def _key(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class _Cells(Formatter):
    """Formats the cells of a table."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one value."""
        if value is None:
            return "-"
        if format_spec == ".":
            return short(value)
        if format_spec.startswith("%"):
            return percent(value, int(format_spec[1:])) if format_spec[1:] else percent(value)
        return format(value, format_spec)


# ---- templates


def described(name: str, words: str, known: Mapping[str, Any]) -> str:
    """Return a table of names with what they are: a text, the first of a tuple, or `doc` of a record."""
    texts = {
        key: value[0] if isinstance(value, tuple) else getattr(value, "doc", value) for key, value in known.items()
    }
    return Table((name, words), list(texts.items())).markdown


def by_name(frame: pl.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """Return a frame's rows by the values of a column, each of which stands once."""
    return {row[column]: row for row in frame.iter_rows(named=True)}


def counted(count: int, word: str) -> str:
    """Return a number and a word, in the plural but for one."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def listed(numbers: Mapping[str, float], form: str) -> str:
    """Return names, each with its number."""
    return ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())


@dataclass(slots=True)
class Template:
    """A study's page as it is rendered: with figures drawn into a folder, or without them for the tables alone.

    tables: titles and tables for the terminal, in the order of the page.
    """

    path: Path
    figures: Mapping[str, Draw]
    page: Path | None = None
    tables: list[tuple[str, Table]] = field(default_factory=list)

    def render(self, values: Mapping[str, object]) -> str:
        """Return the page as text."""
        from jinja2 import Environment, StrictUndefined

        environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        environment.filters |= {"percent": percent, "form": _Cells().format_field}
        environment.filters |= {"counted": counted, "listed": listed}
        functions = {"table": self._table, "show": self._show, "figure": self._figure, "described": described}
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
        return self._show(Table.like(caller(), rows), title, in_page=in_page) + "\n"

    def _show(self, table: Table, title: str = "", *, in_page: bool = True) -> str:
        if title:
            self.tables.append((title, table))
        return table.markdown if in_page else ""

    def _figure(self, name: str, words: str) -> str:
        if self.page is None:
            return ""
        return f"![{words}]({draw_beside(self.page, name, self.figures[name])})"


def draw_beside(page: Path, name: str, draw: Draw) -> str:
    """Draw a figure into the folder of a page's figures; return its path from the page."""
    path = page.parent / _FIGURES / f"{page.stem}-{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(path)
    return path.relative_to(page.parent).as_posix()


def write(page: Path, template: Template, values: Mapping[str, object], mark: str, style: Style = LIGHT) -> Path:
    """Render a page with its figures and write it atomically, a comment before it; return the page."""
    page.parent.mkdir(parents=True, exist_ok=True)
    template.page = page
    with drawn_in(style):
        text = template.render(values)
    with moved_into_place(page.absolute()) as temporary:
        temporary.write_text(f"{mark}\n\n{text}", encoding="utf-8")
    return page


def percent(ratio: float | None, decimals: int | None = None) -> str:
    """Return a ratio in percent, to two digits, or with so many behind the point; a dash where there is none."""
    if ratio is None:
        return "-"
    return f"{digits(ratio) if decimals is None else f'{100 * ratio:.{decimals}f}'} %"


def short(value: float) -> str:
    """Return a number as .97."""
    # + 0.0: no minus before a zero
    text = f"{round(value, 2) + 0.0:.2f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def digits(ratio: float | None) -> str:
    """Return a ratio's percents, to two digits, without the sign; a dash where there is none."""
    if ratio is None:
        return "-"
    value = 100 * ratio
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
