"""IOSI: an application's signature from what the samples of its runs have in common.

Liu et al., "Automatic Identification of Application I/O Signatures from Noisy Server-Side Traces", FAST'14,
https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu, sections 5.1 to 5.4. Outlier elimination
(5.1) comes before (`left_out`); then samples are brought to one form (`preprocessing`), smoothed
(`iosi_wavelets`), cut into bursts (`iosi_crests`), and bursts that the samples share are found on a grid
(`iosi_clique`) and averaged.

Where the paper can be read in several ways, one was taken: that which reaches the accuracy the paper reports. What the
others give is in DECISIONS.md. A burst is correlated with the average burst over all of it, zero beyond the burst's own
ends; each point of the average is the mean of the bursts that reach so far from their crest. What lies between bursts,
the widest unit of the grid (5.3: "the average time distance between bursts"), goes from the end of one to the start of
the next. The average of common bursts (5.4) covers the seconds that at least half of them have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transforms.arrays import Ints, Reals, offsets_of, owners, places_of, places_within
from transforms.signatures.bursts import Bursts
from transforms.signatures.iosi_clique import Clusters, Grids, Points, clique
from transforms.signatures.iosi_crests import Waves, waves
from transforms.signatures.iosi_wavelets import approximation
from transforms.signatures.preprocessing import bridged, preprocessed, refined
from transforms.signatures.sample_sets import SampleSet
from transforms.signatures.signature import Signature

#: settings of a unit's width (section 5.3: 3 to 5 for each side)
WIDTH_COUNT = 4
#: settings of a unit's height (5.3: 3 to 5, of 0.05 to 0.25)
HEIGHTS = np.linspace(0.05, 0.25, 5)


@dataclass(frozen=True, slots=True)
class IosiParams:
    """What a site may set of IOSI.

    level: of the wavelet decomposition (section 5.2: 2). gamma, kappa: see `iosi_clique.clique` (5.3: 0.5 and 0.9).
    """

    level: int = 2
    gamma: float = 0.5
    kappa: float = 0.9


def iosi(one: SampleSet, params: IosiParams | None = None) -> Signature:
    """Return the signature of runs that are no outliers: IOSI as published."""
    found = preprocessed(one)
    return _of_rows(found.complete, found.background_bytes_per_s, params or IosiParams())


def iosi_raw(one: SampleSet, params: IosiParams | None = None) -> Signature:
    """Return the signature without preprocessing (6.1): samples after granularity refinement only.

    All are brought to the median length: longer ones are cut at their end, shorter ones have nothing after theirs.
    """
    points = refined(bridged(one.samples, one.interval_s), one.interval_s)
    counts = points.counts
    counts = counts[counts > 0]
    length = int(np.median(counts)) if len(counts) else 0
    values = np.zeros((len(counts), length))
    place, row = places_within(counts), owners(offsets_of(counts))
    is_in = place < length
    values[row[is_in], place[is_in]] = np.nan_to_num(points.values[is_in], nan=0.0)
    return _of_rows(values, float("nan"), params or IosiParams())


# ---- from samples to common bursts


@dataclass(frozen=True, slots=True)
class _BurstPoints:
    """The points of bursts (b), one burst after the other (p).

    start, length (b): a burst's first point, and how many it has. offset (p): from its crest. value (p): before the
    transform, as a share of the largest of all.
    """

    start: Ints
    length: Ints
    offset: Ints
    value: Reals

    @classmethod
    def of(cls, shares: Reals, found: Waves) -> _BurstPoints:
        """Return the bursts of samples (runs, points)."""
        lengths = found.last - found.first + 1
        offsets = offsets_of(lengths)
        place = places_of(found.run * shares.shape[1] + found.first, lengths)
        offset = places_of(found.first - found.peak, lengths)
        return cls(offsets[:-1], lengths, offset, shares.ravel().take(place))

    def sums(self, values: Reals) -> Reals:
        """Return the sum of values (p) over each burst (b)."""
        return np.add.reduceat(values, self.start)


def _of_rows(values: Reals, background_bytes_per_s: float, params: IosiParams) -> Signature:
    """Return the signature of samples in one form (runs, points)."""
    if not values.shape[0]:
        return Signature.nothing("too_few_samples", background_bytes_per_s)
    highest = float(values.max(initial=0.0))
    if not highest > 0:
        return Signature.nothing("no_io", background_bytes_per_s)
    shares = values / highest
    smoothed = approximation(shares, params.level)
    # what ripples in a constant sample is rounding
    smoothed[shares.min(axis=1) == shares.max(axis=1)] = 0.0
    found = waves(smoothed)
    clusters = _common(shares, found, params)
    if not clusters.count:
        return Signature.nothing("no_common_bursts", background_bytes_per_s)
    curve, bursts = _signature(shares, found, clusters)
    with np.errstate(over="ignore"):
        scaled = replace(bursts, volume_bytes=bursts.volume_bytes * highest)
    return Signature.curve(curve * highest, scaled, background_bytes_per_s)


def _common(shares: Reals, found: Waves, params: IosiParams) -> Clusters:
    """Return the common bursts of samples (5.3)."""
    likeness = likenesses(shares, found)
    points = Points(found.peak.astype(np.float64), likeness, found.run, shares.shape[0], float(shares.shape[1]))
    return clique(points, _grids(found), params.gamma, params.kappa)


def likenesses(values: Reals, found: Waves) -> Reals:
    """Return the correlation of each burst (b) of samples (runs, points) with the average burst, 0 to 1 (5.3).

    Negative ones count as 0, at the edge of the paper's plane, and so do bursts or references without any variation.
    """
    if not len(found):
        return np.zeros(0)
    bursts = _BurstPoints.of(values, found)
    place = bursts.offset - bursts.offset.min()
    reference = np.bincount(place, bursts.value) / np.maximum(np.bincount(place), 1)
    value = bursts.value
    own = [bursts.sums(part) for part in (value, value * value, value * reference.take(place))]
    theirs = [
        np.full(len(found), part) for part in (reference.sum(), (reference * reference).sum(), float(len(reference)))
    ]
    return _correlations(own[0], own[1], own[2], theirs[0], theirs[1], theirs[2])


def _correlations(x: Reals, xx: Reals, xy: Reals, y: Reals, yy: Reals, n: Reals) -> Reals:
    """Return correlation coefficients from sums over n places, those below 0 as 0."""
    x_var, y_var = xx - x * x / n, yy - y * y / n
    # what is no more than a rounding error of the sums is no variation
    is_varied = (x_var > 1e-12 * xx) & (y_var > 1e-12 * yy)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        found = (xy - x * y / n) / (np.sqrt(x_var) * np.sqrt(y_var))
    return np.where(is_varied & np.isfinite(found), np.clip(found, 0.0, 1.0), 0.0)


def _grids(found: Waves) -> Grids:
    """Return the grids to try: from the mean duration of bursts to their mean distance (5.3), in seconds."""
    if not len(found):
        return Grids(np.zeros(0), np.zeros(0))
    is_next = found.run[1:] == found.run[:-1]
    between = found.first[1:] - found.last[:-1]
    duration = max(1.0, float((found.last - found.first).mean()))
    # where no run has two bursts all units are as wide as a burst
    distance = float(between[is_next].mean()) if is_next.any() else duration
    # where bursts lie close together their distance may be the lesser of the two
    low, high = sorted((duration, max(1.0, distance)))
    widths = np.linspace(low, high, WIDTH_COUNT)
    return Grids.product(widths, HEIGHTS)


# ---- from common bursts to a signature


def _signature(shares: Reals, found: Waves, clusters: Clusters) -> tuple[Reals, Bursts]:
    """Return the mean of each common burst at its mean time (5.4): per second, and as bursts; in the samples' unit."""
    member = np.flatnonzero(clusters.owner >= 0)
    owner = clusters.owner[member]
    size = np.bincount(owner, minlength=clusters.count)
    chosen = Waves(found.run[member], found.first[member], found.peak[member], found.last[member])
    crest = np.rint(np.bincount(owner, chosen.peak, clusters.count) / size).astype(np.int64)
    bursts = _BurstPoints.of(shares, chosen)
    # each cluster has places for its longest lead before the crest and its longest tail after it
    lead, tail = np.zeros(clusters.count, dtype=np.int64), np.zeros(clusters.count, dtype=np.int64)
    np.maximum.at(lead, owner, chosen.peak - chosen.first)
    np.maximum.at(tail, owner, chosen.last - chosen.peak)
    middle = np.cumsum(lead + tail + 1) - tail - 1
    place = middle[owner].repeat(bursts.length) + bursts.offset
    total, count = np.bincount(place, bursts.value), np.bincount(place)
    width = lead + tail + 1
    # all bursts of a cluster have its crest, hence what is covered has no holes
    covered = offsets_of(count >= np.repeat(np.ceil(size / 2), width))
    first = crest - (covered[middle] - covered[middle - lead])
    last = crest + (covered[middle + tail + 1] - covered[middle])
    first, last = _apart(first, crest, last, shares.shape[1])
    return _placed(total / np.repeat(size, width), middle - crest, first, last, size / shares.shape[0], shares.shape[1])


def _apart(first: Ints, crest: Ints, last: Ints, point_count: int) -> tuple[Ints, Ints]:
    """Return where bursts (c) begin and end (not included) so that none overlaps the next.

    Two that overlap part in the middle of what they share, but each keeps its crest; of two with one crest the later
    may have nothing left.
    """
    first, last = np.maximum(first, 0), np.minimum(last, point_count)
    middle = (last[:-1] + first[1:]) // 2
    border = np.maximum(np.minimum(middle, crest[1:]), crest[:-1] + 1)
    is_over = last[:-1] > first[1:]
    begin, end = first.copy(), last.copy()
    begin[1:] = np.where(is_over, np.maximum(first[1:], border), first[1:])
    end[:-1] = np.where(is_over, np.minimum(last[:-1], border), last[:-1])
    return begin, np.maximum(end, begin)


def _placed(
    mean: Reals, shift: Ints, first: Ints, last: Ints, support: Reals, point_count: int
) -> tuple[Reals, Bursts]:
    """Put mean bursts between their first and last seconds (c); second x of a burst is mean[x + shift]."""
    is_kept = last > first
    begin, end = first[is_kept], last[is_kept]
    offsets = offsets_of(end - begin)
    owner = owners(offsets)
    second = begin[owner] + places_within(end - begin)
    value = mean[second + shift[is_kept][owner]]
    curve = np.zeros(point_count)
    curve[second] = value
    return curve, Bursts.between(curve, begin, end, np.add.reduceat(value, offsets[:-1]), support[is_kept])
