"""Publish built tables as a release atomically, or roll back to an earlier release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from iosig.warehouse.contracts import Table, table as contract
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import links, seals
from iosig.warehouse.releases.locations import Part, data_place, get_location, get_relative_name, releases_location
from iosig.warehouse.releases.releases import (
    AS_JSON,
    Release,
    current,
    files_of,
    find,
    history,
    list_published_tables,
    make_list_name,
    new_id,
    newest_day,
)
from iosig.warehouse.store.form import mark_form, require_form
from iosig.warehouse.store.store import Store, put_document, put_parquet, read_cache

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from iosig.warehouse.releases.catalogue import SnapshotFiles

_INTENT = "publishing.json"
#: per table: the stored location of each built file, and its original path
Adopted: TypeAlias = Mapping[str, Mapping[str, Path]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A built and validated release, ready to be published on top of its base.

    release_id: None to derive the id from the time of publication and the kind.
    """

    fingerprint: str
    dates: tuple[date | None, ...]
    inputs: tuple[str, ...]
    removed_inputs: tuple[str, ...]
    parameters: str
    code_version: str
    verdict: str
    base_release_id: str | None
    kind: str = "run"
    release_id: str | None = None


def publish(
    store: Store, draft: Draft, built: Mapping[str, Mapping[Part, Path]], adopted: Adopted | None = None
) -> Release:
    """Publish built tables as a release on top of the current one, and return it; all tables change atomically.

    `built` maps a table to the Parquet files of its days or buckets; tables that it does not name keep their snapshot.
    adopted: files that `adopt_early` has already stored. Each table gets the release's id as a tag. Raises MachineFault
    if another writer has published since the draft was planned. If this release was already published by a process that
    missed the confirmation, the published release is returned.
    """
    from iosig.warehouse.releases.relocating import relocate

    require_form(store)
    mark_form(store)
    relocate(store)
    expected_location, parent, copies = releases_location(store), current(store), dict[str, Path]()
    release_id = draft.release_id or _id_begun(store, draft, parent) or new_id(store, draft.kind)
    begin(store, release_id, draft.fingerprint)
    if parent is None or parent.release_id != release_id:
        _require_base(store, draft, parent)
        stored = adopted or {}
        remaining = {name: parts for name, parts in built.items() if name not in stored}
        adopted = {**stored, **_adopt_files(store, draft.fingerprint, remaining)}
        copies = {
            get_relative_name(name, place): path for name, places in adopted.items() for place, path in places.items()
        }
        try:
            _leave_lists(store, _commit(store, draft, release_id, parent, expected_location, adopted, built))
        except Exception:
            # if the last response got lost, check whether the commit succeeded
            if not _is_current(store, release_id):
                raise
    complete(store, copies)
    store.files.remove(_INTENT)
    return find(store, release_id)


def _id_begun(store: Store, draft: Draft, parent: Release | None) -> str | None:
    """Return the current release's id if a killed process has already published this draft."""
    release_id, fingerprint = _begun(store) or (None, None)
    is_published = parent is not None and fingerprint == draft.fingerprint and parent.release_id == release_id
    return release_id if is_published else None


def adopt_early(store: Store, fingerprint: str, built: Mapping[str, Mapping[Part, Path]]) -> Adopted:
    """Store files of finished tables while others are still being built; readers do not see them yet."""
    if (_begun(store) or (None, None))[1] != fingerprint:
        begin(store, None, fingerprint)
    return _adopt_files(store, fingerprint, built)


def _adopt_files(
    store: Store, fingerprint: str, built: Mapping[str, Mapping[Part, Path]]
) -> dict[str, dict[str, Path]]:
    """Store built files in their tables' folders; return the new and old locations per table."""
    from iosig.warehouse.releases.catalogue import adopt

    files = [(name, part, path) for name, parts in built.items() for part, path in parts.items()]
    places = store.files.each(lambda file: adopt(store, contract(file[0]), *file[1:], fingerprint), files)
    adopted: dict[str, dict[str, Path]] = {name: {} for name in built}
    for (name, _, path), place in zip(files, places, strict=True):
        if place is not None:
            adopted[name][place] = path
    return adopted


def _require_base(store: Store, draft: Draft, parent: Release | None) -> None:
    head = parent.release_id if parent else None
    if head != draft.base_release_id:
        raise MachineFault(
            f"Another writer published {head} in {store.name} after this run started, and takes precedence. Run again."
        )


def _require_intent(store: Store, release_id: str, fingerprint: str) -> None:
    """Raise MachineFault if another writer took over, since that writer may have removed this release's files."""
    if _begun(store) != (release_id, fingerprint):
        raise MachineFault(f"Another writer took over {store.name} while this run was publishing. Run again.")


def _is_current(store: Store, release_id: str) -> bool:
    with suppress(MachineFault):
        release = current(store)
        return release is not None and release.release_id == release_id
    return False


def _commit(
    store: Store,
    draft: Draft,
    release_id: str,
    parent: Release | None,
    expected_location: str | None,
    adopted: Mapping[str, Mapping[str, Path]],
    built: Mapping[str, Mapping[Part, Path]],
) -> dict[str, SnapshotFiles]:
    """Commit all tables in one transaction; return the new snapshots of rebuilt tables.

    expected_location: location of the releases' metadata when the parent was current. adopted: locations of the
    stored files.
    """
    from iosig.warehouse.releases.catalogue import make_current, open_transaction, replace, tag

    before = parent.snapshots if parent else {}
    tables = list_published_tables()

    def change(table: Table) -> SnapshotFiles | None:
        name = table.name
        if name in before and name not in built:
            tag(catalogue, name, before[name], release_id)
            return None
        if name in before:
            # a writer that was killed or disconnected may have left another version on a server
            make_current(catalogue, name, before[name])
        is_by_day = table.partition is not None and name in before
        days = {part for part in built[name] if not isinstance(part, int)} if is_by_day else None
        places = adopted.get(name, {})
        return replace(catalogue, table, places, days=days, tag=release_id, copies=places)

    with open_transaction(store, expected_location) as catalogue:
        new_snapshots = {
            table.name: snapshot
            for table, snapshot in zip(tables, store.files.each(change, tables), strict=True)
            if snapshot
        }
        snapshots = before | {name: snapshot.snapshot_id for name, snapshot in new_snapshots.items()}
        release = _release(draft, release_id, parent, {table.name: snapshots[table.name] for table in tables})
        append_row(catalogue, store, release, draft.inputs, draft.removed_inputs)
        _require_intent(store, release_id, draft.fingerprint)
    return new_snapshots


def _leave_lists(store: Store, snapshots: Mapping[str, SnapshotFiles]) -> None:
    """Cache the file lists of new snapshots for `files_of`; missing ones are rebuilt on demand."""
    documents = {make_list_name(name, snapshot.snapshot_id): snapshot.names for name, snapshot in snapshots.items()}
    with suppress(OSError):
        store.files.each(lambda name: put_document(store, name, documents[name]), documents)


def _release(draft: Draft, release_id: str, parent: Release | None, snapshots: dict[str, int]) -> Release:
    dates = tuple(day.isoformat() if day else None for day in draft.dates)
    return Release(
        release_id=release_id,
        sequence=parent.sequence + 1 if parent else 1,
        created_at=now_text(),
        kind=draft.kind,
        parent_release_id=parent.release_id if parent else None,
        code_version=draft.code_version,
        dates=dates,
        newest_data_on=newest_day([parent.newest_data_on if parent else None, *dates]),
        input_count=len(draft.inputs),
        removed_input_count=len(draft.removed_inputs),
        parameters=draft.parameters,
        snapshots=snapshots,
        verdict=draft.verdict,
    )


def complete(store: Store, copies: Mapping[str, Path] | None = None) -> None:
    """Write hints, `latest/`, file lists and checksums of the current release, if they are missing.

    copies: local copies of files of the release, by name, which saves reading them from an object store. If a run is
    killed after its commit, the next run calls this function. It does nothing if `latest/` and the checksums are up to
    date.
    """
    release = current(store)
    if release is not None and not (links.is_latest(store, release) and seals.is_sealed(store, release)):
        from iosig.warehouse.releases.catalogue import leave_hints, open_catalogue

        with closing(open_catalogue(store)) as catalogue:
            tables = catalogue.all_tables()
        changed = [name for name, table in tables.items() if len(table.metadata.schemas) > 1]
        locations = {name: table.metadata_location for name, table in tables.items()}
        # the two tasks are independent and mostly wait for the storage
        with ThreadPoolExecutor(1, "hinting") as executor:
            hinted = executor.submit(leave_hints, store, locations)
            files_of(store, release)
            links.link_latest(store, release, changed)
            if not seals.is_sealed(store, release):
                seals.seal(store, release, tables, copies)
            hinted.result()


def begin(store: Store, release_id: str | None, fingerprint: str) -> None:
    """Record the release that is about to be published, after removing the files of an abandoned one."""
    if _begun(store) != (release_id, fingerprint):
        _remove_row(store)
        abandon(store, fingerprint)
        put_document(store, _INTENT, {"release_id": release_id, "fingerprint": fingerprint})


def abandon(store: Store, fingerprint: str | None = None) -> None:
    """Remove the files of a run that began to publish and was then abandoned, unless it has this fingerprint."""
    release_id, begun_fingerprint = _begun(store) or (None, fingerprint)
    if begun_fingerprint != fingerprint:
        _remove_row(store)
        if not any(release.release_id == release_id for release in history(store)):
            store.files.remove(f"tables/*/data/*-{begun_fingerprint}.parquet")
        store.files.remove(_INTENT)


def _remove_row(store: Store) -> None:
    """Remove the row file of a release that was begun but never published; the release's id is not reused."""
    release_id, _ = _begun(store) or (None, None)
    if release_id and not any(release.release_id == release_id for release in history(store)):
        store.files.remove(data_place(RELEASES, None, release_id))


def _begun(store: Store) -> tuple[str | None, str] | None:
    return read_cache(store, _INTENT, lambda document: (document["release_id"], str(document["fingerprint"])))


def rollback(store: Store, target: Release) -> Release:
    """Make an earlier release the current one, by adding a row to `releases` that refers to the earlier snapshots.

    Later runs build on it. `holds.roll_back` also keeps them from publishing the excluded data again.
    """
    from iosig.warehouse.releases.catalogue import open_transaction, replace as empty, tag
    from iosig.warehouse.releases.relocating import relocate

    # the run that published the current release may have been killed before `complete`
    complete(store)
    expected_location = releases_location(store)
    latest = find(store, None)
    release = replace(
        target,
        release_id=new_id(store, "rollback"),
        sequence=latest.sequence + 1,
        created_at=now_text(),
        kind="rollback",
        parent_release_id=target.release_id,
        dates=(),
        input_count=0,
        removed_input_count=0,
    )
    if relocate(store):
        expected_location = releases_location(store)
    with open_transaction(store, expected_location) as catalogue:
        for table in list_published_tables():
            if table.name in target.snapshots:
                tag(catalogue, table.name, target.snapshots[table.name], release.release_id)
            elif table.name in latest.snapshots:
                # a table that is newer than the target release had no rows then
                snapshot = empty(catalogue, table, days=None, tag=release.release_id, locations=())
                release.snapshots[table.name] = snapshot.snapshot_id
        append_row(catalogue, store, release)
    complete(store)
    return release


def now_text() -> str:
    """Return the current time in ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def append_row(
    catalogue: Catalog,
    store: Store,
    release: Release,
    inputs: Sequence[str] = (),
    removed_inputs: Sequence[str] = (),
) -> None:
    """Append the row of a release to `releases`, in a new file."""
    import polars as pl

    from iosig.warehouse.contracts import frames
    from iosig.warehouse.releases.catalogue import replace

    values = asdict(release) | {"inputs": inputs, "removed_inputs": removed_inputs}
    row = {name: values[name] for name in RELEASES.column_names} | {
        "created_at": datetime.fromisoformat(release.created_at),
        "newest_data_on": release.newest_data_on and date.fromisoformat(release.newest_data_on),
        **{name: json.dumps(values[name], sort_keys=True) for name in AS_JSON},
    }
    place = data_place(RELEASES, None, release.release_id)
    put_parquet(store, pl.DataFrame([row], schema=frames.schema(RELEASES)), RELEASES, place)
    replace(catalogue, RELEASES, [f"{get_location(store)}/{place}"], days=(), tag=release.release_id)
