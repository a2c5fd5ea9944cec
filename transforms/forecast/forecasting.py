"""The rate that is to be expected of a file system in the hours to come, with a range, by Monte Carlo.

Each draw lets every job that runs or waits start, go on and end as jobs like it did (`coming`), and adds what flowed
after one of the instants of the past that are like now, of what nobody knew then (`unknown`). What there is no room for
comes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.demands import Demands
from iosig.transforms.forecast.collisions import Collisions, collisions
from iosig.transforms.forecast.coming import Coming, ComingParams, Drawn, drawn
from iosig.transforms.forecast.unknown import Past, UnknownParams, drawn_unknown

#: jobs times draws times instants that are worked on at a time: what bounds the memory
_MOST_TOGETHER = 1 << 21


@dataclass(frozen=True, slots=True)
class ForecastParams:
    """How a forecast is made; the values are ours.

    draw_count: how often everything is drawn. low_ratio, high_ratio: the quantiles that the range goes between.
    widening: how much wider the range is made on either side of the median, since draws do not know all that may come:
    as was measured on sites other than those of `iosig study forecast`. burst_ratio: a job is at a burst where it moves
    more than this share of its signature's peak. meeting_step_s: in such steps it is looked whether bursts meet;
    stretch_s, least_meeting_s: bursts meet that do so for some seconds at least, of such a stretch of time. seed: what
    all is drawn from.
    """

    coming: ComingParams = field(default_factory=ComingParams)
    unknown: UnknownParams = field(default_factory=UnknownParams)
    draw_count: int = 256
    low_ratio: float = 0.1
    high_ratio: float = 0.9
    widening: float = 1.05
    burst_ratio: float = 0.1
    meeting_step_s: float = 30.0
    stretch_s: float = 3600.0
    least_meeting_s: float = 30.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to be expected, in steps of step_s from an instant on (k).

    expected_bytes_per_s, low_bytes_per_s, high_bytes_per_s (k): of all. unknown_bytes_per_s (k): of what nobody knows
    yet. applications_bytes_per_s (applications, k): of what is known. collisions: in stretches of the time to come.
    """

    step_s: float
    expected_bytes_per_s: Reals
    low_bytes_per_s: Reals
    high_bytes_per_s: Reals
    unknown_bytes_per_s: Reals
    applications_bytes_per_s: Reals
    collisions: Collisions


def forecast(
    demands: Demands,
    coming: Coming,
    application: Ints,
    past: Past,
    now: tuple[float, float],
    capacity_bytes_per_s: float = np.inf,
    params: ForecastParams | None = None,
) -> Forecast:
    """Forecast a file system's rate in the steps of its past, as many as that tells of.

    application (jobs): whose each job is, 0 to a - 1. now: what was unexplained in the last hour [B/s], NaN where that
    is not known, and the hour of the day. Raises ValueError where the past is shorter than the time to come.
    """
    params = params or ForecastParams()
    unknown = drawn_unknown(past, *now, params.draw_count, params.seed + 2, params.unknown)
    edges: Reals = np.arange(past.horizon + 1, dtype=np.float64) * past.step_s
    count = int(application.max(initial=-1)) + 1
    known, by_application = np.zeros_like(unknown), np.zeros((count, past.horizon))
    ways = None
    if len(coming):
        ways = drawn(coming, demands.duration_s[coming.demand], params.draw_count, params.seed, params.coming)
        for jobs, rates in _rates(demands, coming, ways, edges):
            known += rates.sum(axis=0)
            np.add.at(by_application, application[jobs], rates.mean(axis=1))
    total = carried(known + unknown, capacity_bytes_per_s)
    low, high = _range(total, capacity_bytes_per_s, params)
    return Forecast(
        past.step_s,
        total.mean(axis=0),
        low,
        high,
        unknown.mean(axis=0),
        by_application,
        _meetings(demands, coming, ways, application, edges[-1], params),
    )


def carried(rates: Reals, capacity: float) -> Reals:
    """Return rates (draws, steps) of which no step has more than the capacity; what has no room comes later."""
    if not np.isfinite(capacity) or not (rates > capacity).any():
        return rates
    # what has been moved by a step is the least that any step before lets pass
    asked = np.cumsum(rates, axis=1) - capacity * np.arange(1, rates.shape[1] + 1)
    waiting = asked - np.minimum(np.minimum.accumulate(asked, axis=1), 0.0)
    found: Reals = rates - np.diff(waiting, axis=1, prepend=0.0)
    return found


def _range(total: Reals, capacity: float, params: ForecastParams) -> tuple[Reals, Reals]:
    """Return the range of draws, made wider as far as there is room."""
    low, middle, high = np.quantile(total, (params.low_ratio, 0.5, params.high_ratio), axis=0)
    wide = params.widening
    return np.maximum(middle - wide * (middle - low), 0.0), np.minimum(middle + wide * (high - middle), capacity)


def _rates(demands: Demands, coming: Coming, ways: Drawn, edges_s: Reals) -> Iterator[tuple[slice, Reals]]:
    """Yield what jobs move (jobs, draws, steps) between instants, some jobs at a time."""
    each = ways.started_s.shape[1] * len(edges_s)
    at_once = max(1, _MOST_TOGETHER // each)
    step_s = float(edges_s[1] - edges_s[0])
    for first in range(0, len(coming), at_once):
        jobs = slice(first, first + at_once)
        rates = demands.rates(coming.demand[jobs], ways.positions_s(jobs, edges_s), step_s)
        yield jobs, rates * ways.volume_ratio[jobs][..., None]


def _meetings(
    demands: Demands, coming: Coming, ways: Drawn | None, application: Ints, until_s: float, params: ForecastParams
) -> Collisions:
    """Return where bursts of jobs meet until some time."""
    step_s = params.meeting_step_s
    edges: Reals = np.arange(max(round(until_s / step_s), 1) + 1, dtype=np.float64) * step_s
    active = np.zeros((len(coming), len(edges) - 1))
    moved = np.zeros_like(active)
    least = params.burst_ratio * demands.peak_bytes_per_s[coming.demand]
    if ways is not None:
        for jobs, rates in _rates(demands, coming, ways, edges):
            active[jobs] = (rates > least[jobs, None, None]).mean(axis=1)
            moved[jobs] = rates.mean(axis=1)
    stretch = max(1, round(params.stretch_s / step_s))
    return collisions(active, moved, application, step_s, stretch, params.least_meeting_s)
