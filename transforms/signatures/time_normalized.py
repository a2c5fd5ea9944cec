"""Extract signatures by the `time_normalized` method: resample all runs to one duration, and take a low quantile.

The duration of a run explains most of its drift, so little misalignment remains after all runs are resampled to the
same duration. Interference is additive; with more interference, a lower quantile across runs estimates the
application's own rate. Outside bursts, that quantile is a constant baseline, which is subtracted. A burst without
support in the runs (`burst_evidence`) is a coincidence of interference.

Interference during the bursts of a run only delays it. The duration without interference is the intercept of a linear
regression of the durations of runs on the interference that they encountered, with a prior for the slope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals, clip
from iosig.transforms.signatures.averages import nan_quantile, nan_quantiles, replace_nan, row_medians
from iosig.transforms.signatures.burst_evidence import find_supported_bursts
from iosig.transforms.signatures.bursts import (
    Bursts,
    burst_height,
    burst_heights,
    detect_bursts,
    find_true_intervals,
    merge_intervals,
)
from iosig.transforms.signatures.preprocessing import MAX_MISSING_RATIO, fill_gaps
from iosig.transforms.signatures.robust_alignment import cumulative_sums, interpolate_sums
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: level of the quantile across runs as a function of the interference ratio: ratios, and levels; linear between them
INTERFERENCE_LEVELS = ((0.25, 0.4, 0.6), (0.25, 0.12, 0.05))
#: maximum number of steps of a run; steps have a length of 1 s, or more if a run would have more steps
_MAX_STEPS = 4000
#: maximum number of iterations of the delay regression
_MAX_DELAY_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class TimeNormalizedParams:
    """Constants of the estimator, chosen on six of the simulated families of sites (seeds other than the study's).

    The mean error of the duration without interference on stormy sites is 0.44 % on these families and 0.47 % on the
    others. Half a percent shifts a late burst by its width.

    Attributes
    ----------
    min_run_count
        Minimum number of usable runs for a signature.
    initial_level
        Quantile across runs of the curve from which the interference ratio is estimated.
    quiet_ratio
        Fraction of the curve's height below which the application is quiet.
    busy_ratio
        Fraction of the curve's height above which, plus the run's own baseline, a run shows interference.
    baseline_level
        Quantile of each run's own rates that is taken as its baseline.
    prior_delay, prior_delay_deviation
        Delay of a run per second of interference during its bursts, and its standard deviation between sites. One in
        ten simulated sites has a delay of 0.4; a prior with both kinds of sites did not help on real traffic.
    max_met_ratio
        Largest interference in a second, relative to the burst height.
    min_deviation_s, min_deviation_ratio
        Smallest standard deviation of durations: a constant [s], and a fraction of the median.
    met_deviation_ratio
        Standard deviation of a run's delay, relative to the interference that it encountered.
    half_weight_deviations
        Residual that halves the weight of a run, in standard deviations.
    max_shortening_ratio
        Maximum relative difference by which the estimated duration is below that of the shortest run.
    merge_gap_s
        Gap below which bursts count as one burst when volumes are filled [s].
    max_calm_ratio
        Interference ratio below which bursts are filled up to the volume that the runs move around the bursts.
    fill_margin_s
        Time before and after a burst in which that volume is measured [s].
    max_fill_factor
        Largest factor by which a burst is filled.
    fill_level_ratio
        Quantile level of the volume, relative to that of rates, since a sum contains fewer zeros.
    burst_ratio
        Fraction of the curve's height above which a time is in a burst.
    band_deviations
        Half the width of the band in standard deviations of the quantile's rank: an 80 % interval.
    support_ratio
        Minimum fraction of the curve's volume in a burst that a run containing the burst moves there.
    """

    min_run_count: int = 3
    initial_level: float = 0.1
    quiet_ratio: float = 0.1
    busy_ratio: float = 0.25
    baseline_level: float = 0.1
    prior_delay: float = 0.07
    prior_delay_deviation: float = 0.15
    max_met_ratio: float = 4.0
    min_deviation_s: float = 3.0
    min_deviation_ratio: float = 0.003
    met_deviation_ratio: float = 0.05
    half_weight_deviations: float = 2.0
    max_shortening_ratio: float = 0.04
    merge_gap_s: float = 8.0
    max_calm_ratio: float = 0.35
    fill_margin_s: float = 15.0
    max_fill_factor: float = 2.0
    fill_level_ratio: float = 0.5
    burst_ratio: float = 0.25
    band_deviations: float = 1.28
    support_ratio: float = 0.6


PARAMS = TimeNormalizedParams()


@dataclass(frozen=True, slots=True)
class TimeNormalizedRuns:
    """Runs resampled to the same number of steps.

    Attributes
    ----------
    rates : (runs, steps)
        Rates in units of 2 ** exponent bytes per second; NaN where not measured. Resampling preserves volumes.
    duration_s : (runs,)
        Original duration of each run [s].
    step_s
        Length of a step [s].
    interference_ratio
        Fraction of time outside bursts in which the runs show interference.
    shift : (runs, steps)
        Elastic shift of each run, in steps; 0 where its delay is uniform.
    interference : (runs, steps) or None
        Rates of other jobs in the same unit, if the rates are the runs' own and those of other jobs are known.
    """

    rates: Reals
    exponent: int
    duration_s: Reals
    step_s: float
    interference_ratio: float
    shift: Reals
    interference: Reals | None = None

    @property
    def level(self) -> float:
        """Level of the quantile across runs."""
        return float(np.interp(self.interference_ratio, *INTERFERENCE_LEVELS))

    @property
    def curve(self) -> tuple[Reals, float]:
        """Low quantile across the runs minus its baseline (steps), and the baseline."""
        return subtract_baseline(nan_quantile(self.rates, self.level))


def extract_time_normalized(sample_set: SampleSet) -> Signature:
    """Extract a signature as a low quantile across runs of normalized duration, minus its baseline.

    Parameters
    ----------
    sample_set
        Runs of typical duration.

    Returns
    -------
    Signature
        A signature with a band and the support of each burst.
    """
    runs = normalize_durations(sample_set)
    return Signature.missing("too_few_samples") if runs is None else build_signature(runs)


def normalize_durations(sample_set: SampleSet) -> TimeNormalizedRuns | None:
    """Resample runs to the median of their durations.

    Parameters
    ----------
    sample_set
        Runs of typical duration.

    Returns
    -------
    TimeNormalizedRuns or None
        None if too few runs are measured.
    """
    usable = select_measured_runs(sample_set)
    if usable.run_count < PARAMS.min_run_count:
        return None
    exponent = rate_exponent(usable)
    median_s = float(np.median(usable.duration_s))
    step_s = max(1.0, median_s / _MAX_STEPS)
    count = max(2, round(median_s / step_s))
    rates = resample(usable, count, exponent) * (usable.duration_s[:, None] / median_s)
    ratio = estimate_interference_ratio(rates)
    interference = None
    if usable.interference is not None:
        others = replace(usable, samples=replace(usable.samples, values=usable.interference))
        interference = resample(others, count, exponent) * (usable.duration_s[:, None] / median_s)
    no_shift = np.zeros(rates.shape)
    return TimeNormalizedRuns(rates, exponent, usable.duration_s, median_s / count, ratio, no_shift, interference)


def select_measured_runs(sample_set: SampleSet) -> SampleSet:
    """Select the runs that were measured most of the time, with short gaps filled."""
    samples, known = sample_set.samples, sample_set.samples.counts
    if not _are_rates(samples.values):
        is_rate = np.isfinite(samples.values) & (samples.values >= 0)
        samples = fill_gaps(replace(samples, values=np.where(is_rate, samples.values, np.nan)), sample_set.interval_s)
        known = np.bincount(samples.owner[np.isfinite(samples.values)], minlength=sample_set.run_count)
    is_long = sample_set.duration_s >= 2 * sample_set.interval_s
    is_timed = np.isfinite(sample_set.duration_s) & is_long & np.isfinite(sample_set.start_s)
    is_usable = is_timed & (known >= (1.0 - MAX_MISSING_RATIO) * samples.counts) & (samples.counts > 1)
    return replace(sample_set, samples=samples).select_runs(is_usable)


def _are_rates(values: Reals) -> bool:
    """Whether all values are finite and not negative."""
    # comparisons with NaN are false
    return bool(values.min(initial=0.0) >= 0 and values.max(initial=0.0) < np.inf)


def rate_exponent(sample_set: SampleSet) -> int:
    """Return the exponent of the smallest power of 2 above all measured rates."""
    return int(np.frexp(np.fmax.reduce(sample_set.samples.values, initial=0.0))[1])


def resample(sample_set: SampleSet, step_count: int, exponent: int) -> Reals:
    """Compute the mean rates of runs in a fixed number of equal steps per run.

    Parameters
    ----------
    sample_set
        Runs of any durations.
    step_count
        Number of steps of each run.
    exponent
        Unit of the result, 2 ** exponent bytes per second.

    Returns
    -------
    (runs, step_count)
        NaN in steps with half or less of their time measured. The unmeasured part of a step counts like its measured
        part.
    """
    values, counts = sample_set.samples.values, sample_set.samples.counts
    is_known = np.isfinite(values)
    at = np.arange(step_count + 1) * (sample_set.duration_s[:, None] / step_count)
    at -= sample_set.start_s[:, None]
    at /= sample_set.interval_s
    length = at[:, 1:] - at[:, :-1]
    if is_known.all():
        moved = _sum_steps(np.ldexp(values, -exponent), sample_set.samples.offsets, at)
        # the common case: all steps lie within their sample, so no value is missing
        if (at[:, 0] >= 0).all() and (at[:, -1] <= counts).all():
            return np.divide(moved, length, out=moved)
        known = np.diff(clip(at, 0.0, counts[:, None]), axis=1)
    else:
        moved = _sum_steps(np.ldexp(np.where(is_known, values, 0.0), -exponent), sample_set.samples.offsets, at)
        known = _sum_steps(is_known, sample_set.samples.offsets, at)
    is_mostly_known = known > 0.5 * length
    return np.where(is_mostly_known, moved / np.where(is_mostly_known, known, 1.0), np.nan)


def _sum_steps(values: Reals | Bools, offsets: Ints, at: Reals) -> Reals:
    """Sum values between fractional places (runs, n + 1); run i has the values offsets[i] to offsets[i + 1]."""
    edges = offsets.tolist()
    total = np.zeros((len(at), max(last - first for first, last in pairwise(edges)) + 1))
    for row, (first, last) in zip(total, pairwise(edges), strict=True):
        inside = row[1 : last - first + 1]
        values[first:last].cumsum(dtype=np.float64, out=inside)
        row[last - first + 1 :] = inside[-1:]
    read = interpolate_sums(total, at)
    sums: Reals = read[:, 1:] - read[:, :-1]
    return sums


# ---- interference ratio and baseline


def estimate_interference_ratio(rates: Reals) -> float:
    """Estimate the fraction of time with interference from a low quantile across runs and each run's own baseline.

    rates (runs, steps), NaN where not measured. Unaligned bursts of the runs count as interference.
    """
    baseline = np.nan_to_num(nan_quantile(rates.T, PARAMS.baseline_level))
    return interference_ratio(rates, subtract_baseline(nan_quantile(rates, PARAMS.initial_level))[0], baseline)


def interference_ratio(rates: Reals, curve: Reals, baseline: Reals) -> float:
    """Compute the fraction of the time outside bursts in which runs show interference.

    Parameters
    ----------
    rates : (runs, steps)
        Rates in the unit of the curve; NaN where not measured.
    curve : (steps,)
        Low quantile of the runs, minus its baseline.
    baseline : (runs,)
        Low quantile of each run's own rates.

    Returns
    -------
    float
        1 if the curve is zero.
    """
    return interference_ratios(rates[None], curve[None], baseline[None])[0]


def interference_ratios(rates: Reals, curves: Reals, baselines: Reals) -> list[float]:
    """Compute `interference_ratio` for several sets with the same number of runs.

    Parameters
    ----------
    rates : (sets, runs, steps)
        NaN where not measured.
    curves : (sets, steps)
        Low quantile of each set, minus its baseline.
    baselines : (sets, runs)
        Low quantile of each run's own rates.

    Returns
    -------
    list of float
    """
    heights = burst_heights(curves)
    is_quiet = np.isfinite(rates) & (curves < PARAMS.quiet_ratio * heights[:, None])[:, None]
    # comparisons with NaN are false
    is_busy = is_quiet & (rates > (baselines + PARAMS.busy_ratio * heights[:, None])[..., None])
    busy_counts, quiet_counts = ([int(np.count_nonzero(part)) for part in mask] for mask in (is_busy, is_quiet))
    counts = zip(busy_counts, quiet_counts, heights.tolist(), strict=True)
    return [busy / max(1, quiet) if height > 0 else 1.0 for busy, quiet, height in counts]


def subtract_baseline(curve: Reals) -> tuple[Reals, float]:
    """Subtract the baseline of a curve, with 0 as the minimum.

    Parameters
    ----------
    curve : (steps,)
        Any unit; NaN where not measured.

    Returns
    -------
    curve : (steps,)
        0 where not measured.
    baseline
        The median of the rates below the mid-range, since bursts may take most of the time.
    """
    is_known = np.isfinite(curve)
    is_complete = bool(is_known.all())
    known = curve if is_complete else curve[is_known]
    baseline = float(estimate_baselines(known[None])[0]) if len(known) else 0.0
    return np.maximum((curve if is_complete else replace_nan(curve)) - baseline, 0.0), baseline


def estimate_baselines(curves: Reals) -> Reals:
    """Estimate the baseline of each curve (curves, steps) without NaN; see `subtract_baseline`."""
    ordered, rows = np.sort(curves, axis=1), np.arange(len(curves))
    low, high = ordered[:, :1], ordered[:, -1:]
    count = np.count_nonzero(ordered <= low + (high - low) / 2, axis=1)
    baselines: Reals = (ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) * 0.5
    return baselines


# ---- duration without interference


def estimate_duration_alone_s(duration_s: Reals, met_s: Reals) -> float:
    """Estimate the duration of a run without interference during its bursts [s].

    Parameters
    ----------
    duration_s : (runs,)
        Duration of each run [s].
    met_s : (runs,)
        Interference during its bursts, see `met_interference_s` [s].

    Returns
    -------
    float
        A duration from slightly below the shortest one to the median.
    """
    delay, weights = _fit_delay(duration_s, met_s)
    alone_s = float((weights * (duration_s - delay * met_s)).sum() / weights.sum())
    return float(np.clip(alone_s, (1.0 - PARAMS.max_shortening_ratio) * duration_s.min(), np.median(duration_s)))


def _fit_delay(duration_s: Reals, met_s: Reals) -> tuple[float, Reals]:
    """Fit the delay per second of interference, and the weight of each run.

    The fit is iteratively reweighted, with a normal prior and Cauchy weights, since runs may have different inputs.
    Runs with more interference have a larger standard deviation.
    """
    min_deviation_s = float(np.hypot(PARAMS.min_deviation_s, PARAMS.min_deviation_ratio * np.median(duration_s)))
    delay, weights = PARAMS.prior_delay, np.ones(len(duration_s))
    met_deviation_s = PARAMS.met_deviation_ratio * met_s
    for _ in range(_MAX_DELAY_ROUNDS):
        previous = delay
        remaining_s = (duration_s - delay * met_s)[None]
        residuals_s = np.abs(remaining_s - row_medians(remaining_s))
        deviation_s = max(SIGMAS_PER_MAD * float(row_medians(residuals_s)[0, 0]), min_deviation_s)
        scale_s = np.hypot(deviation_s, met_deviation_s)
        weights = 1.0 / (1.0 + (residuals_s[0] / (PARAMS.half_weight_deviations * scale_s)) ** 2) / scale_s**2
        centered_s = met_s - (weights * met_s).sum() / weights.sum()
        moment = (weights * centered_s * duration_s).sum() + PARAMS.prior_delay / PARAMS.prior_delay_deviation**2
        precision = (weights * centered_s**2).sum() + 1.0 / PARAMS.prior_delay_deviation**2
        delay = max(0.0, float(moment / precision))
        if delay == previous:
            break
    return delay, weights


def met_interference_s(runs: TimeNormalizedRuns, curve: Reals) -> Reals:
    """Interference during the bursts of each run (runs), as the time in which bursts move the same volume [s]."""
    met_s: Reals = met_interference(runs, curve).sum(axis=1) * runs.step_s
    return met_s


def met_interference(runs: TimeNormalizedRuns, curve: Reals) -> Reals:
    """Compute the interference during the bursts of each run, relative to the burst height and bounded.

    Parameters
    ----------
    runs
        Runs of normalized duration.
    curve : (steps,)
        Common curve in their unit.

    Returns
    -------
    (runs, steps)
        Interference; 0 outside bursts.
    """
    height = burst_height(curve)
    is_burst = curve > PARAMS.burst_ratio * height
    ratio = np.zeros(runs.rates.shape)
    with np.errstate(over="ignore"):  # an overflow exceeds the bound, too
        rates = runs.rates[:, is_burst] - curve[is_burst]
        if runs.interference is not None:
            known = runs.interference[:, is_burst]
            rates = np.where(np.isfinite(known), known, rates)
        ratio[:, is_burst] = clip(replace_nan(rates) / height, 0.0, PARAMS.max_met_ratio)
    return ratio


# ---- signature


def build_signature(runs: TimeNormalizedRuns) -> Signature:
    """Build a signature from the low quantile of normalized runs, in supported bursts.

    Parameters
    ----------
    runs
        Runs of normalized duration, aligned or not.

    Returns
    -------
    Signature
        A signature with a band and the support of each burst.
    """
    half = PARAMS.band_deviations * np.sqrt(runs.level * (1.0 - runs.level) / len(runs.rates))
    levels = (runs.level, max(0.0, runs.level - half), min(1.0, runs.level + half))
    quantiles = nan_quantiles(runs.rates, levels)
    curve, baseline = subtract_baseline(quantiles[0])
    background = float(np.ldexp(baseline, runs.exponent))
    if not curve.any():
        has_io = bool((runs.rates > 0).any())
        return Signature.missing("no_common_bursts" if has_io else "no_io", background)
    is_burst = find_supported_bursts(runs.rates, curve, runs.step_s)
    curve = np.where(is_burst, curve, 0.0)
    if not curve.any():
        return Signature.missing("no_common_bursts", background)
    step_s = estimate_duration_alone_s(runs.duration_s, met_interference_s(runs, curve)) / len(curve)
    # the sampling error of the quantile for this number of runs
    low, high = np.where(curve > 0, np.maximum(replace_nan(quantiles[1:]) - baseline, 0.0), 0.0)
    curves = np.stack([curve, low, high])
    if runs.interference_ratio < PARAMS.max_calm_ratio:
        curves *= _fill_factors(runs, curve, baseline)
    # a shorter run moves the same volume
    middle, low, high = np.ldexp(resample_to_seconds(curves * (runs.step_s / step_s), step_s), runs.exponent)
    bursts = _add_support(detect_bursts(middle), runs, curves[0], step_s)
    return Signature("extracted", middle, np.minimum(low, middle), np.maximum(high, middle), bursts, background)


def _fill_factors(runs: TimeNormalizedRuns, curve: Reals, baseline: float) -> Reals:
    """Factor of each step (steps) that fills bursts up to the volume that the runs move around the bursts.

    A low quantile of slightly misaligned runs loses volume. The quantile of each run's volume around a burst does not.
    """
    height, count = burst_height(curve), len(curve)
    is_burst = curve > PARAMS.burst_ratio * height
    first, end = merge_intervals(*find_true_intervals(is_burst), PARAMS.merge_gap_s / runs.step_s)
    factors = np.ones(count)
    if not len(first):
        return factors
    margin = max(1, round(PARAMS.fill_margin_s / runs.step_s))
    middles = (end[:-1] + first[1:]) // 2
    left = np.maximum(first - margin, np.concatenate([[0], middles]))
    right = np.minimum(end + margin, np.concatenate([middles, [count]]))
    total = cumulative_sums(np.maximum(replace_nan(runs.rates) - baseline, 0.0))
    moved = np.quantile(total[:, right] - total[:, left], PARAMS.fill_level_ratio * runs.level, axis=0)
    curve_volume = np.diff(cumulative_sums(curve[None])[0][np.stack([left, right])], axis=0)[0]
    burst_factors = np.clip(moved / curve_volume, 1.0, PARAMS.max_fill_factor)
    for begin, stop, factor in zip(left.tolist(), right.tolist(), burst_factors.tolist(), strict=True):
        factors[begin:stop] = factor
    return factors


def resample_to_seconds(curves: Reals, step_s: float) -> Reals:
    """Resample curves to mean rates in whole seconds; volumes are preserved.

    Parameters
    ----------
    curves : (n, steps)
        Rates in any unit.
    step_s
        Length of a step [s].

    Returns
    -------
    (n, seconds)
    """
    total = cumulative_sums(curves * step_s)
    seconds = np.arange(max(1, round(curves.shape[1] * step_s)) + 1) / step_s
    seconds[-1] = curves.shape[1]
    at = np.broadcast_to(seconds, (len(curves), len(seconds)))
    rates: Reals = np.maximum(np.diff(interpolate_sums(total, at), axis=1), 0.0)
    return rates


def _add_support(bursts: Bursts, runs: TimeNormalizedRuns, curve: Reals, step_s: float) -> Bursts:
    """Add the fraction of runs that contain each burst, i.e. most of the curve's volume there."""
    if not len(bursts):
        return bursts
    first = np.floor(bursts.start_s / step_s).astype(np.int64)
    last = np.minimum(np.ceil(bursts.end_s / step_s), len(curve)).astype(np.int64)
    is_known = np.isfinite(runs.rates)
    limited_volume = cumulative_sums(np.where(is_known, np.minimum(runs.rates, curve), 0.0))
    # without gaps, the required volume is the same for all runs
    required = cumulative_sums(curve[None] if is_known.all() else np.where(is_known, curve, 0.0))
    has_burst: Bools = limited_volume[:, last] - limited_volume[:, first] >= PARAMS.support_ratio * (
        required[:, last] - required[:, first]
    )
    return replace(bursts, support_ratio=has_burst.mean(axis=0))
