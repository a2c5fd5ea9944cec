"""Put Recorder traces into folders and archives, and read them completely, as landing does."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.recorder import files as recorder_files, source
from tests.naive.recorder_traces import USER, Call
from tests.warehouse.sources import batch_reading


def put(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def tarred(files: Mapping[str, bytes | str], format_: int = tarfile.USTAR_FORMAT) -> bytes:
    """Return an archive of files; names may contain folders."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format_) as archive:
        for name, content in files.items():
            packed = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(packed)
            archive.addfile(info, io.BytesIO(packed))
    return out.getvalue()


def tables_of(path: Path) -> batch_reading.Tables:
    """Return all rows of a trace by table."""
    return batch_reading.tables_of(source.read(path, Reading()))


def calls_of(path: Path) -> list[tuple[int, int, int, str, str, str, float, float]]:
    """Return only the calls of a trace with readable ranks, which is faster than all tables."""
    with recorder_files.open_trace(path) as (form, files):
        run = source.get_opener(form)(files)
        frames_ = [run.decode(rank).calls for rank in run.ranks]
    return pl.concat(frames_).drop("trace_id").rows()


def expected(rank: int, calls: Sequence[Call]) -> list[tuple[int, int, int, str, str, str, float, float]]:
    """Return the expected rows of a rank's calls."""
    from tests.naive.recorder_traces import FUNCTIONS, TICKS_PER_S

    modules = ("POSIX", "POSIX", "POSIX", "POSIX", "MPIIO", "MPI", "MPIIO", "HDF5")
    rows = []
    for number, call in enumerate(calls):
        is_user = call.function == USER
        module = "FTRACE" if is_user else modules[call.function]
        name = call.arguments[1] if is_user else FUNCTIONS[call.function]
        shown = "" if is_user else " ".join(call.arguments)
        times = call.began / TICKS_PER_S, call.ceased / TICKS_PER_S
        rows.append((rank, number, call.level, module, name, shown, *times))
    return rows


def made_up(rank_count: int, seed: int = 0, most: int = 60) -> list[list[Call]]:
    """Return the calls of a repetitive program by rank, with all kinds of arguments."""
    chance = random.Random(seed)
    return [_rank(chance, rank, chance.randrange(most)) for rank in range(rank_count)]


def _rank(chance: random.Random, rank: int, count: int) -> list[Call]:
    kinds = [
        (0, 0, ("f", "66", "420")),
        (2, 1, (f"/scratch/däta_{rank}", "%p", "131072")),
        (3, 1, ("", "%p", "8", "")),
        (5, 0, ()),
        (5, 0, ("???",)),
        (7, 2, ("",)),
        (USER, 0, ("0x7f", "solve")),
        (6, 0, ("0-0", str(chance.randrange(4)), "%p", "[33808_0]")),
    ]
    now, found = 0, []
    motif = [chance.choice(kinds) for _ in range(4)]
    for index in range(count):
        function, level, arguments = motif[index % 4] if chance.random() < 0.9 else chance.choice(kinds)
        now += chance.choice([0, 1, 10, 4_000_000_000])
        call = Call(function, level, arguments, now, now + chance.choice([0, 7, 250_000_000]))
        # a process makes a call that takes time only once at a time
        if call.ceased == now or call not in found:
            found.append(call)
    return found
