"""Attribute traffic to jobs by several methods, called ways: that of the nightly run, and baselines.

Every way returns bytes by job and minute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from iosig.studies.sites import MINUTE_S, LoggedJobs, SiteSignatures, SiteTraffic, plan_runs
from iosig.transforms.arrays import Bools, Reals, offsets_of
from iosig.transforms.attribution.explanation import explain_traffic
from iosig.transforms.attribution.likely_bytes import STEP_S, estimate_likely_bytes, spread_evenly
from iosig.transforms.unattributed_patterns.residual import compute_proportional_residual

#: minimum confidence of runs that the way `confident only` keeps
MIN_CONFIDENCE = 0.3
#: the way that `iosig who` uses for its ranking
LIKELY = "likely jobs"


def select_known_jobs(logged: LoggedJobs, signatures: SiteSignatures) -> Bools:
    """Return the mask of jobs (n) of applications with a signature."""
    is_known: Bools = signatures.has_signature[logged.application]
    return is_known


def attribute_traffic(traffic: SiteTraffic, signatures: SiteSignatures, min_confidence: float = 0.0) -> Reals:
    """Attribute traffic as the nightly run does, keeping only runs with a confidence of `min_confidence` or more."""
    jobs, runs = plan_runs(traffic, signatures)
    explanation = explain_traffic(traffic.traffic_bytes, runs, traffic.interval_s)
    is_kept = explanation.confidence[explanation.run] >= min_confidence
    return traffic.sum_by_minute(
        explanation.step[is_kept], explanation.volume_bytes[is_kept], jobs[explanation.run[is_kept]]
    )


def share_residual(traffic: SiteTraffic, signatures: SiteSignatures) -> Reals:
    """Attribute traffic, and distribute the residual equally to jobs without a signature."""
    attributed_bytes = attribute_traffic(traffic, signatures)
    residual = np.maximum(traffic.minutes_bytes - attributed_bytes.sum(axis=0), 0.0)
    return attributed_bytes + _share_by_weight(
        traffic, residual, (~select_known_jobs(traffic.logged, signatures)).astype(np.float64)
    )


def add_likely_bytes(traffic: SiteTraffic, signatures: SiteSignatures) -> Reals:
    """Attribute traffic, and add each job's likely bytes in the residual, as `iosig who` does for its ranking."""
    attributed_bytes = attribute_traffic(traffic, signatures)
    return attributed_bytes + distribute_residual(traffic, attributed_bytes)


def distribute_residual(traffic: SiteTraffic, attributed_bytes: Reals) -> Reals:
    """Distribute the residual among jobs by their likely rates, as `iosig who` does; return bytes (jobs, minutes)."""
    step_bytes, minute = traffic.resample(STEP_S)
    residual = compute_proportional_residual(step_bytes, attributed_bytes.sum(axis=0), minute, STEP_S)
    logged, (job, place) = traffic.logged, np.nonzero(attributed_bytes)
    explained = spread_evenly(job, place, attributed_bytes[job, place], minute)
    active = logged.start_s / STEP_S, logged.end_s / STEP_S, logged.application
    likely = estimate_likely_bytes(residual, *active, explained=explained)
    at = likely.run * traffic.minute_count + minute[likely.step]
    moved: Reals = (
        np.bincount(at, likely.volume_bytes, attributed_bytes.size).astype(np.float64).reshape(attributed_bytes.shape)
    )
    return moved


def place_as_planned(traffic: SiteTraffic, signatures: SiteSignatures) -> Reals:
    """Place each run's bursts where its signature has them, regardless of the measured traffic."""
    jobs, runs = plan_runs(traffic, signatures)
    owner = np.repeat(np.arange(len(runs)), np.diff(runs.offsets))
    start = runs.started[owner] + runs.burst_start
    steps = np.floor(start).astype(np.int64)
    counts = np.ceil(runs.burst_duration).astype(np.int64)
    burst = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(burst)) - offsets_of(counts)[burst] + steps[burst]
    is_there = (step >= 0) & (step < len(traffic.traffic_bytes)) & (step < runs.ended[owner[burst]])
    volume = (runs.volume_bytes / counts)[burst]
    return traffic.sum_by_minute(step[is_there], volume[is_there], jobs[owner[burst]][is_there])


def share_equally(traffic: SiteTraffic, _: SiteSignatures) -> Reals:
    """Distribute the traffic equally among the running jobs."""
    return _share_by_weight(traffic, traffic.minutes_bytes, np.ones(len(traffic.truth_bytes)))


def share_by_nodes(traffic: SiteTraffic, _: SiteSignatures) -> Reals:
    """Distribute the traffic among the running jobs in proportion to their node counts."""
    return _share_by_weight(traffic, traffic.minutes_bytes, traffic.logged.node_count)


#: description and implementation of each way
WAYS: dict[str, tuple[str, Callable[[SiteTraffic, SiteSignatures], Reals]]] = {
    "attribution": (
        "places signatures extracted from the same traffic, as a nightly run does",
        attribute_traffic,
    ),
    "confident only": (
        f"the same, without bytes attributed with a confidence below {MIN_CONFIDENCE}",
        partial(attribute_traffic, min_confidence=MIN_CONFIDENCE),
    ),
    "rest shared": ("attribution; the rest goes in equal shares to jobs without a signature", share_residual),
    LIKELY: ("attribution; the rest goes to jobs by the estimates of `iosig who`", add_likely_bytes),
    "as planned": ("signatures at the times of a run alone, regardless of the traffic", place_as_planned),
    "equal shares": ("traffic goes in equal shares to all running jobs", share_equally),
    "by nodes": ("traffic goes to all running jobs in proportion to their nodes", share_by_nodes),
}


def _share_by_weight(traffic: SiteTraffic, volume_bytes: Reals, weight: Reals) -> Reals:
    """Distribute the bytes of each minute among jobs (n), by weight times the fraction of the minute that a job ran."""
    edges = np.arange(traffic.minute_count) * MINUTE_S
    started, ended = traffic.logged.start_s[:, None], traffic.logged.end_s[:, None]
    presence = np.clip(np.minimum(ended, edges + MINUTE_S) - np.maximum(started, edges), 0.0, None) * weight[:, None]
    total = presence.sum(axis=0)
    result: Reals = presence * np.divide(volume_bytes, total, out=np.zeros_like(total), where=total > 0)
    return result
