"""Bursts that runs bear out: how much likelier what each run does is with a burst of the application than without.

A low quantile of few runs among much foreign traffic holds bursts that others happen to share. What tells them from the
application's own is how runs lie above them: with a burst each run's rate is that burst's and what others add, and of
these it is known how they are distributed, from the run's own other times, above all how often they rest. So each rate
that a burst may have has a likelihood at each time, and where the best one is not likelier than none there is no burst.
A run may lack a burst, or be slowed in it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.signatures.bursts import height, joined, stretches

# All numbers here are ours, and were chosen on the families of simulated sites, on other seeds than the study's.

#: a height is so many bins of rates; a burst has no more than the second, and a run than the third
_BINS, _BURST_BINS, _RUN_BINS = 10, 15, 40
#: how probably a run does not have a burst that the others have
_LACK_RATIO = 0.05
#: in a burst a run may move less than it does alone, by up to this share of it, each bin less this much rarer
_SLOWED_RATIO, _SLOWED_DECAY = 0.3, 0.6
#: what others do in a run is as in all runs for this share of what is told of it; any rate is this probable at least
_POOLED_RATIO, _LEAST_SHARE = 0.3, 2e-3
#: times are judged together with those around them
_SMOOTH_S = 3.0
#: a burst is where a rate of this share of the height is so much likelier than none (logarithm), short dips included
_BURST_RATIO, _LEAST_LIKELIER, _DIP_S = 0.2, 0.5, 4.0
#: What others do lasts, so that so many seconds tell as much as one; how much likelier a burst has to be grows with how
#: often others may meet in a run: it is 0 in a run of the second
_LASTS_S, _ONCE_S = 8.0, 176.0
#: what is so near a burst is part of it
_EDGE_S = 6.0
#: others are told anew without the bursts so often
_ROUNDS = 3
#: others are at work in a run where it exceeds this share of the height; what is seldom, and what most of the time
_WORK_RATIO, _SELDOM_RATIO, _MOST_RATIO = 0.25, 0.35, 0.4


def borne_out(rates: Reals, curve: Reals, step_s: float) -> Bools:
    """Return where runs bear out a burst of a curve that they have in common (steps).

    rates (runs, steps), NaN where not measured; curve (steps), in the same unit: a low quantile of them, above 0
    somewhere; step_s: how long a step is.
    """
    highest = height(curve)
    bins = _binned(rates, highest)
    every = counted(bins)
    first = counted(_binned(rates - curve, highest)) if _are_plain(rates, curve, highest) else every
    is_burst = _bursts(likelier(bins, first), step_s)
    for _ in range(_ROUNDS - 1):
        before = is_burst
        is_burst = _bursts(likelier(bins, every - counted(bins.compress(before, axis=1))), step_s)
        if (is_burst == before).all():
            break
    return is_burst


def _are_plain(rates: Reals, curve: Reals, highest: float) -> bool:
    """Return whether what runs do beyond a curve of that height is what others do, before any burst is certain.

    So it is where others are seldom at work, or the curve is high for most of the time. Else others do all that runs
    do: what they share by chance is not to be left out of it.
    """
    is_high = curve > _BURST_RATIO * highest
    room = len(rates) * np.count_nonzero(~is_high)
    at_work = np.count_nonzero((rates > _WORK_RATIO * highest) & ~is_high) / room if room else 0.0
    return at_work < _SELDOM_RATIO or float(is_high.mean()) > _MOST_RATIO


def _binned(rates: Reals, highest: float) -> Ints:
    """Return the bins of rates (runs, steps); `_RUN_BINS` where not measured."""
    is_known = np.isfinite(rates)
    with np.errstate(over="ignore"):  # beyond all numbers is the last bin, too
        heights = np.where(is_known, rates, 0.0) / highest
        bins = np.clip(heights * _BINS, 0.0, _RUN_BINS - 1).astype(np.int64)
    return np.where(is_known, bins, _RUN_BINS)


def counted(bins: Ints) -> Ints:
    """Return how often each run (runs, any) is in each bin (runs, `_RUN_BINS` + 1)."""
    run_count, size = len(bins), _RUN_BINS + 1
    numbers = bins + size * np.arange(run_count)[:, None]
    return np.bincount(numbers.ravel(), minlength=run_count * size).reshape(run_count, size)


def likelier(bins: Ints, others: Ints) -> Reals:
    """Return how much likelier each rate of a burst is than none (steps, burst bins), a logarithm.

    bins (runs, steps): of the runs' rates; `_RUN_BINS` where not measured. others: how often what others do in each run
    is in each bin, as `counted` tells it.
    """
    run_count, count = bins.shape
    told = others[:, :_RUN_BINS].astype(np.float64)
    pooled = told.sum(axis=0) / max(1.0, told.sum())
    weight = _POOLED_RATIO * count
    alone = (told + weight * pooled) / (told.sum(axis=1, keepdims=True) + weight)
    alone = (1.0 - _LEAST_SHARE) * alone + _LEAST_SHARE / _RUN_BINS
    among = (alone @ _slowed()).reshape(run_count, _RUN_BINS, _BURST_BINS)
    shares = (1.0 - _LACK_RATIO) * among + _LACK_RATIO * alone[:, :, None]
    table = np.zeros((run_count, _RUN_BINS + 1, _BURST_BINS))
    table[:, :_RUN_BINS] = np.log(shares / shares[:, :, :1])
    found, one = np.zeros((count, _BURST_BINS)), np.empty((count, _BURST_BINS))
    for own, row in zip(bins, table, strict=True):
        np.take(row, own, axis=0, out=one, mode="clip")
        found += one
    return found


@lru_cache
def _slowed() -> Reals:
    """Return what becomes of others' rates among a burst: (others' bins, run bins * burst bins), each sums to 1.

    The burst adds its own rate, or less where it is slowed.
    """
    moved = np.zeros((_RUN_BINS, _RUN_BINS, _BURST_BINS))
    other = np.arange(_RUN_BINS)
    for own in range(_BURST_BINS):
        most = max(1, round(_SLOWED_RATIO * own)) if own else 0
        weights = _SLOWED_DECAY ** np.arange(most + 1)
        for less, weight in enumerate((weights / weights.sum()).tolist()):
            moved[other, np.clip(other + own - less, 0, _RUN_BINS - 1), own] += weight
    return moved.reshape(_RUN_BINS, -1)


def _bursts(told: Reals, step_s: float) -> Bools:
    """Return which times are in a burst that is likelier than none by enough."""
    from scipy.ndimage import uniform_filter1d

    smooth = uniform_filter1d(told, max(1, round(_SMOOTH_S / step_s)), axis=0, mode="nearest")
    best = smooth.argmax(axis=1)
    most = smooth[np.arange(len(best)), best]
    is_likelier = (best > _BURST_RATIO * _BINS) & (most > _LEAST_LIKELIER)
    first, after = joined(*stretches(is_likelier), _DIP_S / step_s)
    total = np.concatenate([[0.0], np.cumsum(most)])
    wanted = max(0.0, float(np.log(len(best) * step_s / _ONCE_S)))
    is_enough = total[after] - total[first] > wanted * np.maximum(after - first, _LASTS_S / step_s)
    edge = round(_EDGE_S / step_s)
    found: Bools = np.zeros(len(best), dtype=np.bool_)
    for begin, end in zip(first[is_enough].tolist(), after[is_enough].tolist(), strict=True):
        found[max(0, begin - edge) : end + edge] = True
    return found
