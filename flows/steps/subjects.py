"""Whose signals are judged: jobs, series, traced runs and applications, each with its bytes over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from iosig.estimates.columns import ragged
from iosig.estimates.subjects import Subjects, keys_of
from iosig.flows.steps.items import StepContext
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import COUNTED_SAMPLES, EXACT_SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.engine_paths import read_parquet, scan_parquet

#: what names an application's signature, and its row of `periods` or `classes`
_APPLICATION = ["application_id", "filesystem", "direction"]
_NAMED = ["subject_id", "filesystem", "direction"]


def counted_samples(context: StepContext) -> pl.DataFrame:
    """Return the samples of runs of which servers counted every byte, as rows of `counted_samples`."""
    with context.engine() as connection:
        context.expose(connection, EXACT_SAMPLES, JOBS)
        return context.compute(connection, COUNTED_SAMPLES)


def of_applications(context: StepContext, table: Table) -> tuple[Subjects, pl.DataFrame]:
    """Return applications, by the default answer's signatures: what they do when alone; and what stays of a table.

    An application whose signature is that of the release before is not among them: its rows stay as they are, and so
    do those of other kinds of no day, unless they are computed anew.
    """
    curves = _curves(context.scan(SIGNATURES), context.files(SIGNATURE_POINTS))
    files, kinds = context.released(table), context.subject_kinds(table)
    kept = frames.widened(read_parquet(files), table) if files else frames.empty(table)
    kept = kept.filter(pl.col("subject_kind").is_in(sorted(kinds)))
    if "application" in kinds:
        before = _curves(context.scan(SIGNATURES, is_released=True), context.released(SIGNATURE_POINTS))
        is_application = pl.col("subject_kind") == "application"
        same = curves.join(before, on=curves.columns, how="semi")
        still = kept.filter(is_application).join(same, left_on=_NAMED, right_on=_APPLICATION, how="semi")
        kept = pl.concat([kept.filter(~is_application), still])
        curves = curves.join(still, left_on=_APPLICATION, right_on=_NAMED, how="anti").sort(_APPLICATION)
    keys = keys_of("application", curves, subject_id="application_id")
    return Subjects(keys, ragged(curves["rates"]), np.ones(curves.height), np.zeros(curves.height)), kept


def _curves(signatures: pl.LazyFrame, points: Sequence[Path]) -> pl.DataFrame:
    """Return the default answers' signatures, a row each.

    points: files of which each holds all points of its applications, as buckets do: one is in memory at a time.
    """
    found = signatures.filter("is_default", outcome="extracted").select(*_APPLICATION, "method").collect()
    curves = [
        scan_parquet(path)
        .join(found.lazy(), on=[*_APPLICATION, "method"], how="semi")
        .sort(*_APPLICATION, "offset_s")
        .group_by(_APPLICATION, maintain_order=True)
        .agg(rates="bytes_per_s")
        .collect()
        for path in points
    ]
    none = frames.empty(SIGNATURE_POINTS).select(*_APPLICATION, rates=pl.col("bytes_per_s").implode()).clear()
    return pl.concat([none, *curves]).sort(_APPLICATION)
