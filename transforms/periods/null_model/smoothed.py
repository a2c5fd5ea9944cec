"""Apply the gap test to running means, for phases that noise hides or splits.

If a burst is as high as the surrounding noise, its samples are not all above the mean. But running means over the
length of the burst are. Neighboring means have samples in common, so gaps up to the length of the window are merged.
If samples are independent, a longer gap continues with a probability that does not depend on its length so far. So the
gap test applies to the rest of each gap. Thresholds above the mean separate bursts from noise. The p-value is corrected
for all tried windows and thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.null_model import extent, gaps
from iosig.transforms.periods.null_model.gaps import GAP_TEST, GapRegularity
from iosig.transforms.periods.null_model.intervals import Intervals, PackedSignals, ScaledSignals
from iosig.transforms.periods.null_model.phases import Phases, find_activity, find_phases, merge_phases

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class SmoothingParams:
    """Parameters of the smoothing (ours).

    Attributes
    ----------
    step_sizes : tuple of int
        Samples per step; means are computed once per step.
    window_steps : int
        Steps per running mean.
    threshold_sigmas : tuple of float
        Thresholds above the mean, in standard deviations of the running means.
    min_steps : int
        Minimum number of steps in an interval.
    trials : float
        Effective number of independent tests over all step sizes and thresholds, as measured on memoryless signals
        (`iosig study periods --part memoryless`). It accounts for 8 combinations, the remaining memory of the means,
        and the fraction of the level that combs of few cycles use.
    """

    step_sizes: tuple[int, ...] = (1, 2, 4, 8)
    window_steps: int = 4
    threshold_sigmas: tuple[float, ...] = (0.75, 1.5)
    min_steps: int = 24
    trials: float = 32.0


SMOOTHING = SmoothingParams()
#: phases per batch: amortizes the overhead of a call and fits the CPU cache
_BATCH_PHASES = 1 << 14


@dataclass(frozen=True, slots=True)
class SmoothedFindings:
    """The most significant trial of each interval.

    Attributes
    ----------
    log_p : (k,)
        Log p-value, corrected for all trials.
    step_samples : (k,)
        Samples per step; 0 without a result.
    threshold_sigmas : (k,)
        Threshold above the mean, in standard deviations.
    max_merged_gap, period, cv : (k,)
        As in `gaps.GapRegularity`, but in steps.
    """

    log_p: Reals
    step_samples: Ints
    threshold_sigmas: Reals
    max_merged_gap: Ints
    period: Reals
    cv: Reals


def assess_running_means(signals: ScaledSignals, intervals: Intervals, max_log_p: float) -> SmoothedFindings:
    """Test the gaps between phases of running means.

    Parameters
    ----------
    signals : ScaledSignals
    intervals : Intervals
        k intervals of the signals.
    max_log_p : float
        Results with a larger log p-value are not reported.

    Returns
    -------
    SmoothedFindings
    """
    count = len(intervals.row)
    unknown = np.full((4, count), np.nan)
    best = SmoothedFindings(
        np.zeros(count),
        np.zeros(count, dtype=np.int64),
        unknown[0],
        np.zeros(count, dtype=np.int64),
        unknown[1],
        unknown[2],
    )
    trial_max_log_p = max_log_p - float(np.log(SMOOTHING.trials))
    for trials in _batch_trials(_iter_trials(signals.packed, intervals)):
        phases = Phases.concatenate([trial.phases for trial in trials])
        run_lengths = np.concatenate([trial.run_lengths for trial in trials])
        regularity = gaps.assess_regularity(phases, trial_max_log_p, SMOOTHING.window_steps, run_lengths)
        edges = offsets_of([len(trial.at) for trial in trials]).tolist()
        for trial, (first, last) in zip(trials, pairwise(edges), strict=True):
            _keep_better(best, rows_of(regularity, slice(first, last)), trial)
    best.log_p[:] = np.minimum(best.log_p + np.log(SMOOTHING.trials), 0.0)
    return best


@dataclass(frozen=True, slots=True)
class _Trial:
    """Phases of k intervals for one step size and one threshold.

    `at` (k): positions of the intervals. `run_lengths` (k): mean length of runs of measured steps.
    """

    at: Ints
    step_samples: int
    threshold_sigmas: float
    phases: Phases
    run_lengths: Reals


def _iter_trials(packed: PackedSignals, intervals: Intervals) -> Iterator[_Trial]:
    """Yield the phases of intervals for all step sizes and thresholds."""
    packed_intervals = packed.to_packed(intervals)
    for step_samples in SMOOTHING.step_sizes:
        long_enough = np.flatnonzero(packed_intervals.lengths >= SMOOTHING.min_steps * step_samples)
        if not len(long_enough):
            break
        smoothed, step_intervals = (
            smooth(packed.signals, step_samples),
            _to_steps(rows_of(packed_intervals, long_enough), step_samples),
        )
        for positions, width in step_intervals.group_by_width():
            rows = long_enough[positions]
            run_lengths = packed.run_lengths(rows_of(packed_intervals, rows)) / step_samples
            for threshold_sigmas, phases in _iter_phases(
                packed, smoothed, rows_of(step_intervals, positions), width, step_samples
            ):
                yield _Trial(rows, step_samples, threshold_sigmas, phases, run_lengths)


def _batch_trials(trials: Iterable[_Trial]) -> Iterator[list[_Trial]]:
    """Yield consecutive trials in batches of about `_BATCH_PHASES` phases."""
    batch: list[_Trial] = []
    for trial in trials:
        batch.append(trial)
        if sum(len(item.phases.first) for item in batch) >= _BATCH_PHASES:
            yield batch
            batch = []
    if batch:
        yield batch


def _iter_phases(
    packed: PackedSignals, smoothed: ScaledSignals, intervals: Intervals, width: int, step_samples: int
) -> Iterator[tuple[float, Phases]]:
    """Yield the phases of intervals of smoothed signals (k) above each threshold."""
    rates, _ = smoothed.extract(intervals, width)
    mean, spread = _compute_moments(rates, intervals.lengths)
    for threshold_sigmas in SMOOTHING.threshold_sigmas:
        active = find_activity(rates, mean + threshold_sigmas * spread)
        phases = active.select(~gaps.has_too_many_phases(active, intervals.lengths)).to_phases(rates)
        owner = phases.owner
        censored = packed.spans_gap(
            intervals.row[owner],
            (phases.first + intervals.first[owner] - 1) * step_samples,
            (phases.first + intervals.first[owner] + SMOOTHING.window_steps) * step_samples,
        )
        yield threshold_sigmas, phases if censored is None else replace(phases, is_onset_censored=censored)


def _keep_better(best: SmoothedFindings, regularity: GapRegularity, trial: _Trial) -> None:
    """Replace the best results by those of a trial where the latter are more significant."""
    better = np.flatnonzero(regularity.log_p < best.log_p[trial.at])
    rows = trial.at[better]
    best.log_p[rows], best.max_merged_gap[rows] = regularity.log_p[better], regularity.max_merged_gap[better]
    best.period[rows], best.cv[rows] = regularity.period[better], regularity.cv[better]
    best.step_samples[rows], best.threshold_sigmas[rows] = trial.step_samples, trial.threshold_sigmas


def locate_extents(
    signals: ScaledSignals,
    intervals: Intervals,
    step_samples: int,
    threshold_sigmas: Reals,
    regularity: tuple[Ints, Reals, Reals],
) -> extent.Extents:
    """Locate the periods of intervals with the same step size.

    Parameters
    ----------
    signals : ScaledSignals
    intervals : Intervals
        k intervals of the signals.
    step_samples : int
        Samples per step.
    threshold_sigmas : (k,)
        Threshold above the mean, in standard deviations.
    regularity : tuple of (k,)
        `max_merged_gap`, `period` and `cv`, as in `SmoothedFindings`.

    Returns
    -------
    Extents
        Extents in samples of the signals.
    """
    packed = signals.packed
    packed_intervals = packed.to_packed(intervals)
    step_intervals = _to_steps(
        Intervals(np.arange(len(packed_intervals.row)), packed_intervals.first, packed_intervals.last), step_samples
    )
    width = int(step_intervals.lengths.max(initial=1))
    rates, _ = smooth(packed.signals.select(packed_intervals.row), step_samples).extract(step_intervals, width)
    mean, spread = _compute_moments(rates, step_intervals.lengths)
    phases = find_phases(rates, mean + threshold_sigmas * spread)
    merged = merge_phases(phases, regularity[0]).drop_small(GAP_TEST.min_phase_ratio)
    located = extent.locate_by_phases(merged, *regularity)
    # the running mean that starts at an edge has its center half a window later
    edges = [
        (step_intervals.first + edge + SMOOTHING.window_steps / 2) * step_samples
        for edge in (located.first, located.last - 1)
    ]
    first, last = (packed.to_signal_positions(intervals.row, np.nan_to_num(edge)) for edge in edges)
    stretch = intervals.lengths / np.maximum(packed_intervals.lengths, 1)
    return extent.Extents(
        np.maximum(first, intervals.first),
        np.minimum(last, intervals.last),
        located.period * step_samples * stretch,
        located.regularity,
        located.cycles,
    )


def smooth(signals: ScaledSignals, step_samples: int) -> ScaledSignals:
    """Compute running means of fully measured signals, one per step.

    Parameters
    ----------
    signals : ScaledSignals
        n signals without unmeasured samples.
    step_samples : int
        Samples per step.

    Returns
    -------
    ScaledSignals
        One sample per step, the mean over the next `window_steps` steps.
    """
    count = -(-signals.sample_count // step_samples)
    sums = signals.padded[:, : count * step_samples].reshape(len(signals.padded), count, step_samples).sum(axis=2)
    padded = np.zeros((len(sums), 3 * count + 32), dtype=np.float32)
    for step in range(SMOOTHING.window_steps):
        padded[:, : count - step] += sums[:, step:]
    padded /= step_samples * SMOOTHING.window_steps
    return ScaledSignals(padded, count, None, _to_steps(signals.spans, step_samples))


def _to_steps(intervals: Intervals, step_samples: int) -> Intervals:
    return Intervals(intervals.row, intervals.first // step_samples, -(-intervals.last // step_samples))


def _compute_moments(rates: Floats, lengths: Ints) -> tuple[Reals, Reals]:
    """Mean and standard deviation of the samples of each row (k)."""
    count = np.maximum(lengths, 1)
    mean = rates.sum(axis=1, dtype=np.float64) / count
    mean_square = np.einsum("ij,ij->i", rates, rates).astype(np.float64) / count
    return mean, np.sqrt(np.maximum(mean_square - mean**2, 0.0))
