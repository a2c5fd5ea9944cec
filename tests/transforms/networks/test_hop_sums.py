"""What is kept of a hop: edges and their numbers, cells and their bits, timelines."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.networks import hop_sums
from iosig.transforms.networks.hop_sums import Edges, Histograms, Timeline, Totals
from iosig.transforms.networks.log_bins import lower_values


@pytest.fixture(params=[0, 1 << 26])
def edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Edges:
    monkeypatch.setattr(hop_sums, "_MOST_POSSIBLE_EDGES", request.param)
    return Edges(10, 7)


def test_edges_keep_their_numbers(edges: Edges) -> None:
    rng = np.random.default_rng(4)
    number_of: dict[tuple[int, int], int] = {}
    for _ in range(20):
        source, target = rng.integers(0, 10, 6), rng.integers(0, 7, 6)
        pairs = list(zip(source.tolist(), target.tolist(), strict=True))
        for pair, number in zip(pairs, edges.of(source, target).tolist(), strict=True):
            assert number_of.setdefault(pair, number) == number
    assert sorted(number_of.values()) == list(range(len(edges.keys)))
    places = edges.in_order()
    assert [number_of[pair] for pair in sorted(number_of)] == np.argsort(places).tolist()


@pytest.mark.parametrize(("source", "target"), [(10, 0), (0, 7), (-1, 0), (0, -1)])
def test_edges_are_between_nodes(edges: Edges, source: int, target: int) -> None:
    with pytest.raises(ValueError, match="numbered from 0 to"):
        edges.of(np.array([source]), np.array([target]))


@pytest.mark.parametrize("most_cells", [0, 1 << 23])
def test_new_bins_widen_the_cells(most_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_sums, "_MOST_CELLS", most_cells)
    monkeypatch.setattr(hop_sums, "_LEAST_WAITING", 3)
    histograms = Histograms(1)
    bins = np.random.default_rng(2).permutation(np.arange(-40, 41))
    for number in bins.tolist():
        edge = np.array([0, 2])
        histograms.add(edge, lower_values(np.array([number, number])), [(0, slice(0, 2))], 3)
    assert histograms.slot_bits == 7
    histograms.count_all(3)
    edge, slot, count = histograms.cells(0)
    assert count.tolist() == [1] * (2 * len(bins))
    for mine in (0, 2):
        assert sorted(histograms.bins[slot[edge == mine]].tolist()) == list(range(-40, 41))
    assert [len(part) for part in histograms.cells(5)] == [0, 0, 0]


def test_keys_of_many_edges_are_wide() -> None:
    histograms, edge_count = Histograms(1), 1 << 31
    edge = np.array([edge_count - 1, 5, edge_count - 1])
    for _ in range(3):
        histograms.add(edge, np.array([1.0, 2.0, 1.0]), [(0, slice(0, 3))], edge_count)
        histograms.count_all(edge_count)
        found, slot, count = histograms.cells(0)
    assert found.tolist() == [5, edge_count - 1]
    assert histograms.bins[slot].tolist() == [4, 0]
    assert count.tolist() == [3, 6]


@pytest.mark.parametrize("cells_per_transfer", [0, 1 << 20])
def test_totals(cells_per_transfer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_sums, "_CELLS_PER_TRANSFER", cells_per_transfer)
    monkeypatch.setattr(hop_sums, "_LEAST_WAITING", 1)
    totals = Totals(1)
    size, time = np.array([1.0, np.nan, 4.0, 8.0]), np.array([1.0, 2.0, -1.0, np.nan])
    for _ in range(2):
        rows = (np.array([3, 1, 3, 3]), size, time, np.array([True, True, True, False]))
        totals.add(rows, [(0, slice(0, 3)), (2, slice(3, 4))], 5)
    totals.count_all(5)
    edges, values = totals.sums(0)
    assert edges.tolist() == [1, 3]
    np.testing.assert_array_equal(values.T, [[2, 0, 0, 4, 2], [4, 10, 0, 2, 1]])
    edges, values = totals.sums(2)
    assert (edges.tolist(), values[:, 0].tolist()) == ([3], [2, 0, 16, 0, 0])
    assert totals.sums(1)[1].shape == (5, 0)


def test_timeline() -> None:
    line = Timeline(4)
    line.add(np.array([1.0, 3.0, np.nan, -2.0, 5.0]), np.array([0, 2, 3, 5, 5]))
    line.add(np.array([0.5]), np.array([0, 1, 1, 1, 1]))
    rows = line.rows(1, 2)
    assert rows.rows() == [(1, 2, 0, 3, 4.5, 0.5, 3.0), (1, 2, 2, 1, 5.0, -2.0, 5.0)]


def test_sums_of_absurd_values_are_the_largest_number() -> None:
    line, totals, largest = Timeline(1), Totals(1), np.finfo(np.float64).max
    huge = np.full(3, 1.5e308)
    line.add(huge, np.array([0, 3]))
    totals.add((np.zeros(3, int), huge, huge, np.ones(3, bool)), [(0, slice(0, 3))], 1)
    totals.count_all(1)
    assert line.rows(0, 0).row(0)[3:] == (3, largest, 1.5e308, 1.5e308)
    assert totals.sums(0)[1][:, 0].tolist() == [3, largest, 0, largest, 1.5e308]
