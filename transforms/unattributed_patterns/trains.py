"""Find trains among the bursts of a cluster: periodic sequences that outlast every run of a logged application.

A cluster contains the bursts of a train, and other bursts of equal volume; many of its bursts are contaminated, i.e.
their volume includes bytes of other applications. Contention delays all later bursts, so the phase of a train drifts: a
train is a chain in which each burst follows the previous one after a whole number of periods, with an error that grows
with that number. Under the null hypothesis (bursts form a Poisson process), the likelihood ratio of a mixture of chains
has mean 1. It exceeds x with a probability below 1 / x (Ville, Étude critique de la notion de collectif, 1939). This
bound holds for all chains together, and is multiplied by the number of tested periods. A logged application keeps its
beat (regular times) only within a run. So for every application, the links of a chain that lie in none of its runs must
be significant on their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals, places_within, rows_of
from iosig.transforms.unattributed_patterns.cooccurrence import Runs
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBursts
from iosig.transforms.unattributed_patterns.rhythms import RhythmParams, rank_periods


@dataclass(frozen=True, slots=True)
class TrainParams:
    """Parameters of the chain model and its test. The defaults were chosen on simulated sites (seeds 60 to 67)."""

    #: parameters of the search for candidate periods
    rhythms: RhythmParams = field(default_factory=RhythmParams)
    #: maximum number of candidate periods
    max_periods: int = 24
    #: maximum number of bursts skipped by one link of a chain
    max_links: int = 40
    #: standard deviations of a link in periods, per square root of its cycles; equally likely alternatives
    jitter_ratios: tuple[float, ...] = (0.006, 0.02)
    #: additional standard deviation of a link [s]
    jitter_s: float = 4.0
    #: probabilities that a burst of the train is in the cluster; equally likely alternatives
    detection_ratios: tuple[float, ...] = (0.07, 0.3, 0.8)
    #: fraction of links of two (or three) cycles above which the period is doubled (or tripled)
    min_multiple_ratio: float = 0.9
    #: probability that a chain ends after a burst
    end_probability: float = 0.02
    #: time around a burst in which the density of chance bursts is measured [s]
    density_window_s: float = 12 * 3600.0
    #: minimum number of bursts of a train
    min_count: int = 6
    #: minimum fraction of due times at which the train, or the fraction `min_volume_ratio` of its volume, is present
    min_present_ratio: float = 0.5
    min_volume_ratio: float = 0.7
    #: tolerance of a run's start and end [s]
    slack_s: float = 60.0
    #: probability of a false train, over all candidate periods
    false_alarm_probability: float = 0.01


@dataclass(frozen=True, slots=True)
class Train:
    """Indices of k bursts that form a chain, their period in steps, and the chain's p-value."""

    members: Ints
    period: float
    p_value: float


def find_train(
    bursts: ResidualBursts, residual_bytes: Reals, runs: Runs, interval_s: float, params: TrainParams | None = None
) -> Train | None:
    """Find the most likely train among bursts of equal volume.

    Parameters
    ----------
    bursts : ResidualBursts
        Bursts of a cluster.
    residual_bytes : Reals, shape (steps,)
        Residual traffic with all bursts; NaN where nothing was measured.
    runs : Runs
        Logged runs, in steps.
    interval_s : float
        Length of a step [s].
    params : TrainParams, optional
        Parameters of the model.

    Returns
    -------
    Train or None
        None if chance or the runs of one application explain the chain, or if its due times have no traffic.

    """
    params = params or TrainParams()
    first = bursts.first
    if len(first) < params.min_count:
        return None
    max_periods = max(4, min(params.max_periods, _MAX_CELLS // len(first)))
    periods = rank_periods(first, interval_s, max_periods, params.rhythms)
    if not len(periods):
        return None
    gains = _link_gains(first, periods, len(residual_bytes), interval_s, params)
    evidence, previous = _score_chains(gains, periods)
    best = int(evidence.max(axis=0).argmax())
    threshold = math.log(_INDEPENDENT_PERIODS / params.false_alarm_probability)
    members = _backtrack(previous[:, best], int(evidence[:, best].argmax()))
    if evidence[:, best].max() < threshold or len(members) < params.min_count:
        return None
    link_gains = gains[members[:-1], np.diff(members) - 1, best]
    chain = rows_of(bursts, members)
    free_evidence = float(link_gains.sum() - _evidence_in_runs(link_gains, chain, runs, params.slack_s / interval_s))
    period = _refine_period(np.diff(chain.first).astype(np.float64), float(periods[best]), params)
    is_absent = _present_ratio(chain, period, residual_bytes, interval_s, params) < params.min_present_ratio
    if free_evidence < threshold or is_absent:
        return None
    return Train(members, period, min(1.0, _INDEPENDENT_PERIODS * math.exp(-min(free_evidence, 600.0))))


#: number of distinguishable periods between a minute and some hours, for the multiple-testing correction
_INDEPENDENT_PERIODS = 500.0
#: maximum number of bursts times candidate periods; limits run time and memory
_MAX_CELLS = 15_000


def _link_gains(first: Ints, periods: Reals, step_count: int, interval_s: float, params: TrainParams) -> Reals:
    """Log-likelihood ratio of each later burst as the next one of a chain: shape (bursts, `max_links`, periods)."""
    count = len(first)
    target = np.arange(count)[:, None] + np.arange(1, params.max_links + 1)
    follow = np.minimum(target, count - 1)
    lags = (first[follow] - first[:, None]).astype(np.float64)[:, :, None]
    cycles = np.maximum(np.rint(lags / periods), 1.0)
    error, jitter = lags - cycles * periods, params.jitter_s / interval_s
    density = np.zeros(error.shape)
    for ratio in params.jitter_ratios:
        spread = np.sqrt((ratio * periods) ** 2 * cycles + jitter**2)
        density += np.exp(-((error / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)) / len(params.jitter_ratios)
    detection = sum(
        (ratio * (1.0 - ratio) ** (cycles - 1.0) for ratio in params.detection_ratios), np.zeros(error.shape)
    )
    density *= detection * (1.0 - params.end_probability) / len(params.detection_ratios)
    chance = _local_density(first, step_count, params.density_window_s / interval_s)[follow][:, :, None]
    return np.where((target < count)[:, :, None], np.log(np.maximum(density, 1e-300) / chance), -np.inf)


def _local_density(first: Ints, step_count: int, window: float) -> Reals:
    """Bursts per step around each burst."""
    low, high = (np.searchsorted(first, first + shift) for shift in (-window / 2, window / 2))
    density: Reals = np.maximum((high - low) / window, len(first) / max(step_count, 1))
    return density


def _score_chains(gains: Reals, periods: Reals) -> tuple[Reals, Ints]:
    """Score the best chain that ends with each burst, and find its previous burst (-1: none); (bursts, periods).

    All bursts have the same probability of beginning a chain.
    """
    count, max_links = gains.shape[:2]
    best = np.full((count + max_links, len(periods)), -math.log(count))
    previous = np.full(best.shape, -1)
    for burst in range(count):
        next_bursts = slice(burst + 1, burst + 1 + max_links)
        evidence = best[burst] + gains[burst]
        is_better = evidence > best[next_bursts]
        best[next_bursts][is_better] = evidence[is_better]
        previous[next_bursts][is_better] = burst
    return best[:count], previous[:count]


def _backtrack(previous: Ints, last: int) -> Ints:
    """Bursts of the chain that ends with `last`, in chronological order."""
    members = [last]
    while (burst := int(previous[members[-1]])) >= 0:
        members.append(burst)
    return np.array(members[::-1], np.int64)


def _refine_period(gaps: Reals, period: float, params: TrainParams) -> float:
    """Compute the mean period of a chain's gaps, doubled or tripled if nearly all gaps are such multiples."""
    cycles = np.maximum(np.rint(gaps / period), 1.0)
    for multiple in (2.0, 3.0):
        if (cycles % multiple == 0).mean() >= params.min_multiple_ratio:
            cycles /= multiple
    return float(gaps.sum() / np.maximum(np.rint(cycles), 1.0).sum())


def _evidence_in_runs(link_gains: Reals, chain: ResidualBursts, runs: Runs, slack: float) -> float:
    """Sum the evidence of the links within runs of one application; return the maximum over applications."""
    is_in = (runs.started[:, None] <= chain.first[:-1] + slack) & (runs.ended[:, None] >= chain.after[1:] - slack)
    run, link = np.nonzero(is_in)
    application, link = np.unique(np.stack([runs.application[run], link]), axis=1)
    return float(np.bincount(application, link_gains[link]).max(initial=0.0)) if len(link) else 0.0


def _present_ratio(
    chain: ResidualBursts, period: float, residual_bytes: Reals, interval_s: float, params: TrainParams
) -> float:
    """Fraction of the due times at which a burst of the chain, or similar traffic, is present.

    Contamination does not reduce the bytes of a burst, so without traffic there was no burst. Times without
    measurements are left out.
    """
    gaps = np.diff(chain.first).astype(np.float64)
    cycles = np.maximum(np.rint(gaps / period), 1.0).astype(np.int64)
    link = np.repeat(np.arange(len(gaps)), cycles - 1)
    cycle = places_within(cycles - 1) + 1
    due = chain.first[link] + cycle * (gaps / cycles)[link]
    # the uncertainty of a due time between two known bursts is largest halfway (Brownian bridge)
    bridge = cycle * (cycles[link] - cycle) / cycles[link]
    tolerance = max(params.jitter_ratios) / 2 * period * np.sqrt(bridge) + params.jitter_s / interval_s
    duration, volume = float(np.median(chain.after - chain.first)), float(np.median(chain.volume_bytes))
    low = np.clip(np.floor(due - tolerance), 0, len(residual_bytes)).astype(np.int64)
    high = np.clip(np.ceil(due + duration + tolerance), 0, len(residual_bytes)).astype(np.int64)
    measured_bytes, unmeasured = (
        total[high] - total[low]
        for total in (
            _cumulative(np.nan_to_num(residual_bytes)),
            _cumulative(np.isnan(residual_bytes).astype(np.float64)),
        )
    )
    is_measured = unmeasured <= (high - low) / 3
    is_present = measured_bytes[is_measured] >= params.min_volume_ratio * volume
    return float((len(chain) + is_present.sum()) / (len(chain) + len(is_present)))


def _cumulative(values: Reals) -> Reals:
    return np.concatenate([[0.0], np.cumsum(values)])
