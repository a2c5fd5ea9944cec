"""Our own estimator of signatures: align the runs at each burst, then take a low envelope across them.

What the noise is tells how (IOSI, FAST'14, section 4): foreign traffic only adds, so a low quantile across runs is the
application's own, and of two runs the one with fewer bytes is the cleaner one; contention only delays and stretches,
so runs are brought together anew at each burst, and of each span between bursts a low quantile over the runs is what
it takes alone. The steps:

1. runs that take about as long as most (`left_out`), on steps of their own clock, less their own background;
2. the runs' weights: the fewer bytes, the more (`weights`);
3. in turn, until nothing changes: common bursts of the aligned runs (`robust_template`), where each run begins each of
   them (`robust_alignment`), when a run alone would (`robust_timeline`), and the runs aligned there;
4. the signature: in each second of a common burst a low weighted quantile across the aligned runs, and nothing outside
   of bursts. No byte is moved from one burst to another: the warp shifts whole stretches of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, clipped, owners, places_within
from iosig.transforms.signatures.averages import middle_of, quantile_of, row_medians, without_gaps
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.preprocessing import MOST_MISSING_RATIO, bridged
from iosig.transforms.signatures.robust_alignment import MARGIN_S, read_totals, running_totals, starts
from iosig.transforms.signatures.robust_quantiles import weighted_quantiles
from iosig.transforms.signatures.robust_template import (
    EDGE_RATIO,
    Template,
    are_common,
    false_alarm_level,
    grown,
    heights,
    large,
    long_stretches,
)
from iosig.transforms.signatures.robust_timeline import Spans, span_ends, timeline
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

# All numbers here are ours, and were chosen on simulated sites.

#: fewer runs that are alike give no signature
_LEAST_RUN_COUNT = 3
#: the quantile across runs where no foreign traffic is; it falls in proportion to the share of time in which there is
_ENVELOPE_LEVEL = 0.35
#: the quantile of each run's own rates that is what others do all the time; a burst is so many times higher
_BACKGROUND_LEVEL, _LEAST_HEIGHT_RATIO = 0.25, 2.0
#: a run that moves this share more than the cleanest one counts half
_CLEANNESS = 0.5
#: runs of up to so many times the cleanest one's volume tell what bursts are common, but at least so many of them
_CLEAN_RATIO, _CLEAN_COUNT = 2.0, 5
#: a run that moves less than this share of the median run's volume does not count
_LEAST_VOLUME_RATIO = 0.1
#: at most so many rounds of aligning
_ROUND_COUNT = 6
#: half of the band's width, in standard deviations of the quantile's own rank (four times of five)
_BAND_DEVIATIONS = 1.28
#: what foreign traffic costs a burst it meets, of its duration; the share of such traffic that nobody sees
_DELAY_RATIO, _UNSEEN_RATIO = 0.6, 0.1
#: how spans between bursts differ without foreign traffic: for each second, and by how exactly starts are known
_DRIFT_RATIO, _EDGE_ERROR_S = 0.003, 1.0
#: the quantile of spans where only that differs, and how much lower it is where only contention does
_LEVEL_HIGH, _LEVEL_DROP = 0.4, 0.35
#: a run has a burst if it moves this share of its volume there, the rate clipped to its height
_SUPPORT_RATIO = 0.6
#: of all bursts, by volume, so many runs have to have them, and the band's lower edge has to keep so much of their
#: volume, or the runs have nothing in common
_LEAST_SUPPORT_RATIO, _LEAST_LOW_RATIO = 0.8, 0.35
#: a burst of which the lower edge keeps less is none; nor is one of which it keeps less than the second, and that fewer
#: than the third of the runs have
_LEAST_BURST_LOW_RATIO, _PLAIN_BURST_LOW_RATIO, _COMMON_SUPPORT_RATIO = 0.3, 0.5, 0.85
#: of all bursts, by volume, so many have to be left
_LEAST_KEPT_RATIO = 0.35
#: the runs are aligned on steps of their own interval, but no finer than this; the curve is on steps of this, or on
#: steps that are so many times finer than theirs
_FINEST_STEP_S, _FINENESS = 1.0, 5
#: so many steps around what is common the runs' curve is made first, and so many times further where a burst goes on
_FIRST_REACH, _FURTHER = 16, 4
#: times the cleanest run's volume: one that moves more than that hardly counts, however much it is
_MOST = 1e6


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs on a clock of their own: total_bytes (runs, steps + 1) since the start, is_known (runs, steps).

    background: the rate of what others do all the time. peak: one that few steps of the clean runs exceed. All bytes
    are in units of 2 ** exponent, so that neither huge nor tiny ones leave the range.
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
    """Runs brought together: rates and is_known (runs, steps); is_foreign (steps): outside of bursts known before.

    foreign_ratio: the share of time outside of bursts in which others are at work. begun_s (runs, bursts), alone_s
    (bursts + 1): when each run begins each burst, and when a run alone does and ends.
    """

    rates: Reals
    is_known: Bools
    is_foreign: Bools
    foreign_ratio: float
    begun_s: Reals
    alone_s: Reals

    def part(self, is_part: Bools) -> _Aligned:
        """Return the steps that are marked (steps)."""
        return replace(
            self,
            rates=self.rates.compress(is_part, axis=1),
            is_known=self.is_known.compress(is_part, axis=1),
            is_foreign=self.is_foreign[is_part],
        )


def robust(one: SampleSet) -> Signature:
    """Return the signature of runs that are alike, by aligning them and taking their low envelope."""
    runs = _runs(one)
    if runs is None:
        return Signature.nothing("too_few_samples")
    background = float(np.ldexp(runs.background, runs.exponent))
    if not runs.total_bytes[:, -1].any():
        # a steady writer, or a steady foreign one: there is I/O, but nothing to tell it by
        return Signature.nothing("no_common_bursts" if background > 0 else "no_io", background)
    found = _together(runs)
    if found is None:
        return Signature.nothing("no_common_bursts", background)
    return _signature(runs, *found, background)


# ---- runs


def _runs(one: SampleSet) -> _Runs | None:
    """Return the runs on steps of their own clock; None where too few are measured."""
    values = one.samples.values
    is_rate = np.isfinite(values) & (values >= 0)
    samples = Ragged(values if is_rate.all() else np.where(is_rate, values, np.nan), one.samples.offsets)
    samples = bridged(samples, one.interval_s)
    step_s = max(one.interval_s, _FINEST_STEP_S)
    usable = _usable(samples, one, step_s)
    if len(usable) < _LEAST_RUN_COUNT:
        return None
    return _stepped(samples, one, usable, step_s)


def _usable(samples: Ragged, one: SampleSet, step_s: float) -> Ints:
    """Return the runs of two steps or more that were measured most of their time.

    They come in an order that is their own, so that neither sums nor ties depend on the order of the set.
    """
    edges = samples.offsets
    is_timed = np.isfinite(one.duration_s) & (one.duration_s >= 2 * step_s * (1 - 1e-9)) & np.isfinite(one.started_s)
    duration_s, started_s = np.where(is_timed, one.duration_s, 1.0), np.where(is_timed, one.started_s, 0.0)
    owner = owners(edges)
    left = started_s[owner] + places_within(np.diff(edges)) * one.interval_s
    inside_s = np.minimum(left + one.interval_s, duration_s[owner]) - np.maximum(left, 0.0)
    measured_s = np.bincount(owner, np.where(np.isfinite(samples.values), np.maximum(inside_s, 0.0), 0), one.run_count)
    usable = np.flatnonzero(is_timed & (measured_s >= (1.0 - MOST_MISSING_RATIO) * duration_s)).tolist()
    keys = {run: (duration_s[run], started_s[run], samples.values[edges[run] : edges[run + 1]]) for run in usable}
    return np.array(sorted(usable, key=lambda run: (*keys[run][:2], keys[run][2].tobytes())), dtype=np.int64)


def _stepped(samples: Ragged, one: SampleSet, usable: Ints, step_s: float) -> _Runs:
    """Return volumes and what is known of them on the runs' own steps."""
    rates = _rows(samples, usable)
    is_measured = np.isfinite(rates)
    rates = np.where(is_measured, rates, 0.0)
    exponent = int(np.frexp(rates.max())[1])
    volume = running_totals(np.ldexp(rates, -exponent) * one.interval_s)
    own = np.floor(one.duration_s[usable] / step_s + 1e-9).astype(np.int64)
    steps = np.arange(int(own.max()) + 1) * step_s
    at = (np.minimum(steps, (own * step_s)[:, None]) - one.started_s[usable][:, None]) / one.interval_s
    measured_s = running_totals(is_measured * one.interval_s)
    known_s, moved = read_totals(measured_s, at), read_totals(volume, at)
    is_known = known_s[:, 1:] - known_s[:, :-1] > 0.5 * step_s
    found = (moved[:, 1:] - moved[:, :-1]) / step_s
    background = np.nan_to_num(weighted_quantiles(found.T, is_known.T, np.array([_BACKGROUND_LEVEL]))[0])
    background = np.maximum(background, 0.0)
    # differences of running totals are exact to no more than this: a steady rate is to stay one
    is_above = is_known & (found > background[:, None] * (1 + 1e-9))
    above = np.where(is_above, found - background[:, None], 0.0)
    known_ratio = np.maximum(is_known.sum(axis=1), 1) / own
    weights, is_clean = _weights(above.sum(axis=1) / known_ratio)
    # the cleanest last: among equal rates, mostly zeros, it is then the one that a quantile begins to rise from
    order = np.argsort(weights, kind="stable")
    return _Runs(
        exponent=exponent,
        total_bytes=running_totals(above[order] * step_s),
        is_known=is_known[order],
        duration_s=one.duration_s[usable[order]],
        background=float((background * weights)[order].sum() / weights[order].sum()),
        weights=weights[order],
        is_clean=is_clean[order],
        peak=quantile_of(above[is_clean].ravel(), 0.98),
        step_s=step_s,
    )


def _rows(samples: Ragged, runs: Ints) -> Reals:
    """Return some of the samples as rows, with what is missing at their ends not measured."""
    first, counts = samples.offsets[runs], samples.counts[runs]
    column = np.arange(max(1, int(counts.max())))
    is_inside = column < counts[:, None]
    return np.where(is_inside, samples.values[np.where(is_inside, first[:, None] + column, 0)], np.nan)


def _weights(volume: Reals) -> tuple[Reals, Bools]:
    """Return how much each run counts, and which ones tell what is common: the fewer bytes, the cleaner.

    A run that moves next to nothing where most move much did not do the same: it is left out.
    """
    is_whole = volume >= _LEAST_VOLUME_RATIO * middle_of(volume)
    ordered = np.sort(volume[is_whole])
    least = ordered[0]
    ratio = np.divide(volume, least, out=np.full(len(volume), _MOST), where=volume < _MOST * least)
    ratio[volume <= least] = 1.0
    count = max(min(len(ordered), _CLEAN_COUNT), int((is_whole & (ratio <= _CLEAN_RATIO)).sum()))
    weights = _CLEANNESS / (_CLEANNESS + ratio - 1.0)
    return np.where(is_whole, weights, 0.0), is_whole & (volume <= ordered[count - 1])


# ---- bringing runs together


def _together(runs: _Runs) -> tuple[_Aligned, Template] | None:
    """Return the runs brought together, and the bursts that they have in common then; None where they have none."""
    aligned = _unaligned(runs)
    template = _template(aligned, runs) or _template(_quiet_outside(aligned, runs), runs)
    latest, rates = int((runs.duration_s.max() - quantile_of(runs.duration_s, 0.2)) / runs.step_s), runs.rates
    total = running_totals(rates)
    for turn in range(_ROUND_COUNT):
        if template is None:
            return None
        begun_s = starts(rates, template, latest, runs.step_s, total) * runs.step_s
        alone_s = timeline(_spans(runs, begun_s, template, aligned.foreign_ratio))
        aligned = _brought_together(runs, begun_s, alone_s, template)
        before, template = template, _template(aligned, runs)
        if template is not None and turn > 1 and _is_settled(before, template):
            break
    return None if template is None else (aligned, template)


def _is_settled(before: Template, after: Template) -> bool:
    """Return whether a further round would change little: the same bursts begin where they did."""
    if len(before.first) != len(after.first):
        return False
    return bool((np.abs(before.first - after.first) <= 1).all())


def _unaligned(runs: _Runs) -> _Aligned:
    """Return the runs as they are, a little smoothed, and as long as the shorter ones."""
    from scipy.ndimage import uniform_filter1d

    count = max(2, int(quantile_of(runs.duration_s, 0.2) / runs.step_s))
    width = max(1, round(5.0 / runs.step_s))
    rates = uniform_filter1d(runs.rates, width, axis=1)[:, :count]
    is_foreign = np.ones(count, dtype=np.bool_)
    nowhere = np.zeros((len(rates), 0))
    ratio = _foreign_ratio(rates, is_foreign, runs)
    return _Aligned(rates, runs.is_known[:, :count], is_foreign, ratio, nowhere, nowhere[0])


def _quiet_outside(aligned: _Aligned, runs: _Runs) -> _Aligned:
    """Return runs of which no burst is known yet, with what they have in common not taken for foreign.

    Where bursts take a large share of the time, few runs of a long application are improbable only by themselves.
    """
    curve = _curve(aligned, runs, [_level(aligned)])[0]
    return replace(aligned, is_foreign=curve <= EDGE_RATIO * curve.max())


def _foreign_ratio(rates: Reals, is_foreign: Bools, runs: _Runs) -> float:
    """Return the share of time outside of bursts in which others are at work in the clean runs."""
    if not is_foreign.any():
        return 0.0
    is_busy = rates[runs.is_clean] > 0.15 * runs.peak
    return np.count_nonzero(is_busy & is_foreign) / (len(is_busy) * np.count_nonzero(is_foreign))


def _curve(aligned: _Aligned, runs: _Runs, levels: list[float]) -> Reals:
    weights = runs.weights[:, None] * aligned.is_known
    return without_gaps(weighted_quantiles(aligned.rates, weights, clipped(np.array(levels), 0.0, 1.0)))


def _level(aligned: _Aligned) -> float:
    return _ENVELOPE_LEVEL * (1.0 - aligned.foreign_ratio)


def _template(aligned: _Aligned, runs: _Runs) -> Template | None:
    """Return the common bursts of the runs as they are aligned now."""
    level = false_alarm_level(len(aligned.is_foreign), runs.step_s)
    is_common = are_common(aligned.rates[runs.is_clean], aligned.is_foreign, level)
    curve, first, last = _grown_along(aligned, runs, *long_stretches(is_common, runs.step_s))
    first, last = large(curve, first, last, runs.step_s)
    height = heights(curve, first, last)
    is_high = height >= _LEAST_HEIGHT_RATIO * runs.background
    return Template.of(curve, first[is_high], last[is_high], height[is_high]) if is_high.any() else None


def _grown_along(aligned: _Aligned, runs: _Runs, first: Ints, last: Ints) -> tuple[Reals, Ints, Ints]:
    """Return the runs' curve around stretches (n), 0 elsewhere, and where these are when they have grown along it.

    It is made no further than they grow: to put the runs' rates in order is most of what a template takes.
    """
    curve, is_made = np.zeros(len(aligned.is_foreign)), np.zeros(len(aligned.is_foreign), dtype=np.bool_)
    reach = _FIRST_REACH
    while True:
        is_new = _near(first - reach, last + reach, len(curve)) & ~is_made
        curve[is_new] = _curve(aligned.part(is_new), runs, [_level(aligned)])[0]
        is_made |= is_new
        begin, end = grown(curve, first, last)
        # what each one ends at was made, too
        if is_made[np.maximum(begin - 1, 0)].all() and is_made[np.minimum(end, len(curve) - 1)].all():
            return curve, begin, end
        reach *= _FURTHER


def _near(first: Ints, last: Ints, count: int) -> Bools:
    """Return which of so many places lie in some spans, which may reach beyond them."""
    change = np.bincount(np.maximum(first, 0), minlength=count + 1)
    change -= np.bincount(np.minimum(last, count), minlength=count + 1)
    is_near: Bools = change.cumsum()[:-1] > 0
    return is_near


def _spans(runs: _Runs, begun_s: Reals, template: Template, foreign_ratio: float) -> Spans:
    """Return the spans between bursts, and to the runs' ends, of which a timeline is made."""
    reached_s = np.concatenate([begun_s, np.maximum(runs.duration_s[:, None], begun_s[:, -1:])], axis=1)
    return Spans.of(reached_s, runs.weights, _span_levels(begun_s, template, foreign_ratio, runs.step_s))


def _brought_together(runs: _Runs, begun_s: Reals, alone_s: Reals, template: Template) -> _Aligned:
    """Return the runs shifted so that each burst begins when it would alone; alone_s: as `_Aligned` has it."""
    step_s = runs.step_s
    begins_s = np.arange(max(2, round(alone_s[-1] / step_s))) * step_s
    rates, is_known = _shifted(runs, begun_s, alone_s, begins_s, step_s)
    length_s = (template.last - template.first) * step_s
    is_foreign = _outside(begins_s, alone_s[:-1] - 2.0, alone_s[:-1] + length_s + 4.0)
    return _Aligned(rates, is_known, is_foreign, _foreign_ratio(rates, is_foreign, runs), begun_s, alone_s)


def _shifted(runs: _Runs, begun_s: Reals, alone_s: Reals, begins_s: Reals, step_s: float) -> tuple[Reals, Bools]:
    """Return rates in steps (runs, steps) of a run alone, and whether they are known.

    begins_s (steps): when each step begins, in order; step_s: how long all of them are.
    """
    # as many as there are bursts at most
    burst = np.maximum((alone_s[:-1] - MARGIN_S).searchsorted(begins_s, side="right") - 1, 0)
    # most steps end where the next one begins: only where the others end is told, too, behind all begins
    count, ends_s = len(begins_s), begins_s + step_s
    is_own = np.ones(count, dtype=np.bool_)
    is_own[:-1] = (ends_s[:-1] != begins_s[1:]) | (burst[:-1] != burst[1:])
    own = is_own.nonzero()[0]
    at = (begun_s - alone_s[:-1]).take(np.concatenate([burst, burst[own]]), axis=1)
    at += np.concatenate([begins_s, ends_s[own]])
    at /= runs.step_s
    total = read_totals(runs.total_bytes, at)
    rates = total[:, 1 : count + 1] - total[:, :count]
    rates[:, own] = total[:, count:] - total[:, own]
    rates /= step_s
    is_over = at * runs.step_s > runs.duration_s[:, None] + runs.step_s
    is_late = is_over[:, 1 : count + 1].copy()
    is_late[:, own] = is_over[:, count:]
    # half of a step is enough, as in `_stepped`: a first burst at the start may be put a little later than it was
    left = at[:, :count]
    return rates, _are_known(runs, left) & (left >= -0.5) & ~is_late


def _are_known(runs: _Runs, at: Reals) -> Bools:
    """Return whether what runs did at their steps (runs, any) is known; outside as at the first or last one."""
    step_count = runs.is_known.shape[1]
    whole = at.astype(np.int64)
    np.minimum(np.maximum(whole, 0, out=whole), step_count - 1, out=whole)
    whole += (np.arange(len(whole)) * step_count)[:, None]
    return runs.is_known.ravel().take(whole)


def _outside(at: Reals, begin: Reals, end: Reals) -> Bools:
    """Return which times lie in none of some spans, which are in order of their starts."""
    if not len(begin):
        return np.ones(len(at), dtype=np.bool_)
    place = np.searchsorted(begin, at, side="right") - 1
    reach = np.maximum.accumulate(end)
    return (place < 0) | (at >= reach[np.maximum(place, 0)])


def _span_levels(begun_s: Reals, template: Template, foreign_ratio: float, step_s: float) -> Reals:
    """Return the quantile to take of each span: the lower, the more of how spans differ is contention.

    Contention may delay what a span has of bursts; without it, spans differ by the runs' own drift, and by how exactly
    starts are known.
    """
    begins, ends = span_ends(begun_s.shape[1] + 1)
    length_s = (template.last - template.first) * step_s
    busy_s = np.concatenate([[0.0, 0.0], length_s.cumsum()])
    at_s = np.concatenate([[0.0], row_medians(begun_s.T)[:, 0], [0.0]])
    at_s[-1] = at_s[-2] + length_s[-1]
    delay_s = _DELAY_RATIO * (foreign_ratio + _UNSEEN_RATIO) * (busy_s.take(ends) - busy_s.take(begins))
    other_s = np.hypot(_DRIFT_RATIO * np.maximum(at_s.take(ends) - at_s.take(begins), 1.0), _EDGE_ERROR_S)
    levels: Reals = _LEVEL_HIGH - _LEVEL_DROP * delay_s / (delay_s + other_s)
    return levels


# ---- the signature


def _signature(runs: _Runs, aligned: _Aligned, template: Template, background: float) -> Signature:
    """Return the low envelope in common bursts, second by second, and how many runs have each burst."""
    level, step_s = _level(aligned), runs.step_s
    effective = runs.weights.sum() ** 2 / (runs.weights**2).sum()
    half = _BAND_DEVIATIONS * np.sqrt(level * (1.0 - level) / effective)
    # Runs are polled at other times than they begin, each at its own: together they tell more than steps do.
    fine_s = min(step_s, max(_FINEST_STEP_S, step_s / _FINENESS))
    begins_s = np.arange(max(2, round(aligned.alone_s[-1] / fine_s))) * fine_s
    is_quiet = _outside_of(template, begins_s, step_s)
    rates, is_known = _shifted(runs, aligned.begun_s, aligned.alone_s, begins_s[~is_quiet], fine_s)
    curves = np.zeros((3, len(begins_s)))
    curves[:, ~is_quiet] = _curve(
        replace(aligned, rates=rates, is_known=is_known), runs, [level, level - half, level + half]
    )
    supports = _supports(aligned, template)
    places = np.rint(np.stack([template.first, template.last]) * (step_s / fine_s)).astype(np.int64)
    middles, lows, _ = np.diff(running_totals(curves)[:, np.minimum(places, curves.shape[1])], axis=1)[:, 0]
    is_borne_out = _are_borne_out(middles, lows, supports)
    is_mostly = middles[is_borne_out].sum() > _LEAST_KEPT_RATIO * middles.sum()
    if not (is_mostly and _is_told(middles, lows, supports)):
        return Signature.nothing("no_common_bursts", background)
    template, supports = template.chosen(is_borne_out), supports[is_borne_out]
    curves[:, _outside_of(template, begins_s, step_s)] = 0.0
    middle, low, high = _by_second(curves, fine_s)
    bursts = _bursts(template, middle, step_s, supports)
    if not len(bursts):
        return Signature.nothing("no_common_bursts", background)
    with np.errstate(over="ignore"):
        middle, low, high = np.ldexp([middle, np.minimum(low, middle), np.maximum(high, middle)], runs.exponent)
        volume = np.ldexp(bursts.volume_bytes, runs.exponent)
    return Signature("extracted", middle, low, high, replace(bursts, volume_bytes=volume), background)


def _outside_of(template: Template, begins_s: Reals, step_s: float) -> Bools:
    """Return which steps are in none of a template's bursts (in steps of step_s), nor next to one."""
    edge_s = 2.0 * max(1.0, step_s / 2)
    begin, end = template.first.astype(np.float64) * step_s, template.last.astype(np.float64) * step_s
    return _outside(begins_s, begin - edge_s, end + edge_s)


def _are_borne_out(middles: Reals, lows: Reals, supports: Reals) -> Bools:
    """Mark the bursts (n) that the band's lower edge has, too, and those a little less that nearly all runs have.

    Bursts of others that met by chance have an upper edge, but hardly a lower one. middles, lows: what the curve and
    its lower edge move in each.
    """
    share = np.divide(lows, middles, out=np.zeros(len(middles)), where=middles > 0)
    is_common = supports >= _COMMON_SUPPORT_RATIO
    marked: Bools = (share >= _LEAST_BURST_LOW_RATIO) & (is_common | (share >= _PLAIN_BURST_LOW_RATIO))
    return marked


def _is_told(middles: Reals, lows: Reals, supports: Reals) -> bool:
    """Return whether most runs bear a signature out: runs that have nothing in common can be aligned too, but badly."""
    volume = middles.sum()
    is_supported = (supports * middles).sum() >= _LEAST_SUPPORT_RATIO * volume
    return bool(volume > 0 and is_supported and lows.sum() >= _LEAST_LOW_RATIO * volume)


def _by_second(curves: Reals, step_s: float) -> Reals:
    """Return mean rates in each second of curves on steps (k, steps); no byte is lost."""
    total = running_totals(curves * step_s)
    seconds = np.arange(max(1, int(np.ceil(curves.shape[1] * step_s - 1e-9))) + 1)
    at = np.broadcast_to(seconds / step_s, (len(curves), len(seconds)))
    # no rate is 1 or more in its unit: the highest of all is not to leave the range by rounding
    return clipped(np.diff(read_totals(total, at), axis=1), 0.0, np.nextafter(1.0, 0.0))


def _supports(aligned: _Aligned, template: Template) -> Reals:
    """Return the share of runs that have each burst (n), of those that were measured in half of it or more."""
    volume = template.height * template.length
    ratios = []
    for first, last, height, whole in zip(template.first, template.last, template.height, volume, strict=True):
        is_known = aligned.is_known[:, first:last]
        known_ratio = is_known.mean(axis=1)
        held = np.where(is_known, np.minimum(aligned.rates[:, first:last], height), 0.0).sum(axis=1)
        is_told = known_ratio >= 0.5
        has_it = held >= _SUPPORT_RATIO * whole * known_ratio
        ratios.append((has_it & is_told).sum() / max(1, is_told.sum()))
    return np.array(ratios)


def _bursts(template: Template, curve: Reals, step_s: float, support_ratio: Reals) -> Bursts:
    """Return the bursts of a curve (seconds), in whole seconds."""
    first = np.floor(template.first * step_s).astype(np.int64)
    last = np.minimum(np.ceil(template.last * step_s).astype(np.int64), len(curve))
    # where steps end within seconds, bursts may share one
    first = np.maximum(first, np.concatenate([[0], last[:-1]]))
    is_left = last > first
    first, last = first[is_left], last[is_left]
    volume = np.array([curve[begin:end].sum() for begin, end in zip(first.tolist(), last.tolist(), strict=True)])
    return Bursts.between(curve, first, last, volume, support_ratio[is_left])
