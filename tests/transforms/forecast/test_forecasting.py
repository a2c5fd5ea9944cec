"""The rate to come: what is known is told when it comes, what has no room comes later, the range holds most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.coming import Coming
from iosig.transforms.forecast.forecasting import ForecastParams, carried, forecast
from iosig.transforms.forecast.unknown import Past
from tests.transforms.forecast.test_coming import EXACT, ONE

#: bursts of 100 s at the start, at 200 s and at 400 s
BURSTS = Demands.of([Demand(np.array([8.0, 0.0, 8.0, 0.0, 8.0]), 100.0)])
QUIET = Past(np.full(100, 2.0), np.zeros((100, 6)), 100.0, 0.0)
SURE = ForecastParams(coming=EXACT, draw_count=20)
BOTH = np.array([0, 1])
NOBODY = Coming(
    demand=ONE.demand[:0],
    elapsed_s=ONE.elapsed_s[:0],
    waited_s=ONE.waited_s[:0],
    least_wait_s=ONE.least_wait_s[:0],
    most_wait_s=ONE.most_wait_s[:0],
    limit_s=ONE.limit_s[:0],
    trust=ONE.trust[:0],
    lasted=ONE.lasted[:0],
    waited=ONE.waited[:0],
    durations_s=ONE.durations_s,
    waits_s=ONE.waits_s,
)


def test_what_is_known_is_told_when_it_comes() -> None:
    # the one that runs is at 100 s of its signature, the other starts after a minute
    found = forecast(BURSTS, ONE, BOTH, QUIET, (2.0, 0.0), params=SURE)
    first, second = found.applications_bytes_per_s
    assert first == pytest.approx([0.0, 8.0, 0.0, 8.0, 0.0, 0.0])
    assert second == pytest.approx([3.2, 4.8, 3.2, 4.8, 3.2, 4.8])
    assert found.unknown_bytes_per_s == pytest.approx(2.0)
    for line in (found.expected_bytes_per_s, found.low_bytes_per_s, found.high_bytes_per_s):
        assert line == pytest.approx(2.0 + first + second)


def test_bursts_that_meet_are_named() -> None:
    found = forecast(BURSTS, ONE, BOTH, QUIET, (2.0, 0.0), params=replace(SURE, meeting_step_s=20.0)).collisions
    # from 100 to 160 s and from 300 to 360 s
    assert (found.stretch.tolist(), found.first.tolist(), found.second.tolist()) == ([0], [0], [1])
    assert found.meeting_s == pytest.approx([120.0], abs=41.0)
    assert found.meeting_bytes == pytest.approx([120.0 * 16.0], rel=0.35)


def test_without_jobs_there_is_what_always_comes() -> None:
    found = forecast(BURSTS, NOBODY, BOTH[:0], QUIET, (np.nan, 0.0), params=SURE)
    assert found.expected_bytes_per_s == pytest.approx(2.0)
    assert found.applications_bytes_per_s.shape == (0, 6)


def test_many_jobs_are_worked_on_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = forecast(BURSTS, ONE, BOTH, QUIET, (2.0, 0.0), params=SURE)
    monkeypatch.setattr("iosig.transforms.forecast.forecasting._MOST_TOGETHER", 1)
    parts = forecast(BURSTS, ONE, BOTH, QUIET, (2.0, 0.0), params=SURE)
    assert parts.applications_bytes_per_s == pytest.approx(whole.applications_bytes_per_s)
    assert parts.collisions.meeting_s == pytest.approx(whole.collisions.meeting_s)


def test_what_has_no_room_comes_later() -> None:
    rates = np.array([[1.0, 9.0, 0.0, 0.0, 6.0], [5.0, 0.0, 7.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    expected = [[1.0, 5.0, 4.0, 0.0, 5.0], [5.0, 0.0, 5.0, 2.0, 0.0], [1.0] * 5]
    assert carried(rates, 5.0).tolist() == expected
    assert carried(rates, np.inf) is rates


def test_the_range_holds_four_of_five() -> None:
    generator = np.random.default_rng(1)
    wild = Past(generator.lognormal(0.0, 1.0, 4000), np.zeros((4000, 3)), 100.0, 0.0)
    params = replace(SURE, draw_count=400, widening=1.0)
    found = forecast(BURSTS, NOBODY, BOTH[:0], wild, (np.nan, 0.0), params=params)
    came = generator.lognormal(0.0, 1.0, (2000, 3))
    held = (came >= found.low_bytes_per_s) & (came <= found.high_bytes_per_s)
    assert held.mean() == pytest.approx(0.8, abs=0.03)
    wider = forecast(BURSTS, NOBODY, BOTH[:0], wild, (np.nan, 0.0), params=replace(params, widening=2.0))
    assert (wider.high_bytes_per_s - wider.low_bytes_per_s > found.high_bytes_per_s - found.low_bytes_per_s).all()
