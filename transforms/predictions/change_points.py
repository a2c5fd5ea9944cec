"""Changes in a sequence of periods, found while they are predicted, at any scale alike.

Both detectors work on x = log2(period_s), in octaves: a doubling is +1 and a halving is -1 at 0.005 Hz as at 10 Hz,
and a frequency's change is its period's with the other sign. Neither has a threshold in hertz or seconds.

- `ClippedCusum`: clips deviations, so that no single value is a change, and estimates the change point by maximum
  likelihood. The default, best for changes by half or more.
- `Cusum`: the two-sided cumulative sum as published but for the scale (Page, Biometrika 1954, DOI
  10.1093/biomet/41.1-2.100). It accumulates smaller deviations: best for changes of 10 to 30 %.

With up to 10 % noise, both find 99 % of doublings and halvings within three predictions after 20 steady ones, and a
change in less than 5 % of runs of 40 without any (docs/predictions-study.md).

Each takes one prediction at a time, `add(period_s)`, and returns a `Change` or None. After a change the state begins
again with the values since the change point. The noise is estimated from the values since the last change;
errors that are alike from one prediction to the next pass for changes more often. A prediction that is missing (None
or NaN) is counted and changes nothing else. `to_dict` gives a detector's whole state in plain values that JSON can
hold, `Detector.from_dict` the same detector from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from statistics import median
from typing import Any, ClassVar

#: a normal variable's standard deviation, in median absolute deviations
_SIGMA_PER_MAD = 1.4826
#: what makes the MAD of 2 to 9 values unbiased; n / (n - 0.8) for more (Croux and Rousseeuw, COMPSTAT 1992)
_SMALL_SAMPLE = (1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107)
#: the variance of a median is so many times that of a mean
_MEDIAN_VARIANCE = math.pi / 2
#: the noise is never taken to be less (ours: 7 %; a few values may agree by chance, and a smaller change than that is
#: none that a scheduler would act on)
_FLOOR_OCTAVES = 0.1
#: so many values since the last change are seen before one is judged (ours: the median of fewer is spoiled by two)
_LEAST_COUNT = 5
#: the first so many values since the last change tell level and noise, then they stay (ours: bounds memory and work,
#: and a slow drift becomes a change)
_MOST_COUNT = 32
#: the floor counts as the noise of so many values beside those that were seen (ours, from the measured rates: the MAD
#: of five values alone is often far off)
_PRIOR_COUNT = 10


def _period_s(octaves: float) -> float:
    # the logarithm of the largest period is rounded up to 1024
    return math.pow(2.0, min(octaves, math.nextafter(1024.0, 0.0)))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the period, as it was found.

    index: the change point, the first prediction of the new period, counted from 0; missing predictions count.
    found_index: the prediction at which it was found. before_period_s, after_period_s: the period until the change
    point and since, as far as the detector has seen it. noise_octaves: the standard deviation that was assumed of a
    prediction's log2.
    """

    index: int
    found_index: int
    before_period_s: float
    after_period_s: float
    noise_octaves: float

    @property
    def octaves(self) -> float:
        """The change in octaves: 1 is a doubling of the period, -1 a halving."""
        return math.log2(self.after_period_s) - math.log2(self.before_period_s)


class _Reference:
    """Level and noise of the first values since the last change: their median, and their MAD with a floor."""

    def __init__(self, values: Sequence[float] = ()) -> None:
        self.values = list(values[:_MOST_COUNT])
        self.level = self.noise = math.nan
        self._estimate()

    def add(self, value: float) -> None:
        if len(self.values) < _MOST_COUNT:
            self.values.append(value)
            self._estimate()

    @property
    def is_ready(self) -> bool:
        return len(self.values) >= _LEAST_COUNT

    @property
    def level_error(self) -> float:
        """What a new value's deviation from the level is wider than the noise by, as a factor."""
        return math.sqrt(1.0 + _MEDIAN_VARIANCE / len(self.values))

    def _estimate(self) -> None:
        count = len(self.values)
        if count < _LEAST_COUNT:
            return
        self.level = median(self.values)
        spread = median([abs(value - self.level) for value in self.values])
        factor = _SMALL_SAMPLE[count - 2] if count < 10 else count / (count - 0.8)
        floor = _FLOOR_OCTAVES
        own = max(_SIGMA_PER_MAD * factor * spread, floor)
        self.noise = math.sqrt((_PRIOR_COUNT * floor * floor + count * own * own) / (_PRIOR_COUNT + count))


class Detector(ABC):
    """What all detectors share: they count predictions, pass over missing ones, and refuse what is no period."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.seen_count = 0
        self.missing_count = 0

    def add(self, period_s: float | None) -> Change | None:
        """Take the next predicted period in seconds; return the change that it gives away, if any.

        None and NaN are missing predictions. Anything else that is not positive and finite is a ValueError.
        """
        period = math.nan if period_s is None else float(period_s)
        if period <= 0.0 or period == math.inf:
            raise ValueError(f"a period must be positive and finite, not {period}")
        index = self.seen_count
        self.seen_count += 1
        if math.isnan(period):
            self.missing_count += 1
            return None
        return self._judge(index, math.log2(period))

    @abstractmethod
    def _judge(self, index: int, value: float) -> Change | None: ...

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state in plain values, which JSON can hold."""
        counts = {"seen_count": self.seen_count, "missing_count": self.missing_count}
        return {"detector": self.name, **counts, **self._state()}

    @staticmethod
    def from_dict(state: Mapping[str, Any]) -> Detector:
        """Return the detector that `to_dict` told of."""
        one = detector(state["detector"])
        one.seen_count, one.missing_count = state["seen_count"], state["missing_count"]
        one._restore(state)
        return one

    @abstractmethod
    def _state(self) -> dict[str, Any]: ...

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None: ...


# ---- cumulative sums


@dataclass(slots=True)
class _Sum:
    """A sum that never falls below 0, and the first index that counts in it."""

    value: float = 0.0
    first_index: int = 0

    def add(self, index: int, step: float) -> None:
        if self.value <= 0.0:
            self.first_index = index
        self.value = max(0.0, self.value + step)


class Cusum(Detector):
    """Page's cumulative sum, two-sided (Biometrika 41, 1954, section 4, DOI 10.1093/biomet/41.1-2.100).

    S_n = max(0, S_(n-1) + z_n - k) and the same of -z_n, from S_0 = 0; a change as soon as one is h or more. The change
    point is the first value after the sum was last 0. Published for a level and a noise that are known.

    Scale-free: z_n = (x_n - m) / (s sqrt(1 + pi / 2c)) where m and s are median and noise of the c values before it
    since the last change, and the root is the error of m.
    """

    name = "cusum"
    #: k, in noise units: half the least shift that is sought, the usual choice, for a shift of one noise unit
    allowance: ClassVar[float] = 0.5
    #: h, in noise units (ours, from the measured rates): 5 is usual where level and noise are known, but here they are
    #: estimated from few values
    threshold: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._reference = _Reference()
        self._longer, self._shorter = _Sum(), _Sum()
        #: indices and values that count in a sum, the latest ones
        self._pending: list[tuple[int, float]] = []

    def _judge(self, index: int, value: float) -> Change | None:
        if not self._reference.is_ready:
            self._reference.add(value)
            return None
        deviation = self._deviation(value)
        self._longer.add(index, deviation - self.allowance)
        self._shorter.add(index, -deviation - self.allowance)
        self._remember(index, value)
        grown = max(self._longer, self._shorter, key=lambda one: one.value)
        if grown.value >= self.threshold:
            return self._changed(index, self._change_point(grown))
        self._reference.add(value)
        return None

    def _deviation(self, value: float) -> float:
        reference = self._reference
        return (value - reference.level) / (reference.noise * reference.level_error)

    def _remember(self, index: int, value: float) -> None:
        first = min((one.first_index for one in (self._longer, self._shorter) if one.value > 0), default=index + 1)
        kept = [pair for pair in (*self._pending, (index, value)) if pair[0] >= first]
        self._pending = kept[-_MOST_COUNT:]

    def _change_point(self, grown: _Sum) -> int:
        return grown.first_index

    def _changed(self, index: int, first_index: int) -> Change:
        since = [value for place, value in self._pending if place >= first_index]
        before = self._reference.level
        found = Change(first_index, index, _period_s(before), _period_s(median(since)), self._reference.noise)
        self._reference = _Reference(since)
        self._longer, self._shorter, self._pending = _Sum(), _Sum(), []
        return found

    def _state(self) -> dict[str, Any]:
        sums = {"longer": asdict(self._longer), "shorter": asdict(self._shorter)}
        pending = [list(pair) for pair in self._pending]
        return {"reference": list(self._reference.values), **sums, "pending": pending}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reference = _Reference(state["reference"])
        self._longer, self._shorter = _Sum(**state["longer"]), _Sum(**state["shorter"])
        self._pending = [(place, value) for place, value in state["pending"]]


class ClippedCusum(Cusum):
    """Page's cumulative sum of deviations that are clipped, so that no single value is a change (ours).

    As `Cusum`, but z_n counts as c at most and -c at least, with c - k < h: one prediction that is far off, as where a
    phase was missed, changes nothing. The change point t is the most likely one of the values in the sum, which
    maximizes (sum of x_i - m over i >= t)^2 / count, and leaves two values at least (Hinkley, Biometrika 57, 1970,
    DOI 10.1093/biomet/57.1.1, for a known level before the change).
    """

    name = "clipped_cusum"
    #: shifts of two noise units or more are sought
    allowance = 1.0
    threshold = 6.0
    #: a larger deviation counts as this one: with the allowance, one value adds 3 at most, so that it takes two
    largest_deviation: ClassVar[float] = 4.0

    def _deviation(self, value: float) -> float:
        return max(-self.largest_deviation, min(super()._deviation(value), self.largest_deviation))

    def _change_point(self, grown: _Sum) -> int:
        since = [(place, value - self._reference.level) for place, value in self._pending if place >= grown.first_index]
        sums = list(accumulate(deviation for _, deviation in reversed(since)))
        least = min(2, len(sums))
        strengths = [(total * total / count, count) for count, total in enumerate(sums, 1) if count >= least]
        return since[-max(strengths)[1]][0]


# ---- by name


_DETECTORS: dict[str, type[Detector]] = {kind.name: kind for kind in (ClippedCusum, Cusum)}
#: the detectors' names, the default first
DETECTOR_NAMES = tuple(_DETECTORS)
#: names of detectors of earlier versions, and the one to use instead
REPLACED_DETECTORS = {"page_hinkley": Cusum.name, "adwin": ClippedCusum.name}


def detector(name: str = ClippedCusum.name) -> Detector:
    """Return a new detector of that name. ValueError names the replacement of a detector of earlier versions."""
    if name in REPLACED_DETECTORS:
        raise ValueError(f"the detector {name} was removed: use {REPLACED_DETECTORS[name]}")
    if name not in _DETECTORS:
        raise ValueError(f"there is no detector {name}; there are {', '.join(DETECTOR_NAMES)}")
    return _DETECTORS[name]()
