"""Rows of the trace tables from a Darshan log: what the child reads of it, put into our columns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from warehouse.contracts import Table, columns
from warehouse.contracts.traces import TRACE_FILES, TRACE_HEATMAPS, TRACE_MODULES, TRACE_RECORDS, TRACE_REQUESTS, TRACES
from warehouse.sources.darshan import reading
from warehouse.sources.darshan.counters import COUNTS, Records, Totals
from warehouse.sources.darshan.layout import Layout, Region, examine
from warehouse.sources.darshan.stripes import Stripes
from warehouse.sources.files.child import Arrays, arrays_from_child
from warehouse.sources.protocol import Batch
from warehouse.sources.rows import traced
from warehouse.sources.rows.rejects import reject_frame

Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

#: from this format on, the job's times have nanoseconds
_EXACT_FORMAT = "3.41"
#: Darshan's times are differences of seconds since 1970 in double precision
RESOLUTION_S = 2.0**-22
#: the ids of the heat maps' names, by which they are known where names were made anonymous
_HEATMAPS = {
    16592106915301738621: "POSIX",
    3989511027826779520: "STDIO",
    3668870418325792824: "MPIIO",
    1597927878319380788: "DFS",
    4131494093108637317: "DAOS",
}
_HEATMAP_PREFIX = "heatmap:"
_LUSTRE = "lustre"
_SOUND_HEATMAP = (
    pl.col("module").is_not_null()
    & (pl.col("rank") >= -1)
    & pl.col("interval_s").is_between(columns.INTERVAL_S.low, columns.INTERVAL_S.high)
    & (pl.col("bin_bytes").list.min().fill_null(0) >= 0)
    & pl.struct("module", "rank").is_first_distinct()
)
#: modules whose records are not of files
_NOT_OF_FILES = ("HEATMAP", "BG/Q")
_REMEDY = "Compare it with what darshan-parser prints; the other records of the log are landed."
_NAMES_OF_NO_FILES = ("darshan-apmpi-header", "APMPI", "darshan-apxc-header", "APXC", "darshan-internal-bgq")


def batches(path: Path, file_name: str) -> Iterator[Batch]:
    """Read a log's rows; `file_name` is the name under which Darshan or its owner stored it."""
    layout = examine(path)
    regions = [r for r in layout.regions if r.version is not None and (r.stored_bytes > 0 or r.fault is not None)]
    parts = [[r.name, r.version, r.raw_bytes, r.is_partial] for r in regions if r.fault is None]
    trace = _Trace(layout, file_name)
    for block in arrays_from_child(reading.log, str(path), json.dumps(parts)):
        head: dict[str, Any] = json.loads(block["head"].tobytes())
        yield from trace.rows(head, block)
    yield from trace.last_rows(regions)


def our_name(module: str) -> str:
    """Return our name of a module of Darshan's."""
    return "MPIIO" if module == "MPI-IO" else module


@dataclass(slots=True)
class _Trace:
    """What is known of the log so far."""

    layout: Layout
    file_name: str
    ended_at: datetime | None = None
    mounts: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    file_ids: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    ids_of_no_files: set[int] = field(default_factory=set)
    stripes: Stripes = field(default_factory=Stripes.none)
    totals: dict[str, Totals] = field(default_factory=dict)
    modules: list[dict[str, Any]] = field(default_factory=list)
    #: records that were taken up so far, by module; a refused one is told by its place among them
    record_counts: Counter[str] = field(default_factory=Counter)
    request_count: int = 0

    def rows(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        """Take up a block of the child's, and yield the rows that it makes."""
        if "ids" in block and head["kind"] != "names":
            self._note_ids(head["module"], block["ids"])
        readers: dict[str, Callable[[dict[str, Any], Arrays], Iterator[Batch]]] = {
            "job": self._job,
            "names": self._names,
            "records": self._records,
            "stripes": self._stripes,
            "heatmaps": self._heatmaps,
            "segments": self._segments,
            "module": self._module,
        }
        yield from readers[head["kind"]](head, block)

    def last_rows(self, regions: list[Region]) -> Iterator[Batch]:
        """Yield the rows of what is known only at the end: modules and files."""
        for region in regions:
            if region.fault is not None:
                told = {"module": region.name, "version": region.version, "is_partial": region.is_partial}
                self.modules.append(told | {"outcome": "unreadable", "reason": region.fault, "record_count": None})
        if self.modules:
            yield self._batch(TRACE_MODULES, self._module_columns())
        files = self._files()
        if files:
            yield self._batch(TRACE_FILES, files)

    def _batch(self, table: Table, known: dict[str, Any]) -> Batch:
        return traced.rows(table, known, self.ended_at)

    def _note_ids(self, module: str, ids: npt.NDArray[np.uint64]) -> None:
        if module in _NOT_OF_FILES:
            self.ids_of_no_files.update(ids.tolist())
        else:
            self.file_ids.append(np.unique(ids))

    # ---- the run

    def _job(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        (start_s, start_ns), (end_s, end_ns) = head["started"], head["ended"]
        is_exact = self.layout.version >= _EXACT_FORMAT
        self.ended_at = _instant(end_s, end_ns)
        self.mounts = dict(head["mounts"])
        words = head["command"].split()
        application = PurePosixPath(words[0]).name if words else None
        yield self._batch(
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
                # Whole seconds are cut off at both ends, so Darshan counts the last one as well.
                "duration_s": end_s - start_s + ((end_ns - start_ns) * 1e-9 if is_exact else 1.0),
                "time_resolution_s": RESOLUTION_S,
            },
        )

    def _names(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        self.names = dict(zip(block["ids"].tolist(), head["names"], strict=True))
        yield from ()

    # ---- modules

    def _module(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        self.modules.append(head)
        yield from ()

    def _module_columns(self) -> dict[str, Any]:
        def counters(told: dict[str, Any]) -> str | None:
            totals = self.totals.get(told["module"])
            known = totals.known() if totals else told.get("counts") or {}
            return json.dumps(known) if known else None

        return {
            "module": pl.Series([our_name(told["module"]) for told in self.modules], dtype=pl.String),
            "module_version": pl.Series([told["version"] for told in self.modules], dtype=pl.Int64),
            "outcome": pl.Series([told["outcome"] for told in self.modules], dtype=pl.String),
            "reason": pl.Series([told["reason"] for told in self.modules], dtype=pl.String),
            "is_partial": pl.Series([told["is_partial"] for told in self.modules], dtype=pl.Boolean),
            "record_count": pl.Series([told["record_count"] for told in self.modules], dtype=pl.Int64),
            "counters": pl.Series([counters(told) for told in self.modules], dtype=pl.String),
        }

    def _records(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        module = our_name(head["module"])
        integers = {name: block["integers"][:, at] for at, name in enumerate(head["integer_names"])}
        reals = {name: block["reals"][:, at] for at, name in enumerate(head["real_names"])}
        records = Records(module, integers, reals)
        self.totals.setdefault(head["module"], Totals()).add(records)
        if module not in COUNTS:
            return
        numbers = block["ids"].view(np.int64)
        is_sound = records.is_sound() & (block["ranks"] >= -1)
        counts = {name: _nullable(*values) for name, values in records.columns().items()}
        frame = pl.DataFrame({"file_number": numbers, "rank": block["ranks"], **counts})
        is_first = frame.select(pl.struct("file_number", "rank").is_first_distinct()).to_series().to_numpy()
        for marks, reason in ((~is_sound, "a count that cannot be"), (is_sound & ~is_first, "the file and rank twice")):
            if marks.any():
                places = self.record_counts[module] + np.flatnonzero(marks)
                yield _refused(frame.filter(marks), places, f"The record of {module} has {reason}.")
        self.record_counts[module] += frame.height
        kept = frame.filter(is_sound & is_first)
        if kept.height:
            yield self._batch(TRACE_RECORDS, {"module": module, **kept.to_dict(as_series=True)})

    def _stripes(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        self.stripes = Stripes.of(block["ids"], block["component_counts"], block["components"], block["osts"])
        yield from ()

    # ---- heat maps

    def _heatmaps(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        first = self.record_counts["HEATMAP"]
        self.record_counts["HEATMAP"] += len(block["ids"])
        modules = pl.Series([self._heatmap_module(number) for number in block["ids"].tolist()], dtype=pl.String)
        for direction, told in (("read", "read"), ("write", "written")):
            frame = pl.DataFrame(
                {
                    "module": modules,
                    "rank": block["ranks"],
                    "interval_s": block["widths_s"],
                    "step_count": block["bin_counts"],
                    "bin_bytes": _lists(block[told], block["bin_counts"]),
                }
            )
            is_sound = frame.select(_SOUND_HEATMAP.fill_null(False)).to_series()
            if not is_sound.all():
                refused = frame.filter(~is_sound).drop("bin_bytes")
                places = first + np.flatnonzero(~is_sound.to_numpy())
                reason = f"The heat map of {direction}s is of no known module, comes twice, or has bins that cannot be."
                yield _refused(refused, places, reason)
            kept = frame.filter(is_sound)
            if kept.height:
                yield self._batch(TRACE_HEATMAPS, {"direction": direction, **kept.to_dict(as_series=True)})

    def _heatmap_module(self, number: int) -> str | None:
        name = self.names.get(number, "")
        return name.removeprefix(_HEATMAP_PREFIX) if name.startswith(_HEATMAP_PREFIX) else _HEATMAPS.get(number)

    # ---- requests

    def _segments(self, head: dict[str, Any], block: Arrays) -> Iterator[Batch]:
        segments = _Segments(head, block)
        sound = segments.sound
        first = self.request_count
        self.request_count += len(sound)
        osts = self.stripes.targets(block["ids"], segments.counts, segments.offsets)
        frame = segments.frame(first, osts)
        if not sound.all():
            refused = frame.filter(~sound)
            reason = "The segment has a negative length or offset, no time, or it ends before it begins."
            yield _refused(refused, refused["request"].to_numpy(), reason)
            frame = frame.filter(sound)
        told = {"module": head["module"].removeprefix("DXT_"), "is_nested": False, "is_async": False}
        if frame.height:
            yield self._batch(TRACE_REQUESTS, {**told, **frame.to_dict(as_series=True)})

    # ---- files

    def _files(self) -> dict[str, Any]:
        used = np.unique(np.concatenate(self.file_ids)).tolist() if self.file_ids else []
        named = [
            number
            for number, name in self.names.items()
            if not name.startswith(_HEATMAP_PREFIX) and name not in _NAMES_OF_NO_FILES
        ]
        ids = [number for number in dict.fromkeys([*named, *used]) if number not in self.ids_of_no_files]
        if not ids:
            return {}
        paths = [self.names.get(number) for number in ids]
        described = self.stripes.described()
        stripes = [described.get(number, (None, None)) for number in ids]
        mounts = _Mounts(self.mounts)
        places = [mounts.of(path, is_striped=number in described) for number, path in zip(ids, paths, strict=True)]
        return {
            "file_number": np.array(ids, np.uint64).view(np.int64),
            "path": pl.Series(paths, dtype=pl.String),
            "mount": pl.Series([mount for mount, _ in places], dtype=pl.String),
            "filesystem_kind": pl.Series([kind for _, kind in places], dtype=pl.String),
            "stripe_bytes": pl.Series([size for size, _ in stripes], dtype=pl.Int64),
            "osts": pl.Series([osts for _, osts in stripes], dtype=pl.List(pl.Int64)),
        }


def _instant(seconds: int, nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=nanoseconds // 1000)


def _user(file_name: str, application: str | None, job_id: int) -> str | None:
    """Return the user whom the file's usual name begins with, if its program and job are those of the log."""
    if not application:
        return None
    usual = re.compile(rf"(?P<user>[^/\s]+?)_{re.escape(application)}_id{job_id}(?:-\d+)?_")
    found = usual.match(file_name)
    return found["user"] if found else None


class _Mounts:
    """The mount point of a path: the longest that it begins with, whole names compared.

    The log has as many mounts as it had room for: a file with stripes lies on Lustre, whatever they say.
    """

    def __init__(self, mounts: dict[str, str]) -> None:
        self._mounts = mounts
        self._known: dict[str, str | None] = {}

    def of(self, path: str | None, *, is_striped: bool) -> tuple[str | None, str | None]:
        """Return the mount point and the kind of file system; None for what is no absolute path or not known."""
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
        found = self._known.get(path, path if path in self._mounts else None)
        # What lies in the same folder is likely to be asked for next; the file itself is not.
        self._known |= dict.fromkeys(waiting[1:], found)
        return found


def _nullable(values: npt.NDArray[Any], known: Marks) -> pl.Series:
    series = pl.Series(values)
    return series if known.all() else series.scatter(np.flatnonzero(~known), None)


def _lists(values: Ints, counts: Ints) -> pl.Series:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    # Polars' way to Arrow: PyArrow's own imports pandas first, for half a second.
    parts = (pl.Series(part).to_arrow() for part in (offsets, values))
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(*parts)))


def _refused(rows: pl.DataFrame, places: Ints, reason: str) -> Batch:
    return reject_frame(
        pl.DataFrame(
            {
                "line": places + 1,
                "reason": pl.repeat(reason, rows.height, eager=True),
                "remedy": pl.repeat(_REMEDY, rows.height, eager=True),
                "raw": rows.select(
                    pl.concat_str(pl.all().cast(pl.String).fill_null("none"), separator=" ")
                ).to_series(),
            }
        )
    )


class _Segments:
    """DXT segments of a block as columns: writes before reads in each record, as they are stored."""

    def __init__(self, head: dict[str, Any], block: Arrays) -> None:
        self._block = block
        self._hosts = pl.Series(head["hosts"], dtype=pl.String)
        content = block["segments"]
        self.counts: Ints = block["write_counts"] + block["read_counts"]
        self.offsets: Ints = content[:, 0].copy()
        self._lengths: Ints = content[:, 1].copy()
        self._began = content[:, 2].copy().view(np.float64)
        self._ceased = content[:, 3].copy().view(np.float64)
        # Of MPI-IO, the offset is -1 where the tracer did not ask for it, and in the module's first version.
        lowest = -1 if head["module"] == "DXT_MPIIO" else 0
        self.sound: Marks = (self._lengths >= 0) & (self.offsets >= lowest) & (self._began <= self._ceased)
        self.sound &= np.isfinite(self._began) & np.isfinite(self._ceased)

    def frame(self, first: int, osts: Ints | None) -> pl.DataFrame:
        """Return what is known of each segment; `first` is the number of the first."""
        block, counts = self._block, self.counts
        return pl.DataFrame(
            {
                "request": np.arange(first, first + len(self.offsets)),
                "rank": np.repeat(block["ranks"], counts),
                "host": self._hosts.gather(np.repeat(block["host_codes"], counts)),
                "file_number": np.repeat(block["ids"].view(np.int64), counts),
                "direction": pl.Series(["write", "read"]).gather(self._directions()),
                "offset_bytes": _nullable(self.offsets, self.offsets != -1),
                "request_bytes": self._lengths.astype(np.float64),
                "began_s": self._began,
                "ceased_s": self._ceased,
                "ost": _no_ints(len(self.offsets)) if osts is None else _nullable(osts, osts >= 0),
            }
        )

    def _directions(self) -> npt.NDArray[np.uint32]:
        counts = np.stack([self._block["write_counts"], self._block["read_counts"]], axis=1).ravel()
        return np.repeat(np.tile(np.array([0, 1], np.uint32), len(self.counts)), counts)


def _no_ints(count: int) -> pl.Series:
    return pl.Series([None], dtype=pl.Int64).new_from_index(0, count)
