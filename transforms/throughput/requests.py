"""Compute the throughput of requests: the total rate at every time.

A request's bytes are spread evenly over its duration; a request of no duration is an impulse. The sum over all requests
of a subject (a job, a rank, a host, a file, or an OST) is a step function. This is the application-level bandwidth of
FTIO (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-A), which preserves the
bytes of every request: rates are added exactly (`exact_sums`), so that the rate is 0 without active requests, and
results do not depend on the order of requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, owners
from iosig.transforms.throughput.exact_sums import running_sums, segment_sums

#: subject of requests without a subject
NO_SUBJECT = -1
#: maximum rate; faster requests are impulses, since sums of such rates would overflow
_MAX_BYTES_PER_S = 1e200


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests (n) of many subjects, in any order.

    start_s, end_s, volume_bytes (n): times on the clock of the request's subject, and bytes. subject (n): number of the
    subject, from 0 to subject_count - 1; a request with a negative number has no subject and is ignored.

    A request is invalid if its duration or its bytes are negative or not finite. It is counted in `unusable_counts`,
    and moves nothing.
    """

    start_s: Reals
    end_s: Reals
    volume_bytes: Reals
    subject: Ints
    subject_count: int

    def __post_init__(self) -> None:
        lengths = {len(self.start_s), len(self.end_s), len(self.volume_bytes), len(self.subject)}
        if len(lengths) > 1:
            raise ValueError("columns of requests must have equal lengths")
        if len(self.subject) and int(self.subject.max()) >= self.subject_count:
            raise IndexError("a request's subject exceeds the number of subjects")

    @classmethod
    def from_arrays(cls, start_s: npt.ArrayLike, end_s: npt.ArrayLike, volume_bytes: npt.ArrayLike) -> Requests:
        """Create the requests of a single subject."""
        starts, ends, volumes = (np.asarray(column, dtype=np.float64) for column in (start_s, end_s, volume_bytes))
        return cls(starts, ends, volumes, np.zeros(len(starts), dtype=np.int64), 1)

    @property
    def durations_s(self) -> Reals:
        """Duration of each request (n) [s]."""
        with np.errstate(invalid="ignore", over="ignore"):
            durations: Reals = self.end_s - self.start_s
        return durations

    @property
    def is_usable(self) -> Bools:
        """Whether times and bytes of each request are valid (n)."""
        durations = self.durations_s
        # NaN fails all comparisons
        is_valid: Bools = (durations >= 0) & (durations < np.inf)
        is_valid &= (self.volume_bytes >= 0) & (self.volume_bytes < np.inf)
        return is_valid

    @property
    def unusable_counts(self) -> Ints:
        """Number of each subject's invalid requests (subjects)."""
        subject, counts = self.subject[~self.is_usable], np.zeros(self.subject_count, dtype=np.int64)
        np.add.at(counts, subject[subject >= 0], 1)
        return counts

    def select(self, rows: Bools | Ints | slice) -> Requests:
        """Select requests by mask, index or slice."""
        return Requests(
            self.start_s[rows], self.end_s[rows], self.volume_bytes[rows], self.subject[rows], self.subject_count
        )

    def select_usable(self) -> Requests:
        """Select valid requests with a subject and bytes."""
        is_wanted = self.is_usable & (self.volume_bytes > 0) & (self.subject >= 0)
        return self if is_wanted.all() else self.select(is_wanted)

    @property
    def is_instant(self) -> Bools:
        """Whether valid requests have no duration, or one that is too short for a rate (n)."""
        is_instant: Bools = self.volume_bytes > _MAX_BYTES_PER_S * self.durations_s
        return is_instant

    def rates(self) -> Reals:
        """Rates of valid requests (n) [bytes/s]; infinity for impulses."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.is_instant, np.inf, self.volume_bytes / self.durations_s)


@dataclass(frozen=True, slots=True)
class Steps(InPieces):
    """Step functions of many subjects, and impulses.

    Subject i has the edges offsets[i] to offsets[i + 1]: distinct times at which a request starts or ends.
    `bytes_per_s` is the rate from an edge to the next one; it is 0 at the last edge, and before the first. Impulses of
    subject i are from impulse_offsets[i] to impulse_offsets[i + 1], with distinct, ascending times.
    """

    edges_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    impulses_s: Reals
    impulse_bytes: Reals
    impulse_offsets: Ints

    @property
    def subject_count(self) -> int:
        """Number of subjects, including those without edges."""
        return len(self.offsets) - 1

    @property
    def widths_s(self) -> Reals:
        """Duration of the rate after each edge (edges) [s]; 0 for the last edge of a subject."""
        widths = np.zeros(len(self.edges_s))
        np.subtract(self.edges_s[1:], self.edges_s[:-1], out=widths[:-1])
        widths[self.offsets[1:][self.counts > 0] - 1] = 0.0
        return widths

    @property
    def volume_bytes(self) -> Reals:
        """Total bytes of each subject, including its impulses (subjects)."""
        pieces = segment_sums(self.bytes_per_s * self.widths_s, self.offsets)
        return pieces + segment_sums(self.impulse_bytes, self.impulse_offsets)

    @property
    def peak_bytes_per_s(self) -> Reals:
        """Maximum rate of each subject (subjects), without impulses; 0 without edges."""
        peaks = np.zeros(self.subject_count)
        np.maximum.at(peaks, self.owner, self.bytes_per_s)
        return peaks

    def requests(self) -> Requests:
        """Create requests with the same signal: one for each step with a rate, and one for each impulse."""
        at = np.flatnonzero(self.bytes_per_s > 0)
        volume = self.bytes_per_s[at] * self.widths_s[at]
        return Requests(
            np.concatenate([self.edges_s[at], self.impulses_s]),
            np.concatenate([self.edges_s[at + 1], self.impulses_s]),
            np.concatenate([volume, self.impulse_bytes]),
            np.concatenate([self.owner[at], owners(self.impulse_offsets)]),
            self.subject_count,
        )


def step_function(requests: Requests) -> Steps:
    """Compute the throughput of each subject as a step function.

    Parameters
    ----------
    requests
        Requests of many subjects; needs about 150 bytes of memory per request.

    Returns
    -------
    Steps
        Rates are accurate to a few units in the last place, regardless of other requests; volumes to 1e-14.
    """
    usable = requests.select_usable()
    rates = usable.rates()
    is_span = np.isfinite(rates)
    spans, rates = (usable, rates) if is_span.all() else (usable.select(is_span), rates[is_span])
    edges, levels, offsets = sum_rates(spans, rates)
    instants = usable.select(~is_span)
    return Steps(edges, levels, offsets, *_sum_impulses(instants))


def sum_rates(spans: Requests, rates: Reals) -> tuple[Reals, Reals, Ints]:
    """Sum the rates of overlapping requests.

    Parameters
    ----------
    spans
        Valid requests with a duration.
    rates : (n,)
        Rate of each request.

    Returns
    -------
    tuple[Reals, Reals, Ints]
        Edges, total rate from each edge on, and each subject's offsets.
    """
    times = np.concatenate([spans.start_s, spans.end_s])
    changes = np.concatenate([rates, -rates])
    owner = np.concatenate([spans.subject, spans.subject])
    order = np.lexsort((times, owner))
    times, owner = times[order], owner[order]
    # the sum after the last of several simultaneous changes counts
    last = np.flatnonzero(is_run_end(owner, times))
    levels = running_sums(changes[order])[last]
    return times[last], levels, _owner_offsets(owner[last], spans.subject_count)


def _sum_impulses(instants: Requests) -> tuple[Reals, Reals, Ints]:
    order = np.lexsort((instants.start_s, instants.subject))
    times, owner = instants.start_s[order], instants.subject[order]
    last = np.flatnonzero(is_run_end(owner, times))
    bounds = np.concatenate([[0], last + 1])
    volume = segment_sums(instants.volume_bytes[order], bounds)
    return times[last], volume, _owner_offsets(owner[last], instants.subject_count)


def _owner_offsets(owner: Ints, count: int) -> Ints:
    """Start and end of each owner's values, which are sorted by owner."""
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64, copy=False)


def is_run_end(*columns: npt.NDArray[Any]) -> Bools:
    """Mark the last row of each run of equal rows.

    Parameters
    ----------
    *columns
        Columns of equal length (n).

    Returns
    -------
    (n,)
        Whether a row differs from the next one in any column; True for the last row.
    """
    is_end = np.ones(len(columns[0]), dtype=np.bool_)
    if len(is_end):
        is_end[:-1] = columns[0][1:] != columns[0][:-1]
        for column in columns[1:]:
            is_end[:-1] |= column[1:] != column[:-1]
    return is_end
