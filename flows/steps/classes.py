"""Classify jobs, series, traced runs and applications by the part of the run in which they do their I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from iosig.estimates.classes import class_rows, series_classes, trace_classes
from iosig.estimates.columns import epoch_s, floats, ragged
from iosig.estimates.subjects import SIGNAL_TABLES, Subjects, build_keys
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_carried
from iosig.flows.steps.subjects import compute_counted_samples, select_applications
from iosig.transforms import classes
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.classes import CLASSES, KEPT_CLASSES, MEASURED_CLASSES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import APPLICATIONS, EXACT_SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS


def classify(context: StepContext) -> int:
    """Classify counted runs, series and traced runs that ended on a day; an undated item also classifies applications.

    Returns the number of rows.
    """
    params = context.settings.classes.params(classes.ClassParams)
    pieces = [frames.empty(CLASSES)]
    if context.files(JOBS) and context.files(EXACT_SAMPLES):
        pieces.append(_job_classes(compute_counted_samples(context), params))
    if context.files(SERIES_INTERVALS):
        pieces.append(series_classes(context.frame(SERIES_INTERVALS), params))
    if context.files(TRACE_SIGNALS):
        jobs, counters, signals = map(context.frame, (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS))
        pieces.append(trace_classes(jobs, counters, signals, params, context.settings.traces.max_interval_ratio))
    if context.days == (None,):
        applications, (kept_rows,) = select_applications(context, {CLASSES: KEPT_CLASSES})
        pieces += [kept_rows, *_signature_classes(applications, context.frame(APPLICATIONS), params)]
    rows = pl.concat(pieces)
    context.write_days(rows, MEASURED_CLASSES)
    return rows.height


def _job_classes(subjects: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    rates = ragged(subjects["sample_bytes_per_s"])
    start_s = epoch_s(subjects["started_at"])
    end_s = epoch_s(subjects["ended_at"])
    sections = classes.grid_sections(
        rates.values,
        rates.offsets,
        epoch_s(subjects["grid_started_at"]),
        subjects["interval_s"].to_numpy(),
        start_s,
        end_s,
    )
    labeled = classes.classify(sections, floats(subjects["node_count"]), params)
    keys = build_keys("job", subjects, subject_id="job_id")
    return class_rows(keys, labeled, subjects["node_count"], end_s - start_s)


def _signature_classes(
    subjects_by_metric: Mapping[str, Subjects], applications: pl.DataFrame, params: classes.ClassParams
) -> Iterator[pl.DataFrame]:
    """Classify applications by their signatures of each metric."""
    for metric, subjects in subjects_by_metric.items():
        yield _classify_signatures(subjects, applications, params if metric == "bytes" else params.for_operations())


def _classify_signatures(subjects: Subjects, applications: pl.DataFrame, params: classes.ClassParams) -> pl.DataFrame:
    """Classify applications by their signatures; a signature of all node counts has no node count."""
    sizes = subjects.keys.select(application_id="subject_id").join(
        applications.select("application_id", "node_count"), on="application_id", how="left", maintain_order="left"
    )
    rates = subjects.samples
    sections = classes.grid_sections(
        rates.values, rates.offsets, subjects.start_s, 1.0 / subjects.sampling_hz, subjects.start_s, subjects.end_s
    )
    labeled = classes.classify(sections, floats(sizes["node_count"]), params)
    return class_rows(subjects.keys, labeled, sizes["node_count"], subjects.end_s)


STEP = Step(
    "classes",
    classify,
    reads=(read_built(*SIGNAL_TABLES, APPLICATIONS), read_carried(CLASSES)),
    writes=(MEASURED_CLASSES,),
    days=lambda run: run.plan.analysis_days,
    is_daily=True,
)
