"""Supersede a kept release by one that lacks some data; the old id then redirects to the new release.

The successor takes the release's position in the history. One commit to the catalogue adds its snapshots to all tables
and replaces the release's row; newer releases are unchanged. Files that only the old release names are then removed.
This is the one exception to the rule that files of kept releases are never removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as changed
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.releases import KINDS, RELEASES
from iosig.warehouse.releases import checksums, expiring, links, publishing, releases, seals
from iosig.warehouse.releases.locations import (
    PLAIN,
    Part,
    data_place,
    get_location,
    releases_location,
)
from iosig.warehouse.releases.publishing import Draft, complete, now_text
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, put_parquet

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


#: suffix of a release id, which is the kind of the release
_KIND = re.compile(rf"-({'|'.join(KINDS)})[0-9]*$")


def supersede(
    store: Store,
    old: Release,
    draft: Draft,
    built: Mapping[str, Mapping[Part, Path]],
    landings: Mapping[str, str],
    reason: str,
) -> Release:
    """Publish built tables in place of those of a release, and return the successor.

    built: see `publishing.publish`. landings: maps each replaced landing to its successor; the mapping applies to all
    releases.
    """
    from iosig.warehouse.releases.catalogue import open_transaction
    from iosig.warehouse.releases.relocating import relocate

    relocate(store)
    release_id = successor_id(store, old)
    # remove files of an attempt that was interrupted before the successor was published
    publishing.begin(store, release_id, draft.fingerprint)
    adopted = publishing.adopt_early(store, draft.fingerprint, built)
    # an id redirects only once the history contains its successor
    redirect = {"to": release_id, "at": now_text(), "reason": reason}
    put_state(store, releases.REDIRECTS, releases.redirects(store) | {old.release_id: redirect})
    expiring.repin(store, old.release_id, release_id)
    expected_location, latest = releases_location(store), releases.find(store, None)
    with open_transaction(store, expected_location) as catalogue:
        locations = {name: list(places) for name, places in adopted.items()}
        days = {name: {part for part in parts if not isinstance(part, int)} for name, parts in built.items()}
        snapshots = _snapshots(catalogue, old, latest, release_id, locations, days)
        successor = changed(
            old,
            release_id=release_id,
            kind="forget",
            created_at=now_text(),
            code_version=draft.code_version,
            parameters=draft.parameters,
            snapshots=snapshots,
            verdict=draft.verdict,
        )
        _replace_row(catalogue, store, old, successor, landings)
    finish(store, successor)
    return releases.find(store, successor.release_id)


def successor_id(store: Store, old: Release) -> str:
    """Derive an unused id for a release's successor: the release's id, with `forget` as its kind.

    The id sorts at the release's position. If a process is killed, the next attempt derives the same id.
    """
    used_ids = {release.release_id for release in releases.history(store)} | releases.redirects(store).keys()
    begin = _KIND.sub("", old.release_id)
    ids = (f"{begin}-forget{number or ''}" for number in range(len(used_ids) + 1))
    return next(name for name in ids if name not in used_ids)


def _snapshots(
    catalogue: Catalog,
    old: Release,
    latest: Release,
    tag_name: str,
    locations: Mapping[str, Sequence[str]],
    parts: Mapping[str, Collection[Part]],
) -> dict[str, int]:
    """Create the successor's snapshots on top of the old release's; each table keeps its current snapshot."""
    from iosig.warehouse.releases.catalogue import make_current, replace, tag

    snapshots = {}
    for table in list_published_tables():
        name = table.name
        if name not in locations:
            if name in old.snapshots:
                tag(catalogue, name, old.snapshots[name], tag_name, is_current=False)
                snapshots[name] = old.snapshots[name]
            continue
        if name in old.snapshots:
            make_current(catalogue, name, old.snapshots[name])
        is_by_day = table.partition is not None and name in old.snapshots
        days = {part for part in parts[name] if not isinstance(part, int)} if is_by_day else None
        snapshot = replace(catalogue, table, locations[name], days=days, tag=tag_name)
        snapshots[name] = snapshot.snapshot_id
        if latest.sequence != old.sequence and name in latest.snapshots:
            make_current(catalogue, name, latest.snapshots[name])
    return snapshots


def _replace_row(
    catalogue: Catalog, store: Store, old: Release, successor: Release, landings: Mapping[str, str]
) -> None:
    """Rewrite the rows of all releases: replace the superseded one, and map landing ids to their successors."""
    from iosig.warehouse.releases.catalogue import replace

    values = {
        "release_id": successor.release_id,
        "kind": successor.kind,
        "created_at": datetime.fromisoformat(successor.created_at),
        "code_version": successor.code_version,
        "parameters": successor.parameters,
        "snapshots": json.dumps(successor.snapshots, sort_keys=True),
        "verdict": successor.verdict,
    }
    rows = []
    for row in releases.rows(store).iter_rows(named=True):
        lists = {name: _map_landings(row[name], landings) for name in ("inputs", "removed_inputs")}
        parent = row["parent_release_id"]
        parent = successor.release_id if parent == old.release_id else parent
        changes = values if row["release_id"] == old.release_id else {}
        rows.append(row | lists | {"parent_release_id": parent} | changes)
    place = data_place(RELEASES, None, f"with-{successor.release_id}")
    put_parquet(store, pl.DataFrame(rows, schema=frames.schema(RELEASES)), RELEASES, place)
    replace(catalogue, RELEASES, [f"{get_location(store)}/{place}"], days=None, tag=successor.release_id)


def _map_landings(ids_json: str, landings: Mapping[str, str]) -> str:
    return json.dumps(list(dict.fromkeys(landings.get(name, name) for name in json.loads(ids_json))))


def finish(store: Store, successor: Release) -> None:
    """Write the successor's checksums, and finish publishing the current release, which may be another one.

    This is idempotent; repeat it if the publication was interrupted after its commit.
    """
    from iosig.warehouse.releases.catalogue import leave_hints

    leave_hints(store)
    releases.files_of(store, successor)
    seals.seal_whole(store, successor)
    complete(store)


def remove(store: Store, old_id: str, successor: Release) -> None:
    """Remove the remains of a superseded release: its tags, snapshots, seal and views.

    The release's files are queued for removal, and `expiring.remove` deletes them.
    """
    expiring.discard(store, {old_id})
    old = changed(successor, release_id=old_id)
    before, after = seals.make_seal_name(old), seals.make_seal_name(successor)
    old_checksums, new_checksums = checksums.read(store, before) or {}, checksums.read(store, after) or {}
    existing = {name: sealed for name, sealed in old_checksums.items() if store.files.mark(name)}
    checksums.write(store, after, existing | new_checksums)
    expiring.repin(store, old.release_id, None)
    store.files.remove(before, f".{links.LATEST}-{old.sequence}-{old.release_id}", PLAIN)
