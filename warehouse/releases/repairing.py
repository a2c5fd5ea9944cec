"""Repairing: what is damaged is made anew where it can be, and what is lost is told.

Caches, links and hints are made from the releases. Where a release's metadata or the catalogue are damaged, the last
release that is sound becomes the current one again; what came later is made anew by the next run, from the landings.
A damaged landing is set aside, so that its input can be landed again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import links, releases, seals
from iosig.warehouse.releases.catalogue import make_catalogue
from iosig.warehouse.releases.locations import CACHES
from iosig.warehouse.releases.publishing import complete
from iosig.warehouse.releases.seals import problem_of
from iosig.warehouse.releases.servers import EMBEDDED, register, server_of
from iosig.warehouse.releases.verifying import Damage, verify
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of a damaged file: it was made anew, set aside, or is lost; and what to do then."""

    path: str
    outcome: str
    remedy: str


def repair(store: Store, damages: list[Damage] | None = None) -> list[Mended]:
    """Mend what is damaged, and return what became of it. The warehouse must be held by this writer."""
    damages = verify(store) if damages is None else damages
    mended = [*_landings(store, damages), *_releases(store, damages), *_journal(store, damages)]
    store.files.remove(*CACHES)
    ledger.forget(store)
    anew = (*CACHES, links.LATEST, ledger.HEAD)
    mended += [Mended(damage.path, "made anew", "") for damage in damages if damage.path.startswith(anew)]
    if current := releases.current(store):
        seal = seals.seal_of(current)
        if seals.is_sealed(store, current) and seals.read(store, seal) is None:
            store.files.remove(seal)
        if not seals.is_sealed(store, current):
            mended.append(Mended(seal, "sealed as it is now", ""))
        if any(damage.path == links.LATEST for damage in damages):
            store.files.remove(f".{links.LATEST}-*")
        complete(store)
    return mended


def _landings(store: Store, damages: list[Damage]) -> Iterator[Mended]:
    """Set damaged landings aside: each input can be landed again then."""
    names = {damage.path.split("/")[1] for damage in damages if damage.path.startswith("landed/")}
    for name in sorted(names):
        if store.files.holds(f"landed/{name}"):
            aside = store.files.set_aside(f"landed/{name}")
            yield Mended(f"landed/{name}", f"set aside as {aside}", "Land the input again, and run.")


def _releases(store: Store, damages: list[Damage]) -> Iterator[Mended]:
    """Go back to the last release whose metadata are sound, if the current one's are not."""
    paths = [damage.path for damage in damages]
    for path in paths:
        if path.startswith("tables/") and "/data/" in path and not _tells_of_releases(path):
            yield Mended(path, "lost", f"`iosig run --date {Path(path).name[:10]}` makes its day anew.")
    is_broken = any(_tells_of_releases(path) or path == store.catalogue.name for path in paths)
    if not is_broken:
        return
    gone = releases.expired(store)
    for seal in (name for name in reversed(seals.seals(store)) if _release_of(name) not in gone):
        state = _state(store, seal)
        if state is not None:
            _go_back(store, state)
            back = f"goes back to release {_release_of(seal)}"
            yield Mended(store.catalogue.name, back, "`iosig run` makes later ones anew.")
            return
        store.files.set_aside(seal)
        yield Mended(seal, "set aside: its release is not sound", "`iosig run` makes it anew.")
    if store.files.holds(store.tables.name):
        store.files.set_aside(store.tables.name)
    if store.has(store.catalogue.name):
        store.files.set_aside(store.catalogue.name)
    yield Mended(
        store.catalogue.name, "set aside with all tables: no release is sound", "`iosig run` makes one of the landings."
    )


def _tells_of_releases(path: str) -> bool:
    """Return whether a file says which files and releases there are."""
    return "/metadata/" in path or path.startswith(f"tables/{RELEASES.name}/")


def _journal(store: Store, damages: list[Damage]) -> Iterator[Mended]:
    """Set a damaged journal of predictions aside: what was landed of it stays."""
    name = store.journal.name
    if any(damage.path == name for damage in damages):
        aside = store.files.set_aside(name)
        yield Mended(name, f"set aside as {aside}", "Predictions begin anew; those that landed stay.")


def _release_of(seal: str) -> str:
    return Path(seal).stem.partition("-")[2]


def _state(store: Store, seal: str) -> dict[str, str] | None:
    """Return each table's metadata file as a seal names it; None unless the seal and all its metadata are sound."""
    known = seals.read(store, seal)
    if known is None:
        return None
    earlier = (seals.read(store, each) or {} for each in seals.seals(store) if each < seal)
    rows = {name: sealed for files in (*earlier, known) for name, sealed in files.items() if _is_row(name)}
    metadata = rows | {name: sealed for name, sealed in known.items() if "/metadata/" in name}
    if any(problem_of(store, name, sealed) for name, sealed in metadata.items()):
        return None
    documents = [name for name in metadata if name.endswith(".metadata.json")]
    return {name.split("/")[1]: name for name in documents}


def _is_row(name: str) -> bool:
    """Return whether a file holds the row of a release."""
    return name.startswith(f"tables/{RELEASES.name}/data/")


def _root_in(store: Store, name: str) -> str:
    """Return the location of the folder in which metadata were written."""
    with store.files.opened(name) as file:
        location: str = json.load(file)["location"]
    return location.rsplit("/tables/", 1)[0]


def _go_back(store: Store, state: dict[str, str]) -> None:
    """Have the catalogue name these metadata files, and make it anew where it is none."""
    server = server_of(store)
    if server.kind == "rest":
        raise MachineFault(f"The catalogue {server} names damaged tables, and only its keeper can mend it.")
    if server == EMBEDDED:
        try:
            with closing(sqlite3.connect(store.catalogue)) as connection, connection:
                connection.execute("select 1 from iceberg_tables").fetchone()
        except sqlite3.Error:
            store.files.set_aside(store.catalogue.name)
    make_catalogue(store, server)
    # what lies in the metadata names the folder in which they were written: `relocate` mends all of it together
    register(store, server, {table: f"{_root_in(store, place)}/{place}" for table, place in state.items()})
