"""Phases of I/O in recent samples, and the gaps between their onsets while a run goes on.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), IPDPS'24, DOI
10.1109/IPDPS57955.2024.00048: substantial I/O is above the mean rate of the window (section II-C); the gaps between
phases are the ground truth of Figure 15. The paper has no rule for what parts two phases, and shows in section I why a
fixed one cannot fit all systems and applications; ours has no length in seconds, so that it is the same at any scale.
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
from iosig.transforms.periods.even_signals import EvenSignals

#: a rate above the mean by less than this share is the mean itself: a signal that never varies has no phases
ROUNDING = 1e-9
#: phases that a tracker keeps
_KEPT_COUNT = 64
#: the last phases whose median volume an open one is measured by
_COMPARED_COUNT = 8
#: an open phase is sure once it has moved this share of what the last ones did
_SURE_RATIO = 0.5


# ---- substantial I/O


@dataclass(frozen=True, slots=True)
class SubstantialIo:
    """Pieces of signals above their means (k), in order of signals (row), then of time.

    first, last (k): places of samples, the last one not included.
    """

    row: Ints
    first: Ints
    last: Ints

    def joined(self, is_bridged: Bools) -> SubstantialIo:
        """Return the same with some of the pauses (as `pauses` has them) taken for parts of pieces."""
        is_cut = np.ones(len(self.row) + 1, dtype=np.bool_)
        is_cut[self.pauses + 1] = ~is_bridged
        return SubstantialIo(self.row[is_cut[:-1]], self.first[is_cut[:-1]], self.last[is_cut[1:]])

    @property
    def pauses(self) -> Ints:
        """The pieces after which there is a pause: those that are not their signal's last."""
        return np.flatnonzero(self.row[1:] == self.row[:-1])


def substantial_io(signals: EvenSignals) -> tuple[SubstantialIo, Reals]:
    """Return the pieces above their signal's mean rate (FTIO, section II-C), and these means (n)."""
    known, count = signals.is_known, signals.sample_count + 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(known, signals.bytes_per_s, 0.0).sum(axis=1) / known.sum(axis=1)
        is_high = known & (signals.bytes_per_s > (mean * (1.0 + ROUNDING))[:, None])
    changes = np.diff(is_high.view(np.int8), axis=1, prepend=0, append=0).ravel()
    row, first = np.divmod(np.flatnonzero(changes > 0), count)
    return SubstantialIo(row, first, np.flatnonzero(changes < 0) % count), mean


# ---- phases of a window


# What parts two phases; all are ours, chosen by how many gaps of simulated runs were wrong or missed.

#: a pause moves less than this share of the window's mean rate; more is a phase that goes slower
_RATE_RATIO = 0.5
#: where a period is believed in, a pause is longer than this share of it
_CYCLE_RATIO = 1 / 16
#: else it is longer than this share of the pause in which half of all paused time lies
_PAUSE_RATIO = 1 / 12
#: but where less of the window than this share is paused, all is one phase: the first one, before its first pause
_PAUSED_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class WindowPhases(InPieces):
    """Phases of I/O of many signals (n): those of signal i are from offsets[i] to offsets[i + 1], in order of time.

    onset_s, ended_s: where the first of its substantial samples begins, and the last one ends. volume_bytes: all
    between these two; what trickles between phases is of none. is_open: whether it may go on behind the window: the
    last one, as long as no parting pause has passed since. is_cut: whether it may have begun before the window: nothing
    was measured before it. window_start_s, window_end_s, spacing_s (n): of each signal's samples.
    """

    onset_s: Reals
    ended_s: Reals
    volume_bytes: Reals
    is_open: Bools
    is_cut: Bools
    offsets: Ints
    window_start_s: Reals
    window_end_s: Reals
    spacing_s: Reals


def window_phases(signals: EvenSignals, cycle_s: Reals | None = None) -> WindowPhases:
    """Return the phases of evenly sampled signals (n); what was not measured moves nothing, and is a pause.

    cycle_s (n): the period that is believed in, NaN for none.
    """
    cycles = np.full(signals.signal_count, np.nan) if cycle_s is None else np.asarray(cycle_s, dtype=np.float64)
    if cycles.shape != (signals.signal_count,):
        raise ValueError("periods and signals are not of one number")
    parts = [_phases(part, cycles[place]) for place, part in signals.chunks()]
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([[0], *(part.counts for part in parts)]).astype(np.int64)
    return WindowPhases(
        _chain([part.onset_s for part in parts]),
        _chain([part.ended_s for part in parts]),
        _chain([part.volume_bytes for part in parts]),
        _chain([part.is_open for part in parts]).astype(np.bool_),
        _chain([part.is_cut for part in parts]).astype(np.bool_),
        np.cumsum(counts),
        *_edges(signals),
    )


def _chain(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0), *columns])


def _edges(signals: EvenSignals) -> tuple[Reals, Reals, Reals]:
    return signals.started_s, signals.ended_s, 1.0 / signals.sampling_hz


def _phases(signals: EvenSignals, cycle_s: Reals) -> WindowPhases:
    pieces, mean = substantial_io(signals)
    values = np.where(signals.is_known, signals.bytes_per_s, 0.0)
    at = pieces.pauses
    slow = _sums(values, pieces.row[at], pieces.last[at], pieces.first[at + 1])
    length = pieces.first[at + 1] - pieces.last[at]
    pieces = pieces.joined(slow >= _RATE_RATIO * mean[pieces.row[at]] * length)
    gaps = _parting_samples(signals, pieces, cycle_s)
    at = pieces.pauses
    pieces = pieces.joined(pieces.first[at + 1] - pieces.last[at] <= gaps[pieces.row[at]])
    hz, row = signals.sampling_hz[pieces.row], pieces.row
    is_last = np.ones(len(row), dtype=np.bool_)
    is_last[pieces.pauses] = False
    # where all is one phase, it is over after what would have been enough of a pause to look for two
    quiet = np.where(np.isinf(gaps), _PAUSED_RATIO * signals.sample_count, gaps)
    unknown_before = (np.cumsum(signals.is_known, axis=1) == 0).sum(axis=1)
    return WindowPhases(
        signals.started_s[row] + pieces.first / hz,
        signals.started_s[row] + pieces.last / hz,
        _sums(values, row, pieces.first, pieces.last) / hz,
        is_last & (signals.sample_count - pieces.last <= quiet[row]),
        pieces.first == unknown_before[row],
        np.searchsorted(row, np.arange(signals.signal_count + 1)).astype(np.int64, copy=False),
        *_edges(signals),
    )


def _sums(values: Reals, row: Ints, first: Ints, last: Ints) -> Reals:
    """Return the sums of stretches of samples (k); none of them is empty, and they follow one another."""
    if not len(row):
        return np.zeros(0)
    base = row * values.shape[1]
    bounds = np.stack([base + first, base + last], axis=1).ravel()
    # a stretch may end with the last sample of all
    flat = np.append(values.ravel(), 0.0)
    found: Reals = np.add.reduceat(flat, bounds)[::2]
    return found


def _parting_samples(signals: EvenSignals, pieces: SubstantialIo, cycle_s: Reals) -> Reals:
    """Return the pause up to which pieces are one phase (n), in samples; infinite where too little is paused."""
    at = pieces.pauses
    row, length = pieces.row[at], (pieces.first[at + 1] - pieces.last[at]).astype(np.float64)
    paused = np.bincount(row, weights=length, minlength=signals.signal_count)
    middle = _PAUSE_RATIO * middle_pauses(row, length, signals.signal_count)
    found = np.where(paused >= _PAUSED_RATIO * signals.sample_count, middle, np.inf)
    has_cycle = np.isfinite(cycle_s) & (cycle_s > 0)
    return np.where(has_cycle, _CYCLE_RATIO * cycle_s * signals.sampling_hz, found)


def middle_pauses(owner: Ints, length: Reals, count: int) -> Reals:
    """Return the pause in which the middle of each subject's paused time lies (count), pauses by length; 0 for none.

    owner, length (pauses): whose each is, from 0 to count - 1, and how long.
    """
    order = np.lexsort((length, owner))
    length, owner = length[order], owner[order]
    bounds = np.searchsorted(owner, np.arange(count + 1))
    sums = np.concatenate([[0.0], np.cumsum(length)])
    middle = (sums[bounds[:-1]] + sums[bounds[1:]]) / 2
    at = np.clip(np.searchsorted(sums, middle, side="right") - 1, bounds[:-1], np.maximum(bounds[1:] - 1, bounds[:-1]))
    has_pause = bounds[1:] > bounds[:-1]
    found = np.zeros(count)
    found[has_pause] = length[at[has_pause]]
    return found


# ---- phases as time goes on


@dataclass(frozen=True, slots=True)
class _Phase:
    onset_s: float
    ended_s: float
    volume_bytes: float


class PhaseTracker:
    """Keeps the phases of one run as its windows move on, and hands over each gap between two onsets once.

    A phase is the one that it overlaps with: later windows move onsets and ends by a little. What was handed over stays
    as it is. A gap is only handed over if all of it was in one window, so that no phase in it was missed.
    """

    def __init__(self) -> None:
        self._kept: deque[_Phase] = deque(maxlen=_KEPT_COUNT)
        self._count = 0

    @property
    def phase_count(self) -> int:
        """The number of phases so far, those that are kept no more included."""
        return self._count

    @property
    def onset_s(self) -> Reals:
        """When each of the last phases began (up to 64), the oldest first."""
        return np.array([phase.onset_s for phase in self._kept], dtype=np.float64)

    @property
    def ended_s(self) -> Reals:
        """When each of the last phases was over (up to 64); of the last one as far as it was seen."""
        return np.array([phase.ended_s for phase in self._kept], dtype=np.float64)

    @property
    def volume_bytes(self) -> Reals:
        """What each of the last phases moved (up to 64); the last one as far as it was seen."""
        return np.array([phase.volume_bytes for phase in self._kept], dtype=np.float64)

    def take(self, phases: WindowPhases, signal: int = 0, first_s: float = math.nan) -> list[tuple[float, float]]:
        """Take the phases of the recent window, and return the gaps that are new: (onset, next onset), in order.

        signal: which of the signals is the run's. first_s: when its first bytes moved; a phase with which the window
        begins is whole if that is not before the window, else its onset is not known. An onset is sure once its phase
        is over, or has moved half of the median of the last ones.
        """
        starts_s = float(phases.window_start_s[signal])
        is_whole = starts_s - float(phases.spacing_s[signal]) < first_s
        found: list[tuple[float, float]] = []
        for at in range(int(phases.offsets[signal]), int(phases.offsets[signal + 1])):
            phase = _Phase(float(phases.onset_s[at]), float(phases.ended_s[at]), float(phases.volume_bytes[at]))
            if self._kept and phase.onset_s < self._kept[-1].ended_s:
                self._grow(phase)
            elif bool(phases.is_cut[at]) and not (is_whole and phase.onset_s == starts_s):
                continue
            elif self._is_sure(phase) or not phases.is_open[at]:
                if self._kept and starts_s <= self._kept[-1].ended_s:
                    found.append((self._kept[-1].onset_s, phase.onset_s))
                self._kept.append(phase)
                self._count += 1
        return found

    def _is_sure(self, phase: _Phase) -> bool:
        volumes = [kept.volume_bytes for kept in self._kept][-_COMPARED_COUNT:]
        return not volumes or phase.volume_bytes >= _SURE_RATIO * median(volumes)

    def _grow(self, phase: _Phase) -> None:
        """Let the last phase be as long as it is seen now; an older one stays as it is."""
        last = self._kept[-1]
        if phase.ended_s > last.ended_s:
            self._kept[-1] = _Phase(last.onset_s, phase.ended_s, max(last.volume_bytes, phase.volume_bytes))

    def to_dict(self) -> dict[str, Any]:
        """Return all that there is to know in plain values that JSON can hold."""
        phases = [[phase.onset_s, phase.ended_s, phase.volume_bytes] for phase in self._kept]
        return {"phase_count": self._count, "phases": phases}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the tracker that `to_dict` wrote."""
        found = cls()
        found._kept.extend(_Phase(*row) for row in state["phases"])
        found._count = state["phase_count"]
        return found
