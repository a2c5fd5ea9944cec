"""Forecast: known jobs, unknown traffic, capacity, collisions, and coverage of the range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.forecasting import ForecastParams, forecast, limit_to_capacity
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from tests.transforms.forecast.test_upcoming_jobs import EXACT, JOBS

#: bursts of 100 s at the start, at 200 s and at 400 s
BURSTS = Demands.from_list([Demand(np.array([8.0, 0.0, 8.0, 0.0, 8.0]), 100.0)])
CONSTANT = TrafficHistory(np.full(100, 2.0), np.zeros((100, 6)), 100.0, 0.0)
EXACT_PARAMS = ForecastParams(jobs=EXACT, draw_count=20)
APPLICATIONS = np.array([0, 1])
NO_JOBS = JOBS.without_jobs()


def test_known_jobs_are_forecast_at_their_times() -> None:
    # the running job is at 100 s of its signature, the waiting one starts after a minute
    result = forecast(BURSTS, JOBS, APPLICATIONS, CONSTANT, (2.0, 0.0), params=EXACT_PARAMS)
    first, second = result.applications_bytes_per_s
    assert first == pytest.approx([0.0, 8.0, 0.0, 8.0, 0.0, 0.0])
    assert second == pytest.approx([3.2, 4.8, 3.2, 4.8, 3.2, 4.8])
    assert result.unknown_bytes_per_s == pytest.approx(2.0)
    for line in (result.expected_bytes_per_s, result.low_bytes_per_s, result.high_bytes_per_s):
        assert line == pytest.approx(2.0 + first + second)


def test_overlapping_bursts_are_reported() -> None:
    result = forecast(
        BURSTS, JOBS, APPLICATIONS, CONSTANT, (2.0, 0.0), params=replace(EXACT_PARAMS, overlap_step_s=20.0)
    ).collisions
    # from 100 to 160 s and from 300 to 360 s
    assert (result.interval.tolist(), result.first.tolist(), result.second.tolist()) == ([0], [0], [1])
    assert result.overlap_s == pytest.approx([120.0], abs=41.0)
    assert result.overlap_bytes == pytest.approx([120.0 * 16.0], rel=0.35)


def test_forecast_without_jobs_is_unknown_traffic() -> None:
    result = forecast(BURSTS, NO_JOBS, APPLICATIONS[:0], CONSTANT, (np.nan, 0.0), params=EXACT_PARAMS)
    assert result.expected_bytes_per_s == pytest.approx(2.0)
    assert result.applications_bytes_per_s.shape == (0, 6)


def test_result_is_independent_of_the_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = forecast(BURSTS, JOBS, APPLICATIONS, CONSTANT, (2.0, 0.0), params=EXACT_PARAMS)
    monkeypatch.setattr("iosig.transforms.forecast.forecasting._MAX_BATCH_SIZE", 1)
    parts = forecast(BURSTS, JOBS, APPLICATIONS, CONSTANT, (2.0, 0.0), params=EXACT_PARAMS)
    assert parts.applications_bytes_per_s == pytest.approx(whole.applications_bytes_per_s)
    assert parts.collisions.overlap_s == pytest.approx(whole.collisions.overlap_s)


def test_excess_over_capacity_is_postponed() -> None:
    rates = np.array([[1.0, 9.0, 0.0, 0.0, 6.0], [5.0, 0.0, 7.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    expected = [[1.0, 5.0, 4.0, 0.0, 5.0], [5.0, 0.0, 5.0, 2.0, 0.0], [1.0] * 5]
    assert limit_to_capacity(rates, 5.0).tolist() == expected
    assert limit_to_capacity(rates, np.inf) is rates


def test_range_covers_80_percent() -> None:
    generator = np.random.default_rng(1)
    history = TrafficHistory(generator.lognormal(0.0, 1.0, 4000), np.zeros((4000, 3)), 100.0, 0.0)
    params = replace(EXACT_PARAMS, draw_count=400, widening=1.0)
    result = forecast(BURSTS, NO_JOBS, APPLICATIONS[:0], history, (np.nan, 0.0), params=params)
    actual = generator.lognormal(0.0, 1.0, (2000, 3))
    is_covered = (actual >= result.low_bytes_per_s) & (actual <= result.high_bytes_per_s)
    assert is_covered.mean() == pytest.approx(0.8, abs=0.03)
    wider = forecast(BURSTS, NO_JOBS, APPLICATIONS[:0], history, (np.nan, 0.0), params=replace(params, widening=2.0))
    assert (wider.high_bytes_per_s - wider.low_bytes_per_s > result.high_bytes_per_s - result.low_bytes_per_s).all()
