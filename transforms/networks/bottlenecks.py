"""Single requests that hold a run up: far larger, or far longer, than what a process usually asks for.

Sigovan et al. (IPDPS'13), Figure 12: one very large write of process 0, which "could be broken up into smaller
pieces". The rules are ours: the request stands out by a robust score, it matters to the run, and there are few such.
Values come as a stream; what is kept is a histogram in log bins and the highest values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from iosig.transforms.arrays import SIGMAS_PER_MAD, Ints, Reals
from iosig.transforms.networks.log_bins import BINS_PER_OCTAVE, HIGHEST, LOWEST, bin_numbers
from iosig.transforms.networks.network import METRICS, Metric

BOTTLENECK_ROWS = pl.Schema(
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

#: between upper quartile and ninth decile of a normal distribution, in standard deviations
_UPPER_APART = 0.6071


# From where on a request is a bottleneck: all are ours.

#: so many robust deviations above the median, in octaves: of normal logarithms one in three million lies that high
_LEAST_SCORE = 5.0
#: the least deviation to score by, in octaves: a log bin, which is all that is known where requests are alike
_LEAST_DEVIATION = 0.25
#: eight times what all but this share of the requests stay below, or all but one where they are few; less is a larger
#: request, not another kind of it, and what is done more often is a way of working
_LEAST_OCTAVES, _RARE_RATIO = 3.0, 0.01
#: and this share of all bytes or of all time, where the number of processes is not known; where it is, as much as one
#: process has in all, on the average, for then the others wait for it; but never more than the second, which matters
#: however few processes there are
_LEAST_SHARE, _MOST_LEAST_SHARE = 0.01, 0.1


@dataclass(slots=True)
class _Seen:
    """What is kept of a metric: counts by log bin from LOWEST on, the sum, the highest values and their requests."""

    counts: Ints = field(default_factory=lambda: np.zeros(HIGHEST - LOWEST + 1, dtype=np.int64))
    # in units of 2**512: a sum of the largest floats has no float of its own
    total: float = 0.0
    values: Reals = field(default_factory=lambda: np.zeros(0))
    requests: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


_UNIT = 2.0**-512


class BottleneckFinder:
    """Finds the requests that stand out, from values as they come, in any order and in pieces of any length.

    most_count: so many are told of each metric. process_count: the processes that make the requests, if known.
    """

    def __init__(self, most_count: int = 10, process_count: int | None = None) -> None:
        if most_count < 1 or (process_count is not None and process_count < 1):
            raise ValueError("there is one bottleneck to find at least, and one process")
        self._most_count, self._process_count = most_count, process_count
        self._seen: dict[Metric, _Seen] = {}

    def add(self, metric: Metric, values: Reals, request: Ints) -> None:
        """Take in values (n) of requests (n, their numbers); those that are not above 0, or not known, do not count."""
        if metric not in METRICS:
            raise ValueError(f"there is no metric {metric}")
        if len(values) != len(request):
            raise ValueError(f"{len(values)} values are not of {len(request)} requests")
        is_known = np.isfinite(values) & (values > 0)
        if not is_known.all():
            values, request = values[is_known], request[is_known]
        seen = self._seen.setdefault(metric, _Seen())
        if not len(values):
            return
        bins = bin_numbers(values).astype(np.int64) - LOWEST
        found = np.bincount(bins)
        seen.counts[: len(found)] += found
        seen.total += float((values * _UNIT).sum())
        highest = _highest(values, request, self._most_count)
        seen.values = np.concatenate([seen.values, values[highest]])
        seen.requests = np.concatenate([seen.requests, request[highest]])
        order = np.lexsort((seen.requests, -seen.values))[: self._most_count]
        seen.values, seen.requests = seen.values[order], seen.requests[order]

    def result(self) -> pl.DataFrame:
        """Return the bottlenecks so far (BOTTLENECK_ROWS) by metric, the highest value first, then by request."""
        return pl.DataFrame(list(self.rows()), schema=BOTTLENECK_ROWS, orient="row")

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield them as rows."""
        for metric in METRICS:
            if metric in self._seen:
                yield from self._rows(metric)

    def _least_share(self) -> float:
        if self._process_count is None:
            return _LEAST_SHARE
        return min(1.0 / self._process_count, _MOST_LEAST_SHARE)

    def _rows(self, metric: Metric) -> Iterator[tuple[object, ...]]:
        seen = self._seen[metric]
        count = int(seen.counts.sum())
        if not count:
            return
        median, deviation = _median_and_deviation(seen.counts)
        deviation = max(deviation, _LEAST_DEVIATION)
        above = _usual_reach(seen.counts, max(1, int(_RARE_RATIO * count))) + _LEAST_OCTAVES
        scores = (np.log2(seen.values) - median) / deviation
        shares = seen.values * _UNIT / seen.total
        is_found = (scores >= _LEAST_SCORE) & (np.log2(seen.values) >= above) & (shares >= self._least_share())
        for number, place in enumerate(np.flatnonzero(is_found).tolist()):
            yield (
                metric,
                number,
                int(seen.requests[place]),
                float(seen.values[place]),
                float(2.0**median),
                float(scores[place]),
                float(min(shares[place], 1.0)),
            )


def _highest(values: Reals, request: Ints, count: int) -> Ints:
    """Return the places of the highest values, `count` at most; of equal ones, those of the lowest requests."""
    if len(values) <= count:
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[-count]
    above, level = np.flatnonzero(values > least), np.flatnonzero(values == least)
    wanted = count - len(above)
    if wanted < len(level):
        level = level[np.argpartition(request[level], wanted - 1)[:wanted]]
    return np.concatenate([above, level])


def _usual_reach(counts: Ints, rare: int) -> float:
    """Return the highest value but for so many rare ones, in octaves; infinity where there are no others."""
    used = np.flatnonzero(counts)
    from_top = np.cumsum(counts[used][::-1])
    place = int(np.searchsorted(from_top, rare, side="right"))
    if place == len(used):
        return float("inf")
    return float((used[::-1][place] + LOWEST + 0.5) / BINS_PER_OCTAVE)


def _quantile(counts: Ints, ratio: float) -> float:
    """Return a quantile of counted values, in octaves; values lie evenly in their bins."""
    ends = np.cumsum(counts)
    sought = ratio * ends[-1]
    place = int(np.searchsorted(ends, sought))
    return float((place + LOWEST + (sought - (ends[place] - counts[place])) / counts[place]) / BINS_PER_OCTAVE)


def _median_and_deviation(counts: Ints) -> tuple[float, float]:
    """Return the median and the robust standard deviation of counted values, in octaves.

    The deviation is the smaller of two: by the median absolute deviation (of the bins' middles), and by the upper
    quartile and the ninth decile. Where requests are of two sizes, one of them may span the gap between these.
    """
    median = _quantile(counts, 0.5)
    used = np.flatnonzero(counts)
    distances = np.abs((used + LOWEST + 0.5) / BINS_PER_OCTAVE - median)
    order = np.argsort(distances, kind="stable")
    passed = np.cumsum(counts[used[order]])
    nearest = float(distances[order[int(np.searchsorted(passed, passed[-1] / 2.0))]])
    upper = (_quantile(counts, 0.9) - _quantile(counts, 0.75)) / _UPPER_APART
    return median, min(SIGMAS_PER_MAD * nearest, upper)
