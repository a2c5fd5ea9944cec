"""The mean, the median and low quantiles of preprocessed samples: what a signature method has to beat.

They take the samples as they are, second by second: nothing is aligned but the lengths (`preprocessing`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import bursts_of
from iosig.transforms.signatures.preprocessing import Preprocessed, preprocessed
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: of 20 to 50 % the best on simulated sites (ours): others' traffic is only ever added, so that the median is too high,
#: and bursts drift, so that a lower quantile misses them
LEVEL = 0.35
#: so many numbers are sorted sooner than parted at two places
_LONG = 100


def mean(one: SampleSet) -> Signature:
    """Return the mean of the preprocessed samples in each second."""
    samples = preprocessed(one)
    return _signature(means(samples.values), samples)


def median(one: SampleSet) -> Signature:
    """Return the median of the preprocessed samples in each second."""
    return quantile(one, 0.5)


def quantile(one: SampleSet, level: float = LEVEL) -> Signature:
    """Return a quantile of the preprocessed samples in each second."""
    samples = preprocessed(one)
    return _signature(quantiles(samples.values, level), samples)


def means(values: Reals) -> Reals:
    """Return the mean of what was measured at each point of samples (runs, points); NaN where nothing was."""
    is_known = np.isfinite(values)
    count = is_known.sum(axis=0)
    known = np.where(is_known, values, 0.0)
    # by a power of 2: a sum of huge rates leaves the range
    exponent = np.frexp(np.abs(known).max(axis=0, initial=0.0))[1]
    with np.errstate(under="ignore"):
        total = np.ldexp(known, -exponent).sum(axis=0)
        found = np.ldexp(total / np.maximum(count, 1), exponent)
    return np.where(count > 0, found, np.nan)


def quantiles(values: Reals, level: float) -> Reals:
    """Return a quantile of what was measured at each point of samples (runs, points); NaN where nothing was.

    Between two ranks linearly, as `numpy.quantile` does (type 7 of Hyndman and Fan, 10.2307/2684934).

    Raises
    ------
    ValueError : the level is not from 0 to 1

    """
    found: Reals = quantiles_at(values, (level,))[0]
    return found


def quantiles_at(values: Reals, levels: Sequence[float]) -> Reals:
    """Return several quantiles of what was measured at each point of samples (levels, points), as `quantiles` does."""
    if not all(0 <= level <= 1 for level in levels):
        raise ValueError("a quantile's level is from 0 to 1")
    found = np.full((len(levels), values.shape[1]), np.nan)
    if not len(values):
        return found
    is_known = np.isfinite(values)
    if is_known.all():
        ordered = _partly_ordered(values, levels)
        return np.stack([of_ordered(ordered, level) for level in levels])
    count = is_known.sum(axis=0)
    ordered = np.sort(np.where(is_known, values, np.inf), axis=0)
    known = np.where(count > 0, ordered, 0.0)
    most, places = np.maximum(count - 1, 0), np.arange(values.shape[1])
    for row, level in enumerate(levels):
        rank = level * most
        below = np.floor(rank).astype(np.int64)
        low = known[below, places]
        with np.errstate(under="ignore"):
            between = low + (known[np.minimum(below + 1, most), places] - low) * (rank - below)
        found[row] = np.where(count > 0, between, np.nan)
    return found


def _partly_ordered(values: Reals, levels: Sequence[float]) -> Reals:
    """Return columns (runs, points) in order of size, long ones at least where quantiles of such levels lie."""
    last = len(values) - 1
    if last < _LONG:
        return np.sort(values, axis=0)
    below = [int(level * last) for level in levels]
    return np.partition(values, sorted({*below, *(min(place + 1, last) for place in below)}), axis=0)


def of_ordered(ordered: Reals, level: float) -> Reals:
    """Return a quantile (..., points) of columns that are in order of size (..., runs, points), as `quantiles` does."""
    last = ordered.shape[-2] - 1
    rank = level * last
    low, high = ordered[..., int(rank), :], ordered[..., min(int(rank) + 1, last), :]
    with np.errstate(under="ignore"):
        found: Reals = low + (high - low) * (rank - int(rank))
    return found


def row_medians(values: Reals) -> Reals:
    """Return the median of each row (..., 1) of values (..., n), of short ones faster than NumPy does."""
    ordered, below, above = np.sort(values, axis=-1), (values.shape[-1] - 1) // 2, values.shape[-1] // 2
    found: Reals = (ordered[..., below : below + 1] + ordered[..., above : above + 1]) * 0.5
    return found


def middle_of(values: Reals) -> float:
    """Return the median of numbers (n, at least one), none of them NaN."""
    return float(row_medians(values[None])[0, 0])


def quantile_of(values: Reals, level: float) -> float:
    """Return a quantile of numbers (n, at least one), none of them NaN, as `numpy.quantile` does but quickly.

    To the last bit: from the nearer one of two neighbours.
    """
    ordered = _partly_ordered(values[:, None], (level,))[:, 0]
    rank = level * (len(ordered) - 1)
    below = int(rank)
    share = rank - below
    low, high = ordered.item(below), ordered.item(min(below + 1, len(ordered) - 1))
    return high - (high - low) * (1.0 - share) if share >= 0.5 else low + (high - low) * share


def without_gaps(values: Reals) -> Reals:
    """Return values with 0 where nothing was measured (NaN)."""
    found: Reals = np.where(np.isnan(values), 0.0, values)
    return found


def _signature(curve: Reals, samples: Preprocessed) -> Signature:
    """Return a curve as a signature; where no run was measured, the straight line between its neighbours."""
    if not len(samples.values):
        return Signature.nothing("too_few_samples")
    known = np.flatnonzero(np.isfinite(curve))
    if not (curve[known] > 0).any():
        return Signature.nothing("no_io", samples.background_bytes_per_s)
    curve = np.interp(np.arange(len(curve)), known, curve[known])
    return Signature.curve(curve, bursts_of(curve), samples.background_bytes_per_s)
