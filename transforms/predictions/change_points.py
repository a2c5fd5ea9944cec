"""Changes in a sequence of periods, found while they are predicted, at any scale alike.

All detectors work on x = log2(period_s), in octaves: a doubling is +1 and a halving is -1 at 0.005 Hz as at 10 Hz, and
a frequency's change is its period's with the other sign. None has a threshold in hertz or seconds. Three are as
published, but for what makes them scale-free; one is ours:

- `Cusum`: the two-sided cumulative sum (Page, Biometrika 1954, DOI 10.1093/biomet/41.1-2.100).
- `PageHinkley`: the same of deviations from the running mean (Hinkley 1971, DOI 10.1093/biomet/58.3.509).
- `Adwin`: a window that is cut where its parts' means differ (Bifet and Gavalda 2007, DOI 10.1137/1.9781611972771.42).
- `ClippedCusum`: `Cusum` that no single value can set off, and that tells the most likely change point. The default.

With up to 10 % noise, all but `Adwin` find 99 % of doublings and halvings within three predictions after 20 steady
ones, and a change in less than 2 % of runs of 40 without any; `Adwin` takes about 12 predictions.

Each takes one prediction at a time, `add(period_s)`, and returns a `Change` or None. After a change the state begins
anew with the values since the change point. The noise is estimated from the values since the last change;
errors that are alike from one prediction to the next pass for changes more often. A prediction that is missing (None
or NaN) is counted and changes nothing else. `to_dict` gives a detector's whole state in plain values that JSON can
hold, `Detector.from_dict` the same detector from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
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


class _Cumulative(Detector):
    """Two sums of deviations in noise units, one for longer and one for shorter periods.

    allowance: what a deviation has to exceed to count. threshold: the sum at which there is a change. Both are in noise
    units, and the thresholds are ours, from the measured rates.
    """

    allowance: ClassVar[float]
    threshold: ClassVar[float]

    def __init__(self) -> None:
        super().__init__()
        self._reference = _Reference()
        self._longer, self._shorter = _Sum(), _Sum()
        #: indices and values that count in a sum, the latest ones
        self._pending: list[tuple[int, float]] = []

    def _judge(self, index: int, value: float) -> Change | None:
        if not self._reference.is_ready:
            self._learn(value)
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

    def _learn(self, value: float) -> None:
        self._reference.add(value)

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
        self._reference = _Reference()
        self._longer, self._shorter, self._pending = _Sum(), _Sum(), []
        for value in since:
            self._learn(value)
        return found

    def _state(self) -> dict[str, Any]:
        sums = {"longer": asdict(self._longer), "shorter": asdict(self._shorter)}
        pending = [list(pair) for pair in self._pending]
        return {"reference": list(self._reference.values), **sums, "pending": pending}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reference = _Reference(state["reference"])
        self._longer, self._shorter = _Sum(**state["longer"]), _Sum(**state["shorter"])
        self._pending = [(place, value) for place, value in state["pending"]]


class Cusum(_Cumulative):
    """Page's cumulative sum, two-sided (Biometrika 41, 1954, section 4, DOI 10.1093/biomet/41.1-2.100).

    S_n = max(0, S_(n-1) + z_n - k) and the same of -z_n, from S_0 = 0; a change as soon as one is h or more. The change
    point is the first value after the sum was last 0. Published for a level and a noise that are known.

    Scale-free: z_n = (x_n - m) / (s sqrt(1 + pi / 2c)) where m and s are median and noise of the c values before it
    since the last change, and the root is the error of m.
    """

    name = "cusum"
    #: half the least shift that is sought, the usual choice: a shift of one noise unit
    allowance = 0.5
    #: 5 is usual where level and noise are known, but here they are estimated from few values
    threshold = 10.0


class ClippedCusum(_Cumulative):
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


class PageHinkley(_Cumulative):
    """The Page-Hinkley test, two-sided (Page 1954; Hinkley, Biometrika 58, 1971, DOI 10.1093/biomet/58.3.509).

    m_T = sum over t <= T of (x_t - mean_t - delta), mean_t the mean of x_1 to x_t, and M_T = min of m_t over t <= T; a
    change as soon as m_T - M_T > lambda, and the same of -x_t. The change point is the value after the one of M_T.
    m_T - M_T is kept as one sum that never falls below 0, which is the same and does not lose digits.

    Scale-free: deviations from the mean are in noise units, and m_T begins when the noise is known. mean_t is of all
    values since the last change.
    """

    name = "page_hinkley"
    #: delta of the test, half the least shift that is sought
    allowance = 0.5
    #: lambda; the test is strict where Page's is not
    threshold = math.nextafter(9.0, math.inf)

    def __init__(self) -> None:
        super().__init__()
        self._count, self._mean = 0, 0.0

    def _average(self, value: float) -> None:
        self._count += 1
        self._mean += (value - self._mean) / self._count

    def _learn(self, value: float) -> None:
        self._average(value)
        super()._learn(value)

    def _deviation(self, value: float) -> float:
        self._average(value)
        return (value - self._mean) / self._reference.noise

    def _changed(self, index: int, first_index: int) -> Change:
        self._count, self._mean = 0, 0.0
        return super()._changed(index, first_index)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "count": self._count, "mean": self._mean}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._count, self._mean = state["count"], state["mean"]


# ---- adaptive windows


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Neighbouring values: how many, the first one's index, their mean, their sum of squared deviations from it."""

    count: int
    first_index: int
    mean: float
    square_sum: float

    def joined(self, later: _Bucket) -> _Bucket:
        count, difference = self.count + later.count, later.mean - self.mean
        mean = self.mean + difference * later.count / count
        squares = self.square_sum + later.square_sum + difference * difference * self.count * later.count / count
        return _Bucket(count, self.first_index, mean, squares)


class _Window:
    """ADWIN's exponential histogram: at most `most` buckets of 1 value, of 2, of 4; memory of O(log n)."""

    def __init__(self, most: int) -> None:
        self._most = most
        #: buckets of 2^row values, oldest first
        self.rows: list[list[_Bucket]] = [[]]

    def add(self, index: int, value: float) -> None:
        self.rows[0].append(_Bucket(1, index, value, 0.0))
        for row, buckets in enumerate(self.rows):
            if len(buckets) <= self._most:
                break
            oldest = buckets.pop(0).joined(buckets.pop(0))
            if row + 1 == len(self.rows):
                self.rows.append([])
            self.rows[row + 1].append(oldest)

    def buckets(self) -> list[_Bucket]:
        """Return all buckets, oldest first."""
        return [bucket for buckets in reversed(self.rows) for bucket in buckets]

    def splits(self) -> Iterator[tuple[_Bucket, _Bucket]]:
        """Yield the window's two parts for every cut between buckets, the oldest cut first."""
        buckets = self.buckets()
        later = list(accumulate(reversed(buckets), lambda newer, older: older.joined(newer)))
        yield from zip(accumulate(buckets, _Bucket.joined), reversed(later[:-1]), strict=False)

    def drop_before(self, index: int) -> None:
        self.rows = [[bucket for bucket in buckets if bucket.first_index >= index] for buckets in self.rows]
        while len(self.rows) > 1 and not self.rows[-1]:
            self.rows.pop()

    def state(self) -> list[list[list[float]]]:
        return [[[one.count, one.first_index, one.mean, one.square_sum] for one in row] for row in self.rows]

    def restore(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows = [[_Bucket(*one) for one in row] for row in rows]


class Adwin(Detector):
    """ADWIN2 (Bifet and Gavalda, SDM 2007, sections 3 and 4, DOI 10.1137/1.9781611972771.42).

    Of the window W of n values the oldest bucket is dropped as long as there is any cut of W in W0 and W1 with

    |mean(W0) - mean(W1)| >= sqrt(2/m var(W) ln(2/d)) + 2/(3m) ln(2/d), 1/m = 1/n0 + 1/n1, d = delta / ln n.

    Published for values in [0, 1]. Scale-free: values are in octaves, one octave being the published range. It asks
    for many values: with delta 0.05 and three in W1 the last term alone exceeds an octave. Buckets go one by one, as
    long as cuts hold: one change of the period may be told several times, its change point moving on.
    """

    name = "adwin"
    #: the confidence is 1 - delta: the usual level, for the paper leaves it to the user
    delta: ClassVar[float] = 0.05
    #: M, so many buckets of each size, as in the authors' own program
    most_buckets: ClassVar[int] = 5

    def __init__(self) -> None:
        super().__init__()
        self._window = _Window(self.most_buckets)

    def _judge(self, index: int, value: float) -> Change | None:
        self._window.add(index, value)
        dropped: _Bucket | None = None
        noise = 0.0
        while (spread := self._spread_where_cut()) is not None:
            oldest, following = self._window.buckets()[:2]
            noise = noise if dropped else spread
            dropped = dropped.joined(oldest) if dropped else oldest
            self._window.drop_before(following.first_index)
        if dropped is None:
            return None
        kept = list(accumulate(self._window.buckets(), _Bucket.joined))[-1]
        return Change(kept.first_index, index, _period_s(dropped.mean), _period_s(kept.mean), noise)

    def _spread_where_cut(self) -> float | None:
        """Return the window's standard deviation if it is to be cut somewhere."""
        splits = list(self._window.splits())
        if not splits:
            return None
        whole = splits[0][0].joined(splits[0][1])
        variance, confidence = whole.square_sum / whole.count, math.log(2.0 * math.log(whole.count) / self.delta)
        for older, newer in splits:
            inverse = 1.0 / older.count + 1.0 / newer.count
            bound = math.sqrt(2.0 * inverse * variance * confidence) + 2.0 / 3.0 * inverse * confidence
            if abs(older.mean - newer.mean) >= bound:
                return math.sqrt(variance)
        return None

    def _state(self) -> dict[str, Any]:
        return {"window": self._window.state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._window.restore(state["window"])


# ---- by name


_DETECTORS: dict[str, type[Detector]] = {kind.name: kind for kind in (ClippedCusum, Cusum, PageHinkley, Adwin)}
#: the detectors' names, the default first
DETECTOR_NAMES = tuple(_DETECTORS)


def detector(name: str = ClippedCusum.name) -> Detector:
    """Return a new detector of that name."""
    if name not in _DETECTORS:
        raise ValueError(f"there is no detector {name}; there are {', '.join(DETECTOR_NAMES)}")
    return _DETECTORS[name]()
