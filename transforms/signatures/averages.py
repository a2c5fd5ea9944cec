"""Extract the mean, the median or a low quantile of preprocessed samples: baselines for signature methods.

The samples are combined second by second. They have equal durations (`preprocessing`), but are not aligned otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.preprocessing import PreprocessedSamples, preprocess
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: level of the `quantile` method: the best of 0.2 to 0.5 on simulated sites; interference is additive, so the median is
#: biased upward; bursts drift, so lower quantiles miss them
DEFAULT_LEVEL = 0.35
#: minimum length of columns that are partitioned; shorter columns are sorted, which is faster for them
_MIN_PARTITION_SIZE = 100


def extract_mean(sample_set: SampleSet) -> Signature:
    """Average the preprocessed samples in each second."""
    samples = preprocess(sample_set)
    return _build_signature(nan_mean(samples.values), samples)


def extract_median(sample_set: SampleSet) -> Signature:
    """Take the median of the preprocessed samples in each second."""
    return extract_quantile(sample_set, 0.5)


def extract_quantile(sample_set: SampleSet, level: float = DEFAULT_LEVEL) -> Signature:
    """Take a quantile of the preprocessed samples in each second."""
    samples = preprocess(sample_set)
    return _build_signature(nan_quantile(samples.values, level), samples)


def nan_mean(values: Reals) -> Reals:
    """Compute the mean over the runs at each point, ignoring NaN, without overflow.

    Parameters
    ----------
    values : (runs, points)
        Values in any unit; NaN where not measured.

    Returns
    -------
    (points,)
        NaN where no run was measured.
    """
    is_known = np.isfinite(values)
    count = is_known.sum(axis=0)
    known = np.where(is_known, values, 0.0)
    # scaling by a power of 2 is exact, and keeps sums of huge rates in range
    exponent = np.frexp(np.abs(known).max(axis=0, initial=0.0))[1]
    with np.errstate(under="ignore"):
        total = np.ldexp(known, -exponent).sum(axis=0)
        mean = np.ldexp(total / np.maximum(count, 1), exponent)
    return np.where(count > 0, mean, np.nan)


def nan_quantile(values: Reals, level: float) -> Reals:
    """Compute a quantile over the runs at each point, ignoring NaN.

    Parameters
    ----------
    values : (runs, points)
        Values in any unit; NaN where not measured.
    level
        From 0 to 1.

    Returns
    -------
    (points,)
        NaN where no run was measured.

    Raises
    ------
    ValueError
        If the level is not in the range from 0 to 1.

    Notes
    -----
    Interpolates linearly between ranks, as `numpy.quantile` does: type 7 of Hyndman and Fan, 1996, DOI 10.2307/2684934.
    """
    quantile: Reals = nan_quantiles(values, (level,))[0]
    return quantile


def nan_quantiles(values: Reals, levels: Sequence[float]) -> Reals:
    """Compute several quantiles over the runs at each point, ignoring NaN; see `nan_quantile`.

    Parameters
    ----------
    values : (runs, points)
        Values in any unit; NaN where not measured.
    levels : k
        From 0 to 1.

    Returns
    -------
    (k, points)
        NaN where no run was measured.

    Raises
    ------
    ValueError
        If a level is not in the range from 0 to 1.
    """
    if not all(0 <= level <= 1 for level in levels):
        raise ValueError("level must be between 0 and 1")
    quantiles = np.full((len(levels), values.shape[1]), np.nan)
    if not len(values):
        return quantiles
    is_known = np.isfinite(values)
    if is_known.all():
        ordered = _order_columns(values, levels)
        return np.stack([quantile_of_sorted(ordered, level) for level in levels])
    count = is_known.sum(axis=0)
    ordered = np.sort(np.where(is_known, values, np.inf), axis=0)
    known = np.where(count > 0, ordered, 0.0)
    max_rank, points = np.maximum(count - 1, 0), np.arange(values.shape[1])
    for row, level in enumerate(levels):
        rank = level * max_rank
        lower = np.floor(rank).astype(np.int64)
        low = known[lower, points]
        with np.errstate(under="ignore"):
            quantile = low + (known[np.minimum(lower + 1, max_rank), points] - low) * (rank - lower)
        quantiles[row] = np.where(count > 0, quantile, np.nan)
    return quantiles


def _order_columns(values: Reals, levels: Sequence[float]) -> Reals:
    """Sort columns (runs, points); long columns are sorted only as far as the quantiles of these levels require."""
    last = len(values) - 1
    if last < _MIN_PARTITION_SIZE:
        return np.sort(values, axis=0)
    lower = [int(level * last) for level in levels]
    return np.partition(values, sorted({*lower, *(min(rank + 1, last) for rank in lower)}), axis=0)


def quantile_of_sorted(ordered: Reals, level: float) -> Reals:
    """Compute a quantile over the runs, from values that are sorted along the runs; see `nan_quantile`.

    Parameters
    ----------
    ordered : (..., runs, points)
        Values, ascending along the second-last axis, without NaN.
    level
        From 0 to 1.

    Returns
    -------
    (..., points)
    """
    last = ordered.shape[-2] - 1
    rank = level * last
    low, high = ordered[..., int(rank), :], ordered[..., min(int(rank) + 1, last), :]
    with np.errstate(under="ignore"):
        quantile: Reals = low + (high - low) * (rank - int(rank))
    return quantile


def row_medians(values: Reals) -> Reals:
    """Compute the median of each row (..., 1) of values (..., n) without NaN; faster than NumPy for short rows."""
    ordered, lower, upper = np.sort(values, axis=-1), (values.shape[-1] - 1) // 2, values.shape[-1] // 2
    medians: Reals = (ordered[..., lower : lower + 1] + ordered[..., upper : upper + 1]) * 0.5
    return medians


def median_1d(values: Reals) -> float:
    """Compute the median of one or more numbers without NaN."""
    return float(row_medians(values[None])[0, 0])


def quantile_1d(values: Reals, level: float) -> float:
    """Compute a quantile of one or more numbers without NaN: equal to `numpy.quantile`, but faster for few numbers.

    Like NumPy, it interpolates from the nearer of the two neighbors.
    """
    ordered = _order_columns(values[:, None], (level,))[:, 0]
    rank = level * (len(ordered) - 1)
    lower = int(rank)
    fraction = rank - lower
    low, high = ordered.item(lower), ordered.item(min(lower + 1, len(ordered) - 1))
    return high - (high - low) * (1.0 - fraction) if fraction >= 0.5 else low + (high - low) * fraction


def replace_nan(values: Reals) -> Reals:
    """Replace NaN by 0; unlike with `numpy.nan_to_num`, infinities remain."""
    filled: Reals = np.where(np.isnan(values), 0.0, values)
    return filled


def _build_signature(curve: Reals, samples: PreprocessedSamples) -> Signature:
    """Convert a curve to a signature; points where no run was measured are interpolated linearly."""
    if not len(samples.values):
        return Signature.missing("too_few_samples")
    known = np.flatnonzero(np.isfinite(curve))
    if not (curve[known] > 0).any():
        return Signature.missing("no_io", samples.background_bytes_per_s)
    curve = np.interp(np.arange(len(curve)), known, curve[known])
    return Signature.from_curve(curve, detect_bursts(curve), samples.background_bytes_per_s)
