"""Export a whole release as plain files, or as one DuckDB file, for readers without iosig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from iosig.warehouse.contracts import Table, table as contract
from iosig.warehouse.engine_paths import duckdb_pattern, utf8_path
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import atomic_write, copy
from iosig.warehouse.releases.links import NO_DAY, members
from iosig.warehouse.releases.reading import (
    addresses,
    comment,
    list_releases,
    open_duckdb,
    quote_string,
    reach,
    selection,
)
from iosig.warehouse.releases.releases import Release, being_read, files_of, list_published_tables, to_records
from iosig.warehouse.store.files import lay_out
from iosig.warehouse.store.store import Store, write_json

if TYPE_CHECKING:
    import duckdb

#: storage format of DuckDB, readable by DuckDB 1.0 and later
_STORAGE_VERSION = "v1.0.0"
_SELF = "release"


def export_folder(store: Store, release: Release, folder: Path, *, is_copied: bool = False) -> dict[str, int]:
    """Export all tables of a release as plain Parquet files into a new folder; return the row counts.

    The files are hard links to the release's own where possible. They are copied on request, and across file systems;
    files that lack newer columns are rewritten. Raises UsageError if the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} already exists: choose a new or empty folder.")
    with (
        being_read(store),
        atomic_write(folder.absolute()) as temporary,
        TemporaryDirectory(dir=temporary.parent) as cache,
    ):
        members_by_place = members(store, release, Path(cache))
        own_paths = (path for path in members_by_place.values() if path.is_relative_to(store.root))
        store.files.fetch(path.relative_to(store.root).as_posix() for path in own_paths)
        lay_out(temporary, members_by_place, is_copied=is_copied)
        counts = {table.name: 0 for table in list_published_tables()}
        for place, path in members_by_place.items():
            counts[place.split("/")[0]] += pq.read_metadata(utf8_path(path)).num_rows
        write_json(_describe_release(store, release, counts), temporary / "release.json")
        (temporary / "README.txt").write_text(_words(release, counts), encoding="utf-8")
    return counts


def _describe_release(store: Store, release: Release, counts: dict[str, int]) -> dict[str, Any]:
    tables = {
        table.name: {
            "grain": table.grain,
            "row_count": counts[table.name],
            "columns": [
                {"name": column.name, "type": column.dtype, "unit": column.unit, "doc": column.doc}
                for column in table.columns
            ],
        }
        for table in list_published_tables()
    }
    return {"release": to_records(store, [release])[0], "tables": tables}


def _words(release: Release, counts: dict[str, int]) -> str:
    width = max(map(len, counts))
    table_lines = [f"  {name.ljust(width)}  {count:>12,}  {contract(name).grain}" for name, count in counts.items()]
    return "\n".join(
        [
            f"Release {release.release_id} of iosig, published at {release.created_at}. Checks: {release.verdict}.",
            "",
            "One folder per table. Tables by day have a folder day=YYYY-MM-DD per day, and one for other rows,",
            f"day={NO_DAY}. Units and descriptions are in the schemas and in release.json.",
            "Files may be links to the warehouse: do not modify them.",
            "",
            "Tables and numbers of rows:",
            *table_lines,
            "",
        ]
    )


def export_database(store: Store, release: Release, target: Path, *, is_copied: bool = False) -> dict[str, int]:
    """Export a release as a DuckDB file with views over its files or, if `is_copied`, with its rows; return row counts.

    Tables and columns have their docs and units as comments; `release` is the release's own row of `releases`. Raises
    UsageError unless the file's name ends in .duckdb.
    """
    if target.suffix.lower() != ".duckdb":
        raise UsageError(
            f"The name of a DuckDB file must end in .duckdb, not {target.name!r}. For plain "
            "Parquet files say --output FOLDER; .parquet and .csv are for one TABLE."
        )
    if store.url is not None and not is_copied:
        raise UsageError("Views cannot refer to an object store: --copy writes the rows into the file.")
    files = {
        name: addresses(store, paths) if is_copied else _patterns(store, paths)
        for name, paths in files_of(store, release).items()
    }
    with being_read(store), _write_database(target.absolute()) as temporary, open_duckdb() as connection:
        reach(connection, store)
        connection.execute(f"attach {quote_string(str(temporary))} as made (storage_version '{_STORAGE_VERSION}')")
        connection.execute("use made")
        for table in list_published_tables():
            _make(connection, table, files.get(table.name, []), is_copied)
        list_releases(connection, store)
        _name_itself(connection, release)
        counts = {table.name: _count(connection, table.name) for table in list_published_tables()}
        connection.execute("use memory")
        connection.execute("detach made")
    return counts


@contextmanager
def _write_database(target: Path) -> Iterator[Path]:
    """Provide a temporary path for a DuckDB database; on success it becomes `target`."""
    with atomic_write(target) as temporary:
        if not {"?", "\\"} & {*str(temporary)}:
            yield temporary
            return
        # DuckDB inserts the `.wal` of its log's name before the first `?` of the path, in whichever folder that is, and
        # takes a backslash for a separator if the path has a pattern character
        with TemporaryDirectory(prefix="iosig-export-") as folder:
            yield Path(folder, "made.duckdb")
            copy(Path(folder, "made.duckdb"), temporary)


def _patterns(store: Store, paths: Sequence[Path]) -> list[str]:
    """Return the file patterns for a database's views: absolute paths, with pattern characters escaped."""
    root = store.root.resolve()
    patterns = [duckdb_pattern(root / path.relative_to(store.root)) for path in paths]
    if None in patterns:
        raise UsageError(
            f"A DuckDB view cannot refer to files in {root}: the path contains a backslash and a pattern character. "
            "--copy writes the rows into the file."
        )
    return [pattern for pattern in patterns if pattern is not None]


def _make(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[str], is_copied: bool) -> None:
    kind = "table" if is_copied else "view"
    # A view takes no parameters.
    paths = ", ".join(quote_string(path) for path in files)
    names = ", ".join(f'"{name}"' for name in table.column_names)
    rows = selection(table, f"[{paths}]" if files else None)
    connection.execute(f'create {kind} "{table.name}" as select {names} from ({rows})')
    comment(connection, kind, table)


def _name_itself(connection: duckdb.DuckDBPyConnection, release: Release) -> None:
    connection.execute(f"create table {_SELF} as from releases where false")
    connection.execute(f"insert into {_SELF} from releases where release_id = ?", [release.release_id])
    connection.execute(f"comment on table {_SELF} is 'the release that this file holds, as in releases'")


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f'select count(*) from "{name}"').fetchone()
    assert row is not None
    return int(row[0])
