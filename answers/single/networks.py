"""The network of one input, no warehouse: read as the night would read it, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part
from iosig.answers.single.one_input import TraceInput, opened
from iosig.estimates.networks.making import Asked, Made, network_of_trace
from iosig.reports.networks.view import SLOW_RATIO, NetworkView, SlowNodes
from iosig.settings.model import Settings
from iosig.streams.landing import Told
from iosig.transforms.networks.counting import merge_windows
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS, STEPS_PER_WINDOW, Metric, Network, NetworkParams
from iosig.transforms.networks.patterns import classify_patterns
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.protocol import owner

_REMEDIES = {
    "darshan": "Run the program again with DXT_ENABLE_IO_TRACE=1, or with DXT in its Darshan configuration.",
    "recorder": "Check that the trace holds reads or writes, of POSIX, MPI-IO or HDF5.",
}
_REMEDY = "Take a trace with single requests."
_OTHER_LAYERS = "A network takes two layers or more: name others with --layers."
_MORE_LAYERS = {"request_events": "Trace each request in two layers or more, with the same rank and request_id."}
_LOST = "Fetch the log anew from where Darshan wrote it; if it is so there too, they are lost."
#: nodes of a layer that a picture names as slow
_SLOWEST = 5
#: what a Darshan module that has single requests is called
_TRACED = "DXT_"


class _Layer(Part):
    name: str = Field(description="the layer")
    nodes: int = Field(description="its nodes [nodes]")
    members: int = Field(description="who they stand for [members]")
    group_size: int = Field(description="members of a node [members]")


class _Node(Part):
    node: str = Field(description="its name")
    transfer_count: int = Field(description="what went to it [transfers]")
    read_bytes: int = Field(description="bytes read [B]")
    written_bytes: int = Field(description="bytes written [B]")
    mean_s: float | None = Field(description="time of a transfer [s]")
    median_ratio: float | None = Field(description="of that to the median node's [1]")
    time_ratio: float | None = Field(description="its share of the layer's time [1]")
    bytes_per_s: float | None = Field(description="while it was at it [B/s]")
    max_transfer_time_s: float | None = Field(description="the longest transfer [s]")


class NetworkDocument(Document, title="iosig network"):
    """Which nodes talked to which, and how fast."""

    format: Literal["iosig-network/1"] = "iosig-network/1"
    name: str = Field(description="the input")
    module: str = Field(description="whose requests")
    request_count: int = Field(description="requests [requests]")
    covered_ratio: float | None = Field(description="how many of all requests are told of [1]")
    negative_time_count: int = Field(description="requests that end before they begin [requests]")
    notes: list[str] = Field(description="what has to be known of it")
    window_count: int = Field(description="time windows [windows]")
    window_s: list[float | None] = Field(description="the time that is told of")
    layers: list[_Layer] = Field(description="the layers, outermost first")
    edge_counts: list[int | None] = Field(description="edges between each layer and the next")
    time_kinds: list[str] = Field(description="what the time of an edge is")
    patterns: list[Any] = Field(description="what the nodes of two layers look like together")
    bottlenecks: list[Any] = Field(description="single requests that stand out")
    nodes: dict[str, list[_Node]] = Field(description="layer = its nodes, the slowest first")


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """A network that could be made, by the input's name; refused_count: rows that could not be read.

    windows: what is asked of it is told of these, the first one and the one after the last; of all where None.
    """

    name: str
    made: Made
    refused_count: int
    windows: tuple[int, int] | None = None

    @property
    def network(self) -> Network:
        """The network."""
        assert self.made.network is not None
        return self.made.network

    @property
    def span_s(self) -> tuple[float, float]:
        """The time that is told of, in seconds since the run's start."""
        first, stop = self.windows or (0, self.network.window_count)
        edges_s = self.network.window_edges_s
        return float(edges_s[first]), float(edges_s[stop])

    def within(self, span_s: tuple[float, float]) -> NetworkInput:
        """Return what is told of the whole windows that hold a span of time.

        Raises UsageError if the run has no time in it.
        """
        return replace(self, windows=_windows(self.network, span_s))

    def view(self, metric: Metric) -> NetworkView:
        """Return what a picture is drawn from."""
        from iosig.transforms.networks.rings import compute_layout

        return NetworkView(
            self.name,
            self.network,
            compute_layout(self.network),
            self._placed(self.made.patterns),
            self.made.bottlenecks,
            self.made.notes,
            metric,
            self.windows,
            tuple(one for layer in self.network.layers if (one := self._slowest(layer.name)) is not None),
        )

    def _slowest(self, layer: str) -> SlowNodes | None:
        """Return the slowest nodes of a layer; None where there are no two whose times can be compared."""
        nodes = self.nodes(layer).drop_nulls("median_ratio")
        if nodes.height < 2:
            return None
        slow_count = nodes.filter(pl.col("median_ratio") >= SLOW_RATIO).height
        first = nodes.head(_SLOWEST)
        return SlowNodes(layer, nodes.height, slow_count, tuple(first["node"]), tuple(first["median_ratio"]))

    def patterns(self) -> pl.DataFrame:
        """Return the patterns with their layers and their windows' times; of a selected time, one for all of it."""
        if self.windows is None:
            return self._placed(self.made.patterns)
        first, stop = self.windows
        found = classify_patterns(_of_windows(self.network, first, stop)).filter("is_whole_run")
        return self._placed(
            found.with_columns(
                pl.lit(stop - first == self.network.window_count).alias("is_whole_run"),
                pl.lit(first, pl.Int32).alias("first_window"),
                pl.lit(stop, pl.Int32).alias("last_window"),
            )
        )

    def whole_patterns(self) -> pl.DataFrame:
        """Return the patterns of all of the time that is told of."""
        return self.patterns() if self.windows is not None else self.patterns().filter("is_whole_run")

    def _placed(self, found: pl.DataFrame) -> pl.DataFrame:
        names = [layer.name for layer in self.network.layers]
        edges_s = pl.Series(self.network.window_edges_s)
        return found.with_columns(
            pl.Series("source_layer", [names[hop] for hop in found["hop"]], pl.String),
            pl.Series("target_layer", [names[hop + 1] for hop in found["hop"]], pl.String),
            edges_s.gather(found["first_window"]).alias("window_start_s"),
            edges_s.gather(found["last_window"]).alias("window_end_s"),
        )

    def bottlenecks(self) -> pl.DataFrame:
        """Return the single requests that stand out, those that began in the time that is told of."""
        found = self.made.bottlenecks
        if self.windows is None or found.is_empty():
            return found
        return found.filter(pl.col("start_s").is_between(*self.span_s))

    def nodes(self, layer: str) -> pl.DataFrame:
        """Return what went to the nodes of a layer from the next one outward, the slowest node first.

        Of the outermost layer, what went from its nodes. Columns: node, transfer_count, read_bytes, written_bytes,
        mean_s (NULL where no time is known that is not negative), median_ratio (of mean_s to the median node's),
        time_ratio (the share of the layer's time), bytes_per_s (of the time that the transfers took, added up), all
        three NULL where they would divide by 0; max_transfer_time_s.
        """
        place = [known.name for known in self.network.layers].index(layer)
        labels = self.network.layers[place].labels
        hop, end = (place - 1, "target") if place else (0, "source")
        edges = (
            self.network.edges.with_row_index("edge")
            .filter(pl.col("hop") == hop)
            .select(pl.col("edge").cast(pl.Int32), pl.col(end).alias("place"))
        )
        totals, counts = (self._told(rows) for rows in (self.network.totals, self.network.counts))
        # not all times need be known, and the sum is of those that are not negative
        is_timed = (pl.col("metric") == METRICS.index("time")) & (pl.col("bin") > NEGATIVE)
        timed = counts.filter(is_timed).join(edges, on="edge").group_by("place").agg(pl.col("count").sum())
        time_s = pl.col("transfer_time_s")
        found = (
            # in order, so that sums of reals have the same digits each time
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
        return found.select(
            labels.gather(found["place"]).alias("node"),
            "transfer_count",
            "read_bytes",
            "written_bytes",
            "mean_s",
            _ratio(pl.col("mean_s"), pl.col("mean_s").median()).alias("median_ratio"),
            _ratio(time_s, time_s.sum()).alias("time_ratio"),
            _ratio(pl.col("read_bytes") + pl.col("written_bytes"), time_s).alias("bytes_per_s"),
            "max_transfer_time_s",
        )

    def _told(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows if self.windows is None else rows.filter(pl.col("window").is_between(*self.windows, closed="left"))

    def document(self) -> NetworkDocument:
        """Return what is found for programs."""
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


def _of_windows(network: Network, first: int, stop: int) -> Network:
    """Return some windows of a network, as one."""
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


def network_input(path: Path, settings: Settings, asked: Asked, params: NetworkParams) -> NetworkInput:
    """Read one traced run and make its network.

    Raises InputRefused if it is no trace, or tells of no single requests or of one layer only.
    """
    if path.is_dir() and owner(path) is None:
        raise InputRefused(f"{path.name} is a folder, but not a trace.", "Give one trace.")
    with opened(path, settings, Told()) as found:
        if not isinstance(found, TraceInput):
            raise InputRefused(f"{found.name} is no trace: it does not tell who moved bytes.", "Give a trace.")
        job = found.jobs.row(0, named=True)
        made = network_of_trace(found.landed, asked, params, job["process_count"])
        if made.network is None:
            raise _refusal(found, made, job["tracer"])
        return NetworkInput(found.name, made, found.refused_count)


def _refusal(found: TraceInput, made: Made, tracer: str) -> InputRefused:
    """Return why there is no network, and what to do about it."""
    if made.outcome != "no_requests":
        return InputRefused(f"{found.name}: {' '.join(made.notes)}", _MORE_LAYERS.get(tracer, _OTHER_LAYERS))
    is_lost = pl.col("module").str.starts_with(_TRACED) & pl.col("outcome").is_in(["unreadable", "unsupported"])
    lost = found.counters.filter(is_lost).select("module", pl.col("reason").fill_null("it is damaged")).rows()
    if lost:
        why = "; ".join(f"{module}: {reason.rstrip('.')}" for module, reason in lost)
        return InputRefused(f"{found.name}: its single requests cannot be read ({why}).", _LOST)
    return InputRefused(f"{found.name}: {_what_there_is(found)}", _REMEDIES.get(tracer, _REMEDY))


def _what_there_is(found: TraceInput) -> str:
    modules = found.counters["module"].to_list()
    kept = f"it has {', '.join(modules)}" if modules else "it has no records at all"
    return f"there are no single requests, so there is nothing to draw; {kept}."


def _windows(network: Network, span_s: tuple[float, float]) -> tuple[int, int]:
    edges_s = network.window_edges_s
    first = int(np.searchsorted(edges_s, span_s[0], side="right")) - 1
    last = int(np.searchsorted(edges_s, span_s[1], side="left"))
    first, last = max(first, 0), min(last, network.window_count)
    if first >= last:
        raise UsageError(f"Nothing was measured then: the run lasted from {edges_s[0]:g} to {edges_s[-1]:g} s.")
    return first, last
