"""Preprocess the samples of one application: resample to points of 1 s, equalize durations, subtract the background.

These are the steps of IOSI (Liu et al., FAST'14), section 5.1, after outlier elimination (`outliers`): granularity
refinement, duration correction and noise reduction. The module also truncates very long runs to partial samples
(section 2.3), and combines runs on several node counts into one set (section 6.4).

Unmeasured values are NaN and never count as zero. Short gaps are interpolated; long gaps are excluded from means.
`PreprocessedSamples.filled` is for methods that need every point. Samples with too many gaps are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, owners, places_within
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets

#: maximum length of an interpolated gap [s] (ours): five polls of 2 s; a longer gap could hide a short burst
MAX_GAP_S = 10.0
#: maximum fraction of missing steps in a sample after interpolation (ours)
MAX_MISSING_RATIO = 0.25
#: maximum ratio by which a sample that is trimmed as published exceeds the shortest one (IOSI 5.1: "typically less than
#: 10%"); longer samples are trimmed over their whole length, see `correct_durations`
MAX_PUBLISHED_EXCESS_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class PreprocessedSamples:
    """Samples of one length on points of 1 s.

    Attributes
    ----------
    values : (runs, points)
        Rates above the background [bytes per second]; NaN where not measured.
    background_bytes_per_s
        Constant rate that was subtracted; NaN if nothing was measured.
    run : (runs,)
        Index of each run in its set, since samples with too many gaps are dropped.
    """

    values: Reals
    background_bytes_per_s: float
    run: Ints

    @property
    def filled(self) -> Reals:
        """Values (runs, points) with gaps filled by the median of the measured runs; 0 where no run was measured."""
        is_missing = np.isnan(self.values)
        if not is_missing.any():
            return self.values
        columns = np.flatnonzero(is_missing.any(axis=0))
        filled = self.values.copy()
        filled[:, columns] = np.where(
            is_missing[:, columns], nan_median_or_zero(self.values[:, columns]), self.values[:, columns]
        )
        return filled


def preprocess(sample_set: SampleSet, max_excess_ratio: float = MAX_PUBLISHED_EXCESS_RATIO) -> PreprocessedSamples:
    """Apply the preprocessing of IOSI, section 5.1, to the samples of one set.

    Parameters
    ----------
    sample_set
        Runs without outliers.
    max_excess_ratio
        See `correct_durations`.

    Returns
    -------
    PreprocessedSamples
        All samples except those with too many gaps.
    """
    samples = fill_gaps(sample_set.samples, sample_set.interval_s)
    counts = samples.counts
    is_usable = (counts > 0) & (_count_missing(samples) <= MAX_MISSING_RATIO * counts)
    if not is_usable.all():
        filled_set = SampleSet(samples, sample_set.interval_s, sample_set.start_s, sample_set.duration_s)
        samples = filled_set.select_runs(is_usable).samples
    points = refine_granularity(samples, sample_set.interval_s)
    values, background = reduce_noise(correct_durations(points, max_excess_ratio))
    return PreprocessedSamples(values, background, np.flatnonzero(is_usable))


def _count_missing(samples: Ragged) -> Ints:
    """Count the unmeasured steps of each sample."""
    is_missing = np.isnan(samples.values)
    if not is_missing.any():
        return np.zeros(len(samples.offsets) - 1, dtype=np.int64)
    return np.bincount(owners(samples.offsets)[is_missing], minlength=len(samples.offsets) - 1)


# ---- granularity refinement


def fill_gaps(samples: Ragged, interval_s: float, max_gap_s: float = MAX_GAP_S) -> Ragged:
    """Interpolate gaps up to a maximum length linearly; gaps at an end take the nearest measured value.

    Parameters
    ----------
    samples
        Values of any unit; those that are not finite count as not measured.
    interval_s
        Length of a step [s].
    max_gap_s
        Longest gap that is filled [s].

    Returns
    -------
    Ragged
        The same samples with NaN in the longer gaps.
    """
    is_known = np.isfinite(samples.values)
    if is_known.all():
        return samples
    values = np.where(is_known, samples.values, np.nan)
    places = np.arange(len(values))
    owner = owners(samples.offsets)
    first, last = samples.offsets[owner], samples.offsets[owner + 1] - 1
    before = np.maximum.accumulate(np.where(is_known, places, -1))
    after = np.minimum.accumulate(np.where(is_known, places, len(values))[::-1])[::-1]
    has_before, has_after = before >= first, after <= last
    length = np.where(has_after, after, last + 1) - np.where(has_before, before, first - 1) - 1
    is_short = ~is_known & (has_before | has_after) & (length * interval_s <= max_gap_s)
    gap = np.flatnonzero(is_short)
    left = np.where(has_before, before, after)[gap]
    right = np.where(has_after, after, before)[gap]
    # at an end, the only neighbor is used twice
    fraction = np.clip((gap - left) / np.maximum(right - left, 1), 0.0, 1.0)
    values[gap] = values[left] * (1.0 - fraction) + values[right] * fraction
    return Ragged(values, samples.offsets)


def refine_granularity(samples: Ragged, interval_s: float) -> Ragged:
    """Resample samples to points of 1 s by linear interpolation (IOSI, section 5.1).

    Parameters
    ----------
    samples
        Mean rates of steps; NaN where not measured.
    interval_s
        Length of a step [s].

    Returns
    -------
    Ragged
        Points of 1 s; NaN next to an unmeasured step.

    Raises
    ------
    ValueError
        If the interval is not a positive number.

    Notes
    -----
    The value of a step applies to its middle. Points start at the middle of the first step and do not pass the middle
    of the last one. So n steps of 2 s become 2 n - 1 points; each new point is the mean of its neighbors. Steps
    shorter than 1 s are averaged over whole seconds.
    """
    if not (np.isfinite(interval_s) and interval_s > 0):
        raise ValueError("interval_s must be a positive number")
    if interval_s < 1.0:
        return _average_seconds(samples, interval_s)
    counts = samples.counts
    # rounding must not drop a last point at the last middle
    points = np.where(counts > 0, np.floor((counts - 1) * interval_s + 1e-9) + 1, 0).astype(np.int64)
    offsets = offsets_of(points)
    if interval_s == 2.0:
        return Ragged(_insert_means(samples), offsets)
    owner = owners(offsets)
    position = places_within(points) / interval_s
    step = np.minimum(np.floor(position + 1e-12), counts[owner] - 1).astype(np.int64)
    fraction = np.clip(position - step, 0.0, 1.0)
    left = samples.values[samples.offsets[owner] + step]
    right = samples.values[samples.offsets[owner] + np.minimum(step + 1, counts[owner] - 1)]
    # for a point exactly on the left step, the right one has no weight, and may be NaN
    return Ragged(np.where(fraction <= 1e-12, left, left * (1.0 - fraction) + right * fraction), offsets)


def _insert_means(samples: Ragged) -> Reals:
    """Insert the mean of two neighboring steps between them."""
    values = samples.values
    both = np.empty(2 * len(values))
    both[::2] = values
    # halved before the sum, so that huge values stay in range
    both[1:-1:2] = values[1:] * 0.5 + values[:-1] * 0.5
    ends = samples.offsets[1:][samples.counts > 0]
    is_left = np.ones(len(both), dtype=np.bool_)
    is_left[2 * ends - 1] = False
    return both[is_left]


def _average_seconds(samples: Ragged, interval_s: float) -> Ragged:
    """Average steps shorter than 1 s over the measured part of each second; the last second may be incomplete."""
    counts, owner = samples.counts, owners(samples.offsets)
    # a step across the edge of a second is divided between both seconds by time
    start_s = places_within(counts) * interval_s
    second = np.floor(start_s + 1e-9).astype(np.int64)
    excess_s = np.clip(start_s + interval_s - (second + 1), 0.0, None)
    excess_s[excess_s < 1e-9] = 0.0
    points = np.ceil(counts * interval_s - 1e-9).astype(np.int64)
    offsets = offsets_of(points)
    is_known = np.isfinite(samples.values)
    rates = np.where(is_known, samples.values, 0.0)
    cell = offsets[owner] + second
    volume, time_s = np.zeros(offsets[-1] + 1), np.zeros(offsets[-1] + 1)
    for index, part_s in ((cell, interval_s - excess_s), (cell + (excess_s > 0), excess_s)):
        volume += np.bincount(index, rates * part_s, len(volume))
        time_s += np.bincount(index, is_known * part_s, len(volume))
    with np.errstate(invalid="ignore"):
        return Ragged(np.where(time_s > 0, volume / time_s, np.nan)[:-1], offsets)


# ---- duration correction


def correct_durations(samples: Ragged, max_excess_ratio: float = MAX_PUBLISHED_EXCESS_RATIO) -> Reals:
    """Remove points of each sample at regular intervals until all samples have the length of the shortest.

    Parameters
    ----------
    samples
        Points of any unit.
    max_excess_ratio
        Samples that are longer than the shortest by at most this ratio lose points at the interval of the paper. At
        most 1: the interval is then one point.

    Returns
    -------
    (runs, points)

    Notes
    -----
    IOSI, section 5.1: noise only prolongs a run. "If a sample is 4% longer than the shortest one, then we remove from
    it the 1st, 26th, 51st, ..., data points": with N points in the shortest sample and r to remove, the points
    floor(i N / r), i = 0 ... r - 1, counted from 0. The last r points or so are never removed, which shifts them by
    r^2 / (N + r) points; this is little if r is small. Samples that are longer by more than `max_excess_ratio` lose the
    points floor(i (N + r) / r) instead: the same interval up to the end.
    """
    counts = samples.counts
    if not len(counts):
        return np.zeros((0, 0))
    shortest = int(counts.min())
    excess = counts - shortest
    span = np.where(excess <= max_excess_ratio * shortest, shortest, counts)
    return _drop_points(samples, excess, span).reshape(len(counts), shortest)


def _drop_points(samples: Ragged, drop_counts: Ints, span: Ints) -> Reals:
    """Drop points of each piece at regular intervals over its first `span` points, starting with the first."""
    owner, number = owners(offsets_of(drop_counts)), places_within(drop_counts)
    is_left = np.ones(len(samples.values), dtype=np.bool_)
    is_left[samples.offsets[owner] + number * span[owner] // drop_counts[owner]] = False
    return samples.values[is_left]


# ---- noise reduction


def reduce_noise(values: Reals) -> tuple[Reals, float]:
    """Subtract the background from samples, with 0 as the minimum.

    Parameters
    ----------
    values : (runs, points)
        Rates; NaN where not measured.

    Returns
    -------
    values : (runs, points)
        NaN where not measured.
    background
        Background in the same unit; 0 if all points are equal, NaN if none is measured.

    Notes
    -----
    IOSI, section 5.1: the background is the mean of the points of all samples that are below the mean of all points.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        is_in_range = bool(values.size and np.isfinite(values.sum()))
    if is_in_range:
        background = _mean_below_mean(values)
        above = values - background
        return np.maximum(above, 0.0, out=above), background
    is_known = np.isfinite(values)
    known = values[is_known]
    # relative to the maximum, so that sums of huge values stay in range
    highest = float(known.max(initial=0.0)) or 1.0
    background = _mean_below_mean(known / highest) * highest if len(known) else float("nan")
    return np.maximum(np.where(is_known, values, np.nan) - background, 0.0), background


def _mean_below_mean(values: Reals) -> float:
    """Compute the mean of the values below the mean of all values; 0 without such values."""
    is_low = values < values.mean()
    count = int(np.count_nonzero(is_low))
    # equal values can all be below their mean, by rounding
    return float((values * is_low).sum() / count) if 0 < count < values.size else 0.0


def nan_median_or_zero(values: Reals) -> Reals:
    """Compute the median of the measured values of each column (rows, points); 0 without measured values."""
    ordered = np.sort(values, axis=0)  # NaN last
    count = np.isfinite(values).sum(axis=0)
    points = np.arange(values.shape[1])
    low = ordered[np.maximum(count - 1, 0) // 2, points]
    high = ordered[np.minimum(count // 2, len(values) - 1), points]
    return np.where(count > 0, low * 0.5 + high * 0.5, 0.0)


# ---- partial samples, several node counts


def truncate_runs(sample_set: SampleSet, max_duration_s: float) -> SampleSet:
    """Keep the first seconds of each run: partial samples of very long runs (IOSI, section 2.3).

    All runs have their start in common, whereas interference shifts later bursts further and further. The last step
    reaches the time limit or extends beyond it; shorter runs remain complete.

    Raises
    ------
    ValueError
        If the duration is not positive.
    """
    if not max_duration_s > 0:
        raise ValueError("max_duration_s must be positive")
    counts = sample_set.samples.counts
    steps = np.ceil((max_duration_s - sample_set.start_s) / sample_set.interval_s - 1e-9)
    steps = np.clip(np.where(np.isfinite(steps), steps, counts), 0, counts).astype(np.int64)
    values = sample_set.samples.values[places_within(counts) < np.repeat(steps, counts)]
    duration_s = np.fmin(max_duration_s, sample_set.duration_s)
    is_truncated = sample_set.is_truncated
    return SampleSet(
        Ragged(values, offsets_of(steps)),
        sample_set.interval_s,
        sample_set.start_s,
        duration_s,
        is_truncated=None if is_truncated is None else is_truncated & (sample_set.duration_s < max_duration_s),
    )


def merge_node_counts(sets: Sequence[SampleSet]) -> SampleSet:
    """Combine the runs of one application on several node counts into one set of the shortest duration.

    Parameters
    ----------
    sets
        One set per node count. Runs of unknown duration are dropped. If the sets have different intervals, all are
        resampled to 1 s.

    Returns
    -------
    SampleSet

    Notes
    -----
    IOSI, section 6.4 and Figure 20 (weak scaling): peak rates do not change, volume and duration grow with the node
    count; "IOSI normalizes the data sets to that of the shortest job". Here, steps of each set are dropped at regular
    intervals by the ratio of the shortest median duration to its own. Differences between runs of a set remain, so that
    outliers can still be detected. Volumes shrink by the same ratio.
    """
    usable = [one.select_runs(np.isfinite(one.duration_s) & (one.duration_s > 0)) for one in sets]
    usable = [one for one in usable if one.run_count]
    if not usable:
        return SampleSet(Ragged(np.zeros(0), np.zeros(1, np.int64)), 1.0, np.zeros(0), np.zeros(0))
    if len({one.interval_s for one in usable}) > 1:
        usable = [_resample_to_seconds(one) for one in usable]
    medians_s = np.array([np.median(one.duration_s) for one in usable])
    merged = SampleSets.concatenate(
        [_scale_duration(one, ratio) for one, ratio in zip(usable, medians_s.min() / medians_s, strict=True)]
    )
    return SampleSet(
        merged.samples, usable[0].interval_s, merged.start_s, merged.duration_s, is_truncated=merged.is_truncated
    )


def _resample_to_seconds(sample_set: SampleSet) -> SampleSet:
    """Resample a set to points of 1 s; the first point has the same middle as the first step."""
    shift_s = (sample_set.interval_s - 1.0) / 2 if sample_set.interval_s > 1.0 else 0.0
    points = refine_granularity(sample_set.samples, sample_set.interval_s)
    return replace(sample_set, samples=points, interval_s=1.0, start_s=sample_set.start_s + shift_s, interference=None)


def _scale_duration(sample_set: SampleSet, ratio: float) -> SampleSet:
    """Keep a fraction of the steps of each sample, chosen at regular intervals."""
    counts = sample_set.samples.counts
    left = np.ceil(counts * ratio - 1e-9).astype(np.int64)
    offsets = offsets_of(left)
    values = _drop_points(sample_set.samples, counts - left, counts)
    start_s, duration_s = sample_set.start_s * ratio, sample_set.duration_s * ratio
    return replace(
        sample_set, samples=Ragged(values, offsets), start_s=start_s, duration_s=duration_s, interference=None
    )
