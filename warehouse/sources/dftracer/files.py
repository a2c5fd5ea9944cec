"""Files of a DFTracer trace: their calls, kept beside as they come, and what each says about its processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from warehouse.sources.dftracer import calls
from warehouse.sources.dftracer.calls import COMPLETE, METADATA
from warehouse.sources.dftracer.lines import Ending, Reader, careful
from warehouse.sources.rows.delimited import LINE
from warehouse.sources.rows.rejects import Sifted
from warehouse.sources.rows.text_blocks import Block

INPUT = "input"
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
        INPUT: pl.Int32(),
        LINE: pl.Int64(),
    }
)
#: how far a call may lie outside of its process's start and end
SLACK_US = 1_000_000
#: before the key of a host that goes by its hash
BY_HASH = "#"
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
    """What one file says of its processes, how it ended, and whether its calls have to be put in order.

    names: the files' names by their hashes; None where two files have one. event_count: how many events the tracer
    says it wrote; is_count_sound: whether it is a number, if told. is_orderly: no event could be one that came before;
    has_overlaps: calls lie within each other.
    """

    name: str
    number: int
    is_alone: bool = True
    ending: Ending = field(default_factory=Ending)
    processes: set[int] = field(default_factory=set)
    hosts: dict[str, str] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    started_as: dict[str, object] = field(default_factory=dict)
    event_count: int | None = None
    is_count_sound: bool = True
    numbered_count: int = 0
    are_all_numbered: bool = True
    is_orderly: bool = True
    has_overlaps: bool = False
    layers: set[int] = field(default_factory=set)
    last_id: int = -1
    first_us: int | None = None
    last_us: int = 0

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
        return has_end and not self.ending.is_cut and not self.missing_count and self.is_count_sound

    @property
    def edges_us(self) -> tuple[int, int] | None:
        """Return when the first event began and the last was over; None without any.

        Of processes whose start and end are told, what lies far outside says nothing.
        """
        if self.first_us is None:
            return None
        has_all = bool(self.processes) and self.processes <= set(self.started) & set(self.ended)
        if not has_all:
            return self.first_us, self.last_us
        started, ended = min(self.started.values()), max(self.ended.values())
        first = self.first_us if self.first_us >= started - SLACK_US else started
        return first, self.last_us if self.last_us <= ended + SLACK_US else ended

    @property
    def needs_order(self) -> bool:
        """Return whether a call of it may be a repeated one, or may have been made by another."""
        return not self.is_orderly or (self.has_overlaps and len(self.layers) > 1)


#: a file, and some of its lines
Piece = tuple[FileRead, Block]


def sifted(pieces: Sequence[Piece], reader: Reader) -> Sifted:
    """Return the typed lines of some pieces, with `input`, and the refused ones.

    They are read at once, or one by one if anything is wrong with any.
    """
    cells = reader.quick([block for _, block in pieces])
    if cells is not None:
        inputs = np.repeat([found.number for found, _ in pieces], [block.line_count for _, block in pieces])
        typed = calls.typed(cells.with_columns(pl.Series(INPUT, inputs, dtype=pl.Int32)))
        if typed.refused.is_empty():
            return typed
    if len(pieces) > 1:
        parts = [sifted([piece], reader) for piece in pieces]
        return Sifted(pl.concat([part.rows for part in parts]), pl.concat([part.refused for part in parts]))
    ((found, block),) = pieces
    told = careful(block)
    typed = calls.typed(told.rows.with_columns(pl.lit(found.number, pl.Int32).alias(INPUT)))
    refused = pl.concat([told.refused, typed.refused]).sort(LINE)
    if not found.is_alone:
        refused = refused.with_columns(reason=pl.format("{}: {}", pl.lit(found.name), "reason"))
    return Sifted(calls.without_given(typed.rows), refused)


def taken(pieces: Sequence[Piece], rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    """Take lines into account, and return the calls among them as they are kept."""
    if rows.is_empty():
        return KEPT.to_frame()
    files = {found.number: found for found, _ in pieces}
    coded = _with_processes(rows, files, codes)
    _hear(coded, pieces, files)
    _note_numbers(coded, files)
    events = coded.filter(pl.col("phase") == COMPLETE)
    done = events.filter(pl.col("deed").is_not_null())
    _note_nesting(done, files)
    _note_edges(events, files)
    moves = pl.col("deed").is_in(["read", "write"])
    return _with_files(_with_functions(done, codes), codes).select(
        pl.col("process", "tid", "id", "function", "layer", "ts", "dur"),
        pl.when(moves).then(calls.request_bytes()).cast(pl.Int64).alias("request_bytes"),
        pl.when(moves).then("offset").alias("offset_bytes"),
        pl.col("file", INPUT, LINE),
    )


def _with_processes(rows: pl.DataFrame, files: Mapping[int, FileRead], codes: Codes) -> pl.DataFrame:
    """Add `process`: a process is one of a host, for hosts give the same numbers."""
    keyed = rows.with_columns(host_key=pl.coalesce("host", pl.lit(BY_HASH) + pl.col("host_hash")))
    seen = keyed.filter(pl.col("phase") == COMPLETE).select(INPUT, "host_key", "pid").unique(maintain_order=True)
    numbers = []
    for number, host, pid in seen.iter_rows():
        numbers.append(codes.processes.setdefault((host, pid), len(codes.processes)))
        files[number].processes.add(numbers[-1])
    known = seen.with_columns(process=pl.Series(numbers, dtype=pl.Int32))
    return keyed.join(known, on=[INPUT, "host_key", "pid"], how="left", nulls_equal=True, maintain_order="left")


def _hear(rows: pl.DataFrame, pieces: Sequence[Piece], files: Mapping[int, FileRead]) -> None:
    """Take into account what DFTracer says of the run itself: names of hosts and files, ranks, start and end."""
    own = rows.filter(pl.col("cat") == calls.TRACER)
    told = own.filter((pl.col("phase") == METADATA) & pl.col("told").is_not_null() & pl.col("value").is_not_null())
    for number, *said in told.select(INPUT, "name", "told", "value", "pid").iter_rows():
        _hear_name(files[number], *said)
    edges = own.filter((pl.col("phase") == COMPLETE) & pl.col("name").is_in(["start", "end"]))
    for number, name, process, ts, line in edges.select(INPUT, "name", "process", "ts", LINE).iter_rows():
        _hear_edge(files[number], name, process, ts, _args(pieces, number, line))


def _hear_name(found: FileRead, kind: str, name: str, value: str, pid: int) -> None:
    if kind == "FH":
        found.names[value] = name if found.names.get(value, name) == name else None
    elif kind == "HH":
        found.hosts[value] = name
    elif kind == "SH":
        found.strings[value] = name
    elif kind == "PR" and name == calls.RANK:
        found.ranks[pid] = int(value)


def _hear_edge(found: FileRead, name: str, process: int, ts: int, args: dict[str, object]) -> None:
    if name == "start":
        found.started[process] = min(found.started.get(process, ts), ts)
        found.started_as = found.started_as or args
        return
    found.ended[process] = max(found.ended.get(process, ts), ts)
    count = args.get("num_events")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        found.event_count = count
    else:
        found.is_count_sound &= "num_events" not in args


def _args(pieces: Sequence[Piece], number: int, line: int) -> dict[str, object]:
    """Return the members of an event's `args` that has more of them than others."""
    for found, block in pieces:
        if found.number == number and block.first_line <= line < block.first_line + block.line_count:
            text = block.content.split(b"\n")[line - block.first_line].strip().removesuffix(b",")
            args = json.loads(text).get("args")
            return args if isinstance(args, dict) else {}
    return {}


def _note_numbers(rows: pl.DataFrame, files: Mapping[int, FileRead]) -> None:
    """Note whether an event could be one that came before: numbers rise from block to block, and come once."""
    ids = pl.col("id")
    counted = rows.group_by(INPUT).agg(
        pl.len().alias("all"), ids.count().alias("numbered"), ids.n_unique().alias("different"),
        ids.min().alias("first"), ids.max().alias("last"),
    )  # fmt: skip
    for number, height, numbered, different, first, last in counted.iter_rows():
        found = files[number]
        found.are_all_numbered &= numbered == height
        found.numbered_count += numbered
        is_single = len(found.processes) < 2 and different - (numbered < height) == numbered
        found.is_orderly &= is_single and (first is None or first > found.last_id)
        found.last_id = max(found.last_id, -1 if last is None else last)


def _note_nesting(done: pl.DataFrame, files: Mapping[int, FileRead]) -> None:
    """Note of which layers the calls are, and whether they overlap."""
    ended = pl.col("ts") + pl.col("dur")
    seen = done.group_by(INPUT, maintain_order=True).agg(
        pl.col("layer").unique().alias("layers"),
        (pl.col("ts").slice(1) < ended.cum_max().head(pl.len() - 1)).any().alias("overlaps"),
        pl.col("ts").first().alias("first"),
    )
    for number, layers, overlaps, first in seen.iter_rows():
        found = files[number]
        found.layers.update(layer for layer in layers if layer != calls.OWN)
        found.has_overlaps |= overlaps or first < found.last_us


def _note_edges(events: pl.DataFrame, files: Mapping[int, FileRead]) -> None:
    """Note when the first event began and the last was over."""
    ended = pl.col("ts") + pl.col("dur")
    for number, first, last in events.group_by(INPUT).agg(pl.col("ts").min(), ended.max().alias("last")).iter_rows():
        found = files[number]
        found.first_us = first if found.first_us is None else min(found.first_us, first)
        found.last_us = max(found.last_us, last)


def _with_functions(rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    own = ["layer", "deed", "name"]
    seen = rows.select(own).unique(maintain_order=True)
    numbers = [codes.functions.setdefault(key, len(codes.functions)) for key in seen.iter_rows()]
    known = seen.with_columns(function=pl.Series(numbers, dtype=pl.Int32))
    return rows.join(known, on=own, how="left", maintain_order="left")


def _with_files(rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    """Add `file`: a file goes by its name where that is told, else by the hash that its input has for it."""
    own = [INPUT, "path", "file_hash"]
    seen = rows.select(own).unique(maintain_order=True)
    numbers = [
        None if (key := _key(*cells)) is None else codes.files.setdefault(key, len(codes.files))
        for cells in seen.iter_rows()
    ]
    known = seen.with_columns(file=pl.Series(numbers, dtype=pl.Int32))
    return rows.join(known, on=own, how="left", nulls_equal=True, maintain_order="left")


def _key(number: int, path: str | None, file_hash: str | None) -> tuple[int | None, str] | None:
    if path is not None:
        return None, path
    return None if file_hash is None else (number, file_hash)
