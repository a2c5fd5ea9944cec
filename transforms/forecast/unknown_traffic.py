"""Draw traffic that is still unknown: of jobs not yet submitted or without a signature, and of transfers outside jobs.

The unknown traffic after an instant is the measured traffic, minus the traffic that signatures explain for jobs
submitted by that instant. Each draw is the unknown traffic after an analogue of the present (Lorenz, "Atmospheric
predictability as revealed by naturally occurring analogues", 1969, doi:10.1175/1520-0469(1969)26<636:APARBN>2.0.CO;2).
An analogue is a past instant at a similar hour of the day, after an hour with a similar rate of unexplained traffic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals

_DAY_H = 24.0


@dataclass(frozen=True, slots=True)
class AnalogueParams:
    """Parameters of the similarity of instants; plausible values, not tuned."""

    #: standard deviation of the log rate between similar instants
    level_error: float = 0.5
    #: standard deviation of the hour of the day between similar instants [h]
    hour_error: float = 2.0
    #: minimum length of the history for the hour to count [d]; in a shorter one, it would exclude too many analogues
    min_days: float = 7.0
    #: time before an instant over which the rate is averaged [s]
    level_s: float = 3600.0
    #: minimum effective number of analogues; tolerances are doubled until it is reached
    min_analogues: float = 24.0


@dataclass(frozen=True, slots=True)
class TrafficHistory:
    """Past traffic, by the time at which it became known; step k extends from k to k + 1.

    Attributes
    ----------
    unattributed_bytes_per_s : Reals, shape (steps,)
        Unexplained rate; NaN where nothing was measured.
    submitted_bytes_per_s : Reals, shape (steps, horizon)
        Explained rate in each step, by the number of steps since the submission of the job (0, 1, 2, ...).
    step_s : float
        Length of a step [s].
    first_hour : float
        Hour of the day (0 to 24) at the start of the first step.

    """

    unattributed_bytes_per_s: Reals
    submitted_bytes_per_s: Reals
    step_s: float
    first_hour: float

    @property
    def horizon(self) -> int:
        """Return the number of steps that can be forecast."""
        return int(self.submitted_bytes_per_s.shape[1])

    def compute_unknown_rates(self) -> Reals:
        """Compute the rates after each instant that were unknown at that instant, shape (instants, horizon).

        Instant k is the start of step k. Instants with too few subsequent steps are left out.
        """
        count = max(len(self.unattributed_bytes_per_s) - self.horizon + 1, 0)
        steps = np.arange(count)[:, None] + np.arange(self.horizon)
        later_submitted = np.cumsum(self.submitted_bytes_per_s, axis=1)
        unknown: Reals = self.unattributed_bytes_per_s[steps] + later_submitted[steps, np.arange(self.horizon)]
        return unknown

    def mean_levels(self, length_s: float) -> Reals:
        """Return the mean unexplained rate in the `length_s` before each instant (steps + 1); NaN if unmeasured."""
        width = max(1, round(length_s / self.step_s))
        is_known = np.isfinite(self.unattributed_bytes_per_s)
        sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(self.unattributed_bytes_per_s))])
        counts = np.concatenate([[0], np.cumsum(is_known)])
        last = np.arange(len(sums))
        first = np.maximum(last - width, 0)
        known_count = counts[last] - counts[first]
        levels: Reals = np.where(known_count > 0, (sums[last] - sums[first]) / np.maximum(known_count, 1), np.nan)
        return levels


def draw_unknown_traffic(
    history: TrafficHistory,
    level_bytes_per_s: float,
    hour: float,
    draw_count: int,
    seed: int,
    params: AnalogueParams | None = None,
) -> Reals:
    """Draw unknown traffic from analogues of the present.

    Parameters
    ----------
    history : TrafficHistory
        Past traffic.
    level_bytes_per_s : float
        Unexplained rate of the last hour [B/s]; NaN if unknown.
    hour : float
        Present hour of the day.
    draw_count : int
        Number of draws.
    seed : int
        Random seed.
    params : AnalogueParams, optional
        Similarity of instants.

    Returns
    -------
    Reals, shape (draws, horizon)
        Rates [B/s]; unmeasured steps have the weighted mean of all instants.

    Raises
    ------
    ValueError
        If the measured history is shorter than the horizon.

    """
    params = params or AnalogueParams()
    unknown = history.compute_unknown_rates()
    is_usable: Bools = np.logical_or.reduce(np.isfinite(unknown), axis=1)
    if not is_usable.any():
        raise ValueError("the measured past is shorter than the forecast horizon")
    weights = _similarity_weights(history, level_bytes_per_s, hour, is_usable, params)
    means = _compute_means(unknown, weights)
    sampled = _resample(weights, draw_count, seed)
    rates: Reals = np.maximum(np.where(np.isfinite(unknown[sampled]), unknown[sampled], means), 0.0)
    return rates


def _similarity_weights(
    history: TrafficHistory, level: float, hour: float, is_usable: Bools, params: AnalogueParams
) -> Reals:
    """Compute the probability of each instant, by a Gaussian kernel that widens until enough analogues contribute."""
    count = len(is_usable)
    floor = 1e-3 * max(float(np.nanmean(history.unattributed_bytes_per_s)), 1.0)
    log_levels = np.log(np.maximum(history.mean_levels(params.level_s)[:count], 0.0) + floor)
    level_difference = np.nan_to_num(log_levels - np.log(max(level, 0.0) + floor))
    hours = history.first_hour + np.arange(count) * (history.step_s / 3600.0) - hour
    hour_difference = np.abs((hours + _DAY_H / 2) % _DAY_H - _DAY_H / 2)
    has_days = len(history.unattributed_bytes_per_s) * history.step_s >= params.min_days * _DAY_H * 3600.0
    distance = (level_difference / params.level_error) ** 2 + (has_days * hour_difference / params.hour_error) ** 2
    distance -= distance[is_usable].min()
    min_count = min(params.min_analogues, 0.5 * int(is_usable.sum()))
    while True:
        weights: Reals = np.where(is_usable, np.exp(-distance / 2), 0.0)
        effective_count = weights.sum() ** 2 / (weights**2).sum()
        if effective_count >= min_count or distance[is_usable].max() < 1e-6:
            break
        distance /= 4
    probability: Reals = weights / weights.sum()
    return probability


def _compute_means(unknown: Reals, weights: Reals) -> Reals:
    """Compute the weighted mean of each step over measured instants; without any, the overall mean."""
    is_known = np.isfinite(unknown)
    known_weight = (weights[:, None] * is_known).sum(axis=0)
    sums = (weights[:, None] * np.nan_to_num(unknown)).sum(axis=0)
    overall = float(sums.sum() / known_weight.sum())
    means: Reals = np.divide(sums, known_weight, out=np.full_like(sums, overall), where=known_weight > 0)
    return means


def _resample(weights: Reals, count: int, seed: int) -> Ints:
    """Draw indices by systematic resampling with the given weights, in random order."""
    generator = np.random.default_rng(seed)
    at = (np.arange(count) + generator.random()) / count
    indices: Ints = np.minimum(np.searchsorted(np.cumsum(weights), at, side="right"), len(weights) - 1)
    shuffled: Ints = generator.permutation(indices)
    return shuffled
