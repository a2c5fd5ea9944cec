"""Weighted quantiles match a naive implementation, NumPy, and hand-computed cases."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.robust_quantiles import weighted_quantiles
from tests.budget import examples
from tests.naive.signatures import robust as naive

LEVELS = np.array([0.0, 0.1, 0.35, 0.5, 0.77, 1.0])


def draw_values(seed: int, runs: int, points: int, *, ties: bool = False) -> tuple[Reals, Reals]:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (runs, points)).astype(float) if ties else rng.exponential(1.0, (runs, points))
    return values, rng.choice([0.0, 0.1, 0.5, 1.0, 3.0], (runs, points))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 6), st.booleans())
def test_quantiles_match_naive_implementation(seed: int, runs: int, points: int, ties: bool) -> None:
    values, weights = draw_values(seed, runs, points, ties=ties)
    result = weighted_quantiles(values, weights, LEVELS)
    expected = [
        [
            naive.weighted_quantile(values[:, point].tolist(), weights[:, point].tolist(), level)
            for point in range(points)
        ]
        for level in LEVELS
    ]
    np.testing.assert_allclose(result, np.reshape(expected, (len(LEVELS), points)), rtol=1e-9, atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.0, 1.0), st.floats(0.0, 0.6))
def test_low_quantiles_of_many_zeros_match_naive_implementation(
    seed: int, runs: int, share: float, level: float
) -> None:
    values, weights = draw_values(seed, runs, 20)
    values = np.where(np.random.default_rng(seed).random(values.shape) < share, 0.0, np.abs(values))
    result = weighted_quantiles(values, weights, np.array([level / 2, level]))
    for row, own in enumerate((level / 2, level)):
        expected = [naive.weighted_quantile(values[:, at].tolist(), weights[:, at].tolist(), own) for at in range(20)]
        np.testing.assert_allclose(result[row], expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_equal_weights_match_numpy(seed: int, runs: int) -> None:
    values, _ = draw_values(seed, runs, 5)
    result = weighted_quantiles(values, np.full((runs, 1), 0.3), LEVELS)
    np.testing.assert_allclose(result, np.quantile(values, LEVELS, axis=0), rtol=1e-9)


def test_large_weight_attracts_the_quantile() -> None:
    values = np.array([[1.0], [2.0], [3.0]])
    # Cumulative weights at 0.5, 6 and 11.5: the median is the heavy value.
    assert weighted_quantiles(values, np.array([[1.0], [10.0], [1.0]]), np.array([0.5])) == 2.0
    heavy_low = weighted_quantiles(values, np.array([[10.0], [1.0], [1.0]]), np.array([0.5]))[0, 0]
    heavy_high = weighted_quantiles(values, np.array([[1.0], [1.0], [10.0]]), np.array([0.5]))[0, 0]
    assert heavy_low < 2.0 < heavy_high


def test_values_without_weight_are_ignored() -> None:
    values = np.array([[np.nan, np.inf, 5.0], [2.0, 2.0, np.nan], [4.0, 4.0, -np.inf]])
    weights = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    result = weighted_quantiles(values, weights, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(result, [[2, 2, 5], [3, 3, 5], [4, 4, 5]])
    marked = weighted_quantiles(values, weights > 0, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(marked, result)


def test_quantile_without_weights_is_nan() -> None:
    result = weighted_quantiles(np.array([[1.0, 7.0]]), np.array([[0.0, 1.0]]), np.array([0.5]))
    assert np.isnan(result[0, 0])
    assert result[0, 1] == 7.0
    assert np.isnan(weighted_quantiles(np.zeros((0, 3)), np.zeros((0, 1)), LEVELS)).all()
    assert weighted_quantiles(np.zeros((3, 0)), np.ones((3, 1)), LEVELS).shape == (6, 0)


def test_extreme_values_and_weights_stay_in_range() -> None:
    values = np.array([[0.0, 5e-324], [1e308, 1e308], [1.7e308, 1.7e308]])
    for weight in (1e-300, 1.0, 1e300):
        result = weighted_quantiles(values, np.full((3, 1), weight), LEVELS)
        assert np.isfinite(result).all()
        assert (np.diff(result, axis=0) >= 0).all()
