"""`latest/`: the current release as plain Parquet files, for readers that know of no releases.

A folder a table, in it `day=` folders where the table is kept by day, and `application_bucket=` folders where it is
spread over buckets. The files are the release's own: nothing is
copied. `latest` is switched in one step, and nothing that a pattern finds beside it holds another release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path

from iosig.warehouse.contracts import Table
from iosig.warehouse.engine_paths import utf8_path
from iosig.warehouse.placing import make_read_only, moved_into_place
from iosig.warehouse.releases.locations import PLAIN, metadata_locations, name_of, part_of
from iosig.warehouse.releases.releases import Release, files_of, published
from iosig.warehouse.store.store import Store, parquet_writer

LATEST = "latest"
#: pandas fails at folders of no value as Hive names them, and passes over names that begin with an underscore
NO_DAY = "undated"
#: a table with such a column has it in its files: a folder's `day=` would be another one
_DAY = "day"


def link_latest(store: Store, release: Release, grown: Collection[str] | None = None) -> None:
    """Have `latest/` be a release; grown: the tables that ever got a column, if they are known."""
    store.files.show(LATEST, _label(release), members(store, release, grown=grown))


def is_latest(store: Store, release: Release) -> bool:
    """Return whether `latest/` is a release."""
    return store.files.shown(LATEST) == _label(release)


def is_whole(store: Store, release: Release) -> bool:
    """Return whether `latest/` is a release, and every file of it is there.

    Tables that this version or the version that made the release does not know are not compared.
    """
    known = {table.name for table in published()} & release.snapshots.keys()
    places = {place for table, place, _ in _placed(store, release) if table.name in known}
    shown = {place for place in store.files.showing(LATEST) if place.partition("/")[0] in known}
    return is_latest(store, release) and shown == places


def _label(release: Release) -> str:
    return f"{release.sequence}-{release.release_id}"


def members(
    store: Store, release: Release, made: Path | None = None, *, grown: Collection[str] | None = None
) -> dict[str, Path]:
    """Return where each file of a release as plain files lies, by its place: `jobs/day=2018-02-09/....parquet`.

    A table without rows is one empty file, and a file that is older than some columns of its table has them all the
    same, or readers that take the first file's columns would lose them. Both are made below `made`, which is the
    warehouse's own folder for that if not given, and found there the next time.
    """
    folder, widened = made or store.root / PLAIN, _grown(store) if grown is None else grown

    def found(table: Table, place: str, path: Path | None) -> tuple[str, Path]:
        own = folder / table.name / _digest(table)
        if path is None:
            return place, _empty(table, own / "empty.parquet")
        return place, _widened(table, store.here(path), own / path.name)

    placed = list(_placed(store, release))
    # most files are shown as they are: nothing waits for those
    asked = [each for each in placed if each[2] is None or each[0].name in widened]
    as_they_are = {place: path for _, place, path in placed if path is not None}
    return as_they_are | dict(store.files.each(lambda each: found(*each), asked))


def _placed(store: Store, release: Release) -> Iterator[tuple[Table, str, Path | None]]:
    """Yield the files of a release with their places; none for a table without rows."""
    files = files_of(store, release)
    for table in published():
        own = files.get(table.name)
        if not own:
            yield table, f"{table.name}/empty.parquet", None
        for path in own or ():
            yield table, f"{table.name}/{place_in(table, path)}", path


def _digest(table: Table) -> str:
    told = [(column.name, column.dtype, column.unit, column.doc) for column in table.columns]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


def _grown(store: Store) -> set[str]:
    """Return the tables that ever got a column: no file of the others lacks any."""

    def schema_count(table_name: str, location: str) -> int:
        with store.files.opened(name_of(table_name, location)) as file:
            return len(json.load(file)["schemas"])

    found = metadata_locations(store)
    counts = store.files.each(lambda told: schema_count(*told), found.items())
    return {table_name for table_name, count in zip(found, counts, strict=True) if count > 1}


def _empty(table: Table, path: Path) -> Path:
    from iosig.warehouse.contracts import arrow

    if not path.is_file():
        with moved_into_place(path) as temporary:
            with parquet_writer(temporary, table) as writer:
                writer.write_table(arrow.schema(table).empty_table())
            make_read_only(temporary)
    return path


def _widened(table: Table, path: Path, made: Path) -> Path:
    """Return a file that has all columns of its table: itself, or one that is made."""
    import pyarrow.parquet as pq

    if made.is_file() or pq.read_schema(utf8_path(path)).names == list(table.column_names):
        return made if made.is_file() else path
    from iosig.warehouse.releases.export import join_files

    with moved_into_place(made) as temporary:
        join_files(table, [path], temporary)
        make_read_only(temporary)
    return made


def place_in(table: Table, path: Path) -> Path:
    """Return where a released file of a table lies in the table's folder."""
    part = part_of(path)
    if isinstance(part, int):
        return Path(f"{table.bucket_name}={part}", path.name)
    if table.partition is None:
        return Path(path.name)
    value = part.isoformat() if part else NO_DAY
    return Path(value if _DAY in table.column_names else f"{_DAY}={value}", path.name)
