"""Templates: the bursts that aligned runs have in common, where others alone would hardly make so many of them busy.

The foreign traffic of each run is as it is in the whole set outside of the bursts that are known: a rate v is exceeded
there with probability g(v). That so many of n runs reach v at one time has, without a common burst, the binomial tail
as its probability; a time is in a common burst if, for some number of runs, from more than half of them to all, the
rate that so many reach is less probable than a level. All numbers here are ours, and were chosen on simulated sites.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, clipped
from iosig.transforms.signatures.averages import middle_of
from iosig.transforms.signatures.bursts import joined, stretches

#: how improbable a time of a signature of _LEVEL_SPAN_S seconds is to be; it falls with this power of the signatures'
#: length, since a longer one has more times at which others may meet
_FALSE_ALARM_LEVEL, _LEVEL_SPAN_S, _LEVEL_POWER = 0.004, 1000.0, 1.5
#: a burst goes as far as the curve exceeds this share of its upper quartile
EDGE_RATIO = 0.25
#: shorter pauses do not divide a burst
DIP_S = 4.0
#: shorter bursts are none, nor are those of less than this share of the median burst's volume
LEAST_S, LEAST_VOLUME_RATIO = 2.0, 0.03
#: what is true and what is not, as bytes
_TRUE, _FALSE = b"\1", b"\0"


@dataclass(frozen=True, slots=True)
class Template:
    """Bursts of a template (n), in order: first, last in steps from the start, `last` is the one after.

    height (n): the rate that a burst holds, in bytes per second. length (n): for how many steps it would hold it.
    """

    first: Ints
    last: Ints
    height: Reals
    length: Ints

    def chosen(self, is_chosen: Bools) -> Template:
        """Return the bursts that are marked (n)."""
        return Template(self.first[is_chosen], self.last[is_chosen], self.height[is_chosen], self.length[is_chosen])

    @classmethod
    def of(cls, curve: Reals, first: Ints, last: Ints, height: Reals) -> Template:
        """Return the bursts of a curve (steps) as boxes of the same volume; none of them is without any.

        height: of the curve in each, as `heights` gives it.
        """
        volume = np.array([curve[begin:end].sum() for begin, end in zip(first.tolist(), last.tolist(), strict=True)])
        length = clipped(np.rint(volume / height), 1, last - first).astype(np.int64)
        return cls(first, last, height, length)


def false_alarm_level(count: int, step_s: float) -> float:
    """Return how improbable a time of a curve of so many has to be without a common burst."""
    falling = (_LEVEL_SPAN_S / (count * step_s)) ** _LEVEL_POWER
    return _FALSE_ALARM_LEVEL * float(min(falling, 4.0))


def are_common(rates: Reals, is_foreign: Bools, level: float) -> Bools:
    """Return at which times so many runs are so busy as foreign traffic alone would hardly make them.

    Parameters
    ----------
    rates : shape (runs, times), in any unit, the runs aligned
    is_foreign : shape (times,), where there is no known burst: there the rates tell what foreign traffic is like
    level : a binomial tail of less is improbable

    Returns
    -------
    Bools : shape (times,)

    The tail that m of n runs reach a rate grows with the probability p that one does: it is the regularized incomplete
    beta function I_p(m, n - m + 1). So each m has a p of just the level, and that p is a quantile of foreign rates: no
    tail has to be computed at any time.

    """
    from scipy.special import betaincinv

    run_count, count = rates.shape
    # in order of size, so that the first is what all runs reach
    ordered = np.sort(rates.T, axis=1)
    is_enough = np.count_nonzero(is_foreign) * 20 > count
    foreign = (ordered.compress(is_foreign, axis=0) if is_enough else ordered).ravel()
    reaching = run_count - np.arange(max(1, run_count // 2))
    share = betaincinv(reaching, run_count - reaching + 1, min(level, 1.0))
    # p is not known any finer than by one of the foreign rates
    is_told = share * len(foreign) > 1.0
    if not is_told.any():
        return np.zeros(count, dtype=np.bool_)
    rank = np.floor(len(foreign) * (1.0 - share[is_told])).astype(np.int64)
    rank = np.minimum(rank, len(foreign) - 1)
    usual = np.partition(foreign, rank)[rank]
    ordered = ordered[:, : len(reaching)][:, is_told]
    is_common: Bools = (ordered > usual).any(axis=1)
    return is_common


def long_stretches(is_common: Bools, step_s: float) -> tuple[Ints, Ints]:
    """Return where times that are common (times, as `are_common` gives them) make stretches that may be bursts.

    They begin with their first time, and end with the one after their last; so do all bursts.
    """
    first, last = joined(*stretches(is_common), DIP_S / step_s)
    is_long = last - first >= LEAST_S / step_s
    return first[is_long], last[is_long]


def large(curve: Reals, first: Ints, last: Ints, step_s: float) -> tuple[Ints, Ints]:
    """Return the bursts of a curve (times) that stretches make: those hardly apart are one, and small ones are none."""
    first, last = joined(first, last, DIP_S / step_s)
    if not len(first):
        return first, last
    total = np.concatenate([[0.0], curve.cumsum()])
    volume = total[last] - total[first]
    is_large = (volume > LEAST_VOLUME_RATIO * middle_of(volume)) & (last - first >= LEAST_S / step_s)
    return first[is_large], last[is_large]


def grown(curve: Reals, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return stretches (n) as long as a curve (times) exceeds a share of each one's height around it.

    One in which it never does is left out.
    """
    ends: list[tuple[int, int]] = []
    least = EDGE_RATIO * heights(curve, first, last)
    for begin, end, own in zip(first.tolist(), last.tolist(), least.tolist(), strict=True):
        # bytes are searched from a place on in either direction, and no further than needed
        is_high = (curve > own).tobytes()
        start = is_high.find(_TRUE, begin, end)
        if start < 0:
            continue
        stop = is_high.find(_FALSE, is_high.rfind(_TRUE, begin, end))
        ends.append((is_high.rfind(_FALSE, 0, start) + 1, len(curve) if stop < 0 else stop))
    places = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def heights(curve: Reals, first: Ints, last: Ints) -> Reals:
    """Return how high a curve (times) is in each of some stretches (n) of one time or more.

    That is its upper quartile there, or its mean if that is more, as where most of a burst is short pauses.
    """
    quartiles = [_upper_quartile(curve[begin:end]) for begin, end in zip(first.tolist(), last.tolist(), strict=True)]
    edges = np.array([first, last]).T.ravel()
    found: Reals = np.maximum(quartiles, np.add.reduceat(np.append(curve, 0.0), edges)[::2] / (last - first))
    return found


def _upper_quartile(values: Reals) -> float:
    ordered = values.copy()
    ordered.sort()
    rank = 0.75 * (len(ordered) - 1)
    below = int(rank)
    low, high = ordered.item(below), ordered.item(min(below + 1, len(ordered) - 1))
    return low + (rank - below) * (high - low)
