"""Programs to replay: written as lines of recorder2text, and executed by a single process."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from iosig.traces.replay.barriers import Gates, SharedCounters
from iosig.traces.replay.execution import Done, Executor, run
from iosig.traces.replay.files import Uses, uses
from iosig.traces.replay.libc import Calls, content
from iosig.traces.replay.ordering import Order, choose_order, visits
from iosig.traces.replay.planning import prepare
from iosig.traces.replay.processes import leads
from iosig.traces.replay.sandbox import Sandbox
from iosig.traces.replay.scripts import ReplayMode, Written, compile_script
from iosig.traces.replay.turns import advance

MODULES = {"POSIX": 0, "MPIIO": 1, "MPI": 2, "HDF5": 3, "FTRACE": 4}
Line = tuple[str, str]


def module_of(function: str) -> str:
    if function.startswith("MPI_File_"):
        return "MPIIO"
    if function.startswith("H5"):
        return "HDF5"
    return "MPI" if function.startswith("MPI_") else "FTRACE" if function == "main" else "POSIX"


def write_trace(folder: Path, programs: Sequence[Sequence[Line]], gap_s: float = 0.001) -> Path:
    """Write (function, arguments) of each rank as text, with one call of half a gap after each gap."""
    folder.mkdir(parents=True)
    for rank, lines in enumerate(programs):
        text = "".join(
            f"{(place + 1) * gap_s:.7f} {(place + 1.5) * gap_s:.7f} {function} 0 {kind} ( {arguments} )\n"
            for place, (function, arguments) in enumerate(lines)
            for kind in [MODULES[module_of(function)]]
        )
        (folder / f"{rank}.txt").write_text(text)
    return folder


def calls_of(lines: Sequence[Line], levels: Mapping[int, int] | None = None) -> pl.DataFrame:
    """Return calls as `traces.calls_of` does."""
    rows = [
        (place, place, (levels or {}).get(place, 0), module_of(function), function, arguments, place * 1.0, place + 0.5)
        for place, (function, arguments) in enumerate(lines)
    ]
    names = ("call", "node", "level", "module", "function", "arguments", "start_s", "end_s")
    types = (pl.Int64, pl.Int32, pl.Int64, pl.String, pl.String, pl.String, pl.Float64, pl.Float64)
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


def scripts_of(programs: Sequence[Sequence[Line]], mode: ReplayMode = "posix", spent_s: float = 0.0) -> list[Written]:
    return [
        compile_script(rank, calls_of(lines), np.full((len(lines), 3), spent_s), mode)
        for rank, lines in enumerate(programs)
    ]


def used_by(made: Sequence[Written]) -> Uses:
    """Return the file accesses of all ranks."""
    found = Uses()
    for one in made:
        found.add(uses(one))
    return found


def executed(
    folder: Path, programs: Sequence[Sequence[Line]], *, spent_s: float = 0.0
) -> tuple[list[Done], Order, Uses]:
    """Replay programs in this process, rank by rank, below an existing folder; timed if any time is spent."""
    made = scripts_of(programs, spent_s=spent_s)
    order = choose_order(visits(one.script for one in made), len(programs))
    used = used_by(made)
    prepare(used, folder, lambda _: None)
    names = tuple(order.members)
    board = SharedCounters(folder.parent / f"{folder.name}.board", 1, len(names)).make().open()
    members = [order.members[name] for name in names]
    gates = Gates(board, multiprocessing.Lock(), [multiprocessing.Semaphore(0)], 0, members, [(0,)] * len(names))
    sandbox, memory, done, steps = Sandbox(folder), content(1 << 20), [], []
    for one in made:
        script = one.script
        done.append(Done(script.rank))
        executor = Executor(script, Calls(sandbox, memory), leads(order, script))
        synced = {number: names.index(name) for number, name in enumerate(script.communicators) if name in names}
        steps.append(run(executor, is_timed=spent_s > 0, synced=synced, result=done[-1], start_s=time.monotonic()))
    try:
        advance(steps, gates, lambda count, until: None)
    finally:
        sandbox.close()
    return done, order, used
