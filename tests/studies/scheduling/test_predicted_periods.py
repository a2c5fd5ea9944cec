"""Periods of jobs that the product's predictor finds in their requests."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.scheduling.simulation import PredictedPeriods
from iosig.transforms.predictions.predictor import OnlineParams

DFT = OnlineParams(method="dft")


def follow(
    period_s: float, count: int, params: OnlineParams | None = None, jitter: float = 0.0
) -> tuple[PredictedPeriods, float]:
    """Return a source that received the requests of `count` phases of job 0, and the start of the next phase."""
    source, generator, now_s = PredictedPeriods(params), np.random.default_rng(3), 0.9 * period_s
    for _ in range(count):
        source.record_phase(0, now_s, now_s + period_s / 16, 1e9)
        now_s += period_s * (1 + jitter * generator.uniform(-1, 1))
    return source, now_s


@pytest.mark.parametrize("params", [None, DFT], ids=["default", "dft"])
@pytest.mark.parametrize("period_s", [19.2, 384.0])
def test_periods_of_figure_17_are_predicted(period_s: float, params: OnlineParams | None) -> None:
    source, now_s = follow(period_s, 8, params, jitter=0.05)
    assert source.period_s(0, now_s) == pytest.approx(period_s, rel=0.1)


def test_period_is_unknown_without_requests() -> None:
    source, now_s = follow(100.0, 6)
    assert source.period_s(1, now_s) is None
    assert follow(100.0, 1)[0].period_s(0, 200.0) is None


def test_most_recent_period_is_kept_while_none_is_found() -> None:
    source, now_s = follow(100.0, 8)
    period_s = source.period_s(0, now_s)
    # continuous I/O has no period
    for _ in range(8):
        source.record_phase(0, now_s, now_s + 1.0, 1e9)
        now_s += 1.0
    assert period_s is not None
    assert source.period_s(0, now_s) is not None


def test_doubled_period_is_followed() -> None:
    source, now_s = follow(50.0, 10)
    for _ in range(10):
        source.record_phase(0, now_s, now_s + 3.0, 1e9)
        now_s += 100.0
    assert source.period_s(0, now_s) == pytest.approx(100.0, rel=0.05)
