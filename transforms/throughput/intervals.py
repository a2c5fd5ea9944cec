"""Resample irregular intervals, as in series and polls, to the even steps that a spectrum requires.

Intervals of a series are nearly even, with jitter, gaps and overlaps. Each subject gets steps of its median interval.
Bytes are distributed by time, exactly; a step that is covered for less than half of its time is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, owners
from iosig.transforms.throughput.even_values import Grid, bin_requests, is_resolved
from iosig.transforms.throughput.requests import Requests

#: tolerance of jitter at the end of a range, as a fraction of a step; a smaller excess does not add a step
_JITTER_STEPS = 0.01


@dataclass(frozen=True, slots=True)
class StepParams:
    """Parameters of the resampling (ours: no paper has a rule).

    Attributes
    ----------
    interval_s
        Length of a step [s]; if None, the median interval of each subject.
    max_step_count
        Maximum number of steps; longer series have longer steps.
    min_covered_ratio
        Minimum fraction of a step that intervals must cover; otherwise its rate is NaN.
    """

    interval_s: float | None = None
    max_step_count: int = 1_000_000
    min_covered_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class ResampledSignals:
    """Signals with even steps: bytes_per_s (ragged; NaN where not measured), sampling_hz and start_s (n)."""

    bytes_per_s: Ragged
    sampling_hz: Reals
    start_s: Reals


def median_lengths(lengths: Reals, offsets: Ints) -> Reals:
    """Compute the lower median of each subject's positive lengths.

    Parameters
    ----------
    lengths
        Lengths of all subjects.
    offsets : (n + 1,)
        Subject i has lengths[offsets[i]:offsets[i+1]].

    Returns
    -------
    (n,)
        NaN without positive lengths.
    """
    owner = owners(offsets)
    is_usable = np.isfinite(lengths) & (lengths > 0)
    owner, lengths = owner[is_usable], lengths[is_usable]
    order = np.lexsort((lengths, owner))
    bounds = np.searchsorted(owner, np.arange(len(offsets)))
    counts = np.diff(bounds)
    medians = np.full(len(counts), np.nan)
    has_any = counts > 0
    medians[has_any] = lengths[order][(bounds[:-1] + (counts - 1) // 2)[has_any]]
    return medians


def resample_intervals(
    left_s: Reals, right_s: Reals, volume_bytes: Reals, offsets: Ints, params: StepParams | None = None
) -> ResampledSignals:
    """Resample the intervals of n subjects to even steps.

    Parameters
    ----------
    left_s, right_s, volume_bytes : (points,)
        Edges [s] and bytes. A volume that is not finite is missing; intervals without a positive length are ignored.
    offsets : (n + 1,)
        Subject i has the points offsets[i] to offsets[i + 1].
    params
        Parameters of the resampling.

    Returns
    -------
    ResampledSignals
        Overlapping intervals are added. A subject without valid intervals, or with unresolvable times, has no steps,
        and the frequency 1.
    """
    params = params or StepParams()
    owner = owners(offsets)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = right_s - left_s
    is_timed = np.isfinite(lengths) & (lengths > 0)
    grid = _make_grid(left_s, right_s, lengths, is_timed, owner, offsets, params)
    count = len(offsets) - 1
    is_measured = is_timed & np.isfinite(volume_bytes) & (volume_bytes >= 0)
    rows = (left_s[is_measured], right_s[is_measured])
    moved_bytes = bin_requests(Requests(*rows, volume_bytes[is_measured], owner[is_measured], count), grid).volume_bytes
    covered_s = bin_requests(Requests(*rows, lengths[is_measured], owner[is_measured], count), grid).volume_bytes
    widths_s = grid.widths_s
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = moved_bytes / np.minimum(covered_s, widths_s)
    values = np.where(covered_s >= params.min_covered_ratio * widths_s, rates, np.nan)
    return ResampledSignals(Ragged(values, grid.offsets), 1.0 / grid.interval_s, grid.start_s)


def _make_grid(
    left_s: Reals,
    right_s: Reals,
    lengths: Reals,
    is_timed: Bools,
    owner: Ints,
    offsets: Ints,
    params: StepParams,
) -> Grid:
    """Create the steps of each subject, from its first to its last edge; a step is its median interval."""
    count = len(offsets) - 1
    started, ended = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(started, owner[is_timed], left_s[is_timed])
    np.maximum.at(ended, owner[is_timed], right_s[is_timed])
    with np.errstate(invalid="ignore"):
        span = ended - started
        target_s = median_lengths(lengths, offsets) if params.interval_s is None else params.interval_s
        interval = np.maximum(target_s, span / params.max_step_count)
        steps = np.ceil(span / interval - _JITTER_STEPS)
    is_usable = np.isfinite(span) & np.isfinite(interval) & np.isfinite(steps)
    started, interval, steps = (
        np.where(is_usable, part, fallback) for part, fallback in ((started, 0.0), (interval, 1.0), (steps, 0.0))
    )
    is_fine = is_resolved(started, interval, steps.astype(np.int64))
    return Grid(
        np.where(is_fine, started, 0.0), np.where(is_fine, interval, 1.0), np.where(is_fine, steps, 0).astype(np.int64)
    )
