"""Mean, median and quantile match naive implementations, NumPy, and simulated bursts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.signatures.averages import (
    extract_mean,
    extract_median,
    extract_quantile,
    median_1d,
    nan_mean,
    nan_quantile,
    quantile_1d,
    replace_nan,
)
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from tests.budget import examples
from tests.naive.signatures import averages as naive

NAN = float("nan")


def make_sample_set(*rates: npt.ArrayLike, interval_s: float = 1.0) -> SampleSet:
    """Make runs that start at the edge of a step."""
    rows = [np.asarray(rate, dtype=np.float64) for rate in rates]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    duration = np.array([len(row) * interval_s for row in rows])
    return SampleSet(Ragged(np.concatenate([np.zeros(0), *rows]), offsets), interval_s, np.zeros(len(rows)), duration)


# ---- points

values = st.one_of(st.just(NAN), st.floats(0, 1e12))


@st.composite
def draw_tables(draw: st.DrawFn) -> Reals:
    points = draw(st.integers(1, 6))
    rows = st.lists(values, min_size=points, max_size=points)
    return np.array(draw(st.lists(rows, min_size=1, max_size=7)))


@settings(max_examples=examples(60), deadline=None)
@given(draw_tables(), st.floats(0, 1))
def test_points_match_naive_implementation(table: Reals, level: float) -> None:
    rows = table.tolist()
    np.testing.assert_allclose(nan_mean(table), naive.means(rows), rtol=1e-12)
    np.testing.assert_allclose(nan_quantile(table, level), naive.quantiles(rows, level), rtol=1e-9, atol=1e-3)


@pytest.mark.parametrize("level", [0.0, 0.2, 0.35, 0.5, 1.0])
def test_quantiles_match_numpy(level: float) -> None:
    table = np.random.default_rng(2).exponential(1.0, (9, 400))
    np.testing.assert_allclose(nan_quantile(table, level), np.quantile(table, level, axis=0), rtol=1e-12)
    table[np.random.default_rng(3).random(table.shape) < 0.2] = NAN
    np.testing.assert_allclose(nan_quantile(table, level), np.nanquantile(table, level, axis=0), rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_extreme_values_and_missing_runs_are_handled() -> None:
    np.testing.assert_allclose(nan_mean(np.full((4, 2), 1.7e308)), [1.7e308] * 2)
    np.testing.assert_allclose(nan_quantile(np.full((4, 2), 1.7e308), 0.4), [1.7e308] * 2)
    np.testing.assert_allclose(nan_mean(np.array([[np.inf], [3.0]])), [3.0])
    assert nan_mean(np.empty((3, 0))).shape == nan_quantile(np.empty((3, 0)), 0.5).shape == (0,)
    np.testing.assert_array_equal(nan_mean(np.empty((0, 2))), [NAN, NAN])
    np.testing.assert_array_equal(nan_quantile(np.empty((0, 2)), 0.5), [NAN, NAN])
    np.testing.assert_array_equal(nan_quantile(np.full((3, 2), NAN), 0.5), [NAN, NAN])


@pytest.mark.parametrize("level", [-0.1, 1.1, NAN])
def test_level_out_of_range_raises(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        nan_quantile(np.ones((2, 2)), level)


# ---- sets


def runs(seed: int = 1) -> SampleSet:
    """Simulate six runs of three bursts of 20 s at 1 GB/s; one run has an interfering burst of 5 GB/s."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 1e7, (6, 300))
    for start in (50, 150, 250):
        rows[:, start : start + 20] += 1e9
    rows[2, 100:110] += 5e9
    return make_sample_set(*rows)


def test_interfering_burst_changes_only_the_mean() -> None:
    one = runs()
    assert len(extract_mean(one).bursts) == 4
    for result in (extract_median(one), extract_quantile(one)):
        assert len(result.bursts) == 3
        np.testing.assert_allclose(result.bursts.start_s, [50, 150, 250])
        np.testing.assert_allclose(result.bytes_per_s[50:70], 1e9, rtol=0.02)
        assert result.bytes_per_s[100:110].max() < 1e7
    assert 0 < extract_mean(one).background_bytes_per_s < 1e7
    assert extract_mean(one).duration_s == 300
    assert np.isnan(extract_mean(one).low_bytes_per_s).all()


def test_quantiles_increase_with_level() -> None:
    one = runs(4)
    low, middle, high = (extract_quantile(one, level).bytes_per_s for level in (0.2, 0.5, 0.8))
    assert (low <= middle).all()
    assert (middle <= high).all()
    np.testing.assert_array_equal(extract_median(one).bytes_per_s, middle)
    assert extract_quantile(one).volume_bytes <= extract_median(one).volume_bytes


def test_order_of_runs_does_not_matter() -> None:
    one = runs()
    swapped = make_sample_set(*one.rates[::-1])
    np.testing.assert_array_equal(extract_quantile(one).bytes_per_s, extract_quantile(swapped).bytes_per_s)
    np.testing.assert_allclose(extract_mean(one).bytes_per_s, extract_mean(swapped).bytes_per_s, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rates", "outcome"),
    [
        ([], "too_few_samples"),
        ([[]], "too_few_samples"),
        ([[NAN] * 9] * 3, "too_few_samples"),
        ([[0.0] * 9] * 3, "no_io"),
        ([[np.inf] * 9, [0.0] * 9], "no_io"),
        ([[0.0, 5.0, 0.0, 0.0]], "extracted"),
        ([[5.0]], "extracted"),
        ([[1e308, 0.0, 1e308]] * 4, "extracted"),
        ([[5e-324, 0.0, 5e-324, 0.0]] * 4, "extracted"),
    ],
)
def test_every_set_has_an_outcome(rates: list[list[float]], outcome: str) -> None:
    result: list[Signature] = [
        extract_mean(make_sample_set(*rates)),
        extract_median(make_sample_set(*rates)),
        extract_quantile(make_sample_set(*rates)),
    ]
    assert {each.outcome for each in result} == {outcome}
    for each in result:
        assert np.isfinite(each.bytes_per_s).all()
        assert (len(each.bytes_per_s) > 0) == (outcome == "extracted")


def test_points_without_measurement_are_interpolated() -> None:
    rows = np.tile(np.array([0.0, 0.0, 4.0, *[NAN] * 13, 4.0, 0.0, 0.0, *[0.0] * 60]), (3, 1))
    result = extract_mean(make_sample_set(*rows))
    assert result.outcome == "extracted"
    np.testing.assert_allclose(result.bytes_per_s[2:17], 4.0)


@pytest.mark.parametrize("seed", range(5))
def test_fast_quantiles_match_numpy_bitwise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for count in (1, 2, 3, 8, 9, 40):
        values = rng.lognormal(0.0, 3.0, count) * rng.integers(0, 2, count)
        assert median_1d(values) == np.median(values)
        for level in (0.0, 0.2, 0.333, 0.5, 0.99, 1.0):
            assert quantile_1d(values, level) == np.quantile(values, level)
    np.testing.assert_array_equal(replace_nan(np.array([[1.0, NAN], [np.inf, -2.0]])), [[1.0, 0.0], [np.inf, -2.0]])
