"""Typical durations and outliers match scikit-learn and a naive implementation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix

from iosig.transforms.arrays import Bools, Ragged, Reals, offsets_of
from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.outliers import (
    compute_lof,
    detect_outliers,
    local_outlier_factors,
    neighbor_count,
    run_volumes,
    scale_by_mad,
    score_outliers,
    select_typical_runs,
    typical_duration_s,
)
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from tests.budget import examples
from tests.naive.signatures import outliers as naive

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate values are leading:UserWarning")

NAN = float("nan")


def single_set_offsets(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([0, count])


def simulate_sets(sizes: list[int], seed: int = 0) -> tuple[Reals, Reals, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return rng.normal(1500.0, 9.0, offsets[-1]), rng.normal(9e11, 8e10, offsets[-1]), offsets


def compute_with_scikit_learn(points: Reals, count: int) -> Reals:
    from sklearn.neighbors import LocalOutlierFactor

    # Its brute-force search expands the squared difference and loses digits of short distances (4e-12 of a factor of
    # 58); its trees subtract directly.
    return -LocalOutlierFactor(n_neighbors=count, algorithm="kd_tree").fit(points).negative_outlier_factor_


def compute_with_scikit_learn_graph(points: Reals, count: int) -> Reals:
    """Compute scikit-learn's factors with neighbors ordered by distance, then by index."""
    from sklearn.neighbors import LocalOutlierFactor

    squares = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(squares, -1.0)  # the point itself first
    order = np.argsort(squares, axis=1, kind="stable")[:, : count + 1]
    distance = np.sqrt(np.maximum(np.take_along_axis(squares, order, axis=1), 0.0))
    starts = np.arange(0, order.size + 1, count + 1)
    graph = csr_matrix((distance.ravel(), order.ravel(), starts), shape=squares.shape)
    return -LocalOutlierFactor(n_neighbors=count, metric="precomputed").fit(graph).negative_outlier_factor_


# ---- typical durations


def is_typical(durations: list[float]) -> Bools:
    return select_typical_runs(np.array(durations, dtype=float), single_set_offsets(len(durations)))


def test_stopped_runs_do_not_set_the_typical_duration() -> None:
    complete = [1000.0, 1003, 1010, 1002, 1020, 1008]
    others = [200.0, 550, 870, 920, 1150]
    assert is_typical(complete + others).tolist() == [True] * 6 + [False] * 5
    assert is_typical(others + complete).tolist() == [False] * 5 + [True] * 6


def test_truncated_runs_are_not_typical() -> None:
    duration_s, offsets = np.array([1000.0, 1000.0, 1010.0, 985.0, 985.0, 985.0]), single_set_offsets(6)
    is_truncated = np.array([False, False, False, True, True, True])
    assert select_typical_runs(duration_s, offsets, is_truncated).tolist() == (~is_truncated).tolist()
    assert select_typical_runs(duration_s, offsets, np.zeros(6, np.bool_)).all()
    few = np.array([False, False, True, True, True, True])
    assert select_typical_runs(duration_s, offsets, few).all(), "with fewer than three complete runs, all are used"


def test_truncated_runs_do_not_return_if_too_few_are_similar() -> None:
    duration_s, is_truncated = np.array([100.0, 200.0, 400.0, 100.0]), np.array([False, False, False, True])
    assert select_typical_runs(duration_s, single_set_offsets(4), is_truncated).tolist() == [True, True, True, False]


def test_typical_runs_have_asymmetric_tolerance() -> None:
    assert is_typical([1000.0, 1001, 1002, 930, 1090]).tolist() == [True, True, True, False, True]
    assert is_typical([1000.0, 1001, 1002, 952, 1102]).tolist() == [True, True, True, True, False]


def test_all_runs_are_typical_if_too_few_are_similar() -> None:
    assert is_typical([100.0, 200, 400]).all()
    assert is_typical([100.0, 101, 102, 400]).tolist() == [True, True, True, False]
    assert is_typical([NAN, 0.0, NAN]).all()
    assert is_typical([NAN, 10.0, 10.0, 10.0, 0.0, -10.0]).tolist() == [False, True, True, True, False, False]
    assert is_typical([]).tolist() == []


def test_longest_large_group_is_typical() -> None:
    stopped = [610.0, 928, 845, 936, 857, 925, 1150, 625, 543]
    whole = [1513.0, 1518, 1526, 1522, 1557]
    assert is_typical(stopped + whole).tolist() == [False] * 9 + [True] * 5
    assert is_typical([*stopped, 1513.0]).tolist() == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_typical_duration_of_few_runs_is_their_median() -> None:
    assert np.isnan(typical_duration_s(np.zeros(0)))
    assert np.isnan(typical_duration_s(np.array([NAN, 0.0])))
    assert typical_duration_s(np.array([7.0])) == 7.0
    assert typical_duration_s(np.array([100.0, 103.0])) == 101.5
    assert typical_duration_s(np.array([1.0, 9.4, 9.5, 20.0])) == 9.45, "one run of 20 s is no group"


@given(st.lists(st.lists(st.floats(1.0, 1e6), max_size=12), max_size=6))
def test_typical_runs_of_each_set_are_independent(sets: list[list[float]]) -> None:
    offsets = offsets_of([len(one) for one in sets])
    together = select_typical_runs(np.array([value for one in sets for value in one]), offsets)
    assert together.tolist() == [mark for one in sets for mark in is_typical(one).tolist()]


# ---- factors


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), st.data())
def test_factors_match_scikit_learn(seed: int, count: int, data: st.DataObject) -> None:
    neighbors = data.draw(st.integers(1, count - 1))
    points = np.random.default_rng(seed).normal(size=(count, 2))
    ours = compute_lof(points[None], neighbors)[0]
    np.testing.assert_allclose(ours, compute_with_scikit_learn(points, neighbors), rtol=1e-12, atol=0)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30), st.data())
def test_ties_and_coincident_runs_match_scikit_learn(cells: list[tuple[int, int]], data: st.DataObject) -> None:
    neighbors = data.draw(st.integers(1, len(cells) - 1))
    points = np.array(cells, dtype=np.float64)
    ours = compute_lof(points[None], neighbors)[0]
    np.testing.assert_allclose(ours, compute_with_scikit_learn_graph(points, neighbors), rtol=1e-12, atol=0)
    np.testing.assert_allclose(ours, naive.local_factors(cells, neighbors), rtol=1e-12, atol=0)


def test_coincident_runs_match_scikit_learn_search() -> None:
    points = np.array([[0.0, 0.0]] * 5 + [[1.0, 1.0]] * 3 + [[9.0, 2.0], [3.0, 7.5]])
    for count in (2, 4, 9):
        ours = compute_lof(points[None], count)[0]
        np.testing.assert_allclose(ours, compute_with_scikit_learn(points, count), rtol=1e-12, atol=0)
    # More coincident runs than neighbors: their density is maximal, and the factors of other runs are huge.
    assert compute_lof(points[None], 2)[0, :5] == pytest.approx(1.0)
    assert compute_lof(points[None], 2)[0, 8] > 1e9


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(0, 13), min_size=1, max_size=6), st.integers(0, 2**32))
def test_factors_of_sets_match_naive_implementation(sizes: list[int], seed: int) -> None:
    duration, volume, offsets = simulate_sets(sizes, seed)
    result = local_outlier_factors(duration, volume, offsets)
    for first, last in pairwise(offsets.tolist()):
        if last - first < 5:
            assert np.isnan(result[first:last]).all()
            continue
        count = neighbor_count(last - first)
        twin = naive.factors(duration[first:last].tolist(), volume[first:last].tolist(), count)
        np.testing.assert_allclose(result[first:last], twin, rtol=1e-9, atol=0)


def test_chunks_match_single_sets() -> None:
    duration, volume, offsets = simulate_sets([10] * 400 + [7] * 300 + [40] * 20)
    result = local_outlier_factors(duration, volume, offsets)
    for place in (0, 1, 326, 327, 399, 400, 650, 699, 700, 719):
        runs = slice(offsets[place], offsets[place + 1])
        alone = local_outlier_factors(
            duration[runs], volume[runs], single_set_offsets(offsets[place + 1] - offsets[place])
        )
        np.testing.assert_array_equal(result[runs], alone)


def test_large_sets_by_tree_match_distance_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(3).normal(size=(1, 1100, 2))
    points[0, :30] = 0.5  # more coinciding runs than neighbors
    by_tree = compute_lof(points, 20)
    monkeypatch.setattr(outliers, "_MAX_TABLE_RUNS", 2000)
    np.testing.assert_allclose(by_tree, compute_lof(points, 20), rtol=1e-12, atol=0)
    np.testing.assert_allclose(by_tree[0], compute_with_scikit_learn(points[0], 20), rtol=1e-12, atol=0)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_factors_are_independent_of_units(seed: int, time_unit: float, volume_unit: float) -> None:
    duration, volume, offsets = simulate_sets([11], seed)
    other = local_outlier_factors(duration * time_unit, volume * volume_unit, offsets)
    np.testing.assert_allclose(other, local_outlier_factors(duration, volume, offsets), rtol=1e-6)


def test_axes_are_scaled_by_mad() -> None:
    values = np.array([[1.0, 2, 3, 4, 100]])
    np.testing.assert_allclose(scale_by_mad(values), [[-2, -1, 0, 1, 97]])
    # The smallest unit is a thousandth of the median: one second for runs of 1000 s.
    np.testing.assert_allclose(scale_by_mad(np.array([[1000.0, 1000, 1000, 1000, 1001]])), [[0, 0, 0, 0, 1]])
    np.testing.assert_allclose(scale_by_mad(np.array([[0.0, 0, 0, 0, 5]])), [[0, 0, 0, 0, 1000]])
    assert not scale_by_mad(np.full((2, 4), 7.0)).any()


def test_neighbor_count_is_half_the_runs_within_bounds() -> None:
    assert [neighbor_count(count) for count in (2, 4, 5, 6, 10, 11, 40, 41, 1000)] == [
        1, 3, 3, 3, 5, 5, 20, 20, 20,
    ]  # fmt: skip


# ---- outliers


#: Runs as in Figure 7: eight similar runs and two outliers.
LIKE_FIGURE_7 = (
    np.array([1527.0, 1533, 1530, 1541, 1536, 1529, 1538, 1545, 1610, 1560]),
    np.array([0.91, 0.95, 0.88, 1.02, 0.97, 0.93, 0.99, 1.04, 1.25, 2.1]) * 1e12,
)


def test_outliers_of_figure_7_are_detected() -> None:
    assert np.flatnonzero(detect_outliers(*LIKE_FIGURE_7, single_set_offsets(10))).tolist() == [8, 9]


def test_two_similar_stopped_runs_are_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    duration = np.array([1527.0, 1533, 1530, 1541, 1536, 1529, 1538, 1545, 760, 766])
    volume = np.array([9.1, 9.5, 8.8, 10.2, 9.7, 9.3, 9.9, 10.4, 4.9, 5.1]) * 1e11
    assert np.flatnonzero(detect_outliers(duration, volume, single_set_offsets(10))).tolist() == [8, 9]
    params = replace(outliers.PARAMS, neighbor_ratio=0.0, min_neighbors=1)
    monkeypatch.setattr(outliers, "PARAMS", params)
    assert not detect_outliers(duration, volume, single_set_offsets(10))[8:].any(), "one neighbor shelters"


def test_stopped_and_resumed_runs_are_outliers() -> None:
    rng = np.random.default_rng(8)
    count = 500
    done = np.ones((count, 10))
    done[:, 8] = rng.uniform(0.1, 0.9, count)
    done[:, 9] = 1.0 - done[:, 8]  # resumed where the other run had stopped
    duration = (done * 1520 * (1 + rng.exponential(0.01, done.shape))).ravel()
    volume = (done * 9e11 * (1 + rng.exponential(0.15, done.shape))).ravel()
    is_out = detect_outliers(duration, volume, np.arange(0, 10 * count + 1, 10)).reshape(count, 10)
    assert is_out[:, 8:].mean() > 0.99
    assert is_out[:, :8].mean() < 0.1


def test_factors_slightly_above_the_mean_are_no_outliers() -> None:
    duration, volume, offsets = simulate_sets([10] * 2000)
    apart = detect_outliers(duration, volume, offsets).reshape(-1, 10)
    result = local_outlier_factors(duration, volume, offsets).reshape(-1, 10)
    to_the_letter = result > result.mean(axis=1, keepdims=True)
    assert to_the_letter.mean() > 0.3
    assert apart.mean() < 0.1
    assert not (apart & ~to_the_letter).any()


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(0, 1e308), st.sampled_from([0.0, 5e-324, 1e3, 1001.0, np.inf, np.nan, -1.0])),
            st.one_of(st.floats(0, 1e308), st.sampled_from([0.0, 5e-324, 1e12, np.inf, np.nan, -np.inf])),
        ),
        max_size=16,
    )
)
@pytest.mark.filterwarnings("error")
def test_detection_keeps_at_least_one_run(runs: list[tuple[float, float]]) -> None:
    table = np.array(runs, dtype=np.float64).reshape(-1, 2)
    known = np.isfinite(table).all(axis=1) & (table >= 0).all(axis=1)
    is_out = detect_outliers(table[:, 0], table[:, 1], single_set_offsets(len(runs)))
    if known.sum() < 5:
        assert not is_out.any()
    else:
        assert is_out[~known].all()
        assert (~is_out & known).any()
        assert is_out[known].sum() <= known.sum() // 2
        assert np.isfinite(local_outlier_factors(table[:, 0], table[:, 1], single_set_offsets(len(runs)))[known]).all()


def test_equal_runs_are_no_outliers() -> None:
    for value in (0.0, 5e-324, 1527.3, 1e308):
        assert not detect_outliers(np.full(9, value), np.full(9, 3 * 0.1), single_set_offsets(9)).any()


def test_equal_factors_tolerate_rounding_of_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the mean factor of the set is the threshold.
    monkeypatch.setattr(outliers, "PARAMS", replace(outliers.PARAMS, min_factor=0.0, max_outlier_ratio=1.0))
    for count in (8, 12, 16):
        angle = 2 * np.pi * np.arange(count) / count
        for radius in (10, 30, 100, 170):
            runs = 1000 + radius * np.cos(angle), 1000 + radius * np.sin(angle)
            assert not detect_outliers(*runs, single_set_offsets(count)).any()


def test_published_threshold_is_the_mean_factor_of_the_set() -> None:
    rng = np.random.default_rng(4)
    duration, volume = 1000 + rng.normal(0, 5, 60), 1e9 * (1 + rng.normal(0, 0.02, 60))
    offsets = np.array([0, 20, 60])
    factors = local_outlier_factors(duration, volume, offsets)
    expected = np.concatenate([part > part.mean() for part in np.split(factors, [20])])
    is_out = detect_outliers(duration, volume, offsets, min_factor=0.0, max_outlier_ratio=1.0)
    assert is_out.tolist() == expected.tolist()
    scores = score_outliers(duration, volume, offsets, min_factor=0.0, max_outlier_ratio=1.0)
    assert scores.factor.tolist() == factors.tolist()
    assert scores.threshold == pytest.approx([part.mean() for part in np.split(factors, [20])])
    assert score_outliers(duration, volume, offsets).threshold.tolist() == [1.5, 1.5]
    assert is_out.sum() > detect_outliers(duration, volume, offsets).sum()


def test_number_of_outliers_is_limited_to_the_most_distant() -> None:
    duration = np.array([1000.0, 1001, 1002, 1003, 1004, 1005, 1006, 1200, 800, 1500, 300])
    result = local_outlier_factors(duration, np.ones(11), single_set_offsets(11))
    assert np.flatnonzero(detect_outliers(duration, np.ones(11), single_set_offsets(11))).tolist() == [7, 8, 9, 10]
    for ratio, count in ((0.3, 3), (0.1, 1), (0.05, 0)):
        is_out = detect_outliers(duration, np.ones(11), single_set_offsets(11), max_outlier_ratio=ratio)
        assert is_out.sum() == count
        assert set(np.flatnonzero(is_out)) == set(np.argsort(result)[11 - count :])


def test_small_sets_have_no_outliers() -> None:
    duration = np.array([100.0, 100, 100, 900])
    assert not detect_outliers(duration, duration, single_set_offsets(4)).any()
    assert detect_outliers(np.append(duration, 100), np.append(duration, 100), single_set_offsets(5)).tolist() == [
        False, False, False, True, False,
    ]  # fmt: skip
    assert detect_outliers(np.zeros(0), np.zeros(0), np.array([0])).shape == (0,)
    assert detect_outliers(np.zeros(0), np.zeros(0), np.array([0, 0, 0])).shape == (0,)


# ---- volumes


def test_volume_is_extrapolated_over_gaps() -> None:
    def make_sample_set(interval_s: float, *samples: list[float]) -> SampleSet:
        counts = [len(one) for one in samples]
        values = np.concatenate([np.zeros(0), *(np.array(one, dtype=np.float64) for one in samples)])
        edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return SampleSet(Ragged(values, edges), interval_s, np.zeros(len(samples)), np.array(counts) * interval_s)

    sets = SampleSets.concatenate(
        [make_sample_set(2.0, [1, 2, 3], [1, np.nan, 3, np.inf], []), make_sample_set(1.0, [np.nan, np.nan], [5.0])]
    )
    np.testing.assert_array_equal(run_volumes(sets), [12.0, 16.0, np.nan, np.nan, 5.0])
