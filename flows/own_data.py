"""Find and remove the data of a user, and the user's name in the data of other users.

A user's data are the records of the user's jobs and steps, and traces by the user (or user id) or of such a job.
Series, predictions and reviews of these jobs, extrapolations of these traces, and rejects that name the user belong to
them, too. In rows of other users, the name is removed from paths, file names, command lines and comments, but not from
names of jobs and accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.warehouse.contracts import Table, frames, table as contract
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.contracts.jobs import JOB_RECORDS, QUEUE_RECORDS
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.reviews import REVIEW_RECORDS
from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACES
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.releases import releases
from iosig.warehouse.store import ledger
from iosig.warehouse.store.manifests import Landing
from iosig.warehouse.store.store import Store

#: replaces the user's name in rows of other users
FORGOTTEN = "forgotten"
_NAMING = ("path", "mount", "words", "said", "listed", "comment")
#: maximum difference between the clocks of the job log and a trace
_TOLERANCE = pl.duration(seconds=60)


@dataclass(frozen=True, slots=True)
class OwnData:
    """Identifies the rows that belong to a user.

    jobs: cluster and id of each allocation or array task. trace_ids: ids of the user's traced runs.
    """

    name: str
    jobs: tuple[tuple[str, str], ...]
    trace_ids: tuple[str, ...]

    @property
    def _pattern(self) -> str:
        return rf"(^|[^\p{{L}}\p{{N}}]){re.escape(self.name)}($|[^\p{{L}}\p{{N}}])"

    def _names(self, column: str) -> pl.Expr:
        return pl.col(column).str.contains(self._pattern).fill_null(False)

    def remove_name(self, text: str) -> str:
        """Return text with the user's name replaced by `FORGOTTEN`."""
        return str(pl.select(self._without(pl.lit(text))).item())

    def _without(self, text: pl.Expr) -> pl.Expr:
        # repeated, since the delimiter after one occurrence may begin the next one
        for _ in range(2):
            text = text.str.replace_all(self._pattern, f"${{1}}{FORGOTTEN}${{2}}")
        return text

    def remove_rows(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Remove the user's rows from landed rows, and the user's name from the other rows."""
        remaining = rows.filter(~self._is_own(table, rows))
        naming = [
            column.name for column in table.columns if column.hides in _NAMING and column.name in remaining.columns
        ]
        remaining = remaining.with_columns(self._without(pl.col(name)) for name in naming)
        if "cancelled_by" in remaining.columns:
            was_other = pl.col("cancelled_by") != self.name
            remaining = remaining.with_columns(cancelled_by=pl.when(was_other).then("cancelled_by"))
        return remaining

    def _is_own(self, table: Table, rows: pl.DataFrame) -> pl.Series:
        traced = pl.Series(self.trace_ids, dtype=pl.String).implode()
        is_own = pl.lit(False)
        if table in (JOB_RECORDS, QUEUE_RECORDS):
            of_jobs = self._is_of_jobs(_cluster(), _allocation("job_id"))
            # a queued job may never appear in the job log
            is_named = (pl.col("user") == self.name).fill_null(False) if table == QUEUE_RECORDS else is_own
            return rows.select(of_jobs | is_named).to_series()
        if table == SERIES:
            is_own = self._is_any_job("subject_id") | self._names("subject_id")
        elif table in (PREDICTION_RECORDS, REVIEW_RECORDS):
            is_job = (pl.col("subject_kind") == "job") & self._is_any_job("subject_id")
            is_followed = self._names("followed_id") if table == PREDICTION_RECORDS else is_own
            is_own = is_job | is_followed | self._names("subject_id")
        elif table == EXTRAPOLATION_RECORDS:
            is_own = pl.col("trace_ids").str.contains_any(list(self.trace_ids)) if self.trace_ids else is_own
        elif table == REJECTS:
            is_own = self._names("reason") | self._names("raw") | self._names("source_file")
        elif "trace_id" in rows.columns:
            is_own = pl.col("trace_id").is_in(traced)
        return rows.select(pl.repeat(False, pl.len()) | is_own).to_series()

    def _is_of_jobs(self, cluster: pl.Expr, allocation: pl.Expr) -> pl.Expr:
        ids = pl.Series([f"{of}\0{job_id}" for of, job_id in self.jobs], dtype=pl.String)
        return pl.concat_str(cluster, allocation, separator="\0").is_in(ids.implode()).fill_null(False)

    def _is_any_job(self, column: str) -> pl.Expr:
        ids = pl.Series(sorted({job_id for _, job_id in self.jobs}), dtype=pl.String)
        return _allocation(column).is_in(ids.implode()).fill_null(False)

    def is_followed(self, fields: Mapping[str, Any]) -> bool:
        """Return whether a followed input belongs to the user; `fields` are those of the journal."""
        row = {"followed_id": "", "subject_kind": "trace", "subject_id": "", **fields}
        columns = {name: [str(row[name])] for name in ("followed_id", "subject_kind", "subject_id")}
        return bool(self._is_own(PREDICTION_RECORDS, pl.DataFrame(columns)).item())

    def has(self, landing: Landing, landed: Iterable[tuple[str, pl.DataFrame]]) -> bool:
        """Return whether a landing has rows that belong to the user or contain the user's name, or its path does."""
        return self.remove_name(landing.source_file) != landing.source_file or any(
            not rows.equals(self.remove_rows(contract(name), rows)) for name, rows in landed
        )

    def document(self) -> dict[str, Any]:
        """Return the JSON representation, from which an interrupted removal resumes."""
        return {"name": self.name, "jobs": self.jobs, "trace_ids": self.trace_ids}

    @classmethod
    def from_document(cls, content: Mapping[str, Any]) -> OwnData:
        """Read the JSON representation."""
        jobs = tuple((str(cluster), str(job_id)) for cluster, job_id in content["jobs"])
        return cls(content["name"], jobs, tuple(content["trace_ids"]))


def _cluster() -> pl.Expr:
    return pl.col("cluster").fill_null("default")


def _allocation(column: str) -> pl.Expr:
    return pl.col(column).str.split(".").list.first().str.split("[").list.first()


def find(store: Store, name: str) -> OwnData:
    """Find a user's data in all landings and kept releases."""
    jobs = _read_landed_rows(store, JOB_RECORDS).filter(pl.col("user") == name)
    jobs = jobs.select("started_at", "ended_at", cluster=_cluster(), allocation=_allocation("job_id"))
    traces = _read_landed_rows(store, TRACES)
    is_own = (pl.coalesce("user", pl.col("uid").cast(pl.String)) == name).fill_null(False)
    of_jobs = (
        traces.with_columns(allocation="job_id")
        .join(jobs, on="allocation", suffix="_job")
        .filter(
            pl.col("started_at").is_null()
            | (pl.col("started_at") + _TOLERANCE >= pl.col("started_at_job"))
            & (pl.col("ended_at") - _TOLERANCE <= pl.col("ended_at_job"))
        )
    )
    trace_ids = {*traces.filter(is_own)["trace_id"], *of_jobs["trace_id"], *_find_joined_traces(store, name)}
    return OwnData(name, tuple(sorted(set(jobs.select("cluster", "allocation").iter_rows()))), tuple(sorted(trace_ids)))


def _read_landed_rows(store: Store, table: Table) -> pl.DataFrame:
    """Return a table's rows in all landings, including replaced landings."""
    landings = ledger.read(store)
    paths = landings.files.filter(pl.col("table") == table.name)["path"].to_list()
    parts = (frames.add_missing_columns(read_parquet(store.local(path)), table) for path in paths)
    return pl.concat([frames.empty(table), *parts])


def _find_joined_traces(store: Store, name: str) -> Iterable[str]:
    """Yield the ids of traces that kept releases have joined with a job of the user."""
    for release in releases.list_readable(store):
        for path in releases.files_of(store, release).get(TRACE_JOBS.name, ()):
            yield from read_parquet(path, columns=["trace_id", "user"]).filter(pl.col("user") == name)["trace_id"]
