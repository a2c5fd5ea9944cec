"""Read what studies have written: measures (JSON), and the rows of tables in their pages.

A reference names such a row: `signatures/drift` is a subject in `measures/signatures.json`, and
`predictions-study.md#dft | periods` is the row of a page whose first cells are `dft` and `periods`. If several tables
have such a row, ` @ right` selects the table with a column `right`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iosig.studies.study import MEASURES_FOLDER

#: a cell or a named number of a row
Value = float | int | str | None
_CELL_END = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page: the headings above it, the header, and the cells of its rows."""

    headings: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def records(self) -> Iterator[dict[str, str]]:
        """Yield each row by the names of the columns."""
        for row in self.rows:
            yield dict(zip(self.header, row, strict=True))


def read_tables(page: Path) -> list[PageTable]:
    """Read all tables of a page in Markdown, in order."""
    tables: list[PageTable] = []
    headings: list[str] = []
    for block in page.read_text(encoding="utf-8").split("\n\n"):
        if block.startswith("#"):
            headings = [*headings[: block.index(" ") - 1], block.lstrip("# ")]
        if block.startswith("|"):
            header, _, *rows = (_split_cells(line) for line in block.strip().splitlines())
            tables.append(PageTable(tuple(headings), header, tuple(rows)))
    return tables


def _split_cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line)[1:-1])


def read_row(docs: Path, reference: str) -> Mapping[str, Value]:
    """Return the named values to which a reference leads; raises LookupError if there are none, or several."""
    page_name, _, key = reference.partition("#")
    if key:
        first_cells, _, column = key.partition(" @ ")
        cells = tuple(cell.strip() for cell in first_cells.split("|"))
        found = [
            record
            for table in read_tables(docs / page_name)
            for row, record in zip(table.rows, table.records(), strict=True)
            if row[: len(cells)] == cells and (not column or column in table.header)
        ]
        if len(found) != 1:
            raise LookupError(f"{reference}: {len(found)} rows begin with these cells; a reference needs exactly one.")
        return found[0]
    study, _, subject = reference.partition("/")
    measures = json.loads(get_path(docs, reference).read_text(encoding="utf-8"))["measures"]
    if subject not in measures:
        raise LookupError(f"{reference}: {study}.json has no such subject: {', '.join(measures)}.")
    row: Mapping[str, Value] = measures[subject]
    return row


def get_path(docs: Path, reference: str) -> Path:
    """Return the file to which a reference leads."""
    name, _, key = reference.partition("#")
    return docs / name if key else docs / MEASURES_FOLDER / f"{name.partition('/')[0]}.json"


def read_command(path: Path) -> str:
    """Return the command that wrote a file of measures."""
    command: str = json.loads(path.read_text(encoding="utf-8"))["command"]
    return command
