"""Manifests: what each landing is, in one file beside its files, or beside those of all that were landed with it."""

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
from iosig.warehouse.store.store import Store, digest_of, document, write_json

if TYPE_CHECKING:
    import polars as pl

ID_DIGITS = 16
MANIFEST = "landing.json"
#: how folders of inputs begin that were landed together
LOT = "lot-"


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a landing: its table, its path within the warehouse, its UTC day if it has one.

    A part of polls is sorted; `first` and `last` are its first and last (time, controller, file system),
    and None where two of its polls are of one controller and instant. `longest_interval_s` is that of any of
    its polls: so much of a poll may lie before its own day. `filesystems` are those of its polls; None if it was landed
    by a version that did not note them. A shared file holds rows of several landings, which are
    told apart by `landing_column`; its bytes and its hash are those of the whole.
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
    """What is known of one landed input.

    `generation` counts how often it was landed anew; `sequence` is its place in the order of landing, from 1, whatever
    the clock said at `landed_at`. `lot` is the folder of inputs that were landed together; none has one of its own.
    `forgotten_at` says when data of the input were forgotten: this is what is left of it. `time_zone` is the zone in
    which local times of the input were read; None where it has none, or was landed by a version that kept no record.
    `first_at` and `last_at` are the range of its times, in UTC.
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
        """The name of its folder."""
        return self.lot or self.landing_id

    @property
    def manifest(self) -> str:
        """The name of the file that says what the landing is."""
        return manifest_in(self.folder)

    @property
    def trace_id(self) -> str:
        """The traced run that the input tells of, if it is a trace: it keeps its id when it is landed anew."""
        return id_of(self.content_sha256)

    def row_count(self) -> int:
        """Rows landed, the refused ones apart."""
        return sum(part.row_count for part in self.parts if part.table != REJECTS.name)


def id_of(content_sha256: str) -> str:
    """Return how a content is called when it is landed first."""
    return content_sha256[:ID_DIGITS]


def id_in(content_sha256: str, generation: int) -> str:
    """Return how a content is called when it is landed for the so-manieth time again."""
    return id_of(content_sha256) + (f"-{generation}" if generation else "")


def manifest_in(folder: str) -> str:
    """Return the name of the manifest in a folder of landings."""
    return f"landed/{folder}/{MANIFEST}"


def write_manifest(told: Mapping[str, Any], folder: Path) -> None:
    """Write a manifest with its checksum; those of older versions have none."""
    write_json({**told, "sha256": digest_of(told)}, folder / MANIFEST)


def in_folder(store: Store, name: str) -> list[Landing]:
    """Return the landings whose manifest lies in a folder of that name; none where there is none.

    Raises MachineFault where it is damaged.
    """
    manifest = manifest_in(name)
    told: dict[str, Any] | None = document(store, manifest)
    try:
        if told is None:
            return []
        checksum = told.pop("sha256", None)
        if checksum not in (None, digest_of(told)):
            raise ValueError("not what was written")
        if "landings" not in told:
            landings = [Landing(**told | {"parts": tuple(_part(part) for part in told["parts"])})]
        else:
            landings = [_of_lot(name, told["files"], one) for one in told["landings"]]
        for landing in landings:
            _require_own(landing, name)
        return landings
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MachineFault(
            f"{store.root / manifest} is damaged: it is no manifest. `iosig repair` sets the landing aside."
        ) from error


def _require_own(landing: Landing, folder: str) -> None:
    """Raise ValueError if a manifest is that of another folder, or its ids differ from its content's hash."""
    is_named = landing.landing_id == id_in(landing.content_sha256, landing.generation)
    is_own = all(part.path.startswith(f"landed/{folder}/") for part in landing.parts)
    if landing.folder != folder or not is_named or not is_own:
        raise ValueError("not a manifest of this folder")


def _part(told: dict[str, Any]) -> Part:
    lists = {name: tuple(told[name]) if told.get(name) else None for name in ("first", "last", "filesystems")}
    return Part(**told | lists)


def _of_lot(lot: str, files: dict[str, dict[str, Any]], told: dict[str, Any]) -> Landing:
    """Return a landing of a lot, of whose manifest `files` are the files of each table."""
    parts = tuple(
        Part(table=table, day=None, row_count=row_count, is_shared=True, **files[table])
        for table, row_count in told["row_counts"].items()
    )
    known = {name: value for name, value in told.items() if name != "row_counts"}
    return Landing(**known, generation=0, parts=parts, lot=lot)


def may_repeat(parts: Sequence[Part]) -> bool:
    """Return whether any two polls of these parts may be of one controller and instant."""
    ordered = sorted(parts, key=lambda part: part.first or ("", "", ""))
    if any(part.first is None for part in ordered):
        return True
    return any(before.last >= after.first for before, after in pairwise(ordered))  # type: ignore[operator]


def landing_column(table: Table) -> str:
    """Return the column that tells of which landing a row of a shared file is: there, a trace goes by its landing."""
    return "landing_id" if "landing_id" in table.column_names else "trace_id"


def scans(store: Store, table: Table, parts: Iterable[tuple[Landing, Part]]) -> list[pl.LazyFrame]:
    """Return the rows of landed parts of a table, a frame for each file, in the order of the parts."""
    import polars as pl

    ids: dict[str, list[str] | None] = {}
    for landing, part in parts:
        ids[part.path] = [*(ids.get(part.path) or ()), landing.landing_id] if part.is_shared else None
    own = pl.col(landing_column(table))
    places = store.locals(ids)
    rows = {path: scan_parquet(place) for path, place in zip(ids, places, strict=True)}
    return [rows[path] if known is None else rows[path].filter(own.is_in(known)) for path, known in ids.items()]
