"""CLIQUE as adapted by IOSI: hand-computed cases of each rule, and a naive implementation."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ints, offsets_of
from iosig.transforms.signatures.iosi_clique import BurstPlanes, find_common_bursts, find_dense_units, min_sample_count
from tests.budget import examples
from tests.naive.signatures import iosi_clique as naive

#: Gamma and kappa (section 5.3).
PAPER = (0.5, 0.9)


class Found(NamedTuple):
    """Find the common bursts on one plane."""

    owner: Ints
    count: int
    grid: int
    explained_count: Ints


def points(of: list[naive.Point], samples: int, span: float = 100.0) -> BurstPlanes:
    time, likeness, sample = np.array(of, dtype=np.float64).T
    return BurstPlanes(
        time, likeness, sample.astype(np.int64), np.array([0, len(of)]), np.array([samples]), np.array([span])
    )


def clique(plane: BurstPlanes, grids: list[tuple[float, float]], gamma: float, kappa: float) -> Found:
    width, height = np.array(grids).T[:, None]
    result = find_common_bursts(plane, width, height, gamma, kappa)
    return Found(result.owner, int(result.count[0]), int(result.grid[0]), result.explained_count[0])


def members(result: Found) -> list[set[int]]:
    return [set(np.flatnonzero(result.owner == number).tolist()) for number in range(result.count)]


# ---- hand-computed cases


def test_two_common_bursts_are_clusters_and_interference_is_not() -> None:
    common = [(20.0 + sample, 0.9, sample) for sample in range(4)] + [
        (71.0 + sample, 0.5, sample) for sample in range(4)
    ]
    result = clique(points([(45.0, 0.9, 2), *common], 4), [(10, 0.25)], *PAPER)
    assert members(result) == [{1, 2, 3, 4}, {5, 6, 7, 8}]
    assert result.explained_count.tolist() == [8]
    assert result.grid == 0


def test_density_counts_samples_not_points() -> None:
    of_one = [(20.0 + i / 10, 0.9, 0) for i in range(10)]
    assert clique(points(of_one, 4), [(10, 0.25)], *PAPER).count == 0


@pytest.mark.parametrize(("sample_count", "expected"), [(1, 1), (4, 2), (5, 3), (10, 5)])
def test_density_threshold_is_rounded_up(sample_count: int, expected: int) -> None:
    assert min_sample_count(0.5, sample_count) == expected


@pytest.mark.parametrize("share", [0.1, 0.3, 0.55, 0.7, 0.9])
def test_density_threshold_tolerates_rounding_errors(share: float) -> None:
    assert min_sample_count(share, 100) == round(share * 100)
    assert min_sample_count(share, 20) == round(share * 20)


def test_neighborhood_joins_clusters_across_grid_lines() -> None:
    cut = [(18.0, 0.9, 0), (19.0, 0.9, 1), (21.0, 0.9, 2), (22.0, 0.9, 3)]
    assert members(clique(points(cut, 4), [(10, 0.25)], *PAPER)) == [{0, 1, 2, 3}]


def test_neighborhoods_do_not_chain() -> None:
    # Two dense units around a third: they would join if clusters grew from unit to unit.
    chain = [(5.0, 0.9, 0), (6.0, 0.9, 1), (15.0, 0.9, 2), (16.0, 0.9, 3), (25.0, 0.9, 0), (26.0, 0.9, 1)]
    result = clique(points(chain, 4), [(10, 0.25)], *PAPER)
    assert result.count == 1
    assert result.explained_count.tolist() == [4]


def test_dense_unit_in_sparse_neighborhood_is_no_cluster() -> None:
    half = [(20.0, 0.9, 0), (21.0, 0.9, 1), (80.0, 0.9, 2)]
    assert clique(points(half, 4), [(10, 0.25)], *PAPER).count == 0
    assert clique(points(half, 4), [(10, 0.25)], 0.5, 0.5).count == 1


def test_unit_next_to_a_denser_unit_joins_its_cluster() -> None:
    of = [(15.0, 0.9, sample) for sample in range(4)] + [(25.0, 0.9, sample) for sample in range(3)]
    result = clique(points(of, 4), [(10, 0.25)], *PAPER)
    assert members(result) == [{0, 1, 2, 3}]


def test_nearest_point_to_the_others_is_elected() -> None:
    of = [(20.0, 0.9, 0), (21.0, 0.9, 1), (22.0, 0.9, 2), (21.0, 0.9, 3), (28.0, 0.8, 3)]
    assert members(clique(points(of, 4), [(10, 0.25)], *PAPER)) == [{0, 1, 2, 3}]


def test_distances_are_in_grid_units() -> None:
    # Sample 3: one point is far in time, the other in correlation.
    of = [(20.0, 0.9, 0), (20.0, 0.9, 1), (20.0, 0.9, 2), (24.0, 0.9, 3), (20.0, 0.8, 3)]
    assert members(clique(points(of, 4), [(40, 0.2)], *PAPER)) == [{0, 1, 2, 3}]
    assert members(clique(points(of, 4), [(5, 0.4)], *PAPER)) == [{0, 1, 2, 4}]


def test_dense_units_have_samples_and_neighborhoods() -> None:
    # units of 10 s and 0.25: one dense unit of two samples, a third sample to its right, a fourth below it
    of = [(21.0, 0.9, 0), (22.0, 0.9, 1), (22.5, 0.9, 1), (31.0, 0.9, 2), (25.0, 0.6, 3), (71.0, 0.9, 0)]
    units = find_dense_units(points(of, 4), 10.0, 0.25, 0.5)
    assert (units.column.tolist(), units.row.tolist()) == ([2], [3])
    assert (units.sample_count.tolist(), units.neighborhood_count.tolist()) == ([2], [4])
    assert len(find_dense_units(points(of, 4), 10.0, 0.25, 0.75).column) == 0


def test_first_grid_that_explains_most_points_wins() -> None:
    apart = [(10.0 * sample, 0.9, sample) for sample in range(4)]
    result = clique(points(apart, 4), [(5, 0.25), (20, 0.25), (25, 0.25)], *PAPER)
    assert result.explained_count.tolist() == [0, 4, 4]
    assert result.grid == 1


def test_points_on_the_edge_are_included() -> None:
    corner = [(100.0, 1.0, sample) for sample in range(3)] + [(0.0, 0.0, sample) for sample in range(3)]
    assert members(clique(points(corner, 3), [(30, 0.3)], *PAPER)) == [{3, 4, 5}, {0, 1, 2}]


def test_many_samples_on_a_fine_grid_do_not_overflow() -> None:
    of = [(time, 0.99, sample) for sample in (0, 999) for time in np.linspace(0, 1e7, 5000).tolist()]
    result = clique(points(of, 1000, 1e7), [(3, 0.001)], 0.002, 0.002)
    assert result.count == 5000
    assert result.explained_count.tolist() == [10_000]


# ---- naive implementation


@st.composite
def planes(draw: st.DrawFn) -> tuple[list[naive.Point], int, float]:
    samples = draw(st.integers(1, 7))
    span = draw(st.floats(1, 60))
    digits = draw(st.integers(0, 2))
    instants = st.floats(0, span).map(lambda value: min(round(value, digits), span))
    likenesses = st.floats(0, 1).map(lambda value: round(value, 2))
    drawn = draw(st.lists(st.tuples(instants, likenesses, st.integers(0, samples - 1)), min_size=1, max_size=45))
    return drawn, samples, span


shares = st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0])
sides = st.lists(st.tuples(st.floats(0.5, 30), st.sampled_from([0.05, 0.1, 0.25, 0.3, 1.0])), min_size=1, max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(planes(), sides, shares, shares)
def test_clusters_match_naive_implementation(
    plane: tuple[list[naive.Point], int, float], grids: list[tuple[float, float]], gamma: float, kappa: float
) -> None:
    of, samples, span = plane
    result = clique(points(of, samples, span), grids, gamma, kappa)
    expected, best, explained = naive.clique(of, samples, span, grids, gamma, kappa)
    assert result.explained_count.tolist() == explained
    assert result.grid == best
    # The order of clusters with equal mean time is arbitrary.
    assert {frozenset(cluster) for cluster in members(result)} == {frozenset(cluster) for cluster in expected}


def planes_of(ones: list[BurstPlanes]) -> BurstPlanes:
    time_s, likeness, sample, _, sample_count, span_s = (
        np.concatenate([getattr(one, field.name) for one in ones]) for field in fields(BurstPlanes)
    )
    return BurstPlanes(time_s, likeness, sample, offsets_of([len(one.time_s) for one in ones]), sample_count, span_s)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(planes(), min_size=1, max_size=4), st.integers(0, 1000))
def test_planes_are_independent(drawn: list[tuple[list[naive.Point], int, float]], seed: int) -> None:
    ones = [points(*plane) for plane in drawn]
    rng = np.random.default_rng(seed)
    width, height = rng.uniform(0.5, 30.0, (len(ones), 3)), rng.choice([0.1, 0.25, 1.0], (len(ones), 3))
    gamma, kappa = rng.choice([0.3, 0.5, 0.9], 2)
    together = find_common_bursts(planes_of(ones), width, height, gamma, kappa)
    first = 0
    for place, one in enumerate(ones):
        alone = clique(one, list(zip(width[place], height[place], strict=True)), gamma, kappa)
        assert together.owner[first : first + len(one.time_s)].tolist() == alone.owner.tolist()
        assert (together.count[place], together.grid[place]) == (alone.count, alone.grid)
        assert together.explained_count[place].tolist() == alone.explained_count.tolist()
        first += len(one.time_s)


@settings(max_examples=examples(60), deadline=None)
@given(planes(), sides, shares, shares)
def test_clusters_are_ordered_with_one_point_per_sample(
    plane: tuple[list[naive.Point], int, float], grids: list[tuple[float, float]], gamma: float, kappa: float
) -> None:
    of, samples, span = plane
    result = clique(points(of, samples, span), grids, gamma, kappa)
    clusters = members(result)
    assert sum(map(len, clusters)) == result.explained_count.max(initial=0)
    means = [np.mean([of[i][0] for i in cluster]) for cluster in clusters]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(means))
    for cluster in clusters:
        assert len({of[i][2] for i in cluster}) == len(cluster) >= min_sample_count(kappa, samples)


@settings(max_examples=examples(40), deadline=None)
@given(planes(), st.integers(0, 1000))
def test_order_of_points_does_not_matter(plane: tuple[list[naive.Point], int, float], seed: int) -> None:
    of, samples, span = plane
    # Order decides ties, hence distinct times.
    of = [(min(time + i * 1e-4, span), likeness, sample) for i, (time, likeness, sample) in enumerate(of)]
    order = np.random.default_rng(seed).permutation(len(of))
    grids = list(product((3.0, 9.0), (0.1, 0.25)))
    one = clique(points(of, samples, span), grids, *PAPER)
    other = clique(points([of[place] for place in order], samples, span), grids, *PAPER)
    assert one.explained_count.tolist() == other.explained_count.tolist()
    assert one.grid == other.grid
    assert one.count == other.count
