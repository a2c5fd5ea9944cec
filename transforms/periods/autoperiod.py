"""AUTOPERIOD: periods that stand out in the Lomb-Scargle periodogram and lie on a hill of the autocorrelation.

The periodogram gives hints: periods with a power that white noise rarely reaches. But a periodogram leaks power, and
resolves long periods badly. So each hint is verified on the circular autocorrelation, where a true period is a hill.
The strongest hint on a hill is the period; weaker hints on hills of their own are further periods.

A multiple of a period has no power of its own, and a fraction of a period has no hill. So multiples and fractions need
no rule. But a strong peak leaks power to nearby frequencies, which may lie on other hills; hints that are explained by
leakage of a stronger hint are dropped.

References
----------
J. P. White et al., "Automatic Characterization of HPC Job Parallel Filesystem I/O Patterns", PEARC'18, section 4.2,
doi:10.1145/3219104.3219121
M. Vlachos, P. Yu and V. Castelli, "On Periodicity Detection and Structural Periodic Similarity", SDM'05,
doi:10.1137/1.9781611972757.40
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, places_of, rows_of
from iosig.transforms.periods import autoperiod_hills
from iosig.transforms.periods.autoperiod_analysis import (
    Analysis,
    AutoperiodParams,
    analyze,
    analyze_even,
    compute_false_alarm_probability,
    compute_square_difference,
    resample,
)
from iosig.transforms.periods.autoperiod_periodogram import (
    FrequencyGrid,
    UnevenSignals,
    estimate_steps_s,
)
from iosig.transforms.periods.interface.detections import Candidates, Detections
from iosig.transforms.periods.interface.even_signals import CHUNK_SAMPLES, EvenSignals

Texts = npt.NDArray[np.str_]

#: total transform length of a group of signals [points]
_GROUP_POINTS = 1 << 18
#: above this normalized square difference, a signal repeats exactly, except for rounding
_EXACT = 1.0 - 1e-9
#: samples per batch of cosine fits
_FIT_SAMPLES = 1 << 18
#: minimum number of samples (as in SUPReMM)
_MIN_SAMPLE_COUNT = 20


# ---- hints and hills


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods (periods): row of the signal, period and false-alarm probability; sorted by row and descending power."""

    row: Ints
    period_s: Reals
    probability: Reals


def _find_hints(analysis: Analysis, params: AutoperiodParams) -> tuple[Ints, Ints]:
    """Find row and frequency number of significant powers, sorted by descending power within each row."""
    numbers = params.samples_per_peak + np.arange(analysis.powers.shape[1])
    is_hint = analysis.powers > analysis.thresholds[:, None]
    is_hint &= numbers > params.min_cycle_count * params.samples_per_peak
    is_hint &= 2 * numbers < params.samples_per_peak * analysis.step_counts[:, None]
    row, column = np.nonzero(is_hint)
    order = np.lexsort((-analysis.powers[row, column], row))
    return row[order], numbers[column[order]]


def _hill_windows(analysis: Analysis, row: Ints, number: Ints, params: AutoperiodParams) -> autoperiod_hills.Windows:
    """Choose the range of lags around each hint in which its hill is sought.

    As in SDM'05, a range extends halfway to the next shorter and the next longer period of the discrete Fourier
    transform, plus one lag on both sides. It is widened to the minimum number of lags, but by half a period at most on
    either side, where other hills begin. It ends at half of all lags, beyond which the function is mirrored.
    """
    steps = analysis.step_counts[row]
    cycles = number / params.samples_per_peak
    lag = steps / cycles
    first = np.floor(0.5 * (steps / (cycles + 1.0) + lag) - 1.0)
    last = np.ceil(0.5 * (lag + steps / np.maximum(cycles - 1.0, 0.5)) + 1.0)
    wider = np.maximum(np.ceil((params.min_window - (last - first + 1)) / 2.0), 0.0)
    first = np.maximum(first - wider, np.maximum(np.rint(lag / 2.0), 1.0))
    last = np.minimum(last + wider, np.minimum(np.rint(1.5 * lag), (steps + 1) // 2))
    return autoperiod_hills.Windows(row, first.astype(np.int64), last.astype(np.int64))


def _find_hills(analysis: Analysis, windows: autoperiod_hills.Windows, params: AutoperiodParams) -> tuple[Ints, Ints]:
    """Return the hints that lie on a hill, one per hill, and the lags of the hills' tops.

    A hill rises, then falls, and has its top inside the window. Only the signs of the slopes count, so the unit is
    irrelevant. A significant top exceeds 0 and the valleys on both sides by `hill_standard_errors`.
    """
    keys = np.stack([windows.row, windows.first, windows.last])
    _, unique, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    fits = autoperiod_hills.fit_two_lines(analysis.correlation, rows_of(windows, unique))
    inverse = inverse.ravel()
    rising, falling, top = fits.rising[inverse], fits.falling[inverse], fits.top[inverse]
    is_hill = (rising > 0) & (falling < 0) & (top > windows.first) & (top < windows.last)
    min_height = params.hill_standard_errors * analysis.errors[windows.row]
    is_hill &= analysis.correlation[windows.row, top] > min_height
    # the limits of hints apply to periods, too: more than two steps, and enough cycles
    is_hill &= (top > 2) & (params.min_cycle_count * top < analysis.step_counts[windows.row])
    hints = np.flatnonzero(is_hill)
    # hints are sorted by descending power: keep the first one on each hill
    _, first_hints = np.unique(windows.row[hints] * analysis.correlation.shape[1] + top[hints], return_index=True)
    hints = hints[np.sort(first_hints)]
    prominent = autoperiod_hills.compute_prominence(
        analysis.correlation, windows.row[hints], top[hints], (top[hints] + 1) // 2
    )
    hints = hints[prominent > min_height[hints]]
    return hints, top[hints]


def _refine_lags(analysis: Analysis, windows: autoperiod_hills.Windows, top: Ints, shoulder: float) -> Reals:
    """Refine the tops of hills to fractions of a lag, with a parabola through three lags.

    If the end of a signal does not match its beginning, the tops of the circular autocorrelation are shifted, by a
    tenth of the period at 2.7 cycles. So the parabola is fitted to the normalized square difference, around its highest
    lag in the window. There is no interpolation where the neighbors do not belong to the hill, since narrower hills
    are not resolved, nor where the signal repeats exactly.
    """
    rows, local = np.unique(windows.row, return_inverse=True)
    similarity = compute_square_difference(analysis.bytes_per_s[rows])
    highest = autoperiod_hills.fit_two_lines(similarity, replace(windows, row=local)).top
    top = np.where((highest > windows.first) & (highest < windows.last), highest, top)
    before, middle, after = (similarity[local, top + lag] for lag in (-1, 0, 1))
    curvature = before - 2.0 * middle + after
    is_shaped = (np.minimum(before, after) >= shoulder * middle) & (curvature < 0) & (middle < _EXACT)
    shift = np.zeros(len(top))
    np.divide(0.5 * (before - after), curvature, out=shift, where=is_shaped)
    return top.astype(np.float64) + np.clip(shift, -0.5, 0.5)


def _drop_leakage(row: Ints, cycles: Reals, power: Reals, hints: Ints) -> Bools:
    """Return which hints are not explained by leakage of stronger ones; the first hint of each row is always kept.

    Of a power P, at most ``P / (pi d)**2`` leaks to a frequency d cycles away, and two such waves may add up to four
    times as much.
    """
    starts, ends = np.searchsorted(row, row[hints], side="left"), hints
    counts = ends - starts
    stronger = places_of(starts, counts)
    distance = np.pi * np.abs(cycles[stronger] - np.repeat(cycles[hints], counts))
    leakage = power[stronger] * 4.0 / np.maximum(distance, 1.0) ** 2
    is_explained = np.repeat(power[hints], counts) <= leakage
    owner = np.repeat(np.arange(len(hints)), counts)
    is_first = np.ones(len(hints), dtype=np.bool_)
    is_first[1:] = row[hints[1:]] != row[hints[:-1]]
    is_separate: Bools = is_first | (np.bincount(owner, is_explained, len(hints)) == 0)
    return is_separate


def find_periods(analysis: Analysis, params: AutoperiodParams | None = None) -> Periods:
    """Find all periods of analyzed signals, by descending power within each signal.

    Parameters
    ----------
    analysis : Analysis
    params : AutoperiodParams, optional

    Returns
    -------
    Periods
    """
    params = params or AutoperiodParams()
    windows, top, power = _find_hinted_hills(analysis, params)
    lag = _refine_lags(analysis, windows, top, params.refined_shoulder)
    probability = compute_false_alarm_probability(analysis, windows.row, power)
    return Periods(windows.row, lag * analysis.step_s[windows.row], probability)


def _find_hinted_hills(analysis: Analysis, params: AutoperiodParams) -> tuple[autoperiod_hills.Windows, Ints, Reals]:
    """Return the windows of all hills with a significant hint, their tops, and the powers of the hints."""
    row, number = _find_hints(analysis, params)
    power = analysis.powers[row, number - params.samples_per_peak]
    windows = _hill_windows(analysis, row, number, params)
    on_hills, top = _find_hills(analysis, windows, params)
    is_separate = _drop_leakage(row, number / params.samples_per_peak, power, on_hills)
    on_hills, top = on_hills[is_separate], top[is_separate]
    return rows_of(windows, on_hills), top, power[on_hills]


# ---- steps of one search


@dataclass(frozen=True, slots=True)
class SearchSteps:
    """Intermediate results of the search in one signal, as in Figure 1 of PEARC'18.

    Attributes
    ----------
    frequency_hz, power : (frequencies,)
        Lomb-Scargle periodogram, in units of the variance of white noise.
    threshold : float
        Significant power.
    confidence : float
        Probability that white noise has no power above the threshold.
    lag_s, correlation : (lags,)
        Circular autocorrelation, up to half of all lags, after which it is mirrored.
    hill_lag_s, hill_correlation : (2, 2)
        Ends of the two lines that were fitted to the period's hill: one row per line; no rows without a period.
    """

    frequency_hz: Reals
    power: Reals
    threshold: float
    confidence: float
    lag_s: Reals
    correlation: Reals
    hill_lag_s: Reals
    hill_correlation: Reals


def trace_search(analysis: Analysis, params: AutoperiodParams | None = None) -> SearchSteps:
    """Return the intermediate results of `find_periods` for the first of the analyzed signals.

    Parameters
    ----------
    analysis : Analysis
    params : AutoperiodParams, optional

    Returns
    -------
    SearchSteps
    """
    params = params or AutoperiodParams()
    step_s, step_count = float(analysis.step_s[0]), int(analysis.step_counts[0])
    numbers = params.samples_per_peak + np.arange(int(analysis.counts[0]))
    lags = np.arange(step_count // 2 + 1, dtype=np.float64)
    correlation = analysis.correlation[0, : len(lags)]
    hill_lags, hill_correlation = _fit_first_hill(analysis, params)
    return SearchSteps(
        frequency_hz=numbers / (params.samples_per_peak * step_count * step_s),
        power=analysis.powers[0, : len(numbers)],
        threshold=float(analysis.thresholds[0]),
        confidence=params.confidence,
        lag_s=lags * step_s,
        correlation=correlation,
        hill_lag_s=hill_lags * step_s,
        hill_correlation=hill_correlation,
    )


def _fit_first_hill(analysis: Analysis, params: AutoperiodParams) -> tuple[Reals, Reals]:
    """Return the lags and values at the ends of the two lines through the first signal's hill (2, 2)."""
    windows, _, _ = _find_hinted_hills(analysis, params)
    own = np.flatnonzero(windows.row == 0)[:1]
    if not len(own):
        return np.zeros((0, 2)), np.zeros((0, 2))
    window = rows_of(windows, own)
    fit = autoperiod_hills.fit_two_lines(analysis.correlation, window)
    lags = np.array([[window.first[0], fit.cut[0]], [fit.cut[0], window.last[0]]], dtype=np.float64)
    means = [analysis.correlation[0, int(first) : int(last) + 1].mean() for first, last in lags]
    slopes = np.array([fit.rising[0], fit.falling[0]])
    # a fitted line passes through the mean of its points
    return lags, np.array(means)[:, None] + slopes[:, None] * (lags - lags.mean(axis=1, keepdims=True))


# ---- detections


def detect(samples: UnevenSignals, params: AutoperiodParams | None = None) -> Detections:
    """Detect each signal's period, and further periods as candidates, from unevenly sampled signals.

    Parameters
    ----------
    samples : UnevenSignals
        n signals.
    params : AutoperiodParams, optional

    Returns
    -------
    Detections
        AUTOPERIOD has no confidence: NaN. The outcome is the first that applies of `no_data`, `too_many_gaps`,
        `too_short`, `no_io` (all known samples are 0), `aperiodic` and `periodic`.
    """
    params = params or AutoperiodParams()
    outcome = _classify_untestable(samples, params)
    fitted: list[_FittedPeriods] = []
    for rows in _group_signals(samples, np.flatnonzero(outcome == ""), params):
        group = samples.select(rows)
        fitted.append(_FittedPeriods.from_periods(find_periods(analyze(group, params), params), group, rows))
    return _to_detections(outcome, fitted, samples.start_s, samples.end_s)


def detect_even(signals: EvenSignals, params: AutoperiodParams | None = None) -> Detections:
    """Detect each signal's period, and further periods as candidates, from evenly sampled signals.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    params : AutoperiodParams, optional

    Returns
    -------
    Detections
        As for `detect`. In signals without gaps, times are exact, and each sum is one real transform.
    """
    params = params or AutoperiodParams()
    outcome = _classify_untestable_even(signals, params)
    fitted: list[_FittedPeriods] = []
    testable = np.flatnonzero(outcome == "")
    for chunk, part in signals.select(testable).iter_chunks(CHUNK_SAMPLES // params.samples_per_peak):
        periods = find_periods(analyze_even(part, params), params)
        rows, local = np.unique(periods.row, return_inverse=True)
        periodic = UnevenSignals.from_signals(part.select(rows))
        fitted.append(_FittedPeriods.from_periods(replace(periods, row=local), periodic, testable[chunk][rows]))
    return _to_detections(outcome, fitted, signals.start_s, signals.end_s)


def _group_signals(samples: UnevenSignals, rows: Ints, params: AutoperiodParams) -> Iterator[Ints]:
    """Yield groups of rows with numbers of frequencies that differ by a factor of two at most."""
    span_s, step_s = samples.span_s, estimate_steps_s(samples)
    grid = FrequencyGrid.from_spans(span_s[rows], step_s[rows], params.samples_per_peak)
    sizes: Ints = 4 << np.frexp(grid.counts + params.samples_per_peak)[1].astype(np.int64)
    for size in np.unique(sizes).tolist():
        members = rows[sizes == size]
        step = max(1, _GROUP_POINTS // size)
        for start in range(0, len(members), step):
            yield members[start : start + step]


def _classify_untestable(samples: UnevenSignals, params: AutoperiodParams) -> Texts:
    """Outcomes (n): empty if the signal can be tested."""
    step_s, span_s = estimate_steps_s(samples), samples.span_s
    missing, step_counts = np.zeros(samples.signal_count), np.zeros(samples.signal_count, dtype=np.int64)
    is_usable = (span_s > 0) & np.isfinite(span_s) & (samples.counts >= _MIN_SAMPLE_COUNT)
    for rows in _group_signals(samples, np.flatnonzero(is_usable), params):
        even, step_counts[rows] = resample(samples.select(rows), step_s[rows])
        missing[rows] = 1.0 - np.isfinite(even).sum(axis=1) / (step_counts[rows] + 1)
    is_io = np.bincount(samples.owner, samples.bytes_per_s != 0, samples.signal_count) > 0
    tests = [
        samples.counts == 0,
        missing > params.max_missing_ratio,
        ~is_usable | (step_counts + 1 < _MIN_SAMPLE_COUNT),
        ~is_io,
    ]
    return np.select(tests, ("no_data", "too_many_gaps", "too_short", "no_io"), "").astype("<U16")


def _classify_untestable_even(signals: EvenSignals, params: AutoperiodParams) -> Texts:
    is_known = signals.is_known
    counts = is_known.sum(axis=1)
    is_io = (is_known & (signals.bytes_per_s != 0)).any(axis=1)
    tests = [counts == 0, signals.missing_ratio > params.max_missing_ratio, counts < _MIN_SAMPLE_COUNT, ~is_io]
    return np.select(tests, ("no_data", "too_many_gaps", "too_short", "no_io"), "").astype("<U16")


@dataclass(frozen=True, slots=True)
class _FittedPeriods:
    """Periods of some of the signals, with their best-fitting cosines (periods)."""

    row: Ints
    frequency_hz: Reals
    probability: Reals
    amplitude: Reals
    phase: Reals

    @classmethod
    def from_periods(cls, periods: Periods, samples: UnevenSignals, rows: Ints) -> _FittedPeriods:
        """Fit cosines to the samples; `rows` are the numbers of these signals in the whole batch."""
        frequency = 1.0 / periods.period_s
        return cls(rows[periods.row], frequency, periods.probability, *_fit_cosines(samples, periods.row, frequency))


def _to_detections(outcome: Texts, parts: list[_FittedPeriods], start_s: Reals, end_s: Reals) -> Detections:
    """Convert periods to detections; `outcome` (n) is empty where a signal was tested."""
    row = np.concatenate([np.zeros(0, dtype=np.int64), *(part.row for part in parts)])
    order = np.argsort(row, kind="stable")
    frequency, probability, amplitude, phase = (
        np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])[order]
        for name in ("frequency_hz", "probability", "amplitude", "phase")
    )
    offsets = np.searchsorted(row[order], np.arange(len(outcome) + 1)).astype(np.int64)
    is_periodic, unknown = np.diff(offsets) > 0, np.full(len(row), np.nan)
    period_hz, confidence, false_alarm = np.full((3, len(outcome)), np.nan)
    period_hz[is_periodic] = frequency[offsets[:-1][is_periodic]]
    false_alarm[is_periodic] = probability[offsets[:-1][is_periodic]]
    tested = np.where(is_periodic, "periodic", "aperiodic")
    outcome = np.where(outcome == "", tested, outcome).astype("<U16")
    candidates = Candidates(frequency, unknown, amplitude, phase, offsets)
    return Detections(outcome, period_hz, confidence, start_s, end_s, false_alarm, candidates)


def _fit_cosines(samples: UnevenSignals, row: Ints, frequency_hz: Reals) -> tuple[Reals, Reals]:
    """Amplitude and phase of the best-fitting cosine at each frequency (n), without the mean."""
    amplitude, phase = np.full((2, len(row)), np.nan)
    counts = samples.counts[row]
    ends = np.cumsum(counts)
    start = 0
    while start < len(row):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] - counts[start] + _FIT_SAMPLES, side="right")))
        part = slice(start, stop)
        amplitude[part], phase[part] = _fit_batch(samples.select(row[part]), frequency_hz[part])
        start = stop
    return amplitude, phase


def _fit_batch(samples: UnevenSignals, frequency_hz: Reals) -> tuple[Reals, Reals]:
    owner, count = samples.owner, samples.signal_count
    largest = np.zeros(count)
    largest[samples.counts > 0] = np.maximum.reduceat(
        np.abs(samples.bytes_per_s), samples.offsets[:-1][samples.counts > 0]
    )
    values = samples.bytes_per_s / np.where(largest > 0, largest, 1.0)[owner]
    values = values - (np.bincount(owner, values, count) / np.maximum(samples.counts, 1))[owner]
    angle = 2.0 * np.pi * frequency_hz[owner] * (samples.time_s - samples.start_s[owner])
    cosine, sine = np.cos(angle), np.sin(angle)
    cc, ss, cs = (np.bincount(owner, item, count) for item in (cosine * cosine, sine * sine, cosine * sine))
    xc, xs = np.bincount(owner, values * cosine, count), np.bincount(owner, values * sine, count)
    determinant = cc * ss - cs * cs
    scale = np.full(count, np.nan)
    np.divide(largest, determinant, out=scale, where=determinant > 1e-9 * np.maximum(samples.counts, 1))
    along, across = (xc * ss - xs * cs) * scale, (xs * cc - xc * cs) * scale
    return np.hypot(along, across), np.arctan2(-across, along)
