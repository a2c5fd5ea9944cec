"""Manage the Iceberg catalogue: versions of published tables, in an SQLite file next to them or on a server.

Iceberg readers require absolute locations, so a location contains the path of the warehouse at the time of writing. In
a moved or copied warehouse, iosig looks below the current folder instead, and `iosig.warehouse.releases.relocating`
rewrites the locations for other readers.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO, pyarrow_to_schema
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import StagedTable, Table as IcebergTable, TableProperties
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform

from iosig.warehouse.contracts import Table, arrow
from iosig.warehouse.contracts.files import require_file
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import parse_location, utf8_path
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.placing import SyncedStream, make_folder
from iosig.warehouse.releases import snapshots
from iosig.warehouse.releases.checksums import changing_catalogue
from iosig.warehouse.releases.database import SqlTables
from iosig.warehouse.releases.locations import (
    Part,
    data_place,
    get_location,
    get_relative_name,
    make_hints,
    metadata_locations,
    releases_location,
)
from iosig.warehouse.releases.multi_table_transaction import TransactionalCatalogue
from iosig.warehouse.releases.servers import (
    EMBEDDED,
    NAMESPACE,
    Server,
    alone,
    engine_uri,
    get_server,
    require_installed,
)
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyarrow.fs import FileSystem
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Properties

    from iosig.warehouse.releases.rest import RestTables

_ROOT = "iosig.root"
_TABLES = "/tables/"
#: number of previous metadata files kept per table; each commit writes a new one
_KEPT_VERSIONS = 20
_EPOCH = date(1970, 1, 1)
#: default of `seen`: no check for concurrent changes
_ANYWHERE = "anywhere"


class _SyncedFile(PyArrowFile):
    """A local file for writing that is synced to disk when it is closed."""

    def __init__(self, location: str, path: str, fs: FileSystem) -> None:
        super().__init__(location, path, fs)
        self.local_path = path

    def create(self, overwrite: bool = False) -> SyncedStream:
        """Open the file for writing; without `overwrite` it must not exist."""
        make_folder(Path(self.local_path).parent)
        return SyncedStream(self.local_path, "wb" if overwrite else "xb")


class WarehouseFileIO(PyArrowFileIO):
    """PyIceberg file IO for local files, which maps locations of a moved warehouse to its current folder."""

    @staticmethod
    def parse_location(location: str, properties: Properties = {}) -> tuple[str, str, str]:  # noqa: B006
        """Split a location into (scheme, netloc, path)."""
        root = properties.get(_ROOT)
        if root and _TABLES in location and not location.startswith(f"{root}/"):
            location = root + _TABLES + location.rsplit(_TABLES, 1)[1]
        path = parse_location(location)
        # pyiceberg parses URLs, which would cut a path at `?`, `#` or a line break
        return PyArrowFileIO.parse_location(location, properties) if path is None else ("file", "", path)

    def new_output(self, location: str) -> PyArrowFile:
        """Return an output file that is synced to disk when it is closed."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _SyncedFile(location, path, self.fs_by_scheme(scheme, netloc))


def open_catalogue(store: Store) -> TransactionalCatalogue:
    """Open the warehouse's catalogue, creating it on first use."""
    make_folder(store.root)
    server = get_server(store)
    return _open_rest(store, server) if server.kind == "rest" else _open_sql(store, server)


def _open_rest(store: Store, server: Server) -> RestTables:
    from iosig.warehouse.releases import rest

    return rest.open_rest_catalogue(server, store.files, **_in_store(), **{_ROOT: get_location(store)})


def _open_sql(store: Store, server: Server) -> SqlTables:
    require_installed(server)
    root = get_location(store)
    properties = {"uri": engine_uri(store, server), "warehouse": root, _ROOT: root}
    is_new = server == EMBEDDED and not store.catalogue.is_file()
    with changing_catalogue(store) if is_new else nullcontext():
        in_folder = {"py-io-impl": f"{WarehouseFileIO.__module__}.{WarehouseFileIO.__qualname__}"}
        catalogue = SqlTables(server.name, **properties, **(_in_store() if store.url else in_folder))
        catalogue.files = store.files
        catalogue.create_namespace_if_not_exists(NAMESPACE)
    return catalogue


def _in_store() -> dict[str, str]:
    from iosig.warehouse.store.objects import for_arrow

    return {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **for_arrow()}


def make_catalogue(store: Store, server: Server) -> None:
    """Create an empty catalogue for a warehouse."""
    with changing_catalogue(store) if server == EMBEDDED else nullcontext():
        catalogue = SqlCatalog(server.name, uri=engine_uri(store, server), warehouse=get_location(store))
        catalogue.create_namespace_if_not_exists(NAMESPACE)
        catalogue.close()


@contextmanager
def open_transaction(store: Store, expected_location: str | None = _ANYWHERE) -> Iterator[TransactionalCatalogue]:
    """Open the catalogue for a transaction over several tables: all changes commit on exit, or none after an error.

    The metadata must name the warehouse's current folder. If a REST server fails between tables, some tables may have
    changed; the rows of `releases`, which change last, define the current release.

    expected_location: location of the releases' metadata when the changes were planned; raises MachineFault if another
    writer has changed the location since.
    """
    server = get_server(store)
    with (
        _open_rest_transaction(store, server, expected_location)
        if server.kind == "rest"
        else _open_sql_transaction(store, expected_location) as catalogue
    ):
        yield catalogue


@contextmanager
def _open_rest_transaction(
    store: Store, server: Server, expected_location: str | None
) -> Iterator[TransactionalCatalogue]:
    from iosig.warehouse.releases import rest

    catalogue = _open_rest(store, server)
    rest.claim(catalogue, server, store.name)
    with closing(catalogue), rest.convert_errors(server), catalogue.gathering(last=RELEASES.name):
        with suppress(NoSuchTableError):
            # the server checks this as a precondition, so that a concurrent commit is detected
            location = catalogue.load_table((NAMESPACE, RELEASES.name)).metadata_location
            _require_seen(store, expected_location, location)
        yield catalogue


def _require_seen(store: Store, expected_location: str | None, location: str | None) -> None:
    if expected_location not in (_ANYWHERE, location):
        raise MachineFault(f"Another writer changed the releases of {store.name} at the same time. Run again.")


@contextmanager
def _open_sql_transaction(store: Store, expected_location: str | None) -> Iterator[TransactionalCatalogue]:
    server = get_server(store)
    catalogue = _open_sql(store, server)
    engine = catalogue.engine
    try:
        with changing_catalogue(store) if server == EMBEDDED else nullcontext(), engine.begin() as connection:
            alone(connection, server)
            _require_seen(store, expected_location, releases_location(store))
            # use the connection of the surrounding transaction
            catalogue.engine = connection  # type: ignore[assignment]
            with catalogue.gathering(last=RELEASES.name):
                yield catalogue
    finally:
        catalogue.engine = engine
        catalogue.close()


def leave_hints(store: Store, locations: Mapping[str, str] | None = None) -> None:
    """Write a hint file per table that names the current metadata, for readers without a catalogue.

    locations: locations of the current metadata, if already known.
    """

    def leave(name: str, content: bytes) -> None:
        if store.files.content(name) != content:
            store.files.put(name, content)

    hints = make_hints(metadata_locations(store) if locations is None else locations)
    store.files.each(lambda hint: leave(*hint), hints.items())


def widen(catalogue: Catalog, table: Table) -> IcebergTable:
    """Return the Iceberg table of a contract, after adding missing columns to it."""
    return _add_columns(catalogue.load_table((NAMESPACE, table.name)), table)


def _load_if_present(catalogue: Catalog, table: Table) -> IcebergTable | None:
    try:
        return catalogue.load_table((NAMESPACE, table.name))
    except NoSuchTableError:
        return None


def _add_columns(current_table: IcebergTable, table: Table) -> IcebergTable:
    """Add the contract's new columns to a table; earlier snapshots keep their schema."""
    present = {field.name for field in current_table.schema().fields}
    has_properties = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED in current_table.properties
    if has_properties and present == set(table.column_names):
        # a transaction copies the metadata, whose size grows with the number of releases
        return current_table
    # this transaction only shows the changes that pyiceberg would make, and is never committed
    draft = current_table.transaction()
    if not has_properties:
        draft.set_properties(_properties(table, current_table.schema()))
    # Existing rows are NULL in a new column, even if the contract forbids it.
    schema = _build_documented_schema(table)
    new = [field.with_nullable(True) for field in schema if field.name not in present]
    removed = present - set(schema.names)
    if new or removed:
        with draft.update_schema(allow_incompatible_changes=bool(removed)) as update:
            update.union_by_name(pa.schema(new))
            for name in sorted(removed):
                update.delete_column(name)
    snapshots.commit(current_table, snapshots.differences(current_table.metadata, draft.table_metadata))
    return current_table.catalog.load_table(current_table.name())


def _build_documented_schema(table: Table) -> pa.Schema:
    """Return a table's schema with each column's unit in its doc, because Iceberg has no units."""
    units = {column.name: f" [{column.unit}]" if column.unit else "" for column in table.columns}
    docs = {column.name: column.doc + units[column.name] for column in table.columns}
    return pa.schema([field.with_metadata({"doc": docs[field.name]}) for field in arrow.schema(table)])


def _properties(table: Table, schema: Schema) -> dict[str, Any]:
    """Return the table properties that readers and later commits need."""
    return {
        "comment": table.grain,
        TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: str(_KEPT_VERSIONS),
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
        # data files of iosig have no field ids, so readers match columns by name
        TableProperties.DEFAULT_NAME_MAPPING: schema.name_mapping.model_dump_json(),
    }


def _create(catalogue: Catalog, table: Table) -> IcebergTable:
    """Create a table, immediately on a REST server, or with the table's first commit in SQL."""
    schema, identifier = _iceberg_schema(table), (NAMESPACE, table.name)
    spec, properties = _build_partition_spec(table, schema), _properties(table, schema)
    location = f"{catalogue.properties[_ROOT]}/tables/{table.name}"
    if not isinstance(catalogue, SqlTables):
        return catalogue.create_table(identifier, schema, location, spec, properties=properties)
    metadata = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, location, properties)
    return StagedTable(identifier, metadata, "", catalogue.file_io, catalogue)


def _iceberg_schema(table: Table) -> Schema:
    """Return a contract's schema with Iceberg's field ids, numbered by column, then by list element."""
    ids = count(1)
    schema = _build_documented_schema(table)
    mapping = [MappedField(field_id=next(ids), names=[field.name], fields=_elements(field, ids)) for field in schema]
    return assign_fresh_schema_ids(pyarrow_to_schema(schema, NameMapping(mapping)))


def _elements(field: pa.Field, ids: Iterator[int]) -> list[MappedField]:
    return [MappedField(field_id=next(ids), names=["element"])] if pa.types.is_list(field.type) else []


def _build_partition_spec(table: Table, schema: Schema) -> PartitionSpec:
    if not table.partition:
        return PartitionSpec()
    source = schema.find_field(table.partition).field_id
    return PartitionSpec(PartitionField(source, PARTITION_FIELD_ID_START, IdentityTransform(), table.partition))


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A snapshot of a table, and the sorted names of its data files."""

    snapshot_id: int
    names: list[str]


def replace(
    catalogue: Catalog,
    table: Table,
    locations: Collection[str],
    *,
    days: Collection[date | None] | None,
    tag: str,
    copies: Mapping[str, Path] | None = None,
) -> SnapshotFiles:
    """Replace days of a table, or the whole table if `days` is None, by Parquet files; return the tagged snapshot.

    If no file is added or removed, the current snapshot gets the tag, and no new one is created. copies: local copies
    of files at these locations.
    """
    existing = _load_if_present(catalogue, table)
    iceberg = _create(catalogue, table) if existing is None else _add_columns(existing, table)
    head, live = iceberg.current_snapshot(), snapshots.live_manifests(iceberg)
    files = [entry.data_file for _, entries in live for entry in entries]
    removed = {file for file in files if days is None or _parse_day(file) in days}
    if head is not None and not removed and not locations:
        snapshots.commit(iceberg, [snapshots.make_tag_update(tag, head.snapshot_id)])
        return SnapshotFiles(head.snapshot_id, sorted(get_relative_name(table.name, file.file_path) for file in files))
    snapshot = snapshots.write_snapshot(iceberg, live, removed, snapshots.data_files(iceberg, locations, copies))
    snapshots.commit(iceberg, [*snapshots.adding(snapshot), snapshots.make_tag_update(tag, snapshot.snapshot_id)])
    kept_locations = [file.file_path for file in files if file not in removed]
    return SnapshotFiles(
        snapshot.snapshot_id, sorted(get_relative_name(table.name, place) for place in (*kept_locations, *locations))
    )


def _parse_day(file: DataFile) -> date | None:
    days = file.partition[0] if len(file.partition) else None
    return None if days is None else _EPOCH + timedelta(days=days)


def has_rows(path: Path) -> bool:
    """Return whether a built file exists and has rows; releases contain no empty files."""
    return path.is_file() and bool(pq.read_metadata(utf8_path(path)).num_rows)


def adopt(store: Store, table: Table, part: Part, path: Path, fingerprint: str) -> str | None:
    """Store a built file in the table's own folder and return its location; None if the file has no rows.

    The file is validated against the contract again, so no invalid file can be published.
    """
    if not has_rows(path):
        return None
    require_file(path, table)
    place = data_place(table, part, fingerprint)
    store.files.take(path, place)
    return f"{get_location(store)}/{place}"


def tag(catalogue: Catalog, table_name: str, snapshot_id: int, name: str, *, is_current: bool = True) -> None:
    """Tag a snapshot of a table, and make it the current one if `is_current`."""
    table = catalogue.load_table((NAMESPACE, table_name))
    head = table.current_snapshot()
    is_moved = is_current and (head is None or head.snapshot_id != snapshot_id)
    updates = [snapshots.current_as(snapshot_id)] if is_moved else []
    snapshots.commit(table, [snapshots.make_tag_update(name, snapshot_id), *updates])


def make_current(catalogue: Catalog, table_name: str, snapshot_id: int) -> None:
    """Make a snapshot the table's current one, unless it already is."""
    table = catalogue.load_table((NAMESPACE, table_name))
    head = table.current_snapshot()
    if head is None or head.snapshot_id != snapshot_id:
        snapshots.commit(table, [snapshots.current_as(snapshot_id)])


def list_snapshot_files(table: IcebergTable, snapshot_id: int, excluded: Container[str] = ()) -> Iterator[str]:
    """Yield the names of the files of a snapshot: its manifest list, the manifests and the data files.

    Manifests in `excluded` are skipped, with their files, since the previous release shares most of them.
    """
    name, snapshot = table.name()[-1], table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    yield get_relative_name(name, snapshot.manifest_list)
    for manifest in snapshot.manifests(table.io):
        if (place := get_relative_name(name, manifest.manifest_path)) in excluded:
            continue
        yield place
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield get_relative_name(name, entry.data_file.file_path)


def snapshot_files(catalogue: Catalog, table_name: str, snapshot_id: int) -> list[str]:
    """Return the data files of a snapshot as sorted paths relative to the warehouse's folder.

    Raises AssertionError if the snapshot has delete files, which plain Parquet readers would ignore.
    """
    table = catalogue.load_table((NAMESPACE, table_name))
    tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    assert not any(task.delete_files for task in tasks)
    return sorted(get_relative_name(table_name, task.file.file_path) for task in tasks)
