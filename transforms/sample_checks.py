"""Two samples of one run held against each other, though their steps may differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, pieces_of


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples of runs (n): rates in each step, NaN where not measured, when the first step begins, and its length."""

    rates: Ragged
    started_s: Reals
    interval_s: Reals

    def of(self, runs: Ints) -> Sampled:
        """Return those of some runs."""
        return Sampled(pieces_of(self.rates, runs), self.started_s[runs], self.interval_s[runs])


def correlations(one: Sampled, other: Sampled) -> Reals:
    """Return Pearson's correlation of the two samples of each run (n), step by step of the coarser of both grids.

    Steps of which any part was not measured are left out; NaN where a sample is constant in what is left.
    """
    found = np.full(len(one.started_s), np.nan)
    is_finer = one.interval_s <= other.interval_s
    for runs, fine, coarse in ((np.flatnonzero(is_finer), one, other), (np.flatnonzero(~is_finer), other, one)):
        if len(runs):
            found[runs] = _on_the_coarser(coarse.of(runs), fine.of(runs))
    return found


def others(own: Sampled, shared: Sampled) -> Reals:
    """Return what others moved in each step of runs' own samples, by samples of all traffic (`own.rates.values`).

    NaN where a part of a step was not measured.
    """
    run = own.rates.owner
    left = own.started_s[run] + (np.arange(len(run)) - own.rates.offsets[run]) * own.interval_s[run]
    mean = _means(shared, run, left, left + own.interval_s[run])
    found: Reals = np.maximum(mean - own.rates.values, 0.0)
    return found


def _means(fine: Sampled, run: Ints, left: Reals, right: Reals) -> Reals:
    """Return the mean rates of runs between instants, NaN where a part of it was not measured."""
    begin, end = (_place(fine, run, edge) for edge in (left, right))
    missing = np.isnan(fine.rates.values)
    volume = _integral(fine, np.where(missing, 0.0, fine.rates.values), run, end, begin)
    lost = _integral(fine, missing.astype(np.float64), run, end, begin)
    # a part of a step that lies before the finer sample, or after it, is not measured either
    is_whole = (begin >= 0) & (end <= fine.rates.counts[run]) & (lost == 0)
    found: Reals = np.where(is_whole, volume / np.maximum(end - begin, 1e-300), np.nan)
    return found


def _on_the_coarser(coarse: Sampled, fine: Sampled) -> Reals:
    run = coarse.rates.owner
    left = coarse.started_s[run] + (np.arange(len(run)) - coarse.rates.offsets[run]) * coarse.interval_s[run]
    mean = _means(fine, run, left, left + coarse.interval_s[run])
    is_whole = ~np.isnan(mean) & ~np.isnan(coarse.rates.values)
    return _pearson(coarse.rates.values[is_whole], mean[is_whole], run[is_whole], len(coarse.started_s))


def _place(fine: Sampled, run: Ints, at_s: Reals) -> Reals:
    """Return instants as places in the finer sample, in steps; what is off an edge by rounding is on it."""
    return np.round((at_s - fine.started_s[run]) / fine.interval_s[run], 6)


def _integral(fine: Sampled, values: Reals, run: Ints, end: Reals, begin: Reals) -> Reals:
    total = np.concatenate([[0.0], np.cumsum(values)])
    offsets, counts = fine.rates.offsets[:-1][run], fine.rates.counts[run]

    def until(place: Reals) -> Reals:
        inside = np.clip(place, 0, counts)
        whole = np.minimum(inside.astype(np.int64), np.maximum(counts - 1, 0))
        at = offsets + whole
        moved: Reals = total[at] + (inside - whole) * (total[np.minimum(at + 1, len(total) - 1)] - total[at])
        return moved

    return until(end) - until(begin)


def _pearson(one: Reals, other: Reals, run: Ints, count: int) -> Reals:
    """Return the correlation of the values of each run."""
    number = np.bincount(run, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = [values - (np.bincount(run, values, count) / number)[run] for values in (one, other)]
        products = [np.bincount(run, off[a] * off[b], count) for a, b in ((0, 1), (0, 0), (1, 1))]
        found: Reals = products[0] / np.sqrt(products[1] * products[2])
    np.clip(found, -1.0, 1.0, out=found)
    return found
