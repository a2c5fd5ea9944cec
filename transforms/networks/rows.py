"""Networks as rows of tables: edges window by window, patterns, bottleneck requests, and a line on each run.

The tables say what `Network` says in numbers with the names of layers and nodes, so that a question such as which
target is slowest (Sigovan et al., IPDPS'13, section V) needs nothing but the rows. Bins stay log bins (`log_bins`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import polars as pl

from transforms.networks.clock_skew import Skew
from transforms.networks.log_bins import NEGATIVE
from transforms.networks.network import METRICS, Network

#: the largest whole number of bytes that a column can hold, of those that a 64-bit floating-point number can
_MOST_BYTES = float(2**63 - 1024)
_RUN_SCHEMA = pl.Schema(
    {
        "outcome": pl.String(),
        "reason": pl.String(),
        "network_modules": pl.String(),
        "covered_ratio": pl.Float64(),
        "request_count": pl.Int64(),
        "layers": pl.String(),
        "group_sizes": pl.List(pl.Int64),
        "node_counts": pl.List(pl.Int64),
        "window_count": pl.Int64(),
        "window_s": pl.Float64(),
        "negative_count": pl.Int64(),
        "skew_outcome": pl.String(),
        "skew_file_count": pl.Int64(),
        "skew_range_s": pl.Float64(),
        "skew_spread_s": pl.Float64(),
    }
)


def edge_rows(network: Network) -> pl.DataFrame:
    """Return a row for each edge and window in which anything crossed it, by edge, then by window.

    A metric's bins rise, and its counts stand beside them; both are empty where none of its values is known. Bytes
    are rounded to whole ones.

    Raises ValueError if two nodes of a layer have the same label, or two windows the same time: rows could not be
    told apart.
    """
    rows = network.totals.sort("edge", "window").join(
        _named_edges(network), on="edge", how="left", maintain_order="left"
    )
    for number, metric in enumerate(METRICS):
        lists = _lists(network.counts.filter(pl.col("metric") == number), metric)
        rows = rows.join(lists, on=["window", "edge"], how="left", maintain_order="left")
    timed = network.counts.filter(pl.col("metric") == METRICS.index("time"), pl.col("bin") != NEGATIVE)
    timed_counts = timed.group_by("window", "edge").agg(pl.col("count").sum().alias("timed_count"))
    rows = rows.join(timed_counts, on=["window", "edge"], how="left", maintain_order="left")
    empty = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.with_columns(
        *_window_columns(network, "window", pl.col("window") + 1),
        pl.col("hop", "window", "transfer_count").cast(pl.Int64),
        pl.col("timed_count").fill_null(0),
        pl.col("read_bytes", "written_bytes").round().clip(0.0, _MOST_BYTES).cast(pl.Int64),
        *(pl.col(f"{metric}_{kind}").fill_null(empty) for metric in METRICS for kind in ("bins", "counts")),
    ).rename({"window": "time_window"})


def _named_edges(network: Network) -> pl.DataFrame:
    """Return edge, hop, the names of the edge's layers and nodes, and what its times are."""
    for layer in network.layers:
        if layer.labels.is_duplicated().any():
            raise ValueError(f"Two nodes of the layer {layer.name} have the same label.")
    if not (np.diff(network.window_edges_s) > 0).all():
        raise ValueError("Time windows do not rise.")
    edges = network.edges.with_row_index("edge").with_columns(pl.col("edge").cast(pl.Int32))
    named = [
        of_hop.with_columns(
            source_layer=pl.lit(network.layers[hop].name),
            target_layer=pl.lit(network.layers[hop + 1].name),
            source_node=network.layers[hop].labels.gather(of_hop["source"]),
            target_node=network.layers[hop + 1].labels.gather(of_hop["target"]),
            time_kind=pl.lit(time_kind),
        )
        for hop, time_kind in enumerate(network.time_kinds)
        for of_hop in (edges.filter(pl.col("hop") == hop),)
    ]
    return pl.concat(named).drop("source", "target")


def _lists(counts: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return window, edge, and the bins and counts of a metric as lists."""
    return counts.group_by("window", "edge").agg(
        pl.col("bin").cast(pl.Int64).alias(f"{metric}_bins"), pl.col("count").alias(f"{metric}_counts")
    )


def _window_columns(network: Network, first: str, last: pl.Expr) -> Sequence[pl.Expr]:
    """Return when windows begin and cease, from their numbers: `last` is the one after."""
    instants_s = pl.lit(pl.Series(network.window_edges_s))
    return (
        instants_s.gather(pl.col(first)).alias("window_began_s"),
        instants_s.gather(last).alias("window_ceased_s"),
    )


def pattern_rows(network: Network, patterns: pl.DataFrame) -> pl.DataFrame:
    """Return what `network_patterns.patterns` found, with the names of layers and the times of windows.

    cause_nodes becomes a JSON list, NULL where there are none; NaN becomes NULL.
    """
    layers = pl.Series([layer.name for layer in network.layers], dtype=pl.String)
    causes = [json.dumps(nodes, ensure_ascii=False) if nodes else None for nodes in patterns["cause_nodes"].to_list()]
    made = patterns.with_columns(
        *_window_columns(network, "first_window", pl.col("last_window")),
        pl.lit(layers).gather(pl.col("hop")).alias("source_layer"),
        pl.lit(layers).gather(pl.col("hop") + 1).alias("target_layer"),
        pl.col("hop", "active_node_count", "transfer_count").cast(pl.Int64),
        pl.Series("cause_nodes", causes, dtype=pl.String),
    )
    return _told(made)


def bottleneck_rows(bottlenecks: pl.DataFrame) -> pl.DataFrame:
    """Return bottleneck requests, with the nodes between which they went."""
    return _told(bottlenecks.with_columns(pl.col("bottleneck").cast(pl.Int64)))


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with NULL where a real number is NaN or infinite, all of them as wide as tables hold them."""
    real = pl.col(pl.Float32, pl.Float64).cast(pl.Float64)
    return rows.with_columns(pl.when(real.is_finite()).then(real))


def run_row(
    outcome: str,
    *,
    network: Network | None = None,
    module: str | None = None,
    request_count: int = 0,
    covered_ratio: float | None = None,
    skew: Skew | None = None,
    negative_count: int | None = None,
    reason: str | None = None,
) -> pl.DataFrame:
    """Return the line on a run: what its network is made of, or why it has none (`outcome`, `reason`).

    covered_ratio: the share of the counted bytes that its requests moved; 1 where it is more, as the counters' own
    share is. skew: how the ranks' clocks were compared, if they were. negative_count: times below zero.
    """
    row: dict[str, object] = {
        "outcome": outcome,
        "reason": reason,
        "network_modules": module,
        "covered_ratio": None if covered_ratio is None else min(covered_ratio, 1.0),
        "request_count": request_count,
        "negative_count": negative_count,
    }
    if network is not None:
        row |= {
            "layers": json.dumps([layer.name for layer in network.layers], ensure_ascii=False),
            "group_sizes": [layer.group_size for layer in network.layers],
            "node_counts": [layer.node_count for layer in network.layers],
            "window_count": network.window_count,
            "window_s": float(network.window_edges_s[-1] - network.window_edges_s[0]) / network.window_count,
        }
    if skew is not None:
        row |= {
            "skew_outcome": skew.outcome,
            "skew_file_count": skew.file_count,
            "skew_range_s": skew.range_s,
            "skew_spread_s": skew.spread_s,
        }
    return _told(pl.DataFrame([row], schema=_RUN_SCHEMA, orient="row"))
