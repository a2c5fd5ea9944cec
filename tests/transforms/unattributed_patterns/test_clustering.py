"""Clusters of bursts: significance, separation by shape, and rectangle sums."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.clustering import (
    ClusterScan,
    _integrate,
    _sum_all_rectangles,
    _sum_rectangles,
)
from iosig.transforms.unattributed_patterns.residual_bursts import PROFILE_POINTS, ResidualBursts

EVEN = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)


def bursts(volume: Reals, width: Reals, profile: Reals | None = None) -> ResidualBursts:
    first = np.arange(len(volume)) * 100
    shapes = np.tile(EVEN, (len(volume), 1)) if profile is None else profile
    return ResidualBursts(first, first + 10, volume, 0 * volume, width, shapes)


def clutter(seed: int, count: int = 1000) -> tuple[Reals, Reals]:
    """Random volumes and integer widths."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(23.0, 1.2, count), np.ceil(rng.lognormal(1.0, 0.6, count))


def find_clusters(bursts: ResidualBursts) -> list[tuple[list[int], bool]]:
    """Members of all clusters in order of extraction, and whether each is significant."""
    scan, clusters = ClusterScan(bursts), []
    while cluster := scan.pop():
        clusters.append((cluster.members.tolist(), cluster.is_significant))
    return clusters


def test_most_significant_cluster_comes_first() -> None:
    rng = np.random.default_rng(5)
    volume, width = clutter(5)
    volume[100:120], width[100:120] = 9e11 * rng.normal(1.0, 0.005, 20), 12.0
    volume[300:360], width[300:360] = 2e9 * rng.normal(1.0, 0.005, 60), 30.0
    (first, is_significant), (second, _), *hints = find_clusters(bursts(volume, width))
    assert is_significant
    assert len(set(first) & set(range(300, 360))) > 55
    assert second == list(range(100, 120))
    assert not any(is_significant for _, is_significant in hints)


@pytest.mark.parametrize("seed", range(8))
def test_random_bursts_give_no_significant_cluster(seed: int) -> None:
    assert not any(is_significant for _, is_significant in find_clusters(bursts(*clutter(seed))))


def test_bursts_of_different_shapes_are_separate_clusters() -> None:
    profile = np.tile(EVEN, (41, 1))
    profile[::2] = np.sqrt(EVEN) * 0.2 + 0.8
    clusters = find_clusters(bursts(np.full(41, 1e10), np.full(41, 5.0), profile))
    assert clusters == [(list(range(0, 41, 2)), True), (list(range(1, 41, 2)), True)]


def test_removed_bursts_are_in_no_cluster() -> None:
    scan = ClusterScan(bursts(np.full(40, 1e10), np.full(40, 5.0)))
    scan.remove(np.arange(30))
    scan.remove(np.arange(25, 31))
    cluster = scan.pop()
    assert cluster is not None
    assert cluster.members.tolist() == list(range(31, 40))
    assert scan.pop() is None


def test_few_bursts_are_no_cluster() -> None:
    assert find_clusters(bursts(np.full(4, 1e10), np.full(4, 5.0))) == []
    assert find_clusters(bursts(np.zeros(0), np.zeros(0))) == []


@pytest.mark.parametrize("half", [(0, 0), (1, 4), (3, 2), (9, 9)])
def test_rectangle_sums_match_slices(half: tuple[int, int]) -> None:
    counts = np.random.default_rng(5).poisson(0.5, (7, 9)).astype(np.int64)
    row, column = np.indices(counts.shape).reshape(2, -1)
    expected = [
        counts[max(y - half[0], 0) : y + half[0] + 1, max(x - half[1], 0) : x + half[1] + 1].sum()
        for y, x in zip(row.tolist(), column.tolist(), strict=True)
    ]
    integral = _integrate(counts)
    assert _sum_rectangles(integral, row, column, half).tolist() == expected
    assert _sum_all_rectangles(integral, half).ravel().tolist() == expected
