"""Predict the period of a running application online, with one evaluation per batch of new requests.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), DOI 10.1109/IPDPS57955.2024.00048, section
II-D, and section III-B for HACC-IO. The paper's window strategies are `all` (everything so far), `fixed` (a fixed
length) and `periods` ("after finding k times a dominant frequency, the time window for evaluation is reduced to k times
the last found period"; Figure 15: the start is kept until k more were found). The strategy `adaptive` starts the window
at the last change point (`iosig.transforms.predictions.change_points`).

The cost of an evaluation depends on the new requests and the samples of the window, not on the history: rates are kept
in a `Pyramid`. `evaluate` batches many predictors, since transforming a hundred signals costs little more than one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, pstdev
from typing import Any, Self

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Ragged, Reals, offsets_of
from iosig.transforms.periods.interface.even_signals import group_by_length
from iosig.transforms.periods.phases import PhaseTracker, find_window_phases
from iosig.transforms.periods.search import FTIO_METHODS, METHODS, PeriodParams, detect_periods
from iosig.transforms.predictions.automaton import TOLERANCE_RATIO, PhaseAutomaton, PhaseTransition
from iosig.transforms.predictions.change_points import Change, Detector, create_detector
from iosig.transforms.predictions.intervals import (
    FrequencyIntervals,
    HitRecord,
    NextBurst,
    NextBurstParams,
    PeriodRange,
    PredictionHistory,
    predict_next_burst,
)
from iosig.transforms.predictions.pyramid import Pyramid, Window
from iosig.transforms.throughput.requests import Requests

STRATEGIES = ("all", "fixed", "periods", "adaptive")
#: inputs of the change-point detector: gaps between phases, or predicted periods (one per period)
OBSERVED = ("gaps", "predictions")
#: times after this [s] are counted from 1970, earlier ones from the start of the run
EPOCH_S = 1e9
#: length of the window in which phases are tracked, in cycles of the last period
_RECENT_CYCLES = 8.0
#: outcomes of the method that a tentative period of agreeing gaps may replace
_REPLACEABLE_OUTCOMES = ("aperiodic", "too_short")
#: maximum number of gaps kept; equal to the number of phases that the tracker keeps
_MAX_GAPS = 64
#: a period is rejected if two or more of the last four gaps deviate from it (a far outlier counts twice)
_LAST_GAPS, _MIN_OUTLIERS = 4, 2
#: minimum number of earlier gaps that kept the period (and a third or more of all); otherwise gaps are no evidence
_MIN_KEPT_GAPS = 3
#: a gap is an outlier beyond this number of standard deviations, limited to this range [cycles]
_MAX_DEVIATIONS, _TOLERANCE_LIMITS = 3.0, (0.15, 0.45)
#: minimum number of earlier gaps for their MAD to replace the spread of the method
_MIN_MAD_GAPS = 8
#: range of the last gap [cycles]; a gap outside this range is a far outlier
_JITTER_LIMITS = (0.55, 1.8)
#: the last gap is also a far outlier beyond this number of standard deviations and this deviation [cycles]
_FAR_DEVIATIONS, _MIN_FAR_DEVIATION = 4.5, 0.3
#: minimum number of phases without a period for the behavior to count as aperiodic; the default method needs no more
_MIN_PHASES = 5
#: lengths of the shorter windows to try if the whole window has no period, as fractions of the latter
_SHORTER_RATIOS = (1 / 8, 1 / 64)
#: maximum length of a window of `adaptive`, in periods; keeps samples shorter than a period in long runs
_MAX_CYCLES = 32.0


@dataclass(frozen=True, slots=True)
class OnlineParams:
    """Parameters of online prediction. The field names are part of the saved state."""

    #: one of `iosig.transforms.periods.search.METHODS`; the default is that of the offline analysis
    method: str = METHODS[0]
    #: one of `STRATEGIES`
    strategy: str = "adaptive"
    #: length of the window of `fixed` [s]
    window_s: float | None = None
    #: the paper's two values k of `periods`: hits before the window shrinks, and its length in periods (Figure 15: 3
    #: and 3)
    hit_count: int = 3
    window_periods: float = 3.0
    #: name of the change-point detector
    detector: str = "clipped_cusum"
    #: one of `OBSERVED`; gaps reveal a change within two periods, but need separable phases; server data of several
    #: jobs do not have them
    observed: str = "gaps"
    #: maximum number of samples of a window; with more, pauses within phases count as gaps between them, and no further
    #: period was found in the traces of docs/predictions-study.md
    most_samples: int = 1024
    #: length of the finest samples [s]; for polls, the polling interval
    finest_s: float = 2.0**-10
    #: number of agreeing last gaps that make a tentative period if the method finds none (0: never)
    agreeing_gap_count: int = 2
    burst: NextBurstParams = field(default_factory=NextBurstParams)
    #: parameters of the method; None for the defaults
    detection: PeriodParams | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for unknown names and inconsistent windows."""
        if self.method not in METHODS or self.strategy not in STRATEGIES or self.observed not in OBSERVED:
            raise ValueError(
                f"method must be one of {METHODS}, strategy one of {STRATEGIES}, and observed one of {OBSERVED}"
            )
        if (self.strategy == "fixed") != (self.window_s is not None):
            raise ValueError("the strategy `fixed` requires a window length, and no other strategy accepts one")
        if self.window_s is not None and not 0 < self.window_s < math.inf:
            raise ValueError("the length of a window must be a finite number above 0 [s]")


@dataclass(frozen=True, slots=True)
class Answer:
    """Period detection in the window of one evaluation.

    Attributes
    ----------
    window_start_s, window_end_s, sampling_hz, sample_count
        Limits of the window [s], sampling rate, and number of samples, for FTIO's methods until the last I/O.
    method : str
        The method of the parameters, or `phases` for a tentative period of agreeing gaps.
    outcome : str
        Outcome of the method, or `tentative`.
    frequency_hz, confidence, false_alarm_probability : float or None
        Result of the method; None if not available.
    """

    window_start_s: float
    window_end_s: float
    sampling_hz: float
    sample_count: int
    method: str
    outcome: str
    frequency_hz: float | None
    confidence: float | None
    false_alarm_probability: float | None

    @property
    def period_s(self) -> float | None:
        """Inverse of the frequency [s]; None without a period."""
        return None if self.frequency_hz is None else 1.0 / self.frequency_hz

    @property
    def window_s(self) -> float:
        """Length of the searched time [s]; one sample or more."""
        return max(self.sample_count, 1) / self.sampling_hz

    @property
    def period_range(self) -> PeriodRange | None:
        """Range that consists of the period alone."""
        return None if self.period_s is None else PeriodRange(self.period_s, self.period_s, self.period_s)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of one evaluation of one predictor.

    Attributes
    ----------
    number : int
        Number of the evaluation, from 1.
    intervals : FrequencyIntervals
        Merged frequencies of the evaluations kept (section II-D).
    periods, probability : PeriodRange and float, or None
        Interval of this evaluation, if any.
    hit_probability : float or None
        Probability that the next gap lies in that interval.
    volume_bytes, request_count : float, int
        Totals of the run.
    phase_count, last_phase_start_s : int, float or None
        Number of phases, and start of the last one [s].
    change, change_s : Change and float, or None
        A change detected by this evaluation, and the start of the new behavior [s].
    state, transition : str, PhaseTransition or None
        State of the automaton, and a confirmed transition.
    """

    number: int
    answer: Answer
    intervals: FrequencyIntervals
    periods: PeriodRange | None
    probability: float | None
    hit_probability: float | None
    volume_bytes: float
    request_count: int
    phase_count: int
    last_phase_start_s: float | None
    burst: NextBurst
    change: Change | None
    change_s: float | None
    state: str
    transition: PhaseTransition | None


class Predictor:
    """Online predictor of the reads or writes of one run, with bounded memory and a serializable state."""

    def __init__(self, params: OnlineParams | None = None) -> None:
        """Start with an empty run."""
        self.params = params or OnlineParams()
        self.evaluation_count = 0
        self.restart()

    def restart(self) -> None:
        """Reset for another run; the count of evaluations continues."""
        kind = "instants" if self.is_ftio else "volumes"
        self.pyramid = Pyramid(self.params.finest_s, self.params.most_samples, kind)
        self.automaton = PhaseAutomaton()
        self.history = PredictionHistory()
        self.hits = HitRecord()
        self.period_s: float | None = None
        self.start_window(None)

    def resume(self) -> None:
        """Continue a run after its end was reported, with a new automaton."""
        self.automaton = PhaseAutomaton()

    def start_window(self, at_s: float | None) -> None:
        """Discard the behavior before a time [s], e.g. after a gap or a change of clock; keep byte totals."""
        self.start_s = at_s
        #: start of the current behavior [s], if a change was detected
        self.change_s: float | None = None
        self.hit_count = 0
        self.tracker = PhaseTracker()
        self.detector: Detector = create_detector(self.params.detector)
        #: gaps between phases as (onset, next onset), or predicted periods as their time, twice [s]
        self.observed: list[tuple[float, float]] = []

    def add(self, requests: Requests, measured: Reals | None = None) -> None:
        """Add new requests; `measured` (k, 2): measured intervals, if the requests are polls [s]."""
        self.pyramid.add(requests, measured)

    # ---- windows

    @property
    def is_ftio(self) -> bool:
        """Whether the method is FTIO's: it samples at instants, and its time window is that of the I/O."""
        return self.params.method in FTIO_METHODS

    @property
    def origin_s(self) -> float:
        """Start of the run [s]: 0; the first request for FTIO's methods, or if that is negative or after `EPOCH_S`."""
        first_s = self.pyramid.first_s
        return first_s if first_s < 0.0 or first_s >= EPOCH_S or (self.is_ftio and first_s > 0.0) else 0.0

    def window_start_s(self, now_s: float) -> float:
        """Compute the start of the current window [s]."""
        start_s = self.origin_s if self.start_s is None else max(self.start_s, self.origin_s)
        if self.params.window_s is not None:
            start_s = max(start_s, now_s - self.params.window_s)
        elif self.params.strategy == "adaptive" and self.period_s is not None:
            start_s = max(start_s, now_s - _MAX_CYCLES * self.period_s)
        return min(start_s, now_s)

    def window(self, now_s: float) -> Window:
        """Sample the current window; for FTIO's methods the run begins with its first sample with I/O."""
        start_s = self.window_start_s(now_s)
        window = self.pyramid.window(start_s, now_s, self.params.most_samples)
        return window.skip_idle_start() if self.is_ftio and start_s <= self.origin_s else window

    def shorter_windows(self, now_s: float) -> list[Window]:
        """Sample shorter, later windows at finer resolution."""
        window_s = now_s - self.window_start_s(now_s)
        if self.params.strategy != "adaptive":
            return []
        lengths_s = [window_s * ratio for ratio in _SHORTER_RATIOS]
        min_length_s = self.params.most_samples * self.params.finest_s
        return [
            self.pyramid.window(now_s - length_s, now_s, self.params.most_samples)
            for length_s in lengths_s
            if length_s >= min_length_s
        ]

    def recent_window(self, now_s: float) -> Window:
        """Sample the window of the last few cycles, in which phases are tracked."""
        start_s = self.window_start_s(now_s)
        if self.period_s is not None:
            start_s = max(start_s, now_s - _RECENT_CYCLES * self.period_s)
        return self.pyramid.window(start_s, now_s, self.params.most_samples)

    # ---- changes

    def observe_gaps(self, gaps: Sequence[tuple[float, float]]) -> tuple[Change, float] | None:
        """Add gaps (onset, next onset) [s] to the detector; return the last change and its time [s]."""
        event = None
        for onset_s, next_s in gaps:
            event = self._observe(onset_s, next_s, next_s - onset_s) or event
        return event

    def observe_period(self, period_s: float | None, now_s: float) -> tuple[Change, float] | None:
        """Add a predicted period to the detector, once per period; return the change, if any, and its time [s]."""
        if period_s is None or (self.observed and now_s - self.observed[-1][0] < period_s):
            return None
        return self._observe(now_s, now_s, period_s)

    def _observe(self, at_s: float, until_s: float, period_s: float) -> tuple[Change, float] | None:
        self.observed = [*self.observed, (at_s, until_s)][-_MAX_GAPS:]
        change = self.detector.add(period_s)
        if change is None:
            return None
        back = self.detector.seen_count - change.index
        since_s = self.change_s = self.observed[-min(back, len(self.observed))][0]
        if self.params.strategy == "adaptive":
            # evaluations of the old behavior do not apply to the new one
            self.start_s, self.history = since_s, PredictionHistory()
        return change, since_s

    # ---- conclusions

    def apply_tentative_period(self, answer: Answer) -> Answer:
        """Replace a missing period by the mean of the last gaps between phases, if these agree."""
        min_count = self.params.agreeing_gap_count
        if not min_count or self.params.observed != "gaps" or answer.outcome not in _REPLACEABLE_OUTCOMES:
            return answer
        agreeing = self._agreeing_gaps(answer.window_start_s - 1.0 / answer.sampling_hz)
        if len(agreeing) < min_count:
            return answer
        period = fmean(agreeing)
        evenness = max(0.0, 1.0 - pstdev(agreeing) / period)
        return replace(answer, method="phases", outcome="tentative", frequency_hz=1.0 / period, confidence=evenness)

    def reject_unsupported_period(self, answer: Answer) -> Answer:
        """Change the outcome to `aperiodic` if the last gaps between phases contradict the period.

        After the end of the periodicity, the window still contains earlier phases; the gaps since then reveal the end.
        """
        if answer.period_s is None or answer.method != METHODS[0] or self.params.observed != "gaps":
            return answer
        cycles = np.array(self._present_gaps()) / answer.period_s
        spread = 1.0 - (answer.confidence or 0.0)
        earlier = cycles[:-_LAST_GAPS]
        if len(earlier) >= _MIN_MAD_GAPS:
            # the method's spread includes the last gaps, and a few outliers widen it
            spread = min(spread, SIGMAS_PER_MAD * float(np.median(np.abs(earlier - np.median(earlier)))))
        tolerance = float(np.clip(_MAX_DEVIATIONS * spread, *_TOLERANCE_LIMITS))
        is_off = np.abs(cycles - 1.0) > tolerance
        # if gaps never kept the period, they are no evidence against it
        kept_count = np.count_nonzero(~is_off[:-_LAST_GAPS])
        if kept_count < max(_MIN_KEPT_GAPS, (len(cycles) - _LAST_GAPS) / 3):
            return answer
        # a gap of half or twice the period is no jitter, but a single one may be an exception
        is_far = not _JITTER_LIMITS[0] < cycles[-1] < _JITTER_LIMITS[1]
        is_far |= abs(cycles[-1] - 1.0) > max(_FAR_DEVIATIONS * spread, _MIN_FAR_DEVIATION)
        if is_off[-_LAST_GAPS:].sum() + is_far < _MIN_OUTLIERS:
            return answer
        return replace(answer, outcome="aperiodic", frequency_hz=None, confidence=None)

    def _last_gaps(self) -> list[float]:
        """Last gaps since the last change that the prediction uses [s]."""
        return self._present_gaps()[-self.params.burst.burst_count :]

    def _present_gaps(self) -> list[float]:
        """All gaps kept since the last change [s]."""
        since_s = -math.inf if self.change_s is None else self.change_s
        return [next_s - onset_s for onset_s, next_s in self.observed if onset_s >= since_s]

    def _agreeing_gaps(self, since_s: float) -> list[float]:
        """Last consecutive gaps of equal length since a time, newest first [s].

        There are none if equal gaps are a minority, since two equal gaps in a row also occur by chance.
        """
        gaps = [pair for pair in self.observed if pair[0] >= since_s]
        agreeing: list[float] = []
        later_onsets_s = (None, *(onset_s for onset_s, _ in reversed(gaps)))
        for (onset_s, next_s), expected_s in zip(reversed(gaps), later_onsets_s, strict=False):
            gap, typical = next_s - onset_s, median(agreeing) if agreeing else next_s - onset_s
            is_equal = max(gap, typical) <= TOLERANCE_RATIO * min(gap, typical)
            if (expected_s is not None and next_s != expected_s) or not is_equal:
                break
            agreeing.append(gap)
        return agreeing if 2 * len(agreeing) >= len(gaps) else []

    def conclude(self, answer: Answer, changed: tuple[Change, float] | None, due: Due) -> Evaluation:
        """Complete an evaluation, and update history, automaton and hit record."""
        self.evaluation_count += 1
        self.period_s = answer.period_s or self.period_s
        self._count_hit(answer, due.now_s)
        intervals = self.history.add(answer.frequency_hz, answer.window_s)
        current_interval = intervals.current
        periods = None if current_interval is None else intervals.periods(current_interval)
        transition = None
        if self._is_informative(answer, changed, due):
            cause = due.cause or ("change_point" if changed is not None else None)
            transition = self.automaton.add(due.now_s, answer.period_s, cause)
        else:
            self.automaton.wait(due.now_s)
        current = self.automaton.current
        onset_s, volume_bytes = self._present_phases()
        known = periods or answer.period_range
        burst = predict_next_burst(onset_s, volume_bytes, known, due.now_s, self.params.burst)
        return Evaluation(
            number=self.evaluation_count,
            answer=answer,
            intervals=intervals,
            periods=periods,
            probability=None if current_interval is None else float(intervals.probability[current_interval]),
            hit_probability=None if periods is None else self.hits.probability(periods, self._last_gaps()),
            volume_bytes=self.pyramid.volume_bytes,
            request_count=self.pyramid.request_count + self.pyramid.unknown_size_count,
            phase_count=self.tracker.phase_count,
            last_phase_start_s=float(onset_s[-1]) if len(onset_s) else None,
            burst=NextBurst.for_ended_run() if due.cause == "end" else burst,
            change=None if changed is None else changed[0],
            change_s=None if changed is None else changed[1],
            state="start" if current is None else current.name,
            transition=transition,
        )

    def _present_phases(self) -> tuple[Reals, Reals]:
        """Onsets [s] and volumes of the phases since the last change."""
        onset_s, volume_bytes = self.tracker.onset_s, self.tracker.volume_bytes
        if self.change_s is None:
            return onset_s, volume_bytes
        is_present = onset_s >= self.change_s
        return onset_s[is_present], volume_bytes[is_present]

    def _is_informative(self, answer: Answer, changed: tuple[Change, float] | None, due: Due) -> bool:
        """Whether an evaluation is informative for the automaton; one with few phases and no period is not."""
        if answer.period_s is not None or changed is not None or due.cause is not None:
            return True
        return int((self.tracker.onset_s >= answer.window_start_s).sum()) >= _MIN_PHASES

    def _count_hit(self, answer: Answer, now_s: float) -> None:
        """Shrink the window of the strategy `periods` after `hit_count` periodic answers."""
        if self.params.strategy != "periods" or answer.outcome != "periodic" or answer.period_s is None:
            return
        self.hit_count += 1
        if self.hit_count >= self.params.hit_count:
            self.start_s = now_s - self.params.window_periods * answer.period_s
            self.hit_count = 0

    # ---- serialization

    def to_state(self) -> tuple[dict[str, Any], bytes]:
        """Export the complete state: JSON values, and the compressed samples."""
        pyramid, content = self.pyramid.to_state()
        state = {
            "evaluation_count": self.evaluation_count,
            "start_s": self.start_s,
            "change_s": self.change_s,
            "hit_count": self.hit_count,
            "period_s": self.period_s,
            "observed": [list(pair) for pair in self.observed],
            "pyramid": pyramid,
            "tracker": self.tracker.to_dict(),
            "detector": self.detector.to_dict(),
            "history": self.history.to_dict(),
            "hits": self.hits.to_dict(),
            "automaton": self.automaton.to_dict(),
        }
        return state, content

    @classmethod
    def from_state(cls, params: OnlineParams, state: Mapping[str, Any], content: bytes) -> Self:
        """Restore a predictor from `to_state`; its further results are bit-identical."""
        predictor = cls(params)
        predictor.pyramid = Pyramid.from_state(state["pyramid"], content)
        predictor.tracker = PhaseTracker.from_dict(state["tracker"])
        predictor.detector = Detector.from_dict(state["detector"])
        predictor.history = PredictionHistory.from_dict(state["history"])
        # states of earlier versions have no hit record
        predictor.hits = HitRecord.from_dict(state["hits"]) if "hits" in state else HitRecord()
        predictor.automaton = PhaseAutomaton.from_dict(state["automaton"])
        predictor.evaluation_count, predictor.hit_count = state["evaluation_count"], state["hit_count"]
        predictor.start_s, predictor.change_s = state["start_s"], state["change_s"]
        predictor.period_s = state["period_s"]
        predictor.observed = [(at_s, until_s) for at_s, until_s in state["observed"]]
        return predictor


def finite_or_none(value: float) -> float | None:
    """Convert to a Python float; None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


# ---- evaluations


@dataclass(frozen=True, slots=True)
class Due:
    """A predictor that is due for evaluation, at a time on its clock [s].

    cause: `gap` (nothing was measured for a while), `end` (the run has ended), or None.
    """

    predictor: Predictor
    now_s: float
    cause: str | None = None


def evaluate(due: Sequence[Due]) -> list[Evaluation]:
    """Evaluate predictors in one batch.

    Parameters
    ----------
    due : sequence of Due
        Distinct predictors with equal parameters.

    Returns
    -------
    list of Evaluation
        Evaluations in the order of `due`; equal to separate evaluations.
    """
    if not due:
        return []
    params = due[0].predictor.params
    changed: list[tuple[Change, float] | None] = [None] * len(due)
    gaps = _collect_gaps(due)
    for item, item_gaps in zip(due, gaps, strict=True):
        item.predictor.hits.update([next_s - onset_s for onset_s, next_s in item_gaps])
    if params.observed == "gaps":
        changed = [item.predictor.observe_gaps(item_gaps) for item, item_gaps in zip(due, gaps, strict=True)]
    answers = _search_shorter_windows(due, _detect_periods([one.predictor.window(one.now_s) for one in due], params))
    if params.observed == "predictions":
        changed = [
            one.predictor.observe_period(answer.period_s, one.now_s) for one, answer in zip(due, answers, strict=True)
        ]
        answers = _recompute_changed(due, answers, changed)
    return [
        item.predictor.conclude(
            item.predictor.apply_tentative_period(item.predictor.reject_unsupported_period(answer)), change, item
        )
        for item, answer, change in zip(due, answers, changed, strict=True)
    ]


def _search_shorter_windows(due: Sequence[Due], answers: list[Answer]) -> list[Answer]:
    """Replace aperiodic answers by the answer of the longest shorter window with a period."""
    candidates = [
        (place, window)
        for place, (item, answer) in enumerate(zip(due, answers, strict=True))
        if answer.outcome == "aperiodic"
        for window in item.predictor.shorter_windows(item.now_s)
    ]
    improved = list(answers)
    candidate_answers = _detect_periods([window for _, window in candidates], due[0].predictor.params)
    for (place, _), answer in zip(candidates, candidate_answers, strict=True):
        if improved[place].outcome != "periodic" and answer.outcome == "periodic":
            improved[place] = answer
    return improved


def _recompute_changed(
    due: Sequence[Due], answers: list[Answer], changed: Sequence[tuple[Change, float] | None]
) -> list[Answer]:
    """Recompute the answers of predictors with a later start of the window after a detected change."""
    places = [place for place, change in enumerate(changed) if change is not None]
    windows = [due[place].predictor.window(due[place].now_s) for place in places]
    updated = list(answers)
    for place, answer in zip(places, _detect_periods(windows, due[0].predictor.params), strict=True):
        updated[place] = answer
    return updated


def _collect_gaps(due: Sequence[Due]) -> list[list[tuple[float, float]]]:
    """Track phases, and collect the new gaps of each predictor."""
    windows = [item.predictor.recent_window(item.now_s) for item in due]
    samples, hz, start_s = _stack_windows(windows)
    cycle_s = np.array([item.predictor.period_s or math.nan for item in due])
    gaps: list[list[tuple[float, float]]] = [[] for _ in due]
    for places, group in group_by_length(samples, hz, start_s):
        phases = find_window_phases(group, cycle_s[places])
        for signal, place in enumerate(places.tolist()):
            predictor = due[place].predictor
            gaps[place] = predictor.tracker.update(phases, signal, predictor.pyramid.first_s)
    return gaps


def _stack_windows(windows: Sequence[Window]) -> tuple[Ragged, Reals, Reals]:
    offsets = offsets_of([len(window.bytes_per_s) for window in windows])
    values = np.concatenate([np.zeros(0), *(window.bytes_per_s for window in windows)])
    hz = np.array([window.sampling_hz for window in windows])
    return Ragged(values, offsets), hz, np.array([window.start_s for window in windows])


def _detect_periods(windows: Sequence[Window], params: OnlineParams) -> list[Answer]:
    """Detect the period of each window, in one batch."""
    if not windows:
        return []
    searched = [window.skip_idle_end() for window in windows] if params.method in FTIO_METHODS else windows
    samples, hz, start_s = _stack_windows(searched)
    detection = replace(params.detection or PeriodParams(), methods=(params.method,))
    detections, refined = detect_periods(samples, hz, start_s, detection)[params.method]
    confidence = np.where(np.isnan(refined), detections.confidence, refined)
    return [
        Answer(
            window.start_s,
            window.end_s,
            window.sampling_hz,
            len(searched[place].bytes_per_s),
            params.method,
            str(detections.outcome[place]),
            finite_or_none(detections.frequency_hz[place]),
            finite_or_none(confidence[place]),
            finite_or_none(detections.false_alarm_probability[place]),
        )
        for place, window in enumerate(windows)
    ]
