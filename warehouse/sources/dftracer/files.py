"""Files of a DFTracer trace: their calls, as they come, and what each says about its processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.sources.dftracer import calls
from iosig.warehouse.sources.dftracer.calls import COMPLETE, METADATA
from iosig.warehouse.sources.dftracer.lines import INPUT, Ending, Lines, careful, quick
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.engine import Engine
from iosig.warehouse.sources.rows.rejects import Sifted
from iosig.warehouse.sources.rows.text_blocks import Block

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
#: so many lines are read sooner all at once than one by one
_MANY_LINES = 500
#: no file has as many
_MOST_LINES = 1 << 40
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


def sifted(pieces: Sequence[Piece], engine: Engine) -> Sifted:
    """Return the typed lines of some pieces, with `input`, and the refused ones."""
    lines = Lines.of([(found.number, block) for found, block in pieces])
    parts = list(_sifted_parts(lines, {found.number: found for found, _ in pieces}, engine))
    rows = pl.concat([part.rows for part in parts])
    refused = pl.concat([part.refused for part in parts])
    # by one key, which is five times as fast as by two
    place = pl.col(INPUT).cast(pl.Int64) * _MOST_LINES + pl.col(LINE)
    return Sifted(rows if refused.is_empty() else rows.sort(place), refused)


def _sifted_parts(lines: Lines, files: Mapping[int, FileRead], engine: Engine) -> Iterator[Sifted]:
    """Read lines all at once; where that fails, halve them until few are left, which are read one by one."""
    count = len(lines.numbers)
    if count < _MANY_LINES:
        for number in np.unique(lines.inputs):
            yield _sifted_one_by_one(lines.only(lines.inputs == number), files[number])
        return
    cells = quick(lines, engine)
    if cells is None:
        for is_in_half in (np.arange(count) < count // 2, np.arange(count) >= count // 2):
            yield from _sifted_parts(lines.only(is_in_half), files, engine)
        return
    typed = calls.typed(cells)
    if typed.refused.is_empty():
        yield typed
        return
    yield Sifted(typed.rows, typed.refused.clear())
    # a line read by itself is refused in the words of what is wrong with it
    good = typed.rows.select(INPUT, LINE, is_good=pl.lit(True))
    told = cells.select(INPUT, LINE).join(good, on=[INPUT, LINE], how="left", maintain_order="left")
    others = lines.only(told["is_good"].is_null().to_numpy())
    for number in np.unique(others.inputs):
        yield _sifted_one_by_one(others.only(others.inputs == number), files[number])


def _sifted_one_by_one(lines: Lines, found: FileRead) -> Sifted:
    told = careful(lines)
    typed = calls.typed(told.rows)
    refused = pl.concat([told.refused, typed.refused]).sort(LINE)
    if not found.is_alone:
        refused = refused.with_columns(reason=pl.format("{}: {}", pl.lit(found.name), "reason"))
    return Sifted(calls.without_given(typed.rows), refused)


def taken(pieces: Sequence[Piece], rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    """Take lines into account, and return the calls among them as they are kept."""
    if rows.is_empty():
        return KEPT.to_frame()
    files = {found.number: found for found, _ in pieces}
    _hear_names(rows, files)
    events = _with_processes(rows.filter(pl.col("phase") == COMPLETE), files, codes)
    _hear_edges(events, pieces, files)
    _note_numbers(rows, files)
    done = events.filter(pl.col("deed").is_not_null())
    _note_nesting(done, files)
    _note_edges(events, files)
    moves = pl.col("deed").is_in(["read", "write"])
    return done.select(
        pl.col("process", "tid", "id"),
        _functions(done, codes).alias("function"),
        pl.col("layer", "ts", "dur"),
        pl.when(moves).then(calls.request_bytes()).cast(pl.Int64).alias("request_bytes"),
        pl.when(moves).then("offset").alias("offset_bytes"),
        _files(done, codes).alias("file"),
        pl.col(INPUT, LINE),
    )


def _numbered(
    rows: pl.DataFrame, own: Sequence[str], number: Callable[..., int | None], key: str | None = None
) -> pl.Series:
    """Return a number for what each row says in some columns; `number` is asked once for each, in order.

    key: a column that tells them apart, if there is one.
    """
    if rows.is_empty():
        return pl.Series([], dtype=pl.Int32)
    # what all rows say alike, as those of one process do, tells nothing apart
    varied = [name for name in ([key] if key else own) if not _is_single(rows[name])]
    if not varied:
        return pl.Series([number(*rows.select(own).row(0))], dtype=pl.Int32).new_from_index(0, rows.height)
    told = rows[varied[0]]
    if len(varied) == 1 and isinstance(told.dtype, pl.String | pl.Categorical) and not told.has_nulls():
        # texts that are met again and again are told apart twice as fast as by a join
        places = told.cast(pl.Categorical).to_physical()
        first = places.is_first_distinct().arg_true()
        table = np.zeros(int(places.max()) + 1, np.int32)  # type: ignore[arg-type]
        numbers = pl.Series([number(*row) for row in rows[first].select(own).iter_rows()], dtype=pl.Int32)
        table[places.gather(first).to_numpy()] = numbers.to_numpy()
        return pl.Series(table.take(places.to_numpy()))
    seen = rows.select({*own, *varied}).unique(varied, keep="first", maintain_order=True)
    numbers = pl.Series("number", [number(*row) for row in seen.select(own).iter_rows()], dtype=pl.Int32)
    known = seen.select(varied).with_columns(numbers)
    return rows.select(varied).join(known, on=varied, how="left", nulls_equal=True, maintain_order="left")["number"]


def _is_single(values: pl.Series) -> bool:
    return values.null_count() == len(values) if values.has_nulls() else bool((values == values[0]).all())


def _with_processes(events: pl.DataFrame, files: Mapping[int, FileRead], codes: Codes) -> pl.DataFrame:
    """Add `process`: a process is one of a host, for hosts give the same numbers."""

    def number(source: int, host: str | None, host_hash: str | None, pid: int) -> int:
        key = host if host is not None or host_hash is None else BY_HASH + host_hash
        own = codes.processes.setdefault((key, pid), len(codes.processes))
        files[source].processes.add(own)
        return own

    numbers = _numbered(events, [INPUT, "host", "host_hash", "pid"], number)
    return events.with_columns(numbers.alias("process"))


def _hear_names(rows: pl.DataFrame, files: Mapping[int, FileRead]) -> None:
    """Take into account what DFTracer says of the run itself: names of hosts and files, and ranks."""
    told = rows.filter(
        pl.col("is_of_tracer")
        & (pl.col("phase") == METADATA)
        & pl.col("told").is_not_null()
        & pl.col("value").is_not_null()
    )
    for number, *said in told.select(INPUT, "name", "told", "value", "pid").iter_rows():
        _hear_name(files[number], *said)


def _hear_name(found: FileRead, kind: str, name: str, value: str, pid: int) -> None:
    if kind == "FH":
        found.names[value] = name if found.names.get(value, name) == name else None
    elif kind == "HH":
        found.hosts[value] = name
    elif kind == "SH":
        found.strings[value] = name
    elif kind == "PR" and name == calls.RANK:
        found.ranks[pid] = int(value)


def _hear_edges(events: pl.DataFrame, pieces: Sequence[Piece], files: Mapping[int, FileRead]) -> None:
    """Take into account when DFTracer says that processes started and ended."""
    edges = events.filter(pl.col("is_of_tracer") & pl.col("name").is_in(["start", "end"]))
    for number, name, process, ts, line in edges.select(INPUT, "name", "process", "ts", LINE).iter_rows():
        _hear_edge(files[number], name, process, ts, _args(pieces, number, line))


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


def _functions(rows: pl.DataFrame, codes: Codes) -> pl.Series:
    def number(*function: Any) -> int:
        return codes.functions.setdefault(function, len(codes.functions))

    return _numbered(rows, ["layer", "deed", "name"], number, "called")


def _files(rows: pl.DataFrame, codes: Codes) -> pl.Series:
    """Return the files' numbers: a file goes by its name where that is told, else by the hash that its input has."""

    def number(*told: Any) -> int | None:
        key = _key(*told)
        return None if key is None else codes.files.setdefault(key, len(codes.files))

    return _numbered(rows, [INPUT, "path", "file_hash"], number)


def _key(number: int, path: str | None, file_hash: str | None) -> tuple[int | None, str] | None:
    if path is not None:
        return None, path
    return None if file_hash is None else (number, file_hash)
