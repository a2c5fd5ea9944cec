"""From throughput to evenly spaced values: bytes in bins, values at instants.

Bins hold exact integrals: what a request moved within a bin. Instants hold what the rate is at that moment, as
FTIO samples (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-B): what
happens between two instants is not seen, and what takes no time never is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of
from iosig.transforms.throughput.exact_sums import ExactSums
from iosig.transforms.throughput.requests import Requests, Steps

#: requests that are worked on at a time: they stay in the cache
_CHUNK = 1 << 14
#: the least step, in units of the last place of its times: then it is told to which step an instant belongs
_LEAST_ULPS = 8


# ---- grids


@dataclass(frozen=True, slots=True)
class Grid:
    """Evenly spaced edges for each subject (n): start_s + step * interval_s, for steps from 0 to step_count."""

    start_s: Reals
    interval_s: Reals
    step_count: Ints

    def __post_init__(self) -> None:
        _check_spacing(self.start_s, self.interval_s, self.step_count)

    @classmethod
    def covering(cls, start_s: npt.ArrayLike, end_s: npt.ArrayLike, step_count: npt.ArrayLike) -> Grid:
        """Return grids of so many steps from start to end: the least interval with which the end is not outside."""
        started, ended, count = np.broadcast_arrays(
            np.atleast_1d(np.asarray(start_s, dtype=np.float64)), end_s, np.asarray(step_count, dtype=np.int64)
        )
        interval = (ended - started) / np.maximum(count, 1)
        for _ in range(_LEAST_ULPS):
            is_short = (started + count * interval < ended) & (count > 0)
            interval = np.where(is_short, np.nextafter(interval, np.inf), interval)
        return cls(started.astype(np.float64), interval, count.astype(np.int64))

    @property
    def offsets(self) -> Ints:
        """Where each subject's steps begin and end in a flat array (n + 1)."""
        return offsets_of(self.step_count)

    @property
    def end_s(self) -> Reals:
        """Each subject's last edge (n)."""
        return self.start_s + self.step_count * self.interval_s

    @property
    def widths_s(self) -> Reals:
        """The length of each step, as its edges have it (steps)."""
        return self.widths_at(np.arange(int(self.offsets[-1])))

    def widths_at(self, cells: Ints) -> Reals:
        """Return the length of some steps (n), by their places in the flat array of all."""
        owner = np.searchsorted(self.offsets, cells, side="right") - 1
        step, started, interval = cells - self.offsets[owner], self.start_s[owner], self.interval_s[owner]
        found: Reals = (started + (step + 1) * interval) - (started + step * interval)
        return found


def is_resolved(start_s: Reals, interval_s: Reals, step_count: Ints) -> Bools:
    """Return whether floats can tell the steps apart, and from instants near them (n); a grid must be so.

    Times of a damaged trace may be so far apart, or so late, that they cannot: leave such subjects out.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(start_s), np.abs(start_s + step_count * interval_s))
        is_fine = np.isfinite(largest) & (interval_s >= _LEAST_ULPS * np.spacing(largest))
    found: Bools = (is_fine & (step_count > 0)) | (step_count == 0)
    return found


def _check_spacing(start_s: Reals, interval_s: Reals, step_count: Ints) -> None:
    if not len(start_s) == len(interval_s) == len(step_count):
        raise ValueError("starts, intervals and counts are not of one length")
    if not is_resolved(start_s, interval_s, step_count).all():
        raise ValueError("an interval is too short for its times, or not finite, or there are less than no steps")


# ---- bytes in bins


@dataclass(frozen=True, slots=True)
class Binned:
    """Bytes in the bins of a grid.

    volume_bytes (steps): of all subjects, one after the other (`grid.offsets`). outside_bytes (subjects): what
    their requests moved before the first edge and after the last. unusable_counts (subjects): requests without
    times or bytes that make sense.
    """

    grid: Grid
    volume_bytes: Reals
    outside_bytes: Reals
    unusable_counts: Ints

    @property
    def bytes_per_s(self) -> Reals:
        """The mean rate in each bin (steps)."""
        found: Reals = self.volume_bytes / self.grid.widths_s
        return found


class Bins:
    """Adds requests, chunk after chunk, to the bins of a grid; memory is for bins, not for requests.

    A bin has the bytes from its left edge, included, to its right one, excluded but for the last bin; a request
    that only ends at an edge has no part in the bin behind it. Sums are exact: the result is the same to the
    last bit for any order and any chunks, and bytes in the bins and outside are those of the requests to 1e-14.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._offsets, self._ended_s = grid.offsets, grid.end_s
        cell_count, self._subject_count = int(self._offsets[-1]), len(grid.start_s)
        self._volume, self._changes = ExactSums(cell_count), ExactSums(cell_count)
        self._outside = ExactSums(self._subject_count)
        self._unusable = np.zeros(self._subject_count, dtype=np.int64)

    def add(self, requests: Requests) -> None:
        """Add requests of the grid's subjects."""
        if requests.subject_count != self._subject_count:
            raise ValueError("the requests are not of the grid's subjects")
        for start in range(0, len(requests.start_s), _CHUNK):
            chunk = requests.chosen(slice(start, start + _CHUNK))
            known = chunk.usable()
            if known is not chunk:
                self._unusable += chunk.unusable_counts
            self._place(_instants_closed(known))

    def result(self) -> Binned:
        """Return the bins as they stand; more may be added afterwards."""
        # Where a request fills whole bins, only the change of the rate was kept.
        volume, rates = self._volume.totals(), self._changes.running()
        filled = np.flatnonzero(rates)
        for start in range(0, len(filled), _CHUNK):
            cells = filled[start : start + _CHUNK]
            volume[cells] += rates[cells] * self._grid.widths_at(cells)
        return Binned(self._grid, volume, self._outside.totals(), self._unusable.copy())

    def _place(self, known: Requests) -> None:
        """Add what lies within one bin; share out the rest."""
        grid, owner = self._grid, known.subject
        started, interval, count = grid.start_s[owner], grid.interval_s[owner], grid.step_count[owner]
        first = _step_at(known.start_s, started, interval, count)
        is_plain = known.start_s >= started
        is_plain &= known.end_s <= started + (first + 1.0) * interval
        is_plain &= count > 0
        cells = self._offsets[owner] + first.astype(np.int64)
        if is_plain.all():
            self._volume.add(cells, known.volume_bytes)
        else:
            self._volume.add(cells[is_plain], known.volume_bytes[is_plain])
            self._share(known.chosen(~is_plain))

    def _share(self, known: Requests) -> None:
        """Add requests that reach beyond a bin, or lie outside."""
        owner, duration, volume = known.subject, known.durations_s, known.volume_bytes
        started, ended = self._grid.start_s[owner], self._ended_s[owner]
        before = np.clip(started - known.start_s, 0.0, duration)
        after = np.clip(known.end_s - ended, 0.0, duration)
        # What takes no time is here only because it lies outside.
        with np.errstate(invalid="ignore"):
            share = np.where(duration > 0, before / duration + after / duration, 1.0)
        is_out = share > 0
        self._outside.add_few(owner[is_out], (volume * share)[is_out])
        is_inside = (np.minimum(known.end_s, ended) > np.maximum(known.start_s, started)) & (share < 1)
        if is_inside.any():
            self._spread(known.chosen(is_inside))

    def _spread(self, spans: Requests) -> None:
        """Add spans that lie in the grid in part: to their first and last bins, and a rate to those between."""
        grid, owner, duration, volume = self._grid, spans.subject, spans.durations_s, spans.volume_bytes
        started, interval, count = grid.start_s[owner], grid.interval_s[owner], grid.step_count[owner]
        low, high = np.maximum(spans.start_s, started), np.minimum(spans.end_s, self._ended_s[owner])
        first, last = (_step_at(time, started, interval, count) for time in (low, high))
        last -= (started + last * interval == high) & (last > first)
        is_one = first == last
        head = np.where(is_one, high, started + (first + 1) * interval) - low
        tail = high - (started + last * interval)
        heads, tails = (self._offsets[owner] + step.astype(np.int64) for step in (first, last))
        self._volume.add_few(heads, volume * (head / duration))
        crossing = np.flatnonzero(~is_one)
        self._volume.add_few(tails[crossing], (volume * (tail / duration))[crossing])
        filling = np.flatnonzero(last - first > 1)
        rate = (volume / duration)[filling]
        self._changes.add_few(heads[filling] + 1, rate)
        self._changes.add_few(tails[filling], -rate)


def _instants_closed(known: Requests) -> Requests:
    """Return usable requests with those that are too short to have a rate ended where they began."""
    is_open = known.is_instant & (known.end_s > known.start_s)
    return replace(known, end_s=np.where(is_open, known.start_s, known.end_s)) if is_open.any() else known


def _step_at(times_s: Reals, start_s: Reals, interval_s: Reals, step_count: Ints) -> Reals:
    """Return in which step each time lies (n): from its left edge on, before its right one; clipped to the grid."""
    last = step_count - 1.0
    guess = times_s - start_s
    guess /= interval_s
    np.floor(guess, out=guess)
    np.minimum(guess, last, out=guess)
    np.maximum(guess, 0.0, out=guess)
    # Rounding may have put it beside the edges as they are.
    is_beside = start_s + guess * interval_s > times_s
    is_beside |= start_s + (guess + 1.0) * interval_s <= times_s
    if is_beside.any():
        at = np.flatnonzero(is_beside)
        step, time, started, interval = guess[at], times_s[at], start_s[at], interval_s[at]
        step -= (started + step * interval > time) & (step > 0)
        step += (started + (step + 1.0) * interval <= time) & (step < last[at])
        guess[at] = step
    return guess


def binned(requests: Requests, grid: Grid) -> Binned:
    """Return the bytes in each bin of requests that are at hand all at once."""
    bins = Bins(grid)
    bins.add(requests)
    return bins.result()


# ---- values at instants


@dataclass(frozen=True, slots=True)
class Instants:
    """Instants of each subject (n): start_s + sample / sampling_hz, for samples from 0 to sample_count - 1."""

    start_s: Reals
    sampling_hz: Reals
    sample_count: Ints

    def __post_init__(self) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            _check_spacing(self.start_s, 1.0 / self.sampling_hz, self.sample_count)

    @property
    def offsets(self) -> Ints:
        """Where each subject's samples begin and end in a flat array (n + 1)."""
        return offsets_of(self.sample_count)


def at_instants(steps: Steps, instants: Instants) -> Ragged:
    """Return each subject's rate at its instants, in bytes per second.

    At an instant that is an edge it is the rate from there on, as FTIO holds a value from its time stamp on. Impulses
    are not seen.
    """
    owner, offsets = steps.owner, instants.offsets
    started, hz, count = instants.start_s[owner], instants.sampling_hz[owner], instants.sample_count[owner]
    # The first sample to which each edge's rate applies; rounding may have put it one beside.
    first = np.clip(np.ceil((steps.edges_s - started) * hz), 0, count).astype(np.int64)
    first -= (first > 0) & (started + (first - 1) / hz >= steps.edges_s)
    first += (first < count) & (started + first / hz < steps.edges_s)
    place = offsets[owner] + first
    total = int(offsets[-1])
    # The last edge's rate of 0 holds to the subject's end, and on to the first edge of the next one.
    lead = int(place[0]) if len(place) else total
    lengths = np.diff(place, append=total)
    return Ragged(np.concatenate([np.zeros(lead), np.repeat(steps.bytes_per_s, lengths)]), offsets)
