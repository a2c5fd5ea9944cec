"""Derive requests and totals from the flushes of a TMIO trace, and check them against each other.

TMIO states a phase's mean rate `b_rank_avr` in bytes per second, and the phase's start and end in seconds. The rate
times the duration is the phase's bytes. (`b_rank_sum` adds the rates of a phase's operations, and is not a volume.)
Asynchronous phases have two records of the same bytes: `_t` lasts until the end of the transfer, `_b` until the program
waited for it. `_t` is landed, and `_b` only if its flush has no `_t`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iosig.warehouse.contracts.traces import TRACE_MODULES, TRACE_REQUESTS, TRACES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.rows.rejects import reject_frame
from iosig.warehouse.sources.tmio.parts import IO_TIME, UNSTATED, Part, Reals, Refusal, read_parts

_MODULE = "MPIIO"
_REMEDY = "Trace or export the run again. The totals do not include refused requests."
#: relative precision of totals in JSON
_TOTAL_PRECISION = 0.005
#: precision of times in JSON [s]
_TIME_PRECISION_S = 1e-6
_EXACT = 1e-9
#: faults of requests, indexed by the codes from `check_requests`
FAULTS = (
    "its rate or its bytes are not finite",
    "its start is not a finite number",
    "its end is not a finite number",
    "it ends before it starts",
    "its rate or its bytes are negative",
)


@dataclass(slots=True)
class _Mode:
    """Stated and landed totals of one mode, over all flushes."""

    stated: dict[str, float] = field(default_factory=dict)
    landed_bytes: float = 0.0
    allowance_bytes: float = 0.0
    request_count: int = 0
    unknown_count: int = 0

    def disagreement(self, mode: str) -> str | None:
        """Describe how the stated total differs from the sum of requests, beyond rounding; None if they agree."""
        stated = self.stated.get("total_bytes")
        if stated is None:
            return None
        difference = self.landed_bytes - stated
        # Requests of unknown size may explain missing bytes.
        if difference > self.allowance_bytes or (-difference > self.allowance_bytes and not self.unknown_count):
            return f"{mode} states {stated:.6g} bytes, its requests add up to {self.landed_bytes:.6g}"
        return None


@dataclass(slots=True)
class _Run:
    """State of the traced run while it is read."""

    modes: dict[str, _Mode] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refused_count: int = 0
    part_count: int = 0
    numbers: traced.Numbering = field(default_factory=traced.Numbering)
    rank_count: float = 0
    io_rank_count: float = 0
    last_end_s: float = -np.inf


@dataclass(frozen=True, slots=True, eq=False)
class _ValidRequests:
    """The valid requests of a part; unknown bytes are NaN.

    The requests are collected as arrays, because a data frame per flush would dominate the run time.
    """

    mode: str
    start_s: Reals
    end_s: Reals
    moved_bytes: Reals

    @property
    def count(self) -> int:
        """Number of valid requests in the part."""
        return self.start_s.size


def read(path: Path) -> Iterator[Batch]:
    """Yield the requests of a trace in order, then the rows of the run."""
    run = _Run()
    waiting: list[_ValidRequests] = []
    refused: list[pl.DataFrame] = []
    waiting_count = refused_count = 0
    for part in _drop_duplicates(read_parts(path), run):
        good, bad = _check_part(part, run) if isinstance(part, Part) else (None, _convert_refusal(part, run))
        if good is not None:
            waiting.append(good)
            waiting_count += good.count
        if bad is not None:
            refused.append(bad)
            refused_count += bad.height
        if waiting_count >= traced.BATCH_ROWS:
            yield from _requests(waiting, run)
            waiting, waiting_count = [], 0
        if refused_count >= traced.BATCH_ROWS:
            yield reject_frame(pl.concat(refused))
            refused, refused_count = [], 0
    if waiting:
        yield from _requests(waiting, run)
    if refused:
        yield reject_frame(pl.concat(refused))
    if not run.part_count:
        raise InputRefused("No flush of the trace can be read.", "Export or fetch the trace again.")
    yield _trace(run)
    yield _module(run)


def _drop_duplicates(parts: Iterator[Part | Refusal], run: _Run) -> Iterator[Part | Refusal]:
    """Drop second records of the same requests: keep `_b` of a direction only if the flush has no requests in `_t`.

    A flush ends if a mode repeats.
    """
    request_counts: dict[str, int] = {}
    pending: dict[str, Part] = {}
    for part in parts:
        if isinstance(part, Refusal):
            yield part
            continue
        if part.mode in request_counts:
            yield from _resolve_pending(request_counts, pending, run)
            request_counts, pending = {}, {}
        request_counts[part.mode] = part.start_s.size
        if part.mode.endswith("_async_b"):
            pending[part.mode] = part
        else:
            yield part
    yield from _resolve_pending(request_counts, pending, run)


def _resolve_pending(request_counts: dict[str, int], pending: dict[str, Part], run: _Run) -> Iterator[Part]:
    for mode, part in pending.items():
        landed = count_transfers(mode, request_counts)
        if not landed:
            yield part
        elif landed != part.start_s.size:
            run.notes.append(f"{mode} has {part.start_s.size} requests, but {landed} of the same were landed")


def count_transfers(mode: str, request_counts: Mapping[str, int]) -> int:
    """Count the requests of a flush that are recorded in mode `_t`, so that mode `_b` repeats them.

    mode: a mode with the suffix `_b`. The suffix `_t` may be missing. request_counts: the flush's requests per mode.
    """
    return max(request_counts.get(mode.removesuffix("_b") + end, 0) for end in ("_t", ""))


def _convert_refusal(refusal: Refusal, run: _Run) -> pl.DataFrame:
    run.refused_count += 1
    return pl.DataFrame(
        {"line": [refusal.line], "reason": [refusal.reason], "remedy": [_REMEDY], "raw": [refusal.raw]},
        schema_overrides={"raw": pl.String},
    )


def _check_part(part: Part, run: _Run) -> tuple[_ValidRequests | None, pl.DataFrame | None]:
    """Separate the valid requests in a part from refused ones, and update the run's totals."""
    run.part_count += 1
    if part.mode == IO_TIME:
        for name, value in part.stated.items():
            run.times[name] = run.times.get(name, 0.0) + value
        return None, None
    mode = run.modes.setdefault(part.mode, _Mode())
    _update_stated(mode, part, run)
    if not part.start_s.size:
        # Shortcut, since most flushes have no requests in most modes.
        _update_landed(mode, part, np.zeros(0, bool), part.start_s, run)
        return None, None
    fault, request_bytes = check_requests(part)
    good = fault < 0
    valid_bytes = request_bytes[good]
    unknown = np.isnan(valid_bytes)
    _update_landed(mode, part, good, np.where(np.isnan(request_bytes), 0.0, request_bytes), run)
    mode.unknown_count += int(unknown.sum())
    run.refused_count += int((~good).sum())
    return _ValidRequests(part.mode, part.start_s[good], part.end_s[good], valid_bytes), _refuse_requests(part, fault)


def check_requests(part: Part) -> tuple[NDArray[np.int64], Reals]:
    """Return the fault code (index in FAULTS, -1 without a fault) and the bytes of each request (n) in a part.

    The bytes of a valid request are NaN if unknown; the bytes of an invalid one are meaningless.
    """
    duration_s = part.end_s - part.start_s
    with np.errstate(all="ignore"):
        request_bytes = part.moved_bytes if part.moved_bytes is not None else part.rate_bytes_per_s * duration_s
        measured = part.rate_bytes_per_s if part.moved_bytes is None else request_bytes
        shortest_s, longest_s = duration_s.min(initial=np.inf), duration_s.max(initial=0)
        # Shortcut for valid parts, since a NaN or an infinite time fails one of these tests.
        if (
            shortest_s >= 0
            and longest_s < np.inf
            and measured.min(initial=0) >= 0
            and request_bytes.max(initial=0) < np.inf
        ):
            return np.full(request_bytes.size, -1), _mask_unknown(
                part, duration_s, request_bytes
            ) if shortest_s == 0 else request_bytes
    is_invalid = (
        ~np.isfinite(measured) | ~np.isfinite(request_bytes),
        ~np.isfinite(part.start_s),
        ~np.isfinite(part.end_s),
        duration_s < 0,
        measured < 0,
    )
    fault = np.select([*is_invalid[1:3], is_invalid[0], *is_invalid[3:]], [1, 2, 0, 3, 4], -1)
    return fault, _mask_unknown(part, duration_s, request_bytes)


def _mask_unknown(part: Part, duration_s: Reals, request_bytes: Reals) -> Reals:
    """Replace the bytes by NaN in requests with a rate but no duration, since the duration was rounded to 0."""
    if part.moved_bytes is not None:
        return request_bytes
    return np.where((duration_s == 0) & (part.rate_bytes_per_s != 0), np.nan, request_bytes)


def _update_stated(mode: _Mode, part: Part, run: _Run) -> None:
    for name, value in part.stated.items():
        if name.startswith("total_") and name != "total_number_of_ranks":
            mode.stated[name] = mode.stated.get(name, 0.0) + value
    run.rank_count = max(run.rank_count, part.stated.get("total_number_of_ranks", 0))
    run.io_rank_count = max(run.io_rank_count, part.stated.get("number_of_ranks", 0))


def _update_landed(mode: _Mode, part: Part, good: np.ndarray, request_bytes: np.ndarray, run: _Run) -> None:
    mode.landed_bytes += float(request_bytes[good].sum())
    mode.request_count += int(good.sum())
    stated = abs(part.stated.get("total_bytes", 0.0))
    if part.is_rounded:
        mode.allowance_bytes += _TOTAL_PRECISION * stated + _TIME_PRECISION_S * float(part.rate_bytes_per_s[good].sum())
    else:
        mode.allowance_bytes += _EXACT * stated
    if good.any():
        run.last_end_s = max(run.last_end_s, float(part.end_s[good].max()))


def _refuse_requests(part: Part, fault: np.ndarray) -> pl.DataFrame | None:
    places = np.flatnonzero(fault >= 0)
    if not places.size:
        return None
    faults = pl.Series(FAULTS).gather(fault[places])
    numbers = {"start": part.start_s, "end": part.end_s, "rate": part.rate_bytes_per_s}
    frame = pl.DataFrame(
        {"place": places + 1, "word": faults} | {name: values[places] for name, values in numbers.items()}
    )
    return frame.select(
        line=pl.lit(part.line, pl.Int64),
        reason=pl.format("{}: request {}: {}.", pl.lit(part.mode), "place", "word"),
        remedy=pl.lit(_REMEDY),
        raw=pl.format("start {}, end {}, rate {}", "start", "end", "rate"),
    )


def _concat(pieces: Sequence[_ValidRequests]) -> pl.DataFrame:
    place = np.repeat(np.arange(len(pieces)), [piece.count for piece in pieces])
    directions = [UNSTATED if piece.mode == UNSTATED else piece.mode.split("_")[0] for piece in pieces]
    return pl.DataFrame(
        {
            "start_s": np.concatenate([piece.start_s for piece in pieces]),
            "end_s": np.concatenate([piece.end_s for piece in pieces]),
            "request_bytes": pl.Series(np.concatenate([piece.moved_bytes for piece in pieces])).fill_nan(None),
            "direction": pl.Series(directions).gather(place),
            "is_async": np.array(["async" in piece.mode for piece in pieces])[place],
        }
    )


def _requests(pieces: Sequence[_ValidRequests], run: _Run) -> Iterator[Batch]:
    return run.numbers.rows(TRACE_REQUESTS, _concat(pieces), module=_MODULE, rank=-1, is_nested=False)


def _trace(run: _Run) -> Batch:
    """Build the row of the run; its duration is the one in rank 0's flushes, or extends to the last request's end."""
    ranks = run.rank_count or run.io_rank_count
    duration_s = max(run.last_end_s, run.times.get("delta_t_rank0", -np.inf))
    return traced.build_batch(
        TRACES,
        {
            "tracer": "tmio",
            "process_count": int(ranks) if 0 < ranks < 1 << 53 else None,
            "duration_s": float(duration_s) if duration_s >= 0 and np.isfinite(duration_s) else None,
        },
    )


def _module(run: _Run) -> Batch:
    disagreements = [mode.disagreement(name) for name, mode in run.modes.items()]
    reasons = [*run.notes, *(reason for reason in disagreements if reason)]
    if run.refused_count:
        reasons.insert(0, f"{run.refused_count} requests or flushes were refused")
    sums = {f"{name}.{key}": value for name, mode in run.modes.items() for key, value in sorted(mode.stated.items())}
    sums |= {f"{IO_TIME}.{name}": value for name, value in sorted(run.times.items())}
    finite = {name: value for name, value in sums.items() if np.isfinite(value)}
    return traced.build_batch(
        TRACE_MODULES,
        {
            "module": _MODULE,
            "outcome": "partial" if reasons else "sound",
            "reason": "; ".join(reasons[:10]) + "." if reasons else None,
            "is_partial": False,
            "record_count": run.numbers.counts[TRACE_REQUESTS.name],
            "counters": json.dumps(finite) if finite else None,
        },
    )
