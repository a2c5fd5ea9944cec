"""Weighted quantiles across runs: what so much of the weight of the aligned runs does not exceed, at each point."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals

#: not less than any value: finite, so that it is no NaN after a multiplication
_LAST = np.finfo(np.float64).max
#: of fewer values it takes longer to look for zeros than to sort them
_MANY_VALUES = 1 << 13


def weighted_quantiles(values: Reals, weights: Reals | Bools, levels: Reals) -> Reals:
    """Return quantiles across the rows of each column.

    Parameters
    ----------
    values : shape (runs, points), any unit; finite where they count
    weights : shape (runs, points) or (runs, 1), 0 or more, or whether a value counts; one of weight 0 does not
    levels : shape (k,), 0 to 1

    Returns
    -------
    Reals : shape (k, points); NaN where no value counts

    Between values it is linear in the weights' running total, of which half of each end's own weight lies outside: for
    equal weights these are NumPy's quantiles. Of equal values the one of an earlier row comes first.

    """
    found = np.full((len(levels), values.shape[1]), np.nan)
    if not len(values) or not len(levels):
        return found
    spread: npt.NDArray[Any] = weights if weights.shape == values.shape else np.broadcast_to(weights, values.shape)
    if spread.dtype == np.bool_:
        return _equally_weighted(values, spread, levels)
    if values.size < _MANY_VALUES:
        return _quantiles(values, spread, levels)
    is_zero = _are_zero(values, spread, float(levels.max()))
    found[:, is_zero] = 0.0
    rest = (~is_zero).nonzero()[0]
    if len(rest) == len(is_zero):
        return _quantiles(values, spread, levels)
    found[:, rest] = _quantiles(values[:, rest], spread[:, rest], levels)
    return found


def _are_zero(values: Reals, weights: npt.NDArray[Any], level: float) -> Bools:
    """Mark columns (points) in which so much of the weight is that of zeros that no quantile up to a level is more.

    Most times are such, and need not be sorted. Others may be, too, if by little.
    """
    held = np.where(values == 0.0, weights, 0.0)
    total, most = held.sum(axis=0), held.max(axis=0)
    # what lies below the middle of the last zero's weight is no more than this, and rounding is far less
    wanted = (level * (1.0 + 1e-9) + 1e-12) * weights.sum(axis=0)
    found: Bools = (total - most >= wanted) & (total > 0) & (values.min(axis=0) >= 0.0)
    return found


def _quantiles(values: Reals, weights: npt.NDArray[Any], levels: Reals) -> Reals:
    """Return quantiles of each column, as `weighted_quantiles` does, of one row or more."""
    point_count = values.shape[1]
    is_counted = weights > 0
    point = np.arange(point_count)
    places = _ordered(values, is_counted)
    places *= point_count
    places += point
    spread = weights.ravel().take(places)
    middle = _totals(spread) - spread / 2
    last = np.maximum(np.count_nonzero(is_counted, axis=0) - 1, 0)
    flat, middles, places = values.ravel(), middle.ravel(), places.ravel()
    low_end, high_end = middle[0], middles.take(last * point_count + point)
    found = np.empty((len(levels), point_count))
    for row, level in enumerate(levels):
        target = low_end + level * (high_end - low_end)
        above = np.minimum(np.count_nonzero(middle < target, axis=0), last)
        below = np.maximum(above - 1, 0) * point_count + point
        above = above * point_count + point
        low, width = middles.take(below), middles.take(above) - middles.take(below)
        share = np.divide(target - low, width, out=np.zeros(point_count), where=width > 0)
        at_low, at_high = flat.take(places.take(below)), flat.take(places.take(above))
        found[row] = at_low * (1.0 - share) + at_high * share
    found[:, ~is_counted.any(axis=0)] = np.nan
    return found


def _equally_weighted(values: Reals, is_counted: Bools, levels: Reals) -> Reals:
    """Return quantiles of each column, as `weighted_quantiles` does where values only count or not.

    Then it does not matter which row a value is from: the middle of the k-th one's weight is k + 0.5.
    """
    point, count = np.arange(values.shape[1]), np.count_nonzero(is_counted, axis=0)
    middle, last = np.arange(len(values)) + 0.5, np.maximum(count - 1, 0)
    targets = 0.5 + levels[:, None] * last
    above = np.minimum(middle.searchsorted(targets), last)
    below = np.maximum(above - 1, 0)
    # long columns are parted at the few places that are asked for sooner than they are sorted
    ordered = np.partition(np.where(is_counted, values, _LAST).T, np.unique([below, above]), axis=1)
    share = np.where(above > below, targets - middle[below], 0.0)
    found: Reals = ordered[point, below] * (1.0 - share) + ordered[point, above] * share
    found[:, count == 0] = np.nan
    return found


def _ordered(values: Reals, is_counted: Bools) -> Ints:
    """Return each column's rows in order of their values (rows, points); those that do not count come last.

    Of equal values the earlier row comes first. NumPy's sort that keeps their order takes more than twice as long, so
    that it gets only columns with equal ones; of these zeros are most, and are told apart by numbers of their own.
    """
    keys = np.where(is_counted, values, _LAST)
    if not keys.min(initial=0.0) < 0.0:
        keys = np.where(keys == 0.0, np.arange(-len(keys), 0)[:, None], keys)
    columns = np.ascontiguousarray(keys.T)
    order = columns.argsort(axis=1)
    ordered = columns.ravel().take(order + (np.arange(len(columns)) * columns.shape[1])[:, None])
    is_tied = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] < _LAST)).any(axis=1)
    order[is_tied] = columns[is_tied].argsort(axis=1, kind="stable")
    return np.ascontiguousarray(order.T)


def _totals(values: Reals) -> Reals:
    """Return the running totals down the columns of rows (rows, points)."""
    if len(values) > values.shape[1]:
        return np.cumsum(values, axis=0)
    # row by row: `cumsum` goes down one column after the other, six times as slowly
    found = np.empty_like(values)
    found[0] = values[0]
    for before, own, now in zip(found[:-1], values[1:], found[1:], strict=True):
        np.add(before, own, out=now)
    return found
