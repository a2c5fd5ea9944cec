"""Running means find phases that noise hides, and are rarely significant on memoryless signals."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import smoothed
from iosig.transforms.periods.null_model.detection import detect
from iosig.transforms.periods.null_model.intervals import ScaledSignals

NAN = float("nan")


def signals(rates: np.ndarray) -> EvenSignals:
    return EvenSignals(rates, np.ones(len(rates)), np.zeros(len(rates)))


def make_noisy_bursts(count: int, cycles: int, noise: float, seed: int = 1) -> np.ndarray:
    """Return bursts of 15 samples every 90, and noise."""
    place = np.arange(90 * cycles)
    drawn = np.random.default_rng(seed).standard_normal((count, len(place)))
    return np.maximum((place % 90 >= 40) * (place % 90 < 55) + noise * (drawn + 3), 0)


def assess(rates: np.ndarray) -> smoothed.SmoothedFindings:
    result = ScaledSignals.from_signals(signals(rates))
    return smoothed.assess_running_means(result, result.spans, float(np.log(0.01)))


@pytest.mark.parametrize(("cycles", "noise", "share"), [(6, 0.5, 0.9), (8, 0.5, 0.9), (8, 1.0, 0.5)])
def test_few_cycles_in_noise_are_found(cycles: int, noise: float, share: float) -> None:
    result = detect(signals(make_noisy_bursts(40, cycles, noise)))
    assert result.is_periodic.mean() >= share
    error = np.abs(result.period_s[result.is_periodic] / 90 - 1)
    assert (error < 0.05).mean() > 0.9


def test_window_covers_the_bursts() -> None:
    result = detect(signals(make_noisy_bursts(40, 6, 0.5)))
    assert np.nanmedian(result.window_start_s[result.is_periodic]) == pytest.approx(40, abs=4)
    assert np.nanmedian(result.window_end_s[result.is_periodic]) == pytest.approx(5 * 90 + 55, abs=4)


def test_running_means_cover_the_window() -> None:
    rates = np.array([[1.0, 3.0, 2.0, 6.0, 5.0, 7.0, 0.0, 2.0]])
    result = smoothed.smooth(ScaledSignals.from_signals(signals(rates)), 1)
    np.testing.assert_allclose(result.rates[0, :5] * 7, [3, 4, 5, 4.5, 3.5], rtol=1e-6)
    coarse = smoothed.smooth(ScaledSignals.from_signals(signals(np.ones((1, 20)))), 2)
    np.testing.assert_allclose(coarse.rates[0, :7], 1.0)


def test_batch_size_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = np.concatenate([make_noisy_bursts(12, 6, noise) for noise in (0.1, 0.5, 2.0)])
    rates[::5, 100:230] = NAN
    rates[1::7, 300:] = 0.0
    together = assess(rates)
    monkeypatch.setattr(smoothed, "_BATCH_PHASES", 1)
    apart = assess(rates)
    assert len(set(together.step_samples.tolist())) > 2
    for column in fields(together):
        np.testing.assert_array_equal(getattr(apart, column.name), getattr(together, column.name))


def test_silence_has_no_result() -> None:
    result = assess(np.zeros((3, 400)))
    assert (result.log_p == 0).all()
    assert (result.step_samples == 0).all()


@pytest.mark.parametrize("kind", ["white", "bursts"])
def test_noise_is_rarely_significant(kind: str) -> None:
    rng = np.random.default_rng(3)
    rates = rng.exponential(1.0, (600, 500))
    if kind == "bursts":
        rates = np.repeat((rng.random((600, 125)) < 0.15).astype(float), 4, axis=1)
    assert (assess(rates).log_p <= np.log(0.01)).mean() <= 0.01
