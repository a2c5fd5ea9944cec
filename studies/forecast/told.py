"""What is known of a site at an instant: its past, the jobs that run and wait, and their signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import polars as pl

from iosig.answers.forecast.past import Minutes, build_history
from iosig.studies.sites import MINUTE_S, Known, Logged, Seen, made, planned, seconds, seen, signed, started
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.attribution.explanation import explain_traffic
from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.transforms.forecast.upcoming_jobs import UpcomingJobs
from iosig.transforms.synthetic.site import Site
from iosig.transforms.synthetic.workload import Direction

#: what is known, and what is forecast after it [days]
PAST_DAYS, HELD_OUT_DAYS = 3.0, 1.0
STEP_S, HORIZON = 600.0, 36
_DAY_S = 86_400.0
#: what has landed since the night is attributed with so much before it, as runs span midnights
_LANDED_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class History:
    """A site whose first days a night knows: directions, their signatures, and what was explained of these days.

    submitted_s (jobs): when each was submitted. explained: the job, the right edge of the minute [s] and the bytes of
    each row.
    """

    site: Site
    seen: Mapping[Direction, Seen]
    known: Mapping[Direction, Known]
    submitted_s: Reals
    explained: tuple[Ints, Reals, Reals]

    @property
    def total_bytes(self) -> Reals:
        """What flowed in each step of the polls, both ways."""
        found: Reals = np.sum([one.traffic_bytes for one in self.seen.values()], axis=0)
        return found

    @property
    def interval_s(self) -> float:
        """How long a step of the polls is."""
        return self.site.params.interval_s


def history(family: str, level: str, seed: int) -> History:
    """Return a site as the night after its first days knows it."""
    site = made(family, level, seed, PAST_DAYS + HELD_OUT_DAYS)
    whole = seen(site)
    past = {direction: _until(one, PAST_DAYS * _DAY_S) for direction, one in whole.items()}
    known = {direction: signed(one) for direction, one in past.items()}
    submitted = seconds(site, started(site)["submitted_at"])
    return History(site, whole, known, submitted, _explained(past, known, 0.0))


def _until(one: Seen, until_s: float) -> Seen:
    """Return what is known of a site by an instant: jobs that started by then, those that still run without an end."""
    logged = one.logged
    # jobs are in the order in which they start
    count = int((logged.start_s < until_s).sum())
    steps = int(until_s / one.interval_s)
    return Seen(
        one.traffic_bytes[:steps],
        one.interval_s,
        Logged(
            logged.application[:count],
            logged.node_count[:count],
            logged.start_s[:count],
            np.minimum(logged.end_s[:count], until_s),
            logged.is_complete[:count] & (logged.end_s[:count] < until_s),
        ),
        one.truth_bytes[:count],
    )


def _explained(
    past: Mapping[Direction, Seen], known: Mapping[Direction, Known], from_s: float
) -> tuple[Ints, Reals, Reals]:
    """Return what is explained from an instant on: the job, the right edge of the minute, and the bytes."""
    rows = []
    for direction, one in past.items():
        jobs, runs = planned(one, _fitting(known[direction], one))
        first = int(from_s / one.interval_s)
        there = replace(runs, started=runs.started - first, ended=runs.ended - first)
        found = explain_traffic(one.traffic_bytes[first:], there, one.interval_s)
        edge = np.ceil((found.step + first + 1.0) * one.interval_s / MINUTE_S) * MINUTE_S
        rows.append((jobs[found.run], edge, found.volume_bytes))
    job = np.concatenate([job for job, _, _ in rows])
    edge, volume = (np.concatenate([row[place] for row in rows]) for place in (1, 2))
    return job, edge, volume


def _fitting(known: Known, one: Seen) -> Known:
    """Return signatures of all applications that a site has by now: of those that are new there is none."""
    more = int(one.logged.application.max(initial=-1)) + 1 - len(known.signatures)
    if more <= 0:
        return known
    return Known((*known.signatures, *[None] * more), np.concatenate([known.expected_correlation, np.zeros(more)]))


# ---- at an instant


@dataclass(frozen=True, slots=True)
class Now:
    """What is known at an instant: the past, the hour of the day, the jobs that run and wait, and their demands.

    whole_past: the past as if no job were known.
    """

    past: TrafficHistory
    whole_past: TrafficHistory
    hour: float
    demands: Demands
    coming: UpcomingJobs
    application: Ints

    @property
    def level_bytes_per_s(self) -> float:
        """What was unexplained in the last hour."""
        return float(self.past.mean_levels(3600.0)[-1])


def now(of: History, at_s: float) -> Now:
    """Return what is known of a site at an instant after the days that its night knows."""
    recent = {direction: _until(one, at_s) for direction, one in of.seen.items()}
    fresh = _explained(recent, of.known, PAST_DAYS * _DAY_S - _LANDED_S)
    is_fresh = fresh[1] > PAST_DAYS * _DAY_S
    job = np.concatenate([of.explained[0], fresh[0][is_fresh]])
    edge, volume = (np.concatenate([of.explained[place], fresh[place][is_fresh]]) for place in (1, 2))
    explained = pl.DataFrame(
        {
            "minute_at": _instants(of, edge),
            "submitted_at": _instants(of, of.submitted_s[job.astype(np.int64)]),
            "attributed_bytes": volume,
        }
    )
    steps = int(at_s / of.interval_s)
    edges = (np.arange(steps) + 1.0) * of.interval_s
    minute = np.ceil(np.round(edges / MINUTE_S, 9)) * MINUTE_S
    summed = np.bincount((minute / MINUTE_S).astype(np.int64), of.total_bytes[:steps])[1:]
    minutes: Reals = np.arange(1, len(summed) + 1, dtype=np.float64) * MINUTE_S
    measured = pl.DataFrame({"minute_at": _instants(of, minutes), "measured_bytes": summed})
    at = of.site.params.start + timedelta(seconds=at_s)
    demands, coming, application = _jobs(of, at_s)
    return Now(
        build_history(Minutes(measured, explained), at, STEP_S, HORIZON),
        build_history(Minutes(measured, explained.clear()), at, STEP_S, HORIZON),
        at.hour + at.minute / 60,
        demands,
        coming,
        application,
    )


def _instants(of: History, at_s: Reals) -> pl.Series:
    start_us = int(of.site.params.start.timestamp() * 1e6)
    return pl.Series(start_us + np.round(at_s * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))


def _jobs(of: History, at_s: float) -> tuple[Demands, UpcomingJobs, Ints]:
    """Return the jobs that run and wait, and have a signature in a direction, at least."""
    logged = of.seen["write"].logged
    known = [_fitting(one, of.seen["write"]) for one in of.known.values()]
    has = np.logical_or.reduce([one.has for one in known])
    is_there = (of.submitted_s <= at_s) & (logged.end_s > at_s) & has[logged.application]
    jobs = np.flatnonzero(is_there)
    names, demand = np.unique(logged.application[jobs], return_inverse=True)
    curves = [_curve(known, int(name)) for name in names] or [(Demand(np.zeros(1), 1.0), 0.0)]
    has_ended = logged.is_complete & (logged.end_s <= at_s)
    all_lasted = logged.end_s - logged.start_s
    durations = [all_lasted[has_ended & (logged.application == name)] for name in names]
    alone = [np.array([one.duration_s]) for one, _ in curves]
    durations = [lasted if len(lasted) else alone[place] for place, lasted in enumerate(durations)]
    waits = (logged.start_s - of.submitted_s)[logged.start_s <= at_s]
    runs = logged.start_s[jobs] <= at_s
    count = len(jobs)
    coming = UpcomingJobs(
        demand=demand.astype(np.int64),
        elapsed_s=np.where(runs, at_s - logged.start_s[jobs], np.nan),
        waiting_s=at_s - of.submitted_s[jobs],
        min_wait_s=np.zeros(count),
        max_wait_s=np.full(count, np.inf),
        max_duration_s=np.full(count, np.inf),
        expected_correlation=np.array([expected_correlation for _, expected_correlation in curves])[demand]
        if count
        else np.zeros(0),
        duration_piece=demand.astype(np.int64),
        wait_piece=np.zeros(count, np.int64),
        durations_s=Ragged(np.concatenate([np.zeros(0), *durations]), offsets_of([len(each) for each in durations])),
        waits_s=Ragged(waits, np.array([0, len(waits)])),
    )
    return Demands.from_list([one for one, _ in curves]), coming, demand.astype(np.int64)


def _curve(known: list[Known], application: int) -> tuple[Demand, float]:
    """Return what an application does in both directions together, and how far that is to be trusted."""
    curves = [one.of(application).bytes_per_s for one in known if one.has[application]]
    trusts = [float(one.expected_correlation[application]) for one in known if one.has[application]]
    total = np.zeros(max(map(len, curves)))
    for curve in curves:
        total[: len(curve)] += curve
    return Demand(total, 1.0), float(np.average(trusts, weights=[max(curve.sum(), 1.0) for curve in curves]))
