"""Find bursts in residual traffic: intervals that stand out from the fluctuating background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, places_of, rows_of
from iosig.transforms.signatures.bursts import find_true_intervals, merge_intervals

#: number of points at which a burst's profile (cumulative fraction of bytes) is sampled
PROFILE_POINTS = 8


@dataclass(frozen=True, slots=True)
class ResidualBurstParams:
    """Thresholds of burst detection. The defaults were chosen on simulated sites (seeds 11 to 13)."""

    #: length of the intervals from which medians are taken for the background level [s]
    background_interval_s: float = 7200.0
    #: quantile of these medians that counts as background level
    background_quantile: float = 0.25
    #: minimum peak of a burst, in multiples of the background level
    min_peak_ratio: float = 12.0
    #: minimum rate within a burst, as a fraction of the minimum peak
    edge_ratio: float = 0.25
    #: minimum rate within a burst, as a fraction of the highest rate within `near_s` [s], which excludes adjacent slow
    #: transfers
    peak_share: float = 0.2
    near_s: float = 60.0
    #: maximum gap within a burst [s]
    max_gap_s: float = 6.0
    #: time before and after a burst with a mean rate that the burst exceeds [s]
    contrast_s: float = 15.0
    #: time before and after a burst with a mean rate that is taken as the background beneath the burst [s]; 120 s gave
    #: smaller errors than 15 s and 600 s (seeds 64 to 67)
    flank_s: float = 120.0


@dataclass(frozen=True, slots=True)
class ResidualBursts:
    """n bursts in chronological order.

    Attributes
    ----------
    first, after : Ints, shape (n,)
        First step of each burst, and the step after its last.
    volume_bytes : Reals, shape (n,)
        Bytes above the background.
    error_bytes : Reals, shape (n,)
        Standard error of the volume, from the fluctuation of the background.
    width : Reals, shape (n,)
        Equivalent width in steps: squared sum, divided by the sum of squares.
    profile : Reals, shape (n, `PROFILE_POINTS`)
        Cumulative fraction of bytes at equidistant times.

    """

    first: Ints
    after: Ints
    volume_bytes: Reals
    error_bytes: Reals
    width: Reals
    profile: Reals

    def __len__(self) -> int:
        """Return the number of bursts."""
        return len(self.first)


def find_bursts(residual_bytes: Reals, interval_s: float, params: ResidualBurstParams | None = None) -> ResidualBursts:
    """Find bursts in residual traffic.

    Parameters
    ----------
    residual_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.
    interval_s : float
        Length of a step [s].
    params : ResidualBurstParams, optional
        Thresholds.

    Returns
    -------
    ResidualBursts
        All bursts except those next to a gap, which have incomplete volumes.

    """
    params = params or ResidualBurstParams()
    min_peak = params.min_peak_ratio * _background_level(residual_bytes, interval_s, params)
    measured = np.nan_to_num(residual_bytes)
    if not min_peak > 0:
        min_peak = params.edge_ratio * float(measured.max(initial=0.0))
    window = 2 * round(params.near_s / interval_s) + 1
    threshold = np.maximum(params.edge_ratio * min_peak, params.peak_share * maximum_filter1d(measured, window))
    is_in: Bools = measured > threshold
    first, after = merge_intervals(*find_true_intervals(is_in), params.max_gap_s / interval_s)
    # padded by one: is_gap[first] is the step before a burst, is_gap[after + 1] the step after it
    is_gap = np.concatenate([[True], np.isnan(residual_bytes), [True]])
    peak, outside = _maximum(measured, first, after), np.where(is_in, np.nan, residual_bytes)
    is_burst = ~(is_gap[first] | is_gap[after + 1]) & (peak > min_peak)
    is_burst &= peak > _flank_statistics(outside, first, after, max(1, round(params.contrast_s / interval_s)))[0]
    first, after = first[is_burst], after[is_burst]
    background = _flank_statistics(outside, first, after, max(1, round(params.flank_s / interval_s)))
    return _measure(measured, first, after, *background)


def _measure(measured: Reals, first: Ints, after: Ints, background: Reals, deviation: Reals) -> ResidualBursts:
    """Measure bursts above their background, including the partial steps at both ends; drop those without bytes.

    `background` and `deviation` are mean and standard deviation of the bytes per step around each burst.
    """
    counts = after - first + 2
    values = np.maximum(measured[places_of(first - 1, counts)] - np.repeat(background, counts), 0.0)
    offsets = offsets_of(counts)
    volume, squares = (_sum_pieces(terms, offsets) for terms in (values, values**2))
    profile = _profiles(values, offsets[:-1] + 1, offsets[1:] - 1)
    width = np.divide(volume**2, squares, out=np.zeros_like(volume), where=squares > 0)
    error = deviation * np.sqrt(counts)
    return rows_of(ResidualBursts(first, after, volume, error, width, profile), np.flatnonzero(width > 0))


def _flank_statistics(outside: Reals, first: Ints, after: Ints, count: int) -> tuple[Reals, Reals]:
    """Mean and standard deviation of the `count` steps before and after each burst, without NaN.

    The steps adjacent to a burst contain parts of the burst, and are skipped.
    """
    padded = np.concatenate([np.full(count + 1, np.nan), outside, np.full(count + 1, np.nan)])
    shifts = np.arange(count)
    sides = np.stack([padded[first[:, None] + shifts], padded[after[:, None] + count + 2 + shifts]])
    is_known = np.isfinite(sides)
    known_count = is_known.sum(axis=2)
    side_means = np.divide(
        np.where(is_known, sides, 0.0).sum(axis=2), known_count, out=np.zeros(known_count.shape), where=known_count > 0
    )
    mean: Reals = side_means.sum(axis=0) / np.maximum((known_count > 0).sum(axis=0), 1)
    residuals = np.where(is_known, sides - mean[:, None], 0.0)
    deviation: Reals = np.sqrt((residuals**2).sum(axis=(0, 2)) / np.maximum(known_count.sum(axis=0) - 1, 1))
    return mean, deviation


def _background_level(residual_bytes: Reals, interval_s: float, params: ResidualBurstParams) -> float:
    """Low quantile of the medians of long intervals, in bytes per step; 0 if no interval was mostly measured."""
    count = max(1, round(params.background_interval_s / interval_s))
    padded = np.full(-(-len(residual_bytes) // count) * count, np.nan)
    padded[: len(residual_bytes)] = residual_bytes
    intervals = padded.reshape(-1, count)
    is_measured = np.isfinite(intervals).mean(axis=1) > 0.5
    if not is_measured.any():
        return 0.0
    return float(np.quantile(np.nanmedian(intervals[is_measured], axis=1), params.background_quantile))


def _maximum(values: Reals, first: Ints, after: Ints) -> Reals:
    """Highest value of each interval; intervals do not overlap."""
    if not len(first):
        return np.zeros(0)
    edges = np.stack([first, after], axis=1).ravel()
    maximum: Reals = np.maximum.reduceat(np.append(values, 0.0), edges)[::2]
    return maximum


def _sum_pieces(values: Reals, offsets: Ints) -> Reals:
    """Sum each piece; `reduceat` requires that no piece is empty."""
    return np.add.reduceat(values, offsets[:-1]) if len(values) else np.zeros(0)


def _profiles(values: Reals, first: Ints, after: Ints) -> Reals:
    """Cumulative fraction of each interval's sum at equidistant times, shape (intervals, `PROFILE_POINTS`)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    times = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)
    at = first[:, None] + times * (after - first)[:, None]
    cumulative = np.interp(at, np.arange(len(total)), total) - total[first][:, None]
    profiles: Reals = cumulative / np.maximum(total[after] - total[first], 1e-300)[:, None]
    return profiles
