"""Times as histograms, as ScalaTrace keeps them: statistics and a few bins.

ScalaTrace [1, 2, section 2] has the count, least, mean, largest and variance of the times of an event, and five bins
that are made as times come. Here the bins are the fifths of the sorted times: they do not depend on the order of the
times, and bin k of a run compares with bin k of another, whatever their number of ranks.

Between the least and the largest time of a bin, times are taken to be spread as `least + (largest - least) * u**p`
for u from 0 to 1, with p such that the mean is the bin's own.

[1] P. Ratn et al., Preserving time in large-scale communication traces, ICS 2008, DOI 10.1145/1375527.1375537
[2] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, places_within
from iosig.transforms.traces.trace import TimeBin, TimeHistogram

AnyInts = npt.NDArray[np.integer]

#: ScalaTrace's number of bins
BIN_COUNT = 5
EMPTY = TimeHistogram(0, 0.0, 0.0, 0.0, 0.0, ())
_MOST_POWER = 1e100
#: halvings of an interval until nothing is left of it in double precision
_HALVINGS = 64


# ---- histograms of times


def histograms(times_s: Reals, groups: AnyInts, group_count: int) -> list[TimeHistogram]:
    """Return the histogram of each group of times, by the group's number; that of none is `EMPTY`.

    times_s, groups (n): times in seconds, and the group of each, from 0 to group_count - 1. Bins hold equally many
    times but for one; of fewer than five times, each is a bin.
    """
    _check(times_s, groups, group_count)
    order = np.lexsort((times_s, groups))
    ordered = times_s[order]
    counts = np.bincount(groups, minlength=group_count).astype(np.int64)
    held = np.flatnonzero(counts)
    if not held.size:
        return [EMPTY] * group_count
    bin_counts = np.minimum(counts[held], BIN_COUNT)
    sizes = even_sizes(counts[held], bin_counts)
    whole = _statistics(ordered, counts[held])
    parts = _statistics(ordered, sizes)
    bins = [TimeBin(*row) for row in zip(sizes.tolist(), *(column.tolist() for column in parts[:3]), strict=True)]
    ends = np.cumsum(bin_counts)
    cuts = zip((ends - bin_counts).tolist(), ends.tolist(), strict=True)
    found = [EMPTY] * group_count
    rows = zip(held.tolist(), counts[held].tolist(), *(column.tolist() for column in whole), cuts, strict=True)
    for group, count, least, mean, most, variance, (first, last) in rows:
        found[group] = TimeHistogram(count, least, mean, most, variance, tuple(bins[first:last]))
    return found


def _check(times_s: Reals, groups: AnyInts, group_count: int) -> None:
    if times_s.shape != groups.shape or times_s.ndim != 1:
        raise ValueError("each time needs one group")
    if not np.isfinite(times_s).all():
        raise ValueError("times must be finite")
    if groups.size and not 0 <= int(groups.min()) <= int(groups.max()) < group_count:
        raise ValueError(f"groups must be from 0 to {group_count - 1}")


def even_sizes(counts: Ints, parts: Ints) -> Ints:
    """Return the sizes of so many parts of each count, one behind the other, as even as whole numbers can be."""
    count, part = np.repeat(counts, parts), np.repeat(parts, parts)
    index = places_within(parts)
    sizes: Ints = (index + 1) * count // part - index * count // part
    return sizes


def _statistics(ordered: Reals, sizes: Ints) -> tuple[Reals, Reals, Reals, Reals]:
    """Return least, mean, largest and variance of pieces of so many times, each of which is sorted."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    least, most = ordered[starts], ordered[ends - 1]
    mean = np.clip(np.add.reduceat(ordered, starts) / sizes, least, most)
    # The second pass takes off the mean first: large times that hardly differ keep their variance.
    off = ordered - np.repeat(mean, sizes)
    return least, mean, most, np.add.reduceat(off * off, starts) / sizes


# ---- bins as distributions


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins as arrays of one shape: how many times are in each, which need not be whole, and their statistics [s]."""

    counts: Reals
    least: Reals
    means: Reals
    most: Reals

    @classmethod
    def of(cls, bins: Sequence[TimeBin]) -> Bins:
        """Return bins in a row."""
        rows = [(each.count, each.minimum_s, each.mean_s, each.maximum_s) for each in bins]
        return cls(*np.array(rows, np.float64).reshape(-1, 4).T)

    @property
    def is_point(self) -> Bools:
        """Whether all times of a bin are taken to be its mean: there is no spread to either side of it."""
        return ~((self.least < self.means) & (self.means < self.most))

    def powers(self) -> Reals:
        """Return p of each bin, 1 where the bin is a point."""
        point = self.is_point
        with np.errstate(all="ignore"):
            found = (self.most - self.means) / np.where(point, 1.0, self.means - self.least)
        # A mean next to the least time could have a power that no number holds.
        return np.where(point, 1.0, np.minimum(found, _MOST_POWER))

    def at(self, shares: Reals) -> Reals:
        """Return the time below which this share of each bin's times is."""
        spread = self.least + (self.most - self.least) * shares ** self.powers()
        return np.where(self.is_point, self.means, np.clip(spread, self.least, self.most))

    def sums(self, shares: Reals) -> Reals:
        """Return the sum of this share of each bin's times, the shortest."""
        powers = self.powers()
        spread = shares * self.least + (self.means - self.least) * shares ** (powers + 1)
        return self.counts * np.where(self.is_point, self.means * shares, spread)

    def shares(self, times_s: Reals) -> Reals:
        """Return the share of each bin's times that are at most this long."""
        width = np.where(self.is_point, 1.0, self.most - self.least)
        with np.errstate(over="ignore", under="ignore"):
            spread = np.clip((times_s - self.least) / width, 0.0, 1.0) ** (1 / self.powers())
        return np.where(self.is_point, times_s >= self.means, np.where(times_s < self.least, 0.0, spread))


def merged(parts: Iterable[TimeHistogram]) -> TimeHistogram:
    """Return the histogram of the times of all of these; its statistics are exact.

    Its bins are the fifths of the times that the bins stand for: what the times within a bin were is not known.
    """
    known = [part for part in parts if part.count]
    if len(known) <= 1:
        return known[0] if known else EMPTY
    counts = np.array([part.count for part in known], np.float64)
    means = np.array([part.mean_s for part in known])
    count = sum(part.count for part in known)
    least, most = min(part.minimum_s for part in known), max(part.maximum_s for part in known)
    mean = float(np.clip((counts / count * means).sum(), least, most))
    within = np.array([part.variance_s2 for part in known])
    variance = float((counts / count * (within + (means - mean) ** 2)).sum())
    pieces = Bins.of([each for part in known for each in part.bins])
    return TimeHistogram(count, least, mean, most, variance, _fifths(pieces, count))


def _fifths(pieces: Bins, count: int) -> tuple[TimeBin, ...]:
    """Return the bins of the times that all of these bins hold, which may overlap."""
    sizes = even_sizes(np.array([count]), np.array([min(BIN_COUNT, count)]))
    cuts = np.cumsum(sizes)[:-1]
    times, shares = _cut(pieces, cuts.astype(np.float64))
    edges = np.concatenate([np.zeros((1, pieces.counts.size)), shares, np.ones((1, pieces.counts.size))])
    sums = np.diff(pieces.sums(edges).sum(axis=1))
    # What stands next to a cut on either side: between times that are points there is nothing.
    at = pieces.at(shares)
    before = np.minimum(np.where(shares > 0, at, pieces.least.min()).max(axis=1, initial=0.0), times)
    after = np.maximum(np.where(shares < 1, at, np.inf).min(axis=1), before) if cuts.size else before
    least = np.concatenate([[pieces.least.min()], after])
    most = np.concatenate([before, [pieces.most.max()]])
    means = np.clip(sums / sizes, least, most)
    rows = zip(sizes.tolist(), least.tolist(), means.tolist(), most.tolist(), strict=True)
    return tuple(TimeBin(*row) for row in rows)


def _cut(pieces: Bins, cuts: Reals) -> tuple[Reals, Reals]:
    """Return the times (k) that have so many times (k) below them, and the shares of the bins (k, b) that these are."""
    low = np.full(cuts.shape, np.nextafter(pieces.least.min(), -np.inf))
    high = np.full(cuts.shape, pieces.most.max())
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        is_enough = pieces.shares(middle[:, None]) @ pieces.counts >= cuts
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    below, upto = pieces.shares(low[:, None]), pieces.shares(high[:, None])
    # Bins that are points at the cut have only some of their times below it.
    lacking, given = cuts - below @ pieces.counts, (upto - below) @ pieces.counts
    part = np.clip(np.divide(lacking, given, out=np.zeros_like(given), where=given > 0), 0.0, 1.0)
    return high, below + part[:, None] * (upto - below)


# ---- the times of calls


def gaps_and_durations(levels: AnyInts, start_s: Reals, end_s: Reals) -> tuple[Reals, Reals]:
    """Return the gap before each call of a rank (n), as `Gap` has it, and how long it lasted (n), both [s].

    levels (n): how deep each call is, in order; calls stand before those that they make. The first call's gap is
    since 0 of the trace's clock. Traces cut their times off at the tick, so gaps come out a tick below 0: they are 0.
    """
    before = np.zeros(levels.size, np.float64)
    # Calls no deeper than a depth, from the deepest on: the one before is a call's sibling, or what it is within.
    places = np.arange(levels.size)
    for depth in np.unique(levels)[::-1].tolist():
        is_of_depth = levels[places] == depth
        here = np.flatnonzero(is_of_depth)
        here = here[here > 0]
        earlier = places[here - 1]
        before[places[here]] = np.where(is_of_depth[here - 1], end_s[earlier], start_s[earlier])
        places = places[~is_of_depth]
    return np.maximum(start_s - before, 0.0), np.maximum(end_s - start_s, 0.0)
