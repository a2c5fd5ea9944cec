"""Older releases: tables of job I/O as commit 18b5d00 wrote them, read as this version has them.

There `job_io` has a row for each source, with one column of bytes whose meaning goes by the source, and `best_job_io`
the best of them. Released files stay as they are: the tables of this version are views over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.job_io import JOB_IO, JOB_IO_SOURCES
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import seals
from iosig.warehouse.releases.releases import Release, files_of
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: tables that are views over older files, and those that this version has no more
CONVERTED = (JOB_IO, JOB_IO_SOURCES, ATTRIBUTED_IO)
REPLACED = "best_job_io"
#: a column that `job_io` had then, and has no more
_COLUMN = "source"

_SOURCES = """
    select * exclude (volume_bytes),
        case when source = 'server' then volume_bytes end as filesystem_bytes,
        case when source <> 'server' then volume_bytes end as own_bytes
    from older.job_io
"""
#: counted bytes have a certainty of 1, and signatures less
_ATTRIBUTED = """
    select * exclude (estimate_source),
        coalesce(estimate_source, if(certainty = 1, 'counted', 'attributed')) as estimate_source
    from older.attributed_io
"""


def has_older_form(columns: Iterable[str]) -> bool:
    """Return whether `job_io` is of the older form, by the columns of one of its files."""
    return _COLUMN in columns


def is_older(store: Store, release: Release) -> bool:
    """Return whether a release's tables of job I/O are of the older form."""
    files = files_of(store, release).get(JOB_IO.name, [])
    seals.require_sound(store, files[:1])
    return bool(files) and has_older_form(scan_parquet(store.here(files[0])).collect_schema().names())


def require_current(store: Store, release: Release) -> None:
    """Raise UsageError where the plain files of a release do not have the form of this version's tables."""
    if is_older(store, release):
        raise UsageError(
            f"Release {release.release_id} was made by an older iosig: its {JOB_IO.name} has another form. "
            "Export its tables one by one, or run `iosig run` and export the release that it makes."
        )


def view_older(connection: duckdb.DuckDBPyConnection, relations: Mapping[str, duckdb.DuckDBPyRelation]) -> None:
    """Make views of this version's tables over the rows of older ones; relations: `job_io` and `attributed_io`."""
    # it imports Polars, which `iosig sql` does not need for other releases
    from iosig.warehouse.store.models import model_path

    for schema in {"older", *(table.layer for table in CONVERTED)}:
        connection.execute(f"create schema {schema}")
    connection.execute("use older")
    for name, relation in relations.items():
        relation.create_view(name)
    connection.execute("use main")
    queries = {JOB_IO_SOURCES: _SOURCES, ATTRIBUTED_IO: _ATTRIBUTED}
    queries[JOB_IO] = model_path(JOB_IO).read_text(encoding="utf-8")
    for table, query in queries.items():
        columns = ", ".join(f'"{name}"' for name in table.column_names)
        connection.execute(f"create view {table.layer}.{table.name} as select {columns} from ({query})")
        connection.execute(f"create view {table.name} as from {table.layer}.{table.name}")
