"""Determine the class and period of every run, from its own bytes or from its application's signature.

Measured answers need a trace of the run, or bytes that servers counted for it. Shared traffic does not determine the
class or period of a single run. Other runs therefore get the answer of their application's signature, or an outcome
that states why this answer is missing.
"""

from __future__ import annotations

import polars as pl

from iosig.estimates.periods import DEFAULT_METHOD
from iosig.estimates.subjects import build_keys
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_built_on, read_undated
from iosig.transforms import inference
from iosig.transforms.classes import ClassParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.classes import CLASSES, INFERRED_CLASSES, MEASURED_CLASSES
from iosig.warehouse.contracts.inference import COVERING_TRACES, INFERENCE_CHECKS
from iosig.warehouse.contracts.job_io import CLIENT_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import (
    INFERENCE_RUNS,
    INFERRED_PERIODS,
    MEASURED_PERIODS,
    OF_AN_APPLICATION,
    PERIODS,
)
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLE_SETS, SAMPLES
from iosig.warehouse.contracts.signatures import INFERENCE_BURSTS, SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS


def infer(context: StepContext) -> int:
    """Add inferred classes and periods of runs that were not measured on a day. Returns the number of classes."""
    with context.engine() as connection:
        context.expose(connection, JOBS, SAMPLES, EXACT_SAMPLES, TRACE_JOBS, CLIENT_IO, ATTRIBUTED_IO)
        context.expose(connection, MEASURED_CLASSES, MEASURED_PERIODS, SIGNATURES, SIGNATURE_BURSTS, SAMPLE_SETS)
        runs, bursts = (context.compute(connection, table) for table in (INFERENCE_RUNS, INFERENCE_BURSTS))
        context.compute(connection, COVERING_TRACES)
        context.put(connection, INFERRED_CLASSES, _classes(runs, bursts, context.settings.classes.params(ClassParams)))
        context.put(connection, INFERRED_PERIODS, _periods(runs))
        class_count, *_ = [context.build_days(connection, table) for table in (CLASSES, PERIODS, INFERENCE_CHECKS)]
    return class_count


def _classes(runs: pl.DataFrame, bursts: pl.DataFrame, params: ClassParams) -> pl.DataFrame:
    """Return the inferred classes of runs in each metric, as rows of `classes`."""
    volumes = bursts.with_columns(volume_bytes=pl.coalesce("volume_bytes", "volume_operations"))
    parts = [
        _classes_of_metric(
            part, volumes.filter(metric=metric), params if metric == "bytes" else params.for_operations()
        )
        for (metric,), part in runs.partition_by("metric", as_dict=True, maintain_order=True).items()
    ]
    return pl.concat([frames.empty(CLASSES), *parts])


def _classes_of_metric(runs: pl.DataFrame, bursts: pl.DataFrame, params: ClassParams) -> pl.DataFrame:
    """Combine inferred classes with the keys and durations of their runs."""
    inferred = inference.infer_classes(runs, bursts, params)
    is_refused = runs["refusal"].is_not_null() & (inferred["outcome"] == "classified")
    answered = inferred.with_columns(
        outcome=pl.when(is_refused).then(runs["refusal"]).otherwise("outcome"),
        # only job_io states a run's volume
        volume_bytes=pl.lit(None, pl.Float64),
        missing_ratio=pl.lit(None, pl.Float64),
    ).with_columns(pl.when(pl.col("outcome") == "classified").then(pl.col("label", "section_bytes", "cv")))
    rows = pl.concat([_keys(runs), answered, runs.select("node_count", "duration_s")], how="horizontal")
    return frames.separate_metrics(rows, CLASSES)


def _periods(runs: pl.DataFrame) -> pl.DataFrame:
    """Combine inferred periods with the keys of their runs, as rows of `periods`."""
    is_periodic = pl.col("outcome") == "periodic"
    answered = (
        inference.infer_periods(runs)
        .select(*OF_AN_APPLICATION, method=pl.lit(DEFAULT_METHOD), is_default=pl.col("metric") == "bytes")
        .with_columns(pl.when(is_periodic).then("duty_ratio"))
    )
    return frames.add_missing_columns(pl.concat([_keys(runs), answered], how="horizontal"), PERIODS)


def _keys(runs: pl.DataFrame) -> pl.DataFrame:
    return build_keys("job", runs, subject_id=pl.col("job_id"), basis=pl.lit("inferred"))


STEP = Step(
    "inference",
    infer,
    reads=(
        read_built(MEASURED_CLASSES, JOBS, SAMPLES, EXACT_SAMPLES, ATTRIBUTED_IO, TRACE_JOBS, CLIENT_IO),
        # rows of applications have no day
        read_built_on(lambda run, day: list(dict.fromkeys([day, None])), MEASURED_PERIODS),
        read_undated(SIGNATURES, SIGNATURE_BURSTS, SAMPLE_SETS),
    ),
    writes=(INFERRED_CLASSES, INFERRED_PERIODS, CLASSES, PERIODS, INFERENCE_CHECKS),
    days=lambda run: run.plan.analysis_days,
    is_daily=True,
)
