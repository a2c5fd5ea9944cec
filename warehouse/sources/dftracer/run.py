"""What a DFTracer trace becomes: rows of its requests, of its metadata calls, of its files, and of the run itself."""

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
from iosig.warehouse.sources.dftracer.files import BY_HASH, SLACK_US, Codes, FileRead, Piece, sifted, taken
from iosig.warehouse.sources.dftracer.lines import BLOCK_BYTES, INPUT, blocks
from iosig.warehouse.sources.dftracer.nesting import IN_ORDER, Nesting
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.engine import Engine
from iosig.warehouse.sources.rows.rejects import refused_rows, reject_frame, rejects

#: functions of the program's own that say how many bytes they moved: another view of what the layers below move
APP = "APP"
#: files that the kernel makes up, or keeps in memory: no storage sees them
KERNEL = "KERNEL"
_OF_KERNEL = r"^/(?:dev|proc|sys)/"
#: calls that are kept in memory; those of longer traces are kept beside
_HELD_BYTES = 1 << 27
#: kinds of calls that a module's counters tell apart
_MOST_KINDS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECORD = ("module", "file_number", "rank")
#: what calls that do the same add up to
_SUMS = ("count", "bytes", "time_s", "start_s", "end_s")


def landed(files: Sequence[tuple[str, Path]]) -> Iterator[Batch]:
    """Yield all rows of a run, whose processes' files these are; one that cannot be read is left out and said to be.

    What the files hold is kept until all were seen, for times count from the earliest: of long traces beside them.

    Raises InputRefused where no file can be read, or none tells of a call.
    """
    with TemporaryDirectory(prefix="iosig-") as folder, Engine(Path(folder)) as engine:
        run = _Run(engine)
        yield from run.read(files)
        yield from run.land()


@dataclass(slots=True)
class _Run:
    """What is known of a run, as far as its files were read."""

    engine: Engine
    codes: Codes = field(default_factory=Codes)
    files: list[FileRead] = field(default_factory=list)
    #: where calls are kept, and of which inputs they are; those that are held are not written yet
    parts: list[tuple[Path, frozenset[int]]] = field(default_factory=list)
    held: dict[Path, pl.DataFrame] = field(default_factory=dict)
    held_bytes: int = 0
    left_out: dict[int, InputRefused] = field(default_factory=dict)
    refused_count: int = 0

    def read(self, files: Sequence[tuple[str, Path]]) -> Iterator[Batch]:
        """Read all files, small ones together; yields refused lines."""
        held: list[Piece] = []
        for number, (name, path) in enumerate(files):
            found = FileRead(name, number, is_alone=len(files) == 1)
            try:
                for block in blocks(path, found.ending):
                    held.append((found, block))
                    if sum(len(block.content) for _, block in held) >= BLOCK_BYTES:
                        yield from self._keep(held)
                        held = []
            except InputRefused as fault:
                if found.is_alone:
                    raise
                held = [piece for piece in held if piece[0] is not found]
                self.left_out[number] = fault
                yield rejects([(None, f"{name} is left out. {fault.reason}", fault.remedy, None)])
                continue
            self.files.append(found)
        yield from self._keep(held)
        if not any(found.processes for found in self.files):
            raise InputRefused("No line of it tells of an event that can be read.", "Trace again.")

    def _keep(self, held: Sequence[Piece]) -> Iterator[Batch]:
        held = [(found, block) for found, block in held if block.line_count]
        if not held:
            return
        found = sifted(held, self.engine)
        if not found.refused.is_empty():
            self.refused_count += found.refused.height
            yield reject_frame(found.refused)
        kept = taken(held, found.rows, self.codes)
        if not kept.is_empty():
            part = self.engine.scratch / f"{len(self.parts)}.parquet"
            self.parts.append((part, frozenset(piece[0].number for piece in held)))
            self.held[part] = kept
            self.held_bytes += int(kept.estimated_size())
            if self.held_bytes > _HELD_BYTES:
                self._write(part)

    def _write(self, *parts: Path) -> None:
        """Write those of the parts that are held."""
        for part, kept in [(part, self.held.pop(part)) for part in parts if part in self.held]:
            kept.write_parquet(part, compression="lz4", statistics=False)
            self.held_bytes -= int(kept.estimated_size())

    def _read(self, part: Path) -> pl.DataFrame:
        kept = self.held.pop(part, None)
        return read_parquet(part) if kept is None else kept

    def land(self) -> Iterator[Batch]:
        tally = _Tally(_Processes.of(self), _Functions.of(self.codes), _Files.of(self))
        for piece in self._pieces(tally):
            yield from tally.add(piece)
        yield from tally.files.batches()
        yield from tally.records()
        yield from self._ending(tally)

    def _pieces(self, tally: _Tally) -> Iterator[pl.DataFrame]:
        """Yield the kept rows; those that may be repeated, or lie within others, in order and once."""
        homes = Counter(process for found in self.files for process in found.processes)
        shared = {process for process, count in homes.items() if count > 1}
        unruly = {found.number for found in self.files if found.needs_order or not shared.isdisjoint(found.processes)}
        told = ~pl.col(INPUT).is_in(list(self.left_out))
        for part in (part for part, inputs in self.parts if inputs.isdisjoint(unruly)):
            for piece in self._read(part).filter(told).iter_slices(traced.BATCH_ROWS):
                yield piece.with_columns(is_nested=pl.lit(False))
        mixed = [part for part, inputs in self.parts if not inputs.isdisjoint(unruly)]
        if mixed:
            self._write(*mixed)
            tally.repeated_count += scan_parquet(mixed).select(pl.len()).collect().item()
            nesting = Nesting()
            for piece in self.engine.rows(IN_ORDER, mixed):
                tally.repeated_count -= piece.height
                yield nesting.marked(piece).filter(told)

    def _ending(self, tally: _Tally) -> Iterator[Batch]:
        first_us, last_us = self.edges_us()
        ended_at = _instant(last_us)
        yield from self._modules(tally, ended_at)
        told = next((found for found in self.files if found.started_as), None)
        command = _command(told)
        words = _words(command)
        version = told.started_as.get("version") if told else None
        yield traced.rows(
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
        """Return when the run's first event began and its last was over."""
        edges = [edge for found in self.files if (edge := found.edges_us) is not None]
        return min(first for first, _ in edges), max(last for _, last in edges)

    def _modules(self, tally: _Tally, ended_at: datetime) -> Iterator[Batch]:
        endless = len({process for found in self.files if not found.is_whole for process in found.processes})
        refused_count = self.refused_count + tally.untimely_count
        reasons = " ".join(self._reasons(tally, endless, refused_count))
        is_whole = not (endless or refused_count or self.left_out or tally.lacks())
        for module in sorted(tally.kinds):
            kinds = tally.kinds[module]
            yield traced.rows(
                TRACE_MODULES,
                {
                    "module": module,
                    "outcome": "sound" if is_whole else "partial",
                    "reason": reasons or None,
                    "is_partial": endless > 0,
                    "record_count": kinds.total(),
                    "counters": json.dumps(dict(sorted(kinds.items()))),
                },
                ended_at,
            )

    def _reasons(self, tally: _Tally, endless: int, refused_count: int) -> Iterator[str]:
        if endless:
            yield f"Of {len(tally.processes.ranks)} processes, {endless} have no end in the trace."
        if any(not found.is_count_sound for found in self.files):
            yield "The tracer's own count of events is no number."
        if missing := sum(found.missing_count for found in self.files):
            yield f"Of the events that were written, {missing} are missing."
        if self.left_out:
            yield f"Left out, for they cannot be read: {len(self.left_out)} files."
        if refused_count:
            yield f"Refused: {refused_count} lines."
        yield from tally.lacks()
        if tally.repeated_count:
            yield (
                f"Taken once, though they come several times: {tally.repeated_count} calls. A process that forks "
                "hands on what it has not yet written."
            )
        if tally.files.ambiguous_count:
            yield f"Of {tally.files.ambiguous_count} calls, the file is not known: its hash is that of several."


def _instant(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _command(told: FileRead | None) -> str | None:
    """Return the command line that the first process with a start was started by."""
    if told is None:
        return None
    given = told.started_as.get("cmd_hash", told.started_as.get("cmd"))
    return told.strings.get(str(given)) if given is not None else None


def _words(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError:
        return (command or "").split()


# ---- what codes stand for


@dataclass(frozen=True, slots=True)
class _Processes:
    """The processes by their codes: rank, host, and the time from their start to their end, as far as it is told."""

    ranks: dict[int, int]
    rank: pl.Series
    host: pl.Series
    first_us: pl.Series
    last_us: pl.Series
    zero_us: int
    #: of how many the host is not told, though hosts are
    unplaced_count: int

    @classmethod
    def of(cls, run: _Run) -> _Processes:
        seen = sorted({process for found in run.files for process in found.processes})
        ranks = _ranks(run, seen)
        hosts: dict[str, str] = {}
        started: dict[int, int] = {}
        ended: dict[int, int] = {}
        for found in run.files:
            hosts |= found.hosts
            for process, at in found.started.items():
                started[process] = min(started.get(process, at), at)
            for process, at in found.ended.items():
                ended[process] = max(ended.get(process, at), at)
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
            sum(names[place] is None for place in seen) if any(host is not None for host, _ in keys) else 0,
        )


def _host(key: str | None, hosts: dict[str, str]) -> str | None:
    """Return a host's name, which its key is, or has the hash of."""
    return hosts.get(key.removeprefix(BY_HASH)) if key and key.startswith(BY_HASH) else key


def _ranks(run: _Run, seen: Sequence[int]) -> dict[int, int]:
    """Return the number of each process: MPI's rank where it is told and no other has it, else the next free one."""
    pids = {code: pid for (_, pid), code in run.codes.processes.items()}
    told: dict[int, int] = {}
    for found in run.files:
        for process in sorted(found.processes):
            if pids[process] in found.ranks:
                told.setdefault(process, found.ranks[pids[process]])
    ranks: dict[int, int] = {}
    taken: set[int] = set()
    for process in seen:
        if process in told and told[process] not in taken:
            ranks[process] = told[process]
            taken.add(told[process])
    free = max(taken, default=-1) + 1
    for process in seen:
        if process not in ranks:
            ranks[process] = free
            free += 1
    return ranks


@dataclass(frozen=True, slots=True)
class _Functions:
    """The functions by their codes: module, what they do, and their names."""

    module: pl.Series
    deed: pl.Series
    name: pl.Series
    #: whether they move bytes
    moves: pl.Series

    @classmethod
    def of(cls, codes: Codes) -> _Functions:
        known = list(codes.functions)
        modules = [LAYERS[layer] if layer >= 0 else APP for layer, _, _ in known]
        deeds = pl.Series([deed for _, deed, _ in known], dtype=pl.String)
        return cls(
            pl.Series(modules, dtype=pl.String),
            deeds,
            pl.Series([name for _, _, name in known], dtype=pl.String),
            deeds.is_in(["read", "write"]),
        )


@dataclass(slots=True)
class _Files:
    """The files by their codes: each path once; one number for all whose path is not known."""

    number: pl.Series
    of_kernel: pl.Series
    is_ambiguous: pl.Series
    is_unnamed: pl.Series
    paths: list[str | None]
    ambiguous_count: int = 0
    unnamed_count: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, run: _Run) -> _Files:
        anywhere = _names_anywhere(run)
        own = {found.number: found.names for found in run.files}
        numbers: dict[str | None, int] = {None: 0}
        found_numbers, ambiguous, unnamed = [], [], []
        for source, key in run.codes.files:
            path: str | None = key
            is_ambiguous = False
            if source is not None:
                names = own.get(source, {})
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
        """Return the files' numbers by their codes, and count the calls of which the file is not known."""
        if not len(self.number):
            self.unknown += len(files)
            return pl.zeros(len(files), pl.Int64, eager=True)
        self.ambiguous_count += int(self.is_ambiguous.gather(files).sum() or 0)
        self.unnamed_count += int(self.is_unnamed.gather(files).sum() or 0)
        numbers = self.number.gather(files).fill_null(0)
        self.unknown += int((numbers == 0).sum())
        return numbers

    def batches(self) -> Iterator[Batch]:
        """Yield the rows of the files."""
        yield from traced.files({path: number for number, path in enumerate(self.paths) if number or self.unknown})


def _names_anywhere(run: _Run) -> dict[str, str | None]:
    """Return names by hashes over all files of the run; None where a hash has several."""
    found: dict[str, str | None] = {}
    for file in run.files:
        for key, name in file.names.items():
            found[key] = name if found.get(key, name) == name else None
    return found


# ---- landing


@dataclass(slots=True)
class _Tally:
    """What was landed so far, and what the calls add up to."""

    processes: _Processes
    functions: _Functions
    files: _Files
    numbers: traced.Numbering = field(default_factory=traced.Numbering)
    repeated_count: int = 0
    untimely_count: int = 0
    unsized_count: int = 0
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    parts: list[pl.DataFrame] = field(default_factory=list)

    def lacks(self) -> list[str]:
        """Return what the trace does not tell, though it should."""
        process_count, unplaced_count = len(self.processes.ranks), self.processes.unplaced_count
        said = (
            (unplaced_count, f"Of {process_count} processes, the host of {unplaced_count} is not told."),
            (self.unsized_count, f"Of {self.unsized_count} reads and writes, how many bytes moved is not told."),
            (
                self.files.unnamed_count,
                f"Of {self.files.unnamed_count} calls, the file is not known: its hash is that of none.",
            ),
        )
        return [sentence for count, sentence in said if count]

    def add(self, piece: pl.DataFrame) -> Iterator[Batch]:
        """Yield what calls become; one outside of its process's life is refused."""
        zero, process = self.processes.zero_us, piece["process"]
        placed = piece.with_columns(
            file_number=self.files.numbers_of(piece["file"]),
            start_s=(pl.col("ts") - zero) / 1e6,
            end_s=(pl.col("ts") + pl.col("dur") - zero) / 1e6,
            is_timely=(pl.col("ts") >= self.processes.first_us.gather(process))
            & (pl.col("ts") + pl.col("dur") <= self.processes.last_us.gather(process)),
        )
        if not placed["is_timely"].all():
            yield self._untimely(placed.filter(~pl.col("is_timely")))
            placed = placed.filter("is_timely")
        self._count(placed)
        moves = self.functions.moves.gather(placed["function"])
        yield from self._requests(placed.filter(moves))
        of_kernel = self.files.of_kernel.gather(placed["file_number"])
        yield from self._metadata(placed.filter(~(moves | of_kernel)))

    def _untimely(self, rows: pl.DataFrame) -> Batch:
        self.untimely_count += rows.height
        names = self.functions.name.gather(rows["function"])
        reason = pl.format("The call of {} lies outside of its process's own start and end.", names)
        return reject_frame(refused_rows(rows, reason, "Trace again; the call is not counted."))

    def _count(self, rows: pl.DataFrame) -> None:
        """Count calls: those that have all codes alike are added up before what the codes stand for is looked up."""
        # in order, so that sums of seconds are the same each time
        alike = rows.group_by("process", "function", "file_number", "is_nested", maintain_order=True)
        added = alike.agg(_added_up())
        counted = added.with_columns(
            module=self._modules(added),
            rank=self.processes.rank.gather(added["process"]),
            name=self.functions.name.gather(added["function"]),
            deed=self.functions.deed.gather(added["function"]),
        )
        named = counted.group_by("module", "name").agg(pl.col("count").sum()).sort("module", "name")
        for module, name, count in named.iter_rows():
            kinds = self.kinds.setdefault(module, Counter())
            kinds[name if name in kinds or len(kinds) < _MOST_KINDS else "other"] += count
        self.unsized_count += int(counted.filter(pl.col("deed").is_in(["read", "write"]))["unsized_count"].sum())
        self.parts.append(counted.filter(~pl.col("is_nested")).select(*_RECORD, "deed", *_SUMS))
        if len(self.parts) > 50:
            self.parts = [_together(self.parts)]

    def _modules(self, rows: pl.DataFrame) -> pl.Series:
        modules = self.functions.module.gather(rows["function"])
        of_kernel = self.files.of_kernel.gather(rows["file_number"])
        return modules.set(of_kernel, KERNEL) if of_kernel.any() else modules

    def records(self) -> Iterator[Batch]:
        """Yield what each process did to each file."""
        if self.parts:
            records = _together(self.parts).group_by(_RECORD).agg(traced.record_columns())
            for part in records.sort(_RECORD).iter_slices(traced.BATCH_ROWS):
                yield traced.rows(TRACE_RECORDS, part.to_dict())

    def _requests(self, rows: pl.DataFrame) -> Iterator[Batch]:
        known = self._told(rows).with_columns(
            rows.select("offset_bytes", "request_bytes"),
            host=self.processes.host.gather(rows["process"]),
            direction=self.functions.deed.gather(rows["function"]),
        )
        yield from self.numbers.rows(TRACE_REQUESTS, known, is_async=False)

    def _metadata(self, rows: pl.DataFrame) -> Iterator[Batch]:
        known = self._told(rows).with_columns(operation=self.functions.deed.gather(rows["function"]))
        yield from self.numbers.rows(TRACE_METADATA, known)

    def _told(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return what is told of any call."""
        return rows.select(
            "file_number",
            "start_s",
            "end_s",
            "is_nested",
            module=self._modules(rows),
            rank=self.processes.rank.gather(rows["process"]),
        )


def _added_up() -> list[pl.Expr]:
    """Return what calls that do the same add up to; a sum with an unknown part is not known."""
    size = pl.col("request_bytes")
    return [
        pl.len().cast(pl.Int64).alias("count"),
        size.null_count().alias("unsized_count"),
        pl.when(size.null_count() == 0).then(size.sum()).alias("bytes"),
        (pl.col("end_s") - pl.col("start_s")).sum().alias("time_s"),
        pl.col("start_s").min(),
        pl.col("end_s").max(),
    ]


def _together(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up what parts of the calls add up to."""
    moved = pl.col("bytes")
    return (
        pl.concat(parts)
        .group_by(*_RECORD, "deed")
        .agg(
            pl.col("count").sum(),
            pl.when(moved.null_count() == 0).then(moved.sum()).alias("bytes"),
            pl.col("time_s").sum(),
            pl.col("start_s").min(),
            pl.col("end_s").max(),
        )
    )
