"""Extract signatures by IOSI, as published or with filters, from the bursts that the runs of a set have in common.

Liu et al., "Automatic Identification of Application I/O Signatures from Noisy Server-Side Traces", FAST'14,
https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu, sections 5.1 to 5.4. After outlier
elimination (5.1, `outliers`), samples are preprocessed (5.1, `preprocessing`), smoothed (5.2,
`low_frequency_component`) and segmented into bursts (5.2, `iosi_crests`). Common bursts are found by clustering (5.3,
`iosi_clique`) and averaged (5.4).

`iosi` has only the paper's rules. `iosi_filtered` adds ours (`IosiParams.add_filters`): a filter by duration before
outlier elimination, a smallest factor of an outlier, and a rule for the crests of a burst. On simulated sites, it
reaches the accuracy that the paper reports; docs/decisions/0026-iosi-reading.md has the measurements.

Where the paper is not specific, both choose alike. A burst is correlated with the average burst over the full length of
the latter, with zeros beyond the burst's own ends. Each point of the average burst is the mean of the bursts that
extend that far from their crest. The distance between bursts, the largest width of a unit (5.3: "the average time
distance between bursts"), is measured from the end of one to the start of the next. docs/methods.md lists all of these
choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import (
    Bools,
    Ints,
    Reals,
    concatenate_rows,
    offsets_of,
    owners,
    places_of,
    places_within,
    rows_of,
)
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.iosi_clique import BurstPlanes, Clusters, find_common_bursts
from iosig.transforms.signatures.iosi_crests import HIGH_WAVES, RowBursts, WaveRules, segment_bursts
from iosig.transforms.signatures.outliers import PARAMS as OUTLIER_PARAMS
from iosig.transforms.signatures.preprocessing import (
    MAX_PUBLISHED_EXCESS_RATIO,
    fill_gaps,
    preprocess,
    refine_granularity,
)
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: number of bursts that are clustered in one batch, which fits into the processor's cache
_BATCH_BURSTS = 2000


@dataclass(frozen=True, slots=True)
class IosiParams:
    """Parameters of IOSI, all of which are published with a signature. A site may set level, gamma and kappa.

    Attributes
    ----------
    level
        Level of the wavelet decomposition (section 5.2: 2).
    gamma, kappa
        Density thresholds, see `iosi_clique.find_common_bursts` (section 5.3: 0.5 and 0.9).
    wavelet
        Mother wavelet, as PyWavelets names it (section 5.2: discrete Meyer).
    width_count, height_count
        Number of widths and heights of a unit that are tried (section 5.3: 3 to 5).
    min_height, max_height
        Range of the heights (section 5.3).
    has_preprocessing
        Outlier elimination, duration correction and noise reduction (section 5.1). `iosi_raw` omits them, and only
        refines the granularity of samples (section 6.1).
    has_duration_filter
        Runs of atypical duration are excluded first, see `outliers.select_typical_runs`. Not in the paper.
    min_outlier_factor, max_outlier_ratio
        See `outliers.OutlierParams`. Without them, a run is an outlier if its local outlier factor exceeds the mean of
        the set (section 5.1: "we set the threshold as the mean of the sample set").
    max_excess_ratio
        See `preprocessing.correct_durations`. The interval of the paper (section 5.1) exists up to 1.
    requires_high_crest, ripple_ratio
        Rules for bursts that are not in the paper, see `iosi_crests.WaveRules`.
    has_idle_waves
        Waves without bytes are bursts, too. The smoothed sample ripples in idle time, but a burst is "a phase of high
        I/O activity" (section 5.2).
    min_coverage_ratio
        An average burst (section 5.4) has the seconds that this share of its bursts cover. At 0, these are all seconds,
        so that its volume is the mean volume of its bursts.

    Notes
    -----
    The defaults are the paper's. Sensitivity of `iosi_filtered` on simulated IOR_A to C, S3D and FLASH
    (docs/signatures-study.md): the cross-correlation changes by at most 0.09 for levels 1 to 4 and by at most 0.03 for
    gamma from 0.3 to 0.6, and falls above. Kappa from 0.8 to 1 changes it by at most 0.07; lower values lose FLASH.
    """

    level: int = 2
    gamma: float = 0.5
    kappa: float = 0.9
    wavelet: str = "dmey"
    width_count: int = 4
    height_count: int = 5
    min_height: float = 0.05
    max_height: float = 0.25
    has_preprocessing: bool = True
    has_duration_filter: bool = False
    min_outlier_factor: float = 0.0
    max_outlier_ratio: float = 1.0
    max_excess_ratio: float = 1.0
    requires_high_crest: bool = False
    ripple_ratio: float = 0.0
    has_idle_waves: bool = False
    min_coverage_ratio: float = 0.0

    @property
    def wave_rules(self) -> WaveRules:
        """The rules for bursts in addition to the paper's."""
        return WaveRules(self.requires_high_crest, self.ripple_ratio)

    def add_filters(self) -> IosiParams:
        """Return the parameters of `iosi_filtered`."""
        return replace(
            self,
            has_duration_filter=True,
            min_outlier_factor=OUTLIER_PARAMS.min_factor,
            max_outlier_ratio=OUTLIER_PARAMS.max_outlier_ratio,
            max_excess_ratio=MAX_PUBLISHED_EXCESS_RATIO,
            requires_high_crest=HIGH_WAVES.requires_high_crest,
            ripple_ratio=HIGH_WAVES.ripple_ratio,
            has_idle_waves=True,
            min_coverage_ratio=0.5,
        )


def extract_iosi(sets: Iterable[SampleSet], params: IosiParams | None = None) -> list[Signature]:
    """Extract the signature of each set by IOSI: by default as published, with filters, or without preprocessing.

    Parameters
    ----------
    sets
        Runs without outliers, or all runs if there is no preprocessing. Common bursts of several sets are found in one
        batch.
    params
        Those of the paper if None.

    Returns
    -------
    list of Signature
        Signatures in the order of the sets.
    """
    params = params or IosiParams()
    if not params.has_preprocessing:
        return _extract(((_resize_to_median(one), float("nan")) for one in sets), params)
    samples = (preprocess(one, params.max_excess_ratio) for one in sets)
    preprocessed = ((one.filled, one.background_bytes_per_s) for one in samples)
    return _extract(preprocessed, params)


def _resize_to_median(sample_set: SampleSet) -> Reals:
    """Truncate refined samples to the median length (runs, points), or pad them with zeros."""
    points = refine_granularity(fill_gaps(sample_set.samples, sample_set.interval_s), sample_set.interval_s)
    counts = points.counts
    counts = counts[counts > 0]
    length = int(np.median(counts)) if len(counts) else 0
    values = np.zeros((len(counts), length))
    place, row = places_within(counts), owners(offsets_of(counts))
    is_inside = place < length
    values[row[is_inside], place[is_inside]] = np.nan_to_num(points.values[is_inside], nan=0.0)
    return values


# ---- from samples to bursts


@dataclass(frozen=True, slots=True)
class _SegmentedSet:
    """Samples of one set, segmented into bursts (b); their points (p) are concatenated.

    value (p): value before smoothing, relative to the maximum of the set.
    """

    bursts: RowBursts
    value: Reals
    run_count: int
    point_count: int
    maximum: float
    background_bytes_per_s: float

    @classmethod
    def from_samples(
        cls, relative: Reals, bursts: RowBursts, maximum: float, background_bytes_per_s: float
    ) -> _SegmentedSet:
        """Cut the bursts out of samples (runs, points)."""
        run_count, point_count = relative.shape
        place = places_of(bursts.run * point_count + bursts.first, bursts.last - bursts.first + 1)
        return cls(bursts, relative.ravel().take(place), run_count, point_count, maximum, background_bytes_per_s)


def _segment(values: Reals, background_bytes_per_s: float, params: IosiParams) -> _SegmentedSet | Signature:
    """Segment samples of one length (runs, points) into bursts; return a missing signature if they have none."""
    if not values.shape[0]:
        return Signature.missing("too_few_samples", background_bytes_per_s)
    maximum = float(values.max(initial=0.0))
    if not maximum > 0:
        return Signature.missing("no_io", background_bytes_per_s)
    relative = values / maximum
    smoothed = low_frequency_component(relative, params.level, params.wavelet)
    # ripples of a constant sample are rounding errors
    smoothed[relative.min(axis=1) == relative.max(axis=1)] = 0.0
    bursts = segment_bursts(smoothed, params.wave_rules)
    if not params.has_idle_waves:
        bursts = rows_of(bursts, _have_bytes(bursts, relative))
    if not len(bursts):
        return Signature.missing("no_common_bursts", background_bytes_per_s)
    return _SegmentedSet.from_samples(relative, bursts, maximum, background_bytes_per_s)


def _have_bytes(bursts: RowBursts, values: Reals) -> Bools:
    """Mark the bursts (b) with bytes in the samples before smoothing (runs, points)."""
    positive = offsets_of(values.ravel() > 0)
    start = bursts.run * values.shape[1]
    has_bytes: Bools = positive[start + bursts.last + 1] > positive[start + bursts.first]
    return has_bytes


def low_frequency_component(rows: Reals, level: int = 2, wavelet: str = "dmey") -> Reals:
    """Compute the low-frequency component of each row, by default by the discrete Meyer wavelet (IOSI, section 5.2).

    Parameters
    ----------
    rows : (runs, points)
        Any unit.
    level
        Level of the decomposition; section 5.2 takes 2 "to better retain the bursty nature".
    wavelet
        As PyWavelets names it.

    Returns
    -------
    (runs, points)
        Rows are mirrored at their ends. The component may be negative next to bursts.
    """
    import pywt  # slow import

    component = rows
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for _ in range(level):
            component, _ = pywt.dwt(component, wavelet, axis=1)
        for _ in range(level):
            component = pywt.idwt(component, None, wavelet, axis=1)
    return np.ascontiguousarray(component[:, : rows.shape[1]])


def _extract(samples: Iterable[tuple[Reals, float]], params: IosiParams) -> list[Signature]:
    """Extract the signatures of samples of one length (runs, points) with their background.

    Points are processed set by set, since the points of several sets do not fit into the processor's cache. Bursts are
    few, so the bursts of several sets are clustered together.
    """
    signatures: dict[int, Signature] = {}
    waiting: dict[int, _SegmentedSet] = {}
    for number, (values, background_bytes_per_s) in enumerate(samples):
        segmented = _segment(values, background_bytes_per_s, params)
        if isinstance(segmented, Signature):
            signatures[number] = segmented
            continue
        waiting[number] = segmented
        if sum(len(one.bursts) for one in waiting.values()) >= _BATCH_BURSTS:
            signatures |= zip(waiting, _extract_batch(list(waiting.values()), params), strict=True)
            waiting = {}
    if waiting:
        signatures |= zip(waiting, _extract_batch(list(waiting.values()), params), strict=True)
    return [signatures[number] for number in range(len(signatures))]


# ---- from bursts to common bursts


@dataclass(frozen=True, slots=True)
class _BurstTable:
    """The bursts (b) of several sets (s) and their points (p), concatenated by set; no set is empty.

    offsets (s + 1): first burst of each set. owner (b): set of each burst. start, length (b): first point of a burst,
    and number of its points. value (p): as in `_SegmentedSet`.
    """

    bursts: RowBursts
    value: Reals
    offsets: Ints
    owner: Ints
    start: Ints
    length: Ints

    @classmethod
    def concatenate(cls, sets: Sequence[_SegmentedSet]) -> _BurstTable:
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

    def unit_widths(self, params: IosiParams) -> Reals:
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
        count = params.width_count
        widths = low[:, None] + np.arange(count) * ((high - low) / (count - 1))[:, None]
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


def _extract_batch(sets: Sequence[_SegmentedSet], params: IosiParams) -> list[Signature]:
    """Extract the signatures of segmented sets."""
    table = _BurstTable.concatenate(sets)
    run_counts = np.array([one.run_count for one in sets])
    point_counts = np.array([one.point_count for one in sets])
    times_s, spans_s = table.bursts.peak.astype(np.float64), point_counts.astype(np.float64)
    correlations = table.correlate_with_average()
    planes = BurstPlanes(times_s, correlations, table.bursts.run, table.offsets, run_counts, spans_s)
    heights = np.linspace(params.min_height, params.max_height, params.height_count)
    width_s = table.unit_widths(params).repeat(params.height_count, axis=1)
    height = np.tile(heights, (len(sets), params.width_count))
    clusters = find_common_bursts(planes, width_s, height, params.gamma, params.kappa)
    common = _CommonBursts.from_clusters(
        table, clusters, offsets_of(point_counts), run_counts, params.min_coverage_ratio
    )
    return [_build_signature(one, common, number) for number, one in enumerate(sets)]


# ---- from common bursts to a signature


@dataclass(frozen=True, slots=True)
class _CommonBursts:
    """The common bursts (c) of several sets (s) as curves, concatenated by set, relative to each set's maximum.

    curve: the points of all sets; bursts: common bursts, with positions in the curve. begins (s + 1): first point of
    each set. offsets (s + 1): first burst of each set, counting only bursts that still have points.
    """

    curve: Reals
    bursts: Bursts
    begins: Ints
    offsets: Ints

    @classmethod
    def from_clusters(
        cls, table: _BurstTable, clusters: Clusters, begins: Ints, run_counts: Ints, min_coverage_ratio: float
    ) -> _CommonBursts:
        """Average the bursts of each cluster at their mean time (section 5.4)."""
        firsts, count = offsets_of(clusters.count), int(clusters.count.sum())
        member = (clusters.owner >= 0).nonzero()[0]
        plane = table.owner[member]
        owner = clusters.owner[member] + firsts[plane]
        size = np.bincount(owner, minlength=count)
        bursts = rows_of(table.bursts, member)
        set_of_cluster = owners(firsts)
        crest = np.rint(np.bincount(owner, bursts.peak, count) / size).astype(np.int64) + begins[set_of_cluster]
        # each cluster has points for its longest lead before the crest and its longest tail after it
        lead, tail = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        np.maximum.at(lead, owner, bursts.peak - bursts.first)
        np.maximum.at(tail, owner, bursts.last - bursts.peak)
        width = lead + tail + 1
        middle = width.cumsum() - tail - 1
        length = table.length[member]
        place = places_of(middle[owner] - (bursts.peak - bursts.first), length)
        number = np.bincount(place)
        total = np.bincount(place, table.value.take(places_of(table.start[member], length)))
        # all bursts of a cluster cover its crest, so that the covered points are contiguous
        covered = offsets_of(number >= np.ceil(size * min_coverage_ratio).repeat(width))
        first = np.maximum(crest - (covered[middle] - covered[middle - lead]), begins[set_of_cluster])
        last = np.minimum(crest + (covered[middle + tail + 1] - covered[middle]), begins[set_of_cluster + 1])
        first, last = _separate_overlaps(first, crest, last, int(begins[-1]))
        is_kept = last > first
        mean, support = total / size.repeat(width), size / run_counts[set_of_cluster]
        columns = ((middle - crest)[is_kept], first[is_kept], last[is_kept], support[is_kept])
        offsets = offsets_of(np.bincount(set_of_cluster[is_kept], minlength=len(run_counts)))
        return cls(*_place_bursts(mean, *columns, int(begins[-1])), begins, offsets)


def _build_signature(segmented: _SegmentedSet, common: _CommonBursts, number: int) -> Signature:
    """Build the signature of set `number`."""
    bursts = rows_of(common.bursts, slice(common.offsets[number], common.offsets[number + 1]))
    if not len(bursts):
        return Signature.missing("no_common_bursts", segmented.background_bytes_per_s)
    begin, end = common.begins[number], common.begins[number + 1]
    with np.errstate(over="ignore"):
        volume = bursts.volume_bytes * segmented.maximum
    shifted = Bursts(
        bursts.start_s - begin, bursts.peak_s - begin, bursts.end_s - begin, volume, bursts.support_ratio.copy()
    )
    return Signature.from_curve(common.curve[begin:end] * segmented.maximum, shifted, segmented.background_bytes_per_s)


def _separate_overlaps(first: Ints, crest: Ints, last: Ints, point_count: int) -> tuple[Ints, Ints]:
    """Trim half-open intervals of bursts (c) so that none overlaps the next.

    Two overlapping bursts are divided in the middle of the overlap, but each keeps its crest. If two bursts have the
    same crest, the later one may become empty.
    """
    first, last = np.maximum(first, 0), np.minimum(last, point_count)
    middle = (last[:-1] + first[1:]) // 2
    border = np.maximum(np.minimum(middle, crest[1:]), crest[:-1] + 1)
    is_overlapping = last[:-1] > first[1:]
    begin, end = first.copy(), last.copy()
    begin[1:] = np.where(is_overlapping, np.maximum(first[1:], border), first[1:])
    end[:-1] = np.where(is_overlapping, np.minimum(last[:-1], border), last[:-1])
    return begin, np.maximum(end, begin)


def _place_bursts(
    mean: Reals, shift: Ints, first: Ints, last: Ints, support: Reals, point_count: int
) -> tuple[Reals, Bursts]:
    """Copy mean bursts into a curve between their first and last points (c); point x of a burst is mean[x + shift]."""
    place = places_of(first, last - first)
    value = mean.take(places_of(first + shift, last - first))
    curve = np.zeros(point_count)
    curve[place] = value
    volume = np.add.reduceat(value, offsets_of(last - first)[:-1])
    return curve, Bursts.from_intervals(curve, first, last, volume, support)
