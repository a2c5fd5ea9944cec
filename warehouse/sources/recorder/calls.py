"""What every form of a Recorder trace becomes: rows of its calls, of its requests, and of the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from iosig.warehouse.contracts.traces import TRACE_CALLS, TRACE_MODULES, TRACES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.recorder.requests import Requests
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.rejects import SCHEMA, reject_frame, rejects

#: Recorder's kinds of functions, by the number that its tools print
MODULES = ("POSIX", "MPIIO", "MPI", "HDF5", "FTRACE")
#: of one rank, all of whose calls are looked at together: more would not fit into memory
MOST_CALLS = 1 << 24
#: no run is as long
MOST_S = 10 * 366 * 86400.0
_REMEDY = "Fetch the trace anew, with all of its files."
_ORDERLESS = "The call begins before the one before it: Recorder logs them in the order of their starts."
_ENDLESS = "The call ends before it begins: its time stamp wrapped around, or is damaged."
_UNTIMELY = "The call's times are beyond ten years."

_Decoded = TypeVar("_Decoded")


@dataclass(frozen=True, slots=True)
class Rank:
    """The calls of one rank, refused lines of its file, and of how many calls arguments are missing."""

    calls: pl.DataFrame
    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    shortened_count: int = 0


@dataclass(frozen=True, slots=True)
class Run(Generic[_Decoded]):
    """A trace that is open: what it says of the run, the ranks of which it has files, and how to read one.

    `resolution_s` is None where the times are of single precision: then it depends on when the run ended.
    """

    version: str | None
    process_count: int
    started_at: datetime | None
    resolution_s: float | None
    ranks: Sequence[int]
    decode: Callable[[int], _Decoded]


def calls(rank: int, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return the calls of a rank as rows of `trace_calls`, numbered in their order unless `call` is given."""
    height = len(columns["start_s"])
    known = {"rank": rank, "call": np.arange(height)} | dict(columns)
    return traced.rows(TRACE_CALLS, known).rows


def texts(content: bytes, ends: npt.NDArray[np.int64]) -> pl.Series:
    r"""Return the pieces of a text that end at these places; bytes that are no UTF-8 show as `\x..`."""
    starts = np.concatenate(([0], ends))
    try:
        # A piece ends with a space or a line end: no character can lie across two of them.
        content.decode("utf-8")
    except UnicodeDecodeError:
        pieces = (content[begin:end] for begin, end in pairwise(starts.tolist()))
        return pl.Series([piece.decode("utf-8", "backslashreplace") for piece in pieces], dtype=pl.String)
    array = pa.LargeStringArray.from_buffers(ends.size, pa.py_buffer(starts), pa.py_buffer(content))
    return pl.Series(pl.from_arrow(array))


def check_count(count: int) -> None:
    """Raise InputRefused where a rank has more calls than can be looked at together."""
    if count > MOST_CALLS:
        raise InputRefused(f"It has {count} calls; {MOST_CALLS} of a rank can be read.", "Trace fewer calls.")


def landed(run: Run[Rank]) -> Iterator[Batch]:
    """Yield all rows of a trace, some ranks at a time; a rank that cannot be read is left out and said to be.

    Raises InputRefused where no rank can be read.
    """
    requests, tally = Requests(), _Tally(run)
    for chunk in _chunks(_read(run, tally)):
        for part in chunk.iter_slices(traced.BATCH_ROWS):
            yield Batch(TRACE_CALLS, part)
        yield from requests.add(chunk)
    if tally.first_fault is not None and not tally.read_count:
        raise tally.first_fault
    ended_at = tally.ended_at()
    for batch in requests.finish():
        day = pl.lit(ended_at.date() if ended_at else None, pl.Date)
        yield Batch(batch.table, batch.rows.with_columns(ended_on=day)) if "ended_on" in batch.rows.columns else batch
    yield from tally.finish(ended_at)


def _read(run: Run[Rank], tally: _Tally) -> Iterator[pl.DataFrame]:
    for rank in run.ranks:
        if rank >= run.process_count:
            tally.leave_out(rank, InputRefused(f"The trace has {run.process_count} ranks.", _REMEDY))
            continue
        try:
            found = sifted(run.decode(rank), rank)
        except InputRefused as fault:
            tally.leave_out(rank, fault)
            continue
        tally.add(found)
        if not found.calls.is_empty():
            yield found.calls


def _chunks(ranks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Put whole ranks together until there are enough rows for a batch."""
    held: list[pl.DataFrame] = []
    height = 0
    for calls_of_rank in ranks:
        held.append(calls_of_rank)
        height += calls_of_rank.height
        if height >= traced.BATCH_ROWS:
            yield pl.concat(held, rechunk=True)
            held, height = [], 0
    if held:
        yield pl.concat(held, rechunk=True)


def sifted(found: Rank, rank: int) -> Rank:
    """Refuse calls whose times cannot be: beyond any run, over before they begin, or out of the trace's order."""
    began, ceased = (found.calls[name].to_numpy() for name in ("start_s", "end_s"))
    is_untimely = ~((began >= 0) & (began <= MOST_S) & (ceased >= 0) & (ceased <= MOST_S))
    is_endless = ~is_untimely & (ceased < began)
    is_fine = ~(is_untimely | is_endless)
    latest = np.maximum.accumulate(np.where(is_fine, began, 0.0))
    is_fine[1:] &= began[1:] >= latest[:-1]
    if is_fine.all():
        return found
    reasons = np.select([is_untimely, is_endless], [_UNTIMELY, _ENDLESS], _ORDERLESS)[~is_fine]
    bad = found.calls.filter(~pl.Series(is_fine)).with_columns(reason=pl.Series(reasons, dtype=pl.String))
    refused = bad.select(
        line=pl.col("call") + 1,
        reason=pl.format(f"Rank {rank}: {{}}", "reason"),
        remedy=pl.lit("Trace again; the call is left out, and the rank is not whole."),
        raw=pl.format("{} {} {} ( {} )", "start_s", "end_s", "function", "arguments"),
    )
    kept = found.calls.filter(pl.Series(is_fine))
    return Rank(kept, pl.concat([found.refused, refused.cast(SCHEMA)]), found.shortened_count)


@dataclass(slots=True)
class _Tally:
    """What was read of a trace so far, and what was not."""

    run: Run[Rank]
    read_count: int = 0
    record_counts: Counter[str] = field(default_factory=Counter)
    last_s: float = 0.0
    shortened_count: int = 0
    refused: list[pl.DataFrame] = field(default_factory=list)
    left_out: list[tuple[int, InputRefused]] = field(default_factory=list)

    @property
    def first_fault(self) -> InputRefused | None:
        return self.left_out[0][1] if self.left_out else None

    def add(self, found: Rank) -> None:
        self.read_count += 1
        self.shortened_count += found.shortened_count
        if not found.refused.is_empty():
            self.refused.append(found.refused)
        if not found.calls.is_empty():
            counts = found.calls.group_by("module").len()
            self.record_counts.update(dict(counts.iter_rows()))
            self.last_s = max(self.last_s, float(found.calls["end_s"].max()))  # type: ignore[arg-type]

    def leave_out(self, rank: int, fault: InputRefused) -> None:
        reason = f"Rank {rank} is left out. {fault.reason}"
        self.left_out.append((rank, InputRefused(reason, fault.remedy)))

    def ended_at(self) -> datetime | None:
        started_at = self.run.started_at
        return started_at + timedelta(seconds=self.last_s) if started_at else None

    def finish(self, ended_at: datetime | None) -> Iterator[Batch]:
        """Yield the rows of the run and of its modules, and all that was refused."""
        missing = _missing(self.run)
        yield traced.rows(
            TRACES,
            {
                "tracer": "recorder",
                "tracer_version": self.run.version,
                "process_count": self.run.process_count,
                "started_at": self.run.started_at,
                "ended_at": ended_at,
                "duration_s": self.last_s,
                "time_resolution_s": self._resolution_s(),
            },
            ended_at,
        )
        yield from self._modules(missing, ended_at)
        faults = [(None, fault.reason, fault.remedy, None) for _, fault in self.left_out]
        if missing:
            faults.append((None, f"{missing} of {self.run.process_count} without any file.", _REMEDY, None))
        if faults:
            yield rejects(faults)
        yield from map(reject_frame, self.refused)

    def _resolution_s(self) -> float:
        if self.run.resolution_s is not None:
            return self.run.resolution_s
        return float(np.spacing(np.float32(self.last_s)))

    def _modules(self, missing: str, ended_at: datetime | None) -> Iterator[Batch]:
        is_whole = not (missing or self.left_out or self.refused)
        names = [name for name in MODULES if self.record_counts[name]]
        if names:
            known = {
                "module": names,
                "outcome": "sound" if is_whole else "partial",
                "reason": " ".join(self._reasons(missing)) or None,
                "is_partial": False,
                "record_count": [self.record_counts[name] for name in names],
            }
            yield traced.rows(TRACE_MODULES, known, ended_at)

    def _reasons(self, missing: str) -> Iterator[str]:
        if missing:
            yield f"{missing} of {self.run.process_count} without any file."
        if self.left_out:
            ranks = _spans([rank for rank, _ in self.left_out])
            yield f"Left out, for they cannot be read: ranks {ranks}."
        if count := sum(frame.height for frame in self.refused):
            yield f"Refused: {count} calls."
        if self.run.resolution_s is None:
            yield (
                f"Times are of single precision, coarser than Recorder's own: to {self._resolution_s():.1e} s at the "
                "run's end. The order of the calls is that of the trace."
            )
        if self.shortened_count:
            yield f"Of {self.shortened_count} calls, only the first ten arguments are in the trace."


def _missing(run: Run[Rank]) -> str:
    """Return the ranks that have no file, in words; empty where all have."""
    edges = [-1, *sorted({rank for rank in run.ranks if rank < run.process_count}), run.process_count]
    gaps = [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]
    return f"Ranks {_joined(gaps)}" if gaps else ""


def _spans(ranks: Sequence[int]) -> str:
    spans: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][1] == rank - 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return _joined(spans)


def _joined(spans: Sequence[tuple[int, int]]) -> str:
    shown = [f"{first}" if first == last else f"{first} to {last}" for first, last in spans[:20]]
    return ", ".join(shown) + (" and more" if len(spans) > 20 else "")
