"""Classes: when in its run each job or series does its I/O."""

from __future__ import annotations

import polars as pl

from flows.steps.arrays import epoch_s, floats, offsets, ragged
from flows.steps.run import Day, Run
from transforms import classes
from warehouse.contracts import frames, tables
from warehouse.store import write_parquet

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
    """Classify the runs and series that ended on a day. Returns the rows."""
    params = classes.ClassParams(**run.settings.classes.model_dump())
    pieces = [frames.empty(tables.CLASSES)]
    if run.path(tables.SAMPLES, day).is_file() and run.path(tables.JOBS, day).is_file():
        pieces.append(_job_classes(run, day, params))
    if run.path(tables.SERIES_INTERVALS, day).is_file():
        pieces.append(series_classes(pl.read_parquet(run.path(tables.SERIES_INTERVALS, day)), params))
    found = pl.concat(pieces)
    if not found.is_empty():
        write_parquet(found, tables.CLASSES, run.path(tables.CLASSES, day))
    return found.height


def _job_classes(run: Run, day: Day, params: classes.ClassParams) -> pl.DataFrame:
    cut = pl.read_parquet(run.path(tables.SAMPLES, day))
    jobs = pl.read_parquet(run.path(tables.JOBS, day), columns=[*tables.JOBS.key, "ended_at", "node_count"])
    subjects = cut.join(jobs, on=tables.JOBS.key, how="left", maintain_order="left")
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
        .select(tables.CLASSES.column_names)
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
        .select(tables.CLASSES.column_names)
    )
