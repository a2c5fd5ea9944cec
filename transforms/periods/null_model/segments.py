"""Find several periods in one signal: consecutive ones, or a fast rhythm on top of a slow one.

A claim is a period that a test found, with its extent. It splits its signal into the part before, the part after, and
the residual: the extent without the bursts of the claimed rhythm. A part of a memoryless signal is memoryless, too,
because nothing is remembered across removed samples (`intervals.PackedSignals`). So each part is tested as a signal of
its own, and a claim in a part splits it again.

The family-wise error rate stays at the significance level: the level of a claim is divided equally among its tested
parts, and only claims have parts. For any number of segments, the probability of a claim on a memoryless part does not
exceed `NullModelParams.false_alarm_probability`. The p-value of a part is divided by the part's fraction of the level,
so that all can be compared with the same level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, concatenate_pieces, cut, offsets_of, pieces_of, rows_of
from iosig.transforms.periods.interface.detections import Detections, PeriodDetails, Segments, gather
from iosig.transforms.periods.interface.even_signals import group_by_length
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.null_model.bursts import find_bursts
from iosig.transforms.periods.null_model.params import NullModelParams


@dataclass(frozen=True, slots=True)
class SegmentParams:
    """Parameters of the search for segments; they are not from a publication.

    Of signals with a rhythm before or around a memoryless part (89 generators, 200 and 1,500 samples, 100 draws, seed
    5), 0.18 % have a false claim on the memoryless part.

    Attributes
    ----------
    min_samples : int
        Minimum number of measured samples in a part.
    max_rounds : int
        Maximum number of rounds in which claims are split.
    min_volume_ratio, min_cycles : float
        Minimum volume of a segment, as a fraction of the signal's volume, and minimum number of cycles: 2, with a
        margin for rounding.
    max_residual_ratio : float
        Ratio up to which a multiple or fraction of the removed period counts as its remainder in the residual.
    max_period_error : float
        Relative difference up to which two periods are equal.
    max_duty : float
        Maximum width of removable bursts, as a fraction of a cycle.
    """

    min_samples: int = 32
    max_rounds: int = 4
    min_volume_ratio: float = 1e-3
    min_cycles: float = 2 - 1e-9
    max_residual_ratio: float = 3.0
    max_period_error: float = 0.1
    max_duty: float = 1 / 3


_PARAMS = SegmentParams()
#: maximum relative difference in length of parts that are padded and tested together
_PADDING_RATIO = 0.25
#: maximum number of samples of parts that form one group, since a group costs as much as a dozen parts
_SHORT_SAMPLES = 1024


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of signals (k); each part is tested as a separate signal.

    `signal` (k): signal of each part. `level` (k): significance level of the part. `outer_hz` (k): frequency of the
    rhythm that was removed; NaN if none.
    """

    signal: Ints
    sampling_hz: Reals
    start_s: Reals
    level: Reals
    outer_hz: Reals

    def sample_ranges(self, detections: Detections, counts: Ints) -> tuple[Ints, Ints]:
        """Return the first sample of each detected window, and the sample after its last (k)."""
        edges = [
            (edge - self.start_s) * self.sampling_hz for edge in (detections.window_start_s, detections.window_end_s)
        ]
        first, last = (np.clip(np.rint(edge), 0, counts).astype(np.int64) for edge in edges)
        return first, np.maximum(first, last)


@dataclass(frozen=True, slots=True)
class _Claims:
    """Periodic parts (k) with detections, samples within their windows, burst widths, and a mask of burst samples."""

    parts: _Parts
    detections: Detections
    windows: Ragged
    width_s: Reals
    is_burst: Bools

    @classmethod
    def from_detections(cls, parts: _Parts, values: Ragged, detections: Detections) -> _Claims:
        """Find the bursts of periodic parts."""
        first, last = parts.sample_ranges(detections, values.counts)
        windows = cut(values.values, values.offsets[:-1] + first, values.offsets[:-1] + last - 1)
        width, is_burst = np.full(len(first), np.nan), np.zeros(len(windows.values), dtype=np.bool_)
        for positions, group in group_by_length(
            windows, parts.sampling_hz, parts.start_s, _PADDING_RATIO, _SHORT_SAMPLES
        ):
            for rows, part in group.iter_chunks():
                at = positions[rows]
                group_bursts = find_bursts(part, detections.frequency_hz[at] / parts.sampling_hz[at])
                width[at] = group_bursts.width_samples
                is_inside = np.arange(part.sample_count) < windows.counts[at][:, None]
                is_burst[windows.places_in(at)] = group_bursts.is_burst[is_inside]
        return cls(parts, detections, windows, width / parts.sampling_hz, is_burst)

    @property
    def volume_bytes(self) -> Reals:
        """Volume within each window (k)."""
        return _sum_samples(self.windows) / self.parts.sampling_hz


def find_segments(
    detections: Detections, samples: Ragged, sampling_hz: Reals, start_s: Reals, params: NullModelParams
) -> tuple[Detections, Segments]:
    """Find all periodic segments of signals.

    Parameters
    ----------
    detections : Detections
        Result of `detection.detect` with the same parameters, for n signals.
    samples : Ragged
        Samples of n signals, in bytes per second; NaN where not measured.
    sampling_hz, start_s : (n,)
        Sampling frequency, and time of the first sample.
    params : NullModelParams

    Returns
    -------
    detections : Detections
        For each signal, the segment with the largest volume.
    segments : Segments
        All segments.
    """
    rows = np.flatnonzero(detections.is_periodic)
    level = np.full(len(rows), params.false_alarm_probability)
    parts = _Parts(rows, sampling_hz[rows], start_s[rows], level, np.full(len(rows), np.nan))
    values, total = pieces_of(samples, rows), _sum_samples(samples)
    rounds = [_Claims.from_detections(parts, values, detections.select(rows))]
    while len(rounds) <= _PARAMS.max_rounds and len(rounds[-1].parts.signal):
        parts, values = _split(rounds[-1], values, total)
        parts, values, claims = _test_parts(parts, values, total, params)
        rounds.append(_Claims.from_detections(parts, values, claims))
    table = _SegmentTable.from_rounds(rounds, params)
    return table.update_detections(detections, start_s, total / sampling_hz), table.segments(detections.signal_count)


# ---- parts of claims


def _split(claims: _Claims, values: Ragged, total: Reals) -> tuple[_Parts, Ragged]:
    """Split signals into the testable parts before, after and within claims.

    `total` (n): sum of the samples of each whole signal.
    """
    parts, count = claims.parts, len(claims.parts.signal)
    first, last = parts.sample_ranges(claims.detections, values.counts)
    start, end = values.offsets[:-1], values.offsets[1:]
    before, after = cut(values.values, start, start + first - 1), cut(values.values, start + last, end - 1)
    pieces = (before, after, _subtract_bursts(claims))
    candidates = concatenate_pieces(pieces)
    start_offset_s = np.concatenate([np.zeros_like(first), last, first]) / np.tile(parts.sampling_hz, 3)
    known = np.bincount(candidates.owner[np.isfinite(candidates.values)], minlength=3 * count)
    owner = np.tile(np.arange(count), 3)
    is_testable = (known >= _PARAMS.min_samples) & (
        _sum_samples(candidates) >= _PARAMS.min_volume_ratio * total[parts.signal[owner]]
    )
    shares = np.bincount(owner[is_testable], minlength=count)
    at = np.flatnonzero(is_testable)
    claim = owner[at]
    outer_hz = np.where(at >= 2 * count, claims.detections.frequency_hz[claim], parts.outer_hz[claim])
    tested = replace(
        rows_of(parts, claim),
        start_s=parts.start_s[claim] + start_offset_s[at],
        level=parts.level[claim] / shares[claim],
        outer_hz=outer_hz,
    )
    return tested, pieces_of(candidates, at)


def _subtract_bursts(claims: _Claims) -> Ragged:
    """Remove the bursts from the samples of claims; if bursts take much of the cycle, no samples remain."""
    windows, duty = claims.windows, claims.width_s * claims.detections.frequency_hz
    is_kept = (duty <= _PARAMS.max_duty)[windows.owner] & ~claims.is_burst
    return Ragged(np.where(is_kept, windows.values, np.nan), windows.offsets)


def _test_parts(
    parts: _Parts, values: Ragged, total: Reals, params: NullModelParams
) -> tuple[_Parts, Ragged, Detections]:
    """Test parts; return those that are periodic, their samples, and the detections."""
    results, positions = [], []
    # a residual is tested as a whole, without windows, since its extent is known
    is_residual = np.isfinite(parts.outer_hz)
    for level, residual in np.unique(np.stack([parts.level, is_residual], axis=1), axis=0).tolist():
        rows = np.flatnonzero((parts.level == level) & (is_residual == residual))
        levels = 0 if residual else params.window_levels
        level_params = replace(params, false_alarm_probability=level, window_levels=levels)
        for position, group in group_by_length(
            pieces_of(values, rows), parts.sampling_hz[rows], parts.start_s[rows], _PADDING_RATIO, _SHORT_SAMPLES
        ):
            results.append(detection.detect(group, level_params))
            positions.append(rows[position])
    detections = gather(results, positions)
    ratio_to_outer = detections.frequency_hz / parts.outer_hz
    with np.errstate(invalid="ignore", divide="ignore"):
        cycles = (detections.window_end_s - detections.window_start_s) * detections.frequency_hz
        volume_ratio = detections.details_or_nan.window_bytes_ratio * _sum_samples(values) / total[parts.signal]
        ratio_to_outer = np.maximum(ratio_to_outer, 1.0 / ratio_to_outer)
        is_remainder = (ratio_to_outer < _PARAMS.max_residual_ratio + 0.5) & (
            np.abs(ratio_to_outer / np.rint(ratio_to_outer) - 1.0) <= _PARAMS.max_period_error
        )
    at = np.flatnonzero(
        detections.is_periodic
        & (cycles >= _PARAMS.min_cycles)
        & (volume_ratio >= _PARAMS.min_volume_ratio)
        & ~is_remainder
    )
    return rows_of(parts, at), pieces_of(values, at), detections.select(at)


def _sum_samples(parts: Ragged) -> Reals:
    """Sum the measured samples of each part."""
    known = np.where(np.isfinite(parts.values), parts.values, 0.0)
    return np.bincount(parts.owner, known, len(parts.counts)).astype(np.float64, copy=False)


# ---- all segments


@dataclass(frozen=True, slots=True)
class _SegmentTable:
    """Segments (k) in the order of detection, with their signal, and the start of the tested part."""

    claims: Detections
    signal: Ints
    part_start_s: Reals
    is_first: Bools
    volume_bytes: Reals
    burst_width_s: Reals

    @classmethod
    def from_rounds(cls, rounds: list[_Claims], params: NullModelParams) -> _SegmentTable:
        """Collect the claims of all rounds, with probabilities adjusted for their fraction of the level."""
        counts = [len(claims_of_round.width_s) for claims_of_round in rounds]
        claims = gather(
            [claims_of_round.detections for claims_of_round in rounds],
            np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1]),
        )
        share = (
            np.concatenate([claims_of_round.parts.level for claims_of_round in rounds]) / params.false_alarm_probability
        )
        return cls(
            replace(claims, false_alarm_probability=np.minimum(claims.false_alarm_probability / share, 1.0)),
            np.concatenate([claims_of_round.parts.signal for claims_of_round in rounds]),
            np.concatenate([claims_of_round.parts.start_s for claims_of_round in rounds]),
            np.arange(sum(counts)) < counts[0],
            np.concatenate([claims_of_round.volume_bytes for claims_of_round in rounds]),
            np.concatenate([claims_of_round.width_s for claims_of_round in rounds]),
        )

    @property
    def main(self) -> Ints:
        """Position of each signal's segment with the largest volume; the first one found if volumes are equal."""
        order = np.lexsort((~self.is_first, -self.volume_bytes, self.signal))
        return order[np.flatnonzero(np.diff(self.signal[order], prepend=-1))]

    def segments(self, signal_count: int) -> Segments:
        """Return the segments in chronological order."""
        claims, is_main = self.claims, np.zeros(len(self.signal), dtype=np.bool_)
        is_main[self.main] = True
        order = np.lexsort((claims.window_start_s, self.signal))
        return Segments(
            claims.window_start_s[order],
            claims.window_end_s[order],
            claims.frequency_hz[order],
            claims.details_or_nan.period_error_s[order],
            claims.confidence[order],
            self.volume_bytes[order],
            self.burst_width_s[order],
            claims.false_alarm_probability[order],
            is_main[order],
            offsets_of(np.bincount(self.signal, minlength=signal_count)),
        )

    def update_detections(self, detections: Detections, start_s: Reals, total_bytes: Reals) -> Detections:
        """Replace the detections (n) of signals with a largest segment that a later round found."""
        later = self.main[~self.is_first[self.main]]
        if not len(later):
            return detections
        signals, selected = self.signal[later], self.claims.select(later)
        # phases are relative to the start of the signal
        candidates = selected.candidates
        turns = (self.part_start_s[later] - start_s[signals])[candidates.owner] * candidates.frequency_hz
        phase = np.angle(np.exp(1j * (candidates.phase_rad - 2.0 * np.pi * turns)))
        ratio = np.minimum(self.volume_bytes[later] / total_bytes[signals], 1.0)
        selected = replace(
            selected,
            candidates=replace(candidates, phase_rad=phase),
            details=PeriodDetails(selected.details_or_nan.period_error_s, ratio),
        )
        rest = np.setdiff1d(np.arange(detections.signal_count), signals)
        return gather([detections.select(rest), selected], [rest, signals])
