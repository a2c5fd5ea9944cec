"""Files of request events with known latencies and clocks: ranks, I/O nodes and storage nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

Reals = npt.NDArray[np.float64]

_RELEASED_S, _OPEN_PAUSE_S = 0.01, 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planted: each request goes from its rank to an I/O node, then in pieces to storage nodes.

    first_latency_s: from the request's start to the first event at the I/O node. inner_latency_s: from a send's start
    to its receive's end. write_time_s: of each piece. slow_storage_node: writes there take ten times as long.
    skew_s: the ranks' clocks are apart by as much, evenly drawn; open_jitter_s: ranks leave an open within it.
    """

    rank_count: int = 16
    io_node_count: int = 4
    storage_node_count: int = 2
    requests_per_rank: int = 8
    pieces_per_request: int = 2
    request_bytes: int = 1 << 20
    first_latency_s: float = 0.002
    inner_latency_s: float = 0.001
    write_time_s: float = 0.004
    latency_jitter_s: float = 0.0
    skew_s: float = 0.0
    open_jitter_s: float = 0.0003
    file_count: int = 3
    slow_storage_node: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Planted:
    """The events (columns as in a file, by time) and how far each rank's clock is ahead of the median rank's."""

    events: pl.DataFrame
    offset_s: Reals


def _table(layer: int, kind: str, columns: dict[str, object]) -> pl.DataFrame:
    name = ("application", "io_node", "storage")[layer]
    frame = pl.DataFrame(columns).with_columns(layer=pl.lit(name), layer_number=pl.lit(layer), event=pl.lit(kind))
    return frame.with_columns(
        pl.col("node").cast(pl.String), **({"peer": pl.col("peer").cast(pl.String)} if "peer" in columns else {})
    )


def _opens(plan: Plan, chance: np.random.Generator, offset_s: Reals) -> pl.DataFrame:
    rank = np.tile(np.arange(plan.rank_count), plan.file_count)
    file = np.repeat(np.arange(plan.file_count), plan.rank_count)
    start = file * _OPEN_PAUSE_S
    began = start + chance.uniform(0, _RELEASED_S, rank.size)
    ceased = start + 2 * _RELEASED_S + chance.uniform(0, plan.open_jitter_s, rank.size)
    return _table(
        0,
        "open",
        {
            "node": rank,
            "rank": rank,
            "start_s": began + offset_s[rank],
            "end_s": ceased + offset_s[rank],
            "file": pl.Series("file", file).cast(pl.String),
        },
    ).with_columns(is_collective=pl.lit(value=True))


def planted(plan: Plan) -> Planted:
    """Return the events of a plan; the same plan gives the same events."""
    chance = np.random.default_rng(plan.seed)
    offset_s = chance.uniform(-plan.skew_s / 2, plan.skew_s / 2, plan.rank_count)
    if plan.rank_count > 1 and plan.skew_s:
        offset_s[:2] = -plan.skew_s / 2, plan.skew_s / 2
    offset_s -= np.median(offset_s)
    request_count = plan.rank_count * plan.requests_per_rank
    rank = np.tile(np.arange(plan.rank_count), plan.requests_per_rank)
    number = np.repeat(np.arange(plan.requests_per_rank), plan.rank_count)
    io_node = rank * plan.io_node_count // plan.rank_count
    asked = plan.file_count * _OPEN_PAUSE_S + number * 0.1 + chance.uniform(0, 0.01, request_count)

    def jitter(count: int) -> Reals:
        return chance.uniform(0, plan.latency_jitter_s, count)

    received = asked + plan.first_latency_s + jitter(request_count)
    of = {"rank": rank, "request_id": pl.Series("request_id", number).cast(pl.String)}
    frames = [
        _opens(plan, chance, offset_s),
        _table(
            0,
            "request",
            of
            | {
                "node": rank,
                "start_s": asked + offset_s[rank],
                "end_s": received + plan.inner_latency_s + 10 * plan.write_time_s + offset_s[rank],
                "bytes": np.full(request_count, float(plan.request_bytes)),
            },
        ),
        _table(1, "receive", of | {"node": io_node, "peer": rank, "start_s": received, "end_s": received + 1e-4}),
    ]
    for piece in range(plan.pieces_per_request):
        storage = (rank + number + piece) % plan.storage_node_count
        size = np.full(request_count, plan.request_bytes / plan.pieces_per_request)
        sent = received + 1e-4 * (piece + 1)
        arrived = sent + plan.inner_latency_s + jitter(request_count)
        slow = np.where(storage == (-1 if plan.slow_storage_node is None else plan.slow_storage_node), 10.0, 1.0)
        both = of | {"bytes": size}
        frames += [
            _table(1, "send", both | {"node": io_node, "peer": storage, "start_s": sent, "end_s": sent + 5e-5}),
            _table(
                2,
                "receive",
                both | {"node": storage, "peer": io_node, "start_s": arrived - 2e-4, "end_s": arrived},
            ),
            _table(
                2,
                "write",
                both | {"node": storage, "start_s": arrived, "end_s": arrived + slow * plan.write_time_s},
            ),
        ]
    events = pl.concat(frames, how="diagonal").with_columns(direction=pl.lit("write")).sort("start_s")
    return Planted(events.with_columns(pl.col("is_collective").fill_null(False)), offset_s)


def landed(planted_: Planted) -> pl.DataFrame:
    """Return the events as they land, in the columns that transforms take."""
    return planted_.events.rename({"event": "event_kind", "bytes": "event_bytes"}).with_columns(
        pl.col("layer_number").cast(pl.Int64), file_number=pl.col("file").cast(pl.Int64)
    )


def write(path: Path, plan: Plan) -> Planted:
    """Write the events of a plan as Parquet, or as CSV, by the path's ending, and return them."""
    found = planted(plan)
    if path.suffix == ".parquet":
        found.events.write_parquet(path)
    else:
        found.events.write_csv(path)
    return found
