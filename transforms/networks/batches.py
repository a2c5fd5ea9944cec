"""Networks of many runs in the same arrays: layers, nodes and edges are numbered through all runs.

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
    """The layers of networks of many runs (n), numbered run after run, outermost first; and their nodes, likewise.

    names (layers). time_kinds (layers): of the hop from a layer to the next one; None for a run's innermost layer.
    first (n + 1): where each run's layers begin. first_node (layers + 1). labels (nodes): String.
    """

    names: tuple[str, ...]
    time_kinds: tuple[TimeKind | None, ...]
    first: Ints
    first_node: Ints
    labels: pl.Series

    @classmethod
    def of_one(cls, layers: Sequence[Layer], time_kinds: Sequence[TimeKind]) -> LayerBatch:
        """Return the layers of a single run."""
        return cls(
            tuple(layer.name for layer in layers),
            (*time_kinds, None),
            np.array([0, len(layers)]),
            offsets_of([layer.node_count for layer in layers]),
            pl.concat([layer.labels.cast(pl.String) for layer in layers]),
        )

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
class NetworkBatch:
    """Networks of many runs (n), with as many windows each; see `Network`.

    window_edges_s (n, windows + 1). source, target (edges): nodes; edges are sorted by both, and so by run and hop.
    counts (COUNTS): bins rise in each edge, window and metric. totals (TOTALS): in any order.
    """

    layers: LayerBatch
    window_edges_s: Reals
    source: Ints
    target: Ints
    counts: pl.DataFrame
    totals: pl.DataFrame

    @classmethod
    def of_one(cls, network: Network) -> NetworkBatch:
        """Return a network as the only one of many."""
        layers = LayerBatch.of_one(network.layers, network.time_kinds)
        first_node = layers.first_node
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
class TransferBatch:
    """Transfers (n) of many runs: as `Transfers`, each of its run, between nodes that are numbered through all."""

    run: Ints
    source: Ints
    target: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals
    bandwidth_bytes_per_s: Reals
    is_read: Bools
