"""Rebuild damaged manifests and manifest lists from the cached index of a snapshot's data files.

Many snapshots share a manifest, so returning to an older, intact release is often impossible. The index of data files
(a cache of the module `releases`) is trusted if every file matches its checksum, and the number of files matches the
snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from iosig.warehouse.releases import seals
from iosig.warehouse.releases.catalogue import open_catalogue
from iosig.warehouse.releases.checksums import find_problem
from iosig.warehouse.releases.locations import get_location, get_relative_name
from iosig.warehouse.releases.releases import Release, make_list_name
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.releases.snapshots import FILE_COUNT, rewrite_manifests
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.store import Store, read_cache

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def rebuild_manifests(store: Store, current: Release, damaged: Collection[str]) -> bool:
    """Rewrite damaged manifests and their lists; return False if any file cannot be rebuilt.

    current: release with the seal that will record the new manifests.
    """
    if not all(name.endswith(".avro") for name in damaged):
        return False
    checksums = seals.all_checksums(store)
    rebuilt: set[str] = set()
    tables = {name.split("/")[1] for name in damaged}
    with open_catalogue(store) as catalogue:
        for table_name in tables:
            table = catalogue.load_table((NAMESPACE, table_name))
            for snapshot in table.metadata.snapshots:
                if is_whole(store, table, snapshot, checksums):
                    continue
                names = _data_files(store, table, snapshot, checksums)
                if names is None:
                    return False
                rebuilt |= _rebuild(store, table, snapshot, names)
    # no release names the damaged files any longer, neither this one nor an older one
    old = {name for name in checksums if name.endswith(".avro") and name.split("/")[1] in tables} - rebuilt
    damaged_names = {name for name in old if find_problem(store, name, checksums[name])}
    store.files.remove(*damaged_names)
    seals.unseal(store, damaged_names | rebuilt)
    seals.add(store, current, sorted(rebuilt))
    return True


def is_whole(store: Store, table: Table, snapshot: Snapshot, checksums: Mapping[str, FileChecksum]) -> bool:
    """Return whether a snapshot's manifests and manifest list match their checksums."""
    name = table.name()[-1]
    if not _is_as_written(store, get_relative_name(name, snapshot.manifest_list), checksums):
        return False
    manifests = snapshot.manifests(table.io)
    return all(
        _is_as_written(store, get_relative_name(name, manifest.manifest_path), checksums) for manifest in manifests
    )


def _is_as_written(store: Store, name: str, checksums: Mapping[str, FileChecksum]) -> bool:
    return bool(store.files.mark(name)) and (
        name not in checksums or find_problem(store, name, checksums[name]) is None
    )


def _data_files(
    store: Store, table: Table, snapshot: Snapshot, checksums: Mapping[str, FileChecksum]
) -> list[str] | None:
    """Return the data files of a snapshot from the cached index; None if the index is not trusted."""
    names = read_cache(
        store, make_list_name(table.name()[-1], snapshot.snapshot_id), lambda document: [str(name) for name in document]
    )
    count = snapshot.summary[FILE_COUNT] if snapshot.summary else None
    if names is None or count != str(len(names)):
        return None
    is_sound = all(name in checksums and find_problem(store, name, checksums[name]) is None for name in names)
    return names if is_sound else None


def _rebuild(store: Store, table: Table, snapshot: Snapshot, names: Collection[str]) -> set[str]:
    """Write one manifest with all data files, and a manifest list that names it; return both names."""
    root, table_name = get_location(store), table.name()[-1]
    store.files.remove(get_relative_name(table_name, snapshot.manifest_list))
    new_locations = rewrite_manifests(table, snapshot, [f"{root}/{name}" for name in names])
    return {get_relative_name(table_name, location) for location in new_locations}
