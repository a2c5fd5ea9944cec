"""Slowing: how much transfers of others cost a run, and when it would have been where, had nobody slowed it.

Disks that serve several streams seek between them, so while a run is at work, each other run at work takes some of its
speed: with n of them it goes at 1 / (1 + cost n) of its own (the seek loss of
`iosig.transforms.synthetic.contention`). While it computes, no other run slows it. So the cost follows from how much
longer those runs of an application take that met more others. It is a property of a file system, estimated from all its
applications. By a clock that stops for the time that was lost, runs differ only by their own paces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.joint.shared import Shared
from iosig.transforms.signatures.robust_alignment import running_totals
from iosig.transforms.signatures.sample_sets import SampleSets

# All numbers here are ours, and were chosen on simulated sites of seeds 1 to 3.

#: what another run at work costs usually, and how much that differs
_COST, _COST_DEVIATION = 0.05, 0.15
#: runs differ in duration by this at least [s]; how unsure what they lost is, as a share of it; a run that is off by so
#: many deviations counts half
_LEAST_DEVIATION_S, _UNSURE, _HALF_DEVIATIONS = 2.0, 0.5, 2.0
_ROUNDS = 8
#: applications of fewer runs are not asked
_LEAST_RUN_COUNT = 3
#: a step of which less is left is none
_NEARLY = 1e-6
#: a step is measured if more of what became it was
_LEAST_MEASURED = 0.5


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of n runs (k), run by run: which run, which step, and from when to when since the run began, in steps.

    offsets (n + 1): where the steps of each run begin. duration (n): how long each run took, also where there are none.
    """

    run: Ints
    step: Ints
    begin: Reals
    end: Reals
    offsets: Ints
    duration: Reals

    @classmethod
    def of(cls, shared: Shared) -> Steps:
        """Return the steps of all runs by the clock on the wall."""
        count = len(shared.volume_bytes)
        first = np.clip(np.floor(shared.begun), 0, count).astype(np.int64)
        after = np.clip(np.ceil(shared.ceased), first, count).astype(np.int64)
        run = np.repeat(np.arange(len(first)), after - first)
        step = places_of(first, after - first)
        since, duration = step - shared.begun[run], shared.ceased - shared.begun
        begin, end = np.maximum(since, 0.0), np.minimum(since + 1.0, duration[run])
        return cls(run, step, begin, end, offsets_of(after - first), duration)

    @property
    def lasted(self) -> Reals:
        """How long each step is (k)."""
        return self.end - self.begin

    def slowed(self, share: Reals) -> Steps:
        """Return the steps by clocks that go at a share of their pace in each step (k)."""
        lasted = self.lasted * share
        total = running_totals(lasted[None])[0]
        counts = np.diff(self.offsets)
        # a run that was there before the traffic is known has got on meanwhile
        first = np.repeat(self.offsets[:-1], counts)
        end = self.begin[first] + total[1:] - total[first]
        lost = sums(self.lasted - lasted, self.offsets)
        return replace(self, begin=end - lasted, end=end, duration=self.duration - lost)


def sums(values: Reals, offsets: Ints) -> Reals:
    """Return the sums of pieces (n) of values (k), which begin at offsets (n + 1)."""
    found: Reals = np.diff(running_totals(values[None])[0][offsets])
    return found


def share_alone(others: Reals, work_ratio: Reals, cost: float) -> Reals:
    """Return at which share of its pace a run gets on, 0 to 1.

    others: how many others are at work, of any shape. work_ratio: the share of that time in which it is itself.
    """
    found: Reals = 1.0 - work_ratio * (1.0 - 1.0 / (1.0 + cost * others))
    return found


def usual_cost(duration_s: Reals, application: Ints, offsets: Ints, others: Reals, work_s: Reals) -> float:
    """Return how much of its pace each other run at work costs a run, at 0: nothing; see `share_alone`.

    Parameters
    ----------
    duration_s : shape (n,), how long each run took
    application : shape (n,), whose it is; below 0: it is not asked
    offsets : shape (n + 1,), where the steps of each run begin
    others : shape (k,), how many others were at work in each step
    work_s : shape (k,), for how long the run itself was at work in it [s]

    Returns
    -------
    float : from 0

    Weighted least squares (Gauss and Newton's) on the runs of all applications, each against the others of its own,
    with a normal prior; what is far off counts less (Cauchy's weights).

    """
    order = np.argsort(application, kind="stable")
    edges = np.flatnonzero(np.diff(application[order], prepend=-2, append=-2)).tolist()
    sets = [order[first:after] for first, after in pairwise(edges)]
    sets = [one for one in sets if len(one) >= _LEAST_RUN_COUNT and application[one[0]] >= 0]
    found = _COST
    for _ in range(_ROUNDS):
        # what is lost at this cost, and how much more it were at a higher one
        lost_s = sums(work_s * (1.0 - 1.0 / (1.0 + found * others)), offsets)
        more_s = sums(work_s * others / (1.0 + found * others) ** 2, offsets)
        pull, weight = (_COST - found) / _COST_DEVIATION**2, 1.0 / _COST_DEVIATION**2
        for own in sets:
            rest_s, weights = duration_s[own] - lost_s[own], run_weights(duration_s[own] - lost_s[own], lost_s[own])
            more = weights * (more_s[own] - (weights * more_s[own]).sum() / weights.sum())
            pull += float((more * rest_s).sum())
            weight += float((more * more_s[own]).sum())
        found = max(0.0, found + pull / weight)
    return found


def alone(sets: SampleSets, others: Reals, work_ratio: Reals, cost: float) -> SampleSets:
    """Return sample sets as they were, had nobody slowed their runs: no byte is lost, and each run takes less.

    others, work_ratio: of each value of the samples, as `share_alone` has them.
    """
    if not cost > 0:
        return sets
    samples = sets.samples
    share = share_alone(others, work_ratio, cost)
    left = sums(share, samples.offsets)
    begun = offsets_of(np.ceil(left - _NEARLY).astype(np.int64))
    # where the edges of the steps come to lie, run by run, each from a whole step on
    edge = places_of(samples.offsets[:-1], samples.counts + 1)
    run = np.repeat(np.arange(len(left)), samples.counts + 1)
    total = running_totals(share[None])[0]
    lies = total[edge] - total[samples.offsets[run]] + begun[run]

    def read(values: Reals) -> Reals:
        return np.diff(np.interp(np.arange(begun[-1] + 1.0), lies, running_totals(values[None])[0][edge]))

    measured = read(np.isfinite(samples.values).astype(np.float64))
    is_mostly = measured > _LEAST_MEASURED * read(np.ones(len(share)))
    rates = np.where(is_mostly, read(np.nan_to_num(samples.values)), np.nan)
    lost_s = (samples.counts - left) * sets.interval_s[sets.owner]
    return replace(
        sets,
        samples=Ragged(rates, begun),
        duration_s=sets.duration_s - lost_s,
        others=None if sets.others is None else read(np.nan_to_num(sets.others)),
    )


def run_weights(rest_s: Reals, lost_s: Reals) -> Reals:
    """Return how much each run counts, by how far its duration without what it lost is off, and how much that was."""
    off = rest_s - np.median(rest_s)
    least = max(SIGMAS_PER_MAD * float(np.median(np.abs(off))), _LEAST_DEVIATION_S)
    apart = np.hypot(least, _UNSURE * lost_s)
    found: Reals = 1.0 / (1.0 + (off / (_HALF_DEVIATIONS * apart)) ** 2) / apart**2
    return found
