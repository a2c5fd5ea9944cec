"""Find and decode the traced programs of a folder: one Recorder trace per rank count."""

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
#: preferred form of a trace in several forms: the raw one is complete
_FIRST = "raw"
_LAYOUT = "Lay them out as PROGRAM/RANKS/, with a Recorder trace or an archive of it in each: ior/8/raw.tar.zst."


@dataclass(frozen=True, slots=True)
class Program:
    """A program traced at several rank counts, with the path of each trace in ascending order."""

    name: str
    paths: tuple[tuple[int, Path], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The decoded calls of one traced run, and the size of its trace.

    `select_calls` replaces addresses and statuses by %p and optionally drops nested calls.
    """

    process_count: int
    ranks: tuple[SignedRank, ...]
    traced_bytes: int

    @property
    def has_nested(self) -> bool:
        """Whether any call was made by another call rather than by the program."""
        return any(signatures.select_outer_calls(rank).order.size < rank.order.size for rank in self.ranks)

    def select_calls(self, *, has_nested: bool) -> tuple[SignedRank, ...]:
        """Return the calls in the form that extrapolation uses."""
        ranks = self.ranks if has_nested else [signatures.select_outer_calls(rank) for rank in self.ranks]
        return tuple(replace(rank, signatures=mask_addresses(rank.signatures)) for rank in ranks)


def find_programs(root: Path) -> tuple[Program, ...]:
    """Return the programs of a folder, sorted by name; raises InputRefused if there are none."""
    programs = sorted(_scan_folders(root), key=lambda program: program.name)
    if not programs:
        raise InputRefused(f"{root} has no Recorder traces by rank count.", _LAYOUT)
    return tuple(programs)


def _scan_folders(root: Path) -> Iterator[Program]:
    """Yield each folder that has sub-folders named by rank counts with a trace each."""
    visited: set[str] = set()
    for folder, below, _ in os.walk(root, followlinks=True):
        # symbolic links may form cycles
        if os.path.realpath(folder) in visited:
            below.clear()
            continue
        visited.add(os.path.realpath(folder))
        counts = sorted((int(name), name) for name in below if _RANK_COUNT.fullmatch(name))
        traces = [(count, path) for count, name in counts if (path := _find_trace(Path(folder, name))) is not None]
        if traces:
            below.clear()
            relative_path = Path(folder).relative_to(root).as_posix()
            yield Program(root.resolve().name if relative_path == "." else relative_path, tuple(traces))


def _find_trace(folder: Path) -> Path | None:
    """Return the path of a rank count's trace: the folder itself, a sub-folder, or an archive."""
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


def decode_runs(program: Program) -> tuple[Run, ...]:
    """Decode the runs of a program; raises InputRefused if a trace is incomplete."""
    return tuple(_decode_run(program.name, count, path) for count, path in program.paths)


def _decode_run(name: str, count: int, path: Path) -> Run:
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
