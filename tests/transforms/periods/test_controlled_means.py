"""Means show phases that noise hides, and make none of what has no memory."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from iosig.transforms.periods import controlled_means
from iosig.transforms.periods.controlled import detect
from iosig.transforms.periods.controlled_pieces import Signals
from iosig.transforms.periods.even_signals import EvenSignals

NAN = float("nan")


def signals(rates: np.ndarray) -> EvenSignals:
    return EvenSignals(rates, np.ones(len(rates)), np.zeros(len(rates)))


def noisy(count: int, cycles: int, noise: float, seed: int = 1) -> np.ndarray:
    """Return bursts of 15 samples each 90, and noise."""
    place = np.arange(90 * cycles)
    drawn = np.random.default_rng(seed).standard_normal((count, len(place)))
    return np.maximum((place % 90 >= 40) * (place % 90 < 55) + noise * (drawn + 3), 0)


def judged(rates: np.ndarray) -> controlled_means.MeansFindings:
    found = Signals.of(signals(rates))
    return controlled_means.judged(found, found.spans, float(np.log(0.01)))


@pytest.mark.parametrize(("cycles", "noise", "share"), [(6, 0.5, 0.9), (8, 0.5, 0.9), (8, 1.0, 0.5)])
def test_few_cycles_in_noise_are_found(cycles: int, noise: float, share: float) -> None:
    found = detect(signals(noisy(40, cycles, noise)))
    assert found.is_periodic.mean() >= share
    error = np.abs(found.period_s[found.is_periodic] / 90 - 1)
    assert (error < 0.05).mean() > 0.9


def test_the_window_is_that_of_the_bursts() -> None:
    found = detect(signals(noisy(40, 6, 0.5)))
    assert np.nanmedian(found.window_start_s[found.is_periodic]) == pytest.approx(40, abs=4)
    assert np.nanmedian(found.window_end_s[found.is_periodic]) == pytest.approx(5 * 90 + 55, abs=4)


def test_running_means_are_of_so_many_steps() -> None:
    rates = np.array([[1.0, 3.0, 2.0, 6.0, 5.0, 7.0, 0.0, 2.0]])
    found = controlled_means.in_steps(Signals.of(signals(rates)), 1)
    np.testing.assert_allclose(found.rates[0, :5] * 7, [3, 4, 5, 4.5, 3.5], rtol=1e-6)
    coarse = controlled_means.in_steps(Signals.of(signals(np.ones((1, 20)))), 2)
    np.testing.assert_allclose(coarse.rates[0, :7], 1.0)


def test_it_makes_no_difference_how_many_phases_are_judged_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = np.concatenate([noisy(12, 6, noise) for noise in (0.1, 0.5, 2.0)])
    rates[::5, 100:230] = NAN
    rates[1::7, 300:] = 0.0
    together = judged(rates)
    monkeypatch.setattr(controlled_means, "_PHASES_AT_A_TIME", 1)
    apart = judged(rates)
    assert len(set(together.size.tolist())) > 2
    for column in fields(together):
        np.testing.assert_array_equal(getattr(apart, column.name), getattr(together, column.name))


def test_silence_makes_nothing() -> None:
    found = judged(np.zeros((3, 400)))
    assert (found.log_probability == 0).all()
    assert (found.size == 0).all()


@pytest.mark.parametrize("kind", ["white", "bursts"])
def test_noise_is_rarely_taken_for_a_rhythm(kind: str) -> None:
    rng = np.random.default_rng(3)
    rates = rng.exponential(1.0, (600, 500))
    if kind == "bursts":
        rates = np.repeat((rng.random((600, 125)) < 0.15).astype(float), 4, axis=1)
    assert (judged(rates).log_probability <= np.log(0.01)).mean() <= 0.01
