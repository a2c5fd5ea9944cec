"""Compute the node statistics of networks: histograms of source nodes, and their means and quantiles in octaves.

A span is a hop's single window, or all its windows together. A cell is a bin of a source node's histogram in a span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.log_bins import BINS_PER_OCTAVE, LOWEST

#: number that is higher than all bin numbers
_NO_BIN = 1 << 16
#: levels of the nine deciles, and of the lower and upper quartiles
QUANTILES = np.concatenate([np.arange(1, 10) / 10.0, [0.25, 0.75]])
#: index of the ninth decile
NINTH_DECILE = 8
#: interquartile range of a normal distribution, in standard deviations
_QUARTILE_RANGE_SIGMAS = 1.349


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts by span, source node and bin (cells), sorted; a hop's first span consists of all its windows."""

    span: Ints
    node: Ints
    bin: Ints
    count: Ints

    @property
    def is_first_of_node(self) -> Bools:
        """Return whether each cell is the first of its node and span."""
        is_first: Bools = (np.diff(self.span, prepend=-1) > 0) | (np.diff(self.node, prepend=-1) != 0)
        return is_first

    def in_span(self, span: int) -> tuple[Ints, Ints, Ints]:
        """Return the node, bin and count of a span's cells."""
        first, last = np.searchsorted(self.span, [span, span + 1])
        return self.node[first:last], self.bin[first:last], self.count[first:last]


def count_cells(networks: NetworkBatch, metric: int) -> Cells:
    """Sum the counts of a metric by span, source node and bin for all hops.

    Parameters
    ----------
    networks
        Networks of n runs.
    metric
        Index in METRICS.

    Returns
    -------
    Cells
        Counts of all spans. Zero and negative values count in the hop's lowest bin. The spans of hop h are
        h * (1 + windows) to (h + 1) * (1 + windows) - 1.
    """
    counts = networks.counts.filter(pl.col("metric") == metric)
    window, edge, bins, count = (counts[name].cast(pl.Int64).to_numpy() for name in ("window", "edge", "bin", "count"))
    node = networks.source[edge]
    hop = np.searchsorted(networks.layers.outer, networks.layers.find_layers(node))
    is_known = bins >= LOWEST
    lowest = np.full(len(networks.layers.outer), _NO_BIN)
    np.minimum.at(lowest, hop[is_known], bins[is_known])
    # a hop without known values has no cells
    selected = np.flatnonzero(lowest[hop] < _NO_BIN)
    if not len(selected):
        return Cells(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    bins = np.maximum(bins, lowest[hop])[selected]
    low, width = int(bins.min()), int(np.ptp(bins)) + 1
    run_span = hop[selected] * (1 + networks.window_count)
    keys, totals = [], []
    for span in (run_span, run_span + 1 + window[selected]):
        key, total = _sum_by_key(
            (span * len(networks.layers.labels) + node[selected]) * width + bins - low, count[selected]
        )
        keys.append(key)
        totals.append(total)
    all_keys = np.concatenate(keys)
    # the two sets of keys are disjoint
    order = np.argsort(all_keys, kind="stable")
    key = all_keys[order]
    span_node = key // width
    node_count = len(networks.layers.labels)
    return Cells(span_node // node_count, span_node % node_count, key % width + low, np.concatenate(totals)[order])


def _sum_by_key(key: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Sum the counts of equal keys; the keys ascend."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
    return key[starts], np.add.reduceat(count[order], starts)


def find_main_targets(networks: NetworkBatch) -> Ints:
    """Find the next node that receives the majority of each node's transfers.

    Parameters
    ----------
    networks
        Networks of n runs.

    Returns
    -------
    (nodes,)
        Target of each node; -1 without a majority.
    """
    main_target = np.full(len(networks.layers.labels), -1, dtype=np.int64)
    totals = networks.totals
    counts = np.bincount(totals["edge"].to_numpy(), totals["transfer_count"].to_numpy(), len(networks.source))
    source_counts = np.bincount(networks.source, counts, len(main_target))
    is_main = 2 * counts > source_counts[networks.source]
    main_target[networks.source[is_main]] = networks.target[is_main]
    return main_target


@dataclass(frozen=True, slots=True)
class Nodes:
    """Active nodes (n) of a hop: numbers, transfer counts, means, quantiles (n, QUANTILES) and main targets.

    variance: pooled variance within nodes [octaves squared]. bin, cell_node (index of the node), cell_count (cells):
    histograms of the nodes.
    """

    number: Ints
    count: Ints
    mean: Reals
    quantiles: Reals
    target: Ints
    variance: float
    bin: Ints
    cell_node: Ints
    cell_count: Ints

    @property
    def level(self) -> Reals:
        """Return the mean of each node's deciles (n)."""
        level: Reals = self.quantiles[:, :9].mean(axis=1)
        return level

    @property
    def internal_spread(self) -> Reals:
        """Return the robust standard deviation of each node's values (n)."""
        lower, upper = self.quantiles[:, 9:].T
        spread: Reals = (upper - lower) / _QUARTILE_RANGE_SIGMAS
        return spread


def make_nodes(cells: Cells, span: int, targets: Ints) -> Nodes:
    """Compute the statistics of the active nodes in a span.

    Parameters
    ----------
    cells
        Counts of all spans.
    span
        Index of the span.
    targets : (nodes,)
        Main target of each node; see `find_main_targets`.

    Returns
    -------
    Nodes
        Nodes in ascending order of their numbers.
    """
    node, bins, count = cells.in_span(span)
    # cells are sorted, so np.unique is unnecessary
    is_first = np.diff(node, prepend=-1) > 0
    number, place = node[is_first], np.cumsum(is_first) - 1
    return summarize_nodes(number, targets[number], place, bins, count)


def summarize_nodes(number: Ints, target: Ints, place: Ints, bins: Ints, count: Ints) -> Nodes:
    """Compute the statistics of n nodes from their histograms.

    Parameters
    ----------
    number, target : (n,)
        Number and main target of each node.
    place, bins, count : (cells,)
        Index of the node, bin and count of each cell, sorted by node and bin.

    Returns
    -------
    Nodes
        Statistics; means, variance and quantiles are in octaves.
    """
    total = np.bincount(place, count, len(number)).astype(np.int64)
    center = (bins + 0.5) / BINS_PER_OCTAVE
    mean = np.bincount(place, count * center, len(number)) / np.maximum(total, 1)
    squares = float((count * (center - mean[place]) ** 2).sum())
    degrees_of_freedom = int((total - 1).sum())
    variance = squares / degrees_of_freedom if degrees_of_freedom else 0.0
    return Nodes(number, total, mean, _quantiles(place, bins, count, total), target, variance, bins, place, count)


def _quantiles(place: Ints, bins: Ints, count: Ints, total: Ints) -> Reals:
    """Compute quantiles (nodes, QUANTILES) in octaves, interpolated linearly within bins."""
    ends = np.cumsum(count)
    target = (np.cumsum(total) - total)[:, None] + QUANTILES * total[:, None]
    first = np.searchsorted(place, np.arange(len(total)))[:, None]
    last = np.searchsorted(place, np.arange(len(total)), side="right")[:, None] - 1
    cell = np.clip(np.searchsorted(ends, target), first, last)
    share = np.clip((target - (ends[cell] - count[cell])) / np.maximum(count[cell], 1), 0.0, 1.0)
    octaves: Reals = (bins[cell] + share) / BINS_PER_OCTAVE
    return octaves
