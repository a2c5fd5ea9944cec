"""Find the subjects of classes and periods: counted runs, and applications by their signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.estimates.columns import ragged
from iosig.estimates.subjects import Subjects, build_keys
from iosig.flows.steps.items import StepContext
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import COUNTED_SAMPLES, EXACT_SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_CURVES, SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.store import models


def compute_counted_samples(context: StepContext) -> pl.DataFrame:
    """Return the samples of runs with complete per-job counters, as rows of `counted_samples`."""
    with context.engine() as connection:
        context.expose(connection, EXACT_SAMPLES, JOBS)
        return context.compute(connection, COUNTED_SAMPLES)


def select_applications(
    context: StepContext, kept_models: Mapping[Table, Table]
) -> tuple[dict[str, Subjects], list[pl.DataFrame]]:
    """Return the applications to analyze, by metric, with their default signatures, and the rows that remain valid.

    kept_models: for each table of the base release, the model that selects its valid rows; the first table has the
    classes or periods. An application keeps its rows if its signature equals that of the base release.
    """
    answers = next(iter(kept_models))
    with context.engine() as connection:
        context.expose(connection, SIGNATURES, SIGNATURE_POINTS)
        context.expose_released(connection, SIGNATURES, SIGNATURE_POINTS, *kept_models)
        models.expose(connection, "run", replace(answers, name="released_answers"), context.list_base_files(answers))
        curves = context.compute(connection, SIGNATURE_CURVES).filter(~pl.col("is_kept"))
        rows = [context.compute(connection, model).select(table.column_names) for table, model in kept_models.items()]
    parts = curves.partition_by("metric", as_dict=True, maintain_order=True)
    return {str(metric): _build_subjects(part) for (metric,), part in parts.items()}, rows


def _build_subjects(curves: pl.DataFrame) -> Subjects:
    keys = build_keys("application", curves, subject_id="application_id")
    return Subjects(keys, ragged(curves["curve_per_s"]), np.ones(curves.height), np.zeros(curves.height))
