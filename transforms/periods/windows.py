"""Parts of signals: a window of time, or all but the first phase of I/O.

FTIO "provides an option to skip" the first phase, which is "often prolonged due to initialization overheads" (Tarraf
et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section III-B). A phase is found in what the
paper calls substantial I/O (section II-C): where the rate is above the mean rate of the whole window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, cut, offsets_of, owners
from iosig.transforms.periods.even_signals import EvenSignals
from iosig.transforms.periods.phases import ROUNDING as ROUNDING, middle_pauses, substantial_io
from iosig.transforms.throughput.request_phases import RequestPhases, request_phases
from iosig.transforms.throughput.requests import Requests, Steps

#: an edge that misses a sample's own by less than this share of a sample does so by rounding
_EDGE_SLACK = 1e-6


# ---- a window


def clipped(steps: Steps, started_s: npt.ArrayLike, ended_s: npt.ArrayLike) -> Steps:
    """Return step functions cut to windows, exactly.

    started_s, ended_s: one for all, or one for each subject. A rate that holds at the start holds from the start on,
    one that holds at the end until the end. Impulses at the start and at the end belong to the window, as an instant
    at the last edge of bins belongs to the last bin. A window that is not longer than nothing holds no rate.
    """
    count = steps.subject_count
    started, ended = (np.broadcast_to(np.asarray(time, dtype=np.float64), (count,)) for time in (started_s, ended_s))
    edges, levels, offsets = _cut_edges(steps, started, ended)
    owner = owners(steps.impulse_offsets)
    is_within = (steps.impulses_s >= started[owner]) & (steps.impulses_s <= ended[owner])
    impulse_offsets = offsets_of(is_within)[steps.impulse_offsets]
    return Steps(edges, levels, offsets, steps.impulses_s[is_within], steps.impulse_bytes[is_within], impulse_offsets)


def _cut_edges(steps: Steps, started: Reals, ended: Reals) -> tuple[Reals, Reals, Ints]:
    owner, offsets = steps.owner, steps.offsets
    is_window = started < ended
    is_inside = (steps.edges_s > started[owner]) & (steps.edges_s < ended[owner]) & is_window[owner]
    kept = np.flatnonzero(is_inside)
    counts = np.diff(offsets_of(is_inside)[offsets])
    head = np.where(is_window, _levels_at(steps, steps.edges_s <= started[owner]), 0.0)
    tail = np.where(is_window, _levels_at(steps, steps.edges_s < ended[owner]), 0.0)
    # what is active at the start gets an edge there, what is active until the end one there
    has_head, has_tail = head > 0, tail > 0
    found_offsets = offsets_of(counts + has_head + has_tail)
    edges, levels = np.empty((2, int(found_offsets[-1])))
    place = np.arange(len(kept)) + (found_offsets[:-1] + has_head - offsets_of(is_inside)[offsets[:-1]])[owner[kept]]
    edges[place], levels[place] = steps.edges_s[kept], steps.bytes_per_s[kept]
    first, last = found_offsets[:-1][has_head], found_offsets[1:][has_tail] - 1
    edges[first], levels[first] = started[has_head], head[has_head]
    edges[last], levels[last] = ended[has_tail], 0.0
    return edges, levels, found_offsets


def _levels_at(steps: Steps, is_reached: Bools) -> Reals:
    """Return each subject's rate (subjects) from the last of its edges on that is reached; 0 where none is."""
    counts = np.diff(offsets_of(is_reached)[steps.offsets])
    found = np.zeros(steps.subject_count)
    rows = np.flatnonzero(counts)
    found[rows] = steps.bytes_per_s[steps.offsets[rows] + counts[rows] - 1]
    return found


def clipped_samples(
    pieces: Ragged, sampling_hz: Reals, begun_s: Reals, started_s: Reals, ended_s: Reals
) -> tuple[Ragged, Reals]:
    """Return the samples of signals (n) of any length that lie in windows as a whole, and when the first one begins.

    begun_s: when each signal begins. started_s, ended_s: its window; NaN: none of it. Samples are not shared: an edge
    of a window that falls into one leaves it out.
    """
    counts, offsets = pieces.counts, pieces.offsets[:-1]
    low, high = (_position(time - begun_s, sampling_hz) for time in (started_s, ended_s))
    with np.errstate(invalid="ignore"):
        first = np.where(np.isnan(low), counts, np.clip(np.ceil(low), 0, counts)).astype(np.int64)
        last = np.where(np.isnan(high), 0, np.clip(np.floor(high), 0, counts)).astype(np.int64)
    return cut(pieces.values, offsets + first, offsets + last - 1), begun_s + first / sampling_hz


def _position(after_s: Reals, sampling_hz: Reals) -> Reals:
    """Return how many samples after its first one an instant is (n): a whole number where it should be one."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = after_s * sampling_hz
        nearest = np.rint(found)
        return np.where(np.abs(found - nearest) <= _EDGE_SLACK, nearest, found)


# ---- phases


@dataclass(frozen=True, slots=True)
class PhaseParams:
    """What parts two phases of I/O.

    gap_s: pauses of substantial I/O that are longer do; None: half of the pause in which half of all paused time lies
    (ours). The paper has no rule, and shows in section I why a fixed one cannot fit all systems and applications.
    """

    gap_s: float | None = None


@dataclass(frozen=True, slots=True)
class FirstPhases:
    """Each subject's first phase of I/O (n): when it is over, and when the second one begins.

    NaN where there is none, and for second_onset_s where there is only one.
    """

    ended_s: Reals
    second_onset_s: Reals

    def skipped(self, started_s: npt.ArrayLike) -> Reals:
        """Return windows' starts (n) moved to the second phase's onset; as they are where there is none."""
        found: Reals = np.where(np.isnan(self.second_onset_s), started_s, self.second_onset_s)
        return found


def first_phases(
    steps: Steps, started_s: npt.ArrayLike, ended_s: npt.ArrayLike, params: PhaseParams | None = None
) -> FirstPhases:
    """Return the first phases of step functions within windows: one for all, or one for each subject."""
    part = clipped(steps, started_s, ended_s)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        length = np.asarray(ended_s, dtype=np.float64) - np.asarray(started_s, dtype=np.float64)
        threshold = np.where(length > 0, part.volume_bytes / length, np.inf)
    at = np.flatnonzero(part.bytes_per_s > (threshold * (1.0 + ROUNDING))[part.owner])
    began = np.concatenate([part.edges_s[at], part.impulses_s])
    ceased = np.concatenate([part.edges_s[np.minimum(at + 1, len(part.edges_s) - 1)], part.impulses_s])
    owner = np.concatenate([part.owner[at], owners(part.impulse_offsets)])
    return _first(Requests(began, ceased, np.ones(len(began)), owner, part.subject_count), params or PhaseParams())


def first_phases_of_signals(signals: EvenSignals, params: PhaseParams | None = None) -> FirstPhases:
    """Return the first phases of evenly sampled signals; what was not measured is in no phase."""
    params = params or PhaseParams()
    ended, onset = np.full((2, signals.signal_count), np.nan)
    for place, part in signals.chunks():
        found = _first(_substantial(part), params)
        ended[place], onset[place] = found.ended_s, found.second_onset_s
    return FirstPhases(ended, onset)


def _substantial(signals: EvenSignals) -> Requests:
    """Return pieces of samples above their signal's mean, as requests."""
    pieces, _ = substantial_io(signals)
    row, hz = pieces.row, signals.sampling_hz[pieces.row]
    began, ceased = (signals.started_s[row] + place / hz for place in (pieces.first, pieces.last))
    return Requests(began, ceased, np.ones(len(row)), row, signals.signal_count)


def _first(pieces: Requests, params: PhaseParams) -> FirstPhases:
    """Return the first phases of pieces of substantial I/O."""
    gap_s = _parting_gaps(request_phases(pieces, 0.0)) if params.gap_s is None else params.gap_s
    found = request_phases(pieces, gap_s)
    counts = found.counts
    ended, onset = np.full((2, pieces.subject_count), np.nan)
    ended[counts > 0] = found.ended_s[found.offsets[:-1][counts > 0]]
    onset[counts > 1] = found.onset_s[found.offsets[:-1][counts > 1] + 1]
    return FirstPhases(ended, onset)


def _parting_gaps(pieces: RequestPhases) -> Reals:
    """Return half of the pause in which the middle of each subject's paused time lies (subjects), pauses by length."""
    owner = pieces.owner
    is_pause = owner[1:] == owner[:-1]
    length = (pieces.onset_s[1:] - pieces.ended_s[:-1])[is_pause]
    return middle_pauses(owner[1:][is_pause], length, len(pieces.offsets) - 1) / 2
