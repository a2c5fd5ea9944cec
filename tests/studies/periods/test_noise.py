"""Noise has the requested moments, correlations and bursts, and is determined by the seed."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.periods import noise
from iosig.studies.periods.noise import BurstParams, LevelParams


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("is_skewed", [False, True])
def test_white_noise_has_its_mean_and_spread_and_no_memory(is_skewed: bool) -> None:
    rates = noise.draw_white(generator(), 200, 1000, LevelParams(5e8, 0.25, is_skewed))
    assert rates.shape == (200, 1000)
    assert rates.min() >= 0
    assert rates.mean() == pytest.approx(5e8, rel=0.01)
    assert rates.std() == pytest.approx(1.25e8, rel=0.02)
    centerd = rates - rates.mean()
    assert abs((centerd[:, 1:] * centerd[:, :-1]).mean() / centerd.var()) < 0.01


def test_normal_noise_is_never_negative() -> None:
    rates = noise.draw_white(generator(), 10, 1000, LevelParams(relative_spread=1.0))
    assert rates.min() == 0
    assert (rates == 0).mean() == pytest.approx(0.159, abs=0.02)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.99])
def test_red_noise_has_its_correlation_from_the_first_sample(correlation: float) -> None:
    rates = noise.draw_ar1(generator(), 4000, 200, correlation)
    assert rates[:, 0].std() == pytest.approx(2e8, rel=0.05)
    assert rates[:, -1].std() == pytest.approx(2e8, rel=0.05)
    assert np.corrcoef(rates[:, 0], rates[:, 1])[0, 1] == pytest.approx(correlation, abs=0.05)
    assert np.corrcoef(rates[:, 100], rates[:, 103])[0, 1] == pytest.approx(correlation**3, abs=0.05)


def test_each_signal_may_have_a_different_correlation() -> None:
    mixed = noise.draw_ar1(generator(3), 3, 500, np.array([0.9, -0.5, 0.9]))
    alone = noise.draw_ar1(generator(3), 3, 500, 0.9)
    np.testing.assert_array_equal(mixed[[0, 2]], alone[[0, 2]])
    with pytest.raises(ValueError, match="must lie in \\(-1, 1\\)"):
        noise.draw_ar1(generator(), 1, 10, 1.0)


def test_bursts_keep_their_bytes_except_beyond_the_end() -> None:
    rates = noise.draw_bursts(generator(), 50, 1000, BurstParams(count=30, duty=0.05), sampling_hz=10.0)
    volumes = rates.sum(axis=1) / 10
    assert volumes.max() <= 30 * 1e10 * (1 + 1e-12)
    assert volumes.mean() > 0.95 * 30 * 1e10
    # A burst lasts 0.05 x 100 s / 30, so it touches 2 or 3 samples of 0.1 s; overlapping bursts touch fewer.
    assert 50 * 30 <= np.count_nonzero(rates) <= 50 * 30 * 3


def test_burst_starts_are_poisson_or_separated_by_random_idle_time() -> None:
    shortest = {}
    for may_overlap in (True, False):
        params = BurstParams(count=100, duty=0.6, may_overlap=may_overlap, is_binned=False)
        rates = noise.draw_bursts(generator(), 100, 20_000, params)
        shortest[may_overlap] = (rates > 0).mean()
    assert shortest[True] == pytest.approx(1 - np.exp(-0.6), abs=0.02)
    assert shortest[False] == pytest.approx(0.6, abs=0.01)


def test_spreads_are_spreads_of_logarithms() -> None:
    params = BurstParams(count=1, duty=0.0, volume_log_spread=0.5)
    volumes = noise.draw_bursts(generator(), 4000, 100, params).sum(axis=1)
    assert np.log(volumes).std() == pytest.approx(0.5, rel=0.05)
    assert volumes.mean() == pytest.approx(1e10, rel=0.05)
    params = BurstParams(count=1, duty=0.05, duration_log_spread=0.5, is_binned=False)
    lengths = (noise.draw_bursts(generator(), 2000, 10_000, params) > 0).sum(axis=1)
    assert np.median(lengths) == pytest.approx(500 * np.exp(-0.125), rel=0.08)


def test_noise_is_determined_by_the_seed() -> None:
    for draw in (noise.draw_white, lambda g, n, s: noise.draw_ar1(g, n, s, 0.9), noise.draw_bursts):
        np.testing.assert_array_equal(draw(generator(7), 3, 100), draw(generator(7), 3, 100))
        assert not np.array_equal(draw(generator(7), 3, 100), draw(generator(8), 3, 100))


def test_zero_bursts_signals_or_samples_give_empty_noise() -> None:
    assert not noise.draw_bursts(generator(), 2, 10, BurstParams(count=0)).any()
    assert noise.draw_bursts(generator(), 0, 10).shape == (0, 10)
    assert noise.draw_white(generator(), 0, 10).shape == (0, 10)
    assert noise.draw_ar1(generator(), 2, 0, 0.5).shape == (2, 0)
