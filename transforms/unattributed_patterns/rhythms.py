"""Find and subtract periodic I/O of logged applications within their runs, with or without a signature.

A job that writes periodically does so from start to end (IOSI: Liu et al., FAST'14, section 6.1) and contaminates the
volumes of all other bursts in that time. Its period is estimated from the lags between its uncontaminated bursts, over
all of its runs. Each run is then followed by the most likely chain of bursts (Viterbi, IEEE Transactions on Information
Theory 13, 1967, doi:10.1109/TIT.1967.1054010), in which each burst follows the previous one after about a period: a
delay shifts all later bursts. The bytes of the chain are subtracted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, places_of


@dataclass(frozen=True, slots=True)
class RhythmParams:
    """Parameters of period estimation and tracking. The defaults were chosen on simulated sites (seeds 60 to 67)."""

    #: range of periods [s]
    min_period_s: float = 25.0
    max_period_s: float = 4000.0
    #: tolerance of a lag: this fraction of the period, times the square root of the number of cycles, plus
    #: `tolerance_s` [s]
    jitter_ratio: float = 0.018
    tolerance_s: float = 7.0
    #: maximum number of periods between two bursts for an evaluation of their lag
    max_cycles: int = 4
    #: maximum number of subsequent bursts paired with each burst
    max_pairs: int = 60
    #: minimum log-likelihood ratio of a rhythm against chance
    min_evidence: float = 8.0
    #: minimum number of runs with the rhythm
    min_runs: int = 3
    #: limits of the standard deviation of a tracked period, in periods
    min_spread: float = 0.004
    max_spread: float = 0.02
    #: cost of a squared deviation in units of the spread, and its maximum, as fractions of a burst
    deviation_cost: float = 0.0625
    max_deviation_cost: float = 0.5
    #: maximum number of simultaneous runs; above it bursts cannot be assigned to runs, and nothing is subtracted
    max_concurrent_runs: int = 12
    #: minimum fraction of a burst's bytes in the traffic for the burst to be subtracted
    min_present_ratio: float = 0.6


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A burst that recurs periodically within the runs of an application.

    Attributes
    ----------
    period : float
        Distance between bursts, in steps.
    spread : float
        Standard deviation of that distance, in periods.
    burst_bytes : Reals, shape (steps,)
        Bytes of a burst in each step, from the step before its first step.
    known : Ints, shape (k,)
        First steps of the bursts from which the rhythm was estimated.
    evidence : float
        Log-likelihood ratio of the lags between these bursts against chance.

    """

    period: float
    spread: float
    burst_bytes: Reals
    known: Ints
    evidence: float


# ---- period estimation


def estimate_period(
    first: Ints, run: Ints, interval_s: float, params: RhythmParams | None = None
) -> tuple[float, float, float] | None:
    """Estimate the common period of bursts within runs.

    Parameters
    ----------
    first : Ints, shape (n,)
        First step of each burst.
    run : Ints, shape (n,)
        Run of each burst; -1 for none.
    interval_s : float
        Length of a step [s].
    params : RhythmParams, optional
        Thresholds.

    Returns
    -------
    (float, float, float) or None
        Period in steps, its spread in periods, and the log-likelihood ratio. None if no period is significant, or if
        bursts of different runs have the period as well, since then the runs are not its cause.

    """
    params = params or RhythmParams()
    order = np.argsort(first, kind="stable")
    lead, follow = _find_pairs(first[order], params.max_cycles * params.max_period_s / interval_s, params.max_pairs)
    lags, run = (first[order][follow] - first[order][lead]).astype(np.float64), run[order]
    is_same_run = (run[lead] >= 0) & (run[lead] == run[follow])
    run_lags = np.sort(lags[is_same_run])
    candidates = _candidate_periods(run_lags, interval_s, params)
    if not len(candidates):
        return None
    ratios = _log_likelihood_ratios(run_lags, candidates, interval_s, params)
    evidence, period = float(ratios.max()), float(candidates[ratios.argmax()])
    other_lags = np.sort(lags[~is_same_run])
    other_evidence = float(_log_likelihood_ratios(other_lags, np.array([period]), interval_s, params)[0])
    is_on_beat = is_same_run & (_phase_errors(lags, period, interval_s, params) <= 1.0)
    has_few_runs = len(np.unique(run[lead][is_on_beat])) < params.min_runs
    if evidence < max(params.min_evidence, other_evidence) or has_few_runs:
        return None
    period = _refine_period(run_lags, period, interval_s, params)
    near_lags = run_lags[np.abs(run_lags - period) <= params.jitter_ratio * period + params.tolerance_s / interval_s]
    spread = float(np.std(near_lags)) / period if len(near_lags) else params.max_spread
    return period, min(max(spread, params.min_spread), params.max_spread), evidence


def rank_periods(first: Ints, interval_s: float, max_count: int, params: RhythmParams | None = None) -> Reals:
    """Rank candidate periods of a sequence of bursts by their log-likelihood ratio.

    Parameters
    ----------
    first : Ints, shape (n,)
        First steps of the bursts, in ascending order.
    interval_s : float
        Length of a step [s].
    max_count : int
        Maximum number of periods returned.
    params : RhythmParams, optional
        Thresholds.

    Returns
    -------
    Reals
        Distinct periods in steps, most likely first.

    """
    params = params or RhythmParams()
    lead, follow = _find_pairs(first, params.max_cycles * params.max_period_s / interval_s, params.max_pairs)
    lags = np.sort((first[follow] - first[lead]).astype(np.float64))
    candidates = _candidate_periods(lags, interval_s, params)
    ratios = _log_likelihood_ratios(lags, candidates, interval_s, params)
    periods: list[float] = []
    while len(periods) < max_count and ratios.max(initial=0.0) > 0.0:
        periods.append(float(candidates[ratios.argmax()]))
        ratios[np.abs(candidates / periods[-1] - 1.0) < params.jitter_ratio] = 0.0
    return np.array(periods)


def _find_pairs(first: Ints, max_lag: float, max_count: int) -> tuple[Ints, Ints]:
    """Find pairs within a maximum lag: each burst, and up to `max_count` subsequent bursts."""
    counts = np.searchsorted(first, first + max_lag, side="right") - np.arange(len(first)) - 1
    counts = np.minimum(counts, max_count)
    return np.repeat(np.arange(len(first)), counts), places_of(np.arange(len(first)) + 1, counts)


#: maximum number of candidate periods
_MAX_CANDIDATES = 600
#: resolution of candidate periods, in steps
_RESOLUTION = 0.25


def _candidate_periods(lags: Reals, interval_s: float, params: RhythmParams) -> Reals:
    """List the lags, and halves and thirds of lags, within the range of periods."""
    short_lags = lags[lags * interval_s <= params.max_period_s]
    periods = np.concatenate([short_lags / cycles for cycles in (1, 2, 3)])
    periods = np.unique(np.rint(periods / _RESOLUTION)) * _RESOLUTION
    periods = periods[periods * interval_s >= params.min_period_s]
    if len(periods) <= _MAX_CANDIDATES:
        return periods
    return np.quantile(periods, np.linspace(0.0, 1.0, _MAX_CANDIDATES))


def _log_likelihood_ratios(lags: Reals, periods: Reals, interval_s: float, params: RhythmParams) -> Reals:
    """Log-likelihood ratio of sorted lags at multiples of each period against a uniform Poisson density."""
    cycles = np.arange(1, params.max_cycles + 1)
    due = periods[:, None] * cycles
    tolerance = params.jitter_ratio * periods[:, None] * np.sqrt(cycles) + params.tolerance_s / interval_s
    tolerance = np.minimum(tolerance, periods[:, None] / 4)
    count = _count_between(lags, due - tolerance, due + tolerance).sum(axis=1).astype(np.float64)
    cycle_count = _count_between(lags, due - periods[:, None] / 2, due + periods[:, None] / 2)
    expected = (cycle_count * (2 * tolerance / periods[:, None])).sum(axis=1)
    is_excess = count > expected
    log_ratio = np.log(np.divide(count, expected, out=np.ones_like(count), where=is_excess))
    likelihood: Reals = np.where(is_excess, count * log_ratio - count + expected, 0.0)
    return likelihood


def _count_between(ordered: Reals, low: Reals, high: Reals) -> Ints:
    return np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low)


def _phase_errors(lags: Reals, period: float, interval_s: float, params: RhythmParams) -> Reals:
    """Distance of lags from the nearest multiple of a period, in units of the tolerance."""
    cycles = np.clip(np.rint(lags / period), 1, params.max_cycles)
    tolerance = params.jitter_ratio * period * np.sqrt(cycles) + params.tolerance_s / interval_s
    errors: Reals = np.abs(lags - cycles * period) / np.minimum(tolerance, period / 4)
    return errors


def _refine_period(lags: Reals, period: float, interval_s: float, params: RhythmParams) -> float:
    """Compute the mean period of the lags of one and two cycles, in three iterations."""
    for _ in range(3):
        near_lags = lags[(lags < 2.5 * period) & (_phase_errors(lags, period, interval_s, params) <= 1.0)]
        if not len(near_lags):
            break
        period = float(near_lags.sum() / np.rint(near_lags / period).sum())
    return period


# ---- tracking in runs


def subtract_rhythm(
    residual_bytes: Reals, rhythm: Rhythm, started: Reals, ended: Reals, params: RhythmParams | None = None
) -> Reals:
    """Track a rhythm in runs, and subtract its bursts.

    Parameters
    ----------
    residual_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.
    rhythm : Rhythm
        The rhythm of an application.
    started, ended : Reals, shape (n,)
        Start and end of the application's runs, in steps.
    params : RhythmParams, optional
        Parameters of tracking.

    Returns
    -------
    Reals, shape (steps,)
        A new array; equal to the input if too many runs are concurrent.

    """
    params = params or RhythmParams()
    remaining = residual_bytes.copy()
    layers = _assign_layers(started, ended)
    if len(layers) > params.max_concurrent_runs:
        return remaining
    bonus = np.zeros(len(remaining))
    bonus[np.maximum(rhythm.known - 1, 0)] = _KNOWN_BONUS
    for layer in layers:
        present = _present_ratio(remaining, rhythm.burst_bytes)
        score = np.nan_to_num(present, nan=_UNMEASURED_SCORE) + bonus
        for batch in _batch_by_length(started[layer], ended[layer]):
            run = layer[batch]
            at = _track_bursts(score, started[run], ended[run], rhythm, params)
            is_present = np.nan_to_num(present[at]) >= params.min_present_ratio
            _subtract_bursts(remaining, at[is_present], rhythm.burst_bytes)
    return remaining


#: score added where a burst is known to begin, and score where nothing was measured (fractions of a burst)
_KNOWN_BONUS, _UNMEASURED_SCORE = 0.5, 0.55
#: present fraction of a burst above which the burst increases the score of a chain
_BREAK_EVEN = 0.5


def _assign_layers(started: Reals, ended: Reals) -> list[Ints]:
    """Partition runs into the fewest layers without concurrent runs (greedy interval partitioning)."""
    layers: list[list[int]] = []
    free_layers: list[tuple[float, int]] = []
    for run in np.argsort(started, kind="stable").tolist():
        layer = heapq.heappop(free_layers)[1] if free_layers and free_layers[0][0] <= started[run] else len(layers)
        if layer == len(layers):
            layers.append([])
        layers[layer].append(run)
        heapq.heappush(free_layers, (float(ended[run]), layer))
    return [np.array(layer, np.int64) for layer in layers]


#: approximate number of steps of the runs in one batch; limits memory
_MAX_BATCH_STEPS = 1 << 20


def _batch_by_length(started: Reals, ended: Reals) -> list[Ints]:
    """Group runs of similar length, longest first."""
    order = np.argsort(started - ended, kind="stable")
    length = np.maximum((ended - started)[order], 1.0)
    batches, first = [], 0
    while first < len(order):
        count = max(1, int(_MAX_BATCH_STEPS / length[first]))
        batches.append(order[first : first + count])
        first += count
    return batches


def _present_ratio(residual_bytes: Reals, burst_bytes: Reals) -> Reals:
    """Return the fraction of a burst that the traffic at each step can contain.

    The fraction is NaN if more than a third of the burst was not measured.
    """
    count, length = len(residual_bytes), len(burst_bytes)
    padded = np.concatenate([np.nan_to_num(residual_bytes), np.zeros(length)])
    present = np.zeros(count)
    for step, step_bytes in enumerate(burst_bytes.tolist()):
        present += np.minimum(padded[step : step + count], step_bytes)
    gaps = np.concatenate([[0], np.cumsum(np.isnan(residual_bytes)), np.full(length, np.isnan(residual_bytes).sum())])
    is_gap = gaps[length : length + count] - gaps[:count] > length / 3
    return np.where(is_gap, np.nan, present / burst_bytes.sum())


def _track_bursts(score: Reals, started: Reals, ended: Reals, rhythm: Rhythm, params: RhythmParams) -> Ints:
    """Find the first steps of a rhythm's bursts in each run, by the chain with the highest score.

    `score` is the present fraction of a burst at each step. A chain begins within about two periods after the start of
    its run, and may end anywhere.
    """
    first = np.maximum(np.floor(started).astype(np.int64) - _EDGE_STEPS, 0)
    last = np.minimum(np.ceil(ended).astype(np.int64) + _EDGE_STEPS, len(score) - 1)
    length = int((last - first).max()) + 1
    steps = first[:, None] + np.arange(length)
    is_in = steps <= last[:, None]
    gains = np.where(is_in, score[np.minimum(steps, len(score) - 1)] - _BREAK_EVEN, -_IMPOSSIBLE)
    may_begin = np.arange(length) < 2.2 * rhythm.period + 4 * _EDGE_STEPS
    gaps, costs = _gap_costs(rhythm, params)
    total, previous_gap = _score_chains(gains, may_begin, gaps, costs)
    return _backtrack(first, total.argmax(axis=1), previous_gap)


#: tolerance of a run's start and end, in steps
_EDGE_STEPS = 2
#: score that rules a step out
_IMPOSSIBLE = 1e9


def _gap_costs(rhythm: Rhythm, params: RhythmParams) -> tuple[Ints, Reals]:
    """Admissible distances between two bursts of a chain in steps, and the cost of each."""
    reach = max(1, int(np.ceil(3 * rhythm.spread * rhythm.period)))
    gaps = np.arange(max(1, int(rhythm.period) - reach), int(np.ceil(rhythm.period)) + reach + _EDGE_STEPS + 1)
    deviation = (gaps - rhythm.period) / max(rhythm.spread * rhythm.period, 0.7)
    costs: Reals = np.minimum(params.deviation_cost * deviation**2, params.max_deviation_cost)
    return gaps, costs


def _score_chains(gains: Reals, may_begin: Bools, gaps: Ints, costs: Reals) -> tuple[Reals, Ints]:
    """Score the best chain that ends at each step, and find its last gap, 0 if it begins there; both (runs, steps).

    Since a chain has no two bursts within the smallest gap, that number of steps is computed at once.
    """
    count, max_gap = gains.shape[1], int(gaps[-1])
    total = np.full((len(gains), max_gap + count), -_IMPOSSIBLE)
    last_gap = np.zeros(gains.shape, np.int64)
    for begin in range(0, count, int(gaps[0])):
        end = min(begin + int(gaps[0]), count)
        previous = total[:, max_gap + np.arange(begin, end)[:, None] - gaps] - costs
        best = previous.argmax(axis=2)
        best_totals = np.take_along_axis(previous, best[:, :, None], 2)[:, :, 0]
        is_first = may_begin[begin:end] & (best_totals < 0.0)
        total[:, max_gap + begin : max_gap + end] = gains[:, begin:end] + np.where(is_first, 0.0, best_totals)
        last_gap[:, begin:end] = np.where(is_first | (best_totals < -_IMPOSSIBLE / 2), 0, gaps[best])
    return total[:, max_gap:], last_gap


def _backtrack(first: Ints, last: Ints, last_gap: Ints) -> Ints:
    """Collect the steps of all chains, from the last step of each run backwards."""
    run, at = np.arange(len(first)), last
    steps = []
    while len(run):
        steps.append(first[run] + at)
        gap = last_gap[run, at]
        run, at = run[gap > 0], (at - gap)[gap > 0]
    return np.concatenate([first[:0], *steps])


def _subtract_bursts(residual_bytes: Reals, at: Ints, burst_bytes: Reals) -> None:
    """Subtract bursts in place; the result is never negative."""
    steps = at[:, None] + np.arange(len(burst_bytes))
    is_in = steps < len(residual_bytes)
    steps, volumes = steps[is_in], np.broadcast_to(burst_bytes, is_in.shape)[is_in]
    subtracted = np.bincount(steps, volumes, len(residual_bytes))
    np.maximum(residual_bytes - subtracted, 0.0, out=residual_bytes, where=~np.isnan(residual_bytes))
