"""Build the JSON document of `iosig status --watch`."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, make_columns_schema
from iosig.answers.moment.query import FilesystemMoment, Moment
from iosig.answers.status.condition import SourceCondition
from iosig.answers.status.document import ProblemPart
from iosig.answers.status.problems import typical_interval

#: maximum number of jobs per file system
#: maximum number of bursts per file system
_MAX_JOBS, _MAX_BURSTS = 10, 10
_OF_JOBS = ("cluster", "job_id", "started_at", "user", "application_id", "attributed_bytes", "confidence", "fit")
_RATES = "mean rate of each of the last 60 minutes, null if not polled [B/s]"


class _Job(
    Part,
    extra="allow",
    json_schema_extra=make_columns_schema("attributed_io", "cluster", "job_id", "started_at", "application_id"),
):
    user: str | None = Field(description="the user")
    attributed_bytes: float = Field(description="bytes attributed to it in the last ten minutes [B]")
    confidence: float = Field(description="confidence of the attribution, 0 to 1")
    fit: Literal["counted", "good", "fair", "poor"] = Field(description="quality of the fit of its signature")


class _Burst(Part):
    job_id: str = Field(description="the job")
    application_id: str | None = Field(description="user@machine/application/node_count; null for followed inputs")
    starts_at: Instant = Field(description="start; before `polled_at` if in progress [UTC]")
    earliest_at: Instant | None = Field(description="earliest predicted start [UTC]")
    latest_at: Instant | None = Field(description="latest predicted start [UTC]")
    expected_bytes: float | None = Field(description="volume, or remaining volume if in progress [B]")
    basis: Literal["signature", "prediction"] = Field(description="source of the expectation")


class _Outlook(Part):
    step_s: float = Field(description="length of a step [s]")
    expected_bytes_per_s: list[float | None] = Field(description="expected rate in each step [B/s]")
    low_bytes_per_s: list[float | None] = Field(description="lower bound of the range [B/s]")
    high_bytes_per_s: list[float | None] = Field(description="upper bound of the range [B/s]")


class _FilesystemMoment(Part):
    filesystem: str = Field(description="the file system")
    polled_at: Instant = Field(description="its newest poll [UTC]")
    read_bytes_per_s: list[float | None] = Field(description=f"reads: {_RATES}")
    write_bytes_per_s: list[float | None] = Field(description=f"writes: {_RATES}")
    since: Instant | None = Field(description="start of the ten minutes to which `jobs` refers [UTC]")
    measured_bytes: float | None = Field(description="bytes that the file system moved in them [B]")
    unattributed_bytes: float | None = Field(description="bytes of it not attributed to any job [B]")
    other_job_count: int | None = Field(description="active jobs without attributed bytes [jobs]")
    jobs: list[_Job] = Field(description="jobs by decreasing bytes, truncated")
    bursts: list[_Burst] = Field(description="next bursts, and bursts in progress")
    outlook: _Outlook | None = Field(description="forecast of the next hour")
    no_outlook_reason: str | None = Field(description="reason for a missing outlook")


class _SourceMoment(Part):
    table: str = Field(description="the landed table")
    landed_at: Instant = Field(description="last landing [UTC]")
    typical_interval_s: float | None = Field(
        description="median interval between landings; null if there are too few [s]"
    )


class LiveDocument(Document, title="iosig status --watch"):
    """Current traffic of all file systems with its owners, and the outlook."""

    format: Literal["iosig-live/1"] = "iosig-live/1"
    at: Instant = Field(description="time of the view [UTC]")
    warehouse: str = Field(description="location of the warehouse")
    release_id: str | None = Field(description="the current release")
    problems: list[ProblemPart] = Field(description="problems, most severe first")
    filesystems: list[_FilesystemMoment] = Field(description="the file systems, most recently polled first")
    sources: list[_SourceMoment] = Field(description="freshness of each source")


def build_document(moment: Moment) -> LiveDocument:
    """Build the JSON document of a live view."""
    condition = moment.condition
    return LiveDocument(
        at=moment.at,
        warehouse=condition.warehouse,
        release_id=condition.release_id,
        problems=moment.problems,
        filesystems=[_filesystem(item) for item in moment.filesystems],
        sources=[_source(item) for item in condition.sources],
    )


def _filesystem(moment: FilesystemMoment) -> dict[str, Any]:
    recent = moment.recent
    return {
        "filesystem": moment.filesystem,
        "polled_at": moment.polled_at,
        "read_bytes_per_s": moment.bytes_per_s["read"],
        "write_bytes_per_s": moment.bytes_per_s["write"],
        "since": recent.query.since if recent else None,
        "measured_bytes": recent.measured_bytes if recent else None,
        "unattributed_bytes": recent.unattributed_bytes if recent else None,
        "other_job_count": recent.others.height if recent else None,
        "jobs": recent.jobs.head(_MAX_JOBS).select(_OF_JOBS).to_dicts() if recent else [],
        "bursts": moment.bursts[:_MAX_BURSTS],
        "outlook": moment.outlook,
        "no_outlook_reason": moment.no_outlook_reason,
    }


def _source(source: SourceCondition) -> dict[str, Any]:
    landed_at = source.landed_at[-1].astimezone(UTC)
    return {"table": source.table, "landed_at": landed_at, "typical_interval_s": typical_interval(source.landed_at)}
