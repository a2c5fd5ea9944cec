"""Naive implementation of `iosig.studies.scheduling.simulation`: equal time steps, job by job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Job:
    """A job in progress: phases of (compute seconds, bytes), and its period if known."""

    start_s: float
    most: float
    phases: list[tuple[float, float]]
    period_s: float | None = None
    done: list[tuple[float, float]] = field(default_factory=list)
    computes_until_s: float = 0.0
    io_start_s: float | None = None
    left: float = 0.0


def filled(weights: Sequence[float], most: Sequence[float], total: float) -> list[float]:
    """Weighted max-min fair shares by water-filling: grow all shares, fix saturated shares, and repeat."""
    given = [0.0] * len(most)
    thirsty = set(range(len(most)))
    while thirsty and total > 1e-12 * max(most):
        weight = sum(weights[i] for i in thirsty)
        grown = min(total / weight, *((most[i] - given[i]) / weights[i] for i in thirsty))
        for i in thirsty:
            given[i] += grown * weights[i]
            total -= grown * weights[i]
        full = {i for i in thirsty if given[i] >= most[i] * (1 - 1e-12)}
        if not full:
            break
        thirsty -= full
    return given


def first_of_each_set(jobs: list[Job], waiting: list[int]) -> dict[int, float]:
    """Jobs that may do I/O under Set-10, with their priorities."""
    sets: dict[int | None, list[int]] = {}
    for i in waiting:
        period = jobs[i].period_s
        sets.setdefault(None if period is None else round(math.log10(period)), []).append(i)
    lowest = max((number for number in sets if number is not None), default=0)
    heads = {}
    for number, members in sets.items():
        head = min(members, key=lambda i: (jobs[i].io_start_s, i))
        heads[head] = 10.0 ** -(lowest + 1 if number is None else number)
    return heads


def simulate(jobs: list[Job], bandwidth: float, step_s: float, *, set10: bool) -> list[list[tuple[float, float]]]:
    """Start and end of the I/O of each phase of each job, late by up to a step per start or end."""
    for job in jobs:
        job.computes_until_s = job.start_s + job.phases[0][0]
    count = 0
    while any(len(job.done) < len(job.phases) for job in jobs):
        now = count * step_s
        for job in jobs:
            if job.io_start_s is None and len(job.done) < len(job.phases) and now >= job.computes_until_s:
                job.io_start_s, job.left = now, job.phases[len(job.done)][1]
        waiting = [i for i, job in enumerate(jobs) if job.io_start_s is not None]
        heads = first_of_each_set(jobs, waiting) if set10 else dict.fromkeys(waiting, 1.0)
        rates = filled(list(heads.values()), [min(jobs[i].most, bandwidth) for i in heads], bandwidth) if heads else []
        for i, rate in zip(heads, rates, strict=True):
            advance(jobs[i], rate, now, step_s)
        count += 1
    return [job.done for job in jobs]


def advance(job: Job, rate: float, now: float, step_s: float) -> None:
    """Advance the I/O of a job by a step."""
    job.left -= rate * step_s
    if job.left <= 0 and job.io_start_s is not None:
        job.done.append((job.io_start_s, now + step_s))
        job.io_start_s = None
        if len(job.done) < len(job.phases):
            job.computes_until_s = now + step_s + job.phases[len(job.done)][0]
