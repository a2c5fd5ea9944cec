"""Heat maps: bytes per cell, marginal sums, and a limited number of cells."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.findings.rank_times import MAX_COLUMNS, MAX_ROWS, compute_rank_times, spread_evenly
from tests.transforms.findings.made_traces import HEATMAPS, REQUESTS, rows

INTERVAL = st.tuples(st.integers(0, 5), st.floats(0, 9), st.floats(0, 1), st.integers(1, 1000))


@settings(deadline=None)
@given(st.lists(INTERVAL, min_size=1, max_size=30))
def test_spread_matches_naive_implementation(told: list[tuple[int, float, float, int]]) -> None:
    rank = np.array([one[0] for one in told])
    start_s = np.array([one[1] for one in told])
    end_s = start_s + np.array([one[2] for one in told])
    volume = np.array([float(one[3]) for one in told])
    expected = np.zeros((3, 10))
    for row, first, last, amount in zip(rank // 2, start_s, end_s, volume, strict=True):
        for column in range(10):
            overlap = min(last, column + 1) - max(first, column)
            if last > first and overlap > 0:
                expected[row, column] += amount * overlap / (last - first)
        if last == first:
            expected[row, min(int(first), 9)] += amount
    cells = spread_evenly(rank, start_s, end_s, volume, np.array([0, 2, 4, 6]), np.arange(11.0))
    np.testing.assert_allclose(cells, expected, atol=1e-6)
    assert cells.sum() == pytest.approx(volume.sum())


def heatmap(rank: int, bins: list[int], way: str = "write") -> dict[str, object]:
    return {
        "module": "POSIX", "rank": rank, "direction": way, "interval_s": 0.5, "step_count": len(bins),
        "bin_bytes": bins,
    }  # fmt: skip


def test_rank_times_keep_bins_of_a_heat_map() -> None:
    maps = rows(HEATMAPS, heatmap(0, [5, 0, 7]), heatmap(2, [0, 0, 1]), heatmap(2, [9, 0, 0], "read"))
    written, read = compute_rank_times(maps, None, "POSIX", 4)
    assert written.cell_bytes.tolist() == [[5, 0, 7], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert written.time_edges_s.tolist() == [0, 0.5, 1, 1.5]
    assert (written.time_bytes.tolist(), written.rank_bytes.tolist()) == ([5, 0, 8], [12, 0, 1, 0])
    assert (read.direction, read.source, read.cell_bytes.sum()) == ("read", "heatmap", 9)
    assert compute_rank_times(maps, None, "MPIIO", 4) == []


def test_number_of_cells_is_limited() -> None:
    maps = rows(HEATMAPS, *(heatmap(rank, [rank] * 1000) for rank in range(0, 1000, 7)))
    (one,) = compute_rank_times(maps, None, "POSIX", 1000)
    assert one.cell_bytes.shape[0] <= MAX_ROWS
    assert one.cell_bytes.shape[1] <= MAX_COLUMNS
    assert one.cell_bytes.sum() == sum(range(0, 1000, 7)) * 1000
    assert (one.rank_edges[0], one.rank_edges[-1], one.time_edges_s[-1]) == (0, 1000, 500)


def test_requests_take_precedence_over_coarse_heat_maps_only() -> None:
    request = {
        "module": "POSIX", "rank": 1, "file_number": 0, "direction": "write", "offset_bytes": 0,
        "request_bytes": 8.0, "start_s": 0.0, "end_s": 2.0,
    }  # fmt: skip
    requests = rows(REQUESTS, request)
    for bins, source in ((31, "requests"), (32, "heatmap")):
        (one,) = compute_rank_times(rows(HEATMAPS, heatmap(1, [1] * bins)), requests, "POSIX", None)
        assert one.source == source
    (alone,) = compute_rank_times(rows(HEATMAPS), requests, "POSIX", None)
    assert alone.cell_bytes.shape == (2, MAX_COLUMNS)
    assert alone.rank_bytes.tolist() == [0, pytest.approx(8)]


def test_data_without_single_ranks_give_no_rank_times() -> None:
    assert compute_rank_times(rows(HEATMAPS, heatmap(-1, [5])), None, "POSIX", 4) == []
    assert compute_rank_times(rows(HEATMAPS), pl.DataFrame(schema=REQUESTS), "POSIX", 4) == []
