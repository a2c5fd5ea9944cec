"""What `iosig job --json` prints, and the page that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, columns_of
from iosig.answers.findings.query import TracedRun
from iosig.answers.job.query import ToldJob
from iosig.reports.findings import HeatView, draw, filled, finding_of
from iosig.reports.inline_svg import svg_of
from iosig.reports.job import job_page
from iosig.transforms.findings.rank_times import RankTimes

#: digits of numbers that are measured or estimated
_DIGITS = 6
_OF_TRACE = (
    "trace_id", "source_file", "tracer", "job_match", "application", "process_count", "started_at", "duration_s",
)  # fmt: skip
_OF_SIGNATURE = ("application_id", "filesystem", "direction", "method", "outcome", "expected_correlation")


class _Sample(Part):
    filesystem: str = Field(description="the file system")
    direction: str = Field(description="read or write")
    application_id: str | None = Field(description="user/application/node_count")
    is_exact: bool = Field(
        description="whether servers counted it for the run alone; else it is cut out of all traffic"
    )
    start_s: float = Field(description="when the first step begins, from the run's start [s]")
    step_s: float = Field(description="the step of time [s]")
    bytes_per_s: list[float | None] = Field(description="the rate in each step, null where nothing is known [B/s]")


class _Signature(Part, extra="allow", json_schema_extra=columns_of("signatures", *_OF_SIGNATURE)):
    volume_bytes: float | None = Field(description="bytes of the signature [B]")
    burst_count: int | None = Field(description="bursts of it [bursts]")
    duration_s: float | None = Field(description="how long it is [s]")
    step_s: float = Field(description="the step of time [s]")
    bytes_per_s: list[float | None] = Field(description="the rate in each step, null where nothing is known [B/s]")


class _Rule(Part):
    rule: str = Field(description="the rule")
    direction: str | None = Field(description="read or write; null where it is about the run")


class _UnknownRule(_Rule):
    missing: str = Field(description="what the trace lacks")


class _Number(Part):
    name: str = Field(description="what it is")
    value: float | None = Field(description="the number")
    unit: str = Field(description="its unit; 1: share")


class _File(Part):
    path: str = Field(description="its path, as the trace has it")
    value: float | None = Field(description="how much of it lies there")
    unit: str = Field(description="its unit")


class _Finding(_Rule):
    place: int = Field(description="its rank, the worst first")
    anchor: str = Field(description="what the rule follows")
    severity: Literal["critical", "warning", "note"] = Field(description="how bad")
    impact_ratio: float | None = Field(description="the share of the run that its busiest process spends in it [1]")
    evidence: list[_Number] = Field(description="the numbers")
    sentence: str = Field(description="what is found")
    remedy: str = Field(description="what helps")
    files: list[_File] = Field(description="the files with most of it; none where the trace does not tell")


class _Heatmap(Part):
    module: str = Field(description="whose requests")
    direction: str = Field(description="read or write")
    source: Literal["heatmap", "requests"] = Field(description="what it was made of")
    rank_edges: list[int | None] = Field(description="the first rank of each row, and one past the last")
    time_edges_s: list[float | None] = Field(description="where cells begin and end, from the run's start [s]")
    cell_bytes: list[Any] = Field(description="rows of cells [B]")
    time_bytes: list[float | None] = Field(description="the sum of each time [B]")
    rank_bytes: list[float | None] = Field(description="what a rank of each row moved [B]")


class _Trace(Part, extra="allow", json_schema_extra=columns_of("trace_jobs", *_OF_TRACE)):
    facts: Any = Field(description="counts of its requests: all, upward, one behind the other; shares of its time")
    findings: list[_Finding] = Field(description="what is found, the worst first")
    not_found: list[_Rule] = Field(description="rules that do not hold")
    not_applicable: list[_Rule] = Field(description="rules about what it did not use")
    unknown: list[_UnknownRule] = Field(description="rules without an answer")
    layers: list[Any] = Field(description="its layers: bytes, calls and times, of the table `trace_counters`")
    sizes: list[Any] = Field(description="requests by layer and size, where the tracer has a histogram")
    heatmaps: list[_Heatmap] = Field(description="bytes by rank and time, in at most 64 x 128 cells")


class JobDocument(Document, title="iosig job"):
    """What a run did to storage, and what is wrong with it."""

    format: Literal["iosig-job/1"] = "iosig-job/1"
    job_id: str = Field(description="the job")
    release_id: str | None = Field(description="the release; null where a trace alone is told of")
    job: dict[str, Any] | None = Field(description="its row of `jobs`; null where no job log has it")
    other_runs_started_at: list[Instant] = Field(description="when other runs under this id started")
    neighbour_count: int = Field(description="neighbours in all [runs]")
    io: list[Any] = Field(description="what is known of its bytes, a row each file system and direction")
    neighbours: list[Any] = Field(description="runs on the same file systems meanwhile, those of most bytes first")
    slowdowns: list[Any] = Field(
        description="bursts of its signature that came later or took longer than alone; of the table `slowdowns`"
    )
    samples: list[_Sample] = Field(description="what storage moved while it ran")
    signatures: list[_Signature] = Field(description="its application's signatures, where it was")
    traces: list[_Trace] = Field(description="its traced runs")


def document(told: ToldJob, max_neighbours: int) -> JobDocument:
    """Return what is known for programs: so many neighbours at most, and how many there are."""
    return JobDocument(
        job_id=told.job_id,
        release_id=told.release_id,
        job=told.job,
        other_runs_started_at=told.other_runs,
        neighbour_count=told.neighbours.height,
        io=told.io.to_dicts(),
        neighbours=told.neighbours.head(max_neighbours).to_dicts(),
        slowdowns=told.slowdowns.to_dicts(),
        samples=[
            row | {"bytes_per_s": _rounded(row["rates"], row["scale_bytes_per_s"])} for row in told.samples.to_dicts()
        ],
        signatures=[
            row | {"bytes_per_s": _rounded(row["bytes_per_s"] or [])}
            for row in told.signatures.rename({"rates": "bytes_per_s"}, strict=False).to_dicts()
        ],
        traces=[_trace(trace) for trace in told.traces],
    )


def _trace(trace: TracedRun) -> dict[str, Any]:
    def rows(outcome: str) -> list[dict[str, Any]]:
        return trace.findings.filter(outcome=outcome).to_dicts()

    return {
        **{name: trace.job[name] for name in _OF_TRACE},
        "facts": trace.facts,
        # the sentence with its numbers
        "findings": [row | {"sentence": filled(row["sentence"], row["evidence"])} for row in rows("found")],
        "not_found": rows("not_found"),
        "not_applicable": rows("not_applicable"),
        "unknown": rows("unknown"),
        "layers": trace.layers.to_dicts(),
        "sizes": trace.sizes.to_dicts(),
        "heatmaps": [_heatmap(one) for one in trace.maps],
    }


def _heatmap(one: RankTimes) -> dict[str, Any]:
    return {
        "module": one.module,
        "direction": one.direction,
        "source": one.source,
        "rank_edges": one.rank_edges.tolist(),
        "time_edges_s": _rounded(one.time_edges_s.tolist()),
        "cell_bytes": [_rounded(row) for row in one.cell_bytes.tolist()],
        "time_bytes": _rounded(one.time_bytes.tolist()),
        "rank_bytes": _rounded(one.rank_bytes.tolist()),
    }


def _rounded(values: Sequence[float | None], scale: float = 1.0) -> list[float | None]:
    return [None if value is None else float(f"{value * scale:.{_DIGITS}g}") for value in values]


def page_of(told: ToldJob, max_neighbours: int) -> str:
    """Return a run as a page of one file."""
    pictures: list[str | None] = []
    for number, trace in enumerate(told.traces):
        finding = finding_of(trace.maps)
        heat = draw(HeatView(trace.job["source_file"], trace.maps, finding))
        pictures.append(svg_of(heat, f"heat-{number}", finding) if trace.maps else None)
    return job_page(document(told, max_neighbours).model_dump(), pictures)
