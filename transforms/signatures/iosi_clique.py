"""Find common bursts by grid-based clustering: CLIQUE as adapted by IOSI.

CLIQUE: Agrawal et al., SIGMOD'98, DOI 10.1145/276304.276314. The adaptation: Liu et al., "Automatic Identification of
Application I/O Signatures from Noisy Server-Side Traces", FAST'14, section 5.3. Each burst is a point in a plane of
time and correlation with the average burst. If most samples have points near each other, they have a burst in common.

Where the paper is not specific, these rules apply:

- Units with overlapping neighborhoods are processed in order: the densest first, then the one with the denser
  neighborhood, then the earlier, then the one of lower correlation. Points that are already taken do not count. A
  dense unit next to a denser one thus belongs to the latter's cluster, and no point counts twice.
- A cluster takes all points of its neighborhood; points that are not elected are interference, as in the paper.
- A point's peers in the election are the points of other samples; if candidates are equal, the earlier wins.
- If grids explain the same number of points, the first wins.
- The last column and the last row are cut off at the edge of the plane, and include the points on the edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_of, places_within

#: numbers of samples or units that exceed an integer by less are rounded down
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class BurstPlanes:
    """The bursts of all samples as n points of s planes; those of plane i start at offsets[i]. No plane is empty.

    Attributes
    ----------
    time_s : (n,)
        Time from 0 to `span_s` [s], not NaN. Points outside a plane count as on its edge.
    correlation : (n,)
        Correlation with the average burst, from 0 to 1.
    sample : (n,)
        Sample of the burst, from 0 to `sample_count` - 1.
    offsets : (s + 1,)
    sample_count : (s,)
    span_s : (s,)
        Duration of the samples [s].
    """

    time_s: Reals
    correlation: Reals
    sample: Ints
    offsets: Ints
    sample_count: Ints
    span_s: Reals

    @property
    def counts(self) -> Ints:
        """The number of points of each plane."""
        return self.offsets[1:] - self.offsets[:-1]

    def sort_by_time(self) -> tuple[BurstPlanes, Ints]:
        """Sort the points of each plane by time; return the original indices, too."""
        edges = pairwise(self.offsets.tolist())
        order = np.concatenate([self.time_s[a:b].argsort(kind="stable") + a for a, b in edges])
        ordered = replace(
            self, time_s=self.time_s[order], correlation=self.correlation[order], sample=self.sample[order]
        )
        return ordered, order

    def min_sample_count(self, ratio: float) -> Ints:
        """Apply `min_sample_count` to each plane (s)."""
        return np.array([min_sample_count(ratio, count) for count in self.sample_count.tolist()])


@dataclass(frozen=True, slots=True)
class Clusters:
    """The common bursts of s planes.

    Attributes
    ----------
    owner : (n,)
        Cluster of each point, -1 for none; a cluster has no more than one point of each sample. The clusters of a plane
        are numbered from 0 by their mean time.
    count : (s,)
        Number of clusters.
    grid : (s,)
        Index of the best grid.
    explained_count : (s, g)
        Number of points that each grid explains.
    """

    owner: Ints
    count: Ints
    grid: Ints
    explained_count: Ints


def min_sample_count(ratio: float, sample_count: int) -> int:
    """Round up a fraction of the number of samples; the result is 1 or more (IOSI, section 5.3)."""
    return max(1, math.ceil(ratio * sample_count - _TOLERANCE))


def find_common_bursts(planes: BurstPlanes, width_s: Reals, height: Reals, gamma: float, kappa: float) -> Clusters:
    """Cluster the bursts of each plane with the grid that explains the most points (IOSI, section 5.3).

    Parameters
    ----------
    planes
        The bursts of s sets.
    width_s, height : (s, g)
        Size of the units of each grid, in seconds and in correlation; positive.
    gamma
        Minimum fraction of the samples with a point in a dense unit (section 5.3: 0.5).
    kappa
        Minimum fraction of the samples with a point in the neighborhood of a dense unit, including the unit (section
        5.3: 0.9).

    Returns
    -------
    Clusters

    Notes
    -----
    All planes are processed together, since they have only a few hundred points each. The cost is that of sorting
    points x grids numbers, plus that of the pairs of dense units and points in their neighborhood.
    """
    planes, order = planes.sort_by_time()
    layers = _Layers.from_planes(planes, width_s, height)
    pairs = _Pairs.from_layers(layers, planes, gamma, kappa)
    taker, explained = pairs.assign_points(len(layers.point), len(layers.plane))
    explained = explained.reshape(width_s.shape)
    rows, grid = np.arange(len(width_s)), explained.argmax(axis=1)
    claimed = taker[places_of(layers.offsets[rows * width_s.shape[1] + grid], planes.counts)]
    is_elected = _elect_points(planes, claimed, width_s[rows, grid], height[rows, grid])
    owner = np.empty(len(order), dtype=np.int64)
    owner[order], count = _number_clusters(np.where(is_elected, claimed, -1), planes)
    return Clusters(owner, count, grid, explained)


@dataclass(frozen=True, slots=True)
class DenseUnits:
    """The n dense units of one grid over one plane (IOSI, section 5.3 and Figure 11).

    Attributes
    ----------
    column, row : (n,)
        Place of the unit, from 0.
    sample_count, neighborhood_count : (n,)
        Number of samples with a point in the unit, and in its neighborhood, including the unit.
    """

    column: Ints
    row: Ints
    sample_count: Ints
    neighborhood_count: Ints


def find_dense_units(planes: BurstPlanes, width_s: float, height: float, gamma: float) -> DenseUnits:
    """Find the dense units of a grid over the only plane, see `find_common_bursts`."""
    ordered, _ = planes.sort_by_time()
    layers = _Layers.from_planes(ordered, np.array([[width_s]]), np.array([[height]]))
    dense = _Neighborhoods.from_layers(layers, ordered, gamma)
    return DenseUnits(dense.column, dense.row, dense.density, dense.around)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Combinations of a plane and a grid (l), with the unit of each point (p); points are in chronological order.

    plane (l). offsets (l + 1): first point of each layer. columns, rows (l): number of units. point, sample, column,
    row (p).
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
    def from_planes(cls, planes: BurstPlanes, width_s: Reals, height: Reals) -> _Layers:
        plane = np.arange(len(width_s)).repeat(width_s.shape[1])
        counts = planes.counts[plane]
        point = places_of(planes.offsets[:-1][plane], counts)
        columns, column = _assign_units(planes.time_s.take(point), planes.span_s[plane], width_s.ravel(), counts)
        rows, row = _assign_units(planes.correlation.take(point), np.ones(len(plane)), height.ravel(), counts)
        return cls(plane, offsets_of(counts), columns, rows, point, planes.sample.take(point), column, row)

    @property
    def counts(self) -> Ints:
        """The number of points of each layer."""
        return self.offsets[1:] - self.offsets[:-1]

    def find_dense_units(self, planes: BurstPlanes, min_samples: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return layer, column, row and density of the dense units (d); min_samples (l): minimum density by layer."""
        # layer, column, row and sample as one number of the smallest sufficient type, since smaller types sort faster
        firsts, max_samples = offsets_of(self.columns * self.rows), int(planes.sample_count.max())
        dtype = np.int32 if firsts[-1] * max_samples < 2**31 else np.int64
        unit: npt.NDArray[Any] = self.rows.astype(dtype).repeat(self.counts)
        unit *= self.column.astype(dtype)
        unit += self.row.astype(dtype)
        unit += firsts[:-1].astype(dtype).repeat(self.counts)
        unit *= max_samples
        unit += self.sample.astype(dtype)
        # layers are ordered, and those of a plane have the same number of points; sorting short rows is faster than
        # sorting all
        edges = self.offsets[:: len(self.plane) // len(planes.counts)]
        for (first, last), count in zip(pairwise(edges.tolist()), planes.counts.tolist(), strict=True):
            unit[first:last].reshape(-1, count).sort(axis=1)
        units = unit[_find_group_starts(unit)] // max_samples
        first = _find_group_starts(units)
        density = np.append(first[1:], len(units)) - first
        units = units[first].astype(np.int64)
        layer = firsts.searchsorted(units, side="right") - 1
        is_dense = density >= min_samples[layer]
        layer = layer[is_dense]
        column, row = np.divmod(units[is_dense] - firsts[layer], self.rows[layer])
        return layer, column, row, density[is_dense]


def _assign_units(values: Reals, spans: Reals, sizes: Reals, counts: Ints) -> tuple[Ints, Ints]:
    """Divide the span of each layer (l) into units; return their number (l), and the unit of each value (p).

    counts (l): number of values of each layer.
    """
    unit_counts = np.maximum(np.ceil(spans / sizes - _TOLERANCE), 1.0)
    places = np.maximum(values, 0.0)
    places /= sizes.repeat(counts)
    np.minimum(places, (unit_counts - 1.0).repeat(counts), out=places)
    # truncation is a floor for numbers from 0 on
    return unit_counts.astype(np.int64), places.astype(np.int64)


def _find_group_starts(ordered: npt.NDArray[np.integer]) -> Ints:
    """Find the first index of each distinct number."""
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new.nonzero()[0]


@dataclass(frozen=True, slots=True)
class _Neighborhoods:
    """The dense units (d) of all layers, and pairs (p) of each with a point in its neighborhood, including the unit.

    layer, column, row (d): place of the unit. density, around (d): number of samples in the unit, and in its
    neighborhood. unit (p): the unit, ascending. place (p): position of the point in all layers.
    """

    layer: Ints
    column: Ints
    row: Ints
    density: Ints
    around: Ints
    unit: Ints
    place: Ints

    @classmethod
    def from_layers(cls, layers: _Layers, planes: BurstPlanes, gamma: float) -> _Neighborhoods:
        """Find the dense units and their neighbors."""
        layer, column, row, density = layers.find_dense_units(planes, planes.min_sample_count(gamma)[layers.plane])
        unit, place = _pair_neighbors(layers, layer, column)
        near = (np.abs(layers.row.take(place) - row.take(unit)) <= 1).nonzero()[0]
        unit, place = unit.take(near), place.take(near)
        around = _count_distinct(unit, layers.sample.take(place), len(layer), int(planes.sample_count.max()))
        return cls(layer, column, row, density, around, unit, place)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs (p) of each candidate unit (u) and each point in its neighborhood.

    rank (u): position in the order of processing. layer (u): layer of the unit. min_samples (u): required number of
    samples in the neighborhood. unit (p): the unit, ascending. place (p): position of the point in all layers. sample
    (p): sample of the point. is_inside (p): whether the point is in the unit itself. max_samples: largest number of
    samples of any plane.
    """

    rank: Ints
    layer: Ints
    min_samples: Ints
    unit: Ints
    place: Ints
    sample: Ints
    is_inside: Bools
    max_samples: int

    @classmethod
    def from_layers(cls, layers: _Layers, planes: BurstPlanes, gamma: float, kappa: float) -> _Pairs:
        """Find the dense units with a neighborhood that is dense as long as no point is taken."""
        dense = _Neighborhoods.from_layers(layers, planes, gamma)
        layer, unit, place = dense.layer, dense.unit, dense.place
        min_samples, max_samples = planes.min_sample_count(kappa)[layers.plane[layer]], int(planes.sample_count.max())
        is_candidate = dense.around >= min_samples
        # a stable sort keeps the order by time, then by correlation
        turn = (-(dense.density * (max_samples + 1) + dense.around)[is_candidate]).argsort(kind="stable")
        rank = np.empty(len(turn), dtype=np.int64)
        rank[turn] = np.arange(len(turn))
        kept = is_candidate.take(unit).nonzero()[0]
        unit, place = unit.take(kept), place.take(kept)
        is_inside = (layers.row.take(place) == dense.row.take(unit)) & (
            layers.column.take(place) == dense.column.take(unit)
        )
        number, sample = (is_candidate.cumsum() - 1).take(unit), layers.sample.take(place)
        return cls(rank, layer[is_candidate], min_samples[is_candidate], number, place, sample, is_inside, max_samples)

    def assign_points(self, place_count: int, layer_count: int) -> tuple[Ints, Ints]:
        """Assign points to units: the unit of each point, -1 for none, and the number of points each layer explains.

        Each round processes all units that have no point in common with a unit of higher rank.
        """
        units = len(self.rank)
        taker = np.full(place_count, -1)
        explained = np.zeros(layer_count, dtype=np.int64)
        unit, place, sample, is_inside = self.unit, self.place, self.sample, self.is_inside
        while len(unit):
            turn = self.rank.take(unit)
            first = np.full(place_count, units)
            np.minimum.at(first, place, turn)
            has_to_wait = np.zeros(units, dtype=np.bool_)
            has_to_wait[unit[first.take(place) != turn]] = True
            density = _count_distinct(unit, sample, units, self.max_samples)
            wins = ~has_to_wait & (density >= self.min_samples)
            taken = wins.take(unit).nonzero()[0]
            taker[place.take(taken)] = unit.take(taken)
            np.add.at(explained, self.layer[wins], density[wins])
            is_left = has_to_wait.take(unit) & (taker.take(place) < 0)
            # a unit without remaining points is no longer dense
            is_alive = np.zeros(units, dtype=np.bool_)
            is_alive[unit[is_left & is_inside]] = True
            left = (is_left & is_alive.take(unit)).nonzero()[0]
            unit, place, sample = unit.take(left), place.take(left), sample.take(left)
            is_inside = is_inside.take(left)
        return taker, explained


def _pair_neighbors(layers: _Layers, layer: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Pair units (d) with the places of the points in their own and the adjacent columns."""
    # points are ordered by time, hence by column; a gap of two separates the columns of layers
    firsts = offsets_of(layers.columns + 2)[:-1]
    columns, unit_column = firsts.repeat(layers.counts) + layers.column, firsts[layer] + column
    first = columns.searchsorted(unit_column - 1, side="left")
    last = columns.searchsorted(unit_column + 1, side="right")
    return owners(offsets_of(last - first)), places_of(first, last - first)


def _count_distinct(unit: Ints, sample: Ints, unit_count: int, sample_count: int) -> Ints:
    """Count the distinct samples of each unit; a pair of unit and sample may occur repeatedly."""
    # one row per sample, in the type of the sums, since sums of long rows without a cast are faster
    has = np.zeros((sample_count, unit_count), dtype=np.int32)
    has.ravel()[sample * unit_count + unit] = 1
    counts: Ints = np.add.reduce(has, axis=0).astype(np.int64)
    return counts


def _elect_points(planes: BurstPlanes, cluster: Ints, width_s: Reals, height: Reals) -> Bools:
    """Elect one point of each sample in each cluster: that with the smallest total distance to other samples' points.

    width_s, height (s): size of the units of each plane's grid; they are the units of distance.
    """
    elected = np.zeros(len(cluster), dtype=np.bool_)
    members = (cluster >= 0).nonzero()[0]
    if not len(members):
        return elected
    members = members[cluster[members].argsort(kind="stable")]
    member_cluster, time_s = cluster[members], planes.time_s[members]
    correlation, sample = planes.correlation[members], planes.sample[members]
    ballot = member_cluster * int(planes.sample_count.max()) + sample
    total = np.zeros(len(members))
    # candidates with rivals in the same ballot
    rival = (np.bincount(ballot)[ballot] > 1).nonzero()[0]
    one, other = _pair_members(member_cluster, rival)
    plane = (planes.offsets.searchsorted(members, side="right") - 1).take(one)
    along = (time_s.take(one) - time_s.take(other)) / width_s.take(plane)
    across = (correlation.take(one) - correlation.take(other)) / height.take(plane)
    distance = np.where(sample.take(one) != sample.take(other), np.sqrt(along * along + across * across), 0.0)
    total[rival] = np.bincount(one, distance, len(members))[rival]
    # if totals are equal, the earlier point wins, since members are in chronological order and the sort is stable
    ranked = np.lexsort((total, ballot))
    elected[members[ranked[_find_group_starts(ballot[ranked])]]] = True
    return elected


def _pair_members(cluster: Ints, selected: Ints) -> tuple[Ints, Ints]:
    """Pair the selected places with all places of their cluster; the places of a cluster are contiguous."""
    starts = _find_group_starts(cluster)
    group = starts.searchsorted(selected, side="right") - 1
    lengths = np.diff(starts, append=len(cluster))[group]
    return selected.repeat(lengths), places_of(starts[group], lengths)


def _number_clusters(cluster: Ints, planes: BurstPlanes) -> tuple[Ints, Ints]:
    """Assign numbers to the clusters of each plane by mean time, and count the clusters."""
    members = (cluster >= 0).nonzero()[0]
    number = cluster[members]
    sizes = np.bincount(number)
    present = sizes.nonzero()[0]
    mean_s = np.bincount(number, planes.time_s[members])[present] / sizes[present]
    # clusters are numbered by plane but not by time so far, since units are ordered by plane
    plane_of = np.zeros(len(sizes), dtype=np.int64)
    plane_of[number] = planes.offsets.searchsorted(members, side="right") - 1
    counts = np.bincount(plane_of[present], minlength=len(planes.counts))
    turn = present[np.lexsort((mean_s, plane_of[present]))]
    place = np.empty(len(sizes), dtype=np.int64)
    place[turn] = places_within(counts)
    owner = np.full(len(cluster), -1)
    owner[members] = place[number]
    return owner, counts
