"""What the warehouse tells advice: signatures of a release, and what file systems did and ran at an instant.

Load and jobs come from what has landed, be it in a release yet or not: advice is about now, a release about last night.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.answers.advice.inputs import (
    FilesystemState,
    KnownSignature,
    LeftOut,
    Load,
    RunningJob,
    SignatureSource,
    SiteState,
    on_filesystem,
    utc,
)
from iosig.estimates.staging import engine, model_parameters, stage_jobs, stage_polls
from iosig.settings.model import AdviceSettings, Settings
from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.application_ids import all_node_counts, application_id_of
from iosig.warehouse.contracts.jobs import JOB_RECORDS, QUEUE_RECORDS, QUEUED_JOBS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: polls that are older tell nothing of now; a file system without younger ones is left out
_OLDEST_LOAD_S = 86_400.0
#: no longer than this does a poll's day differ from that of the time it is about
_LONGEST_INTERVAL_S = 86_400.0
#: an answer that is older tells nothing of now
_OLDEST_QUEUE = timedelta(hours=1)
#: of a job that has its nodes
_HAS_NODES = ("RUNNING", "RESIZING", "COMPLETING")


def site_state(
    store: Store,
    release: Release | None,
    settings: Settings,
    signatures: SignatureSource,
    at: datetime | None,
    only: Sequence[str] = (),
) -> SiteState:
    """Return all file systems of which polls landed, as they were at an instant; None is that of the newest poll.

    release: whose polls say what a file system can do, where the settings do not. only: file systems that are asked
    for. Raises NothingToDo where no polls have landed.
    """
    landings = ledger.read(store)
    with engine(settings) as connection:
        at = at or newest_poll(store, connection, landings)
        ticks = _ticks(store, connection, landings, settings, at)
        jobs = jobs_near(store, connection, landings, settings, at)
        jobs += beside_the_log(queue_at(store, connection, landings, settings, at), jobs)
    most = _most_seen(store, release, settings.advice) if release else {}
    names = sorted({*ticks, *most, *settings.advice.capacity_bytes_per_s})
    wanted = [name for name in names if not only or name in only]
    running = _running(jobs, names, settings, signatures, at)
    states: list[FilesystemState] = []
    excluded = [LeftOut(name, "nothing is known of it: no polls of it landed") for name in only if name not in names]
    for name in wanted:
        made = _state(name, ticks.get(name, []), most.get(name), running[name], settings.advice, at)
        (states if isinstance(made, FilesystemState) else excluded).append(made)  # type: ignore[arg-type]
    return SiteState(at, tuple(states), tuple(excluded))


def _state(
    name: str,
    ticks: Sequence[Mapping[str, Any]],
    most: _Most | None,
    running: Sequence[RunningJob],
    settings: AdviceSettings,
    at: datetime,
) -> FilesystemState | LeftOut:
    """Return what is known of one file system, or why it cannot be judged."""
    load = _load(ticks, settings.load_window_s, at)
    if load is None:
        return LeftOut(name, f"no poll of it landed for the {_OLDEST_LOAD_S / 3600:g} hours before")
    told = settings.capacity_bytes_per_s.get(name)
    if told is None and (most is None or most.bytes_per_s <= 0):
        return LeftOut(name, "its capacity is not known: say it in the settings, [advice.capacity_bytes_per_s]")
    during = tuple(job for job in running if job.is_running or (job.ended_s_ago or 0.0) < load.from_s_ago)
    if told is not None or most is None:
        return FilesystemState(name, told or 0.0, "settings", during, load)
    if load.bytes_per_s > most.bytes_per_s:
        most = _Most(load.bytes_per_s, load.measured_until or at)
    return FilesystemState(name, most.bytes_per_s, "observed", during, load, capacity_observed_at=most.observed_at)


# ---- load


def newest_poll(store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger) -> datetime:
    """Return when the newest poll is that has landed; NothingToDo where none has."""
    days = landings.parts(POLLS, landings.in_force, pl.col("row_count") > 0)["day"]
    if days.is_empty():
        raise NothingToDo(
            f"No polls have landed in {store.name}. Land some with `iosig land`, or say with --mix what there is."
        )
    newest_day = landings.parts(POLLS, landings.in_force, pl.col("day") == days.max())
    models.expose_files(store, connection, POLLS, newest_day)
    newest: datetime = connection.sql("select max(polled_at) as polled_at from landed.polls").pl().item()
    return utc(newest)


def _ticks(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    landings: Ledger,
    settings: Settings,
    at: datetime,
) -> dict[str, list[dict[str, Any]]]:
    """Return the ticks of the load window of each file system."""
    after = at - timedelta(seconds=_OLDEST_LOAD_S + settings.advice.load_window_s)
    days = [after.date() + timedelta(days=number) for number in range((at.date() - after.date()).days + 1)]
    models.expose_files(store, connection, POLLS, landings.parts(POLLS, landings.in_force, pl.col("day").is_in(days)))
    window = timedelta(seconds=settings.advice.load_window_s)
    polls = connection.sql(_LATE_POLLS, params={"after": after, "at": at, "window": window}).pl()
    ticks: dict[str, list[dict[str, Any]]] = {}
    for row in stage_polls(connection, settings, polls).iter_rows(named=True):
        ticks.setdefault(row["filesystem"], []).append(row)
    return ticks


#: of each file system the polls of the window that ends with its last one
_LATE_POLLS = """
    select *
    from landed.polls
    where polled_at > $after and polled_at <= $at and coalesce(read_bytes_per_s, write_bytes_per_s) is not null
    qualify polled_at > max(polled_at) over (partition by filesystem) - $window
        or polled_at = max(polled_at) over (partition by filesystem)
"""


def _load(ticks: Sequence[Mapping[str, Any]], window_s: float, at: datetime) -> Load | None:
    """Return the mean rate of the ticks of the window that ends with the last one; None where there are none."""
    if not ticks:
        return None
    last = max(utc(tick["polled_at"]) for tick in ticks)
    near = [tick for tick in ticks if utc(tick["polled_at"]) == last or _s(last, tick["polled_at"]) < window_s]
    moved = sum((tick["read_bytes"] or 0) + (tick["written_bytes"] or 0) for tick in near)
    ends_s = -np.array([_s(at, tick["polled_at"]) for tick in near])
    starts_s = ends_s - np.array([tick["interval_s"] for tick in near])
    return Load(moved / _covered_s(starts_s, ends_s), -float(starts_s.min()), -float(ends_s.max()), last)


def _covered_s(starts_s: Reals, ends_s: Reals) -> float:
    """Return how much time intervals (n) cover together: controllers may be polled at paces of their own."""
    order = np.argsort(starts_s, kind="stable")
    starts_s, ends_s = starts_s[order], np.maximum.accumulate(ends_s[order])
    covered = ends_s - np.maximum(starts_s, np.concatenate([starts_s[:1], ends_s[:-1]]))
    return float(np.maximum(covered, 0.0).sum())


# ---- capacity


@dataclass(frozen=True, slots=True)
class _Most:
    """The most that a file system was ever seen to move, and when."""

    bytes_per_s: float
    observed_at: datetime


#: a tick belongs to the stretch of time that it ends in; what is missing of a stretch counts as nothing moved
_STRETCHES = """
    with stretches as (
        select filesystem,
            ceil(epoch_us(polled_at) / ($sustained_window_s * 1e6))::bigint as stretch,
            sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) / greatest(sum(interval_s), $sustained_window_s)
                as bytes_per_s,
            max(polled_at) as observed_at
        from filesystem_rates
        group by all
    )

    select filesystem, max(bytes_per_s) as bytes_per_s, arg_max(observed_at, (bytes_per_s, -stretch)) as observed_at
    from stretches
    group by all
"""


def capacity_of(store: Store, release: Release, settings: AdviceSettings, filesystem: str) -> float | None:
    """Return what a file system can move at most, as the settings say, else the most it was seen to; None: neither."""
    told = settings.capacity_bytes_per_s.get(filesystem)
    most = None if told is not None else _most_seen(store, release, settings).get(filesystem)
    return told if most is None else most.bytes_per_s


def _most_seen(store: Store, release: Release, settings: AdviceSettings) -> dict[str, _Most]:
    """Return the highest rate that each file system of a release has sustained."""
    with opened(store, release, "filesystem_rates") as connection:
        rows = connection.sql(_STRETCHES, params={"sustained_window_s": settings.sustained_window_s}).fetchall()
    return {name: _Most(float(rate), utc(observed_at)) for name, rate, observed_at in rows}


# ---- jobs


def jobs_near(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    landings: Ledger,
    settings: Settings,
    at: datetime,
) -> list[dict[str, Any]]:
    """Return the application runs that ran at an instant, or ended within the time whose load may be asked for."""
    models.expose_files(store, connection, JOB_RECORDS, landings.parts(JOB_RECORDS, landings.in_force))
    records = connection.sql(
        _NEAR_RECORDS,
        params={
            "at": at,
            "ended_after": at - timedelta(seconds=_OLDEST_LOAD_S + settings.advice.load_window_s + _LONGEST_INTERVAL_S),
            "started_after": at - timedelta(seconds=settings.quality.max_job_duration_s),
        },
    ).pl()
    rows = stage_jobs(connection, settings, records).filter("is_application_run").to_dicts()
    return [row for row in rows if utc(row["started_at"]) <= at]


#: every record of a job of which some record tells that it may have run: a later one may say that it has ended.
#: A job that began longer ago than any may last was forgotten by the log.
_NEAR_RECORDS = """
    with records as (
        select *, split_part(job_id, '.', 1) as whole_job_id, coalesce(cluster, 'default') as whole_cluster
        from landed.job_records
    ),

    near as (
        select distinct whole_cluster, whole_job_id
        from records
        where started_at <= $at and started_at > $started_after and (ended_at is null or ended_at > $ended_after)
    )

    select * exclude (whole_cluster, whole_job_id)
    from records
    semi join near using (whole_cluster, whole_job_id)
    where started_at is null or started_at > $started_after
"""


def _running(
    jobs: Sequence[Mapping[str, Any]],
    filesystems: Sequence[str],
    settings: Settings,
    signatures: SignatureSource,
    at: datetime,
) -> dict[str, list[RunningJob]]:
    """Return what runs, or ran of late, on each file system.

    As in `runs`: a job uses the file system that the log says, else those of its partition, else all.
    """
    known = signatures_of(jobs, signatures)
    found: dict[str, list[RunningJob]] = {name: [] for name in filesystems}
    for job in sorted(jobs, key=lambda job: (job["started_at"], job["cluster"], job["job_id"])):
        told = filesystems_of(job, settings)
        for name in told or filesystems:
            if name in found:
                found[name].append(job_on(job, name, known, at, is_certain=len(told or filesystems) == 1))
    return found


def signatures_of(
    jobs: Iterable[Mapping[str, Any]], signatures: SignatureSource
) -> Mapping[str, Mapping[str, KnownSignature]]:
    """Return what is known of the applications of jobs, also of those of all node counts."""
    names = {name for name in map(application_of, jobs) if name}
    return signatures.of(sorted(names | {all_node_counts(name) for name in names}))


def filesystems_of(job: Mapping[str, Any], settings: Settings) -> Sequence[str]:
    """Return the file systems that a job uses, as the log says, else its partition; none: it may be any."""
    return [job["filesystem"]] if job["filesystem"] else settings.partitions.get(job["partition"] or "", [])


def job_on(
    job: Mapping[str, Any],
    filesystem: str,
    known: Mapping[str, Mapping[str, KnownSignature]],
    at: datetime,
    *,
    is_certain: bool,
) -> RunningJob:
    """Return a job that runs, or ran of late, with its signature on a file system."""
    application_id = application_of(job)
    signature = on_filesystem(known, application_id, filesystem, is_certain=is_certain) if application_id else None
    if signature is not None and not signature.holds_at(at):
        signature = None
    is_over = job["ended_at"] is not None and utc(job["ended_at"]) <= at
    ended_s_ago = _s(at, job["ended_at"]) if is_over else None
    return RunningJob(job["job_id"], application_id, _s(at, job["started_at"]), signature, ended_s_ago)


def application_of(job: Mapping[str, Any]) -> str | None:
    """Return the id of a job's application."""
    return application_id_of(job["user"], job["application"], job["node_count"])


def queue_at(
    store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger, settings: Settings, at: datetime
) -> pl.DataFrame:
    """Return rows of `queued_jobs`: what ran and waited on each cluster when it was asked last; none where long ago."""
    days = sorted({(at - _OLDEST_QUEUE).date(), at.date()})
    files = landings.parts(QUEUE_RECORDS, landings.in_force, pl.col("day").is_in(days))
    if files.is_empty():
        return frames.empty(QUEUED_JOBS)
    models.expose_files(store, connection, QUEUE_RECORDS, files)
    parameters = model_parameters(settings) | {"days": days}
    seen = models.select(connection, QUEUED_JOBS, parameters).filter(
        pl.col("observed_at").is_between(at - _OLDEST_QUEUE, at)
    )
    return seen.filter(pl.col("observed_at") == pl.col("observed_at").max().over("cluster"))


def beside_the_log(queue: pl.DataFrame, logged: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs of a queue that run and of which the job log does not know yet, as the log will have them."""
    known = {(job["cluster"], job["job_id"].partition(".")[0]) for job in logged}
    running = queue.filter(pl.col("queue_state").is_in(_HAS_NODES), pl.col("started_at").is_not_null())
    return [
        row | {"ended_at": None}
        for row in running.iter_rows(named=True)
        if (row["cluster"], row["job_id"]) not in known
    ]


def _s(later: datetime, earlier: datetime) -> float:
    return (utc(later) - utc(earlier)).total_seconds()
