"""Estimate the correlation of a signature with the unknown truth: a calibrated confidence from its fit to the runs.

No sample contains the truth, but the runs of a set can be compared with each other and with a signature. One group of
features does not depend on the signature: leave-one-out prediction, i.e. the fraction of the other runs' low quantile
that each run contains, and the agreement between two halves of the runs. The other group compares the signature with
the runs: the fraction that the runs contain, recurring traffic that the signature lacks, and the width of its bursts
relative to the uncertainty of durations. Interference is additive, so only traffic that a run lacks counts against a
prediction.

A linear model maps the features to the expected correlation. It was fitted to true correlations on the simulated
families of sites (`iosig.studies.signatures.calibration`). The result is published as `expected_correlation`. The
signature with the highest expected correlation becomes the default; `elastic` has a small bonus.

All leave-one-out quantiles are read from one sorted table, which takes less time than one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals, clip
from iosig.transforms.signatures.averages import median_1d, quantile_1d, quantile_of_sorted, replace_nan, row_medians
from iosig.transforms.signatures.bursts import burst_heights, find_true_intervals
from iosig.transforms.signatures.robust_alignment import cumulative_sums, interpolate_sums
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.time_normalized import (
    INTERFERENCE_LEVELS,
    PARAMS as TIME_NORMALIZED_PARAMS,
    estimate_baselines,
    interference_ratios,
    rate_exponent,
    resample,
    select_measured_runs,
    subtract_baseline,
)

#: number of steps that runs and signatures are resampled to
STEPS = 512
#: number of rates in a batch of sets, which fits the processor's cache
_BATCH_VALUES = 1 << 16
#: outcomes of a method with enough runs and bytes for its signature to be compared with the runs
COMPARABLE_OUTCOMES = ("extracted", "no_common_bursts")

FEATURES = (
    "agreement", "smoothed_agreement", "coverage", "run_correlation", "missing_ratio", "log_volume_ratio",
    "duration_excess", "duration_uncertainty", "log_burst_width", "leave_one_out_coverage",
    "leave_one_out_correlation", "split_half_correlation", "interference_ratio", "is_evidence_tested", "is_robust",
    "robust_interference_ratio", "robust_duration_excess", "robust_agreement",
)  # fmt: skip
#: coefficients of the linear model; fitted to the families of sites and to our own simulated site (seeds other than the
#: study's), and to the truth itself under interference that hides it, with an expected correlation of 0.75 at most
_COEFFICIENTS: dict[str, float] = {
    "intercept": -0.3181,
    "agreement": 0.6704,
    "smoothed_agreement": 0.0523,
    "coverage": 0.0000,
    "run_correlation": 0.0000,
    "missing_ratio": -0.0123,
    "log_volume_ratio": 0.0096,
    "duration_excess": 6.5895,
    "duration_uncertainty": -0.2113,
    "log_burst_width": -0.0079,
    "leave_one_out_coverage": 0.3707,
    "leave_one_out_correlation": 0.1978,
    "split_half_correlation": 0.0000,
    "interference_ratio": 0.0000,
    "is_evidence_tested": 0.0731,
    "is_robust": 0.3478,
    "robust_interference_ratio": -0.0106,
    "robust_duration_excess": -3.4360,
    "robust_agreement": -0.3129,
}
#: features with a coefficient of 0 are not computed
_USED_FEATURES = tuple(name for name in FEATURES if _COEFFICIENTS[name])
#: methods with bursts that passed the test of `burst_evidence`, which is a feature of its own
_EVIDENCE_TESTED = ("elastic", "time_normalized")
#: methods between which the expected correlation decides; others are used only if neither has a signature
PREFERRED_METHODS = ("elastic", "robust")
#: bonus of the first preferred method; a third preferred method made the selection worse by 0.003 to 0.004
_FIRST_METHOD_BONUS = 0.03
#: minimum expected correlation of a signature; together with `min_run_correlation`, it rejects 70 of 1,500 sets of the
#: study's families, and the correlation of the 35 % quantile is below 0.7 in all of these sets
MIN_EXPECTED_CORRELATION = 0.3


@dataclass(frozen=True, slots=True)
class ComparisonParams:
    """Constants of the comparison between a signature and the runs.

    Attributes
    ----------
    max_run_count
        Maximum number of runs used; they have the smallest volumes.
    near_steps
        Maximum distance in time within the same burst, in steps.
    baseline_level
        Quantile of each run's own rates that is subtracted.
    recurring_level
        Level of the quantile across runs that represents recurring traffic.
    visible_level
        Level of the quantile across runs that represents bursts in most runs.
    visible_height_ratio
        Smallest height of such a burst, relative to the signature's bursts.
    covered_height_ratio
        Minimum height of a signature that covers a burst, relative to the signature's own bursts.
    max_expected_by_chance
        Maximum expected number of places in a run that are equally high by chance.
    max_height_ratio
        Multiple of a signature's height above which rates are interference, and clipped.
    min_run_correlation
        Minimum mean leave-one-out correlation of runs with something in common. For pure noise, it is 0.04 on average,
        and hardly ever exceeds this value.
    """

    max_run_count: int = 20
    near_steps: int = 4
    baseline_level: float = 0.1
    recurring_level: float = 0.3
    visible_level: float = 0.2
    visible_height_ratio: float = 0.5
    covered_height_ratio: float = 0.1
    max_expected_by_chance: float = 1.0
    max_height_ratio: float = 1.2
    min_run_correlation: float = 0.08


PARAMS = ComparisonParams()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of the runs of a set for the comparison with signatures.

    Attributes
    ----------
    rates : (runs, STEPS)
        Resampled rates, minus the baseline of each run, in units of 2 ** exponent bytes per second.
    near : (runs, STEPS)
        Maximum rate near each step, sorted across runs.
    common : (STEPS,)
        Low quantile across runs, minus its baseline.
    duration_s
        Median duration of the runs [s].
    duration_uncertainty
        Relative standard error of that duration.
    level
        Level of the quantile across runs.
    set_features
        Features that do not depend on the signature.
    """

    rates: Reals
    near: Reals
    common: Reals
    exponent: int
    duration_s: float
    duration_uncertainty: float
    level: float
    set_features: Mapping[str, float]

    @classmethod
    def from_set(cls, sample_set: SampleSet) -> RunSummary | None:
        """Summarize the runs of a set; None if too few are measured."""
        return next((summary for _, summary in summarize_runs([sample_set])), None)

    def compute_features(self, signature: Signature, method: str, names: Sequence[str] = FEATURES) -> Reals:
        """Compute features of a method's signature (names)."""
        features: Reals = compute_features([self], [signature], method, names)[0]
        return features

    def split_half_correlation(self) -> float:
        """Correlation between the common curves of both halves of the runs."""
        from scipy.ndimage import uniform_filter1d

        curves = [
            subtract_baseline(quantile_of_sorted(np.sort(self.rates[begin::2], axis=0), self.level))[0]
            for begin in (0, 1)
        ]
        return float(pearson_correlation(*(uniform_filter1d(curve, PARAMS.near_steps + 1) for curve in curves)))

    def mean_coverage(self, curve: Reals) -> float:
        """Fraction of a curve (STEPS) that the runs contain, averaged over runs."""
        return float((np.minimum(self.rates, curve).sum(axis=1) / max(float(curve.sum()), 1e-300)).mean())

    def mean_run_correlation(self, curve: Reals, height: float) -> float:
        """Correlation of a curve (STEPS) of a given height with each run, averaged over runs."""
        clipped_rates = np.minimum(self.rates, PARAMS.max_height_ratio * height)
        return float(pearson_correlation(clipped_rates, curve[None]).mean())

    def predict_correlation(self, signature: Signature, method: str) -> float:
        """Predict the correlation with the truth, 0 to 1; NaN without a signature."""
        return float(predict_correlations([self], [signature], method)[0])

    def find_missing_bursts(self, signature: Signature) -> Reals:
        """Find bursts that most runs contain and a signature lacks.

        Returns
        -------
        (n, 2)
            Start and end, relative to the duration of the run.

        Notes
        -----
        A place counts if all runs but a few (`visible_level`) have a burst nearby that exceeds their usual traffic. The
        burst must have half the height of the signature's bursts (without a signature: of the recurring traffic) or
        more. The number of runs with such a burst must be improbable by chance, given how often runs are that high
        elsewhere.
        """
        return find_missing_bursts([self], [signature])[0]

    def count_missing_bursts(self, signature: Signature) -> float:
        """Count the bursts that most runs contain and a signature lacks; NaN if it is not comparable."""
        return float(count_missing_bursts([self], [signature])[0])

    def resample(self, signature: Signature) -> Reals:
        """Resample a signature to mean rates in the steps of the runs (STEPS), in their unit."""
        seconds = np.ldexp(signature.bytes_per_s, -self.exponent)
        total = cumulative_sums(seconds[None])
        at = np.arange(STEPS + 1, dtype=np.float64)[None] * (len(seconds) / STEPS)
        rates = np.diff(interpolate_sums(total, at)[0]) * (STEPS / len(seconds))
        # so that squares of rates far beyond all measured ones remain in range
        return clip(rates, 0.0, 1e100)


# ---- summaries of runs


def summarize_runs(sets: Iterable[SampleSet]) -> Iterator[tuple[int, RunSummary]]:
    """Summarize the runs of several sets in batches.

    Parameters
    ----------
    sets
        Sample sets; those with too few measured runs are skipped.

    Yields
    ------
    index, summary
        Number of each set and its summary, in any order. Sets with the same number of runs form a batch, since half of
        the time for single sets would be call overhead.
    """
    usable = [select_measured_runs(one) for one in sets]
    counts = np.array([min(one.run_count, PARAMS.max_run_count) for one in usable], dtype=np.int64)
    for count in np.unique(counts[counts >= TIME_NORMALIZED_PARAMS.min_run_count]).tolist():
        indices = np.flatnonzero(counts == count).tolist()
        step = max(1, _BATCH_VALUES // (count * STEPS))
        for first in range(0, len(indices), step):
            batch = indices[first : first + step]
            yield from zip(batch, _summarize_batch([usable[index] for index in batch]), strict=True)


def _summarize_batch(sets: Sequence[SampleSet]) -> list[RunSummary]:
    """Summarize sets that all have the same number of used runs."""
    exponents = [rate_exponent(one) for one in sets]
    cleanest = np.stack([_select_cleanest(one, exponent) for one, exponent in zip(sets, exponents, strict=True)])
    rank = int(PARAMS.baseline_level * (STEPS - 1))
    above = cleanest - np.partition(cleanest, rank)[..., [rank]]
    np.maximum(above, 0.0, out=above)
    ordered = np.sort(above, axis=1)
    initial = _subtract_baselines(quantile_of_sorted(ordered, TIME_NORMALIZED_PARAMS.initial_level))
    ratios = interference_ratios(above, initial, np.zeros(above.shape[:2]))
    levels = np.interp(ratios, *INTERFERENCE_LEVELS).tolist()
    common = _subtract_baselines(
        np.stack([quantile_of_sorted(rows, level) for rows, level in zip(ordered, levels, strict=True)])
    )
    near = np.sort(moving_maximum(above, PARAMS.near_steps), axis=1)
    leave_one_out = (values.tolist() for values in _predict_leave_one_out(above, ordered, np.array(levels)))
    names = ("leave_one_out_coverage", "leave_one_out_correlation", "interference_ratio")
    set_features = [dict(zip(names, values, strict=True)) for values in zip(*leave_one_out, ratios, strict=True)]
    median_s, uncertainty = zip(*(_median_duration(one.duration_s, above.shape[1]) for one in sets), strict=True)
    columns = zip(above, near, common, exponents, median_s, uncertainty, levels, set_features, strict=True)
    return [RunSummary(*column) for column in columns]


def _select_cleanest(sample_set: SampleSet, exponent: int) -> Reals:
    """Select the runs with the smallest volumes; return their rates (runs, STEPS), smallest volume first."""
    rates = replace_nan(resample(sample_set, STEPS, exponent))
    return rates[np.argsort(rates.sum(axis=1), kind="stable")[: PARAMS.max_run_count]]


def _median_duration(duration_s: Reals, run_count: int) -> tuple[float, float]:
    """Compute the median duration [s], and its relative standard error for a number of runs."""
    median_s = median_1d(duration_s)
    deviation = SIGMAS_PER_MAD * median_1d(np.abs(duration_s - median_s)) / median_s
    return median_s, deviation / np.sqrt(run_count)


def _subtract_baselines(curves: Reals) -> Reals:
    """Subtract the baseline of each curve (curves, STEPS)."""
    above: Reals = np.maximum(curves - estimate_baselines(curves)[:, None], 0.0)
    return above


def _predict_leave_one_out(rates: Reals, ordered: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Predict each run by the quantile of the other runs; return mean coverage and mean correlation of each set (sets).

    rates (sets, runs, STEPS). ordered: rates, sorted across runs. levels (sets): level of each set's quantile. One
    sorted table serves all runs of a set: if a run is left out, the values after its rank move up by one.
    """
    rows, run_count = np.arange(len(rates)), rates.shape[1]
    rank = levels * (run_count - 2)
    lower = rank.astype(np.int64)
    fraction = (rank - lower)[:, None, None]
    low, next_, last = (ordered[rows, np.minimum(lower + step, run_count - 1)][:, None] for step in range(3))
    predicted, above = np.where(rates <= low, next_, low), np.where(rates <= next_, last, next_)
    # in place, since one array per operation would not fit into the processor's cache
    predicted *= 1.0 - fraction
    above *= fraction
    predicted += above
    predicted -= row_medians(predicted)
    np.maximum(predicted, 0.0, out=predicted)
    total = predicted.sum(axis=-1)
    shared = np.minimum(rates, predicted, out=above).sum(axis=-1)
    coverage = np.divide(shared, total, out=np.zeros(total.shape), where=total > 0)
    highest = predicted.max(axis=-1, keepdims=True)
    correlation = pearson_correlation(np.minimum(rates, PARAMS.max_height_ratio * highest, out=above), predicted)
    return coverage.mean(axis=-1), correlation.mean(axis=-1)


# ---- expected correlation


def predict_correlations(summaries: Sequence[RunSummary], signatures: Sequence[Signature], method: str) -> Reals:
    """Predict the correlation of signatures of one method with the truth.

    Parameters
    ----------
    summaries, signatures : n
        Summaries and signatures of the same sets.
    method
        Name of the method that extracted the signatures.

    Returns
    -------
    (n,)
        From 0 to 1; 0 if the runs have nothing in common, NaN without a signature.
    """
    correlation = np.array([summary.set_features["leave_one_out_correlation"] for summary in summaries])
    is_extracted = np.array([one.outcome == "extracted" for one in signatures])
    predicted = np.where(is_extracted, 0.0, np.nan)
    usable = (is_extracted & (correlation >= PARAMS.min_run_correlation)).nonzero()[0].tolist()
    if not usable:
        return predicted
    features = compute_features([summaries[i] for i in usable], [signatures[i] for i in usable], method, _USED_FEATURES)
    terms = (_COEFFICIENTS[name] * values for name, values in zip(_USED_FEATURES, features.T, strict=True))
    predicted[usable] = clip(_COEFFICIENTS["intercept"] + sum(terms), 0.0, 1.0)
    return predicted


def compute_features(
    summaries: Sequence[RunSummary], signatures: Sequence[Signature], method: str, names: Sequence[str] = FEATURES
) -> Reals:
    """Compute the features of the linear model for signatures of one method.

    Parameters
    ----------
    summaries, signatures : n
        Summaries and signatures of the same sets; every signature must be present.
    method
        Name of the method that extracted the signatures.
    names
        Subset of `FEATURES`.

    Returns
    -------
    (n, names)
        Only the named features are computed.
    """
    from scipy.ndimage import uniform_filter1d

    curves = np.stack([summary.resample(one) for summary, one in zip(summaries, signatures, strict=True)])
    wide = 6 * PARAMS.near_steps + 1
    common = np.stack([summary.common for summary in summaries])
    total = np.maximum(curves.sum(axis=1), 1e-300)
    heights = np.maximum([quantile_1d(curve, 0.99) for curve in curves], 0.5 * curves.max(axis=1))
    heights = np.maximum(heights, 1e-300)
    recurring = _subtract_baselines(
        np.stack([summary.near[int(PARAMS.recurring_level * len(summary.near))] for summary in summaries])
    )
    missing = np.maximum(recurring - moving_maximum(curves, 2 * PARAMS.near_steps), 0.0).sum(axis=1)
    width = (curves > 0.25 * heights[:, None]).mean(axis=1) / [max(1, len(one.bursts)) for one in signatures]
    moved = np.maximum([quantile_1d(summary.rates.sum(axis=1), 0.2) for summary in summaries], 1e-300)
    ratio = [len(one.bytes_per_s) / summary.duration_s for summary, one in zip(summaries, signatures, strict=True)]
    excess = clip(np.array(ratio) - 1.0, -0.1, 0.1)
    agreement, is_robust = pearson_correlation(curves, common), float(method == "robust")
    set_features = {
        name: np.array([summary.set_features[name] for summary in summaries]) for name in summaries[0].set_features
    }
    uncertainty = [summary.duration_uncertainty for summary in summaries]
    compute: dict[str, Callable[[], Reals | Sequence[float] | float]] = {
        **{name: partial(np.asarray, values) for name, values in set_features.items()},
        "split_half_correlation": lambda: [summary.split_half_correlation() for summary in summaries],
        "agreement": lambda: agreement,
        "smoothed_agreement": lambda: pearson_correlation(
            uniform_filter1d(curves, wide), uniform_filter1d(common, wide)
        ),
        "coverage": lambda: [summary.mean_coverage(curve) for summary, curve in zip(summaries, curves, strict=True)],
        "run_correlation": lambda: [
            summary.mean_run_correlation(*row) for summary, *row in zip(summaries, curves, heights, strict=True)
        ],
        "missing_ratio": lambda: missing / np.maximum(recurring.sum(axis=1), 1e-300),
        "log_volume_ratio": lambda: clip(np.log(total / moved + 0.01), -5.0, 5.0),
        "duration_excess": lambda: excess,
        "duration_uncertainty": lambda: np.minimum(uncertainty / np.maximum(width, 1e-3), 3.0),
        "log_burst_width": lambda: np.log(width + 1e-4),
        "is_evidence_tested": lambda: float(method in _EVIDENCE_TESTED),
        "is_robust": lambda: is_robust,
        "robust_interference_ratio": lambda: is_robust * set_features["interference_ratio"],
        "robust_duration_excess": lambda: is_robust * excess,
        "robust_agreement": lambda: is_robust * agreement,
    }
    features = np.empty((len(summaries), len(names)))
    for column, name in enumerate(names):
        features[:, column] = compute[name]()
    return features


def select_method(expected: Mapping[str, float]) -> str:
    """Select the method of the default signature by its expected correlation.

    Parameters
    ----------
    expected
        Expected correlation of each method; NaN if it has no signature.

    Returns
    -------
    str
        The best preferred method with a sufficient expected correlation, otherwise the best of all. If none is
        sufficient, the first preferred method present, or the first of all.
    """
    sufficient = {method: value for method, value in expected.items() if value >= MIN_EXPECTED_CORRELATION}
    preferred = [method for method in PREFERRED_METHODS if method in sufficient]
    if preferred:
        return max(
            preferred, key=lambda method: sufficient[method] + _FIRST_METHOD_BONUS * (method == PREFERRED_METHODS[0])
        )
    if sufficient:
        return max(sufficient, key=lambda method: sufficient[method])
    return next((method for method in PREFERRED_METHODS if method in expected), next(iter(expected)))


# ---- missing bursts


def count_missing_bursts(summaries: Sequence[RunSummary], signatures: Sequence[Signature]) -> Reals:
    """Count the bursts that most runs contain and each signature lacks.

    Parameters
    ----------
    summaries, signatures : n
        Summaries and signatures of the same sets.

    Returns
    -------
    (n,)
        NaN if a signature is not comparable, see `COMPARABLE_OUTCOMES`.
    """
    counts = np.full(len(summaries), np.nan)
    usable = [index for index, one in enumerate(signatures) if one.outcome in COMPARABLE_OUTCOMES]
    if usable:
        missing = find_missing_bursts([summaries[i] for i in usable], [signatures[i] for i in usable])
        counts[usable] = [len(bursts) for bursts in missing]
    return counts


def find_missing_bursts(summaries: Sequence[RunSummary], signatures: Sequence[Signature]) -> list[Reals]:
    """Find the bursts that most runs contain and each signature lacks.

    Parameters
    ----------
    summaries, signatures : n
        Summaries and signatures of the same sets.

    Returns
    -------
    list of (bursts, 2)
        Start and end, relative to the duration of the run; see `RunSummary.find_missing_bursts`.
    """
    is_extracted = np.array([one.outcome == "extracted" for one in signatures])
    curves = np.zeros((len(summaries), STEPS))
    for index in is_extracted.nonzero()[0].tolist():
        curves[index] = summaries[index].resample(signatures[index])
    visible = np.stack([quantile_of_sorted(summary.near, PARAMS.visible_level) for summary in summaries])
    baseline = estimate_baselines(visible)[:, None]
    visible = np.maximum(visible - baseline, 0.0)
    heights = burst_heights(np.where(is_extracted[:, None], curves, visible))[:, None]
    is_covered = moving_maximum(curves, 2 * PARAMS.near_steps) > PARAMS.covered_height_ratio * heights
    is_missing = (visible > PARAMS.visible_height_ratio * heights) & ~is_covered
    threshold = baseline + PARAMS.visible_height_ratio * heights
    for summary, row, row_threshold, row_covered in zip(summaries, is_missing, threshold, is_covered, strict=True):
        row &= _are_improbable(summary.near > row_threshold, ~row & ~row_covered)
    return [_find_wide_intervals(row) / STEPS for row in is_missing & (heights > 0)]


def find_missing_bursts_in_set(sample_set: SampleSet, signature: Signature) -> Reals:
    """Find the bursts that most runs of a set contain and a signature lacks; see `RunSummary.find_missing_bursts`."""
    summary = RunSummary.from_set(sample_set)
    return np.zeros((0, 2)) if summary is None else summary.find_missing_bursts(signature)


def _find_wide_intervals(mask: Bools) -> Ints:
    """Find intervals of true steps (n, 2) that are wider than the reach of the moving maximum.

    Narrower intervals are remainders next to a covered burst.
    """
    first, end = find_true_intervals(mask)
    is_wide = end - first > PARAMS.near_steps
    return np.stack([first[is_wide], end[is_wide]], axis=1)


def _are_improbable(is_high: Bools, is_elsewhere: Bools) -> Bools:
    """Mark the steps at which improbably many runs are high, given how often they are high elsewhere.

    is_high (runs, steps): whether a run is high. The binomial tail probability, multiplied by the number of independent
    places, is the expected number of such places by chance.
    """
    from scipy.special import bdtrc

    count = len(is_high) * np.count_nonzero(is_elsewhere)
    probability = np.count_nonzero(is_high & is_elsewhere) / count if count else 0.0
    # once for each number of runs
    tail = bdtrc(np.arange(len(is_high) + 1) - 1.0, len(is_high), probability)
    expected = tail * (STEPS / (2 * PARAMS.near_steps + 1))
    is_improbable: Bools = (expected < PARAMS.max_expected_by_chance)[np.count_nonzero(is_high, axis=0)]
    return is_improbable


# ---- curves


def moving_maximum(values: Reals, reach: int) -> Reals:
    """Compute the maximum within a distance of each step.

    Parameters
    ----------
    values : (..., steps)
        Not negative.
    reach
        Number of steps before and after each step.

    Returns
    -------
    (..., steps)

    Notes
    -----
    Equal to `scipy.ndimage.maximum_filter1d` with a width of 2 reach + 1, and several times faster.
    """
    width = 2 * reach + 1
    maximum = np.zeros((*values.shape[:-1], values.shape[-1] + 2 * reach))
    maximum[..., reach : reach + values.shape[-1]] = values
    # windows of doubling width, and finally two overlapping windows
    size = 1
    while size < width:
        step = min(size, width - size)
        maximum = np.maximum(maximum[..., :-step], maximum[..., step:])
        size += step
    return maximum


def pearson_correlation(first: Reals, second: Reals) -> Reals:
    """Compute Pearson's correlation of curves along the last axis.

    Parameters
    ----------
    first, second : (..., steps)
        Broadcast against each other.

    Returns
    -------
    (...,)
        0 if a curve is constant.
    """
    one, other = _center(first), _center(second)
    covariance = (one * other).sum(axis=-1)
    one *= one
    other *= other
    scale = np.sqrt(one.sum(axis=-1) * other.sum(axis=-1))
    correlation: Reals = np.divide(covariance, scale, out=np.zeros(scale.shape), where=scale > 0)
    return correlation


def _center(curves: Reals) -> Reals:
    # `numpy.mean` takes twice as long for short rows
    centered: Reals = curves - np.add.reduce(curves, axis=-1, keepdims=True) / curves.shape[-1]
    return centered
