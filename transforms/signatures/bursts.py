"""Define the bursts of signatures, i.e. intervals of traffic above their surroundings, and detect them in any curve.

IOSI (`iosi_crests`) and `robust` detect bursts as part of their algorithms. Means, quantiles, warped averages and the
ground truth do not come with bursts. `detect_bursts` applies the same rule to all these curves, so that burst counts
are comparable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_within


@dataclass(frozen=True, slots=True)
class BurstDetectionParams:
    """Thresholds of `detect_bursts`, chosen on means, medians and quantiles of simulated samples.

    Lower values would add many false bursts for few true ones. True bursts of half the height and an eighth of the
    volume of the others are still detected.

    Attributes
    ----------
    min_height_ratio
        Minimum rate of every second of a burst, apart from dips, as a fraction of the curve's height (`burst_height`).
    max_dip_s
        Longest interruption within a burst [s]; two polls of 2 s do not resolve shorter ones.
    min_volume_ratio
        Minimum volume of a burst, as a fraction of that of a typical burst.
    """

    min_height_ratio: float = 0.25
    max_dip_s: int = 4
    min_volume_ratio: float = 0.05


PARAMS = BurstDetectionParams()


@dataclass(frozen=True, slots=True)
class Bursts:
    """The n bursts of a signature, in chronological order, without overlap.

    Attributes
    ----------
    start_s, peak_s, end_s : (n,)
        Times since the start of the run [s]; a burst is the half-open interval from `start_s` to `end_s`.
    volume_bytes : (n,)
        Volume of the signature within each burst.
    support_ratio : (n,)
        Fraction of the used runs that contain the burst; NaN if the method does not determine it.
    """

    start_s: Reals
    peak_s: Reals
    end_s: Reals
    volume_bytes: Reals
    support_ratio: Reals

    def __len__(self) -> int:
        """Return the number of bursts."""
        return len(self.start_s)

    @classmethod
    def empty(cls) -> Bursts:
        """Create a table without bursts."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, empty, empty)

    @classmethod
    def from_intervals(cls, curve: Reals, first: Ints, end: Ints, volume: Reals, support_ratio: Reals) -> Bursts:
        """Create bursts from half-open intervals of a curve (seconds).

        The peak is the middle of the highest second; the earliest one if several are equal.
        """
        peak_s = find_peaks(curve, first, end) + 0.5
        return cls(first.astype(np.float64), peak_s, end.astype(np.float64), volume, support_ratio)

    def select(self, is_selected: Bools) -> Bursts:
        """Return a table of the bursts where the mask (n) is true."""
        columns = (self.start_s, self.peak_s, self.end_s, self.volume_bytes, self.support_ratio)
        return Bursts(*(column[is_selected] for column in columns))


def burst_height(bytes_per_s: Reals) -> float:
    """Compute the typical rate of a curve's bursts: the median rate, weighted by the squared rate.

    Thanks to squared weights, it also applies to bursts that last one second in a hundred and move less volume than the
    residual noise. A median, unlike a maximum, ignores a single peak.

    Parameters
    ----------
    bytes_per_s : (seconds,)
        Rates in any unit; NaN where not measured.

    Returns
    -------
    float
        The height in the same unit; NaN where no rate is positive.
    """
    return _weighted_median(bytes_per_s, power=2)


def burst_heights(curves: Reals) -> Reals:
    """Apply `burst_height` to each row of curves (curves, seconds)."""
    return np.array([burst_height(curve) for curve in curves])


def detect_bursts(bytes_per_s: Reals) -> Bursts:
    """Detect the bursts of a curve by a threshold on its height, see `BurstDetectionParams`.

    Parameters
    ----------
    bytes_per_s : (seconds,)
        Rates in any unit, since only their ratios matter; NaN (not measured) counts as 0.

    Returns
    -------
    Bursts
        Bursts in chronological order, with `support_ratio` NaN. Rising and falling edges below the threshold are not
        included.
    """
    rates = np.where(np.isfinite(bytes_per_s) & (bytes_per_s > 0), bytes_per_s, 0.0)
    height = burst_height(rates)
    if not height > 0:
        return Bursts.empty()
    first, end = merge_intervals(*find_true_intervals(rates > PARAMS.min_height_ratio * height), PARAMS.max_dip_s)
    volume = _interval_sums(rates, first, end)
    is_large = volume >= PARAMS.min_volume_ratio * _weighted_median(volume, power=1)
    first, end, volume = first[is_large], end[is_large], volume[is_large]
    return Bursts.from_intervals(rates, first, end, volume, np.full(len(first), np.nan))


def find_true_intervals(mask: Bools) -> tuple[Ints, Ints]:
    """Find the maximal intervals of true values.

    Parameters
    ----------
    mask : (n,)

    Returns
    -------
    first, end : (intervals,)
        First index of each interval, and the index after its last.
    """
    padded = np.zeros(len(mask) + 2, dtype=np.bool_)
    padded[1:-1] = mask
    # changes alternate between starts and ends
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    return changes[::2], changes[1::2]


def merge_intervals(first: Ints, end: Ints, max_gap: float) -> tuple[Ints, Ints]:
    """Merge intervals that overlap or that are close together.

    Parameters
    ----------
    first, end : (n,)
        Half-open intervals in any order.
    max_gap
        Largest gap between merged intervals, in the same unit.

    Returns
    -------
    first, end : (intervals,)
        Merged intervals, sorted by start.
    """
    if not len(first):
        return first, end
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(end[order])
    is_apart = first[1:] - reach[:-1] > max_gap
    is_edge = np.ones(len(first) + 1, dtype=np.bool_)
    is_edge[1:-1] = is_apart
    return first[is_edge[:-1]], reach[is_edge[1:]]


def _weighted_median(values: Reals, power: int) -> float:
    """Compute the median of the positive values, weighted by a power of themselves; NaN if none is positive."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return float("nan")
    positive.sort()
    weights = ((positive / positive[-1]) ** power).cumsum()
    return positive.item(np.count_nonzero(weights < weights[-1] / 2))


def _interval_sums(rates: Reals, first: Ints, end: Ints) -> Reals:
    """Sum rates over each interval separately, since differences of cumulative sums would lose small rates."""
    edges = np.array([first, end]).T.ravel()
    with np.errstate(over="ignore"):
        sums: Reals = np.add.reduceat(np.append(rates, 0.0), edges)[::2]
    return sums


def find_peaks(rates: Reals, first: Ints, end: Ints) -> Reals:
    """Find the highest second of each interval; the earliest one if several are equal.

    Parameters
    ----------
    rates : (seconds,)
        Any unit.
    first, end : (n,)
        Half-open, non-empty intervals of seconds.

    Returns
    -------
    (n,)
        Index of the second, as a float.
    """
    offsets = offsets_of(end - first)
    interval = owners(offsets)
    seconds = first[interval] + places_within(end - first)
    order = np.lexsort((seconds, -rates[seconds], interval))
    peaks: Reals = seconds[order[offsets[:-1]]].astype(np.float64)
    return peaks
