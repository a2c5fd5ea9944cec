"""Read a release with DuckDB from its Parquet files, read-only, without any Iceberg library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from iosig.warehouse.contracts import Table, table as contract
from iosig.warehouse.contracts.metrics import Metric, find_counterparts, has_metrics
from iosig.warehouse.contracts.traces import TRACE_CALLS, TRACE_FILES, TRACE_METADATA, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.contracts.types import DUCKDB_TYPES
from iosig.warehouse.engine_paths import duckdb_paths
from iosig.warehouse.releases import releases, seals
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.releases.views import View, list_views
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb


#: inputs that are too large to be copied into releases; queries read them from the release's landings
INPUTS = (TRACE_FILES, TRACE_RECORDS, TRACE_REQUESTS, TRACE_METADATA, TRACE_CALLS)


#: limit of a query's memory
MEMORY_LIMIT = "2GB"
#: limit of a query's spill space
SPILL_LIMIT = "16GB"


@contextmanager
def open_duckdb(**options: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory DuckDB in UTC that spills to a private temporary folder."""
    import duckdb

    limits = {"memory_limit": MEMORY_LIMIT, "max_temp_directory_size": SPILL_LIMIT}
    with _spill() as folder, duckdb.connect(config={**limits, "temp_directory": folder, **options}) as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        yield connection


@contextmanager
def _spill() -> Iterator[str]:
    """Create a private temporary folder; yield "", which disables spilling, if none can be created."""
    try:
        folder = TemporaryDirectory(prefix="iosig-query-", ignore_cleanup_errors=True)
    except OSError:
        yield ""
        return
    with folder as path:
        yield path


def spill_folder(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the spill folder of a connection; an empty string disables spilling."""
    ((folder,),) = connection.execute("select current_setting('temp_directory')").fetchall()
    return str(folder or "")


@contextmanager
def open_release(
    store: Store, release: Release, query: str | None = None, metric: Metric | None = "bytes"
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB connection with a view per table of a release and `VIEWS`, with the columns' docs as comments.

    If `query` is given, only the tables that it may reference are opened, because reading the footers of a long history
    takes time. Landed inputs are included if the query names them. The connection can access only files of the release,
    its landings and its own spill folder. Raises MachineFault if a file differs from its checksum.

    metric: tables that count bytes or operations have the rows of this metric only, as its default results, and all
    amounts are in the columns of bytes; None opens the tables as published.
    """
    files = releases.files_of(store, release)
    inputs = _inputs(store, release, query or "")
    landed = [path for landed_files in inputs.values() for path in (*landed_files.own, *landed_files.shared)]
    views = [*list_views(None if query is None or _lists_tables(query) else query)]
    named = {name for view in views for name in view.tables}
    referenced = [
        table
        for table in list_published_tables()
        if query is None or table.name in named or _may_mean(query, table.name)
    ]
    seals.require_sound(store, (path for table in referenced for path in files.get(table.name, [])))
    reached = {name: addresses(store, paths) for name, paths in files.items()}
    # Names in a query refer to the release, never to Python variables or to extensions to download.
    config = {"python_enable_replacements": False, "autoinstall_known_extensions": False}
    with releases.being_read(store), open_duckdb(**config) as connection:
        reach(connection, store)
        for table in referenced:
            rows = scan_rows(connection, table, reached.get(table.name, []))
            (rows if metric is None else _select_metric(rows, table, metric)).create_view(table.name)
            comment(connection, "view", table)
        for view in views:
            _create_view(connection, view)
        for table, landed_files in inputs.items():
            _view_inputs(connection, table, landed_files)
        if query is None or _may_mean(query, "releases"):
            list_releases(connection, store)
        _confine(connection, [*(place for places in reached.values() for place in places), *landed])
        yield connection


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Landed files of a table: those of single landings, and shared ones together with the landings to exclude."""

    own: list[str]
    shared: list[str]
    others: list[str]


def _inputs(store: Store, release: Release, query: str) -> dict[Table, _Inputs]:
    """Return the landed files of the inputs that a query names, restricted to the landings in a release."""
    input_tables = [table for table in INPUTS if table.name in query.lower()]
    if not input_tables:
        return {}
    from iosig.warehouse.store import ledger

    landed = ledger.read(store)
    included = landed.select_landings(releases.landings_in(store, release))
    excluded = landed.landings.join(included, on=["mark", "content", "generation"], how="anti")
    # a content that landed twice concurrently has two places, and its id alone is ambiguous
    excluded = excluded.join(included.join(excluded, on="content", how="semi"), on="landing_id", how="anti")
    included_files = landed.files.filter(landed.files["folder"].is_in(included["folder"].unique().implode()))
    inputs = {}
    for table in input_tables:
        files = included_files.filter(table=table.name)
        own_paths, shared_paths = (
            addresses(store, [store.root / path for path in files.filter(is_shared=is_shared)["path"]])
            for is_shared in (False, True)
        )
        excluded_ids = (
            excluded.join(files.filter(is_shared=True), on="folder", how="semi")["landing_id"].unique().sort()
        )
        inputs[table] = _Inputs(own_paths, shared_paths, excluded_ids.to_list())
    return inputs


def _view_inputs(connection: duckdb.DuckDBPyConnection, table: Table, inputs: _Inputs) -> None:
    from iosig.warehouse.store.manifests import landing_column

    relation = scan_rows(connection, table, inputs.own)
    if inputs.shared:
        shared = scan_rows(connection, table, inputs.shared, "shared")
        if inputs.others:
            quoted_ids = ", ".join(map(quote_string, inputs.others))
            shared = shared.filter(f'"{landing_column(table)}" not in ({quoted_ids})')
        relation = relation.union(shared)
    relation.create_view(table.name)
    comment(connection, "view", table)


def _create_view(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    connection.execute(f'create view "{view.name}" as {view.select}')
    connection.execute(f'comment on view "{view.name}" is {quote_string(view.doc)}')


def _may_mean(query: str, name: str) -> bool:
    return name in query.lower() or _lists_tables(query)


def _lists_tables(query: str) -> bool:
    return re.search(r"show|describe|information_schema|duckdb_|pragma", query.lower()) is not None


def addresses(store: Store, paths: Iterable[Path]) -> list[str]:
    """Return the paths or URLs at which DuckDB reads files; from URLs it fetches only the ranges it needs."""
    if store.url is None:
        return duckdb_paths(paths)
    return [store.files.location(path.relative_to(store.root).as_posix()) for path in paths]


def reach(connection: duckdb.DuckDBPyConnection, store: Store) -> None:
    """If the warehouse is in an object store, register the store's file system with a connection."""
    if store.url is not None:
        from iosig.warehouse.store.objects import file_system

        connection.register_filesystem(file_system(store.url))


def scan_rows(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path | str], parameter: str = "paths"
) -> duckdb.DuckDBPyRelation:
    """Return the rows of Parquet files, with all of the contract's columns even where old files lack some.

    parameter: name of the query parameter with the files; relations that are joined need different names.
    """
    if not files:
        return connection.sql(selection(table, None))
    return connection.sql(selection(table, f"${parameter}"), params={parameter: [str(path) for path in files]})


def selection(table: Table, paths: str | None) -> str:
    """Build the SELECT that reads a table from Parquet files; `paths` is an SQL list or parameter."""
    columns = ", ".join(f'null::{DUCKDB_TYPES[column.dtype]} as "{column.name}"' for column in table.columns)
    empty = f"select {columns} where false"
    if not paths:
        return empty
    # A folder in the warehouse's path may look like a Hive partition (`name=value`) without being one.
    files = f"read_parquet({paths}, union_by_name = true, hive_partitioning = false)"
    rows = f"{empty} union all by name from {files}"
    initial = [
        f'coalesce("{column.name}", {column.initial_sql}) as "{column.name}"'
        for column in table.columns
        if column.initial is not None
    ]
    return f"select * replace ({', '.join(initial)}) from ({rows})" if initial else rows


def _select_metric(rows: duckdb.DuckDBPyRelation, table: Table, metric: Metric) -> duckdb.DuckDBPyRelation:
    """Select the rows of a metric, with operations in the columns of bytes."""
    if not has_metrics(table):
        return rows
    rows = rows.filter(f"metric = '{metric}'")
    if metric == "bytes":
        return rows
    values = {name: f'"{other}"' for name, other in find_counterparts(table.column_names).items()}
    if "is_default" in table.column_names:
        values["is_default"] = "true"
    return rows.project("* replace (" + ", ".join(f'{value} as "{name}"' for name, value in values.items()) + ")")


def comment(connection: duckdb.DuckDBPyConnection, kind: str, table: Table) -> None:
    """Set the docs and units of a table or view and its columns as comments."""
    connection.execute(f'comment on {kind} "{table.name}" is {quote_string(table.grain)}')
    for column in table.columns:
        text = f"{column.doc} [{column.unit}]" if column.unit else column.doc
        connection.execute(f'comment on column "{table.name}"."{column.name}" is {quote_string(text)}')


def quote_string(text: str) -> str:
    """Quote a string for SQL where DuckDB accepts no parameter: in comments and view definitions."""
    return "'" + text.replace("'", "''") + "'"


def list_releases(connection: duckdb.DuckDBPyConnection, store: Store) -> None:
    """Create the table `releases` from rows that have already been read."""
    table = contract("releases")
    scan_rows(connection, table, []).create(table.name)
    comment(connection, "table", table)
    connection.register("every_release", releases.rows(store).to_arrow())
    connection.execute("insert into releases from every_release")
    connection.unregister("every_release")


def _confine(connection: duckdb.DuckDBPyConnection, files: list[str]) -> None:
    """Restrict the connection irrevocably to the release's files."""
    connection.execute("set allowed_paths = $paths", {"paths": files})
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def count_differences(store: Store, before: Release, after: Release) -> list[tuple[str, int, int, int, int]]:
    """Compare two releases, table by table.

    Returns (table, rows before, rows added, rows removed, rows changed) for each table in either release. A row has
    changed if its key is in both and any other column differs.
    """
    differences = []
    files = [releases.files_of(store, release) for release in (before, after)]
    for table in list_published_tables():
        if before.snapshots.get(table.name) == after.snapshots.get(table.name):
            continue
        with open_duckdb() as connection:
            reach(connection, store)
            for name, sides in zip(("before", "after"), files, strict=True):
                scan_rows(connection, table, addresses(store, sides.get(table.name, []))).create_view(f"{name}_rows")
            counts = connection.execute(_difference(table)).fetchone()
        assert counts is not None
        differences.append((table.name, *counts))
    return differences


def _difference(table: Table) -> str:
    key = ", ".join(f'"{name}"' for name in table.key)
    same_key = " and ".join(f'b."{name}" is not distinct from a."{name}"' for name in table.key)
    return f"""
        with
        b as (select {key}, hash(t) as content from before_rows as t),
        a as (select {key}, hash(t) as content from after_rows as t),
        pairs as (select b.content as old, a.content as new from b full join a on {same_key})
        select
            (select count(*) from b),
            count(*) filter (where old is null),
            count(*) filter (where new is null),
            count(*) filter (where old <> new)
        from pairs
    """
