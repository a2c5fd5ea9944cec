"""Runs among foreign traffic, each in a window of its own: sites of a family, without the whole site's simulation.

A run computes, transfers, and computes again. What others do meanwhile slows or delays its transfers, and all that
follows; where bandwidth is shared fairly it slows the others, too. What they yield then is not made up for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from iosig.studies.signatures.backgrounds import traffic
from iosig.studies.signatures.families import FOREIGN_LEVELS, Drift, Family, Program
from iosig.studies.signatures.sites import STUDIED, Drawn
from iosig.transforms.arrays import Bools, Ragged, Reals, offsets_of
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.synthetic.workload import PROFILE, Application, stream

#: before a run, so that its first poll is there; and how long it may take, over the time alone
_LEAD_S, _WINDOW_RATIO, _WINDOW_S = 30, 2.0, 600
#: what each burst of the first and of the last step moves, over the mean (growing)
_GROWTH = (0.6, 1.4)
#: how probably a burst is skipped; how probably a run stops, and how probably it then begins again
_SKIP_RATIO, _STOP_RATIO, _AGAIN_RATIO = 0.08, 0.25, 0.6
#: the other input: its share of the runs, its volumes, and how its gaps differ by turns
_OTHER_RATIO, _OTHER_VOLUME, _OTHER_GAPS = 0.3, 0.6, 0.06


@dataclass(frozen=True, slots=True)
class FamilySetting:
    """One family of sites at one level of foreign traffic.

    real: what others did (seconds), in any unit, instead of what the family draws. is_alone_seen: all the same, but
    polls do not tell of others' bytes: what an oracle sees that knows them. is_counted: servers count by job, and are
    polled too: samples are the runs' own, and what others moved is known beside them.
    """

    family: Family
    level: str
    applications: tuple[Application, ...] = STUDIED
    real: Reals | None = None
    is_alone_seen: bool = False
    is_counted: bool = False

    def drawn(self, seed: int) -> Drawn:
        """Draw a sample set of each application."""
        if self.is_counted:
            return self._counted(seed)
        chosen = tuple(programmed(one, self.family.program) for one in self.applications)
        return Drawn(chosen, SampleSets.concatenate([self._set_of(one, seed) for one in chosen]))

    def _counted(self, seed: int) -> Drawn:
        own, shared = (
            replace(self, is_alone_seen=is_alone, is_counted=False).drawn(seed) for is_alone in (True, False)
        )
        others = np.maximum(shared.sets.samples.values - own.sets.samples.values, 0.0)
        return replace(own, sets=replace(own.sets, interference=others))

    def _set_of(self, application: Application, seed: int) -> SampleSet:
        rng = stream(seed, "family", self.family.name, application.name)
        family, peak = self.family, max(burst.peak_bytes_per_s for burst in application.bursts)
        plan = planned(application, family.program, rng)
        pace = paces(family.drift, len(application.bursts), application.run_count, rng)
        latency = rng.exponential(1.0, plan.volume_ratio.shape)
        polled = np.random.default_rng(rng.integers(1 << 62))
        others = self._others(application, rng)
        load = others.mean(axis=1, keepdims=True) if family.drift == "load" else 1.0
        plan = replace(plan, waits_s=plan.waits_s * np.maximum(1.0 + family.drift_ratio * load * pace, 0.5))
        storage = _Storage.among(others * peak, family, peak)
        end_s = served(storage, plan, application, latency)
        seen = storage.own if self.is_alone_seen else storage.own + storage.others - storage.yielded
        return polls_of(seen, end_s, family.interval_s, family.jitter_ratio, polled)

    def _others(self, application: Application, rng: np.random.Generator) -> Reals:
        """Return what others do in each run's window (runs, seconds), in units of the application's peak."""
        level, seconds = FOREIGN_LEVELS[self.level], _LEAD_S + int(_WINDOW_RATIO * application.duration_s) + _WINDOW_S
        if self.real is None:
            return traffic(self.family.foreign, level, application.run_count, seconds, rng)
        begin = rng.integers(0, len(self.real) - seconds, application.run_count)
        windows: Reals = self.real[begin[:, None] + np.arange(seconds)] * (level / self.real.mean())
        return windows


# ---- what runs mean to do


@dataclass(frozen=True, slots=True)
class Planned:
    """What runs mean to do.

    waits_s (runs, bursts + 1): before each burst, and after the last one. volume_ratio (runs, bursts): what a burst
    moves of what it should; 0: it is not there.
    """

    waits_s: Reals
    volume_ratio: Reals


def programmed(application: Application, program: Program) -> Application:
    """Return the application as most of its runs are: where volumes grow with the step, they do."""
    if program != "growing":
        return application
    growth = np.linspace(*_GROWTH, len(application.bursts))
    moved = zip(application.bursts, growth.tolist(), strict=True)
    return replace(application, bursts=tuple(replace(one, volume_bytes=one.volume_bytes * by) for one, by in moved))


def planned(application: Application, program: Program, rng: np.random.Generator) -> Planned:
    """Draw what the runs of an application mean to do."""
    waits = np.tile(application.waits_s, (application.run_count, 1))
    ratio = np.ones((application.run_count, len(application.bursts)))
    plan = Planned(waits, ratio)
    return _CHANGES[program](plan, rng) if program in _CHANGES else plan


def _skipping(plan: Planned, rng: np.random.Generator) -> Planned:
    return replace(plan, volume_ratio=(rng.random(plan.volume_ratio.shape) >= _SKIP_RATIO).astype(np.float64))


def _restarting(plan: Planned, rng: np.random.Generator) -> Planned:
    """Stop some runs before a burst; of these, some are the other part of such a run."""
    run_count, count = plan.volume_ratio.shape
    is_stopped, is_again = (rng.random((2, run_count)).T < (_STOP_RATIO, _AGAIN_RATIO)).T
    stop, share = rng.integers(1, max(2, count), run_count), rng.random(run_count)
    is_before: Bools = np.arange(count) < stop[:, None]
    is_wait_before: Bools = np.arange(count + 1) < stop[:, None]
    is_kept = np.where(is_again[:, None], ~is_before, is_before)
    waits = np.where(is_again[:, None], ~is_wait_before, is_wait_before) * plan.waits_s
    runs = np.arange(run_count)
    waits[runs, stop] = np.where(is_again, 1.0, share) * plan.waits_s[runs, stop]
    is_out = is_stopped[:, None]
    return Planned(np.where(is_out, waits, plan.waits_s), np.where(is_out, is_kept * plan.volume_ratio, 1.0))


def _two_inputs(plan: Planned, rng: np.random.Generator) -> Planned:
    run_count, count = plan.volume_ratio.shape
    is_other = (rng.permutation(run_count) < round(_OTHER_RATIO * run_count))[:, None]
    by_turns = 1.0 + _OTHER_GAPS * np.where(np.arange(count + 1) % 2, -1.0, 1.0)
    volume = np.where(is_other, _OTHER_VOLUME, plan.volume_ratio)
    return Planned(plan.waits_s * np.where(is_other, by_turns, 1.0), volume)


_CHANGES: dict[Program, Callable[[Planned, np.random.Generator], Planned]] = {
    "skipping": _skipping,
    "restarts": _restarting,
    "inputs": _two_inputs,
}


def paces(drift: Drift, burst_count: int, run_count: int, rng: np.random.Generator) -> Reals:
    """Return how runs' waits differ, in their standard deviation (runs, bursts + 1); by load: in what others do."""
    if drift == "load":
        return np.ones((run_count, burst_count + 1))
    normal = rng.standard_normal((run_count, burst_count + 1))
    if drift == "scale":
        return np.repeat(normal[:, :1], burst_count + 1, axis=1)
    if drift == "walk":
        walks: Reals = np.cumsum(normal, axis=1) / np.sqrt((burst_count + 2) / 2)
        return walks
    return normal


# ---- what becomes of them


@dataclass(slots=True)
class _Storage:
    """What storage sees: own, others (runs, seconds) in bytes per second, others as they would be alone.

    yielded (runs, seconds): what others lose to the runs. peak: the application's highest, the unit of all else.
    """

    family: Family
    peak: float
    others: Reals
    own: Reals
    yielded: Reals
    progress: dict[float, Reals]

    @classmethod
    def among(cls, others: Reals, family: Family, peak: float) -> _Storage:
        """Return storage that has not seen any run yet."""
        return cls(family, peak, others, np.zeros_like(others), np.zeros_like(others), {})

    def rates(self, peak: float, others: Reals) -> Reals:
        """Return how fast a transfer is among others, in bytes per second."""
        size = self.family.contention_size
        if self.family.contention == "seeks":
            return peak / (1.0 + size * others / self.peak)
        if self.family.contention == "fair":
            return peak * np.minimum(1.0, size * self.peak / (peak + others))
        return np.full(others.shape, peak)

    def done_by(self, peak: float) -> Reals:
        """Return what a transfer that never ends would have moved by each second's edge (runs, seconds + 1)."""
        if peak not in self.progress:
            total = np.zeros((self.others.shape[0], self.others.shape[1] + 1))
            np.cumsum(self.rates(peak, self.others), axis=1, out=total[:, 1:])
            self.progress[peak] = total
        return self.progress[peak]

    def waited(self, now: Reals, drawn: Reals) -> Reals:
        """Return how long transfers (runs) wait before they begin [s]; drawn: with mean 1."""
        if self.family.contention != "latency":
            return np.zeros(len(now))
        second = np.minimum(now, self.others.shape[1] - 1).astype(np.int64)
        found: Reals = self.family.contention_size * drawn * self.others[np.arange(len(now)), second] / self.peak
        return found

    def moved(self, now: Reals, volume: Reals, peak: float) -> Reals:
        """Move volumes (runs) from now on (runs) at so much at most; return when that is done, infinity if never."""
        ended, done_by, count = now.copy(), self.done_by(peak), self.others.shape[1]
        edges = np.arange(count + 1, dtype=np.float64)
        for run in np.flatnonzero((volume > 0) & (now < count)).tolist():
            done = done_by[run]
            before = float(np.interp(now[run], edges, done))
            ended[run] = np.interp(before + volume[run], done, edges, right=np.inf)
            first, last = int(now[run]), int(min(np.ceil(ended[run]), count))
            moved = np.diff(np.clip(done[first : last + 1] - before, 0.0, volume[run]))
            self.own[run, first:last] += moved
            if self.family.contention == "fair":
                alone = self.others[run, first:last]
                self.yielded[run, first:last] += alone * (moved / self.rates(peak, alone) - moved / peak)
        return ended


def served(storage: _Storage, plan: Planned, application: Application, latency: Reals) -> Reals:
    """Do what runs mean to do; return when each has ended, since its window's start [s] (runs)."""
    now = np.full(len(storage.others), float(_LEAD_S))
    for place, burst in enumerate(application.bursts):
        ratio = plan.volume_ratio[:, place]
        now = now + plan.waits_s[:, place]
        now = now + (ratio > 0) * storage.waited(now, latency[:, place])
        for volume, height in PROFILE:
            now = storage.moved(now, ratio * volume * burst.volume_bytes, burst.peak_bytes_per_s * height)
    return now + plan.waits_s[:, -1]


# ---- what polls tell of it


def polls_of(
    bytes_per_s: Reals, end_s: Reals, interval_s: float, jitter_ratio: float, rng: np.random.Generator
) -> SampleSet:
    """Return the samples of the runs that have ended: their windows' traffic (runs, seconds) as polls tell it.

    Polls have nothing to do with when a run begins. A poll that is taken late tells more bytes, and the next one less:
    rates are bytes over the interval.
    """
    total = np.zeros((bytes_per_s.shape[0], bytes_per_s.shape[1] + 1))
    np.cumsum(bytes_per_s, axis=1, out=total[:, 1:])
    begin = _LEAD_S - interval_s * rng.random(len(total))
    duration = np.ceil(end_s - _LEAD_S)
    is_whole = np.isfinite(end_s) & (end_s + 2 * interval_s < total.shape[1] - 1)
    values, counts = [], []
    edges = np.arange(total.shape[1], dtype=np.float64)
    for run in range(len(total)):
        # drawn for all, so that one run's end changes no other's polls
        own = np.random.default_rng(rng.integers(1 << 62))
        if not is_whole[run]:
            continue
        # the last step is the first whose right edge is the run's end or later
        count = int(np.ceil((_LEAD_S + duration[run] - begin[run]) / interval_s))
        late = np.clip(jitter_ratio * own.standard_normal(count + 1), -0.4, 0.4)
        read = np.interp(begin[run] + (np.arange(count + 1) + late) * interval_s, edges, total[run])
        values.append(np.diff(read) / interval_s)
        counts.append(count)
    samples = Ragged(np.concatenate([np.zeros(0), *values]), offsets_of(counts))
    return SampleSet(samples, interval_s, (begin - _LEAD_S)[is_whole], duration[is_whole])
