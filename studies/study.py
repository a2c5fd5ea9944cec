"""What a study is: a record in the front of its folder, and modules of fixed names that do the work.

A folder `studies/<name>/` with `STUDY = Study(...)` in its `__init__` is a study: it is found, and `iosig study <name>`
runs it. The record says what `--help` shows, and imports nothing that takes long. The work is in two modules beside it:

- `running`: `StudyParams`, a dataclass with a field for each option, and `study(params, told=...)`, which returns the
  results and tells of its progress.
- `page`: of these results, `document` for JSON, the `values` of the page's template `page.md` (see `pages`), and what
  draws its `figures`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

import iosig.studies
from iosig.reports.style import LIGHT, Style

if TYPE_CHECKING:
    from iosig.studies.pages import Table

WORKERS = click.Option(
    ["--workers", "worker_count"],
    type=click.IntRange(min=1),
    help="Processes that work on it; as many as there are cores if not given.",
)
SEED = click.Option(
    ["--seed"], default=0, show_default=True, type=click.IntRange(min=0), help="What all is drawn from."
)


def file(flag: str, field: str, text: str) -> click.Option:
    """Return the option that names an existing file."""
    return click.Option([flag, field], type=click.Path(path_type=Path, exists=True, dir_okay=False), help=text)


#: the options of a real day, which are fields of `DayParams`
DAY_FILES = (
    file("--edison", "polls", "Polls of a real file system of a day."),
    file("--jobs", "log", "The job log of that day, whose comments name the file systems."),
)


def count(flag: str, field: str, default: int, text: str) -> click.Option:
    """Return the option that says how much is drawn."""
    return click.Option([flag, field], default=default, show_default=True, type=click.IntRange(min=1), help=text)


def parts(known: Sequence[str]) -> click.Option:
    """Return the option that chooses among the results of a study; its field is `Study.part`."""
    text = "Only this result; can be given several times. All of them if not given."
    return click.Option(["--part", "parts"], multiple=True, type=click.Choice(known), help=text)


def seeds(default: int, text: str) -> click.Option:
    """Return the option that says how many seeds are drawn."""
    return count("--seeds", "seed_count", default, text)


@dataclass(frozen=True, slots=True)
class SeedParams:
    """How much is drawn: seed_count of each setting; worker_count: processes, as many as there are cores if None."""

    seed_count: int
    seed: int = 0
    worker_count: int | None = None

    @property
    def seeds(self) -> range:
        """The seeds that are drawn."""
        return range(self.seed, self.seed + self.seed_count)


@dataclass(frozen=True, slots=True)
class DayParams(SeedParams):
    """Draws of simulated sites. polls, log: those of a real day, where there is one (`DAY_FILES`)."""

    polls: Path | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """One study.

    name: that of its folder and of its subcommand. summary: a line in the list of studies. doc: what its help says.
    options: its own, each a field of its `StudyParams`. drawn: what is beside its page, in a word. part: the option
    with which not all of the page is there, so that none is written.
    """

    name: str
    summary: str
    doc: str
    options: tuple[click.Option, ...]
    drawn: str = "figures"
    part: str = ""

    @property
    def page_name(self) -> str:
        """The name of its page."""
        return f"{self.name}-study.md"

    @property
    def running(self) -> ModuleType:
        """What runs it."""
        return importlib.import_module(f"iosig.studies.{self.name}.running")

    @property
    def page(self) -> ModuleType:
        """What shows its results."""
        return importlib.import_module(f"iosig.studies.{self.name}.page")

    def params(self, arguments: Mapping[str, Any]) -> Any:
        """Return the parameters of a run."""
        return self.running.StudyParams(**arguments)

    def write(self, params: Any, results: Any, folder: Path, style: Style = LIGHT) -> Path:
        """Write the page and its figures, on the ground of a style, into a folder; return the page."""
        from iosig.studies.pages import Template, write

        mark = (
            f"<!-- Made by `iosig study {self.name} {self._told(params)} --output DIR`: run it again instead of "
            "editing "
            "this page. -->"
        )
        template = Template(self.template, self.page.figures(results))
        return write(folder / self.page_name, template, self.page.values(results), mark, style)

    def document(self, results: Any) -> object:
        """Return results as plain values: what `document` of the page returns, all tables, or the only one."""
        import polars as pl

        named = getattr(self.page, "document", None)
        if named is not None:
            tables = named(results)
        else:
            values = {field.name: getattr(results, field.name) for field in fields(results)}
            tables = {name: value for name, value in values.items() if isinstance(value, pl.DataFrame)}
        plain = {name: value.to_dicts() if isinstance(value, pl.DataFrame) else value for name, value in tables.items()}
        return next(iter(plain.values())) if len(plain) == 1 and named is None else plain

    @property
    def template(self) -> Path:
        """The template of its page."""
        return Path(__file__).parent / self.name / "page.md"

    def tables(self, results: Any) -> list[tuple[str, Table]]:
        """Return titles and tables for a terminal."""
        from iosig.studies.pages import Template

        template = Template(self.template, {})
        template.render(self.page.values(results))
        return template.tables

    def _told(self, params: Any) -> str:
        """Return the options with which the page is made again; of files that only some have, what they are."""
        values = {option: getattr(params, str(option.name)) for option in self.options if option is not WORKERS}
        return " ".join(
            f"{option.opts[0]} {str(option.name).upper() if isinstance(value, Path) else value}"
            for option, value in values.items()
            if value is not None and option.name != self.part
        )


def found() -> Iterator[Study]:
    """Yield all studies, by name."""
    for module in pkgutil.iter_modules(iosig.studies.__path__):
        if module.ispkg:
            yield importlib.import_module(f"iosig.studies.{module.name}").STUDY
