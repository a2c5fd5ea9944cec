"""Compute weighted quantiles across aligned runs at each point."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals

#: value that sorts after all others; finite, since infinity times 0 would be NaN
_SENTINEL = np.finfo(np.float64).max
#: minimum number of values for which separating all-zero columns is faster than sorting them
_MIN_ZERO_SCAN_SIZE = 1 << 13


def weighted_quantiles(values: Reals, weights: Reals | Bools, levels: Reals) -> Reals:
    """Compute weighted quantiles over the runs at each point.

    Parameters
    ----------
    values : (runs, points)
        Values in any unit; finite where their weight is positive.
    weights : (runs, points) or (runs, 1)
        Non-negative weights, or a mask.
    levels : (k,)
        From 0 to 1.

    Returns
    -------
    (k, points)
        Quantiles; NaN at points without a weighted value.

    Notes
    -----
    Quantiles are interpolated linearly between the midpoints of the values' weights in the cumulative weight. Level 0
    is at the first midpoint and level 1 at the last one. For equal weights, these are NumPy's quantiles. Ties are
    sorted by row.
    """
    quantiles = np.full((len(levels), values.shape[1]), np.nan)
    if not len(values) or not len(levels):
        return quantiles
    spread: npt.NDArray[Any] = weights if weights.shape == values.shape else np.broadcast_to(weights, values.shape)
    if spread.dtype == np.bool_:
        return _quantiles_with_mask(values, spread, levels)
    if values.size < _MIN_ZERO_SCAN_SIZE:
        return _compute_quantiles(values, spread, levels)
    is_zero = _are_zero(values, spread, float(levels.max()))
    quantiles[:, is_zero] = 0.0
    rest = (~is_zero).nonzero()[0]
    if len(rest) == len(is_zero):
        return _compute_quantiles(values, spread, levels)
    quantiles[:, rest] = _compute_quantiles(values[:, rest], spread[:, rest], levels)
    return quantiles


def _are_zero(values: Reals, weights: npt.NDArray[Any], level: float) -> Bools:
    """Mark columns (points) in which zeros have enough weight for all quantiles up to a level to be 0.

    This applies to most columns, which need no sort. The test is conservative: it may miss borderline columns.
    """
    zero_weight = np.where(values == 0.0, weights, 0.0)
    total, largest = zero_weight.sum(axis=0), zero_weight.max(axis=0)
    # half of the last zero's weight is less than `largest`, and rounding errors are far less
    required = (level * (1.0 + 1e-9) + 1e-12) * weights.sum(axis=0)
    is_zero: Bools = (total - largest >= required) & (total > 0) & (values.min(axis=0) >= 0.0)
    return is_zero


def _compute_quantiles(values: Reals, weights: npt.NDArray[Any], levels: Reals) -> Reals:
    """Compute `weighted_quantiles` of a matrix with at least one row, by sorting each column."""
    point_count = values.shape[1]
    has_weight = weights > 0
    point = np.arange(point_count)
    places = _argsort_columns(values, has_weight)
    places *= point_count
    places += point
    spread = weights.ravel().take(places)
    middle = _cumulative_sums(spread) - spread / 2
    last = np.maximum(np.count_nonzero(has_weight, axis=0) - 1, 0)
    flat, middles, places = values.ravel(), middle.ravel(), places.ravel()
    low_end, high_end = middle[0], middles.take(last * point_count + point)
    quantiles = np.empty((len(levels), point_count))
    for row, level in enumerate(levels):
        target = low_end + level * (high_end - low_end)
        above = np.minimum(np.count_nonzero(middle < target, axis=0), last)
        below = np.maximum(above - 1, 0) * point_count + point
        above = above * point_count + point
        low, width = middles.take(below), middles.take(above) - middles.take(below)
        fraction = np.divide(target - low, width, out=np.zeros(point_count), where=width > 0)
        at_low, at_high = flat.take(places.take(below)), flat.take(places.take(above))
        quantiles[row] = at_low * (1.0 - fraction) + at_high * fraction
    quantiles[:, ~has_weight.any(axis=0)] = np.nan
    return quantiles


def _quantiles_with_mask(values: Reals, mask: Bools, levels: Reals) -> Reals:
    """Compute `weighted_quantiles` for a mask.

    With a mask, rows do not matter: the cumulative weight at the midpoint of the k-th value is k + 0.5.
    """
    point, count = np.arange(values.shape[1]), np.count_nonzero(mask, axis=0)
    middle, last = np.arange(len(values)) + 0.5, np.maximum(count - 1, 0)
    targets = 0.5 + levels[:, None] * last
    above = np.minimum(middle.searchsorted(targets), last)
    below = np.maximum(above - 1, 0)
    # partitioning long columns at the few required ranks is faster than sorting them
    ordered = np.partition(np.where(mask, values, _SENTINEL).T, np.unique([below, above]), axis=1)
    fraction = np.where(above > below, targets - middle[below], 0.0)
    quantiles: Reals = ordered[point, below] * (1.0 - fraction) + ordered[point, above] * fraction
    quantiles[:, count == 0] = np.nan
    return quantiles


def _argsort_columns(values: Reals, has_weight: Bools) -> Ints:
    """Sort each column's rows by value (rows, points), stable; rows without weight come last.

    NumPy's stable sort takes more than twice as long, so only columns with ties use it. Most ties are zeros, which are
    made distinct by negative keys.
    """
    keys = np.where(has_weight, values, _SENTINEL)
    if not keys.min(initial=0.0) < 0.0:
        keys = np.where(keys == 0.0, np.arange(-len(keys), 0)[:, None], keys)
    columns = np.ascontiguousarray(keys.T)
    order = columns.argsort(axis=1)
    ordered = columns.ravel().take(order + (np.arange(len(columns)) * columns.shape[1])[:, None])
    is_tied = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] < _SENTINEL)).any(axis=1)
    order[is_tied] = columns[is_tied].argsort(axis=1, kind="stable")
    return np.ascontiguousarray(order.T)


def _cumulative_sums(values: Reals) -> Reals:
    """Cumulative sums down the columns (rows, points)."""
    if len(values) > values.shape[1]:
        return np.cumsum(values, axis=0)
    # row by row: `cumsum` processes one column after the other, six times slower
    sums = np.empty_like(values)
    sums[0] = values[0]
    for previous, row, current in zip(sums[:-1], values[1:], sums[1:], strict=True):
        np.add(previous, row, out=current)
    return sums
