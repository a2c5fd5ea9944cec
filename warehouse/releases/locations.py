"""Determine locations of data files and metadata, and define the naming scheme of data files."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import date
from pathlib import Path

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import sqlite_uri
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases.checksums import release_seals
from iosig.warehouse.releases.servers import EMBEDDED, NAMESPACE, Server, get_server, locations_on
from iosig.warehouse.store.store import Store

#: content of a data file: one day, the rows without a day (or a whole unpartitioned table), or a bucket
Part = date | int | None
_BUCKET, _UNDATED = "bucket-", "undated"
#: folders with caches that are rebuilt when missing
CACHES = ("release_index", "snapshot_files", "plain")
INDEX, LISTS, PLAIN = CACHES
#: file in a table's folder that names the table's current metadata, for readers without a catalogue
HINT = "version-hint.text"


def get_location(store: Store) -> str:
    """Return the location of the tables as readers resolve it: a URL, or an unescaped folder path."""
    return store.files.location("tables").removesuffix("/tables")


def metadata_locations(store: Store) -> dict[str, str]:
    """Return the location of each table's current metadata from the catalogue; empty before the first release.

    Raises MachineFault if releases exist but the catalogue does not know them, since a new history must not start
    silently.
    """
    server = get_server(store)
    locations = _in_sqlite(store) if server == EMBEDDED else _on_server(store, server)
    if not locations and release_seals(store):
        place = store.catalogue if server == EMBEDDED else f"The catalogue {server}"
        raise MachineFault(f"{place} names no tables, although releases exist. `iosig repair` rebuilds it.")
    return locations


def releases_location(store: Store) -> str | None:
    """Return the location of the metadata of `releases`, which changes with every release."""
    server = get_server(store)
    if server.kind == "rest":
        from iosig.warehouse.releases import rest

        location = rest.location(server, RELEASES.name)
        # only the metadata of all tables show whether the catalogue has lost its tables
        if location or not release_seals(store):
            return location
    return metadata_locations(store).get(RELEASES.name)


def _on_server(store: Store, server: Server) -> dict[str, str]:
    if server.kind != "rest":
        return locations_on(server)
    from iosig.warehouse.releases import rest

    return rest.locations(server, store.files)


def _in_sqlite(store: Store) -> dict[str, str]:
    if not store.catalogue.is_file():
        return {}
    # SQLite does not report why it cannot open a file
    store.catalogue.open("rb").close()
    query = "select table_name, metadata_location from iceberg_tables where table_namespace = ?"
    with closing(sqlite3.connect(sqlite_uri(store.catalogue, mode="ro"), uri=True)) as connection:
        try:
            return dict(connection.execute(query, (NAMESPACE,)).fetchall())
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error):
                return {}
            raise MachineFault(f"{store.catalogue}: {error}. `iosig repair` rebuilds it.") from error


def get_relative_name(table_name: str, location: str) -> str:
    """Return the warehouse-relative name of a table's file, even if the warehouse has been moved since."""
    folder = f"tables/{table_name}/"
    return folder + location.rsplit(f"/{folder}", 1)[1]


def make_hints(locations: Mapping[str, str]) -> dict[str, bytes]:
    """Return the content of each table's hint file, by name, for the given metadata locations."""
    hints = {}
    for table_name, location in locations.items():
        folder, version = get_relative_name(table_name, location).removesuffix(".metadata.json").rsplit("/", 1)
        hints[f"{folder}/{HINT}"] = version.encode()
    return hints


def root_before(store: Store) -> str | None:
    """Return the warehouse's folder according to the catalogue; None if the catalogue names no table."""
    location = next(iter(metadata_locations(store).values()), None)
    return location.rsplit("/tables/", 1)[0] if location else None


def is_moved(store: Store) -> bool:
    """Return whether the catalogue names a folder other than the current one."""
    prefix = f"{get_location(store)}/tables/"
    return any(not location.startswith(prefix) for location in metadata_locations(store).values())


def make_file_prefix(part: Part) -> str:
    """Return the prefix of a part's data file name."""
    if isinstance(part, int):
        return f"{_BUCKET}{part:02}"
    return part.isoformat() if part else _UNDATED


def data_place(table: Table, part: Part, name: str) -> str:
    """Return the path of a part's data file below the warehouse's root; name: the run or release that wrote it."""
    return f"tables/{table.name}/data/{make_file_prefix(part)}-{name}.parquet"


def parse_part(path: Path) -> Part:
    """Parse the part (day or bucket) from the name of a published data file."""
    if path.name.startswith(_BUCKET):
        return int(path.name.removeprefix(_BUCKET)[:2])
    return None if path.name.startswith(_UNDATED) else date.fromisoformat(path.name[: len("2018-02-09")])


def parse_day(path: Path) -> date | None:
    """Return the day of a published data file, None for one without a day."""
    part = parse_part(path)
    return None if isinstance(part, int) else part
