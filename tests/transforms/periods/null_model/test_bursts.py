"""Bursts: their width from phases or from the folded profile, and their samples."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.bursts import find_bursts
from tests.budget import examples
from tests.naive.periods.null_model import bursts as naive


def square(count: int, period: float, width_samples: float) -> np.ndarray:
    result: np.ndarray = (np.arange(count) % period < width_samples) * 1e9
    return result


def signals(*rates: np.ndarray) -> EvenSignals:
    return EvenSignals(np.stack(rates), np.ones(len(rates)), np.zeros(len(rates)))


def test_width_equals_the_burst_length() -> None:
    widths = (1, 3, 7, 15)
    result = find_bursts(signals(*(square(600, 30, width_samples) for width_samples in widths)), np.full(4, 1 / 30))
    np.testing.assert_array_equal(result.width_samples, widths)
    for is_burst, width_samples in zip(result.is_burst, widths, strict=True):
        assert is_burst[square(600, 30, width_samples) > 0].all()
        # A partial cycle at each end, and another by rounding.
        assert is_burst.mean() <= (width_samples + 3) / 30


def test_split_bursts_are_merged_and_drift_does_not_widen_them() -> None:
    pieces = square(900, 45, 2) + square(900, 45, 8) - square(900, 45, 4)
    drifting = np.zeros(900)
    for start in np.cumsum(45 + 6 * np.random.default_rng(0).standard_normal(16)).astype(int):
        drifting[start : start + 6] = 1.0
    result = find_bursts(signals(pieces, drifting), np.full(2, 1 / 45))
    np.testing.assert_array_equal(result.width_samples, [8, 6])
    assert result.is_burst[1][drifting > 0].all()


def test_noise_and_other_bursts_do_not_widen_bursts() -> None:
    drawn = np.random.default_rng(1)
    noisy = np.maximum(square(6000, 60, 9) + 1e9 * (drawn.standard_normal(6000) + 3), 0)
    other = square(6000, 60, 9) + square(6000, 7, 2)
    result = find_bursts(signals(noisy, other), np.full(2, 1 / 60))
    np.testing.assert_allclose(result.width_samples, 9, atol=2)
    # Most bursts of the other rhythm remain.
    assert (other > 0)[~result.is_burst[1]].mean() == pytest.approx(2 / 7, abs=0.05)


def test_spikes_on_a_noisy_background_have_their_width() -> None:
    drawn = np.random.default_rng(3)
    background = 1e8 * (1 + drawn.standard_normal(6000).cumsum() % 4)
    result = find_bursts(signals(background + 10 * square(6000, 70, 1)), np.array([1 / 70]))
    np.testing.assert_array_equal(result.width_samples, 1)


def test_unmeasured_samples_and_silence_are_no_bursts() -> None:
    rates = square(600, 30, 5)
    rates[100:200] = np.nan
    short = np.concatenate([square(300, 30, 5), np.full(300, np.nan)])
    result = find_bursts(signals(rates, short, np.zeros(600)), np.full(3, 1 / 30))
    np.testing.assert_array_equal(result.width_samples[:2], 5)
    assert not result.is_burst[0, 100:200].any()
    assert not result.is_burst[1, 300:].any()
    assert not result.is_burst[2].any()


def test_burst_widths_are_independent_of_the_batch() -> None:
    """Longer signals in the batch must not change the parts used to compare phases."""
    drawn, period = np.random.default_rng(5), 30.0
    places = np.arange(700)
    wandering = [
        1e9 * ((places + drift) % period < 6) + 4e8 * drawn.random(700)
        for drift in np.linspace(0.05, 0.5, 200)[:, None] * drawn.standard_normal((200, 700)).cumsum(axis=1)
    ]
    padded = [np.concatenate([rates, np.full(240, np.nan)]) for rates in wandering]
    together = find_bursts(signals(*padded), np.full(200, 1 / period))
    for place, rates in enumerate(wandering):
        alone = find_bursts(signals(rates), np.array([1 / period]))
        assert together.width_samples[place] == pytest.approx(alone.width_samples[0], rel=1e-9)
        np.testing.assert_array_equal(together.is_burst[place, :700], alone.is_burst[0])


def test_burst_widths_match_naive_implementation() -> None:
    generator, plain, folded = np.random.default_rng(2), 0, 0
    for _ in range(examples(96)):
        period, count = float(generator.uniform(8, 90)), int(generator.integers(400, 900))
        rates = square(count, period, period * float(generator.uniform(0.1, 0.5)))
        rates += 1e9 * float(generator.uniform(0, 1.5)) * generator.random(count)
        result = find_bursts(signals(rates), np.array([1 / period])).width_samples[0]
        by_phases, by_profile = naive.measure_phase_width(rates, period), naive.measure_profile_width(rates, period)
        assert min(abs(result - by_phases), abs(result - by_profile)) < 1e-6
        plain, folded = plain + (abs(result - by_phases) < 1e-6), folded + (abs(result - by_profile) < 1e-6)
    assert plain
    assert folded
