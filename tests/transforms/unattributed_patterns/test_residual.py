"""Residual traffic: resampled polls without background and explained bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.unattributed_patterns.residual import choose_step_s, compute_residual, resample_polls


def test_polls_are_divided_among_steps_by_time() -> None:
    edges = np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    volumes = np.array([2.0, 2.0, 2.0, 10.0, 10.0, 10.0])
    result = resample_polls(edges, np.full(6, 2.0), volumes, 0.0, 5.0)
    # Only two seconds of the third step were polled: less than half.
    np.testing.assert_allclose(result, [5.0, 1.0 + 20.0, np.nan])


def test_gaps_are_nan_and_partly_polled_steps_are_scaled() -> None:
    edges, volumes = np.array([10.0, 20.0, 50.0, 56.0]), np.array([10.0, np.nan, 30.0, 12.0])
    result = resample_polls(edges, np.array([10.0, 10.0, 10.0, 6.0]), volumes, 0.0, 10.0)
    np.testing.assert_allclose(result, [10.0, np.nan, np.nan, np.nan, 30.0, 20.0])
    assert not len(resample_polls(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, 5.0))


@given(st.integers(1, 60), st.sampled_from([1.0, 2.0, 5.0, 7.0]))
def test_resampling_preserves_total_bytes(count: int, interval_s: float) -> None:
    edges = np.linspace(interval_s, count * interval_s, count)
    volumes = np.random.default_rng(count).uniform(0.0, 9.0, count)
    steps = resample_polls(edges, np.full(count, interval_s), volumes, 0.0, interval_s * 3)
    assert np.nansum(steps[: count // 3]) == pytest.approx(volumes[: count // 3 * 3].sum())


def test_largely_explained_minutes_are_masked() -> None:
    traffic = np.array([1.0, 9.0, 1.0, 21.0, 1.0, 1.0, np.nan])
    residual = compute_residual(traffic, np.array([0.5, 4.0, 0.0]), np.array([0, 0, 1, 1, 2, 2, 2]), 10.0)
    np.testing.assert_allclose(residual, [0.0, 8.0, np.nan, np.nan, 0.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("interval_s", "step_s"), [(1, 5), (2, 5), (5, 5), (5.5, 6), (10, 10), (31, 60), (60, 60), (90, 120)]
)
def test_step_length_divides_or_multiplies_a_minute(interval_s: float, step_s: float) -> None:
    assert choose_step_s(interval_s) == step_s
