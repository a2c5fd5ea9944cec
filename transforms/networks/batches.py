"""Store the networks of many runs in shared arrays; number layers, nodes and edges consecutively across all runs.

A single network is a batch of one run. For many small runs, one call on a batch replaces thousands of calls on frames
of a few rows each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.networks.network import Layer, Network, TimeKind


@dataclass(frozen=True, slots=True)
class LayerBatch:
    """Layers of n runs and their nodes, both numbered run by run, from outermost to innermost layer.

    Attributes
    ----------
    names : (layers,)
        Kind of each layer's nodes.
    time_kinds : (layers,)
        Meaning of the times of the hop to the next layer; None for a run's innermost layer.
    first : (n + 1,)
        First layer of each run, and the number of layers.
    first_node : (layers + 1,)
        First node of each layer, and the number of nodes.
    labels : String, (nodes,)
        Label of each node.
    """

    names: tuple[str, ...]
    time_kinds: tuple[TimeKind | None, ...]
    first: Ints
    first_node: Ints
    labels: pl.Series

    @classmethod
    def from_layers(cls, layers: Sequence[Layer], time_kinds: Sequence[TimeKind]) -> LayerBatch:
        """Convert the layers of a single run."""
        return cls(
            tuple(layer.name for layer in layers),
            (*time_kinds, None),
            np.array([0, len(layers)]),
            offsets_of([layer.node_count for layer in layers]),
            pl.concat([layer.labels.cast(pl.String) for layer in layers]),
        )

    @property
    def run(self) -> Ints:
        """Return the index of the run that each layer belongs to: shape (layers,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def hop(self) -> Ints:
        """Return the index of each layer, and of the hop to the next layer, within the run: shape (layers,)."""
        return np.arange(len(self.names)) - self.first[self.run]

    @property
    def outer(self) -> Ints:
        """Return the layers that have a hop to a next layer."""
        return np.flatnonzero([kind is not None for kind in self.time_kinds])

    def find_layers(self, nodes: Ints) -> Ints:
        """Return the layer of each node, shape (n,)."""
        layers: Ints = np.searchsorted(self.first_node, nodes, side="right") - 1
        return layers


@dataclass(frozen=True, slots=True)
class NetworkBatch:
    """Networks of n runs with the same number of windows each; see `Network`.

    Attributes
    ----------
    layers
        Layers and nodes of all runs.
    window_edges_s : (n, windows + 1)
        Edges of each run's windows [s].
    source, target : (edges,)
        Nodes of each edge; edges are sorted by source and target, and thus by run and hop.
    counts : COUNTS
        Number of transfers by log bin; bins ascend within each edge, window and metric.
    totals : TOTALS
        Sums by window and edge, in any order.
    """

    layers: LayerBatch
    window_edges_s: Reals
    source: Ints
    target: Ints
    counts: pl.DataFrame
    totals: pl.DataFrame

    @classmethod
    def from_network(cls, network: Network) -> NetworkBatch:
        """Convert a single network to a batch of one run."""
        layers = LayerBatch.from_layers(network.layers, network.time_kinds)
        first_node = layers.first_node
        hop, source, target = (network.edges[name].cast(pl.Int64).to_numpy() for name in network.edges.columns)
        edges_s = network.window_edges_s[None, :]
        return cls(
            layers, edges_s, source + first_node[hop], target + first_node[hop + 1], network.counts, network.totals
        )

    @property
    def window_count(self) -> int:
        """Return the number of windows of each run."""
        return int(self.window_edges_s.shape[1]) - 1


@dataclass(frozen=True, slots=True)
class TransferBatch:
    """Transfers of many runs: columns of `Transfers` with nodes numbered across all runs, and the run of each."""

    run: Ints
    source: Ints
    target: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals
    bandwidth_bytes_per_s: Reals
    is_read: Bools
