"""Restrict signals to a time window, to the time from the first to the last I/O, or to the time after the first phase.

In the paper, the time window of an analysis is that of the I/O: IOR is analyzed "from 64.97 s to 846.7 s" (section
II-C). FTIO "provides an option to skip" the first phase, which is "often prolonged due to initialization overheads".
Phases are found in substantial I/O (section II-C), where the rate exceeds the mean rate of the whole window.

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section III-B,
doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, cut, offsets_of, owners
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.phases import ROUNDING as ROUNDING, compute_median_gaps, find_substantial_io
from iosig.transforms.throughput.request_phases import RequestPhases, request_phases
from iosig.transforms.throughput.requests import Requests, Steps

#: maximum distance at which an edge counts as equal to a sample's edge, as a fraction of a sample
_EDGE_SLACK = 1e-6


# ---- a window


def clip_steps(steps: Steps, start_s: npt.ArrayLike, end_s: npt.ArrayLike) -> Steps:
    """Clip step functions to windows, exactly.

    Parameters
    ----------
    steps : Steps
        n step functions.
    start_s, end_s : scalar or (n,)
        Start and end of the windows. Empty and reversed windows contain no rate.

    Returns
    -------
    Steps
        A rate that holds at the start or the end of a window is cut there. Impulses on either bound belong to the
        window.
    """
    count = steps.subject_count
    started, ended = (np.broadcast_to(np.asarray(bound, dtype=np.float64), (count,)) for bound in (start_s, end_s))
    edges, levels, offsets = _clip_edges(steps, started, ended)
    owner = owners(steps.impulse_offsets)
    is_within = (steps.impulses_s >= started[owner]) & (steps.impulses_s <= ended[owner])
    impulse_offsets = offsets_of(is_within)[steps.impulse_offsets]
    return Steps(edges, levels, offsets, steps.impulses_s[is_within], steps.impulse_bytes[is_within], impulse_offsets)


def _clip_edges(steps: Steps, started: Reals, ended: Reals) -> tuple[Reals, Reals, Ints]:
    owner, offsets = steps.owner, steps.offsets
    is_window = started < ended
    is_inside = (steps.edges_s > started[owner]) & (steps.edges_s < ended[owner]) & is_window[owner]
    inside = np.flatnonzero(is_inside)
    counts = np.diff(offsets_of(is_inside)[offsets])
    head = np.where(is_window, _rates_at(steps, steps.edges_s <= started[owner]), 0.0)
    tail = np.where(is_window, _rates_at(steps, steps.edges_s < ended[owner]), 0.0)
    # a subject that is active at a bound gets an edge there
    has_head, has_tail = head > 0, tail > 0
    new_offsets = offsets_of(counts + has_head + has_tail)
    edges, levels = np.empty((2, int(new_offsets[-1])))
    position = (
        np.arange(len(inside)) + (new_offsets[:-1] + has_head - offsets_of(is_inside)[offsets[:-1]])[owner[inside]]
    )
    edges[position], levels[position] = steps.edges_s[inside], steps.bytes_per_s[inside]
    first, last = new_offsets[:-1][has_head], new_offsets[1:][has_tail] - 1
    edges[first], levels[first] = started[has_head], head[has_head]
    edges[last], levels[last] = ended[has_tail], 0.0
    return edges, levels, new_offsets


def _rates_at(steps: Steps, is_reached: Bools) -> Reals:
    """Rate of each subject after its last reached edge (subjects); 0 if it has reached none."""
    counts = np.diff(offsets_of(is_reached)[steps.offsets])
    rates = np.zeros(steps.subject_count)
    rows = np.flatnonzero(counts)
    rates[rows] = steps.bytes_per_s[steps.offsets[rows] + counts[rows] - 1]
    return rates


def clip_samples(
    samples: Ragged, sampling_hz: Reals, first_sample_s: Reals, start_s: Reals, end_s: Reals
) -> tuple[Ragged, Reals]:
    """Clip evenly sampled signals to the samples that lie completely inside windows.

    Parameters
    ----------
    samples : Ragged
        n signals of any length.
    sampling_hz, first_sample_s : (n,)
        Sampling frequency, and time of the first sample.
    start_s, end_s : (n,)
        Windows; NaN selects no sample.

    Returns
    -------
    samples : Ragged
    first_sample_s : (n,)
        Time of the first selected sample.
    """
    counts, offsets = samples.counts, samples.offsets[:-1]
    low, high = (_position(bound - first_sample_s, sampling_hz) for bound in (start_s, end_s))
    with np.errstate(invalid="ignore"):
        first = np.where(np.isnan(low), counts, np.clip(np.ceil(low), 0, counts)).astype(np.int64)
        last = np.where(np.isnan(high), 0, np.clip(np.floor(high), 0, counts)).astype(np.int64)
    return cut(samples.values, offsets + first, offsets + last - 1), first_sample_s + first / sampling_hz


def _position(offset_s: Reals, sampling_hz: Reals) -> Reals:
    """Position of an instant in samples after the first one (n); nearly integer positions are rounded."""
    with np.errstate(invalid="ignore", over="ignore"):
        position = offset_s * sampling_hz
        nearest = np.rint(position)
        return np.where(np.abs(position - nearest) <= _EDGE_SLACK, nearest, position)


# ---- the I/O's own time


def find_io_range(steps: Steps) -> tuple[Reals, Reals]:
    """Start of the first and end of the last I/O of step functions.

    Parameters
    ----------
    steps : Steps
        n step functions.

    Returns
    -------
    start_s, end_s : (n,)
        NaN without I/O.
    """
    start_s, end_s = np.full((2, steps.subject_count), np.nan)
    for times_s, offsets in ((steps.edges_s, steps.offsets), (steps.impulses_s, steps.impulse_offsets)):
        rows = np.flatnonzero(np.diff(offsets))
        start_s[rows] = np.fmin(start_s[rows], times_s[offsets[rows]])
        end_s[rows] = np.fmax(end_s[rows], times_s[offsets[rows + 1] - 1])
    return start_s, end_s


def find_smallest_changes(steps: Steps) -> Reals:
    """Shortest time between two changes of the rate of step functions.

    FTIO, section II-E: "we can find the smallest change in bandwidth over time and use it to calculate f_s". The
    sampling frequency is its inverse.

    Parameters
    ----------
    steps : Steps
        n step functions.

    Returns
    -------
    (n,)
        NaN without changes. Impulses do not count.
    """
    shortest_s = np.full(steps.subject_count, np.inf)
    is_step = np.ones(len(steps.edges_s), dtype=np.bool_)
    is_step[steps.offsets[1:][steps.counts > 0] - 1] = False
    np.minimum.at(shortest_s, steps.owner[is_step], steps.widths_s[is_step])
    return np.where(np.isinf(shortest_s), np.nan, shortest_s)


def find_io_samples(samples: Ragged) -> tuple[Ints, Ints]:
    """First and last sample with I/O of signals.

    Parameters
    ----------
    samples : Ragged
        n signals.

    Returns
    -------
    first, last : (n,)
        Inclusive. For a signal without I/O, its first and last sample.
    """
    counts = samples.counts
    at = np.flatnonzero(samples.values > 0)
    owner = samples.owner[at]
    has_io = np.bincount(owner, minlength=len(counts)) > 0
    first, last = np.zeros(len(counts), dtype=np.int64), counts - 1
    signals = np.flatnonzero(has_io)
    first[signals] = at[np.searchsorted(owner, signals)] - samples.offsets[signals]
    last[signals] = at[np.searchsorted(owner, signals, side="right") - 1] - samples.offsets[signals]
    return first, last


# ---- phases


@dataclass(frozen=True, slots=True)
class PhaseParams:
    """Parameters for separating two phases of I/O.

    Attributes
    ----------
    gap_s : float or None
        Gap in substantial I/O above which phases are separate. None: half of the median gap, weighted by length (ours).
        The paper has no rule, and argues in section I that no fixed gap fits all systems and applications.
    """

    gap_s: float | None = None


@dataclass(frozen=True, slots=True)
class FirstPhases:
    """First phases of I/O of n subjects.

    Attributes
    ----------
    end_s, second_onset_s : (n,)
        End of the first phase, and onset of the second; NaN where missing.
    """

    end_s: Reals
    second_onset_s: Reals

    def skip_first(self, start_s: npt.ArrayLike) -> Reals:
        """Move the starts of windows (n) to the onset of the second phase, if any."""
        onset_s: Reals = np.where(np.isnan(self.second_onset_s), start_s, self.second_onset_s)
        return onset_s


def find_first_phases(
    steps: Steps, start_s: npt.ArrayLike, end_s: npt.ArrayLike, params: PhaseParams | None = None
) -> FirstPhases:
    """Find the first phases of step functions within windows.

    Parameters
    ----------
    steps : Steps
        n step functions.
    start_s, end_s : scalar or (n,)
        Windows.
    params : PhaseParams, optional

    Returns
    -------
    FirstPhases
    """
    part = clip_steps(steps, start_s, end_s)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        length = np.asarray(end_s, dtype=np.float64) - np.asarray(start_s, dtype=np.float64)
        threshold = np.where(length > 0, part.volume_bytes / length, np.inf)
    at = np.flatnonzero(part.bytes_per_s > (threshold * (1.0 + ROUNDING))[part.owner])
    onset_s = np.concatenate([part.edges_s[at], part.impulses_s])
    phase_end_s = np.concatenate([part.edges_s[np.minimum(at + 1, len(part.edges_s) - 1)], part.impulses_s])
    owner = np.concatenate([part.owner[at], owners(part.impulse_offsets)])
    return _select_first_phases(
        Requests(onset_s, phase_end_s, np.ones(len(onset_s)), owner, part.subject_count), params or PhaseParams()
    )


def find_first_phases_of_signals(signals: EvenSignals, params: PhaseParams | None = None) -> FirstPhases:
    """Find the first phases of n evenly sampled signals; unmeasured samples belong to no phase.

    Parameters
    ----------
    signals : EvenSignals
    params : PhaseParams, optional

    Returns
    -------
    FirstPhases
    """
    params = params or PhaseParams()
    ended, onset = np.full((2, signals.signal_count), np.nan)
    for rows, part in signals.iter_chunks():
        first = _select_first_phases(_to_requests(part), params)
        ended[rows], onset[rows] = first.end_s, first.second_onset_s
    return FirstPhases(ended, onset)


def _to_requests(signals: EvenSignals) -> Requests:
    """Convert stretches of samples above their signal's mean to requests."""
    stretches, _ = find_substantial_io(signals)
    row, hz = stretches.row, signals.sampling_hz[stretches.row]
    start_s, end_s = (signals.start_s[row] + sample / hz for sample in (stretches.first, stretches.last))
    return Requests(start_s, end_s, np.ones(len(row)), row, signals.signal_count)


def _select_first_phases(stretches: Requests, params: PhaseParams) -> FirstPhases:
    """Select the first phases among stretches of substantial I/O."""
    gap_s = _default_gaps(request_phases(stretches, 0.0)) if params.gap_s is None else params.gap_s
    phases = request_phases(stretches, gap_s)
    counts = phases.counts
    ended, onset = np.full((2, stretches.subject_count), np.nan)
    ended[counts > 0] = phases.end_s[phases.offsets[:-1][counts > 0]]
    onset[counts > 1] = phases.onset_s[phases.offsets[:-1][counts > 1] + 1]
    return FirstPhases(ended, onset)


def _default_gaps(stretches: RequestPhases) -> Reals:
    """Return half of the median gap of each subject, weighted by length (subjects)."""
    owner = stretches.owner
    is_pause = owner[1:] == owner[:-1]
    length = (stretches.onset_s[1:] - stretches.end_s[:-1])[is_pause]
    return compute_median_gaps(owner[1:][is_pause], length, len(stretches.offsets) - 1) / 2
