"""Compare two samples of the same runs with different steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, pieces_of


@dataclass(frozen=True, slots=True)
class RunSamples:
    """Samples of n runs.

    Attributes
    ----------
    rates : n pieces
        Mean rate of each step [bytes per second]; NaN where not measured.
    start_s : (n,)
        Start of the first step [s].
    interval_s : (n,)
        Length of a step [s].
    """

    rates: Ragged
    start_s: Reals
    interval_s: Reals

    def select_runs(self, runs: Ints) -> RunSamples:
        """Copy the samples of the runs with these indices, in the given order."""
        return RunSamples(pieces_of(self.rates, runs), self.start_s[runs], self.interval_s[runs])


def correlate_samples(first: RunSamples, second: RunSamples) -> Reals:
    """Compute Pearson's correlation of the two samples of each run, on the coarser of both steps.

    Parameters
    ----------
    first, second
        Samples of the same n runs.

    Returns
    -------
    (n,)
        Steps with any unmeasured part are excluded; NaN if a sample is constant in all other steps.
    """
    correlation = np.full(len(first.start_s), np.nan)
    is_finer = first.interval_s <= second.interval_s
    for runs, fine, coarse in ((np.flatnonzero(is_finer), first, second), (np.flatnonzero(~is_finer), second, first)):
        if len(runs):
            correlation[runs] = _correlate_on_coarser(coarse.select_runs(runs), fine.select_runs(runs))
    return correlation


def estimate_interference(samples: RunSamples, total: RunSamples) -> Reals:
    """Estimate the rates of other jobs during the steps of runs' own samples.

    Parameters
    ----------
    samples
        Traffic of the n runs.
    total
        All traffic during the same runs.

    Returns
    -------
    (values,)
        One rate for each value of `samples.rates`; never negative, NaN where part of the step was not measured.
    """
    run = samples.rates.owner
    left = samples.start_s[run] + (np.arange(len(run)) - samples.rates.offsets[run]) * samples.interval_s[run]
    mean = _mean_rates(total, run, left, left + samples.interval_s[run])
    interference: Reals = np.maximum(mean - samples.rates.values, 0.0)
    return interference


def _mean_rates(fine: RunSamples, run: Ints, left: Reals, right: Reals) -> Reals:
    """Mean rates of runs between instants; NaN where any part was not measured."""
    begin, end = (_to_steps(fine, run, edge) for edge in (left, right))
    missing = np.isnan(fine.rates.values)
    volume = _integrate(fine, np.where(missing, 0.0, fine.rates.values), run, end, begin)
    missing_length = _integrate(fine, missing.astype(np.float64), run, end, begin)
    # before and after the finer sample, nothing is measured either
    is_complete = (begin >= 0) & (end <= fine.rates.counts[run]) & (missing_length == 0)
    mean: Reals = np.where(is_complete, volume / np.maximum(end - begin, 1e-300), np.nan)
    return mean


def _correlate_on_coarser(coarse: RunSamples, fine: RunSamples) -> Reals:
    run = coarse.rates.owner
    left = coarse.start_s[run] + (np.arange(len(run)) - coarse.rates.offsets[run]) * coarse.interval_s[run]
    mean = _mean_rates(fine, run, left, left + coarse.interval_s[run])
    is_complete = ~np.isnan(mean) & ~np.isnan(coarse.rates.values)
    return _pearson(coarse.rates.values[is_complete], mean[is_complete], run[is_complete], len(coarse.start_s))


def _to_steps(fine: RunSamples, run: Ints, at_s: Reals) -> Reals:
    """Convert instants to fractional steps, without rounding errors at edges."""
    return np.round((at_s - fine.start_s[run]) / fine.interval_s[run], 6)


def _integrate(fine: RunSamples, values: Reals, run: Ints, end: Reals, begin: Reals) -> Reals:
    """Integrate values, in steps, between fractional steps of runs."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    offsets, counts = fine.rates.offsets[:-1][run], fine.rates.counts[run]

    def integrate_to(place: Reals) -> Reals:
        inside = np.clip(place, 0, counts)
        step = np.minimum(inside.astype(np.int64), np.maximum(counts - 1, 0))
        at = offsets + step
        integral: Reals = total[at] + (inside - step) * (total[np.minimum(at + 1, len(total) - 1)] - total[at])
        return integral

    return integrate_to(end) - integrate_to(begin)


def _pearson(x: Reals, y: Reals, run: Ints, count: int) -> Reals:
    """Pearson's correlation of the values of each run."""
    number = np.bincount(run, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        centered = [values - (np.bincount(run, values, count) / number)[run] for values in (x, y)]
        products = [np.bincount(run, centered[a] * centered[b], count) for a, b in ((0, 1), (0, 0), (1, 1))]
        correlation: Reals = products[0] / np.sqrt(products[1] * products[2])
    np.clip(correlation, -1.0, 1.0, out=correlation)
    return correlation
