"""Spectra: known cosines, the naive implementation, reconstruction from all cosines, gaps and extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.periods.ftio_spectra import compute_moments, compute_spectra
from iosig.transforms.periods.interface.even_signals import EvenSignals
from tests.budget import examples
from tests.naive.periods import ftio_spectra as naive

SIGNALS = st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=2, max_size=40)


def transform(samples: object, hz: float = 1.0, started: float = 0.0) -> EvenSignals:
    return EvenSignals.from_samples(np.asarray(samples, dtype=float), hz, started)


def cosine(cycles: float, count: int, phase: float = 0.0) -> Reals:
    result: Reals = np.cos(2 * np.pi * cycles * np.arange(count) / count + phase)
    return result


def test_cosine_has_a_single_bin() -> None:
    result = compute_spectra(transform(7.0 + 3.0 * cosine(5, 100, 0.4), hz=10.0, started=2.0))
    assert (result.bin_count, result.frequencies_hz[0, 0]) == (50, 0.1)
    assert result.mean_bytes_per_s[0] == pytest.approx(7.0)
    assert result.shares[0, 4] == pytest.approx(1.0)
    assert result.power[0, 4] == pytest.approx(150.0**2 / 100)
    assert result.deviation_bytes_per_s[0] == pytest.approx(3.0 / np.sqrt(2))
    frequency, amplitude, phase = result.get_cosines(np.array([0]), np.array([5]))
    assert (frequency[0], amplitude[0], phase[0]) == (0.5, pytest.approx(3.0), pytest.approx(0.4))
    assert result.frequencies_hz[0, 4] == 0.5


def test_nyquist_frequency_counts_once() -> None:
    result = compute_spectra(transform(3.0 * cosine(50, 100)))
    assert result.get_cosines(np.array([0]), np.array([50]))[1][0] == pytest.approx(3.0)
    assert result.deviation_bytes_per_s[0] == pytest.approx(3.0)


@settings(max_examples=examples(60), deadline=None)
@given(SIGNALS)
def test_power_and_scores_match_naive_implementation(samples: list[float]) -> None:
    result = compute_spectra(transform(samples))
    most = max(map(abs, samples)) + 1e-300
    np.testing.assert_allclose(result.power[0], naive.compute_power(samples), rtol=1e-9, atol=1e-12 * most**2)
    mean, spread = compute_moments(result.power)
    scores = (result.power[0] - mean) / spread if spread[0] > 0 else np.zeros(len(result.power[0]))
    np.testing.assert_allclose(scores, naive.compute_z_scores(result.power[0].tolist()), rtol=1e-9, atol=1e-9)


def sum_of_cosines(samples: list[float], times: Reals) -> Reals:
    """The mean plus the cosines of all bins, at given instants."""
    result = compute_spectra(transform(samples))
    bins = np.arange(1, result.bin_count + 1)
    frequency, amplitude, phase = result.get_cosines(np.zeros_like(bins), bins)
    waves = amplitude * np.cos(2 * np.pi * frequency * times[:, None] + phase)
    total: Reals = result.mean_bytes_per_s[0] + waves.sum(axis=1)
    return total


@settings(max_examples=examples(60), deadline=None)
@given(SIGNALS, st.floats(0.0, 40.0))
def test_mean_and_all_cosines_reconstruct_the_signal(samples: list[float], between: float) -> None:
    slack = 1e-9 * (max(map(abs, samples)) + 1e-300)
    np.testing.assert_allclose(sum_of_cosines(samples, np.arange(len(samples))), samples, atol=slack)
    value = sum_of_cosines(samples, np.array([between]))[0]
    assert value == pytest.approx(naive.reconstruct(samples, between), abs=slack)


# ---- gaps and extremes


@pytest.mark.filterwarnings("error")
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.one_of(st.floats(0, 1e6).map(lambda value: round(value, 3)), st.just(np.nan)), min_size=2, max_size=30)
)
def test_unmeasured_samples_count_as_the_mean(samples: list[float]) -> None:
    result = compute_spectra(transform(samples))
    whole = naive.fill_gaps(samples)
    np.testing.assert_allclose(
        result.power[0], naive.compute_power(whole), rtol=1e-6, atol=1e-10 * (max(whole) + 1e-300) ** 2
    )
    assert result.missing_ratio[0] == pytest.approx(np.isnan(samples).mean())
    assert result.mean_bytes_per_s[0] == pytest.approx(np.mean(whole))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [2, 99, 100, 997, 1024])
def test_constants_have_no_spectrum(count: int) -> None:
    for value in (0.0, 0.1, 1 / 3, 1e9, -7.7, 123456.789, 1e300, 5e-324, 3e-310):
        result = compute_spectra(transform(np.full(count, value)))
        assert result.is_constant[0], value
        assert result.mean_bytes_per_s[0] == pytest.approx(value)


def test_small_variation_is_not_constant() -> None:
    assert not compute_spectra(transform(1e9 + 0.01 * cosine(3, 100))).is_constant[0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [2.0**1000, 2.0**600, 2.0**-600, 2.0**-1000, 1.7e307])
def test_results_are_independent_of_the_unit(scale: float) -> None:
    samples = 10.0 + 4.0 * cosine(5, 64, 0.7) + 3.0 * cosine(9, 64)
    plain, scaled = compute_spectra(transform(samples)), compute_spectra(transform(samples / 20 * scale))
    np.testing.assert_allclose(scaled.shares, plain.shares, atol=1e-14)
    amplitude = scaled.get_cosines(np.array([0, 0]), np.array([5, 9]))[1]
    np.testing.assert_allclose(amplitude / scale, [0.2, 0.15], rtol=1e-12)
    assert scaled.mean_bytes_per_s[0] / scale == pytest.approx(0.5)


@pytest.mark.filterwarnings("error")
def test_out_of_range_signal_does_not_affect_others() -> None:
    rows = np.random.default_rng(3).random((7, 50))
    plain = compute_spectra(EvenSignals(rows, np.ones(7), np.zeros(7))).power
    odd = rows.copy()
    odd[2, 5], odd[4], odd[6] = np.nan, np.inf, rows[6] * 1e250
    result = compute_spectra(EvenSignals(odd, np.ones(7), np.zeros(7)))
    np.testing.assert_array_equal(result.power[[0, 1, 3, 5]], plain[[0, 1, 3, 5]])
    assert np.isfinite(result.power).all()
    assert result.missing_ratio.tolist() == [0, 0, pytest.approx(0.02), 0, 1, 0, 0]


@pytest.mark.parametrize("shape", [(0, 0), (0, 9), (3, 0), (3, 1)])
def test_signals_of_one_sample_have_no_bins(shape: tuple[int, int]) -> None:
    count = shape[0]
    result = compute_spectra(EvenSignals(np.ones(shape), np.ones(count), np.zeros(count)))
    assert result.power.shape == (count, shape[1] // 2)


def test_equal_powers_have_no_deviation() -> None:
    powers = np.array([[0.1] * 30, [1.0] * 29 + [1.0 + 1e-14], [0.0] * 30, [1.0] * 29 + [1.001]])
    mean, spread = compute_moments(powers)
    assert not spread[:3].any()
    assert (powers[3, 29] - mean[3]) / spread[3] == pytest.approx(np.sqrt(29))
