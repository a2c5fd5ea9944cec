"""Small networks as views, with transfers that can be counted by hand or by a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.reports.networks.view import NetworkView
from iosig.transforms.arrays import Ints
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Network, TimeKind, Transfers
from iosig.transforms.networks.patterns import PATTERN_ROWS
from iosig.transforms.networks.rings import compute_layout

_BOTTLENECKS = pl.Schema(
    {
        "metric": pl.String(),
        "bottleneck": pl.Int32(),
        "source_layer": pl.String(),
        "source_node": pl.String(),
        "target_layer": pl.String(),
        "target_node": pl.String(),
        "start_s": pl.Float64(),
        "value": pl.Float64(),
        "median_value": pl.Float64(),
        "score": pl.Float64(),
        "share_ratio": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers of ranks, hosts, targets, requests per rank and time windows of an artificial run."""

    ranks: int = 12
    hosts: int = 3
    targets: int = 4
    requests: int = 40
    windows: int = 16


def labeled(name: str, count: int, pattern: str = "{}") -> Layer:
    """Return a layer with numbers in the labels of its nodes."""
    return Layer(name, pl.Series([pattern.format(number) for number in range(count)], dtype=pl.String))


def grouped(name: str, count: int, size: int) -> Layer:
    """Return a layer of `count` nodes that group `size` members each."""
    labels = [f"{number * size}-{(number + 1) * size - 1}" for number in range(count)]
    return Layer(name, pl.Series(labels), group_size=size, member_count=count * size)


def layers_of(shape: Shape) -> tuple[Layer, ...]:
    return (
        labeled("rank", shape.ranks),
        labeled("host", shape.hosts, "nid{:05d}"),
        labeled("target", shape.targets, "OST {}"),
    )


def transfers_of(shape: Shape, seed: int = 1, end_s: float = 40.0) -> tuple[Transfers, ...]:
    """Return requests of ranks to their hosts and of hosts to targets; one rank is slow, and some times are invalid."""
    random = np.random.default_rng(seed)
    count = shape.ranks * shape.requests
    rank = np.repeat(np.arange(shape.ranks), shape.requests)
    host = rank * shape.hosts // shape.ranks
    target = random.integers(0, shape.targets, count)
    at_s = np.sort(random.uniform(0, end_s, (shape.ranks, shape.requests)), axis=1).ravel()
    size = 2.0 ** random.integers(10, 24, count)
    time_s = 1e-3 * (1 + at_s / end_s) * np.exp(random.normal(0, 0.5, count)) * np.where(rank == 1, 40, 1)
    time_s[::97] = 0.0
    is_read = random.random(count) < 0.3
    return (
        _transfers(0, rank, host, at_s, time_s, size, is_read),
        _transfers(1, host, target, at_s, time_s * 0.6, size, is_read),
    )


def _transfers(hop: int, source: Ints, target: Ints, at_s, time_s, size, is_read) -> Transfers:  # type: ignore[no-untyped-def]
    bandwidth = np.divide(size, time_s, out=np.full(len(size), np.nan), where=time_s > 0)
    return Transfers(hop, source, target, at_s, time_s, size, bandwidth, is_read)


def network_of(
    layers: tuple[Layer, ...],
    transfers: tuple[Transfers, ...],
    windows: int = 16,
    end_s: float = 40.0,
    kinds: tuple[TimeKind, ...] = ("service_time", "service_time"),
) -> Network:
    counter = EdgeCounter(layers, kinds[: len(layers) - 1], window_edges(0.0, end_s, windows))
    for part in transfers:
        if part.hop < len(layers) - 1:
            counter.add(part)
    return counter.result()


def pattern_row(**given: object) -> pl.DataFrame:
    """Return a row of patterns; by default, an outlier of the whole run."""
    row: dict[str, object] = {
        "hop": 0, "metric": "time", "is_whole_run": True, "first_window": 0, "last_window": 16, "outcome": "matched",
        "pattern": "outlier", "active_node_count": 12, "transfer_count": 480, "node_spread": 0.4, "edge_spread": 0.7,
        "band_ratio": 0.1, "nodes_per_band": None, "outlier_score": 9.5, "cause_nodes": ["1"],
    }  # fmt: skip
    return pl.DataFrame([row | given], schema=PATTERN_ROWS)


def bottleneck_row(**given: object) -> pl.DataFrame:
    """Return a row of bottlenecks: a large write of rank 0."""
    row: dict[str, object] = {
        "metric": "size", "bottleneck": 0, "source_layer": "rank", "source_node": "0", "target_layer": "host",
        "target_node": "nid00000", "start_s": 12.5, "value": 1e9, "median_value": 1e6, "score": 11.0,
        "share_ratio": 0.25,
    }  # fmt: skip
    return pl.DataFrame([row | given], schema=_BOTTLENECKS)


def view_of(network: Network, title: str = "made-up.darshan", **given: object) -> NetworkView:
    """Return a view of a network, without patterns, bottlenecks or notes unless given."""
    said: dict[str, object] = {
        "patterns": pl.DataFrame(schema=PATTERN_ROWS),
        "bottlenecks": pl.DataFrame(schema=_BOTTLENECKS),
    }
    return NetworkView(title, network, compute_layout(network), **(said | given))  # type: ignore[arg-type]


def small_view(shape: Shape | None = None, **given: object) -> NetworkView:
    """Return a run of a few ranks with patterns and a bottleneck."""
    shape = shape or Shape()
    network = network_of(layers_of(shape), transfers_of(shape), shape.windows)
    patterns = pl.concat(
        [
            pattern_row(),
            pattern_row(hop=1, pattern="circular", cause_nodes=[]),
            pattern_row(is_whole_run=False, first_window=2, last_window=3),
            pattern_row(is_whole_run=False, first_window=3, last_window=4),
            pattern_row(metric="size", pattern=None, outcome="no_match", cause_nodes=[]),
        ]
    )
    said: dict[str, object] = {
        "patterns": patterns,
        "bottlenecks": bottleneck_row(),
        "notes": ("Times are service times.",),
    }
    return view_of(network, **(said | given))
