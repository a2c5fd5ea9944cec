"""What the eye sees in a network's rings, named by statistics: circular, striped, noisy, outlier, or none of these.

Sigovan et al. (IPDPS'13), Figure 6, show the patterns and give no rules; the rules here are ours. All is told from
the histograms of a hop's source nodes, in octaves (log2 of the value), in each time window and in all together:

1. a node's *level* is the mean of its nine deciles: as little moved by a few slow requests as a median is, but it
   does not jump between two bands of values of which each holds half of the requests;
2. *striped*: nodes near each other on the ring are more alike than shuffled nodes would be, and not because levels
   rise all along the ring. Either the nodes of the
   same next node form bands (analysis of variance), or the levels correlate with themselves some nodes on (the
   circular serial correlation, whose moments under shuffling Wald and Wolfowitz give exactly: Annals of Mathematical
   Statistics 14, 1943, DOI 10.1214/aoms/1177731358). Bands must explain a good part of the variance, too;
3. *outlier*: a few nodes lie far above the others by a robust score, and have more high values than chance gives to
   any node (binomial; Benjamini and Hochberg's rule keeps false finds among them few);
4. *circular*: nodes agree, and values lie in narrow bands: most of them together fill few octaves at a stretch;
5. *noisy*: values fill many octaves at a stretch, or nodes disagree.

Where nothing of this is clear, none is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.log_bins import BINS_PER_OCTAVE, LOWEST
from iosig.transforms.networks.network import METRICS, Network

Outcome = Literal["named", "too_few_nodes", "too_few_transfers", "none_fits"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Pattern = Literal["circular", "striped", "noisy", "outlier"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

PATTERN_ROWS = pl.Schema(
    {
        "hop": pl.Int32(),
        "metric": pl.String(),
        "is_whole": pl.Boolean(),
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

#: what is said of a span that has enough nodes and transfers
_TOLD = ("outcome", "pattern", "node_spread", "edge_spread", "band_ratio", "nodes_per_band", "outlier_score")
#: above all bins
_NO_BIN = 1 << 16
_QUANTILES = np.concatenate([np.arange(1, 10) / 10.0, [0.25, 0.75]])
_NINTH = 8
#: between the first and the ninth decile of a normal distribution, in standard deviations
_DECILES_APART = 2.5631
#: the interquartile range of a normal distribution, in standard deviations
_QUARTILES_APART = 1.349
#: a median absolute deviation tells as much as the plain deviation of so many fewer normal values
_MAD_EFFICIENCY = 0.37
#: a bin's own standard deviation if values lie evenly in it, in octaves
_BIN_DEVIATION = 1.0 / (BINS_PER_OCTAVE * np.sqrt(12.0))
#: variance of levels below this is rounding [octaves squared]
_LEAST_VARIANCE = 1e-18
#: Silverman's rule: the bandwidth of a smoothed histogram is so many deviations, by the count to the power of -1/5
_SILVERMAN = 0.9


# From where on a pattern is named: all are ours, since the paper names patterns by eye.

#: fewer active nodes have no pattern: a shuffle of seven is too often in order by chance
_LEAST_NODE_COUNT = 8
#: of fewer transfers, three for each of so few nodes, it is not known what values they fill
_LEAST_TRANSFER_COUNT = 24
#: a node of fewer transfers is no outlier: one slow request is not a slow node
_LEAST_OUTLIER_COUNT = 3
#: how often nodes like the others may pass for outliers
_CHANCE = 0.01
#: how often shuffled nodes may pass for striped: the less, as a night asks for hundreds of windows
_BAND_CHANCE = 0.001
#: bands are named if they explain this share of what sets nodes apart
_LEAST_BAND_RATIO = 0.4
#: the standard deviation of the bands' levels; less than one log bin is not seen
_LEAST_BAND_OCTAVES = 0.25
#: robust deviations above the median (Iglewicz and Hoaglin's 3.5 for modified scores), and more where there are very
#: few nodes or very many: what the highest of as many normal ones exceeds by `_CHANCE` (Student's distribution, for
#: the deviation is estimated, too)
_LEAST_OUTLIER_SCORE = 3.5
#: and twice the typical value at the least, or it is not "clearly" higher
_LEAST_OUTLIER_OCTAVES = 1.0
#: more nodes than this share are not "a small number"; then they are part of the spread
_MOST_OUTLIER_RATIO = 0.1
#: the least deviation that nodes are scored by, in octaves: nearly a log bin
_LEAST_DEVIATION = 0.2
#: what values fill is told from the densest ones that hold this share of the transfers
_CORE_RATIO = 0.8
#: so many octaves at a stretch are filled at most by a band of values that are "approximately constant", and at least
#: by those of "high variance"; between them nothing is named
_MOST_CIRCULAR_OCTAVES, _LEAST_NOISY_OCTAVES = 2.0, 2.5
#: the same for the standard deviation of nodes' means, less what the number of their transfers explains
_MOST_CIRCULAR_SPREAD, _LEAST_NOISY_SPREAD = 0.35, 0.75
#: nodes that are told as causes
_MOST_CAUSE_COUNT = 20


def patterns(network: Network) -> pl.DataFrame:
    """Return what each hop looks like by each metric (PATTERN_ROWS), in each time window and in all of them together.

    hop, metric, is_whole, first_window, last_window (exclusive). outcome; pattern (NULL unless named).
    active_node_count, transfer_count: with a known value. node_spread: the nodes' means' standard deviation, less what
    the number of their transfers explains [octaves]. edge_spread: the median node's own [octaves]. band_ratio,
    nodes_per_band: the share of the variance between nodes that bands explain, and their period (NULL without any).
    outlier_score: the highest node's. cause_nodes: labels, the strongest first; empty for circular.
    """
    return patterns_of(NetworkBatch.of_one(network)).select(PATTERN_ROWS.names())


def patterns_of(networks: NetworkBatch) -> pl.DataFrame:
    """Return the patterns of many networks, one after the other, with the hop's outer layer among all (`layer`)."""
    outer, spans = networks.layers.outer, 1 + networks.window_count
    targets = _main_targets(networks)
    looks = [_looked_for(_cells(networks, number), len(outer) * spans, targets) for number in range(len(METRICS))]
    # of each hop first all spans by one metric, then by the next one
    place = np.arange(len(outer) * len(METRICS) * spans)
    hop, metric, window = place // (len(METRICS) * spans), place // spans % len(METRICS), place % spans - 1
    by_metric = (metric * len(outer) + hop) * spans + window + 1
    first = np.maximum(window, 0)
    rows = pl.DataFrame(
        {
            "layer": outer[hop],
            "hop": networks.layers.place[outer][hop],
            "metric": pl.Series(METRICS).gather(metric),
            "is_whole": window < 0,
            "first_window": first,
            "last_window": np.where(window < 0, networks.window_count, first + 1),
            "outcome": pl.Series(OUTCOMES).gather(np.concatenate([look.outcome for look in looks])[by_metric]),
            "active_node_count": np.concatenate([look.node_count for look in looks])[by_metric],
            "transfer_count": np.concatenate([look.transfer_count for look in looks])[by_metric],
            "row": by_metric,
        }
    )
    rows = rows.join(_told_frame(networks, looks), on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("outcome_right", "outcome").alias("outcome"), pl.col("cause_nodes").fill_null([])
    )
    return rows.select("layer", *PATTERN_ROWS).cast(dict(PATTERN_ROWS.items()))


@dataclass(frozen=True, slots=True)
class _Spans:
    """By span, window -1 (all of them) and then window by window of each hop: its nodes, transfers and outcome.

    outcome: the place in OUTCOMES. named: of the spans that have enough of both, by span.
    """

    node_count: Ints
    transfer_count: Ints
    outcome: Ints
    named: dict[int, _Found]


def _looked_for(cells: _Cells, span_count: int, targets: Ints) -> _Spans:
    """Return what the nodes look like in each span."""
    is_first = cells.is_first_of_node
    node_count = np.bincount(cells.span[is_first], minlength=span_count)
    transfer_count = np.bincount(cells.span, cells.count, span_count).astype(np.int64)
    # most windows of a small trace: nothing else is asked of them
    has_few_nodes, has_few_transfers = node_count < _LEAST_NODE_COUNT, transfer_count < _LEAST_TRANSFER_COUNT
    outcome = np.where(has_few_nodes, OUTCOMES.index("too_few_nodes"), OUTCOMES.index("too_few_transfers"))
    enough = np.flatnonzero(~(has_few_nodes | has_few_transfers)).tolist()
    return _Spans(node_count, transfer_count, outcome, {span: _named(_nodes(cells, span, targets)) for span in enough})


def _told_frame(networks: NetworkBatch, looks: Sequence[_Spans]) -> pl.DataFrame:
    """Return what is said of the spans that have enough nodes and transfers, by their place among those of all."""
    labels = networks.layers.labels
    rows = [
        (metric * len(look.outcome) + span, *found.told, labels.gather(found.causes).to_list())
        for metric, look in enumerate(looks)
        for span, found in look.named.items()
    ]
    names = ("row", *_TOLD, "cause_nodes")
    return pl.DataFrame(
        rows, schema={"row": pl.Int64(), **{name: PATTERN_ROWS[name] for name in names[1:]}}, orient="row"
    )


# ---- from counts to nodes


@dataclass(frozen=True, slots=True)
class _Cells:
    """Counts by span, source node and bin (cells), sorted; a hop's first span holds all its windows together."""

    span: Ints
    node: Ints
    bin: Ints
    count: Ints

    @property
    def is_first_of_node(self) -> Bools:
        """Mark the first cell of each node and span."""
        found: Bools = (np.diff(self.span, prepend=-1) > 0) | (np.diff(self.node, prepend=-1) != 0)
        return found

    def of(self, span: int) -> tuple[Ints, Ints, Ints]:
        """Return node, bin and count of a span's cells."""
        first, last = np.searchsorted(self.span, [span, span + 1])
        return self.node[first:last], self.bin[first:last], self.count[first:last]


def _cells(networks: NetworkBatch, metric: int) -> _Cells:
    """Return the counts of all hops by a metric; zero and negative values count as the lowest bin of all in the hop."""
    counts = networks.counts.filter(pl.col("metric") == metric)
    window, edge, bins, count = (counts[name].cast(pl.Int64).to_numpy() for name in ("window", "edge", "bin", "count"))
    node = networks.source[edge]
    hop = np.searchsorted(networks.layers.outer, networks.layers.of_nodes(node))
    is_known = bins >= LOWEST
    lowest = np.full(len(networks.layers.outer), _NO_BIN)
    np.minimum.at(lowest, hop[is_known], bins[is_known])
    # a hop without any known value has no cells
    kept = np.flatnonzero(lowest[hop] < _NO_BIN)
    if not len(kept):
        return _Cells(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    bins = np.maximum(bins, lowest[hop])[kept]
    low, width = int(bins.min()), int(np.ptp(bins)) + 1
    whole = hop[kept] * (1 + networks.window_count)
    keys, totals = [], []
    for span in (whole, whole + 1 + window[kept]):
        key, total = _summed((span * len(networks.layers.labels) + node[kept]) * width + bins - low, count[kept])
        keys.append(key)
        totals.append(total)
    both = np.concatenate(keys)
    # no key is in both
    order = np.argsort(both, kind="stable")
    key = both[order]
    place = key // width
    node_count = len(networks.layers.labels)
    return _Cells(place // node_count, place % node_count, key % width + low, np.concatenate(totals)[order])


def _summed(key: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys, rising, with the sums of their counts."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
    return key[starts], np.add.reduceat(count[order], starts)


def _main_targets(networks: NetworkBatch) -> Ints:
    """Return to which next node most transfers of each node go (nodes); -1 where that is not most of them."""
    found = np.full(len(networks.layers.labels), -1, dtype=np.int64)
    totals = networks.totals
    counts = np.bincount(totals["edge"].to_numpy(), totals["transfer_count"].to_numpy(), len(networks.source))
    of_source = np.bincount(networks.source, counts, len(found))
    is_main = 2 * counts > of_source[networks.source]
    found[networks.source[is_main]] = networks.target[is_main]
    return found


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The active nodes (n) of a hop: their numbers, transfers, means, quantiles (n, _QUANTILES) and main targets.

    variance: of a node's own values, over all nodes [octaves squared]. bin, cell_node (place among the active ones),
    cell_count (cells): their histograms.
    """

    number: Ints
    count: Ints
    mean: Reals
    quantiles: Reals
    target: Ints
    variance: float
    bin: Ints
    cell_node: Ints
    cell_count: Ints

    @property
    def level(self) -> Reals:
        """The mean of each node's deciles (n)."""
        found: Reals = self.quantiles[:, :9].mean(axis=1)
        return found

    @property
    def own_spread(self) -> Reals:
        """The robust standard deviation of each node's values (n)."""
        lower, upper = self.quantiles[:, 9:].T
        found: Reals = (upper - lower) / _QUARTILES_APART
        return found


def _nodes(cells: _Cells, span: int, targets: Ints) -> _Nodes:
    node, bins, count = cells.of(span)
    # they are sorted, which np.unique would do again
    is_first = np.diff(node, prepend=-1) > 0
    number, place = node[is_first], np.cumsum(is_first) - 1
    return _with_histograms(number, targets[number], place, bins, count)


def _with_histograms(number: Ints, target: Ints, place: Ints, bins: Ints, count: Ints) -> _Nodes:
    """Return nodes by their histograms, sorted by node and bin."""
    total = np.bincount(place, count, len(number)).astype(np.int64)
    middle = (bins + 0.5) / BINS_PER_OCTAVE
    mean = np.bincount(place, count * middle, len(number)) / np.maximum(total, 1)
    squares = float((count * (middle - mean[place]) ** 2).sum())
    freedom = int((total - 1).sum())
    variance = squares / freedom if freedom else 0.0
    return _Nodes(number, total, mean, _quantiles(place, bins, count, total), target, variance, bins, place, count)


def _quantiles(place: Ints, bins: Ints, count: Ints, total: Ints) -> Reals:
    """Return quantiles (nodes, _QUANTILES) in octaves: values lie evenly in their bins."""
    ends = np.cumsum(count)
    sought = (np.cumsum(total) - total)[:, None] + _QUANTILES * total[:, None]
    first = np.searchsorted(place, np.arange(len(total)))[:, None]
    last = np.searchsorted(place, np.arange(len(total)), side="right")[:, None] - 1
    cell = np.clip(np.searchsorted(ends, sought), first, last)
    share = np.clip((sought - (ends[cell] - count[cell])) / np.maximum(count[cell], 1), 0.0, 1.0)
    found: Reals = (bins[cell] + share) / BINS_PER_OCTAVE
    return found


# ---- naming


@dataclass(frozen=True, slots=True)
class _Found:
    """What a row says (_TOLD), and the numbers of the nodes that cause it."""

    told: tuple[object, ...]
    causes: Ints


def _named(nodes: _Nodes) -> _Found:
    dense = _dense_bands(nodes)
    # means, since what chance does to them is known: their variance is that of a transfer by their number
    deviation, _ = _beyond_sampling(_breadth(nodes.mean), nodes)
    looks = [_looked_at(nodes)]
    if len(dense) > 1:
        looks.append(_looked_at(_within_bands(nodes, dense)))
    pattern, look, causes = _decision(looks, deviation, float(np.diff(dense).max()) / BINS_PER_OCTAVE)
    told = (
        "named" if pattern else "none_fits",
        pattern,
        deviation,
        float(np.median(nodes.own_spread)),
        look.bands.ratio,
        look.bands.period if pattern == "striped" else None,
        float(look.scores.max()),
    )
    return _Found(told, nodes.number[causes[:_MOST_CAUSE_COUNT]])


@dataclass(frozen=True, slots=True)
class _Look:
    """Nodes, what bands of neighbours they form, their scores (n), and the places of outliers, the highest first."""

    nodes: _Nodes
    bands: _Bands
    scores: Reals
    outliers: Ints


def _looked_at(nodes: _Nodes) -> _Look:
    scores = _scores(nodes.level, nodes)
    return _Look(nodes, _bands(nodes), scores, _outliers(nodes, scores))


def _decision(looks: list[_Look], deviation: float, octaves: float) -> tuple[Pattern | None, _Look, Ints]:
    """Return the pattern, the look that shows it, and the places of the nodes that cause it, the strongest first."""
    nothing = np.zeros(0, dtype=np.int64)
    for look in looks:
        if look.bands.are_clear:
            fit = look.bands.fit
            high = np.flatnonzero(fit > np.median(fit))
            return "striped", look, high[np.argsort(-fit[high], kind="stable")]
    for look in looks:
        if len(look.outliers):
            return "outlier", look, look.outliers
    if deviation <= _MOST_CIRCULAR_SPREAD and octaves <= _MOST_CIRCULAR_OCTAVES:
        return "circular", looks[0], nothing
    if deviation >= _LEAST_NOISY_SPREAD or octaves >= _LEAST_NOISY_OCTAVES:
        return "noisy", looks[0], np.argsort(-looks[0].nodes.own_spread, kind="stable")
    return None, looks[0], nothing


def _breadth(values: Reals) -> float:
    """Return the standard deviation by the first and the ninth decile: a tenth of the nodes may be anywhere.

    Where there are few different values the deciles say too much: then the plain one counts.
    """
    low, high = np.quantile(values, [0.1, 0.9])
    return float(min((high - low) / _DECILES_APART, values.std()))


def _beyond_sampling(observed: float, nodes: _Nodes) -> tuple[float, float]:
    """Return the nodes' standard deviation beyond what few transfers give by chance, and that variance of one transfer.

    Chance cannot give more than is seen: where requests differ in the same way at all nodes, it gives less than their
    variance would have it.
    """
    per_node = float((1.0 / nodes.count).mean())
    sampling = min(nodes.variance * per_node, observed**2)
    return float(np.sqrt(max(observed**2 - sampling, 0.0))), sampling / per_node


def _dense_bands(nodes: _Nodes) -> Ints:
    """Return where bands of values begin and end (bands, 2), in bins: the densest ones that hold most transfers.

    Few transfers leave holes in their histogram; it is smoothed by Silverman's rule for values spread over an octave.
    """
    first = int(nodes.bin.min())
    histogram = np.bincount(nodes.bin - first, nodes.cell_count)
    deviation = _SILVERMAN * BINS_PER_OCTAVE * float(histogram.sum()) ** -0.2
    margin = int(np.ceil(4 * deviation))
    bell = np.exp(-0.5 * (np.arange(-margin, margin + 1) / deviation) ** 2)
    smooth = np.convolve(histogram, bell / bell.sum())
    falling = np.sort(smooth)[::-1]
    needed = int(np.searchsorted(np.cumsum(falling), _CORE_RATIO * histogram.sum() * (1 - 1e-9)))
    is_core = np.concatenate([[False], smooth >= falling[min(needed, len(falling) - 1)], [False]])
    edges = np.flatnonzero(np.diff(is_core.astype(np.int8)))
    found: Ints = edges.reshape(-1, 2) + first - margin
    return found


def _within_bands(nodes: _Nodes, dense: Ints) -> _Nodes:
    """Return the nodes with each value as it lies in the nearest band of values: as one looks at a single ring.

    Which band a request belongs to says nothing of its node, but moves its level where requests are few.
    """
    middle = np.floor(dense.mean(axis=1)).astype(np.int64)
    nearest = np.searchsorted((dense[:-1, 1] + dense[1:, 0]) / 2.0, nodes.bin + 0.5)
    bins = nodes.bin - middle[nearest]
    lowest, span = int(bins.min()), int(np.ptp(bins)) + 1
    cells, place = np.unique(nodes.cell_node * span + bins - lowest, return_inverse=True)
    count = np.bincount(place, nodes.cell_count).astype(np.int64)
    return _with_histograms(nodes.number, nodes.target, cells // span, cells % span + lowest, count)


# ---- outliers


def _scores(levels: Reals, nodes: _Nodes) -> Reals:
    """Return how many robust deviations each node lies above the median (n): a node of few transfers varies more."""
    above = levels - np.median(levels)
    observed = max(SIGMAS_PER_MAD * float(np.median(np.abs(above))), _breadth(levels))
    deviation, per_transfer = _beyond_sampling(observed, nodes)
    found: Reals = above / np.sqrt(max(deviation, _LEAST_DEVIATION) ** 2 + per_transfer / nodes.count)
    return found


def _outliers(nodes: _Nodes, scores: Reals) -> Ints:
    """Return the places of outliers, the highest first; none if they are not few."""
    from scipy.special import stdtrit

    count = len(scores)
    chance = _CHANCE / count
    least = max(_LEAST_OUTLIER_SCORE, -float(stdtrit(_MAD_EFFICIENCY * count, chance)))
    levels = nodes.level
    is_high = (scores >= least) & (levels - np.median(levels) >= _LEAST_OUTLIER_OCTAVES)
    if is_high.sum() > max(1.0, _MOST_OUTLIER_RATIO * count):
        return np.zeros(0, dtype=np.int64)
    is_high &= nodes.count >= _LEAST_OUTLIER_COUNT
    places = np.flatnonzero(is_high & _are_beyond_chance(nodes))
    return places[np.argsort(-scores[places], kind="stable")]


def _are_beyond_chance(nodes: _Nodes) -> Bools:
    """Return which nodes have more transfers above what nodes usually reach than chance gives them (n).

    Usually reached is the median node's ninth decile and half an octave.
    """
    from scipy.special import betainc

    reach = float(np.median(nodes.quantiles[:, _NINTH])) + 0.5
    is_above = (nodes.bin + 0.5) / BINS_PER_OCTAVE > reach
    above = np.bincount(nodes.cell_node, nodes.cell_count * is_above, len(nodes.count))
    # the binomial distribution's upper tail
    tail = betainc(np.maximum(above, 1.0), nodes.count - np.maximum(above, 1.0) + 1.0, above.sum() / nodes.count.sum())
    chance = np.where(above > 0, tail, 1.0)
    rising = np.sort(chance)
    passed = np.flatnonzero(rising <= _CHANCE * np.arange(1, len(rising) + 1) / len(rising))
    if not len(passed):
        return np.zeros(len(chance), dtype=bool)
    found: Bools = chance <= rising[passed[-1]]
    return found


# ---- bands


@dataclass(frozen=True, slots=True)
class _Bands:
    """Bands of neighbours: the share of variance they explain, their period in nodes, the levels without the rest."""

    ratio: float
    period: float | None
    fit: Reals
    are_clear: bool


def _bands(nodes: _Nodes) -> _Bands:
    """Return the bands that explain most: those of main targets, or of levels that come back some nodes on."""
    levels = nodes.level
    middle, breadth = float(np.median(levels)), max(_breadth(levels), _BIN_DEVIATION)
    # outliers shall not make a band, nor hide one
    held = np.clip(levels, middle - 3 * breadth, middle + 3 * breadth)
    observed = float(held.var())
    if observed <= _LEAST_VARIANCE:
        return _Bands(0.0, None, held, are_clear=False)
    held = held - held.mean()
    trend = _trend_ratio(held)
    sampling = nodes.variance * float((1.0 / nodes.count).mean())
    found = []
    for ratio, chance, fit in (_bands_of_targets(held, nodes.target), _bands_by_lag(held)):
        explained = ratio * observed
        # of what sets nodes apart beyond chance; tried are two looks, in two ways each
        is_clear = 4 * chance <= _BAND_CHANCE and explained >= _LEAST_BAND_OCTAVES**2
        is_clear = is_clear and explained >= _LEAST_BAND_RATIO * (observed - sampling) and ratio > trend
        found.append(_Bands(ratio, _period(fit) if is_clear else None, fit, is_clear))
    return max(found, key=lambda bands: (bands.are_clear, bands.ratio))


def _trend_ratio(levels: Reals) -> float:
    """Return the share of the variance of centred levels (n) that a rise all along the ring explains."""
    place = np.arange(len(levels)) - (len(levels) - 1) / 2.0
    explained = float(place @ levels) ** 2 / float(place @ place) / float(levels @ levels)
    return 1.0 - (1.0 - explained) * (len(levels) - 1) / (len(levels) - 2)


def _bands_of_targets(levels: Reals, target: Ints) -> tuple[float, float, Reals]:
    """Return share of variance, probability by chance and fit for bands of nodes with the same main target.

    Fisher's analysis of variance; the share is less what as many bands of shuffled nodes would explain.
    """
    from scipy.special import fdtrc

    band = np.cumsum(np.concatenate([[0], (target[1:] != target[:-1])])).astype(np.int64)
    nodes, bands = len(levels), int(band[-1]) + 1
    # bands of one node, or of no known target, are none
    if bands < 3 or 2 * bands > nodes or (target < 0).any():
        return 0.0, 1.0, np.zeros(nodes)
    size = np.bincount(band)
    fit = (np.bincount(band, levels) / size)[band]
    between, total = float((fit**2).sum()), float((levels**2).sum())
    if total <= _LEAST_VARIANCE * nodes:
        return 0.0, 1.0, fit
    within = max(total - between, 1e-12 * total)
    ratio = 1.0 - within / (nodes - bands) * (nodes - 1) / total
    chance = float(fdtrc(bands - 1, nodes - bands, between / (bands - 1) / (within / (nodes - bands))))
    return max(ratio, 0.0), chance, fit


def _bands_by_lag(levels: Reals) -> tuple[float, float, Reals]:
    """Return share of variance, probability by chance and fit for levels that come back some nodes on.

    The highest circular serial correlation of those of less than half the ring, against what it is in shuffled rings
    (Wald and Wolfowitz, section 5; any lag has the same moments, and the probability is times their number).
    """
    from scipy.special import ndtr

    count = len(levels)
    lags = np.arange(1, (count + 1) // 2)
    spectrum = np.fft.rfft(levels)
    products = np.fft.irfft(np.abs(spectrum) ** 2, count)[lags]
    second, fourth = float((levels**2).sum()), float((levels**4).sum())
    if second <= _LEAST_VARIANCE * count:
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


def _period(fit: Reals) -> float | None:
    """Return the nodes from one rise of the bands to the next, on the average of the ring."""
    is_high = fit > np.median(fit)
    rises = int((is_high & ~np.roll(is_high, 1)).sum())
    return len(fit) / rises if rises else None
