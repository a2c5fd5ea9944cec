"""Where to start an application and when, so that it and those who run already are least in each other's way.

IOSI (Liu et al., FAST'14, section 6.4): an application's signature can be correlated with the load of a machine's
partitions, to find the one where it interferes least, and starts can be staggered where there is none.

* `correlation` is that, as an inner product: the load that the application's bytes meet on average, as a share of the
  capacity. It knows nothing of what fits: half of a load twice as high counts the same.
* `contention` is what one would avoid: the expected bytes that find no room at the time they are asked for, the
  integral of what all demand beyond the capacity. It chose better in `iosig study advice`, and is the default.

Nobody knows exactly how far a run has come: runs of one application differ by a drift, which grows with time, and the
position itself may be known wrongly. Expectations are over such phases, sampled alike for each partition. Those who
run make each other late, which is followed; that the new one does is what is counted, and has no consequences: to
simulate them told hardly better what comes, since how each run will drift is known too badly. All delays are done at
once: the demand is split among levels, for each of which what it costs at an instant is known from the others' load
alone, so that the cost by delay is a sum of correlations, computed by the fast Fourier transform.
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

#: what choices are ranked by
Method = Literal["correlation", "contention"]
#: a grid of time has so many steps at most; it is made coarser for what is longer
MOST_STEPS = 1 << 16
#: a run's tempo never falls below this (as `workload` has it)
_LEAST_TEMPO = 0.5
#: costs that differ by less than this share of the application's bytes are equal: what rounding makes of them
_EQUAL_RATIO = 1e-6
#: the range of a choice holds this share of the sampled phases
_RANGE = (0.1, 0.9)
#: the first of some demands, where there is one
_FIRST: Ints = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Running:
    """What runs on a partition: its application's name, its demand, and how far into its signature it is now.

    position_error_s: the standard deviation of elapsed_s, where something is known of it (the last burst was seen);
    None: elapsed_s is the time since the job's start, and as wrong as `AdviceParams` says. tempo: how many seconds of
    its signature it has done in a second so far; tempo_error_ratio: the standard deviation of that; None: drift_ratio.
    """

    name: str
    demand: Demand
    elapsed_s: float
    position_error_s: float | None = None
    tempo: float = 1.0
    tempo_error_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the storage: what it can do, and what is to be expected of it.

    background_bytes_per_s: the load that no known application explains, from now on: one value, or one for each
    step of `AdviceParams.step_s` (k); after its last one their mean is expected.
    """

    name: str
    capacity_bytes_per_s: float
    background_bytes_per_s: Reals | float = 0.0
    running: tuple[Running, ...] = ()


@dataclass(frozen=True, slots=True)
class AdviceParams:
    """How advice is found.

    method: what choices are ranked by. step_s: of the grid of time; it is made coarser where a signature is very long.
    most_delay_s, delay_step_s: delays that are offered: 0, one step, and so on up to the greatest.
    delay_cost_bytes_per_s: what a second of delay costs, in contended bytes; 0: a delay costs nothing but a tie.
    least_saving_ratio: the shortest delay that saves this share of what the best one saves is the one that is offered.
    drift_ratio: how much the tempo of runs of one application differs, as a standard deviation; start_error_s: the
    standard deviation of how far a running application has come, beside its drift. sample_count: phases that
    expectations are over. level_count: levels that a demand is split among. lag_rounds: how often it is followed how
    late those who run make each other. seed: what phases are drawn from.

    All defaults are ours. Those from drift_ratio on were chosen on mixes of `iosig study advice` other than those that
    its page shows: runs there differ by 1.5 %, and were some 15 s from where their last burst said; more samples chose
    no better, and no round chose worse. Few levels choose as well, but are biased high where a demand hardly exceeds
    the capacity: costs between two levels are taken from a straight line, which the true cost stays below.
    """

    method: Method = "contention"
    step_s: float = 2.0
    most_delay_s: float = 1800.0
    delay_step_s: float = 10.0
    delay_cost_bytes_per_s: float = 0.0
    least_saving_ratio: float = 0.95
    drift_ratio: float = 0.02
    start_error_s: float = 10.0
    sample_count: int = 16
    level_count: int = 32
    lag_rounds: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One partition with one delay of the start, and what is to be expected of it.

    contended_bytes: bytes that find no room when they are asked for, the application's own and the others' together,
    beyond what is so without it; low_contended_bytes, high_contended_bytes: the range that holds it in 80 % of the
    sampled phases. own_contended_bytes, others_contended_bytes: its parts, if what is short is shared in proportion
    to demand. stretch: the run time with its I/O delayed over the run time alone. met_load_ratio: the load that its
    bytes meet on average, as a share of the capacity (what `correlation` ranks by).
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
    """Choices from the best to the worst, and what every delay would cost on every partition.

    without_delay: every partition, to start now. with_delay: every partition with its best delay, which is 0 where
    waiting saves nothing. delays_s (k); partitions (p): their names, in the order given; contended_bytes (p, k): what
    is to be expected of each, met_load_ratios (p, k) likewise. step_s: the grid's; load_bytes_per_s (p, steps): the
    load that is to be expected without the application, from now on. method: as asked for.
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
    """Return where to start an application and when; ValueError if there is no partition or a number is senseless."""
    _check(demand, partitions, params)
    grid = _Grid.of(demand, params)
    own = _own_demand(demand, grid, params)
    weighed = [_weighed(demand, own, partition, grid, params) for partition in partitions]
    return Advice(
        without_delay=tuple(each.now for each in sorted(weighed, key=lambda each: _order(each.now, each.now_score))),
        with_delay=tuple(each.best for each in sorted(weighed, key=lambda each: _order(each.best, each.best_score))),
        partitions=tuple(partition.name for partition in partitions),
        delays_s=grid.delays_s,
        contended_bytes=np.stack([each.contended_bytes for each in weighed]),
        met_load_ratios=np.stack([each.met_load_ratios for each in weighed]),
        step_s=grid.step_s,
        load_bytes_per_s=np.stack([each.load_bytes_per_s for each in weighed]),
        method=params.method,
    )


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A partition as `Advice` has it; scores are what its choices cost, in whole steps of what counts as equal."""

    now: Choice
    best: Choice
    now_score: int
    best_score: int
    contended_bytes: Reals
    met_load_ratios: Reals
    load_bytes_per_s: Reals


def _weighed(demand: Demand, own: Reals, partition: Partition, grid: _Grid, params: AdviceParams) -> _Weighed:
    """Weigh every delay on one partition; what it is made of, phases by steps, is not kept."""
    expected = _Expected.of(own, partition, grid, params)
    equal = _EQUAL_RATIO * max(demand.volume_bytes, 1.0)
    scores = _scores(expected, demand, grid, params)
    best = _shortest_good(scores, equal, params.least_saving_ratio)
    now, later = (_choice(partition, place, expected, grid, demand) for place in (0, best))
    steps = np.round(scores / equal)
    contended, met = expected.contended_bytes, expected.met_load_ratio
    return _Weighed(now, later, int(steps[0]), int(steps[best]), contended, met, expected.load_bytes_per_s)


def _order(choice: Choice, score: int) -> tuple[int, float, float, str]:
    return score, choice.delay_s, choice.met_load_ratio, choice.partition


def _scores(expected: _Expected, demand: Demand, grid: _Grid, params: AdviceParams) -> Reals:
    """Return what each delay (k) costs, in bytes; where `correlation` ranks, bytes by the load that they meet."""
    costs = expected.contended_bytes
    if params.method == "correlation":
        costs = expected.met_load_ratio * demand.volume_bytes
    scores: Reals = costs + params.delay_cost_bytes_per_s * grid.delays_s
    return scores


def _shortest_good(score: Reals, equal: float, least_saving_ratio: float) -> int:
    """Return the first delay that saves that share of what the best one saves, 0 if there is nothing to save."""
    saving = float(score[0] - score.min())
    if saving <= equal:
        return 0
    return int(np.argmax(score <= score[0] - least_saving_ratio * saving))


# ---- what is asked


def _check(demand: Demand, partitions: Sequence[Partition], params: AdviceParams) -> None:
    if not partitions or len({partition.name for partition in partitions}) < len(partitions):
        raise ValueError("at least one partition is needed, each with a name of its own")
    everybody = [demand, *(running.demand for partition in partitions for running in partition.running)]
    if not all(_is_rate(each.bytes_per_s) and 0 < each.step_s < math.inf for each in everybody):
        raise ValueError("a demand needs a value for each step, finite and not negative, and steps that take time")
    for partition in partitions:
        if not 0 < partition.capacity_bytes_per_s < math.inf:
            raise ValueError("a capacity must be positive and finite")
        if not _is_rate(np.atleast_1d(np.asarray(partition.background_bytes_per_s, dtype=float))):
            raise ValueError("a background must be finite and not negative")
        if not all(math.isfinite(running.elapsed_s) for running in partition.running):
            raise ValueError("how far an application has come must be known")
    _check_params(params)


def _is_rate(values: Reals) -> bool:
    return values.size > 0 and bool(np.all(np.isfinite(values) & (values >= 0)))


def _check_params(params: AdviceParams) -> None:
    positive = (params.step_s, params.delay_step_s, params.sample_count, params.level_count)
    costs = (params.most_delay_s, params.delay_cost_bytes_per_s, params.lag_rounds)
    natural = (*costs, params.drift_ratio, params.start_error_s)
    if not all(0 < value < math.inf for value in positive) or not all(0 <= value < math.inf for value in natural):
        raise ValueError("steps and counts must be positive; delays, costs and errors finite and not negative")
    if not 0 < params.least_saving_ratio <= 1:
        raise ValueError("the least saving must be a share")
    if params.method not in ("correlation", "contention"):
        raise ValueError("choices are ranked by correlation or by contention")


# ---- phases


def _tempos(errors: Reals, drift_ratio: float) -> Reals:
    return np.maximum(1.0 + drift_ratio * errors, _LEAST_TEMPO)


@dataclass(frozen=True, slots=True)
class _Grid:
    """The grid of time from now on: own_count steps hold the application's run, count steps the last delayed one too.

    delay_steps, delays_s (k): the delays that are offered.
    """

    step_s: float
    own_count: int
    count: int
    delay_steps: Ints
    delays_s: Reals

    @classmethod
    def of(cls, demand: Demand, params: AdviceParams) -> _Grid:
        """Return a grid on which even the slowest run ends."""
        errors = draw_standard_normal(params.sample_count, 1, params.seed)
        longest_s = demand.duration_s / float(_tempos(errors, params.drift_ratio).min())
        step = max(params.step_s, (longest_s + params.most_delay_s) / MOST_STEPS)
        own_count = max(1, math.ceil(longest_s / step - 1e-9))
        stride = max(1, round(params.delay_step_s / step))
        delays = np.arange(0, math.floor(params.most_delay_s / step + 1e-9) + 1, stride, dtype=np.int64)
        delays_s: Reals = delays * np.float64(step)
        return cls(step, own_count, own_count + int(delays[-1]), delays, delays_s)

    def edges_s(self, count: int) -> Reals:
        """Return the edges of the first so many steps (count + 1)."""
        edges: Reals = np.arange(count + 1, dtype=np.float64) * self.step_s
        return edges


def _own_demand(demand: Demand, grid: _Grid, params: AdviceParams) -> Reals:
    """Return what the application may ask for from its start on (samples, own_count)."""
    tempos = _tempos(draw_standard_normal(params.sample_count, 1, params.seed), params.drift_ratio)
    positions = grid.edges_s(grid.own_count) * tempos
    rates: Reals = Demands.from_list([demand]).rates(_FIRST, positions[None], grid.step_s)[0]
    return rates


def _others_demand(partition: Partition, grid: _Grid, params: AdviceParams) -> Reals:
    """Return what all others on a partition may move from now on (samples, count).

    Where they ask for more than there is, all go on more slowly in proportion, and whoever does is late from there on.
    Each round follows that from the demands of the round before.
    """
    background = _background(partition, grid.edges_s(grid.count), params.step_s)
    positions = _positions(partition, grid, params)
    rates = _all_rates(partition, positions, grid)
    speeds = np.ones_like(rates)
    for _ in range(params.lag_rounds if len(partition.running) else 0):
        # what is asked for, of which those who are slowed get a share
        load = background + (rates / speeds).sum(axis=0)
        share = partition.capacity_bytes_per_s / np.maximum(load, partition.capacity_bytes_per_s)
        speeds = np.where(rates > 0, share, 1.0)
        late = positions.copy()
        late[..., 1:] = positions[..., :1] + np.cumsum(np.diff(positions, axis=-1) * speeds, axis=-1)
        rates = _all_rates(partition, late, grid)
    return np.asarray(background + rates.sum(axis=0), dtype=float)


def _all_rates(partition: Partition, positions_s: Reals, grid: _Grid) -> Reals:
    """Return each running application's rates (running, samples, count) by its positions."""
    if not len(positions_s):
        return np.zeros((1, positions_s.shape[1], grid.count))
    demands = Demands.from_list([running.demand for running in partition.running])
    return demands.rates(np.arange(len(positions_s)), positions_s, grid.step_s)


def _positions(partition: Partition, grid: _Grid, params: AdviceParams) -> Reals:
    """Return how far each running application may be (running, samples, count + 1) if nobody is in its way."""
    edges = grid.edges_s(grid.count)
    # of a seed of their own: the application's drift says nothing of theirs
    errors = draw_standard_normal(params.sample_count, 2 * len(partition.running), params.seed + 1)
    positions = np.empty((len(partition.running), params.sample_count, len(edges)))
    for number, running in enumerate(partition.running):
        at_error, tempo_error = errors[:, 2 * number, None], errors[:, 2 * number + 1, None]
        drift = params.drift_ratio if running.tempo_error_ratio is None else running.tempo_error_ratio
        tempos = running.tempo * _tempos(tempo_error, drift)
        if running.position_error_s is None:
            positions[number] = (running.elapsed_s + edges) * tempos + params.start_error_s * at_error
        else:
            positions[number] = running.elapsed_s + running.position_error_s * at_error + edges * tempos
    return positions


def _background(partition: Partition, edges_s: Reals, step_s: float) -> Reals:
    values = np.atleast_1d(np.asarray(partition.background_bytes_per_s, dtype=float))
    known_s = len(values) * step_s
    after_s = np.diff(np.maximum(edges_s, known_s)) / np.diff(edges_s)
    known = Demands.from_list([Demand(values, step_s)]).rates(_FIRST, edges_s[None], float(edges_s[1]))[0]
    load: Reals = known + after_s * values.mean()
    return load


# ---- what it costs


@dataclass(frozen=True, slots=True)
class _Expected:
    """What is to be expected of one partition, by delay (k); own and others (samples, steps): the phases sampled.

    extra_s (k): how much longer the run takes. See `Choice` for the rest.
    """

    own: Reals
    others: Reals
    contended_bytes: Reals
    own_contended_bytes: Reals
    extra_s: Reals
    met_load_ratio: Reals
    load_bytes_per_s: Reals

    @classmethod
    def of(cls, own: Reals, partition: Partition, grid: _Grid, params: AdviceParams) -> _Expected:
        """Return the expectations over all pairs of a phase of the application and one of the others.

        What a demand costs at an instant is convex in it, and nearly linear between two levels: it is split between
        the levels below and above it. The two kinds of phases are independent, so the mean of the product of a
        level's share and a level's cost is the product of the means.
        """
        others = _others_demand(partition, grid, params)
        capacity = partition.capacity_bytes_per_s
        levels = np.linspace(0.0, own.max(), params.level_count + 1)[1:]
        shares = _level_shares(own, levels)
        costs = np.stack([_level_costs(level, others, capacity) for level in levels], axis=1)
        by_delay = _correlations(np.broadcast_to(shares, (len(costs), *shares.shape)), costs, grid)
        contended, mine, extra = by_delay.sum(axis=1) * grid.step_s
        load, wanted = others.mean(axis=0), own.mean(axis=0)
        met = _correlations(wanted, load, grid) / max(float(wanted.sum()) * capacity, 1e-300)
        return cls(own, others, contended, np.minimum(mine, contended), extra, met, load)


def _level_shares(own: Reals, levels: Reals) -> Reals:
    """Return how much of each level (levels, steps) a demand (samples, steps) is, on average over the samples."""
    if levels[-1] <= 0.0:
        return np.zeros((len(levels), own.shape[1]))
    # by the greatest, not by the first level, which rounds to 0 where rates are as small as numbers can be
    place = own / levels[-1] * len(levels)
    numbers = np.arange(1, len(levels) + 1)
    return np.stack([np.clip(1.0 - np.abs(place - number), 0.0, None).mean(axis=0) for number in numbers])


def _level_costs(level: float, others: Reals, capacity: float) -> Reals:
    """Return what a demand of that level costs at each instant (3, steps), on average over the others' phases.

    All bytes per second beyond the capacity that are not so without it; those of them that are its own, if what is
    short is shared in proportion to demand; and the seconds that it loses in a second: at a rate of 1 / x of its
    demand it takes x times as long.
    """
    both = others + level
    over = np.maximum(both - capacity, 0.0)
    more = over - np.maximum(others - capacity, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mine = np.where(over > 0, over * (level / both), 0.0)
    return np.stack([more.mean(axis=0), mine.mean(axis=0), over.mean(axis=0) / capacity])


def _correlations(of: Reals, along: Reals, grid: _Grid) -> Reals:
    """Return the sums (..., k) of products of one line (..., own_count) with another (..., count), by delay."""
    size = fft.next_fast_len(grid.count, real=True)
    product = np.conj(fft.rfft(of, size, axis=-1)) * fft.rfft(along, size, axis=-1)
    sums = fft.irfft(product, size, axis=-1)[..., grid.delay_steps]
    # what rounding leaves of a sum of nothing
    noise = 1e-12 * np.linalg.norm(of, axis=-1) * np.linalg.norm(along, axis=-1)
    found: Reals = np.where(sums > noise[..., None], sums, 0.0)
    return found


def _choice(partition: Partition, place: int, expected: _Expected, grid: _Grid, demand: Demand) -> Choice:
    contended, mine = float(expected.contended_bytes[place]), float(expected.own_contended_bytes[place])
    low, high = _range(expected, partition.capacity_bytes_per_s, int(grid.delay_steps[place]), grid.step_s)
    return Choice(
        partition=partition.name,
        delay_s=float(grid.delays_s[place]),
        contended_bytes=contended,
        own_contended_bytes=mine,
        others_contended_bytes=contended - mine,
        stretch=1.0 + float(expected.extra_s[place]) / demand.duration_s,
        low_contended_bytes=min(low, contended),
        high_contended_bytes=max(high, contended),
        met_load_ratio=float(expected.met_load_ratio[place]),
    )


def _range(expected: _Expected, capacity: float, delay_steps: int, step_s: float) -> tuple[float, float]:
    """Return the quantiles of the contended bytes over pairs of phases, the first with the first and so on."""
    others = expected.others[:, delay_steps : delay_steps + expected.own.shape[1]]
    more = np.maximum(others + expected.own - capacity, 0.0) - np.maximum(others - capacity, 0.0)
    low, high = np.quantile(more.sum(axis=1) * step_s, _RANGE)
    return float(low), float(high)
