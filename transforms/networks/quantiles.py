"""Quantiles of a metric by node or by edge, told from counts in log bins, in octaves (log2 of the value).

Within a bin the transfers are taken to lie evenly, in octaves. What is zero or negative counts as the lowest bin
that is present among the rows that are asked for (Sigovan et al., IPDPS'13, section V: "we treat the negative values
as simply the minimum observed").
"""

from __future__ import annotations

import numpy as np
import polars as pl

from transforms.arrays import Ints, Reals
from transforms.networks.log_bins import BINS_PER_OCTAVE, LOWEST
from transforms.networks.network import METRICS, Metric, Network

#: the interquartile range of a normal distribution, in standard deviations
_QUARTILES_APART = 1.349


def source_quantiles(
    network: Network, hop: int, metric: Metric, quantiles: Reals, windows: tuple[int, int] | None = None
) -> tuple[Reals, Ints]:
    """Return quantiles (nodes, quantiles) in octaves and counts (nodes) by source node of a hop.

    NaN where a node has no known value. windows: the first one, and the one after the last.
    """
    edges = network.edges.with_row_index("edge").filter(pl.col("hop") == hop)
    node_of_edge = np.full(len(network.edges), -1, np.int64)
    node_of_edge[edges.get_column("edge").to_numpy()] = edges.get_column("source").to_numpy()
    return _quantiles(network, metric, quantiles, windows, node_of_edge, network.layers[hop].node_count)


def edge_quantiles(
    network: Network, metric: Metric, quantiles: Reals, windows: tuple[int, int] | None = None
) -> tuple[Reals, Ints]:
    """Return quantiles (edges, quantiles) in octaves and counts (edges); NaN where an edge has no known value.

    Zero and negative values count as the lowest bin of the edge's own hop.
    """
    found, counts = np.full((len(network.edges), len(quantiles)), np.nan), np.zeros(len(network.edges), np.int64)
    hops = network.edges.get_column("hop").to_numpy()
    for hop in range(network.hop_count):
        row_of_edge = np.where(hops == hop, np.cumsum(hops == hop) - 1, -1)
        of_hop = hops == hop
        found[of_hop], counts[of_hop] = _quantiles(network, metric, quantiles, windows, row_of_edge, int(of_hop.sum()))
    return found, counts


def spread(quartiles: Reals) -> Reals:
    """Return robust standard deviations (n), in octaves, of lower and upper quartiles (n, 2)."""
    return (quartiles[:, 1] - quartiles[:, 0]) / _QUARTILES_APART


def _quantiles(
    network: Network,
    metric: Metric,
    quantiles: Reals,
    windows: tuple[int, int] | None,
    row_of_edge: Ints,
    row_count: int,
) -> tuple[Reals, Ints]:
    wanted = np.asarray(quantiles, dtype=np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError("quantiles lie from 0 to 1")
    row, bins, count = _counts_of_rows(network, metric, windows, row_of_edge)
    totals = np.zeros(row_count, np.int64)
    np.add.at(totals, row, count)
    found = np.full((row_count, len(wanted)), np.nan)
    if not (bins >= LOWEST).any():
        return found, totals
    bins = np.maximum(bins, bins[bins >= LOWEST].min())
    ends = np.cumsum(count)
    before = np.cumsum(totals) - totals
    active = np.flatnonzero(totals)
    places = before[active, None] + wanted * totals[active, None]
    # the first bin whose end is at or behind the place; the place lies in the row's own bins
    first = np.searchsorted(row, active)[:, None]
    last = np.searchsorted(row, active, side="right")[:, None] - 1
    cell = np.clip(np.searchsorted(ends, places), first, last)
    share = np.clip((places - (ends[cell] - count[cell])) / count[cell], 0.0, 1.0)
    found[active] = (bins[cell] + share) / BINS_PER_OCTAVE
    return found, totals


def _counts_of_rows(
    network: Network, metric: Metric, windows: tuple[int, int] | None, row_of_edge: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return row, bin and count of all that is counted, sorted by row and bin."""
    chosen = pl.col("metric") == METRICS.index(metric)
    if windows is not None:
        chosen &= pl.col("window").is_between(*windows, closed="left")
    rows = pl.Series("row", row_of_edge, dtype=pl.Int64)
    counts = network.counts.filter(chosen).select("edge", "bin", "count")
    counts = counts.with_columns(row=rows.gather(counts.get_column("edge").cast(pl.UInt32))).filter(pl.col("row") >= 0)
    summed = counts.group_by("row", "bin").agg(pl.col("count").sum()).sort("row", "bin")
    row, bins, count = (summed.get_column(name).to_numpy().astype(np.int64) for name in ("row", "bin", "count"))
    return row, bins, count
