"""Classes: when in its run each job, series, traced run or application does its I/O."""

from __future__ import annotations

import numpy as np
import polars as pl

from flows.arrays import epoch_s, floats, offsets, ragged
from flows.steps.run import Day, Run, default_signatures, undated_of_others
from flows.steps.subjects import Subjects, signature_subjects, traced_runs
from transforms import classes
from transforms.arrays import Reals
from warehouse.contracts import frames
from warehouse.contracts.classes import CLASSES
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.samples import APPLICATIONS, SAMPLES
from warehouse.contracts.series import SERIES_INTERVALS
from warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS
from warehouse.store.store import write_parquet

#: what the classifier gives, and what every subject has
_COMMON = (
    "ended_on",
    "direction",
    "outcome",
    "label",
    "section_bytes",
    "cov",
    "volume_bytes",
    "node_count",
    "missing_ratio",
)


def classify(run: Run, day: Day) -> int:
    """Classify runs, series and traced runs that ended on a day; without one, applications too. Returns the rows."""
    params = classes.ClassParams(**run.settings.classes.model_dump())
    pieces = [frames.empty(CLASSES)]
    if run.path(SAMPLES, day).is_file() and run.path(JOBS, day).is_file():
        pieces.append(_job_classes(run, day, params))
    if run.path(SERIES_INTERVALS, day).is_file():
        pieces.append(series_classes(pl.read_parquet(run.path(SERIES_INTERVALS, day)), params))
    if run.path(TRACE_SIGNALS, day).is_file():
        jobs, counters, signals = (
            pl.read_parquet(run.path(table, day)) for table in (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS)
        )
        pieces.append(trace_classes(jobs, counters, signals, params, run.settings.traces.max_interval_ratio))
    if day is None:
        applications = pl.read_parquet(run.path(APPLICATIONS, None), columns=["application_id", "node_count"])
        pieces.append(undated_of_others(run, CLASSES))
        pieces.append(signature_classes(signature_subjects(*default_signatures(run)), applications, params))
    found = pl.concat(pieces)
    if not found.is_empty():
        write_parquet(found, CLASSES, run.path(CLASSES, day))
    return found.height


def _job_classes(run: Run, day: Day, params: classes.ClassParams) -> pl.DataFrame:
    cut = pl.read_parquet(run.path(SAMPLES, day))
    jobs = pl.read_parquet(run.path(JOBS, day), columns=[*JOBS.key, "ended_at", "node_count"])
    subjects = cut.join(jobs, on=JOBS.key, how="left", maintain_order="left")
    rates = ragged(subjects["sample_bytes_per_s"])
    started_s = epoch_s(subjects["started_at"])
    ended_s = epoch_s(subjects["ended_at"])
    sections = classes.grid_sections(
        rates.values,
        rates.offsets,
        epoch_s(subjects["grid_started_at"]),
        subjects["interval_s"].to_numpy(),
        started_s,
        ended_s,
    )
    labelled = classes.classify(sections, floats(subjects["node_count"]), params)
    return (
        pl.concat([subjects, labelled], how="horizontal")
        .select(
            pl.lit("job").alias("subject_kind"),
            pl.col("job_id").alias("subject_id"),
            pl.lit("server").alias("source"),
            pl.lit(True).alias("is_shared_traffic"),
            pl.Series("duration_s", ended_s - started_s),
            *_COMMON,
            "cluster",
            "started_at",
            "filesystem",
        )
        .select(CLASSES.column_names)
    )


def series_classes(intervals: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    """Classify the subjects of series, as rows of `series_intervals`; returns rows of `classes`."""
    ordered = intervals.sort("subject_id", "direction", "time_s").with_columns(
        left_s=pl.col("time_s") - pl.col("interval_s"),
        bytes=pl.col("bytes_per_s") * pl.col("interval_s"),
    )
    subjects = ordered.group_by("ended_on", "subject_id", "direction", maintain_order=True).agg(
        pl.col("left_s").min().alias("started_s"),
        pl.col("time_s").max().alias("ended_s"),
        pl.col("node_count").max(),
        pl.len().cast(pl.Int64).alias("count"),
    )
    started_s, ended_s = subjects["started_s"].to_numpy(), subjects["ended_s"].to_numpy()
    sections = classes.interval_sections(
        ordered["left_s"].to_numpy(),
        ordered["time_s"].to_numpy(),
        floats(ordered["bytes"]),
        offsets(subjects["count"]),
        started_s,
        ended_s,
    )
    labelled = classes.classify(sections, floats(subjects["node_count"]), params)
    return (
        pl.concat([subjects, labelled], how="horizontal")
        .select(
            pl.lit("series").alias("subject_kind"),
            "subject_id",
            pl.lit("series").alias("source"),
            pl.lit(False).alias("is_shared_traffic"),
            pl.Series("duration_s", ended_s - started_s),
            *_COMMON,
            pl.lit(None, pl.String).alias("cluster"),
            pl.lit(None, pl.Datetime("us", "UTC")).alias("started_at"),
            pl.lit(None, pl.String).alias("filesystem"),
        )
        .select(CLASSES.column_names)
    )


def trace_classes(
    jobs: pl.DataFrame,
    counters: pl.DataFrame,
    signals: pl.DataFrame,
    params: classes.ClassParams,
    max_interval_ratio: float,
) -> pl.DataFrame:
    """Classify traced runs, as rows of `trace_jobs`, `trace_counters` and `trace_signals`; returns rows of `classes`.

    A run of whose bytes more than a share of `max_interval_ratio` are known by counters alone is not classified:
    when they were moved is not known.
    """
    counted = signals.filter("is_counted")
    subjects = traced_runs(jobs, counters, counted, max_interval_ratio)
    ended_s = floats(subjects["ended_s"])
    labelled = classes.classify(_traced_sections(subjects, counted, ended_s), floats(subjects["node_count"]), params)
    is_told = pl.col("untold").is_null()
    is_silent = (pl.col("outcome") == "classified") & ~is_told
    return (
        pl.concat([subjects, labelled], how="horizontal")
        .with_columns(
            pl.when(~is_silent).then("label").alias("label"),
            pl.when(is_told).then("section_bytes").alias("section_bytes"),
            pl.when(is_told).then("cov").alias("cov"),
            pl.when(is_told).then("volume_bytes").otherwise("counted_bytes").alias("volume_bytes"),
            pl.when(is_silent).then("untold").otherwise("outcome").alias("outcome"),
        )
        .select(
            pl.lit("trace").alias("subject_kind"),
            pl.col("trace_id").alias("subject_id"),
            pl.lit("client").alias("source"),
            pl.lit(False).alias("is_shared_traffic"),
            *_COMMON,
            "duration_s",
            "cluster",
            "started_at",
            pl.lit(None, pl.String).alias("filesystem"),
        )
        .select(CLASSES.column_names)
    )


def signature_classes(found: Subjects, applications: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    """Classify applications by their signatures; returns rows of `classes`.

    applications: application_id and node_count. What is over all sizes has no number of nodes.
    """
    sizes = found.keys.select(application_id="subject_id").join(
        applications, on="application_id", how="left", maintain_order="left"
    )
    rates = found.samples
    sections = classes.grid_sections(
        rates.values, rates.offsets, found.started_s, 1.0 / found.sampling_hz, found.started_s, found.ended_s
    )
    labelled = classes.classify(sections, floats(sizes["node_count"]), params)
    own = [name for name in labelled.columns if name not in found.keys.columns]
    return (
        pl.concat([found.keys, labelled.select(own), sizes.select("node_count")], how="horizontal")
        .with_columns(duration_s=pl.Series(found.ended_s))
        .select(CLASSES.column_names)
    )


def _traced_sections(subjects: pl.DataFrame, counted: pl.DataFrame, ended_s: Reals) -> classes.Sections:
    """Return the sections of subjects, those of their modules' signals added up."""
    keys = ["trace_id", "direction"]
    placed = counted.join(subjects.select(*keys, "ended_s").with_row_index("subject"), on=keys, how="inner")
    rates = ragged(placed["signal_bytes_per_s"])
    start = np.zeros(placed.height)
    sections = classes.grid_sections(
        rates.values, rates.offsets, start, placed["interval_s"].to_numpy(), start, placed["ended_s"].to_numpy()
    )
    volume = np.zeros((subjects.height, classes.SECTION_COUNT))
    np.add.at(volume, placed["subject"].to_numpy(), sections.volume_bytes)
    # What no request tells of is no gap: the tracer was there all the time.
    covered = np.repeat(np.nan_to_num(ended_s)[:, None] / classes.SECTION_COUNT, classes.SECTION_COUNT, axis=1)
    return classes.Sections(volume, covered, ended_s)
