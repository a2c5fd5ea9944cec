"""Recorder traces without a row for each call: the distinct calls of a rank, and in which order they were made.

A program calls the same things again and again. What differs are few *signatures* (level, module, function and
arguments); a call is the number of one, and two times. A trace that is read so is to be compressed, extrapolated or
replayed: with a rank or a call left out it would be another program's, so any damage refuses it as a whole.
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
from iosig.warehouse.sources.recorder.calls import Rank, Run, sifted
from iosig.warehouse.sources.recorder.files import Files
from iosig.warehouse.sources.recorder.requests import MOST_LEVELS, within
from iosig.warehouse.sources.recorder.source import opener

Ints = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]

SIGNATURE = ("level", "module", "function", "arguments")
#: the program's own functions: no I/O by themselves, and what they call is the program's doing
_OWN_MODULE = "FTRACE"
_REMEDY = "Fetch the trace anew, with all of its files: one that is not whole cannot be compressed faithfully."


@dataclass(frozen=True, slots=True)
class SignedRank:
    """The calls of a rank: the signature of each in order as a row of `signatures`, and when it began and was over.

    signatures: level Int64, module, function, arguments String; distinct, in the order of their first calls.
    order (calls). start_s, end_s (calls): seconds since the trace's clock began.
    """

    rank: int
    signatures: pl.DataFrame
    order: Ints
    start_s: Reals
    end_s: Reals


@contextmanager
def opened(path: Path) -> Iterator[Run[SignedRank]]:
    """Open the trace that lies in a folder, an archive of one, or a single text file: all ranks of it are there.

    Raises InputRefused where it has no file of a rank; decoding does so where a rank cannot be read wholly.
    """
    with recorder_files.opened(path) as (form, files):
        run = _of_raw(files) if form == "raw" else _of_rows(opener(form)(files))
        yield replace(run, ranks=_whole(run.ranks, run.process_count))


def _of_raw(files: Files) -> Run[SignedRank]:
    run = raw.opened_coded(files)

    def decode(rank: int) -> SignedRank:
        with _of_rank(rank):
            found = run.decode(rank)
            signed = _signed(rank, found.signatures, found.order, found.start_s, found.end_s)
            _check(sifted(Rank(_timed(signed)), rank))
        return signed

    return _decoded_by(decode, run)


def _of_rows(run: Run[Rank]) -> Run[SignedRank]:
    def decode(rank: int) -> SignedRank:
        with _of_rank(rank):
            found = run.decode(rank)
            _check(sifted(found, rank))
        calls = found.calls.select(*SIGNATURE, "start_s", "end_s")
        order = np.arange(calls.height, dtype=np.int32)
        return _signed(rank, calls, order, calls["start_s"].to_numpy(), calls["end_s"].to_numpy())

    return _decoded_by(decode, run)


def _decoded_by(decode: Callable[[int], SignedRank], run: Run[Any]) -> Run[SignedRank]:
    return Run(run.version, run.process_count, run.started_at, run.resolution_s, run.ranks, decode)


def _whole(ranks: Sequence[int], process_count: int) -> range:
    """Return all ranks of a run; refuse a trace that does not have each, or has others."""
    lacking = next((rank for rank, named in enumerate(ranks) if rank != named), len(ranks))
    if lacking < process_count:
        raise InputRefused(f"The trace has no file of rank {lacking} of {process_count}.", _REMEDY)
    if len(ranks) > process_count:
        raise InputRefused(f"The trace has {process_count} ranks, and files of rank {ranks[process_count]}.", _REMEDY)
    return range(process_count)


@contextmanager
def _of_rank(rank: int) -> Iterator[None]:
    """Name the rank in whatever is refused of it."""
    try:
        yield
    except InputRefused as fault:
        raise InputRefused(f"Rank {rank} cannot be read wholly. {fault.reason}", fault.remedy) from fault


def _check(found: Rank) -> None:
    if not found.refused.is_empty():
        line, reason = found.refused.select("line", "reason").row(0)
        said = reason.split(": ", 1)[-1]
        raise InputRefused(f"Call {line}: {said} It is one of {found.refused.height} such.", _REMEDY)
    if found.shortened_count:
        raise InputRefused(
            f"Of {found.shortened_count} calls, only the first ten arguments are in the export.",
            "Use the raw trace, or what recorder2text makes of it.",
        )


def _timed(signed: SignedRank) -> pl.DataFrame:
    """Return when the calls were, with as much of them as can be said where their times are impossible."""
    count = signed.order.size
    unknown = pl.Series([""], dtype=pl.String).new_from_index(0, count)
    times = {"start_s": signed.start_s, "end_s": signed.end_s}
    return pl.DataFrame({"call": pl.int_range(count, eager=True), "function": unknown, "arguments": unknown, **times})


def _signed(rank: int, signatures: pl.DataFrame, order: Ints, start_s: Reals, end_s: Reals) -> SignedRank:
    """Return calls whose signatures may be equal, of no call, or in another order than that of their first calls."""
    first = np.full(signatures.height, order.size, np.int64)
    # Where a place is assigned to more than once, the last holds: the first call.
    first[order[::-1]] = np.arange(order.size - 1, -1, -1)
    made = np.argsort(first, kind="stable")[: np.count_nonzero(first < order.size)]
    rows = signatures.select(pl.col("level").cast(pl.Int64), *SIGNATURE[1:])[made]
    number = np.zeros(signatures.height, np.int32)
    number[made] = np.arange(made.size)
    # Equal rows have equal hashes: all hashes different is proof enough, and is quick.
    if rows.hash_rows().n_unique() < rows.height:
        rows, same = _distinct(rows)
        number[made] = same
    return SignedRank(rank, rows, number[order], start_s, end_s)


def _distinct(rows: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """Return rows without those that come again, and for each row which of these it is."""
    known = rows.unique(maintain_order=True)
    numbered = known.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int32))
    found = rows.join(numbered, on=SIGNATURE, how="left", maintain_order="left")
    return known, found["number"].to_numpy()


def outer(signed: SignedRank) -> SignedRank:
    """Return the calls that the program made itself, without those made within another traced I/O or MPI call.

    The program's own functions are left out, and what they call is the program's call. As no call around them is
    left, all are of level 0.
    """
    is_own = (signed.signatures["module"] == _OWN_MODULE).to_numpy()
    levels = np.minimum(signed.signatures["level"].to_numpy(), MOST_LEVELS)
    if not is_own.any() and not levels.any():
        return signed
    kept = ~(within(levels[signed.order], ~is_own[signed.order]) | is_own[signed.order])
    flat = signed.signatures.with_columns(level=pl.lit(0, pl.Int64))
    return _signed(signed.rank, flat, signed.order[kept], signed.start_s[kept], signed.end_s[kept])
