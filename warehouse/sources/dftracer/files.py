"""Read the files of a DFTracer trace: their calls, and metadata about their processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.sources.dftracer import calls
from iosig.warehouse.sources.dftracer.calls import COMPLETE, METADATA
from iosig.warehouse.sources.dftracer.lines import INPUT, FileEnd, Lines, read_one_by_one, read_with_duckdb
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.rejects import ParsedRows
from iosig.warehouse.sources.rows.text_blocks import Block

#: schema of collected calls: integer codes of processes, functions and files; times [us since 1970]
CALL_SCHEMA = pl.Schema(
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
#: tolerance for calls before the start or after the end of their process [us]
SLACK_US = 1_000_000
#: prefix of the key of a host that is known only by its hash
BY_HASH = "#"
#: minimum number of lines for which DuckDB is faster than reading one by one
_MIN_DUCKDB_LINES = 500
#: factor that packs file and line into one key; it exceeds the number of lines of any file
_LINE_FACTOR = 1 << 40
#: function as layer, operation and name
Function = tuple[int, str, str]


@dataclass(slots=True)
class Codes:
    """Integer codes of processes, functions and files, in order of first occurrence."""

    processes: dict[tuple[str | None, int], int] = field(default_factory=dict)
    functions: dict[Function, int] = field(default_factory=dict)
    #: codes of files, by name (with None as input) or by hash within an input
    files: dict[tuple[int | None, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class FileState:
    """State and metadata of one file.

    names: hash -> file name; None if a hash has two names. event_count: number of events according to the tracer;
    is_count_sound: whether this count, if present, is a number. is_orderly: whether no event can repeat an earlier one.
    has_overlaps: whether any calls overlap.
    """

    name: str
    number: int
    is_alone: bool = True
    ending: FileEnd = field(default_factory=FileEnd)
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
        """Number of events that the tracer counted but the file lacks; 0 if the tracer wrote no count."""
        if self.event_count is None or not self.are_all_numbered or len(self.processes) != 1:
            return 0
        return max(self.event_count + 1 - self.numbered_count, 0)

    @property
    def is_complete(self) -> bool:
        """Whether all processes ended, and no event is missing."""
        has_end = self.ending.is_closed or (bool(self.processes) and self.processes <= set(self.ended))
        return has_end and not self.ending.is_truncated and not self.missing_count and self.is_count_sound

    @property
    def edges_us(self) -> tuple[int, int] | None:
        """Start of the first event and end of the last event [us]; None without events.

        If the start and end of all processes are known, events far outside are ignored.
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
        """Whether calls in the file may be repeated or nested, so that they must be sorted."""
        return not self.is_orderly or (self.has_overlaps and len(self.layers) > 1)


#: file, and a block of its lines
Piece = tuple[FileState, Block]


def read_lines(pieces: Sequence[Piece], engine: InputDatabase) -> ParsedRows:
    """Parse the lines of several pieces, add the column `input`, and refuse malformed lines."""
    lines = Lines.from_blocks([(state.number, block) for state, block in pieces])
    parts = list(_read_halving(lines, {state.number: state for state, _ in pieces}, engine))
    rows = pl.concat([part.rows for part in parts])
    refused = pl.concat([part.refused for part in parts])
    # sorting by one packed key is five times faster than by two keys
    place = pl.col(INPUT).cast(pl.Int64) * _LINE_FACTOR + pl.col(LINE)
    return ParsedRows(rows if refused.is_empty() else rows.sort(place), refused)


def _read_halving(lines: Lines, files: Mapping[int, FileState], engine: InputDatabase) -> Iterator[ParsedRows]:
    """Read lines with DuckDB; if this fails, read each half separately, and few lines one by one."""
    count = len(lines.numbers)
    if count < _MIN_DUCKDB_LINES:
        for number in np.unique(lines.inputs):
            yield _read_carefully(lines.filter(lines.inputs == number), files[number])
        return
    cells = read_with_duckdb(lines, engine)
    if cells is None:
        for is_in_half in (np.arange(count) < count // 2, np.arange(count) >= count // 2):
            yield from _read_halving(lines.filter(is_in_half), files, engine)
        return
    parsed = calls.parse_cells(cells)
    if parsed.refused.is_empty():
        yield parsed
        return
    yield ParsedRows(parsed.rows, parsed.refused.clear())
    # read bad lines one by one, so that each gets a specific reason
    good = parsed.rows.select(INPUT, LINE, is_good=pl.lit(True))
    marks = cells.select(INPUT, LINE).join(good, on=[INPUT, LINE], how="left", maintain_order="left")
    bad_lines = lines.filter(marks["is_good"].is_null().to_numpy())
    for number in np.unique(bad_lines.inputs):
        yield _read_carefully(bad_lines.filter(bad_lines.inputs == number), files[number])


def _read_carefully(lines: Lines, state: FileState) -> ParsedRows:
    careful = read_one_by_one(lines)
    parsed = calls.parse_cells(careful.rows)
    refused = pl.concat([careful.refused, parsed.refused]).sort(LINE)
    if not state.is_alone:
        refused = refused.with_columns(reason=pl.format("{}: {}", pl.lit(state.name), "reason"))
    return ParsedRows(calls.drop_raw_columns(parsed.rows), refused)


def collect_calls(pieces: Sequence[Piece], rows: pl.DataFrame, codes: Codes) -> pl.DataFrame:
    """Record the metadata of lines, and return their calls as rows of CALL_SCHEMA."""
    if rows.is_empty():
        return CALL_SCHEMA.to_frame()
    files = {state.number: state for state, _ in pieces}
    _record_names(rows, files)
    events = _add_processes(rows.filter(pl.col("phase") == COMPLETE), files, codes)
    _record_edges(events, pieces, files)
    _update_numbering(rows, files)
    call_rows = events.filter(pl.col("operation").is_not_null())
    _update_nesting(call_rows, files)
    _update_edges(events, files)
    moves = pl.col("operation").is_in(["read", "write"])
    return call_rows.select(
        pl.col("process", "tid", "id"),
        _functions(call_rows, codes).alias("function"),
        pl.col("layer", "ts", "dur"),
        pl.when(moves).then(calls.request_bytes()).cast(pl.Int64).alias("request_bytes"),
        pl.when(moves).then("offset").alias("offset_bytes"),
        _files(call_rows, codes).alias("file"),
        pl.col(INPUT, LINE),
    )


def _assign_numbers(
    rows: pl.DataFrame, code: Sequence[str], number: Callable[..., int | None], key: str | None = None
) -> pl.Series:
    """Assign a number to each distinct combination of column values; call `number` once per combination, in order.

    key: column that alone identifies the combination, if any.
    """
    if rows.is_empty():
        return pl.Series([], dtype=pl.Int32)
    # constant columns do not distinguish rows
    varying = [name for name in ([key] if key else code) if not _is_single(rows[name])]
    if not varying:
        return pl.Series([number(*rows.select(code).row(0))], dtype=pl.Int32).new_from_index(0, rows.height)
    values = rows[varying[0]]
    if len(varying) == 1 and isinstance(values.dtype, pl.String | pl.Categorical) and not values.has_nulls():
        # for repeated strings, categories are twice as fast as a join
        places = values.cast(pl.Categorical).to_physical()
        first = places.is_first_distinct().arg_true()
        table = np.zeros(int(places.max()) + 1, np.int32)  # type: ignore[arg-type]
        numbers = pl.Series([number(*row) for row in rows[first].select(code).iter_rows()], dtype=pl.Int32)
        table[places.gather(first).to_numpy()] = numbers.to_numpy()
        return pl.Series(table.take(places.to_numpy()))
    combinations = rows.select({*code, *varying}).unique(varying, keep="first", maintain_order=True)
    numbers = pl.Series("number", [number(*row) for row in combinations.select(code).iter_rows()], dtype=pl.Int32)
    numbered = combinations.select(varying).with_columns(numbers)
    return rows.select(varying).join(numbered, on=varying, how="left", nulls_equal=True, maintain_order="left")[
        "number"
    ]


def _is_single(values: pl.Series) -> bool:
    return values.null_count() == len(values) if values.has_nulls() else bool((values == values[0]).all())


def _add_processes(events: pl.DataFrame, files: Mapping[int, FileState], codes: Codes) -> pl.DataFrame:
    """Add `process`, the code of the pair of host and process id, since hosts reuse process ids."""

    def number(source: int, host: str | None, host_hash: str | None, pid: int) -> int:
        key = host if host is not None or host_hash is None else BY_HASH + host_hash
        code = codes.processes.setdefault((key, pid), len(codes.processes))
        files[source].processes.add(code)
        return code

    numbers = _assign_numbers(events, [INPUT, "host", "host_hash", "pid"], number)
    return events.with_columns(numbers.alias("process"))


def _record_names(rows: pl.DataFrame, files: Mapping[int, FileState]) -> None:
    """Record DFTracer's metadata about the run: names of hosts and files, and ranks."""
    values = rows.filter(
        pl.col("is_of_tracer")
        & (pl.col("phase") == METADATA)
        & pl.col("arg_name").is_not_null()
        & pl.col("value").is_not_null()
    )
    for number, *fields in values.select(INPUT, "name", "arg_name", "value", "pid").iter_rows():
        _record_name(files[number], *fields)


def _record_name(state: FileState, kind: str, name: str, value: str, pid: int) -> None:
    if kind == "FH":
        state.names[value] = name if state.names.get(value, name) == name else None
    elif kind == "HH":
        state.hosts[value] = name
    elif kind == "SH":
        state.strings[value] = name
    elif kind == "PR" and name == calls.RANK:
        state.ranks[pid] = int(value)


def _record_edges(events: pl.DataFrame, pieces: Sequence[Piece], files: Mapping[int, FileState]) -> None:
    """Record the times at which processes started and ended."""
    edges = events.filter(pl.col("is_of_tracer") & pl.col("name").is_in(["start", "end"]))
    for number, name, process, ts, line in edges.select(INPUT, "name", "process", "ts", LINE).iter_rows():
        _record_edge(files[number], name, process, ts, _args(pieces, number, line))


def _record_edge(state: FileState, name: str, process: int, ts: int, args: dict[str, object]) -> None:
    if name == "start":
        state.started[process] = min(state.started.get(process, ts), ts)
        state.started_as = state.started_as or args
        return
    state.ended[process] = max(state.ended.get(process, ts), ts)
    count = args.get("num_events")
    if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
        state.event_count = count
    else:
        state.is_count_sound &= "num_events" not in args


def _args(pieces: Sequence[Piece], number: int, line: int) -> dict[str, object]:
    """Parse the complete `args` of an event with members in addition to the usual ones."""
    for state, block in pieces:
        if state.number == number and block.first_line <= line < block.first_line + block.line_count:
            text = block.content.split(b"\n")[line - block.first_line].strip().removesuffix(b",")
            args = json.loads(text).get("args")
            return args if isinstance(args, dict) else {}
    return {}


def _update_numbering(rows: pl.DataFrame, files: Mapping[int, FileState]) -> None:
    """Update `is_orderly` of each file: whether its ids are unique and increase from block to block."""
    ids = pl.col("id")
    counted = rows.group_by(INPUT).agg(
        pl.len().alias("all"), ids.count().alias("numbered"), ids.n_unique().alias("different"),
        ids.min().alias("first"), ids.max().alias("last"),
    )  # fmt: skip
    for number, height, numbered, different, first, last in counted.iter_rows():
        state = files[number]
        state.are_all_numbered &= numbered == height
        state.numbered_count += numbered
        is_single = len(state.processes) < 2 and different - (numbered < height) == numbered
        state.is_orderly &= is_single and (first is None or first > state.last_id)
        state.last_id = max(state.last_id, -1 if last is None else last)


def _update_nesting(call_rows: pl.DataFrame, files: Mapping[int, FileState]) -> None:
    """Update each file's set of layers, and whether its calls overlap."""
    ended = pl.col("ts") + pl.col("dur")
    summary = call_rows.group_by(INPUT, maintain_order=True).agg(
        pl.col("layer").unique().alias("layers"),
        (pl.col("ts").slice(1) < ended.cum_max().head(pl.len() - 1)).any().alias("overlaps"),
        pl.col("ts").first().alias("first"),
    )
    for number, layers, overlaps, first in summary.iter_rows():
        state = files[number]
        state.layers.update(layer for layer in layers if layer != calls.OWN)
        state.has_overlaps |= overlaps or first < state.last_us


def _update_edges(events: pl.DataFrame, files: Mapping[int, FileState]) -> None:
    """Update each file's start of the first event and end of the last event."""
    ended = pl.col("ts") + pl.col("dur")
    for number, first, last in events.group_by(INPUT).agg(pl.col("ts").min(), ended.max().alias("last")).iter_rows():
        state = files[number]
        state.first_us = first if state.first_us is None else min(state.first_us, first)
        state.last_us = max(state.last_us, last)


def _functions(rows: pl.DataFrame, codes: Codes) -> pl.Series:
    def number(*function: Any) -> int:
        return codes.functions.setdefault(function, len(codes.functions))

    return _assign_numbers(rows, ["layer", "operation", "name"], number, "called")


def _files(rows: pl.DataFrame, codes: Codes) -> pl.Series:
    """Assign codes to files by name if it is known, else by their hash within the input."""

    def number(*values: Any) -> int | None:
        key = _key(*values)
        return None if key is None else codes.files.setdefault(key, len(codes.files))

    return _assign_numbers(rows, [INPUT, "path", "file_hash"], number)


def _key(number: int, path: str | None, file_hash: str | None) -> tuple[int | None, str] | None:
    if path is not None:
        return None, path
    return None if file_hash is None else (number, file_hash)
