"""How a peer tells of changes, for comparison: three rules on frequencies in hertz, with thresholds in hertz.

The rules are those of FTIO's own program (its adaptive windows, which the paper does not have), as far as they are
known to us; what is not known is said of each. iosig does not use them: its detectors are in
`iosig.transforms.predictions.change_points`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import fmean, pstdev

#: ADWIN's confidence is 1 - this
_DELTA = 0.05
#: of CUSUM and Page-Hinkley: threshold and drift in standard deviations, and the least standard deviation [Hz]
_THRESHOLD, _DRIFT, _FLOOR_HZ = 2.0, 0.5, 0.01
#: values that make a reference
_REFERENCE_COUNT = 3


@dataclass(frozen=True, slots=True)
class Told:
    """A change that a rule told: the change point, counted in periods from 0, and the change in octaves of period."""

    index: int
    octaves: float


def _told(index: int, before_hz: float, after_hz: float) -> Told:
    return Told(index, math.log2(before_hz / after_hz))


@dataclass(slots=True)
class PeerAdwin:
    """A cut where |mean(W0) - mean(W1)| > sqrt(ln(2 / 0.05) / n), in hertz; 1 / n = 1 / n0 + 1 / n1.

    Of all cuts that differ by more, the clearest one is taken (ours, to its favour: not known).
    """

    seen_count: int = 0
    values: list[float] = field(default_factory=list)

    def add(self, period_s: float) -> Told | None:
        """Take the next period; return the change that it gives away, if any."""
        self.values.append(1.0 / period_s)
        self.seen_count += 1
        strength, cut, before, after = max(self._cuts(), default=(0.0, 0, 0.0, 0.0))
        if strength <= 1.0:
            return None
        index = self.seen_count - len(self.values) + cut
        self.values = self.values[cut:]
        return _told(index, before, after)

    def _cuts(self) -> Iterator[tuple[float, int, float, float]]:
        """Yield each cut with how far its parts differ, in thresholds, and their means."""
        sums, count = list(accumulate(self.values)), len(self.values)
        for cut in range(1, count):
            before, after = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (count - cut)
            threshold = math.sqrt(math.log(2.0 / _DELTA) * (1.0 / cut + 1.0 / (count - cut)))
            yield abs(before - after) / threshold, cut, before, after


@dataclass(slots=True)
class _Sums:
    """Two sums of deviations from a level; a change at 2 sigma, the drift being 0.5 sigma.

    sigma: 0.01 Hz at least. After a change all begins anew (both ours: not known).
    """

    seen_count: int = 0
    values: list[float] = field(default_factory=list)
    higher: float = 0.0
    lower: float = 0.0

    def _is_change(self, value: float, level: float) -> bool:
        """Add a value's deviation; return whether either sum tells of a change."""
        sigma = max(pstdev(self.values), _FLOOR_HZ)
        self.higher = max(0.0, self.higher + value - level - _DRIFT * sigma)
        self.lower = max(0.0, self.lower + level - value - _DRIFT * sigma)
        return max(self.higher, self.lower) > _THRESHOLD * sigma

    def _changed(self, value: float, before: float) -> Told:
        self.values, self.higher, self.lower = [value], 0.0, 0.0
        return _told(self.seen_count - 1, before, value)


@dataclass(slots=True)
class PeerCusum(_Sums):
    """Sums of deviations from the mean of the first three values, of which sigma is, too."""

    def add(self, period_s: float) -> Told | None:
        """Take the next period; return the change that it gives away, if any."""
        value = 1.0 / period_s
        self.seen_count += 1
        if len(self.values) < _REFERENCE_COUNT:
            self.values.append(value)
            return None
        level = fmean(self.values)
        return self._changed(value, level) if self._is_change(value, level) else None


@dataclass(slots=True)
class PeerPageHinkley(_Sums):
    """The same of deviations from the running mean, which begins with the first value; sigma is that of all values."""

    def add(self, period_s: float) -> Told | None:
        """Take the next period; return the change that it gives away, if any."""
        value = 1.0 / period_s
        self.seen_count += 1
        self.values.append(value)
        if len(self.values) < _REFERENCE_COUNT or not self._is_change(value, fmean(self.values)):
            return None
        return self._changed(value, fmean(self.values[:-1]))
