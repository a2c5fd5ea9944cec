"""Quantiles from bins: near those of the values themselves, by node and by edge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from transforms.networks.counting import EdgeCounter, window_edges
from transforms.networks.network import Layer, Network, Transfers
from transforms.networks.quantiles import edge_quantiles, source_quantiles, spread

QUARTILES = np.array([0.25, 0.5, 0.75])
BIN = 0.25


def network(source: np.ndarray, target: np.ndarray, times: np.ndarray, at_s: np.ndarray | None = None) -> Network:
    count = len(times)
    ranks, hosts = (Layer(name, pl.Series([str(node) for node in range(6)])) for name in ("rank", "host"))
    counting = EdgeCounter((ranks, hosts), ("latency",), window_edges(0.0, 4.0, 4))
    unknown, at_s = np.full(count, np.nan), np.zeros(count) if at_s is None else at_s
    counting.add(Transfers(0, source, target, at_s, np.asarray(times, float), unknown, unknown, np.ones(count, bool)))
    return counting.result()


def spread_out(seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    count = 40_000
    source, target = rng.integers(0, 5, count), rng.integers(0, 2, count)
    return source, target, 2.0 ** rng.normal(source - 3.0, 1 + 0.2 * target), rng.random(count) * 4


def test_quantiles_are_those_of_the_values_to_a_part_of_a_bin() -> None:
    source, target, times, at_s = spread_out()
    found, counts = source_quantiles(network(source, target, times, at_s), 0, "time", QUARTILES)
    assert counts.tolist() == np.bincount(source, minlength=6).tolist()
    for node in range(5):
        np.testing.assert_allclose(found[node], np.quantile(np.log2(times[source == node]), QUARTILES), atol=BIN / 5)
    assert np.isnan(found[5]).all()


def test_quantiles_of_edges() -> None:
    source, target, times, at_s = spread_out()
    given = network(source, target, times, at_s)
    found, counts = edge_quantiles(given, "time", QUARTILES)
    for row, (_, node, other) in enumerate(given.edges.rows()):
        mine = (source == node) & (target == other)
        assert counts[row] == mine.sum()
        np.testing.assert_allclose(found[row], np.quantile(np.log2(times[mine]), QUARTILES), atol=BIN / 5)


def test_a_range_of_windows() -> None:
    source, target, times, at_s = spread_out()
    mine = (at_s >= 1) & (at_s < 3)
    found, counts = source_quantiles(network(source, target, times, at_s), 0, "time", QUARTILES, (1, 3))
    alone, of_alone = source_quantiles(network(source[mine], target[mine], times[mine]), 0, "time", QUARTILES)
    np.testing.assert_array_equal(counts, of_alone)
    np.testing.assert_array_equal(found, alone)


def test_one_value_lies_inside_its_bin() -> None:
    zero = np.zeros(1, int)
    found, counts = source_quantiles(network(zero, zero, np.array([8.0])), 0, "time", np.array([0.0, 0.5, 1.0]))
    assert found[0].tolist() == [3.0, 3.125, 3.25]
    assert counts.tolist() == [1, 0, 0, 0, 0, 0]


def test_gaps_between_bins_are_not_interpolated() -> None:
    zeros = np.zeros(4, int)
    found, _ = source_quantiles(network(zeros, zeros, np.array([1.0, 1.0, 64.0, 64.0])), 0, "time", QUARTILES)
    assert found[0].tolist() == [0.125, 0.25, 6.125]


def test_zero_and_negative_count_as_the_lowest_bin() -> None:
    source = np.array([0, 0, 0, 1, 2])
    found, counts = source_quantiles(
        network(source, np.zeros(5, int), np.array([-1.0, 0.0, 4.0, 2.0, 0.0])), 0, "time", np.array([0.5])
    )
    assert counts.tolist() == [3, 1, 1, 0, 0, 0]
    # the lowest bin of all begins at 2, which is one octave
    assert 1.0 <= found[0, 0] < 1.25
    assert 1.0 <= found[2, 0] < 1.25


def test_no_positive_value() -> None:
    zeros = np.zeros(2, int)
    for times in (np.array([0.0, -1.0]), np.array([np.nan, np.inf])):
        given = network(zeros, zeros, times)
        for found, counts in (source_quantiles(given, 0, "time", QUARTILES), edge_quantiles(given, "time", QUARTILES)):
            assert np.isnan(found).all()
            assert counts.sum() == np.isfinite(times).sum()
    nothing = np.empty(0, int)
    found, counts = edge_quantiles(network(nothing, nothing, np.empty(0)), "size", QUARTILES)
    assert (found.shape, counts.shape) == ((0, 3), (0,))


def test_quantiles_lie_from_0_to_1() -> None:
    zero = np.zeros(1, int)
    with pytest.raises(ValueError, match="from 0 to 1"):
        source_quantiles(network(zero, zero, np.ones(1)), 0, "time", np.array([1.5]))


def test_spread_is_the_standard_deviation_of_a_normal_distribution() -> None:
    count = 20_000
    times = 2.0 ** np.random.default_rng(2).normal(0, 0.8, count)
    zeros = np.zeros(count, int)
    found, _ = source_quantiles(network(zeros, zeros, times), 0, "time", np.array([0.25, 0.75]))
    np.testing.assert_allclose(spread(found)[0], 0.8, rtol=0.05)
    assert np.isnan(spread(found)[1:]).all()


def test_quantiles_rise_with_the_share() -> None:
    source, target, times, at_s = spread_out(1)
    found, _ = edge_quantiles(network(source, target, times, at_s), "time", np.linspace(0, 1, 21))
    assert (np.diff(found, axis=1) >= 0).all()
