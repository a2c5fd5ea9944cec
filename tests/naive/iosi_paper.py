"""Extract an I/O signature literally as the IOSI paper describes it, as a reference for the tests.

Liu, Gunasekaran, Ma and Vazhkudai, "Automatic Identification of Application I/O Signatures from Noisy Server-Side
Traces", FAST 2014. Sections and quotations in this module refer to that paper. Its figures were not consulted.

The module follows section 5 step by step in plain loops. It uses NumPy and PyWavelets, and nothing of the project.

What the paper leaves open, with the choice made:

1.  Unit of a sample (5.1). Values are throughputs at a constant interval. Point `i` lies at `i * interval_s`, and the
    duration of `n` points is `n * interval_s`. The "area" is the sum of the values times the interval.
2.  Scale of the LOF plane (5.1). Each axis is divided by its mean, so that the factors do not depend on units.
    The distance is Euclidean.
3.  LOF's neighbor count (5.1). Half of the samples, because "the majority of the samples" is said to be similar.
    `neighbor_count` overrides it. Ties at the k-distance are neighbors, as in Breunig et al. (2000), definition 4.
4.  Coinciding samples (5.1). A point with `k` duplicates has infinite density, and a ratio of two infinities is 1.
    If a factor is infinite, the mean is too; then the samples with infinite factors are the outliers.
5.  LOF's threshold (5.1): "we set the threshold μ as the mean of the sample set". It is read as the mean of the
    factors, and a sample is an outlier strictly above it. `outlier_threshold` overrides it.
    Unless all factors agree, this rule always removes a sample, often a third of a homogeneous set.
6.  Refinement of intervals other than 2 s (5.1). The interval is halved once, whatever it is, and no point follows
    the last one: `n` points become `2n - 1`. `is_refined=False` leaves the step out.
7.  Fractional strides of the trimming (5.1). Removal `j` takes point `floor(j * stride)`, where the stride is the
    shortest length over the excess. The 4 % example has stride 25. Removals stop at the shortest length.
8.  Samples more than twice as long as the shortest (5.1). That stride is below 1, so the stride becomes the
    sample's own length over the excess.
9.  Background level (5.1). "Lower than" is strict. If no point lies below the average, the level is 0.
10. Form of the transform's output (5.2). The approximation is reconstructed at full length from the approximation
    coefficients, with all details set to zero. The alternative is the decimated coefficients.
11. Boundaries of the transform (5.2). Half-point symmetric extension, the default of both MATLAB and PyWavelets.
    Short samples are transformed to the requested level too. The filter has 62 taps, and the approximation of a
    constant ripples by 0.2 %. Ripples on flat stretches above 0 therefore count as crests.
12. Crests and troughs on plateaus and at the ends (5.2). A plateau counts once, at its center. An end of the sample
    is compared with its only neighbor. Differences below 1e-9 of the largest magnitude are rounding.
13. Which waves are bursts (5.2). The text filters troughs only, so each ripple between low troughs would be a burst.
    A wave is a burst here only if its crest reaches the mean crest height. The paper supports this: it speaks of a
    "cutoff threshold for a 'bump'", and bursts are shorter than their distance (5.3), which a tiling cannot give.
    `keeps_low_waves` gives the narrow reading.
14. Ends of a burst (5.2). It contains the points from its left trough up to, but not including, its right trough.
    Both ends of the sample bound waves. The peak is the highest crest; of equal crests, the first.
15. Reference burst (5.3): "the 'average burst' identified by WT across all samples". The bursts before the transform
    are aligned at their crests, extended by zeros to a common window, and averaged with equal weights.
16. Correlation of bursts of unequal length (5.3). Pearson's coefficient over that common window, with the same zeros.
17. Correlations outside the range [0, 1] (5.3). Negative coefficients become 0; undefined ones become 0.
18. Averages that bound the unit width (5.3). Both pool the bursts of all samples. The time distance between bursts is
    that between the crests of successive bursts of one sample. Without any such pair, there is only one width.
19. Number of settings (5.3): "3-5 settings per dimension". Five each, at equal steps that include both bounds.
20. Origin of the grid (5.3). Units start at time 0 and correlation 0. A unit contains its lower edges but not its
    upper ones, except at the upper bounds of the space. The last unit may be cut off.
21. Number of samples `s` in the density thresholds (5.3). Samples that remain after the elimination of outliers.
22. Adjacent units (5.3). All eight around a unit, diagonals included.
23. Overlapping neighborhoods of several dense units (5.3). Literally they would give one burst several times.
    Neighborhoods are taken by descending initial density of the dense unit, then by time, then by correlation.
    A point selected once is not available again. Thresholds apply to available points; rejected points stay available.
24. Normalization of the distance in the vote (5.3). Time is divided by the duration, correlation by 1: the space
    becomes the unit square. `is_vote_in_units` divides by the unit's width and height.
    Peers are all other candidates, including those of the same sample. Of equal totals, the earlier point wins.
25. Score of a setting (5.3). Number of points that the vote selected. Of equal scores, the smallest width wins, then
    the smallest height.
26. Average of bursts of unequal length (5.4). Crests are aligned, and missing values are zeros. The averaged burst
    extends over all selected bursts, so its volume is the mean of their volumes.
27. Bursts of the signature that overlap (5.4). Their values are added. Each starts at the nearest point of the series.
28. Sets without any burst. The result has no grid and an all-zero signature; the paper does not consider them.

`OpenChoices` has other choices for some of these points, so that implementations that differ there can be compared.
"""

import math
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pywt

Floats = npt.NDArray[np.float64]
Unit = tuple[int, int]

PAPER_GAMMA = 0.5
PAPER_KAPPA = 0.9
MIN_UNIT_HEIGHT = 0.05
MAX_UNIT_HEIGHT = 0.25
TOLERANCE = 1e-9


@dataclass(frozen=True)
class OpenChoices:
    """Choices for open points of the module docstring, by number; the defaults are those of the list.

    tolerance (12): differences below this share of the largest magnitude are rounding. keeps_low_waves (13).
    keeps_idle_waves (13): waves of zeros are bursts. includes_right_trough (14): a burst contains its right trough.
    is_reference_partial (15): each point of the reference is the mean of the bursts that reach it.
    is_distance_between_ends (18): from the end of a burst to the start of the next, and at least 1 point.
    discards_rejected (23, 24): points that were not elected are no longer available. Neighborhoods are taken by the
    densities of unit and neighborhood, and need one available point in the unit. Peers are points of other samples.
    is_vote_in_units (24).
    """

    tolerance: float = TOLERANCE
    keeps_low_waves: bool = False
    keeps_idle_waves: bool = True
    includes_right_trough: bool = False
    is_reference_partial: bool = False
    is_distance_between_ends: bool = False
    discards_rejected: bool = False
    is_vote_in_units: bool = False


@dataclass(frozen=True)
class Wave:
    """Burst of one sample as the transform delimits it: points `start <= i < stop`, with the crest at `peak`."""

    start: int
    peak: int
    stop: int


@dataclass(frozen=True)
class BurstPoint:
    """Burst in the plane of time and shape, with the position of its sample in the input."""

    sample_index: int
    wave: Wave
    time_s: float
    correlation: float


@dataclass(frozen=True)
class Grid:
    """Size of the units that start at time 0 and correlation 0."""

    width_s: float
    height: float


@dataclass(frozen=True)
class Cluster:
    """Dense neighborhood: the dense unit in its center, the points that stood for election, and those selected."""

    unit: Unit
    candidates: list[BurstPoint]
    selected: list[BurstPoint]


@dataclass(frozen=True)
class Burst:
    """Burst of the signature: `values` are throughputs at the refined interval, from `start_s` until `end_s`."""

    start_s: float
    end_s: float
    peak_s: float
    volume: float
    values: Floats


@dataclass(frozen=True)
class Extraction:
    """Signature and the result of each step. Lists per sample follow `kept_indices`, the positions in the input."""

    bursts: list[Burst]
    signature: Floats
    interval_s: float
    features: Floats
    outlier_factors: Floats
    outlier_indices: list[int]
    kept_indices: list[int]
    refined: list[Floats]
    trimmed: list[Floats]
    background_level: float
    denoised: list[Floats]
    transformed: list[Floats]
    waves: list[list[Wave]]
    reference: Floats
    points: list[BurstPoint]
    grids: list[tuple[Grid, int]]
    grid: Grid | None
    clusters: list[Cluster]


# 5.1 Data preprocessing


def measure_features(samples: list[Floats], interval_s: float) -> Floats:
    """Measure "(1) the application execution time and (2) the volume of data written within the sample" (5.1).

    Open: the rule for the "area under the server-side throughput curve". It is the sum of rectangles.
    """
    features = np.zeros((len(samples), 2))
    for i, sample in enumerate(samples):
        features[i, 0] = len(sample) * interval_s
        features[i, 1] = float(np.sum(sample)) * interval_s
    return features


def scale_features(features: Floats) -> Floats:
    """Divide execution times and volumes by their means (5.1, "within this 2-D space").

    Open: the paper does not say that the axes are scaled. Without a scale, LOF depends on the units.
    """
    scaled = features.copy()
    for axis in range(features.shape[1]):
        mean = float(np.mean(features[:, axis]))
        if mean > 0:
            scaled[:, axis] = features[:, axis] / mean
    return scaled


def divide_densities(numerator: float, denominator: float) -> float:
    """Divide reachability densities, with a ratio of 1 between two infinite ones (open point 4)."""
    if math.isinf(numerator) and math.isinf(denominator):
        return 1.0
    return numerator / denominator


def compute_outlier_factors(features: Floats, neighbor_count: int) -> Floats:
    """Compute the "Local Outlier Factor (LOF)" that 5.1 cites, by definitions 3 to 7 of Breunig et al. (2000).

    Open: the neighbor count and the distance. The distance is Euclidean.
    """
    n = len(features)
    if n < 2:
        return np.ones(n)
    distance = np.zeros((n, n))
    for p in range(n):
        for q in range(n):
            distance[p, q] = math.hypot(*(features[p] - features[q]))
    k_distance = np.zeros(n)
    neighbors: list[list[int]] = []
    for p in range(n):
        others = [q for q in range(n) if q != p]
        k_distance[p] = sorted(distance[p, q] for q in others)[neighbor_count - 1]
        neighbors.append([q for q in others if distance[p, q] <= k_distance[p]])
    density = np.zeros(n)
    for p in range(n):
        reach = float(np.mean([max(k_distance[q], distance[p, q]) for q in neighbors[p]]))
        density[p] = 1 / reach if reach > 0 else math.inf
    factors = np.zeros(n)
    for p in range(n):
        factors[p] = float(np.mean([divide_densities(density[q], density[p]) for q in neighbors[p]]))
    return factors


def select_outliers(factors: Floats, threshold: float | None) -> list[int]:
    """Select "observations beyond certain threshold"; "we set the threshold μ as the mean of the sample set" (5.1).

    Open: the quantity that is averaged. It is the outlier factor, the only quantity that has a threshold in LOF.
    """
    if threshold is None:
        if math.isinf(float(np.max(factors))):
            return [i for i, factor in enumerate(factors) if math.isinf(factor)]
        threshold = float(np.mean(factors))
    return [i for i, factor in enumerate(factors) if factor > threshold * (1 + TOLERANCE)]


def refine_sample(sample: Floats) -> Floats:
    """Insert the mean of two adjacent points between them (5.1, "sample granularity refinement").

    Open: the paper refines 2 s to 1 s. This function halves any interval.
    """
    refined = []
    for i in range(len(sample)):
        refined.append(float(sample[i]))
        if i + 1 < len(sample):
            refined.append((float(sample[i]) + float(sample[i + 1])) / 2)
    return np.array(refined)


def trim_sample(sample: Floats, length: int) -> Floats:
    """Discard "data points at regular intervals to shrink each longer sample to match the shortest one" (5.1).

    "If a sample is 4% longer than the shortest one, then we remove from it the 1st, 26th, 51st, ..., data points."
    Open: strides that are not whole numbers, and samples more than twice as long as the shortest.
    """
    excess = len(sample) - length
    if excess == 0:
        return sample.copy()
    base = length if length >= excess else len(sample)
    removed = {j * base // excess for j in range(excess)}
    return np.array([float(sample[i]) for i in range(len(sample)) if i not in removed])


def trim_samples(samples: list[Floats]) -> list[Floats]:
    """Trim all samples to the shortest, which "received the least interference" (5.1, "duration correction")."""
    length = min(len(sample) for sample in samples)
    return [trim_sample(sample, length) for sample in samples]


def measure_background(samples: list[Floats]) -> float:
    """Average the points "with a value lower than the overall average throughput" (5.1, noise reduction 1 to 3).

    Open: the level if no point lies below the average. It is 0.
    """
    pooled = [float(value) for sample in samples for value in sample]
    average = math.fsum(pooled) / len(pooled)
    low = [value for value in pooled if value < average]
    return math.fsum(low) / len(low) if low else 0.0


def subtract_background(sample: Floats, level: float) -> Floats:
    """Lower each point by the background level, "producing zero if the result is negative" (5.1, noise reduction 4)."""
    return np.array([max(float(value) - level, 0.0) for value in sample])


# 5.2 Per-sample wavelet transform


def transform_sample(sample: Floats, level: int) -> Floats:
    """Keep the "low-frequency component" of the discrete Meyer transform; "a decomposition level of 2" (5.2).

    Open: reconstruction at full length, and symmetric extension at the boundaries (open points 10 and 11).
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Level value of", category=UserWarning)
        coefficients = pywt.wavedec(sample, "dmey", mode="symmetric", level=level)
    approximation = [coefficients[0]] + [np.zeros_like(detail) for detail in coefficients[1:]]
    wave = pywt.waverec(approximation, "dmey", mode="symmetric")
    return np.asarray(wave[: len(sample)], dtype=np.float64)


def find_crests(wave: Floats, tolerance: float) -> list[int]:
    """Find the "wave crests" (5.2): runs of equal values that are higher than the adjacent values.

    Open: plateaus and ends of the sample (open point 12). A sample of equal values has no crest.
    """
    scale = float(np.max(np.abs(wave)))
    if scale == 0:
        return []
    values = np.round(wave / scale / tolerance) if tolerance else wave
    crests = []
    first = 0
    while first < len(values):
        last = first
        while last + 1 < len(values) and values[last + 1] == values[first]:
            last += 1
        adjacent = [values[i] for i in (first - 1, last + 1) if 0 <= i < len(values)]
        if adjacent and all(values[first] > value for value in adjacent):
            crests.append((first + last) // 2)
        first = last + 1
    return crests


def find_troughs(wave: Floats, tolerance: float) -> list[int]:
    """Find the wave troughs; "the center of the wave troughs can be easily identified as wave boundaries" (5.2)."""
    return find_crests(-wave, tolerance)


def delimit_waves(wave: Floats, sample: Floats, choices: OpenChoices) -> list[Wave]:
    """Delimit bursts by the troughs lower than "the mean height of all wave crests" (5.2).

    "Only the troughs lower than this threshold are used for separating bursts."
    Open: whether a wave whose crest does not reach the threshold is a burst (open point 13), and ends (14).
    """
    crests = find_crests(wave, choices.tolerance)
    if not crests:
        return []
    threshold = float(np.mean([wave[i] for i in crests]))
    separators = [i for i in find_troughs(wave, choices.tolerance) if wave[i] < threshold]
    # with its right trough, a burst contains the last point of the sample in any case
    bounds = sorted({0, *separators, len(wave) - choices.includes_right_trough})
    waves = []
    for start, stop in pairwise(bounds):
        inside = [i for i in crests if start <= i < stop or i == stop == len(wave) - 1]
        if not inside or not (choices.keeps_idle_waves or np.any(sample[start : stop + choices.includes_right_trough])):
            continue
        peak = max(inside, key=lambda i: (wave[i], -i))
        if choices.keeps_low_waves or wave[peak] >= threshold - TOLERANCE * abs(threshold):
            waves.append(Wave(start, peak, stop))
    return waves


# 5.3 Cross-sample I/O burst identification


def align_at_crest(sample: Floats, wave: Wave, before: int, after: int, excess: int) -> Floats:
    """Copy a burst into a window with `before` points left of its crest and `after` points from its crest on.

    Open: 5.3 and 5.4 average and correlate bursts of unequal length. NaN extends the shorter ones, which callers
    replace by zeros.
    """
    window = np.full(before + after, math.nan)
    for i in range(wave.start, wave.stop + excess):
        window[before + i - wave.peak] = sample[i]
    return window


def align_waves(samples: list[Floats], waves: list[Wave], choices: OpenChoices) -> tuple[Floats, int]:
    """Align bursts at their crests, one per row, with NaN beyond them. Returns the rows and the column of the crests.

    `waves[i]` is a burst of `samples[i]`; a sample may occur more than once.
    """
    before = max(wave.peak - wave.start for wave in waves)
    excess = int(choices.includes_right_trough)
    after = max(wave.stop - wave.peak for wave in waves) + excess
    rows = [align_at_crest(sample, wave, before, after, excess) for sample, wave in zip(samples, waves, strict=True)]
    return np.array(rows), before


def correlate(burst: Floats, reference: Floats) -> float:
    """Compute the "correlation coefficient" of a burst and the reference (5.3), within "a y range of [0, 1]".

    Open: negative and undefined coefficients. Both become 0.
    """
    x = burst - np.mean(burst)
    y = reference - np.mean(reference)
    norm = math.sqrt(float(np.sum(x * x)) * float(np.sum(y * y)))
    if norm == 0:
        return 0.0
    return min(max(float(np.sum(x * y)) / norm, 0.0), 1.0)


def map_bursts(
    samples: list[Floats],
    waves: list[list[Wave]],
    kept_indices: list[int],
    interval_s: float,
    choices: OpenChoices,
) -> tuple[list[BurstPoint], Floats]:
    """Map each burst to its crest time "after a WT" and its correlation, from "the pre-WT burst" (5.3).

    Returns the points and the reference, the "average burst". Open: alignment and weights (open points 15 and 16).
    """
    owners = [i for i in range(len(samples)) for _ in waves[i]]
    flat = [wave for sample_waves in waves for wave in sample_waves]
    if not flat:
        return [], np.zeros(0)
    aligned, _ = align_waves([samples[i] for i in owners], flat, choices)
    rows = np.nan_to_num(aligned)
    reference = np.nanmean(aligned, axis=0) if choices.is_reference_partial else np.mean(rows, axis=0)
    points = []
    for owner, wave, row in zip(owners, flat, rows, strict=True):
        points.append(BurstPoint(kept_indices[owner], wave, wave.peak * interval_s, correlate(row, reference)))
    return points, reference


def list_grids(
    waves: list[list[Wave]], interval_s: float, width_count: int, height_count: int, choices: OpenChoices
) -> list[Grid]:
    """List the settings that "uniformly sample this 2-D parameter space" (5.3).

    The width lies between "the average I/O burst duration" and "the average time distance between bursts".
    The height lies "between 0.05 and 0.25". Open: how averages are pooled, and the number of settings.
    """
    durations = [(wave.stop - wave.start) * interval_s for sample_waves in waves for wave in sample_waves]
    distances = []
    for sample_waves in waves:
        for left, right in pairwise(sample_waves):
            is_between_ends = choices.is_distance_between_ends
            steps = right.start - left.stop if is_between_ends else right.peak - left.peak
            distances.append(steps * interval_s)
    if not durations:
        return []
    min_width = float(np.mean(durations))
    max_width = float(np.mean(distances)) if distances else min_width
    if choices.is_distance_between_ends:
        min_width, max_width = max(min_width, interval_s), max(max_width, interval_s)
    widths = sorted({float(width) for width in np.linspace(min_width, max_width, width_count)})
    heights = [float(height) for height in np.linspace(MIN_UNIT_HEIGHT, MAX_UNIT_HEIGHT, height_count)]
    return [Grid(width, height) for width in widths for height in heights]


def locate_unit(point: BurstPoint, grid: Grid, duration_s: float) -> Unit:
    """Locate a point in the space of "x range [0, t]" and "y range [0, 1]", in "uniform 2-D grids (units)" (5.3).

    Open: the origin and the edges (open point 20).
    """
    last_x = math.ceil(duration_s / grid.width_s - TOLERANCE) - 1
    last_y = math.ceil(1 / grid.height - TOLERANCE) - 1
    x = math.floor(point.time_s / grid.width_s + TOLERANCE)
    y = math.floor(point.correlation / grid.height + TOLERANCE)
    return max(min(x, last_x), 0), max(min(y, last_y), 0)


def count_samples(points: list[BurstPoint]) -> int:
    """Count "the number of samples that have points within this unit" (5.3), the density."""
    return len({point.sample_index for point in points})


def compute_threshold(factor: float, sample_count: int) -> int:
    """Compute the density threshold of 5.3: gamma or kappa times s, rounded up without effects of binary fractions."""
    return math.ceil(factor * sample_count - TOLERANCE)


def measure_distance(a: BurstPoint, b: BurstPoint, scale: Grid) -> float:
    """Measure the "normalized Euclidean distance" (5.3). Open: the normalization, which `scale` gives."""
    return math.hypot((a.time_s - b.time_s) / scale.width_s, (a.correlation - b.correlation) / scale.height)


def vote(candidates: list[BurstPoint], scale: Grid, *, has_own_peers: bool) -> list[BurstPoint]:
    """Select "up to one point" from each sample, the one "with the lowest total distance" to its peers (5.3).

    Open: who the peers are. They are all other candidates "within the neighborhood", also of the same sample unless
    `has_own_peers` is false.
    """
    selected: dict[int, tuple[float, BurstPoint]] = {}
    for point in sorted(candidates, key=lambda point: (point.sample_index, point.time_s)):
        peers = [peer for peer in candidates if has_own_peers or peer.sample_index != point.sample_index]
        total = math.fsum(measure_distance(point, peer, scale) for peer in peers if peer is not point)
        best = selected.get(point.sample_index)
        if best is None or total < best[0] - TOLERANCE:
            selected[point.sample_index] = (total, point)
    return [point for _, point in selected.values()]


def collect_neighborhood(members: dict[Unit, list[BurstPoint]], unit: Unit) -> list[BurstPoint]:
    """Collect the points of "the units that are adjacent" and of "the central dense unit" (5.3).

    Open: whether diagonal units are adjacent. They are.
    """
    collected = []
    for x in (unit[0] - 1, unit[0], unit[0] + 1):
        for y in (unit[1] - 1, unit[1], unit[1] + 1):
            collected.extend(members.get((x, y), []))
    return collected


def cluster_points(
    points: list[BurstPoint],
    grid: Grid,
    duration_s: float,
    *,
    min_unit_density: int,
    min_neighborhood_density: int,
    choices: OpenChoices,
) -> list[Cluster]:
    """Find dense units, their dense neighborhoods, and the points of common bursts for one setting (5.3).

    Growth is limited "to the immediate neighborhood of a dense unit".
    Open: neighborhoods that overlap. The densest unit takes its points first (open point 23).
    """
    scale = grid if choices.is_vote_in_units else Grid(duration_s, 1.0)
    members: dict[Unit, list[BurstPoint]] = {}
    for point in points:
        members.setdefault(locate_unit(point, grid, duration_s), []).append(point)
    clusters = []
    density = {unit: count_samples(members[unit]) for unit in members}
    around = {unit: count_samples(collect_neighborhood(members, unit)) for unit in members}
    for unit in sorted(members, key=lambda unit: (-density[unit], -around[unit] * choices.discards_rejected, unit)):
        available = density[unit] if choices.discards_rejected and members[unit] else count_samples(members[unit])
        if available < min_unit_density:
            continue
        candidates = collect_neighborhood(members, unit)
        if count_samples(candidates) < min_neighborhood_density or not candidates:
            continue
        selected = vote(candidates, scale, has_own_peers=not choices.discards_rejected)
        clusters.append(Cluster(unit, candidates, selected))
        taken = candidates if choices.discards_rejected else selected
        for other in members:
            members[other] = [point for point in members[other] if point not in taken]
    return clusters


def select_clusters(
    points: list[BurstPoint],
    grids: list[Grid],
    duration_s: float,
    *,
    min_unit_density: int,
    min_neighborhood_density: int,
    choices: OpenChoices,
) -> tuple[Grid | None, list[Cluster], list[tuple[Grid, int]]]:
    """Take the setting "that identified the most data points as belonging to common I/O bursts" (5.3).

    Returns the winning grid, its clusters, and the score of each grid. Open: ties. The first of the list wins.
    """
    winner: Grid | None = None
    winning: list[Cluster] = []
    scores: list[tuple[Grid, int]] = []
    for grid in grids:
        clusters = cluster_points(
            points,
            grid,
            duration_s,
            min_unit_density=min_unit_density,
            min_neighborhood_density=min_neighborhood_density,
            choices=choices,
        )
        score = sum(len(cluster.selected) for cluster in clusters)
        if winner is None or score > max(previous for _, previous in scores):
            winner, winning = grid, clusters
        scores.append((grid, score))
    return winner, winning, scores


# 5.4 I/O signature generation


def average_cluster(cluster: Cluster, samples: dict[int, Floats], interval_s: float, choices: OpenChoices) -> Burst:
    """Average the bursts of a cluster at the aligned time (5.4).

    Alignment takes "all the data points in a common burst to the average of their x coordinate values".
    Values come from "the bursts after preprocessing, but before WT". Open: bursts of unequal length.
    """
    peak_s = float(np.mean([point.time_s for point in cluster.selected]))
    owners = [samples[point.sample_index] for point in cluster.selected]
    rows, before = align_waves(owners, [point.wave for point in cluster.selected], choices)
    values = np.mean(np.nan_to_num(rows), axis=0)
    start_s = peak_s - before * interval_s
    end_s = start_s + len(values) * interval_s
    return Burst(start_s, end_s, peak_s, float(np.sum(values)) * interval_s, values)


def draw_signature(bursts: list[Burst], length: int, interval_s: float) -> Floats:
    """Generate the signature "by sweeping along the x (time) dimension" (5.4).

    Open: overlaps, which are added, and points outside the duration, which are dropped.
    """
    signature = np.zeros(length)
    for burst in bursts:
        first = math.floor(burst.start_s / interval_s + 0.5)
        for i, value in enumerate(burst.values):
            if 0 <= first + i < length:
                signature[first + i] += value
    return signature


def check_samples(samples: list[Floats], interval_s: float) -> None:
    """Refuse input that section 2.3 does not define."""
    if not samples or not interval_s > 0:
        raise ValueError("IOSI needs at least one sample and a positive interval.")
    for i, sample in enumerate(samples):
        if sample.ndim != 1 or len(sample) == 0 or not np.all(np.isfinite(sample)) or np.any(sample < 0):
            raise ValueError(f"Sample {i} must be a non-empty series of finite throughputs, none below 0.")


def extract(
    samples: list[Floats],
    interval_s: float,
    *,
    gamma: float,
    kappa: float,
    wavelet_level: int = 2,
    neighbor_count: int | None = None,
    outlier_threshold: float | None = None,
    is_refined: bool = True,
    width_count: int = 5,
    height_count: int = 5,
    choices: OpenChoices = OpenChoices(),
) -> Extraction:
    """Run section 5 from samples of throughput to the signature.

    The paper uses `gamma` 0.5 and `kappa` 0.9. The other options vary open points of the module docstring.
    """
    samples = [np.asarray(sample, dtype=np.float64) for sample in samples]
    check_samples(samples, interval_s)

    features = measure_features(samples, interval_s)
    k = neighbor_count if neighbor_count is not None else len(samples) // 2
    factors = compute_outlier_factors(scale_features(features), max(1, min(k, len(samples) - 1)))
    outliers = select_outliers(factors, outlier_threshold)
    kept = [i for i in range(len(samples)) if i not in outliers]

    refined = [refine_sample(samples[i]) if is_refined else samples[i].copy() for i in kept]
    step_s = interval_s / 2 if is_refined else interval_s
    trimmed = trim_samples(refined)
    background = measure_background(trimmed)
    denoised = [subtract_background(sample, background) for sample in trimmed]

    transformed = [transform_sample(sample, wavelet_level) for sample in denoised]
    waves = [delimit_waves(wave, sample, choices) for wave, sample in zip(transformed, denoised, strict=True)]

    length = len(denoised[0])
    points, reference = map_bursts(denoised, waves, kept, step_s, choices)
    grid, clusters, scores = select_clusters(
        points,
        list_grids(waves, step_s, width_count, height_count, choices),
        length * step_s,
        min_unit_density=compute_threshold(gamma, len(kept)),
        min_neighborhood_density=compute_threshold(kappa, len(kept)),
        choices=choices,
    )

    by_index = dict(zip(kept, denoised, strict=True))
    bursts = [average_cluster(cluster, by_index, step_s, choices) for cluster in clusters]
    bursts.sort(key=lambda burst: burst.peak_s)
    return Extraction(
        bursts=bursts,
        signature=draw_signature(bursts, length, step_s),
        interval_s=step_s,
        features=features,
        outlier_factors=factors,
        outlier_indices=outliers,
        kept_indices=kept,
        refined=refined,
        trimmed=trimmed,
        background_level=background,
        denoised=denoised,
        transformed=transformed,
        waves=waves,
        reference=reference,
        points=points,
        grids=scores,
        grid=grid,
        clusters=clusters,
    )
