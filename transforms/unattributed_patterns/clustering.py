"""Find clusters of bursts with the same volume, width and shape, by a scan statistic.

Contention delays and slows a burst, but does not reduce its bytes (IOSI: Liu et al., FAST'14, section 4). Bursts of one
application therefore have the same volume, while their widths vary more. A cluster is a rectangle in the plane of log
volume and log width that contains significantly more bursts than expected from the surrounding volumes at equal width
(scan statistic: Kulldorff, Communications in Statistics 26, 1997, doi:10.1080/03610929708831995). The most significant
cluster is removed before the next scan. The background consists of neighboring volumes only, since widths are counted
in whole steps and accumulate at integers. Within a cluster, hierarchical clustering separates bursts of different
shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBursts

#: cell size of the plane, in log volume and log width
_CELL_SIZE = (0.01, 0.05)
#: number of independent positions per burst, for the multiple-testing correction; calibrated on noise (seeds 0 to 99)
_POSITIONS_PER_BURST = 10


@dataclass(frozen=True, slots=True)
class ClusterParams:
    """Thresholds of the cluster scan. The defaults were chosen on simulated sites (seeds 11 to 13)."""

    #: half widths of the scanned rectangles, in log volume and log width; all pairs are tried
    reaches: tuple[tuple[float, float], ...] = ((0.01, 0.2), (0.02, 0.1), (0.02, 0.3), (0.04, 0.2))
    #: half width of the background region, in log volume
    background_reach: float = 0.8
    #: minimum number of bursts of a cluster
    min_count: int = 5
    #: probability of one or more false clusters in a plane of noise
    false_alarm_probability: float = 0.01
    #: expected number of false clusters at which the scan stops; clusters above `false_alarm_probability` are hints
    #: that need independent support
    max_expected_hints: float = 10.0
    #: minimum fraction of a cluster's bursts in excess of the background
    min_purity: float = 0.75
    #: maximum Chebyshev distance between burst profiles (cumulative fractions of bytes) of one shape
    max_shape_distance: float = 0.25
    #: maximum number of bursts for the comparison of shapes; bounds the quadratic distance matrix
    max_shapes: int = 1500


@dataclass(frozen=True, slots=True)
class Cluster:
    """Indices of similar bursts in chronological order, and whether the cluster is significant (or just a hint)."""

    members: Ints
    is_significant: bool


class ClusterScan:
    """Successive extraction of clusters from n bursts in the plane of log volume and log width.

    Parameters
    ----------
    bursts : ResidualBursts
        The bursts to cluster.
    params : ClusterParams, optional
        Thresholds of the scan.

    Attributes
    ----------
    is_remaining : Bools, shape (n,)
        Whether a burst is neither in a cluster nor removed.

    """

    def __init__(self, bursts: ResidualBursts, params: ClusterParams | None = None) -> None:
        """Bin the bursts, with a margin of empty cells around them."""
        self._params = params = params or ClusterParams()
        self._profile = bursts.profile
        coordinates = np.stack([np.log(bursts.volume_bytes), np.log(bursts.width)], axis=1)
        margin = np.divide((params.background_reach, max(reach[1] for reach in params.reaches)), _CELL_SIZE) + 1
        low = coordinates.min(axis=0, initial=np.inf)
        self._cells: Ints = np.floor((coordinates - low) / _CELL_SIZE + margin).astype(np.int64)
        size = (self._cells.max(axis=0, initial=0) + margin + 1).astype(np.int64)
        self._counts: Ints = np.zeros(tuple(size.tolist()), np.int64)
        np.add.at(self._counts, tuple(self._cells.T), 1)
        self.is_remaining: Bools = np.ones(len(bursts), np.bool_)
        self._log_test_count = math.log(_POSITIONS_PER_BURST * max(len(bursts), 1) * len(params.reaches))

    def pop(self) -> Cluster | None:
        """Remove and return the most significant cluster; None if not even a hint remains."""
        while self.is_remaining.sum() >= self._params.min_count:
            integral = _integrate(self._counts)
            log_p, center, half = min(_scan(integral, reach, self._params) for reach in self._params.reaches)
            log_p += self._log_test_count
            if log_p > math.log(self._params.max_expected_hints):
                return None
            is_in: Bools = self.is_remaining & (np.abs(self._cells - np.array(center)) <= np.array(half)).all(axis=1)
            candidates = np.flatnonzero(is_in)
            members = _select_main_shape(candidates, self._profile[candidates], self._params)
            if len(members) >= self._params.min_count:
                self.remove(members)
                return Cluster(members, log_p <= math.log(self._params.false_alarm_probability))
            self.remove(candidates)
        return None

    def remove(self, members: Ints) -> None:
        """Exclude bursts from all further clusters; bursts that were excluded before are ignored."""
        removed = members[self.is_remaining[members]]
        self.is_remaining[removed] = False
        np.add.at(self._counts, tuple(self._cells[removed].T), -1)


def _scan(
    integral: Ints, reach: tuple[float, float], params: ClusterParams
) -> tuple[float, tuple[int, ...], tuple[int, int]]:
    """Find the smallest log p-value of any rectangle of one size; also return central cell and half widths in cells."""
    half, wide = (
        (round(extent / _CELL_SIZE[0]), round(reach[1] / _CELL_SIZE[1]))
        for extent in (reach[0], params.background_reach)
    )
    all_within = _sum_all_rectangles(integral, half)
    row, column = np.nonzero(all_within >= params.min_count)
    if not len(row):
        return 0.0, (0, 0), half
    foreground, region = (
        counts.astype(np.float64) for counts in (all_within[row, column], _sum_rectangles(integral, row, column, wide))
    )
    log_p = _log_p_values(foreground, region - foreground, (2 * half[0] + 1) / (2 * wide[0] + 1), params)
    best = int(log_p.argmin())
    return float(log_p[best]), (int(row[best]), int(column[best])), half


def _integrate(counts: Ints) -> Ints:
    """Summed-area table with a leading row and column of zeros."""
    integral = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1), np.int64)
    integral[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    return integral


def _sum_all_rectangles(integral: Ints, half: tuple[int, int]) -> Ints:
    """Count bursts in the rectangle of the given half widths around every cell."""
    padded = np.pad(integral, [(cells, cells) for cells in half], "edge")
    high, wide = (2 * cells + 1 for cells in half)
    columns = padded[:, wide:] - padded[:, :-wide]
    return columns[high:] - columns[:-high]


def _sum_rectangles(integral: Ints, row: Ints, column: Ints, half: tuple[int, int]) -> Ints:
    """Count bursts in the rectangle of the given half widths around selected cells."""
    (top, bottom), (left, right) = (
        (np.maximum(center - cells, 0), np.minimum(center + cells + 1, size - 1))
        for center, cells, size in zip((row, column), half, integral.shape, strict=True)
    )
    counts: Ints = integral[bottom, right] - integral[top, right] - integral[bottom, left] + integral[top, left]
    return counts


def _log_p_values(foreground: Reals, background: Reals, area_ratio: float, params: ClusterParams) -> Reals:
    """Log of Chernoff's bound of the binomial tail, which does not underflow; 0 if purity is too low.

    `area_ratio` is the number of cells in the rectangle, divided by that in the whole region.
    """
    is_pure = foreground * (1.0 - params.min_purity) >= background * area_ratio / (1.0 - area_ratio)
    total = foreground + background
    divergence = _divergence(foreground, total * area_ratio) + _divergence(background, total * (1.0 - area_ratio))
    log_p: Reals = np.where(is_pure, -divergence, 0.0)
    return log_p


def _divergence(count: Reals, expected: Reals) -> Reals:
    divergence: Reals = count * np.log(np.maximum(count, 1.0) / np.maximum(expected, 1e-300))
    return divergence


def _select_main_shape(members: Ints, profile: Reals, params: ClusterParams) -> Ints:
    """Select the largest group of members with similar profiles (average linkage), from an even subsample."""
    sample = np.unique(np.linspace(0, len(members) - 1, min(len(members), params.max_shapes)).astype(np.int64))
    shapes = fcluster(linkage(profile[sample], "average", "chebyshev"), params.max_shape_distance, "distance")
    selected: Ints = members[sample][shapes == np.bincount(shapes).argmax()]
    return selected
