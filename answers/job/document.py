"""Build the JSON document of `iosig job`, and from it the HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Document, Instant, Part, make_columns_schema
from iosig.answers.findings.query import TracedRun
from iosig.answers.job.query import JobReport
from iosig.reports.findings import HeatView, draw, fill_template, summarize_heat_maps
from iosig.reports.inline_svg import render_svg
from iosig.reports.job import job_page
from iosig.transforms.findings.rank_times import RankTimes

#: significant digits of measured and estimated numbers
_DIGITS = 6
_OF_TRACE = (
    "trace_id", "source_file", "tracer", "job_match", "application", "process_count", "started_at", "duration_s",
)  # fmt: skip
_OF_SIGNATURE = ("application_id", "filesystem", "direction", "method", "outcome", "expected_correlation")


class _Sample(Part):
    filesystem: str = Field(description="the file system")
    direction: str = Field(description="read or write")
    application_id: str | None = Field(description="user@machine/application/node_count")
    is_exact: bool = Field(description="true if from server counters of the run; false if cut out of the total traffic")
    start_s: float = Field(description="when the first step begins, from the run's start [s]")
    step_s: float = Field(description="the step of time [s]")
    bytes_per_s: list[float | None] = Field(description="the rate in each step, null if unknown [B/s]")


class _Signature(Part, extra="allow", json_schema_extra=make_columns_schema("signatures", *_OF_SIGNATURE)):
    volume_bytes: float | None = Field(description="bytes of the signature [B]")
    burst_count: int | None = Field(description="number of bursts [bursts]")
    duration_s: float | None = Field(description="its duration [s]")
    step_s: float = Field(description="the step of time [s]")
    bytes_per_s: list[float | None] = Field(description="the rate in each step, null if unknown [B/s]")


class _OperationSignature(Part):
    filesystem: str = Field(description="the file system")
    direction: str = Field(description="read or write")
    method: str = Field(description="the method of the signature")
    outcome: str = Field(description="its outcome, as in the table `signatures`")
    expected_correlation: float | None = Field(description="expected correlation with the truth [1]")
    volume_operations: float | None = Field(description="operations of the signature [operations]")
    burst_count: int | None = Field(description="number of bursts [bursts]")
    duration_s: float | None = Field(description="its duration [s]")
    step_s: float = Field(description="the step of time [s]")
    operations_per_s: list[float | None] = Field(description="the rate in each step, null if unknown [operations/s]")


class _Operations(Part):
    filesystem: str = Field(description="the file system")
    direction: str = Field(description="read or write")
    application_id: str | None = Field(description="user@machine/application/node_count")
    volume_operations: float = Field(description="operations of all jobs during the run [operations]")
    peak_operations_per_s: float = Field(description="highest rate of any step [operations/s]")
    start_s: float = Field(description="when the first step begins, from the run's start [s]")
    step_s: float = Field(description="the step of time [s]")
    operations_per_s: list[float | None] = Field(description="the rate in each step, null if unknown [operations/s]")
    label: str | None = Field(description="class of the run's own operations; null if unknown")
    class_outcome: str | None = Field(description="outcome of the class, as in the table `classes`")
    class_basis: str | None = Field(description="basis of the class")
    period_s: float | None = Field(description="period of the run's own operations; null if none is known [s]")
    false_alarm_probability: float | None = Field(description="false-alarm probability of the period [1]")
    period_basis: str | None = Field(description="basis of the period")
    signature: _OperationSignature | None = Field(description="signature of its application's operations")


class _Rule(Part):
    rule: str = Field(description="the rule")
    direction: str | None = Field(description="read or write; null if the rule concerns the whole run")


class _UnknownRule(_Rule):
    missing: str = Field(description="data that the trace does not have")


class _Number(Part):
    name: str = Field(description="name of the quantity")
    value: float | None = Field(description="its value")
    unit: str = Field(description="its unit; 1: share")


class _File(Part):
    path: str = Field(description="its path, as the trace has it")
    value: float | None = Field(description="the finding's quantity in this file")
    unit: str = Field(description="its unit")


class _Finding(_Rule):
    place: int = Field(description="its rank, most severe first")
    anchor: str = Field(description="reference for the rule")
    severity: Literal["critical", "warning", "note"] = Field(description="severity of the finding")
    impact_ratio: float | None = Field(description="fraction of the run time that its busiest process spends in it [1]")
    evidence: list[_Number] = Field(description="the supporting numbers")
    sentence: str = Field(description="the finding as text")
    remedy: str = Field(description="recommended action")
    files: list[_File] = Field(description="the most affected files; empty if the trace does not identify files")


class _Heatmap(Part):
    module: str = Field(description="the module of the requests")
    direction: str = Field(description="read or write")
    source: Literal["heatmap", "requests"] = Field(description="the origin of the data")
    rank_edges: list[int | None] = Field(description="the first rank of each row, and one past the last")
    time_edges_s: list[float | None] = Field(description="time edges of the cells, from the run's start [s]")
    cell_bytes: list[Any] = Field(description="rows of cells [B]")
    time_bytes: list[float | None] = Field(description="bytes per time interval [B]")
    rank_bytes: list[float | None] = Field(description="bytes per rank in each row [B]")


class _Trace(Part, extra="allow", json_schema_extra=make_columns_schema("trace_jobs", *_OF_TRACE)):
    facts: Any = Field(description="counts of its requests (all, sequential, consecutive), and fractions of its time")
    findings: list[_Finding] = Field(description="rules with outcome `found`, most severe first")
    not_found: list[_Rule] = Field(description="rules with outcome `not_found`")
    not_applicable: list[_Rule] = Field(description="rules that concern features the run did not use")
    unknown: list[_UnknownRule] = Field(description="rules that cannot be evaluated")
    layers: list[Any] = Field(description="bytes, calls and times of its layers, from the table `trace_counters`")
    sizes: list[Any] = Field(description="requests by layer and size, if the tracer has a histogram")
    heatmaps: list[_Heatmap] = Field(description="bytes by rank and time, in at most 64 x 128 cells")


class JobDocument(Document, title="iosig job"):
    """I/O of a run, and its findings."""

    format: Literal["iosig-job/1"] = "iosig-job/1"
    job_id: str = Field(description="the job")
    release_id: str | None = Field(description="the release; null for a trace without a warehouse")
    job: dict[str, Any] | None = Field(description="its row of `jobs`; null if no job log contains it")
    other_runs_started_at: list[Instant] = Field(description="start times of other runs with this id")
    neighbor_count: int = Field(description="total number of neighbors [runs]")
    io: list[Any] = Field(description="its bytes, one row per file system and direction")
    neighbors: list[Any] = Field(description="concurrent runs on the same file systems, by decreasing bytes")
    slowdowns: list[Any] = Field(description="its bursts with their delays, from the table `slowdowns`")
    samples: list[_Sample] = Field(description="traffic during the run")
    signatures: list[_Signature] = Field(description="signatures of its application on the file systems that it used")
    operations: list[_Operations] = Field(
        description="its operations, one row per file system and direction whose servers counted them"
    )
    traces: list[_Trace] = Field(description="its traced runs")


def build_document(report: JobReport, max_neighbors: int) -> JobDocument:
    """Build the JSON document with at most `max_neighbors` neighbors and the total count."""
    return JobDocument(
        job_id=report.job_id,
        release_id=report.release_id,
        job=report.job,
        other_runs_started_at=report.other_runs,
        neighbor_count=report.neighbors.height,
        io=report.io.to_dicts(),
        neighbors=report.neighbors.head(max_neighbors).to_dicts(),
        slowdowns=report.slowdowns.to_dicts(),
        samples=[
            row | {"bytes_per_s": _round(row["rates"], row["scale_bytes_per_s"])} for row in report.samples.to_dicts()
        ],
        signatures=[
            row | {"bytes_per_s": _round(row["bytes_per_s"] or [])}
            for row in report.signatures.rename({"rates": "bytes_per_s"}, strict=False).to_dicts()
        ],
        operations=_build_operations(report),
        traces=[_trace(trace) for trace in report.traces],
    )


def _build_operations(report: JobReport) -> list[dict[str, Any]]:
    """Build the rows of operations, whose amounts the report has in columns of bytes."""
    signatures = {
        (row["filesystem"], row["direction"]): row
        | {"volume_operations": row["volume_bytes"], "operations_per_s": _round(row["rates"] or [])}
        for row in report.operation_signatures.to_dicts()
    }
    return [
        row
        | {
            "volume_operations": row["volume_bytes"],
            "peak_operations_per_s": row["peak_bytes_per_s"],
            "operations_per_s": _round(row["rates"], row["scale_bytes_per_s"]),
            "signature": signatures.get((row["filesystem"], row["direction"])),
        }
        for row in report.operations.to_dicts()
    ]


def _trace(trace: TracedRun) -> dict[str, Any]:
    def rows(outcome: str) -> list[dict[str, Any]]:
        return trace.findings.filter(outcome=outcome).to_dicts()

    return {
        **{name: trace.job[name] for name in _OF_TRACE},
        "facts": trace.facts,
        # insert the numbers into the sentence
        "findings": [row | {"sentence": fill_template(row["sentence"], row["evidence"])} for row in rows("found")],
        "not_found": rows("not_found"),
        "not_applicable": rows("not_applicable"),
        "unknown": rows("unknown"),
        "layers": trace.layers.to_dicts(),
        "sizes": trace.sizes.to_dicts(),
        "heatmaps": [_heatmap(heatmap) for heatmap in trace.maps],
    }


def _heatmap(heatmap: RankTimes) -> dict[str, Any]:
    return {
        "module": heatmap.module,
        "direction": heatmap.direction,
        "source": heatmap.source,
        "rank_edges": heatmap.rank_edges.tolist(),
        "time_edges_s": _round(heatmap.time_edges_s.tolist()),
        "cell_bytes": [_round(row) for row in heatmap.cell_bytes.tolist()],
        "time_bytes": _round(heatmap.time_bytes.tolist()),
        "rank_bytes": _round(heatmap.rank_bytes.tolist()),
    }


def _round(values: Sequence[float | None], scale: float = 1.0) -> list[float | None]:
    return [None if value is None else float(f"{value * scale:.{_DIGITS}g}") for value in values]


def build_page(report: JobReport, max_neighbors: int) -> str:
    """Render a run as a self-contained HTML page."""
    pictures: list[str | None] = []
    for number, trace in enumerate(report.traces):
        finding = summarize_heat_maps(trace.maps)
        heat = draw(HeatView(trace.job["source_file"], trace.maps, finding))
        pictures.append(render_svg(heat, f"heat-{number}", finding) if trace.maps else None)
    return job_page(build_document(report, max_neighbors).model_dump(), pictures)
