"""Few cycles: what lines of the spectrum and phases of means tell of them together.

Lines know of no phases, and means of no rhythm that goes on. Noise hardly makes both sure at once; a rhythm does. So
where neither is as sure as is asked for, both may be, if they tell the same: one's period is a whole number of the
other's, as lines may be multiples, and means may take some bursts for one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Reals

#: In signals as a whole lines of few cycles are 4.5 times less probable than is told of them, as measured (`iosig study
#: periods --part memoryless`): their sums are of the same few bins, and their bound allows for hills.
LOG_RAISE = -1.5
#: lines and means that are both less probable than this (a logarithm) are judged together
WORTH = -1.0
#: as how many tests this counts, as measured in the same way
_LOG_TRIALS = float(np.log(0.25))
#: two periods are in step if one is a multiple of the other but for so much
_SAME_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class Both:
    """What lines and means tell together (k).

    log_probability: of noise making both so sure; 0 where one of them is not, or where means are surer than lines and
    not in step. is_step: whether one's period is a whole number of the other's. is_multiple: whether it takes several
    cycles of lines for one of means.
    """

    log_probability: Reals
    is_step: Bools
    is_multiple: Bools


def both(lines: Reals, means: Reals, cycles: Reals) -> Both:
    """Judge lines and means together (k).

    lines, means: logarithms of probabilities. cycles: how many of the lines' cycles it takes for one of means; NaN
    where one of them is not told.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(cycles, 1.0 / cycles)
        is_same = np.abs(ratio / np.round(ratio) - 1.0) <= _SAME_RATIO
    is_step = is_same & (means <= WORTH)
    is_worth = (lines <= WORTH) & (means <= WORTH) & (is_step | (lines <= means))
    log_p = np.where(is_worth, log_of_product(lines + means) + _LOG_TRIALS, 0.0)
    return Both(log_p, is_step, is_step & (cycles > 1.0 + _SAME_RATIO))


def log_of_product(log_product: Reals) -> Reals:
    """Return the logarithm of the probability that two random numbers below 1 have so low a product (k).

    log_product: its logarithm. It is p (1 - log p) for a product of p (Fisher, Statistical Methods for Research
    Workers, 4th ed., 1932, section 21.1).
    """
    found: Reals = log_product + np.log1p(-log_product)
    return found
