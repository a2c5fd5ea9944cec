"""Find and merge the I/O phases of many signals: runs of samples above a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, offsets_of, owners

Floats = npt.NDArray[np.floating[Any]]

#: an excess over the mean below this fraction is treated as single-precision rounding error
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Phases(InPieces):
    """I/O phases of n signals, in chronological order; those of signal i are ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    first, last : (phases,)
        First sample, and the sample after the last.
    volume : (phases,)
        Sum of the phase's samples.
    offsets : (n + 1,)
        Number of each signal's first phase, then the number of all phases.
    is_onset_censored : (phases,) or None
        Whether a measurement gap directly precedes the phase, so that its onset is unknown; None if no onset is.
    onset : (phases,) or None
        Onset in samples of the original clock, which keeps running through measurement gaps; None if equal to `first`.
    """

    first: Ints
    last: Ints
    volume: Reals
    offsets: Ints
    is_onset_censored: Bools | None = None
    onset: Ints | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Phases]) -> Phases:
        """Concatenate the phases of several sets of signals.

        Either all or none of the parts know `is_onset_censored`; none has `onset`.
        """
        censored = [part.is_onset_censored for part in parts if part.is_onset_censored is not None]
        assert all(part.onset is None for part in parts)
        assert len(censored) in (0, len(parts))
        return cls(
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
            np.concatenate([part.volume for part in parts]),
            offsets_of(np.concatenate([part.counts for part in parts])),
            np.concatenate(censored) if censored else None,
        )

    @property
    def signal_count(self) -> int:
        """Number of signals in this batch."""
        return len(self.offsets) - 1

    @cached_property
    def owner(self) -> Ints:
        """Signal to which each phase belongs (phases)."""
        return owners(self.offsets)

    @property
    def effective_counts(self) -> Reals:
        """Effective number of phases, ``(sum v)**2 / sum v**2`` over the volumes v (n); 0 without phases."""
        squares = self._square_sums
        return np.divide(self._volume_sums**2, squares, out=np.zeros(len(squares)), where=squares > 0)

    @property
    def typical_volume(self) -> Reals:
        """Volume-weighted mean volume of the phases (n); 0 without phases."""
        volume = self._volume_sums
        return np.divide(self._square_sums, volume, out=np.zeros(len(volume)), where=volume > 0)

    @property
    def typical_length(self) -> Reals:
        """Volume-weighted mean length of the phases, in samples (n); 0 without phases."""
        volume = self._volume_sums
        lengths = self._sums(self.volume * (self.last - self.first))
        return np.divide(lengths, volume, out=np.zeros(len(volume)), where=volume > 0)

    def select(self, is_selected: Bools) -> Phases:
        """Select phases by mask; the number of signals stays."""
        counts = np.bincount(self.owner[is_selected], minlength=self.signal_count)
        offsets = offsets_of(counts)
        return self._take(is_selected, offsets)

    def drop_small(self, ratio: float) -> Phases:
        """Drop phases that move less than `ratio` times the typical volume."""
        is_large = self.volume >= (ratio * self.typical_volume)[self.owner]
        return self if is_large.all() else self.select(is_large)

    def select_signals(self, signals: Ints) -> Phases:
        """Select signals by number."""
        at = self.places_in(signals)
        return self._take(at, offsets_of(self.counts[signals]))

    def _take(self, at: Bools | Ints, offsets: Ints) -> Phases:
        censored = None if self.is_onset_censored is None else self.is_onset_censored[at]
        onset = None if self.onset is None else self.onset[at]
        return Phases(self.first[at], self.last[at], self.volume[at], offsets, censored, onset)

    @cached_property
    def _volume_sums(self) -> Reals:
        return self._sums(self.volume)

    @cached_property
    def _square_sums(self) -> Reals:
        return self._sums(self.volume**2)

    def _sums(self, values: Floats) -> Reals:
        # bincount returns integers for empty weights
        return np.bincount(self.owner, values, self.signal_count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Activity:
    """Edges of the phases of n signals.

    Attributes
    ----------
    changes : (n, samples + 1)
        Whether the signal crosses its threshold at this sample. Edges come in pairs: the first sample of a phase, and
        the sample after its last sample.
    counts : (n,)
        Number of phases.
    """

    changes: Bools
    counts: Ints

    def select(self, is_selected: Bools) -> Activity:
        """Return the activity of the selected signals, and no phases for the others."""
        if is_selected.all():
            return self
        changes = self.changes & is_selected[:, None] if is_selected.any() else np.zeros((0, 1), dtype=np.bool_)
        return Activity(changes, np.where(is_selected, self.counts, 0))

    def to_phases(self, rates: Floats) -> Phases:
        """Return the phases, with volumes summed from the rates."""
        cells = self.edge_positions(np.arange(len(rates)) * rates.shape[1])
        # reduceat does not accept an edge at the end of the table
        cells = cells[:-1] if len(cells) and cells[-1] == rates.size else cells
        volume = np.add.reduceat(rates.ravel(), cells)[::2] if len(cells) else np.zeros(0)
        return self.with_volumes(volume.astype(np.float64))

    def with_volumes(self, volume: Reals) -> Phases:
        """Return the phases with the given volumes."""
        edges = self.edge_positions(np.zeros(len(self.counts), dtype=np.int64))
        return Phases(edges[::2], edges[1::2], volume, offsets_of(self.counts))

    def edge_positions(self, start: Ints) -> Ints:
        """Flat positions of the edges, given each signal's start in the flat table (2 phases)."""
        shift = start - np.arange(len(start)) * self.changes.shape[1]
        positions: Ints = self._edges + np.repeat(shift, 2 * self.counts)
        return positions

    @cached_property
    def _edges(self) -> Ints:
        return np.flatnonzero(self.changes)


def find_activity(rates: Floats, threshold: Reals, is_known: Bools | None = None) -> Activity:
    """Find where signals exceed their thresholds.

    Parameters
    ----------
    rates : (n, samples)
        Non-negative; 0 where not measured.
    threshold : (n,)
        Threshold of each signal, in the unit of the rates. FTIO uses V(S) / L, the mean rate (IPDPS'24, section II-C).
    is_known : (n, samples), optional
        Whether each sample was measured. Unmeasured samples belong to a phase if the samples on both sides do.
    """
    is_high = np.zeros((len(rates), rates.shape[1] + 2), dtype=np.bool_)
    np.greater(rates, (threshold * (1 + _ROUNDING)).astype(rates.dtype)[:, None], out=is_high[:, 1:-1])
    if is_known is not None:
        _bridge_measurement_gaps(is_high[:, 1:-1], is_known)
    # every phase has two edges, and no phase crosses rows
    changes = is_high[:, 1:] != is_high[:, :-1]
    return Activity(changes, np.count_nonzero(changes, axis=1) // 2)


def find_phases(rates: Floats, threshold: Reals, is_known: Bools | None = None) -> Phases:
    """Find the runs of samples above each signal's threshold.

    Parameters
    ----------
    rates, threshold, is_known
        As for `find_activity`.

    Returns
    -------
    Phases
    """
    return find_activity(rates, threshold, is_known).to_phases(rates)


def _bridge_measurement_gaps(is_high: Bools, is_known: Bools) -> None:
    """Set unmeasured samples to active, in place, if the measured samples on both sides are active."""
    rows = np.flatnonzero(~is_known.all(axis=1))
    if not len(rows):
        return
    known, high = is_known[rows], is_high[rows]
    position = np.arange(known.shape[1])
    before = np.maximum.accumulate(np.where(known, position, 0), axis=1)
    after = np.minimum.accumulate(np.where(known, position, len(position) - 1)[:, ::-1], axis=1)[:, ::-1]
    is_high[rows] = np.take_along_axis(high, before, axis=1) & np.take_along_axis(high, after, axis=1)


def merge_phases(phases: Phases, max_merged_gap: Ints) -> Phases:
    """Merge phases that are separated by a short gap.

    Parameters
    ----------
    phases : Phases
        Phases of n signals.
    max_merged_gap : (n,)
        Maximum length of a gap between merged phases, in samples.

    Returns
    -------
    Phases
    """
    if not len(phases.first):
        return phases
    owner = phases.owner
    is_start = np.ones(len(owner), dtype=np.bool_)
    is_start[1:] = (owner[1:] != owner[:-1]) | (phases.first[1:] - phases.last[:-1] > max_merged_gap[owner[1:]])
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:] - 1, len(owner) - 1)
    offsets = offsets_of(np.bincount(owner[starts], minlength=phases.signal_count))
    censored = None if phases.is_onset_censored is None else phases.is_onset_censored[starts]
    onset = None if phases.onset is None else phases.onset[starts]
    volume = np.add.reduceat(phases.volume, starts)
    return Phases(phases.first[starts], phases.last[ends], volume, offsets, censored, onset)
