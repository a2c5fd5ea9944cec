"""The Iceberg catalogue: versions of published tables, in an SQLite file beside them or on a server.

Locations are absolute, as every reader of Iceberg resolves them. So they name the folder in which the warehouse lay
when they were written. In a moved or copied warehouse, iosig looks below its own folder instead, and
`iosig.warehouse.releases.relocating` rewrites them for other readers.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO, InputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO, parquet_files_to_data_files
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import CreateTableTransaction, Table as IcebergTable, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import TableUpdate, _apply_table_update, _TableMetadataUpdateContext
from pyiceberg.table.update.snapshot import ManageSnapshots, _OverwriteFiles
from pyiceberg.transforms import IdentityTransform

from iosig.warehouse.contracts import Table, arrow, frames
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import path_of_location, utf8_path
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.placing import SyncedStream, make_folder
from iosig.warehouse.releases.checksums import changing_catalogue
from iosig.warehouse.releases.database import SqlTables
from iosig.warehouse.releases.gathering import Gathering
from iosig.warehouse.releases.locations import (
    Part,
    data_place,
    location_of,
    metadata_locations,
    name_of,
    releases_location,
)
from iosig.warehouse.releases.servers import (
    EMBEDDED,
    NAMESPACE,
    Server,
    alone,
    engine_uri,
    require_installed,
    server_of,
)
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.typedef import Properties

    from iosig.warehouse.releases.rest import RestTables

_ROOT = "iosig.root"
_TABLES = "/tables/"
#: each commit leaves one metadata file of a table: so many earlier ones are kept
_KEPT_VERSIONS = 20
_HINT = "version-hint.text"
#: of a table with more manifests they are made one
_MOST_MANIFESTS = 20
_EPOCH = date(1970, 1, 1)
#: what a snapshot's summary says of its data files
FILE_COUNT = "total-data-files"
#: wherever metadata lie
_ANYWHERE = "anywhere"


class _SyncedFile(PyArrowFile):
    """A local file that is written to stay."""

    def create(self, overwrite: bool = False) -> SyncedStream:
        """Open the file for writing; without `overwrite` it must not be there yet."""
        make_folder(Path(self._path).parent)
        return SyncedStream(self._path, "wb" if overwrite else "xb")


class WarehouseFileIO(PyArrowFileIO):
    """Local files, found below the warehouse's own folder wherever it lay when they were named."""

    @staticmethod
    def parse_location(location: str, properties: Properties = {}) -> tuple[str, str, str]:  # noqa: B006
        """Return (scheme, netloc, path) of a location."""
        root = properties.get(_ROOT)
        if root and _TABLES in location and not location.startswith(f"{root}/"):
            location = root + _TABLES + location.rsplit(_TABLES, 1)[1]
        path = path_of_location(location)
        # pyiceberg parses a URL, and so ends a path at `?`, `#` or a line break
        return PyArrowFileIO.parse_location(location, properties) if path is None else ("file", "", path)

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to be written, which is on disk when it is closed."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _SyncedFile(location, path, self.fs_by_scheme(scheme, netloc))


def open_catalogue(store: Store) -> Gathering:
    """Open the warehouse's catalogue; it comes into being on first use."""
    make_folder(store.root)
    server = server_of(store)
    return _open_rest(store, server) if server.kind == "rest" else _open_sql(store, server)


def _open_rest(store: Store, server: Server) -> RestTables:
    from iosig.warehouse.releases import rest

    return rest.opened(server, store.files, **_in_store(), **{_ROOT: location_of(store)})


def _open_sql(store: Store, server: Server) -> SqlTables:
    require_installed(server)
    root = location_of(store)
    properties = {"uri": engine_uri(store, server), "warehouse": root, _ROOT: root}
    is_new = server == EMBEDDED and not store.catalogue.is_file()
    with changing_catalogue(store) if is_new else nullcontext():
        catalogue = SqlTables(server.name, **properties, **(_in_store() if store.url else _in_folder()))
        catalogue.files = store.files
        catalogue.create_namespace_if_not_exists(NAMESPACE)
    return catalogue


def _in_folder() -> dict[str, str]:
    return {"py-io-impl": f"{WarehouseFileIO.__module__}.{WarehouseFileIO.__qualname__}"}


def _in_store() -> dict[str, str]:
    from iosig.warehouse.store.objects import for_arrow

    return {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **for_arrow()}


def make_catalogue(store: Store, server: Server) -> None:
    """Make an empty catalogue for a warehouse."""
    with changing_catalogue(store) if server == EMBEDDED else nullcontext():
        catalogue = SqlCatalog(server.name, uri=engine_uri(store, server), warehouse=location_of(store))
        catalogue.create_namespace_if_not_exists(NAMESPACE)
        catalogue.close()


@contextmanager
def changed_at_once(store: Store, seen: str | None = _ANYWHERE) -> Iterator[Gathering]:
    """Open the catalogue to change several tables: all changes are seen together on leaving, or none after an error.

    The metadata must name the warehouse's own folder. seen: where the metadata of the releases lay when it was decided
    what to change; raises MachineFault where another writer has changed them since. Of a REST server that breaks off
    some tables may have changed; which release is the current one the rows of releases say, which change last.
    """
    server = server_of(store)
    with _changed_by_rest(store, server, seen) if server.kind == "rest" else _changed_by_sql(store, seen) as catalogue:
        yield catalogue


@contextmanager
def _changed_by_rest(store: Store, server: Server, seen: str | None) -> Iterator[Gathering]:
    from iosig.warehouse.releases import rest

    catalogue = _open_rest(store, server)
    rest.claim(catalogue, server, store.name)
    with closing(catalogue), rest.asked(server), catalogue.gathering(last=RELEASES.name):
        with suppress(NoSuchTableError):
            # what the server holds to the changes: whoever commits from now on is found out by it
            found = catalogue.load_table((NAMESPACE, RELEASES.name)).metadata_location
            _require_seen(store, seen, found)
        yield catalogue


def _require_seen(store: Store, seen: str | None, found: str | None) -> None:
    if seen not in (_ANYWHERE, found):
        raise MachineFault(f"Another writer changed the releases of {store.name} meanwhile. Run again.")


@contextmanager
def _changed_by_sql(store: Store, seen: str | None) -> Iterator[Gathering]:
    server = server_of(store)
    catalogue = _open_sql(store, server)
    engine = catalogue.engine
    try:
        with changing_catalogue(store) if server == EMBEDDED else nullcontext(), engine.begin() as connection:
            alone(connection, server)
            _require_seen(store, seen, releases_location(store))
            # what the catalogue commits becomes part of this
            catalogue.engine = connection  # type: ignore[assignment]
            with catalogue.gathering(last=RELEASES.name):
                yield catalogue
    finally:
        catalogue.engine = engine
        catalogue.close()


def leave_hints(store: Store, locations: Mapping[str, str] | None = None) -> None:
    """Say beside each table which of its metadata is the current one, for readers that have no catalogue.

    locations: where the metadata lie, if they were looked for already.
    """

    def leave(table_name: str, location: str) -> None:
        folder, name = name_of(table_name, location).removesuffix(".metadata.json").rsplit("/", 1)
        if store.files.content(f"{folder}/{_HINT}") != name.encode():
            store.files.put(f"{folder}/{_HINT}", name.encode())

    found = metadata_locations(store) if locations is None else locations
    store.files.each(lambda told: leave(*told), found.items())


def ensure(catalogue: Catalog, table: Table) -> IcebergTable:
    """Return the Iceberg table of a contract, made or widened to the contract's columns if need be."""
    found = _found(catalogue, table)
    return _create(catalogue, table) if found is None else _widened(found, table)


def _found(catalogue: Catalog, table: Table) -> IcebergTable | None:
    try:
        return catalogue.load_table((NAMESPACE, table.name))
    except NoSuchTableError:
        return None


def _widened(found: IcebergTable, table: Table) -> IcebergTable:
    """Return a table with the contract's columns; earlier snapshots keep the columns that they had."""
    schema = _documented(table)
    if TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED not in found.properties:
        with found.transaction() as transaction:
            transaction.set_properties(_properties(table, found.schema()))
    known = {field.name for field in found.schema().fields}
    # Rows that are there already have no value in a new column, whatever the contract asks of new ones.
    new = [field.with_nullable(True) for field in schema if field.name not in known]
    gone = known - set(schema.names)
    if new or gone:
        with found.update_schema(allow_incompatible_changes=bool(gone)) as update:
            update.union_by_name(pa.schema(new))
            for name in sorted(gone):
                update.delete_column(name)
    return found


def _documented(table: Table) -> pa.Schema:
    """Return a table's schema with each column's unit in its doc: Iceberg knows of no units."""
    units = {column.name: f" [{column.unit}]" if column.unit else "" for column in table.columns}
    docs = {column.name: column.doc + units[column.name] for column in table.columns}
    return pa.schema([field.with_metadata({"doc": docs[field.name]}) for field in arrow.schema(table)])


def _properties(table: Table, schema: Schema) -> dict[str, Any]:
    """Return what readers and later commits have to know of a table."""
    return {
        "comment": table.grain,
        TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: str(_KEPT_VERSIONS),
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
        # our files have no field ids: readers find their columns by name
        TableProperties.DEFAULT_NAME_MAPPING: schema.name_mapping.model_dump_json(),
    }


def _create(catalogue: Catalog, table: Table) -> IcebergTable:
    identifier = (NAMESPACE, table.name)
    if isinstance(catalogue, SqlCatalog):
        with _begun(catalogue, table):
            pass
        return catalogue.load_table(identifier)
    # a server makes it at once: without rows it is nobody's release
    fresh = assign_fresh_schema_ids(catalogue._convert_schema_if_needed(_documented(table)))
    spec, location = _partitioned(table, fresh), _location(catalogue, table)
    return catalogue.create_table(identifier, fresh, location, spec, properties=_properties(table, fresh))


def _begun(catalogue: SqlCatalog, table: Table) -> _Creating:
    """Return what makes a table, with all that is done to it before that is committed."""
    identifier = (NAMESPACE, table.name)
    staged = catalogue._create_staged_table(
        identifier, _documented(table), _location(catalogue, table), PartitionSpec()
    )
    made = _Creating(staged)
    made.set_properties(_properties(table, made.table_metadata.schema()))
    if table.partition:
        with made.update_spec() as changes:
            changes.add_field(table.partition, IdentityTransform(), table.partition)
    return made


def _location(catalogue: Catalog, table: Table) -> str:
    return f"{catalogue.properties[_ROOT]}/tables/{table.name}"


def _partitioned(table: Table, schema: Schema) -> PartitionSpec:
    if not table.partition:
        return PartitionSpec()
    source = schema.find_field(table.partition).field_id
    return PartitionSpec(PartitionField(source, PARTITION_FIELD_ID_START, IdentityTransform(), table.partition))


@dataclass(frozen=True, slots=True)
class Shown:
    """A snapshot of a table, and the names of its data files, sorted."""

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
) -> Shown:
    """Replace days of a table, all of it if `days` is None, by Parquet files of its own; return the snapshot.

    It is one snapshot, be there rows or not, with a tag; the one that there is where no row comes or goes. copies:
    where files of these locations lie on this machine, too.
    """
    found = _found(catalogue, table)
    if found is None and isinstance(catalogue, SqlCatalog):
        # with its first rows: there is one commit to wait for, and no table without a release
        made = _begun(catalogue, table)
        with made as transaction:
            return _snapshot(_Overwriting.of(made._table, transaction), None, locations, tag, copies or {})
    iceberg = _create(catalogue, table) if found is None else _widened(found, table)
    head, live = iceberg.current_snapshot(), _live(iceberg)
    files = [entry.data_file for _, entries in live for entry in entries]
    gone = {file for file in files if days is None or _day_of(file) in days}
    if head is not None and not gone and not locations:
        with _managed(iceberg) as changes:
            changes.create_tag(head.snapshot_id, tag)
        return Shown(head.snapshot_id, sorted(name_of(table.name, file.file_path) for file in files))
    with _Remembering(iceberg) as transaction:
        return _snapshot(_Overwriting.of(iceberg, transaction, live), gone, locations, tag, copies or {})


def _snapshot(
    snapshot: _Overwriting,
    gone: Collection[DataFile] | None,
    locations: Collection[str],
    tag: str,
    copies: Mapping[str, Path],
) -> Shown:
    """Put a snapshot with a tag into a transaction: without some files, with some more; return what it shows."""
    transaction = snapshot._transaction
    io = cast(FileIO, _Copies(snapshot._io, copies))
    with snapshot:
        for file in gone or ():
            snapshot.delete_data_file(file)
        for file in parquet_files_to_data_files(io, transaction.table_metadata, iter(locations)):
            snapshot.append_data_file(file)
    ManageSnapshots(transaction).create_tag(snapshot.snapshot_id, tag).commit()
    left = (entry.data_file for _, entries in snapshot.live for entry in entries)
    kept = [file.file_path for file in left if file not in (gone or ())]
    table_name = transaction._table.name()[-1]
    return Shown(snapshot.snapshot_id, sorted(name_of(table_name, place) for place in (*kept, *locations)))


@dataclass(frozen=True, slots=True)
class _Copies:
    """Files to be read, from this machine where they lie on it, too."""

    io: FileIO
    copies: Mapping[str, Path]

    def new_input(self, location: str) -> InputFile:
        """Return a file to be read."""
        copy = self.copies.get(location)
        return self.io.new_input(location) if copy is None else PyArrowFileIO().new_input(str(copy))


class _Remembering(Transaction):
    """A transaction that adds each change to its metadata once, where pyiceberg makes them from all at each look."""

    #: from which metadata it began, which changes they got, what came of them
    _made: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None
    _changing: _TableMetadataUpdateContext

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the changes so far."""
        base, updates = self._table.metadata, self._updates
        begun, known, metadata = self._made or (None, (), base)
        if begun is not base or known != updates[: len(known)]:
            known, metadata = (), base
        if not known:
            self._changing = _TableMetadataUpdateContext()
        for update in updates[len(known) :]:
            metadata = _apply_table_update(update, metadata, self._changing)
        self._made = base, updates, metadata
        return metadata


class _Creating(_Remembering, CreateTableTransaction):
    """The same for a table that is made."""


@contextmanager
def _managed(table: IcebergTable) -> Iterator[ManageSnapshots]:
    """Give what changes the names of a table's snapshots, in one commit."""
    with _Remembering(table) as transaction:
        changes = ManageSnapshots(transaction)
        yield changes
        changes.commit()


class _Overwriting(_OverwriteFiles):
    """Overwriting files without dragging along what earlier overwriting did.

    pyiceberg's own keeps every manifest for good that says what was once deleted, and one of each commit: a table that
    changes every night would have as many as there were nights, in the list of each of its snapshots.
    """

    live: Sequence[tuple[ManifestFile, list[ManifestEntry]]]

    @classmethod
    def of(
        cls,
        table: IcebergTable,
        transaction: Transaction,
        live: Sequence[tuple[ManifestFile, list[ManifestEntry]]] = (),
    ) -> Self:
        """Begin a snapshot of a table, whose files are named by it; live: the files of the snapshot before."""
        operation = Operation.APPEND if table.current_snapshot() is None else Operation.OVERWRITE
        begun = cls(operation, transaction, table.io)
        begun.live = live
        return begun

    def _deleted_entries(self) -> list[ManifestEntry]:
        """Return what goes.

        pyiceberg's own asks many manifests at once of one evaluator, which remembers at which it is: now and then it
        passes over one that names what is to go.
        """
        gone = [entry for _, entries in self.live for entry in entries if entry.data_file in self._deleted_data_files]
        found = [self._as(ManifestEntryStatus.DELETED, entry, self._snapshot_id) for entry in gone]
        self._validate_required_deletes(found)
        return found

    def _existing_manifests(self) -> list[ManifestFile]:
        """Return the manifests of what stays: those that nothing is taken from, and one of all else."""
        whole: list[ManifestFile] = []
        loose: list[ManifestEntry] = []
        for manifest, entries in self.live:
            left = [entry for entry in entries if entry.data_file not in self._deleted_data_files]
            if len(left) == len(entries) and len(self.live) <= _MOST_MANIFESTS:
                whole.append(manifest)
            else:
                loose += left
        return [*whole, self._manifest_of(loose)] if loose else whole

    def _manifest_of(self, entries: list[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self._transaction.table_metadata.spec()) as writer:
            for entry in entries:
                writer.add_entry(self._as(ManifestEntryStatus.EXISTING, entry, entry.snapshot_id))
        return writer.to_manifest_file()

    @staticmethod
    def _as(status: ManifestEntryStatus, entry: ManifestEntry, snapshot_id: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


def _live(table: IcebergTable) -> list[tuple[ManifestFile, list[ManifestEntry]]]:
    """Return the manifests of a table's snapshot that name files, with these."""
    head = table.current_snapshot()
    if head is None or (head.summary is not None and head.summary[FILE_COUNT] == "0"):
        # nothing needs to be opened for that
        return []
    manifests = head.manifests(table.io)
    live = [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]
    return [(manifest, manifest.fetch_manifest_entry(table.io, discard_deleted=True)) for manifest in live]


def _day_of(file: DataFile) -> date | None:
    days = file.partition[0] if len(file.partition) else None
    return None if days is None else _EPOCH + timedelta(days=days)


def adopt(store: Store, table: Table, part: Part, path: Path, fingerprint: str) -> str | None:
    """Bring a built file into the table's own folder and return its location; None where it has no rows.

    Whoever wrote the file, and whenever: it is held to the contract once more, so that nothing else is published.
    """
    if not path.is_file() or not pq.read_metadata(utf8_path(path)).num_rows:
        return None
    frames.require_file(path, table)
    place = data_place(table, part, fingerprint)
    store.files.take(path, place)
    return f"{location_of(store)}/{place}"


def tag(catalogue: Catalog, table_name: str, snapshot_id: int, name: str, *, is_current: bool = True) -> None:
    """Give a snapshot of a table a name, and make it the table's current one if it is to be that."""
    table = catalogue.load_table((NAMESPACE, table_name))
    head = table.current_snapshot()
    with _managed(table) as changes:
        changes.create_tag(snapshot_id, name)
        if is_current and (head is None or head.snapshot_id != snapshot_id):
            changes.set_current_snapshot(snapshot_id)


def make_current(catalogue: Catalog, table_name: str, snapshot_id: int) -> None:
    """Make a snapshot the table's current one, if it is not that."""
    table = catalogue.load_table((NAMESPACE, table_name))
    head = table.current_snapshot()
    if head is None or head.snapshot_id != snapshot_id:
        with _managed(table) as changes:
            changes.set_current_snapshot(snapshot_id)


def files_named(table: IcebergTable, snapshot: Snapshot, known: Container[str] = ()) -> Iterator[str]:
    """Yield the names of the files of a snapshot: its list of manifests, these, and the data.

    Manifests that are known are passed over, with what they name: most are those of the release before.
    """
    name = table.name()[-1]
    yield name_of(name, snapshot.manifest_list)
    for manifest in snapshot.manifests(table.io):
        if (place := name_of(name, manifest.manifest_path)) in known:
            continue
        yield place
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield name_of(name, entry.data_file.file_path)


def snapshot_files(catalogue: Catalog, table_name: str, snapshot_id: int) -> list[str]:
    """Return the data files of a snapshot, relative to the warehouse's folder, sorted.

    Raises AssertionError if the snapshot has delete files, which plain Parquet readers would ignore.
    """
    table = catalogue.load_table((NAMESPACE, table_name))
    tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    assert not any(task.delete_files for task in tasks)
    return sorted(name_of(table_name, task.file.file_path) for task in tasks)
