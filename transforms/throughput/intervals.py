"""From intervals of any length, as series and polls have them, to even steps: what a spectrum needs.

A series' intervals are nearly even, with jitter, gaps and overlaps. Each subject gets steps of its own median
interval; bytes are shared by time, exactly, and a step that is covered for less than half of its time is not measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, owners
from iosig.transforms.throughput.even_values import Grid, binned, is_resolved
from iosig.transforms.throughput.requests import Requests

#: a span that should be a whole number of steps may miss it by jitter: this share of a step makes no further one
_SLACK_STEPS = 0.01


@dataclass(frozen=True, slots=True)
class StepParams:
    """How intervals become steps (ours: no paper has a rule).

    interval_s: the length of a step; None: each subject's own median interval. max_step_count: with more, steps are
    longer. min_covered_ratio: a step of which intervals cover a smaller share is not measured.
    """

    interval_s: float | None = None
    max_step_count: int = 1_000_000
    min_covered_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Stepped:
    """Signals of even steps: bytes_per_s (ragged; NaN where not measured), sampling_hz and start_s (n)."""

    bytes_per_s: Ragged
    sampling_hz: Reals
    start_s: Reals


def median_lengths(lengths: Reals, offsets: Ints) -> Reals:
    """Return the lower median of each subject's positive lengths (n); NaN where it has none."""
    owner = owners(offsets)
    is_usable = np.isfinite(lengths) & (lengths > 0)
    owner, lengths = owner[is_usable], lengths[is_usable]
    order = np.lexsort((lengths, owner))
    bounds = np.searchsorted(owner, np.arange(len(offsets)))
    counts = np.diff(bounds)
    found = np.full(len(counts), np.nan)
    has_any = counts > 0
    found[has_any] = lengths[order][(bounds[:-1] + (counts - 1) // 2)[has_any]]
    return found


def stepped(
    left_s: Reals, right_s: Reals, volume_bytes: Reals, offsets: Ints, params: StepParams | None = None
) -> Stepped:
    """Return the intervals of n subjects as even steps.

    left_s, right_s, volume_bytes (points): edges in seconds and bytes; a volume that is not finite is not measured,
    an interval that is not longer than nothing is left out. offsets (n + 1). Where intervals overlap both count,
    as in the classes. A subject without usable intervals, or with times that cannot be told apart, has no steps,
    and a frequency of 1.
    """
    params = params or StepParams()
    owner = owners(offsets)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = right_s - left_s
    is_timed = np.isfinite(lengths) & (lengths > 0)
    grid = _grid(left_s, right_s, lengths, is_timed, owner, offsets, params)
    count = len(offsets) - 1
    is_measured = is_timed & np.isfinite(volume_bytes) & (volume_bytes >= 0)
    rows = (left_s[is_measured], right_s[is_measured])
    moved = binned(Requests(*rows, volume_bytes[is_measured], owner[is_measured], count), grid).volume_bytes
    covered_s = binned(Requests(*rows, lengths[is_measured], owner[is_measured], count), grid).volume_bytes
    widths_s = grid.widths_s
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = moved / np.minimum(covered_s, widths_s)
    values = np.where(covered_s >= params.min_covered_ratio * widths_s, rates, np.nan)
    return Stepped(Ragged(values, grid.offsets), 1.0 / grid.interval_s, grid.start_s)


def _grid(
    left_s: Reals,
    right_s: Reals,
    lengths: Reals,
    is_timed: Bools,
    owner: Ints,
    offsets: Ints,
    params: StepParams,
) -> Grid:
    """Return each subject's steps: from its first edge on, of its median interval, until its last edge."""
    count = len(offsets) - 1
    started, ended = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(started, owner[is_timed], left_s[is_timed])
    np.maximum.at(ended, owner[is_timed], right_s[is_timed])
    with np.errstate(invalid="ignore"):
        span = ended - started
        wanted = median_lengths(lengths, offsets) if params.interval_s is None else params.interval_s
        interval = np.maximum(wanted, span / params.max_step_count)
        steps = np.ceil(span / interval - _SLACK_STEPS)
    is_usable = np.isfinite(span) & np.isfinite(interval) & np.isfinite(steps)
    started, interval, steps = (
        np.where(is_usable, part, other) for part, other in ((started, 0.0), (interval, 1.0), (steps, 0.0))
    )
    is_fine = is_resolved(started, interval, steps.astype(np.int64))
    return Grid(
        np.where(is_fine, started, 0.0), np.where(is_fine, interval, 1.0), np.where(is_fine, steps, 0).astype(np.int64)
    )
