"""Select the runs of a set: exclude runs of atypical duration, and outliers by duration and volume.

*Typical duration.* A run that stopped early or resumed from a checkpoint is not a sample of the whole application
(IOSI, FAST'14, section 5.1 and its note 1). Local outlier factors miss such runs if several are similar or almost
complete. A single short run would determine the length of the whole set, because IOSI's duration correction trims all
samples to the shortest. A run that was stopped by its time limit may have a typical duration, but is no sample either.

*Outliers.* IOSI (Liu et al., FAST'14), section 5.1, compares runs by (duration, volume): stopped and resumed runs are
shorter and move less, while runs during heavy interference take longer, with more traffic on the servers. The local
outlier factor (Breunig et al., "LOF: identifying density-based local outliers", SIGMOD'00, DOI 10.1145/342009.335388)
is the ratio of the density around a run's neighbors to that around the run, about 1 within a cluster. IOSI's
threshold, the mean factor of the set, excludes a third of the runs of a clean set; ours has a minimum. The paper does
not specify the scales of both axes and the number of neighbors: `scale_by_mad` and `neighbor_count` serve both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners
from iosig.transforms.signatures.averages import median_1d, row_medians
from iosig.transforms.signatures.sample_sets import SampleSets

#: number of distances per chunk: bounds memory use and fits into the cache
_CHUNK_DISTANCES = 1 << 15
#: maximum number of runs in a set without a k-d tree
_MAX_TABLE_RUNS = 1024
#: minimum reachability distance, which keeps the density of coincident runs finite, as in scikit-learn
_MIN_REACHABILITY = 1e-10


@dataclass(frozen=True, slots=True)
class OutlierParams:
    """Thresholds of both selections; they are ours unless a source is given.

    Attributes
    ----------
    max_shorter_ratio
        Maximum relative difference by which a typical run is shorter than the typical duration. Interference never
        shortens a run.
    max_longer_ratio
        Maximum relative difference by which a typical run is longer. IOSI, section 5.1: less than 10 % after outlier
        elimination.
    min_typical_count
        Minimum number of typical runs; with fewer, all runs of the set count as typical.
    min_group_ratio
        Minimum size of the group that defines the typical duration, relative to the largest group. The group with the
        longest duration is taken: stopped runs may be similar to others, but no partial run is longer than a complete
        one.
    min_factor
        Minimum local outlier factor of an outlier, which must also exceed the mean factor of the set.
    max_outlier_ratio
        Maximum fraction of outliers in a set. IOSI, section 5.1, assumes that most runs of a set are similar.
    neighbor_ratio
        Number of neighbors, relative to the number of runs in the set. With half, a smaller group of outliers is not
        its own neighborhood.
    min_neighbors, max_neighbors
        Limits of the number of neighbors. Breunig et al., section 6.2: 10 to 20; scikit-learn: 20.
    min_run_count
        Minimum number of runs in a set with outliers. IOSI, section 2.3, requires 5 to 10 samples.
    min_relative_deviation
        Minimum unit of durations and volumes, relative to the median of the set.
    max_deviations
        Limit of the distance from the median, in such units.
    """

    max_shorter_ratio: float = 0.05
    max_longer_ratio: float = 0.1
    min_typical_count: int = 3
    min_group_ratio: float = 0.6
    min_factor: float = 1.5
    max_outlier_ratio: float = 0.5
    neighbor_ratio: float = 0.5
    min_neighbors: int = 3
    max_neighbors: int = 20
    min_run_count: int = 5
    min_relative_deviation: float = 1e-3
    max_deviations: float = 1e9


PARAMS = OutlierParams()


# ---- typical durations


def select_typical_runs(duration_s: Reals, offsets: Ints, is_truncated: Bools | None = None) -> Bools:
    """Mark the complete runs of typical duration in each set, see `typical_duration_s`.

    Parameters
    ----------
    duration_s : (n,)
        Duration of each run [s]; an unknown or non-positive one is not typical.
    offsets : (m + 1,)
        Set i has the runs offsets[i] to offsets[i + 1].
    is_truncated : (n,) or None
        Whether a run was stopped before it was complete; None if all runs are complete. Such a run says nothing about
        the duration of the application, and its bursts are too late if it is normalized to that duration. In sets with
        fewer than `PARAMS.min_typical_count` complete runs, all runs count as complete.

    Returns
    -------
    (n,)
        All complete runs in sets with fewer than `PARAMS.min_typical_count` typical runs.

    Notes
    -----
    On two simulated families with time limits, to let truncated runs contribute their beginning at the pace of a
    typical run was worse than to exclude them: they were stopped because they had been delayed.
    """
    counts = np.diff(offsets)
    is_complete = _select_complete_runs(is_truncated, offsets)
    duration_s = np.where(is_complete, duration_s, np.nan)
    typical_s = np.repeat([typical_duration_s(duration_s[a:b]) for a, b in pairwise(offsets)], counts)
    low_s, high_s = (1 - PARAMS.max_shorter_ratio) * typical_s, (1 + PARAMS.max_longer_ratio) * typical_s
    is_typical = (duration_s > 0) & ((duration_s >= low_s) & (duration_s <= high_s))
    owner = owners(offsets)
    is_enough = np.bincount(owner[is_typical], minlength=len(counts)) >= PARAMS.min_typical_count
    is_selected: Bools = is_typical | (is_complete & ~is_enough[owner])
    return is_selected


def _select_complete_runs(is_truncated: Bools | None, offsets: Ints) -> Bools:
    """Mark the runs (n) that were not truncated; all runs of a set with too few of them."""
    if is_truncated is None:
        return np.ones(int(offsets[-1]), np.bool_)
    owner = owners(offsets)
    count = np.bincount(owner, ~is_truncated, len(offsets) - 1)
    is_complete: Bools = ~is_truncated | (count < PARAMS.min_typical_count)[owner]
    return is_complete


def typical_duration_s(duration_s: Reals) -> float:
    """Estimate the duration of a set's complete runs: the median of the longest large group of similar durations [s].

    The median or the mode of all durations would fail, since half of a set or more may be stopped or resumed runs. The
    result is NaN if no duration (n) is known.
    """
    known = np.sort(duration_s[np.isfinite(duration_s) & (duration_s > 0)])
    if not len(known):
        return float("nan")
    first = known.searchsorted((1 - PARAMS.max_shorter_ratio) * known, side="left")
    end = known.searchsorted((1 + PARAMS.max_longer_ratio) * known, side="right")
    group_size = end - first
    longest = int(np.flatnonzero(group_size >= PARAMS.min_group_ratio * group_size.max())[-1])
    return median_1d(known[first[longest] : end[longest]])


# ---- outliers


def run_volumes(sets: SampleSets) -> Reals:
    """Compute the bytes that the servers transferred during each run.

    Parameters
    ----------
    sets
        Sample sets with n runs in all.

    Returns
    -------
    (n,)
        Volumes [bytes]. The mean of the measured steps is extrapolated to the whole sample, since a gap in the polls is
        not a lack of I/O; NaN if no step was measured.
    """
    counts, owner, values = sets.samples.counts, sets.samples.owner, sets.samples.values
    is_known = np.isfinite(values)
    known = counts.astype(np.float64)
    if not is_known.all():
        known = np.bincount(owner, is_known, len(counts)).astype(np.float64)
        values = np.where(is_known, values, 0.0)
    total = np.bincount(owner, values, len(counts))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        volumes: Reals = total / known * counts * sets.interval_s[sets.owner]
    return volumes


def local_outlier_factors(duration_s: Reals, volume_bytes: Reals, offsets: Ints) -> Reals:
    """Compute the local outlier factor of each run from its duration and volume, both scaled by `scale_by_mad`.

    Parameters
    ----------
    duration_s, volume_bytes : (n,)
        Duration [s] and volume [bytes] of each run.
    offsets : (m + 1,)
        Set i has the runs offsets[i] to offsets[i + 1].

    Returns
    -------
    (n,)
        NaN for runs with an unknown or negative value, which are not neighbors of others either, and in sets with
        fewer than `PARAMS.min_run_count` other runs.
    """
    is_known = np.isfinite(duration_s) & np.isfinite(volume_bytes) & (duration_s >= 0) & (volume_bytes >= 0)
    owner = owners(offsets)
    counts = np.bincount(owner[is_known], minlength=len(offsets) - 1)
    factors = np.full(len(duration_s), np.nan)
    known = np.flatnonzero(is_known)
    firsts = offsets_of(counts)
    for count in np.unique(counts[counts >= PARAMS.min_run_count]).tolist():
        for group in _chunk_sets(np.flatnonzero(counts == count), count):
            runs = known[firsts[group][:, None] + np.arange(count)]
            points = np.stack([scale_by_mad(duration_s[runs]), scale_by_mad(volume_bytes[runs])], axis=-1)
            factors[runs] = compute_lof(points, neighbor_count(count))
    return factors


@dataclass(frozen=True, slots=True)
class OutlierScores:
    """Local outlier factors of n runs in m sets, and the outliers (IOSI, section 5.1 and Figure 7).

    Attributes
    ----------
    factor : (n,)
        See `local_outlier_factors`.
    threshold : (m,)
        Factor that an outlier exceeds; NaN in sets without factors.
    is_outlier : (n,)
    """

    factor: Reals
    threshold: Reals
    is_outlier: Bools

    @classmethod
    def unknown(cls, run_count: int, set_count: int) -> OutlierScores:
        """Return scores without factors and outliers."""
        return cls(np.full(run_count, np.nan), np.full(set_count, np.nan), np.zeros(run_count, dtype=np.bool_))


def detect_outliers(
    duration_s: Reals,
    volume_bytes: Reals,
    offsets: Ints,
    min_factor: float = PARAMS.min_factor,
    max_outlier_ratio: float = PARAMS.max_outlier_ratio,
) -> Bools:
    """Mark the outliers (n) of each set by duration and volume, see `score_outliers`."""
    return score_outliers(duration_s, volume_bytes, offsets, min_factor, max_outlier_ratio).is_outlier


def score_outliers(
    duration_s: Reals,
    volume_bytes: Reals,
    offsets: Ints,
    min_factor: float = PARAMS.min_factor,
    max_outlier_ratio: float = PARAMS.max_outlier_ratio,
) -> OutlierScores:
    """Compare the runs of each set by duration and volume.

    Parameters
    ----------
    duration_s, volume_bytes, offsets
        See `local_outlier_factors`.
    min_factor, max_outlier_ratio
        See `OutlierParams`. With 0 and 1, the threshold is the mean factor of the set, as in IOSI, section 5.1.

    Returns
    -------
    OutlierScores
        Runs with unknown values are outliers, if their set has enough other runs. No set loses all its runs.
    """
    factors = local_outlier_factors(duration_s, volume_bytes, offsets)
    owner = owners(offsets)
    has_factor = np.isfinite(factors)
    count = np.bincount(owner, has_factor, len(offsets) - 1)
    total = np.bincount(owner, np.where(has_factor, factors, 0.0), len(offsets) - 1)
    threshold = np.maximum(total / np.maximum(count, 1), min_factor)
    # the mean of equal factors may differ from them by a rounding error
    is_outlier = has_factor & (np.where(has_factor, factors, 0.0) > threshold[owner] * (1.0 + 1e-12))
    max_count = np.floor(max_outlier_ratio * count).astype(np.int64)
    is_outlier &= _rank_within_sets(np.where(is_outlier, factors, -np.inf), owner, offsets) < max_count[owner]
    is_outlier |= ~has_factor & (count > 0)[owner]
    return OutlierScores(factors, np.where(count > 0, threshold, np.nan), is_outlier)


def neighbor_count(run_count: int) -> int:
    """Choose the number of neighbors in a set of `run_count` runs; it is limited to all other runs."""
    target_count = max(PARAMS.min_neighbors, int(PARAMS.neighbor_ratio * run_count))
    return max(1, min(target_count, PARAMS.max_neighbors, run_count - 1))


def compute_lof(points: Reals, neighbor_count: int) -> Reals:
    """Compute the local outlier factors of points, separately for each set.

    Parameters
    ----------
    points : (sets, points, dimensions)
        Scaled coordinates.
    neighbor_count
        Number of neighbors of a point, less than the number of points.

    Returns
    -------
    (sets, points)

    Notes
    -----
    Each point has exactly `neighbor_count` neighbors; if several are equally distant, the first ones count. Breunig
    et al. include all equally distant points; scikit-learn takes the same number as here, in an order that depends on
    its search.
    """
    if points.shape[1] > _MAX_TABLE_RUNS:
        nearest = [_find_neighbors_by_tree(set_points, neighbor_count) for set_points in points]
        distance, index = np.stack([one[0] for one in nearest]), np.stack([one[1] for one in nearest])
    else:
        distance, index = _find_neighbors(points, neighbor_count)
    # indices into the flattened sets
    shift = np.arange(len(points))[:, None, None] * points.shape[1]
    flat = (index + shift).reshape(len(points), -1)
    reachability = np.maximum(distance, distance[..., -1].ravel()[flat].reshape(distance.shape))
    density = 1.0 / (reachability.mean(axis=-1) + _MIN_REACHABILITY)
    neighbor_density = density.ravel()[flat].reshape(distance.shape)
    factors: Reals = (neighbor_density / density[..., None]).mean(axis=-1)
    return factors


def _chunk_sets(sets: Ints, run_count: int) -> Iterator[Ints]:
    """Split a list of sets of equal size into chunks with a limited number of distances."""
    step = max(1, _CHUNK_DISTANCES // (run_count * run_count))
    for first in range(0, len(sets), step):
        yield sets[first : first + step]


def scale_by_mad(values: Reals) -> Reals:
    """Standardize rows by their median and median absolute deviation.

    Parameters
    ----------
    values : (sets, runs)
        Not negative, in any unit.

    Returns
    -------
    (sets, runs)
        Signed distances from the median; constant rows become 0.

    Notes
    -----
    The unit is no smaller than a thousandth of the median (of the maximum, if the median is 0). Job logs have whole
    seconds; among runs of equal duration, a difference of one second would otherwise be infinitely large.
    """
    # divide by the maximum first, since differences of huge or denormal numbers leave the range
    highest = values.max(axis=1, keepdims=True)
    shares = values / np.where(highest > 0, highest, 1.0)
    median = row_medians(shares)
    min_unit = PARAMS.min_relative_deviation * np.where(median > 0, median, 1.0)
    unit = np.maximum(row_medians(np.abs(shares - median)), min_unit)
    with np.errstate(over="ignore"):
        # squares of larger values would leave the range
        return np.clip((shares - median) / unit, -PARAMS.max_deviations, PARAMS.max_deviations)


def _find_neighbors(points: Reals, neighbor_count: int) -> tuple[Reals, Ints]:
    """Find distance and index of the nearest neighbors (sets, points, neighbors), nearest first."""
    squares = np.zeros((len(points), points.shape[1], points.shape[1]))
    for axis in range(points.shape[2]):
        values = points[..., axis]
        squares += (values[:, :, None] - values[:, None, :]) ** 2
    diagonal = np.arange(points.shape[1])
    squares[:, diagonal, diagonal] = np.inf
    index = np.argsort(squares, axis=-1, kind="stable")[..., :neighbor_count]
    return np.sqrt(np.take_along_axis(squares, index, axis=-1)), index


def _find_neighbors_by_tree(points: Reals, neighbor_count: int) -> tuple[Reals, Ints]:
    """Find distance and index of the nearest neighbors (points, neighbors) of one large set, nearest first."""
    from scipy.spatial import cKDTree  # slow import

    distance, index = cKDTree(points).query(points, neighbor_count + 1)
    is_self = index == np.arange(len(points))[:, None]
    # if there are more coincident points than requested, a point may be missing from its own result
    is_self[~is_self.any(axis=1), -1] = True
    shape = (len(points), neighbor_count)
    return distance[~is_self].reshape(shape), index[~is_self].reshape(shape).astype(np.int64)


def _rank_within_sets(values: Reals, owner: Ints, offsets: Ints) -> Ints:
    """Rank each value within its set (n), 0 for the largest."""
    order = np.lexsort((-values, owner))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values)) - offsets[owner]
    return ranks
