"""Stretched runs: all brought to one duration, of which a low quantile less the floor is the signature.

How long a run took tells most of how it drifted: what is left after each run is stretched to one duration is far less.
Foreign traffic only adds, so the more of it there is, the lower a quantile across the runs is the application's own.
Where no burst is, that quantile is the floor that foreign traffic never falls below; a burst of it that runs do not
bear out (`borne_out`) is others', who met there by chance. Foreign traffic that a run's bursts meet only delays it: how
long a run takes alone is what the runs' durations come to where none is met, a straight line through them, drawn
towards what it usually costs. How far to trust it is told apart (`trust`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals, clipped
from iosig.transforms.signatures.averages import quantiles, quantiles_at, row_medians, without_gaps
from iosig.transforms.signatures.borne_out import borne_out
from iosig.transforms.signatures.bursts import Bursts, bursts_of, height, heights, joined, stretches
from iosig.transforms.signatures.preprocessing import MOST_MISSING_RATIO, bridged
from iosig.transforms.signatures.robust_alignment import read_totals, running_totals
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

# All numbers here are ours, and were chosen on the families of simulated sites, on other seeds than the study's.

#: fewer runs give no signature
LEAST_RUN_COUNT = 3
#: a clock has no more steps; they are of a second, or of as much as it then takes
_MOST_STEPS = 4000
#: the share of time in which others are at work, and the quantile of rates that is taken there
RATE_LEVELS = ((0.25, 0.4, 0.6), (0.25, 0.12, 0.05))
#: where that share is judged: the quantile of rates, and below which share of the curve's height
FIRST_LEVEL, _QUIET_RATIO = 0.1, 0.1
#: others are at work where a run exceeds its own floor by this share of the height
_WORK_RATIO, _FLOOR_LEVEL = 0.25, 0.1
#: how long a run is delayed for each second of foreign traffic that its bursts meet, usually, and how much that differs
#: from site to site; a second counts as no more than so many
_DELAY, _DELAY_DEVIATION, _MOST_MET = 0.07, 0.15, 4.0
#: runs differ in duration by at least so much, and of that; by that of what they met; one that is off by so many
#: deviations counts half
_LEAST_DEVIATION_S, _LEAST_DEVIATION, _MET_DEVIATION, _HALF_DEVIATIONS = 3.0, 0.003, 0.05, 2.0
#: alone, a run is shorter than all by no more than this
_MOST_SHORTER = 0.04
_DELAY_ROUNDS = 6
#: bursts that are no further apart are one
_BURST_GAP_S = 8.0
#: where others are at work for less of the time, bursts hold what runs move so far around them, up to so many times
#: what the runs share; the quantile of that is this share of that of rates: a sum hides fewer zeros
_CALM_RATIO, _AROUND_S, _MOST_FILLED, _FILLED_SHARE = 0.35, 15.0, 2.0, 0.5
#: of a burst are the times above this share of the curve's height
_BURST_RATIO = 0.25
#: half of the band's width, in standard deviations of the quantile's own rank (four times of five)
_BAND_DEVIATIONS = 1.28
#: a run has a burst if it holds this share of the curve's volume there
_SUPPORT_RATIO = 0.6


@dataclass(frozen=True, slots=True)
class Stretched:
    """Runs on one clock.

    rates (runs, steps): bytes per second in units of 2 ** exponent, NaN where not measured; no byte is lost by
    stretching. duration_s (runs): how long each took. step_s: how long a step is. foreign_ratio: the share of time
    outside of bursts in which others are at work. shift (runs, steps): by how many steps a run is later there than it
    would be if it were late evenly. others (runs, steps): what others moved meanwhile, in the same unit, where rates
    are the runs' own and that is known.
    """

    rates: Reals
    exponent: int
    duration_s: Reals
    step_s: float
    foreign_ratio: float
    shift: Reals
    others: Reals | None = None

    @property
    def level(self) -> float:
        """The quantile across runs to take."""
        return float(np.interp(self.foreign_ratio, *RATE_LEVELS))

    @property
    def curve(self) -> tuple[Reals, float]:
        """The low quantile across the runs, less its floor (steps), and the floor."""
        return floored(quantiles(self.rates, self.level))


def stretched(one: SampleSet) -> Signature:
    """Return the signature of runs that are brought to one duration: a low quantile across them, less its floor."""
    runs = on_one_clock(one)
    return Signature.nothing("too_few_samples") if runs is None else signature_of(runs)


def on_one_clock(one: SampleSet) -> Stretched | None:
    """Return runs stretched to the median of their durations; None where too few are measured."""
    usable = measured(one)
    if usable.run_count < LEAST_RUN_COUNT:
        return None
    exponent = highest_exponent(usable)
    middle_s = float(np.median(usable.duration_s))
    step_s = max(1.0, middle_s / _MOST_STEPS)
    count = max(2, round(middle_s / step_s))
    rates = on_steps(usable, count, exponent) * (usable.duration_s[:, None] / middle_s)
    ratio = interference_ratio(rates)
    others = None
    if usable.others is not None:
        foreign = replace(usable, samples=replace(usable.samples, values=usable.others))
        others = on_steps(foreign, count, exponent) * (usable.duration_s[:, None] / middle_s)
    return Stretched(rates, exponent, usable.duration_s, middle_s / count, ratio, np.zeros(rates.shape), others)


def measured(one: SampleSet) -> SampleSet:
    """Return the runs that were measured most of their time, short gaps bridged."""
    samples, known = one.samples, one.samples.counts
    if not _are_rates(samples.values):
        is_rate = np.isfinite(samples.values) & (samples.values >= 0)
        samples = bridged(replace(samples, values=np.where(is_rate, samples.values, np.nan)), one.interval_s)
        known = np.bincount(samples.owner[np.isfinite(samples.values)], minlength=one.run_count)
    is_timed = np.isfinite(one.duration_s) & (one.duration_s >= 2 * one.interval_s) & np.isfinite(one.started_s)
    is_usable = is_timed & (known >= (1.0 - MOST_MISSING_RATIO) * samples.counts) & (samples.counts > 1)
    return replace(one, samples=samples).kept(is_usable)


def _are_rates(values: Reals) -> bool:
    """Return whether all values were measured: none is missing, infinite or below 0."""
    # NaN is neither
    return bool(values.min(initial=0.0) >= 0 and values.max(initial=0.0) < np.inf)


def highest_exponent(one: SampleSet) -> int:
    """Return the exponent of the power of 2 that is next above what was measured."""
    return int(np.frexp(np.fmax.reduce(one.samples.values, initial=0.0))[1])


def on_steps(one: SampleSet, count: int, exponent: int) -> Reals:
    """Return mean rates of runs in so many steps of each (runs, count), in 2 ** exponent; NaN: not measured."""
    values, counts = one.samples.values, one.samples.counts
    is_known = np.isfinite(values)
    at = np.arange(count + 1) * (one.duration_s[:, None] / count)
    at -= one.started_s[:, None]
    at /= one.interval_s
    lasted = at[:, 1:] - at[:, :-1]
    if is_known.all():
        moved = _read_steps(np.ldexp(values, -exponent), one.samples.offsets, at)
        # all steps of a run count in full, and nothing beyond them: read off as it is, and mostly nothing is beyond
        if (at[:, 0] >= 0).all() and (at[:, -1] <= counts).all():
            return np.divide(moved, lasted, out=moved)
        known = np.diff(clipped(at, 0.0, counts[:, None]), axis=1)
    else:
        moved = _read_steps(np.ldexp(np.where(is_known, values, 0.0), -exponent), one.samples.offsets, at)
        known = _read_steps(is_known, one.samples.offsets, at)
    # what was not measured of a step was as the rest of it
    is_mostly = known > 0.5 * lasted
    return np.where(is_mostly, moved / np.where(is_mostly, known, 1.0), np.nan)


def _read_steps(values: Reals | Bools, offsets: Ints, at: Reals) -> Reals:
    """Return what runs hold between places (runs, n + 1), in steps; offsets: where each one's values begin."""
    edges = offsets.tolist()
    total = np.zeros((len(at), max(last - first for first, last in pairwise(edges)) + 1))
    for row, (first, last) in zip(total, pairwise(edges), strict=True):
        held = row[1 : last - first + 1]
        values[first:last].cumsum(dtype=np.float64, out=held)
        row[last - first + 1 :] = held[-1:]
    read = read_totals(total, at)
    found: Reals = read[:, 1:] - read[:, :-1]
    return found


def interference_ratio(rates: Reals) -> float:
    """Estimate the share of time with interference from a low quantile across runs and each run's own floor.

    rates (runs, steps), NaN where not measured. Bursts that are not aligned across the runs count as interference.
    """
    floor = np.nan_to_num(quantiles(rates.T, _FLOOR_LEVEL))
    return foreign_ratio(rates, floored(quantiles(rates, FIRST_LEVEL))[0], floor)


def foreign_ratio(rates: Reals, curve: Reals, floor: Reals) -> float:
    """Return the share of time in which others are at work where no burst is; 1 where nothing is told.

    rates (runs, steps), NaN where not measured. curve (steps): a low quantile of them. floor (runs): what each run
    hardly falls below.
    """
    return foreign_ratios(rates[None], curve[None], floor[None])[0]


def foreign_ratios(rates: Reals, curves: Reals, floors: Reals) -> list[float]:
    """Return the share of time in which others are at work in each of some sets of as many runs, as `foreign_ratio`.

    rates (sets, runs, steps), NaN where not measured. curves (sets, steps). floors (sets, runs).
    """
    highest = heights(curves)
    is_asked = np.isfinite(rates) & (curves < _QUIET_RATIO * highest[:, None])[:, None]
    # NaN exceeds nothing
    is_busy = is_asked & (rates > (floors + _WORK_RATIO * highest[:, None])[..., None])
    busy, asked = ([int(np.count_nonzero(own)) for own in marks] for marks in (is_busy, is_asked))
    told = zip(busy, asked, highest.tolist(), strict=True)
    return [own / max(1, room) if high > 0 else 1.0 for own, room, high in told]


def floored(curve: Reals) -> tuple[Reals, float]:
    """Return a curve less its floor, 0 where it is below, and the floor; what is not measured is 0.

    The floor is the median of what lies below the middle between the lowest and the highest rate: bursts may take most
    of the time.
    """
    is_known = np.isfinite(curve)
    is_whole = bool(is_known.all())
    known = curve if is_whole else curve[is_known]
    floor = float(floors(known[None])[0]) if len(known) else 0.0
    return np.maximum((curve if is_whole else without_gaps(curve)) - floor, 0.0), floor


def floors(curves: Reals) -> Reals:
    """Return the floor of each curve (curves, steps), of one step or more, all of them measured; see `floored`."""
    ordered, every = np.sort(curves, axis=1), np.arange(len(curves))
    low, high = ordered[:, :1], ordered[:, -1:]
    count = np.count_nonzero(ordered <= low + (high - low) / 2, axis=1)
    found: Reals = (ordered[every, (count - 1) // 2] + ordered[every, count // 2]) * 0.5
    return found


def alone_s(duration_s: Reals, met_s: Reals) -> float:
    """Return how long a run takes that meets no foreign traffic in its bursts [s].

    duration_s, met_s (runs): how long each took, and for how long others moved as much as its bursts do in them.
    """
    delayed, weights = _fitted(duration_s, met_s)
    found = float((weights * (duration_s - delayed * met_s)).sum() / weights.sum())
    return float(np.clip(found, (1.0 - _MOST_SHORTER) * duration_s.min(), np.median(duration_s)))


def _fitted(duration_s: Reals, met_s: Reals) -> tuple[float, Reals]:
    """Return how long a run is delayed for each second of foreign traffic that its bursts meet, and each run's weight.

    Weighted least squares with a normal prior. What is far off counts less (Cauchy's weights), as where a run has
    another input, and so does a run that met much.
    """
    least = float(np.hypot(_LEAST_DEVIATION_S, _LEAST_DEVIATION * np.median(duration_s)))
    found, weights = _DELAY, np.ones(len(duration_s))
    deviation_of_met = _MET_DEVIATION * met_s
    for _ in range(_DELAY_ROUNDS):
        before = found
        rest = (duration_s - found * met_s)[None]
        off = np.abs(rest - row_medians(rest))
        apart = np.hypot(max(SIGMAS_PER_MAD * float(row_medians(off)[0, 0]), least), deviation_of_met)
        weights = 1.0 / (1.0 + (off[0] / (_HALF_DEVIATIONS * apart)) ** 2) / apart**2
        more_met = met_s - (weights * met_s).sum() / weights.sum()
        pull = (weights * more_met * duration_s).sum() + _DELAY / _DELAY_DEVIATION**2
        found = max(0.0, float(pull / ((weights * more_met**2).sum() + 1.0 / _DELAY_DEVIATION**2)))
        if found == before:
            break
    return found, weights


def met_s(runs: Stretched, curve: Reals) -> Reals:
    """Return for how long others move as much as bursts do, in the bursts of each run (runs) [s]."""
    found: Reals = met_by_step(runs, curve).sum(axis=1) * runs.step_s
    return found


def met_by_step(runs: Stretched, curve: Reals) -> Reals:
    """Return what others move in the bursts of each run (runs, steps), over the height of the bursts.

    A second in which they move more counts more, up to a bound.
    """
    highest = height(curve)
    is_burst = curve > _BURST_RATIO * highest
    found = np.zeros(runs.rates.shape)
    with np.errstate(over="ignore"):  # beyond all numbers is more than the bound, too
        foreign = runs.rates[:, is_burst] - curve[is_burst]
        if runs.others is not None:
            others = runs.others[:, is_burst]
            foreign = np.where(np.isfinite(others), others, foreign)
        found[:, is_burst] = clipped(without_gaps(foreign) / highest, 0.0, _MOST_MET)
    return found


def signature_of(runs: Stretched) -> Signature:
    """Return the low quantile of runs on one clock as a signature, where they bear it out, with its band."""
    half = _BAND_DEVIATIONS * np.sqrt(runs.level * (1.0 - runs.level) / len(runs.rates))
    levels = (runs.level, max(0.0, runs.level - half), min(1.0, runs.level + half))
    across = quantiles_at(runs.rates, levels)
    curve, floor = floored(across[0])
    background = float(np.ldexp(floor, runs.exponent))
    if not curve.any():
        moves = bool((runs.rates > 0).any())
        return Signature.nothing("no_common_bursts" if moves else "no_io", background)
    is_burst = borne_out(runs.rates, curve, runs.step_s)
    curve = np.where(is_burst, curve, 0.0)
    if not curve.any():
        return Signature.nothing("no_common_bursts", background)
    step_s = alone_s(runs.duration_s, met_s(runs, curve)) / len(curve)
    # the band is of the quantiles that so many runs tell no better apart
    low, high = np.where(curve > 0, np.maximum(without_gaps(across[1:]) - floor, 0.0), 0.0)
    curves = np.stack([curve, low, high])
    if runs.foreign_ratio < _CALM_RATIO:
        curves *= _more(runs, curve, floor)
    # a shorter run moves as much
    middle, low, high = np.ldexp(by_second(curves * (runs.step_s / step_s), step_s), runs.exponent)
    bursts = _supported(bursts_of(middle), runs, curves[0], step_s)
    return Signature("extracted", middle, np.minimum(low, middle), np.maximum(high, middle), bursts, background)


def _more(runs: Stretched, curve: Reals, floor: float) -> Reals:
    """Return how many times higher each step is for bursts to hold what runs move around them (steps).

    Runs that are a little apart share too little. Of what each run moves from a little before a burst to a little after
    it a low quantile is taken, too; no burst becomes lower by that, nor much higher.
    """
    highest, count = height(curve), len(curve)
    first, after = joined(*stretches(curve > _BURST_RATIO * highest), _BURST_GAP_S / runs.step_s)
    found = np.ones(count)
    if not len(first):
        return found
    around = max(1, round(_AROUND_S / runs.step_s))
    middles = (after[:-1] + first[1:]) // 2
    left = np.maximum(first - around, np.concatenate([[0], middles]))
    right = np.minimum(after + around, np.concatenate([middles, [count]]))
    total = running_totals(np.maximum(without_gaps(runs.rates) - floor, 0.0))
    moved = np.quantile(total[:, right] - total[:, left], _FILLED_SHARE * runs.level, axis=0)
    own = np.diff(running_totals(curve[None])[0][np.stack([left, right])], axis=0)[0]
    more = np.clip(moved / own, 1.0, _MOST_FILLED)
    for begin, end, by in zip(left.tolist(), right.tolist(), more.tolist(), strict=True):
        found[begin:end] = by
    return found


def by_second(curves: Reals, step_s: float) -> Reals:
    """Return mean rates in whole seconds (n, seconds) of curves on steps (n, steps); no byte is lost."""
    total = running_totals(curves * step_s)
    seconds = np.arange(max(1, round(curves.shape[1] * step_s)) + 1) / step_s
    seconds[-1] = curves.shape[1]
    at = np.broadcast_to(seconds, (len(curves), len(seconds)))
    found: Reals = np.maximum(np.diff(read_totals(total, at), axis=1), 0.0)
    return found


def _supported(bursts: Bursts, runs: Stretched, curve: Reals, step_s: float) -> Bursts:
    """Return bursts with the share of the runs that have each: those that hold most of what the curve has there."""
    if not len(bursts):
        return bursts
    first = np.floor(bursts.started_s / step_s).astype(np.int64)
    last = np.minimum(np.ceil(bursts.ended_s / step_s), len(curve)).astype(np.int64)
    is_known = np.isfinite(runs.rates)
    held = running_totals(np.where(is_known, np.minimum(runs.rates, curve), 0.0))
    # where all is known, the same is wanted of all runs
    wanted = running_totals(curve[None] if is_known.all() else np.where(is_known, curve, 0.0))
    has: Bools = held[:, last] - held[:, first] >= _SUPPORT_RATIO * (wanted[:, last] - wanted[:, first])
    return replace(bursts, support_ratio=has.mean(axis=0))
