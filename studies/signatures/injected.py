"""Simulate runs with background traffic, each in its own window, instead of the whole site of a family.

A run alternates computing and transfers. The background slows or delays its transfers, and thereby all later ones. With
fair sharing, a run also slows the background, which does not make up for the lost bytes later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from iosig.studies.signatures.backgrounds import draw_traffic
from iosig.studies.signatures.families import FOREIGN_LEVELS, Drift, Family, Program
from iosig.studies.signatures.mechanisms import add_siblings, drain_cache, stop_at_limit
from iosig.studies.signatures.sites import STUDIED, LabeledSamples
from iosig.transforms.arrays import Bools, Ragged, Reals, offsets_of
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.synthetic.workload import PROFILE, Application, stream

#: lead before a run, which covers its first poll; maximum duration relative to an undisturbed run, and margin [s]
_LEAD_S, _WINDOW_RATIO, _WINDOW_S = 30, 2.0, 600
#: relative volume of the first and the last burst (growing)
_GROWTH = (0.6, 1.4)
#: probability that a burst is skipped; probability that a run stops; probability that a stopped run is replaced by one
#: that restarts there
_SKIP_RATIO, _STOP_RATIO, _AGAIN_RATIO = 0.08, 0.25, 0.6
#: other input: fraction of runs with it, relative volume of their bursts, and relative change of their gaps, with
#: alternating sign
_OTHER_RATIO, _OTHER_VOLUME, _OTHER_GAPS = 0.3, 0.6, 0.06


@dataclass(frozen=True, slots=True)
class FamilySetting:
    """A family of sites at one level of background traffic.

    real: measured background (seconds) in any unit, instead of a drawn one. is_alone_seen: whether polls show only the
    runs, although the background slows them, as for an oracle. is_counted: whether per-job counters exist: samples are
    then the runs' own bytes, and the background is known separately.
    """

    family: Family
    level: str
    applications: tuple[Application, ...] = STUDIED
    real: Reals | None = None
    is_alone_seen: bool = False
    is_counted: bool = False

    def draw(self, seed: int) -> LabeledSamples:
        """Draw a sample set of each application."""
        if self.is_counted:
            return self._draw_job_counters(seed)
        applications = tuple(apply_program(application, self.family.program) for application in self.applications)
        return LabeledSamples(
            applications,
            SampleSets.concatenate([self._draw_samples(application, seed) for application in applications]),
            self.family.drain_s,
        )

    def _draw_job_counters(self, seed: int) -> LabeledSamples:
        alone, shared = (
            replace(self, is_alone_seen=is_alone, is_counted=False).draw(seed) for is_alone in (True, False)
        )
        interference = np.maximum(shared.sets.samples.values - alone.sets.samples.values, 0.0)
        return replace(alone, sets=replace(alone.sets, interference=interference))

    def _draw_samples(self, application: Application, seed: int) -> SampleSet:
        rng = stream(seed, "family", self.family.name, application.name)
        family, peak = self.family, max(burst.peak_bytes_per_s for burst in application.bursts)
        plan = plan_runs(application, family.program, rng)
        pace = draw_paces(family.drift, len(application.bursts), application.run_count, rng)
        latency = rng.exponential(1.0, plan.volume_ratio.shape)
        polled = np.random.default_rng(rng.integers(1 << 62))
        background = self._draw_background(application, rng)
        load = background.mean(axis=1, keepdims=True) if family.drift == "load" else 1.0
        plan = replace(plan, waits_s=plan.waits_s * np.maximum(1.0 + family.drift_ratio * load * pace, 0.5))
        storage = _Storage.with_background(background * peak, family, peak)
        end_s = simulate_runs(storage, plan, application, latency)
        end_s, own, yielded = stop_at_limit(
            end_s, _LEAD_S + family.limit_ratio * application.duration_s, storage.own, storage.yielded
        )
        traffic = own = drain_cache(own, family.drain_s)
        # a generator of its own, so that all other draws are those of a family without mechanisms
        random = stream(seed, "mechanisms", family.name, application.name)
        if not self.is_alone_seen:
            spread_s = int(application.duration_s)
            traffic = add_siblings(own, family.array_size, spread_s, random) + storage.others - yielded
        clock_error_s = family.clock_s * random.uniform(-1.0, 1.0, len(own))
        samples = sample_polls(traffic, end_s, family.interval_s, family.jitter_ratio, polled, clock_error_s)
        return replace(samples, is_truncated=samples.duration_s >= family.limit_ratio * application.duration_s)

    def _draw_background(self, application: Application, rng: np.random.Generator) -> Reals:
        """Draw the background in each run's window (runs, seconds), relative to the application's peak."""
        level, seconds = FOREIGN_LEVELS[self.level], _LEAD_S + int(_WINDOW_RATIO * application.duration_s) + _WINDOW_S
        if self.real is None:
            return draw_traffic(self.family.foreign, level, application.run_count, seconds, rng)
        begin = rng.integers(0, len(self.real) - seconds, application.run_count)
        windows: Reals = self.real[begin[:, None] + np.arange(seconds)] * (level / self.real.mean())
        return windows


# ---- plans of runs


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Planned waits and volumes of an application's runs.

    waits_s (runs, bursts + 1): before each burst, and after the last one. volume_ratio (runs, bursts): relative volume
    of a burst; 0 skips it.
    """

    waits_s: Reals
    volume_ratio: Reals


def apply_program(application: Application, program: Program) -> Application:
    """Return the application as most of its runs execute it, with growing volumes if the program is `growing`."""
    if program != "growing":
        return application
    growth = np.linspace(*_GROWTH, len(application.bursts))
    burst_factors = zip(application.bursts, growth.tolist(), strict=True)
    return replace(
        application,
        bursts=tuple(replace(burst, volume_bytes=burst.volume_bytes * factor) for burst, factor in burst_factors),
    )


def plan_runs(application: Application, program: Program, rng: np.random.Generator) -> RunPlan:
    """Draw the plans of an application's runs."""
    waits = np.tile(application.waits_s, (application.run_count, 1))
    ratio = np.ones((application.run_count, len(application.bursts)))
    plan = RunPlan(waits, ratio)
    return _CHANGES[program](plan, rng) if program in _CHANGES else plan


def _skip_bursts(plan: RunPlan, rng: np.random.Generator) -> RunPlan:
    return replace(plan, volume_ratio=(rng.random(plan.volume_ratio.shape) >= _SKIP_RATIO).astype(np.float64))


def _restart_runs(plan: RunPlan, rng: np.random.Generator) -> RunPlan:
    """Stop some runs before a random burst, and let others start at such a burst, as restarted runs do."""
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
    return RunPlan(np.where(is_out, waits, plan.waits_s), np.where(is_out, is_kept * plan.volume_ratio, 1.0))


def _mix_inputs(plan: RunPlan, rng: np.random.Generator) -> RunPlan:
    run_count, count = plan.volume_ratio.shape
    is_other = (rng.permutation(run_count) < round(_OTHER_RATIO * run_count))[:, None]
    by_turns = 1.0 + _OTHER_GAPS * np.where(np.arange(count + 1) % 2, -1.0, 1.0)
    volume = np.where(is_other, _OTHER_VOLUME, plan.volume_ratio)
    return RunPlan(plan.waits_s * np.where(is_other, by_turns, 1.0), volume)


_CHANGES: dict[Program, Callable[[RunPlan, np.random.Generator], RunPlan]] = {
    "skipping": _skip_bursts,
    "restarts": _restart_runs,
    "inputs": _mix_inputs,
}


def draw_paces(drift: Drift, burst_count: int, run_count: int, rng: np.random.Generator) -> Reals:
    """Draw the variation of waits in standard deviations (runs, bursts + 1).

    The drift `load` varies with the background load only, so its pace is constant.
    """
    if drift == "load":
        return np.ones((run_count, burst_count + 1))
    normal = rng.standard_normal((run_count, burst_count + 1))
    if drift == "scale":
        return np.repeat(normal[:, :1], burst_count + 1, axis=1)
    if drift == "stall":
        stalls = rng.exponential(burst_count + 1, run_count)
        is_stalled = rng.integers(0, burst_count + 1, (run_count, 1)) == np.arange(burst_count + 1)
        return np.where(is_stalled, stalls[:, None], 0.0)
    if drift == "walk":
        walks: Reals = np.cumsum(normal, axis=1) / np.sqrt((burst_count + 2) / 2)
        return walks
    return normal


# ---- execution of runs


@dataclass(slots=True)
class _Storage:
    """Rates seen by storage [B/s]: own and background (runs, seconds), the background without interference.

    yielded (runs, seconds): background lost to the runs. peak: the application's highest rate.
    """

    family: Family
    peak: float
    others: Reals
    own: Reals
    yielded: Reals
    progress: dict[float, Reals]

    @classmethod
    def with_background(cls, background: Reals, family: Family, peak: float) -> _Storage:
        """Create storage that has not served any run."""
        return cls(family, peak, background, np.zeros_like(background), np.zeros_like(background), {})

    def rates(self, peak: float, background: Reals) -> Reals:
        """Return the rate of a transfer under a background [B/s]."""
        size = self.family.contention_size
        if self.family.contention == "seeks":
            return peak / (1.0 + size * background / self.peak)
        if self.family.contention == "fair":
            return peak * np.minimum(1.0, size * self.peak / (peak + background))
        return np.full(background.shape, peak)

    def compute_cumulative_bytes(self, peak: float) -> Reals:
        """Return the bytes an endless transfer would have moved by each second's edge (runs, seconds + 1)."""
        if peak not in self.progress:
            total = np.zeros((self.others.shape[0], self.others.shape[1] + 1))
            np.cumsum(self.rates(peak, self.others), axis=1, out=total[:, 1:])
            self.progress[peak] = total
        return self.progress[peak]

    def compute_wait_s(self, now: Reals, random_factor: Reals) -> Reals:
        """Return the latency before transfers (runs) start [s]; random_factor: exponential with mean 1."""
        if self.family.contention != "latency":
            return np.zeros(len(now))
        second = np.minimum(now, self.others.shape[1] - 1).astype(np.int64)
        wait_s: Reals = (
            self.family.contention_size * random_factor * self.others[np.arange(len(now)), second] / self.peak
        )
        return wait_s

    def transfer(self, now: Reals, volume: Reals, peak: float) -> Reals:
        """Move volumes (runs) from `now` on at most at `peak`; return the end times, infinite if never."""
        ended, bytes_by_run, count = now.copy(), self.compute_cumulative_bytes(peak), self.others.shape[1]
        edges = np.arange(count + 1, dtype=np.float64)
        for run in np.flatnonzero((volume > 0) & (now < count)).tolist():
            cumulative_bytes = bytes_by_run[run]
            before = float(np.interp(now[run], edges, cumulative_bytes))
            ended[run] = np.interp(before + volume[run], cumulative_bytes, edges, right=np.inf)
            first, last = int(now[run]), int(min(np.ceil(ended[run]), count))
            moved = np.diff(np.clip(cumulative_bytes[first : last + 1] - before, 0.0, volume[run]))
            self.own[run, first:last] += moved
            if self.family.contention == "fair":
                background = self.others[run, first:last]
                self.yielded[run, first:last] += background * (moved / self.rates(peak, background) - moved / peak)
        return ended


def simulate_runs(storage: _Storage, plan: RunPlan, application: Application, latency: Reals) -> Reals:
    """Execute the plans and return the end of each run relative to its window [s] (runs)."""
    now = np.full(len(storage.others), float(_LEAD_S))
    for place, burst in enumerate(application.bursts):
        ratio = plan.volume_ratio[:, place]
        now = now + plan.waits_s[:, place]
        now = now + (ratio > 0) * storage.compute_wait_s(now, latency[:, place])
        for volume, height in PROFILE:
            now = storage.transfer(now, ratio * volume * burst.volume_bytes, burst.peak_bytes_per_s * height)
    return now + plan.waits_s[:, -1]


# ---- polls


def sample_polls(
    bytes_per_s: Reals,
    end_s: Reals,
    interval_s: float,
    jitter_ratio: float,
    rng: np.random.Generator,
    clock_error_s: Reals | float = 0.0,
) -> SampleSet:
    """Return the samples of the completed runs, as seen in polls of the traffic in their windows (runs, seconds).

    clock_error_s (runs): times in the job log minus those of polls. Poll times are independent of a run's start. A late
    poll has more bytes and the next one fewer, since rates are bytes over the nominal interval.
    """
    total = np.zeros((bytes_per_s.shape[0], bytes_per_s.shape[1] + 1))
    np.cumsum(bytes_per_s, axis=1, out=total[:, 1:])
    start_s = _LEAD_S + np.broadcast_to(clock_error_s, len(total))
    begin = start_s - interval_s * rng.random(len(total))
    duration = np.ceil(end_s - _LEAD_S)
    is_whole = np.isfinite(end_s) & (end_s + 2 * interval_s < total.shape[1] - 1)
    values, counts = [], []
    edges = np.arange(total.shape[1], dtype=np.float64)
    for run in range(len(total)):
        # draw for all runs, so that a run's end does not change the polls of others
        run_rng = np.random.default_rng(rng.integers(1 << 62))
        if not is_whole[run]:
            continue
        # the last step is the first one with a right edge at or after the run's end
        count = int(np.ceil((start_s[run] + duration[run] - begin[run]) / interval_s))
        late = np.clip(jitter_ratio * run_rng.standard_normal(count + 1), -0.4, 0.4)
        read = np.interp(begin[run] + (np.arange(count + 1) + late) * interval_s, edges, total[run])
        values.append(np.diff(read) / interval_s)
        counts.append(count)
    samples = Ragged(np.concatenate([np.zeros(0), *values]), offsets_of(counts))
    return SampleSet(samples, interval_s, (begin - start_s)[is_whole], duration[is_whole])
