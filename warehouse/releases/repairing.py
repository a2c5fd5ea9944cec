"""Repair a warehouse: rebuild damaged files, return to an intact release, or set files aside.

Caches, links and hints are rebuilt from the releases, and manifests from a release's data files. The newest intact
release becomes the current one if other metadata of the current release, or a file of a table without daily partitions,
is damaged. If a file of one day is damaged, that day is scheduled for recomputation. In both cases, the next run
computes the data from the landings. A damaged landing is set aside, so that its input can land again. In a moved or
copied warehouse, the paths in the metadata are rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from iosig.warehouse.contracts import TABLES
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import checksums, links, losses, releases, seals
from iosig.warehouse.releases.catalogue import leave_hints, make_catalogue
from iosig.warehouse.releases.checksums import CATALOGUE_SEAL, SEALS, find_problem, release_seals
from iosig.warehouse.releases.locations import CACHES, HINT, get_location, parse_day
from iosig.warehouse.releases.losses import Losses
from iosig.warehouse.releases.manifest_repair import rebuild_manifests
from iosig.warehouse.releases.publishing import complete
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.releases.retention import read_closed_days
from iosig.warehouse.releases.servers import EMBEDDED, get_server, register
from iosig.warehouse.releases.verifying import Damage, Progress, defines_releases, is_release_row, verify
from iosig.warehouse.store import ledger, state
from iosig.warehouse.store.form import FILE, mend_form, require_form
from iosig.warehouse.store.manifests import LOT_PREFIX, in_folder, manifest_in
from iosig.warehouse.store.store import Store

#: maximum number of verification passes, since damage may hide other damage
_MAX_PASSES = 4


@dataclass(frozen=True, slots=True)
class RepairedFile:
    """A damaged file with the action taken and the remedy for the user."""

    path: str
    outcome: str
    remedy: str


def repair(store: Store, progress: Progress = lambda *_: None) -> list[RepairedFile]:
    """Verify a warehouse, repair damage, and relocate it if it was moved; return the actions taken.

    The caller must lock the warehouse.
    """
    repaired = [RepairedFile(FILE, "written again", "")] if mend_form(store) else []
    require_form(store)
    repaired += mend_state(store)
    for _ in range(_MAX_PASSES):
        damages = verify(store, progress=progress)
        repaired += _mend(store, damages)
        hiding = (store.catalogue.name, store.journal.name)
        if not any(damage.path in hiding or defines_releases(damage.path) for damage in damages):
            break
    if count := relocate(store, is_asked=True):
        repaired.append(
            RepairedFile(store.tables.name, f"{count:,} metadata files now refer to {get_location(store)}", "")
        )
    return repaired


def mend_state(store: Store) -> list[RepairedFile]:
    """Restore damaged state documents, including the one that names the catalogue."""
    return [RepairedFile(path, outcome, "") for path, outcome in state.mend(store)]


def _mend(store: Store, damages: list[Damage]) -> Iterator[RepairedFile]:
    if not damages:
        return
    yield from _landings(store, damages)
    yield from _releases(store, damages)
    yield from _journal(store, damages)
    yield from _rebuild_derived(store, [damage.path for damage in damages])
    if current := releases.current(store):
        _seal_older(store, current)
        complete(store)


def _rebuild_derived(store: Store, paths: Sequence[str]) -> Iterator[RepairedFile]:
    """Rebuild derived files: caches, indexes, links, hints and checksums."""
    store.files.remove(*CACHES)
    ledger.forget(store)
    for path in paths:
        if path == CATALOGUE_SEAL:
            checksums.seal_catalogue(store)
        elif path.startswith(f"{SEALS}/"):
            store.files.remove(path)
            yield RepairedFile(path, "sealed in its present state", "")
        elif path == links.LATEST:
            store.files.remove(f".{links.LATEST}-*")
        elif path.endswith(HINT):
            leave_hints(store)
        if path.startswith((*CACHES, links.LATEST, ledger.HEAD, CATALOGUE_SEAL)) or path.endswith(HINT):
            yield RepairedFile(path, "written again", "")


def _seal_older(store: Store, current: Release) -> None:
    """Create missing seals of earlier releases; expired ones have no files left."""
    expired_ids = releases.read_expired(store)
    for release in releases.history(store):
        if release.release_id in expired_ids and not seals.is_sealed(store, release):
            checksums.write(store, seals.make_seal_name(release), {})
        elif release != current and not seals.is_sealed(store, release):
            seals.seal(store, release)


def _landings(store: Store, damages: list[Damage]) -> Iterator[RepairedFile]:
    """Set damaged landings aside, so that their inputs can land again."""
    names = {damage.path.split("/")[1] for damage in damages if damage.path.startswith("landed/")}
    if not names:
        return
    losses.add(
        store, Losses(landing_ids=frozenset(landing_id for name in names for landing_id in _landing_ids(store, name)))
    )
    seals.unseal(store, {manifest_in(name) for name in names})
    for name in sorted(names):
        if store.files.holds(f"landed/{name}"):
            aside = store.files.set_aside(f"landed/{name}")
            yield RepairedFile(f"landed/{name}", f"set aside as {aside}", "Land the input again, and run.")


def _landing_ids(store: Store, folder: str) -> list[str]:
    """Return the landings of a folder; none for a lot with a damaged manifest."""
    with suppress(MachineFault):
        if landings := in_folder(store, folder):
            return [landing.landing_id for landing in landings]
    return [] if folder.startswith(LOT_PREFIX) else [folder]


# ---- releases


def _releases(store: Store, damages: list[Damage]) -> Iterator[RepairedFile]:
    """Schedule damaged days for recomputation, or return to an intact release if this is not enough."""
    paths = [damage.path for damage in damages]
    data = [path for path in paths if path.startswith("tables/") and "/data/" in path and not is_release_row(path)]
    open_days = {path: day for path, day in _days(data).items() if day not in read_closed_days(store)}
    losses.add(store, Losses(days=frozenset(open_days.values())))
    for path, day in open_days.items():
        yield RepairedFile(path, "lost", f"`iosig run` computes {day or 'the rows without a day'} again.")
    damaged_names = set(data) - open_days.keys()
    metadata = {path for path in paths if defines_releases(path)}
    if store.catalogue.name not in paths and metadata and _are_rebuilt(store, metadata):
        yield from (RepairedFile(path, "written again from the release's data files", "") for path in sorted(metadata))
        metadata = set()
    if damaged_names or metadata or store.catalogue.name in paths:
        yield from _go_back(store, damaged_names)


def _are_rebuilt(store: Store, damaged: set[str]) -> bool:
    """Rebuild damaged manifests and manifest lists; return False for other metadata, or if rebuilding fails."""
    if get_server(store).kind == "rest" or not all(path.endswith(".avro") for path in damaged):
        return False
    rows = f"tables/{RELEASES.name}/"
    if any(path.startswith(rows) for path in damaged):
        # these files define which releases exist
        return False
    return rebuild_manifests(store, releases.find(store, None), damaged)


def _days(names: Iterable[str]) -> dict[str, date | None]:
    """Map each data file of the tables that are partitioned by day to its day."""
    by_day = {table.name for table in TABLES if table.partition}
    return {name: parse_day(Path(name)) for name in names if name.split("/")[1] in by_day}


def _go_back(store: Store, damaged_data: set[str]) -> Iterator[RepairedFile]:
    """Make the newest release current that has intact metadata and no damaged data."""
    if get_server(store).kind == "rest":
        raise MachineFault(
            f"The catalogue {get_server(store)} refers to damaged tables. Only the administrator of the server can "
            "repair it."
        )
    expired_ids = releases.read_expired(store)
    for seal in (name for name in reversed(release_seals(store)) if _parse_release_id(name) not in expired_ids):
        if _is_restored(store, seal, damaged_data):
            outcome = f"restored to release {_parse_release_id(seal)}"
            yield RepairedFile(store.catalogue.name, outcome, "`iosig run` computes later ones again.")
            return
        store.files.set_aside(seal)
        yield RepairedFile(seal, "set aside: its release is damaged", "`iosig run` computes it again.")
    for name in (store.tables.name, store.catalogue.name):
        if store.files.holds(name) or store.has(name):
            store.files.set_aside(name)
    store.files.remove(CATALOGUE_SEAL)
    yield RepairedFile(
        store.catalogue.name,
        "set aside with all tables: no release is undamaged",
        "`iosig run` computes a release from the landings.",
    )


def _parse_release_id(seal: str) -> str:
    return Path(seal).stem.partition("-")[2]


def _is_restored(store: Store, seal: str, damaged_data: set[str]) -> bool:
    """Point the catalogue at the metadata in a release's seal; return False if these, or its data, are damaged."""
    documents = _documents(store, seal)
    if documents is None:
        return False
    _name_in_catalogue(store, documents)
    store.files.remove(*CACHES)
    release = releases.current(store)
    if release is None or release.release_id != _parse_release_id(seal):
        return False
    files = {
        path.relative_to(store.root).as_posix()
        for paths in releases.files_of(store, release).values()
        for path in paths
    }
    return not files & damaged_data


def _documents(store: Store, seal: str) -> dict[str, str] | None:
    """Return each table's metadata document from a seal; None unless the seal and all its metadata are intact."""
    recorded = checksums.read(store, seal)
    if recorded is None:
        return None
    relocated = checksums.read(store, checksums.RELOCATION) or {}
    earlier = (
        checksums.read(store, earlier_seal) or {} for earlier_seal in release_seals(store) if earlier_seal < seal
    )
    rows = {name: sealed for files in (*earlier, recorded) for name, sealed in files.items() if is_release_row(name)}
    metadata = rows | {name: sealed for name, sealed in recorded.items() if "/metadata/" in name}
    for name, sealed in metadata.items():
        if find_problem(store, name, sealed) and (name not in relocated or find_problem(store, name, relocated[name])):
            return None
    return {name.split("/")[1]: name for name in metadata if name.endswith(".metadata.json")}


def _name_in_catalogue(store: Store, documents: dict[str, str]) -> None:
    """Point the catalogue at these metadata; an SQLite catalogue is rebuilt, since any byte may be damaged."""
    server = get_server(store)
    if server == EMBEDDED:
        with suppress(FileNotFoundError):
            store.files.set_aside(store.catalogue.name)
    make_catalogue(store, server)
    # metadata contain the folder in which they were written; `relocate` rewrites them all together
    register(store, server, {table: f"{_root_in(store, name)}/{name}" for table, name in documents.items()})


def _root_in(store: Store, name: str) -> str:
    """Return the location of the folder in which metadata were written."""
    with store.files.open(name) as file:
        location: str = json.load(file)["location"]
    return location.rsplit("/tables/", 1)[0]


# ---- the journal


def _journal(store: Store, damages: list[Damage]) -> Iterator[RepairedFile]:
    """Set a damaged journal of predictions aside; its landed rows stay in the warehouse."""
    name = store.journal.name
    if any(damage.path == name for damage in damages):
        aside = store.files.set_aside(name)
        yield RepairedFile(name, f"set aside as {aside}", "Predictions start over; landed ones are kept.")
