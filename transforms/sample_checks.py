"""Compare samples of the same runs: own and shared traffic, also with different steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Ragged, Reals, pieces_of, places_within


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


@dataclass(frozen=True, slots=True)
class Excess:
    """Comparison of n runs' own bytes with all bytes that servers moved.

    Attributes
    ----------
    excess_bytes : (n,)
        Maximum over all intervals of the run's bytes that servers did not move.
    compared_ratio : (n,)
        Share of the run's bytes, or of its steps if it has none, at times when servers were measured.
    """

    excess_bytes: Reals
    compared_ratio: Reals


def measure_excess(own: Ragged, total: Ragged, max_delay_steps: Ints) -> Excess:
    """Measure by how much runs' own bytes exceed the bytes of all jobs, in the interval where they do so most.

    Parameters
    ----------
    own
        Bytes of the n runs in each step.
    total
        Bytes of all jobs in the same steps, and in `max_delay_steps` more steps before and after; NaN where not
        measured.
    max_delay_steps : (n,)
        Number of steps by which servers may move bytes earlier or later than the run: clocks differ, and caches write
        later or read ahead.

    Returns
    -------
    Excess
        Of each run.

    Notes
    -----
    With the cumulative bytes B of the run and S of the servers, and the maximum delay T, the excess is the maximum of
    B(t) - B(s) - (S(t + T) - S(s - T)) over all s < t, and 0 if that is negative. It is computed in one pass, with the
    running minimum of B(s) - S(s - T). An interval that reaches an unmeasured step has no excess. Ours: no paper
    compares traces with servers.
    """
    counts, run_bytes = own.counts, np.bincount(own.owner, own.values, len(own.counts))
    is_unknown = np.isnan(total.values)
    # an unmeasured step may hold all bytes of the run
    served = _accumulate(np.where(is_unknown, run_bytes[total.owner], total.values))
    moved, unknown_count = _accumulate(own.values), _accumulate(is_unknown.astype(np.float64))
    run, step = np.repeat(np.arange(len(counts)), counts + 1), places_within(counts + 1)
    edge, early = own.offsets[:-1][run] + step, total.offsets[:-1][run] + step
    late = early + 2 * max_delay_steps[run]
    lead = pl.DataFrame({"run": run, "lead": moved[edge] - served[early]})
    lowest = lead.select(pl.col("lead").cum_min().over("run")).to_series().to_numpy()
    excess = np.zeros(len(counts))
    np.maximum.at(excess, run, moved[edge] - served[late] - lowest)
    early, late = (of_edges[step < counts[run]] for of_edges in (early, late + 1))
    weight = np.where(run_bytes[own.owner] > 0, own.values, 1.0)
    compared = np.bincount(own.owner, weight * (unknown_count[late] == unknown_count[early]), len(counts))
    return Excess(excess, compared / np.maximum(np.bincount(own.owner, weight, len(counts)), 1e-300))


def _accumulate(values: Reals) -> Reals:
    return np.concatenate([[0.0], np.cumsum(values)])


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
        One rate for each value of `samples.rates`; never negative, NaN where part of the step was not measured. The
        two are subtracted on the coarser of both steps.
    """
    interference = np.full(len(samples.rates.values), np.nan)
    is_finer = samples.interval_s < total.interval_s
    for runs, subtract in ((np.flatnonzero(~is_finer), _subtract_here), (np.flatnonzero(is_finer), _subtract_there)):
        if len(runs):
            places = samples.rates.places_in(runs)
            interference[places] = subtract(samples.select_runs(runs), total.select_runs(runs))
    return interference


def _subtract_here(samples: RunSamples, total: RunSamples) -> Reals:
    """Subtract samples from the total on the steps of the samples."""
    rates: Reals = np.maximum(_mean_rates(total, *_edges(samples)) - samples.rates.values, 0.0)
    return rates


def _subtract_there(samples: RunSamples, total: RunSamples) -> Reals:
    """Subtract samples from the total on the steps of the total, which are coarser."""
    own = _mean_rates(samples, *_edges(total), is_zero_outside=True)
    others = Ragged(np.maximum(total.rates.values - own, 0.0), total.rates.offsets)
    return _mean_rates(RunSamples(others, total.start_s, total.interval_s), *_edges(samples))


def _edges(samples: RunSamples) -> tuple[Ints, Reals, Reals]:
    """Return the run of each step, and its edges [s]."""
    run = samples.rates.owner
    left = samples.start_s[run] + places_within(samples.rates.counts) * samples.interval_s[run]
    return run, left, left + samples.interval_s[run]


def _mean_rates(fine: RunSamples, run: Ints, left: Reals, right: Reals, *, is_zero_outside: bool = False) -> Reals:
    """Mean rates of runs between instants; NaN where any part was not measured, unless that is outside of the run."""
    begin, end = (_to_steps(fine, run, edge) for edge in (left, right))
    missing = np.isnan(fine.rates.values)
    volume = _integrate(fine, np.where(missing, 0.0, fine.rates.values), run, end, begin)
    missing_length = _integrate(fine, missing.astype(np.float64), run, end, begin)
    # before and after the finer sample, nothing is measured either
    is_inside = (begin >= 0) & (end <= fine.rates.counts[run])
    is_complete = (is_inside | is_zero_outside) & (missing_length == 0)
    mean: Reals = np.where(is_complete, volume / np.maximum(end - begin, 1e-300), np.nan)
    return mean


def _correlate_on_coarser(coarse: RunSamples, fine: RunSamples) -> Reals:
    run, left, right = _edges(coarse)
    mean = _mean_rates(fine, run, left, right)
    is_complete = ~np.isnan(mean) & ~np.isnan(coarse.rates.values)
    return _pearson(coarse.rates.values[is_complete], mean[is_complete], run[is_complete], len(coarse.start_s))


def _to_steps(fine: RunSamples, run: Ints, at_s: Reals) -> Reals:
    """Convert instants to fractional steps, without rounding errors at edges."""
    return np.round((at_s - fine.start_s[run]) / fine.interval_s[run], 6)


def _integrate(fine: RunSamples, values: Reals, run: Ints, end: Reals, begin: Reals) -> Reals:
    """Integrate values, in steps, between fractional steps of runs."""
    total = _accumulate(values)
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
