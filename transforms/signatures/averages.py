"""The mean, the median and low quantiles of preprocessed samples: baselines that a signature method has to beat.

They combine the samples second by second. Apart from the durations (`preprocessing`), nothing is aligned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.preprocessing import PreprocessedSamples, preprocess
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: Level of the `quantile` method: the best of 0.2 to 0.5 on simulated sites. Interference is additive, so the median is
#: biased upward; bursts drift, so lower quantiles miss them.
DEFAULT_LEVEL = 0.35
#: columns of this many values or more are partitioned, shorter ones sorted: whichever is faster
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
    """Mean over the runs at each point, ignoring NaN and safe from overflow.

    Parameters
    ----------
    values : (runs, points)
        Any unit; NaN where not measured.

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
    """Quantile over the runs at each point, ignoring NaN.

    Parameters
    ----------
    values : (runs, points)
        Any unit; NaN where not measured.
    level
        From 0 to 1.

    Returns
    -------
    (points,)
        NaN where no run was measured.

    Raises
    ------
    ValueError
        If the level is outside of 0 to 1.

    Notes
    -----
    Linear between ranks, as `numpy.quantile` does: type 7 of Hyndman and Fan, 1996, DOI 10.2307/2684934.
    """
    quantile: Reals = nan_quantiles(values, (level,))[0]
    return quantile


def nan_quantiles(values: Reals, levels: Sequence[float]) -> Reals:
    """Several quantiles over the runs at each point, ignoring NaN; see `nan_quantile`.

    Parameters
    ----------
    values : (runs, points)
        Any unit; NaN where not measured.
    levels : k
        From 0 to 1.

    Returns
    -------
    (k, points)
        NaN where no run was measured.

    Raises
    ------
    ValueError
        If a level is outside of 0 to 1.
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
    """Sort columns (runs, points); long ones only as far as quantiles of these levels need."""
    last = len(values) - 1
    if last < _MIN_PARTITION_SIZE:
        return np.sort(values, axis=0)
    lower = [int(level * last) for level in levels]
    return np.partition(values, sorted({*lower, *(min(rank + 1, last) for rank in lower)}), axis=0)


def quantile_of_sorted(ordered: Reals, level: float) -> Reals:
    """Quantile over the runs of values that are sorted along them; see `nan_quantile`.

    Parameters
    ----------
    ordered : (..., runs, points)
        Ascending along the second-last axis, without NaN.
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
    """Median of each row (..., 1) of values (..., n) without NaN; faster than NumPy for short rows."""
    ordered, lower, upper = np.sort(values, axis=-1), (values.shape[-1] - 1) // 2, values.shape[-1] // 2
    medians: Reals = (ordered[..., lower : lower + 1] + ordered[..., upper : upper + 1]) * 0.5
    return medians


def median_1d(values: Reals) -> float:
    """Median of one or more numbers without NaN."""
    return float(row_medians(values[None])[0, 0])


def quantile_1d(values: Reals, level: float) -> float:
    """Quantile of one or more numbers without NaN: `numpy.quantile`, bit for bit, but faster for few.

    Like NumPy, it interpolates from the nearer of the two neighbours.
    """
    ordered = _order_columns(values[:, None], (level,))[:, 0]
    rank = level * (len(ordered) - 1)
    lower = int(rank)
    fraction = rank - lower
    low, high = ordered.item(lower), ordered.item(min(lower + 1, len(ordered) - 1))
    return high - (high - low) * (1.0 - fraction) if fraction >= 0.5 else low + (high - low) * fraction


def replace_nan(values: Reals) -> Reals:
    """Replace NaN by 0, and nothing else; `numpy.nan_to_num` replaces infinities, too."""
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
