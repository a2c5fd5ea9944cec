"""Classes: when in its run each job, series, traced run or application does its I/O."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.flows.arrays import epoch_s, floats, ragged
from iosig.flows.steps.pieces import Given
from iosig.flows.steps.run import Work, built, undated
from iosig.flows.steps.subjects import JUDGED, Subjects, counted_samples, keys_of, of_applications, traced_runs
from iosig.transforms import classes
from iosig.transforms.arrays import Reals, offsets_of
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.classes import CLASSES, MEASURED_CLASSES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import APPLICATIONS, EXACT_SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS


def classify(given: Given) -> int:
    """Classify counted runs, series and traced runs that ended on a day; without one, applications too.

    Returns the rows.
    """
    params = given.settings.classes.params(classes.ClassParams)
    pieces = [frames.empty(CLASSES)]
    if given.files(JOBS) and given.files(EXACT_SAMPLES):
        pieces.append(_job_classes(counted_samples(given), given.frame(JOBS), params))
    if given.files(SERIES_INTERVALS):
        pieces.append(series_classes(given.frame(SERIES_INTERVALS), params))
    if given.files(TRACE_SIGNALS):
        jobs, counters, signals = map(given.frame, (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS))
        pieces.append(trace_classes(jobs, counters, signals, params, given.settings.traces.max_interval_ratio))
    if given.days == (None,):
        applications, kept = of_applications(given, CLASSES)
        pieces += [kept, _signature_classes(applications, given.frame(APPLICATIONS), params)]
    rows = pl.concat(pieces)
    given.write_days(rows, MEASURED_CLASSES)
    return rows.height


def _job_classes(samples: pl.DataFrame, jobs: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    ended = jobs.select(*JOBS.key, "ended_at", "node_count")
    subjects = samples.join(ended, on=JOBS.key, how="left", maintain_order="left")
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
    keys = keys_of("job", subjects, subject_id="job_id")
    return _rows(keys, labelled, subjects["node_count"], ended_s - started_s)


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
        offsets_of(subjects["count"].to_numpy()),
        started_s,
        ended_s,
    )
    labelled = classes.classify(sections, floats(subjects["node_count"]), params)
    return _rows(keys_of("series", subjects), labelled, subjects["node_count"], ended_s - started_s)


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
    is_told = subjects["untold"].is_null()
    is_silent = (labelled["outcome"] == "classified") & ~is_told
    known = labelled.with_columns(
        pl.when(~is_silent).then("label").alias("label"),
        pl.when(is_told).then(pl.col("section_bytes", "cov")),
        pl.when(is_told).then("volume_bytes").otherwise(subjects["counted_bytes"]).alias("volume_bytes"),
        pl.when(is_silent).then(subjects["untold"]).otherwise("outcome").alias("outcome"),
    )
    keys = keys_of("trace", subjects, subject_id="trace_id")
    return _rows(keys, known, subjects["node_count"], subjects["duration_s"])


def _signature_classes(found: Subjects, applications: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    """Classify applications by their signatures; what is over all sizes has no number of nodes."""
    sizes = found.keys.select(application_id="subject_id").join(
        applications.select("application_id", "node_count"), on="application_id", how="left", maintain_order="left"
    )
    rates = found.samples
    sections = classes.grid_sections(
        rates.values, rates.offsets, found.started_s, 1.0 / found.sampling_hz, found.started_s, found.ended_s
    )
    labelled = classes.classify(sections, floats(sizes["node_count"]), params)
    return _rows(found.keys, labelled, sizes["node_count"], found.ended_s)


def _rows(
    keys: pl.DataFrame, labelled: pl.DataFrame, node_count: pl.Series, duration_s: pl.Series | Reals
) -> pl.DataFrame:
    """Return rows of `classes`: subjects, with what the classifier says of them."""
    sizes = pl.DataFrame({"node_count": node_count, "duration_s": duration_s})
    return pl.concat([keys, labelled, sizes], how="horizontal").select(CLASSES.column_names)


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


WORK = Work(
    "classes",
    classify,
    reads=(built(*JUDGED, APPLICATIONS), undated(CLASSES)),
    writes=(MEASURED_CLASSES,),
    daily=lambda plan: plan.judged_days,
)
