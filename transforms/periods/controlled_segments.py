"""Several periods in one signal: one after another, or a fast rhythm on a slow one.

A claim divides its signal: what is before it, what is after it, and what is left within it when the bursts of its
rhythm are cut out. If these have no memory, no piece of them has any: nothing is remembered across what was cut out
(`controlled_pieces.Packed`). So each piece is judged as a signal of its own, and what is claimed there divides it
again.

The level is shared. A claim hands its own level on to the pieces that it makes, an equal share to each that is judged,
and only a claim has pieces. Of a signal that has memory in some stretches only, the pieces that have none, and are
judged, have no more than the whole level together: so the probability that anything is claimed of what has no memory
is that of one claim alone (`ControlledParams.false_alarm_probability`), however many segments there are. The
probability that is told of a segment counts the share: it is to be compared with the same level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, beside, cut, offsets_of, pieces_of, rows_of
from iosig.transforms.periods import controlled
from iosig.transforms.periods.answers import Claims, Detections, Segments, gathered
from iosig.transforms.periods.controlled import ControlledParams
from iosig.transforms.periods.controlled_bursts import bursts
from iosig.transforms.periods.even_signals import by_length

#: pieces of which fewer samples are known are not judged; claims are divided so often at most
_LEAST_SAMPLES, _ROUNDS = 32, 4
#: a segment has at least so large a share of the signal's bytes, and so many cycles: two, but for rounding
_LEAST_BYTES_RATIO, _LEAST_CYCLES = 1e-3, 2 - 1e-9
#: What is left within a rhythm and comes as often as it, or up to so many times as often or as seldom, is what was left
#: of it. Two periods are the same if they differ by no more than this.
_MOST_TIMES, _SAME_RATIO = 3.0, 0.1
#: waves cannot be cut out: bursts are no longer than this share of a cycle
_LARGEST_DUTY = 1 / 3
#: pieces that are judged together differ in length by no more than this
_PADDING_RATIO = 0.25
#: pieces of claims are few: short ones are judged together, since a group costs as much as a dozen of them
_SHORT_SAMPLES = 1024


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces (k) of signals, each a signal of its own.

    signal (k): of which. level (k): the probability of a false alarm that is left to each. outer_hz (k): how often the
    rhythm comes whose bursts were cut out; NaN where none were.
    """

    signal: Ints
    sampling_hz: Reals
    started_s: Reals
    level: Reals
    outer_hz: Reals

    def places(self, found: Detections, counts: Ints) -> tuple[Ints, Ints]:
        """Return the first sample of the time in which each is periodic, and the one behind the last (k)."""
        edges = [(edge - self.started_s) * self.sampling_hz for edge in (found.window_start_s, found.window_end_s)]
        first, last = (np.clip(np.rint(edge), 0, counts).astype(np.int64) for edge in edges)
        return first, np.maximum(first, last)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """Pieces (k) that are periodic: what was found, the samples of that time, and which of them are of bursts."""

    pieces: _Pieces
    found: Detections
    windows: Ragged
    width_s: Reals
    is_burst: Bools

    @classmethod
    def of(cls, pieces: _Pieces, values: Ragged, found: Detections) -> _Claimed:
        """Return pieces with their bursts."""
        first, last = pieces.places(found, values.counts)
        windows = cut(values.values, values.offsets[:-1] + first, values.offsets[:-1] + last - 1)
        width, is_burst = np.full(len(first), np.nan), np.zeros(len(windows.values), dtype=np.bool_)
        for place, group in by_length(windows, pieces.sampling_hz, pieces.started_s, _PADDING_RATIO, _SHORT_SAMPLES):
            for rows, part in group.chunks():
                at = place[rows]
                each = bursts(part, found.frequency_hz[at] / pieces.sampling_hz[at])
                width[at] = each.width
                is_own = np.arange(part.sample_count) < windows.counts[at][:, None]
                is_burst[windows.places_in(at)] = each.is_burst[is_own]
        return cls(pieces, found, windows, width / pieces.sampling_hz, is_burst)

    @property
    def volume_bytes(self) -> Reals:
        """What each moves in that time (k)."""
        return _sums(self.windows) / self.pieces.sampling_hz


def sought(
    found: Detections, samples: Ragged, sampling_hz: Reals, started_s: Reals, params: ControlledParams
) -> tuple[Detections, Segments]:
    """Return the answers for signals (n), each for the segment with most bytes, and all of their segments.

    found: what `controlled.detect` says with the same parameters. samples: in bytes per second, NaN where not measured.
    sampling_hz, started_s (n).
    """
    rows = np.flatnonzero(found.is_periodic)
    level = np.full(len(rows), params.false_alarm_probability)
    pieces = _Pieces(rows, sampling_hz[rows], started_s[rows], level, np.full(len(rows), np.nan))
    values, total = pieces_of(samples, rows), _sums(samples)
    rounds = [_Claimed.of(pieces, values, found.chosen(rows))]
    while len(rounds) <= _ROUNDS and len(rounds[-1].pieces.signal):
        pieces, values = _divided(rounds[-1], values, total)
        pieces, values, claims = _judged(pieces, values, total, params)
        rounds.append(_Claimed.of(pieces, values, claims))
    told = _Found.of(rounds, params)
    return told.answers(found, started_s, total / sampling_hz), told.segments(found.signal_count)


# ---- pieces of claims


def _divided(claimed: _Claimed, values: Ragged, total: Reals) -> tuple[_Pieces, Ragged]:
    """Return what is before claims, after them, and left within them, where it may be judged.

    total: of the samples of each whole signal.
    """
    pieces, count = claimed.pieces, len(claimed.pieces.signal)
    first, last = pieces.places(claimed.found, values.counts)
    start, end = values.offsets[:-1], values.offsets[1:]
    before, after = cut(values.values, start, start + first - 1), cut(values.values, start + last, end - 1)
    parts = (before, after, _left_within(claimed))
    made = beside(parts)
    begun = np.concatenate([np.zeros_like(first), last, first]) / np.tile(pieces.sampling_hz, 3)
    known = np.bincount(made.owner[np.isfinite(made.values)], minlength=3 * count)
    owner = np.tile(np.arange(count), 3)
    is_judged = (known >= _LEAST_SAMPLES) & (_sums(made) >= _LEAST_BYTES_RATIO * total[pieces.signal[owner]])
    shares = np.bincount(owner[is_judged], minlength=count)
    at = np.flatnonzero(is_judged)
    of_claim = owner[at]
    outer = np.where(at >= 2 * count, claimed.found.frequency_hz[of_claim], pieces.outer_hz[of_claim])
    told = replace(
        rows_of(pieces, of_claim),
        started_s=pieces.started_s[of_claim] + begun[at],
        level=pieces.level[of_claim] / shares[of_claim],
        outer_hz=outer,
    )
    return told, pieces_of(made, at)


def _left_within(claimed: _Claimed) -> Ragged:
    """Return the samples of claims without those of bursts; none where bursts take much of the time."""
    windows, duty = claimed.windows, claimed.width_s * claimed.found.frequency_hz
    is_kept = (duty <= _LARGEST_DUTY)[windows.owner] & ~claimed.is_burst
    return Ragged(np.where(is_kept, windows.values, np.nan), windows.offsets)


def _judged(
    pieces: _Pieces, values: Ragged, total: Reals, params: ControlledParams
) -> tuple[_Pieces, Ragged, Detections]:
    """Return the pieces that are periodic, their samples, and what was found."""
    parts, places = [], []
    # what is left within a rhythm is judged as a whole: its time is known
    is_within = np.isfinite(pieces.outer_hz)
    for level, within in np.unique(np.stack([pieces.level, is_within], axis=1), axis=0).tolist():
        own = np.flatnonzero((pieces.level == level) & (is_within == within))
        levels = 0 if within else params.window_levels
        of_level = replace(params, false_alarm_probability=level, window_levels=levels)
        for place, group in by_length(
            pieces_of(values, own), pieces.sampling_hz[own], pieces.started_s[own], _PADDING_RATIO, _SHORT_SAMPLES
        ):
            parts.append(controlled.detect(group, of_level))
            places.append(own[place])
    found = gathered(parts, places)
    times = found.frequency_hz / pieces.outer_hz
    with np.errstate(invalid="ignore", divide="ignore"):
        cycles = (found.window_end_s - found.window_start_s) * found.frequency_hz
        ratio = found.told.window_bytes_ratio * _sums(values) / total[pieces.signal]
        times = np.maximum(times, 1.0 / times)
        is_same = (times < _MOST_TIMES + 0.5) & (np.abs(times / np.rint(times) - 1.0) <= _SAME_RATIO)
    at = np.flatnonzero(found.is_periodic & (cycles >= _LEAST_CYCLES) & (ratio >= _LEAST_BYTES_RATIO) & ~is_same)
    return rows_of(pieces, at), pieces_of(values, at), found.chosen(at)


def _sums(pieces: Ragged) -> Reals:
    """Return the sum of each piece's known samples."""
    known = np.where(np.isfinite(pieces.values), pieces.values, 0.0)
    return np.bincount(pieces.owner, known, len(pieces.counts)).astype(np.float64, copy=False)


# ---- all of them


@dataclass(frozen=True, slots=True)
class _Found:
    """Segments (k) of signals, in the order in which they were found: of which, and from when on it was judged."""

    claims: Detections
    signal: Ints
    judged_from_s: Reals
    is_first: Bools
    volume_bytes: Reals
    burst_width_s: Reals

    @classmethod
    def of(cls, rounds: list[_Claimed], params: ControlledParams) -> _Found:
        """Return those of all rounds; their probabilities count the share of the level that each had."""
        counts = [len(each.width_s) for each in rounds]
        claims = gathered([each.found for each in rounds], np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1]))
        share = np.concatenate([each.pieces.level for each in rounds]) / params.false_alarm_probability
        return cls(
            replace(claims, false_alarm_probability=np.minimum(claims.false_alarm_probability / share, 1.0)),
            np.concatenate([each.pieces.signal for each in rounds]),
            np.concatenate([each.pieces.started_s for each in rounds]),
            np.arange(sum(counts)) < counts[0],
            np.concatenate([each.volume_bytes for each in rounds]),
            np.concatenate([each.width_s for each in rounds]),
        )

    @property
    def main(self) -> Ints:
        """The place of each signal's segment with most bytes; of equal ones the first that was found."""
        order = np.lexsort((~self.is_first, -self.volume_bytes, self.signal))
        return order[np.flatnonzero(np.diff(self.signal[order], prepend=-1))]

    def segments(self, signal_count: int) -> Segments:
        """Return them in order of time."""
        claims, is_main = self.claims, np.zeros(len(self.signal), dtype=np.bool_)
        is_main[self.main] = True
        order = np.lexsort((claims.window_start_s, self.signal))
        return Segments(
            claims.window_start_s[order],
            claims.window_end_s[order],
            claims.frequency_hz[order],
            claims.told.period_error_s[order],
            claims.confidence[order],
            self.volume_bytes[order],
            self.burst_width_s[order],
            claims.false_alarm_probability[order],
            is_main[order],
            offsets_of(np.bincount(self.signal, minlength=signal_count)),
        )

    def answers(self, found: Detections, started_s: Reals, total_bytes: Reals) -> Detections:
        """Return answers for signals (n) with those of segments that were found later, and have more bytes."""
        later = self.main[~self.is_first[self.main]]
        if not len(later):
            return found
        at, told = self.signal[later], self.claims.chosen(later)
        # phases count from the signal's start
        listed = told.candidates
        turns = (self.judged_from_s[later] - started_s[at])[listed.owner] * listed.frequency_hz
        phase = np.angle(np.exp(1j * (listed.phase_rad - 2.0 * np.pi * turns)))
        ratio = np.minimum(self.volume_bytes[later] / total_bytes[at], 1.0)
        told = replace(
            told, candidates=replace(listed, phase_rad=phase), claims=Claims(told.told.period_error_s, ratio)
        )
        rest = np.setdiff1d(np.arange(found.signal_count), at)
        return gathered([found.chosen(rest), told], [rest, at])
