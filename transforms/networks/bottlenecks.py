"""Find individual requests that are much larger or much longer than the typical request of a run.

Sigovan et al. (IPDPS'13), Figure 12, show one very large write of process 0, which "could be broken up into smaller
pieces". The criteria are our own: a high robust z-score, a large fraction of the run's total, and rarity. Values arrive
as a stream, which is reduced to a histogram with log bins and the highest values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from iosig.transforms.arrays import SIGMAS_PER_MAD, Ints, Reals
from iosig.transforms.networks.log_bins import BINS_PER_OCTAVE, HIGHEST, LOWEST, bin_numbers
from iosig.transforms.networks.network import METRICS, Metric

BOTTLENECK_SCHEMA = pl.Schema(
    {
        "metric": pl.String(),
        "bottleneck": pl.Int32(),
        "request": pl.Int64(),
        "value": pl.Float64(),
        "median_value": pl.Float64(),
        "score": pl.Float64(),
        "share_ratio": pl.Float64(),
    }
)

#: distance between the upper quartile and the ninth decile of a normal distribution, in standard deviations
_Q75_TO_Q90_SIGMAS = 0.6071


@dataclass(frozen=True, slots=True)
class BottleneckParams:
    """Thresholds above which a request is a bottleneck.

    Attributes
    ----------
    min_score
        Minimum robust z-score of the logarithm; of normally distributed values, one in three million is higher.
    min_deviation
        Minimum robust standard deviation in the z-score [octaves]: one log bin, the smallest spread that the histogram
        resolves.
    min_octaves
        Minimum distance above the highest typical request [octaves]: a factor of eight.
    rare_ratio
        Fraction of requests that are not typical; one request or more. If large requests are more frequent, they are a
        pattern of access, not a bottleneck.
    min_share_ratio
        Minimum fraction of the run's bytes or time, if the number of processes is unknown.
    max_min_share_ratio
        Upper limit of the minimum fraction, if the number of processes is known. The minimum is then the mean fraction
        per process, since a single longer request keeps the other processes waiting.
    """

    min_score: float = 5.0
    min_deviation: float = 0.25
    min_octaves: float = 3.0
    rare_ratio: float = 0.01
    min_share_ratio: float = 0.01
    max_min_share_ratio: float = 0.1


PARAMS = BottleneckParams()


@dataclass(slots=True)
class _MetricState:
    """Summary of a metric's values: counts by log bin (from LOWEST), sum of the values, and the highest values."""

    counts: Ints = field(default_factory=lambda: np.zeros(HIGHEST - LOWEST + 1, dtype=np.int64))
    # in units of 2**512, since a sum of the largest floats would overflow
    total: float = 0.0
    values: Reals = field(default_factory=lambda: np.zeros(0))
    requests: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


_UNIT = 2.0**-512


class BottleneckFinder:
    """Streaming detector of bottlenecks; the result does not depend on the order of values or their chunks.

    Parameters
    ----------
    max_count
        Maximum number of bottlenecks per metric.
    process_count
        Number of processes that make the requests, if known.

    Raises
    ------
    ValueError
        If a count is not positive.

    """

    def __init__(self, max_count: int = 10, process_count: int | None = None) -> None:
        if max_count < 1 or (process_count is not None and process_count < 1):
            raise ValueError("max_count and process_count must be positive")
        self._max_count, self._process_count = max_count, process_count
        self._states: dict[Metric, _MetricState] = {}

    def add(self, metric: Metric, values: Reals, request: Ints) -> None:
        """Add values of a metric; unknown values and values that are not positive are ignored.

        Parameters
        ----------
        metric
            Quantity that the values measure.
        values : (n,)
            Values in the metric's unit.
        request : (n,)
            Number of the request that each value belongs to.

        Raises
        ------
        ValueError
            If the metric is unknown, or the lengths differ.
        """
        if metric not in METRICS:
            raise ValueError(f"unknown metric {metric!r}")
        if len(values) != len(request):
            raise ValueError(f"{len(values)} values for {len(request)} requests")
        is_known = np.isfinite(values) & (values > 0)
        if not is_known.all():
            values, request = values[is_known], request[is_known]
        state = self._states.setdefault(metric, _MetricState())
        if not len(values):
            return
        bins = bin_numbers(values).astype(np.int64) - LOWEST
        counts = np.bincount(bins)
        state.counts[: len(counts)] += counts
        state.total += float((values * _UNIT).sum())
        highest = _find_highest(values, request, self._max_count)
        state.values = np.concatenate([state.values, values[highest]])
        state.requests = np.concatenate([state.requests, request[highest]])
        order = np.lexsort((state.requests, -state.values))[: self._max_count]
        state.values, state.requests = state.values[order], state.requests[order]

    def result(self) -> pl.DataFrame:
        """Return the bottlenecks so far (BOTTLENECK_SCHEMA), sorted by metric, descending value and request."""
        return pl.DataFrame(list(self.rows()), schema=BOTTLENECK_SCHEMA, orient="row")

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the bottlenecks as tuples, in the order of `result`."""
        for metric in METRICS:
            if metric in self._states:
                yield from self._metric_rows(metric)

    def _min_share(self) -> float:
        if self._process_count is None:
            return PARAMS.min_share_ratio
        return min(1.0 / self._process_count, PARAMS.max_min_share_ratio)

    def _metric_rows(self, metric: Metric) -> Iterator[tuple[object, ...]]:
        state = self._states[metric]
        count = int(state.counts.sum())
        if not count:
            return
        median, deviation = _median_and_deviation(state.counts)
        deviation = max(deviation, PARAMS.min_deviation)
        min_octaves = _max_typical_octaves(state.counts, max(1, int(PARAMS.rare_ratio * count))) + PARAMS.min_octaves
        octaves = np.log2(state.values)
        scores = (octaves - median) / deviation
        shares = state.values * _UNIT / state.total
        is_bottleneck = (scores >= PARAMS.min_score) & (octaves >= min_octaves) & (shares >= self._min_share())
        for number, index in enumerate(np.flatnonzero(is_bottleneck).tolist()):
            yield (
                metric,
                number,
                int(state.requests[index]),
                float(state.values[index]),
                float(2.0**median),
                float(scores[index]),
                float(min(shares[index], 1.0)),
            )


def _find_highest(values: Reals, request: Ints, count: int) -> Ints:
    """Find the `count` highest values; of equal values, choose those with the lowest request numbers."""
    if len(values) <= count:
        return np.arange(len(values))
    threshold = np.partition(values, len(values) - count)[-count]
    above, tied = np.flatnonzero(values > threshold), np.flatnonzero(values == threshold)
    tied_count = count - len(above)
    if tied_count < len(tied):
        tied = tied[np.argpartition(request[tied], tied_count - 1)[:tied_count]]
    return np.concatenate([above, tied])


def _max_typical_octaves(counts: Ints, rare_count: int) -> float:
    """Return the highest value below the `rare_count` highest, in octaves; infinity if all values are rare."""
    used = np.flatnonzero(counts)
    from_top = np.cumsum(counts[used][::-1])
    index = int(np.searchsorted(from_top, rare_count, side="right"))
    if index == len(used):
        return float("inf")
    return float((used[::-1][index] + LOWEST + 0.5) / BINS_PER_OCTAVE)


def _quantile(counts: Ints, ratio: float) -> float:
    """Compute a quantile of binned values in octaves, interpolated linearly within bins."""
    ends = np.cumsum(counts)
    target = ratio * ends[-1]
    index = int(np.searchsorted(ends, target))
    return float((index + LOWEST + (target - (ends[index] - counts[index])) / counts[index]) / BINS_PER_OCTAVE)


def _median_and_deviation(counts: Ints) -> tuple[float, float]:
    """Compute the median and the robust standard deviation of binned values, in octaves.

    The deviation is the smaller of two estimates. One is based on the median absolute deviation (of bin centers), the
    other on the distance between the upper quartile and the ninth decile. If requests have two typical sizes, one of
    the estimates may span the gap between the sizes.
    """
    median = _quantile(counts, 0.5)
    used = np.flatnonzero(counts)
    distances = np.abs((used + LOWEST + 0.5) / BINS_PER_OCTAVE - median)
    order = np.argsort(distances, kind="stable")
    cumulative = np.cumsum(counts[used[order]])
    median_distance = float(distances[order[int(np.searchsorted(cumulative, cumulative[-1] / 2.0))]])
    upper = (_quantile(counts, 0.9) - _quantile(counts, 0.75)) / _Q75_TO_Q90_SIGMAS
    return median, min(SIGMAS_PER_MAD * median_distance, upper)
