"""Weighted quantiles across runs: a low one is what traffic that only adds cannot raise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def weighted_quantiles(values: Reals, weights: Reals, levels: Reals) -> Reals:
    """Return quantiles across the rows of each column.

    Parameters
    ----------
    values : shape (runs, points), any unit
    weights : shape (runs, points) or (runs, 1), 0 or more; a value of weight 0 does not count
    levels : shape (k,), 0 to 1

    Returns
    -------
    Reals : shape (k, points); NaN where no value counts

    Between values it is linear in the weights' running total, of which half of each end's own weight lies outside: for
    equal weights these are NumPy's quantiles.

    """
    # A row for each point: a point's values lie together.
    rows, spread = values.T, np.ascontiguousarray(np.broadcast_to(weights, values.shape).T)
    point = np.arange(len(rows))[:, None]
    order = np.argsort(rows, axis=1)
    ordered, spread = rows[point, order], spread[point, order]
    counts = spread > 0
    middle = np.cumsum(spread, axis=1) - spread / 2
    if not counts.all():
        ordered, middle = _carried(ordered, counts), _carried(middle, counts)
    has_any = counts.any(axis=1)
    place = point[:, 0]
    first, last = counts.argmax(axis=1), counts.shape[1] - 1 - counts[:, ::-1].argmax(axis=1)
    low_end, high_end = middle[place, first], middle[place, last]
    found = np.full((len(levels), len(rows)), np.nan)
    for row, level in enumerate(levels):
        target = low_end + level * (high_end - low_end)
        above = np.clip((middle < target[:, None]).sum(axis=1), first, last)
        below = np.maximum(above - 1, first)
        low, width = middle[place, below], middle[place, above] - middle[place, below]
        share = np.divide(target - low, width, out=np.zeros(len(rows)), where=width > 0)
        between = ordered[place, below] * (1.0 - share) + ordered[place, above] * share
        found[row, has_any] = between[has_any]
    return found


def _carried(rows: Reals, counts: npt.NDArray[np.bool_]) -> Reals:
    """Return rows in which each value that does not count is the last one before it that does, else the first one."""
    place = np.where(counts, np.arange(counts.shape[1]), counts.argmax(axis=1)[:, None])
    carried: Reals = rows[np.arange(len(rows))[:, None], np.maximum.accumulate(place, axis=1)]
    return carried
