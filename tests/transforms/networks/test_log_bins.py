"""Logarithmic bins: exact edges, all kinds of floats, and the naive implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.networks.log_bins import (
    HIGHEST,
    LOWEST,
    NEGATIVE,
    UNKNOWN,
    ZERO,
    bin_numbers,
    lower_edges,
)
from tests.naive.networks import log_bins as naive

NORMAL = np.arange(-1022 * 4, HIGHEST + 1)


def random_floats(count: int) -> np.ndarray:
    """Floats of random bits: every exponent and sign, NaNs and infinities."""
    return np.random.default_rng(7).integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, 0),
        (1.5, 2),
        (2.0, 4),
        (0.5, -4),
        (4096.0, 48),
        (np.nextafter(2.0, 0), 3),
        (0.0, ZERO),
        (-0.0, ZERO),
        (-1e-9, NEGATIVE),
        (-5e-324, NEGATIVE),
        (5e-324, LOWEST),
        (2.2250738585072014e-308, -1022 * 4),
        (np.nextafter(2.2250738585072014e-308, 0), -1022 * 4 - 1),
        (np.finfo(float).max, HIGHEST),
        (np.nan, UNKNOWN),
        (np.inf, UNKNOWN),
        (-np.inf, UNKNOWN),
    ],
)
def test_value_is_in_the_expected_bin(value: float, expected: int) -> None:
    assert bin_numbers(np.array([value])).tolist() == [expected]


def test_bin_edges_are_exact() -> None:
    starts = lower_edges(NORMAL)
    np.testing.assert_array_equal(bin_numbers(starts), NORMAL)
    np.testing.assert_array_equal(bin_numbers(np.nextafter(starts, 0)), NORMAL - 1)
    assert [float(value) for value in lower_edges(np.arange(4))] == naive.THRESHOLDS


def test_bin_edges_of_subnormal_numbers_are_exact() -> None:
    bins = np.arange(LOWEST, -1022 * 4, 4)
    np.testing.assert_array_equal(bin_numbers(np.ldexp(1.0, bins // 4)), bins)


def test_special_bins_have_no_logarithm() -> None:
    special = np.array([NEGATIVE, ZERO, UNKNOWN], np.int16)
    np.testing.assert_array_equal(lower_edges(special), [np.nan, 0.0, np.nan])


def test_bins_of_random_bits_match_naive_implementation() -> None:
    values = random_floats(20_000)
    assert bin_numbers(values).tolist() == [naive.bin_number(value) for value in values.tolist()]


@given(st.lists(st.floats(), max_size=20))
def test_bins_match_naive_implementation(values: list[float]) -> None:
    found = bin_numbers(np.array(values, dtype=np.float64))
    assert found.dtype == np.int16
    assert found.tolist() == [naive.bin_number(value) for value in values]


def test_noncontiguous_empty_and_long_arrays_are_accepted() -> None:
    values = np.arange(10.0)[::2]
    np.testing.assert_array_equal(bin_numbers(values), bin_numbers(values.copy()))
    assert len(bin_numbers(np.empty(0))) == 0
    assert len(bin_numbers(np.ones(100_001))) == 100_001
