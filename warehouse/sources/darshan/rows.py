"""Build rows of the trace tables from the arrays that the child process reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from iosig.warehouse.contracts import Table, columns
from iosig.warehouse.contracts.traces import (
    TRACE_FILES,
    TRACE_HEATMAPS,
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACES,
)
from iosig.warehouse.sources.darshan import reading
from iosig.warehouse.sources.darshan.counters import COUNTS, Records, Totals
from iosig.warehouse.sources.darshan.layout import Layout, Region, examine
from iosig.warehouse.sources.darshan.stripes import Stripes
from iosig.warehouse.sources.files.child import Arrays, arrays_from_child
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.rejects import reject_frame

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

#: first format in which job times have nanoseconds
_EXACT_FORMAT = "3.41"
#: resolution of Darshan's times, which are differences of seconds since 1970 in double precision [s]
RESOLUTION_S = 2.0**-22
#: ids of the names of heat maps, which identify heat maps in anonymized logs
_HEATMAPS = {
    16592106915301738621: "POSIX",
    3989511027826779520: "STDIO",
    3668870418325792824: "MPIIO",
    1597927878319380788: "DFS",
    4131494093108637317: "DAOS",
}
_HEATMAP_PREFIX = "heatmap:"
_LUSTRE = "lustre"
_VALID_HEATMAP = (
    pl.col("module").is_not_null()
    & (pl.col("rank") >= -1)
    & pl.col("interval_s").is_between(columns.INTERVAL_S.low, columns.INTERVAL_S.high)
    & (pl.col("bin_bytes").list.min().fill_null(0) >= 0)
    & pl.struct("module", "rank").is_first_distinct()
)
#: modules with records that do not belong to files
_MODULES_WITHOUT_FILES = ("HEATMAP", "BG/Q")
_REMEDY = "Compare it with the output of darshan-parser; the other records of the log are landed."
_NAMES_WITHOUT_FILES = ("darshan-apmpi-header", "APMPI", "darshan-apxc-header", "APXC", "darshan-internal-bgq")


def read_batches(path: Path, file_name: str) -> Iterator[Batch]:
    """Yield a log's rows; `file_name` is the name under which Darshan or the log's owner stored the log."""
    layout = examine(path)
    regions = [r for r in layout.regions if r.version is not None and (r.stored_bytes > 0 or r.fault is not None)]
    parts = [[r.name, r.version, r.raw_bytes, r.is_partial] for r in regions if r.fault is None]
    trace = _Trace(layout, file_name)
    for block in arrays_from_child(reading.read_log_batched, str(path), json.dumps(parts)):
        head = _head(block["head"].tobytes())
        yield from trace.rows(head, block)
    yield from trace.last_rows(regions)


@lru_cache(maxsize=1 << 8)
def _head(content: bytes) -> dict[str, Any]:
    # cached, because the names of a hundred counters are the same in every log; callers must not modify it
    head: dict[str, Any] = json.loads(content)
    return head


def map_module_name(module: str) -> str:
    """Map Darshan's module name to iosig's."""
    return "MPIIO" if module == "MPI-IO" else module


@dataclass(slots=True)
class _Trace:
    """State of converting one log."""

    layout: Layout
    file_name: str
    ended_at: datetime | None = None
    mounts: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    file_ids: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    ids_without_files: set[int] = field(default_factory=set)
    stripes: Stripes = field(default_factory=Stripes.empty)
    totals: dict[str, Totals] = field(default_factory=dict)
    modules: list[dict[str, Any]] = field(default_factory=list)
    #: number of records so far, by module; a refused record is reported by its ordinal number
    record_counts: Counter[str] = field(default_factory=Counter)
    request_count: int = 0

    def rows(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        """Convert a block of the child to rows."""
        if "ids" in block and head["kind"] != "names":
            self._note_ids(head["module"], block["ids"])
        match head["kind"]:
            case "job":
                yield self._job(head)
            case "names":
                self.names = dict(zip(block["ids"].tolist(), head["names"], strict=True))
            case "records":
                yield from self._records(head, block)
            case "stripes":
                parts = (block[name] for name in ("ids", "component_counts", "components", "osts"))
                self.stripes = Stripes.from_records(*parts)
            case "heatmaps":
                yield from self._heatmaps(block)
            case "segments":
                yield from self._segments(head, block)
            case "module":
                self.modules.append(head)

    def last_rows(self, regions: list[Region]) -> Iterator[Batch]:
        """Yield the rows that are complete only at the end of the log: modules and files."""
        for region in regions:
            if region.fault is not None:
                entry = {"module": region.name, "version": region.version, "is_partial": region.is_partial}
                self.modules.append(entry | {"outcome": "unreadable", "reason": region.fault, "record_count": None})
        if self.modules:
            yield self._batch(TRACE_MODULES, self._module_columns())
        files = self._files()
        if files:
            yield self._batch(TRACE_FILES, files)

    def _batch(self, table: Table, columns: dict[str, Any]) -> Batch:
        return traced.build_batch(table, columns, self.ended_at)

    def _note_ids(self, module: str, ids: npt.NDArray[np.uint64]) -> None:
        if module in _MODULES_WITHOUT_FILES:
            self.ids_without_files.update(ids.tolist())
        else:
            self.file_ids.append(np.unique(ids))

    # ---- the run

    def _job(self, head: dict[str, Any]) -> Batch:
        (start_s, start_ns), (end_s, end_ns) = head["started"], head["ended"]
        is_exact = self.layout.version >= _EXACT_FORMAT
        self.ended_at = _instant(end_s, end_ns)
        self.mounts = dict(head["mounts"])
        words = head["command"].split()
        application = PurePosixPath(words[0]).name if words else None
        return self._batch(
            TRACES,
            {
                "tracer": "darshan",
                "tracer_version": self.layout.version,
                "job_id": str(head["job_id"]),
                "user": _user(self.file_name, application, head["job_id"]),
                "uid": head["uid"],
                "application": application or None,
                "command": head["command"] or None,
                "process_count": head["process_count"],
                "started_at": _instant(start_s, start_ns),
                "ended_at": self.ended_at,
                # Start and end are truncated to whole seconds, so Darshan adds one.
                "duration_s": end_s - start_s + ((end_ns - start_ns) * 1e-9 if is_exact else 1.0),
                "time_resolution_s": RESOLUTION_S,
            },
        )

    # ---- modules

    def _module_columns(self) -> dict[str, Any]:
        def counters(entry: dict[str, Any]) -> str | None:
            totals = self.totals.get(entry["module"])
            counts = totals.complete_sums() if totals else entry.get("counts") or {}
            return json.dumps(counts) if counts else None

        names = ("outcome", "reason", "is_partial", "record_count")
        return {name: [entry[name] for entry in self.modules] for name in names} | {
            "module": [map_module_name(entry["module"]) for entry in self.modules],
            "module_version": [entry["version"] for entry in self.modules],
            "counters": [counters(entry) for entry in self.modules],
        }

    def _records(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        module = map_module_name(head["module"])
        names = tuple(head["integer_names"]), tuple(head["real_names"])
        records = Records(module, names[0], block["integers"], names[1], block["reals"])
        self.totals.setdefault(head["module"], Totals()).add(records)
        if module not in COUNTS:
            return
        numbers = block["ids"].view(np.int64)
        is_sound = records.is_sound() & (block["ranks"] >= -1)
        counts = {name: traced.Nullable(*values) for name, values in records.columns().items()}
        columns = {"file_number": numbers, "rank": block["ranks"], **counts}
        if is_sound.all() and _are_distinct(numbers, block["ranks"]):
            self.record_counts[module] += len(numbers)
            yield self._batch(TRACE_RECORDS, {"module": module, **columns})
            return
        frame = _frame(columns)
        is_first = frame.select(pl.struct("file_number", "rank").is_first_distinct()).to_series().to_numpy()
        for marks, reason in ((~is_sound, "an invalid count"), (is_sound & ~is_first, "the file and rank twice")):
            if marks.any():
                places = self.record_counts[module] + np.flatnonzero(marks)
                yield _refuse_rows(frame.filter(marks), places, f"The record of {module} has {reason}.")
        self.record_counts[module] += frame.height
        valid = frame.filter(is_sound & is_first)
        if valid.height:
            yield self._batch(TRACE_RECORDS, {"module": module, **valid.to_dict(as_series=True)})

    # ---- heat maps

    def _heatmaps(self, block: Arrays) -> Iterator[Batch]:
        first = self.record_counts["HEATMAP"]
        self.record_counts["HEATMAP"] += len(block["ids"])
        modules = pl.Series([self._heatmap_module(number) for number in block["ids"].tolist()], dtype=pl.String)
        for direction, entry in (("read", "read"), ("write", "written")):
            frame = pl.DataFrame(
                {
                    "module": modules,
                    "rank": block["ranks"],
                    "interval_s": block["widths_s"],
                    "step_count": block["bin_counts"],
                    "bin_bytes": _lists(block[entry], block["bin_counts"]),
                }
            )
            is_sound = frame.select(_VALID_HEATMAP.fill_null(False)).to_series()
            if not is_sound.all():
                refused = frame.filter(~is_sound).drop("bin_bytes")
                places = first + np.flatnonzero(~is_sound.to_numpy())
                reason = f"The heat map of {direction}s has an unknown module, occurs twice, or has invalid bins."
                yield _refuse_rows(refused, places, reason)
            valid = frame.filter(is_sound)
            if valid.height:
                yield self._batch(TRACE_HEATMAPS, {"direction": direction, **valid.to_dict(as_series=True)})

    def _heatmap_module(self, number: int) -> str | None:
        name = self.names.get(number, "")
        return name.removeprefix(_HEATMAP_PREFIX) if name.startswith(_HEATMAP_PREFIX) else _HEATMAPS.get(number)

    # ---- requests

    def _segments(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        columns, is_valid = _segments(head, block, self.request_count, self.stripes)
        self.request_count += len(is_valid)
        entry = {"module": head["module"].removeprefix("DXT_"), "is_nested": False, "is_async": False}
        if is_valid.all():
            if len(is_valid):
                yield self._batch(TRACE_REQUESTS, {**entry, **columns})
            return
        frame = _frame(columns)
        refused = frame.filter(~is_valid)
        reason = "The segment has a negative length or offset, no time, or ends before it begins."
        yield _refuse_rows(refused, refused["request"].to_numpy(), reason)
        frame = frame.filter(is_valid)
        if frame.height:
            yield self._batch(TRACE_REQUESTS, {**entry, **frame.to_dict(as_series=True)})

    # ---- files

    def _files(self) -> dict[str, Any]:
        used = np.unique(np.concatenate(self.file_ids)).tolist() if self.file_ids else []
        named = [
            number
            for number, name in self.names.items()
            if not name.startswith(_HEATMAP_PREFIX) and name not in _NAMES_WITHOUT_FILES
        ]
        ids = [number for number in dict.fromkeys([*named, *used]) if number not in self.ids_without_files]
        if not ids:
            return {}
        paths = [self.names.get(number) for number in ids]
        striped = self.stripes.describe_files()
        stripes = [striped.get(number, (None, None)) for number in ids]
        mounts = _Mounts(self.mounts)
        places = [
            mounts.find_mount(path, is_striped=number in striped) for number, path in zip(ids, paths, strict=True)
        ]
        return {
            "file_number": np.array(ids, np.uint64).view(np.int64),
            "path": paths,
            "mount": [mount for mount, _ in places],
            "filesystem_kind": [kind for _, kind in places],
            "stripe_bytes": [size for size, _ in stripes],
            "osts": [osts for _, osts in stripes],
        }


def _instant(seconds: int, nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=nanoseconds // 1000)


def _user(file_name: str, application: str | None, job_id: int) -> str | None:
    """Parse the user from the log's usual name, if the program and job in this name match the log."""
    # compiling the pattern is slow, and most names do not match
    if not application or f"_{application}_id{job_id}" not in file_name:
        return None
    pattern = re.compile(rf"(?P<user>[^/\s]+?)_{re.escape(application)}_id{job_id}(?:-\d+)?_")
    match = pattern.match(file_name)
    return match["user"] if match else None


class _Mounts:
    """Finds the mount point of a path, which is the longest matching prefix of whole path components.

    The log may omit mounts for lack of space, so a file with stripes is on Lustre even if its mount is missing.
    """

    def __init__(self, mounts: dict[str, str]) -> None:
        self._mounts = mounts
        self._known: dict[str, str | None] = {}

    def find_mount(self, path: str | None, *, is_striped: bool) -> tuple[str | None, str | None]:
        """Return the mount point and the file system type; None if they are unknown or the path is not absolute."""
        mount = self._longest(path) if path and path.startswith("/") else None
        kind = self._mounts[mount] if mount is not None else None
        if is_striped and kind != _LUSTRE:
            return None, _LUSTRE
        return mount, kind

    def _longest(self, path: str) -> str | None:
        waiting = []
        while path not in self._known and path not in self._mounts and path != "/":
            waiting.append(path)
            path = path[: path.rindex("/")] or "/"
        mount = self._known.get(path, path if path in self._mounts else None)
        # Cache the folders but not the file, because other files in the same folder are likely to follow.
        self._known |= dict.fromkeys(waiting[1:], mount)
        return mount


def _frame(columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {name: None if values is None else traced.series(name, [values]) for name, values in columns.items()}
    )


def _are_distinct(ids: Ints, ranks: Ints) -> bool:
    """Test whether all pairs of id and rank are distinct."""
    if len(ids) < 2:
        return True
    order = np.lexsort((ranks, ids))
    return not ((np.diff(ids[order]) == 0) & (np.diff(ranks[order]) == 0)).any()


def _lists(values: Ints, counts: Ints) -> pl.Series:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    # Convert with Polars, because PyArrow's own conversion imports pandas, which takes half a second.
    parts = (pl.Series(part).to_arrow() for part in (offsets, values))
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(*parts)))


def _refuse_rows(rows: pl.DataFrame, places: Ints, reason: str) -> Batch:
    raw = pl.concat_str(pl.all().cast(pl.String).fill_null("none"), separator=" ")
    entry = {"reason": pl.lit(reason), "remedy": pl.lit(_REMEDY), "raw": raw}
    return reject_frame(rows.select(line=pl.Series(places + 1), **entry))


def _segments(head: dict[str, Any], block: Arrays, first: int, stripes: Stripes) -> tuple[dict[str, Any], Marks]:
    writes, reads = block["write_counts"], block["read_counts"]
    counts: Ints = writes + reads
    offsets, lengths = (block["segments"][:, column].copy() for column in (0, 1))
    start_s, end_s = (block["segments"][:, column].copy().view(np.float64) for column in (2, 3))
    # MPI-IO offsets are -1 if the tracer did not query them, and in the module's first version.
    lowest = -1 if head["module"] == "DXT_MPIIO" else 0
    is_valid = (lengths >= 0) & (offsets >= lowest) & (start_s <= end_s) & np.isfinite(start_s) & np.isfinite(end_s)
    is_read = np.repeat(np.tile([0, 1], len(counts)), np.stack([writes, reads], axis=1).ravel())
    osts = stripes.targets(block["ids"], counts, offsets)
    columns = {
        "request": np.arange(first, first + len(offsets)),
        "rank": np.repeat(block["ranks"], counts),
        "host": traced.CodedTexts(head["hosts"], np.repeat(block["host_codes"], counts)),
        "file_number": np.repeat(block["ids"].view(np.int64), counts),
        "direction": traced.CodedTexts(["write", "read"], is_read),
        "offset_bytes": traced.Nullable(offsets, offsets != -1),
        "request_bytes": lengths.astype(np.float64),
        "start_s": start_s,
        "end_s": end_s,
        "ost": None if osts is None else traced.Nullable(osts, osts >= 0),
    }
    return columns, is_valid
