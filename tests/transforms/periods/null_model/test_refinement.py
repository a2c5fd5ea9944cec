"""Refinement: the sharpest profile, a valid standard error, and the unrefined claim where the phase drifts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.detection import detect
from iosig.transforms.periods.null_model.extent import Extents
from iosig.transforms.periods.null_model.intervals import ScaledSignals
from iosig.transforms.periods.null_model.refinement import RefinedPeriods, refine_periods


def refine_claim(rates: np.ndarray, frequency: float, regularity: float = 0.9) -> RefinedPeriods:
    """Refine a claim on whole signals."""
    count = len(rates)
    signals = ScaledSignals.from_signals(EvenSignals(rates, np.ones(count), np.zeros(count)))
    full = np.ones(count)
    cycles = rates.shape[1] * frequency
    extent = Extents(0 * full, rates.shape[1] * full, full / frequency, regularity * full, cycles * full)
    return refine_periods(signals, np.arange(count), full * frequency, extent)


def pulses(period: float, samples: int, width: float = 5.0) -> np.ndarray:
    return ((np.arange(samples) + 3.0) % period < width).astype(float)


@pytest.mark.parametrize("off", [0.92, 1.0, 1.1])
@pytest.mark.parametrize("period", [23.7, 61.3])
def test_inaccurate_claim_is_refined(period: float, off: float) -> None:
    result = refine_claim(pulses(period, 1500)[None], off / period)
    assert 1 / result.frequency[0] == pytest.approx(period, rel=2e-3)
    assert result.period_error[0] < 0.005 * period


def test_standard_error_matches_the_deviation() -> None:
    rng = np.random.default_rng(4)
    rates = np.maximum(pulses(41.3, 1200, 12.0) + 0.6 * (rng.standard_normal((300, 1200)) + 3), 0)
    result = refine_claim(rates, 1 / 41.0)
    off = 1 / result.frequency - 41.3
    assert 0.6 < np.std(off) / np.median(result.period_error) < 1.6


def test_drifting_phase_keeps_the_mean_interval() -> None:
    rng = np.random.default_rng(4)
    starts = np.cumsum(40 * (1 + 0.25 * rng.standard_normal((20, 60))), axis=1).astype(int)
    rates = np.zeros((20, 2600))
    for move in range(5):
        np.put_along_axis(rates, np.clip(starts + move, 0, 2599), 1.0, axis=1)
    result = refine_claim(rates, 1 / 40)
    assert (result.frequency == 1 / 40).mean() > 0.8
    # Standard error of a mean of 65 intervals, with 64 degrees of freedom.
    expected = 4 / np.sqrt(64) * t.ppf(0.8413, 64)
    np.testing.assert_allclose(result.period_error[result.frequency == 1 / 40], expected, rtol=1e-6)


def bursts(starts: np.ndarray, heights: np.ndarray, samples: int) -> np.ndarray:
    """Bursts of eight samples at given starts (n, bursts), in signals of a given length."""
    rates = np.zeros((len(starts), samples))
    for move in range(8):
        np.put_along_axis(rates, np.clip(starts.astype(int) + move, 0, samples - 1), heights, axis=1)
    return rates


def test_bursts_with_jitter_are_refined_by_the_first_harmonic() -> None:
    rng = np.random.default_rng(5)
    starts = 30 + 60 * (np.arange(15) + 0.15 * rng.standard_normal((200, 15)))
    result = refine_claim(bursts(starts, np.ones((200, 15)), 920), 1 / 61)
    off = np.abs(1 / result.frequency / 60 - 1)
    # An estimator that knows all burst times is as close in 99.9 % of cases.
    assert (off <= 0.03).mean() >= 0.97
    assert (off / (result.period_error / 60) < 3).mean() > 0.7


@pytest.mark.parametrize("count", [6, 10, 30, 90])
@pytest.mark.parametrize("jitter", [0.02, 0.1])
def test_standard_error_covers_jitter(count: int, jitter: float) -> None:
    rng = np.random.default_rng(8)
    starts = 30 + 60 * (np.arange(count) + jitter * rng.standard_normal((300, count)))
    result = refine_claim(bursts(starts, np.ones((300, count)), 60 * count + 20), 1 / 60)
    off = np.abs(1 / result.frequency - 60) / result.period_error
    assert 0.6 < (off <= 1).mean() < 0.85
    assert (off <= 2).mean() > 0.85


@pytest.mark.parametrize("times", [3, 4])
def test_claim_on_every_third_or_fourth_burst_is_refined_to_all_bursts(times: int) -> None:
    rng = np.random.default_rng(6)
    starts = np.tile(20 + 50 * np.arange(18), (60, 1))
    rates = bursts(starts, np.exp(0.7 * rng.standard_normal((60, 18))), 920)
    result = refine_claim(rates, 1 / (50.0 * times * 1.04), 0.7)
    assert (np.abs(1 / result.frequency / 50 - 1) < 0.01).mean() > 0.9
    # A regular claim is not examined further.
    sure = refine_claim(rates, 1 / (50.0 * times), 0.95)
    assert (np.abs(50.0 * times * sure.frequency - 1) < 0.15).all()


def test_rhythm_within_drifting_phases_is_not_the_period() -> None:
    rng = np.random.default_rng(7)
    starts = np.cumsum(80 * (1 + 0.2 * rng.standard_normal((40, 12))), axis=1)
    inner = (starts[:, :, None] + 16 * np.arange(3)).reshape(40, -1)
    result = refine_claim(bursts(np.clip(inner, 0, 1190), np.ones(inner.shape), 1200), 1 / 80, 0.8)
    assert (1 / result.frequency > 60).mean() > 0.9


def test_single_large_burst_does_not_shift_the_period() -> None:
    rates = pulses(50.0, 1000)
    rates[407:411] = 50.0
    assert 1 / refine_claim(rates[None], 1 / 49).frequency[0] == pytest.approx(50, rel=5e-3)


# ---- effect on detections


def test_measurement_gaps_do_not_create_a_period() -> None:
    rng = np.random.default_rng(1)
    rates = (rng.random((60, 4000)) < 0.2).astype(float)
    rates[:, np.arange(4000) % 160 < 64] = np.nan
    result = detect(EvenSignals(rates, np.ones(60), np.zeros(60)))
    assert result.is_periodic.mean() <= 0.02


def test_measurement_gaps_do_not_hide_a_period() -> None:
    rates = np.tile(pulses(50.0, 1500), (3, 1))
    rates[0, 400:500] = np.nan
    rates[1, np.arange(1500) % 7 == 0] = np.nan
    rates[2, np.random.default_rng(1).random(1500) < 0.4] = np.nan
    result = detect(EvenSignals(rates, np.ones(3), np.zeros(3)))
    np.testing.assert_allclose(result.period_s, 50, rtol=0.01)


def test_ticks_of_negligible_volume_are_no_period() -> None:
    rng = np.random.default_rng(1)
    rates = np.zeros((2, 2000))
    rates[:, rng.integers(0, 2000, 5)] = 1e9
    rates[0, ::40] += 1.0
    rates[1, ::40] += 1e8
    result = detect(EvenSignals(rates, np.ones(2), np.zeros(2)))
    assert result.outcome.tolist() == ["aperiodic", "periodic"]
    assert result.period_s[1] == pytest.approx(40, rel=1e-3)


def test_volume_ratio_covers_the_window() -> None:
    rates = np.concatenate([pulses(40.0, 800), np.zeros(400), np.full(20, 5.0)])
    result = detect(EvenSignals.from_samples(rates, 1.0))
    inside = rates[int(result.window_start_s[0]) : int(result.window_end_s[0])].sum() / rates.sum()
    assert result.details_or_nan.window_bytes_ratio[0] == pytest.approx(inside, abs=1e-3)
    assert 0.4 < inside < 0.6
