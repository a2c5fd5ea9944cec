"""Draw the waits of a rank between its calls: delta times from the trace's histograms (Luo et al., section 2).

Times are drawn for all ranks of a class together: a histogram's own quantiles, each once, in an order that a seeded
generator shuffles. The total wait of the replayed ranks therefore equals that of the traced ranks. The longest wait,
which determines the run time, occurs exactly as often as in the trace; independent draws would miss or double it.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import polars as pl

from iosig.traces.replay import traces
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.traces.expansion import number_nodes
from iosig.transforms.traces.time_histograms import Bins
from iosig.transforms.traces.trace import START, Call, CompressedTrace, TimeHistogram

#: maximum length of a random permutation; longer rows are shuffled by a stride, which needs no memory
_SHUFFLED = 1 << 20


class Pacing:
    """The delta times of the calls of a trace's ranks."""

    def __init__(self, trace: CompressedTrace, seed: int) -> None:
        self._trace = trace
        self._seed = seed

    def spent(self, rank: int, calls: pl.DataFrame) -> Reals:
        """Return [gap, duration, minimum duration] of each call of a rank [s], N x 3."""
        times = np.zeros((calls.height, 3))
        number, index = traces.place_in_class(self._trace, rank)
        if number < 0:
            return times
        nodes = calls["node"].to_numpy().astype(np.int64)
        previous = np.r_[START, nodes[:-1]] if nodes.size else nodes
        for node, call in enumerate(number_nodes(self._trace.classes[number].body)[0]):
            call_places = np.flatnonzero(nodes == node)
            if not call_places.size or not isinstance(call, Call):
                continue
            times[call_places, 1] = self._drawn(call.durations, index, call_places.size, (number, node, 0))
            times[call_places, 2] = call.durations.minimum_s
            times[call_places, 0] = self._gaps(call, previous[call_places], (number, node, index))
        return times.clip(min=0.0)

    def _gaps(self, call: Call, previous: Ints, key: tuple[int, int, int]) -> Reals:
        number, node, index = key
        observed = [gap for gap in call.gaps if gap.histogram.count]
        total = sum(gap.histogram.count for gap in observed)
        mean_s = sum(gap.histogram.mean_s * gap.histogram.count for gap in observed) / total if total else 0.0
        gaps = np.full(previous.size, mean_s)
        for gap in observed:
            after = np.flatnonzero(previous == gap.previous)
            gaps[after] = self._drawn(gap.histogram, index, after.size, (number, node, gap.previous + 2))
        return gaps

    def _drawn(self, histogram: TimeHistogram, index: int, count: int, key: tuple[int, int, int]) -> Reals:
        """Return the times of a call for the rank with this index in its class, one per repetition."""
        if not count or not histogram.count:
            return np.zeros(count)
        places = (index * count + np.arange(count, dtype=np.int64)) % histogram.count
        return quantiles(histogram, shuffle_places(places, histogram.count, (self._seed, *key)))


def shuffle_places(places: Ints, count: int, seed: tuple[int, ...]) -> Ints:
    """Shuffle the places of a row of `count` elements, without collisions."""
    if count <= _SHUFFLED:
        return _order(count, seed)[places]
    generator = np.random.default_rng(seed)
    stride = int(generator.integers(count // 3, count // 2)) | 1
    while math.gcd(stride, count) != 1:
        stride += 2
    start = int(generator.integers(count))
    # Python integers: the product may exceed 64 bits.
    return np.array([(place * stride + start) % count for place in places.tolist()], np.int64)


@cache
def _order(count: int, seed: tuple[int, ...]) -> Ints:
    return np.random.default_rng(seed).permutation(count)


def quantiles(histogram: TimeHistogram, places: Ints) -> Reals:
    """Return the times [s] at some places in the sorted times of a histogram; place 0 is the shortest time.

    Within a bin they range from its minimum to its maximum, both included, distributed as the histogram assumes.
    """
    filled = [time_bin for time_bin in histogram.bins if time_bin.count]
    if not filled:
        return np.full(places.size, histogram.mean_s)
    bins = Bins.from_bins(filled)
    ends = np.cumsum(bins.counts)
    owner = np.minimum(np.searchsorted(ends, places, side="right"), ends.size - 1)
    counts = bins.counts[owner]
    shares = np.clip((places - (ends[owner] - counts)) / np.maximum(counts - 1, 1), 0.0, 1.0)
    return Bins(*(column[owner] for column in (bins.counts, bins.minima, bins.means, bins.maxima))).quantiles(shares)
