"""Validate Parquet files against contracts: DuckDB counts the rows that break each rule, in one query."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.rules import KEY_RULE, RowRule, require_columns, require_no_faults, row_rules
from iosig.warehouse.contracts.types import DUCKDB_TYPES, Table
from iosig.warehouse.engine_paths import duckdb_path

if TYPE_CHECKING:
    import duckdb

_FILE = "read_parquet($path, hive_partitioning = false)"


def require_file(path: Path, table: Table) -> None:
    """Raise ContractError unless a file's columns and rows meet the table's contract; the key is not checked."""
    with _database().cursor() as connection:
        require_types(connection, f"from {_FILE}", table, path=duckdb_path(path))
        _require_rules(connection, path, table, _counts(table))


def require_result(connection: duckdb.DuckDBPyConnection, path: Path, table: Table) -> None:
    """Raise ContractError unless the rows of a new file meet the table's contract, including its key."""
    _require_rules(connection, path, table, _counts(table) | {KEY_RULE: _count_repeated_keys(table)})


def require_types(connection: duckdb.DuckDBPyConnection, query: str, table: Table, **parameters: str) -> None:
    """Raise ContractError unless a query returns the table's columns, in order and of the declared types."""
    types = {name: dtype for name, dtype, *_ in connection.execute(f"describe {query}", parameters).fetchall()}
    require_columns(types, _types(table), table)


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """Return this process's cached DuckDB, since opening one takes longer than validating a small file."""
    import duckdb

    return duckdb.connect()


def _types(table: Table) -> dict[str, str]:
    # DuckDB reports types by their long names
    names = {column.name: DUCKDB_TYPES[column.dtype].upper() for column in table.columns}
    return {name: dtype.replace("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE") for name, dtype in names.items()}


def _require_rules(connection: duckdb.DuckDBPyConnection, path: Path, table: Table, counts: dict[str, str]) -> None:
    if not counts:
        return
    query = f"with rows as (from {_FILE}) select {', '.join(counts.values())} from rows"
    (fault_counts,) = connection.execute(query, {"path": duckdb_path(path)}).fetchall()
    require_no_faults(dict(zip(counts, fault_counts, strict=True)), table)


def _counts(table: Table) -> dict[str, str]:
    """Build, for each row rule, SQL that counts the rows that break it."""
    return {rule.name: f"count(*) filter (not ({_condition(rule)}))" for rule in row_rules(table)}


def _count_repeated_keys(table: Table) -> str:
    """Build SQL that counts the rows with a repeated key; NULLs compare equal."""
    key = ", ".join(map(quote_identifier, table.key))
    groups = f"select count(*) as row_count from rows group by {key} having row_count > 1"
    return f"(select coalesce(sum(row_count), 0)::bigint from ({groups}))"


def _condition(rule: RowRule) -> str:
    column = rule.column
    value = quote_identifier(column.name)
    # DuckDB sorts NaN above all numbers
    low, high = (f"list_min({value})", f"list_max({value})") if column.dtype in ("reals", "ints") else (value, value)
    match rule.kind:
        case "not_null":
            return f"{value} is not null"
        case "finite":
            return f"isfinite({low}) and isfinite({high})"
        case "known":
            choices = ", ".join("'" + choice.replace("'", "''") + "'" for choice in column.choices)
            return f"{value} in ({choices})"
        case "at_least":
            return f"{low} >= {rule.limit!r}::double"
        case "at_most":
            return f"{high} <= {rule.limit!r}::double"
