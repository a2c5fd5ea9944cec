"""Networks of several runs counted in a batch are bit-identical to networks counted separately."""

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
from iosig.transforms.networks.patterns import PATTERN_ROWS, classify_batch_patterns, classify_patterns
from iosig.transforms.networks.rows import batch_edge_rows, batch_pattern_rows, edge_rows, pattern_rows
from tests.budget import examples

WINDOWS = 6
#: Unknown or implausible values.
UNUSUAL_VALUES = np.array([np.nan, np.inf, -np.inf, 0.0, -1e-3, 1e308])


@dataclass(frozen=True, slots=True)
class RandomRun:
    """Random run with its layers, windows and transfers by hop."""

    layers: tuple[Layer, ...]
    edges_s: Reals
    hops: list[Transfers]


def random_run(generator: np.random.Generator) -> RandomRun:
    names = ("rank", "host", "target")[: generator.integers(2, 4)]
    layers = tuple(
        Layer(name, pl.Series([f"{name} {n}" for n in range(generator.integers(1, 40))], dtype=pl.String))
        for name in names
    )
    start_s, duration_s = generator.random(2) * 100.0
    hops = []
    for hop, (outer, inner) in enumerate(pairwise(layers)):
        count = int(generator.choice([1, 3, 200]))
        at_s = start_s + duration_s * generator.random(count) ** 3
        if generator.random() < 0.5:
            at_s.sort()
        values = [np.exp(generator.normal(0, 3, count)) for _ in range(3)]
        for column in values:
            is_unusual = generator.random(count) < 0.05
            column[is_unusual] = generator.choice(UNUSUAL_VALUES, is_unusual.sum())
        source, target = (generator.integers(0, layer.node_count, count) for layer in (outer, inner))
        time_s, size_bytes, bandwidth = values
        is_read = generator.random(count) < 0.5
        hops.append(Transfers(hop, source, target, at_s, time_s, size_bytes, bandwidth, is_read))
    return RandomRun(layers, window_edges(start_s, start_s + duration_s, WINDOWS), hops)


def count_separately(run: RandomRun) -> Network:
    kind: TimeKind = "service_time"
    counter = EdgeCounter(run.layers, (kind,) * (len(run.layers) - 1), run.edges_s)
    for transfers in run.hops:
        counter.add(transfers)
    return counter.result()


def count_together(runs: list[RandomRun]) -> NetworkBatch:
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
        for hop, transfers in enumerate(run.hops):
            nodes: list[Ints] = [
                ends + first_node[first[number] + hop + side]
                for side, ends in enumerate((transfers.source, transfers.target))
            ]
            values = (transfers.time_s, transfers.size_bytes, transfers.bandwidth_bytes_per_s, transfers.is_read)
            columns.append((np.full(len(transfers.at_s), number), *nodes, transfers.at_s, *values))
    batch = TransferBatch(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    counter = BatchCounter(layers, np.stack([run.edges_s for run in runs]))
    counter.add(batch)
    return counter.result()


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 4))
@settings(max_examples=examples(25), deadline=None)
def test_batch_equals_separately_counted_networks(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    runs = [random_run(generator) for _ in range(count)]
    networks = count_together(runs)
    edges = batch_edge_rows(networks)
    patterns = classify_batch_patterns(networks)
    pattern_frame = batch_pattern_rows(networks, patterns)
    for number, run in enumerate(runs):
        network = count_separately(run)
        expected_rows = edges.filter(run=number).drop("run", "edge")
        assert_frame_equal(expected_rows, edge_rows(network).drop("edge"), check_exact=True)
        expected_rows = pattern_frame.filter(run=number).drop("run")
        assert_frame_equal(expected_rows, pattern_rows(network, classify_patterns(network)), check_exact=True)
        layers = networks.layers.run[patterns["layer"].to_numpy()] == number
        assert_frame_equal(
            patterns.filter(layers).select(PATTERN_ROWS.names()), classify_patterns(network), check_exact=True
        )


def test_single_network_equals_a_batch_of_one() -> None:
    network = count_separately(random_run(np.random.default_rng(5)))
    networks = NetworkBatch.from_network(network)
    assert networks.window_count == network.window_count
    assert networks.layers.hop.tolist() == list(range(len(network.layers)))
    assert networks.layers.find_layers(networks.source).tolist() == network.edges["hop"].to_list()
    sizes = [layer.node_count for layer in network.layers]
    assert np.diff(networks.layers.first_node).tolist() == sizes
