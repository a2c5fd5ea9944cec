"""Write and check seals, documents with the SHA-256 of every file that a release added, so that damage is detected.

A release's files are its Parquet files, the Iceberg metadata that name them, and the manifests of its landings. Each
landing's manifest has the SHA-256 of the landing's own files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import checksums, releases
from iosig.warehouse.releases.checksums import SEALS, checksums_now, find_problem, release_seals
from iosig.warehouse.releases.locations import get_relative_name, metadata_locations
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.store import Store, put_document, read_cache

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

#: cache of released files that passed their last check
_VERIFIED_FILES = "sound.json"
_TRUSTED_S = 86_400.0
_REMEDY = "`iosig repair`, then `iosig run` computes it again."


def make_seal_name(release: Release) -> str:
    """Return the file name of a release's seal."""
    return f"{SEALS}/{release.sequence:06}-{release.release_id}.json"


def is_sealed(store: Store, release: Release) -> bool:
    """Return whether a release has a seal, even a damaged one."""
    return bool(store.files.mark(make_seal_name(release)))


def seal(
    store: Store,
    release: Release,
    tables: Mapping[str, IcebergTable] | None = None,
    copies: Mapping[str, Path] | None = None,
) -> None:
    """Record the SHA-256 of all files that a release has in addition to its predecessor's.

    tables: those of the catalogue, if already loaded; copies: local copies of some of the files.
    """
    checksums.write(
        store, make_seal_name(release), checksums_now(store, _list_added_files(store, release, tables), copies)
    )


def _list_added_files(store: Store, release: Release, tables: Mapping[str, IcebergTable] | None) -> Iterator[str]:
    """Yield the files that a release added, relative to the warehouse's root."""
    earlier = [
        release_kept for release_kept in releases.list_readable(store) if release_kept.sequence < release.sequence
    ]
    before = earlier[-1] if earlier else None
    old = {path for paths in releases.files_of(store, before).values() for path in paths} if before else set()
    for paths in releases.files_of(store, release).values():
        yield from (path.relative_to(store.root).as_posix() for path in paths if path not in old)
    from iosig.warehouse.store import ledger

    brought = releases.inputs(store, [release.release_id]).filter(is_removed=False)["landing_id"]
    yield from map(manifest_in, ledger.read(store).select_landings(brought)["folder"].unique().sort())
    if tables is None:
        from iosig.warehouse.releases.catalogue import open_catalogue

        with closing(open_catalogue(store)) as catalogue:
            tables = catalogue.all_tables()
    for names in store.files.each(lambda table: list(_metadata(table, release, earlier)), tables.values()):
        yield from names


def _metadata(table: IcebergTable, release: Release, earlier: Sequence[Release]) -> Iterator[str]:
    """Yield the metadata files that a release added to a table, and for `releases` also the file with its row."""
    name = table.name()[-1]
    yield get_relative_name(name, table.metadata_location)
    snapshot_id = release.snapshots.get(name)
    snapshot = table.current_snapshot() if name == RELEASES.name else snapshot_id and table.snapshot_by_id(snapshot_id)
    earlier_ids = {earlier_release.snapshots.get(name) for earlier_release in earlier}
    if not snapshot or snapshot.snapshot_id in earlier_ids:
        return
    yield get_relative_name(name, snapshot.manifest_list)
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id not in earlier_ids:
            yield get_relative_name(name, manifest.manifest_path)
    if name == RELEASES.name:
        for task in table.scan().plan_files():
            if release.release_id in task.file.file_path:
                yield get_relative_name(name, task.file.file_path)


def seal_metadata(store: Store, release: Release) -> None:
    """Replace the metadata files in the current release's seal by the tables' current ones.

    The files with rows of all releases are updated too.
    """
    recorded = checksums.read(store, make_seal_name(release))
    if recorded is not None:
        files = {name: sealed for name, sealed in recorded.items() if not name.endswith(".metadata.json")}
        checksums.write(store, make_seal_name(release), files | checksums_now(store, _current_metadata(store)))


def seal_whole(store: Store, release: Release) -> None:
    """Record the SHA-256 of all files of a release, which need not be the latest, and of the current metadata."""
    from iosig.warehouse.releases.catalogue import list_snapshot_files, open_catalogue

    names = _current_metadata(store)
    with open_catalogue(store) as catalogue:
        for name, snapshot_id in release.snapshots.items():
            names.update(list_snapshot_files(catalogue.load_table((NAMESPACE, name)), snapshot_id))
    checksums.write(store, make_seal_name(release), checksums_now(store, sorted(names)))


def _current_metadata(store: Store) -> set[str]:
    """Return the metadata files that define which files and releases exist now."""
    from iosig.warehouse.releases.catalogue import list_snapshot_files, open_catalogue

    names = {get_relative_name(table, location) for table, location in metadata_locations(store).items()}
    with open_catalogue(store) as catalogue:
        rows = catalogue.load_table((NAMESPACE, RELEASES.name))
        if head := rows.current_snapshot():
            names.update(list_snapshot_files(rows, head.snapshot_id))
    return names


def add(store: Store, release: Release, names: Iterable[str]) -> None:
    """Add files to a release's seal, with their current checksums."""
    recorded = checksums.read(store, make_seal_name(release)) or {}
    checksums.write(store, make_seal_name(release), recorded | checksums_now(store, names))


def unseal(store: Store, names: set[str]) -> None:
    """Remove files from all seals because they were deleted on purpose."""
    for seal in release_seals(store):
        recorded = checksums.read(store, seal)
        if recorded is not None and names & recorded.keys():
            checksums.write(store, seal, {name: sealed for name, sealed in recorded.items() if name not in names})


def all_checksums(store: Store) -> dict[str, FileChecksum]:
    """Merge the checksums of all releases' files; if documents differ, the latest one takes precedence."""
    merged: dict[str, FileChecksum] = {}
    for name in release_seals(store):
        merged |= checksums.read(store, name) or {}
    return merged


def replace_checksums(store: Store, files: Mapping[str, FileChecksum]) -> None:
    """Update the checksums of rewritten files in every document that records them."""
    for name in release_seals(store):
        recorded = checksums.read(store, name)
        if recorded is not None:
            checksums.write(
                store, name, recorded | {file_name: files[file_name] for file_name in recorded.keys() & files.keys()}
            )


def require_sound(store: Store, paths: Iterable[Path]) -> None:
    """Raise MachineFault if a file differs from its checksum.

    A file that passed within the last day, and that is unchanged according to the file system, is not read again.
    """
    marks = read_cache(store, _VERIFIED_FILES, _marks) or {}
    verified: dict[str, list[float]] = {}
    now, recorded = time.time(), None
    for path in paths:
        name = path.relative_to(store.root).as_posix()
        mark = store.files.mark(name)
        *verified_mark, verified_at = marks.get(name, [0.0])
        if verified_mark == mark and 0 <= now - verified_at < _TRUSTED_S:
            continue
        recorded = all_checksums(store) if recorded is None else recorded
        if name in recorded:
            # an object store verifies its own checksums, so nothing is read for this
            is_as_long = store.url is not None and mark[:1] == [recorded[name].byte_count]
            if not is_as_long and (problem := find_problem(store, name, recorded[name])):
                raise MachineFault(f"{path} {problem}. `iosig verify` lists all damaged files; {_REMEDY}")
            verified[name] = [*mark, now]
    if verified:
        with suppress(OSError):
            trusted = {name: mark for name, mark in (marks | verified).items() if now - mark[-1] < _TRUSTED_S}
            put_document(store, _VERIFIED_FILES, trusted)


def _marks(document: Any) -> dict[str, list[float]]:
    # keep integers exact: nanoseconds since 1970 exceed the precision of a float
    return {name: [number + 0 for number in mark] for name, mark in document.items() if mark}
