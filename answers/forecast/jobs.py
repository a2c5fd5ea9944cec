"""Find the jobs that run and wait on a file system, and the durations and waiting times of similar jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import polars as pl

from iosig.answers.advice.inputs import KnownSignature, SignatureSource, find_for_filesystem
from iosig.answers.advice.landed import (
    find_signatures,
    jobs_near,
    list_filesystems,
    queue_at,
    select_unlogged_jobs,
)
from iosig.estimates.staging import engine
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.forecast.upcoming_jobs import UpcomingJobs
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

#: known: part of the forecast; unknown: without a signature; held: does not start before it is released
Status = Literal["known", "unknown", "held"]
#: Slurm wait reasons of held jobs
_HELD = ("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BadConstraints")
#: how far back runs are read for durations and waiting times [days]
#: maximum number of runs per application
_MAX_DAYS, _MAX_RUNS = 60, 200
#: maximum tasks of a waiting job array that are treated as single jobs
_MAX_TASKS = 64
#: expected correlation that is assumed for methods without an estimate, as in attribution
_DEFAULT_CORRELATION = 0.5


@dataclass(frozen=True, slots=True)
class JobAhead:
    """A job that runs or waits; elapsed_s is the time since its start, None while it waits.

    min_wait_s, max_wait_s: earliest and latest start from now, by the scheduler. limit_s: time limit, infinite if
    unknown.
    """

    name: str
    application_id: str | None
    user: str | None
    partition: str | None
    status: Status
    signature: KnownSignature | None
    elapsed_s: float | None
    waited_s: float
    min_wait_s: float
    max_wait_s: float
    limit_s: float


def find_jobs_ahead(
    store: Store, settings: Settings, signatures: SignatureSource, filesystem: str, names: Sequence[str], at: datetime
) -> tuple[JobAhead, ...]:
    """Find the jobs that run and wait on a file system at an instant; names: all file systems of the site."""
    landings = ledger.read(store)
    with engine(settings) as connection:
        logged = jobs_near(store, connection, landings, settings, at)
        queue = queue_at(store, connection, landings, settings, at)
    running = [job for job in logged if job["ended_at"] is None or job["ended_at"] > at]
    running += select_unlogged_jobs(queue, logged)
    started = {(job["cluster"], job["job_id"].partition(".")[0]) for job in logged}
    waiting = [
        row
        for row in queue.filter(pl.col("queue_state").is_in(("PENDING", "REQUEUED", "CONFIGURING"))).to_dicts()
        for _ in range(min(row["run_count"] or 1, _MAX_TASKS))
        if (row["cluster"], row["job_id"]) not in started
    ]
    limits = dict(zip(zip(queue["cluster"], queue["job_id"], strict=True), queue["time_limit_s"], strict=True))
    signatures_by_application = find_signatures([*running, *waiting], signatures)
    jobs = [
        _build_job(job, limits, _find_signature(job, filesystem, signatures_by_application, used or names, at), at)
        for job in sorted([*running, *waiting], key=lambda job: (job["cluster"], job["job_id"]))
        if filesystem in ((used := list_filesystems(job, settings)) or names)
    ]
    return tuple(jobs)


def _find_signature(
    job: Mapping[str, Any],
    filesystem: str,
    signatures_by_application: Mapping[str, Mapping[str, KnownSignature]],
    used: Sequence[str],
    at: datetime,
) -> KnownSignature | None:
    name = job["application_id"]
    signature = (
        find_for_filesystem(signatures_by_application, name, filesystem, is_certain=len(used) == 1) if name else None
    )
    return signature if signature is not None and signature.holds_at(at) else None


def _build_job(
    job: Mapping[str, Any],
    limits: Mapping[tuple[str, str], float | None],
    signature: KnownSignature | None,
    at: datetime,
) -> JobAhead:
    is_waiting = job.get("queue_state") in ("PENDING", "REQUEUED", "CONFIGURING")
    limit = limits.get((job["cluster"], job["job_id"].partition(".")[0]))
    is_held = is_waiting and job["wait_reason"] in _HELD and job["expected_start_at"] is None
    eligible, expected = (_seconds_until(job.get(name), at) for name in ("eligible_at", "expected_start_at"))
    return JobAhead(
        name=job["job_id"],
        application_id=job["application_id"],
        user=job["user"],
        partition=job["partition"],
        status="held" if is_held else "unknown" if signature is None else "known",
        signature=signature,
        elapsed_s=None if is_waiting else max(-(_seconds_until(job["started_at"], at) or 0.0), 0.0),
        waited_s=max(-(_seconds_until(job["submitted_at"], at) or 0.0), 0.0),
        min_wait_s=max(eligible or 0.0, 0.0),
        max_wait_s=math.inf if expected is None else max(expected, eligible or 0.0, 0.0),
        limit_s=math.inf if limit is None else limit,
    )


def _seconds_until(instant: datetime | None, at: datetime) -> float | None:
    """Return the seconds from `at` to an instant, negative if it is past."""
    if instant is None:
        return None
    return (instant.replace(tzinfo=instant.tzinfo or UTC) - at).total_seconds()


# ---- durations and waiting times of similar jobs


def prepare_jobs(
    store: Store, release: Release, jobs: Sequence[JobAhead], demand: Ints, alone_s: Reals, at: datetime
) -> UpcomingJobs:
    """Build the input of the forecast for jobs with signatures.

    demand: index into the demands (jobs). alone_s: duration of each demand without interference (demands). Durations
    are drawn from runs of the same application, else of the same user, else `alone_s`; waiting times from the same
    partition, else from all runs.
    """
    runs = _runs(store, release, at)
    durations_by_group = _Groups()
    waits_by_group = _Groups()
    by_application, by_user = (_group_values(runs, name, "duration_s") for name in ("application_id", "user"))
    by_partition = _group_values(runs, "partition", "waited_s")
    every_wait = runs["waited_s"].drop_nulls().to_numpy()
    duration_group, wait_group = [], []
    for job, place in zip(jobs, demand.tolist(), strict=True):
        durations = by_application.get(job.application_id or "", by_user.get(job.user or ""))
        alone = np.array([alone_s[place]])
        duration_group.append(
            durations_by_group.number((job.application_id, place), alone if durations is None else durations)
        )
        waits = by_partition.get(job.partition or "", every_wait)
        wait_group.append(waits_by_group.number(job.partition, waits if len(waits) else np.zeros(1)))
    return UpcomingJobs(
        demand=demand,
        elapsed_s=np.array([np.nan if job.elapsed_s is None else job.elapsed_s for job in jobs]),
        waiting_s=_numbers(jobs, "waited_s"),
        min_wait_s=_numbers(jobs, "min_wait_s"),
        max_wait_s=_numbers(jobs, "max_wait_s"),
        max_duration_s=_numbers(jobs, "limit_s"),
        expected_correlation=np.array([_get_correlation(job) for job in jobs], np.float64),
        duration_piece=np.array(duration_group, np.int64),
        wait_piece=np.array(wait_group, np.int64),
        durations_s=durations_by_group.pieces(),
        waits_s=waits_by_group.pieces(),
    )


def _get_correlation(job: JobAhead) -> float:
    expected_correlation = job.signature.expected_correlation if job.signature else None
    return _DEFAULT_CORRELATION if expected_correlation is None else expected_correlation


def _numbers(jobs: Sequence[JobAhead], name: str) -> Reals:
    return np.array([getattr(job, name) for job in jobs], np.float64)


class _Groups:
    """Numbered lists of values, deduplicated by key."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._values: list[Reals] = []

    def number(self, key: object, values: Reals) -> int:
        """Return the index of the list with a key; adds `values` if the key is new."""
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(values.astype(np.float64))
        return self._numbers[key]

    def pieces(self) -> Ragged:
        """Concatenate the lists in order of their index."""
        offsets = offsets_of([len(values) for values in self._values])
        return Ragged(np.concatenate([np.zeros(0), *self._values]), offsets)


def _runs(store: Store, release: Release, at: datetime) -> pl.DataFrame:
    """Query durations and waiting times of the latest runs of each application before an instant."""
    with open_release(store, release, "jobs") as connection:
        params = {"since": at - timedelta(days=_MAX_DAYS), "until": at, "most": _MAX_RUNS}
        runs: pl.DataFrame = connection.sql(_RUNS, params=params).pl()
    return runs


_RUNS = """
    select application_id, jobs.user, partition, duration_s,
         (epoch_us(started_at) - epoch_us(submitted_at)) / 1e6 as waited_s
    from jobs
    where is_application_run and duration_s > 0 and ended_at > $since and ended_at <= $until
    qualify row_number() over (partition by application_id order by ended_at desc) <= $most
"""


def _group_values(runs: pl.DataFrame, key: str, value: str) -> dict[str, Reals]:
    rows = runs.drop_nulls([key, value]).group_by(key).agg(pl.col(value))
    return {name: values.to_numpy() for name, values in zip(rows[key], rows[value], strict=True)}
