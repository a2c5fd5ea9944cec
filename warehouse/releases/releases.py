"""Releases: named, immutable sets of snapshots, and the history that analysts stand on.

A release is one row of the Iceberg table `releases` and a tag on every table, in one commit to the catalogue: readers
see all of it or none. Its place in the history is a number, not a time: clocks are set back. Readers need no Iceberg
library: the rows and each snapshot's file list are also kept as JSON, named after the immutable thing that they
describe, and made anew where they are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from warehouse.contracts import TABLES, Table
from warehouse.contracts.releases import RELEASES
from warehouse.errors import UsageError
from warehouse.releases.locations import INDEX, LISTS, NAMESPACE, metadata_locations
from warehouse.store.form import require_form
from warehouse.store.store import Store, cached, document, put_document

#: when releases expired, whose rows stay; and the mark of those who read files of releases
EXPIRED, READING = "expired.json", "reading.lock"
#: what is a JSON text in the table
AS_JSON = ("dates", "inputs", "removed_inputs", "snapshots")


@dataclass(frozen=True, slots=True)
class Release:
    """One release: what went into it, which snapshot of which table it holds, what the checks said."""

    release_id: str
    sequence: int
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


def published() -> list[Table]:
    """Return the tables that a release holds."""
    return [table for table in TABLES if table.is_published and table != RELEASES]


def history(store: Store) -> list[Release]:
    """Return every release, the first one first; an empty list where there is none."""
    require_form(store)
    location = metadata_locations(store).get(RELEASES.name)
    if location is None:
        return []
    index = f"{INDEX}/{PurePosixPath(location).stem}.json"
    known = cached(store, index, lambda documents: [_from_document(document) for document in documents])
    if known is None:
        known = _read_rows(store)
        # each holds the whole history: those of earlier releases are of no use
        with suppress(OSError):
            store.files.remove(f"{INDEX}/*")
        _leave(store, index, [asdict(release) for release in known])
    return known


def _leave(store: Store, name: str, document: Any) -> None:
    """Keep what readers can do without: where nothing can be written, one reads all the same."""
    with suppress(OSError):
        put_document(store, name, document)


def _from_document(document: dict[str, Any]) -> Release:
    listed = ("dates", "inputs", "removed_inputs")
    fields_of: dict[str, Any] = {name: tuple(value) if name in listed else value for name, value in document.items()}
    return Release(**fields_of)


def _read_rows(store: Store) -> list[Release]:
    from warehouse.releases.catalogue import open_catalogue

    rows = open_catalogue(store).load_table((NAMESPACE, RELEASES.name)).scan().to_arrow().to_pylist()
    documents = [
        {
            field.name: json.loads(row[field.name]) if field.name in AS_JSON else row[field.name]
            for field in fields(Release)
        }
        | {"created_at": row["created_at"].isoformat()}
        for row in rows
    ]
    return sorted(map(_from_document, documents), key=lambda release: release.sequence)


@contextmanager
def being_read(store: Store) -> Iterator[None]:
    """Mark that files of releases are read, so that none is removed meanwhile.

    Who has no right to write cannot say so: files stay for a day after their release expired.
    """
    with ExitStack() as marks:
        with suppress(OSError):
            marks.enter_context(store.files.held(READING, is_shared=True))
        yield


def expired(store: Store) -> dict[str, str]:
    """Return the releases whose files are gone, or going, and since when."""
    found: dict[str, str] = document(store, EXPIRED) or {}
    return found


def kept(store: Store) -> list[Release]:
    """Return every release that can be read, the first one first."""
    gone = expired(store)
    return [release for release in history(store) if release.release_id not in gone]


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
    if release_id in matching or len(matching) == 1:
        return _still_there(store, matching.get(release_id) or next(iter(matching.values())))
    problem = "names no release" if not matching else f"could be {', '.join(matching)}"
    raise UsageError(f"{release_id!r} {problem}. `iosig releases` lists them.")


def _still_there(store: Store, release: Release) -> Release:
    if since := expired(store).get(release.release_id):
        raise UsageError(
            f"{release.release_id} expired on {since[:10]}: its files are gone. `iosig releases` lists those that can "
            "be read, and `iosig releases pin ID` keeps one."
        )
    return release


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
    lists = {name: f"{LISTS}/{name}-{snapshot}.json" for name, snapshot in release.snapshots.items()}
    found = {name: cached(store, path, _places) for name, path in lists.items()}
    if lost := [name for name, places in found.items() if places is None]:
        from warehouse.releases.catalogue import open_catalogue, snapshot_files

        catalogue = open_catalogue(store)
        for name in lost:
            found[name] = snapshot_files(catalogue, name, release.snapshots[name])
            _leave(store, lists[name], found[name])
        catalogue.close()
    return {name: [store.root / place for place in places or ()] for name, places in found.items()}


def _places(document: Any) -> list[str]:
    return [PurePosixPath(place).as_posix() for place in document]
