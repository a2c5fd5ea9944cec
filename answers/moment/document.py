"""What `iosig status --watch --json` prints."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, columns_of
from iosig.answers.moment.query import FilesystemMoment, Moment
from iosig.answers.status.condition import SourceCondition
from iosig.answers.status.document import ProblemPart
from iosig.answers.status.problems import rhythm_s

#: jobs and bursts that are told of a file system
_MOST_JOBS, _MOST_BURSTS = 10, 10
_OF_JOBS = ("cluster", "job_id", "started_at", "user", "application_id", "attributed_bytes", "confidence", "fit")
_RATES = "mean rate of each of the last 60 minutes, null where nothing was polled [B/s]"


class _Job(
    Part,
    extra="allow",
    json_schema_extra=columns_of("attributed_io", "cluster", "job_id", "started_at", "application_id"),
):
    user: str | None = Field(description="the user")
    attributed_bytes: float = Field(description="what it moved in the last ten minutes [B]")
    confidence: float = Field(description="how sure that is, from 0 to 1")
    fit: Literal["counted", "good", "fair", "poor"] = Field(description="how well its bursts fit")


class _Burst(Part):
    job_id: str = Field(description="the job")
    application_id: str | None = Field(description="user/application/node_count; null of what is followed")
    starts_at: Instant = Field(description="when it begins; behind `polled_at` where it is under way [UTC]")
    earliest_at: Instant | None = Field(description="the earliest, as predicted [UTC]")
    latest_at: Instant | None = Field(description="the latest, as predicted [UTC]")
    expected_bytes: float | None = Field(description="what it moves, or has still to move [B]")
    basis: Literal["signature", "prediction"] = Field(description="who says so")


class _Outlook(Part):
    step_s: float = Field(description="length of a step [s]")
    expected_bytes_per_s: list[float | None] = Field(description="the rate that is to be expected in each step [B/s]")
    low_bytes_per_s: list[float | None] = Field(description="and its range's lower end [B/s]")
    high_bytes_per_s: list[float | None] = Field(description="and its upper end [B/s]")


class _FilesystemMoment(Part):
    filesystem: str = Field(description="the file system")
    polled_at: Instant = Field(description="its newest poll [UTC]")
    read_bytes_per_s: list[float | None] = Field(description=f"reads: {_RATES}")
    write_bytes_per_s: list[float | None] = Field(description=f"writes: {_RATES}")
    since: Instant | None = Field(description="from when on the bytes of jobs are told, for ten minutes [UTC]")
    measured_bytes: float | None = Field(description="what was moved in them [B]")
    unattributed_bytes: float | None = Field(description="what of it is nobody's [B]")
    other_job_count: int | None = Field(description="jobs that were there and of whom no byte is known [jobs]")
    jobs: list[_Job] = Field(description="who moved the bytes, those of most first")
    bursts: list[_Burst] = Field(description="bursts that are to begin next, or are under way")
    outlook: _Outlook | None = Field(description="the hour to come")
    no_outlook_reason: str | None = Field(description="why there is no outlook")


class _SourceMoment(Part):
    table: str = Field(description="the table that rows of it land in")
    landed_at: Instant = Field(description="when something of it landed last [UTC]")
    typical_interval_s: float | None = Field(
        description="how often something of it lands; null where too little has [s]"
    )


class LiveDocument(Document, title="iosig status --watch"):
    """What flows now, whose it is, and what comes."""

    format: Literal["iosig-live/1"] = "iosig-live/1"
    at: Instant = Field(description="when it was looked at [UTC]")
    warehouse: str = Field(description="where the warehouse is")
    release_id: str | None = Field(description="the current release")
    problems: list[ProblemPart] = Field(description="what is wrong, the worst first")
    filesystems: list[_FilesystemMoment] = Field(description="the file systems, those polled last first")
    sources: list[_SourceMoment] = Field(description="how fresh each source is")


def document(moment: Moment) -> LiveDocument:
    """Return what there is to see for programs."""
    condition = moment.condition
    return LiveDocument(
        at=moment.at,
        warehouse=condition.warehouse,
        release_id=condition.release_id,
        problems=moment.problems,
        filesystems=[_filesystem(one) for one in moment.filesystems],
        sources=[_source(one) for one in condition.sources],
    )


def _filesystem(one: FilesystemMoment) -> dict[str, Any]:
    late = one.of_late
    return {
        "filesystem": one.filesystem,
        "polled_at": one.polled_at,
        "read_bytes_per_s": one.bytes_per_s["read"],
        "write_bytes_per_s": one.bytes_per_s["write"],
        "since": late.query.since if late else None,
        "measured_bytes": late.measured_bytes if late else None,
        "unattributed_bytes": late.unattributed_bytes if late else None,
        "other_job_count": late.others.height if late else None,
        "jobs": late.jobs.head(_MOST_JOBS).select(_OF_JOBS).to_dicts() if late else [],
        "bursts": one.bursts[:_MOST_BURSTS],
        "outlook": one.outlook,
        "no_outlook_reason": one.no_outlook_reason,
    }


def _source(source: SourceCondition) -> dict[str, Any]:
    landed_at = source.landed_at[-1].astimezone(UTC)
    return {"table": source.table, "landed_at": landed_at, "typical_interval_s": rhythm_s(source.landed_at)}
