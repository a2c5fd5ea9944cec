"""Query findings, layers, request sizes, access order and heat maps of traced runs, in a release or a single input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.answers.single.one_input import TraceInput
from iosig.transforms.findings.facts import DIRECTIONS, TraceFrames, compute_facts, upper_layers
from iosig.transforms.findings.finding import apply_rules
from iosig.transforms.findings.finding_files import find_files
from iosig.transforms.findings.rank_times import RankTimes, compute_rank_times
from iosig.transforms.findings.thresholds import Thresholds
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_HEATMAPS, TRACE_RECORDS, TRACE_REQUESTS

if TYPE_CHECKING:
    import duckdb

#: maximum number of requests to read: more would not fit in memory
MAX_REQUESTS = 20_000_000
#: tables that `analyze_release` queries
TABLES = "trace_jobs trace_counters trace_heatmaps trace_records trace_files trace_requests"
SIZES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
_LAYER = (
    "module", "outcome", "is_partial", "is_counted", "file_count", "read_bytes", "written_bytes", "open_count",
    "read_count", "write_count", "seek_count", "stat_count", "sync_count", "read_time_s", "write_time_s",
    "metadata_time_s",
)  # fmt: skip
_IN_FILE = {"path": pl.String(), "value": pl.Float64(), "unit": pl.String()}
_FACTS = (
    "read_count", "read_sequential_count", "read_consecutive_count", "write_count", "write_sequential_count",
    "write_consecutive_count", "io_time_ratio", "metadata_count", "data_count",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TracedRun:
    """Analysis of a traced run.

    job: its row of `trace_jobs`. findings: rows of `apply_rules` without trace_id, with the affected files (path,
    value, unit), largest first. layers: bytes, calls and times of its modules. sizes: module, size, read_count,
    write_count of the tracer's histogram. facts: the request counts and ratios that are displayed. maps: heat maps of
    the layer nearest to the program.
    """

    job: dict[str, Any]
    findings: pl.DataFrame
    layers: pl.DataFrame
    sizes: pl.DataFrame
    facts: dict[str, float | None]
    maps: tuple[RankTimes, ...]

    @property
    def found_rows(self) -> list[dict[str, Any]]:
        """Findings with outcome `found`, most severe first."""
        return self.findings.filter(outcome="found").to_dicts()


def analyze_input(trace: TraceInput) -> TracedRun:
    """Analyze the traced run of one input, without a warehouse."""
    requests = _requests(trace.landed[TRACE_REQUESTS.name])
    heatmaps, records, files = (trace.read(table) for table in (TRACE_HEATMAPS, TRACE_RECORDS, TRACE_FILES))
    frames = TraceFrames(trace.jobs, trace.counters, heatmaps, records, files, requests)
    return _analyze(frames)[0]


def analyze_release(connection: duckdb.DuckDBPyConnection, trace_ids: Sequence[str]) -> list[TracedRun]:
    """Analyze traced runs of a release and its landings; `connection` must provide `TABLES`."""
    if not trace_ids:
        return []
    params = {"trace_ids": list(trace_ids)}

    def rows(table: Table | str) -> pl.DataFrame:
        name = table if isinstance(table, str) else table.name
        query = f"from {name} where list_contains($trace_ids, trace_id)"
        return pl.DataFrame(connection.sql(query, params=params).to_arrow_table())

    (count,) = connection.sql(_COUNT, params=params).fetchall()[0]
    frames = TraceFrames(
        rows("trace_jobs"),
        rows("trace_counters"),
        rows(TRACE_HEATMAPS),
        rows(TRACE_RECORDS),
        rows(TRACE_FILES),
        connection.sql(_REQUESTS, params=params).pl() if count <= MAX_REQUESTS else None,
    )
    return _analyze(frames)


def analyze_tables(
    jobs: pl.DataFrame, counters: pl.DataFrame, heatmaps: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, tuple[RankTimes, ...]]]:
    """Return findings of many traced runs, and heat maps by trace, from published tables only."""
    thresholds = Thresholds()
    findings = apply_rules(compute_facts(TraceFrames(jobs, counters, heatmaps), thresholds), thresholds)
    upper = dict(upper_layers(counters).select("trace_id", "module").iter_rows())
    counts = dict(jobs.select("trace_id", "process_count").iter_rows())
    by_trace = heatmaps.partition_by("trace_id", as_dict=True)
    maps = {
        trace_id: tuple(compute_rank_times(rows, None, upper[trace_id], counts.get(trace_id)))
        for (trace_id,), rows in by_trace.items()
        if trace_id in upper
    }
    return findings, maps


_COUNT = "select count(*) from trace_requests where list_contains($trace_ids, trace_id) and not is_nested"
_REQUESTS = """
    select trace_id, module, rank, host, file_number, direction, offset_bytes, request_bytes, start_s, end_s
    from trace_requests
    where list_contains($trace_ids, trace_id) and not is_nested
"""


def _requests(landed: Sequence[pl.LazyFrame]) -> pl.DataFrame | None:
    """Return the requests of one input that are not nested; None if there are none or too many."""
    columns = (
        "trace_id", "module", "rank", "host", "file_number", "direction", "offset_bytes", "request_bytes", "start_s",
        "end_s",
    )  # fmt: skip
    if not landed:
        return None
    rows = pl.concat(landed).filter(~pl.col("is_nested"))
    if rows.select(pl.len()).collect().item() > MAX_REQUESTS:
        return None
    return rows.select(columns).collect()


def _analyze(frames: TraceFrames) -> list[TracedRun]:
    thresholds = Thresholds()
    facts = compute_facts(frames, thresholds)
    findings = _with_files(apply_rules(facts, thresholds), frames, thresholds)
    upper = dict(upper_layers(frames.counters).select("trace_id", "module").iter_rows())
    return [_run(frames, job, facts, findings, upper.get(job["trace_id"])) for job in frames.jobs.to_dicts()]


def _with_files(findings: pl.DataFrame, frames: TraceFrames, thresholds: Thresholds) -> pl.DataFrame:
    """Add to each finding the affected files with known paths."""
    rule, empty = ["trace_id", "rule", "direction"], pl.lit([], pl.List(pl.Struct(_IN_FILE)))
    if frames.files is None:
        return findings.with_columns(files=empty)
    named = find_files(frames, thresholds).join(
        frames.files.select("trace_id", "file_number", "path"), on=["trace_id", "file_number"], maintain_order="left"
    )
    files = named.drop_nulls("path").group_by(rule, maintain_order=True).agg(files=pl.struct(*_IN_FILE))
    joined = findings.join(files, on=rule, how="left", nulls_equal=True, maintain_order="left")
    is_found = (pl.col("outcome") == "found") & pl.col("files").is_not_null()
    return joined.with_columns(files=pl.when(is_found).then("files").otherwise(empty))


def _run(
    frames: TraceFrames, job: dict[str, Any], facts: pl.DataFrame, findings: pl.DataFrame, upper: str | None
) -> TracedRun:
    def of_trace(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("trace_id") == job["trace_id"])

    assert frames.heatmaps is not None
    counters = of_trace(frames.counters)
    requests = None if frames.requests is None else of_trace(frames.requests)
    maps = compute_rank_times(of_trace(frames.heatmaps), requests, upper, job["process_count"]) if upper else []
    shown_facts = of_trace(facts).select(_FACTS).row(0, named=True)
    return TracedRun(
        job,
        of_trace(findings).drop("trace_id"),
        select_layers(counters),
        parse_size_histogram(counters),
        shown_facts,
        tuple(maps),
    )


def select_layers(counters: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Select the modules with any calls or bytes, without DXT modules, which repeat the requests of others.

    more: further columns to keep.
    """
    calls = pl.sum_horizontal("read_bytes", "written_bytes", "open_count", "stat_count", "read_count", "write_count")
    return (
        counters.filter(calls > 0, ~pl.col("module").str.starts_with("DXT_"))
        .select(*more, *_LAYER)
        .sort(*more, "module")
    )


def parse_size_histogram(counters: pl.DataFrame) -> pl.DataFrame:
    """Return the tracer's histogram of request sizes by module, with the tracer's bin edges."""
    rows = []
    for module, text in counters.select("module", "counters").iter_rows():
        histogram = json.loads(text) if text else {}
        for size in SIZES:
            counts = [histogram.get(f"{module}_SIZE_{direction.upper()}_{size}") for direction in DIRECTIONS]
            # MPI-IO counts all requests of a collective call as one in its histogram (AGG)
            counts = [
                histogram.get(f"{module}_SIZE_{direction.upper()}_AGG_{size}") if count is None else count
                for direction, count in zip(DIRECTIONS, counts, strict=True)
            ]
            if any(count is not None for count in counts):
                rows.append((module, size, *counts))
    schema = {"module": pl.String, "size": pl.String, "read_count": pl.Int64, "write_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
