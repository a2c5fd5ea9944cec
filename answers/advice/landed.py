"""Read the state of the file systems at an instant from the warehouse: load, capacity and running jobs.

Load and jobs come from landed inputs, released or not: advice is about now, a release about last night.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.answers.advice.inputs import (
    ExcludedFilesystem,
    FilesystemState,
    KnownSignature,
    Load,
    RunningJob,
    SignatureSource,
    SiteState,
    find_for_filesystem,
    utc,
)
from iosig.estimates.staging import engine, model_parameters, stage_jobs, stage_polls
from iosig.settings.model import AdviceSettings, Settings
from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.application_ids import all_node_counts
from iosig.warehouse.contracts.jobs import JOB_RECORDS, QUEUE_RECORDS, QUEUED_JOBS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: maximum age of polls [s]; a file system without newer ones is excluded
_MAX_LOAD_AGE_S = 86_400.0
#: maximum interval of a poll [s]
_MAX_INTERVAL_S = 86_400.0
#: maximum age of a queue snapshot
_MAX_QUEUE_AGE = timedelta(hours=1)
#: queue states of a job that has its nodes
_HAS_NODES = ("RUNNING", "RESIZING", "COMPLETING")


def site_state(
    store: Store,
    release: Release | None,
    settings: Settings,
    signatures: SignatureSource,
    at: datetime | None,
    only: Sequence[str] = (),
) -> SiteState:
    """Return the state of all file systems with landed polls at an instant; None: at the newest poll.

    release: its polls give the capacity of a file system that has none in the settings. only: restricts the result
    to these file systems. Raises NothingToDo if no polls have landed.
    """
    landings = ledger.read(store)
    with engine(settings) as connection:
        at = at or newest_poll(store, connection, landings)
        ticks = _ticks(store, connection, landings, settings, at)
        jobs = jobs_near(store, connection, landings, settings, at)
        jobs += select_unlogged_jobs(queue_at(store, connection, landings, settings, at), jobs)
    peaks = _find_peak_rates(store, release, settings.advice) if release else {}
    names = sorted({*ticks, *peaks, *settings.advice.capacity_bytes_per_s})
    selected = [name for name in names if not only or name in only]
    running = _running(jobs, names, settings, signatures, at)
    states: list[FilesystemState] = []
    excluded = [ExcludedFilesystem(name, "unknown: no polls of it have landed") for name in only if name not in names]
    for name in selected:
        state = _state(name, ticks.get(name, []), peaks.get(name), running[name], settings.advice, at)
        (states if isinstance(state, FilesystemState) else excluded).append(state)  # type: ignore[arg-type]
    return SiteState(at, tuple(states), tuple(excluded))


def _state(
    name: str,
    ticks: Sequence[Mapping[str, Any]],
    peak: _ObservedPeak | None,
    running: Sequence[RunningJob],
    settings: AdviceSettings,
    at: datetime,
) -> FilesystemState | ExcludedFilesystem:
    """Return the state of one file system, or why it is excluded."""
    load = _load(ticks, settings.load_window_s, at)
    if load is None:
        return ExcludedFilesystem(name, f"no poll of it has landed for the last {_MAX_LOAD_AGE_S / 3600:g} hours")
    configured = settings.capacity_bytes_per_s.get(name)
    if configured is None and (peak is None or peak.bytes_per_s <= 0):
        return ExcludedFilesystem(
            name, "its capacity is unknown: set it in the settings, [advice.capacity_bytes_per_s]"
        )
    during = tuple(job for job in running if job.is_running or (job.ended_s_ago or 0.0) < load.from_s_ago)
    if configured is not None or peak is None:
        return FilesystemState(name, configured or 0.0, "settings", during, load)
    if load.bytes_per_s > peak.bytes_per_s:
        peak = _ObservedPeak(load.bytes_per_s, load.measured_until or at)
    return FilesystemState(name, peak.bytes_per_s, "observed", during, load, capacity_observed_at=peak.observed_at)


# ---- load


def newest_poll(store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger) -> datetime:
    """Return the time of the newest landed poll; raises NothingToDo without polls."""
    days = landings.parts(POLLS, landings.in_force, pl.col("row_count") > 0)["day"]
    if days.is_empty():
        raise NothingToDo(
            f"No polls have landed in {store.name}. Land polls with `iosig land`, or describe the state with --mix."
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
    """Return the poll rows in the load window of each file system."""
    after = at - timedelta(seconds=_MAX_LOAD_AGE_S + settings.advice.load_window_s)
    days = [after.date() + timedelta(days=number) for number in range((at.date() - after.date()).days + 1)]
    models.expose_files(store, connection, POLLS, landings.parts(POLLS, landings.in_force, pl.col("day").is_in(days)))
    window = timedelta(seconds=settings.advice.load_window_s)
    polls = connection.sql(_LATE_POLLS, params={"after": after, "at": at, "window": window}).pl()
    ticks: dict[str, list[dict[str, Any]]] = {}
    for row in stage_polls(connection, settings, polls).iter_rows(named=True):
        ticks.setdefault(row["filesystem"], []).append(row)
    return ticks


#: polls of each file system within the window that ends with its last one
_LATE_POLLS = """
    select *
    from landed.polls
    where polled_at > $after and polled_at <= $at and coalesce(read_bytes_per_s, write_bytes_per_s) is not null
    qualify polled_at > max(polled_at) over (partition by filesystem) - $window
        or polled_at = max(polled_at) over (partition by filesystem)
"""


def _load(ticks: Sequence[Mapping[str, Any]], window_s: float, at: datetime) -> Load | None:
    """Return the mean rate over the window that ends with the last tick, which is a poll row; None without ticks."""
    if not ticks:
        return None
    last = max(utc(tick["polled_at"]) for tick in ticks)
    window_ticks = [tick for tick in ticks if utc(tick["polled_at"]) == last or _s(last, tick["polled_at"]) < window_s]
    volume_bytes = sum((tick["read_bytes"] or 0) + (tick["written_bytes"] or 0) for tick in window_ticks)
    ends_s = -np.array([_s(at, tick["polled_at"]) for tick in window_ticks])
    starts_s = ends_s - np.array([tick["interval_s"] for tick in window_ticks])
    return Load(volume_bytes / _union_length_s(starts_s, ends_s), -float(starts_s.min()), -float(ends_s.max()), last)


def _union_length_s(starts_s: Reals, ends_s: Reals) -> float:
    """Return the length of the union of intervals (n), which overlap if controllers are polled at different rates."""
    order = np.argsort(starts_s, kind="stable")
    starts_s, ends_s = starts_s[order], np.maximum.accumulate(ends_s[order])
    covered = ends_s - np.maximum(starts_s, np.concatenate([starts_s[:1], ends_s[:-1]]))
    return float(np.maximum(covered, 0.0).sum())


# ---- capacity


@dataclass(frozen=True, slots=True)
class _ObservedPeak:
    """Highest rate that a file system has sustained, and when."""

    bytes_per_s: float
    observed_at: datetime


#: a tick belongs to the time window that it ends in; missing ticks count as 0 bytes
_SUSTAINED_RATES = """
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


def find_capacity(store: Store, release: Release, settings: AdviceSettings, filesystem: str) -> float | None:
    """Return the capacity from the settings, else the highest observed rate; None if both are unknown."""
    configured = settings.capacity_bytes_per_s.get(filesystem)
    peak = None if configured is not None else _find_peak_rates(store, release, settings).get(filesystem)
    return configured if peak is None else peak.bytes_per_s


def _find_peak_rates(store: Store, release: Release, settings: AdviceSettings) -> dict[str, _ObservedPeak]:
    """Return the highest rate that each file system of a release has sustained over `sustained_window_s`."""
    with open_release(store, release, "filesystem_rates") as connection:
        rows = connection.sql(_SUSTAINED_RATES, params={"sustained_window_s": settings.sustained_window_s}).fetchall()
    return {name: _ObservedPeak(float(rate), utc(observed_at)) for name, rate, observed_at in rows}


# ---- jobs


def jobs_near(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    landings: Ledger,
    settings: Settings,
    at: datetime,
) -> list[dict[str, Any]]:
    """Return the application runs that ran at an instant, or ended within the load window before it."""
    models.expose_files(store, connection, JOB_RECORDS, landings.parts(JOB_RECORDS, landings.in_force))
    records = connection.sql(
        _NEAR_RECORDS,
        params={
            "at": at,
            "ended_after": at - timedelta(seconds=_MAX_LOAD_AGE_S + settings.advice.load_window_s + _MAX_INTERVAL_S),
            "started_after": at - timedelta(seconds=settings.quality.max_job_duration_s),
        },
    ).pl()
    rows = stage_jobs(connection, settings, records).filter("is_application_run").to_dicts()
    return [row for row in rows if utc(row["started_at"]) <= at]


#: all records of each job that may have run at the instant: a later record may report its end; a job that began before
#: the maximum duration has no end record
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
    """Return the running and recently ended jobs of each file system.

    As in the table `runs`, a job uses the file system in the job log, else those of its partition, else all.
    """
    signatures_by_application = find_signatures(jobs, signatures)
    running: dict[str, list[RunningJob]] = {name: [] for name in filesystems}
    for job in sorted(jobs, key=lambda job: (job["started_at"], job["cluster"], job["job_id"])):
        filesystems_of_job = list_filesystems(job, settings)
        for name in filesystems_of_job or filesystems:
            if name in running:
                running[name].append(
                    build_running_job(
                        job, name, signatures_by_application, at, is_certain=len(filesystems_of_job or filesystems) == 1
                    )
                )
    return running


def find_signatures(
    jobs: Iterable[Mapping[str, Any]], signatures: SignatureSource
) -> Mapping[str, Mapping[str, KnownSignature]]:
    """Return the signatures of the jobs' applications, including the signatures for all node counts."""
    names = {name for name in (job["application_id"] for job in jobs) if name}
    return signatures.find(sorted(names | {all_node_counts(name) for name in names}))


def list_filesystems(job: Mapping[str, Any], settings: Settings) -> Sequence[str]:
    """Return a job's file systems, from the job log or else from its partition; empty if it may use any."""
    return [job["filesystem"]] if job["filesystem"] else settings.partitions.get(job["partition"] or "", [])


def build_running_job(
    job: Mapping[str, Any],
    filesystem: str,
    signatures_by_application: Mapping[str, Mapping[str, KnownSignature]],
    at: datetime,
    *,
    is_certain: bool,
) -> RunningJob:
    """Return a running or recently ended job with its signature on a file system, if that has not expired."""
    application_id = job["application_id"]
    signature = (
        find_for_filesystem(signatures_by_application, application_id, filesystem, is_certain=is_certain)
        if application_id
        else None
    )
    if signature is not None and not signature.holds_at(at):
        signature = None
    is_over = job["ended_at"] is not None and utc(job["ended_at"]) <= at
    ended_s_ago = _s(at, job["ended_at"]) if is_over else None
    return RunningJob(job["job_id"], application_id, _s(at, job["started_at"]), signature, ended_s_ago)


def queue_at(
    store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger, settings: Settings, at: datetime
) -> pl.DataFrame:
    """Return rows of `queued_jobs` from the last snapshot of each cluster within `_MAX_QUEUE_AGE`."""
    days = sorted({(at - _MAX_QUEUE_AGE).date(), at.date()})
    files = landings.parts(QUEUE_RECORDS, landings.in_force, pl.col("day").is_in(days))
    if files.is_empty():
        return frames.empty(QUEUED_JOBS)
    models.expose_files(store, connection, QUEUE_RECORDS, files)
    parameters = model_parameters(settings) | {"days": days}
    recent = models.select(connection, QUEUED_JOBS, parameters).filter(
        pl.col("observed_at").is_between(at - _MAX_QUEUE_AGE, at)
    )
    return recent.filter(pl.col("observed_at") == pl.col("observed_at").max().over("cluster"))


def select_unlogged_jobs(queue: pl.DataFrame, logged: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return running jobs of a queue that the job log does not contain yet, as rows of the log."""
    logged_ids = {(job["cluster"], job["job_id"].partition(".")[0]) for job in logged}
    running = queue.filter(pl.col("queue_state").is_in(_HAS_NODES), pl.col("started_at").is_not_null())
    return [
        row | {"ended_at": None}
        for row in running.iter_rows(named=True)
        if (row["cluster"], row["job_id"]) not in logged_ids
    ]


def _s(later: datetime, earlier: datetime) -> float:
    return (utc(later) - utc(earlier)).total_seconds()
