"""Seals: the SHA-256 of every file that a release added, so that what is read later is what was written.

A release's files are its Parquet, the Iceberg metadata that name them, and the manifests of its landings; a landing's
manifest has the SHA-256 of the landing's own files.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warehouse.contracts.releases import RELEASES
from warehouse.errors import MachineFault
from warehouse.placing import sha256_of
from warehouse.releases import releases
from warehouse.releases.locations import NAMESPACE, SEALS, metadata_locations
from warehouse.releases.releases import Release
from warehouse.store import landing
from warehouse.store.store import Store, read_cache, write_json

#: which released files were found sound when they were read last
_SOUND = "sound.json"
_TRUSTED_S = 86_400.0
_REMEDY = "`iosig run --date DAY` makes a day anew."


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
    catalogue.close()


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


def require_sound(store: Store, paths: Iterable[Path]) -> None:
    """Raise MachineFault where a file is not as it was released.

    A file that was found sound within a day, and that the file system says is the same, is not read again.
    """
    marks: dict[str, list[float]] = read_cache(store.root / _SOUND) or {}
    fresh: dict[str, list[float]] = {}
    now, known = time.time(), None
    for path in paths:
        name, mark = path.relative_to(store.root).as_posix(), _mark(path)
        *seen, at = marks.get(name) or [0.0]
        if seen == mark and 0 <= now - at < _TRUSTED_S:
            continue
        known = sealed(store, releases.history(store)) if known is None else known
        if name in known:
            if problem := problem_of(path, known[name]):
                raise MachineFault(f"{path} {problem}. `iosig verify` says what else is damaged; {_REMEDY}")
            fresh[name] = [*mark, now]
    if fresh:
        with suppress(OSError):
            write_json(
                {name: mark for name, mark in (marks | fresh).items() if now - mark[-1] < _TRUSTED_S},
                store.root / _SOUND,
            )


def _mark(path: Path) -> list[float]:
    """Return what the file system knows of a file; nothing where it is not there."""
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def problem_of(path: Path, sealed: Sealed) -> str | None:
    """Return what is wrong with a file, None where it is as it was written."""
    try:
        size = path.stat().st_size
        if size != sealed.byte_count:
            return f"has {size:,} bytes, not {sealed.byte_count:,}"
        return None if sha256_of(path) == sealed.sha256 else "has other bytes than were written"
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
