"""Read and write manifests: the metadata of each landing, in one file next to the data files.

The landings of a lot, which share data files, also share one manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store.store import Store, document, get_digest, write_json

if TYPE_CHECKING:
    import polars as pl

ID_DIGITS = 16
MANIFEST_NAME = "landing.json"
#: name prefix of lot folders
LOT_PREFIX = "lot-"


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a landing: its table, its path within the warehouse, and its UTC day, if it has one.

    A part of polls is sorted; `first` and `last` are the keys (time, controller, file system) of its first and last
    poll, or None if two of its polls share a controller and an instant. `longest_interval_s` is the longest polling
    interval; a poll's interval may start that long before the part's day. `filesystems` lists the file systems of the
    polls; None in manifests of older versions. A shared file contains rows of several landings, which `landing_column`
    distinguishes; its size and hash cover the whole file.
    """

    table: str
    path: str
    day: str | None
    row_count: int
    byte_count: int
    sha256: str
    first: tuple[str, str, str] | None = None
    last: tuple[str, str, str] | None = None
    longest_interval_s: float = 0.0
    is_shared: bool = False
    filesystems: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Landing:
    """Metadata of one landed input.

    `generation` counts the earlier landings of the same content. `sequence` is the position in the landing order, from
    1, independent of the clock time `landed_at`. `lot` is the folder of inputs that landed together; None if the
    landing has a folder to itself. `forgotten_at` is the time at which data of the input were forgotten; this landing
    contains the remaining rows. `time_zone` is the zone in which local times of the input were read; None if it has
    none, or where an older version did not record it. `first_at` and `last_at` are the range of its times, in UTC.
    """

    landing_id: str
    sequence: int
    generation: int
    source_file: str
    content_sha256: str
    format: str
    landed_at: str
    refused_count: int
    parts: tuple[Part, ...]
    lot: str | None = None
    forgotten_at: str | None = None
    time_zone: str | None = None
    first_at: str | None = None
    last_at: str | None = None

    @property
    def folder(self) -> str:
        """Folder below `landed/` that contains the landing."""
        return self.lot or self.landing_id

    @property
    def manifest(self) -> str:
        """Name of the landing's manifest file."""
        return manifest_in(self.folder)

    @property
    def trace_id(self) -> str:
        """Id of the traced run, if the input is a trace; all generations share it."""
        return make_landing_id(self.content_sha256)

    def row_count(self) -> int:
        """Count the landed rows, without refused ones."""
        return sum(part.row_count for part in self.parts if part.table != REJECTS.name)


def make_landing_id(content_sha256: str) -> str:
    """Return the id of a content's first landing."""
    return content_sha256[:ID_DIGITS]


def id_in(content_sha256: str, generation: int) -> str:
    """Return the id of a content's landing in the given generation."""
    return make_landing_id(content_sha256) + (f"-{generation}" if generation else "")


def manifest_in(folder: str) -> str:
    """Return the name of the manifest in a folder of landings."""
    return f"landed/{folder}/{MANIFEST_NAME}"


def write_manifest(content: Mapping[str, Any], folder: Path) -> None:
    """Write a manifest with a checksum, which manifests of older versions lack."""
    write_json({**content, "sha256": get_digest(content)}, folder / MANIFEST_NAME)


def in_folder(store: Store, name: str) -> list[Landing]:
    """Read the landings from the manifest of a folder; return an empty list if the folder has no manifest.

    Raises MachineFault if the manifest is damaged.
    """
    manifest = manifest_in(name)
    content: dict[str, Any] | None = document(store, manifest)
    try:
        if content is None:
            return []
        checksum = content.pop("sha256", None)
        if checksum not in (None, get_digest(content)):
            raise ValueError("modified after it was written")
        if "landings" not in content:
            landings = [Landing(**content | {"parts": tuple(_part(part) for part in content["parts"])})]
        else:
            landings = [_build_lot_landing(name, content["files"], entry) for entry in content["landings"]]
        for landing in landings:
            _require_own(landing, name)
        return landings
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MachineFault(
            f"{store.root / manifest} is damaged: it is not a manifest. `iosig repair` sets the landing aside."
        ) from error


def _require_own(landing: Landing, folder: str) -> None:
    """Raise ValueError if a manifest belongs to another folder, or its ids do not match its content's hash."""
    is_named = landing.landing_id == id_in(landing.content_sha256, landing.generation)
    is_own = all(part.path.startswith(f"landed/{folder}/") for part in landing.parts)
    if landing.folder != folder or not is_named or not is_own:
        raise ValueError("not a manifest of this folder")


def _part(fields: dict[str, Any]) -> Part:
    lists = {name: tuple(fields[name]) if fields.get(name) else None for name in ("first", "last", "filesystems")}
    return Part(**fields | lists)


def _build_lot_landing(lot: str, files: dict[str, dict[str, Any]], entry: dict[str, Any]) -> Landing:
    """Build one landing of a lot from its manifest entry; `files` maps each table to its shared file."""
    parts = tuple(
        Part(table=table, day=None, row_count=row_count, is_shared=True, **files[table])
        for table, row_count in entry["row_counts"].items()
    )
    fields = {name: value for name, value in entry.items() if name != "row_counts"}
    return Landing(**fields, generation=0, parts=parts, lot=lot)


def may_repeat(parts: Sequence[Part]) -> bool:
    """Return whether two polls in these parts may share a controller and an instant."""
    ordered = sorted(parts, key=lambda part: part.first or ("", "", ""))
    if any(part.first is None for part in ordered):
        return True
    return any(before.last >= after.first for before, after in pairwise(ordered))  # type: ignore[operator]


def landing_column(table: Table) -> str:
    """Return the column that identifies the landing of a row in a shared file; for traces, `trace_id` does."""
    return "landing_id" if "landing_id" in table.column_names else "trace_id"


def scans(store: Store, table: Table, parts: Iterable[tuple[Landing, Part]]) -> list[pl.LazyFrame]:
    """Scan the landed parts of a table as one lazy frame per file, in the order of the parts."""
    import polars as pl

    ids: dict[str, list[str] | None] = {}
    for landing, part in parts:
        ids[part.path] = [*(ids.get(part.path) or ()), landing.landing_id] if part.is_shared else None
    landing_id = pl.col(landing_column(table))
    places = store.locals(ids)
    rows = {path: scan_parquet(place) for path, place in zip(ids, places, strict=True)}
    return [
        rows[path] if landing_ids is None else rows[path].filter(landing_id.is_in(landing_ids))
        for path, landing_ids in ids.items()
    ]
