"""Frequency intervals from evaluation after evaluation, and when the next burst is due, while the run goes on.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), DOI 10.1109/IPDPS57955.2024.00048, section
II-D: the dominant frequencies of successive evaluations are merged by DBSCAN; each cluster is an interval from its
lowest to its highest frequency, and its share of the evaluations is its probability.

The paper sets DBSCAN's eps "to the difference between the time windows", which are seconds, where the frequencies
are hertz. We take the reason that it gives, the windows' resolution: a frequency f that was found in a window of w
seconds stands for f - 1/(2w) to f + 1/(2w), and two evaluations are neighbours where these touch. So eps is the mean
of the two resolutions, pair by pair: one short window does not make neighbours of what long ones tell apart, as one
eps for all would. (An evaluation that is too coarse to tell two clusters apart, and touches both, still links them:
that is DBSCAN.) For windows of one length it is DBSCAN with eps = 1/w.

The next burst (`next_burst`) is ours: the paper predicts periods only.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from iosig.transforms.arrays import Ints, Reals

#: what is said of the next burst; see `NextBurst`
OUTCOMES = ("expected", "due", "overdue", "no_period", "no_bursts", "over")
#: with so many gaps their quantiles say all; with so many a trend can be told, if it is so many times its error
_FULL_COUNT, _LEAST_TREND, _SURE_TREND = 9, 5, 2.5
#: neighbouring frequencies of one window lie exactly one resolution apart: rounding must not part them
_ROUNDING = 1e-9
#: what a hit counts for after the next gap; hits and misses that are added to the last gaps; and as how many gaps their
#: share counts beside what came of intervals
_FADING, _PRIOR_HITS, _PRIOR_MISSES, _TRUST = 0.95, 0.3, 2.5, 3.0
#: what the share of hits is worth: intervals are made of the gaps that are counted, so it is too high in between (set
#: on planted runs with jitter, changes and drift)
_CALIBRATION = (0.08, 0.6)
#: whole numbers above it have no neighbours among floats
_MOST_PERIODS = 2.0**53


# ---- DBSCAN in one dimension


def clusters(position: Reals, eps: Reals, min_samples: int) -> Ints:
    """Return each point's cluster (n) by DBSCAN; -1 where it is noise.

    position, eps (n): points are neighbours where they are no further apart than the mean of their eps. A point with
    `min_samples` neighbours, itself among them, is a core point; cores that are neighbours share a cluster. Clusters
    are numbered by their first core in the order given, and a point that is no core joins the first of those that it
    touches, as in the original algorithm (Ester et al., KDD'96).

    Exact, in O(n log n): a point is the interval position ± eps / 2, and intervals on a line that touch one another
    are found by sorting.
    """
    half = eps * (0.5 * (1 + _ROUNDING))
    low, high = position - half, position + half
    touched = np.searchsorted(np.sort(low), high, "right") - np.searchsorted(np.sort(high), low, "left")
    found = np.full(len(position), -1, dtype=np.int64)
    cores = np.flatnonzero(touched >= min_samples)
    if not len(cores):
        return found
    cores = cores[np.argsort(low[cores], kind="stable")]
    reached = np.maximum.accumulate(high[cores])
    is_first = np.concatenate([[True], low[cores][1:] > reached[:-1]])
    starts = np.flatnonzero(is_first)
    number = np.argsort(np.argsort(np.minimum.reduceat(cores, starts)))
    found[cores] = number[np.cumsum(is_first) - 1]
    others = np.flatnonzero(touched < min_samples)
    left = np.searchsorted(np.maximum.reduceat(high[cores], starts), low[others], "left")
    right = np.searchsorted(low[cores][starts], high[others], "right")
    is_border = right > left
    pairs = np.stack([left[is_border], right[is_border]], axis=1).ravel()
    # the last pair may end behind the last cluster, where a number that is never the least stands
    padded = np.append(number, len(number))
    found[others[is_border]] = np.minimum.reduceat(padded, pairs)[::2] if len(pairs) else []
    return found


# ---- intervals


@dataclass(frozen=True, slots=True)
class IntervalParams:
    """How frequencies are merged.

    history_count: evaluations that are kept; the oldest go (section II-D: "it makes sense to discard the old data at
    some point"; the number is ours: a step in probability of less than half a percent). min_samples: evaluations
    that make a core of a cluster (ours, for the paper does not say: two; one frequency alone is no interval).
    resolution_ratio: eps as a share of the windows' resolution (ours: 1).
    """

    history_count: int = 256
    min_samples: int = 2
    resolution_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class PeriodRange:
    """A period with the range that it lies in: shortest <= typical <= longest [s]."""

    shortest_s: float
    typical_s: float
    longest_s: float

    def __post_init__(self) -> None:
        """Refuse what is no range of periods."""
        if not 0 < self.shortest_s <= self.typical_s <= self.longest_s < math.inf:
            raise ValueError("a range of periods is 0 < shortest <= typical <= longest, all of them finite")


@dataclass(frozen=True, slots=True)
class FrequencyIntervals:
    """What the last n evaluations say together, as k intervals by ascending frequency.

    low_hz, median_hz, high_hz (k): of the frequencies in each interval. evaluation_count (k): evaluations that found
    a frequency in it. probability (k): their share of all n, those included that found none. label (n): the interval
    of each evaluation, oldest first; -1 where it found no frequency, or one that is in none.
    """

    low_hz: Reals
    median_hz: Reals
    high_hz: Reals
    evaluation_count: Ints
    probability: Reals
    label: Ints

    @property
    def current(self) -> int | None:
        """The interval of the last evaluation; None where it has none."""
        return int(self.label[-1]) if len(self.label) and self.label[-1] >= 0 else None

    def periods(self, interval: int) -> PeriodRange:
        """Return an interval's periods."""
        low, median, high = (float(each[interval]) for each in (self.low_hz, self.median_hz, self.high_hz))
        return PeriodRange(1 / high, 1 / median, 1 / low)


def merged(frequency_hz: Reals, window_s: Reals, params: IntervalParams | None = None) -> FrequencyIntervals:
    """Merge the frequencies of successive evaluations (section II-D).

    frequency_hz (n): oldest first, NaN where an evaluation found none. window_s (n): how long each one's window was.
    """
    params = params or IntervalParams()
    found = np.flatnonzero(np.isfinite(frequency_hz))
    label = np.full(len(frequency_hz), -1, dtype=np.int64)
    label[found] = clusters(frequency_hz[found], params.resolution_ratio / window_s[found], params.min_samples)
    members = np.flatnonzero(label >= 0)
    members = members[np.lexsort((frequency_hz[members], label[members]))]
    values, owner = frequency_hz[members], label[members]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    counts = np.diff(np.append(starts, len(values)))
    low, high = values[starts], values[starts + counts - 1]
    lower, upper = values[starts + (counts - 1) // 2], values[starts + counts // 2]
    median = lower + (upper - lower) / 2
    order = np.lexsort((high, low))
    label[members] = np.argsort(order)[owner]
    chance = counts[order] / max(len(label), 1)
    return FrequencyIntervals(low[order], median[order], high[order], counts[order], chance, label)


class PredictionHistory:
    """The last evaluations of one subject: a new one costs as much as are kept, however many there were."""

    __slots__ = ("_frequency_hz", "_window_s", "params")

    def __init__(self, params: IntervalParams | None = None) -> None:
        """Start without evaluations."""
        self.params = params or IntervalParams()
        self._frequency_hz: deque[float | None] = deque(maxlen=self.params.history_count)
        self._window_s: deque[float] = deque(maxlen=self.params.history_count)

    def __len__(self) -> int:
        """Return the number of evaluations that are kept."""
        return len(self._window_s)

    def add(self, frequency_hz: float | None, window_s: float) -> FrequencyIntervals:
        """Take an evaluation and return what all that are kept say together.

        frequency_hz: None where it found no period. window_s: the length of the time that it judged.
        """
        if frequency_hz is not None and not _is_invertible(frequency_hz):
            raise ValueError("a frequency is a finite number above 0 [Hz], or None")
        if not _is_invertible(window_s):
            raise ValueError("a window's length is a finite number above 0 [s]")
        self._frequency_hz.append(None if frequency_hz is None else float(frequency_hz))
        self._window_s.append(float(window_s))
        return self.intervals()

    def intervals(self) -> FrequencyIntervals:
        """Return what the evaluations that are kept say together."""
        frequency = np.array([math.nan if each is None else each for each in self._frequency_hz], dtype=np.float64)
        return merged(frequency, np.array(self._window_s, dtype=np.float64), self.params)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain values, fit for JSON."""
        return {
            "params": asdict(self.params),
            "frequency_hz": list(self._frequency_hz),
            "window_s": list(self._window_s),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> PredictionHistory:
        """Return the history that `to_dict` wrote."""
        found = cls(IntervalParams(**state["params"]))
        found._frequency_hz.extend(state["frequency_hz"])
        found._window_s.extend(state["window_s"])
        return found


# ---- the next burst


@dataclass(frozen=True, slots=True)
class NextBurstParams:
    """How the next burst is foreseen; all ours.

    burst_count: the last bursts that count. tail_ratio: how probable it is that the next burst lies below a range, and
    how probable above. With the nine gaps of ten bursts, their lowest and highest leave a tenth on either side; fewer
    cannot say as much, and give their lowest and highest.
    """

    burst_count: int = 10
    tail_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class NextBurst:
    """The next burst: when it starts and what it moves, each with a range. No time lies before now.

    outcome: `expected`, it is not due yet; `due`, now lies within its range; `overdue`, its range has passed: it may
    start at any moment, and is expected when the first period ends from now on; `no_period`, `no_bursts`: nothing to
    tell its time by, which is NaN then; `over`: the run is, and none comes. overdue_s: for how long; 0 unless overdue.
    missed_count: periods that passed without a burst. Volumes are NaN where none is known.
    """

    outcome: str
    earliest_start_s: float
    start_s: float
    latest_start_s: float
    overdue_s: float
    missed_count: int
    low_volume_bytes: float
    volume_bytes: float
    high_volume_bytes: float

    @classmethod
    def of_ended_run(cls) -> NextBurst:
        """Return what is to come of a run that is over: nothing."""
        none = math.nan
        return cls("over", none, none, none, 0.0, 0, none, none, none)


def next_burst(
    started_s: Reals,
    volume_bytes: Reals,
    periods: PeriodRange | None,
    now_s: float,
    params: NextBurstParams | None = None,
) -> NextBurst:
    """Return when the next burst is due and what it will move, as the last bursts and the period tell.

    started_s, volume_bytes (b): bursts by ascending start, none of them after now; a volume that is not finite is not
    known. periods: of the current interval (`FrequencyIntervals.periods`), None where there is none.

    A burst follows the one before by a period, plus the median by which phases moved from burst to burst; a delay
    thus moves all that follow, as where a program computes for so long between its writes. The range adds the tails of
    these moves to the interval's shortest and longest period; to its typical one where all `burst_count` bursts are
    there, whose tails then say it all (measured: 78 % of bursts come within, 89 % with both). Of fewer the range is as
    wide as that of so many normal ones (Student's t), and where moves have a trend they go on with it. Volumes are the
    last bursts' quantiles.
    """
    params = params or NextBurstParams()
    _check_bursts(started_s, volume_bytes, now_s)
    starts, known = started_s[-params.burst_count :], volume_bytes[-params.burst_count :]
    known = known[np.isfinite(known)]
    ranks = [params.tail_ratio, 0.5, 1 - params.tail_ratio]
    volumes = _next_quantiles(known, ranks) if len(known) else [math.nan] * 3
    low_bytes, typical_bytes, high_bytes = volumes
    if periods is None or not len(starts):
        outcome = "no_bursts" if not len(starts) else "no_period"
        none = math.nan
        return NextBurst(outcome, none, none, none, 0.0, 0, low_bytes, typical_bytes, high_bytes)
    earlier, usual, later = _phase_moves(starts, periods.typical_s, ranks)
    last = float(starts[-1])
    is_full = len(starts) == params.burst_count
    shortest_s, longest_s = (periods.typical_s,) * 2 if is_full else (periods.shortest_s, periods.longest_s)
    latest = last + longest_s + max(later, 0.0)
    overdue = max(now_s - latest, 0.0)
    if overdue:
        passed = min((now_s - last - usual) / periods.typical_s, _MOST_PERIODS)
        ahead = max(math.ceil(passed), 2)
        earliest, latest = now_s, last + ahead * longest_s + max(later, 0.0)
    else:
        ahead, earliest = 1, last + shortest_s + min(earlier, 0.0)
    outcome = "overdue" if overdue else "due" if now_s >= earliest else "expected"
    start = max(last + ahead * periods.typical_s + usual, now_s)
    return NextBurst(
        outcome,
        max(earliest, now_s),
        start,
        max(latest, start),
        overdue,
        ahead - 1,
        low_bytes,
        typical_bytes,
        high_bytes,
    )


def _next_quantiles(values: Reals, ranks: list[float]) -> list[float]:
    """Return below what the next value of the same kind lies with the probabilities given.

    The next of n + 1 values that come in any order is as often the lowest as any other: the k-th of n has k / (n + 1)
    below it (Weibull's plotting positions), where NumPy's default quantiles of a few values are too narrow.
    """
    found: list[float] = np.quantile(values, ranks, method="weibull").tolist()
    return found


def _phase_moves(started_s: Reals, period_s: float, ranks: list[float]) -> tuple[float, float, float]:
    """Return quantiles of how far each burst lies from a whole number of periods after the one before [s]."""
    gaps = np.diff(started_s)
    if not len(gaps):
        return 0.0, 0.0, 0.0
    moves = gaps - np.round(gaps / period_s) * period_s
    trend = _trend(moves)
    ahead = float(trend[-1] + (trend[-1] - trend[-2])) if len(moves) > 1 else 0.0
    left = moves - trend
    low, median, high = _next_quantiles(left, ranks)
    if 1 < len(left) < _FULL_COUNT and ranks[-1] < 1.0:
        # of few the lowest and the highest are too near: a normal one comes so far from their mean
        mean, spread = float(left.mean()), float(left.std(ddof=1))
        half = float(stdtrit(len(left) - 1, ranks[-1])) * spread * math.sqrt(1 + 1 / len(left))
        low, high = min(low, mean - half), max(high, mean + half)
    return low + ahead, median + ahead, high + ahead


def _trend(moves: Reals) -> Reals:
    """Return the straight line through moves (n); 0 where none can be told from chance."""
    count = len(moves)
    if count < _LEAST_TREND:
        return np.zeros(count)
    place = np.arange(count) - (count - 1) / 2
    slope = float(place @ moves / (place @ place))
    line = slope * place + moves.mean()
    error = math.sqrt(float(np.square(moves - line).sum()) / (count - 2) / float(place @ place))
    return line if abs(slope) > _SURE_TREND * error else np.zeros(count)


def _check_bursts(started_s: Reals, volume_bytes: Reals, now_s: float) -> None:
    if len(started_s) != len(volume_bytes):
        raise ValueError("every burst has a start and a volume")
    if not (np.isfinite(started_s).all() and (np.diff(started_s) >= 0).all()):
        raise ValueError("bursts come by ascending start, and every start is finite")
    if not math.isfinite(now_s) or (len(started_s) and started_s[-1] > now_s):
        raise ValueError("now is a finite time, and no burst starts after it")


def _is_invertible(value: float) -> bool:
    """Return whether a value and its inverse are finite numbers above 0."""
    return 0 < value < math.inf and 1.0 / value < math.inf


# ---- how often an interval holds


@dataclass(slots=True)
class HitRecord:
    """How often the intervals that were told held the next gap: late ones count more than early ones.

    hits, count: of gaps that came since, weighted. pending: the interval that waits for its gap [s], if any.
    """

    hits: float = 0.0
    count: float = 0.0
    pending: tuple[float, float] | None = None

    def come(self, gaps_s: Sequence[float]) -> None:
        """Take gaps that have come: the first one is what the last interval was about."""
        if self.pending is None or not gaps_s:
            return
        shortest_s, longest_s = self.pending
        self.hits = _FADING * self.hits + (shortest_s <= gaps_s[0] <= longest_s)
        self.count = _FADING * self.count + 1.0
        self.pending = None

    def probability(self, periods: PeriodRange, gaps_s: Sequence[float]) -> float:
        """Return how probable it is that the next gap lies in an interval, and wait for it.

        gaps_s: the last ones of the present behaviour. What came of earlier intervals is trusted the more, the more of
        them there were; before that, it is the share of these gaps.
        """
        inside = sum(periods.shortest_s <= gap <= periods.longest_s for gap in gaps_s)
        expected = (inside + _PRIOR_HITS) / (len(gaps_s) + _PRIOR_HITS + _PRIOR_MISSES)
        self.pending = (periods.shortest_s, periods.longest_s)
        found = (self.hits + _TRUST * expected) / (self.count + _TRUST)
        return _CALIBRATION[0] + _CALIBRATION[1] * found + (1.0 - sum(_CALIBRATION)) * found**6

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain values, fit for JSON."""
        return {"hits": self.hits, "count": self.count, "pending": None if self.pending is None else [*self.pending]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> HitRecord:
        """Return the record that `to_dict` wrote."""
        pending = state["pending"]
        return cls(state["hits"], state["count"], None if pending is None else (pending[0], pending[1]))
