"""Frequencies that stand out of a spectrum, by the methods that FTIO names (section II-B2).

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24: Z-score, DBSCAN, isolation forest, local
outlier factor and SciPy's `find_peaks`. For all of them a candidate, by equation 3, both stands out and comes near the
highest power: its distance from the mean is at least the tolerance's share of the greatest one.

The paper gives no parameters for the other methods. Isolation forest and local outlier factor judge points of a
plane: the frequency over the highest one, and the share of the power, as FTIO 0.0.9 does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.autocorrelation import peaks
from iosig.transforms.periods.ftio_spectra import moments

Method = Literal["z_score", "dbscan", "isolation_forest", "local_outlier_factor", "find_peaks"]

#: bounds that are met but for rounding are met
_NEARLY = 1.0 - 1e-12
#: below it, no point can lie apart from others
_FEWEST_BINS = 3
#: neighbours of the local outlier factor (scikit-learn's default; the threshold is that of the method's own paper)
_FACTOR_NEIGHBOUR_COUNT = 20


@dataclass(frozen=True, slots=True)
class OutlierParams:
    """What stands out, and what comes near the highest.

    z_threshold: the least Z-score of an outlier (equation 3: 3). tolerance: the least share of the greatest Z-score
    that a candidate has (equation 3: 0.8). forest_tree_count, seed: of the isolation forest
    (scikit-learn's default: 100; its threshold is that of the method's own paper).
    """

    z_threshold: float = 3.0
    tolerance: float = 0.8
    forest_tree_count: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outliers:
    """Bins (m) that stand out of the spectra of many signals, in order of signals, then bins.

    signal, bin (m): the number of the signal, and k from 1 up. score (m): the Z-score; for the other methods from 0 to
    1, where 1 stands out most. is_outlier (m): whether the method says that it stands out. is_near (m): whether it
    comes near the highest power. Bins that are neither are left out.
    """

    signal: Ints
    bin: Ints
    score: Reals
    is_outlier: Bools
    is_near: Bools

    @property
    def is_candidate(self) -> Bools:
        """Whether each is a candidate for the dominant frequency, by equation 3 (m)."""
        return self.is_outlier & self.is_near


def fewest_bins(method: Method, params: OutlierParams) -> int:
    """Return how many bins a spectrum must have for any of them to stand out.

    The highest Z-score that one of b bins can have is sqrt(b - 1).
    """
    return max(_FEWEST_BINS, math.ceil(params.z_threshold**2 + 1.0)) if method == "z_score" else _FEWEST_BINS


def outliers(power: Reals, method: Method = "z_score", params: OutlierParams | None = None) -> Outliers:
    """Return what stands out of spectra (n, bins), by one of the methods; powers are in the units of `Spectra`."""
    return _METHODS[method](power, params or OutlierParams())


def z_score(power: Reals, params: OutlierParams) -> Outliers:
    """Return bins whose Z-score is at least the threshold, or near the greatest (sets I1 and I2 of section II-C).

    Signals of which no bin reaches the threshold have none, nor have those with all powers alike.
    """
    if power.shape[1] < _FEWEST_BINS:
        return _no_outliers()
    mean, spread = moments(power)
    greatest = power.max(axis=1) - mean
    outlying, near = params.z_threshold * spread * _NEARLY, params.tolerance * greatest * _NEARLY
    has_any = (greatest >= outlying) & (spread > 0)
    level = np.where(has_any, mean + np.minimum(outlying, near), np.inf)
    at = np.flatnonzero(power >= level[:, None])
    signal = at // power.shape[1]
    height = power.ravel()[at] - mean[signal]
    is_outlier, is_near = height >= outlying[signal], height >= near[signal]
    return Outliers(signal, at - signal * power.shape[1] + 1, height / spread[signal], is_outlier, is_near)


def dbscan(power: Reals, params: OutlierParams) -> Outliers:
    """Return bins above the mean power that are in no cluster; the score is the share of the highest power.

    The plane's units are the frequency step and the tolerance's remainder of the range of powers, and points are
    neighbours up to the length of one of each, square root of 2: only neighbouring frequencies are, if their powers
    are no further apart. The paper computes the distance from the frequency step and gives no formula. FTIO 0.0.9
    puts the same two lengths together, but of shares: there frequencies far apart are neighbours, and the more of
    them, the higher the sampling frequency.
    """
    shares, mean, greatest = _plane(power)
    if not shares.size:
        return _no_outliers()
    remainder = max(1.0 - params.tolerance, 1.0 - _NEARLY)
    span = (shares.max(axis=1) - shares.min(axis=1)) * remainder
    heights = shares / np.where(greatest > 0, span, np.inf)[:, None]
    is_alone = is_noise(heights) & (shares > mean[:, None])
    highest = shares.max(axis=1)
    score = shares / np.where(highest > 0, highest, 1.0)[:, None]
    return _standing_out(is_alone, score, shares, mean, greatest, params)


def is_noise(heights: Reals) -> Bools:
    """Return which points (bin, height) DBSCAN calls noise, with a reach of square root of 2 and 2 points (n, bins).

    With FTIO 0.0.9's 2 points, itself included, noise is what has no other point within reach; as bins are whole
    numbers apart, that can only be the next ones. DBSCAN would search a tree for each signal.
    """
    is_linked = np.abs(np.diff(heights, axis=1)) * _NEARLY <= 1.0
    found = np.ones(heights.shape, dtype=np.bool_)
    found[:, 1:] &= ~is_linked
    found[:, :-1] &= ~is_linked
    return found


def isolation_forest(power: Reals, params: OutlierParams) -> Outliers:
    """Return bins above the mean power that trees of random cuts isolate early (Liu, Ting and Zhou, ICDM 2008)."""
    from sklearn.ensemble import IsolationForest  # type: ignore[import-untyped,unused-ignore]

    def judge(points: Reals) -> tuple[Bools, Reals]:
        model = IsolationForest(n_estimators=params.forest_tree_count, random_state=params.seed).fit(points)
        decided = np.asarray(model.decision_function(points), dtype=np.float64)
        return decided < 0, decided

    return _each(power, params, judge)


def local_outlier_factor(power: Reals, params: OutlierParams) -> Outliers:
    """Return bins above the mean power in places less dense than their neighbours' (Breunig et al., SIGMOD 2000)."""
    from sklearn.neighbors import LocalOutlierFactor  # type: ignore[import-untyped,unused-ignore]

    def judge(points: Reals) -> tuple[Bools, Reals]:
        model = LocalOutlierFactor(n_neighbors=min(_FACTOR_NEIGHBOUR_COUNT, len(points) - 1))
        is_outlier = model.fit_predict(points) < 0
        return is_outlier, np.asarray(model.negative_outlier_factor_, dtype=np.float64)

    return _each(power, params, judge)


def find_peaks(power: Reals, params: OutlierParams) -> Outliers:
    """Return bins that are higher than both neighbours; the score is 1. The lowest and the highest bin never are."""
    shares, mean, greatest = _plane(power)
    if not shares.size:
        return _no_outliers()
    found = peaks(shares, 0.0)
    is_outlier = np.zeros(shares.shape, dtype=np.bool_)
    is_outlier[found.row, found.place] = found.height > mean[found.row]
    return _standing_out(is_outlier, np.ones(shares.shape), shares, mean, greatest, params)


_METHODS: dict[str, Callable[[Reals, OutlierParams], Outliers]] = {
    "z_score": z_score,
    "dbscan": dbscan,
    "isolation_forest": isolation_forest,
    "local_outlier_factor": local_outlier_factor,
    "find_peaks": find_peaks,
}


def _no_outliers() -> Outliers:
    none, empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    return Outliers(none, none, np.zeros(0), empty, empty)


def _plane(power: Reals) -> tuple[Reals, Reals, Reals]:
    """Return shares of power (n, bins), their means (n), and how far the greatest lies above (n); no bins, no plane.

    Where all powers are alike, nothing is above.
    """
    if power.shape[1] < _FEWEST_BINS:
        return power[:, :0], np.zeros(len(power)), np.zeros(len(power))
    total = power.sum(axis=1)
    shares = power / np.where(total > 0, total, 1.0)[:, None]
    mean, spread = moments(shares)
    return shares, mean, np.where(spread > 0, shares.max(axis=1) - mean, 0.0)


def _standing_out(
    is_outlier: Bools, score: Reals, shares: Reals, mean: Reals, greatest: Reals, params: OutlierParams
) -> Outliers:
    """Return what a method calls outliers (n, bins), told whether they come near the highest."""
    is_outlier &= (greatest > 0)[:, None]
    signal, column = np.nonzero(is_outlier)
    height = shares[signal, column] - mean[signal]
    is_near = height >= params.tolerance * greatest[signal] * _NEARLY
    return Outliers(signal, column + 1, score[signal, column], np.ones(len(signal), dtype=np.bool_), is_near)


def _each(power: Reals, params: OutlierParams, judge: Callable[[Reals], tuple[Bools, Reals]]) -> Outliers:
    """Return what a model of each signal's points calls outliers; the score is 1 for what it decides the least for."""
    shares, mean, greatest = _plane(power)
    is_outlier, score = np.zeros(shares.shape, dtype=np.bool_), np.zeros(shares.shape)
    at = np.arange(1, shares.shape[1] + 1) / max(shares.shape[1], 1)
    for number in np.flatnonzero(greatest > 0) if shares.size else ():
        is_outlier[number], decided = judge(np.column_stack([at, shares[number]]))
        low, high = float(decided.min()), float(decided.max())
        score[number] = (high - decided) / (high - low) if high > low else 0.0
    if not shares.size:
        return _no_outliers()
    return _standing_out(is_outlier & (shares > mean[:, None]), score, shares, mean, greatest, params)
