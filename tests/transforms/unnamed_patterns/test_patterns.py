"""Patterns: a train and its period, bursts that come together as one, and what comes as it likes."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.arrays import Reals
from transforms.unnamed_patterns.patterns import find

STEP_S = 10.0
COUNT = 30_000


def traffic(seed: int = 7) -> Reals:
    rng = np.random.default_rng(seed)
    left = rng.lognormal(0.0, 0.4, COUNT)
    for at, volume, width in zip(
        rng.integers(0, COUNT - 200, 150), rng.lognormal(6.0, 1.2, 150), rng.integers(2, 40, 150), strict=True
    ):
        left[at : at + width] += volume / width
    return left


def put(left: Reals, at: Reals, volume: float, width: int) -> None:
    for start in at.astype(int):
        left[start : start + width] += volume / width


def test_a_train_has_a_period() -> None:
    left = traffic()
    put(left, np.arange(90, COUNT - 100, 180), 3000.0, 6)
    (found,) = find(left, STEP_S)
    assert found.is_train
    assert found.period == pytest.approx(180, rel=1e-3)
    assert found.period_chance < 1e-6
    assert len(found.started) > 0.8 * (COUNT / 180)
    assert np.median(found.volume_bytes) == pytest.approx(3000, rel=0.02)
    assert found.signature_bytes == pytest.approx(np.full(6, 500.0), rel=0.02)


def test_bursts_that_come_together_are_one_pattern() -> None:
    left = traffic()
    at = np.sort(np.random.default_rng(8).choice(np.arange(100, COUNT - 400, 300), 20, replace=False))
    put(left, at, 9000.0, 8)
    put(left, at + 40, 20000.0, 12)
    (found,) = find(left, STEP_S)
    assert (found.burst_count, found.is_train) == (2, False)
    assert 12 <= len(found.started) <= 20
    assert np.isin(np.rint(found.started), np.concatenate([at, at + 40])).mean() > 0.9
    assert len(found.signature_bytes) == 52
    assert np.median(found.volume_bytes) == pytest.approx(29000, rel=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_chance_is_no_pattern(seed: int) -> None:
    assert find(traffic(seed), STEP_S) == []


@pytest.mark.parametrize("left", [np.zeros(0), np.zeros(100), np.full(100, np.nan)])
def test_nothing_has_none(left: Reals) -> None:
    assert find(left, STEP_S) == []
