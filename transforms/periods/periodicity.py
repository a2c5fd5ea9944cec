"""How periodic a signal is, given its period: volume and time per period, and the share of substantial I/O.

FTIO's further metrics (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C,
"Further characterization", a to c and equation 4), on the signal itself: a step function whose steps are cut at the
periods' edges. Nothing is sampled.

The paper leaves open what becomes of the last piece of a trace that is shorter than a period: its volume and time are
no period's, so it is left out of both deviations; V(T), L(T), S and R_IO are of the whole trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import InPieces, Ints, Ragged, Reals, joined, offsets_of, owners, places_of, places_within
from iosig.transforms.periods.windows import ROUNDING, clipped
from iosig.transforms.throughput.requests import Steps

#: samples that are worked on at a time: a dozen arrays of that size fit the cache
_CHUNK_SAMPLES = 1 << 15


# What periods count: ours, as the paper has neither gaps nor traces of a single period.

#: with fewer whole periods there is nothing that could deviate
_LEAST_PERIOD_COUNT = 2
#: periods of which less is known do not count
_LEAST_KNOWN_RATIO = 0.5
#: with more, which no spectrum can tell apart, there is no answer; bounds the memory
_MOST_PERIOD_COUNT = 1 << 22


@dataclass(frozen=True, slots=True)
class Periodicity:
    """The metrics of n signals over their windows.

    known_s: L(T), how much of the window is known; volume_bytes: V(T). threshold_bytes_per_s: V(T) / L(T).
    substantial_s, substantial_bytes: L(S) and V(S), where the rate is above the threshold. r_io: L(S) / L(T).
    b_io_bytes_per_s: V(S) / L(S); NaN where nothing is substantial for any time. These need no period.

    period_count: whole periods that count. sigma_vol: the standard deviation of the periods' volumes over the largest
    one. sigma_time: equation 4. periodicity_score: 1 - sigma_vol - sigma_time, at least 0. bytes_per_period:
    V(S) / (L(T) f). NaN where there is no period, or too few of them.
    """

    known_s: Reals
    volume_bytes: Reals
    threshold_bytes_per_s: Reals
    substantial_s: Reals
    substantial_bytes: Reals
    r_io: Reals
    b_io_bytes_per_s: Reals
    period_count: Ints
    sigma_vol: Reals
    sigma_time: Reals
    periodicity_score: Reals
    bytes_per_period: Reals


def of_steps(
    steps: Steps,
    started_s: npt.ArrayLike,
    ended_s: npt.ArrayLike,
    frequency_hz: npt.ArrayLike,
) -> Periodicity:
    """Return the metrics of step functions, each over a window and with a frequency; NaN where it has none.

    started_s, ended_s, frequency_hz: one for all, or one for each subject. Where a subject has no edges the rate is 0.

    An impulse moves bytes in no time. Its rate is above any threshold: it adds to V(T), to V(S) and to its period's
    volume, and to no time. At the edge of two periods it is the later one's, at the window's end the last one's.
    """
    count = steps.subject_count
    started, ended, frequency = (
        np.broadcast_to(np.asarray(given, dtype=np.float64), (count,)) for given in (started_s, ended_s, frequency_hz)
    )
    is_window = np.isfinite(started) & np.isfinite(ended) & (started < ended)
    started, ended = np.where(is_window, started, 0.0), np.where(is_window, ended, 0.0)
    return _metrics(_framed(clipped(steps, started, ended), started, ended), frequency)


def of_samples(pieces: Ragged, sampling_hz: Reals, frequency_hz: Reals) -> Periodicity:
    """Return the metrics of evenly sampled signals (n) of any length: each sample's value holds until the next one.

    pieces: in bytes per second, NaN where not measured. sampling_hz, frequency_hz (n). What was not measured is in no
    volume and no length. A period's volume is that of its known part, taken for the whole; its time is relative to
    what is known of it. For a part of the time give `iosig.transforms.periods.windows.clipped_samples`.
    """
    parts = [_metrics(_held(pieces, sampling_hz, some), frequency_hz[some]) for some in _chunks(pieces.counts)]
    return joined(parts)


def _chunks(counts: Ints) -> Iterator[slice]:
    """Yield signals that have about so many samples together as are worked on at a time, at least one signal each."""
    chunk = np.cumsum(counts + 1) // _CHUNK_SAMPLES
    bounds = np.flatnonzero(np.diff(chunk, prepend=-1, append=-1)) if len(counts) else np.zeros(2, dtype=np.int64)
    yield from (slice(first, last) for first, last in pairwise(bounds.tolist()))


# ---- signals, from edge to edge of their windows


@dataclass(frozen=True, slots=True)
class _Signals(InPieces):
    """Steps of many subjects: from each edge on a rate, NaN where it is not known; edges may come twice.

    The first edge of each subject is its window's start, the last one its end, with a rate of 0.
    """

    edges_s: Reals
    bytes_per_s: Reals
    offsets: Ints
    impulses_s: Reals
    impulse_bytes: Reals
    impulse_offsets: Ints

    @property
    def started_s(self) -> Reals:
        return self.edges_s[self.offsets[:-1]]

    @property
    def ended_s(self) -> Reals:
        return self.edges_s[self.offsets[1:] - 1]

    def widths_s(self) -> Reals:
        widths = np.empty(len(self.edges_s))
        np.subtract(self.edges_s[1:], self.edges_s[:-1], out=widths[:-1])
        widths[self.offsets[1:] - 1] = 0.0
        return widths


def _framed(steps: Steps, started: Reals, ended: Reals) -> _Signals:
    """Return clipped step functions with an edge at the start and at the end of each window."""
    counts = steps.counts
    offsets = offsets_of(counts + 2)
    edges, levels = np.zeros((2, int(offsets[-1])))
    place = np.arange(len(steps.edges_s)) + 2 * steps.owner + 1
    edges[place], levels[place] = steps.edges_s, steps.bytes_per_s
    edges[offsets[:-1]], edges[offsets[1:] - 1] = started, ended
    return _Signals(edges, levels, offsets, steps.impulses_s, steps.impulse_bytes, steps.impulse_offsets)


def _held(pieces: Ragged, sampling_hz: Reals, some: slice) -> _Signals:
    """Return samples of some signals as steps, in seconds from their starts: late instants would cost digits."""
    counts = pieces.counts[some]
    offsets = offsets_of(counts + 1)
    values = pieces.values[pieces.offsets[some.start] : pieces.offsets[some.stop]]
    edges = places_within(counts + 1) / np.repeat(sampling_hz[some], counts + 1)
    levels = np.zeros(len(edges))
    levels[places_of(offsets[:-1], counts)] = np.where(np.isfinite(values), values, np.nan)
    none = np.zeros(0)
    return _Signals(edges, levels, offsets, none, none, np.zeros(len(counts) + 1, dtype=np.int64))


# ---- metrics


def _metrics(signals: _Signals, frequency: Reals) -> Periodicity:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        count, owner = len(frequency), signals.owner
        is_known = np.isfinite(signals.bytes_per_s)
        widths = signals.widths_s()
        known_s = np.where(is_known, widths, 0.0)
        moved = np.where(is_known, signals.bytes_per_s, 0.0) * widths
        impulses = np.bincount(owners(signals.impulse_offsets), signals.impulse_bytes, count)
        length = _sums(known_s, signals.offsets)
        volume = _sums(moved, signals.offsets) + impulses
        threshold = volume / length
        is_high = signals.bytes_per_s > (threshold * (1.0 + ROUNDING))[owner]
        high_s = np.where(is_high, widths, 0.0)
        substantial_s = _sums(high_s, signals.offsets)
        substantial_bytes = _sums(np.where(is_high, moved, 0.0), signals.offsets) + impulses
        r_io = substantial_s / length
        periods = _periods(signals, frequency)
        cuts = _cuts(signals, widths, periods)
        cells = [cuts.sums(moved) + _impulse_sums(signals, periods), cuts.sums(known_s), cuts.sums(high_s)]
        number, sigma_vol, sigma_time = _deviations(cells, periods, r_io)
        is_enough = (number >= _LEAST_PERIOD_COUNT) & (volume > 0)
        sigma_vol, sigma_time = (np.where(is_enough, sigma, np.nan) for sigma in (sigma_vol, sigma_time))
        per_period = np.where(is_enough, substantial_bytes / (length * frequency), np.nan)
        b_io = np.where(substantial_s > 0, substantial_bytes / substantial_s, np.nan)
        score = np.clip(1.0 - sigma_vol - sigma_time, 0.0, 1.0)
    return Periodicity(
        length, volume, threshold, substantial_s, substantial_bytes, r_io, b_io, number,
        sigma_vol, sigma_time, score, per_period,
    )  # fmt: skip


def _sums(values: Reals, offsets: Ints) -> Reals:
    """Return the sums of segments (n), none of which is empty."""
    if len(offsets) < 2:
        return np.zeros(0)
    found: Reals = np.add.reduceat(values, offsets[:-1])
    return found


@dataclass(frozen=True, slots=True)
class _Periods(InPieces):
    """Whole periods of many subjects: those of subject i are from offsets[i] to offsets[i + 1].

    edges_s, edge_offsets: one edge more than periods for each subject that has any.
    """

    offsets: Ints
    edges_s: Reals
    edge_offsets: Ints
    length_s: Reals

    @property
    def left(self) -> Ints:
        """The place of each period's left edge."""
        return np.arange(int(self.offsets[-1])) + np.repeat(np.cumsum(self.counts > 0) - 1, self.counts)


def _periods(signals: _Signals, frequency: Reals) -> _Periods:
    started, ended = signals.started_s, signals.ended_s
    # a window of just so many periods may miss the last one's end by rounding
    wanted = np.floor((ended - started) * frequency * (1.0 + ROUNDING))
    is_countable = np.isfinite(frequency) & (frequency > 0) & (wanted <= _MOST_PERIOD_COUNT)
    counts = np.where(is_countable, wanted, 0.0).astype(np.int64)
    offsets = offsets_of(counts)
    edge_offsets = offsets_of(np.where(counts > 0, counts + 1, 0))
    owner = owners(edge_offsets)
    number = np.arange(int(edge_offsets[-1])) - edge_offsets[owner]
    edges = np.minimum(started[owner] + number / frequency[owner], ended[owner])
    return _Periods(offsets, edges, edge_offsets, 1.0 / frequency)


def _steps_at(signals: _Signals, periods: _Periods) -> Ints:
    """Return the last step of the same subject that begins at or before each edge of periods (edges).

    A binary search in all segments at a time.
    """
    owner = owners(periods.edge_offsets)
    low, high = signals.offsets[owner], signals.offsets[owner + 1]
    for _ in range(int(signals.counts.max(initial=1)).bit_length()):
        middle = (low + high) // 2
        is_reached = signals.edges_s[np.minimum(middle, len(signals.edges_s) - 1)] <= periods.edges_s
        is_open = low + 1 < high
        low, high = np.where(is_open & is_reached, middle, low), np.where(is_open & ~is_reached, middle, high)
    return low


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Which parts of which steps make up each period (periods).

    first, last: the steps in which it begins and ends; first_share, last_share: how much of them is its own, 0 for the
    last one where both are the same. Those between are whole.
    """

    first: Ints
    last: Ints
    first_share: Reals
    last_share: Reals

    def sums(self, amounts: Reals) -> Reals:
        """Return the sums of what each step holds (steps) over each period (periods)."""
        found: Reals = amounts[self.first] * self.first_share + amounts[self.last] * self.last_share
        at = np.flatnonzero(self.last > self.first + 1)
        if len(at):
            pairs = np.stack([self.first[at] + 1, self.last[at]], axis=1).ravel()
            found[at] += np.add.reduceat(amounts, pairs)[::2]
        return found


def _cuts(signals: _Signals, widths: Reals, periods: _Periods) -> _Cuts:
    step, left = _steps_at(signals, periods), periods.left
    first, last, low, high = step[left], step[left + 1], periods.edges_s[left], periods.edges_s[left + 1]
    # a step without width has nothing to share
    width = np.where(widths > 0, widths, 1.0)
    behind = signals.edges_s[first] + widths[first]
    is_one = first == last
    head = np.where(is_one, high, behind) - low
    tail = np.where(is_one, 0.0, high - signals.edges_s[last])
    return _Cuts(first, last, head / width[first], tail / width[last])


def _impulse_sums(signals: _Signals, periods: _Periods) -> Reals:
    """Return what impulses move in each period (periods)."""
    owner, period_count = owners(signals.impulse_offsets), int(periods.offsets[-1])
    number = np.floor((signals.impulses_s - signals.started_s[owner]) / periods.length_s[owner])
    counts = periods.counts[owner]
    at_edges = np.flatnonzero(np.isfinite(number) & (counts > 0) & (number <= counts))
    owner, time, counts = owner[at_edges], signals.impulses_s[at_edges], counts[at_edges]
    place = number[at_edges].astype(np.int64)
    # rounding may have put it one beside the edges as they are
    edge = periods.edge_offsets[owner]
    place -= (place > 0) & (periods.edges_s[edge + np.minimum(place, counts)] > time)
    place += (place < counts) & (periods.edges_s[edge + np.minimum(place + 1, counts)] <= time)
    place -= (place == counts) & (time == signals.ended_s[owner]) & (periods.edges_s[edge + counts] == time)
    is_whole = place < counts
    cell = (periods.offsets[owner] + place)[is_whole]
    return np.bincount(cell, signals.impulse_bytes[at_edges][is_whole], period_count).astype(np.float64, copy=False)


def _deviations(cells: list[Reals], periods: _Periods, r_io: Reals) -> tuple[Ints, Reals, Reals]:
    """Return how many periods count, sigma_vol and sigma_time (n each)."""
    volume, known_s, high_s = cells
    owner, count = periods.owner, len(r_io)
    length_s = periods.length_s[owner]
    counts_if = known_s >= _LEAST_KNOWN_RATIO * length_s * (1.0 - ROUNDING)
    at = np.flatnonzero(counts_if & (known_s > 0))
    owner, known_s, high_s = owner[at], known_s[at], high_s[at]
    volume = volume[at] * (length_s[at] / known_s)
    number = np.bincount(owner, minlength=count)
    largest = np.zeros(count)
    np.maximum.at(largest, owner, volume)
    ratio = volume / largest[owner]
    mean = np.bincount(owner, ratio, count) / number
    sigma_vol = np.sqrt(np.bincount(owner, np.square(ratio - mean[owner]), count) / number)
    apart = np.bincount(owner, np.square(high_s / known_s - r_io[owner]), count)
    return number.astype(np.int64, copy=False), sigma_vol, np.sqrt(apart / number)
