"""Find the template of aligned runs, i.e. their common bursts, by a binomial test against their interference.

The interference of each run is assumed to be distributed as in the whole set outside the known bursts: it exceeds a
rate v with probability g(v). Without a common burst, the number of runs that reach v at a given time has a binomial
distribution. Let m be any number of runs from more than half to all, and v the rate that m runs reach at a time. The
time belongs to a common burst if, for some m, the tail probability of v is below a level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, clip
from iosig.transforms.signatures.averages import median_1d
from iosig.transforms.signatures.bursts import find_true_intervals, merge_intervals

#: single bytes, as searched for in masks
_TRUE, _FALSE = b"\1", b"\0"


@dataclass(frozen=True, slots=True)
class TemplateParams:
    """Constants of common bursts, chosen on simulated sites.

    Attributes
    ----------
    false_alarm_level
        Tail probability of a time in a common burst, for signatures of `reference_duration_s`.
    reference_duration_s
        See `false_alarm_level` [s].
    level_exponent
        Exponent of the duration with which the level falls, since longer signatures have more times for coincidences.
    edge_ratio
        Fraction of a burst's upper quartile that the curve exceeds throughout the burst.
    max_dip_s
        Longest interruption within a burst [s].
    min_duration_s
        Shortest burst [s].
    min_volume_ratio
        Minimum volume of a burst, relative to the median volume.
    """

    false_alarm_level: float = 0.004
    reference_duration_s: float = 1000.0
    level_exponent: float = 1.5
    edge_ratio: float = 0.25
    max_dip_s: float = 4.0
    min_duration_s: float = 2.0
    min_volume_ratio: float = 0.03


PARAMS = TemplateParams()


@dataclass(frozen=True, slots=True)
class Template:
    """The n bursts of a template, in order, as half-open intervals of steps since the start.

    Attributes
    ----------
    first, last : (n,)
        First step of each burst, and the step after its last.
    height : (n,)
        Rate of the burst as a box [bytes per second].
    length : (n,)
        Duration of that box, in steps.
    """

    first: Ints
    last: Ints
    height: Reals
    length: Ints

    def select(self, is_selected: Bools) -> Template:
        """Return the marked bursts (n)."""
        return Template(
            self.first[is_selected], self.last[is_selected], self.height[is_selected], self.length[is_selected]
        )

    @classmethod
    def from_curve(cls, curve: Reals, first: Ints, last: Ints, height: Reals) -> Template:
        """Convert the bursts of a curve (steps) to boxes of the same volume, which must be positive.

        The height is the result of `interval_heights`.
        """
        volume = np.array([curve[begin:end].sum() for begin, end in zip(first.tolist(), last.tolist(), strict=True)])
        length = clip(np.rint(volume / height), 1, last - first).astype(np.int64)
        return cls(first, last, height, length)


def false_alarm_level(step_count: int, step_s: float) -> float:
    """Compute the tail probability below which a time is in a common burst.

    Parameters
    ----------
    step_count
        Number of steps of the curve.
    step_s
        Length of a step [s].

    Returns
    -------
    float
        Decreases with the duration of the curve, see `TemplateParams`.
    """
    length_factor = (PARAMS.reference_duration_s / (step_count * step_s)) ** PARAMS.level_exponent
    return PARAMS.false_alarm_level * float(min(length_factor, 4.0))


def detect_common_times(rates: Reals, is_interference: Bools, level: float) -> Bools:
    """Mark the times at which improbably many runs are busy.

    Parameters
    ----------
    rates : (runs, times)
        Rates of aligned runs, in any unit.
    is_interference : (times,)
        Times without a known burst, where the rates sample the interference.
    level
        Binomial tail probability below which a time is marked.

    Returns
    -------
    (times,)

    Notes
    -----
    The tail probability that m of n runs reach a rate increases with the probability p that one run does. It is the
    regularized incomplete beta function I_p(m, n - m + 1). For each m, the inverse of that function at the level gives
    p, and a quantile of the interference gives the rate that is exceeded with probability p. No tail is computed at
    individual times.
    """
    from scipy.special import betaincinv

    run_count, count = rates.shape
    # ascending, so that the first value is reached by all runs
    ordered = np.sort(rates.T, axis=1)
    is_enough = np.count_nonzero(is_interference) * 20 > count
    interference = (ordered.compress(is_interference, axis=0) if is_enough else ordered).ravel()
    reaching = run_count - np.arange(max(1, run_count // 2))
    probability = betaincinv(reaching, run_count - reaching + 1, min(level, 1.0))
    # the sample does not resolve probabilities below that of one value
    is_resolved = probability * len(interference) > 1.0
    if not is_resolved.any():
        return np.zeros(count, dtype=np.bool_)
    rank = np.floor(len(interference) * (1.0 - probability[is_resolved])).astype(np.int64)
    rank = np.minimum(rank, len(interference) - 1)
    threshold = np.partition(interference, rank)[rank]
    ordered = ordered[:, : len(reaching)][:, is_resolved]
    is_common: Bools = (ordered > threshold).any(axis=1)
    return is_common


def find_long_intervals(is_common: Bools, step_s: float) -> tuple[Ints, Ints]:
    """Merge marked times to intervals, and keep intervals that are no shorter than the shortest burst.

    Parameters
    ----------
    is_common : (times,)
        Result of `detect_common_times`.
    step_s
        Length of a step [s].

    Returns
    -------
    first, last : (n,)
        Half-open intervals of steps.
    """
    first, last = merge_intervals(*find_true_intervals(is_common), PARAMS.max_dip_s / step_s)
    is_long = last - first >= PARAMS.min_duration_s / step_s
    return first[is_long], last[is_long]


def drop_small_bursts(curve: Reals, first: Ints, last: Ints, step_s: float) -> tuple[Ints, Ints]:
    """Merge intervals that are close together, and drop those that are short or small.

    Parameters
    ----------
    curve : (times,)
        Any unit.
    first, last : (n,)
        Half-open intervals of steps.
    step_s
        Length of a step [s].

    Returns
    -------
    first, last : (bursts,)
    """
    first, last = merge_intervals(first, last, PARAMS.max_dip_s / step_s)
    if not len(first):
        return first, last
    total = np.concatenate([[0.0], curve.cumsum()])
    volume = total[last] - total[first]
    is_volume_large = volume > PARAMS.min_volume_ratio * median_1d(volume)
    is_large = is_volume_large & (last - first >= PARAMS.min_duration_s / step_s)
    return first[is_large], last[is_large]


def extend_to_edges(curve: Reals, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Extend or trim intervals to where a curve exceeds a fraction of their height.

    Parameters
    ----------
    curve : (times,)
        Any unit.
    first, last : (n,)
        Half-open intervals of steps.

    Returns
    -------
    first, last : (intervals,)
        Intervals, except those in which the curve never exceeds that fraction.
    """
    ends: list[tuple[int, int]] = []
    thresholds = PARAMS.edge_ratio * interval_heights(curve, first, last)
    for begin, end, threshold in zip(first.tolist(), last.tolist(), thresholds.tolist(), strict=True):
        # searching bytes stops at the first match, in either direction
        is_high = (curve > threshold).tobytes()
        start = is_high.find(_TRUE, begin, end)
        if start < 0:
            continue
        stop = is_high.find(_FALSE, is_high.rfind(_TRUE, begin, end))
        ends.append((is_high.rfind(_FALSE, 0, start) + 1, len(curve) if stop < 0 else stop))
    intervals = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return intervals[:, 0], intervals[:, 1]


def interval_heights(curve: Reals, first: Ints, last: Ints) -> Reals:
    """Compute the height of a curve (times) in each non-empty interval (n): the larger of upper quartile and mean.

    The mean is larger if most of a burst consists of short pauses.
    """
    quartiles = [_upper_quartile(curve[begin:end]) for begin, end in zip(first.tolist(), last.tolist(), strict=True)]
    edges = np.array([first, last]).T.ravel()
    heights: Reals = np.maximum(quartiles, np.add.reduceat(np.append(curve, 0.0), edges)[::2] / (last - first))
    return heights


def _upper_quartile(values: Reals) -> float:
    ordered = values.copy()
    ordered.sort()
    rank = 0.75 * (len(ordered) - 1)
    below = int(rank)
    low, high = ordered.item(below), ordered.item(min(below + 1, len(ordered) - 1))
    return low + (rank - below) * (high - low)
