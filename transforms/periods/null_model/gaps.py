"""Test whether the idle gaps between I/O phases are more regular than those of a memoryless process.

The null hypothesis is that phases start at random times, so idle gaps are exponential at any rate. Gaps that vary less
are regular. The test needs no fixed frequency: a computation of varying length shifts all later phases and smears every
spectral line, but leaves the gaps regular.

The statistic is the squared coefficient of variation of the gaps (ddof 0), ``c = m G - 1`` for m gaps, where G is
Greenwood's statistic. Exponential gaps divided by their sum are uniform on a simplex; the p-value of c is the fraction
of the simplex within a ball around its center (`compute_gap_log_p`).

A phase may be split by short gaps. So phases are also merged across all gaps up to the k-th shortest, for every k. The
remaining gaps, minus the length of the k-th shortest, are exponential again, because the exponential distribution has
no memory.

References
----------
M. Greenwood, "The Statistical Study of Infectious Diseases", J. R. Stat. Soc. 109 (1946), doi:10.2307/2981176
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, log_ndtr

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods.null_model.phases import Activity, Phases, merge_phases

Floats = npt.NDArray[np.floating[Any]]

#: variance of a gap if both ends are accurate to one sample, in squared samples
_SAMPLING_VARIANCE = 1.0 / 6.0
#: the tests of onset intervals and of midpoint intervals count as two additional tests
_LOG_INTERVAL_TESTS = math.log(2.0)


@dataclass(frozen=True, slots=True)
class GapTestParams:
    """Parameters of the gap test (ours).

    They were tuned on simulated memoryless signals (`iosig study periods --part memoryless`), so that the false-alarm
    rate stays below the significance level.

    Attributes
    ----------
    min_phase_ratio : float
        Phases with a smaller fraction of the volume of a typical phase (the volume-weighted mean) are ignored.
    max_phases_per_sample : float
        Maximum number of phases per sample; denser phases are not resolved and not tested.
    max_phases : int
        Number of phases up to which signals are tested at any density.
    max_cv : float
        Maximum coefficient of variation of onset intervals; if they vary more, they are no period at any significance.
        At 0.5, 1 of 20 normally distributed intervals is shorter than 0 or longer than twice the mean.
    min_period_samples : float
        Minimum period in samples, since onsets are accurate to one sample.
    unmerged_weight : float
        Fraction of the significance level for unmerged phases; the rest is for all merges.
    max_censored_ratio : float
        Fraction of phases with an onset inside a measurement gap above which `min_gap_in_runs` applies.
    min_gap_in_runs : float
        Minimum ratio of the mean gap to the mean run of measured samples.
    interval_log_p_slack : float
        Onset and midpoint intervals are tested if the log p-value of the gaps exceeds its limit by no more than this.
    """

    min_phase_ratio: float = 0.1
    max_phases_per_sample: float = 0.125
    max_phases: int = 64
    max_cv: float = 0.5
    min_period_samples: float = 3.0
    unmerged_weight: float = 0.6
    max_censored_ratio: float = 0.1
    min_gap_in_runs: float = 4.0
    interval_log_p_slack: float = 4.0


GAP_TEST = GapTestParams()


def has_too_many_phases(active: Activity, lengths: Ints) -> Bools:
    """Return whether signals have more phases than can be resolved.

    Parameters
    ----------
    active : Activity
        Activity of n signals.

    Returns
    -------
    (n,)
    """
    is_crowded: Bools = active.counts > np.maximum(GAP_TEST.max_phases_per_sample * lengths, GAP_TEST.max_phases)
    return is_crowded


# ---- p-value


def compute_gap_log_p(gap_count: npt.ArrayLike, squared_cv: npt.ArrayLike) -> Reals:
    """Compute a tight upper bound of the log p-value of exponential gaps' squared coefficient of variation.

    Parameters
    ----------
    gap_count : (k,)
        Number of gaps; 2 or more.
    squared_cv : (k,)
        Squared coefficient of variation c, ddof 0.

    Returns
    -------
    (k,)
        Natural logarithm; an upper bound, at most 0.

    Notes
    -----
    The ball of squared radius c / m fills the fraction ``pi^((m-1)/2) / Gamma((m+1)/2) (c/m)^((m-1)/2) Gamma(m) /
    sqrt(m)`` of the simplex. This is exact for c <= 1 / (m - 1), and too large if the ball exceeds the simplex. In that
    case, the excess of the large-deviation rate is subtracted, provided that there are enough gaps for the result to
    remain an upper bound.
    """
    count, c = np.asarray(gap_count, dtype=np.float64), np.asarray(squared_cv, dtype=np.float64)
    with np.errstate(divide="ignore"):
        ball = 0.5 * (count - 1.0) * np.log(c * (math.pi / count)) + _log_ball_factor(count)
        excess = np.maximum(count - 4.0 - 1.7 / c, 0.0) * _interpolate_excess_rate(c)
    log_p: Reals = np.where(c < 1.0, np.minimum(ball - excess, 0.0), 0.0)
    return log_p


def _log_ball_factor(count: Reals) -> Reals:
    if count.size > 4096 and (highest := float(count.max())) < 4 * count.size:
        table = _log_ball_factor(np.arange(1.0, highest + 1.0))
        factors: Reals = table[count.astype(np.int64) - 1]
        return factors
    factors = gammaln(count) - gammaln(0.5 * (count + 1.0)) - 0.5 * np.log(count)
    return factors


def _tabulate_excess_rate() -> tuple[Reals, Reals]:
    """Tabulate squared variations c from 0.01 to 1, and the excess of the large-deviation rate over the ball's rate.

    By Sanov's theorem the rate is the relative entropy of the distribution nearest to the exponential: on the positive
    half-line with mean 1 and variance c, the normal distribution truncated at 0. The ball's rate is that of the whole
    normal distribution, ``1 - log(2 pi e c) / 2``.
    """
    cut = np.concatenate([np.linspace(-12.0, 0.0, 600), np.geomspace(0.01, 60.0, 600)])
    compute_log_tail = log_ndtr(-cut)
    hazard = np.exp(-0.5 * cut**2 - 0.5 * math.log(2 * math.pi) - compute_log_tail)
    mean = hazard - cut
    c = (1.0 - hazard * mean) / mean**2
    entropy = compute_log_tail + 0.5 * math.log(2 * math.pi * math.e) + 0.5 * cut * hazard
    rate = 1.0 + np.log(mean) - entropy
    return c, np.maximum(rate - (1.0 - 0.5 * np.log(2 * math.pi * math.e * c)), 0.0)


_EXCESS_CVS, _EXCESS_RATES = _tabulate_excess_rate()


def _interpolate_excess_rate(squared_cv: Reals) -> Reals:
    return np.interp(squared_cv, _EXCESS_CVS, _EXCESS_RATES)


@lru_cache(maxsize=64)
def _tabulate_max_squared_cv(max_log_p: float) -> Reals:
    """Largest squared coefficient of variation with a log p-value up to `max_log_p`, by number of gaps.

    The last entry stands for all larger numbers and allows any variation.
    """
    count = np.arange(2.0, 257.0)
    low, high = np.full(len(count), 1e-6), np.ones(len(count))
    for _ in range(20):
        middle = np.sqrt(low * high)
        # the p-value rises with the variation, except for rounding
        is_above = compute_gap_log_p(count, middle) > max_log_p + 1e-5
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.concatenate([[1.0, 1.0], high, [1.0]])


def count_merge_trials(gap_count: npt.ArrayLike) -> Reals:
    """Compute the effective number of independent tests if all merges of phases are tried.

    Parameters
    ----------
    gap_count : (k,)
        Number of gaps between the phases.

    Returns
    -------
    (k,)

    Notes
    -----
    m gaps allow k = m - 2 merges, and neighboring merges hardly differ. In simulations of 3 to 1,000 random gaps, the
    best merge was no more significant than the best of ``k / (1 + k / 80)`` independent tests.
    """
    merge_count = np.maximum(np.asarray(gap_count, dtype=np.float64) - 2.0, 0.0)
    trials: Reals = merge_count / (1.0 + merge_count / 80.0)
    return trials


# ---- the test


@dataclass(frozen=True, slots=True)
class GapRegularity:
    """Result of the gap test of n signals.

    Attributes
    ----------
    log_p : (n,)
        Log p-value, corrected for all merges. 0 without a result, or if onset intervals vary too much.
    max_merged_gap : (n,)
        Maximum distance of merged phases, in samples.
    period : (n,)
        Mean onset interval in samples; NaN with fewer than 2 phases.
    cv : (n,)
        Coefficient of variation of the onset intervals.
    first, last : (n,)
        First sample of the first phase, and the sample after the last phase.
    """

    log_p: Reals
    max_merged_gap: Ints
    period: Reals
    cv: Reals
    first: Ints
    last: Ints

    def scatter(self, rows: Ints, count: int) -> GapRegularity:
        """Distribute the results to `rows` of `count` signals; the other signals have no result."""
        ints, reals = np.zeros((3, count), dtype=np.int64), np.full((3, count), np.nan)
        reals[0] = 0.0
        reals[:, rows] = self.log_p, self.period, self.cv
        ints[:, rows] = self.max_merged_gap, self.first, self.last
        return GapRegularity(reals[0], ints[0], reals[1], reals[2], ints[1], ints[2])


def assess_regularity(
    phases: Phases, max_log_p: float = 0.0, min_gap: int = 0, run_lengths: Reals | None = None
) -> GapRegularity:
    """Test whether the gaps between phases are more regular than exponential gaps.

    Parameters
    ----------
    phases : Phases
        Of n signals.
    max_log_p : float
        Results with a larger log p-value are not reported.
    min_gap : int
        Distance up to which phases are always merged, in samples: the window of running means, since longer gaps are
        memoryless again. If set, onset and midpoint intervals are tested, too.
    run_lengths : (n,), optional
        Mean length of the runs of measured samples. If many onsets fall into measurement gaps, only gaps between phases
        that are much longer than these runs are reported.

    Returns
    -------
    GapRegularity
    """
    base = merge_phases(phases, np.full(phases.signal_count, min_gap)) if min_gap else phases
    kept = base.drop_small(GAP_TEST.min_phase_ratio)
    interval_limit = max_log_p + (GAP_TEST.interval_log_p_slack if min_gap else 0.0)
    log_p, merged_gap = _find_best_merges(kept, interval_limit, min_gap)
    rows = np.flatnonzero(log_p <= interval_limit)
    tested = kept if len(rows) == len(log_p) else kept.select_signals(rows)
    merged_phases = merge_phases(tested, merged_gap[rows])
    if min_gap:
        gap_counts = np.maximum(tested.counts - 1, 0)
        log_p[rows] = _test_intervals(merged_phases, log_p[rows], merged_gap[rows], gap_counts, min_gap)
    period, cv = _measure_intervals(merged_phases)
    is_period = (cv <= GAP_TEST.max_cv) & (period >= GAP_TEST.min_period_samples) & (log_p[rows] <= max_log_p)
    if run_lengths is not None:
        is_period &= ~_is_measurement_artifact(merged_phases, merged_gap[rows], run_lengths[rows])
    first, last = _find_spans(merged_phases)
    result = GapRegularity(np.where(is_period, log_p[rows], 0.0), merged_gap[rows], period, cv, first, last)
    return result if tested is kept else result.scatter(rows, len(log_p))


def _is_measurement_artifact(phases: Phases, merged_gap: Ints, run_lengths: Reals) -> Bools:
    """Whether measurement gaps may have determined the length of the gaps between phases (n).

    A gap ends at a measurement gap if the next phase is censored. If that is rare, or if measured runs are far shorter
    than gaps between phases, gaps remain exponential under the null hypothesis.
    """
    if phases.is_onset_censored is None:
        return np.zeros(phases.signal_count, dtype=np.bool_)
    owner = phases.owner
    is_pair = owner[1:] == owner[:-1]
    pair_owner, gap_counts = owner[1:][is_pair], np.maximum(phases.counts - 1, 1)
    censored_ratio = np.bincount(pair_owner, phases.is_onset_censored[1:][is_pair], phases.signal_count) / gap_counts
    mean_gap = (
        np.bincount(pair_owner, (phases.first[1:] - phases.last[:-1])[is_pair], phases.signal_count) / gap_counts
        - merged_gap
    )
    is_artifact: Bools = (censored_ratio > GAP_TEST.max_censored_ratio) & (
        mean_gap < GAP_TEST.min_gap_in_runs * run_lengths
    )
    return is_artifact


def _test_intervals(phases: Phases, log_p: Reals, merged_gap: Ints, gap_counts: Ints, min_gap: int) -> Reals:
    """Improve log p-values (n) where onset or midpoint intervals are more regular than gaps.

    If gaps are exponential and independent of the phases, onset and midpoint intervals vary no less, because the
    variance of the phases adds to that of the gaps. In a rhythm, however, noise shifts a midpoint less than an edge,
    and onsets remain regular even if the length of phases varies.
    """
    owner = phases.owner
    is_pair = owner[1:] == owner[:-1]
    pair_owner, count = owner[1:][is_pair], len(log_p)
    gaps_left = np.bincount(pair_owner, minlength=count)
    gap = (phases.first[1:] - phases.last[:-1])[is_pair].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(pair_owner, gap, count) / gaps_left - merged_gap
        null_variance = mean * (mean - 1.0)
        best = log_p
        for doubled in (phases.first + phases.last, 2 * phases.first):
            interval = 0.5 * np.diff(doubled)[is_pair]
            variance = (
                _SAMPLING_VARIANCE / 2
                + np.bincount(
                    pair_owner,
                    (interval - (np.bincount(pair_owner, interval, count) / gaps_left)[pair_owner]) ** 2,
                    count,
                )
                / gaps_left
            )
            squared_cv = np.where((null_variance > 0) & (gaps_left >= 2), variance / null_variance, 1.0)
            score = compute_gap_log_p(np.maximum(gaps_left, 2), np.where(np.isfinite(squared_cv), squared_cv, 1.0))
            best = np.minimum(best, score + _log_merge_trials(merged_gap, gap_counts, min_gap) + _LOG_INTERVAL_TESTS)
    return best


def _log_merge_trials(merged_gap: Ints, gap_counts: Ints, min_gap: int) -> Reals:
    """Log of the effective number of tests (n): that of all merges if the best merge exceeds `min_gap`."""
    trials = np.maximum(count_merge_trials(gap_counts) / (1.0 - GAP_TEST.unmerged_weight), 1.0)
    log_trials: Reals = np.log(np.where(merged_gap <= min_gap, 1.0 / GAP_TEST.unmerged_weight, trials))
    return log_trials


@dataclass(frozen=True, slots=True)
class _GapTable:
    """Histogram of the gaps between phases: the k distinct lengths of each signal, in ascending order.

    `owner`, `length`, `count` (k): signal, samples, and number of gaps. `totals` (n): gaps of each signal. `ends` (n):
    position after the last length of each signal.
    """

    owner: Ints
    length: Ints
    count: Ints
    totals: Ints
    ends: Ints

    @classmethod
    def from_phases(cls, phases: Phases) -> _GapTable:
        """Count the gaps between phases."""
        owner = phases.owner
        # sorting one integer key is faster than lexsort on two
        key = owner[1:] << 32
        key += phases.first[1:]
        key -= phases.last[:-1]
        key = key[owner[1:] == owner[:-1]]
        key.sort()
        is_start = np.ones(len(key), dtype=np.bool_)
        np.not_equal(key[1:], key[:-1], out=is_start[1:])
        starts = np.flatnonzero(is_start)
        key, count = key[starts], np.diff(starts, append=len(key))
        gap_owner = key >> 32
        ends = np.searchsorted(gap_owner, np.arange(1, phases.signal_count + 1))
        return cls(gap_owner, key & ((1 << 32) - 1), count, np.maximum(phases.counts - 1, 0), ends)

    def summarize_above(self, min_gap: int = 0) -> tuple[Ints, Ints, Reals]:
        """Summarize, for each length, the gaps that remain if all shorter gaps are merged (k).

        Returns
        -------
        floor : (k,)
            Longest merged gap, or `min_gap`.
        remaining : (k,)
            Number of remaining gaps.
        squared_cv : (k,)
            Variance of the remaining gaps, divided by that of geometric gaps above the floor, mu (mu - 1) for a mean of
            mu samples.
        """
        is_first = np.ones(len(self.length), dtype=np.bool_)
        is_first[1:] = self.owner[1:] != self.owner[:-1]
        floor = np.where(is_first, min_gap, np.roll(self.length, 1))
        lengths = self.length.astype(np.float64)
        remaining, total, square = (self._sum_from_here(self.count * power) for power in (1.0, lengths, lengths**2))
        mean = total / remaining
        variance = np.maximum(square / remaining - mean**2, 0.0) + _SAMPLING_VARIANCE
        mean -= floor
        null_variance = mean * (mean - 1.0)
        squared_cv = np.divide(variance, null_variance, out=np.ones(len(mean)), where=null_variance > 0)
        return floor, remaining.astype(np.int64), squared_cv

    def _sum_from_here(self, values: Floats) -> Reals:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        result: Reals = sums[self.ends[self.owner]] - sums[:-1]
        return result


def _find_best_merges(phases: Phases, max_log_p: float, min_gap: int = 0) -> tuple[Reals, Ints]:
    """Find each signal's most significant merge: return its log p-value, and the longest merged gap (n).

    A log p-value above `max_log_p` may be reported as 0.
    """
    log_p, merged_gap = np.zeros(phases.signal_count), np.zeros(phases.signal_count, dtype=np.int64)
    gaps = _GapTable.from_phases(phases)
    if not len(gaps.owner):
        return log_p, merged_gap
    floor, remaining, squared_cv = gaps.summarize_above(min_gap)
    limits = _tabulate_max_squared_cv(max_log_p)
    is_test = (remaining >= 2) & (squared_cv < limits[np.minimum(remaining, len(limits) - 1)])
    score = np.zeros(len(remaining))
    score[is_test] = compute_gap_log_p(remaining[is_test], squared_cv[is_test])
    score += _log_merge_trials(floor, gaps.totals[gaps.owner], min_gap)
    rows = np.flatnonzero(gaps.totals)
    counts = np.diff(gaps.ends[rows], prepend=0)
    best = np.minimum.reduceat(score, gaps.ends[rows] - counts)
    log_p[rows] = np.minimum(best, 0.0)
    # among equal scores, take the first, which merges the fewest gaps
    at = np.flatnonzero(score == np.repeat(best, counts))[::-1]
    merged_gap[gaps.owner[at]] = floor[at]
    return log_p, merged_gap


def _measure_intervals(phases: Phases) -> tuple[Reals, Reals]:
    """Mean onset interval in samples, and its coefficient of variation (n); NaN with fewer than 2 phases."""
    owner = phases.owner
    is_pair = owner[1:] == owner[:-1]
    onset = phases.first if phases.onset is None else phases.onset
    interval, pair_owner = np.diff(onset)[is_pair].astype(np.float64), owner[1:][is_pair]
    count = np.bincount(pair_owner, minlength=phases.signal_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(pair_owner, interval, phases.signal_count) / count
        variance = np.bincount(pair_owner, (interval - mean[pair_owner]) ** 2, phases.signal_count) / count
        return mean, np.sqrt(variance) / mean


def _find_spans(phases: Phases) -> tuple[Ints, Ints]:
    """First sample of each signal's first phase, and the sample after its last phase (n); 0 without phases."""
    first, last = np.zeros(phases.signal_count, dtype=np.int64), np.zeros(phases.signal_count, dtype=np.int64)
    rows = np.flatnonzero(phases.counts)
    first[rows] = phases.first[phases.offsets[:-1][rows]]
    last[rows] = phases.last[phases.offsets[1:][rows] - 1]
    return first, last
