"""Running the SQL models: one SELECT a file, its inputs exposed by name, its result held to the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.contracts import Table, frames
from warehouse.contracts.types import Dtype
from warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from warehouse.store.landing import Landing, Part

#: what DuckDB calls the types of columns
_DUCKDB_TYPES: dict[Dtype, str] = {
    "text": "varchar",
    "int": "bigint",
    "real": "double",
    "bool": "boolean",
    "instant": "timestamptz",
    "date": "date",
    "reals": "double[]",
    "ints": "bigint[]",
}
SQL_ROOT = Path(__file__).resolve().parents[2] / "sql"


def model_path(table: Table) -> Path:
    """Return the SQL file that makes a table."""
    return SQL_ROOT / table.layer / f"{table.name}.sql"


@contextmanager
def engine(spill: Path, memory_limit: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB in memory, in UTC, with a memory limit beyond which it spills into a folder."""
    import duckdb

    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "temp_directory": str(spill),
    }
    with duckdb.connect(config=config) as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        yield connection


def expose(connection: duckdb.DuckDBPyConnection, schema: str, table: Table, files: Iterable[Path]) -> None:
    """Make Parquet files readable as `schema.table`; without files the table is there and empty."""
    paths = [str(path) for path in files]
    if not paths:
        expose_frame(connection, schema, table.name, frames.empty(table))
        return
    relation = connection.sql("from read_parquet($paths, union_by_name = true)", params={"paths": paths})
    _name(connection, relation, schema, table.name)


def expose_landed(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path], landing_ids: Sequence[str]
) -> None:
    """Make landed files readable as `landed.table`, with `landing_id`, and their order: `part_order`, `part_row`."""
    import polars as pl

    if not files:
        order = {"part_order": pl.lit(0, pl.Int64), "part_row": pl.lit(0, pl.Int64), "landing_id": pl.lit("")}
        expose_frame(connection, "landed", table.name, frames.empty(table).with_columns(**order))
        return
    relation = connection.sql(
        """
        select
            columns(lambda name: name <> 'landing_id'),
            file_index::bigint as part_order,
            file_row_number::bigint as part_row,
            $landing_ids[file_index::bigint + 1] as landing_id
        from read_parquet($paths, union_by_name = true)
        """,
        params={"paths": [str(path) for path in files], "landing_ids": list(landing_ids)},
    )
    # what was landed before a column came has none of it
    for column in table.columns:
        if column.name not in relation.columns:
            relation = relation.project(f'*, null::{_DUCKDB_TYPES[column.dtype]} as "{column.name}"')
    _name(connection, relation, "landed", table.name)


def expose_parts(
    store: Store, connection: duckdb.DuckDBPyConnection, table: Table, parts: Iterable[tuple[Landing, Part]]
) -> None:
    """Make those of some landed parts that are of a table readable as `landed.table`."""
    of_table = [(lot, part) for lot, part in parts if part.table == table.name]
    files = [store.root / part.path for _, part in of_table]
    expose_landed(connection, table, files, [lot.landing_id for lot, _ in of_table])


def expose_frame(connection: duckdb.DuckDBPyConnection, schema: str, name: str, frame: pl.DataFrame) -> None:
    """Make a frame readable as `schema.name`."""
    connection.register(f"{schema}__{name}__frame", frame.to_arrow())
    _name(connection, connection.table(f"{schema}__{name}__frame"), schema, name)


def _name(connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, schema: str, name: str) -> None:
    """Name a relation; both names are ours, never the input's."""
    relation.create_view(f"{schema}__{name}", replace=True)
    connection.execute(f'create schema if not exists "{schema}"')
    connection.execute(f'create or replace view "{schema}"."{name}" as from "{schema}__{name}"')


def select(
    connection: duckdb.DuckDBPyConnection, table: Table, parameters: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Run a table's SQL model and return its result."""
    query = model_path(table).read_text(encoding="utf-8")
    wanted = {name: value for name, value in (parameters or {}).items() if f"${name}" in query}
    found: pl.DataFrame = connection.sql(query, params=wanted).pl()
    return found
