"""Pieces of many signals: from the first activity to the last, windows, and the samples of either side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, rows_of
from iosig.transforms.periods.controlled_lines import transform_sizes
from iosig.transforms.periods.even_signals import EvenSignals

Floats = npt.NDArray[np.float32]

#: samples of pieces that are worked on at a time: bounds the memory, and there is a time to each call
_CHUNK_SAMPLES = 1 << 18
#: pieces are not cut less wide
_LEAST_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces (k) of signals: of which one, its first sample, and the one behind its last."""

    row: Ints
    first: Ints
    last: Ints

    @property
    def lengths(self) -> Ints:
        """How many samples each has (k)."""
        return self.last - self.first

    def grouped(self) -> Iterator[tuple[Ints, int]]:
        """Yield the places of pieces that are transformed alike, about as many as fit the cache, and the size."""
        yield from _groups(transform_sizes(self.lengths))

    def alike(self) -> Iterator[tuple[Ints, int]]:
        """Yield the places of pieces of about one length, about as many as fit the cache, and as how wide they fit."""
        exponent = np.ceil(np.log2(np.maximum(self.lengths, _LEAST_WIDTH))).astype(np.int64)
        widths = 2**exponent
        yield from _groups(np.where(4 * self.lengths <= 3 * widths, np.maximum(3 * widths // 4, _LEAST_WIDTH), widths))

    def windows(self, level: int, chosen: Ints) -> tuple[Pieces, Ints]:
        """Return windows of some pieces, half of one over the next, and to which piece each belongs.

        level: how often they are halved; there are 2**(level + 1) - 1 of each.
        """
        count = 2 ** (level + 1) - 1
        owner = np.repeat(chosen, count)
        half = self.lengths[owner] / 2.0 ** (level + 1)
        start = self.first[owner] + np.tile(np.arange(count), len(chosen)) * half
        first, last = (np.round(edge).astype(np.int64) for edge in (start, start + 2 * half))
        return Pieces(self.row[owner], first, last), owner


@dataclass(frozen=True)
class Signals:
    """Signals (n, samples) as multiples of their highest rate, 0 where not known; is_known is None if all are.

    Single precision is enough to judge, and half as large. Behind the samples are zeros, as many as a transform may
    reach beyond its piece. spans: of each signal, from its first activity to its last; none without activity.
    """

    padded: Floats
    sample_count: int
    is_known: Bools | None
    spans: Pieces

    @classmethod
    def of(cls, signals: EvenSignals) -> Signals:
        """Return signals; a rate below 0 is no measurement."""
        rates, known, count = signals.bytes_per_s, None, signals.sample_count
        highest, lowest = rates.max(axis=1, initial=0.0), rates.min(axis=1, initial=0.0)
        # NaN is neither
        if not ((highest < np.inf) & (lowest >= 0)).all():
            known = np.isfinite(rates) & (rates >= 0)
            rates = np.where(known, rates, 0.0)
            highest = rates.max(axis=1, initial=0.0)
        padded = np.zeros((len(rates), count + int(transform_sizes(np.array([count]))[0])), dtype=np.float32)
        with np.errstate(under="ignore"):
            scale = np.where(highest > 0, highest, 1.0)[:, None]
            np.divide(rates, scale, out=padded[:, :count], casting="same_kind")
        is_active = rates > 0
        rows, none = np.arange(len(rates)), np.zeros(len(rates), dtype=np.int64)
        first = is_active.argmax(axis=1) if count else none
        last = count - is_active[:, ::-1].argmax(axis=1) if count else none
        return cls(padded, count, known, Pieces(rows, np.where(highest > 0, first, 0), np.where(highest > 0, last, 0)))

    @property
    def rates(self) -> Floats:
        """The samples (n, samples)."""
        return self.padded[:, : self.sample_count]

    def chosen(self, rows: Ints) -> Signals:
        """Return some of the signals."""
        known = None if self.is_known is None else self.is_known[rows]
        spans = replace(rows_of(self.spans, rows), row=np.arange(len(rows)))
        return Signals(self.padded[rows], self.sample_count, known, spans)

    @cached_property
    def packed(self) -> Packed:
        """The known samples of each signal, side by side."""
        is_whole = self.is_known is None or bool((self.known_counts(self.spans) == self.spans.lengths).all())
        if is_whole or self.is_known is None:
            return Packed(self, None, None)
        counts = self.is_known.sum(axis=1)
        is_own = np.arange(self.sample_count) < counts[:, None]
        padded = np.zeros_like(self.padded)
        padded[:, : self.sample_count][is_own] = self.rates[self.is_known]
        place = np.zeros((len(padded), self.sample_count), dtype=np.int64)
        place[is_own] = np.nonzero(self.is_known)[1]
        spans = _moved(self._known_sums, self.spans)
        return Packed(Signals(padded, self.sample_count, None, spans), self._known_sums, place)

    def known_counts(self, pieces: Pieces) -> Ints:
        """Return how many samples of each piece were measured (k)."""
        if self.is_known is None:
            return pieces.lengths
        found: Ints = _between(self._known_sums, pieces)
        return found

    def volumes(self, pieces: Pieces) -> Reals:
        """Return the sum of each piece's samples (k)."""
        found: Reals = _between(self._volume_sums, pieces)
        return found

    def places(self, row: Ints, sample: Ints) -> Ints:
        """Return the place of samples in a flat table that has one more of each signal (k)."""
        return row * (self.sample_count + 1) + sample

    def volumes_of(self, edges: Ints) -> Reals:
        """Return the sums of samples from each first place to the second one, not included, and so on (edges / 2)."""
        if not len(edges):
            return np.zeros(0)
        sums = self._volume_sums.ravel().take(edges)
        return sums[1::2] - sums[::2]

    def trimmed(self, pieces: Pieces) -> Pieces:
        """Return pieces from their first activity to their last; those without any have no samples."""
        rates, width = self.padded.ravel(), self.padded.shape[1]
        start = pieces.row * width
        is_idle = rates.take(start + pieces.first) <= 0
        is_idle |= rates.take(start + np.maximum(pieces.last - 1, pieces.first)) <= 0
        at = np.flatnonzero(is_idle)
        if not len(at):
            return pieces
        start, first, last = start[at], pieces.first.copy(), pieces.last.copy()
        before = np.searchsorted(self._active_places, start + last[at]) - 1
        after = np.searchsorted(self._active_places, start + first[at])
        first[at] = np.minimum(self._active_places[after] - start, last[at])
        last[at] = np.maximum(self._active_places[before] + 1 - start, first[at])
        return replace(pieces, first=first, last=last)

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
    def _active_places(self) -> Ints:
        """Return where there is activity in a flat table of the padded samples, between the places around the table."""
        return np.concatenate([[-1], np.flatnonzero(self.padded > 0), [self.padded.size]])

    def cut(self, pieces: Pieces, size: int) -> tuple[Floats, Bools | None]:
        """Return the samples of pieces from their start on (k, size), and which are known; neither behind their end."""
        strides, width = self.padded.strides, self.padded.shape[1]
        shown = np.lib.stride_tricks.as_strided(
            self.padded, (len(self.padded), width - size + 1, size), (*strides, strides[1]), writeable=False
        )
        rates = shown[pieces.row, pieces.first]
        is_known = None
        if (pieces.lengths != size).any():
            is_known = np.arange(size) < pieces.lengths[:, None]
            rates *= is_known
        if self.is_known is not None:
            cells = np.minimum(pieces.first[:, None] + np.arange(size), self.sample_count - 1)
            known = self.is_known[pieces.row[:, None], cells]
            is_known = known if is_known is None else known & is_known
        return rates, is_known


@dataclass(frozen=True)
class Packed:
    """Signals without what is not known of them: time stands still there.

    What has no memory has none then, either: how long an idle time lasts after a hole does not depend on how long it
    was before it. So no pattern of holes makes a rhythm, but for phases that begin in a hole: nobody knows when.
    signals: packed. known_sums (n, samples + 1): how many known samples are before each; place (n, samples): where
    each packed one is from. Both None where nothing is missing.
    """

    signals: Signals
    known_sums: Ints | None
    place: Ints | None

    def pieces(self, pieces: Pieces) -> Pieces:
        """Return where pieces of the signals are (k)."""
        return pieces if self.known_sums is None else _moved(self.known_sums, pieces)

    def stretches(self, pieces: Pieces) -> Reals:
        """Return how many samples are known side by side, the mean over samples, in the signals of pieces (k)."""
        if self.known_sums is None:
            return np.zeros(len(pieces.row))
        return self._stretches[pieces.row]

    def is_torn(self, row: Ints, sample: Ints) -> Bools:
        """Return whether something is missing right before packed samples (k)."""
        if self.place is None:
            return np.zeros(len(row), dtype=np.bool_)
        at = np.minimum(sample, self.place.shape[1] - 1)
        found: Bools = (at > 0) & (self.place[row, at] != self.place[row, np.maximum(at - 1, 0)] + 1)
        return found

    def is_torn_within(self, row: Ints, first: Ints, last: Ints) -> Bools | None:
        """Return whether something is missing between packed samples (k); None if nothing ever is."""
        if self.place is None:
            return None
        high = np.maximum(self.signals.spans.last[row] - 1, 0)
        first, last = np.clip(first, 0, high), np.clip(last, 0, high)
        found: Bools = self.place[row, last] - self.place[row, first] != last - first
        return found

    def unpacked(self, row: Ints, edge: Reals) -> Reals:
        """Return where edges between packed samples are in the signals (k)."""
        if self.place is None:
            return edge
        at = np.clip(np.floor(edge).astype(np.int64), 0, self.place.shape[1] - 1)
        found: Reals = self.place[row, at] + (edge - at)
        return found

    @cached_property
    def _stretches(self) -> Reals:
        assert self.place is not None
        rows, width = self.place.shape
        is_own = np.arange(width) < self.signals.spans.last[:, None]
        is_start = np.ones(self.place.shape, dtype=np.bool_)
        is_start[:, 1:] = np.diff(self.place, axis=1) != 1
        starts = np.flatnonzero(is_start | ~is_own)
        lengths = np.diff(starts, append=rows * width).astype(np.float64)
        owner, is_kept = starts // width, is_own.ravel()[starts]
        squares = np.bincount(owner[is_kept], lengths[is_kept] ** 2, rows)
        return squares / np.maximum(np.bincount(owner[is_kept], lengths[is_kept], rows), 1.0)


def _moved(known_sums: Ints, pieces: Pieces) -> Pieces:
    first, last = (known_sums[pieces.row, edge] for edge in (pieces.first, pieces.last))
    return Pieces(pieces.row, first, last)


def _groups(sizes: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield the places of each size (k) group after group, and the size."""
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        step = max(1, _CHUNK_SAMPLES // size)
        for start in range(0, len(places), step):
            yield places[start : start + step], size


def _between(sums: npt.NDArray[Any], pieces: Pieces) -> npt.NDArray[Any]:
    """Return what sums from the start (n, samples + 1) are more at the end of pieces than at their start (k)."""
    flat, start = sums.ravel(), pieces.row * sums.shape[1]
    found: npt.NDArray[Any] = flat.take(start + pieces.last) - flat.take(start + pieces.first)
    return found
