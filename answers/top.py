"""`iosig top`: rank users, accounts, applications or codes by the bytes that their runs moved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, instant_text
from iosig.reports.answer_tables import MAX_ROWS, bytes_range_cell, render_table
from iosig.reports.texts import format_count, volume_text
from iosig.warehouse.errors import NothingToDo, UsageError

if TYPE_CHECKING:
    import duckdb

By = Literal["user", "account", "application", "code"]
#: the column of `jobs` that names the members of a ranking
COLUMNS: dict[By, str] = {
    "user": "user",
    "account": "account",
    "application": "application_id",
    "code": "application",
}
#: the tables that `rank_runs` queries
TABLES = "job_io jobs filesystem_rates"


@dataclass(frozen=True, slots=True)
class Query:
    """Runs that ended from `since` until before `until` (None: unbounded), grouped by `by`.

    filesystem, direction: None selects all of them.
    """

    by: By = "application"
    since: datetime | None = None
    until: datetime | None = None
    filesystem: str | None = None
    direction: str | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise UsageError(f"since ({instant_text(self.since)}) does not come before until ({self.until_text}).")

    @property
    def until_text(self) -> str:
        """The end of the range as text; empty if it has none."""
        return instant_text(self.until) if self.until else ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Members of a ranking, by decreasing bytes; members without any estimate come last.

    members: name (NULL if the log has none), run_count, estimated_run_count, read_bytes, written_bytes,
    estimated_bytes, estimated_low_bytes, estimated_high_bytes (NULL if unknown), own_bytes (counted or traced), share
    (of the bytes of all members). run_count: runs in the range. measured_bytes: bytes that polls measured in the range.
    """

    query: Query
    members: pl.DataFrame
    run_count: int
    estimated_run_count: int
    measured_bytes: float

    @property
    def estimated_bytes(self) -> float:
        """Estimated bytes of all runs in the range."""
        return float(self.members["estimated_bytes"].sum())

    def _repr_html_(self) -> str:
        """Return the members as a table, which notebooks show."""
        return render_table(
            f"{format_count(self.run_count, 'run')}, {self.estimated_run_count:,} with an estimate: "
            f"{volume_text(self.estimated_bytes)}; polls measured {volume_text(self.measured_bytes)}",
            (self.query.by, "runs", "estimated bytes (range)", "share"),
            [
                (
                    row["name"],
                    row["run_count"],
                    bytes_range_cell(row["estimated_bytes"], row["estimated_low_bytes"], row["estimated_high_bytes"]),
                    None if row["share"] is None else f"{row['share']:.0%}",
                )
                for row in self.members.head(MAX_ROWS).iter_rows(named=True)
            ],
            self.members.height,
        )


def rank_runs(connection: duckdb.DuckDBPyConnection, query: Query) -> Ranking:
    """Rank the runs of a release. Raises NothingToDo if no run ended in the range.

    connection: has `TABLES` of a release.
    """
    params = {
        "since": query.since,
        "until": query.until,
        "filesystem": query.filesystem,
        "direction": query.direction,
    }
    _require_filesystem(connection, query.filesystem)
    members = connection.sql(_MEMBERS.format(column=COLUMNS[query.by]), params=params).pl()
    if members.is_empty():
        raise NothingToDo("No run ended in this time range.")
    ((measured_bytes,),) = connection.sql(_MEASURED, params=params).fetchall()
    total = members["estimated_bytes"].sum()
    share = pl.col("estimated_bytes") / total if total else pl.lit(None, pl.Float64)
    return Ranking(
        query,
        members.with_columns(share=share),
        int(members["run_count"].sum()),
        int(members["estimated_run_count"].sum()),
        float(measured_bytes),
    )


def _require_filesystem(connection: duckdb.DuckDBPyConnection, filesystem: str | None) -> None:
    if filesystem is None:
        return
    rows = connection.sql("select distinct filesystem from job_io where filesystem is not null order by all").fetchall()
    names = [name for (name,) in rows]
    if filesystem not in names:
        raise UsageError(f"No run used a file system {filesystem!r}, only: {', '.join(names) or 'none'}.")


#: `column` is a value of `COLUMNS`, never a text of a user. A sum of high ends is unknown if one of them is.
_MEMBERS = """
    with runs as (
        select jobs."{column}" as name, cluster, job_id, started_at, direction, estimate_source,
            estimated_bytes, estimated_low_bytes, estimated_high_bytes
        from job_io
        inner join jobs using (cluster, job_id, started_at)
        where is_application_run
            and ($since is null or ended_at >= $since) and ($until is null or ended_at < $until)
            and ($filesystem is null or job_io.filesystem = $filesystem)
            and ($direction is null or direction = $direction)
    )

    select name,
        count(distinct (cluster, job_id, started_at)) as run_count,
        count(distinct (cluster, job_id, started_at)) filter (where estimated_bytes is not null)
            as estimated_run_count,
        sum(estimated_bytes order by estimated_bytes) filter (where direction = 'read') as read_bytes,
        sum(estimated_bytes order by estimated_bytes) filter (where direction = 'write') as written_bytes,
        sum(estimated_bytes order by estimated_bytes) as estimated_bytes,
        if(
            bool_or(estimated_bytes is not null and estimated_low_bytes is null),
            null,
            sum(estimated_low_bytes order by estimated_low_bytes)
        ) as estimated_low_bytes,
        if(
            bool_or(estimated_bytes is not null and estimated_high_bytes is null),
            null,
            sum(estimated_high_bytes order by estimated_high_bytes)
        ) as estimated_high_bytes,
        sum(estimated_bytes order by estimated_bytes) filter (where estimate_source in ('counted', 'traced'))
            as own_bytes
    from runs
    group by name
    order by estimated_bytes desc nulls last, run_count desc, name
"""

_MEASURED = """
    select coalesce(sum(if($direction is distinct from 'write', read_bytes, 0)), 0)::double
        + coalesce(sum(if($direction is distinct from 'read', written_bytes, 0)), 0)::double
    from filesystem_rates
    where ($since is null or polled_at > $since) and ($until is null or polled_at <= $until)
        and ($filesystem is null or filesystem = $filesystem)
"""


# ---- as JSON


class _Member(Part):
    name: str | None = Field(description="the user, account, application or code; null if the log has none")
    run_count: int = Field(description="its runs that ended in the range [runs]")
    estimated_run_count: int = Field(description="those with an estimate of their bytes [runs]")
    read_bytes: float | None = Field(description="estimated bytes read [B]")
    written_bytes: float | None = Field(description="estimated bytes written [B]")
    estimated_bytes: float | None = Field(description="estimated bytes, also those of unknown direction [B]")
    estimated_low_bytes: float | None = Field(description="sum of the low ends of the runs' ranges [B]")
    estimated_high_bytes: float | None = Field(description="sum of the high ends; null if one is unknown [B]")
    own_bytes: float | None = Field(description="part of the estimate that was counted or traced [B]")
    share: float | None = Field(description="fraction of the estimated bytes of all runs in the range [1]")


class TopDocument(Document, title="iosig top"):
    """Users, accounts, applications or codes that moved most bytes."""

    format: Literal["iosig-top/1"] = "iosig-top/1"
    release_id: str = Field(description="the release")
    by: By = Field(description="what is ranked: `application` by id, `code` over all users and node counts")
    since: Instant | None = Field(description="runs that ended at this instant or later [UTC]")
    until: Instant | None = Field(description="runs that ended before this instant [UTC]")
    filesystem: str | None = Field(description="the file system; null for all")
    direction: str | None = Field(description="`read` or `write`; null for all")
    run_count: int = Field(description="runs that ended in the range [runs]")
    estimated_run_count: int = Field(description="those with an estimate of their bytes [runs]")
    estimated_bytes: float = Field(description="estimated bytes of all runs in the range [B]")
    measured_bytes: float = Field(description="bytes that polls measured in the range [B]")
    member_count: int = Field(description="members of the ranking [members]")
    members: list[_Member] = Field(description="members by decreasing bytes, truncated")


def build_document(ranking: Ranking, max_count: int, release_id: str) -> TopDocument:
    """Build the JSON document with at most `max_count` members and the totals of all."""
    query = ranking.query
    return TopDocument(
        release_id=release_id,
        by=query.by,
        since=query.since,
        until=query.until,
        filesystem=query.filesystem,
        direction=query.direction,
        run_count=ranking.run_count,
        estimated_run_count=ranking.estimated_run_count,
        estimated_bytes=ranking.estimated_bytes,
        measured_bytes=ranking.measured_bytes,
        member_count=ranking.members.height,
        members=ranking.members.head(max_count).to_dicts(),
    )
