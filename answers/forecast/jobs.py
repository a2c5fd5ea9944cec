"""Jobs that run and wait on a file system at an instant, and how others like them fared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import polars as pl

from iosig.answers.advice.inputs import KnownSignature, SignatureSource, on_filesystem
from iosig.answers.advice.landed import (
    application_of,
    beside_the_log,
    filesystems_of,
    jobs_near,
    queue_at,
    signatures_of,
)
from iosig.estimates.staging import engine
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.forecast.upcoming_jobs import UpcomingJobs
from iosig.warehouse.contracts.application_ids import APPLICATION_ID_SQL
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

#: known: it is in the forecast; unknown: it has no signature; held: it does not start before somebody lets it
Status = Literal["known", "unknown", "held"]
#: why a job waits that nobody expects to start
_HELD = ("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BadConstraints")
#: runs of so many days back tell how long others lasted and waited; and no more of one application than these
_MOST_DAYS, _MOST_RUNS = 60, 200
#: tasks of an array that waits, that are looked at one by one
_MOST_TASKS = 64
#: signatures of methods that tell no expected correlation are taken as half sure, as attribution does
_HALF_SURE = 0.5


@dataclass(frozen=True, slots=True)
class JobAhead:
    """A job that runs or waits: elapsed_s since its start, None while it waits.

    least_wait_s, most_wait_s: when it may start at the earliest, and will at the latest as the scheduler says. limit_s:
    how long it may last; infinite where nobody says.
    """

    name: str
    application_id: str | None
    user: str | None
    partition: str | None
    status: Status
    signature: KnownSignature | None
    elapsed_s: float | None
    waited_s: float
    least_wait_s: float
    most_wait_s: float
    limit_s: float


def jobs_ahead(
    store: Store, settings: Settings, signatures: SignatureSource, filesystem: str, names: Sequence[str], at: datetime
) -> tuple[JobAhead, ...]:
    """Return the jobs that run and wait on a file system at an instant; names: of all file systems."""
    landings = ledger.read(store)
    with engine(settings) as connection:
        logged = jobs_near(store, connection, landings, settings, at)
        queue = queue_at(store, connection, landings, settings, at)
    running = [job for job in logged if job["ended_at"] is None or job["ended_at"] > at]
    running += beside_the_log(queue, logged)
    started = {(job["cluster"], job["job_id"].partition(".")[0]) for job in logged}
    waiting = [
        row
        for row in queue.filter(pl.col("queue_state").is_in(("PENDING", "REQUEUED", "CONFIGURING"))).to_dicts()
        for _ in range(min(row["run_count"] or 1, _MOST_TASKS))
        if (row["cluster"], row["job_id"]) not in started
    ]
    limits = dict(zip(zip(queue["cluster"], queue["job_id"], strict=True), queue["time_limit_s"], strict=True))
    known = signatures_of([*running, *waiting], signatures)
    found = [
        _ahead(job, limits, _signature(job, filesystem, known, told or names, at), at)
        for job in sorted([*running, *waiting], key=lambda job: (job["cluster"], job["job_id"]))
        if filesystem in ((told := filesystems_of(job, settings)) or names)
    ]
    return tuple(found)


def _signature(
    job: Mapping[str, Any],
    filesystem: str,
    known: Mapping[str, Mapping[str, KnownSignature]],
    used: Sequence[str],
    at: datetime,
) -> KnownSignature | None:
    name = application_of(job)
    found = on_filesystem(known, name, filesystem, is_certain=len(used) == 1) if name else None
    return found if found is not None and found.holds_at(at) else None


def _ahead(
    job: Mapping[str, Any],
    limits: Mapping[tuple[str, str], float | None],
    signature: KnownSignature | None,
    at: datetime,
) -> JobAhead:
    is_waiting = job.get("queue_state") in ("PENDING", "REQUEUED", "CONFIGURING")
    limit = limits.get((job["cluster"], job["job_id"].partition(".")[0]))
    is_held = is_waiting and job["wait_reason"] in _HELD and job["expected_start_at"] is None
    eligible, expected = (_ahead_s(job.get(name), at) for name in ("eligible_at", "expected_start_at"))
    return JobAhead(
        name=job["job_id"],
        application_id=application_of(job),
        user=job["user"],
        partition=job["partition"],
        status="held" if is_held else "unknown" if signature is None else "known",
        signature=signature,
        elapsed_s=None if is_waiting else max(-(_ahead_s(job["started_at"], at) or 0.0), 0.0),
        waited_s=max(-(_ahead_s(job["submitted_at"], at) or 0.0), 0.0),
        least_wait_s=max(eligible or 0.0, 0.0),
        most_wait_s=math.inf if expected is None else max(expected, eligible or 0.0, 0.0),
        limit_s=math.inf if limit is None else limit,
    )


def _ahead_s(instant: datetime | None, at: datetime) -> float | None:
    """Return how many seconds lie before an instant, below 0 behind it."""
    if instant is None:
        return None
    return (instant.replace(tzinfo=instant.tzinfo or UTC) - at).total_seconds()


# ---- how others like them fared


def coming(
    store: Store, release: Release, jobs: Sequence[JobAhead], demand: Ints, alone_s: Reals, at: datetime
) -> UpcomingJobs:
    """Return jobs with signatures as they are to be drawn.

    demand (jobs): which of the demands each makes, of which one alone takes alone_s. They last as their application's
    runs did, else as their user's, else as a run alone; they wait as those of their partition did, else as all did.
    """
    runs = _runs(store, release, at)
    lasted = _Groups()
    waited = _Groups()
    by_application, by_user = (_lists(runs, name, "duration_s") for name in ("application_id", "user"))
    by_partition = _lists(runs, "partition", "waited_s")
    every_wait = runs["waited_s"].drop_nulls().to_numpy()
    lasting, waiting = [], []
    for job, place in zip(jobs, demand.tolist(), strict=True):
        durations = by_application.get(job.application_id or "", by_user.get(job.user or ""))
        alone = np.array([alone_s[place]])
        lasting.append(lasted.number((job.application_id, place), alone if durations is None else durations))
        waits = by_partition.get(job.partition or "", every_wait)
        waiting.append(waited.number(job.partition, waits if len(waits) else np.zeros(1)))
    return UpcomingJobs(
        demand=demand,
        elapsed_s=np.array([np.nan if job.elapsed_s is None else job.elapsed_s for job in jobs]),
        waiting_s=_numbers(jobs, "waited_s"),
        min_wait_s=_numbers(jobs, "least_wait_s"),
        max_wait_s=_numbers(jobs, "most_wait_s"),
        max_duration_s=_numbers(jobs, "limit_s"),
        expected_correlation=np.array([_trust(job) for job in jobs], np.float64),
        duration_piece=np.array(lasting, np.int64),
        wait_piece=np.array(waiting, np.int64),
        durations_s=lasted.pieces(),
        waits_s=waited.pieces(),
    )


def _trust(job: JobAhead) -> float:
    expected_correlation = job.signature.expected_correlation if job.signature else None
    return _HALF_SURE if expected_correlation is None else expected_correlation


def _numbers(jobs: Sequence[JobAhead], name: str) -> Reals:
    return np.array([getattr(job, name) for job in jobs], np.float64)


class _Groups:
    """Lists of numbers, each once."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._values: list[Reals] = []

    def number(self, key: object, values: Reals) -> int:
        """Return the number of a list that has a key; the first one's values hold."""
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(values.astype(np.float64))
        return self._numbers[key]

    def pieces(self) -> Ragged:
        """Return all lists."""
        offsets = offsets_of([len(values) for values in self._values])
        return Ragged(np.concatenate([np.zeros(0), *self._values]), offsets)


def _runs(store: Store, release: Release, at: datetime) -> pl.DataFrame:
    """Return the latest runs of each application before an instant: how long they lasted, and waited."""
    with opened(store, release, "jobs") as connection:
        told = {"since": at - timedelta(days=_MOST_DAYS), "until": at, "most": _MOST_RUNS}
        found: pl.DataFrame = connection.sql(_RUNS, params=told).pl()
    return found


_RUNS = f"""
    select {APPLICATION_ID_SQL} as application_id, jobs.user, partition,
         duration_s, (epoch_us(started_at) - epoch_us(submitted_at)) / 1e6 as waited_s
    from jobs
    where is_application_run and duration_s > 0 and ended_at > $since and ended_at <= $until
    qualify row_number() over (partition by jobs.user, application, node_count order by ended_at desc) <= $most
"""


def _lists(runs: pl.DataFrame, key: str, value: str) -> dict[str, Reals]:
    rows = runs.drop_nulls([key, value]).group_by(key).agg(pl.col(value))
    return {name: values.to_numpy() for name, values in zip(rows[key], rows[value], strict=True)}
