"""Networks of many small runs side by side: their edges, histograms and sums are found in the same arrays.

A network that is counted by itself (`counting`) costs more than its transfers where these are few. Here layers,
nodes and edges are numbered through all runs, so that what is asked of one is asked of all at once. What comes out is
the same to the last bit: sums are taken in the order, and in the way, of `hop_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.hop_sums import is_dense
from iosig.transforms.networks.log_bins import UNKNOWN, bin_numbers
from iosig.transforms.networks.network import COUNTS, METRICS, STEPS_PER_WINDOW, TOTALS, Network, TimeKind


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of networks of many runs (n), numbered run after run, outermost first; and their nodes, likewise.

    names (layers). time_kinds (layers): of the hop from a layer to the next one; None for a run's innermost layer.
    first (n + 1): where each run's layers begin. first_node (layers + 1). labels (nodes): String.
    """

    names: tuple[str, ...]
    time_kinds: tuple[TimeKind | None, ...]
    first: Ints
    first_node: Ints
    labels: pl.Series

    @property
    def run(self) -> Ints:
        """The run of each layer (layers)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def place(self) -> Ints:
        """Each layer's place in its run (layers), from 0: the number of the hop to the next one."""
        return np.arange(len(self.names)) - self.first[self.run]

    @property
    def outer(self) -> Ints:
        """The layers at which hops begin."""
        return np.flatnonzero([kind is not None for kind in self.time_kinds])

    def of_nodes(self, nodes: Ints) -> Ints:
        """Return the layer of each node (n)."""
        found: Ints = np.searchsorted(self.first_node, nodes, side="right") - 1
        return found


@dataclass(frozen=True, slots=True)
class Networks:
    """Networks of many runs (n), with as many windows each; see `Network`.

    window_edges_s (n, windows + 1). source, target (edges): nodes; edges are sorted by both, and so by run and hop.
    counts (COUNTS): bins rise in each edge, window and metric. totals (TOTALS): in any order.
    """

    layers: Layers
    window_edges_s: Reals
    source: Ints
    target: Ints
    counts: pl.DataFrame
    totals: pl.DataFrame

    @classmethod
    def alone(cls, network: Network) -> Networks:
        """Return a network as the only one of many."""
        first_node = np.array([0, *accumulate(layer.node_count for layer in network.layers)])
        layers = Layers(
            tuple(layer.name for layer in network.layers),
            (*network.time_kinds, None),
            np.array([0, len(network.layers)]),
            first_node,
            pl.concat([layer.labels.cast(pl.String) for layer in network.layers]),
        )
        hop, source, target = (network.edges[name].cast(pl.Int64).to_numpy() for name in network.edges.columns)
        edges_s = network.window_edges_s[None, :]
        return cls(
            layers, edges_s, source + first_node[hop], target + first_node[hop + 1], network.counts, network.totals
        )

    @property
    def window_count(self) -> int:
        """Time windows of each run."""
        return int(self.window_edges_s.shape[1]) - 1


@dataclass(frozen=True, slots=True)
class ManyTransfers:
    """Transfers (n) of many runs: as `Transfers`, each of its run, between nodes that are numbered through all."""

    run: Ints
    source: Ints
    target: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals
    bandwidth_bytes_per_s: Reals
    is_read: Bools


def counted(layers: Layers, window_edges_s: Reals, transfers: ManyTransfers) -> Networks:
    """Count the transfers of many runs, each in its own windows (n, windows + 1), as `EdgeCounter` does those of one.

    Of each hop of a run, they are taken up in the order that they have here.
    """
    node_count, window_count = len(layers.labels), window_edges_s.shape[1] - 1
    keys, edge = np.unique(transfers.source * node_count + transfers.target, return_inverse=True)
    step = _steps(transfers, window_edges_s)
    order = np.argsort(edge * (window_count * STEPS_PER_WINDOW) + step, kind="stable")
    in_order = _Counted(
        layers.of_nodes(transfers.source)[order],
        edge[order],
        (step // STEPS_PER_WINDOW)[order],
        _known(transfers.time_s)[order],
        _known(transfers.size_bytes)[order],
        _known(transfers.bandwidth_bytes_per_s)[order],
        transfers.is_read[order],
    )
    source, target = keys // node_count, keys % node_count
    edge_counts = np.bincount(layers.of_nodes(source), minlength=len(layers.names))
    counts, totals = _counts(in_order, window_count), _totals(in_order, window_count, edge_counts)
    return Networks(layers, window_edges_s, source, target, counts, totals)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Transfers (n), sorted by edge, then by step of the timeline; of the edge's outer layer."""

    layer: Ints
    edge: Ints
    window: Ints
    time_s: Reals
    size_bytes: Reals
    bandwidth: Reals
    is_read: Bools


def _steps(transfers: ManyTransfers, window_edges_s: Reals) -> Ints:
    """Return in which step of its run's timeline each transfer is (n), as `EdgeCounter` has it."""
    count = (window_edges_s.shape[1] - 1) * STEPS_PER_WINDOW
    steps_s = np.linspace(window_edges_s[:, 0], window_edges_s[:, -1], count + 1, axis=1)
    steps_s[:, ::STEPS_PER_WINDOW] = window_edges_s
    first_s, last_s = steps_s[:, 0], steps_s[:, -1]
    with np.errstate(over="ignore"):
        scaled = (transfers.at_s - first_s[transfers.run]) * (count / (last_s - first_s))[transfers.run]
    step: Ints = np.fmin(np.fmax(scaled, 0.0), count - 1).astype(np.int64)
    # rounding may have gone one step too far
    step -= (transfers.at_s < steps_s[transfers.run, step]) & (step > 0)
    step += (transfers.at_s >= steps_s[transfers.run, step + 1]) & (step < count - 1)
    return step


def _known(values: Reals) -> Reals:
    return np.where(np.isinf(values), np.nan, values)


def _counts(of: _Counted, window_count: int) -> pl.DataFrame:
    """Return COUNTS, sorted by edge, window, metric and bin."""
    span = of.edge * window_count + of.window
    keys = []
    for metric, values in enumerate((of.time_s, of.size_bytes, of.bandwidth)):
        bins = bin_numbers(values).astype(np.int64)
        is_known = bins != UNKNOWN
        keys.append(((span[is_known] * len(METRICS) + metric) << 16) + bins[is_known] + (1 << 15))
    key, count = np.unique(np.concatenate(keys), return_counts=True)
    place = key >> 16
    span = place // len(METRICS)
    columns = (span % window_count, span // window_count, place % len(METRICS), (key & 0xFFFF) - (1 << 15), count)
    return pl.DataFrame(dict(zip(COUNTS, columns, strict=True))).cast(COUNTS)


def _totals(of: _Counted, window_count: int, edge_counts: Ints) -> pl.DataFrame:
    """Return TOTALS, sorted by edge and window; edge_counts: by their outer layer."""
    span = of.edge * window_count + of.window
    starts = np.flatnonzero(np.diff(span, prepend=-1))
    of_hop = of.layer * window_count + of.window
    transfer_counts = np.bincount(of_hop)[of_hop[starts]]
    are_dense = is_dense(edge_counts[of.layer[starts]], transfer_counts)
    values = _sums(of, starts, are_dense)
    columns = (span[starts] % window_count, span[starts] // window_count, np.diff(starts, append=len(span)), *values)
    return pl.DataFrame(dict(zip(TOTALS, columns, strict=True))).cast(TOTALS)


def _sums(of: _Counted, starts: Ints, are_dense: Bools) -> list[Reals]:
    """Return the bytes read and written, the time and the longest time of the transfers from each start on."""
    if not len(starts):
        return [np.zeros(0)] * 4
    counts = np.diff(starts, append=len(of.edge))
    owner = np.repeat(np.arange(len(starts)), counts)
    size, time_s = np.fmax(of.size_bytes, 0.0), np.fmax(of.time_s, 0.0)
    moved = np.bincount(2 * owner + of.is_read, size, 2 * len(starts))
    at_once = (moved[1::2], moved[::2], np.bincount(owner, time_s))
    sorted_first = (np.add.reduceat(part, starts) for part in (size * of.is_read, size * ~of.is_read, time_s))
    sums = [np.where(are_dense, *both) for both in zip(at_once, sorted_first, strict=True)]
    largest = np.finfo(np.float64).max
    return [np.minimum(part, largest) for part in (*sums, np.maximum.reduceat(time_s, starts))]
