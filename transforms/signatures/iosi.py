"""IOSI: an application's signature from what the samples of its runs have in common.

Liu et al., "Automatic Identification of Application I/O Signatures from Noisy Server-Side Traces", FAST'14,
https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu, sections 5.1 to 5.4. Outlier elimination
(5.1) comes before (`transforms.signatures.outliers`); then samples are brought to one form (`preprocessing`), smoothed
(`wavelets`), cut into bursts (`crests`), and bursts that the samples share are found on a grid (`clique`) and averaged.

Where the paper can be read in several ways, `IosiParams` has them all; the defaults are those that reach the accuracy
the paper reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from transforms.arrays import Ints, Reals, offsets_of, places_within
from transforms.signatures.iosi_clique import CliqueParams, Clusters, Grids, Points, clique
from transforms.signatures.iosi_crests import CrestParams, Waves, waves
from transforms.signatures.iosi_wavelets import approximation
from transforms.signatures.preprocessing import PreprocessingParams, bridged, preprocessed, refined_all
from transforms.signatures.sample_sets import SampleSet
from transforms.signatures.signature import Extracted, SignatureBursts

Reference = Literal["present", "padded"]
Comparison = Literal["padded", "overlap", "stretched"]
Distance = Literal["gap", "crest"]
Extent = Literal["all", "majority"]
Alignment = Literal["crest", "mass"]

#: points of a burst that is stretched to be compared
_STRETCHED_POINTS = 32


@dataclass(frozen=True, slots=True)
class IosiParams:
    """How IOSI reads its samples.

    level: of the wavelet decomposition (section 5.2: 2). gamma, kappa: see `clique.CliqueParams` (5.3: 0.5 and 0.9).
    width_count, height_count: settings for each side of a unit (5.3: 3 to 5). least_height, most_height: of a unit
    (5.3: 0.05 to 0.25).

    reference: the average burst (5.3), aligned at the crests. `present`: each of its points is the mean of the bursts
    that reach so far from their crest; `padded`: of all bursts, which are zero beyond their ends.
    comparison: how a burst is correlated with it. `padded`: over all of the reference, zero beyond the burst's ends;
    `overlap`: only as far as the burst reaches; `stretched`: both stretched to one length.
    distance: what lies between bursts, the widest unit (5.3: "the average time distance between bursts"). `gap`: from
    the end of one to the start of the next, `crest`: from crest to crest.
    alignment: of bursts that are averaged (5.4). `crest`: of the smoothed wave; `mass`: the middle of their volume
    (ours: better for long flat bursts, whose crest is anywhere, worse for short ones beside foreign traffic).
    extent: what the average of common bursts covers (5.4). `all`: each second that one of them has; `majority`: those
    that at least half of them have.
    """

    level: int = 2
    gamma: float = 0.5
    kappa: float = 0.9
    width_count: int = 4
    height_count: int = 5
    least_height: float = 0.05
    most_height: float = 0.25
    reference: Reference = "present"
    comparison: Comparison = "padded"
    distance: Distance = "gap"
    alignment: Alignment = "crest"
    extent: Extent = "majority"
    crests: CrestParams = field(default_factory=CrestParams)
    preprocessing: PreprocessingParams = field(default_factory=PreprocessingParams)

    def __post_init__(self) -> None:
        """Refuse what makes no grid."""
        if min(self.width_count, self.height_count) < 1 or not 0 < self.least_height <= self.most_height:
            raise ValueError("there is a unit at least, and it has a height")

    @property
    def clique(self) -> CliqueParams:
        """What is dense."""
        return CliqueParams(self.gamma, self.kappa)

    @property
    def heights(self) -> Reals:
        """The settings of a unit's height."""
        return np.linspace(self.least_height, self.most_height, self.height_count)


def iosi(one: SampleSet, params: IosiParams | None = None) -> Extracted:
    """Return the signature of runs that are no outliers: IOSI as published."""
    chosen = params or IosiParams()
    found = preprocessed(one, chosen.preprocessing)
    return _extracted(found.complete, found.background_bytes_per_s, chosen)


def iosi_raw(one: SampleSet, params: IosiParams | None = None) -> Extracted:
    """Return the signature without preprocessing (6.1): samples after granularity refinement only.

    All are brought to the median length: longer ones are cut at their end, shorter ones have nothing after theirs.
    """
    chosen = params or IosiParams()
    samples = bridged(one.samples, one.interval_s, chosen.preprocessing.longest_gap_s)
    points = refined_all(samples, one.interval_s)
    counts = np.diff(points.offsets)
    counts = counts[counts > 0]
    length = int(np.median(counts)) if len(counts) else 0
    values = np.zeros((len(counts), length))
    place = places_within(counts)
    row = np.repeat(np.arange(len(counts)), counts)
    is_in = place < length
    values[row[is_in], place[is_in]] = np.nan_to_num(points.values[is_in], nan=0.0)
    return _extracted(values, float("nan"), chosen)


# ---- from samples to common bursts


@dataclass(frozen=True, slots=True)
class _Bursts:
    """The points of bursts (b), one burst after the other (p).

    start, length (b): a burst's first point, and how many it has. offset (p): from its crest. value (p): before the
    transform, as a share of the largest of all.
    """

    start: Ints
    length: Ints
    offset: Ints
    value: Reals

    @classmethod
    def of(cls, shares: Reals, found: Waves) -> _Bursts:
        """Return the bursts of samples (runs, points)."""
        lengths = found.last - found.first + 1
        starts = np.cumsum(lengths) - lengths
        number = np.arange(int(lengths.sum()))
        place = number + (found.run * shares.shape[1] + found.first - starts).repeat(lengths)
        return cls(starts, lengths, number - (starts + found.peak - found.first).repeat(lengths), shares.ravel()[place])

    def sums(self, values: Reals) -> Reals:
        """Return the sum of values (p) over each burst (b)."""
        return np.add.reduceat(values, self.start)


def _extracted(values: Reals, background_bytes_per_s: float, params: IosiParams) -> Extracted:
    """Return the signature of samples in one form (runs, points)."""
    if not values.shape[0]:
        return Extracted.nothing("too_few_samples", background_bytes_per_s)
    highest = float(values.max(initial=0.0))
    if not highest > 0:
        return Extracted.nothing("no_io", background_bytes_per_s)
    shares = values / highest
    smoothed = approximation(shares, params.level)
    # what ripples in a constant sample is rounding
    smoothed[shares.min(axis=1) == shares.max(axis=1)] = 0.0
    found = waves(smoothed, params.crests)
    clusters = _common(shares, found, params)
    if not clusters.count:
        return Extracted.nothing("no_common_bursts", background_bytes_per_s)
    curve, bursts = _signature(shares, found, clusters, params)
    with np.errstate(over="ignore"):
        volume = bursts.volume_bytes * highest
    scaled = SignatureBursts(bursts.started_s, bursts.peaked_s, bursts.ended_s, volume, bursts.support_ratio)
    return Extracted.curve(curve * highest, scaled, background_bytes_per_s)


def _common(shares: Reals, found: Waves, params: IosiParams) -> Clusters:
    """Return the common bursts of samples (5.3)."""
    likeness = likenesses(shares, found, params)
    points = Points(found.peak.astype(np.float64), likeness, found.run, shares.shape[0], float(shares.shape[1]))
    return clique(points, _grids(found, params), params.clique)


def likenesses(values: Reals, found: Waves, params: IosiParams | None = None) -> Reals:
    """Return the correlation of each burst (b) of samples (runs, points) with the average burst, 0 to 1 (5.3).

    Negative ones count as 0, at the edge of the paper's plane, and so do bursts or references without any variation.
    """
    chosen = params or IosiParams()
    if not len(found):
        return np.zeros(0)
    if chosen.comparison == "stretched":
        rows = _stretched(values, found)
        width = np.full(len(rows), float(rows.shape[1]))
        mean = rows.mean(axis=0)
        sums = (rows.sum(axis=1), (rows * rows).sum(axis=1), rows @ mean)
        return _correlations(*sums, np.full(len(rows), mean.sum()), np.full(len(rows), mean @ mean), width)
    bursts = _Bursts.of(values, found)
    place = bursts.offset - bursts.offset.min()
    count = np.bincount(place)
    total = np.bincount(place, bursts.value)
    reference = total / (np.maximum(count, 1) if chosen.reference == "present" else len(found))
    value, near, number = bursts.value, reference[place], len(found)
    if chosen.comparison == "overlap":
        theirs = [bursts.sums(part) for part in (near, near * near, np.ones(len(near)))]
    else:
        square = (reference * reference).sum()
        theirs = [np.full(number, part) for part in (reference.sum(), square, float(len(reference)))]
    own = [bursts.sums(part) for part in (value, value * value, value * near)]
    return _correlations(own[0], own[1], own[2], theirs[0], theirs[1], theirs[2])


def _correlations(x: Reals, xx: Reals, xy: Reals, y: Reals, yy: Reals, n: Reals) -> Reals:
    """Return correlation coefficients from sums over n places, those below 0 as 0."""
    x_var, y_var = xx - x * x / n, yy - y * y / n
    # what is no more than a rounding error of the sums is no variation
    is_varied = (x_var > 1e-12 * xx) & (y_var > 1e-12 * yy)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        found = (xy - x * y / n) / (np.sqrt(x_var) * np.sqrt(y_var))
    return np.where(is_varied & np.isfinite(found), np.clip(found, 0.0, 1.0), 0.0)


def _stretched(values: Reals, found: Waves) -> Reals:
    """Return all bursts at as many points (b, points), by linear interpolation."""
    share = np.linspace(0.0, 1.0, _STRETCHED_POINTS)
    place = found.first[:, None] + (found.last - found.first)[:, None] * share
    left = np.minimum(np.floor(place).astype(np.int64), found.last[:, None])
    right = np.minimum(left + 1, found.last[:, None])
    rest = place - left
    run = found.run[:, None]
    stretched: Reals = values[run, left] * (1.0 - rest) + values[run, right] * rest
    return stretched


def _grids(found: Waves, params: IosiParams) -> Grids:
    """Return the grids to try: from the mean duration of bursts to their mean distance (5.3), in seconds."""
    if not len(found):
        return Grids(np.zeros(0), np.zeros(0))
    is_next = found.run[1:] == found.run[:-1]
    between = found.first[1:] - found.last[:-1] if params.distance == "gap" else found.peak[1:] - found.peak[:-1]
    duration = max(1.0, float((found.last - found.first).mean()))
    # where no run has two bursts all units are as wide as a burst
    distance = float(between[is_next].mean()) if is_next.any() else duration
    # where bursts lie close together their distance may be the lesser of the two
    low, high = sorted((duration, max(1.0, distance)))
    widths = np.linspace(low, high, params.width_count)
    return Grids.product(widths, params.heights)


# ---- from common bursts to a signature


def _signature(shares: Reals, found: Waves, clusters: Clusters, params: IosiParams) -> tuple[Reals, SignatureBursts]:
    """Return the mean of each common burst at its mean time (5.4): per second, and as bursts; in the samples' unit."""
    member = np.flatnonzero(clusters.owner >= 0)
    owner = clusters.owner[member]
    size = np.bincount(owner, minlength=clusters.count)
    chosen = Waves(found.run[member], found.first[member], found.peak[member], found.last[member])
    chosen = _anchored(shares, chosen, params.alignment)
    crest = np.rint(np.bincount(owner, chosen.peak, clusters.count) / size).astype(np.int64)
    bursts = _Bursts.of(shares, chosen)
    # each cluster has places for its longest lead before the crest and its longest tail after it
    lead, tail = np.zeros(clusters.count, dtype=np.int64), np.zeros(clusters.count, dtype=np.int64)
    np.maximum.at(lead, owner, chosen.peak - chosen.first)
    np.maximum.at(tail, owner, chosen.last - chosen.peak)
    middle = np.cumsum(lead + tail + 1) - tail - 1
    place = middle[owner].repeat(bursts.length) + bursts.offset
    total, count = np.bincount(place, bursts.value), np.bincount(place)
    width = lead + tail + 1
    least = np.ceil(size / 2) if params.extent == "majority" else np.ones(len(size))
    # all bursts of a cluster have its crest, hence what is covered has no holes
    covered = offsets_of(count >= np.repeat(least, width))
    first = crest - (covered[middle] - covered[middle - lead])
    last = crest + (covered[middle + tail + 1] - covered[middle])
    first, last = _apart(first, crest, last, shares.shape[1])
    return _placed(total / np.repeat(size, width), middle - crest, first, last, size / shares.shape[0], shares.shape[1])


def _anchored(shares: Reals, found: Waves, alignment: Alignment) -> Waves:
    """Return bursts with what they are aligned at for their peak."""
    if alignment == "crest":
        return found
    bursts = _Bursts.of(shares, found)
    mass = bursts.sums(bursts.value)
    shift = bursts.sums(bursts.value * bursts.offset) / np.where(mass > 0, mass, 1.0)
    return Waves(found.run, found.first, found.peak + np.rint(shift).astype(np.int64), found.last)


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
) -> tuple[Reals, SignatureBursts]:
    """Put mean bursts between their first and last seconds (c); second x of a burst is mean[x + shift]."""
    is_kept = last > first
    lengths = (last - first)[is_kept]
    starts = np.cumsum(lengths) - lengths
    inside = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    second = np.repeat(first[is_kept], lengths) + inside
    value = mean[second + np.repeat(shift[is_kept], lengths)]
    curve = np.zeros(point_count)
    curve[second] = value
    highest = np.maximum.reduceat(value, starts)
    is_peak = np.flatnonzero(value == np.repeat(highest, lengths))
    peak = inside[is_peak[np.searchsorted(is_peak, starts)]]
    begin = first[is_kept].astype(np.float64)
    volume = np.add.reduceat(value, starts)
    return curve, SignatureBursts(begin, begin + peak + 0.5, begin + lengths, volume, support[is_kept])
