"""Envelopes of cleaned samples: across aligned runs a weighted quantile, in which what was clean counts most.

What plain samples have beyond the application is others' traffic, which only adds, and a low quantile across runs is
the application's own. Cleaned samples err both ways: where another run was misplaced they lack bytes. So the cleaner
they are, the nearer the quantile comes to the median; and a step counts the less, the more others were given in it.
How long a run takes alone from burst to burst is told by what its bursts met, which is known here; one second of it
costs all applications of a file system alike, so all are asked together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from transforms.arrays import Reals
from transforms.signatures import left_out, stretched
from transforms.signatures.averages import quantiles
from transforms.signatures.bursts import bursts_of, height
from transforms.signatures.robust import weighted_quantiles
from transforms.signatures.robust_alignment import running_totals
from transforms.signatures.sample_sets import SampleSet, SampleSets
from transforms.signatures.signature import Signature
from transforms.signatures.stretched import Stretched
from transforms.signatures.trust import Judge
from transforms.signatures.warped import warp

# All numbers here are ours, and were chosen on simulated sites of seeds 1 to 3, other ones than the study's.

#: the share of time in which others are still at work, and the weighted quantile that is taken there
_RATE_LEVELS = ((0.1, 0.3, 0.45, 0.6), (0.5, 0.3, 0.15, 0.08))
#: where that share is judged: a low quantile of rates, and that of each run's own which is its floor
_FIRST_LEVEL, _FLOOR_LEVEL = 0.15, 0.1
#: a step in which others were given so many times the height counts half
_HALF_CLEAN = 1.5
#: lower than this share of the height there is no burst
_LEAST_HEIGHT = 0.08
#: half of the band's width, in standard deviations of the quantile's own rank (four times of five)
_BAND_DEVIATIONS = 1.28
#: what a second of others' traffic at the application's own height costs a run usually, and how much that differs
_DELAY, _DELAY_DEVIATION = 0.07, 0.15
#: runs are timed at bursts of more than this share of the largest one's volume
_LARGE_RATIO = 0.1
#: runs differ in duration by this at least [s]; how unsure a delay is, as a share of it; a run that is off by so many
#: deviations counts half
_LEAST_DEVIATION_S, _UNSURE_DELAY, _HALF_DEVIATIONS = 2.0, 0.5, 2.0
_DELAY_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Signatures of m sample sets, with the trust of each (m), NaN where there is none; delay: see `usual_delay`."""

    signatures: tuple[Signature, ...]
    trust: Reals
    delay: float


@dataclass(frozen=True, slots=True)
class _Curve:
    """What aligned runs have in common (steps) between the edges of its band; met_s (runs): see `stretched.met_s`."""

    runs: Stretched
    middle: Reals
    low: Reals
    high: Reals
    met_s: Reals


def extract(sets: SampleSets, least_run_count: int) -> Envelopes:
    """Return the signatures of cleaned sample sets (m), each with what others moved; none of those of fewer runs."""
    is_usual = left_out.are_usual(sets.duration_s, sets.offsets)
    edges = sets.offsets.tolist()
    usual = [sets.one(place).kept(is_usual[a:b]) for place, (a, b) in enumerate(pairwise(edges))]
    is_enough = (np.diff(sets.offsets) >= least_run_count).tolist()
    curves = [_curve(one) if has else None for one, has in zip(usual, is_enough, strict=True)]
    told = [curve for curve in curves if curve is not None]
    delay = usual_delay([curve.runs.duration_s for curve in told], [curve.met_s for curve in told])
    signatures, trust = [], np.full(sets.set_count, np.nan)
    for place, (one, curve) in enumerate(zip(usual, curves, strict=True)):
        found = _signature(curve, delay) if curve is not None else _none(is_enough[place])
        judge = Judge.of(one) if found.outcome == "extracted" else None
        if judge is not None:
            trust[place] = judge.trust(found, "warped")
        signatures.append(found)
    return Envelopes(tuple(signatures), trust, delay)


def _none(is_enough: bool) -> Signature:
    return Signature.nothing("no_common_bursts" if is_enough else "too_few_samples")


def _curve(one: SampleSet) -> _Curve | None:
    """Return what the runs of a set have in common, None where that is nothing."""
    runs = stretched.on_one_clock(one)
    if runs is None:
        return None
    runs = warp(runs)
    first = stretched.floored(quantiles(runs.rates, _FIRST_LEVEL))[0]
    highest = height(first)
    if not highest > 0:
        return None
    ratio = stretched.foreign_ratio(runs.rates, first, np.nan_to_num(quantiles(runs.rates.T, _FLOOR_LEVEL)))
    level = float(np.interp(ratio, *_RATE_LEVELS))
    others = np.zeros(runs.rates.shape) if runs.others is None else np.nan_to_num(runs.others)
    weights = np.isfinite(runs.rates) / (1.0 + (others / (_HALF_CLEAN * highest)) ** 2)
    half = _BAND_DEVIATIONS * np.sqrt(level * (1.0 - level) / len(runs.rates))
    levels = np.clip([level, level - half, level + half], 0.0, 1.0)
    across = weighted_quantiles(np.nan_to_num(runs.rates), weights, levels)
    curve, floor = stretched.floored(across[0])
    curve = np.where(curve > _LEAST_HEIGHT * height(curve), curve, 0.0)
    if not curve.any():
        return None
    low, high = np.where(curve > 0, np.maximum(np.nan_to_num(across[1:]) - floor, 0.0), 0.0)
    return _Curve(runs, curve, np.minimum(low, curve), np.maximum(high, curve), stretched.met_s(runs, curve))


def _signature(curve: _Curve, delay: float) -> Signature:
    """Return what runs have in common by the clock of one alone."""
    edges_s = _clock(curve, delay)
    seconds = np.arange(max(1, round(edges_s[-1])) + 1.0)
    seconds[-1] = edges_s[-1]
    middle, low, high = (
        np.ldexp(np.maximum(np.diff(np.interp(seconds, edges_s, total)), 0.0), curve.runs.exponent)
        for total in running_totals(np.stack([curve.middle, curve.low, curve.high]) * curve.runs.step_s)
    )
    return Signature(
        "extracted", middle, np.minimum(low, middle), np.maximum(high, middle), bursts_of(middle), float("nan")
    )


# ---- how long a run takes alone


def _clock(curve: _Curve, delay: float) -> Reals:
    """Return when a run alone reaches the edge of each step (steps + 1) [s].

    From burst to burst each run took so long, and met so much; between their middles time passes evenly.
    """
    runs, count = curve.runs, len(curve.middle)
    knots = np.concatenate([[0.0], _middles(curve.middle), [count]])
    shift = np.array([np.interp(knots[1:-1], np.arange(count) + 0.5, own) for own in runs.shift])
    paces = runs.duration_s[:, None] / count
    ends = np.zeros((len(paces), 1)), runs.duration_s[:, None]
    reached_s = np.concatenate([ends[0], (knots[1:-1] + shift) * paces, ends[1]], axis=1)
    met = running_totals(stretched.met_by_step(runs, curve.middle) * runs.step_s)
    met_s = np.diff([np.interp(knots, np.arange(count + 1), own) for own in met], axis=1)
    spans = zip(np.diff(reached_s, axis=1).T, met_s.T, strict=True)
    alone = np.cumsum([0.0, *(alone_s(lasted_s, own, delay) for lasted_s, own in spans)])
    found: Reals = np.interp(np.arange(count + 1), knots, alone)
    return found


def _middles(curve: Reals) -> Reals:
    """Return where the middles of a curve's large bursts lie, in steps."""
    bursts = bursts_of(curve)
    large = np.flatnonzero(bursts.volume_bytes > _LARGE_RATIO * bursts.volume_bytes.max(initial=0.0))
    first, after = bursts.started_s[large].astype(np.int64), np.ceil(bursts.ended_s[large]).astype(np.int64)
    places = np.arange(len(curve)) + 0.5
    total = running_totals(np.stack([curve, curve * places]))
    volume, moment = total[:, np.minimum(after, len(curve))] - total[:, first]
    found: Reals = moment / volume
    return found


def usual_delay(durations_s: Sequence[Reals], met_s: Sequence[Reals]) -> float:
    """Return how long runs are delayed for each second of others' traffic that their bursts meet.

    durations_s, met_s: of each set (runs). Weighted least squares on all sets at once, each against its own median,
    with a normal prior; what is far off counts less (Cauchy's weights).
    """
    found = _DELAY
    for _ in range(_DELAY_ROUNDS):
        pull, weight = _DELAY / _DELAY_DEVIATION**2, 1.0 / _DELAY_DEVIATION**2
        for duration_s, met in zip(durations_s, met_s, strict=True):
            weights = _weights(duration_s - found * met, found * met)
            total = weights.sum()
            more_met = met - (weights * met).sum() / total
            pull += float((weights * more_met * (duration_s - (weights * duration_s).sum() / total)).sum())
            weight += float((weights * more_met**2).sum())
        found = max(0.0, pull / weight)
    return found


def alone_s(duration_s: Reals, met_s: Reals, delay: float) -> float:
    """Return how long what runs do takes one that meets nobody [s]: the weighted mean of durations less delays."""
    rest = duration_s - delay * met_s
    weights = _weights(rest, delay * met_s)
    return max(float((weights * rest).sum() / weights.sum()), 0.0)


def _weights(rest_s: Reals, delayed_s: Reals) -> Reals:
    """Return how much each run counts, by how far its duration without delays is off, and how much it was delayed."""
    off = rest_s - np.median(rest_s)
    least = max(1.4826 * float(np.median(np.abs(off))), _LEAST_DEVIATION_S)
    apart = np.hypot(least, _UNSURE_DELAY * delayed_s)
    found: Reals = 1.0 / (1.0 + (off / (_HALF_DEVIATIONS * apart)) ** 2) / apart**2
    return found
