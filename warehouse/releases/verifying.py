"""Verify a warehouse by comparing its files with their checksums.

`iosig verify` prints the result of `verify`, `iosig repair` repairs the damage, and `iosig upgrade` requires that
`verify` finds none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import sqlite_uri
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import checksums, links, releases, seals
from iosig.warehouse.releases.checksums import CATALOGUE_SEAL, RELOCATION, find_problem
from iosig.warehouse.releases.locations import CACHES, HINT, get_relative_name, make_hints, metadata_locations
from iosig.warehouse.releases.releases import Release, make_list_name
from iosig.warehouse.releases.servers import EMBEDDED, NAMESPACE, get_server
from iosig.warehouse.store import form, ledger, state
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.manifests import in_folder, manifest_in
from iosig.warehouse.store.objects import NOTE
from iosig.warehouse.store.store import Store, read_cache

#: called after each file with the bytes read so far and the total
Progress = Callable[[int, int], None]

RUN_AGAIN = "`iosig repair`, then `iosig run` computes it again."
LAND_AGAIN = "`iosig repair` sets it aside; then land the input again."
GO_BACK = "`iosig repair` restores the newest undamaged release."
MAKE_AGAIN = "`iosig repair` writes it again."
RESTORE = "`iosig repair` restores it."


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file (path relative to the warehouse's root), the problem and the remedy."""

    path: str
    problem: str
    remedy: str


@dataclass
class _ExpectedFiles:
    """Expected files with their checksums and remedies; begun: checksums after a relocation that was killed."""

    begun: dict[str, FileChecksum]
    files: dict[str, tuple[FileChecksum, str]] = field(default_factory=dict)

    def problem_of(self, store: Store, name: str, sealed: FileChecksum) -> str | None:
        """Compare a file with its checksum, or with its checksum after a pending relocation."""
        problem = find_problem(store, name, sealed)
        is_relocated = problem and name in self.begun and find_problem(store, name, self.begun[name]) is None
        return None if is_relocated else problem


def verify(store: Store, *, is_all: bool = False, progress: Progress = lambda *_: None) -> list[Damage]:
    """Verify the current release, or every release if `is_all`, and all landings; return the damaged files.

    If the catalogue or the current release's metadata are damaged, other releases are not checked.
    """
    if form.is_damaged(store):
        return [Damage(form.FILE, "is damaged", MAKE_AGAIN)]
    in_state = [Damage(path, problem, RESTORE) for path, problem in state.problems(store)]
    if any(damage.path.endswith(NOTE) for damage in in_state):
        # this document locates the catalogue
        return in_state
    return [*in_state, *_in_releases(store, is_all, progress)]


def _in_releases(store: Store, is_all: bool, progress: Progress) -> list[Damage]:
    if damages := [*_in_databases(store)]:
        return damages
    expected = _ExpectedFiles(checksums.read(store, RELOCATION) or {})
    if damages := [*_in_metadata(store, expected)]:
        return damages
    try:
        return _in_files(store, expected, is_all, progress)
    except Exception:
        # parsers of damaged manifests raise arbitrary exceptions; checksums identify the damaged files
        if damages := [*_in_all_metadata(store, expected)]:
            return damages
        raise


def _in_databases(store: Store) -> Iterator[Damage]:
    """Yield damaged SQLite files, and the catalogue if it does not name the tables."""
    problems = {path: _check_sqlite(path) for path in (store.catalogue, store.journal) if path.is_file()}
    yield from (Damage(path.name, problem, GO_BACK) for path, problem in problems.items() if problem)
    if not problems.get(store.catalogue):
        yield from _in_catalogue(store)


def _in_catalogue(store: Store) -> Iterator[Damage]:
    """Yield the first damage of the catalogue: a changed table of the SQLite file, or a wrong table location."""
    if get_server(store) == EMBEDDED and store.catalogue.is_file():
        recorded = checksums.read(store, CATALOGUE_SEAL)
        if recorded is None:
            yield Damage(CATALOGUE_SEAL, "is missing or damaged", MAKE_AGAIN)
        # a killed writer leaves no checksum, but the tables in the catalogue are checked in any case
        for name, sealed in (recorded or {}).items():
            if problem := find_problem(store, name, sealed):
                yield Damage(name, problem, GO_BACK)
                return
    try:
        locations = metadata_locations(store)
    except MachineFault:
        yield Damage(store.catalogue.name, "does not name the existing tables", GO_BACK)
        return
    for table, location in locations.items():
        if f"/tables/{table}/" not in location:
            yield Damage(store.catalogue.name, f"does not name the metadata of {table}", GO_BACK)
            return


def _check_sqlite(path: Path) -> str | None:
    path.open("rb").close()
    try:
        with closing(sqlite3.connect(sqlite_uri(path, mode="ro"), uri=True)) as connection:
            (report,) = connection.execute("pragma integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        return f"is not a valid SQLite file ({error})"
    return None if report == "ok" else f"is not a valid SQLite file ({str(report).splitlines()[-1]})"


def _in_metadata(store: Store, expected: _ExpectedFiles) -> Iterator[Damage]:
    """Yield damaged metadata that define the current release's files or the list of releases."""
    current = _current_metadata(store)
    documents = [document for name in checksums.release_seals(store) if (document := checksums.read(store, name))]
    rows = {name: sealed for document in documents for name, sealed in document.items() if is_release_row(name)}
    newest = {name: sealed for name, sealed in (documents or [{}])[-1].items() if defines_releases(name)}
    for name, sealed in sorted((rows | newest).items()):
        if _must_exist(store, name, current) and (problem := expected.problem_of(store, name, sealed)):
            yield Damage(name, problem, GO_BACK)
    for name in sorted(current - newest.keys()):
        try:
            json.loads(store.files.content(name) or b"")
        except ValueError:
            yield Damage(name, "is missing, or not JSON", GO_BACK)


def _in_all_metadata(store: Store, expected: _ExpectedFiles) -> Iterator[Damage]:
    """Yield damaged metadata of all releases, including the current one."""
    current = _current_metadata(store)
    for name, sealed in sorted(seals.all_checksums(store).items()):
        is_meant = defines_releases(name) and _must_exist(store, name, current)
        if is_meant and (problem := expected.problem_of(store, name, sealed)):
            yield Damage(name, problem, GO_BACK)


def find_damaged_metadata(store: Store) -> Damage | None:
    """Return the first damaged file that defines the set of files and releases."""
    return next(_in_all_metadata(store, _ExpectedFiles(checksums.read(store, RELOCATION) or {})), None)


def _current_metadata(store: Store) -> set[str]:
    return {get_relative_name(table, location) for table, location in metadata_locations(store).items()}


def is_release_row(name: str) -> bool:
    """Return whether a file contains rows of the table `releases`."""
    return name.startswith(f"tables/{RELEASES.name}/data/")


def defines_releases(name: str) -> bool:
    """Return whether a file defines the set of files and releases."""
    return ("/metadata/" in name and not name.endswith(HINT)) or is_release_row(name)


def _must_exist(store: Store, name: str, current: set[str]) -> bool:
    """Return whether a file with a checksum must still exist; old metadata documents are removed over time."""
    return not name.endswith(".metadata.json") or name in current or bool(store.files.mark(name))


def _in_files(store: Store, expected: _ExpectedFiles, is_all: bool, progress: Progress) -> list[Damage]:
    history = releases.read_history(store)
    files_by_release = {release.release_id: checksums.read(store, seals.make_seal_name(release)) for release in history}
    damages = [
        Damage(seals.make_seal_name(release), "is not a seal of its release", MAKE_AGAIN)
        for release in history
        if files_by_release[release.release_id] is None
    ]
    sealed = {name: checksum for files in files_by_release.values() for name, checksum in (files or {}).items()}
    current = _current_metadata(store)
    expired_ids = releases.read_expired(store)
    checked_releases = (
        [release for release in history if release.release_id not in expired_ids] if is_all else history[-1:]
    )
    snapshot_files = _map_snapshot_files(store, checked_releases) if checked_releases else {}
    current_lists = [make_list_name(*snapshot) for snapshot in history[-1].snapshots.items()] if history else []
    released = {name for list_name in current_lists for name in snapshot_files[list_name]}
    if history and files_by_release[history[-1].release_id] is not None and released - sealed.keys():
        damages.append(Damage(seals.make_seal_name(history[-1]), "does not name all files of its release", MAKE_AGAIN))
    checked_names = set(sealed) if is_all else released | current
    if history and not is_all:
        permanent = ("landed/", f"tables/{RELEASES.name}/data/")
        checked_names |= {name for name in sealed if name.startswith(permanent)} | (
            files_by_release[history[-1].release_id] or {}
        ).keys()
    expected.files |= {
        name: (sealed[name], RUN_AGAIN) for name in checked_names & sealed.keys() if _must_exist(store, name, current)
    }
    damages += _in_landings(store, expected)
    damages += _in_caches(store, history, snapshot_files)
    return [*damages, *_differing(store, expected, progress)]


def _map_snapshot_files(store: Store, checked_releases: Iterable[Release]) -> dict[str, list[str]]:
    """Map the manifest list of each snapshot to the snapshot's files: data, manifests and the list.

    They are read from the Iceberg metadata.
    """
    from iosig.warehouse.releases.catalogue import list_snapshot_files, open_catalogue

    snapshots = {snapshot: None for release in checked_releases for snapshot in release.snapshots.items()}
    with open_catalogue(store) as catalogue:
        return {
            make_list_name(name, snapshot_id): sorted(
                list_snapshot_files(catalogue.load_table((NAMESPACE, name)), snapshot_id)
            )
            for name, snapshot_id in snapshots
        }


def _in_landings(store: Store, expected: _ExpectedFiles) -> Iterator[Damage]:
    """Yield unreadable landings, and add the files of all other landings to the expected ones."""
    for folder in sorted(store.files.folders("landed")):
        manifest = manifest_in(folder)
        if manifest in expected.files:
            expected.files[manifest] = (expected.files[manifest][0], LAND_AGAIN)
        try:
            landings = in_folder(store, folder)
        except MachineFault:
            yield Damage(manifest, "is not a manifest of a landing", LAND_AGAIN)
            expected.files.pop(manifest, None)
            continue
        if not landings:
            yield Damage(manifest, "does not exist", LAND_AGAIN)
            expected.files.pop(manifest, None)
            continue
        parts = (part for landed in landings for part in landed.parts)
        expected.files |= {part.path: (FileChecksum(part.byte_count, part.sha256), LAND_AGAIN) for part in parts}


def _in_caches(store: Store, history: list[Release], snapshot_files: dict[str, list[str]]) -> Iterator[Damage]:
    """Yield indexes, file lists and hints that differ from their sources."""
    outdated = {
        name
        for folder in CACHES
        for name in store.files.matching(f"{folder}/*.json")
        if read_cache(store, name, lambda document: document is not None) is None
    }
    for name, names in snapshot_files.items():
        if store.files.mark(name) and read_cache(store, name, sorted) != [
            file_name for file_name in names if "/data/" in file_name
        ]:
            outdated.add(name)
    if index := releases.wrong_index(store, history):
        outdated.add(index)
    outdated |= {name for name in make_hints(metadata_locations(store)) if not _names_metadata(store, name)}
    for name in sorted(outdated):
        yield Damage(name, "contradicts the tables' metadata", MAKE_AGAIN)
    try:
        is_true = ledger.is_true(store)
    except MachineFault:
        # a manifest is damaged, which is reported elsewhere
        is_true = True
    if not is_true:
        yield Damage(ledger.HEAD, "contradicts the manifests", MAKE_AGAIN)
    if history and not links.is_whole(store, history[-1]):
        yield Damage(links.LATEST, "does not show the current release", MAKE_AGAIN)


def _names_metadata(store: Store, hint: str) -> bool:
    """Return whether a hint names existing metadata, which may be outdated after a kill."""
    content = store.files.content(hint)
    if content is None:
        return True
    version = content.decode(errors="replace")
    return "/" not in version and bool(store.files.mark(hint.replace(HINT, f"{version}.metadata.json")))


def _differing(store: Store, expected: _ExpectedFiles, progress: Progress) -> Iterator[Damage]:
    done_bytes, total_bytes = 0, sum(sealed.byte_count for sealed, _ in expected.files.values())
    for name, (sealed, remedy) in sorted(expected.files.items()):
        if problem := expected.problem_of(store, name, sealed):
            yield Damage(name, problem, remedy)
        done_bytes += sealed.byte_count
        progress(done_bytes, total_bytes)
