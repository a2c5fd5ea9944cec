"""The network of one input, no warehouse: read as the night would read it, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from flows.landing import Told
from flows.networks import Asked, Made, network_of_trace
from flows.one_input import TraceInput, opened
from flows.settings import Settings
from reports.network_view import NetworkView
from transforms.networks import Metric, Network, NetworkParams
from warehouse.errors import InputRefused, UsageError

_REMEDIES = {
    "darshan": "Run the program again with DXT_ENABLE_IO_TRACE=1, or with DXT in its Darshan configuration.",
    "recorder": "Check that the trace holds reads or writes, of POSIX, MPI-IO or HDF5.",
}
_REMEDY = "Take a trace with single requests."


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """A network that could be made, by the input's name; refused_count: rows that could not be read."""

    name: str
    made: Made
    refused_count: int

    @property
    def network(self) -> Network:
        """The network."""
        assert self.made.network is not None
        return self.made.network

    def view(self, metric: Metric, span_s: tuple[float, float] | None) -> NetworkView:
        """Return what a picture is drawn from; `span_s` is the time that is selected, as whole windows."""
        from transforms.radial import layout

        return NetworkView(
            self.name,
            self.network,
            layout(self.network),
            self.patterns(),
            self.made.bottlenecks,
            self.made.notes,
            metric,
            None if span_s is None else _windows(self.network, span_s),
        )

    def patterns(self) -> pl.DataFrame:
        """Return the patterns with their layers and their windows' times."""
        names = [layer.name for layer in self.network.layers]
        edges_s = pl.Series(self.network.window_edges_s)
        found = self.made.patterns
        return found.with_columns(
            pl.Series("source_layer", [names[hop] for hop in found["hop"]], pl.String),
            pl.Series("target_layer", [names[hop + 1] for hop in found["hop"]], pl.String),
            edges_s.gather(found["first_window"]).alias("window_began_s"),
            edges_s.gather(found["last_window"]).alias("window_ceased_s"),
        )

    def nodes(self, layer: str) -> pl.DataFrame:
        """Return what went to the nodes of a layer from the next one outward, the slowest node first.

        Columns: node, transfer_count, read_bytes, written_bytes, mean_s, longest_s.
        """
        place = [known.name for known in self.network.layers].index(layer)
        labels = self.network.layers[place].labels
        edges = self.network.edges.with_row_index("edge").filter(pl.col("hop") == place - 1)
        return (
            self.network.totals.join(edges.select(pl.col("edge").cast(pl.Int32), "target"), on="edge")
            .group_by("target")
            .agg(
                pl.col("transfer_count", "read_bytes", "written_bytes", "transfer_time_s").sum(),
                pl.col("longest_s").max(),
            )
            .select(
                "target",
                "transfer_count",
                "read_bytes",
                "written_bytes",
                (pl.col("transfer_time_s") / pl.col("transfer_count")).alias("mean_s"),
                "longest_s",
            )
            .sort("mean_s", "target", descending=[True, False])
            .select(pl.col("target").replace_strict(range(len(labels)), labels).alias("node"), pl.exclude("target"))
        )

    def document(self) -> dict[str, Any]:
        """Return what is found as plain values, for JSON."""
        layers = self.network.layers
        return {
            "name": self.name,
            "module": self.made.module,
            "request_count": self.made.request_count,
            "covered_ratio": self.made.covered_ratio,
            "negative_count": self.made.negative_count,
            "notes": list(self.made.notes),
            "layers": [
                {"name": x.name, "nodes": x.node_count, "members": x.member_count, "group_size": x.group_size}
                for x in layers
            ],
            "edge_counts": [int((self.network.edges["hop"] == hop).sum()) for hop in range(self.network.hop_count)],
            "time_kinds": list(self.network.time_kinds),
            "patterns": self.patterns().to_dicts(),
            "bottlenecks": self.made.bottlenecks.to_dicts(),
            "nodes": {layer.name: self.nodes(layer.name).to_dicts() for layer in layers[1:]},
        }


def network_input(path: Path, settings: Settings, asked: Asked, params: NetworkParams) -> NetworkInput:
    """Read one traced run and make its network.

    Raises InputRefused if it is no trace, or tells of no single requests or of one layer only.
    """
    with opened(path, settings, Told()) as found:
        if not isinstance(found, TraceInput):
            raise InputRefused(f"{found.name} is no trace: it does not tell who moved bytes.", "Give a trace.")
        job = found.jobs.row(0, named=True)
        made = network_of_trace(found.landed, asked, params, job["process_count"])
        if made.network is None:
            what = _what_there_is(found) if made.outcome == "no_requests" else " ".join(made.notes)
            raise InputRefused(f"{found.name}: {what}", _REMEDIES.get(job["tracer"], _REMEDY))
        return NetworkInput(found.name, made, found.refused_count)


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
