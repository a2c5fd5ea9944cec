"""IOSI: an application's signature from what the samples of its runs have in common.

Liu et al., "Automatic Identification of Application I/O Signatures from Noisy Server-Side Traces", FAST'14,
https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu, sections 5.1 to 5.4. Outlier elimination
(5.1) comes before (`left_out`); then samples are brought to one form (`preprocessing`), smoothed
(`smooth_part`), cut into bursts (`iosi_crests`), and bursts that the samples share are found on a grid
(`iosi_clique`) and averaged.

Where the paper can be read in several ways, one was taken: that which reaches the accuracy the paper reports. What the
others give is in DECISIONS.md. A burst is correlated with the average burst over all of it, zero beyond the burst's own
ends; each point of the average is the mean of the bursts that reach so far from their crest. What lies between bursts,
the widest unit of the grid (5.3: "the average time distance between bursts"), goes from the end of one to the start of
the next. The average of common bursts (5.4) covers the seconds that at least half of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Ints, Reals, joined, offsets_of, owners, places_of, places_within, rows_of
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.iosi_clique import Clusters, Planes, cliques
from iosig.transforms.signatures.iosi_crests import Waves, waves
from iosig.transforms.signatures.preprocessing import bridged, preprocessed, refined
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: settings of a unit's width (section 5.3: 3 to 5 for each side)
WIDTH_COUNT = 4
#: settings of a unit's height (5.3: 3 to 5, of 0.05 to 0.25)
HEIGHTS = np.linspace(0.05, 0.25, 5)
#: bursts of sets that are looked at side by side, all of them on each grid: they stay in the processor's cache
_BLOCK_BURSTS = 2000


@dataclass(frozen=True, slots=True)
class IosiParams:
    """What a site may set of IOSI.

    level: of the wavelet decomposition (section 5.2: 2). gamma, kappa: see `iosi_clique.cliques` (5.3: 0.5 and 0.9).
    """

    level: int = 2
    gamma: float = 0.5
    kappa: float = 0.9


def iosi_of_each(sets: Iterable[SampleSet], params: IosiParams | None = None) -> list[Signature]:
    """Return the signature of each set of runs that are no outliers: IOSI as published.

    Common bursts of several sets are found together.
    """
    samples = ((found.complete, found.background_bytes_per_s) for found in map(preprocessed, sets))
    return _of_each(samples, params or IosiParams())


def iosi_raw_of_each(sets: Iterable[SampleSet], params: IosiParams | None = None) -> list[Signature]:
    """Return the signature of each set without preprocessing (6.1): samples after granularity refinement only.

    All are brought to the median length: longer ones are cut at their end, shorter ones have nothing after theirs.
    """
    return _of_each(((_as_they_are(one), float("nan")) for one in sets), params or IosiParams())


def _as_they_are(one: SampleSet) -> Reals:
    """Return samples of the median length (runs, points)."""
    points = refined(bridged(one.samples, one.interval_s), one.interval_s)
    counts = points.counts
    counts = counts[counts > 0]
    length = int(np.median(counts)) if len(counts) else 0
    values = np.zeros((len(counts), length))
    place, row = places_within(counts), owners(offsets_of(counts))
    is_in = place < length
    values[row[is_in], place[is_in]] = np.nan_to_num(points.values[is_in], nan=0.0)
    return values


# ---- from samples to bursts


@dataclass(frozen=True, slots=True)
class _Cut:
    """The samples of one set, cut into bursts (b) of so many points (p), one burst after the other.

    value (p): before the transform, as a share of the highest of all.
    """

    found: Waves
    value: Reals
    run_count: int
    point_count: int
    highest: float
    background_bytes_per_s: float

    @classmethod
    def of(cls, shares: Reals, found: Waves, highest: float, background_bytes_per_s: float) -> _Cut:
        """Return the bursts of samples (runs, points)."""
        run_count, point_count = shares.shape
        place = places_of(found.run * point_count + found.first, found.last - found.first + 1)
        return cls(found, shares.ravel().take(place), run_count, point_count, highest, background_bytes_per_s)


def _cut(values: Reals, background_bytes_per_s: float, params: IosiParams) -> _Cut | Signature:
    """Return the bursts of samples in one form (runs, points), or that there is no signature."""
    if not values.shape[0]:
        return Signature.nothing("too_few_samples", background_bytes_per_s)
    highest = float(values.max(initial=0.0))
    if not highest > 0:
        return Signature.nothing("no_io", background_bytes_per_s)
    shares = values / highest
    smoothed = smooth_part(shares, params.level)
    # what ripples in a constant sample is rounding
    smoothed[shares.min(axis=1) == shares.max(axis=1)] = 0.0
    found = waves(smoothed)
    if not len(found):
        return Signature.nothing("no_common_bursts", background_bytes_per_s)
    return _Cut.of(shares, found, highest, background_bytes_per_s)


def smooth_part(rows: Reals, level: int = 2) -> Reals:
    """Return the low-frequency component of each row (runs, points) by discrete Meyer wavelets, from which bursts rise.

    Section 5.2 takes level 2 "to better retain the bursty nature". Rows are mirrored at their ends; beside bursts the
    component may fall below zero.
    """
    import pywt  # its import takes long

    found = rows
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for _ in range(level):
            found, _ = pywt.dwt(found, "dmey", axis=1)
        for _ in range(level):
            found = pywt.idwt(found, None, "dmey", axis=1)
    return np.ascontiguousarray(found[:, : rows.shape[1]])


def _of_each(samples: Iterable[tuple[Reals, float]], params: IosiParams) -> list[Signature]:
    """Return the signatures of samples in one form (runs, points) and their background.

    Points are worked on set by set, since those of several do not stay in the processor's cache; bursts are few, so
    that those of several sets go side by side.
    """
    found: dict[int, Signature] = {}
    waiting: dict[int, _Cut] = {}
    for number, (values, background_bytes_per_s) in enumerate(samples):
        cut = _cut(values, background_bytes_per_s, params)
        if isinstance(cut, Signature):
            found[number] = cut
            continue
        waiting[number] = cut
        if sum(len(one.found) for one in waiting.values()) >= _BLOCK_BURSTS:
            found |= zip(waiting, _signatures(list(waiting.values()), params), strict=True)
            waiting = {}
    if waiting:
        found |= zip(waiting, _signatures(list(waiting.values()), params), strict=True)
    return [found[number] for number in range(len(found))]


# ---- from bursts to common bursts


@dataclass(frozen=True, slots=True)
class _Bursts:
    """The bursts (b) of several sets (s) and their points (p), one set after the other; no set is without any.

    offsets (s + 1): where each set's begin. own (b): whose. start, length (b): a burst's first point, and how many it
    has. value (p): as `_Cut` has it.
    """

    found: Waves
    value: Reals
    offsets: Ints
    own: Ints
    start: Ints
    length: Ints

    @classmethod
    def of(cls, cuts: Sequence[_Cut]) -> _Bursts:
        """Return the bursts of sets."""
        found, value = joined([one.found for one in cuts]), np.concatenate([one.value for one in cuts])
        offsets, length = offsets_of([len(one.found) for one in cuts]), found.last - found.first + 1
        return cls(found, value, offsets, owners(offsets), offsets_of(length)[:-1], length)

    def sums(self, values: Reals) -> Reals:
        """Return the sum of values (p) over each burst (b)."""
        return np.add.reduceat(values, self.start)

    def likenesses(self) -> Reals:
        """Return the correlation of each burst (b) with the average burst of its set, 0 to 1 (5.3).

        Negative ones count as 0, at the edge of the paper's plane, and so do bursts or averages without any variation.
        """
        found, edges = self.found, self.offsets[:-1]
        lead = np.maximum.reduceat(found.peak - found.first, edges)
        references = offsets_of(lead + np.maximum.reduceat(found.last - found.peak, edges) + 1)
        # where in its set's average each burst begins
        first = (references[:-1] + lead)[self.own] - (found.peak - found.first)
        place = places_of(first, self.length)
        count = np.bincount(place, minlength=references[-1])
        reference = np.bincount(place, self.value, references[-1]) / np.maximum(count, 1)
        value = self.value
        x, xx, xy = (self.sums(part) for part in (value, value * value, value * reference.take(place)))
        averages = [reference[a:b] for a, b in pairwise(references.tolist())]
        theirs = np.array([(one.sum(), (one * one).sum(), len(one)) for one in averages])[self.own]
        return _correlations(x, xx, xy, theirs[:, 0], theirs[:, 1], theirs[:, 2])

    def widths(self) -> Reals:
        """Return the widths of units to try (s, WIDTH_COUNT): from the mean duration of bursts to their mean distance.

        In seconds (5.3).
        """
        found, set_count = self.found, len(self.offsets) - 1
        counts = self.offsets[1:] - self.offsets[:-1]
        duration = np.maximum(1.0, np.bincount(self.own, found.last - found.first) / counts)
        is_next = (found.run[1:] == found.run[:-1]) & (self.own[1:] == self.own[:-1])
        own, between = self.own[1:][is_next], (found.first[1:] - found.last[:-1])[is_next]
        pairs = np.bincount(own, minlength=set_count)
        # where no run has two bursts all units are as wide as a burst
        distance = np.bincount(own, between, set_count) / np.maximum(pairs, 1)
        distance = np.where(pairs > 0, np.maximum(1.0, distance), duration)
        # where bursts lie close together their distance may be the lesser of the two
        low, high = np.minimum(duration, distance), np.maximum(duration, distance)
        widths = low[:, None] + np.arange(WIDTH_COUNT) * ((high - low) / (WIDTH_COUNT - 1))[:, None]
        widths[:, -1] = high
        return widths


def _correlations(x: Reals, xx: Reals, xy: Reals, y: Reals, yy: Reals, n: Reals) -> Reals:
    """Return correlation coefficients from sums over n places, those below 0 as 0."""
    x_var, y_var = xx - x * x / n, yy - y * y / n
    # what is no more than a rounding error of the sums is no variation
    is_varied = (x_var > 1e-12 * xx) & (y_var > 1e-12 * yy)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        found = (xy - x * y / n) / (np.sqrt(x_var) * np.sqrt(y_var))
    return np.where(is_varied & np.isfinite(found), np.clip(found, 0.0, 1.0), 0.0)


def _signatures(cuts: Sequence[_Cut], params: IosiParams) -> list[Signature]:
    """Return the signatures of sets, their samples cut into bursts."""
    bursts = _Bursts.of(cuts)
    run_counts = np.array([one.run_count for one in cuts])
    point_counts = np.array([one.point_count for one in cuts])
    times_s, spans_s = bursts.found.peak.astype(np.float64), point_counts.astype(np.float64)
    planes = Planes(times_s, bursts.likenesses(), bursts.found.run, bursts.offsets, run_counts, spans_s)
    width_s, height = bursts.widths().repeat(len(HEIGHTS), axis=1), np.tile(HEIGHTS, (len(cuts), WIDTH_COUNT))
    clusters = cliques(planes, width_s, height, params.gamma, params.kappa)
    common = _Common.of(bursts, clusters, offsets_of(point_counts), run_counts)
    return [_signature(one, common, number) for number, one in enumerate(cuts)]


# ---- from common bursts to a signature


@dataclass(frozen=True, slots=True)
class _Common:
    """The common bursts (c) of sets (s) as signatures, one set after the other, in the samples' unit.

    curve: the points of all; bursts: in places of it. begins (s + 1): where each set's points begin. counts (s): how
    many common bursts each set has. offsets (s + 1): where those begin of which something is left.
    """

    curve: Reals
    bursts: Bursts
    begins: Ints
    counts: Ints
    offsets: Ints

    @classmethod
    def of(cls, bursts: _Bursts, clusters: Clusters, begins: Ints, run_counts: Ints) -> _Common:
        """Return the mean of each common burst at its mean time (5.4)."""
        firsts, count = offsets_of(clusters.count), int(clusters.count.sum())
        member = (clusters.owner >= 0).nonzero()[0]
        plane = bursts.own[member]
        owner = clusters.owner[member] + firsts[plane]
        size = np.bincount(owner, minlength=count)
        found = rows_of(bursts.found, member)
        own = owners(firsts)
        crest = np.rint(np.bincount(owner, found.peak, count) / size).astype(np.int64) + begins[own]
        # each cluster has places for its longest lead before the crest and its longest tail after it
        lead, tail = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        np.maximum.at(lead, owner, found.peak - found.first)
        np.maximum.at(tail, owner, found.last - found.peak)
        width = lead + tail + 1
        middle = width.cumsum() - tail - 1
        length = bursts.length[member]
        place = places_of(middle[owner] - (found.peak - found.first), length)
        number = np.bincount(place)
        total = np.bincount(place, bursts.value.take(places_of(bursts.start[member], length)))
        # all bursts of a cluster have its crest, hence what is covered has no holes
        covered = offsets_of(number >= np.ceil(size / 2).repeat(width))
        first = np.maximum(crest - (covered[middle] - covered[middle - lead]), begins[own])
        last = np.minimum(crest + (covered[middle + tail + 1] - covered[middle]), begins[own + 1])
        first, last = _apart(first, crest, last, int(begins[-1]))
        is_kept = last > first
        mean, support = total / size.repeat(width), size / run_counts[own]
        columns = ((middle - crest)[is_kept], first[is_kept], last[is_kept], support[is_kept])
        kept = offsets_of(np.bincount(own[is_kept], minlength=len(run_counts)))
        return cls(*_placed(mean, *columns, int(begins[-1])), begins, clusters.count, kept)


def _signature(one: _Cut, common: _Common, number: int) -> Signature:
    """Return the signature of a set, which is the one of that number."""
    if not common.counts[number]:
        return Signature.nothing("no_common_bursts", one.background_bytes_per_s)
    begin, end = common.begins[number], common.begins[number + 1]
    bursts = rows_of(common.bursts, slice(common.offsets[number], common.offsets[number + 1]))
    with np.errstate(over="ignore"):
        volume = bursts.volume_bytes * one.highest
    placed = Bursts(
        bursts.started_s - begin, bursts.peaked_s - begin, bursts.ended_s - begin, volume, bursts.support_ratio.copy()
    )
    return Signature.curve(common.curve[begin:end] * one.highest, placed, one.background_bytes_per_s)


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
    """Put mean bursts between their first and last points (c); point x of a burst is mean[x + shift]."""
    place = places_of(first, last - first)
    value = mean.take(places_of(first + shift, last - first))
    curve = np.zeros(point_count)
    curve[place] = value
    volume = np.add.reduceat(value, offsets_of(last - first)[:-1])
    return curve, Bursts.between(curve, first, last, volume, support)
