"""Convert networks to table rows: edges by window, patterns, bottleneck requests, and one summary row per run.

The rows contain the names of layers and nodes, so that a question such as "which target is slowest?" (Sigovan et al.,
IPDPS'13, section V) needs no other table. Bins are log bins (`log_bins`).
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

#: largest 64-bit float that fits into a column of signed 64-bit integers [bytes]
_MAX_BYTES = float(2**63 - 1024)
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
        "negative_time_count": pl.Int64(),
        "skew_outcome": pl.String(),
        "skew_file_count": pl.Int64(),
        "skew_range_s": pl.Float64(),
        "skew_spread_s": pl.Float64(),
    }
)


def edge_rows(network: Network) -> pl.DataFrame:
    """Convert the edges of a network to rows, one per edge and window with transfers.

    Parameters
    ----------
    network
        A single run's network.

    Returns
    -------
    pl.DataFrame
        Rows sorted by edge and window. The bins of a metric ascend, and its counts are in the same order; both lists
        are empty if no value is known. Bytes are rounded to integers.

    Raises
    ------
    ValueError
        If two nodes of a layer have the same label, or windows do not ascend, since rows would be ambiguous.
    """
    return batch_edge_rows(NetworkBatch.from_network(network)).drop("run")


def batch_edge_rows(networks: NetworkBatch) -> pl.DataFrame:
    """Convert the edges of many networks to rows, network by network.

    Parameters
    ----------
    networks
        Networks of n runs.

    Returns
    -------
    pl.DataFrame
        Columns of `edge_rows`, and the number of the network (`run`).

    Raises
    ------
    ValueError
        See `edge_rows`.
    """
    rows = networks.totals.sort("edge", "window").join(
        _describe_edges(networks), on="edge", how="left", maintain_order="left"
    )
    for number, metric in enumerate(METRICS):
        lists = _collect_bins(networks.counts.filter(pl.col("metric") == number), metric)
        rows = rows.join(lists, on=["window", "edge"], how="left", maintain_order="left")
    nonnegative = networks.counts.filter(pl.col("metric") == METRICS.index("time"), pl.col("bin") != NEGATIVE)
    timed_counts = nonnegative.group_by("window", "edge").agg(pl.col("count").sum().alias("timed_count"))
    rows = rows.join(timed_counts, on=["window", "edge"], how="left", maintain_order="left")
    empty = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.with_columns(
        *_window_columns(networks, rows["run"], rows["window"], rows["window"] + 1),
        pl.col("hop", "window", "transfer_count").cast(pl.Int64),
        pl.col("timed_count").fill_null(0),
        pl.col("read_bytes", "written_bytes").round().clip(0.0, _MAX_BYTES).cast(pl.Int64),
        *(pl.col(f"{metric}_{kind}").fill_null(empty) for metric in METRICS for kind in ("bins", "counts")),
    ).rename({"window": "time_window"})


def _describe_edges(networks: NetworkBatch) -> pl.DataFrame:
    """Return the run, hop, layer names, node labels and kind of times of each edge."""
    layers = networks.layers
    owners = pl.DataFrame({"layer": np.repeat(np.arange(len(layers.names)), np.diff(layers.first_node))})
    is_duplicate = owners.with_columns(label=layers.labels).is_duplicated()
    if is_duplicate.any():
        name = layers.names[owners["layer"].filter(is_duplicate)[0]]
        raise ValueError(f"Two nodes of the layer {name} have the same label.")
    if not (np.diff(networks.window_edges_s) > 0).all():
        raise ValueError("Time windows are not in ascending order.")
    layer = layers.find_layers(networks.source)
    names = pl.Series(layers.names, dtype=pl.String)
    return pl.DataFrame(
        {
            "edge": pl.Series(np.arange(len(layer)), dtype=pl.Int32),
            "run": layers.run[layer],
            "hop": layers.hop[layer],
            "source_layer": names.gather(layer),
            "target_layer": names.gather(layer + 1),
            "source_node": layers.labels.gather(networks.source),
            "target_node": layers.labels.gather(networks.target),
            "time_kind": pl.Series(layers.time_kinds, dtype=pl.String).gather(layer),
        }
    )


def _collect_bins(counts: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Collect the bins and counts of a metric in lists, by window and edge."""
    return counts.group_by("window", "edge").agg(
        pl.col("bin").cast(pl.Int64).alias(f"{metric}_bins"), pl.col("count").alias(f"{metric}_counts")
    )


def _window_columns(networks: NetworkBatch, run: pl.Series, first: pl.Series, last: pl.Series) -> Sequence[pl.Series]:
    """Return the start and end of window ranges in seconds; `last` is exclusive."""
    edges_s = networks.window_edges_s
    return (
        pl.Series("window_start_s", edges_s[run.to_numpy(), first.to_numpy()]),
        pl.Series("window_end_s", edges_s[run.to_numpy(), last.to_numpy()]),
    )


def pattern_rows(network: Network, patterns: pl.DataFrame) -> pl.DataFrame:
    """Add layer names and window times to patterns.

    Parameters
    ----------
    network
        A single run's network.
    patterns : PATTERN_ROWS
        Result of `classify_patterns`.

    Returns
    -------
    pl.DataFrame
        Patterns with names and times. `cause_nodes` is a JSON list, or NULL if empty; NaN becomes NULL.
    """
    with_layer = patterns.with_columns(pl.col("hop").cast(pl.Int64).alias("layer"))
    return batch_pattern_rows(NetworkBatch.from_network(network), with_layer).drop("run")


def batch_pattern_rows(networks: NetworkBatch, patterns: pl.DataFrame) -> pl.DataFrame:
    """Add layer names and window times to the patterns of many networks.

    Parameters
    ----------
    networks
        Networks of n runs.
    patterns
        Result of `classify_batch_patterns`.

    Returns
    -------
    pl.DataFrame
        Columns of `pattern_rows`, and the number of the network (`run`).
    """
    layer = patterns["layer"].to_numpy()
    run, names = pl.Series("run", networks.layers.run[layer]), pl.Series(networks.layers.names, dtype=pl.String)
    has_causes = patterns["cause_nodes"].list.len().fill_null(0) > 0
    texts = [json.dumps(nodes, ensure_ascii=False) for nodes in patterns["cause_nodes"].filter(has_causes).to_list()]
    causes = pl.Series("cause_nodes", [None], dtype=pl.String).new_from_index(0, len(layer))
    rows = patterns.drop("layer").with_columns(
        run,
        *_window_columns(networks, run, patterns["first_window"], patterns["last_window"]),
        names.gather(layer).alias("source_layer"),
        names.gather(layer + 1).alias("target_layer"),
        pl.col("hop", "active_node_count", "transfer_count").cast(pl.Int64),
        causes.scatter(has_causes.arg_true(), texts),
    )
    return _nonfinite_to_null(rows)


def bottleneck_rows(bottlenecks: pl.DataFrame) -> pl.DataFrame:
    """Convert bottleneck requests to the table's column types.

    Parameters
    ----------
    bottlenecks
        BOTTLENECK_SCHEMA, with the nodes of each request.

    Returns
    -------
    pl.DataFrame
        Bottlenecks; NaN and infinities become NULL.
    """
    return _nonfinite_to_null(bottlenecks.with_columns(pl.col("bottleneck").cast(pl.Int64)))


def _nonfinite_to_null(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace NaN and infinities by NULL, and widen all floats to 64 bits."""
    real = pl.col(pl.Float32, pl.Float64).cast(pl.Float64)
    return rows.with_columns(pl.when(real.is_finite()).then(real))


def run_row(outcome: str, *, network: Network | None = None, **values: Any) -> pl.DataFrame:
    """Create the summary row of a run: the dimensions of its network, or the reason why it has no network.

    Parameters
    ----------
    outcome
        Outcome of the run.
    network
        The run's network, if any.
    **values
        Arguments of `run_values`.

    Returns
    -------
    pl.DataFrame
        One row.
    """
    dimensions = {}
    if network is not None:
        layers = network.layers
        dimensions = network_values(
            [layer.name for layer in layers],
            [layer.group_size for layer in layers],
            [layer.node_count for layer in layers],
            network.window_edges_s,
        )
    return run_rows([run_values(outcome, **values) | dimensions])


def run_rows(values: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Collect summary values of runs in a frame.

    Parameters
    ----------
    values : (runs,)
        Values by column name; see `run_values` and `network_values`.

    Returns
    -------
    pl.DataFrame
        One row per run, in the given order.
    """
    return _nonfinite_to_null(pl.DataFrame(values, schema=_RUN_SCHEMA, orient="row"))


def network_values(
    names: Sequence[str], group_sizes: Sequence[int], node_counts: Sequence[int], window_edges_s: Reals
) -> dict[str, object]:
    """Return the summary values of a run's network.

    Parameters
    ----------
    names, group_sizes, node_counts : (layers,)
        Name, members per node and number of nodes of each layer.
    window_edges_s : (windows + 1,)
        Edges of the windows [s].

    Returns
    -------
    dict[str, object]
        Values by column name.
    """
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
    negative_time_count: int | None = None,
    reason: str | None = None,
) -> dict[str, object]:
    """Return the summary values of a run, except for the dimensions of its network.

    Parameters
    ----------
    outcome, reason
        Outcome, and the reason if the run has no network.
    module
        Module with the requests that form the network.
    request_count
        Number of requests.
    covered_ratio
        Fraction of the counted bytes that the requests moved; limited to 1.
    skew
        Result of the clock comparison, if any.
    negative_time_count
        Number of transfers with a negative time.

    Returns
    -------
    dict[str, object]
        Values by column name.
    """
    row: dict[str, object] = {
        "outcome": outcome,
        "reason": reason,
        "network_modules": module,
        "covered_ratio": None if covered_ratio is None else min(covered_ratio, 1.0),
        "request_count": request_count,
        "negative_time_count": negative_time_count,
    }
    if skew is not None:
        row |= {
            "skew_outcome": skew.outcome,
            "skew_file_count": skew.file_count,
            "skew_range_s": skew.range_s,
            "skew_spread_s": skew.spread_s,
        }
    return row
