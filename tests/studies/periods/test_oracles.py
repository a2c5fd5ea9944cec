"""Oracles: the linear fit reaches the Cramer-Rao bound, and the matched filter keeps its significance level."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.periods import oracles
from iosig.studies.periods.rhythms import Rhythm


def test_line_through_bursts_reaches_the_cramer_rao_bound() -> None:
    rng = np.random.default_rng(1)
    starts = 40.0 * np.arange(15) + 6.0 * rng.standard_normal((4000, 15))
    found = oracles.fit_burst_times(starts)
    assert np.std(found) == pytest.approx(np.sqrt(12 * 36 / (15 * (15**2 - 1))), rel=0.05)
    assert np.mean(found) == pytest.approx(40, abs=0.05)


def test_matched_filter_finds_its_shape_and_keeps_its_level() -> None:
    rng = np.random.default_rng(2)
    rhythm = Rhythm("power", "8 cycles", 8, noise_ratio=1.0, shortest=60.0, longest=61.0)
    rates, period = rhythm.draw(rng, 60)
    found, claims = oracles.match_burst_shape(rhythm, rates, rng)
    assert (np.abs(found / period - 1) < 0.03).mean() > 0.9
    alone, scattered = (claims[name] for name in oracles.NULLS)
    assert alone.mean() > 0.9
    # Bursts at random times are a closer null hypothesis than no bursts.
    assert alone.sum() >= scattered.sum() > 0
    silent = rhythm.render(rng, np.full((300, 1), 1e5), period[0])
    _, noise = oracles.match_burst_shape(rhythm, silent, rng)
    assert noise[oracles.NULLS[0]].mean() < 0.05


def test_matched_filter_applies_only_to_noise() -> None:
    assert oracles.is_noise_only(Rhythm("power", "noise", 6, noise_ratio=1.0))
    assert not oracles.is_noise_only(Rhythm("power", "jitter", 6, noise_ratio=1.0, jitter_ratio=0.1))
    assert not oracles.is_noise_only(Rhythm("power", "clean", 6, noise_ratio=0.3))
