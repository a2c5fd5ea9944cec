"""Read Recorder traces as distinct calls (signatures) of each rank and their order, without a row per call.

A program repeats the same calls. These have few distinct *signatures* (level, module, function and arguments), so a
call is stored as the number of its signature and two times. Traces are read this way to be compressed, extrapolated or
replayed. A missing rank or call would change the program, so a damaged trace is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder import files as recorder_files, raw
from iosig.warehouse.sources.recorder.calls import Rank, Run, refuse_bad_times
from iosig.warehouse.sources.recorder.files import Files
from iosig.warehouse.sources.recorder.requests import MAX_LEVELS, find_enclosed
from iosig.warehouse.sources.recorder.source import get_opener

Ints = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]

SIGNATURE = ("level", "module", "function", "arguments")
#: module of the program's own functions, which do no I/O themselves; calls within them count as the program's calls
_OWN_MODULE = "FTRACE"
_REMEDY = "Fetch the trace again, with all of its files: an incomplete trace cannot be compressed faithfully."


@dataclass(frozen=True, slots=True)
class SignedRank:
    """The calls of a rank in order, as signatures with start and end times.

    signatures: level Int64, module, function, arguments String; distinct, in the order of their first calls. order
    (calls): row number in `signatures` of each call. start_s, end_s (calls): seconds since the start of the trace's
    clock.
    """

    rank: int
    signatures: pl.DataFrame
    order: Ints
    start_s: Reals
    end_s: Reals


@contextmanager
def open_signed_run(path: Path) -> Iterator[Run[SignedRank]]:
    """Open a complete trace in a folder, in an archive, or in a single text file.

    Raises InputRefused if a rank has no file; reading a rank raises InputRefused if the rank is damaged.
    """
    with recorder_files.open_trace(path) as (form, files):
        run = _open_raw(files) if form == "raw" else _open_rows(get_opener(form)(files))
        yield replace(run, ranks=_require_all_ranks(run.ranks, run.process_count))


def _open_raw(files: Files) -> Run[SignedRank]:
    run = raw.open_coded_run(files)

    def decode(rank: int) -> SignedRank:
        with _naming_rank(rank):
            decoded = run.decode(rank)
            signed = _sign(rank, decoded.signatures, decoded.order, decoded.start_s, decoded.end_s)
            _check(refuse_bad_times(Rank(_build_timed_calls(signed)), rank))
        return signed

    return _replace_decoder(decode, run)


def _open_rows(run: Run[Rank]) -> Run[SignedRank]:
    def decode(rank: int) -> SignedRank:
        with _naming_rank(rank):
            decoded = run.decode(rank)
            _check(refuse_bad_times(decoded, rank))
        calls = decoded.calls.select(*SIGNATURE, "start_s", "end_s")
        order = np.arange(calls.height, dtype=np.int32)
        return _sign(rank, calls, order, calls["start_s"].to_numpy(), calls["end_s"].to_numpy())

    return _replace_decoder(decode, run)


def _replace_decoder(decode: Callable[[int], SignedRank], run: Run[Any]) -> Run[SignedRank]:
    return Run(run.version, run.process_count, run.started_at, run.resolution_s, run.ranks, decode)


def _require_all_ranks(ranks: Sequence[int], process_count: int) -> range:
    """Return all ranks of a run; raise InputRefused if a rank is missing or superfluous."""
    missing = next((rank for rank, present_rank in enumerate(ranks) if rank != present_rank), len(ranks))
    if missing < process_count:
        raise InputRefused(f"The trace has no file of rank {missing} of {process_count}.", _REMEDY)
    if len(ranks) > process_count:
        raise InputRefused(f"The trace has {process_count} ranks, and files of rank {ranks[process_count]}.", _REMEDY)
    return range(process_count)


@contextmanager
def _naming_rank(rank: int) -> Iterator[None]:
    """Add the rank to the reason of an InputRefused."""
    try:
        yield
    except InputRefused as fault:
        raise InputRefused(f"Rank {rank} cannot be read completely. {fault.reason}", fault.remedy) from fault


def _check(decoded: Rank) -> None:
    if not decoded.refused.is_empty():
        line, reason = decoded.refused.select("line", "reason").row(0)
        detail = reason.split(": ", 1)[-1]
        raise InputRefused(f"Call {line}: {detail} {decoded.refused.height} calls are affected.", _REMEDY)
    if decoded.shortened_count:
        raise InputRefused(
            f"Of {decoded.shortened_count} calls, only the first ten arguments are in the export.",
            "Use the raw trace, or the output of recorder2text.",
        )


def _build_timed_calls(signed: SignedRank) -> pl.DataFrame:
    """Build calls that have only times, for `refuse_bad_times`."""
    count = signed.order.size
    unknown = pl.Series([""], dtype=pl.String).new_from_index(0, count)
    times = {"start_s": signed.start_s, "end_s": signed.end_s}
    return pl.DataFrame({"call": pl.int_range(count, eager=True), "function": unknown, "arguments": unknown, **times})


def _sign(rank: int, signatures: pl.DataFrame, order: Ints, start_s: Reals, end_s: Reals) -> SignedRank:
    """Drop duplicate and unused signatures, and sort the others by their first calls."""
    first = np.full(signatures.height, order.size, np.int64)
    # With repeated indices, the last assignment takes effect, which is that of the first call.
    first[order[::-1]] = np.arange(order.size - 1, -1, -1)
    used = np.argsort(first, kind="stable")[: np.count_nonzero(first < order.size)]
    rows = signatures.select(pl.col("level").cast(pl.Int64), *SIGNATURE[1:])[used]
    number = np.zeros(signatures.height, np.int32)
    number[used] = np.arange(used.size)
    # Distinct hashes prove that rows are distinct, and checking them is fast.
    if rows.hash_rows().n_unique() < rows.height:
        rows, indices = _distinct(rows)
        number[used] = indices
    return SignedRank(rank, rows, number[order], start_s, end_s)


def _distinct(rows: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """Drop repeated rows, and return the index of each row among the distinct ones."""
    distinct = rows.unique(maintain_order=True)
    numbered = distinct.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int32))
    joined = rows.join(numbered, on=SIGNATURE, how="left", maintain_order="left")
    return distinct, joined["number"].to_numpy()


def select_outer_calls(signed: SignedRank) -> SignedRank:
    """Select the calls that the program itself made, not those within another traced I/O or MPI call.

    The program's own functions are dropped, and calls within them are kept. All remaining calls get level 0.
    """
    is_own = (signed.signatures["module"] == _OWN_MODULE).to_numpy()
    levels = np.minimum(signed.signatures["level"].to_numpy(), MAX_LEVELS)
    if not is_own.any() and not levels.any():
        return signed
    is_kept = ~(find_enclosed(levels[signed.order], ~is_own[signed.order]) | is_own[signed.order])
    flat = signed.signatures.with_columns(level=pl.lit(0, pl.Int64))
    return _sign(signed.rank, flat, signed.order[is_kept], signed.start_s[is_kept], signed.end_s[is_kept])
