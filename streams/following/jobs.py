"""Find a running job in the landed job logs: its start, its file systems, and whether it has ended.

The latest record of a run counts, by the same SQL model of `jobs` as in nightly runs. The same rules select the file
systems of a job: the one in its comment, else those of its partition, else every file system with polls.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from iosig.estimates import staging
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS, JOBS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import UsageError
from iosig.warehouse.sources.jobs.records import FINAL_STATES
from iosig.warehouse.store import ledger
from iosig.warehouse.store.manifests import Landing, Part
from iosig.warehouse.store.store import Store

#: a folder modified within this time may change again with the same time stamp
_SETTLED_S = 2.0
_MAX_SHOWN_RUNS = 20


@dataclass(frozen=True, slots=True)
class FollowedJob:
    """One run of a job on one file system, with its start and, if it is over, its end."""

    cluster: str
    job_id: str
    user: str | None
    application: str | None
    state: str | None
    started_at: datetime
    ended_at: datetime | None
    filesystem: str

    @property
    def is_running(self) -> bool:
        """Whether the log contains neither an end nor a final state."""
        return self.ended_at is None and self.state not in FINAL_STATES

    @property
    def followed_id(self) -> str:
        """Unique id of the followed input."""
        return f"{self.cluster}/{self.job_id} on {self.filesystem}"


class Landings:
    """Incremental view of a warehouse's landings: a check costs one stat without new landings, or one listing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed_ns: int | None = None
        self._folders: dict[str, int] = {}
        self._seen = pl.DataFrame(schema={"landing_id": pl.String})

    def look(self) -> list[Landing]:
        """Return new landings in landing order; only the latest generation of each content."""
        if not self._has_changed():
            return []
        landed = ledger.read(self._store)
        new = landed.in_force.join(self._seen, on="landing_id", how="anti", maintain_order="left")
        self._seen = pl.concat([self._seen, new.select("landing_id")])
        return list(landed.objects(new))

    def _has_changed(self) -> bool:
        """Return whether landings may have been added since the last check."""
        if self._store.url is not None:
            before, self._folders = self._folders, self._store.files.folders("landed")
            return self._folders != before
        try:
            changed_ns = self._store.landed.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        is_same = changed_ns == self._changed_ns
        # two changes within one tick of the file system's clock look like one
        is_settled = time.time_ns() - changed_ns > _SETTLED_S * 1e9
        self._changed_ns = changed_ns if is_settled else None
        return not is_same


class JobLog:
    """Landed records of one job id, by job log."""

    def __init__(self, store: Store, settings: Settings, job_id: str) -> None:
        self._store, self._settings, self._job_id = store, settings, job_id
        self._records: dict[str, tuple[Landing, pl.DataFrame]] = {}

    def add(self, landings: Iterable[Landing]) -> bool:
        """Read the job logs in new landings; return whether any of them contains the job."""
        is_told = False
        for lot in landings:
            files = self._store.locals(part.path for part in lot.parts if part.table == JOB_RECORDS.name)
            records = self._of_job(files)
            # content that landed again replaces its earlier records
            if records.height or lot.content_sha256 in self._records:
                self._records[lot.content_sha256] = (lot, records)
                is_told = True
        return is_told

    def _of_job(self, files: list[Path]) -> pl.DataFrame:
        if not files:
            return frames.empty(JOB_RECORDS)
        ids = {self._job_id, self._job_id.partition(".")[0]}
        steps = f"{self._job_id.partition('.')[0]}."
        is_of_job = pl.col("job_id").is_in(list(ids)) | pl.col("job_id").str.starts_with(steps)
        return scan_parquet(files).filter(is_of_job).collect()

    def runs(self, cluster: str | None = None) -> pl.DataFrame:
        """Return the job's rows of `jobs` that have a start, latest first, optionally of one cluster."""
        ordered = sorted(self._records.values(), key=lambda record: (record[0].sequence, record[0].landing_id))
        records = [
            rows.with_columns(pl.lit(order, pl.Int64).alias("part_order"), pl.lit(lot.landing_id).alias("landing_id"))
            for order, (lot, rows) in enumerate(ordered)
        ]
        if not records:
            return frames.empty(JOBS)
        rows = pl.concat(records, how="vertical_relaxed").with_row_index("part_row")
        with staging.engine(self._settings, self._store.builds / "spill") as connection:
            of_job = staging.stage_jobs(connection, self._settings, rows)
        runs = of_job.filter(pl.col("job_id") == self._job_id)
        if cluster is not None:
            runs = runs.filter(pl.col("cluster") == cluster)
        return runs.sort("started_at", "cluster", descending=True, nulls_last=True)


class WatchedJob:
    """One run of a job in progress, updated whenever a job log that contains it lands."""

    def __init__(self, store: Store, settings: Settings, job: FollowedJob) -> None:
        self.job = job
        self._log = JobLog(store, settings, job.job_id)
        self._landings = Landings(store)

    def look(self) -> FollowedJob:
        """Read new landings; for feeds that do not follow landings themselves."""
        return self.update(self._landings.look())

    def update(self, landings: Iterable[Landing]) -> FollowedJob:
        """Read new landings and return the run's current state; its start does not change."""
        if self._log.add(landings):
            runs = self._log.runs(self.job.cluster).filter(pl.col("started_at") == self.job.started_at)
            for row in runs.head(1).iter_rows(named=True):
                self.job = replace(self.job, state=row["state"], ended_at=_get_end(row))
        return self.job


def find_jobs(
    store: Store, settings: Settings, job_id: str, cluster: str | None = None, filesystem: str | None = None
) -> tuple[FollowedJob, ...]:
    """Find the latest run of a job, once for each file system that it may use.

    The latest start of a job id in a cluster counts. With several clusters, the one where the job is running takes
    precedence, else the latest start. `filesystem` overrides the job log. Raises UsageError where the job does not
    exist or has not started, is ambiguous, or its file system is unknown.
    """
    landings = Landings(store).look()
    log = JobLog(store, settings, job_id)
    log.add(landings)
    row = _choose_run(log.runs(cluster), job_id, cluster)
    places = [filesystem] if filesystem else _filesystems(store, settings, landings, row)
    if not places:
        raise UsageError(f"The file system of job {job_id} is unknown. Name it with --filesystem.")
    fields = {name: row[name] for name in ("cluster", "job_id", "user", "application", "state", "started_at")}
    return tuple(FollowedJob(**fields, ended_at=_get_end(row), filesystem=place) for place in places)


def _get_end(row: dict[str, Any]) -> datetime | None:
    """Return the end of a run; an end before its start is ignored."""
    ended_at: datetime | None = row["ended_at"]
    return ended_at if ended_at is not None and ended_at >= row["started_at"] else None


def _choose_run(runs: pl.DataFrame, job_id: str, cluster: str | None) -> dict[str, Any]:
    cluster_text = f" of the cluster {cluster}" if cluster else ""
    if runs.is_empty():
        raise UsageError(f"No landed job log contains job {job_id}{cluster_text}. Land one: `iosig land LOG`.")
    started = runs.filter(pl.col("started_at").is_not_null())
    if started.is_empty():
        raise UsageError(f"The job {job_id}{cluster_text} has not started, according to the landed job logs.")
    latest = started.unique("cluster", keep="first", maintain_order=True).to_dicts()
    running = [row for row in latest if _get_end(row) is None and row["state"] not in FINAL_STATES]
    candidates = running or [row for row in latest if row["started_at"] == latest[0]["started_at"]]
    if len(candidates) > 1:
        listing = "; ".join(
            f"{row['cluster']}: since {row['started_at']:%F %T}Z" for row in candidates[:_MAX_SHOWN_RUNS]
        )
        raise UsageError(f"Job id {job_id} is ambiguous: {listing}. Pass --cluster.")
    return candidates[0]


def _filesystems(store: Store, settings: Settings, landings: Sequence[Landing], row: dict[str, Any]) -> list[str]:
    """Return the file systems that a run may use, by the rules of nightly runs."""
    if row["filesystem"] is not None:
        return [row["filesystem"]]
    if row["partition"] in settings.partitions:
        return sorted(set(settings.partitions[row["partition"]]))
    parts = select_poll_parts(landings, row["started_at"], _get_end(row))
    paths = store.locals(part.path for _, part in parts)
    if not paths:
        return []
    polls = scan_parquet(paths).filter(pl.col("polled_at") > row["started_at"])
    return sorted(polls.select(pl.col("filesystem").unique()).collect()["filesystem"])


def select_poll_parts(
    landings: Iterable[Landing], started_at: datetime, ended_at: datetime | None
) -> list[tuple[Landing, Part]]:
    """Return the landed parts that may contain polls from the time of a run."""
    first = started_at.astimezone(UTC).date()
    parts = []
    for lot in landings:
        for part in lot.parts:
            if part.table == POLLS.name and part.day is not None:
                day = date.fromisoformat(part.day)
                last = day if ended_at is None else (ended_at + timedelta(seconds=part.longest_interval_s)).date()
                if first <= day <= last:
                    parts.append((lot, part))
    return parts
