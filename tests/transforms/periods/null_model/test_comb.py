"""Combs: a flat noise floor after prewhitening, conservative p-values, and frequencies between bins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import fdtrc

from iosig.studies.periods import noise
from iosig.studies.periods.noise import LevelParams
from iosig.transforms.periods.null_model.comb import (
    Combs,
    WhitenedSignals,
    choose_fft_sizes,
    compute_log_tail,
    compute_power,
    estimate_effective_counts,
    find_best_combs,
    normalize_by_noise_floor,
    prewhiten,
)
from iosig.transforms.periods.null_model.fundamental import refine_fundamental
from tests.transforms.white_signals import centerd, generator


def find_combs(signals: WhitenedSignals) -> Combs:
    return find_best_combs(signals, normalize_by_noise_floor(compute_power(signals.values, signals.size)))


def test_fft_sizes_are_powers_of_two_times_8_to_15() -> None:
    sizes = choose_fft_sizes(np.array([0, 1, 16, 17, 1000, 4095, 4096, 4097, 10**7]))
    assert sizes.tolist() == [16, 16, 16, 18, 1024, 4096, 4096, 4608, 10485760]


def test_prewhitening_whitens_red_noise() -> None:
    for correlation in (0.0, 0.9):
        result = prewhiten(noise.draw_ar1(generator(), 50, 4000, correlation) / 1e9)
        neighbors = (result[:, 1:] * result[:, :-1]).sum() / (result**2).sum()
        assert abs(neighbors) < 0.01


def test_unmeasured_sample_and_its_successor_are_zero() -> None:
    known = np.array([[True, True, False, True, True]])
    result = prewhiten(np.array([[1.0, 2, 0, 4, 1]]), known)
    assert result[0, 2] == result[0, 3] == 0
    assert result[0, 1] != 0


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_power_over_the_noise_floor_averages_one(correlation: float) -> None:
    rates = noise.draw_ar1(generator(), 300, 2048, correlation) / 1e9
    ratios = normalize_by_noise_floor(compute_power(centerd(rates).values, 2048))
    assert not ratios[0].any()
    means = ratios[1:].reshape(32, 32, 300).mean(axis=(1, 2))
    assert 0.8 < means.min() <= means.max() < 1.1


@pytest.mark.parametrize(("name", "is_skewed", "correlation"), [("white", False, 0.0), ("red", True, 0.8)])
def test_p_values_of_noise_are_conservative(name: str, is_skewed: bool, correlation: float) -> None:
    rates = noise.draw_ar1(generator(3), 1500, 600, correlation, LevelParams(1.0, 0.5, is_skewed))
    result = find_combs(centerd(rates))
    for level in (0.01, 0.05):
        assert (result.log_p < np.log(level)).mean() <= level, name


@pytest.mark.parametrize("period", [7.3, 20.0, 41.7])
def test_sine_in_noise_is_a_line_at_its_frequency(period: float) -> None:
    place = np.arange(2000)
    rates = 5 + np.sin(2 * np.pi * place / period) + generator().standard_normal((3, 2000))
    signals = centerd(rates)
    result = find_combs(signals)
    assert (result.log_p < np.log(1e-20)).all()
    frequency = refine_fundamental(signals, result)
    np.testing.assert_allclose(1 / frequency, period, rtol=0.1 * period / 2000)


@pytest.mark.parametrize("length", [1900, 2048, 3000])
def test_comb_of_narrow_phases_has_their_fundamental(length: int) -> None:
    place = np.arange(length)
    rates = (place % 53 < 4) + 0.3 * generator().standard_normal((4, length))
    signals = centerd(rates)
    result = find_combs(signals)
    assert (result.log_p < np.log(1e-20)).all()
    np.testing.assert_allclose(1 / refine_fundamental(signals, result), 53, rtol=2e-3)


def test_missing_samples_do_not_hide_the_line() -> None:
    place = np.arange(2000)
    rates = 5 + np.sin(2 * np.pi * place / 41.7) + 0.5 * generator().standard_normal((2, 2000))
    signals = centerd(rates, generator().random((2, 2000)) > 0.2)
    result = find_combs(signals)
    assert (result.log_p < np.log(1e-10)).all()
    np.testing.assert_allclose(1 / refine_fundamental(signals, result), 41.7, rtol=5e-3)


def test_long_phases_and_constants_are_not_tested() -> None:
    rates = 5 + np.sin(2 * np.pi * np.arange(1000) / 100)[None]
    signals = centerd(rates)
    long = WhitenedSignals(signals.values, signals.lengths, np.array([50.0]), signals.effective_counts)
    assert find_combs(long).log_p[0] == 0
    constant = centerd(np.full((1, 1000), 0.1))
    none = WhitenedSignals(constant.values, constant.lengths, np.zeros(1), np.zeros(1))
    assert find_combs(none).log_p[0] == 0


@pytest.mark.parametrize("harmonic_count", [1, 2, 4, 8])
def test_tail_of_a_sum_of_lines_is_an_f_distribution(harmonic_count: int) -> None:
    total, level = (grid.ravel() for grid in np.meshgrid(np.geomspace(0.1, 300, 60), [0.7, 5.0, 30.3, 72.0]))
    expected = fdtrc(2 * harmonic_count, 2 * level, total / harmonic_count)
    is_representable = expected > 1e-290
    np.testing.assert_allclose(
        compute_log_tail(harmonic_count, level, total)[is_representable], np.log(expected[is_representable]), atol=1e-11
    )


def test_frequency_is_reported_below_the_limit_only() -> None:
    signals = centerd(5 + np.sin(2 * np.pi * np.arange(1000) / 20)[None] + generator().standard_normal((2, 1000)))
    ratios = normalize_by_noise_floor(compute_power(signals.values, signals.size))
    plain, none = find_best_combs(signals, ratios.copy()), find_best_combs(signals, ratios, -1e9)
    np.testing.assert_array_equal(plain.log_p, none.log_p)
    assert np.isfinite(plain.cycles_per_sample).all()
    assert np.isnan(none.cycles_per_sample).all()


def test_effective_counts_follow_the_kurtosis() -> None:
    rng = generator()
    normal, sparse = rng.standard_normal((1, 4000)), np.where(rng.random((1, 4000)) < 0.02, 1.0, 0.0)
    lengths, few = np.array([4000]), np.array([5.0])
    assert estimate_effective_counts(normal, lengths, few)[0] > 1000
    # k high samples among zeros have the inverse of their share as fourth moment
    assert estimate_effective_counts(sparse, lengths, few)[0] == pytest.approx(sparse.sum(), rel=0.1)
    assert estimate_effective_counts(sparse, lengths, np.array([500.0]))[0] == 500
