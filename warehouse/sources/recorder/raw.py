"""Read raw Recorder 2.5 traces: metadata, call signatures (`.cst`), grammars (`.cfg`) and time stamps (`.ts`).

All numbers are little-endian. Time stamps are pairs of 32-bit ticks, each relative to the start of the rank's previous
call. A gap between two calls of more than 2^32 ticks (429 s) is therefore recorded too short by a multiple of 2^32
ticks, which cannot be detected.
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
from iosig.warehouse.sources.recorder.calls import Rank, Run, build_calls, check_count, split_texts
from iosig.warehouse.sources.recorder.files import Files
from iosig.warehouse.sources.recorder.grammar import Ints, unfold

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

#: function number of the program's own functions (compiler instrumentation); the name is the second argument
_USER_FUNCTION = 255
_HEADER = struct.Struct("<i4xddiii4x")
_ENTRY_BYTES = 16
_KEY_BYTES = 15
#: vectorized search for consecutive signatures of equal length: their maximum number; their minimum number; number of
#: signatures that are read one by one before the next search
_MAX_EQUAL, _MIN_EQUAL, _ONE_BY_ONE = 2048, 16, 256
#: latest plausible start [s since 1970]; protects the conversion to a datetime from damaged values
_LAST_START_S = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
_REMEDY = "Fetch the trace again, with all of its files."


@dataclass(frozen=True, slots=True)
class Metadata:
    """Content of `recorder.mt`: number of ranks, start, tick, and function names by number."""

    process_count: int
    started_at: datetime
    tick_s: float
    is_merged: bool
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signatures:
    """The distinct calls of a rank (or of all ranks in a merged trace), by number, with their counts.

    `rows` has the columns level, module, function and arguments.
    """

    rows: pl.DataFrame
    counts: Longs


@dataclass(frozen=True, slots=True)
class RankCalls:
    """The calls of a rank in order, as row numbers of `signatures`, with start and end times."""

    signatures: pl.DataFrame
    order: Ints
    start_s: Reals
    end_s: Reals


def open_run(files: Files) -> Run[Rank]:
    """Build the run, with a decoder that returns one row per call."""
    run = open_coded_run(files)

    def decode(rank: int) -> Rank:
        rank_calls = run.decode(rank)
        times = {"start_s": rank_calls.start_s, "end_s": rank_calls.end_s}
        return Rank(build_calls(rank, rank_calls.signatures[rank_calls.order].to_dict() | times))

    return Run(run.version, run.process_count, run.started_at, run.resolution_s, run.ranks, decode)


def open_coded_run(files: Files) -> Run[RankCalls]:
    """Build the run, with a decoder that returns signatures and their order."""
    version = _version(files)
    metadata = read_metadata(files.read("recorder.mt"))
    kind = "ts" if metadata.is_merged else "cst|cfg|ts"
    ranks = {int(name.split(".")[0]) for name in files.names if re.fullmatch(rf"[0-9]+\.(?:{kind})", name)}
    decode = _build_merged_decoder(files, metadata) if metadata.is_merged else _build_separate_decoder(files, metadata)
    return Run(version, metadata.process_count, metadata.started_at, metadata.tick_s, tuple(sorted(ranks)), decode)


def _version(files: Files) -> str:
    if "VERSION" not in files.names:
        raise InputRefused("The Recorder trace has no file VERSION.", "Fetch it as well: the formats differ.")
    version = files.read("VERSION")[:64].decode("ascii", "replace").strip()
    if not re.fullmatch(r"2\.5\.[0-9]+", version):
        raise InputRefused(
            f"The Recorder trace has version {version!r}; only 2.5 is supported.",
            "Convert it with recorder2text of the same version, and land the text.",
        )
    return version


def read_metadata(content: bytes) -> Metadata:
    """Parse `recorder.mt`; raise InputRefused if it is implausible."""
    if len(content) < _HEADER.size:
        raise InputRefused("recorder.mt is truncated.", _REMEDY)
    process_count, start_s, tick_s, _, packing, is_merged = _HEADER.unpack_from(content)
    if process_count < 1 or not 0 < start_s < _LAST_START_S or not 1e-12 < tick_s <= 1 or is_merged not in (0, 1):
        raise InputRefused("recorder.mt is damaged, or its version differs from VERSION.", _REMEDY)
    if packing:
        raise InputRefused("The trace's time stamps are compressed.", "Convert it with recorder2text, land the text.")
    names = content[_HEADER.size :].decode("ascii", "replace").split("\n")[:-1]
    if not 1 <= len(names) <= _USER_FUNCTION or not all(re.fullmatch(r"\w+", name) for name in names):
        raise InputRefused("recorder.mt does not list the functions by their names.", _REMEDY)
    return Metadata(process_count, datetime.fromtimestamp(start_s, UTC), tick_s, bool(is_merged), tuple(names))


def _build_separate_decoder(files: Files, metadata: Metadata) -> Callable[[int], RankCalls]:
    def decode(rank: int) -> RankCalls:
        signatures = read_signatures(files.read(f"{rank}.cst"), metadata.functions, rank)
        return _decode(files, metadata, rank, signatures, rank)

    return decode


def _build_merged_decoder(files: Files, metadata: Metadata) -> Callable[[int], RankCalls]:
    """Build the decoder for a merged trace, with one list of signatures and shared grammars."""
    content = files.read("ug.mt") if "ug.mt" in files.names else b""
    grammars = np.frombuffer(content, "<i4", count=len(content) // 4)
    is_whole = len(content) == 4 * (metadata.process_count + 1)
    if not is_whole or grammars[:-1].min() < 0 or grammars[:-1].max() >= grammars[-1]:
        raise InputRefused("ug.mt, which maps ranks to grammars, is missing or damaged.", _REMEDY)
    signatures = read_signatures(files.read("0.cst"), metadata.functions, None)

    def decode(rank: int) -> RankCalls:
        # Each rank has its own times, although recorder2text prints those of rank 0 for all ranks in such a trace.
        return _decode(files, metadata, rank, signatures, int(grammars[rank]))

    return decode


def _decode(files: Files, metadata: Metadata, rank: int, signatures: Signatures, grammar: int) -> RankCalls:
    start_s, end_s = read_times(files.read(f"{rank}.ts"), metadata.tick_s)
    order = unfold(files.read(f"{grammar}.cfg"), start_s.size, signatures.rows.height)
    if not metadata.is_merged and not np.array_equal(
        np.bincount(order, minlength=signatures.rows.height), signatures.counts
    ):
        raise InputRefused("The calls in the grammar do not match the counts of the signatures.", _REMEDY)
    return RankCalls(signatures.rows, order, start_s, end_s)


def read_times(content: bytes, tick_s: float) -> tuple[Reals, Reals]:
    """Decode the start and end of each call of a rank [s]."""
    if len(content) % 8:
        raise InputRefused("The time stamps are truncated.", _REMEDY)
    check_count(len(content) // 8)
    stamps = np.frombuffer(content, "<u4").reshape(-1, 2)
    start_ticks = np.cumsum(stamps[:, 0], dtype=np.int64)
    end_ticks = stamps[:, 1].astype(np.int64)
    end_ticks[1:] += start_ticks[:-1]
    return _seconds(start_ticks, tick_s), _seconds(end_ticks, tick_s)


def _seconds(ticks: Longs, tick_s: float) -> Reals:
    # Division by an integer reproduces the decimals that recorder2text prints.
    per_s = round(1 / tick_s)
    if math.isclose(per_s * tick_s, 1, rel_tol=1e-12):
        return ticks / per_s
    return np.multiply(ticks, tick_s, dtype=np.float64)


def read_signatures(content: bytes, functions: tuple[str, ...], rank: int | None) -> Signatures:
    """Read the signatures in the order of their numbers; those of a single rank must all have that rank."""
    data = np.frombuffer(content, np.uint8)
    starts = _entry_starts(data)
    if rank is not None and (_numbers(data, starts + 4) != rank).any():
        raise InputRefused("The rank of the call signatures differs from the file's name.", _REMEDY)
    numbers = _numbers(data, starts)
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(numbers[order], np.arange(starts.size)):
        raise InputRefused("The call signatures are not numbered one by one.", _REMEDY)
    arguments = _arguments(data, starts)[order]
    starts = starts[order]
    rows = pl.DataFrame({"index": data[starts + 24], "level": data[starts + 25], "arguments": arguments})
    return Signatures(_add_functions(rows, functions), _numbers(data, starts + 12) & 0xFFFFFFFF)


def _entry_starts(data: Bytes) -> Longs:
    """Find the start of each signature; it follows from the start and length of the previous one."""
    claimed = int(_view_numbers(data)[0]) if data.size >= 4 else -1
    if not 0 <= claimed <= data.size // (_ENTRY_BYTES + _KEY_BYTES):
        raise InputRefused("The list of call signatures is truncated.", _REMEDY)
    pieces: list[Longs] = []
    place, missing_count = 4, claimed
    while missing_count:
        piece, place = _next_starts(data, place, missing_count)
        if (np.diff(piece, append=place) < _ENTRY_BYTES + _KEY_BYTES).any():
            raise InputRefused("A call signature is shorter than its minimum length.", _REMEDY)
        if place > data.size:
            raise InputRefused("The list of call signatures is truncated.", _REMEDY)
        pieces.append(piece)
        missing_count -= piece.size
    if place != data.size:
        raise InputRefused("The list of call signatures is truncated, or has extra content after it.", _REMEDY)
    return np.concatenate([np.empty(0, np.int64), *pieces])


def _next_starts(data: Bytes, place: int, max_count: int) -> tuple[Longs, int]:
    """Return the starts of up to `max_count` signatures from `place` on, and the position after the last one."""
    # Find consecutive signatures of equal length at once, since these are frequent.
    lengths = _view_numbers(data)[place + 8 :]
    step = _ENTRY_BYTES + int(lengths[0]) if lengths.size else 0
    is_equal = lengths[::step][: min(max_count, _MAX_EQUAL)] == lengths[0] if step > 0 else np.zeros(0, np.bool_)
    count = is_equal.size if is_equal.all() else int(is_equal.argmin())
    if count >= _MIN_EQUAL:
        return place + step * np.arange(count, dtype=np.int64), place + step * count
    places, view = [], data.data
    length_at = struct.Struct("<i").unpack_from
    try:
        for _ in range(min(max_count, _ONE_BY_ONE)):
            places.append(place)
            place += _ENTRY_BYTES + length_at(view, place + 8)[0]
    except struct.error:
        place = data.size + _ENTRY_BYTES + _KEY_BYTES
    return np.array(places, np.int64), place


def _view_numbers(data: Bytes) -> npt.NDArray[np.int32]:
    """View the 32-bit numbers at all byte offsets without a copy; the numbers overlap and are unaligned."""
    return np.ndarray((max(data.size - 3, 0),), "<i4", data, strides=(1,))


def _numbers(data: Bytes, offsets: Longs) -> Longs:
    """Read the 32-bit numbers at these byte offsets."""
    return _view_numbers(data)[offsets].astype(np.int64)


def _arguments(data: Bytes, starts: Longs) -> pl.Series:
    """Extract each signature's arguments, separated by spaces."""
    lengths = _numbers(data, starts + 27)
    if (lengths != _numbers(data, starts + 8) - _KEY_BYTES).any():
        raise InputRefused("The length of a call signature's arguments is wrong.", _REMEDY)
    entries = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), starts.size, [None, pa.py_buffer(np.append(starts, data.size)), pa.py_buffer(data)]
    )
    cut = pc.binary_slice(entries, _ENTRY_BYTES + _KEY_BYTES, data.size)
    counts = pc.count_substring(cut, b" ").to_numpy(zero_copy_only=False)
    text = np.frombuffer(cut.buffers()[2] or b"", np.uint8)[: lengths.sum()]
    ends = np.cumsum(lengths)
    # The tracer logs C strings, which contain no NUL.
    is_ended = (text[ends[lengths > 0] - 1] == ord(" ")).all()
    if (counts != data[starts + 26]).any() or not is_ended or not text.all():
        raise InputRefused("The number of a call signature's arguments is wrong.", _REMEDY)
    return split_texts(text.tobytes(), ends).str.strip_suffix(" ")


def _add_functions(rows: pl.DataFrame, functions: tuple[str, ...]) -> pl.DataFrame:
    """Replace the function numbers (`index`) of signatures by module and name."""
    listed = pl.DataFrame({"index": np.arange(len(functions), dtype=np.uint8), "function": functions})
    joined = rows.join(listed.with_columns(module=_modules(functions)), on="index", how="left", maintain_order="left")
    if joined["function"].null_count():
        # The program's own functions have address and name as arguments; recorder2text prints neither.
        is_own = pl.col("index") == _USER_FUNCTION
        name = pl.col("arguments").str.split(" ").list.get(1, null_on_oob=True)
        joined = joined.with_columns(
            function=pl.when(is_own).then(name).otherwise("function"),
            module=pl.when(is_own).then(pl.lit("FTRACE")).otherwise("module"),
            arguments=pl.when(is_own).then(pl.lit("")).otherwise("arguments"),
        )
    if joined["function"].null_count():
        raise InputRefused("A call signature refers to a function that the trace does not name.", _REMEDY)
    return joined.select("level", "module", "function", "arguments")


def _modules(functions: tuple[str, ...]) -> pl.Series:
    """Assign modules to functions by their order in the list: POSIX first, MPI next, HDF5 last."""
    mpi = next((index for index, name in enumerate(functions) if "MPI" in name), len(functions))
    hdf5 = next((index for index, name in enumerate(functions) if "H5" in name), len(functions))
    modules = np.full(len(functions), "POSIX", dtype="<U6")
    modules[mpi:] = ["MPIIO" if name.startswith("MPI_File") else "MPI" for name in functions[mpi:]]
    modules[hdf5:] = "HDF5"
    return pl.Series(modules, dtype=pl.String)
