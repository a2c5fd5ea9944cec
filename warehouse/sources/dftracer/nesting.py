"""Detect nested and repeated calls, so that bytes that layers pass to each other are counted once.

A thread runs one call at a time, so a call within another call of an outer layer, on the same thread, was made by that
call. MPI-IO calls have no bytes, so they do not replace the calls that they make.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from iosig.warehouse.sources.dftracer.calls import LAYERS

_THREAD = ["process", "tid"]
#: query for distinct rows, ordered by thread and start, with enclosing calls before enclosed ones
IN_ORDER = """
    select * exclude (copy)
    from (
        select
            *,
            row_number() over (
                partition by process, tid, id, "function", ts, dur, request_bytes, offset_bytes
                order by input, line
            ) as copy
        from read_parquet($paths, hive_partitioning = false)
    )
    where copy = 1
    order by process, tid, ts, dur desc, layer, input, line
"""


@dataclass(slots=True)
class Nesting:
    """Marks calls within calls of outer layers, batch by batch; keeps the last thread's state between batches."""

    thread: tuple[int, int] | None = None
    ends: dict[str, int] = field(default_factory=dict)

    def mark(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `is_nested` to sorted rows; a thread may continue in the next batch."""
        ended = pl.col("ts") + pl.col("dur")
        has_bytes = pl.col("request_bytes").is_not_null()
        sources = {
            f"{kind}_{layer}": pl.when((pl.col("layer") == layer) & holds).then(ended).otherwise(-1)
            for layer in range(len(LAYERS) - 1)
            for kind, holds in (("call", pl.lit(True)), ("request", has_bytes))
        }
        latest_ends = rows.with_columns(**{name: end.cum_max().over(_THREAD) for name, end in sources.items()})
        is_continued = self._is_thread()
        carried = latest_ends.with_columns(
            pl.when(is_continued)
            .then(pl.max_horizontal(name, pl.lit(self.ends.get(name, -1))))
            .otherwise(name)
            .alias(name)
            for name in sources
        )
        last = carried.row(-1, named=True)
        self.thread, self.ends = (last["process"], last["tid"]), {name: last[name] for name in sources}
        return carried.with_columns(is_nested=_nesting_expression()).drop(list(sources))

    def _is_thread(self) -> pl.Expr:
        if self.thread is None:
            return pl.lit(False)
        process, tid = self.thread
        return (pl.col("process") == process) & (pl.col("tid") == tid)


def _nesting_expression() -> pl.Expr:
    """Test whether a call lies within an outer layer's call; for a request, that call must have known bytes."""
    ended = pl.col("ts") + pl.col("dur")
    is_nested = pl.lit(False)
    for layer in range(1, len(LAYERS)):
        for kind, is_kind in (("request", pl.col("request_bytes").is_not_null()), ("call", pl.lit(True))):
            # a request without bytes cannot be counted twice
            outer = pl.max_horizontal(f"{kind}_{above}" for above in range(layer))
            within = (outer >= ended) & (outer > pl.col("ts"))
            applies = (pl.col("layer") == layer) & (is_kind if kind == "request" else pl.col("request_bytes").is_null())
            is_nested = is_nested | (applies & within)
    return is_nested
