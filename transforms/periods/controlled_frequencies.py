"""Which frequency a comb has exactly, and whether its lines are multiples of a lower one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.controlled_lines import FEW_CYCLES, Centred, Combs, over_noise, powers

Floats = npt.NDArray[np.floating[Any]]

#: a comb is lowered to one of so many cycles in the signal at least
_LEAST_CYCLES = 4.0
#: lines may be multiples of a frequency so many times lower at most
_MOST_TIMES = 16
#: that one is taken if most of its own lines are so many times as high as the level of noise, and as what is halfway
_LINE_HEIGHT, _LINE_CONTRAST = 3.5, 2.0
#: of few cycles also if the first three of them are higher than this in the mean, and than this share of the comb's
_FEW_HEIGHT, _FEW_SHARE = 1.25, 0.1
#: the highest number of which only the multiples may be lines
_MOST_EMPTY = 8
#: lines that are looked for between those of a comb
_LINES_BETWEEN = 8
#: how much finer frequencies are told than by one transform of the signal
_FINER = 4


def refined(signals: Centred, combs: Combs) -> Reals:
    """Return the frequency of each comb's first line in cycles per sample (n), told finer, and the lowest one.

    Where lines are multiples of a lower frequency that has other lines, too, it is that one.
    """
    power = powers(signals.values, signals.size)
    # which lines are there at all is asked against all that is around
    plain = over_noise(power.copy(), np.inf)
    level = np.divide(power, plain, out=np.ones_like(power), where=plain > 0)
    fine = powers(signals.values, signals.size * _FINER)
    low = np.minimum(np.arange(len(fine)) // _FINER, len(level) - 1)
    fine /= np.maximum(np.take(level, low, axis=0), np.finfo(level.dtype).tiny)
    frequency, lines = combs.cycles_per_sample * (signals.size * _FINER), combs.line_count
    least = _LEAST_CYCLES * signals.size * _FINER / signals.lengths
    frequency = _at_peak(fine, frequency, lines, least)
    frequency = _without_empty_lines(fine, frequency)
    lowest, few = frequency, least * (FEW_CYCLES / _LEAST_CYCLES)
    for times in range(2, _MOST_TIMES + 1):
        is_lower = _is_multiple(fine, frequency, times, least)
        if times <= FEW_CYCLES / _LEAST_CYCLES:
            is_lower |= (frequency <= few) & _is_multiple_of_few(fine, frequency, times, least)
        lowest = np.where(is_lower, frequency / times, lowest)
    frequency = lowest
    return _at_peak(fine, frequency, lines, least) / (signals.size * _FINER)


def _at_peak(fine: Floats, frequency: Reals, line_count: Ints, least: Reals) -> Reals:
    """Return frequencies in fine bins (n), moved to where the sum of lines is highest nearby."""
    found = frequency.copy()
    for lines in np.unique(line_count):
        rows = np.flatnonzero(line_count == lines)
        # one bin of the highest line to either side
        step = np.arange(-2 * _FINER, 2 * _FINER + 1) / (2.0 * lines)
        tried = frequency[rows, None] + step
        sums = np.zeros(tried.shape)
        for line in range(1, int(lines) + 1):
            sums += _between(fine, rows, tried * line)
        sums[tried < np.minimum(least, frequency)[rows, None]] = 0.0
        at = np.clip(sums.argmax(axis=1), 1, len(step) - 2)
        before, top, after = (np.take_along_axis(sums, at[:, None] + move, axis=1)[:, 0] for move in (-1, 0, 1))
        curve = before - 2.0 * top + after
        shift = np.divide(0.5 * (before - after), curve, out=np.zeros(len(at)), where=curve < 0)
        found[rows] = np.take_along_axis(tried, at[:, None], axis=1)[:, 0]
        found[rows] += np.clip(shift, -1.0, 1.0) * (step[1] - step[0])
    return found


def _between(fine: Floats, rows: Ints, place: Reals) -> Reals:
    """Return some signals' values (bins, n) at places between bins (rows, places); 0 outside."""
    low = np.floor(place).astype(np.int64)
    is_inside = (low >= 0) & (low < len(fine) - 1)
    low = np.where(is_inside, low, 0)
    share = place - low
    return np.where(is_inside, fine[low, rows[:, None]] * (1.0 - share) + fine[low + 1, rows[:, None]] * share, 0.0)


def _without_empty_lines(fine: Floats, frequency: Reals) -> Reals:
    """Return frequencies of which only every second line is there, or every third, so many times higher (n).

    Such combs are found by chance where the sum of their lines holds enough of another one's.
    """
    found, rows = frequency.copy(), np.arange(len(frequency))
    for times in range(_MOST_EMPTY, 1, -1):
        multiples = np.arange(1, 3 * times + 1)
        ratios = _between(fine, rows, frequency[:, None] * multiples)
        lines, others = ratios[:, multiples % times == 0], ratios[:, multiples % times > 0]
        is_empty = (lines.min(axis=1) > _LINE_HEIGHT) & (np.median(others, axis=1) < 0.5 * _LINE_HEIGHT)
        found[is_empty] = frequency[is_empty] * times
    return found


def _is_multiple(fine: Floats, frequency: Reals, times: int, least: Reals) -> Bools:
    """Return whether a frequency so many times lower has lines where the frequency has none (n).

    More than half of those that are looked for must be there, for half may be those of twice as high a frequency; and
    they must stand out from what is halfway to the next multiple, for the lowest bins may be a hill.
    """
    lower, rows = frequency / times, np.arange(len(frequency))
    multiples = np.array([line for line in range(1, 3 * _LINES_BETWEEN) if line % times][:_LINES_BETWEEN])
    place = lower[:, None] * multiples
    lines = np.sort(_between(fine, rows, place), axis=1)[:, _LINES_BETWEEN // 2 - 1]
    halfway = np.median(_between(fine, rows, place + 0.5 * lower[:, None]), axis=1)
    found: Bools = (lower >= least) & (lines > _LINE_HEIGHT) & (lines > _LINE_CONTRAST * halfway)
    return found


def _is_multiple_of_few(fine: Floats, frequency: Reals, times: int, least: Reals) -> Bools:
    """Return whether a frequency so many times lower has lines where one of few cycles has none, if weak ones (n).

    Of few cycles in noise lines are weak, and one that chance made weak hides the lowest comb.
    """
    lower, rows = frequency / times, np.arange(len(frequency))
    multiples = [line for line in range(1, 2 * times + 2) if line % times][:3]
    lines = _between(fine, rows, lower[:, None] * multiples).mean(axis=1)
    own = _between(fine, rows, frequency[:, None] * np.arange(1, 4)).mean(axis=1)
    found: Bools = (lower >= least) & (lines > _FEW_HEIGHT) & (lines > _FEW_SHARE * own)
    return found
