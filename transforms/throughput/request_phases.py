"""Find the phases of I/O in a trace, which are separated by gaps without activity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals
from iosig.transforms.throughput.exact_sums import ExactSums
from iosig.transforms.throughput.requests import Requests, is_run_end


@dataclass(frozen=True, slots=True)
class RequestPhases(InPieces):
    """Phases of I/O of many subjects: subject i has the phases offsets[i] to offsets[i + 1], in chronological order.

    Attributes
    ----------
    onset_s
        Start of the first request [s].
    volume_bytes
        Bytes of the phase's requests; exact for integers up to 2**53.
    request_count
        Number of requests with bytes.
    """

    onset_s: Reals
    end_s: Reals
    volume_bytes: Reals
    request_count: Ints
    offsets: Ints


def request_phases(requests: Requests, gap_s: npt.ArrayLike) -> RequestPhases:
    """Find the phases of each subject.

    Parameters
    ----------
    requests
        Requests of n subjects; those without bytes are ignored. `Steps.requests()` gives the phases of a signal.
    gap_s
        Maximum gap within a phase, common or per subject [s]. With a negative gap, each request that neither overlaps
        nor touches another is a phase.

    Returns
    -------
    RequestPhases
        Phases that are more than a gap apart.
    """
    usable = requests.select_usable()
    count = len(usable.start_s)
    times = np.concatenate([usable.start_s, usable.end_s])
    owner = np.concatenate([usable.subject, usable.subject])
    order = np.lexsort((times, owner))
    times, owner, is_begin = times[order], owner[order], order < count
    last = np.flatnonzero(is_run_end(owner, times))
    active = np.cumsum(np.where(is_begin, 1, -1))[last]
    gaps = np.broadcast_to(np.asarray(gap_s, dtype=np.float64), (usable.subject_count,))
    is_end = _find_phase_ends(times[last], owner[last], active, gaps)
    # find the phase of each time, then of each event, then of each request
    phase_of_instant: Ints = np.cumsum(is_end) - is_end
    instant_of_event = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1))
    phase: Ints = phase_of_instant[instant_of_event[is_begin]]
    phase_count = int(is_end.sum())
    volume = ExactSums(phase_count)
    volume.add(phase, usable.volume_bytes[order[is_begin]])
    ends = last[is_end]
    is_onset = np.ones(len(last), dtype=np.bool_)
    is_onset[1:] = is_end[:-1]
    return RequestPhases(
        times[last[is_onset]],
        times[ends],
        volume.totals(),
        np.bincount(phase, minlength=phase_count).astype(np.int64, copy=False),
        np.searchsorted(owner[ends], np.arange(usable.subject_count + 1)).astype(np.int64, copy=False),
    )


def _find_phase_ends(times_s: Reals, owner: Ints, active: Ints, gap_s: Reals) -> Bools:
    """Return whether a phase ends at each time: no request is active, and the next one is far or has another owner."""
    is_end = np.ones(len(times_s), dtype=np.bool_)
    is_other = owner[1:] != owner[:-1]
    is_far = times_s[1:] - times_s[:-1] > gap_s[owner[1:]]
    is_end[:-1] = (active[:-1] == 0) & (is_other | is_far)
    return is_end
