"""Compute the input of AUTOPERIOD: Lomb-Scargle periodograms with significant powers, and circular autocorrelations.

The method itself and the references are in `iosig.transforms.periods.autoperiod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods import autocorrelation, autoperiod_hills, autoperiod_periodogram
from iosig.transforms.periods.autoperiod_periodogram import (
    FrequencyGrid,
    SamplingTerms,
    UnevenSignals,
    estimate_steps_s,
)
from iosig.transforms.periods.interface.even_signals import EvenSignals

#: how the significant power is determined
Significance = Literal["exponential", "monte_carlo", "permutation_test"]
#: published confidence by significance: that of SUPReMM, the code of PEARC'18; that of SDM'05; that of SDM'05 (ours)
CONFIDENCE: Mapping[Significance, float] = {"exponential": 0.9, "monte_carlo": 0.99, "permutation_test": 0.99}
#: minimum distance of consecutive uneven samples that counts as a gap [steps] (ours: a lost poll gives a distance of
#: 1.5, since the next poll counts its bytes; a missing sample gives 2)
_MAX_GAP_STEPS = 1.75


@dataclass(frozen=True, slots=True)
class AutoperiodParams:
    """Parameters of AUTOPERIOD: significance of hints, size of hills, and limits of the search.

    Attributes
    ----------
    significance : str
        How the significant power is determined. `exponential`: as if all frequencies were independent (PEARC'18 section
        4.2, after Horne & Baliunas). `monte_carlo`: from the maximum powers of random permutations of the samples
        (SDM'05 section 3.1: of 100 maxima in ascending order, the 99th at 99 %). White noise exceeds that one with a
        probability of 2 / 101. `permutation_test` (ours): the lowest maximum that it exceeds with a probability of at
        most 1 - confidence.
    confidence : float
        Probability that white noise has no power above the significant power (0.9, as in SUPReMM, the code of
        PEARC'18; `CONFIDENCE` has the published one by significance).
    permutation_count : int
        Permutations per signal (SDM'05: 100).
    seed : int
        Seed of the permutations; the generator restarts with each signal, so that signals are independent.
    samples_per_peak : int
        Frequencies within the width of a spectral peak (5, as in astropy and so in SUPReMM).
    min_cycle_count : float
        The span must exceed this number of cycles (2, as in SUPReMM).
    min_window : int
        Minimum number of lags in which a hill is sought (6, as in SUPReMM).
    hill_standard_errors : float
        Minimum height of a hill above 0, and above the valleys half a period to either side, in standard errors of the
        autocorrelation of white noise (ours: 1.96, the 95 % band of Box & Jenkins. SUPReMM requires an angle of 0.9
        degrees, which depends on the unit of time).
    refined_shoulder : float
        Minimum height of both neighbors of a top, relative to the top, for an interpolation between lags (ours: half;
        a narrower hill does not show its shape). With 0, all tops are interpolated; with a value above 1, none are.
    max_missing_ratio : float
        Maximum fraction of missing samples (ours: above 2/3, at random, a lag has less than a tenth of its pairs).

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    significance: Significance = "exponential"
    confidence: float = 0.9
    permutation_count: int = 100
    seed: int = 0
    samples_per_peak: int = autoperiod_periodogram.SAMPLES_PER_PEAK
    min_cycle_count: float = 2.0
    min_window: int = 6
    hill_standard_errors: float = 1.96
    refined_shoulder: float = 0.5
    max_missing_ratio: float = 2.0 / 3.0

    def __post_init__(self) -> None:
        if self.significance not in get_args(Significance):
            raise ValueError(f"significance must be one of {get_args(Significance)}")
        if not 0 < self.confidence < 1:
            raise ValueError("confidence must be between 0 and 1")
        if self.has_permutations and self.rank > self.permutation_count:
            raise ValueError("permutation_count is too small for this confidence")
        if self.samples_per_peak < 1 or self.min_window < autoperiod_hills.MIN_WINDOW:
            raise ValueError(
                f"samples_per_peak must be at least 1, and min_window at least {autoperiod_hills.MIN_WINDOW}"
            )
        if not self.min_cycle_count >= 1:
            raise ValueError("min_cycle_count must be at least 1")

    @property
    def has_permutations(self) -> bool:
        """Whether the significant power is determined from permutations."""
        return self.significance != "exponential"

    @property
    def rank(self) -> int:
        """Rank, in ascending order, of the permutation maximum that is the threshold."""
        # under white noise, the signal is an additional permutation
        count = self.permutation_count + (self.significance == "permutation_test")
        return int(np.ceil(self.confidence * count - 1e-9))


@dataclass(frozen=True, slots=True)
class Analysis:
    """Periodograms and circular autocorrelations of n signals.

    Attributes
    ----------
    powers : (n, frequencies)
        NaN beyond the signal's last frequency; frequency j is ``(samples_per_peak + j) / (samples_per_peak * span)``.
    counts : (n,)
        Number of frequencies.
    thresholds : (n,)
        Significant power.
    maxima : (n, permutations)
        Maximum power of each permutation, ascending; no columns without permutations.
    bytes_per_s, correlation : (n, lags)
        Evenly sampled values, NaN in gaps, and their autocorrelation; NaN beyond the signal's last lag.
    step_counts, step_s : (n,)
        Number of lags in the span, and the step between lags.
    errors : (n,)
        Standard error of the autocorrelation under white noise.
    """

    powers: Reals
    counts: Ints
    thresholds: Reals
    maxima: Reals
    bytes_per_s: Reals
    correlation: Reals
    step_counts: Ints
    step_s: Reals
    errors: Reals


def analyze(samples: UnevenSignals, params: AutoperiodParams | None = None) -> Analysis:
    """Compute periodogram and autocorrelation of unevenly sampled signals, as `detect` does.

    Parameters
    ----------
    samples : UnevenSignals
        n signals.
    params : AutoperiodParams, optional

    Returns
    -------
    Analysis
    """
    params = params or AutoperiodParams()
    step_s = estimate_steps_s(samples)
    grid = FrequencyGrid.from_spans(samples.span_s, step_s, params.samples_per_peak)
    turns, standard = (
        autoperiod_periodogram.count_turns(samples, grid),
        autoperiod_periodogram.standardize_uneven(samples),
    )
    terms = autoperiod_periodogram.compute_uneven_terms(turns, samples.offsets, grid)
    sums = autoperiod_periodogram.compute_uneven_sums(turns, standard, samples.offsets, grid)
    powers = terms.compute_powers(sums, autoperiod_periodogram.compute_variances(standard, samples))
    powers[~grid.has_frequency] = np.nan
    maxima = np.zeros((samples.signal_count, 0))
    if params.has_permutations:
        rows = range(samples.signal_count)
        maxima = np.stack([_permute_uneven(row, samples, turns, terms, grid, params) for row in rows])
    even, step_counts = resample(samples, step_s)
    return Analysis(
        powers,
        grid.counts,
        _power_thresholds(grid.counts, maxima, params),
        maxima,
        even,
        _correlate(even, step_counts),
        step_counts,
        np.where(step_counts > 0, samples.span_s / np.maximum(step_counts, 1), np.nan),
        _standard_errors(np.isfinite(even).sum(axis=1), step_counts + 1),
    )


def analyze_even(signals: EvenSignals, params: AutoperiodParams | None = None) -> Analysis:
    """Compute periodogram and autocorrelation of evenly sampled signals, as `detect_even` does.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    params : AutoperiodParams, optional

    Returns
    -------
    Analysis
    """
    params = params or AutoperiodParams()
    is_known, count = signals.is_known, signals.sample_count
    standard = autoperiod_periodogram.standardize(signals.bytes_per_s, is_known)
    # Complete signals have the same times.
    is_whole = bool(is_known.all())
    terms = autoperiod_periodogram.compute_even_terms(is_known[:1] if is_whole else is_known, params.samples_per_peak)
    powers = autoperiod_periodogram.compute_even_powers(standard, terms, params.samples_per_peak)
    counts = np.full(len(powers), powers.shape[1])
    maxima = np.zeros((len(powers), 0))
    if params.has_permutations:
        rows = range(len(powers))
        maxima = np.stack([_permute_even(standard[i], is_known[i], terms.select_row(i), params) for i in rows])
    step_counts = np.full(len(powers), count - 1)
    values = np.where(is_known, signals.bytes_per_s, np.nan)
    return Analysis(
        powers,
        counts,
        _power_thresholds(counts, maxima, params),
        maxima,
        values,
        _correlate(values, step_counts),
        step_counts,
        1.0 / signals.sampling_hz,
        _standard_errors(is_known.sum(axis=1), step_counts + 1),
    )


def resample(samples: UnevenSignals, step_s: Reals) -> tuple[Reals, Ints]:
    """Interpolate unevenly sampled signals linearly on even grids.

    Parameters
    ----------
    samples : UnevenSignals
        n signals.
    step_s : (n,)
        Approximate step of each signal's grid.

    Returns
    -------
    values : (n, points)
        Values from the first to the last sample; NaN after the last point of a signal's grid, and in gaps, except
        within half a step of a sample.
    counts : (n,)
        Number of steps.
    """
    span_s = samples.span_s
    steps = np.zeros(len(span_s))
    np.divide(span_s, step_s, out=steps, where=step_s > 0)
    counts = np.where(np.isfinite(steps), np.rint(steps), 0.0).astype(np.int64)
    exact_step_s = np.where(counts > 0, span_s / np.maximum(counts, 1), 1.0)
    owner, width = samples.owner, int(counts.max(initial=0)) + 1
    if not len(owner):
        return np.full((len(span_s), width), np.nan), counts
    first = samples.time_s[samples.offsets[:-1].clip(max=len(owner) - 1)]
    position = np.minimum((samples.time_s - first[owner]) / exact_step_s[owner], counts[owner])
    # number of samples up to each point, which gives the last sample at or before it
    cell = owner * width + np.ceil(position).astype(np.int64)
    sample_counts = np.cumsum(np.bincount(cell, minlength=len(span_s) * width).reshape(-1, width), axis=1)
    last = np.maximum(samples.offsets[1:, None] - 1, 0)
    left = np.clip(samples.offsets[:-1, None] + sample_counts - 1, 0, last)
    right = np.minimum(left + 1, last)
    points = np.arange(width)
    distance = position[right] - position[left]
    weight = np.zeros(distance.shape)
    np.divide(points - position[left], distance, out=weight, where=distance > 0)
    is_gap = distance > _MAX_GAP_STEPS
    weight = np.where(is_gap, np.rint(weight * distance) > distance / 2.0, np.clip(weight, 0.0, 1.0))
    is_near = np.minimum(points - position[left], position[right] - points) <= 0.5
    values = (1.0 - weight) * samples.bytes_per_s[left] + weight * samples.bytes_per_s[right]
    is_inside = (points <= counts[:, None]) & (samples.counts > 0)[:, None]
    return np.where(is_inside & (~is_gap | is_near), values, np.nan), counts


def _correlate(values: Reals, step_counts: Ints) -> Reals:
    """Circular autocorrelations without the mean (n, lags), of signals of step_counts + 1 samples each."""
    correlation = np.full(values.shape, np.nan)
    for steps in np.unique(step_counts).tolist():
        rows = np.flatnonzero(step_counts == steps)
        complete_part = values[rows, : steps + 1]
        is_complete = np.isfinite(complete_part).all(axis=1)
        correlation[rows[is_complete], : steps + 1] = autocorrelation.correlate_circular(complete_part[is_complete])
        correlation[rows[~is_complete], : steps + 1] = autocorrelation.correlate_with_gaps(
            complete_part[~is_complete], is_circular=True
        )
    return correlation


def compute_square_difference(values: Reals) -> Reals:
    """Measure the similarity of signals to themselves one lag later.

    Parameters
    ----------
    values : (n, samples)
        NaN where missing.

    Returns
    -------
    (n, samples)
        Similarity by lag; 1 where the signal repeats exactly. Unlike an autocorrelation, it is 1 at a period for any
        number of cycles. NaN where no pair is known, or none varies.

    References
    ----------
    P. McLeod and G. Wyvill, "A smarter way to find pitch", ICMC 2005
    """
    is_known = np.isfinite(values)
    standard, count = autoperiod_periodogram.standardize(values, is_known), values.shape[1]
    length = scipy.fft.next_fast_len(2 * count, real=True)
    wave, square, known = (
        scipy.fft.rfft(part, length, axis=1) for part in (standard, standard**2, is_known.astype(np.float64))
    )
    products = scipy.fft.irfft(wave.real**2 + wave.imag**2, length, axis=1)[:, :count]
    squares = scipy.fft.irfft((square * np.conj(known)).real, length, axis=1)[:, :count]
    similarity = np.full(values.shape, np.nan)
    np.divide(products, squares, out=similarity, where=squares > 1e-9)
    return similarity


def _standard_errors(known_counts: Ints, counts: Ints) -> Reals:
    """One over the square root of the expected number of known pairs per lag, if samples are missing at random (n)."""
    errors: Reals = np.sqrt(counts) / np.maximum(known_counts, 1)
    return errors


def _power_thresholds(counts: Ints, maxima: Reals, params: AutoperiodParams) -> Reals:
    if params.has_permutations:
        thresholds: Reals = maxima[:, params.rank - 1]
        return thresholds
    return autoperiod_periodogram.compute_exponential_threshold(params.confidence, counts)


def compute_false_alarm_probability(analysis: Analysis, row: Ints, power: Reals) -> Reals:
    """Probability that noise reaches a power, by the same rule as the thresholds.

    Parameters
    ----------
    analysis : Analysis
    row : (hints,)
        Signal of each hint.
    power : (hints,)

    Returns
    -------
    (hints,)
    """
    if not analysis.maxima.shape[1]:
        return autoperiod_periodogram.compute_exponential_probability(power, analysis.counts[row])
    exceeded = (analysis.maxima[row] >= power[:, None]).sum(axis=1)
    probability: Reals = (exceeded + 1.0) / (analysis.maxima.shape[1] + 1.0)
    return probability


def _permute(values: Reals, params: AutoperiodParams) -> Reals:
    """Random permutations of a signal's values (permutations, samples)."""
    random = np.random.default_rng(params.seed)
    return random.permuted(np.broadcast_to(values, (params.permutation_count, len(values))), axis=1)


def _permute_even(standard: Reals, is_known: Bools, terms: SamplingTerms, params: AutoperiodParams) -> Reals:
    shuffled = np.zeros((params.permutation_count, len(standard)))
    shuffled[:, is_known] = _permute(standard[is_known], params)
    powers = autoperiod_periodogram.compute_even_powers(shuffled, terms, params.samples_per_peak)
    return np.sort(powers.max(axis=1, initial=0.0))


def _permute_uneven(
    row: int, samples: UnevenSignals, turns: Reals, terms: SamplingTerms, grid: FrequencyGrid, params: AutoperiodParams
) -> Reals:
    signal = samples.select(np.array([row]))
    rows = slice(int(samples.offsets[row]), int(samples.offsets[row + 1]))
    numbers = grid.numbers[: grid.counts[row]]
    standard = autoperiod_periodogram.standardize_uneven(signal)
    shuffled = _permute(standard, params)
    sums = autoperiod_periodogram.compute_sums(turns[rows], shuffled, numbers)
    own_terms = terms.select_row(row, len(numbers))
    variances = np.repeat(autoperiod_periodogram.compute_variances(standard, signal), params.permutation_count)
    return np.sort(own_terms.compute_powers(sums, variances).max(axis=1, initial=0.0))
