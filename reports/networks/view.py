"""Define the data behind every figure of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from iosig.transforms.networks.network import METRICS, Metric, Network
from iosig.transforms.networks.rings import RadialLayout

#: threshold for slow nodes: their time divided by the median time of their layer
SLOW_RATIO = 2.0
#: networks with fewer nodes than this in every layer are drawn as matrices
FEW_NODES = 16


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """The slowest nodes of one layer in descending order: labels and ratios to the layer's median time.

    node_count: nodes with known times. slow_count: number of these nodes above the threshold.
    """

    layer: str
    node_count: int
    slow_count: int
    labels: tuple[str, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NetworkView:
    """A network together with its findings, ready to be drawn.

    title: the trace's name, unmodified. notes: sentences on what was measured and how well. patterns, bottlenecks: rows
    with columns of `network_patterns` and `network_bottlenecks`. metric: the metric shown first. windows: the selected
    windows, first and last + 1; None selects all. slow: layers with two or more comparable nodes, outermost first.
    peers: views of other runs that are drawn on the same scales of values, colors and times.
    """

    title: str
    network: Network
    layout: RadialLayout
    patterns: pl.DataFrame
    bottlenecks: pl.DataFrame
    notes: tuple[str, ...] = field(default=())
    metric: Metric = "time"
    windows: tuple[int, int] | None = None
    slow: tuple[SlowNodes, ...] = ()
    peers: tuple[NetworkView, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether all layers are small enough for matrices and the selection has values of the metric."""
        if not all(0 < layer.node_count < FEW_NODES for layer in self.network.layers):
            return False
        is_told = pl.col("metric") == METRICS.index(self.metric)
        return not self.network.counts.filter(
            is_told, pl.col("window").is_between(*self.window_range, "left")
        ).is_empty()

    @property
    def window_range(self) -> tuple[int, int]:
        """The selected windows as a half-open range: first, last + 1."""
        return self.windows or (0, self.network.window_count)


def share_scales(views: Sequence[NetworkView]) -> tuple[NetworkView, ...]:
    """Put views of several runs on the same scales; raises ValueError if their layers differ."""
    kinds = {(tuple(layer.name for layer in view.network.layers), view.network.time_kinds) for view in views}
    if len(kinds) > 1:
        names = " and ".join(sorted(", ".join(layers) for layers, _ in kinds))
        raise ValueError(f"the runs have different layers: {names}")
    return tuple(replace(view, peers=tuple(peer for peer in views if peer is not view)) for view in views)
