"""The traced programs of a folder: one Recorder trace for each rank count, found and decoded once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from iosig.transforms.traces.templates import mask_addresses
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.recorder import files as recorder_files, signatures
from iosig.warehouse.sources.recorder.signatures import SignedRank

_RANK_COUNT = re.compile(r"[1-9][0-9]{0,8}")
#: where there are several forms of a trace, the raw one has all there is
_FIRST = "raw"
_LAYOUT = "Lay them out as PROGRAM/RANKS/, with a Recorder trace or an archive of it in each: ior/8/raw.tar.zst."


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was traced at several rank counts, and where the traces lie, in the order of rank counts."""

    name: str
    paths: tuple[tuple[int, Path], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One traced run: all calls as they were logged, and how many bytes the trace has.

    Of `comparable` calls, addresses and statuses stand as %p; those without nested ones are the program's own.
    """

    process_count: int
    ranks: tuple[SignedRank, ...]
    traced_bytes: int

    @property
    def has_nested(self) -> bool:
        """Whether there are any calls but those that the program made itself."""
        return any(signatures.select_outer_calls(rank).order.size < rank.order.size for rank in self.ranks)

    def comparable(self, *, has_nested: bool) -> tuple[SignedRank, ...]:
        """Return the calls as extrapolation takes them."""
        kept = self.ranks if has_nested else [signatures.select_outer_calls(rank) for rank in self.ranks]
        return tuple(replace(rank, signatures=mask_addresses(rank.signatures)) for rank in kept)


def programs(root: Path) -> tuple[Program, ...]:
    """Return the programs of a folder, by name; raise InputRefused where it has none."""
    found = sorted(_found(root), key=lambda program: program.name)
    if not found:
        raise InputRefused(f"{root} has no Recorder traces by rank count.", _LAYOUT)
    return tuple(found)


def _found(root: Path) -> Iterator[Program]:
    """Yield each folder that has folders named by a rank count with a trace in each."""
    seen: set[str] = set()
    for folder, below, _ in os.walk(root, followlinks=True):
        # links may lead back to where they are
        if os.path.realpath(folder) in seen:
            below.clear()
            continue
        seen.add(os.path.realpath(folder))
        counts = sorted((int(name), name) for name in below if _RANK_COUNT.fullmatch(name))
        traces = [(count, path) for count, name in counts if (path := _trace_in(Path(folder, name))) is not None]
        if traces:
            below.clear()
            own = Path(folder).relative_to(root).as_posix()
            yield Program(root.resolve().name if own == "." else own, tuple(traces))


def _trace_in(folder: Path) -> Path | None:
    """Return where the trace of a rank count lies: in the folder itself, in one below it, or in an archive."""
    if recorder_files.list_trace_files(folder):
        return folder
    below = sorted(folder.iterdir(), key=lambda path: (not path.name.startswith(_FIRST), path.name))
    return next((path for path in below if _is_trace(path)), None)


def _is_trace(path: Path) -> bool:
    if path.is_dir():
        return bool(recorder_files.list_trace_files(path))
    try:
        return path.is_file() and recorder_files.is_in_archive(read_head(path).start)
    except (InputRefused, OSError):
        return False


def runs(program: Program) -> tuple[Run, ...]:
    """Return the runs of a program, decoded; raise InputRefused where one cannot be read wholly."""
    return tuple(_run(program.name, count, path) for count, path in program.paths)


def _run(name: str, count: int, path: Path) -> Run:
    try:
        with recorder_files.open_trace(path) as (_, files):
            traced_bytes = sum(files.names.values())
        with signatures.open_signed_run(path) as run:
            process_count = run.process_count
            ranks = tuple(run.decode(rank) for rank in run.ranks)
    except InputRefused as fault:
        raise InputRefused(f"{name} at {count} ranks: {fault.reason}", fault.remedy) from fault
    if process_count != count:
        raise InputRefused(f"{path} is a trace of {process_count} ranks, not of {count}.", _LAYOUT)
    return Run(count, ranks, traced_bytes)
