"""Detect change points online in a sequence of predicted periods, independently of scale.

Both detectors work on x = log2(period_s), in octaves: a doubling is +1 and a halving is -1 at any frequency. Neither
has a threshold in hertz or seconds.

- `ClippedCusum`: clips deviations, so that no single value is a change, and estimates the change point by maximum
  likelihood. It is the default, and best for changes by half or more.
- `Cusum`: the published two-sided cumulative sum, on the log scale (Page, Biometrika 1954, DOI
  10.1093/biomet/41.1-2.100). It accumulates smaller deviations: best for changes of 10 to 30 %.

With up to 10 % noise, both find 99 % of doublings and halvings within three predictions after 20 steady ones. They
raise false alarms in less than 5 % of sequences of 40 predictions without a change (docs/predictions-study.md).

Level and noise are estimated from the values since the last change. Autocorrelated errors cause more false alarms.
After a change, the state restarts with the values since the change point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from statistics import median
from typing import Any, ClassVar

#: standard deviation of a normal distribution divided by its median absolute deviation (MAD)
_SIGMA_PER_MAD = 1.4826
#: bias correction of the MAD of 2 to 9 values; for n values or more, n / (n - 0.8) (Croux and Rousseeuw, COMPSTAT 1992)
_SMALL_SAMPLE = (1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107)
#: variance of a median divided by that of a mean
_MEDIAN_VARIANCE = math.pi / 2
#: minimum noise [octaves], 7 %: a few values may agree by chance, and smaller changes are irrelevant to a scheduler
_MIN_NOISE_OCTAVES = 0.1
#: number of values since the last change before the first test; two outliers would spoil the median of fewer values
_MIN_COUNT = 5
#: number of values since the last change that determine level and noise; bounds memory, and lets a drift count as a
#: change
_MAX_COUNT = 32
#: weight of the minimum noise in the noise estimate, in values; chosen by the false-alarm rates of
#: docs/predictions-study.md, since the MAD of five values is inaccurate
_PRIOR_COUNT = 10


def _period_s(octaves: float) -> float:
    # log2 of the largest float is rounded up to 1024
    return math.pow(2.0, min(octaves, math.nextafter(1024.0, 0.0)))


@dataclass(frozen=True, slots=True)
class Change:
    """A detected change of the period.

    Attributes
    ----------
    index : int
        Change point: the first prediction of the new period, from 0, including missing predictions.
    found_index : int
        Prediction at which the change was detected.
    before_period_s, after_period_s : float
        Median period before and since the change point [s].
    noise_octaves : float
        Estimated standard deviation of a prediction's log2.

    """

    index: int
    found_index: int
    before_period_s: float
    after_period_s: float
    noise_octaves: float

    @property
    def octaves(self) -> float:
        """Size of the change [octaves]: 1 is a doubling of the period, -1 a halving."""
        return math.log2(self.after_period_s) - math.log2(self.before_period_s)


class _Reference:
    """Level (median) and noise (MAD, shrunk toward a minimum) of the first values since the last change."""

    def __init__(self, values: Sequence[float] = ()) -> None:
        self.values = list(values[:_MAX_COUNT])
        self.level = self.noise = math.nan
        self._estimate()

    def add(self, value: float) -> None:
        if len(self.values) < _MAX_COUNT:
            self.values.append(value)
            self._estimate()

    @property
    def is_ready(self) -> bool:
        return len(self.values) >= _MIN_COUNT

    @property
    def deviation_ratio(self) -> float:
        """Standard deviation of the difference between a new value and the level, in units of the noise."""
        return math.sqrt(1.0 + _MEDIAN_VARIANCE / len(self.values))

    def _estimate(self) -> None:
        count = len(self.values)
        if count < _MIN_COUNT:
            return
        self.level = median(self.values)
        spread = median([abs(value - self.level) for value in self.values])
        factor = _SMALL_SAMPLE[count - 2] if count < 10 else count / (count - 0.8)
        floor = _MIN_NOISE_OCTAVES
        measured = max(_SIGMA_PER_MAD * factor * spread, floor)
        self.noise = math.sqrt((_PRIOR_COUNT * floor * floor + count * measured * measured) / (_PRIOR_COUNT + count))


class Detector(ABC):
    """Base class of detectors, which validates and counts predictions, and serializes the state."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.seen_count = 0
        self.missing_count = 0

    def add(self, period_s: float | None) -> Change | None:
        """Process the next predicted period.

        Parameters
        ----------
        period_s : float or None
            Period [s]; None and NaN are missing predictions, which only advance the prediction count.

        Returns
        -------
        Change or None
            The change that this period reveals, if any.

        Raises
        ------
        ValueError
            If the period is not positive and finite.

        """
        period = math.nan if period_s is None else float(period_s)
        if period <= 0.0 or period == math.inf:
            raise ValueError(f"a period must be positive and finite, not {period}")
        index = self.seen_count
        self.seen_count += 1
        if math.isnan(period):
            self.missing_count += 1
            return None
        return self._test(index, math.log2(period))

    @abstractmethod
    def _test(self, index: int, value: float) -> Change | None: ...

    def to_dict(self) -> dict[str, Any]:
        """Export the complete state as JSON values."""
        counts = {"seen_count": self.seen_count, "missing_count": self.missing_count}
        return {"detector": self.name, **counts, **self._state()}

    @staticmethod
    def from_dict(state: Mapping[str, Any]) -> Detector:
        """Restore a detector from `to_dict`."""
        restored = create_detector(state["detector"])
        restored.seen_count, restored.missing_count = state["seen_count"], state["missing_count"]
        restored._restore(state)
        return restored

    @abstractmethod
    def _state(self) -> dict[str, Any]: ...

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None: ...


# ---- cumulative sums


@dataclass(slots=True)
class _Sum:
    """A cumulative sum with minimum 0, and the index at which it was last 0."""

    value: float = 0.0
    first_index: int = 0

    def add(self, index: int, step: float) -> None:
        if self.value <= 0.0:
            self.first_index = index
        self.value = max(0.0, self.value + step)


class Cusum(Detector):
    """Page's cumulative sum, two-sided (Biometrika 41, 1954, section 4, DOI 10.1093/biomet/41.1-2.100).

    S_n = max(0, S_(n-1) + z_n - k), and the same for -z_n, from S_0 = 0; a change is detected when a sum reaches h. The
    change point is the first value after the sum was last 0.

    Notes
    -----
    The method was published for known level and noise. Here z_n = (x_n - m) / (s sqrt(1 + pi / 2c)), where m and s are
    median and noise of the c previous values since the last change; the root includes the error of m.

    """

    name = "cusum"
    #: k [noise units]: half the smallest shift of interest, as usual, for a shift of one noise unit
    allowance: ClassVar[float] = 0.5
    #: h [noise units]: 5 is usual for known level and noise; with estimates from few values, 10 gives the false-alarm
    #: rate of docs/predictions-study.md
    threshold: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._reference = _Reference()
        self._longer, self._shorter = _Sum(), _Sum()
        #: most recent (index, value) pairs that contribute to a sum
        self._pending: list[tuple[int, float]] = []

    def _test(self, index: int, value: float) -> Change | None:
        if not self._reference.is_ready:
            self._reference.add(value)
            return None
        deviation = self._deviation(value)
        self._longer.add(index, deviation - self.allowance)
        self._shorter.add(index, -deviation - self.allowance)
        self._keep_pending(index, value)
        exceeded = max(self._longer, self._shorter, key=lambda total: total.value)
        if exceeded.value >= self.threshold:
            return self._report_change(index, self._change_point(exceeded))
        self._reference.add(value)
        return None

    def _deviation(self, value: float) -> float:
        reference = self._reference
        return (value - reference.level) / (reference.noise * reference.deviation_ratio)

    def _keep_pending(self, index: int, value: float) -> None:
        first = min(
            (total.first_index for total in (self._longer, self._shorter) if total.value > 0), default=index + 1
        )
        kept = [pair for pair in (*self._pending, (index, value)) if pair[0] >= first]
        self._pending = kept[-_MAX_COUNT:]

    def _change_point(self, exceeded: _Sum) -> int:
        return exceeded.first_index

    def _report_change(self, index: int, first_index: int) -> Change:
        since = [value for at, value in self._pending if at >= first_index]
        before = self._reference.level
        change = Change(first_index, index, _period_s(before), _period_s(median(since)), self._reference.noise)
        self._reference = _Reference(since)
        self._longer, self._shorter, self._pending = _Sum(), _Sum(), []
        return change

    def _state(self) -> dict[str, Any]:
        sums = {"longer": asdict(self._longer), "shorter": asdict(self._shorter)}
        pending = [list(pair) for pair in self._pending]
        return {"reference": list(self._reference.values), **sums, "pending": pending}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reference = _Reference(state["reference"])
        self._longer, self._shorter = _Sum(**state["longer"]), _Sum(**state["shorter"])
        self._pending = [(at, value) for at, value in state["pending"]]


class ClippedCusum(Cusum):
    """Page's cumulative sum of clipped deviations, robust against a single outlier.

    Works like `Cusum`, but z_n is clipped to [-c, c] with c - k < h, so that one outlier, such as a missed phase, is no
    change. The change point t is the maximum likelihood estimate among the values in the sum: it maximizes (sum of x_i
    - m over i >= t)^2 / count with a count of two or more (Hinkley, Biometrika 57, 1970, DOI 10.1093/biomet/57.1.1, for
    a known level before the change).
    """

    name = "clipped_cusum"
    #: k for shifts of two noise units or more
    allowance = 1.0
    threshold = 6.0
    #: c: with the allowance, one value adds at most 3, so that a change needs two values
    max_deviation: ClassVar[float] = 4.0

    def _deviation(self, value: float) -> float:
        return max(-self.max_deviation, min(super()._deviation(value), self.max_deviation))

    def _change_point(self, exceeded: _Sum) -> int:
        since = [(at, value - self._reference.level) for at, value in self._pending if at >= exceeded.first_index]
        sums = list(accumulate(deviation for _, deviation in reversed(since)))
        min_count = min(2, len(sums))
        strengths = [(total * total / count, count) for count, total in enumerate(sums, 1) if count >= min_count]
        return since[-max(strengths)[1]][0]


# ---- by name


_DETECTORS: dict[str, type[Detector]] = {kind.name: kind for kind in (ClippedCusum, Cusum)}
#: names of the detectors, default first
DETECTOR_NAMES = tuple(_DETECTORS)
#: replacements of detectors of earlier versions
REPLACED_DETECTORS = {"page_hinkley": Cusum.name, "adwin": ClippedCusum.name}


def create_detector(name: str = ClippedCusum.name) -> Detector:
    """Create a detector by name; raise ValueError for an unknown or removed name."""
    if name in REPLACED_DETECTORS:
        raise ValueError(f"the detector {name} was removed; use {REPLACED_DETECTORS[name]} instead")
    if name not in _DETECTORS:
        raise ValueError(f"unknown detector {name}; choose from {', '.join(DETECTOR_NAMES)}")
    return _DETECTORS[name]()
