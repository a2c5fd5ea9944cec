"""Ways of giving traffic to jobs: ours, and what one would do without it. Each returns bytes by job and minute."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from iosig.studies.sites import MINUTE_S, Known, Logged, Seen, planned
from iosig.transforms.arrays import Bools, Reals, offsets_of
from iosig.transforms.attribution.explanation import explain_traffic
from iosig.transforms.attribution.likely_bytes import STEP_S, estimate_likely_bytes, spread_evenly
from iosig.transforms.unattributed_patterns.residual import compute_proportional_residual

#: from which confidence on a run is taken as sure
SURE = 0.3
#: the way by which `iosig who` ranks
LIKELY = "who is likely"


def known_jobs(logged: Logged, known: Known) -> Bools:
    """Return which jobs (n) are of an application with a signature."""
    found: Bools = known.has[logged.application]
    return found


def attribution(seen: Seen, known: Known, least_certainty: float = 0.0) -> Reals:
    """Give traffic to runs whose signatures are placed on it, as the night does; to those alone that are so certain."""
    jobs, runs = planned(seen, known)
    found = explain_traffic(seen.traffic_bytes, runs, seen.interval_s)
    is_told = found.confidence[found.run] >= least_certainty
    return seen.by_minute(found.step[is_told], found.volume_bytes[is_told], jobs[found.run[is_told]])


def rest_shared(seen: Seen, known: Known) -> Reals:
    """Give the same, and share what is left equally among jobs that have no signature."""
    given = attribution(seen, known)
    left = np.maximum(seen.minutes_bytes - given.sum(axis=0), 0.0)
    return given + _shared(seen, left, (~known_jobs(seen.logged, known)).astype(np.float64))


def ranked(seen: Seen, known: Known) -> Reals:
    """Give the same, and what of the rest each job is likely to have moved: `iosig who` ranks jobs by that."""
    given = attribution(seen, known)
    return given + likely_bytes(seen, given)


def likely_bytes(seen: Seen, given: Reals) -> Reals:
    """Return what jobs are likely to have moved of what is left, by job and minute, as `iosig who` reckons it."""
    traffic, minute = seen.in_steps(STEP_S)
    left = compute_proportional_residual(traffic, given.sum(axis=0), minute, STEP_S)
    logged, (job, place) = seen.logged, np.nonzero(given)
    explained = spread_evenly(job, place, given[job, place], minute)
    active = logged.start_s / STEP_S, logged.end_s / STEP_S, logged.application
    found = estimate_likely_bytes(left, *active, explained=explained)
    at = found.run * seen.minute_count + minute[found.step]
    moved: Reals = np.bincount(at, found.volume_bytes, given.size).astype(np.float64).reshape(given.shape)
    return moved


def as_planned(seen: Seen, known: Known) -> Reals:
    """Give each run what its signature says, when it says so, whatever was measured."""
    jobs, runs = planned(seen, known)
    owner = np.repeat(np.arange(len(runs)), np.diff(runs.offsets))
    begun = runs.started[owner] + runs.burst_start
    steps = np.floor(begun).astype(np.int64)
    counts = np.ceil(runs.burst_duration).astype(np.int64)
    of = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(of)) - offsets_of(counts)[of] + steps[of]
    is_there = (step >= 0) & (step < len(seen.traffic_bytes)) & (step < runs.ended[owner[of]])
    volume = (runs.volume_bytes / counts)[of]
    return seen.by_minute(step[is_there], volume[is_there], jobs[owner[of]][is_there])


def equal_shares(seen: Seen, _: Known) -> Reals:
    """Share traffic equally among the jobs that are there."""
    return _shared(seen, seen.minutes_bytes, np.ones(len(seen.truth_bytes)))


def by_nodes(seen: Seen, _: Known) -> Reals:
    """Share traffic among the jobs that are there by their nodes."""
    return _shared(seen, seen.minutes_bytes, seen.logged.node_count)


#: the ways by name, with what they are
WAYS: dict[str, tuple[str, Callable[[Seen, Known], Reals]]] = {
    "attribution": (
        "places signatures extracted from the same traffic, as a nightly run does",
        attribution,
    ),
    "only if sure": (
        f"the same, without bytes attributed with a confidence below {SURE}",
        partial(attribution, least_certainty=SURE),
    ),
    "rest shared": ("attribution; the rest goes in equal shares to jobs without a signature", rest_shared),
    LIKELY: ("attribution; the rest goes to jobs by the estimates of `iosig who`", ranked),
    "as planned": ("signatures at the times of a run alone, regardless of the traffic", as_planned),
    "equal shares": ("traffic goes in equal shares to all running jobs", equal_shares),
    "by nodes": ("traffic goes to all running jobs in proportion to their nodes", by_nodes),
}


def _shared(seen: Seen, volume_bytes: Reals, weight: Reals) -> Reals:
    """Share bytes of minutes among jobs (n) by weight, and by how much of the minute each was there."""
    edges = np.arange(seen.minute_count) * MINUTE_S
    started, ended = seen.logged.start_s[:, None], seen.logged.end_s[:, None]
    there = np.clip(np.minimum(ended, edges + MINUTE_S) - np.maximum(started, edges), 0.0, None) * weight[:, None]
    total = there.sum(axis=0)
    found: Reals = there * np.divide(volume_bytes, total, out=np.zeros_like(total), where=total > 0)
    return found
