"""Runs that are plainly unlike the others of their application, by the local outlier factor.

IOSI (Liu et al., FAST'14), section 5.1, judges each run by (duration, volume): stopped runs and restarts are shorter
and move less, runs amid a storm take longer and more passes through the servers meanwhile. The factor is that of
Breunig et al., "LOF: identifying density-based local outliers", SIGMOD'00, DOI 10.1145/342009.335388: how much thinner
runs lie around a run than around its neighbours; about 1 within a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transforms.arrays import Bools, Ints, Reals, offsets_of, owners
from transforms.signatures.sample_sets import SampleSets

Threshold = Literal["apart", "mean"]

#: distances that are worked on at a time: bounds the memory, fits the cache
_CHUNK_DISTANCES = 1 << 15
#: sets of more runs look for neighbours in a tree
_MOST_BY_TABLE = 1024
#: of a set's median: the least unit that runs are measured in
_LEAST_DEVIATION = 1e-3
#: how far from the median a run can be, in these units
_MOST_DEVIATIONS = 1e9
#: keeps the density of runs that coincide finite, as scikit-learn does
_LEAST_REACH = 1e-10


@dataclass(frozen=True, slots=True)
class OutlierParams:
    """How runs are judged.

    threshold: from which factor on a run is an outlier. `mean`: above the mean factor of its set, which is IOSI 5.1 to
    the letter ("we set the threshold mu as the mean of the sample set") and throws away a third of the runs of a clean
    set. `apart` (ours): above the mean and above apart_factor, too, but never more than most_ratio of a set.
    apart_factor: ours. most_ratio: ours; IOSI 5.1 takes it that the majority of a set is alike.
    neighbour_ratio: neighbours as a share of the set's runs (ours: half, so that a group of outliers which is smaller
    than that does not shelter its own), at least least_neighbours (ours) and at most most_neighbours
    (Breunig et al., section 6.2: 10 to 20; scikit-learn: 20).
    min_run_count: smaller sets are not judged (IOSI 2.3: 5 to 10 samples are required).
    """

    threshold: Threshold = "apart"
    apart_factor: float = 1.5
    most_ratio: float = 0.5
    neighbour_ratio: float = 0.5
    least_neighbours: int = 3
    most_neighbours: int = 20
    min_run_count: int = 5

    def neighbour_count(self, run_count: int) -> int:
        """Return how many neighbours are asked in a set: one less than it has runs at most."""
        wanted = max(self.least_neighbours, int(self.neighbour_ratio * run_count))
        return max(1, min(wanted, self.most_neighbours, run_count - 1))


def volumes(sets: SampleSets) -> Reals:
    """Return what passed through the servers during each run [bytes] (n).

    The mean of the steps that were measured counts for all of the sample: a gap in the polls is no lack of I/O. NaN
    where nothing was measured.
    """
    counts = np.diff(sets.samples.offsets)
    owner = owners(sets.samples.offsets)
    is_known = np.isfinite(sets.samples.values)
    known = np.bincount(owner, is_known, len(counts))
    total = np.bincount(owner, np.where(is_known, sets.samples.values, 0.0), len(counts))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found: Reals = total / known * counts * sets.interval_s[sets.owner]
    return found


def factors(duration_s: Reals, volume_bytes: Reals, offsets: Ints, params: OutlierParams | None = None) -> Reals:
    """Return the local outlier factor of each run within its set (n).

    duration_s, volume_bytes (n). offsets (m + 1): set i has the runs offsets[i] to offsets[i + 1]. Each axis is
    measured in its own unit, see `scaled`. NaN for runs whose duration or volume is
    not a number from 0 on, which are nobody's neighbours, and in sets with less than min_run_count others.
    """
    chosen = params or OutlierParams()
    is_known = _is_known(duration_s, volume_bytes)
    owner = owners(offsets)
    counts = np.bincount(owner[is_known], minlength=len(offsets) - 1)
    found = np.full(len(duration_s), np.nan)
    known = np.flatnonzero(is_known)
    firsts = offsets_of(counts)
    for count in np.unique(counts[counts >= max(2, chosen.min_run_count)]).tolist():
        for group in _chunks(np.flatnonzero(counts == count), count):
            runs = known[firsts[group][:, None] + np.arange(count)]
            points = np.stack([scaled(duration_s[runs]), scaled(volume_bytes[runs])], axis=-1)
            found[runs] = local_factors(points, chosen.neighbour_count(count))
    return found


def are_outliers(duration_s: Reals, volume_bytes: Reals, offsets: Ints, params: OutlierParams | None = None) -> Bools:
    """Return whether each run is an outlier of its set (n); see `factors` for the arguments.

    Runs of which nothing is known are outliers where there are enough others to judge by. At least one run of each set
    is left.
    """
    chosen = params or OutlierParams()
    found = factors(duration_s, volume_bytes, offsets, chosen)
    owner = owners(offsets)
    is_judged = np.isfinite(found)
    count = np.bincount(owner, is_judged, len(offsets) - 1)
    total = np.bincount(owner, np.where(is_judged, found, 0.0), len(offsets) - 1)
    bound = total / np.maximum(count, 1)
    if chosen.threshold == "apart":
        bound = np.maximum(bound, chosen.apart_factor)
    # a mean of equal factors may miss them by a rounding error
    is_outlier = is_judged & (np.where(is_judged, found, 0.0) > bound[owner] * (1.0 + 1e-12))
    if chosen.threshold == "apart":
        most = np.floor(chosen.most_ratio * count).astype(np.int64)
        is_outlier &= _ranks(np.where(is_outlier, found, -np.inf), owner, offsets) < most[owner]
    found_out: Bools = is_outlier | (~is_judged & (count > 0)[owner])
    return found_out


def local_factors(points: Reals, neighbour_count: int) -> Reals:
    """Return the local outlier factors of points (sets, points, dimensions), set by set (sets, points).

    Each point has just neighbour_count neighbours; among those at one distance the first ones count. (Breunig et al.
    take all of them. scikit-learn takes as many as here; which ones is left to its search.)
    """
    if points.shape[1] > _MOST_BY_TABLE:
        near = [_neighbours_by_tree(one, neighbour_count) for one in points]
        distance, index = np.stack([one[0] for one in near]), np.stack([one[1] for one in near])
    else:
        distance, index = _neighbours(points, neighbour_count)
    # the neighbours' own values, set by set
    shift = np.arange(len(points))[:, None, None] * points.shape[1]
    flat = (index + shift).reshape(len(points), -1)
    reach = np.maximum(distance, distance[..., -1].ravel()[flat].reshape(distance.shape))
    density = 1.0 / (reach.mean(axis=-1) + _LEAST_REACH)
    around = density.ravel()[flat].reshape(distance.shape)
    found: Reals = (around / density[..., None]).mean(axis=-1)
    return found


# ---- inside


def _is_known(duration_s: Reals, volume_bytes: Reals) -> Bools:
    found: Bools = np.isfinite(duration_s) & np.isfinite(volume_bytes) & (duration_s >= 0) & (volume_bytes >= 0)
    return found


def _chunks(places: Ints, count: int) -> Iterator[Ints]:
    """Yield pieces of a list of sets of as many runs each."""
    step = max(1, _CHUNK_DISTANCES // (count * count))
    for first in range(0, len(places), step):
        yield places[first : first + step]


def scaled(values: Reals) -> Reals:
    """Measure rows (sets, runs) from their medians, in their median absolute deviations; constant ones become 0.

    A deviation counts for a thousandth of the median at least (of the largest value, where the median is 0): job logs
    know whole seconds, and of runs that take the same time to the second one more would be without measure.
    """
    # by the largest first: differences of huge and of denormal numbers leave the range
    highest = values.max(axis=1, keepdims=True)
    shares = values / np.where(highest > 0, highest, 1.0)
    middle = _medians(shares)
    least = _LEAST_DEVIATION * np.where(middle > 0, middle, 1.0)
    unit = np.maximum(_medians(np.abs(shares - middle)), least)
    with np.errstate(over="ignore"):
        # squares of more would leave the range
        return np.clip((shares - middle) / unit, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


def _medians(values: Reals) -> Reals:
    """Return the median of each row (sets, 1): of short rows faster than NumPy's own."""
    ordered, count = np.sort(values, axis=1), values.shape[1]
    found: Reals = (ordered[:, [(count - 1) // 2]] + ordered[:, [count // 2]]) * 0.5
    return found


def _neighbours(points: Reals, neighbour_count: int) -> tuple[Reals, Ints]:
    """Return distance and index of each point's nearest others (sets, points, neighbours), nearest first."""
    squares = np.zeros((len(points), points.shape[1], points.shape[1]))
    for axis in range(points.shape[2]):
        values = points[..., axis]
        squares += (values[:, :, None] - values[:, None, :]) ** 2
    places = np.arange(points.shape[1])
    squares[:, places, places] = np.inf
    index = np.argsort(squares, axis=-1, kind="stable")[..., :neighbour_count]
    return np.sqrt(np.take_along_axis(squares, index, axis=-1)), index


def _neighbours_by_tree(points: Reals, neighbour_count: int) -> tuple[Reals, Ints]:
    """Return distance and index of each point's nearest others (points, neighbours), nearest first, for large sets."""
    from scipy.spatial import cKDTree  # its import takes long

    distance, index = cKDTree(points).query(points, neighbour_count + 1)
    is_self = index == np.arange(len(points))[:, None]
    # among more coinciding points than are asked for, a point may not find itself
    is_self[~is_self.any(axis=1), -1] = True
    shape = (len(points), neighbour_count)
    return distance[~is_self].reshape(shape), index[~is_self].reshape(shape).astype(np.int64)


def _ranks(values: Reals, owner: Ints, offsets: Ints) -> Ints:
    """Return each value's place in its set (n): 0 for the largest."""
    order = np.lexsort((-values, owner))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values)) - offsets[owner]
    return ranks
