"""Views that `iosig sql` adds to the tables of a release, and an example query for each table: files of `sql/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from iosig.warehouse.contracts.columns import SOURCE
from iosig.warehouse.contracts.types import Column
from iosig.warehouse.store.models import SQL_ROOT


@dataclass(frozen=True, slots=True)
class View:
    """A view of a release: a SELECT over `tables` in `sql/views`, which may also name other views.

    added_columns: columns of the view that none of its tables has.
    """

    name: str
    tables: tuple[str, ...]
    added_columns: tuple[Column, ...] = ()

    @property
    def doc(self) -> str:
        """What a row of the view is."""
        return _read("views", self.name)[0]

    @property
    def select(self) -> str:
        """The SELECT of the view."""
        return _read("views", self.name)[1]


#: views in the order in which they are created
VIEWS = (
    View("default_signatures", ("signatures",)),
    View("default_signature_points", ("signature_points", "signatures")),
    View("default_signature_bursts", ("signature_bursts", "signatures")),
    View("default_periods", ("periods",)),
    View("job_classes", ("classes", "jobs")),
    View("run_samples", ("exact_samples", "samples", "trace_samples"), (SOURCE,)),
)


def list_views(query: str | None) -> Iterator[View]:
    """Yield the views that a query may name, in the order of `VIEWS`; all of them without a query."""
    text = None if query is None else query.lower()
    for view in VIEWS:
        # views build on the default signatures
        is_base = view.name == "default_signatures" and text is not None and "default_signature" in text
        if text is None or is_base or view.name in text:
            yield view


@dataclass(frozen=True, slots=True)
class Example:
    """An example query of a table, and the question that it answers."""

    question: str
    query: str


def find_example(name: str) -> Example | None:
    """Return the example query of a published table; None for any other name."""
    return Example(*_read("examples", name)) if (SQL_ROOT / "examples" / f"{name}.sql").is_file() else None


@cache
def _read(folder: str, name: str) -> tuple[str, str]:
    """Return the text of a file's first line, which is a comment `-- NAME: TEXT`, and its SELECT."""
    first, _, select = (SQL_ROOT / folder / f"{name}.sql").read_text(encoding="utf-8").partition("\n")
    return first.removeprefix(f"-- {name}: "), select.strip()
