"""Run the SQL models: each file is one SELECT over named views, and its result is validated against the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts import Table, arrow
from iosig.warehouse.contracts.application_ids import MACRO_SQL
from iosig.warehouse.contracts.files import quote_identifier, require_result, require_types
from iosig.warehouse.contracts.types import DUCKDB_TYPES
from iosig.warehouse.engine_paths import duckdb_path, duckdb_paths
from iosig.warehouse.placing import atomic_write, make_read_only
from iosig.warehouse.store.manifests import landing_column
from iosig.warehouse.store.store import ROW_GROUP_ROWS, Store

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from iosig.warehouse.store.manifests import Landing, Part

SQL_ROOT = Path(__file__).resolve().parents[2] / "sql"
#: numbers for the names of objects that this process creates in an engine
_NUMBERS = count()


def model_path(table: Table) -> Path:
    """Return the path of the SQL model of a table."""
    return SQL_ROOT / table.layer / f"{table.name}.sql"


@contextmanager
def engine(spill: Path, memory_limit: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory DuckDB in UTC, with a memory limit beyond which it spills to a folder.

    It uses as many threads as Polars, so parallel workers share the cores evenly. The database is discarded on exit.
    """
    spill.mkdir(parents=True, exist_ok=True)
    database, name = _database(str(spill.absolute()), memory_limit), f"work_{next(_NUMBERS)}"
    with database.cursor() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        connection.execute(f"attach ':memory:' as {name}")
        connection.execute(f"use {name}")
        connection.execute(MACRO_SQL)
        try:
            yield connection
        except BaseException:
            # a failed engine may no longer respond
            _database.cache_clear()
            raise
        connection.execute("use memory")
        connection.execute(f"detach {name}")


@lru_cache(maxsize=1)
def _database(spill: str, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """Return this process's cached DuckDB, because opening one takes as long as a typical model run."""
    import duckdb
    import polars as pl

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": pl.thread_pool_size(),
        "memory_limit": memory_limit,
        "temp_directory": spill,
    }
    return duckdb.connect(config=config)


def expose(connection: duckdb.DuckDBPyConnection, schema: str, table: Table, files: Iterable[Path]) -> None:
    """Create the view `<schema>.<table>` over Parquet files; it is empty without files.

    Missing columns have their initial values.
    """
    paths = duckdb_paths(files)
    if not paths:
        _expose_empty(connection, schema, table)
        return
    relation = connection.sql(
        "from read_parquet($paths, union_by_name = true, hive_partitioning = false)", params={"paths": paths}
    )
    _name(connection, _add_columns(relation, table), schema, table.name)


def _expose_empty(connection: duckdb.DuckDBPyConnection, schema: str, table: Table, **more: str) -> None:
    """Create the view `<schema>.<table>` without rows; `more` maps extra columns to their types."""
    types = {column.name: DUCKDB_TYPES[column.dtype] for column in table.columns} | more
    columns = ", ".join(f"null::{dtype} as {quote_identifier(name)}" for name, dtype in types.items())
    connection.execute(f'create or replace view "{schema}__{table.name}" as select {columns} where false')
    _name_view(connection, schema, table.name)


def _add_columns(relation: duckdb.DuckDBPyRelation, table: Table) -> duckdb.DuckDBPyRelation:
    """Add columns that are newer than the files, with their initial values."""
    present = set(relation.columns)
    missing = [
        f"{column.initial_sql} as {quote_identifier(column.name)}"
        for column in table.columns
        if column.name not in present
    ]
    return relation.project(", ".join(["*", *missing])) if missing else relation


def expose_landed(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path], landing_ids: Sequence[str]
) -> None:
    """Create the view `landed.<table>` over landed files, with `landing_id`, `part_order` and `part_row`."""
    relations = [_own(connection, files, landing_ids, range(len(files)))] if files else []
    _expose_landed(connection, table, relations)


def expose_parts(
    store: Store, connection: duckdb.DuckDBPyConnection, table: Table, parts: Iterable[tuple[Landing, Part]]
) -> None:
    """Create the view `landed.<table>` over parts of a table, with the columns of `expose_landed`."""
    import polars as pl

    of_table = [(lot.landing_id, part.path, part.is_shared) for lot, part in parts if part.table == table.name]
    schema = {"landing_id": pl.String, "path": pl.String, "is_shared": pl.Boolean}
    files = pl.DataFrame(of_table, schema=schema, orient="row").with_row_index("part_order")
    expose_files(store, connection, table, files.with_columns(pl.col("part_order").cast(pl.Int64)))


def expose_files(store: Store, connection: duckdb.DuckDBPyConnection, table: Table, files: pl.DataFrame) -> None:
    """Create the view `landed.<table>` over landed files, with the columns of `expose_landed`.

    files: the columns landing_id, path, is_shared and part_order, from `Ledger.parts`.
    """
    import polars as pl

    relations = []
    own_files, shared_files = (files.filter(pl.col("is_shared") == is_shared) for is_shared in (False, True))
    if own_files.height:
        paths = store.locals(own_files["path"])
        relations.append(_own(connection, paths, own_files["landing_id"], own_files["part_order"]))
    if shared_files.height:
        relations.append(_select_shared(store, connection, table, shared_files))
    _expose_landed(connection, table, relations)


def _own(
    connection: duckdb.DuckDBPyConnection, files: Iterable[Path], landing_ids: Iterable[str], orders: Iterable[int]
) -> duckdb.DuckDBPyRelation:
    """Select the rows of files that contain a single landing."""
    return connection.sql(
        """
        select
            columns(lambda name: name <> 'landing_id'),
            $orders[file_index::bigint + 1] as part_order,
            file_row_number::bigint as part_row,
            $landing_ids[file_index::bigint + 1] as landing_id
        from read_parquet($paths, union_by_name = true, hive_partitioning = false)
        """,
        params={"paths": duckdb_paths(files), "landing_ids": list(landing_ids), "orders": list(orders)},
    )


def _select_shared(
    store: Store, connection: duckdb.DuckDBPyConnection, table: Table, files: pl.DataFrame
) -> duckdb.DuckDBPyRelation:
    """Select rows of some landings from shared files."""
    import polars as pl

    places = files.select(pl.col("path").unique(maintain_order=True)).with_row_index("of_file")
    selection = files.join(places, on="path").select(
        pl.col("of_file").cast(pl.Int64), pl.col("landing_id").alias("of_landing"), "part_order"
    )
    name = f"{table.name}__wanted"
    expose_frame(connection, "landed", name, selection)
    return connection.sql(
        f"""
        with shared as (
            select *, file_index::bigint as file_place, file_row_number::bigint as part_row
            from read_parquet($paths, union_by_name = true, hive_partitioning = false)
        )
        select
            columns(lambda name: name not in ('landing_id', 'of_landing', 'of_file', 'file_place')),
            of_landing as landing_id
        from shared
        inner join landed.{name} on file_place = of_file and shared.{landing_column(table)} = of_landing
        """,
        params={"paths": duckdb_paths(store.locals(places["path"]))},
    )


def _expose_landed(
    connection: duckdb.DuckDBPyConnection, table: Table, relations: Sequence[duckdb.DuckDBPyRelation]
) -> None:
    """Create the view of a landed table from all its relations."""
    if not relations:
        _expose_empty(connection, "landed", table, part_order="bigint", part_row="bigint", landing_id="varchar")
        return
    names = [f"landed__{table.name}__{place}" for place in range(len(relations))]
    for name, relation in zip(names, relations, strict=True):
        relation.create_view(name, replace=True)
    union = connection.sql(" union all by name ".join(f'from "{name}"' for name in names))
    _name(connection, _add_columns(union, table), "landed", table.name)


def extend_landed(connection: duckdb.DuckDBPyConnection, table: Table, more: Table, *, unless_in: str) -> None:
    """Append rows of a built table to `landed.<table>`, skipping values of `unless_in` that it already contains.

    The added rows sort after all landed rows.
    """
    view_name = f'"landed__{table.name}"'
    connection.execute(
        f"""
        create or replace view "landed"."{table.name}" as
        from {view_name}
        union all by name
        select *, {1 << 40} as part_order, row_number() over () as part_row, '' as landing_id
        from "{more.layer}"."{more.name}"
        anti join (select distinct {unless_in} from {view_name}) using ({unless_in})
        """
    )


def expose_frame(connection: duckdb.DuckDBPyConnection, schema: str, name: str, frame: pl.DataFrame) -> None:
    """Create the view `<schema>.<name>` over a data frame."""
    connection.register(f"{schema}__{name}__frame", frame.to_arrow())
    _name(connection, connection.table(f"{schema}__{name}__frame"), schema, name)


def _name(connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, schema: str, name: str) -> None:
    """Create or replace a view; schema and name are constants of iosig, not user input."""
    relation.create_view(f"{schema}__{name}", replace=True)
    _name_view(connection, schema, name)


def _name_view(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> None:
    connection.execute(f'create schema if not exists "{schema}"')
    connection.execute(f'create or replace view "{schema}"."{name}" as from "{schema}__{name}"')


# ---- results


def select(
    connection: duckdb.DuckDBPyConnection, table: Table, parameters: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Run a table's SQL model and return its result."""
    query = _query(table)
    rows: pl.DataFrame = connection.sql(query, params=_select_parameters(query, parameters)).pl()
    return rows


def compute(
    connection: duckdb.DuckDBPyConnection, table: Table, parameters: Mapping[str, Any] | None = None
) -> duckdb.DuckDBPyRelation:
    """Run a table's SQL model, store the result as `<layer>.<table>` in this engine, and return it.

    The result is a table, which may spill to disk. DuckDB declares a Parquet column as required if statistics show that
    it has no NULL; a table has such statistics, whereas most queries do not.
    """
    query, name = _query(table), f"{table.layer}__{table.name}__result"
    connection.execute(f'create or replace table "{name}" as {query}', _select_parameters(query, parameters))
    result = connection.table(f'"{name}"')
    _name(connection, result, table.layer, table.name)
    return result


def write(
    connection: duckdb.DuckDBPyConnection, table: Table, path: Path, parameters: Mapping[str, Any] | None = None
) -> int:
    """Compute a table like `compute`, and let DuckDB write the table's file. Returns the number of rows.

    Raises ContractError, and writes nothing, if columns, rows or the key differ from the table's contract.
    """
    result = compute(connection, table, parameters)
    require_types(connection, f"from {_qualify_name(table)}", table)
    _copy(connection, table, path, "true")
    return len(result)


def write_days(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    paths: Mapping[date | None, Path],
    parameters: Mapping[str, Any] | None = None,
    *,
    is_sparse: bool = True,
) -> dict[date | None, int]:
    """Compute a table, and let DuckDB write one file per day. Returns the number of rows per day.

    is_sparse: whether days without rows get no file. Rows of other days are neither written nor kept in the engine.
    Raises ContractError if columns, rows or the key of a day differ from the table's contract.
    """
    assert table.partition
    day, result = quote_identifier(table.partition), compute(connection, table, parameters)
    require_types(connection, f"from {_qualify_name(table)}", table)
    counts = dict(result.aggregate(f"{day}, count(*)").fetchall())
    written = {
        written_day: counts.get(written_day, 0) for written_day in paths if written_day in counts or not is_sparse
    }
    for written_day in written:
        _copy(connection, table, paths[written_day], f"{day} is not distinct from $day", day=written_day)
    expose(connection, table.layer, table, [paths[written_day] for written_day in written])
    return written


def _qualify_name(table: Table) -> str:
    return f'"{table.layer}"."{table.name}"'


def _copy(
    connection: duckdb.DuckDBPyConnection, table: Table, path: Path, condition: str, **parameters: object
) -> None:
    """Write the computed rows that meet a condition to a file, in the format of `write_parquet`."""
    # declare nullable columns as nullable, even if the rows contain no NULL
    columns = ", ".join(
        f"try({quote_identifier(column.name)}) as {quote_identifier(column.name)}"
        if column.nullable
        else quote_identifier(column.name)
        for column in table.columns
    )
    # readers of releases need not support Parquet data page version 2
    version = "v1" if table.is_published else "v2"
    with atomic_write(path) as temporary:
        connection.execute(
            f"""
            copy (select {columns} from {_qualify_name(table)} where {condition}) to $path (
                format parquet,
                compression zstd,
                parquet_version {version},
                row_group_size {ROW_GROUP_ROWS},
                kv_metadata {{'ARROW:schema': $schema}}
            )
            """,
            {"path": duckdb_path(temporary), "schema": arrow.encode_schema(table), **parameters},
        )
        require_result(connection, temporary, table)
        make_read_only(temporary)


def _query(table: Table) -> str:
    return model_path(table).read_text(encoding="utf-8")


def _select_parameters(query: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (parameters or {}).items() if f"${name}" in query}
