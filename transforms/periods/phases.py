"""Find the phases of I/O in a window of samples, and track the intervals between their onsets during a run.

Substantial I/O is I/O above the mean rate of the window (FTIO, section II-C). The intervals between onsets of its
phases are the ground truth of FTIO's Figure 15. The paper has no rule for separating two phases, and argues in section
I that no fixed gap fits all systems and applications. The rule here is ours; it contains no duration in seconds, so it
is independent of scale.

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), IPDPS'24,
doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals

#: an excess over the mean below this fraction is treated as rounding error
ROUNDING = 1e-9
#: maximum number of phases that a tracker keeps
_MAX_KEPT_PHASES = 64
#: number of previous phases with which an open phase is compared, by their median volume
_COMPARED_PHASES = 8
#: fraction of that median volume at which an open phase is confirmed
_CONFIRMED_RATIO = 0.5


# ---- substantial I/O


@dataclass(frozen=True, slots=True)
class SubstantialIo:
    """Stretches of samples above the mean of their signal (k), sorted by signal (`row`), then by time.

    Attributes
    ----------
    row : (k,)
        Signal.
    first, last : (k,)
        First sample, and the sample after the last.
    """

    row: Ints
    first: Ints
    last: Ints

    def bridge(self, is_bridged: Bools) -> SubstantialIo:
        """Merge stretches across the gaps in the mask (in the order of `gaps`)."""
        is_cut = np.ones(len(self.row) + 1, dtype=np.bool_)
        is_cut[self.gaps + 1] = ~is_bridged
        return SubstantialIo(self.row[is_cut[:-1]], self.first[is_cut[:-1]], self.last[is_cut[1:]])

    @property
    def gaps(self) -> Ints:
        """Positions of the stretches before a gap: all but the last of each signal."""
        return np.flatnonzero(self.row[1:] == self.row[:-1])


def find_substantial_io(signals: EvenSignals) -> tuple[SubstantialIo, Reals]:
    """Find the stretches above the signal's mean rate (FTIO, section II-C).

    Parameters
    ----------
    signals : EvenSignals
        n signals.

    Returns
    -------
    stretches : SubstantialIo
    mean : (n,)
        Mean measured rates, in bytes per second.
    """
    known, count = signals.is_known, signals.sample_count + 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(known, signals.bytes_per_s, 0.0).sum(axis=1) / known.sum(axis=1)
        is_high = known & (signals.bytes_per_s > (mean * (1.0 + ROUNDING))[:, None])
    changes = np.diff(is_high.view(np.int8), axis=1, prepend=0, append=0).ravel()
    row, first = np.divmod(np.flatnonzero(changes > 0), count)
    return SubstantialIo(row, first, np.flatnonzero(changes < 0) % count), mean


# ---- phases of a window


# Our rules for separating two phases, chosen by the number of wrong and missed intervals in simulated runs.

#: maximum rate in a gap, as a fraction of the window's mean rate; above it, the phase only slows down
_MAX_GAP_RATE_RATIO = 0.5
#: minimum length of a gap as a fraction of the period, if that is known
_CYCLE_RATIO = 1 / 16
#: minimum length of a gap as a fraction of the time-weighted median gap, if the period is unknown
_MEDIAN_GAP_RATIO = 1 / 12
#: minimum idle fraction of the window; below it, all I/O is one phase
_MIN_IDLE_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class WindowPhases(InPieces):
    """Phases of I/O of n signals, in chronological order; those of signal i are ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    onset_s, end_s : (phases,)
        Start of the first substantial sample, and end of the last.
    volume_bytes : (phases,)
        All bytes from onset to end; bytes between phases belong to no phase.
    is_open : (phases,)
        Whether the phase may continue after the window: it is the last one, and no separating gap has passed since.
    is_cut : (phases,)
        Whether the phase may have begun before the window: nothing was measured before it.
    offsets : (n + 1,)
        Number of each signal's first phase, then the number of all phases.
    window_start_s, window_end_s, spacing_s : (n,)
        Bounds and spacing of each signal's samples.
    """

    onset_s: Reals
    end_s: Reals
    volume_bytes: Reals
    is_open: Bools
    is_cut: Bools
    offsets: Ints
    window_start_s: Reals
    window_end_s: Reals
    spacing_s: Reals


def find_window_phases(signals: EvenSignals, cycle_s: Reals | None = None) -> WindowPhases:
    """Find the phases of evenly sampled signals; unmeasured samples count as idle.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    cycle_s : (n,), optional
        Known periods; NaN for none.

    Returns
    -------
    WindowPhases

    Raises
    ------
    ValueError
        If `cycle_s` does not have one value per signal.
    """
    cycles = np.full(signals.signal_count, np.nan) if cycle_s is None else np.asarray(cycle_s, dtype=np.float64)
    if cycles.shape != (signals.signal_count,):
        raise ValueError("cycle_s must have one value per signal")
    parts = [_find_phases(part, cycles[place]) for place, part in signals.iter_chunks()]
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([[0], *(part.counts for part in parts)]).astype(np.int64)
    return WindowPhases(
        _concatenate([part.onset_s for part in parts]),
        _concatenate([part.end_s for part in parts]),
        _concatenate([part.volume_bytes for part in parts]),
        _concatenate([part.is_open for part in parts]).astype(np.bool_),
        _concatenate([part.is_cut for part in parts]).astype(np.bool_),
        np.cumsum(counts),
        *_window_columns(signals),
    )


def _concatenate(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0), *columns])


def _window_columns(signals: EvenSignals) -> tuple[Reals, Reals, Reals]:
    return signals.start_s, signals.end_s, 1.0 / signals.sampling_hz


def _find_phases(signals: EvenSignals, cycle_s: Reals) -> WindowPhases:
    stretches, mean = find_substantial_io(signals)
    values = np.where(signals.is_known, signals.bytes_per_s, 0.0)
    before_gap = stretches.gaps
    gap_volume = _sum_stretches(
        values, stretches.row[before_gap], stretches.last[before_gap], stretches.first[before_gap + 1]
    )
    length = stretches.first[before_gap + 1] - stretches.last[before_gap]
    stretches = stretches.bridge(gap_volume >= _MAX_GAP_RATE_RATIO * mean[stretches.row[before_gap]] * length)
    max_gap = _compute_max_gaps(signals, stretches, cycle_s)
    before_gap = stretches.gaps
    stretches = stretches.bridge(
        stretches.first[before_gap + 1] - stretches.last[before_gap] <= max_gap[stretches.row[before_gap]]
    )
    hz, row = signals.sampling_hz[stretches.row], stretches.row
    is_last = np.ones(len(row), dtype=np.bool_)
    is_last[stretches.gaps] = False
    # if all I/O is one phase, it ends after an idle time that would suffice for two phases
    min_idle = np.where(np.isinf(max_gap), _MIN_IDLE_RATIO * signals.sample_count, max_gap)
    unknown_before = (np.cumsum(signals.is_known, axis=1) == 0).sum(axis=1)
    return WindowPhases(
        signals.start_s[row] + stretches.first / hz,
        signals.start_s[row] + stretches.last / hz,
        _sum_stretches(values, row, stretches.first, stretches.last) / hz,
        is_last & (signals.sample_count - stretches.last <= min_idle[row]),
        stretches.first == unknown_before[row],
        np.searchsorted(row, np.arange(signals.signal_count + 1)).astype(np.int64, copy=False),
        *_window_columns(signals),
    )


def _sum_stretches(values: Reals, row: Ints, first: Ints, last: Ints) -> Reals:
    """Sum non-empty, consecutive stretches of samples (k)."""
    if not len(row):
        return np.zeros(0)
    base = row * values.shape[1]
    bounds = np.stack([base + first, base + last], axis=1).ravel()
    # reduceat does not accept an edge at the end of the table
    flat = np.append(values.ravel(), 0.0)
    result: Reals = np.add.reduceat(flat, bounds)[::2]
    return result


def _compute_max_gaps(signals: EvenSignals, stretches: SubstantialIo, cycle_s: Reals) -> Reals:
    """Maximum gap within a phase (n), in samples; infinite if too little time is idle."""
    before_gap = stretches.gaps
    row, length = (
        stretches.row[before_gap],
        (stretches.first[before_gap + 1] - stretches.last[before_gap]).astype(np.float64),
    )
    idle = np.bincount(row, weights=length, minlength=signals.signal_count)
    from_median = _MEDIAN_GAP_RATIO * compute_median_gaps(row, length, signals.signal_count)
    max_gap = np.where(idle >= _MIN_IDLE_RATIO * signals.sample_count, from_median, np.inf)
    has_cycle = np.isfinite(cycle_s) & (cycle_s > 0)
    return np.where(has_cycle, _CYCLE_RATIO * cycle_s * signals.sampling_hz, max_gap)


def compute_median_gaps(owner: Ints, length: Reals, count: int) -> Reals:
    """Compute the median gap, weighted by length: half of the idle time is in shorter gaps.

    Parameters
    ----------
    owner, length : (gaps,)
        Subject of each gap, from 0 to ``count - 1``, and its length.
    count : int
        Number of subjects.

    Returns
    -------
    (count,)
        Median gaps, in the unit of `length`; 0 without gaps.
    """
    order = np.lexsort((length, owner))
    length, owner = length[order], owner[order]
    bounds = np.searchsorted(owner, np.arange(count + 1))
    sums = np.concatenate([[0.0], np.cumsum(length)])
    half = (sums[bounds[:-1]] + sums[bounds[1:]]) / 2
    at = np.clip(np.searchsorted(sums, half, side="right") - 1, bounds[:-1], np.maximum(bounds[1:] - 1, bounds[:-1]))
    has_gap = bounds[1:] > bounds[:-1]
    median = np.zeros(count)
    median[has_gap] = length[at[has_gap]]
    return median


# ---- tracking


@dataclass(frozen=True, slots=True)
class _Phase:
    onset_s: float
    end_s: float
    volume_bytes: float


class PhaseTracker:
    """Tracks the phases of a run in moving windows, and returns each interval between two onsets once.

    A phase is identified by overlap, since later windows shift onsets and ends slightly. Returned intervals are final.
    An interval is returned only if it lies within one window, so that no phase in it was missed.
    """

    def __init__(self) -> None:
        self._kept: deque[_Phase] = deque(maxlen=_MAX_KEPT_PHASES)
        self._count = 0

    @property
    def phase_count(self) -> int:
        """Number of phases so far, including those that are no longer kept."""
        return self._count

    @property
    def onset_s(self) -> Reals:
        """Onsets of the last phases (up to 64), oldest first."""
        return np.array([phase.onset_s for phase in self._kept], dtype=np.float64)

    @property
    def end_s(self) -> Reals:
        """Ends of the last phases (up to 64); the last end as observed so far."""
        return np.array([phase.end_s for phase in self._kept], dtype=np.float64)

    @property
    def volume_bytes(self) -> Reals:
        """Volumes of the last phases (up to 64); the last volume as observed so far."""
        return np.array([phase.volume_bytes for phase in self._kept], dtype=np.float64)

    def update(self, phases: WindowPhases, signal: int = 0, first_io_s: float = math.nan) -> list[tuple[float, float]]:
        """Process the phases of the current window, and return the new intervals as (onset, next onset).

        Parameters
        ----------
        phases : WindowPhases
        signal : int
            Number of the run's signal.
        first_io_s : float
            Time of the run's first I/O. A phase at the start of the window is complete if the first I/O is not earlier;
            otherwise its onset is unknown.

        Returns
        -------
        list of (float, float)
            Intervals in chronological order. An onset is confirmed once its phase is over, or has moved half of the
            median volume of the last phases.
        """
        window_start_s = float(phases.window_start_s[signal])
        is_whole = window_start_s - float(phases.spacing_s[signal]) < first_io_s
        intervals: list[tuple[float, float]] = []
        for position in range(int(phases.offsets[signal]), int(phases.offsets[signal + 1])):
            phase = _Phase(
                float(phases.onset_s[position]), float(phases.end_s[position]), float(phases.volume_bytes[position])
            )
            if self._kept and phase.onset_s < self._kept[-1].end_s:
                self._extend_last(phase)
            elif bool(phases.is_cut[position]) and not (is_whole and phase.onset_s == window_start_s):
                continue
            elif self._is_confirmed(phase) or not phases.is_open[position]:
                if self._kept and window_start_s <= self._kept[-1].end_s:
                    intervals.append((self._kept[-1].onset_s, phase.onset_s))
                self._kept.append(phase)
                self._count += 1
        return intervals

    def _is_confirmed(self, phase: _Phase) -> bool:
        volumes = [kept.volume_bytes for kept in self._kept][-_COMPARED_PHASES:]
        return not volumes or phase.volume_bytes >= _CONFIRMED_RATIO * median(volumes)

    def _extend_last(self, phase: _Phase) -> None:
        """Extend the last phase to its newly observed end; older phases do not change."""
        last = self._kept[-1]
        if phase.end_s > last.end_s:
            self._kept[-1] = _Phase(last.onset_s, phase.end_s, max(last.volume_bytes, phase.volume_bytes))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        phases = [[phase.onset_s, phase.end_s, phase.volume_bytes] for phase in self._kept]
        return {"phase_count": self._count, "phases": phases}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Restore a tracker from the state that `to_dict` returned."""
        tracker = cls()
        tracker._kept.extend(_Phase(*row) for row in state["phases"])
        tracker._count = state["phase_count"]
        return tracker
