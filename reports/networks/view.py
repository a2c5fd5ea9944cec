"""What any picture of a network is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from iosig.transforms.networks.network import METRICS, Metric, Network
from iosig.transforms.networks.rings import RadialLayout

#: a node is slow that takes so many times as long as the median node of its layer
SLOW_RATIO = 2.0
#: with fewer nodes than these in every layer a network is drawn as matrices
FEW_NODES = 16


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """The slowest nodes of a layer, the slowest first: labels, and how many times as long as the median they take.

    node_count: nodes whose times are known; slow_count: those of them that are slow.
    """

    layer: str
    node_count: int
    slow_count: int
    labels: tuple[str, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NetworkView:
    """A network with what is said of it.

    title: the trace's name, as it came. notes: sentences on what was measured and how well. patterns, bottlenecks:
    rows of `network_patterns` and `network_bottlenecks`, if only by their columns there. metric: what is shown first.
    windows: the first time window that is selected, and the one after the last; all of them when None. slow: of layers
    of which two nodes or more can be compared, outermost first.
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

    @property
    def is_small(self) -> bool:
        """Whether every layer has so few nodes that matrices tell more than rings, and there is something to tell."""
        if not all(0 < layer.node_count < FEW_NODES for layer in self.network.layers):
            return False
        is_told = pl.col("metric") == METRICS.index(self.metric)
        return not self.network.counts.filter(is_told, pl.col("window").is_between(*self.selected, "left")).is_empty()

    @property
    def selected(self) -> tuple[int, int]:
        """The selected windows: the first one, and the one after the last."""
        return self.windows or (0, self.network.window_count)
