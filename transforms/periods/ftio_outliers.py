"""Find outliers of a spectrum by the methods that FTIO names (section II-B2).

The methods are the Z-score, DBSCAN, isolation forest, local outlier factor and SciPy's `find_peaks`. For each method,
equation 3 defines a candidate as an outlier near the maximum: its distance from the mean is `tolerance` times the
greatest distance or more. The paper gives parameters for the Z-score only. Isolation forest and local outlier factor
use the points (frequency / highest frequency, fraction of power), as FTIO 0.0.9 does.

The paper's methods are used "either alone or by merging their result with the Z-score", without a rule for the merge,
and FTIO 0.0.9 does not merge. `merge_outliers` takes the outliers of both, or of either (ours).

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.autocorrelation import find_row_peaks
from iosig.transforms.periods.ftio_spectra import compute_moments

Method = Literal["z_score", "dbscan", "isolation_forest", "local_outlier_factor", "find_peaks"]
#: merge of another method with the Z-score: outliers of that method alone, of both methods, or of either
Merge = Literal["none", "agreement", "union"]

#: relative tolerance of comparisons with thresholds
_ROUNDING_FACTOR = 1.0 - 1e-12
#: minimum number of bins for any outlier
_MIN_BINS = 3
#: neighbors of the local outlier factor (scikit-learn's default; the threshold is that of the method's own paper)
_FACTOR_NEIGHBOR_COUNT = 20


@dataclass(frozen=True, slots=True)
class OutlierParams:
    """Thresholds of outliers and candidates.

    Attributes
    ----------
    z_threshold : float
        Minimum Z-score of an outlier (equation 3: 3).
    tolerance : float
        Minimum Z-score of a candidate, as a fraction of the greatest Z-score (equation 3: 0.8).
    forest_tree_count, seed : int
        Number of trees and seed of the isolation forest (scikit-learn's default: 100 trees; the threshold is that of
        the method's own paper).
    """

    z_threshold: float = 3.0
    tolerance: float = 0.8
    forest_tree_count: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outliers:
    """Outlying bins of the spectra of many signals, by signal, then by bin.

    Attributes
    ----------
    signal, bin : (m,)
        Number of the signal, and k from 1.
    score : (m,)
        The Z-score; for the other methods a score from 0 to 1, where 1 is the strongest outlier.
    is_outlier : (m,)
        Whether the bin is an outlier according to the method.
    is_near : (m,)
        Whether the bin is near the maximum power. Bins that are neither outliers nor near the maximum are omitted.
    """

    signal: Ints
    bin: Ints
    score: Reals
    is_outlier: Bools
    is_near: Bools

    @property
    def is_candidate(self) -> Bools:
        """Whether each bin is a candidate for the dominant frequency, by equation 3 (m)."""
        return self.is_outlier & self.is_near


def count_min_bins(method: Method, params: OutlierParams) -> int:
    """Minimum number of bins in which an outlier is possible.

    Parameters
    ----------
    method : str
        One of `Method`.
    params : OutlierParams

    Returns
    -------
    int
        For the Z-score, ``z_threshold**2 + 1`` or more, because the maximum Z-score of b bins is sqrt(b - 1).
    """
    return max(_MIN_BINS, math.ceil(params.z_threshold**2 + 1.0)) if method == "z_score" else _MIN_BINS


def find_outliers(power: Reals, method: Method = "z_score", params: OutlierParams | None = None) -> Outliers:
    """Find the outliers of spectra.

    Parameters
    ----------
    power : (n, bins)
        Power of each bin, in the units of `Spectra`.
    method : str
        One of `Method`.
    params : OutlierParams, optional

    Returns
    -------
    Outliers
    """
    return _METHODS[method](power, params or OutlierParams())


def align_outliers(parts: Sequence[Outliers], bin_count: int) -> list[Outliers]:
    """Extend the outliers that several methods find in the same spectra to the union of their bins.

    Parameters
    ----------
    parts : sequence of Outliers
        Outliers by each method.
    bin_count : int
        Number of bins of each spectrum.

    Returns
    -------
    list of Outliers
        The same m bins in all parts. Where a method omits a bin, its score is 0 and both flags are false.
    """
    cells = [part.signal * (bin_count + 1) + part.bin for part in parts]
    all_cells = np.unique(np.concatenate(cells))
    signal, number = np.divmod(all_cells, bin_count + 1)
    aligned = []
    for part, own_cells in zip(parts, cells, strict=True):
        score = np.zeros(len(all_cells))
        is_outlier, is_near = np.zeros(len(all_cells), np.bool_), np.zeros(len(all_cells), np.bool_)
        at = np.searchsorted(all_cells, own_cells)
        score[at], is_outlier[at], is_near[at] = part.score, part.is_outlier, part.is_near
        aligned.append(Outliers(signal, number, score, is_outlier, is_near))
    return aligned


def merge_outliers(parts: Sequence[Outliers], merge: Merge) -> Outliers:
    """Merge the outliers of several methods: those of all methods (`agreement`), or else of any.

    Parameters
    ----------
    parts : sequence of Outliers
        Outliers by each method, at the same m bins.
    merge : str
        One of `Merge`.

    Returns
    -------
    Outliers
        With the scores of the first method.
    """
    combine = np.logical_and if merge == "agreement" else np.logical_or
    is_outlier: Bools = combine.reduce([part.is_outlier for part in parts])
    is_near: Bools = np.logical_or.reduce([part.is_near for part in parts])
    return replace(parts[0], is_outlier=is_outlier, is_near=is_near)


def find_z_score_outliers(power: Reals, params: OutlierParams) -> Outliers:
    """Find bins with a Z-score of the threshold or more, or near the greatest one (sets I1 and I2 of section II-C).

    Parameters and result are those of `find_outliers`. A signal has no outliers if no bin reaches the threshold, or all
    powers are equal.
    """
    if power.shape[1] < _MIN_BINS:
        return _empty_outliers()
    mean, spread = compute_moments(power)
    max_deviation = power.max(axis=1) - mean
    outlier_threshold, near_threshold = (
        params.z_threshold * spread * _ROUNDING_FACTOR,
        params.tolerance * max_deviation * _ROUNDING_FACTOR,
    )
    has_any = (max_deviation >= outlier_threshold) & (spread > 0)
    level = np.where(has_any, mean + np.minimum(outlier_threshold, near_threshold), np.inf)
    flat = np.flatnonzero(power >= level[:, None])
    signal = flat // power.shape[1]
    height = power.ravel()[flat] - mean[signal]
    is_outlier, is_near = height >= outlier_threshold[signal], height >= near_threshold[signal]
    return Outliers(signal, flat - signal * power.shape[1] + 1, height / spread[signal], is_outlier, is_near)


def find_dbscan_outliers(power: Reals, params: OutlierParams) -> Outliers:
    """Find bins above the mean power that belong to no cluster; the score is the fraction of the maximum power.

    Parameters and result are those of `find_outliers`.

    Notes
    -----
    Frequencies are measured in units of the frequency step; powers in units of ``1 - tolerance`` times their range. The
    radius is sqrt(2), the diagonal of one unit of each, so only adjacent bins of similar power are neighbors. The
    paper derives the radius from the frequency step, but gives no formula. FTIO 0.0.9 combines the same two lengths as
    fractions. There, distant frequencies become neighbors; the higher the sampling frequency, the more distant.
    """
    shares, mean, max_deviation = _normalize(power)
    if not shares.size:
        return _empty_outliers()
    remainder = max(1.0 - params.tolerance, 1.0 - _ROUNDING_FACTOR)
    span = (shares.max(axis=1) - shares.min(axis=1)) * remainder
    heights = shares / np.where(max_deviation > 0, span, np.inf)[:, None]
    is_alone = is_dbscan_noise(heights) & (shares > mean[:, None])
    highest = shares.max(axis=1)
    score = shares / np.where(highest > 0, highest, 1.0)[:, None]
    return _select_outliers(is_alone, score, shares, mean, max_deviation, params)


def is_dbscan_noise(heights: Reals) -> Bools:
    """Return which points (bin, height) DBSCAN (eps = sqrt(2), min_samples = 2) labels as noise.

    Parameters
    ----------
    heights : (n, bins)

    Returns
    -------
    (n, bins)
        FTIO 0.0.9 requires 2 points including the point itself, so a point is noise if no other point lies within the
        radius. Since bins are integers, only adjacent bins can, and no search tree is needed.
    """
    is_linked = np.abs(np.diff(heights, axis=1)) * _ROUNDING_FACTOR <= 1.0
    is_noise = np.ones(heights.shape, dtype=np.bool_)
    is_noise[:, 1:] &= ~is_linked
    is_noise[:, :-1] &= ~is_linked
    return is_noise


def find_isolation_forest_outliers(power: Reals, params: OutlierParams) -> Outliers:
    """Find bins above the mean power that random trees isolate early.

    Parameters and result are those of `find_outliers`.

    References
    ----------
    F. T. Liu, K. M. Ting and Z.-H. Zhou, "Isolation Forest", ICDM 2008, doi:10.1109/ICDM.2008.17
    """
    from sklearn.ensemble import IsolationForest  # type: ignore[import-untyped,unused-ignore]

    def classify(points: Reals) -> tuple[Bools, Reals]:
        model = IsolationForest(n_estimators=params.forest_tree_count, random_state=params.seed).fit(points)
        decision = np.asarray(model.decision_function(points), dtype=np.float64)
        return decision < 0, decision

    return _apply_model(power, params, classify)


def find_local_outlier_factors(power: Reals, params: OutlierParams) -> Outliers:
    """Find bins above the mean power with a lower local density than their neighbors.

    Parameters and result are those of `find_outliers`.

    References
    ----------
    M. M. Breunig et al., "LOF: Identifying Density-Based Local Outliers", SIGMOD 2000, doi:10.1145/342009.335388
    """
    from sklearn.neighbors import LocalOutlierFactor  # type: ignore[import-untyped,unused-ignore]

    def classify(points: Reals) -> tuple[Bools, Reals]:
        model = LocalOutlierFactor(n_neighbors=min(_FACTOR_NEIGHBOR_COUNT, len(points) - 1))
        is_outlier = model.fit_predict(points) < 0
        return is_outlier, np.asarray(model.negative_outlier_factor_, dtype=np.float64)

    return _apply_model(power, params, classify)


def find_peak_outliers(power: Reals, params: OutlierParams) -> Outliers:
    """Find bins higher than both neighbors and than the mean; the score is 1.

    Parameters and result are those of `find_outliers`. The lowest and the highest bin are never outliers.
    """
    shares, mean, max_deviation = _normalize(power)
    if not shares.size:
        return _empty_outliers()
    peaks = find_row_peaks(shares, 0.0)
    is_outlier = np.zeros(shares.shape, dtype=np.bool_)
    is_outlier[peaks.row, peaks.place] = peaks.height > mean[peaks.row]
    return _select_outliers(is_outlier, np.ones(shares.shape), shares, mean, max_deviation, params)


_METHODS: dict[str, Callable[[Reals, OutlierParams], Outliers]] = {
    "z_score": find_z_score_outliers,
    "dbscan": find_dbscan_outliers,
    "isolation_forest": find_isolation_forest_outliers,
    "local_outlier_factor": find_local_outlier_factors,
    "find_peaks": find_peak_outliers,
}


def _empty_outliers() -> Outliers:
    empty, no_flags = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    return Outliers(empty, empty, np.zeros(0), no_flags, no_flags)


def _normalize(power: Reals) -> tuple[Reals, Reals, Reals]:
    """Fractions of power (n, bins), their means (n), and the maximum deviation from the mean (n).

    If there are too few bins, the result has no columns. The deviation is 0 if all powers are equal.
    """
    if power.shape[1] < _MIN_BINS:
        return power[:, :0], np.zeros(len(power)), np.zeros(len(power))
    total = power.sum(axis=1)
    shares = power / np.where(total > 0, total, 1.0)[:, None]
    mean, spread = compute_moments(shares)
    return shares, mean, np.where(spread > 0, shares.max(axis=1) - mean, 0.0)


def _select_outliers(
    is_outlier: Bools, score: Reals, shares: Reals, mean: Reals, max_deviation: Reals, params: OutlierParams
) -> Outliers:
    """Convert a mask of outliers (n, bins) to rows, and mark the bins near the maximum."""
    is_outlier &= (max_deviation > 0)[:, None]
    signal, column = np.nonzero(is_outlier)
    height = shares[signal, column] - mean[signal]
    is_near = height >= params.tolerance * max_deviation[signal] * _ROUNDING_FACTOR
    return Outliers(signal, column + 1, score[signal, column], np.ones(len(signal), dtype=np.bool_), is_near)


def _apply_model(power: Reals, params: OutlierParams, classify: Callable[[Reals], tuple[Bools, Reals]]) -> Outliers:
    """Fit a model to each signal's points, and scale decision values to scores: 1 for the lowest, 0 for the highest."""
    shares, mean, max_deviation = _normalize(power)
    is_outlier, score = np.zeros(shares.shape, dtype=np.bool_), np.zeros(shares.shape)
    frequency = np.arange(1, shares.shape[1] + 1) / max(shares.shape[1], 1)
    for signal in np.flatnonzero(max_deviation > 0) if shares.size else ():
        is_outlier[signal], decision = classify(np.column_stack([frequency, shares[signal]]))
        low, high = float(decision.min()), float(decision.max())
        score[signal] = (high - decision) / (high - low) if high > low else 0.0
    if not shares.size:
        return _empty_outliers()
    return _select_outliers(is_outlier & (shares > mean[:, None]), score, shares, mean, max_deviation, params)
