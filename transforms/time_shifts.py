"""Detect whole-hour differences between the clocks of job logs and polls, e.g. due to a wrong time zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals

#: `aligned`: the traffic fits the job times best without a shift; `shifted`: it fits clearly better at another whole
#: hour; `no_overlap`: jobs and polls hardly overlap, but would at another whole hour; `unclear`: no whole hour stands
#: out
Outcome = Literal["aligned", "shifted", "no_overlap", "unclear", "too_few_jobs"]

_HOUR_BINS = 60
_BIN_S = 60.0
#: minutes after a start, and before an end, in which jobs typically read input and write results
_START_WINDOWS = ((0, 1), (2, 5), (6, 15))
_END_WINDOWS = ((0, 2), (3, 6), (7, 16))
#: ridge penalty; keeps the normal equations solvable for collinear regressors
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class TimeShiftParams:
    """Search range and significance of time shifts.

    The thresholds are calibrated on simulated sites; ``docs/operations.md`` has the measured false-alarm rates.

    Parameters
    ----------
    max_shift_h
        Maximum shift; the offsets of time zones range from UTC-12 to UTC+14.
    min_job_count
        Minimum number of jobs that overlap the polls at some shift; with fewer, the outcome is ``too_few_jobs``.
    min_z
        Minimum standardized log-likelihood gain at a whole-hour shift.
    max_rival_ratio
        Maximum gain of any other whole-hour shift, as a fraction of the best one. Jobs that start every hour on the
        hour make many shifts look alike.
    neighborhood_min
        Range of distances from the best shift [min] in which it must exceed all other shifts, so that slow trends over
        the day do not count.
    min_log_min
        Minimum length of the job log [min]. A shorter log is extended on both sides by minutes without jobs, so that it
        is compared with the traffic around it.
    min_overlap_ratio
        Common time, as a fraction of the shorter span, below which jobs and polls do not overlap.
    min_fitted_overlap_ratio
        Common time that a whole-hour shift must reach for ``no_overlap``; otherwise the inputs are from different days.
    min_bin_count
        Minimum number of polled minutes within the job log for a shift to be considered.
    floor_ratio
        Lower limit of rates, as a fraction of the median, so that idle minutes do not dominate the logarithm.
    """

    max_shift_h: int = 14
    min_job_count: int = 8
    min_z: float = 5.0
    max_rival_ratio: float = 0.5
    neighborhood_min: tuple[int, int] = (10, 50)
    min_log_min: int = 240
    min_overlap_ratio: float = 0.2
    min_fitted_overlap_ratio: float = 0.8
    min_bin_count: int = 120
    floor_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class TimeShift:
    """Best time shift between two clocks, with its significance.

    Parameters
    ----------
    outcome
        See `Outcome`.
    shift_h
        Whole hours to add to the job times; 0 if ``aligned``, ``None`` if no shift stands out.
    z
        Standardized log-likelihood gain at the best whole-hour shift; ``None`` if it was not computed.
    job_count
        Number of jobs that overlap the polls at some shift.
    overlap_ratio
        Common time of jobs and polls, as a fraction of the shorter span.
    """

    outcome: Outcome
    shift_h: int | None
    z: float | None
    job_count: int
    overlap_ratio: float


def find_time_shift(
    start_s: Reals, end_s: Reals, bytes_per_min: Reals, first_s: float, params: TimeShiftParams | None = None
) -> TimeShift:
    """Find the whole-hour shift of the job times at which jobs explain the traffic best.

    The logarithm of the traffic is regressed on the number of running jobs and on their starts and ends, for every
    shift by whole minutes. The statistic is the log-likelihood gain over a constant rate. It is standardized by the
    median and the spread of the gains at shifts other than whole hours, which serve as the null distribution.

    Parameters
    ----------
    start_s, end_s : (jobs,)
        Start and end of each job in seconds since 1970; jobs within ``max_shift_h`` of the polls are enough.
    bytes_per_min : (minutes,)
        Traffic of each minute; NaN where nothing was polled.
    first_s
        Left edge of the first minute, in seconds since 1970.
    params
        Thresholds.

    Returns
    -------
    TimeShift
    """
    params = params or TimeShiftParams()
    first_bin = np.floor((start_s - first_s) / _BIN_S).astype(np.int64)
    last_bin = np.floor((end_s - first_s) / _BIN_S).astype(np.int64)
    margin, count = params.max_shift_h * _HOUR_BINS + _HOUR_BINS - 1, len(bytes_per_min)
    is_near = (last_bin >= -margin) & (first_bin < count + margin)
    first_bin, last_bin, is_polled = first_bin[is_near], last_bin[is_near], np.isfinite(bytes_per_min)
    job_count = int(is_near.sum())
    if job_count < params.min_job_count or np.count_nonzero(is_polled) < params.min_bin_count:
        return TimeShift("too_few_jobs", None, None, job_count, 0.0)
    overlaps = _overlap_ratios(first_bin, last_bin, is_polled, params)
    overlap = float(overlaps[params.max_shift_h])
    best = _best_shift(first_bin, last_bin, bytes_per_min, is_polled, margin, params)
    if best is not None and best[0] == 0:
        return TimeShift("aligned", 0, best[1], job_count, overlap)
    if best is not None:
        return TimeShift("shifted", *best, job_count, overlap)
    if overlap < params.min_overlap_ratio and overlaps.max() >= params.min_fitted_overlap_ratio:
        return TimeShift("no_overlap", None, None, job_count, overlap)
    return TimeShift("unclear", None, None, job_count, overlap)


def _overlap_ratios(first_bin: Ints, last_bin: Ints, is_polled: Bools, params: TimeShiftParams) -> Reals:
    """Compute the common time of jobs and polls as a fraction of the shorter span, for every whole-hour shift."""
    polled = np.flatnonzero(is_polled)
    shifts = np.arange(-params.max_shift_h, params.max_shift_h + 1) * _HOUR_BINS
    begin, end = first_bin.min() + shifts, last_bin.max() + shifts
    common = np.minimum(end, polled[-1]) - np.maximum(begin, polled[0]) + 1
    shorter = min(polled[-1] - polled[0], last_bin.max() - first_bin.min()) + 1
    ratios: Reals = np.clip(common / shorter, 0.0, 1.0)
    return ratios


def _best_shift(
    first_bin: Ints, last_bin: Ints, volumes: Reals, is_polled: Bools, margin: int, params: TimeShiftParams
) -> tuple[int, float] | None:
    """Find the whole-hour shift that stands out, and its z-score; None if no shift does."""
    shifts = np.arange(-margin, margin + 1)
    regressors, is_logged = _regressors(first_bin, last_bin, len(volumes) + 2 * margin, margin, params.min_log_min)
    gains, counts = _gains(regressors, is_logged, _log_rates(volumes, is_polled, params), is_polled, 2 * margin + 1)
    is_known = counts >= params.min_bin_count
    nearest, farthest = params.neighborhood_min
    minutes = np.abs(shifts) % _HOUR_BINS
    is_null = is_known & (minutes > nearest) & (minutes < farthest)
    is_whole = is_known & (minutes == 0)
    if not is_whole.any() or np.count_nonzero(is_null) < params.min_bin_count:
        return None
    median, high = np.percentile(gains[is_null], [50.0, 84.0])
    if high <= median:
        return None
    z = np.where(is_whole, (gains - median) / (high - median), -np.inf)
    best = int(np.argmax(z))
    distance = np.abs(shifts - shifts[best])
    is_around = is_known & (distance > nearest) & (distance < farthest)
    rival = np.max(np.delete(z, best))
    if z[best] < params.min_z or rival > params.max_rival_ratio * z[best] or gains[best] <= gains[is_around].max():
        return None
    return int(shifts[best]) // _HOUR_BINS, float(z[best])


def _log_rates(volumes: Reals, is_polled: Bools, params: TimeShiftParams) -> Reals:
    """Center the logarithm of the traffic; 0 where nothing was polled."""
    polled = volumes[is_polled]
    floor = max(1.0, params.floor_ratio * float(np.median(polled)))
    logs = np.log10(np.maximum(np.where(is_polled, volumes, floor), floor))
    centered: Reals = np.where(is_polled, logs - logs[is_polled].mean(), 0.0)
    return centered


def _regressors(first_bin: Ints, last_bin: Ints, length: int, margin: int, min_log_min: int) -> tuple[Reals, Reals]:
    """Count running jobs, recent starts and upcoming ends in each minute, and mark minutes that the job log covers."""
    first, last = first_bin + margin, last_bin + margin
    starts, ends = (np.bincount(edge[(edge >= 0) & (edge < length)], minlength=length) for edge in (first, last))
    edges = np.bincount(np.clip(first, 0, length), minlength=length + 1)
    edges -= np.bincount(np.clip(last + 1, 0, length), minlength=length + 1)
    running = np.cumsum(edges)[:length]
    after = [_window_sums(starts, low, high) for low, high in _START_WINDOWS]
    before = [_window_sums(ends, -high, -low) for low, high in _END_WINDOWS]
    minutes = np.arange(length)
    padding = max(0, (min_log_min - int(last.max() - first.min())) // 2)
    is_logged = (minutes >= first.min() - padding) & (minutes <= last.max() + padding)
    return np.array([running, *after, *before], dtype=np.float64) * is_logged, is_logged.astype(np.float64)


def _window_sums(events: Ints, low: int, high: int) -> Ints:
    """Count the events from t - high to t - low for each minute t."""
    sums = np.concatenate([[0], np.cumsum(events)])
    minutes = np.arange(len(events))
    counts: Ints = sums[np.clip(minutes - low + 1, 0, len(events))] - sums[np.clip(minutes - high, 0, len(events))]
    return counts


def _gains(regressors: Reals, is_logged: Reals, logs: Reals, is_polled: Bools, shift_count: int) -> tuple[Reals, Reals]:
    """Compute twice the log-likelihood gain of the regression, and the number of minutes used, at every shift.

    Each sum of the normal equations is a cross-correlation over all shifts, computed by FFT. A shift uses only the
    polled minutes that the shifted job log covers.

    Parameters
    ----------
    regressors : (regressors, minutes + shifts - 1)
    is_logged : (minutes + shifts - 1,)
    logs, is_polled : (minutes,)
    shift_count
        Number of shifts, from the largest negative to the largest positive one.
    """
    size = 1 << (regressors.shape[1] + len(logs) - 1).bit_length()

    def correlate(first: Reals, second: Reals) -> Reals:
        spectrum = np.fft.rfft(first, size) * np.conj(np.fft.rfft(second, size))
        # the first offset shifts the job log ahead by the whole margin
        correlation: Reals = np.fft.irfft(spectrum, size)[..., :shift_count][..., ::-1]
        return correlation

    polled = is_polled.astype(np.float64)
    counts = np.maximum(np.round(correlate(is_logged, polled)), 0.0)
    divisor = np.maximum(counts, 1.0)
    sums, log_sums = correlate(regressors, polled), correlate(is_logged, logs)
    squares = np.maximum(correlate(is_logged, logs**2) - log_sums**2 / divisor, 1e-12)
    crossed = correlate(regressors, logs) - sums * log_sums / divisor
    products = correlate(regressors[:, None] * regressors[None], polled) - sums[:, None] * sums[None] / divisor
    ridge = _RIDGE * np.sum(regressors**2, axis=1) + 1e-9
    normal = np.moveaxis(products, 2, 0) + np.diag(ridge)
    weights = np.linalg.solve(normal, crossed.T[:, :, None])[:, :, 0]
    explained = np.clip(np.sum(weights * crossed.T, axis=1) / squares, 0.0, 1.0 - 1e-9)
    return -counts * np.log1p(-explained), counts
