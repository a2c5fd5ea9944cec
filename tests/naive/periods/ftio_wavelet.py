"""Naive implementation of `iosig.transforms.periods.ftio_wavelet`: window by window, range by range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def approximate(values: Sequence[float], level: int) -> list[float]:
    """Block means of doubling length, with the last sample repeated, one value per sample."""
    left = [float(value) for value in values]
    for _ in range(level):
        left += left[-1:] * (len(left) % 2)
        left = [(one + two) / 2 for one, two in zip(left[::2], left[1::2], strict=True)]
    return [left[place >> level] for place in range(len(values))]


def correlate_sliding(first: np.ndarray, second: np.ndarray, size: int) -> list[float]:
    """Pearson's correlation of each window."""
    result = []
    for start in range(len(first) - size + 1):
        one, two = first[start : start + size], second[start : start + size]
        result.append(0.0 if one.std() == 0 or two.std() == 0 else float(np.corrcoef(one, two)[0, 1]))
    return result


def find_ranges(times: Sequence[float], correlation: Sequence[float], min_duration_s: float) -> list[tuple[int, int]]:
    """Runs of correlations of at least 0.12 with a minimum duration, merged across short pauses."""
    runs, start = [], None
    for place, value in enumerate([*correlation, 0.0]):
        if value >= 0.12 and start is None:
            start = place
        if value < 0.12 and start is not None:
            runs.append((start, place - 1))
            start = None
    result: list[tuple[int, int]] = []
    for first, last in (run for run in runs if times[run[1]] - times[run[0]] >= min_duration_s):
        if result and times[first] - times[result[-1][1]] < min_duration_s:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result
