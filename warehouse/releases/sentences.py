"""Rephrase DuckDB's errors on a query in terms of the release's tables and columns."""

from __future__ import annotations

import re

from iosig.warehouse.contracts import Table, table as contract
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import meant
from iosig.warehouse.releases.reading import INPUTS
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.releases.statements import first_sentence
from iosig.warehouse.releases.views import VIEWS
from iosig.warehouse.renames import present_names

_UNKNOWN_TABLE = re.compile(r"Table with name \"?(.+?)\"? does not exist")
_UNKNOWN_COLUMN = re.compile(
    r"(?:Referenced column|does not have a column named|Column with name) \"?([^\"\n]+?)\"?(?: (?:not|was not|does)|$)",
    re.M,
)
_OUT_OF_REACH = re.compile(r"Cannot access (?:file|directory) \"(.*)\"")
_BROKEN = "INTERNAL Error"


def tables() -> list[Table]:
    """Return the tables that a query may reference."""
    return [*list_published_tables(), *INPUTS, RELEASES]


def sentence(error: Exception, query: str) -> str:
    """Explain a query error, with a suggestion for the intended name."""
    text = str(error)
    if match := _UNKNOWN_TABLE.search(text):
        return _describe_unknown_table(match[1])
    if match := _UNKNOWN_COLUMN.search(text):
        return _describe_unknown_column(match[1], query)
    if match := _OUT_OF_REACH.search(text):
        return f"{match[1]} is not accessible: a query can only read the files of its release."
    if _BROKEN in text:
        return f"DuckDB failed with an internal error: {first_sentence(error)}"
    return first_sentence(error)


def _describe_unknown_table(name: str) -> str:
    table_names = [*(table.name for table in tables()), *(view.name for view in VIEWS)]
    return f"This release has no table {name!r}.{meant(name, table_names)} `show tables` lists them."


def _describe_unknown_column(name: str, query: str) -> str:
    """Suggest a similar column in the query's tables, or a table that has a column with exactly this name."""
    named_tables = [table for table in tables() if re.search(rf"\b{table.name}\b", query, re.IGNORECASE)]
    columns = sorted({column for table in named_tables for column in table.column_names})
    suggestion = meant(name, columns) if columns else meant(name, present_names(name.lower()))
    other_tables = [
        table.name for table in tables() if table not in named_tables and name.lower() in table.column_names
    ]
    elsewhere = (
        f" {', '.join(other_tables[:5])} {'have' if len(other_tables) > 1 else 'has'} one."
        if other_tables and not suggestion
        else ""
    )
    hint = f" `describe {named_tables[0].name}` lists its columns." if named_tables else ""
    location = f" in {' or '.join(table.name for table in named_tables)}" if named_tables else ""
    return f"No column {name!r}{location}.{suggestion}{elsewhere}{hint}"


def description(table_name: str, types: dict[str, str]) -> dict[str, list[str | None]] | None:
    """Return the output of `describe` for a table or view of iosig, column by column; None for any other table.

    types: DuckDB's type of each column. The result has DuckDB's fields, plus `unit` and `doc`.
    """
    name = table_name.lower()
    view = next((view for view in VIEWS if view.name == name), None)
    if view is None and name not in {table.name for table in tables()}:
        return None
    contracts = [contract(base) for base in (view.tables if view else (name,))]
    columns = {column.name: column for declared in reversed(contracts) for column in declared.columns}
    columns |= {column.name: column for column in (view.added_columns if view else ())}
    key = () if view else contracts[0].key
    rows = [
        (
            column.name,
            types[column.name],
            "YES" if column.nullable else "NO",
            "PRI" if column.name in key else None,
            column.unit,
            column.doc,
        )
        for column in (columns[name] for name in types)
    ]
    names = ("column_name", "column_type", "null", "key", "unit", "doc")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
