"""Scales of networks: slots cover all values, and counts by slot are complete."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.reports.networks.scales import Scale, fit_scale, slot_counts, sparse_slot_counts
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.log_bins import HIGHEST, LOWEST, NEGATIVE, ZERO, bin_numbers
from iosig.transforms.networks.network import Layer, Network, Transfers
from tests.budget import examples

BEHIND_LEAST = 1 << 15


def network(times: Sequence[float], source: Sequence[int] | None = None, window_count: int = 4) -> Network:
    """Return a network with transfers at even intervals in all its windows."""
    count = len(times)
    ranks, hosts = (Layer(name, pl.Series([str(node) for node in range(3)])) for name in ("rank", "host"))
    counting = EdgeCounter((ranks, hosts), ("service_time",), window_edges(0.0, max(count, 1), window_count))
    nodes = np.zeros(count, np.int64) if source is None else np.asarray(source, np.int64)
    unknown = np.full(count, np.nan)
    counting.add(
        Transfers(0, nodes, nodes, np.arange(count) + 0.5, np.array(times), unknown, unknown, np.ones(count, bool))
    )
    return counting.result()


def test_peers_share_a_scale_that_covers_all() -> None:
    first, second = network([1e-3, 1.0]), network([-1.0, 10.0, 1e4])
    scales = fit_scale(first, "time", peers=[second]), fit_scale(second, "time", peers=[first])
    assert scales[0].lowest_values.tolist() == scales[1].lowest_values.tolist()
    assert scales[0].has_negative
    assert scales[0].lowest_values[1] <= 1e-3
    assert scales[0].highest_values[-1] > 1e4


def slot(scale: Scale, value: float) -> int:
    return int(scale.slot_of_bin[int(bin_numbers(np.array([value]))[0]) + BEHIND_LEAST])


def test_slots_are_in_order_from_negative_and_zero() -> None:
    scale = fit_scale(network([-1.0, 0.0, 1.0, 2.0, 3.9]), "time")
    assert (scale.has_negative, scale.has_zero, scale.special_count, scale.bins_per_slot) == (True, True, 2, 1)
    assert scale.slot_count == 2 + 8
    assert [slot(scale, value) for value in (-1.0, 0.0, 1.0, 2.0, 3.9)] == [0, 1, 2, 6, 9]
    assert (scale.lowest_values[0], scale.highest_values[0]) == (-np.inf, 0.0)
    assert (scale.lowest_values[1], scale.highest_values[1]) == (0.0, 0.0)
    assert (scale.lowest_values[2], scale.highest_values[-1]) == (1.0, 4.0)


def test_special_slots_exist_only_for_occurring_values() -> None:
    for times, expected in (([1.0], (False, False, 1)), ([0.0, 1.0], (False, True, 2)), ([-1.0], (True, False, 1))):
        scale = fit_scale(network(times), "time")
        assert (scale.has_negative, scale.has_zero, scale.slot_count) == expected


def test_wide_range_has_several_bins_per_slot() -> None:
    scale = fit_scale(network([1e-6, 1e6]), "time")
    assert scale.slot_count <= 48
    assert scale.bins_per_slot == 4
    assert scale.lowest_values[0] <= 1e-6
    assert scale.highest_values[-1] > 1e6


def test_scale_of_unknown_values_is_empty() -> None:
    empty = network([np.nan])
    scale = fit_scale(empty, "time")
    assert scale.slot_count == 0
    assert slot_counts(empty, scale).shape == (1, 0)
    assert len(sparse_slot_counts(empty, scale)) == 0
    assert slot_counts(network([]), fit_scale(network([]), "size")).shape == (0, 0)


def test_scale_needs_at_least_three_slots() -> None:
    with pytest.raises(ValueError, match="at least 3 slots"):
        fit_scale(network([1.0]), "time", 2)


def test_each_metric_has_a_separate_scale() -> None:
    assert fit_scale(network([1.0, 2.0]), "size").slot_count == 0


def test_counts_are_given_by_edge_and_slot() -> None:
    given_network = network([1.0, 1.0, 2.0, 0.0], source=[0, 2, 2, 2], window_count=2)
    scale = fit_scale(given_network, "time")
    assert slot_counts(given_network, scale).tolist() == [[0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1]]
    assert slot_counts(given_network, scale, (0, 1)).tolist() == [[0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert sparse_slot_counts(given_network, scale).rows() == [(0, 0, 1, 1), (0, 1, 1, 1), (1, 1, 0, 1), (1, 1, 5, 1)]


@settings(max_examples=examples(30), deadline=None)
@given(
    times=st.lists(st.floats(), min_size=1, max_size=40),
    most=st.integers(3, 60),
    seed=st.integers(0, 9),
)
def test_every_value_is_in_its_slot(times: list[float], most: int, seed: int) -> None:
    source = np.random.default_rng(seed).integers(0, 3, len(times))
    with np.errstate(over="ignore"):
        given_network = network(times, source.tolist())
    scale = fit_scale(given_network, "time", most)
    assert scale.slot_count <= most
    known = [value for value in times if np.isfinite(value)]
    for value in known:
        at = slot(scale, value)
        assert scale.lowest_values[at] <= value <= scale.highest_values[at]
    counts = slot_counts(given_network, scale)
    assert counts.sum() == len(known)
    assert sum(slot_counts(given_network, scale, (w, w + 1)).sum() for w in range(4)) == len(known)
    sparse = sparse_slot_counts(given_network, scale)
    again = np.zeros_like(counts)
    np.add.at(again, (sparse["edge"].to_numpy(), sparse["slot"].to_numpy()), sparse["count"].to_numpy())
    np.testing.assert_array_equal(again, counts)
    assert sparse.equals(sparse.sort("window", "edge", "slot"))


def test_bins_beyond_the_scale_are_in_its_end_slots() -> None:
    scale = fit_scale(network([1.0, 4.0]), "time")
    assert [slot(scale, value) for value in (1e-9, 1e9, 0.0, -1.0)] == [0, scale.slot_count - 1, 0, 0]
    assert scale.slot_of_bin.min() >= 0
    assert scale.slot_of_bin.max() < scale.slot_count


def test_slot_of_the_largest_numbers_is_finite() -> None:
    scale = fit_scale(network([1.7e308]), "time")
    assert np.isfinite(scale.highest_values).all()
    assert scale.highest_values[0] >= 1.7e308
    assert (NEGATIVE, ZERO) < (LOWEST, HIGHEST)
