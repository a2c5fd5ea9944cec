"""Common bursts by clustering on a grid: CLIQUE as IOSI adapts it.

CLIQUE: Agrawal et al., SIGMOD'98, DOI 10.1145/276304.276314. The adaption: Liu et al., "Automatic Identification of
Application I/O Signatures from Noisy Server-Side Traces", FAST'14, section 5.3. Each burst is a point in a plane of
time and likeness; where most samples have a point close together, they have a burst in common.

What the paper leaves open is decided so:

- Units whose neighbourhoods overlap take turns: the densest first, then the one with the denser neighbourhood, then
  the earlier, then the one of lower likeness. Each is judged by the points that nobody has taken yet, so that a dense
  unit beside a denser one belongs to that one's cluster, and a point never counts twice.
- A cluster takes all points of its neighbourhood: those that lose the vote are taken for foreign, as in the paper.
- A vote's peers are the points of other samples; of equal candidates the earlier wins.
- Of grids that explain equally many points the first that is given wins.
- The last column and the last row are cut off where the plane ends; a point on its edge is in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_of

#: a share of a number of samples that misses a whole number by less than this is meant to be that number
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Points:
    """The bursts of all samples as points (n).

    time_s: from 0 to span_s. likeness: from 0 to 1. sample: whose burst it is, from 0 to sample_count - 1.
    Points beyond the plane count as on its edge; there are none at NaN.
    """

    time_s: Reals
    likeness: Reals
    sample: Ints
    sample_count: int
    span_s: float

    def take(self, order: Ints) -> Points:
        """Return the points in another order."""
        return Points(self.time_s[order], self.likeness[order], self.sample[order], self.sample_count, self.span_s)


@dataclass(frozen=True, slots=True)
class Grids:
    """Ways of cutting the plane into units (g): how wide a unit is, in seconds, and how high; both are positive."""

    width_s: Reals
    height: Reals

    @classmethod
    def product(cls, widths_s: Reals, heights: Reals) -> Grids:
        """Return each width with each height: the narrow ones first, and of one width the low ones."""
        return cls(np.repeat(np.sort(widths_s), len(heights)), np.tile(np.sort(heights), len(widths_s)))

    def __len__(self) -> int:
        """Return the number of grids."""
        return len(self.width_s)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The common bursts.

    owner (n): the cluster of each point, -1 for none; at most one point of a sample is in a cluster. Clusters are
    numbered in order of their mean time. count: how many there are. grid: the number of the grid that won; -1 where
    there is no grid or no point. explained_count (g): how many points each grid explains.
    """

    owner: Ints
    count: int
    grid: int
    explained_count: Ints


def needed(share: float, sample_count: int) -> int:
    """Return how many samples a share of them is, at least one (IOSI, section 5.3: rounded up)."""
    return max(1, math.ceil(share * sample_count - _ROUNDING))


def clique(points: Points, grids: Grids, gamma: float, kappa: float) -> Clusters:
    """Find the common bursts with the grid that explains most points.

    gamma: the share of the samples that must have a point in a dense unit (IOSI, section 5.3: 0.5). kappa: the share
    that must have one in its neighbourhood, the unit included (section 5.3: 0.9).

    The cost is that of sorting points x grids numbers, plus the pairs of dense units and points beside them.
    """
    count = len(points.time_s)
    if not count or not len(grids):
        return Clusters(np.full(count, -1), 0, -1, np.zeros(len(grids), dtype=np.int64))
    order = np.argsort(points.time_s, kind="stable")
    ordered = points.take(order)
    pairs = _Pairs.of(_Cells.of(ordered, grids), ordered, gamma, kappa)
    cluster, explained = pairs.clusters(ordered, len(grids), needed(kappa, points.sample_count))
    grid = int(np.argmax(explained))
    claimed = cluster[grid]
    is_elected = _elected(ordered, claimed, grids.width_s[grid], grids.height[grid])
    owner = np.empty(count, dtype=np.int64)
    owner[order], cluster_count = _numbered(np.where(is_elected, claimed, -1), ordered.time_s)
    return Clusters(owner, cluster_count, grid, explained)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The unit in which each point lies, on each grid (g, n); the points are in order of time."""

    column: Ints
    row: Ints
    column_count: int
    row_count: int

    @classmethod
    def of(cls, points: Points, grids: Grids) -> _Cells:
        column, columns = _cut(points.time_s, points.span_s, grids.width_s)
        row, rows = _cut(points.likeness, 1.0, grids.height)
        return cls(column, row, columns, rows)

    def dense(self, points: Points, least: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the dense units' (d) grid, column, row and density: in this order."""
        # numbers of grid, column, row and sample in one, of the smallest type that holds them: sorts are faster then
        most = len(self.column) * self.column_count * self.row_count * points.sample_count
        dtype = np.int32 if most < 2**31 else np.int64
        grid = np.arange(len(self.column), dtype=dtype)[:, None] * self.column_count
        unit = (grid + self.column.astype(dtype)) * self.row_count + self.row.astype(dtype)
        marks = np.sort((unit * points.sample_count + points.sample.astype(dtype)).ravel())
        units = marks[_starts(marks)] // points.sample_count
        first = _starts(units)
        density = np.append(first[1:], len(units)) - first
        is_dense = density >= least
        column, row = np.divmod(units[first[is_dense]].astype(np.int64), self.row_count)
        grid_of, column = np.divmod(column, self.column_count)
        return grid_of, column, row, density[is_dense]


def _cut(values: Reals, span: float, sizes: Reals) -> tuple[Ints, int]:
    """Return in which part of a span each value lies for each size of the parts (g, n), and the most parts."""
    counts = np.maximum(np.ceil(span / sizes - _ROUNDING), 1.0)
    places = np.maximum(values, 0.0) / sizes[:, None]
    np.minimum(places, counts[:, None] - 1.0, out=places)
    # numbers from 0 on: what is behind the point falls away
    return places.astype(np.int64), int(counts.max())


def _starts(ordered: npt.NDArray[np.integer]) -> Ints:
    """Return where each new number begins."""
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new.nonzero()[0]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Each candidate unit (u) with each point in its neighbourhood: pairs (p).

    rank (u): whose turn is first. grid (u). unit (p), in order; place (p): the point's, grid x n + point. sample (p):
    whose point. is_own (p): the point lies in the unit itself.
    """

    rank: Ints
    grid: Ints
    unit: Ints
    place: Ints
    sample: Ints
    is_own: Bools

    @classmethod
    def of(cls, cells: _Cells, points: Points, gamma: float, kappa: float) -> _Pairs:
        """Return the units that are dense in a dense neighbourhood, if they had all points for themselves."""
        grid, column, row, density = cells.dense(points, needed(gamma, points.sample_count))
        unit, place = _beside(cells, grid, column)
        far = cells.row.ravel().take(place) - row.take(unit)
        near = (np.abs(far) <= 1).nonzero()[0]
        unit, place, far = unit.take(near), place.take(near), far.take(near)
        sample = np.broadcast_to(points.sample, cells.column.shape).ravel().take(place)
        around = _distinct(unit, sample, len(grid), points.sample_count)
        is_candidate = around >= needed(kappa, points.sample_count)
        # a stable sort keeps the order of time, then of likeness
        turn = (-(density * (points.sample_count + 1) + around)[is_candidate]).argsort(kind="stable")
        rank = np.empty(len(turn), dtype=np.int64)
        rank[turn] = np.arange(len(turn))
        kept = is_candidate.take(unit).nonzero()[0]
        unit, place = unit.take(kept), place.take(kept)
        is_own = (far.take(kept) == 0) & (cells.column.ravel().take(place) == column.take(unit))
        return cls(rank, grid[is_candidate], (is_candidate.cumsum() - 1).take(unit), place, sample.take(kept), is_own)

    def clusters(self, points: Points, grid_count: int, least: int) -> tuple[Ints, Ints]:
        """Return the unit that takes each point (g, n), -1 for none, and how many samples' points it explains (g).

        All units that nobody before them in rank shares a point with are judged at once, round after round.
        """
        units, places = len(self.rank), grid_count * len(points.time_s)
        taker = np.full(places, -1)
        explained = np.zeros(grid_count, dtype=np.int64)
        unit, place, sample, is_own = self.unit, self.place, self.sample, self.is_own
        while len(unit):
            turn = self.rank.take(unit)
            first = np.full(places, units)
            np.minimum.at(first, place, turn)
            has_to_wait = np.zeros(units, dtype=np.bool_)
            has_to_wait[unit[first.take(place) != turn]] = True
            density = _distinct(unit, sample, units, points.sample_count)
            wins = ~has_to_wait & (density >= least)
            taken = wins.take(unit).nonzero()[0]
            taker[place.take(taken)] = unit.take(taken)
            np.add.at(explained, self.grid[wins], density[wins])
            is_left = has_to_wait.take(unit) & (taker.take(place) < 0)
            # a unit whose own points are taken is not dense any more
            is_alive = np.zeros(units, dtype=np.bool_)
            is_alive[unit[is_left & is_own]] = True
            left = (is_left & is_alive.take(unit)).nonzero()[0]
            unit, place, sample = unit.take(left), place.take(left), sample.take(left)
            is_own = is_own.take(left)
        return taker.reshape(grid_count, -1), explained


def _beside(cells: _Cells, grid: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Return pairs of units (d) and the places of points in their own column or the next ones on either side."""
    # points are in order of time, hence of columns; a gap of two keeps the grids' columns apart
    step = cells.column_count + 2
    columns = (np.arange(len(cells.column))[:, None] * step + cells.column).ravel()
    own = grid * step + column
    first, last = columns.searchsorted(own - 1, side="left"), columns.searchsorted(own + 1, side="right")
    return owners(offsets_of(last - first)), places_of(first, last - first)


def _distinct(unit: Ints, sample: Ints, unit_count: int, sample_count: int) -> Ints:
    """Return how many different samples each unit has."""
    # a row for each sample, of the type of the sums: those of long rows are faster, and nothing is cast
    has = np.zeros((sample_count, unit_count), dtype=np.int32)
    has.ravel()[sample * unit_count + unit] = 1
    found: Ints = np.add.reduce(has, axis=0).astype(np.int64)
    return found


def _elected(points: Points, cluster: Ints, width_s: float, height: float) -> Bools:
    """Mark one point of each sample in each cluster: the one with the least total distance to the others'."""
    elected = np.zeros(len(cluster), dtype=np.bool_)
    members = (cluster >= 0).nonzero()[0]
    if not len(members):
        return elected
    members = members[cluster[members].argsort(kind="stable")]
    ballot = cluster[members] * points.sample_count + points.sample[members]
    total = np.zeros(len(members))
    rival = _rivals(ballot)
    one, other = _couples(cluster[members], rival)
    time_s, likeness, sample = (column[members] for column in (points.time_s, points.likeness, points.sample))
    along = (time_s.take(one) - time_s.take(other)) / width_s
    across = (likeness.take(one) - likeness.take(other)) / height
    distance = np.where(sample.take(one) != sample.take(other), np.sqrt(along * along + across * across), 0.0)
    total[rival] = np.bincount(one, distance, len(members))[rival]
    # of equal totals the earlier wins: members are in order of time, and the sort is stable
    ranked = np.lexsort((total, ballot))
    elected[members[ranked[_starts(ballot[ranked])]]] = True
    return elected


def _rivals(ballot: Ints) -> Ints:
    """Return the places of those that are not alone in their ballot."""
    return (np.bincount(ballot)[ballot] > 1).nonzero()[0]


def _couples(cluster: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Return pairs of the chosen places with all places of their cluster; clusters lie one after the other."""
    starts = _starts(cluster)
    group = starts.searchsorted(chosen, side="right") - 1
    lengths = np.diff(starts, append=len(cluster))[group]
    return chosen.repeat(lengths), places_of(starts[group], lengths)


def _numbered(cluster: Ints, time_s: Reals) -> tuple[Ints, int]:
    """Return clusters numbered in order of mean time, and how many there are."""
    is_in = cluster >= 0
    number = cluster[is_in]
    sizes = np.bincount(number)
    found = sizes.nonzero()[0]
    turn = found[(np.bincount(number, time_s[is_in])[found] / sizes[found]).argsort(kind="stable")]
    place = np.empty(len(sizes), dtype=np.int64)
    place[turn] = np.arange(len(turn))
    owner = np.full(len(cluster), -1)
    owner[is_in] = place[number]
    return owner, len(turn)
