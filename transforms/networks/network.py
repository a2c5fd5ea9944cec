"""A run's I/O as a network: nodes in layers, and on each edge histograms of what crossed it, window by window.

After Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section IV:
compute processes, I/O nodes and storage nodes, or any other layers, outermost first; each edge between two layers
next to each other is a 1-D histogram of latency, size or bandwidth. Counts are kept per time window, so any range of
time is a sum of windows (section IV: "we stream and aggregate chunks of time").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals

#: what an edge has a histogram of, by its number in `Network.counts`: seconds, bytes, bytes per second
Metric = Literal["time", "size", "bandwidth"]
METRICS: tuple[Metric, ...] = get_args(Metric)
#: what the time of a transfer is: how long the request took where it was seen; from an event in one layer to its
#: answer in the next; or how long it took to be stored
TimeKind = Literal["service_time", "latency", "write_time"]
TIME_KINDS: tuple[TimeKind, ...] = get_args(TimeKind)
#: steps of the timeline within a window
STEPS_PER_WINDOW = 8

EDGES = pl.Schema({"hop": pl.Int32(), "source": pl.Int32(), "target": pl.Int32()})
COUNTS = pl.Schema(
    {"window": pl.Int32(), "edge": pl.Int32(), "metric": pl.Int8(), "bin": pl.Int16(), "count": pl.Int64()}
)
TOTALS = pl.Schema(
    {
        "window": pl.Int32(),
        "edge": pl.Int32(),
        "transfer_count": pl.Int64(),
        "read_bytes": pl.Float64(),
        "written_bytes": pl.Float64(),
        "transfer_time_s": pl.Float64(),
        "longest_s": pl.Float64(),
    }
)
TIMELINE = pl.Schema(
    {
        "hop": pl.Int32(),
        "metric": pl.Int8(),
        "step": pl.Int32(),
        "count": pl.Int64(),
        "sum": pl.Float64(),
        "least": pl.Float64(),
        "most": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class NetworkParams:
    """How fine a network is: its time windows, and how many nodes a layer has at most before some are taken together.

    8,192 are the compute processes of the paper's largest picture (Figure 4).
    """

    window_count: int = 64
    most_node_count: int = 8192


@dataclass(frozen=True, slots=True)
class Layer:
    """A ring of the network: its name ("rank", "host", "target") and its nodes' labels (n), by node number.

    labels: String. group_size: so many consecutive members of the layer are one node, labelled such as "128-255".
    member_count: the members of the layer, of which there are more than nodes where they are grouped.
    """

    name: str
    labels: pl.Series
    group_size: int = 1
    member_count: int = -1

    def __post_init__(self) -> None:
        if self.member_count < 0:
            object.__setattr__(self, "member_count", len(self.labels))

    @property
    def node_count(self) -> int:
        """Nodes of the layer."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Requests (n) as they go from nodes of a layer to nodes of the next one.

    hop: the number of the source's layer. source, target: node numbers in the two layers. at_s: when. time_s,
    size_bytes, bandwidth_bytes_per_s: NaN where not known; a latency is negative where clocks differ. is_read:
    whether bytes came from storage.
    """

    hop: int
    source: Ints
    target: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals
    bandwidth_bytes_per_s: Reals
    is_read: Bools


@dataclass(frozen=True, slots=True)
class Network:
    """What went between the layers (outermost first) in each time window.

    time_kinds: of each hop, one fewer than layers. window_edges_s (windows + 1): equal windows, rising.
    edges (EDGES): one row per edge that was used, sorted; an edge's number is its row.
    counts (COUNTS): transfers by window, edge, metric (its place in METRICS) and log bin (`log_bins`), sorted, only
    those that are not 0. What is not known is in no bin.
    totals (TOTALS): sums by window and edge, sorted; transfer_time_s is the sum of the known times that are not
    negative, and longest_s the longest; 0 where none is known.
    timeline (TIMELINE): by hop, metric and step (STEPS_PER_WINDOW to a window), sorted, only steps that have any: count
    and sum of the known values that are not negative, and the least and the most of all known ones.
    """

    layers: tuple[Layer, ...]
    time_kinds: tuple[TimeKind, ...]
    window_edges_s: Reals
    edges: pl.DataFrame
    counts: pl.DataFrame
    totals: pl.DataFrame
    timeline: pl.DataFrame

    def __post_init__(self) -> None:
        if len(self.time_kinds) != len(self.layers) - 1:
            raise ValueError(f"{len(self.layers)} layers have {len(self.layers) - 1} hops, not {len(self.time_kinds)}")

    @property
    def window_count(self) -> int:
        """Time windows."""
        return len(self.window_edges_s) - 1

    @property
    def hop_count(self) -> int:
        """Pairs of layers next to each other."""
        return len(self.time_kinds)
