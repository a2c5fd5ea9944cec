"""Provide the current release as plain Parquet files in `latest/`, for readers that do not know releases.

`latest/` has one folder per table, with `day=` subfolders for a table partitioned by day, and `application_bucket=`
subfolders for a table split into hash buckets. The files are links to the release's own. `latest` is switched
atomically, and glob patterns for it match no other release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path

from iosig.warehouse.contracts import Table
from iosig.warehouse.engine_paths import utf8_path
from iosig.warehouse.placing import atomic_write, make_read_only
from iosig.warehouse.releases.locations import PLAIN, get_relative_name, metadata_locations, parse_part
from iosig.warehouse.releases.releases import Release, files_of, list_published_tables
from iosig.warehouse.store.store import Store, parquet_writer

LATEST = "latest"
#: replaces Hive's folder name for NULL, which pandas cannot read; pandas ignores names with a leading underscore
NO_DAY = "undated"
#: partition column; if a table's files contain it, folders are named without `day=`, which would duplicate it
_DAY = "day"


def link_latest(store: Store, release: Release, grown: Collection[str] | None = None) -> None:
    """Point `latest/` at a release; grown: the tables that ever gained a column, if known."""
    store.files.show(LATEST, _label(release), members(store, release, grown=grown))


def is_latest(store: Store, release: Release) -> bool:
    """Return whether `latest/` shows a release."""
    return store.files.shown(LATEST) == _label(release)


def is_whole(store: Store, release: Release) -> bool:
    """Return whether `latest/` shows a release with all of its files.

    Tables unknown to this version, or to the version that made the release, are not compared.
    """
    table_names = {table.name for table in list_published_tables()} & release.snapshots.keys()
    places = {place for table, place, _ in _list_places(store, release) if table.name in table_names}
    shown_places = {place for place in store.files.showing(LATEST) if place.partition("/")[0] in table_names}
    return is_latest(store, release) and shown_places == places


def _label(release: Release) -> str:
    return f"{release.sequence}-{release.release_id}"


def members(
    store: Store, release: Release, cache_root: Path | None = None, *, grown: Collection[str] | None = None
) -> dict[str, Path]:
    """Map each file's path in the plain layout (`jobs/day=2018-02-09/....parquet`) to its actual path.

    A table without rows gets one empty file. A file that lacks newer columns is rewritten with all columns, because
    many readers take the schema of the first file. Both kinds of files are created below `cache_root`, by default a
    cache folder of the warehouse, and reused later.
    """
    folder, widened = cache_root or store.root / PLAIN, _grown(store) if grown is None else grown

    def make_member(table: Table, place: str, path: Path | None) -> tuple[str, Path]:
        cache_folder = folder / table.name / _digest(table)
        if path is None:
            return place, _empty(table, cache_folder / "empty.parquet")
        return place, _add_columns(table, store.here(path), cache_folder / path.name)

    all_members = list(_list_places(store, release))
    # start no thread for most files, which need no rewrite
    rewritten = [member for member in all_members if member[2] is None or member[0].name in widened]
    unchanged = {place: path for _, place, path in all_members if path is not None}
    return unchanged | dict(store.files.each(lambda member: make_member(*member), rewritten))


def _list_places(store: Store, release: Release) -> Iterator[tuple[Table, str, Path | None]]:
    """Yield (table, path in the plain layout, file) for each file; the file is None for a table without rows."""
    files = files_of(store, release)
    for table in list_published_tables():
        paths = files.get(table.name)
        if not paths:
            yield table, f"{table.name}/empty.parquet", None
        for path in paths or ():
            yield table, f"{table.name}/{place_in(table, path)}", path


def _digest(table: Table) -> str:
    columns = [(column.name, column.dtype, column.unit, column.doc) for column in table.columns]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:12]


def _grown(store: Store) -> set[str]:
    """Return the tables that ever gained a column; files of all others have all columns."""

    def schema_count(table_name: str, location: str) -> int:
        with store.files.open(get_relative_name(table_name, location)) as file:
            return len(json.load(file)["schemas"])

    locations = metadata_locations(store)
    counts = store.files.each(lambda entry: schema_count(*entry), locations.items())
    return {table_name for table_name, count in zip(locations, counts, strict=True) if count > 1}


def _empty(table: Table, path: Path) -> Path:
    from iosig.warehouse.contracts import arrow

    if not path.is_file():
        with atomic_write(path) as temporary:
            with parquet_writer(temporary, table) as writer:
                writer.write_table(arrow.schema(table).empty_table())
            make_read_only(temporary)
    return path


def _add_columns(table: Table, path: Path, target: Path) -> Path:
    """Return a file with all columns of its table: the original, or a rewritten copy."""
    import pyarrow.parquet as pq

    if target.is_file() or pq.read_schema(utf8_path(path)).names == list(table.column_names):
        return target if target.is_file() else path
    from iosig.warehouse.releases.export import join_files

    with atomic_write(target) as temporary:
        join_files(table, [path], temporary)
        make_read_only(temporary)
    return target


def place_in(table: Table, path: Path) -> Path:
    """Return the path of a released file below its table's folder in the plain layout."""
    part = parse_part(path)
    if isinstance(part, int):
        return Path(f"{table.bucket_name}={part}", path.name)
    if table.partition is None:
        return Path(path.name)
    value = part.isoformat() if part else NO_DAY
    return Path(value if _DAY in table.column_names else f"{_DAY}={value}", path.name)
