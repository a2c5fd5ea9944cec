"""Many networks counted side by side: each is the one that is counted by itself, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.networks.batches import LayerBatch, NetworkBatch, TransferBatch
from iosig.transforms.networks.counting import BatchCounter, EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Network, TimeKind, Transfers
from iosig.transforms.networks.patterns import PATTERN_ROWS, patterns, patterns_of
from iosig.transforms.networks.rows import edge_rows, edge_rows_of, pattern_rows, pattern_rows_of
from tests.budget import examples

WINDOWS = 6
#: values that are not known, or are what no request has
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -1e-3, 1e308])


@dataclass(frozen=True, slots=True)
class Drawn:
    """One run: its layers, its windows, and its transfers hop by hop."""

    layers: tuple[Layer, ...]
    edges_s: Reals
    hops: list[Transfers]


def drawn(generator: np.random.Generator) -> Drawn:
    names = ("rank", "host", "target")[: generator.integers(2, 4)]
    layers = tuple(
        Layer(name, pl.Series([f"{name} {n}" for n in range(generator.integers(1, 40))], dtype=pl.String))
        for name in names
    )
    began_s, length_s = generator.random(2) * 100.0
    hops = []
    for hop, (outer, inner) in enumerate(pairwise(layers)):
        count = int(generator.choice([1, 3, 200]))
        at_s = began_s + length_s * generator.random(count) ** 3
        if generator.random() < 0.5:
            at_s.sort()
        values = [np.exp(generator.normal(0, 3, count)) for _ in range(3)]
        for column in values:
            is_odd = generator.random(count) < 0.05
            column[is_odd] = generator.choice(ODD, is_odd.sum())
        source, target = (generator.integers(0, layer.node_count, count) for layer in (outer, inner))
        time_s, size_bytes, bandwidth = values
        is_read = generator.random(count) < 0.5
        hops.append(Transfers(hop, source, target, at_s, time_s, size_bytes, bandwidth, is_read))
    return Drawn(layers, window_edges(began_s, began_s + length_s, WINDOWS), hops)


def alone(run: Drawn) -> Network:
    kind: TimeKind = "service_time"
    counter = EdgeCounter(run.layers, (kind,) * (len(run.layers) - 1), run.edges_s)
    for transfers in run.hops:
        counter.add(transfers)
    return counter.result()


def together(runs: list[Drawn]) -> NetworkBatch:
    first = offsets_of([len(run.layers) for run in runs])
    all_layers = [layer for run in runs for layer in run.layers]
    first_node = offsets_of([layer.node_count for layer in all_layers])
    layers = LayerBatch(
        tuple(layer.name for layer in all_layers),
        tuple(kind for run in runs for kind in (*("service_time",) * (len(run.layers) - 1), None)),  # type: ignore[misc]
        first,
        first_node,
        pl.concat([layer.labels for layer in all_layers]),
    )
    columns: list[tuple[Any, ...]] = []
    for number, run in enumerate(runs):
        for hop, one in enumerate(run.hops):
            nodes: list[Ints] = [
                ends + first_node[first[number] + hop + side] for side, ends in enumerate((one.source, one.target))
            ]
            values = (one.time_s, one.size_bytes, one.bandwidth_bytes_per_s, one.is_read)
            columns.append((np.full(len(one.at_s), number), *nodes, one.at_s, *values))
    joined = TransferBatch(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    counter = BatchCounter(layers, np.stack([run.edges_s for run in runs]))
    counter.add(joined)
    return counter.result()


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 4))
@settings(max_examples=examples(25), deadline=None)
def test_each_of_many_is_that_which_is_counted_alone(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    runs = [drawn(generator) for _ in range(count)]
    networks = together(runs)
    edges = edge_rows_of(networks)
    found = patterns_of(networks)
    named = pattern_rows_of(networks, found)
    for number, run in enumerate(runs):
        network = alone(run)
        own = edges.filter(run=number).drop("run", "edge")
        assert_frame_equal(own, edge_rows(network).drop("edge"), check_exact=True)
        own = named.filter(run=number).drop("run")
        assert_frame_equal(own, pattern_rows(network, patterns(network)), check_exact=True)
        layers = networks.layers.run[found["layer"].to_numpy()] == number
        assert_frame_equal(found.filter(layers).select(PATTERN_ROWS.names()), patterns(network), check_exact=True)


def test_a_network_is_the_only_one_of_many() -> None:
    network = alone(drawn(np.random.default_rng(5)))
    networks = NetworkBatch.of_one(network)
    assert networks.window_count == network.window_count
    assert networks.layers.place.tolist() == list(range(len(network.layers)))
    assert networks.layers.of_nodes(networks.source).tolist() == network.edges["hop"].to_list()
    sizes = [layer.node_count for layer in network.layers]
    assert np.diff(networks.layers.first_node).tolist() == sizes
