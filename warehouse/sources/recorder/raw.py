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

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder.calls import Rank, Run, calls, check_count, texts
from iosig.warehouse.sources.recorder.files import Files
from iosig.warehouse.sources.recorder.grammar import Ints, unfolded

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

#: functions of the program itself, which the compiler made known; their name is the second argument
_USER_FUNCTION = 255
_HEADER = struct.Struct("<i4xddiii4x")
_ENTRY_BYTES = 16
_KEY_BYTES = 15
#: signatures of one length in a row that are looked for at once, how many are worth it, and how many are read between
_ALIKE, _ALIKE_LEAST, _ONE_BY_ONE = 2048, 16, 256
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


@dataclass(frozen=True, slots=True)
class Coded:
    """The calls of a rank as the trace has them: the signature of each call in order, as a row of `signatures`."""

    signatures: pl.DataFrame
    order: Ints
    start_s: Reals
    end_s: Reals


def opened(files: Files) -> Run[Rank]:
    """Return what the trace says of the run, and how to decode one of its ranks."""
    run = opened_coded(files)

    def decode(rank: int) -> Rank:
        found = run.decode(rank)
        times = {"start_s": found.start_s, "end_s": found.end_s}
        return Rank(calls(rank, found.signatures[found.order].to_dict() | times))

    return Run(run.version, run.process_count, run.started_at, run.resolution_s, run.ranks, decode)


def opened_coded(files: Files) -> Run[Coded]:
    """Return what the trace says of the run, and how to decode one of its ranks without a row for each call."""
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


def _separate(files: Files, metadata: Metadata) -> Callable[[int], Coded]:
    def decode(rank: int) -> Coded:
        known = read_signatures(files.read(f"{rank}.cst"), metadata.functions, rank)
        return _decoded(files, metadata, rank, known, rank)

    return decode


def _merged(files: Files, metadata: Metadata) -> Callable[[int], Coded]:
    """Return how to decode a rank of a trace that has one list of signatures, and each grammar once."""
    content = files.read("ug.mt") if "ug.mt" in files.names else b""
    grammars = np.frombuffer(content, "<i4", count=len(content) // 4)
    is_whole = len(content) == 4 * (metadata.process_count + 1)
    if not is_whole or grammars[:-1].min() < 0 or grammars[:-1].max() >= grammars[-1]:
        raise InputRefused("ug.mt, which says whose grammar is whose, is missing or damaged.", _REMEDY)
    known = read_signatures(files.read("0.cst"), metadata.functions, None)

    def decode(rank: int) -> Coded:
        # recorder2text prints the times of rank 0 for all ranks of such a trace; each has its own.
        return _decoded(files, metadata, rank, known, int(grammars[rank]))

    return decode


def _decoded(files: Files, metadata: Metadata, rank: int, known: Signatures, grammar: int) -> Coded:
    start_s, end_s = read_times(files.read(f"{rank}.ts"), metadata.tick_s)
    order = unfolded(files.read(f"{grammar}.cfg"), start_s.size, known.rows.height)
    if not metadata.is_merged and not np.array_equal(np.bincount(order, minlength=known.rows.height), known.counts):
        raise InputRefused("The grammar does not have each call as often as the signatures say.", _REMEDY)
    return Coded(known.rows, order, start_s, end_s)


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
    data = np.frombuffer(content, np.uint8)
    starts = _entry_starts(data)
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


def _entry_starts(data: Bytes) -> Longs:
    """Return where each signature begins: only its length tells where the next one does."""
    claimed = int(_numbers_at_all_places(data)[0]) if data.size >= 4 else -1
    if not 0 <= claimed <= data.size // (_ENTRY_BYTES + _KEY_BYTES):
        raise InputRefused("The list of call signatures breaks off.", _REMEDY)
    pieces: list[Longs] = []
    place, lacking = 4, claimed
    while lacking:
        piece, place = _next_starts(data, place, lacking)
        if (np.diff(piece, append=place) < _ENTRY_BYTES + _KEY_BYTES).any():
            raise InputRefused("A call signature is shorter than any can be.", _REMEDY)
        if place > data.size:
            raise InputRefused("The list of call signatures breaks off.", _REMEDY)
        pieces.append(piece)
        lacking -= piece.size
    if place != data.size:
        raise InputRefused("The list of call signatures breaks off, or has something behind it.", _REMEDY)
    return np.concatenate([np.empty(0, np.int64), *pieces])


def _next_starts(data: Bytes, place: int, most: int) -> tuple[Longs, int]:
    """Return where some of the signatures from this place on begin, and where those behind them do."""
    # A program's calls often are as long as one another; those are seen at once.
    lengths = _numbers_at_all_places(data)[place + 8 :]
    step = _ENTRY_BYTES + int(lengths[0]) if lengths.size else 0
    is_alike = lengths[::step][: min(most, _ALIKE)] == lengths[0] if step > 0 else np.zeros(0, np.bool_)
    count = is_alike.size if is_alike.all() else int(is_alike.argmin())
    if count >= _ALIKE_LEAST:
        return place + step * np.arange(count, dtype=np.int64), place + step * count
    places, view = [], data.data
    length_at = struct.Struct("<i").unpack_from
    try:
        for _ in range(min(most, _ONE_BY_ONE)):
            places.append(place)
            place += _ENTRY_BYTES + length_at(view, place + 8)[0]
    except struct.error:
        place = data.size + _ENTRY_BYTES + _KEY_BYTES
    return np.array(places, np.int64), place


def _numbers_at_all_places(data: Bytes) -> npt.NDArray[np.int32]:
    """Return the 32-bit number that begins at each byte, without a copy: they overlap, and are not aligned."""
    return np.ndarray((max(data.size - 3, 0),), "<i4", data, strides=(1,))


def _numbers(data: Bytes, at: Longs) -> Longs:
    """Return the 32-bit numbers that stand at these places."""
    return _numbers_at_all_places(data)[at].astype(np.int64)


def _arguments(data: Bytes, starts: Longs) -> pl.Series:
    """Return each signature's arguments, separated by spaces; each argument is followed by one in the trace."""
    lengths = _numbers(data, starts + 27)
    if (lengths != _numbers(data, starts + 8) - _KEY_BYTES).any():
        raise InputRefused("A call signature's arguments are not as long as it says.", _REMEDY)
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), starts.size, [None, pa.py_buffer(np.append(starts, data.size)), pa.py_buffer(data)]
    )
    cut = pc.binary_slice(whole, _ENTRY_BYTES + _KEY_BYTES, data.size)
    counts = pc.count_substring(cut, b" ").to_numpy(zero_copy_only=False)
    text = np.frombuffer(cut.buffers()[2] or b"", np.uint8)[: lengths.sum()]
    ends = np.cumsum(lengths)
    # What the tracer logs are strings of C: there is no NUL in them.
    is_ended = (text[ends[lengths > 0] - 1] == ord(" ")).all()
    if (counts != data[starts + 26]).any() or not is_ended or not text.all():
        raise InputRefused("A call signature does not have as many arguments as it says.", _REMEDY)
    return texts(text.tobytes(), ends).str.strip_suffix(" ")


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
