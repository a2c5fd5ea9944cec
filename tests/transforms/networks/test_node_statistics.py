"""Histograms, quantiles and levels of source nodes match the naive implementation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.networks.planted import plant_network
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.network import METRICS
from iosig.transforms.networks.node_statistics import (
    QUANTILES,
    count_cells,
    find_main_targets,
    make_nodes,
    summarize_nodes,
)
from tests.budget import examples
from tests.naive.networks import patterns as naive


@pytest.mark.parametrize("window", [None, 0, 3])
def test_quantiles_match_naive_implementation(window: int | None) -> None:
    network_ = plant_network("noisy", np.random.default_rng(1), 64, 8, 4, 30, window_count=4)
    networks = NetworkBatch.from_network(network_)
    cells = count_cells(networks, METRICS.index("time"))
    nodes = make_nodes(cells, 0 if window is None else 1 + window, find_main_targets(networks))
    counts = network_.counts.filter(metric=METRICS.index("time"))
    counts = counts.filter(pl.lit(True) if window is None else pl.col("window") == window)
    source = (
        network_.edges.with_row_index("edge").filter(pl.col("hop") == 0).select(pl.col("edge").cast(pl.Int32), "source")
    )
    by_node = counts.join(source, on="edge").group_by("source", "bin").agg(pl.col("count").sum()).sort("source", "bin")
    assert nodes.number.tolist() == by_node["source"].unique().sort().to_list()
    for number, count, quantiles in zip(nodes.number, nodes.count, nodes.quantiles, strict=True):
        bins, of_bins = (by_node.filter(source=number)[name].to_list() for name in ("bin", "count"))
        assert count == sum(of_bins)
        assert quantiles == pytest.approx([naive.quantile(bins, of_bins, share) for share in QUANTILES])
    np.testing.assert_array_equal(nodes.target, network_.layers[0].node_count + nodes.number // 8)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(st.integers(-20, 20), min_size=1, max_size=9), min_size=8, max_size=12))
def test_levels_match_naive_implementation(values: list[list[int]]) -> None:
    cells = [np.unique(bins, return_counts=True) for bins in values]
    place = np.repeat(np.arange(len(values)), [len(bins) for bins, _ in cells])
    bins, counts = (np.concatenate(part) for part in zip(*cells, strict=True))
    nodes = summarize_nodes(np.arange(len(values)), np.arange(len(values)), place, bins, counts)
    expected = [naive.level(sorted(set(one)), [one.count(key) for key in sorted(set(one))]) for one in values]
    np.testing.assert_allclose(nodes.level, expected, atol=1e-9)
