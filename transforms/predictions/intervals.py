"""Merge the frequencies of successive evaluations to intervals, and predict the next burst of a running application.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), DOI 10.1109/IPDPS57955.2024.00048, section
II-D: the dominant frequencies of successive evaluations are merged by DBSCAN. Each cluster is an interval from its
lowest to its highest frequency; its probability is its fraction of the evaluations.

The paper sets DBSCAN's eps "to the difference between the time windows", which is in seconds, whereas frequencies are
in hertz. This implementation follows the reason given there, the resolution of the windows: a frequency f from a window
of w seconds stands for f - 1/(2w) to f + 1/(2w), and two evaluations are neighbors if these intervals touch. Thus eps
is the mean of both resolutions, pair by pair, and a short window does not merge what long windows separate. (An
evaluation that is too coarse to separate two clusters, and touches both, still links them, as in DBSCAN.) For windows
of equal length this is DBSCAN with eps = 1/w.

The paper predicts periods only; `predict_next_burst` extends it.
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

#: outcomes of `NextBurst`
OUTCOMES = ("expected", "due", "overdue", "no_period", "no_bursts", "ended")
#: minimum number of gaps for a range from their quantiles alone
_FULL_COUNT = 9
#: minimum number of gaps for a trend, and its minimum slope in standard errors
_MIN_TREND_COUNT, _MIN_TREND_ERRORS = 5, 2.5
#: relative tolerance of eps: adjacent frequencies of one window are exactly one resolution apart
_ROUNDING = 1e-9
#: factor by which the weight of a hit decays per gap
_DECAY = 0.95
#: pseudo-counts of hits and misses among the last gaps
_PRIOR_HITS, _PRIOR_MISSES = 0.3, 2.5
#: weight of the last gaps relative to recorded hits, in gaps
_PRIOR_WEIGHT = 3.0
#: coefficients of the calibration of a hit ratio, which is biased since intervals derive from the same gaps; fitted on
#: simulated runs with jitter, changes and drift
_CALIBRATION = (0.08, 0.6)
#: maximum number of periods ahead: all integers up to this float are exact
_MAX_PERIODS = 2.0**53


# ---- DBSCAN in one dimension


def cluster_dbscan(position: Reals, eps: Reals, min_samples: int) -> Ints:
    """Cluster points on a line by DBSCAN with an eps per point, exactly and in O(n log n).

    Parameters
    ----------
    position, eps : Reals, shape (n,)
        Positions, and eps of each point: two points are neighbors if their distance does not exceed the mean of their
        eps.
    min_samples : int
        Minimum number of neighbors of a core point, including itself.

    Returns
    -------
    Ints, shape (n,)
        Cluster of each point, numbered by first core; -1 for noise. A border point joins the first cluster that it
        touches.

    Notes
    -----
    Each point is treated as the interval position ± eps / 2. Touching intervals are found by sorting.

    References
    ----------
    Ester et al., "A density-based algorithm for discovering clusters", KDD'96.

    """
    half = eps * (0.5 * (1 + _ROUNDING))
    low, high = position - half, position + half
    neighbor_count = np.searchsorted(np.sort(low), high, "right") - np.searchsorted(np.sort(high), low, "left")
    label = np.full(len(position), -1, dtype=np.int64)
    cores = np.flatnonzero(neighbor_count >= min_samples)
    if not len(cores):
        return label
    cores = cores[np.argsort(low[cores], kind="stable")]
    furthest = np.maximum.accumulate(high[cores])
    is_first = np.concatenate([[True], low[cores][1:] > furthest[:-1]])
    starts = np.flatnonzero(is_first)
    number = np.argsort(np.argsort(np.minimum.reduceat(cores, starts)))
    label[cores] = number[np.cumsum(is_first) - 1]
    others = np.flatnonzero(neighbor_count < min_samples)
    left = np.searchsorted(np.maximum.reduceat(high[cores], starts), low[others], "left")
    right = np.searchsorted(low[cores][starts], high[others], "right")
    is_border = right > left
    pairs = np.stack([left[is_border], right[is_border]], axis=1).ravel()
    # the last pair may end after the last cluster: pad with a number that is never the minimum
    padded = np.append(number, len(number))
    label[others[is_border]] = np.minimum.reduceat(padded, pairs)[::2] if len(pairs) else []
    return label


# ---- intervals


@dataclass(frozen=True, slots=True)
class IntervalParams:
    """History length and DBSCAN parameters of the merging. The field names are part of the saved state."""

    #: evaluations kept (section II-D: "it makes sense to discard the old data at some point"); with 256, one
    #: evaluation changes a probability by less than 0.5 %
    history_count: int = 256
    #: minimum number of evaluations around a core point; the paper gives no number, and one frequency alone is no
    #: interval
    min_samples: int = 2
    #: eps as a fraction of the resolution of the windows
    resolution_ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class PeriodRange:
    """A typical period with its range: shortest <= typical <= longest [s]."""

    shortest_s: float
    typical_s: float
    longest_s: float

    def __post_init__(self) -> None:
        """Raise ValueError unless the periods are positive, finite and in ascending order."""
        if not 0 < self.shortest_s <= self.typical_s <= self.longest_s < math.inf:
            raise ValueError("a range of periods requires 0 < shortest <= typical <= longest, all finite")


@dataclass(frozen=True, slots=True)
class FrequencyIntervals:
    """Intervals of the last n evaluations, by ascending frequency.

    Attributes
    ----------
    low_hz, median_hz, high_hz : Reals, shape (k,)
        Range and median of the frequencies in each interval.
    evaluation_count : Ints, shape (k,)
        Number of evaluations with a frequency in the interval.
    probability : Reals, shape (k,)
        Fraction of all n evaluations that have a frequency in the interval.
    label : Ints, shape (n,)
        Interval of each evaluation, oldest first; -1 for none.

    """

    low_hz: Reals
    median_hz: Reals
    high_hz: Reals
    evaluation_count: Ints
    probability: Reals
    label: Ints

    @property
    def current(self) -> int | None:
        """Number of the interval of the last evaluation, if any."""
        return int(self.label[-1]) if len(self.label) and self.label[-1] >= 0 else None

    def periods(self, interval: int) -> PeriodRange:
        """Convert an interval to a range of periods."""
        low, median, high = (float(values[interval]) for values in (self.low_hz, self.median_hz, self.high_hz))
        return PeriodRange(1 / high, 1 / median, 1 / low)


def merge_frequencies(frequency_hz: Reals, window_s: Reals, params: IntervalParams | None = None) -> FrequencyIntervals:
    """Merge the frequencies of successive evaluations (FTIO, section II-D).

    Parameters
    ----------
    frequency_hz : Reals, shape (n,)
        Frequencies, oldest first; NaN for none.
    window_s : Reals, shape (n,)
        Length of each evaluation's window [s].
    params : IntervalParams, optional
        Parameters.

    Returns
    -------
    FrequencyIntervals

    """
    params = params or IntervalParams()
    known = np.flatnonzero(np.isfinite(frequency_hz))
    label = np.full(len(frequency_hz), -1, dtype=np.int64)
    label[known] = cluster_dbscan(frequency_hz[known], params.resolution_ratio / window_s[known], params.min_samples)
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
    probability = counts[order] / max(len(label), 1)
    return FrequencyIntervals(low[order], median[order], high[order], counts[order], probability, label)


class PredictionHistory:
    """Sliding window of the last evaluations of one subject, with bounded memory."""

    __slots__ = ("_frequency_hz", "_window_s", "params")

    def __init__(self, params: IntervalParams | None = None) -> None:
        """Start with an empty history."""
        self.params = params or IntervalParams()
        self._frequency_hz: deque[float | None] = deque(maxlen=self.params.history_count)
        self._window_s: deque[float] = deque(maxlen=self.params.history_count)

    def __len__(self) -> int:
        """Return the number of evaluations kept."""
        return len(self._window_s)

    def add(self, frequency_hz: float | None, window_s: float) -> FrequencyIntervals:
        """Add an evaluation and merge all that are kept.

        Parameters
        ----------
        frequency_hz : float or None
            Frequency; None if the evaluation found no period.
        window_s : float
            Length of its window [s].

        Returns
        -------
        FrequencyIntervals

        """
        if frequency_hz is not None and not _is_invertible(frequency_hz):
            raise ValueError("a frequency must be a finite number above 0 [Hz], or None")
        if not _is_invertible(window_s):
            raise ValueError("the length of a window must be a finite number above 0 [s]")
        self._frequency_hz.append(None if frequency_hz is None else float(frequency_hz))
        self._window_s.append(float(window_s))
        return self.intervals()

    def intervals(self) -> FrequencyIntervals:
        """Merge the evaluations kept."""
        frequency = np.array([math.nan if value is None else value for value in self._frequency_hz], dtype=np.float64)
        return merge_frequencies(frequency, np.array(self._window_s, dtype=np.float64), self.params)

    def to_dict(self) -> dict[str, Any]:
        """Export the complete state as JSON values."""
        return {
            "params": asdict(self.params),
            "frequency_hz": list(self._frequency_hz),
            "window_s": list(self._window_s),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> PredictionHistory:
        """Restore a history from `to_dict`."""
        history = cls(IntervalParams(**state["params"]))
        history._frequency_hz.extend(state["frequency_hz"])
        history._window_s.extend(state["window_s"])
        return history


# ---- the next burst


@dataclass(frozen=True, slots=True)
class NextBurstParams:
    """Parameters of the prediction of the next burst."""

    #: number of recent bursts used
    burst_count: int = 10
    #: probability that the next burst lies before its range, and after it; the extremes of nine gaps leave 0.1 on each
    #: side
    tail_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class NextBurst:
    """Start and volume of the next burst, with ranges; no time lies in the past.

    Attributes
    ----------
    outcome : str
        `expected` (not due yet), `due` (now is within the range), `overdue` (the range has passed; the start is
        expected at the end of the next period), `no_period` or `no_bursts` (times are NaN), or `ended` (the run has
        ended).
    earliest_start_s, start_s, latest_start_s : float
        Start and its range [s].
    overdue_s : float
        Time since the range has passed [s]; 0 unless overdue.
    missed_count : int
        Number of periods that passed without a burst.
    low_volume_bytes, volume_bytes, high_volume_bytes : float
        Volume and its range; NaN if unknown.

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
    def for_ended_run(cls) -> NextBurst:
        """Create the outcome `ended`, with NaN for all times and volumes."""
        nan = math.nan
        return cls("ended", nan, nan, nan, 0.0, 0, nan, nan, nan)


def predict_next_burst(
    start_s: Reals,
    volume_bytes: Reals,
    periods: PeriodRange | None,
    now_s: float,
    params: NextBurstParams | None = None,
) -> NextBurst:
    """Predict the next burst from the last bursts and the period.

    Parameters
    ----------
    start_s, volume_bytes : Reals, shape (b,)
        Bursts by ascending start, none after now; a volume that is not finite is unknown.
    periods : PeriodRange or None
        Periods of the current interval (`FrequencyIntervals.periods`).
    now_s : float
        Current time [s].
    params : NextBurstParams, optional
        Parameters.

    Returns
    -------
    NextBurst

    Raises
    ------
    ValueError
        If bursts are not sorted or not finite, or begin after now.

    Notes
    -----
    The next burst follows the previous one after a period plus the median phase shift between bursts, extrapolated if
    the shifts have a trend. A delay therefore shifts all later bursts, as in a program with constant computation
    between writes. If `burst_count` bursts are known, the range adds the tails of the shifts to the typical period; 78
    % of bursts were within such a range. Otherwise it adds them to the shortest and the longest period (89 %), and is
    widened by Student's t. Volumes are quantiles of the last bursts.

    """
    params = params or NextBurstParams()
    _check_bursts(start_s, volume_bytes, now_s)
    starts, known = start_s[-params.burst_count :], volume_bytes[-params.burst_count :]
    known = known[np.isfinite(known)]
    ranks = [params.tail_ratio, 0.5, 1 - params.tail_ratio]
    volumes = _predictive_quantiles(known, ranks) if len(known) else [math.nan] * 3
    low_bytes, typical_bytes, high_bytes = volumes
    if periods is None or not len(starts):
        outcome = "no_bursts" if not len(starts) else "no_period"
        nan = math.nan
        return NextBurst(outcome, nan, nan, nan, 0.0, 0, low_bytes, typical_bytes, high_bytes)
    early, median, late = _phase_shifts(starts, periods.typical_s, ranks)
    last = float(starts[-1])
    is_full = len(starts) == params.burst_count
    shortest_s, longest_s = (periods.typical_s,) * 2 if is_full else (periods.shortest_s, periods.longest_s)
    latest = last + longest_s + max(late, 0.0)
    overdue = max(now_s - latest, 0.0)
    if overdue:
        passed = min((now_s - last - median) / periods.typical_s, _MAX_PERIODS)
        ahead = max(math.ceil(passed), 2)
        earliest, latest = now_s, last + ahead * longest_s + max(late, 0.0)
    else:
        ahead, earliest = 1, last + shortest_s + min(early, 0.0)
    outcome = "overdue" if overdue else "due" if now_s >= earliest else "expected"
    start = max(last + ahead * periods.typical_s + median, now_s)
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


def _predictive_quantiles(values: Reals, ranks: list[float]) -> list[float]:
    """Quantiles of the predictive distribution of the next value (exchangeable values).

    The next value lies below the k-th of n values with a probability of k / (n + 1) (Weibull's plotting positions).
    NumPy's default quantiles of a few values are too narrow.
    """
    quantiles: list[float] = np.quantile(values, ranks, method="weibull").tolist()
    return quantiles


def _phase_shifts(start_s: Reals, period_s: float, ranks: list[float]) -> tuple[float, float, float]:
    """Compute quantiles of the difference between gaps and the nearest multiples of the period [s]."""
    gaps = np.diff(start_s)
    if not len(gaps):
        return 0.0, 0.0, 0.0
    shifts = gaps - np.round(gaps / period_s) * period_s
    trend = _fit_trend(shifts)
    ahead = float(trend[-1] + (trend[-1] - trend[-2])) if len(shifts) > 1 else 0.0
    residual = shifts - trend
    low, median, high = _predictive_quantiles(residual, ranks)
    if 1 < len(residual) < _FULL_COUNT and ranks[-1] < 1.0:
        # extremes of few gaps are too narrow: use the prediction interval of a normal distribution
        mean, spread = float(residual.mean()), float(residual.std(ddof=1))
        half = float(stdtrit(len(residual) - 1, ranks[-1])) * spread * math.sqrt(1 + 1 / len(residual))
        low, high = min(low, mean - half), max(high, mean + half)
    return low + ahead, median + ahead, high + ahead


def _fit_trend(shifts: Reals) -> Reals:
    """Fit a line to the shifts; return 0 if the slope is not significant."""
    count = len(shifts)
    if count < _MIN_TREND_COUNT:
        return np.zeros(count)
    x = np.arange(count) - (count - 1) / 2
    slope = float(x @ shifts / (x @ x))
    line = slope * x + shifts.mean()
    error = math.sqrt(float(np.square(shifts - line).sum()) / (count - 2) / float(x @ x))
    return line if abs(slope) > _MIN_TREND_ERRORS * error else np.zeros(count)


def _check_bursts(start_s: Reals, volume_bytes: Reals, now_s: float) -> None:
    if len(start_s) != len(volume_bytes):
        raise ValueError("bursts must have equal numbers of starts and volumes")
    if not (np.isfinite(start_s).all() and (np.diff(start_s) >= 0).all()):
        raise ValueError("starts of bursts must be finite and must not decrease")
    if not math.isfinite(now_s) or (len(start_s) and start_s[-1] > now_s):
        raise ValueError("now must be finite, and no burst may start after it")


def _is_invertible(value: float) -> bool:
    """Whether a value and its inverse are finite and positive."""
    return 0 < value < math.inf and 1.0 / value < math.inf


# ---- calibration of intervals


@dataclass(slots=True)
class HitRecord:
    """Record of how often predicted intervals contained the next gap; weights decay exponentially.

    Attributes
    ----------
    hits, count : float
        Weighted number of hits, and of all gaps.
    pending : (float, float) or None
        Predicted interval for the next gap [s].

    """

    hits: float = 0.0
    count: float = 0.0
    pending: tuple[float, float] | None = None

    def update(self, gaps_s: Sequence[float]) -> None:
        """Score the pending interval with the first of the new gaps [s]."""
        if self.pending is None or not gaps_s:
            return
        shortest_s, longest_s = self.pending
        self.hits = _DECAY * self.hits + (shortest_s <= gaps_s[0] <= longest_s)
        self.count = _DECAY * self.count + 1.0
        self.pending = None

    def probability(self, periods: PeriodRange, gaps_s: Sequence[float]) -> float:
        """Estimate the probability that the next gap lies in an interval, and make it the pending interval.

        Parameters
        ----------
        periods : PeriodRange
            The interval.
        gaps_s : sequence of float
            Last gaps of the current behavior [s]; their hit ratio is the prior of the recorded hit ratio.

        Returns
        -------
        float
            Calibrated probability.

        """
        inside = sum(periods.shortest_s <= gap <= periods.longest_s for gap in gaps_s)
        expected = (inside + _PRIOR_HITS) / (len(gaps_s) + _PRIOR_HITS + _PRIOR_MISSES)
        self.pending = (periods.shortest_s, periods.longest_s)
        ratio = (self.hits + _PRIOR_WEIGHT * expected) / (self.count + _PRIOR_WEIGHT)
        return _CALIBRATION[0] + _CALIBRATION[1] * ratio + (1.0 - sum(_CALIBRATION)) * ratio**6

    def to_dict(self) -> dict[str, Any]:
        """Export the complete state as JSON values."""
        return {"hits": self.hits, "count": self.count, "pending": None if self.pending is None else [*self.pending]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> HitRecord:
        """Restore a record from `to_dict`."""
        pending = state["pending"]
        return cls(state["hits"], state["count"], None if pending is None else (pending[0], pending[1]))
