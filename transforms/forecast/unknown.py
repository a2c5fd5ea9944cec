"""What will flow of which nobody knows yet: jobs that are not submitted yet, transfers that are no jobs, no signature.

It is drawn from the past, as a whole: what was measured in the hours after an instant, less what signatures explain of
jobs that were submitted by then, is what nobody could know at that instant. Instants are the likelier the more alike
they are: at the same hour of the day, and after an hour in which about as much flowed of which nobody knew (analogues:
Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", 1969,
doi:10.1175/1520-0469(1969)26<636:APARBN>2.0.CO;2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals

_DAY_H = 24.0


@dataclass(frozen=True, slots=True)
class UnknownParams:
    """How alike times have to be; the values are ours: of three days, hours tell less than they cost in analogues.

    level_error: how much the levels of two instants may differ, as a standard deviation of the logarithm. hour_error:
    how many hours of the day they may be apart, likewise; least_days: hours count where the past is so long.
    level_s: the level is that of so long a time before. least_analogues: where fewer instants in effect are alike, all
    that is asked of likeness is halved until there are so many.
    """

    level_error: float = 0.5
    hour_error: float = 2.0
    least_days: float = 7.0
    level_s: float = 3600.0
    least_analogues: float = 24.0


@dataclass(frozen=True, slots=True)
class Past:
    """What nobody could know, in steps of a file system's past: step k is from time k to k + 1.

    unexplained_bytes_per_s (steps): NaN where nothing was measured. submitted_bytes_per_s (steps, horizon): what is
    explained of jobs that were submitted 0, 1, 2 ... steps before the step in which it flowed. step_s: how long a step
    is; first_hour: the hour of the day (0 to 24) at which the first one begins.
    """

    unexplained_bytes_per_s: Reals
    submitted_bytes_per_s: Reals
    step_s: float
    first_hour: float

    @property
    def horizon(self) -> int:
        """How many steps after an instant can be told."""
        return int(self.submitted_bytes_per_s.shape[1])

    def after(self) -> Reals:
        """Return what flowed in the steps after each instant that was not known at it (instants, horizon).

        Instant k is at the beginning of step k; those after which there are too few steps are left out.
        """
        count = max(len(self.unexplained_bytes_per_s) - self.horizon + 1, 0)
        steps = np.arange(count)[:, None] + np.arange(self.horizon)
        unsubmitted = np.cumsum(self.submitted_bytes_per_s, axis=1)
        found: Reals = self.unexplained_bytes_per_s[steps] + unsubmitted[steps, np.arange(self.horizon)]
        return found

    def levels(self, length_s: float) -> Reals:
        """Return what was unexplained in the mean of so long a time before each instant (steps + 1); NaN: unknown."""
        width = max(1, round(length_s / self.step_s))
        is_known = np.isfinite(self.unexplained_bytes_per_s)
        sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(self.unexplained_bytes_per_s))])
        counts = np.concatenate([[0], np.cumsum(is_known)])
        last = np.arange(len(sums))
        first = np.maximum(last - width, 0)
        known = counts[last] - counts[first]
        found: Reals = np.where(known > 0, (sums[last] - sums[first]) / np.maximum(known, 1), np.nan)
        return found


def drawn_unknown(
    past: Past, level_bytes_per_s: float, hour: float, draw_count: int, seed: int, params: UnknownParams | None = None
) -> Reals:
    """Draw what will flow of which nobody knows yet (draws, horizon).

    level_bytes_per_s: what was unexplained in the last hour, NaN where that is not known; hour: of the day, now.
    Raises ValueError where the past is shorter than what is asked for, or was not measured.
    """
    params = params or UnknownParams()
    after = past.after()
    is_usable: Bools = np.logical_or.reduce(np.isfinite(after), axis=1)
    if not is_usable.any():
        raise ValueError("the past is shorter than the time to come")
    weights = _weights(past, level_bytes_per_s, hour, is_usable, params)
    means = _means(after, weights)
    chosen = _systematic(weights, draw_count, seed)
    found: Reals = np.maximum(np.where(np.isfinite(after[chosen]), after[chosen], means), 0.0)
    return found


def _weights(past: Past, level: float, hour: float, is_usable: Bools, params: UnknownParams) -> Reals:
    """Return how likely each instant is."""
    count = len(is_usable)
    floor = 1e-3 * max(float(np.nanmean(past.unexplained_bytes_per_s)), 1.0)
    levels = np.log(np.maximum(past.levels(params.level_s)[:count], 0.0) + floor)
    apart = np.nan_to_num(levels - np.log(max(level, 0.0) + floor))
    hours = past.first_hour + np.arange(count) * (past.step_s / 3600.0) - hour
    hours_apart = np.abs((hours + _DAY_H / 2) % _DAY_H - _DAY_H / 2)
    has_days = len(past.unexplained_bytes_per_s) * past.step_s >= params.least_days * _DAY_H * 3600.0
    unlike = (apart / params.level_error) ** 2 + (has_days * hours_apart / params.hour_error) ** 2
    unlike -= unlike[is_usable].min()
    least = min(params.least_analogues, 0.5 * int(is_usable.sum()))
    while True:
        weights: Reals = np.where(is_usable, np.exp(-unlike / 2), 0.0)
        if weights.sum() ** 2 / (weights**2).sum() >= least or unlike[is_usable].max() < 1e-6:
            break
        unlike /= 4
    likely: Reals = weights / weights.sum()
    return likely


def _means(after: Reals, weights: Reals) -> Reals:
    """Return what is to be expected of each step, of those instants after which it was measured; else of any step."""
    known = np.isfinite(after)
    own = (weights[:, None] * known).sum(axis=0)
    sums = (weights[:, None] * np.nan_to_num(after)).sum(axis=0)
    every = float(sums.sum() / own.sum())
    means: Reals = np.divide(sums, own, out=np.full_like(sums, every), where=own > 0)
    return means


def _systematic(weights: Reals, count: int, seed: int) -> Ints:
    """Return places by their weights, each as often as its weight says, in an order drawn by lot."""
    generator = np.random.default_rng(seed)
    at = (np.arange(count) + generator.random()) / count
    places: Ints = np.minimum(np.searchsorted(np.cumsum(weights), at, side="right"), len(weights) - 1)
    shuffled: Ints = generator.permutation(places)
    return shuffled
