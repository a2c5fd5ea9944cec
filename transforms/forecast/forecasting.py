"""Forecast a file system's rate for the coming hours, with a range, by Monte Carlo simulation.

In each draw, every running or waiting job starts, progresses and ends as similar jobs did (`upcoming_jobs`). The draw
adds the traffic that followed a similar past instant and was unknown at that time (`unknown_traffic`). Traffic above
the capacity is postponed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.demands import Demands
from iosig.transforms.forecast.collisions import Collisions, find_collisions
from iosig.transforms.forecast.unknown_traffic import AnalogueParams, TrafficHistory, draw_unknown_traffic
from iosig.transforms.forecast.upcoming_jobs import JobDrawParams, JobDraws, UpcomingJobs, draw_jobs

#: maximum number of jobs times draws times edges processed at once; limits memory
_MAX_BATCH_SIZE = 1 << 21


@dataclass(frozen=True, slots=True)
class ForecastParams:
    """Parameters of a forecast: draws, range, and thresholds of collisions."""

    jobs: JobDrawParams = field(default_factory=JobDrawParams)
    analogues: AnalogueParams = field(default_factory=AnalogueParams)
    #: number of Monte Carlo draws
    draw_count: int = 256
    #: level of the quantile at the lower limit of the range
    low_ratio: float = 0.1
    #: level of the quantile at the upper limit of the range
    high_ratio: float = 0.9
    #: factor by which the range is widened around the median, since draws underestimate the variance; calibrated on
    #: simulated sites held out from `iosig study forecast`
    widening: float = 1.05
    #: minimum rate of a burst, as a fraction of its signature's peak
    burst_ratio: float = 0.1
    #: length of the steps in which overlap is computed [s]
    overlap_step_s: float = 30.0
    #: length of the intervals in which collisions are reported [s]
    collision_interval_s: float = 3600.0
    #: minimum expected overlap of a collision within an interval [s]
    min_overlap_s: float = 30.0
    #: seed of the random numbers
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast for the next k steps.

    Attributes
    ----------
    step_s : float
        Length of a step [s].
    expected_bytes_per_s, low_bytes_per_s, high_bytes_per_s : Reals, shape (k,)
        Mean and range of the total rate.
    unknown_bytes_per_s : Reals, shape (k,)
        Mean rate of unknown traffic.
    applications_bytes_per_s : Reals, shape (applications, k)
        Mean rate of each application's running and waiting jobs.
    collisions : Collisions
        Expected overlap of bursts.

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
    jobs: UpcomingJobs,
    application: Ints,
    history: TrafficHistory,
    now: tuple[float, float],
    capacity_bytes_per_s: float = np.inf,
    params: ForecastParams | None = None,
) -> Forecast:
    """Forecast the rate of a file system over the horizon of its history.

    Parameters
    ----------
    demands : Demands
        Signatures of the jobs.
    jobs : UpcomingJobs
        Running and waiting jobs.
    application : Ints, shape (jobs,)
        Index of each job's application.
    history : TrafficHistory
        Past traffic; it also determines the step length and the horizon.
    now : (float, float)
        Unexplained rate of the last hour [B/s] (NaN if unknown), and the present hour of the day.
    capacity_bytes_per_s : float
        Maximum rate of the file system [B/s].
    params : ForecastParams, optional
        Parameters of the forecast.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError
        If the history is shorter than the horizon.

    """
    params = params or ForecastParams()
    unknown = draw_unknown_traffic(history, *now, params.draw_count, params.seed + 2, params.analogues)
    edges: Reals = np.arange(history.horizon + 1, dtype=np.float64) * history.step_s
    count = int(application.max(initial=-1)) + 1
    job_rates, by_application = np.zeros_like(unknown), np.zeros((count, history.horizon))
    draws = None
    if len(jobs):
        draws = draw_jobs(jobs, demands.duration_s[jobs.demand], params.draw_count, params.seed, params.jobs)
        for batch, rates in _batch_rates(demands, jobs, draws, edges):
            job_rates += rates.sum(axis=0)
            np.add.at(by_application, application[batch], rates.mean(axis=1))
    total = limit_to_capacity(job_rates + unknown, capacity_bytes_per_s)
    low, high = _range(total, capacity_bytes_per_s, params)
    return Forecast(
        history.step_s,
        total.mean(axis=0),
        low,
        high,
        unknown.mean(axis=0),
        by_application,
        _forecast_collisions(demands, jobs, draws, application, edges[-1], params),
    )


def limit_to_capacity(rates: Reals, capacity: float) -> Reals:
    """Limit rates to a capacity, and postpone the excess to the next steps below the capacity (a fluid queue).

    Parameters
    ----------
    rates : Reals, shape (draws, steps)
        Offered rates.
    capacity : float
        Maximum rate, in the same unit.

    Returns
    -------
    Reals, shape (draws, steps)
        Carried rates; the input itself if the capacity is never exceeded.

    """
    if not np.isfinite(capacity) or not (rates > capacity).any():
        return rates
    # the backlog is the cumulative excess above its running minimum (reflection at 0)
    excess = np.cumsum(rates, axis=1) - capacity * np.arange(1, rates.shape[1] + 1)
    backlog = excess - np.minimum(np.minimum.accumulate(excess, axis=1), 0.0)
    carried: Reals = rates - np.diff(backlog, axis=1, prepend=0.0)
    return carried


def _range(total: Reals, capacity: float, params: ForecastParams) -> tuple[Reals, Reals]:
    """Compute the range: quantiles of the draws, widened around the median, from 0 to the capacity at most."""
    low, median, high = np.quantile(total, (params.low_ratio, 0.5, params.high_ratio), axis=0)
    factor = params.widening
    return np.maximum(median - factor * (median - low), 0.0), np.minimum(median + factor * (high - median), capacity)


def _batch_rates(
    demands: Demands, jobs: UpcomingJobs, draws: JobDraws, edges_s: Reals
) -> Iterator[tuple[slice, Reals]]:
    """Yield batches of jobs, and their rates between edges, shape (jobs, draws, steps)."""
    job_size = draws.start_s.shape[1] * len(edges_s)
    batch_size = max(1, _MAX_BATCH_SIZE // job_size)
    step_s = float(edges_s[1] - edges_s[0])
    for first in range(0, len(jobs), batch_size):
        batch = slice(first, first + batch_size)
        rates = demands.rates(jobs.demand[batch], draws.positions_s(batch, edges_s), step_s)
        yield batch, rates * draws.volume_ratio[batch][..., None]


def _forecast_collisions(
    demands: Demands,
    jobs: UpcomingJobs,
    draws: JobDraws | None,
    application: Ints,
    until_s: float,
    params: ForecastParams,
) -> Collisions:
    """Find the collisions of running and waiting jobs until a given time from now."""
    step_s = params.overlap_step_s
    edges: Reals = np.arange(max(round(until_s / step_s), 1) + 1, dtype=np.float64) * step_s
    active = np.zeros((len(jobs), len(edges) - 1))
    mean_rates = np.zeros_like(active)
    threshold = params.burst_ratio * demands.peak_bytes_per_s[jobs.demand]
    if draws is not None:
        for batch, rates in _batch_rates(demands, jobs, draws, edges):
            active[batch] = (rates > threshold[batch, None, None]).mean(axis=1)
            mean_rates[batch] = rates.mean(axis=1)
    interval_steps = max(1, round(params.collision_interval_s / step_s))
    return find_collisions(active, mean_rates, application, step_s, interval_steps, params.min_overlap_s)
