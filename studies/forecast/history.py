"""Derive the state of a simulated site at an instant: past traffic, running and waiting jobs, and their signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import polars as pl

from iosig.answers.forecast import past
from iosig.answers.forecast.past import Minutes
from iosig.studies.sites import (
    MINUTE_S,
    LoggedJobs,
    SiteSignatures,
    SiteTraffic,
    extract_site_signatures,
    observe_site,
    plan_runs,
    select_logged_jobs,
    simulate_site,
    to_seconds,
)
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.attribution.explanation import explain_traffic
from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.transforms.forecast.upcoming_jobs import UpcomingJobs
from iosig.transforms.synthetic.site import Site
from iosig.transforms.synthetic.workload import DAY_S, Direction

#: length of the known past, and of the forecast period after it [days]
PAST_DAYS, HELD_OUT_DAYS = 3.0, 1.0
STEP_S, HORIZON = 600.0, 36
#: traffic after the nightly run is attributed together with the traffic of this time before, since runs span midnight
#: [s]
_LANDED_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class History:
    """A site, and its first days as known to a nightly run: traffic, signatures, and attributed bytes.

    submitted_s (jobs): submission times. attributed: job, right edge of the minute [s] and bytes of each row.
    """

    site: Site
    seen: Mapping[Direction, SiteTraffic]
    known: Mapping[Direction, SiteSignatures]
    submitted_s: Reals
    attributed: tuple[Ints, Reals, Reals]

    @property
    def total_bytes(self) -> Reals:
        """Bytes per poll step, summed over both directions."""
        total: Reals = np.sum([traffic.traffic_bytes for traffic in self.seen.values()], axis=0)
        return total

    @property
    def interval_s(self) -> float:
        """Length of a poll step."""
        return self.site.params.interval_s


def build_history(family: str, level: str, seed: int) -> History:
    """Simulate a site and process its first days as a nightly run does."""
    site = simulate_site(family, level, seed, PAST_DAYS + HELD_OUT_DAYS)
    traffic_by_direction = observe_site(site)
    past = {direction: _truncate(traffic, PAST_DAYS * DAY_S) for direction, traffic in traffic_by_direction.items()}
    signatures = {direction: extract_site_signatures(traffic) for direction, traffic in past.items()}
    submitted = to_seconds(site, select_logged_jobs(site)["submitted_at"])
    return History(site, traffic_by_direction, signatures, submitted, _attribute_since(past, signatures, 0.0))


def _truncate(traffic: SiteTraffic, until_s: float) -> SiteTraffic:
    """Restrict traffic to the time before `until_s`, with the jobs started by then; running jobs have no end time."""
    logged = traffic.logged
    # jobs are sorted by start time
    count = int((logged.start_s < until_s).sum())
    steps = int(until_s / traffic.interval_s)
    return SiteTraffic(
        traffic.traffic_bytes[:steps],
        traffic.interval_s,
        LoggedJobs(
            logged.application[:count],
            logged.node_count[:count],
            logged.start_s[:count],
            np.minimum(logged.end_s[:count], until_s),
            logged.is_complete[:count] & (logged.end_s[:count] < until_s),
        ),
        traffic.truth_bytes[:count],
    )


def _attribute_since(
    past: Mapping[Direction, SiteTraffic], signatures: Mapping[Direction, SiteSignatures], from_s: float
) -> tuple[Ints, Reals, Reals]:
    """Attribute the traffic after `from_s`; returns job, right edge of the minute [s] and bytes."""
    rows = []
    for direction, traffic in past.items():
        jobs, runs = plan_runs(traffic, _pad_signatures(signatures[direction], traffic))
        first = int(from_s / traffic.interval_s)
        shifted = replace(runs, started=runs.started - first, ended=runs.ended - first)
        explanation = explain_traffic(traffic.traffic_bytes[first:], shifted, traffic.interval_s)
        edge = np.ceil((explanation.step + first + 1.0) * traffic.interval_s / MINUTE_S) * MINUTE_S
        rows.append((jobs[explanation.run], edge, explanation.volume_bytes))
    job = np.concatenate([job for job, _, _ in rows])
    edge, volume = (np.concatenate([row[place] for row in rows]) for place in (1, 2))
    return job, edge, volume


def _pad_signatures(signatures: SiteSignatures, traffic: SiteTraffic) -> SiteSignatures:
    """Extend the signatures by None for applications that appeared since."""
    missing_count = int(traffic.logged.application.max(initial=-1)) + 1 - len(signatures.signatures)
    if missing_count <= 0:
        return signatures
    return SiteSignatures(
        (*signatures.signatures, *[None] * missing_count),
        np.concatenate([signatures.expected_correlation, np.zeros(missing_count)]),
    )


# ---- at an instant


@dataclass(frozen=True, slots=True)
class SiteState:
    """Input of a forecast: past traffic, hour of the day, running and waiting jobs with their demands.

    whole_past: the past with all traffic counted as unattributed.
    """

    past: TrafficHistory
    whole_past: TrafficHistory
    hour: float
    demands: Demands
    coming: UpcomingJobs
    application: Ints

    @property
    def level_bytes_per_s(self) -> float:
        """Mean unattributed rate of the last hour."""
        return float(self.past.mean_levels(3600.0)[-1])


def observe_at(history: History, at_s: float) -> SiteState:
    """Return the state of a site at an instant after its known days."""
    recent = {direction: _truncate(traffic, at_s) for direction, traffic in history.seen.items()}
    recent_rows = _attribute_since(recent, history.known, PAST_DAYS * DAY_S - _LANDED_S)
    is_fresh = recent_rows[1] > PAST_DAYS * DAY_S
    job = np.concatenate([history.attributed[0], recent_rows[0][is_fresh]])
    edge, volume = (np.concatenate([history.attributed[place], recent_rows[place][is_fresh]]) for place in (1, 2))
    explained = pl.DataFrame(
        {
            "minute_at": _to_datetimes(history, edge),
            "submitted_at": _to_datetimes(history, history.submitted_s[job.astype(np.int64)]),
            "attributed_bytes": volume,
        }
    )
    steps = int(at_s / history.interval_s)
    edges = (np.arange(steps) + 1.0) * history.interval_s
    minute = np.ceil(np.round(edges / MINUTE_S, 9)) * MINUTE_S
    summed = np.bincount((minute / MINUTE_S).astype(np.int64), history.total_bytes[:steps])[1:]
    minutes: Reals = np.arange(1, len(summed) + 1, dtype=np.float64) * MINUTE_S
    measured = pl.DataFrame({"minute_at": _to_datetimes(history, minutes), "measured_bytes": summed})
    at = history.site.params.start + timedelta(seconds=at_s)
    demands, upcoming_jobs, application = _collect_jobs(history, at_s)
    return SiteState(
        past.build_history(Minutes(measured, explained), at, STEP_S, HORIZON),
        past.build_history(Minutes(measured, explained.clear()), at, STEP_S, HORIZON),
        at.hour + at.minute / 60,
        demands,
        upcoming_jobs,
        application,
    )


def _to_datetimes(history: History, at_s: Reals) -> pl.Series:
    start_us = int(history.site.params.start.timestamp() * 1e6)
    return pl.Series(start_us + np.round(at_s * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))


def _collect_jobs(history: History, at_s: float) -> tuple[Demands, UpcomingJobs, Ints]:
    """Return the running and waiting jobs that have a signature in any direction."""
    logged = history.seen["write"].logged
    by_direction = [_pad_signatures(signatures, history.seen["write"]) for signatures in history.known.values()]
    has_signature = np.logical_or.reduce([signatures.has_signature for signatures in by_direction])
    is_there = (history.submitted_s <= at_s) & (logged.end_s > at_s) & has_signature[logged.application]
    jobs = np.flatnonzero(is_there)
    names, demand = np.unique(logged.application[jobs], return_inverse=True)
    curves = [_sum_directions(by_direction, int(name)) for name in names] or [(Demand(np.zeros(1), 1.0), 0.0)]
    has_ended = logged.is_complete & (logged.end_s <= at_s)
    all_durations_s = logged.end_s - logged.start_s
    durations = [all_durations_s[has_ended & (logged.application == name)] for name in names]
    undisturbed_s = [np.array([demand_curve.duration_s]) for demand_curve, _ in curves]
    durations = [past_s if len(past_s) else undisturbed_s[place] for place, past_s in enumerate(durations)]
    waits = (logged.start_s - history.submitted_s)[logged.start_s <= at_s]
    is_running = logged.start_s[jobs] <= at_s
    count = len(jobs)
    upcoming_jobs = UpcomingJobs(
        demand=demand.astype(np.int64),
        elapsed_s=np.where(is_running, at_s - logged.start_s[jobs], np.nan),
        waiting_s=at_s - history.submitted_s[jobs],
        min_wait_s=np.zeros(count),
        max_wait_s=np.full(count, np.inf),
        max_duration_s=np.full(count, np.inf),
        expected_correlation=np.array([expected_correlation for _, expected_correlation in curves])[demand]
        if count
        else np.zeros(0),
        duration_piece=demand.astype(np.int64),
        wait_piece=np.zeros(count, np.int64),
        durations_s=Ragged(
            np.concatenate([np.zeros(0), *durations]), offsets_of([len(durations_s) for durations_s in durations])
        ),
        waits_s=Ragged(waits, np.array([0, len(waits)])),
    )
    return Demands.from_list([demand_curve for demand_curve, _ in curves]), upcoming_jobs, demand.astype(np.int64)


def _sum_directions(by_direction: list[SiteSignatures], application: int) -> tuple[Demand, float]:
    """Return an application's demand, summed over directions, and its mean expected correlation, weighted by bytes."""
    curves = [
        signatures.get(application).bytes_per_s for signatures in by_direction if signatures.has_signature[application]
    ]
    correlations = [
        float(signatures.expected_correlation[application])
        for signatures in by_direction
        if signatures.has_signature[application]
    ]
    total = np.zeros(max(map(len, curves)))
    for curve in curves:
        total[: len(curve)] += curve
    return Demand(total, 1.0), float(np.average(correlations, weights=[max(curve.sum(), 1.0) for curve in curves]))
