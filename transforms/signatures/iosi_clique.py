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
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_of, places_within

#: a share of a number of samples that misses a whole number by less than this is meant to be that number
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Planes:
    """The bursts of all samples as points (n) of several planes (s): those of plane i begin at offsets[i].

    time_s (n): from 0 to span_s (s). likeness (n): from 0 to 1. sample (n): whose burst it is, from 0 to sample_count
    (s) - 1. Points beyond a plane count as on its edge; there are none at NaN. No plane is without points.
    """

    time_s: Reals
    likeness: Reals
    sample: Ints
    offsets: Ints
    sample_count: Ints
    span_s: Reals

    @property
    def counts(self) -> Ints:
        """How many points each plane has."""
        return self.offsets[1:] - self.offsets[:-1]

    def in_order(self) -> tuple[Planes, Ints]:
        """Return the points of each plane in order of time, and where they were."""
        edges = pairwise(self.offsets.tolist())
        order = np.concatenate([self.time_s[a:b].argsort(kind="stable") + a for a, b in edges])
        return replace(self, time_s=self.time_s[order], likeness=self.likeness[order], sample=self.sample[order]), order

    def needed(self, share: float) -> Ints:
        """Return how many samples a share of them is on each plane."""
        return np.array([needed(share, count) for count in self.sample_count.tolist()])


@dataclass(frozen=True, slots=True)
class Clusters:
    """The common bursts on several planes (s).

    owner (n): the cluster of each point, -1 for none; at most one point of a sample is in a cluster. On each plane,
    clusters are numbered from 0 in order of their mean time. count (s): how many there are. grid (s): the number of the
    grid that won. explained_count (s, g): how many points each grid explains.
    """

    owner: Ints
    count: Ints
    grid: Ints
    explained_count: Ints


def needed(share: float, sample_count: int) -> int:
    """Return how many samples a share of them is, at least one (IOSI, section 5.3: rounded up)."""
    return max(1, math.ceil(share * sample_count - _ROUNDING))


def cliques(planes: Planes, width_s: Reals, height: Reals, gamma: float, kappa: float) -> Clusters:
    """Find the common bursts on each of several planes with the grid that explains most points.

    A plane is a few hundred points, and most of its time would go to the calls. The cost is that of sorting points x
    grids numbers, plus the pairs of dense units and points beside them.

    Parameters
    ----------
    width_s, height : (s, g)
        Ways of cutting each plane into units: how wide a unit is, in seconds, and how high; both are positive.
    gamma
        Share of the samples that must have a point in a dense unit (IOSI, section 5.3: 0.5).
    kappa
        Share that must have one in its neighbourhood, the unit included (section 5.3: 0.9).
    """
    planes, order = planes.in_order()
    layers = _Layers.of(planes, width_s, height)
    pairs = _Pairs.of(layers, planes, gamma, kappa)
    taker, explained = pairs.clusters(len(layers.point), len(layers.plane))
    explained = explained.reshape(width_s.shape)
    every, grid = np.arange(len(width_s)), explained.argmax(axis=1)
    claimed = taker[places_of(layers.offsets[every * width_s.shape[1] + grid], planes.counts)]
    is_elected = _elected(planes, claimed, width_s[every, grid], height[every, grid])
    owner = np.empty(len(order), dtype=np.int64)
    owner[order], count = _numbered(np.where(is_elected, claimed, -1), planes)
    return Clusters(owner, count, grid, explained)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Each plane on each of its grids (l), and the unit in which each point lies there (p); points in order of time.

    plane (l). offsets (l + 1): where each layer's points begin. columns, rows (l): of units. point, sample, column, row
    (p).
    """

    plane: Ints
    offsets: Ints
    columns: Ints
    rows: Ints
    point: Ints
    sample: Ints
    column: Ints
    row: Ints

    @classmethod
    def of(cls, planes: Planes, width_s: Reals, height: Reals) -> _Layers:
        plane = np.arange(len(width_s)).repeat(width_s.shape[1])
        counts = planes.counts[plane]
        point = places_of(planes.offsets[:-1][plane], counts)
        columns, column = _cut(planes.time_s.take(point), planes.span_s[plane], width_s.ravel(), counts)
        rows, row = _cut(planes.likeness.take(point), np.ones(len(plane)), height.ravel(), counts)
        return cls(plane, offsets_of(counts), columns, rows, point, planes.sample.take(point), column, row)

    @property
    def counts(self) -> Ints:
        """How many points each layer has."""
        return self.offsets[1:] - self.offsets[:-1]

    def dense(self, planes: Planes, least: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the dense units' (d) layer, column, row and density: in this order; least (l): samples of one."""
        # numbers of layer, column, row and sample in one, of the smallest type that holds them: sorts are faster then
        firsts, most = offsets_of(self.columns * self.rows), int(planes.sample_count.max())
        dtype = np.int32 if firsts[-1] * most < 2**31 else np.int64
        unit: npt.NDArray[Any] = self.rows.astype(dtype).repeat(self.counts)
        unit *= self.column.astype(dtype)
        unit += self.row.astype(dtype)
        unit += firsts[:-1].astype(dtype).repeat(self.counts)
        unit *= most
        unit += self.sample.astype(dtype)
        # layers come in order, and those of a plane have as many points: short rows are sorted sooner than all as one
        edges = self.offsets[:: len(self.plane) // len(planes.counts)]
        for (first, last), count in zip(pairwise(edges.tolist()), planes.counts.tolist(), strict=True):
            unit[first:last].reshape(-1, count).sort(axis=1)
        units = unit[_starts(unit)] // most
        first = _starts(units)
        density = np.append(first[1:], len(units)) - first
        units = units[first].astype(np.int64)
        layer = firsts.searchsorted(units, side="right") - 1
        is_dense = density >= least[layer]
        layer = layer[is_dense]
        column, row = np.divmod(units[is_dense] - firsts[layer], self.rows[layer])
        return layer, column, row, density[is_dense]


def _cut(values: Reals, spans: Reals, sizes: Reals, counts: Ints) -> tuple[Ints, Ints]:
    """Return how many parts of its size (l) each layer's span has, and in which one each of its values (p) lies.

    counts (l): how many values are each layer's.
    """
    parts = np.maximum(np.ceil(spans / sizes - _ROUNDING), 1.0)
    places = np.maximum(values, 0.0)
    places /= sizes.repeat(counts)
    np.minimum(places, (parts - 1.0).repeat(counts), out=places)
    # numbers from 0 on: what is behind the point falls away
    return parts.astype(np.int64), places.astype(np.int64)


def _starts(ordered: npt.NDArray[np.integer]) -> Ints:
    """Return where each new number begins."""
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new.nonzero()[0]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Each candidate unit (u) with each point in its neighbourhood: pairs (p).

    rank (u): whose turn is first. layer (u). least (u): how many samples it needs. unit (p), in order; place (p): the
    point's in all layers. sample (p): whose point. is_own (p): the point lies in the unit itself. sample_count: the
    most of any plane.
    """

    rank: Ints
    layer: Ints
    least: Ints
    unit: Ints
    place: Ints
    sample: Ints
    is_own: Bools
    sample_count: int

    @classmethod
    def of(cls, layers: _Layers, planes: Planes, gamma: float, kappa: float) -> _Pairs:
        """Return the units that are dense in a dense neighbourhood, if they had all points for themselves."""
        layer, column, row, density = layers.dense(planes, planes.needed(gamma)[layers.plane])
        least, most = planes.needed(kappa)[layers.plane[layer]], int(planes.sample_count.max())
        unit, place = _beside(layers, layer, column)
        far = layers.row.take(place) - row.take(unit)
        near = (np.abs(far) <= 1).nonzero()[0]
        unit, place, far = unit.take(near), place.take(near), far.take(near)
        sample = layers.sample.take(place)
        around = _distinct(unit, sample, len(layer), most)
        is_candidate = around >= least
        # a stable sort keeps the order of time, then of likeness
        turn = (-(density * (most + 1) + around)[is_candidate]).argsort(kind="stable")
        rank = np.empty(len(turn), dtype=np.int64)
        rank[turn] = np.arange(len(turn))
        kept = is_candidate.take(unit).nonzero()[0]
        unit, place = unit.take(kept), place.take(kept)
        is_own = (far.take(kept) == 0) & (layers.column.take(place) == column.take(unit))
        number, sample = (is_candidate.cumsum() - 1).take(unit), sample.take(kept)
        return cls(rank, layer[is_candidate], least[is_candidate], number, place, sample, is_own, most)

    def clusters(self, place_count: int, layer_count: int) -> tuple[Ints, Ints]:
        """Return the unit that takes each point of the layers, -1 for none, and how many points each layer explains.

        All units that nobody before them in rank shares a point with are judged at once, round after round.
        """
        units = len(self.rank)
        taker = np.full(place_count, -1)
        explained = np.zeros(layer_count, dtype=np.int64)
        unit, place, sample, is_own = self.unit, self.place, self.sample, self.is_own
        while len(unit):
            turn = self.rank.take(unit)
            first = np.full(place_count, units)
            np.minimum.at(first, place, turn)
            has_to_wait = np.zeros(units, dtype=np.bool_)
            has_to_wait[unit[first.take(place) != turn]] = True
            density = _distinct(unit, sample, units, self.sample_count)
            wins = ~has_to_wait & (density >= self.least)
            taken = wins.take(unit).nonzero()[0]
            taker[place.take(taken)] = unit.take(taken)
            np.add.at(explained, self.layer[wins], density[wins])
            is_left = has_to_wait.take(unit) & (taker.take(place) < 0)
            # a unit whose own points are taken is not dense any more
            is_alive = np.zeros(units, dtype=np.bool_)
            is_alive[unit[is_left & is_own]] = True
            left = (is_left & is_alive.take(unit)).nonzero()[0]
            unit, place, sample = unit.take(left), place.take(left), sample.take(left)
            is_own = is_own.take(left)
        return taker, explained


def _beside(layers: _Layers, layer: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Return pairs of units (d) and the places of points in their own column or the next ones on either side."""
    # points are in order of time, hence of columns; a gap of two keeps the layers' columns apart
    firsts = offsets_of(layers.columns + 2)[:-1]
    columns, own = firsts.repeat(layers.counts) + layers.column, firsts[layer] + column
    first, last = columns.searchsorted(own - 1, side="left"), columns.searchsorted(own + 1, side="right")
    return owners(offsets_of(last - first)), places_of(first, last - first)


def _distinct(unit: Ints, sample: Ints, unit_count: int, sample_count: int) -> Ints:
    """Return how many different samples each unit has."""
    # a row for each sample, of the type of the sums: those of long rows are faster, and nothing is cast
    has = np.zeros((sample_count, unit_count), dtype=np.int32)
    has.ravel()[sample * unit_count + unit] = 1
    found: Ints = np.add.reduce(has, axis=0).astype(np.int64)
    return found


def _elected(planes: Planes, cluster: Ints, width_s: Reals, height: Reals) -> Bools:
    """Mark one point of each sample in each cluster: the one with the least total distance to the others'.

    width_s, height (s): of the units on each plane's grid.
    """
    elected = np.zeros(len(cluster), dtype=np.bool_)
    members = (cluster >= 0).nonzero()[0]
    if not len(members):
        return elected
    members = members[cluster[members].argsort(kind="stable")]
    own, time_s = cluster[members], planes.time_s[members]
    likeness, sample = planes.likeness[members], planes.sample[members]
    ballot = own * int(planes.sample_count.max()) + sample
    total = np.zeros(len(members))
    # who is not alone in a ballot
    rival = (np.bincount(ballot)[ballot] > 1).nonzero()[0]
    one, other = _couples(own, rival)
    plane = (planes.offsets.searchsorted(members, side="right") - 1).take(one)
    along = (time_s.take(one) - time_s.take(other)) / width_s.take(plane)
    across = (likeness.take(one) - likeness.take(other)) / height.take(plane)
    distance = np.where(sample.take(one) != sample.take(other), np.sqrt(along * along + across * across), 0.0)
    total[rival] = np.bincount(one, distance, len(members))[rival]
    # of equal totals the earlier wins: members are in order of time, and the sort is stable
    ranked = np.lexsort((total, ballot))
    elected[members[ranked[_starts(ballot[ranked])]]] = True
    return elected


def _couples(cluster: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Return pairs of the chosen places with all places of their cluster; clusters lie one after the other."""
    starts = _starts(cluster)
    group = starts.searchsorted(chosen, side="right") - 1
    lengths = np.diff(starts, append=len(cluster))[group]
    return chosen.repeat(lengths), places_of(starts[group], lengths)


def _numbered(cluster: Ints, planes: Planes) -> tuple[Ints, Ints]:
    """Return clusters numbered in order of mean time on each plane, and how many each one has."""
    members = (cluster >= 0).nonzero()[0]
    number = cluster[members]
    sizes = np.bincount(number)
    found = sizes.nonzero()[0]
    mean_s = np.bincount(number, planes.time_s[members])[found] / sizes[found]
    # a cluster's number tells its plane, but not when: the planes' units come one after the other
    plane_of = np.zeros(len(sizes), dtype=np.int64)
    plane_of[number] = planes.offsets.searchsorted(members, side="right") - 1
    counts = np.bincount(plane_of[found], minlength=len(planes.counts))
    turn = found[np.lexsort((mean_s, plane_of[found]))]
    place = np.empty(len(sizes), dtype=np.int64)
    place[turn] = places_within(counts)
    owner = np.full(len(cluster), -1)
    owner[members] = place[number]
    return owner, counts
