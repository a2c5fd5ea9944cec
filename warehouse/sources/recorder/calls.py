"""Build the rows of calls, requests and the run from any form of a Recorder trace."""

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
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, reject_frame, rejects

#: Recorder's function types, indexed by the number that its tools print
MODULES = ("POSIX", "MPIIO", "MPI", "HDF5", "FTRACE")
#: maximum number of calls per rank; all calls of a rank are in memory together
MAX_CALLS = 1 << 24
#: maximum plausible duration of a run [s]
MAX_DURATION_S = 10 * 366 * 86400.0
_REMEDY = "Fetch the trace again, with all of its files."
_ORDERLESS = "The call starts before the previous call, but Recorder logs calls in order of their starts."
_ENDLESS = "The call ends before it starts: its time stamp wrapped around, or is damaged."
_UNTIMELY = "The call's times are beyond ten years."

_Decoded = TypeVar("_Decoded")


@dataclass(frozen=True, slots=True)
class Rank:
    """The calls of one rank, refused lines, and the number of calls with missing arguments."""

    calls: pl.DataFrame
    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REJECT_SCHEMA))
    shortened_count: int = 0


@dataclass(frozen=True, slots=True)
class Run(Generic[_Decoded]):
    """An open trace with its metadata, its ranks, and the function that reads a rank.

    `resolution_s` is None for single-precision times, because their resolution depends on the end of the run.
    """

    version: str | None
    process_count: int
    started_at: datetime | None
    resolution_s: float | None
    ranks: Sequence[int]
    decode: Callable[[int], _Decoded]


def build_calls(rank: int, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Build the rows of `trace_calls` for a rank, numbered in order unless `columns` has `call`."""
    height = len(columns["start_s"])
    values = {"rank": rank, "call": np.arange(height)} | dict(columns)
    return traced.build_batch(TRACE_CALLS, values).rows


def split_texts(content: bytes, ends: npt.NDArray[np.int64]) -> pl.Series:
    r"""Split text at byte offsets, and decode it; bytes that are not UTF-8 become `\x..`."""
    starts = np.concatenate(([0], ends))
    try:
        # Each piece ends with a space or a line end, so no character can extend over two pieces.
        content.decode("utf-8")
    except UnicodeDecodeError:
        pieces = (content[begin:end] for begin, end in pairwise(starts.tolist()))
        return pl.Series([piece.decode("utf-8", "backslashreplace") for piece in pieces], dtype=pl.String)
    array = pa.LargeStringArray.from_buffers(ends.size, pa.py_buffer(starts), pa.py_buffer(content))
    return pl.Series(pl.from_arrow(array))


def check_count(count: int) -> None:
    """Raise InputRefused if a rank has more than MAX_CALLS calls."""
    if count > MAX_CALLS:
        raise InputRefused(f"It has {count} calls; the maximum per rank is {MAX_CALLS}.", "Trace fewer calls.")


def read_run(run: Run[Rank]) -> Iterator[Batch]:
    """Yield all rows of a trace, with several ranks per batch; unreadable ranks are skipped and reported.

    Raises InputRefused if no rank can be read.
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
            tally.skip(rank, InputRefused(f"The trace has {run.process_count} ranks.", _REMEDY))
            continue
        try:
            decoded = refuse_bad_times(run.decode(rank), rank)
        except InputRefused as fault:
            tally.skip(rank, fault)
            continue
        tally.add(decoded)
        if not decoded.calls.is_empty():
            yield decoded.calls


def _chunks(ranks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Concatenate whole ranks until they fill a batch."""
    pending: list[pl.DataFrame] = []
    height = 0
    for calls_of_rank in ranks:
        pending.append(calls_of_rank)
        height += calls_of_rank.height
        if height >= traced.BATCH_ROWS:
            yield pl.concat(pending, rechunk=True)
            pending, height = [], 0
    if pending:
        yield pl.concat(pending, rechunk=True)


def refuse_bad_times(decoded: Rank, rank: int) -> Rank:
    """Refuse calls with implausible times: too late for any run, ending before their start, or out of order."""
    start_s, end_s = (decoded.calls[name].to_numpy() for name in ("start_s", "end_s"))
    is_untimely = ~((start_s >= 0) & (start_s <= MAX_DURATION_S) & (end_s >= 0) & (end_s <= MAX_DURATION_S))
    ends_early = ~is_untimely & (end_s < start_s)
    is_good = ~(is_untimely | ends_early)
    latest = np.maximum.accumulate(np.where(is_good, start_s, 0.0))
    is_good[1:] &= start_s[1:] >= latest[:-1]
    if is_good.all():
        return decoded
    reasons = np.select([is_untimely, ends_early], [_UNTIMELY, _ENDLESS], _ORDERLESS)[~is_good]
    bad = decoded.calls.filter(~pl.Series(is_good)).with_columns(reason=pl.Series(reasons, dtype=pl.String))
    refused = bad.select(
        line=pl.col("call") + 1,
        reason=pl.format(f"Rank {rank}: {{}}", "reason"),
        remedy=pl.lit("Trace again; the call is skipped, so the rank is incomplete."),
        raw=pl.format("{} {} {} ( {} )", "start_s", "end_s", "function", "arguments"),
    )
    good = decoded.calls.filter(pl.Series(is_good))
    return Rank(good, pl.concat([decoded.refused, refused.cast(REJECT_SCHEMA)]), decoded.shortened_count)


@dataclass(slots=True)
class _Tally:
    """Numbers of calls and ranks that were read or refused."""

    run: Run[Rank]
    read_count: int = 0
    record_counts: Counter[str] = field(default_factory=Counter)
    last_s: float = 0.0
    shortened_count: int = 0
    refused: list[pl.DataFrame] = field(default_factory=list)
    skipped: list[tuple[int, InputRefused]] = field(default_factory=list)

    @property
    def first_fault(self) -> InputRefused | None:
        return self.skipped[0][1] if self.skipped else None

    def add(self, decoded: Rank) -> None:
        self.read_count += 1
        self.shortened_count += decoded.shortened_count
        if not decoded.refused.is_empty():
            self.refused.append(decoded.refused)
        if not decoded.calls.is_empty():
            counts = decoded.calls.group_by("module").len()
            self.record_counts.update(dict(counts.iter_rows()))
            self.last_s = max(self.last_s, float(decoded.calls["end_s"].max()))  # type: ignore[arg-type]

    def skip(self, rank: int, fault: InputRefused) -> None:
        reason = f"Rank {rank} is skipped. {fault.reason}"
        self.skipped.append((rank, InputRefused(reason, fault.remedy)))

    def ended_at(self) -> datetime | None:
        started_at = self.run.started_at
        return started_at + timedelta(seconds=self.last_s) if started_at else None

    def finish(self, ended_at: datetime | None) -> Iterator[Batch]:
        """Yield the rows of the run and of its modules, and all refused rows."""
        missing = _describe_missing(self.run)
        yield traced.build_batch(
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
        faults = [(None, fault.reason, fault.remedy, None) for _, fault in self.skipped]
        if missing:
            faults.append((None, f"{missing} of {self.run.process_count} without a file.", _REMEDY, None))
        if faults:
            yield rejects(faults)
        yield from map(reject_frame, self.refused)

    def _resolution_s(self) -> float:
        if self.run.resolution_s is not None:
            return self.run.resolution_s
        return float(np.spacing(np.float32(self.last_s)))

    def _modules(self, missing: str, ended_at: datetime | None) -> Iterator[Batch]:
        is_whole = not (missing or self.skipped or self.refused)
        names = [name for name in MODULES if self.record_counts[name]]
        if names:
            columns = {
                "module": names,
                "outcome": "sound" if is_whole else "partial",
                "reason": " ".join(self._reasons(missing)) or None,
                "is_partial": False,
                "record_count": [self.record_counts[name] for name in names],
            }
            yield traced.build_batch(TRACE_MODULES, columns, ended_at)

    def _reasons(self, missing: str) -> Iterator[str]:
        if missing:
            yield f"{missing} of {self.run.process_count} without a file."
        if self.skipped:
            ranks = _format_ranks([rank for rank, _ in self.skipped])
            yield f"Skipped as unreadable: ranks {ranks}."
        if count := sum(frame.height for frame in self.refused):
            yield f"Refused: {count} calls."
        if self.run.resolution_s is None:
            yield (
                f"Times are of single precision, coarser than Recorder's: to {self._resolution_s():.1e} s at the "
                "run's end. The order of the calls is that of the trace."
            )
        if self.shortened_count:
            yield f"Of {self.shortened_count} calls, only the first ten arguments are in the trace."


def _describe_missing(run: Run[Rank]) -> str:
    """Describe the ranks without a file; return "" if all have one."""
    edges = [-1, *sorted({rank for rank in run.ranks if rank < run.process_count}), run.process_count]
    gaps = [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]
    return f"Ranks {_format_spans(gaps)}" if gaps else ""


def _format_ranks(ranks: Sequence[int]) -> str:
    spans: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][1] == rank - 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return _format_spans(spans)


def _format_spans(spans: Sequence[tuple[int, int]]) -> str:
    shown = [f"{first}" if first == last else f"{first} to {last}" for first, last in spans[:20]]
    return ", ".join(shown) + (" and more" if len(spans) > 20 else "")
