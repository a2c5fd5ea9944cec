"""Hills: two-line fits against the naive implementation, and the prominence of tops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.periods.autoperiod_hills import TwoLineFits, Windows, compute_prominence, fit_two_lines
from tests.budget import examples
from tests.naive.periods import autoperiod as naive


def fit_one(values: list[float]) -> TwoLineFits:
    return fit_two_lines(
        np.array([values]), Windows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([len(values) - 1]))
    )


def test_tent_is_fitted_exactly() -> None:
    result = fit_one([0, 1, 2, 3, 2.5, 2, 1.5, 1])
    assert (result.cut[0], result.top[0]) == (3, 3)
    assert (result.rising[0], result.falling[0]) == pytest.approx((1, -0.5))
    assert result.residual[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "rises", "falls"),
    [([3, 2, 1, 2, 3], False, False), ([1, 2, 3, 4, 6], True, False), ([6, 4, 3, 2, 1], False, True)],
)
def test_valleys_and_slopes_are_no_hills(values: list[float], rises: bool, falls: bool) -> None:
    result = fit_one(values)
    assert (result.rising[0] > 0, result.falling[0] < 0) == (rises, falls)


def test_split_minimizes_the_total_squared_error() -> None:
    # The sum of the slopes' standard errors is smallest at another split.
    values = [0.0, 0.1, 0.0, 0.1, 0.0, 5.0, 9.0, 4.0, 0.0]
    best = naive.fit_two_lines(values)
    assert best is not None
    assert fit_one(values).cut[0] == best[1]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([1.0, 1e-200, 1e150]))
def test_fits_match_naive_implementation(seed: int, count: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    table = random.normal(size=(3, 90)).cumsum(axis=1) * scale
    row, first = random.integers(0, 3, count), random.integers(0, 60, count)
    last = first + random.integers(-1, 30, count)
    result = fit_two_lines(table, Windows(row, first, last))
    for place in range(count):
        piece = table[row[place], first[place] : last[place] + 1].tolist()
        expected = naive.fit_two_lines(piece) if len(piece) >= 5 else None
        if expected is None:
            assert result.cut[place] == -1
            assert np.isnan([result.rising[place], result.falling[place], result.residual[place]]).all()
        elif scale == 1.0:
            assert result.cut[place] - first[place] == expected[1]
            assert result.residual[place] == pytest.approx(expected[0], rel=1e-6, abs=1e-10)
            assert (result.rising[place], result.falling[place]) == pytest.approx(expected[2:], abs=1e-9)
        if piece:
            assert result.top[place] - first[place] == piece.index(max(piece))


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 1e6), st.floats(-100, 100))
def test_split_is_independent_of_scale_and_level(seed: int, scale: float, level: float) -> None:
    values = np.random.default_rng(seed).normal(size=20).cumsum()
    single, other = fit_one(values.tolist()), fit_one((values * scale + level * scale).tolist())
    assert other.cut[0] == single.cut[0]
    assert other.rising[0] == pytest.approx(scale * single.rising[0], rel=1e-6, abs=1e-9 * scale)


def test_long_windows_keep_precision() -> None:
    values = np.abs(np.arange(100_001) - 60_000.0) * -1e-9 + 1e3
    result = fit_one(values.tolist())
    assert result.cut[0] == 60_000
    assert (result.rising[0], result.falling[0]) == pytest.approx((1e-9, -1e-9), rel=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_windows_with_nan_are_no_hills(bad: float) -> None:
    result = fit_one([0, 1, 2, bad, 2, 1, 0])
    assert (result.cut[0], np.isnan(result.rising[0])) == (-1, True)


def test_empty_input_has_no_fits_and_no_prominence() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(fit_two_lines(np.zeros((1, 5)), Windows(none, none, none)).cut) == 0
    assert len(compute_prominence(np.zeros((1, 5)), none, none, none)) == 0


def test_prominence_is_measured_from_the_higher_valley() -> None:
    table: Reals = np.array([[9.0, 2.0, 5.0, 4.0, 1.0, 8.0, np.nan]])
    row, top = np.zeros(4, dtype=np.int64), np.array([2, 2, 5, 0])
    result = compute_prominence(table, row, top, np.array([1, 2, 1, 3]))
    # At an edge one side is empty.
    assert result.tolist() == [1, 3, 0, 0]
