"""Compile a rank's calls into plain steps: operations, order, arguments, and the wait before each step.

Outer calls are replayed, which are not made within another traced file call (POSIX or MPI-IO), because the outer call
"provides a richer semantics" (Luo et al., ESPT 2015, section 3.1). With `nested`, the POSIX calls replace the MPI-IO
calls around them. The time of a call that is not executed is added to the wait before the next step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.traces.replay.functions import COLLECTIVES, PLACES, READING, SHARED, SIZING, WRITING, Verb, among, table
from iosig.traces.replay.sandbox import RefusedPathError, remap_path
from iosig.transforms.arrays import Ints, Reals
from iosig.warehouse.sources.recorder import requests

#: how MPI-IO calls are replayed: by equivalent POSIX calls, by MPI, or by the traced POSIX calls within them
ReplayMode = Literal["posix", "mpi", "nested"]

STEP = np.dtype(
    [
        ("verb", "i2"),
        ("function", "i2"),
        # numbers in `Script.names`; -1 for none
        ("file", "i4"),
        ("other", "i4"),
        ("size", "i8"),
        ("offset", "i8"),
        ("flags", "i8"),
        ("wait_s", "f8"),
        ("hold_s", "f8"),
    ]
)
Steps = npt.NDArray[np.void]
#: number of steps that are converted to Python numbers at a time
_CHUNK = 4096
#: value of a number for which the call has no argument
ABSENT = -1
_SAFE = 1 << 62
#: communicators with a single rank, or with unknown ranks
_ALONE = ("MPI_COMM_SELF", "MPI_COMM_NULL", "MPI_COMM_UNKNOWN", "???")
#: functions with a second barrier after the collective call: no rank may use the file before all have finished
_SETTLED_AFTER = ("MPI_File_set_size", "MPI_File_preallocate")


@dataclass(frozen=True, slots=True)
class Script:
    """Steps and names that one rank executes.

    names: paths, handles and modes that steps refer to. places: path components within the replay folder, by number of
    a name. communicators: communicators that SYNC steps refer to by `size`. counts: replayed calls by function.
    not_replayed: other calls by function and reason. end_s: end time of the traced rank.
    """

    rank: int
    steps: Steps
    names: tuple[str, ...]
    places: dict[int, tuple[str, ...]]
    functions: tuple[str, ...]
    communicators: tuple[str, ...]
    counts: Counter[str]
    not_replayed: Counter[tuple[str, str]]
    end_s: float

    def rows(self) -> Iterator[list[tuple[int, int, int, int, int, int, int, float, float]]]:
        """Yield the steps as tuples in the order of `STEP`, in chunks of some thousand."""
        for start in range(0, len(self.steps), _CHUNK):
            yield np.asarray(self.steps[start : start + _CHUNK]).tolist()

    def spill(self, folder: Path) -> Script:
        """Store the script's steps in a memory-mapped file, so that only those in use are in memory."""
        path = folder / f"{self.rank}.npy"
        np.save(path, self.steps)
        mapped = np.load(path, mmap_mode="r") if len(self.steps) else self.steps
        return replace(self, steps=mapped)


def outer(calls: pl.DataFrame, mode: ReplayMode) -> pl.DataFrame:
    """Mark outer calls as `is_outer`: not nested in another call, and replayed if their function is supported."""
    considered = calls
    if mode == "nested":
        # With MPI-IO functions blanked, only POSIX calls can enclose a POSIX call.
        is_posix = pl.col("module") == "POSIX"
        considered = calls.with_columns(
            pl.when(is_posix).then(pl.col(name)).otherwise(pl.lit("")).alias(name) for name in ("module", "function")
        )
    is_inner = requests.find_nested(considered.with_columns(rank=pl.lit(0)))
    return calls.with_columns(is_outer=~is_inner)


@dataclass(frozen=True, slots=True)
class Written:
    """A script with the replayed calls, from which its file accesses are derived.

    done: the replayed calls, with place (in the rank's order), verb, module, function, arguments, file_id, other_id,
    flag and bytes. sync_places: ascending places of the calls at which ranks wait for one another.
    """

    script: Script
    done: pl.DataFrame
    sync_places: Ints


def compile_script(rank: int, calls: pl.DataFrame, call_times: Reals, mode: ReplayMode) -> Written:
    """Compile the calls of a rank, with the waits between them, into a replay script.

    calls: as `traces.list_calls` returns them. call_times: [gap, duration, minimum duration] of each call [s], N x 3;
    zeros for a replay without waits.
    """
    parsed = _add_reasons(_read(outer(calls, mode).with_row_index("place")), mode)
    names, places, numbered = _number_names(parsed.filter(pl.col("is_outer")))
    frame = numbered.with_columns(_refusal(places))
    syncs, communicators = _syncs(frame, mode)
    replayed = frame.filter(pl.col("reason").is_null())
    steps, functions = _steps(parsed, replayed, syncs, communicators, call_times)
    script = Script(
        rank=rank,
        steps=steps,
        names=names,
        places={number: place for number, place in places.items() if isinstance(place, tuple)},
        functions=functions,
        communicators=communicators,
        counts=Counter(dict(replayed.group_by("function").len().iter_rows())),
        not_replayed=_count_omitted_calls(frame, parsed),
        end_s=max(calls["end_s"].to_list(), default=0.0),
    )
    columns = ("place", "verb", "module", "function", "arguments", "file_id", "other_id", "flag", "flags", "bytes")
    return Written(script, replayed.select(columns), np.sort(syncs["place"].to_numpy().astype(np.int64)))


# ---- arguments


def _read(calls: pl.DataFrame) -> pl.DataFrame:
    """Add the arguments of calls: each as text, and numeric ones also as numbers."""
    joined = calls.join(table(), on="function", how="left", maintain_order="left")
    split = joined.with_columns(given=pl.col("arguments").str.split(" "))
    texts = split.with_columns(
        pl.col("given").list.get(pl.col(f"{place}_at"), null_on_oob=True).alias(place) for place in PLACES
    )
    numbers = ("count", "size", "offset", "mode", "parts")
    cast = texts.with_columns(pl.col(name).cast(pl.Int64, strict=False) for name in numbers)
    return cast.with_columns(
        verb=pl.col("verb").fill_null(int(Verb.NONE)),
        is_together=pl.col("is_together").fill_null(False),
        flag=pl.col("flags").cast(pl.Int64, strict=False),
        communicator=_communicator(),
    )


def _communicator() -> pl.Expr:
    """Return the communicator of a collective MPI call; for MPI-IO, the one with which the handle was opened."""
    communicator = pl.lit(None, pl.String)
    for place in sorted(set(COLLECTIVES.values())):
        functions = [function for function, at in COLLECTIVES.items() if at == place]
        communicator = (
            pl.when(pl.col("function").is_in(functions))
            .then(pl.col("given").list.get(place, null_on_oob=True))
            .otherwise(communicator)
        )
    return communicator


def _bytes() -> pl.Expr:
    """Return the bytes of a transfer, or the new size of a file; NULL for unknown or implausible values."""
    verb = pl.col("verb")
    counted = pl.col("count") - (verb == int(Verb.FPRINTF)).cast(pl.Int64)
    unit = (
        pl.when(among(_BLOCKED))
        .then("size")
        .when(verb.is_between(int(Verb.MPI_READ_AT), int(Verb.MPI_WRITE_SHARED)))
        .then(pl.col("type").replace_strict(requests.TYPE_BYTES, default=None, return_dtype=pl.Int64))
        .otherwise(1)
    )
    is_sane = (counted >= 0) & (unit >= 0) & (counted.cast(pl.Float64) * unit.cast(pl.Float64) <= _SAFE)
    return pl.when(is_sane).then(counted * unit)


_PLACED = frozenset({Verb.PREAD, Verb.PWRITE, Verb.LSEEK, Verb.FSEEK}) | {
    *(Verb.MPI_READ_AT, Verb.MPI_WRITE_AT, Verb.MPI_SEEK, Verb.MPI_SET_VIEW)
}
_BLOCKED = (Verb.FREAD, Verb.FWRITE)
_STREAMED = (Verb.FOPEN, Verb.FDOPEN)
_WHENCES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "MPI_SEEK_SET": 0, "MPI_SEEK_CUR": 1, "MPI_SEEK_END": 2}
_SOUGHT = (Verb.LSEEK, Verb.FSEEK, Verb.MPI_SEEK)
_STREAM_MODES = "^[rwa]b?\\+?b?[a-z]*$"


def _add_reasons(parsed: pl.DataFrame, mode: ReplayMode) -> pl.DataFrame:
    """Add `bytes`, `number` (of a seek's `whence`), and `reason`: why a call is not replayed, or NULL if it is."""
    verb = pl.col("verb")
    sized = parsed.with_columns(
        bytes=_bytes(), number=pl.col("whence").replace_strict(_WHENCES, default=None, return_dtype=pl.Int64)
    )
    is_malformed = (
        (pl.col("given").list.len() == 0)
        | (pl.col("file").is_null())
        | (among(_PLACED) & pl.col("offset").is_null())
        | (among((Verb.OPEN, Verb.MPI_OPEN)) & pl.col("flag").is_null())
        | (among(_SOUGHT) & pl.col("number").is_null())
        | ((verb == int(Verb.MPI_OPEN)) & pl.col("path").is_null())
        | ((verb == int(Verb.RENAME)) & pl.col("other").is_null())
        | (among(_STREAMED) & ~pl.col("flags").str.contains(_STREAM_MODES).fill_null(False))
    )
    is_mpi = verb >= int(Verb.MPI_OPEN)
    is_type_unknown = is_mpi & among(READING | WRITING) & pl.col("bytes").is_null() & (pl.col("count") >= 0)
    unknown = pl.col("file").is_in(["???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN", ""]) | (pl.col("path") == "???")
    reason = (
        pl.when(pl.col("communicator").is_not_null() & (verb == int(Verb.NONE)))
        .then(pl.lit("orders the ranks"))
        .when((verb == int(Verb.NONE)) & pl.col("module").is_in(["MPI", "FTRACE"]))
        .then(pl.lit("no file call"))
        .when(verb == int(Verb.NONE))
        .then(pl.lit("function not supported"))
        .when(is_mpi if mode == "nested" else pl.lit(False))
        .then(pl.lit("replayed by its POSIX calls"))
        .when(unknown)
        .then(pl.lit("file not known"))
        .when(is_type_unknown)
        .then(pl.lit("datatype not in the trace"))
        .when(is_malformed | (among(READING | WRITING | SIZING) & pl.col("bytes").is_null()))
        .then(pl.lit("malformed arguments"))
        .when(among(SHARED) if mode == "posix" else pl.lit(False))
        .then(pl.lit("shared file pointer, which needs --mpi"))
    )
    return sized.with_columns(reason=reason, is_mpi=is_mpi)


def _refusal(places: dict[int, tuple[str, ...] | str]) -> pl.Expr:
    """Return `reason`, completed by the reason why a path cannot be remapped into the folder."""
    refused = {number: f"path refused: {place}" for number, place in places.items() if isinstance(place, str)}
    if not refused:
        return pl.col("reason")
    reasons = [
        pl.col(name).replace_strict(refused, default=None, return_dtype=pl.String) for name in ("file_id", "other_id")
    ]
    return pl.coalesce("reason", *reasons).alias("reason")


def _number_names(
    frame: pl.DataFrame,
) -> tuple[tuple[str, ...], dict[int, tuple[str, ...] | str], pl.DataFrame]:
    """Return the names that calls refer to, their places (or reasons for refusal), and the calls with name numbers.

    A prefix distinguishes MPI-IO handles from POSIX names.
    """
    verb = pl.col("verb")
    with_names = frame.with_columns(
        file_name=pl.when("is_mpi").then(pl.format("h{}", "file")).otherwise(pl.format("p{}", "file")),
        other_name=pl.when(verb == int(Verb.MPI_OPEN))
        .then(pl.format("p{}", "path"))
        .when(verb == int(Verb.RENAME))
        .then(pl.format("p{}", "other"))
        .when(among(_STREAMED))
        .then(pl.format("m{}", "flags"))
        .when(verb == int(Verb.MPI_SET_VIEW))
        .then(pl.format("m{} {}", "type", "other")),
    )
    names = pl.concat([with_names["file_name"], with_names["other_name"]]).drop_nulls().unique(maintain_order=True)
    numbers = pl.DataFrame({"name": names, "number": pl.arange(names.len(), eager=True, dtype=pl.Int64)})
    joined = with_names
    for name in ("file", "other"):
        renamed = numbers.rename({"name": f"{name}_name", "number": f"{name}_id"})
        joined = joined.join(renamed, on=f"{name}_name", how="left", maintain_order="left")
    texts = names.to_list()
    places = {number: _place(text[1:]) for number, text in enumerate(texts) if text[0] == "p"}
    return tuple(texts), places, joined


def _place(path: str) -> tuple[str, ...] | str:
    try:
        return remap_path(path)
    except RefusedPathError as error:
        return str(error)


def _count_omitted_calls(frame: pl.DataFrame, parsed: pl.DataFrame) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for function, reason, count in (
        frame.filter(pl.col("reason").is_not_null()).group_by("function", "reason").len().iter_rows()
    ):
        counts[function, reason] += count
    inner = parsed.filter(~pl.col("is_outer") & pl.col("module").is_in(["POSIX", "MPIIO"])).group_by("function").len()
    for function, count in inner.iter_rows():
        counts[function, "within a replayed call"] += count
    return counts


# ---- order among ranks


def _syncs(frame: pl.DataFrame, mode: ReplayMode) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the points at which ranks wait for one another, and their communicators, numbered.

    Columns: place, after (whether the point follows the call), is_only (whether the call does nothing else), number.
    """
    opened = pl.when(pl.col("verb") == int(Verb.MPI_OPEN)).then("communicator").forward_fill().over("file_name")
    communicator = pl.when(pl.col("is_together")).then(opened).otherwise("communicator")
    synced = frame.with_columns(communicator=communicator).filter(
        pl.col("communicator").is_not_null() & ~pl.col("communicator").is_in(_ALONE)
    )
    communicators = tuple(synced["communicator"].unique(maintain_order=True))
    if mode == "mpi":
        # MPI itself orders its own collective calls
        synced = synced.filter(~pl.col("is_mpi"))
    settled = synced.filter(pl.col("function").is_in(_SETTLED_AFTER) & pl.lit(mode == "posix"))
    points = pl.concat(
        part.select(
            "place", after=pl.lit(after), is_only=~pl.col("is_mpi"), number=_number_communicators(communicators)
        )
        for part, after in ((synced, False), (settled, True))
    )
    return points, communicators


def _number_communicators(communicators: tuple[str, ...]) -> pl.Expr:
    """Return the number of a call's communicator."""
    numbers = {name: number for number, name in enumerate(communicators)}
    if not numbers:
        return pl.lit(None, pl.Int64)
    return pl.col("communicator").replace_strict(numbers, default=None, return_dtype=pl.Int64)


# ---- steps


def _steps(
    parsed: pl.DataFrame,
    replayed: pl.DataFrame,
    syncs: pl.DataFrame,
    communicators: tuple[str, ...],
    call_times: Reals,
) -> tuple[Steps, tuple[str, ...]]:
    """Return the steps in order; each waits for the time of the calls since the previous step that are not executed."""
    functions = tuple(replayed["function"].unique(maintain_order=True))
    steps = np.zeros(replayed.height + syncs.height + 1, STEP)
    _fill_calls(
        steps[: replayed.height], replayed.with_columns(number_of=_number_communicators(communicators)), functions
    )
    _fill_syncs(steps[replayed.height : -1], syncs, call_times)
    # the last step does nothing but mark the end of the traced rank
    place = np.concatenate([replayed["place"].to_numpy(), syncs["place"].to_numpy(), [parsed.height]]).astype(np.int64)
    part = np.concatenate([np.ones(replayed.height), syncs["after"].to_numpy() * 2, [0]])
    order = np.lexsort((part, place))
    due = _due(parsed, replayed, syncs, call_times)[place][order]
    steps = steps[order]
    steps["wait_s"] = np.diff(due, prepend=0.0).clip(min=0.0)
    return steps, functions


def _due(parsed: pl.DataFrame, replayed: pl.DataFrame, syncs: pl.DataFrame, call_times: Reals) -> Reals:
    """Return when each of N calls, and the end of the rank, would be due if executed calls took no time [s] (N + 1).

    If a call that is not executed encloses others, the time of the inner calls counts, not its own. Calls within an
    executed call are part of its execution.
    """
    has_duration = np.ones(parsed.height, bool)
    has_duration[replayed["place"].to_numpy()] = False
    has_duration[syncs.filter("is_only")["place"].to_numpy()] = False
    is_inner = ~parsed["is_outer"].to_numpy()
    level = parsed["level"].to_numpy()
    encloses = np.append(level[1:] > level[:-1], False)[: level.size]
    gaps = np.where(is_inner, 0.0, call_times[:, 0])
    durations = np.where(has_duration & ~is_inner & ~encloses, call_times[:, 1], 0.0)
    ends = np.cumsum(gaps + durations)
    return np.append(ends - durations, ends[-1:] if ends.size else 0.0)


def _fill_calls(steps: Steps, replayed: pl.DataFrame, functions: tuple[str, ...]) -> None:
    number = {function: at for at, function in enumerate(functions)}
    verb = pl.col("verb")
    columns = {
        "verb": verb,
        "file": pl.col("file_id"),
        "other": pl.col("other_id"),
        "size": pl.when(verb == int(Verb.MPI_OPEN)).then("number_of").otherwise("bytes"),
        "offset": pl.coalesce("offset", "parts", "mode"),
        "flags": pl.when(among(_BLOCKED)).then("size").otherwise(pl.coalesce("number", "flag", "mode")),
    }
    for name, column in (
        replayed.select(column.cast(pl.Int64).fill_null(ABSENT).alias(n) for n, column in columns.items())
        .to_dict()
        .items()
    ):
        steps[name] = column.to_numpy()
    if number:
        steps["function"] = replayed["function"].replace_strict(number, return_dtype=pl.Int64).to_numpy()


def _fill_syncs(steps: Steps, syncs: pl.DataFrame, call_times: Reals) -> None:
    steps["verb"] = int(Verb.SYNC)
    steps["function"] = ABSENT
    steps["file"] = ABSENT
    steps["other"] = ABSENT
    steps["size"] = syncs["number"].to_numpy()
    min_call_s = call_times[syncs["place"].to_numpy(), 2] if syncs.height else np.empty(0)
    # the last rank to arrive waits for no other, so the minimum time is the duration of the call itself
    steps["hold_s"] = np.where(syncs["is_only"].to_numpy(), min_call_s, 0.0)
