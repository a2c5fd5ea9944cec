"""Which runs of a set are left out, and why: those that took another time than most, and those unlike the others.

*Unusual duration.* A run that stopped early, or began again from a checkpoint, is no sample of the whole application
(IOSI, FAST'14, section 5.1 and its note 1). Local outlier factors miss such runs where several are alike, or where
they are nearly whole; and a single short one that stays would set the length of the whole set, since IOSI's duration
correction goes by the shortest.

*Outliers.* IOSI (Liu et al., FAST'14), section 5.1, judges each run by (duration, volume): stopped runs and restarts
are shorter and move less, runs amid a storm take longer and more passes through the servers meanwhile. The factor is
that of Breunig et al., "LOF: identifying density-based local outliers", SIGMOD'00, DOI 10.1145/342009.335388: how much
thinner runs lie around a run than around its neighbours; about 1 within a cluster. IOSI's threshold, to the letter the
mean of the set, throws away a third of the runs of a clean set; ours does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners
from iosig.transforms.signatures.averages import middle_of, row_medians
from iosig.transforms.signatures.sample_sets import SampleSets

#: a run that is shorter than most by more is not usual (ours: noise does not make a run shorter)
MOST_SHORTER_RATIO = 0.05
#: nor is one that is longer by more (section 5.1: after outlier elimination durations differ by less than 10 %)
MOST_LONGER_RATIO = 0.1
#: where fewer would be left, all are usual (ours)
LEAST_USUAL_COUNT = 3
#: the longest group of alike runs is the usual one, if it has this share of the largest group's runs (ours: a run may
#: stop anywhere, and be alike others, but no part of it is longer than all of it)
LEAST_GROUP_SHARE = 0.6

#: from this factor on a run is an outlier, if it is above the mean factor of its set, too (ours)
APART_FACTOR = 1.5
#: no more than this share of a set is taken for outliers (ours; section 5.1 takes it that most of a set are alike)
MOST_OUTLIER_RATIO = 0.5
#: neighbours as a share of the set's runs (ours: half, so that a group of outliers which is smaller than that does not
#: shelter its own), and at least (ours), and at most (Breunig et al., section 6.2: 10 to 20; scikit-learn: 20)
NEIGHBOUR_RATIO, LEAST_NEIGHBOURS, MOST_NEIGHBOURS = 0.5, 3, 20
#: smaller sets have no outliers (IOSI 2.3: 5 to 10 samples are required)
LEAST_JUDGED_COUNT = 5

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


# ---- unusual durations


def are_usual(duration_s: Reals, offsets: Ints) -> Bools:
    """Mark the runs of sets that take about as long as most of their set.

    Parameters
    ----------
    duration_s : shape (n,), of each run; one that is not known, or not positive, is not usual
    offsets : shape (m + 1,), set i has the runs offsets[i] to offsets[i + 1]

    Returns
    -------
    Bools : shape (n,)

    What most runs of a set take is the median of the longest group that is large enough, a group being the runs that
    are alike one of them. Not the median of all, nor their mode: a half of a set and more may be runs that stopped or
    began again.

    """
    counts = np.diff(offsets)
    usual_s = np.repeat([usual_duration_s(duration_s[a:b]) for a, b in pairwise(offsets)], counts)
    is_alike = (duration_s >= (1 - MOST_SHORTER_RATIO) * usual_s) & (duration_s <= (1 + MOST_LONGER_RATIO) * usual_s)
    is_usual = (duration_s > 0) & is_alike
    owner = owners(offsets)
    is_enough = np.bincount(owner[is_usual], minlength=len(counts)) >= LEAST_USUAL_COUNT
    marked: Bools = is_usual | ~is_enough[owner]
    return marked


def usual_duration_s(duration_s: Reals) -> float:
    """Return what most runs (n) of a set take; NaN where no duration is known."""
    known = np.sort(duration_s[np.isfinite(duration_s) & (duration_s > 0)])
    if not len(known):
        return float("nan")
    first = known.searchsorted((1 - MOST_SHORTER_RATIO) * known, side="left")
    last = known.searchsorted((1 + MOST_LONGER_RATIO) * known, side="right")
    alike = last - first
    longest = int(np.flatnonzero(alike >= LEAST_GROUP_SHARE * alike.max())[-1])
    return middle_of(known[first[longest] : last[longest]])


# ---- outliers


def volumes(sets: SampleSets) -> Reals:
    """Return what passed through the servers during each run [bytes] (n).

    The mean of the steps that were measured counts for all of the sample: a gap in the polls is no lack of I/O. NaN
    where nothing was measured.
    """
    counts, owner, values = sets.samples.counts, sets.samples.owner, sets.samples.values
    is_known = np.isfinite(values)
    known = counts.astype(np.float64)
    if not is_known.all():
        known = np.bincount(owner, is_known, len(counts)).astype(np.float64)
        values = np.where(is_known, values, 0.0)
    total = np.bincount(owner, values, len(counts))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found: Reals = total / known * counts * sets.interval_s[sets.owner]
    return found


def factors(duration_s: Reals, volume_bytes: Reals, offsets: Ints) -> Reals:
    """Return the local outlier factor of each run within its set (n).

    duration_s, volume_bytes (n). offsets (m + 1): set i has the runs offsets[i] to offsets[i + 1]. Each axis is
    measured in its own unit, see `scaled`. NaN for runs whose duration or volume is
    not a number from 0 on, which are nobody's neighbours, and in sets with too few others.
    """
    is_known = np.isfinite(duration_s) & np.isfinite(volume_bytes) & (duration_s >= 0) & (volume_bytes >= 0)
    owner = owners(offsets)
    counts = np.bincount(owner[is_known], minlength=len(offsets) - 1)
    found = np.full(len(duration_s), np.nan)
    known = np.flatnonzero(is_known)
    firsts = offsets_of(counts)
    for count in np.unique(counts[counts >= LEAST_JUDGED_COUNT]).tolist():
        for group in _chunks(np.flatnonzero(counts == count), count):
            runs = known[firsts[group][:, None] + np.arange(count)]
            points = np.stack([scaled(duration_s[runs]), scaled(volume_bytes[runs])], axis=-1)
            found[runs] = local_factors(points, neighbour_count(count))
    return found


def are_outliers(duration_s: Reals, volume_bytes: Reals, offsets: Ints) -> Bools:
    """Return whether each run is an outlier of its set (n); see `factors` for the arguments.

    Runs of which nothing is known are outliers where there are enough others to judge by. At least one run of each set
    is left.
    """
    found = factors(duration_s, volume_bytes, offsets)
    owner = owners(offsets)
    is_judged = np.isfinite(found)
    count = np.bincount(owner, is_judged, len(offsets) - 1)
    total = np.bincount(owner, np.where(is_judged, found, 0.0), len(offsets) - 1)
    bound = np.maximum(total / np.maximum(count, 1), APART_FACTOR)
    # a mean of equal factors may miss them by a rounding error
    is_outlier = is_judged & (np.where(is_judged, found, 0.0) > bound[owner] * (1.0 + 1e-12))
    most = np.floor(MOST_OUTLIER_RATIO * count).astype(np.int64)
    is_outlier &= _ranks(np.where(is_outlier, found, -np.inf), owner, offsets) < most[owner]
    found_out: Bools = is_outlier | (~is_judged & (count > 0)[owner])
    return found_out


def neighbour_count(run_count: int) -> int:
    """Return how many neighbours are asked in a set: one less than it has runs at most."""
    wanted = max(LEAST_NEIGHBOURS, int(NEIGHBOUR_RATIO * run_count))
    return max(1, min(wanted, MOST_NEIGHBOURS, run_count - 1))


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
    middle = row_medians(shares)
    least = _LEAST_DEVIATION * np.where(middle > 0, middle, 1.0)
    unit = np.maximum(row_medians(np.abs(shares - middle)), least)
    with np.errstate(over="ignore"):
        # squares of more would leave the range
        return np.clip((shares - middle) / unit, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


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
