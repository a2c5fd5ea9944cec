"""Handle intervals of many scaled signals: group and split them, sum samples, and remove measurement gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, rows_of
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.comb import choose_fft_sizes

Floats = npt.NDArray[np.float32]

#: samples per batch: bounds memory use and keeps a batch in the CPU cache
_CHUNK_SAMPLES = 1 << 18
#: minimum number of columns of a batch
_MIN_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Intervals:
    """Half-open sample intervals of signals.

    Attributes
    ----------
    row : (k,)
        Signal to which each interval belongs.
    first, last : (k,)
        First sample, and the sample after the last.
    """

    row: Ints
    first: Ints
    last: Ints

    @property
    def lengths(self) -> Ints:
        """Number of samples in each interval (k)."""
        return self.last - self.first

    def group_by_fft_size(self) -> Iterator[tuple[Ints, int]]:
        """Yield positions and size of batches of intervals with the same FFT size."""
        yield from _batch_by_size(choose_fft_sizes(self.lengths))

    def group_by_width(self) -> Iterator[tuple[Ints, int]]:
        """Yield positions and width of batches of intervals of similar length; the width is sufficient for all."""
        exponent = np.ceil(np.log2(np.maximum(self.lengths, _MIN_WIDTH))).astype(np.int64)
        widths = 2**exponent
        yield from _batch_by_size(
            np.where(4 * self.lengths <= 3 * widths, np.maximum(3 * widths // 4, _MIN_WIDTH), widths)
        )

    def split_windows(self, level: int, selected: Ints) -> tuple[Intervals, Ints]:
        """Split intervals into windows that overlap by half.

        Parameters
        ----------
        level : int
            Number of halvings; each interval yields ``2**(level + 1) - 1`` windows.
        selected : (m,)
            Intervals to split.

        Returns
        -------
        windows : Intervals
        owner : (windows,)
            Interval to which each window belongs.
        """
        count = 2 ** (level + 1) - 1
        owner = np.repeat(selected, count)
        half = self.lengths[owner] / 2.0 ** (level + 1)
        start = self.first[owner] + np.tile(np.arange(count), len(selected)) * half
        first, last = (np.round(edge).astype(np.int64) for edge in (start, start + 2 * half))
        return Intervals(self.row[owner], first, last), owner


@dataclass(frozen=True)
class ScaledSignals:
    """Signals scaled to a maximum of 1, in single precision, which suffices for the tests.

    Attributes
    ----------
    padded : (n, samples + padding)
        Rates; 0 where not measured. Thanks to the zeros after the samples, an FFT may extend beyond the end of an
        interval.
    sample_count : int
        Number of samples without the padding.
    is_known : (n, samples) or None
        Whether each sample was measured; None if all were.
    spans : Intervals
        From the first to the last active sample of each signal; empty without activity.
    """

    padded: Floats
    sample_count: int
    is_known: Bools | None
    spans: Intervals

    @classmethod
    def from_signals(cls, signals: EvenSignals) -> ScaledSignals:
        """Scale evenly sampled signals; negative rates count as not measured."""
        rates, known, count = signals.bytes_per_s, None, signals.sample_count
        highest, lowest = rates.max(axis=1, initial=0.0), rates.min(axis=1, initial=0.0)
        # NaN fails both comparisons
        if not ((highest < np.inf) & (lowest >= 0)).all():
            known = np.isfinite(rates) & (rates >= 0)
            rates = np.where(known, rates, 0.0)
            highest = rates.max(axis=1, initial=0.0)
        padded = np.zeros((len(rates), count + int(choose_fft_sizes(np.array([count]))[0])), dtype=np.float32)
        with np.errstate(under="ignore"):
            scale = np.where(highest > 0, highest, 1.0)[:, None]
            np.divide(rates, scale, out=padded[:, :count], casting="same_kind")
        is_active = rates > 0
        rows, zeros = np.arange(len(rates)), np.zeros(len(rates), dtype=np.int64)
        first = is_active.argmax(axis=1) if count else zeros
        last = count - is_active[:, ::-1].argmax(axis=1) if count else zeros
        return cls(
            padded, count, known, Intervals(rows, np.where(highest > 0, first, 0), np.where(highest > 0, last, 0))
        )

    @property
    def rates(self) -> Floats:
        """Rates without the padding (n, samples)."""
        return self.padded[:, : self.sample_count]

    def select(self, rows: Ints) -> ScaledSignals:
        """Select signals by row; the spans are renumbered."""
        known = None if self.is_known is None else self.is_known[rows]
        spans = replace(rows_of(self.spans, rows), row=np.arange(len(rows)))
        return ScaledSignals(self.padded[rows], self.sample_count, known, spans)

    @cached_property
    def packed(self) -> PackedSignals:
        """The signals without their unmeasured samples."""
        is_whole = self.is_known is None or bool((self.count_measurements(self.spans) == self.spans.lengths).all())
        if is_whole or self.is_known is None:
            return PackedSignals(self, None, None)
        counts = self.is_known.sum(axis=1)
        is_used = np.arange(self.sample_count) < counts[:, None]
        padded = np.zeros_like(self.padded)
        padded[:, : self.sample_count][is_used] = self.rates[self.is_known]
        position = np.zeros((len(padded), self.sample_count), dtype=np.int64)
        position[is_used] = np.nonzero(self.is_known)[1]
        spans = _pack_intervals(self._known_sums, self.spans)
        return PackedSignals(ScaledSignals(padded, self.sample_count, None, spans), self._known_sums, position)

    def count_measurements(self, intervals: Intervals) -> Ints:
        """Count the measured samples in each interval (k)."""
        if self.is_known is None:
            return intervals.lengths
        result: Ints = _diff_cumulative(self._known_sums, intervals)
        return result

    def sum_volumes(self, intervals: Intervals) -> Reals:
        """Sum the rates in each interval (k)."""
        result: Reals = _diff_cumulative(self._volume_sums, intervals)
        return result

    def flat_positions(self, row: Ints, sample: Ints) -> Ints:
        """Convert (row, sample) to positions in the flat table of cumulative sums, which has one extra column (k)."""
        return row * (self.sample_count + 1) + sample

    def sum_between_edges(self, edges: Ints) -> Reals:
        """Sum the rates between consecutive pairs of flat edge positions (edges / 2)."""
        if not len(edges):
            return np.zeros(0)
        sums = self._volume_sums.ravel().take(edges)
        return sums[1::2] - sums[::2]

    def trim_idle(self, intervals: Intervals) -> Intervals:
        """Shrink intervals to their first and last active sample; inactive ones become empty."""
        rates, width = self.padded.ravel(), self.padded.shape[1]
        start = intervals.row * width
        is_idle = rates.take(start + intervals.first) <= 0
        is_idle |= rates.take(start + np.maximum(intervals.last - 1, intervals.first)) <= 0
        at = np.flatnonzero(is_idle)
        if not len(at):
            return intervals
        start, first, last = start[at], intervals.first.copy(), intervals.last.copy()
        before = np.searchsorted(self._active_positions, start + last[at]) - 1
        after = np.searchsorted(self._active_positions, start + first[at])
        first[at] = np.minimum(self._active_positions[after] - start, last[at])
        last[at] = np.maximum(self._active_positions[before] + 1 - start, first[at])
        return replace(intervals, first=first, last=last)

    @cached_property
    def _known_sums(self) -> Ints:
        sums = np.zeros((len(self.padded), self.sample_count + 1), dtype=np.int64)
        if self.is_known is not None:
            np.cumsum(self.is_known, axis=1, out=sums[:, 1:])
        return sums

    @cached_property
    def _volume_sums(self) -> Reals:
        sums = np.zeros((len(self.padded), self.sample_count + 1))
        sums[:, 1:] = self.rates
        return np.cumsum(sums, axis=1, out=sums)

    @cached_property
    def _active_positions(self) -> Ints:
        """Flat positions of active samples, with a sentinel at either end."""
        return np.concatenate([[-1], np.flatnonzero(self.padded > 0), [self.padded.size]])

    def extract(self, intervals: Intervals, size: int) -> tuple[Floats, Bools | None]:
        """Extract the samples of each interval into the rows of a matrix.

        Returns
        -------
        rates : (k, size)
            0 after the end of an interval.
        is_known : (k, size) or None
            Whether each sample was measured and is inside its interval; None if all are.
        """
        strides, width = self.padded.strides, self.padded.shape[1]
        windows = np.lib.stride_tricks.as_strided(
            self.padded, (len(self.padded), width - size + 1, size), (*strides, strides[1]), writeable=False
        )
        rates = windows[intervals.row, intervals.first]
        is_known = None
        if (intervals.lengths != size).any():
            is_known = np.arange(size) < intervals.lengths[:, None]
            rates *= is_known
        if self.is_known is not None:
            cells = np.minimum(intervals.first[:, None] + np.arange(size), self.sample_count - 1)
            known = self.is_known[intervals.row[:, None], cells]
            is_known = known if is_known is None else known & is_known
        return rates, is_known


@dataclass(frozen=True)
class PackedSignals:
    """Signals without their unmeasured samples, so that time stands still in a gap.

    A memoryless process stays memoryless when unmeasured time is removed: the rest of an idle gap does not depend on
    its length so far. So no pattern of measurement gaps can produce a rhythm, except through phases with an onset
    inside a gap (`is_after_gap`).

    Attributes
    ----------
    signals : ScaledSignals
        The packed signals.
    known_sums : (n, samples + 1) or None
        Number of measured samples before each sample; None if none is missing.
    position : (n, samples) or None
        Original sample of each packed sample; None if none is missing.
    """

    signals: ScaledSignals
    known_sums: Ints | None
    position: Ints | None

    def to_packed(self, to_packed: Intervals) -> Intervals:
        """Convert intervals of the signals to intervals of the packed signals (k)."""
        return to_packed if self.known_sums is None else _pack_intervals(self.known_sums, to_packed)

    def run_lengths(self, intervals: Intervals) -> Reals:
        """Mean length of runs of measured samples, averaged over samples, for each interval's signal (k)."""
        if self.known_sums is None:
            return np.zeros(len(intervals.row))
        return self._run_lengths[intervals.row]

    def is_after_gap(self, row: Ints, sample: Ints) -> Bools:
        """Whether a measurement gap directly precedes each packed sample (k)."""
        if self.position is None:
            return np.zeros(len(row), dtype=np.bool_)
        at = np.minimum(sample, self.position.shape[1] - 1)
        result: Bools = (at > 0) & (self.position[row, at] != self.position[row, np.maximum(at - 1, 0)] + 1)
        return result

    def spans_gap(self, row: Ints, first: Ints, last: Ints) -> Bools | None:
        """Whether a measurement gap lies between two packed samples (k); None if nothing is missing."""
        if self.position is None:
            return None
        high = np.maximum(self.signals.spans.last[row] - 1, 0)
        first, last = np.clip(first, 0, high), np.clip(last, 0, high)
        result: Bools = self.position[row, last] - self.position[row, first] != last - first
        return result

    def to_signal_positions(self, row: Ints, edge: Reals) -> Reals:
        """Convert fractional positions in the packed signals to positions in the signals (k)."""
        if self.position is None:
            return edge
        at = np.clip(np.floor(edge).astype(np.int64), 0, self.position.shape[1] - 1)
        result: Reals = self.position[row, at] + (edge - at)
        return result

    @cached_property
    def _run_lengths(self) -> Reals:
        assert self.position is not None
        rows, width = self.position.shape
        is_used = np.arange(width) < self.signals.spans.last[:, None]
        is_start = np.ones(self.position.shape, dtype=np.bool_)
        is_start[:, 1:] = np.diff(self.position, axis=1) != 1
        starts = np.flatnonzero(is_start | ~is_used)
        lengths = np.diff(starts, append=rows * width).astype(np.float64)
        owner, is_counted = starts // width, is_used.ravel()[starts]
        squares = np.bincount(owner[is_counted], lengths[is_counted] ** 2, rows)
        return squares / np.maximum(np.bincount(owner[is_counted], lengths[is_counted], rows), 1.0)


def _pack_intervals(known_sums: Ints, intervals: Intervals) -> Intervals:
    first, last = (known_sums[intervals.row, edge] for edge in (intervals.first, intervals.last))
    return Intervals(intervals.row, first, last)


def _batch_by_size(sizes: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield positions and size of batches of intervals of equal size."""
    for size in np.unique(sizes).tolist():
        positions = np.flatnonzero(sizes == size)
        step = max(1, _CHUNK_SAMPLES // size)
        for start in range(0, len(positions), step):
            yield positions[start : start + step], size


def _diff_cumulative(sums: npt.NDArray[Any], intervals: Intervals) -> npt.NDArray[Any]:
    """Difference of cumulative sums (n, samples + 1) between the ends of each interval (k)."""
    flat, start = sums.ravel(), intervals.row * sums.shape[1]
    result: npt.NDArray[Any] = flat.take(start + intervals.last) - flat.take(start + intervals.first)
    return result
