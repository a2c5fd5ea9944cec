"""What any picture of a network is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from transforms.networks.network import Metric, Network
from transforms.networks.rings import RadialLayout


@dataclass(frozen=True, slots=True)
class NetworkView:
    """A network with what is said of it.

    title: the trace's name, as it came. notes: sentences on what was measured and how well. patterns, bottlenecks:
    rows of `network_patterns` and `network_bottlenecks`, if only by their columns there. metric: what is shown first.
    windows: the first time window that is selected, and the one after the last; all of them when None.
    """

    title: str
    network: Network
    layout: RadialLayout
    patterns: pl.DataFrame
    bottlenecks: pl.DataFrame
    notes: tuple[str, ...] = field(default=())
    metric: Metric = "time"
    windows: tuple[int, int] | None = None

    @property
    def selected(self) -> tuple[int, int]:
        """The selected windows: the first one, and the one after the last."""
        return self.windows or (0, self.network.window_count)
