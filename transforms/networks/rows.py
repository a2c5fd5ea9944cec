"""Networks as rows of tables: edges window by window, patterns, bottleneck requests, and a line on each run.

The tables say what `Network` says in numbers with the names of layers and nodes, so that a question such as which
target is slowest (Sigovan et al., IPDPS'13, section V) needs nothing but the rows. Bins stay log bins (`log_bins`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from iosig.transforms.arrays import Reals
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.clock_skew import Skew
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS, Network

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
    return edge_rows_of(NetworkBatch.of_one(network)).drop("run")


def edge_rows_of(networks: NetworkBatch) -> pl.DataFrame:
    """Return the rows of many networks' edges, one network after the other, with its number (`run`); see `edge_rows`.

    Raises ValueError as `edge_rows` does.
    """
    rows = networks.totals.sort("edge", "window").join(
        _named_edges(networks), on="edge", how="left", maintain_order="left"
    )
    for number, metric in enumerate(METRICS):
        lists = _lists(networks.counts.filter(pl.col("metric") == number), metric)
        rows = rows.join(lists, on=["window", "edge"], how="left", maintain_order="left")
    timed = networks.counts.filter(pl.col("metric") == METRICS.index("time"), pl.col("bin") != NEGATIVE)
    timed_counts = timed.group_by("window", "edge").agg(pl.col("count").sum().alias("timed_count"))
    rows = rows.join(timed_counts, on=["window", "edge"], how="left", maintain_order="left")
    empty = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.with_columns(
        *_window_columns(networks, rows["run"], rows["window"], rows["window"] + 1),
        pl.col("hop", "window", "transfer_count").cast(pl.Int64),
        pl.col("timed_count").fill_null(0),
        pl.col("read_bytes", "written_bytes").round().clip(0.0, _MOST_BYTES).cast(pl.Int64),
        *(pl.col(f"{metric}_{kind}").fill_null(empty) for metric in METRICS for kind in ("bins", "counts")),
    ).rename({"window": "time_window"})


def _named_edges(networks: NetworkBatch) -> pl.DataFrame:
    """Return edge, run, hop, the names of the edge's layers and nodes, and what its times are."""
    layers = networks.layers
    owners = pl.DataFrame({"layer": np.repeat(np.arange(len(layers.names)), np.diff(layers.first_node))})
    twice = owners.with_columns(label=layers.labels).is_duplicated()
    if twice.any():
        name = layers.names[owners["layer"].filter(twice)[0]]
        raise ValueError(f"Two nodes of the layer {name} have the same label.")
    if not (np.diff(networks.window_edges_s) > 0).all():
        raise ValueError("Time windows do not rise.")
    layer = layers.of_nodes(networks.source)
    names = pl.Series(layers.names, dtype=pl.String)
    return pl.DataFrame(
        {
            "edge": pl.Series(np.arange(len(layer)), dtype=pl.Int32),
            "run": layers.run[layer],
            "hop": layers.place[layer],
            "source_layer": names.gather(layer),
            "target_layer": names.gather(layer + 1),
            "source_node": layers.labels.gather(networks.source),
            "target_node": layers.labels.gather(networks.target),
            "time_kind": pl.Series(layers.time_kinds, dtype=pl.String).gather(layer),
        }
    )


def _lists(counts: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return window, edge, and the bins and counts of a metric as lists."""
    return counts.group_by("window", "edge").agg(
        pl.col("bin").cast(pl.Int64).alias(f"{metric}_bins"), pl.col("count").alias(f"{metric}_counts")
    )


def _window_columns(networks: NetworkBatch, run: pl.Series, first: pl.Series, last: pl.Series) -> Sequence[pl.Series]:
    """Return when windows of runs begin and cease, from their numbers: `last` is the one after."""
    edges_s = networks.window_edges_s
    return (
        pl.Series("window_began_s", edges_s[run.to_numpy(), first.to_numpy()]),
        pl.Series("window_ceased_s", edges_s[run.to_numpy(), last.to_numpy()]),
    )


def pattern_rows(network: Network, patterns: pl.DataFrame) -> pl.DataFrame:
    """Return what `network_patterns.patterns` found, with the names of layers and the times of windows.

    cause_nodes becomes a JSON list, NULL where there are none; NaN becomes NULL.
    """
    own = patterns.with_columns(pl.col("hop").cast(pl.Int64).alias("layer"))
    return pattern_rows_of(NetworkBatch.of_one(network), own).drop("run")


def pattern_rows_of(networks: NetworkBatch, patterns: pl.DataFrame) -> pl.DataFrame:
    """Return the same of many networks (`patterns_of`), one after the other, with the network's number (`run`)."""
    layer = patterns["layer"].to_numpy()
    run, names = pl.Series("run", networks.layers.run[layer]), pl.Series(networks.layers.names, dtype=pl.String)
    causes = patterns["cause_nodes"].list.len().fill_null(0) > 0
    texts = [json.dumps(nodes, ensure_ascii=False) for nodes in patterns["cause_nodes"].filter(causes).to_list()]
    told = pl.Series("cause_nodes", [None], dtype=pl.String).new_from_index(0, len(layer))
    made = patterns.drop("layer").with_columns(
        run,
        *_window_columns(networks, run, patterns["first_window"], patterns["last_window"]),
        names.gather(layer).alias("source_layer"),
        names.gather(layer + 1).alias("target_layer"),
        pl.col("hop", "active_node_count", "transfer_count").cast(pl.Int64),
        told.scatter(causes.arg_true(), texts),
    )
    return _told(made)


def bottleneck_rows(bottlenecks: pl.DataFrame) -> pl.DataFrame:
    """Return bottleneck requests, with the nodes between which they went."""
    return _told(bottlenecks.with_columns(pl.col("bottleneck").cast(pl.Int64)))


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with NULL where a real number is NaN or infinite, all of them as wide as tables hold them."""
    real = pl.col(pl.Float32, pl.Float64).cast(pl.Float64)
    return rows.with_columns(pl.when(real.is_finite()).then(real))


def run_row(outcome: str, *, network: Network | None = None, **told: Any) -> pl.DataFrame:
    """Return the line on a run: what its network is made of, or why it has none; see `run_values`."""
    made = {}
    if network is not None:
        layers = network.layers
        made = network_values(
            [layer.name for layer in layers],
            [layer.group_size for layer in layers],
            [layer.node_count for layer in layers],
            network.window_edges_s,
        )
    return run_rows([run_values(outcome, **told) | made])


def run_rows(values: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return the lines on runs, in order, from their values by name."""
    return _told(pl.DataFrame(values, schema=_RUN_SCHEMA, orient="row"))


def network_values(
    names: Sequence[str], group_sizes: Sequence[int], node_counts: Sequence[int], window_edges_s: Reals
) -> dict[str, object]:
    """Return what a run's line says of its network: of each layer, and of its windows (edges: windows + 1)."""
    window_count = len(window_edges_s) - 1
    return {
        "layers": json.dumps(list(names), ensure_ascii=False),
        "group_sizes": list(group_sizes),
        "node_counts": list(node_counts),
        "window_count": window_count,
        "window_s": float(window_edges_s[-1] - window_edges_s[0]) / window_count,
    }


def run_values(
    outcome: str,
    *,
    module: str | None = None,
    request_count: int = 0,
    covered_ratio: float | None = None,
    skew: Skew | None = None,
    negative_count: int | None = None,
    reason: str | None = None,
) -> dict[str, object]:
    """Return what a run's line says: what its network is made of, or why it has none (`outcome`, `reason`).

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
    if skew is not None:
        row |= {
            "skew_outcome": skew.outcome,
            "skew_file_count": skew.file_count,
            "skew_range_s": skew.range_s,
            "skew_spread_s": skew.spread_s,
        }
    return row
