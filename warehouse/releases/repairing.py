"""Repairing: what is damaged is made anew where it can be, and what is lost is told.

Caches, links and hints are made from the releases. Where a release's metadata or the catalogue are damaged, the last
release that is sound becomes the current one again; what came later is made anew by the next run, from the landings.
A damaged landing is set aside, so that its input can be landed again.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.placing import make_folder
from warehouse.releases import releases, seals
from warehouse.releases.catalogue import NAME, leave_hints, make_catalogue
from warehouse.releases.links import link_latest
from warehouse.releases.locations import NAMESPACE, SEALS, location_of
from warehouse.releases.seals import Sealed, problem_of
from warehouse.releases.verifying import Damage, verify
from warehouse.store.landing import set_aside
from warehouse.store.store import Store

#: where what is damaged is kept: it may hold what nothing else does
_ASIDE = "damaged"
_CACHES = ("release_index", "snapshot_files")


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of a damaged file: it was made anew, set aside, or is lost; and what to do then."""

    path: str
    outcome: str
    remedy: str


def repair(store: Store, damages: list[Damage] | None = None) -> list[Mended]:
    """Mend what is damaged, and return what became of it. The warehouse must be held by this writer."""
    damages = verify(store) if damages is None else damages
    mended = [*_landings(store, damages), *_releases(store, damages)]
    for folder in _CACHES:
        shutil.rmtree(store.root / folder, ignore_errors=True)
    mended += [
        Mended(damage.path, "made anew", "") for damage in damages if damage.path.startswith((*_CACHES, "latest"))
    ]
    if current := releases.current(store):
        leave_hints(store)
        releases.files_of(store, current)
        link_latest(store, current)
        for release in releases.history(store)[-1:]:
            path = seals.path_of(store, release)
            if not path.is_file() or seals.read(path) is None:
                seals.seal(store, release)
                mended.append(Mended(path.relative_to(store.root).as_posix(), "sealed as it is now", ""))
    return mended


def _landings(store: Store, damages: list[Damage]) -> Iterator[Mended]:
    """Set damaged landings aside: each input can be landed again then."""
    names = {damage.path.split("/")[1] for damage in damages if damage.path.startswith("landed/")}
    for name in sorted(names):
        if (store.landed / name).is_dir():
            yield Mended(f"landed/{name}", f"set aside as {set_aside(store, name)}", "Land the input again, and run.")


def _releases(store: Store, damages: list[Damage]) -> Iterator[Mended]:
    """Go back to the last release whose metadata are sound, if the current one's are not."""
    paths = [damage.path for damage in damages]
    for path in paths:
        if path.startswith("tables/") and "/data/" in path:
            yield Mended(path, "lost", f"`iosig run --date {Path(path).name[:10]}` makes its day anew.")
    is_broken = any("/metadata/" in path or path == store.catalogue.name for path in paths)
    if not is_broken:
        return
    for seal in sorted((store.root / SEALS).glob("*.json"), reverse=True):
        state = _state(store, seal)
        if state is not None:
            _go_back(store, state)
            yield Mended(
                store.catalogue.name, f"goes back to release {seal.stem[7:]}", "`iosig run` makes later ones anew."
            )
            return
        aside = store.root / _ASIDE / seal.name
        make_folder(aside.parent)
        seal.rename(aside)
        yield Mended(f"{SEALS}/{seal.name}", "set aside: its release is not sound", "`iosig run` makes it anew.")


def _state(store: Store, seal: Path) -> dict[str, str] | None:
    """Return each table's metadata file as a seal names it; None unless the seal and all its metadata are sound."""
    known = seals.read(seal)
    if known is None:
        return None
    metadata: dict[str, Sealed] = {name: sealed for name, sealed in known.items() if "/metadata/" in name}
    if any(problem_of(store.root / name, sealed) for name, sealed in metadata.items()):
        return None
    documents = [name for name in metadata if name.endswith(".metadata.json")]
    return {name.split("/")[1]: name for name in documents}


def _go_back(store: Store, state: dict[str, str]) -> None:
    """Have the catalogue name these metadata files, and make it anew where it is none."""
    try:
        with closing(sqlite3.connect(store.catalogue)) as connection, connection:
            connection.execute("select 1 from iceberg_tables").fetchone()
    except sqlite3.Error:
        aside = store.root / _ASIDE / store.catalogue.name
        make_folder(aside.parent)
        store.catalogue.rename(aside)
        make_catalogue(store)
    root = location_of(store.root)
    with closing(sqlite3.connect(store.catalogue)) as connection, connection:
        connection.execute("delete from iceberg_tables where table_namespace = ?", (NAMESPACE,))
        connection.executemany(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
            " values (?, ?, ?, ?)",
            [(NAME, NAMESPACE, table, f"{root}/{place}") for table, place in state.items()],
        )
