"""Build the rows of a DFTracer trace: requests, metadata calls, files, and the run."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import polars as pl

from iosig.warehouse.contracts.traces import (
    TRACE_METADATA,
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACES,
)
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.dftracer.calls import LAYERS
from iosig.warehouse.sources.dftracer.files import BY_HASH, SLACK_US, Codes, FileState, Piece, collect_calls, read_lines
from iosig.warehouse.sources.dftracer.lines import BLOCK_BYTES, INPUT, blocks
from iosig.warehouse.sources.dftracer.nesting import IN_ORDER, Nesting
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_frame, rejects

#: module of the program's own functions that log bytes, which the layers below transfer
APP = "APP"
#: module of files that the kernel generates or keeps in memory, which cause no storage traffic
KERNEL = "KERNEL"
_OF_KERNEL = r"^/(?:dev|proc|sys)/"
#: maximum size of calls in memory; longer traces spill to disk [B]
_MAX_MEMORY_BYTES = 1 << 27
#: maximum number of functions that a module's counters distinguish
_MAX_KINDS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECORD = ("module", "file_number", "rank")
#: aggregated columns of calls
_SUMS = ("count", "bytes", "time_s", "start_s", "end_s")


def read_run(files: Sequence[tuple[str, Path]]) -> Iterator[Batch]:
    """Yield all rows of a run from its processes' files; an unreadable file is skipped and reported.

    Calls are kept until all files are read, because times are relative to the earliest; long traces spill to disk.
    Raises InputRefused if no file can be read, or none has a call.
    """
    with TemporaryDirectory(prefix="iosig-") as folder, InputDatabase(Path(folder)) as engine:
        run = _Run(engine)
        yield from run.read(files)
        yield from run.land()


@dataclass(slots=True)
class _Run:
    """State of a run while its files are read."""

    engine: InputDatabase
    codes: Codes = field(default_factory=Codes)
    files: list[FileState] = field(default_factory=list)
    #: files of spilled calls, and the inputs of each; files in `held` are not written yet
    parts: list[tuple[Path, frozenset[int]]] = field(default_factory=list)
    held: dict[Path, pl.DataFrame] = field(default_factory=dict)
    held_bytes: int = 0
    skipped: dict[int, InputRefused] = field(default_factory=dict)
    refused_count: int = 0

    def read(self, files: Sequence[tuple[str, Path]]) -> Iterator[Batch]:
        """Read all files, small ones together, and yield refused lines."""
        pending: list[Piece] = []
        for number, (name, path) in enumerate(files):
            state = FileState(name, number, is_alone=len(files) == 1)
            try:
                for block in blocks(path, state.ending):
                    pending.append((state, block))
                    if sum(len(block.content) for _, block in pending) >= BLOCK_BYTES:
                        yield from self._keep(pending)
                        pending = []
            except InputRefused as fault:
                if state.is_alone:
                    raise
                pending = [piece for piece in pending if piece[0] is not state]
                self.skipped[number] = fault
                yield rejects([(None, f"{name} is skipped. {fault.reason}", fault.remedy, None)])
                continue
            self.files.append(state)
        yield from self._keep(pending)
        if not any(state.processes for state in self.files):
            raise InputRefused("No line is a readable event.", "Trace again.")

    def _keep(self, pending: Sequence[Piece]) -> Iterator[Batch]:
        pending = [(state, block) for state, block in pending if block.line_count]
        if not pending:
            return
        parsed = read_lines(pending, self.engine)
        if not parsed.refused.is_empty():
            self.refused_count += parsed.refused.height
            yield reject_frame(parsed.refused)
        call_rows = collect_calls(pending, parsed.rows, self.codes)
        if not call_rows.is_empty():
            part = self.engine.scratch / f"{len(self.parts)}.parquet"
            self.parts.append((part, frozenset(piece[0].number for piece in pending)))
            self.held[part] = call_rows
            self.held_bytes += int(call_rows.estimated_size())
            if self.held_bytes > _MAX_MEMORY_BYTES:
                self._write(part)

    def _write(self, *parts: Path) -> None:
        """Write the given parts to disk if they are still in memory."""
        for part, call_rows in [(part, self.held.pop(part)) for part in parts if part in self.held]:
            call_rows.write_parquet(part, compression="lz4", statistics=False)
            self.held_bytes -= int(call_rows.estimated_size())

    def _read(self, part: Path) -> pl.DataFrame:
        call_rows = self.held.pop(part, None)
        return read_parquet(part) if call_rows is None else call_rows

    def land(self) -> Iterator[Batch]:
        tally = _Tally(_Processes.from_run(self), _Functions.from_codes(self.codes), _Files.from_run(self))
        for piece in self._pieces(tally):
            yield from tally.add(piece)
        yield from tally.files.batches()
        yield from tally.records()
        yield from self._ending(tally)

    def _pieces(self, tally: _Tally) -> Iterator[pl.DataFrame]:
        """Yield the calls; calls that may be repeated or nested are sorted and deduplicated."""
        file_counts = Counter(process for state in self.files for process in state.processes)
        shared = {process for process, count in file_counts.items() if count > 1}
        unsorted = {state.number for state in self.files if state.needs_order or not shared.isdisjoint(state.processes)}
        is_read = ~pl.col(INPUT).is_in(list(self.skipped))
        for part in (part for part, inputs in self.parts if inputs.isdisjoint(unsorted)):
            for piece in self._read(part).filter(is_read).iter_slices(traced.BATCH_ROWS):
                yield piece.with_columns(is_nested=pl.lit(False))
        mixed = [part for part, inputs in self.parts if not inputs.isdisjoint(unsorted)]
        if mixed:
            self._write(*mixed)
            tally.repeated_count += scan_parquet(mixed).select(pl.len()).collect().item()
            nesting = Nesting()
            for piece in self.engine.rows(IN_ORDER, mixed):
                tally.repeated_count -= piece.height
                yield nesting.mark(piece).filter(is_read)

    def _ending(self, tally: _Tally) -> Iterator[Batch]:
        first_us, last_us = self.edges_us()
        ended_at = _instant(last_us)
        yield from self._modules(tally, ended_at)
        is_read = next((state for state in self.files if state.started_as), None)
        command = _command(is_read)
        words = _words(command)
        version = is_read.started_as.get("version") if is_read else None
        yield traced.build_batch(
            TRACES,
            {
                "tracer": "dftracer",
                "tracer_version": str(version) if isinstance(version, int | str) else None,
                "application": PurePosixPath(words[0]).name if words else None,
                "command": command,
                "process_count": len(tally.processes.ranks),
                "started_at": _instant(first_us),
                "ended_at": ended_at,
                "duration_s": (last_us - first_us) / 1e6,
                "time_resolution_s": 1e-6,
            },
            ended_at,
        )

    def edges_us(self) -> tuple[int, int]:
        """Return the start of the run's first event and the end of its last event."""
        edges = [edge for state in self.files if (edge := state.edges_us) is not None]
        return min(first for first, _ in edges), max(last for _, last in edges)

    def _modules(self, tally: _Tally, ended_at: datetime) -> Iterator[Batch]:
        unended_count = len({process for state in self.files if not state.is_complete for process in state.processes})
        refused_count = self.refused_count + tally.untimely_count
        reasons = " ".join(self._reasons(tally, unended_count, refused_count))
        is_whole = not (unended_count or refused_count or self.skipped or tally.list_gaps())
        for module in sorted(tally.kinds):
            kinds = tally.kinds[module]
            yield traced.build_batch(
                TRACE_MODULES,
                {
                    "module": module,
                    "outcome": "sound" if is_whole else "partial",
                    "reason": reasons or None,
                    "is_partial": unended_count > 0,
                    "record_count": kinds.total(),
                    "counters": json.dumps(dict(sorted(kinds.items()))),
                },
                ended_at,
            )

    def _reasons(self, tally: _Tally, unended_count: int, refused_count: int) -> Iterator[str]:
        if unended_count:
            yield f"Of {len(tally.processes.ranks)} processes, {unended_count} have no end in the trace."
        if any(not state.is_count_sound for state in self.files):
            yield "The tracer's own count of events is not a number."
        if missing := sum(state.missing_count for state in self.files):
            yield f"{missing} of the written events are missing."
        if self.skipped:
            yield f"Skipped as unreadable: {len(self.skipped)} files."
        if refused_count:
            yield f"Refused: {refused_count} lines."
        yield from tally.list_gaps()
        if tally.repeated_count:
            yield (
                f"Repeated calls, counted once: {tally.repeated_count}. A fork inherits its parent's unwritten calls."
            )
        if tally.files.ambiguous_count:
            yield f"Of {tally.files.ambiguous_count} calls, the file is unknown: its hash is ambiguous."


def _instant(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _command(is_read: FileState | None) -> str | None:
    """Return the command line of the first process with a start event."""
    if is_read is None:
        return None
    key = is_read.started_as.get("cmd_hash", is_read.started_as.get("cmd"))
    return is_read.strings.get(str(key)) if key is not None else None


def _words(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError:
        return (command or "").split()


# ---- decoding


@dataclass(frozen=True, slots=True)
class _Processes:
    """Lookup tables of processes by code, with rank, host, and start and end if known."""

    ranks: dict[int, int]
    rank: pl.Series
    host: pl.Series
    first_us: pl.Series
    last_us: pl.Series
    zero_us: int
    #: number of processes without a host, if others have one
    unplaced_count: int

    @classmethod
    def from_run(cls, run: _Run) -> _Processes:
        processes = sorted({process for state in run.files for process in state.processes})
        ranks = _ranks(run, processes)
        hosts: dict[str, str] = {}
        started: dict[int, int] = {}
        ended: dict[int, int] = {}
        for state in run.files:
            hosts |= state.hosts
            for process, time_us in state.started.items():
                started[process] = min(started.get(process, time_us), time_us)
            for process, time_us in state.ended.items():
                ended[process] = max(ended.get(process, time_us), time_us)
        keys = list(run.codes.processes)
        names = [_host(key, hosts) for key, _ in keys]
        places = range(len(keys))
        return cls(
            ranks,
            pl.Series([ranks.get(place, -1) for place in places], dtype=pl.Int64),
            pl.Series(names, dtype=pl.String),
            pl.Series([started[p] - SLACK_US if p in started else 0 for p in places], dtype=pl.Int64),
            pl.Series([ended[p] + SLACK_US if p in ended else 1 << 62 for p in places], dtype=pl.Int64),
            run.edges_us()[0],
            sum(names[place] is None for place in processes) if any(host is not None for host, _ in keys) else 0,
        )


def _host(key: str | None, hosts: dict[str, str]) -> str | None:
    """Return a host's name from its key, which is the name or its hash."""
    return hosts.get(key.removeprefix(BY_HASH)) if key and key.startswith(BY_HASH) else key


def _ranks(run: _Run, processes: Sequence[int]) -> dict[int, int]:
    """Assign process numbers: the MPI rank if it is known and unique, else the next free number."""
    pids = {code: pid for (_, pid), code in run.codes.processes.items()}
    is_read: dict[int, int] = {}
    for state in run.files:
        for process in sorted(state.processes):
            if pids[process] in state.ranks:
                is_read.setdefault(process, state.ranks[pids[process]])
    ranks: dict[int, int] = {}
    used: set[int] = set()
    for process in processes:
        if process in is_read and is_read[process] not in used:
            ranks[process] = is_read[process]
            used.add(is_read[process])
    free = max(used, default=-1) + 1
    for process in processes:
        if process not in ranks:
            ranks[process] = free
            free += 1
    return ranks


@dataclass(frozen=True, slots=True)
class _Functions:
    """Lookup tables of functions by code, with module, operation and name."""

    module: pl.Series
    operation: pl.Series
    name: pl.Series
    #: whether each function transfers bytes
    moves: pl.Series

    @classmethod
    def from_codes(cls, codes: Codes) -> _Functions:
        functions = list(codes.functions)
        modules = [LAYERS[layer] if layer >= 0 else APP for layer, _, _ in functions]
        operations = pl.Series([operation for _, operation, _ in functions], dtype=pl.String)
        return cls(
            pl.Series(modules, dtype=pl.String),
            operations,
            pl.Series([name for _, _, name in functions], dtype=pl.String),
            operations.is_in(["read", "write"]),
        )


@dataclass(slots=True)
class _Files:
    """Lookup tables of files by code; files without a path share number 0."""

    number: pl.Series
    of_kernel: pl.Series
    is_ambiguous: pl.Series
    is_unnamed: pl.Series
    paths: list[str | None]
    ambiguous_count: int = 0
    unnamed_count: int = 0
    unknown: int = 0

    @classmethod
    def from_run(cls, run: _Run) -> _Files:
        anywhere = _merge_names(run)
        names_by_file = {state.number: state.names for state in run.files}
        numbers: dict[str | None, int] = {None: 0}
        found_numbers, ambiguous, unnamed = [], [], []
        for source, key in run.codes.files:
            path: str | None = key
            is_ambiguous = False
            if source is not None:
                names = names_by_file.get(source, {})
                path = names[key] if key in names else anywhere.get(key)
                is_ambiguous = path is None and (key in names or key in anywhere)
            found_numbers.append(numbers.setdefault(path, len(numbers)))
            ambiguous.append(is_ambiguous)
            unnamed.append(path is None and not is_ambiguous)
        paths = list(numbers)
        of_kernel = pl.Series(paths, dtype=pl.String).str.contains(_OF_KERNEL).fill_null(False)
        of_several, of_none = (pl.Series(flags, dtype=pl.Boolean) for flags in (ambiguous, unnamed))
        return cls(pl.Series(found_numbers, dtype=pl.Int64), of_kernel, of_several, of_none, paths)

    def numbers_of(self, files: pl.Series) -> pl.Series:
        """Look up file numbers by code, and count calls of unknown files."""
        if not len(self.number):
            self.unknown += len(files)
            return pl.zeros(len(files), pl.Int64, eager=True)
        self.ambiguous_count += int(self.is_ambiguous.gather(files).sum() or 0)
        self.unnamed_count += int(self.is_unnamed.gather(files).sum() or 0)
        numbers = self.number.gather(files).fill_null(0)
        self.unknown += int((numbers == 0).sum())
        return numbers

    def batches(self) -> Iterator[Batch]:
        """Yield the rows of `trace_files`, including number 0 if any call lacks a file."""
        yield from traced.build_file_batches(
            {path: number for number, path in enumerate(self.paths) if number or self.unknown}
        )


def _merge_names(run: _Run) -> dict[str, str | None]:
    """Merge the mappings of hashes to names from all files of the run; None if a hash has several names."""
    merged: dict[str, str | None] = {}
    for file in run.files:
        for key, name in file.names.items():
            merged[key] = name if merged.get(key, name) == name else None
    return merged


# ---- landing


@dataclass(slots=True)
class _Tally:
    """Counts and sums of the calls landed so far."""

    processes: _Processes
    functions: _Functions
    files: _Files
    numbers: traced.Numbering = field(default_factory=traced.Numbering)
    repeated_count: int = 0
    untimely_count: int = 0
    unsized_count: int = 0
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    parts: list[pl.DataFrame] = field(default_factory=list)

    def list_gaps(self) -> list[str]:
        """Describe the expected information that the trace lacks, one sentence each."""
        process_count, unplaced_count = len(self.processes.ranks), self.processes.unplaced_count
        gaps = (
            (unplaced_count, f"Of {process_count} processes, the host of {unplaced_count} is unknown."),
            (self.unsized_count, f"The bytes of {self.unsized_count} reads and writes are unknown."),
            (
                self.files.unnamed_count,
                f"Of {self.files.unnamed_count} calls, the file is unknown: its hash has no name.",
            ),
        )
        return [sentence for count, sentence in gaps if count]

    def add(self, piece: pl.DataFrame) -> Iterator[Batch]:
        """Yield the rows of calls; calls outside their process's lifetime are refused."""
        zero, process = self.processes.zero_us, piece["process"]
        placed = piece.with_columns(
            file_number=self.files.numbers_of(piece["file"]),
            start_s=(pl.col("ts") - zero) / 1e6,
            end_s=(pl.col("ts") + pl.col("dur") - zero) / 1e6,
            is_timely=(pl.col("ts") >= self.processes.first_us.gather(process))
            & (pl.col("ts") + pl.col("dur") <= self.processes.last_us.gather(process)),
        )
        if not placed["is_timely"].all():
            yield self._refuse_untimely(placed.filter(~pl.col("is_timely")))
            placed = placed.filter("is_timely")
        self._count(placed)
        moves = self.functions.moves.gather(placed["function"])
        yield from self._requests(placed.filter(moves))
        of_kernel = self.files.of_kernel.gather(placed["file_number"])
        yield from self._metadata(placed.filter(~(moves | of_kernel)))

    def _refuse_untimely(self, rows: pl.DataFrame) -> Batch:
        self.untimely_count += rows.height
        names = self.functions.name.gather(rows["function"])
        reason = pl.format("The call of {} is outside its process's start and end.", names)
        return reject_frame(build_refused_rows(rows, reason, "Trace again; the call is not counted."))

    def _count(self, rows: pl.DataFrame) -> None:
        """Aggregate calls with the same codes before the codes are decoded."""
        # in order, so that sums of floats are reproducible
        groups = rows.group_by("process", "function", "file_number", "is_nested", maintain_order=True)
        added = groups.agg(_aggregate_calls())
        counted = added.with_columns(
            module=self._modules(added),
            rank=self.processes.rank.gather(added["process"]),
            name=self.functions.name.gather(added["function"]),
            operation=self.functions.operation.gather(added["function"]),
        )
        named = counted.group_by("module", "name").agg(pl.col("count").sum()).sort("module", "name")
        for module, name, count in named.iter_rows():
            kinds = self.kinds.setdefault(module, Counter())
            kinds[name if name in kinds or len(kinds) < _MAX_KINDS else "other"] += count
        self.unsized_count += int(counted.filter(pl.col("operation").is_in(["read", "write"]))["unsized_count"].sum())
        self.parts.append(counted.filter(~pl.col("is_nested")).select(*_RECORD, "operation", *_SUMS))
        if len(self.parts) > 50:
            self.parts = [_merge_sums(self.parts)]

    def _modules(self, rows: pl.DataFrame) -> pl.Series:
        modules = self.functions.module.gather(rows["function"])
        of_kernel = self.files.of_kernel.gather(rows["file_number"])
        return modules.set(of_kernel, KERNEL) if of_kernel.any() else modules

    def records(self) -> Iterator[Batch]:
        """Yield the aggregated calls of each process to each file."""
        if self.parts:
            records = _merge_sums(self.parts).group_by(_RECORD).agg(traced.record_columns())
            for part in records.sort(_RECORD).iter_slices(traced.BATCH_ROWS):
                yield traced.build_batch(TRACE_RECORDS, part.to_dict())

    def _requests(self, rows: pl.DataFrame) -> Iterator[Batch]:
        requests = self._common_columns(rows).with_columns(
            rows.select("offset_bytes", "request_bytes"),
            host=self.processes.host.gather(rows["process"]),
            direction=self.functions.operation.gather(rows["function"]),
        )
        yield from self.numbers.rows(TRACE_REQUESTS, requests, is_async=False)

    def _metadata(self, rows: pl.DataFrame) -> Iterator[Batch]:
        operations = self._common_columns(rows).with_columns(
            operation=self.functions.operation.gather(rows["function"])
        )
        yield from self.numbers.rows(TRACE_METADATA, operations)

    def _common_columns(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Select the columns that requests and metadata calls share."""
        return rows.select(
            "file_number",
            "start_s",
            "end_s",
            "is_nested",
            module=self._modules(rows),
            rank=self.processes.rank.gather(rows["process"]),
        )


def _aggregate_calls() -> list[pl.Expr]:
    """Return the expressions that aggregate calls; a sum with an unknown part is NULL."""
    size = pl.col("request_bytes")
    return [
        pl.len().cast(pl.Int64).alias("count"),
        size.null_count().alias("unsized_count"),
        pl.when(size.null_count() == 0).then(size.sum()).alias("bytes"),
        (pl.col("end_s") - pl.col("start_s")).sum().alias("time_s"),
        pl.col("start_s").min(),
        pl.col("end_s").max(),
    ]


def _merge_sums(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Merge the aggregates of several parts."""
    moved = pl.col("bytes")
    return (
        pl.concat(parts)
        .group_by(*_RECORD, "operation")
        .agg(
            pl.col("count").sum(),
            pl.when(moved.null_count() == 0).then(moved.sum()).alias("bytes"),
            pl.col("time_s").sum(),
            pl.col("start_s").min(),
            pl.col("end_s").max(),
        )
    )
