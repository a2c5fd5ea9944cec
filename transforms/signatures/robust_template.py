"""Templates: the bursts that aligned runs have in common, where others alone would hardly make so many of them busy.

The foreign traffic of each run is as it is in the whole set outside of the bursts that are known: a rate v is exceeded
there with probability g(v). That so many of n runs reach v at one time has, without a common burst, the binomial tail
as its probability; a time is in a common burst if, for some number of runs, from more than half of them to all, the
rate that so many reach is less probable than a level. All numbers here are ours, and were chosen on simulated sites.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_within
from transforms.signatures.bursts import joined, stretches

#: how improbable a time of a signature of _LEVEL_SPAN_S seconds is to be; it falls with this power of the signatures'
#: length, since a longer one has more times at which others may meet
_FALSE_ALARM_LEVEL, _LEVEL_SPAN_S, _LEVEL_POWER = 0.004, 1000.0, 1.5
#: a burst goes as far as the curve exceeds this share of its upper quartile
EDGE_RATIO = 0.25
#: shorter pauses do not divide a burst
DIP_S = 4.0
#: shorter bursts are none, nor are those of less than this share of the median burst's volume
LEAST_S, LEAST_VOLUME_RATIO = 2.0, 0.03


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
        length = np.clip(np.rint(volume / height), 1, last - first).astype(np.int64)
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
    foreign = (rates[:, is_foreign] if is_foreign.sum() * 20 > count else rates).ravel()
    reaching = run_count - np.arange(max(1, run_count // 2))
    share = betaincinv(reaching, run_count - reaching + 1, min(level, 1.0))
    # p is not known any finer than by one of the foreign rates
    is_told = share * len(foreign) > 1.0
    if not is_told.any():
        return np.zeros(count, dtype=np.bool_)
    rank = np.floor(len(foreign) * (1.0 - share[is_told])).astype(np.int64)
    rank = np.minimum(rank, len(foreign) - 1)
    # a partition at several places is slower than a sort
    usual = np.sort(foreign)[rank]
    # in order of size, so that the first is what all runs reach
    ordered = np.sort(rates.T, axis=1)[:, : len(reaching)][:, is_told]
    is_common: Bools = (ordered > usual).any(axis=1)
    return is_common


def common_bursts(curve: Reals, is_common: Bools, step_s: float) -> tuple[Ints, Ints]:
    """Return the common bursts of a curve.

    Parameters
    ----------
    curve : shape (times,), in bytes per second: what the runs have in common
    is_common : shape (times,), as `are_common` gives them
    step_s : from one time to the next

    Returns
    -------
    Ints, Ints : the first time of each burst, and the one after its last

    """
    first, last = stretches(is_common)
    first, last = joined(first, last, DIP_S / step_s)
    is_long = last - first >= LEAST_S / step_s
    first, last = _grown(curve, first[is_long], last[is_long])
    first, last = joined(first, last, DIP_S / step_s)
    total = np.concatenate([[0.0], np.cumsum(curve)])
    volume = total[last] - total[first]
    if not len(volume):
        return first, last
    is_large = (volume > LEAST_VOLUME_RATIO * np.median(volume)) & (last - first >= LEAST_S / step_s)
    return first[is_large], last[is_large]


def _grown(curve: Reals, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return stretches as long as the curve exceeds a share of each one's height around it."""
    ends: list[tuple[int, int]] = []
    for begin, end, least in zip(first, last, EDGE_RATIO * heights(curve, first, last), strict=True):
        inside = np.flatnonzero(curve[begin:end] > least)
        if not len(inside):
            continue
        start, stop = int(begin + inside[0]), int(begin + inside[-1]) + 1
        ends.append((start - _leading(curve[:start][::-1], least), stop + _leading(curve[stop:], least)))
    places = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _leading(values: Reals, least: float) -> int:
    """Return how many of the first values exceed something, looking no further than about nine times as many."""
    done, size = 0, 64
    while done < len(values):
        is_in = values[done : done + size] > least
        if not is_in.all():
            return done + int(is_in.argmin())
        done, size = done + len(is_in), 8 * size
    return done


def heights(curve: Reals, first: Ints, last: Ints) -> Reals:
    """Return how high a curve (times) is in each of some stretches (n) of one time or more.

    That is its upper quartile there, or its mean if that is more, as where most of a burst is short pauses.
    """
    counts = last - first
    if not len(counts):
        return np.zeros(0)
    offsets = offsets_of(counts)
    begins, owner = offsets[:-1], owners(offsets)
    values = curve[first[owner] + places_within(counts)]
    ordered = values[np.lexsort((values, owner))]
    at = begins + 0.75 * (counts - 1)
    low = at.astype(np.int64)
    high = np.minimum(low + 1, begins + counts - 1)
    quartiles = ordered[low] + (at - low) * (ordered[high] - ordered[low])
    found: Reals = np.maximum(quartiles, np.add.reduceat(values, begins) / counts)
    return found
