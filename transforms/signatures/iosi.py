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

import numpy as np

from iosig.transforms.arrays import (
    Bools,
    Ints,
    Reals,
    offsets_of,
    owners,
    places_of,
    places_within,
    rows_of,
)
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.iosi_bursts import BurstTable, CutBursts, SegmentedSamples
from iosig.transforms.signatures.iosi_clique import (
    BurstPlanes,
    Clusters,
    DenseUnits,
    find_common_bursts,
    find_dense_units,
)
from iosig.transforms.signatures.iosi_crests import (
    HIGH_WAVES,
    RowBursts,
    WaveRules,
    mean_crest_heights,
    segment_bursts,
)
from iosig.transforms.signatures.outliers import (
    PARAMS as OUTLIER_PARAMS,
    OutlierScores,
    run_volumes,
    score_outliers,
    select_typical_runs,
)
from iosig.transforms.signatures.preprocessing import (
    MAX_PUBLISHED_EXCESS_RATIO,
    PreprocessedSamples,
    fill_gaps,
    preprocess,
    refine_granularity,
)
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
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
        """Return a copy with the filters of `iosi_filtered` enabled."""
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
    return _extract((_equalize(one, params) for one in sets), params)


def score_runs(sets: SampleSets, volume_bytes: Reals, is_atypical: Bools, params: IosiParams) -> OutlierScores:
    """Score n runs by duration and volume, and mark those that are excluded (section 5.1).

    Parameters
    ----------
    sets
        Sample sets with n runs.
    volume_bytes : (n,)
        See `outliers.run_volumes`.
    is_atypical : (n,)
        Runs that a filter by duration excludes, too.
    params
        Those of the method.

    Returns
    -------
    OutlierScores
        Unknown without preprocessing.
    """
    if not params.has_preprocessing:
        return OutlierScores.unknown(len(is_atypical), sets.set_count)
    thresholds = (params.min_outlier_factor, params.max_outlier_ratio)
    scores = score_outliers(sets.duration_s, volume_bytes, sets.offsets, *thresholds)
    return replace(scores, is_outlier=scores.is_outlier | is_atypical) if params.has_duration_filter else scores


def _equalize(sample_set: SampleSet, params: IosiParams) -> PreprocessedSamples:
    """Bring samples to one length, with preprocessing (5.1) or without it."""
    if params.has_preprocessing:
        return preprocess(sample_set, params.max_excess_ratio)
    return _resize_to_median(sample_set)


def _resize_to_median(sample_set: SampleSet) -> PreprocessedSamples:
    """Truncate refined samples to the median length (runs, points), or pad them with zeros."""
    points = refine_granularity(fill_gaps(sample_set.samples, sample_set.interval_s), sample_set.interval_s)
    run = np.flatnonzero(points.counts)
    counts = points.counts[run]
    length = int(np.median(counts)) if len(counts) else 0
    values = np.zeros((len(counts), length))
    place, row = places_within(counts), owners(offsets_of(counts))
    is_inside = place < length
    values[row[is_inside], place[is_inside]] = np.nan_to_num(points.values[is_inside], nan=0.0)
    return PreprocessedSamples(values, float("nan"), run)


# ---- from samples to bursts


def _segment(samples: PreprocessedSamples, params: IosiParams) -> SegmentedSamples | Signature:
    """Segment samples of one length into bursts; return a missing signature if they have none."""
    values, background_bytes_per_s = samples.filled, samples.background_bytes_per_s
    if not values.shape[0]:
        return Signature.missing("too_few_samples", background_bytes_per_s)
    maximum = float(values.max(initial=0.0))
    if not maximum > 0:
        return Signature.missing("no_io", background_bytes_per_s)
    relative = values / maximum
    smoothed, bursts = _smooth(relative, params)
    if not len(bursts):
        return Signature.missing("no_common_bursts", background_bytes_per_s)
    return SegmentedSamples(relative, smoothed, bursts, maximum, background_bytes_per_s)


def _smooth(relative: Reals, params: IosiParams) -> tuple[Reals, RowBursts]:
    """Smooth samples (runs, points), and segment them into bursts (5.2)."""
    smoothed = low_frequency_component(relative, params.level, params.wavelet)
    # ripples of a constant sample are rounding errors
    smoothed[relative.min(axis=1) == relative.max(axis=1)] = 0.0
    bursts = segment_bursts(smoothed, params.wave_rules)
    return smoothed, bursts if params.has_idle_waves else rows_of(bursts, _have_bytes(bursts, relative))


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


def _extract(samples: Iterable[PreprocessedSamples], params: IosiParams) -> list[Signature]:
    """Extract the signatures of samples of one length.

    Points are processed set by set, since the points of several sets do not fit into the processor's cache. Bursts are
    few, so the bursts of several sets are clustered together.
    """
    signatures: dict[int, Signature] = {}
    waiting: dict[int, CutBursts] = {}
    for number, one in enumerate(samples):
        segmented = _segment(one, params)
        if isinstance(segmented, Signature):
            signatures[number] = segmented
            continue
        waiting[number] = CutBursts.from_samples(segmented)
        if sum(len(one.bursts) for one in waiting.values()) >= _BATCH_BURSTS:
            signatures |= zip(waiting, _extract_batch(list(waiting.values()), params), strict=True)
            waiting = {}
    if waiting:
        signatures |= zip(waiting, _extract_batch(list(waiting.values()), params), strict=True)
    return [signatures[number] for number in range(len(signatures))]


# ---- from bursts to common bursts


@dataclass(frozen=True, slots=True)
class ClusteredBursts:
    """The bursts of s sets as points of planes, and the common bursts among them (section 5.3, Figures 10 and 11).

    Attributes
    ----------
    planes
    width_s, height : (s, g)
        Units of the grids that were tried; those of the best grid are at `clusters.grid`.
    clusters
    """

    planes: BurstPlanes
    width_s: Reals
    height: Reals
    clusters: Clusters


def _cluster(sets: Sequence[CutBursts], table: BurstTable, params: IosiParams) -> ClusteredBursts:
    """Find the common bursts of sets."""
    run_counts = np.array([one.run_count for one in sets])
    times_s, spans_s = table.bursts.peak.astype(np.float64), np.array([float(one.point_count) for one in sets])
    correlations = table.correlate_with_average()
    planes = BurstPlanes(times_s, correlations, table.bursts.run, table.offsets, run_counts, spans_s)
    heights = np.linspace(params.min_height, params.max_height, params.height_count)
    width_s = table.unit_widths(params.width_count).repeat(params.height_count, axis=1)
    height = np.tile(heights, (len(sets), params.width_count))
    clusters = find_common_bursts(planes, width_s, height, params.gamma, params.kappa)
    return ClusteredBursts(planes, width_s, height, clusters)


def _extract_batch(sets: Sequence[CutBursts], params: IosiParams) -> list[Signature]:
    """Extract the signatures of segmented sets."""
    table = BurstTable.concatenate(sets)
    return _average(sets, table, _cluster(sets, table, params), params)


def _average(
    sets: Sequence[CutBursts], table: BurstTable, clustered: ClusteredBursts, params: IosiParams
) -> list[Signature]:
    """Average the common bursts of sets into their signatures (section 5.4)."""
    begins, run_counts = offsets_of([one.point_count for one in sets]), clustered.planes.sample_count
    common = _CommonBursts.from_clusters(table, clustered.clusters, begins, run_counts, params.min_coverage_ratio)
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
        cls, table: BurstTable, clusters: Clusters, begins: Ints, run_counts: Ints, min_coverage_ratio: float
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


def _build_signature(segmented: CutBursts, common: _CommonBursts, number: int) -> Signature:
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


# ---- intermediate results


@dataclass(frozen=True, slots=True)
class IosiStages:
    """The intermediate results of IOSI for one set of n runs, and the signature they lead to.

    Attributes
    ----------
    volume_bytes : (n,)
        See `outliers.run_volumes`.
    scores : n
        Outlier elimination (section 5.1, Figure 7).
    samples
        Preprocessed samples (Figure 8); their `run` is the index in the whole set.
    segmented
        Smoothed samples and their bursts (Figure 9); None if there are no bursts, or too few runs.
    clustered, dense_units
        Points of bursts, common bursts, and the dense units of the best grid (Figures 10 and 11); None like
        `segmented`.
    signature
    """

    volume_bytes: Reals
    scores: OutlierScores
    samples: PreprocessedSamples
    segmented: SegmentedSamples | None
    clustered: ClusteredBursts | None
    dense_units: DenseUnits | None
    signature: Signature


def trace_iosi(sample_set: SampleSet, params: IosiParams, min_run_count: int) -> IosiStages:
    """Extract one signature as `methods.extract_signatures` does, and keep the intermediate results.

    Parameters
    ----------
    sample_set
        All runs, including outliers.
    params
        Those of the method.
    min_run_count
        See `methods.SignatureParams`.

    Returns
    -------
    IosiStages
    """
    sets = SampleSets.concatenate([sample_set])
    volume_bytes = run_volumes(sets)
    is_atypical = ~select_typical_runs(sets.duration_s, sets.offsets, sets.is_truncated)
    scores = score_runs(sets, volume_bytes, is_atypical, params)
    samples = _equalize(sample_set.select_runs(~scores.is_outlier), params)
    is_enough = sample_set.run_count >= min_run_count
    segmented = _segment(samples, params) if is_enough else Signature.missing("too_few_samples")
    known = (volume_bytes, scores, replace(samples, run=np.flatnonzero(~scores.is_outlier)[samples.run]))
    if isinstance(segmented, Signature):
        return IosiStages(*known, None, None, None, segmented)
    cut = [CutBursts.from_samples(segmented)]
    table = BurstTable.concatenate(cut)
    clustered = _cluster(cut, table, params)
    best = (0, int(clustered.clusters.grid[0]))
    dense = find_dense_units(clustered.planes, clustered.width_s[best], clustered.height[best], params.gamma)
    return IosiStages(*known, segmented, clustered, dense, _average(cut, table, clustered, params)[0])


@dataclass(frozen=True, slots=True)
class SmoothedRun:
    """One run's sample at one level of the wavelet decomposition (section 5.2, Figure 9).

    Attributes
    ----------
    level
    bytes_per_s : (points,)
        Low-frequency component [bytes per second].
    mean_crest_bytes_per_s
        Lower troughs separate bursts [bytes per second].
    burst_count
        Number of bursts at this level.
    """

    level: int
    bytes_per_s: Reals
    mean_crest_bytes_per_s: float
    burst_count: int


def smooth_run(segmented: SegmentedSamples, row: int, params: IosiParams) -> SmoothedRun:
    """Smooth one row of segmented samples at the level of the parameters."""
    smoothed, bursts = _smooth(segmented.relative[row : row + 1], params)
    height = float(mean_crest_heights(smoothed)[0]) * segmented.maximum
    return SmoothedRun(params.level, smoothed[0] * segmented.maximum, height, len(bursts))
