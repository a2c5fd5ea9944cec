"""Compute histograms of times in the style of ScalaTrace: summary statistics and a few bins.

ScalaTrace [1, 2, section 2] keeps count, minimum, mean, maximum and variance of an event's times, and five bins that it
builds incrementally. Here the bins are quintiles of the sorted times: they do not depend on the order of the times, and
bin k of one run is comparable with bin k of another, for any number of ranks.

Within a bin, times are assumed to be distributed as `minimum + (maximum - minimum) * u**p` for u from 0 to 1, with p
chosen to match the mean of the bin.

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
_MAX_EXPONENT = 1e100
#: number of bisections, sufficient to exhaust double precision
_BISECTION_COUNT = 64


# ---- histograms of times


def compute_histograms(times_s: Reals, groups: AnyInts, group_count: int) -> list[TimeHistogram]:
    """Compute the histogram of each group of times.

    Parameters
    ----------
    times_s, groups : (n,)
        Times [s], and the group of each, from 0 to group_count - 1.
    group_count
        Number of groups.

    Returns
    -------
    list[TimeHistogram]
        Histogram of each group; `EMPTY` for groups without times. The counts of bins differ by one at most; fewer than
        five times get one bin each.

    Raises
    ------
    ValueError
        If times are not finite, or groups do not match.
    """
    _check(times_s, groups, group_count)
    order = np.lexsort((times_s, groups))
    ordered = times_s[order]
    counts = np.bincount(groups, minlength=group_count).astype(np.int64)
    occupied = np.flatnonzero(counts)
    if not occupied.size:
        return [EMPTY] * group_count
    bin_counts = np.minimum(counts[occupied], BIN_COUNT)
    sizes = split_evenly(counts[occupied], bin_counts)
    group_statistics = _statistics(ordered, counts[occupied])
    bin_statistics = _statistics(ordered, sizes)
    bins = [
        TimeBin(*row) for row in zip(sizes.tolist(), *(column.tolist() for column in bin_statistics[:3]), strict=True)
    ]
    ends = np.cumsum(bin_counts)
    cuts = zip((ends - bin_counts).tolist(), ends.tolist(), strict=True)
    result = [EMPTY] * group_count
    rows = zip(
        occupied.tolist(),
        counts[occupied].tolist(),
        *(column.tolist() for column in group_statistics),
        cuts,
        strict=True,
    )
    for group, count, minimum, mean, maximum, variance, (first, last) in rows:
        result[group] = TimeHistogram(count, minimum, mean, maximum, variance, tuple(bins[first:last]))
    return result


def _check(times_s: Reals, groups: AnyInts, group_count: int) -> None:
    if times_s.shape != groups.shape or times_s.ndim != 1:
        raise ValueError("times and groups must have equal lengths")
    if not np.isfinite(times_s).all():
        raise ValueError("times must be finite")
    if groups.size and not 0 <= int(groups.min()) <= int(groups.max()) < group_count:
        raise ValueError(f"groups must be from 0 to {group_count - 1}")


def split_evenly(counts: Ints, parts: Ints) -> Ints:
    """Split counts into parts of nearly equal integer sizes.

    Parameters
    ----------
    counts, parts : (n,)
        Number of items, and number of parts.

    Returns
    -------
    (sum of parts,)
        Sizes of the parts, count by count.
    """
    count, part = np.repeat(counts, parts), np.repeat(parts, parts)
    index = places_within(parts)
    sizes: Ints = (index + 1) * count // part - index * count // part
    return sizes


def _statistics(ordered: Reals, sizes: Ints) -> tuple[Reals, Reals, Reals, Reals]:
    """Minimum, mean, maximum and variance of consecutive pieces of sorted times."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    minimum, maximum = ordered[starts], ordered[ends - 1]
    mean = np.clip(np.add.reduceat(ordered, starts) / sizes, minimum, maximum)
    # two passes, since the one-pass variance of large, similar times is inaccurate
    deviation = ordered - np.repeat(mean, sizes)
    return minimum, mean, maximum, np.add.reduceat(deviation * deviation, starts) / sizes


# ---- bins as distributions


@dataclass(frozen=True, slots=True)
class Bins:
    """Columns of bins with the number of times, which may be fractional, and minimum, mean and maximum [s]."""

    counts: Reals
    minima: Reals
    means: Reals
    maxima: Reals

    @classmethod
    def from_bins(cls, bins: Sequence[TimeBin]) -> Bins:
        """Convert a sequence of n bins to arrays of shape (n,)."""
        rows = [(part.count, part.minimum_s, part.mean_s, part.maximum_s) for part in bins]
        return cls(*np.array(rows, np.float64).reshape(-1, 4).T)

    @property
    def is_point(self) -> Bools:
        """Whether a bin has no spread on one side of its mean, so that all its times count as the mean."""
        return ~((self.minima < self.means) & (self.means < self.maxima))

    def powers(self) -> Reals:
        """Exponent p of each bin; 1 if the bin is a point."""
        point = self.is_point
        with np.errstate(all="ignore"):
            powers = (self.maxima - self.means) / np.where(point, 1.0, self.means - self.minima)
        # avoid overflow if the mean is close to the minimum
        return np.where(point, 1.0, np.minimum(powers, _MAX_EXPONENT))

    def quantiles(self, shares: Reals) -> Reals:
        """Compute the quantile function of each bin."""
        spread = self.minima + (self.maxima - self.minima) * shares ** self.powers()
        return np.where(self.is_point, self.means, np.clip(spread, self.minima, self.maxima))

    def sums(self, shares: Reals) -> Reals:
        """Sum the given fraction of each bin's times, from the shortest on."""
        powers = self.powers()
        spread = shares * self.minima + (self.means - self.minima) * shares ** (powers + 1)
        return self.counts * np.where(self.is_point, self.means * shares, spread)

    def shares(self, times_s: Reals) -> Reals:
        """Compute the cumulative distribution function of each bin."""
        width = np.where(self.is_point, 1.0, self.maxima - self.minima)
        with np.errstate(over="ignore", under="ignore"):
            spread = np.clip((times_s - self.minima) / width, 0.0, 1.0) ** (1 / self.powers())
        return np.where(self.is_point, times_s >= self.means, np.where(times_s < self.minima, 0.0, spread))


def merge_histograms(parts: Iterable[TimeHistogram]) -> TimeHistogram:
    """Merge histograms; statistics are exact.

    Parameters
    ----------
    parts
        Histograms, possibly empty.

    Returns
    -------
    TimeHistogram
        Its bins are quintiles of the distributions that the bins of `parts` approximate.
    """
    nonempty = [part for part in parts if part.count]
    if len(nonempty) <= 1:
        return nonempty[0] if nonempty else EMPTY
    counts = np.array([part.count for part in nonempty], np.float64)
    means = np.array([part.mean_s for part in nonempty])
    count = sum(part.count for part in nonempty)
    minimum, maximum = min(part.minimum_s for part in nonempty), max(part.maximum_s for part in nonempty)
    mean = float(np.clip((counts / count * means).sum(), minimum, maximum))
    variances = np.array([part.variance_s2 for part in nonempty])
    variance = float((counts / count * (variances + (means - mean) ** 2)).sum())
    pieces = Bins.from_bins([part_bin for part in nonempty for part_bin in part.bins])
    return TimeHistogram(count, minimum, mean, maximum, variance, _compute_quintiles(pieces, count))


def _compute_quintiles(pieces: Bins, count: int) -> tuple[TimeBin, ...]:
    """Compute the quintile bins of the times in bins, which may overlap."""
    sizes = split_evenly(np.array([count]), np.array([min(BIN_COUNT, count)]))
    cuts = np.cumsum(sizes)[:-1]
    times, shares = _find_cuts(pieces, cuts.astype(np.float64))
    edges = np.concatenate([np.zeros((1, pieces.counts.size)), shares, np.ones((1, pieces.counts.size))])
    sums = np.diff(pieces.sums(edges).sum(axis=1))
    # times on both sides of each cut; points leave a gap in between
    at = pieces.quantiles(shares)
    before = np.minimum(np.where(shares > 0, at, pieces.minima.min()).max(axis=1, initial=0.0), times)
    after = np.maximum(np.where(shares < 1, at, np.inf).min(axis=1), before) if cuts.size else before
    minima = np.concatenate([[pieces.minima.min()], after])
    maxima = np.concatenate([before, [pieces.maxima.max()]])
    means = np.clip(sums / sizes, minima, maxima)
    rows = zip(sizes.tolist(), minima.tolist(), means.tolist(), maxima.tolist(), strict=True)
    return tuple(TimeBin(*row) for row in rows)


def _find_cuts(pieces: Bins, cuts: Reals) -> tuple[Reals, Reals]:
    """Find the times (k) at cumulative counts by bisection, and the fractions of the bins below these times (k, b)."""
    low = np.full(cuts.shape, np.nextafter(pieces.minima.min(), -np.inf))
    high = np.full(cuts.shape, pieces.maxima.max())
    for _ in range(_BISECTION_COUNT):
        middle = low + (high - low) / 2
        is_enough = pieces.shares(middle[:, None]) @ pieces.counts >= cuts
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    below, upto = pieces.shares(low[:, None]), pieces.shares(high[:, None])
    # a point at the cut is split
    missing, available = cuts - below @ pieces.counts, (upto - below) @ pieces.counts
    part = np.clip(np.divide(missing, available, out=np.zeros_like(available), where=available > 0), 0.0, 1.0)
    return high, below + part[:, None] * (upto - below)


# ---- the times of calls


def gaps_and_durations(levels: AnyInts, start_s: Reals, end_s: Reals) -> tuple[Reals, Reals]:
    """Compute the gap before each call of a rank, and its duration.

    Parameters
    ----------
    levels : (n,)
        Nesting level of each call, in order; calls precede their inner calls.
    start_s, end_s : (n,)
        Start and end of each call [s].

    Returns
    -------
    tuple[Reals, Reals]
        Gaps, see `Gap`, and durations (n) [s]. The gap of the first call counts from time 0 of the trace.

    Notes
    -----
    Due to the clock resolution of traces, gaps may be negative by one tick; they are set to 0.
    """
    before = np.zeros(levels.size, np.float64)
    # from the deepest level outward; the previous call that is not deeper is a sibling or the enclosing call
    places = np.arange(levels.size)
    for depth in np.unique(levels)[::-1].tolist():
        is_of_depth = levels[places] == depth
        positions = np.flatnonzero(is_of_depth)
        positions = positions[positions > 0]
        earlier = places[positions - 1]
        before[places[positions]] = np.where(is_of_depth[positions - 1], end_s[earlier], start_s[earlier])
        places = places[~is_of_depth]
    return np.maximum(start_s - before, 0.0), np.maximum(end_s - start_s, 0.0)
