"""Simulate jobs that alternate computing and I/O on a shared file system, as discrete events.

The simulation uses fluid flows: every job's bandwidth is constant between two events, and an event is a job's change
between computing and I/O. Two policies:

* `Fair`, the original of FTIO's Figure 17: max-min fair sharing of the bandwidth among all jobs that do I/O.
* `Set10` (Boito, Pallez, Teylo, Vidal, "IO-SETS: Simple and efficient approaches for I/O bandwidth management", IEEE
  TPDS 34(10), 2023, DOI 10.1109/TPDS.2023.3305028): jobs are grouped by the order of magnitude of their period. Within
  a set one job at a time does I/O, first come first served; active sets share the bandwidth by priority.

Periods come from a `PeriodSource`, which records each completed I/O phase, so an online predictor can run inside the
simulation. Measures and the workload of Figure 17 are those of FTIO (Tarraf, Bandet, Boito, Pallez, Wolf, "Capturing
Periodic I/O Using Frequency Techniques", IPDPS 2024), section IV.

Concurrent streams lose no bandwidth, so contention costs only waiting. On real storage it also costs seeks, and
avoiding interleaved streams saves more than shown here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.predictions.predictor import Due, OnlineParams, Predictor, evaluate
from iosig.transforms.throughput.requests import Requests

#: number of the set of jobs with an unknown period, which has the lowest priority
UNKNOWN_SET = math.inf
#: maximum difference of priorities in decades, to avoid underflow
_MAX_DECADES = 100.0

# ---- jobs


@dataclass(frozen=True, slots=True)
class Job:
    """A job that alternates between computing and I/O.

    compute_s, io_bytes (phases): computing time and subsequent I/O of each phase; either may be 0. max_bytes_per_s:
    rate without contention.
    """

    compute_s: Sequence[float] | Reals
    io_bytes: Sequence[float] | Reals
    start_s: float = 0.0
    max_bytes_per_s: float = math.inf
    node_count: float = 1.0


@dataclass(frozen=True, slots=True)
class JobMix:
    """Jobs (n) and their phases (m), as arrays.

    start_s, max_bytes_per_s, node_count (n): see `Job`. offsets (n + 1): job i has the phases offsets[i] to offsets[i +
    1] - 1. compute_s, io_bytes (m).
    """

    start_s: Reals
    max_bytes_per_s: Reals
    node_count: Reals
    offsets: Ints
    compute_s: Reals
    io_bytes: Reals

    @property
    def job_of_phase(self) -> Ints:
        """Index of each phase's job (m); phases are sorted by job."""
        return np.repeat(np.arange(self.start_s.size, dtype=np.int64), np.diff(self.offsets))


def build_job_mix(jobs: Sequence[Job]) -> JobMix:
    """Concatenate the jobs' phases into arrays."""
    lengths = np.array([0, *(len(job.io_bytes) for job in jobs)], dtype=np.int64)
    empty = np.empty(0)
    return JobMix(
        start_s=np.array([job.start_s for job in jobs], dtype=float),
        max_bytes_per_s=np.array([job.max_bytes_per_s for job in jobs], dtype=float),
        node_count=np.array([job.node_count for job in jobs], dtype=float),
        offsets=np.cumsum(lengths),
        compute_s=np.concatenate([empty, *(np.asarray(job.compute_s, dtype=float) for job in jobs)]),
        io_bytes=np.concatenate([empty, *(np.asarray(job.io_bytes, dtype=float) for job in jobs)]),
    )


# ---- where periods come from


class PeriodSource(Protocol):
    """Source of a job's period; it may learn, so each simulation needs a new one."""

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return a job's period at the start of its I/O phase; None if unknown."""

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Learn from an I/O phase that has just ended."""


class Clairvoyant:
    """Periods known in advance (FTIO, section IV: the ideal ones, in isolation; see `compute_ideal_periods`).

    periods_s (n): one per job, NaN if none.
    """

    def __init__(self, periods_s: Sequence[float] | Reals) -> None:
        self._periods_s = [float(period) for period in periods_s]

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the job's given period; None if it has none."""
        period = self._periods_s[job]
        return None if math.isnan(period) else period

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Ignore the phase, since all periods are given."""


class MeanGap:
    """Mean time between the starts of completed I/O phases (IO-Sets' w_iter, so far).

    Unknown until two phases have ended.
    """

    def __init__(self) -> None:
        self._begins_s: dict[int, list[float]] = {}

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the mean gap so far; None for phases that all start at the same time."""
        begins = self._begins_s.get(job, [])
        if len(begins) < 2 or begins[-1] <= begins[0]:
            return None
        return (begins[-1] - begins[0]) / (len(begins) - 1)

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Record when the I/O of a job's phase started; its end and volume are not used."""
        self._begins_s.setdefault(job, []).append(io_start_s)


class PredictedPeriods:
    """The most recent period that iosig's predictor finds in each job's completed requests (FTIO, "Set-10 + FTIO").

    It predicts whenever requests are appended (FTIO, section II-D), with the parameters of `iosig predict`. It receives
    requests, not phases: each phase of a job is one collective request, from the call, which may wait for other jobs,
    until the last byte.
    """

    def __init__(self, params: OnlineParams | None = None) -> None:
        self._params = params or OnlineParams()
        self._predictors: dict[int, Predictor] = {}

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the most recent period of a job; None until one was found."""
        predictor = self._predictors.get(job)
        return None if predictor is None else predictor.period_s

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Add the request of a job's completed phase, and predict."""
        predictor = self._predictors.setdefault(job, Predictor(self._params))
        predictor.add(Requests.from_arrays([io_start_s], [io_end_s], [volume_bytes]))
        predictor.pyramid.advance(io_end_s)
        evaluate([Due(predictor, io_end_s)])


class WithError:
    """Another source's periods with a random relative error (FTIO, section IV, "Set-10 + error").

    ratio: magnitude of the error; its sign is drawn for each answer.
    """

    def __init__(self, source: PeriodSource, generator: np.random.Generator, ratio: float = 0.5) -> None:
        self._source, self._generator, self._ratio = source, generator, ratio

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the other source's period with the error applied."""
        period = self._source.period_s(job, now_s)
        if period is None:
            return None
        return period * (1 + self._ratio if self._generator.integers(2) else 1 - self._ratio)

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Forward the phase to the other source."""
        self._source.record_phase(job, io_start_s, io_end_s, volume_bytes)


# ---- policies


@dataclass(frozen=True, slots=True)
class Fair:
    """Max-min fair sharing among the jobs that do I/O, limited by the maximum rate of each job."""


@dataclass(frozen=True, slots=True)
class Set10:
    """The Set-10 heuristic of IO-Sets, with priorities 10^-set; one job per set does I/O at a time.

    Sets are the orders of magnitude of the period. The source is queried when an I/O phase starts, and the phase stays
    in its set. Bandwidth that a job cannot use goes to the other sets. Jobs with an unknown period form a set of their
    own (`UNKNOWN_SET`) with a tenth of the lowest active priority, so that they cannot delay the others.
    """

    source: PeriodSource


Policy = Fair | Set10


def compute_set_number(period_s: float | None) -> float:
    """Return log10 of the period, rounded to the nearest integer (IO-Sets, Set-10)."""
    if period_s is None:
        return UNKNOWN_SET
    return float(math.floor(math.log10(period_s) + 0.5))


def compute_fair_shares(weights: Reals, limits: Reals, total: float) -> Reals:
    """Compute weighted max-min fair shares (k) of a total, proportional to weights (k) and limited by limits (k).

    The whole total is distributed unless all limits are reached.
    """
    ratios = limits / weights
    level = total / weights.sum()
    if level <= ratios.min():
        # the common case: no limit is binding
        return np.asarray(weights * level, dtype=float)
    order = np.argsort(ratios, kind="stable")
    cumulative_limits = np.concatenate([[0.0], np.cumsum(limits[order])[:-1]])
    # sum from the smallest weight, to avoid cancellation
    weights_left = np.cumsum(weights[order][::-1])[::-1]
    levels = np.maximum(total - cumulative_limits, 0.0) / weights_left
    bound = levels < ratios[order]
    level = float(levels[bound.argmax()]) if bound.any() else math.inf
    return np.asarray(np.minimum(limits, weights * level), dtype=float)


def _select_heads(jobs: Ints, sets: Reals, io_start_s: Reals) -> tuple[Ints, Reals]:
    """Select the job of each set (k) that started its I/O first, ties by number, and their weights."""
    order = np.lexsort((jobs, io_start_s, sets))
    ordered = sets[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    sets_in_use = ordered[first]
    if sets_in_use[-1] == UNKNOWN_SET:
        sets_in_use = np.append(sets_in_use[:-1], sets_in_use[-2] + 1 if sets_in_use.size > 1 else 0.0)
    return jobs[order[first]], 10.0 ** -np.minimum(sets_in_use - sets_in_use[0], _MAX_DECADES)


# ---- results


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a simulation of n jobs with m phases.

    start_s, end_s, compute_s, io_s, node_count (n): io_s includes waiting. runtime_alone_s, io_alone_s (n): in
    isolation. io_start_s, served_s, io_end_s (m): start of each I/O phase, first bandwidth, and end. set_number (m):
    infinite for an unknown period, NaN without sets or I/O. used_at_s, used_bytes_per_s (e): bandwidth in use from each
    event on.
    """

    start_s: Reals
    end_s: Reals
    compute_s: Reals
    io_s: Reals
    node_count: Reals
    runtime_alone_s: Reals
    io_alone_s: Reals
    io_start_s: Reals
    served_s: Reals
    io_end_s: Reals
    set_number: Reals
    used_at_s: Reals
    used_bytes_per_s: Reals

    @property
    def stretch(self) -> Reals:
        """Run time of each job divided by that in isolation (n) (FTIO, section IV); NaN for jobs that take no time."""
        return _ratio(self.end_s - self.start_s, self.runtime_alone_s)

    @property
    def io_slowdown(self) -> Reals:
        """I/O time of each job divided by that in isolation (n) (FTIO, section IV); NaN without I/O."""
        return _ratio(self.io_s, self.io_alone_s)

    @property
    def utilization(self) -> float:
        """Fraction of node time spent computing rather than on I/O (FTIO, section IV); NaN without jobs."""
        computing, doing_io = self.node_count @ self.compute_s, self.node_count @ self.io_s
        return float(_ratio(np.array([computing]), np.array([computing + doing_io]))[0])


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of FTIO's Figure 17: geometric means over jobs, and the utilization."""

    stretch: float
    io_slowdown: float
    utilization: float


def summarize_outcome(outcome: Outcome) -> Measures:
    """Compute the measures of a run; jobs without I/O do not count in the I/O slowdown."""
    return Measures(_geometric_mean(outcome.stretch), _geometric_mean(outcome.io_slowdown), outcome.utilization)


def _ratio(numerator: Reals, denominator: Reals) -> Reals:
    ratio = np.full(denominator.size, math.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio


def _geometric_mean(values: Reals) -> float:
    valid = values[~np.isnan(values)]
    return float(np.exp(np.mean(np.log(valid)))) if valid.size else math.nan


def _sum_by_job(mix: JobMix, values: Reals) -> Reals:
    """Sum values of phases (m) by job (n)."""
    return np.bincount(mix.job_of_phase, values, mix.start_s.size).astype(np.float64)


def _compute_isolation_times(mix: JobMix, bandwidth_bytes_per_s: float) -> tuple[Reals, Reals]:
    """Compute start and end of the I/O of each phase (m) in isolation.

    Times are summed in the order of the simulation, so that an undisturbed job has a stretch of exactly 1.
    """
    max_rates = np.minimum(mix.max_bytes_per_s, bandwidth_bytes_per_s)
    io_s = mix.io_bytes / max_rates[mix.job_of_phase]
    io_start_s, io_end_s = np.empty(io_s.size), np.empty(io_s.size)
    for job, (first, last) in enumerate(zip(mix.offsets[:-1], mix.offsets[1:], strict=True)):
        spans = np.column_stack([mix.compute_s[first:last], io_s[first:last]]).ravel()
        times = np.cumsum(np.concatenate([mix.start_s[job : job + 1], spans]))
        io_start_s[first:last], io_end_s[first:last] = times[1::2], times[2::2]
    return io_start_s, io_end_s


def _compute_job_ends(mix: JobMix, io_end_s: Reals) -> Reals:
    """Return the end of each job (n): that of its last phase, or its start without phases."""
    ends = mix.start_s.copy()
    has_phases = np.diff(mix.offsets) > 0
    ends[has_phases] = io_end_s[mix.offsets[1:][has_phases] - 1]
    return ends


def compute_ideal_periods(mix: JobMix, bandwidth_bytes_per_s: float) -> Reals:
    """Compute the mean time between I/O starts of each job (n) in isolation; NaN for fewer than two.

    This is IO-Sets' characteristic time w_iter, which FTIO's section IV gives to the clairvoyant Set-10.
    """
    io_start_s, _ = _compute_isolation_times(mix, bandwidth_bytes_per_s)
    periods = np.full(mix.start_s.size, math.nan)
    for job, (first, last) in enumerate(zip(mix.offsets[:-1], mix.offsets[1:], strict=True)):
        times = io_start_s[first:last][mix.io_bytes[first:last] > 0]
        if times.size > 1 and times[-1] > times[0]:
            periods[job] = (times[-1] - times[0]) / (times.size - 1)
    return periods


# ---- the simulation


def simulate(mix: JobMix, bandwidth_bytes_per_s: float, policy: Policy) -> Outcome:
    """Simulate jobs on a file system with a fixed bandwidth under a policy.

    Phases that end at an instant are recorded in the source before it is queried for those that start, in the order of
    jobs. Takes time proportional to phases times jobs, and memory proportional to phases.
    """
    began_alone, ceased_alone = _compute_isolation_times(mix, bandwidth_bytes_per_s)
    run = _Run(mix, bandwidth_bytes_per_s, policy)
    run.finish()
    return Outcome(
        start_s=mix.start_s,
        end_s=_compute_job_ends(mix, run.io_end_s),
        compute_s=_sum_by_job(mix, mix.compute_s),
        io_s=_sum_by_job(mix, run.io_end_s - run.io_start_s),
        node_count=mix.node_count,
        runtime_alone_s=_compute_job_ends(mix, ceased_alone) - mix.start_s,
        io_alone_s=_sum_by_job(mix, ceased_alone - began_alone),
        io_start_s=run.io_start_s,
        served_s=run.served_s,
        io_end_s=run.io_end_s,
        set_number=run.set_number,
        used_at_s=np.array(run.used_at_s),
        used_bytes_per_s=np.array(run.used_bytes_per_s),
    )


class _Run:
    """Phase, rate and remaining bytes of each job (n) during a simulation.

    Rates and completion times that an event does not change are not recomputed, which avoids accumulated rounding.
    """

    def __init__(self, mix: JobMix, bandwidth_bytes_per_s: float, policy: Policy) -> None:
        count, phases = mix.start_s.size, mix.io_bytes.size
        self.total = bandwidth_bytes_per_s
        self.source = policy.source if isinstance(policy, Set10) else None
        self.max_bytes_per_s = np.minimum(mix.max_bytes_per_s, bandwidth_bytes_per_s)
        self.compute_s, self.volume = mix.compute_s.tolist(), mix.io_bytes.tolist()
        self.phase, self.end = mix.offsets[:-1].tolist(), mix.offsets[1:].tolist()
        self.doing: Bools = np.zeros(count, dtype=bool)
        self.due_s = np.full(count, math.inf)
        self.rate, self.left, self.since_s, self.requested_s = (np.zeros(count) for _ in range(4))
        self.sets = np.full(count, math.nan)
        self.unserved: Bools = np.zeros(count, dtype=bool)
        self.io_start_s, self.served_s, self.io_end_s, self.set_number = (np.full(phases, math.nan) for _ in range(4))
        self.used_at_s: list[float] = []
        self.used_bytes_per_s: list[float] = []
        for job in range(count):
            self._begin_compute(job, float(mix.start_s[job]))

    def finish(self) -> None:
        """Process events until all jobs have ended."""
        while self.due_s.size and (now := float(self.due_s.min())) < math.inf:
            # phases without compute time or bytes end at the instant at which they start
            while (due_jobs := (self.due_s <= now).nonzero()[0]).size:
                self._advance(due_jobs, now)
            self._reallocate(now)

    def _advance(self, due_jobs: Ints, now: float) -> None:
        is_doing_io = self.doing[due_jobs]
        for job in due_jobs[is_doing_io].tolist():
            self._end_io(job, now)
        for job in due_jobs[~is_doing_io].tolist():
            self._begin_io(job, now)

    def _begin_compute(self, job: int, now: float) -> None:
        has_phases_left = self.phase[job] < self.end[job]
        self.due_s[job] = now + self.compute_s[self.phase[job]] if has_phases_left else math.inf

    def _begin_io(self, job: int, now: float) -> None:
        phase = self.phase[job]
        self.io_start_s[phase] = now
        if not self.volume[phase]:
            self.served_s[phase] = self.io_end_s[phase] = now
            self.phase[job] += 1
            self._begin_compute(job, now)
            return
        if self.source is not None:
            self.sets[job] = self.set_number[phase] = compute_set_number(self.source.period_s(job, now))
        self.doing[job] = self.unserved[job] = True
        self.left[job], self.requested_s[job], self.due_s[job] = self.volume[phase], now, math.inf

    def _end_io(self, job: int, now: float) -> None:
        phase = self.phase[job]
        self.io_end_s[phase] = now
        self.doing[job], self.rate[job] = False, 0.0
        if self.source is not None:
            self.source.record_phase(job, float(self.io_start_s[phase]), now, self.volume[phase])
        self.phase[job] += 1
        self._begin_compute(job, now)

    def _reallocate(self, now: float) -> None:
        """Assign bandwidth to the jobs that do I/O, and compute their completion times."""
        jobs, rates = self._compute_rates()
        fresh = np.zeros(self.rate.size)
        fresh[jobs] = rates
        changed = (fresh != self.rate).nonzero()[0]
        new_rates = fresh[changed]
        remaining_bytes = np.maximum(self.left[changed] - self.rate[changed] * (now - self.since_s[changed]), 0.0)
        self.left[changed], self.since_s[changed], self.rate[changed] = remaining_bytes, now, new_rates
        self.due_s[changed] = now + np.divide(
            remaining_bytes, new_rates, out=np.full(remaining_bytes.size, math.inf), where=new_rates > 0
        )
        for job in jobs[self.unserved[jobs] & (rates > 0)].tolist():
            self.served_s[self.phase[job]] = now
            self.unserved[job] = False
        self.used_at_s.append(now)
        self.used_bytes_per_s.append(float(rates.sum()))

    def _compute_rates(self) -> tuple[Ints, Reals]:
        """Return the jobs (k) that receive bandwidth, and their rates."""
        jobs = self.doing.nonzero()[0]
        if not jobs.size:
            return jobs, np.empty(0)
        if self.source is None:
            return jobs, compute_fair_shares(np.ones(jobs.size), self.max_bytes_per_s[jobs], self.total)
        heads, weights = _select_heads(jobs, self.sets[jobs], self.requested_s[jobs])
        return heads, compute_fair_shares(weights, self.max_bytes_per_s[heads], self.total)


# ---- workloads


#: bandwidth of the file system, which a single job can use completely
BANDWIDTH_BYTES_PER_S = 1e9
#: relative half-width of the jitter of compute times (small, as in IOR), and of the start offset in periods
_JITTER_RATIO, _OFFSET_RATIO = 0.05, 1.0


def draw_figure_17(generator: np.random.Generator, cycles: int = 10) -> JobMix:
    """Draw FTIO's workload of section IV: one job with a period of 19.2 s, first, and 15 with 384 s.

    In isolation I/O takes 6.25 % of each period: together the whole bandwidth. The long jobs have `cycles` periods (not
    stated in the paper), the short one as many as fill the same time.
    """
    short_s, long_s, long_count, io_ratio = 19.2, 384.0, 15, 0.0625
    periods = [short_s, *[long_s] * long_count]
    return build_job_mix([_draw_cyclic_job(p, round(cycles * long_s / p), io_ratio, 1.0, generator) for p in periods])


def draw_mixed_jobs(generator: np.random.Generator, count: int, duration_s: float = 10_000.0) -> JobMix:
    """Draw jobs with log-uniform periods from 10 s to 10,000 s and about equal durations.

    In isolation they demand the whole bandwidth together (as in Figure 17), each 0.5 to 1.5 times an equal share, at
    most half of its period. duration_s: of each job, but two periods or more. Nodes: powers of 2 up to 256.
    """
    periods = 10.0 ** generator.uniform(1.0, 4.0, count)
    io_ratios = np.minimum(1.0 / count * generator.uniform(0.5, 1.5, count), 0.5)
    nodes = 2.0 ** generator.integers(0, 9, count)
    job_parameters = zip(periods.tolist(), io_ratios.tolist(), nodes.tolist(), strict=True)
    return build_job_mix(
        [_draw_cyclic_job(p, max(2, round(duration_s / p)), ratio, n, generator) for p, ratio, n in job_parameters]
    )


def _draw_cyclic_job(
    period_s: float, cycles: int, io_ratio: float, node_count: float, generator: np.random.Generator
) -> Job:
    start_s = float(generator.uniform(0.0, _OFFSET_RATIO * period_s))
    jitter = generator.uniform(-_JITTER_RATIO, _JITTER_RATIO, cycles)
    return Job(
        compute_s=period_s * (1 - io_ratio) * (1 + jitter),
        io_bytes=np.full(cycles, period_s * io_ratio * BANDWIDTH_BYTES_PER_S),
        start_s=start_s,
        max_bytes_per_s=BANDWIDTH_BYTES_PER_S,
        node_count=node_count,
    )
