"""Forget data: rewrite a landing without some of its rows into a new folder; the old folder is removed later.

No file is edited in place. The remaining rows form the content's next generation, at the same position in the landing
order, so incremental plans treat it like any input that was landed again. Its manifest records the time of forgetting,
which keeps the content from landing again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from iosig.warehouse.contracts import Table, table as contract
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.store import landing as landings
from iosig.warehouse.store.files import ExistsError
from iosig.warehouse.store.lots import write_file
from iosig.warehouse.store.manifests import (
    LOT_PREFIX,
    Landing,
    Part,
    id_in,
    in_folder,
    landing_column,
    manifest_in,
    scans,
    write_manifest,
)
from iosig.warehouse.store.store import Store, document

if TYPE_CHECKING:
    import polars as pl

#: filter that returns the remaining rows of a landing's table
Left = Callable[[Landing, Table, "pl.DataFrame"], "pl.DataFrame"]


def read_rows(store: Store, landing: Landing, part: Part) -> pl.DataFrame:
    """Return the rows that a part contains for a landing; a shared file also contains rows of other landings."""
    return scans(store, contract(part.table), [(landing, part)])[0].collect()


def leave(store: Store, landing: Landing, generation: int, select_rows: Left, source_file: str, at: str) -> Landing:
    """Write the remaining rows of a landing, possibly none, as a new generation of its content; idempotent.

    source_file: new name of the input. at: time of forgetting.
    """
    new_id = id_in(landing.content_sha256, generation)
    with suppress(ExistsError), landings.create_folder(store, new_id) as folder:
        parts, counts = [], Counter[str]()
        for part in landing.parts:
            table = contract(part.table)
            rows = landings.set_provenance(
                select_rows(landing, table, read_rows(store, landing, part)), new_id, source_file
            )
            if rows.is_empty():
                continue
            name = f"{part.table}-{part.day or 'undated'}-{counts[part.table]}.parquet"
            counts[part.table] += 1
            parts.append(landings.write_part(folder / name, new_id, table, part.day, rows))
        successor = replace(
            landing,
            landing_id=new_id,
            generation=generation,
            source_file=source_file,
            refused_count=sum(part.row_count for part in parts if part.table == REJECTS.name),
            parts=tuple(parts),
            lot=None,
            forgotten_at=at,
        )
        landings.write_landing(successor, folder)
    return in_folder(store, new_id)[0]


def remove(store: Store, landings_to_remove: Collection[Landing]) -> tuple[list[str], list[str]]:
    """Remove landings; for a landing in a lot, rewrite the lot's other landings into a new folder.

    Returns the manifests that were removed, and those that were created.
    """
    removed, created = [], []
    folders: dict[str, set[str]] = {}
    for landing in landings_to_remove:
        folders.setdefault(landing.folder, set()).add(landing.landing_id)
    for folder, ids in folders.items():
        if folder.startswith(LOT_PREFIX) and (new := _without(store, folder, ids)):
            created.append(manifest_in(new))
        store.files.remove(f"landed/{folder}")
        removed.append(manifest_in(folder))
    return removed, created


def _without(store: Store, lot: str, ids: set[str]) -> str | None:
    """Rewrite a lot without some of its landings; return the new folder's name, or None if no landing remains."""
    manifest = document(store, manifest_in(lot))
    if manifest is None:
        return None
    entries = [entry for entry in manifest["landings"] if entry["landing_id"] not in ids]
    if not entries:
        return None
    name = LOT_PREFIX + hashlib.sha256("".join(entry["content_sha256"] for entry in entries).encode()).hexdigest()[:16]
    with suppress(ExistsError), landings.create_folder(store, name) as folder:
        files = {}
        for table_name, file in manifest["files"].items():
            table = contract(table_name)
            rows = _but(store, table, file["path"], ids)
            if rows.height:
                files[table_name] = write_file(folder, name, table, rows)
        write_manifest({"files": files, "landings": entries}, folder)
    return name


def _but(store: Store, table: Table, path: str, ids: set[str]) -> pl.DataFrame:
    import polars as pl

    is_removed = pl.col(landing_column(table)).is_in(sorted(ids))
    return scan_parquet(store.local(path)).filter(~is_removed).collect()
