"""Expire old releases: remove their tags, then their snapshots, and later their files.

The newest releases and the pinned ones are kept. Files are shared between releases, and a file that a kept release
names is never removed. Expired releases stay in the history as rows. Their files are removed after a day, and only
while no reader is active, so that a reader of an old release can finish.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.releases import releases, seals
from iosig.warehouse.releases.locations import LISTS, data_place, get_location, get_relative_name, metadata_locations
from iosig.warehouse.releases.releases import EXPIRED, Release
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.store.files import LockHeldError
from iosig.warehouse.store.state import put_state, read_state
from iosig.warehouse.store.store import Store, put_parquet, read_cache

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as IcebergTable

_PINS, _LEAVING = "pins.json", "leaving.json"
#: time between the expiry of a release and the removal of its files [s]
GRACE_S = 86_400.0
#: maximum number of files with rows of `releases`
_MAX_ROW_FILES = 50


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """The newly expired releases, and the number and size of the removed files, as `maintain` returns them."""

    release_ids: tuple[str, ...]
    file_count: int
    byte_count: int


# ---- pins


def pins(store: Store) -> dict[str, str | None]:
    """Map each pinned release, which never expires by the settings, to the pin's last day; None for a pin without end.

    Raises MachineFault if the list is damaged, since any release might be pinned.
    """
    document = read_state(store, _PINS)
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(until, str | None) for until in document.values()):
        raise MachineFault(f"{store.root / _PINS} is damaged. Remove it, then pin releases again.")
    return document


def pin(store: Store, release_id: str, until: date | None = None) -> Release:
    """Pin a release through the given day, or until it is unpinned. Raises UsageError if the release does not exist."""
    release = releases.find(store, release_id)
    put_state(store, _PINS, pins(store) | {release.release_id: until.isoformat() if until else None})
    return release


def repin(store: Store, release_id: str, successor_id: str | None) -> None:
    """Move the pin of a superseded release to its successor; without a successor, remove the pin."""
    pinned = pins(store)
    if release_id in pinned:
        new = {successor_id: pinned[release_id]} if successor_id else {}
        other_pins = {name: until for name, until in pinned.items() if successor_id or name != release_id}
        put_state(store, _PINS, other_pins | new)


def unpin(store: Store, release_id: str) -> Release:
    """Remove the pin of a release. Raises UsageError if it is not pinned."""
    release, pinned = releases.find(store, release_id), pins(store)
    if release.release_id not in pinned:
        raise UsageError(f"{release.release_id} is not pinned. `iosig releases` lists pinned releases.")
    put_state(store, _PINS, {name: until for name, until in pinned.items() if name != release.release_id})
    return release


# ---- releases


def expire(store: Store, keep_count: int) -> list[Release]:
    """Expire all releases except the newest `keep_count`, pinned ones and the current one; return the expired ones.

    keep_count: 1 or more. Tags and snapshots are removed immediately; `remove` deletes the files once no reader can be
    using them. If a call is killed, the next one completes it.
    """
    from iosig.warehouse.releases.catalogue import leave_hints, open_transaction

    expiring_releases = _going(store, keep_count)
    expired = releases.read_expired(store) | {release.release_id: _now() for release in expiring_releases}
    if not expired:
        return []
    if expiring_releases or _has_tags(store, set(expired)):
        with open_transaction(store) as catalogue:
            tables = _letting_go(catalogue, store, set(expired))
            put_state(store, EXPIRED, expired)
            for table in tables:
                _without(table, set(expired))
            _join_rows(catalogue, store)
    leave_hints(store)
    seals.seal_metadata(store, releases.find(store, None))
    return expiring_releases


def discard(store: Store, release_ids: Collection[str]) -> None:
    """Remove the tags and snapshots of superseded releases, and queue their files for `remove`.

    If a call is killed, the next one completes it.
    """
    from iosig.warehouse.releases.catalogue import leave_hints, open_transaction

    expired_tags = set(release_ids)
    if _has_tags(store, expired_tags):
        with open_transaction(store) as catalogue:
            for table in _letting_go(catalogue, store, expired_tags):
                _without(table, expired_tags)
    leave_hints(store)
    seals.seal_metadata(store, releases.find(store, None))


def _letting_go(catalogue: Catalog, store: Store, expired_tags: set[str]) -> list[IcebergTable]:
    """Queue the files that only the expiring releases name for removal, and return all tables."""
    tables = [catalogue.load_table((NAMESPACE, name)) for name in metadata_locations(store)]
    names = {name for table in tables for name in _going_files(table, expired_tags)}
    put_state(store, _LEAVING, dict.fromkeys(names, time.time()) | _leaving(store))
    return tables


def _going_files(table: IcebergTable, expired_tags: set[str]) -> set[str]:
    """Return the files of expiring snapshots, except those of manifests that a remaining snapshot names."""
    expiring_ids = set(_find_untagged_snapshots(table, expired_tags))
    if not expiring_ids:
        return set()
    remaining = (snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in expiring_ids)
    name = table.name()[-1]
    kept_manifests = {
        get_relative_name(name, manifest.manifest_path)
        for snapshot in remaining
        for manifest in snapshot.manifests(table.io)
    }
    return _list_snapshot_files(table, expiring_ids, kept_manifests)


def waiting_count(store: Store) -> int:
    """Return the number of files that are waiting for removal."""
    return len(_leaving(store))


def _going(store: Store, keep_count: int) -> list[Release]:
    """Return the unexpired releases that are neither within the newest `keep_count` nor pinned."""
    today, pinned = datetime.now(UTC).date(), pins(store)
    is_kept = {name for name, until in pinned.items() if until is None or date.fromisoformat(until) >= today}
    expired_ids = releases.read_expired(store)
    readable = [release for release in releases.history(store) if release.release_id not in expired_ids]
    return [release for release in readable[: -max(keep_count, 1)] if release.release_id not in is_kept]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _has_tags(store: Store, expired_tags: set[str]) -> bool:
    """Return whether any table still has the tag of an expired release, because an expiry was killed."""
    from iosig.warehouse.releases.catalogue import open_catalogue

    if not expired_tags:
        return False
    with open_catalogue(store) as catalogue:
        return any(_tags(catalogue.load_table((NAMESPACE, name)), expired_tags) for name in metadata_locations(store))


def _tags(table: IcebergTable, expired_tags: set[str]) -> list[str]:
    return sorted(set(table.metadata.refs) & expired_tags)


def _find_untagged_snapshots(table: IcebergTable, expired_tags: set[str]) -> list[int]:
    """Return the snapshots that no tag names once the expired tags are gone; the current one is kept."""
    tagged_ids = {ref.snapshot_id for name, ref in table.metadata.refs.items() if name not in expired_tags}
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in tagged_ids]


def _without(table: IcebergTable, expired_tags: set[str]) -> None:
    """Remove the tags of expired releases from a table, and the snapshots that then have no tag."""
    from iosig.warehouse.releases import snapshots

    if updates := snapshots.without(_tags(table, expired_tags), _find_untagged_snapshots(table, expired_tags)):
        snapshots.commit(table, updates)


def _join_rows(catalogue: Catalog, store: Store) -> None:
    """Merge the files with rows of releases into one if many have accumulated; each release adds a file."""
    from iosig.warehouse.releases.catalogue import replace

    scan = catalogue.load_table((NAMESPACE, RELEASES.name)).scan()
    if len(list(scan.plan_files())) <= _MAX_ROW_FILES:
        return
    rows = releases.rows(store)
    last = rows["release_id"][-1]
    place = data_place(RELEASES, None, f"up-to-{last}")
    put_parquet(store, rows, RELEASES, place)
    replace(catalogue, RELEASES, [f"{get_location(store)}/{place}"], days=None, tag=last)


# ---- their files


def _list_snapshot_files(table: IcebergTable, snapshot_ids: Iterable[int], excluded: Collection[str] = ()) -> set[str]:
    """Return the names of all files in the given snapshots of a table; other snapshots may name these files too.

    excluded: manifests to skip, with their files.
    """
    from iosig.warehouse.releases.catalogue import list_snapshot_files

    names: set[str] = set()
    for snapshot_id in snapshot_ids:
        # manifests that several snapshots share are read once
        names.update(list_snapshot_files(table, snapshot_id, {*excluded, *names}))
        names.add(f"{LISTS}/{table.name()[-1]}-{snapshot_id}.json")
    return names


def _leaving(store: Store) -> dict[str, float]:
    """Return the files waiting for removal, with the time at which they were queued.

    If the list is damaged, all unreferenced files are queued again, as of now.
    """
    queued = read_cache(
        store, _LEAVING, lambda document: {name: float(queued_at) for name, queued_at in document.items()}
    )
    if queued is not None or store.files.content(_LEAVING) is None:
        return queued or {}
    tables = metadata_locations(store)
    patterns = (f"tables/{name}/{kind}" for name in tables for kind in ("data/*.parquet", "metadata/*.avro"))
    existing = {name for pattern in (*patterns, f"{LISTS}/*.json") for name in store.files.matching(pattern)}
    requeued = dict.fromkeys(sorted(existing - _in_use(store, set(tables))), time.time())
    put_state(store, _LEAVING, requeued)
    return requeued


def remove(store: Store, grace_s: float = GRACE_S) -> tuple[int, int]:
    """Delete unreferenced files that have been queued for longer than `grace_s`; return their number and size.

    Nothing is deleted while a release is being read.
    """
    leaving = _leaving(store)
    now = time.time()
    due = {name for name, queued_at in leaving.items() if not 0 <= now - queued_at < grace_s}
    if not due:
        return 0, 0
    try:
        with store.files.lock(releases.READING):
            unused = sorted(due - _in_use(store, {name.split("/")[1] for name in due if name.startswith("tables/")}))
            sizes = [mark[0] for name in unused if (mark := store.files.mark(name))]
            seals.unseal(store, set(unused))
            store.files.remove(*unused)
    except LockHeldError:
        return 0, 0
    put_state(store, _LEAVING, {name: queued_at for name, queued_at in leaving.items() if name not in due})
    return len(sizes), int(sum(sizes))


def _in_use(store: Store, table_names: set[str]) -> set[str]:
    """Return the files of the given tables that any remaining snapshot names."""
    from iosig.warehouse.releases.catalogue import open_catalogue

    with open_catalogue(store) as catalogue:
        tables = [catalogue.load_table((NAMESPACE, name)) for name in sorted(table_names)]
        names = {
            name
            for table in tables
            for name in _list_snapshot_files(table, (snapshot.snapshot_id for snapshot in table.metadata.snapshots))
        }
    kept_releases = releases.list_readable(store)
    paths = (
        path for release in kept_releases for files in releases.files_of(store, release).values() for path in files
    )
    return names | {path.relative_to(store.root).as_posix() for path in paths}


def maintain(
    store: Store, keep_count: int | None, grace_s: float = GRACE_S, *, is_nightly: bool = False
) -> ExpiryResult:
    """Expire releases if `keep_count` is given, and delete queued files. The caller must lock the warehouse.

    is_nightly: act only if the number of releases exceeds `keep_count` by a tenth, since each pass reads all kept
    releases.
    """
    removed = remove(store, grace_s)
    expired: list[Release] = []
    if keep_count is not None and not (is_nightly and len(_going(store, keep_count)) <= keep_count // 10):
        expired = expire(store, keep_count)
    return ExpiryResult(tuple(release.release_id for release in expired), *removed)
