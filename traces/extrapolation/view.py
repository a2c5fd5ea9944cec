"""Convert compressed traces to the form of a traced run: requests of all ranks, as servers receive them.

A compressed trace has no requests of single ranks. Simultaneous requests of its ranks become one request (rank -1), at
the mean times of the calls. Every analysis of a traced run (throughput, period, class) therefore also applies to an
extrapolated trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces

if TYPE_CHECKING:
    import polars as pl

    from iosig.transforms.traces.requests import CallFormats
    from iosig.transforms.traces.trace import CompressedTrace
    from iosig.warehouse.sources.protocol import Batch

_REMEDY = "Write the file again with iosig compress or iosig extrapolate."
#: rank of requests that belong to all ranks together
_ALL_RANKS = -1


def read(path: Path) -> CompressedTrace:
    """Read a compressed trace; raise InputRefused if the file is not a compressed trace, or is inconsistent."""
    # start the reading process during the import of the modules that interpret the rows, which takes as long
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(compressed_traces.read, path)
        from iosig.transforms.traces.frames import from_frame
    rows, metadata = reading.result()
    with refuse_unusable():
        return from_frame(rows, int(metadata["process_count"]))


@contextmanager
def refuse_unusable() -> Iterator[None]:
    """Convert errors of a compressed trace into InputRefused."""
    try:
        yield
    except ValueError as error:
        raise InputRefused(f"The compressed trace cannot be used: {error}", _REMEDY) from error


def recorder_forms() -> CallFormats:
    """Return Recorder's log formats of the functions that access files."""
    from iosig.transforms.traces.requests import CallFormat, CallFormats
    from iosig.warehouse.sources.recorder import requests

    places = ("file_at", "count_at", "size_at", "type_at", "path_at")
    formats = {
        row["function"]: CallFormat(
            row["layer"],
            row["operation"],
            **{place: row[place] for place in places},
            surplus=int(row["function"] in requests.WITH_FINAL_NUL),
        )
        for row in requests.list_forms().iter_rows(named=True)
    }
    return CallFormats(formats, requests.TYPE_BYTES)


def batches(path: Path) -> Iterator[Batch]:
    """Yield a compressed trace like a landed traced run: simultaneous requests of all ranks become one."""
    from iosig.transforms.traces.timelines import compute_timeline
    from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_MODULES, TRACE_RECORDS, TRACE_REQUESTS, TRACES
    from iosig.warehouse.sources.rows import traced

    trace = read(path)
    with refuse_unusable():
        timeline = compute_timeline(trace, recorder_forms())
    modules = timeline.intervals["module"].unique().sort()
    run = {"tracer": "recorder", "process_count": trace.process_count, "duration_s": timeline.duration_s}
    yield traced.build_batch(TRACES, run)
    if modules.is_empty():
        return
    yield traced.build_batch(
        TRACE_MODULES, {"module": modules, "outcome": "sound", "is_partial": False, "record_count": 1}
    )
    yield traced.build_batch(TRACE_FILES, {"file_number": 0})
    yield traced.build_batch(TRACE_RECORDS, _records(timeline.intervals).to_dict())
    for first, part in enumerate(timeline.intervals.iter_slices(traced.BATCH_ROWS)):
        yield traced.build_batch(TRACE_REQUESTS, _requests(part, first * traced.BATCH_ROWS))


def _requests(intervals: pl.DataFrame, first: int) -> dict[str, object]:
    import polars as pl

    return {
        "request": pl.int_range(first, first + intervals.height, eager=True),
        "rank": _ALL_RANKS,
        "file_number": 0,
        "request_bytes": intervals["bytes"],
        "is_nested": False,
        "is_async": False,
        **{name: intervals[name] for name in ("module", "direction", "start_s", "end_s")},
    }


def _records(intervals: pl.DataFrame) -> pl.DataFrame:
    """Return the totals of each module's requests."""
    import polars as pl

    bytes_, began, ceased = pl.col("bytes"), pl.col("start_s"), pl.col("end_s")
    sums = []
    for direction, participle in (("read", "read"), ("write", "written")):
        is_direction = pl.col("direction") == direction
        is_known = bytes_.filter(is_direction).null_count() == 0
        sums += [
            pl.when(is_known)
            .then(bytes_.filter(is_direction).sum())
            .round()
            .cast(pl.Int64)
            .alias(f"{participle}_bytes"),
            pl.col("request_count").filter(is_direction).sum().alias(f"{direction}_count"),
            began.filter(is_direction).min().alias(f"{direction}_start_s"),
            ceased.filter(is_direction).max().alias(f"{direction}_end_s"),
        ]
    counted = intervals.group_by("module").agg(sums).sort("module")
    return counted.with_columns(file_number=pl.lit(0), rank=pl.lit(_ALL_RANKS))


# ---- ranks as people write them

_SPAN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


def spans(text: str, process_count: int) -> tuple[range, ...]:
    """Parse a list of ranks such as `0-31,100` into ranges, in its order.

    Raises UsageError if the list is invalid, or names ranks outside `process_count`.
    """
    ranges: list[range] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"--ranks {text}: {part!r} is not a rank or range; write 0-7 or 0-7,12.")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if beyond := [span[-1] for span in ranges if span.stop > process_count]:
        raise UsageError(f"The trace has the ranks 0 to {process_count - 1:,}; {beyond[0]:,} is out of range.")
    return tuple(ranges)
