"""Find collisions: pairs of applications with bursts that are expected to overlap.

Jobs are assumed to be independent: the probability that two jobs are both in a burst is the product of their
probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Reals


@dataclass(frozen=True, slots=True)
class Collisions:
    """k pairs of applications with overlapping bursts.

    Attributes
    ----------
    interval : Ints, shape (k,)
        Index of the time interval.
    first, second : Ints, shape (k,)
        Indices of the applications, first <= second; equal for two jobs of one application.
    overlap_s : Reals, shape (k,)
        Expected overlap of their bursts [s], summed over pairs of jobs.
    overlap_bytes : Reals, shape (k,)
        Total bytes that the two applications would move during the overlap without contention.

    """

    interval: Ints
    first: Ints
    second: Ints
    overlap_s: Reals
    overlap_bytes: Reals


def find_collisions(
    active: Reals, bytes_per_s: Reals, application: Ints, step_s: float, interval_steps: int, min_overlap_s: float
) -> Collisions:
    """Find pairs of applications with a minimum expected overlap.

    Parameters
    ----------
    active : Reals, shape (jobs, steps)
        Probability that each job is in a burst.
    bytes_per_s : Reals, shape (jobs, steps)
        Mean rate of each job [B/s].
    application : Ints, shape (jobs,)
        Index of each job's application.
    step_s : float
        Length of a step [s].
    interval_steps : int
        Number of steps per interval.
    min_overlap_s : float
        Minimum expected overlap within an interval [s].

    Returns
    -------
    Collisions
        Pairs in descending order of bytes.

    """
    count = int(application.max(initial=-1)) + 1
    steps = active.shape[1]
    starts = np.arange(0, steps, interval_steps)
    total_active, total_rate, squared_active, own_product = (
        _sum_by_application(values, application, count)
        for values in (active, bytes_per_s, active * active, active * bytes_per_s)
    )
    seconds, volumes = np.zeros((2, len(starts), count, count))
    for number, start in enumerate(starts.tolist()):
        selected = slice(start, start + interval_steps)
        seconds[number] = total_active[:, selected] @ total_active[:, selected].T
        volumes[number] = total_rate[:, selected] @ total_active[:, selected].T
        volumes[number] += volumes[number].T
        # a job does not overlap with itself, and each pair of an application's jobs counts once
        diagonal = np.arange(count)
        seconds[number, diagonal, diagonal] = (
            seconds[number, diagonal, diagonal] - squared_active[:, selected].sum(axis=1)
        ) / 2
        volumes[number, diagonal, diagonal] = volumes[number, diagonal, diagonal] / 2 - own_product[:, selected].sum(
            axis=1
        )
    seconds, volumes = seconds * step_s, volumes * step_s
    interval, first, second = np.nonzero((seconds >= min_overlap_s) & np.triu(np.ones((count, count), np.bool_)))
    selected_volumes = volumes[interval, first, second]
    order = np.argsort(-selected_volumes, kind="stable")
    interval, first, second = interval[order], first[order], second[order]
    overlap_bytes = np.maximum(selected_volumes[order], 0.0)
    return Collisions(interval, first, second, seconds[interval, first, second], overlap_bytes)


def _sum_by_application(values: Reals, application: Ints, count: int) -> Reals:
    """Sum the rows of jobs by application; result: shape (applications, steps)."""
    sums: Reals = np.zeros((count, values.shape[1]))
    np.add.at(sums, application, values)
    return sums
