"""What single requests tell of a traced run that no sum of counters does: exact sizes, order, and what was read again.

Frames have a row each trace, or each of what they are asked by; where there are no requests there is no row.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_TRACE = "trace_id"
#: requests of one process to one file, in the order in which they began
_STREAM = (_TRACE, "module", "direction", "file_number", "rank")
_FILE = (_TRACE, "module", "direction", "file_number")
_KIND = (_TRACE, "module", "direction")


def sizes_and_order(requests: pl.DataFrame, small_bytes: int, by: Sequence[str] = _KIND) -> pl.DataFrame:
    """Return how many requests there are, how many are small, and how many go on upward.

    by: of what there is a row each: trace, module and direction, and file if it is asked. requests: trace_id,
    module, rank, file_number, direction, offset_bytes, request_bytes, start_s. Sequential is a request that begins
    at or behind the end of its process's request before to the same file, consecutive one that begins where that
    ended: as Darshan counts them (darshan-runtime, `POSIX_SEQ_READS`, `POSIX_CONSEC_READS`), the first of each file
    being neither unless it does not begin at 0. They are NULL where an offset is not known.
    """
    ended = pl.col("offset_bytes") + pl.col("request_bytes")
    ordered = requests.sort(*_STREAM, "start_s", maintain_order=True).with_columns(
        before=ended.shift(1).over(_STREAM).fill_null(0)
    )
    offset, before = pl.col("offset_bytes"), pl.col("before")
    known = pl.col("offset_bytes").is_not_null().all()
    return ordered.group_by(by).agg(
        request_count=pl.len(),
        small_count=(pl.col("request_bytes") < small_bytes).sum(),
        moved_bytes=pl.col("request_bytes").sum(),
        sequential_count=pl.when(known).then(((offset >= before) & (offset > 0)).sum()),
        consecutive_count=pl.when(known).then(((offset == before) & (offset > 0)).sum()),
    )


def distinct_bytes(requests: pl.DataFrame, by: Sequence[str] = _KIND) -> pl.DataFrame:
    """Return the bytes of files that requests cover at least once; by: as `sizes_and_order`.

    It is the length of the union of their extents: in order of offsets, each adds what lies behind all before it.
    NULL where an offset is not known.
    """
    ended = pl.col("offset_bytes") + pl.col("request_bytes")
    ordered = requests.sort(*_FILE, "offset_bytes").with_columns(ended=ended)
    reached = pl.col("ended").cum_max().shift(1).over(_FILE).fill_null(0)
    added = (pl.col("ended") - pl.max_horizontal(reached, "offset_bytes")).clip(0)
    return (
        ordered.with_columns(added=added)
        .group_by(by)
        .agg(
            distinct_bytes=pl.when(pl.col("offset_bytes").is_not_null().all()).then(pl.col("added").sum()),
        )
    )


def on_stripes(requests: pl.DataFrame, files: pl.DataFrame, by: Sequence[str] = (_TRACE,)) -> pl.DataFrame:
    """Return how many requests go to striped files, and how many touch a stripe more than they need to.

    files: trace_id, file_number, stripe_bytes, osts. A request needs as many stripes as its bytes fill; one that does
    not begin at a stripe's start may touch one more, and waits for two targets then.
    """
    striped = files.filter(pl.col("stripe_bytes") > 0, pl.col("osts").list.len() > 1).select(
        _TRACE, "file_number", "stripe_bytes"
    )
    placed = requests.filter(pl.col("request_bytes") > 0).join(striped, on=[_TRACE, "file_number"])
    first = pl.col("offset_bytes") // pl.col("stripe_bytes")
    last = (pl.col("offset_bytes") + pl.col("request_bytes").cast(pl.Int64) - 1) // pl.col("stripe_bytes")
    needed = (pl.col("request_bytes") / pl.col("stripe_bytes")).ceil().cast(pl.Int64)
    return placed.group_by(by).agg(
        striped_count=pl.len(), crossing_count=pl.when(last - first + 1 > needed).then(1).otherwise(0).sum()
    )


def movers(requests: pl.DataFrame) -> pl.DataFrame:
    """Return, by trace and module, how many processes on how many hosts moved bytes."""
    return (
        requests.filter(pl.col("request_bytes") > 0)
        .group_by(_TRACE, "module")
        .agg(mover_count=pl.col("rank").n_unique(), host_count=pl.col("host").drop_nulls().n_unique())
    )
