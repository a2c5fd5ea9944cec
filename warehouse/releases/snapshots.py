"""Write manifests and commit snapshots of Iceberg tables with pyiceberg's public functions.

pyiceberg's own overwrite is not used, for two reasons. It keeps every manifest that ever named a deleted file, one per
commit, so a table that changes in each nightly run would accumulate one manifest per night. It also finds the files to
delete with an evaluator that its threads share, so it can miss some files.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

from pyiceberg.io import FileIO, InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO, parquet_files_to_data_files
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile, write_manifest, write_manifest_list
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

#: manifests, each with the entries that name files
Live = Sequence[tuple[ManifestFile, list[ManifestEntry]]]
#: field in a snapshot's summary with the number of data files
FILE_COUNT = "total-data-files"
_FORMAT: Final = 2
_CODEC: Final = "deflate"
#: above this number of manifests, the entries of a table are merged into one
_MAX_MANIFESTS = 20


@dataclass(frozen=True, slots=True)
class _Copies:
    """Opens input files, from local copies where available."""

    io: FileIO
    copies: Mapping[str, Path]

    def new_input(self, location: str) -> InputFile:
        """Open a location for reading, from its local copy if it has one."""
        copy = self.copies.get(location)
        return self.io.new_input(location) if copy is None else PyArrowFileIO().new_input(str(copy))


def live_manifests(table: Table) -> Live:
    """Return the manifests in a table's current snapshot that name any file, with their entries."""
    head = table.current_snapshot()
    if head is None or (head.summary is not None and head.summary[FILE_COUNT] == "0"):
        # the snapshot is empty, so no manifest needs to be opened
        return []
    manifests = head.manifests(table.io)
    live = [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]
    return [(manifest, manifest.fetch_manifest_entry(table.io, discard_deleted=True)) for manifest in live]


def data_files(table: Table, locations: Iterable[str], copies: Mapping[str, Path] | None = None) -> list[DataFile]:
    """Describe Parquet files as manifest entries of a table; copies: local copies of some files."""
    io = cast(FileIO, _Copies(table.io, copies or {}))
    return list(parquet_files_to_data_files(io, table.metadata, iter(locations)))


def write_snapshot(table: Table, live: Live, removed: Collection[DataFile], added: Sequence[DataFile]) -> Snapshot:
    """Write the manifests of a new snapshot on top of a table's current one, without committing it."""
    metadata, head = table.metadata, table.current_snapshot()
    snapshot_id, sequence = metadata.new_snapshot_id(), metadata.next_sequence_number()
    added_entries = [_entry(ManifestEntryStatus.ADDED, file, snapshot_id) for file in added]
    old = [entry for _, entries in live for entry in entries if entry.data_file in removed]
    deleted = [_copy_entry(ManifestEntryStatus.DELETED, entry, snapshot_id) for entry in old]
    reused: list[ManifestFile] = []
    existing: list[ManifestEntry] = []
    for manifest, entries in live:
        remaining = [entry for entry in entries if entry.data_file not in removed]
        if len(remaining) == len(entries) and len(live) <= _MAX_MANIFESTS:
            reused.append(manifest)
        else:
            existing += [_copy_entry(ManifestEntryStatus.EXISTING, entry, entry.snapshot_id) for entry in remaining]
    manifests = [_manifest(table, snapshot_id, entries) for entries in (added_entries, deleted, existing) if entries]
    place = table.location_provider().new_metadata_location(f"snap-{snapshot_id}-0-{uuid.uuid4()}.avro")
    parent_id = head.snapshot_id if head else None
    _write_list(table, place, snapshot_id, parent_id, sequence, [*manifests, *reused])
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent_id,
        manifest_list=place,
        sequence_number=sequence,
        summary=_summary(table, head, added, removed),
        schema_id=metadata.current_schema_id,
    )


def rewrite_manifests(table: Table, snapshot: Snapshot, locations: Sequence[str]) -> list[str]:
    """Write one new manifest with all files of a snapshot, and a manifest list for it; return both locations."""
    sequence = snapshot.sequence_number or 0
    entries = [
        _entry(ManifestEntryStatus.EXISTING, file, snapshot.snapshot_id, sequence)
        for file in data_files(table, locations)
    ]
    manifests = [_manifest(table, snapshot.snapshot_id, entries)] if entries else []
    parent_id = snapshot.parent_snapshot_id
    _write_list(table, snapshot.manifest_list, snapshot.snapshot_id, parent_id, sequence, manifests)
    return [snapshot.manifest_list, *(manifest.manifest_path for manifest in manifests)]


def _entry(
    status: ManifestEntryStatus, file: DataFile, snapshot_id: int | None, sequence: int | None = None
) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=sequence,
        file_sequence_number=sequence,
        data_file=file,
    )


def _copy_entry(status: ManifestEntryStatus, entry: ManifestEntry, snapshot_id: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def _manifest(table: Table, snapshot_id: int, entries: Iterable[ManifestEntry]) -> ManifestFile:
    place = table.location_provider().new_metadata_location(f"{uuid.uuid4()}-m0.avro")
    output = table.io.new_output(place)
    with write_manifest(_FORMAT, table.spec(), table.schema(), output, snapshot_id, _CODEC) as writer:
        for entry in entries:
            writer.add_entry(entry)
    return writer.to_manifest_file()


def _write_list(
    table: Table,
    place: str,
    snapshot_id: int,
    parent_id: int | None,
    sequence: int,
    manifests: list[ManifestFile],
) -> None:
    output = table.io.new_output(place)
    with write_manifest_list(_FORMAT, output, snapshot_id, parent_id, sequence, _CODEC) as writer:
        writer.add_manifests(manifests)


def _summary(table: Table, head: Snapshot | None, added: Iterable[DataFile], removed: Iterable[DataFile]) -> Summary:
    counts = SnapshotSummaryCollector()
    for file in added:
        counts.add_file(file, table.schema(), table.spec())
    for file in removed:
        counts.remove_file(file, table.schema(), table.spec())
    summary = Summary(operation=Operation.APPEND if head is None else Operation.OVERWRITE, **counts.build())
    return update_snapshot_summaries(summary, head.summary if head is not None else None)


# ---- changes


def adding(snapshot: Snapshot) -> tuple[TableUpdate, ...]:
    """Return the updates that make a new snapshot a table's current one."""
    return AddSnapshotUpdate(snapshot=snapshot), current_as(snapshot.snapshot_id)


def current_as(snapshot_id: int) -> SetSnapshotRefUpdate:
    """Return the update that makes a snapshot a table's current one."""
    return _reference(MAIN_BRANCH, SnapshotRefType.BRANCH, snapshot_id)


def make_tag_update(name: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    """Return the Iceberg update that makes the tag `name` refer to a snapshot."""
    return _reference(name, SnapshotRefType.TAG, snapshot_id)


def _reference(
    name: str, kind: Literal[SnapshotRefType.TAG, SnapshotRefType.BRANCH], snapshot_id: int
) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate.model_validate({"ref-name": name, "type": kind, "snapshot-id": snapshot_id})


def without(tags: Iterable[str], snapshot_ids: Sequence[int]) -> list[TableUpdate]:
    """Return the updates that remove tags and snapshots of a table."""
    removed: list[TableUpdate] = [RemoveSnapshotRefUpdate.model_validate({"ref-name": tag}) for tag in tags]
    if snapshot_ids:
        removed.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": snapshot_ids}))
    return removed


def differences(before: TableMetadata, after: TableMetadata) -> list[TableUpdate]:
    """Return the updates that change a table's schema and properties from those in `before` to those in `after`."""
    updates: list[TableUpdate] = []
    if after.properties != before.properties:
        updates.append(SetPropertiesUpdate(updates=after.properties))
    if after.current_schema_id != before.current_schema_id:
        added = AddSchemaUpdate.model_validate({"schema": after.schema()})
        updates += [added, SetCurrentSchemaUpdate.model_validate({"schema-id": after.current_schema_id})]
    return updates


def commit(table: Table, updates: Sequence[TableUpdate]) -> None:
    """Commit updates to a table in the state in which it was loaded.

    Raises CommitFailedException if another writer has changed the same references or the schema.
    """
    refs = table.metadata.refs
    requirements: list[TableRequirement] = [AssertTableUUID(uuid=table.metadata.table_uuid)]
    for update in updates:
        # a table without snapshots cannot have tags
        if isinstance(update, SetSnapshotRefUpdate) and (refs or update.ref_name == MAIN_BRANCH):
            ref = refs.get(update.ref_name)
            payload = {"ref": update.ref_name, "snapshot-id": ref.snapshot_id if ref else None}
            requirements.append(AssertRefSnapshotId.model_validate(payload))
        elif isinstance(update, AddSchemaUpdate):
            known_schema = {"current-schema-id": table.metadata.current_schema_id}
            requirements.append(AssertCurrentSchemaId.model_validate(known_schema))
    table.catalog.commit_table(table, tuple(requirements), tuple(updates))
