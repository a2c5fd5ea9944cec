"""Collisions: which applications' bursts are to be expected at one time.

Jobs go their own ways, so two of them are both at a burst as likely as each of them is, multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Reals


@dataclass(frozen=True, slots=True)
class Collisions:
    """Pairs of applications (k): in which stretch of time their bursts meet, and how much.

    stretch (k): its number. first, second (k): the applications, the first not above the second; the same where two
    jobs of one meet. meeting_s (k): seconds in which one of the first's bursts and one of the second's go on, summed
    over pairs of jobs; meeting_bytes (k): what both move in them if they are not in each other's way.
    """

    stretch: Ints
    first: Ints
    second: Ints
    meeting_s: Reals
    meeting_bytes: Reals


def collisions(
    active: Reals, bytes_per_s: Reals, application: Ints, step_s: float, stretch_steps: int, least_s: float
) -> Collisions:
    """Return where bursts meet for some time at least, those that move most first.

    active (jobs, steps): how likely each job is at a burst; bytes_per_s (jobs, steps): what it moves in the mean.
    application (jobs): whose it is. stretch_steps: how many steps a stretch of time has.
    """
    count = int(application.max(initial=-1)) + 1
    steps = active.shape[1]
    firsts = np.arange(0, steps, stretch_steps)
    likely, rates, own_likely, own_rates = (
        _summed(values, application, count) for values in (active, bytes_per_s, active * active, active * bytes_per_s)
    )
    seconds, volumes = np.zeros((2, len(firsts), count, count))
    for place, first in enumerate(firsts.tolist()):
        here = slice(first, first + stretch_steps)
        seconds[place] = likely[:, here] @ likely[:, here].T
        volumes[place] = rates[:, here] @ likely[:, here].T
        volumes[place] += volumes[place].T
        # a job does not meet itself, and each pair of an application's jobs counts once
        each = np.arange(count)
        seconds[place, each, each] = (seconds[place, each, each] - own_likely[:, here].sum(axis=1)) / 2
        volumes[place, each, each] = volumes[place, each, each] / 2 - own_rates[:, here].sum(axis=1)
    seconds, volumes = seconds * step_s, volumes * step_s
    stretch, one, other = np.nonzero((seconds >= least_s) & np.triu(np.ones((count, count), np.bool_)))
    found = volumes[stretch, one, other]
    order = np.argsort(-found, kind="stable")
    stretch, one, other = stretch[order], one[order], other[order]
    return Collisions(stretch, one, other, seconds[stretch, one, other], np.maximum(found[order], 0.0))


def _summed(values: Reals, application: Ints, count: int) -> Reals:
    """Return the sums (applications, steps) of jobs' values."""
    found: Reals = np.zeros((count, values.shape[1]))
    np.add.at(found, application, values)
    return found
