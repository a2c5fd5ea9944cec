"""Find the lineage of tables: the step that computes each table, and its input tables and columns.

The lineage of tables follows from the declarations of steps and from SQL models. The lineage of columns follows from
SQL alone: tables that Python computes have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from iosig.flows.steps.checks import VERDICTS
from iosig.flows.steps.order import STEPS
from iosig.flows.steps.step import Step
from iosig.reports.site.lineage import TableRow
from iosig.warehouse.contracts import TABLES, Table
from iosig.warehouse.contracts.types import DUCKDB_TYPES
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.models import model_path

if TYPE_CHECKING:
    from sqlglot import exp

#: additional columns of landed tables in models: the position of a row among all landed rows
_ORDER = {"part_order": "BIGINT", "part_row": "BIGINT", "landing_id": "VARCHAR"}
#: schemas without tables of the nightly run: settings, facts about the run, and tables of the base release
_NO_TABLES = ("settings.", "run.", "released.")


@dataclass(frozen=True, slots=True)
class TableLineage:
    """The step that computes a table, its input tables, and whether an SQL model computes it.

    tables: `layer.name` of each input. Some steps also carry the table's own rows of the base release forward; these
    are not listed.
    """

    table: Table
    step: str
    tables: tuple[str, ...]
    is_sql: bool

    @property
    def name(self) -> str:
        """`layer.name` of the table."""
        return _make_qualified_name(self.table)


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """A column, and the columns of other tables from which SQL computes it, as `layer.table.column`."""

    column: str
    sources: tuple[str, ...]


@cache
def lineage() -> tuple[TableLineage, ...]:
    """Return the lineage of every table that a run computes, in the order of the steps.

    Includes intermediate tables, which exist only as inputs of other models.
    """
    lineages: dict[str, TableLineage] = {}
    models = {_make_qualified_name(table): table for table in TABLES if model_path(table).is_file()}
    for step in STEPS:
        if step.is_repeated:
            continue
        for entry in _build_step_lineage(step):
            for name in entry.tables:
                if name in models and name not in lineages and name not in _list_written_tables():
                    lineages[name] = TableLineage(models[name], step.name, _tables_in_sql(models[name]), is_sql=True)
            lineages[entry.name] = entry
    return tuple(lineages.values())


@cache
def _list_written_tables() -> frozenset[str]:
    return frozenset(_make_qualified_name(table) for step in STEPS for table in step.writes)


def _build_step_lineage(step: Step) -> Iterator[TableLineage]:
    declared = {_make_qualified_name(table): None for source in step.reads for table in source.tables}
    for table in step.writes:
        if table.name.startswith(VERDICTS):
            continue
        is_sql = model_path(table).is_file()
        names = _tables_in_sql(table) if is_sql else [name for name in declared if f".{VERDICTS}" not in name]
        yield TableLineage(
            table, step.name, tuple(name for name in names if name != _make_qualified_name(table)), is_sql
        )


def _make_qualified_name(table: Table) -> str:
    return f"{table.layer}.{table.name}"


def table_rows() -> list[TableRow]:
    """Return the lineage of every table and its columns, as shown in the report."""
    return [
        TableRow(
            entry.name,
            entry.step,
            entry.is_sql,
            entry.table.is_published,
            entry.tables,
            tuple((column.column, column.sources) for column in get_column_lineage(entry.table)),
        )
        for entry in lineage()
    ]


def get_lineage(name: str) -> TableLineage:
    """Look up the lineage of a table by name. Raises UsageError with similar names if no run writes it."""
    by_name = {entry.table.name: entry for entry in lineage()}
    if name not in by_name:
        from difflib import get_close_matches

        similar = get_close_matches(name, by_name, 3)
        hint = f" Similar: {', '.join(similar)}." if similar else " `iosig lineage` lists the tables."
        raise UsageError(f"No step writes a table {name}.{hint}")
    return by_name[name]


def upstream(name: str) -> list[str]:
    """Return all tables from which a table is computed, directly or indirectly, the nearest first."""
    by_name = {entry.name: entry.tables for entry in lineage()}
    return _collect_reachable(name, by_name)


def downstream(name: str) -> list[str]:
    """Return all tables that are computed from a table, directly or indirectly, the nearest first."""
    readers: dict[str, list[str]] = {}
    for entry in lineage():
        for source in entry.tables:
            readers.setdefault(source, []).append(entry.name)
    return _collect_reachable(name, readers)


def _collect_reachable(name: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    reachable: dict[str, None] = {}
    level = [name]
    while level:
        level = [
            neighbor
            for table in level
            for neighbor in edges.get(table, ())
            if neighbor != name and neighbor not in reachable
        ]
        reachable.update(dict.fromkeys(level))
    return list(reachable)


# ---- SQL


@cache
def _tables_in_sql(table: Table) -> tuple[str, ...]:
    """Return the tables that a model reads, except settings."""
    from sqlglot import exp

    names = {f"{source.db}.{source.name}": None for source in _parse_model(table).find_all(exp.Table) if source.db}
    return tuple(name for name in names if not name.startswith(_NO_TABLES))


def get_column_lineage(table: Table) -> list[ColumnLineage]:
    """Return the lineage of a table's columns; empty if no SQL model makes the table."""
    from sqlglot import exp
    from sqlglot.lineage import lineage as lineage_of_query

    if not model_path(table).is_file():
        return []
    nodes = lineage_of_query(None, _parse_model(table), schema=_schema(), dialect="duckdb", trim_selects=False)
    columns = []
    for column in table.column_names:
        leaves = {
            f"{leaf.source.db}.{leaf.source.name}.{leaf.name.rpartition('.')[2]}"
            for leaf in nodes[column].walk()
            if not leaf.downstream and isinstance(leaf.source, exp.Table)
        }
        columns.append(ColumnLineage(column, tuple(sorted(name for name in leaves if not name.startswith(_NO_TABLES)))))
    return columns


def _parse_model(table: Table) -> exp.Expr:
    from sqlglot import parse_one

    # sqlglot writes DuckDB's parameters ($name) as :name
    text = re.sub(r"\$(\w+)", r":\1", model_path(table).read_text(encoding="utf-8"))
    return parse_one(text, dialect="duckdb")


@cache
def _schema() -> dict[str, dict[str, dict[str, str]]]:
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for table in TABLES:
        order = _ORDER if table.layer == "landed" else {}
        columns = {column.name: DUCKDB_TYPES[column.dtype] for column in table.columns}
        schema.setdefault(table.layer, {})[table.name] = columns | order
        schema.setdefault("released", {})[table.name] = columns
    return schema
