"""Upgrading: a warehouse of an older form becomes one of this form, and keeps its releases, ids and verdicts.

What is done already is not done again, so that an upgrade that was killed goes on; releases can be read meanwhile. The
form's number comes last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pyiceberg.catalog.sql import SqlCatalog

from warehouse.contracts import frames
from warehouse.contracts.releases import RELEASES
from warehouse.placing import sha256_of
from warehouse.releases import releases, seals
from warehouse.releases.catalogue import changed_at_once, data_place, ensure, leave_hints, replace
from warehouse.releases.links import link_latest
from warehouse.releases.locations import NAMESPACE, location_of
from warehouse.releases.relocating import relocate
from warehouse.store.form import FORM, form_of, mark_form
from warehouse.store.store import Store, write_json, write_parquet

#: told of each landing and release: how many are done, of how many
Told = Callable[[int, int], None]
_CACHES = ("release_index", "snapshot_files")


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
    if form is None or form >= FORM:
        return None
    written = [*store.tables.glob("*/metadata/*"), *store.landed.glob("*/landing.json")]
    read = list(store.landed.glob("*/*.parquet"))
    return Needs(form, len(written), _size(written), len(read), _size(read))


def _size(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def upgrade(store: Store, told: Told = lambda *_: None) -> None:
    """Bring a warehouse to this form; nothing is done where it has it."""
    if needs(store) is None:
        return
    _count_landings(store, told)
    relocate(store)
    _order_releases(store, told)
    for name in _CACHES:
        shutil.rmtree(store.root / name, ignore_errors=True)
    mark_form(store)
    for release in releases.history(store):
        seals.seal(store, release)
    if current := releases.current(store):
        link_latest(store, current)
    leave_hints(store)


# ---- from form 1 to 2: landings


def _count_landings(store: Store, told: Told) -> None:
    """Give the landings their places, in the order of form 1, the clock's, and note the SHA-256 of their files."""
    manifests = {path: json.loads(path.read_text(encoding="utf-8")) for path in store.landed.glob("*/landing.json")}
    ordered = sorted(manifests.items(), key=lambda found: (found[1]["landed_at"], found[1]["landing_id"]))
    for place, (path, document) in enumerate(ordered, 1):
        if "sequence" not in document:
            parts = [_hashed(store, part) for part in document["parts"]]
            write_json(document | {"sequence": place, "parts": parts}, path)
        told(place, len(ordered))


def _hashed(store: Store, part: dict[str, Any]) -> dict[str, Any]:
    path = store.root / part["path"]
    return part | {"byte_count": path.stat().st_size, "sha256": sha256_of(path)}


# ---- from form 1 to 2: releases


def _order_releases(store: Store, told: Told) -> None:
    """Give the releases their places, tag the snapshots of each, and have all tables be there in the current one."""
    with changed_at_once(store) as catalogue:
        if not catalogue.table_exists((NAMESPACE, RELEASES.name)):
            return
        for table in (*releases.published(), RELEASES):
            if catalogue.table_exists((NAMESPACE, table.name)):
                ensure(catalogue, table)
        rows = _numbered(catalogue.load_table((NAMESPACE, RELEASES.name)).scan().to_arrow().to_pylist())
        for done, row in enumerate(rows, 1):
            for name, snapshot_id in json.loads(row["snapshots"]).items():
                _tag(catalogue, name, snapshot_id, row["release_id"])
            told(done, len(rows))
        known: dict[str, int] = json.loads(rows[-1]["snapshots"])
        absent = [table for table in releases.published() if table.name not in known]
        known |= {each.name: replace(catalogue, each, [], days=None, tag=rows[-1]["release_id"]) for each in absent}
        rows[-1]["snapshots"] = json.dumps(known, sort_keys=True)
        place = data_place(RELEASES, None, f"form-{FORM}")
        write_parquet(pl.DataFrame(rows, schema=frames.schema(RELEASES)), RELEASES, store.root / place)
        replace(catalogue, RELEASES, [f"{location_of(store.root)}/{place}"], days=None, tag=rows[-1]["release_id"])


def _tag(catalogue: SqlCatalog, name: str, snapshot_id: int, release_id: str) -> None:
    table = catalogue.load_table((NAMESPACE, name))
    table.manage_snapshots().create_tag(snapshot_id, release_id).commit()


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of releases in their order; form 1 knows it by the clock alone."""
    ordered = sorted(rows, key=lambda row: row["created_at"])
    return [row | {"sequence": place} for place, row in enumerate(ordered, 1)]
