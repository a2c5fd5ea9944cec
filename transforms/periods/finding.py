"""Periods of many signals by every method, and how alike the periods are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.periods import periodicity
from iosig.transforms.periods.answers import Candidates, Detections, Segments, gathered
from iosig.transforms.periods.even_signals import EvenSignals, by_length
from iosig.transforms.periods.periodicity import Periodicity
from iosig.transforms.periods.windows import clipped_samples
from iosig.transforms.throughput.requests import Steps

if TYPE_CHECKING:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams
    from iosig.transforms.periods.autoperiod import AutoperiodParams
    from iosig.transforms.periods.controlled import ControlledParams
    from iosig.transforms.periods.ftio import DftParams


#: every method, the default first
METHODS = ("controlled", "dft", "autocorrelation", "merged", "autoperiod")
#: what methods say of signals (n): their answers, and the refined confidence (n)
Answers = dict[str, tuple[Detections, Reals]]
#: signals that are judged together differ in length by no more than this: fewer groups, and little to skip
_PADDING_RATIO = 0.25
#: two full cycles, but for rounding
_LEAST_CYCLES = 2 - 1e-9


@dataclass(frozen=True, slots=True)
class PeriodParams:
    """How periods are sought.

    methods: which of `METHODS`. max_missing_ratio: the share of a signal that may not have been measured (ours: the
    papers have no gaps). The rest: the parameters of each method, its own defaults where None.
    """

    methods: tuple[str, ...] = METHODS
    max_missing_ratio: float = 0.5
    controlled: ControlledParams | None = None
    dft: DftParams | None = None
    autocorrelation: AutocorrelationParams | None = None
    autoperiod: AutoperiodParams | None = None


@dataclass(frozen=True, slots=True)
class Periods:
    """What one method says of n signals.

    detections: its answers. refined_confidence (n): FTIO's, NaN where there is none. periodicity: how alike the
    periods are, over each answer's own window. segments: all periods of each signal, where the method looks for more
    than one.
    """

    method: str
    detections: Detections
    refined_confidence: Reals
    periodicity: Periodicity
    segments: Segments | None = None

    @property
    def burst_width_s(self) -> Reals:
        """How long a burst is (n); NaN where that is not known."""
        found = np.full(self.detections.signal_count, np.nan)
        if self.segments is not None:
            at = np.flatnonzero(self.segments.is_main)
            found[self.segments.owner[at]] = self.segments.burst_width_s[at]
        return found


def find(
    samples: Ragged,
    sampling_hz: Reals,
    started_s: Reals,
    params: PeriodParams | None = None,
    steps: Steps | None = None,
) -> list[Periods]:
    """Return what each method says of n signals.

    samples: in bytes per second, NaN where not measured. sampling_hz, started_s (n). steps: the signals exactly, if
    they are known so: then the periods are compared on them, else on the samples, each of which holds until the next.
    """
    params = params or PeriodParams()
    answers = []
    for method, (found, refined) in detect(samples, sampling_hz, started_s, params).items():
        detections, segments = found, None
        if method == "controlled":
            from iosig.transforms.periods import controlled, controlled_segments

            own = params.controlled or controlled.ControlledParams()
            detections, segments = controlled_segments.sought(found, samples, sampling_hz, started_s, own)
        alike = compared(detections, samples, sampling_hz, started_s, steps)
        answers.append(Periods(method, detections, refined, alike, segments))
    return answers


def detect(samples: Ragged, sampling_hz: Reals, started_s: Reals, params: PeriodParams | None = None) -> Answers:
    """Return each method's answers and refined confidence (n): one period each, that of the first segment found."""
    params = params or PeriodParams()
    answers: Answers = {}
    if set(params.methods) - {"controlled"}:
        answers |= _of_groups(_exact_answers, samples, sampling_hz, started_s, params)
    if "controlled" in params.methods:
        answers |= _of_groups(_padded_answers, samples, sampling_hz, started_s, params)
    known = _known_counts(samples)
    counts = samples.counts
    found: Answers = {}
    for method in (name for name in METHODS if name in params.methods):
        answer, refined = answers[method]
        detections = _judged(answer, started_s + counts / sampling_hz, known, counts, params)
        found[method] = detections, np.where(detections.is_periodic, refined, np.nan)
    return found


def _of_groups(
    answers: Callable[[EvenSignals, PeriodParams], Answers],
    samples: Ragged,
    sampling_hz: Reals,
    started_s: Reals,
    params: PeriodParams,
) -> Answers:
    """Return what some methods say of signals of any length, which are judged in groups."""
    padding = _PADDING_RATIO if answers is _padded_answers else 0.0
    places, parts = [], []
    for place, group in by_length(samples, sampling_hz, started_s, padding):
        places.append(place)
        parts.append(answers(group, params))
    # without any signal each method says nothing of none
    parts = parts or [answers(EvenSignals(np.zeros((0, 0)), np.zeros(0), np.zeros(0)), params)]
    places = places or [np.zeros(0, dtype=np.int64)]
    order = np.argsort(np.concatenate(places), kind="stable")
    return {
        method: (
            gathered([part[method][0] for part in parts], places),
            np.concatenate([part[method][1] for part in parts])[order],
        )
        for method in parts[0]
    }


def _padded_answers(group: EvenSignals, params: PeriodParams) -> Answers:
    """Return what the methods say to which samples behind the end that were not measured are nothing."""
    from iosig.transforms.periods import controlled

    found = controlled.detect(group, params.controlled or controlled.ControlledParams())
    return {"controlled": (found, np.full(group.signal_count, np.nan))}


def _exact_answers(group: EvenSignals, params: PeriodParams) -> Answers:
    """Return what the other methods say of signals of one length, with the refined confidence (n)."""
    wanted = set(params.methods)
    none = np.full(group.signal_count, np.nan)
    found = {}
    # Each method is imported where it is run: most calls want one.
    if wanted & {"dft", "merged"}:
        from iosig.transforms.periods import ftio

        found["dft"] = ftio.detect(group, params.dft), none
    if wanted & {"autocorrelation", "merged"}:
        from iosig.transforms.periods import autocorrelation as autocorrelations

        found["autocorrelation"] = autocorrelations.detect(group, params.autocorrelation), none
    if "merged" in wanted:
        transform = found["dft"][0]
        found["merged"] = transform, refined_confidence(transform, found["autocorrelation"][0])
    if "autoperiod" in wanted:
        from iosig.transforms.periods import autoperiod

        found["autoperiod"] = autoperiod.detect_even(group, params.autoperiod), none
    return found


def _known_counts(samples: Ragged) -> Ints:
    counts = samples.counts
    owner = samples.owner
    return np.bincount(owner[np.isfinite(samples.values)], minlength=len(counts)).astype(np.int64)


def _judged(answer: Detections, ended_s: Reals, known: Ints, counts: Ints, params: PeriodParams) -> Detections:
    """Return answers without those that no method should give: of what is mostly missing, or of too few cycles."""
    own = replace(answer, window_end_s=np.minimum(answer.window_end_s, ended_s))
    is_gappy = (known > 0) & (counts - known > params.max_missing_ratio * counts)
    with np.errstate(invalid="ignore"):
        cycles = (own.window_end_s - own.window_start_s) * own.frequency_hz
        is_short = cycles < _LEAST_CYCLES
    return own.denied(is_short, "aperiodic").denied(is_gappy, "too_many_gaps")


def compared(
    found: Detections, samples: Ragged, sampling_hz: Reals, started_s: Reals, steps: Steps | None
) -> Periodicity:
    """Return how alike the periods of each signal are, within the window of its answer."""
    if steps is not None:
        return periodicity.of_steps(steps, found.window_start_s, found.window_end_s, found.frequency_hz)
    within, _ = clipped_samples(samples, sampling_hz, started_s, found.window_start_s, found.window_end_s)
    return periodicity.of_samples(within, sampling_hz, found.frequency_hz)


# ---- two methods' answers as one


def refined_confidence(transform: Detections, autocorrelation: Detections) -> Reals:
    """Return the confidence in the transform's periods as the autocorrelation refines it (n); NaN unless periodic.

    FTIO's (c_d + c_a + c_s) / 3 (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section
    II-C), from 0 to 1, c_s being how alike the two methods' periods are.

    The transform's result is trusted more, and the autocorrelation "used to adjust the confidence": the period, the
    outcome and the candidates stay as they are. Where the autocorrelation finds no period, nothing supports the
    transform's: c_a and c_s count as 0, and c_d / 3 is left. Where the transform finds none there is none to
    refine.
    """
    is_both = transform.is_periodic & autocorrelation.is_periodic
    similarity = similarities(transform.period_s, autocorrelation.candidates)
    parts = [
        transform.confidence,
        np.where(autocorrelation.is_periodic, autocorrelation.confidence, 0.0),
        np.where(is_both, similarity, 0.0),
    ]
    with np.errstate(invalid="ignore"):
        mean = np.clip(np.sum(parts, axis=0) / len(parts), 0.0, 1.0)
    return np.where(transform.is_periodic, mean, np.nan)


def similarities(period_s: Reals, candidates: Candidates) -> Reals:
    """Return how alike each period is to the candidates of its signal (n), from 0 to 1; NaN where it has none.

    1 - the coefficient of variation of the candidates' periods and the period itself, all together (section II-C; so
    111.67 s is 97.6 % alike to five candidates about 104.8 s, and 25.73 s 99.7 % to a single one of 25.6 s).
    """
    counts = candidates.counts
    owner = candidates.owner
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        others = 1.0 / candidates.frequency_hz
        # in units of the longest: no square leaves the range of a float
        longest = period_s.astype(np.float64)
        np.maximum.at(longest, owner, others)
        own, others = period_s / longest, others / longest[owner]
        mean = (np.bincount(owner, others, len(counts)) + own) / (counts + 1.0)
        squares = np.bincount(owner, np.square(others - mean[owner]), len(counts)) + np.square(own - mean)
        found = 1.0 - np.sqrt(squares / (counts + 1.0)) / mean
    return np.where(counts > 0, np.clip(found, 0.0, 1.0), np.nan)
