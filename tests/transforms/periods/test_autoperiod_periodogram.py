"""The Lomb-Scargle periodogram equals Scargle's formula and SciPy, and has its distribution under white noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.signal import lombscargle

from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.autoperiod_periodogram import (
    FrequencyGrid,
    Reals,
    UnevenSignals,
    compute_even_powers,
    compute_even_terms,
    compute_exponential_probability,
    compute_exponential_threshold,
    compute_sums,
    compute_uneven_sums,
    compute_uneven_terms,
    compute_variances,
    count_turns,
    estimate_steps_s,
    make_even_grid,
    standardize,
    standardize_uneven,
)
from iosig.transforms.periods.interface.even_signals import EvenSignals
from tests.budget import examples
from tests.naive.periods import autoperiod_periodogram as naive


def make_samples(*signals: tuple[Reals, Reals]) -> UnevenSignals:
    times, values = (np.concatenate([pair[place] for pair in signals]) for place in (0, 1))
    offsets = np.concatenate([[0], np.cumsum([len(pair[0]) for pair in signals])])
    return UnevenSignals.from_intervals(times, np.zeros(len(times)), Ragged(values, offsets))


def make_grid(samples: UnevenSignals, samples_per_peak: int = 5) -> FrequencyGrid:
    return FrequencyGrid.from_spans(samples.span_s, estimate_steps_s(samples), samples_per_peak)


def uneven_powers(samples: UnevenSignals, grid: FrequencyGrid) -> Reals:
    turns, standard = count_turns(samples, grid), standardize_uneven(samples)
    waves = compute_uneven_terms(turns, samples.offsets, grid)
    powers = waves.compute_powers(
        compute_uneven_sums(turns, standard, samples.offsets, grid), compute_variances(standard, samples)
    )
    return np.where(grid.has_frequency, powers, np.nan)


def make_even(values: Reals, samples_per_peak: int = 5) -> Reals:
    known = np.isfinite(values)
    return compute_even_powers(
        standardize(values, known), compute_even_terms(known, samples_per_peak), samples_per_peak
    )


def signals(random: np.random.Generator, *counts: int) -> list[tuple[Reals, Reals]]:
    return [(np.sort(random.uniform(-50, 950, n)), random.exponential(1e9, n)) for n in counts]


# ---- frequencies


def test_grid_equals_astropy_autopower() -> None:
    grid = FrequencyGrid.from_spans(np.array([2884 * 30.0]), np.array([30.0]))
    assert grid.counts.tolist() == [7206]
    assert grid.frequency_hz[0, [0, 1, -1]] == pytest.approx([1 / 86520, 1.2 / 86520, 1 / 60], rel=1e-12)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(2, 200), st.integers(1, 9), st.sampled_from([1.0, 1 / 60, 1 / 3600, 86400.0, 0.1]))
def test_grid_matches_naive_implementation_in_any_unit(count: int, samples_per_peak: int, unit: float) -> None:
    result = FrequencyGrid.from_spans(np.array([(count - 1) * unit]), np.array([unit]), samples_per_peak)
    expected = naive.list_frequencies(count - 1, 1.0, samples_per_peak)
    assert result.frequency_hz[0] * unit == pytest.approx(expected, rel=1e-12)


def test_each_signal_has_only_the_frequencies_of_its_span() -> None:
    grid = FrequencyGrid.from_spans(np.array([10.0, 20.0, 0.0]), np.array([1.0, 1.0, 0.0]))
    assert grid.counts.tolist() == [21, 46, 0]
    assert np.isfinite(grid.frequency_hz).sum(axis=1).tolist() == [21, 46, 0]


# ---- powers


def test_uneven_powers_equal_scipy() -> None:
    pairs = signals(np.random.default_rng(0), 400, 37, 120)
    samples = make_samples(*pairs)
    grid = make_grid(samples)
    result = uneven_powers(samples, grid)
    for row, (times, values) in enumerate(pairs):
        frequency = grid.frequency_hz[row, : grid.counts[row]]
        expected = lombscargle(times, values - values.mean(), 2 * np.pi * frequency) / values.var()
        assert np.abs(result[row, : grid.counts[row]] - expected).max() < 1e-8
        assert np.isnan(result[row, grid.counts[row] :]).all()


def test_uneven_powers_are_those_of_least_squares_fits() -> None:
    """Scargle (1982), appendix C: the power is the reduction of the sum of squares by a fit, over 2 variances."""
    samples = make_samples(*signals(np.random.default_rng(4), 90))
    grid = make_grid(samples)
    values = samples.bytes_per_s - samples.bytes_per_s.mean()
    expected = []
    for frequency in grid.frequency_hz[0]:
        angle = 2 * np.pi * frequency * samples.time_s
        waves = np.column_stack([np.cos(angle), np.sin(angle)])
        residual = values - waves @ np.linalg.lstsq(waves, values)[0]
        expected.append((values @ values - residual @ residual) / (2 * values.var()))
    np.testing.assert_allclose(uneven_powers(samples, grid)[0], expected, atol=1e-8)


@pytest.mark.parametrize("count", [30, 200])
def test_sinusoid_at_uneven_times_has_half_the_number_of_samples_as_power(count: int) -> None:
    # Each time has a partner half a period later, so that the mean is exactly 0 and the fit is exact.
    half_s = 10.0 / 7
    first = np.sort(np.random.default_rng(5).uniform(0, 95, count // 2 - 1))
    times = np.unique(np.concatenate([[0.0, 100.0], first, [half_s, 100.0 - half_s], first + half_s]))
    samples = make_samples((times, 3e8 * np.cos(2 * np.pi * times / (2 * half_s) + 0.4)))
    powers, grid = uneven_powers(samples, make_grid(samples))[0], make_grid(samples)
    assert grid.frequency_hz[0][5 * 35 - 5] == pytest.approx(0.35)
    assert powers[5 * 35 - 5] == pytest.approx(len(times) / 2, rel=1e-9)
    assert np.nanargmax(powers) == 5 * 35 - 5


@pytest.mark.parametrize("samples_per_peak", [1, 2, 5])
def test_uneven_powers_match_naive_implementation(samples_per_peak: int) -> None:
    samples = make_samples(*signals(np.random.default_rng(1), 40))
    grid = make_grid(samples, samples_per_peak)
    times, values = samples.time_s.tolist(), samples.bytes_per_s.tolist()
    expected = [naive.compute_power(times, values, f) for f in grid.frequency_hz[0].tolist()]
    assert np.abs(uneven_powers(samples, grid)[0] - expected).max() < 1e-9


@pytest.mark.parametrize("count", [20, 21, 64, 97])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_even_powers_match_naive_implementation_with_and_without_gaps(count: int, missing: float) -> None:
    random = np.random.default_rng(count)
    values = random.exponential(1e6, (1, count))
    values[random.random(values.shape) < missing] = np.nan
    known = np.flatnonzero(np.isfinite(values[0]))
    frequency = make_even_grid(count).frequency_hz[0].tolist()
    expected = [naive.compute_power(known.tolist(), values[0, known].tolist(), f) for f in frequency]
    assert np.abs(make_even(values)[0] - expected).max() < 1e-9


def test_even_and_uneven_transforms_agree_on_even_samples() -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=(3, 150))
    values[1, 3] = np.nan
    samples = UnevenSignals.from_signals(EvenSignals(values, np.full(3, 0.5), np.arange(3.0)))
    grid = FrequencyGrid.from_spans(np.full(3, 298.0), np.full(3, 2.0))
    assert np.abs(uneven_powers(samples, grid) - make_even(values)).max() < 1e-8


def test_sine_has_half_its_samples_as_power_and_a_constant_none() -> None:
    result = make_even(np.stack([np.sin(2 * np.pi * np.arange(401) / 8), np.full(401, 0.1)]))
    # 401 samples span 50 cycles of 8 samples, which is a frequency of the grid.
    assert result[0].max() == pytest.approx(200, rel=0.01)
    assert result[0].argmax() == 5 * 50 - 5
    assert (result[1] == 0).all()


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(-300, 300), st.floats(-5, 5), st.integers(0, 1000))
def test_power_is_independent_of_scale_level_and_start(exponent: int, level: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    times, values = np.sort(random.uniform(0, 100, 50)), random.normal(size=50)
    single, other = make_samples((times, values)), make_samples((times + 1000, (values + level) * 10.0**exponent))
    grid = make_grid(single)
    assert uneven_powers(other, grid) == pytest.approx(uneven_powers(single, grid), abs=1e-6)


def test_sums_have_the_documented_precision() -> None:
    random = np.random.default_rng(5)
    turns, values = random.uniform(-1, 2, 500), random.normal(size=500)
    for last in (3, 4, 1999, 2000):
        numbers = np.arange(3, last + 1)
        expected = np.exp(-2j * np.pi * numbers[:, None] * turns) @ values
        assert np.abs(compute_sums(turns, values, numbers) - expected).max() < 1e-11 * np.abs(values).sum()


def test_sums_of_several_sets_equal_separate_sums() -> None:
    random = np.random.default_rng(6)
    turns, sets, numbers = random.uniform(0, 1, 60), random.normal(size=(4, 60)), np.arange(1, 90)
    expected = np.stack([compute_sums(turns, values, numbers) for values in sets])
    assert compute_sums(turns, sets, numbers) == pytest.approx(expected, abs=1e-12)


# ---- noise


def test_powers_of_white_noise_have_mean_one() -> None:
    random = np.random.default_rng(7)
    result = make_even(random.normal(size=(300, 200)), 1)
    assert result.mean() == pytest.approx(1, abs=0.02)
    assert (result > 3).mean() == pytest.approx(np.exp(-3), rel=0.1)


def test_threshold_and_probability_are_inverse() -> None:
    counts = np.array([1, 100, 7206, 10**9])
    for confidence in (0.5, 0.9, 0.99, 1 - 1e-9):
        chance = compute_exponential_probability(compute_exponential_threshold(confidence, counts), counts)
        assert chance == pytest.approx(np.full(4, 1 - confidence), rel=1e-6)
    assert compute_exponential_threshold(0.9, [7206])[0] == pytest.approx(11.133043929223822, rel=1e-12)
    assert compute_exponential_probability(np.array([0.0, 800.0, np.nan]), 100)[:2].tolist() == [1.0, 0.0]


def test_probability_of_high_powers_does_not_underflow() -> None:
    assert compute_exponential_probability(np.array([100.0]), 1000)[0] == pytest.approx(1000 * np.exp(-100), rel=1e-9)


# ---- uneven samples


def test_unknown_samples_are_dropped_and_times_sorted() -> None:
    times = np.array([3.0, 1.0, np.nan, 2.0, 5.0, 4.0, 7.0])
    values = np.array([30.0, 10.0, 1.0, np.nan, 50.0, np.inf, 70.0])
    result = UnevenSignals.from_intervals(times, np.zeros(len(times)), Ragged(values, np.array([0, 4, 4, 6, 7])))
    assert result.time_s.tolist() == [1, 3, 5, 7]
    assert result.bytes_per_s.tolist() == [10, 30, 50, 70]
    assert result.counts.tolist() == [2, 0, 1, 1]
    assert result.span_s.tolist() == [2, 0, 0, 0]
    np.testing.assert_equal(result.start_s, [1, np.nan, 5, 7])
    np.testing.assert_equal(result.end_s, [3, np.nan, 5, 7])


def test_intervals_become_samples_at_their_middles() -> None:
    result = UnevenSignals.from_intervals(
        [30.0, 90.0, 95.0], [30.0, 60.0, np.nan], Ragged(np.ones(3), np.array([0, 3]))
    )
    assert result.time_s.tolist() == [15, 60]
    assert (result.start_s.tolist(), result.end_s.tolist()) == ([0], [90])


def test_selected_signals_keep_their_samples() -> None:
    samples = make_samples(*signals(np.random.default_rng(8), 5, 7, 3))
    result = samples.select(np.array([2, 0, 2]))
    assert result.counts.tolist() == [3, 5, 3]
    assert result.time_s[:3].tolist() == result.time_s[-3:].tolist() == samples.time_s[12:].tolist()


def test_step_is_the_median_except_for_clustered_samples() -> None:
    jitter = np.cumsum(np.array([10.0, 30.0, 30.0, 31.0, 29.0, 30.0, 300.0]))
    clusters = np.concatenate([np.arange(10) * 1e-6 + at for at in (0.0, 100.0)])
    result = estimate_steps_s(make_samples((jitter, np.ones(7)), (clusters, np.ones(20)), (np.ones(1), np.ones(1))))
    assert result.tolist() == pytest.approx([30, (100 + 9e-6) / 4 / 19, 0])


def test_empty_input_has_no_power() -> None:
    samples = make_samples((np.zeros(0), np.zeros(0)))
    assert uneven_powers(samples, make_grid(samples)).shape == (1, 0)
