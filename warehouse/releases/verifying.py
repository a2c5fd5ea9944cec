"""Verifying: whether what lies in a warehouse is what was written, and which file is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import sqlite_uri
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import links, releases, seals
from iosig.warehouse.releases.locations import CACHES, metadata_locations, name_of
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.seals import problem_of
from iosig.warehouse.store import ledger
from iosig.warehouse.store.files import Sealed
from iosig.warehouse.store.manifests import in_folder, manifest_in
from iosig.warehouse.store.store import Store, cached

#: told of each file: how many bytes were read, of how many
Told = Callable[[int, int], None]
#: what each release's seal says, None where it is damaged
Seals = dict[str, dict[str, Sealed] | None]

RUN_AGAIN = "`iosig repair`, then `iosig run --date DAY` makes the day anew."
LAND_AGAIN = "`iosig repair` sets it aside; then land the input again."
GO_BACK = "`iosig repair` goes back to the last good state."
MAKE_ANEW = "`iosig repair` makes it anew."


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what was written: its path below the warehouse's root, what is wrong, what to do."""

    path: str
    problem: str
    remedy: str


def verify(store: Store, *, is_all: bool = False, told: Told = lambda *_: None) -> list[Damage]:
    """Return what is damaged of the current release, or of every release if `is_all`, and of all landings.

    Everything is read whole.
    """
    found = list(_of_databases(store))
    if found:
        return found
    try:
        return _all_of(store, is_all, told)
    except Exception:
        # A reader of damaged metadata may break off in any way: then nothing says which files there are to be.
        if (damaged := seals.damaged_metadata(store)) is None:
            raise
        return [Damage(*damaged, GO_BACK)]


def _all_of(store: Store, is_all: bool, told: Told) -> list[Damage]:
    found: list[Damage] = []
    history = releases.history(store)
    known: Seals = {release.release_id: seals.read(store, seals.seal_of(release)) for release in history}
    for release in history:
        if known[release.release_id] is None:
            found.append(Damage(seals.seal_of(release), "is no seal of its release", MAKE_ANEW))
    sealed = {name: each for files in known.values() for name, each in (files or {}).items()}
    current = {name_of(table, location) for table, location in metadata_locations(store).items()}
    wanted = sealed.keys() if is_all else _of_current(store, history, known) | current
    expected = {
        name: (sealed[name], RUN_AGAIN) for name in wanted & sealed.keys() if _is_to_be_there(store, name, current)
    }
    found += _of_landings(store, expected)
    found += _of_caches(store, history)
    return [*found, *_of_files(store, expected, told)]


def _of_databases(store: Store) -> Iterator[Damage]:
    for path in (store.catalogue, store.journal):
        if path.is_file() and (problem := _problem_of_sqlite(path)):
            yield Damage(path.name, problem, GO_BACK)
            return
    try:
        metadata_locations(store)
    except MachineFault:
        yield Damage(store.catalogue.name, "does not name the tables that there are", GO_BACK)


def _problem_of_sqlite(path: Path) -> str | None:
    path.open("rb").close()
    try:
        with closing(sqlite3.connect(sqlite_uri(path, mode="ro"), uri=True)) as connection:
            (told,) = connection.execute("pragma integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        return f"is no sound SQLite file ({error})"
    return None if told == "ok" else f"is no sound SQLite file ({str(told).splitlines()[-1]})"


def _of_current(store: Store, history: list[Release], known: Seals) -> set[str]:
    """Return the names of the current release's files, of what it added, and of all manifests and releases' rows."""
    if not history:
        return set()
    paths = [path for files in releases.files_of(store, history[-1]).values() for path in files]
    of_all = ("landed/", f"tables/{RELEASES.name}/data/")
    kept = {name for files in known.values() for name in files or () if name.startswith(of_all)}
    names = {path.relative_to(store.root).as_posix() for path in paths}
    return names | kept | (known[history[-1].release_id] or {}).keys()


def _is_to_be_there(store: Store, name: str, current: set[str]) -> bool:
    """Return whether a sealed file must still be there: of a table's older metadata the last ones alone are kept."""
    return not name.endswith(".metadata.json") or name in current or bool(store.files.mark(name))


def _of_landings(store: Store, expected: dict[str, tuple[Sealed, str]]) -> Iterator[Damage]:
    """Yield landings that cannot be read, and add the files of the others to what is expected."""
    for folder in sorted(store.files.folders("landed")):
        manifest = manifest_in(folder)
        if manifest in expected:
            expected[manifest] = (expected[manifest][0], LAND_AGAIN)
        try:
            landings = in_folder(store, folder)
        except MachineFault:
            yield Damage(manifest, "is no manifest of a landing", LAND_AGAIN)
            continue
        if not landings:
            yield Damage(manifest, "is not there", LAND_AGAIN)
            continue
        parts = (part for landed in landings for part in landed.parts)
        expected |= {part.path: (Sealed(part.byte_count, part.sha256), LAND_AGAIN) for part in parts}


def _of_caches(store: Store, history: list[Release]) -> Iterator[Damage]:
    """Yield indexes that are torn, or name other files than there are."""
    for name in (name for folder in CACHES for name in store.files.matching(f"{folder}/*.json")):
        if cached(store, name, list) is None:
            yield Damage(name, "is no JSON", MAKE_ANEW)
    try:
        is_true = ledger.is_true(store)
    except MachineFault:
        # it is told of the manifest
        is_true = True
    if not is_true:
        yield Damage(ledger.HEAD, "does not say what the manifests do", MAKE_ANEW)
    if history and not links.is_whole(store, history[-1]):
        yield Damage(links.LATEST, "does not show the current release", MAKE_ANEW)


def _of_files(store: Store, expected: dict[str, tuple[Sealed, str]], told: Told) -> Iterator[Damage]:
    done, total = 0, sum(sealed.byte_count for sealed, _ in expected.values())
    for name, (sealed, remedy) in sorted(expected.items()):
        if problem := problem_of(store, name, sealed):
            yield Damage(name, problem, remedy)
        done += sealed.byte_count
        told(done, total)
