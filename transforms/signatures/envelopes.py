"""Weighted quantiles across runs: a low one is what traffic that only adds cannot raise."""

from __future__ import annotations

import numpy as np

from transforms.arrays import Bools, Reals

#: not less than any value: finite, so that it is no NaN after a multiplication
_LAST = np.finfo(np.float64).max


def weighted_quantiles(values: Reals, weights: Reals | Bools, levels: Reals) -> Reals:
    """Return quantiles across the rows of each column.

    Parameters
    ----------
    values : shape (runs, points), any unit; finite where they count
    weights : shape (runs, points) or (runs, 1), 0 or more; a value of weight 0 does not count
    levels : shape (k,), 0 to 1

    Returns
    -------
    Reals : shape (k, points); NaN where no value counts

    Between values it is linear in the weights' running total, of which half of each end's own weight lies outside: for
    equal weights these are NumPy's quantiles. Of equal values the one of an earlier row comes first.

    """
    run_count, point_count = values.shape
    found = np.full((len(levels), point_count), np.nan)
    if not run_count:
        return found
    # A row for each point: a point's values lie together. Those that do not count come last.
    spread = np.ascontiguousarray(np.broadcast_to(weights, values.shape).T, dtype=np.float64)
    is_counted = spread > 0
    rows = np.where(is_counted, values.T, _LAST)
    begins = np.arange(point_count) * run_count
    order = rows.argsort(axis=1, kind="stable") + begins[:, None]
    ordered, spread = rows.ravel(), spread.ravel().take(order)
    middle = np.cumsum(spread, axis=1) - spread / 2
    last = np.maximum(is_counted.sum(axis=1) - 1, 0)
    middles, places = middle.ravel(), order.ravel()
    low_end, high_end = middles.take(begins), middles.take(begins + last)
    for row, level in enumerate(levels):
        target = low_end + level * (high_end - low_end)
        above = begins + np.minimum((middle < target[:, None]).sum(axis=1), last)
        below = np.maximum(above - 1, begins)
        low, width = middles.take(below), middles.take(above) - middles.take(below)
        share = np.divide(target - low, width, out=np.zeros(point_count), where=width > 0)
        at_low, at_high = ordered.take(places.take(below)), ordered.take(places.take(above))
        found[row] = at_low * (1.0 - share) + at_high * share
    found[:, ~is_counted.any(axis=1)] = np.nan
    return found
