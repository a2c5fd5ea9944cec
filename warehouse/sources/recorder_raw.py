"""Raw Recorder 2.5 traces: metadata, call signatures (`.cst`), grammars (`.cfg`) and time stamps (`.ts`).

All numbers are little-endian. Time stamps are pairs of 32-bit ticks, each relative to the start of the rank's
call before: a gap of more than 2^32 ticks (429 s) between two calls is short by a multiple of it, and nothing in
the trace tells.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from warehouse.errors import InputRefused
from warehouse.sources.recorder_calls import Rank, Run, calls, check_count
from warehouse.sources.recorder_files import Files
from warehouse.sources.recorder_grammar import unfolded

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

#: functions of the program itself, which the compiler made known; their name is the second argument
_USER_FUNCTION = 255
_HEADER = struct.Struct("<i4xddiii4x")
_ENTRY_BYTES = 16
_KEY_BYTES = 15
#: no Recorder trace has calls of a year; it guards the calendar against damage
_LAST_START_S = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
_REMEDY = "Fetch the trace anew, with all of its files."


@dataclass(frozen=True, slots=True)
class Metadata:
    """What `recorder.mt` says: ranks, start, seconds of a tick, and the functions' names by their number."""

    process_count: int
    started_at: datetime
    tick_s: float
    is_merged: bool
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signatures:
    """The distinct calls of a rank, or of all where they were merged, by their number: what they are, how often.

    `rows` has the columns level, module, function and arguments.
    """

    rows: pl.DataFrame
    counts: Longs


def opened(files: Files) -> Run:
    """Return what the trace says of the run, and how to decode one of its ranks."""
    version = _version(files)
    metadata = read_metadata(files.read("recorder.mt"))
    kind = "ts" if metadata.is_merged else "cst|cfg|ts"
    named = {int(name.split(".")[0]) for name in files.names if re.fullmatch(rf"[0-9]+\.(?:{kind})", name)}
    decode = _merged(files, metadata) if metadata.is_merged else _separate(files, metadata)
    return Run(version, metadata.process_count, metadata.started_at, metadata.tick_s, tuple(sorted(named)), decode)


def _version(files: Files) -> str:
    if "VERSION" not in files.names:
        raise InputRefused("The Recorder trace has no file VERSION.", "Fetch it as well: the formats differ.")
    version = files.read("VERSION")[:64].decode("ascii", "replace").strip()
    if not re.fullmatch(r"2\.5\.[0-9]+", version):
        raise InputRefused(
            f"The Recorder trace is of version {version!r}; 2.5 can be read.",
            "Convert it with the recorder2text of its own version, and land the text.",
        )
    return version


def read_metadata(content: bytes) -> Metadata:
    """Return what `recorder.mt` says, or refuse it where it cannot be."""
    if len(content) < _HEADER.size:
        raise InputRefused("recorder.mt breaks off.", _REMEDY)
    process_count, start_s, tick_s, _, packing, is_merged = _HEADER.unpack_from(content)
    if process_count < 1 or not 0 < start_s < _LAST_START_S or not 1e-12 < tick_s <= 1 or is_merged not in (0, 1):
        raise InputRefused("recorder.mt is damaged, or of another version than VERSION says.", _REMEDY)
    if packing:
        raise InputRefused("The trace's time stamps are compressed.", "Convert it with recorder2text, land the text.")
    names = content[_HEADER.size :].decode("ascii", "replace").split("\n")[:-1]
    if not 1 <= len(names) <= _USER_FUNCTION or not all(re.fullmatch(r"\w+", name) for name in names):
        raise InputRefused("recorder.mt does not list the functions by their names.", _REMEDY)
    return Metadata(process_count, datetime.fromtimestamp(start_s, UTC), tick_s, bool(is_merged), tuple(names))


def _separate(files: Files, metadata: Metadata) -> Callable[[int], Rank]:
    def decode(rank: int) -> Rank:
        known = read_signatures(files.read(f"{rank}.cst"), metadata.functions, rank)
        return _decoded(files, metadata, rank, known, rank)

    return decode


def _merged(files: Files, metadata: Metadata) -> Callable[[int], Rank]:
    """Return how to decode a rank of a trace that has one list of signatures, and each grammar once."""
    content = files.read("ug.mt") if "ug.mt" in files.names else b""
    grammars = np.frombuffer(content, "<i4", count=len(content) // 4)
    is_whole = len(content) == 4 * (metadata.process_count + 1)
    if not is_whole or grammars[:-1].min() < 0 or grammars[:-1].max() >= grammars[-1]:
        raise InputRefused("ug.mt, which says whose grammar is whose, is missing or damaged.", _REMEDY)
    known = read_signatures(files.read("0.cst"), metadata.functions, None)

    def decode(rank: int) -> Rank:
        # recorder2text prints the times of rank 0 for all ranks of such a trace; each has its own.
        return _decoded(files, metadata, rank, known, int(grammars[rank]))

    return decode


def _decoded(files: Files, metadata: Metadata, rank: int, known: Signatures, grammar: int) -> Rank:
    began_s, ceased_s = read_times(files.read(f"{rank}.ts"), metadata.tick_s)
    order = unfolded(files.read(f"{grammar}.cfg"), began_s.size, known.rows.height)
    if not metadata.is_merged and not np.array_equal(np.bincount(order, minlength=known.rows.height), known.counts):
        raise InputRefused("The grammar does not have each call as often as the signatures say.", _REMEDY)
    return Rank(calls(rank, known.rows[order].to_dict() | {"began_s": began_s, "ceased_s": ceased_s}))


def read_times(content: bytes, tick_s: float) -> tuple[Reals, Reals]:
    """Return when each call of a rank began and was over, in seconds."""
    if len(content) % 8:
        raise InputRefused("The time stamps break off.", _REMEDY)
    check_count(len(content) // 8)
    stamps = np.frombuffer(content, "<u4").reshape(-1, 2)
    began = np.cumsum(stamps[:, 0], dtype=np.int64)
    ceased = stamps[:, 1].astype(np.int64)
    ceased[1:] += began[:-1]
    return _seconds(began, tick_s), _seconds(ceased, tick_s)


def _seconds(ticks: Longs, tick_s: float) -> Reals:
    # Divided by a whole number, ticks come out as the decimals that recorder2text prints.
    per_s = round(1 / tick_s)
    if math.isclose(per_s * tick_s, 1, rel_tol=1e-12):
        return ticks / per_s
    return np.multiply(ticks, tick_s, dtype=np.float64)


def read_signatures(content: bytes, functions: tuple[str, ...], rank: int | None) -> Signatures:
    """Return the signatures in the order of their numbers; those of one rank must all be of that rank."""
    starts = _entry_starts(content)
    data = np.frombuffer(content, np.uint8)
    if rank is not None and (_numbers(data, starts + 4) != rank).any():
        raise InputRefused("The call signatures are of another rank than the file's name says.", _REMEDY)
    numbers = _numbers(data, starts)
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(numbers[order], np.arange(starts.size)):
        raise InputRefused("The call signatures are not numbered one by one.", _REMEDY)
    arguments = _arguments(data, starts)[order]
    starts = starts[order]
    rows = pl.DataFrame({"index": data[starts + 24], "level": data[starts + 25], "arguments": arguments})
    return Signatures(_named(rows, functions), _numbers(data, starts + 12) & 0xFFFFFFFF)


def _entry_starts(content: bytes) -> Longs:
    """Return where each signature begins: only its length tells where the next one does."""
    length_at = struct.Struct("<i").unpack_from
    claimed = length_at(content)[0] if len(content) >= 4 else -1
    if not 0 <= claimed <= len(content) // (_ENTRY_BYTES + _KEY_BYTES):
        raise InputRefused("The list of call signatures breaks off.", _REMEDY)
    starts = np.empty(claimed, np.int64)
    place, last = 4, len(content) - _ENTRY_BYTES - _KEY_BYTES
    for index in range(claimed):
        if place > last:
            raise InputRefused("The list of call signatures breaks off.", _REMEDY)
        starts[index] = place
        length = length_at(content, place + 8)[0]
        if length < _KEY_BYTES:
            raise InputRefused("A call signature is shorter than any can be.", _REMEDY)
        place += _ENTRY_BYTES + length
    if place != len(content):
        raise InputRefused("The list of call signatures breaks off, or has something behind it.", _REMEDY)
    return starts


def _numbers(data: Bytes, at: Longs) -> Longs:
    """Return the 32-bit numbers that stand at these places."""
    parts = np.stack([data[at + place] for place in range(4)], axis=-1)
    return np.ascontiguousarray(parts).view("<i4").reshape(-1).astype(np.int64)


def _arguments(data: Bytes, starts: Longs) -> pl.Series:
    """Return each signature's arguments, separated by spaces; each argument is followed by one in the trace."""
    lengths = _numbers(data, starts + 27)
    if (lengths != _numbers(data, starts + 8) - _KEY_BYTES).any():
        raise InputRefused("A call signature's arguments are not as long as it says.", _REMEDY)
    begins, held = starts + _ENTRY_BYTES + _KEY_BYTES, lengths > 0
    inside = np.zeros(data.size + 1, np.int8)
    inside[begins[held]] = 1
    inside[(begins + lengths)[held]] = -1
    text = data[np.cumsum(inside[:-1], dtype=np.int8).view(np.bool_)]
    ends = np.cumsum(lengths)
    spaces = np.concatenate(([0], np.cumsum(text == ord(" "))))
    is_counted = spaces[ends] - spaces[ends - lengths] == data[starts + 26]
    # What the tracer logs are strings of C: there is no NUL in them.
    if not is_counted.all() or (text[ends[held] - 1] != ord(" ")).any() or not text.all():
        raise InputRefused("A call signature does not have as many arguments as it says.", _REMEDY)
    return _texts(text.tobytes(), ends).str.strip_suffix(" ")


def _texts(content: bytes, ends: Longs) -> pl.Series:
    r"""Return the pieces of a text that end at these places; bytes that are no UTF-8 show as `\x..`."""
    starts = np.concatenate(([0], ends))
    try:
        # A piece ends with a space: no character can lie across two of them.
        content.decode("utf-8")
    except UnicodeDecodeError:
        edges = starts.tolist()
        pieces = (content[begin:end] for begin, end in pairwise(edges))
        return pl.Series([piece.decode("utf-8", "backslashreplace") for piece in pieces], dtype=pl.String)
    array = pa.LargeStringArray.from_buffers(ends.size, pa.py_buffer(starts), pa.py_buffer(content))
    return pl.Series(pl.from_arrow(array))


def _named(rows: pl.DataFrame, functions: tuple[str, ...]) -> pl.DataFrame:
    """Return level, module, function and arguments of signatures whose functions are numbers, their `index`."""
    listed = pl.DataFrame({"index": np.arange(len(functions), dtype=np.uint8), "function": functions})
    found = rows.join(listed.with_columns(module=_modules(functions)), on="index", how="left", maintain_order="left")
    if found["function"].null_count():
        # The program's own functions have the address and the name as arguments; recorder2text prints neither.
        is_own = pl.col("index") == _USER_FUNCTION
        name = pl.col("arguments").str.split(" ").list.get(1, null_on_oob=True)
        found = found.with_columns(
            function=pl.when(is_own).then(name).otherwise("function"),
            module=pl.when(is_own).then(pl.lit("FTRACE")).otherwise("module"),
            arguments=pl.when(is_own).then(pl.lit("")).otherwise("arguments"),
        )
    if found["function"].null_count():
        raise InputRefused("A call signature is of a function that the trace does not name.", _REMEDY)
    return found.select("level", "module", "function", "arguments")


def _modules(functions: tuple[str, ...]) -> pl.Series:
    """Return each function's module: POSIX functions are listed first, those of MPI next, HDF5's last."""
    mpi = next((index for index, name in enumerate(functions) if "MPI" in name), len(functions))
    hdf5 = next((index for index, name in enumerate(functions) if "H5" in name), len(functions))
    found = np.full(len(functions), "POSIX", dtype="<U6")
    found[mpi:] = ["MPIIO" if name.startswith("MPI_File") else "MPI" for name in functions[mpi:]]
    found[hdf5:] = "HDF5"
    return pl.Series(found, dtype=pl.String)
