"""Read the network of one traced run without a warehouse, select time windows, and build its JSON and figure data.

A network is the graph of a traced run's transfers: nodes are ranks, hosts, files and storage targets, in layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.estimates.networks.builder import NetworkResult, Query, build_trace_network
from iosig.reports.networks.view import SLOW_RATIO, NetworkView, SlowNodes
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.transforms.networks.counting import merge_windows
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS, STEPS_PER_WINDOW, Metric, Network, NetworkParams
from iosig.transforms.networks.patterns import classify_patterns
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.protocol import find_folder_source

_REMEDIES = {
    "darshan": "Run the program again with DXT_ENABLE_IO_TRACE=1, or with DXT in its Darshan configuration.",
    "recorder": "Check that the trace contains reads or writes of POSIX, MPI-IO or HDF5.",
}
_REMEDY = "Pass a trace with single requests."
_OTHER_LAYERS = "A network needs at least two layers: choose others with --layers."
_MORE_LAYERS = {"request_events": "Trace each request in two layers or more, with the same rank and request_id."}
_LOST = "Copy the log again from where Darshan wrote it; if it is damaged there, the requests are lost."
#: maximum slow nodes of a layer that the figure labels
_MAX_SLOW_NODES = 5
#: prefix of Darshan modules with individual requests
_TRACED = "DXT_"


class _Layer(Part):
    name: str = Field(description="the layer")
    nodes: int = Field(description="its nodes [nodes]")
    members: int = Field(description="members that the nodes represent [members]")
    group_size: int = Field(description="members per node [members]")


class _Node(Part):
    node: str = Field(description="its name")
    transfer_count: int = Field(description="transfers to it [transfers]")
    read_bytes: int = Field(description="bytes read [B]")
    written_bytes: int = Field(description="bytes written [B]")
    mean_s: float | None = Field(description="mean time of a transfer [s]")
    median_ratio: float | None = Field(description="ratio of the mean time to the median node's [1]")
    time_ratio: float | None = Field(description="fraction of the layer's transfer time [1]")
    bytes_per_s: float | None = Field(description="bytes per transfer time [B/s]")
    max_transfer_time_s: float | None = Field(description="the longest transfer [s]")


class NetworkDocument(Document, title="iosig network"):
    """The network of a traced run: transfers between nodes, and their times."""

    format: Literal["iosig-network/1"] = "iosig-network/1"
    name: str = Field(description="the input")
    module: str = Field(description="the module of the requests")
    request_count: int = Field(description="requests [requests]")
    covered_ratio: float | None = Field(description="fraction of the counted bytes that the requests cover [1]")
    negative_time_count: int = Field(description="requests that end before they begin [requests]")
    notes: list[str] = Field(description="remarks on the data")
    window_count: int = Field(description="time windows [windows]")
    window_s: list[float | None] = Field(description="start and end of the selected time [s]")
    layers: list[_Layer] = Field(description="the layers, outermost first")
    edge_counts: list[int | None] = Field(description="edges between each layer and the next")
    time_kinds: list[str] = Field(description="meaning of the time of each hop")
    patterns: list[Any] = Field(description="communication patterns between layers")
    bottlenecks: list[Any] = Field(description="outlier requests")
    nodes: dict[str, list[_Node]] = Field(description="layer = its nodes, the slowest first")


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """A network that was built from an input; refused_count: rows that could not be read.

    windows: selected time windows, as first and one past the last; None selects all.
    """

    name: str
    made: NetworkResult
    refused_count: int
    windows: tuple[int, int] | None = None

    @property
    def network(self) -> Network:
        """The network; never None, since `read_network` refuses inputs without a network."""
        assert self.made.network is not None
        return self.made.network

    @property
    def span_s(self) -> tuple[float, float]:
        """Start and end of the selected time, in seconds since the run's start."""
        first, stop = self.windows or (0, self.network.window_count)
        edges_s = self.network.window_edges_s
        return float(edges_s[first]), float(edges_s[stop])

    def within(self, span_s: tuple[float, float]) -> NetworkInput:
        """Select the windows that overlap a time span.

        Raises UsageError if the run does not overlap it.
        """
        return replace(self, windows=_windows(self.network, span_s))

    def view(self, metric: Metric) -> NetworkView:
        """Build the figure data; metric: color of the edges."""
        from iosig.transforms.networks.rings import compute_layout

        return NetworkView(
            self.name,
            self.network,
            compute_layout(self.network),
            self._add_layers_and_times(self.made.patterns),
            self.made.bottlenecks,
            self.made.notes,
            metric,
            self.windows,
            tuple(slow_nodes for layer in self.network.layers if (slow_nodes := self._slowest(layer.name)) is not None),
        )

    def _slowest(self, layer: str) -> SlowNodes | None:
        """Return the slowest nodes of a layer; None if fewer than two nodes have known times."""
        nodes = self.nodes(layer).drop_nulls("median_ratio")
        if nodes.height < 2:
            return None
        slow_count = nodes.filter(pl.col("median_ratio") >= SLOW_RATIO).height
        first = nodes.head(_MAX_SLOW_NODES)
        return SlowNodes(layer, nodes.height, slow_count, tuple(first["node"]), tuple(first["median_ratio"]))

    def patterns(self) -> pl.DataFrame:
        """Return the patterns with layers and times; if windows are selected, those of the merged windows."""
        if self.windows is None:
            return self._add_layers_and_times(self.made.patterns)
        first, stop = self.windows
        merged_patterns = classify_patterns(_merge_windows(self.network, first, stop)).filter("is_whole_run")
        return self._add_layers_and_times(
            merged_patterns.with_columns(
                pl.lit(stop - first == self.network.window_count).alias("is_whole_run"),
                pl.lit(first, pl.Int32).alias("first_window"),
                pl.lit(stop, pl.Int32).alias("last_window"),
            )
        )

    def whole_patterns(self) -> pl.DataFrame:
        """Return the patterns over the whole selected time."""
        return self.patterns() if self.windows is not None else self.patterns().filter("is_whole_run")

    def _add_layers_and_times(self, patterns_found: pl.DataFrame) -> pl.DataFrame:
        names = [layer.name for layer in self.network.layers]
        edges_s = pl.Series(self.network.window_edges_s)
        return patterns_found.with_columns(
            pl.Series("source_layer", [names[hop] for hop in patterns_found["hop"]], pl.String),
            pl.Series("target_layer", [names[hop + 1] for hop in patterns_found["hop"]], pl.String),
            edges_s.gather(patterns_found["first_window"]).alias("window_start_s"),
            edges_s.gather(patterns_found["last_window"]).alias("window_end_s"),
        )

    def bottlenecks(self) -> pl.DataFrame:
        """Return the outlier requests that started in the selected time."""
        requests = self.made.bottlenecks
        if self.windows is None or requests.is_empty():
            return requests
        return requests.filter(pl.col("start_s").is_between(*self.span_s))

    def nodes(self, layer: str) -> pl.DataFrame:
        """Return statistics of the transfers into each node of a layer, slowest node first.

        For the outermost layer, of the transfers out of its nodes. Columns: node, transfer_count, read_bytes,
        written_bytes, mean_s (NULL without a nonnegative time), median_ratio (mean_s over the median node's),
        time_ratio (fraction of the layer's time), bytes_per_s (bytes over total transfer time), all three NULL instead
        of a division by 0, and max_transfer_time_s.
        """
        place = [item.name for item in self.network.layers].index(layer)
        labels = self.network.layers[place].labels
        hop, end = (place - 1, "target") if place else (0, "source")
        edges = (
            self.network.edges.with_row_index("edge")
            .filter(pl.col("hop") == hop)
            .select(pl.col("edge").cast(pl.Int32), pl.col(end).alias("place"))
        )
        totals, counts = (self._select_windows(rows) for rows in (self.network.totals, self.network.counts))
        # times may be unknown, and sums cover nonnegative times only
        is_timed = (pl.col("metric") == METRICS.index("time")) & (pl.col("bin") > NEGATIVE)
        timed = counts.filter(is_timed).join(edges, on="edge").group_by("place").agg(pl.col("count").sum())
        time_s = pl.col("transfer_time_s")
        statistics = (
            # maintain order, so that floating-point sums are reproducible
            totals.join(edges, on="edge", maintain_order="left")
            .group_by("place", maintain_order=True)
            .agg(
                pl.col("transfer_count", "read_bytes", "written_bytes", "transfer_time_s").sum(),
                pl.col("max_transfer_time_s").max(),
            )
            .join(timed, on="place", how="left")
            .with_columns(pl.when(pl.col("count") > 0).then(time_s / pl.col("count")).alias("mean_s"))
            .sort("mean_s", "place", descending=[True, False], nulls_last=True)
        )
        return statistics.select(
            labels.gather(statistics["place"]).alias("node"),
            "transfer_count",
            "read_bytes",
            "written_bytes",
            "mean_s",
            _ratio(pl.col("mean_s"), pl.col("mean_s").median()).alias("median_ratio"),
            _ratio(time_s, time_s.sum()).alias("time_ratio"),
            _ratio(pl.col("read_bytes") + pl.col("written_bytes"), time_s).alias("bytes_per_s"),
            "max_transfer_time_s",
        )

    def _select_windows(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows if self.windows is None else rows.filter(pl.col("window").is_between(*self.windows, closed="left"))

    def build_document(self) -> NetworkDocument:
        """Build the JSON document of the selected time."""
        layers = self.network.layers
        return NetworkDocument(
            name=self.name,
            module=self.made.module,
            request_count=self.made.request_count,
            covered_ratio=self.made.covered_ratio,
            negative_time_count=self.made.negative_time_count,
            notes=self.made.notes,
            window_count=self.network.window_count,
            window_s=self.span_s,
            layers=[
                {"name": x.name, "nodes": x.node_count, "members": x.member_count, "group_size": x.group_size}
                for x in layers
            ],
            edge_counts=[int((self.network.edges["hop"] == hop).sum()) for hop in range(self.network.hop_count)],
            time_kinds=self.network.time_kinds,
            patterns=self.patterns().to_dicts(),
            bottlenecks=self.bottlenecks().to_dicts(),
            nodes={layer.name: self.nodes(layer.name).to_dicts() for layer in layers},
        )


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(part / whole)


def _merge_windows(network: Network, first: int, stop: int) -> Network:
    """Merge the selected windows of a network into one."""
    is_in = pl.col("window").is_between(first, stop, closed="left")
    is_step = pl.col("step").is_between(first * STEPS_PER_WINDOW, stop * STEPS_PER_WINDOW, closed="left")
    cut = replace(
        network,
        window_edges_s=network.window_edges_s[first : stop + 1],
        counts=network.counts.filter(is_in).with_columns(pl.col("window") - first),
        totals=network.totals.filter(is_in).with_columns(pl.col("window") - first),
        timeline=network.timeline.filter(is_step).with_columns(pl.col("step") - first * STEPS_PER_WINDOW),
    )
    return merge_windows(cut, stop - first)


def read_network(path: Path, settings: Settings, query: Query, params: NetworkParams) -> NetworkInput:
    """Read one traced run and build its network.

    Raises InputRefused if it is not a trace, has no individual requests, or has only one layer.
    """
    if path.is_dir() and find_folder_source(path) is None:
        raise InputRefused(f"{path.name} is a folder, but not a trace.", "Pass one trace.")
    with open_input(path, settings, ReadOptions()) as trace:
        if not isinstance(trace, TraceInput):
            raise InputRefused(f"{trace.name} is not a trace.", "Pass a trace.")
        job = trace.jobs.row(0, named=True)
        result = build_trace_network(trace.landed, query, params, job["process_count"])
        if result.network is None:
            raise _refusal(trace, result, job["tracer"])
        return NetworkInput(trace.name, result, trace.refused_count)


def _refusal(trace: TraceInput, result: NetworkResult, tracer: str) -> InputRefused:
    """Build the error for a trace without a network, with its remedy."""
    if result.outcome != "no_requests":
        return InputRefused(f"{trace.name}: {' '.join(result.notes)}", _MORE_LAYERS.get(tracer, _OTHER_LAYERS))
    is_lost = pl.col("module").str.starts_with(_TRACED) & pl.col("outcome").is_in(["unreadable", "unsupported"])
    lost = trace.counters.filter(is_lost).select("module", pl.col("reason").fill_null("it is damaged")).rows()
    if lost:
        reasons = "; ".join(f"{module}: {reason.rstrip('.')}" for module, reason in lost)
        return InputRefused(f"{trace.name}: its single requests cannot be read ({reasons}).", _LOST)
    return InputRefused(f"{trace.name}: {_list_modules(trace)}", _REMEDIES.get(tracer, _REMEDY))


def _list_modules(trace: TraceInput) -> str:
    modules = trace.counters["module"].to_list()
    records = f"the trace has {', '.join(modules)}" if modules else "the trace has no records"
    return f"a network needs single requests; {records}."


def _windows(network: Network, span_s: tuple[float, float]) -> tuple[int, int]:
    edges_s = network.window_edges_s
    first = int(np.searchsorted(edges_s, span_s[0], side="right")) - 1
    last = int(np.searchsorted(edges_s, span_s[1], side="left"))
    first, last = max(first, 0), min(last, network.window_count)
    if first >= last:
        raise UsageError(
            f"The time window is outside of the run, which lasts from {edges_s[0]:g} to {edges_s[-1]:g} s."
        )
    return first, last
