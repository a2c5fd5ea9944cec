"""Verifying: whether what lies in a warehouse is what was written, and which file is not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.errors import MachineFault
from warehouse.releases import releases, seals
from warehouse.releases.locations import metadata_locations
from warehouse.releases.releases import Release
from warehouse.releases.seals import Sealed, problem_of
from warehouse.store import landing
from warehouse.store.store import Store

#: told of each file: how many bytes were read, of how many
Told = Callable[[int, int], None]

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
    expected: dict[str, tuple[Sealed, str]] = {}
    history = releases.history(store)
    for release in history:
        path = seals.path_of(store, release)
        if not path.is_file() or seals.read(path) is None:
            found.append(Damage(path.relative_to(store.root).as_posix(), "is no seal of its release", MAKE_ANEW))
    known = seals.sealed(store, history)
    wanted = known.keys() if is_all else _named(store, history[-1:]) & known.keys()
    expected |= {name: (known[name], RUN_AGAIN) for name in wanted if _is_to_be_there(store, name)}
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
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (told,) = connection.execute("pragma integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        return f"is no sound SQLite file ({error})"
    return None if told == "ok" else f"is no sound SQLite file ({str(told).splitlines()[-1]})"


def _named(store: Store, chosen: list[Release]) -> set[str]:
    """Return the paths that releases and the catalogue name, metadata included."""
    paths = {path for release in chosen for files in releases.files_of(store, release).values() for path in files}
    names = {path.relative_to(store.root).as_posix() for path in paths}
    current = {_current_metadata(name, location) for name, location in metadata_locations(store).items()}
    lists = seals.sealed(store, chosen).keys()
    landed = {name for name in seals.sealed(store, releases.history(store)) if name.startswith("landed/")}
    return names | current | lists | landed


def _current_metadata(table: str, location: str) -> str:
    return f"tables/{table}/metadata/{location.rsplit('/', 1)[1]}"


def _is_to_be_there(store: Store, name: str) -> bool:
    """Return whether a sealed file must still be there: of a table's older metadata the last ones alone are kept."""
    if not name.endswith(".metadata.json"):
        return True
    table = name.split("/")[1]
    return (store.root / name).is_file() or name == _current_metadata(table, metadata_locations(store).get(table, "/"))


def _of_landings(store: Store, expected: dict[str, tuple[Sealed, str]]) -> Iterator[Damage]:
    """Yield landings that cannot be read, and add the files of the others to what is expected."""
    folders = sorted(path for path in store.landed.glob("*") if path.is_dir() and not path.name.startswith("."))
    for folder in folders:
        manifest = f"landed/{folder.name}/landing.json"
        if manifest in expected:
            expected[manifest] = (expected[manifest][0], LAND_AGAIN)
        try:
            landed = landing.find(store, folder.name)
        except MachineFault:
            yield Damage(manifest, "is no manifest of a landing", LAND_AGAIN)
            continue
        if landed is None:
            yield Damage(manifest, "is not there", LAND_AGAIN)
            continue
        expected |= {part.path: (Sealed(part.byte_count, part.sha256), LAND_AGAIN) for part in landed.parts}


def _of_caches(store: Store, history: list[Release]) -> Iterator[Damage]:
    """Yield indexes that are torn, or name other files than there are."""
    for folder in ("release_index", "snapshot_files"):
        for path in sorted((store.root / folder).glob("*.json")):
            try:
                json.loads(path.read_bytes())
            except ValueError:
                yield Damage(f"{folder}/{path.name}", "is no JSON", MAKE_ANEW)
    if history and not (store.root / "latest" / "jobs").is_dir():
        yield Damage("latest", "is not there", MAKE_ANEW)


def _of_files(store: Store, expected: dict[str, tuple[Sealed, str]], told: Told) -> Iterator[Damage]:
    done, total = 0, sum(sealed.byte_count for sealed, _ in expected.values())
    for name, (sealed, remedy) in sorted(expected.items()):
        if problem := problem_of(store.root / name, sealed):
            yield Damage(name, problem, remedy)
        done += sealed.byte_count
        told(done, total)
