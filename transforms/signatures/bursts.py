"""Bursts of signatures: stretches of traffic that rise above what is beside them, and how any curve's are found.

IOSI finds its bursts on its way (`iosi_crests`), and so does `robust`; means, quantiles and warped averages have none
of their own, and the truth has none either: theirs are all found by one rule, so that all are counted alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_within

# The ratios are ours, by measurement on means, medians and quantiles of simulated samples: lower ones add many false
# bursts for few true ones. They leave room for true bursts of half the height and an eighth of the volume of others.

#: the share of the curve's height (see `height`) that a second has to exceed
HEIGHT_RATIO = 0.25
#: what lies between bursts for so long or less belongs to them: two polls of 2 s cannot tell them apart (ours)
DIP_S = 4
#: bursts of a smaller share of a typical burst's volume are dropped
VOLUME_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class Bursts:
    """The bursts of a signature (n), in order of time and without overlap.

    started_s, peaked_s, ended_s: since the run's start; a burst's seconds are those from started_s to ended_s.
    volume_bytes: what the signature moves in them. support_ratio: of the runs that were used, the share that has the
    burst; NaN where the method does not ask.
    """

    started_s: Reals
    peaked_s: Reals
    ended_s: Reals
    volume_bytes: Reals
    support_ratio: Reals

    def __len__(self) -> int:
        """Return the number of bursts."""
        return len(self.started_s)

    @classmethod
    def none(cls) -> Bursts:
        """Return no bursts."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, empty, empty)

    @classmethod
    def between(cls, curve: Reals, first: Ints, after: Ints, volume: Reals, support_ratio: Reals) -> Bursts:
        """Return the bursts of a curve (seconds) by their first seconds and those after their last ones.

        A burst's peak is the middle of its highest second, the first of equals.
        """
        peaked_s = peaks(curve, first, after) + 0.5
        return cls(first.astype(np.float64), peaked_s, after.astype(np.float64), volume, support_ratio)

    def kept(self, is_kept: Bools) -> Bursts:
        """Return the bursts that are marked (n)."""
        columns = (self.started_s, self.peaked_s, self.ended_s, self.volume_bytes, self.support_ratio)
        return Bursts(*(column[is_kept] for column in columns))


def height(bytes_per_s: Reals) -> float:
    """Return how high a curve's bursts are: half of the sum of its squares lies in seconds up to that rate.

    Squares, since bursts may take one second in a hundred and hold less volume than what is left of the noise; half
    of them, since a lonely peak is not typical. NaN where there is no I/O.
    """
    return _typical(bytes_per_s, power=2)


def heights(curves: Reals) -> Reals:
    """Return how high the bursts of each curve (curves, seconds) are, as `height` does."""
    return np.array([height(curve) for curve in curves])


def bursts_of(bytes_per_s: Reals) -> Bursts:
    """Return the bursts of a curve (seconds), in order; what is not measured (NaN) is in no burst.

    A burst is a stretch of seconds above a share of the curve's height, short dips between them included; too small
    ones are dropped. The seconds that it only begins or ends in may lie below that share, and are then left out.
    Support is NaN. Rates may be of any scale: only their ratios count.
    """
    rates = np.where(np.isfinite(bytes_per_s) & (bytes_per_s > 0), bytes_per_s, 0.0)
    typical = height(rates)
    if not typical > 0:
        return Bursts.none()
    first, after = joined(*stretches(rates > HEIGHT_RATIO * typical), DIP_S)
    volume = _sums(rates, first, after)
    is_left = volume >= VOLUME_RATIO * _typical(volume, power=1)
    first, after, volume = first[is_left], after[is_left], volume[is_left]
    return Bursts.between(rates, first, after, volume, np.full(len(first), np.nan))


def stretches(is_in: Bools) -> tuple[Ints, Ints]:
    """Return where stretches of true values begin, and where they are over."""
    padded = np.zeros(len(is_in) + 2, dtype=np.bool_)
    padded[1:-1] = is_in
    # they take turns: one begins, and it is over
    turns = np.flatnonzero(padded[1:] != padded[:-1])
    return turns[::2], turns[1::2]


def joined(first: Ints, last: Ints, most_apart: float) -> tuple[Ints, Ints]:
    """Join stretches that are hardly apart, or that overlap; they come in order of their starts."""
    if not len(first):
        return first, last
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    is_apart = first[1:] - reach[:-1] > most_apart
    edges = np.ones(len(first) + 1, dtype=np.bool_)
    edges[1:-1] = is_apart
    return first[edges[:-1]], reach[edges[1:]]


def _typical(values: Reals, power: int) -> float:
    """Return the median of values (n), weighted by a power of themselves; NaN where none is above 0."""
    counted = values[np.isfinite(values) & (values > 0)]
    if not len(counted):
        return float("nan")
    counted.sort()
    weights = ((counted / counted[-1]) ** power).cumsum()
    return counted.item(np.count_nonzero(weights < weights[-1] / 2))


def _sums(rates: Reals, first: Ints, after: Ints) -> Reals:
    """Return the sum of each stretch: of each alone, as a difference of running sums would lose small ones."""
    edges = np.array([first, after]).T.ravel()
    with np.errstate(over="ignore"):
        found: Reals = np.add.reduceat(np.append(rates, 0.0), edges)[::2]
    return found


def peaks(rates: Reals, first: Ints, after: Ints) -> Reals:
    """Return the first of the highest seconds of each stretch."""
    offsets = offsets_of(after - first)
    owner = owners(offsets)
    seconds = first[owner] + places_within(after - first)
    order = np.lexsort((seconds, -rates[seconds], owner))
    peaks: Reals = seconds[order[offsets[:-1]]].astype(np.float64)
    return peaks
