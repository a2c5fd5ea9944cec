"""Define evenly sampled signals of one length, the input of every period search.

Signals of different lengths are grouped by length (`group_by_length`), because padding would change the frequencies of
a discrete Fourier transform.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals

#: samples per chunk, which bounds memory use and fits into the CPU cache
CHUNK_SAMPLES = 1 << 17


@dataclass(frozen=True, slots=True)
class EvenSignals:
    """Evenly sampled signals of equal length (n).

    Attributes
    ----------
    bytes_per_s : (n, samples)
        NaN where not measured.
    sampling_hz : (n,)
        Sampling frequency.
    start_s : (n,)
        Time of the first sample, or left edge of the first bin. Sample i covers the time from
        ``start_s + i / sampling_hz``, for ``1 / sampling_hz`` seconds.

    Raises
    ------
    ValueError
        If the shapes do not agree, or a sampling frequency is not a positive finite number.
    """

    bytes_per_s: Reals
    sampling_hz: Reals
    start_s: Reals

    def __post_init__(self) -> None:
        if self.bytes_per_s.ndim != 2:
            raise ValueError("bytes_per_s must be two-dimensional: signals by samples")
        if not self.signal_count == len(self.sampling_hz) == len(self.start_s):
            raise ValueError("bytes_per_s, sampling_hz and start_s must have the same number of signals")
        if not (np.isfinite(self.sampling_hz).all() and (self.sampling_hz > 0).all()):
            raise ValueError("sampling_hz must be positive and finite")

    @classmethod
    def from_samples(cls, bytes_per_s: npt.ArrayLike, sampling_hz: float, start_s: float = 0.0) -> EvenSignals:
        """Create a single signal."""
        values = np.asarray(bytes_per_s, dtype=np.float64)[None, :]
        return cls(values, np.array([float(sampling_hz)]), np.array([float(start_s)]))

    @property
    def signal_count(self) -> int:
        """Number of signals in this batch."""
        return len(self.bytes_per_s)

    @property
    def sample_count(self) -> int:
        """Number of samples of each signal."""
        return int(self.bytes_per_s.shape[1])

    @property
    def duration_s(self) -> Reals:
        """Duration of each signal (n)."""
        result: Reals = self.sample_count / self.sampling_hz
        return result

    @property
    def end_s(self) -> Reals:
        """Right edge of each signal's last sample (n)."""
        return self.start_s + self.duration_s

    @property
    def is_known(self) -> Bools:
        """Whether each sample was measured (n, samples)."""
        return np.isfinite(self.bytes_per_s)

    @property
    def missing_ratio(self) -> Reals:
        """Fraction of each signal's samples that were not measured (n); 1 for empty signals."""
        if not self.sample_count:
            return np.ones(self.signal_count)
        result: Reals = 1.0 - self.is_known.mean(axis=1)
        return result

    @property
    def volume_bytes(self) -> Reals:
        """Measured volume of each signal (n)."""
        result: Reals = np.nansum(self.bytes_per_s, axis=1) / self.sampling_hz
        return result

    def select(self, rows: Bools | Ints | slice) -> EvenSignals:
        """Return the signals of the rows, with all of their samples."""
        return EvenSignals(self.bytes_per_s[rows], self.sampling_hz[rows], self.start_s[rows])

    def slice_samples(self, first: int, last: int) -> EvenSignals:
        """Return the samples from `first` (included) to `last` (excluded) of every signal."""
        return EvenSignals(self.bytes_per_s[:, first:last], self.sampling_hz, self.start_s + first / self.sampling_hz)

    def iter_chunks(self, samples: int = CHUNK_SAMPLES) -> Iterator[tuple[slice, EvenSignals]]:
        """Yield rows and signals of chunks of about `samples` samples each; a chunk has one signal or more."""
        rows = max(1, samples // max(1, self.sample_count))
        for start in range(0, self.signal_count, rows):
            place = slice(start, min(start + rows, self.signal_count))
            yield place, self.select(place)


def group_by_length(
    samples: Ragged, sampling_hz: Reals, start_s: Reals, padding_ratio: float = 0.0, short_samples: int = 0
) -> Iterator[tuple[Ints, EvenSignals]]:
    """Group signals by length.

    Parameters
    ----------
    samples : Ragged
        Samples of n signals, in bytes per second.
    sampling_hz, start_s : (n,)
        Sampling frequency, and time of the first sample.
    padding_ratio : float
        Signals that are shorter by at most this ratio join a group of longer ones, padded with NaN at the end. This
        reduces the number of groups, for methods that ignore missing samples at the end.
    short_samples : int
        Signals with this number of samples or fewer form one group.

    Yields
    ------
    signals : (k,)
        Numbers of the group's signals.
    group : EvenSignals
    """
    lengths = samples.counts
    order = np.argsort(lengths, kind="stable")
    bounds = np.flatnonzero(
        np.diff(_assign_groups(lengths[order], padding_ratio, short_samples), prepend=-1, append=-1)
    )
    for first, last in pairwise(bounds.tolist()):
        signals = order[first:last]
        width = int(lengths[signals[-1]])
        is_inside = np.arange(width) < lengths[signals][:, None]
        values = np.full(is_inside.shape, np.nan)
        positions = samples.offsets[signals][:, None] + np.arange(width)
        values[is_inside] = samples.values[positions[is_inside]]
        yield signals, EvenSignals(values, sampling_hz[signals], start_s[signals])


def _assign_groups(lengths: Ints, padding_ratio: float, short_samples: int) -> Ints:
    """Assign a group number to each of the ascending lengths (n)."""
    if not padding_ratio:
        return lengths
    with np.errstate(divide="ignore"):
        steps = np.log(np.where(lengths, np.maximum(lengths, short_samples), 0)) / np.log1p(padding_ratio)
    result: Ints = np.where(lengths > 0, np.ceil(steps - 1e-9), -1).astype(np.int64) + 1
    return result
