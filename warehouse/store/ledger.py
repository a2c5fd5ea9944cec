"""Read the ledger, a data frame with a row per landing, so that millions of landings stay cheap to query.

The manifests in the folders of `landed/` are authoritative. The index caches them in segments, immutable Parquet
files, and in one small head file that lists the segments and is replaced atomically. `landed/` is listed each time:
folders that are not in the index are read from their manifests, and rows of deleted or recreated folders are dropped.
An index that is torn or fails its checksum is discarded and rebuilt.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.form import require_form
from iosig.warehouse.store.manifests import ID_DIGITS, Landing, Part, in_folder, make_landing_id
from iosig.warehouse.store.store import Store, get_digest

HEAD, FOLDER = "ledger.json", "ledger"
#: format version of the index; an index with another version is ignored
_FORM = 2
#: minimum number of unindexed landings for a new segment
_MIN_SEGMENT_LANDINGS = 256
#: number of folders per batch; the manifests of one batch are in memory as objects
_BATCH_FOLDERS = 1000
#: age at which leftover files of killed writers are removed [s]
_LEFTOVER_AGE_S = 3600.0

_LANDINGS = pl.Schema(
    {
        "folder": pl.String,
        "mark": pl.Int64,
        "landing_id": pl.String,
        # numeric hash that all generations of a content share: integers compare much faster than strings
        "content": pl.UInt64,
        "sequence": pl.Int64,
        "generation": pl.Int64,
        "landed_at": pl.String,
        "row_count": pl.Int64,
        "refused_count": pl.Int64,
    }
)
_FILES = pl.Schema(
    {
        "folder": pl.String(),
        "table": pl.String(),
        "path": pl.String(),
        "day": pl.Date(),
        "row_count": pl.Int64(),
        "longest_interval_s": pl.Float64(),
        "is_shared": pl.Boolean(),
        # file systems of polls, if known
        "filesystems": pl.List(pl.String),
        # for traces: range of end days, and whether an end or a start is unknown
        "first_on": pl.Date(),
        "last_on": pl.Date(),
        "is_undated": pl.Boolean(),
        "is_untimed": pl.Boolean(),
    }
)


@dataclass(frozen=True)
class Ledger:
    """All landings, including replaced ones, as a row per landing and a row per file.

    landings: folder, mark, landing_id, content, sequence, generation, landed_at, row_count, refused_count. files:
    folder, table, path, day, row_count, longest_interval_s, is_shared; for polls also filesystems; for traces also
    first_on, last_on, is_undated and is_untimed.
    """

    store: Store
    landings: pl.DataFrame
    files: pl.DataFrame

    @cached_property
    def in_force(self) -> pl.DataFrame:
        """Landings in force, which are the latest generation of each content, in landing order."""
        counted = _first(self.landings, "content")
        # already sorted if the sequence numbers are increasing
        return counted if counted["sequence"].is_sorted() else counted.sort("sequence", "landing_id")

    def select_landings(self, landing_ids: Iterable[str] | pl.Series) -> pl.DataFrame:
        """Select landings by id, including replaced ones."""
        ids = pl.DataFrame({"landing_id": landing_ids}, schema={"landing_id": pl.String})
        return _first(self.landings.join(ids, on="landing_id", how="semi"), "landing_id")

    def where(self, condition: pl.Expr) -> Ledger:
        """Return the ledger restricted to landings that meet a condition."""
        landings = self.landings.filter(condition)
        return Ledger(self.store, landings, self.files.join(landings, on="folder", how="semi"))

    def parts(self, table: Table, landings: pl.DataFrame, files: pl.Expr | bool = True) -> pl.DataFrame:
        """Return the files that contain rows of a table from the given landings.

        Columns: part_order, landing_id, path, is_shared, day. files: filter expression on the columns of `files`. A
        shared file may contain no row of a landing.
        """
        of_table = self.files.filter((pl.col("table") == table.name) & files).with_row_index("file")
        return (
            landings.with_row_index("part_order")
            .join(of_table, on="folder")
            .sort("part_order", "file")
            .select(pl.col("part_order").cast(pl.Int64), "landing_id", "path", "is_shared", "day")
        )

    def having(self, tables: Iterable[Table], files: pl.Expr | bool = True) -> pl.DataFrame:
        """Return the landings in force that have files of any of the tables, restricted by the filter."""
        names = [table.name for table in tables]
        chosen = self.files.filter(pl.col("table").is_in(names) & files)
        return self.in_force.join(chosen, on="folder", how="semi", maintain_order="left")

    def objects(self, landings: pl.DataFrame) -> Iterator[Landing]:
        """Read the manifests of some landings and yield them as objects, in order."""
        by_folder: dict[str, dict[str, Landing]] = {}
        for folder, landing_id in landings.select("folder", "landing_id").iter_rows():
            if folder not in by_folder:
                # keep the first landing of a duplicate id
                by_folder[folder] = {landing.landing_id: landing for landing in reversed(in_folder(self.store, folder))}
            # skip a manifest that another process has deleted
            if landing_id in by_folder[folder]:
                yield by_folder[folder][landing_id]


def _first(landings: pl.DataFrame, key: str) -> pl.DataFrame:
    """Select one landing per key: the latest generation, or the first of two concurrent landings."""
    # unique content implies unique ids, and integers compare faster
    if landings["content"].n_unique() == landings.height:
        return landings
    is_repeated = landings[key].is_duplicated()
    chosen = landings.filter(is_repeated).sort("generation", "sequence", descending=[True, False])
    return pl.concat([landings.filter(~is_repeated), chosen.unique(key, keep="first", maintain_order=True)])


class LandedIndex:
    """Index of landed contents for one call that lands many inputs; it includes the call's own landings.

    is_empty: the caller already knows that none of these contents has landed before.
    """

    def __init__(self, store: Store, *, is_empty: bool = False) -> None:
        self._store, self._is_empty = store, is_empty
        self._own: dict[str, list[Landing]] = {}
        #: the folder read last: inputs that landed together are usually queried together
        self._looked_into: tuple[str, list[Landing]] = ("", [])

    @cached_property
    def _there(self) -> tuple[npt.NDArray[np.uint64], pl.DataFrame]:
        """Return the sorted content hashes, and the landings in the same order."""
        landings = _LANDINGS.to_frame() if self._is_empty else read(self._store).landings
        ordered = landings.sort("content", "generation", "sequence")
        return ordered["content"].to_numpy(), ordered.select("landing_id", "folder")

    def generations(self, content_sha256: str) -> list[Landing]:
        """Return the landings of a content, oldest generation first."""
        content = make_landing_id(content_sha256)
        numbers, landings = self._there
        number = np.uint64(int(content, 16))
        begin, end = np.searchsorted(numbers, number), np.searchsorted(numbers, number, "right")
        indexed = (
            [self._landing(folder, name) for name, folder in landings[begin:end].iter_rows()] if end > begin else []
        )
        by_generation = {
            landing.generation: landing
            for landing in reversed([*(landing for landing in indexed if landing), *self._own.get(content, [])])
        }
        return [by_generation[generation] for generation in sorted(by_generation)]

    def add(self, landing: Landing) -> None:
        """Include a new landing in the results of `generations`."""
        self._own.setdefault(landing.trace_id, []).append(landing)

    def _landing(self, folder: str, landing_id: str) -> Landing | None:
        if self._looked_into[0] != folder:
            self._looked_into = (folder, in_folder(self._store, folder))
        return next((landing for landing in self._looked_into[1] if landing.landing_id == landing_id), None)


def read(store: Store) -> Ledger:
    """Read the ledger from the index, and from the manifests of unindexed landings; if these are many, index them.

    Raises MachineFault if one of these manifests is damaged.
    """
    require_form(store)
    inodes = store.files.folders("landed")
    listed = pl.DataFrame(
        {"folder": list(inodes), "mark": list(inodes.values())}, schema={"folder": pl.String, "mark": pl.Int64}
    )
    head, segments = _read_index(store)
    indexed = _concat_rows([segment.rows for segment in segments])
    folders = indexed.landings.select("folder", "mark").unique()
    deleted = folders.join(listed, on=["folder", "mark"], how="anti")
    new = listed.join(folders, on=["folder", "mark"], how="anti")
    if deleted.height:
        indexed = indexed.without(deleted)
    unindexed = _concat_rows([_read_folders(store, batch.iter_rows()) for batch in new.iter_slices(_BATCH_FOLDERS)])
    if deleted.height or unindexed.landings.height >= _MIN_SEGMENT_LANDINGS:
        # readers need no write permission
        with suppress(OSError):
            _keep(store, head, segments, unindexed, deleted)
    rows = _concat_rows([indexed, unindexed])
    return Ledger(store, rows.landings, rows.files)


# ---- rows


@dataclass(frozen=True, slots=True)
class _Rows:
    landings: pl.DataFrame
    files: pl.DataFrame

    def without(self, folders: pl.DataFrame) -> _Rows:
        # a recreated folder also has different files
        return _Rows(*(frame.join(folders, on="folder", how="anti") for frame in (self.landings, self.files)))


def _concat_rows(rows: Sequence[_Rows]) -> _Rows:
    return _Rows(
        pl.concat([_LANDINGS.to_frame(), *(part.landings for part in rows)]),
        pl.concat([_FILES.to_frame(), *(part.files for part in rows)]),
    )


def _read_folders(store: Store, folders: Iterable[tuple[str, int]]) -> _Rows:
    """Convert the manifests of folders to ledger rows."""
    landings: list[tuple[Any, ...]] = []
    files: dict[str, tuple[Any, ...]] = {}
    for folder, mark in folders:
        for landing in in_folder(store, folder):
            details = (
                landing.sequence,
                landing.generation,
                landing.landed_at,
                landing.row_count(),
                landing.refused_count,
            )
            landings.append((folder, mark, landing.landing_id, int(landing.landing_id[:ID_DIGITS], 16), *details))
            for part in landing.parts:
                if part.path not in files:
                    files[part.path] = (folder, *_make_row(store, part))
    return _Rows(
        pl.DataFrame(landings, schema=_LANDINGS, orient="row"),
        pl.DataFrame(list(files.values()), schema=_FILES, orient="row"),
    )


def _make_row(store: Store, part: Part) -> tuple[Any, ...]:
    day = date.fromisoformat(part.day) if part.day else None
    times = _times(store, part) if part.table == TRACES.name else (None,) * 4
    details = (part.row_count, part.longest_interval_s, part.is_shared, part.filesystems)
    return part.table, part.path, day, *details, *times


def _times(store: Store, part: Part) -> tuple[date | None, date | None, bool, bool]:
    """Return the range of a trace file's end days, and whether an end or a start is unknown."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.files.open(part.path) as file:
            end = pq.ParquetFile(file).metadata
            groups = [end.row_group(place) for place in range(end.num_row_groups)]
            names = [end.schema.column(place).path for place in range(end.num_columns)]
            ended, started = (
                [group.column(names.index(name)).statistics for group in groups] for name in ("ended_on", "started_at")
            )
            days = [day for statistics in ended if statistics.has_min_max for day in (statistics.min, statistics.max)]
            is_undated, is_untimed = (
                any(statistics.null_count for statistics in column) for column in (ended, started)
            )
            return min(days, default=None), max(days, default=None), is_undated or not days, is_untimed
    except (OSError, pa.ArrowException, ValueError, AttributeError):
        # the code that reads the trace's rows reports the fault
        return None, None, True, True


# ---- the index


@dataclass(frozen=True, slots=True)
class _Segment:
    """One segment of the index, as an entry of the head file and the rows that it refers to."""

    told: dict[str, Any]
    rows: _Rows

    @property
    def count(self) -> int:
        return self.rows.landings.height


def _read_index(store: Store) -> tuple[bytes | None, list[_Segment]]:
    """Read the head file and the segments of the index; the list is empty if the index is missing or invalid."""
    head = store.files.content(HEAD)
    while True:
        try:
            return head, [_segment(store, entry) for entry in _get_segments(head)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, pl.exceptions.PolarsError):
            before, head = head, store.files.content(HEAD)
            # another process has replaced the head and removed the segments that this one named
            if head == before:
                return head, []


def _get_segments(head: bytes | None) -> list[dict[str, Any]]:
    if head is None:
        return []
    document = json.loads(head)
    segments: list[dict[str, Any]] = document["segments"]
    if document["form"] != _FORM or document["sha256"] != get_digest([_FORM, segments]):
        raise ValueError("modified after it was written")
    return segments


def _segment(store: Store, document: dict[str, Any]) -> _Segment:
    frames = []
    for name, schema in (("landings", _LANDINGS), ("files", _FILES)):
        with store.files.open(document[name]["path"]) as file:
            content = file.read()
        if asdict(FileChecksum(len(content), hashlib.sha256(content).hexdigest())).items() - document[name].items():
            raise ValueError("modified after it was written")
        frame = pl.read_parquet(io.BytesIO(content))  # noqa: TID251
        if frame.schema != schema:
            raise ValueError("not an index of this form")
        frames.append(frame)
    return _Segment(document, _Rows(*frames))


def _keep(store: Store, head: bytes | None, segments: list[_Segment], unindexed: _Rows, deleted: pl.DataFrame) -> None:
    """Add landings to the index, merging similarly small segments to keep the number of segments low.

    deleted: deleted folders; their entries are dropped, since names and inodes may be reused. If another process has
    replaced the index in the meantime, its index stays.
    """
    remaining = list(segments)
    rows = [unindexed]
    while remaining and (deleted.height or remaining[-1].count < 2 * sum(part.landings.height for part in rows)):
        rows.append(remaining.pop().rows.without(deleted))
    joined = _concat_rows(rows[::-1])
    entries = [*(segment.told for segment in remaining), _write_segment(store, joined)]
    content = json.dumps(
        {"form": _FORM, "segments": entries, "sha256": get_digest([_FORM, entries])}, indent=1
    ).encode()
    if store.files.swap(HEAD, head, content):
        kept_paths = {file["path"] for entry in entries for file in (entry["landings"], entry["files"])}
        before = {file["path"] for segment in segments for file in (segment.told["landings"], segment.told["files"])}
        store.files.remove(*sorted(before - kept_paths), *_find_abandoned(store, kept_paths))


def _write_segment(store: Store, rows: _Rows) -> dict[str, Any]:
    # the name contains the creation time, zero-padded
    name = f"{FOLDER}/{int(time.time()):010}-{uuid.uuid4().hex[:8]}"
    entry: dict[str, Any] = {"landing_count": rows.landings.height}
    for kind, frame in (("landings", rows.landings), ("files", rows.files)):
        path = f"{name}-{kind}.parquet"
        with store.files.write_file(path) as place:
            frame.write_parquet(place, compression="zstd")
            entry[kind] = {"path": path, **asdict(FileChecksum.from_path(place))}
    return entry


def _find_abandoned(store: Store, kept_paths: set[str]) -> Iterator[str]:
    """Yield unreferenced segment files that are too old to belong to a concurrent writer."""
    for name in store.files.matching(f"{FOLDER}/*.parquet"):
        if (
            name not in kept_paths
            and float(name.removeprefix(f"{FOLDER}/").split("-")[0]) < time.time() - _LEFTOVER_AGE_S
        ):
            yield name


def forget(store: Store) -> None:
    """Delete the index; the next read rebuilds it from the manifests."""
    store.files.remove(HEAD, FOLDER)


def is_true(store: Store) -> bool:
    """Return whether the index agrees with the manifests of all indexed folders that still exist."""
    inodes = store.files.folders("landed")
    head, segments = _read_index(store)
    if head is not None and not segments:
        return False
    for segment in segments:
        folders = segment.rows.landings.select("folder", "mark").unique(maintain_order=True)
        for batch in folders.iter_slices(_BATCH_FOLDERS):
            unchanged = [(folder, mark) for folder, mark in batch.iter_rows() if inodes.get(folder) == mark]
            names = pl.DataFrame({"folder": [folder for folder, _ in unchanged]}, schema={"folder": pl.String})
            current = _read_folders(store, unchanged)
            indexed = (
                frame.join(names, on="folder", how="semi") for frame in (segment.rows.landings, segment.rows.files)
            )
            if any(
                not frame.sort(pl.all()).equals(expected.sort(pl.all()))
                for frame, expected in zip(indexed, (current.landings, current.files), strict=True)
            ):
                return False
    return True
