"""Evenly sampled signals of one length, many at a time: what every search for a period works on.

Signals of many lengths are worked on length by length (`by_length`): a discrete Fourier transform of N samples has
the frequencies of N samples, and padding would change them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals

#: samples that are worked on at a time: bounds the memory, fits the cache
CHUNK_SAMPLES = 1 << 17


@dataclass(frozen=True, slots=True)
class EvenSignals:
    """Signals (n) of as many samples each.

    bytes_per_s (n, samples): the value of each sample, NaN where nothing was measured. sampling_hz (n): samples per
    second. started_s (n): the instant of the first sample, or the left edge of the first bin; sample i stands for
    the time from started_s + i / sampling_hz on, for 1 / sampling_hz seconds.
    """

    bytes_per_s: Reals
    sampling_hz: Reals
    started_s: Reals

    def __post_init__(self) -> None:
        if self.bytes_per_s.ndim != 2:
            raise ValueError("signals are rows of a table of samples")
        if not self.signal_count == len(self.sampling_hz) == len(self.started_s):
            raise ValueError("signals, sampling frequencies and starts are not of one number")
        if not (np.isfinite(self.sampling_hz).all() and (self.sampling_hz > 0).all()):
            raise ValueError("a sampling frequency is not a positive number")

    @classmethod
    def of_one(cls, bytes_per_s: npt.ArrayLike, sampling_hz: float, started_s: float = 0.0) -> EvenSignals:
        """Return one signal."""
        values = np.asarray(bytes_per_s, dtype=np.float64)[None, :]
        return cls(values, np.array([float(sampling_hz)]), np.array([float(started_s)]))

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.bytes_per_s)

    @property
    def sample_count(self) -> int:
        """The number of samples of each."""
        return int(self.bytes_per_s.shape[1])

    @property
    def duration_s(self) -> Reals:
        """How long each signal is (n)."""
        found: Reals = self.sample_count / self.sampling_hz
        return found

    @property
    def ended_s(self) -> Reals:
        """The right edge of each signal's last sample (n)."""
        return self.started_s + self.duration_s

    @property
    def is_known(self) -> Bools:
        """Whether each sample was measured (n, samples)."""
        return np.isfinite(self.bytes_per_s)

    @property
    def missing_ratio(self) -> Reals:
        """The share of each signal's samples that was not measured (n); 1 where it has none."""
        if not self.sample_count:
            return np.ones(self.signal_count)
        found: Reals = 1.0 - self.is_known.mean(axis=1)
        return found

    @property
    def volume_bytes(self) -> Reals:
        """What each signal moves where it was measured (n)."""
        found: Reals = np.nansum(self.bytes_per_s, axis=1) / self.sampling_hz
        return found

    def chosen(self, rows: Bools | Ints | slice) -> EvenSignals:
        """Return some of the signals."""
        return EvenSignals(self.bytes_per_s[rows], self.sampling_hz[rows], self.started_s[rows])

    def between(self, first: int, last: int) -> EvenSignals:
        """Return the samples from first (included) to last (excluded) of every signal."""
        return EvenSignals(self.bytes_per_s[:, first:last], self.sampling_hz, self.started_s + first / self.sampling_hz)

    def chunks(self, samples: int = CHUNK_SAMPLES) -> Iterator[tuple[slice, EvenSignals]]:
        """Yield the signals in groups of about so many samples, at least one signal each, with their places."""
        rows = max(1, samples // max(1, self.sample_count))
        for start in range(0, self.signal_count, rows):
            place = slice(start, min(start + rows, self.signal_count))
            yield place, self.chosen(place)


def by_length(
    pieces: Ragged, sampling_hz: Reals, started_s: Reals, padding_ratio: float = 0.0, short_samples: int = 0
) -> Iterator[tuple[Ints, EvenSignals]]:
    """Yield signals of one length after the other: their places (k), and the signals.

    pieces: the samples of n signals; sampling_hz, started_s (n). padding_ratio: signals that are shorter by this
    ratio at most go with longer ones, and get samples that were not measured at their ends: fewer groups, for
    methods to which that is nothing. short_samples: signals of no more samples are one group.
    """
    lengths = pieces.counts
    order = np.argsort(lengths, kind="stable")
    bounds = np.flatnonzero(np.diff(_widths(lengths[order], padding_ratio, short_samples), prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        places = order[first:last]
        width = int(lengths[places[-1]])
        is_own = np.arange(width) < lengths[places][:, None]
        values = np.full(is_own.shape, np.nan)
        cells = pieces.offsets[places][:, None] + np.arange(width)
        values[is_own] = pieces.values[cells[is_own]]
        yield places, EvenSignals(values, sampling_hz[places], started_s[places])


def _widths(lengths: Ints, padding_ratio: float, short_samples: int) -> Ints:
    """Return for lengths (n), which rise, the number of the group to which each belongs."""
    if not padding_ratio:
        return lengths
    with np.errstate(divide="ignore"):
        steps = np.log(np.where(lengths, np.maximum(lengths, short_samples), 0)) / np.log1p(padding_ratio)
    found: Ints = np.where(lengths > 0, np.ceil(steps - 1e-9), -1).astype(np.int64) + 1
    return found
