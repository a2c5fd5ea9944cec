"""Classify a network's visual patterns: circular, striped, noisy, outlier, or no pattern.

Sigovan et al. (IPDPS'13), Figure 6, show the patterns but give no rules; the rules here are our own. They use the
histograms of a hop's source nodes, in octaves (log2 of the value), in each time window and in all windows together:

1. The *level* of a node is the mean of its nine deciles. It is as robust as a median against a few slow requests, but
   does not jump between two bands of values that each contain half of the requests.
2. *striped*: nodes near each other on the ring have more similar levels than shuffled nodes, and not because of a
   linear trend along the ring. Either nodes with the same next node form bands (analysis of variance), or the circular
   serial correlation of the levels is significant at some lag (exact moments under shuffling: Wald and Wolfowitz,
   Annals of Mathematical Statistics 14, 1943, DOI 10.1214/aoms/1177731358). The bands must also explain a large part
   of the variance.
3. *outlier*: a few nodes lie far above the others by a robust z-score, and have significantly many high values
   (binomial test; the Benjamini-Hochberg procedure bounds the false discovery rate).
4. *circular*: nodes have similar means, and values lie in narrow bands: contiguous dense values span few octaves.
5. *noisy*: contiguous dense values span many octaves, or the means of nodes differ widely.

Ambiguous cases have no pattern. A span is a set of windows that is classified: a single window of a hop, or all windows
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.log_bins import BINS_PER_OCTAVE
from iosig.transforms.networks.network import METRICS, Network
from iosig.transforms.networks.node_statistics import (
    NINTH_DECILE,
    Cells,
    Nodes,
    count_cells,
    find_main_targets,
    make_nodes,
    summarize_nodes,
)

Outcome = Literal["matched", "too_few_nodes", "too_few_transfers", "no_match"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Pattern = Literal["circular", "striped", "noisy", "outlier"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

PATTERN_ROWS = pl.Schema(
    {
        "hop": pl.Int32(),
        "metric": pl.String(),
        "is_whole_run": pl.Boolean(),
        "first_window": pl.Int32(),
        "last_window": pl.Int32(),
        "outcome": pl.String(),
        "pattern": pl.String(),
        "active_node_count": pl.Int64(),
        "transfer_count": pl.Int64(),
        "node_spread": pl.Float64(),
        "edge_spread": pl.Float64(),
        "band_ratio": pl.Float64(),
        "nodes_per_band": pl.Float64(),
        "outlier_score": pl.Float64(),
        "cause_nodes": pl.List(pl.String()),
    }
)

#: columns that are computed only for spans with enough nodes and transfers
_FINDING_COLUMNS = ("outcome", "pattern", "node_spread", "edge_spread", "band_ratio", "nodes_per_band", "outlier_score")
#: distance from the first to the ninth decile of a normal distribution, in standard deviations
_DECILE_RANGE_SIGMAS = 2.5631
#: efficiency of the median absolute deviation for normal values, relative to the standard deviation
_MAD_EFFICIENCY = 0.37
#: standard deviation of values spread evenly over a bin [octaves]
_BIN_DEVIATION = 1.0 / (BINS_PER_OCTAVE * np.sqrt(12.0))
#: maximum variance of levels that is a rounding error [octaves squared]
_MIN_VARIANCE = 1e-18
#: factor in Silverman's rule: bandwidth = factor * standard deviation * count ** (-1/5)
_SILVERMAN = 0.9


@dataclass(frozen=True, slots=True)
class PatternParams:
    """Criteria of the patterns; all are our own, since the paper classifies by eye.

    Attributes
    ----------
    min_node_count
        Minimum number of active nodes; with seven nodes, a shuffle too often looks ordered by chance.
    min_transfer_count
        Minimum number of transfers: three per node.
    min_outlier_transfer_count
        Minimum number of transfers of an outlier node; one slow request does not make a slow node.
    outlier_alpha
        Significance level of outliers.
    band_alpha
        Significance level of bands. It is lower, since each nightly run tests hundreds of windows.
    min_band_ratio
        Minimum fraction of the variance between nodes that bands explain.
    min_band_octaves
        Minimum standard deviation of the bands' levels [octaves]: one log bin.
    min_outlier_score
        Minimum robust z-score of an outlier (Iglewicz and Hoaglin's 3.5 for modified z-scores). For very few or very
        many nodes, it increases to the quantile that the maximum over all nodes exceeds with probability
        `outlier_alpha` (Student's t-distribution, since the deviation is an estimate).
    min_outlier_octaves
        Minimum distance of an outlier above the median [octaves]: a factor of two.
    max_outlier_ratio
        Maximum fraction of outlier nodes; if more nodes are high, they belong to the spread.
    min_deviation
        Minimum standard deviation in the z-score [octaves]: nearly one log bin.
    core_ratio
        Fraction of the transfers in the densest values, which define the dense bands.
    max_circular_octaves, min_noisy_octaves
        Maximum width of a dense band in a circular pattern, and minimum width in a noisy pattern [octaves]; a width in
        between is neither.
    max_circular_spread, min_noisy_spread
        The same limits for the standard deviation of the nodes' means, without sampling variance [octaves].
    max_cause_count
        Maximum number of nodes that are listed as causes.
    """

    min_node_count: int = 8
    min_transfer_count: int = 24
    min_outlier_transfer_count: int = 3
    outlier_alpha: float = 0.01
    band_alpha: float = 0.001
    min_band_ratio: float = 0.4
    min_band_octaves: float = 0.25
    min_outlier_score: float = 3.5
    min_outlier_octaves: float = 1.0
    max_outlier_ratio: float = 0.1
    min_deviation: float = 0.2
    core_ratio: float = 0.8
    max_circular_octaves: float = 2.0
    min_noisy_octaves: float = 2.5
    max_circular_spread: float = 0.35
    min_noisy_spread: float = 0.75
    max_cause_count: int = 20


PARAMS = PatternParams()


def classify_patterns(network: Network) -> pl.DataFrame:
    """Classify the pattern of each hop by each metric, in each time window and in all windows together.

    Parameters
    ----------
    network
        A single run's network.

    Returns
    -------
    PATTERN_ROWS
        One row per hop, metric and window; `last_window` is exclusive.

        - active_node_count, transfer_count: nodes and transfers with a known value.
        - node_spread: standard deviation of the nodes' means, without sampling variance [octaves].
        - edge_spread: median of the standard deviations within nodes [octaves].
        - band_ratio, nodes_per_band: fraction of the variance between nodes that bands explain, and period of the bands
          in nodes (NULL without bands).
        - outlier_score: highest z-score of a node.
        - cause_nodes: labels of the nodes that cause the pattern, strongest first; empty for circular patterns.
    """
    return classify_batch_patterns(NetworkBatch.from_network(network)).select(PATTERN_ROWS.names())


def classify_batch_patterns(networks: NetworkBatch) -> pl.DataFrame:
    """Classify the patterns of many networks; see `classify_patterns`.

    Parameters
    ----------
    networks
        Networks of n runs.

    Returns
    -------
    pl.DataFrame
        PATTERN_ROWS, network by network, with the number of the hop's outer layer (`layer`).
    """
    outer, spans = networks.layers.outer, 1 + networks.window_count
    targets = find_main_targets(networks)
    views = [
        _classify_spans(count_cells(networks, number), len(outer) * spans, targets) for number in range(len(METRICS))
    ]
    # rows are sorted by hop, metric and span
    row = np.arange(len(outer) * len(METRICS) * spans)
    hop, metric, window = row // (len(METRICS) * spans), row // spans % len(METRICS), row % spans - 1
    by_metric = (metric * len(outer) + hop) * spans + window + 1
    first = np.maximum(window, 0)
    rows = pl.DataFrame(
        {
            "layer": outer[hop],
            "hop": networks.layers.hop[outer][hop],
            "metric": pl.Series(METRICS).gather(metric),
            "is_whole_run": window < 0,
            "first_window": first,
            "last_window": np.where(window < 0, networks.window_count, first + 1),
            "outcome": pl.Series(OUTCOMES).gather(np.concatenate([view.outcome for view in views])[by_metric]),
            "active_node_count": np.concatenate([view.node_count for view in views])[by_metric],
            "transfer_count": np.concatenate([view.transfer_count for view in views])[by_metric],
            "row": by_metric,
        }
    )
    rows = rows.join(_findings_frame(networks, views), on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("outcome_right", "outcome").alias("outcome"), pl.col("cause_nodes").fill_null([])
    )
    return rows.select("layer", *PATTERN_ROWS).cast(dict(PATTERN_ROWS.items()))


@dataclass(frozen=True, slots=True)
class _Spans:
    """Classification of each span, by hop: first all windows together (window -1), then each window.

    outcome: index in OUTCOMES. findings: results for the spans with enough nodes and transfers, by span.
    """

    node_count: Ints
    transfer_count: Ints
    outcome: Ints
    findings: dict[int, _Finding]


def _classify_spans(cells: Cells, span_count: int, targets: Ints) -> _Spans:
    """Classify the pattern of one metric in each span with enough nodes and transfers."""
    is_first = cells.is_first_of_node
    node_count = np.bincount(cells.span[is_first], minlength=span_count)
    transfer_count = np.bincount(cells.span, cells.count, span_count).astype(np.int64)
    has_few_nodes = node_count < PARAMS.min_node_count
    has_few_transfers = transfer_count < PARAMS.min_transfer_count
    outcome = np.where(has_few_nodes, OUTCOMES.index("too_few_nodes"), OUTCOMES.index("too_few_transfers"))
    enough = np.flatnonzero(~(has_few_nodes | has_few_transfers)).tolist()
    return _Spans(
        node_count, transfer_count, outcome, {span: _classify(make_nodes(cells, span, targets)) for span in enough}
    )


def _findings_frame(networks: NetworkBatch, views: Sequence[_Spans]) -> pl.DataFrame:
    """Collect the findings of all metrics with their row index; spans with too few nodes or transfers have no row."""
    labels = networks.layers.labels
    rows = [
        (metric * len(spans.outcome) + span, *finding.values, labels.gather(finding.causes).to_list())
        for metric, spans in enumerate(views)
        for span, finding in spans.findings.items()
    ]
    names = ("row", *_FINDING_COLUMNS, "cause_nodes")
    return pl.DataFrame(
        rows, schema={"row": pl.Int64(), **{name: PATTERN_ROWS[name] for name in names[1:]}}, orient="row"
    )


# ---- classification


@dataclass(frozen=True, slots=True)
class _Finding:
    """Values of a row (`_FINDING_COLUMNS`), and the numbers of the nodes that cause the pattern."""

    values: tuple[object, ...]
    causes: Ints


def _classify(nodes: Nodes) -> _Finding:
    dense = _find_dense_bands(nodes)
    # means, since their sampling variance is known: the variance of a transfer divided by the number of transfers
    deviation, _ = _subtract_sampling_variance(_robust_std(nodes.mean), nodes)
    views = [_make_view(nodes)]
    if len(dense) > 1:
        views.append(_make_view(_align_bands(nodes, dense)))
    pattern, view, causes = _choose_pattern(views, deviation, float(np.diff(dense).max()) / BINS_PER_OCTAVE)
    values = (
        "matched" if pattern else "no_match",
        pattern,
        deviation,
        float(np.median(nodes.internal_spread)),
        view.bands.ratio,
        view.bands.period if pattern == "striped" else None,
        float(view.scores.max()),
    )
    return _Finding(values, nodes.number[causes[: PARAMS.max_cause_count]])


@dataclass(frozen=True, slots=True)
class _View:
    """Nodes with their bands and z-scores (n), and the indices of outliers, highest first."""

    nodes: Nodes
    bands: _Bands
    scores: Reals
    outliers: Ints


def _make_view(nodes: Nodes) -> _View:
    scores = _scores(nodes.level, nodes)
    return _View(nodes, _find_bands(nodes), scores, _find_outliers(nodes, scores))


def _choose_pattern(views: list[_View], deviation: float, octaves: float) -> tuple[Pattern | None, _View, Ints]:
    """Choose the pattern; return it, the view that shows it, and the nodes that cause it, strongest first.

    deviation: standard deviation between nodes. octaves: width of the widest dense band.
    """
    no_nodes = np.zeros(0, dtype=np.int64)
    for view in views:
        if view.bands.is_clear:
            fit = view.bands.fit
            high = np.flatnonzero(fit > np.median(fit))
            return "striped", view, high[np.argsort(-fit[high], kind="stable")]
    for view in views:
        if len(view.outliers):
            return "outlier", view, view.outliers
    if deviation <= PARAMS.max_circular_spread and octaves <= PARAMS.max_circular_octaves:
        return "circular", views[0], no_nodes
    if deviation >= PARAMS.min_noisy_spread or octaves >= PARAMS.min_noisy_octaves:
        return "noisy", views[0], np.argsort(-views[0].nodes.internal_spread, kind="stable")
    return None, views[0], no_nodes


def _robust_std(values: Reals) -> float:
    """Estimate the standard deviation from the first and the ninth decile, which extreme nodes do not affect.

    With few distinct values, the deciles overestimate the standard deviation. The plain standard deviation is therefore
    the upper limit.
    """
    low, high = np.quantile(values, [0.1, 0.9])
    return float(min((high - low) / _DECILE_RANGE_SIGMAS, values.std()))


def _subtract_sampling_variance(observed: float, nodes: Nodes) -> tuple[float, float]:
    """Estimate the standard deviation between nodes, and the sampling variance of one transfer.

    The sampling variance cannot exceed the observed variance. If the requests of all nodes vary in the same way, it is
    smaller than the variance within nodes suggests.
    """
    per_node = float((1.0 / nodes.count).mean())
    sampling = min(nodes.variance * per_node, observed**2)
    return float(np.sqrt(max(observed**2 - sampling, 0.0))), sampling / per_node


def _find_dense_bands(nodes: Nodes) -> Ints:
    """Find the contiguous bands of the densest values, which contain most transfers.

    Returns the start and end of each band, in bins (bands, 2). The histogram is smoothed to fill gaps with few
    transfers, with Silverman's bandwidth for a standard deviation of one octave.
    """
    first = int(nodes.bin.min())
    histogram = np.bincount(nodes.bin - first, nodes.cell_count)
    deviation = _SILVERMAN * BINS_PER_OCTAVE * float(histogram.sum()) ** -0.2
    margin = int(np.ceil(4 * deviation))
    kernel = np.exp(-0.5 * (np.arange(-margin, margin + 1) / deviation) ** 2)
    smooth = np.convolve(histogram, kernel / kernel.sum())
    descending = np.sort(smooth)[::-1]
    core_size = int(np.searchsorted(np.cumsum(descending), PARAMS.core_ratio * histogram.sum() * (1 - 1e-9)))
    is_core = np.concatenate([[False], smooth >= descending[min(core_size, len(descending) - 1)], [False]])
    edges = np.flatnonzero(np.diff(is_core.astype(np.int8)))
    bands: Ints = edges.reshape(-1, 2) + first - margin
    return bands


def _align_bands(nodes: Nodes, dense: Ints) -> Nodes:
    """Express each value relative to the nearest dense band, so that all bands coincide.

    The band of a request does not depend on the node. If a node has few requests, however, their bands affect the level
    of the node.
    """
    middle = np.floor(dense.mean(axis=1)).astype(np.int64)
    nearest = np.searchsorted((dense[:-1, 1] + dense[1:, 0]) / 2.0, nodes.bin + 0.5)
    bins = nodes.bin - middle[nearest]
    lowest, span = int(bins.min()), int(np.ptp(bins)) + 1
    cells, place = np.unique(nodes.cell_node * span + bins - lowest, return_inverse=True)
    count = np.bincount(place, nodes.cell_count).astype(np.int64)
    return summarize_nodes(nodes.number, nodes.target, cells // span, cells % span + lowest, count)


# ---- outliers


def _scores(levels: Reals, nodes: Nodes) -> Reals:
    """Compute the robust z-score of each node above the median (n), including the sampling variance of the node."""
    above = levels - np.median(levels)
    observed = max(SIGMAS_PER_MAD * float(np.median(np.abs(above))), _robust_std(levels))
    deviation, per_transfer = _subtract_sampling_variance(observed, nodes)
    scores: Reals = above / np.sqrt(max(deviation, PARAMS.min_deviation) ** 2 + per_transfer / nodes.count)
    return scores


def _find_outliers(nodes: Nodes, scores: Reals) -> Ints:
    """Find the outliers, highest first; return no outliers if too many nodes are high."""
    from scipy.special import stdtrit

    count = len(scores)
    alpha = PARAMS.outlier_alpha / count
    min_score = max(PARAMS.min_outlier_score, -float(stdtrit(_MAD_EFFICIENCY * count, alpha)))
    levels = nodes.level
    is_high = (scores >= min_score) & (levels - np.median(levels) >= PARAMS.min_outlier_octaves)
    if is_high.sum() > max(1.0, PARAMS.max_outlier_ratio * count):
        return np.zeros(0, dtype=np.int64)
    is_high &= nodes.count >= PARAMS.min_outlier_transfer_count
    outliers = np.flatnonzero(is_high & _test_high_counts(nodes))
    return outliers[np.argsort(-scores[outliers], kind="stable")]


def _test_high_counts(nodes: Nodes) -> Bools:
    """Test whether nodes have significantly more high values than others (n), at a controlled false discovery rate.

    High values exceed the median node's ninth decile by half an octave.
    """
    from scipy.special import betainc

    threshold = float(np.median(nodes.quantiles[:, NINTH_DECILE])) + 0.5
    is_above = (nodes.bin + 0.5) / BINS_PER_OCTAVE > threshold
    above = np.bincount(nodes.cell_node, nodes.cell_count * is_above, len(nodes.count))
    # upper tail of the binomial distribution
    tail = betainc(np.maximum(above, 1.0), nodes.count - np.maximum(above, 1.0) + 1.0, above.sum() / nodes.count.sum())
    p_values = np.where(above > 0, tail, 1.0)
    ascending = np.sort(p_values)
    rank = np.arange(1, len(ascending) + 1)
    rejected = np.flatnonzero(ascending <= PARAMS.outlier_alpha * rank / len(ascending))
    if not len(rejected):
        return np.zeros(len(p_values), dtype=bool)
    is_significant: Bools = p_values <= ascending[rejected[-1]]
    return is_significant


# ---- bands


@dataclass(frozen=True, slots=True)
class _Bands:
    """Bands of adjacent nodes: explained fraction of the variance, period in nodes, and fitted levels."""

    ratio: float
    period: float | None
    fit: Reals
    is_clear: bool


def _find_bands(nodes: Nodes) -> _Bands:
    """Choose the bands that explain more variance: bands with the same main target, or bands of periodic levels."""
    levels = nodes.level
    middle, deviation = float(np.median(levels)), max(_robust_std(levels), _BIN_DEVIATION)
    # clipped, so that outliers neither form nor hide a band
    clipped = np.clip(levels, middle - 3 * deviation, middle + 3 * deviation)
    observed = float(clipped.var())
    if observed <= _MIN_VARIANCE:
        return _Bands(0.0, None, clipped, is_clear=False)
    clipped = clipped - clipped.mean()
    trend = _trend_ratio(clipped)
    sampling = nodes.variance * float((1.0 / nodes.count).mean())
    candidates = []
    for ratio, p_value, fit in (_fit_target_bands(clipped, nodes.target), _fit_periodic_bands(clipped)):
        explained = ratio * observed
        # Bonferroni correction for two views with two tests each
        is_clear = 4 * p_value <= PARAMS.band_alpha and explained >= PARAMS.min_band_octaves**2
        is_clear = is_clear and explained >= PARAMS.min_band_ratio * (observed - sampling) and ratio > trend
        candidates.append(_Bands(ratio, _band_period(fit) if is_clear else None, fit, is_clear))
    return max(candidates, key=lambda bands: (bands.is_clear, bands.ratio))


def _trend_ratio(levels: Reals) -> float:
    """Compute the fraction of the variance of centered levels (n) that a linear trend along the ring explains."""
    position = np.arange(len(levels)) - (len(levels) - 1) / 2.0
    explained = float(position @ levels) ** 2 / float(position @ position) / float(levels @ levels)
    return 1.0 - (1.0 - explained) * (len(levels) - 1) / (len(levels) - 2)


def _fit_target_bands(levels: Reals, target: Ints) -> tuple[float, float, Reals]:
    """Fit bands of nodes with the same main target; return explained fraction of variance, p-value and fit.

    The method is a one-way analysis of variance (Fisher). The fraction is adjusted for the number of bands.
    """
    from scipy.special import fdtrc

    band = np.cumsum(np.concatenate([[0], (target[1:] != target[:-1])])).astype(np.int64)
    nodes, bands = len(levels), int(band[-1]) + 1
    # bands need several nodes and a known target
    if bands < 3 or 2 * bands > nodes or (target < 0).any():
        return 0.0, 1.0, np.zeros(nodes)
    size = np.bincount(band)
    fit = (np.bincount(band, levels) / size)[band]
    between, total = float((fit**2).sum()), float((levels**2).sum())
    if total <= _MIN_VARIANCE * nodes:
        return 0.0, 1.0, fit
    within = max(total - between, 1e-12 * total)
    ratio = 1.0 - within / (nodes - bands) * (nodes - 1) / total
    p_value = float(fdtrc(bands - 1, nodes - bands, between / (bands - 1) / (within / (nodes - bands))))
    return max(ratio, 0.0), p_value, fit


def _fit_periodic_bands(levels: Reals) -> tuple[float, float, Reals]:
    """Fit periodic levels; return explained fraction of variance, p-value and fit.

    The lag is the one below half the ring with the highest circular serial correlation. The moments of the correlation
    under shuffling (Wald and Wolfowitz, section 5) are the same for any lag. The p-value is multiplied by the number of
    lags.
    """
    from scipy.special import ndtr

    count = len(levels)
    lags = np.arange(1, (count + 1) // 2)
    spectrum = np.fft.rfft(levels)
    products = np.fft.irfft(np.abs(spectrum) ** 2, count)[lags]
    second, fourth = float((levels**2).sum()), float((levels**4).sum())
    if second <= _MIN_VARIANCE * count:
        return 0.0, 1.0, levels
    mean = -second / (count - 1)
    variance = (second**2 - fourth) / (count - 1) + (second**2 - 2 * fourth) / ((count - 1) * (count - 2)) - mean**2
    best = int(np.argmax(products))
    deviation = (products[best] - mean) / np.sqrt(max(variance, 1e-12 * second**2))
    lag = int(lags[best])
    if lag == 1:
        fit = (np.roll(levels, 1) + levels + np.roll(levels, -1)) / 3.0
    else:
        phase = np.arange(count) % lag
        fit = (np.bincount(phase, levels) / np.bincount(phase))[phase]
    return max(float(products[best] / second), 0.0), float(min(1.0, ndtr(-deviation) * len(lags))), fit


def _band_period(fit: Reals) -> float | None:
    """Return the mean distance between bands, in nodes; None without bands."""
    is_high = fit > np.median(fit)
    rises = int((is_high & ~np.roll(is_high, 1)).sum())
    return len(fit) / rises if rises else None
