"""Calls within calls: what one layer hands to the next is counted once, and so is what a trace holds twice.

A thread does one thing at a time: a call that lies within a call of an outer layer, on the same thread, was made by
it. MPI-IO calls do not say their bytes, and so do not stand for those of the calls that they make.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from iosig.warehouse.sources.dftracer.calls import LAYERS

_THREAD = ["process", "tid"]
#: kept rows thread by thread, by their beginning, what encloses before what it encloses; each once
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
    """Marks calls within calls of outer layers, batch by batch: it remembers what the last thread was doing."""

    thread: tuple[int, int] | None = None
    ends: dict[str, int] = field(default_factory=dict)

    def marked(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `is_nested` to rows in order; those of one thread follow each other, over batches too."""
        ended = pl.col("ts") + pl.col("dur")
        known = pl.col("request_bytes").is_not_null()
        sources = {
            f"{kind}_{layer}": pl.when((pl.col("layer") == layer) & holds).then(ended).otherwise(-1)
            for layer in range(len(LAYERS) - 1)
            for kind, holds in (("call", pl.lit(True)), ("request", known))
        }
        seen = rows.with_columns(**{name: end.cum_max().over(_THREAD) for name, end in sources.items()})
        goes_on = self._is_thread()
        carried = seen.with_columns(
            pl.when(goes_on).then(pl.max_horizontal(name, pl.lit(self.ends.get(name, -1)))).otherwise(name).alias(name)
            for name in sources
        )
        last = carried.row(-1, named=True)
        self.thread, self.ends = (last["process"], last["tid"]), {name: last[name] for name in sources}
        return carried.with_columns(is_nested=_is_nested()).drop(list(sources))

    def _is_thread(self) -> pl.Expr:
        if self.thread is None:
            return pl.lit(False)
        process, tid = self.thread
        return (pl.col("process") == process) & (pl.col("tid") == tid)


def _is_nested() -> pl.Expr:
    """Return whether a call lies within one of an outer layer: a request only within one that tells its bytes."""
    ended = pl.col("ts") + pl.col("dur")
    found = pl.lit(False)
    for layer in range(1, len(LAYERS)):
        for kind, is_kind in (("request", pl.col("request_bytes").is_not_null()), ("call", pl.lit(True))):
            # a request of bytes unknown is none that could be counted twice
            outer = pl.max_horizontal(f"{kind}_{above}" for above in range(layer))
            within = (outer >= ended) & (outer > pl.col("ts"))
            applies = (pl.col("layer") == layer) & (is_kind if kind == "request" else pl.col("request_bytes").is_null())
            found = found | (applies & within)
    return found
