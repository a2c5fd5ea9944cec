"""Envelopes of cleaned samples: across aligned runs a weighted quantile, in which what was clean counts most.

What plain samples have beyond the application is others' traffic, which only adds, and a low quantile across runs is
the application's own. Cleaned samples err both ways: where another run was misplaced they lack bytes. So the cleaner
they are, the nearer the quantile comes to the median; and a step counts the less, the more others were given in it.
What others cost the runs themselves has been taken off before (`slowing`): from burst to burst runs take what they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.joint.slowing import run_weights
from iosig.transforms.signatures import left_out, stretched
from iosig.transforms.signatures.averages import quantiles
from iosig.transforms.signatures.bursts import bursts_of, height
from iosig.transforms.signatures.robust_alignment import running_totals
from iosig.transforms.signatures.robust_quantiles import weighted_quantiles
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.stretched import Stretched
from iosig.transforms.signatures.trust import Judge
from iosig.transforms.signatures.warped import warp

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
#: runs are timed at bursts of more than this share of the largest one's volume
_LARGE_RATIO = 0.1


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Signatures of m sample sets, with the trust of each (m), NaN where there is none."""

    signatures: tuple[Signature, ...]
    trust: Reals


@dataclass(frozen=True, slots=True)
class _Curve:
    """What aligned runs have in common (steps), between the edges of its band."""

    runs: Stretched
    middle: Reals
    low: Reals
    high: Reals


def extract(sets: SampleSets, least_run_count: int) -> Envelopes:
    """Return the signatures of cleaned sample sets (m), each with what others moved; none of those of fewer runs."""
    is_usual = left_out.are_usual(sets.duration_s, sets.offsets)
    edges = sets.offsets.tolist()
    usual = [sets.one(place).kept(is_usual[a:b]) for place, (a, b) in enumerate(pairwise(edges))]
    is_enough = (np.diff(sets.offsets) >= least_run_count).tolist()
    curves = [_curve(one) if has else None for one, has in zip(usual, is_enough, strict=True)]
    signatures, trust = [], np.full(sets.set_count, np.nan)
    for place, (one, curve) in enumerate(zip(usual, curves, strict=True)):
        if curve is None:
            found = Signature.nothing("no_common_bursts" if is_enough[place] else "too_few_samples")
        else:
            found = _signature(curve)
        judge = Judge.of(one) if found.outcome == "extracted" else None
        if judge is not None:
            trust[place] = judge.trust(found, "warped")
        signatures.append(found)
    return Envelopes(tuple(signatures), trust)


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
    return _Curve(runs, curve, np.minimum(low, curve), np.maximum(high, curve))


def _signature(curve: _Curve) -> Signature:
    """Return what runs have in common by the clock of most."""
    edges_s = _clock(curve)
    seconds = np.arange(max(1, round(edges_s[-1])) + 1.0)
    seconds[-1] = edges_s[-1]
    middle, low, high = (
        np.ldexp(np.maximum(np.diff(np.interp(seconds, edges_s, total)), 0.0), curve.runs.exponent)
        for total in running_totals(np.stack([curve.middle, curve.low, curve.high]) * curve.runs.step_s)
    )
    return Signature(
        "extracted", middle, np.minimum(low, middle), np.maximum(high, middle), bursts_of(middle), float("nan")
    )


# ---- how long a run takes


def _clock(curve: _Curve) -> Reals:
    """Return when a run reaches the edge of each step (steps + 1) [s].

    From burst to burst each run took so long; between their middles time passes evenly.
    """
    runs, count = curve.runs, len(curve.middle)
    knots = np.concatenate([[0.0], _middles(curve.middle), [count]])
    shift = np.array([np.interp(knots[1:-1], np.arange(count) + 0.5, own) for own in runs.shift])
    paces = runs.duration_s[:, None] / count
    ends = np.zeros((len(paces), 1)), runs.duration_s[:, None]
    reached_s = np.concatenate([ends[0], (knots[1:-1] + shift) * paces, ends[1]], axis=1)
    lasted = np.cumsum([0.0, *(lasted_s(own) for own in np.diff(reached_s, axis=1).T)])
    found: Reals = np.interp(np.arange(count + 1), knots, lasted)
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


def lasted_s(own_s: Reals) -> float:
    """Return how long runs take, where each took so long (n) [s]: the mean, in which those far off count less."""
    weights = run_weights(own_s, np.zeros(len(own_s)))
    return max(float((weights * own_s).sum() / weights.sum()), 0.0)
