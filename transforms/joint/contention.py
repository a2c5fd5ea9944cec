"""Contention: estimate how much concurrent I/O slows a run, and remove this effect from samples.

Disks that serve several streams seek between them. While a run is active, n other active runs reduce its speed to
1 / (1 + cost n) (the seek loss of `iosig.transforms.synthetic.contention`). While a run computes, it is not slowed. The
cost is a property of the file system and is estimated from all applications: runs take longer if they meet more other
active runs. On a clock that stops during lost time, runs of an application differ only by their own pace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.joint.shared_traffic import SharedTraffic
from iosig.transforms.signatures.robust_alignment import cumulative_sums
from iosig.transforms.signatures.sample_sets import SampleSets

#: number of Gauss-Newton iterations of the regression
_ROUNDS = 8
#: fraction of a step below which a remainder is a rounding error
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ContentionParams:
    """Constants of the regression, chosen on simulated sites of seeds 1 to 3 (not the study's).

    Attributes
    ----------
    prior_cost, prior_cost_deviation
        Mean and standard deviation of the cost across sites.
    min_deviation_s
        Minimum standard deviation of durations within an application [s].
    lost_deviation_ratio
        Standard deviation of a run's lost time, relative to the lost time.
    half_weight_deviations
        Residual at which the weight of a run is halved, in standard deviations.
    min_run_count
        Minimum number of runs of an application that is used.
    min_measured_ratio
        Minimum measured fraction of a step that counts as known.
    """

    prior_cost: float = 0.05
    prior_cost_deviation: float = 0.15
    min_deviation_s: float = 2.0
    lost_deviation_ratio: float = 0.5
    half_weight_deviations: float = 2.0
    min_run_count: int = 3
    min_measured_ratio: float = 0.5


PARAMS = ContentionParams()


@dataclass(frozen=True, slots=True)
class RunSteps:
    """The k steps of n runs, run by run.

    Attributes
    ----------
    run, step : (k,)
        Index of the run, and of the traffic's step.
    begin, end : (k,)
        Begin and end of the row, relative to the start of the run, in steps.
    offsets : (n + 1,)
        First row of each run.
    duration : (n,)
        Duration of each run, in steps; also for runs without rows.
    """

    run: Ints
    step: Ints
    begin: Reals
    end: Reals
    offsets: Ints
    duration: Reals

    @classmethod
    def from_traffic(cls, shared: SharedTraffic) -> RunSteps:
        """Create the steps of all runs, on the clock of the traffic."""
        count = len(shared.volume_bytes)
        first = np.clip(np.floor(shared.start_estimate), 0, count).astype(np.int64)
        last = np.clip(np.ceil(shared.end_estimate), first, count).astype(np.int64)
        run = np.repeat(np.arange(len(first)), last - first)
        step = places_of(first, last - first)
        since, duration = step - shared.start_estimate[run], shared.end_estimate - shared.start_estimate
        begin, end = np.maximum(since, 0.0), np.minimum(since + 1.0, duration[run])
        return cls(run, step, begin, end, offsets_of(last - first), duration)

    @property
    def length(self) -> Reals:
        """Return the length of each row (k), in steps."""
        return self.end - self.begin

    def scale_time(self, speed: Reals) -> RunSteps:
        """Convert to clocks of the runs, which advance at the given relative speed in each row (k)."""
        length = self.length * speed
        total = cumulative_sums(length[None])[0]
        counts = np.diff(self.offsets)
        # a run that started before the first known step keeps its offset
        first = np.repeat(self.offsets[:-1], counts)
        end = self.begin[first] + total[1:] - total[first]
        lost_time = sum_pieces(self.length - length, self.offsets)
        return replace(self, begin=end - length, end=end, duration=self.duration - lost_time)


def sum_pieces(values: Reals, offsets: Ints) -> Reals:
    """Sum each piece of an array.

    Parameters
    ----------
    values : (k,)
        Values in any unit.
    offsets : (n + 1,)
        Piece i is values[offsets[i]:offsets[i + 1]].

    Returns
    -------
    (n,)
        Sum of each piece.
    """
    sums: Reals = np.diff(cumulative_sums(values[None])[0][offsets])
    return sums


def relative_speed(active_count: Reals, active_ratio: Reals, cost: float) -> Reals:
    """Compute the relative speed of a run under contention, 0 to 1.

    Parameters
    ----------
    active_count
        Number of other active runs, of any shape.
    active_ratio
        Fraction of the time in which the run itself is active, of the same shape.
    cost
        Slowdown by each other active run.
    """
    speed: Reals = 1.0 - active_ratio * (1.0 - 1.0 / (1.0 + cost * active_count))
    return speed


def estimate_contention_cost(
    duration_s: Reals, application: Ints, offsets: Ints, active_count: Reals, active_s: Reals
) -> float:
    """Estimate the slowdown of a run by each other active run.

    Parameters
    ----------
    duration_s : (n,)
        Duration of each run [s].
    application : (n,)
        Application of each run; negative for runs that are not used.
    offsets : (n + 1,)
        First step of each run.
    active_count : (k,)
        Number of other active runs in each step.
    active_s : (k,)
        Time in the step during which the run itself was active [s].

    Returns
    -------
    float
        The slowdown, 0 or more; see `relative_speed`.

    Notes
    -----
    A weighted least-squares regression with a normal prior, by Gauss-Newton iterations. Each run is compared with the
    other runs of its application. Cauchy weights reduce the influence of outliers.
    """
    order = np.argsort(application, kind="stable")
    edges = np.flatnonzero(np.diff(application[order], prepend=-2, append=-2)).tolist()
    sets = [order[first:last] for first, last in pairwise(edges)]
    sets = [runs for runs in sets if len(runs) >= PARAMS.min_run_count and application[runs[0]] >= 0]
    cost = PARAMS.prior_cost
    for _ in range(_ROUNDS):
        # time lost at this cost, and its derivative
        lost_s = sum_pieces(active_s * (1.0 - 1.0 / (1.0 + cost * active_count)), offsets)
        slope_s = sum_pieces(active_s * active_count / (1.0 + cost * active_count) ** 2, offsets)
        gradient = (PARAMS.prior_cost - cost) / PARAMS.prior_cost_deviation**2
        precision = 1.0 / PARAMS.prior_cost_deviation**2
        for runs in sets:
            rest_s = duration_s[runs] - lost_s[runs]
            weights = cauchy_weights(rest_s, lost_s[runs])
            centered = weights * (slope_s[runs] - (weights * slope_s[runs]).sum() / weights.sum())
            gradient += float((centered * rest_s).sum())
            precision += float((centered * slope_s[runs]).sum())
        cost = max(0.0, cost + gradient / precision)
    return cost


def remove_contention(sets: SampleSets, active_count: Reals, active_ratio: Reals, cost: float) -> SampleSets:
    """Convert samples as if contention had not occurred: the same volumes in less time.

    Parameters
    ----------
    sets
        Sample sets.
    active_count, active_ratio : (values,)
        For each value of the samples; see `relative_speed`.
    cost
        Slowdown by each other active run.

    Returns
    -------
    SampleSets
    """
    if not cost > 0:
        return sets
    samples = sets.samples
    speed = relative_speed(active_count, active_ratio, cost)
    new_lengths = sum_pieces(speed, samples.offsets)
    new_offsets = offsets_of(np.ceil(new_lengths - _TOLERANCE).astype(np.int64))
    # new positions of the edges of steps, run by run; each run starts at a whole step
    edge = places_of(samples.offsets[:-1], samples.counts + 1)
    run = np.repeat(np.arange(len(new_lengths)), samples.counts + 1)
    total = cumulative_sums(speed[None])[0]
    position = total[edge] - total[samples.offsets[run]] + new_offsets[run]

    def resample(values: Reals) -> Reals:
        edges = np.arange(new_offsets[-1] + 1.0)
        return np.diff(np.interp(edges, position, cumulative_sums(values[None])[0][edge]))

    measured = resample(np.isfinite(samples.values).astype(np.float64))
    is_known = measured > PARAMS.min_measured_ratio * resample(np.ones(len(speed)))
    rates = np.where(is_known, resample(np.nan_to_num(samples.values)), np.nan)
    lost_s = (samples.counts - new_lengths) * sets.interval_s[sets.owner]
    return replace(
        sets,
        samples=Ragged(rates, new_offsets),
        duration_s=sets.duration_s - lost_s,
        interference=None if sets.interference is None else resample(np.nan_to_num(sets.interference)),
    )


def cauchy_weights(rest_s: Reals, lost_s: Reals) -> Reals:
    """Compute the weight of each run of an application in a robust mean: Cauchy weight times inverse variance.

    Parameters
    ----------
    rest_s : (runs,)
        Durations without the time lost to contention [s].
    lost_s : (runs,)
        Time lost to contention [s]; the uncertainty of a duration grows in proportion.

    Returns
    -------
    (runs,)
        Weights in 1/s².
    """
    residuals_s = rest_s - np.median(rest_s)
    deviation_s = max(SIGMAS_PER_MAD * float(np.median(np.abs(residuals_s))), PARAMS.min_deviation_s)
    scale_s = np.hypot(deviation_s, PARAMS.lost_deviation_ratio * lost_s)
    weights: Reals = 1.0 / (1.0 + (residuals_s / (PARAMS.half_weight_deviations * scale_s)) ** 2) / scale_s**2
    return weights
