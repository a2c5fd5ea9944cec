"""Find hills of a function: windows in which the best fit of two straight lines rises, then falls.

AUTOPERIOD verifies a period on the autocorrelation: a window around the period is split in two where the total error of
two straight lines is smallest. All windows and all splits are tried at once; the errors are computed from running sums.

References
----------
M. Vlachos, P. Yu and V. Castelli, "On Periodicity Detection and Structural Periodic Similarity", SDM'05,
doi:10.1137/1.9781611972757.40
J. P. White et al., PEARC'18, section 4.2, doi:10.1145/3219104.3219121
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Reals, rows_of

#: minimum number of points of a line, since a line fits any two points exactly
_MIN_POINTS = 3
#: minimum length of a window; the two lines have one point in common
MIN_WINDOW = 2 * _MIN_POINTS - 1
#: values per batch: bounds memory use
_CHUNK_VALUES = 1 << 18


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows in a table (n): row, and first and last column (both included)."""

    row: Ints
    first: Ints
    last: Ints


@dataclass(frozen=True, slots=True)
class TwoLineFits:
    """Two straight lines through each window; their common point is the one at which the window is split.

    Attributes
    ----------
    cut : (n,)
        Column of the split; -1 where a window is too short or has a value that is not finite.
    rising, falling : (n,)
        Slopes of the first and of the second line, per column; NaN as above.
    residual : (n,)
        Sum of squared residuals of both lines; NaN as above.
    top : (n,)
        Column of the window's maximum, the first one of ties.
    """

    cut: Ints
    rising: Reals
    falling: Reals
    residual: Reals
    top: Ints


def fit_two_lines(table: Reals, windows: Windows) -> TwoLineFits:
    """Fit two straight lines to each window, split where the sum of squared residuals is smallest.

    Parameters
    ----------
    table : (rows, columns)
    windows : Windows
        n windows of the table.

    Returns
    -------
    TwoLineFits
    """
    count = len(windows.row)
    result = TwoLineFits(
        np.full(count, -1), np.full(count, np.nan), np.full(count, np.nan), np.full(count, np.nan), windows.first.copy()
    )
    for positions, width in _batch_by_length(windows.last - windows.first + 1):
        part = _fit_batch(table, rows_of(windows, positions), width)
        for name in ("cut", "rising", "falling", "residual", "top"):
            getattr(result, name)[positions] = getattr(part, name)
    return result


def _batch_by_length(lengths: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield positions of windows of similar length, and the maximum length."""
    size_class = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for number in np.unique(size_class).tolist():
        positions = np.flatnonzero((size_class == number) & (lengths > 0))
        rows = max(1, _CHUNK_VALUES >> number)
        for start in range(0, len(positions), rows):
            part = positions[start : start + rows]
            yield part, int(lengths[part].max())


def _fit_batch(table: Reals, windows: Windows, width: int) -> TwoLineFits:
    steps = np.arange(width)
    length = (windows.last - windows.first + 1)[:, None]
    is_inside = steps < length
    position = np.minimum(steps, length - 1)
    values = table[windows.row[:, None], windows.first[:, None] + position]
    is_whole = np.isfinite(values).all(axis=1)
    values = np.where(is_whole[:, None], values, 0.0)
    top = np.where(is_inside, values, -np.inf).argmax(axis=1)
    # Running sums lose little precision if the values are near 0.
    mean = np.where(is_inside, values, 0.0).sum(axis=1, keepdims=True) / length
    values = np.where(is_inside, values - mean, 0.0)
    backward = np.take_along_axis(values, length - 1 - position, axis=1)
    before, rising = _fit_prefixes(values)
    after, falling = _fit_prefixes(np.where(is_inside, backward, 0.0))
    residual = before + np.take_along_axis(after, length - 1 - position, axis=1)
    can_cut = (steps >= _MIN_POINTS - 1) & (length - 1 - steps >= _MIN_POINTS - 1)
    cut = np.where(can_cut, residual, np.inf).argmin(axis=1)[:, None]
    is_fitted = is_whole & (length[:, 0] >= MIN_WINDOW)

    def at_cut(items: Reals, positions: Ints) -> Reals:
        return np.where(is_fitted, np.take_along_axis(items, positions, axis=1)[:, 0], np.nan)

    return TwoLineFits(
        np.where(is_fitted, windows.first + cut[:, 0], -1),
        at_cut(rising, cut),
        -at_cut(falling, np.maximum(length - 1 - cut, 0)),
        at_cut(residual, cut),
        windows.first + top,
    )


def _fit_prefixes(values: Reals) -> tuple[Reals, Reals]:
    """Squared residuals and slopes of the lines through the first 1, 2, ... values of each row (n, width)."""
    steps = np.arange(values.shape[1], dtype=np.float64)
    number = steps + 1.0
    total, squares = np.cumsum(values, axis=1), np.cumsum(values * values, axis=1)
    # centerd about the means of columns and values
    crossed = np.cumsum(values * steps, axis=1) - total * (steps / 2.0)
    spread = number * (number * number - 1.0) / 12.0
    slope = crossed / np.where(spread > 0, spread, 1.0)
    residual = squares - total * total / number - slope * crossed
    return np.maximum(residual, 0.0), slope


def compute_prominence(table: Reals, row: Ints, top: Ints, reach: Ints) -> Reals:
    """Compute the height of tops above the valleys: the lowest values within reach, on the side where they are higher.

    Parameters
    ----------
    table : (rows, columns)
    row, top : (n,)
        Row and column of each top.
    reach : (n,)
        Number of columns to search on either side, clipped at the edges of the table.

    Returns
    -------
    (n,)
        NaN values are ignored. If a side has no columns, the prominence is 0 or less.
    """
    columns = table.shape[1]
    low = np.maximum(top - reach, 0)
    high = np.minimum(top + reach, columns - 1)
    left, right = _window_minima(table, row, low, top), _window_minima(table, row, top, high)
    prominence: Reals = table[row, top] - np.maximum(left, right)
    return prominence


def _window_minima(table: Reals, row: Ints, first: Ints, last: Ints) -> Reals:
    """Minimum of each window of a row, both ends included (n)."""
    if not len(row):
        return np.zeros(0)
    length = last - first + 1
    starts = np.concatenate([[0], np.cumsum(length)[:-1]])
    column = np.arange(int(length.sum())) - np.repeat(starts - first, length)
    minima: Reals = np.fmin.reduceat(table[np.repeat(row, length), column], starts)
    return minima
