"""One file of a DFTracer trace: its calls, kept beside as they come, and what it says about its processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from warehouse.sources.dftracer import calls
from warehouse.sources.dftracer.calls import COMPLETE, METADATA
from warehouse.sources.dftracer.lines import Ending, Reader, blocks, careful
from warehouse.sources.rows.delimited import LINE
from warehouse.sources.rows.rejects import Sifted
from warehouse.sources.rows.text_blocks import Block

#: rows as they are kept: codes stand for processes, functions and files, times are microseconds since 1970
KEPT = pl.Schema(
    {
        "process": pl.Int32(),
        "tid": pl.Int64(),
        "id": pl.Int64(),
        "function": pl.Int32(),
        "layer": pl.Int8(),
        "ts": pl.Int64(),
        "dur": pl.Int64(),
        "request_bytes": pl.Int64(),
        "offset_bytes": pl.Int64(),
        "file": pl.Int32(),
        "input": pl.Int32(),
        LINE: pl.Int64(),
    }
)
_DFTRACER = "dftracer"
_RANK = "rank"
#: of a function's name: layer, what it does, and the name itself
Function = tuple[int, str, str]


@dataclass(slots=True)
class Codes:
    """What the rows of all files have codes for, each in the order in which it was met."""

    processes: dict[tuple[str | None, int], int] = field(default_factory=dict)
    functions: dict[Function, int] = field(default_factory=dict)
    #: a file by its name (of no input), or by its hash within an input
    files: dict[tuple[int | None, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class FileRead:
    """What one file holds: where its calls are kept, what it says of its processes, and how it ended.

    names: the files' names by their hashes; None where two files have one. is_orderly: no call lies within another or
    could be a repeated one. event_count: how many events the tracer says it wrote.
    """

    name: str
    number: int
    ending: Ending = field(default_factory=Ending)
    parts: list[Path] = field(default_factory=list)
    processes: set[int] = field(default_factory=set)
    hosts: dict[str, str] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    started_as: dict[str, object] = field(default_factory=dict)
    event_count: int | None = None
    numbered_count: int = 0
    are_all_numbered: bool = True
    refused_count: int = 0
    is_orderly: bool = True
    has_overlaps: bool = False
    layers: set[int] = field(default_factory=set)
    last_id: int = -1
    last_us: int = 0
    first_us: int | None = None

    @property
    def missing_count(self) -> int:
        """Return how many of the events that the tracer says it wrote are not there; 0 where it does not say."""
        if self.event_count is None or not self.are_all_numbered or len(self.processes) != 1:
            return 0
        return max(self.event_count + 1 - self.numbered_count, 0)

    @property
    def is_whole(self) -> bool:
        """Return whether it says of each of its processes that it came to its end, and nothing is missing."""
        has_end = self.ending.is_closed or (bool(self.processes) and self.processes <= set(self.ended))
        return has_end and not self.ending.is_cut and not self.missing_count


def read_file(path: Path, found: FileRead, codes: Codes, reader: Reader, scratch: Path) -> Iterator[pl.DataFrame]:
    """Read a file into `found`, and keep its calls in the folder; yields refused lines.

    Raises InputRefused where the file is damaged otherwise than by being cut.
    """
    for block in blocks(path, found.ending):
        sifted = sift_block(block, reader)
        if not sifted.refused.is_empty():
            found.refused_count += sifted.refused.height
            yield sifted.refused
        if sifted.rows.is_empty():
            continue
        rows = _with_processes(sifted.rows, found, codes)
        _hear(rows, block, found)
        _note_order(rows, found)
        kept = _kept(rows, found, codes)
        if not kept.is_empty():
            part = scratch / f"{found.number}-{len(found.parts)}.parquet"
            kept.write_parquet(part, compression="lz4", statistics=False)
            found.parts.append(part)


def sift_block(block: Block, reader: Reader) -> Sifted:
    """Return the typed lines of a block, and the refused ones: read at once, or one by one if anything is wrong."""
    cells = reader.quick(block)
    if cells is not None:
        sifted = calls.typed(cells)
        if sifted.refused.is_empty():
            return sifted
    told = careful(block)
    sifted = calls.typed(told.rows)
    return Sifted(sifted.rows, pl.concat([told.refused, sifted.refused]).sort(LINE))


def _with_processes(rows: pl.DataFrame, found: FileRead, codes: Codes) -> pl.DataFrame:
    """Number the processes: a process is a host's, for hosts give the same numbers."""
    keyed = rows.with_columns(host_key=pl.coalesce("host", "host_hash"))
    is_event = pl.col("phase") == COMPLETE
    seen = keyed.filter(is_event).select("host_key", "pid").unique(maintain_order=True)
    numbers = [codes.processes.setdefault(key, len(codes.processes)) for key in seen.iter_rows()]
    found.processes.update(numbers)
    known = seen.with_columns(process=pl.Series(numbers, dtype=pl.Int32))
    return keyed.join(known, on=["host_key", "pid"], how="left", nulls_equal=True, maintain_order="left")


def _hear(rows: pl.DataFrame, block: Block, found: FileRead) -> None:
    """Take into account what DFTracer says of the run itself: names of hosts and files, ranks, start and end."""
    own = rows.filter(pl.col("cat") == _DFTRACER)
    _hear_names(own.filter(pl.col("phase") == METADATA), found)
    edges = own.filter((pl.col("phase") == COMPLETE) & pl.col("name").is_in(["start", "end"]))
    if edges.is_empty():
        return
    lines = block.content.split(b"\n")
    for name, process, ts, line in edges.select("name", "process", "ts", LINE).iter_rows():
        args = json.loads(lines[line - block.first_line].strip().removesuffix(b",")).get("args") or {}
        if name == "start":
            found.started[process] = min(found.started.get(process, ts), ts)
            found.started_as = found.started_as or args
        else:
            found.ended[process] = max(found.ended.get(process, ts), ts)
            count = args.get("num_events")
            found.event_count = count if isinstance(count, int) else None


def _hear_names(rows: pl.DataFrame, found: FileRead) -> None:
    told = rows.filter(pl.col("told").is_not_null() & pl.col("value").is_not_null())
    for kind, name, value, pid in told.select("name", "told", "value", "pid").iter_rows():
        if kind == "FH":
            found.names[value] = name if found.names.get(value, name) == name else None
        elif kind == "HH":
            found.hosts[value] = name
        elif kind == "SH":
            found.strings[value] = name
        elif kind == "PR" and name == _RANK and value.isascii() and value.isdigit() and len(value) < 10:
            found.ranks[pid] = int(value)


def _note_order(rows: pl.DataFrame, found: FileRead) -> None:
    """Note whether events could be repeated, or lie within each other: then they have to be put in order."""
    numbered = rows["id"].drop_nulls()
    found.are_all_numbered &= numbered.len() == rows.height
    found.numbered_count += numbered.len()
    ids = numbered.to_numpy()
    if ids.size:
        in_order = np.sort(ids)
        found.is_orderly &= bool((np.diff(in_order) > 0).all()) and int(in_order[0]) > found.last_id
        found.last_id = max(found.last_id, int(in_order[-1]))
    found.is_orderly &= len(found.processes) < 2


def _kept(rows: pl.DataFrame, found: FileRead, codes: Codes) -> pl.DataFrame:
    """Return the calls of files as they are kept, and take their times into account."""
    events = rows.filter(pl.col("phase") == COMPLETE)
    if events.is_empty():
        return KEPT.to_frame()
    edges = events.select(first=pl.col("ts").min(), last=(pl.col("ts") + pl.col("dur")).max()).row(0)
    found.first_us = edges[0] if found.first_us is None else min(found.first_us, edges[0])
    done = events.filter(pl.col("deed").is_not_null())
    if done.is_empty():
        found.last_us = max(found.last_us, edges[1])
        return KEPT.to_frame()
    _note_nesting(done, found)
    found.last_us = max(found.last_us, edges[1])
    moves = pl.col("deed").is_in(["read", "write"])
    return _coded(_coded_files(done, found, codes), codes).select(
        pl.col("process", "tid", "id", "function", "layer", "ts", "dur"),
        request_bytes=pl.when(moves).then(calls.request_bytes()),
        offset_bytes=pl.when(moves).then("offset"),
        file="file",
        input=pl.lit(found.number, pl.Int32),
        line=LINE,
    ).cast(KEPT)  # type: ignore[arg-type]


def _note_nesting(done: pl.DataFrame, found: FileRead) -> None:
    """Note whether calls of several layers overlap."""
    found.layers.update(layer for layer in done["layer"].unique() if layer != calls.OWN)
    began, lasting = done["ts"].to_numpy(), done["dur"].to_numpy()
    over = np.maximum(np.maximum.accumulate(began + lasting), found.last_us)
    overlaps = bool((began[1:] < over[:-1]).any()) or int(began[0]) < found.last_us
    found.has_overlaps |= overlaps


def _coded(rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    own = ["layer", "deed", "name"]
    seen = rows.select(own).unique(maintain_order=True)
    numbers = [codes.functions.setdefault(key, len(codes.functions)) for key in seen.iter_rows()]
    return rows.join(seen.with_columns(function=pl.Series(numbers, dtype=pl.Int32)), on=own, how="left", maintain_order="left")


def _coded_files(rows: pl.DataFrame, found: FileRead, codes: Codes) -> pl.DataFrame:
    """Number the files, by their names where these are told, else by the hashes that this input has for them."""
    own = ["path", "file_hash"]
    seen = rows.select(own).unique(maintain_order=True)
    numbers = [
        None if path is None and of is None
        else codes.files.setdefault((None, path) if path is not None else (found.number, of), len(codes.files))
        for path, of in seen.iter_rows()
    ]  # fmt: skip
    known = seen.with_columns(file=pl.Series(numbers, dtype=pl.Int32))
    return rows.join(known, on=own, how="left", nulls_equal=True, maintain_order="left")
