"""Declare studies, and discover them.

A folder `studies/<name>/` with `STUDY = Study(...)` in its `__init__` is a study; `iosig study <name>` runs it. The
record contains the text of `--help`, and imports nothing slow. Two modules in the folder do the work:

- `running`: `StudyParams`, a dataclass with a field for each option, and `study(params, report_progress=...)`, which
  returns the results.
- `page`: `document` (the results as JSON), `values` (the variables of the template `page.md`, see `pages`), `figures`
  (the functions that draw them), and optionally `measures` (the numbers to compare with a paper, see `papers`).
"""

from __future__ import annotations

import importlib
import json
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
    help="Number of worker processes. Default: one per core.",
)
#: folder of the measures, next to the pages
MEASURES_FOLDER = "measures"
SEED = click.Option(["--seed"], default=0, show_default=True, type=click.IntRange(min=0), help="Random seed.")


def file_option(flag: str, field: str, text: str) -> click.Option:
    """Build an option for the path of an existing file."""
    return click.Option([flag, field], type=click.Path(path_type=Path, exists=True, dir_okay=False), help=text)


#: the options of a real day, which are fields of `DayParams`
DAY_FILES = (
    file_option("--edison", "polls", "Measured polls of a file system, one day."),
    file_option("--jobs", "log", "The job log of that day; its comments name the file systems."),
)


def count_option(flag: str, field: str, default: int, text: str) -> click.Option:
    """Build an option for a positive sample size."""
    return click.Option([flag, field], default=default, show_default=True, type=click.IntRange(min=1), help=text)


def part_option(names: Sequence[str]) -> click.Option:
    """Build the repeatable option that selects results of a study; its field is `Study.part`."""
    text = "Compute only this result; repeatable. Default: all results."
    return click.Option(["--part", "parts"], multiple=True, type=click.Choice(names), help=text)


def seed_count_option(default: int, text: str) -> click.Option:
    """Build the `--seeds` option: the number of random draws."""
    return count_option("--seeds", "seed_count", default, text)


@dataclass(frozen=True, slots=True)
class SeedParams:
    """Number of random draws of each setting, the first seed, and worker processes (one per core if None)."""

    seed_count: int
    seed: int = 0
    worker_count: int | None = None

    @property
    def seeds(self) -> range:
        """Consecutive seeds, one per draw."""
        return range(self.seed, self.seed + self.seed_count)


@dataclass(frozen=True, slots=True)
class DayParams(SeedParams):
    """Sizes of a study on simulated sites, and optionally the polls and job log of a measured day (`DAY_FILES`)."""

    polls: Path | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """Declaration of a study, discovered in `studies/<name>/__init__.py`.

    name: name of the folder and the subcommand. summary: line in the list of studies. doc: help text. options: options
    of the study, each a field of `StudyParams`. drawn: kind of files written next to the page ("figures"). part: the
    option that restricts the results; if it is given, only the measures are written.
    """

    name: str
    summary: str
    doc: str
    options: tuple[click.Option, ...]
    drawn: str = "figures"
    part: str = ""

    @property
    def page_name(self) -> str:
        """File name of the page in the docs folder."""
        return f"{self.name}-study.md"

    @property
    def running(self) -> ModuleType:
        """The module that computes the results, imported on first use."""
        return importlib.import_module(f"iosig.studies.{self.name}.running")

    @property
    def page(self) -> ModuleType:
        """The module that renders the results, imported on first use."""
        return importlib.import_module(f"iosig.studies.{self.name}.page")

    def params(self, arguments: Mapping[str, Any]) -> Any:
        """Build the study's parameters from command-line values."""
        return self.running.StudyParams(**arguments)

    def write(self, params: Any, results: Any, folder: Path, style: Style = LIGHT) -> Path:
        """Write the page, its figures and the measures into a folder and return the path of the page."""
        from iosig.studies.pages import Template, write_page

        mark = f"<!-- Made by `{self._format_command(params)}`: run it again instead of editing this page. -->"
        template = Template(self.template, self.page.figures(results))
        if self.has_measures:
            self.write_measures(params, results, folder)
        return write_page(folder / self.page_name, template, self.page.values(results), mark, style)

    @property
    def has_measures(self) -> bool:
        """Whether the study measures what a paper measured."""
        return hasattr(self.page, "measures")

    def write_measures(self, params: Any, results: Any, folder: Path) -> Path:
        """Write the measures as JSON, with the command that computed them, and return the path of the file."""
        from iosig.warehouse.placing import atomic_write

        content = {"command": self._format_command(params), "measures": self.page.measures(results)}
        path = folder / MEASURES_FOLDER / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path.absolute()) as temporary:
            temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return path

    def document(self, results: Any) -> object:
        """Return the results as plain values for JSON.

        Uses `page.document` if the study defines it, else all tables of the results; a single table is returned bare.
        """
        import polars as pl

        build_document = getattr(self.page, "document", None)
        if build_document is not None:
            tables = build_document(results)
        else:
            values = {field.name: getattr(results, field.name) for field in fields(results)}
            tables = {name: value for name, value in values.items() if isinstance(value, pl.DataFrame)}
        plain = {name: value.to_dicts() if isinstance(value, pl.DataFrame) else value for name, value in tables.items()}
        return next(iter(plain.values())) if len(plain) == 1 and build_document is None else plain

    @property
    def template(self) -> Path:
        """Path of the Jinja template of the page."""
        return Path(__file__).parent / self.name / "page.md"

    def tables(self, results: Any) -> list[tuple[str, Table]]:
        """Return titles and tables for a terminal."""
        from iosig.studies.pages import Template

        template = Template(self.template, {})
        template.render(self.page.values(results))
        return template.tables

    def _format_command(self, params: Any) -> str:
        """Format the command that reproduces the files; paths appear as their option's name in capitals."""
        values = {option: getattr(params, str(option.name)) for option in self.options if option is not WORKERS}
        options = [
            f"{option.opts[0]} {str(option.name).upper() if isinstance(item, Path) else item}"
            for option, value in values.items()
            for item in (value if isinstance(value, tuple) else (value,))
            if item is not None
        ]
        return " ".join(["iosig study", self.name, *options, "--output DIR"])


def find_studies() -> Iterator[Study]:
    """Import and yield every sub-package's `STUDY`, sorted by name."""
    for module in pkgutil.iter_modules(iosig.studies.__path__):
        if module.ispkg:
            yield importlib.import_module(f"iosig.studies.{module.name}").STUDY
