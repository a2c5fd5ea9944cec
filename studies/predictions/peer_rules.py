"""FTIO's change-detection rules, on frequencies in hertz with thresholds in hertz, for comparison.

The rules are those of FTIO's program (its adaptive windows, which the paper does not describe), as far as known to us;
assumptions are marked. iosig uses its own detectors, in `iosig.transforms.predictions.change_points`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import fmean, pstdev

#: ADWIN's delta: its confidence is 1 - delta
_DELTA = 0.05
#: CUSUM and Page-Hinkley: threshold and drift in standard deviations, and minimum standard deviation [Hz]
_THRESHOLD, _DRIFT, _FLOOR_HZ = 2.0, 0.5, 0.01
#: number of values in the reference
_REFERENCE_COUNT = 3


@dataclass(frozen=True, slots=True)
class DetectedChange:
    """Index of a detected change point in periods from 0, and the change in octaves of the period."""

    index: int
    octaves: float


def _make_change(index: int, before_hz: float, after_hz: float) -> DetectedChange:
    return DetectedChange(index, math.log2(before_hz / after_hz))


@dataclass(slots=True)
class PeerAdwin:
    """ADWIN as FTIO's program uses it: a cut at a significant difference of means.

    |mean(W0) - mean(W1)| > sqrt(ln(2 / 0.05) / n), in hertz; 1 / n = 1 / n0 + 1 / n1. Of all cuts above the threshold,
    the strongest is taken (our assumption, in its favor).
    """

    seen_count: int = 0
    values: list[float] = field(default_factory=list)

    def add(self, period_s: float) -> DetectedChange | None:
        """Add the next period and return the detected change, if any."""
        self.values.append(1.0 / period_s)
        self.seen_count += 1
        strength, cut, before, after = max(self._cuts(), default=(0.0, 0, 0.0, 0.0))
        if strength <= 1.0:
            return None
        index = self.seen_count - len(self.values) + cut
        self.values = self.values[cut:]
        return _make_change(index, before, after)

    def _cuts(self) -> Iterator[tuple[float, int, float, float]]:
        """Yield the difference of means at each cut, in units of the threshold, with the cut and both means."""
        sums, count = list(accumulate(self.values)), len(self.values)
        for cut in range(1, count):
            before, after = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (count - cut)
            threshold = math.sqrt(math.log(2.0 / _DELTA) * (1.0 / cut + 1.0 / (count - cut)))
            yield abs(before - after) / threshold, cut, before, after


@dataclass(slots=True)
class _Sums:
    """Two cumulative sums of deviations; a change is detected at 2 sigma, with a drift of 0.5 sigma.

    sigma is 0.01 Hz or more, and the sums are reset after a change (both our assumptions).
    """

    seen_count: int = 0
    values: list[float] = field(default_factory=list)
    higher: float = 0.0
    lower: float = 0.0

    def _is_change(self, value: float, level: float) -> bool:
        """Add a value's deviation and return whether either sum exceeds the threshold."""
        sigma = max(pstdev(self.values), _FLOOR_HZ)
        self.higher = max(0.0, self.higher + value - level - _DRIFT * sigma)
        self.lower = max(0.0, self.lower + level - value - _DRIFT * sigma)
        return max(self.higher, self.lower) > _THRESHOLD * sigma

    def _reset(self, value: float, before: float) -> DetectedChange:
        self.values, self.higher, self.lower = [value], 0.0, 0.0
        return _make_change(self.seen_count - 1, before, value)


@dataclass(slots=True)
class PeerCusum(_Sums):
    """CUSUM rule on deviations from the mean of the first three values, which also give sigma."""

    def add(self, period_s: float) -> DetectedChange | None:
        """Add the next period and return the detected change, if any."""
        value = 1.0 / period_s
        self.seen_count += 1
        if len(self.values) < _REFERENCE_COUNT:
            self.values.append(value)
            return None
        level = fmean(self.values)
        return self._reset(value, level) if self._is_change(value, level) else None


@dataclass(slots=True)
class PeerPageHinkley(_Sums):
    """Page-Hinkley rule on deviations from the running mean since the first value; sigma is that of all values."""

    def add(self, period_s: float) -> DetectedChange | None:
        """Add the next period and return the detected change, if any."""
        value = 1.0 / period_s
        self.seen_count += 1
        self.values.append(value)
        if len(self.values) < _REFERENCE_COUNT or not self._is_change(value, fmean(self.values)):
            return None
        return self._reset(value, fmean(self.values[:-1]))
