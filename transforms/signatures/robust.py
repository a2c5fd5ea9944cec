"""Extract signatures by the `robust` method: align the runs at each burst, and take a low envelope across the runs.

The method follows from the nature of interference (IOSI, FAST'14, section 4). Interference is additive, so a low
quantile across runs estimates the application's own rate, and a run with fewer bytes is cleaner. Contention only delays
and stretches, so the runs are aligned again at each burst, and a low quantile over the runs estimates the duration of
each span between bursts. The steps:

1. Select runs of typical duration (`outliers`), resample each to steps since its start, and subtract its background. 2.
Weight the runs; runs with fewer bytes have a higher weight. 3. Repeat until nothing changes: find the common bursts of
the aligned runs (`robust_template`), find when each run starts each burst (`robust_alignment`), estimate when a run
without interference would start it (`robust_timeline`), and shift the runs accordingly. 4. The signature is a low
weighted quantile across the aligned runs in each second of a common burst, and zero
   elsewhere. The alignment shifts whole intervals of a run, so that no byte moves from one burst to another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, clip, owners, places_within
from iosig.transforms.signatures.averages import median_1d, quantile_1d, replace_nan, row_medians
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.preprocessing import MAX_MISSING_RATIO, fill_gaps
from iosig.transforms.signatures.robust_alignment import (
    PARAMS as ALIGNMENT_PARAMS,
    cumulative_sums,
    find_burst_starts,
    interpolate_sums,
)
from iosig.transforms.signatures.robust_quantiles import weighted_quantiles
from iosig.transforms.signatures.robust_template import (
    PARAMS as TEMPLATE_PARAMS,
    Template,
    detect_common_times,
    drop_small_bursts,
    extend_to_edges,
    false_alarm_level,
    find_long_intervals,
    interval_heights,
)
from iosig.transforms.signatures.robust_timeline import Spans, estimate_timeline, span_ends
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: maximum number of rounds of alignment
_MAX_ROUNDS = 6
#: number of steps around common times in which the common curve is computed first, and factor by which this range grows
#: if a burst extends beyond it
_FIRST_REACH, _REACH_FACTOR = 16, 4
#: maximum ratio to the volume of the cleanest run that weights distinguish
_MAX_VOLUME_RATIO = 1e6


@dataclass(frozen=True, slots=True)
class RobustParams:
    """Constants of the estimator, chosen on simulated sites.

    Attributes
    ----------
    min_run_count
        Minimum number of usable runs for a signature.
    envelope_level
        Quantile across runs without interference; it decreases in proportion to the interference ratio.
    background_level
        Quantile of each run's own rates that is taken as its background.
    min_height_ratio
        Smallest height of a burst relative to the background.
    half_weight_excess
        Excess over the volume of the cleanest run, relative to that volume, that halves the weight of a run.
    max_clean_ratio, min_clean_count
        The common bursts are determined by the runs with up to `max_clean_ratio` times the volume of the cleanest run,
        but by `min_clean_count` runs or more.
    min_volume_ratio
        Runs with less than this fraction of the median volume have no weight.
    band_deviations
        Half the width of the band in standard deviations of the quantile's rank: an 80 % interval.
    delay_ratio
        Delay of a burst by interference, relative to the burst's duration.
    unseen_ratio
        Fraction of time with interference that the runs do not show.
    drift_ratio, edge_error_s
        Standard deviation of spans without interference: relative to their duration, and of burst starts [s].
    max_span_level, span_level_drop
        Quantile of spans without contention, and how much lower it is if contention is the only cause of variation.
    support_ratio
        Minimum fraction of a burst's volume that a run containing the burst moves there, with rates clipped to the
        burst's height.
    min_support_ratio, min_low_ratio
        Minimum support of all bursts, weighted by volume, and minimum fraction of the volume within the band's lower
        edge. Below either, the runs have nothing in common.
    min_burst_low_ratio, plain_burst_low_ratio, common_support_ratio
        Minimum fraction of a burst's volume within the lower edge; the same unless enough runs support the burst; and
        the fraction of runs that is enough.
    min_kept_ratio
        Minimum fraction of the volume in bursts that pass.
    min_step_s
        Shortest step of runs and of the curve [s].
    max_refinement
        Number of steps of the curve per step of the runs.
    """

    min_run_count: int = 3
    envelope_level: float = 0.35
    background_level: float = 0.25
    min_height_ratio: float = 2.0
    half_weight_excess: float = 0.5
    max_clean_ratio: float = 2.0
    min_clean_count: int = 5
    min_volume_ratio: float = 0.1
    band_deviations: float = 1.28
    delay_ratio: float = 0.6
    unseen_ratio: float = 0.1
    drift_ratio: float = 0.003
    edge_error_s: float = 1.0
    max_span_level: float = 0.4
    span_level_drop: float = 0.35
    support_ratio: float = 0.6
    min_support_ratio: float = 0.8
    min_low_ratio: float = 0.35
    min_burst_low_ratio: float = 0.3
    plain_burst_low_ratio: float = 0.5
    common_support_ratio: float = 0.85
    min_kept_ratio: float = 0.35
    min_step_s: float = 1.0
    max_refinement: int = 5


PARAMS = RobustParams()


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs in steps since their own start, minus their background.

    total_bytes (runs, steps + 1): cumulative bytes, in units of 2 ** exponent, so that neither huge nor tiny values
    leave the range. is_known (runs, steps): whether each step was measured. background: constant rate of other traffic.
    peak: a rate that few steps of the clean runs exceed.
    """

    exponent: int
    total_bytes: Reals
    is_known: Bools
    duration_s: Reals
    background: float
    weights: Reals
    is_clean: Bools
    peak: float
    step_s: float

    @property
    def rates(self) -> Reals:
        """Mean rates of steps (runs, steps)."""
        return (self.total_bytes[:, 1:] - self.total_bytes[:, :-1]) / self.step_s


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Runs after alignment at their bursts: rates and is_known (runs, steps).

    is_interference (steps): whether a step is outside the bursts of the previous round. interference_ratio: fraction of
    that time in which runs are busy. begun_s (runs, bursts): when each run starts each burst. alone_s (bursts + 1):
    when a run without interference starts each burst, and when it ends.
    """

    rates: Reals
    is_known: Bools
    is_interference: Bools
    interference_ratio: float
    begun_s: Reals
    alone_s: Reals

    def select_steps(self, is_selected: Bools) -> _Aligned:
        """Return the runs with only the steps where the mask (steps) is true."""
        return replace(
            self,
            rates=self.rates.compress(is_selected, axis=1),
            is_known=self.is_known.compress(is_selected, axis=1),
            is_interference=self.is_interference[is_selected],
        )


def extract_robust(sample_set: SampleSet) -> Signature:
    """Extract a signature by aligning the runs at each burst and taking their low envelope.

    Parameters
    ----------
    sample_set
        Runs of similar duration.

    Returns
    -------
    Signature
        A signature with a band and the support of each burst.
    """
    runs = _prepare_runs(sample_set)
    if runs is None:
        return Signature.missing("too_few_samples")
    background = float(np.ldexp(runs.background, runs.exponent))
    if not runs.total_bytes[:, -1].any():
        # a steady rate of the application or of other traffic, i.e. I/O without distinguishable bursts
        return Signature.missing("no_common_bursts" if background > 0 else "no_io", background)
    aligned = _align_runs(runs)
    if aligned is None:
        return Signature.missing("no_common_bursts", background)
    return _build_signature(runs, *aligned, background)


# ---- runs


def _prepare_runs(sample_set: SampleSet) -> _Runs | None:
    """Resample the usable runs to steps since their start; None if they are too few."""
    values = sample_set.samples.values
    is_rate = np.isfinite(values) & (values >= 0)
    samples = Ragged(values if is_rate.all() else np.where(is_rate, values, np.nan), sample_set.samples.offsets)
    samples = fill_gaps(samples, sample_set.interval_s)
    step_s = max(sample_set.interval_s, PARAMS.min_step_s)
    usable = _find_usable_runs(samples, sample_set, step_s)
    if len(usable) < PARAMS.min_run_count:
        return None
    return _resample_runs(samples, sample_set, usable, step_s)


def _find_usable_runs(samples: Ragged, sample_set: SampleSet, step_s: float) -> Ints:
    """Find the runs of two steps or more that were measured most of the time.

    The runs are sorted by content, so that neither sums nor ties depend on their order in the set.
    """
    edges = samples.offsets
    is_long = sample_set.duration_s >= 2 * step_s * (1 - 1e-9)
    is_timed = np.isfinite(sample_set.duration_s) & is_long & np.isfinite(sample_set.start_s)
    duration_s = np.where(is_timed, sample_set.duration_s, 1.0)
    start_s = np.where(is_timed, sample_set.start_s, 0.0)
    owner = owners(edges)
    left = start_s[owner] + places_within(np.diff(edges)) * sample_set.interval_s
    inside_s = np.minimum(left + sample_set.interval_s, duration_s[owner]) - np.maximum(left, 0.0)
    known_s = np.where(np.isfinite(samples.values), np.maximum(inside_s, 0.0), 0)
    measured_s = np.bincount(owner, known_s, sample_set.run_count)
    usable = np.flatnonzero(is_timed & (measured_s >= (1.0 - MAX_MISSING_RATIO) * duration_s)).tolist()
    keys = {run: (duration_s[run], start_s[run], samples.values[edges[run] : edges[run + 1]]) for run in usable}
    return np.array(sorted(usable, key=lambda run: (*keys[run][:2], keys[run][2].tobytes())), dtype=np.int64)


def _resample_runs(samples: Ragged, sample_set: SampleSet, usable: Ints, step_s: float) -> _Runs:
    """Compute the volumes of the runs on steps since their start, and which steps are known."""
    rates = _to_rows(samples, usable)
    is_measured = np.isfinite(rates)
    rates = np.where(is_measured, rates, 0.0)
    exponent = int(np.frexp(rates.max())[1])
    volume = cumulative_sums(np.ldexp(rates, -exponent) * sample_set.interval_s)
    step_counts = np.floor(sample_set.duration_s[usable] / step_s + 1e-9)
    steps_s = np.arange(int(step_counts.max()) + 1) * step_s
    ends_s = (step_counts * step_s)[:, None]
    at = (np.minimum(steps_s, ends_s) - sample_set.start_s[usable][:, None]) / sample_set.interval_s
    measured_s = cumulative_sums(is_measured * sample_set.interval_s)
    known_s, moved = interpolate_sums(measured_s, at), interpolate_sums(volume, at)
    is_known = known_s[:, 1:] - known_s[:, :-1] > 0.5 * step_s
    step_rates = (moved[:, 1:] - moved[:, :-1]) / step_s
    levels = np.array([PARAMS.background_level])
    background = np.nan_to_num(weighted_quantiles(step_rates.T, is_known.T, levels)[0])
    background = np.maximum(background, 0.0)
    # differences of cumulative sums are inexact; the tolerance keeps a steady rate steady
    is_above = is_known & (step_rates > background[:, None] * (1 + 1e-9))
    above = np.where(is_above, step_rates - background[:, None], 0.0)
    known_ratio = np.maximum(is_known.sum(axis=1), 1) / step_counts
    weights, is_clean = _compute_weights(above.sum(axis=1) / known_ratio)
    # sort the cleanest run last, so that in case of ties (mostly zeros) the quantile starts to rise from that run
    order = np.argsort(weights, kind="stable")
    return _Runs(
        exponent=exponent,
        total_bytes=cumulative_sums(above[order] * step_s),
        is_known=is_known[order],
        duration_s=sample_set.duration_s[usable[order]],
        background=float((background * weights)[order].sum() / weights[order].sum()),
        weights=weights[order],
        is_clean=is_clean[order],
        peak=quantile_1d(above[is_clean].ravel(), 0.98),
        step_s=step_s,
    )


def _to_rows(samples: Ragged, runs: Ints) -> Reals:
    """Convert some samples to rows of one length, padded with NaN."""
    first, counts = samples.offsets[runs], samples.counts[runs]
    column = np.arange(max(1, int(counts.max())))
    is_inside = column < counts[:, None]
    return np.where(is_inside, samples.values[np.where(is_inside, first[:, None] + column, 0)], np.nan)


def _compute_weights(volume: Reals) -> tuple[Reals, Bools]:
    """Compute the weight of each run from its volume, and mark the clean runs; fewer bytes mean less interference.

    If most runs move much, a run that moves hardly any bytes did not do the same work, so its weight is 0.
    """
    is_complete = volume >= PARAMS.min_volume_ratio * median_1d(volume)
    ordered = np.sort(volume[is_complete])
    smallest = ordered[0]
    is_comparable = volume < _MAX_VOLUME_RATIO * smallest
    ratio = np.divide(volume, smallest, out=np.full(len(volume), _MAX_VOLUME_RATIO), where=is_comparable)
    ratio[volume <= smallest] = 1.0
    clean_count = int((is_complete & (ratio <= PARAMS.max_clean_ratio)).sum())
    count = max(min(len(ordered), PARAMS.min_clean_count), clean_count)
    weights = PARAMS.half_weight_excess / (PARAMS.half_weight_excess + ratio - 1.0)
    return np.where(is_complete, weights, 0.0), is_complete & (volume <= ordered[count - 1])


# ---- alignment


def _align_runs(runs: _Runs) -> tuple[_Aligned, Template] | None:
    """Align the runs iteratively; return them with their common bursts, or None without common bursts."""
    aligned = _start_without_alignment(runs)
    template = _find_template(aligned, runs) or _find_template(_exclude_common(aligned, runs), runs)
    max_delay = int((runs.duration_s.max() - quantile_1d(runs.duration_s, 0.2)) / runs.step_s)
    rates = runs.rates
    sums = cumulative_sums(rates)
    for iteration in range(_MAX_ROUNDS):
        if template is None:
            return None
        begun_s = find_burst_starts(rates, template, max_delay, runs.step_s, sums) * runs.step_s
        alone_s = estimate_timeline(_make_spans(runs, begun_s, template, aligned.interference_ratio))
        aligned = _shift_to_timeline(runs, begun_s, alone_s, template)
        previous, template = template, _find_template(aligned, runs)
        if template is not None and iteration > 1 and _has_converged(previous, template):
            break
    return None if template is None else (aligned, template)


def _has_converged(previous: Template, template: Template) -> bool:
    """Whether both templates have the same bursts, each within one step."""
    if len(previous.first) != len(template.first):
        return False
    return bool((np.abs(previous.first - template.first) <= 1).all())


def _start_without_alignment(runs: _Runs) -> _Aligned:
    """Start with the runs as measured, slightly smoothed and cut to the length of the shorter ones."""
    from scipy.ndimage import uniform_filter1d

    count = max(2, int(quantile_1d(runs.duration_s, 0.2) / runs.step_s))
    width = max(1, round(5.0 / runs.step_s))
    rates = uniform_filter1d(runs.rates, width, axis=1)[:, :count]
    is_interference = np.ones(count, dtype=np.bool_)
    no_bursts = np.zeros((len(rates), 0))
    ratio = _interference_ratio(rates, is_interference, runs)
    return _Aligned(rates, runs.is_known[:, :count], is_interference, ratio, no_bursts, no_bursts[0])


def _exclude_common(aligned: _Aligned, runs: _Runs) -> _Aligned:
    """Exclude the common curve of unaligned runs from the interference.

    Bursts that take much of the time would hide themselves, since they are improbable only in comparison with the rest.
    """
    curve = _common_curve(aligned, runs, [_envelope_level(aligned)])[0]
    return replace(aligned, is_interference=curve <= TEMPLATE_PARAMS.edge_ratio * curve.max())


def _interference_ratio(rates: Reals, is_interference: Bools, runs: _Runs) -> float:
    """Fraction of the time outside bursts in which the clean runs are busy."""
    if not is_interference.any():
        return 0.0
    is_busy = rates[runs.is_clean] > 0.15 * runs.peak
    return np.count_nonzero(is_busy & is_interference) / (len(is_busy) * np.count_nonzero(is_interference))


def _common_curve(aligned: _Aligned, runs: _Runs, levels: list[float]) -> Reals:
    """Weighted quantiles across the aligned runs (levels, steps); 0 where no run is known."""
    weights = runs.weights[:, None] * aligned.is_known
    return replace_nan(weighted_quantiles(aligned.rates, weights, clip(np.array(levels), 0.0, 1.0)))


def _envelope_level(aligned: _Aligned) -> float:
    return PARAMS.envelope_level * (1.0 - aligned.interference_ratio)


def _find_template(aligned: _Aligned, runs: _Runs) -> Template | None:
    """Find the common bursts of the aligned runs."""
    level = false_alarm_level(len(aligned.is_interference), runs.step_s)
    is_common = detect_common_times(aligned.rates[runs.is_clean], aligned.is_interference, level)
    curve, first, last = _extend_along_curve(aligned, runs, *find_long_intervals(is_common, runs.step_s))
    first, last = drop_small_bursts(curve, first, last, runs.step_s)
    height = interval_heights(curve, first, last)
    is_high = height >= PARAMS.min_height_ratio * runs.background
    return Template.from_curve(curve, first[is_high], last[is_high], height[is_high]) if is_high.any() else None


def _extend_along_curve(aligned: _Aligned, runs: _Runs, first: Ints, last: Ints) -> tuple[Reals, Ints, Ints]:
    """Extend intervals (n) to the edges of the common curve; also return the curve, 0 elsewhere.

    The curve is computed only as far as the intervals extend, since a template spends most of its time on sorting the
    rates of the runs.
    """
    curve, is_done = np.zeros(len(aligned.is_interference)), np.zeros(len(aligned.is_interference), dtype=np.bool_)
    reach = _FIRST_REACH
    while True:
        is_new = _mark_intervals(first - reach, last + reach, len(curve)) & ~is_done
        curve[is_new] = _common_curve(aligned.select_steps(is_new), runs, [_envelope_level(aligned)])[0]
        is_done |= is_new
        begin, end = extend_to_edges(curve, first, last)
        # the steps just outside each interval must be computed, too
        if is_done[np.maximum(begin - 1, 0)].all() and is_done[np.minimum(end, len(curve) - 1)].all():
            return curve, begin, end
        reach *= _REACH_FACTOR


def _mark_intervals(first: Ints, last: Ints, count: int) -> Bools:
    """Mark which of `count` places lie in half-open intervals, which may extend beyond these places."""
    change = np.bincount(np.maximum(first, 0), minlength=count + 1)
    change -= np.bincount(np.minimum(last, count), minlength=count + 1)
    is_inside: Bools = change.cumsum()[:-1] > 0
    return is_inside


def _make_spans(runs: _Runs, begun_s: Reals, template: Template, interference_ratio: float) -> Spans:
    """Create the spans between bursts, and from the last one to the end of the run, for the timeline."""
    reached_s = np.concatenate([begun_s, np.maximum(runs.duration_s[:, None], begun_s[:, -1:])], axis=1)
    return Spans.from_runs(reached_s, runs.weights, _span_levels(begun_s, template, interference_ratio, runs.step_s))


def _shift_to_timeline(runs: _Runs, begun_s: Reals, alone_s: Reals, template: Template) -> _Aligned:
    """Shift the runs so that each burst starts when it would without interference; alone_s: as in `_Aligned`."""
    step_s = runs.step_s
    starts_s = np.arange(max(2, round(alone_s[-1] / step_s))) * step_s
    rates, is_known = _resample_to_timeline(runs, begun_s, alone_s, starts_s, step_s)
    length_s = (template.last - template.first) * step_s
    is_interference = _mark_outside(starts_s, alone_s[:-1] - 2.0, alone_s[:-1] + length_s + 4.0)
    ratio = _interference_ratio(rates, is_interference, runs)
    return _Aligned(rates, is_known, is_interference, ratio, begun_s, alone_s)


def _resample_to_timeline(
    runs: _Runs, begun_s: Reals, alone_s: Reals, starts_s: Reals, step_s: float
) -> tuple[Reals, Bools]:
    """Read the rates of the aligned runs in steps of the timeline (runs, steps), and whether they are known.

    starts_s (steps): start of each step, ascending; step_s: common length of the steps.
    """
    # the index of the last burst at most
    burst = np.maximum((alone_s[:-1] - ALIGNMENT_PARAMS.margin_s).searchsorted(starts_s, side="right") - 1, 0)
    # most steps end where the next one starts; the ends of the others are appended behind all starts
    count, ends_s = len(starts_s), starts_s + step_s
    has_own_end = np.ones(count, dtype=np.bool_)
    has_own_end[:-1] = (ends_s[:-1] != starts_s[1:]) | (burst[:-1] != burst[1:])
    separate = has_own_end.nonzero()[0]
    at = (begun_s - alone_s[:-1]).take(np.concatenate([burst, burst[separate]]), axis=1)
    at += np.concatenate([starts_s, ends_s[separate]])
    at /= runs.step_s
    total = interpolate_sums(runs.total_bytes, at)
    rates = total[:, 1 : count + 1] - total[:, :count]
    rates[:, separate] = total[:, count:] - total[:, separate]
    rates /= step_s
    is_over = at * runs.step_s > runs.duration_s[:, None] + runs.step_s
    is_late = is_over[:, 1 : count + 1].copy()
    is_late[:, separate] = is_over[:, count:]
    # half of a step is enough, as in `_resample_runs`, since alignment may slightly delay a burst at the start
    left = at[:, :count]
    return rates, _read_known(runs, left) & (left >= -0.5) & ~is_late


def _read_known(runs: _Runs, at: Reals) -> Bools:
    """Return whether the runs are known at fractional steps (runs, any); outside, the first or last step counts."""
    step_count = runs.is_known.shape[1]
    whole = at.astype(np.int64)
    np.minimum(np.maximum(whole, 0, out=whole), step_count - 1, out=whole)
    whole += (np.arange(len(whole)) * step_count)[:, None]
    return runs.is_known.ravel().take(whole)


def _mark_outside(at: Reals, begin: Reals, end: Reals) -> Bools:
    """Mark the times outside all intervals, which are sorted by start."""
    if not len(begin):
        return np.ones(len(at), dtype=np.bool_)
    interval = np.searchsorted(begin, at, side="right") - 1
    reach = np.maximum.accumulate(end)
    return (interval < 0) | (at >= reach[np.maximum(interval, 0)])


def _span_levels(begun_s: Reals, template: Template, interference_ratio: float, step_s: float) -> Reals:
    """Compute the quantile level of each span; it is lower if contention causes more of the span's variation.

    Contention delays the bursts of a span. Otherwise spans vary by the drift of the runs and the error of burst starts.
    """
    begins, ends = span_ends(begun_s.shape[1] + 1)
    length_s = (template.last - template.first) * step_s
    busy_s = np.concatenate([[0.0, 0.0], length_s.cumsum()])
    at_s = np.concatenate([[0.0], row_medians(begun_s.T)[:, 0], [0.0]])
    at_s[-1] = at_s[-2] + length_s[-1]
    delay_s = (
        PARAMS.delay_ratio * (interference_ratio + PARAMS.unseen_ratio) * (busy_s.take(ends) - busy_s.take(begins))
    )
    drift_s = PARAMS.drift_ratio * np.maximum(at_s.take(ends) - at_s.take(begins), 1.0)
    other_s = np.hypot(drift_s, PARAMS.edge_error_s)
    levels: Reals = PARAMS.max_span_level - PARAMS.span_level_drop * delay_s / (delay_s + other_s)
    return levels


# ---- signature


def _build_signature(runs: _Runs, aligned: _Aligned, template: Template, background: float) -> Signature:
    """Compute the low envelope in common bursts, second by second, and the support of each burst."""
    level, step_s = _envelope_level(aligned), runs.step_s
    effective_count = runs.weights.sum() ** 2 / (runs.weights**2).sum()
    half = PARAMS.band_deviations * np.sqrt(level * (1.0 - level) / effective_count)
    # polls have a different phase in each run, so together they resolve more than a step
    fine_s = min(step_s, max(PARAMS.min_step_s, step_s / PARAMS.max_refinement))
    starts_s = np.arange(max(2, round(aligned.alone_s[-1] / fine_s))) * fine_s
    is_quiet = _mark_outside_bursts(template, starts_s, step_s)
    rates, is_known = _resample_to_timeline(runs, aligned.begun_s, aligned.alone_s, starts_s[~is_quiet], fine_s)
    curves = np.zeros((3, len(starts_s)))
    curves[:, ~is_quiet] = _common_curve(
        replace(aligned, rates=rates, is_known=is_known), runs, [level, level - half, level + half]
    )
    support = _compute_support(aligned, template)
    places = np.rint(np.stack([template.first, template.last]) * (step_s / fine_s)).astype(np.int64)
    middles, lows, _ = np.diff(cumulative_sums(curves)[:, np.minimum(places, curves.shape[1])], axis=1)[:, 0]
    is_supported = _are_supported(middles, lows, support)
    is_mostly = middles[is_supported].sum() > PARAMS.min_kept_ratio * middles.sum()
    if not (is_mostly and _is_common(middles, lows, support)):
        return Signature.missing("no_common_bursts", background)
    template, support = template.select(is_supported), support[is_supported]
    curves[:, _mark_outside_bursts(template, starts_s, step_s)] = 0.0
    middle, low, high = _resample_to_seconds(curves, fine_s)
    bursts = _make_bursts(template, middle, step_s, support)
    if not len(bursts):
        return Signature.missing("no_common_bursts", background)
    with np.errstate(over="ignore"):
        middle, low, high = np.ldexp([middle, np.minimum(low, middle), np.maximum(high, middle)], runs.exponent)
        volume = np.ldexp(bursts.volume_bytes, runs.exponent)
    return Signature("extracted", middle, low, high, replace(bursts, volume_bytes=volume), background)


def _mark_outside_bursts(template: Template, starts_s: Reals, step_s: float) -> Bools:
    """Mark the steps that are neither in nor next to a burst of a template (in steps of step_s)."""
    edge_s = 2.0 * max(1.0, step_s / 2)
    begin, end = template.first.astype(np.float64) * step_s, template.last.astype(np.float64) * step_s
    return _mark_outside(starts_s, begin - edge_s, end + edge_s)


def _are_supported(middles: Reals, lows: Reals, support: Reals) -> Bools:
    """Mark the bursts (n) that the lower edge of the band confirms; nearly full support lowers the threshold.

    Coincidences of interference raise the upper edge, but hardly the lower one. middles, lows: volume of the curve and
    of its lower edge in each burst.
    """
    ratio = np.divide(lows, middles, out=np.zeros(len(middles)), where=middles > 0)
    is_common = support >= PARAMS.common_support_ratio
    is_supported: Bools = (ratio >= PARAMS.min_burst_low_ratio) & (is_common | (ratio >= PARAMS.plain_burst_low_ratio))
    return is_supported


def _is_common(middles: Reals, lows: Reals, support: Reals) -> bool:
    """Whether most runs support the signature; unrelated runs can be aligned, too, but not well."""
    volume = middles.sum()
    is_supported = (support * middles).sum() >= PARAMS.min_support_ratio * volume
    return bool(volume > 0 and is_supported and lows.sum() >= PARAMS.min_low_ratio * volume)


def _resample_to_seconds(curves: Reals, step_s: float) -> Reals:
    """Compute the mean rates of curves (k, steps) in each second; volumes are preserved."""
    total = cumulative_sums(curves * step_s)
    seconds = np.arange(max(1, int(np.ceil(curves.shape[1] * step_s - 1e-9))) + 1)
    at = np.broadcast_to(seconds / step_s, (len(curves), len(seconds)))
    # rates are below 1 in their unit; rounding must not move the highest one out of range
    return clip(np.diff(interpolate_sums(total, at), axis=1), 0.0, np.nextafter(1.0, 0.0))


def _compute_support(aligned: _Aligned, template: Template) -> Reals:
    """Fraction of runs that contain each burst (n); runs with less than half of the burst measured are left out."""
    volume = template.height * template.length
    ratios = []
    for first, last, height, full in zip(template.first, template.last, template.height, volume, strict=True):
        is_known = aligned.is_known[:, first:last]
        known_ratio = is_known.mean(axis=1)
        limited_volume = np.where(is_known, np.minimum(aligned.rates[:, first:last], height), 0.0).sum(axis=1)
        is_measured = known_ratio >= 0.5
        has_burst = limited_volume >= PARAMS.support_ratio * full * known_ratio
        ratios.append((has_burst & is_measured).sum() / max(1, is_measured.sum()))
    return np.array(ratios)


def _make_bursts(template: Template, curve: Reals, step_s: float, support_ratio: Reals) -> Bursts:
    """Convert a template to bursts of a curve (seconds), in whole seconds."""
    first = np.floor(template.first * step_s).astype(np.int64)
    last = np.minimum(np.ceil(template.last * step_s).astype(np.int64), len(curve))
    # if a step ends within a second, two bursts may have that second in common
    first = np.maximum(first, np.concatenate([[0], last[:-1]]))
    is_left = last > first
    first, last = first[is_left], last[is_left]
    volume = np.array([curve[begin:end].sum() for begin, end in zip(first.tolist(), last.tolist(), strict=True)])
    return Bursts.from_intervals(curve, first, last, volume, support_ratio[is_left])
