"""Search many signals for periods with several methods, and measure how periodic the signals are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.periods import periodicity
from iosig.transforms.periods.interface.detections import Candidates, Detections, Segments, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.periods.periodicity import Periodicity
from iosig.transforms.periods.windows import clip_samples
from iosig.transforms.throughput.requests import Steps

if TYPE_CHECKING:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams
    from iosig.transforms.periods.autoperiod_analysis import AutoperiodParams
    from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals
    from iosig.transforms.periods.ftio import DftParams


#: all methods, the default first
METHODS = ("null_tested", "dft", "autocorrelation", "merged", "autoperiod")
#: FTIO's methods, which analyze the time from the first to the last I/O
FTIO_METHODS = ("dft", "autocorrelation", "merged")
#: values of a sampled throughput: `instants`, rates at the sample times, as in FTIO's paper; `bins`, mean rates over
#: sample intervals
Sampling = Literal["instants", "bins"]
#: samples of measured intervals: `intervals`, their mean rates, at uneven times; `bins`, mean rates over even steps
IntervalSampling = Literal["intervals", "bins"]
#: method -> the detections of n signals, and FTIO's refined confidence (n)
Results = dict[str, tuple[Detections, Reals]]
#: maximum relative difference in length of signals that are padded to form one group
_PADDING_RATIO = 0.25
#: relative error of rounding
_ROUNDING = 1e-9
#: minimum number of cycles within the window: 2, with a margin for rounding
_MIN_CYCLES = 2 - _ROUNDING


@dataclass(frozen=True, slots=True)
class PeriodParams:
    """Methods of the search for periods, and their parameters.

    Attributes
    ----------
    methods : tuple of str
        Any of `METHODS`.
    max_missing_ratio : float
        Maximum fraction of unmeasured samples (ours: the papers have no gaps).
    sampling : str
        How callers sample an exact throughput for `FTIO_METHODS` (section II-B: at instants; mean rates are ours).
    interval_sampling : str
        How callers give intervals at uneven times to AUTOPERIOD (PEARC'18 section 4.2: as measured; even steps are
        those of SUPReMM, its code).
    null_tested, dft, autocorrelation, autoperiod : optional
        Parameters of each method; None for its defaults.
    """

    methods: tuple[str, ...] = METHODS
    max_missing_ratio: float = 0.5
    sampling: Sampling = "instants"
    interval_sampling: IntervalSampling = "intervals"
    null_tested: NullModelParams | None = None
    dft: DftParams | None = None
    autocorrelation: AutocorrelationParams | None = None
    autoperiod: AutoperiodParams | None = None


@dataclass(frozen=True, slots=True)
class Periods:
    """Result of one method for n signals.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    detections : Detections
        The detected periods.
    refined_confidence : (n,)
        FTIO's refined confidence; NaN where missing.
    periodicity : Periodicity
        Similarity of the periods to each other within the window of each detection.
    segments : Segments or None
        All periods of each signal, if the method can find several.
    """

    method: str
    detections: Detections
    refined_confidence: Reals
    periodicity: Periodicity
    segments: Segments | None = None

    @property
    def burst_width_s(self) -> Reals:
        """Width of a burst of each signal (n); NaN where unknown."""
        width_s = np.full(self.detections.signal_count, np.nan)
        if self.segments is not None:
            main = np.flatnonzero(self.segments.is_main)
            width_s[self.segments.owner[main]] = self.segments.burst_width_s[main]
        return width_s


def find_periods(
    samples: Ragged,
    sampling_hz: Reals,
    start_s: Reals,
    params: PeriodParams | None = None,
    steps: Steps | None = None,
) -> list[Periods]:
    """Find the periods of signals with each method.

    Parameters
    ----------
    samples : Ragged
        n signals, in bytes per second, NaN where not measured.
    sampling_hz, start_s : (n,)
        Sampling frequency, and time of the first sample.
    params : PeriodParams, optional
    steps : Steps, optional
        The signals as exact step functions, from which to measure the periodicity. By default it is measured from the
        samples; each one holds until the next.

    Returns
    -------
    list of Periods
        One per method.
    """
    params = params or PeriodParams()
    results = []
    for method, (detected, refined) in detect_periods(samples, sampling_hz, start_s, params).items():
        detections, segments = detected, None
        if method == "null_tested":
            from iosig.transforms.periods.null_model.segments import find_segments

            null_model_params = params.null_tested or NullModelParams()
            detections, segments = find_segments(detected, samples, sampling_hz, start_s, null_model_params)
        periodicity = measure_periodicity(detections, samples, sampling_hz, start_s, steps)
        results.append(Periods(method, detections, refined, periodicity, segments))
    return results


def find_uneven_periods(
    intervals: UnevenSignals, samples: Ragged, sampling_hz: Reals, start_s: Reals, params: PeriodParams | None = None
) -> Periods:
    """Find the periods of intervals at uneven times with AUTOPERIOD.

    Parameters
    ----------
    intervals : UnevenSignals
        n signals.
    samples, sampling_hz, start_s, params
        The signals in even steps, as for `find_periods`. They determine the missing time and the periodicity.

    Returns
    -------
    Periods
    """
    from iosig.transforms.periods import autoperiod

    params = params or PeriodParams()
    counts = samples.counts
    end_s = start_s + counts / sampling_hz
    detected = autoperiod.detect(intervals, params.autoperiod)
    # without measurements, the window of the intervals is NaN
    detected = replace(detected, window_start_s=np.fmax(detected.window_start_s, start_s))
    detected = replace(detected, window_end_s=np.fmin(detected.window_end_s, end_s))
    sound = _reject_unsound(detected, end_s, _count_measurements(samples), counts, params)
    periodicity = measure_periodicity(sound, samples, sampling_hz, start_s, None)
    return Periods("autoperiod", sound, np.full(len(counts), np.nan), periodicity)


def detect_periods(samples: Ragged, sampling_hz: Reals, start_s: Reals, params: PeriodParams | None = None) -> Results:
    """Detect one period per signal and method: that of the first segment found.

    Parameters
    ----------
    samples, sampling_hz, start_s, params
        As for `find_periods`.

    Returns
    -------
    dict of str to (Detections, (n,))
        Detections and refined confidence of each method.
    """
    params = params or PeriodParams()
    by_method: Results = {}
    if set(params.methods) - {"null_tested"}:
        by_method |= _apply_by_length(_run_exact_methods, samples, sampling_hz, start_s, params)
    if "null_tested" in params.methods:
        by_method |= _apply_by_length(_run_methods_on_padding, samples, sampling_hz, start_s, params)
    known_counts = _count_measurements(samples)
    counts = samples.counts
    results: Results = {}
    for method in (name for name in METHODS if name in params.methods):
        detections, refined = by_method[method]
        sound = _reject_unsound(detections, start_s + counts / sampling_hz, known_counts, counts, params)
        results[method] = sound, np.where(sound.is_periodic, refined, np.nan)
    return results


def _apply_by_length(
    run_methods: Callable[[EvenSignals, PeriodParams], Results],
    samples: Ragged,
    sampling_hz: Reals,
    start_s: Reals,
    params: PeriodParams,
) -> Results:
    """Run methods on groups of signals of similar length, and restore the order of the signals."""
    padding = _PADDING_RATIO if run_methods is _run_methods_on_padding else 0.0
    signals, parts = [], []
    for numbers, group in group_by_length(samples, sampling_hz, start_s, padding):
        signals.append(numbers)
        parts.append(run_methods(group, params))
    # without signals each method returns an empty result
    parts = parts or [run_methods(EvenSignals(np.zeros((0, 0)), np.zeros(0), np.zeros(0)), params)]
    signals = signals or [np.zeros(0, dtype=np.int64)]
    order = np.argsort(np.concatenate(signals), kind="stable")
    return {
        method: (
            gather([part[method][0] for part in parts], signals),
            np.concatenate([part[method][1] for part in parts])[order],
        )
        for method in parts[0]
    }


def _run_methods_on_padding(group: EvenSignals, params: PeriodParams) -> Results:
    """Run the methods that ignore missing samples after the end of a signal."""
    from iosig.transforms.periods.null_model import detection

    detections = detection.detect(group, params.null_tested or NullModelParams())
    return {"null_tested": (detections, np.full(group.signal_count, np.nan))}


def _run_exact_methods(group: EvenSignals, params: PeriodParams) -> Results:
    """Run the other methods on signals of one length."""
    selected = set(params.methods)
    unknown = np.full(group.signal_count, np.nan)
    results = {}
    # Lazy imports: most calls run one method.
    if selected & {"dft", "merged"}:
        from iosig.transforms.periods import ftio

        results["dft"] = ftio.detect(group, params.dft), unknown
    if selected & {"autocorrelation", "merged"}:
        from iosig.transforms.periods import autocorrelation

        results["autocorrelation"] = autocorrelation.detect(group, params.autocorrelation), unknown
    if "merged" in selected:
        transform = results["dft"][0]
        results["merged"] = transform, refine_confidence(transform, results["autocorrelation"][0])
    if "autoperiod" in selected:
        from iosig.transforms.periods import autoperiod

        results["autoperiod"] = autoperiod.detect_even(group, params.autoperiod), unknown
    return results


def _count_measurements(samples: Ragged) -> Ints:
    counts = samples.counts
    owner = samples.owner
    return np.bincount(owner[np.isfinite(samples.values)], minlength=len(counts)).astype(np.int64)


def _reject_unsound(
    detections: Detections, end_s: Reals, known_counts: Ints, counts: Ints, params: PeriodParams
) -> Detections:
    """Reject detections in mostly unmeasured signals, or with too few cycles."""
    bounded = replace(detections, window_end_s=np.minimum(detections.window_end_s, end_s))
    is_gappy = (known_counts > 0) & (counts - known_counts > params.max_missing_ratio * counts)
    with np.errstate(invalid="ignore"):
        cycles = (bounded.window_end_s - bounded.window_start_s) * bounded.frequency_hz
        has_few_cycles = cycles < _MIN_CYCLES
    return bounded.reject(has_few_cycles, "aperiodic").reject(is_gappy, "too_many_gaps")


def measure_periodicity(
    detections: Detections, samples: Ragged, sampling_hz: Reals, start_s: Reals, steps: Steps | None
) -> Periodicity:
    """Measure the periodicity of each signal within the window of its detection.

    Parameters
    ----------
    detections : Detections
        Detections in n signals.
    samples, sampling_hz, start_s, steps
        As for `find_periods`.

    Returns
    -------
    Periodicity
    """
    if steps is not None:
        return periodicity.characterize_steps(
            steps, detections.window_start_s, detections.window_end_s, detections.frequency_hz
        )
    clipped, _ = clip_samples(samples, sampling_hz, start_s, detections.window_start_s, detections.window_end_s)
    return periodicity.characterize_samples(clipped, sampling_hz, detections.frequency_hz)


# ---- transform and autocorrelation together


def refine_confidence(transform: Detections, autocorrelation: Detections) -> Reals:
    """Refine the confidence in the periods of the transform by means of the autocorrelation.

    Parameters
    ----------
    transform, autocorrelation : Detections
        Detections of both methods in the same n signals.

    Returns
    -------
    (n,)
        FTIO's ``(c_d + c_a + c_s) / 3``, from 0 to 1, where c_s is the similarity of the two periods; NaN unless the
        transform found a period.

    Notes
    -----
    The paper trusts the transform more: the autocorrelation is "used to adjust the confidence". So period, outcome and
    candidates do not change.

    c_a and c_s are 0 if the autocorrelation finds no period, or one whose frequency differs by more than the
    transform's resolution, the inverse of the window (ours). The paper's average is for methods that "found a similar
    solution". It is pooled over all candidates of the autocorrelation, so without this rule a confident
    autocorrelation at twice the period would raise the confidence.

    References
    ----------
    A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C,
    doi:10.1109/IPDPS57955.2024.00048
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        resolution_hz = 1.0 / (transform.window_end_s - transform.window_start_s)
        distance_hz = np.abs(transform.frequency_hz - autocorrelation.frequency_hz)
        is_contradicted = distance_hz > resolution_hz * (1.0 + _ROUNDING)
    is_confirmed = autocorrelation.is_periodic & ~is_contradicted
    similarity = compute_similarity(transform.period_s, autocorrelation.candidates)
    terms = [
        transform.confidence,
        np.where(is_confirmed, autocorrelation.confidence, 0.0),
        np.where(is_confirmed, similarity, 0.0),
    ]
    with np.errstate(invalid="ignore"):
        mean = np.clip(np.sum(terms, axis=0) / len(terms), 0.0, 1.0)
    return np.where(transform.is_periodic, mean, np.nan)


def compute_similarity(period_s: Reals, candidates: Candidates) -> Reals:
    """Compute the similarity of each period to its signal's candidates: 1 minus their joint coefficient of variation.

    Parameters
    ----------
    period_s : (n,)
    candidates : Candidates

    Returns
    -------
    (n,)
        From 0 to 1; NaN without candidates.

    Notes
    -----
    FTIO, section II-C: 111.67 s has a similarity of 97.6 % to five candidates about 104.8 s, and 25.73 s of 99.7 % to
    a single candidate of 25.6 s.
    """
    counts = candidates.counts
    owner = candidates.owner
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        others = 1.0 / candidates.frequency_hz
        # scaled by the longest period, so that no square overflows
        longest = period_s.astype(np.float64)
        np.maximum.at(longest, owner, others)
        relative_period, others = period_s / longest, others / longest[owner]
        mean = (np.bincount(owner, others, len(counts)) + relative_period) / (counts + 1.0)
        squares = np.bincount(owner, np.square(others - mean[owner]), len(counts)) + np.square(relative_period - mean)
        similarity = 1.0 - np.sqrt(squares / (counts + 1.0)) / mean
    return np.where(counts > 0, np.clip(similarity, 0.0, 1.0), np.nan)
