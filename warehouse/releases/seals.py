"""Seals: the SHA-256 of every file that a release added, so that what is read later is what was written.

A release's files are its Parquet, the Iceberg metadata that name them, and the manifests of its landings; a landing's
manifest has the SHA-256 of the landing's own files.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.locations import SEALS, metadata_locations, name_of
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.store.files import Sealed
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.store import Store, cached, put_document

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

#: which released files were found sound when they were read last
_SOUND = "sound.json"
_TRUSTED_S = 86_400.0
_REMEDY = "`iosig run --date DAY` makes a day anew."


def seal_of(release: Release) -> str:
    """Return the name of a release's seal."""
    return f"{SEALS}/{release.sequence:06}-{release.release_id}.json"


def is_sealed(store: Store, release: Release) -> bool:
    """Return whether a release has a seal, be it damaged or not."""
    return bool(store.files.mark(seal_of(release)))


def seal(
    store: Store,
    release: Release,
    tables: Mapping[str, IcebergTable] | None = None,
    copies: Mapping[str, Path] | None = None,
) -> None:
    """Note the SHA-256 of all that a release added to the one before.

    tables: those of the catalogue, if they are known; copies: where some of the files lie, too.
    """
    write(store, seal_of(release), all_sealed(store, _added(store, release, tables), copies))


def sealed_now(store: Store, name: str) -> Sealed:
    """Return a file as it is now."""
    return store.files.sealed(name)


def all_sealed(store: Store, names: Iterable[str], copies: Mapping[str, Path] | None = None) -> dict[str, Sealed]:
    """Return files as they are now, by their names; copies: where some of them lie, too."""
    found, known = list(names), copies or {}

    def one(name: str) -> Sealed:
        return Sealed.of_path(known[name]) if name in known else store.files.sealed(name)

    return dict(zip(found, store.files.each(one, found), strict=True))


def write(store: Store, name: str, files: dict[str, Sealed]) -> None:
    """Write what a seal says."""
    document: dict[str, Any] = {name: asdict(sealed) for name, sealed in sorted(files.items())}
    put_document(store, name, {"files": document, "sha256": _digest(document)})


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read(store: Store, name: str) -> dict[str, Sealed] | None:
    """Return what a seal says, by the names of files; None where it is damaged or absent."""
    return cached(store, name, _read)


def _read(document: Any) -> dict[str, Sealed]:
    if document["sha256"] != _digest(document["files"]):
        raise ValueError("not what was written")
    return {name: Sealed(**sealed) for name, sealed in document["files"].items()}


def seals(store: Store) -> list[str]:
    """Return the names of all seals, the first release's first."""
    return store.files.matching(f"{SEALS}/*.json")


def _added(store: Store, release: Release, tables: Mapping[str, IcebergTable] | None) -> Iterator[str]:
    """Yield the paths of what a release added, below the warehouse's root."""
    before = next((known for known in releases.kept(store)[::-1] if known.sequence < release.sequence), None)
    old = {path for paths in releases.files_of(store, before).values() for path in paths} if before else set()
    for paths in releases.files_of(store, release).values():
        yield from (path.relative_to(store.root).as_posix() for path in paths if path not in old)
    from iosig.warehouse.store import ledger

    brought = releases.inputs(store, [release.release_id]).filter(is_removed=False)["landing_id"]
    yield from map(manifest_in, ledger.read(store).of(brought)["folder"].unique().sort())
    if tables is None:
        from iosig.warehouse.releases.catalogue import open_catalogue

        catalogue = open_catalogue(store)
        tables = catalogue.all_tables()
        catalogue.close()
    for names in store.files.each(lambda table: list(_metadata(table, release, before)), tables.values()):
        yield from names


def _metadata(table: IcebergTable, release: Release, before: Release | None) -> Iterator[str]:
    """Yield the names of the metadata that a release added to a table, and of its row in that of releases."""
    name = table.name()[-1]
    yield name_of(name, table.metadata_location)
    head = table.current_snapshot()
    if head is None or (before is not None and before.snapshots.get(name) == head.snapshot_id):
        return
    yield name_of(name, head.manifest_list)
    for manifest in head.manifests(table.io):
        if manifest.added_snapshot_id == head.snapshot_id:
            yield name_of(name, manifest.manifest_path)
    if name == RELEASES.name:
        for task in table.scan().plan_files():
            if release.release_id in task.file.file_path:
                yield name_of(name, task.file.file_path)


def seal_metadata(store: Store, release: Release) -> None:
    """Have the current release's seal name the metadata that are current now, in place of those that were.

    So it does with the rows of all releases.
    """
    from iosig.warehouse.releases.catalogue import files_named, open_catalogue

    known = read(store, seal_of(release))
    if known is None:
        return
    catalogue = open_catalogue(store)
    rows = catalogue.load_table((NAMESPACE, RELEASES.name))
    head = rows.current_snapshot()
    names = set(files_named(rows, head)) if head else set()
    catalogue.close()
    names |= {name_of(table, location) for table, location in metadata_locations(store).items()}
    files = {name: sealed for name, sealed in known.items() if not name.endswith(".metadata.json")}
    write(store, seal_of(release), files | all_sealed(store, names))


def add(store: Store, release: Release, names: Iterable[str]) -> None:
    """Have a release's seal name more files, as they are now."""
    known = read(store, seal_of(release)) or {}
    write(store, seal_of(release), known | all_sealed(store, names))


def unseal(store: Store, names: set[str]) -> None:
    """Take files out of the seals that name them: they are not lost, they are gone."""
    for seal in seals(store):
        known = read(store, seal)
        if known is not None and names & known.keys():
            write(store, seal, {name: sealed for name, sealed in known.items() if name not in names})


def sealed(store: Store, chosen: Iterable[Release]) -> dict[str, Sealed]:
    """Return the files of releases' seals; those that are damaged or absent say nothing."""
    found: dict[str, Sealed] = {}
    for release in chosen:
        found |= read(store, seal_of(release)) or {}
    return found


def damaged_metadata(store: Store) -> tuple[str, str] | None:
    """Return a file that is not as it was written, and what is wrong, of those that say which files releases have.

    Of metadata files the older ones are not kept: those that the catalogue names must be there.
    """
    for seal in reversed(seals(store)):
        for name, written in (read(store, seal) or {}).items():
            if "/metadata/" not in name and not name.startswith(f"tables/{RELEASES.name}/"):
                continue
            problem = problem_of(store, name, written)
            if problem and not (name.endswith(".metadata.json") and _is_superseded(store, name)):
                return name, problem
    return None


def _is_superseded(store: Store, name: str) -> bool:
    """Return whether the catalogue names another metadata file of the table."""
    location = metadata_locations(store).get(name.split("/")[1])
    return location is not None and not location.endswith(f"/{Path(name).name}")


def renew(store: Store) -> None:
    """Seal anew the metadata that have been written anew, with all else as it was."""
    for name in seals(store):
        known = read(store, name)
        if known is not None:
            metadata = [each for each in known if "/metadata/" in each and store.files.mark(each)]
            write(store, name, known | {each: sealed_now(store, each) for each in metadata})


def require_sound(store: Store, paths: Iterable[Path]) -> None:
    """Raise MachineFault where a file is not as it was released.

    A file that was found sound within a day, and that the file system says is the same, is not read again.
    """
    marks = cached(store, _SOUND, _marks) or {}
    fresh: dict[str, list[float]] = {}
    now, known = time.time(), None
    for path in paths:
        name = path.relative_to(store.root).as_posix()
        mark = store.files.mark(name)
        *seen, at = marks.get(name, [0.0])
        if seen == mark and 0 <= now - at < _TRUSTED_S:
            continue
        known = sealed(store, releases.history(store)) if known is None else known
        if name in known:
            # an object store holds its bytes to checksums of its own: none is read for that
            is_as_long = store.url is not None and mark[:1] == [known[name].byte_count]
            if not is_as_long and (problem := problem_of(store, name, known[name])):
                raise MachineFault(f"{path} {problem}. `iosig verify` says what else is damaged; {_REMEDY}")
            fresh[name] = [*mark, now]
    if fresh:
        with suppress(OSError):
            trusted = {name: mark for name, mark in (marks | fresh).items() if now - mark[-1] < _TRUSTED_S}
            put_document(store, _SOUND, trusted)


def problem_of(store: Store, name: str, sealed: Sealed) -> str | None:
    """Return what is wrong with a file, None where it is as it was written; PermissionError where nobody may look."""
    try:
        found = sealed_now(store, name)
    except FileNotFoundError:
        return "is not there"
    except PermissionError:
        # whoever may not look does not know
        raise
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if found.byte_count != sealed.byte_count:
        return f"has {found.byte_count:,} bytes, not {sealed.byte_count:,}"
    return None if found == sealed else "has other bytes than were written"


def _marks(document: Any) -> dict[str, list[float]]:
    # whole numbers stay what they are: nanoseconds since 1970 do not fit into a float
    return {name: [number + 0 for number in mark] for name, mark in document.items() if mark}
