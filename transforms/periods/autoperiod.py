"""AUTOPERIOD: periods that stand out in the Lomb-Scargle periodogram and lie on a hill of the autocorrelation.

White et al., "Automatic Characterization of HPC Job Parallel Filesystem I/O Patterns", PEARC'18,
DOI 10.1145/3219104.3219121, section 4.2, after Vlachos, Yu & Castelli, "On Periodicity Detection and Structural
Periodic Similarity", SDM'05, DOI 10.1137/1.9781611972757.40. The periodogram gives hints: periods whose
power white noise would hardly reach. A periodogram leaks, and tells long periods badly apart; so each hint is looked
up on the circular autocorrelation, where a true period is a hill, and what is not periodic is none. From high to low
power, the first hint on a hill is the period; the others on hills of their own are further periods.

A multiple of a period has no power of its own and a fraction of it no hill, so neither is a candidate unless the
signal repeats in that rhythm too: candidates are not thinned by ratio. But a strong peak leaks power to frequencies
nearby, which may lie on other hills: what a stronger hint can have spread is no further period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.fft

from iosig.transforms.arrays import Bools, Ints, Reals, places_of, rows_of
from iosig.transforms.periods import autocorrelation, autoperiod_hills, autoperiod_periodogram
from iosig.transforms.periods.answers import Candidates, Detections
from iosig.transforms.periods.autoperiod_periodogram import FrequencyGrid, UnevenSignals, Waves, steps_s
from iosig.transforms.periods.even_signals import CHUNK_SAMPLES, EvenSignals

Texts = npt.NDArray[np.str_]

#: the transforms of one group of signals have about so many points
_GROUP_POINTS = 1 << 18
#: from this likeness on, a signal repeats but for rounding
_EXACT = 1.0 - 1e-9
#: candidates' fits look at so many samples at a time
_FIT_SAMPLES = 1 << 18
#: signals of fewer samples are too short (as in SUPReMM)
_MIN_SAMPLE_COUNT = 20
#: samples at any times that are so many steps apart have a gap between them (ours: one lost poll, whose bytes the next
#: one counts, is 1.5; a missing sample is 2)
_MAX_GAP_STEPS = 1.75


@dataclass(frozen=True, slots=True)
class AutoperiodParams:
    """What is a period.

    significance: how the power is found that noise hardly reaches. `exponential`: as if all frequencies were
    independent (PEARC'18 section 4.2, after Horne & Baliunas). `monte_carlo`: from random permutations of the samples
    (SDM'05).
    confidence: how probably white noise has no power above it (0.9, as in SUPReMM, the code of PEARC'18).
    permutation_count: permutations of each signal (SDM'05: 100, of which the largest but one at 99 %; 99 make the
    ranks exact). seed: of the permutations; each signal begins with it anew, so that no answer depends on the others.
    samples_per_peak: frequencies within the width of a spectral peak (5, as in astropy and so in SUPReMM).
    least_cycle_count: cycles that the samples' span must exceed (2, as in SUPReMM).
    least_window: lags that a hill is looked for in, at least (6, as in SUPReMM).
    hill_standard_errors: how high a hill's top must stand above 0 and above the valleys half a period to both sides,
    in standard errors of the autocorrelation of white noise (ours: 1.96, the 95 % band of Box & Jenkins. SUPReMM has
    an angle of 0.9 degrees, which depends on the unit of time).
    refined_shoulder: a top is refined below the sampling step where both neighbours have at least this share of its
    height (ours: half; a narrower hill does not tell its form). 0 refines every top, above 1 none.
    max_missing_ratio: the share of samples that may be missing (ours: beyond 2/3, at random, a lag has less than a
    tenth of its pairs).
    """

    significance: Literal["exponential", "monte_carlo"] = "exponential"
    confidence: float = 0.9
    permutation_count: int = 99
    seed: int = 0
    samples_per_peak: int = autoperiod_periodogram.SAMPLES_PER_PEAK
    least_cycle_count: float = 2.0
    least_window: int = 6
    hill_standard_errors: float = 1.96
    refined_shoulder: float = 0.5
    max_missing_ratio: float = 2.0 / 3.0

    def __post_init__(self) -> None:
        if self.significance not in ("exponential", "monte_carlo"):
            raise ValueError("the significance is neither exponential nor monte_carlo")
        if not 0 < self.confidence < 1:
            raise ValueError("a confidence is between 0 and 1")
        if self.significance == "monte_carlo" and self.rank > self.permutation_count:
            raise ValueError("so few permutations cannot give such a confidence")
        if self.samples_per_peak < 1 or self.least_window < autoperiod_hills.LEAST_WINDOW:
            raise ValueError("too few samples per peak, or lags of a window")
        if not self.least_cycle_count >= 1:
            raise ValueError("a period has at least one cycle")

    @property
    def rank(self) -> int:
        """Which of the permutations' largest powers, in rising order, is the threshold."""
        return int(np.ceil(self.confidence * (self.permutation_count + 1) - 1e-9))


# ---- what is looked at


@dataclass(frozen=True, slots=True)
class Examined:
    """Periodograms and circular autocorrelations of n signals.

    powers (n, frequencies): NaN beyond a signal's own; frequency j is (samples_per_peak + j) / (samples_per_peak *
    span). counts (n): how many each has. thresholds (n): the power that is significant. maxima (n, permutations): the
    largest power of each permutation, rising; no columns where none were made. bytes_per_s, correlation (n, lags):
    evenly spaced values, NaN in gaps, and their autocorrelation; NaN beyond a signal's own. step_counts, step_s (n):
    lags to the end of the span, and how long one is. errors (n): the standard error of the autocorrelation under white
    noise.
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


def examine(samples: UnevenSignals, params: AutoperiodParams | None = None) -> Examined:
    """Return the periodograms and autocorrelations of samples at any times, as `detect` sees them."""
    params = params or AutoperiodParams()
    step_s = steps_s(samples)
    grid = FrequencyGrid.of(samples.span_s, step_s, params.samples_per_peak)
    turns, standard = (
        autoperiod_periodogram.turns_of(samples, grid),
        autoperiod_periodogram.standardized_pieces(samples),
    )
    waves = autoperiod_periodogram.uneven_waves(turns, samples.offsets, grid)
    sums = autoperiod_periodogram.uneven_sums(turns, standard, samples.offsets, grid)
    powers = waves.powers(sums, autoperiod_periodogram.varying(standard, samples))
    powers[~grid.is_own] = np.nan
    maxima = np.zeros((samples.signal_count, 0))
    if params.significance == "monte_carlo":
        rows = range(samples.signal_count)
        maxima = np.stack([_uneven_maxima(row, samples, turns, waves, grid, params) for row in rows])
    even, step_counts = resampled(samples, step_s)
    return Examined(
        powers,
        grid.counts,
        _thresholds(grid.counts, maxima, params),
        maxima,
        even,
        _correlations(even, step_counts),
        step_counts,
        np.where(step_counts > 0, samples.span_s / np.maximum(step_counts, 1), np.nan),
        _errors(np.isfinite(even).sum(axis=1), step_counts + 1),
    )


def examine_even(signals: EvenSignals, params: AutoperiodParams | None = None) -> Examined:
    """Return the periodograms and autocorrelations of evenly spaced signals, as `detect_even` sees them."""
    params = params or AutoperiodParams()
    is_known, count = signals.is_known, signals.sample_count
    standard = autoperiod_periodogram.standardized(signals.bytes_per_s, is_known)
    # Where nothing is missing, all signals have the same times.
    is_whole = bool(is_known.all())
    waves = autoperiod_periodogram.even_waves(is_known[:1] if is_whole else is_known, params.samples_per_peak)
    powers = autoperiod_periodogram.even_powers(standard, waves, params.samples_per_peak)
    counts = np.full(len(powers), powers.shape[1])
    maxima = np.zeros((len(powers), 0))
    if params.significance == "monte_carlo":
        rows = range(len(powers))
        maxima = np.stack([_even_maxima(standard[i], is_known[i], waves.of_row(i), params) for i in rows])
    step_counts = np.full(len(powers), count - 1)
    values = np.where(is_known, signals.bytes_per_s, np.nan)
    return Examined(
        powers,
        counts,
        _thresholds(counts, maxima, params),
        maxima,
        values,
        _correlations(values, step_counts),
        step_counts,
        1.0 / signals.sampling_hz,
        _errors(is_known.sum(axis=1), step_counts + 1),
    )


def resampled(samples: UnevenSignals, step_s: Reals) -> tuple[Reals, Ints]:
    """Return signals on even grids of about a step from their first to their last sample, and how many steps (n).

    By straight lines between samples (n, most points); NaN in gaps, but for what is within half a step of a sample,
    and beyond a signal's own grid.
    """
    span_s = samples.span_s
    steps = np.zeros(len(span_s))
    np.divide(span_s, step_s, out=steps, where=step_s > 0)
    counts = np.where(np.isfinite(steps), np.rint(steps), 0.0).astype(np.int64)
    own_s = np.where(counts > 0, span_s / np.maximum(counts, 1), 1.0)
    owner, width = samples.owner, int(counts.max(initial=0)) + 1
    if not len(owner):
        return np.full((len(span_s), width), np.nan), counts
    first = samples.time_s[samples.offsets[:-1].clip(max=len(owner) - 1)]
    place = np.minimum((samples.time_s - first[owner]) / own_s[owner], counts[owner])
    # the last sample at or before each point: how many there are up to it
    cell = owner * width + np.ceil(place).astype(np.int64)
    before = np.cumsum(np.bincount(cell, minlength=len(span_s) * width).reshape(-1, width), axis=1)
    last = np.maximum(samples.offsets[1:, None] - 1, 0)
    left = np.clip(samples.offsets[:-1, None] + before - 1, 0, last)
    right = np.minimum(left + 1, last)
    points = np.arange(width)
    distance = place[right] - place[left]
    share = np.zeros(distance.shape)
    np.divide(points - place[left], distance, out=share, where=distance > 0)
    is_gap = distance > _MAX_GAP_STEPS
    share = np.where(is_gap, np.rint(share * distance) > distance / 2.0, np.clip(share, 0.0, 1.0))
    is_near = np.minimum(points - place[left], place[right] - points) <= 0.5
    values = (1.0 - share) * samples.bytes_per_s[left] + share * samples.bytes_per_s[right]
    is_own = (points <= counts[:, None]) & (samples.counts > 0)[:, None]
    return np.where(is_own & (~is_gap | is_near), values, np.nan), counts


def _correlations(values: Reals, step_counts: Ints) -> Reals:
    """Return circular autocorrelations without the mean (n, lags) of signals of step_counts + 1 samples each."""
    found = np.full(values.shape, np.nan)
    for steps in np.unique(step_counts).tolist():
        rows = np.flatnonzero(step_counts == steps)
        own = values[rows, : steps + 1]
        is_whole = np.isfinite(own).all(axis=1)
        found[rows[is_whole], : steps + 1] = autocorrelation.circular(own[is_whole])
        found[rows[~is_whole], : steps + 1] = autocorrelation.masked(own[~is_whole], is_circular=True)
    return found


def _likeness(values: Reals) -> Reals:
    """Return how alike signals are to themselves a lag later (n, lags): 1 where they repeat exactly.

    Twice the sum of the products of all known pairs over the sum of their squares (the normalized square difference of
    McLeod & Wyvill, "A smarter way to find pitch", ICMC 2005). Unlike an autocorrelation, it is 1 at a period however
    many cycles the signal holds. NaN where no pair is known or varies.
    """
    is_known = np.isfinite(values)
    standard, count = autoperiod_periodogram.standardized(values, is_known), values.shape[1]
    length = scipy.fft.next_fast_len(2 * count, real=True)
    wave, square, known = (
        scipy.fft.rfft(part, length, axis=1) for part in (standard, standard**2, is_known.astype(np.float64))
    )
    products = scipy.fft.irfft(wave.real**2 + wave.imag**2, length, axis=1)[:, :count]
    squares = scipy.fft.irfft((square * np.conj(known)).real, length, axis=1)[:, :count]
    found = np.full(values.shape, np.nan)
    np.divide(products, squares, out=found, where=squares > 1e-9)
    return found


def _errors(known_counts: Ints, counts: Ints) -> Reals:
    """Return one over the root of how many pairs of known samples a lag has, if samples are missing at random (n)."""
    found: Reals = np.sqrt(counts) / np.maximum(known_counts, 1)
    return found


# ---- what noise does


def _thresholds(counts: Ints, maxima: Reals, params: AutoperiodParams) -> Reals:
    if params.significance == "monte_carlo":
        found: Reals = maxima[:, params.rank - 1]
        return found
    return autoperiod_periodogram.exponential_threshold(params.confidence, counts)


def _probabilities(examined: Examined, row: Ints, power: Reals) -> Reals:
    """Return how probably noise has a power as high as some (hints), by the same rule as the thresholds."""
    if not examined.maxima.shape[1]:
        return autoperiod_periodogram.exponential_probability(power, examined.counts[row])
    reached = (examined.maxima[row] >= power[:, None]).sum(axis=1)
    found: Reals = (reached + 1.0) / (examined.maxima.shape[1] + 1.0)
    return found


def _permuted(values: Reals, params: AutoperiodParams) -> Reals:
    """Return permutations of a signal's values (permutations, samples)."""
    random = np.random.default_rng(params.seed)
    return random.permuted(np.broadcast_to(values, (params.permutation_count, len(values))), axis=1)


def _even_maxima(standard: Reals, is_known: Bools, waves: Waves, params: AutoperiodParams) -> Reals:
    shuffled = np.zeros((params.permutation_count, len(standard)))
    shuffled[:, is_known] = _permuted(standard[is_known], params)
    powers = autoperiod_periodogram.even_powers(shuffled, waves, params.samples_per_peak)
    return np.sort(powers.max(axis=1, initial=0.0))


def _uneven_maxima(
    row: int, samples: UnevenSignals, turns: Reals, waves: Waves, grid: FrequencyGrid, params: AutoperiodParams
) -> Reals:
    one = samples.chosen(np.array([row]))
    place = slice(int(samples.offsets[row]), int(samples.offsets[row + 1]))
    numbers = grid.numbers[: grid.counts[row]]
    standard = autoperiod_periodogram.standardized_pieces(one)
    shuffled = _permuted(standard, params)
    sums = autoperiod_periodogram.sums_at(turns[place], shuffled, numbers)
    own = waves.of_row(row, len(numbers))
    varying = np.repeat(autoperiod_periodogram.varying(standard, one), params.permutation_count)
    return np.sort(own.powers(sums, varying).max(axis=1, initial=0.0))


# ---- hints and hills


@dataclass(frozen=True, slots=True)
class Periods:
    """Periods of signals (periods): the row, seconds, the false-alarm probability; in order of rows, then of power."""

    row: Ints
    period_s: Reals
    probability: Reals


def _hints(examined: Examined, params: AutoperiodParams) -> tuple[Ints, Ints]:
    """Return rows and frequency numbers of significant powers, from high to low power within each row."""
    numbers = params.samples_per_peak + np.arange(examined.powers.shape[1])
    is_hint = examined.powers > examined.thresholds[:, None]
    is_hint &= numbers > params.least_cycle_count * params.samples_per_peak
    is_hint &= 2 * numbers < params.samples_per_peak * examined.step_counts[:, None]
    row, column = np.nonzero(is_hint)
    order = np.lexsort((-examined.powers[row, column], row))
    return row[order], numbers[column[order]]


def _windows(examined: Examined, row: Ints, number: Ints, params: AutoperiodParams) -> autoperiod_hills.Windows:
    """Return the lags around hints in which their hills are looked for.

    As in SDM'05: from the middle between the hint and the next shorter period of the discrete Fourier transform
    to the middle between it and the next longer one, and one lag more to both sides. They are widened to the least
    number of lags, but not beyond half a period to either side, where other hills begin, nor beyond half of all lags:
    what is there mirrors what is before.
    """
    steps = examined.step_counts[row]
    cycles = number / params.samples_per_peak
    lag = steps / cycles
    first = np.floor(0.5 * (steps / (cycles + 1.0) + lag) - 1.0)
    last = np.ceil(0.5 * (lag + steps / np.maximum(cycles - 1.0, 0.5)) + 1.0)
    wider = np.maximum(np.ceil((params.least_window - (last - first + 1)) / 2.0), 0.0)
    first = np.maximum(first - wider, np.maximum(np.rint(lag / 2.0), 1.0))
    last = np.minimum(last + wider, np.minimum(np.rint(1.5 * lag), (steps + 1) // 2))
    return autoperiod_hills.Windows(row, first.astype(np.int64), last.astype(np.int64))


def _on_hills(examined: Examined, windows: autoperiod_hills.Windows, params: AutoperiodParams) -> tuple[Ints, Ints]:
    """Return which windows hold a hill, each hill once, and the hills' tops (lags).

    A hill goes up, then down, and has its top within. The signs of slopes depend on no unit; that the top is more than
    noise is told by its height over 0 (what is a period apart is alike) and over the valleys to both sides.
    """
    keys = np.stack([windows.row, windows.first, windows.last])
    _, kept, back = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    bends = autoperiod_hills.fit(examined.correlation, rows_of(windows, kept))
    back = back.ravel()
    rising, falling, top = bends.rising[back], bends.falling[back], bends.top[back]
    is_hill = (rising > 0) & (falling < 0) & (top > windows.first) & (top < windows.last)
    least = params.hill_standard_errors * examined.errors[windows.row]
    is_hill &= examined.correlation[windows.row, top] > least
    # what holds for hints holds for answers: above two steps, and so many cycles
    is_hill &= (top > 2) & (params.least_cycle_count * top < examined.step_counts[windows.row])
    place = np.flatnonzero(is_hill)
    # hints come from high to low power: the first of those that lead to one hill stands for all
    _, firsts = np.unique(windows.row[place] * examined.correlation.shape[1] + top[place], return_index=True)
    place = place[np.sort(firsts)]
    prominent = autoperiod_hills.prominence(examined.correlation, windows.row[place], top[place], (top[place] + 1) // 2)
    place = place[prominent > least[place]]
    return place, top[place]


def _refined(examined: Examined, windows: autoperiod_hills.Windows, top: Ints, shoulder: float) -> Reals:
    """Return tops of hills (lags) to less than a lag, by the parabola through each and its neighbours.

    Where a signal's end does not fit its beginning, as with half a cycle too many, the circular autocorrelation moves
    its tops, by a tenth of the period if there are but 2.7 cycles: so the top is that of the likeness, from the highest
    lag of the window on. It is between lags only where its neighbours belong to the hill, or else the hill is narrower
    than three lags can tell; and not where the signal repeats exactly.
    """
    rows, own = np.unique(windows.row, return_inverse=True)
    likeness = _likeness(examined.bytes_per_s[rows])
    highest = autoperiod_hills.fit(likeness, replace(windows, row=own)).top
    top = np.where((highest > windows.first) & (highest < windows.last), highest, top)
    before, middle, after = (likeness[own, top + step] for step in (-1, 0, 1))
    bend = before - 2.0 * middle + after
    is_shaped = (np.minimum(before, after) >= shoulder * middle) & (bend < 0) & (middle < _EXACT)
    shift = np.zeros(len(top))
    np.divide(0.5 * (before - after), bend, out=shift, where=is_shaped)
    return top.astype(np.float64) + np.clip(shift, -0.5, 0.5)


def _own(row: Ints, cycles: Reals, power: Reals, place: Ints) -> Bools:
    """Return which of some hints (places) are peaks of their own; the first of each row is one.

    The others must have more power than stronger hints of their row spread to their frequency: of a power P, d cycles
    away, at most P / (pi d)^2 is left, and two such waves may add up to four times as much.
    """
    starts, ends = np.searchsorted(row, row[place], side="left"), place
    counts = ends - starts
    stronger = places_of(starts, counts)
    distance = np.pi * np.abs(cycles[stronger] - np.repeat(cycles[place], counts))
    spread = power[stronger] * 4.0 / np.maximum(distance, 1.0) ** 2
    is_spread = np.repeat(power[place], counts) <= spread
    owner = np.repeat(np.arange(len(place)), counts)
    is_first = np.ones(len(place), dtype=np.bool_)
    is_first[1:] = row[place[1:]] != row[place[:-1]]
    found: Bools = is_first | (np.bincount(owner, is_spread, len(place)) == 0)
    return found


def periods(examined: Examined, params: AutoperiodParams | None = None) -> Periods:
    """Return all periods of examined signals, those with the higher power first within each."""
    params = params or AutoperiodParams()
    row, number = _hints(examined, params)
    power = examined.powers[row, number - params.samples_per_peak]
    windows = _windows(examined, row, number, params)
    place, top = _on_hills(examined, windows, params)
    is_own = _own(row, number / params.samples_per_peak, power, place)
    place, top = place[is_own], top[is_own]
    lag = _refined(examined, rows_of(windows, place), top, params.refined_shoulder)
    chance = _probabilities(examined, row[place], power[place])
    return Periods(row[place], lag * examined.step_s[row[place]], chance)


# ---- the answers


def detect(samples: UnevenSignals, params: AutoperiodParams | None = None) -> Detections:
    """Return each signal's period, and its further periods as candidates, of samples at any times.

    AUTOPERIOD has no confidence: NaN. The first outcome that holds is given: `no_data`, `too_many_gaps`, `too_short`,
    `no_io` (all that is known is 0), `aperiodic`, `periodic`.
    """
    params = params or AutoperiodParams()
    outcome = _unfit(samples, params)
    parts: list[_Found] = []
    for rows in _groups(samples, np.flatnonzero(outcome == ""), params):
        part = samples.chosen(rows)
        parts.append(_Found.of(periods(examine(part, params), params), part, rows))
    return _answers(outcome, parts, samples.started_s, samples.ended_s)


def detect_even(signals: EvenSignals, params: AutoperiodParams | None = None) -> Detections:
    """Return each signal's period, and its further periods as candidates, of evenly spaced signals.

    As `detect`; without gaps, the times are exact and every sum is one real transform.
    """
    params = params or AutoperiodParams()
    outcome = _unfit_even(signals, params)
    parts: list[_Found] = []
    fit = np.flatnonzero(outcome == "")
    for place, part in signals.chosen(fit).chunks(CHUNK_SAMPLES // params.samples_per_peak):
        found = periods(examine_even(part, params), params)
        rows, own = np.unique(found.row, return_inverse=True)
        held = UnevenSignals.of_signals(part.chosen(rows))
        parts.append(_Found.of(replace(found, row=own), held, fit[place][rows]))
    return _answers(outcome, parts, signals.started_s, signals.ended_s)


def _groups(samples: UnevenSignals, rows: Ints, params: AutoperiodParams) -> Iterator[Ints]:
    """Yield rows in groups with about as many frequencies: at most twice as many in one signal as in another."""
    span_s, step_s = samples.span_s, steps_s(samples)
    grid = FrequencyGrid.of(span_s[rows], step_s[rows], params.samples_per_peak)
    sizes: Ints = 4 << np.frexp(grid.counts + params.samples_per_peak)[1].astype(np.int64)
    for size in np.unique(sizes).tolist():
        own = rows[sizes == size]
        step = max(1, _GROUP_POINTS // size)
        for start in range(0, len(own), step):
            yield own[start : start + step]


def _unfit(samples: UnevenSignals, params: AutoperiodParams) -> Texts:
    """Return why signals cannot be judged (n), empty where they can."""
    step_s, span_s = steps_s(samples), samples.span_s
    missing, step_counts = np.zeros(samples.signal_count), np.zeros(samples.signal_count, dtype=np.int64)
    is_usable = (span_s > 0) & np.isfinite(span_s) & (samples.counts >= _MIN_SAMPLE_COUNT)
    for rows in _groups(samples, np.flatnonzero(is_usable), params):
        even, step_counts[rows] = resampled(samples.chosen(rows), step_s[rows])
        missing[rows] = 1.0 - np.isfinite(even).sum(axis=1) / (step_counts[rows] + 1)
    is_io = np.bincount(samples.owner, samples.bytes_per_s != 0, samples.signal_count) > 0
    tests = [
        samples.counts == 0,
        missing > params.max_missing_ratio,
        ~is_usable | (step_counts + 1 < _MIN_SAMPLE_COUNT),
        ~is_io,
    ]
    return np.select(tests, ("no_data", "too_many_gaps", "too_short", "no_io"), "").astype("<U16")


def _unfit_even(signals: EvenSignals, params: AutoperiodParams) -> Texts:
    is_known = signals.is_known
    counts = is_known.sum(axis=1)
    is_io = (is_known & (signals.bytes_per_s != 0)).any(axis=1)
    tests = [counts == 0, signals.missing_ratio > params.max_missing_ratio, counts < _MIN_SAMPLE_COUNT, ~is_io]
    return np.select(tests, ("no_data", "too_many_gaps", "too_short", "no_io"), "").astype("<U16")


@dataclass(frozen=True, slots=True)
class _Found:
    """Periods of some of the signals, with the cosines that fit them best, each (periods)."""

    row: Ints
    frequency_hz: Reals
    probability: Reals
    amplitude: Reals
    phase: Reals

    @classmethod
    def of(cls, found: Periods, samples: UnevenSignals, rows: Ints) -> _Found:
        """Fit cosines to samples; rows: where these signals are among all."""
        frequency = 1.0 / found.period_s
        return cls(rows[found.row], frequency, found.probability, *_cosines(samples, found.row, frequency))


def _answers(outcome: Texts, parts: list[_Found], started_s: Reals, ended_s: Reals) -> Detections:
    """Return what was found as detections; outcome (n): empty where a signal was judged."""
    row = np.concatenate([np.zeros(0, dtype=np.int64), *(part.row for part in parts)])
    order = np.argsort(row, kind="stable")
    frequency, probability, amplitude, phase = (
        np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])[order]
        for name in ("frequency_hz", "probability", "amplitude", "phase")
    )
    offsets = np.searchsorted(row[order], np.arange(len(outcome) + 1)).astype(np.int64)
    is_periodic, none = np.diff(offsets) > 0, np.full(len(row), np.nan)
    chosen, confidence, false_alarm = np.full((3, len(outcome)), np.nan)
    chosen[is_periodic] = frequency[offsets[:-1][is_periodic]]
    false_alarm[is_periodic] = probability[offsets[:-1][is_periodic]]
    judged = np.where(is_periodic, "periodic", "aperiodic")
    outcome = np.where(outcome == "", judged, outcome).astype("<U16")
    candidates = Candidates(frequency, none, amplitude, phase, offsets)
    return Detections(outcome, chosen, confidence, started_s, ended_s, false_alarm, candidates)


def _cosines(samples: UnevenSignals, row: Ints, frequency_hz: Reals) -> tuple[Reals, Reals]:
    """Return amplitude and phase of the cosine of each frequency (n) that fits its signal best, without its mean."""
    amplitude, phase = np.full((2, len(row)), np.nan)
    counts = samples.counts[row]
    ends = np.cumsum(counts)
    start = 0
    while start < len(row):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] - counts[start] + _FIT_SAMPLES, side="right")))
        part = slice(start, stop)
        amplitude[part], phase[part] = _fitted(samples.chosen(row[part]), frequency_hz[part])
        start = stop
    return amplitude, phase


def _fitted(samples: UnevenSignals, frequency_hz: Reals) -> tuple[Reals, Reals]:
    owner, count = samples.owner, samples.signal_count
    largest = np.zeros(count)
    largest[samples.counts > 0] = np.maximum.reduceat(
        np.abs(samples.bytes_per_s), samples.offsets[:-1][samples.counts > 0]
    )
    values = samples.bytes_per_s / np.where(largest > 0, largest, 1.0)[owner]
    values = values - (np.bincount(owner, values, count) / np.maximum(samples.counts, 1))[owner]
    angle = 2.0 * np.pi * frequency_hz[owner] * (samples.time_s - samples.started_s[owner])
    cosine, sine = np.cos(angle), np.sin(angle)
    cc, ss, cs = (np.bincount(owner, item, count) for item in (cosine * cosine, sine * sine, cosine * sine))
    xc, xs = np.bincount(owner, values * cosine, count), np.bincount(owner, values * sine, count)
    determinant = cc * ss - cs * cs
    scale = np.full(count, np.nan)
    np.divide(largest, determinant, out=scale, where=determinant > 1e-9 * np.maximum(samples.counts, 1))
    along, across = (xc * ss - xs * cs) * scale, (xs * cc - xc * cs) * scale
    return np.hypot(along, across), np.arctan2(-across, along)
