"""Compute evenly spaced values of throughput: bytes in bins, and rates at instants.

Bins contain exact integrals: the bytes that requests moved within a bin. Instants have the rate at that time, as FTIO
samples it (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-B): changes between
two instants and impulses are not observed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of
from iosig.transforms.throughput.exact_sums import ExactSums
from iosig.transforms.throughput.requests import Requests, Steps

#: number of requests per chunk, which fits into the processor's cache
_CHUNK = 1 << 14
#: minimum length of a step, in units in the last place of its times, at which the step of a time is unambiguous
_MIN_STEP_ULPS = 8


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
    def from_range(cls, start_s: npt.ArrayLike, end_s: npt.ArrayLike, step_count: npt.ArrayLike) -> Grid:
        """Create grids from start to end, with the smallest interval that includes the end.

        Parameters
        ----------
        start_s, end_s, step_count
            Start and end [s], and number of steps, of each subject; broadcast against each other.

        Returns
        -------
        Grid
            One per subject.
        """
        started, ended, count = np.broadcast_arrays(
            np.atleast_1d(np.asarray(start_s, dtype=np.float64)), end_s, np.asarray(step_count, dtype=np.int64)
        )
        interval = (ended - started) / np.maximum(count, 1)
        for _ in range(_MIN_STEP_ULPS):
            is_short = (started + count * interval < ended) & (count > 0)
            interval = np.where(is_short, np.nextafter(interval, np.inf), interval)
        return cls(started.astype(np.float64), interval, count.astype(np.int64))

    @property
    def offsets(self) -> Ints:
        """Start and end of each subject's steps in a flat array (n + 1)."""
        return offsets_of(self.step_count)

    @property
    def end_s(self) -> Reals:
        """End of each subject's last step (n)."""
        return self.start_s + self.step_count * self.interval_s

    @property
    def widths_s(self) -> Reals:
        """Length of each step according to its edges (steps)."""
        return self.widths_at(np.arange(int(self.offsets[-1])))

    def widths_at(self, cells: Ints) -> Reals:
        """Lengths of selected steps (n), by index in the flat array."""
        owner = np.searchsorted(self.offsets, cells, side="right") - 1
        step, started, interval = cells - self.offsets[owner], self.start_s[owner], self.interval_s[owner]
        widths: Reals = (started + (step + 1) * interval) - (started + step * interval)
        return widths


def is_resolved(start_s: Reals, interval_s: Reals, step_count: Ints) -> Bools:
    """Return whether the steps of a grid are distinguishable in floating-point arithmetic, as a grid requires.

    Parameters
    ----------
    start_s, interval_s, step_count : (n,)
        Start, interval [s] and number of steps of each subject.

    Returns
    -------
    (n,)
        False for subjects to exclude, since times in a damaged trace may be too far apart, or too large.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(start_s), np.abs(start_s + step_count * interval_s))
        is_fine = np.isfinite(largest) & (interval_s >= _MIN_STEP_ULPS * np.spacing(largest))
    is_valid: Bools = (is_fine & (step_count > 0)) | (step_count == 0)
    return is_valid


def _check_spacing(start_s: Reals, interval_s: Reals, step_count: Ints) -> None:
    if not len(start_s) == len(interval_s) == len(step_count):
        raise ValueError("starts, intervals and counts must have equal lengths")
    if not is_resolved(start_s, interval_s, step_count).all():
        raise ValueError("an interval is too short for its times or not finite, or a number of steps is negative")


# ---- bytes in bins


@dataclass(frozen=True, slots=True)
class BinnedBytes:
    """Bytes in the bins of a grid.

    Attributes
    ----------
    volume_bytes : (steps,)
        Bytes of each bin, subject by subject (`grid.offsets`).
    outside_bytes : (subjects,)
        Bytes moved before the first edge and after the last.
    unusable_counts : (subjects,)
        Number of requests with invalid times or bytes.
    """

    grid: Grid
    volume_bytes: Reals
    outside_bytes: Reals
    unusable_counts: Ints

    @property
    def bytes_per_s(self) -> Reals:
        """Mean rate in each bin (steps)."""
        rates: Reals = self.volume_bytes / self.grid.widths_s
        return rates


class BinAccumulator:
    """Streaming accumulator of requests in the bins of a grid; memory grows with bins, not with requests.

    A bin includes its left edge and excludes its right one, except for the last bin; a request that ends at an edge has
    no part in the next bin. Sums are exact, so results are bit-identical for any order and any chunks. The bytes inside
    and outside the bins equal those of the requests to 1e-14.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._offsets, self._ended_s = grid.offsets, grid.end_s
        cell_count, self._subject_count = int(self._offsets[-1]), len(grid.start_s)
        self._volume, self._changes = ExactSums(cell_count), ExactSums(cell_count)
        self._outside = ExactSums(self._subject_count)
        self._unusable = np.zeros(self._subject_count, dtype=np.int64)

    def add(self, requests: Requests) -> None:
        """Add requests of the grid's subjects.

        Raises
        ------
        ValueError
            If the number of subjects differs.
        """
        if requests.subject_count != self._subject_count:
            raise ValueError("requests and grid must have the same number of subjects")
        for start in range(0, len(requests.start_s), _CHUNK):
            chunk = requests.select(slice(start, start + _CHUNK))
            usable = chunk.select_usable()
            if usable is not chunk:
                self._unusable += chunk.unusable_counts
            self._add_to_bins(_close_instants(usable))

    def result(self) -> BinnedBytes:
        """Return the bytes of all requests added so far."""
        # requests that fill entire bins are stored as changes of the rate
        volume, rates = self._volume.totals(), self._changes.running()
        filled = np.flatnonzero(rates)
        for start in range(0, len(filled), _CHUNK):
            cells = filled[start : start + _CHUNK]
            volume[cells] += rates[cells] * self._grid.widths_at(cells)
        return BinnedBytes(self._grid, volume, self._outside.totals(), self._unusable.copy())

    def _add_to_bins(self, usable: Requests) -> None:
        """Add requests within a single bin, and distribute the others."""
        grid, owner = self._grid, usable.subject
        started, interval, count = grid.start_s[owner], grid.interval_s[owner], grid.step_count[owner]
        first = _find_steps(usable.start_s, started, interval, count)
        is_plain = usable.start_s >= started
        is_plain &= usable.end_s <= started + (first + 1.0) * interval
        is_plain &= count > 0
        cells = self._offsets[owner] + first.astype(np.int64)
        if is_plain.all():
            self._volume.add(cells, usable.volume_bytes)
        else:
            self._volume.add(cells[is_plain], usable.volume_bytes[is_plain])
            self._distribute(usable.select(~is_plain))

    def _distribute(self, usable: Requests) -> None:
        """Add requests that extend beyond a bin, or beyond the grid."""
        owner, duration, volume = usable.subject, usable.durations_s, usable.volume_bytes
        started, ended = self._grid.start_s[owner], self._ended_s[owner]
        before = np.clip(started - usable.start_s, 0.0, duration)
        after = np.clip(usable.end_s - ended, 0.0, duration)
        # requests without a duration get here only if they are outside the grid
        with np.errstate(invalid="ignore"):
            share = np.where(duration > 0, before / duration + after / duration, 1.0)
        is_out = share > 0
        self._outside.add_few(owner[is_out], (volume * share)[is_out])
        is_inside = (np.minimum(usable.end_s, ended) > np.maximum(usable.start_s, started)) & (share < 1)
        if is_inside.any():
            self._spread_over_bins(usable.select(is_inside))

    def _spread_over_bins(self, spans: Requests) -> None:
        """Distribute requests to their first and last bins, and add their rate to the bins in between."""
        grid, owner, duration, volume = self._grid, spans.subject, spans.durations_s, spans.volume_bytes
        started, interval, count = grid.start_s[owner], grid.interval_s[owner], grid.step_count[owner]
        low, high = np.maximum(spans.start_s, started), np.minimum(spans.end_s, self._ended_s[owner])
        first, last = (_find_steps(time, started, interval, count) for time in (low, high))
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


def _close_instants(usable: Requests) -> Requests:
    """Turn requests that are too short for a rate into impulses: set their end to their start."""
    is_open = usable.is_instant & (usable.end_s > usable.start_s)
    return replace(usable, end_s=np.where(is_open, usable.start_s, usable.end_s)) if is_open.any() else usable


def _find_steps(times_s: Reals, start_s: Reals, interval_s: Reals, step_count: Ints) -> Reals:
    """Find the step of each time (n), clipped to the grid; steps include their left edge."""
    last = step_count - 1.0
    guess = times_s - start_s
    guess /= interval_s
    np.floor(guess, out=guess)
    np.minimum(guess, last, out=guess)
    np.maximum(guess, 0.0, out=guess)
    # correct rounding errors of one step
    is_off = start_s + guess * interval_s > times_s
    is_off |= start_s + (guess + 1.0) * interval_s <= times_s
    if is_off.any():
        at = np.flatnonzero(is_off)
        step, time, started, interval = guess[at], times_s[at], start_s[at], interval_s[at]
        step -= (started + step * interval > time) & (step > 0)
        step += (started + (step + 1.0) * interval <= time) & (step < last[at])
        guess[at] = step
    return guess


def bin_requests(requests: Requests, grid: Grid) -> BinnedBytes:
    """Compute the bytes in each bin of a grid.

    Parameters
    ----------
    requests
        Requests of the grid's subjects.
    grid
        Bins.

    Returns
    -------
    Binned
        Bytes in the bins and outside.
    """
    bins = BinAccumulator(grid)
    bins.add(requests)
    return bins.result()


# ---- values at instants


@dataclass(frozen=True, slots=True)
class Instants:
    """Sampling times of each subject (n): start_s + i / sampling_hz, for samples i from 0 to sample_count - 1."""

    start_s: Reals
    sampling_hz: Reals
    sample_count: Ints

    def __post_init__(self) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            _check_spacing(self.start_s, 1.0 / self.sampling_hz, self.sample_count)

    @property
    def offsets(self) -> Ints:
        """Start and end of each subject's samples in a flat array (n + 1)."""
        return offsets_of(self.sample_count)


def sample_at(steps: Steps, instants: Instants) -> Ragged:
    """Sample step functions.

    Parameters
    ----------
    steps
        Step functions of n subjects.
    instants
        Sampling times of each subject.

    Returns
    -------
    Ragged
        Rates [bytes/s]. At an edge, the rate after the edge counts, since in FTIO a value holds from its timestamp on.
        Impulses are not observed.
    """
    owner, offsets = steps.owner, instants.offsets
    started, hz, count = instants.start_s[owner], instants.sampling_hz[owner], instants.sample_count[owner]
    # first sample with each edge's rate, with correction of rounding errors
    first = np.clip(np.ceil((steps.edges_s - started) * hz), 0, count).astype(np.int64)
    first -= (first > 0) & (started + (first - 1) / hz >= steps.edges_s)
    first += (first < count) & (started + first / hz < steps.edges_s)
    place = offsets[owner] + first
    total = int(offsets[-1])
    # the rate of 0 of a subject's last edge extends to the first edge of the next subject
    lead_count = int(place[0]) if len(place) else total
    lengths = np.diff(place, append=total)
    return Ragged(np.concatenate([np.zeros(lead_count), np.repeat(steps.bytes_per_s, lengths)]), offsets)
