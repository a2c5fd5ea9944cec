"""From requests to throughput: how many bytes a second all requests together move, at every instant.

A request's bytes are spread evenly from when it began to when it was over; one that took no time is an
impulse at its instant. The sum over all requests of a subject (a job, a rank, a host, a file, an OST: whatever
`subjects` makes of the keys) is a step function. This is the application-level bandwidth of FTIO (Tarraf et
al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-A), with the bytes of every request
kept: rates are added without rounding (`exact_sums`), so that where nothing is active the rate is 0,
and a result does not depend on the order of requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, owners
from iosig.transforms.throughput.exact_sums import running_sums, segment_sums

#: what a request that is of no subject has for its subject
NO_SUBJECT = -1
#: a request that is faster is taken for an instant: sums of such rates would leave the range of a float
_FASTEST_BYTES_PER_S = 1e200


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests (n) of many subjects, in any order.

    start_s, end_s, volume_bytes (n): of the one clock of its subject. subject (n): its number, from 0 to
    subject_count - 1; a request with a negative one is of no subject and counts for none.

    A request without a duration that is finite and not negative, or without bytes that are, is not usable:
    it counts as `unusable_counts` say, and moves nothing.
    """

    start_s: Reals
    end_s: Reals
    volume_bytes: Reals
    subject: Ints
    subject_count: int

    def __post_init__(self) -> None:
        lengths = {len(self.start_s), len(self.end_s), len(self.volume_bytes), len(self.subject)}
        if len(lengths) > 1:
            raise ValueError("the requests' columns are not of one length")
        if len(self.subject) and int(self.subject.max()) >= self.subject_count:
            raise IndexError("a request's subject is not one of the subjects")

    @classmethod
    def of_one(cls, start_s: npt.ArrayLike, end_s: npt.ArrayLike, volume_bytes: npt.ArrayLike) -> Requests:
        """Return the requests of one subject."""
        began, ceased, volume = (np.asarray(column, dtype=np.float64) for column in (start_s, end_s, volume_bytes))
        return cls(began, ceased, volume, np.zeros(len(began), dtype=np.int64), 1)

    @property
    def durations_s(self) -> Reals:
        """How long each took (n)."""
        with np.errstate(invalid="ignore", over="ignore"):
            found: Reals = self.end_s - self.start_s
        return found

    @property
    def is_usable(self) -> Bools:
        """Whether each has times and bytes that make sense (n)."""
        durations = self.durations_s
        # one comparison for each end: NaN fails them all
        found: Bools = (durations >= 0) & (durations < np.inf) & (self.volume_bytes >= 0) & (self.volume_bytes < np.inf)
        return found

    @property
    def unusable_counts(self) -> Ints:
        """How many of each subject's requests are not usable (subjects)."""
        lost, found = self.subject[~self.is_usable], np.zeros(self.subject_count, dtype=np.int64)
        np.add.at(found, lost[lost >= 0], 1)
        return found

    def chosen(self, rows: Bools | Ints | slice) -> Requests:
        """Return some of the requests."""
        return Requests(
            self.start_s[rows], self.end_s[rows], self.volume_bytes[rows], self.subject[rows], self.subject_count
        )

    def usable(self) -> Requests:
        """Return those that are usable, of a subject, and move bytes."""
        is_wanted = self.is_usable & (self.volume_bytes > 0) & (self.subject >= 0)
        return self if is_wanted.all() else self.chosen(is_wanted)

    @property
    def is_instant(self) -> Bools:
        """Whether usable requests took no time, or so little that they have no rate (n)."""
        found: Bools = self.volume_bytes > _FASTEST_BYTES_PER_S * self.durations_s
        return found

    def rates(self) -> Reals:
        """Return the bytes per second of usable requests (n); infinity for those that are instants."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.is_instant, np.inf, self.volume_bytes / self.durations_s)


@dataclass(frozen=True, slots=True)
class Steps(InPieces):
    """Step functions of many subjects, and what moved in no time.

    Subject i has the edges offsets[i] to offsets[i + 1]: instants, each once, at which a request begins or is
    over. From an edge to the next one the rate is the edge's; the last edge's is 0, as it is before the first.
    Its impulses are from impulse_offsets[i] to impulse_offsets[i + 1], in order of time, each instant once.
    """

    edges_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    impulses_s: Reals
    impulse_bytes: Reals
    impulse_offsets: Ints

    @property
    def subject_count(self) -> int:
        """The number of subjects."""
        return len(self.offsets) - 1

    @property
    def widths_s(self) -> Reals:
        """How long each edge's rate holds (edges); 0 for the last of a subject."""
        widths = np.zeros(len(self.edges_s))
        np.subtract(self.edges_s[1:], self.edges_s[:-1], out=widths[:-1])
        widths[self.offsets[1:][self.counts > 0] - 1] = 0.0
        return widths

    @property
    def volume_bytes(self) -> Reals:
        """What each subject moved (subjects)."""
        pieces = segment_sums(self.bytes_per_s * self.widths_s, self.offsets)
        return pieces + segment_sums(self.impulse_bytes, self.impulse_offsets)

    @property
    def peak_bytes_per_s(self) -> Reals:
        """The highest rate of each subject (subjects), impulses apart; 0 where there is none."""
        peaks = np.zeros(self.subject_count)
        np.maximum.at(peaks, self.owner, self.bytes_per_s)
        return peaks

    def requests(self) -> Requests:
        """Return requests that make the same signal: one for each piece with a rate, one for each impulse."""
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
    """Return each subject's throughput as a step function.

    Takes about 150 bytes of memory for a request. The rate of each piece is right to a few units in the last
    place, whatever else was or will be active; the volume is that of the requests to 1e-14.
    """
    known = requests.usable()
    rates = known.rates()
    is_span = np.isfinite(rates)
    spans, rates = (known, rates) if is_span.all() else (known.chosen(is_span), rates[is_span])
    edges, levels, offsets = summed_rates(spans, rates)
    instants = known.chosen(~is_span)
    return Steps(edges, levels, offsets, *_impulses(instants))


def summed_rates(spans: Requests, rates: Reals) -> tuple[Reals, Reals, Ints]:
    """Return the edges of spans, the sum of the rates of all spans from each edge on, and each subject's offsets."""
    times = np.concatenate([spans.start_s, spans.end_s])
    changes = np.concatenate([rates, -rates])
    owner = np.concatenate([spans.subject, spans.subject])
    order = np.lexsort((times, owner))
    times, owner = times[order], owner[order]
    # Of all that happens at an instant the last sum counts.
    last = np.flatnonzero(ends_of_equals(owner, times))
    levels = running_sums(changes[order])[last]
    return times[last], levels, _offsets(owner[last], spans.subject_count)


def _impulses(instants: Requests) -> tuple[Reals, Reals, Ints]:
    order = np.lexsort((instants.start_s, instants.subject))
    times, owner = instants.start_s[order], instants.subject[order]
    last = np.flatnonzero(ends_of_equals(owner, times))
    bounds = np.concatenate([[0], last + 1])
    volume = segment_sums(instants.volume_bytes[order], bounds)
    return times[last], volume, _offsets(owner[last], instants.subject_count)


def _offsets(owner: Ints, count: int) -> Ints:
    """Return where each owner's values begin and end among values in order of owners."""
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64, copy=False)


def ends_of_equals(*columns: npt.NDArray[Any]) -> Bools:
    """Return whether each row differs from the next one in any of the columns (n); the last one does."""
    found = np.ones(len(columns[0]), dtype=np.bool_)
    if len(found):
        found[:-1] = columns[0][1:] != columns[0][:-1]
        for column in columns[1:]:
            found[:-1] |= column[1:] != column[:-1]
    return found
