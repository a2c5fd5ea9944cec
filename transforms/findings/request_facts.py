"""Compute facts of traced runs from individual requests: exact sizes, order, and bytes that are accessed repeatedly.

The resulting frames have one row per trace, or per group of `by`. Traces without requests have no row.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_TRACE = "trace_id"
#: columns that identify the requests of one process to one file
_STREAM = (_TRACE, "module", "direction", "file_number", "rank")
_FILE = (_TRACE, "module", "direction", "file_number")
_KIND = (_TRACE, "module", "direction")


def sizes_and_order(requests: pl.DataFrame, small_bytes: int, by: Sequence[str] = _KIND) -> pl.DataFrame:
    """Count requests, small requests, and sequential and consecutive requests.

    Parameters
    ----------
    requests
        trace_id, module, rank, file_number, direction, offset_bytes, request_bytes, start_s.
    small_bytes
        Size below which a request is small.
    by
        Columns to group by: trace, module and direction, and the file if required.

    Returns
    -------
    pl.DataFrame
        Counts by group; counts of sequential and consecutive requests are NULL if an offset is unknown.

    Notes
    -----
    A sequential request begins at or after the end of the previous request of its process to the same file. A
    consecutive request begins exactly there. Darshan uses the same definitions (darshan-runtime, `POSIX_SEQ_READS`,
    `POSIX_CONSEC_READS`). The first request to a file counts only if it does not begin at 0.
    """
    end_bytes = pl.col("offset_bytes") + pl.col("request_bytes")
    ordered = requests.sort(*_STREAM, "start_s", maintain_order=True).with_columns(
        before=end_bytes.shift(1).over(_STREAM).fill_null(0)
    )
    offset, before = pl.col("offset_bytes"), pl.col("before")
    has_offsets = pl.col("offset_bytes").is_not_null().all()
    return ordered.group_by(by).agg(
        request_count=pl.len(),
        small_count=(pl.col("request_bytes") < small_bytes).sum(),
        moved_bytes=pl.col("request_bytes").sum(),
        sequential_count=pl.when(has_offsets).then(((offset >= before) & (offset > 0)).sum()),
        consecutive_count=pl.when(has_offsets).then(((offset == before) & (offset > 0)).sum()),
    )


def distinct_bytes(requests: pl.DataFrame, by: Sequence[str] = _KIND) -> pl.DataFrame:
    """Count the distinct bytes that requests cover.

    Parameters
    ----------
    requests, by
        See `sizes_and_order`.

    Returns
    -------
    pl.DataFrame
        Number of distinct bytes by group; NULL if an offset is unknown.

    Notes
    -----
    In the order of offsets, each request adds its bytes beyond the highest end of all previous requests.
    """
    end_bytes = pl.col("offset_bytes") + pl.col("request_bytes")
    ordered = requests.sort(*_FILE, "offset_bytes").with_columns(ended=end_bytes)
    covered_until = pl.col("ended").cum_max().shift(1).over(_FILE).fill_null(0)
    added = (pl.col("ended") - pl.max_horizontal(covered_until, "offset_bytes")).clip(0)
    return (
        ordered.with_columns(added=added)
        .group_by(by)
        .agg(
            distinct_bytes=pl.when(pl.col("offset_bytes").is_not_null().all()).then(pl.col("added").sum()),
        )
    )


def count_crossings(requests: pl.DataFrame, files: pl.DataFrame, by: Sequence[str] = (_TRACE,)) -> pl.DataFrame:
    """Count the requests to striped files, and the requests that access more stripes than necessary.

    Parameters
    ----------
    requests
        See `sizes_and_order`.
    files
        trace_id, file_number, stripe_bytes, osts.
    by
        Columns to group by.

    Returns
    -------
    pl.DataFrame
        Counts by group. A request that does not begin at a stripe boundary may access an additional stripe, and then
        wait for an additional target.
    """
    striped = files.filter(pl.col("stripe_bytes") > 0, pl.col("osts").list.len() > 1).select(
        _TRACE, "file_number", "stripe_bytes"
    )
    placed = requests.filter(pl.col("request_bytes") > 0).join(striped, on=[_TRACE, "file_number"])
    first = pl.col("offset_bytes") // pl.col("stripe_bytes")
    last = (pl.col("offset_bytes") + pl.col("request_bytes").cast(pl.Int64) - 1) // pl.col("stripe_bytes")
    min_stripe_count = (pl.col("request_bytes") / pl.col("stripe_bytes")).ceil().cast(pl.Int64)
    return placed.group_by(by).agg(
        striped_count=pl.len(), crossing_count=pl.when(last - first + 1 > min_stripe_count).then(1).otherwise(0).sum()
    )


def count_movers(requests: pl.DataFrame) -> pl.DataFrame:
    """Count the processes and hosts that moved bytes, by trace and module."""
    return (
        requests.filter(pl.col("request_bytes") > 0)
        .group_by(_TRACE, "module")
        .agg(mover_count=pl.col("rank").n_unique(), host_count=pl.col("host").drop_nulls().n_unique())
    )
