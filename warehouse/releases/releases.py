"""Releases: named, immutable sets of snapshots, and the history that analysts stand on.

A release is one row of the Iceberg table `releases`, appended in one commit: readers see all of it or
none. Readers need no Iceberg library: the rows and each snapshot's file list are also kept as JSON,
named after the immutable thing that they describe, and made anew where they are missing.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from warehouse.contracts import table as contract
from warehouse.contracts.releases import RELEASES
from warehouse.errors import NothingToDo, UsageError
from warehouse.store.store import Store, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEX = "release_index"
_INTENT = "publishing.json"


@dataclass(frozen=True, slots=True)
class Release:
    """One release: what went into it, which snapshot of which table it holds, what the checks said."""

    release_id: str
    created_at: str
    kind: str
    parent_release_id: str | None
    code_version: str
    dates: tuple[str | None, ...]
    inputs: tuple[str, ...]
    removed_inputs: tuple[str, ...]
    parameters: str
    snapshots: dict[str, int]
    verdict: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A release that is built and checked, and waits to be published."""

    release_id: str
    fingerprint: str
    dates: tuple[date | None, ...]
    inputs: tuple[str, ...]
    removed_inputs: tuple[str, ...]
    parameters: str
    code_version: str
    verdict: str


def history(store: Store) -> list[Release]:
    """Return every release, the first one first; an empty list where there is none."""
    location = _releases_metadata(store)
    if location is None:
        return []
    index = store.root / _INDEX / f"{PurePosixPath(location).stem}.json"
    if not index.is_file():
        write_json([asdict(release) for release in _read_rows(store)], index)
    return [_from_document(document) for document in json.loads(index.read_text(encoding="utf-8"))]


def _releases_metadata(store: Store) -> str | None:
    """Return the location of the releases table's current metadata, straight from the catalogue."""
    if not store.catalogue.is_file():
        return None
    query = "select metadata_location from iceberg_tables where table_name = ?"
    with closing(sqlite3.connect(f"{store.catalogue.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            row = connection.execute(query, (RELEASES.name,)).fetchone()
        except sqlite3.OperationalError:
            return None
    return row[0] if row else None


def _from_document(document: dict[str, Any]) -> Release:
    listed = ("dates", "inputs", "removed_inputs")
    fields_of: dict[str, Any] = {name: tuple(value) if name in listed else value for name, value in document.items()}
    return Release(**fields_of)


def _read_rows(store: Store) -> list[Release]:
    from warehouse.releases.catalogue import NAMESPACE, open_catalogue

    rows = open_catalogue(store).load_table((NAMESPACE, RELEASES.name)).scan().to_arrow().to_pylist()
    as_json = {"dates", "inputs", "removed_inputs", "snapshots"}
    documents = [
        {
            field.name: json.loads(row[field.name]) if field.name in as_json else row[field.name]
            for field in fields(Release)
        }
        | {"created_at": row["created_at"].isoformat()}
        for row in rows
    ]
    return sorted(map(_from_document, documents), key=lambda release: release.created_at)


def current(store: Store) -> Release | None:
    """Return the release that readers get by default; None before the first."""
    found = history(store)
    return found[-1] if found else None


def find(store: Store, release_id: str | None) -> Release:
    """Return the release of that id (an unambiguous start will do), the current one for None.

    Raises UsageError with what there is instead.
    """
    found = history(store)
    if not found:
        raise UsageError(f"There is no release in {store.root} yet. Land something, then `iosig run`.")
    if release_id is None:
        return found[-1]
    matching = {release.release_id: release for release in found if release.release_id.startswith(release_id)}
    if release_id in matching:
        return matching[release_id]
    if len(matching) == 1:
        return next(iter(matching.values()))
    problem = "names no release" if not matching else f"could be {', '.join(matching)}"
    raise UsageError(f"{release_id!r} {problem}. `iosig releases` lists them.")


def landings_in(store: Store, release: Release | None) -> set[str]:
    """Return the landings that went into a release, its parents' included."""
    by_id = {known.release_id: known for known in history(store)}
    lineage = []
    while release is not None:
        lineage.append(release)
        release = by_id.get(release.parent_release_id or "")
    included: set[str] = set()
    for ancestor in reversed(lineage):
        included = (included - set(ancestor.removed_inputs)) | set(ancestor.inputs)
    return included


def files_of(store: Store, release: Release) -> dict[str, list[Path]]:
    """Return the Parquet files of every table of a release."""
    return {name: _files(store, name, snapshot) for name, snapshot in release.snapshots.items()}


def day_of(path: Path) -> date | None:
    """Return the day of a published data file, None for one without a day."""
    start = path.name[: len("2018-02-09")]
    return None if start.startswith("undated") else date.fromisoformat(start)


def _files(store: Store, table_name: str, snapshot_id: int) -> list[Path]:
    known = store.root / "snapshot_files" / f"{table_name}-{snapshot_id}.json"
    if not known.is_file():
        from warehouse.releases.catalogue import open_catalogue, remember_files, snapshot_files

        remember_files(store, table_name, snapshot_id, snapshot_files(open_catalogue(store), table_name, snapshot_id))
    return [store.root / place for place in json.loads(known.read_text(encoding="utf-8"))]


def publish(store: Store, draft: Draft, built: Mapping[str, Mapping[date | None, Path]]) -> Release:
    """Publish built tables as a release, on top of the current one, and return it.

    `built` maps a table to its days' Parquet files; tables that are not named keep their snapshot. The
    tables' snapshots come first and nobody sees them; the one row that names them comes last.
    """
    from warehouse.releases.catalogue import open_catalogue, remember_files, replace, snapshot_files

    _begin(store, draft)
    parent = current(store)
    snapshots = dict(parent.snapshots) if parent else {}
    catalogue = open_catalogue(store)
    for name, days in built.items():
        base = snapshots.get(name)
        snapshot = replace(catalogue, store, contract(name), days, base_snapshot=base, fingerprint=draft.fingerprint)
        if snapshot is not None:
            snapshots[name] = snapshot
            remember_files(store, name, snapshot, snapshot_files(catalogue, name, snapshot))
    release = Release(
        release_id=draft.release_id,
        created_at=_now(),
        kind="run",
        parent_release_id=parent.release_id if parent else None,
        code_version=draft.code_version,
        dates=tuple(day.isoformat() if day else None for day in draft.dates),
        inputs=draft.inputs,
        removed_inputs=draft.removed_inputs,
        parameters=draft.parameters,
        snapshots=snapshots,
        verdict=draft.verdict,
    )
    _append(store, release)
    (store.root / _INTENT).unlink(missing_ok=True)
    return release


def _begin(store: Store, draft: Draft) -> None:
    """Note what is about to be published, after removing the files of one that was killed at it and given up."""
    note = store.root / _INTENT
    if note.is_file():
        begun = json.loads(note.read_text(encoding="utf-8"))
        is_published = any(release.release_id == begun["release_id"] for release in history(store))
        if begun["fingerprint"] != draft.fingerprint and not is_published:
            for orphan in store.tables.glob(f"*/data/*-{begun['fingerprint']}.parquet"):
                orphan.unlink(missing_ok=True)
    write_json({"release_id": draft.release_id, "fingerprint": draft.fingerprint}, note)


def rollback(store: Store, release_id: str) -> Release:
    """Make an earlier release the current one again, by a new row that points to its snapshots.

    Raises NothingToDo if it is the current one, UsageError if there is no such release.
    """
    from warehouse.releases.catalogue import open_catalogue, reset

    target = find(store, release_id)
    now = find(store, None)
    if target.snapshots == now.snapshots:
        raise NothingToDo(f"{target.release_id} is the current release already.")
    catalogue = open_catalogue(store)
    for name, snapshot_id in target.snapshots.items():
        reset(catalogue, name, snapshot_id)
    turn = sum(release.kind == "rollback" for release in history(store)) + 1
    release = Release(
        release_id=f"{target.release_id}-again{turn}",
        created_at=_now(),
        kind="rollback",
        parent_release_id=target.release_id,
        code_version=target.code_version,
        dates=(),
        inputs=(),
        removed_inputs=(),
        parameters=target.parameters,
        snapshots=target.snapshots,
        verdict=target.verdict,
    )
    _append(store, release)
    return release


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _append(store: Store, release: Release) -> None:
    import polars as pl

    from warehouse.contracts import arrow, frames
    from warehouse.releases.catalogue import ensure, open_catalogue

    row = asdict(release) | {
        "created_at": datetime.fromisoformat(release.created_at),
        **{
            name: json.dumps(getattr(release, name), sort_keys=True)
            for name in ("dates", "inputs", "removed_inputs", "snapshots")
        },
    }
    frame = pl.DataFrame([row], schema=frames.schema(RELEASES))
    rows = frames.require(frame, RELEASES).to_arrow().cast(arrow.schema(RELEASES))
    ensure(open_catalogue(store), RELEASES).append(rows)
    # Leaves the index: readers are quick, and need not have the right to write.
    history(store)
