"""The JSON document of `iosig check-site`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal

from pydantic import Field

from iosig.answers.documents import Document, Instant, Part
from iosig.answers.site_check.query import SiteCheck
from iosig.answers.status.problems import Problem


class _Filesystem(Part):
    filesystem: str = Field(description="the file system")
    has_polls: bool = Field(description="whether its traffic is polled")
    has_counters: bool = Field(description="whether its servers count by job")
    first_day: date | None = Field(description="first day of polls or counters [UTC]")
    last_day: date | None = Field(description="last day [UTC]")
    day_count: int = Field(description="days with data [days]")
    missing_day_count: int | None = Field(description="days without data between the first and the last [days]")
    interval_s: float | None = Field(description="interval of polls or scrapes [s]")
    missing_ratio: float | None = Field(description="fraction of the expected polls or scrapes without a value [1]")
    run_count: int = Field(description="runs that used it [runs]")
    measured_bytes: float | None = Field(description="polled bytes [B]")
    attributed_ratio: float | None = Field(description="fraction of them that is attributed to runs [1]")
    unknown_key_ratio: float | None = Field(
        description="fraction of the bytes counted by job that belongs to no known job [1]"
    )


class _Cluster(Part):
    cluster: str = Field(description="the cluster")
    run_count: int = Field(description="its runs [runs]")
    first_started_at: Instant | None = Field(description="when the first run started [UTC]")
    last_ended_at: Instant | None = Field(description="when the last run ended [UTC]")
    no_user_ratio: float = Field(description="fraction of runs without a user [1]")
    no_application_ratio: float = Field(description="fraction of runs without a job name [1]")
    no_node_count_ratio: float = Field(description="fraction of runs without a number of nodes [1]")
    measured_ratio: float = Field(description="fraction of runs with polls, counters or a trace [1]")


class _Applications(Part):
    state: str = Field(
        description="`reliable` or `unreliable` signature, or the reason for none: `no_common_bursts`, `no_io`, "
        "`too_few_samples`"
    )
    application_count: int = Field(description="applications in this state [applications]")


class _Waiting(Part):
    application_id: str = Field(description="an application with too few samples")
    run_count: int = Field(description="its runs [runs]")
    sample_count: int = Field(description="its samples [samples]")
    missing_count: int = Field(description="samples that it needs for a signature [samples]")
    expected_on: date | None = Field(description="when it has them at the present rate; null if unknown [UTC]")


class _Traces(Part):
    job_match: str = Field(description="how traces were matched with the job log")
    trace_count: int = Field(description="traced runs [runs]")


class _Advice(Part):
    name: str = Field(description="stays the same while the problem persists")
    sentence: str = Field(description="the problem and its remedy")


class SiteCheckDocument(Document, title="iosig check-site"):
    """What the logs of a site cover, and what to do next."""

    format: Literal["iosig-check-site/1"] = "iosig-check-site/1"
    release_id: str = Field(description="the release")
    filesystems: list[_Filesystem] = Field(description="file systems that are measured, or named by a job log")
    clusters: list[_Cluster] = Field(description="clusters of the job logs")
    applications: list[_Applications] = Field(description="applications by the state of their signatures")
    waiting_count: int = Field(description="applications with too few samples [applications]")
    waiting: list[_Waiting] = Field(description="those with enough samples soonest, truncated")
    traces: list[_Traces] = Field(description="traced runs")
    advice: list[_Advice] = Field(description="what to do next, most urgent first")


def build_document(check: SiteCheck, advice: Sequence[Problem], max_count: int, release_id: str) -> SiteCheckDocument:
    """Build the JSON document with at most `max_count` waiting applications."""
    return SiteCheckDocument(
        release_id=release_id,
        filesystems=check.filesystems.to_dicts(),
        clusters=check.clusters.to_dicts(),
        applications=check.applications.to_dicts(),
        waiting_count=check.waiting.height,
        waiting=check.waiting.head(max_count).to_dicts(),
        traces=check.traces.to_dicts(),
        advice=list(advice),
    )
