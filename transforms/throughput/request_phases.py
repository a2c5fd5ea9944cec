"""Phases of I/O in a trace: what is separated by more than a gap in which nothing is active."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals
from iosig.transforms.throughput.exact_sums import ExactSums
from iosig.transforms.throughput.requests import Requests, ends_of_equals


@dataclass(frozen=True, slots=True)
class RequestPhases(InPieces):
    """Phases of I/O of many subjects: those of subject i are from offsets[i] to offsets[i + 1], in order of time.

    onset_s, end_s: when its first request begins, and when its last one is over. volume_bytes: sums of the
    requests' bytes without rounding, exact for whole bytes up to 2**53. request_count: those that move bytes.
    """

    onset_s: Reals
    end_s: Reals
    volume_bytes: Reals
    request_count: Ints
    offsets: Ints


def request_phases(requests: Requests, gap_s: npt.ArrayLike) -> RequestPhases:
    """Return each subject's phases, which are more than a gap apart; at just a gap they are one.

    gap_s: one for all, or one for each subject; a negative one makes a phase of each request that neither
    overlaps nor touches another. Requests without bytes make no phase. For the phases of a signal instead of
    requests give `Steps.requests()`: then each of its pieces counts for a request.
    """
    known = requests.usable()
    count = len(known.start_s)
    times = np.concatenate([known.start_s, known.end_s])
    owner = np.concatenate([known.subject, known.subject])
    order = np.lexsort((times, owner))
    times, owner, is_begin = times[order], owner[order], order < count
    last = np.flatnonzero(ends_of_equals(owner, times))
    active = np.cumsum(np.where(is_begin, 1, -1))[last]
    gaps = np.broadcast_to(np.asarray(gap_s, dtype=np.float64), (known.subject_count,))
    is_end = _ends(times[last], owner[last], active, gaps)
    # the phase of each instant, then of each event, then of each request
    phase_of_instant: Ints = np.cumsum(is_end) - is_end
    instant_of_event = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
    phase: Ints = phase_of_instant[instant_of_event[is_begin]]
    phase_count = int(is_end.sum())
    volume = ExactSums(phase_count)
    volume.add(phase, known.volume_bytes[order[is_begin]])
    ends = last[is_end]
    is_onset = np.ones(len(last), dtype=np.bool_)
    is_onset[1:] = is_end[:-1]
    return RequestPhases(
        times[last[is_onset]],
        times[ends],
        volume.totals(),
        np.bincount(phase, minlength=phase_count).astype(np.int64, copy=False),
        np.searchsorted(owner[ends], np.arange(known.subject_count + 1)).astype(np.int64, copy=False),
    )


def _ends(times_s: Reals, owner: Ints, active: Ints, gap_s: Reals) -> Bools:
    """Return whether a phase ends with each instant (instants)."""
    is_end = np.ones(len(times_s), dtype=np.bool_)
    is_other = owner[1:] != owner[:-1]
    is_far = times_s[1:] - times_s[:-1] > gap_s[owner[1:]]
    is_end[:-1] = (active[:-1] == 0) & (is_other | is_far)
    return is_end
