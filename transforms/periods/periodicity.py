"""Measure how periodic a signal is at a given period: deviations of volume and time per period, and substantial I/O.

These are FTIO's further metrics. They are computed exactly, without sampling, on step functions that are cut at the
edges of periods. The paper does not define the treatment of an incomplete last period. Here it is excluded from both
deviations, while V(T), L(T), S and R_IO cover the whole trace.

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C, "Further
characterization", a to c and equation 4, doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import (
    InPieces,
    Ints,
    Ragged,
    Reals,
    concatenate_rows,
    offsets_of,
    owners,
    places_of,
    places_within,
)
from iosig.transforms.periods.windows import ROUNDING, clip_steps
from iosig.transforms.throughput.requests import Steps

#: samples per chunk: a dozen arrays of that size fit into the CPU cache
_CHUNK_SAMPLES = 1 << 15


# Our rules for which periods count; the paper has neither gaps nor traces of a single period.

#: minimum number of whole periods for a deviation
_MIN_PERIOD_COUNT = 2
#: minimum measured fraction of a period that counts
_MIN_KNOWN_RATIO = 0.5
#: maximum number of periods, more than any spectrum resolves: bounds memory use
_MAX_PERIOD_COUNT = 1 << 22


@dataclass(frozen=True, slots=True)
class Periodicity:
    """Metrics of n signals over their windows.

    Attributes
    ----------
    known_s, volume_bytes : (n,)
        L(T), the measured time within the window, and V(T), the volume.
    threshold_bytes_per_s : (n,)
        V(T) / L(T).
    substantial_s, substantial_bytes : (n,)
        L(S) and V(S): duration and volume of the time in which the rate exceeds the threshold.
    r_io, b_io_bytes_per_s : (n,)
        L(S) / L(T), and V(S) / L(S), which is NaN if L(S) is 0.
    period_count : (n,)
        Number of whole periods that count.
    sigma_vol : (n,)
        Standard deviation of the volumes of periods, divided by the largest one.
    sigma_time : (n,)
        Equation 4.
    periodicity_score : (n,)
        ``1 - sigma_vol - sigma_time``, or 0 if that is negative.
    bytes_per_period : (n,)
        V(S) / (L(T) f).

    Notes
    -----
    The last four are NaN without a period, or with too few periods.
    """

    known_s: Reals
    volume_bytes: Reals
    threshold_bytes_per_s: Reals
    substantial_s: Reals
    substantial_bytes: Reals
    r_io: Reals
    b_io_bytes_per_s: Reals
    period_count: Ints
    sigma_vol: Reals
    sigma_time: Reals
    periodicity_score: Reals
    bytes_per_period: Reals


def characterize_steps(
    steps: Steps,
    start_s: npt.ArrayLike,
    end_s: npt.ArrayLike,
    frequency_hz: npt.ArrayLike,
) -> Periodicity:
    """Compute periodicity metrics of step functions.

    Parameters
    ----------
    steps : Steps
        n step functions; the rate is 0 where a function has no edges.
    start_s, end_s : scalar or (n,)
        Windows.
    frequency_hz : scalar or (n,)
        NaN without a period.

    Returns
    -------
    Periodicity

    Notes
    -----
    An impulse moves bytes in no time, so its rate exceeds any threshold: it adds to V(T), V(S) and the volume of its
    period, but to no duration. An impulse at the edge of two periods belongs to the later one. An impulse at the end of
    the window belongs to the last period.
    """
    count = steps.subject_count
    started, ended, frequency = (
        np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)) for value in (start_s, end_s, frequency_hz)
    )
    is_window = np.isfinite(started) & np.isfinite(ended) & (started < ended)
    started, ended = np.where(is_window, started, 0.0), np.where(is_window, ended, 0.0)
    return _compute_metrics(_add_window_edges(clip_steps(steps, started, ended), started, ended), frequency)


def characterize_samples(samples: Ragged, sampling_hz: Reals, frequency_hz: Reals) -> Periodicity:
    """Compute periodicity metrics of evenly sampled signals; each sample holds until the next one.

    Parameters
    ----------
    samples : Ragged
        n signals of any length, in bytes per second, NaN where not measured. `windows.clip_samples` restricts them to
        a window.
    sampling_hz, frequency_hz : (n,)

    Returns
    -------
    Periodicity

    Notes
    -----
    Unmeasured time counts toward neither volume nor length. The volume of a partly measured period is extrapolated
    from its measured part, and its substantial time is relative to that part.
    """
    parts = [
        _compute_metrics(_to_steps(samples, sampling_hz, rows), frequency_hz[rows])
        for rows in _iter_chunks(samples.counts)
    ]
    return concatenate_rows(parts)


def _iter_chunks(counts: Ints) -> Iterator[slice]:
    """Yield slices of about `_CHUNK_SAMPLES` samples in total; a slice has one signal or more."""
    chunk = np.cumsum(counts + 1) // _CHUNK_SAMPLES
    bounds = np.flatnonzero(np.diff(chunk, prepend=-1, append=-1)) if len(counts) else np.zeros(2, dtype=np.int64)
    yield from (slice(first, last) for first, last in pairwise(bounds.tolist()))


# ---- signals, from edge to edge of their windows


@dataclass(frozen=True, slots=True)
class _Signals(InPieces):
    """Step functions of many subjects: the rate after each edge, NaN if unknown; edges may repeat.

    The first edge of each subject is the start of its window; the last one is its end, with a rate of 0.
    """

    edges_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    impulses_s: Reals
    impulse_bytes: Reals
    impulse_offsets: Ints

    @property
    def start_s(self) -> Reals:
        return self.edges_s[self.offsets[:-1]]

    @property
    def end_s(self) -> Reals:
        return self.edges_s[self.offsets[1:] - 1]

    def widths_s(self) -> Reals:
        widths = np.empty(len(self.edges_s))
        np.subtract(self.edges_s[1:], self.edges_s[:-1], out=widths[:-1])
        widths[self.offsets[1:] - 1] = 0.0
        return widths


def _add_window_edges(steps: Steps, started: Reals, ended: Reals) -> _Signals:
    """Add edges at the start and the end of each window to clipped step functions."""
    counts = steps.counts
    offsets = offsets_of(counts + 2)
    edges, levels = np.zeros((2, int(offsets[-1])))
    position = np.arange(len(steps.edges_s)) + 2 * steps.owner + 1
    edges[position], levels[position] = steps.edges_s, steps.bytes_per_s
    edges[offsets[:-1]], edges[offsets[1:] - 1] = started, ended
    return _Signals(edges, levels, offsets, steps.impulses_s, steps.impulse_bytes, steps.impulse_offsets)


def _to_steps(samples: Ragged, sampling_hz: Reals, rows: slice) -> _Signals:
    """Convert samples to steps, in seconds from the start of each signal, which keeps the precision of late times."""
    counts = samples.counts[rows]
    offsets = offsets_of(counts + 1)
    values = samples.values[samples.offsets[rows.start] : samples.offsets[rows.stop]]
    edges = places_within(counts + 1) / np.repeat(sampling_hz[rows], counts + 1)
    levels = np.zeros(len(edges))
    levels[places_of(offsets[:-1], counts)] = np.where(np.isfinite(values), values, np.nan)
    empty = np.zeros(0)
    return _Signals(edges, levels, offsets, empty, empty, np.zeros(len(counts) + 1, dtype=np.int64))


# ---- metrics


def _compute_metrics(signals: _Signals, frequency: Reals) -> Periodicity:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        count, owner = len(frequency), signals.owner
        is_known = np.isfinite(signals.bytes_per_s)
        widths = signals.widths_s()
        known_s = np.where(is_known, widths, 0.0)
        moved_bytes = np.where(is_known, signals.bytes_per_s, 0.0) * widths
        impulses = np.bincount(owners(signals.impulse_offsets), signals.impulse_bytes, count)
        known_total_s = _segment_sums(known_s, signals.offsets)
        volume = _segment_sums(moved_bytes, signals.offsets) + impulses
        threshold = volume / known_total_s
        is_high = signals.bytes_per_s > (threshold * (1.0 + ROUNDING))[owner]
        high_s = np.where(is_high, widths, 0.0)
        substantial_s = _segment_sums(high_s, signals.offsets)
        substantial_bytes = _segment_sums(np.where(is_high, moved_bytes, 0.0), signals.offsets) + impulses
        r_io = substantial_s / known_total_s
        periods = _lay_out_periods(signals, frequency)
        cuts = _cut_periods(signals, widths, periods)
        cells = [cuts.sums(moved_bytes) + _sum_impulses(signals, periods), cuts.sums(known_s), cuts.sums(high_s)]
        number, sigma_vol, sigma_time = _compute_deviations(cells, periods, r_io)
        is_enough = (number >= _MIN_PERIOD_COUNT) & (volume > 0)
        sigma_vol, sigma_time = (np.where(is_enough, sigma, np.nan) for sigma in (sigma_vol, sigma_time))
        per_period = np.where(is_enough, substantial_bytes / (known_total_s * frequency), np.nan)
        b_io = np.where(substantial_s > 0, substantial_bytes / substantial_s, np.nan)
        score = np.clip(1.0 - sigma_vol - sigma_time, 0.0, 1.0)
    return Periodicity(
        known_total_s, volume, threshold, substantial_s, substantial_bytes, r_io, b_io, number,
        sigma_vol, sigma_time, score, per_period,
    )  # fmt: skip


def _segment_sums(values: Reals, offsets: Ints) -> Reals:
    """Sum non-empty segments (n)."""
    if len(offsets) < 2:
        return np.zeros(0)
    sums: Reals = np.add.reduceat(values, offsets[:-1])
    return sums


@dataclass(frozen=True, slots=True)
class _Periods(InPieces):
    """Whole periods of many subjects; those of subject i are ``offsets[i]`` to ``offsets[i + 1]``.

    `edges_s`, `edge_offsets`: the edges of periods; a subject with periods has one edge more than periods.
    """

    offsets: Ints
    edges_s: Reals
    edge_offsets: Ints
    length_s: Reals

    @property
    def left(self) -> Ints:
        """Position of each period's left edge."""
        return np.arange(int(self.offsets[-1])) + np.repeat(np.cumsum(self.counts > 0) - 1, self.counts)


def _lay_out_periods(signals: _Signals, frequency: Reals) -> _Periods:
    started, ended = signals.start_s, signals.end_s
    # rounding must not drop the last period of a whole number
    period_counts = np.floor((ended - started) * frequency * (1.0 + ROUNDING))
    is_countable = np.isfinite(frequency) & (frequency > 0) & (period_counts <= _MAX_PERIOD_COUNT)
    counts = np.where(is_countable, period_counts, 0.0).astype(np.int64)
    offsets = offsets_of(counts)
    edge_offsets = offsets_of(np.where(counts > 0, counts + 1, 0))
    owner = owners(edge_offsets)
    number = np.arange(int(edge_offsets[-1])) - edge_offsets[owner]
    edges = np.minimum(started[owner] + number / frequency[owner], ended[owner])
    return _Periods(offsets, edges, edge_offsets, 1.0 / frequency)


def _find_steps(signals: _Signals, periods: _Periods) -> Ints:
    """Find the subject's last step that begins at or before each edge, by a binary search in all segments at once."""
    owner = owners(periods.edge_offsets)
    low, high = signals.offsets[owner], signals.offsets[owner + 1]
    for _ in range(int(signals.counts.max(initial=1)).bit_length()):
        middle = (low + high) // 2
        is_reached = signals.edges_s[np.minimum(middle, len(signals.edges_s) - 1)] <= periods.edges_s
        is_open = low + 1 < high
        low, high = np.where(is_open & is_reached, middle, low), np.where(is_open & ~is_reached, middle, high)
    return low


@dataclass(frozen=True, slots=True)
class _PeriodCuts:
    """Steps of each period (periods).

    `first`, `last`: the steps in which the period begins and ends. `first_share`, `last_share`: the fractions of these
    steps inside the period; `last_share` is 0 if both steps are the same. Steps in between are completely inside.
    """

    first: Ints
    last: Ints
    first_share: Reals
    last_share: Reals

    def sums(self, amounts: Reals) -> Reals:
        """Sum amounts per step (steps) over each period (periods)."""
        sums: Reals = amounts[self.first] * self.first_share + amounts[self.last] * self.last_share
        at = np.flatnonzero(self.last > self.first + 1)
        if len(at):
            pairs = np.stack([self.first[at] + 1, self.last[at]], axis=1).ravel()
            sums[at] += np.add.reduceat(amounts, pairs)[::2]
        return sums


def _cut_periods(signals: _Signals, widths: Reals, periods: _Periods) -> _PeriodCuts:
    step, left = _find_steps(signals, periods), periods.left
    first, last, low, high = step[left], step[left + 1], periods.edges_s[left], periods.edges_s[left + 1]
    # steps of zero width have no amount
    width = np.where(widths > 0, widths, 1.0)
    step_end = signals.edges_s[first] + widths[first]
    is_single = first == last
    head = np.where(is_single, high, step_end) - low
    tail = np.where(is_single, 0.0, high - signals.edges_s[last])
    return _PeriodCuts(first, last, head / width[first], tail / width[last])


def _sum_impulses(signals: _Signals, periods: _Periods) -> Reals:
    """Sum the bytes of the impulses within each period (periods); impulses outside all periods are dropped."""
    owner, period_count = owners(signals.impulse_offsets), int(periods.offsets[-1])
    number = np.floor((signals.impulses_s - signals.start_s[owner]) / periods.length_s[owner])
    counts = periods.counts[owner]
    candidates = np.flatnonzero(np.isfinite(number) & (counts > 0) & (number <= counts))
    owner, instant, counts = owner[candidates], signals.impulses_s[candidates], counts[candidates]
    position = number[candidates].astype(np.int64)
    # correct the period number if rounding is off by one
    edge = periods.edge_offsets[owner]
    position -= (position > 0) & (periods.edges_s[edge + np.minimum(position, counts)] > instant)
    position += (position < counts) & (periods.edges_s[edge + np.minimum(position + 1, counts)] <= instant)
    position -= (position == counts) & (instant == signals.end_s[owner]) & (periods.edges_s[edge + counts] == instant)
    is_whole = position < counts
    cell = (periods.offsets[owner] + position)[is_whole]
    return np.bincount(cell, signals.impulse_bytes[candidates][is_whole], period_count).astype(np.float64, copy=False)


def _compute_deviations(cells: list[Reals], periods: _Periods, r_io: Reals) -> tuple[Ints, Reals, Reals]:
    """Count the periods, and compute sigma_vol and sigma_time (n each)."""
    volume, known_s, high_s = cells
    owner, count = periods.owner, len(r_io)
    length_s = periods.length_s[owner]
    is_counted = known_s >= _MIN_KNOWN_RATIO * length_s * (1.0 - ROUNDING)
    at = np.flatnonzero(is_counted & (known_s > 0))
    owner, known_s, high_s = owner[at], known_s[at], high_s[at]
    volume = volume[at] * (length_s[at] / known_s)
    number = np.bincount(owner, minlength=count)
    largest = np.zeros(count)
    np.maximum.at(largest, owner, volume)
    ratio = volume / largest[owner]
    mean = np.bincount(owner, ratio, count) / number
    sigma_vol = np.sqrt(np.bincount(owner, np.square(ratio - mean[owner]), count) / number)
    squares = np.bincount(owner, np.square(high_s / known_s - r_io[owner]), count)
    return number.astype(np.int64, copy=False), sigma_vol, np.sqrt(squares / number)
