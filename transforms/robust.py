"""Our own estimator of signatures: align the runs at each burst, then take a low envelope across them.

What the noise is tells how (IOSI, FAST'14, section 4): foreign traffic only adds, so a low quantile across runs is the
application's own, and of two runs the one with fewer bytes is the cleaner one; contention only delays and stretches,
so runs are brought together anew at each burst, and of each span between bursts a low quantile over the runs is what
it takes alone. The steps:

1. runs that take about as long as most (`usual_runs`), on steps of their own clock, less their own background;
2. the runs' weights: the fewer bytes, the more (`weights`);
3. in turn, until nothing changes: common bursts of the aligned runs (`common_bursts`), where each run begins each of
   them (`alignment.starts`), when a run alone would (`timelines.timeline`), and the runs aligned there;
4. the signature: in each second of a common burst a low weighted quantile across the aligned runs, and nothing outside
   of bursts. No byte is moved from one burst to another: the warp shifts whole stretches of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.alignment import AlignmentParams, Template, starts
from transforms.common_bursts import CommonBurstParams, chance, common_bursts
from transforms.envelopes import weighted_quantiles
from transforms.extracted import Extracted, SignatureBursts
from transforms.preprocessing import bridged
from transforms.sample_sets import SampleSet
from transforms.timelines import SPANS, timeline

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RobustParams:
    """The estimator's parameters; all are ours, and were chosen on simulated sites.

    least_run_count: fewer runs that are alike give no signature. envelope_level: the quantile across runs where no
    foreign traffic is; it falls in proportion to the share of time in which there is some. background_level: of each
    run's own rates, what others do all the time. cleanness: a run that moves this share more than the cleanest one
    counts half. clean_ratio: runs of up to so many times the cleanest one's volume tell what bursts are common, but
    at least clean_count runs. round_count: at most so many rounds of aligning. band_deviations: half of the band's
    width, in standard deviations of the quantile's own rank (1.28: four times of five). delay_ratio: what foreign
    traffic costs a burst it meets, of its duration; foreign_ratio: the share of it that nobody sees; drift_ratio,
    edge_error_s: how spans between bursts differ without it. level_high, level_drop: the quantile of spans where only
    they differ, and how much lower it is where only contention does. support_ratio: a run has a burst if it moves this
    share of its box. max_missing_ratio: a sample with more gaps is not used. longest_gap_s: shorter gaps are bridged.
    finest_step_s: the runs are aligned on steps of their own interval, but no finer than this.
    """

    least_run_count: int = 3
    envelope_level: float = 0.35
    background_level: float = 0.25
    cleanness: float = 0.5
    clean_ratio: float = 2.0
    clean_count: int = 5
    round_count: int = 6
    band_deviations: float = 1.28
    delay_ratio: float = 0.6
    foreign_ratio: float = 0.1
    drift_ratio: float = 0.003
    edge_error_s: float = 1.0
    level_high: float = 0.4
    level_drop: float = 0.35
    support_ratio: float = 0.6
    max_missing_ratio: float = 0.25
    longest_gap_s: float = 10.0
    finest_step_s: float = 1.0
    bursts: CommonBurstParams = field(default_factory=CommonBurstParams)
    alignment: AlignmentParams = field(default_factory=AlignmentParams)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs on a clock of their own: total_bytes (runs, steps + 1) since the start, is_known (runs, steps)."""

    total_bytes: Reals
    is_known: Bools
    duration_s: Reals
    background_bytes_per_s: Reals
    weights: Reals
    is_clean: Bools
    step_s: float

    @property
    def rates(self) -> Reals:
        """Mean rates of steps (runs, steps)."""
        return np.diff(self.total_bytes, axis=1) / self.step_s


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Runs brought together: rates and is_known (runs, steps), and the bursts that they were brought together at."""

    rates: Reals
    is_known: Bools
    is_foreign: Bools
    reached_s: Reals
    step_s: float


def robust(one: SampleSet, params: RobustParams | None = None) -> Extracted:
    """Return the signature of runs that are alike, by aligning them and taking their low envelope."""
    chosen = params or RobustParams()
    runs = _runs(one, chosen)
    if runs is None:
        return Extracted.nothing("too_few_samples")
    background = float(np.average(runs.background_bytes_per_s, weights=runs.weights))
    if not (runs.rates.max(initial=0.0) > 0):
        return Extracted.nothing("no_io", background)
    aligned = _together(runs, chosen)
    if aligned is None:
        return Extracted.nothing("no_common_bursts", background)
    return _signature(runs, aligned, background, chosen)


# ---- runs


def _runs(one: SampleSet, params: RobustParams) -> _Runs | None:
    """Return the runs on steps of their own clock; None where too few are measured."""
    samples = bridged(one.samples, one.interval_s, params.longest_gap_s)
    edges = samples.offsets
    step_s = max(one.interval_s, params.finest_step_s)
    counts = np.floor(one.duration_s / step_s + 1e-9).astype(np.int64)
    sample_counts = np.diff(edges)
    is_usable = (counts >= 2) & (sample_counts > 0)
    if is_usable.any():
        owner = np.repeat(np.arange(len(counts)), sample_counts)
        missing = np.bincount(owner, ~np.isfinite(samples.values), len(counts))
        is_usable &= missing <= params.max_missing_ratio * np.maximum(sample_counts, 1)
    if is_usable.sum() < params.least_run_count:
        return None
    return _stepped(samples.values, edges, one, np.flatnonzero(is_usable), counts, step_s, params)


def _stepped(
    values: Reals, edges: Ints, one: SampleSet, usable: Ints, counts: Ints, step_s: float, params: RobustParams
) -> _Runs:
    """Return volumes and what is known of them on the runs' own steps."""
    lengths = np.diff(edges)[usable]
    column = np.arange(int(lengths.max()))
    is_inside = column < lengths[:, None]
    rates = np.where(is_inside, values[np.where(is_inside, edges[usable][:, None] + column, 0)], np.nan)
    is_measured = np.isfinite(rates)
    volume = _totals(np.where(is_measured, rates, 0.0) * one.interval_s)
    measured = _totals(is_measured * one.interval_s)
    own = counts[usable]
    steps = np.arange(int(own.max()) + 1) * step_s
    at = np.minimum(steps, (own * step_s)[:, None]) - one.started_s[usable][:, None]
    total, known_s = _read(volume, at / one.interval_s), _read(measured, at / one.interval_s)
    is_known = np.diff(known_s, axis=1) > 0.5 * step_s
    found = np.where(is_known, np.diff(total, axis=1) / step_s, np.nan)
    with np.errstate(all="ignore"):
        background = np.nan_to_num(np.nanquantile(found, params.background_level, axis=1))
    above = np.where(is_known, np.maximum(found - background[:, None], 0.0), 0.0)
    weights, is_clean = _weights(above.sum(axis=1) / is_known.sum(axis=1) * own, params)
    total_bytes = _totals(above * step_s)
    return _Runs(total_bytes, is_known, one.duration_s[usable], background, weights, is_clean, step_s)


def _weights(volume: Reals, params: RobustParams) -> tuple[Reals, Bools]:
    """Return how much each run counts, and which ones tell what is common: the fewer bytes, the cleaner."""
    least = volume.min()
    excess = volume / least - 1.0 if least > 0 else np.where(volume > 0, np.inf, 0.0)
    ranked = np.argsort(volume, kind="stable")
    count = max(min(len(volume), params.clean_count), int((excess + 1.0 <= params.clean_ratio).sum()))
    is_clean = np.zeros(len(volume), dtype=np.bool_)
    is_clean[ranked[:count]] = True
    return params.cleanness / (params.cleanness + np.minimum(excess, 1e6)), is_clean


def _totals(values: Reals) -> Reals:
    total = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=total[:, 1:])
    return total


def _read(total: Reals, at: Reals) -> Reals:
    """Return running totals (runs, steps + 1) at fractions of steps (runs, places); flat before and after."""
    places = np.clip(at, 0.0, total.shape[1] - 1)
    whole = np.minimum(places.astype(np.int64), total.shape[1] - 2)
    run = np.arange(len(total))[:, None]
    low, high = total[run, whole], total[run, whole + 1]
    read: Reals = low + (places - whole) * (high - low)
    return read


# ---- bringing runs together


def _together(runs: _Runs, params: RobustParams) -> _Aligned | None:
    """Return the runs brought together at their common bursts; None where they have none."""
    aligned, count = _unaligned(runs), -1
    for turn in range(params.round_count):
        template = _template(aligned, runs, params)
        if template is None:
            return None
        if turn >= 3 and len(template.first) == count:
            break
        count = len(template.first)
        latest = int((runs.duration_s.max() - np.quantile(runs.duration_s, 0.2)) / runs.step_s)
        begun_s = starts(runs.rates, template, latest, runs.step_s, params.alignment) * runs.step_s
        aligned = _brought_together(runs, begun_s, template, _foreign_share(aligned, runs), runs.step_s, params)
    return aligned


def _unaligned(runs: _Runs) -> _Aligned:
    """Return the runs as they are, a little smoothed, and as long as the shorter ones."""
    from scipy.ndimage import uniform_filter1d

    count = max(2, int(np.quantile(runs.duration_s, 0.2) / runs.step_s))
    width = max(1, round(5.0 / runs.step_s))
    rates = uniform_filter1d(runs.rates, width, axis=1)[:, :count]
    nothing = np.zeros((len(rates), 0))
    return _Aligned(rates, runs.is_known[:, :count], np.ones(count, dtype=np.bool_), nothing, runs.step_s)


def _foreign_share(aligned: _Aligned, runs: _Runs) -> float:
    """Return the share of time outside of bursts in which others are at work in the clean runs."""
    outside = aligned.rates[runs.is_clean][:, aligned.is_foreign]
    if not outside.size:
        return 0.0
    return float((outside > 0.15 * np.quantile(aligned.rates[runs.is_clean], 0.98)).mean())


def _curve(aligned: _Aligned, runs: _Runs, levels: list[float]) -> Reals:
    weights = runs.weights[:, None] * aligned.is_known
    return np.nan_to_num(weighted_quantiles(aligned.rates, weights, np.clip(levels, 0.0, 1.0)))


def _level(aligned: _Aligned, runs: _Runs, params: RobustParams) -> float:
    return params.envelope_level * (1.0 - _foreign_share(aligned, runs))


def _template(aligned: _Aligned, runs: _Runs, params: RobustParams) -> Template | None:
    """Return the common bursts of the runs as they are aligned now."""
    curve = _curve(aligned, runs, [_level(aligned, runs, params)])[0]
    chances = chance(aligned.rates[runs.is_clean], aligned.is_foreign)
    first, last = common_bursts(curve, chances, aligned.step_s, params.bursts)
    return Template.of(curve, first, last) if len(first) else None


def _brought_together(
    runs: _Runs, begun_s: Reals, template: Template, foreign_share: float, step_s: float, params: RobustParams
) -> _Aligned:
    """Return the runs shifted so that each burst begins when it would alone."""
    reached_s = np.concatenate([begun_s, np.maximum(runs.duration_s[:, None], begun_s[:, -1:])], axis=1)
    levels = _span_levels(begun_s, template, foreign_share, runs.step_s, params)
    alone_s = timeline(reached_s, runs.weights, levels)
    edges = np.arange(max(2, round(alone_s[-1] / step_s)) + 1) * step_s
    lead_s = params.alignment.margin_s
    burst = np.clip(np.searchsorted(alone_s[:-1] - lead_s, edges[:-1], side="right") - 1, 0, begun_s.shape[1] - 1)
    shift_s = begun_s[:, burst] - alone_s[burst]
    left, right = (edges[:-1] + shift_s) / runs.step_s, (edges[1:] + shift_s) / runs.step_s
    rates = (_read(runs.total_bytes, right) - _read(runs.total_bytes, left)) / step_s
    whole = np.clip(left.astype(np.int64), 0, runs.is_known.shape[1] - 1)
    is_there = (left >= 0) & (right * runs.step_s <= runs.duration_s[:, None] + step_s)
    is_known = np.take_along_axis(runs.is_known, whole, 1) & is_there
    length_s = (template.last - template.first) * runs.step_s
    is_foreign = _outside(edges[:-1], alone_s[:-1] - 2.0, alone_s[:-1] + length_s + 4.0)
    return _Aligned(rates, is_known, is_foreign, alone_s, step_s)


def _outside(
    at: npt.NDArray[np.floating[Any]], begin: npt.NDArray[np.floating[Any]], end: npt.NDArray[np.floating[Any]]
) -> Bools:
    """Return which times lie in none of some spans, which are in order of their starts."""
    place = np.searchsorted(begin, at, side="right") - 1
    reach = np.maximum.accumulate(end)
    return (place < 0) | (at >= reach[np.maximum(place, 0)])


def _span_levels(
    begun_s: Reals, template: Template, foreign_share: float, step_s: float, params: RobustParams
) -> list[Reals]:
    """Return the quantile to take of each span: the lower, the more of how spans differ is contention.

    Contention may delay what a span has of bursts; without it, spans differ by the runs' own drift, and by how exactly
    starts are known.
    """
    length_s = (template.last - template.first) * step_s
    busy_s = np.concatenate([[0.0, 0.0], np.cumsum(length_s)])
    at_s = np.concatenate([[0.0], np.median(begun_s, axis=0)])
    at_s = np.append(at_s, at_s[-1] + length_s[-1])
    levels = []
    for span in SPANS:
        delay_s = params.delay_ratio * (foreign_share + params.foreign_ratio) * (busy_s[span:] - busy_s[:-span])
        other_s = np.hypot(params.drift_ratio * np.maximum(at_s[span:] - at_s[:-span], 1.0), params.edge_error_s)
        levels.append(params.level_high - params.level_drop * delay_s / (delay_s + other_s))
    return levels


# ---- the signature


def _signature(runs: _Runs, aligned: _Aligned, background: float, params: RobustParams) -> Extracted:
    """Return the low envelope in common bursts, second by second, and how many runs have each burst."""
    template = _template(aligned, runs, params)
    if template is None:
        return Extracted.nothing("no_common_bursts", background)
    level = _level(aligned, runs, params)
    effective = runs.weights.sum() ** 2 / (runs.weights**2).sum()
    half = params.band_deviations * np.sqrt(level * (1.0 - level) / effective)
    curves = _curve(aligned, runs, [level, level - half, level + half])
    begin_s, end_s = template.first * aligned.step_s, template.last * aligned.step_s
    edge_s = 2.0 * max(1.0, aligned.step_s / 2)
    step_edges = np.arange(curves.shape[1]) * aligned.step_s
    curves[:, _outside(step_edges, begin_s - edge_s, end_s + edge_s)] = 0.0
    middle, low, high = _by_second(curves, aligned.step_s)
    if not middle.any():
        return Extracted.nothing("no_common_bursts", background)
    bursts = _bursts(runs, aligned, template, middle, params)
    return Extracted("extracted", middle, low, high, bursts, background)


def _by_second(curves: Reals, step_s: float) -> Reals:
    """Return mean rates in each second of curves on steps (k, steps); no byte is lost."""
    total = _totals(curves * step_s)
    seconds = np.arange(max(1, int(np.ceil(curves.shape[1] * step_s - 1e-9))) + 1)
    at = np.broadcast_to(seconds / step_s, (len(curves), len(seconds)))
    return np.maximum(np.diff(_read(total, at), axis=1), 0.0)


def _bursts(runs: _Runs, aligned: _Aligned, template: Template, curve: Reals, params: RobustParams) -> SignatureBursts:
    """Return the signature's bursts, with the share of runs that have each."""
    end = np.minimum(template.first + template.length, aligned.rates.shape[1])
    boxes = zip(template.first, end, template.height, strict=True)
    held = np.stack([np.minimum(aligned.rates[:, a:b], height).mean(axis=1) / height for a, b, height in boxes])
    support = (held >= params.support_ratio).mean(axis=1)
    begin_s = np.floor(template.first * aligned.step_s).astype(np.int64)
    end_s = np.minimum(np.ceil(template.last * aligned.step_s).astype(np.int64), len(curve))
    peak = [first + int(curve[first:last].argmax()) for first, last in zip(begin_s, end_s, strict=True)]
    total = np.concatenate([[0.0], np.cumsum(curve)])
    return SignatureBursts(
        begin_s.astype(np.float64),
        np.array(peak, dtype=np.float64),
        end_s.astype(np.float64),
        total[end_s] - total[begin_s],
        support,
    )
