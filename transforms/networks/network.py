"""Represent a run's I/O as a layered network: a graph of the transfers between processes, hosts and storage targets.

The network follows Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13),
section IV. Its layers are compute processes, I/O nodes and storage nodes, or any others, from outermost to innermost. A
hop is the step from one layer to the next. Each edge between nodes of adjacent layers has 1-D histograms of latency,
size and bandwidth. Counts are kept per time window, so that any time range is a sum of windows (section IV: "we stream
and aggregate chunks of time").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals

#: quantities of the edge histograms, in seconds, bytes and bytes per second; `metric` in `Network.counts` is an index
Metric = Literal["time", "size", "bandwidth"]
METRICS: tuple[Metric, ...] = get_args(Metric)
#: meaning of a transfer's time: duration of the request in its own layer, time from an event in one layer to the
#: response in the next layer, or duration of the write to storage
TimeKind = Literal["service_time", "latency", "write_time"]
TIME_KINDS: tuple[TimeKind, ...] = get_args(TimeKind)
#: common clock of the ranks, see `clock_skew.center_skew`
ClockCenter = Literal["causal", "median"]
#: time resolution of the timeline, in steps per window
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
        "max_transfer_time_s": pl.Float64(),
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
    """Resolution of a network in time and nodes.

    Attributes
    ----------
    window_count
        Number of time windows.
    max_node_count
        Maximum number of nodes in a layer; larger layers are grouped. 8,192 is the number of compute processes in the
        paper's largest picture (Figure 4).
    clock_center
        Common clock of the ranks of request events: that of the `median` rank, or the nearest clock at which no request
        is received before it is sent (`causal`).
    """

    window_count: int = 64
    max_node_count: int = 8192
    clock_center: ClockCenter = "causal"


@dataclass(frozen=True, slots=True)
class Layer:
    """Nodes of one kind, which form a ring of the network.

    Attributes
    ----------
    name
        Kind of the nodes ("rank", "host", "target").
    labels : String, (nodes,)
        Label of each node.
    group_size
        Number of consecutive members per node; a node of several members has a label such as "128-255".
    member_count
        Number of members, which exceeds the number of nodes if nodes are grouped. Defaults to the number of nodes.
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
        """Return the number of nodes; each consists of one or more members."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Columns of n transfers from nodes of one layer to nodes of the next.

    Attributes
    ----------
    hop
        Index of the source layer.
    source, target : (n,)
        Node indices in the two layers.
    at_s : (n,)
        Time of the transfer [s].
    time_s, size_bytes, bandwidth_bytes_per_s : (n,)
        Duration or latency, size and bandwidth; NaN if unknown. A latency may be negative if clocks differ.
    is_read : (n,)
        Whether the bytes came from storage (true) or went to storage.
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
    """Layers, and the transfers between them by time window.

    Attributes
    ----------
    layers
        Layers from outermost to innermost.
    time_kinds
        Meaning of the times of each hop; one fewer than layers.
    window_edges_s : (windows + 1,)
        Edges of equal windows, ascending.
    edges : EDGES
        One row per edge with transfers, sorted; the row index is the number of the edge.
    counts : COUNTS
        Number of transfers by window, edge, metric (index in METRICS) and log bin (`log_bins`), sorted, without zeros.
        Unknown values are in no bin.
    totals : TOTALS
        Sums by window and edge, sorted. `transfer_time_s` is the sum of the known, nonnegative times, and
        `max_transfer_time_s` their maximum; both are 0 if no time is known.
    timeline : TIMELINE
        Summary by hop, metric and step (STEPS_PER_WINDOW per window), sorted, without empty steps. It contains the
        count and the sum of the known, nonnegative values, and the minimum and maximum of all known values.
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
        """Return the number of time windows."""
        return len(self.window_edges_s) - 1

    @property
    def hop_count(self) -> int:
        """Return the number of hops, which are pairs of adjacent layers."""
        return len(self.time_kinds)
