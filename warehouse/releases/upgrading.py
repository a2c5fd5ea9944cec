"""Upgrading: a warehouse of an older form becomes one of this form, and keeps its releases, ids and verdicts.

Whole or not at all: what an upgrade changes is kept beside until all is done, and put back after an error, or by the
next upgrade after a kill. Data are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import checksums, releases, seals
from iosig.warehouse.releases.catalogue import changed_at_once, leave_hints, replace, tag, widen
from iosig.warehouse.releases.checksums import CATALOGUE_SEAL, SEALS
from iosig.warehouse.releases.links import LATEST, link_latest
from iosig.warehouse.releases.locations import CACHES, INDEX, LISTS, PLAIN, data_place, location_of
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import state
from iosig.warehouse.store.form import FORM, form_of, mark_form
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.store import Store, document, put_document, put_parquet

#: told of each landing and release: how many are done, of how many
Told = Callable[[int, int], None]
#: where the files are kept that an upgrade changes, and the note that all of them are there
_KEPT = "before-upgrade"
_NOTE = f"{_KEPT}/kept.json"
#: what an upgrade changes or adds, and what it makes of nothing
_CHANGED = (
    "catalogue.sqlite",
    "form.json",
    manifest_in("*"),
    "tables/*/metadata/*",
    f"tables/{RELEASES.name}/data/*",
    *(f"{folder}/*" for folder in (INDEX, LISTS)),
)
_MADE = (SEALS, state.FOLDER, LATEST, f".{LATEST}-*", PLAIN)


@dataclass(frozen=True, slots=True)
class Needs:
    """What an upgrade takes: files that are written anew, files that are read whole, bytes of both, releases."""

    form: int
    written_file_count: int
    written_bytes: int
    read_file_count: int
    read_bytes: int

    @property
    def duration_s(self) -> float:
        """About how long it takes, at 1 GB/s of reading and a thousand small files a second."""
        return self.read_bytes / 1e9 + (self.written_file_count + self.read_file_count) / 1e3


def needs(store: Store) -> Needs | None:
    """Return what the upgrade of a warehouse takes; None where it has this form already, or is empty."""
    form = form_of(store)
    if form is None or (form >= FORM and not store.files.mark(_NOTE) and _has_checksums(store)):
        return None
    if form == FORM:
        return Needs(form, 1, 0, 0, 0)
    written = [*store.files.matching("tables/*/metadata/*"), *store.files.matching(manifest_in("*"))]
    read = store.files.matching("landed/*/*.parquet")
    return Needs(form, len(written), _size(store, written), len(read), _size(store, read))


def _has_checksums(store: Store) -> bool:
    """Return whether the SQLite catalogue and state documents have checksums; commit 18b5d00 wrote none."""
    return _has_catalogue_checksum(store) and state.has_copies(store)


def _has_catalogue_checksum(store: Store) -> bool:
    return not store.has(store.catalogue.name) or bool(store.files.mark(CATALOGUE_SEAL))


def _size(store: Store, names: list[str]) -> int:
    return sum((store.root / name).stat().st_size for name in names)


def upgrade(store: Store, told: Told = lambda *_: None) -> None:
    """Bring a warehouse to this form, then verify it; nothing is done where it has the form.

    After an error, and where a file is damaged (MachineFault), it is as it was.
    """
    if needs(store) is None:
        return
    if form_of(store) != FORM:
        undo(store)
        _keep(store)
        try:
            _change(store, told)
        except BaseException:
            undo(store)
            raise
    _finish(store)
    if damages := verify(store):
        undo(store)
        more = f", and {len(damages) - 1:,} more files" if len(damages) > 1 else ""
        raise MachineFault(
            f"{store.root / damages[0].path} {damages[0].problem}{more}. Restore it, then upgrade again."
        )
    store.files.remove(_KEPT)


def _keep(store: Store) -> None:
    """Keep the files that are going to be changed: all of them are replaced, but for the catalogue."""
    names = [name for pattern in _CHANGED for name in store.files.matching(pattern)]
    for name in names:
        store.files.take(store.root / name, f"{_KEPT}/{name}")
    if content := store.files.content(store.catalogue.name):
        store.files.put(f"{_KEPT}/{store.catalogue.name}", content)
    put_document(store, _NOTE, names)


def undo(store: Store) -> None:
    """Put back what an upgrade that did not end has changed; one that did not begin to change leaves nothing."""
    kept: list[str] | None = document(store, _NOTE)
    if kept is not None:
        new = {name for pattern in _CHANGED for name in store.files.matching(pattern)} - set(kept)
        store.files.remove(*_MADE, *new)
        for name in kept:
            store.files.take(store.root / _KEPT / name, name)
    store.files.remove(_KEPT)


def _change(store: Store, told: Told) -> None:
    _count_landings(store, told)
    relocate(store)
    _order_releases(store, told)
    store.files.remove(*CACHES)
    mark_form(store)


def _finish(store: Store) -> None:
    """Leave beside the releases what this form has there: seals, links, hints, files that nobody writes to."""
    store.files.protect("tables/*/data/*.parquet", "landed/*/*.parquet")
    for release in releases.history(store):
        if not seals.is_sealed(store, release):
            seals.seal(store, release)
    if current := releases.current(store):
        link_latest(store, current)
    leave_hints(store)
    if not _has_catalogue_checksum(store):
        checksums.seal_catalogue(store)
    state.copy_all(store)


# ---- from form 1 to 2: landings


def _count_landings(store: Store, told: Told) -> None:
    """Give the landings their places, in the order of form 1, the clock's, and note the SHA-256 of their files."""
    manifests = {name: document(store, name) for name in store.files.matching(manifest_in("*"))}
    ordered = sorted(manifests.items(), key=lambda found: (found[1]["landed_at"], found[1]["landing_id"]))
    for place, (name, known) in enumerate(ordered, 1):
        parts = [part | asdict(store.files.sealed(part["path"])) for part in known["parts"]]
        put_document(store, name, known | {"sequence": place, "parts": parts})
        told(place, len(ordered))


# ---- from form 1 to 2: releases


def _order_releases(store: Store, told: Told) -> None:
    """Give the releases their places, tag the snapshots of each, and have all tables be there in the current one."""
    with changed_at_once(store) as catalogue:
        if not catalogue.table_exists((NAMESPACE, RELEASES.name)):
            return
        for table in (*releases.published(), RELEASES):
            if catalogue.table_exists((NAMESPACE, table.name)):
                widen(catalogue, table)
        rows = _numbered(catalogue.load_table((NAMESPACE, RELEASES.name)).scan().to_arrow().to_pylist())
        for done, row in enumerate(rows, 1):
            for name, snapshot_id in json.loads(row["snapshots"]).items():
                tag(catalogue, name, snapshot_id, row["release_id"], is_current=False)
            told(done, len(rows))
        known: dict[str, int] = json.loads(rows[-1]["snapshots"])
        absent = [table for table in releases.published() if table.name not in known]
        made = {each.name: replace(catalogue, each, [], days=None, tag=rows[-1]["release_id"]) for each in absent}
        known |= {name: shown.snapshot_id for name, shown in made.items()}
        rows[-1]["snapshots"] = json.dumps(known, sort_keys=True)
        place = data_place(RELEASES, None, f"form-{FORM}")
        put_parquet(store, pl.DataFrame(rows, schema=frames.schema(RELEASES)), RELEASES, place)
        replace(catalogue, RELEASES, [f"{location_of(store)}/{place}"], days=None, tag=rows[-1]["release_id"])


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of releases in their order; form 1 knows it by the clock alone."""
    ordered = sorted(rows, key=lambda row: row["created_at"])
    return [row | {"sequence": place} for place, row in enumerate(ordered, 1)]
