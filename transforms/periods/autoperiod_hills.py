"""Hills of a function: pieces of it that two straight lines fit best by going up, then down.

AUTOPERIOD's test of a period on the autocorrelation (Vlachos, Yu & Castelli, "On Periodicity Detection and Structural
Periodic Similarity", SDM'05, DOI 10.1137/1.9781611972757.40; White et al., PEARC'18, DOI 10.1145/3219104.3219121,
section 4.2): a piece around the period is cut in two where the total error of two straight lines is least. All pieces
and all cuts are tried at once: the error of a line is known from running sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Reals, rows_of

#: points of a line: through two any line fits
_LEAST_POINTS = 3
#: the shortest piece that two lines can share a point of
LEAST_WINDOW = 2 * _LEAST_POINTS - 1
#: values that are worked on at a time: bounds the memory
_CHUNK_VALUES = 1 << 18


@dataclass(frozen=True, slots=True)
class Windows:
    """Pieces of the rows of a table: the row, the first and the last column (both included), each (n)."""

    row: Ints
    first: Ints
    last: Ints


@dataclass(frozen=True, slots=True)
class Bends:
    """Two straight lines through each window (n), which share the point where it is cut.

    cut: its column. rising, falling: the slopes of the first and of the second line, per column. residual: the sum of
    the squared errors of both. NaN (and cut -1) where a window is too short or has a value that is not finite.
    top: the column of the window's largest value, the first of several.
    """

    cut: Ints
    rising: Reals
    falling: Reals
    residual: Reals
    top: Ints


def fit(table: Reals, windows: Windows) -> Bends:
    """Fit two straight lines to each window of a table (rows, columns), where the total squared error is least."""
    count = len(windows.row)
    found = Bends(
        np.full(count, -1), np.full(count, np.nan), np.full(count, np.nan), np.full(count, np.nan), windows.first.copy()
    )
    for places, most in _groups(windows.last - windows.first + 1):
        part = _fit(table, rows_of(windows, places), most)
        for name in ("cut", "rising", "falling", "residual", "top"):
            getattr(found, name)[places] = getattr(part, name)
    return found


def _groups(lengths: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield places of windows of about one length, with the largest of it."""
    size_class = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for number in np.unique(size_class).tolist():
        places = np.flatnonzero((size_class == number) & (lengths > 0))
        rows = max(1, _CHUNK_VALUES >> number)
        for start in range(0, len(places), rows):
            part = places[start : start + rows]
            yield part, int(lengths[part].max())


def _fit(table: Reals, windows: Windows, most: int) -> Bends:
    steps = np.arange(most)
    length = (windows.last - windows.first + 1)[:, None]
    is_inside = steps < length
    place = np.minimum(steps, length - 1)
    values = table[windows.row[:, None], windows.first[:, None] + place]
    is_whole = np.isfinite(values).all(axis=1)
    values = np.where(is_whole[:, None], values, 0.0)
    top = np.where(is_inside, values, -np.inf).argmax(axis=1)
    # Running sums of values near 0 lose least.
    mean = np.where(is_inside, values, 0.0).sum(axis=1, keepdims=True) / length
    values = np.where(is_inside, values - mean, 0.0)
    backward = np.take_along_axis(values, length - 1 - place, axis=1)
    before, rising = _lines(values)
    after, falling = _lines(np.where(is_inside, backward, 0.0))
    residual = before + np.take_along_axis(after, length - 1 - place, axis=1)
    can_cut = (steps >= _LEAST_POINTS - 1) & (length - 1 - steps >= _LEAST_POINTS - 1)
    cut = np.where(can_cut, residual, np.inf).argmin(axis=1)[:, None]
    is_fitted = is_whole & (length[:, 0] >= LEAST_WINDOW)

    def at_cut(items: Reals, places: Ints) -> Reals:
        return np.where(is_fitted, np.take_along_axis(items, places, axis=1)[:, 0], np.nan)

    return Bends(
        np.where(is_fitted, windows.first + cut[:, 0], -1),
        at_cut(rising, cut),
        -at_cut(falling, np.maximum(length - 1 - cut, 0)),
        at_cut(residual, cut),
        windows.first + top,
    )


def _lines(values: Reals) -> tuple[Reals, Reals]:
    """Return squared error and slope of the line through the first 1, 2, ... values of each row (n, most)."""
    steps = np.arange(values.shape[1], dtype=np.float64)
    number = steps + 1.0
    total, squares = np.cumsum(values, axis=1), np.cumsum(values * values, axis=1)
    # sums about the columns' and the values' own means
    crossed = np.cumsum(values * steps, axis=1) - total * (steps / 2.0)
    spread = number * (number * number - 1.0) / 12.0
    slope = crossed / np.where(spread > 0, spread, 1.0)
    residual = squares - total * total / number - slope * crossed
    return np.maximum(residual, 0.0), slope


def prominence(table: Reals, row: Ints, top: Ints, reach: Ints) -> Reals:
    """Return how far each top stands above the lowest values within reach of it, the higher of both sides' (n).

    table (rows, columns); row, top (n); reach (n): columns to either side; what lies beyond the table's edges is
    left out. A side with nothing on it leaves no prominence; NaN counts as nothing.
    """
    columns = table.shape[1]
    low = np.maximum(top - reach, 0)
    high = np.minimum(top + reach, columns - 1)
    left, right = _least(table, row, low, top), _least(table, row, top, high)
    found: Reals = table[row, top] - np.maximum(left, right)
    return found


def _least(table: Reals, row: Ints, first: Ints, last: Ints) -> Reals:
    """Return the least value of each piece of a row, both ends included (n)."""
    if not len(row):
        return np.zeros(0)
    length = last - first + 1
    starts = np.concatenate([[0], np.cumsum(length)[:-1]])
    column = np.arange(int(length.sum())) - np.repeat(starts - first, length)
    found: Reals = np.fmin.reduceat(table[np.repeat(row, length), column], starts)
    return found
