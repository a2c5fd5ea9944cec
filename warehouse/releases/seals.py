"""Seals: the SHA-256 of every file that a release added, so that what is read later is what was written.

A release's files are its Parquet, the Iceberg metadata that name them, and the manifests of its landings; a landing's
manifest has the SHA-256 of the landing's own files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warehouse.contracts.releases import RELEASES
from warehouse.placing import sha256_of
from warehouse.releases import releases
from warehouse.releases.locations import NAMESPACE, SEALS, metadata_locations
from warehouse.releases.releases import Release
from warehouse.store import landing
from warehouse.store.store import Store, write_json


@dataclass(frozen=True, slots=True)
class Sealed:
    """A file as it was written: its size and its SHA-256."""

    byte_count: int
    sha256: str


def path_of(store: Store, release: Release) -> Path:
    """Return where a release's seal lies."""
    return store.root / SEALS / f"{release.sequence:06}-{release.release_id}.json"


def seal(store: Store, release: Release) -> Path:
    """Note the SHA-256 of all that a release added to the one before."""
    found = {
        path: Sealed((store.root / path).stat().st_size, sha256_of(store.root / path))
        for path in _added(store, release)
    }
    return _write(path_of(store, release), found)


def _write(path: Path, files: dict[str, Sealed]) -> Path:
    document: dict[str, Any] = {name: asdict(sealed) for name, sealed in sorted(files.items())}
    return write_json({"files": document, "sha256": _digest(document)}, path)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> dict[str, Sealed] | None:
    """Return what a seal says, by path below the warehouse's root; None where it is damaged."""
    try:
        document = json.loads(path.read_bytes())
        if document["sha256"] != _digest(document["files"]):
            return None
        return {name: Sealed(**sealed) for name, sealed in document["files"].items()}
    except (ValueError, KeyError, TypeError):
        return None


def _added(store: Store, release: Release) -> Iterator[str]:
    """Yield the paths of what a release added, below the warehouse's root."""
    history = releases.history(store)
    before = history[release.sequence - 2] if release.sequence > 1 else None
    old = {path for paths in releases.files_of(store, before).values() for path in paths} if before else set()
    for paths in releases.files_of(store, release).values():
        yield from (path.relative_to(store.root).as_posix() for path in paths if path not in old)
    for name in release.inputs:
        if landing.find(store, name) is not None:
            yield f"landed/{name}/landing.json"
    yield from _metadata(store, release, before)


def _metadata(store: Store, release: Release, before: Release | None) -> Iterator[str]:
    from warehouse.releases.catalogue import open_catalogue

    catalogue = open_catalogue(store)
    for name, location in metadata_locations(store).items():
        table = catalogue.load_table((NAMESPACE, name))
        yield _below(table.metadata.location, name, location)
        head = table.current_snapshot()
        if head is None or (before is not None and before.snapshots.get(name) == head.snapshot_id):
            continue
        yield _below(table.metadata.location, name, head.manifest_list)
        for manifest in head.manifests(table.io):
            if manifest.added_snapshot_id == head.snapshot_id:
                yield _below(table.metadata.location, name, manifest.manifest_path)
        if name == RELEASES.name:
            for task in table.scan().plan_files():
                if release.release_id in task.file.file_path:
                    yield _below(table.metadata.location, name, task.file.file_path)


def _below(table_location: str, name: str, location: str) -> str:
    return f"tables/{name}{location.removeprefix(table_location)}"


def sealed(store: Store, chosen: Iterable[Release]) -> dict[str, Sealed]:
    """Return the files of releases' seals; those that are damaged or absent say nothing."""
    found: dict[str, Sealed] = {}
    for release in chosen:
        path = path_of(store, release)
        found |= (read(path) if path.is_file() else None) or {}
    return found


def renew(store: Store) -> None:
    """Seal anew the metadata that have been written anew, with all else as it was."""
    for path in sorted((store.root / SEALS).glob("*.json")):
        known = read(path)
        if known is None:
            continue
        metadata = [name for name in known if "/metadata/" in name and (store.root / name).is_file()]
        fresh = {name: Sealed((store.root / name).stat().st_size, sha256_of(store.root / name)) for name in metadata}
        _write(path, known | fresh)
