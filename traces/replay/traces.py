"""Open traces for replay, and read the calls of a rank."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.traces.extrapolation import view
from iosig.traces.extrapolation.compression import compress_trace
from iosig.transforms.traces import expansion
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder.signatures import SignedRank, select_outer_calls

#: maximum number of selected ranks, more than one machine can replay
MAX_RANKS = 1 << 16


def open_trace(path: Path, *, nested: bool = False) -> tuple[CompressedTrace, float | None]:
    """Open a trace; return the trace and the traced run's duration [s], None if unknown.

    A compressed trace is used unchanged. A Recorder trace is compressed first: its outer calls, or all with `nested`.
    Raises InputRefused for other files, and for files that cannot be read.
    """
    if path.is_file() and compressed_traces.is_compressed_trace(path):
        return view.read(path), None
    return _compress_recorder_trace(path, nested)


def _compress_recorder_trace(path: Path, nested: bool) -> tuple[CompressedTrace, float]:
    end_s = 0.0

    def select_replayed_calls(signed: SignedRank) -> SignedRank:
        nonlocal end_s
        end_s = max(end_s, float(signed.end_s.max(initial=0.0)))
        # the calls of HDF5 to lower layers are replayed, HDF5's own are not
        is_layered = nested or (signed.signatures["module"] == "HDF5").any()
        return signed if is_layered else select_outer_calls(signed)

    return compress_trace(path, of_rank=select_replayed_calls), end_s


def list_calls(trace: CompressedTrace, rank: int) -> pl.DataFrame:
    """Return the calls of one rank in order, as call, node, level, module, function, arguments, start_s, end_s.

    Raises InputRefused if the trace is inconsistent, or a rank makes more calls than memory holds.
    """
    try:
        return expansion.rank_calls(trace, rank)
    except ValueError as error:
        raise InputRefused(f"Rank {rank} cannot be expanded: {error}", "Compress or extrapolate it again.") from error


def place_in_class(trace: CompressedTrace, rank: int) -> tuple[int, int]:
    """Return a rank's class number and its index within the class; (-1, 0) without a class."""
    for number, rank_class in enumerate(trace.classes):
        before = 0
        for ranks in rank_class.ranks:
            place = expansion.find_index(ranks, rank)
            if place is not None:
                index = 0
                for at, count in zip(place, ranks.counts, strict=True):
                    index = index * count + at
                return number, before + index
            before += ranks.size
    return -1, 0


def parse_ranks(text: str | None, process_count: int) -> tuple[int, ...]:
    """Return the ranks in a list such as `0-31,100`, ascending; None selects all ranks of the trace.

    Raises UsageError if the list is invalid, has too many ranks, or ranks outside the trace.
    """
    ranges = (range(process_count),) if text is None else view.spans(text, process_count)
    if sum(map(len, ranges)) > MAX_RANKS:
        count = sum(map(len, ranges))
        raise UsageError(
            f"{count:,} ranks exceed the maximum for one machine; choose up to {MAX_RANKS:,} with --ranks."
        )
    return tuple(sorted({rank for span in ranges for rank in span}))
