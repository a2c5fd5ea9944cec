"""The discrete Meyer approximation: PyWavelets' numbers, its naive twin, rows of every length, gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pywt
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.iosi_wavelets import approximation
from tests.budget import examples
from tests.naive.signatures import iosi_wavelets as naive

LENGTHS = (1, 2, 3, 5, 30, 31, 60, 61, 62, 63, 64, 121, 122, 123, 124, 255, 777, 1500, 1501, 1502, 1503)


def of_pywavelets(values: Reals, level: int) -> Reals:
    """`wavedec` and `waverec` without details, level by level, which warns of no level."""
    lengths, rows = [], values
    for _ in range(level):
        lengths.append(rows.shape[1])
        rows = pywt.dwt(rows, "dmey", mode="symmetric", axis=1)[0]
    for length in reversed(lengths):
        rows = pywt.idwt(rows, None, "dmey", mode="symmetric", axis=1)[:, :length]
    return rows


@pytest.mark.parametrize("level", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("points", LENGTHS)
def test_it_equals_pywavelets(points: int, level: int) -> None:
    values = np.random.default_rng(points).exponential(1.0, (3, points))
    found = approximation(values, level)
    assert found.shape == values.shape
    np.testing.assert_allclose(found, of_pywavelets(values, level), rtol=0, atol=1e-11)


def test_it_equals_wavedec_and_waverec() -> None:
    values = np.random.default_rng(7).exponential(1e9, (5, 1501))
    coefficients = pywt.wavedec(values, "dmey", level=2)
    flat = pywt.waverec([coefficients[0], *(np.zeros_like(detail) for detail in coefficients[1:])], "dmey")
    np.testing.assert_allclose(approximation(values), flat[:, :1501], rtol=0, atol=1e-9 * values.max())


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=80), st.integers(1, 3))
def test_it_equals_the_naive_twin(row: list[float], level: int) -> None:
    np.testing.assert_allclose(approximation([row], level)[0], naive.approximation(row, level), rtol=0, atol=1e-9)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_it_is_linear(points: int, seed: int) -> None:
    first, second = np.random.default_rng(seed).normal(size=(2, 2, points))
    both = approximation(2 * first - 3 * second)
    np.testing.assert_allclose(both, 2 * approximation(first) - 3 * approximation(second), atol=1e-11)


def test_rows_do_not_know_each_other() -> None:
    # more than are worked on at once
    values = np.random.default_rng(3).exponential(1.0, (120, 700))
    together = approximation(values)
    np.testing.assert_allclose(together[[0, 46, 47, 119]], approximation(values[[0, 46, 47, 119]]), atol=1e-13)


def test_what_is_slow_stays_and_what_is_fast_goes() -> None:
    times = np.arange(2000)
    slow, fast = np.cos(2 * np.pi * times / 100), np.cos(2 * np.pi * times / 5)
    inner = slice(300, -300)
    np.testing.assert_allclose(approximation([slow + fast])[0][inner], slow[inner], atol=0.01)
    np.testing.assert_allclose(approximation([np.full(100, 5.0)]), np.full((1, 100), 5.0), rtol=2e-3)


def test_zeros_stay_exactly_zero() -> None:
    values = np.zeros((2, 1500))
    values[0, 700:710] = 1.0
    found = approximation(values)
    assert not found[1].any()
    assert not found[0, :300].any()
    assert not found[0, -300:].any()
    assert found[0, 700:710].min() > 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e308, 5e-324, 1e-308, 0.0])
def test_extreme_values_are_no_error(scale: float) -> None:
    values = np.full((2, 90), scale)
    values[1, ::2] = 0.0
    assert approximation(values, 3).shape == (2, 90)


def test_shapes() -> None:
    assert approximation(np.empty((0, 5))).shape == (0, 5)
    assert approximation(np.empty((4, 0))).shape == (4, 0)
    assert approximation(np.asfortranarray(np.ones((3, 4)))).flags.c_contiguous
    whole = approximation(np.arange(12).reshape(2, 6))
    np.testing.assert_allclose(whole, approximation(np.arange(12.0).reshape(2, 6)))
    wide = np.random.default_rng(1).random((4, 300))
    np.testing.assert_allclose(approximation(wide[::2, ::3]), approximation(wide[::2, ::3].copy()), atol=1e-13)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        approximation(np.ones(5))
    with pytest.raises(ValueError, match="level"):
        approximation(np.ones((1, 5)), 0)


def test_a_real_series(shared_data: Path) -> None:
    path = shared_data / "ccr-gpfs" / "ub-hpc-6665127-gpfs-reads.csv"
    if not path.is_file():
        pytest.skip("the series is not among the real measurements")
    rates = np.diff(np.loadtxt(path)[:, 1])[None]
    found = approximation(rates)
    np.testing.assert_allclose(found, of_pywavelets(rates, 2), rtol=0, atol=1e-9 * rates.max())
