"""Classify subjects by the part of the run in which they do their I/O."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, ragged
from iosig.estimates.subjects import build_keys, list_trace_runs
from iosig.transforms import classes
from iosig.transforms.arrays import Reals, offsets_of
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.classes import CLASSES


def series_classes(intervals: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    """Classify the subjects of time series.

    intervals: rows of `series_intervals`. Returns rows of `classes`.
    """
    ordered = intervals.sort("subject_id", "direction", "time_s").with_columns(
        left_s=pl.col("time_s") - pl.col("interval_s"),
        bytes=pl.col("bytes_per_s") * pl.col("interval_s"),
    )
    subjects = ordered.group_by("ended_on", "subject_id", "direction", maintain_order=True).agg(
        pl.col("left_s").min().alias("start_s"),
        pl.col("time_s").max().alias("end_s"),
        pl.col("node_count").max(),
        pl.len().cast(pl.Int64).alias("count"),
    )
    start_s, end_s = subjects["start_s"].to_numpy(), subjects["end_s"].to_numpy()
    sections = classes.interval_sections(
        ordered["left_s"].to_numpy(),
        ordered["time_s"].to_numpy(),
        floats(ordered["bytes"]),
        offsets_of(subjects["count"].to_numpy()),
        start_s,
        end_s,
    )
    labeled = classes.classify(sections, floats(subjects["node_count"]), params)
    return class_rows(build_keys("series", subjects), labeled, subjects["node_count"], end_s - start_s)


def trace_classes(
    jobs: pl.DataFrame,
    counters: pl.DataFrame,
    signals: pl.DataFrame,
    params: classes.ClassParams,
    max_interval_ratio: float,
) -> pl.DataFrame:
    """Classify traced runs, given as rows of `trace_jobs`, `trace_counters` and `trace_signals`.

    A run is not classified if more than the fraction `max_interval_ratio` of its bytes is known from counters only,
    since the times of these bytes are unknown. Returns rows of `classes`.
    """
    counted = signals.filter("is_counted")
    subjects = list_trace_runs(jobs, counters, counted, max_interval_ratio)
    end_s = floats(subjects["end_s"])
    labeled = classes.classify(_sum_sections(subjects, counted, end_s), floats(subjects["node_count"]), params)
    has_times = subjects["untold"].is_null()
    is_silent = (labeled["outcome"] == "classified") & ~has_times
    rows = labeled.with_columns(
        pl.when(~is_silent).then("label").alias("label"),
        pl.when(has_times).then(pl.col("section_bytes", "cv")),
        pl.when(has_times).then("volume_bytes").otherwise(subjects["counted_bytes"]).alias("volume_bytes"),
        pl.when(is_silent).then(subjects["untold"]).otherwise("outcome").alias("outcome"),
    )
    keys = build_keys("trace", subjects, subject_id="trace_id")
    return class_rows(keys, rows, subjects["node_count"], subjects["duration_s"])


def class_rows(
    keys: pl.DataFrame, labeled: pl.DataFrame, node_count: pl.Series, duration_s: pl.Series | Reals
) -> pl.DataFrame:
    """Combine subjects and classifier results to rows of `classes`."""
    sizes = pl.DataFrame({"node_count": node_count, "duration_s": duration_s})
    return frames.separate_metrics(pl.concat([keys, labeled, sizes], how="horizontal"), CLASSES)


def _sum_sections(subjects: pl.DataFrame, counted: pl.DataFrame, end_s: Reals) -> classes.Sections:
    """Return the sections of subjects, summed over the signals of their modules."""
    keys = ["trace_id", "direction"]
    placed = counted.join(subjects.select(*keys, "end_s").with_row_index("subject"), on=keys, how="inner")
    rates = ragged(placed["signal_bytes_per_s"])
    start = np.zeros(placed.height)
    sections = classes.grid_sections(
        rates.values, rates.offsets, start, placed["interval_s"].to_numpy(), start, placed["end_s"].to_numpy()
    )
    volume = np.zeros((subjects.height, classes.SECTION_COUNT))
    np.add.at(volume, placed["subject"].to_numpy(), sections.volume_bytes)
    # time without requests is not a gap, since the tracer was active throughout
    covered = np.repeat(np.nan_to_num(end_s)[:, None] / classes.SECTION_COUNT, classes.SECTION_COUNT, axis=1)
    return classes.Sections(volume, covered, end_s)
