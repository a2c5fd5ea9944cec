"""The period of I/O phases while the run goes on: one evaluation whenever new requests have come.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (FTIO), DOI 10.1109/IPDPS57955.2024.00048, section
II-D, and section III-B for HACC-IO. The paper's window strategies are `all` (everything so far), `fixed` (a fixed
length) and `periods` ("after finding k times a dominant frequency, the time window for evaluation is reduced to k times
the last found period"; Figure 15: it begins there until k more were found). `adaptive` is ours: the window begins where
the behaviour last changed, as a change-point detector tells (`iosig.transforms.predictions.change_points`).

What an evaluation costs depends on the new requests and on the samples of the window, never on the history: rates are
kept in a `Pyramid`. Many predictors are evaluated at once (`evaluate`), for a transform of a hundred signals
costs little more than that of one.
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
from iosig.transforms.periods.search import METHODS, PeriodParams, detect_periods
from iosig.transforms.predictions.automaton import TOLERANCE_RATIO, PhaseAutomaton, PhaseTransition
from iosig.transforms.predictions.change_points import Change, Detector, detector
from iosig.transforms.predictions.intervals import (
    FrequencyIntervals,
    HitRecord,
    NextBurst,
    NextBurstParams,
    PeriodRange,
    PredictionHistory,
    next_burst,
)
from iosig.transforms.predictions.pyramid import Pyramid, Window
from iosig.transforms.throughput.requests import Requests

STRATEGIES = ("all", "fixed", "periods", "adaptive")
#: what tells of changes: the gaps between phases, or the predicted periods, one for each period that passes
OBSERVED = ("gaps", "predictions")
#: methods that sample the rate at instants, as their papers do; the others want the bytes of each step
OF_INSTANTS = ("dft", "autocorrelation", "merged")
#: clocks that are later count from 1970, not from the run's start
EPOCH_S = 1e9
#: cycles of the believed period among which phases are looked for
_RECENT_CYCLES = 8.0
#: outcomes with which the last gaps between phases may speak for the method
_TOO_LITTLE = ("aperiodic", "too_short")
#: gaps that are kept: as many as the tracker keeps phases
_MOST_GAPS = 64
#: of so many last gaps, if so many are off the period there is none any more
_LAST_GAPS, _MOST_OFF = 4, 2
#: if so many kept to it before, and a third of all
_LEAST_KEPT = 3
#: a gap is off if it is so many deviations of the method's cycles from one of them, at least and at most
_DEVIATIONS, _TOLERANCES = 3.0, (0.15, 0.45)
#: of so many earlier gaps the median deviation tells theirs
_ENOUGH_GAPS = 8
#: what is as short or as long in cycles counts twice, if it is the last gap
_NO_JITTER = (0.55, 1.8)
#: and so does what is so many deviations off, and so large a share of a cycle
_FAR_DEVIATIONS, _FAR = 4.5, 0.3
#: phases without any period that are a behaviour: our own method needs no more to see one
_LEAST_PHASES = 5
#: parts of a window that are looked at where nothing is found in all of it
_SHORTER_RATIOS = (1 / 8, 1 / 64)
#: of the believed period in a window of `adaptive`, so that in a long run samples are not as long as its period
_MOST_CYCLES = 32.0


@dataclass(frozen=True, slots=True)
class OnlineParams:
    """How periods are predicted while a run goes on.

    method: one of `periods.METHODS` (controlled, ours, as offline). strategy: one of `STRATEGIES`. window_s: of
    `fixed`. hit_count, window_periods: of `periods`, the paper's two k (3 and 3; Figure 15). detector: by its name in
    `change_points`. observed: one of `OBSERVED`; gaps tell of a change within two periods, but only where phases can be
    told apart: not in what servers saw of several jobs. most_samples: of a window (1024: then over 256 each; more find
    no more in the traces that we have, and take the pauses within phases for those between them).
    finest_s: the finest step (2**-10 s; for polls their interval). agreeing_gap_count: so many last gaps that are alike
    make a tentative period where the method has too little for its own (2; 0: never).
    """

    method: str = METHODS[0]
    strategy: str = "adaptive"
    window_s: float | None = None
    hit_count: int = 3
    window_periods: float = 3.0
    detector: str = "clipped_cusum"
    observed: str = "gaps"
    most_samples: int = 1024
    finest_s: float = 2.0**-10
    agreeing_gap_count: int = 2
    burst: NextBurstParams = field(default_factory=NextBurstParams)

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.method not in METHODS or self.strategy not in STRATEGIES or self.observed not in OBSERVED:
            raise ValueError(f"the method is one of {METHODS}, the strategy of {STRATEGIES}, observed of {OBSERVED}")
        if (self.strategy == "fixed") != (self.window_s is not None):
            raise ValueError("a window's length goes with the strategy `fixed`, and with no other")
        if self.window_s is not None and not 0 < self.window_s < math.inf:
            raise ValueError("a window's length is a finite number above 0 [s]")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one evaluation's window says: its samples, the method that answered, and its answer.

    method: that of the parameters, or `phases` where the last gaps between phases alone tell the period; outcome: as of
    `detections`, or `tentative` then. Numbers are None where there is none.
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
        """The period."""
        return None if self.frequency_hz is None else 1.0 / self.frequency_hz

    @property
    def window_s(self) -> float:
        """How long the window is; that of a sample where it has none."""
        return max(self.window_end_s - self.window_start_s, 1.0 / self.sampling_hz)

    @property
    def alone(self) -> PeriodRange | None:
        """The period as a range of its own."""
        return None if self.period_s is None else PeriodRange(self.period_s, self.period_s, self.period_s)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of one predictor.

    number: from 1 on. answer: what the window says. intervals: what all evaluations that are kept say together
    (section II-D); periods, probability: of the interval that this one is in, None where in none. hit_probability: how
    probable it is that the next gap lies in it. volume_bytes,
    request_count: all so far, each counted once. phase_count, last_phase_s: phases so far, and when the last one began.
    change, changed_s: if one was found now, and when the new behaviour began. state, transition: of the automaton.
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
    last_phase_s: float | None
    burst: NextBurst
    change: Change | None
    changed_s: float | None
    state: str
    transition: PhaseTransition | None


class Predictor:
    """Predicts the period of one run's reads or writes; bounded in memory, and able to go on from its state."""

    def __init__(self, params: OnlineParams | None = None) -> None:
        """Start with a run of which nothing is known yet."""
        self.params = params or OnlineParams()
        self.evaluation_count = 0
        self.restart()

    def restart(self) -> None:
        """Begin with another run; evaluations are counted on."""
        kind = "instants" if self.params.method in OF_INSTANTS else "volumes"
        self.pyramid = Pyramid(self.params.finest_s, self.params.most_samples, kind)
        self.automaton = PhaseAutomaton()
        self.history = PredictionHistory()
        self.hits = HitRecord()
        self.period_s: float | None = None
        self.part(None)

    def resume(self) -> None:
        """Go on with a run that was taken for over: nothing comes behind the end of an automaton."""
        self.automaton = PhaseAutomaton()

    def part(self, at_s: float | None) -> None:
        """Let the window begin at an instant: what was before is not known, or on another clock; bytes stay counted."""
        self.start_s = at_s
        #: since when the present behaviour lasts, if a change was found
        self.changed_s: float | None = None
        self.hit_count = 0
        self.tracker = PhaseTracker()
        self.detector: Detector = detector(self.params.detector)
        #: gaps between phases (onset, next onset), or instants and the periods predicted then
        self.observed: list[tuple[float, float]] = []

    def add(self, requests: Requests, measured: Reals | None = None) -> None:
        """Take requests of the run that are new. measured (k, 2): of polls, the intervals that they are of [s]."""
        self.pyramid.add(requests, measured)

    # ---- windows

    @property
    def origin_s(self) -> float:
        """When the run began: its clock's zero; the first request, if that is earlier or the clock counts from 1970."""
        first_s = self.pyramid.first_s
        return first_s if first_s < 0.0 or first_s >= EPOCH_S else 0.0

    def window_start_s(self, now_s: float) -> float:
        """Return where the window begins that is judged now."""
        start_s = self.origin_s if self.start_s is None else max(self.start_s, self.origin_s)
        if self.params.window_s is not None:
            start_s = max(start_s, now_s - self.params.window_s)
        elif self.params.strategy == "adaptive" and self.period_s is not None:
            start_s = max(start_s, now_s - _MOST_CYCLES * self.period_s)
        return min(start_s, now_s)

    def window(self, now_s: float) -> Window:
        """Return the samples that are judged now."""
        return self.pyramid.window(self.window_start_s(now_s), now_s, self.params.most_samples)

    def shorter_windows(self, now_s: float) -> list[Window]:
        """Return later parts of the window in which finer samples may show what its own are too coarse for."""
        length_s = now_s - self.window_start_s(now_s)
        if self.params.strategy != "adaptive":
            return []
        lengths_s = [length_s * ratio for ratio in _SHORTER_RATIOS]
        least_s = self.params.most_samples * self.params.finest_s
        return [
            self.pyramid.window(now_s - each_s, now_s, self.params.most_samples)
            for each_s in lengths_s
            if each_s >= least_s
        ]

    def recent(self, now_s: float) -> Window:
        """Return the samples in which phases are looked for: the last cycles, as far as a period is believed in."""
        start_s = self.window_start_s(now_s)
        if self.period_s is not None:
            start_s = max(start_s, now_s - _RECENT_CYCLES * self.period_s)
        return self.pyramid.window(start_s, now_s, self.params.most_samples)

    # ---- changes

    def observe_gaps(self, gaps: Sequence[tuple[float, float]]) -> tuple[Change, float] | None:
        """Take new gaps (onset, next onset); return the last change that they tell of, and since when."""
        found = None
        for onset_s, next_s in gaps:
            found = self._observe(onset_s, next_s, next_s - onset_s) or found
        return found

    def observe_period(self, period_s: float | None, now_s: float) -> tuple[Change, float] | None:
        """Take a predicted period, one in each period; return the change that it tells of, and since when."""
        if period_s is None or (self.observed and now_s - self.observed[-1][0] < period_s):
            return None
        return self._observe(now_s, now_s, period_s)

    def _observe(self, at_s: float, until_s: float, period_s: float) -> tuple[Change, float] | None:
        self.observed = [*self.observed, (at_s, until_s)][-_MOST_GAPS:]
        change = self.detector.add(period_s)
        if change is None:
            return None
        back = self.detector.seen_count - change.index
        since_s = self.changed_s = self.observed[-min(back, len(self.observed))][0]
        if self.params.strategy == "adaptive":
            # what was predicted of the old behaviour tells nothing of the new one
            self.start_s, self.history = since_s, PredictionHistory()
        return change, since_s

    # ---- conclusions

    def tentative(self, answer: Answer) -> Answer:
        """Return the answer that the last gaps between phases give, where they agree and the method has none."""
        wanted = self.params.agreeing_gap_count
        if not wanted or self.params.observed != "gaps" or answer.outcome not in _TOO_LITTLE:
            return answer
        alike = self._agreeing_gaps(answer.window_start_s - 1.0 / answer.sampling_hz)
        if len(alike) < wanted:
            return answer
        period = fmean(alike)
        evenness = max(0.0, 1.0 - pstdev(alike) / period)
        return replace(answer, method="phases", outcome="tentative", frequency_hz=1.0 / period, confidence=evenness)

    def fitting(self, answer: Answer) -> Answer:
        """Return the answer, or that there is no period where the last phases do not keep to it.

        A window goes on holding what it held: where the rhythm has ended, the gaps since then tell.
        """
        if answer.period_s is None or answer.method != METHODS[0] or self.params.observed != "gaps":
            return answer
        cycles = np.array(self._present_gaps()) / answer.period_s
        spread = 1.0 - (answer.confidence or 0.0)
        earlier = cycles[:-_LAST_GAPS]
        if len(earlier) >= _ENOUGH_GAPS:
            # what the method tells counts the last gaps, too, of which a few make it wide
            spread = min(spread, SIGMAS_PER_MAD * float(np.median(np.abs(earlier - np.median(earlier)))))
        tolerance = float(np.clip(_DEVIATIONS * spread, *_TOLERANCES))
        is_off = np.abs(cycles - 1.0) > tolerance
        # what phases never kept to is not told by them
        before = np.count_nonzero(~is_off[:-_LAST_GAPS])
        if before < max(_LEAST_KEPT, (len(cycles) - _LAST_GAPS) / 3):
            return answer
        # twice as late, or in half the time, is no jitter; but after one such gap the rhythm may go on
        is_far = not _NO_JITTER[0] < cycles[-1] < _NO_JITTER[1]
        is_far |= abs(cycles[-1] - 1.0) > max(_FAR_DEVIATIONS * spread, _FAR)
        if is_off[-_LAST_GAPS:].sum() + is_far < _MOST_OFF:
            return answer
        return replace(answer, outcome="aperiodic", frequency_hz=None, confidence=None)

    def _last_gaps(self) -> list[float]:
        """Return the last gaps between phases since the behaviour last changed, as many as tell a range [s]."""
        return self._present_gaps()[-self.params.burst.burst_count :]

    def _present_gaps(self) -> list[float]:
        """Return the gaps between phases since the behaviour last changed, as far as they are kept [s]."""
        since_s = -math.inf if self.changed_s is None else self.changed_s
        return [next_s - onset_s for onset_s, next_s in self.observed if onset_s >= since_s]

    def _agreeing_gaps(self, since_s: float) -> list[float]:
        """Return the last gaps since an instant that follow one another and are of one length, last first.

        There are none where they are fewer than the others: of random gaps two in a row are alike now and then.
        """
        gaps = [pair for pair in self.observed if pair[0] >= since_s]
        alike: list[float] = []
        expected_s = None
        for onset_s, next_s in reversed(gaps):
            gap, typical = next_s - onset_s, median(alike) if alike else next_s - onset_s
            is_alike = max(gap, typical) <= TOLERANCE_RATIO * min(gap, typical)
            if (expected_s is not None and next_s != expected_s) or not is_alike:
                break
            alike.append(gap)
            expected_s = onset_s
        return alike if 2 * len(alike) >= len(gaps) else []

    def conclude(self, answer: Answer, changed: tuple[Change, float] | None, due: Due) -> Evaluation:
        """Make an answer the next evaluation, and remember it."""
        self.evaluation_count += 1
        self.period_s = answer.period_s or self.period_s
        self._count_hit(answer, due.now_s)
        intervals = self.history.add(answer.frequency_hz, answer.window_s)
        place = intervals.current
        periods = None if place is None else intervals.periods(place)
        transition = None
        if self._is_telling(answer, changed, due):
            cause = due.cause or ("change_point" if changed is not None else None)
            transition = self.automaton.add(due.now_s, answer.period_s, cause)
        else:
            self.automaton.wait(due.now_s)
        current = self.automaton.current
        onset_s, volume_bytes = self._present_phases()
        known = periods or answer.alone
        burst = next_burst(onset_s, volume_bytes, known, due.now_s, self.params.burst)
        return Evaluation(
            number=self.evaluation_count,
            answer=answer,
            intervals=intervals,
            periods=periods,
            probability=None if place is None else float(intervals.probability[place]),
            hit_probability=None if periods is None else self.hits.probability(periods, self._last_gaps()),
            volume_bytes=self.pyramid.volume_bytes,
            request_count=self.pyramid.request_count + self.pyramid.unknown_size_count,
            phase_count=self.tracker.phase_count,
            last_phase_s=float(onset_s[-1]) if len(onset_s) else None,
            burst=NextBurst.of_ended_run() if due.cause == "end" else burst,
            change=None if changed is None else changed[0],
            changed_s=None if changed is None else changed[1],
            state="start" if current is None else current.name,
            transition=transition,
        )

    def _present_phases(self) -> tuple[Reals, Reals]:
        """Return onsets and volumes of phases since the last change: those before foretell another behaviour."""
        onset_s, volume_bytes = self.tracker.onset_s, self.tracker.volume_bytes
        if self.changed_s is None:
            return onset_s, volume_bytes
        is_present = onset_s >= self.changed_s
        return onset_s[is_present], volume_bytes[is_present]

    def _is_telling(self, answer: Answer, changed: tuple[Change, float] | None, due: Due) -> bool:
        """Return whether the automaton learns anything: that a few phases have no period yet is no behaviour."""
        if answer.period_s is not None or changed is not None or due.cause is not None:
            return True
        return int((self.tracker.onset_s >= answer.window_start_s).sum()) >= _LEAST_PHASES

    def _count_hit(self, answer: Answer, now_s: float) -> None:
        """Let the window of `periods` begin anew once the method has found a period so many times."""
        if self.params.strategy != "periods" or answer.outcome != "periodic" or answer.period_s is None:
            return
        self.hit_count += 1
        if self.hit_count >= self.params.hit_count:
            self.start_s = now_s - self.params.window_periods * answer.period_s
            self.hit_count = 0

    # ---- to disk and back

    def to_state(self) -> tuple[dict[str, Any], bytes]:
        """Return all that there is to know: plain values that JSON can hold, and the samples."""
        pyramid, content = self.pyramid.to_state()
        state = {
            "evaluation_count": self.evaluation_count,
            "start_s": self.start_s,
            "changed_s": self.changed_s,
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
        """Return the predictor of a state, which goes on as the one would that it was taken from."""
        found = cls(params)
        found.pyramid = Pyramid.from_state(state["pyramid"], content)
        found.tracker = PhaseTracker.from_dict(state["tracker"])
        found.detector = Detector.from_dict(state["detector"])
        found.history = PredictionHistory.from_dict(state["history"])
        # states of earlier versions have none
        found.hits = HitRecord.from_dict(state["hits"]) if "hits" in state else HitRecord()
        found.automaton = PhaseAutomaton.from_dict(state["automaton"])
        found.evaluation_count, found.hit_count = state["evaluation_count"], state["hit_count"]
        found.start_s, found.changed_s, found.period_s = state["start_s"], state["changed_s"], state["period_s"]
        found.observed = [(at_s, until_s) for at_s, until_s in state["observed"]]
        return found


def finite_or_none(value: float) -> float | None:
    """Return a number as a plain float; None, which tables and JSON can hold, for NaN and infinity."""
    return float(value) if math.isfinite(value) else None


# ---- evaluations


@dataclass(frozen=True, slots=True)
class Due:
    """A predictor that is to be evaluated: at which instant of its clock, and what its input says of itself.

    cause: `gap`, nothing was measured for a while; `end`, the run is over; None: neither.
    """

    predictor: Predictor
    now_s: float
    cause: str | None = None


def evaluate(due: Sequence[Due]) -> list[Evaluation]:
    """Evaluate predictors of one set of parameters, each once, together: their next evaluations, in this order."""
    if not due:
        return []
    params = due[0].predictor.params
    changed: list[tuple[Change, float] | None] = [None] * len(due)
    gaps = _new_gaps(due)
    for one, found in zip(due, gaps, strict=True):
        one.predictor.hits.come([next_s - onset_s for onset_s, next_s in found])
    if params.observed == "gaps":
        changed = [one.predictor.observe_gaps(found) for one, found in zip(due, gaps, strict=True)]
    answers = _searched(due, _answers([one.predictor.window(one.now_s) for one in due], params))
    if params.observed == "predictions":
        changed = [
            one.predictor.observe_period(answer.period_s, one.now_s) for one, answer in zip(due, answers, strict=True)
        ]
        answers = _anew(due, answers, changed)
    return [
        one.predictor.conclude(one.predictor.tentative(one.predictor.fitting(answer)), change, one)
        for one, answer, change in zip(due, answers, changed, strict=True)
    ]


def _searched(due: Sequence[Due], answers: list[Answer]) -> list[Answer]:
    """Return answers with those that are none replaced by that of the longest later part that has one."""
    wanted = [
        (place, window)
        for place, (one, answer) in enumerate(zip(due, answers, strict=True))
        if answer.outcome == "aperiodic"
        for window in one.predictor.shorter_windows(one.now_s)
    ]
    found = list(answers)
    others = _answers([window for _, window in wanted], due[0].predictor.params)
    for (place, _), answer in zip(wanted, others, strict=True):
        if found[place].outcome != "periodic" and answer.outcome == "periodic":
            found[place] = answer
    return found


def _anew(due: Sequence[Due], answers: list[Answer], changed: Sequence[tuple[Change, float] | None]) -> list[Answer]:
    """Return answers with those judged anew whose window begins later now."""
    places = [place for place, change in enumerate(changed) if change is not None]
    windows = [due[place].predictor.window(due[place].now_s) for place in places]
    found = list(answers)
    for place, answer in zip(places, _answers(windows, due[0].predictor.params), strict=True):
        found[place] = answer
    return found


def _new_gaps(due: Sequence[Due]) -> list[list[tuple[float, float]]]:
    """Return the gaps between phases that each predictor has not seen yet."""
    windows = [one.predictor.recent(one.now_s) for one in due]
    samples, hz, started_s = _joined(windows)
    cycle_s = np.array([one.predictor.period_s or math.nan for one in due])
    found: list[list[tuple[float, float]]] = [[] for _ in due]
    for places, group in group_by_length(samples, hz, started_s):
        phases = find_window_phases(group, cycle_s[places])
        for signal, place in enumerate(places.tolist()):
            predictor = due[place].predictor
            found[place] = predictor.tracker.update(phases, signal, predictor.pyramid.first_s)
    return found


def _joined(windows: Sequence[Window]) -> tuple[Ragged, Reals, Reals]:
    offsets = offsets_of([len(window.bytes_per_s) for window in windows])
    values = np.concatenate([np.zeros(0), *(window.bytes_per_s for window in windows)])
    hz = np.array([window.sampling_hz for window in windows])
    return Ragged(values, offsets), hz, np.array([window.started_s for window in windows])


def _answers(windows: Sequence[Window], params: OnlineParams) -> list[Answer]:
    """Return what the method says of windows."""
    if not windows:
        return []
    samples, hz, started_s = _joined(windows)
    found, refined = detect_periods(samples, hz, started_s, PeriodParams(methods=(params.method,)))[params.method]
    confidence = np.where(np.isnan(refined), found.confidence, refined)
    return [
        Answer(
            window.started_s,
            window.ended_s,
            window.sampling_hz,
            len(window.bytes_per_s),
            params.method,
            str(found.outcome[place]),
            finite_or_none(found.frequency_hz[place]),
            finite_or_none(confidence[place]),
            finite_or_none(found.false_alarm_probability[place]),
        )
        for place, window in enumerate(windows)
    ]
