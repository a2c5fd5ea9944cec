"""Extract the signatures of cleaned samples: a weighted quantile across aligned runs.

Plain samples contain additive interference, so that a low quantile across runs is the application's own traffic.
Cleaned samples err in both directions: they lack bytes where another run was misplaced. So the cleaner the samples are,
the closer the quantile is to the median. The more traffic was subtracted in a step, the lower its weight. Contention
was removed before (`contention`), so the times between bursts are those of uncontended runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.joint.contention import cauchy_weights
from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.averages import nan_quantile
from iosig.transforms.signatures.bursts import burst_height, detect_bursts
from iosig.transforms.signatures.elastic import align_elastically
from iosig.transforms.signatures.expected_correlation import RunSummary
from iosig.transforms.signatures.robust_alignment import cumulative_sums
from iosig.transforms.signatures.robust_quantiles import weighted_quantiles
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.time_normalized import (
    TimeNormalizedRuns,
    interference_ratio,
    normalize_durations,
    subtract_baseline,
)

#: level of the weighted quantile as a function of the remaining interference ratio: ratios, and the level at each;
#: linear in between
_INTERFERENCE_LEVELS = ((0.1, 0.3, 0.45, 0.6), (0.5, 0.3, 0.15, 0.08))


@dataclass(frozen=True, slots=True)
class EnvelopeParams:
    """Constants of the envelope, chosen on simulated sites of seeds 1 to 3 (not the study's).

    Attributes
    ----------
    initial_level
        Level of the quantile across runs that serves to estimate the remaining interference ratio.
    baseline_level
        Level of the quantile of each run's own rates that is the run's baseline.
    half_weight_ratio
        Subtracted traffic that halves the weight of a step, relative to the burst height.
    min_height_ratio
        Rates below this fraction of the burst height become 0.
    band_deviations
        Half the width of the band, in standard deviations of the quantile's rank; yields an 80 % interval.
    min_anchor_volume_ratio
        Bursts above this fraction of the largest burst volume determine the timing of runs.
    """

    initial_level: float = 0.15
    baseline_level: float = 0.1
    half_weight_ratio: float = 1.5
    min_height_ratio: float = 0.08
    band_deviations: float = 1.28
    min_anchor_volume_ratio: float = 0.1


PARAMS = EnvelopeParams()


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Signatures of m sample sets.

    Attributes
    ----------
    signatures : m
        Signature of each set; `outcome` explains a missing one.
    expected_correlation : (m,)
        Expected correlation of the signature with the truth; NaN without a signature.
    """

    signatures: tuple[Signature, ...]
    expected_correlation: Reals


@dataclass(frozen=True, slots=True)
class _CommonCurve:
    """Weighted quantile across aligned runs (steps), with the limits of its band; runs: the aligned runs."""

    runs: TimeNormalizedRuns
    middle: Reals
    low: Reals
    high: Reals


def extract_envelopes(sets: SampleSets, min_run_count: int) -> Envelopes:
    """Extract the signatures of cleaned sample sets.

    Parameters
    ----------
    sets
        The m sample sets with their interference.
    min_run_count
        Minimum number of runs in a set; smaller sets have no signature.

    Returns
    -------
    Envelopes
    """
    is_typical = outliers.select_typical_runs(sets.duration_s, sets.offsets)
    edges = sets.offsets.tolist()
    typical = [sets.get_set(index).select_runs(is_typical[a:b]) for index, (a, b) in enumerate(pairwise(edges))]
    is_enough = (np.diff(sets.offsets) >= min_run_count).tolist()
    curves = [_common_curve(item) if has_enough else None for item, has_enough in zip(typical, is_enough, strict=True)]
    signatures, expected = [], np.full(sets.set_count, np.nan)
    for index, (sample_set, curve) in enumerate(zip(typical, curves, strict=True)):
        if curve is None:
            signature = Signature.missing("no_common_bursts" if is_enough[index] else "too_few_samples")
        else:
            signature = _build_signature(curve)
        summary = RunSummary.from_set(sample_set) if signature.outcome == "extracted" else None
        if summary is not None:
            expected[index] = summary.predict_correlation(signature, "elastic")
        signatures.append(signature)
    return Envelopes(tuple(signatures), expected)


def _common_curve(sample_set: SampleSet) -> _CommonCurve | None:
    """Compute the common curve of a set's runs; None if it is zero everywhere."""
    runs = normalize_durations(sample_set)
    if runs is None:
        return None
    runs = align_elastically(runs)
    initial = subtract_baseline(nan_quantile(runs.rates, PARAMS.initial_level))[0]
    height = burst_height(initial)
    if not height > 0:
        return None
    baselines = np.nan_to_num(nan_quantile(runs.rates.T, PARAMS.baseline_level))
    level = float(np.interp(interference_ratio(runs.rates, initial, baselines), *_INTERFERENCE_LEVELS))
    interference = np.zeros(runs.rates.shape) if runs.interference is None else np.nan_to_num(runs.interference)
    weights = np.isfinite(runs.rates) / (1.0 + (interference / (PARAMS.half_weight_ratio * height)) ** 2)
    half = PARAMS.band_deviations * np.sqrt(level * (1.0 - level) / len(runs.rates))
    levels = np.clip([level, level - half, level + half], 0.0, 1.0)
    quantiles = weighted_quantiles(np.nan_to_num(runs.rates), weights, levels)
    curve, baseline = subtract_baseline(quantiles[0])
    curve = np.where(curve > PARAMS.min_height_ratio * burst_height(curve), curve, 0.0)
    if not curve.any():
        return None
    low, high = np.where(curve > 0, np.maximum(np.nan_to_num(quantiles[1:]) - baseline, 0.0), 0.0)
    return _CommonCurve(runs, curve, np.minimum(low, curve), np.maximum(high, curve))


def _build_signature(curve: _CommonCurve) -> Signature:
    """Resample the common curve to seconds, with the typical timing of the runs."""
    edges_s = _time_steps(curve)
    seconds = np.arange(max(1, round(edges_s[-1])) + 1.0)
    seconds[-1] = edges_s[-1]
    middle, low, high = (
        np.ldexp(np.maximum(np.diff(np.interp(seconds, edges_s, total)), 0.0), curve.runs.exponent)
        for total in cumulative_sums(np.stack([curve.middle, curve.low, curve.high]) * curve.runs.step_s)
    )
    return Signature(
        "extracted", middle, np.minimum(low, middle), np.maximum(high, middle), detect_bursts(middle), float("nan")
    )


# ---- timing


def _time_steps(curve: _CommonCurve) -> Reals:
    """Compute the time at which a typical run reaches the edge of each step (steps + 1) [s].

    The time between the centers of consecutive large bursts is the weighted mean over runs. In between, time is linear.
    """
    runs, count = curve.runs, len(curve.middle)
    knots = np.concatenate([[0.0], _burst_centers(curve.middle), [count]])
    shift = np.array([np.interp(knots[1:-1], np.arange(count) + 0.5, row) for row in runs.shift])
    step_s = runs.duration_s[:, None] / count
    start_s, end_s = np.zeros((len(step_s), 1)), runs.duration_s[:, None]
    reached_s = np.concatenate([start_s, (knots[1:-1] + shift) * step_s, end_s], axis=1)
    knots_s = np.cumsum([0.0, *(weighted_mean_s(span_s) for span_s in np.diff(reached_s, axis=1).T)])
    edges_s: Reals = np.interp(np.arange(count + 1), knots, knots_s)
    return edges_s


def _burst_centers(curve: Reals) -> Reals:
    """Return the centers of mass of a curve's large bursts, in steps."""
    bursts = detect_bursts(curve)
    min_volume = PARAMS.min_anchor_volume_ratio * bursts.volume_bytes.max(initial=0.0)
    large = np.flatnonzero(bursts.volume_bytes > min_volume)
    first, end = bursts.start_s[large].astype(np.int64), np.ceil(bursts.end_s[large]).astype(np.int64)
    places = np.arange(len(curve)) + 0.5
    total = cumulative_sums(np.stack([curve, curve * places]))
    volume, moment = total[:, np.minimum(end, len(curve))] - total[:, first]
    centers: Reals = moment / volume
    return centers


def weighted_mean_s(span_s: Reals) -> float:
    """Return the mean of a span's durations in all runs (n) [s], weighted by `cauchy_weights`; never negative."""
    weights = cauchy_weights(span_s, np.zeros(len(span_s)))
    return max(float((weights * span_s).sum() / weights.sum()), 0.0)
