"""Hold the bursts of samples for clustering: as parts of one set's samples, or as one table of several sets.

IOSI: Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Ints, Reals, concatenate_rows, offsets_of, owners, places_of
from iosig.transforms.signatures.iosi_crests import RowBursts


@dataclass(frozen=True, slots=True)
class SegmentedSamples:
    """Samples of one set and one length, smoothed and segmented into n bursts (section 5.2, Figure 9).

    Attributes
    ----------
    relative, smoothed : (runs, points)
        Rates before and after the wavelet transform, relative to the maximum of the set.
    bursts : n
    maximum
        Maximum of the set [bytes per second].
    background_bytes_per_s
        See `PreprocessedSamples`.
    """

    relative: Reals
    smoothed: Reals
    bursts: RowBursts
    maximum: float
    background_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class CutBursts:
    """The bursts (b) of one set, cut out of its samples; their points (p) are concatenated.

    value (p): value before smoothing, relative to the maximum of the set.
    """

    bursts: RowBursts
    value: Reals
    run_count: int
    point_count: int
    maximum: float
    background_bytes_per_s: float

    @classmethod
    def from_samples(cls, samples: SegmentedSamples) -> CutBursts:
        """Cut the bursts out of samples."""
        (run_count, point_count), bursts = samples.relative.shape, samples.bursts
        place = places_of(bursts.run * point_count + bursts.first, bursts.last - bursts.first + 1)
        value = samples.relative.ravel().take(place)
        return cls(bursts, value, run_count, point_count, samples.maximum, samples.background_bytes_per_s)


@dataclass(frozen=True, slots=True)
class BurstTable:
    """The bursts (b) of several sets (s) and their points (p), concatenated by set; no set is empty.

    offsets (s + 1): first burst of each set. owner (b): set of each burst. start, length (b): first point of a burst,
    and number of its points. value (p): as in `CutBursts`.
    """

    bursts: RowBursts
    value: Reals
    offsets: Ints
    owner: Ints
    start: Ints
    length: Ints

    @classmethod
    def concatenate(cls, sets: Sequence[CutBursts]) -> BurstTable:
        """Combine the bursts of sets."""
        bursts, value = concatenate_rows([one.bursts for one in sets]), np.concatenate([one.value for one in sets])
        offsets, length = offsets_of([len(one.bursts) for one in sets]), bursts.last - bursts.first + 1
        return cls(bursts, value, offsets, owners(offsets), offsets_of(length)[:-1], length)

    def sum_points(self, values: Reals) -> Reals:
        """Sum values (p) over the points of each burst (b)."""
        return np.add.reduceat(values, self.start)

    def correlate_with_average(self) -> Reals:
        """Correlation of each burst (b) with the average burst of its set, 0 to 1 (section 5.3).

        Negative correlations become 0, the edge of the paper's plane. So do the correlations of bursts or averages
        without variation.
        """
        bursts, edges = self.bursts, self.offsets[:-1]
        lead = np.maximum.reduceat(bursts.peak - bursts.first, edges)
        references = offsets_of(lead + np.maximum.reduceat(bursts.last - bursts.peak, edges) + 1)
        # first point of each burst within the average burst of its set
        first = (references[:-1] + lead)[self.owner] - (bursts.peak - bursts.first)
        place = places_of(first, self.length)
        count = np.bincount(place, minlength=references[-1])
        reference = np.bincount(place, self.value, references[-1]) / np.maximum(count, 1)
        value = self.value
        x, xx, xy = (self.sum_points(part) for part in (value, value * value, value * reference.take(place)))
        averages = [reference[a:b] for a, b in pairwise(references.tolist())]
        y = np.array([(one.sum(), (one * one).sum(), len(one)) for one in averages])[self.owner]
        return _correlations_from_sums(x, xx, xy, y[:, 0], y[:, 1], y[:, 2])

    def unit_widths(self, width_count: int) -> Reals:
        """List unit widths to try (s, width_count) [s], from the mean burst duration to the mean distance (5.3)."""
        bursts, set_count = self.bursts, len(self.offsets) - 1
        counts = self.offsets[1:] - self.offsets[:-1]
        duration = np.maximum(1.0, np.bincount(self.owner, bursts.last - bursts.first) / counts)
        is_next = (bursts.run[1:] == bursts.run[:-1]) & (self.owner[1:] == self.owner[:-1])
        owner, gap = self.owner[1:][is_next], (bursts.first[1:] - bursts.last[:-1])[is_next]
        pairs = np.bincount(owner, minlength=set_count)
        # if no run has two bursts, all units have the width of a burst
        distance = np.bincount(owner, gap, set_count) / np.maximum(pairs, 1)
        distance = np.where(pairs > 0, np.maximum(1.0, distance), duration)
        # the distance between dense bursts may be smaller than their duration
        low, high = np.minimum(duration, distance), np.maximum(duration, distance)
        widths = low[:, None] + np.arange(width_count) * ((high - low) / (width_count - 1))[:, None]
        widths[:, -1] = high
        return widths


def _correlations_from_sums(x: Reals, xx: Reals, xy: Reals, y: Reals, yy: Reals, n: Reals) -> Reals:
    """Pearson's correlations from sums over n points; negative ones become 0."""
    x_var, y_var = xx - x * x / n, yy - y * y / n
    # a variance within the rounding error of the sums counts as 0
    is_varied = (x_var > 1e-12 * xx) & (y_var > 1e-12 * yy)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        correlation = (xy - x * y / n) / (np.sqrt(x_var) * np.sqrt(y_var))
    return np.where(is_varied & np.isfinite(correlation), np.clip(correlation, 0.0, 1.0), 0.0)
