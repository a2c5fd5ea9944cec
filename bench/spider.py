"""Draw a site at the scale of Spider: three months of one system's traffic, 80,815 jobs in 5,000 sample sets.

IOSI (Liu et al., FAST'14), section 6.3, names that many jobs in three months of logs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Reals, cut, places_within
from iosig.transforms.signatures.sample_sets import SampleSets

#: number of steps (90 days at 2 s); number of jobs as in the paper; number of sample sets
TICKS, JOBS, SETS = 3_888_000, 80_815, 5_000
INTERVAL_S = 2.0
_GB = 1e9


@dataclass(frozen=True, slots=True)
class Site:
    """A system's traffic and the runs of its applications.

    bytes_per_s (ticks): mean rate in each step of 2 s. first, last (jobs): first and last step that overlap the run.
    start_s (jobs): left edge of the first step, since the run's start. duration_s (jobs). sizes (sets): number of runs.
    """

    bytes_per_s: Reals
    first: Ints
    last: Ints
    start_s: Reals
    duration_s: Reals
    sizes: Ints

    def sample_sets(self, set_count: int | None = None) -> SampleSets:
        """Return the samples of the first sets."""
        sizes = self.sizes[:set_count]
        jobs = slice(0, int(sizes.sum()))
        return SampleSets(
            samples=cut(self.bytes_per_s, self.first[jobs], self.last[jobs]),
            start_s=self.start_s[jobs],
            duration_s=self.duration_s[jobs],
            interval_s=np.full(len(sizes), INTERVAL_S),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        )


def site(job_count: int = JOBS, set_count: int = SETS, length: float = 1.0, seed: int = 1) -> Site:
    """Draw a site; with fewer jobs, a proportionally larger `length` of the runs keeps the density of traffic.

    Sets have 5 runs, and the remaining ones are distributed by log-normal weights (sigma 0.7): 5 to 145, median 13.
    Durations of sets are log-normal with a median of 20 minutes (sigma 0.7; 2 minutes to 12 hours), mean 26. Runs take
    1 % longer on average (exponential), and one of 20 stops early. Each set has its own bursts, with log-normal
    parameters: on average one in 300 s, median length 15 s, median rate 1.5 GB/s (sigma 0.6). In each run, bursts are
    slightly delayed and stretched. The traffic is about 2 GB/s, as on a busy system, over a background of 0.1 GB/s of
    gamma noise.
    """
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0.0, 0.7, set_count)
    sizes = 5 + rng.multinomial(job_count - 5 * set_count, weights / weights.sum())
    owner = np.repeat(np.arange(set_count), sizes)
    alone_s = length * np.clip(rng.lognormal(np.log(1200.0), 0.7, set_count), 120.0, 43_200.0)
    pace = 1.0 + rng.exponential(0.01, job_count)
    is_stopped = rng.random(job_count) < 0.05
    duration_s = alone_s[owner] * np.where(is_stopped, rng.uniform(0.2, 0.9, job_count), pace)
    start_s = INTERVAL_S + rng.random(job_count) * (TICKS * INTERVAL_S - duration_s - 2 * INTERVAL_S)
    rates = _traffic(rng, owner, alone_s, pace, start_s, duration_s)
    rates += 0.1 * _GB * rng.gamma(4.0, 0.25, TICKS)
    first = np.floor(start_s / INTERVAL_S).astype(np.int64)
    last = np.ceil((start_s + duration_s) / INTERVAL_S).astype(np.int64) - 1
    return Site(rates, first, last, first * INTERVAL_S - start_s, duration_s, sizes.astype(np.int64))


def _traffic(
    rng: np.random.Generator, owner: Ints, alone_s: Reals, pace: Reals, start_s: Reals, duration_s: Reals
) -> Reals:
    """Draw all runs' bursts and return their traffic (ticks)."""
    count = len(alone_s)
    period_s = np.minimum(np.clip(rng.lognormal(np.log(300.0), 0.6, count), 60.0, None), alone_s / 2)
    burst_s = np.minimum(np.clip(rng.lognormal(np.log(15.0), 0.6, count), 3.0, None), period_s / 2)
    volume = burst_s * rng.lognormal(np.log(1.5), 0.6, count) * _GB
    numbers = np.floor(duration_s / (period_s[owner] * pace)).astype(np.int64)
    job = np.repeat(np.arange(len(owner)), numbers)
    application = owner[job]
    late_s = np.abs(rng.normal(0.0, 0.5, len(job)))
    begin_s = start_s[job] + (places_within(numbers) + 0.5) * period_s[application] * pace[job] + late_s
    taken_s = burst_s[application] * (1.0 + rng.exponential(0.1, len(job)))
    bytes_per_s = volume[application] / taken_s
    # a rate that changes within a step affects the mean of that step in part, and that of the next step fully
    change = np.zeros(TICKS + 1)
    for at_s, by in ((begin_s, bytes_per_s), (begin_s + taken_s, -bytes_per_s)):
        tick, fraction = np.divmod(np.clip(at_s / INTERVAL_S, 0.0, TICKS - 1e-6), 1.0)
        tick = tick.astype(np.int64)
        change += np.bincount(tick, by * (1.0 - fraction), TICKS + 1) + np.bincount(tick + 1, by * fraction, TICKS + 1)
    return np.maximum(np.cumsum(change)[:TICKS], 0.0)
