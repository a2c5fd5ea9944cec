"""Compute the throughput of a traced run by rank, host, file or storage target, from its requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import polars as pl

from iosig.estimates.networks.stripes import split_by_target
from iosig.transforms.arrays import Reals
from iosig.transforms.throughput import even_values, signals
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.errors import UsageError

By = Literal["rank", "host", "file", "ost"]

_MODULE = ["module", "direction", "is_async"]
_MOVED = ["request_bytes", "start_s", "end_s"]
#: maximum values of all signals together (1 GB)
_MAX_STEPS = 1 << 27


def split_throughput(
    requests: Sequence[pl.LazyFrame],
    files: pl.DataFrame,
    duration_s: float | None,
    by: By,
    params: signals.SignalParams,
) -> pl.DataFrame:
    """Compute the rate in each step, per module, direction and rank, host, file or target.

    requests: rows of `trace_requests`, scanned twice, frame by frame. files: rows of `trace_files`. Requests are split
    at stripe boundaries. Columns: module, direction, is_async, the key (NULL if unknown), time_s (right edge),
    interval_s, bytes_per_s.

    Raises UsageError if the signals would not fit in memory.
    """
    keys = [*_MODULE, by]
    ends = [piece.group_by(keys).agg(pl.col("end_s").max()) for piece in _pieces(requests, files, by)]
    if not ends:
        return _rows(pl.DataFrame(schema=dict.fromkeys(keys, pl.String)), np.zeros(0), 1.0, 0)
    subjects = pl.concat(ends).group_by(keys).agg(pl.col("end_s").max()).sort(keys).with_row_index("subject")
    last_s = max(duration_s or 0.0, float(subjects.select(pl.col("end_s").max()).item()), 0.0)
    (interval_s,), (step_count,) = signals.choose_grids(np.array([last_s]), params)
    count = subjects.height
    if count * step_count > _MAX_STEPS:
        raise UsageError(
            f"{count:,} signals of {step_count:,} steps do not fit into memory. Increase traces.interval_s."
        )
    bins = even_values.BinAccumulator(
        even_values.Grid(np.zeros(count), np.full(count, interval_s), np.full(count, step_count, dtype=np.int64))
    )
    for piece in _pieces(requests, files, by):
        rows = piece.join(subjects.select("subject", *keys), on=keys, how="inner", nulls_equal=True)
        volume_bytes, start_s, end_s = (rows[name].to_numpy() for name in _MOVED)
        bins.add(Requests(start_s, end_s, volume_bytes, rows["subject"].cast(pl.Int64).to_numpy(), count))
    return _rows(subjects.select(keys), bins.result().volume_bytes / interval_s, float(interval_s), int(step_count))


def _rows(subjects: pl.DataFrame, bytes_per_s: Reals, interval_s: float, step_count: int) -> pl.DataFrame:
    steps = pl.DataFrame({"time_s": np.arange(1, step_count + 1) * interval_s})
    return subjects.join(steps, how="cross", maintain_order="left_right").with_columns(
        interval_s=pl.lit(interval_s), bytes_per_s=pl.Series(bytes_per_s)
    )


def _pieces(requests: Sequence[pl.LazyFrame], files: pl.DataFrame, by: By) -> Iterator[pl.DataFrame]:
    """Yield the requests with bytes that are not nested, with their key."""
    for frame in requests:
        rows = frame.filter(~pl.col("is_nested"), pl.col("request_bytes") > 0).collect()
        if by == "file":
            names = files.select("file_number", pl.col("path").alias("file"))
            yield rows.join(names, on="file_number", how="left").select(*_MODULE, by, *_MOVED)
        elif by == "ost":
            needed = rows.select(*_MODULE, *_MOVED, "file_number", "offset_bytes", "ost")
            for pieces in split_by_target(needed, files):
                yield pieces.select(*_MODULE, by, *_MOVED)
        else:
            yield rows.select(*_MODULE, by, *_MOVED)
