"""Jobs that compute and do I/O on one shared file system: what it costs them, and what knowing periods saves.

A discrete-event simulation of fluid flows. Between two events every job's bandwidth is constant; an event is a job
that turns from computing to I/O or back. Two policies:

* `Fair`, the original of FTIO's Figure 17: max-min fair sharing of the bandwidth among all jobs that do I/O.
* `Set10` (Boito, Pallez, Teylo, Vidal, "IO-SETS: Simple and efficient approaches for I/O bandwidth management", IEEE
  TPDS 34(10), 2023, DOI 10.1109/TPDS.2023.3305028): jobs are put into sets by the order of magnitude of their period.
  Within a set one job at a time does I/O, first come first served; sets that do I/O share the bandwidth by priority.

Where a period comes from is a `PeriodSource`, which is told of each finished I/O phase: an online predictor can live
inside the simulation. Measures and the workload of Figure 17 are those of FTIO (Tarraf, Bandet, Boito, Pallez, Wolf,
"Capturing Periodic I/O Using Frequency Techniques", IPDPS 2024), section IV.

The file system loses nothing to concurrent streams. What contention costs here is waiting alone; on real storage it
also costs seeks, and not to interleave streams saves more than is shown here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals

#: the set of jobs whose period nobody knows yet: below all others
UNKNOWN_SET = math.inf
#: between sets that are further apart than this, priorities differ no more: 10^-100 of a bandwidth is still a number
_MOST_DECADES = 100.0

# ---- jobs


@dataclass(frozen=True, slots=True)
class Job:
    """One job: it computes, then does I/O, and so on through its phases.

    compute_s, io_bytes (phases): how long each phase computes, and what it reads or writes then; either may be 0.
    most_bytes_per_s: what it reaches when it has the file system for itself; infinite if that is all there is.
    """

    compute_s: Sequence[float] | Reals
    io_bytes: Sequence[float] | Reals
    start_s: float = 0.0
    most_bytes_per_s: float = math.inf
    node_count: float = 1.0


@dataclass(frozen=True, slots=True)
class JobMix:
    """Many jobs (n) and their phases (m), as arrays.

    start_s, most_bytes_per_s, node_count (n): as of `Job`. offsets (n + 1): job i has the phases from offsets[i] up
    to offsets[i + 1]. compute_s, io_bytes (m).
    """

    start_s: Reals
    most_bytes_per_s: Reals
    node_count: Reals
    offsets: Ints
    compute_s: Reals
    io_bytes: Reals

    @property
    def job_of_phase(self) -> Ints:
        """The job (m) of each phase."""
        return np.repeat(np.arange(self.start_s.size, dtype=np.int64), np.diff(self.offsets))


def job_mix_of(jobs: Sequence[Job]) -> JobMix:
    """Return jobs as arrays."""
    lengths = np.array([0, *(len(job.io_bytes) for job in jobs)], dtype=np.int64)
    none = np.empty(0)
    return JobMix(
        start_s=np.array([job.start_s for job in jobs], dtype=float),
        most_bytes_per_s=np.array([job.most_bytes_per_s for job in jobs], dtype=float),
        node_count=np.array([job.node_count for job in jobs], dtype=float),
        offsets=np.cumsum(lengths),
        compute_s=np.concatenate([none, *(np.asarray(job.compute_s, dtype=float) for job in jobs)]),
        io_bytes=np.concatenate([none, *(np.asarray(job.io_bytes, dtype=float) for job in jobs)]),
    )


# ---- where periods come from


class PeriodSource(Protocol):
    """Who is asked for the period of a job; made anew for each simulation, as it may learn."""

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the period of a job of which an I/O phase begins now, or None where it is not known yet."""

    def io_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Hear of an I/O phase that has just ceased."""


class Clairvoyant:
    """Periods that are known in advance (FTIO, section IV: the ideal ones, in isolation; see `ideal_periods`).

    periods_s (n): one for each job, NaN where it has none.
    """

    def __init__(self, periods_s: Sequence[float] | Reals) -> None:
        self._periods_s = [float(period) for period in periods_s]

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return what was given."""
        period = self._periods_s[job]
        return None if math.isnan(period) else period

    def io_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Learn nothing: all is known."""


class MeanGap:
    """The mean time between the beginnings of successive I/O phases that have ceased (IO-Sets' w_iter, so far).

    A job is unknown until two of its phases have ceased.
    """

    def __init__(self) -> None:
        self._begins_s: dict[int, list[float]] = {}

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the mean gap so far; phases that begin at one and the same time have none."""
        begins = self._begins_s.get(job, [])
        if len(begins) < 2 or begins[-1] <= begins[0]:
            return None
        return (begins[-1] - begins[0]) / (len(begins) - 1)

    def io_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Note when the phase began."""
        self._begins_s.setdefault(job, []).append(io_start_s)


class WithError:
    """Another source's periods, made wrong: increased or decreased at random (FTIO, section IV, "Set-10 + error").

    ratio: by how much, 0.5 for half as long or half as long again. Which of the two is drawn anew for each answer.
    """

    def __init__(self, source: PeriodSource, generator: np.random.Generator, ratio: float = 0.5) -> None:
        self._source, self._generator, self._ratio = source, generator, ratio

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the other's answer with its error."""
        period = self._source.period_s(job, now_s)
        if period is None:
            return None
        return period * (1 + self._ratio if self._generator.integers(2) else 1 - self._ratio)

    def io_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Pass it on."""
        self._source.io_phase(job, io_start_s, io_end_s, volume_bytes)


# ---- policies


@dataclass(frozen=True, slots=True)
class Fair:
    """Max-min fair sharing among the jobs that do I/O, each of which takes at most what it can use."""


@dataclass(frozen=True, slots=True)
class Set10:
    """IO-Sets' heuristic: sets by the period's order of magnitude, one job of a set at a time, priority 10^-set.

    source is asked when an I/O phase begins, and the phase stays in its set. What a job leaves of its share, because it
    cannot use it, goes to the other sets. A job with an unknown period is in a set of its own kind (`UNKNOWN_SET`), a
    tenth of the lowest other set that does I/O at that time: it cannot hold up those that are known, and is served
    whenever they leave bandwidth or a share of it.
    """

    source: PeriodSource


Policy = Fair | Set10


def set_number(period_s: float | None) -> float:
    """Return the set of a period: its order of magnitude, log10 rounded to the nearest whole (IO-Sets, Set-10)."""
    if period_s is None:
        return UNKNOWN_SET
    return float(math.floor(math.log10(period_s) + 0.5))


def shares(weights: Reals, most: Reals, total: float) -> Reals:
    """Return the weighted max-min fair shares (k) of a total: in proportion to weights (k), none above its most (k).

    All is shared out unless everybody has his most.
    """
    ratios = most / weights
    level = total / weights.sum()
    if level <= ratios.min():
        # The usual case: nobody is held up by his own most.
        return np.asarray(weights * level, dtype=float)
    order = np.argsort(ratios, kind="stable")
    taken = np.concatenate([[0.0], np.cumsum(most[order])[:-1]])
    # Summed from the lightest end: what is left of the weights must not vanish beside those that are gone.
    weights_left = np.cumsum(weights[order][::-1])[::-1]
    levels = np.maximum(total - taken, 0.0) / weights_left
    bound = levels < ratios[order]
    level = float(levels[bound.argmax()]) if bound.any() else math.inf
    return np.asarray(np.minimum(most, weights * level), dtype=float)


def _heads(jobs: Ints, sets: Reals, io_start_s: Reals) -> tuple[Ints, Reals]:
    """Return who may do I/O: of each set the job (k) that came first, by number where two came at once; and weights."""
    order = np.lexsort((jobs, io_start_s, sets))
    ordered = sets[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    found = ordered[first]
    if found[-1] == UNKNOWN_SET:
        found = np.append(found[:-1], found[-2] + 1 if found.size > 1 else 0.0)
    return jobs[order[first]], 10.0 ** -np.minimum(found - found[0], _MOST_DECADES)


# ---- what comes of it


@dataclass(frozen=True, slots=True)
class Outcome:
    """How n jobs with m phases fared.

    start_s, end_s, compute_s, io_s, node_count (n): io_s is from the beginning of each I/O phase to its end,
    waiting included. runtime_alone_s, io_alone_s (n): the same job with the file system for itself. io_start_s,
    served_s, io_end_s (m): when the I/O of each phase began, was first given bandwidth, and ceased. set_number (m): the
    set it was in, infinite where its period was not known, NaN where there are no sets or was no I/O. used_at_s,
    used_bytes_per_s (e): the bandwidth in use after each event, up to the next.
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
        """How many times as long each job (n) ran as alone (FTIO, section IV); NaN for one that takes no time."""
        return _ratio(self.end_s - self.start_s, self.runtime_alone_s)

    @property
    def io_slowdown(self) -> Reals:
        """How many times as long each job's (n) I/O took as alone (FTIO, section IV); NaN for one without I/O."""
        return _ratio(self.io_s, self.io_alone_s)

    @property
    def utilization(self) -> float:
        """The share of the jobs' node time that was spent on computing, not on I/O (FTIO, section IV); NaN for none."""
        computing, doing_io = self.node_count @ self.compute_s, self.node_count @ self.io_s
        return float(_ratio(np.array([computing]), np.array([computing + doing_io]))[0])


@dataclass(frozen=True, slots=True)
class Measures:
    """A run in three numbers, as FTIO's Figure 17: geometric means over the jobs, and the utilization."""

    stretch: float
    io_slowdown: float
    utilization: float


def measured(outcome: Outcome) -> Measures:
    """Return the measures of a run; jobs without I/O have no I/O slowdown and do not count in it."""
    return Measures(_geometric_mean(outcome.stretch), _geometric_mean(outcome.io_slowdown), outcome.utilization)


def _ratio(numerator: Reals, denominator: Reals) -> Reals:
    found = np.full(denominator.size, math.nan)
    np.divide(numerator, denominator, out=found, where=denominator > 0)
    return found


def _geometric_mean(values: Reals) -> float:
    known = values[~np.isnan(values)]
    return float(np.exp(np.mean(np.log(known)))) if known.size else math.nan


def _per_job(mix: JobMix, values: Reals) -> Reals:
    """Return the sums over the phases (m) of each job (n)."""
    return np.bincount(mix.job_of_phase, values, mix.start_s.size).astype(np.float64)


def _alone(mix: JobMix, bandwidth_bytes_per_s: float) -> tuple[Reals, Reals]:
    """Return when the I/O of each phase (m) begins and ceases if its job has the file system for itself.

    Added up in the order in which the simulation does, so that a job that nobody disturbs has a stretch of 1 exactly.
    """
    most = np.minimum(mix.most_bytes_per_s, bandwidth_bytes_per_s)
    io_s = mix.io_bytes / most[mix.job_of_phase]
    began, ceased = np.empty(io_s.size), np.empty(io_s.size)
    for job, (first, last) in enumerate(zip(mix.offsets[:-1], mix.offsets[1:], strict=True)):
        spans = np.column_stack([mix.compute_s[first:last], io_s[first:last]]).ravel()
        times = np.cumsum(np.concatenate([mix.start_s[job : job + 1], spans]))
        began[first:last], ceased[first:last] = times[1::2], times[2::2]
    return began, ceased


def _ends(mix: JobMix, io_end_s: Reals) -> Reals:
    """Return when each job (n) ends: with its last phase, or at once if it has none."""
    ends = mix.start_s.copy()
    some = np.diff(mix.offsets) > 0
    ends[some] = io_end_s[mix.offsets[1:][some] - 1]
    return ends


def ideal_periods(mix: JobMix, bandwidth_bytes_per_s: float) -> Reals:
    """Return the mean time between beginnings of I/O of each job (n) in isolation; NaN for fewer than two of them.

    IO-Sets' characteristic time w_iter, and what FTIO's section IV tells the clairvoyant Set-10.
    """
    began, _ = _alone(mix, bandwidth_bytes_per_s)
    periods = np.full(mix.start_s.size, math.nan)
    for job, (first, last) in enumerate(zip(mix.offsets[:-1], mix.offsets[1:], strict=True)):
        times = began[first:last][mix.io_bytes[first:last] > 0]
        if times.size > 1 and times[-1] > times[0]:
            periods[job] = (times[-1] - times[0]) / (times.size - 1)
    return periods


# ---- the simulation


def simulate(mix: JobMix, bandwidth_bytes_per_s: float, policy: Policy) -> Outcome:
    """Return how the jobs fare on a file system of one bandwidth under a policy.

    At one instant phases that cease are told to the source before it is asked for those that begin, in the order of
    jobs. Work is in proportion to phases times jobs, memory to phases.
    """
    began_alone, ceased_alone = _alone(mix, bandwidth_bytes_per_s)
    run = _Run(mix, bandwidth_bytes_per_s, policy)
    run.finish()
    return Outcome(
        start_s=mix.start_s,
        end_s=_ends(mix, run.io_end_s),
        compute_s=_per_job(mix, mix.compute_s),
        io_s=_per_job(mix, run.io_end_s - run.io_start_s),
        node_count=mix.node_count,
        runtime_alone_s=_ends(mix, ceased_alone) - mix.start_s,
        io_alone_s=_per_job(mix, ceased_alone - began_alone),
        io_start_s=run.io_start_s,
        served_s=run.served_s,
        io_end_s=run.io_end_s,
        set_number=run.set_number,
        used_at_s=np.array(run.used_at_s),
        used_bytes_per_s=np.array(run.used_bytes_per_s),
    )


class _Run:
    """The state of a simulation: of each job (n) its phase, whether it does I/O, at which rate, what is left of it.

    A rate that an event leaves as it was is left alone, and so is the time at which it will be done: nothing is added
    up in pieces that was not disturbed.
    """

    def __init__(self, mix: JobMix, bandwidth_bytes_per_s: float, policy: Policy) -> None:
        count, phases = mix.start_s.size, mix.io_bytes.size
        self.total = bandwidth_bytes_per_s
        self.source = policy.source if isinstance(policy, Set10) else None
        self.most = np.minimum(mix.most_bytes_per_s, bandwidth_bytes_per_s)
        self.compute_s, self.volume = mix.compute_s.tolist(), mix.io_bytes.tolist()
        self.phase, self.end = mix.offsets[:-1].tolist(), mix.offsets[1:].tolist()
        self.doing: Bools = np.zeros(count, dtype=bool)
        self.due_s = np.full(count, math.inf)
        self.rate, self.left, self.since_s, self.asked_s = (np.zeros(count) for _ in range(4))
        self.sets = np.full(count, math.nan)
        self.unserved: Bools = np.zeros(count, dtype=bool)
        self.io_start_s, self.served_s, self.io_end_s, self.set_number = (np.full(phases, math.nan) for _ in range(4))
        self.used_at_s: list[float] = []
        self.used_bytes_per_s: list[float] = []
        for job in range(count):
            self._compute(job, float(mix.start_s[job]))

    def finish(self) -> None:
        """Go from event to event until no job has anything left to do."""
        while self.due_s.size and (now := float(self.due_s.min())) < math.inf:
            # Phases without compute time or without bytes end in the instant in which they begin.
            while (ripe := (self.due_s <= now).nonzero()[0]).size:
                self._turn(ripe, now)
            self._share(now)

    def _turn(self, ripe: Ints, now: float) -> None:
        doing = self.doing[ripe]
        for job in ripe[doing].tolist():
            self._cease(job, now)
        for job in ripe[~doing].tolist():
            self._begin(job, now)

    def _compute(self, job: int, now: float) -> None:
        going_on = self.phase[job] < self.end[job]
        self.due_s[job] = now + self.compute_s[self.phase[job]] if going_on else math.inf

    def _begin(self, job: int, now: float) -> None:
        phase = self.phase[job]
        self.io_start_s[phase] = now
        if not self.volume[phase]:
            self.served_s[phase] = self.io_end_s[phase] = now
            self.phase[job] += 1
            self._compute(job, now)
            return
        if self.source is not None:
            self.sets[job] = self.set_number[phase] = set_number(self.source.period_s(job, now))
        self.doing[job] = self.unserved[job] = True
        self.left[job], self.asked_s[job], self.due_s[job] = self.volume[phase], now, math.inf

    def _cease(self, job: int, now: float) -> None:
        phase = self.phase[job]
        self.io_end_s[phase] = now
        self.doing[job], self.rate[job] = False, 0.0
        if self.source is not None:
            self.source.io_phase(job, float(self.io_start_s[phase]), now, self.volume[phase])
        self.phase[job] += 1
        self._compute(job, now)

    def _share(self, now: float) -> None:
        """Give the jobs that do I/O their bandwidth, and find when each will be done with it."""
        jobs, rates = self._rates()
        fresh = np.zeros(self.rate.size)
        fresh[jobs] = rates
        changed = (fresh != self.rate).nonzero()[0]
        given = fresh[changed]
        left = np.maximum(self.left[changed] - self.rate[changed] * (now - self.since_s[changed]), 0.0)
        self.left[changed], self.since_s[changed], self.rate[changed] = left, now, given
        self.due_s[changed] = now + np.divide(left, given, out=np.full(left.size, math.inf), where=given > 0)
        for job in jobs[self.unserved[jobs] & (rates > 0)].tolist():
            self.served_s[self.phase[job]] = now
            self.unserved[job] = False
        self.used_at_s.append(now)
        self.used_bytes_per_s.append(float(rates.sum()))

    def _rates(self) -> tuple[Ints, Reals]:
        """Return the jobs (k) that are given bandwidth now, and how much."""
        jobs = self.doing.nonzero()[0]
        if not jobs.size:
            return jobs, np.empty(0)
        if self.source is None:
            return jobs, shares(np.ones(jobs.size), self.most[jobs], self.total)
        heads, weights = _heads(jobs, self.sets[jobs], self.asked_s[jobs])
        return heads, shares(weights, self.most[heads], self.total)


# ---- workloads


#: of the file system, all of which each job can use
BANDWIDTH_BYTES_PER_S = 1e9
#: compute times differ by up to this from their mean (small, as IOR's); jobs start within this share of their period
_JITTER_RATIO, _OFFSET_RATIO = 0.05, 1.0


def figure_17(generator: np.random.Generator, cycles: int = 10) -> JobMix:
    """Return FTIO's workload of section IV: one job of a period of 19.2 s, the first, and 15 of 384 s.

    In isolation I/O takes 6.25 % of each period: together all that the file system has. The long jobs have as many
    periods as told (ours: the paper does not say), the short one as many as fill the same time.
    """
    short_s, long_s, long_count, io_ratio = 19.2, 384.0, 15, 0.0625
    periods = [short_s, *[long_s] * long_count]
    return job_mix_of([_cyclic(p, round(cycles * long_s / p), io_ratio, 1.0, generator) for p in periods])


def mixed(generator: np.random.Generator, count: int, duration_s: float = 10_000.0) -> JobMix:
    """Return jobs with periods log-uniform over 10 s to 10,000 s, that all run about as long.

    In isolation all want the whole bandwidth together (as in Figure 17); jobs have from half to one and a half times
    their equal part of it, at most half their period. duration_s: how long each runs, but two periods at least. Nodes:
    powers of 2 up to 256.
    """
    periods = 10.0 ** generator.uniform(1.0, 4.0, count)
    io_ratios = np.minimum(1.0 / count * generator.uniform(0.5, 1.5, count), 0.5)
    nodes = 2.0 ** generator.integers(0, 9, count)
    drawn = zip(periods.tolist(), io_ratios.tolist(), nodes.tolist(), strict=True)
    return job_mix_of([_cyclic(p, max(2, round(duration_s / p)), ratio, n, generator) for p, ratio, n in drawn])


def _cyclic(period_s: float, cycles: int, io_ratio: float, node_count: float, generator: np.random.Generator) -> Job:
    start_s = float(generator.uniform(0.0, _OFFSET_RATIO * period_s))
    jitter = generator.uniform(-_JITTER_RATIO, _JITTER_RATIO, cycles)
    return Job(
        compute_s=period_s * (1 - io_ratio) * (1 + jitter),
        io_bytes=np.full(cycles, period_s * io_ratio * BANDWIDTH_BYTES_PER_S),
        start_s=start_s,
        most_bytes_per_s=BANDWIDTH_BYTES_PER_S,
        node_count=node_count,
    )
