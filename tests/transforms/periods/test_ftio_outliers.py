"""Outliers of spectra by each method: clear peaks, naive implementations, scikit-learn's DBSCAN, and short spectra."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.transforms.periods.ftio_outliers import (
    Method,
    OutlierParams,
    Outliers,
    count_min_bins,
    find_outliers,
    is_dbscan_noise,
)
from tests.budget import examples
from tests.naive.periods import ftio as naive
from tests.naive.periods.ftio_spectra import compute_z_scores

METHODS: tuple[Method, ...] = get_args(Method)
#: Enough trees for a clear peak.
FEW_TREES = OutlierParams(forest_tree_count=20)
POWERS = st.lists(st.one_of(st.floats(1e-6, 100), st.integers(0, 3).map(float)), min_size=3, max_size=60)


def make_noisy_spectrum(peaks: dict[int, float], bins: int = 200, seed: int = 0) -> np.ndarray:
    """A spectrum of weak noise with peaks at given bins."""
    result = np.random.default_rng(seed).exponential(0.01, bins)
    for k, height in peaks.items():
        result[k - 1] = height
    return result


def candidates(result: Outliers, signal: int = 0) -> list[int]:
    return result.bin[result.is_candidate & (result.signal == signal)].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_only_the_clear_peaks(method: Method) -> None:
    result = find_outliers(
        np.stack([make_noisy_spectrum({20: 5.0, 60: 1.0}), make_noisy_spectrum({30: 9.0, 77: 8.5})]), method, FEW_TREES
    )
    assert candidates(result) == [20]
    assert candidates(result, 1) == [30, 77]
    assert (np.diff(result.signal * 1000 + result.bin) > 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(0, 40), (2, 0), (2, 1), (2, 2), (3, 40)])
def test_flat_short_and_empty_spectra_have_no_outliers(method: Method, shape: tuple[int, int]) -> None:
    for value in (0.0, 1e-100, 0.1, 1e100):
        assert not find_outliers(np.full(shape, value), method).is_candidate.any()


@pytest.mark.parametrize("method", METHODS)
def test_results_are_independent_of_the_batch(method: Method) -> None:
    rows = np.stack([make_noisy_spectrum({20 + place: 5.0}, seed=place) * 1000.0**place for place in range(4)])
    together = find_outliers(rows, method, FEW_TREES)
    for place, row in enumerate(rows):
        alone = find_outliers(row[None], method, FEW_TREES)
        mine = together.signal == place
        np.testing.assert_array_equal(together.bin[mine], alone.bin)
        np.testing.assert_allclose(together.score[mine], alone.score, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS[1:])
def test_scores_other_than_z_scores_are_between_zero_and_one(method: Method) -> None:
    result = find_outliers(
        np.stack([make_noisy_spectrum({20: 5.0, 40: 4.4, 60: 2.0}, seed=seed) for seed in range(5)]), method, FEW_TREES
    )
    assert ((result.score >= 0) & (result.score <= 1)).all()
    assert len(result.score) >= 10


def test_isolation_forest_is_determined_by_the_seed() -> None:
    power = np.random.default_rng(1).exponential(1.0, (2, 150))
    first, again = (
        find_outliers(power, "isolation_forest", OutlierParams(seed=3, forest_tree_count=20)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.score, again.score)
    other = find_outliers(power, "isolation_forest", OutlierParams(seed=4, forest_tree_count=20))
    assert first.score.tolist() != other.score.tolist()


# ---- Z-score


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(POWERS, min_size=1, max_size=1), st.sampled_from([0.45, 0.8, 1.0]), st.sampled_from([2.0, 3.0]))
def test_z_scores_match_naive_implementation(rows: list[list[float]], tolerance: float, threshold: float) -> None:
    (powers,) = rows
    scores = compute_z_scores(powers)
    highest = max(scores)
    # The implementations may round differently next to a threshold.
    assume(all(abs(z - bound) > 1e-9 or z == highest for z in scores for bound in (threshold, tolerance * highest)))
    assume(abs(highest - threshold) > 1e-9)
    result = find_outliers(np.array([powers]), params=OutlierParams(z_threshold=threshold, tolerance=tolerance))
    assert candidates(result) == naive.find_candidates(scores, threshold, tolerance)
    np.testing.assert_allclose(result.score, [scores[k - 1] for k in result.bin], rtol=1e-9)
    if highest > threshold:
        assert result.bin[result.is_outlier].tolist() == [k for k, z in enumerate(scores, 1) if z >= threshold]
        assert result.bin[result.is_near].tolist() == [
            k for k, z in enumerate(scores, 1) if z >= tolerance * highest * (1 - 1e-12)
        ]
    else:
        assert not len(result.bin)


def test_both_bounds_of_equation_3_are_inclusive() -> None:
    # Among ten bins the maximum is z = 3 exactly; among nine it is lower.
    assert candidates(find_outliers(np.eye(10)[:1] * 0.7)) == [1]
    assert candidates(find_outliers(np.eye(9)[:1])) == []
    assert count_min_bins("z_score", OutlierParams()) == 10
    assert count_min_bins("z_score", OutlierParams(z_threshold=4.0)) == 17
    # Among a hundred bins of mean 1, two are 20 and 16 above the mean: a ratio of exactly 0.8.
    powers = np.full((1, 100), (100 - 21 - 17) / 98)
    powers[0, [30, 70]] = 21.0, 17.0
    assert candidates(find_outliers(powers)) == [31, 71]
    powers[0, 70] -= 1e-6
    assert candidates(find_outliers(powers)) == [31]


def test_near_bins_are_distinguished_from_outliers() -> None:
    powers = np.zeros((1, 16))
    powers[0, [3, 8]] = 10.0, 9.0
    result = find_outliers(powers, params=OutlierParams(z_threshold=2.6))
    assert result.bin.tolist() == [4, 9]
    assert result.is_outlier.tolist() == [True, False]
    assert result.is_near.tolist() == [True, True]


# ---- DBSCAN


HEIGHTS = st.lists(st.floats(0, 6).map(lambda value: round(value, 2)), min_size=1, max_size=40)


@settings(max_examples=examples(100), deadline=None)
@given(HEIGHTS)
def test_dbscan_noise_matches_naive_implementation_and_scikit_learn(heights: list[float]) -> None:
    from sklearn.cluster import DBSCAN

    points = list(enumerate(heights))
    result = is_dbscan_noise(np.array([heights]))[0].tolist()
    assert result == naive.find_noise(points, np.sqrt(2.0), 2)
    labels = DBSCAN(eps=np.sqrt(2.0) * (1 + 1e-12), min_samples=2).fit(np.array(points)).labels_
    assert result == (labels == -1).tolist()


def test_adjacent_frequencies_form_a_dbscan_cluster() -> None:
    leaking = make_noisy_spectrum({20: 5.0, 21: 4.9})
    assert candidates(find_outliers(leaking[None], "dbscan")) == []
    assert candidates(find_outliers(leaking[None])) == [20, 21]


def test_tolerance_of_one_keeps_only_the_maximum() -> None:
    params = OutlierParams(tolerance=1.0, forest_tree_count=20)
    for method in METHODS:
        assert candidates(find_outliers(make_noisy_spectrum({20: 5.0, 40: 4.99})[None], method, params)) == [20]


# ---- peaks


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(POWERS.map(lambda row: (row * 10)[:30]), min_size=1, max_size=4))
def test_peaks_are_independent_of_the_batch(rows: list[list[float]]) -> None:
    from scipy import signal

    result = find_outliers(np.array(rows), "find_peaks")
    for place, row in enumerate(rows):
        mean = np.mean(row)
        expected = [int(at) + 1 for at in signal.find_peaks(row)[0] if row[at] > mean * (1 + 1e-12)]
        mine = result.bin[result.signal == place].tolist()
        if np.std(row) > 1e-9 * max(mean, 1e-300):
            assert mine == expected
        else:
            assert mine == []
