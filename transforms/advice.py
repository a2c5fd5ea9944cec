"""Advise where and when to start an application, for minimum contention with running applications.

IOSI (Liu et al., FAST'14, section 6.4) proposes to correlate an application's signature with the load of each storage
partition, in order to find the partition with the lowest interference, and to stagger starts.

* `correlation` implements that as an inner product: the mean load that the application's bytes encounter, as a fraction
of
  the capacity. It ignores whether the load exceeds the capacity.
* `contention` is the expected excess of total demand over the capacity, integrated over time, in bytes. Its choices
were better in `iosig study advice`, so it is the default.

The progress of a run is uncertain: runs of one application drift apart over time, and the present position may be
wrong. Expectations are means over sampled phases, with the same samples for each partition. Mutual delays of running
applications are simulated; delays caused by the new application are only counted, since simulating them hardly improved
the prediction. All delays are evaluated at once: the demand is divided into levels. The cost of a level at a time
depends on the other load only. So the cost of each delay is a sum of correlations, computed by FFT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import fft

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.demands import Demand, Demands, draw_standard_normal

#: criterion by which choices are ranked
Method = Literal["correlation", "contention"]
#: maximum number of steps of the time grid; longer time ranges use a coarser grid
MAX_STEPS = 1 << 16
#: minimum pace of a run, as in `iosig.transforms.synthetic.workload`
_MIN_PACE = 0.5
#: costs that differ by less than this fraction of the application's bytes count as equal, because of rounding
_EQUAL_RATIO = 1e-6
#: quantiles of the sampled phases that limit the range of a choice
_RANGE = (0.1, 0.9)
#: index of a single demand
_FIRST: Ints = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class RunningApplication:
    """A running application of a partition.

    Attributes
    ----------
    name : str
        Name of the application.
    demand : Demand
        Signature of the application.
    elapsed_s : float
        Position of the run in its signature [s].
    position_error_s : float or None
        Standard deviation of the position [s], if it was derived from observed bursts. None: `elapsed_s` is the time
        since the job's start, with the error of `AdviceParams`.
    tempo : float
        Seconds of the signature per second so far.
    tempo_error_ratio : float or None
        Standard deviation of `tempo`; None: `AdviceParams.drift_ratio`.

    """

    name: str
    demand: Demand
    elapsed_s: float
    position_error_s: float | None = None
    tempo: float = 1.0
    tempo_error_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A storage partition with its load.

    Attributes
    ----------
    name : str
        Name of the partition.
    capacity_bytes_per_s : float
        Maximum rate [B/s].
    background_bytes_per_s : Reals or float
        Unexplained load from now on [B/s]: constant, or one value per step of `AdviceParams.step_s`; their mean applies
        after the last one.
    running : tuple of Running
        Running applications.

    """

    name: str
    capacity_bytes_per_s: float
    background_bytes_per_s: Reals | float = 0.0
    running: tuple[RunningApplication, ...] = ()


@dataclass(frozen=True, slots=True)
class AdviceParams:
    """Time grid, offered delays, cost of a delay, and sampled uncertainty of advice.

    Defaults from `drift_ratio` on were chosen on application mixes of `iosig study advice` that its page does not show.
    In these, runs varied by 1.5 %, and were about 15 s away from the position that their last burst implied.
    """

    #: criterion by which choices are ranked
    method: Method = "contention"
    #: step of the time grid [s]; coarser for very long signatures
    step_s: float = 2.0
    #: maximum delay, and step between offered delays [s]
    max_delay_s: float = 1800.0
    delay_step_s: float = 10.0
    #: cost of a second of delay, in contended bytes; with 0, a delay only breaks ties
    delay_cost_bytes_per_s: float = 0.0
    #: minimum saving of an offered delay, as a fraction of the maximum saving; the shortest such delay is offered
    min_saving_ratio: float = 0.95
    #: standard deviation of the pace of runs of one application
    drift_ratio: float = 0.02
    #: standard deviation of the position of a running application, in addition to drift [s]
    start_error_s: float = 10.0
    #: number of sampled phases; more did not improve the choice
    sample_count: int = 16
    #: number of levels of a demand; with fewer levels, choices are equally good, but the cost just above the capacity
    #: is overestimated, since it is convex and interpolated linearly between levels
    level_count: int = 32
    #: number of iterations of the mutual delays of running applications; without them, choices were worse
    lag_rounds: int = 1
    #: random seed of the phases
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Expected contention of one partition and delay.

    Attributes
    ----------
    partition : str
        Name of the partition.
    delay_s : float
        Delay of the start [s].
    contended_bytes : float
        Bytes of all applications in excess of the capacity, minus the excess without the new application.
    own_contended_bytes, others_contended_bytes : float
        Parts of `contended_bytes` of the new and of all other applications, if the capacity is divided in proportion to
        demand.
    stretch : float
        Run time with delayed I/O divided by the run time without contention.
    low_contended_bytes, high_contended_bytes : float
        Range of `contended_bytes` in 80 % of the sampled phases.
    met_load_ratio : float
        Mean load that the application's bytes encounter, as a fraction of the capacity (criterion of `correlation`).

    """

    partition: str
    delay_s: float
    contended_bytes: float
    own_contended_bytes: float
    others_contended_bytes: float
    stretch: float
    low_contended_bytes: float
    high_contended_bytes: float
    met_load_ratio: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Ranked choices, and the cost of every delay on every partition.

    Attributes
    ----------
    without_delay, with_delay : tuple of Choice
        All partitions, best first, with an immediate start, and with the best delay of each partition (0 if a delay
        saves nothing).
    partitions : tuple of str
        Names of the partitions, in the given order.
    delays_s : Reals, shape (k,)
        Offered delays [s].
    contended_bytes, met_load_ratios : Reals, shape (p, k)
        Expectations, as in `Choice`.
    step_s : float
        Step of the time grid [s].
    load_bytes_per_s : Reals, shape (p, steps)
        Expected load without the application, from now on [B/s].
    method : str
        Criterion of the ranking.

    """

    without_delay: tuple[Choice, ...]
    with_delay: tuple[Choice, ...]
    partitions: tuple[str, ...]
    delays_s: Reals
    contended_bytes: Reals
    met_load_ratios: Reals
    step_s: float
    load_bytes_per_s: Reals
    method: Method


def advise(demand: Demand, partitions: Sequence[Partition], params: AdviceParams) -> Advice:
    """Rank partitions and start times for an application.

    Parameters
    ----------
    demand : Demand
        Signature of the application.
    partitions : sequence of Partition
        One or more partitions with distinct names.
    params : AdviceParams
        Parameters.

    Returns
    -------
    Advice

    Raises
    ------
    ValueError
        If no partition is given, or a number is out of range.

    """
    _check(demand, partitions, params)
    grid = _Grid.create(demand, params)
    demand_samples = _sample_demand(demand, grid, params)
    evaluations = [_evaluate_partition(demand, demand_samples, partition, grid, params) for partition in partitions]
    by_now = sorted(evaluations, key=lambda item: _order(item.now, item.now_score))
    by_best = sorted(evaluations, key=lambda item: _order(item.best, item.best_score))
    return Advice(
        without_delay=tuple(item.now for item in by_now),
        with_delay=tuple(item.best for item in by_best),
        partitions=tuple(partition.name for partition in partitions),
        delays_s=grid.delays_s,
        contended_bytes=np.stack([item.contended_bytes for item in evaluations]),
        met_load_ratios=np.stack([item.met_load_ratios for item in evaluations]),
        step_s=grid.step_s,
        load_bytes_per_s=np.stack([item.load_bytes_per_s for item in evaluations]),
        method=params.method,
    )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """Result for one partition; scores are costs in integer multiples of the rounding tolerance."""

    now: Choice
    best: Choice
    now_score: int
    best_score: int
    contended_bytes: Reals
    met_load_ratios: Reals
    load_bytes_per_s: Reals


def _evaluate_partition(
    demand: Demand, demand_samples: Reals, partition: Partition, grid: _Grid, params: AdviceParams
) -> _Evaluation:
    """Evaluate every delay on one partition, without keeping the samples."""
    expected = _Expectations.create(demand_samples, partition, grid, params)
    tolerance = _EQUAL_RATIO * max(demand.volume_bytes, 1.0)
    scores = _scores(expected, demand, grid, params)
    best = _shortest_good_delay(scores, tolerance, params.min_saving_ratio)
    now, delayed = (_build_choice(partition, index, expected, grid, demand) for index in (0, best))
    steps = np.round(scores / tolerance)
    contended_bytes, met_load_ratio = expected.contended_bytes, expected.met_load_ratio
    return _Evaluation(
        now, delayed, int(steps[0]), int(steps[best]), contended_bytes, met_load_ratio, expected.load_bytes_per_s
    )


def _order(choice: Choice, score: int) -> tuple[int, float, float, str]:
    return score, choice.delay_s, choice.met_load_ratio, choice.partition


def _scores(expected: _Expectations, demand: Demand, grid: _Grid, params: AdviceParams) -> Reals:
    """Cost of each delay (k) in bytes; for `correlation`, bytes weighted by the load that they encounter."""
    costs = expected.contended_bytes
    if params.method == "correlation":
        costs = expected.met_load_ratio * demand.volume_bytes
    scores: Reals = costs + params.delay_cost_bytes_per_s * grid.delays_s
    return scores


def _shortest_good_delay(score: Reals, tolerance: float, min_saving_ratio: float) -> int:
    """Index of the first delay with a minimum fraction of the maximum saving; 0 if nothing is saved."""
    saving = float(score[0] - score.min())
    if saving <= tolerance:
        return 0
    return int(np.argmax(score <= score[0] - min_saving_ratio * saving))


# ---- validation


def _check(demand: Demand, partitions: Sequence[Partition], params: AdviceParams) -> None:
    if not partitions or len({partition.name for partition in partitions}) < len(partitions):
        raise ValueError("at least one partition is required, and names must be distinct")
    demands = [demand, *(running.demand for partition in partitions for running in partition.running)]
    if not all(_is_rate(item.bytes_per_s) and 0 < item.step_s < math.inf for item in demands):
        raise ValueError("a demand requires finite, non-negative rates, and steps of positive length")
    for partition in partitions:
        if not 0 < partition.capacity_bytes_per_s < math.inf:
            raise ValueError("a capacity must be positive and finite")
        if not _is_rate(np.atleast_1d(np.asarray(partition.background_bytes_per_s, dtype=float))):
            raise ValueError("a background must be finite and non-negative")
        if not all(math.isfinite(running.elapsed_s) for running in partition.running):
            raise ValueError("the position of a running application must be finite")
    _check_params(params)


def _is_rate(values: Reals) -> bool:
    return values.size > 0 and bool(np.all(np.isfinite(values) & (values >= 0)))


def _check_params(params: AdviceParams) -> None:
    positive = (params.step_s, params.delay_step_s, params.sample_count, params.level_count)
    costs = (params.max_delay_s, params.delay_cost_bytes_per_s, params.lag_rounds)
    nonnegative = (*costs, params.drift_ratio, params.start_error_s)
    if not all(0 < value < math.inf for value in positive) or not all(0 <= value < math.inf for value in nonnegative):
        raise ValueError("steps and counts must be positive; delays, costs and errors must be finite and non-negative")
    if not 0 < params.min_saving_ratio <= 1:
        raise ValueError("min_saving_ratio must be above 0 and at most 1")
    if params.method not in ("correlation", "contention"):
        raise ValueError("method must be correlation or contention")


# ---- phases


def _draw_paces(errors: Reals, drift_ratio: float) -> Reals:
    return np.maximum(1.0 + drift_ratio * errors, _MIN_PACE)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Time grid from now on.

    `own_count` steps cover the application's run; `count` steps also cover the run with the maximum delay. Offered
    delays are `delay_steps` and `delays_s` (k).
    """

    step_s: float
    own_count: int
    count: int
    delay_steps: Ints
    delays_s: Reals

    @classmethod
    def create(cls, demand: Demand, params: AdviceParams) -> _Grid:
        """Create a grid that covers the slowest sampled run."""
        errors = draw_standard_normal(params.sample_count, 1, params.seed)
        longest_s = demand.duration_s / float(_draw_paces(errors, params.drift_ratio).min())
        step = max(params.step_s, (longest_s + params.max_delay_s) / MAX_STEPS)
        own_count = max(1, math.ceil(longest_s / step - 1e-9))
        stride = max(1, round(params.delay_step_s / step))
        delays = np.arange(0, math.floor(params.max_delay_s / step + 1e-9) + 1, stride, dtype=np.int64)
        delays_s: Reals = delays * np.float64(step)
        return cls(step, own_count, own_count + int(delays[-1]), delays, delays_s)

    def edges_s(self, count: int) -> Reals:
        """Edges of the first `count` steps [s], shape (count + 1,)."""
        edges: Reals = np.arange(count + 1, dtype=np.float64) * self.step_s
        return edges


def _sample_demand(demand: Demand, grid: _Grid, params: AdviceParams) -> Reals:
    """Sample the demand of the application from its start on (samples, own_count)."""
    paces = _draw_paces(draw_standard_normal(params.sample_count, 1, params.seed), params.drift_ratio)
    positions = grid.edges_s(grid.own_count) * paces
    rates: Reals = Demands.from_list([demand]).rates(_FIRST, positions[None], grid.step_s)[0]
    return rates


def _sample_load(partition: Partition, grid: _Grid, params: AdviceParams) -> Reals:
    """Sample the load of all others on a partition from now on (samples, count).

    Above the capacity, all applications slow down in proportion, and remain late afterwards. Each iteration starts from
    the demand of the previous one.
    """
    background = _background(partition, grid.edges_s(grid.count), params.step_s)
    positions = _sample_positions(partition, grid, params)
    rates = _running_rates(partition, positions, grid)
    speeds = np.ones_like(rates)
    for _ in range(params.lag_rounds if len(partition.running) else 0):
        # dividing by the speed restores the demand of slowed applications
        load = background + (rates / speeds).sum(axis=0)
        share = partition.capacity_bytes_per_s / np.maximum(load, partition.capacity_bytes_per_s)
        speeds = np.where(rates > 0, share, 1.0)
        delayed = positions.copy()
        delayed[..., 1:] = positions[..., :1] + np.cumsum(np.diff(positions, axis=-1) * speeds, axis=-1)
        rates = _running_rates(partition, delayed, grid)
    return np.asarray(background + rates.sum(axis=0), dtype=float)


def _running_rates(partition: Partition, positions_s: Reals, grid: _Grid) -> Reals:
    """Rates of the running applications at given positions (running, samples, count)."""
    if not len(positions_s):
        return np.zeros((1, positions_s.shape[1], grid.count))
    demands = Demands.from_list([running.demand for running in partition.running])
    return demands.rates(np.arange(len(positions_s)), positions_s, grid.step_s)


def _sample_positions(partition: Partition, grid: _Grid, params: AdviceParams) -> Reals:
    """Sample the positions of the running applications without contention (running, samples, count + 1)."""
    edges = grid.edges_s(grid.count)
    # a separate seed, since their drift is independent of that of the new application
    errors = draw_standard_normal(params.sample_count, 2 * len(partition.running), params.seed + 1)
    positions = np.empty((len(partition.running), params.sample_count, len(edges)))
    for number, running in enumerate(partition.running):
        at_error, tempo_error = errors[:, 2 * number, None], errors[:, 2 * number + 1, None]
        drift = params.drift_ratio if running.tempo_error_ratio is None else running.tempo_error_ratio
        paces = running.tempo * _draw_paces(tempo_error, drift)
        if running.position_error_s is None:
            positions[number] = (running.elapsed_s + edges) * paces + params.start_error_s * at_error
        else:
            positions[number] = running.elapsed_s + running.position_error_s * at_error + edges * paces
    return positions


def _background(partition: Partition, edges_s: Reals, step_s: float) -> Reals:
    values = np.atleast_1d(np.asarray(partition.background_bytes_per_s, dtype=float))
    known_s = len(values) * step_s
    after_s = np.diff(np.maximum(edges_s, known_s)) / np.diff(edges_s)
    measured = Demands.from_list([Demand(values, step_s)]).rates(_FIRST, edges_s[None], float(edges_s[1]))[0]
    load: Reals = measured + after_s * values.mean()
    return load


# ---- costs


@dataclass(frozen=True, slots=True)
class _Expectations:
    """Expectations of one partition by delay (k), as in `Choice`.

    `own` and `others` (samples, steps) are the sampled demand and load; `extra_s` (k) is the delay of the run [s].
    """

    own: Reals
    others: Reals
    contended_bytes: Reals
    own_contended_bytes: Reals
    extra_s: Reals
    met_load_ratio: Reals
    load_bytes_per_s: Reals

    @classmethod
    def create(cls, demand_samples: Reals, partition: Partition, grid: _Grid, params: AdviceParams) -> _Expectations:
        """Compute expectations over all pairs of an own phase and a phase of the others.

        The cost at a time is convex in the demand and nearly linear between two levels, so the demand is divided
        between the adjacent levels. Both kinds of phases are independent. So the mean of the product of a level's
        weight and its cost is the product of the means.
        """
        load_samples = _sample_load(partition, grid, params)
        capacity = partition.capacity_bytes_per_s
        levels = np.linspace(0.0, demand_samples.max(), params.level_count + 1)[1:]
        shares = _level_shares(demand_samples, levels)
        costs = np.stack([_level_costs(level, load_samples, capacity) for level in levels], axis=1)
        by_delay = _correlations(np.broadcast_to(shares, (len(costs), *shares.shape)), costs, grid)
        contended_bytes, own_part, extra = by_delay.sum(axis=1) * grid.step_s
        load, mean_demand = load_samples.mean(axis=0), demand_samples.mean(axis=0)
        met_load_ratio = _correlations(mean_demand, load, grid) / max(float(mean_demand.sum()) * capacity, 1e-300)
        return cls(
            demand_samples,
            load_samples,
            contended_bytes,
            np.minimum(own_part, contended_bytes),
            extra,
            met_load_ratio,
            load,
        )


def _level_shares(demand_samples: Reals, levels: Reals) -> Reals:
    """Mean weight of each level (levels, steps) in a sampled demand (samples, steps)."""
    if levels[-1] <= 0.0:
        return np.zeros((len(levels), demand_samples.shape[1]))
    # scale by the highest level, since the lowest one underflows for extremely small rates
    position = demand_samples / levels[-1] * len(levels)
    numbers = np.arange(1, len(levels) + 1)
    return np.stack([np.clip(1.0 - np.abs(position - number), 0.0, None).mean(axis=0) for number in numbers])


def _level_costs(level: float, load_samples: Reals, capacity: float) -> Reals:
    """Mean costs of a demand of one level at each step (3, steps).

    The costs are the added rate above the capacity; the part of that rate that hits the demand itself, in proportion;
    and the time lost per second (at 1 / x of its demand, a transfer takes x times as long).
    """
    total = load_samples + level
    excess = np.maximum(total - capacity, 0.0)
    added = excess - np.maximum(load_samples - capacity, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        own_part = np.where(excess > 0, excess * (level / total), 0.0)
    return np.stack([added.mean(axis=0), own_part.mean(axis=0), excess.mean(axis=0) / capacity])


def _correlations(demand: Reals, load: Reals, grid: _Grid) -> Reals:
    """Cross-correlation of signals (..., own_count) and (..., count) at the offered delays (..., k), by FFT."""
    size = fft.next_fast_len(grid.count, real=True)
    product = np.conj(fft.rfft(demand, size, axis=-1)) * fft.rfft(load, size, axis=-1)
    sums = fft.irfft(product, size, axis=-1)[..., grid.delay_steps]
    # rounding error of a sum of zeros
    noise = 1e-12 * np.linalg.norm(demand, axis=-1) * np.linalg.norm(load, axis=-1)
    correlations: Reals = np.where(sums > noise[..., None], sums, 0.0)
    return correlations


def _build_choice(partition: Partition, index: int, expected: _Expectations, grid: _Grid, demand: Demand) -> Choice:
    contended, own_part = float(expected.contended_bytes[index]), float(expected.own_contended_bytes[index])
    low, high = _range(expected, partition.capacity_bytes_per_s, int(grid.delay_steps[index]), grid.step_s)
    return Choice(
        partition=partition.name,
        delay_s=float(grid.delays_s[index]),
        contended_bytes=contended,
        own_contended_bytes=own_part,
        others_contended_bytes=contended - own_part,
        stretch=1.0 + float(expected.extra_s[index]) / demand.duration_s,
        low_contended_bytes=min(low, contended),
        high_contended_bytes=max(high, contended),
        met_load_ratio=float(expected.met_load_ratio[index]),
    )


def _range(expected: _Expectations, capacity: float, delay_steps: int, step_s: float) -> tuple[float, float]:
    """Quantiles of the contended bytes over pairs of phases with equal index."""
    load_samples = expected.others[:, delay_steps : delay_steps + expected.own.shape[1]]
    added = np.maximum(load_samples + expected.own - capacity, 0.0) - np.maximum(load_samples - capacity, 0.0)
    low, high = np.quantile(added.sum(axis=1) * step_s, _RANGE)
    return float(low), float(high)
