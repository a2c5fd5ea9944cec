"""Slowdowns: estimate the delay of bursts due to contention, and find the runs that caused it.

Contention delays and slows a burst but takes no bytes from it (IOSI: Liu et al., FAST'14, section 4). Traffic alone
does not show the delay: where two bursts overlap, their bytes are indistinguishable. The job log, however, reveals the
total delay of each run to the second. The contention time of a burst is the time that interfering bytes would take at
the burst's own rate. A robust regression within applications relates the delays of runs to their contention times
(Huber, "Robust Estimation of a Location Parameter", 1964, doi:10.1214/aoms/1177703732). Its slope is the file system's
delay per second of contention. The delay of a burst is the slope times its contention time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals

#: maximum number of burst-run pairs compared at once; limits memory
_MAX_PAIRS = 1 << 22
#: `_REGRESSION_ROUNDS`: number of iterations of the robust regression
#: `_MIN_SCALE`: minimum scale of its residuals, in units of the expected deviation
_REGRESSION_ROUNDS, _MIN_SCALE = 20, 0.25
#: minimum of 1 minus the leverage of a run
_MIN_ONE_MINUS_LEVERAGE = 0.1


@dataclass(frozen=True, slots=True)
class SlowdownParams:
    """Parameters of the regression and of the ranges, tuned on simulated sites held out from the study."""

    #: maximum rate of the interfering bytes that counts, in multiples of the burst's own rate
    max_contention: float = 3.0
    #: minimum number of runs of an application in the regression
    min_runs: int = 4
    #: a run that is shorter by more than this fraction of its duration was stopped, and is left out
    short_ratio: float = 0.08
    #: maximum interquartile range of an application's delays, as a fraction of its duration
    max_scatter_ratio: float = 0.08
    #: standard deviation of the length of runs without contention, as a fraction of that length
    drift_ratio: float = 0.02
    #: threshold of Huber's weights, in standard deviations
    huber_threshold: float = 1.5
    #: standard deviation of the slope's prior, which has mean 0
    prior_error: float = 0.5
    #: value that a significant slope exceeds by `min_slope_errors` standard errors
    min_slope: float = 0.1
    #: number of standard errors by which a significant slope exceeds `min_slope`
    min_slope_errors: float = 2.0
    #: standard error of a burst's delay that is proportional to the delay
    burst_error_ratio: float = 0.6
    #: standard error of a burst's delay that stems from the step length, in steps
    step_error: float = 1.0
    #: half width of a range in standard errors (80 % of a normal distribution)
    range_errors: float = 1.28


@dataclass(frozen=True, slots=True)
class ContentionSlope:
    """Delay per unit of contention time, and the standard error of this slope."""

    slope: float
    error: float

    def is_significant(self, params: SlowdownParams) -> bool:
        """Return whether contention causes a relevant delay."""
        return self.slope - params.min_slope_errors * self.error > params.min_slope


def compute_contention(
    duration: Reals, volume_bytes: Reals, elapsed: Reals, interfering_bytes: Reals, params: SlowdownParams | None = None
) -> Reals:
    """Compute the contention time of bursts.

    Parameters
    ----------
    duration : Reals, shape (m,)
        Length of each burst without contention.
    volume_bytes : Reals, shape (m,)
        Bytes of each burst.
    elapsed : Reals, shape (m,)
        Actual length of each burst.
    interfering_bytes : Reals, shape (m,)
        Bytes of other runs during each burst, in both directions.
    params : SlowdownParams, optional
        Parameters; only `max_contention` is used.

    Returns
    -------
    Reals, shape (m,)
        Contention time in the unit of `duration`.

    """
    limit = (params or SlowdownParams()).max_contention
    relative_rate = interfering_bytes / np.maximum(elapsed, 1e-9) / np.maximum(volume_bytes / duration, 1e-9)
    contention: Reals = duration * np.clip(relative_rate, 0.0, limit)
    return contention


def estimate_slope(
    delay: Reals, contention: Reals, duration: Reals, application: Ints, params: SlowdownParams | None = None
) -> ContentionSlope:
    """Estimate how much contention delays the runs of a file system.

    Parameters
    ----------
    delay : Reals, shape (n,)
        Actual length of each run minus its length without contention.
    contention : Reals, shape (n,)
        Contention time of each run's bursts, in the same unit.
    duration : Reals, shape (n,)
        Length of each run without contention, in the same unit.
    application : Ints, shape (n,)
        Index of each run's application; each application has its own intercept.
    params : SlowdownParams, optional
        Parameters.

    Returns
    -------
    ContentionSlope
        Shrunk toward 0 if the runs carry little information.

    """
    params = params or SlowdownParams()
    is_usable = delay > -params.short_ratio * duration
    for number in np.unique(application[is_usable]).tolist():
        runs = np.flatnonzero(is_usable & (application == number))
        scatter = np.subtract(*np.quantile(delay[runs], (0.75, 0.25)))
        if len(runs) < params.min_runs or scatter > params.max_scatter_ratio * duration[runs].mean():
            is_usable[runs] = False
    deviation = params.drift_ratio * duration[is_usable]
    group = np.unique(application[is_usable], return_inverse=True)[1]
    return _fit_slope(delay[is_usable] / deviation, contention[is_usable] / deviation, group, params)


def _fit_slope(delay: Reals, contention: Reals, group: Ints, params: SlowdownParams) -> ContentionSlope:
    """Fit a robust slope with a prior and one intercept per group; both variables are in standard deviations."""
    prior, slope, weight = params.prior_error**-2.0, 0.0, np.ones_like(delay)
    for _ in range(_REGRESSION_ROUNDS):
        y, x = _center(delay, weight, group), _center(contention, weight, group)
        residual = y - slope * x
        scale = max(SIGMAS_PER_MAD * float(np.median(np.abs(residual))), _MIN_SCALE) if len(residual) else 1.0
        weight = params.huber_threshold * scale / np.maximum(np.abs(residual), params.huber_threshold * scale)
        information = float((weight * x**2).sum()) / scale**2 + prior
        slope = float((weight * x * y).sum()) / scale**2 / information
    # Where residuals exceed the assumed deviations, they determine the error. A run with high contention pulls the line
    # toward itself. Its residual is therefore scaled to the residual of a fit without the run (MacKinnon and White,
    # "Some Heteroskedasticity-Consistent Covariance Matrix Estimators", J. Econometrics 29, 1985,
    # doi:10.1016/0304-4076(85)90158-7).
    leverage = weight * x**2 / scale**2 / information + weight / np.bincount(group, weight)[group]
    held_out_residual = (y - slope * x) / np.maximum(1.0 - leverage, _MIN_ONE_MINUS_LEVERAGE)
    sandwich = float(((weight * x * held_out_residual) ** 2).sum()) / scale**4 / information**2
    return ContentionSlope(max(slope, 0.0), max(1.0 / information, sandwich) ** 0.5)


def _center(values: Reals, weight: Reals, group: Ints) -> Reals:
    """Subtract the weighted mean of each group."""
    means = np.bincount(group, weight * values) / np.bincount(group, weight)
    centered: Reals = values - means[group]
    return centered


@dataclass(frozen=True, slots=True)
class Slowdowns:
    """Delay of m bursts, with the lower and upper bound of its 80 % interval."""

    delay: Reals
    low: Reals
    high: Reals

    @property
    def is_delayed(self) -> Bools:
        """Return whether each burst was significantly delayed (m)."""
        is_delayed: Bools = self.low > 0
        return is_delayed


def estimate_slowdowns(
    contention: Reals, slope: ContentionSlope, step: float, params: SlowdownParams | None = None
) -> Slowdowns:
    """Estimate the delay of bursts from their contention time.

    Parameters
    ----------
    contention : Reals, shape (m,)
        Contention time of each burst.
    slope : ContentionSlope
        Delay per unit of contention time.
    step : float
        Length of a step of the traffic, in the same unit.
    params : SlowdownParams, optional
        Parameters.

    Returns
    -------
    Slowdowns
        If the slope is not significant, every interval includes 0.

    """
    params = params or SlowdownParams()
    delay = slope.slope * contention
    errors = (
        slope.error * contention,
        params.burst_error_ratio * delay,
        np.full_like(delay, params.step_error * step),
    )
    half_width: Reals = params.range_errors * np.sqrt(sum(error**2 for error in errors))
    low = delay - half_width
    return Slowdowns(delay, low if slope.is_significant(params) else np.minimum(low, 0.0), delay + half_width)


@dataclass(frozen=True, slots=True)
class Interference:
    """Attributed bytes of other runs during m bursts.

    Attributes
    ----------
    interfering_bytes : Reals, shape (m,)
        Bytes of all other runs.
    top_run : Ints, shape (m,)
        The run with the most bytes; -1 if no other run moved any.
    top_bytes : Reals, shape (m,)
        Bytes of that run.

    """

    interfering_bytes: Reals
    top_run: Ints
    top_bytes: Reals


@dataclass(frozen=True, slots=True)
class RunTraffic:
    """Bytes of n runs as k rows, sorted by run and time: run, time [s] and bytes."""

    run: Ints
    at_s: Reals
    volume_bytes: Reals
    run_count: int

    def limits_s(self) -> tuple[Reals, Reals]:
        """Return the first and last time of each run [s], shape (n,); infinity and minus infinity without rows."""
        offsets = np.searchsorted(self.run, np.arange(self.run_count + 1))
        first, last = np.full((2, self.run_count), np.inf) * [[1.0], [-1.0]]
        has_rows = np.flatnonzero(np.diff(offsets))
        first[has_rows], last[has_rows] = self.at_s[offsets[has_rows]], self.at_s[offsets[has_rows + 1] - 1]
        return first, last

    def sum_between(self, run: Ints, start_s: Reals, end_s: Reals) -> Reals:
        """Sum the bytes of each given run in a time span (start excluded, end included); arguments: shape (p,)."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.volume_bytes)])
        origin = min(self.at_s.min(initial=0.0), start_s.min(initial=0.0))
        span = max(self.at_s.max(initial=0.0), end_s.max(initial=0.0)) - origin + 1.0
        key = self.run * span + (self.at_s - origin)
        low, high = (np.searchsorted(key, run * span + (edge - origin), side="right") for edge in (start_s, end_s))
        sums: Reals = cumulative[high] - cumulative[low]
        return sums


def find_interference(run: Ints, start_s: Reals, end_s: Reals, traffic: RunTraffic) -> Interference:
    """Find the bytes that other runs moved during each burst, and the run that moved the most.

    Parameters
    ----------
    run : Ints, shape (m,)
        Run of each burst; a run does not interfere with its own bursts.
    start_s, end_s : Reals, shape (m,)
        Start and end of each burst [s].
    traffic : RunTraffic
        Attributed bytes of all runs.

    Returns
    -------
    Interference

    """
    first_s, last_s = traffic.limits_s()
    total, top_run, top_bytes = np.zeros(len(run)), np.full(len(run), -1), np.zeros(len(run))
    batch_size = max(1, _MAX_PAIRS // max(traffic.run_count, 1))
    for start in range(0, len(run), batch_size):
        batch = slice(start, start + batch_size)
        is_active = (first_s <= end_s[batch, None]) & (last_s >= start_s[batch, None])
        burst, other_run = np.nonzero(is_active & (np.arange(traffic.run_count) != run[batch, None]))
        sums = traffic.sum_between(other_run, start_s[batch][burst], end_s[batch][burst])
        total[batch] = np.bincount(burst, sums, len(run[batch]))
        order = np.lexsort((sums, burst))
        # the last row of each burst has the largest sum
        last = order[np.flatnonzero(np.diff(burst[order], append=-1))]
        last = last[sums[last] > 0]
        top_run[start + burst[last]], top_bytes[start + burst[last]] = other_run[last], sums[last]
    return Interference(total, top_run, top_bytes)
