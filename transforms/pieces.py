"""Pieces of many signals: from the first activity to the last, windows, and the samples of either side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from transforms.combs import transform_sizes
from transforms.sampled import CHUNK_SAMPLES, Sampled

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


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

    def chosen(self, at: Ints | Bools) -> Pieces:
        """Return some of them."""
        return Pieces(self.row[at], self.first[at], self.last[at])

    def grouped(self) -> Iterator[tuple[Ints, int]]:
        """Yield the places of pieces that are transformed alike, about as many as fit the cache, and the size."""
        sizes = transform_sizes(self.lengths)
        for size in np.unique(sizes).tolist():
            places = np.flatnonzero(sizes == size)
            step = max(1, CHUNK_SAMPLES // size)
            for start in range(0, len(places), step):
                yield places[start : start + step], size

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


@dataclass(frozen=True, slots=True)
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
    def of(cls, sampled: Sampled) -> Signals:
        """Return signals; a rate below 0 is no measurement."""
        rates, known, count = sampled.bytes_per_s, None, sampled.sample_count
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
        spans = replace(self.spans.chosen(rows), row=np.arange(len(rows)))
        return Signals(self.padded[rows], self.sample_count, known, spans)

    def known_counts(self, pieces: Pieces) -> Ints:
        """Return how many samples of each piece were measured (k)."""
        if self.is_known is None:
            return pieces.lengths
        sums = np.zeros((len(self.padded), self.sample_count + 1), dtype=np.int64)
        np.cumsum(self.is_known, axis=1, out=sums[:, 1:])
        found: Ints = sums[pieces.row, pieces.last] - sums[pieces.row, pieces.first]
        return found

    def volumes(self, pieces: Pieces) -> Reals:
        """Return the sum of each piece's samples (k)."""
        sums = np.zeros((len(self.padded), self.sample_count + 1))
        np.cumsum(self.rates, axis=1, dtype=np.float64, out=sums[:, 1:])
        found: Reals = sums[pieces.row, pieces.last] - sums[pieces.row, pieces.first]
        return found

    def trimmed(self, pieces: Pieces) -> Pieces:
        """Return pieces from their first activity to their last; those without any have no samples."""
        width = self.sample_count
        before = np.full((len(self.padded), width + 1), -1)
        after = np.full((len(self.padded), width + 1), width)
        place = np.arange(width)
        is_active = self.rates > 0
        np.maximum.accumulate(np.where(is_active, place, -1), axis=1, out=before[:, 1:])
        after[:, :-1] = np.minimum.accumulate(np.where(is_active, place, width)[:, ::-1], axis=1)[:, ::-1]
        first = np.minimum(after[pieces.row, pieces.first], pieces.last)
        return replace(pieces, first=first, last=np.maximum(before[pieces.row, pieces.last] + 1, first))

    def cut(self, pieces: Pieces, size: int) -> tuple[Floats, Bools | None]:
        """Return the samples of pieces from their start on (k, size), and which are known; neither behind their end."""
        shown = np.lib.stride_tricks.sliding_window_view(self.padded, size, axis=1)
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
