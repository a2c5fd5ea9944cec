"""Encode runs as one data file per hour in which runs started, so that a night adds files and changes few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from iosig.reports.site.packing import Content, columns, lean, pack_document

_RUN = ("cluster", "job_id", "started_at")


def make_empty_findings() -> pl.DataFrame:
    """Return an empty frame of trace findings, for releases without traced runs."""
    types = (pl.String(), pl.String(), pl.Datetime("us", "UTC"), pl.String())
    return pl.DataFrame(schema=dict(zip((*_RUN, "traces"), types, strict=True)))


def _make_empty_slowdowns() -> pl.DataFrame:
    columns: dict[str, pl.DataType] = {
        "cluster": pl.String(),
        "job_id": pl.String(),
        "started_at": pl.Datetime("us", "UTC"),
        "is_slowed": pl.Boolean(),
        "delay_s": pl.Float64(),
    }
    return pl.DataFrame(schema=columns)


@dataclass(frozen=True, slots=True)
class RunFrames:
    """Input of the run pages; each frame has cluster, job_id and started_at and is sorted by started_at.

    runs: one row per run. io: one row per run, file system and direction: bytes, their attribution, and the sample as
    rates in steps of step_s and multiples of scale_bytes_per_s. slowed: one row per burst detected in the traffic:
    is_slowed, the delay compared with an isolated run, and the interfering applications. traced: traced runs with their
    findings as JSON, in the format of `iosig.reports.site.traces`.
    """

    runs: pl.DataFrame
    io: pl.DataFrame
    traced: pl.DataFrame = field(default_factory=make_empty_findings)
    slowed: pl.DataFrame = field(default_factory=_make_empty_slowdowns)


def contents(frames: RunFrames) -> Iterator[Content]:
    """Yield the search index of job ids, and a file for each hour."""
    yield jobs(frames.runs)
    yield from hours(frames)


def hour_path(hour: datetime) -> str:
    """Return the path of the data file for an hour."""
    return f"data/run/{hour:%Y-%m-%dT%H}.js"


def hours(frames: RunFrames) -> Iterator[Content]:
    """Yield a file for each hour in which runs started."""
    run_io = lean(frames.io).group_by(_RUN, maintain_order=True).agg(io=pl.struct(pl.exclude(_RUN)))
    burst_counts = frames.slowed.group_by(_RUN, maintain_order=True).agg(burst_count=pl.len())
    bursts = lean(frames.slowed.filter("is_slowed").drop("is_slowed"))
    slowed = bursts.group_by(_RUN, maintain_order=True).agg(slowed=pl.struct(pl.exclude(_RUN)))
    hour = frames.runs["started_at"].dt.strftime("%Y-%m-%dT%H").alias("hour")
    documents = (
        lean(frames.runs)
        .join(run_io, on=_RUN, how="left", maintain_order="left")
        .join(lean(burst_counts), on=_RUN, how="left", maintain_order="left")
        .join(slowed, on=_RUN, how="left", maintain_order="left")
        .join(lean(frames.traced), on=_RUN, how="left", maintain_order="left")
        .select(hour, "traces", document=pl.struct(pl.exclude("traces")).struct.json_encode())
        # The traces column is already JSON, so it is inserted unquoted.
        .with_columns(
            document=pl.when(pl.col("traces").is_null())
            .then("document")
            .otherwise(pl.concat_str(pl.col("document").str.head(-1), pl.lit(',"traces":'), "traces", pl.lit("}")))
        )
        .group_by("hour", maintain_order=True)
        .agg(pl.col("document").str.join(","))
    )
    for name, document in documents.iter_rows():
        yield pack_document(f"run/{name}", f"[{document}]")


def jobs(runs: pl.DataFrame) -> Content:
    """Encode the search index of runs, sorted by job id, with start and cluster, from which a page finds the run."""
    ordered = runs.select("job_id", "cluster", "started_at").sort("job_id", "started_at", "cluster")
    # clusters are numbered, because most sites have only one
    clusters = ordered["cluster"].unique().sort()
    places = ordered["cluster"].replace_strict(clusters, range(len(clusters)), return_dtype=pl.Int32)
    document = {"clusters": clusters.to_list(), **columns(ordered.drop("cluster")), "cluster": places.to_list()}
    return pack_document("jobs", document)
